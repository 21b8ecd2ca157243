//! The views: one for each type of message, with all fields at their fixed offsets.

use super::table::itch_messages;
use super::{
    Code, ItchText, Locate, MalformedItchMessage, MatchNumber, MessageKind, MessageType, Mpid, OrderRef,
    Price4, Price8, Symbol,
};
use crate::wire::{BIG, Wire, chunk, views};

/// The size of the prefix of every message in bytes: type, locate, tracking number, time.
pub const PREFIX_BYTES: usize = 11;

#[inline(always)]
fn locate<const L: usize>(message: &[u8; L]) -> Locate {
    Locate::read::<BIG>(chunk::<1, 2, L>(message))
}

#[inline(always)]
fn tracking<const L: usize>(message: &[u8; L]) -> u16 {
    u16::read::<BIG>(chunk::<3, 2, L>(message))
}

/// Returns the time of a message in ns since midnight: six bytes, read as the lower part of the eight bytes that end with them.
#[inline(always)]
fn ts_ns<const L: usize>(message: &[u8; L]) -> u64 {
    u64::from_be_bytes(chunk::<3, 8, L>(message)) & 0x0000_FFFF_FFFF_FFFF
}

itch_messages! { views { Message, MessageType, MalformedItchMessage, BIG, {
    /// Returns the day's number of the stock; 0 for a message about no stock.
    #[inline(always)]
    #[must_use]
    pub fn locate(self) -> Locate {
        locate(self.0)
    }

    /// Returns NASDAQ's internal tracking number.
    #[inline(always)]
    #[must_use]
    pub fn tracking(self) -> u16 {
        tracking(self.0)
    }

    /// Returns the time of the message, ns since midnight in New York.
    #[inline(always)]
    #[must_use]
    pub fn ts_ns(self) -> u64 {
        ts_ns(self.0)
    }

    fn show_prefix(self, shown: &mut std::fmt::DebugStruct<'_, '_>) {
        shown.field("locate", &self.locate().0).field("tracking", &self.tracking()).field("ts_ns", &self.ts_ns());
    }
} } }

impl Message<'_> {
    /// Returns the message's type.
    #[inline]
    #[must_use]
    pub fn kind(self) -> MessageKind {
        self.letter().into()
    }

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
            _ => return None,
        })
    }

    /// Returns the prefix; `None` only for a message of unknown type that is shorter than a prefix.
    #[inline]
    #[must_use]
    pub fn prefix(&self) -> Option<Prefix> {
        let start: &[u8; PREFIX_BYTES] = self.bytes().first_chunk()?;
        Some(Prefix { locate: locate(start), tracking: tracking(start), ts_ns: ts_ns(start) })
    }
}

/// The prefix of a message, without its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The day's number of the stock; 0 for a message about no stock.
    pub locate: Locate,
    /// NASDAQ's internal tracking number.
    pub tracking: u16,
    /// The time of the message, ns since midnight in New York.
    pub ts_ns: u64,
}
