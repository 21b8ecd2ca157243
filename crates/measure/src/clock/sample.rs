//! One reading of the kernel's clocks between tick readings.

use rustix::time::{ClockId, clock_gettime};

use crate::clock::calibration::{Line, NS_PER_SECOND};
use std::time::Instant;

use crate::tsc::{Ticks, ticks_ordered};
use tapeline_nanos::Nanos;

/// Returns CLOCK_MONOTONIC in nanoseconds: never set, without time spent suspended. RSSL time trackers use it.
#[inline]
#[must_use]
pub fn monotonic_ns() -> u64 {
    u64::try_from(nanoseconds(ClockId::Monotonic)).unwrap_or(0)
}

/// Returns CLOCK_BOOTTIME: never set, with the time spent suspended. For what other hosts count at the same time, such as a lease.
#[inline]
#[must_use]
pub fn boot_time() -> Nanos {
    Nanos(u64::try_from(nanoseconds(ClockId::Boottime)).unwrap_or(0))
}

/// Returns CLOCK_REALTIME: UTC according to the system, which can be set. For file names and messages to people.
#[must_use]
pub fn utc_now() -> Nanos {
    Nanos(u64::try_from(nanoseconds(ClockId::Realtime)).unwrap_or(0))
}

/// Returns the current instant, for time-outs.
#[must_use]
pub fn instant() -> Instant {
    Instant::now()
}

fn nanoseconds(id: ClockId) -> i64 {
    let time = clock_gettime(id);
    // Kernel time fits into 64 bits until the year 2262.
    time.tv_sec.saturating_mul(NS_PER_SECOND as i64).saturating_add(time.tv_nsec)
}

/// Both kernel clocks at one tick.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) ticks: Ticks,
    /// CLOCK_MONOTONIC at `ticks`, give or take `half_ticks`.
    pub(super) monotonic_ns: u64,
    pub(super) half_ticks: u64,
    /// CLOCK_REALTIME less CLOCK_MONOTONIC, give or take `offset_half_ticks`. Both are slewed alike, so the
    /// difference changes only when UTC is stepped (or the machine was suspended).
    pub(super) utc_offset_ns: i64,
    pub(super) offset_half_ticks: u64,
}

impl Sample {
    /// Reads `tries` times and keeps the most tightly bracketed parts: an interrupt in between only widens a
    /// bracket.
    pub(super) fn tightest_of(tries: usize) -> Self {
        let mut best = Self::read();
        for _ in 1..tries {
            let next = Self::read();
            if next.half_ticks < best.half_ticks {
                best = Self {
                    utc_offset_ns: best.utc_offset_ns,
                    offset_half_ticks: best.offset_half_ticks,
                    ..next
                };
            }
            if next.offset_half_ticks < best.offset_half_ticks {
                best.utc_offset_ns = next.utc_offset_ns;
                best.offset_half_ticks = next.offset_half_ticks;
            }
        }
        best
    }

    fn read() -> Self {
        let before = ticks_ordered().0;
        let monotonic_ns = monotonic_ns();
        let between = ticks_ordered().0;
        let realtime_ns = nanoseconds(ClockId::Realtime);
        let again_ns = self::monotonic_ns();
        let after = ticks_ordered().0;
        // Realtime was read between two readings of the monotonic clock. The middle of those is within half of
        // their distance, which is at most half of the ticks' distance (plus that half again for the clocks' own
        // granularity).
        let middle_ns = monotonic_ns + again_ns.saturating_sub(monotonic_ns) / 2;
        let half_ticks = between.saturating_sub(before).div_ceil(2);
        Self {
            ticks: Ticks(before + half_ticks),
            monotonic_ns,
            half_ticks,
            utc_offset_ns: realtime_ns.saturating_sub(i64::try_from(middle_ns).unwrap_or(i64::MAX)),
            offset_half_ticks: after.saturating_sub(before).div_ceil(2),
        }
    }

    /// UTC at the sample, according to the kernel.
    pub(super) fn utc_ns(&self) -> Nanos {
        self.utc_at(self.utc_offset_ns)
    }

    /// UTC at the sample for another distance between the clocks.
    pub(super) fn utc_at(&self, utc_offset_ns: i64) -> Nanos {
        Nanos(self.monotonic_ns.saturating_add_signed(utc_offset_ns))
    }

    /// The bound on the error of [`utc_ns`](Self::utc_ns), with 1 ns for each rounding.
    pub(super) fn error_ns(&self, rate: Line) -> u64 {
        rate.ns_in(self.half_ticks).saturating_add(rate.ns_in(self.offset_half_ticks)).saturating_add(2)
    }
}
