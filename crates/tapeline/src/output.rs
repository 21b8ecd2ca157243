//! What every printing command shares: the choice of format, numbers in the unit that reads best, and tables.

use clap::ValueEnum;

/// How a command prints its result on standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
}
