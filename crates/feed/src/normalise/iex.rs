//! IEX TOPS 1.6 and DEEP 1.0: quotes or price levels, trades and trading states to drafts.
//!
//! An update is drafted when a published field changes: price or size of the best bid or ask once its event is complete, a trade, a broken trade (a
//! correction of volume and number of trades that names the trade; the last price stays), the trading status, an auction's state. Other data only
//! updates books, listings and counters.
//!
//! A trade's conditions are the letters that the specification gives its flags: `F` intermarket sweep, `T` extended hours, `I` odd lot, `8`
//! trade-through exempt, `X` single-price cross. The side is not stated. Source: TOPS 1.6, trade report message.
//!
//! The trading status combines that of the market and IEX's own: a security that IEX alone has halted is halted, with the reason `IEX`. While
//! orders are accepted before an opening, trading is restricted. Source: TOPS 1.6 and DEEP 1.0, trading and operational halt status messages.

use tapeline_nanos::Nanos;

use super::{Applied, DAY_NS, Instrument};
use crate::draft::{
    self, Auction, BrokenTrade, Changed, Conditions, Detail, Draft, ImbalanceSide, Price, Reason, Trade,
    TradingStatus, Variation,
};
use crate::iex::{self, IexBook, IexBooks, IexMessage, IexQuote, Listing, MalformedIexMessage, decode};
use crate::itch::ByType;

/// Decimals of IEX's prices.
const DECIMALS: u8 = 4;

/// The reason of an operational halt.
const IEX_ALONE: &str = "IEX";

/// A normaliser that maintains the books of an IEX feed, and drafts an update whenever a published field changes.
#[derive(Debug)]
pub struct Iex {
    books: IexBooks,
    /// The detail of the last message, if it has one.
    detail: Option<Detail>,
    counters: super::NormaliserCounters,
}

impl Iex {
    /// Creates a normaliser in its initial state.
    #[must_use]
    pub fn new(settings: iex::IexSettings) -> Self {
        Self { books: IexBooks::new(settings), detail: None, counters: super::NormaliserCounters::default() }
    }

    /// Applies one message. Allocates only if a book gets deeper, or a symbol is new.
    ///
    /// # Errors
    /// [`MalformedIexMessage`]: it was counted, and nothing else has changed.
    #[inline]
    pub fn apply(&mut self, bytes: &[u8]) -> Result<Applied, MalformedIexMessage> {
        let message = match decode(bytes) {
            Ok(message) => message,
            Err(malformed) => return Err(self.malformed(malformed)),
        };
        let letter = message.letter();
        self.counters.messages.count(letter);
        if message.extra_bytes(bytes) > 0 {
            self.counters.longer.count(letter);
        }
        let change = self.books.apply(&message);
        if change.fields.has_detail() {
            self.detail = detail_of(&message);
        }
        let draft = match change.instrument {
            Some(instrument) if change.fields.is_any() => self.draft_of(instrument, change.fields),
            _ => None,
        };
        Ok(Applied {
            instrument: change.instrument.map_or(Instrument(0), Into::into),
            letter,
            event: Nanos(message.ts_ns().unwrap_or_default()),
            change: draft,
            image: change.new,
        })
    }

    /// Prefetches what the next messages need, as [`IexBooks::expect`] does.
    #[inline]
    pub fn expect<'a>(&self, messages: impl Iterator<Item = &'a [u8]>) -> usize {
        self.books.expect(messages)
    }

    #[cold]
    fn malformed(&mut self, malformed: MalformedIexMessage) -> MalformedIexMessage {
        match malformed {
            MalformedIexMessage::Empty => self.counters.empty += 1,
            MalformedIexMessage::Short { kind, .. } => self.counters.short.count(kind.letter()),
        }
        malformed
    }

    /// Returns all values of an instrument, all fields marked as changed; `None` for one that does not exist.
    #[must_use]
    pub fn image(&self, instrument: Instrument) -> Option<Draft> {
        self.draft_of(number(instrument)?, Changed::ALL)
    }

    /// Returns an instrument's symbol.
    #[inline]
    #[must_use]
    pub fn name(&self, instrument: Instrument) -> Option<&str> {
        self.books.book(number(instrument)?).map(IexBook::name).filter(|name| !name.is_empty())
    }

    /// Returns all instruments with a symbol, in the order of appearance.
    pub fn instruments(&self) -> impl Iterator<Item = Instrument> {
        let named = self.books.iter().filter(|(_, book, _)| !book.name().is_empty());
        named.map(|(instrument, ..)| instrument.into())
    }

    #[inline]
    fn draft_of(&self, instrument: iex::IexInstrument, changed: Changed) -> Option<Draft> {
        let (book, listing) = (self.books.book(instrument)?, self.books.listing(instrument)?);
        let (top, volume) = (book.top, &book.volume);
        let (status, reason) = trading_status(listing);
        Some(Draft {
            update: changed.update_type(),
            changed,
            bid: quote(top.bid),
            ask: quote(top.ask),
            quote_ns: book.quoted_ts_ns.map(|ns| ns % DAY_NS),
            trade: volume.last.map(|last| Trade {
                price: price(last.price),
                size: u64::from(last.size),
                size_decimals: 0,
                id: last.trade,
                aggressor: None,
                conditions: CONDITIONS[usize::from(last.flags >> UNUSED_FLAGS)],
            }),
            trade_ns: volume.last.map(|last| last.ts_ns % DAY_NS),
            volume: volume.shares,
            volume_decimals: 0,
            trades: volume.trades,
            status,
            reason,
        })
    }

    /// Returns the books.
    #[must_use]
    pub const fn books(&self) -> &IexBooks {
        &self.books
    }

    /// Returns the detail of the last message, if its [change](Changed::has_detail) has one.
    #[must_use]
    pub const fn detail(&self) -> Option<&Detail> {
        self.detail.as_ref()
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &super::NormaliserCounters {
        &self.counters
    }

    /// Returns the messages by type, malformed ones excluded.
    #[must_use]
    pub const fn by_type(&self) -> &ByType {
        &self.counters.messages
    }

    /// Clears the books at the start of a session. The counters stay.
    pub fn reset(&mut self) {
        self.books.clear();
    }
}

