//! The listening end: it counts, and answers with no more bytes than it was asked with.

use std::net::SocketAddrV4;
use std::time::Duration;

use tapeline_console::failure::of_socket;
use tapeline_console::stop::Stop;
use tapeline_measure::{Clock, Nanos};
use tapeline_wire::udp::{Batch, ReceiveOptions, UdpReceiver};

use super::datagram::{Head, LEAST_BYTES, ProbeKind, write_counts};
use super::tally::StepTally;

/// Measurements at once; the one that was silent for longest makes room for another.
const MOST_MEASUREMENTS: usize = 16;
const BATCH_SLOTS: usize = 64;
const SLOT_BYTES: usize = 65_536;
/// The socket's buffer: that of a line.
const RECEIVE_BUFFER: usize = 16 << 20;
/// The longest wait before a signal is looked for.
const PATIENCE: Duration = Duration::from_millis(100);
/// After so long a silence of its asking end a measurement is over, once a step has begun: all datagrams that say so may have been lost.
const SILENCE_NS: i64 = 10_000_000_000;

/// One measurement of one asking end.
struct Measurement {
    id: u64,
    step: u32,
    tally: StepTally,
    /// Datagrams that the host had dropped before the step.
    dropped_before: u64,
    heard: Nanos,
}

/// Listens until a signal arrives; with `once` until a measurement is over, or its asking end is silent.
pub(super) fn listen(address: SocketAddrV4, interface: &str, once: bool, stop: &Stop) -> anyhow::Result<()> {
    let options = ReceiveOptions {
        interface: interface.to_owned(),
        receive_buffer: RECEIVE_BUFFER,
        ..ReceiveOptions::new(address)
    };
    let mut receiver = UdpReceiver::open(&options).map_err(of_socket)?;
    anstream::eprintln!("listening at {address}");
    if let Some(advice) = receiver.advice() {
        anstream::eprintln!("warning: {advice}");
    }
    let (clock, mut batch) = (Clock::calibrate(), Batch::new(BATCH_SLOTS, SLOT_BYTES));
    let mut measurements: Vec<Measurement> = Vec::new();
    while !stop.requested() {
        if receiver.receive(&mut batch).map_err(of_socket)? == 0 {
            let begun = measurements.iter().filter(|measurement| measurement.step > 0);
            let last = begun.map(|measurement| measurement.heard).max();
            if once && last.is_some_and(|heard| clock.now().since(heard) >= SILENCE_NS) {
                anstream::eprintln!(
                    "warning: the asking end has been silent for 10 s: the measurement is over"
                );
                return Ok(());
            }
            receiver.wait(PATIENCE);
            continue;
        }
        let now = clock.now();
        for datagram in batch.iter() {
            let Some(head) = Head::read(datagram.bytes) else { continue };
            let asker = SocketAddrV4::new(*datagram.source.ip(), head.port);
            let measurement = found(&mut measurements, &head, asker, now);
            if measurement.step != head.step && head.kind == ProbeKind::Data {
                measurement.step = head.step;
                measurement.tally = StepTally::new();
                measurement.dropped_before = receiver.kernel_drops();
            }
            let mut answer = [0; LEAST_BYTES];
            match head.kind {
                ProbeKind::Data => {
                    let at = datagram.received.unwrap_or(now);
                    measurement.tally.take(head.seq, datagram.bytes.len(), at);
                    continue;
                }
                ProbeKind::Ping => Head { kind: ProbeKind::Pong, ..head }.write(&mut answer),
                ProbeKind::Ask => {
                    Head { kind: ProbeKind::Counts, ..head }.write(&mut answer);
                    let dropped = receiver.ask_kernel_drops().saturating_sub(measurement.dropped_before);
                    write_counts(&mut answer, measurement.tally.counts(dropped));
                }
                ProbeKind::Over if once => return Ok(()),
                _ => continue,
            }
            if datagram.bytes.len() >= LEAST_BYTES {
                // An answer that cannot be sent is one that is lost: it is asked for again.
                let _ = receiver.send_to(&answer, asker);
            }
        }
    }
    Ok(())
}

/// Finds a measurement, or begins it.
fn found<'a>(
    all: &'a mut Vec<Measurement>,
    head: &Head,
    asker: SocketAddrV4,
    now: Nanos,
) -> &'a mut Measurement {
    let at = all.iter().position(|measurement| measurement.id == head.measurement);
    let at = at.unwrap_or_else(|| {
        if all.len() >= MOST_MEASUREMENTS
            && let Some(oldest) = (0..all.len()).min_by_key(|at| all[*at].heard)
        {
            all.swap_remove(oldest);
        }
        anstream::eprintln!("{asker} measures");
        all.push(Measurement {
            id: head.measurement,
            step: 0,
            tally: StepTally::new(),
            dropped_before: 0,
            heard: now,
        });
        all.len() - 1
    });
    all[at].heard = now;
    &mut all[at]
}
