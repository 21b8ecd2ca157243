//! The answers to calls, and the errors of calls.

use tapeline_kdb::{Atom, Encoder, Malformed, MessageKind, NoUpdate, Refused, Type, Value};

use crate::Schema;

/// The fault of a call, caused by the peer. The sender gets it as an error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Wrong {
    /// The call is not part of the tickerplant's protocol.
    #[error(
        "nothing is evaluated here; .u.sub, .u.i, .u.L, .u.w, .u.d, .u.t and .u.endofday[] are known, and calls of .u.upd"
    )]
    Unknown,
    /// The call is malformed.
    #[error("{0}")]
    Malformed(Malformed),
    /// The call is not an update.
    #[error("{0}")]
    NoUpdate(NoUpdate),
    /// Arguments that `.u.sub` does not have.
    #[error("type: .u.sub[table;symbols] has a symbol and a symbol or a list of them")]
    SubArguments,
    /// A table that does not exist.
    #[error("{0}: no such table, .u.t has those that there are")]
    NoTable(String),
    /// A table or a call that this session has no right to.
    #[error("access: {0}")]
    NoRight(&'static str),
    /// A number of columns other than the table's, with or without the time.
    #[error("length: {expected} columns or one less, without the time, are expected, found {found}")]
    Columns {
        /// The table's number of columns.
        expected: usize,
        /// The number of columns received.
        found: usize,
    },
    /// A table whose columns have other names.
    #[error("mismatch: column {column} is expected, found another name in its place")]
    Name {
        /// The expected column.
        column: Box<str>,
    },
    /// A column of another type.
    #[error("type: column {column} has {}, found {}", .expected.name(), .found.name())]
    Type {
        /// The column's name.
        column: Box<str>,
        /// The column's type.
        expected: Type,
        /// The type received.
        found: Type,
    },
    /// Rows that cannot be passed on.
    #[error("limit: {0}")]
    NotTaken(&'static str),
    /// More symbols than a subscriber may choose.
    #[error("limit: at most {most} symbols, found {found}")]
    Symbols {
        /// The maximum number.
        most: usize,
        /// The number received.
        found: usize,
    },
}

impl Wrong {
    /// Creates the error for a table that does not exist.
    pub(crate) fn no_table(name: &[u8]) -> Self {
        Self::NoTable(String::from_utf8_lossy(name).chars().take(64).collect())
    }
}

/// The longest answer, in bytes: the list of all subscriptions is the longest. All sessions wait while it is encoded.
const MOST_ANSWER: usize = 4 << 20;

/// Writes an answer to `out`, which grows as necessary, or an error in place of one over [`MOST_ANSWER`]. Returns the
/// number of bytes encoded, including attempts in buffers that were too small. Allocates, so use it for occasional requests
/// only.
pub(crate) fn answer(out: &mut Vec<u8>, write: impl Fn(&mut Encoder<'_>) -> Result<(), Refused>) -> u64 {
    let (mut room, mut tried) = (4_096, 0);
    while room <= MOST_ANSWER {
        out.clear();
        out.resize(room, 0);
        let written = Encoder::message(out, MessageKind::Response).and_then(|mut message| {
            write(&mut message)?;
            message.finish()
        });
        match written {
            Err(Refused::Full) => {
                tried += room as u64;
                room *= 2;
            }
            written => {
                out.truncate(written.unwrap_or(0));
                return tried + out.len() as u64;
            }
        }
    }
    tried + error_text(out, b"limit: the answer is too long")
}

fn error_text(out: &mut Vec<u8>, text: &[u8]) -> u64 {
    answer(out, |message| message.error(text))
}

/// Writes an empty answer.
pub(crate) fn null(out: &mut Vec<u8>) -> u64 {
    answer(out, |message| message.value(&Value::null()))
}

/// Writes an error as the answer.
pub(crate) fn error(out: &mut Vec<u8>, wrong: &Wrong) -> u64 {
    // A zero would end the text, and the encoder refuses it.
    error_text(out, wrong.to_string().replace('\0', "").as_bytes())
}

/// Writes the result of `.u.sub`: a table's name and the table without rows.
pub(crate) fn subscribed(out: &mut Encoder<'_>, schema: &Schema) -> Result<(), Refused> {
    out.list(2)?;
    out.symbol(schema.name().as_bytes())?;
    schema.write_empty(out)
}

/// Writes a count; null if there is no log.
pub(crate) fn count(out: &mut Encoder<'_>, count: Option<u64>) -> Result<(), Refused> {
    out.atom(&Atom::<&[u8]>::Long(count.map_or(i64::MIN, |count| count as i64)))
}
