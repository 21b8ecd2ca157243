//! All instruments of a stream of records: names, tops of book, trades, states.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::event::{DbnEvent, DbnOrder, DbnQuote, DbnTrade, DbnTradingStatus, Definition, Statistic};
use super::field::{DbnPrice, Flags};
use super::ladder::RestingLevel;
use super::order_book::OrderBook;
use super::record::{DbnLevel, DbnRecord, Header};
use super::symbols::DbnSymbols;
use crate::draft::Changed;
use crate::itch::Side;
use crate::processor::prefetch;

/// The limits of the books. Records beyond them are counted and have no effect.
#[derive(Clone, Copy, Debug)]
pub struct DbnSettings {
    /// Maximum number of instruments, each at each of its publishers. An instrument takes some 400 bytes.
    pub max_instruments: usize,
    /// Maximum number of orders of all books together. An order takes some 50 bytes, spare capacity of its table included.
    pub max_orders: usize,
    /// Maximum number of price levels of one side of one book.
    pub max_levels: usize,
}

impl Default for DbnSettings {
    /// A million instruments, ten million orders, 65,536 levels.
    fn default() -> Self {
        Self { max_instruments: 1_000_000, max_orders: 10_000_000, max_levels: 65_536 }
    }
}

/// The counters of the books.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DbnCounters {
    /// Cancels of orders that are not on the book.
    pub unknown_cancelled: u64,
    /// Modifications of orders that are not on the book: they are added.
    pub unknown_modified: u64,
    /// Orders that were added twice: the later one applies.
    pub duplicate_orders: u64,
    /// Cancels of more than the remaining size.
    pub excess_cancelled: u64,
    /// Orders without side or price.
    pub odd_orders: u64,
    /// Orders and levels beyond the limits.
    pub refused_orders: u64,
    /// Records of instruments beyond the limits.
    pub refused_instruments: u64,
    /// Maximum number of orders on all books at any time.
    pub max_live_orders: usize,
}

/// The best level of a side.
pub type Best = RestingLevel;

/// The best level of both sides; `None` for an empty side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DbnTop {
    /// Highest bid.
    pub bid: Option<Best>,
    /// Lowest ask.
    pub ask: Option<Best>,
}

impl DbnTop {
    fn of(level: &DbnLevel) -> Self {
        let best = |price: DbnPrice, size: u32, orders| {
            price.defined().map(|price| Best { price, size: u64::from(size), orders })
        };
        Self {
            bid: best(level.bid_px, level.bid_sz, level.bid_ct),
            ask: best(level.ask_px, level.ask_sz, level.ask_ct),
        }
    }
}

/// The trades of an instrument so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DbnVolume {
    /// Number of trades.
    pub trades: u64,
    /// Total size of the trades.
    pub size: u64,
    /// The last trade.
    pub last: Option<DbnTrade>,
}

/// The source of an instrument's name, in ascending order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NamedBy {
    Number,
    Definition,
    Mapping,
    Metadata,
}

/// An instrument at a publisher.
#[derive(Debug)]
pub struct DbnBook {
    /// The publisher's number.
    pub publisher: u16,
    /// The instrument's number.
    pub instrument: u32,
    name: Box<str>,
    named_by: NamedBy,
    /// Time from which the name may be another one, ns since 1970 UTC.
    named_until: u64,
    definition: Option<Box<Definition>>,
    /// The top of book at the end of the last event.
    pub top: DbnTop,
    /// Within an incomplete event, as stated by the publisher.
    unsettled: Option<DbnTop>,
    /// Time of the last change of the top of book, ns since 1970 UTC.
    pub quoted_ns: Option<u64>,
    orders: Option<Box<OrderBook>>,
    depth: Option<Box<[DbnLevel; 10]>>,
    /// The trades.
    pub volume: DbnVolume,
    /// The trading state, if one was received.
    pub status: Option<DbnTradingStatus>,
    /// The last statistic of each kind, in the order of first appearance.
    pub statistics: Vec<Statistic>,
    /// Number of records about the instrument.
    pub records: u64,
}

/// Maximum number of statistics of one instrument, one of each kind.
const MOST_STATISTICS: usize = 64;

