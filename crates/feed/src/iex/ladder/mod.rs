//! The price levels of one side.
//!
//! Most updates are about prices near the best, one tick from another. Those levels are [`SizeRungs`]: found by their distance from the lowest, the
//! best by a bitmap. A sorted list stores levels outside the rungs or between ticks, and all levels of a side with few of them. When the market has
//! left the rungs, they are moved to the best price.

mod rungs;

use rungs::SizeRungs;

use super::{IexPrice, IexQuote};
use crate::itch::Side;

/// A price with the shares that are displayed at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IexLevel {
    /// The price.
    pub price: IexPrice,
    /// Shares, more than 0.
    pub size: u32,
}

/// Number of levels above which a side gets rungs: most symbols are quiet.
const FEW: usize = 4;

/// Updates outside the rungs after which their position is checked.
const STRAYS: u32 = 64;

/// The result of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Set {
    /// A level was added or deleted, or its size changed.
    Done,
    /// No shares at a price that had none: no effect.
    NotThere,
    /// The side is full: the worst level was deleted, possibly the new one.
    Full,
}

/// A level. The better level of a side has the greater rank: asks are mirrored, so that both sides use the same code.
#[derive(Clone, Copy, Debug)]
struct Ranked {
    rank: i64,
    size: u32,
}

/// No level: worse than any.
const NOTHING: Ranked = Ranked { rank: i64::MIN, size: 0 };

/// All levels of a side: about 120 bytes, 1 KiB with rungs, and 16 bytes for each level outside them.
#[derive(Clone, Debug)]
pub(super) struct IexLadder {
    best: Ranked,
    mirror: i64,
    rungs: SizeRungs,
    count: u32,
    /// Updates outside the rungs since the last check of their position.
    strays: u32,
    /// The levels outside the rungs in ascending rank: the best is last.
    apart: Vec<Ranked>,
}

impl IexLadder {
    pub(super) const fn new(side: Side) -> Self {
        let mirror = match side {
            Side::Bid => 0,
            // Inverting all bits reverses the order of signed numbers.
            Side::Ask => -1,
        };
        Self { best: NOTHING, mirror, rungs: SizeRungs::NONE, count: 0, strays: 0, apart: Vec::new() }
    }

    /// Returns the best level; zero shares for an empty side.
    #[inline(always)]
    pub(super) const fn best(&self) -> IexQuote {
        let Ranked { rank, size } = self.best;
        if size == 0 { IexQuote::NONE } else { IexQuote { price: IexPrice(rank ^ self.mirror), size } }
    }

    /// Returns the number of levels.
    pub(super) const fn len(&self) -> usize {
        self.count as usize
    }

