//! The views: one for each kind of message, with all fields at their fixed offsets.

use super::field::IexWire;
use super::{IexMessageType, IexPrice, MalformedIexMessage};
use crate::itch::field::chunk;
use crate::itch::{Code, ItchText, Side, Symbol};

/// The size of the prefix of every message in bytes: type, flag or code, time.
pub const PREFIX_BYTES: usize = 10;

/// Offset after the symbol, which every message except a system event has.
const SYMBOL_END: usize = PREFIX_BYTES + 8;

/// Declares the views. The offsets are those of the specifications' tables, and each field has to lie within the length.
macro_rules! messages {
    ($( $(#[$about:meta])* $name:ident [$($kind:ident)+] $length:literal {
        $( $(#[$meaning:meta])* $field:ident: $type:ty = $at:literal, )*
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

                /// Returns the time of the event, ns since 1970 in UTC.
                #[inline(always)]
                #[must_use]
                pub fn ts_ns(self) -> u64 {
                    u64::from_wire(chunk::<2, 8, $length>(self.0))
                }

                $(
                    $(#[$meaning])*
                    #[inline(always)]
                    #[must_use]
                    pub fn $field(self) -> $type {
                        <$type>::from_wire(chunk::<$at, _, $length>(self.0))
                    }
                )*
            }

            impl std::fmt::Debug for $name<'_> {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.debug_struct(stringify!($name))
                        .field("ts_ns", &self.ts_ns())
                        $(.field(stringify!($field), &self.$field()))*
                        .finish()
                }
            }

            $(const _: () = assert!(IexMessageType::$kind.length() == $length);)+
        )*

        /// A message: a view over received bytes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum IexMessage<'a> {
            $( $(#[$about])* $name($name<'a>), )*
            /// A message of a type that this crate does not know: at least one byte.
            Unknown(&'a [u8]),
        }

        impl<'a> IexMessage<'a> {
            /// Returns the bytes of the known fields; all bytes of a message of unknown type.
            #[inline]
            #[must_use]
            pub const fn bytes(self) -> &'a [u8] {
                match self {
                    $( Self::$name(message) => message.0, )*
                    Self::Unknown(bytes) => bytes,
                }
            }
        }

        /// Decodes a message.
        ///
        /// Costs a branch on the type, which the processor has to predict, and one comparison of lengths (`benches/iex.rs`). Bytes after the type's
        /// fields are ignored: [`IexMessage::extra_bytes`] returns their number.
        ///
        /// # Errors
        /// [`MalformedIexMessage`] if there is no type, or the message is shorter than its type.
        #[inline(always)]
        pub fn decode(bytes: &[u8]) -> Result<IexMessage<'_>, MalformedIexMessage> {
            let Some(letter) = bytes.first() else { return Err(MalformedIexMessage::Empty) };
            match IexMessageType::of(*letter) {
                $($( Some(kind @ IexMessageType::$kind) => match bytes.first_chunk() {
                    Some(message) => Ok(IexMessage::$name($name(message))),
                    None => Err(MalformedIexMessage::Short { kind, length: bytes.len() }),
                }, )+)*
                None => Ok(IexMessage::Unknown(bytes)),
            }
        }
    };
}

messages! {
    /// `8`, `5`: the size now displayed at a price; 0 if the level is gone.
    PriceLevel [BuyLevel SellLevel] 30 {
        /// `8` for the buy side, `5` for the sell side.
        letter: u8 = 0,
        /// Bit 0 is set if the event is complete with this message.
        flags: u8 = 1,
        /// Symbol.
        symbol: Symbol = 10,
        /// All shares displayed at the price.
        size: u32 = 18,
        /// The price.
        price: IexPrice = 22,
    }
    /// `Q`: best bid and ask.
    QuoteUpdate [QuoteUpdate] 42 {
        /// 0x80 if the security is not available, 0x40 outside regular hours.
        flags: u8 = 1,
        /// Symbol.
        symbol: Symbol = 10,
        /// Shares at the best bid; 0 without a bid.
        bid_size: u32 = 18,
        /// Best bid.
        bid: IexPrice = 22,
        /// Best ask.
        ask: IexPrice = 30,
        /// Shares at the best ask; 0 without an ask.
        ask_size: u32 = 38,
    }
    /// `T`: a trade on IEX.
    TradeReport [TradeReport] 38 {
        /// Sale conditions: 0x80 intermarket sweep, 0x40 extended hours, 0x20 odd lot, 0x10 trade-through exempt, 0x08 single-price cross. All
        /// count as volume; with 0x40 or 0x20 a trade is no last sale in the sense of the consolidated tape.
        flags: u8 = 1,
        /// Symbol.
        symbol: Symbol = 10,
        /// Shares.
        size: u32 = 18,
        /// Price.
        price: IexPrice = 22,
        /// IEX's number of the trade, unique for the day.
        trade: u64 = 30,
    }
    /// `B`: a trade was broken.
    TradeBreak [TradeBreak] 38 {
        /// Sale conditions of the trade.
        flags: u8 = 1,
        /// Symbol.
        symbol: Symbol = 10,
        /// Shares of the trade.
        size: u32 = 18,
        /// Price of the trade.
        price: IexPrice = 22,
        /// The trade's number.
        trade: u64 = 30,
    }
    /// `S`: start or end of messages, system hours or regular hours.
    SystemEvent [SystemEvent] 10 {
        /// `O` and `C` start and end of messages, `S` and `E` of system hours, `R` and `M` of regular hours.
        event: Code = 1,
    }
    /// `D`: a security and its properties.
    SecurityDirectory [SecurityDirectory] 31 {
        /// 0x80 test security, 0x40 when issued, 0x20 exchange-traded product.
        flags: u8 = 1,
        /// Symbol.
        symbol: Symbol = 10,
        /// Shares in a round lot.
        round_lot: u32 = 18,
        /// Previous official close, adjusted for corporate actions.
        previous_close: IexPrice = 22,
        /// Tier of limit up, limit down: 0 not applicable, 1 or 2.
        luld_tier: u8 = 30,
    }
    /// `H`: a security is halted, paused, accepts orders, or trades.
    TradingStatus [TradingStatus] 22 {
        /// `H` halted, `O` accepts orders, `P` paused and accepts orders, `T` trades.
        status: Code = 1,
        /// Symbol.
        symbol: Symbol = 10,
        /// Reason code.
        reason: ItchText<4> = 18,
    }
    /// `O`: an operational halt of a security by IEX alone, or its end.
    OperationalHalt [OperationalHalt] 18 {
        /// `O` halted on IEX, `N` not.
        status: Code = 1,
        /// Symbol.
        symbol: Symbol = 10,
    }
    /// `P`: short-sale price test.
    ShortSale [ShortSale] 19 {
        /// 1 if the test is in effect, 0 if not.
        in_effect: u8 = 1,
        /// Symbol.
        symbol: Symbol = 10,
        /// Space none, `A` activated, `C` continued, `D` deactivated, `N` not available.
        detail: Code = 18,
    }
    /// `X`: official opening or closing price.
    OfficialPrice [OfficialPrice] 26 {
        /// `Q` opening, `M` closing.
        kind: Code = 1,
        /// Symbol.
        symbol: Symbol = 10,
        /// The price.
        price: IexPrice = 18,
    }
    /// `A`: state of an auction before it takes place.
    AuctionInformation [AuctionInformation] 80 {
        /// `O` opening, `C` closing, `I` new issue, `H` after a halt, `V` after volatility.
        kind: Code = 1,
        /// Symbol.
        symbol: Symbol = 10,
        /// Shares that would match.
        paired: u32 = 18,
        /// Reference price.
        reference: IexPrice = 22,
        /// Price at which the auction would clear.
        indicative: IexPrice = 30,
        /// Shares that would not match.
        imbalance: u32 = 38,
        /// Side of the shares that would not match: `B`, `S`, or `N` for none.
        side: Code = 42,
        /// Number of extensions of the auction.
        extensions: u8 = 43,
        /// Time of the auction, seconds since 1970 in UTC.
        scheduled_s: u32 = 44,
        /// Price at which the orders for the auction alone would clear.
        book_clearing: IexPrice = 48,
        /// Reference of the collars.
        collar: IexPrice = 56,
        /// Lower collar.
        lower: IexPrice = 64,
        /// Upper collar.
        upper: IexPrice = 72,
    }
    /// `E`: opening or closing process of a security is complete.
    SecurityEvent [SecurityEvent] 18 {
        /// `O` opening, `C` closing.
        event: Code = 1,
        /// Symbol.
        symbol: Symbol = 10,
    }
    /// `I`: interest of retail orders.
    RetailLiquidity [RetailLiquidity] 18 {
        /// Space none, `A` buy, `B` sell, `C` both.
        indicator: Code = 1,
        /// Symbol.
        symbol: Symbol = 10,
    }
}

impl PriceLevel<'_> {
    /// Returns the side, from the type's letter.
    #[inline(always)]
    #[must_use]
    pub fn side(self) -> Side {
        if self.letter() == IexMessageType::BuyLevel.letter() { Side::Bid } else { Side::Ask }
    }

    /// Returns `true` if the event is complete with this message: before that, the best prices may be intermediate.
    #[inline(always)]
    #[must_use]
    pub fn completes_event(self) -> bool {
        self.flags() & 1 != 0
    }
}

