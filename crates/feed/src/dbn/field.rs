//! The kinds of fields that records consist of: little-endian numbers, letters and text.

use std::fmt;

/// A value that stands in `N` bytes of a record.
pub(super) trait Field<const N: usize> {
    fn of(bytes: [u8; N]) -> Self;
    /// The value without its type, for listings.
    fn value(&self) -> Value<'_>;
}

/// A field's value without its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number as it stands in the record: prices in units of 1e-9, times in ns since 1970.
    Number(i128),
    /// A code of one letter.
    Letter(Letter),
    /// Text without the NULs behind it.
    Text(&'a [u8]),
}

/// `N` bytes from place `AT` of an `L`-byte record; that they lie within it is checked when this is compiled.
#[inline(always)]
pub(super) fn chunk<const AT: usize, const N: usize, const L: usize>(record: &[u8; L]) -> [u8; N] {
    const { assert!(AT + N <= L) };
    let mut bytes = [0; N];
    bytes.copy_from_slice(&record[AT..AT + N]);
    bytes
}

macro_rules! numbers {
    ($($number:ty: $bytes:literal),*) => {
        $(impl Field<$bytes> for $number {
            #[inline(always)]
            fn of(bytes: [u8; $bytes]) -> Self {
                Self::from_le_bytes(bytes)
            }

            fn value(&self) -> Value<'_> {
                Value::Number(i128::from(*self))
            }
        })*
    };
}

numbers!(u8: 1, i8: 1, u16: 2, i16: 2, u32: 4, i32: 4, u64: 8, i64: 8);

/// A price in units of 1e-9.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Price(pub i64);

impl Price {
    /// Stands where there is no price.
    pub const UNDEFINED: Self = Self(::dbn::UNDEF_PRICE);
    /// Decimals of a price.
    pub const DECIMALS: u8 = 9;

    /// The price, unless it is undefined.
    #[inline]
    #[must_use]
    pub const fn defined(self) -> Option<Self> {
        if self.0 == Self::UNDEFINED.0 { None } else { Some(self) }
    }
}

/// As a decimal number without needless zeros: `5529.25`; `–` where it is undefined.
impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.defined().is_none() {
            return f.pad("–");
        }
        let (whole, rest) = (self.0.unsigned_abs() / 1_000_000_000, self.0.unsigned_abs() % 1_000_000_000);
        let sign = if self.0 < 0 { "-" } else { "" };
        let rest = format!("{rest:09}");
        match rest.trim_end_matches('0') {
            "" => f.pad(&format!("{sign}{whole}")),
            rest => f.pad(&format!("{sign}{whole}.{rest}")),
        }
    }
}

impl Field<8> for Price {
    #[inline(always)]
    fn of(bytes: [u8; 8]) -> Self {
        Self(i64::from_le_bytes(bytes))
    }

    fn value(&self) -> Value<'_> {
        Value::Number(i128::from(self.0))
    }
}

/// A code of one letter, as received: the set may grow, so any byte is one.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Letter(pub u8);

impl Field<1> for Letter {
    #[inline(always)]
    fn of([letter]: [u8; 1]) -> Self {
        Self(letter)
    }

    fn value(&self) -> Value<'_> {
        Value::Letter(*self)
    }
}

/// The letter; nothing for the NUL that stands for none.
impl fmt::Display for Letter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return Ok(());
        }
        fmt::Display::fmt(&self.0.escape_ascii(), f)
    }
}

/// What a record says of the event that it is part of.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flags(pub u8);

impl Flags {
    /// The last record of an event for its instrument: only now does the book show what the venue showed.
    pub const LAST: u8 = ::dbn::flags::LAST;
    /// The message is the top of book itself and not an order.
    pub const TOP_OF_BOOK: u8 = ::dbn::flags::TOB;
    /// From a replay, such as the snapshot that a book begins with.
    pub const SNAPSHOT: u8 = ::dbn::flags::SNAPSHOT;

    /// Whether all of these bits are set.
    #[inline]
    #[must_use]
    pub const fn has(self, bits: u8) -> bool {
        self.0 & bits == bits
    }
}

impl Field<1> for Flags {
    #[inline(always)]
    fn of([flags]: [u8; 1]) -> Self {
        Self(flags)
    }

    fn value(&self) -> Value<'_> {
        Value::Number(i128::from(self.0))
    }
}

/// Text of up to `N` bytes with NULs behind it.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text<const N: usize>(pub [u8; N]);

impl<const N: usize> Text<N> {
    /// The bytes before the first NUL.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(N);
        &self.0[..end]
    }

    /// The text, where it is UTF-8.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(self.bytes()).ok()
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.bytes().escape_ascii())
    }
}

impl<const N: usize> Field<N> for Text<N> {
    #[inline(always)]
    fn of(bytes: [u8; N]) -> Self {
        Self(bytes)
    }

    fn value(&self) -> Value<'_> {
        Value::Text(self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_read_well() {
        for (price, text) in [
            (5_529_250_000_000, "5529.25"),
            (0, "0"),
            (-1, "-0.000000001"),
            (-1_500_000_000, "-1.5"),
            (i64::MIN, "-9223372036.854775808"),
            (i64::MAX, "–"),
        ] {
            assert_eq!(Price(price).to_string(), text);
        }
    }
}
