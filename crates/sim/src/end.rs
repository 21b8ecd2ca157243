//! One end of a connection: RSSL's own framing and handshake over the simulated network, or a WebSocket's with JSON in it, and
//! what a role sends through it.

use std::sync::{Arc, OnceLock};

use tapeline_measure::Nanos;
use tapeline_omm::role::Outbox;
use tapeline_omm::rwf::MessageView;
use tapeline_wire::rssl::{self, Compression, ConnectionType, Event, Sent, Session, SubProtocol, Version};

use crate::json;
use crate::network::{LinkId, Network, Read, Side};
use crate::trace::fnv;

/// The largest payload of a frame: small, so that images and directories come in fragments too.
const FRAGMENT: u16 = 256;
/// The longest message.
const MOST: usize = 1 << 20;

/// One end.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) link: LinkId,
    side: Side,
    session: Session,
    /// What was read and not taken.
    input: Vec<u8>,
    /// Where the next message is written.
    room: Vec<u8>,
    /// A message, or its text, for which the session had no room.
    waiting: Option<Vec<u8>>,
    /// Messages go as texts of JSON.
    is_json: bool,
    /// Why a message could not be said in JSON.
    unsaid: Option<String>,
    /// Bytes that it has read.
    received: u64,
}

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// Messages can go both ways.
    Connected,
    Message(Vec<u8>),
    /// A message that JSON has no words for, or a text that cannot be read.
    Garbled(String),
    /// It is over, for this reason.
    Over(String),
}

/// How a client speaks with the hub.
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
    /// Messages go as texts of JSON.
    pub(crate) const fn is_json(self) -> bool {
        matches!(self, Self::Json | Self::JsonDeflated)
    }
}

/// Settings with output buffers for so many frames.
pub(crate) fn base(buffers: u32) -> rssl::Settings {
    rssl::Settings {
        max_fragment_size: FRAGMENT,
        guaranteed_output_buffers: buffers,
        max_message_bytes: MOST as u32,
        // Times are shorter than in the world outside, so that a seed sees more of them run out.
        connection_ping_timeout: 2,
        connection_min_ping_timeout: 1,
        initialization_timeout_ms: 1_000,
        component_version: "sim".to_owned(),
        ..rssl::Settings::default()
    }
}

/// Settings of the hub's connections: as a plant's, but for sizes and times.
pub(crate) fn server_settings(buffers: u32) -> Arc<rssl::Settings> {
    static MADE: [OnceLock<Arc<rssl::Settings>>; 2] = [const { OnceLock::new() }; 2];
    let make = || {
        let compression_type = Compression::Zlib;
        Arc::new(rssl::Settings { pause_when_full: true, compression_type, ..base(buffers) })
    };
    MADE[usize::from(buffers == WIDE_BUFFERS)].get_or_init(make).clone()
}

/// Settings of a client, and of sources.
fn client_settings(speech: Speech) -> Arc<rssl::Settings> {
    static MADE: [OnceLock<Arc<rssl::Settings>>; 6] = [const { OnceLock::new() }; 6];
    let make = || {
        let (connection_type, compression_type) = match speech {
            Speech::Rwf => (ConnectionType::Socket, Compression::None),
            Speech::RwfZlib => (ConnectionType::Socket, Compression::Zlib),
            Speech::RwfLz4 => (ConnectionType::Socket, Compression::Lz4),
            Speech::WebSocketRwf | Speech::JsonDeflated => (ConnectionType::WebSocket, Compression::Zlib),
            Speech::Json => (ConnectionType::WebSocket, Compression::None),
        };
        let protocol = if speech.is_json() { SubProtocol::TrJson2 } else { SubProtocol::Rwf };
        Arc::new(rssl::Settings {
            connection_type,
            compression_type,
            ws_protocols: vec![protocol],
            ..base(WIDE_BUFFERS)
        })
    };
    MADE[speech as usize].get_or_init(make).clone()
}

/// Output buffers of who is to feel that there is no room, and of who is not.
pub(crate) const NARROW_BUFFERS: u32 = 8;
pub(crate) const WIDE_BUFFERS: u32 = 256;

impl End {
    pub(crate) fn client(link: LinkId, speech: Speech, now: u64) -> Self {
        let session = Session::client(client_settings(speech), Version::V14, Nanos(now));
        Self::new(link, Side::Client, session)
    }

    /// A source's that the plant connects to.
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

    /// Reads at most so many bytes: what came with them, in its order.
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

    /// Pings, and how long the peer may be silent.
    pub(crate) fn turn(&mut self, now: u64) -> Option<Came> {
        self.session.turn(Nanos(now)).err().map(|reason| Came::Over(reason.to_string()))
    }

    /// Sends as much as the network takes.
    pub(crate) fn flush(&mut self, now: u64, network: &mut Network) {
        let room = network.room(self.link, self.side);
        if room > 0 {
            let bytes = self.session.drain_at_most(room);
            if !bytes.is_empty() {
                network.send(now, self.link, self.side, bytes);
            }
        }
    }

    /// Bytes that it has read.
    pub(crate) const fn received(&self) -> u64 {
        self.received
    }

    /// Messages may go out.
    pub(crate) fn is_open(&self) -> bool {
        self.session.is_open()
    }

    /// A text goes out as it is, where there is room.
    pub(crate) fn say_text(&mut self, now: u64, network: &mut Network, text: Vec<u8>) {
        let mut out = self.out(now, network);
        if out.settle() {
            out.end.waiting = Some(text);
            out.settle();
        }
    }

    /// Bytes that go out as they are, between what the session sends.
    pub(crate) fn say_raw(&mut self, now: u64, network: &mut Network, mut bytes: Vec<u8>) {
        bytes.truncate(network.room(self.link, self.side));
        if !bytes.is_empty() {
            network.send(now, self.link, self.side, bytes);
        }
    }

    /// The way out for a role.
    pub(crate) fn out<'a>(&'a mut self, now: u64, network: &'a mut Network) -> Out<'a> {
        let mut out = Out { end: self, network, now };
        out.settle();
        out
    }
}

/// What a text says.
fn said(text: &[u8], all: &mut Vec<Came>) {
    match json::messages(text) {
        Ok(messages) => {
            all.extend(messages.into_iter().map(Came::Message));
        }
        Err(why) => all.push(Came::Garbled(format!("{why}: {}", String::from_utf8_lossy(text)))),
    }
}

/// An [`Outbox`] on an end. A session tells only when it is given a message that there is no room; so one message may wait
/// here, and nothing more is taken until that is out.
#[derive(Debug)]
pub(crate) struct Out<'a> {
    end: &'a mut End,
    network: &'a mut Network,
    now: u64,
}

impl Out<'_> {
    fn settle(&mut self) -> bool {
        let Some(message) = &self.end.waiting else { return true };
        let mut sent = self.end.session.output().send(message);
        if sent == Sent::Full {
            // The network may have room where the buffers have none.
            let room = self.network.room(self.end.link, self.end.side);
            let bytes = self.end.session.drain_at_most(room);
            if !bytes.is_empty() {
                self.network.send(self.now, self.end.link, self.end.side, bytes);
            }
            sent = self.end.session.output().send(message);
        }
        if sent == Sent::Full {
            return false;
        }
        self.end.waiting = None;
        true
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
