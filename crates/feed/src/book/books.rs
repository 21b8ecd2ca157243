//! The books by locate.

use super::{Level, Top, Volume};
use crate::itch::{ByType, Code, Locate, Side, Symbol, Text};

/// Bounds of the books.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Orders that can be on all books together. At the limit a new order is counted and left out.
    pub max_orders: usize,
    /// Orders for which room is made at the start.
    pub reserve_orders: usize,
}

impl Default for Settings {
    /// Four million orders at most: twice what the busiest days have shown.
    fn default() -> Self {
        Self { max_orders: 4_000_000, reserve_orders: 65_536 }
    }
}

/// What could not be applied, and how much there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages that name an order which is not on the book.
    pub unknown_reference: ByType,
    /// Messages that add an order which is there already.
    pub duplicate_reference: ByType,
    /// Messages that take more shares from an order than it has.
    pub excess_shares: ByType,
    /// New orders of neither side.
    pub unknown_side: ByType,
    /// New orders of no shares.
    pub no_shares: ByType,
    /// New orders beyond [`Settings::max_orders`].
    pub refused: ByType,
    /// Messages whose locate is not that of the order they name. The order's is taken.
    pub other_locate: ByType,
    /// The most orders that were on the books at once.
    pub max_live_orders: usize,
}

/// All books of a feed.
#[derive(Debug)]
pub struct Books {
    books: Vec<Book>,
    counters: Counters,
}

/// The book of one stock.
#[derive(Clone, Debug, Default)]
pub struct Book {
    symbol: Symbol,
    state: Code,
    reason: Text<4>,
    volume: Volume,
}

impl Books {
    /// Empty books.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let _ = settings;
        Self { books: Vec::new(), counters: Counters::default() }
    }

    /// The book of a stock; `None` for one that no message has been about.
    #[must_use]
    pub fn book(&self, locate: Locate) -> Option<&Book> {
        self.books.get(usize::from(locate.0))
    }

    /// Every book that a message has been about, by locate.
    pub fn iter(&self) -> impl Iterator<Item = (Locate, &Book)> {
        (0..=u16::MAX).map(Locate).zip(&self.books)
    }

    /// Orders on all books.
    #[must_use]
    pub fn live_orders(&self) -> usize {
        0
    }

    /// What could not be applied.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Forgets all orders, names and volumes; the counters stay.
    pub fn clear(&mut self) {
        self.books.clear();
    }
}

impl Book {
    /// The stock's symbol, blank while no message has told it.
    #[must_use]
    pub fn symbol(&self) -> Symbol {
        self.symbol
    }

    /// The best of both sides.
    #[must_use]
    pub fn top(&self) -> Top {
        Top::default()
    }

    /// The levels of a side, best first.
    pub fn levels(&self, side: Side) -> impl ExactSizeIterator<Item = Level> + '_ {
        let _ = side;
        std::iter::empty()
    }

    /// Shares of all orders of a side.
    #[must_use]
    pub fn shares(&self, side: Side) -> u64 {
        self.levels(side).map(|level| level.shares).sum()
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
