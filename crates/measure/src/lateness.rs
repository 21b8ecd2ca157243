//! Detects growing lateness.

use serde::{Deserialize, Serialize};

use tapeline_nanos::Nanos;

/// Number of windows. When the run exceeds them, neighbours are merged and each then covers twice the time.
const WINDOWS: usize = 64;
/// First width of a window: 2²⁰ ns, about a millisecond.
const FIRST_SHIFT: u32 = 20;
/// Number of parts into which a run is divided for the verdict.
const PARTS: usize = 8;

/// Records how late messages are against their schedule, and tells whether the lateness grows.
///
/// Only the *smallest* lateness of each time window is recorded. A backlog that never drains raises even the smallest
/// lateness of a window. A stall, however long, does not affect the smallest lateness once the sender has caught up.
/// Memory is fixed, and [`record`](Self::record) costs a shift and a comparison.
#[derive(Clone, Debug)]
pub struct Lateness {
    start: Nanos,
    shift: u32,
    windows: [Extremes; WINDOWS],
    used: usize,
}

#[derive(Clone, Copy, Debug)]
struct Extremes {
    least_ns: i64,
    most_ns: i64,
}

impl Extremes {
    const NONE: Self = Self { least_ns: i64::MAX, most_ns: i64::MIN };

    fn is_none(self) -> bool {
        self.least_ns > self.most_ns
    }

    fn with(self, other: Self) -> Self {
        Self { least_ns: self.least_ns.min(other.least_ns), most_ns: self.most_ns.max(other.most_ns) }
    }
}

/// The trend of lateness over a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trend {
    /// `true` if lateness grew: see [`Lateness::trend`] for the rule.
    pub grows: bool,
    /// The smallest lateness in the first eighth of the run, in nanoseconds.
    pub at_start_ns: i64,
    /// The smallest lateness in the last eighth of the run, in nanoseconds.
    pub at_end_ns: i64,
    /// The largest lateness of the run, in nanoseconds: the worst stall, if lateness did not grow.
    pub most_ns: i64,
}

impl Lateness {
    /// The least growth that counts, in nanoseconds: a tenth of a millisecond is more than any clock drifts over
    /// a run, and less than a queue gains within seconds when it is filled faster than it is drained.
    pub const MARGIN_NS: i64 = 100_000;

    /// Creates the record of a run that begins at `start`.
    #[must_use]
    pub fn new(start: Nanos) -> Self {
        Self { start, shift: FIRST_SHIFT, windows: [Extremes::NONE; WINDOWS], used: 0 }
    }

    /// Records that at `at` something was done `late_ns` after it was due (negative: early). Messages from before the
    /// start count as at the start.
    #[inline]
    pub fn record(&mut self, at: Nanos, late_ns: i64) {
        let elapsed = at.0.saturating_sub(self.start.0);
        if elapsed >> self.shift >= WINDOWS as u64 {
            self.widen(elapsed);
        }
        // Below WINDOWS after widening; the remainder proves that to the compiler.
        let index = (elapsed >> self.shift) as usize % WINDOWS;
        self.used = self.used.max(index + 1);
        let window = &mut self.windows[index];
        *window = window.with(Extremes { least_ns: late_ns, most_ns: late_ns });
    }

    /// Merges neighbours until `elapsed` falls within the windows; at most 38 times in all.
    #[cold]
    fn widen(&mut self, elapsed: u64) {
        while elapsed >> self.shift >= WINDOWS as u64 {
            for index in 0..WINDOWS {
                self.windows[index] = match self.windows.get(2 * index..2 * index + 2) {
                    Some([one, next]) => one.with(*next),
                    _ => Extremes::NONE,
                };
            }
            self.used = self.used.div_ceil(2);
            self.shift += 1;
        }
    }

    /// Adds the record of another thread, which must have the same start.
    pub fn merge(&mut self, other: &Self) {
        for (index, window) in other.windows[..other.used].iter().enumerate() {
            if !window.is_none() {
                let at = self.start + ((index as u64) << other.shift);
                self.record(at, window.least_ns);
                self.record(at, window.most_ns);
            }
        }
    }

