//! What can go wrong with a journal, and whose fault it is.

use std::io;
use std::path::PathBuf;

/// Why a journal could not be opened, read or written. Each names the file, and the place in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The machine's: a file, or the folder, does not do what is asked of it.
    #[error("cannot {what} {name}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file in the journal's folder.
        name: String,
        /// What the system says.
        source: io::Error,
    },
    /// The caller's: another process writes this journal.
    #[error("{} is being written by another process", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// The caller's: settings that no journal can have.
    #[error("a journal cannot have {what} {found}: expected {expected}")]
    BadSettings {
        /// Which of them.
        what: &'static str,
        /// Its value.
        found: u64,
        /// What is possible.
        expected: &'static str,
    },
    /// The file's: damage, with records behind it, or where more records are known to be. What is before it can be read.
    #[error("{segment}, byte {offset}, where record {seq} is expected: {fault}")]
    Corrupt {
        /// The segment's file.
        segment: String,
        /// Bytes from its beginning.
        offset: u64,
        /// The sequence of the record that should be there.
        seq: u64,
        /// What is there instead.
        fault: Fault,
    },
    /// The caller's: records that do not fit in the order of the journal.
    #[error("record {found} cannot follow {last}: expected a later one")]
    NotLater {
        /// The last record.
        last: u64,
        /// The one that was given.
        found: u64,
    },
    /// The caller's: a record that is longer than any.
    #[error("record {seq} has {found} bytes: expected at most {}", crate::MOST_BODY)]
    TooLong {
        /// Its sequence.
        seq: u64,
        /// Its bytes.
        found: usize,
    },
}

/// What is wrong with bytes of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The file ends within a header or a record.
    #[error("the file ends {left} bytes behind it, and {wanted} are needed")]
    Cut {
        /// Bytes that are needed, as far as is known.
        wanted: u64,
        /// Bytes that are there.
        left: u64,
    },
    /// Not how a segment begins.
    #[error("expected the header of a segment (TAPEJRN1), found {0:02x?}")]
    Magic([u8; 8]),
    /// A length that no record has.
    #[error("expected a record of at most {most} bytes, found a length of {found}")]
    Length {
        /// The longest.
        most: usize,
        /// What is there.
        found: u64,
    },
    /// The checksum of the bytes is another.
    #[error("expected the checksum {said:#010x} over its bytes, found {found:#010x}")]
    Checksum {
        /// What the header says.
        said: u32,
        /// What the bytes give.
        found: u32,
    },
    /// A record that is whole, and not the one that is next.
    #[error("expected the next sequence, found {0}")]
    Sequence(u64),
    /// Zeros, where a record should be.
    #[error("expected a record, found zeros")]
    Empty,
    /// A segment whose header does not continue the one before it.
    #[error(
        "expected a segment that follows record {expected}, found one that follows {found}: a segment is missing"
    )]
    After {
        /// The last record before.
        expected: u64,
        /// What the header says was the last record before.
        found: u64,
    },
}

impl Error {
    /// What the user can do about it, where something can be said.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "make room on the disk, or let the journal keep less: keep_size, keep_for"
                }
                io::ErrorKind::ReadOnlyFilesystem => "the disk is read-only: has it failed?",
                io::ErrorKind::PermissionDenied => "run as the user whom the journal's folder belongs to",
                io::ErrorKind::NotFound => "is this the journal's folder?",
                io::ErrorKind::FileTooLarge => {
                    "a limit on the size of files is below segment_size: `ulimit -f`"
                }
                _ => return None,
            },
            Self::InUse { .. } => "end that process first; a journal has one writer",
            Self::Corrupt { .. } => {
                "`tapeline journal verify` says what can be read; move the folder away to begin a new journal"
            }
            _ => return None,
        })
    }

    pub(crate) fn io(what: &'static str, name: &str) -> impl FnOnce(io::Error) -> Self {
        let name = name.to_owned();
        move |source| Self::Io { what, name, source }
    }
}
