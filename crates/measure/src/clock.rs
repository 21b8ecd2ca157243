//! UTC from the tick counter, with a stated error.

mod calibration;
mod sample;

use std::time::Duration;

use crate::tsc::{self, TickSource, Ticks, ticks};
use tapeline_nanos::Nanos;

pub use calibration::Calibration;
pub use sample::{boot_time, instant, monotonic_ns, utc_now};

use calibration::{Line, NS_PER_SECOND};
use sample::Sample;

/// Number of readings of which the first calibration uses the tightest.
const FIRST_TRIES: usize = 128;
/// The same for each later calibration: about 1 µs in all.
const LATER_TRIES: usize = 4;
/// The first distance between two readings. Brackets of ±20 ns over 50 ms bound the rate to 800 parts in 10⁹.
const FIRST_BASELINE: Duration = Duration::from_millis(50);
/// The distance between readings grows to twice this. Then its start moves on, so that the rate follows the
/// kernel's.
const BASELINE_NS: u64 = 32 * NS_PER_SECOND;
/// From this distance on, the newest estimate of the rate is preferred to an older and seemingly tighter one.
const SETTLED_BASELINE_NS: u64 = NS_PER_SECOND;
/// An offset is corrected over at least this time, so that time stays continuous.
const CORRECTION_NS: u64 = 2 * NS_PER_SECOND;
/// The fastest correction, in parts per 10⁹: less than half of the 500 ppm at which the kernel itself may slew.
const CORRECTION_LIMIT_PPB: i64 = 200_000;
/// Error bound of the rate until the next measurement: twice the maximum slew of the kernel.
const UNKNOWN_RATE_PPB: u64 = 1_000_000;
/// Differences between CLOCK_REALTIME and CLOCK_MONOTONIC beyond this, plus the reading's own error, are steps of UTC.
const STEP_NS: u64 = 1_000;
/// Offsets beyond this, plus the effect of 600 ppm of drift, mean that the counter itself jumped (a virtual
/// machine was restored or moved): they are applied at once.
const JUMP_NS: u64 = 1_000_000;

/// Converts tick readings to UTC.
///
/// The clock follows CLOCK_MONOTONIC, which runs at UTC's rate but never steps, and is aligned with UTC once, at
/// calibration. So [`now`](Self::now) never goes back and an interval between ordered readings is never negative, even
/// when an administrator sets the time: [`recalibrate`](Self::recalibrate) detects and reports the step, and the clock
/// follows it only on demand ([`adopt_step`](Self::adopt_step)).
///
/// A process calibrates once and gives copies to its threads; the thread that recalibrates can publish its
/// [`Calibration`] for the others.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    line: Calibration,
    /// Rate without the correction in progress.
    rate: Line,
    /// Start of the baseline in use, and of the one that follows it.
    baseline: Option<[Sample; 2]>,
    /// UTC less CLOCK_MONOTONIC on this clock's time line; unknown for a clock made from another's calibration until it
    /// first recalibrates.
    utc_offset_ns: Option<i64>,
    step_ns: i64,
    last: Ticks,
    previous: Option<Sample>,
}

/// The result of a recalibration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recalibration {
    /// Kernel time less this clock's time, just before recalibration, in nanoseconds. The offset is corrected gradually
    /// over the next seconds, without a jump.
    pub offset_ns: i64,
    /// Step of UTC away from this clock's time line since calibration, in nanoseconds; not followed, see
    /// [`Clock::adopt_step`]. Zero unless the time was set.
    pub step_ns: i64,
    /// `true` if the tick counter itself jumped and the clock was calibrated again: intervals across this moment are
    /// invalid.
    pub jumped: bool,
}

