//! The price levels of one side.
//!
//! Most messages are about prices near the best, one tick from another. Those levels are [`Rungs`]: found by their distance from the lowest, the
//! best by a bitmap. A sorted list stores levels outside the rungs or between ticks, and all levels of a side with few of them. When the market has
//! left the rungs, they are moved to the best price, but only after enough messages to pay for the move.

mod rungs;

use std::hint::select_unpredictable as select;

use rungs::Rungs;

use super::Quote;
use super::queues::{Queue, Rows};
use crate::itch::{Price4, Side};
use crate::memory::{Piece, Pieces};
use crate::processor::prefetch;

pub(super) use rungs::COUNT as RUNGS;

/// The orders of one price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookLevel {
    /// The price.
    pub price: Price4,
    /// Total shares of the orders.
    pub shares: u64,
    /// Number of orders.
    pub orders: u32,
}

/// A price as a rank: the better level of a side has the greater rank. Asks are mirrored, so that both sides use the same code.
pub(super) type Rank = u32;

/// Converts the price of a bid to its rank, or a rank to a price.
#[inline(always)]
pub(super) const fn rank(price: u32, side: Side) -> Rank {
    price ^ mirror(side)
}

#[inline(always)]
const fn mirror(side: Side) -> u32 {
    (side as u32).wrapping_neg()
}

/// Shares in the lower 40 bits, orders above them: one addition changes both.
pub(super) type Amount = u64;

const SHARES_BITS: u32 = 40;
const SHARES: Amount = (1 << SHARES_BITS) - 1;

/// One order without shares.
pub(super) const ORDER: Amount = 1 << SHARES_BITS;

/// Maximum number of orders on all books: a level cannot count more.
pub(super) const MOST_ORDERS: usize = (1 << (u64::BITS - SHARES_BITS)) - 1;

/// A level with more shares accepts no order: the next one could have 2^32 shares. A million million shares at one price are an attack.
const FULL: Amount = SHARES - u32::MAX as Amount;

#[inline(always)]
pub(super) const fn shares(amount: Amount) -> u64 {
    amount & SHARES
}

const fn orders(amount: Amount) -> u32 {
    (amount >> SHARES_BITS) as u32
}

/// A level outside the rungs.
#[derive(Clone, Copy, Debug)]
struct Apart {
    amount: Amount,
    rank: Rank,
    queue: Queue,
}

/// Number of levels at the best end of the list that are searched one by one before a binary search of the rest.
const NEAR: usize = 8;

/// Number of levels above which a side gets rungs: most stocks are quiet.
const FEW: usize = 8;

/// Spare capacity of the list, in levels, above which it shrinks.
const SPARE: usize = 16;

/// No row of queues.
const NO_ROW: u32 = u32::MAX;

/// The best level of a side; amount 0 and rank 0 for an empty side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Best {
    pub(super) amount: Amount,
    pub(super) rank: Rank,
}

impl Best {
    #[inline(always)]
    pub(super) const fn price_differs(self, other: Self) -> bool {
        (self.rank != other.rank) | ((self.amount == 0) != (other.amount == 0))
    }

    #[inline(always)]
    pub(super) const fn shares_differ(self, other: Self) -> bool {
        shares(self.amount) != shares(other.amount)
    }
}

/// The data that all ladders of a feed share.
#[derive(Debug)]
pub(super) struct Means {
    /// Number of sides that may still get rungs.
    pub(super) rungs_left: usize,
    /// Maximum number of levels of a side outside its rungs.
    pub(super) most_apart: usize,
    /// The allocator of rungs.
    pub(super) pieces: Pieces<Rungs>,
    /// The queues of levels on rungs, if orders are queued.
    pub(super) rows: Option<Rows>,
}

impl Means {
    pub(super) const fn new(max_ladders: usize, most_apart: usize, queues: bool) -> Self {
        let rows = if queues { Some(Rows::new()) } else { None };
        Self { rungs_left: max_ladders, most_apart, pieces: Pieces::new(), rows }
    }
}

/// All levels of a side. 64 bytes, the list's capacity, and 8.3 KiB with rungs (16.3 with queues).
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Ladder {
    /// The best level's amount and rank.
    amount: Amount,
    rank: Rank,
    /// Rank of the lowest rung.
    lowest: Rank,
    /// Number of the rungs' row of queues.
    row: u32,
    /// Distance between rungs; 0 without rungs.
    tick: u16,
    /// A bit for each word of the bitmap that is not 0.
    summary: u16,
    rungs: Option<Piece<Rungs>>,
    /// Levels without a rung in ascending rank: the best is last.
    apart: Vec<Apart>,
}

