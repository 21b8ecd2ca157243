//! Error messages for the user: what happened, where, what was expected, and a hint.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;
use std::sync::OnceLock;

/// Exit status for an invalid command line, the same as clap's.
pub const UNKNOWN_ARGUMENTS: u8 = 2;

/// An error with a hint. The hint is printed on its own line, after the chain of causes.
#[derive(Debug)]
pub struct Hinted {
    what: String,
    hint: String,
    /// Whether the command line is invalid.
    is_misuse: bool,
}

impl Hinted {
    /// `what` is the failure and its place; `hint` is the remedy.
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: hint.into(), is_misuse: false }
    }

    /// As [`Self::new`], for options that contradict each other. Counts as an invalid command line.
    pub fn of_options(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { is_misuse: true, ..Self::new(what, hint) }
    }

    /// The hint.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

/// An error of a socket with its hint.
pub fn of_socket(error: tapeline_wire::Error) -> anyhow::Error {
    match error.hint() {
        Some(hint) => Hinted::new(error.to_string(), hint).into(),
        None => error.into(),
    }
}

impl fmt::Display for Hinted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Error for Hinted {}

/// Returns the hint for an error of another crate.
type Adviser = fn(&(dyn Error + 'static)) -> Option<String>;
static ADVISER: OnceLock<Adviser> = OnceLock::new();

/// Sets the function that finds hints in errors of a crate above this one. Call once, at program start.
pub fn set_adviser(adviser: Adviser) {
    let _ = ADVISER.set(adviser);
}

/// Prints the chain of causes on standard error, then every hint in the chain. Returns exit status 1, or 2 (as
/// clap does) for an invalid command line. `spelled` rewrites a text so that it names options as the user spells
/// them.
pub fn report(error: &anyhow::Error, spelled: &dyn Fn(&str) -> String) -> ExitCode {
    if is_closed_pipe(error) {
        return ExitCode::SUCCESS;
    }
    crate::log::error(error, spelled);
    match error.downcast_ref::<Hinted>() {
        Some(Hinted { is_misuse: true, .. }) => ExitCode::from(UNKNOWN_ARGUMENTS),
        _ => ExitCode::FAILURE,
    }
}

/// The error text for the user, without a final line end.
pub fn text(error: &anyhow::Error) -> String {
    let mut text = format!("error: {error}");
    for cause in error.chain().skip(1) {
        text.push_str(&format!("\n  because: {cause}"));
    }
    for hint in hints(error) {
        text.push_str(&format!("\nhint: {hint}"));
    }
    text
}

/// The hints of an error: that of its context, then those of its causes.
pub fn hints(error: &anyhow::Error) -> Vec<String> {
    let of_cause = |cause: &(dyn Error + 'static)| {
        let hinted = cause.downcast_ref::<Hinted>().map(|hinted| hinted.hint().to_owned());
        let of_client = || cause.downcast_ref::<tapeline_client::Error>()?.hint();
        hinted.or_else(of_client).or_else(|| ADVISER.get().and_then(|adviser| adviser(cause)))
    };
    // A context can be found only through `anyhow`, a cause only through the chain.
    let context = error.downcast_ref::<Hinted>().map(|hinted| hinted.hint().to_owned());
    let causes = error.chain().filter_map(of_cause);
    let mut hints: Vec<String> = context.into_iter().chain(causes).filter(|hint| !hint.is_empty()).collect();
    hints.dedup();
    hints
}

/// `tapeline … | head` ends by closing the standard output: the reader's choice, not a failure.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
    })
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn a_hint_is_found_as_error_as_context_and_as_cause() {
        let bare = anyhow::Error::new(Hinted::new("what", "advice"));
        let context = anyhow::anyhow!("below").context(Hinted::new("what", "advice"));
        let cause = Err::<(), _>(Hinted::new("what", "advice")).context("above").unwrap_err();
        for error in [bare, context, cause] {
            assert_eq!(hints(&error), ["advice"], "{error:?}");
        }
        assert_eq!(hints(&anyhow::anyhow!("none")), [""; 0]);
    }
}
