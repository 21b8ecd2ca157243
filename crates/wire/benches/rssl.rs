//! The cost of RSSL per message: framing, reading frames, and loopback between two reactors.
//!
//! The first table is without sockets: messages of 100 bytes, 64 per batch, from one session to another. Half
//! of a message's bytes are random, so that compression has some effect, but not full effect. The second
//! table is one message for many streams: copied, given its stream's id, and sent; or copied into the output
//! buffer and given the id there. The third is one connection with a reactor in a thread at each end; the
//! first sends as much as fits. Bounded by counts; about ten seconds.
#![allow(clippy::print_stdout, reason = "a bench prints its tables")]

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tapeline_measure::{Clock, Nanos, cores, monotonic_ns, pin};
use tapeline_wire::rssl::{
    Compression, ConnectionSettings, ConnectionType, Event, Reactor, Sent, Session, SubProtocol, Version,
};

const TURNS: usize = 7;
const BATCH: usize = 64;
/// Number of different messages: more than zlib's window.
const KINDS: usize = 16 * BATCH;
/// About the size of an update with a dozen fields.
const MESSAGE: usize = 100;

/// A way to carry messages.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    compression: Compression,
    websocket: Option<SubProtocol>,
    packed: bool,
}

const PLAIN: Way = Way { name: "plain", compression: Compression::None, websocket: None, packed: false };
const WAYS: [Way; 8] = [
    PLAIN,
    Way { name: "packed", packed: true, ..PLAIN },
    Way { name: "LZ4, packed", compression: Compression::Lz4, packed: true, ..PLAIN },
    Way { name: "zlib", compression: Compression::Zlib, ..PLAIN },
    Way { name: "zlib, packed", compression: Compression::Zlib, packed: true, ..PLAIN },
    Way { name: "rssl.rwf", websocket: Some(SubProtocol::Rwf), ..PLAIN },
    Way { name: "rssl.rwf, packed", websocket: Some(SubProtocol::Rwf), packed: true, ..PLAIN },
    Way { name: "tr_json2", websocket: Some(SubProtocol::TrJson2), ..PLAIN },
];

impl Way {
    fn settings(self) -> Arc<ConnectionSettings> {
        Arc::new(ConnectionSettings {
            compression_type: self.compression,
            // zlib's own default takes twice as long for a few percent.
            compression_level: 1,
            connection_type: match self.websocket {
                Some(_) => ConnectionType::WebSocket,
                None => ConnectionType::Socket,
            },
            ws_protocols: self.websocket.into_iter().collect(),
            ..ConnectionSettings::default()
        })
    }

