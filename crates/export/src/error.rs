//! Errors of an export.

use std::io;

use tapeline_omm::Malformed;

/// Why ticks could not be converted to rows, or rows could not be written to a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Publisher: a tick's message is malformed.
    #[error("the message of tick {seq} cannot be read")]
    Message {
        /// The tick's sequence.
        seq: u64,
        /// The fault in the message.
        source: Malformed,
    },
    /// A number that its column cannot represent exactly.
    #[error("tick {seq} has {value} where column {column} holds {expected}")]
    Number {
        /// The tick's sequence.
        seq: u64,
        /// The column.
        column: &'static str,
        /// The number.
        value: String,
        /// What the column can represent.
        expected: &'static str,
    },
    /// Caller or journal: more items than quotes are carried on for.
    #[error("there are more than {0} items")]
    Items(usize),
    /// Caller: the rows to be sorted exceed the memory limit.
    #[error("the rows that are to be sorted take more than {0} bytes")]
    SortLimit(u64),
    /// A text with a zero byte, which would end a kdb+ symbol.
    #[error("kdb+ cannot hold a row")]
    Kdb(#[from] tapeline_kdb::Refused),
    /// Machine: a file cannot be written.
    #[error("cannot write")]
    Io(#[from] io::Error),
    /// Machine: an error from the library that writes Parquet.
    #[error("cannot write Parquet")]
    Parquet(#[from] parquet::errors::ParquetError),
}

impl Error {
    /// Returns advice for the user, if there is any.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Message { .. } => Some("`tapeline journal inspect --from-sequence` shows the tick"),
            Self::Number { .. } => Some("--numbers double takes every number, to the nearest double"),
            Self::SortLimit(_) => Some(
                "--sort-limit allows more memory; --tables writes fewer tables, --from-time fewer days at a time",
            ),
            Self::Items(_) => Some("--tables without quotes carries nothing on"),
            _ => None,
        }
    }
}
