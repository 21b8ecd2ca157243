//! The price levels of one side.

use super::field::DbnPrice;
use crate::itch::Side;
use crate::processor::prefetch;

/// Number of best levels to examine before the search of the others: most changes are among them.
const NEAR: usize = 8;

/// A price level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestingLevel {
    /// Price.
    pub price: DbnPrice,
    /// Total size of the level's orders.
    pub size: u64,
    /// Number of orders.
    pub orders: u32,
}

/// Levels, the best last, so that insertions and removals move little. Memory: 24 bytes for each level, up to the limit.
#[derive(Clone, Debug)]
pub(super) struct DbnLadder {
    /// Prices of the ask side are mirrored, so that the better price is the greater one on both sides.
    levels: Vec<RestingLevel>,
    mirror: i64,
}

impl DbnLadder {
    pub(super) const fn new(side: Side) -> Self {
        let mirror = match side {
            Side::Bid => 0,
            Side::Ask => -1,
        };
        Self { levels: Vec::new(), mirror }
    }

    /// Converts a price to a rank, or a rank to a price.
    #[inline]
    const fn mirrored(&self, price: DbnPrice) -> DbnPrice {
        DbnPrice(price.0 ^ self.mirror)
    }

    #[inline]
    pub(super) fn best(&self) -> Option<RestingLevel> {
        self.levels.last().map(|level| RestingLevel { price: self.mirrored(level.price), ..*level })
    }

    /// Returns the levels, best first.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = RestingLevel> + '_ {
        self.levels.iter().rev().map(|level| RestingLevel { price: self.mirrored(level.price), ..*level })
    }

    pub(super) fn clear(&mut self) {
        self.levels.clear();
    }

    /// Prefetches the best levels.
    #[inline]
    pub(super) fn prefetch(&self) {
        if let Some(last) = self.levels.last() {
            prefetch(last);
            prefetch(&self.levels[self.levels.len().saturating_sub(5)]);
        }
    }

    #[inline]
    fn find(&self, rank: DbnPrice) -> Result<usize, usize> {
        let near = self.levels.len().saturating_sub(NEAR);
        for (at, level) in self.levels.iter().enumerate().skip(near).rev() {
            if level.price <= rank {
                return if level.price == rank { Ok(at) } else { Err(at + 1) };
            }
        }
        self.levels[..near].binary_search_by_key(&rank, |level| level.price)
    }

    /// Adds an order. Returns `false` if its level would be one more than `most`.
    #[inline]
    #[must_use]
    pub(super) fn add(&mut self, price: DbnPrice, size: u32, most: usize) -> bool {
        let rank = self.mirrored(price);
        match self.find(rank) {
            Ok(at) => {
                let level = &mut self.levels[at];
                level.size += u64::from(size);
                level.orders += 1;
            }
            Err(_) if self.levels.len() >= most => return false,
            Err(at) => self.levels.insert(at, RestingLevel { price: rank, size: u64::from(size), orders: 1 }),
        }
        true
    }

    /// Changes the size of an order.
    #[inline]
    pub(super) fn resize(&mut self, price: DbnPrice, before: u32, now: u32) {
        // Each order of the book has its level: see `reduce`.
        let Ok(at) = self.find(self.mirrored(price)) else { return };
        let level = &mut self.levels[at];
        level.size = (level.size + u64::from(now)).saturating_sub(u64::from(before));
    }

    /// Reduces an order by `size`; `gone` if nothing of the order remains.
    #[inline]
    pub(super) fn reduce(&mut self, price: DbnPrice, size: u32, gone: bool) {
        // Each order of the book has its level, and the level has at least the order's size.
        let Ok(at) = self.find(self.mirrored(price)) else { return };
        let level = &mut self.levels[at];
        level.size = level.size.saturating_sub(u64::from(size));
        if gone {
            level.orders = level.orders.saturating_sub(1);
            if level.orders == 0 {
                self.levels.remove(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_the_highest_bid_and_the_lowest_ask_of_either_sign() {
        for (side, best) in [(Side::Bid, 30), (Side::Ask, -10)] {
            let mut ladder = DbnLadder::new(side);
            for price in [20, -10, 30] {
                assert!(ladder.add(DbnPrice(price), 1, 3));
            }
            assert_eq!(ladder.best(), Some(RestingLevel { price: DbnPrice(best), size: 1, orders: 1 }));
            assert!(!ladder.add(DbnPrice(40), 1, 3), "there is no room for a fourth level");
            assert!(ladder.add(DbnPrice(20), 1, 3), "but in those that there are");
        }
    }

    #[test]
    fn far_levels_are_found_as_near_ones_are() {
        let mut ladder = DbnLadder::new(Side::Ask);
        let prices: Vec<i64> = (0..100).map(|i| i * 7 % 101).collect();
        for price in &prices {
            assert!(ladder.add(DbnPrice(*price), 1, 100) && ladder.add(DbnPrice(*price), 2, 100));
        }
        let mut sorted = prices.clone();
        sorted.sort_unstable();
        assert_eq!(ladder.iter().map(|level| level.price.0).collect::<Vec<_>>(), sorted);
        for price in &prices {
            ladder.reduce(DbnPrice(*price), 2, true);
        }
        assert!(ladder.iter().all(|level| level.size == 1 && level.orders == 1));
        for price in &prices {
            ladder.reduce(DbnPrice(*price), 1, true);
        }
        assert_eq!(ladder.iter().len(), 0);
    }
}
