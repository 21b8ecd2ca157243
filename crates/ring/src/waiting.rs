//! Ways to wait for the next frame, and the wake-up of sleeping subscribers.

use std::hint::spin_loop;
use std::sync::atomic::compiler_fence;
use std::time::{Duration, Instant};

use rustix::io::Errno;
#[cfg(not(loom))]
use rustix::thread::{MembarrierCommand, futex, membarrier};

use crate::atomics::{AtomicU32, Ordering};
use crate::lines::{HAS_BARRIER, Waiters};
#[cfg(loom)]
use crate::models::kernel::{MembarrierCommand, futex, membarrier};

#[cfg(not(loom))]
mod bell;

#[cfg(not(loom))]
pub use bell::Bell;

/// How a subscriber waits for the next frame. Each choice trades processor time for latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Wait {
    /// Polls without a break: the lowest latency, but it takes a whole core and slows a sibling hyper-thread most.
    Spin,
    /// Polls with the processor's pause instruction between polls: adds a few ns (up to a hundred on processors with a
    /// long pause) and takes a whole core, but spares a sibling hyper-thread and power.
    Pause,
    /// Yields the core to any other ready thread between polls: about a microsecond a poll, and a whole core while no
    /// other thread wants it. For more threads than cores.
    Yield,
    /// Sleeps in the kernel: no processor time while idle. A wake-up costs the subscriber 3 to 50 µs, depending on the
    /// machine, and the publisher a system call for the frame that wakes. With no subscriber asleep, the publisher pays
    /// one plain load of a cache line that nobody writes.
    Park,
    /// Uses [`Pause`](Self::Pause) for 50 µs, about the time of a wake-up, then [`Park`](Self::Park): the latency of
    /// the first within a stream, the idle cost of the second.
    #[default]
    Adaptive,
}

/// How long [`Wait::Adaptive`] polls before it sleeps: a sleep that ends sooner costs more than further polling.
const POLL_BEFORE_SLEEP: Duration = Duration::from_micros(50);
/// Polls between two reads of the clock, which costs as much as many polls.
const POLLS_PER_LOOK: u32 = 64;
/// The first sleep after a sleeper's bit is set. If the barrier is missing, the publisher may have loaded the bits
/// before this one was set, and stored its frame after the sleeper looked for it; so the sleeper looks once more
/// after this time, which is longer than any store takes to become visible. From then on the bit is certain to be
/// seen.
const FIRST_SLEEP: Duration = Duration::from_millis(1);
/// The longest sleep: it limits the delay of anything that goes unnoticed. In unit tests long enough that a lost
/// wake-up shows.
const LONGEST_SLEEP: Duration = if cfg!(test) { Duration::from_secs(60) } else { Duration::from_millis(100) };

/// Registers this process for the machine-wide barrier. `false`: the kernel or a sandbox does not provide it.
pub(crate) fn join_barrier() -> bool {
    membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok()
}

/// The end of a wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// `timeout` from now; one beyond the clock's range never expires.
    pub(crate) fn after(timeout: Duration) -> Self {
        Self(Instant::now().checked_add(timeout))
    }

    fn left(self) -> Duration {
        self.0.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()))
    }
}

/// Polls `ready` a fixed number of times, without reading the clock, with `between` after each poll.
#[inline]
pub(crate) fn poll(ready: impl Fn() -> bool, between: impl Fn()) -> bool {
    for _ in 0..POLLS_PER_LOOK {
        if ready() {
            return true;
        }
        between();
    }
    false
}

/// Polls `ready` until it holds or the deadline passes, with `between` after each poll.
pub(crate) fn poll_until(ready: impl Fn() -> bool, deadline: Deadline, between: impl Fn()) -> bool {
    while !poll(&ready, &between) {
        if deadline.left().is_zero() {
            return ready();
        }
    }
    true
}

/// The state that one sleeper needs.
pub(crate) struct Parker<'a> {
    pub(crate) waiters: &'a Waiters,
    /// The publisher's `Status::flags`.
    pub(crate) flags: &'a AtomicU32,
    pub(crate) slot: usize,
    /// A second cause to wake the sleeper.
    #[cfg(not(loom))]
    pub(crate) bell: Option<&'a Bell>,
}

