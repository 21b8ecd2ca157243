//! Order by order depth for publication: every order of every instrument with its priority, and the changes by each
//! message.
//!
//! The [books](crate::book) provide the best prices, from 12 bytes for each order. Publication of single orders needs more data of each order (its
//! priority, its attribution), all orders of one instrument in turn, and each change by its order. This module stores that data, only for feeds
//! whose orders are published. Memory: about 90 bytes for each order at the maximum number of live orders so far, 16 for each instrument.
//!
//! ```
//! use tapeline_feed::depth::{Action, Attribution, Depth, Order};
//! use tapeline_feed::draft::Price;
//! use tapeline_feed::itch::Side;
//! use tapeline_feed::normalise::Instrument;
//!
//! let mut depth = Depth::new(1_000_000);
//! let order = Order {
//!     reference: 7001,
//!     side: Side::Bid,
//!     price: Price { mantissa: 40_0000, decimals: 4 },
//!     size: 100,
//!     priority_ns: 52_200_000_000_000,
//!     attribution: Attribution::default(),
//! };
//! depth.add(Instrument(13), order);
//! depth.begin();
//! depth.reduce(7001, 30, 52_200_000_000_500);
//! let [change] = depth.changes() else { panic!("one order changed") };
//! assert_eq!((change.action, change.order.size), (Action::Update, 70));
//! assert_eq!(depth.orders(Instrument(13)).count(), 1);
//! ```

mod encode;
mod itch;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry as Slot;

use crate::draft::{Price, ascii, letters};
use crate::itch::Side;
use crate::normalise::Instrument;

pub use encode::{OrdersSummary, head};

/// The firm that entered an order, if it is shown: up to four ASCII characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attribution([u8; 4]);

impl Attribution {
    /// Creates an attribution from the first four characters of `text`, up to the first that is not printable ASCII.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(letters(text.bytes().take_while(u8::is_ascii_graphic)))
    }

    /// Returns the text; empty if it is not shown.
    #[must_use]
    pub fn as_str(&self) -> &str {
        ascii(&self.0)
    }
}

/// An order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The order's number at the exchange, unique within the day.
    pub reference: u64,
    /// Its side.
    pub side: Side,
    /// Its price.
    pub price: Price,
    /// The remaining size, in units such as shares.
    pub size: u64,
    /// Time at which the order got its place in the queue: ns since midnight, GMT.
    pub priority_ns: u64,
    /// The firm that entered the order.
    pub attribution: Attribution,
}

/// The kind of change to an order or a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The order or level is new.
    Add,
    /// Its size changed.
    Update,
    /// It is gone.
    Delete,
}

/// A change of one order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderChange {
    /// The kind of change.
    pub action: Action,
    /// The order after the change; a deleted one before it.
    pub order: Order,
    /// Time of the change: ns since midnight, GMT.
    pub at_ns: u64,
}

/// The counters of changes that could not be applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DepthCounters {
    /// Orders beyond the limit: they are missing in images and updates.
    pub refused: u64,
    /// Changes of an order that does not exist.
    pub unknown: u64,
    /// New orders with the number of an existing one.
    pub duplicate: u64,
}

/// The end mark of a list.
const NONE: u32 = u32::MAX;

/// An order in its instrument's list. The list is in order of arrival, which at one price is the order of priority.
#[derive(Clone, Copy, Debug)]
struct Entry {
    order: Order,
    instrument: Instrument,
    previous: u32,
    next: u32,
}

/// The orders of one instrument.
#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
    count: u32,
}

const EMPTY: List = List { first: NONE, last: NONE, count: 0 };

/// Maximum number of instruments: their numbers are dense, and no exchange has as many.
const MAX_INSTRUMENTS: usize = 1 << 20;

/// The orders of all instruments.
#[derive(Debug)]
pub struct Depth {
    places: HashMap<u64, u32, RandomState>,
    entries: Vec<Entry>,
    /// Free places in `entries`.
    free: Vec<u32>,
    lists: Vec<List>,
    max_orders: usize,
    /// Two changes for a replacement, one for any other message.
    changed: Vec<OrderChange>,
    instrument: Option<Instrument>,
    counters: DepthCounters,
}

