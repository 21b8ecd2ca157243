//! Values of any type, read in place.

use crate::check::{check, function};
use crate::cursor::Cursor;
use crate::error::{Fault, Malformed};
use crate::order::Order;
use crate::vector::{Vector, head};
use crate::{Atom, Encoder, Type};

/// Maximum nesting depth of values: q code hardly reaches ten, and each level costs stack.
pub const MOST_DEPTH: usize = 64;

/// A value in the bytes of a message: checked once, then read in place.
///
/// [`parse`](Self::parse) checks every length in the value, at any depth, so that reading the value later cannot fail.
/// In a vector of fixed width it checks only the length. Nothing is allocated.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum View<'a> {
    /// A single value of a basic type.
    Atom(Atom<&'a [u8]>),
    /// Values of one basic type.
    Vector(Vector<'a>),
    /// Values of any types.
    List(List<'a>),
    /// Keys and values; a keyed table if both are tables.
    Dict(Dict<'a>),
    /// Named columns of one length.
    Table(Table<'a>),
    /// A function; this crate does not execute it.
    Function(Function<'a>),
    /// An error, in place of an answer.
    Error(&'a [u8]),
}

impl<'a> View<'a> {
    /// Reads one value, which must take all bytes.
    ///
    /// # Errors
    /// The bytes are not a value, or there are more bytes after it.
    pub fn parse(bytes: &'a [u8], order: Order) -> Result<Self, Malformed> {
        let (view, len) = Self::first(bytes, order)?;
        match bytes.len() - len {
            0 => Ok(view),
            more => Err(Malformed::new(len, Fault::Trailing(more))),
        }
    }

    /// Reads one value at the front of the bytes and returns the number of bytes that it takes.
    ///
    /// # Errors
    /// The bytes do not begin with a value; [`Malformed::is_cut`] if they might with more of them.
    pub fn first(bytes: &'a [u8], order: Order) -> Result<(Self, usize), Malformed> {
        let mut cursor = Cursor::new(bytes, order);
        let (kind, _) = check(&mut cursor, MOST_DEPTH)?;
        let len = cursor.at();
        // The checked value is read again with its end known, so that no end needs to be searched for.
        let view = reread(&mut Cursor::new(cursor.since(0), order), true);
        view.map(|view| (view, len)).ok_or(Malformed::new(0, Fault::UnknownType(kind)))
    }

    /// Returns the value's type: negative for atoms, 0 for lists, and so on.
    #[must_use]
    pub const fn kind(&self) -> Type {
        match self {
            Self::Atom(atom) => atom.kind(),
            Self::Vector(vector) => vector.kind(),
            Self::List(_) => Type::LIST,
            Self::Dict(dict) if dict.is_sorted => Type::SORTED_DICT,
            Self::Dict(_) => Type::DICT,
            Self::Table(_) => Type::TABLE,
            Self::Function(function) => function.kind,
            Self::Error(_) => Type::ERROR,
        }
    }

    /// Returns the number of items or rows, as q's `count`: 1 for atoms, functions and errors.
    #[must_use]
    pub fn count(&self) -> usize {
        match self {
            Self::Vector(vector) => vector.len(),
            Self::List(list) => list.len(),
            Self::Dict(dict) => dict.count,
            Self::Table(table) => table.rows(),
            Self::Atom(_) | Self::Function(_) | Self::Error(_) => 1,
        }
    }

    /// Returns the name, if the value is a symbol or, as some clients send names, a string.
    #[must_use]
    pub fn name(&self) -> Option<&'a [u8]> {
        match self {
            Self::Atom(Atom::Symbol(name)) => Some(name),
            Self::Vector(vector) => vector.text(),
            _ => None,
        }
    }
}

/// A list of values of any types.
#[derive(Clone, Copy, Debug)]
pub struct List<'a> {
    count: usize,
    order: Order,
    bytes: &'a [u8],
}

impl<'a> List<'a> {
    /// Creates a list of one value from its bytes, which were checked before.
    pub(crate) const fn of_one(bytes: &'a [u8], order: Order) -> Self {
        Self { count: 1, order, bytes }
    }

    /// Returns the number of values.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Returns `true` if the list is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the values in order.
    #[must_use]
    pub const fn iter(&self) -> Values<'a> {
        Values { left: self.count, cursor: Cursor::new(self.bytes, self.order) }
    }

    /// Returns the type and the count, as q's `count`, of each value in order.
    pub(crate) fn shapes(&self) -> impl Iterator<Item = (Type, usize)> + use<'a> {
        let mut cursor = Cursor::new(self.bytes, self.order);
        (0..self.count).map_while(move |_| check(&mut cursor, MOST_DEPTH).ok())
    }

    /// Appends the values' bytes, the least significant of each number first.
    pub(crate) fn append_to(&self, out: &mut Vec<u8>) {
        if self.order == Order::Little {
            out.extend_from_slice(self.bytes);
            return;
        }
        let mut values = self.iter();
        while let Some((value, bytes)) = values.with_bytes() {
            let at = out.len();
            // The encoded value has at most as many bytes: a long count becomes a short one.
            out.resize(at + bytes.len(), 0);
            let mut encoder = Encoder::value_alone(&mut out[at..]);
            let written = encoder.value(&value.to_value()).and_then(|()| encoder.finish());
            // A value that was read can be written. If not, `::` keeps the number of cells: it has two bytes, like the
            // shortest value.
            let len = written.unwrap_or_else(|_| {
                out[at..at + 2].copy_from_slice(&[Type::UNARY.0.cast_unsigned(), 0]);
                2
            });
            out.truncate(at + len);
        }
    }

    /// Returns the byte order of the values.
    pub(crate) const fn order(&self) -> Order {
        self.order
    }
}

/// The values of a list.
#[derive(Clone, Debug)]
pub struct Values<'a> {
    left: usize,
    cursor: Cursor<'a>,
}

impl<'a> Values<'a> {
    /// Returns the next value, with its bytes.
    #[inline]
    pub(crate) fn with_bytes(&mut self) -> Option<(View<'a>, &'a [u8])> {
        self.left = self.left.checked_sub(1)?;
        let at = self.cursor.at();
        let view = reread(&mut self.cursor, self.left == 0)?;
        Some((view, self.cursor.since(at)))
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = View<'a>;

    #[inline]
    fn next(&mut self) -> Option<View<'a>> {
        self.with_bytes().map(|(view, _)| view)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Values<'_> {}

/// Keys and the same number of values.
#[derive(Clone, Copy, Debug)]
pub struct Dict<'a> {
    is_sorted: bool,
    count: usize,
    /// Keys and values.
    both: List<'a>,
}

impl<'a> Dict<'a> {
    /// Returns `true` if the keys are known to ascend.
    #[must_use]
    pub const fn is_sorted(&self) -> bool {
        self.is_sorted
    }

    /// Returns the keys: a vector, a list or a table.
    #[must_use]
    pub fn keys(&self) -> View<'a> {
        self.half(0)
    }

    /// Returns the values: a vector, a list or a table.
    #[must_use]
    pub fn values(&self) -> View<'a> {
        self.half(1)
    }

    /// Returns the tables of keys and of values, if the dictionary is a keyed table.
    #[must_use]
    pub fn keyed_table(&self) -> Option<(Table<'a>, Table<'a>)> {
        match (self.keys(), self.values()) {
            (View::Table(keys), View::Table(values)) => Some((keys, values)),
            _ => None,
        }
    }

    fn half(&self, which: usize) -> View<'a> {
        // Both were checked when the dictionary was read.
        self.both.iter().nth(which).unwrap_or(View::Error(&[]))
    }
}

