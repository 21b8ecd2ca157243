//! The lower bounds for any plant, measured in the same run: bare sending and receiving, bare decoding, the wire.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde::Serialize;
use tapeline_console::failure::of_socket;
use tapeline_measure::{Clock, monotonic_ns};
use tapeline_wire::udp::Batch;

use super::decoding::Account;
use super::plan::BurstPlan;
use super::round::sockets;
use crate::jitter::joined;

/// Overhead of a datagram on Ethernet, in bytes: UDP 8, IPv4 20, header 14, checksum 4, preamble 8, gap 12 (IEEE
/// 802.3).
const AROUND: u64 = 66;
/// Datagrams in one receive call, as in the pool.
const BATCH: usize = 64;
/// How long the bare receiver waits for the next datagram after the last one was sent.
const PATIENCE_NS: u64 = 500_000_000;

/// Lower bounds for the withheld datagrams.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Floor {
    /// Payload bytes of all withheld datagrams.
    pub(super) bytes: u64,
    pub(super) line_rate_bits: u64,
    /// Transmission time at the line rate, Ethernet overhead included.
    pub(super) line_ns: u64,
    /// Messages in all withheld datagrams.
    pub(super) messages: u64,
    /// Time of the same decoder over the same datagrams in memory, without sockets, pool or other threads.
    pub(super) decode_ns: u64,
    pub(super) decode_hz: f64,
}

impl Floor {
    /// Measures the decoder and calculates the rest.
    pub(super) fn of(plan: &BurstPlan, line_rate_bits: u64) -> Self {
        let stream = &plan.stream;
        let mut account = Account::new(plan.decode);
        let mut bytes = Vec::new();
        for number in 0..stream.opening() {
            bytes.clear();
            stream.append(number, 0, &mut bytes);
            account.datagram(&bytes);
        }
        bytes.clear();
        for number in stream.opening()..stream.opening() + plan.hold {
            stream.append(number, 0, &mut bytes);
        }
        let begun = monotonic_ns();
        for datagram in bytes.chunks_exact(stream.datagram_bytes()) {
            account.datagram(black_box(datagram));
        }
        let decode_ns = (monotonic_ns() - begun).max(1);
        black_box(&account);
        let messages = plan.hold * stream.messages;
        let on_the_wire = plan.hold * (stream.datagram_bytes() as u64 + AROUND);
        Self {
            bytes: bytes.len() as u64,
            line_rate_bits,
            line_ns: (on_the_wire as f64 * 8e9 / line_rate_bits as f64) as u64,
            messages,
            decode_ns,
            decode_hz: messages as f64 * 1e9 / decode_ns as f64,
        }
    }
}

/// Sends the withheld datagrams and only receives them. Returns the nanoseconds from the first send to the last
/// receive, or `None` if the kernel dropped some.
pub(super) fn bare(plan: &BurstPlan, clock: &Clock) -> anyhow::Result<Option<u64>> {
    let (mut receiver, mut gun) = sockets(plan)?;
    let stream = &plan.stream;
    let mut bytes = Vec::new();
    for number in stream.opening()..stream.opening() + plan.hold {
        stream.append(number, 0, &mut bytes);
    }
    // On a busy machine the sender may wait for its core, however long: only behind it does the time count.
    let is_sent = AtomicBool::new(false);
    thread::scope(|scope| {
        let receiving = scope.spawn(|| -> anyhow::Result<_> {
            plan.bind(1)?;
            let mut batch = Batch::new(BATCH, tapeline_wire::pool::SLOT_BYTES);
            let mut received = 0;
            let (mut last, mut idle_since) = (clock.now(), None);
            while received < plan.hold {
                let is_over = is_sent.load(Ordering::Acquire);
                let count = receiver.receive(&mut batch).map_err(of_socket)?;
                if count > 0 {
                    received += count as u64;
                    (last, idle_since) = (clock.now(), None);
                    continue;
                }
                let now = clock.now();
                if is_over && now.0 > idle_since.get_or_insert(now).0 + PATIENCE_NS {
                    return Ok(None);
                }
                thread::yield_now();
            }
            Ok(Some(last))
        });
        let sending = scope.spawn(|| -> anyhow::Result<_> {
            plan.bind(0)?;
            let begun = clock.now();
            let sent = gun.send(&bytes, stream.datagram_bytes()).map_err(of_socket);
            is_sent.store(true, Ordering::Release);
            sent.map(|_| begun)
        });
        let begun = joined(sending)?;
        let last = joined(receiving)?;
        Ok(last.map(|last| last.0.saturating_sub(begun.0)))
    })
}
