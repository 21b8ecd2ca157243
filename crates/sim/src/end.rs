//! One end of a connection: RSSL framing and handshake over the simulated network, or a WebSocket with JSON; and
//! the output of a role through it.

use std::sync::{Arc, OnceLock};

use tapeline_measure::Nanos;
use tapeline_omm::role::Outbox;
use tapeline_omm::rwf::MessageView;
use tapeline_wire::rssl::{self, Compression, ConnectionType, Event, Sent, Session, SubProtocol, Version};

use crate::json;
use crate::network::{LinkId, Network, Read, Side};
use crate::trace::fnv;

/// The largest payload of a frame: small, so that images and directories are fragmented too.
const FRAGMENT: u16 = 256;
/// The longest message.
const MOST: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct End {
    pub(crate) link: LinkId,
    side: Side,
    session: Session,
    /// Bytes that were read but not consumed.
    input: Vec<u8>,
    /// Buffer for the next message.
    room: Vec<u8>,
    /// A message, or its text, that the session had no capacity for.
    waiting: Option<Vec<u8>>,
    /// Messages are sent as JSON texts.
    is_json: bool,
    /// The reason why a message could not be converted to JSON.
    unsaid: Option<String>,
    /// Number of bytes read.
    pub(crate) received: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Came {
    Connected,
    Message(Vec<u8>),
    /// A message that cannot be converted to JSON, or a text that cannot be read.
    Garbled(String),
    /// The connection ended, for this reason.
    Over(String),
}

/// The protocol between a client and the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speech {
    Rwf,
    RwfZlib,
    RwfLz4,
    /// RWF in a WebSocket, with zlib.
    WebSocketRwf,
    Json,
    /// JSON in a WebSocket that compresses each message.
    JsonDeflated,
}

impl Speech {
    /// Messages are sent as JSON texts.
    pub(crate) const fn is_json(self) -> bool {
        matches!(self, Self::Json | Self::JsonDeflated)
    }
}

/// Settings with `buffers` output buffers.
pub(crate) fn base(buffers: u32) -> rssl::ConnectionSettings {
    rssl::ConnectionSettings {
        max_fragment_size: FRAGMENT,
        guaranteed_output_buffers: buffers,
        max_message_bytes: MOST as u32,
        // Timeouts are shorter than in production, so that more of them expire in a world.
        connection_ping_timeout: 2,
        connection_min_ping_timeout: 1,
        initialization_timeout_ms: 1_000,
        component_version: "sim".to_owned(),
        ..rssl::ConnectionSettings::default()
    }
}

/// Settings of the hub's connections: those of production except for sizes and timeouts.
pub(crate) fn server_settings(buffers: u32) -> Arc<rssl::ConnectionSettings> {
    static MADE: [OnceLock<Arc<rssl::ConnectionSettings>>; 2] = [const { OnceLock::new() }; 2];
    let make = || {
        let compression_type = Compression::Zlib;
        Arc::new(rssl::ConnectionSettings { pause_when_full: true, compression_type, ..base(buffers) })
    };
    MADE[usize::from(buffers == WIDE_BUFFERS)].get_or_init(make).clone()
}

fn client_settings(speech: Speech) -> Arc<rssl::ConnectionSettings> {
    static MADE: [OnceLock<Arc<rssl::ConnectionSettings>>; 6] = [const { OnceLock::new() }; 6];
    let make = || {
        let (connection_type, compression_type) = match speech {
            Speech::Rwf => (ConnectionType::Socket, Compression::None),
            Speech::RwfZlib => (ConnectionType::Socket, Compression::Zlib),
            Speech::RwfLz4 => (ConnectionType::Socket, Compression::Lz4),
            Speech::WebSocketRwf | Speech::JsonDeflated => (ConnectionType::WebSocket, Compression::Zlib),
            Speech::Json => (ConnectionType::WebSocket, Compression::None),
        };
        let protocol = if speech.is_json() { SubProtocol::TrJson2 } else { SubProtocol::Rwf };
        Arc::new(rssl::ConnectionSettings {
            connection_type,
            compression_type,
            ws_protocols: vec![protocol],
            ..base(WIDE_BUFFERS)
        })
    };
    MADE[speech as usize].get_or_init(make).clone()
}

/// Output buffers of ends that are meant to run out of them, and of the others.
pub(crate) const NARROW_BUFFERS: u32 = 8;
pub(crate) const WIDE_BUFFERS: u32 = 256;

impl End {
    pub(crate) fn client(link: LinkId, speech: Speech, now: u64) -> Self {
        let session = Session::client(client_settings(speech), Version::V14, Nanos(now));
        Self::new(link, Side::Client, session)
    }

    /// The end of a source that the plant connects to.
    pub(crate) fn server(link: LinkId, buffers: u32, now: u64) -> Self {
        let session = Session::server(Arc::new(base(buffers)), Nanos(now));
        Self::new(link, Side::Server, session)
    }

