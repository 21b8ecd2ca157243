//! NASDAQ TotalView-ITCH 5.0: books, trades and trading states to drafts.
//!
//! The normaliser maintains the books. An update is drafted when a published field changes: price or size of the best bid or ask, a trade that
//! counts as volume, the trading state, an auction's state. Other data only updates books and counters.
//!
//! A trade's side is the aggressor's, the opposite of the resting order's side in `E` and `C`; for a hidden order (`P`) it is not stated. Its
//! conditions are `C` for an execution at another price than the order's, `P` for one against a hidden order, and for an auction `Q` with its type:
//! `QO` opening, `QC` closing, `QH` after a halt or of a new issue.
//!
//! A broken trade (`B`) causes a correction that names the trade; if the trade is remembered, the sums are corrected too. The state of an auction
//! (`I`) is a separate update, and the auction itself (`Q`) a trade; an operational halt (`h`) of NASDAQ itself halts the stock. Non-printable
//! executions change quotes, not volume.

use tapeline_nanos::Nanos;

use super::{Applied, DAY_NS, Instrument};
use crate::book::{self, Book, Books, Change, PrintKind};
use crate::depth::{self, Depth};
use crate::draft::{
    self, Auction, BrokenTrade, Changed, Conditions, Detail, Draft, ImbalanceSide, Price, Reason, Trade,
    TradingStatus, Variation,
};
use crate::itch::{
    ByType, Code, Decoder, ItchRecord, Locate, MalformedItchMessage, MessageType, Side, decode,
};

/// Maximum number of announced messages that are read.
const COMING: usize = 64;

/// Decimals of ITCH's prices.
const DECIMALS: u8 = 4;

/// The currency of ITCH's prices in ISO 4217.
const US_DOLLAR: u16 = 840;

/// The counters of a normaliser, in addition to those of [the books](book::BookCounters).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NormaliserCounters {
    /// Messages by type, unknown types included, malformed ones not.
    pub messages: ByType,
    /// Messages shorter than their type, by type.
    pub short: ByType,
    /// Messages of zero bytes.
    pub empty: u64,
    /// Messages with bytes after their known fields, by type.
    pub longer: ByType,
    /// Trades that were broken; [`book::BookCounters::unknown_match`] counts those that could not be reversed.
    pub broken_trades: u64,
}

/// A normaliser that maintains the books of an ITCH feed, and drafts an update whenever a published field changes.
#[derive(Debug)]
pub struct Itch {
    books: Books,
    midnight: Nanos,
    /// The single orders, if they are published.
    depth: Option<Depth>,
    /// The detail of the last message, if it has one.
    detail: Option<Detail>,
    counters: NormaliserCounters,
    decoder: Decoder,
    /// The messages of [`expect`](Self::expect), and behind them one that was not announced.
    coming: Box<[ItchRecord; COMING + 1]>,
}

impl Itch {
    /// Creates a normaliser for the day that begins at `midnight`, the instant of midnight in New York.
    #[must_use]
    pub fn new(settings: book::BookSettings, midnight: Nanos) -> Self {
        Self {
            books: Books::new(settings),
            midnight,
            depth: None,
            detail: None,
            counters: NormaliserCounters::default(),
            decoder: Decoder::new(),
            coming: Box::new([ItchRecord::default(); COMING + 1]),
        }
    }

    /// Applies one message. Allocates only if a book gets deeper, a stock is new, or there are more orders than ever before.
    ///
    /// # Errors
    /// [`MalformedMessage`](super::MalformedMessage): it was counted, and nothing else has changed.
    #[inline]
    pub fn apply(&mut self, bytes: &[u8]) -> Result<Applied, MalformedItchMessage> {
        self.coming[COMING] = self.decoder.record(bytes);
        self.apply_record(COMING, bytes)
    }

    /// Applies message `at` of those that were [announced](Self::expect) last; `bytes` are its bytes.
    #[inline]
    pub(super) fn apply_expected(
        &mut self,
        at: usize,
        bytes: &[u8],
    ) -> Result<Applied, super::MalformedMessage> {
        if at < COMING { self.apply_record(at, bytes) } else { self.apply_any(bytes) }
    }

    /// Applies one message, as [`apply`](Self::apply), with the error of any protocol. An [`Applied`] is large: changing the type of the error would
    /// copy it.
    #[inline]
    pub(super) fn apply_any(&mut self, bytes: &[u8]) -> Result<Applied, super::MalformedMessage> {
        self.coming[COMING] = self.decoder.record(bytes);
        self.apply_record(COMING, bytes)
    }

