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

/// A setting that a file of the system can make last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lasting {
    /// Settings of `sysctl`, such as `net.core.rmem_max=16777216`, separated by blanks.
    Sysctl(String),
    /// A value for a file of the kernel, whose path has no leading slash.
    KernelFile { path: &'static str, value: &'static str },
    /// A setting of `logind.conf`.
    Logind(String),
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
    /// The same setting for a file, if one can make it last.
    #[serde(skip)]
    pub(super) lasting: Option<Lasting>,
}

impl Finding {
    pub(super) fn good(found: impl Into<String>) -> Self {
        Self {
            severity: Severity::Good,
            found: found.into(),
            better: None,
            why: None,
            command: None,
            lasting: None,
        }
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

    /// Adds the command that changes settings of `sysctl`, and their lasting form, unless the setting is good.
    pub(super) fn by_sysctl(self, settings: impl Into<String>) -> Self {
        let settings = settings.into();
        self.by(format!("sudo sysctl -w {settings}")).lasting(Lasting::Sysctl(settings))
    }

    /// Adds the command that writes a value into a file of the kernel, and its lasting form, unless the setting is good.
    pub(super) fn by_writing(self, value: &'static str, path: &'static str) -> Self {
        self.by(format!("echo {value} | sudo tee /{path}")).lasting(Lasting::KernelFile { path, value })
    }

    /// Adds the lasting form of the setting, unless the setting is good.
    pub(super) fn lasting(self, lasting: Lasting) -> Self {
        let lasting = self.better.is_some().then_some(lasting);
        Self { lasting, ..self }
    }
}
