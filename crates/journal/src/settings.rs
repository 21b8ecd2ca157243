//! What a journal is to do.

use std::time::Duration;

use crate::Error;

/// How sure a record is to be before it counts as kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Given to the kernel: it outlives the process, whatever ends that, and not the machine.
    #[default]
    Written,
    /// On the disk: it outlives the machine too, as far as the disk keeps its word.
    Synced,
}

/// What becomes of publishing when the journal cannot be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// Whoever publishes has to stop: nothing is said that is not in the journal.
    #[default]
    Stop,
    /// It goes on without a journal, which tries again every [`RETRY_NS`](Settings::RETRY_NS) in a new segment; that says which
    /// sequences are missing before it.
    Continue,
}

/// How much is kept. Whole segments go, the oldest first, and never the one that is written, nor the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Segments whose last record is older, by the records' times; `None` for ever.
    pub age: Option<Duration>,
    /// All segments together in bytes at most; `None` for any. One more segment than that may be there.
    pub bytes: Option<u64>,
}

/// What a journal is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// When a record counts as kept.
    pub durability: Durability,
    /// What becomes of publishing when the journal cannot be written.
    pub on_failure: OnFailure,
    /// A segment's file, in bytes; a longer record has one of its own. Another one also begins with each day (UTC).
    pub segment_bytes: u64,
    /// How much is kept.
    pub retention: Retention,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            on_failure: OnFailure::default(),
            segment_bytes: 256 << 20,
            retention: Retention::default(),
        }
    }
}

impl Settings {
    /// The smallest segment: a write's worth.
    pub const LEAST_SEGMENT_BYTES: u64 = 64 << 10;
    /// The largest: what is looked through when a journal is opened after a crash.
    pub const MOST_SEGMENT_BYTES: u64 = 64 << 30;
    /// How long a journal that could not be written waits until it tries again, by the records' times.
    pub const RETRY_NS: u64 = 1_000_000_000;

    pub(crate) fn check(&self) -> Result<(), Error> {
        let possible = Self::LEAST_SEGMENT_BYTES..=Self::MOST_SEGMENT_BYTES;
        if possible.contains(&self.segment_bytes) {
            return Ok(());
        }
        let (what, expected) = ("segments of bytes", "64 KiB to 64 GiB");
        Err(Error::BadSettings { what, found: self.segment_bytes, expected })
    }
}
