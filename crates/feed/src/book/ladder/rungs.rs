//! An array of levels at intervals of one tick.

use super::{Amount, Rank};

/// Number of rungs: most orders of a book are within five dollars of the best price, and on busy days stocks stay within that for minutes. 8 KiB.
pub(in super::super) const COUNT: usize = 1 << BITS;
pub(super) const BITS: u32 = 10;

/// Words of the bitmap: a summary word of 16 bits has one bit for each.
pub(super) const WORDS: usize = COUNT / 64;

/// Number of rungs below the best price when the rungs are placed.
const BELOW: u32 = COUNT as u32 / 4 * 3;

/// Below a dollar stocks are quoted in ten-thousandths, above it in cents (Regulation NMS, rule 612).
const DOLLAR: u32 = 10_000;
const CENT: u32 = 100;

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(in super::super) struct Rungs {
    /// A bit for each rung with orders.
    pub(super) words: [u64; WORDS],
    pub(super) amounts: [Amount; COUNT],
    /// Number of messages about levels outside the span since the last check of the rungs' position.
    pub(super) strays: u16,
}

impl Rungs {
    pub(super) const BLANK: Self = Self { words: [0; WORDS], amounts: [0; COUNT], strays: 0 };

    pub(super) fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns the highest rung with orders; `summary` is not 0.
    #[inline(always)]
    pub(super) fn highest(&self, summary: u16) -> usize {
        let word = 15 - summary.leading_zeros() as usize % 16;
        word * 64 + (63 - self.words[word % WORDS].leading_zeros() as usize % 64)
    }

    /// Returns the next rung with orders below `rung`.
    pub(super) fn below(&self, rung: usize) -> Option<usize> {
        let (mut at, bit) = (rung / 64, rung % 64);
        let mut word = self.words.get(at).map_or(0, |word| word & ((1 << bit) - 1));
        while word == 0 {
            at = at.checked_sub(1)?;
            word = self.words[at];
        }
        Some(at * 64 + 63 - word.leading_zeros() as usize)
    }

    /// Removes every level, and passes it to `each`.
    pub(super) fn drain(&mut self, mut each: impl FnMut(usize, Amount)) {
        let mut next = self.below(COUNT);
        while let Some(rung) = next {
            next = self.below(rung);
            each(rung, std::mem::take(&mut self.amounts[rung]));
        }
        self.words = [0; WORDS];
    }

    pub(super) fn put(&mut self, rung: usize, amount: Amount) {
        self.amounts[rung] = amount;
        self.words[rung / 64] |= 1 << (rung % 64);
    }
}

/// Returns 2^31 / tick, rounded up.
#[inline(always)]
pub(super) const fn per_tick(tick: u16) -> u32 {
    // There are only two ticks, and a division takes a dozen cycles.
    if tick as u32 == CENT { (1_u32 << 31).div_ceil(CENT) } else { 1 << 31 }
}

/// Returns the rank of the lowest rung and the tick for rungs around a best price of this rank.
pub(super) fn around(best: Rank, side: super::Side) -> (Rank, u16) {
    let price = super::rank(best, side);
    let tick = if price < DOLLAR { 1 } else { CENT };
    let (best, tick) = (i64::from(price - price % tick), i64::from(tick));
    let span = tick << BITS;
    let highest = (i64::from(u32::MAX) - span) / tick * tick;
    let lowest = match side {
        super::Side::Bid => (best - tick * i64::from(BELOW)).clamp(0, highest) as u32,
        // The lowest rank of an ask is that of the highest price.
        super::Side::Ask => {
            let price =
                (best + tick * i64::from(BELOW)).clamp(span - tick, i64::from(u32::MAX) / tick * tick);
            super::rank(price as u32, side)
        }
    };
    (lowest, tick as u16)
}
