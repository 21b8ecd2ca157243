//! A session that receives any bytes, before and after it opened.

use std::sync::Arc;

use tapeline_measure::Nanos;
use tapeline_wire::rssl::{
    Compression, ConnectionSettings, ConnectionType, Event, Reason, Sent, Session, SubProtocol, Version,
};

const NOW: Nanos = Nanos(0);
/// Maximum length of a message here: short, so that inputs reach it.
const LONGEST: u32 = 20_000;
/// Maximum memory: messages in fragments and the last completed one, a payload's first half, a WebSocket
/// message.
const HELD: usize = 4 * LONGEST as usize + (256 << 10);

/// The setup of a session, from an input's first byte.
#[derive(Clone, Copy)]
pub(crate) struct Mode(u8);

impl Mode {
    pub(crate) const SERVER: u8 = 1;
    pub(crate) const ZLIB: u8 = 2;
    pub(crate) const LZ4: u8 = 4;
    /// The handshake is done before the input begins.
    pub(crate) const OPEN: u8 = 8;
    pub(crate) const WEBSOCKET: u8 = 16;
    pub(crate) const JSON: u8 = 32;
    pub(crate) const OLD: u8 = 64;
    pub(crate) const KEY: u8 = 128;

    fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }

    fn settings(self) -> Arc<ConnectionSettings> {
        let compression_type = match (self.has(Self::ZLIB), self.has(Self::LZ4)) {
            (true, _) => Compression::Zlib,
            (_, true) => Compression::Lz4,
            _ => Compression::None,
        };
        Arc::new(ConnectionSettings {
            max_message_bytes: LONGEST,
            max_open_messages: 8,
            max_fragment_size: 512,
            compression_type,
            key_exchange: self.has(Self::KEY),
            connection_type: if self.has(Self::WEBSOCKET) {
                ConnectionType::WebSocket
            } else {
                ConnectionType::Socket
            },
            ws_protocols: vec![if self.has(Self::JSON) { SubProtocol::TrJson2 } else { SubProtocol::Rwf }],
            host: "127.0.0.1:14002".to_owned(),
            ..ConnectionSettings::default()
        })
    }

    /// Returns the session that gets the input; it has no peer unless it is open.
    fn end(self) -> Session {
        if self.has(Self::OPEN) {
            return self.ends().0;
        }
        let version = if self.has(Self::OLD) { Version::V12 } else { Version::V14 };
        match self.has(Self::SERVER) {
            true => Session::server(self.settings(), NOW),
            false => Session::client(self.settings(), version, NOW),
        }
    }

    /// Returns the session that gets the input, and its peer.
    fn ends(self) -> (Session, Session) {
        let version = if self.has(Self::OLD) { Version::V12 } else { Version::V14 };
        let mut client = Session::client(self.settings(), version, NOW);
        let mut server = Session::server(self.settings(), NOW);
        if self.has(Self::OPEN) {
            while !(client.is_open() && server.is_open()) {
                Taken::of(&mut server, &client.drain());
                Taken::of(&mut client, &server.drain());
            }
            assert!(client.drain().is_empty() && server.drain().is_empty());
        }
        if self.has(Self::SERVER) { (server, client) } else { (client, server) }
    }
}

/// The result of some bytes.
#[derive(Debug, Default, PartialEq)]
struct Taken {
    messages: Vec<Vec<u8>>,
    connected: u32,
    end: Option<String>,
    left: usize,
}

impl Taken {
    fn of(session: &mut Session, bytes: &[u8]) -> Self {
        Self::of_pieces(session, [bytes])
    }

    fn of_pieces<'a>(session: &mut Session, pieces: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let (mut taken, mut buffer) = (Self::default(), Vec::new());
        for piece in pieces {
            buffer.extend_from_slice(piece);
            loop {
                let length = buffer.len();
                let (consumed, done) = match session.take(&mut buffer, NOW) {
                    Ok((consumed, event)) => match event {
                        Some(Event::Message(message)) => {
                            assert!(!message.is_empty() && message.len() <= LONGEST.max(65_535) as usize);
                            taken.messages.push(message.to_vec());
                            (consumed, false)
                        }
                        Some(Event::Connected(_)) => {
                            taken.connected += 1;
                            (consumed, false)
                        }
                        Some(other) => panic!("{other:?}"),
                        None => (consumed, true),
                    },
                    Err(reason) => {
                        taken.end = Some(said(&reason));
                        return taken;
                    }
                };
                assert!(consumed <= length);
                buffer.drain(..consumed);
                assert!(session.held() <= HELD, "{} bytes are held", session.held());
                if done {
                    break;
                }
            }
        }
        taken.left = buffer.len();
        taken
    }
}

fn said(reason: &Reason) -> String {
    if let Reason::Broken(fault) = reason {
        assert!(!fault.what.is_empty() && !fault.expected.is_empty());
    }
    reason.to_string()
}

