//! The error of this crate: what happened and where, its cause, and advice.

use std::fmt;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// An error in a part of a plant, with its cause and, if any, advice to the user.
///
/// `{}` prints what happened; `{:#}` also prints the causes, separated by colons.
#[derive(Debug)]
pub struct Error {
    what: String,
    hint: String,
    cause: Option<Cause>,
}

/// The result of an operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Creates an error without a cause: what happened and where, and what the user can do about it.
    #[must_use]
    pub fn hinted(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: hint.into(), cause: None }
    }

    /// Creates an error without advice.
    #[must_use]
    pub fn new(what: impl Into<String>) -> Self {
        Self::hinted(what, "")
    }

    /// Returns the advice to the user, if any: of this error, not of its causes.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        Some(self.hint.as_str()).filter(|hint| !hint.is_empty())
    }

    #[must_use]
    pub(crate) fn because(self, cause: impl Into<Cause>) -> Self {
        Self { cause: Some(cause.into()), ..self }
    }

    /// Copies a chain of causes, so that it no longer depends on its owner.
    pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> Self {
        let cause = error.source().map(|cause| Self::chain(cause).into());
        Self { what: error.to_string(), hint: String::new(), cause }
    }

    /// Creates the error of a port that cannot be opened: `what` is not possible then, and the
    /// configuration's `table` names the port.
    pub(crate) fn of_port(what: String, table: &str, error: tapeline_wire::Error) -> Self {
        let hint = match error.hint() {
            Some(hint) => format!("{hint}; port in {table} names it"),
            None => format!("port = 0 in {table} takes a free one and says which"),
        };
        Self::hinted(what, hint).because(error)
    }

    /// Creates the error of a journal, with its advice.
    pub(crate) fn of_journal(what: impl Into<String>, error: tapeline_journal::Error) -> Self {
        Self::hinted(what, error.hint().unwrap_or_default()).because(error)
    }

    /// Creates the error of a ring, with its advice.
    pub(crate) fn of_ring(what: impl Into<String>, error: tapeline_ring::Error) -> Self {
        Self::hinted(what, error.hint().unwrap_or_default()).because(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        let mut cause = if f.alternate() { std::error::Error::source(self) } else { None };
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}

impl From<String> for Error {
    fn from(what: String) -> Self {
        Self::new(what)
    }
}

impl From<&str> for Error {
    fn from(what: &str) -> Self {
        Self::new(what)
    }
}

/// Errors of other crates whose text is complete: their own causes are preserved.
macro_rules! transparent {
    ($($error:ty)*) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::chain(&error)
            }
        }
    )*};
}

transparent! {
    std::io::Error tapeline_kdb::Refused tapeline_measure::Error tapeline_omm::Refused tapeline_plant::tick::Malformed tapeline_ring::Error
    tapeline_wire::Error
}

/// Adds what was being done when something failed.
pub(crate) trait Context<T> {
    /// Wraps the cause in an error: a text, or an [`Error`] with advice.
    fn context(self, what: impl Into<Error>) -> Result<T>;

    /// As [`context`](Self::context), if creating the error has a cost.
    fn with_context<E: Into<Error>>(self, what: impl FnOnce() -> E) -> Result<T>;
}

impl<T, C: Into<Cause>> Context<T> for std::result::Result<T, C> {
    fn context(self, what: impl Into<Error>) -> Result<T> {
        self.map_err(|cause| what.into().because(cause))
    }

    fn with_context<E: Into<Error>>(self, what: impl FnOnce() -> E) -> Result<T> {
        self.map_err(|cause| what().into().because(cause))
    }
}

/// Returns an error without a cause.
macro_rules! bail {
    ($($what:tt)*) => { return Err($crate::Error::new(format!($($what)*))) };
}

/// Returns an error unless the condition is true.
macro_rules! ensure {
    ($so:expr, $($what:tt)*) => { if !$so { $crate::error::bail!($($what)*) } };
}

pub(crate) use {bail, ensure};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_its_causes_and_its_advice() {
        let below = std::io::Error::other("the disk is full");
        let error = Err::<(), _>(below).context(Error::hinted("cannot write", "make space")).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.hint()), ("cannot write", Some("make space")));
        assert_eq!(format!("{error:#}"), "cannot write: the disk is full");
        let above = Err::<(), _>(error).context("the journal has ended").unwrap_err();
        assert_eq!(format!("{above:#}"), "the journal has ended: cannot write: the disk is full");
        assert_eq!(above.hint(), None);
    }
}
