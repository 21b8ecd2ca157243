//! Writing ITCH 5.0 messages, every type of the specification, into a caller's buffer.
//!
//! Source: NASDAQ TotalView-ITCH 5.0, sections 1.1–1.7 (lengths and order of the fields). One struct for each message, its fields in wire order
//! after the common [`PrefixFields`]; numbers are written big-endian, text unchanged. Values are not checked against the specification's code sets,
//! because a test or a simulator may need an invalid one.
//!
//! ```
//! use tapeline_feed::itch::encode::{OrderDelete, PrefixFields};
//!
//! let mut bytes = [0; 64];
//! let written = OrderDelete { reference: 7 }.encode(PrefixFields { locate: 13, tracking: 0, ts_ns: 1 }, &mut bytes);
//! assert_eq!(written, Some(OrderDelete::LENGTH));
//! assert_eq!(bytes[..19], [b'D', 0, 13, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7]);
//! ```

use super::table::itch_messages;
use crate::wire::encoders;

/// The size of the prefix of every message in bytes: type, stock locate, tracking number, time.
pub const PREFIX_LENGTH: usize = 11;

/// The size of the longest message, the net order imbalance, in bytes.
pub const LONGEST: usize = NetOrderImbalance::LENGTH;

/// The prefix of every message, without its type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefixFields {
    /// The day's number of the stock; 0 for a message about no stock.
    pub locate: u16,
    /// NASDAQ's internal tracking number.
    pub tracking: u16,
    /// Nanoseconds since midnight in New York; the upper 16 bits do not fit on the wire and are dropped.
    pub ts_ns: u64,
}

/// Returns text in ITCH's form: left-justified, padded with spaces; a longer text is cut.
#[must_use]
pub fn text<const N: usize>(text: &str) -> [u8; N] {
    let mut field = [b' '; N];
    for (to, from) in field.iter_mut().zip(text.bytes()) {
        *to = from;
    }
    field
}

#[inline(always)]
fn put_prefix(prefix: PrefixFields, kind: u8, to: &mut [u8; PREFIX_LENGTH]) {
    let [_, _, time @ ..] = prefix.ts_ns.to_be_bytes();
    let [l0, l1] = prefix.locate.to_be_bytes();
    let [t0, t1] = prefix.tracking.to_be_bytes();
    *to = [kind, l0, l1, t0, t1, time[0], time[1], time[2], time[3], time[4], time[5]];
}

itch_messages! { encoders { BIG, prefix: PrefixFields, put_prefix, 0x7FF } }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_add_order_is_laid_out_as_specified() {
        let order = AddOrder {
            reference: 0x0102_0304_0506_0708,
            side: b'B',
            shares: 100,
            stock: text("AAPL"),
            price: 3_214_000,
        };
        let mut out = [0xEE; 40];
        let prefix = PrefixFields { locate: 13, tracking: 2, ts_ns: 0x0A37_8D1E_2F49 };
        assert_eq!(order.encode(prefix, &mut out), Some(36));
        let mut expected = vec![b'A', 0, 13, 0, 2, 0x0A, 0x37, 0x8D, 0x1E, 0x2F, 0x49];
        expected.extend([1, 2, 3, 4, 5, 6, 7, 8, b'B', 0, 0, 0, 100]);
        expected.extend(b"AAPL    ");
        expected.extend([0x00, 0x31, 0x0A, 0xB0]);
        expected.extend([0xEE; 4]);
        assert_eq!(out[..], expected);
    }

    #[test]
    fn a_short_buffer_is_left_alone() {
        let mut out = [7; 18];
        assert_eq!(OrderDelete { reference: 1 }.encode(PrefixFields::default(), &mut out), None);
        assert_eq!(out, [7; 18]);
    }
}