/// Numbers of a feed begin at 1: 0 stands for messages about no instrument.
impl From<iex::IexInstrument> for Instrument {
    fn from(instrument: iex::IexInstrument) -> Self {
        Self(instrument.0.saturating_add(1))
    }
}

#[inline]
fn number(instrument: Instrument) -> Option<iex::IexInstrument> {
    instrument.0.checked_sub(1).map(iex::IexInstrument)
}

#[inline]
fn price(price: iex::IexPrice) -> Price {
    Price { mantissa: price.0, decimals: DECIMALS }
}

#[inline]
fn quote(quote: IexQuote) -> Option<draft::DraftQuote> {
    quote.is_some().then(|| draft::DraftQuote {
        price: price(quote.price),
        size: u64::from(quote.size),
        size_decimals: 0,
    })
}

/// Number of the lowest flags of a trade, which have no meaning.
const UNUSED_FLAGS: u32 = 3;

/// Sale conditions by the flags with a meaning.
static CONDITIONS: [Conditions; 256 >> UNUSED_FLAGS] = {
    let mut conditions = [Conditions::new([0; 6]); 256 >> UNUSED_FLAGS];
    let mut flags = 0;
    while flags < conditions.len() {
        let (mut letters, mut count) = ([0; 6], 0);
        let mut at = 0;
        while at < FLAG_LETTERS.len() {
            if flags << UNUSED_FLAGS & 0x80 >> at != 0 {
                letters[count] = FLAG_LETTERS[at];
                count += 1;
            }
            at += 1;
        }
        conditions[flags] = Conditions::new(letters);
        flags += 1;
    }
    conditions
};

/// The letters of a trade's flags, from the highest flag down.
const FLAG_LETTERS: [u8; 5] = *b"FTI8X";

/// Returns the detail of a broken trade or an auction's state.
#[cold]
fn detail_of(message: &IexMessage<'_>) -> Option<Detail> {
    match message {
        IexMessage::TradeBreak(m) => Some(Detail::Broken(BrokenTrade {
            id: m.trade(),
            traded: Some((price(m.price()), u64::from(m.size()))),
            at_ns: m.ts_ns() % DAY_NS,
        })),
        IexMessage::AuctionInformation(m) => {
            // A missing price is 0.
            let told = |told: iex::IexPrice| (told.0 != 0).then(|| price(told));
            Some(Detail::Auction(Auction {
                kind: m.kind().0,
                paired: u64::from(m.paired()),
                imbalance: u64::from(m.imbalance()),
                side: match m.side().0 {
                    b'N' => ImbalanceSide::NONE,
                    b'B' => ImbalanceSide::BUY,
                    b'S' => ImbalanceSide::SELL,
                    _ => ImbalanceSide::UNDEFINED,
                },
                reference: told(m.reference()),
                near: told(m.indicative()),
                far: told(m.book_clearing()),
                variation: Variation::default(),
                due_ns: (m.scheduled_s() != 0).then(|| u64::from(m.scheduled_s()) * 1_000_000_000 % DAY_NS),
                extensions: Some(m.extensions()),
                at_ns: m.ts_ns() % DAY_NS,
            }))
        }
        _ => None,
    }
}

/// Returns the status that results from the market's trading status and IEX's own halt.
fn trading_status(listing: &Listing) -> (TradingStatus, Reason) {
    let reason = Reason::new(listing.reason.as_str());
    match listing.trading.0 {
        b'H' | b'P' => (TradingStatus::HALTED, reason),
        _ if listing.is_halted_operationally() => (TradingStatus::HALTED, Reason::new(IEX_ALONE)),
        b'O' => (TradingStatus::RESTRICTED, reason),
        b'T' => (TradingStatus::NORMAL, reason),
        _ => (TradingStatus::UNDEFINED, reason),
    }
}
