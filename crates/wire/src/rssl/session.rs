//! One connection's protocol, without its socket: handshake, frames both ways, pings and time-outs.

use std::sync::Arc;

use tapeline_measure::Nanos;

use super::fault::{Fault, Reason};
use super::handshake::{self, Ack, Answer, RWF_VERSION, Request, Requested, ServerKey, Version};
use super::output::Output;
use super::receiver::{Place, Receiver, Span};
use super::settings::{Compression, ConnectionType, LONGEST_FRAME, SMALLEST_FRAGMENT, Settings};
use super::websocket::{self, Envelope, Life, Opening, SubProtocol, Unwrap, What};

/// What both ends agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// The version of the handshake; `None` where there is none, for JSON.
    pub version: Option<Version>,
    /// The sub-protocol of the WebSocket, where there is one.
    pub websocket: Option<SubProtocol>,
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

impl Negotiated {
    /// Whether messages are JSON texts; RWF otherwise.
    #[must_use]
    pub fn is_json(&self) -> bool {
        self.websocket.is_some_and(SubProtocol::is_json)
    }
}

/// What happens on a connection.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Messages can go both ways from now on.
    Connected(&'a Negotiated),
    /// A whole RWF message, or a JSON text: an object, or an array of some. That it is UTF-8 has not been checked. A JSON
    /// ping by itself has been answered and is not handed out; one in an array with other messages is.
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

/// What is around the session's own bytes.
#[derive(Debug)]
enum Carrier {
    /// A server will see from the first bytes.
    Unknown,
    Plain,
    /// A WebSocket's head is expected; a client's key.
    Opening(Option<String>),
    WebSocket(Box<Wrapped>),
}

/// The receiving side on a WebSocket.
#[derive(Debug)]
struct Wrapped {
    unwrap: Unwrap,
    json: bool,
    /// Bytes in front that are the rest of a message in place.
    left: usize,
    /// Bytes that were taken of a message that was put together; `None` when all of it was.
    joined_at: Option<usize>,
    /// Bytes of WebSocket frames that were taken.
    position: u64,
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
    carrier: Carrier,
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

    /// The server's end.
    #[must_use]
    pub fn server(settings: Arc<Settings>, now: Nanos) -> Self {
        Self::new(settings, Phase::Request, Carrier::Unknown, now)
    }

    /// A server's end that answers whoever asks with a nak of this text.
    #[must_use]
    pub fn refusal(settings: Arc<Settings>, text: &str, now: Nanos) -> Self {
        Self { refusal: Some(text.to_owned()), ..Self::new(settings, Phase::Request, Carrier::Unknown, now) }
    }

    fn new(settings: Arc<Settings>, phase: Phase, carrier: Carrier, now: Nanos) -> Self {
        let output = Output::new(&settings);
        let pings = Pings { started: now, heard: now, wrote: now, frames: 0, timeout: None, sends: false };
        let level = settings.compression_level;
        Self {
            settings,
            carrier,
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
        let wrapped =
            if let Carrier::WebSocket(wrapped) = &self.carrier { wrapped.unwrap.memory() } else { 0 };
        wrapped + self.receiver.as_ref().map_or(0, Receiver::memory)
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
        matches!(self.phase, Phase::Answer(_)) && !matches!(self.carrier, Carrier::Opening(_))
    }

    /// Says goodbye where the protocol has a word for it, in the light of why the connection is over.
    pub(super) fn goodbye(&mut self, reason: &Reason) {
        let code = match reason {
            Reason::Broken(_) => websocket::code::PROTOCOL_ERROR,
            _ => websocket::code::NORMAL,
        };
        self.output.goodbye(code);
    }

    /// The next event in `input`, and how many bytes are done with after it.
    #[inline]
    pub(super) fn find(&mut self, input: &mut [u8]) -> Result<(usize, Option<Found>), Reason> {
        match &self.carrier {
            Carrier::Plain => self.plain(input),
            Carrier::WebSocket(_) => self.wrapped(input),
            Carrier::Unknown | Carrier::Opening(_) => self.opening(input),
        }
    }

    /// The same in bytes that nothing is around.
    #[inline]
    fn plain(&mut self, input: &[u8]) -> Result<(usize, Option<Found>), Reason> {
        match (&mut self.receiver, self.phase) {
            (Some(receiver), Phase::Open) => {
                let taken = receiver.take(input)?;
                Ok((taken.consumed, taken.message.map(Found::Message)))
            }
            _ => self.open(input),
        }
    }

    /// The first bytes.
    fn opening(&mut self, input: &mut [u8]) -> Result<(usize, Option<Found>), Reason> {
        let key = match &self.carrier {
            Carrier::Opening(key) => key.clone(),
            _ => {
                let common =
                    input.iter().zip(GET).take_while(|(byte, expected)| **byte == **expected).count();
                if common < GET.len() {
                    if common < input.len() {
                        self.carrier = Carrier::Plain;
                        return self.plain(input);
                    }
                    return Ok((0, None));
                }
                self.carrier = Carrier::Opening(None);
                None
            }
        };
        let opening = websocket::head(input, &self.settings.ws_protocols, key.as_deref());
        let opening = match (opening, &self.refusal) {
            (Ok(None), _) => return Ok((0, None)),
            (Ok(Some(_)), Some(text)) => Err(Reason::Refused(text.clone())),
            (Ok(Some(opening)), None) => Ok(opening),
            (Err(reason), _) => Err(reason),
        };
        match opening {
            Ok(opening) => self.upgraded(&opening, input),
            Err(reason) => {
                if key.is_none() {
                    self.output.head(websocket::refusal(&reason.to_string()).as_bytes());
                }
                Err(reason)
            }
        }
    }

    /// Both heads are there, or about to be.
    fn upgraded(&mut self, opening: &Opening, input: &mut [u8]) -> Result<(usize, Option<Found>), Reason> {
        let version = match self.phase {
            Phase::Answer(version) => Some(version),
            _ => None,
        };
        let is_client = version.is_some();
        let settings = self.settings.clone();
        let json = opening.protocol.is_json();
        let deflate = opening.deflate && (is_client || settings.compression_type != Compression::None);
        if !is_client {
            self.output.head(websocket::response(opening, deflate).as_bytes());
        }
        self.output.wrap(Envelope::new(is_client));
        let limit = if json { settings.max_message_bytes as usize } else { LONGEST_FRAME };
        let unwrap = Unwrap::new(!is_client, json, limit, deflate);
        let position = opening.length as u64;
        self.carrier =
            Carrier::WebSocket(Box::new(Wrapped { unwrap, json, left: 0, joined_at: None, position }));
        let mut agreed = Negotiated {
            version: None,
            websocket: Some(opening.protocol),
            compression: if deflate { Compression::Zlib } else { Compression::None },
            max_fragment_size: settings.max_fragment_size,
            ping_timeout: settings.connection_ping_timeout,
            codec: RWF_VERSION,
            peer_version: String::new(),
            peer_host: String::new(),
            peer_address: String::new(),
        };
        if json {
            self.phase = Phase::Open;
            self.output.open(&agreed, &settings, self.level);
            self.pings.timeout = Some(agreed.ping_timeout);
            self.pings.sends = true;
            self.negotiated = Some(agreed);
            return Ok((opening.length, Some(Found::Connected)));
        }
        // The rest is agreed on by RSSL's own handshake.
        agreed.compression = Compression::None;
        self.negotiated = Some(agreed);
        if let Some(version) = version {
            self.request(version);
        }
        let (consumed, found) = self.wrapped(&mut input[opening.length..])?;
        Ok((opening.length + consumed, found.map(|found| found.moved(opening.length))))
    }

    /// The next event inside WebSocket frames.
    fn wrapped(&mut self, input: &mut [u8]) -> Result<(usize, Option<Found>), Reason> {
        let mut at = 0;
        loop {
            let Carrier::WebSocket(wrapped) = &mut self.carrier else { return Ok((at, None)) };
            if wrapped.left > 0 {
                let left = wrapped.left;
                let Some(payload) = input.get(at..at + left) else { return Ok((at, None)) };
                let (consumed, found) = self.plain(payload)?;
                let Carrier::WebSocket(wrapped) = &mut self.carrier else { return Ok((at, None)) };
                wrapped.left -= consumed;
                if found.is_none() && wrapped.left > 0 {
                    return Err(part_of_a_frame(wrapped).into());
                }
                if let Some(found) = found {
                    return Ok((at + consumed, Some(found.moved(at))));
                }
                at += consumed;
                continue;
            }
            if let Some(joined_at) = wrapped.joined_at {
                let joined = wrapped.unwrap.take_joined();
                let result = self.plain(&joined[joined_at..]);
                let Carrier::WebSocket(wrapped) = &mut self.carrier else { return Ok((at, None)) };
                let length = joined.len();
                wrapped.unwrap.put_back(joined);
                let (consumed, found) = result?;
                let next = joined_at + consumed;
                wrapped.joined_at = (next < length).then_some(next);
                if found.is_none() && next < length {
                    return Err(part_of_a_frame(wrapped).into());
                }
                if let Some(found) = found {
                    return Ok((at, Some(found.joined(joined_at))));
                }
                continue;
            }
            let position = wrapped.position;
            let (consumed, what) =
                wrapped.unwrap.take(&mut input[at..]).map_err(|fault| fault.at(position))?;
            wrapped.position += consumed as u64;
            let start = at;
            at += consumed;
            match what {
                What::Short => return Ok((at, None)),
                What::Nothing => {}
                What::Message(range) if wrapped.json => {
                    let (from, end) = (start + range.start, start + range.end);
                    if !self.is_life(&input[from..end]) {
                        return Ok((
                            at,
                            Some(Found::Message(Span { place: Place::Input, start: from, end })),
                        ));
                    }
                }
                What::Message(range) => {
                    wrapped.left = range.len();
                    at = start + range.start;
                }
                What::Joined if wrapped.json => {
                    let joined = wrapped.unwrap.take_joined();
                    let (is_life, end) = (self.is_life(&joined), joined.len());
                    if let Carrier::WebSocket(wrapped) = &mut self.carrier {
                        wrapped.unwrap.put_back(joined);
                    }
                    if !is_life && end > 0 {
                        return Ok((at, Some(Found::Message(Span { place: Place::Joined, start: 0, end }))));
                    }
                }
                What::Joined => wrapped.joined_at = Some(0),
                What::Ping(range) => self.output.pong(&input[start + range.start..start + range.end]),
                What::Close => {
                    self.output.goodbye(websocket::code::NORMAL);
                    return Err(Reason::Peer);
                }
            }
        }
    }

    /// Whether a JSON message only says that the peer is alive; a ping is answered.
    fn is_life(&mut self, message: &[u8]) -> bool {
        let life = Life::of(message);
        if life == Some(Life::Ping) {
            // Without room, what waits says that this side is alive.
            let _ = self.output.send(websocket::PONG);
        }
        life.is_some()
    }

    /// What was found, as an event, and what that does not borrow; `input` as it was given.
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
        if let Some((agreed, version)) =
            self.negotiated.as_ref().and_then(|agreed| Some((agreed, agreed.version?)))
        {
            self.receiver = Some(Receiver::new(version, agreed.compression, &self.settings, self.position));
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
        let (asked, ours) = (request.protocol_type, self.settings.protocol_type);
        // What the client is told, and what this side says of it.
        let refusal = match &self.refusal {
            Some(text) => Some((text.as_str(), text.clone())),
            None if asked != ours => {
                Some(("Connection refused.", format!("a client of protocol type {asked}, expected {ours}")))
            }
            None => None,
        };
        if let Some((text, reason)) = refusal {
            let mut nak = Vec::new();
            handshake::write_nak(text, &mut nak);
            self.output.handshake(&nak);
            return Err(Reason::Refused(reason));
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
            version: Some(request.version),
            websocket: self.negotiated.as_ref().and_then(|agreed| agreed.websocket),
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
            version: Some(version),
            websocket: self.negotiated.as_ref().and_then(|agreed| agreed.websocket),
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

impl Found {
    /// The same, looked at from so many bytes further in front.
    fn moved(self, by: usize) -> Self {
        match self {
            Self::Message(Span { place: Place::Input, start, end }) => {
                Self::Message(Span { place: Place::Input, start: start + by, end: end + by })
            }
            other => other,
        }
    }

    /// The same, found in what was put together, from `at` on.
    fn joined(self, at: usize) -> Self {
        match self {
            Self::Message(Span { place: Place::Input, start, end }) => {
                Self::Message(Span { place: Place::Joined, start: start + at, end: end + at })
            }
            other => other,
        }
    }
}

fn part_of_a_frame(wrapped: &Wrapped) -> Fault {
    Fault::new("WebSocket message that ends within a frame", "whole frames of RSSL in each")
        .at(wrapped.position)
}

/// What a WebSocket's opening begins with, and a connect request never does.
const GET: &[u8; 4] = b"GET ";
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
