//! The books of all symbols, and the effect of each message on them.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::ladder::{IexLadder, Set};
use super::{IexLastTrade, IexLevel, IexMessage, IexPrice, IexVolume, Listing, PriceLevel};
use crate::draft::Changed;
use crate::itch::{Side, Symbol};
use crate::processor::prefetch;

/// The limits of the books.
///
/// Memory: under 800 bytes for each symbol; 1 KiB for each side with more than four levels, which holds those near the best; 16 bytes (up to 32
/// while they grow) for each of the others. So at most 67 KiB for a symbol with 1,024 levels a side; a busy symbol has a hundred on a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IexSettings {
    /// Maximum number of symbols. Messages about further symbols are counted and ignored.
    pub max_symbols: usize,
    /// Maximum number of price levels of one side of one symbol. At the limit a better level replaces the worst one, and a worse level is ignored;
    /// both are counted.
    pub max_levels: usize,
}

impl Default for IexSettings {
    /// 16,384 symbols, twice those listed on a busy day, and 1,024 levels a side.
    fn default() -> Self {
        Self { max_symbols: 16_384, max_levels: 1_024 }
    }
}

/// The number of a symbol: dense, from 0, in the order of appearance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IexInstrument(pub u32);

/// The best price of a side and the shares at that price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct IexQuote {
    /// Price; 0 without a quote.
    pub price: IexPrice,
    /// Shares; 0 without a quote.
    pub size: u32,
}

impl IexQuote {
    /// No quote.
    pub const NONE: Self = Self { price: IexPrice(0), size: 0 };

    /// Returns `true` if there is a quote.
    #[inline]
    #[must_use]
    pub const fn is_some(self) -> bool {
        self.size != 0
    }

    /// Creates a quote as TOPS sends it: zero shares are no quote, at any price.
    #[inline]
    const fn new(price: IexPrice, size: u32) -> Self {
        if size == 0 { Self::NONE } else { Self { price, size } }
    }
}

/// The best quote of both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct IexTop {
    /// Highest bid.
    pub bid: IexQuote,
    /// Lowest ask.
    pub ask: IexQuote,
}

/// The changes by a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct IexChange {
    /// The book; `None` for a message without a symbol, or with one beyond the limit.
    pub instrument: Option<IexInstrument>,
    /// `true` if the symbol is new.
    pub new: bool,
    /// The changed fields: the best of a side also changes if it appears or disappears, the status with its reason and with the operational halt. See
    /// [`IexVolume::last`] for a trade and [`Listing::auction`] for the state of an auction; the volume does not include a broken trade.
    pub fields: Changed,
}

/// The counters of messages that could not be applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IexCounters {
    /// Updates to zero shares of a price that had none.
    pub no_level: u64,
    /// Levels that were ignored or replaced: [`IexSettings::max_levels`].
    pub full_side: u64,
    /// Messages about a symbol beyond [`IexSettings::max_symbols`].
    pub refused: u64,
    /// Messages whose symbol is blank.
    pub unnamed: u64,
}

/// All books of a feed.
#[derive(Debug)]
pub struct IexBooks {
    settings: IexSettings,
    /// Symbols come from outside, so the hash has a new seed in each process.
    index: HashMap<u64, u32, RandomState>,
    books: Vec<IexBook>,
    listings: Vec<Listing>,
    counters: IexCounters,
}

/// A side, and the price of a level in it.
pub(super) type Reach<'b> = (&'b IexLadder, IexPrice);

/// The book of one symbol.
#[derive(Clone, Debug)]
pub struct IexBook {
    bids: IexLadder,
    asks: IexLadder,
    /// The best quote of both sides at the end of the last complete event; as last sent, in TOPS.
    pub top: IexTop,
    /// The symbol.
    pub symbol: Symbol,
    /// Time of the last change of the best bid or ask, ns since 1970 in UTC.
    pub quoted_ts_ns: Option<u64>,
    /// Levels have changed, and the event is not complete yet.
    unsettled: bool,
    /// The traded volume.
    pub volume: IexVolume,
}

