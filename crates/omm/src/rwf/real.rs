//! REAL: a price or size as a whole number and a hint for its decimal point (RWF chapter 3).

use std::cmp::Ordering;
use std::fmt;

use super::number::{self, encode_int};
use crate::Malformed;

/// Position of the point of a [`Real`]: a power of ten (0–21), a power of two as the denominator (22–30), or one of
/// three special values (33–35).
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hint(pub u8);

impl Hint {
    /// × 10⁻⁴: the price unit of most exchanges.
    pub const TEN_THOUSANDTHS: Self = Self(10);
    /// × 1.
    pub const ONE: Self = Self(14);
    /// / 1, the first of the fractions.
    pub const FRACTION_MIN: Self = Self(22);
    /// / 256, the last of the fractions.
    pub const FRACTION_MAX: Self = Self(30);
    /// Infinity, without a mantissa.
    pub const INFINITY: Self = Self(33);
    /// Minus infinity, without a mantissa.
    pub const MINUS_INFINITY: Self = Self(34);
    /// Not a number, without a mantissa.
    pub const NAN: Self = Self(35);

    /// Returns `true` if the format defines this hint.
    #[inline]
    #[must_use]
    pub const fn is_known(self) -> bool {
        self.0 <= Self::FRACTION_MAX.0 || self.is_special()
    }

    /// Returns `true` for infinity, minus infinity and not a number.
    #[inline]
    #[must_use]
    pub const fn is_special(self) -> bool {
        matches!(self, Self::INFINITY | Self::MINUS_INFINITY | Self::NAN)
    }

    /// Returns the power of ten by which the mantissa is multiplied, and the power of two by which it is divided.
    const fn powers(self) -> (i32, u32) {
        if self.0 < Self::FRACTION_MIN.0 {
            (self.0 as i32 - Self::ONE.0 as i32, 0)
        } else {
            (0, (self.0 - Self::FRACTION_MIN.0) as u32)
        }
    }
}

/// Multiplier and divisor of a mantissa, by hint. All are exact as doubles.
const SCALES: [[f64; 2]; Hint::FRACTION_MAX.0 as usize + 1] = {
    let mut scales = [[1.0; 2]; Hint::FRACTION_MAX.0 as usize + 1];
    let mut hint = 0;
    while hint < scales.len() {
        let (ten, two) = Hint(hint as u8).powers();
        let mut power = 1_u64;
        let mut left = ten.unsigned_abs();
        while left > 0 {
            power *= 10;
            left -= 1;
        }
        scales[hint] = if ten > 0 { [power as f64, 1.0] } else { [1.0, (power << two) as f64] };
        hint += 1;
    }
    scales
};

/// Powers of ten, up to the maximum number of places.
const POWERS: [f64; 15] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14];

/// The whole number nearest to a float in the range of `i64`, halves away from zero: [`f64::round`] without its call of the
/// mathematical library.
#[inline]
fn rounded(float: f64) -> i64 {
    let whole = float as i64;
    // Exact: a float with a fraction is in the range in which every whole number is a float.
    let fraction = float - whole as f64;
    whole + i64::from(fraction >= 0.5) - i64::from(fraction <= -0.5)
}

/// Decimal or fractional number that keeps the form in which it was published.
///
/// `==` compares the form: 1.0 and 1 differ. [`Real::compare`] compares the value. Formatting gives exact decimal text
/// with as many places as the form has ("40.00"); `{:.n}` has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Real {
    /// The whole number; 0 for a special hint.
    pub mantissa: i64,
    /// Scale of the mantissa.
    pub hint: Hint,
}

impl Real {
    /// Infinity.
    pub const INFINITY: Self = Self { mantissa: 0, hint: Hint::INFINITY };
    /// Minus infinity.
    pub const MINUS_INFINITY: Self = Self { mantissa: 0, hint: Hint::MINUS_INFINITY };
    /// Not a number.
    pub const NAN: Self = Self { mantissa: 0, hint: Hint::NAN };

