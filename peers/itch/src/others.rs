//! Other makers' decoders, each used as its documentation shows, all fields read and summed.

/// A way to go through a file; gives the sum of what it read.
pub(crate) type Reading = fn(&[u8]) -> u64;

/// Those of this build, by the names that the page knows.
pub(crate) const DECODERS: &[(&str, Reading)] = &[
    #[cfg(feature = "lunary")]
    ("lunary views", lunary::views),
    #[cfg(feature = "lunary")]
    ("lunary enum", lunary::owned),
    #[cfg(feature = "itchy")]
    ("itchy", itchy::stream),
];

#[cfg(feature = "lunary")]
mod lunary {
    use lunary::{Message, Parser, ZeroCopyMessage, ZeroCopyParser};

    /// Its zero-copy parser; fields by their places, as its `read_…` functions want them.
    #[inline(never)]
    pub(super) fn views(file: &[u8]) -> u64 {
        macro_rules! sum {
            ($m:ident: $($read:ident $at:literal),*) => { 0_u64 $(.wrapping_add($read(&$m, $at - 11)))* };
        }
        let n1 = |m: &ZeroCopyMessage<'_>, at: usize| u64::from(m.read_u8(at));
        let n4 = |m: &ZeroCopyMessage<'_>, at: usize| u64::from(m.read_u32(at));
        let n8 = |m: &ZeroCopyMessage<'_>, at: usize| m.read_u64(at);
        let mut parser = ZeroCopyParser::new(file);
        let mut sum = 0_u64;
        while let Some(m) = parser.parse_next() {
            let prefix = u64::from(m.stock_locate())
                .wrapping_add(u64::from(m.tracking_number()))
                .wrapping_add(m.timestamp());
            sum = sum.wrapping_add(prefix).wrapping_add(match m.msg_type() {
                b'A' => sum!(m: n8 11, n1 19, n4 20, n8 24, n4 32),
                b'D' => sum!(m: n8 11),
                b'E' => sum!(m: n8 11, n4 19, n8 23),
                b'U' => sum!(m: n8 11, n8 19, n4 27, n4 31),
                b'X' => sum!(m: n8 11, n4 19),
                b'P' => sum!(m: n8 11, n1 19, n4 20, n8 24, n4 32, n8 36),
                b'F' => sum!(m: n8 11, n1 19, n4 20, n8 24, n4 32, n4 36),
                b'C' => sum!(m: n8 11, n4 19, n8 23, n1 31, n4 32),
                b'Q' => sum!(m: n8 11, n8 19, n4 27, n8 31, n1 39),
                b'I' => sum!(m: n8 11, n8 19, n1 27, n8 28, n4 36, n4 40, n4 44, n1 48, n1 49),
                b'S' | b'W' => sum!(m: n1 11),
                b'R' => sum!(m: n8 11, n1 19, n1 20, n4 21, n4 25, n4 29, n1 33, n4 34, n1 38),
                b'H' => sum!(m: n8 11, n1 19, n1 20, n4 21),
                b'Y' | b'N' => sum!(m: n8 11, n1 19),
                b'L' => sum!(m: n4 11, n8 15, n1 23, n1 24, n1 25),
                b'V' => sum!(m: n8 11, n8 19, n8 27),
                b'K' => sum!(m: n8 11, n4 19, n1 23, n4 24),
                b'J' => sum!(m: n8 11, n4 19, n4 23, n4 27, n4 31),
                b'B' => sum!(m: n8 11),
                _ => 0,
            });
        }
        sum
    }

    /// Its parser that gives owned messages; the fields of orders and trades summed.
    #[inline(never)]
    pub(super) fn owned(file: &[u8]) -> u64 {
        let mut parser = Parser::new();
        let Ok(messages) = parser.parse_all(file) else { return 0 };
        let mut sum = 0_u64;
        for message in messages.flatten() {
            sum = sum.wrapping_add(match &message {
                Message::AddOrder(m) => m.order_reference_number ^ u64::from(m.shares) ^ u64::from(m.price),
                Message::OrderDelete(m) => m.order_reference_number,
                Message::OrderExecuted(m) => m.order_reference_number ^ m.match_number,
                Message::OrderReplace(m) => m.original_order_reference_number ^ m.new_order_reference_number,
                other => {
                    std::hint::black_box(other);
                    1
                }
            });
        }
        sum
    }
}

#[cfg(feature = "itchy")]
mod itchy {
    use itchy::{Body, MessageStream};

    /// Its stream over bytes in memory, which it copies through a buffer of 8 KiB; the fields of orders summed.
    #[inline(never)]
    pub(super) fn stream(file: &[u8]) -> u64 {
        let mut sum = 0_u64;
        for message in MessageStream::from_reader(file) {
            let Ok(message) = message else { return 0 };
            sum = sum.wrapping_add(message.timestamp).wrapping_add(match &message.body {
                Body::AddOrder(m) => m.reference ^ u64::from(m.shares) ^ u64::from(m.price.raw()),
                Body::DeleteOrder { reference } => *reference,
                Body::OrderExecuted { reference, executed, match_number } => {
                    reference ^ u64::from(*executed) ^ match_number
                }
                other => {
                    std::hint::black_box(other);
                    1
                }
            });
        }
        sum
    }
}
