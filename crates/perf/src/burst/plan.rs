//! The plan of one round, and the numbers that its threads share while it runs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context;
use clap::ValueEnum;
use serde::Serialize;
use tapeline_console::arguments;
use tapeline_measure::pin;
use tapeline_wire::pool::{Policy, PoolKind};

use super::stream::Stream;

/// The warm-up, which is not measured: cold caches, the opening of the books.
const WARM_UP: Duration = Duration::from_millis(150);
/// Duration of the steady state before the hold.
const BEFORE: Duration = Duration::from_millis(250);
/// Duration of the steady state after the drain.
pub(super) const AFTER: Duration = Duration::from_millis(150);

/// Where datagrams are withheld.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum At {
    /// In the receiving thread: received into slots, but not passed to the decoder
    Socket,
    /// In the feeder: not sent
    Sender,
}

/// The storage of empty slots, if there are any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Pool {
    /// In a lock-free queue between the two threads: the plant's own
    Spsc,
    /// Nowhere: each datagram is allocated and freed
    Malloc,
    /// In a linked list behind a spinlock
    ListLock,
    /// In a linked list behind a spinlock, walked to count its slots whenever a slot is returned
    ListCount,
    /// No pool: the decoding thread reads the socket itself, as a plant does by default (only with --at sender)
    Inline,
}

impl Pool {
    /// The pools that `--compare` measures. Without a receiving thread nothing can be withheld behind the socket.
    pub(super) fn compared(at: At) -> Vec<Self> {
        let inline = (at == At::Sender).then_some(Self::Inline);
        [Self::Spsc, Self::Malloc, Self::ListLock].into_iter().chain(inline).collect()
    }

    /// The name on the command line.
    pub(super) fn name(self) -> String {
        arguments::word(&self)
    }

    /// The corresponding pool of the wire crate, if it is a pool.
    pub(super) fn kind(self) -> Option<PoolKind> {
        match self {
            Self::Spsc => Some(PoolKind::Spsc),
            Self::Malloc => Some(PoolKind::Heap),
            Self::ListLock => Some(PoolKind::List),
            Self::ListCount => Some(PoolKind::CountedList),
            Self::Inline => None,
        }
    }
}

/// The policy while no slot is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Exhausted {
    /// Datagrams wait in the kernel's buffer
    #[default]
    Block,
    /// Datagrams are received and dropped
    DropNewest,
    /// More slots are allocated
    Heap,
}

impl Exhausted {
    pub(crate) fn policy(self) -> Policy {
        match self {
            Self::Block => Policy::Block,
            Self::DropNewest => Policy::DropNewest,
            Self::Heap => Policy::Heap,
        }
    }
}

/// What the decoder does with a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Decode {
    /// Read only the packet's header, to account for its sequence number
    None,
    /// Decode every message and apply it to its book
    Full,
}

/// The plan of one round.
#[derive(Clone, Copy, Debug)]
pub(super) struct BurstPlan {
    pub(super) stream: Stream,
    /// Messages a second.
    pub(super) rate_hz: u64,
    /// Number of datagrams to withhold.
    pub(super) hold: u64,
    pub(super) at: At,
    pub(super) decode: Decode,
    pub(super) slots: usize,
    pub(super) policy: Exhausted,
    pub(super) huge_pages: bool,
    pub(super) receive_buffer: usize,
    pub(super) segmented: bool,
    /// Cores of feeder, receiving thread and decoder; `None` leaves the choice to the kernel.
    pub(super) cpus: [Option<usize>; 3],
    /// A round that has not drained by this time after the release is ended.
    pub(super) give_up: Duration,
}

impl BurstPlan {
    pub(super) fn datagrams_hz(&self) -> f64 {
        self.rate_hz as f64 / self.stream.messages as f64
    }

    /// The first datagram that is measured.
    pub(super) fn warm(&self) -> u64 {
        self.datagrams_in(WARM_UP).max(self.stream.opening())
    }

    /// The first datagram that is withheld.
    pub(super) fn first_held(&self) -> u64 {
        self.warm() + self.datagrams_in(BEFORE).max(1)
    }

    /// The first datagram after the withheld ones.
    pub(super) fn end_held(&self) -> u64 {
        self.first_held() + self.hold
    }

    /// Binds the calling thread, 0 to 2 in the order of `cpus`, to its core, if it has one.
    pub(super) fn bind(&self, thread: usize) -> anyhow::Result<()> {
        match self.cpus[thread] {
            Some(core) => pin(core).context("cannot bind a thread to its core"),
            None => Ok(()),
        }
    }

    /// The duration of a round, without its drain.
    pub(super) fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.end_held() as f64 / self.datagrams_hz()) + AFTER
    }

    fn datagrams_in(&self, time: Duration) -> u64 {
        (self.datagrams_hz() * time.as_secs_f64()).ceil() as u64
    }
}

/// The state that the threads of a round share: numbers only, each written by one thread. They order nothing, so
/// relaxed accesses suffice.
#[derive(Debug, Default)]
pub(super) struct Told {
    progress: Line,
    total: Line,
    ended: AtomicBool,
}

#[repr(align(128))]
#[derive(Debug, Default)]
struct Line(AtomicU64);

impl Told {
    /// Set by the decoder: the number of datagrams, up to the newest seen, that are decoded or lost.
    #[inline]
    pub(super) fn set_progress(&self, datagrams: u64) {
        self.progress.0.store(datagrams, Ordering::Relaxed);
    }

    pub(super) fn progress(&self) -> u64 {
        self.progress.0.load(Ordering::Relaxed)
    }

    /// Set by the feeder: the total number of datagrams.
    pub(super) fn set_total(&self, datagrams: u64) {
        self.total.0.store(datagrams.max(1), Ordering::Relaxed);
    }

    /// The total number of datagrams, once known.
    pub(super) fn total(&self) -> Option<u64> {
        Some(self.total.0.load(Ordering::Relaxed)).filter(|total| *total > 0)
    }

    /// Called by a thread that has finished or failed: ends all threads.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}

/// The number of slots for `hold` datagrams and those that arrive meanwhile.
pub(super) fn roomy(hold: u64) -> u64 {
    (hold * 5 / 4 + 4_096).next_power_of_two()
}

#[cfg(test)]
impl BurstPlan {
    /// A plan with `rate_hz` messages a second, `messages` in each datagram.
    pub(super) fn of_tests(rate_hz: u64, messages: u64) -> Self {
        Self {
            stream: Stream::new(messages),
            rate_hz,
            hold: 500,
            at: At::Socket,
            decode: Decode::Full,
            slots: 1024,
            policy: Exhausted::Block,
            huge_pages: false,
            receive_buffer: 1 << 20,
            segmented: true,
            cpus: [None; 3],
            give_up: Duration::from_secs(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hold_comes_behind_the_opening_and_the_steady_state() {
        let fast = BurstPlan::of_tests(100_000, 1);
        assert_eq!((fast.warm(), fast.first_held(), fast.end_held()), (15_000, 40_000, 40_500));
        let slow = BurstPlan::of_tests(1_000, 4);
        assert_eq!(slow.warm(), slow.stream.opening());
        assert_eq!(slow.first_held(), slow.warm() + 63);
    }
}
