//! Values that own their data: for occasional requests and responses, not for published data.

use crate::view::View;
use crate::{Atom, Attribute, Malformed, Order, Type};

/// A value of any type that owns its data.
///
/// Attributes of vectors are stored; those of lists and tables are not.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// A single value of a basic type.
    Atom(Atom<Box<[u8]>>),
    /// Values of one basic type.
    Vector {
        /// The vector's type, a positive number.
        kind: Type,
        /// The known order of the items.
        attribute: Attribute,
        /// The values, all of that type.
        items: Vec<Atom<Box<[u8]>>>,
    },
    /// Values of any types.
    List(Vec<Self>),
    /// Keys and the same number of values; a keyed table if both are tables.
    Dict {
        /// `true` if the keys are known to ascend.
        is_sorted: bool,
        /// A vector, a list or a table.
        keys: Box<Self>,
        /// A vector, a list or a table.
        values: Box<Self>,
    },
    /// Named columns of one length.
    Table {
        /// The names of the columns.
        names: Vec<Box<[u8]>>,
        /// Vectors, lists or tables.
        columns: Vec<Self>,
    },
    /// A function; this crate does not execute it; see [`crate::Function`].
    Function {
        /// The kind of function.
        kind: Type,
        /// A lambda's namespace, or the byte that identifies one of q's own functions.
        head: Box<[u8]>,
        /// A lambda's text, a projection's parts …
        parts: Vec<Self>,
    },
    /// An error.
    Error(Box<[u8]>),
}

impl Value {
    /// Creates the generic null `::`.
    #[must_use]
    pub fn null() -> Self {
        Self::Function { kind: Type::UNARY, head: [0].into(), parts: Vec::new() }
    }

    /// Creates a symbol.
    #[must_use]
    pub fn symbol(name: &str) -> Self {
        Self::Atom(Atom::Symbol(name.as_bytes().into()))
    }

    /// Creates a string: a vector of characters.
    #[must_use]
    pub fn string(text: &str) -> Self {
        let items = text.bytes().map(Atom::Char).collect();
        Self::Vector { kind: Type::CHAR, attribute: Attribute::NONE, items }
    }

    /// Reads one value, which must take all bytes.
    ///
    /// # Errors
    /// Those of [`View::parse`].
    pub fn parse(bytes: &[u8], order: Order) -> Result<Self, Malformed> {
        View::parse(bytes, order).map(|view| view.to_value())
    }
}

impl View<'_> {
    /// Copies the value into an owned one.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let all = |list: &crate::List<'_>| list.iter().map(|view| view.to_value()).collect();
        match self {
            Self::Atom(atom) => Value::Atom(atom.boxed()),
            Self::Vector(vector) => Value::Vector {
                kind: vector.kind(),
                attribute: vector.attribute(),
                items: vector.iter().map(Atom::boxed).collect(),
            },
            Self::List(list) => Value::List(all(list)),
            Self::Dict(dict) => Value::Dict {
                is_sorted: dict.is_sorted(),
                keys: Box::new(dict.keys().to_value()),
                values: Box::new(dict.values().to_value()),
            },
            Self::Table(table) => Value::Table {
                names: table.names().symbols().into_iter().flatten().map(Box::from).collect(),
                columns: all(&table.columns()),
            },
            Self::Function(function) => Value::Function {
                kind: function.kind(),
                head: function.head().into(),
                parts: all(&function.parts()),
            },
            Self::Error(text) => Value::Error((*text).into()),
        }
    }
}