    /// Returns the levels, best first.
    pub(super) fn iter(&self) -> IexLevels<'_> {
        let rung = self.rungs.below(rungs::COUNT);
        IexLevels { rungs: &self.rungs, rung, apart: &self.apart, mirror: self.mirror, left: self.len() }
    }

    /// Sets the shares at a price. Beyond `most` levels the worst one is deleted, so the best level stays right.
    #[inline(always)]
    pub(super) fn set(&mut self, price: IexPrice, size: u32, most: usize) -> Set {
        let rank = price.0 ^ self.mirror;
        let Some(rung) = self.rungs.rung(rank) else { return self.set_apart(rank, size, most) };
        let Some(before) = self.rungs.set(rung, size) else { return Set::NotThere };
        self.count = self.count + u32::from(size != 0) - u32::from(before != 0);
        let is_best = rank >= self.best.rank;
        self.best.rank = if is_best { rank } else { self.best.rank };
        self.best.size = if is_best { size } else { self.best.size };
        if self.best.size == 0 {
            self.find_best();
        }
        if before == 0 && size == 0 {
            return Set::NotThere;
        }
        if self.len() > most { self.drop_worst() } else { Set::Done }
    }

    /// Prefetches a level, if it is on a rung.
    #[inline]
    pub(super) fn prefetch(&self, price: IexPrice) {
        if let Some(rung) = self.rungs.rung(price.0 ^ self.mirror) {
            self.rungs.prefetch(rung);
        }
    }

    /// Finds the best level after the previous best was deleted.
    #[inline]
    fn find_best(&mut self) {
        let apart = self.apart.last().copied().unwrap_or(NOTHING);
        self.best = match self.rungs.best() {
            Some((rank, size)) if rank > apart.rank || apart.size == 0 => Ranked { rank, size },
            _ => apart,
        };
    }

    /// Updates a level that has no rung.
    #[inline(never)]
    fn set_apart(&mut self, rank: i64, size: u32, most: usize) -> Set {
        match (self.apart.binary_search_by_key(&rank, |level| level.rank), size) {
            (Ok(at), 0) => {
                self.apart.remove(at);
                self.count -= 1;
            }
            (Ok(at), size) => self.apart[at].size = size,
            (Err(_), 0) => return Set::NotThere,
            (Err(at), size) => {
                self.apart.insert(at, Ranked { rank, size });
                self.count += 1;
            }
        }
        let outcome = if self.len() > most { self.drop_worst() } else { Set::Done };
        self.find_best();
        if self.rungs.is_none() {
            if self.apart.len() > FEW {
                self.lay_out();
            }
        } else if !self.rungs.spans(rank) {
            self.strays += 1;
            // A move of the rungs costs in proportion to the number of levels, so it is done only after many updates.
            if self.strays > STRAYS {
                self.strays = 0;
                if !self.rungs.suit(self.best.rank) {
                    self.lay_out();
                }
            }
        }
        outcome
    }

    /// Deletes the worst level, the one beyond the limit.
    #[cold]
    fn drop_worst(&mut self) -> Set {
        let apart = self.apart.first().map(|level| level.rank);
        match self.rungs.worst() {
            Some(rank) if apart.is_none_or(|apart| rank < apart) => {
                if let Some(rung) = self.rungs.rung(rank) {
                    self.rungs.set(rung, 0);
                }
            }
            _ if apart.is_some() => {
                self.apart.remove(0);
            }
            _ => return Set::Full,
        }
        self.count -= 1;
        self.find_best();
        Set::Full
    }

    /// Moves the rungs to the best level.
    #[cold]
    fn lay_out(&mut self) {
        let Ranked { rank: best, size } = self.best;
        let Some(rungs) = SizeRungs::around(best, best ^ self.mirror).filter(|_| size != 0) else { return };
        let before = std::mem::replace(&mut self.rungs, rungs);
        let mut next = before.below(rungs::COUNT);
        while let Some(rung) = next {
            self.apart.extend(before.level(rung).map(|(rank, size)| Ranked { rank, size }));
            next = before.below(rung);
        }
        self.apart.sort_unstable_by_key(|level| level.rank);
        let rungs = &mut self.rungs;
        self.apart.retain(|level| {
            let rung = rungs.rung(level.rank);
            rung.is_none_or(|rung| rungs.set(rung, level.size).is_none())
        });
    }
}

/// The levels of a side, best first.
#[derive(Clone, Debug)]
pub(super) struct IexLevels<'a> {
    rungs: &'a SizeRungs,
    /// The next rung with a level.
    rung: Option<usize>,
    /// The remaining levels outside the rungs, the next one last.
    apart: &'a [Ranked],
    mirror: i64,
    left: usize,
}

