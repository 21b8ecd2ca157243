//! RSSL allocates nothing per message once a connection is open: framing and reading frames, with every kind
//! of transport.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use allocation_counter::measure;
use tapeline_measure::Nanos;
use tapeline_wire::rssl::{
    Compression, ConnectionSettings, ConnectionType, Event, Output, Sent, Session, SubProtocol, Version,
};

const NOW: Nanos = Nanos(0);
const MESSAGE: [u8; 400] = [b'x'; 400];
/// Messages per batch, and batches; the first batch may fill retained memory.
const BATCH: usize = 20;
const BATCHES: usize = 5;

fn take(session: &mut Session, wire: &mut [u8]) -> usize {
    let (mut at, mut messages) = (0, 0);
    loop {
        let (consumed, event) = session.take(&mut wire[at..], NOW).unwrap();
        at += consumed;
        match event {
            Some(Event::Message(message)) => messages += usize::from(message == MESSAGE),
            Some(_) => {}
            None => return messages,
        }
    }
}

/// A way to send [`MESSAGE`].
type Send = fn(&mut Output) -> Sent;

/// Returns the allocations for the messages that a server sends, and for receiving them.
fn counted(settings: ConnectionSettings, send: Send) -> (u64, u64) {
    let settings = Arc::new(settings);
    let mut client = Session::client(settings.clone(), Version::V14, NOW);
    let mut server = Session::server(settings, NOW);
    while !(client.is_open() && server.is_open()) {
        take(&mut server, &mut client.drain());
        take(&mut client, &mut server.drain());
    }
    let (mut sending, mut taking) = (0, 0);
    for batch in 0..BATCHES {
        let sent = measure(|| {
            for _ in 0..BATCH {
                assert_eq!(send(server.output()), Sent::Queued);
            }
        });
        let mut wire = server.drain();
        let mut messages = 0;
        let taken = measure(|| messages = take(&mut client, &mut wire));
        assert_eq!(messages, BATCH);
        if batch > 0 {
            sending += sent.count_total;
            taking += taken.count_total;
        }
    }
    (sending, taking)
}

fn plain(output: &mut Output) -> Sent {
    output.send(&MESSAGE)
}

fn packed(output: &mut Output) -> Sent {
    output.pack(&MESSAGE)
}

fn in_place(output: &mut Output) -> Sent {
    output.claim(MESSAGE.len() + 8).unwrap()[..MESSAGE.len()].copy_from_slice(&MESSAGE);
    output.commit(MESSAGE.len());
    Sent::Queued
}

#[test]
fn nothing_is_allocated_for_a_message() {
    let compressed =
        |compression_type| ConnectionSettings { compression_type, ..ConnectionSettings::default() };
    let websocket = |protocol| ConnectionSettings {
        connection_type: ConnectionType::WebSocket,
        ws_protocols: [protocol].into_iter().collect(),
        ..ConnectionSettings::default()
    };
    let ways: [(&str, ConnectionSettings, Send); 9] = [
        ("plain", ConnectionSettings::default(), plain),
        ("written in place", ConnectionSettings::default(), in_place),
        ("packed", ConnectionSettings::default(), packed),
        ("LZ4", compressed(Compression::Lz4), plain),
        ("LZ4, packed", compressed(Compression::Lz4), packed),
        ("zlib", compressed(Compression::Zlib), plain),
        ("rssl.rwf", websocket(SubProtocol::Rwf), plain),
        ("rssl.rwf, packed", websocket(SubProtocol::Rwf), packed),
        ("tr_json2", websocket(SubProtocol::TrJson2), plain),
    ];
    for (name, settings, send) in ways {
        assert_eq!(counted(settings, send), (0, 0), "{name}: allocations to send, to take");
    }
}

#[test]
fn the_counter_counts() {
    let (sending, taking) =
        counted(ConnectionSettings::default(), |output| output.send(&std::hint::black_box(vec![b'x'; 400])));
    assert_eq!((sending, taking), (((BATCHES - 1) * BATCH) as u64, 0));
}
