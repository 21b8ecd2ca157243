//! Field values in text form.

use tapeline_omm::{Date, Real, Time};

/// A decimal number with up to 14 places.
pub fn real(text: &str) -> Option<Real> {
    let (whole, places) = text.split_once('.').unwrap_or((text, ""));
    if places.len() > 14 || !places.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(Real::decimal(format!("{whole}{places}").parse().ok()?, places.len() as u8))
}

/// `2026-11-21`.
pub fn date(text: &str) -> Option<Date> {
    let mut parts = text.splitn(3, '-');
    let year = parts.next()?.parse().ok()?;
    let month = parts.next()?.parse().ok().filter(|month| (1..=12).contains(month))?;
    let day = parts.next()?.parse().ok().filter(|day| (1..=31).contains(day))?;
    Some(Date { day, month, year })
}

/// `14:30:15` with up to nine decimals.
pub fn time(text: &str) -> Option<Time> {
    let (clock, decimals) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = clock.splitn(3, ':');
    let mut part = |limit: u64| parts.next()?.parse::<u64>().ok().filter(|part| *part < limit);
    let (hours, minutes, seconds) = (part(24)?, part(60)?, part(60)?);
    if decimals.len() > 9 || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let ns: u64 = format!("{decimals:0<9}").parse().ok()?;
    Some(Time::from_ns_of_day(((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000 + ns))
}
