//! One connection's protocol, without its socket: handshake, frames both ways, pings and time-outs.

use std::sync::Arc;

use tapeline_measure::Nanos;

use super::fault::{Fault, Reason};
use super::handshake::{self, Ack, Answer, RWF_VERSION, Request, Requested, ServerKey, Version};
use super::output::Output;
use super::receiver::{Receiver, Span};
use super::settings::{Compression, SMALLEST_FRAGMENT, Settings};

/// What both ends agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// The version of the handshake.
    pub version: Version,
    /// How payloads are compressed, in both directions.
    pub compression: Compression,
    /// The largest payload of a frame, bytes.
    pub max_fragment_size: u16,
    /// Who hears nothing for so long closes the connection. Seconds.
    pub ping_timeout: u8,
    /// The version of RWF that the client stated: major, minor.
    pub codec: (u8, u8),
    /// What the peer calls itself; empty before version 13.
    pub peer_version: String,
    /// The name that a client gave its host.
    pub peer_host: String,
    /// The IP address that a client gave.
    pub peer_address: String,
}

/// What happens on a connection.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Messages can go both ways from now on.
    Connected(&'a Negotiated),
    /// A whole RWF message.
    Message(&'a [u8]),
    /// There is room to send again, after [`Sent::Full`](super::Sent::Full): at least half of the output buffers.
    Room,
    /// It is over. There is no other event of this connection, and sending does nothing. Also the only event of one that
    /// never opened.
    Closed(&'a Reason),
}

/// What was found in received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Connected,
    Message(Span),
    Room,
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

/// One end of a connection: received bytes go in, events come out; messages go in, bytes to send come out. Time is an
/// argument, and nothing here touches a socket.
///
/// ```
/// # use std::sync::Arc;
/// # use tapeline_measure::Nanos;
/// # use tapeline_wire::rssl::{Event, Sent, Session, Settings, Version};
/// let (settings, now) = (Arc::new(Settings::default()), Nanos(0));
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
#[derive(Debug)]
pub struct Session {
    settings: Arc<Settings>,
    phase: Phase,
    negotiated: Option<Negotiated>,
    /// With the first message taken, in `Open`.
    receiver: Option<Receiver>,
    output: Output,
    /// A server says no to whoever comes.
    refusal: Option<String>,
    pings: Pings,
    /// How hard zlib tries.
    level: u8,
    /// Bytes of the handshake that were taken.
    position: u64,
}

impl Session {
    /// The client's end: its connect request waits to be sent.
    #[must_use]
    pub fn client(settings: Arc<Settings>, version: Version, now: Nanos) -> Self {
        let mut session = Self::new(settings, Phase::Answer(version), now);
        session.request(version);
        session
    }

    /// The server's end.
    #[must_use]
    pub fn server(settings: Arc<Settings>, now: Nanos) -> Self {
        Self::new(settings, Phase::Request, now)
    }

    /// A server's end that answers whoever asks with a nak of this text.
    #[must_use]
    pub fn refusal(settings: Arc<Settings>, text: &str, now: Nanos) -> Self {
        Self { refusal: Some(text.to_owned()), ..Self::new(settings, Phase::Request, now) }
    }

    fn new(settings: Arc<Settings>, phase: Phase, now: Nanos) -> Self {
        let output = Output::new(&settings);
        let pings = Pings { started: now, heard: now, wrote: now, frames: 0, timeout: None, sends: false };
        let level = settings.compression_level;
        Self {
            settings,
            phase,
            negotiated: None,
            receiver: None,
            output,
            refusal: None,
            pings,
            level,
            position: 0,
        }
    }

    /// Takes what is at the front of `input`, up to and with the next event: how many bytes are done with once that has been
    /// looked at, and the event. Without one, more has to arrive; what is not consumed has to be there again, in front.
    ///
    /// # Errors
    /// The connection is over. What waits to be sent should still be sent: it may say why.
    pub fn take<'a>(
        &'a mut self,
        input: &'a mut [u8],
        now: Nanos,
    ) -> Result<(usize, Option<Event<'a>>), Reason> {
        self.heard(now);
        let (consumed, found) = self.find(input)?;
        Ok((consumed, found.map(|found| self.event_and_output(found, input).0)))
    }

    /// Where messages to send go in.
    pub fn output(&mut self) -> &mut Output {
        &mut self.output
    }

    /// All that is to be sent, which then counts as sent. Allocates; a connection writes from where it lies instead.
    pub fn drain(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        loop {
            let done = self.output.advance();
            let before = bytes.len();
            self.output.pieces().iter().for_each(|piece| bytes.extend_from_slice(piece));
            self.output.consume(bytes.len() - before);
            if done {
                return bytes;
            }
        }
    }

    /// Sends a ping where one is due, and says so where the peer has been silent for too long. To be called every now and
    /// then, a few times a second.
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

    /// Whether messages can go both ways.
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// What was agreed on, once that is known.
    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.negotiated.as_ref()
    }

    /// Bytes of memory that are held for messages of which a part has arrived.
    pub fn held(&self) -> usize {
        self.receiver.as_ref().map_or(0, Receiver::memory)
    }

    /// Frames received, pings among them.
    pub fn frames_received(&self) -> u64 {
        self.receiver.as_ref().map_or(0, Receiver::frames)
    }

    /// Something has been received.
    pub(super) fn heard(&mut self, now: Nanos) {
        self.pings.heard = now;
    }

    /// Whether a client has had no answer at all.
    pub(super) fn is_unanswered(&self) -> bool {
        matches!(self.phase, Phase::Answer(_))
    }

    /// The next event in `input`, and how many bytes are done with after it.
    #[inline]
    pub(super) fn find(&mut self, input: &mut [u8]) -> Result<(usize, Option<Found>), Reason> {
        match (&mut self.receiver, self.phase) {
            (Some(receiver), Phase::Open) => {
                let taken = receiver.take(input)?;
                Ok((taken.consumed, taken.message.map(Found::Message)))
            }
            _ => self.open(input),
        }
    }

    /// What was found, as an event, and what that does not borrow; `input` as it was given.
    #[inline]
    pub(super) fn event_and_output<'a>(
        &'a mut self,
        found: Found,
        input: &'a [u8],
    ) -> (Event<'a>, &'a mut Output) {
        let event = match (found, &self.receiver, &self.negotiated) {
            (Found::Message(span), Some(receiver), _) => Event::Message(receiver.bytes(span, input)),
            (Found::Room, ..) => Event::Room,
            (_, _, Some(negotiated)) => Event::Connected(negotiated),
            _ => Event::Message(&[]),
        };
        (event, &mut self.output)
    }

    fn open(&mut self, input: &[u8]) -> Result<(usize, Option<Found>), Reason> {
        let position = self.position;
        self.handshake(input).map_err(|reason| match reason {
            Reason::Broken(fault) => fault.at(position).into(),
            other => other,
        })
    }

    fn handshake(&mut self, input: &[u8]) -> Result<(usize, Option<Found>), Reason> {
        let Some(length) = handshake::message_length(input)? else { return Ok((0, None)) };
        let Some(message) = input.get(..length) else { return Ok((0, None)) };
        match self.phase {
            Phase::Request => self.answer(message)?,
            Phase::Answer(version) => self.accept(message, version)?,
            Phase::Key => {
                handshake::check_key(message)?;
                self.phase = Phase::Open;
            }
            Phase::Open => {}
        }
        self.position += length as u64;
        if self.phase != Phase::Open {
            return Ok((length, None));
        }
        if let Some(agreed) = &self.negotiated {
            self.receiver =
                Some(Receiver::new(agreed.version, agreed.compression, &self.settings, self.position));
            self.output.open(agreed, &self.settings, self.level);
            self.pings.timeout = Some(agreed.ping_timeout);
        }
        Ok((length, Some(Found::Connected)))
    }

    fn request(&mut self, version: Version) {
        let settings = &self.settings;
        let mut message = Vec::new();
        Request {
            version,
            key_exchange: settings.key_exchange,
            compressions: settings.compression_type.bit(),
            ping_timeout: settings.connection_ping_timeout,
            protocol_type: settings.protocol_type,
            codec: RWF_VERSION,
            host: settings.host_name.as_bytes(),
            address: settings.ip_address.as_bytes(),
            component: settings.component_version.as_bytes(),
        }
        .write(&mut message);
        self.output.handshake(&message);
    }

    /// A server's answer to a connect request.
    fn answer(&mut self, message: &[u8]) -> Result<(), Reason> {
        let request = match Request::read(message)? {
            Requested::Known(request) => request,
            Requested::UnknownVersion(number) => {
                let fault = Fault::new(format!("connect request of version 0x{number:02x}"), "0x14 to 0x17");
                return Err(fault.into());
            }
        };
        let refusal = match &self.refusal {
            Some(text) => Some(text.clone()),
            None if request.protocol_type != self.settings.protocol_type => {
                Some(format!("Protocol type {}, expected {}.", request.protocol_type, self.settings.protocol_type))
            }
            None => None,
        };
        if let Some(text) = refusal {
            let mut nak = Vec::new();
            handshake::write_nak(&text, &mut nak);
            self.output.handshake(&nak);
            return Err(Reason::Refused(text));
        }
        let settings = &self.settings;
        let compression = match settings.compression_type {
            Compression::None => Compression::None,
            forced if settings.compression_forced => forced,
            _ if request.compressions & Compression::Zlib.bit() != 0 => Compression::Zlib,
            _ if request.compressions & Compression::Lz4.bit() != 0 => Compression::Lz4,
            _ => Compression::None,
        };
        let ping_timeout = request
            .ping_timeout
            .clamp(settings.connection_min_ping_timeout, settings.connection_ping_timeout);
        let mut ack = Vec::new();
        Ack {
            version: request.version,
            max_fragment_size: settings.max_fragment_size,
            client_pings: true,
            server_pings: true,
            ping_timeout,
            codec: request.codec,
            compression,
            forced: settings.compression_forced && compression != Compression::None,
            compression_level: settings.compression_level,
            key: request.key_exchange.then_some(ServerKey::None),
            component: settings.component_version.as_bytes(),
        }
        .write(&mut ack);
        self.output.handshake(&ack);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.negotiated = Some(Negotiated {
            version: request.version,
            compression,
            max_fragment_size: settings.max_fragment_size,
            ping_timeout,
            codec: request.codec,
            peer_version: text(request.component),
            peer_host: text(request.host),
            peer_address: text(request.address),
        });
        self.pings.sends = true;
        self.phase = if request.key_exchange { Phase::Key } else { Phase::Open };
        Ok(())
    }

    /// A client takes the server's answer.
    fn accept(&mut self, message: &[u8], version: Version) -> Result<(), Reason> {
        let key_exchange = self.settings.key_exchange;
        let ack = match Ack::read(message, version, key_exchange)? {
            Answer::Ack(ack) => ack,
            Answer::Nak(text) => return Err(Reason::Refused(String::from_utf8_lossy(text).into_owned())),
        };
        if ack.max_fragment_size < SMALLEST_FRAGMENT {
            let what = format!("largest payload of {} bytes in the ack", ack.max_fragment_size);
            return Err(Fault::new(what, format!("at least {SMALLEST_FRAGMENT}")).into());
        }
        if ack.ping_timeout == 0 {
            return Err(Fault::new("ping time-out of 0 s in the ack", "1 to 255").into());
        }
        let compression = match ack.compression {
            Compression::None if ack.forced => Compression::Zlib,
            agreed => agreed,
        };
        if let Some(key) = ack.key {
            // The number is never used for anything, so that it need not be a secret.
            let mut message = Vec::new();
            handshake::write_key(key, self.pings.started.0 | 1, &mut message);
            self.output.handshake(&message);
        }
        self.negotiated = Some(Negotiated {
            version,
            compression,
            max_fragment_size: ack.max_fragment_size,
            ping_timeout: ack.ping_timeout,
            codec: ack.codec,
            peer_version: String::from_utf8_lossy(ack.component).into_owned(),
            peer_host: String::new(),
            peer_address: String::new(),
        });
        // EMA's server states 0, "do not compress", which would only make zlib's payloads longer.
        if ack.compression_level > 0 {
            self.level = ack.compression_level;
        }
        self.pings.sends = ack.client_pings;
        self.phase = Phase::Open;
        Ok(())
    }
}

const NS_PER_MS: u64 = 1_000_000;
const NS_PER_S: i64 = 1_000_000_000;

/// When something was last heard and said.
#[derive(Debug)]
struct Pings {
    started: Nanos,
    heard: Nanos,
    wrote: Nanos,
    /// Frames that had been sent then.
    frames: u64,
    /// Seconds.
    timeout: Option<u8>,
    sends: bool,
}

impl Pings {
    /// Whether a ping is due: nothing was sent for a third of the time-out.
    fn turn(&mut self, now: Nanos, frames: u64) -> Result<bool, Reason> {
        let Some(seconds) = self.timeout else { return Ok(false) };
        let timeout = i64::from(seconds) * NS_PER_S;
        if now.since(self.heard) >= timeout {
            return Err(Reason::Silent { seconds });
        }
        if frames != self.frames {
            (self.frames, self.wrote) = (frames, now);
        }
        if self.sends && now.since(self.wrote) >= timeout / 3 {
            (self.frames, self.wrote) = (frames + 1, now);
            return Ok(true);
        }
        Ok(false)
    }
}
