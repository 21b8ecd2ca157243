//! The types of fields in messages; text and codes are those of [`itch`](crate::itch).

use std::fmt;

use crate::itch::{Code, ItchText};

/// A value of `N` little-endian bytes on the wire.
pub(super) trait IexWire<const N: usize> {
    fn from_wire(bytes: [u8; N]) -> Self;
}

macro_rules! numbers {
    ($($number:ty: $bytes:literal),*) => {
        $(impl IexWire<$bytes> for $number {
            #[inline(always)]
            fn from_wire(bytes: [u8; $bytes]) -> Self {
                Self::from_le_bytes(bytes)
            }
        })*
    };
}

numbers!(u8: 1, u32: 4, u64: 8);

impl IexWire<1> for Code {
    #[inline(always)]
    fn from_wire([code]: [u8; 1]) -> Self {
        Self(code)
    }
}

impl<const N: usize> IexWire<N> for ItchText<N> {
    #[inline(always)]
    fn from_wire(bytes: [u8; N]) -> Self {
        Self(bytes)
    }
}

/// A price in ten-thousandths of a dollar; signed, as on the wire.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IexPrice(pub i64);

impl IexWire<8> for IexPrice {
    #[inline(always)]
    fn from_wire(bytes: [u8; 8]) -> Self {
        Self(i64::from_le_bytes(bytes))
    }
}

impl fmt::Display for IexPrice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, amount) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
        f.pad(&format!("{sign}{}.{:04}", amount / 10_000, amount % 10_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_have_their_decimals_and_sign() {
        assert_eq!(IexPrice(3_649_000).to_string(), "364.9000");
        assert_eq!(IexPrice(-25_001).to_string(), "-2.5001");
        assert_eq!(IexPrice(i64::MIN).to_string(), "-922337203685477.5808");
    }
}
