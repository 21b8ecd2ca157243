//! A readable summary of a feed.

use tapeline_nanos::Nanos;

use crate::book::{self, Books};
use crate::itch::{Code, Message, MessageType, decode};
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
    /// Number of messages, malformed ones included.
    pub messages: u64,
    /// Bytes of those messages, without framing.
    pub message_bytes: u64,
    /// Exchange time of the first message of a known type, ns since midnight in New York.
    pub first_ns_of_day: Option<u64>,
    /// Exchange time of the last message of a known type, ns since midnight in New York.
    pub last_ns_of_day: Option<u64>,
    /// Number of messages that are older than the previous one.
    pub times_going_back: u64,
    /// The first 64 system events with their times, ns since midnight in New York.
    pub system_events: Vec<(Code, u64)>,
    /// The first 64 sessions, in order.
    pub sessions: Vec<Session>,
    /// Number of sessions.
    pub session_count: u64,
    /// The first and last delivered sequence of the last session with messages.
    pub sequences: Option<(u64, u64)>,
    /// The first 10,000 missing ranges, each with first and last sequence.
    pub gaps: Vec<(u64, u64)>,
    /// Number of missing ranges.
    pub gap_count: u64,
    /// Number of missing messages.
    pub missing_messages: u64,
    /// The sequence in the end of the last session, one more than that of its last message.
    pub end_of_session_sequence: Option<u64>,
}

impl Summary {
    /// Creates an empty summary.
    #[must_use]
    pub fn new(settings: book::BookSettings) -> Self {
        Self {
            normaliser: Itch::new(settings, Nanos(0)),
            messages: 0,
            message_bytes: 0,
            first_ns_of_day: None,
            last_ns_of_day: None,
            times_going_back: 0,
            system_events: Vec::new(),
            sessions: Vec::new(),
            session_count: 0,
            sequences: None,
            gaps: Vec::new(),
            gap_count: 0,
            missing_messages: 0,
            end_of_session_sequence: None,
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
        self.first_ns_of_day.get_or_insert(ns);
        self.times_going_back += u64::from(self.last_ns_of_day.is_some_and(|last| ns < last));
        self.last_ns_of_day = Some(ns);
        if let Ok(Message::SystemEvent(event)) = decode(bytes)
            && self.system_events.len() < MAX_LISTED
        {
            self.system_events.push((event.event(), ns));
        }
    }

    /// Returns the counts by type, malformed and odd messages included.
    #[must_use]
    pub const fn counters(&self) -> &NormaliserCounters {
        self.normaliser.counters()
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
        self.missing_messages = self.missing_messages.saturating_add(last - first + 1);
        if self.gaps.len() < MAX_GAPS {
            self.gaps.push((first, last));
        }
    }

    fn end_of_session(&mut self, next: u64) {
        self.end_of_session_sequence = Some(next);
    }

    fn end_taken_back(&mut self, _next: u64) {
        self.end_of_session_sequence = None;
    }

    fn reset(&mut self, session: Session) {
        self.session_count += 1;
        if self.sessions.len() < MAX_LISTED {
            self.sessions.push(session);
        }
        if self.session_count > 1 {
            self.normaliser.reset();
            self.sequences = None;
            self.end_of_session_sequence = None;
        }
    }
}