impl IexBooks {
    /// Creates empty books.
    #[must_use]
    pub fn new(settings: IexSettings) -> Self {
        Self {
            settings,
            index: HashMap::default(),
            books: Vec::new(),
            listings: Vec::new(),
            counters: IexCounters::default(),
        }
    }

    /// Applies a message. A message of an unknown type, or about the whole market, changes nothing.
    ///
    /// Costs one lookup in the table of symbols and a search near the best level (bench `books`). Allocates only if a side becomes deeper than
    /// ever before, or a symbol is new.
    #[inline]
    pub fn apply(&mut self, message: &IexMessage<'_>) -> IexChange {
        match message {
            IexMessage::PriceLevel(m) => self.level(m),
            IexMessage::QuoteUpdate(m) => {
                let top = IexTop {
                    bid: IexQuote::new(m.bid(), m.bid_size()),
                    ask: IexQuote::new(m.ask(), m.ask_size()),
                };
                let Some((at, mut change)) = self.open(m.symbol()) else { return IexChange::default() };
                let listing = &mut self.listings[at];
                (listing.quote_flags, listing.quote_ts_ns) = (m.flags(), m.ts_ns());
                self.books[at].publish(top, m.ts_ns(), &mut change);
                change
            }
            IexMessage::TradeReport(m) => {
                let trade = IexLastTrade {
                    price: m.price(),
                    size: m.size(),
                    flags: m.flags(),
                    ts_ns: m.ts_ns(),
                    trade: m.trade(),
                };
                let Some((at, mut change)) = self.open(m.symbol()) else { return IexChange::default() };
                self.books[at].volume.add(trade);
                change.fields.trade = true;
                change
            }
            rare => self.rare(rare),
        }
    }

    #[inline]
    fn level(&mut self, m: &PriceLevel<'_>) -> IexChange {
        let Some((at, mut change)) = self.open(m.symbol()) else { return IexChange::default() };
        let book = &mut self.books[at];
        let side = match m.side() {
            Side::Bid => &mut book.bids,
            Side::Ask => &mut book.asks,
        };
        match side.set(m.price(), m.size(), self.settings.max_levels) {
            Set::Done => {}
            Set::NotThere => self.counters.no_level += 1,
            Set::Full => self.counters.full_side += 1,
        }
        book.unsettled = !m.completes_event();
        if m.completes_event() {
            let top = IexTop { bid: book.bids.best(), ask: book.asks.best() };
            book.publish(top, m.ts_ns(), &mut change);
        }
        change
    }

    fn rare(&mut self, message: &IexMessage<'_>) -> IexChange {
        let Some((at, mut change)) = message.symbol().and_then(|symbol| self.open(symbol)) else {
            return IexChange::default();
        };
        if let IexMessage::TradeBreak(m) = message {
            let broken = IexLastTrade {
                price: m.price(),
                size: m.size(),
                flags: m.flags(),
                ts_ns: m.ts_ns(),
                trade: m.trade(),
            };
            self.books[at].volume.take_back(broken);
            change.fields.correction = true;
        } else {
            change.fields.status = self.listings[at].apply(message);
            change.fields.auction = matches!(message, IexMessage::AuctionInformation(_));
        }
        change
    }

    /// Returns the index of a symbol's book, created if necessary, and an empty change.
    #[inline]
    fn open(&mut self, symbol: Symbol) -> Option<(usize, IexChange)> {
        let key = u64::from_le_bytes(symbol.0);
        let (at, new) = match self.index.get(&key) {
            Some(at) => (*at, false),
            None => (self.list(symbol)?, true),
        };
        Some((at as usize, IexChange { instrument: Some(IexInstrument(at)), new, ..IexChange::default() }))
    }

    #[cold]
    fn list(&mut self, symbol: Symbol) -> Option<u32> {
        if symbol.is_blank() || symbol.0 == [0; 8] {
            self.counters.unnamed += 1;
            return None;
        }
        let Some(at) =
            u32::try_from(self.books.len()).ok().filter(|_| self.books.len() < self.settings.max_symbols)
        else {
            self.counters.refused += 1;
            return None;
        };
        if let Entry::Vacant(place) = self.index.entry(u64::from_le_bytes(symbol.0)) {
            place.insert(at);
        }
        self.books.push(IexBook::new(symbol));
        self.listings.push(Listing::default());
        Some(at)
    }