/// Tests any bytes: the first byte selects the mode, the second where to split the others.
pub(crate) fn bytes(input: &[u8]) {
    let [mode, cuts, stream @ ..] = input else { return };
    let mode = Mode(*mode);
    let (mut session, mut peer) = mode.ends();
    let whole = Taken::of(&mut session, stream);
    let answer = session.drain();

    // The split does not change the result.
    let mut other = mode.end();
    let size = usize::from(*cuts % 32) + 1;
    let cut = Taken::of_pieces(&mut other, stream.chunks(size));
    // A WebSocket's opening has a random key, and its answer depends on the key.
    if !mode.has(Mode::WEBSOCKET) || mode.has(Mode::OPEN) {
        assert_eq!(whole.messages, cut.messages);
        assert_eq!(whole.end.is_some(), cut.end.is_some(), "{:?} {:?}", whole.end, cut.end);
        if whole.end.is_none() {
            assert_eq!(whole, cut);
        }
    }

    // The peer understands this side's output; a WebSocket's close is answered with a close.
    if mode.has(Mode::OPEN) {
        let answered = Taken::of(&mut peer, &answer);
        let goodbye = mode.has(Mode::WEBSOCKET) && whole.end.is_some();
        assert!(answered.end.is_none() || goodbye, "{answered:?}");
        assert!(answered.messages.is_empty() && answered.left == 0, "{answered:?}");
    }

    // Send the messages again the same way.
    if whole.messages.is_empty() {
        return;
    }
    let (mut to, mut from) = Mode(mode.0 | Mode::OPEN).ends();
    let mut stream = Vec::new();
    let fit = |message: &&Vec<u8>| message.len() <= LONGEST as usize;
    for message in whole.messages.iter().filter(fit) {
        assert_eq!(from.output().send(message), Sent::Queued);
        stream.extend(from.drain());
    }
    let again = Taken::of(&mut to, &stream);
    assert!(again.end.is_none() && again.left == 0, "{again:?}");
    assert!(again.messages.iter().eq(whole.messages.iter().filter(fit)));
}

/// Seed inputs.
pub(crate) fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let modes = [
        ("server-request", Mode::SERVER),
        ("client-ack", Mode::KEY),
        ("server-websocket", Mode::SERVER | Mode::WEBSOCKET),
        ("open-plain", Mode::SERVER | Mode::OPEN),
        ("open-old", Mode::OPEN | Mode::OLD),
        ("open-zlib", Mode::SERVER | Mode::OPEN | Mode::ZLIB),
        ("open-lz4", Mode::OPEN | Mode::LZ4),
        ("open-rwf", Mode::SERVER | Mode::OPEN | Mode::WEBSOCKET),
        ("open-rwf-zlib", Mode::OPEN | Mode::WEBSOCKET | Mode::ZLIB),
        ("open-json", Mode::SERVER | Mode::OPEN | Mode::WEBSOCKET | Mode::JSON),
        ("open-json-deflate", Mode::OPEN | Mode::WEBSOCKET | Mode::JSON | Mode::ZLIB),
    ];
    let mut seeds: Vec<_> = modes
        .into_iter()
        .map(|(name, mode)| (name, [&[mode, 7], &stream(Mode(mode))[..]].concat()))
        .collect();
    seeds.push(("frames-of-nothing", frames_of_nothing(20)));
    seeds
}

/// A compressed message that continues in frames without a byte.
pub(crate) fn frames_of_nothing(count: usize) -> Vec<u8> {
    let mode = Mode::OPEN | Mode::WEBSOCKET | Mode::JSON | Mode::ZLIB;
    [&[mode, 7, 0x41, 1, 0], &[0x40, 0].repeat(count)[..]].concat()
}

/// Returns a peer's bytes on a connection of this kind.
fn stream(mode: Mode) -> Vec<u8> {
    let (mut session, mut peer) = mode.ends();
    let mut stream = Vec::new();
    if !mode.has(Mode::OPEN) {
        if !mode.has(Mode::SERVER) {
            Taken::of(&mut peer, &session.drain());
        }
        stream = peer.drain();
        Taken::of(&mut session, &stream);
        Taken::of(&mut peer, &session.drain());
        stream.extend(peer.drain());
    }
    if peer.is_open() {
        let text = br#"[{"ID":1,"Type":"Request","Key":{"Name":"TAPE"}}]"#;
        let _ = peer.output().send(text);
        stream.extend(peer.drain());
        for count in [3, 40, 100] {
            let _ = peer.output().pack(&vec![b'p'; count]);
        }
        stream.extend(peer.drain());
        // Incompressible bytes: fragments, and payloads that are split.
        let mut number = 1_u32;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (number >> 24) as u8
        })
        .take(1300)
        .collect();
        let _ = peer.output().send(&noise);
        stream.extend(peer.drain());
    }
    stream
}
