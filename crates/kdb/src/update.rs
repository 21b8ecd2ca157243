//! `upd` and `.u.upd`: rows for a table, read in place by column.

use crate::Type;
use crate::order::Order;
use crate::vector::Vector;
use crate::view::{List, Table, Values, View};

/// A message that calls a function with a table's name and rows: sent by feed handlers, received by subscribers, and
/// stored in logs.
#[derive(Clone, Copy, Debug)]
pub struct Update<'a> {
    /// The function: `upd`, `.u.upd`, or another name that the sender uses.
    pub function: &'a [u8],
    /// The table's name.
    pub table: &'a [u8],
    /// The rows.
    pub rows: Rows<'a>,
}

/// Why a message is not an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoUpdate {
    /// The message is not a list of a function, a table's name and rows.
    #[error("expected a list of a function's name, a table's name and rows, found {}", shape(*.kind, *.count))]
    Shape {
        /// The type of the message's value.
        kind: Type,
        /// The number of its items.
        count: usize,
    },
    /// A name that is neither a symbol nor a string.
    #[error("expected the name of a {what}, found {}", .found.name())]
    Name {
        /// The kind of name.
        what: &'static str,
        /// The type found.
        found: Type,
    },
    /// Rows that are neither a list nor a table.
    #[error("expected columns, one row's cells or a table, found {}", .0.name())]
    Rows(Type),
    /// A column that is neither a vector nor a list.
    #[error("expected cells in column {column}, found {}", .found.name())]
    Column {
        /// Which column, from 1 on.
        column: usize,
        /// The type found.
        found: Type,
    },
    /// Columns of different lengths.
    #[error("expected {expected} rows in column {column}, as in the first one, found {found}")]
    Uneven {
        /// Which column, from 1 on.
        column: usize,
        /// The number of rows in the first column.
        expected: usize,
        /// The number of rows in this column.
        found: usize,
    },
}

/// Describes a value that is not an update; the number of items is given for lists only.
fn shape(kind: Type, count: usize) -> String {
    if kind == Type::LIST { format!("a list of {count}") } else { kind.name().to_owned() }
}

impl<'a> Update<'a> {
    /// Reads a message as an update.
    ///
    /// # Errors
    /// The message is not an update: the value found instead.
    pub fn of(message: &View<'a>) -> Result<Self, NoUpdate> {
        let shape = NoUpdate::Shape { kind: message.kind(), count: message.count() };
        let View::List(list) = message else { return Err(shape) };
        let mut values = list.iter();
        if values.len() != 3 {
            return Err(shape);
        }
        let mut name = |what| {
            let value = values.next().ok_or(shape)?;
            value.name().ok_or(NoUpdate::Name { what, found: value.kind() })
        };
        let (function, table) = (name("function")?, name("table")?);
        let rows = values.next().ok_or(shape)?;
        Ok(Self { function, table, rows: Rows::of(&rows)? })
    }
}