impl Parker<'_> {
    /// Sleeps until `ready` holds or the deadline passes.
    pub(crate) fn park_until(&self, ready: impl Fn() -> bool, deadline: Deadline) -> bool {
        let bit = 1u64 << self.slot;
        let mut is_known = false;
        loop {
            // Loaded before the bit is set: a wake-up that has seen the bit changes the word, and the sleep ends at
            // once.
            let wakes = self.waiters.wakes.load(Ordering::SeqCst);
            if self.waiters.parked.fetch_or(bit, Ordering::SeqCst) & bit == 0 {
                is_known = false;
                self.settle();
            }
            let left = deadline.left();
            if ready() || left.is_zero() {
                self.waiters.parked.fetch_and(!bit, Ordering::SeqCst);
                return ready();
            }
            let sleep = left.min(if is_known { LONGEST_SLEEP } else { FIRST_SLEEP });
            let sleep = futex::Timespec {
                tv_sec: sleep.as_secs() as futex::Secs, // at most `LONGEST_SLEEP`
                tv_nsec: futex::Nsecs::from(sleep.subsec_nanos()),
            };
            let slept = self.doze(wakes, &sleep);
            // The bit has been set for a whole sleep. (Other ends of a sleep: woken, word changed, a signal.)
            is_known |= slept == Err(Errno::TIMEDOUT);
            #[cfg(test)]
            #[cfg(not(loom))]
            if slept == Err(Errno::TIMEDOUT) && ready() {
                tests::FOUND_LATE.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn doze(&self, wakes: u32, timeout: &futex::Timespec) -> Result<(), Errno> {
        #[cfg(not(loom))]
        if let Some(bell) = self.bell {
            return bell.doze(&self.waiters.wakes, wakes, timeout);
        }
        futex::wait(&self.waiters.wakes, futex::Flags::empty(), wakes, Some(timeout))
    }

    /// After the bit was set and before the ring is looked at: a full barrier on every core that runs a publisher.
    /// Either the publisher's commit was before the barrier, and the look sees the frame, or its load of the bits
    /// comes after, and sees the bit. So the publisher needs no fence of its own.
    ///
    /// Kernels up to 6.18 at least leave out a core on which a thread of the publisher's process has ended, or that
    /// idled on its memory when it registered, until the core has run another program; and a sandbox may refuse the
    /// call. Then, about once in a million sleeps, both sides miss each other, and `FIRST_SLEEP` ends that.
    fn settle(&self) {
        if self.flags.load(Ordering::Relaxed) & HAS_BARRIER != 0 {
            let _ = membarrier(MembarrierCommand::GlobalExpedited);
        }
    }

    /// Polls for the time that a wake-up would take, then sleeps.
    pub(crate) fn adapt_until(&self, ready: impl Fn() -> bool, deadline: Deadline) -> bool {
        let poll = Deadline::after(POLL_BEFORE_SLEEP.min(deadline.left()));
        poll_until(&ready, poll, spin_loop) || self.park_until(ready, deadline)
    }
}

/// Wakes all sleeping subscribers. Called after every commit, or at the end of a burst of commits: one plain load
/// and a branch while no subscriber sleeps.
#[inline]
pub(crate) fn wake_sleepers(waiters: &Waiters) {
    // The header's store stays before this load in program order; the processor needs no fence between the two,
    // because a subscriber that goes to sleep makes this core execute one (`Parker::park_until`).
    compiler_fence(Ordering::SeqCst);
    if waiters.parked.load(Ordering::Relaxed) != 0 {
        wake_all(waiters);
    }
}

/// The rare path of `wake_sleepers`.
#[cold]
pub(crate) fn wake_all(waiters: &Waiters) {
    waiters.parked.swap(0, Ordering::SeqCst);
    waiters.wakes.fetch_add(1, Ordering::SeqCst);
    // Cannot fail with these arguments; a sleeper that is not woken looks again after `LONGEST_SLEEP`.
    let _ = futex::wake(&waiters.wakes, futex::Flags::empty(), i32::MAX as u32);
}

#[cfg(test)]
#[cfg(not(loom))]
mod litmus;
#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::thread;

    use super::*;
    use crate::{Name, Options, Poll, Publisher, Start, Subscriber};

    /// How often a frame was found only because a sleep timed out.
    pub(super) static FOUND_LATE: AtomicU64 = AtomicU64::new(0);

    /// One side parks after each answer; the other sends the next frame at any moment around that, so that now and
    /// then its store and its look at the sleepers fall between the sleeper's bit and its last look at the ring. No
    /// wake-up may be lost, and almost none may be found late (see `Parker::settle` for the exception).
    #[test]
    fn no_wake_up_is_lost() {
        const ROUNDS: u64 = 5_000_000;
        // A barrier takes a microsecond, and a thousand times as long while other programs have the cores.
        let enough = Deadline::after(Duration::from_secs(2));
        let patience = LONGEST_SLEEP / 4;
        let name = |what: &str| Name::new(&format!("test-{what}-{}", std::process::id())).unwrap();
        let (there, back) = (name("there"), name("back"));
        let mut ping = Publisher::open(&there, &Options::default()).unwrap();
        let mut pong = Publisher::open(&back, &Options::default()).unwrap();
        let mut pings = Subscriber::join(&there, Start::Newest).unwrap();
        let mut pongs = Subscriber::join(&back, Start::Newest).unwrap();
        let mut rounds = 0;
        thread::scope(|scope| {
            scope.spawn(move || {
                for round in 0u64.. {
                    assert!(pings.wait(Wait::Park, patience), "ping {round} comes");
                    match pings.next() {
                        Poll::Frame(frame) => assert_eq!(*frame, round.to_le_bytes()),
                        Poll::Ended => break,
                        other => panic!("{other:?}"),
                    }
                    pong.publish(&round.to_le_bytes()).unwrap();
                }
            });
            for round in 0..ROUNDS {
                // A delay of about this many nanoseconds, around the time that the other side takes to set its bit.
                for step in 0..round.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55 {
                    std::hint::black_box(step);
                }
                ping.publish(&round.to_le_bytes()).unwrap();
                assert!(pongs.wait(Wait::Spin, patience), "pong {round} comes");
                assert_eq!(pongs.next().frame().as_deref(), Some(&round.to_le_bytes()[..]));
                rounds = round;
                if round.is_multiple_of(1024) && enough.left().is_zero() {
                    break;
                }
            }
            ping.close().unwrap();
        });
        let late = FOUND_LATE.load(Ordering::Relaxed);
        assert!(late <= 10 + rounds / 10_000, "{late} of {rounds} were found late");
    }

    /// Longer than any test takes.
    const PATIENCE: Duration = Duration::from_secs(600);

    #[test]
    fn a_bell_and_a_frame_both_end_a_sleep() {
        let name = Name::new(&format!("test-bell-{}", std::process::id())).unwrap();
        let mut publisher = Publisher::open(&name, &Options::default()).unwrap();
        let mut subscriber = Subscriber::join(&name, Start::Newest).unwrap();
        let bell = Bell::new();
        bell.ring();
        // A ring of the bell before the sleep is not lost.
        assert!(!subscriber.wait_or(&bell, PATIENCE));
        assert!(bell.answer() && !bell.answer());
        thread::scope(|scope| {
            let ringer = bell.clone();
            let is_parked = || crate::inspect(&name).unwrap().subscribers.iter().any(|one| one.parked);
            scope.spawn(move || {
                let waits = subscriber.wait_or(&bell, PATIENCE);
                assert!(!waits && bell.answer(), "the bell was rung, and nothing is in the ring");
                assert!(subscriber.wait_or(&bell, PATIENCE), "a frame has come");
                assert!(!bell.is_rung());
            });
            while !is_parked() {
                thread::yield_now();
            }
            ringer.ring();
            while ringer.is_rung() || !is_parked() {
                thread::yield_now();
            }
            publisher.publish(b"frame").unwrap();
        });
    }
}
