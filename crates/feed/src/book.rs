//! Order by order books of all symbols.
//!
//! A book is the exchange's displayed book, rebuilt from its messages; nothing is matched. Rules: the displayed size of
//! an order is the added size less executions and cancellations, and the order is deleted at 0; a replacement deletes the old order
//! and adds a new one of the same side and stock; hidden trades and crosses do not affect the book. Source: NASDAQ
//! TotalView-ITCH 5.0, sections 1.3 to 1.5. Prices are integers of four decimals. A crossed book is stored as it is.
//!
//! A broken trade is subtracted from its stock's sums if it is among the last 65,536 by match number. The price of the
//! last trade stays, because no message contains the previous one. A stock that NASDAQ itself has halted for operational
//! reasons is halted in any trading state.
//!
//! Impossible messages are counted by type and ignored: an order reference that is not on the book (a replacement of one adds
//! nothing: its side is unknown), one that already exists, a side that is neither `B` nor `S`. An execution or
//! cancellation of more than the remaining shares takes those, and is counted.

mod apply;
mod books;
mod ladder;
mod matches;
mod orders;
mod queues;
mod volume;

pub use apply::{Broken, Change, Print, PrintKind};
pub use books::{Ahead, Book, BookCounters, BookSettings, Books, Memory, Resting};
pub use ladder::BookLevel;
pub use volume::{LastTrade, Volume};

use crate::itch::Price4;

/// The best price of a side and the shares at that price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quote {
    /// Price.
    pub price: Price4,
    /// Total shares of the orders at that price.
    pub shares: u64,
}

/// The best quote of both sides; `None` for an empty side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Top {
    /// Highest bid.
    pub bid: Option<Quote>,
    /// Lowest ask.
    pub ask: Option<Quote>,
}
