//! Errors of dictionary files.

use crate::Fid;

/// Invalid line of a dictionary file. The file is at fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
#[non_exhaustive]
pub struct DictionaryError {
    /// Number of the line, from 1.
    pub line: usize,
    /// Problem with the line.
    pub problem: Problem,
}

/// Problem with a line of a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The line ends too early.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A quoted text is not terminated.
    #[error("the quoted {0} does not end")]
    Unquoted(&'static str),
    /// A value is not a number, or is out of range.
    #[error("{what} {found:?} is no number from {least} to {most}")]
    Number {
        /// Name of the column.
        what: &'static str,
        /// Text that was found.
        found: String,
        /// Minimum.
        least: i64,
        /// Maximum.
        most: i64,
    },
    /// A word is not one of the known words.
    #[error("{what} {found:?} is not known; expected one of {expected}")]
    Word {
        /// Name of the column.
        what: &'static str,
        /// Text that was found.
        found: String,
        /// Words that are allowed.
        expected: &'static str,
    },
    /// Text after the last known column.
    #[error("{0:?} follows the last column")]
    Surplus(String),
    /// Field id 0. It stands for no field, for example as a ripple target.
    #[error("field id 0 stands for no field; ids from 1 on are the standard's, below 0 a site's own")]
    NoFid,
    /// A duplicate field id.
    #[error("field id {fid} was given to {name} before")]
    DuplicateFid {
        /// The id.
        fid: Fid,
        /// Name of the field that has the id already.
        name: String,
    },
    /// A duplicate name.
    #[error("the name {name} was given to field id {fid} before")]
    DuplicateName {
        /// The name.
        name: String,
        /// Id of the field that has the name already.
        fid: Fid,
    },
    /// The name of a field in an enumeration differs from that in the field dictionary.
    #[error("field id {fid} is named {expected}, not {found}")]
    OtherName {
        /// The id.
        fid: Fid,
        /// Name in the field dictionary.
        expected: String,
        /// Name in the enumeration.
        found: String,
    },
    /// A field under two tables of enumerations.
    #[error("field id {0} has a table already")]
    SecondTable(Fid),
    /// A duplicate value in a table.
    #[error("value {0} comes twice in its table")]
    DuplicateValue(u16),
    /// A value without a field before it.
    #[error("a value comes before the fields that have it")]
    NoField,
    /// More tables or fields than the format has ids for.
    #[error("more than {0} of them")]
    TooMany(usize),
}

impl Problem {
    /// Returns the problem with its line number.
    pub(super) const fn on(self, line: usize) -> DictionaryError {
        DictionaryError { line, problem: self }
    }
}
