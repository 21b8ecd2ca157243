//! The views: one for each type of message, with all fields at their fixed offsets.

use super::field::{ItchWire, chunk};
use super::{
    Code, ItchText, Locate, MalformedItchMessage, MatchNumber, MessageKind, MessageType, Mpid, OrderRef,
    Price4, Price8, Symbol,
};

/// The size of the prefix of every message in bytes: type, locate, tracking number, time.
pub const PREFIX_BYTES: usize = 11;

/// Returns the time of a message in ns since midnight: six bytes, read as the lower part of the eight bytes that end with them.
#[inline(always)]
fn ts_ns<const L: usize>(message: &[u8; L]) -> u64 {
    u64::from_be_bytes(chunk::<3, 8, L>(message)) & 0x0000_FFFF_FFFF_FFFF
}

/// Declares the views. The offsets are those of the specification's tables, and each field has to lie within the length.
macro_rules! messages {
    ($( $(#[$about:meta])* $name:ident $length:literal {
        $( $(#[$meaning:meta])* $field:ident: $kind:ty = $at:literal, )*
    } )*) => {
        $(
            $(#[$about])*
            #[repr(transparent)]
            #[derive(Clone, Copy, PartialEq, Eq)]
            pub struct $name<'a>(&'a [u8; $length]);

            impl<'a> $name<'a> {
                /// The size of the message in bytes, without framing.
                pub const LENGTH: usize = $length;

                /// Returns the message's bytes up to the end of the known fields.
                #[inline(always)]
                #[must_use]
                pub const fn bytes(self) -> &'a [u8; $length] {
                    self.0
                }

                /// Returns the day's number of the stock; 0 for a message about no stock.
                #[inline(always)]
                #[must_use]
                pub fn locate(self) -> Locate {
                    Locate::from_wire(chunk::<1, 2, $length>(self.0))
                }

                /// Returns NASDAQ's internal tracking number.
                #[inline(always)]
                #[must_use]
                pub fn tracking(self) -> u16 {
                    u16::from_wire(chunk::<3, 2, $length>(self.0))
                }

                /// Returns the time of the message, ns since midnight in New York.
                #[inline(always)]
                #[must_use]
                pub fn ts_ns(self) -> u64 {
                    ts_ns(self.0)
                }

                $(
                    $(#[$meaning])*
                    #[inline(always)]
                    #[must_use]
                    pub fn $field(self) -> $kind {
                        <$kind>::from_wire(chunk::<$at, _, $length>(self.0))
                    }
                )*
            }

            impl std::fmt::Debug for $name<'_> {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.debug_struct(stringify!($name))
                        .field("locate", &self.locate().0)
                        .field("tracking", &self.tracking())
                        .field("ts_ns", &self.ts_ns())
                        $(.field(stringify!($field), &self.$field()))*
                        .finish()
                }
            }

            const _: () = assert!(MessageType::$name.length() == $length);
        )*

        /// A message: a view over received bytes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Message<'a> {
            $( $(#[$about])* $name($name<'a>), )*
            /// A message of a type that this crate does not know.
            Unknown(UnknownMessage<'a>),
        }

        impl<'a> Message<'a> {
            /// Returns the message's type.
            #[inline]
            #[must_use]
            pub const fn kind(self) -> MessageKind {
                match self {
                    $( Self::$name(_) => MessageKind::Known(MessageType::$name), )*
                    Self::Unknown(unknown) => MessageKind::Unknown(unknown.letter()),
                }
            }

            /// Returns the bytes of the known fields; all bytes of a message of unknown type.
            #[inline]
            #[must_use]
            pub const fn bytes(self) -> &'a [u8] {
                match self {
                    $( Self::$name(message) => message.0, )*
                    Self::Unknown(unknown) => unknown.0,
                }
            }
        }

        /// Decodes a message.
        ///
        /// Costs a branch on the type, which the processor has to predict, and one comparison of lengths (`benches/itch`). Bytes after the type's
        /// fields are ignored: [`Message::extra_bytes`] returns their number.
        ///
        /// # Errors
        /// [`MalformedItchMessage`] if there is no type, or the message is shorter than its type.
        #[inline(always)]
        pub fn decode(bytes: &[u8]) -> Result<Message<'_>, MalformedItchMessage> {
            let Some(letter) = bytes.first() else { return Err(MalformedItchMessage::Empty) };
            match *letter {
                $( letter if letter == MessageType::$name as u8 => match bytes.first_chunk() {
                    Some(message) => Ok(Message::$name($name(message))),
                    None => Err(MalformedItchMessage::Short { kind: MessageType::$name, length: bytes.len() }),
                }, )*
                _ => Ok(Message::Unknown(UnknownMessage(bytes))),
            }
        }
    };
}