impl Depth {
    /// Creates an empty table of at most `max_orders` (and 2³² − 1) orders. Memory is allocated as orders are added.
    #[must_use]
    pub fn new(max_orders: usize) -> Self {
        Self {
            places: HashMap::with_hasher(RandomState::default()),
            entries: Vec::new(),
            free: Vec::new(),
            lists: Vec::new(),
            max_orders: max_orders.min(NONE as usize),
            changed: Vec::with_capacity(2),
            instrument: None,
            counters: DepthCounters::default(),
        }
    }

    /// Begins the next message: drops the changes so far.
    #[inline]
    pub fn begin(&mut self) {
        self.changed.clear();
        self.instrument = None;
    }

    /// Returns the changes since [`begin`](Self::begin), in order.
    #[inline]
    #[must_use]
    pub fn changes(&self) -> &[OrderChange] {
        &self.changed
    }

    /// Returns the instrument of the last changes.
    #[inline]
    #[must_use]
    pub const fn instrument(&self) -> Option<Instrument> {
        self.instrument
    }

    /// Adds an order after all others of its instrument. Allocates only if there are more orders than ever before.
    pub fn add(&mut self, instrument: Instrument, order: Order) {
        let list_at = instrument.0 as usize;
        if self.places.len() >= self.max_orders || list_at >= MAX_INSTRUMENTS {
            self.counters.refused += 1;
            return;
        }
        let Slot::Vacant(slot) = self.places.entry(order.reference) else {
            self.counters.duplicate += 1;
            return;
        };
        if self.lists.len() <= list_at {
            self.lists.resize(list_at + 1, EMPTY);
        }
        let list = &mut self.lists[list_at];
        let entry = Entry { order, instrument, previous: list.last, next: NONE };
        let place = match self.free.pop() {
            Some(place) => {
                self.entries[place as usize] = entry;
                place
            }
            None => {
                // Lossless: there are fewer than `max_orders`.
                let place = self.entries.len() as u32;
                self.entries.push(entry);
                place
            }
        };
        slot.insert(place);
        match self.entries.get_mut(list.last as usize) {
            Some(last) => last.next = place,
            None => list.first = place,
        }
        list.last = place;
        list.count += 1;
        self.say(instrument, OrderChange { action: Action::Add, order, at_ns: order.priority_ns });
    }

    /// Reduces an order by `size`, or by its remaining size; deletes it if nothing remains.
    pub fn reduce(&mut self, reference: u64, size: u64, at_ns: u64) {
        let Some(place) = self.places.get(&reference) else {
            self.counters.unknown += 1;
            return;
        };
        let entry = &mut self.entries[*place as usize];
        if size == 0 {
            return;
        }
        if size >= entry.order.size {
            return self.delete(reference, at_ns);
        }
        entry.order.size -= size;
        let (instrument, order) = (entry.instrument, entry.order);
        self.say(instrument, OrderChange { action: Action::Update, order, at_ns });
    }

    /// Deletes an order.
    pub fn delete(&mut self, reference: u64, at_ns: u64) {
        let Some((instrument, order)) = self.remove(reference) else {
            self.counters.unknown += 1;
            return;
        };
        self.say(instrument, OrderChange { action: Action::Delete, order, at_ns });
    }

    /// Replaces an order by another one of the same side, which gets its place after all others.
    pub fn replace(&mut self, reference: u64, new_reference: u64, price: Price, size: u64, at_ns: u64) {
        let Some((instrument, order)) = self.remove(reference) else {
            self.counters.unknown += 1;
            return;
        };
        self.say(instrument, OrderChange { action: Action::Delete, order, at_ns });
        if size > 0 {
            self.add(
                instrument,
                Order { reference: new_reference, price, size, priority_ns: at_ns, ..order },
            );
        }
    }

    fn remove(&mut self, reference: u64) -> Option<(Instrument, Order)> {
        let place = self.places.remove(&reference)?;
        let Entry { order, instrument, previous, next } = self.entries[place as usize];
        let list = &mut self.lists[instrument.0 as usize];
        match self.entries.get_mut(previous as usize) {
            Some(entry) => entry.next = next,
            None => list.first = next,
        }
        match self.entries.get_mut(next as usize) {
            Some(entry) => entry.previous = previous,
            None => list.last = previous,
        }
        list.count -= 1;
        self.free.push(place);
        Some((instrument, order))
    }

    fn say(&mut self, instrument: Instrument, change: OrderChange) {
        self.instrument = Some(instrument);
        self.changed.push(change);
    }

