//! Damage of a file of records.

use super::metadata::MOST_METADATA_BYTES;
use super::record::{self, RecordKind};

/// The reason why a file cannot be read (any further).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The version is not supported.
    #[error("DBN version {version}; versions 1 to 3 are read")]
    Version {
        /// The version.
        version: u8,
    },
    /// The metadata's length is impossible, or exceeds the limit.
    #[error("metadata of {length} bytes; 100 to {MOST_METADATA_BYTES} are expected")]
    MetadataLength {
        /// The stated length.
        length: u32,
    },
    /// The length of symbols is too short.
    #[error("symbols of {said} bytes; at least 22 are expected")]
    SymbolLength {
        /// The stated length.
        said: u16,
    },
    /// The metadata contradict themselves.
    #[error("metadata that cannot be read: {said}")]
    Metadata {
        /// The message of the decoder.
        said: String,
    },
    /// The file ends within a record, or within its metadata.
    #[error("the file ends after {held} of {wanted} bytes")]
    Cut {
        /// Actual bytes.
        held: usize,
        /// Required bytes.
        wanted: usize,
    },
    /// A record is shorter than its header: the next record cannot be found.
    #[error("a record of {length} bytes; every record has a header of 16")]
    Impossible {
        /// The length in the record.
        length: usize,
    },
    /// A record's length is not that of its kind in the file's version: the next bytes may not be a record.
    #[error("a record of kind {} ({:#04x}) with {length} bytes; {} are expected", .kind.name().unwrap_or("unknown"), .kind.0, expected(*.kind, *.wanted))]
    Length {
        /// The kind.
        kind: RecordKind,
        /// The length in the record.
        length: usize,
        /// The length in the file's version; `None` for an unknown version.
        wanted: Option<usize>,
    },
}

fn expected(kind: RecordKind, wanted: Option<usize>) -> String {
    wanted.map_or_else(|| record::expected(kind), |wanted| wanted.to_string())
}
