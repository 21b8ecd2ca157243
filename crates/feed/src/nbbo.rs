//! The best bid and offer of one symbol over several venues.
//!
//! **The rule.** Per side: the best price; at an equal price the venue with the greater size; at an equal size the
//! older quote; for quotes of equal age the lower venue number. The size is that venue's own: sizes of several venues are not added up, as in
//! the consolidated tapes of the United States (UTP Plan: price, size, time). A venue whose data is not current, or on which the symbol is not
//! trading normally, does not take part.
//!
//! Differences from the official best: the feeds are direct ones, so odd lots count (a tape counts round lots), and only
//! the configured venues take part.

use std::cmp::{Ordering, Reverse};

use tapeline_omm::{FieldListEncoder, Full, fid, rwf::Time};

use crate::draft::{self, DraftQuote, Price};

/// The maximum number of venues.
pub const MAX_VENUES: usize = 16;

/// The maximum length of a venue's name in characters: that of BID_SRC and ASK_SRC.
pub const MAX_VENUE_NAME: usize = 6;

/// A venue, by its index among the participants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Venue(pub u8);

/// The best quote of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BestQuote {
    /// Price and the venue's own size.
    pub quote: DraftQuote,
    /// The venue of the quote.
    pub venue: Venue,
}

/// The relation of best bid and best ask. The values are those of BOOK_STATE, field 6516.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Market {
    /// The bid is below the ask.
    Normal = 1,
    /// The bid is equal to the ask.
    Locked = 2,
    /// The bid is above the ask.
    Crossed = 3,
    /// The bid or the ask is missing.
    OneSided = 4,
    /// The bid and the ask are missing.
    Empty = 5,
}

/// The best bid and offer over all venues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nbbo {
    /// Best bid.
    pub bid: Option<BestQuote>,
    /// Best ask.
    pub ask: Option<BestQuote>,
}

impl Nbbo {
    /// The maximum number of bytes that [`encode`](Self::encode) writes, with the list's own header.
    pub const MAX_BYTES: usize = 96;

    /// Returns the relation of best bid and best ask.
    #[must_use]
    pub fn market(&self) -> Market {
        match (self.bid, self.ask) {
            (Some(bid), Some(ask)) => match compare(bid.quote.price, ask.quote.price) {
                Ordering::Less => Market::Normal,
                Ordering::Equal => Market::Locked,
                Ordering::Greater => Market::Crossed,
            },
            (None, None) => Market::Empty,
            _ => Market::OneSided,
        }
    }

    /// Writes all fields, in ascending order of their ids: BID, ASK, BIDSIZE, ASKSIZE, BID_SRC, ASK_SRC, BOOK_STATE and QUOTIM_NS, which is
    /// `quote_ns`, ns since midnight GMT. `name` returns a venue's short name.
    ///
    /// # Errors
    /// [`Full`]: the buffer is too short.
    pub fn encode<'n>(
        &self,
        fields: &mut FieldListEncoder<'_>,
        quote_ns: u64,
        name: impl Fn(Venue) -> &'n str,
    ) -> Result<(), Full> {
        draft::price(fields, fid::BID, self.bid.map(|best| best.quote.price))?;
        draft::price(fields, fid::ASK, self.ask.map(|best| best.quote.price))?;
        draft::size(fields, fid::BIDSIZE, self.bid.map(|best| best.quote.quantity()))?;
        draft::size(fields, fid::ASKSIZE, self.ask.map(|best| best.quote.quantity()))?;
        for (source, side) in [(fid::BID_SRC, self.bid), (fid::ASK_SRC, self.ask)] {
            match side {
                Some(best) => fields.rmtes(source, name(best.venue).as_bytes())?,
                None => fields.blank(source)?,
            }
        }
        fields.enumeration(fid::BOOK_STATE, self.market() as u16)?;
        fields.time(fid::QUOTIM_NS, Time::from_ns_of_day(quote_ns))
    }
}

/// One side of a venue's quote, with the order of its last change.
#[derive(Clone, Copy, Debug)]
struct Standing {
    quote: Option<DraftQuote>,
    since: u64,
}

/// The quotes of one venue.
#[derive(Clone, Copy, Debug)]
struct Shown {
    bid: Standing,
    ask: Standing,
    /// `true` if the symbol is trading there.
    trades: bool,
}

const NOTHING: Standing = Standing { quote: None, since: 0 };

const NOT_SHOWN: Shown = Shown { bid: NOTHING, ask: NOTHING, trades: false };

/// The best bid and offer of every symbol over several venues.
///
/// The caller numbers symbols densely from 0. Memory is about 100 bytes for each symbol and each venue, up to the
/// highest number in use, at most `max_symbols`.
#[derive(Debug)]
pub struct Consolidated {
    /// One flag for each venue.
    current: Vec<bool>,
    /// The quotes of all venues for the first symbol, then for the second, and so on.
    shown: Vec<Shown>,
    best: Vec<Nbbo>,
    max_symbols: usize,
    /// The number of quote changes, which orders quotes by age.
    order: u64,
}

