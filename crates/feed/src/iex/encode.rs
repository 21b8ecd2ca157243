//! Writing messages of TOPS 1.6 and DEEP 1.0 into a caller's buffer, for tests and simulation.
//!
//! One struct for each message, its fields in wire order after the time; numbers are written little-endian, text unchanged. Values are not checked
//! against the specifications' code sets, because a test may need an invalid one.
//!
//! ```
//! use tapeline_feed::iex::encode::{SecurityEvent, text};
//!
//! let mut bytes = [0; 18];
//! let written = SecurityEvent { event: b'C', symbol: text("IBM") }.encode(1, &mut bytes);
//! assert_eq!(written, Some(SecurityEvent::LENGTH));
//! assert_eq!(&bytes, b"EC\x01\0\0\0\0\0\0\0IBM     ");
//! ```

pub use crate::itch::encode::text;

/// The size of the longest message, the auction information, in bytes.
pub const LONGEST: usize = AuctionInformation::LENGTH;

/// A number or text in its wire form.
trait Field: Copy {
    /// Fills `to`, which is exactly as long as the field.
    fn put(self, to: &mut [u8]);
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl Field for $number {
            #[inline(always)]
            fn put(self, to: &mut [u8]) {
                to.copy_from_slice(&self.to_le_bytes());
            }
        })*
    };
}

numbers!(u8, u32, u64, i64);

impl<const N: usize> Field for [u8; N] {
    #[inline(always)]
    fn put(self, to: &mut [u8]) {
        to.copy_from_slice(&self);
    }
}

