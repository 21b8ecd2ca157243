//! Rows of one day after the other, in batches.

use std::collections::BTreeMap;

use clap::ValueEnum;
use tapeline_export::{Batch, Error, Numbers, Sink, SortBy, Table};
use tapeline_measure::Nanos;
use tapeline_plant::tick::Header;

use super::files::Files;

/// A day in ns.
const DAY_NS: u64 = 86_400_000_000_000;
/// Days of events that are open at once: a plant's feeds are of one day each, and states are of the day on which they are published.
const MOST_DAYS: usize = 8;
/// Ticks between two looks at how much memory rows that are to be sorted take.
const LOOK_EVERY: u32 = 256;

/// How many rows each table has on each day, as `2026-11-21`.
pub(super) type Counts = BTreeMap<(Table, String), u64>;

/// Which day a tick is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DayOf {
    /// The day on which the plant published it
    Published,
    /// The day of its event, by the exchange's time
    Event,
}

/// Sorted rows: in which order, and how much memory they may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sorting {
    pub(super) by: SortBy,
    pub(super) limit: u64,
}

/// The batches of the days that ticks are of.
#[derive(Debug)]
pub(super) struct Days {
    files: Files,
    /// Those that are wanted.
    tables: Vec<Table>,
    numbers: Numbers,
    day_of: DayOf,
    sorting: Option<Sorting>,
    /// The day of the present tick first, then the one before that, and so on.
    open: Vec<Day>,
    ticks: u32,
    counts: Counts,
}

/// A day's batches.
#[derive(Debug)]
struct Day {
    /// Counted from 1970.
    number: u64,
    batches: Vec<Batch>,
    /// The table of the last row.
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

    /// Rows are of this tick's day from here on.
    ///
    /// # Errors
    /// What there is of another day cannot be written, or rows that are to be sorted take too much memory.
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

    /// A day is the present one.
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

    /// Writes what is left; how many rows there are.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn finish(mut self) -> Result<Counts, Error> {
        while !self.open.is_empty() {
            self.end_day()?;
        }
        Ok(self.counts)
    }

    /// Ends the day that no tick has been of for longest.
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
        // Rows that nobody wants are not asked for, and none before there is a day.
        let at = self.place(table).unwrap_or_default();
        let Self { files, counts, open, sorting, .. } = self;
        let day = &mut open[0];
        if files.keeps_order() && day.last != Some(table) {
            // What came before another table's rows is before them in the file.
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
