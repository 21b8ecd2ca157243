//! Rows by column, up to a bound.

use tapeline_nanos::Nanos;
use tapeline_omm::Real;

use crate::table::{Kind, Table};

/// Rows of a full batch: the number that DuckDB gives one thread to read, so that each row group is read by one thread.
pub const MOST_ROWS: usize = 122_880;
/// Bytes of text and binary values of a full batch.
pub const MOST_TEXT: usize = 16 << 20;

/// Digits of a price after the point: as in Databento's prices, and more than any exchange uses.
pub(crate) const PRICE_PLACES: u32 = 9;
/// The first number that does not fit in a price of 18 digits.
const PRICE_END: i64 = 1_000_000_000_000_000_000;

/// The representation of prices and sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// Prices as decimals of 18 digits, nine of them after the point; sizes as whole numbers. A value that is not exact
    /// in this form is refused.
    Exact,
    /// Prices as doubles, as in kdb+; sizes as whole numbers.
    WholeSizes,
    /// Prices and sizes as doubles.
    Double,
}

/// Rows of a table, column by column.
#[derive(Debug)]
pub struct Batch {
    table: Table,
    numbers: Numbers,
    rows: usize,
    columns: Vec<Cells>,
}

/// A column's cells.
#[derive(Debug)]
pub(crate) struct Cells {
    pub(crate) kind: Kind,
    /// For each row 1 if it has a cell, 0 if not: Parquet's definition levels.
    pub(crate) levels: Vec<i16>,
    /// The values of the rows that have a cell.
    pub(crate) values: Values,
}

#[derive(Debug)]
pub(crate) enum Values {
    Whole(Vec<i64>),
    Double(Vec<f64>),
    Flag(Vec<bool>),
    /// The concatenated texts, and the end of each.
    Text {
        bytes: Vec<u8>,
        ends: Vec<usize>,
    },
}

impl Values {
    pub(crate) fn of(kind: Kind, numbers: Numbers) -> Self {
        match (kind, numbers) {
            (Kind::Whole | Kind::Time, _)
            | (Kind::Price, Numbers::Exact)
            | (Kind::Size, Numbers::Exact | Numbers::WholeSizes) => Self::Whole(Vec::new()),
            (Kind::Price | Kind::Size | Kind::Double, _) => Self::Double(Vec::new()),
            (Kind::Flag, _) => Self::Flag(Vec::new()),
            (Kind::Symbol | Kind::Text | Kind::Bytes, _) => {
                Self::Text { bytes: Vec::new(), ends: Vec::new() }
            }
        }
    }

    /// Returns the text at an index among the values.
    pub(crate) fn text(&self, place: usize) -> &[u8] {
        let Self::Text { bytes, ends } = self else { return &[] };
        let begin = place.checked_sub(1).map_or(0, |before| ends[before]);
        &bytes[begin..ends[place]]
    }

    fn clear(&mut self) {
        match self {
            Self::Whole(values) => values.clear(),
            Self::Double(values) => values.clear(),
            Self::Flag(values) => values.clear(),
            Self::Text { bytes, ends } => {
                bytes.clear();
                ends.clear();
            }
        }
    }
}

/// Returns the texts of a column, from their bytes and ends.
pub(crate) fn texts<'a>(bytes: &'a [u8], ends: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let begins = std::iter::once(0).chain(ends.iter().copied());
    begins.zip(ends).map(|(from, to)| bytes.get(from..*to).unwrap_or_default())
}

impl Batch {
    /// Creates an empty batch.
    #[must_use]
    pub fn new(table: Table, numbers: Numbers) -> Self {
        let columns = table.columns().iter();
        let columns = columns.map(|column| Cells {
            kind: column.kind,
            levels: Vec::new(),
            values: Values::of(column.kind, numbers),
        });
        Self { table, numbers, rows: 0, columns: columns.collect() }
    }

    /// Returns the table of the rows.
    #[must_use]
    pub const fn table(&self) -> Table {
        self.table
    }

    /// Returns how prices and sizes are stored.
    #[must_use]
    pub const fn numbers(&self) -> Numbers {
        self.numbers
    }

