//! The simulator's own books: every live order in time priority. They determine the possible next messages, and serve as reference for books that
//! others build from the messages.

/// No slot: the end of a level's queue.
const NONE: u32 = u32::MAX;

/// A live order, 32 bytes so that two share a cache line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveOrder {
    pub(crate) reference: u64,
    pub(crate) price: u32,
    pub(crate) shares: u32,
    /// Neighbours in the queue of the level.
    next: u32,
    previous: u32,
    /// Position of this order in its symbol's list of live orders.
    place: u32,
    symbol: u16,
    pub(crate) side: BookSide,
}

/// A side of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum BookSide {
    Buy = 0,
    Sell = 1,
}

impl BookSide {
    pub(crate) fn letter(self) -> u8 {
        match self {
            Self::Buy => b'B',
            Self::Sell => b'S',
        }
    }

    pub(crate) fn opposite(self) -> Self {
        match self {
            Self::Buy => Self::Sell,
            Self::Sell => Self::Buy,
        }
    }

    /// Returns a rank of prices: the better price is larger on both sides.
    #[inline]
    fn rank(self, price: u32) -> u32 {
        match self {
            Self::Buy => price,
            Self::Sell => !price,
        }
    }
}

/// All orders of one side at one price.
#[derive(Clone, Copy, Debug)]
struct Level {
    rank: u32,
    orders: u32,
    shares: u64,
    first: u32,
    last: u32,
}

/// One symbol: levels of both sides with the best last, and its live orders, the oldest about first.
#[derive(Clone, Debug, Default)]
struct Symbol {
    levels: [Vec<Level>; 2],
    live: Vec<u32>,
}

/// Price and shares of the best level of a side.
pub(crate) type Best = Option<(u32, u64)>;

/// The books of all symbols, numbered from 0.
#[derive(Clone, Debug)]
pub(crate) struct SimulatedBooks {
    orders: Vec<LiveOrder>,
    free: Vec<u32>,
    symbols: Vec<Symbol>,
}

impl SimulatedBooks {
    pub(crate) fn new(symbols: u16) -> Self {
        Self { orders: Vec::new(), free: Vec::new(), symbols: vec![Symbol::default(); usize::from(symbols)] }
    }

    pub(crate) fn live_orders(&self) -> usize {
        self.orders.len() - self.free.len()
    }

    pub(crate) fn live_orders_of(&self, symbol: u16) -> u32 {
        self.symbols[usize::from(symbol)].live.len() as u32
    }

    pub(crate) fn levels(&self) -> usize {
        self.symbols.iter().flat_map(|symbol| &symbol.levels).map(Vec::len).sum()
    }

    #[inline]
    pub(crate) fn best(&self, symbol: u16, side: BookSide) -> Best {
        let level = self.symbols[usize::from(symbol)].levels[side as usize].last()?;
        Some((side.rank(level.rank), level.shares))
    }

    /// Returns the symbol's live order at `place` of its list, which is less than [`live_orders_of`](Self::live_orders_of).
    #[inline]
    pub(crate) fn at_place(&self, symbol: u16, place: u32) -> u32 {
        self.symbols[usize::from(symbol)].live[place as usize]
    }

    /// Returns the order first in line at the best price.
    #[inline]
    pub(crate) fn front(&self, symbol: u16, side: BookSide) -> Option<u32> {
        self.symbols[usize::from(symbol)].levels[side as usize].last().map(|level| level.first)
    }

    #[inline]
    pub(crate) fn order(&self, slot: u32) -> &LiveOrder {
        &self.orders[slot as usize]
    }

    /// Appends an order to the queue of its price.
    pub(crate) fn add(&mut self, symbol: u16, side: BookSide, reference: u64, price: u32, shares: u32) {
        let slot = self.free.pop().unwrap_or(self.orders.len() as u32);
        let book = &mut self.symbols[usize::from(symbol)];
        let place = book.live.len() as u32;
        book.live.push(slot);
        let levels = &mut book.levels[side as usize];
        let rank = side.rank(price);
        let at = find(levels, rank);
        let previous = match levels.get_mut(at) {
            Some(level) if level.rank == rank => {
                let previous = level.last;
                level.orders += 1;
                level.shares += u64::from(shares);
                level.last = slot;
                previous
            }
            _ => {
                let level = Level { rank, orders: 1, shares: u64::from(shares), first: slot, last: slot };
                levels.insert(at, level);
                NONE
            }
        };
        let order = LiveOrder { reference, price, shares, next: NONE, previous, place, symbol, side };
        if previous != NONE {
            self.orders[previous as usize].next = slot;
        }
        match self.orders.get_mut(slot as usize) {
            Some(free) => *free = order,
            None => self.orders.push(order),
        }
    }

