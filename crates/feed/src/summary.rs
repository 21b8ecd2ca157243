//! A readable summary of a feed.

use tapeline_nanos::Nanos;

use crate::book::{self, Books};
use crate::itch::{ByType, Code, Message, MessageType, decode};
use crate::line::{Session, Sink};
use crate::normalise::{Itch, NormaliserCounters};

/// Maximum number of listed sessions and system events; further ones are only counted.
const MAX_LISTED: usize = 64;

/// Maximum number of listed gaps; further ones are only counted.
const MAX_GAPS: usize = 10_000;

/// A summary that adds up messages one after another; use it as the sink of an [`Arbiter`](crate::line::Arbiter), or call
/// [`message`](Self::message) for each message of a file.
///
/// A new session clears the books, as in a plant; all other figures continue.
#[derive(Debug)]
pub struct Summary {
    normaliser: Itch,
    messages: u64,
    message_bytes: u64,
    first_ns: Option<u64>,
    last_ns: Option<u64>,
    going_back: u64,
    events: Vec<(Code, u64)>,
    sessions: Vec<Session>,
    session_count: u64,
    sequences: Option<(u64, u64)>,
    gaps: Vec<(u64, u64)>,
    gap_count: u64,
    missing: u64,
    end: Option<u64>,
}

impl Summary {
    /// Creates an empty summary.
    #[must_use]
    pub fn new(settings: book::BookSettings) -> Self {
        Self {
            normaliser: Itch::new(settings, Nanos(0)),
            messages: 0,
            message_bytes: 0,
            first_ns: None,
            last_ns: None,
            going_back: 0,
            events: Vec::new(),
            sessions: Vec::new(),
            session_count: 0,
            sequences: None,
            gaps: Vec::new(),
            gap_count: 0,
            missing: 0,
            end: None,
        }
    }

    /// Adds a message without framing.
    pub fn message(&mut self, bytes: &[u8]) {
        self.messages += 1;
        self.message_bytes += bytes.len() as u64;
        // Malformed messages are in the counters now.
        let Ok(applied) = self.normaliser.apply(bytes) else { return };
        // A message of an unknown type may have no time.
        if MessageType::of(applied.letter).is_none() {
            return;
        }
        // Midnight is 0 here.
        let ns = applied.event.0;
        self.first_ns.get_or_insert(ns);
        self.going_back += u64::from(self.last_ns.is_some_and(|last| ns < last));
        self.last_ns = Some(ns);
        if let Ok(Message::SystemEvent(event)) = decode(bytes)
            && self.events.len() < MAX_LISTED
        {
            self.events.push((event.event(), ns));
        }
    }

    /// Returns the number of messages, malformed ones included.
    #[must_use]
    pub const fn messages(&self) -> u64 {
        self.messages
    }

    /// Returns the bytes of those messages, without framing.
    #[must_use]
    pub const fn message_bytes(&self) -> u64 {
        self.message_bytes
    }

    /// Returns the counts by type, malformed and odd messages included.
    #[must_use]
    pub const fn counters(&self) -> &NormaliserCounters {
        self.normaliser.counters()
    }

    /// Returns the counts by type, malformed messages excluded.
    #[must_use]
    pub const fn by_type(&self) -> &ByType {
        &self.normaliser.counters().messages
    }

    /// Returns the exchange time of the first message of a known type, ns since midnight in New York.
    #[must_use]
    pub const fn first_ns_of_day(&self) -> Option<u64> {
        self.first_ns
    }

    /// Returns the exchange time of the last message of a known type, ns since midnight in New York.
    #[must_use]
    pub const fn last_ns_of_day(&self) -> Option<u64> {
        self.last_ns
    }

    /// Returns the number of messages that are older than the previous one.
    #[must_use]
    pub const fn times_going_back(&self) -> u64 {
        self.going_back
    }

    /// Returns the first 64 system events with their times, ns since midnight in New York.
    #[must_use]
    pub fn system_events(&self) -> &[(Code, u64)] {
        &self.events
    }

    /// Returns the first 64 sessions, in order.
    #[must_use]
    pub fn sessions(&self) -> &[Session] {
        &self.sessions
    }

    /// Returns the number of sessions.
    #[must_use]
    pub const fn session_count(&self) -> u64 {
        self.session_count
    }

    /// Returns the first and last delivered sequence of the last session with messages.
    #[must_use]
    pub const fn sequences(&self) -> Option<(u64, u64)> {
        self.sequences
    }

    /// Returns the first 10,000 missing ranges, each with first and last sequence.
    #[must_use]
    pub fn gaps(&self) -> &[(u64, u64)] {
        &self.gaps
    }

    /// Returns the number of missing ranges.
    #[must_use]
    pub const fn gap_count(&self) -> u64 {
        self.gap_count
    }

    /// Returns the number of missing messages.
    #[must_use]
    pub const fn missing_messages(&self) -> u64 {
        self.missing
    }

    /// Returns the sequence in the end of the last session, one more than that of its last message.
    #[must_use]
    pub const fn end_of_session_sequence(&self) -> Option<u64> {
        self.end
    }

    /// Returns the books: symbols, levels, volumes, unknown references.
    #[must_use]
    pub const fn books(&self) -> &Books {
        self.normaliser.books()
    }
}

impl Sink for Summary {
    fn message(&mut self, sequence: u64, bytes: &[u8], _received: Nanos) {
        let (first, _) = self.sequences.unwrap_or((sequence, sequence));
        self.sequences = Some((first, sequence));
        Self::message(self, bytes);
    }

    fn gap(&mut self, first: u64, last: u64) {
        self.gap_count += 1;
        // Sequences begin at 1, so the length of the range does not overflow.
        self.missing = self.missing.saturating_add(last - first + 1);
        if self.gaps.len() < MAX_GAPS {
            self.gaps.push((first, last));
        }
    }

    fn end_of_session(&mut self, next: u64) {
        self.end = Some(next);
    }

    fn end_taken_back(&mut self, _next: u64) {
        self.end = None;
    }

    fn reset(&mut self, session: Session) {
        self.session_count += 1;
        if self.sessions.len() < MAX_LISTED {
            self.sessions.push(session);
        }
        if self.session_count > 1 {
            self.normaliser.reset();
            self.sequences = None;
            self.end = None;
        }
    }
}
