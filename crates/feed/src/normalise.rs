//! From an exchange's message to a draft of an update.

use tapeline_measure::Nanos;

use crate::book::{self, Books};
use crate::draft::Draft;
use crate::itch::{ByType, Kind, Locate, Malformed};

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

/// What a normaliser counts.
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
    /// Messages about a stock before its directory entry, by type.
    pub before_directory: ByType,
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

    /// Applies one ITCH message.
    ///
    /// # Errors
    /// [`Malformed`]: it was counted, and nothing else has changed.
    pub fn apply(&mut self, message: &[u8]) -> Result<Applied, Malformed> {
        let _ = message;
        Err(Malformed::Empty)
    }

    /// The instant of an event of the day.
    #[must_use]
    pub fn instant(&self, ns_of_day: u64) -> Nanos {
        Nanos(self.midnight.0.saturating_add(ns_of_day))
    }

    /// Everything that is known of a stock, all fields marked as changed; `None` for one without a name.
    #[must_use]
    pub fn image(&self, locate: Locate) -> Option<Draft> {
        let _ = locate;
        None
    }

    /// The books.
    #[must_use]
    pub fn books(&self) -> &Books {
        &self.books
    }

    /// What was counted.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Forgets the books: a session begins.
    pub fn reset(&mut self) {
        self.books.clear();
    }
}
