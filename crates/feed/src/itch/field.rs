//! The types of fields in messages.

use std::fmt;

use crate::wire::wrappers;

macro_rules! newtypes {
    ($($(#[$about:meta])* $name:ident($number:ty): $bytes:literal;)*) => {
        $(
            $(#[$about])*
            #[repr(transparent)]
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub struct $name(pub $number);

            wrappers! { [] $name: $bytes; }
        )*
    };
}

newtypes! {
    /// The day's number of a stock: dense, from 1, assigned by the stock directory. 0 for a message about no stock.
    Locate(u16): 2;
    /// The day's number of an order, unique across all stocks.
    OrderRef(u64): 8;
    /// The day's number of an execution; a broken trade contains it.
    MatchNumber(u64): 8;
    /// A price in ten-thousandths of a dollar.
    Price4(u32): 4;
    /// A price in hundred-millionths of a dollar.
    Price8(u64): 8;
}

macro_rules! shown_as_numbers {
    ($($name:ident)*) => {
        $(impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        })*
    };
}

shown_as_numbers!(Locate OrderRef MatchNumber);

impl fmt::Display for Price4 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{:04}", self.0 / 10_000, self.0 % 10_000))
    }
}

impl fmt::Display for Price8 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{:08}", self.0 / 100_000_000, self.0 % 100_000_000))
    }
}

/// A code of one letter, as received. Any byte is valid, because the specification's set may grow.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub u8);

impl Code {
    /// Returns the side of a buy or sell code; `None` for any other code.
    #[inline]
    #[must_use]
    pub const fn side(self) -> Option<Side> {
        match self.0 {
            b'B' => Some(Side::Bid),
            b'S' => Some(Side::Ask),
            _ => None,
        }
    }
}

wrappers! { [] Code: 1; [const N: usize] ItchText<N>: N; }

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.escape_ascii(), f)
    }
}

/// A side of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The buy side.
    Bid,
    /// The sell side.
    Ask,
}

/// Text of fixed width, as received: left-justified, padded with spaces.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItchText<const N: usize>(pub [u8; N]);

/// A stock's symbol.
pub type Symbol = ItchText<8>;

/// A market participant's identifier.
pub type Mpid = ItchText<4>;

impl<const N: usize> ItchText<N> {
    /// Text that is only padding.
    pub const BLANK: Self = Self([b' '; N]);

    /// Creates text in the wire's form; a longer text is cut.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(super::encode::text(text))
    }

    /// Returns the text without its padding, up to the first byte that is not ASCII.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let text = self.0.trim_ascii_end();
        let ascii = text.iter().position(|byte| !byte.is_ascii()).unwrap_or(text.len());
        // ASCII is UTF-8, so this does not fail.
        std::str::from_utf8(&text[..ascii]).unwrap_or_default()
    }

    /// Returns `true` if the text is only padding.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.0.iter().all(u8::is_ascii_whitespace)
    }
}

impl<const N: usize> Default for ItchText<N> {
    fn default() -> Self {
        Self::BLANK
    }
}

/// Writes the text without its padding; unprintable bytes are escaped.
impl<const N: usize> fmt::Display for ItchText<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.trim_ascii_end();
        if text.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ') {
            f.pad(std::str::from_utf8(text).unwrap_or_default())
        } else {
            fmt::Display::fmt(&text.escape_ascii(), f)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_shown_without_padding_and_hostile_bytes_escaped() {
        assert_eq!(Symbol::new("AAPL").to_string(), "AAPL");
        assert_eq!(Symbol::new("AAPL").as_str(), "AAPL");
        assert_eq!(ItchText(*b"A\0\x1b[31m ").to_string(), "A\\x00\\x1b[31m");
        assert_eq!(ItchText(*b"A\xFFB ").as_str(), "A");
        assert!(Symbol::BLANK.is_blank());
        assert_eq!(format!("{:>6}|", Symbol::new("IBM")), "   IBM|");
    }

    #[test]
    fn prices_have_their_decimals() {
        assert_eq!(Price4(3_214_005).to_string(), "321.4005");
        assert_eq!(Price8(12_345_678_901).to_string(), "123.45678901");
    }

    #[test]
    fn only_two_codes_are_sides() {
        assert_eq!(Code(b'B').side(), Some(Side::Bid));
        assert_eq!(Code(b'S').side(), Some(Side::Ask));
        assert_eq!((0..=255).filter(|code| Code(*code).side().is_some()).count(), 2);
    }
}
