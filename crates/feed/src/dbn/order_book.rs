//! The orders and price levels of one instrument.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::books::{DbnCounters, DbnSettings};
use super::event::{DbnAction, DbnOrder};
use super::field::{DbnPrice, Flags};
use super::ladder::{DbnLadder, RestingLevel};
use crate::itch::Side;

/// The orders of one instrument at one publisher.
///
/// Rules: the size of an order is the added size less cancellations, and the order is deleted at 0; a modification sets a new price and size;
/// trades and fills do not affect the book, because a cancel accompanies each of them. Source: Databento's schema MBO.
#[derive(Debug)]
pub(super) struct OrderBook {
    /// References come from outside, so the hash has a new seed in each process.
    orders: HashMap<u64, Standing, RandomState>,
    /// Bids, asks.
    ladders: [DbnLadder; 2],
}

/// The stored data of an order: 16 bytes.
#[derive(Clone, Copy, Debug)]
struct Standing {
    price: DbnPrice,
    size: u32,
    side: Side,
}

impl OrderBook {
    pub(super) fn new() -> Self {
        Self {
            orders: HashMap::with_hasher(RandomState::default()),
            ladders: [Side::Bid, Side::Ask].map(DbnLadder::new),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.orders.len()
    }

    pub(super) fn ladder(&self, side: Side) -> &DbnLadder {
        &self.ladders[side as usize]
    }

    /// Returns the ladder of an order; that of the bids for an order that does not exist.
    #[inline]
    pub(super) fn ladder_of(&self, id: u64) -> &DbnLadder {
        self.ladder(self.orders.get(&id).map_or(Side::Bid, |standing| standing.side))
    }

    fn ladder_mut(&mut self, side: Side) -> &mut DbnLadder {
        &mut self.ladders[side as usize]
    }

    pub(super) fn best(&self, side: Side) -> Option<RestingLevel> {
        self.ladder(side).best()
    }

    /// Applies one record. `live` is the number of orders on all books.
    #[inline]
    pub(super) fn apply(
        &mut self,
        order: &DbnOrder,
        settings: &DbnSettings,
        live: &mut usize,
        counters: &mut DbnCounters,
    ) {
        if order.flags.has(Flags::TOP_OF_BOOK) {
            self.top_of_book(order, live, counters);
            return;
        }
        match order.action {
            DbnAction::Add | DbnAction::Modify => {
                let Some(standing) = standing(order) else {
                    counters.odd_orders += 1;
                    return;
                };
                let is_new = order.action == DbnAction::Add;
                if !is_new && self.resize(order.id, &standing) {
                    return;
                }
                let existed = self.put(order.id, standing, settings, live, counters);
                counters.duplicate_orders += u64::from(is_new && existed);
                counters.unknown_modified += u64::from(!is_new && !existed);
            }
            DbnAction::Cancel => self.cancel(order, live, counters),
            DbnAction::Clear => self.clear(live),
            DbnAction::None => {}
        }
    }

    /// Puts an order on the book, in place of one with the same id; returns `true` if there was one.
    #[inline]
    fn put(
        &mut self,
        id: u64,
        standing: Standing,
        settings: &DbnSettings,
        live: &mut usize,
        counters: &mut DbnCounters,
    ) -> bool {
        // At the limit, no table grows for an order that is refused.
        if standing.size > 0 && *live >= settings.max_orders && !self.orders.contains_key(&id) {
            counters.refused_orders += 1;
            return false;
        }
        // An order without size does not exist; some venues delete an order by a modification to 0.
        let before = match standing.size {
            0 => self.orders.remove(&id),
            _ => self.orders.insert(id, standing),
        };
        if let Some(before) = before {
            *live -= 1;
            self.ladder_mut(before.side).reduce(before.price, before.size, true);
        }
        if standing.size == 0 {
            return before.is_some();
        }
        let room = *live < settings.max_orders
            && self.ladder_mut(standing.side).add(standing.price, standing.size, settings.max_levels);
        if room {
            *live += 1;
            counters.max_live_orders = counters.max_live_orders.max(*live);
        } else {
            self.orders.remove(&id);
            counters.refused_orders += 1;
        }
        before.is_some()
    }

    /// Changes the size of an order that keeps its price and side, as most modified orders do; returns `false` for any other.
    fn resize(&mut self, id: u64, now: &Standing) -> bool {
        let Some(standing) = self.orders.get_mut(&id) else { return false };
        let before = standing.size;
        if standing.price != now.price || standing.side != now.side || now.size == 0 {
            return false;
        }
        standing.size = now.size;
        self.ladder_mut(now.side).resize(now.price, before, now.size);
        true
    }

    fn cancel(&mut self, order: &DbnOrder, live: &mut usize, counters: &mut DbnCounters) {
        let Entry::Occupied(mut standing) = self.orders.entry(order.id) else {
            counters.unknown_cancelled += 1;
            return;
        };
        let before = *standing.get();
        counters.excess_cancelled += u64::from(order.size > before.size);
        let taken = order.size.min(before.size);
        let gone = taken == before.size;
        if gone {
            standing.remove();
            *live -= 1;
        } else {
            standing.get_mut().size -= taken;
        }
        self.ladder_mut(before.side).reduce(before.price, taken, gone);
    }

    pub(super) fn clear(&mut self, live: &mut usize) {
        self.clear_orders(live);
        self.ladders.iter_mut().for_each(DbnLadder::clear);
    }

    fn clear_orders(&mut self, live: &mut usize) {
        // An empty table may have a large capacity, and each clear costs in proportion to it.
        if !self.orders.is_empty() {
            *live -= self.orders.len();
            self.orders.clear();
        }
    }

    /// Applies a record that contains the best level of a side itself: it replaces the side. Such books have no orders.
    #[cold]
    fn top_of_book(&mut self, order: &DbnOrder, live: &mut usize, counters: &mut DbnCounters) {
        if order.action == DbnAction::Clear {
            self.clear(live);
            return;
        }
        let Some(side) = order.side else {
            counters.odd_orders += 1;
            return;
        };
        self.clear_orders(live);
        let ladder = self.ladder_mut(side);
        ladder.clear();
        let comes = matches!(order.action, DbnAction::Add | DbnAction::Modify);
        if comes && order.price.defined().is_some() && order.size > 0 {
            // One level is within any limit above 0.
            let _ = ladder.add(order.price, order.size, 1);
        }
    }
}

/// Returns the data of an order that is on a book; `None` without price or side.
#[inline]
fn standing(order: &DbnOrder) -> Option<Standing> {
    Some(Standing { price: order.price.defined()?, size: order.size, side: order.side? })
}