impl DbnBook {
    /// Returns the orders.
    #[inline]
    pub(super) fn orders(&self) -> Option<&OrderBook> {
        self.orders.as_deref()
    }

    /// Prefetches what every order reads.
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch(&self.orders);
        prefetch(&self.top);
        prefetch(&self.records);
    }

    /// Returns the symbol, or the number if no symbol is known; with the venue as suffix in datasets of several venues.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the definition, if one was received.
    #[must_use]
    pub fn definition(&self) -> Option<&Definition> {
        self.definition.as_deref()
    }

    /// Returns the levels of a side of an order book, best first.
    pub fn levels(&self, side: Side) -> impl Iterator<Item = Best> + '_ {
        self.orders.iter().flat_map(move |orders| orders.ladder(side).iter())
    }

    /// Returns the ten best levels, if the publisher maintains them; within an event in their intermediate state.
    #[must_use]
    pub fn depth(&self) -> Option<&[DbnLevel; 10]> {
        self.depth.as_deref()
    }

    /// Returns the number of orders on the book; `None` if records are not order by order.
    #[must_use]
    pub fn live_orders(&self) -> Option<usize> {
        self.orders.as_ref().map(|orders| orders.len())
    }

    /// Returns `true` if the last event is incomplete.
    #[must_use]
    pub const fn in_event(&self) -> bool {
        self.unsettled.is_some()
    }

    /// Returns the best levels of the order book.
    fn built(&self) -> DbnTop {
        self.orders.as_ref().map_or(DbnTop::default(), |orders| DbnTop {
            bid: orders.best(Side::Bid),
            ask: orders.best(Side::Ask),
        })
    }

    fn forget(&mut self, live: &mut usize) {
        if let Some(orders) = &mut self.orders {
            orders.clear(live);
        }
        self.orders = None;
        self.depth = None;
        self.definition = None;
        self.top = DbnTop::default();
        self.unsettled = None;
        self.quoted_ns = None;
        self.volume = DbnVolume::default();
        self.status = None;
        self.statistics = Vec::new();
    }
}

/// The index of an instrument among the books, in the order of first appearance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BookIndex(pub u32);

/// The changes by a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct DbnChange {
    /// The book; `None` for a record without an instrument, or with one beyond the limits.
    pub place: Option<BookIndex>,
    /// `true` if the instrument got its first name or another one.
    pub named: bool,
    /// The changed fields: the best of a side also changes if it appears or disappears. Never a correction or an auction.
    pub fields: Changed,
    /// `true` if an event is complete and the publisher maintains ten levels: any of them may have changed.
    pub depth: bool,
}

/// The number of an instrument at its publisher.
#[inline]
fn key(header: &Header) -> u64 {
    u64::from(header.publisher) << 32 | u64::from(header.instrument)
}

/// The books of all instruments.
#[derive(Debug)]
pub struct DbnBooks {
    settings: DbnSettings,
    symbols: DbnSymbols,
    places: HashMap<u64, u32, RandomState>,
    /// The instrument of the last record: the next record is often about the same one.
    last: Option<(u64, u32)>,
    books: Vec<DbnBook>,
    live_orders: usize,
    /// Number of records that are prefetched already.
    pub(super) expected: u32,
    counters: DbnCounters,
}

impl DbnBooks {
    /// Creates empty books; `symbols` are those of the file's metadata.
    #[must_use]
    pub fn new(settings: DbnSettings, symbols: DbnSymbols) -> Self {
        Self {
            settings,
            symbols,
            places: HashMap::with_hasher(RandomState::default()),
            last: None,
            books: Vec::new(),
            live_orders: 0,
            expected: 0,
            counters: DbnCounters::default(),
        }
    }