    /// Returns the number of rows.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Returns `true` if the batch must be written before another row is added.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let text = |cells: &Cells| match &cells.values {
            Values::Text { bytes, .. } => bytes.len(),
            _ => 0,
        };
        self.rows >= MOST_ROWS || self.columns.iter().map(text).sum::<usize>() >= MOST_TEXT
    }

    /// Returns the memory of the rows, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let of_values = |values: &Values| match values {
            Values::Whole(values) => size_of_val(&values[..]),
            Values::Double(values) => size_of_val(&values[..]),
            Values::Flag(values) => values.len(),
            Values::Text { bytes, ends } => bytes.len() + size_of_val(&ends[..]),
        };
        self.columns.iter().map(|cells| size_of_val(&cells.levels[..]) + of_values(&cells.values)).sum()
    }

    /// Removes all rows, without freeing memory.
    pub fn clear(&mut self) {
        self.rows = 0;
        for cells in &mut self.columns {
            cells.levels.clear();
            cells.values.clear();
        }
    }

    pub(crate) fn columns(&self) -> &[Cells] {
        &self.columns
    }

    /// Adds a copy of a row of another batch of this table; `place` returns the index of each column's value.
    pub(crate) fn copy_row(&mut self, of: &Self, place: impl Fn(usize) -> Option<usize>) {
        self.rows += 1;
        for (at, (to, from)) in self.columns.iter_mut().zip(&of.columns).enumerate() {
            let place = place(at);
            to.levels.push(i16::from(place.is_some()));
            let Some(place) = place else { continue };
            match (&mut to.values, &from.values) {
                (Values::Whole(to), Values::Whole(from)) => to.push(from[place]),
                (Values::Double(to), Values::Double(from)) => to.push(from[place]),
                (Values::Flag(to), Values::Flag(from)) => to.push(from[place]),
                (Values::Text { bytes, ends }, from @ Values::Text { .. }) => {
                    bytes.extend_from_slice(from.text(place));
                    ends.push(bytes.len());
                }
                // Both batches have the same table and the same representation of numbers.
                _ => {}
            }
        }
    }

    /// Adds a row; write its cells from the first column to the last. After an error the row is incomplete, and the
    /// batch must not be used.
    pub(crate) fn row(&mut self) -> Row<'_> {
        self.rows += 1;
        Row { table: self.table, numbers: self.numbers, at: 0, columns: &mut self.columns }
    }
}

/// A number that its column cannot represent.
#[derive(Debug)]
pub(crate) struct Unfit {
    pub(crate) column: &'static str,
    pub(crate) value: Real,
    pub(crate) expected: &'static str,
}

/// A row that is being written.
pub(crate) struct Row<'a> {
    table: Table,
    numbers: Numbers,
    at: usize,
    columns: &'a mut [Cells],
}

impl Row<'_> {
    /// Moves to the next column and returns its values.
    fn next(&mut self, is_there: bool) -> &mut Values {
        let cells = &mut self.columns[self.at];
        self.at += 1;
        cells.levels.push(i16::from(is_there));
        &mut cells.values
    }

    pub(crate) fn whole(&mut self, value: impl Into<Option<i64>>) -> &mut Self {
        let value = value.into();
        if let (Values::Whole(values), Some(value)) = (self.next(value.is_some()), value) {
            values.push(value);
        }
        self
    }

    /// Writes an unsigned number; numbers from 2^63 on wrap to negative ones.
    pub(crate) fn count(&mut self, value: u64) -> &mut Self {
        self.whole(value.cast_signed())
    }

    /// Writes a time; 0 means no time.
    pub(crate) fn time(&mut self, time: Nanos) -> &mut Self {
        self.whole((time.0 != 0).then_some(time.0.cast_signed()))
    }

    pub(crate) fn flag(&mut self, value: bool) -> &mut Self {
        if let Values::Flag(values) = self.next(true) {
            values.push(value);
        }
        self
    }

    pub(crate) fn double(&mut self, value: Option<f64>) -> &mut Self {
        if let (Values::Double(values), Some(value)) = (self.next(value.is_some()), value) {
            values.push(value);
        }
        self
    }

    pub(crate) fn text<T: AsRef<[u8]>>(&mut self, text: Option<T>) -> &mut Self {
        if let (Values::Text { bytes, ends }, Some(text)) = (self.next(text.is_some()), text) {
            bytes.extend_from_slice(text.as_ref());
            ends.push(bytes.len());
        }
        self
    }

    /// Writes a price or a size.
    pub(crate) fn real(&mut self, value: Option<Real>) -> Result<&mut Self, Unfit> {
        let column = self.table.columns()[self.at];
        let is_price = column.kind == Kind::Price;
        let cell = match value {
            Some(value) if self.numbers == Numbers::Exact || !is_price && self.numbers != Numbers::Double => {
                let scaled = value.scaled(if is_price { PRICE_PLACES } else { 0 });
                let fits = |scaled: &i64| !is_price || (-PRICE_END < *scaled && *scaled < PRICE_END);
                let expected = if is_price {
                    "at most nine digits before the point and nine behind it"
                } else {
                    "whole numbers of 64 bits"
                };
                Some(scaled.filter(fits).ok_or(Unfit { column: column.name, value, expected })?)
            }
            _ => None,
        };
        match (self.next(value.is_some()), value) {
            (Values::Whole(values), Some(_)) => values.extend(cell),
            (Values::Double(values), Some(value)) => values.push(value.to_f64()),
            _ => {}
        }
        Ok(self)
    }
}
