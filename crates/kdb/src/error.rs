//! What can go wrong, and whose fault it is.

use crate::Type;

/// The peer's, or a file's, fault: bytes that are not what the format says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset}: {fault}")]
#[non_exhaustive]
pub struct Malformed {
    /// Bytes from the start of the slice that the reader was given: where it gave up.
    pub offset: usize,
    /// What was found there, and what belongs there.
    pub fault: Fault,
}

/// What is wrong with the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The bytes end within something.
    #[error("expected {wanted} more bytes of {what}, found the end after {left}")]
    Cut {
        /// What was being read.
        what: &'static str,
        /// How many bytes it takes, as far as is known: at least so many.
        wanted: usize,
        /// How many there are.
        left: usize,
    },
    /// Bytes behind what should be the end.
    #[error("expected the end of the message, found {0} more bytes")]
    Trailing(usize),
    /// A type that does not exist, or that never travels.
    #[error("expected the type of a value, found {}, which is none that can be read", .0.0)]
    UnknownType(Type),
    /// A vector's or a list's length.
    #[error("expected a number of items, found {0}")]
    Count(i64),
    /// Values within values, further than is followed.
    #[error("expected values at most {} deep in each other, found more", crate::MOST_DEPTH)]
    TooDeep,
    /// A table that is not made of a dictionary from names to columns.
    #[error("expected {expected} in a table, found type {}", .found.0)]
    Table {
        /// What belongs there.
        expected: &'static str,
        /// What is there.
        found: Type,
    },
    /// A table's columns of different lengths, or other names than columns; a dictionary's keys and values.
    #[error("expected {expected} {what}, found {found}")]
    Uneven {
        /// What was counted.
        what: &'static str,
        /// How many there have to be.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// The first byte of a message.
    #[error("expected byte order 0 or 1 at the start of a message, found {0}")]
    Order(u8),
    /// The second byte of a message.
    #[error("expected a message of kind 0 (async), 1 (sync) or 2 (response), found {0}")]
    Kind(u8),
    /// The third byte of a message: the compression of messages over 4 GiB, or one that does not exist.
    #[error("expected a message that is plain (0) or compressed (1), found {0}")]
    Packing(u8),
    /// A message that cannot be one, or is larger than is taken.
    #[error("expected a message of {least} to {most} bytes, found one of {found}")]
    Size {
        /// The shortest message.
        least: usize,
        /// The longest that is taken.
        most: usize,
        /// What it says itself.
        found: u64,
    },
    /// Compressed bytes that refer to what has not been.
    #[error("expected a reference to bytes before it in the compressed message, found one to none")]
    Reference,
    /// Compressed bytes that cannot make up the message, or make up more than that.
    #[error("expected compressed bytes that give {expected} bytes of message, found others")]
    Packed {
        /// The size that the message gave.
        expected: usize,
    },
    /// Names and a password that go on and on.
    #[error("expected a zero after at most {most} bytes of user and password, found none")]
    Hello {
        /// The longest that is taken.
        most: usize,
    },
    /// A file of something else.
    #[error("expected the start of a kdb+ log (ff 01 00 00 …), found {found:02x?}{}", hint(.found))]
    NotALog {
        /// How it begins.
        found: [u8; 8],
    },
}

/// What a file is that begins so, where that helps.
fn hint(found: &[u8; 8]) -> &'static str {
    match found {
        b"kxzipped" => ": a file that kdb+ compressed",
        [0x1F, 0x8B, ..] => ": gzip",
        [0xFF, 0x01, ..] => ": a kdb+ file, but no list of messages",
        [0xFE, 0x20, ..] => ": a vector or a table that kdb+ saved",
        [0 | 1, 0..=2, 0 | 1, 0, ..] => ": a message as it travels",
        _ => "",
    }
}

impl Malformed {
    /// A fault at `offset`.
    #[must_use]
    pub const fn new(offset: usize, fault: Fault) -> Self {
        Self { offset, fault }
    }

    /// The same fault, seen from a slice in which the reader's slice begins at `base`.
    #[must_use]
    pub const fn within(self, base: usize) -> Self {
        Self { offset: self.offset.saturating_add(base), fault: self.fault }
    }

    /// Whether all is well up to the end of the bytes: with more of them it might be a value.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        matches!(self.fault, Fault::Cut { .. })
    }
}

/// Why an encoder did not take something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The buffer is too small: an outcome to act upon (send what is there, take a larger one).
    #[error("no room left in the buffer")]
    Full,
    /// The caller's fault: the format cannot say so many.
    #[error("{0} items are more than a message can hold")]
    TooMany(usize),
    /// The caller's fault: a symbol or a text ends with its first zero.
    #[error("there is a zero within a text that ends with its first zero")]
    Zero,
    /// The caller's fault: a user ends with the first colon.
    #[error("there is a colon in a user's name")]
    Colon,
    /// The caller's fault: items of another type than the vector's.
    #[error("these are no items of type {}", .0.name())]
    WrongType(Type),
    /// The caller's fault: the iterator gave another number of items than it said.
    #[error("{said} items were announced, {came} came")]
    Miscounted {
        /// What it said.
        said: usize,
        /// What it gave.
        came: usize,
    },
    /// The caller's fault: the message is whole already.
    #[error("a value too many: the message is whole without it")]
    Superfluous,
    /// The caller's fault: lists, dictionaries or tables were begun and not filled.
    #[error("{0} values are missing")]
    Unfinished(u64),
}