    /// Applies a record. Allocates only for a new instrument or symbol, and if a book gets deeper than before.
    #[inline]
    pub fn apply(&mut self, header: &Header, record: &DbnRecord<'_>) -> DbnChange {
        if matches!(
            record,
            DbnRecord::Error(_)
                | DbnRecord::ErrorV1(_)
                | DbnRecord::System(_)
                | DbnRecord::SystemV1(_)
                | DbnRecord::Unknown(_)
        ) {
            return DbnChange::default();
        }
        let Some((place, mut named)) = self.place(header) else {
            self.counters.refused_instruments += 1;
            return DbnChange::default();
        };
        let Self { books, settings, live_orders, counters, .. } = self;
        let Some(book) = books.get_mut(place as usize) else { return DbnChange::default() };
        book.records += 1;
        let mut change = DbnChange { place: Some(BookIndex(place)), ..DbnChange::default() };
        match DbnEvent::of(record) {
            DbnEvent::Order(order) => {
                book.order(&order, settings, live_orders, counters);
                if order.flags.has(Flags::LAST) {
                    book.settle(header.ts_event, &mut change);
                }
            }
            DbnEvent::Trade(trade) => {
                book.trade(trade, &mut change);
                if trade.flags.has(Flags::LAST) {
                    book.settle(header.ts_event, &mut change);
                }
            }
            DbnEvent::Quote(quote) => book.quote(&quote, header.ts_event, &mut change),
            DbnEvent::Definition(definition) => {
                named |= book.call(definition.symbol.as_str(), NamedBy::Definition);
                book.definition = Some(Box::new(definition));
            }
            DbnEvent::Symbol(symbol) => named |= book.call(symbol.as_str(), NamedBy::Mapping),
            DbnEvent::Status(status) => {
                change.fields.status = book.status != Some(status);
                book.status = Some(status);
            }
            DbnEvent::Statistic(statistic) => book.statistic(statistic),
            DbnEvent::Nothing => {}
        }
        change.named = named;
        change
    }

    /// Returns the book of a record's instrument, if there is one.
    #[inline]
    pub(super) fn of(&self, header: &Header) -> Option<&DbnBook> {
        self.books.get(*self.places.get(&key(header))? as usize)
    }

    /// Returns the index of a record's instrument, created if it is new, and `true` if its name is new or changed.
    #[inline]
    fn place(&mut self, header: &Header) -> Option<(u32, bool)> {
        let key = key(header);
        let place = match self.last {
            Some((last, place)) if last == key => place,
            _ => match self.places.get(&key) {
                Some(place) => *place,
                None => return self.begin(key, header).map(|place| (place, true)),
            },
        };
        self.last = Some((key, place));
        match self.books.get(place as usize) {
            Some(book) if header.ts_event >= book.named_until => Some((place, self.rename(place, header))),
            _ => Some((place, false)),
        }
    }

    #[cold]
    fn begin(&mut self, key: u64, header: &Header) -> Option<u32> {
        if self.books.len() >= self.settings.max_instruments.min(u32::MAX as usize) {
            return None;
        }
        let place = self.books.len() as u32;
        let named = self.symbols.name(header.instrument, header.ts_event);
        let (name, named_by, named_until) = match named {
            Some(named) => (full_name(named.name, header.publisher), NamedBy::Metadata, named.until),
            None => (full_name(&header.instrument.to_string(), header.publisher), NamedBy::Number, u64::MAX),
        };
        self.books.push(DbnBook {
            publisher: header.publisher,
            instrument: header.instrument,
            name,
            named_by,
            named_until,
            definition: None,
            top: DbnTop::default(),
            unsettled: None,
            quoted_ns: None,
            orders: None,
            depth: None,
            volume: DbnVolume::default(),
            status: None,
            statistics: Vec::new(),
            records: 0,
        });
        self.places.insert(key, place);
        self.last = Some((key, place));
        Some(place)
    }

    /// Handles the start of another day: the number may stand for another instrument, of which nothing is known.
    #[cold]
    fn rename(&mut self, place: u32, header: &Header) -> bool {
        let Self { books, symbols, live_orders, .. } = self;
        let Some(book) = books.get_mut(place as usize) else { return false };
        let Some(named) = symbols.name(header.instrument, header.ts_event) else { return false };
        // An undefined time is later than any day.
        book.named_until = if header.ts_event == u64::MAX { book.named_until } else { named.until };
        let name = full_name(named.name, header.publisher);
        if book.name == name {
            return false;
        }
        book.forget(live_orders);
        book.name = name;
        true
    }

    /// Sets other symbols for instruments that have not appeared yet.
    pub fn name_by(&mut self, symbols: DbnSymbols) {
        self.symbols = symbols;
    }