/// Returns the symbol of a message that has not been decoded, if it has one: its offset is the same in all types except the system event. For a
/// filter that runs before [`decode`].
#[inline]
#[must_use]
pub fn symbol(bytes: &[u8]) -> Option<Symbol> {
    match bytes.first_chunk::<SYMBOL_END>() {
        Some(start) if start[0] != IexMessageType::SystemEvent.letter() => {
            Some(ItchText(chunk::<PREFIX_BYTES, 8, SYMBOL_END>(start)))
        }
        _ => None,
    }
}

impl IexMessage<'_> {
    /// Returns the first byte.
    #[inline]
    #[must_use]
    pub fn letter(&self) -> u8 {
        self.bytes().first().copied().unwrap_or_default()
    }

    /// Returns the type; `None` for an unknown type.
    #[inline]
    #[must_use]
    pub fn kind(&self) -> Option<IexMessageType> {
        IexMessageType::of(self.letter())
    }

    /// Returns the time of the event, ns since 1970 in UTC; `None` only for a message of unknown type.
    #[inline]
    #[must_use]
    pub fn ts_ns(&self) -> Option<u64> {
        match self {
            Self::Unknown(_) => None,
            known => known.bytes().get(2..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)),
        }
    }

    /// Returns the symbol of the message; `None` for system events and unknown types.
    #[inline]
    #[must_use]
    pub fn symbol(&self) -> Option<Symbol> {
        match self {
            Self::Unknown(_) => None,
            known => symbol(known.bytes()),
        }
    }

    /// Returns the number of bytes of `received`, the decoded bytes, after the known fields: a newer edition of the specification may have added
    /// some.
    #[inline]
    #[must_use]
    pub const fn extra_bytes(&self, received: &[u8]) -> usize {
        received.len().saturating_sub(self.bytes().len())
    }
}
