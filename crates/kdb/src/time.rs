//! Times as q shows them. All count from 1 January 2000.

use std::fmt::{Formatter, Result};

/// The time from 1970 to 2000 in ns, for converting times in ns since 1970.
pub const UNIX_2000_NS: i64 = 946_684_800_000_000_000;

const DAY_NS: i64 = 86_400_000_000_000;
const DAY_MS: i64 = 86_400_000;
/// Days from 1 March 0000, in the Gregorian calendar continued backwards, to 1 January 2000.
const FROM_MARCH_0: i64 = 730_425;
/// Days of 400 years, after which the calendar repeats.
const DAYS_400: i64 = 146_097;

/// Returns year, month and day of a number of days since 2000.
fn calendar(days: i64) -> (i64, i64, i64) {
    // Years begin in March here, so that a leap day is the last of its year.
    let days = days + FROM_MARCH_0;
    let era = days.div_euclid(DAYS_400);
    let day = days.rem_euclid(DAYS_400);
    let year = (day - day / 1_460 + day / 36_524 - day / (DAYS_400 - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Months repeat with 31, 30, 31, 30, 31 days: 153 days in five months.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = (400 * era + year, month + 3);
    if month > 12 { (year + 1, month - 12, day) } else { (year, month, day) }
}

pub(crate) fn date(days: i64, f: &mut Formatter<'_>) -> Result {
    let (year, month, day) = calendar(days);
    write!(f, "{year:04}.{month:02}.{day:02}")
}

pub(crate) fn month(months: i32, f: &mut Formatter<'_>) -> Result {
    let months = i64::from(months);
    write!(f, "{:04}.{:02}m", 2000 + months.div_euclid(12), months.rem_euclid(12) + 1)
}

pub(crate) fn timestamp(ns: i64, f: &mut Formatter<'_>) -> Result {
    date(ns.div_euclid(DAY_NS), f)?;
    f.write_str("D")?;
    of_day_ns(ns.rem_euclid(DAY_NS), f)
}

pub(crate) fn datetime(days: f64, f: &mut Formatter<'_>) -> Result {
    // The cast saturates; values outside the range of q's dates do not occur.
    let ms = (days * DAY_MS as f64).round() as i64;
    date(ms.div_euclid(DAY_MS), f)?;
    f.write_str("T")?;
    of_day_ms(ms.rem_euclid(DAY_MS), f)
}

pub(crate) fn timespan(ns: i64, f: &mut Formatter<'_>) -> Result {
    let days = ns.unsigned_abs() / DAY_NS as u64;
    write!(f, "{}{days}D", sign(ns))?;
    of_day_ns((ns.unsigned_abs() % DAY_NS as u64) as i64, f)
}

pub(crate) fn minute(minutes: i32, f: &mut Formatter<'_>) -> Result {
    let size = minutes.unsigned_abs();
    write!(f, "{}{:02}:{:02}", sign(minutes.into()), size / 60, size % 60)
}

pub(crate) fn second(seconds: i32, f: &mut Formatter<'_>) -> Result {
    f.write_str(sign(seconds.into()))?;
    of_day_s(seconds.unsigned_abs().into(), f)
}

pub(crate) fn time(ms: i32, f: &mut Formatter<'_>) -> Result {
    f.write_str(sign(ms.into()))?;
    of_day_ms(ms.unsigned_abs().into(), f)
}

const fn sign(number: i64) -> &'static str {
    if number < 0 { "-" } else { "" }
}

fn of_day_s(seconds: i64, f: &mut Formatter<'_>) -> Result {
    write!(f, "{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

fn of_day_ms(ms: i64, f: &mut Formatter<'_>) -> Result {
    of_day_s(ms / 1_000, f)?;
    write!(f, ".{:03}", ms % 1_000)
}

fn of_day_ns(ns: i64, f: &mut Formatter<'_>) -> Result {
    of_day_s(ns / 1_000_000_000, f)?;
    write!(f, ".{:09}", ns % 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        // Days since 2000 computed in another way: by adding the lengths of years and months.
        let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let mut days = 0;
        for year in 2000..2801 {
            for (month, len) in (1..).zip([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]) {
                let len = len + i64::from(month == 2 && leap(year));
                for day in 1..=len {
                    assert_eq!(calendar(days), (year, month, day));
                    days += 1;
                }
            }
        }
        assert_eq!(calendar(-1), (1999, 12, 31));
        assert_eq!(calendar(-10_957), (1970, 1, 1));
    }
}
