//! The cost of RSSL per message without a socket: framing, and reading frames. For instruction counts (`make
//! instructions`); the bench `rssl` measures times, compression, and sockets.
//!
//! ```text
//! cargo bench -p tapeline-wire --bench frames -- [--core N] [--seconds S] [--repeats N] [--json]
//!     [--case WHAT/BYTES/INPUT] [--rounds N]
//! ```
//!
//! `send` passes a message to a session, `claim` writes it in the output buffer, `take` reads it from
//! received bytes. The counts of `send` and `claim` include draining the waiting bytes, once per 64 messages.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

// The shared harness of all benches that count instructions.
#[path = "../../omm/benches/harness/mod.rs"]
mod harness;

use std::hint::black_box;
use std::sync::Arc;

use harness::Bench;
use tapeline_measure::Nanos;
use tapeline_wire::rssl::{ConnectionSettings, ConnectionType, Event, Sent, Session, SubProtocol, Version};

const NOW: Nanos = Nanos(0);
/// About the size of an update with a dozen fields.
const MESSAGE: [u8; 100] = [b'x'; 100];
/// Messages per drain of the waiting bytes.
const BATCH: usize = 64;

fn main() {
    let mut bench = Bench::new("frames");
    let websocket = |protocol| ConnectionSettings {
        connection_type: ConnectionType::WebSocket,
        ws_protocols: vec![protocol],
        ..ConnectionSettings::default()
    };
    let ways = [
        ("plain", ConnectionSettings::default()),
        ("rwf", websocket(SubProtocol::Rwf)),
        ("json", websocket(SubProtocol::TrJson2)),
    ];
    for (input, settings) in ways {
        let (mut client, mut server) = opened(settings);
        bench.add(("send", MESSAGE.len(), input), MESSAGE.len() as f64, |place| {
            let sent = server.output().send(black_box(&MESSAGE));
            assert_eq!(sent, Sent::Queued);
            drained(&mut server, place)
        });
        if input == "plain" {
            bench.add(("claim", MESSAGE.len(), input), MESSAGE.len() as f64, |place| {
                let output = server.output();
                output.claim(MESSAGE.len()).unwrap().copy_from_slice(black_box(&MESSAGE));
                output.commit(MESSAGE.len());
                drained(&mut server, place)
            });
        }
        server.drain();
        assert_eq!(server.output().send(&MESSAGE), Sent::Queued);
        let mut wire = server.drain();
        bench.add(("take", MESSAGE.len(), input), MESSAGE.len() as f64, |_| {
            match client.take(black_box(&mut wire), NOW).unwrap() {
                (consumed, Some(Event::Message(message))) => (consumed + message.len()) as u64,
                other => panic!("{other:?}"),
            }
        });
    }
    bench.print();
}

fn drained(server: &mut Session, place: usize) -> u64 {
    if place % BATCH == BATCH - 1 { server.drain().len() as u64 } else { 0 }
}

/// Returns both ends of an open connection.
fn opened(settings: ConnectionSettings) -> (Session, Session) {
    let settings = Arc::new(settings);
    let mut client = Session::client(settings.clone(), Version::V14, NOW);
    let mut server = Session::server(settings, NOW);
    while !(client.is_open() && server.is_open()) {
        carry(&mut client, &mut server);
        carry(&mut server, &mut client);
    }
    (client, server)
}

fn carry(from: &mut Session, to: &mut Session) {
    let mut wire = from.drain();
    let mut at = 0;
    while let (consumed, Some(_)) = to.take(&mut wire[at..], NOW).unwrap() {
        at += consumed;
    }
}