/// Declares the messages: name, type, length, the byte after the type, fields in wire order after the time. The compiler checks the sum of the
/// widths against the specification's length.
macro_rules! messages {
    ($( $(#[$about:meta])* $name:ident $kind:literal $length:literal {
        $(#[$first_meaning:meta])* $first:ident,
        $( $(#[$meaning:meta])* $field:ident: $width:ty, )*
    } )*) => {
        $(
            $(#[$about])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub struct $name {
                $(#[$first_meaning])*
                pub $first: u8,
                $( $(#[$meaning])* pub $field: $width, )*
            }

            impl $name {
                /// The message's type on the wire.
                pub const TYPE: u8 = $kind;
                /// The size of the message in bytes, without framing.
                pub const LENGTH: usize = $length;

                /// Writes the message of an event at `ts_ns`, ns since 1970, to the front of `out` and returns its length; `None` if `out` is too
                /// short (then nothing is written).
                #[inline]
                pub fn encode(&self, ts_ns: u64, out: &mut [u8]) -> Option<usize> {
                    let out: &mut [u8; $length] = out.first_chunk_mut()?;
                    out[0] = $kind;
                    out[1] = self.$first;
                    ts_ns.put(&mut out[2..10]);
                    let at = 10;
                    $(
                        self.$field.put(&mut out[at..at + size_of::<$width>()]);
                        let at = at + size_of::<$width>();
                    )*
                    let _ = at;
                    Some($length)
                }
            }

            const _: () = assert!(10 $( + size_of::<$width>() )* == $length);
        )*

        /// Returns the size of a message of this type in bytes, without framing; `None` for a type that neither protocol has. Separate from the
        /// decoder's table, so that each checks the other.
        #[must_use]
        pub const fn length(kind: u8) -> Option<usize> {
            match kind {
                $( $kind => Some($length), )*
                _ => None,
            }
        }
    };
}

messages! {
    /// Start or end of messages, system hours or regular hours.
    SystemEvent b'S' 10 {
        /// `O`, `S`, `R`, `M`, `E` or `C`.
        event,
    }
    /// A security and its properties.
    SecurityDirectory b'D' 31 {
        /// 0x80 test, 0x40 when issued, 0x20 exchange-traded product.
        flags,
        /// Symbol.
        symbol: [u8; 8],
        /// Shares in a round lot.
        round_lot: u32,
        /// Previous official close, four decimals.
        previous_close: i64,
        /// 0, 1 or 2.
        luld_tier: u8,
    }
    /// A security is halted, paused, accepts orders, or trades.
    TradingStatus b'H' 22 {
        /// `H`, `O`, `P` or `T`.
        status,
        /// Symbol.
        symbol: [u8; 8],
        /// Reason code.
        reason: [u8; 4],
    }
    /// An operational halt of a security by IEX alone, or its end.
    OperationalHalt b'O' 18 {
        /// `O` or `N`.
        status,
        /// Symbol.
        symbol: [u8; 8],
    }
    /// Short-sale price test.
    ShortSale b'P' 19 {
        /// 1 or 0.
        in_effect,
        /// Symbol.
        symbol: [u8; 8],
        /// Space, `A`, `C`, `D` or `N`.
        detail: u8,
    }
    /// Best bid and ask.
    QuoteUpdate b'Q' 42 {
        /// 0x80 not available, 0x40 outside regular hours.
        flags,
        /// Symbol.
        symbol: [u8; 8],
        /// Shares at the best bid.
        bid_size: u32,
        /// Best bid, four decimals.
        bid: i64,
        /// Best ask, four decimals.
        ask: i64,
        /// Shares at the best ask.
        ask_size: u32,
    }
    /// The size at a price of the buy side.
    BuyLevel b'8' 30 {
        /// Bit 0: the event is complete.
        flags,
        /// Symbol.
        symbol: [u8; 8],
        /// Shares.
        size: u32,
        /// Price, four decimals.
        price: i64,
    }
    /// The size at a price of the sell side.
    SellLevel b'5' 30 {
        /// Bit 0: the event is complete.
        flags,
        /// Symbol.
        symbol: [u8; 8],
        /// Shares.
        size: u32,
        /// Price, four decimals.
        price: i64,
    }
    /// A trade.
    TradeReport b'T' 38 {
        /// Sale conditions.
        flags,
        /// Symbol.
        symbol: [u8; 8],
        /// Shares.
        size: u32,
        /// Price, four decimals.
        price: i64,
        /// The trade's number.
        trade: u64,
    }
    /// Official opening or closing price.
    OfficialPrice b'X' 26 {
        /// `Q` or `M`.
        kind,
        /// Symbol.
        symbol: [u8; 8],
        /// Price, four decimals.
        price: i64,
    }
    /// A trade was broken.
    TradeBreak b'B' 38 {
        /// Sale conditions of the trade.
        flags,
        /// Symbol.
        symbol: [u8; 8],
        /// Shares of the trade.
        size: u32,
        /// Price of the trade, four decimals.
        price: i64,
        /// The trade's number.
        trade: u64,
    }
    /// State of an auction before it takes place.
    AuctionInformation b'A' 80 {
        /// `O`, `C`, `I`, `H` or `V`.
        kind,
        /// Symbol.
        symbol: [u8; 8],
        /// Shares that would match.
        paired: u32,
        /// Reference price, four decimals.
        reference: i64,
        /// Indicative clearing price, four decimals.
        indicative: i64,
        /// Shares that would not match.
        imbalance: u32,
        /// `B`, `S` or `N`.
        side: u8,
        /// Number of extensions of the auction.
        extensions: u8,
        /// Time of the auction, seconds since 1970.
        scheduled_s: u32,
        /// Clearing price of the auction's own book, four decimals.
        book_clearing: i64,
        /// Reference of the collars, four decimals.
        collar: i64,
        /// Lower collar, four decimals.
        lower: i64,
        /// Upper collar, four decimals.
        upper: i64,
    }
    /// Opening or closing process of a security is complete.
    SecurityEvent b'E' 18 {
        /// `O` or `C`.
        event,
        /// Symbol.
        symbol: [u8; 8],
    }
    /// Interest of retail orders.
    RetailLiquidity b'I' 18 {
        /// Space, `A`, `B` or `C`.
        indicator,
        /// Symbol.
        symbol: [u8; 8],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_has_its_sizes_outside() {
        let quote = QuoteUpdate {
            flags: 0x40,
            symbol: text("AAPL"),
            bid_size: 100,
            bid: 3_214_000,
            ask: -2,
            ask_size: 0x0102_0304,
        };
        let mut out = [0xEE; 44];
        assert_eq!(quote.encode(0x0102_0304_0506_0708, &mut out), Some(42));
        let mut expected = vec![b'Q', 0x40, 8, 7, 6, 5, 4, 3, 2, 1];
        expected.extend(b"AAPL    ");
        expected.extend([100, 0, 0, 0, 0xB0, 0x0A, 0x31, 0, 0, 0, 0, 0]);
        expected.extend([0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 4, 3, 2, 1, 0xEE, 0xEE]);
        assert_eq!(out[..], expected);
    }

    #[test]
    fn a_short_buffer_is_left_alone() {
        let mut out = [7; 17];
        assert_eq!(SecurityEvent { event: b'O', symbol: text("A") }.encode(1, &mut out), None);
        assert_eq!(out, [7; 17]);
    }
}