impl Ladder {
    pub(super) const fn new() -> Self {
        Self {
            amount: 0,
            rank: 0,
            lowest: 0,
            row: NO_ROW,
            tick: 0,
            summary: 0,
            rungs: None,
            apart: Vec::new(),
        }
    }

    #[inline(always)]
    pub(super) const fn best(&self) -> Best {
        Best { amount: self.amount, rank: self.rank }
    }

    #[inline(always)]
    pub(super) fn quote(&self, side: Side) -> Option<Quote> {
        (self.amount != 0)
            .then(|| Quote { price: Price4(rank(self.rank, side)), shares: shares(self.amount) })
    }

    /// Returns the distance from the lowest rung to one after the highest; 0 without rungs.
    #[inline(always)]
    const fn span(&self) -> u32 {
        (self.tick as u32) << rungs::BITS
    }

    /// Returns the rung of a rank.
    #[inline(always)]
    fn rung(&self, rank: Rank) -> Option<usize> {
        let above = rank.wrapping_sub(self.lowest);
        // Exact for every distance within the span: it is less than 2^17, and the error of `per_tick` is less than 1.
        let rung = (u64::from(above) * u64::from(rungs::per_tick(self.tick))) >> 31;
        // Without rungs the span is 0, and no number is below it.
        (above < self.span() && (rung as u32).wrapping_mul(u32::from(self.tick)) == above)
            .then_some(rung as usize)
    }

    /// Prefetches the cache lines that a change at a rank would touch.
    #[inline(always)]
    pub(super) fn prefetch(&self, rank: Rank) {
        if let (Some(rung), Some(rungs)) = (self.rung(rank), &self.rungs) {
            prefetch(&rungs.amounts[rung % rungs::COUNT]);
            prefetch(&rungs.words[rung / 64 % rungs::WORDS]);
        }
    }

    /// Adds an amount to the level of a rank, or subtracts it (as the negative number, wrapping). Returns `false` if a limit forbids the addition;
    /// then nothing has changed.
    #[inline(always)]
    pub(super) fn change(
        &mut self,
        side: Side,
        rank: Rank,
        by: Amount,
        adds: bool,
        means: &mut Means,
    ) -> bool {
        let rung = self.rung(rank);
        let (Some(rung), Some(rungs)) = (rung, &mut self.rungs) else {
            return self.change_apart(side, rank, by, adds, means);
        };
        let amount = &mut rungs.amounts[rung % rungs::COUNT];
        // Not `&&`: `adds` is random, and a level is never full in practice.
        if adds & (shares(*amount) > FULL) {
            return false;
        }
        *amount = amount.wrapping_add(by);
        let now = *amount;
        let is_level = u64::from(now != 0);
        let at = rung / 64 % rungs::WORDS;
        let word = &mut rungs.words[at];
        *word = (*word & !(1 << (rung % 64))) | is_level << (rung % 64);
        let is_word = u16::from(*word != 0);
        self.summary = (self.summary & !(1 << at)) | is_word << at;
        let is_best = rank >= self.rank;
        // About every third message is about the best level: a branch would be mispredicted too often.
        self.rank = select(is_best, rank, self.rank);
        self.amount = select(is_best, now, self.amount);
        if self.amount == 0 {
            self.find_best();
        }
        true
    }

    /// Finds the best level after the previous best was deleted.
    #[inline]
    fn find_best(&mut self) {
        let mut best = self
            .apart
            .last()
            .map_or(Best::default(), |level| Best { amount: level.amount, rank: level.rank });
        if let Some(rungs) = self.rungs.as_ref().filter(|_| self.summary != 0) {
            let rung = rungs.highest(self.summary);
            let rank = self.lowest + rung as u32 * u32::from(self.tick);
            if best.amount == 0 || rank > best.rank {
                best = Best { amount: rungs.amounts[rung], rank };
            }
        }
        (self.amount, self.rank) = (best.amount, best.rank);
    }

    /// Returns the position of a rank's level in the list, or the position for its insertion.
    #[inline]
    fn find_apart(&self, rank: Rank) -> Result<usize, usize> {
        let near = self.apart.len().saturating_sub(NEAR);
        for (at, level) in self.apart.iter().enumerate().skip(near).rev() {
            if level.rank <= rank {
                return if level.rank == rank { Ok(at) } else { Err(at + 1) };
            }
        }
        self.apart[..near].binary_search_by_key(&rank, |level| level.rank)
    }

