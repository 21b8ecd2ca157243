//! Numbers and times of venues, from their text.

use super::VenueFault;
use crate::draft::Price;

/// A decimal number: `mantissa` × 10^−`decimals`.
pub(super) type Decimal = Price;

/// Maximum decimals of a number: those of a REAL.
pub(super) const MAX_DECIMALS: u8 = 14;

/// Powers of ten that fit in an `i64`.
const POWERS: [i64; 19] = {
    let mut powers = [1; 19];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// Reads a number as it is written, with all its decimals.
///
/// # Errors
/// [`VenueFault::Number`]: the text is not a number, or has more digits than 64 bits, or more than 14 decimals other than zeros at the end.
#[inline]
pub(super) fn decimal(text: &[u8]) -> Result<Decimal, VenueFault> {
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let (mut mantissa, mut decimals, mut has_point, mut count) = (0_i64, 0_u32, false, 0_u32);
    let mut exponent = 0_i32;
    for (at, byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                let digit = i64::from(byte - b'0');
                mantissa =
                    mantissa.checked_mul(10).and_then(|m| m.checked_add(digit)).ok_or(VenueFault::Number)?;
                decimals += u32::from(has_point);
                count += 1;
            }
            b'.' if !has_point && count > 0 => has_point = true,
            b'e' | b'E' if count > 0 => {
                exponent = power(&digits[at + 1..])?;
                break;
            }
            _ => return Err(VenueFault::Number),
        }
    }
    if count == 0 || has_point && decimals == 0 {
        return Err(VenueFault::Number);
    }
    let mut decimals = i32::try_from(decimals).map_err(|_| VenueFault::Number)? - exponent;
    while decimals < 0 {
        mantissa = mantissa.checked_mul(10).ok_or(VenueFault::Number)?;
        decimals += 1;
    }
    while decimals > i32::from(MAX_DECIMALS) && mantissa % 10 == 0 && mantissa != 0 {
        (mantissa, decimals) = (mantissa / 10, decimals - 1);
    }
    if mantissa == 0 {
        decimals = decimals.min(i32::from(MAX_DECIMALS));
    }
    let decimals = u8::try_from(decimals).ok().filter(|decimals| *decimals <= MAX_DECIMALS);
    let decimals = decimals.ok_or(VenueFault::Number)?;
    Ok(Decimal { mantissa: if is_negative { -mantissa } else { mantissa }, decimals })
}

/// Reads the exponent of a number.
fn power(text: &[u8]) -> Result<i32, VenueFault> {
    let text = std::str::from_utf8(text).map_err(|_| VenueFault::Number)?;
    text.parse().ok().filter(|power: &i32| power.unsigned_abs() <= 32).ok_or(VenueFault::Number)
}

/// Reads a number, without zeros at the end of its decimals: `61737.63000000` has two.
#[inline]
pub(super) fn shortest(text: &[u8]) -> Result<Decimal, VenueFault> {
    let mut number = decimal(text)?;
    while number.decimals > 0 && number.mantissa % 10 == 0 {
        number.mantissa /= 10;
        number.decimals -= 1;
    }
    Ok(number)
}

/// Returns the mantissa of a number with `decimals` decimals; `None` if it has more, or does not fit.
#[inline]
pub(super) fn at_scale(number: Decimal, decimals: u8) -> Option<i64> {
    let more = decimals.checked_sub(number.decimals)?;
    if more == 0 {
        return Some(number.mantissa);
    }
    number.mantissa.checked_mul(*POWERS.get(usize::from(more))?)
}

/// Returns `true` if two numbers are equal, whatever their decimals.
#[inline]
pub(super) fn are_equal(one: Decimal, other: Decimal) -> bool {
    let decimals = one.decimals.max(other.decimals);
    match (at_scale(one, decimals), at_scale(other, decimals)) {
        (Some(one), Some(other)) => one == other,
        // The longer one does not fit in the decimals of the other: they differ.
        _ => false,
    }
}

/// Reads a whole number that is not negative.
#[inline]
pub(super) fn whole(text: &[u8]) -> Result<u64, VenueFault> {
    if text.is_empty() {
        return Err(VenueFault::Number);
    }
    text.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        let next = number.checked_mul(10).and_then(|number| number.checked_add(u64::from(digit)));
        next.filter(|_| digit < 10).ok_or(VenueFault::Number)
    })
}

/// Reads a count of milliseconds since 1970 UTC, in ns.
#[inline]
pub(super) fn milliseconds(text: &[u8]) -> Result<u64, VenueFault> {
    whole(text)?.checked_mul(1_000_000).ok_or(VenueFault::Number)
}

/// Reads seconds since 1970 UTC with decimals, such as `1618678123.481570`, in ns.
pub(super) fn seconds(text: &[u8]) -> Result<u64, VenueFault> {
    let number = shortest(text)?;
    let ns = at_scale(number, 9).and_then(|ns| u64::try_from(ns).ok());
    ns.ok_or(VenueFault::Number)
}

