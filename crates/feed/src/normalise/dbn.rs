//! Databento's records: books, tops of book, trades and trading states to drafts.
//!
//! An update is drafted when a published field changes: price or size of the best bid or ask at the end of an event, a trade, the trading state, an
//! imbalance before an auction. Bars and statistics are not drafted; a record that renames an instrument causes its image. A trade's side is the
//! aggressor's, as in the records. Records have neither trade numbers (the venue's sequence is that of a packet, which may contain several trades)
//! nor sale conditions. The ten levels of the schema mbp-10 are [stored](Dbn::levels) in their state at the end of each event.

use tapeline_nanos::Nanos;

use super::{Applied, DAY_NS, Instrument};
use crate::dbn::view::Imbalance;
use crate::dbn::{
    self, Best, BookIndex, DbnBook, DbnBooks, DbnChange, DbnRecord, DbnSettings, DbnSymbols, Header, Letter,
    MalformedRecord,
};
use crate::draft::{
    self, Auction, Changed, Conditions, Detail, Draft, ImbalanceSide, Price, Reason, Trade, TradingStatus,
    Variation,
};
use crate::itch::{ByType, Side};
use crate::levels::{Level, Levels};

/// A normaliser that maintains the books of a stream of records, and drafts an update whenever a published field changes.
#[derive(Debug)]
pub struct Dbn {
    books: DbnBooks,
    levels: Levels,
    /// The detail of the last record, if it has one.
    detail: Option<Detail>,
    records: ByType,
    malformed: u64,
}

impl Dbn {
    /// Creates a normaliser in its initial state.
    #[must_use]
    pub fn new(settings: DbnSettings) -> Self {
        Self {
            books: DbnBooks::new(settings, DbnSymbols::default()),
            levels: Levels::default(),
            detail: None,
            records: ByType::default(),
            malformed: 0,
        }
    }

    /// Sets the symbols of the instrument numbers: those of a file's metadata.
    pub fn name_by(&mut self, symbols: DbnSymbols) {
        self.books.name_by(symbols);
    }

    /// Applies one record. Allocates only if a book gets deeper, or an instrument or a name is new.
    ///
    /// # Errors
    /// [`MalformedRecord`]: it was counted, and nothing else has changed.
    #[inline]
    pub fn apply(&mut self, bytes: &[u8]) -> Result<Applied, MalformedRecord> {
        let (header, record) = match (Header::of(bytes), dbn::decode(bytes)) {
            (Some(header), Ok(record)) => (header, record),
            (_, Err(malformed)) => return Err(self.malformed(malformed)),
            (None, Ok(_)) => return Err(self.malformed(MalformedRecord::Short { length: bytes.len() })),
        };
        self.records.count(header.kind.0);
        let change = self.books.apply(&header, &record);
        self.levels.begin();
        if change.depth || change.named {
            self.show_levels(&change, header.ts_event);
        }
        let is_auction = matches!(record, DbnRecord::Imbalance(_));
        if let DbnRecord::Imbalance(imbalance) = &record {
            self.detail = Some(Detail::Auction(auction_of(imbalance)));
        }
        let draft = if change.fields.is_any() || is_auction { self.draft(&change, is_auction) } else { None };
        Ok(Applied {
            instrument: change.place.map_or(Instrument(0), Into::into),
            letter: header.kind.0,
            event: Nanos(header.ts_event),
            change: draft,
            image: change.named,
        })
    }

    /// Prefetches what the next records need, as [`DbnBooks::expect`] does.
    #[inline]
    pub fn expect(&mut self, ahead: &[u8]) {
        self.books.expect(ahead);
    }

    /// Stores the levels of an instrument if its event is complete, or if its number was reassigned.
    fn show_levels(&mut self, change: &DbnChange, ts_event: u64) {
        let Some((place, book)) = change.place.and_then(|place| Some((place, self.books.book(place)?)))
        else {
            return;
        };
        if change.named {
            self.levels.forget(place.into());
        }
        let Some(depth) = book.depth().filter(|_| !book.in_event()) else { return };
        let level = |side, price: dbn::DbnPrice, size: u32, orders| {
            Some(Level {
                side,
                price: self::price(price.defined()?),
                size: u64::from(size),
                size_decimals: 0,
                orders,
            })
        };
        let bids = depth.iter().filter_map(|it| level(Side::Bid, it.bid_px, it.bid_sz, it.bid_ct));
        let asks = depth.iter().filter_map(|it| level(Side::Ask, it.ask_px, it.ask_sz, it.ask_ct));
        self.levels.show(place.into(), ts_event % DAY_NS, bids.chain(asks));
    }

    #[cold]
    fn malformed(&mut self, malformed: MalformedRecord) -> MalformedRecord {
        self.malformed += 1;
        malformed
    }

    /// Returns all values of an instrument, all fields marked as changed; `None` for one that does not exist.
    #[must_use]
    pub fn image(&self, instrument: Instrument) -> Option<Draft> {
        Some(draft_of(self.books.book(place(instrument)?)?, Changed::ALL))
    }

