//! The views: one for each kind of message, with all fields at their fixed offsets.

use super::table::iex_messages;
use super::{IexMessageType, IexPrice, MalformedIexMessage};
use crate::itch::{Code, ItchText, Side, Symbol};
use crate::wire::{chunk, views};

/// The size of the prefix of every message in bytes: type, flag or code, time.
pub const PREFIX_BYTES: usize = 10;

/// Offset after the symbol, which every message except a system event has.
const SYMBOL_END: usize = PREFIX_BYTES + 8;

#[inline(always)]
fn ts_ns<const L: usize>(message: &[u8; L]) -> u64 {
    u64::from_le_bytes(chunk::<2, 8, L>(message))
}

iex_messages! { views { IexMessage, IexMessageType, MalformedIexMessage, LITTLE, {
    /// Returns the time of the event, ns since 1970 in UTC.
    #[inline(always)]
    #[must_use]
    pub fn ts_ns(self) -> u64 {
        ts_ns(self.0)
    }

    fn show_prefix(self, shown: &mut std::fmt::DebugStruct<'_, '_>) {
        shown.field("letter", &char::from(self.0[0])).field("ts_ns", &self.ts_ns());
    }
} } }

impl PriceLevel<'_> {
    /// Returns the side, from the type's letter.
    #[inline(always)]
    #[must_use]
    pub fn side(self) -> Side {
        if self.0[0] == IexMessageType::BuyLevel.letter() { Side::Bid } else { Side::Ask }
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
}
