//! Midnight in New York: ITCH counts the nanoseconds of the day from it, and carries no date.

use anyhow::Context;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tapeline_measure::Nanos;

/// The instant at which the New York day of `now` began.
pub(super) fn midnight_before(now: Nanos) -> anyhow::Result<Nanos> {
    let zone = TimeZone::get("America/New_York").context("the time zone of New York is not known")?;
    let midnight = Timestamp::from_nanosecond(i128::from(now.0))
        .context("the clock is out of range")?
        .to_zoned(zone)
        .start_of_day()
        .context("the day has no beginning")?;
    let ns = u64::try_from(midnight.timestamp().as_nanosecond()).context("the clock stands before 1970")?;
    Ok(Nanos(ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summer_time_is_known() {
        for (now, midnight) in [
            // 2020-01-30 08:07:14 UTC: winter, five hours behind.
            (1_580_371_634_000_000_000, 1_580_360_400_000_000_000),
            // 2026-07-01 03:59:59.999999999 UTC is still June in New York, four hours behind.
            (1_782_878_399_999_999_999, 1_782_792_000_000_000_000),
            (1_782_878_400_000_000_000, 1_782_878_400_000_000_000),
        ] {
            assert_eq!(midnight_before(Nanos(now)).unwrap(), Nanos(midnight));
        }
    }
}