messages! {
    /// `S`: start or end of messages, system hours or market hours.
    SystemEvent 12 {
        /// `O` and `C` start and end of messages, `S` and `E` of system hours, `Q` and `M` of market hours.
        event: Code = 11,
    }
    /// `R`: a stock and its properties, before trading starts.
    StockDirectory 39 {
        /// Symbol.
        stock: Symbol = 11,
        /// `Q`, `G`, `S` NASDAQ's tiers, `N` NYSE, `A` NYSE American, `P` Arca, `Z` Bats, `V` IEX, or space.
        market_category: Code = 19,
        /// `N` normal; `D`, `E`, `Q`, `S`, `G`, `H`, `J`, `K`, `C`, or space.
        financial_status: Code = 20,
        /// Shares in a round lot.
        round_lot: u32 = 21,
        /// `Y` if only round lots are accepted.
        round_lots_only: Code = 25,
        /// Kind of security.
        issue_classification: Code = 26,
        /// Finer kind of security.
        issue_sub_type: ItchText<2> = 27,
        /// `P` live, `T` test.
        authenticity: Code = 29,
        /// `Y`, `N` or space.
        short_sale_threshold: Code = 30,
        /// `Y`, `N` or space.
        ipo_flag: Code = 31,
        /// `1`, `2` or space.
        luld_tier: Code = 32,
        /// `Y` for an exchange-traded product.
        etp_flag: Code = 33,
        /// Leverage of an exchange-traded product.
        etp_leverage: u32 = 34,
        /// `Y` for an inverse product.
        inverse: Code = 38,
    }
    /// `H`: a stock is halted, paused, quoted only, or trading.
    TradingAction 25 {
        /// Symbol.
        stock: Symbol = 11,
        /// `H` halted, `P` paused, `Q` quotation only, `T` trading.
        state: Code = 19,
        /// Reserved.
        reserved: Code = 20,
        /// Reason code.
        reason: ItchText<4> = 21,
    }
    /// `Y`: short-sale restriction.
    RegSho 20 {
        /// Symbol.
        stock: Symbol = 11,
        /// `0` none, `1` after an intraday drop, `2` still in force.
        action: Code = 19,
    }
    /// `L`: the state of a market participant in a stock.
    ParticipantPosition 26 {
        /// Participant.
        mpid: Mpid = 11,
        /// Symbol.
        stock: Symbol = 15,
        /// `Y` for a primary market maker.
        primary: Code = 23,
        /// `N` normal, `P` passive, `S` syndicate, `R` pre-syndicate, `L` penalty.
        mode: Code = 24,
        /// `A` active, `E` excused, `W` withdrawn, `S` suspended, `D` deleted.
        state: Code = 25,
    }
    /// `V`: levels of the market-wide circuit breaker.
    BreakerLevels 35 {
        /// Level 1.
        level_1: Price8 = 11,
        /// Level 2.
        level_2: Price8 = 19,
        /// Level 3.
        level_3: Price8 = 27,
    }
    /// `W`: a level of the market-wide circuit breaker was breached.
    BreakerStatus 12 {
        /// `1`, `2` or `3`.
        level: Code = 11,
    }
    /// `K`: start of quoting of a new issue.
    IpoQuoting 28 {
        /// Symbol.
        stock: Symbol = 11,
        /// Seconds since midnight.
        release_s: u32 = 19,
        /// `A` anticipated, `C` cancelled or postponed.
        qualifier: Code = 23,
        /// Price of the issue.
        price: Price4 = 24,
    }
    /// `J`: price collars of a limit-up limit-down auction.
    AuctionCollar 35 {
        /// Symbol.
        stock: Symbol = 11,
        /// Reference price.
        reference_price: Price4 = 19,
        /// Upper collar.
        upper: Price4 = 23,
        /// Lower collar.
        lower: Price4 = 27,
        /// Number of extensions of the auction.
        extension: u32 = 31,
    }
    /// `h`: a market's interruption of service for a stock.
    OperationalHalt 21 {
        /// Symbol.
        stock: Symbol = 11,
        /// `Q` NASDAQ, `B` BX, `X` PSX.
        market: Code = 19,
        /// `H` halted, `T` resumed.
        action: Code = 20,
    }
    /// `A`: a new order on the book, no attribution.
    AddOrder 36 {
        /// The new order.
        reference: OrderRef = 11,
        /// `B` or `S`.
        side: Code = 19,
        /// Shares.
        shares: u32 = 20,
        /// Symbol.
        stock: Symbol = 24,
        /// Limit price.
        price: Price4 = 32,
    }
    /// `F`: a new order on the book with its participant.
    AddOrderAttributed 40 {
        /// The new order.
        reference: OrderRef = 11,
        /// `B` or `S`.
        side: Code = 19,
        /// Shares.
        shares: u32 = 20,
        /// Symbol.
        stock: Symbol = 24,
        /// Limit price.
        price: Price4 = 32,
        /// Participant.
        attribution: Mpid = 36,
    }
    /// `E`: shares of a resting order were executed at its price.
    OrderExecuted 31 {
        /// The resting order.
        reference: OrderRef = 11,
        /// Executed shares.
        shares: u32 = 19,
        /// The execution.
        match_number: MatchNumber = 23,
    }
    /// `C`: shares of a resting order were executed at another price.
    OrderExecutedWithPrice 36 {
        /// The resting order.
        reference: OrderRef = 11,
        /// Executed shares.
        shares: u32 = 19,
        /// The execution.
        match_number: MatchNumber = 23,
        /// `Y`, or `N` if it must not count as volume: a later bulk print includes it.
        printable: Code = 31,
        /// Execution price.
        price: Price4 = 32,
    }
    /// `X`: some shares of a resting order were cancelled.
    OrderCancel 23 {
        /// The resting order.
        reference: OrderRef = 11,
        /// Cancelled shares.
        shares: u32 = 19,
    }
    /// `D`: an order left the book.
    OrderDelete 19 {
        /// The order.
        reference: OrderRef = 11,
    }
    /// `U`: an order was replaced by a new one of the same side and stock.
    OrderReplace 35 {
        /// The old order.
        reference: OrderRef = 11,
        /// The new order, last in time priority.
        new_reference: OrderRef = 19,
        /// Shares of the new order.
        shares: u32 = 27,
        /// Limit price of the new order.
        price: Price4 = 31,
    }
    /// `P`: a trade against an order that was not displayed.
    Trade 44 {
        /// Always 0 today.
        reference: OrderRef = 11,
        /// Always `B` today, without meaning.
        side: Code = 19,
        /// Shares.
        shares: u32 = 20,
        /// Symbol.
        stock: Symbol = 24,
        /// Price.
        price: Price4 = 32,
        /// The execution.
        match_number: MatchNumber = 36,
    }
    /// `Q`: the bulk print of an auction.
    CrossTrade 40 {
        /// Shares; may be 0.
        shares: u64 = 11,
        /// Symbol.
        stock: Symbol = 19,
        /// Price of all shares.
        price: Price4 = 27,
        /// The execution.
        match_number: MatchNumber = 31,
        /// `O` opening, `C` closing, `H` after a halt or of a new issue.
        cross: Code = 39,
    }
    /// `B`: a trade was broken.
    BrokenTrade 19 {
        /// The execution that no longer counts.
        match_number: MatchNumber = 11,
    }
    /// `I`: state of an auction before it takes place.
    NetOrderImbalance 50 {
        /// Shares that would match at the reference price.
        paired: u64 = 11,
        /// Shares that would not match.
        imbalance: u64 = 19,
        /// `B` buy, `S` sell, `N` none, `O` too few orders to determine the side.
        direction: Code = 27,
        /// Symbol.
        stock: Symbol = 28,
        /// Price at which the auction's own orders would clear.
        far: Price4 = 36,
        /// Price at which all orders would clear.
        near: Price4 = 40,
        /// Price at which paired and imbalance shares are counted.
        reference_price: Price4 = 44,
        /// `O` opening, `C` closing, `H` after a halt or of a new issue.
        cross: Code = 48,
        /// Distance of the near price from the reference price: `L`, `1` to `9`, `A` to `C`, or space.
        variation: Code = 49,
    }
    /// `N`: interest of the retail price improvement programme.
    RetailInterest 20 {
        /// Symbol.
        stock: Symbol = 11,
        /// `B` buy, `S` sell, `A` both, `N` none.
        interest: Code = 19,
    }
    /// `O`: a direct listing with a capital raise; not in the document of 2018.
    DirectListing 48 {
        /// Symbol.
        stock: Symbol = 11,
        /// `Y` if the stock may open.
        eligible: Code = 19,
        /// Lowest price.
        min_price: Price4 = 20,
        /// Highest price.
        max_price: Price4 = 24,
        /// Near execution price.
        near_price: Price4 = 28,
        /// Near execution time, ns since midnight.
        near_time: u64 = 32,
        /// Lower collar.
        lower: Price4 = 40,
        /// Upper collar.
        upper: Price4 = 44,
    }
}

