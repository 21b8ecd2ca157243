//! Errors of a journal, and their causes: machine, caller or file.

use std::io;
use std::path::PathBuf;

/// Why a journal could not be opened, read or written. Each error names the file and the position in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Machine: an operation on a file or on the folder failed.
    #[error("cannot {what} {name}")]
    Io {
        /// The operation that failed.
        what: &'static str,
        /// The file in the journal's folder.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// Caller: another process writes this journal.
    #[error("{} is being written by another process", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// Caller: invalid settings.
    #[error("a journal cannot have {what} {found}: expected {expected}")]
    BadSettings {
        /// The setting.
        what: &'static str,
        /// Its value.
        found: u64,
        /// The valid values.
        expected: &'static str,
    },
    /// File: damage with records after it, or where more records are known to exist. Records before the damage can be
    /// read.
    #[error("{segment}, byte {offset}, where record {seq} is expected: {fault}")]
    Corrupt {
        /// The segment's file name.
        segment: String,
        /// Offset in bytes from the start of the segment.
        offset: u64,
        /// The sequence of the expected record.
        seq: u64,
        /// What was found instead.
        fault: Fault,
    },
    /// Caller: a record whose sequence is not later than the last one.
    #[error("record {found} cannot follow {last}: expected a later one")]
    NotLater {
        /// The last sequence.
        last: u64,
        /// The sequence given.
        found: u64,
    },
    /// Caller: a record longer than the maximum.
    #[error("record {seq} has {found} bytes: expected at most {}", crate::MOST_BODY)]
    TooLong {
        /// The record's sequence.
        seq: u64,
        /// The record's length in bytes.
        found: usize,
    },
}

/// The fault in the bytes of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The file ends within a header or a record.
    #[error("the file ends {left} bytes after it, and {wanted} are needed")]
    Cut {
        /// Bytes needed, as far as known.
        wanted: u64,
        /// Bytes available.
        left: u64,
    },
    /// The file does not begin like a segment.
    #[error("expected the header of a segment (TAPEJRN1), found {0:02x?}")]
    Magic([u8; 8]),
    /// An invalid record length.
    #[error("expected a record of at most {most} bytes, found a length of {found}")]
    Length {
        /// The maximum length.
        most: usize,
        /// The length found.
        found: u64,
    },
    /// The checksum does not match.
    #[error("expected the checksum {said:#010x} over its bytes, found {found:#010x}")]
    Checksum {
        /// The checksum in the header.
        said: u32,
        /// The checksum of the bytes.
        found: u32,
    },
    /// A whole record with an unexpected sequence.
    #[error("expected the next sequence, found {0}")]
    Sequence(u64),
    /// Zeros where a record is expected.
    #[error("expected a record, found zeros")]
    Empty,
    /// A segment whose header does not follow the segment before it.
    #[error(
        "expected a segment that follows record {expected}, found one that follows {found}: a segment is missing"
    )]
    After {
        /// The last record before this segment.
        expected: u64,
        /// The last record before it according to its header.
        found: u64,
    },
}

impl Error {
    /// Returns advice for the user, if there is any.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "free space on the disk, or keep less of the journal: keep_size, keep_for"
                }
                io::ErrorKind::ReadOnlyFilesystem => "the disk is read-only: has it failed?",
                io::ErrorKind::PermissionDenied => "run as the owner of the journal's folder",
                io::ErrorKind::NotFound => "is this the journal's folder?",
                io::ErrorKind::FileTooLarge => {
                    "a limit on the size of files is below segment_size: `ulimit -f`"
                }
                _ => return None,
            },
            Self::InUse { .. } => "end that process first; a journal has one writer",
            Self::Corrupt { .. } => {
                "`tapeline journal verify` shows what can be read; move the folder away to begin a new journal"
            }
            _ => return None,
        })
    }

    pub(crate) fn io(what: &'static str, name: &str) -> impl FnOnce(io::Error) -> Self {
        let name = name.to_owned();
        move |source| Self::Io { what, name, source }
    }
}
