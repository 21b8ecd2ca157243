//! Recorded WebSocket connections of EMA's clients and servers, read and made again.
use crate::vectors;

use std::collections::BTreeMap;
use std::sync::Arc;

use tapeline_measure::Nanos;
use tapeline_wire::rssl::{
    Compression, ConnectionSettings, ConnectionType, Event, Reason, Sent, Session, SubProtocol, Version,
};
use tungstenite::handshake::derive_accept_key;
use vectors::{Record, files, records};

const NOW: Nanos = Nanos(0);

fn settings(change: impl FnOnce(&mut ConnectionSettings)) -> Arc<ConnectionSettings> {
    let mut settings = ConnectionSettings::default();
    change(&mut settings);
    Arc::new(settings)
}

/// Returns the messages in these bytes, and the reason if the connection is over.
fn take(session: &mut Session, bytes: &[u8]) -> (Vec<Vec<u8>>, Option<Reason>) {
    let (mut bytes, mut messages) = (bytes.to_vec(), Vec::new());
    loop {
        match session.take(&mut bytes, NOW) {
            Ok((consumed, event)) => {
                let done = event.is_none();
                if let Some(Event::Message(message)) = event {
                    messages.push(message.to_vec());
                }
                bytes.drain(..consumed);
                if done {
                    assert!(bytes.is_empty(), "left over: {bytes:02x?}");
                    return (messages, None);
                }
            }
            Err(reason) => return (messages, Some(reason)),
        }
    }
}

/// Returns the bytes of a record that was stored as a header and a text.
fn whole(record: &Record) -> Vec<u8> {
    let ws = &record.value["ws"];
    let length = ws["payloadLength"].as_u64().unwrap() as usize;
    let header = ws["headerLength"].as_u64().unwrap_or(0) as usize;
    if record.bytes.len() == header + length || header == 0 {
        return record.bytes.clone();
    }
    let mut payload = record.value["text"].as_str().unwrap().as_bytes().to_vec();
    if ws["compressed"] == true {
        // EMA's server uses stored blocks: a block's header, the text, and the beginning of a sync flush.
        let count = payload.len() as u16;
        payload.splice(..0, [&[0], &count.to_le_bytes()[..], &(!count).to_le_bytes()].concat());
        payload.push(0);
    }
    payload.drain(..payload.len() - length);
    if ws["masked"] == true {
        let mask = &record.bytes[header - 4..header];
        payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
    }
    [&record.bytes[..header], &payload].concat()
}