    /// Returns `mantissa` with `places` digits after the point: at most 14, larger values count as 14.
    #[inline]
    #[must_use]
    pub const fn decimal(mantissa: i64, places: u8) -> Self {
        let places = if places > 14 { 14 } else { places };
        Self { mantissa, hint: Hint(14 - places) }
    }

    /// Returns a whole number.
    #[inline]
    #[must_use]
    pub const fn integer(value: i64) -> Self {
        Self { mantissa: value, hint: Hint::ONE }
    }

    /// Returns the decimal number with the fewest places that is this double; else the nearest with the most places that
    /// fit. `None` if not even its whole part fits in 64 bits, and for infinities and NaN.
    #[must_use]
    pub fn nearest(number: f64) -> Option<Self> {
        Self::nearest_that(number, |again| again == number)
    }

    /// As [`nearest`](Self::nearest), for a `f32`: the decimal number with the fewest places that rounds to it.
    #[must_use]
    pub fn nearest_f32(number: f32) -> Option<Self> {
        Self::nearest_that(number.into(), |again| again as f32 == number)
    }

    /// The decimal number with the fewest places whose double `is_same`.
    #[inline]
    fn nearest_that(number: f64, is_same: impl Fn(f64) -> bool) -> Option<Self> {
        let mut nearest = None;
        // Powers up to 10^22 are exact, so there is one rounding in each direction.
        for (places, power) in (0..).zip(POWERS) {
            let scaled = number * power;
            // Below 2^63, so that the mantissa is exact.
            if scaled.is_nan() || scaled.abs() >= 9.2e18 {
                break;
            }
            let mantissa = rounded(scaled);
            nearest = Some(Self::decimal(mantissa, places));
            if is_same(mantissa as f64 / power) {
                break;
            }
        }
        nearest
    }

    /// Decodes the bytes of an entry; `None` is blank: no bytes, or a hint alone that is not 33–35.
    ///
    /// # Errors
    ///
    /// Fails for an invalid hint, or a mantissa of more than eight bytes.
    #[inline]
    pub fn decode(data: &[u8]) -> Result<Option<Self>, Malformed> {
        Self::decode_ahead(data.len(), data)
    }

    /// As [`Real::decode`] for the first `len` bytes of `ahead`; the bytes after them are loaded but not used.
    #[inline]
    pub(crate) fn decode_ahead(len: usize, ahead: &[u8]) -> Result<Option<Self>, Malformed> {
        match Self::ahead(len, ahead) {
            Some(real) => Ok(Some(real)),
            None => Self::decode_rare(ahead.get(..len).unwrap_or_default()),
        }
    }

    /// Decodes the common form, a hint and a mantissa; `None` for every other form, valid or not.
    #[inline]
    pub(crate) fn ahead(len: usize, ahead: &[u8]) -> Option<Self> {
        Self::any_ahead(len, ahead).filter(|real| real.hint <= Hint::FRACTION_MAX)
    }

    /// As [`Real::ahead`], for a caller that checks the hint.
    #[inline]
    pub(crate) fn any_ahead(len: usize, ahead: &[u8]) -> Option<Self> {
        // If nine bytes are readable, the length needs no branch.
        if let Some([hint, mantissa @ ..]) = ahead.first_chunk::<9>()
            && (2..=9).contains(&len)
        {
            return Some(Self {
                mantissa: i64::from_be_bytes(*mantissa) >> (8 * (9 - len)),
                hint: Hint(*hint),
            });
        }
        let (hint, mantissa) = ahead.get(..len)?.split_first()?;
        Some(Self { mantissa: number::int_at_end(mantissa)?, hint: Hint(*hint) })
    }

    /// Returns `true` if a first byte has no mantissa.
    pub(super) const fn is_special_byte(byte: u8) -> bool {
        Hint(byte).is_special()
    }

