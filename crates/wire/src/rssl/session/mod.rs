//! One connection's protocol, without its socket: handshake, frames both ways, pings and time-outs.
//!
//! | file | owns |
//! |---|---|
//! | `negotiation.rs` | RSSL's handshake: requested and negotiated settings |
//! | `carrier.rs` | the carrier: none, or a WebSocket |
//! | `pings.rs` | the times of the last receipt and the last send |

mod carrier;
mod negotiation;
mod pings;

use std::sync::Arc;

use tapeline_nanos::Nanos;

use super::fault::{Fault, Reason};
use super::handshake::Version;
use super::output::Output;
use super::receiver::{Following, Place, Receiver, Span};
use super::settings::{Compression, ConnectionSettings, ConnectionType};
use super::websocket::{self, Unwrap};
use crate::impls::shown;
use carrier::Carrier;
pub use negotiation::Negotiated;
use pings::Pings;

/// An event of a connection.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The connection is open: messages can go both ways.
    Connected(&'a Negotiated),
    /// A whole RWF message, or a JSON text: an object or an array of objects, not checked to be UTF-8. A single JSON
    /// ping is answered and not returned; a ping in an array with other messages is returned.
    Message(&'a [u8]),
    /// The output buffer has space again, after [`Sent::Full`](super::Sent::Full): at least half of it.
    Room,
    /// The connection is closed. No other event follows, and sending does nothing. Also the only event of a connection
    /// that never opened.
    Closed(&'a Reason),
}

/// The result of reading received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Connected,
    Message(Span),
    Room,
    /// No event, but bytes were inflated: check how many, and continue after the consumed bytes.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// A server waits for the connect request.
    Request,
    /// A client waits for the answer.
    Answer(Version),
    /// A server waits for the client's key.
    Key,
    Open,
}

/// One end of a connection as a pure state machine: received bytes go in, events come out; messages go in, bytes to
/// send come out. Time is an argument, and no socket is involved.
///
/// ```
/// # use std::sync::Arc;
/// # use tapeline_nanos::Nanos;
/// # use tapeline_wire::rssl::{ConnectionSettings, Event, Sent, Session, Version};
/// let (settings, now) = (Arc::new(ConnectionSettings::default()), Nanos(0));
/// let mut client = Session::client(settings.clone(), Version::V14, now);
/// let mut server = Session::server(settings, now);
/// // What `from` has to send, as `to` takes it.
/// let mut messages = Vec::new();
/// let mut carry = |from: &mut Session, to: &mut Session| {
///     let mut bytes = from.drain();
///     while let (consumed, Some(event)) = to.take(&mut bytes, now)? {
///         if let Event::Message(message) = event {
///             messages.push(message.to_vec());
///         }
///         bytes.drain(..consumed);
///     }
///     Ok::<(), tapeline_wire::rssl::Reason>(())
/// };
/// carry(&mut client, &mut server)?;
/// carry(&mut server, &mut client)?;
/// assert_eq!(client.output().send(b"a message"), Sent::Queued);
/// carry(&mut client, &mut server)?;
/// assert_eq!(messages, [b"a message"]);
/// # Ok::<(), tapeline_wire::rssl::Reason>(())
/// ```
pub struct Session {
    settings: Arc<ConnectionSettings>,
    carrier: Carrier,
    phase: Phase,
    negotiated: Option<Negotiated>,
    /// Created with the first message in `Open`.
    receiver: Option<Receiver>,
    output: Output,
    /// The nak text of a server that refuses every client.
    refusal: Option<String>,
    pings: Pings,
    /// The effort of zlib.
    level: u8,
    /// Bytes of the handshake consumed so far.
    position: u64,
}

impl Session {
    /// Creates a client's end, with its connect request waiting to be sent.
    pub fn client(settings: Arc<ConnectionSettings>, version: Version, now: Nanos) -> Self {
        let mut session = Self::new(settings, Phase::Answer(version), Carrier::Plain, now);
        let settings = &session.settings;
        if settings.connection_type == ConnectionType::WebSocket {
            let key = websocket::new_key();
            let json = settings.ws_protocols.iter().any(|protocol| protocol.is_json());
            let deflate = json && settings.compression_type != Compression::None;
            let (host, path) = (&settings.host, &settings.ws_path);
            let head = websocket::request(host, path, &settings.ws_protocols, deflate, &key);
            session.output.head(head.as_bytes());
            session.carrier = Carrier::Opening(Some(key));
        } else {
            session.request(version);
        }
        session
    }

    /// Creates the client's end of a connection that another program opened, to follow its server's output;
    /// `opening` is the first bytes that the client sent. [Drain](Self::drain) and drop the output of this
    /// end.
    ///
    /// # Errors
    /// `opening` is a WebSocket head that is incomplete, or that is not one of RSSL.
    pub fn follower(
        settings: Arc<ConnectionSettings>,
        version: Version,
        opening: &[u8],
        now: Nanos,
    ) -> Result<Self, Reason> {
        let mut session = Self::new(settings, Phase::Answer(version), Carrier::Plain, now);
        if carrier::is_http(opening) {
            let Some(head) =
                websocket::head(opening, &session.settings.ws_protocols, &["*".to_owned()], None)?
            else {
                return Err(Fault::new("a part of a WebSocket's head", "the whole of it").into());
            };
            session.carrier = Carrier::Opening(Some(head.key));
        }
        Ok(session)
    }

    /// Creates a server's end.
    pub fn server(settings: Arc<ConnectionSettings>, now: Nanos) -> Self {
        Self::new(settings, Phase::Request, Carrier::Unknown, now)
    }

    /// Creates a server's end that answers every client with a nak of this text.
    pub fn refusal(settings: Arc<ConnectionSettings>, text: &str, now: Nanos) -> Self {
        Self { refusal: Some(text.to_owned()), ..Self::new(settings, Phase::Request, Carrier::Unknown, now) }
    }

    fn new(settings: Arc<ConnectionSettings>, phase: Phase, carrier: Carrier, now: Nanos) -> Self {
        Self {
            carrier,
            phase,
            negotiated: None,
            receiver: None,
            output: Output::new(&settings),
            refusal: None,
            pings: Pings { started: now, heard: now, wrote: now, asked: now, ..Pings::default() },
            level: settings.compression_level,
            position: 0,
            settings,
        }
    }

    /// Processes the front of `input`, up to and including the next event. Returns the number of bytes to consume after
    /// handling the event, and the event. Without an event more bytes must arrive; pass unconsumed bytes again, in
    /// front.
    ///
    /// # Errors
    /// The connection is over. Still send the waiting bytes: they may contain the reason.
    pub fn take<'a>(
        &'a mut self,
        input: &'a mut [u8],
        now: Nanos,
    ) -> Result<(usize, Option<Event<'a>>), Reason> {
        self.heard(now);
        let (mut consumed, mut found) = self.find(input)?;
        while found == Some(Found::Nothing) {
            let (more, next) = self.find(&mut input[consumed..])?;
            found = next.map(|found| found.moved(consumed));
            consumed += more;
        }
        Ok((consumed, found.map(|found| self.event_and_output(found, input).0)))
    }

    /// Returns the output, to which messages are sent.
    pub fn output(&mut self) -> &mut Output {
        &mut self.output
    }

    /// Returns all bytes to send and counts them as sent. Allocates; a connection sends from the buffer instead.
    pub fn drain(&mut self) -> Vec<u8> {
        self.drain_at_most(usize::MAX)
    }

    /// Drains as [`drain`](Self::drain) does, at most `count` bytes.
    pub fn drain_at_most(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        loop {
            let framed = self.output.advance();
            let before = bytes.len();
            for piece in self.output.pieces() {
                bytes.extend_from_slice(&piece[..piece.len().min(count - bytes.len())]);
            }
            self.output.consume(bytes.len() - before);
            if framed || bytes.len() == count {
                return bytes;
            }
        }
    }

    /// Queues a ping when one is due, and fails when the peer has been silent for too long. Call it a few times a
    /// second.
    ///
    /// # Errors
    /// The time to open the connection, or the agreed ping time-out, is over.
    pub fn turn(&mut self, now: Nanos) -> Result<(), Reason> {
        if self.phase != Phase::Open {
            let milliseconds = self.settings.initialization_timeout_ms;
            if now.since(self.pings.started)
                >= i64::try_from(milliseconds.saturating_mul(NS_PER_MS)).unwrap_or(i64::MAX)
            {
                let during = match self.phase {
                    _ if matches!(self.carrier, Carrier::Opening(_)) => {
                        "waiting for the WebSocket's opening handshake"
                    }
                    Phase::Request => "waiting for the connect request",
                    Phase::Answer(_) => "waiting for the answer to the connect request",
                    Phase::Key | Phase::Open => "waiting for the client's key",
                };
                return Err(Reason::Timeout { milliseconds, during });
            }
            return Ok(());
        }
        if self.pings.turn(now, self.output.frames())? {
            self.output.ping();
        }
        Ok(())
    }

    /// Returns `true` if messages can go both ways.
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Returns the negotiated settings, once they are known.
    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.negotiated.as_ref()
    }

    /// Returns the bytes of memory used for incomplete messages.
    pub fn held(&self) -> usize {
        self.unwrap().map_or(0, Unwrap::memory) + self.receiver.as_ref().map_or(0, Receiver::memory)
    }

    /// Frees the memory of the last message, if that is much. Call it when the message was handled.
    pub(super) fn let_go(&mut self) {
        if let Carrier::WebSocket(wrapped) = &mut self.carrier {
            wrapped.unwrap.let_go();
        }
        if let Some(receiver) = &mut self.receiver {
            receiver.let_go();
        }
    }

    #[inline]
    pub(super) fn inflated(&self) -> u64 {
        self.unwrap().map_or(0, Unwrap::inflated) + self.receiver.as_ref().map_or(0, Receiver::inflated)
    }

    #[inline]
    fn unwrap(&self) -> Option<&Unwrap> {
        if let Carrier::WebSocket(wrapped) = &self.carrier { Some(&wrapped.unwrap) } else { None }
    }

    /// Returns the number of frames received, including pings.
    pub fn frames_received(&self) -> u64 {
        self.receiver.as_ref().map_or(0, Receiver::frames)
    }

    /// Records that something was received.
    pub(super) fn heard(&mut self, now: Nanos) {
        self.pings.heard = now;
    }

    /// Returns `true` if a client has received no answer at all.
    pub(super) fn is_unanswered(&self) -> bool {
        matches!(self.phase, Phase::Answer(_)) && !matches!(self.carrier, Carrier::Opening(_))
    }

    /// Queues a close message with a code for this reason, on a WebSocket only.
    pub(super) fn goodbye(&mut self, reason: &Reason) {
        let code = match reason {
            Reason::Broken(_) => websocket::code::PROTOCOL_ERROR,
            _ => websocket::code::NORMAL,
        };
        self.output.goodbye(code);
    }

    /// Returns the next event in `input`, and the number of bytes to consume after it.
    #[inline]
    pub(super) fn find(&mut self, input: &mut [u8]) -> Result<(usize, Option<Found>), Reason> {
        match &self.carrier {
            Carrier::Plain => self.plain(input),
            Carrier::WebSocket(_) => self.wrapped(input),
            Carrier::Unknown | Carrier::Opening(_) => self.opening(input),
        }
    }

    /// The same for bytes without a carrier.
    #[inline]
    fn plain(&mut self, input: &[u8]) -> Result<(usize, Option<Found>), Reason> {
        match (&mut self.receiver, self.phase) {
            (Some(receiver), Phase::Open) => Ok(receiver.take(input)?),
            _ => self.open(input),
        }
    }

    /// Returns the message at the front of `input` if it is whole, uncompressed and without a carrier; `None`, without an effect, for
    /// anything else.
    #[inline(always)]
    pub(super) fn take_whole(&mut self, input: &[u8]) -> Option<Span> {
        match (&self.carrier, &mut self.receiver, self.phase) {
            (Carrier::Plain, Some(receiver), Phase::Open) => receiver.take_whole(input),
            _ => None,
        }
    }

    /// Returns the messages in `rest`, the input behind the last event; none on a WebSocket.
    #[inline]
    pub(super) fn following<'a>(&self, rest: &'a [u8]) -> Following<'a> {
        match (&self.carrier, &self.receiver) {
            (Carrier::Plain, Some(receiver)) => receiver.following(rest),
            _ => Following::default(),
        }
    }

    /// Returns the event for a result, and the output; `input` as passed to [`find`](Self::find).
    #[inline]
    pub(super) fn event_and_output<'a>(
        &'a mut self,
        found: Found,
        input: &'a [u8],
    ) -> (Event<'a>, &'a mut Output) {
        let event = match (found, &self.receiver, &self.negotiated) {
            (Found::Message(span), ..) if span.place == Place::Joined => match &self.carrier {
                Carrier::WebSocket(wrapped) => Event::Message(&wrapped.unwrap.joined()[span.start..span.end]),
                _ => Event::Message(&[]),
            },
            (Found::Message(span), None, _) => Event::Message(&input[span.start..span.end]),
            (Found::Message(span), Some(receiver), _) => Event::Message(receiver.bytes(span, input)),
            (Found::Room, ..) => Event::Room,
            (_, _, Some(negotiated)) => Event::Connected(negotiated),
            _ => Event::Message(&[]),
        };
        (event, &mut self.output)
    }
}

const NS_PER_MS: u64 = 1_000_000;

shown!(Session, it => phase: it.phase, negotiated: it.negotiated, output: it.output);