    /// Applies the decoded message in place `at`, where it stays: a copy that was just written would be waited for.
    #[inline(always)]
    fn apply_record<E: From<MalformedItchMessage>>(&mut self, at: usize, bytes: &[u8]) -> Result<Applied, E> {
        let record = &self.coming[at];
        if let Err(malformed) = record.check(bytes.len()) {
            return Err(self.malformed(malformed).into());
        }
        let letter = record.kind;
        self.counters.messages.count(letter);
        if record.flags & ItchRecord::LONGER != 0 {
            self.counters.longer.count(letter);
        }
        self.counters.broken_trades += u64::from(letter == MessageType::BrokenTrade as u8);
        let change = self.books.apply_record(record);
        if let Some(depth) = &mut self.depth
            && let Ok(message) = decode(bytes)
        {
            let midnight = self.midnight;
            depth.apply_itch(&message, |ns_of_day| (midnight + ns_of_day).0 % DAY_NS);
        }
        if change.correction | change.auction {
            self.detail = Some(self.detail_of(record, &change));
        }
        let event = self.instant(record.ts_ns);
        let draft = if change.is_any() { self.draft(&change) } else { None };
        let image = letter == MessageType::StockDirectory as u8;
        Ok(Applied { instrument: change.locate.into(), letter, event, change: draft, image })
    }

    /// Announces the messages that will be applied next: decodes them and prefetches their data. Returns the number of decoded messages, at most
    /// 64: a datagram of 1,400 bytes has about 40.
    #[inline]
    pub fn expect<'a>(&mut self, messages: impl Iterator<Item = &'a [u8]>) -> usize {
        let count = self.decoder.fill(messages, &mut self.coming[..COMING]);
        if count > 1 {
            self.books.prefetch(&self.coming[..count]);
        }
        count
    }

    #[cold]
    fn malformed(&mut self, malformed: MalformedItchMessage) -> MalformedItchMessage {
        match malformed {
            MalformedItchMessage::Empty => self.counters.empty += 1,
            MalformedItchMessage::Short { kind, .. } => self.counters.short.count(kind.letter()),
        }
        malformed
    }

    /// Returns the instant of an event of the day.
    #[inline]
    #[must_use]
    pub fn instant(&self, ns_of_day: u64) -> Nanos {
        self.midnight + ns_of_day
    }

    /// Returns all values of a stock, all fields marked as changed; `None` for one without a name.
    #[must_use]
    pub fn image(&self, instrument: Instrument) -> Option<Draft> {
        let book = self.books.book(locate(instrument)?).filter(|book| !book.symbol().is_blank())?;
        Some(self.draft_of(book, Changed::ALL))
    }

    /// Returns a stock's symbol; `None` until a message contains it.
    #[inline]
    #[must_use]
    pub fn name(&self, instrument: Instrument) -> Option<&str> {
        self.books.book(locate(instrument)?).map(Book::name).filter(|name| !name.is_empty())
    }

    /// Returns all stocks with a symbol, by locate.
    pub fn instruments(&self) -> impl Iterator<Item = Instrument> {
        let named = self.books.iter().filter(|(_, book)| !book.name().is_empty());
        named.map(|(locate, _)| locate.into())
    }

    /// Returns the draft of a change; `None` if the stock has no name, so that nobody can have requested it.
    #[inline(always)]
    fn draft(&self, change: &Change) -> Option<Draft> {
        let book = self.books.book(change.locate).filter(|book| !book.symbol().is_blank())?;
        let changed = Changed {
            bid: change.bid,
            bid_size: change.bid_size,
            ask: change.ask,
            ask_size: change.ask_size,
            trade: change.print.is_some(),
            correction: change.correction,
            status: change.status,
            auction: change.auction,
        };
        Some(self.draft_of(book, changed))
    }

    #[inline(always)]
    fn draft_of(&self, book: &Book, changed: Changed) -> Draft {
        let (top, volume) = (book.top(), book.volume());
        let last = volume.last.filter(|_| changed.trade);
        Draft {
            update: changed.update_type(),
            changed,
            bid: top.bid.map(quote),
            ask: top.ask.map(quote),
            quote_ns: book.quoted_ts_ns().map(|ns| self.gmt(ns)),
            trade: last.map(|last| Trade {
                price: price(last.price.0),
                size: last.shares,
                size_decimals: 0,
                id: last.match_number.0,
                aggressor: aggressor(last.kind),
                conditions: conditions(last.kind),
            }),
            trade_ns: last.map(|last| self.gmt(last.ts_ns)),
            volume: volume.traded_shares,
            volume_decimals: 0,
            trades: volume.trades,
            status: if book.is_operationally_halted() {
                TradingStatus::HALTED
            } else {
                trading_status(book.trading_state())
            },
            reason: if changed.status { Reason::new(book.reason().as_str()) } else { Reason::default() },
        }
    }

    /// Returns the detail of a broken trade or an auction's state.
    #[cold]
    fn detail_of(&self, record: &ItchRecord, change: &Change) -> Detail {
        let at_ns = self.gmt(record.ts_ns);
        if change.correction {
            let book::Broken { match_number, traded } = self.books.broken();
            let traded = traded.map(|(price, shares)| (self::price(price.0), shares));
            return Detail::Broken(BrokenTrade { id: match_number.0, traded, at_ns });
        }
        // A price that is not known yet is 0.
        let told = |ten_thousandths| (ten_thousandths != 0).then(|| price(ten_thousandths));
        Detail::Auction(Auction {
            kind: record.code_2,
            paired: record.reference,
            imbalance: record.other,
            side: match record.code {
                b'N' => ImbalanceSide::NONE,
                b'B' => ImbalanceSide::BUY,
                b'S' => ImbalanceSide::SELL,
                b'O' => ImbalanceSide::INSUFFICIENT,
                _ => ImbalanceSide::UNDEFINED,
            },
            reference: told(record.price),
            near: told(record.fourth),
            far: told(record.third),
            variation: Variation::of(record.code_3),
            due_ns: None,
            extensions: None,
            at_ns,
        })
    }

    /// Returns the detail of the last message, if its [change](Changed::has_detail) has one.
    #[must_use]
    pub const fn detail(&self) -> Option<&Detail> {
        self.detail.as_ref()
    }

    /// Converts a time of day in New York to GMT, in ns.
    #[inline]
    fn gmt(&self, ns_of_day: u64) -> u64 {
        self.instant(ns_of_day).0 % DAY_NS
    }

    /// Returns the books.
    #[must_use]
    pub const fn books(&self) -> &Books {
        &self.books
    }

    /// Starts storing the single orders, at most `max_orders` at once.
    pub fn keep_orders(&mut self, max_orders: usize) {
        self.depth = Some(Depth::new(max_orders));
    }

    /// Returns the single orders, if they are stored.
    #[must_use]
    pub const fn depth(&self) -> Option<&Depth> {
        self.depth.as_ref()
    }

    /// Returns the common data of a stock's orders: its prices are dollars of the United States with four decimals (ITCH 5.0, data
    /// types).
    #[must_use]
    pub fn order_summary(&self, instrument: Instrument) -> Option<depth::OrdersSummary> {
        let Draft { status, reason, .. } = self.image(instrument)?;
        Some(depth::OrdersSummary { currency: US_DOLLAR, decimals: DECIMALS, status, reason })
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &NormaliserCounters {
        &self.counters
    }

    /// Clears the books at the start of a session. The counters stay.
    pub fn reset(&mut self) {
        self.books.clear();
        if let Some(depth) = &mut self.depth {
            depth.clear();
        }
    }

    /// Sets `midnight`, the start of another trading day, from which events count.
    pub fn begin_day(&mut self, midnight: Nanos) {
        self.midnight = midnight;
    }
}

