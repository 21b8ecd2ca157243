//! What can go wrong, and whose fault it is.

/// The peer's fault: bytes that are not what the format says.
///
/// Nothing before `offset` was at fault. The value says where a reader gave up, so that a capture can be opened
/// at the same place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed {what} at byte {offset}")]
#[non_exhaustive]
pub struct Malformed {
    /// Bytes from the start of the slice that the reader was given.
    pub offset: usize,
    /// What was being read: "u15 length", "field id", "REAL hint" …
    pub what: &'static str,
}

impl Malformed {
    /// A fault at `offset` while reading `what`.
    #[must_use]
    pub const fn new(offset: usize, what: &'static str) -> Self {
        Self { offset, what }
    }

    /// The same fault, seen from a slice in which the reader's slice begins at `base`.
    #[must_use]
    pub const fn within(self, base: usize) -> Self {
        Self { offset: self.offset.saturating_add(base), what: self.what }
    }
}

/// No room is left: an outcome to act upon (send what is there, take a larger buffer), not a fault.
///
/// What was written before stays well-formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no room left in the buffer")]
pub struct Full;

/// Why an encoder did not take something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The buffer is too small.
    #[error("no room left in the buffer")]
    Full,
    /// The caller's fault: a member is longer than its length on the wire can say.
    #[error("{what} is longer than the {limit} bytes that the format allows")]
    TooLong {
        /// Which member.
        what: &'static str,
        /// The most bytes that the format allows.
        limit: usize,
    },
    /// The caller's fault: the format has no place for it here.
    #[error("there is no place for {0} here")]
    Misplaced(&'static str),
}

impl From<Full> for Refused {
    fn from(Full: Full) -> Self {
        Self::Full
    }
}