    /// Decodes the bytes of a REAL_4RB or REAL_8RB, whose first byte also states the size.
    pub(crate) fn decode_set(data: &[u8]) -> Result<Option<Self>, Malformed> {
        let Some((first, mantissa)) = data.split_first() else { return Ok(None) };
        let hint = Hint(first & 0x3F);
        match number::decode_int(mantissa)? {
            Some(mantissa) if hint <= Hint::FRACTION_MAX => Ok(Some(Self { mantissa, hint })),
            _ => Self::decode_rare(&[hint.0]),
        }
    }

    /// Decodes blank and special forms.
    #[cold]
    fn decode_rare(data: &[u8]) -> Result<Option<Self>, Malformed> {
        match *data {
            [] => Ok(None),
            [hint] if Hint(hint).is_special() => Ok(Some(Self { mantissa: 0, hint: Hint(hint) })),
            [_] => Ok(None),
            // C writers put this into sets; "20 00" is the same blank with a mantissa.
            [0x20, ..] => Ok(None),
            [hint, ..] if hint <= Hint::FRACTION_MAX.0 => Err(Malformed::new(1, "REAL mantissa")),
            _ => Err(Malformed::new(0, "REAL hint")),
        }
    }

    /// Returns the encoded bytes: the first `len` of the array.
    #[inline]
    pub(crate) const fn encode(self) -> ([u8; 9], usize) {
        if self.hint.is_special() {
            return ([self.hint.0, 0, 0, 0, 0, 0, 0, 0, 0], 1);
        }
        let ([a, b, c, d, e, f, g, h], len) = encode_int(self.mantissa);
        ([self.hint.0, a, b, c, d, e, f, g, h], 1 + len)
    }

    /// Returns the nearest double, within one unit in the last place if the mantissa has more than 53 bits.
    #[inline]
    #[must_use]
    pub fn to_f64(self) -> f64 {
        match (SCALES.get(usize::from(self.hint.0)), self.hint) {
            // One of the two is 1, so there is at most one rounding besides that of the mantissa.
            (Some([times, by]), _) => self.mantissa as f64 * times / by,
            (None, Hint::INFINITY) => f64::INFINITY,
            (None, Hint::MINUS_INFINITY) => f64::NEG_INFINITY,
            (None, _) => f64::NAN,
        }
    }

    /// Returns the value in units of `places` decimals: 1.5 with two is 150. `None` if the value is not exact with that
    /// many decimals, exceeds an `i64`, or is not a finite number.
    #[must_use]
    pub fn scaled(self, places: u32) -> Option<i64> {
        if self.rank()? != 0 {
            return None;
        }
        let (ten, two) = self.hint.powers();
        let power = i64::from(ten) + i64::from(places);
        let by = |power: i64| 10_i128.checked_pow(u32::try_from(power).ok()?);
        let whole = i128::from(self.mantissa).checked_mul(by(power.max(0))?)?;
        // Powers of ten down to -14 and of two up to 8: far from 127 bits.
        let divisor = by((-power).max(0))? << two;
        if whole % divisor != 0 {
            return None;
        }
        i64::try_from(whole / divisor).ok()
    }

