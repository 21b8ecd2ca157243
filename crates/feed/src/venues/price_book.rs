//! A book of price levels, as all venues send it: a level's new size, or size zero for no level.

use super::VenueFault;
use super::decimal::{Decimal, at_scale};
use crate::draft::{DraftQuote, Price};
use crate::itch::Side;
use crate::levels::Level;

/// Number of best levels to examine before the search of the others: most changes are among them.
const NEAR: usize = 8;

/// A change of one level: its price and its new size, zero for none.
pub(super) type Change = (Decimal, Decimal);

/// A level. On the ask side the rank is the inverted price, so that the better price has the greater rank on both sides.
#[derive(Clone, Copy, Debug)]
struct Rung {
    rank: i64,
    size: i64,
}

/// The levels of one side, the best last, so that changes near the best move little memory. Dropped levels stay in front of `from` until they are as many
/// as the others: a full book drops one for each that comes, and would move all others each time.
#[derive(Debug)]
struct Rungs {
    side: Side,
    rungs: Vec<Rung>,
    from: usize,
}

impl Rungs {
    const fn new(side: Side) -> Self {
        Self { side, rungs: Vec::new(), from: 0 }
    }

    fn clear(&mut self) {
        self.rungs.clear();
        self.from = 0;
    }

    #[inline]
    fn live(&self) -> &[Rung] {
        &self.rungs[self.from..]
    }

    #[inline]
    const fn rank(&self, price: i64) -> i64 {
        match self.side {
            Side::Bid => price,
            Side::Ask => !price,
        }
    }

    #[inline]
    fn find(&self, rank: i64) -> Result<usize, usize> {
        let rungs = self.live();
        let near = rungs.len().saturating_sub(NEAR);
        for (at, rung) in rungs.iter().enumerate().skip(near).rev() {
            if rung.rank <= rank {
                return if rung.rank == rank { Ok(at) } else { Err(at + 1) };
            }
        }
        rungs[..near].binary_search_by_key(&rank, |rung| rung.rank)
    }

    #[inline]
    fn set(&mut self, price: i64, size: i64) {
        let rank = self.rank(price);
        match (self.find(rank), size) {
            (Ok(at), 0) => _ = self.rungs.remove(self.from + at),
            (Ok(at), size) => self.rungs[self.from + at].size = size,
            (Err(_), 0) => {}
            (Err(at), size) => self.rungs.insert(self.from + at, Rung { rank, size }),
        }
    }

    /// Drops the worst levels beyond `most`; returns their number.
    fn limit(&mut self, most: usize) -> usize {
        let excess = self.live().len().saturating_sub(most);
        self.from += excess;
        if excess > 0 && self.from >= self.live().len() {
            self.rungs.drain(..self.from);
            self.from = 0;
        }
        excess
    }

    /// Returns price and size of each level, best first.
    fn iter(&self) -> impl ExactSizeIterator<Item = (i64, i64)> + '_ {
        self.live().iter().rev().map(|rung| (self.rank(rung.rank), rung.size))
    }
}

/// The levels of both sides. All prices have the same number of decimals, and so have all sizes: as many as the longest number so far. Memory: 16
/// bytes for each level, up to twice the limit.
#[derive(Debug)]
pub struct PriceBook {
    bids: Rungs,
    asks: Rungs,
    price_decimals: u8,
    size_decimals: u8,
    most: usize,
    dropped: u64,
}

impl PriceBook {
    /// Creates an empty book of at most `most` levels on each side.
    pub(super) const fn new(most: usize) -> Self {
        Self {
            bids: Rungs::new(Side::Bid),
            asks: Rungs::new(Side::Ask),
            price_decimals: 0,
            size_decimals: 0,
            most,
            dropped: 0,
        }
    }

    pub(super) fn clear(&mut self) {
        self.bids.clear();
        self.asks.clear();
    }

    /// Raises the decimals to those of the changes, and checks that every number of the changes fits.
    ///
    /// # Errors
    /// [`VenueFault::Number`]: a number does not fit, or a size is negative.
    pub(super) fn fit(&mut self, changes: &[Change]) -> Result<(), VenueFault> {
        let (mut price_decimals, mut size_decimals) = (self.price_decimals, self.size_decimals);
        for (price, size) in changes {
            price_decimals = price_decimals.max(price.decimals);
            size_decimals = size_decimals.max(size.decimals);
        }
        for (price, size) in changes {
            let fits = at_scale(*price, price_decimals).is_some()
                && at_scale(*size, size_decimals).is_some_and(|size| size >= 0);
            if !fits {
                return Err(VenueFault::Number);
            }
        }
        if (price_decimals, size_decimals) != (self.price_decimals, self.size_decimals) {
            self.rescale(price_decimals, size_decimals)?;
        }
        Ok(())
    }

    /// Converts all levels to more decimals. Rare: at the beginning, and when a longer number arrives.
    #[cold]
    fn rescale(&mut self, price_decimals: u8, size_decimals: u8) -> Result<(), VenueFault> {
        let convert = |rungs: &Rungs| -> Option<Vec<Rung>> {
            let one = |rung: &Rung| {
                let price = Decimal { mantissa: rungs.rank(rung.rank), decimals: self.price_decimals };
                let size = Decimal { mantissa: rung.size, decimals: self.size_decimals };
                let rank = rungs.rank(at_scale(price, price_decimals)?);
                Some(Rung { rank, size: at_scale(size, size_decimals)? })
            };
            rungs.live().iter().map(one).collect()
        };
        let (bids, asks) = convert(&self.bids).zip(convert(&self.asks)).ok_or(VenueFault::Number)?;
        (self.bids.rungs, self.bids.from) = (bids, 0);
        (self.asks.rungs, self.asks.from) = (asks, 0);
        (self.price_decimals, self.size_decimals) = (price_decimals, size_decimals);
        Ok(())
    }