    /// Returns the number of symbols.
    pub(super) const fn len(&self) -> usize {
        self.books.len()
    }

    /// Returns the book of a symbol, and prefetches what every message about the symbol reads.
    #[inline]
    pub(super) fn near(&self, symbol: Symbol) -> Option<&IexBook> {
        let at = *self.index.get(&u64::from_le_bytes(symbol.0))? as usize;
        let book = self.books.get(at)?;
        prefetch(&book.bids);
        prefetch(&book.asks);
        prefetch(&book.top);
        prefetch(&book.volume);
        prefetch(self.listings.get(at)?);
        Some(book)
    }

    /// Returns the number of a symbol.
    #[must_use]
    pub fn find(&self, symbol: Symbol) -> Option<IexInstrument> {
        self.index.get(&u64::from_le_bytes(symbol.0)).map(|at| IexInstrument(*at))
    }

    /// Returns the book of an instrument.
    #[must_use]
    pub fn book(&self, instrument: IexInstrument) -> Option<&IexBook> {
        self.books.get(instrument.0 as usize)
    }

    /// Returns the data of an instrument that is not in its book.
    #[must_use]
    pub fn listing(&self, instrument: IexInstrument) -> Option<&Listing> {
        self.listings.get(instrument.0 as usize)
    }

    /// Returns every instrument with messages, in the order of appearance.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (IexInstrument, &IexBook, &Listing)> {
        let both = self.books.iter().zip(&self.listings).enumerate();
        // Lossless: there are fewer than 2³².
        both.map(|(at, (book, listing))| (IexInstrument(at as u32), book, listing))
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &IexCounters {
        &self.counters
    }

    /// Clears all data, the symbols and their numbers too, at the start of a session. The counters stay.
    pub fn clear(&mut self) {
        self.index.clear();
        self.books.clear();
        self.listings.clear();
    }
}

impl IexBook {
    fn new(symbol: Symbol) -> Self {
        Self {
            bids: IexLadder::new(Side::Bid),
            asks: IexLadder::new(Side::Ask),
            top: IexTop::default(),
            symbol,
            quoted_ts_ns: None,
            unsettled: false,
            volume: IexVolume::default(),
        }
    }

    /// Returns a side.
    #[inline]
    pub(super) const fn ladder(&self, side: Side) -> &IexLadder {
        match side {
            Side::Bid => &self.bids,
            Side::Ask => &self.asks,
        }
    }

    /// Sets the best of both sides, and records the differences.
    #[inline]
    fn publish(&mut self, top: IexTop, ts_ns: u64, change: &mut IexChange) {
        let (before, changed) = (self.top, &mut change.fields);
        changed.bid = before.bid.price != top.bid.price || before.bid.is_some() != top.bid.is_some();
        changed.bid_size = before.bid.size != top.bid.size;
        changed.ask = before.ask.price != top.ask.price || before.ask.is_some() != top.ask.is_some();
        changed.ask_size = before.ask.size != top.ask.size;
        self.top = top;
        if changed.is_quote() {
            self.quoted_ts_ns = Some(ts_ns);
        }
    }

    /// Returns the symbol as text.
    #[inline]
    #[must_use]
    pub fn name(&self) -> &str {
        self.symbol.as_str()
    }

    /// Returns the levels of a side, best first; `take(n)` gives the best `n`. Within an event they are ahead of [`top`](Self::top).
    pub fn levels(&self, side: Side) -> impl ExactSizeIterator<Item = IexLevel> + '_ {
        self.ladder(side).iter()
    }

    /// Returns `true` if the last event about the book's levels is complete.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        !self.unsettled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_takes_what_is_stated() {
        // The table of symbols: 16 bytes for each entry, at most twice as many entries as symbols, and one control byte for each.
        let each = size_of::<IexBook>() + size_of::<Listing>() + 2 * 17;
        assert!(each < 800, "{each}");
    }
}
