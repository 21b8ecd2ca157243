//! From an exchange's message to a draft of an update.
//!
//! The books are kept along the way. An update is drafted when a published field changes: price or size of the best bid or
//! ask, a trade that counts as volume, the trading state. Everything else only goes into books and counters.
//!
//! Not drafted: a broken trade (`B`) is counted, and volume that was published stays; an operational halt of one market
//! (`h`) does not change the trading state; executions that must not be printed change quotes, not volume.

use tapeline_measure::Nanos;

use crate::book::{self, Book, Books, Change, Print};
use crate::draft::{Changed, Draft};
use crate::itch::{ByType, Kind, Locate, Malformed, Message, Prefix, decode};

/// Nanoseconds of a day.
const DAY_NS: u64 = 86_400_000_000_000;

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The stock's number of the day; 0 where the message is about no stock.
    pub locate: Locate,
    /// The message's type.
    pub kind: Kind,
    /// When it happened, ns since midnight in New York; 0 for an unknown type too short to tell.
    pub event_ns_of_day: u64,
    /// The update to publish, where a published field changed.
    pub change: Option<Draft>,
}

/// What a normaliser counts, beside what [the books](book::Counters) do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages by type, unknown types included, malformed ones not.
    pub messages: ByType,
    /// Messages shorter than their type, by type.
    pub short: ByType,
    /// Messages of no byte.
    pub empty: u64,
    /// Messages with bytes behind their known fields, by type.
    pub longer: ByType,
    /// Trades that were broken: the volume that was published is not corrected.
    pub broken_trades: u64,
}

/// Keeps the books of a feed, and drafts an update whenever a published field changes.
#[derive(Debug)]
pub struct Normaliser {
    books: Books,
    midnight: Nanos,
    counters: Counters,
}

impl Normaliser {
    /// A normaliser for the day that begins at `midnight`, the instant at which it is midnight in New York.
    #[must_use]
    pub fn new(settings: book::Settings, midnight: Nanos) -> Self {
        Self { books: Books::new(settings), midnight, counters: Counters::default() }
    }

    /// Applies one ITCH message. Allocates only where a book gets deeper, or a stock or more orders than ever appear.
    ///
    /// # Errors
    /// [`Malformed`]: it was counted, and nothing else has changed.
    #[inline]
    pub fn apply(&mut self, bytes: &[u8]) -> Result<Applied, Malformed> {
        let message = match decode(bytes) {
            Ok(message) => message,
            Err(malformed) => return Err(self.malformed(malformed)),
        };
        let kind = message.kind();
        self.counters.messages.count(kind.letter());
        if message.extra_bytes(bytes) > 0 {
            self.counters.longer.count(kind.letter());
        }
        if let Message::BrokenTrade(_) = message {
            self.counters.broken_trades += 1;
        }
        let change = self.books.apply(&message);
        let event_ns_of_day = message.prefix().map_or(0, Prefix::ts_ns);
        let draft = if change.is_any() { self.draft(&change) } else { None };
        Ok(Applied { locate: change.locate, kind, event_ns_of_day, change: draft })
    }

    #[cold]
    fn malformed(&mut self, malformed: Malformed) -> Malformed {
        match malformed {
            Malformed::Empty => self.counters.empty += 1,
            Malformed::Short { kind, .. } => self.counters.short.count(kind.letter()),
        }
        malformed
    }

    /// The instant of an event of the day.
    #[inline]
    #[must_use]
    pub fn instant(&self, ns_of_day: u64) -> Nanos {
        self.midnight + ns_of_day
    }

    /// Everything that is known of a stock, all fields marked as changed; `None` for one without a name.
    #[must_use]
    pub fn image(&self, locate: Locate) -> Option<Draft> {
        let book = self.books.book(locate).filter(|book| !book.symbol().is_blank())?;
        Some(self.draft_of(locate, book, Changed::ALL))
    }

    /// The draft of a change; `None` where the stock has no name, so that nobody could have asked for it.
    #[inline]
    fn draft(&self, change: &Change) -> Option<Draft> {
        let book = self.books.book(change.locate).filter(|book| !book.symbol().is_blank())?;
        let changed = Changed {
            bid: change.bid,
            bid_size: change.bid_size,
            ask: change.ask,
            ask_size: change.ask_size,
            trade: change.print.is_some(),
            status: change.status,
        };
        Some(self.draft_of(change.locate, book, changed))
    }

    #[inline]
    fn draft_of(&self, locate: Locate, book: &Book, changed: Changed) -> Draft {
        let volume = book.volume();
        Draft {
            symbol: book.symbol(),
            locate,
            update: changed.update_type(),
            changed,
            top: book.top(),
            quote_ns: book.quoted_ts_ns().map(|ns| self.gmt(ns)),
            trade: volume.last.map(|last| Print {
                price: last.price,
                shares: last.shares,
                match_number: last.match_number,
            }),
            trade_ns: volume.last.map(|last| self.gmt(last.ts_ns)),
            volume_shares: volume.traded_shares,
            trades: volume.trades,
            status: book.trading_state(),
            reason: book.reason(),
        }
    }

    /// Time of day in GMT, ns, of a time of day in New York.
    #[inline]
    fn gmt(&self, ns_of_day: u64) -> u64 {
        self.instant(ns_of_day).0 % DAY_NS
    }

    /// The books.
    #[must_use]
    pub const fn books(&self) -> &Books {
        &self.books
    }

    /// What was counted.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Forgets the books: a session begins. The counters stay.
    pub fn reset(&mut self) {
        self.books.clear();
    }
}
