//! Messages on the RSSL connections of a capture.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use tapeline_measure::Nanos;
use tapeline_wire::rssl::{Compression, ConnectionSettings, Event, Negotiated, Reason, Session, Version};

use super::streams::{CapturedAt, Stream};

/// A message on a connection of the capture.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) moment: CapturedAt,
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    /// Offset in its stream of the message's end.
    pub(super) offset: usize,
    /// Whether the bytes are JSON text, and not RWF.
    pub(super) is_json: bool,
    pub(super) bytes: Vec<u8>,
}

/// A part of a stream that could not be decoded.
#[derive(Debug)]
pub(super) struct Lost {
    source: SocketAddr,
    destination: SocketAddr,
    offset: usize,
    why: String,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, destination, offset, why } = self;
        write!(f, "{source} → {destination}: byte {offset}: {why}")
    }
}

/// Versions of the handshake that a client may have used.
const VERSIONS: [Version; 4] = [Version::V14, Version::V13, Version::V12, Version::V11];

/// All messages in capture order, and the parts that could not be decoded.
pub(super) fn messages(streams: &[Stream]) -> (Vec<Sent>, Vec<Lost>) {
    let (mut sent, mut lost) = (Vec::new(), Vec::new());
    let mut is_answer = vec![false; streams.len()];
    for (place, stream) in streams.iter().enumerate() {
        if is_answer[place] {
            continue;
        }
        let ends = (stream.destination, stream.source);
        let mut behind = place + 1..streams.len();
        let answer = behind.find(|at| (streams[*at].source, streams[*at].destination) == ends);
        let Some(answer) = answer else {
            lost.push(stream.lost(0, "the other direction is not in the capture"));
            continue;
        };
        is_answer[answer] = true;
        // The side that opened the connection is the client.
        follow(stream, &streams[answer], &mut sent, &mut lost);
    }
    sent.sort_by_key(|message| message.moment);
    (sent, lost)
}

/// Decodes both directions of one connection.
fn follow(client: &Stream, server: &Stream, sent: &mut Vec<Sent>, lost: &mut Vec<Lost>) {
    if !client.is_whole || !server.is_whole {
        return lost.push(client.lost(0, "the connection's beginning is not in the capture"));
    }
    if client.bytes.first() == Some(&0x16) {
        return lost.push(client.lost(0, "this is TLS, and cannot be read without its keys"));
    }
    // The server's answer determines the protocol of both sides.
    let attempts = VERSIONS.into_iter().flat_map(|version| [(version, true), (version, false)]);
    let opened = attempts.into_iter().find_map(|(version, key_exchange)| {
        let settings = ConnectionSettings { key_exchange, ..patient() };
        let mut session = Session::follower(Arc::new(settings), version, &client.bytes, Nanos(0)).ok()?;
        let agreed = agreed(&mut session, &server.bytes)?;
        Some((session, agreed))
    });
    let Some((mut session, (at, agreed))) = opened else {
        let why = "no server's answer to a connect request of RSSL or to a WebSocket handshake";
        return lost.push(server.lost(0, why));
    };
    drain(&mut session, server, at, agreed.is_json(), sent, lost);
    let settings = ConnectionSettings {
        compression_type: agreed.compression,
        compression_forced: agreed.compression != Compression::None,
        max_fragment_size: agreed.max_fragment_size,
        ..patient()
    };
    let mut session = Session::server(Arc::new(settings), Nanos(0));
    drain(&mut session, client, 0, agreed.is_json(), sent, lost);
}

/// Settings with the highest limits.
fn patient() -> ConnectionSettings {
    ConnectionSettings {
        max_message_bytes: 256 << 20,
        max_open_messages: 4096,
        ..ConnectionSettings::default()
    }
}

/// The negotiated settings, and the number of the server's bytes up to them.
fn agreed(session: &mut Session, bytes: &[u8]) -> Option<(usize, Negotiated)> {
    let mut rest = bytes.to_vec();
    let mut at = 0;
    loop {
        let (consumed, event) = session.take(rest.get_mut(at..)?, Nanos(0)).ok()?;
        match event {
            Some(Event::Connected(agreed)) => return Some((at + consumed, agreed.clone())),
            Some(_) => {}
            None => return None,
        }
        at += consumed;
    }
}

/// Decodes every message of a stream from there on.
fn drain(
    session: &mut Session,
    stream: &Stream,
    mut at: usize,
    is_json: bool,
    sent: &mut Vec<Sent>,
    lost: &mut Vec<Lost>,
) {
    let mut bytes = stream.bytes.clone();
    loop {
        // Nothing sends the session's answers; they must not accumulate.
        session.drain();
        let rest = bytes.get_mut(at..).unwrap_or_default();
        match session.take(rest, Nanos(0)) {
            Ok((consumed, Some(event))) => {
                let message = if let Event::Message(message) = event { message.to_vec() } else { Vec::new() };
                at += consumed;
                if !message.is_empty() {
                    sent.push(Sent {
                        moment: stream.at(at),
                        source: stream.source,
                        destination: stream.destination,
                        offset: at,
                        is_json,
                        bytes: message,
                    });
                }
            }
            Ok((consumed, None)) => {
                at += consumed;
                let left = stream.bytes.len() - at.min(stream.bytes.len());
                if stream.behind > 0 {
                    let why = format!("bytes are missing; {} after them cannot be read", stream.behind);
                    lost.push(stream.lost(at, &why));
                } else if left > 0 {
                    lost.push(stream.lost(at, &format!("the last {left} bytes are not a whole frame")));
                }
                return;
            }
            // A close frame of a WebSocket.
            Err(Reason::Peer) => return,
            Err(reason) => return lost.push(stream.lost(at, &reason.to_string())),
        }
    }
}

impl Stream {
    fn lost(&self, offset: usize, why: &str) -> Lost {
        Lost { source: self.source, destination: self.destination, offset, why: why.to_owned() }
    }
}
