//! Rows of one table, stored by column, for publication and for the log.

use tapeline_kdb::{Encoder, LogWriter, MessageKind, Order, Refused, Rows, Type, View};

use crate::schema::{SYM, begin_update};
use crate::{Local, Schema, Wrong};

/// Rows that wait to be published. Once the buffers have the size of the rows, nothing is allocated.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    rows: usize,
    /// The cells of each column, the least significant byte first.
    columns: Vec<Vec<u8>>,
    /// The offset in each column of the first row that is not in the log yet.
    unlogged: Vec<usize>,
    unlogged_rows: usize,
    /// The offset in each column of the first row that is being added.
    taking: Vec<usize>,
}

impl Batch {
    pub(crate) fn new(columns: usize) -> Self {
        let begin = vec![0; columns];
        Self { columns: vec![Vec::new(); columns], unlogged: begin.clone(), taking: begin, ..Self::default() }
    }

    pub(crate) const fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn bytes(&self) -> usize {
        self.columns.iter().map(Vec::len).sum()
    }

    /// Returns the number of rows that are not in the log yet.
    pub(crate) const fn unlogged(&self) -> usize {
        self.unlogged_rows
    }

    pub(crate) fn clear(&mut self) {
        (self.rows, self.unlogged_rows) = (0, 0);
        self.columns.iter_mut().for_each(Vec::clear);
        self.unlogged.fill(0);
    }

    /// Adds the rows of an update: all of them, or none and an error. Without a column of times, the rows get `now`.
    pub(crate) fn take(&mut self, schema: &Schema, rows: &Rows<'_>, now: Local) -> Result<(), Wrong> {
        self.begin();
        let taken = self.take_columns(schema, rows, now);
        if taken.is_ok() {
            self.has_taken(rows.len());
        } else {
            self.undo();
        }
        taken
    }

    /// Adds all rows of another batch of the same columns.
    pub(crate) fn append(&mut self, other: &Self) {
        for (to, from) in self.columns.iter_mut().zip(&other.columns) {
            to.extend_from_slice(from);
        }
        self.has_taken(other.rows);
    }

    /// Adds one row: `write` appends the cell of each column, as [`Encoder::cells`] encodes it. Adds nothing and
    /// returns `false` if the cells do not match the columns.
    pub(crate) fn take_row(&mut self, schema: &Schema, mut write: impl FnMut(usize, &mut Vec<u8>)) -> bool {
        self.begin();
        let mut are_cells = true;
        for (at, (place, column)) in self.columns.iter_mut().zip(schema.columns()).enumerate() {
            let begin = place.len();
            write(at, place);
            are_cells &= is_cell(column.kind, &place[begin..]);
        }
        if are_cells {
            self.has_taken(1);
        } else {
            self.undo();
        }
        are_cells
    }

    fn begin(&mut self) {
        for (begin, column) in self.taking.iter_mut().zip(&self.columns) {
            *begin = column.len();
        }
    }

    const fn has_taken(&mut self, rows: usize) {
        self.rows += rows;
        self.unlogged_rows += rows;
    }

    fn undo(&mut self) {
        for (begin, column) in self.taking.iter().zip(&mut self.columns) {
            column.truncate(*begin);
        }
    }

    fn take_columns(&mut self, schema: &Schema, rows: &Rows<'_>, now: Local) -> Result<(), Wrong> {
        let (columns, expected) = (rows.columns(), schema.columns());
        let is_timed = columns.len() == expected.len();
        if !is_timed && columns.len() + 1 != expected.len() {
            return Err(Wrong::Columns { expected: expected.len(), found: columns.len() });
        }
        let first = usize::from(!is_timed);
        if let Some(names) = rows.names().and_then(|names| names.symbols())
            && let Some(at) = names.zip(schema.names().skip(first)).position(|(one, other)| one != other)
        {
            return Err(Wrong::Name { column: expected[first + at].name.clone() });
        }
        if !is_timed {
            schema.append_time(now, rows.len(), &mut self.columns[0]);
        }
        let places = self.columns[first..].iter_mut().zip(&expected[first..]);
        for (column, (place, expected)) in columns.zip(places) {
            if expected.kind == Type::LIST {
                column.append_values_to(place);
                continue;
            }
            let found = column.kind();
            if found != expected.kind {
                return Err(Wrong::Type { column: expected.name.clone(), expected: expected.kind, found });
            }
            column.append_to(place);
        }
        Ok(())
    }

