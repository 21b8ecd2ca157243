//! IEX's feeds: TOPS 1.6 (best quotes and trades) and DEEP 1.0 (price levels and trades) in IEX-TP.
//!
//! Sources: IEX TOPS Specification 1.6 and IEX DEEP Specification 1.0 (message formats), IEX Transport Specification 1 ([`tp`]). Numbers are
//! little-endian, text is ASCII, left-justified, padded with spaces. Every message begins with the same ten bytes: type, a flag or code,
//! nanoseconds since 1970 in UTC. The symbol follows, except in system events.
//!
//! The two protocols share nine types, byte for byte, and the letters of the others do not collide, so one [`decode`] and one kind of [`IexBooks`]
//! serve both. Additions of a later edition are no error: a longer message keeps its known fields, an unknown type is [`IexMessage::Unknown`], an
//! unknown code is passed on unchanged.

mod ahead;
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
pub use message_type::{IexMessageType, MalformedIexMessage};
pub use stream::{Epoch, Stream};
pub use summary::{IexSummary, MessageCounts, PerSymbol};
pub use volume::{IexLastTrade, IexVolume};
