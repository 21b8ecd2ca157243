//! The timestamp type that every part of Tapeline uses. This crate reads no clock.
//!
//! ```
//! use tapeline_nanos::Nanos;
//!
//! let sent = Nanos(1_795_250_405_000_000_001);
//! let received = sent + 1_500;
//! assert_eq!(received.since(sent), 1_500);
//! assert_eq!(sent.to_string(), "2026-11-21T08:40:05.000000001Z");
//! ```

#![forbid(unsafe_code)]

use std::fmt;
use std::ops::Add;

/// Nanoseconds since 1970-01-01 00:00 UTC (until the year 2554). The kernel handles leap seconds.
///
/// Prints as RFC 3339 with nine digits: `2026-11-21T08:40:05.000000001Z`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
#[repr(transparent)]
pub struct Nanos(pub u64);

const NS_PER_SECOND: u64 = 1_000_000_000;
const SECONDS_PER_DAY: u64 = 86_400;

impl Nanos {
    /// Returns the signed distance in nanoseconds from `earlier` to this timestamp; negative if `earlier` is the later
    /// one. Timestamps more than 292 years apart give the nearest value that fits.
    #[inline]
    #[must_use]
    pub fn since(self, earlier: Self) -> i64 {
        if self.0 >= earlier.0 {
            i64::try_from(self.0 - earlier.0).unwrap_or(i64::MAX)
        } else {
            i64::try_from(earlier.0 - self.0).map_or(i64::MIN, |ns| -ns)
        }
    }

    /// Formats the UTC date and time to the second for use in file names: `2026-11-21T08-40-05Z`.
    #[must_use]
    pub fn file_stamp(self) -> String {
        let (date, time) = self.civil();
        format!("{}T{:02}-{:02}-{:02}Z", DashedDate(date), time[0], time[1], time[2])
    }

    /// ([year, month, day], [hour, minute, second]) in UTC.
    fn civil(self) -> ([u64; 3], [u64; 3]) {
        let seconds = self.0 / NS_PER_SECOND;
        let of_day = seconds % SECONDS_PER_DAY;
        (date_of(seconds / SECONDS_PER_DAY), [of_day / 3600, of_day / 60 % 60, of_day % 60])
    }
}

/// The Gregorian date of a count of days since 1970-01-01.
///
/// Counts from 0000-03-01, so that the leap day ends a year, a century and a 400-year cycle of 146,097 days; months from
/// March on then begin at day (153 m + 2) / 5 of the year.
fn date_of(days: u64) -> [u64; 3] {
    const FROM_YEAR_ZERO: u64 = 719_468;
    const CYCLE: u64 = 146_097;
    let days = days + FROM_YEAR_ZERO;
    let of_cycle = days % CYCLE;
    let year_of_cycle = (of_cycle - of_cycle / 1_460 + of_cycle / 36_524 - of_cycle / (CYCLE - 1)) / 365;
    let of_year = of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = days / CYCLE * 400 + year_of_cycle + u64::from(month <= 2);
    [year, month, day]
}

struct DashedDate([u64; 3]);

impl fmt::Display for DashedDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.0[0], self.0[1], self.0[2])
    }
}

impl Add<u64> for Nanos {
    type Output = Self;

    /// Adds `ns` nanoseconds; saturates at the latest timestamp.
    #[inline]
    fn add(self, ns: u64) -> Self {
        Self(self.0.saturating_add(ns))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (date, time) = self.civil();
        let fraction = self.0 % NS_PER_SECOND;
        write!(f, "{}T{:02}:{:02}:{:02}.{fraction:09}Z", DashedDate(date), time[0], time[1], time[2])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_known_dates() {
        // From `date -u -d @SECONDS`.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000000000Z"),
            (951_782_399, "2000-02-28T23:59:59.000000000Z"),
            (951_782_400, "2000-02-29T00:00:00.000000000Z"),
            (951_868_800, "2000-03-01T00:00:00.000000000Z"),
            (1_580_389_200, "2020-01-30T13:00:00.000000000Z"),
            (4_107_542_399, "2100-02-28T23:59:59.000000000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000000000Z"),
        ] {
            assert_eq!(Nanos(seconds * NS_PER_SECOND).to_string(), text);
        }
        assert_eq!(Nanos(1_580_389_205_000_000_001).file_stamp(), "2020-01-30T13-00-05Z");
        assert_eq!(Nanos(u64::MAX).to_string(), "2554-07-21T23:34:33.709551615Z");
    }

    #[test]
    fn distance_is_signed_and_never_wraps() {
        assert_eq!(Nanos(5).since(Nanos(3)), 2);
        assert_eq!(Nanos(3).since(Nanos(5)), -2);
        assert_eq!(Nanos(u64::MAX).since(Nanos(0)), i64::MAX);
        assert_eq!(Nanos(0).since(Nanos(u64::MAX)), i64::MIN);
        assert_eq!(Nanos(u64::MAX) + 1, Nanos(u64::MAX));
    }
}
