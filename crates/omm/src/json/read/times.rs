//! Dates and times in all known forms.

use crate::rwf::{Date, DateTime, Time};

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];

/// Returns a number of `least` to `most` digits.
fn number(text: &str, least: usize, most: usize) -> Option<u16> {
    let fits = (least..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if fits { text.parse().ok() } else { None }
}

fn small(text: &str, least: usize, most: u8) -> Option<u8> {
    number(text, least, 2).and_then(|value| u8::try_from(value).ok()).filter(|value| *value <= most)
}

/// Returns a date: `2024-02-29`, `2024-02`, `2024`, `29 FEB 2024`, `02/29/2024`; an empty text is blank.
pub(super) fn date(text: &str) -> Option<Date> {
    if text.is_empty() {
        return Some(Date::BLANK);
    }
    let mut parts = text.splitn(3, ['-', '/', ' ']);
    let (a, b, c) = (parts.next()?, parts.next(), parts.next());
    let (year, month, day) = if text.contains('/') {
        (c?, small(a, 2, 12)?, small(b?, 2, 31)?)
    } else if text.contains(' ') {
        let name = b?.to_ascii_uppercase();
        let month = MONTHS.iter().position(|month| *month == name)? + 1;
        (c?, u8::try_from(month).ok()?, small(a, 1, 31)?)
    } else {
        (a, b.map_or(Some(0), |b| small(b, 2, 12))?, c.map_or(Some(0), |c| small(c, 2, 31))?)
    };
    Some(Date { day, month, year: number(year, 4, 5)? })
}

/// Returns a time: `hh:mm`, `hh:mm:ss`, and a fraction of up to nine digits, or groups of three after colons; one digit
/// may stand for two.
pub(super) fn time(text: &str) -> Option<Time> {
    usual_time(text.as_bytes()).or_else(|| any_time(text))
}

/// Reads `hh:mm:ss` with an optional fraction, as nearly every sender writes it; `None` for every other form, valid or not.
fn usual_time(text: &[u8]) -> Option<Time> {
    let digit = |byte: &u8| Some(byte.wrapping_sub(b'0')).filter(|digit| *digit < 10);
    let two = |tens, ones, most| Some(10 * digit(tens)? + digit(ones)?).filter(|value: &u8| *value <= most);
    let ([h, hh, b':', m, mm, b':', s, ss], fraction) = text.split_first_chunk()? else {
        return None;
    };
    let time =
        Time { hour: two(h, hh, 23)?, minute: two(m, mm, 59)?, second: two(s, ss, 60)?, ..Time::default() };
    let digits = match fraction {
        [] => return Some(time),
        [b'.', digits @ ..] if (1..=9).contains(&digits.len()) => digits,
        _ => return None,
    };
    let value = digits.iter().try_fold(0, |value: u32, byte| Some(10 * value + u32::from(digit(byte)?)))?;
    let nanoseconds = value * 10_u32.pow(9 - digits.len() as u32);
    Some(Time {
        millisecond: (nanoseconds / 1_000_000) as u16,
        microsecond: (nanoseconds / 1_000 % 1_000) as u16,
        nanosecond: (nanoseconds % 1_000) as u16,
        ..time
    })
}

fn any_time(text: &str) -> Option<Time> {
    let mut parts = text.splitn(4, ':');
    let mut time =
        Time { hour: small(parts.next()?, 1, 23)?, minute: small(parts.next()?, 1, 59)?, ..Time::default() };
    let Some(second) = parts.next() else {
        return Some(time);
    };
    let (second, fraction) =
        second.split_once('.').map_or((second, None), |(second, digits)| (second, Some(digits)));
    time.second = small(second, 1, 60)?;
    match (fraction, parts.next()) {
        (None, None) => {}
        (Some(digits), None) => {
            if !(1..=9).contains(&digits.len()) {
                return None;
            }
            let mut padded = *b"000000000";
            padded.iter_mut().zip(digits.bytes()).for_each(|(to, digit)| *to = digit);
            let group = |n: usize| number(str::from_utf8(padded.get(n..n + 3)?).ok()?, 3, 3);
            (time.millisecond, time.microsecond, time.nanosecond) = (group(0)?, group(3)?, group(6)?);
        }
        (None, Some(groups)) => {
            let mut groups = groups.splitn(3, ':').map(|group| number(group, 1, 3));
            time.millisecond = groups.next()??;
            time.microsecond = groups.next().unwrap_or(Some(0))?;
            time.nanosecond = groups.next().unwrap_or(Some(0))?;
        }
        (Some(_), Some(_)) => return None,
    }
    Some(time)
}

/// Returns a date and a time, separated by `T` or a blank, with an optional `Z`; either part may be missing.
pub(super) fn date_time(text: &str) -> Option<DateTime> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    // Neither the blanks of "29 OCT 2024" nor its T precede a time.
    let is_time = |split: &(&str, &str)| split.1.contains(':') && !split.1.contains('T');
    let split = text.rsplit_once(' ').filter(is_time).or_else(|| text.rsplit_once('T').filter(is_time));
    match split {
        Some((date_text, time_text)) => Some(DateTime { date: date(date_text)?, time: time(time_text)? }),
        _ => Some(DateTime { date: date(text)?, time: Time::BLANK }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let on = |year, month, day| Some(Date { day, month, year });
        for (text, expected) in [
            ("2026-02-28", on(2026, 2, 28)),
            ("65535-12-31", on(65_535, 12, 31)),
            ("2026-02", on(2026, 2, 0)),
            ("2026", on(2026, 0, 0)),
            ("28 FEB 2026", on(2026, 2, 28)),
            ("1 oct 2026", on(2026, 10, 1)),
            ("02/28/2026", on(2026, 2, 28)),
            ("", on(0, 0, 0)),
            ("2026-2-8", None),
            ("2026-13-01", None),
            ("28/02/2026", None),
            ("65536-01-01", None),
            ("2026-02-28-1", None),
            ("+026-02-28", None),
            ("soon", None),
        ] {
            assert_eq!(date(text), expected, "{text}");
        }
    }

    #[test]
    fn times() {
        let at = |hour, minute, second, ms, us, ns| {
            Some(Time { hour, minute, second, millisecond: ms, microsecond: us, nanosecond: ns })
        };
        for (text, expected) in [
            ("12:34", at(12, 34, 0, 0, 0, 0)),
            ("1:2:3", at(1, 2, 3, 0, 0, 0)),
            ("23:59:60.999999999", at(23, 59, 60, 999, 999, 999)),
            ("12:34:56.7", at(12, 34, 56, 700, 0, 0)),
            ("12:34:56:789", at(12, 34, 56, 789, 0, 0)),
            ("14:40:32:000:001:002", at(14, 40, 32, 0, 1, 2)),
            ("24:00", None),
            ("12", None),
            ("12:34:56.", None),
            ("12:34:56.1234567890", None),
            ("12:34:56.5:1", None),
            ("12:34:56:1000", None),
            ("", None),
        ] {
            assert_eq!(time(text), expected, "{text}");
            assert_eq!(any_time(text), expected, "{text}");
        }
    }

    #[test]
    fn dates_with_times() {
        let date = Date { day: 28, month: 2, year: 2026 };
        let noon = Time { hour: 12, ..Time::default() };
        for text in ["2026-02-28T12:00:00", "2026-02-28T12:00Z", "2026-02-28 12:00:00", "28 FEB 2026 12:00"] {
            assert_eq!(date_time(text), Some(DateTime { date, time: noon }), "{text}");
        }
        for text in ["2026-02-28", "28 FEB 2026"] {
            assert_eq!(date_time(text), Some(DateTime { date, time: Time::BLANK }), "{text}");
        }
        assert_eq!(date_time("T12:00"), Some(DateTime { date: Date::BLANK, time: noon }));
        assert_eq!(
            date_time("1 OCT 2026"),
            Some(DateTime { date: Date { day: 1, month: 10, year: 2026 }, time: Time::BLANK })
        );
        let october = DateTime { date: Date { day: 1, month: 10, year: 2026 }, time: noon };
        for text in ["1 OCT 2026 12:00", "1 OCT 2026T12:00"] {
            assert_eq!(date_time(text), Some(october), "{text}");
        }
        assert_eq!(date_time("2026-02-28T"), None);
    }
}