    /// Returns the most bytes of a message with `cells` bytes of cells.
    fn most(&self, schema: &Schema, cells: usize) -> usize {
        let names: usize = schema.names().map(|name| name.len() + 1).sum();
        64 + schema.name().len() + names + 6 * self.columns.len() + cells
    }

    /// Appends `(upd; table; rows)` to `out`, as a message for subscribers.
    pub(crate) fn write_message(&self, schema: &Schema, out: &mut Vec<u8>) {
        append(out, self.most(schema, self.bytes()), |room| {
            let mut message = Encoder::message(room, MessageKind::Async)?;
            begin_update(&mut message, schema.name())?;
            message.table(schema.names())?;
            for (bytes, column) in self.columns.iter().zip(schema.columns()) {
                message.cells(column.kind, self.rows, bytes)?;
            }
            message.finish()
        });
    }

    /// Appends the unlogged rows to `out`, as `tick.q` logs them: as cells if `is_row`, otherwise as columns.
    pub(crate) fn write_entry(
        &mut self,
        schema: &Schema,
        log: &mut LogWriter,
        out: &mut Vec<u8>,
        is_row: bool,
    ) {
        let columns = || self.columns.iter().zip(&self.unlogged).map(|(column, begin)| &column[*begin..]);
        let cells = columns().map(<[u8]>::len).sum();
        append(out, self.most(schema, cells), |room| {
            log.append(room, |entry| {
                begin_update(entry, schema.name())?;
                entry.list(self.columns.len())?;
                columns().zip(schema.columns()).try_for_each(|(bytes, column)| match is_row {
                    true => entry.cell(column.kind, bytes),
                    false => entry.cells(column.kind, self.unlogged_rows, bytes),
                })
            })
        });
        self.has_logged();
    }

    /// Marks all rows as logged.
    pub(crate) fn has_logged(&mut self) {
        self.unlogged_rows = 0;
        for (begin, column) in self.unlogged.iter_mut().zip(&self.columns) {
            *begin = column.len();
        }
    }

    /// Returns the symbols of the rows, in order.
    pub(crate) fn symbols(&self) -> impl Iterator<Item = &[u8]> {
        self.columns[SYM].split_inclusive(|byte| *byte == 0).map(|name| &name[..name.len() - 1])
    }

    /// Copies the rows for which `chosen` is `true`.
    pub(crate) fn pick(&self, schema: &Schema, chosen: &[bool], into: &mut Self) {
        into.clear();
        into.rows = chosen.iter().filter(|chosen| **chosen).count();
        for ((from, to), column) in self.columns.iter().zip(&mut into.columns).zip(schema.columns()) {
            match column.kind {
                Type::SYMBOL => pick(from.split_inclusive(|byte| *byte == 0), chosen, to),
                Type::LIST => pick(Cells(from), chosen, to),
                kind => pick(from.chunks_exact(kind.width()), chosen, to),
            }
        }
    }
}

/// The rows of an update, one after the other, for a program that handles them instead of the subscribers. The program
/// returns them with [`add`](crate::Tickerplant::add).
#[derive(Debug)]
pub struct Passing<'a> {
    table: usize,
    schema: &'a Schema,
    batch: &'a mut Batch,
    /// Rows that were not returned yet.
    left: usize,
}

impl<'a> Passing<'a> {
    pub(crate) fn new(table: usize, schema: &'a Schema, batch: &'a mut Batch) -> Self {
        // The start of the next row.
        batch.taking.fill(0);
        Self { table, schema, left: batch.rows, batch }
    }

    /// Returns the table's index in [`Settings::tables`](crate::Settings::tables).
    #[must_use]
    pub const fn table(&self) -> usize {
        self.table
    }

