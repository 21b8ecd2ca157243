//! The books by locate.

use super::ladder::Ladder;
use super::orders::Orders;
use super::{Level, Top, Volume};
use crate::itch::{ByType, Code, Locate, Side, Symbol, Text};

/// Bounds of the books.
///
/// Memory: about 50 bytes for each order that the table has room for (at its limit, and half as much again while it
/// grows), 16 bytes a price level, and under 300 bytes for each of at most 65,536 stocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Orders that can be on all books together. At the limit a new order is counted and left out.
    pub max_orders: usize,
    /// Orders for which room is made at the start.
    pub reserve_orders: usize,
}

impl Default for Settings {
    /// Four million orders at most: twice what published statistics of busy days show (1.9 million).
    fn default() -> Self {
        Self { max_orders: 4_000_000, reserve_orders: 65_536 }
    }
}

/// What could not be applied, and how much there was at most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages that name an order which is not on the book.
    pub unknown_reference: ByType,
    /// Messages that add an order which is there already. A replacement still deletes the old one.
    pub duplicate_reference: ByType,
    /// Messages that take more shares from an order than it has: what it has is taken.
    pub excess_shares: ByType,
    /// New orders of neither side.
    pub unknown_side: ByType,
    /// Orders and trades of no shares. A replacement still deletes the old order.
    pub no_shares: ByType,
    /// New orders beyond [`Settings::max_orders`].
    pub refused: ByType,
    /// Messages whose locate is not that of the order they name. The order's is taken.
    pub other_locate: ByType,
    /// Messages about a stock before its directory entry.
    pub before_directory: ByType,
    /// Directory entries that give a stock's number another symbol than it had.
    pub renamed: u64,
    /// The most orders that were on the books at once.
    pub max_live_orders: usize,
}

/// All books of a feed.
#[derive(Debug)]
pub struct Books {
    pub(super) books: Vec<Book>,
    pub(super) orders: Orders,
    pub(super) counters: Counters,
}

/// The book of one stock.
#[derive(Clone, Debug)]
pub struct Book {
    pub(super) symbol: Symbol,
    pub(super) met: bool,
    pub(super) listed: bool,
    pub(super) state: Code,
    pub(super) reason: Text<4>,
    pub(super) bids: Ladder,
    pub(super) asks: Ladder,
    pub(super) quoted_ts_ns: Option<u64>,
    pub(super) volume: Volume,
}

impl Books {
    /// Empty books.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let orders = Orders::new(settings.max_orders, settings.reserve_orders);
        Self { books: Vec::new(), orders, counters: Counters::default() }
    }

    /// The book of a stock; `None` for one that no message has been about.
    #[must_use]
    pub fn book(&self, locate: Locate) -> Option<&Book> {
        self.books.get(usize::from(locate.0)).filter(|book| book.met)
    }

    /// Every book that a message has been about, by locate.
    pub fn iter(&self) -> impl Iterator<Item = (Locate, &Book)> {
        (0..=u16::MAX).map(Locate).zip(&self.books).filter(|(_, book)| book.met)
    }

    /// Orders on all books.
    #[must_use]
    pub fn live_orders(&self) -> usize {
        self.orders.len()
    }

    /// What could not be applied.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Forgets all orders, names and volumes; the counters stay.
    pub fn clear(&mut self) {
        self.books.clear();
        self.orders.clear();
    }

    /// The book of a stock, made if need be. Locates are 16 bits wide, so there is an end to it.
    #[inline]
    pub(super) fn open(&mut self, locate: Locate) -> &mut Book {
        let at = usize::from(locate.0);
        if at >= self.books.len() {
            self.books.resize_with(at + 1, Book::new);
        }
        let book = &mut self.books[at];
        book.met = true;
        book
    }
}

impl Book {
    const fn new() -> Self {
        Self {
            symbol: Symbol::BLANK,
            met: false,
            listed: false,
            state: Code(0),
            reason: Text::BLANK,
            bids: Ladder::new(Side::Bid),
            asks: Ladder::new(Side::Ask),
            quoted_ts_ns: None,
            volume: Volume {
                traded_shares: 0,
                hidden_shares: 0,
                cross_shares: 0,
                nonprintable_shares: 0,
                trades: 0,
                notional: 0,
                last: None,
            },
        }
    }

    /// The stock's symbol, blank while no message has told it.
    #[must_use]
    pub fn symbol(&self) -> Symbol {
        self.symbol
    }

    /// The symbol as text, empty while no message has told it.
    #[inline]
    #[must_use]
    pub fn name(&self) -> &str {
        self.symbol.as_str()
    }

    /// Whether its directory entry has come.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.listed
    }

    /// The best of both sides.
    #[inline]
    #[must_use]
    pub fn top(&self) -> Top {
        Top { bid: self.bids.best(), ask: self.asks.best() }
    }

    /// The levels of a side, best first; `take(n)` gives the best `n`.
    pub fn levels(&self, side: Side) -> impl ExactSizeIterator<Item = Level> + '_ {
        match side {
            Side::Bid => &self.bids,
            Side::Ask => &self.asks,
        }
        .iter()
    }

    /// Shares of all orders of a side.
    #[must_use]
    pub fn shares(&self, side: Side) -> u64 {
        self.levels(side).map(|level| level.shares).sum()
    }

    /// When the best bid or ask last changed, ns since midnight in New York.
    #[must_use]
    pub fn quoted_ts_ns(&self) -> Option<u64> {
        self.quoted_ts_ns
    }

    /// What was traded.
    #[must_use]
    pub fn volume(&self) -> &Volume {
        &self.volume
    }

    /// `H` halted, `P` paused, `Q` quotation only, `T` trading, as last received; code 0 before that.
    #[must_use]
    pub fn trading_state(&self) -> Code {
        self.state
    }

    /// Why it is in that state.
    #[must_use]
    pub fn reason(&self) -> Text<4> {
        self.reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_book_has_the_size_that_is_stated() {
        assert!(size_of::<Book>() < 300, "{}", size_of::<Book>());
    }
}
