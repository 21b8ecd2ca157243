//! Midnight in New York: ITCH time stamps count nanoseconds from it, and carry no date.

use anyhow::Context;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use tapeline_measure::Nanos;

/// The instant at which the New York day of `now` began.
///
/// # Errors
/// If the time lies outside of 1970 to 2554, or this machine does not know the time zone.
pub fn midnight_before(now: Nanos) -> anyhow::Result<Nanos> {
    let now = Timestamp::from_nanosecond(i128::from(now.0)).context("the clock is out of range")?;
    midnight_of(now.to_zoned(new_york()?).date())
}

/// The instant at which a day began in New York.
///
/// # Errors
/// As [`midnight_before`].
pub fn midnight_of(day: Date) -> anyhow::Result<Nanos> {
    let midnight = day.to_zoned(new_york()?).context("the day has no beginning in New York")?;
    let ns = u64::try_from(midnight.timestamp().as_nanosecond()).context("the day lies before 1970")?;
    Ok(Nanos(ns))
}

fn new_york() -> anyhow::Result<TimeZone> {
    TimeZone::get("America/New_York").context("the time zone of New York is not known")
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
        assert_eq!(midnight_of("2020-01-30".parse().unwrap()).unwrap(), Nanos(1_580_360_400_000_000_000));
    }
}
