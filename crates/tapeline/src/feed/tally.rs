//! Counts a feed's messages by type and by stock, and builds books.

use tapeline_feed::book;
use tapeline_feed::itch::Locate;
use tapeline_feed::line::{Session, Sink};
use tapeline_feed::summary::Summary;
use tapeline_measure::Nanos;

/// A summary that also counts by stock.
#[derive(Debug)]
pub(crate) struct FeedTally {
    pub(crate) summary: Summary,
    by_locate: Vec<u64>,
}

impl FeedTally {
    pub(crate) fn new() -> Self {
        Self { summary: Summary::new(book::BookSettings::default()), by_locate: vec![0; 1 << 16] }
    }

    /// Adds a message without framing.
    pub(crate) fn message(&mut self, bytes: &[u8]) {
        self.count(bytes);
        self.summary.message(bytes);
    }

    /// The stock locate is at the same offset in every message type.
    fn count(&mut self, bytes: &[u8]) {
        if let Some([high, low]) = bytes.get(1..3).and_then(<[u8]>::first_chunk) {
            self.by_locate[usize::from(u16::from_be_bytes([*high, *low]))] += 1;
        }
    }

    /// Symbols with their number of messages, the busiest first.
    pub(super) fn busiest(&self) -> Vec<(Locate, u64)> {
        let counted = (1..=u16::MAX).map(|locate| (Locate(locate), self.by_locate[usize::from(locate)]));
        let mut busiest: Vec<_> = counted.filter(|(_, count)| *count > 0).collect();
        busiest.sort_by_key(|(locate, count)| (std::cmp::Reverse(*count), locate.0));
        busiest
    }
}

impl Sink for FeedTally {
    fn message(&mut self, sequence: u64, bytes: &[u8], received: Nanos) {
        self.count(bytes);
        Sink::message(&mut self.summary, sequence, bytes, received);
    }

    fn gap(&mut self, first: u64, last: u64) {
        self.summary.gap(first, last);
    }

    fn end_of_session(&mut self, next: u64) {
        self.summary.end_of_session(next);
    }

    fn end_taken_back(&mut self, next: u64) {
        self.summary.end_taken_back(next);
    }

    fn reset(&mut self, session: Session) {
        self.summary.reset(session);
    }
}
