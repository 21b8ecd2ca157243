//! Rows of one day after another, in batches.

use std::collections::BTreeMap;

use clap::ValueEnum;
use tapeline_export::{Batch, Error, Numbers, Sink, SortBy, Table};
use tapeline_measure::Nanos;
use tapeline_plant::tick::Header;

use super::files::Files;

/// The length of a day in ns.
const DAY_NS: u64 = 86_400_000_000_000;
/// Maximum number of open days if ticks are assigned by event: a plant's feeds each have one day, and states belong
/// to the day on which they are published.
const MOST_DAYS: usize = 8;
/// Ticks between two checks of the memory that rows to be sorted take.
const LOOK_EVERY: u32 = 256;

/// The number of rows by table and day; a day is written as `2026-11-21`.
pub(super) type Counts = BTreeMap<(Table, String), u64>;

/// How to assign ticks to days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DayOf {
    /// By the time at which the plant published the tick
    Published,
    /// By the exchange's time of the tick's event
    Event,
}

/// How to sort rows, and the memory limit for them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sorting {
    pub(super) by: SortBy,
    pub(super) limit: u64,
}

#[derive(Debug)]
pub(super) struct Days {
    files: Files,
    tables: Vec<Table>,
    numbers: Numbers,
    day_of: DayOf,
    sorting: Option<Sorting>,
    /// The day of the current tick first, then the one before it, and so on.
    open: Vec<Day>,
    ticks: u32,
    counts: Counts,
}

#[derive(Debug)]
struct Day {
    /// Days since 1970.
    number: u64,
    batches: Vec<Batch>,
    /// The table of the previous row.
    last: Option<Table>,
}

impl Days {
    pub(super) fn new(
        files: Files,
        tables: &[Table],
        numbers: Numbers,
        day_of: DayOf,
        sorting: Option<Sorting>,
    ) -> Self {
        let tables = Table::ALL.into_iter().filter(|table| tables.contains(table)).collect();
        let (open, counts) = (Vec::new(), Counts::default());
        Self { files, tables, numbers, day_of, sorting, open, ticks: 0, counts }
    }

    /// Assigns the next rows to this tick's day.
    ///
    /// # Errors
    /// Rows of another day cannot be written, or rows to be sorted take too much memory.
    pub(super) fn turn_to(&mut self, tick: &Header) -> Result<(), Error> {
        let time = match self.day_of {
            DayOf::Event if tick.event != Nanos(0) => tick.event,
            _ => tick.sequenced,
        };
        let number = time.0 / DAY_NS;
        if self.open.first().is_none_or(|day| day.number != number) {
            self.open_day(number)?;
        }
        self.ticks += 1;
        match self.sorting {
            Some(Sorting { limit, .. }) if self.ticks.is_multiple_of(LOOK_EVERY) => {
                let batches = self.open.iter().flat_map(|day| &day.batches);
                let bytes: u64 = batches.map(|batch| batch.bytes() as u64).sum();
                if bytes > limit { Err(Error::SortLimit(limit)) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// Makes a day the current one.
    fn open_day(&mut self, number: u64) -> Result<(), Error> {
        if let Some(at) = self.open.iter().position(|day| day.number == number) {
            self.open[..=at].rotate_right(1);
            return Ok(());
        }
        let most = if self.day_of == DayOf::Event { MOST_DAYS } else { 1 };
        while self.open.len() >= most {
            self.end_day()?;
        }
        let batches = self.tables.iter().map(|table| Batch::new(*table, self.numbers)).collect();
        self.open.insert(0, Day { number, batches, last: None });
        Ok(())
    }

    /// Writes the remaining rows, and returns the number of rows.
    ///
    /// # Errors
    /// The rows cannot be written.
    pub(super) fn finish(mut self) -> Result<Counts, Error> {
        while !self.open.is_empty() {
            self.end_day()?;
        }
        Ok(self.counts)
    }

    /// Ends the least recently used day.
    fn end_day(&mut self) -> Result<(), Error> {
        let Some(mut day) = self.open.pop() else { return Ok(()) };
        for batch in &mut day.batches {
            match self.sorting {
                Some(Sorting { by, .. }) => batch
                    .write_sorted(by, |part| write(&mut self.files, &mut self.counts, day.number, part))?,
                None => write(&mut self.files, &mut self.counts, day.number, batch)?,
            }
        }
        self.files.end_day(day.number)
    }

    fn place(&self, table: Table) -> Option<usize> {
        self.tables.iter().position(|wanted| *wanted == table)
    }
}

fn write(files: &mut Files, counts: &mut Counts, day: u64, batch: &mut Batch) -> Result<(), Error> {
    let rows = batch.rows() as u64;
    if rows > 0 {
        let table = batch.table();
        let day = files.write(day, batch)?;
        *counts.entry((table, day)).or_default() += rows;
    }
    Ok(())
}

impl Sink for Days {
    fn wants(&self, table: Table) -> bool {
        self.place(table).is_some()
    }

    fn batch(&mut self, table: Table) -> Result<&mut Batch, Error> {
        // Rows of unwanted tables are never requested, and no rows before a day is open.
        let at = self.place(table).unwrap_or_default();
        let Self { files, counts, open, sorting, .. } = self;
        let day = &mut open[0];
        if files.keeps_order() && day.last != Some(table) {
            // Write the rows of the previous table first, to keep the order in the file.
            let before = day.last.and_then(|last| self.tables.iter().position(|wanted| *wanted == last));
            if let Some(before) = before {
                write(files, counts, day.number, &mut day.batches[before])?;
            }
            day.last = Some(table);
        }
        let batch = &mut day.batches[at];
        if sorting.is_none() && files.is_full(batch) {
            write(files, counts, day.number, batch)?;
        }
        Ok(batch)
    }
}