impl Iterator for IexLevels<'_> {
    type Item = IexLevel;

    fn next(&mut self) -> Option<IexLevel> {
        let on_rung = self.rung.and_then(|rung| self.rungs.level(rung));
        let (rank, size) = match (on_rung, self.apart.split_last()) {
            (Some((rank, size)), apart) if apart.is_none_or(|(level, _)| level.rank < rank) => {
                self.rung = self.rung.and_then(|rung| self.rungs.below(rung));
                (rank, size)
            }
            (_, Some((level, worse))) => {
                self.apart = worse;
                (level.rank, level.size)
            }
            (_, None) => return None,
        };
        self.left = self.left.saturating_sub(1);
        Some(IexLevel { price: IexPrice(rank ^ self.mirror), size })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for IexLevels<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn prices(ladder: &IexLadder) -> Vec<i64> {
        ladder.iter().map(|level| level.price.0).collect()
    }

    #[test]
    fn the_best_is_the_highest_bid_and_the_lowest_ask() {
        for (side, sorted) in [(Side::Bid, [30, 20, 10, -5]), (Side::Ask, [-5, 10, 20, 30])] {
            let mut ladder = IexLadder::new(side);
            assert_eq!(ladder.best(), IexQuote::NONE);
            for price in [20, -5, 10, 30] {
                assert_eq!(ladder.set(IexPrice(price), 7, 9), Set::Done);
            }
            assert_eq!(prices(&ladder), sorted);
            assert_eq!(ladder.best(), IexQuote { price: IexPrice(sorted[0]), size: 7 });
        }
    }

    #[test]
    fn levels_on_rungs_and_apart_are_one_ladder() {
        for side in [Side::Bid, Side::Ask] {
            let mut ladder = IexLadder::new(side);
            let price = |i: i64| match i % 4 {
                // Between ticks, far away, and at the ends of the range.
                0 => IexPrice(500_050 + i * 100),
                1 if i < 3 => IexPrice(i64::MIN + i),
                1 => IexPrice(500_000 + i * 100_000),
                _ => IexPrice(500_000 + i * 100),
            };
            for size in [1, 2] {
                for i in 0..100 {
                    assert_eq!(ladder.set(price(i * 7 % 101), size, 200), Set::Done);
                }
            }
            let listed = prices(&ladder);
            assert_eq!((listed.len(), ladder.len(), ladder.iter().len()), (100, 100, 100));
            assert!(if side == Side::Ask { listed.is_sorted() } else { listed.iter().rev().is_sorted() });
            assert!(ladder.iter().all(|level| level.size == 2) && !ladder.rungs.is_none());
            for i in 0..100 {
                assert_eq!(ladder.set(price(i * 7 % 101), 0, 200), Set::Done);
                assert_eq!(ladder.set(price(i * 7 % 101), 0, 200), Set::NotThere);
                assert_eq!(ladder.best().price.0, prices(&ladder).first().copied().unwrap_or(0));
            }
            assert_eq!((ladder.len(), ladder.best()), (0, IexQuote::NONE));
        }
    }

    #[test]
    fn rungs_follow_the_market() {
        let mut ladder = IexLadder::new(Side::Bid);
        for step in 0..2_000 {
            ladder.set(IexPrice(500_000 + step * 100), 5, 100);
            ladder.set(IexPrice(500_000 + (step - 20) * 100), 0, 100);
        }
        assert_eq!(ladder.len(), 20);
        assert!(ladder.apart.len() <= STRAYS as usize, "{}", ladder.apart.len());
        assert!(ladder.rungs.spans(ladder.best.rank) || ladder.strays > 0);
    }

    #[test]
    fn a_full_side_keeps_its_best() {
        let mut ladder = IexLadder::new(Side::Bid);
        for price in [10, 20, 30] {
            assert_eq!(ladder.set(IexPrice(price), 1, 3), Set::Done);
        }
        assert_eq!(ladder.set(IexPrice(5), 1, 3), Set::Full);
        assert_eq!(prices(&ladder), [30, 20, 10]);
        assert_eq!(ladder.set(IexPrice(25), 1, 3), Set::Full);
        assert_eq!(prices(&ladder), [30, 25, 20]);
        assert_eq!(ladder.set(IexPrice(40), 1, 3), Set::Full);
        assert_eq!(prices(&ladder), [40, 30, 25]);
        assert_eq!(ladder.set(IexPrice(1), 1, 0), Set::Full);
    }
}
