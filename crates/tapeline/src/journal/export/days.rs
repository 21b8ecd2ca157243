//! Rows of one day after the other, in batches.

use std::collections::BTreeMap;

use tapeline_export::{Batch, Error, Numbers, Sink, Table};
use tapeline_measure::Nanos;

use super::files::Files;

/// A day in ns.
const DAY_NS: u64 = 86_400_000_000_000;

/// How many rows each table has on each day, as `2026-11-21`.
pub(super) type Counts = BTreeMap<(Table, String), u64>;

/// The batches of the day that ticks are of.
#[derive(Debug)]
pub(super) struct Days {
    files: Files,
    /// Of the tables that are wanted.
    batches: Vec<Batch>,
    /// The day, counted from 1970, once there is one.
    day: Option<u64>,
    /// The table of the last row.
    last: Option<Table>,
    counts: Counts,
}

impl Days {
    pub(super) fn new(files: Files, tables: &[Table], numbers: Numbers) -> Self {
        let wanted = Table::ALL.into_iter().filter(|table| tables.contains(table));
        let batches = wanted.map(|table| Batch::new(table, numbers)).collect();
        Self { files, batches, day: None, last: None, counts: Counts::default() }
    }

    /// Rows are of this time's day from here on.
    ///
    /// # Errors
    /// What there is of another day cannot be written.
    pub(super) fn turn_to(&mut self, time: Nanos) -> Result<(), Error> {
        let day = time.0 / DAY_NS;
        if self.day != Some(day) {
            self.end_day()?;
            self.day = Some(day);
        }
        Ok(())
    }

    /// Writes what is left; how many rows there are.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn finish(mut self) -> Result<Counts, Error> {
        self.end_day()?;
        Ok(self.counts)
    }

    fn end_day(&mut self) -> Result<(), Error> {
        for at in 0..self.batches.len() {
            self.write(at)?;
        }
        self.last = None;
        self.files.end_day()
    }

    fn write(&mut self, at: usize) -> Result<(), Error> {
        let (batch, Some(day)) = (&mut self.batches[at], self.day) else { return Ok(()) };
        let rows = batch.rows() as u64;
        if rows > 0 {
            let day = self.files.write(day, batch)?;
            *self.counts.entry((batch.table(), day)).or_default() += rows;
        }
        Ok(())
    }

    fn place(&self, table: Table) -> Option<usize> {
        self.batches.iter().position(|batch| batch.table() == table)
    }
}

impl Sink for Days {
    fn wants(&self, table: Table) -> bool {
        self.place(table).is_some()
    }

    fn batch(&mut self, table: Table) -> Result<&mut Batch, Error> {
        // Rows that nobody wants are not asked for.
        let at = self.place(table).unwrap_or_default();
        if self.files.keeps_order() && self.last != Some(table) {
            // What came before another table's rows is before them in the file.
            if let Some(before) = self.last.and_then(|last| self.place(last)) {
                self.write(before)?;
            }
            self.last = Some(table);
        }
        if self.files.is_full(&self.batches[at]) {
            self.write(at)?;
        }
        Ok(&mut self.batches[at])
    }
}
