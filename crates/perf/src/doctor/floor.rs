//! The jitter floor: the time that the cores take away from a thread that only watches the clock.

use std::time::Duration;

use crate::jitter;
use anyhow::Context;
use tapeline_console::stop::Stop;
use tapeline_measure::{Clock, Jitter, cores, figures, floor_ns};

use super::finding::Finding;
use super::machine::{Machine, cores_text};

/// A ring passes a message on in a tenth of this (docs/benchmarks/ring.md).
const FLOOR_NS: u64 = 1_000;
/// Time slices of the kernel and of a host are longer, interrupts are shorter.
const LONGEST_NS: u64 = 100_000;

/// Measures the quiet cores, or all cores if none is quiet; shows progress on a terminal.
pub(super) fn measured(machine: &Machine, duration: Duration, clock: &Clock) -> anyhow::Result<Finding> {
    let watched = if machine.quiet.is_empty() { &machine.cores } else { &machine.quiet };
    let usable = cores();
    let others: Vec<usize> = watched.iter().copied().filter(|core| !usable.contains(core)).collect();
    if !others.is_empty() {
        // A thread is put on isolated cores only on request.
        let found = format!("this process may not use {}: begin with `taskset -c`", cores_text(&others));
        return Ok(Finding::unknown(format!("{found} {}", figures::list(watched))));
    }
    let stop = Stop::on_signals().context("cannot listen for signals")?;
    let gaps_from = Duration::from_nanos(Jitter::THRESHOLD_NS);
    let measured = jitter::measure(watched, duration, gaps_from, clock, &stop)?;
    let longest = measured.iter().map(|core| core.max_ns).max().unwrap_or(0);
    let elapsed = measured.iter().map(|core| core.elapsed_ns).max().unwrap_or(0);
    let found = format!(
        "{} at p99, longest gap {} ({}, {})",
        figures::duration(floor_ns(&measured, 0.99)),
        figures::duration(longest),
        cores_text(watched),
        figures::duration(elapsed)
    );
    Ok(judged(found, floor_ns(&measured, 0.99), longest, watched))
}

/// Judges the floor at the 99th percentile and the longest gap, in nanoseconds.
pub(super) fn judged(found: String, floor_ns: u64, longest_ns: u64, watched: &[usize]) -> Finding {
    let better =
        format!("{} at p99, gaps up to {}", figures::duration(FLOOR_NS), figures::duration(LONGEST_NS));
    let why = "no latency that is measured on these cores can be better; a ring hands a message over in about a hundred \
               nanoseconds (docs/benchmarks/ring.md)";
    let command = format!("tapeline jitter --cpus {} --duration 1m", figures::list(watched));
    Finding::judged(floor_ns <= FLOOR_NS && longest_ns <= LONGEST_NS, found, better, why).by(command)
}
