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
    /// Prints a text of this level, if the user wants that much.
    pub(super) fn say(self, level: Self, text: &str) {
        if self >= level {
            anstream::eprintln!("{text}");
        }
    }
}
