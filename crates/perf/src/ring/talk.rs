//! Messages of `ring pub` and `ring sub` on standard error, by level.

use clap::ValueEnum;

/// The verbosity. The names of older tools are accepted too, in upper or lower case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Level {
    /// Errors only
    #[value(aliases = ["fatal", "critical"])]
    Error,
    /// Also warnings
    Warning,
    /// Also notices of what the command is waiting for
    #[default]
    Notice,
    /// Also the settings, and the start of the measured time
    #[value(aliases = ["debug", "trace"])]
    Info,
}

impl Level {
    /// The reason for a failure, if the final error does not state it.
    pub(super) fn error(self, text: &str) {
        self.say(Self::Error, text);
    }

    /// A possible problem.
    pub(super) fn warning(self, text: &str) {
        self.say(Self::Warning, text);
    }

    /// Information for a user who waits.
    pub(super) fn notice(self, text: &str) {
        self.say(Self::Notice, text);
    }

    /// Settings and phases.
    pub(super) fn info(self, text: &str) {
        self.say(Self::Info, text);
    }

    fn say(self, level: Self, text: &str) {
        if self >= level {
            anstream::eprintln!("{text}");
        }
    }
}
