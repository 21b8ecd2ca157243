//! Rows of one table, column by column, as they are published and logged.

use tapeline_kdb::{Encoder, LogWriter, MessageKind, Order, Refused, Rows, Type, View};

use crate::schema::SYM;
use crate::{Local, Schema, Wrong};

/// Rows that were taken and are still to be published. Once as large as the rows need, nothing is allocated.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    rows: usize,
    /// For each column its cells, the least significant byte first.
    columns: Vec<Vec<u8>>,
    /// Where in each column the rows that were taken last begin.
    last: Vec<usize>,
    last_rows: usize,
}

impl Batch {
    pub(crate) fn new(columns: usize) -> Self {
        Self { columns: vec![Vec::new(); columns], last: vec![0; columns], ..Self::default() }
    }

    pub(crate) const fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn bytes(&self) -> usize {
        self.columns.iter().map(Vec::len).sum()
    }

    pub(crate) fn clear(&mut self) {
        self.rows = 0;
        self.columns.iter_mut().for_each(Vec::clear);
    }

    /// Takes the rows of an update; without a column of times they are given this one. All of them, or an error and none.
    pub(crate) fn take(&mut self, schema: &Schema, rows: &Rows<'_>, now: Local) -> Result<(), Wrong> {
        for (begin, column) in self.last.iter_mut().zip(&self.columns) {
            *begin = column.len();
        }
        let taken = self.take_columns(schema, rows, now);
        if taken.is_ok() {
            self.last_rows = rows.len();
            self.rows += rows.len();
        } else {
            for (begin, column) in self.last.iter().zip(&mut self.columns) {
                column.truncate(*begin);
            }
        }
        taken
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
            if column.kind() != expected.kind {
                let column_name = expected.name.clone();
                return Err(Wrong::Type {
                    column: column_name,
                    expected: expected.kind,
                    found: column.kind(),
                });
            }
            column.append_to(place);
        }
        Ok(())
    }

    /// The most bytes that a message of so many bytes of cells takes.
    fn most(&self, schema: &Schema, cells: usize) -> usize {
        let names: usize = schema.names().map(|name| name.len() + 1).sum();
        64 + schema.name().len() + names + 6 * self.columns.len() + cells
    }

    /// Writes `(upd; table; rows)` behind what is in `out`, as a message for subscribers.
    pub(crate) fn write_message(&self, schema: &Schema, out: &mut Vec<u8>) {
        append(out, self.most(schema, self.bytes()), |room| {
            let mut message = Encoder::message(room, MessageKind::Async)?;
            begin(&mut message, schema)?;
            message.table(schema.names())?;
            for (bytes, column) in self.columns.iter().zip(schema.columns()) {
                message.cells(column.kind, self.rows, bytes)?;
            }
            message.finish()
        });
    }

    /// Writes what was taken last behind what is in `out`, as `tick.q` logs it: one row as its cells, others as columns.
    pub(crate) fn write_entry(&self, schema: &Schema, log: &mut LogWriter, out: &mut Vec<u8>, is_row: bool) {
        let columns = || self.columns.iter().zip(&self.last).map(|(column, begin)| &column[*begin..]);
        let cells = columns().map(<[u8]>::len).sum();
        append(out, self.most(schema, cells), |room| {
            log.append(room, |entry| {
                begin(entry, schema)?;
                entry.list(self.columns.len())?;
                columns().zip(schema.columns()).try_for_each(|(bytes, column)| match is_row {
                    true => entry.cell(column.kind, bytes),
                    false => entry.cells(column.kind, self.last_rows, bytes),
                })
            })
        });
    }

    /// The symbols of the rows, in turn.
    pub(crate) fn symbols(&self) -> impl Iterator<Item = &[u8]> {
        self.columns[SYM].split_inclusive(|byte| *byte == 0).map(|name| &name[..name.len() - 1])
    }

    /// Copies those rows for which `chosen` has true.
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

fn begin(out: &mut Encoder<'_>, schema: &Schema) -> Result<(), Refused> {
    out.list(3)?;
    out.symbol(b"upd")?;
    out.symbol(schema.name().as_bytes())
}

fn pick<'c>(cells: impl Iterator<Item = &'c [u8]>, chosen: &[bool], to: &mut Vec<u8>) {
    for (cell, _) in cells.zip(chosen).filter(|(_, chosen)| **chosen) {
        to.extend_from_slice(cell);
    }
}

/// The values of a list, each with all its bytes.
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

/// Has something written behind what is in `out`, which takes at most so many bytes.
pub(crate) fn append(
    out: &mut Vec<u8>,
    most: usize,
    write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>,
) {
    let at = out.len();
    out.resize(at + most, 0);
    let written = write(&mut out[at..]);
    debug_assert!(written.is_ok(), "{written:?}");
    // Names were checked when the table was made, and there is room: it cannot be refused.
    out.truncate(at + written.unwrap_or(0));
}
