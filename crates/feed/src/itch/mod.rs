//! NASDAQ TotalView-ITCH 5.0: messages as views over the received bytes.
//!
//! Source: NASDAQ TotalView-ITCH 5.0 specification, and its later addition of type `O`. All numbers are big-endian
//! and unsigned, text is ASCII, left-justified, padded with spaces. Every message begins with the same eleven bytes:
//! type, stock locate, tracking number, nanoseconds since midnight in New York (there is no date on the wire).
//!
//! [`decode`] looks at the type and checks the length once; after that a view's accessors read fixed places of a
//! fixed-size array, so they need no check. What the specification may add later is no error: a longer message keeps
//! its known fields, an unknown type is [`Message::Unknown`], an unknown code comes out as it is.

pub mod encode;
pub(crate) mod field;
pub mod framing;
mod message;
mod message_type;
mod record;

pub use field::{Code, Locate, MatchNumber, Mpid, OrderRef, Price4, Price8, Side, Symbol, Text};
pub use message::*;
pub use message_type::{ByType, Kind, MessageType};
pub use record::{Decoder, RECORD_BYTES, Record};
pub(crate) use record::{ROWS, Row};

/// Why bytes are not an ITCH message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// No byte, so not even a type.
    #[error("an empty message")]
    Empty,
    /// Fewer bytes than the type has.
    #[error("message type {} ({}) has {} bytes, {length} received", *kind as u8 as char, kind.name(), kind.length())]
    Short {
        /// The type.
        kind: MessageType,
        /// Bytes received.
        length: usize,
    },
}

impl Malformed {
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
