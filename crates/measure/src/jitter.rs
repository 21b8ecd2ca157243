//! The time that the machine takes from a thread that only reads the clock.

use std::time::Duration;

use serde::Serialize;

use crate::affinity::pin;
use crate::clock::Clock;
use crate::error::Error;
use crate::percentiles::Percentiles;
use crate::recorder::Recorder;
use crate::tsc::{Ticks, ticks_ordered};

/// How often the loop checks whether to end early.
const ASK_NS: u64 = 1_000_000;

/// The jitter of one core: how often, and for how long, interrupts, other threads, the hypervisor or the firmware
/// interrupted a thread that only reads the clock.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Jitter {
    /// The measured core.
    pub core: usize,
    /// Duration of the measurement, in nanoseconds.
    pub elapsed_ns: u64,
    /// The shortest gap that is counted, in nanoseconds.
    pub threshold_ns: u64,
    /// Number of clock readings.
    pub readings: u64,
    /// The shortest time between two readings, in nanoseconds: the cost of the loop itself.
    pub loop_ns: u64,
    /// Number of gaps longer than 1 µs.
    pub over_1_us: u64,
    /// Number of gaps longer than 10 µs.
    pub over_10_us: u64,
    /// Number of gaps longer than 100 µs.
    pub over_100_us: u64,
    /// Number of gaps longer than 1 ms.
    pub over_1_ms: u64,
    /// The longest gap in nanoseconds, counted or not.
    pub max_ns: u64,
    /// The sum of the counted gaps, in nanoseconds.
    pub lost_ns: u64,
    /// The distribution of the counted gaps.
    pub gaps: Percentiles,
    #[serde(skip)]
    recorder: Recorder,
}

impl Jitter {
    /// Recommended threshold, in nanoseconds: shorter gaps are not worth counting, because the loop's own readings take
    /// 10–40 ns.
    pub const THRESHOLD_NS: u64 = 1_000;

    /// Watches `core` for `duration` from the calling thread, which is bound to the core and stays bound. Counts gaps
    /// of at least `threshold_ns` (100 ns to 1 µs; other values are moved to the nearest bound). Ends early when `stop`
    /// returns `true`; `stop` is called once a millisecond.
    ///
    /// # Errors
    /// As [`pin`].
    pub fn measure(
        core: usize,
        duration: Duration,
        threshold_ns: u64,
        clock: &Clock,
        stop: impl Fn() -> bool,
    ) -> Result<Self, Error> {
        pin(core)?;
        let threshold_ns = threshold_ns.clamp(100, Self::THRESHOLD_NS);
        let threshold = clock.ticks_in(threshold_ns);
        let ask = clock.ticks_in(ASK_NS);
        // Rounded to nearest, the ticks could end a nanosecond before the requested time.
        let duration =
            clock.ticks_in(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)).saturating_add(1);
        let mut jitter = Self { core, threshold_ns, ..Self::default() };

        let start = ticks_ordered();
        let mut last = start;
        let mut next_ask = start.0.saturating_add(ask);
        let mut readings = 0_u64;
        let (mut shortest, mut longest) = (u64::MAX, 0);
        let elapsed = loop {
            let now = ticks_ordered();
            readings += 1;
            let gap = now.0.saturating_sub(last.0);
            last = now;
            shortest = shortest.min(gap);
            longest = longest.max(gap);
            if gap >= threshold {
                jitter.count(clock, gap);
                // The time for counting is not a gap.
                last = ticks_ordered();
            }
            if now.0 >= next_ask {
                let elapsed = now.0.saturating_sub(start.0);
                if elapsed >= duration || stop() {
                    break elapsed;
                }
                next_ask = now.0.saturating_add(ask.min(duration - elapsed));
                last = ticks_ordered();
            }
        };
        let ns = |ticks: u64| u64::try_from(clock.ns_between(Ticks(0), Ticks(ticks))).unwrap_or(0);
        jitter.elapsed_ns = ns(elapsed);
        jitter.readings = readings;
        jitter.loop_ns = ns(shortest);
        jitter.gaps = jitter.recorder.percentiles();
        jitter.max_ns = ns(longest);
        Ok(jitter)
    }

    /// Counts a gap of this many ticks; separate from the loop, so that the loop stays small.
    #[cold]
    fn count(&mut self, clock: &Clock, ticks: u64) {
        self.count_ns(clock.ns_between(Ticks(0), Ticks(ticks)));
    }

    fn count_ns(&mut self, gap_ns: i64) {
        self.recorder.record(gap_ns);
        let gap_ns = u64::try_from(gap_ns).unwrap_or(0);
        self.over_1_us += u64::from(gap_ns > 1_000);
        self.over_10_us += u64::from(gap_ns > 10_000);
        self.over_100_us += u64::from(gap_ns > 100_000);
        self.over_1_ms += u64::from(gap_ns > 1_000_000);
        self.max_ns = self.max_ns.max(gap_ns);
        self.lost_ns = self.lost_ns.saturating_add(gap_ns);
    }

    /// Returns a count of this measurement as a rate per second.
    #[must_use]
    pub fn per_second(&self, count: u64) -> f64 {
        self.share(count as f64 * 1e9)
    }

    /// Returns the share of time that the counted gaps took, 0 to 1.
    #[must_use]
    pub fn lost_share(&self) -> f64 {
        self.share(self.lost_ns as f64)
    }

    /// The share of these nanoseconds in the measured time; 0 if that is 0.
    fn share(&self, ns: f64) -> f64 {
        if self.elapsed_ns == 0 { 0.0 } else { ns / self.elapsed_ns as f64 }
    }

    /// The share of moments, 0 to 1, at which a thread that became due would have waited for more than `ns`
    /// because of a gap: for a gap of length g, the first g − ns.
    fn share_delayed(&self, ns: u64) -> f64 {
        let gaps = self.recorder.histogram().iter_recorded();
        let delayed = gaps
            .map(|step| step.value_iterated_to().saturating_sub(ns) as f64 * step.count_at_value() as f64);
        self.share(delayed.sum()).min(1.0)
    }
}

