//! The carrier of a session's bytes: none, or a WebSocket.

use super::super::fault::{Fault, Reason};
use super::super::handshake::RWF_VERSION;
use super::super::receiver::{Place, Span};
use super::super::settings::{Compression, LONGEST_FRAME};
use super::super::websocket::{self, Envelope, Life, Opening, Unwrap, What};
use super::{Found, Negotiated, Phase, Session};

/// The carrier of the session's bytes.
pub(super) enum Carrier {
    /// Not known yet; the first bytes decide (server).
    Unknown,
    Plain,
    /// A WebSocket's head is expected; a client's key.
    Opening(Option<String>),
    WebSocket(Box<Wrapped>),
}

/// The receiving side on a WebSocket.
pub(super) struct Wrapped {
    pub(super) unwrap: Unwrap,
    json: bool,
    /// Bytes at the front that are the rest of a message in the input.
    left: usize,
    /// Bytes consumed of an assembled message; `None` if there is none.
    joined_at: Option<usize>,
    /// Bytes of WebSocket frames consumed so far.
    position: u64,
}

/// Returns `true` if a client starts with an HTTP head, as for a WebSocket.
pub(super) fn is_http(opening: &[u8]) -> bool {
    opening.starts_with(GET)
}

impl Session {
    /// Reads the first bytes.
    pub(super) fn opening(&mut self, input: &mut [u8]) -> Result<(usize, Option<Found>), Reason> {
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
        let opening =
            websocket::head(input, &self.settings.ws_protocols, &self.settings.ws_origins, key.as_deref());
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

    /// Switches to a WebSocket after its head was read; a server answers with its own.
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
        let limit = if json { settings.longest_received() } else { LONGEST_FRAME };
        let unwrap = Unwrap::new(!is_client, json, limit, deflate);
        let position = opening.length as u64;
        self.carrier =
            Carrier::WebSocket(Box::new(Wrapped { unwrap, json, left: 0, joined_at: None, position }));
        let mut agreed = Negotiated {
            max_received_bytes: settings.longest_received(),
            websocket: Some(opening.protocol),
            compression: if deflate { Compression::Zlib } else { Compression::None },
            max_fragment_size: settings.max_fragment_size,
            ping_timeout: settings.connection_ping_timeout,
            codec: RWF_VERSION,
            login: opening.login.clone().filter(|_| json && !is_client),
            ..Negotiated::default()
        };
        if json {
            self.phase = Phase::Open;
            self.output.open(&agreed, &settings, self.level);
            self.pings.timeout = Some(agreed.ping_timeout);
            (self.pings.sends, self.pings.asks) = (true, true);
            self.negotiated = Some(agreed);
            return Ok((opening.length, Some(Found::Connected)));
        }
        // RSSL's own handshake negotiates the rest.
        agreed.compression = Compression::None;
        self.negotiated = Some(agreed);
        if let Some(version) = version {
            self.request(version);
        }
        let (consumed, found) = self.wrapped(&mut input[opening.length..])?;
        Ok((opening.length + consumed, found.map(|found| found.moved(opening.length))))
    }

    /// Returns the next event inside WebSocket frames.
    pub(super) fn wrapped(&mut self, input: &mut [u8]) -> Result<(usize, Option<Found>), Reason> {
        // Moved out, so that the payload can be passed to the rest of the session.
        match std::mem::replace(&mut self.carrier, Carrier::Unknown) {
            Carrier::WebSocket(mut wrapped) => {
                let result = self.inside(&mut wrapped, input);
                self.carrier = Carrier::WebSocket(wrapped);
                result
            }
            other => {
                self.carrier = other;
                Ok((0, None))
            }
        }
    }

    fn inside(&mut self, wrapped: &mut Wrapped, input: &mut [u8]) -> Result<(usize, Option<Found>), Reason> {
        let mut at = 0;
        loop {
            // The rest of a message with RSSL frames, in the input or assembled.
            if wrapped.left > 0 {
                let Some(payload) = input.get(at..at + wrapped.left) else { return Ok((at, None)) };
                let (consumed, found) = self.plain(payload)?;
                wrapped.left -= consumed;
                if let Some(found) = found {
                    return Ok((at + consumed, Some(found.moved(at))));
                }
                at += consumed;
                wrapped.ends_with_a_frame()?;
                continue;
            }
            if let Some(joined_at) = wrapped.joined_at {
                let joined = wrapped.unwrap.joined();
                let (consumed, found) = self.plain(&joined[joined_at..])?;
                let next = joined_at + consumed;
                wrapped.joined_at = (next < joined.len()).then_some(next);
                if let Some(found) = found {
                    return Ok((at, Some(found.moved_to(Place::Joined, joined_at))));
                }
                wrapped.ends_with_a_frame()?;
                continue;
            }
            let (consumed, what) =
                wrapped.unwrap.take(&mut input[at..]).map_err(|fault| fault.at(wrapped.position))?;
            wrapped.position += consumed as u64;
            let start = at;
            at += consumed;
            let message = match what {
                What::Short => return Ok((at, None)),
                What::Nothing => continue,
                What::Ping(range) => {
                    self.output.pong(&input[start + range.start..start + range.end]);
                    continue;
                }
                What::Close => {
                    self.output.goodbye(websocket::code::NORMAL);
                    return Err(Reason::Peer);
                }
                What::Message(range) if !wrapped.json => {
                    wrapped.left = range.len();
                    at = start + range.start;
                    continue;
                }
                What::Joined if !wrapped.json => {
                    wrapped.joined_at = Some(0);
                    continue;
                }
                What::Message(range) => {
                    Span { place: Place::Input, start: start + range.start, end: start + range.end }
                }
                What::Joined => Span { place: Place::Joined, start: 0, end: wrapped.unwrap.joined().len() },
            };
            let text = if message.place == Place::Joined { wrapped.unwrap.joined() } else { &*input };
            let text = &text[message.start..message.end];
            if !text.is_empty() && !self.is_life(text) {
                return Ok((at, Some(Found::Message(message))));
            }
            if wrapped.unwrap.inflated() > 0 {
                return Ok((at, Some(Found::Nothing)));
            }
        }
    }

    /// Returns `true` if a JSON message is only a ping or a pong; answers a ping.
    fn is_life(&mut self, message: &[u8]) -> bool {
        let life = Life::of(message);
        if life == Some(Life::Ping) {
            // Without space, the waiting bytes serve as the sign of life.
            let _ = self.output.send(websocket::PONG);
        }
        life.is_some()
    }
}

impl Wrapped {
    /// Fails unless a message with RSSL frames was completely consumed: the consumed part contained no event.
    fn ends_with_a_frame(&self) -> Result<(), Fault> {
        if self.left == 0 && self.joined_at.is_none() {
            return Ok(());
        }
        let what = "WebSocket message that ends within a frame";
        Err(Fault::new(what, "whole frames of RSSL in each").at(self.position))
    }
}

impl Found {
    /// The same, with the position moved by `by` bytes.
    pub(super) fn moved(self, by: usize) -> Self {
        self.moved_to(Place::Input, by)
    }

    /// The same, found `by` bytes further in the input or in an assembled message.
    fn moved_to(self, place: Place, by: usize) -> Self {
        match self {
            Self::Message(Span { place: Place::Input, start, end }) => {
                Self::Message(Span { place, start: start + by, end: end + by })
            }
            other => other,
        }
    }
}

/// The first bytes of a WebSocket's opening; a connect request never starts with them.
const GET: &[u8; 4] = b"GET ";
