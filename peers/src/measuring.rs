//! The measuring loops: one sender's and one receiver's, shared by all systems.

use std::hint::{black_box, spin_loop};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use tapeline_measure::{Calibration, Clock, Lateness, Recorder, Ticks, ticks, ticks_ordered};

use crate::case::{Case, Latency, Metric, Received, Regime, Sent};
use crate::message::{END, Inspector, Message, Tally};

/// Messages between two looks at the clock at full speed.
const CHUNK: u64 = 1024;
/// Of how many paced messages one has its lateness noted, and above 20 million a second one is stamped: a stamp costs a
/// receiver more time than there is.
const SAMPLE: u64 = 16;
const ALL_STAMPED_TO_HZ: u64 = 20_000_000;
/// So many looks in vain are the pause after the warm-up, whose looks do not count: at least 0.1 ms, where the pause has 30.
const PAUSE_LOOKS: u64 = 100_000;
/// After the warm-up, for the receiver to read all: the largest ring of short messages takes 20 ms.
const DRAIN: Duration = Duration::from_millis(30);

/// The sending end of a system.
pub(crate) trait Sender {
    /// Waits until the receivers are there, where the system has such a thing.
    ///
    /// # Errors
    /// They do not come.
    fn connect(&mut self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Sends one message, visible on its own; `false` when there is no room now.
    fn send(&mut self, message: &Message<'_>) -> bool;

    /// Makes visible what is not. Only for what is no queue.
    fn flush(&mut self) {}

    /// Sends messages `first` to `first + count` at full speed; gives how often there was no room. The loop that a system
    /// in another language has in its own.
    #[inline]
    fn send_many(&mut self, first: u64, count: u64, body: &[u8], read_clock: bool) -> u64 {
        let mut refused = 0;
        for sequence in first..first + count {
            if read_clock {
                black_box(ticks());
            }
            let message = Message::new(sequence, 0, body);
            while !self.send(&message) {
                refused += 1;
                spin_loop();
            }
        }
        refused
    }
}

/// The receiving end of a system.
pub(crate) trait Receiver {
    /// Gives what is there, or a part of it, message by message and where it lies; the number of messages.
    fn receive(&mut self, each: impl FnMut(&[u8])) -> u64;

    /// Receives unstamped messages at full speed. The loop that a system in another language has in its own.
    #[inline]
    fn drain(&mut self, inspector: &mut Inspector) -> u64 {
        self.receive(|message| inspector.take(message))
    }
}

/// The clock of a case.
pub(crate) fn clock(case: &Case) -> anyhow::Result<Clock> {
    Ok(Clock::with(Calibration::from_words(case.clock).context("the case's clock is no clock")?))
}

/// Runs the sender of a case.
pub(crate) fn send(sender: &mut impl Sender, case: &Case) -> anyhow::Result<Sent> {
    let clock = clock(case)?;
    // The length is known at run time only.
    let len = black_box(case.metric.bytes());
    let body: Vec<u8> = (0..len).map(|at| at as u8).collect();
    sender.connect()?;
    let mut sent = Sent::default();
    full_speed(sender, &mut sent, &body, false, clock.ticks_in(case.warm_up_ms * 1_000_000));
    sender.flush();
    thread::sleep(DRAIN);
    let warm = sent.messages;
    // The sleep let the core go cold.
    spin_for(&clock, 2_000_000);
    let duration = clock.ticks_in(case.measured_ms * 1_000_000);
    let started = ticks_ordered();
    match case.metric {
        Metric::Throughput { regime, .. } => {
            full_speed(sender, &mut sent, &body, regime == Regime::Contended, duration);
        }
        Metric::FanOut { .. } => full_speed(sender, &mut sent, &body, false, duration),
        Metric::Latency { rate_hz } => {
            let every = if rate_hz > ALL_STAMPED_TO_HZ { SAMPLE } else { 1 };
            let mut refused = 0;
            let late = paced(&clock, rate_hz, case.measured_ms, |number, stamp| {
                let stamp = if number % every == 0 { stamp.0 } else { 0 };
                let message = Message::new(warm + number, stamp, &body);
                while !sender.send(&message) {
                    refused += 1;
                    spin_loop();
                }
            });
            sent.messages += late.messages;
            sent.refused += refused;
            late.tell(&mut sent);
        }
        Metric::Bounce => anyhow::bail!("a bounced line has no sender"),
    }
    let end = Message { first: END, stamp: sent.messages, last: started.0, body: &body };
    while !sender.send(&end) {
        spin_loop();
    }
    sender.flush();
    sent.measured = sent.messages - warm;
    Ok(sent)
}

fn full_speed(sender: &mut impl Sender, sent: &mut Sent, body: &[u8], read_clock: bool, duration: u64) {
    let start = ticks();
    while ticks().0.saturating_sub(start.0) < duration {
        sent.refused += sender.send_many(sent.messages, CHUNK, body, read_clock);
        sent.messages += CHUNK;
    }
}

/// How a schedule was kept.
pub(crate) struct Kept {
    messages: u64,
    late: Recorder,
    lateness: Lateness,
}

impl Kept {
    pub(crate) fn tell(&self, sent: &mut Sent) {
        sent.late_p50_ns = self.late.value_at(0.5).unwrap_or(0);
        sent.late_p99_ns = self.late.value_at(0.99).unwrap_or(0);
        sent.late_max_ns = self.late.max_ns().unwrap_or(0);
        sent.late_grows = self.lateness.trend().grows;
    }
}

/// Calls `send` on a fixed schedule with the number of the message and the counter as it was found due: the send stamp.
///
/// The schedule is kept in fractions of ticks, without the divisions of `Pacer`: a message each 25 ns has no time for them.
pub(crate) fn paced(clock: &Clock, rate_hz: u64, ms: u64, mut send: impl FnMut(u64, Ticks)) -> Kept {
    const FRACTION: u32 = 16;
    let step = ((u128::from(clock.ticks_in(1_000_000_000)) << FRACTION) / u128::from(rate_hz)) as u64;
    let messages = (rate_hz * ms / 1000).max(1);
    let start = ticks_ordered().0 + clock.ticks_in(100_000);
    let begun = clock.at(Ticks(start));
    let mut kept = Kept { messages, late: Recorder::new(), lateness: Lateness::new(begun) };
    let mut due = 0;
    for number in 0..messages {
        let until = start + (due >> FRACTION);
        let mut now = ticks();
        while now.0 < until {
            now = ticks();
        }
        send(number, now);
        if number % SAMPLE == 0 {
            let late_ns = clock.ns_between(Ticks(until), now);
            kept.late.record(late_ns);
            kept.lateness.record(clock.at(now), late_ns);
        }
        due += step;
    }
    kept
}

fn spin_for(clock: &Clock, ns: u64) {
    let until = ticks().0 + clock.ticks_in(ns);
    while ticks().0 < until {}
}

/// Runs the receiver of a case until the ending message. With `yields` it gives its core away while nothing is there.
pub(crate) fn receive(receiver: &mut impl Receiver, case: &Case, yields: bool) -> anyhow::Result<Received> {
    let clock = clock(case)?;
    let mut inspector = Inspector::new(clock);
    let is_paced = matches!(case.metric, Metric::Latency { .. });
    let (mut looks, mut found, mut idle) = (0_u64, 0, 0_u64);
    while !inspector.has_ended() {
        let count = if is_paced {
            receiver.receive(|message| inspector.take(message))
        } else {
            receiver.drain(&mut inspector)
        };
        if count > 0 {
            if idle > PAUSE_LOOKS {
                (looks, found) = (0, 0);
            }
            idle = 0;
            looks += 1;
            found += count;
        } else {
            idle += 1;
            if yields {
                thread::yield_now();
            }
        }
    }
    let Tally { expected, lost, disordered, torn, started, ended, .. } = inspector.tally;
    let ns = clock.ns_between(Ticks(started), Ticks(ended)).max(1);
    Ok(Received {
        messages: expected,
        lost,
        disordered,
        torn,
        seconds: ns as f64 / 1e9,
        // The sender knows how many of the messages belong to it.
        per_second: 0.0,
        per_look: found as f64 / looks.max(1) as f64,
        latency: Latency::of(&inspector.latency),
    })
}