    fn send(self, output: &mut tapeline_wire::rssl::Output, message: &[u8]) -> Sent {
        if self.packed { output.pack(message) } else { output.send(message) }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo test --benches` also runs this, as a check: a hundredth is enough.
    let share = if std::env::args().any(|argument| argument == "--bench") { 1 } else { 100 };
    let cores = cores();
    // If pinning is not permitted, the figures are noisier.
    let _ = pin(cores[0]);
    let messages = messages();
    println!("ns a message of {MESSAGE} bytes; median of {TURNS} turns (least to most); core {}", cores[0]);
    println!("{:>18} {:>24} {:>24} {:>14}", "", "into frames", "out of frames", "bytes each");
    let mut found = [const { (Vec::new(), Vec::new(), 0.0) }; WAYS.len()];
    for _ in 0..TURNS {
        for (way, (sent, taken, bytes)) in WAYS.iter().zip(&mut found) {
            let one = without_sockets(*way, &messages, 2_000 / share)?;
            sent.push(one.0);
            taken.push(one.1);
            *bytes = one.2;
        }
    }
    for (way, (sent, taken, bytes)) in WAYS.iter().zip(&mut found) {
        println!("{:>18} {:>24} {:>24} {bytes:>14.1}", way.name, shown(sent), shown(taken));
    }

    println!("\nns a stream, to send one message to many; plain frames");
    println!("{:>18} {:>24} {:>24} {:>14}", "bytes", "copied and sent", "copied into frames", "ratio");
    for size in [100, 400, 1500] {
        let (mut sent, mut claimed, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for turn in 0..TURNS {
            let [one, other] =
                [turn % 2 == 0, turn % 2 == 1].map(|in_place| to_many(size, in_place, 2_000 / share));
            let (copied, in_place) = if turn % 2 == 0 { (other?, one?) } else { (one?, other?) };
            sent.push(copied);
            claimed.push(in_place);
            ratios.push(copied / in_place);
        }
        println!(
            "{size:>18} {:>24} {:>24} {:>14}",
            shown(&mut sent),
            shown(&mut claimed),
            shown(&mut ratios)
        );
    }

    let (first, last) = (cores[0], cores[cores.len() - 1]);
    println!(
        "\nns a message of {MESSAGE} bytes over loopback, a reactor at each end; cores {first} and {last}"
    );
    println!("{:>18} {:>24}", "", "received");
    let mut found = [const { Vec::new() }; WAYS.len()];
    for _ in 0..TURNS.min(5) {
        for (way, received) in WAYS.iter().zip(&mut found) {
            received.push(over_loopback(*way, &messages, 200_000 / share, first, last)?);
        }
    }
    for (way, received) in WAYS.iter().zip(&mut found) {
        println!("{:>18} {:>24}", way.name, shown(received));
    }
    Ok(())
}

/// Half of the bytes are random; no control characters, as in JSON texts.
fn messages() -> Vec<Vec<u8>> {
    let mut state = 1_u64;
    let mut letter = |at: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if at.is_multiple_of(2) { b'a' + (state >> 60) as u8 } else { b'0' + (at % 10) as u8 }
    };
    (0..KINDS).map(|_| (0..MESSAGE).map(&mut letter).collect()).collect()
}

/// Returns both ends of an open connection.
fn opened(way: Way) -> Result<(Session, Session), Box<dyn Error>> {
    let now = Nanos(0);
    let mut client = Session::client(way.settings(), Version::V14, now);
    let mut server = Session::server(way.settings(), now);
    while !(client.is_open() && server.is_open()) {
        take(&mut server, client.drain())?;
        take(&mut client, server.drain())?;
    }
    Ok((client, server))
}

/// Returns the ns to send one message under the ids of many streams.
fn to_many(size: usize, in_place: bool, batches: usize) -> Result<f64, Box<dyn Error>> {
    let (_client, mut server) = opened(PLAIN)?;
    let (message, mut copy) = (vec![b'x'; size], vec![0; size]);
    let mut spent = 0;
    for batch in 0..batches {
        let begun = monotonic_ns();
        for stream in 0..BATCH {
            let id = (batch * BATCH + stream) as u32;
            let output = server.output();
            let room = if in_place { output.claim(size).ok_or("no room")? } else { &mut copy[..] };
            room.copy_from_slice(black_box(&message));
            room[3..7].copy_from_slice(&id.to_be_bytes());
            if in_place {
                output.commit(size);
            } else {
                assert_eq!(output.send(&copy), Sent::Queued);
            }
        }
        spent += monotonic_ns() - begun;
        black_box(server.drain());
    }
    Ok(spent as f64 / (batches * BATCH) as f64)
}

/// Returns the ns to send a message, the ns to receive it, and its bytes on the wire.
fn without_sockets(
    way: Way,
    messages: &[Vec<u8>],
    batches: usize,
) -> Result<(f64, f64, f64), Box<dyn Error>> {
    let (mut client, mut server) = opened(way)?;
    let (mut sending, mut taking, mut bytes, mut received) = (0, 0, 0, 0);
    for batch in messages.chunks(BATCH).cycle().take(batches) {
        let begun = monotonic_ns();
        for message in batch {
            assert_eq!(way.send(server.output(), message), Sent::Queued);
        }
        let sent = monotonic_ns();
        let wire = server.drain();
        bytes += wire.len();
        let drained = monotonic_ns();
        received += take(&mut client, wire)?;
        taking += monotonic_ns() - drained;
        sending += sent - begun;
    }
    assert_eq!(received, batches * BATCH);
    let each = |sum: f64| sum / received as f64;
    Ok((each(sending as f64), each(taking as f64), each(bytes as f64)))
}

fn take(session: &mut Session, mut wire: Vec<u8>) -> Result<usize, Box<dyn Error>> {
    let (mut at, mut messages) = (0, 0);
    loop {
        let (consumed, event) = session.take(&mut wire[at..], Nanos(0))?;
        at += consumed;
        match event {
            Some(Event::Message(message)) => messages += usize::from(message.len() == MESSAGE),
            Some(_) => {}
            None => return Ok(messages),
        }
    }
}

/// Returns the average ns from one received message to the next.
fn over_loopback(
    way: Way,
    messages: &[Vec<u8>],
    count: usize,
    first: usize,
    last: usize,
) -> Result<f64, Box<dyn Error>> {
    let mut server = Reactor::new(10)?;
    let address = server.listen("127.0.0.1:0".parse()?, &way.settings())?;
    thread::scope(|scope| {
        let receiver = scope.spawn(move || -> Result<f64, tapeline_wire::Error> {
            let _ = pin(last);
            let clock = Clock::calibrate();
            let mut client = Reactor::new(10)?;
            client.connect(address, &way.settings(), clock.now())?;
            let (mut begun, mut received) = (0, 0);
            while received < count {
                client.wait(Duration::from_secs(1))?;
                while let Some((_, event, _)) = client.next(clock.now()) {
                    if let Event::Message(_) = event {
                        if received == 0 {
                            begun = monotonic_ns();
                        }
                        received += 1;
                    }
                }
            }
            Ok((monotonic_ns() - begun) as f64 / count as f64)
        });
        let _ = pin(first);
        let clock = Clock::calibrate();
        let (mut to, mut sent) = (None, 0);
        while !receiver.is_finished() {
            server.wait(if sent < count { Duration::ZERO } else { Duration::from_millis(1) })?;
            while let Some((id, event, _)) = server.next(clock.now()) {
                if let Event::Connected(_) = event {
                    to = Some(id);
                }
            }
            let Some(mut sender) = to.and_then(|id| server.sender(id)) else { continue };
            for _ in 0..BATCH * 16 {
                let message = &messages[sent % KINDS];
                let taken = if way.packed { sender.pack(message) } else { sender.send(message) };
                if taken != Sent::Queued {
                    break;
                }
                sent += 1;
            }
        }
        Ok(receiver.join().map_err(|_| "the receiver stopped")??)
    })
}

fn shown(found: &mut [f64]) -> String {
    found.sort_by(f64::total_cmp);
    let (least, most) = (found[0], found[found.len() - 1]);
    format!("{:.1} ({least:.1} to {most:.1})", found[found.len() / 2])
}