    /// Compares values exactly, whatever their forms; `None` if one is not a number.
    #[must_use]
    pub fn compare(self, other: Self) -> Option<Ordering> {
        let (left, right) = (self.rank()?, other.rank()?);
        if left != 0 || right != 0 {
            return Some(left.cmp(&right));
        }
        let ((left_ten, left_two), (right_ten, right_two)) = (self.hint.powers(), other.hint.powers());
        // Over a common denominator. At most one side is multiplied by a power of ten; if that overflows 127
        // bits it is the larger in magnitude, as the other side has at most 63 + 8.
        let ten = |by: i32| 10_i128.pow(by.max(0).unsigned_abs());
        let left_base = i128::from(self.mantissa) << right_two;
        let right_base = i128::from(other.mantissa) << left_two;
        let sign = |value: i128| value.cmp(&0);
        match (
            left_base.checked_mul(ten(left_ten - right_ten)),
            right_base.checked_mul(ten(right_ten - left_ten)),
        ) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            (None, _) => Some(sign(left_base)),
            (_, None) => Some(sign(right_base).reverse()),
        }
    }

    /// Returns -1, 0, 1 for minus infinity, a finite number, infinity; `None` for not a number.
    const fn rank(self) -> Option<i8> {
        match self.hint {
            Hint::INFINITY => Some(1),
            Hint::MINUS_INFINITY => Some(-1),
            hint if !hint.is_known() || matches!(hint, Hint::NAN) => None,
            _ => Some(0),
        }
    }
}