    /// Returns the number of remaining rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.left
    }

    /// Returns `true` if no rows remain.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Keeps all rows of the update in `place`, whose own rows are dropped, and leaves none here.
    pub fn keep(&mut self, place: &mut KeptRows) {
        self.left = 0;
        // The columns change places, so that their memory is used again.
        std::mem::swap(&mut place.batch.columns, &mut self.batch.columns);
        (place.table, place.batch.rows) = (self.table, self.batch.rows);
        self.batch.columns.resize_with(place.batch.columns.len(), Vec::new);
        self.batch.clear();
    }

    /// Returns the next row.
    pub fn next_row(&mut self) -> Option<PassingRow<'_>> {
        self.left = self.left.checked_sub(1)?;
        let Batch { columns, taking, unlogged, .. } = &mut *self.batch;
        let places =
            columns.iter().zip(self.schema.columns()).zip(taking.iter_mut().zip(unlogged.iter_mut()));
        for ((bytes, column), (next, begin)) in places {
            *begin = *next;
            let rest = bytes.get(*next..).unwrap_or_default();
            *next += match column.kind {
                Type::SYMBOL => rest.iter().position(|byte| *byte == 0).map_or(rest.len(), |zero| zero + 1),
                Type::LIST => View::first(rest, Order::Little).map_or(rest.len(), |(_, len)| len),
                kind => kind.width(),
            };
        }
        Some(PassingRow { schema: self.schema, columns, begins: unlogged, ends: taking })
    }
}

/// The rows of an update that was passed on, kept until they come back: to add them as they are costs a copy of each
/// column, and reading them again would cost a message for each row.
#[derive(Debug, Default)]
pub struct KeptRows {
    pub(crate) table: usize,
    pub(crate) batch: Batch,
}

impl KeptRows {
    /// Returns the number of rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.batch.rows()
    }

    /// Returns `true` if there are no rows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the size of the rows in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.batch.bytes()
    }

    /// Returns the size of the allocated memory in bytes.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.batch.columns.iter().map(Vec::capacity).sum()
    }
}

/// A row of an update.
#[derive(Debug)]
pub struct PassingRow<'a> {
    schema: &'a Schema,
    columns: &'a [Vec<u8>],
    begins: &'a [usize],
    ends: &'a [usize],
}

impl PassingRow<'_> {
    /// Returns the cell of a column, as [`Encoder::cells`] encodes it; empty if there is no such column.
    #[must_use]
    pub fn cell(&self, column: usize) -> &[u8] {
        let place = self.begins.get(column).zip(self.ends.get(column));
        let cell = self.columns.get(column).zip(place);
        cell.and_then(|(bytes, (begin, end))| bytes.get(*begin..*end)).unwrap_or_default()
    }

    /// Returns the row's symbol.
    #[must_use]
    pub fn symbol(&self) -> &[u8] {
        let cell = self.cell(SYM);
        cell.strip_suffix(&[0]).unwrap_or(cell)
    }

    /// Appends the row to `out` as `tick.q` would log it: `(upd; table; cells)`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.schema.row_head());
        for (at, column) in self.schema.columns().iter().enumerate() {
            // The cell of a list has its type already.
            if column.kind != Type::LIST {
                out.push(column.kind.atom().0.cast_unsigned());
            }
            out.extend_from_slice(self.cell(at));
        }
    }
}

/// Returns `true` if these bytes are one cell of a column of this type.
fn is_cell(kind: Type, bytes: &[u8]) -> bool {
    match kind {
        Type::SYMBOL => bytes.iter().position(|byte| *byte == 0) == bytes.len().checked_sub(1),
        Type::LIST => View::first(bytes, Order::Little).is_ok_and(|(_, len)| len == bytes.len()),
        kind => bytes.len() == kind.width(),
    }
}

fn pick<'c>(cells: impl Iterator<Item = &'c [u8]>, chosen: &[bool], to: &mut Vec<u8>) {
    for (cell, _) in cells.zip(chosen).filter(|(_, chosen)| **chosen) {
        to.extend_from_slice(cell);
    }
}

/// The encoded values of a list.
struct Cells<'a>(&'a [u8]);

impl<'a> Iterator for Cells<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (_, len) = View::first(self.0, Order::Little).ok()?;
        let (cell, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(cell)
    }
}

/// Appends the output of `write`, at most `most` bytes, to `out`.
pub(crate) fn append(
    out: &mut Vec<u8>,
    most: usize,
    write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>,
) {
    let at = out.len();
    out.resize(at + most, 0);
    let written = write(&mut out[at..]);
    debug_assert!(written.is_ok(), "{written:?}");
    // Cannot be refused: names were checked when the table was created, and the capacity suffices.
    out.truncate(at + written.unwrap_or(0));
}
