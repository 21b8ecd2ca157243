//! The books by locate.

use super::apply::Broken;
use super::ladder::{self, Ladder, MOST_ORDERS, Means};
use super::matches::Matches;
use super::orders::StoredOrders;
use super::queues::{Queues, Rows};
use super::{BookLevel, Top, Volume};
use crate::itch::{ByType, Code, Decoder, ItchText, Locate, OrderRef, Price4, Side, Symbol};

/// The limits and options of the books.
///
/// Memory, allocated on demand. An order: 16 bytes in pages of 16 KiB with capacity for at most four times `max_orders` (so 64 bytes for each of
/// those), and 53 to 107 bytes in the hash table of the others; 16 more with queues. A level: 8 bytes among the 1,024 of a side with rungs (8.2
/// KiB, 16.2 with queues, for `max_ladders` of them), 24 to 96 elsewhere. A stock: 256 bytes, for at most 65,536 of them. Trades that may be
/// broken: 2 MB. [`Books::bytes`] returns the present total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookSettings {
    /// Maximum number of orders on all books, at most 16 million. At the limit a new order is counted and ignored.
    pub max_orders: usize,
    /// Number of orders for which memory is reserved at the start.
    pub reserve_orders: usize,
    /// Maximum number of sides with rungs. Sides beyond the limit have none, which is slower and has no other effect.
    pub max_ladders: usize,
    /// Maximum number of levels of a side outside its rungs. At the limit an order at a further price is counted and ignored.
    pub max_far_levels: usize,
    /// `true` to store the orders of a level in order of arrival ([`Books::queue`], [`Books::ahead`]).
    pub queues: bool,
}

impl Default for BookSettings {
    /// Four million orders at most: twice what published statistics of busy days show (1.9 million). Rungs for 16,384
    /// stocks, of which there are about half as many. No queues.
    fn default() -> Self {
        Self {
            max_orders: 4_000_000,
            reserve_orders: 65_536,
            max_ladders: 32_768,
            max_far_levels: 16_384,
            queues: false,
        }
    }
}

/// The counters of messages that could not be applied, and maxima.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BookCounters {
    /// Messages that name an order which is not on the book.
    pub unknown_reference: ByType,
    /// Messages that add an existing order. A replacement still deletes the old one.
    pub duplicate_reference: ByType,
    /// Messages that take more shares from an order than it has: all its shares are taken.
    pub excess_shares: ByType,
    /// New orders of neither side.
    pub unknown_side: ByType,
    /// Orders and trades of zero shares. A replacement still deletes the old order.
    pub no_shares: ByType,
    /// New orders beyond [`BookSettings::max_orders`] or [`BookSettings::max_far_levels`], or at a price with a million million shares. A replacement still
    /// deletes the old order.
    pub refused: ByType,
    /// Messages whose locate is not that of their order. The locate of the order applies.
    pub other_locate: ByType,
    /// Messages about a stock before its directory entry.
    pub before_directory: ByType,
    /// Directory entries that assign another symbol to a stock's number.
    pub renamed: u64,
    /// Broken trades with an unknown match number: their volume stays.
    pub unknown_match: u64,
    /// Maximum number of orders on the books at once.
    pub max_live_orders: usize,
}

/// Memory in bytes by purpose, spare capacity included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Stocks: names, states, volumes, and the best of each side.
    pub stocks: usize,
    /// Price levels.
    pub levels: usize,
    /// Orders by their references.
    pub orders: usize,
    /// Queues of orders, with [`BookSettings::queues`].
    pub queues: usize,
    /// Trades that may still be broken.
    pub trades: usize,
}

/// All books of a feed.
#[derive(Debug)]
pub struct Books {
    pub(super) books: Vec<Book>,
    pub(super) orders: StoredOrders,
    pub(super) queues: Option<Queues>,
    pub(super) means: Means,
    pub(super) matches: Matches,
    pub(super) broken: Broken,
    /// Stored separately: 18 KiB, of which a typical message touches one cache line.
    pub(super) counters: Box<BookCounters>,
    pub(super) decoder: Decoder,
    settings: BookSettings,
}

