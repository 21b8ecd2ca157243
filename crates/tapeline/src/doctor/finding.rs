//! What is found of one thing, and what would be better.

use serde::Serialize;

/// How good a thing is for latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Severity {
    /// Something else would be better.
    CouldBeBetter,
    /// The machine does not say.
    Unknown,
    /// Nothing to do.
    Good,
}

impl Severity {
    /// For people.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::CouldBeBetter => "could be better",
            Self::Unknown => "unknown",
            Self::Good => "good",
        }
    }
}

/// One thing of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    /// What is; of what is unknown, why.
    pub(super) found: String,
    /// What is better.
    pub(super) better: Option<String>,
    /// Why, in one line, with its source.
    pub(super) why: Option<&'static str>,
    /// What makes it so; none where no command can.
    pub(super) command: Option<String>,
}

impl Finding {
    pub(super) fn good(found: impl Into<String>) -> Self {
        Self { severity: Severity::Good, found: found.into(), better: None, why: None, command: None }
    }

    pub(super) fn unknown(found: impl Into<String>) -> Self {
        Self { severity: Severity::Unknown, ..Self::good(found) }
    }

    /// Something else would be better, for this reason.
    pub(super) fn improvable(found: impl Into<String>, better: impl Into<String>, why: &'static str) -> Self {
        Self {
            severity: Severity::CouldBeBetter,
            better: Some(better.into()),
            why: Some(why),
            ..Self::good(found)
        }
    }

    /// The command that makes it so.
    pub(super) fn by(self, command: impl Into<String>) -> Self {
        Self { command: Some(command.into()), ..self }
    }
}
