//! The limit of latency: one cache line, and nothing around it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use anyhow::Context;
use tapeline_measure::{Recorder, Ticks, pin, ticks_ordered};

use super::{Place, Scope, System};
use crate::case::{Latency, Metric, Received, Sent};
use crate::measuring::{clock, paced};
use crate::stage::Stage;

pub(crate) const SYSTEM: System = System {
    name: "line",
    title: "limit: store to load of a line",
    peer: "limits",
    place: Place::Threads,
    scope: Scope::Line,
    settings: "a stamp stored in a line by one core until the other has it, both stamps included, no queue",
    run,
};

/// Processors fetch lines in pairs.
#[repr(align(128))]
struct Line(AtomicU64);

/// The stamp that ends a run: the highest.
const END: u64 = u64::MAX;
/// Round trips between two readings of the clock: one alone would be shorter than the readings.
const BLOCK: u64 = 1000;

fn run(stage: &Stage) -> anyhow::Result<()> {
    let received = match stage.case.metric {
        Metric::Latency { rate_hz } => visibility(stage, rate_hz)?,
        _ => bounce(stage)?,
    };
    stage.tell(received)
}

/// Runs `far` on the receiver's core and `near` on the sender's.
fn on_two_cores<R: Send>(
    stage: &Stage,
    near: impl FnOnce() -> anyhow::Result<()>,
    far: impl FnOnce() -> R + Send,
) -> anyhow::Result<R> {
    thread::scope(|scope| {
        let (pinned, is_pinned) = std::sync::mpsc::channel();
        let other = scope.spawn(move || {
            let pinning = pin(stage.case.cores[1]);
            // Fails only when the near side is gone.
            let _ = pinned.send(());
            pinning.map(|()| far())
        });
        is_pinned.recv().context("the far thread is gone")?;
        stage.begin(0)?;
        near()?;
        Ok(other.join().map_err(|_| anyhow::anyhow!("the far thread broke down"))??)
    })
}

fn visibility(stage: &Stage, rate_hz: u64) -> anyhow::Result<Received> {
    let clock = clock(&stage.case)?;
    let line = &Line(AtomicU64::new(0));
    let mut sent = Sent::default();
    let near = || {
        let store = |_, stamp: Ticks| line.0.store(stamp.0, Ordering::Release);
        paced(&clock, rate_hz, stage.case.measured_ms, store).tell(&mut sent);
        line.0.store(END, Ordering::Release);
        Ok(())
    };
    let latency = on_two_cores(stage, near, || {
        let mut recorder = Recorder::new();
        let mut seen = 0;
        while seen != END {
            let stamp = line.0.load(Ordering::Acquire);
            if stamp != seen {
                let now = ticks_ordered();
                if stamp != END {
                    recorder.record(clock.ns_between(Ticks(stamp), now));
                }
                seen = stamp;
            }
        }
        recorder
    })?;
    Ok(Received { latency: Latency::of(&latency), messages: latency.samples(), ..Received::default() })
}

/// Half a round trip of a line that both sides write, as means of blocks: `rdtsc` would float above a single one.
fn bounce(stage: &Stage) -> anyhow::Result<Received> {
    let clock = clock(&stage.case)?;
    let line = &Line(AtomicU64::new(0));
    let mut means = Recorder::new();
    let near = || {
        let until = ticks_ordered().0 + clock.ticks_in(stage.case.measured_ms * 1_000_000);
        let mut turn = 0;
        loop {
            let start = ticks_ordered();
            for _ in 0..BLOCK {
                line.0.store(turn + 1, Ordering::Release);
                turn += 2;
                while line.0.load(Ordering::Acquire) != turn {}
            }
            let end = ticks_ordered();
            means.record(clock.ns_between(start, end) / (2 * BLOCK as i64));
            if end.0 >= until {
                break;
            }
        }
        line.0.store(END, Ordering::Release);
        Ok(())
    };
    on_two_cores(stage, near, || {
        loop {
            match line.0.load(Ordering::Acquire) {
                END => return,
                turn if turn % 2 == 1 => line.0.store(turn + 1, Ordering::Release),
                _ => {}
            }
        }
    })?;
    Ok(Received { latency: Latency::of(&means), messages: means.samples() * BLOCK, ..Received::default() })
}