    /// Applies changes that [fit](Self::fit). Beyond the limit the worst levels are dropped. Costs a search for each change; allocates only for
    /// more levels than ever before.
    #[inline]
    pub(super) fn apply(&mut self, side: Side, changes: &[Change]) {
        let (price_decimals, size_decimals) = (self.price_decimals, self.size_decimals);
        let most = self.most;
        let rungs = match side {
            Side::Bid => &mut self.bids,
            Side::Ask => &mut self.asks,
        };
        for (price, size) in changes {
            if let (Some(price), Some(size)) =
                (at_scale(*price, price_decimals), at_scale(*size, size_decimals))
            {
                rungs.set(price, size);
            }
        }
        self.dropped += rungs.limit(most) as u64;
    }

    /// Reduces each side to its best `most` levels, for venues that send no more.
    pub(super) fn limit(&mut self, most: usize) {
        self.bids.limit(most);
        self.asks.limit(most);
    }

    const fn side(&self, side: Side) -> &Rungs {
        match side {
            Side::Bid => &self.bids,
            Side::Ask => &self.asks,
        }
    }

    /// Returns a price and a size as a quote with the book's decimals, or with their own if they do not fit.
    pub(super) fn quote(&self, (price, size): Change) -> DraftQuote {
        let scaled = |number: Decimal, decimals| match at_scale(number, decimals) {
            Some(mantissa) => Decimal { mantissa, decimals },
            None => number,
        };
        let (price, size) = (scaled(price, self.price_decimals), scaled(size, self.size_decimals));
        DraftQuote { price, size: size.mantissa.unsigned_abs(), size_decimals: size.decimals }
    }

    /// Returns the number of levels of a side.
    #[must_use]
    pub fn len(&self, side: Side) -> usize {
        self.side(side).live().len()
    }

    /// Returns `true` if neither side has a level.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len(Side::Bid) == 0 && self.len(Side::Ask) == 0
    }

    /// Returns the levels of a side, best first.
    pub fn quotes(&self, side: Side) -> impl ExactSizeIterator<Item = DraftQuote> + '_ {
        self.side(side).iter().map(|(price, size)| DraftQuote {
            price: Price { mantissa: price, decimals: self.price_decimals },
            size: size.unsigned_abs(),
            size_decimals: self.size_decimals,
        })
    }

    /// Returns the best level of a side.
    #[inline]
    #[must_use]
    pub fn best(&self, side: Side) -> Option<DraftQuote> {
        self.quotes(side).next()
    }

    /// Returns the best levels of both sides for publication. Venues do not send the number of orders.
    pub(super) fn shown(&self, most: usize) -> impl Iterator<Item = Level> + '_ {
        [Side::Bid, Side::Ask].into_iter().flat_map(move |side| {
            self.quotes(side).take(most).map(move |DraftQuote { price, size, size_decimals }| Level {
                side,
                price,
                size,
                size_decimals,
                orders: 0,
            })
        })
    }

    /// Returns the number of levels that were dropped because a side had reached its limit.
    #[must_use]
    pub const fn dropped_levels(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn change(price: i64, size: i64) -> Change {
        (Decimal { mantissa: price, decimals: 1 }, Decimal { mantissa: size, decimals: 3 })
    }

    fn shown(book: &PriceBook, side: Side) -> Vec<(i64, u64)> {
        book.quotes(side).map(|quote| (quote.price.mantissa, quote.size)).collect()
    }

    proptest! {
        /// The book is what a sorted map makes of the same changes.
        #[test]
        fn a_sorted_map_makes_the_same_of_it(
            changes in prop::collection::vec((any::<bool>(), 0_i64..60, 0_i64..4), 0..300),
            most in 1_usize..40,
        ) {
            let mut book = PriceBook::new(most);
            let mut maps = [BTreeMap::new(), BTreeMap::new()];
            for (is_bid, price, size) in changes {
                let side = if is_bid { Side::Bid } else { Side::Ask };
                let change = [change(price, size)];
                book.fit(&change).unwrap();
                book.apply(side, &change);
                let map = &mut maps[usize::from(!is_bid)];
                if size == 0 { map.remove(&price); } else { map.insert(price, size as u64); }
                if map.len() > most {
                    if is_bid { map.pop_first(); } else { map.pop_last(); }
                }
            }
            let bids: Vec<_> = maps[0].iter().rev().map(|(price, size)| (*price, *size)).collect();
            let asks: Vec<_> = maps[1].iter().map(|(price, size)| (*price, *size)).collect();
            prop_assert_eq!(shown(&book, Side::Bid), bids);
            prop_assert_eq!(shown(&book, Side::Ask), asks);
        }
    }

    #[test]
    fn longer_numbers_raise_the_decimals_of_all() {
        let mut book = PriceBook::new(10);
        let first = [change(617, 5)];
        book.fit(&first).unwrap();
        book.apply(Side::Bid, &first);
        let longer = [(Decimal { mantissa: 61_655, decimals: 3 }, Decimal { mantissa: 1, decimals: 0 })];
        book.fit(&longer).unwrap();
        book.apply(Side::Bid, &longer);
        assert_eq!(shown(&book, Side::Bid), [(61_700, 5), (61_655, 1_000)]);
        let huge = [(Decimal { mantissa: i64::MAX, decimals: 0 }, Decimal { mantissa: 1, decimals: 0 })];
        assert_eq!(book.fit(&huge), Err(VenueFault::Number));
        assert_eq!(book.fit(&[change(1, -1)]), Err(VenueFault::Number));
        assert_eq!(shown(&book, Side::Bid).len(), 2);
    }
}
