//! What can be wrong with a dictionary file.

use crate::Fid;

/// A line of a dictionary file that is not as it should be. The file is at fault, whoever wrote it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
#[non_exhaustive]
pub struct DictionaryError {
    /// Number of the line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The line ends too early.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A quoted text has no end.
    #[error("the quoted {0} does not end")]
    Unquoted(&'static str),
    /// A number is no number, or out of its range.
    #[error("{what} {found:?} is no number from {least} to {most}")]
    Number {
        /// Which column.
        what: &'static str,
        /// What stands there.
        found: String,
        /// The smallest that is allowed.
        least: i64,
        /// The largest that is allowed.
        most: i64,
    },
    /// A word is none of those that are known.
    #[error("{what} {found:?} is not known; expected one of {expected}")]
    Word {
        /// Which column.
        what: &'static str,
        /// What stands there.
        found: String,
        /// What may stand there.
        expected: &'static str,
    },
    /// More than the columns that are known.
    #[error("{0:?} follows the last column")]
    Surplus(String),
    /// Field id 0: it stands for no field, as in what a field ripples to.
    #[error("field id 0 stands for no field; ids from 1 on are the standard's, below 0 a site's own")]
    NoFid,
    /// A field id comes twice.
    #[error("field id {fid} was given to {name} before")]
    DuplicateFid {
        /// The id.
        fid: Fid,
        /// Which field has it.
        name: String,
    },
    /// A name comes twice.
    #[error("the name {name} was given to field id {fid} before")]
    DuplicateName {
        /// The name.
        name: String,
        /// Which field has it.
        fid: Fid,
    },
    /// An enumeration names a field otherwise than the field dictionary.
    #[error("field id {fid} is named {expected}, not {found}")]
    OtherName {
        /// The id.
        fid: Fid,
        /// Its name in the field dictionary.
        expected: String,
        /// Its name here.
        found: String,
    },
    /// A field comes under two tables of enumerations.
    #[error("field id {0} has a table already")]
    SecondTable(Fid),
    /// A value comes twice in a table.
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
    /// The problem with the line it is on.
    pub(super) const fn on(self, line: usize) -> DictionaryError {
        DictionaryError { line, problem: self }
    }
}
