//! The selection of instruments by their numbers.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::record::{Header, RecordKind};
use super::symbols::DbnSymbols as Names;
use crate::symbols::Symbols;

/// Maximum number of stored decisions; at the limit all are dropped.
const MOST_REMEMBERED: usize = 1 << 20;

/// A filter that decides for each record whether its instrument is wanted, before the record is decoded.
///
/// A number that the metadata do not name is wanted, and so is every record that names an instrument.
#[derive(Clone, Debug)]
pub struct DbnFilter {
    wanted: Symbols,
    names: Names,
    /// By number: the time until which the decision is valid, ns since 1970 UTC, and whether the instrument is wanted.
    known: HashMap<u32, (u64, bool), RandomState>,
    passed_over: u64,
}

impl DbnFilter {
    /// Creates a filter without names.
    #[must_use]
    pub fn new(wanted: Symbols) -> Self {
        Self {
            wanted,
            names: Names::default(),
            known: HashMap::with_hasher(RandomState::default()),
            passed_over: 0,
        }
    }

    /// Sets the names of the numbers.
    pub fn name_by(&mut self, names: Names) {
        self.names = names;
        self.known.clear();
    }

    /// Returns `true` if a record is wanted; otherwise counts it.
    #[inline]
    pub fn wants(&mut self, record: &[u8]) -> bool {
        let Some(header) = Header::of(record) else { return true };
        let wanted = match self.known.get(&header.instrument) {
            Some((until, wanted)) if header.ts_event < *until => *wanted,
            _ => self.learn(&header),
        };
        self.passed_over += u64::from(!wanted);
        wanted
    }

    #[cold]
    fn learn(&mut self, header: &Header) -> bool {
        if matches!(header.kind, RecordKind::DEFINITION | RecordKind::SYMBOL_MAPPING) {
            return true;
        }
        let Some(named) = self.names.name(header.instrument, header.ts_event) else { return true };
        let wanted = self.wanted.contains(named.name);
        if self.known.len() >= MOST_REMEMBERED {
            self.known.clear();
        }
        self.known.insert(header.instrument, (named.until, wanted));
        wanted
    }

    /// Returns the number of skipped records.
    #[must_use]
    pub const fn passed_over(&self) -> u64 {
        self.passed_over
    }
}
