//! One symbol of a venue: its book, its trades, its best bid and ask.

use std::collections::VecDeque;

use hashbrown::HashMap;

use super::SymbolCounters;
use super::decimal::{Decimal, are_equal, at_scale};
use super::price_book::{Change, PriceBook};
use super::resync::Resync;
use crate::draft::{Changed, Conditions, Draft, DraftQuote, Reason, Trade, TradingStatus};
use crate::itch::Side;

/// Nanoseconds of a day.
const DAY_NS: u64 = 86_400_000_000_000;

/// The relation of a book to its snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Join {
    /// The book has no snapshot that fits, and none was requested.
    Apart,
    /// A snapshot was requested.
    Requested,
    /// The book is right. `is_first`: no difference was applied since the snapshot.
    Joined {
        /// `true` until the first difference after the snapshot.
        is_first: bool,
    },
}

/// The best bid and ask by a message of their own, at an update of the book.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticker {
    pub(super) update: u64,
    pub(super) bid: Change,
    pub(super) ask: Change,
}

/// A trade as the venue reports it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traded {
    pub(super) price: Decimal,
    pub(super) size: Decimal,
    /// The venue's number; 0 if the venue has none.
    pub(super) id: u64,
    pub(super) aggressor: Option<Side>,
    /// ns since 1970 UTC.
    pub(super) at_ns: u64,
}

/// A symbol.
#[derive(Debug)]
pub(super) struct VenueInstrument {
    pub(super) symbol: Box<str>,
    pub(super) book: PriceBook,
    pub(super) join: Join,
    pub(super) resync: Resync,
    /// The number of the last update in the book.
    pub(super) update: u64,
    pub(super) ticker: Option<Ticker>,
    /// Differences that wait for the snapshot, each a whole message.
    pub(super) waiting: VecDeque<Box<[u8]>>,
    pub(super) waiting_bytes: usize,
    /// Side and price of each level, for venues that number levels.
    pub(super) by_id: HashMap<u64, (Side, Decimal), foldhash::fast::RandomState>,
    /// The number of the last trade; 0 before the first.
    pub(super) trade_id: u64,
    pub(super) counters: SymbolCounters,
    /// The number of the message that was counted last.
    pub(super) counted: u64,
    last: Option<Traded>,
    volume: Decimal,
    trades: u64,
    quoted_ns: Option<u64>,
    shown: (Option<DraftQuote>, Option<DraftQuote>),
}

impl VenueInstrument {
    pub(super) fn new(symbol: &str, max_levels: usize) -> Self {
        Self {
            symbol: symbol.into(),
            book: PriceBook::new(max_levels),
            join: Join::Apart,
            resync: Resync::default(),
            update: 0,
            ticker: None,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            by_id: HashMap::default(),
            trade_id: 0,
            counters: SymbolCounters::default(),
            counted: 0,
            last: None,
            volume: Decimal { mantissa: 0, decimals: 0 },
            trades: 0,
            quoted_ns: None,
            shown: (None, None),
        }
    }

    pub(super) const fn is_joined(&self) -> bool {
        matches!(self.join, Join::Joined { .. })
    }

    /// Forgets the differences that wait for a snapshot.
    pub(super) fn forget_waiting(&mut self) {
        self.waiting.clear();
        self.waiting_bytes = 0;
    }

    /// Returns the best bid and ask: those of the ticker if it is newer than the book.
    fn top(&self) -> (Option<DraftQuote>, Option<DraftQuote>) {
        match &self.ticker {
            Some(ticker) if ticker.update > self.update || !self.is_joined() => {
                // A side without orders has size zero.
                let quote = |change: Change| (change.1.mantissa > 0).then(|| self.book.quote(change));
                (quote(ticker.bid), quote(ticker.ask))
            }
            _ => (self.book.best(Side::Bid), self.book.best(Side::Ask)),
        }
    }

    /// Stores the best bid and ask as published, and returns the fields that changed.
    pub(super) fn show(&mut self, at_ns: u64) -> Changed {
        let (bid, ask) = self.top();
        let (old_bid, old_ask) = std::mem::replace(&mut self.shown, (bid, ask));
        let changed = Changed {
            bid: !is_same(old_bid, bid, |quote| quote.price),
            bid_size: !is_same(old_bid, bid, size),
            ask: !is_same(old_ask, ask, |quote| quote.price),
            ask_size: !is_same(old_ask, ask, size),
            ..Changed::default()
        };
        if changed.is_quote() {
            self.quoted_ns = Some(at_ns);
        }
        changed
    }

    /// Adds a trade to the last trade and the volume, or sets only the last trade.
    pub(super) fn trade(&mut self, trade: Traded, counts: bool) {
        self.last = Some(trade);
        if counts {
            self.trades += 1;
            self.volume = sum(self.volume, trade.size);
        }
    }

    /// Returns a draft with these fields marked as changed.
    pub(super) fn draft(&self, changed: Changed) -> Draft {
        let (bid, ask) = self.shown;
        Draft {
            update: changed.update_type(),
            changed,
            bid,
            ask,
            quote_ns: self.quoted_ns.map(|ns| ns % DAY_NS),
            trade: self.last.map(|last| Trade {
                price: last.price,
                size: last.size.mantissa.unsigned_abs(),
                size_decimals: last.size.decimals,
                id: last.id,
                aggressor: last.aggressor,
                conditions: Conditions::default(),
            }),
            trade_ns: self.last.map(|last| last.at_ns % DAY_NS),
            volume: self.volume.mantissa.unsigned_abs(),
            volume_decimals: self.volume.decimals,
            trades: self.trades,
            status: TradingStatus::UNDEFINED,
            reason: Reason::default(),
        }
    }
}

/// Returns `true` if one number of two quotes is equal, or both quotes are missing.
#[inline]
fn is_same(
    one: Option<DraftQuote>,
    other: Option<DraftQuote>,
    number: impl Fn(&DraftQuote) -> Decimal,
) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => are_equal(number(&one), number(&other)),
        (None, None) => true,
        _ => false,
    }
}

/// Returns a quote's size as a number.
#[inline]
fn size(quote: &DraftQuote) -> Decimal {
    // Sizes of venues are read as `i64`.
    Decimal { mantissa: i64::try_from(quote.size).unwrap_or(i64::MAX), decimals: quote.size_decimals }
}

/// Adds two sizes, with the decimals of the longer one. Stays at the largest number that fits.
fn sum(volume: Decimal, size: Decimal) -> Decimal {
    let decimals = volume.decimals.max(size.decimals);
    let (Some(before), Some(size)) = (at_scale(volume, decimals), at_scale(size, decimals)) else {
        return volume;
    };
    Decimal { mantissa: before.saturating_add(size), decimals }
}
