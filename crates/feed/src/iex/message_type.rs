//! The types of messages: their letters, names and lengths.

use std::fmt;

macro_rules! message_types {
    ($($(#[$about:meta])* $name:ident $letter:literal $length:literal $label:literal;)*) => {
        /// A type of message of TOPS 1.6 or DEEP 1.0.
        #[repr(u8)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum IexMessageType {
            $($(#[$about])* $name = $letter,)*
        }

        impl IexMessageType {
            /// Every type.
            pub const ALL: [Self; 14] = [$(Self::$name),*];

            /// Returns the type of a letter; `None` for an unknown letter.
            #[inline]
            #[must_use]
            pub const fn of(letter: u8) -> Option<Self> {
                match letter {
                    $($letter => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// Returns the size of a message of this type in bytes, without framing.
            #[inline]
            #[must_use]
            pub const fn length(self) -> usize {
                match self {
                    $(Self::$name => $length,)*
                }
            }

            /// Returns a short name of the type.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $label,)*
                }
            }
        }
    };
}

message_types! {
    /// `S`: start or end of messages, system hours or regular hours.
    SystemEvent b'S' 10 "system event";
    /// `D`: a security and its properties.
    SecurityDirectory b'D' 31 "security directory";
    /// `H`: a security is halted, paused, accepts orders, or trades.
    TradingStatus b'H' 22 "trading status";
    /// `O`: an operational halt of a security by IEX alone, or its end.
    OperationalHalt b'O' 18 "operational halt status";
    /// `P`: short-sale price test.
    ShortSale b'P' 19 "short-sale price test";
    /// `Q`: best bid and ask (TOPS).
    QuoteUpdate b'Q' 42 "quote update";
    /// `8`: the size at a price of the buy side (DEEP).
    BuyLevel b'8' 30 "price level update, buy";
    /// `5`: the size at a price of the sell side (DEEP).
    SellLevel b'5' 30 "price level update, sell";
    /// `T`: a trade.
    TradeReport b'T' 38 "trade report";
    /// `X`: official opening or closing price.
    OfficialPrice b'X' 26 "official price";
    /// `B`: a trade was broken.
    TradeBreak b'B' 38 "trade break";
    /// `A`: state of an auction before it takes place.
    AuctionInformation b'A' 80 "auction information";
    /// `E`: opening or closing process of a security is complete (DEEP).
    SecurityEvent b'E' 18 "security event";
    /// `I`: interest of retail orders; not in the first editions.
    RetailLiquidity b'I' 18 "retail liquidity indicator";
}

impl IexMessageType {
    /// Returns the type's letter on the wire.
    #[inline]
    #[must_use]
    pub const fn letter(self) -> u8 {
        self as u8
    }
}

impl fmt::Display for IexMessageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_types_are_one_to_one() {
        for kind in IexMessageType::ALL {
            assert_eq!(IexMessageType::of(kind.letter()), Some(kind));
            assert_eq!(super::super::encode::length(kind.letter()), Some(kind.length()), "{kind}");
        }
        assert_eq!((0..=u8::MAX).filter_map(IexMessageType::of).count(), IexMessageType::ALL.len());
    }
}