/// Rows of a table, in any form in which they are sent: columns, the cells of one row, or a table.
///
/// As in `tick.q`, a list whose first value is an atom contains the cells of one row.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    count: usize,
    shape: Shape<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Shape<'a> {
    /// A value for each column.
    Columns(List<'a>),
    /// A value for each cell of the one row.
    Cells(List<'a>),
    /// The one row, of cells of one type.
    Row(Vector<'a>),
    Table(Table<'a>),
}

impl<'a> Rows<'a> {
    fn of(value: &View<'a>) -> Result<Self, NoUpdate> {
        let (columns, shape) = match value {
            View::Vector(cells) => return Ok(Self { count: 1, shape: Shape::Row(*cells) }),
            View::Table(table) => (table.columns(), Shape::Table(*table)),
            View::List(list) => (*list, Shape::Columns(*list)),
            other => return Err(NoUpdate::Rows(other.kind())),
        };
        let mut count = None;
        for (column, (kind, found)) in (1..).zip(columns.shapes()) {
            if kind.0 < 0 && column == 1 {
                return Ok(Self { count: 1, shape: Shape::Cells(columns) });
            }
            if !(0..=19).contains(&kind.0) {
                return Err(NoUpdate::Column { column, found: kind });
            }
            let expected = *count.get_or_insert(found);
            if found != expected {
                return Err(NoUpdate::Uneven { column, expected, found });
            }
        }
        Ok(Self { count: count.unwrap_or(0), shape })
    }

    /// Returns the number of rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Returns `true` if there are no rows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns `true` if the rows are one row that was sent as its cells instead of columns.
    #[must_use]
    pub const fn is_row(&self) -> bool {
        matches!(self.shape, Shape::Cells(_) | Shape::Row(_))
    }

    /// Returns the names of the columns, if they were sent: with a table.
    #[must_use]
    pub const fn names(&self) -> Option<Vector<'a>> {
        match &self.shape {
            Shape::Table(table) => Some(table.names()),
            _ => None,
        }
    }

    /// Returns the columns in order, each with as many items as there are rows.
    #[must_use]
    pub const fn columns(&self) -> Columns<'a> {
        Columns(match self.shape {
            Shape::Columns(list) => Within::Columns(list.iter()),
            Shape::Cells(list) => Within::Cells(list.iter(), list.order()),
            Shape::Row(cells) => Within::Row(cells),
            Shape::Table(table) => Within::Columns(table.columns().iter()),
        })
    }
}

/// A column of an update.
#[derive(Clone, Copy, Debug)]
pub enum Column<'a> {
    /// Cells of one basic type.
    Vector(Vector<'a>),
    /// Cells of other kinds, mostly strings.
    List(List<'a>),
}

impl Column<'_> {
    /// Returns the vector's type, or [`Type::LIST`].
    #[must_use]
    pub const fn kind(&self) -> Type {
        match self {
            Self::Vector(vector) => vector.kind(),
            Self::List(_) => Type::LIST,
        }
    }

    /// Returns the number of cells.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Vector(vector) => vector.len(),
            Self::List(list) => list.len(),
        }
    }

    /// Returns `true` if the column has no cells.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends the cells' bytes as [`Encoder::cells`](crate::Encoder::cells) takes them. Allocates only to grow `out`,
    /// and for lists with the most significant byte first.
    #[inline]
    pub fn append_to(&self, out: &mut Vec<u8>) {
        match self {
            Self::Vector(vector) => vector.append_to(out),
            Self::List(list) => list.append_to(out),
        }
    }

    /// Appends the cells as [`append_to`](Self::append_to) does, for a column that must be a list: q sends cells that
    /// happen to have one type as a vector.
    pub fn append_values_to(&self, out: &mut Vec<u8>) {
        match self {
            Self::Vector(vector) => vector.append_values_to(out),
            Self::List(list) => list.append_to(out),
        }
    }
}

/// The columns of an update.
#[derive(Clone, Debug)]
pub struct Columns<'a>(Within<'a>);

#[derive(Clone, Debug)]
enum Within<'a> {
    Columns(Values<'a>),
    Cells(Values<'a>, Order),
    Row(Vector<'a>),
}

impl<'a> Iterator for Columns<'a> {
    type Item = Column<'a>;

    #[inline]
    fn next(&mut self) -> Option<Column<'a>> {
        match &mut self.0 {
            Within::Columns(values) => match values.next()? {
                View::Vector(vector) => Some(Column::Vector(vector)),
                View::List(list) => Some(Column::List(list)),
                // The rows were checked when they were created: there are no other values.
                _ => None,
            },
            Within::Cells(values, order) => {
                let (value, bytes) = values.with_bytes()?;
                Some(match value {
                    // After the byte of its type, an atom has the bytes of a vector with one item.
                    View::Atom(atom) => {
                        let bytes = bytes.get(1..).unwrap_or_default();
                        Column::Vector(Vector::of_one(atom.kind(), bytes, *order))
                    }
                    _ => Column::List(List::of_one(bytes, *order)),
                })
            }
            Within::Row(cells) => {
                let (cell, others) = cells.split_first()?;
                *cells = others;
                Some(Column::Vector(cell))
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match &self.0 {
            Within::Columns(values) | Within::Cells(values, _) => values.len(),
            Within::Row(cells) => cells.len(),
        };
        (left, Some(left))
    }
}

impl ExactSizeIterator for Columns<'_> {}
