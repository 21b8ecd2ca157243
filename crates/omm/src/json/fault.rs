//! Faults of texts, and errors of writing.

use super::scan::Raw;
use crate::Malformed;

/// Maximum number of characters of a peer's text that a fault quotes.
const LONGEST_QUOTE: usize = 64;

/// Invalid text, or an invalid message in a text. The peer is at fault. Drop the message and answer it with
/// [`Pack::error`](super::Pack::error); stream and connection continue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem} (at byte {offset})")]
#[non_exhaustive]
pub struct Fault {
    /// Problem with the text.
    pub problem: JsonProblem,
    /// Offset in the text, bytes.
    pub offset: usize,
    /// Stream id of the message at fault; 0 if unknown.
    pub id: i32,
}

/// Problem with a text, in the words of LSEG's server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonProblem {
    /// The text is not JSON.
    #[error("JSON Converter parse error: {0}")]
    Syntax(&'static str),
    /// The JSON value has another type than the member requires.
    #[error("JSON Converter Token Type error: Expected '{expected}' for key '{key}' Received '{received}'")]
    Type {
        /// Name of the member.
        key: String,
        /// Expected type.
        expected: &'static str,
        /// Received type.
        received: &'static str,
    },
    /// The member does not allow the value.
    #[error("JSON Unexpected Value. Received '{received}' for key '{key}'")]
    Value {
        /// Name of the member.
        key: String,
        /// Received value.
        received: String,
    },
    /// A required member is missing.
    #[error("JSON Missing required key '{0}'")]
    Missing(&'static str),
    /// An unknown member; only if the settings ask for it.
    #[error("JSON Unexpected Key. Received '{0}'")]
    Key(String),
    /// A field that is not in the dictionary.
    #[error("JSON Unexpected FID. Received '{0}' for key 'Fields'")]
    Field(String),
    /// Items of an array have different types.
    #[error("JSON Mixed Types in OMM Array: Received '{first}' and '{other}' for key 'Data'")]
    Mixed {
        /// Type of the first items.
        first: &'static str,
        /// Type of a later item.
        other: &'static str,
    },
    /// RWF cannot express the value: for example, a text is too long.
    #[error("JSON Unexpected Value: {0}")]
    Refused(String),
}

impl JsonProblem {
    /// Returns the problem for a value of an unexpected type.
    pub(super) fn kind(key: &str, expected: &'static str, value: Raw<'_>) -> Self {
        Self::Type { key: quote(key), expected, received: value.kind_name() }
    }

    /// Returns the problem for a value that is not allowed.
    pub(super) fn value(key: &str, value: Raw<'_>) -> Self {
        Self::Value { key: quote(key), received: quote(value.text().trim_matches('"')) }
    }
}

/// Returns the beginning of a peer's text.
pub(super) fn quote(text: &str) -> String {
    text.chars().take(LONGEST_QUOTE).collect()
}

/// Reason why a message was not converted to text. Nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The message is malformed. Its creator is at fault.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// Containers are nested deeper than [`DEPTH_LIMIT`](crate::rwf::DEPTH_LIMIT).
    #[error("containers are nested deeper than {0} levels")]
    TooDeep(usize),
    /// The text is longer than [`JsonSettings::most_text`](super::JsonSettings::most_text).
    #[error("the message is longer than {0} bytes of text")]
    TooLong(usize),
}