    /// Drops all instruments; symbols and counters stay.
    pub fn clear(&mut self) {
        self.places.clear();
        self.last = None;
        self.books.clear();
        self.live_orders = 0;
    }

    /// Returns the book at an index.
    #[inline]
    #[must_use]
    pub fn book(&self, place: BookIndex) -> Option<&DbnBook> {
        self.books.get(place.0 as usize)
    }

    /// Returns all books, in the order of their indexes.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (BookIndex, &DbnBook)> + '_ {
        self.books.iter().enumerate().map(|(at, book)| (BookIndex(at as u32), book))
    }

    /// Returns the number of orders on all books.
    #[must_use]
    pub const fn live_orders(&self) -> usize {
        self.live_orders
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &DbnCounters {
        &self.counters
    }
}

impl DbnBook {
    /// Names the instrument, unless its present name has precedence. Returns `true` if the name changed.
    fn call(&mut self, symbol: Option<&str>, named_by: NamedBy) -> bool {
        let Some(symbol) = symbol.filter(|symbol| !symbol.is_empty()) else { return false };
        if named_by < self.named_by {
            return false;
        }
        self.named_by = named_by;
        let name = full_name(symbol, self.publisher);
        if self.name == name {
            return false;
        }
        self.name = name;
        true
    }

    #[inline]
    fn order(
        &mut self,
        order: &DbnOrder,
        settings: &DbnSettings,
        live: &mut usize,
        counters: &mut DbnCounters,
    ) {
        let orders = self.orders.get_or_insert_with(|| Box::new(OrderBook::new()));
        orders.apply(order, settings, live, counters);
        // The top is determined at the end of the event.
        self.unsettled = Some(DbnTop::default());
    }

    #[inline]
    fn trade(&mut self, trade: DbnTrade, change: &mut DbnChange) {
        self.volume.trades += 1;
        self.volume.size = self.volume.size.saturating_add(u64::from(trade.size));
        self.volume.last = Some(trade);
        change.fields.trade = true;
    }

    #[inline]
    fn quote(&mut self, quote: &DbnQuote<'_>, ts_event: u64, change: &mut DbnChange) {
        if let Some(trade) = quote.trade {
            self.trade(trade, change);
        }
        if let Some(depth) = quote.depth {
            **self.depth.get_or_insert_with(|| Box::new([DbnLevel::default(); 10])) = depth.levels();
        }
        self.unsettled = Some(DbnTop::of(&quote.top));
        if quote.settled {
            self.settle(ts_event, change);
        }
    }

    /// Handles the end of an event: the intermediate top becomes the top of book.
    #[inline]
    fn settle(&mut self, ts_event: u64, change: &mut DbnChange) {
        let Some(told) = self.unsettled.take() else { return };
        change.depth = self.depth.is_some();
        let (old, new) = (self.top, if self.orders.is_some() { self.built() } else { told });
        let price = |best: Option<Best>| best.map(|best| best.price);
        let size = |best: Option<Best>| best.map(|best| best.size);
        let changed = &mut change.fields;
        changed.bid = price(old.bid) != price(new.bid);
        changed.ask = price(old.ask) != price(new.ask);
        changed.bid_size = size(old.bid) != size(new.bid);
        changed.ask_size = size(old.ask) != size(new.ask);
        if changed.is_quote() {
            self.quoted_ns = Some(ts_event);
        }
        self.top = new;
    }

    fn statistic(&mut self, statistic: Statistic) {
        if let Some(known) = self.statistics.iter_mut().find(|known| known.kind == statistic.kind) {
            *known = statistic;
        } else if self.statistics.len() < MOST_STATISTICS {
            self.statistics.push(statistic);
        }
    }
}

/// Returns a symbol with its venue if the publisher's dataset has several venues: `AAPL.XNAS`. The suffix of an unknown publisher is its number.
fn full_name(symbol: &str, publisher: u16) -> Box<str> {
    match ::dbn::Publisher::try_from(publisher) {
        Ok(known) if known.dataset().publishers().len() > 1 => {
            format!("{symbol}.{}", known.venue().as_str()).into()
        }
        Ok(_) => symbol.into(),
        Err(_) => format!("{symbol}.{publisher}").into(),
    }
}
