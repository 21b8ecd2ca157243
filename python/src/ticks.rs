//! Ticks in sequence, gathered into batches; a gap is never silent.

use std::collections::HashSet;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tapeline_nanos::Nanos;
use tapeline_omm::Dictionary;
use tapeline_plant::tick::{Flags, Tick};

use crate::batch::Batch;
use crate::columns::{Columns, RowHead, TICK_COLUMNS};
use crate::error::Error;

/// What a gap in the sequence becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnGap {
    Raise,
    Row,
    Ignore,
}

impl OnGap {
    pub(crate) fn named(name: &str) -> PyResult<Self> {
        Ok(match name {
            "raise" => Self::Raise,
            "row" => Self::Row,
            "ignore" => Self::Ignore,
            other => {
                let text = format!("on_gap is \"raise\", \"row\" or \"ignore\", not {other:?}");
                return Err(PyValueError::new_err(text));
            }
        })
    }
}

/// Gathers ticks into batches.
#[derive(Debug)]
pub(crate) struct Gatherer {
    columns: Columns,
    on_gap: OnGap,
    pub(crate) most_rows: usize,
    /// The first and the last sequence of the batch.
    sequences: Option<(u64, u64)>,
    /// Ticks that are missing before the batch.
    missing: u64,
    /// The next sequence; `None` before the first tick.
    awaited: Option<u64>,
    /// The first and the last sequence of a gap behind the batch, and the tick behind that.
    gap: Option<(u64, u64)>,
    held: Vec<u8>,
    /// The items that are wanted; all if `None`.
    items: Option<HashSet<String>>,
    /// The error that ends the stream once the rows before it were taken.
    failed: Option<Error>,
}

impl Gatherer {
    pub(crate) fn new(columns: Option<Vec<String>>, on_gap: OnGap, most_rows: usize) -> Result<Self, Error> {
        if most_rows == 0 {
            return Err(Error::argument("max_rows is 0".to_owned(), "a batch has at least one row"));
        }
        let columns = columns.unwrap_or_else(|| {
            let gap = (on_gap == OnGap::Row).then_some("missing");
            TICK_COLUMNS.into_iter().chain(gap).map(str::to_owned).collect()
        });
        let dictionary = Arc::new(Dictionary::builtin().clone());
        let columns = Columns::new(&columns, dictionary)?;
        Ok(Self {
            columns,
            on_gap,
            most_rows,
            sequences: None,
            missing: 0,
            awaited: None,
            gap: None,
            held: Vec::new(),
            items: None,
            failed: None,
        })
    }

    /// Takes ticks of these items alone; the others count in the sequence.
    pub(crate) fn only(self, items: Option<HashSet<String>>) -> Self {
        Self { items, ..self }
    }

    /// Returns the sequence of the next tick; `None` before the first one.
    pub(crate) const fn awaited(&self) -> Option<u64> {
        self.awaited
    }

    /// Expects this sequence next.
    pub(crate) const fn expect(&mut self, sequence: u64) {
        self.awaited = Some(sequence);
    }

    pub(crate) fn schema(&self) -> arrow_schema::SchemaRef {
        self.columns.schema()
    }

    pub(crate) const fn rows(&self) -> usize {
        self.columns.rows()
    }

    /// Returns `true` if the batch must be taken before more is added.
    pub(crate) const fn is_full(&self) -> bool {
        self.columns.is_full(self.most_rows) || self.failed.is_some() || self.gap.is_some()
    }

    /// Adds a tick; one that is not wanted counts in the sequence alone.
    pub(crate) fn add(&mut self, tick: &Tick<'_>, is_wanted: bool) {
        let is_wanted = is_wanted && self.items.as_ref().is_none_or(|items| items.contains(tick.name));
        let sequence = tick.header.seq.0;
        // Outside the sequence is what a plant below a bridge says itself: images, and states of its connection.
        let is_outside = tick.header.seq.is_outside();
        if let Some(awaited) = self.awaited.filter(|_| !is_outside) {
            if sequence < awaited {
                // Taken before the position on the ring was lost.
                return;
            }
            if sequence > awaited {
                self.gap(awaited, sequence - 1);
                if is_wanted && (self.gap.is_some() || self.failed.is_some()) {
                    tick.write(&mut self.held);
                    return;
                }
            }
        }
        if !is_outside {
            self.awaited = Some(sequence + 1);
        }
        if !is_wanted {
            return;
        }
        if !is_outside {
            self.count(sequence);
        }
        let head = RowHead {
            sequence,
            item: tick.name,
            number: tick.header.item.0,
            service: tick.header.service,
            kind: tick.header.kind.name(),
            event_time: tick.header.event,
            received_time: tick.header.wire,
            published_time: tick.header.sequenced,
            state: tick.header.state.name(),
            text: None,
            suspect: tick.header.flags.contains(Flags::SUSPECT),
            missing: 0,
        };
        if let Err(fault) = self.columns.add(&head, tick.body) {
            self.failed = Some(Error::damaged(format!("tick {sequence} of {:?}: {fault}", tick.name)));
        }
    }

    /// Ticks are missing. Rows before the gap leave first.
    pub(crate) fn gap(&mut self, first: u64, last: u64) {
        self.awaited = Some(last + 1);
        self.gap = Some((first, last));
        if self.columns.rows() == 0 {
            self.begin_behind_gap();
        }
    }

    /// Begins a batch behind the gap.
    fn begin_behind_gap(&mut self) {
        let Some((first, last)) = self.gap.take() else { return };
        let count = last - first + 1;
        match self.on_gap {
            OnGap::Raise => {
                self.gap = None;
                self.failed = Some(Error::gap(first, last));
            }
            OnGap::Ignore => self.missing += count,
            OnGap::Row => {
                self.missing += count;
                self.count(first);
                let never = Nanos(0);
                self.columns.add_without_fields(&RowHead {
                    sequence: first,
                    item: "",
                    number: 0,
                    service: 0,
                    kind: "gap",
                    event_time: never,
                    received_time: never,
                    published_time: never,
                    state: "stale",
                    text: None,
                    suspect: true,
                    missing: count,
                });
            }
        }
    }

    /// Ends the stream with this error, behind the rows that are there.
    pub(crate) fn fail(&mut self, error: Error) {
        self.failed = Some(error);
    }

    /// As [`fail`](Self::fail), unless gaps are ignored.
    pub(crate) fn fail_unless_ignored(&mut self, error: Error) {
        if self.on_gap != OnGap::Ignore {
            self.fail(error);
        }
    }

    fn count(&mut self, sequence: u64) {
        let first = self.sequences.map_or(sequence, |(first, _)| first);
        self.sequences = Some((first, sequence));
    }

    /// Takes the batch, or the error behind it; `None` if there is neither.
    pub(crate) fn take(&mut self) -> Result<Option<Batch>, Error> {
        let rows = if self.columns.rows() > 0 { Some(self.columns.take()?) } else { None };
        let batch =
            rows.map(|rows| Batch::new(rows, self.sequences.take(), std::mem::take(&mut self.missing)));
        let failed = if batch.is_none() { self.failed.take() } else { None };
        self.begin_behind_gap();
        if self.failed.is_none() && !self.held.is_empty() {
            let held = std::mem::take(&mut self.held);
            // It was written from a tick.
            if let Ok(tick) = Tick::parse(&held) {
                self.add(&tick, true);
            }
        }
        failed.map_or(Ok(batch), Err)
    }
}