/// Named columns of one length.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    rows: usize,
    names: Vector<'a>,
    columns: List<'a>,
}

impl<'a> Table<'a> {
    /// Returns the number of rows.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the names of the columns: a vector of symbols.
    #[must_use]
    pub const fn names(&self) -> Vector<'a> {
        self.names
    }

    /// Returns the columns: vectors, or lists where the cells are not atoms of one type.
    #[must_use]
    pub const fn columns(&self) -> List<'a> {
        self.columns
    }
}

/// A function: skipped when reading, and written again unchanged.
#[derive(Clone, Copy, Debug)]
pub struct Function<'a> {
    kind: Type,
    head: &'a [u8],
    parts: List<'a>,
}

impl<'a> Function<'a> {
    /// Returns the kind of function: from 100, a lambda, to 111.
    #[must_use]
    pub const fn kind(&self) -> Type {
        self.kind
    }

    /// Returns a lambda's namespace, or the one byte that identifies one of q's own functions; empty for other kinds.
    #[must_use]
    pub const fn head(&self) -> &'a [u8] {
        self.head
    }

    /// Returns a lambda's text; a projection's function and arguments; a composition's functions; the function to which
    /// an iterator is applied.
    #[must_use]
    pub const fn parts(&self) -> List<'a> {
        self.parts
    }

    /// Returns `true` for the generic null `::`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.kind == Type::UNARY && self.head == [0]
    }
}

/// Reads a value that was checked before. `is_last`: the value ends with the bytes.
///
/// Reads the contents only to find an unknown end; a feed's update is a list whose last value has all the columns.
#[inline]
fn reread<'a>(cursor: &mut Cursor<'a>, is_last: bool) -> Option<View<'a>> {
    let kind = Type(cursor.number::<u8>("a type").ok()?.cast_signed());
    let order = cursor.order();
    Some(match kind.0 {
        1..=19 => View::Vector(Vector::reread(cursor, kind, is_last)?),
        -19..=-1 => {
            let bytes = match kind.width() {
                0 => cursor.text("a symbol").ok()?,
                width => cursor.take(width, "an atom").ok()?,
            };
            View::Atom(Atom::read(kind, bytes, order)?)
        }
        0 => {
            let (_, count) = head(cursor, 0, "a list").ok()?;
            View::List(rest(cursor, count, is_last)?)
        }
        98 => {
            // The table's attribute, and the dictionary's type.
            cursor.take(2, "a table").ok()?;
            let View::Vector(names) = reread(cursor, false)? else { return None };
            let View::List(columns) = reread(cursor, is_last)? else { return None };
            let rows = columns.iter().next().map_or(0, |column| column.count());
            View::Table(Table { rows, names, columns })
        }
        99 | 127 => {
            let both = rest(cursor, 2, is_last)?;
            let count = both.iter().next()?.count();
            View::Dict(Dict { is_sorted: kind == Type::SORTED_DICT, count, both })
        }
        -128 => View::Error(cursor.text("an error's text").ok()?),
        _ => {
            let (head, parts) = function(cursor, kind, 0).ok()?;
            View::Function(Function { kind, head, parts: rest(cursor, parts, is_last)? })
        }
    })
}

/// Reads `count` values that were checked before. `is_last`: they end with the bytes.
#[inline]
fn rest<'a>(cursor: &mut Cursor<'a>, count: usize, is_last: bool) -> Option<List<'a>> {
    let begin = cursor.at();
    if is_last {
        cursor.take_rest();
    } else {
        for _ in 0..count {
            check(cursor, MOST_DEPTH).ok()?;
        }
    }
    Some(List { count, order: cursor.order(), bytes: cursor.since(begin) })
}