    /// Returns an instrument's symbol, or its number if no symbol is known.
    #[inline]
    #[must_use]
    pub fn name(&self, instrument: Instrument) -> Option<&str> {
        self.books.book(place(instrument)?).map(DbnBook::name)
    }

    /// Returns all instruments, in the order of appearance.
    pub fn instruments(&self) -> impl Iterator<Item = Instrument> {
        self.books.iter().map(|(place, _)| place.into())
    }

    #[inline]
    fn draft(&self, change: &DbnChange, auction: bool) -> Option<Draft> {
        Some(draft_of(self.books.book(change.place?)?, Changed { auction, ..change.fields }))
    }

    /// Returns the detail of the last record, if its [change](Changed::has_detail) has one.
    #[must_use]
    pub const fn detail(&self) -> Option<&Detail> {
        self.detail.as_ref()
    }

    /// Returns the books.
    #[must_use]
    pub const fn books(&self) -> &DbnBooks {
        &self.books
    }

    /// Returns the levels of each instrument whose publisher maintains ten, at the end of the last event, and the changes by the last applied
    /// record.
    #[inline]
    #[must_use]
    pub const fn levels(&self) -> &Levels {
        &self.levels
    }

    /// Returns the records by kind, malformed ones excluded.
    #[must_use]
    pub const fn records(&self) -> &ByType {
        &self.records
    }

    /// Returns the number of unreadable records.
    #[must_use]
    pub const fn malformed_records(&self) -> u64 {
        self.malformed
    }

    /// Clears the books at the start of a session. The counters stay.
    pub fn reset(&mut self) {
        self.books.clear();
        self.levels.clear();
    }
}

impl From<BookIndex> for Instrument {
    fn from(place: BookIndex) -> Self {
        Self(place.0.saturating_add(1))
    }
}

#[inline]
fn place(instrument: Instrument) -> Option<BookIndex> {
    instrument.0.checked_sub(1).map(BookIndex)
}

#[inline]
fn draft_of(book: &DbnBook, changed: Changed) -> Draft {
    let (top, volume) = (book.top, &book.volume);
    let (status, reason) = trading_status(book);
    Draft {
        update: changed.update_type(),
        changed,
        bid: top.bid.map(quote),
        ask: top.ask.map(quote),
        quote_ns: book.quoted_ns.map(|ns| ns % DAY_NS),
        trade: volume.last.and_then(|last| {
            let price = price(last.price.defined()?);
            Some(Trade {
                price,
                size: u64::from(last.size),
                size_decimals: 0,
                id: 0,
                aggressor: last.aggressor,
                conditions: Conditions::default(),
            })
        }),
        trade_ns: volume.last.map(|last| last.ts_event % DAY_NS),
        volume: volume.size,
        volume_decimals: 0,
        trades: volume.trades,
        status,
        reason,
    }
}

#[inline]
const fn price(price: dbn::DbnPrice) -> Price {
    Price { mantissa: price.0, decimals: dbn::DbnPrice::DECIMALS }
}

#[inline]
const fn quote(best: Best) -> draft::DraftQuote {
    draft::DraftQuote { price: price(best.price), size: best.size, size_decimals: 0 }
}

/// Returns the state of an auction. The near price clears the orders on the book, the far price only those for the auction. Source: Databento's
/// schema imbalance.
#[cold]
fn auction_of(it: &Imbalance<'_>) -> Auction {
    let told = |told: dbn::DbnPrice| told.defined().filter(|told| told.0 != 0).map(price);
    Auction {
        kind: it.auction_type().0,
        paired: u64::from(it.paired_qty()),
        imbalance: u64::from(it.total_imbalance_qty()),
        side: match it.side().0 {
            b'N' => ImbalanceSide::NONE,
            b'B' => ImbalanceSide::BUY,
            b'A' => ImbalanceSide::SELL,
            _ => ImbalanceSide::UNDEFINED,
        },
        reference: told(it.ref_price()),
        near: told(it.cont_book_clr_price()),
        far: told(it.auct_interest_clr_price()),
        variation: Variation::of(it.significant_imbalance().0),
        due_ns: (it.auction_time() != u64::MAX && it.auction_time() != 0).then(|| it.auction_time() % DAY_NS),
        extensions: Some(it.num_extensions()).filter(|count| *count != u8::MAX),
        at_ns: it.header().ts_event % DAY_NS,
    }
}

/// Returns the status of a trading state. If the action does not concern trading (such as a short sale restriction), the record's own flag decides.
/// Source: Databento's schema status, its actions.
fn trading_status(book: &DbnBook) -> (TradingStatus, Reason) {
    let Some(told) = book.status else { return (TradingStatus::UNDEFINED, Reason::default()) };
    let status = match (told.action, told.is_trading) {
        (8..=10 | 15, _) => TradingStatus::HALTED,
        (7, _) | (_, Letter(b'Y')) => TradingStatus::NORMAL,
        (1..=6 | 11, _) => TradingStatus::RESTRICTED,
        (_, Letter(b'N')) => TradingStatus::HALTED,
        _ => TradingStatus::UNDEFINED,
    };
    // The format has a number for each reason.
    let reason = if told.reason == 0 { Reason::default() } else { Reason::new(&told.reason.to_string()) };
    (status, reason)
}
