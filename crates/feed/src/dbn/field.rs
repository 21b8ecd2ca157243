//! The kinds of fields that records consist of: little-endian numbers, letters and text.

use std::fmt;

/// A value of `N` bytes in a record.
pub(super) trait Field<const N: usize> {
    fn of(bytes: [u8; N]) -> Self;
    /// Returns the value without its type, for listings.
    fn value(&self) -> Value<'_>;
}

/// A field's value without its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number as in the record: prices in units of 1e-9, times in ns since 1970.
    Number(i128),
    /// A code of one letter.
    Letter(Letter),
    /// Text without its trailing NULs.
    Text(&'a [u8]),
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
pub struct DbnPrice(pub i64);

impl DbnPrice {
    /// The value of a missing price.
    pub const UNDEFINED: Self = Self(::dbn::UNDEF_PRICE);
    /// Decimals of a price.
    pub const DECIMALS: u8 = 9;

    /// Returns the price; `None` if it is undefined.
    #[inline]
    #[must_use]
    pub const fn defined(self) -> Option<Self> {
        if self.0 == Self::UNDEFINED.0 { None } else { Some(self) }
    }
}

/// Writes a decimal number without trailing zeros: `5529.25`; `–` for an undefined price.
impl fmt::Display for DbnPrice {
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

/// A code of one letter, as received. Any byte is valid, because the set may grow.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Letter(pub u8);

/// Writes the letter; nothing for NUL, which means none.
impl fmt::Display for Letter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return Ok(());
        }
        fmt::Display::fmt(&self.0.escape_ascii(), f)
    }
}

/// The flags of a record within its event.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flags(pub u8);

impl Flags {
    /// The last record of an event for its instrument: only after it does the book equal the venue's.
    pub const LAST: u8 = ::dbn::flags::LAST;
    /// The record contains the top of book itself, not an order.
    pub const TOP_OF_BOOK: u8 = ::dbn::flags::TOB;
    /// From a replay, such as the snapshot at the start of a book.
    pub const SNAPSHOT: u8 = ::dbn::flags::SNAPSHOT;

    /// Returns `true` if all of these bits are set.
    #[inline]
    #[must_use]
    pub const fn has(self, bits: u8) -> bool {
        self.0 & bits == bits
    }
}

macro_rules! wrappers {
    ($($name:ident($number:ty): $bytes:literal, $value:expr;)*) => {
        $(impl Field<$bytes> for $name {
            #[inline(always)]
            fn of(bytes: [u8; $bytes]) -> Self {
                Self(<$number>::from_le_bytes(bytes))
            }

            fn value(&self) -> Value<'_> {
                $value(*self)
            }
        })*
    };
}

wrappers! {
    DbnPrice(i64): 8, |price: Self| Value::Number(i128::from(price.0));
    Letter(u8): 1, Value::Letter;
    Flags(u8): 1, |flags: Self| Value::Number(i128::from(flags.0));
}

/// Text of up to `N` bytes, padded with NULs.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DbnText<const N: usize>(pub [u8; N]);

impl<const N: usize> DbnText<N> {
    /// Returns the bytes before the first NUL.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(N);
        &self.0[..end]
    }

    /// Returns the text; `None` if it is not UTF-8.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(self.bytes()).ok()
    }
}

impl<const N: usize> fmt::Debug for DbnText<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.bytes().escape_ascii())
    }
}

impl<const N: usize> Field<N> for DbnText<N> {
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
            assert_eq!(DbnPrice(price).to_string(), text);
        }
    }
}
