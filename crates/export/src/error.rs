//! What can go wrong.

use std::io;

use tapeline_omm::Malformed;

/// Why ticks do not become rows, or rows no file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Whoever published it: its message is none.
    #[error("the message of tick {seq} cannot be read")]
    Message {
        /// The tick.
        seq: u64,
        /// Where it is broken.
        source: Malformed,
    },
    /// A number that is not exact in its column.
    #[error("tick {seq} has {value} where column {column} holds {expected}")]
    Number {
        /// The tick.
        seq: u64,
        /// The column.
        column: &'static str,
        /// The number.
        value: String,
        /// What the column holds.
        expected: &'static str,
    },
    /// The caller's, or the journal's: too many to carry quotes on for.
    #[error("there are more than {0} items")]
    Items(usize),
    /// The caller's: rows that are to be sorted take more memory than they may.
    #[error("the rows that are to be sorted take more than {0} bytes")]
    SortLimit(u64),
    /// A text with a zero byte, which ends a symbol of kdb+.
    #[error("kdb+ cannot hold a row")]
    Kdb(#[from] tapeline_kdb::Refused),
    /// The machine's: a file cannot be written.
    #[error("cannot write")]
    Io(#[from] io::Error),
    /// The machine's, through the library that writes Parquet.
    #[error("cannot write Parquet")]
    Parquet(#[from] parquet::errors::ParquetError),
}

impl Error {
    /// What can be done about it.
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