    /// Changes a level that has no rung.
    #[inline(never)]
    fn change_apart(&mut self, side: Side, rank: Rank, by: Amount, adds: bool, means: &mut Means) -> bool {
        match self.find_apart(rank) {
            Ok(at) => {
                let amount = &mut self.apart[at].amount;
                if adds && shares(*amount) > FULL {
                    return false;
                }
                *amount = amount.wrapping_add(by);
                if *amount == 0 {
                    self.apart.remove(at);
                    if self.apart.capacity() > 4 * self.apart.len() + SPARE {
                        self.apart.shrink_to(2 * self.apart.len() + SPARE);
                    }
                }
            }
            // Each order on the books has its level.
            Err(_) if !adds => return true,
            Err(at) => {
                if self.apart.len() >= means.most_apart {
                    return false;
                }
                self.apart.insert(at, Apart { amount: by, rank, queue: Queue::EMPTY });
            }
        }
        self.find_best();
        let outside = rank.wrapping_sub(self.lowest) >= self.span();
        if let Some(rungs) = &mut self.rungs {
            rungs.strays = rungs.strays.saturating_add(u16::from(outside));
            // A move of the rungs costs in proportion to the number of levels, so it is done only after many messages.
            if outside && usize::from(rungs.strays) > FEW + (self.apart.len() / 8).min(1 << 12) {
                rungs.strays = 0;
                if !self.is_well_placed() {
                    self.lay_out(side, means);
                }
            }
        } else if self.apart.len() > FEW && means.rungs_left > 0 {
            means.rungs_left -= 1;
            self.rungs = Some(means.pieces.take(Rungs::BLANK));
            self.row = means.rows.as_mut().map_or(NO_ROW, Rows::add);
            self.lay_out(side, means);
        }
        true
    }

    /// Returns `true` if enough rungs lie below the best level, and some above.
    fn is_well_placed(&self) -> bool {
        let above = self.rank.wrapping_sub(self.lowest);
        self.amount == 0 || (self.span() / 4..self.span()).contains(&above)
    }

    /// Moves the rungs to the best level, three quarters of them below it.
    #[cold]
    fn lay_out(&mut self, side: Side, means: &mut Means) {
        let Some(mut rungs) = self.rungs.take() else { return };
        let mut row = means.rows.as_mut().and_then(|rows| rows.row_mut(self.row));
        let mut levels = std::mem::take(&mut self.apart);
        rungs.drain(|rung, amount| {
            let queue = row.as_mut().map(|row| std::mem::replace(&mut row[rung], Queue::EMPTY));
            let rank = self.lowest + rung as u32 * u32::from(self.tick);
            levels.push(Apart { amount, rank, queue: queue.unwrap_or(Queue::EMPTY) });
        });
        levels.sort_unstable_by_key(|level| level.rank);

        let before = (self.lowest, self.tick);
        (self.lowest, self.tick) = rungs::around(self.rank, side);
        // If more levels would lose their rungs than a side may have outside them, the rungs stay.
        if levels.iter().filter(|level| self.rung(level.rank).is_none()).count() > means.most_apart {
            (self.lowest, self.tick) = before;
        }
        self.summary = 0;
        levels.retain(|level| {
            let Some(rung) = self.rung(level.rank) else { return true };
            rungs.put(rung, level.amount);
            if let Some(row) = &mut row {
                row[rung] = level.queue;
            }
            self.summary |= 1 << (rung / 64);
            false
        });
        if levels.capacity() > 4 * levels.len() + SPARE {
            levels.shrink_to(2 * levels.len() + SPARE);
        }
        self.apart = levels;
        self.rungs = Some(rungs);
    }

