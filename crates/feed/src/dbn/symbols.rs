//! The symbol of an instrument number on each day, from a file's metadata.

use std::cmp::Reverse;

use ::dbn::SType;

use super::metadata::Metadata;

/// Nanoseconds of a day.
const DAY_NS: u64 = 86_400_000_000_000;
/// The Julian day of 1970-01-01.
const EPOCH_JULIAN: i32 = 2_440_588;

/// Symbols by instrument and day.
#[derive(Clone, Debug, Default)]
pub struct DbnSymbols {
    names: Vec<Box<str>>,
    /// Sorted by instrument, the latest day first.
    spans: Vec<Span>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    instrument: u32,
    /// The first day, counted from 1970 UTC.
    from: u32,
    name: u32,
}

/// A symbol and the end of its validity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Named<'a> {
    pub(super) name: &'a str,
    /// Time from which another symbol may apply, ns since 1970 UTC.
    pub(super) until: u64,
}

impl DbnSymbols {
    /// Reads the symbols of a file's metadata. Skips mappings whose instrument is not a number.
    #[must_use]
    pub fn of(metadata: &Metadata) -> Self {
        let about = &metadata.about;
        // Either side of a mapping may be the number.
        let by_number = about.stype_in == Some(SType::InstrumentId);
        let mut symbols = Self::default();
        for mapping in &about.mappings {
            let mut last = None;
            for interval in &mapping.intervals {
                let (number, name) = if by_number {
                    (&mapping.raw_symbol, &interval.symbol)
                } else {
                    (&interval.symbol, &mapping.raw_symbol)
                };
                let Ok(instrument) = number.parse() else { continue };
                if name.is_empty() {
                    continue;
                }
                let at = match last {
                    Some(at) if *symbols.names[at as usize] == **name => at,
                    _ => {
                        symbols.names.push(name.as_str().into());
                        symbols.names.len() as u32 - 1
                    }
                };
                last = Some(at);
                let day = |date: i32| u32::try_from(date - EPOCH_JULIAN).unwrap_or(0);
                let from = day(interval.start_date.to_julian_day());
                symbols.spans.push(Span { instrument, from, name: at });
            }
        }
        symbols.spans.sort_by_key(|span| (span.instrument, Reverse(span.from)));
        symbols
    }

    /// Returns the symbol of an instrument at a time. Before the first mapped day it is that of the first day; after the last, that of the last:
    /// events may carry the time of an earlier session.
    pub(super) fn name(&self, instrument: u32, ts_event: u64) -> Option<Named<'_>> {
        let from = self.spans.partition_point(|span| span.instrument < instrument);
        let spans = self.spans[from..].iter().take_while(|span| span.instrument == instrument);
        let day = u32::try_from(ts_event / DAY_NS).unwrap_or(u32::MAX);
        let mut until = u64::MAX;
        let mut found = None;
        for span in spans {
            found = Some(Named { name: self.names.get(span.name as usize)?, until });
            if span.from <= day {
                break;
            }
            until = u64::from(span.from) * DAY_NS;
        }
        found
    }

    /// Returns the symbols; one of several instruments or days may appear more than once.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }

    /// Returns the number of mapped spans of days.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns `true` if there are no mappings.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }
}
