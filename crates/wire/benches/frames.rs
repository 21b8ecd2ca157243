//! The cost of RSSL per message without a socket: framing, and reading frames. For instruction counts (`make
//! instructions`); the bench `rssl` measures times, compression, and sockets.
//!
//! ```text
//! cargo bench -p tapeline-wire --bench frames -- [--core N] [--seconds S] [--repeats N] [--json]
//!     [--case WHAT/BYTES/INPUT] [--rounds N]
//! ```
//!
//! `send` passes a message to a session, `claim` writes it in the output buffer, `take` reads it from
//! received bytes, `next` returns it as an event of a reactor with one connection in memory. Once per 64 messages, `send`
//! and `claim` also drain the waiting bytes, and `next` has the bytes of the next 64 delivered, waits for and reads them.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

// The shared harness of all benches that count instructions.
#[path = "../../omm/benches/harness/mod.rs"]
mod harness;

use std::hint::black_box;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use harness::Bench;
use tapeline_measure::Nanos;
use tapeline_wire::rssl::{
    ConnectionSettings, ConnectionType, Event, FarEnd, Reactor, Sent, Session, SubProtocol, Version,
};

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
    let (mut reactor, far, wire) = reactor();
    bench.add(("next", MESSAGE.len(), "plain"), MESSAGE.len() as f64, |place| {
        if place.is_multiple_of(BATCH) {
            far.deliver(&wire);
        }
        loop {
            match reactor.next(NOW) {
                Some((_, Event::Message(message), _)) => return message.len() as u64,
                Some(other) => panic!("{other:?}"),
                None => reactor.wait(Duration::ZERO).unwrap(),
            }
        }
    });
    bench.print();
}

/// Returns a reactor with an open connection in memory, the connection's far end, and the bytes of 64 messages.
fn reactor() -> (Reactor, FarEnd, Vec<u8>) {
    let settings = Arc::new(ConnectionSettings::default());
    let mut reactor = Reactor::new(1).unwrap();
    let far = reactor.accept_in_memory(SocketAddr::from(([10, 0, 0, 1], 1)), &settings, NOW);
    far.set_capacity(1 << 20);
    let mut client = Session::client(settings, Version::V14, NOW);
    while !client.is_open() {
        far.deliver(&client.drain());
        reactor.wait(Duration::ZERO).unwrap();
        reactor.each(NOW, |_, _, _| {});
        reactor.flush();
        let _ = client.take(&mut far.take_sent(), NOW).unwrap();
    }
    for _ in 0..BATCH {
        assert_eq!(client.output().send(&MESSAGE), Sent::Queued);
    }
    (reactor, far, client.drain())
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
