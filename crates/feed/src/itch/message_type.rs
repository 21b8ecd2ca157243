//! The types of messages: their letters, names and lengths.

use std::fmt;

macro_rules! message_types {
    ($($(#[$about:meta])* $name:ident $letter:literal $length:literal $label:literal;)*) => {
        /// A type of message of ITCH 5.0.
        #[repr(u8)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum MessageType {
            $($(#[$about])* $name = $letter,)*
        }

        impl MessageType {
            /// Every type, in the specification's order.
            pub const ALL: [Self; 23] = [$(Self::$name),*];

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
    /// `S`: start or end of messages, system hours or market hours.
    SystemEvent b'S' 12 "system event";
    /// `R`: a stock and its properties, before trading starts.
    StockDirectory b'R' 39 "stock directory";
    /// `H`: a stock is halted, paused, quoted only, or trading.
    TradingAction b'H' 25 "stock trading action";
    /// `Y`: short-sale restriction.
    RegSho b'Y' 20 "Reg SHO restriction";
    /// `L`: the state of a market participant in a stock.
    ParticipantPosition b'L' 26 "market participant position";
    /// `V`: levels of the market-wide circuit breaker.
    BreakerLevels b'V' 35 "circuit breaker levels";
    /// `W`: a level of the market-wide circuit breaker was breached.
    BreakerStatus b'W' 12 "circuit breaker status";
    /// `K`: start of quoting of a new issue.
    IpoQuoting b'K' 28 "IPO quoting period";
    /// `J`: price collars of a limit-up limit-down auction.
    AuctionCollar b'J' 35 "LULD auction collar";
    /// `h`: a market's interruption of service for a stock.
    OperationalHalt b'h' 21 "operational halt";
    /// `A`: a new order on the book, no attribution.
    AddOrder b'A' 36 "add order";
    /// `F`: a new order on the book with its participant.
    AddOrderAttributed b'F' 40 "add order with attribution";
    /// `E`: shares of a resting order were executed at its price.
    OrderExecuted b'E' 31 "order executed";
    /// `C`: shares of a resting order were executed at another price.
    OrderExecutedWithPrice b'C' 36 "order executed with price";
    /// `X`: some shares of a resting order were cancelled.
    OrderCancel b'X' 23 "order cancel";
    /// `D`: an order left the book.
    OrderDelete b'D' 19 "order delete";
    /// `U`: an order was replaced by a new one of the same side and stock.
    OrderReplace b'U' 35 "order replace";
    /// `P`: a trade against an order that was not displayed.
    Trade b'P' 44 "trade";
    /// `Q`: the bulk print of an auction.
    CrossTrade b'Q' 40 "cross trade";
    /// `B`: a trade was broken.
    BrokenTrade b'B' 19 "broken trade";
    /// `I`: state of an auction before it takes place.
    NetOrderImbalance b'I' 50 "net order imbalance";
    /// `N`: interest of the retail price improvement programme.
    RetailInterest b'N' 20 "retail interest";
    /// `O`: a direct listing with a capital raise; not in the document of 2018.
    DirectListing b'O' 48 "direct listing";
}

impl MessageType {
    /// Returns `true` if messages of this type contain a stock's symbol.
    #[inline]
    #[must_use]
    pub const fn has_stock(self) -> bool {
        use MessageType as T;
        !matches!(
            self,
            T::SystemEvent
                | T::BreakerLevels
                | T::BreakerStatus
                | T::OrderExecuted
                | T::OrderExecutedWithPrice
                | T::OrderCancel
                | T::OrderDelete
                | T::OrderReplace
                | T::BrokenTrade
        )
    }

    /// Returns the type's letter on the wire.
    #[inline]
    #[must_use]
    pub const fn letter(self) -> u8 {
        self as u8
    }
}

impl fmt::Display for MessageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The type of a message, known or unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageKind {
    /// A type of ITCH 5.0.
    Known(MessageType),
    /// The first byte of a message of unknown type.
    Unknown(u8),
}

impl MessageKind {
    /// Returns the type; `None` for an unknown type.
    #[inline]
    #[must_use]
    pub const fn known(self) -> Option<MessageType> {
        match self {
            Self::Known(kind) => Some(kind),
            Self::Unknown(_) => None,
        }
    }

    /// Returns the first byte of the message.
    #[inline]
    #[must_use]
    pub const fn letter(self) -> u8 {
        match self {
            Self::Known(kind) => kind.letter(),
            Self::Unknown(letter) => letter,
        }
    }
}

impl From<u8> for MessageKind {
    fn from(letter: u8) -> Self {
        MessageType::of(letter).map_or(Self::Unknown(letter), Self::Known)
    }
}

/// Counters of messages by their first byte, known or not.
#[derive(Clone, PartialEq, Eq)]
pub struct ByType([u64; 256]);

impl ByType {
    /// Creates counters that are all zero.
    #[must_use]
    pub const fn new() -> Self {
        Self([0; 256])
    }

    /// Counts one message that begins with `letter`.
    #[inline]
    pub fn count(&mut self, letter: u8) {
        self.0[usize::from(letter)] += 1;
    }

    /// Returns the number of messages that began with `letter`.
    #[inline]
    #[must_use]
    pub const fn of(&self, letter: u8) -> u64 {
        self.0[letter as usize]
    }

    /// Returns the number of all messages.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the letters that occurred with their counts, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (MessageKind, u64)> + '_ {
        (0..=u8::MAX)
            .zip(&self.0)
            .filter(|(_, count)| **count > 0)
            .map(|(letter, count)| (letter.into(), *count))
    }
}

impl Default for ByType {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ByType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(kind, count)| (char::from(kind.letter()), count))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_types_are_one_to_one() {
        for kind in MessageType::ALL {
            assert_eq!(MessageType::of(kind.letter()), Some(kind));
            assert_eq!(super::super::encode::length(kind.letter()), Some(kind.length()), "{kind}");
        }
        assert_eq!((0..=u8::MAX).filter_map(MessageType::of).count(), MessageType::ALL.len());
    }

    #[test]
    fn counters_list_what_occurred() {
        let mut counters = ByType::new();
        counters.count(b'A');
        counters.count(b'A');
        counters.count(b'z');
        let listed: Vec<_> = counters.iter().collect();
        assert_eq!(listed, [(MessageKind::Known(MessageType::AddOrder), 2), (MessageKind::Unknown(b'z'), 1)]);
        assert_eq!((counters.total(), counters.of(b'D')), (3, 0));
        assert_eq!(format!("{counters:?}"), "{'A': 2, 'z': 1}");
    }
}
