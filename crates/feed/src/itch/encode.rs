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

/// A number or text in its wire form.
trait Field: Copy {
    /// Fills `to`, which is exactly as long as the field.
    fn put(self, to: &mut [u8]);
}

impl Field for u8 {
    #[inline(always)]
    fn put(self, to: &mut [u8]) {
        to.copy_from_slice(&[self]);
    }
}

impl Field for u32 {
    #[inline(always)]
    fn put(self, to: &mut [u8]) {
        to.copy_from_slice(&self.to_be_bytes());
    }
}

impl Field for u64 {
    #[inline(always)]
    fn put(self, to: &mut [u8]) {
        to.copy_from_slice(&self.to_be_bytes());
    }
}

impl<const N: usize> Field for [u8; N] {
    #[inline(always)]
    fn put(self, to: &mut [u8]) {
        to.copy_from_slice(&self);
    }
}

impl PrefixFields {
    #[inline(always)]
    fn put(self, kind: u8, to: &mut [u8; PREFIX_LENGTH]) {
        let [_, locate @ ..] = self.ts_ns.to_be_bytes();
        let [_, time @ ..] = locate;
        let [l0, l1] = self.locate.to_be_bytes();
        let [t0, t1] = self.tracking.to_be_bytes();
        *to = [kind, l0, l1, t0, t1, time[0], time[1], time[2], time[3], time[4], time[5]];
    }
}

