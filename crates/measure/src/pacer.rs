//! A fixed schedule for a sender.

use std::time::Duration;

use crate::clock::Clock;
use tapeline_nanos::Nanos;

const NS_PER_SECOND: u64 = 1_000_000_000;
/// The time left for spinning after a sleep: a blocked thread wakes 25–30 µs late on a virtual machine, and twice
/// that is occasionally still not enough.
const SPIN_NS: u64 = 60_000;

/// A schedule on which message `k`, counted from 0, is due at `start + k / rate`, independent of earlier messages.
///
/// Due times are exact to the nanosecond for every `k` (rounded down), so the schedule does not drift. A late sender
/// sends what is due and reports the lateness; the schedule never waits for the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pacer {
    rate_hz: u64,
    start: Nanos,
}

/// How a thread waits until a message is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// Reads the clock until the message is due: exact, but takes a whole core.
    #[default]
    Spin,
    /// Sleeps until 60 µs before the due time, then spins: for low rates.
    Sleep,
    /// Sleeps until 60 µs before the due time, then yields the core to any other ready thread between readings of the
    /// clock: for machines with fewer cores than busy threads.
    Yield,
}

impl Pacer {
    /// The highest rate: one message per nanosecond. Higher rates are reduced to it.
    pub const HIGHEST_RATE_HZ: u64 = NS_PER_SECOND;

    /// Creates a schedule of `rate_hz` messages a second, from 1 (also for 0) to
    /// [`HIGHEST_RATE_HZ`](Self::HIGHEST_RATE_HZ).
    #[must_use]
    pub fn per_second(rate_hz: u64, start: Nanos) -> Self {
        Self { rate_hz: rate_hz.clamp(1, Self::HIGHEST_RATE_HZ), start }
    }

    /// Returns the due time of message `k`. Costs two 64-bit divisions.
    #[inline]
    #[must_use]
    pub fn due(&self, k: u64) -> Nanos {
        let seconds = k / self.rate_hz;
        // Below 10⁹ × 10⁹, which fits.
        let rest_ns = k % self.rate_hz * NS_PER_SECOND / self.rate_hz;
        self.start + seconds.saturating_mul(NS_PER_SECOND).saturating_add(rest_ns)
    }

    /// Returns the number of messages due at `now`: `due_by(due(k)) == k + 1`, and 0 before the start.
    #[inline]
    #[must_use]
    pub fn due_by(&self, now: Nanos) -> u64 {
        let Some(elapsed_ns) = now.0.checked_sub(self.start.0) else { return 0 };
        // Message k is due when floor(k × 10⁹ / rate) ≤ elapsed, that is k < (elapsed + 1) × rate / 10⁹; and the number of
        // such k is that bound rounded up. Split into whole seconds and rest, each product fits (10⁹ × 10⁹).
        let bound_ns = elapsed_ns.saturating_add(1);
        let whole = (bound_ns / NS_PER_SECOND).saturating_mul(self.rate_hz);
        let rest = (bound_ns % NS_PER_SECOND * self.rate_hz).div_ceil(NS_PER_SECOND);
        whole.saturating_add(rest)
    }

    /// Waits until `until` and returns the time of the reading that ended the wait. Returns at once if `until` is past.
    #[inline]
    pub fn wait(&self, clock: &Clock, until: Nanos, waiting: Waiting) -> Nanos {
        let mut now = clock.now();
        if waiting != Waiting::Spin {
            while now.0.saturating_add(SPIN_NS) < until.0 {
                std::thread::sleep(Duration::from_nanos(until.0 - now.0 - SPIN_NS));
                now = clock.now();
            }
        }
        while now < until {
            match waiting {
                Waiting::Yield => std::thread::yield_now(),
                Waiting::Spin | Waiting::Sleep => std::hint::spin_loop(),
            }
            now = clock.now();
        }
        now
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn due_is_exact_and_due_by_is_its_inverse(
            rate in 1..=Pacer::HIGHEST_RATE_HZ,
            k in 0..=1_000_000_000_000_u64,
            start in 0..=2_000_000_000_000_000_000_u64,
        ) {
            let pacer = Pacer::per_second(rate, Nanos(start));
            let exact = u128::from(start) + u128::from(k) * 1_000_000_000 / u128::from(rate);
            // Beyond the year 2554 the schedule stands still.
            if exact < u128::from(u64::MAX) {
                let due = pacer.due(k);
                prop_assert_eq!(u128::from(due.0), exact);
                prop_assert_eq!(pacer.due_by(due), k + 1);
                prop_assert!(pacer.due(k + 1) > due);
                if due.0 > start {
                    prop_assert_eq!(pacer.due_by(Nanos(due.0 - 1)), k);
                }
            }
        }

        #[test]
        fn nothing_overflows(rate: u64, k: u64, start: u64, now: u64) {
            let pacer = Pacer::per_second(rate, Nanos(start));
            prop_assert!(pacer.due(k) >= pacer.start);
            let due = pacer.due_by(Nanos(now));
            prop_assert!((now < start) == (due == 0));
        }
    }

    #[test]
    fn a_trillion_messages_later_there_is_no_drift() {
        for rate in [1, 3, 7, 999_983, 1_000_000, 333_333_333, 1_000_000_000] {
            let pacer = Pacer::per_second(rate, Nanos(0));
            let seconds = 1_000_000_000_000 / rate;
            // At low rates the due time would be out of range.
            let seconds = seconds.min(10_000_000_000);
            assert_eq!(pacer.due(seconds * rate), Nanos(seconds * 1_000_000_000), "{rate} a second");
        }
    }

    #[test]
    fn waits_until_due() {
        let clock = Clock::calibrate();
        let pacer = Pacer::per_second(1_000, clock.now());
        for (k, waiting) in [(1, Waiting::Spin), (2, Waiting::Sleep), (3, Waiting::Yield)] {
            let until = pacer.due(k);
            let woken = pacer.wait(&clock, until, waiting);
            assert!(woken >= until && clock.now() >= woken);
            assert!(pacer.due_by(woken) > k);
        }
        assert!(pacer.wait(&clock, Nanos(0), Waiting::Spin) > pacer.start, "the past is not waited for");
    }
}
