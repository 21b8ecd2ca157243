//! Errors, and the exceptions that they become.

use std::fmt;

use pyo3::prelude::*;
use pyo3::{PyErr, create_exception, exceptions};

create_exception!(
    tapeline,
    TapelineError,
    exceptions::PyException,
    "What went wrong, with a hint where there is one."
);
create_exception!(tapeline, NotFoundError, TapelineError, "There is no such ring, journal, file or item.");
create_exception!(
    tapeline,
    ArgumentError,
    TapelineError,
    "An argument is wrong, such as the name of a column."
);
create_exception!(
    tapeline,
    GapError,
    TapelineError,
    "Ticks are missing: `first` to `last` were not received."
);
create_exception!(
    tapeline,
    DamagedError,
    TapelineError,
    "Bytes are not what they should be: a ring, a journal or a message."
);
create_exception!(
    tapeline,
    EndedError,
    TapelineError,
    "A session has ended for good, such as after a refused login."
);
create_exception!(
    tapeline,
    ForkedError,
    TapelineError,
    "The object was made before a fork, and belongs to the parent."
);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    NotFound,
    Argument,
    Gap,
    Damaged,
    Ended,
    Forked,
    Other,
}

/// What went wrong: a sentence, and advice.
#[derive(Debug)]
pub(crate) struct Error {
    kind: Kind,
    text: String,
    hint: Option<String>,
}

impl Error {
    fn new(kind: Kind, text: impl Into<String>, hint: Option<String>) -> Self {
        Self { kind, text: text.into(), hint }
    }

    pub(crate) fn argument(text: String, hint: &str) -> Self {
        Self::new(Kind::Argument, text, Some(hint.to_owned()))
    }

    pub(crate) fn damaged(text: impl fmt::Display) -> Self {
        Self::new(Kind::Damaged, text.to_string(), None)
    }

    pub(crate) fn ended(text: impl Into<String>) -> Self {
        Self::new(Kind::Ended, text, None)
    }

    /// Says in which row of a table it is.
    pub(crate) fn of_row(self, row: usize, item: &str) -> Self {
        Self { text: format!("row {row}, item {item:?}: {}", self.text), ..self }
    }

    /// A fault of this program.
    pub(crate) fn fault(text: impl Into<String>) -> Self {
        Self::new(Kind::Other, text, Some("this is a fault of Tapeline: please report it".to_owned()))
    }

    pub(crate) fn gap(first: u64, last: u64) -> Self {
        let count = last.saturating_sub(first).saturating_add(1);
        let hint = "on_gap=\"row\" shows the gap as a row, on_gap=\"ignore\" goes on without";
        Self::new(Kind::Gap, format!("{count} ticks are missing: {first} to {last}"), Some(hint.to_owned()))
    }

    /// A position that was lost before the first tick.
    pub(crate) fn unknown_gap() -> Self {
        let text = "this reader read nothing for longer than the plant's stall_limit before its first tick: ticks are missing";
        Self::new(Kind::Gap, text, Some("take the first batch soon after the ring was joined".to_owned()))
    }

    pub(crate) fn forked() -> Self {
        let hint = "open the ring, the journal or the consumer in the child, or start children with multiprocessing's \"spawn\"";
        Self::new(
            Kind::Forked,
            "this object was made before a fork and belongs to the parent process",
            Some(hint.to_owned()),
        )
    }
}

impl From<tapeline_ring::Error> for Error {
    fn from(error: tapeline_ring::Error) -> Self {
        let kind = match error {
            tapeline_ring::Error::NotFound { .. } => Kind::NotFound,
            _ => Kind::Other,
        };
        Self::new(kind, chain(&error), error.hint())
    }
}

impl From<tapeline_journal::Error> for Error {
    fn from(error: tapeline_journal::Error) -> Self {
        let kind = match &error {
            tapeline_journal::Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                Kind::NotFound
            }
            tapeline_journal::Error::Io { .. } => Kind::Other,
            _ => Kind::Damaged,
        };
        Self::new(kind, chain(&error), error.hint().map(str::to_owned))
    }
}

/// The sentence, and the hint on a line of its own.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\nhint: {hint}"))
    }
}

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error.kind {
            Kind::NotFound => NotFoundError::new_err(text),
            Kind::Argument => ArgumentError::new_err(text),
            Kind::Gap => GapError::new_err(text),
            Kind::Damaged => DamagedError::new_err(text),
            Kind::Ended => EndedError::new_err(text),
            Kind::Forked => ForkedError::new_err(text),
            Kind::Other => TapelineError::new_err(text),
        }
    }
}

impl From<tapeline_client::Error> for Error {
    fn from(error: tapeline_client::Error) -> Self {
        Self::new(Kind::Other, chain(&error), error.hint())
    }
}

impl From<tapeline_node::Error> for Error {
    fn from(error: tapeline_node::Error) -> Self {
        Self::new(Kind::Other, chain(&error), error.hint().map(str::to_owned))
    }
}

/// An error and its causes in one sentence.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// Adds the exceptions to the module.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("TapelineError", py.get_type::<TapelineError>())?;
    module.add("NotFoundError", py.get_type::<NotFoundError>())?;
    module.add("ArgumentError", py.get_type::<ArgumentError>())?;
    module.add("GapError", py.get_type::<GapError>())?;
    module.add("DamagedError", py.get_type::<DamagedError>())?;
    module.add("EndedError", py.get_type::<EndedError>())?;
    module.add("ForkedError", py.get_type::<ForkedError>())
}