impl Clock {
    /// Calibrates a clock: fits ticks to UTC over about 50 ms, during which the thread sleeps. The error bound is then
    /// some tens of nanoseconds and grows by up to a microsecond a second until [`recalibrate`](Self::recalibrate)
    /// lengthens the baseline.
    #[must_use]
    pub fn calibrate() -> Self {
        loop {
            let first = Sample::tightest_of(FIRST_TRIES);
            std::thread::sleep(FIRST_BASELINE);
            let second = Sample::tightest_of(FIRST_TRIES);
            if let Some(clock) = Self::fit(&first, &second) {
                return clock;
            }
            // Impossible rate: a trapped or faked counter. The system clock counts nanoseconds, so the loop ends
            // at the second turn; if even that failed, a nominal line is better than none.
            if tsc::tick_source() == TickSource::System {
                return Self::from_line(Line::NOMINAL, &second, &second);
            }
            tsc::distrust();
        }
    }

    /// Creates a clock on another clock's time line, such as that of the process that publishes stamps. From there on
    /// it can [`recalibrate`](Self::recalibrate) by itself.
    #[must_use]
    pub fn with(calibration: Calibration) -> Self {
        Self {
            line: calibration,
            rate: calibration.line,
            baseline: None,
            utc_offset_ns: None,
            step_ns: 0,
            last: Ticks(calibration.anchor_ticks),
            previous: None,
        }
    }

    fn fit(first: &Sample, second: &Sample) -> Option<Self> {
        Some(Self::from_line(Line::between(first, second)?, first, second))
    }

    fn from_line(rate: Line, first: &Sample, now: &Sample) -> Self {
        let line = Calibration::new(now.ticks, now.utc_ns(), rate, now.error_ns(rate));
        Self {
            line,
            rate,
            baseline: Some([*first, *first]),
            utc_offset_ns: Some(now.utc_offset_ns),
            step_ns: 0,
            last: now.ticks,
            previous: Some(*now),
        }
    }

