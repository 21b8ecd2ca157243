//! IEX's feeds: TOPS 1.6 (best quotes and trades) and DEEP 1.0 (price levels and trades) in IEX-TP.
//!
//! Sources: IEX TOPS Specification 1.6 and IEX DEEP Specification 1.0 (message formats), IEX Transport Specification 1 ([`tp`]). Numbers are
//! little-endian, text is ASCII, left-justified, padded with spaces. Every message begins with the same ten bytes: type, a flag or code,
//! nanoseconds since 1970 in UTC. The symbol follows, except in system events.
//!
//! The two protocols share nine types, byte for byte, and the letters of the others do not collide, so one [`decode`] and one kind of [`IexBooks`]
//! serve both. Additions of a later edition are no error: a longer message keeps its known fields, an unknown type is [`IexMessage::Unknown`], an
//! unknown code is passed on unchanged.

mod books;
pub mod encode;
mod field;
mod ladder;
mod listing;
mod message;
mod message_type;
mod stream;
mod summary;
mod table;
pub mod tp;
mod volume;

pub use books::{IexBook, IexBooks, IexChange, IexCounters, IexInstrument, IexQuote, IexSettings, IexTop};
pub use field::IexPrice;
pub use ladder::IexLevel;
pub use listing::{Directory, IexAuction, Listing};
pub use message::*;
pub use message_type::IexMessageType;
pub use stream::{Epoch, Stream};
pub use summary::{IexSummary, MessageCounts, PerSymbol};
pub use volume::{IexLastTrade, IexVolume};

/// The reason why bytes are not a message of IEX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum MalformedIexMessage {
    /// The message has no bytes, so no type.
    #[error("an empty message")]
    Empty,
    /// The message is shorter than its type.
    #[error("message type {} ({}) has {} bytes, {length} received", *kind as u8 as char, kind.name(), kind.length())]
    Short {
        /// The type.
        kind: IexMessageType,
        /// Bytes received.
        length: usize,
    },
}

impl MalformedIexMessage {
    /// The labels of all reasons, in the order of [`index`](Self::index).
    pub const REASONS: [&str; 2] = ["empty-message", "short-message"];

    /// Returns a dense number for an array of counters.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Short { .. } => 1,
        }
    }

    /// Returns a stable label for reports and counters.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        Self::REASONS[self.index()]
    }
}
