//! What `ring pub` and `ring sub` say on standard error, by level.

use clap::ValueEnum;

/// How much is said. The names are those of older tools too, in any case of letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Level {
    /// Errors only
    #[value(aliases = ["fatal", "critical"])]
    Error,
    /// Also warnings
    Warning,
    /// Also what the command is waiting for
    #[default]
    Notice,
    /// Also the settings, and the start of the measured time
    #[value(aliases = ["debug", "trace"])]
    Info,
}

impl Level {
    /// Why it failed, where that is not the end's own error.
    pub(super) fn error(self, text: &str) {
        self.say(Self::Error, text);
    }

    /// Something may be wrong.
    pub(super) fn warning(self, text: &str) {
        self.say(Self::Warning, text);
    }

    /// Something that one wants to know while waiting.
    pub(super) fn notice(self, text: &str) {
        self.say(Self::Notice, text);
    }

    /// Settings and stages.
    pub(super) fn info(self, text: &str) {
        self.say(Self::Info, text);
    }

    fn say(self, level: Self, text: &str) {
        if self >= level {
            anstream::eprintln!("{text}");
        }
    }
}
