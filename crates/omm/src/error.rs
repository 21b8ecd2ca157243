//! Error types of the codec. Each one names the party at fault: the peer, the caller, or none (a full buffer).

/// Bytes that do not follow the format. The peer is at fault.
///
/// `offset` is the position where the reader stopped; the bytes before it are well-formed. Open a capture at that
/// position to see the fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed {what} at byte {offset}")]
#[non_exhaustive]
pub struct Malformed {
    /// Offset from the start of the slice that the reader was given, bytes.
    pub offset: usize,
    /// Name of the part that was being read: "u15 length", "field id", "REAL hint" …
    pub what: &'static str,
}

impl Malformed {
    /// Returns a fault at `offset` while reading `what`.
    #[must_use]
    pub const fn new(offset: usize, what: &'static str) -> Self {
        Self { offset, what }
    }

    /// Returns the same fault relative to an outer slice in which the reader's slice begins at `base`.
    #[must_use]
    pub const fn within(self, base: usize) -> Self {
        Self { offset: self.offset.saturating_add(base), what: self.what }
    }
}

/// The buffer is full. This is an outcome to act upon (send the buffer, use a larger one), not a fault.
///
/// Output that was written before stays well-formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no room left in the buffer")]
pub struct Full;

/// Reason why an encoder refused its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The buffer is too small.
    #[error("no room left in the buffer")]
    Full,
    /// The caller's fault: a member is longer than its length field can express.
    #[error("{what} is longer than the {limit} bytes that the format allows")]
    TooLong {
        /// Name of the member.
        what: &'static str,
        /// Maximum length that the format allows, bytes.
        limit: usize,
    },
    /// The caller's fault: the format does not allow this item here.
    #[error("there is no place for {0} here")]
    Misplaced(&'static str),
}

impl From<Full> for Refused {
    fn from(Full: Full) -> Self {
        Self::Full
    }
}