/// The book of one stock.
#[derive(Debug)]
#[repr(C)]
pub struct Book {
    /// Bids and asks, one cache line each.
    pub(super) sides: [Ladder; 2],
    pub(super) symbol: Symbol,
    pub(super) met: bool,
    pub(super) listed: bool,
    pub(super) halted: bool,
    pub(super) state: Code,
    pub(super) reason: ItchText<4>,
    /// [`NEVER`] before the first quote.
    pub(super) quoted_ts_ns: u64,
    pub(super) volume: Volume,
}

/// No time of day.
pub(super) const NEVER: u64 = u64::MAX;

/// An order on the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resting {
    /// The locate of its book.
    pub locate: Locate,
    /// Its side.
    pub side: Side,
    /// Its price.
    pub price: Price4,
    /// Its shares.
    pub shares: u32,
}

/// The executions before an order's turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// Earlier orders at the same price.
    pub orders: u32,
    /// Their shares.
    pub shares: u64,
}

impl Books {
    /// Creates empty books.
    #[must_use]
    pub fn new(settings: BookSettings) -> Self {
        let max_orders = settings.max_orders.min(MOST_ORDERS);
        let reserve = settings.reserve_orders.min(max_orders);
        Self {
            books: Vec::new(),
            orders: StoredOrders::new(max_orders, reserve),
            queues: settings.queues.then(|| Queues::new(reserve)),
            means: Means::new(settings.max_ladders, settings.max_far_levels, settings.queues),
            matches: Matches::new(),
            broken: Broken::default(),
            counters: Box::default(),
            decoder: Decoder::new(),
            settings,
        }
    }

    /// Returns the book of a stock; `None` for one without messages.
    #[must_use]
    pub fn book(&self, locate: Locate) -> Option<&Book> {
        self.books.get(usize::from(locate.0)).filter(|book| book.met)
    }

    /// Returns every book with messages, by locate.
    pub fn iter(&self) -> impl Iterator<Item = (Locate, &Book)> {
        (0..=u16::MAX).map(Locate).zip(&self.books).filter(|(_, book)| book.met)
    }

    /// Returns the number of orders on all books.
    #[must_use]
    pub fn live_orders(&self) -> usize {
        self.orders.len()
    }

    /// Returns the last broken trade.
    #[must_use]
    pub const fn broken(&self) -> Broken {
        self.broken
    }

    /// Returns the counters.
    #[must_use]
    pub fn counters(&self) -> &BookCounters {
        &self.counters
    }

    /// Returns the order of a reference.
    #[must_use]
    pub fn order(&self, reference: OrderRef) -> Option<Resting> {
        let order = self.orders.order(reference.0)?;
        Some(Resting {
            locate: Locate(order.locate),
            side: order.side(),
            price: Price4(order.price),
            shares: order.shares,
        })
    }

