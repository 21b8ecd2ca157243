//! How a failure reaches the user: what happened, where, what was expected, and a hint.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;
use std::sync::OnceLock;

/// Exit status for a command line that cannot be understood, as clap has it.
pub const UNKNOWN_ARGUMENTS: u8 = 2;

/// An error with advice. The advice is printed on a line of its own, after the chain of causes.
#[derive(Debug)]
pub struct Hinted {
    what: String,
    hint: String,
    /// Whether the options are at fault.
    is_misuse: bool,
}

impl Hinted {
    /// `what` happened and where; `hint` says what the user can do about it.
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: hint.into(), is_misuse: false }
    }

    /// As [`Self::new`], of options that contradict each other: no more than a misspelt one can they be understood.
    pub fn of_options(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { is_misuse: true, ..Self::new(what, hint) }
    }

    /// The advice.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

/// A port that cannot be had, so that `what` cannot be; `table` is where the configuration names it.
pub fn of_port(what: String, table: &str, error: tapeline_wire::Error) -> anyhow::Error {
    let hint = match error.hint() {
        Some(hint) => format!("{hint}; port in {table} names it"),
        None => format!("port = 0 in {table} takes a free one and says which"),
    };
    anyhow::Error::new(error).context(Hinted::new(what, hint))
}

impl fmt::Display for Hinted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Error for Hinted {}

/// Finds the advice in an error of another crate.
type Adviser = fn(&(dyn Error + 'static)) -> Option<String>;
static ADVISER: OnceLock<Adviser> = OnceLock::new();

/// Errors of a crate above this one have advice too: `adviser` finds it. Called once, when the program begins.
pub fn set_adviser(adviser: Adviser) {
    let _ = ADVISER.set(adviser);
}

/// Prints the chain of causes on standard error, then every hint in it, and gives exit status 1; or 2, as clap does, for a
/// command line that could not be understood. `spelled` gives a text with its options as the user spells them.
pub fn report(error: &anyhow::Error, spelled: &dyn Fn(&str) -> String) -> ExitCode {
    if is_closed_pipe(error) {
        return ExitCode::SUCCESS;
    }
    anstream::eprintln!("{}", spelled(&text(error)));
    match error.downcast_ref::<Hinted>() {
        Some(Hinted { is_misuse: true, .. }) => ExitCode::from(UNKNOWN_ARGUMENTS),
        _ => ExitCode::FAILURE,
    }
}

/// What a user is shown of a failure, without a line's end.
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

/// The advice in an error: of the context that was put around it, or else of its causes.
pub fn hints(error: &anyhow::Error) -> Vec<String> {
    let of_cause = |cause: &(dyn Error + 'static)| {
        let hinted = cause.downcast_ref::<Hinted>().map(|hinted| hinted.hint().to_owned());
        let of_client = || cause.downcast_ref::<tapeline_client::Error>()?.hint();
        hinted.or_else(of_client).or_else(|| ADVISER.get().and_then(|adviser| adviser(cause)))
    };
    // A context is found through `anyhow` only, a cause through the chain only.
    let context = error.downcast_ref::<Hinted>().map(|hinted| hinted.hint().to_owned());
    let causes = error.chain().filter_map(of_cause);
    let mut hints: Vec<String> = context.into_iter().chain(causes).filter(|hint| !hint.is_empty()).collect();
    hints.dedup();
    hints
}

/// `tapeline … | head` ends by closing our standard output: that is the reader's wish, not a failure.
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