    /// Takes `shares` from an order, at most all of them; deletes the order when none are left.
    pub(crate) fn reduce(&mut self, slot: u32, shares: u32) {
        let order = self.orders[slot as usize];
        if shares >= order.shares {
            self.remove(slot);
            return;
        }
        self.orders[slot as usize].shares -= shares;
        let levels = &mut self.symbols[usize::from(order.symbol)].levels[order.side as usize];
        let at = find(levels, order.side.rank(order.price));
        levels[at].shares -= u64::from(shares);
    }

    /// Removes an order from its book.
    pub(crate) fn remove(&mut self, slot: u32) {
        let order = self.orders[slot as usize];
        let book = &mut self.symbols[usize::from(order.symbol)];

        let levels = &mut book.levels[order.side as usize];
        let at = find(levels, order.side.rank(order.price));
        let level = &mut levels[at];
        level.orders -= 1;
        level.shares -= u64::from(order.shares);
        if order.previous == NONE {
            level.first = order.next;
        } else {
            self.orders[order.previous as usize].next = order.next;
        }
        if order.next == NONE {
            level.last = order.previous;
        } else {
            self.orders[order.next as usize].previous = order.previous;
        }
        if level.orders == 0 {
            levels.remove(at);
        }

        book.live.swap_remove(order.place as usize);
        if let Some(moved) = book.live.get(order.place as usize) {
            self.orders[*moved as usize].place = order.place;
        }
        self.free.push(slot);
    }
}

/// Returns the position of the level of this rank, or the position for its insertion. Most changes are near the best price, so the search starts
/// there and becomes a binary search only far from it.
#[inline]
fn find(levels: &[Level], rank: u32) -> usize {
    const NEAR: usize = 8;
    let near = levels.len().saturating_sub(NEAR);
    let mut at = levels.len();
    while at > near {
        if levels[at - 1].rank < rank {
            return at;
        }
        at -= 1;
        if levels[at].rank == rank {
            return at;
        }
    }
    levels[..near].partition_point(|level| level.rank < rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_queue_at_their_price_and_the_best_is_found_on_both_sides() {
        let mut books = SimulatedBooks::new(2);
        books.add(1, BookSide::Buy, 4, 100, 10);
        books.add(1, BookSide::Buy, 8, 101, 20);
        books.add(1, BookSide::Buy, 12, 101, 5);
        books.add(1, BookSide::Sell, 16, 104, 7);
        books.add(1, BookSide::Sell, 20, 103, 9);
        assert_eq!(books.best(1, BookSide::Buy), Some((101, 25)));
        assert_eq!(books.best(1, BookSide::Sell), Some((103, 9)));
        assert_eq!(books.best(0, BookSide::Buy), None);
        assert_eq!((books.live_orders(), books.levels()), (5, 4));

        let front = books.front(1, BookSide::Buy).unwrap();
        assert_eq!(books.order(front).reference, 8);
        books.reduce(front, 5);
        assert_eq!(books.best(1, BookSide::Buy), Some((101, 20)));
        books.reduce(front, 15);
        assert_eq!(books.order(books.front(1, BookSide::Buy).unwrap()).reference, 12);
        books.remove(books.front(1, BookSide::Buy).unwrap());
        assert_eq!(books.best(1, BookSide::Buy), Some((100, 10)));
        books.remove(books.front(1, BookSide::Sell).unwrap());
        assert_eq!(books.best(1, BookSide::Sell), Some((104, 7)));
        assert_eq!(books.live_orders_of(1), 2);
        assert_eq!((books.live_orders(), books.levels()), (2, 2));
    }

    #[test]
    fn deep_books_keep_their_order() {
        let mut books = SimulatedBooks::new(1);
        for step in 0..200_u32 {
            let price = 1000 + (step * 37) % 200;
            books.add(0, BookSide::Sell, u64::from(step), price, 1);
        }
        for expected in 1000..1200 {
            assert_eq!(books.best(0, BookSide::Sell), Some((expected, 1)));
            books.remove(books.front(0, BookSide::Sell).unwrap());
        }
        assert_eq!((books.live_orders(), books.levels()), (0, 0));
    }
}
