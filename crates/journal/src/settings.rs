//! The settings of a journal.

use std::time::Duration;

use crate::Error;

/// The point at which a record counts as journaled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The kernel has the record: it survives any end of the process, but not a failure of the machine.
    #[default]
    Written,
    /// The record is synced to disk: it also survives a failure of the machine, as far as the disk honours the sync.
    Synced,
}

/// What happens to publishing when the journal cannot be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// The publisher must stop: nothing is published that is not in the journal.
    #[default]
    Stop,
    /// Publishing continues without the journal. The journal retries every [`RETRY_NS`](Settings::RETRY_NS) in a new
    /// segment, whose header records which sequences are missing before it.
    Continue,
}

/// Limits on the age and size of the journal. Whole segments are deleted, oldest first, but never the one being written
/// nor the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Maximum age of a segment's last record, by the records' times; `None` means no limit.
    pub age: Option<Duration>,
    /// Maximum size of all segments together, in bytes; `None` means no limit. The journal can exceed the limit by one
    /// segment.
    pub bytes: Option<u64>,
}

/// Settings of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The point at which a record counts as journaled; default [`Durability::Written`].
    pub durability: Durability,
    /// What happens to publishing when the journal cannot be written; default [`OnFailure::Stop`].
    pub on_failure: OnFailure,
    /// Size of a segment's file, in bytes; default 256 MiB. A longer record gets a segment of its own. A new segment
    /// also begins with each day (UTC).
    pub segment_bytes: u64,
    /// Limits on the age and size of the journal.
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
    /// The smallest segment, in bytes: one write.
    pub const LEAST_SEGMENT_BYTES: u64 = 64 << 10;
    /// The largest segment, in bytes. Opening a journal after a crash scans one segment.
    pub const MOST_SEGMENT_BYTES: u64 = 64 << 30;
    /// Interval between retries of a journal that could not be written, in nanoseconds of the records' times.
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