    /// Returns the queue of a level with a rung, if orders are queued.
    #[inline(always)]
    pub(super) fn queue_near<'a>(&self, rank: Rank, rows: &'a Rows) -> Option<&'a Queue> {
        rows.row(self.row).zip(self.rung(rank)).map(|(row, rung)| &row[rung % rungs::COUNT])
    }

    /// The mutable form of [`queue_near`](Self::queue_near).
    #[inline(always)]
    pub(super) fn queue_near_mut<'a>(&self, rank: Rank, rows: &'a mut Rows) -> Option<&'a mut Queue> {
        rows.row_mut(self.row).zip(self.rung(rank)).map(|(row, rung)| &mut row[rung % rungs::COUNT])
    }

    /// Returns the queue of a level without a rung; `None` if there is no such level.
    #[inline(never)]
    pub(super) fn queue_apart(&mut self, rank: Rank) -> Option<&mut Queue> {
        let at = self.find_apart(rank).ok()?;
        Some(&mut self.apart[at].queue)
    }

    /// Returns the queue of a level; `None` if there is no such level.
    pub(super) fn queue(&self, rank: Rank, rows: &Rows) -> Option<Queue> {
        match self.rung(rank) {
            Some(_) => self.queue_near(rank, rows).copied(),
            None => Some(self.apart[self.find_apart(rank).ok()?].queue),
        }
    }

    /// Returns the levels, best first.
    pub(super) fn iter(&self, side: Side) -> BookLevels<'_> {
        let rungs = self.rungs.as_deref();
        let left = self.apart.len() + rungs.map_or(0, Rungs::len);
        BookLevels {
            ladder: self,
            side,
            rung: rungs.and_then(|rungs| rungs.below(rungs::COUNT)),
            apart: self.apart.len(),
            left,
        }
    }

    /// Returns the bytes outside the ladder itself.
    pub(super) fn bytes(&self) -> usize {
        self.apart.capacity() * size_of::<Apart>() + self.rungs.as_ref().map_or(0, |_| size_of::<Rungs>())
    }
}

/// Levels, best first.
#[derive(Debug)]
pub(super) struct BookLevels<'a> {
    ladder: &'a Ladder,
    side: Side,
    /// The next rung with a level.
    rung: Option<usize>,
    /// Number of remaining levels of the list.
    apart: usize,
    left: usize,
}

