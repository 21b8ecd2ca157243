//! The type of prices; other fields have the types of [`itch`](crate::itch).

use std::fmt;

use crate::wire::wrappers;

/// A price in ten-thousandths of a dollar; signed, as on the wire.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IexPrice(pub i64);

wrappers! { [] IexPrice: 8; }

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
