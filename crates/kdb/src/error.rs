//! Errors, and their causes.

use crate::Type;

/// Bytes that violate the format: the peer's or a file's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset}: {fault}")]
#[non_exhaustive]
pub struct Malformed {
    /// Offset of the fault, in bytes from the start of the slice given to the reader.
    pub offset: usize,
    /// What was found there, and what was expected.
    pub fault: Fault,
}

/// The fault in the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The bytes end too early.
    #[error("expected {wanted} more bytes of {what}, found the end after {left}")]
    Cut {
        /// What was being read.
        what: &'static str,
        /// The number of bytes needed, as far as known; a minimum.
        wanted: usize,
        /// The number of bytes available.
        left: usize,
    },
    /// Bytes after the expected end.
    #[error("expected the end of the message, found {0} more bytes")]
    Trailing(usize),
    /// A type that does not exist, or that is never sent.
    #[error("expected the type of a value, found {}, which is none that can be read", .0.0)]
    UnknownType(Type),
    /// An invalid length of a vector or a list.
    #[error("expected a number of items, found {0}")]
    Count(i64),
    /// Values nested deeper than the limit.
    #[error("expected values at most {} deep in each other, found more", crate::MOST_DEPTH)]
    TooDeep,
    /// A table that is not a dictionary from names to columns.
    #[error("expected {expected} in a table, found type {}", .found.0)]
    Table {
        /// What was expected.
        expected: &'static str,
        /// The type found.
        found: Type,
    },
    /// Columns of different lengths, a number of names other than that of columns, or a dictionary with unequal keys
    /// and values.
    #[error("expected {expected} {what}, found {found}")]
    Uneven {
        /// What was counted.
        what: &'static str,
        /// The expected number.
        expected: usize,
        /// The number found.
        found: usize,
    },
    /// An invalid first byte of a message (byte order).
    #[error("expected byte order 0 or 1 at the start of a message, found {0}")]
    Order(u8),
    /// An invalid second byte of a message (kind).
    #[error("expected a message of kind 0 (async), 1 (sync) or 2 (response), found {0}")]
    Kind(u8),
    /// An invalid third byte of a message: the compression of messages over 4 GiB, or one that does not exist.
    #[error("expected a message that is plain (0) or compressed (1), found {0}")]
    Packing(u8),
    /// An invalid or excessive message length.
    #[error("expected a message of {least} to {most} bytes, found one of {found}")]
    Size {
        /// The minimum length, in bytes.
        least: usize,
        /// The maximum length, in bytes.
        most: usize,
        /// The length in the header, in bytes.
        found: u64,
    },
    /// Compressed bytes that refer to data not seen before.
    #[error("expected a reference to bytes before it in the compressed message, found one to none")]
    Reference,
    /// Compressed bytes that expand to fewer or more bytes than the message has.
    #[error("expected compressed bytes that give {expected} bytes of message, found others")]
    Packed {
        /// The size stated in the message, in bytes.
        expected: usize,
    },
    /// A handshake that exceeds its maximum length.
    #[error("expected a zero after at most {most} bytes of user and password, found none")]
    Hello {
        /// The maximum length, in bytes.
        most: usize,
    },
    /// A file of another format.
    #[error("expected the start of a kdb+ log (ff 01 00 00 …), found {found:02x?}{}", hint(.found))]
    NotALog {
        /// The file's first bytes.
        found: [u8; 8],
    },
}

/// Returns the format of a file with this start, if it is known.
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
    /// Creates a fault at `offset`.
    #[must_use]
    pub const fn new(offset: usize, fault: Fault) -> Self {
        Self { offset, fault }
    }

    /// Converts the offset to a slice in which the reader's slice begins at `base`.
    #[must_use]
    pub const fn within(self, base: usize) -> Self {
        Self { offset: self.offset.saturating_add(base), fault: self.fault }
    }

    /// Returns `true` if the bytes are valid up to their end: with more bytes they can be a value.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        matches!(self.fault, Fault::Cut { .. })
    }
}

/// Why an encoder refused a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The buffer is too small. An outcome to handle: send the contents, or use a larger buffer.
    #[error("no room left in the buffer")]
    Full,
    /// Caller: a count that the format cannot represent.
    #[error("{0} items are more than a message can hold")]
    TooMany(usize),
    /// Caller: a zero in a symbol or a text, which would end there.
    #[error("there is a zero within a text that ends with its first zero")]
    Zero,
    /// Caller: a colon in the user, which would end there.
    #[error("there is a colon in a user's name")]
    Colon,
    /// Caller: items of another type than the vector's.
    #[error("these are no items of type {}", .0.name())]
    WrongType(Type),
    /// Caller: the iterator gave another number of items than it announced.
    #[error("{said} items were announced, {came} came")]
    Miscounted {
        /// The number announced.
        said: usize,
        /// The number given.
        came: usize,
    },
    /// Caller: a value after the message is complete.
    #[error("a value too many: the message is whole without it")]
    Superfluous,
    /// Caller: lists, dictionaries or tables were begun and not filled.
    #[error("{0} values are missing")]
    Unfinished(u64),
}