impl Iterator for BookLevels<'_> {
    type Item = BookLevel;

    fn next(&mut self) -> Option<BookLevel> {
        let Self { ladder, side, .. } = *self;
        let level = |best_rank: Rank, amount| BookLevel {
            price: Price4(rank(best_rank, side)),
            shares: shares(amount),
            orders: orders(amount),
        };
        let tick = u32::from(ladder.tick);
        let on_rung = self.rung.zip(ladder.rungs.as_deref());
        let on_rung = on_rung.map(|(rung, rungs)| (ladder.lowest + rung as u32 * tick, rung, rungs));
        let apart = self.apart.checked_sub(1).map(|at| (at, &ladder.apart[at]));
        let next = match (on_rung, apart) {
            (Some((rank, rung, rungs)), apart) if apart.is_none_or(|(_, apart)| apart.rank < rank) => {
                self.rung = rungs.below(rung);
                level(rank, rungs.amounts[rung])
            }
            (_, Some((at, apart))) => {
                self.apart = at;
                level(apart.rank, apart.amount)
            }
            _ => return None,
        };
        self.left -= 1;
        Some(next)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for BookLevels<'_> {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn means(most_apart: usize) -> Means {
        Means::new(2, most_apart, true)
    }

    #[test]
    fn a_ladder_has_the_size_that_is_stated() {
        assert_eq!(size_of::<Ladder>(), 64);
        assert_eq!(size_of::<Apart>(), 24);
        assert!(
            size_of::<Rungs>() < 8_500
                && size_of::<Rungs>() + size_of::<super::super::queues::Row>() < 16_800
        );
    }

    /// A market's random walk with stray prices, off-tick prices, and prices below a dollar.
    fn prices() -> impl Strategy<Value = Vec<u32>> {
        let step = prop_oneof![
            40 => (-30_i64..31).prop_map(|ticks| (ticks * 100, false)),
            4 => (-2_000_i64..2_000).prop_map(|ticks| (ticks * 100, false)),
            4 => (-5_000_i64..5_000).prop_map(|ticks| (ticks, true)),
            1 => any::<u32>().prop_map(|price| (i64::from(price), true)),
            1 => (-300_000_i64..300_000).prop_map(|ticks| (ticks * 100, true)),
        ];
        let start = prop_oneof![Just(1_000_000_i64), 0_i64..20_000, Just(i64::from(u32::MAX) - 50_000)];
        (start, prop::collection::vec(step, 10..1_500)).prop_map(|(start, steps)| {
            let mut middle = start;
            let price = |price: i64| price.clamp(0, i64::from(u32::MAX)) as u32;
            steps
                .into_iter()
                .map(|(step, strays)| {
                    if strays {
                        return price(middle + step);
                    }
                    middle = i64::from(price(middle + step));
                    price(middle)
                })
                .collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

        #[test]
        fn levels_are_those_of_a_sorted_map(prices in prices(), side in 0..2, seed in any::<u64>(), most_apart in 5_usize..200) {
            let side = if side == 0 { Side::Bid } else { Side::Ask };
            let mut means = means(most_apart);
            let mut ladder = Ladder::new();
            let mut model: BTreeMap<Rank, (u64, u32)> = BTreeMap::new();
            let mut live: Vec<(Rank, u32)> = Vec::new();
            let mut random = seed | 1;
            for price in prices {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let order = (rank(price, side), 1 + (random >> 40) as u32 % 1_000);
                let is_there = model.contains_key(&order.0);
                if ladder.change(side, order.0, ORDER + u64::from(order.1), true, &mut means) {
                    let level = model.entry(order.0).or_default();
                    *level = (level.0 + u64::from(order.1), level.1 + 1);
                    live.push(order);
                } else {
                    prop_assert!(!is_there && model.len() >= most_apart, "refused without need");
                }
                // Sometimes half of the orders are removed at once.
                let gone = if random >> 58 == 0 { live.len() / 2 } else { usize::from(random >> 63 == 0) };
                for _ in 0..gone.min(live.len()) {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let (rank, shares) = live.swap_remove((random >> 33) as usize % live.len());
                    let by = (ORDER + u64::from(shares)).wrapping_neg();
                    prop_assert!(ladder.change(side, rank, by, false, &mut means));
                    let level = model.entry(rank).or_default();
                    *level = (level.0 - u64::from(shares), level.1 - 1);
                    if level.1 == 0 { model.remove(&rank); }
                }
                let best = model.last_key_value().map_or(Best::default(), |(rank, (shares, orders))| {
                    Best { rank: *rank, amount: u64::from(*orders) << SHARES_BITS | shares }
                });
                prop_assert_eq!(ladder.best(), best);
                let levels = ladder.iter(side);
                let levels: Vec<_> =
                    levels.map(|level| (rank(level.price.0, side), (level.shares, level.orders))).collect();
                let wanted: Vec<_> = model.iter().rev().map(|(rank, level)| (*rank, *level)).collect();
                prop_assert_eq!(ladder.iter(side).len(), wanted.len());
                prop_assert_eq!(levels, wanted);
            }
            let most = (4 * most_apart.min(ladder.apart.len()) + 2 * SPARE) * size_of::<Apart>() + 8_500;
            prop_assert!(ladder.bytes() <= most, "{} of {most}", ladder.bytes());
        }
    }

    #[test]
    fn the_rungs_follow_the_market() {
        for side in [Side::Bid, Side::Ask] {
            let mut means = means(2_000);
            let mut ladder = Ladder::new();
            let mut live = std::collections::VecDeque::new();
            let (mut apart, mut laid_out) = (0, 0);
            let way = (5_000..20_000).chain((300..20_000).rev()).chain(300..9_000);
            for (count, ticks) in way.enumerate() {
                live.push_back(rank(ticks * 100, side));
                assert!(ladder.change(side, rank(ticks * 100, side), ORDER + 1, true, &mut means));
                if live.len() > 50 {
                    let oldest = live.pop_front().expect("there are many");
                    assert!(ladder.change(side, oldest, (ORDER + 1).wrapping_neg(), false, &mut means));
                }
                apart += usize::from(count > 50 && ladder.rung(rank(ticks * 100, side)).is_none());
                laid_out += usize::from(
                    count > 50
                        && ladder.rungs.as_ref().is_some_and(|rungs| rungs.strays == 0)
                        && !ladder.apart.is_empty(),
                );
            }
            assert!(ladder.rungs.is_some());
            assert!(apart < 43_000 / 20, "{apart} of 43,000 levels had no rung, {side:?}");
            assert!(laid_out < 43_000 / 10, "{laid_out}, {side:?}");
        }
    }

    #[test]
    fn a_level_is_full_before_its_shares_overflow() {
        let mut means = means(2_000);
        let mut ladder = Ladder::new();
        let mut taken = 0_u64;
        while ladder.change(Side::Bid, 5, ORDER + u64::from(u32::MAX), true, &mut means) {
            taken += 1;
        }
        assert_eq!(taken, 256);
        assert_eq!(shares(ladder.best().amount), 256 * u64::from(u32::MAX));
        const { assert!(MOST_ORDERS > 16_000_000) };
    }
}
