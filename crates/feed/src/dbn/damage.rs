//! What can be wrong with a file of records.

use super::metadata::MOST_METADATA_BYTES;
use super::record::{self, Kind};

/// Why a file cannot be read, or not any further.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// A version that is not read here.
    #[error("DBN version {version}; versions 1 to 3 are read")]
    Version {
        /// The version.
        version: u8,
    },
    /// The metadata's length cannot be right, or is more than is taken.
    #[error("metadata of {length} bytes; 100 to {MOST_METADATA_BYTES} are expected")]
    MetadataLength {
        /// The length.
        length: u32,
    },
    /// Symbols that are too short to be any.
    #[error("symbols of {said} bytes; at least 22 are expected")]
    SymbolLength {
        /// The length.
        said: u16,
    },
    /// The metadata contradict themselves.
    #[error("metadata that cannot be read: {said}")]
    Metadata {
        /// What the decoder said.
        said: String,
    },
    /// The file ends within a record, or within its metadata.
    #[error("the file ends after {held} of {wanted} bytes")]
    Cut {
        /// Bytes that are there.
        held: usize,
        /// Bytes that should be there.
        wanted: usize,
    },
    /// A record shorter than its header: what follows cannot be found.
    #[error("a record of {length} bytes; every record has a header of 16")]
    Impossible {
        /// The length it says it has.
        length: usize,
    },
    /// A record with another length than its kind has in the file's version: what follows need not be a record.
    #[error("a record of kind {} ({:#04x}) with {length} bytes; {} are expected", .kind.name().unwrap_or("unknown"), .kind.0, expected(*.kind, *.wanted))]
    Length {
        /// The kind.
        kind: Kind,
        /// The length it says it has.
        length: usize,
        /// The length in the file's version; `None` where the version is not known.
        wanted: Option<usize>,
    },
}

fn expected(kind: Kind, wanted: Option<usize>) -> String {
    wanted.map_or_else(|| record::expected(kind), |wanted| wanted.to_string())
}