/// Returns a frame without its mask.
fn unmasked(frame: &[u8]) -> Vec<u8> {
    let header = match frame[1] & 0x7f {
        126 => 4,
        127 => 10,
        _ => 2,
    };
    let mut frame = frame.to_vec();
    if frame[1] & 0x80 != 0 {
        let mask: Vec<u8> = frame.drain(header..header + 4).collect();
        frame[header..].iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        frame[1] &= 0x7f;
    }
    frame
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

struct Ends {
    client: Session,
    server: Session,
}

/// Returns both ends in the state after the recorded heads, which equal the heads made here.
fn opened(records: &[Record]) -> Ends {
    let [request, response] = [0, 1].map(|index: usize| records[index].value["text"].as_str().unwrap());
    let deflate = response.contains("permessage-deflate");
    let protocols: Vec<SubProtocol> = header(request, "Sec-WebSocket-Protocol")
        .unwrap()
        .split(", ")
        .map(|name| SubProtocol::named(name).unwrap())
        .collect();
    let mut server = Session::server(
        settings(|settings| {
            settings.compression_type = if deflate { Compression::Zlib } else { Compression::None };
            settings.compression_level = 0;
        }),
        NOW,
    );
    assert!(matches!(take(&mut server, request.as_bytes()), (messages, None) if messages.is_empty()));
    assert_eq!(String::from_utf8(server.drain()).unwrap(), response);

    let mut client = Session::client(
        settings(|settings| {
            settings.connection_type = ConnectionType::WebSocket;
            settings.host = header(request, "Host").unwrap().to_owned();
            settings.compression_type = if deflate { Compression::Zlib } else { Compression::None };
            settings.ws_protocols = protocols;
            // The values of EMA's RSSL handshake inside.
            settings.key_exchange = true;
            settings.component_version = "etaj3.9.1.L1.all.rrg|emaj3.9.1.L1.all.rrg".to_owned();
            settings.host_name = "vm".to_owned();
            settings.ip_address = "127.0.0.1".to_owned();
            let inside = &records[2].value["handshake"]["pingTimeout"];
            settings.connection_ping_timeout = inside.as_u64().unwrap_or(30) as u8;
        }),
        Version::V14,
        NOW,
    );
    let ours = String::from_utf8(client.drain()).unwrap();
    let key = header(&ours, "Sec-WebSocket-Key").unwrap();
    // The scripts that wrote their own heads have the lines in another order.
    let lines = |head: &str| {
        let mut lines: Vec<String> = head.lines().map(str::to_owned).collect();
        lines[1..].sort();
        lines
    };
    let recorded = request.replace(header(request, "Sec-WebSocket-Key").unwrap(), key);
    let inside_only = request.contains("rssl.rwf") && deflate;
    if !inside_only {
        assert_eq!(lines(&ours), lines(&recorded));
    }
    let accept = header(response, "Sec-WebSocket-Accept").unwrap();
    let response = response.replace(accept, &derive_accept_key(key.as_bytes()));
    assert!(matches!(take(&mut client, response.as_bytes()), (messages, None) if messages.is_empty()));
    Ends { client, server }
}

#[test]
fn every_recorded_websocket_gives_its_messages() {
    let mut counts = BTreeMap::new();
    for file in files(&["ws-"]) {
        let records = records(&file);
        let Ends { mut client, mut server } = opened(&records);
        let _ = client.drain();
        for record in &records[2..] {
            let place = format!("{file}, {}", record.name);
            let session = if record.from_server { &mut client } else { &mut server };
            let (messages, end) = take(session, &whole(record));
            let answer = session.drain();
            let mut count = |what: &'static str| *counts.entry(what).or_insert(0) += 1;
            if record.name == "WebSocket close" {
                count("close");
                assert!(matches!(end, Some(Reason::Peer)) && answer.len() > 2, "{place}");
                continue;
            }
            assert!(end.is_none(), "{place}: {end:?}");
            if record.is_handshake() || record.value["frame"].is_object() {
                count(if record.is_handshake() { "handshake" } else { "RSSL frame" });
                let expected = record.messages();
                assert_eq!(messages.len(), expected.len(), "{place}");
                assert!(
                    messages.iter().zip(&expected).all(|(message, expected)| expected.is(message)),
                    "{place}"
                );
                continue;
            }
            match record.value["text"].as_str() {
                Some(r#"[{"Type":"Ping"}]"#) => {
                    count("JSON ping");
                    assert!(
                        messages.is_empty() && unmasked(&answer) == b"\x81\x11[{\"Type\":\"Pong\"}]",
                        "{place}"
                    );
                }
                Some(text) if text.contains(r#""Pong""#) || text == r#"{"Type":"Ping"}"# => {
                    count("JSON ping");
                    assert!(messages.is_empty(), "{place}");
                }
                Some(text) => {
                    count("JSON text");
                    assert_eq!(messages, [text.as_bytes()], "{place}");
                }
                None if record.name == "WebSocket ping" => {
                    count("ping");
                    assert_eq!(unmasked(&answer)[2..], unmasked(&record.bytes)[2..], "{place}");
                }
                // A pong, or a fragment of a text that is not the last.
                None => assert!(messages.is_empty() && answer.is_empty(), "{place}"),
            }
        }
    }
    println!("{counts:?}");
    if !counts.is_empty() {
        assert!(
            counts["JSON text"] > 100 && counts["RSSL frame"] > 40 && counts["JSON ping"] >= 8,
            "{counts:?}"
        );
    }
}

/// Uncompressed frames are deterministic except for the mask.
#[test]
fn frames_are_made_as_they_were_recorded() {
    let mut counts = BTreeMap::new();
    for file in files(&["ws-"]) {
        let records = records(&file);
        let Ends { mut client, mut server } = opened(&records);
        if client.is_open() {
            assert!(client.drain().is_empty());
        } else {
            // The RSSL handshake inside; the one made here has no numbers for a key.
            let request = client.drain();
            let recorded = unmasked(&records[2].bytes);
            if !file.contains("zlib") {
                assert_eq!(unmasked(&request), recorded, "{file}");
                *counts.entry("request").or_insert(0) += 1;
            }
            assert!(
                take(&mut server, &request).1.is_none() && take(&mut client, &server.drain()).1.is_none()
            );
            assert!(take(&mut server, &client.drain()).1.is_none());
        }
        let mut pieces = Vec::new();
        for record in &records[2..] {
            let place = format!("{file}, {}", record.name);
            let session = if record.from_server { &mut server } else { &mut client };
            let compressed = record.value["ws"]["rsv1"] == true
                || record.value["ws"]["compressed"] == true
                || record.flags() & 0x04 != 0
                || !pieces.is_empty() && record.name.contains("Refresh") && file.contains("deflate");
            if record.is_handshake()
                || compressed
                || session.negotiated().unwrap().compression != Compression::None
            {
                continue;
            }
            let (kind, message) = match record.value["text"].as_str() {
                Some(text) => ("text", text.as_bytes().to_vec()),
                None if record.value["frame"]["kind"] == "data" => ("frame", unmasked(&record.bytes)),
                None => {
                    if record.name.contains("not the last frame") {
                        pieces.push(unmasked(&whole(record)));
                    }
                    continue;
                }
            };
            let header = if kind == "text" { 0 } else { message.len() - record.messages()[0].len() };
            assert_eq!(session.output().send(&message[header..]), Sent::Queued, "{place}");
            let mut made = session.drain();
            for piece in pieces.drain(..) {
                assert_eq!(unmasked(&made.drain(..piece.len()).collect::<Vec<_>>()), piece, "{place}");
                *counts.entry("piece").or_insert(0) += 1;
            }
            assert_eq!(unmasked(&made), unmasked(&whole(record)), "{place}");
            *counts.entry(kind).or_insert(0) += 1;
        }
    }
    println!("{counts:?}");
    if !counts.is_empty() {
        assert!(counts["text"] > 100 && counts["frame"] > 20 && counts["piece"] > 0, "{counts:?}");
    }
}
