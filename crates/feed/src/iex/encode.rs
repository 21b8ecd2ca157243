//! Writing messages of TOPS 1.6 and DEEP 1.0 into a caller's buffer, for tests and simulation.
//!
//! One struct for each message, with the fields of its view; the time of its event, `ts_ns`, is in ns since 1970. Numbers are written
//! little-endian, text unchanged. Values are not checked against the specifications' code sets, because a test may need an invalid one.
//!
//! ```
//! use tapeline_feed::iex::encode::{SecurityEvent, text};
//!
//! let mut bytes = [0; 18];
//! let written = SecurityEvent { event: b'C', symbol: text("IBM") }.encode(1, &mut bytes);
//! assert_eq!(written, Some(SecurityEvent::LENGTH));
//! assert_eq!(&bytes, b"EC\x01\0\0\0\0\0\0\0IBM     ");
//! ```

use super::table::iex_messages;
use crate::wire::encoders;

pub use crate::itch::encode::text;

/// The size of the longest message, the auction information, in bytes.
pub const LONGEST: usize = AuctionInformation::LENGTH;

#[inline(always)]
fn put_prefix(ts_ns: u64, kind: u8, to: &mut [u8; super::PREFIX_BYTES]) {
    to[0] = kind;
    to[2..].copy_from_slice(&ts_ns.to_le_bytes());
}

// The byte after the type is a field of each message.
iex_messages! { encoders { LITTLE, ts_ns: u64, put_prefix, 0x3FD } }

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
