//! The finding of one check, and the better setting.

use serde::Serialize;

/// How good a setting is for latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Severity {
    /// Another setting would be better.
    CouldBeBetter,
    /// The machine does not report the setting.
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

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    /// The current setting, or why it is unknown.
    pub(super) found: String,
    /// The better setting.
    pub(super) better: Option<String>,
    /// The reason in one line, with its source.
    pub(super) why: Option<&'static str>,
    /// The command that changes the setting; `None` if no command can.
    pub(super) command: Option<String>,
}

impl Finding {
    pub(super) fn good(found: impl Into<String>) -> Self {
        Self { severity: Severity::Good, found: found.into(), better: None, why: None, command: None }
    }

    pub(super) fn unknown(found: impl Into<String>) -> Self {
        Self { severity: Severity::Unknown, ..Self::good(found) }
    }

    /// A setting that could be better, with the reason.
    pub(super) fn improvable(found: impl Into<String>, better: impl Into<String>, why: &'static str) -> Self {
        Self {
            severity: Severity::CouldBeBetter,
            better: Some(better.into()),
            why: Some(why),
            ..Self::good(found)
        }
    }

    /// Good, or one that could be better.
    pub(super) fn judged(
        is_good: bool,
        found: impl Into<String>,
        better: impl Into<String>,
        why: &'static str,
    ) -> Self {
        if is_good { Self::good(found) } else { Self::improvable(found, better, why) }
    }

    /// Adds the command that changes the setting, unless the setting is good.
    pub(super) fn by(self, command: impl Into<String>) -> Self {
        let command = self.better.is_some().then(|| command.into());
        Self { command, ..self }
    }
}
