//! The line from ticks to nanoseconds, in fixed point.

use crate::clock::sample::Sample;
use crate::tsc::{TickSource, Ticks, tick_source};
use tapeline_nanos::Nanos;

pub(super) const NS_PER_SECOND: u64 = 1_000_000_000;

/// Binary places of the rate. One second of ticks at 3 GHz is then exact to 10⁻⁷ ns.
const PLACES: u32 = 56;
/// One nanosecond a tick.
const ONE: u64 = 1 << PLACES;
/// Rates from 20 GHz down to 500 MHz; no existing counter is outside. The upper limit also keeps
/// `ticks × rate >> PLACES` below 2⁶⁴ for every distance below 2⁶³ ticks.
const SLOWEST: u64 = ONE / 20;
const FASTEST: u64 = ONE * 2 - 1;

/// Nanoseconds per tick, with an error bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// In 2⁻⁵⁶ ns, between `SLOWEST` and `FASTEST`.
    rate: u64,
    /// Parts per 10⁹.
    pub(super) error_ppb: u64,
}

impl Line {
    /// A tick is a nanosecond, give or take a per mille.
    pub(super) const NOMINAL: Self = Self { rate: ONE, error_ppb: 1_000_000 };

    /// The rate between two samples; `None` if no counter can have that rate.
    pub(super) fn between(first: &Sample, second: &Sample) -> Option<Self> {
        let ticks = second.ticks.0.checked_sub(first.ticks.0)?;
        let ns = second.monotonic_ns.checked_sub(first.monotonic_ns)?;
        if ticks == 0 || ns == 0 {
            return None;
        }
        let rate = u64::try_from((u128::from(ns) << PLACES) / u128::from(ticks)).ok()?;
        if !(SLOWEST..=FASTEST).contains(&rate) {
            return None;
        }
        let uncertain =
            Self { rate, error_ppb: 0 }.ns_in(first.half_ticks.saturating_add(second.half_ticks)) + 2;
        let error_ppb = u128::from(uncertain) * u128::from(NS_PER_SECOND) / u128::from(ns) + 1;
        Some(Self { rate, error_ppb: u64::try_from(error_ppb).unwrap_or(u64::MAX) })
    }

    /// This line made faster by `ppb` parts per 10⁹, slower if negative; the correction counts as error.
    pub(super) fn corrected(self, ppb: i64) -> Self {
        let change = i128::from(self.rate) * i128::from(ppb) / i128::from(NS_PER_SECOND);
        let rate = (i128::from(self.rate) + change).clamp(i128::from(SLOWEST), i128::from(FASTEST));
        Self { rate: rate as u64, error_ppb: self.error_ppb.saturating_add(ppb.unsigned_abs()) }
    }

    /// Nanoseconds in a number of ticks (fewer than 2⁶³).
    #[inline]
    pub(super) fn ns_in(self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.rate)) >> PLACES) as u64
    }

    /// Ticks in a number of nanoseconds, rounded to nearest.
    pub(super) fn ticks_in(self, ns: u64) -> u64 {
        let rate = u128::from(self.rate);
        u64::try_from(((u128::from(ns) << PLACES) + rate / 2) / rate).unwrap_or(u64::MAX)
    }
}

/// The conversion from ticks of this host to UTC: the start of the line, its rate, and its error. It fits into four
/// words, so that a process can publish the time base of its stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calibration {
    pub(super) anchor_ticks: u64,
    anchor_ns: u64,
    pub(super) line: Line,
    /// Error bound at the anchor.
    error_ns: u64,
    source: TickSource,
}

/// Layout of the fourth word: rate error in parts per 10⁹ (24 bits), error at the anchor in ns (32 bits), mark (8 bits).
const PPB_BITS: u32 = 24;
const ERROR_BITS: u32 = 32;
/// High half of the mark; the low half is the tick source. Never zero, so that cleared memory is not a calibration.
const MARK: u64 = 0xc0;

impl Calibration {
    pub(super) fn new(anchor: Ticks, at: Nanos, line: Line, error_ns: u64) -> Self {
        Self { anchor_ticks: anchor.0, anchor_ns: at.0, line, error_ns, source: tick_source() }
    }

    pub(super) fn moved(self, by_ns: i64) -> Self {
        Self { anchor_ns: self.anchor_ns.saturating_add_signed(by_ns), ..self }
    }

    /// Returns the time of a tick reading. Any reading gives a time, never a panic.
    #[inline]
    #[must_use]
    pub fn at(&self, ticks: Ticks) -> Nanos {
        let distance = ticks.0.wrapping_sub(self.anchor_ticks);
        if distance < 1 << 63 {
            Nanos(self.anchor_ns.saturating_add(self.line.ns_in(distance)))
        } else {
            Nanos(self.anchor_ns.saturating_sub(self.line.ns_in(distance.wrapping_neg())))
        }
    }

    /// Returns the nanoseconds from one reading to another, negative when `to` was read first.
    #[inline]
    #[must_use]
    pub fn ns_between(&self, from: Ticks, to: Ticks) -> i64 {
        let distance = to.0.wrapping_sub(from.0);
        if distance < 1 << 63 {
            i64::try_from(self.line.ns_in(distance)).unwrap_or(i64::MAX)
        } else {
            i64::try_from(self.line.ns_in(distance.wrapping_neg())).map_or(i64::MIN, |ns| -ns)
        }
    }

    /// Returns the bound on the error at a tick reading, in nanoseconds; see
    /// [`Clock::error_ns`](crate::Clock::error_ns).
    #[must_use]
    pub fn error_ns_at(&self, ticks: Ticks) -> u64 {
        let elapsed_ns = self.ns_between(Ticks(self.anchor_ticks), ticks).unsigned_abs();
        let drift = u128::from(elapsed_ns) * u128::from(self.line.error_ppb) / u128::from(NS_PER_SECOND);
        self.error_ns.saturating_add(u64::try_from(drift).unwrap_or(u64::MAX))
    }

    /// Returns the tick rate in kHz.
    #[must_use]
    pub fn ticks_khz(&self) -> u64 {
        self.line.ticks_in(1_000_000)
    }

    /// Encodes the calibration in four words, which [`from_words`](Self::from_words) decodes in any process on this
    /// host.
    #[must_use]
    pub fn to_words(&self) -> [u64; 4] {
        let ppb = self.line.error_ppb.min((1 << PPB_BITS) - 1);
        let error_ns = self.error_ns.min((1 << ERROR_BITS) - 1);
        let mark = MARK | self.source as u64;
        [
            self.anchor_ticks,
            self.anchor_ns,
            self.line.rate,
            ppb | error_ns << PPB_BITS | mark << (PPB_BITS + ERROR_BITS),
        ]
    }

    /// Decodes a calibration from four words. `None` if the words are not a calibration, or come from another
    /// tick source than this process uses. Altered words can give wrong times, but have no other effect.
    #[must_use]
    pub fn from_words(words: [u64; 4]) -> Option<Self> {
        let [anchor_ticks, anchor_ns, rate, rest] = words;
        let source = tick_source();
        if rest >> (PPB_BITS + ERROR_BITS) != MARK | source as u64 || !(SLOWEST..=FASTEST).contains(&rate) {
            return None;
        }
        let error_ppb = rest & ((1 << PPB_BITS) - 1);
        let error_ns = rest >> PPB_BITS & ((1 << ERROR_BITS) - 1);
        Some(Self { anchor_ticks, anchor_ns, line: Line { rate, error_ppb }, error_ns, source })
    }
}
