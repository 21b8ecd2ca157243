//! The types of values, by their numbers.

/// A value's type number, as q's `type` gives it: negative for an atom, positive for a vector.
///
/// The constants are the types of vectors; [`atom`](Self::atom) returns the type of one item. Numbers and letters are
/// those of the [table of data types](https://code.kx.com/q/basics/datatypes/).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Type(pub i8);

macro_rules! types {
    ($($(#[$about:meta])* $name:ident = $number:literal, $word:literal, $letter:literal, $width:literal;)*) => {
        impl Type {
            $($(#[$about])* pub const $name: Self = Self($number);)*
        }

        /// Word, letter and width in bytes of each type from 1 to 19; symbols have no fixed width, 3 is no type.
        const TYPES: [(&str, char, usize); 20] = {
            let mut types = [("", ' ', 0); 20];
            $(types[$number] = ($word, $letter, $width);)*
            types
        };
    };
}

types! {
    /// True or false.
    BOOLEAN = 1, "boolean", 'b', 1;
    /// 16 bytes.
    GUID = 2, "guid", 'g', 16;
    /// 8 bits.
    BYTE = 4, "byte", 'x', 1;
    /// 16 bits.
    SHORT = 5, "short", 'h', 2;
    /// 32 bits.
    INT = 6, "int", 'i', 4;
    /// 64 bits.
    LONG = 7, "long", 'j', 8;
    /// 32 bits, IEEE 754.
    REAL = 8, "real", 'e', 4;
    /// 64 bits, IEEE 754.
    FLOAT = 9, "float", 'f', 8;
    /// A byte of text; a vector of them is a string.
    CHAR = 10, "char", 'c', 1;
    /// A name, up to a zero.
    SYMBOL = 11, "symbol", 's', 0;
    /// Nanoseconds since 2000, in UTC or the writer's local time.
    TIMESTAMP = 12, "timestamp", 'p', 8;
    /// Months since January 2000.
    MONTH = 13, "month", 'm', 4;
    /// Days since 1 January 2000.
    DATE = 14, "date", 'd', 4;
    /// Days since 2000 as a float; superseded by timestamps.
    DATETIME = 15, "datetime", 'z', 8;
    /// Nanoseconds.
    TIMESPAN = 16, "timespan", 'n', 8;
    /// Minutes.
    MINUTE = 17, "minute", 'u', 4;
    /// Seconds.
    SECOND = 18, "second", 'v', 4;
    /// Milliseconds.
    TIME = 19, "time", 't', 4;
}

impl Type {
    /// A list of values of any types.
    pub const LIST: Self = Self(0);
    /// A table.
    pub const TABLE: Self = Self(98);
    /// A dictionary, or a keyed table.
    pub const DICT: Self = Self(99);
    /// A user-defined function.
    pub const LAMBDA: Self = Self(100);
    /// A built-in function of one argument; the first one is the generic null `::`.
    pub const UNARY: Self = Self(101);
    /// A built-in function of two arguments.
    pub const BINARY: Self = Self(102);
    /// A built-in iterator.
    pub const ITERATOR: Self = Self(103);
    /// A function with some of its arguments bound.
    pub const PROJECTION: Self = Self(104);
    /// A composition of functions.
    pub const COMPOSITION: Self = Self(105);
    /// The range of functions that an iterator derives from another function: `f'`, `f/`, `f\`, `f':`, `f/:`, `f\:`.
    pub const DERIVED: std::ops::RangeInclusive<i8> = 106..=111;
    /// A dictionary whose keys are sorted.
    pub const SORTED_DICT: Self = Self(127);
    /// An error.
    pub const ERROR: Self = Self(-128);

    /// Returns the type of one item of a vector of this type.
    #[must_use]
    pub const fn atom(self) -> Self {
        Self(if self.0 > 0 { -self.0 } else { self.0 })
    }

    /// Returns the type of a vector of such atoms.
    #[must_use]
    pub const fn vector(self) -> Self {
        Self(self.0.saturating_abs())
    }

    /// Returns `true` if values of this type are atoms, or vectors of atoms.
    pub(crate) const fn is_basic(self) -> bool {
        let number = self.vector().0;
        number > 0 && number != 3 && number < TYPES.len() as i8
    }

    const fn row(self) -> Option<&'static (&'static str, char, usize)> {
        if self.is_basic() { Some(&TYPES[self.vector().0 as usize]) } else { None }
    }

    /// Returns the size in bytes of one item; 0 for symbols, whose size varies, and for types without such items.
    #[must_use]
    pub const fn width(self) -> usize {
        match self.row() {
            Some(row) => row.2,
            None => 0,
        }
    }

    /// Returns q's letter for the type, such as `j` for longs; a space for a type without one, as in q's `meta`.
    #[must_use]
    pub const fn letter(self) -> char {
        match self.row() {
            Some(row) => row.1,
            None => ' ',
        }
    }

    /// Returns the type's name, the same for atoms and vectors.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match (self.row(), self.0) {
            (Some(row), _) => row.0,
            (None, 0) => "list",
            (None, 98) => "table",
            (None, 99 | 127) => "dictionary",
            (None, 100..=111) => "function",
            (None, -128) => "error",
            _ => "unknown type",
        }
    }
}

/// The known order of a vector's items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attribute(pub u8);

impl Attribute {
    /// No known order.
    pub const NONE: Self = Self(0);
    /// The items ascend: `s`.
    pub const SORTED: Self = Self(1);
    /// No two items are equal: `u`.
    pub const UNIQUE: Self = Self(2);
    /// Equal items are adjacent: `p`.
    pub const PARTED: Self = Self(3);
    /// The items are indexed: `g`.
    pub const GROUPED: Self = Self(4);
}