    /// Returns the current time. Costs [`ticks`] and [`at`](Self::at), 10 to 20 ns (bench `clock`).
    #[inline]
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.line.at(ticks())
    }

    /// Returns the time of a tick reading of this host: one multiplication, no division, no floating point.
    #[inline]
    #[must_use]
    pub fn at(&self, ticks: Ticks) -> Nanos {
        self.line.at(ticks)
    }

    /// Returns the nanoseconds from one reading to another, negative when `to` was read first.
    #[inline]
    #[must_use]
    pub fn ns_between(&self, from: Ticks, to: Ticks) -> i64 {
        self.line.ns_between(from, to)
    }

    /// Returns the number of ticks in `ns` nanoseconds, rounded to nearest, for comparing tick differences without
    /// converting each.
    #[must_use]
    pub fn ticks_in(&self, ns: u64) -> u64 {
        self.rate.ticks_in(ns)
    }

    /// Returns the bound on the distance between [`now`](Self::now) and the kernel's UTC, in nanoseconds: half the
    /// width of the bracketing readings, plus any offset not corrected yet, plus the uncertainty of the rate since the
    /// last calibration.
    ///
    /// The bound is valid while the kernel runs its own clock at one rate. A time daemon can slew that clock by up to
    /// 500 parts per million, which the next [`recalibrate`](Self::recalibrate) detects. The bound does not include the
    /// error of the kernel's UTC, nor a step ([`step_ns`](Self::step_ns)).
    #[must_use]
    pub fn error_ns(&self) -> u64 {
        self.line.error_ns_at(ticks())
    }

    /// Returns the current calibration, to be shared with other processes of this host.
    #[must_use]
    pub fn calibration(&self) -> Calibration {
        self.line
    }

    /// Returns the step of UTC away from this clock's time line, in nanoseconds, as of the last recalibration; positive
    /// if UTC was set forward.
    #[must_use]
    pub fn step_ns(&self) -> i64 {
        self.step_ns
    }

    /// Follows a reported step of UTC: stamps jump by [`step_ns`](Self::step_ns), backwards if it is negative.
    pub fn adopt_step(&mut self) {
        self.line = self.line.moved(self.step_ns);
        self.utc_offset_ns = self.utc_offset_ns.map(|offset| offset.saturating_add(self.step_ns));
        self.step_ns = 0;
    }

    /// Compares the clock with the kernel's clocks, lengthens the baseline of the rate, and corrects any offset over
    /// the next seconds so that time stays continuous. Takes about 1 µs. Call it about once a second, from one thread;
    /// without it the error grows as described at [`error_ns`](Self::error_ns).
    pub fn recalibrate(&mut self) -> Recalibration {
        self.recalibrate_with(Sample::tightest_of(LATER_TRIES))
    }

    fn recalibrate_with(&mut self, now: Sample) -> Recalibration {
        // A clock on another clock's line takes the current UTC as the agreed one. If UTC was stepped since that
        // line was created, the step shows as a large offset, and so as a jump.
        let utc_offset_ns = *self.utc_offset_ns.get_or_insert(now.utc_offset_ns);
        let stepped = now.utc_offset_ns.saturating_sub(utc_offset_ns);
        let reading_error = now.error_ns(self.rate);
        self.step_ns = if stepped.unsigned_abs() > STEP_NS + reading_error { stepped } else { 0 };

        let truth = now.utc_at(utc_offset_ns);
        let shown = self.line.at(now.ticks);
        let offset_ns = truth.since(shown);
        let stated_ns = self.line.error_ns_at(now.ticks).saturating_add(reading_error);
        let previous = self.previous.replace(now);
        let elapsed_ns = u64::try_from(self.line.ns_between(self.last, now.ticks)).unwrap_or(0);
        let counter_went_back = now.ticks < self.last;
        self.last = now.ticks;
        if offset_ns.unsigned_abs() > stated_ns {
            // The kernel has changed the rate of its own clock: earlier measurements no longer apply.
            self.baseline = previous.map(|previous| [previous, previous]);
            self.rate.error_ppb = UNKNOWN_RATE_PPB;
        }

        if counter_went_back || offset_ns.unsigned_abs() > JUMP_NS + elapsed_ns / 1_000_000 * 600 {
            self.baseline = Some([now, now]);
            self.line = Calibration::new(now.ticks, truth, self.rate, reading_error);
            return Recalibration { offset_ns, step_ns: self.step_ns, jumped: true };
        }
        self.lengthen(&now);
        // At least twice the time since the last call: a correction that lasts too long overshoots. This way each
        // call leaves at most half of the offset.
        let over_ns = i64::try_from(CORRECTION_NS.max(elapsed_ns.saturating_mul(2))).unwrap_or(i64::MAX);
        let correction_ppb =
            i64::try_from(i128::from(offset_ns) * i128::from(NS_PER_SECOND) / i128::from(over_ns))
                .unwrap_or(0)
                .clamp(-CORRECTION_LIMIT_PPB, CORRECTION_LIMIT_PPB);
        let error_ns = reading_error.saturating_add(offset_ns.unsigned_abs());
        self.line = Calibration::new(now.ticks, shown, self.rate.corrected(correction_ppb), error_ns);
        Recalibration { offset_ns, step_ns: self.step_ns, jumped: false }
    }

    /// Refits the rate from the start of the baseline to `now`, and moves the baseline on once it is long enough.
    fn lengthen(&mut self, now: &Sample) {
        let Some([origin, next]) = &mut self.baseline else {
            self.baseline = Some([*now, *now]);
            return;
        };
        let length_ns = now.monotonic_ns.saturating_sub(origin.monotonic_ns);
        if let Some(rate) = Line::between(origin, now)
            && (length_ns >= SETTLED_BASELINE_NS || rate.error_ppb <= self.rate.error_ppb)
        {
            self.rate = rate;
        }
        if now.monotonic_ns.saturating_sub(next.monotonic_ns) >= BASELINE_NS {
            *origin = *next;
            *next = *now;
        }
    }
}

#[cfg(test)]
mod tests;
