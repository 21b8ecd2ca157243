//! The price levels of one side.

use super::{Price, Quote};
use crate::itch::Side;

/// A price with the shares that are displayed at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The price.
    pub price: Price,
    /// Shares, more than 0.
    pub size: u32,
}

/// How many levels at the best end are looked at one by one before the rest is searched by halves: most updates are
/// about a price near the best.
const NEAR: usize = 8;

/// What became of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Set {
    /// There is a level more, or less, or one has another size.
    Done,
    /// No shares at a price that had none: nothing to do.
    NotThere,
    /// The side is full. The worst level had to give way, or was the one to be added.
    Full,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The better for its side, the greater: asks are mirrored, so that both sides run the same code.
    rank: i64,
    size: u32,
}

/// Levels in ascending rank, so that the best is at the back, where adding and removing moves little.
///
/// 16 bytes a level; memory is taken only when a side gets deeper than it ever was.
#[derive(Clone, Debug)]
pub(super) struct Ladder {
    levels: Vec<Entry>,
    mirror: i64,
}

impl Ladder {
    pub(super) const fn new(side: Side) -> Self {
        let mirror = match side {
            Side::Bid => 0,
            // All bits flipped, the order of signed numbers is reversed.
            Side::Ask => -1,
        };
        Self { levels: Vec::new(), mirror }
    }

    /// The best level; no shares where there is none.
    #[inline]
    pub(super) fn best(&self) -> Quote {
        self.levels
            .last()
            .map_or(Quote::NONE, |level| Quote { price: Price(level.rank ^ self.mirror), size: level.size })
    }

    /// The levels, best first.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = Level> + '_ {
        self.levels
            .iter()
            .rev()
            .map(|level| Level { price: Price(level.rank ^ self.mirror), size: level.size })
    }

    /// Where the level of a rank is, or where it would have to be.
    #[inline]
    fn find(&self, rank: i64) -> Result<usize, usize> {
        let near = self.levels.len().saturating_sub(NEAR);
        for (at, level) in self.levels.iter().enumerate().skip(near).rev() {
            if level.rank <= rank {
                return if level.rank == rank { Ok(at) } else { Err(at + 1) };
            }
        }
        self.levels[..near].binary_search_by_key(&rank, |level| level.rank)
    }

    /// Sets the shares at a price. At `most` levels the worst of them gives way to a better one, so that the best stays right.
    #[inline]
    pub(super) fn set(&mut self, price: Price, size: u32, most: usize) -> Set {
        let rank = price.0 ^ self.mirror;
        match (self.find(rank), size) {
            (Ok(at), 0) => {
                self.levels.remove(at);
                Set::Done
            }
            (Ok(at), size) => {
                self.levels[at].size = size;
                Set::Done
            }
            (Err(_), 0) => Set::NotThere,
            (Err(at), size) if self.levels.len() < most => {
                self.levels.insert(at, Entry { rank, size });
                Set::Done
            }
            (Err(at), size) => {
                if let Some(before) = at.checked_sub(1) {
                    // Those worse than the new one move down by one, over the worst.
                    self.levels.copy_within(1..at, 0);
                    self.levels[before] = Entry { rank, size };
                }
                Set::Full
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prices(ladder: &Ladder) -> Vec<i64> {
        ladder.iter().map(|level| level.price.0).collect()
    }

    #[test]
    fn the_best_is_the_highest_bid_and_the_lowest_ask() {
        for (side, sorted) in [(Side::Bid, [30, 20, 10, -5]), (Side::Ask, [-5, 10, 20, 30])] {
            let mut ladder = Ladder::new(side);
            assert_eq!(ladder.best(), Quote::NONE);
            for price in [20, -5, 10, 30] {
                assert_eq!(ladder.set(Price(price), 7, 9), Set::Done);
            }
            assert_eq!(prices(&ladder), sorted);
            assert_eq!(ladder.best(), Quote { price: Price(sorted[0]), size: 7 });
        }
    }

    #[test]
    fn far_levels_are_found_as_near_ones_are() {
        let mut ladder = Ladder::new(Side::Ask);
        for i in 0..100 {
            assert_eq!(ladder.set(Price(i * 7 % 101), 1, 100), Set::Done);
        }
        for i in 0..100 {
            assert_eq!(ladder.set(Price(i * 7 % 101), 2, 100), Set::Done);
        }
        assert!(prices(&ladder).is_sorted());
        assert_eq!((ladder.iter().len(), ladder.iter().all(|level| level.size == 2)), (100, true));
        for i in 0..100 {
            assert_eq!(ladder.set(Price(i * 7 % 101), 0, 100), Set::Done);
            assert_eq!(ladder.set(Price(i * 7 % 101), 0, 100), Set::NotThere);
        }
        assert_eq!(ladder.iter().len(), 0);
    }

    #[test]
    fn a_full_side_keeps_its_best() {
        let mut ladder = Ladder::new(Side::Bid);
        for price in [10, 20, 30] {
            assert_eq!(ladder.set(Price(price), 1, 3), Set::Done);
        }
        assert_eq!(ladder.set(Price(5), 1, 3), Set::Full);
        assert_eq!(prices(&ladder), [30, 20, 10]);
        assert_eq!(ladder.set(Price(25), 1, 3), Set::Full);
        assert_eq!(prices(&ladder), [30, 25, 20]);
        assert_eq!(ladder.set(Price(40), 1, 3), Set::Full);
        assert_eq!(prices(&ladder), [40, 30, 25]);
        assert_eq!(ladder.set(Price(1), 1, 0), Set::Full);
    }
}
