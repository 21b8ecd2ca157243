//! REAL from the digits of a text, without conversion to a binary fraction.

use crate::rwf::{Hint, Real};

/// Maximum number of decimals of a REAL.
const MOST_PLACES: i64 = 14;
/// Maximum power of ten of a REAL.
const MOST_TENS: i64 = 7;

/// Returns a JSON number with its digits and places; `None` if no REAL has that value.
#[inline]
pub(super) fn real(text: &str) -> Option<Real> {
    short(text).or_else(|| any(text))
}

/// Handles nearly every number: no exponent, and so few digits that an i64 certainly holds them.
#[inline]
fn short(text: &str) -> Option<Real> {
    const MOST_BYTES: usize = 18;
    let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    if digits.len() > MOST_BYTES {
        return None;
    }
    let (mut mantissa, mut places, mut has_point) = (0_i64, 0_u8, false);
    for byte in digits.bytes() {
        match byte {
            b'0'..=b'9' => {
                mantissa = mantissa * 10 + i64::from(byte - b'0');
                places += u8::from(has_point);
            }
            b'.' if !has_point => has_point = true,
            _ => return None,
        }
    }
    let mantissa = if is_negative { -mantissa } else { mantissa };
    (i64::from(places) <= MOST_PLACES).then(|| Real::decimal(mantissa, places))
}

fn any(text: &str) -> Option<Real> {
    let (is_negative, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
    let (digits, exponent) = match text.split_once(['e', 'E']) {
        // An exponent that does not fit 64 bits is far beyond any REAL, unless the number is zero.
        Some((digits, exponent)) => (digits, exponent.parse::<i64>().unwrap_or(i64::MAX / 2)),
        None => (text, 0),
    };
    let (whole, places) = digits.split_once('.').unwrap_or((digits, ""));
    let mut exponent = exponent.checked_sub(i64::try_from(places.len()).ok()?)?;
    let mut mantissa = 0_i128;
    // Digits beyond the capacity of the mantissa must be zeros.
    let mut dropped = 0;
    for digit in whole.bytes().chain(places.bytes()) {
        let digit = i128::from(digit.checked_sub(b'0').filter(|digit| *digit < 10)?);
        if mantissa > i128::from(u64::MAX) {
            if digit != 0 {
                return None;
            }
            dropped += 1;
        } else {
            mantissa = mantissa * 10 + digit;
        }
    }
    exponent = exponent.checked_add(dropped)?;
    if mantissa == 0 {
        exponent = exponent.clamp(-MOST_PLACES, 0);
    }
    if is_negative {
        mantissa = -mantissa;
    }
    // Move tens into the mantissa while they fit, then remove trailing zeros while the exponent requires it.
    while exponent > 0 && i64::try_from(mantissa * 10).is_ok() {
        mantissa *= 10;
        exponent -= 1;
    }
    while (exponent < -MOST_PLACES || i64::try_from(mantissa).is_err()) && mantissa % 10 == 0 {
        mantissa /= 10;
        exponent += 1;
    }
    if !(-MOST_PLACES..=MOST_TENS).contains(&exponent) {
        return None;
    }
    let hint = u8::try_from(i64::from(Hint::ONE.0) + exponent).ok()?;
    Some(Real { mantissa: i64::try_from(mantissa).ok()?, hint: Hint(hint) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_numbers_are_read_as_any_are() {
        let digits = "123456789012345678";
        let mut count = 0;
        for sign in ["", "-"] {
            for len in 0..=digits.len() {
                for point in 0..=len {
                    let (whole, places) = digits[..len].split_at(point);
                    for text in [
                        format!("{sign}{whole}.{places}"),
                        format!("{sign}{whole}"),
                        format!("{sign}0.0{places}"),
                    ] {
                        if let Some(value) = short(&text) {
                            assert_eq!(Some(value), any(&text), "{text}");
                            count += 1;
                        }
                    }
                }
            }
        }
        assert!(count > 500, "{count} were short");
        for text in ["1e2", "1.2.3", "1234567890123456789", "0.000000000000001", "Inf", "1,5"] {
            assert_eq!(short(text), None, "{text}");
        }
    }

    #[test]
    fn digits_are_kept() {
        let decimal = |mantissa, places| Some(Real::decimal(mantissa, places));
        let tens = |mantissa, tens: u8| Some(Real { mantissa, hint: Hint(14 + tens) });
        for (text, expected) in [
            ("0", decimal(0, 0)),
            ("40.00", decimal(4000, 2)),
            ("-0.25", decimal(-25, 2)),
            ("1.5E2", decimal(150, 0)),
            ("1e10", decimal(10_000_000_000, 0)),
            ("1e-14", decimal(1, 14)),
            ("1.000e-14", decimal(1, 14)),
            ("1e-15", None),
            ("0e99999999999999999999", decimal(0, 0)),
            ("0.000000000000000000000", decimal(0, 14)),
            ("9223372036854775807", decimal(i64::MAX, 0)),
            ("-9223372036854775808", decimal(i64::MIN, 0)),
            ("9223372036854775808", None),
            ("92233720368547758070000000", tens(i64::MAX, 7)),
            ("922337203685477580700000000", None),
            ("9223372036854775807e7", tens(i64::MAX, 7)),
            ("1e25", tens(1_000_000_000_000_000_000, 7)),
            ("1e26", None),
            ("92233720368547758.07000000000000000000", decimal(i64::MAX, 2)),
            ("0.1234567890123456789", None),
            ("1e99999999999999999999", None),
            ("1e-99999999999999999999", None),
        ] {
            assert_eq!(real(text), expected, "{text}");
        }
    }
}