    fn new(link: LinkId, side: Side, session: Session) -> Self {
        Self {
            link,
            side,
            session,
            input: Vec::new(),
            room: Vec::new(),
            waiting: None,
            is_json: false,
            unsaid: None,
            received: 0,
        }
    }

    /// Reads at most `most` bytes and returns the events in them, in order.
    pub(crate) fn receive(&mut self, now: u64, network: &mut Network, most: usize) -> Vec<Came> {
        if let Some(why) = self.unsaid.take() {
            return vec![Came::Garbled(why)];
        }
        let over = |why: &str| vec![Came::Over(why.to_owned())];
        match network.read(now, self.link, self.side, most) {
            Read::Nothing => return Vec::new(),
            Read::Bytes(bytes) => {
                self.received += bytes.len() as u64;
                self.input.extend(bytes);
            }
            Read::Closed => return over("the peer closed the connection"),
            Read::Broken => return over("the connection broke"),
        }
        let (mut all, mut taken) = (Vec::new(), 0);
        loop {
            taken += match self.session.take(&mut self.input[taken..], Nanos(now)) {
                Ok((0, None)) => break,
                Ok((consumed, Some(Event::Connected(agreed)))) => {
                    self.is_json = agreed.is_json();
                    all.push(Came::Connected);
                    consumed
                }
                Ok((consumed, Some(Event::Message(bytes)))) => {
                    if self.is_json {
                        said(bytes, &mut all);
                    } else {
                        all.push(Came::Message(bytes.to_vec()));
                    }
                    consumed
                }
                Ok((consumed, _)) => consumed,
                Err(reason) => {
                    all.push(Came::Over(reason.to_string()));
                    break;
                }
            };
        }
        self.input.drain(..taken);
        all
    }

    /// Sends pings, and checks the peer's ping timeout.
    pub(crate) fn turn(&mut self, now: u64) -> Option<Came> {
        self.session.turn(Nanos(now)).err().map(|reason| Came::Over(reason.to_string()))
    }

    /// Sends as many bytes as the network accepts.
    pub(crate) fn flush(&mut self, now: u64, network: &mut Network) {
        let room = network.room(self.link, self.side);
        if room > 0 {
            let bytes = self.session.drain_at_most(room);
            if !bytes.is_empty() {
                network.send(now, self.link, self.side, bytes);
            }
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.session.is_open()
    }

    /// Sends a text unchanged, if there is capacity.
    pub(crate) fn say_text(&mut self, now: u64, network: &mut Network, text: Vec<u8>) {
        let mut out = self.out(now, network);
        if out.settle() {
            out.end.waiting = Some(text);
            out.settle();
        }
    }

    /// Sends raw bytes between those of the session.
    pub(crate) fn say_raw(&mut self, now: u64, network: &mut Network, mut bytes: Vec<u8>) {
        bytes.truncate(network.room(self.link, self.side));
        if !bytes.is_empty() {
            network.send(now, self.link, self.side, bytes);
        }
    }

    pub(crate) fn out<'a>(&'a mut self, now: u64, network: &'a mut Network) -> Out<'a> {
        let mut out = Out { end: self, network, now };
        out.settle();
        out
    }
}

/// Appends the messages of a text.
fn said(text: &[u8], all: &mut Vec<Came>) {
    match json::messages(text) {
        Ok(messages) => all.extend(messages.into_iter().map(Came::Message)),
        Err(why) => all.push(Came::Garbled(format!("{why}: {}", String::from_utf8_lossy(text)))),
    }
}

/// An [`Outbox`] on an end. A session reports that it is full only when it is given a message; so one message may
/// wait here, and nothing more is accepted until it is sent.
#[derive(Debug)]
pub(crate) struct Out<'a> {
    end: &'a mut End,
    network: &'a mut Network,
    now: u64,
}

impl Out<'_> {
    fn settle(&mut self) -> bool {
        let Some(message) = self.end.waiting.take() else { return true };
        let mut sent = self.end.session.output().send(&message);
        if sent == Sent::Full {
            // The network may have capacity although the buffers are full.
            self.end.flush(self.now, self.network);
            sent = self.end.session.output().send(&message);
        }
        self.end.waiting = (sent == Sent::Full).then_some(message);
        sent != Sent::Full
    }
}

impl Outbox for Out<'_> {
    fn most(&self) -> usize {
        MOST
    }

    fn claim(&mut self, len: usize) -> Option<&mut [u8]> {
        if !self.settle() || len > MOST {
            return None;
        }
        self.end.room.resize(len.max(self.end.room.len()), 0xEE);
        self.end.room.get_mut(..len)
    }

    fn commit(&mut self, len: usize) {
        let message = &self.end.room[..len];
        let message = match self.end.is_json.then(|| json::text(message, self.end.side)) {
            None => message.to_vec(),
            Some(Ok(text)) => text,
            Some(Err(why)) => {
                self.end.unsaid = Some(format!("{why}: {:?}", MessageView::parse(message)));
                return;
            }
        };
        self.network.note(self.end.link, self.end.side, fnv(&message));
        self.end.waiting = Some(message);
        self.settle();
    }
}