impl fmt::Display for Real {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ten, two) = match self.hint {
            Hint::INFINITY => return f.pad("Inf"),
            Hint::MINUS_INFINITY => return f.pad("-Inf"),
            hint if !hint.is_known() || hint == Hint::NAN => return f.pad("NaN"),
            hint => hint.powers(),
        };
        // m / 2^k = m × 5^k / 10^k: a fraction is exact in decimals too.
        let mut digits = i128::from(self.mantissa).unsigned_abs() * 5_u128.pow(two);
        let mut places = two.max(ten.min(0).unsigned_abs());
        if two > 0 {
            while places > 0 && digits % 10 == 0 {
                digits /= 10;
                places -= 1;
            }
        }
        digits *= 10_u128.pow(ten.max(0).unsigned_abs());
        // 63 bits × 5^8 or 10^7 has at most 28 digits; 15 more for leading zeros and the point; and the sign.
        let mut text = [0_u8; 48];
        let mut at = text.len();
        let mut written = 0;
        loop {
            if written == places && places > 0 {
                at -= 1;
                text[at] = b'.';
            }
            at -= 1;
            text[at] = b'0' + (digits % 10) as u8;
            digits /= 10;
            written += 1;
            if digits == 0 && written > places {
                break;
            }
        }
        if self.mantissa < 0 {
            at -= 1;
            text[at] = b'-';
        }
        f.pad(str::from_utf8(&text[at..]).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn real(mantissa: i64, hint: u8) -> Real {
        Real { mantissa, hint: Hint(hint) }
    }

    #[test]
    fn text_is_exact() {
        for (value, text) in [
            (real(4000, 12), "40.00"),
            (real(-25, 12), "-0.25"),
            (real(0, 12), "0.00"),
            (real(12345, 0), "0.00000000012345"),
            (real(5, 14), "5"),
            (real(12345, 21), "123450000000"),
            (real(12345, 23), "6172.5"),
            (real(12345, 30), "48.22265625"),
            (real(512, 30), "2"),
            (real(i64::MIN, 30), "-36028797018963968"),
            (real(i64::MIN, 0), "-92233.72036854775808"),
            (real(i64::MAX, 21), "92233720368547758070000000"),
            (Real::INFINITY, "Inf"),
            (Real::MINUS_INFINITY, "-Inf"),
            (Real::NAN, "NaN"),
            (real(1, 99), "NaN"),
        ] {
            assert_eq!(value.to_string(), text, "{value:?}");
        }
        assert_eq!(format!("{:>8}|", real(125, 12)), "    1.25|");
    }

    #[test]
    fn a_double_becomes_the_shortest_decimal() {
        for (number, real) in [
            (39.91, Some(real(3991, 12))),
            (-0.25, Some(real(-25, 12))),
            (40.0, Some(real(40, 14))),
            (0.000_000_000_000_01, Some(real(1, 0))),
            (1.0 / 3.0, Some(real(33_333_333_333_333, 0))),
            (9e18, Some(real(9_000_000_000_000_000_000, 14))),
            (1e19, None),
            (f64::NAN, None),
            (f64::INFINITY, None),
        ] {
            assert_eq!(Real::nearest(number), real, "{number}");
        }
        assert_eq!(Real::nearest_f32(0.1), Some(real(1, 13)));
        assert_eq!(Real::nearest(f64::from(0.1_f32)), Some(real(10_000_000_149_012, 0)));
    }

    #[test]
    fn values_compare_across_forms() {
        use Ordering::*;
        for (left, right, order) in [
            (real(10, 13), real(1, 14), Equal),
            (real(1, 23), real(5, 13), Equal),
            (real(1, 24), real(3, 13), Less),
            (real(i64::MAX, 21), real(i64::MAX, 0), Greater),
            (real(i64::MIN, 21), real(i64::MIN, 30), Less),
            (real(1, 0), real(0, 14), Greater),
            (Real::INFINITY, real(i64::MAX, 21), Greater),
            (Real::MINUS_INFINITY, Real::INFINITY, Less),
            (Real::INFINITY, Real::INFINITY, Equal),
        ] {
            assert_eq!(left.compare(right), Some(order), "{left:?} {right:?}");
            assert_eq!(right.compare(left), Some(order.reverse()), "{right:?} {left:?}");
        }
        assert_eq!(Real::NAN.compare(real(1, 14)), None);
    }

    #[test]
    fn scaled_values_are_exact_or_none() {
        for (value, places, whole) in [
            (real(4000, 12), 9, Some(40_000_000_000)),
            (real(-25, 12), 2, Some(-25)),
            (real(-25, 12), 1, None),
            (real(5, 14), 0, Some(5)),
            (real(3, 30), 9, Some(11_718_750)),
            (real(3, 30), 7, None),
            (real(1, 0), 9, None),
            (real(100_000, 0), 9, Some(1)),
            (real(12, 21), 0, Some(120_000_000)),
            (real(i64::MAX, 14), 0, Some(i64::MAX)),
            (real(i64::MAX, 14), 1, None),
            (real(i64::MIN, 21), u32::MAX, None),
            (Real::INFINITY, 0, None),
            (Real::NAN, 0, None),
            (real(1, 99), 0, None),
        ] {
            assert_eq!(value.scaled(places), whole, "{value:?} with {places}");
        }
    }

    #[test]
    fn blank_and_special_forms() {
        for blank in [&[][..], &[0x20], &[0x00], &[0x20, 0x00], &[36]] {
            assert_eq!(Real::decode(blank), Ok(None), "{blank:?}");
        }
        assert_eq!(Real::decode(&[0x21]), Ok(Some(Real::INFINITY)));
        assert_eq!(Real::decode(&[0x22]), Ok(Some(Real::MINUS_INFINITY)));
        assert_eq!(Real::decode(&[0x23]), Ok(Some(Real::NAN)));
        assert_eq!(Real::decode(&[12, 0xE7]), Ok(Some(Real::decimal(-25, 2))));
        assert!(Real::decode(&[31, 1]).is_err());
        assert!(Real::decode(&[36, 1]).is_err());
        assert!(Real::decode(&[14, 0, 0, 0, 0, 0, 0, 0, 0, 1]).is_err());
    }

    #[test]
    fn doubles() {
        assert_eq!(real(12345, 12).to_f64(), 123.45);
        assert_eq!(real(12345, 30).to_f64(), 48.22265625);
        assert_eq!(real(-1, 21).to_f64(), -1e7);
        for hint in 0..=Hint::FRACTION_MAX.0 {
            let value = real(3, hint);
            assert_eq!(value.to_f64(), value.to_string().parse::<f64>().unwrap(), "{hint}");
        }
        assert!(Real::NAN.to_f64().is_nan());
        assert!(real(1, 31).to_f64().is_nan());
        assert_eq!(Real::MINUS_INFINITY.to_f64(), f64::NEG_INFINITY);
    }
}