    /// Returns the orders of an instrument in order of arrival.
    #[must_use]
    pub fn orders(&self, instrument: Instrument) -> Orders<'_> {
        let list = self.lists.get(instrument.0 as usize).unwrap_or(&EMPTY);
        Orders { depth: self, next: list.first, left: list.count as usize }
    }

    /// Returns the number of orders of all instruments.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns `true` if there are no orders.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &DepthCounters {
        &self.counters
    }

    /// Deletes all orders at the start of a session. The counters stay.
    pub fn clear(&mut self) {
        self.begin();
        self.places.clear();
        self.entries.clear();
        self.free.clear();
        self.lists.clear();
    }
}

/// The orders of one instrument in order of arrival.
#[derive(Clone, Debug)]
pub struct Orders<'a> {
    depth: &'a Depth,
    next: u32,
    left: usize,
}

impl Iterator for Orders<'_> {
    type Item = Order;

    fn next(&mut self) -> Option<Order> {
        let entry = self.depth.entries.get(self.next as usize)?;
        self.next = entry.next;
        self.left = self.left.saturating_sub(1);
        Some(entry.order)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Orders<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(reference: u64, size: u64) -> Order {
        let price = Price { mantissa: 10, decimals: 0 };
        Order {
            reference,
            side: Side::Bid,
            price,
            size,
            priority_ns: reference,
            attribution: Attribution::default(),
        }
    }

    fn references(depth: &Depth, instrument: u32) -> Vec<u64> {
        let orders = depth.orders(Instrument(instrument));
        let len = orders.len();
        let found: Vec<_> = orders.map(|order| order.reference).collect();
        assert_eq!(found.len(), len);
        found
    }

    #[test]
    fn lists_keep_the_order_of_arrival() {
        let mut depth = Depth::new(100);
        for reference in 1..=6 {
            depth.add(Instrument(reference as u32 % 2), order(reference, 10));
        }
        assert_eq!((references(&depth, 1), references(&depth, 0)), (vec![1, 3, 5], vec![2, 4, 6]));
        depth.delete(3, 0);
        depth.replace(1, 7, Price { mantissa: 11, decimals: 0 }, 5, 9);
        assert_eq!(references(&depth, 1), [5, 7]);
        depth.delete(5, 0);
        depth.delete(7, 0);
        assert_eq!(references(&depth, 1), []);
        depth.add(Instrument(1), order(8, 10));
        assert_eq!((references(&depth, 1), depth.len(), depth.entries.len()), (vec![8], 4, 6));
        depth.clear();
        assert_eq!((references(&depth, 0), depth.is_empty()), (vec![], true));
    }

    #[test]
    fn a_change_says_what_became_of_the_order() {
        let mut depth = Depth::new(100);
        let mut said = |act: &dyn Fn(&mut Depth)| {
            depth.begin();
            act(&mut depth);
            depth.changes().iter().map(|c| (c.action, c.order.reference, c.order.size)).collect::<Vec<_>>()
        };
        assert_eq!(said(&|d| d.add(Instrument(1), order(1, 10))), [(Action::Add, 1, 10)]);
        assert_eq!(said(&|d| d.add(Instrument(1), order(1, 11))), []);
        assert_eq!(said(&|d| d.reduce(1, 4, 5)), [(Action::Update, 1, 6)]);
        assert_eq!(said(&|d| d.reduce(1, 0, 5)), []);
        let price = Price { mantissa: 12, decimals: 0 };
        assert_eq!(said(&|d| d.replace(1, 2, price, 8, 6)), [(Action::Delete, 1, 6), (Action::Add, 2, 8)]);
        assert_eq!(said(&|d| d.reduce(2, 9, 7)), [(Action::Delete, 2, 8)]);
        assert_eq!(said(&|d| d.delete(2, 7)), []);
        assert_eq!(depth.counters(), &DepthCounters { refused: 0, unknown: 1, duplicate: 1 });
    }

    #[test]
    fn the_limit_holds() {
        let mut depth = Depth::new(1);
        depth.add(Instrument(0), order(1, 1));
        depth.add(Instrument(0), order(2, 1));
        depth.add(Instrument(MAX_INSTRUMENTS as u32), order(3, 1));
        assert_eq!((depth.len(), depth.counters().refused), (1, 2));
        assert!(size_of::<Entry>() <= 64, "{}", size_of::<Entry>());
    }
}
