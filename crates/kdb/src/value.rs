//! Values that own what is in them: for what is asked and answered now and then, not for what is published.

use crate::view::View;
use crate::{Atom, Attribute, Malformed, Order, Type};

/// A value of any type.
///
/// The attributes of lists and tables are not kept; those of vectors are.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// A single value of a basic type.
    Atom(Atom<Box<[u8]>>),
    /// Values of one basic type.
    Vector {
        /// The vector's type, a positive number.
        kind: Type,
        /// What is known of their order.
        attribute: Attribute,
        /// The values, all of that type.
        items: Vec<Atom<Box<[u8]>>>,
    },
    /// Values of any types.
    List(Vec<Self>),
    /// Keys and as many values; a keyed table if both are tables.
    Dict {
        /// Whether the keys are known to ascend.
        is_sorted: bool,
        /// A vector, a list or a table.
        keys: Box<Self>,
        /// A vector, a list or a table.
        values: Box<Self>,
    },
    /// Named columns of one length.
    Table {
        /// The columns' names.
        names: Vec<Box<[u8]>>,
        /// Vectors, lists or tables.
        columns: Vec<Self>,
    },
    /// Something to be executed, which nobody here does; see [`crate::Function`].
    Function {
        /// What kind.
        kind: Type,
        /// A lambda's namespace, or the byte that says which function of q's own.
        head: Box<[u8]>,
        /// A lambda's text, a projection's parts …
        parts: Vec<Self>,
    },
    /// What went wrong.
    Error(Box<[u8]>),
}

impl Value {
    /// The generic null `::`.
    #[must_use]
    pub fn null() -> Self {
        Self::Function { kind: Type::UNARY, head: [0].into(), parts: Vec::new() }
    }

    /// A symbol.
    #[must_use]
    pub fn symbol(name: &str) -> Self {
        Self::Atom(Atom::Symbol(name.as_bytes().into()))
    }

    /// A string: a vector of characters.
    #[must_use]
    pub fn string(text: &str) -> Self {
        let items = text.bytes().map(Atom::Char).collect();
        Self::Vector { kind: Type::CHAR, attribute: Attribute::NONE, items }
    }

    /// Reads one value, which has to be all that there is.
    ///
    /// # Errors
    /// Those of [`View::parse`].
    pub fn parse(bytes: &[u8], order: Order) -> Result<Self, Malformed> {
        View::parse(bytes, order).map(|view| view.to_value())
    }
}

impl View<'_> {
    /// The same value, its own.
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