/// Returns the latency in nanoseconds that idle cores alone impose on the share 1 − `quantile` of messages that arrive
/// at random moments and pass through all of these cores: the floor under any percentile measured on them.
///
/// A message that arrives at a random moment meets a gap of length g with a probability proportional to g, and waits
/// for the rest of the gap. Of the time T watched, the share of moments that wait for more than x is Σ max(g − x, 0) /
/// T. The floor is the x at which these shares, added over the cores, fall to 1 − `quantile`; it is zero when fewer
/// messages than that meet any counted gap.
#[must_use]
pub fn floor_ns(cores: &[Jitter], quantile: f64) -> u64 {
    let share = 1.0 - quantile.clamp(0.0, 1.0);
    let delayed = |ns: u64| cores.iter().map(|core| core.share_delayed(ns)).sum::<f64>();
    // Beyond the longest gap nothing is delayed, so that the answer lies below; the share falls with ns.
    let (mut low, mut high) = (0, cores.iter().map(|core| core.max_ns).max().unwrap_or(0));
    while low < high {
        let middle = low + (high - low) / 2;
        if delayed(middle) > share { low = middle + 1 } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_gaps(elapsed_ns: u64, gaps_ns: &[(i64, u64)]) -> Jitter {
        let mut jitter = Jitter { elapsed_ns, ..Jitter::default() };
        for &(gap_ns, times) in gaps_ns {
            (0..times).for_each(|_| jitter.count_ns(gap_ns));
        }
        jitter
    }

    #[test]
    fn counts_by_length() {
        let jitter =
            with_gaps(2_000_000_000, &[(1_000, 1), (1_001, 1), (20_000, 2), (200_000, 3), (5_000_000, 4)]);
        assert_eq!(
            (jitter.over_1_us, jitter.over_10_us, jitter.over_100_us, jitter.over_1_ms),
            (10, 9, 7, 4)
        );
        assert_eq!((jitter.max_ns, jitter.lost_ns), (5_000_000, 20_642_001));
        assert!((jitter.per_second(jitter.over_1_us) - 5.0).abs() < 1e-9);
        assert!((jitter.lost_share() - 0.010_321).abs() < 1e-6);
    }

    #[test]
    fn the_floor_is_what_random_arrivals_would_meet() {
        // 20 ms lost in 1 s, in gaps of 10 µs: 1 % of moments wait for more than 5 µs, 2 % at all.
        let core = || with_gaps(1_000_000_000, &[(10_000, 2_000)]);
        let near = |found: u64, expected: u64| found.abs_diff(expected) <= expected / 100 + 20;
        assert!(near(floor_ns(&[core()], 0.99), 5_000), "{}", floor_ns(&[core()], 0.99));
        assert_eq!(floor_ns(&[core()], 0.97), 0);
        // Two such cores delay twice as many.
        assert!(near(floor_ns(&[core(), core()], 0.98), 5_000));
        assert!(near(floor_ns(&[core()], 1.0), 10_000));
        assert_eq!(floor_ns(&[], 0.5), 0);
        assert_eq!(floor_ns(&[with_gaps(0, &[(1, 1)])], 0.5), 0);
    }

    #[test]
    fn watches_a_core_and_stops_when_asked() {
        let core = crate::affinity::cores()[0];
        let clock = Clock::calibrate();
        let watched = |duration, stop: bool| {
            let measure = || Jitter::measure(core, duration, Jitter::THRESHOLD_NS, &clock, || stop).unwrap();
            std::thread::scope(|scope| scope.spawn(measure).join().unwrap())
        };
        let jitter = watched(Duration::from_millis(20), false);
        assert!(jitter.elapsed_ns >= 20_000_000 && jitter.readings > 0, "{jitter:?}");
        assert!(jitter.lost_ns <= jitter.elapsed_ns);
        assert!(jitter.loop_ns <= jitter.max_ns, "{jitter:?}");
        assert_eq!(jitter.gaps.samples, jitter.recorder.samples());
        assert!(jitter.over_1_us <= jitter.gaps.samples);
        // Without the call of `stop`, the measurement would take a day.
        watched(Duration::from_secs(86_400), true);
    }

    #[test]
    fn an_absent_core_is_an_error() {
        let clock = Clock::calibrate();
        let error = Jitter::measure(100_000, Duration::ZERO, 0, &clock, || true).unwrap_err();
        assert!(matches!(error, Error::NoSuchCore { core: 100_000, .. }));
    }
}