impl From<Locate> for Instrument {
    fn from(locate: Locate) -> Self {
        Self(u32::from(locate.0))
    }
}

/// Returns the locate of an instrument; `None` for a number that is not a locate.
#[inline]
fn locate(instrument: Instrument) -> Option<Locate> {
    u16::try_from(instrument.0).ok().map(Locate)
}

#[inline]
fn price(ten_thousandths: u32) -> Price {
    Price { mantissa: i64::from(ten_thousandths), decimals: DECIMALS }
}

#[inline]
fn quote(quote: book::Quote) -> draft::DraftQuote {
    draft::DraftQuote { price: price(quote.price.0), size: quote.shares, size_decimals: 0 }
}

/// Returns the side of the incoming order, the opposite of the resting order's.
#[inline]
const fn aggressor(kind: PrintKind) -> Option<Side> {
    match kind {
        PrintKind::AtOrder(Side::Ask) | PrintKind::Priced(Side::Ask) => Some(Side::Bid),
        PrintKind::AtOrder(Side::Bid) | PrintKind::Priced(Side::Bid) => Some(Side::Ask),
        PrintKind::Hidden | PrintKind::Cross(_) => None,
    }
}

#[inline]
const fn conditions(kind: PrintKind) -> Conditions {
    Conditions::new(match kind {
        PrintKind::AtOrder(_) => [0; 6],
        PrintKind::Priced(_) => [b'C', 0, 0, 0, 0, 0],
        PrintKind::Hidden => [b'P', 0, 0, 0, 0, 0],
        PrintKind::Cross(Code(cross)) => [b'Q', if cross.is_ascii_graphic() { cross } else { 0 }, 0, 0, 0, 0],
    })
}

/// Returns the status of a trading state: paused stocks count as halted, the reason tells the difference.
const fn trading_status(state: Code) -> TradingStatus {
    match state.0 {
        b'T' => TradingStatus::NORMAL,
        b'H' | b'P' => TradingStatus::HALTED,
        b'Q' => TradingStatus::RESTRICTED,
        _ => TradingStatus::UNDEFINED,
    }
}