impl Consolidated {
    /// Creates a table without quotes of `venues` venues, 1 to [`MAX_VENUES`]; all are current.
    #[must_use]
    pub fn new(venues: usize, max_symbols: usize) -> Self {
        let current = vec![true; venues.clamp(1, MAX_VENUES)];
        Self { current, shown: Vec::new(), best: Vec::new(), max_symbols, order: 0 }
    }

    /// Sets a venue's quote of a symbol; `trades` is `true` if the symbol is trading there. Returns the new best if it changed.
    ///
    /// Costs a test of each venue; allocates only for a symbol beyond the highest so far. A symbol beyond the limit, or an unknown venue, changes
    /// nothing.
    pub fn show(
        &mut self,
        venue: Venue,
        symbol: u32,
        bid: Option<DraftQuote>,
        ask: Option<DraftQuote>,
        trades: bool,
    ) -> Option<Nbbo> {
        let (at, venues) = (symbol as usize, self.current.len());
        if usize::from(venue.0) >= venues || at >= self.max_symbols {
            return None;
        }
        if at >= self.best.len() {
            self.best.resize(at + 1, Nbbo::default());
            self.shown.resize((at + 1) * venues, NOT_SHOWN);
        }
        let all = &mut self.shown[at * venues..][..venues];
        let shown = &mut all[usize::from(venue.0)];
        self.order += 1;
        for (standing, quote) in [(&mut shown.bid, bid), (&mut shown.ask, ask)] {
            if standing.quote != quote {
                *standing = Standing { quote, since: self.order };
            }
        }
        shown.trades = trades;
        replace(&mut self.best[at], all, &self.current)
    }

    /// Sets a venue's data to current or not. Calls `changed` for each symbol whose best changes as a result.
    pub fn set_current(&mut self, venue: Venue, is_current: bool, changed: impl FnMut(u32, Nbbo)) {
        let Some(current) = self.current.get_mut(usize::from(venue.0)) else { return };
        if *current != is_current {
            *current = is_current;
            self.replace_all(changed);
        }
    }

    /// Drops all quotes of a venue at the start of a session. `changed` as in [`set_current`](Self::set_current).
    pub fn clear(&mut self, venue: Venue, changed: impl FnMut(u32, Nbbo)) {
        for all in self.shown.chunks_mut(self.current.len()) {
            if let Some(shown) = all.get_mut(usize::from(venue.0)) {
                *shown = NOT_SHOWN;
            }
        }
        self.replace_all(changed);
    }

    fn replace_all(&mut self, mut changed: impl FnMut(u32, Nbbo)) {
        for ((best, all), symbol) in self.best.iter_mut().zip(self.shown.chunks(self.current.len())).zip(0..)
        {
            if let Some(best) = replace(best, all, &self.current) {
                changed(symbol, best);
            }
        }
    }

    /// Returns the last best bid and offer of a symbol.
    #[must_use]
    pub fn best(&self, symbol: u32) -> Nbbo {
        self.best.get(symbol as usize).copied().unwrap_or_default()
    }
}

/// Determines the best of all quotes; returns it if it changed.
fn replace(before: &mut Nbbo, shown: &[Shown], current: &[bool]) -> Option<Nbbo> {
    let (mut bid, mut ask) = (None, None);
    for ((shown, current), venue) in shown.iter().zip(current).zip(0..) {
        if shown.trades && *current {
            better(&mut bid, &shown.bid, Venue(venue), Ordering::Greater);
            better(&mut ask, &shown.ask, Venue(venue), Ordering::Less);
        }
    }
    let best = Nbbo { bid: bid.map(|(best, _)| best), ask: ask.map(|(best, _)| best) };
    (best != std::mem::replace(before, best)).then_some(best)
}

/// Replaces the best so far by a venue's side if the rule prefers it. `wanted` is the ordering of a better price compared with a worse one.
#[inline]
fn better(best: &mut Option<(BestQuote, u64)>, standing: &Standing, venue: Venue, wanted: Ordering) {
    let Some(quote) = standing.quote else { return };
    let is_better = match best {
        None => true,
        Some((held, since)) => match compare(quote.price, held.quote.price) {
            Ordering::Equal => {
                let sizes = compare_sizes(quote, held.quote);
                sizes.then(Reverse(standing.since).cmp(&Reverse(*since))) == Ordering::Greater
            }
            other => other == wanted,
        },
    };
    if is_better {
        *best = Some((BestQuote { quote, venue }, standing.since));
    }
}

/// Compares sizes that may have different decimals.
#[inline]
fn compare_sizes(left: DraftQuote, right: DraftQuote) -> Ordering {
    if left.size_decimals == right.size_decimals {
        return left.size.cmp(&right.size);
    }
    // At most 2^64 × 10^14.
    let scaled = |quote: DraftQuote, other: DraftQuote| {
        let more = other.size_decimals.saturating_sub(quote.size_decimals).min(14);
        u128::from(quote.size) * 10_u128.pow(u32::from(more))
    };
    scaled(left, right).cmp(&scaled(right, left))
}

