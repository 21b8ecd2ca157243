//! An array of levels at intervals of one tick.

use crate::processor::prefetch;

/// Number of rungs: a window of 2.56 dollars, in which nearly all displayed levels lie. 1 KiB.
pub(super) const COUNT: usize = 256;

/// Words of the bitmap.
const WORDS: usize = COUNT / 64;

/// Number of rungs below the best price when the rungs are placed.
const BELOW: i64 = COUNT as i64 / 4 * 3;

/// Below a dollar stocks are quoted in ten-thousandths, above it in cents (Regulation NMS, rule 612).
const DOLLAR: i64 = 10_000;
const CENT: i64 = 100;

/// Prices from here on have no rungs: no security costs so much, and nothing overflows below it.
const ABSURD: u64 = 1 << 60;

/// Sizes by their distance from the lowest rank, and a bitmap of those that are not 0.
#[derive(Clone, Debug)]
pub(super) struct SizeRungs {
    /// Rank of the lowest rung.
    lowest: i64,
    /// Distance from the lowest rung to one after the highest; 0 without rungs.
    span: u64,
    /// 2³¹ / tick, rounded up.
    per_tick: u64,
    words: [u64; WORDS],
    sizes: Option<Box<[u32; COUNT]>>,
}

impl SizeRungs {
    pub(super) const NONE: Self = Self { lowest: 0, span: 0, per_tick: 0, words: [0; WORDS], sizes: None };

    pub(super) const fn is_none(&self) -> bool {
        self.span == 0
    }

    const fn tick(&self) -> u64 {
        self.span / COUNT as u64
    }

    /// Returns the rung of a rank.
    #[inline(always)]
    pub(super) fn rung(&self, rank: i64) -> Option<usize> {
        let above = rank.wrapping_sub(self.lowest) as u64;
        // Exact within the span, which is less than 2¹⁵: the error of `per_tick` is less than 1.
        let rung = above.wrapping_mul(self.per_tick) >> 31;
        // Without rungs the span is 0, and no number is below it.
        (above < self.span && rung.wrapping_mul(self.tick()) == above).then_some(rung as usize)
    }

    /// Sets the size of a rung, and returns its previous size; `None` without rungs.
    #[inline(always)]
    pub(super) fn set(&mut self, rung: usize, size: u32) -> Option<u32> {
        let place = &mut self.sizes.as_mut()?[rung % COUNT];
        let before = std::mem::replace(place, size);
        let word = &mut self.words[rung / 64 % WORDS];
        *word = (*word & !(1 << (rung % 64))) | u64::from(size != 0) << (rung % 64);
        Some(before)
    }

    /// Prefetches the size of a rung.
    #[inline]
    pub(super) fn prefetch(&self, rung: usize) {
        if let Some(sizes) = &self.sizes {
            prefetch(&sizes[rung % COUNT]);
        }
    }

    /// Returns rank and size of a rung's level.
    #[inline]
    pub(super) fn level(&self, rung: usize) -> Option<(i64, u32)> {
        let size = *self.sizes.as_ref()?.get(rung)?;
        Some((self.lowest + (rung as u64 * self.tick()) as i64, size))
    }

    /// Returns rank and size of the best level.
    #[inline]
    pub(super) fn best(&self) -> Option<(i64, u32)> {
        self.below(COUNT).and_then(|rung| self.level(rung))
    }

    /// Returns the rank of the worst level.
    pub(super) fn worst(&self) -> Option<i64> {
        let (at, word) = self.words.iter().enumerate().find(|(_, word)| **word != 0)?;
        self.level(at * 64 + word.trailing_zeros() as usize).map(|(rank, _)| rank)
    }

    /// Returns the next rung with a level below `rung`.
    #[inline]
    pub(super) fn below(&self, rung: usize) -> Option<usize> {
        let (mut at, bit) = (rung / 64, rung % 64);
        let mut word = self.words.get(at).map_or(0, |word| word & ((1 << bit) - 1));
        while word == 0 {
            at = at.checked_sub(1)?;
            word = self.words[at];
        }
        Some(at * 64 + 63 - word.leading_zeros() as usize)
    }

    /// Returns `true` if a rank lies within the span, on a rung or between two.
    pub(super) const fn spans(&self, rank: i64) -> bool {
        (rank.wrapping_sub(self.lowest) as u64) < self.span
    }

    /// Returns `true` if enough rungs lie below a best level of this rank, and some above.
    pub(super) fn suit(&self, best: i64) -> bool {
        let above = best.wrapping_sub(self.lowest) as u64;
        (self.span / 4..self.span).contains(&above)
    }

    /// Creates empty rungs around a best level of this rank, three quarters of them below it. `price` is the level's; `None` if it is implausible.
    pub(super) fn around(best: i64, price: i64) -> Option<Self> {
        if price.unsigned_abs() >= ABSURD {
            return None;
        }
        let tick = if price < DOLLAR { 1 } else { CENT };
        let on_tick = best - (best - rank_of_zero(best, price)).rem_euclid(tick);
        Some(Self {
            lowest: on_tick - BELOW * tick,
            span: (tick * COUNT as i64) as u64,
            per_tick: (1_u64 << 31).div_ceil(tick as u64),
            words: [0; WORDS],
            sizes: Some(Box::new([0; COUNT])),
        })
    }
}

/// Returns the rank of a price of 0 on the side on which `price` has the rank `rank`.
const fn rank_of_zero(rank: i64, price: i64) -> i64 {
    if rank == price { 0 } else { -1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tick_of_the_window_has_its_rung() {
        for (rank, price, tick) in [
            (1_234_567, 1_234_567, 100),
            (!1_234_567, 1_234_567, 100),
            (9_999, 9_999, 1),
            (!9_999, 9_999, 1),
            (-50, -50, 1),
        ] {
            assert_eq!(SizeRungs::NONE.rung(rank), None);
            let rungs = SizeRungs::around(rank, price).unwrap();
            assert!(rungs.spans(rank) && rungs.suit(rank));
            let lowest = rungs.lowest;
            for at in 0..COUNT as i64 {
                assert_eq!(rungs.rung(lowest + at * tick), Some(at as usize));
                for between in 1..tick {
                    assert_eq!(rungs.rung(lowest + at * tick + between), None);
                }
            }
            assert_eq!((rungs.rung(lowest - tick), rungs.rung(lowest + COUNT as i64 * tick)), (None, None));
            // Prices on a tick have rungs, others do not.
            let price = if rank == price { lowest } else { !lowest };
            assert_eq!(price.rem_euclid(tick), 0);
        }
        assert!(
            SizeRungs::around(i64::MAX, i64::MAX).is_none()
                && SizeRungs::around(i64::MAX, i64::MIN).is_none()
        );
    }
}