/// A message of a type that this crate does not know: at least one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownMessage<'a>(&'a [u8]);

impl<'a> UnknownMessage<'a> {
    /// Returns the first byte.
    #[inline]
    #[must_use]
    pub const fn letter(self) -> u8 {
        match self.0 {
            [letter, ..] => *letter,
            [] => 0,
        }
    }

    /// Returns all bytes.
    #[inline]
    #[must_use]
    pub const fn bytes(self) -> &'a [u8] {
        self.0
    }
}

impl Message<'_> {
    /// Returns the stock's symbol; `None` for a type without one.
    #[must_use]
    pub fn stock(&self) -> Option<Symbol> {
        Some(match *self {
            Self::StockDirectory(m) => m.stock(),
            Self::TradingAction(m) => m.stock(),
            Self::RegSho(m) => m.stock(),
            Self::ParticipantPosition(m) => m.stock(),
            Self::IpoQuoting(m) => m.stock(),
            Self::AuctionCollar(m) => m.stock(),
            Self::OperationalHalt(m) => m.stock(),
            Self::AddOrder(m) => m.stock(),
            Self::AddOrderAttributed(m) => m.stock(),
            Self::Trade(m) => m.stock(),
            Self::CrossTrade(m) => m.stock(),
            Self::NetOrderImbalance(m) => m.stock(),
            Self::RetailInterest(m) => m.stock(),
            Self::DirectListing(m) => m.stock(),
            Self::SystemEvent(_)
            | Self::BreakerLevels(_)
            | Self::BreakerStatus(_)
            | Self::OrderExecuted(_)
            | Self::OrderExecutedWithPrice(_)
            | Self::OrderCancel(_)
            | Self::OrderDelete(_)
            | Self::OrderReplace(_)
            | Self::BrokenTrade(_)
            | Self::Unknown(_) => return None,
        })
    }

    /// Returns the prefix; `None` only for a message of unknown type that is shorter than a prefix.
    #[inline]
    #[must_use]
    pub fn prefix(&self) -> Option<Prefix<'_>> {
        self.bytes().first_chunk().map(Prefix)
    }

    /// Returns the number of bytes of `received`, the decoded bytes, after the known fields: a newer edition of the specification may have added
    /// some.
    #[inline]
    #[must_use]
    pub const fn extra_bytes(&self, received: &[u8]) -> usize {
        received.len().saturating_sub(self.bytes().len())
    }
}

/// The prefix of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix<'a>(&'a [u8; PREFIX_BYTES]);

impl Prefix<'_> {
    /// Returns the first byte.
    #[inline]
    #[must_use]
    pub const fn letter(self) -> u8 {
        self.0[0]
    }

    /// Returns the day's number of the stock; 0 for a message about no stock.
    #[inline]
    #[must_use]
    pub fn locate(self) -> Locate {
        Locate::from_wire(chunk::<1, 2, PREFIX_BYTES>(self.0))
    }

    /// Returns NASDAQ's internal tracking number.
    #[inline]
    #[must_use]
    pub fn tracking(self) -> u16 {
        u16::from_wire(chunk::<3, 2, PREFIX_BYTES>(self.0))
    }

    /// Returns the time of the message, ns since midnight in New York.
    #[inline]
    #[must_use]
    pub fn ts_ns(self) -> u64 {
        ts_ns(self.0)
    }
}