/// Declares the messages: name, type, length, fields in wire order. The compiler checks the sum of the widths against the specification's length.
macro_rules! messages {
    ($( $(#[$about:meta])* $name:ident $kind:literal $length:literal {
        $( $(#[$meaning:meta])* $field:ident: $width:ty, )*
    } )*) => {
        $(
            $(#[$about])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            pub struct $name {
                $( $(#[$meaning])* pub $field: $width, )*
            }

            impl $name {
                /// The message's type on the wire.
                pub const TYPE: u8 = $kind;
                /// The size of the message in bytes, without framing.
                pub const LENGTH: usize = $length;

                /// Writes the message to the front of `out` and returns its length; `None` if `out` is too short (then nothing is written).
                #[inline]
                pub fn encode(&self, prefix: PrefixFields, out: &mut [u8]) -> Option<usize> {
                    let out: &mut [u8; $length] = out.first_chunk_mut()?;
                    prefix.put($kind, out.first_chunk_mut()?);
                    let mut at = PREFIX_LENGTH;
                    $(
                        self.$field.put(&mut out[at..at + size_of::<$width>()]);
                        at += size_of::<$width>();
                    )*
                    let _ = at;
                    Some($length)
                }
            }

            const _: () = assert!(PREFIX_LENGTH $( + size_of::<$width>() )* == $length);
        )*

        /// Returns the size of a message of this type in bytes, without framing; `None` for a type that ITCH 5.0 does not have. Separate from the
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
    /// Start or end of messages, system hours or market hours.
    SystemEvent b'S' 12 {
        /// `O`, `S`, `Q`, `M`, `E` or `C`.
        event: u8,
    }
    /// A stock and its properties, before trading starts.
    StockDirectory b'R' 39 {
        /// Symbol.
        stock: [u8; 8],
        /// `Q`, `G`, `S`, `N`, `A`, `P`, `Z`, `V` or space.
        market_category: u8,
        /// `N` for normal.
        financial_status: u8,
        /// Shares in a round lot.
        round_lot: u32,
        /// `Y` if only round lots are accepted.
        round_lots_only: u8,
        /// Kind of security.
        issue_classification: u8,
        /// Finer kind of security.
        issue_sub_type: [u8; 2],
        /// `P` live, `T` test.
        authenticity: u8,
        /// `Y`, `N` or space.
        short_sale_threshold: u8,
        /// `Y`, `N` or space.
        ipo_flag: u8,
        /// `1`, `2` or space.
        luld_tier: u8,
        /// `Y` for an exchange-traded product.
        etp_flag: u8,
        /// Leverage of an exchange-traded product.
        etp_leverage: u32,
        /// `Y` for an inverse product.
        inverse: u8,
    }
    /// A stock is halted, paused, quoted only, or trading.
    TradingAction b'H' 25 {
        /// Symbol.
        stock: [u8; 8],
        /// `H`, `P`, `Q` or `T`.
        state: u8,
        /// Reserved.
        reserved: u8,
        /// Reason code.
        reason: [u8; 4],
    }
    /// Short-sale restriction.
    RegSho b'Y' 20 {
        /// Symbol.
        stock: [u8; 8],
        /// `0`, `1` or `2`.
        action: u8,
    }
    /// The state of a market participant in a stock.
    ParticipantPosition b'L' 26 {
        /// Participant.
        mpid: [u8; 4],
        /// Symbol.
        stock: [u8; 8],
        /// `Y` for a primary market maker.
        primary: u8,
        /// `N`, `P`, `S`, `R` or `L`.
        mode: u8,
        /// `A`, `E`, `W`, `S` or `D`.
        state: u8,
    }
    /// Levels of the market-wide circuit breaker, with eight decimals.
    BreakerLevels b'V' 35 {
        /// Level 1.
        level_1: u64,
        /// Level 2.
        level_2: u64,
        /// Level 3.
        level_3: u64,
    }
    /// A level of the market-wide circuit breaker was breached.
    BreakerStatus b'W' 12 {
        /// `1`, `2` or `3`.
        level: u8,
    }
    /// Start of quoting of a new issue.
    IpoQuoting b'K' 28 {
        /// Symbol.
        stock: [u8; 8],
        /// Seconds since midnight.
        release_s: u32,
        /// `A` or `C`.
        qualifier: u8,
        /// Price with four decimals.
        price: u32,
    }
    /// Price collars of a limit-up limit-down auction.
    AuctionCollar b'J' 35 {
        /// Symbol.
        stock: [u8; 8],
        /// Reference price, four decimals.
        reference_price: u32,
        /// Upper collar, four decimals.
        upper: u32,
        /// Lower collar, four decimals.
        lower: u32,
        /// Number of extensions of the auction.
        extension: u32,
    }
    /// A market's interruption of service for a stock.
    OperationalHalt b'h' 21 {
        /// Symbol.
        stock: [u8; 8],
        /// `Q`, `B` or `X`.
        market: u8,
        /// `H` or `T`.
        action: u8,
    }
    /// A new order on the book, no attribution.
    AddOrder b'A' 36 {
        /// Order reference.
        reference: u64,
        /// `B` or `S`.
        side: u8,
        /// Shares.
        shares: u32,
        /// Symbol.
        stock: [u8; 8],
        /// Price with four decimals.
        price: u32,
    }
    /// A new order on the book with its participant.
    AddOrderAttributed b'F' 40 {
        /// Order reference.
        reference: u64,
        /// `B` or `S`.
        side: u8,
        /// Shares.
        shares: u32,
        /// Symbol.
        stock: [u8; 8],
        /// Price with four decimals.
        price: u32,
        /// Participant.
        attribution: [u8; 4],
    }
    /// Shares of a resting order were executed at its price.
    OrderExecuted b'E' 31 {
        /// Order reference.
        reference: u64,
        /// Executed shares.
        shares: u32,
        /// Match number.
        match_number: u64,
    }
    /// Shares of a resting order were executed at another price.
    OrderExecutedWithPrice b'C' 36 {
        /// Order reference.
        reference: u64,
        /// Executed shares.
        shares: u32,
        /// Match number.
        match_number: u64,
        /// `Y`, or `N` if it must not count as volume.
        printable: u8,
        /// Execution price, four decimals.
        price: u32,
    }
    /// Some shares of a resting order were cancelled.
    OrderCancel b'X' 23 {
        /// Order reference.
        reference: u64,
        /// Cancelled shares.
        shares: u32,
    }
    /// An order left the book.
    OrderDelete b'D' 19 {
        /// Order reference.
        reference: u64,
    }
    /// An order was replaced by a new one of the same side and stock.
    OrderReplace b'U' 35 {
        /// The old order's reference.
        reference: u64,
        /// The new order's reference.
        new_reference: u64,
        /// Shares of the new order.
        shares: u32,
        /// Price of the new order, four decimals.
        price: u32,
    }
    /// A trade against an order that was not displayed.
    Trade b'P' 44 {
        /// Always 0 today.
        reference: u64,
        /// Always `B` today.
        side: u8,
        /// Shares.
        shares: u32,
        /// Symbol.
        stock: [u8; 8],
        /// Price with four decimals.
        price: u32,
        /// Match number.
        match_number: u64,
    }
    /// The bulk print of an auction.
    CrossTrade b'Q' 40 {
        /// Shares; may be 0.
        shares: u64,
        /// Symbol.
        stock: [u8; 8],
        /// Price with four decimals.
        price: u32,
        /// Match number.
        match_number: u64,
        /// `O`, `C` or `H`.
        cross: u8,
    }
    /// A trade was broken.
    BrokenTrade b'B' 19 {
        /// Match number of the trade.
        match_number: u64,
    }
    /// State of an auction before it takes place.
    NetOrderImbalance b'I' 50 {
        /// Shares that would match.
        paired: u64,
        /// Shares that would not match.
        imbalance: u64,
        /// `B`, `S`, `N` or `O`.
        direction: u8,
        /// Symbol.
        stock: [u8; 8],
        /// Far price, four decimals.
        far: u32,
        /// Near price, four decimals.
        near: u32,
        /// Reference price, four decimals.
        reference_price: u32,
        /// `O`, `H` or `C`.
        cross: u8,
        /// Distance of the near price from the reference price.
        variation: u8,
    }
    /// Interest of the retail price improvement programme.
    RetailInterest b'N' 20 {
        /// Symbol.
        stock: [u8; 8],
        /// `B`, `S`, `A` or `N`.
        interest: u8,
    }
    /// A direct listing with a capital raise.
    DirectListing b'O' 48 {
        /// Symbol.
        stock: [u8; 8],
        /// `Y` if the stock may open.
        eligible: u8,
        /// Lowest price, four decimals.
        min_price: u32,
        /// Highest price, four decimals.
        max_price: u32,
        /// Near execution price, four decimals.
        near_price: u32,
        /// Near execution time, ns since midnight.
        near_time: u64,
        /// Lower collar, four decimals.
        lower: u32,
        /// Upper collar, four decimals.
        upper: u32,
    }
}

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