/// Reads a time such as `2021-04-17T16:43:30.244075Z`, in ns since 1970 UTC.
pub(super) fn date_time(text: &[u8]) -> Result<u64, VenueFault> {
    let (Some((head, tail)), Some(b'Z')) = (text.split_at_checked(19), text.last()) else {
        return Err(VenueFault::Number);
    };
    let part = |from: usize, to: usize| whole(&head[from..to]);
    let are_signs = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if are_signs.iter().any(|(at, sign)| head[*at] != *sign) {
        return Err(VenueFault::Number);
    }
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let (hour, minute, second) = (part(11, 13)?, part(14, 16)?, part(17, 19)?);
    if year < 1970
        || !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
        || hour > 23
        || minute > 59
        || second > 60
    {
        return Err(VenueFault::Number);
    }
    let fraction = match &tail[..tail.len() - 1] {
        [] => 0,
        [b'.', digits @ ..] if (1..=9).contains(&digits.len()) => {
            whole(digits)? * POWERS[9 - digits.len()].unsigned_abs()
        }
        _ => return Err(VenueFault::Number),
    };
    // Days since 1970-01-01 in the Gregorian calendar, with years that begin in March. Source: H. Hinnant, "chrono-compatible low-level date
    // algorithms", days_from_civil.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let of_era = (year % 400) * 365 + (year % 400) / 4 - (year % 400) / 100 + (153 * month + 2) / 5 + day - 1;
    let days = (year / 400) * 146_097 + of_era - 719_468;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    seconds.checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(fraction)).ok_or(VenueFault::Number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(mantissa: i64, decimals: u8) -> Result<Decimal, VenueFault> {
        Ok(Decimal { mantissa, decimals })
    }

    #[test]
    fn numbers_keep_their_digits() {
        assert_eq!(decimal(b"61737.63000000"), number(6_173_763_000_000, 8));
        assert_eq!(shortest(b"61737.63000000"), number(6_173_763, 2));
        assert_eq!(decimal(b"-0.0125"), number(-125, 4));
        assert_eq!(decimal(b"5e-05"), number(5, 5));
        assert_eq!(decimal(b"1.5E3"), number(1_500, 0));
        assert_eq!(decimal(b"0"), number(0, 0));
        assert_eq!(shortest(b"0.00000000"), number(0, 0));
        for text in
            ["", "-", ".", ".5", "1.", "1.2.3", "1e", "1e99", "0x1", "9223372036854775808", "NaN", "1 "]
        {
            assert_eq!(decimal(text.as_bytes()), Err(VenueFault::Number), "{text}");
        }
        assert_eq!(decimal(b"0.000000000000001"), Err(VenueFault::Number), "15 decimals");
        assert_eq!(decimal(b"0.0000000000000000000"), number(0, 14));
        assert_eq!(whole(b"18446744073709551615"), Ok(u64::MAX));
        assert_eq!(whole(b"18446744073709551616"), Err(VenueFault::Number));
    }

    #[test]
    fn times_of_all_forms() {
        assert_eq!(date_time(b"1970-01-01T00:00:00Z"), Ok(0));
        assert_eq!(date_time(b"2021-04-17T16:43:30.244075Z"), Ok(1_618_677_810_244_075_000));
        assert_eq!(date_time(b"2024-02-29T23:59:59.999Z"), Ok(1_709_251_199_999_000_000));
        assert_eq!(seconds(b"1618678123.481570"), Ok(1_618_678_123_481_570_000));
        assert_eq!(milliseconds(b"1723161255208"), Ok(1_723_161_255_208_000_000));
        for text in
            ["", "Z", "2021-04-17", "2021-13-17T16:43:30Z", "2021-04-17T16:43:30", "0000-00-00T00:00:00Z"]
        {
            assert_eq!(date_time(text.as_bytes()), Err(VenueFault::Number), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(mantissa in -1_000_000_000_000_i64..1_000_000_000_000, decimals in 0_u8..=8) {
            let power = POWERS[usize::from(decimals)];
            let sign = if mantissa < 0 { "-" } else { "" };
            let (whole, rest) = (mantissa.abs() / power, mantissa.abs() % power);
            let text = match decimals {
                0 => format!("{sign}{whole}"),
                _ => format!("{sign}{whole}.{rest:0width$}", width = usize::from(decimals)),
            };
            prop_assert_eq!(decimal(text.as_bytes()), number(mantissa, decimals));
        }

        #[test]
        fn no_text_makes_a_number_fail(text in "[-+0-9.eEZT:]{0,40}") {
            let _ = (decimal(text.as_bytes()), shortest(text.as_bytes()), whole(text.as_bytes()));
            let _ = (date_time(text.as_bytes()), seconds(text.as_bytes()), milliseconds(text.as_bytes()));
        }
    }
}