    /// Returns the trend of the run so far.
    ///
    /// The run is divided into eight equal parts and the smallest lateness of each is taken. Lateness *grows* when
    /// 1. the last part exceeds the first by more than [`MARGIN_NS`](Self::MARGIN_NS) and by more than a quarter of the
    ///    first: the backlog did not drain even once in the last eighth of the run; and
    /// 2. it was still growing at the end: the last part exceeds the one before it by at least a sixteenth of the whole
    ///    growth (half of what a straight line gives). Lateness that rose once and then stayed is a slower system, or a
    ///    bounded queue that is full, and not a growing backlog.
    ///
    /// A single stall, or a sawtooth of stalls with a period under an eighth of the run, is therefore not growth. A run
    /// shorter than eight windows (8 ms) or with silent parts is never judged to grow.
    #[must_use]
    pub fn trend(&self) -> Trend {
        let all = self.windows[..self.used].iter().fold(Extremes::NONE, |all, window| all.with(*window));
        if all.is_none() {
            return Trend::default();
        }
        let mut parts = [Extremes::NONE; PARTS];
        for (number, part) in parts.iter_mut().enumerate() {
            for window in &self.windows[self.used * number / PARTS..self.used * (number + 1) / PARTS] {
                *part = part.with(*window);
            }
        }
        let heard = |part: &&Extremes| !part.is_none();
        // There may be fewer windows than parts.
        let first = parts.iter().find(heard).unwrap_or(&all).least_ns;
        let last = parts.iter().rev().find(heard).unwrap_or(&all).least_ns;
        let mut trend = Trend { grows: false, at_start_ns: first, at_end_ns: last, most_ns: all.most_ns };
        if parts.iter().any(|part| part.is_none()) {
            return trend;
        }
        let growth = last.saturating_sub(first);
        let lately = last.saturating_sub(parts[PARTS - 2].least_ns);
        trend.grows = growth > Self::MARGIN_NS.max(first / 4) && lately >= growth / (2 * PARTS as i64);
        trend
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const START: Nanos = Nanos(1_700_000_000_000_000_000);

    /// A run of `seconds` with a message each 0.1 ms whose lateness is a function of the time in ms, with noise of up
    /// to 50 µs above it.
    fn run(seconds: u64, late_ns: impl Fn(u64) -> i64) -> Trend {
        let mut lateness = Lateness::new(START);
        let mut noise = 12_345_u64;
        for tenth in 0..seconds * 10_000 {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            lateness.record(START + tenth * MS / 10, late_ns(tenth / 10) + (noise >> 33) as i64 % 50_000);
        }
        lateness.trend()
    }

    #[test]
    fn steady_or_falling_is_not_growth() {
        for seconds in [1, 2, 15, 61] {
            let trend = run(seconds, |_| 2_000);
            assert!(!trend.grows, "{trend:?}");
            assert!((2_000..10_000).contains(&trend.at_start_ns), "{trend:?}");
        }
        assert!(!run(15, |_| 0).grows);
        assert!(!run(15, |_| -3_000).grows, "early is not late");
        assert!(!run(15, |ms| (400 - ms as i64 / 10).max(3) * MS as i64 / 10).grows, "a cold start decays");
    }

    #[test]
    fn one_stall_is_not_growth_wherever_it_is() {
        // A stall of 300 ms: lateness jumps and then shrinks at 2 ms for each ms.
        for at in [0, 3_000, 7_400, 12_900, 14_000, 14_600] {
            let trend =
                run(15, |ms| if ms < at { 0 } else { (300 - 2 * (ms - at) as i64).max(0) * MS as i64 });
            assert!(!trend.grows, "stall at {at} ms: {trend:?}");
            assert!(trend.most_ns >= 250 * MS as i64, "{trend:?}");
        }
    }

    #[test]
    fn a_rise_is_growth_down_to_the_margin() {
        // 1 s of work arrives in 0.99 s; then 20 parts per million too much, for a minute.
        assert!(run(15, |ms| (ms * MS / 100) as i64).grows);
        assert!(run(1, |ms| (ms * MS / 100) as i64).grows);
        assert!(run(60, |ms| (ms * 20) as i64).grows);
        assert!(!run(60, |ms| ms as i64).grows, "1 ppm is drift of the clocks");
        assert!(run(15, |ms| ms.saturating_sub(9_000) as i64 * 50_000).grows, "it starts late");
    }

    #[test]
    fn a_sawtooth_is_not_growth() {
        for period in [50, 500, 1_500] {
            let trend = run(15, |ms| (ms % period) as i64 * 100_000);
            assert!(!trend.grows, "period {period} ms: {trend:?}");
        }
    }

    #[test]
    fn a_step_to_a_new_level_is_not_growth() {
        for at in [1_000, 5_000, 10_000] {
            let trend = run(15, |ms| if ms < at { 0 } else { 5 * MS as i64 });
            assert!(!trend.grows, "step at {at} ms: {trend:?}");
        }
    }

    #[test]
    fn little_is_not_judged_and_nothing_panics() {
        assert_eq!(Lateness::new(START).trend(), Trend::default());
        let mut lateness = Lateness::new(START);
        lateness.record(START, 5);
        assert_eq!(lateness.trend(), Trend { grows: false, at_start_ns: 5, at_end_ns: 5, most_ns: 5 });
        lateness.record(Nanos(u64::MAX), i64::MAX);
        lateness.record(Nanos(0), i64::MIN);
        let trend = lateness.trend();
        assert!(!trend.grows);
        assert_eq!(trend.most_ns, i64::MAX);
    }

    #[test]
    fn merging_keeps_extremes() {
        let mut one = Lateness::new(START);
        let mut other = Lateness::new(START);
        for ms in 0..10_000 {
            one.record(START + ms * MS, 1_000);
            other.record(START + ms * MS, 1_000 + ms as i64 * 10_000);
        }
        assert!(other.trend().grows);
        one.merge(&other);
        let trend = one.trend();
        assert!(!trend.grows, "the other path drains");
        assert_eq!(trend.most_ns, other.trend().most_ns);
    }
}
