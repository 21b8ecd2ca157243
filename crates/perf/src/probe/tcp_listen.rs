//! The listening end over TCP: the sending end of a line. One measurement after the other.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use anyhow::ensure;
use tapeline_console::failure::of_socket;
use tapeline_console::stop::Stop;
use tapeline_measure::{Nanos, Pacer, Waiting};
use tapeline_wire::tcp::{Interest, Listener, wait};
use tapeline_wire::tls::Tls;

use super::datagram::{COUNTS, Head, LEAST_BYTES, ProbeKind};
use super::tcp::{INPUT_BYTES, LOOK, Peer};
use super::{HIGHEST_RATE, LONGEST_DATAGRAM, LONGEST_STEP};

/// How long an asking end may be silent, or take nothing, before another has its turn.
const PATIENCE: Duration = Duration::from_secs(5);
/// Datagrams that are sent by one system call.
const BATCH: u64 = 64;

/// Listens until a signal arrives; with `once` until a measurement is over.
pub(super) fn listen(address: SocketAddr, tls: Option<&Tls>, once: bool, stop: &Stop) -> anyhow::Result<()> {
    let mut listener = Listener::open(address).map_err(of_socket)?;
    anstream::eprintln!("listening at {}", listener.local_address());
    while !stop.requested() {
        let accepted = match tls {
            Some(tls) => listener.accept_tls(tls, INPUT_BYTES),
            None => listener.accept(INPUT_BYTES),
        };
        let Some(stream) = accepted.map_err(of_socket)? else {
            wait([(listener.as_fd(), Interest::Read)], LOOK);
            continue;
        };
        let asker = stream.peer_address();
        match serve(Peer::new(stream), stop) {
            Ok(()) if once => break,
            Ok(()) => {}
            Err(error) => anstream::eprintln!("warning: {asker}: {error:#}"),
        }
    }
    Ok(())
}

/// Answers one asking end.
fn serve(mut peer: Peer, stop: &Stop) -> anyhow::Result<()> {
    let mut is_told = false;
    while let Some(asked) = peer.hear(PATIENCE, stop)? {
        if !std::mem::replace(&mut is_told, true) {
            anstream::eprintln!("{} measures", peer.stream.peer_address());
        }
        match asked.head.kind {
            ProbeKind::Ping => {
                peer.put(Head { kind: ProbeKind::Pong, ..asked.head }, [0; COUNTS], LEAST_BYTES);
            }
            ProbeKind::Ask => send_step(&mut peer, asked.head, asked.numbers, stop)?,
            _ => return Ok(()),
        }
        peer.flush(PATIENCE, stop)?;
    }
    Ok(())
}

/// Sends the datagrams of a step, and then their number.
fn send_step(
    peer: &mut Peer,
    head: Head,
    [rate, size, ns, ..]: [u64; COUNTS],
    stop: &Stop,
) -> anyhow::Result<()> {
    let is_known = rate <= HIGHEST_RATE
        && (LEAST_BYTES as u64..=LONGEST_DATAGRAM.into()).contains(&size)
        && ns <= LONGEST_STEP.as_nanos() as u64;
    ensure!(is_known, "it asks for a step that no probe asks for");
    let start = peer.clock.now();
    let pacer = Pacer::per_second(rate, start);
    let is_paced = rate > 0;
    let total = if is_paced { pacer.due_by(start + ns).saturating_sub(1).max(1) } else { u64::MAX };
    // A step whose last datagrams are late by a little is whole.
    let end = if is_paced { start + ns + ns / 10 } else { start + ns };
    let mut next = 0;
    while next < total && !stop.requested() {
        let now = if is_paced {
            pacer.wait(&peer.clock, pacer.due(next), Waiting::Yield)
        } else {
            peer.clock.now()
        };
        if now >= end {
            break;
        }
        let count = if is_paced { (pacer.due_by(now).min(total) - next).min(BATCH) } else { BATCH };
        for seq in next..next + count {
            // What a path that is too slow delays is late from when it was due.
            let Nanos(due) = if is_paced { pacer.due(seq) } else { now };
            let head = Head { seq, kind: ProbeKind::Data, ..head };
            peer.put(head, [due, 0, 0, 0, 0, 0, 0, 0], size as usize);
        }
        peer.flush(PATIENCE, stop)?;
        next += count;
    }
    let unsent = if is_paced { total - next } else { 0 };
    peer.put(Head { kind: ProbeKind::Counts, ..head }, [next, unsent, 0, 0, 0, 0, 0, 0], LEAST_BYTES);
    Ok(())
}
