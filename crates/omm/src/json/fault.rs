//! What can be wrong with a text, and what cannot be written as one.

use super::scan::Raw;
use crate::Malformed;

/// Texts of the peer's that are quoted in a fault are cut off behind so many characters.
const LONGEST_QUOTE: usize = 64;

/// The peer's fault: a text, or a message in it, that is not what the protocol says. The message is to be dropped, and
/// answered with [`Pack::error`](super::Pack::error); stream and connection live on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem} (at byte {offset})")]
#[non_exhaustive]
pub struct Fault {
    /// What is wrong.
    pub problem: Problem,
    /// Where in the text, in bytes.
    pub offset: usize,
    /// Stream id of the message at fault; 0 where it cannot be told.
    pub id: i32,
}

/// What is wrong with a text, in the words of LSEG's server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// It is no JSON.
    #[error("JSON Converter parse error: {0}")]
    Syntax(&'static str),
    /// Another kind of JSON value than the member takes.
    #[error("JSON Converter Token Type error: Expected '{expected}' for key '{key}' Received '{received}'")]
    Type {
        /// The member.
        key: String,
        /// What it takes.
        expected: &'static str,
        /// What it has.
        received: &'static str,
    },
    /// A value that the member cannot have.
    #[error("JSON Unexpected Value. Received '{received}' for key '{key}'")]
    Value {
        /// The member.
        key: String,
        /// What it has.
        received: String,
    },
    /// A member that must be there.
    #[error("JSON Missing required key '{0}'")]
    Missing(&'static str),
    /// A member that is not known: only where the settings ask for it.
    #[error("JSON Unexpected Key. Received '{0}'")]
    Key(String),
    /// A field that the dictionary does not have.
    #[error("JSON Unexpected FID. Received '{0}' for key 'Fields'")]
    Field(String),
    /// Items of an array that are of different kinds.
    #[error("JSON Mixed Types in OMM Array: Received '{first}' and '{other}' for key 'Data'")]
    Mixed {
        /// What the array begins with.
        first: &'static str,
        /// What comes later.
        other: &'static str,
    },
    /// Something that RWF cannot express: a text that is too long for its place, say.
    #[error("JSON Unexpected Value: {0}")]
    Refused(String),
}

impl Problem {
    /// Another kind of value than expected.
    pub(super) fn kind(key: &str, expected: &'static str, value: Raw<'_>) -> Self {
        Self::Type { key: quote(key), expected, received: value.kind_name() }
    }

    /// A value that cannot be.
    pub(super) fn value(key: &str, value: Raw<'_>) -> Self {
        Self::Value { key: quote(key), received: quote(value.text().trim_matches('"')) }
    }
}

/// The beginning of a text of the peer's.
pub(super) fn quote(text: &str) -> String {
    text.chars().take(LONGEST_QUOTE).collect()
}

/// Why a message has no text. Nothing of it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Whoever made the message is at fault.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// Containers nested deeper than [`DEPTH_LIMIT`](crate::rwf::DEPTH_LIMIT).
    #[error("containers are nested deeper than {0} levels")]
    TooDeep(usize),
    /// More text than [`Settings::most_text`](super::Settings::most_text).
    #[error("the message is longer than {0} bytes of text")]
    TooLong(usize),
}
