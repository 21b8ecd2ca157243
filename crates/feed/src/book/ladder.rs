//! The price levels of one side.

use super::Quote;
use crate::itch::{Price4, Side};

/// The orders of one price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The price.
    pub price: Price4,
    /// Shares of all of them.
    pub shares: u64,
    /// How many there are.
    pub orders: u32,
}

/// How many levels at the best end are looked at one by one before the rest is searched by halves: most messages
/// are about a price near the best, and a short run of 16-byte levels is two cache lines.
const NEAR: usize = 8;

/// A price as a rank: the better for its side, the greater. The asks are mirrored, so that both sides run the
/// same code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Rank(u32);

#[derive(Clone, Copy, Debug)]
struct Entry {
    rank: Rank,
    orders: u32,
    shares: u64,
}

/// Levels in ascending rank, so that the best is at the back, where adding and removing moves little.
///
/// Memory is taken only when a side gets deeper than it ever was.
#[derive(Clone, Debug)]
pub(super) struct Ladder {
    levels: Vec<Entry>,
    mirror: u32,
}

impl Ladder {
    pub(super) const fn new(side: Side) -> Self {
        let mirror = match side {
            Side::Bid => 0,
            Side::Ask => u32::MAX,
        };
        Self { levels: Vec::new(), mirror }
    }

    #[inline]
    const fn rank(&self, price: Price4) -> Rank {
        Rank(price.0 ^ self.mirror)
    }

    #[inline]
    const fn price(&self, rank: Rank) -> Price4 {
        Price4(rank.0 ^ self.mirror)
    }

    /// The best level's price and shares.
    #[inline]
    pub(super) fn best(&self) -> Option<Quote> {
        self.levels.last().map(|level| Quote { price: self.price(level.rank), shares: level.shares })
    }

    /// The levels, best first.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = Level> + '_ {
        self.levels.iter().rev().map(|level| Level {
            price: self.price(level.rank),
            shares: level.shares,
            orders: level.orders,
        })
    }

    /// Where the level of a rank is, or where it would have to be.
    #[inline]
    fn find(&self, rank: Rank) -> Result<usize, usize> {
        let near = self.levels.len().saturating_sub(NEAR);
        for (at, level) in self.levels.iter().enumerate().skip(near).rev() {
            if level.rank <= rank {
                return if level.rank == rank { Ok(at) } else { Err(at + 1) };
            }
        }
        self.levels[..near].binary_search_by_key(&rank, |level| level.rank)
    }

    /// Adds an order.
    #[inline]
    pub(super) fn add(&mut self, price: Price4, shares: u32) {
        let shares = u64::from(shares);
        let rank = self.rank(price);
        match self.find(rank) {
            Ok(at) => {
                let level = &mut self.levels[at];
                level.shares += shares;
                level.orders += 1;
            }
            Err(at) => self.levels.insert(at, Entry { rank, orders: 1, shares }),
        }
    }

    /// Takes shares from an order, and the order itself where none are left.
    #[inline]
    pub(super) fn reduce(&mut self, price: Price4, shares: u32, gone: bool) {
        // Every order on the books has its level, and the level at least the order's shares.
        let Ok(at) = self.find(self.rank(price)) else { return };
        let level = &mut self.levels[at];
        level.shares = level.shares.saturating_sub(u64::from(shares));
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
    fn the_best_is_the_highest_bid_and_the_lowest_ask() {
        for (side, best) in [(Side::Bid, 30), (Side::Ask, 10)] {
            let mut ladder = Ladder::new(side);
            for price in [20, 10, 30] {
                ladder.add(Price4(price), price);
            }
            assert_eq!(ladder.best(), Some(Quote { price: Price4(best), shares: u64::from(best) }));
        }
    }

    #[test]
    fn far_levels_are_found_as_near_ones_are() {
        let mut ladder = Ladder::new(Side::Bid);
        let prices: Vec<u32> = (0..100).map(|i| i * 7 % 101).collect();
        for price in &prices {
            ladder.add(Price4(*price), 1);
            ladder.add(Price4(*price), 2);
        }
        let listed: Vec<_> = ladder.iter().map(|level| level.price.0).collect();
        let mut sorted = prices.clone();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(listed, sorted);
        assert!(ladder.iter().all(|level| level.shares == 3 && level.orders == 2));
        for price in &prices {
            ladder.reduce(Price4(*price), 2, true);
        }
        assert!(ladder.iter().all(|level| level.shares == 1 && level.orders == 1));
        for price in &prices {
            ladder.reduce(Price4(*price), 1, true);
        }
        assert_eq!(ladder.iter().len(), 0);
    }
}
