//! Order by order books of all symbols.
//!
//! A book here is what the exchange shows, rebuilt from its messages; nothing is matched. Rules: the displayed size of
//! an order is what was added less what was executed and cancelled, and at 0 it is gone; a replacement deletes the old order
//! and adds a new one of the same side and stock; hidden trades and crosses do not touch the book. Source: NASDAQ
//! TotalView-ITCH 5.0, sections 1.3 to 1.5. Prices are integers of four decimals. A crossed book is kept as it is.
//!
//! A broken trade is taken out of its stock's sums again where it is among the last 65,536 by match number; the price of the
//! last trade stays, since nothing says what it was before. A stock that NASDAQ itself has halted for operational
//! reasons is halted, whatever its trading state.
//!
//! What cannot be right is counted by type and ignored: an order reference that is not on the book (a replacement of one adds
//! nothing: its side is unknown), one that is there already, a side that is neither `B` nor `S`. Executing or
//! cancelling more than is left takes what is left, and is counted.

mod apply;
mod books;
mod ladder;
mod matches;
mod orders;
mod queues;
mod volume;

pub use apply::{Broken, Change, Print, PrintKind};
pub use books::{Ahead, Book, Books, Counters, Memory, Resting, Settings};
pub use ladder::Level;
pub use volume::{LastTrade, Volume};

use crate::itch::Price4;

/// The best price of a side and the shares that are offered at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quote {
    /// Price.
    pub price: Price4,
    /// Shares of all orders at that price.
    pub shares: u64,
}

/// The best of both sides; `None` where a side is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Top {
    /// Highest bid.
    pub bid: Option<Quote>,
    /// Lowest ask.
    pub ask: Option<Quote>,
}
