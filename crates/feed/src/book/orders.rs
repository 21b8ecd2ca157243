//! Every order on the books, by its reference.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::itch::{Locate, OrderRef, Price4, Side};

/// What has to be known of an order: 12 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    pub(super) price: Price4,
    pub(super) shares: u32,
    pub(super) locate: Locate,
    pub(super) side: Side,
}

/// A table of bounded size. References come from outside, so the hash is seeded anew in each process.
#[derive(Debug)]
pub(super) struct Orders {
    table: HashMap<OrderRef, Order, RandomState>,
    limit: usize,
}

/// What became of an order that was to be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// It is in the table.
    New,
    /// Another one has its reference.
    Duplicate,
    /// The table is at its limit.
    Refused,
}

/// What was taken from an order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    /// The order as it was before.
    pub(super) order: Order,
    /// Shares taken: those asked for, or what it had.
    pub(super) shares: u32,
    /// Nothing is left of it.
    pub(super) gone: bool,
    /// More was asked for than it had.
    pub(super) excess: bool,
}

impl Orders {
    pub(super) fn new(limit: usize, reserve: usize) -> Self {
        Self { table: HashMap::with_capacity_and_hasher(reserve.min(limit), RandomState::default()), limit }
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    pub(super) fn clear(&mut self) {
        self.table.clear();
    }

    /// Adds an order. The table grows, which allocates, until it has once been as large as it gets.
    #[inline]
    pub(super) fn add(&mut self, reference: OrderRef, order: Order) -> Added {
        let full = self.table.len() >= self.limit;
        match self.table.entry(reference) {
            Entry::Occupied(_) => Added::Duplicate,
            Entry::Vacant(_) if full => Added::Refused,
            Entry::Vacant(place) => {
                place.insert(order);
                Added::New
            }
        }
    }

    /// Takes shares from an order, at most what it has; removes it where none are left.
    #[inline]
    pub(super) fn take(&mut self, reference: OrderRef, shares: u32) -> Option<Taken> {
        let order = self.table.get_mut(&reference)?;
        let before = *order;
        if shares < before.shares {
            order.shares -= shares;
            return Some(Taken { order: before, shares, gone: false, excess: false });
        }
        self.table.remove(&reference);
        Some(Taken { order: before, shares: before.shares, gone: true, excess: shares > before.shares })
    }

    /// Removes an order.
    #[inline]
    pub(super) fn remove(&mut self, reference: OrderRef) -> Option<Order> {
        self.table.remove(&reference)
    }
}
