//! A summary of a file of records, for people and programs.

use std::collections::BTreeMap;

use super::books::{DbnBooks, DbnSettings};
use super::field::{Flags, Letter};
use super::record::{self, DbnRecord, Header, RecordKind};
use super::symbols::DbnSymbols;

/// The first and last value of a quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range<T> {
    /// The first.
    pub first: Option<T>,
    /// The last.
    pub last: Option<T>,
}

impl<T: Copy> Range<T> {
    fn see(&mut self, value: T) {
        self.first.get_or_insert(value);
        self.last = Some(value);
    }
}

/// A summary that adds up records. Memory: that of [the books](DbnBooks), and one entry for each publisher.
#[derive(Debug)]
pub struct DbnSummary {
    /// The books: names, tops, volumes, counters.
    pub books: DbnBooks,
    /// Number of records.
    pub records: u64,
    by_kind: [u64; 256],
    by_words: [u64; 256],
    /// Number of records by publisher.
    pub by_publisher: BTreeMap<u16, u64>,
    by_action: [u64; 256],
    by_side: [u64; 256],
    by_flags: [u64; 256],
    /// Number of unreadable records.
    pub malformed: u64,
    /// The first and last event time, ns since 1970 UTC, in the file's order.
    pub ts_event: Range<u64>,
    /// The first and last receive time at the publisher, ns since 1970 UTC, in the file's order.
    pub ts_recv: Range<u64>,
    /// The venue's first and last sequence, in the file's order.
    pub sequence: Range<u32>,
    /// Number of records whose event is older than that of the previous record.
    pub times_going_back: u64,
}

/// The data that most kinds of market data have in common.
struct Common {
    action: Option<Letter>,
    side: Letter,
    flags: Flags,
    ts_recv: u64,
    sequence: Option<u32>,
}

impl DbnSummary {
    /// Creates an empty summary; `symbols` are those of the file's metadata.
    #[must_use]
    pub fn new(settings: DbnSettings, symbols: DbnSymbols) -> Self {
        Self {
            books: DbnBooks::new(settings, symbols),
            records: 0,
            by_kind: [0; 256],
            by_words: [0; 256],
            by_publisher: BTreeMap::new(),
            by_action: [0; 256],
            by_side: [0; 256],
            by_flags: [0; 256],
            malformed: 0,
            ts_event: Range::default(),
            ts_recv: Range::default(),
            sequence: Range::default(),
            times_going_back: 0,
        }
    }

    /// Adds a record.
    pub fn record(&mut self, bytes: &[u8]) {
        self.records += 1;
        let (Some(header), Ok(record)) = (Header::of(bytes), record::decode(bytes)) else {
            self.malformed += 1;
            return;
        };
        self.by_kind[usize::from(header.kind.0)] += 1;
        self.by_words[usize::from(bytes[0])] += 1;
        *self.by_publisher.entry(header.publisher).or_default() += 1;
        self.times_going_back += u64::from(self.ts_event.last.is_some_and(|last| header.ts_event < last));
        self.ts_event.see(header.ts_event);
        if let Some(common) = Common::of(&record) {
            if let Some(action) = common.action {
                self.by_action[usize::from(action.0)] += 1;
                self.by_side[usize::from(common.side.0)] += 1;
                self.by_flags[usize::from(common.flags.0)] += 1;
            }
            self.ts_recv.see(common.ts_recv);
            if let Some(sequence) = common.sequence {
                self.sequence.see(sequence);
            }
        }
        let _ = self.books.apply(&header, &record);
    }

    /// Prefetches what the next records need, as [`DbnBooks::expect`] does.
    #[inline]
    pub fn expect(&mut self, ahead: &[u8]) {
        self.books.expect(ahead);
    }

    /// Returns the number of records by kind.
    pub fn by_kind(&self) -> impl Iterator<Item = (RecordKind, u64)> + '_ {
        counted(&self.by_kind).map(|(kind, count)| (RecordKind(kind), count))
    }

    /// Returns the number of records by their length in bytes.
    pub fn by_length(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        counted(&self.by_words).map(|(words, count)| (usize::from(words) * 4, count))
    }

    /// Returns the number of records with an action, by action.
    pub fn by_action(&self) -> impl Iterator<Item = (Letter, u64)> + '_ {
        counted(&self.by_action).map(|(letter, count)| (Letter(letter), count))
    }

    /// Returns the number of records with an action, by side.
    pub fn by_side(&self) -> impl Iterator<Item = (Letter, u64)> + '_ {
        counted(&self.by_side).map(|(letter, count)| (Letter(letter), count))
    }

    /// Returns the number of records with an action, by flags.
    pub fn by_flags(&self) -> impl Iterator<Item = (Flags, u64)> + '_ {
        counted(&self.by_flags).map(|(flags, count)| (Flags(flags), count))
    }
}

fn counted(counts: &[u64; 256]) -> impl Iterator<Item = (u8, u64)> + '_ {
    (0..=u8::MAX).zip(counts).filter(|(_, count)| **count > 0).map(|(at, count)| (at, *count))
}

impl Common {
    fn of(record: &DbnRecord<'_>) -> Option<Self> {
        macro_rules! full {
            ($it:ident) => {
                Self {
                    action: Some($it.action()),
                    side: $it.side(),
                    flags: $it.flags(),
                    ts_recv: $it.ts_recv(),
                    sequence: Some($it.sequence()),
                }
            };
        }
        Some(match record {
            DbnRecord::Mbo(it) => full!(it),
            DbnRecord::Trade(it) => full!(it),
            DbnRecord::Mbp1(it) => full!(it),
            DbnRecord::Mbp10(it) => full!(it),
            DbnRecord::Cmbp1(it) => Self {
                action: Some(it.action()),
                side: it.side(),
                flags: it.flags(),
                ts_recv: it.ts_recv(),
                sequence: None,
            },
            _ => return None,
        })
    }
}
