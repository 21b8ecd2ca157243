//! `tapeline kdb`: files of kdb+ tickerplants.
//!
//! | file | owns |
//! |---|---|
//! | `inspect.rs` | content of logs: options, reading, verdict |
//! | `tally.rs` | adding up updates by table |
//! | `report.rs` | the output as tables and as JSON |

mod inspect;
mod report;
mod tally;

use std::process::ExitCode;

use clap::Subcommand;

/// Inspect the logs of a kdb+ tickerplant.
#[derive(Debug, Subcommand)]
pub(crate) enum Kdb {
    /// Show the content of a tickerplant's log: messages, tables, columns and types, first and last rows, a torn tail
    ///
    /// A log is the file that `-11!` replays. As in kdb+, it is read up to the first incomplete message. Nothing is
    /// evaluated.
    Inspect(inspect::InspectLog),
}

impl Kdb {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        run!(self, Kdb: Inspect)
    }
}