/// Compares prices that may have different decimals.
#[inline]
fn compare(left: Price, right: Price) -> Ordering {
    if left.decimals == right.decimals {
        return left.mantissa.cmp(&right.mantissa);
    }
    // At most 2^63 × 10^19: prices have few decimals, and more than 19 count as 19.
    let scaled = |price: Price, other: Price| {
        let more = other.decimals.saturating_sub(price.decimals).min(19);
        i128::from(price.mantissa) * 10_i128.pow(u32::from(more))
    };
    scaled(left, right).cmp(&scaled(right, left))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quote(cents: i64, size: u64) -> Option<DraftQuote> {
        Some(DraftQuote { price: Price { mantissa: cents, decimals: 2 }, size, size_decimals: 0 })
    }

    #[test]
    fn price_then_size_then_age() {
        let mut all = Consolidated::new(3, 10);
        let best = all.show(Venue(0), 0, quote(1000, 100), quote(1002, 100), true).unwrap();
        assert_eq!((best.bid.unwrap().venue, best.market()), (Venue(0), Market::Normal));
        // The same price and size: the older quote stays, and nothing changes.
        assert_eq!(all.show(Venue(1), 0, quote(1000, 100), quote(1003, 900), true), None);
        let best = all.show(Venue(2), 0, quote(1000, 200), None, true).unwrap();
        assert_eq!((best.bid.unwrap().venue, best.bid.unwrap().quote.size), (Venue(2), 200));
        let best = all.show(Venue(1), 0, quote(1001, 1), quote(1001, 1), true).unwrap();
        assert_eq!((best.bid.unwrap().venue, best.market()), (Venue(1), Market::Locked));
        let best = all.show(Venue(2), 0, quote(1002, 1), None, true).unwrap();
        assert_eq!(best.market(), Market::Crossed);
        // A quote that leaves the top and returns is the younger one.
        all.show(Venue(2), 0, None, None, true).unwrap();
        all.show(Venue(1), 0, None, None, true).unwrap();
        assert_eq!(all.best(0).bid.unwrap().venue, Venue(0));
        assert_eq!(all.show(Venue(1), 0, quote(1000, 100), None, true), None);
    }

    #[test]
    fn decimals_are_brought_together() {
        let fine =
            |mantissa| Some(DraftQuote { price: Price { mantissa, decimals: 4 }, size: 1, size_decimals: 0 });
        let mut all = Consolidated::new(2, 1);
        all.show(Venue(0), 0, quote(1000, 1), None, true).unwrap();
        assert_eq!(all.show(Venue(1), 0, fine(99_999), None, true), None);
        let best = all.show(Venue(1), 0, fine(100_001), quote(1001, 1), true).unwrap();
        assert_eq!((best.bid.unwrap().venue, best.market()), (Venue(1), Market::Normal));
        let far = |mantissa, decimals| Price { mantissa, decimals };
        assert_eq!(compare(far(i64::MAX, 0), far(i64::MAX, 255)), Ordering::Greater);
        assert_eq!(compare(far(10, 1), far(1, 0)), Ordering::Equal);
    }

    #[test]
    fn who_is_not_current_or_halted_takes_no_part() {
        let mut all = Consolidated::new(2, 10);
        all.show(Venue(0), 3, quote(1000, 1), None, true).unwrap();
        all.show(Venue(1), 3, quote(1001, 1), None, true).unwrap();
        let best = all.show(Venue(1), 3, quote(1001, 1), None, false).unwrap();
        assert_eq!(best.bid.unwrap().venue, Venue(0));
        let mut changed = Vec::new();
        all.set_current(Venue(0), false, |symbol, best| changed.push((symbol, best)));
        assert_eq!(changed, [(3, Nbbo::default())]);
        assert_eq!(all.best(3).market(), Market::Empty);
        all.set_current(Venue(0), false, |_, _| panic!("it was so already"));
        all.set_current(Venue(0), true, |symbol, best| changed.push((symbol, best)));
        assert_eq!(changed[1].1.bid.unwrap().quote.price.mantissa, 1000);
        all.clear(Venue(0), |symbol, best| changed.push((symbol, best)));
        assert_eq!(changed[2], (3, Nbbo::default()));
    }

    #[test]
    fn beyond_the_bounds_nothing_happens() {
        let mut all = Consolidated::new(99, 2);
        assert_eq!(all.show(Venue(0), 2, quote(1, 1), None, true), None);
        assert_eq!(all.show(Venue(16), 0, quote(1, 1), None, true), None);
        all.set_current(Venue(16), false, |_, _| panic!("no such venue"));
        all.clear(Venue(16), |_, _| panic!("no such venue"));
        assert!(size_of::<Shown>() <= 104, "{}", size_of::<Shown>());
    }
}