    /// Returns the orders of a level with their shares, in queue order; none without [`BookSettings::queues`].
    pub fn queue(
        &self,
        locate: Locate,
        side: Side,
        price: Price4,
    ) -> impl Iterator<Item = (OrderRef, u32)> + '_ {
        let rank = ladder::rank(price.0, side);
        let queue = self.book(locate).zip(self.means.rows.as_ref());
        let queue = queue.and_then(|(book, rows)| book.sides[side as usize].queue(rank, rows));
        self.queues.iter().flat_map(move |queues| queues.iter(queue)).map(|reference| self.in_line(reference))
    }

    /// Returns the orders before an order in its queue; `None` for an unknown order, or without [`BookSettings::queues`]. Walks along
    /// the queue.
    #[must_use]
    pub fn ahead(&self, reference: OrderRef) -> Option<Ahead> {
        let node = self.orders.order(reference.0)?.node;
        let before = self.queues.as_ref()?.before(node).map(|reference| self.in_line(reference));
        Some(before.fold(Ahead::default(), |ahead, (_, shares)| Ahead {
            orders: ahead.orders + 1,
            shares: ahead.shares + u64::from(shares),
        }))
    }

    fn in_line(&self, reference: u64) -> (OrderRef, u32) {
        (OrderRef(reference), self.orders.order(reference).map_or(0, |order| order.shares))
    }

    /// Returns the present memory of the books in bytes, which [`BookSettings`] bounds. Looks at every side.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let Memory { stocks, levels, orders, queues, trades } = self.memory();
        stocks + levels + orders + queues + trades
    }

    /// Returns the present memory of the books by purpose.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let sides = self.books.iter().flat_map(|book| &book.sides);
        let rows = self.means.rows.as_ref().map_or(0, Rows::bytes);
        Memory {
            stocks: self.books.capacity() * size_of::<Book>(),
            levels: sides.map(Ladder::bytes).sum::<usize>() + self.means.pieces.spare_bytes(),
            orders: self.orders.bytes(),
            queues: self.queues.as_ref().map_or(0, Queues::bytes) + rows,
            trades: self.matches.bytes(),
        }
    }

    /// Deletes all orders, names and volumes; the counters stay.
    pub fn clear(&mut self) {
        self.books.clear();
        self.orders.clear();
        self.queues.iter_mut().for_each(Queues::clear);
        let BookSettings { max_ladders, max_far_levels, queues, .. } = self.settings;
        self.means = Means::new(max_ladders, max_far_levels, queues);
        self.matches = Matches::new();
    }

    /// Returns the book of a stock, created if necessary. Locates have 16 bits, so their number is bounded.
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
    fn new() -> Self {
        Self {
            sides: [Ladder::new(), Ladder::new()],
            symbol: Symbol::BLANK,
            met: false,
            listed: false,
            halted: false,
            state: Code(0),
            reason: ItchText::BLANK,
            quoted_ts_ns: NEVER,
            volume: Volume::default(),
        }
    }

    /// Returns the stock's symbol, blank until a message contains it.
    #[must_use]
    pub fn symbol(&self) -> Symbol {
        self.symbol
    }

    /// Returns the symbol as text, empty until a message contains it.
    #[inline]
    #[must_use]
    pub fn name(&self) -> &str {
        self.symbol.as_str()
    }

    /// Returns `true` if the directory entry was received.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.listed
    }

    /// Returns the best quote of both sides.
    #[inline]
    #[must_use]
    pub fn top(&self) -> Top {
        Top { bid: self.sides[0].quote(Side::Bid), ask: self.sides[1].quote(Side::Ask) }
    }

    /// Returns the levels of a side, best first; `take(n)` gives the best `n`.
    pub fn levels(&self, side: Side) -> impl ExactSizeIterator<Item = BookLevel> + '_ {
        self.sides[side as usize].iter(side)
    }

    /// Returns the total shares of a side.
    #[must_use]
    pub fn shares(&self, side: Side) -> u64 {
        self.levels(side).map(|level| level.shares).sum()
    }

    /// Returns the time of the last change of the best bid or ask, ns since midnight in New York.
    #[must_use]
    pub fn quoted_ts_ns(&self) -> Option<u64> {
        (self.quoted_ts_ns != NEVER).then_some(self.quoted_ts_ns)
    }

    /// Returns the traded volume.
    #[must_use]
    pub fn volume(&self) -> &Volume {
        &self.volume
    }

    /// Returns the last received state: `H` halted, `P` paused, `Q` quotation only, `T` trading; code 0 before the first.
    #[must_use]
    pub fn trading_state(&self) -> Code {
        self.state
    }

    /// Returns `true` if NASDAQ has interrupted its service for the stock (`h`): then the stock does not trade there in any state.
    #[must_use]
    pub fn is_operationally_halted(&self) -> bool {
        self.halted
    }

    /// Returns the reason of the trading state.
    #[must_use]
    pub fn reason(&self) -> ItchText<4> {
        self.reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_book_has_the_size_that_is_stated() {
        assert_eq!(size_of::<Book>(), 256);
    }
}
