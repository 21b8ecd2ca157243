//! `tapeline journal`: reads what a plant has published.
//!
//! | file | owns |
//! |---|---|
//! | `place.rs` | which journal, and where in it |
//! | `verify.rs` | every checksum and sequence: counts, holes, verdict |
//! | `inspect.rs` | segments, and ticks from a place on |
//! | `ending.rs` | reports about a torn end |
//! | `export.rs` and its folder | ticks as rows of tables, in files for other programs |
//! | `import.rs` and its folder | rows of kdb+ logs as ticks of a journal |
//! | `replay.rs` and its folder | onto a ring, at any speed, then live ticks; to clients; onto UDP |

mod ending;
mod export;
mod import;
mod inspect;
mod place;
mod replay;
mod verify;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use tapeline_console::failure::Hinted;

/// Verify, inspect, export, import and replay a plant's journal.
#[derive(Debug, Args)]
pub(crate) struct Journal {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Read a whole journal, and check every checksum and sequence number
    Verify(verify::Verify),
    /// Show a journal's segments, and its ticks from a sequence number or a time on
    Inspect(inspect::InspectJournal),
    /// Export a journal's ticks as tables: Parquet, or a log that kdb+ replays
    Export(export::Export),
    /// Append the rows of kdb+ logs to a journal, as ticks
    Import(import::Import),
    /// Replay a journal to a ring, to clients as a live service, or over UDP as the feed's own messages
    ///
    /// Replays at the original speed, at a multiple of it, or as fast as possible.
    Replay(replay::Replay),
}

impl Journal {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Verify(verify) => verify.run(),
            Command::Inspect(inspect) => inspect.run(),
            Command::Export(export) => export.run(),
            Command::Import(import) => import.run(),
            Command::Replay(replay) => replay.run(),
        }
    }
}

/// Adds the context and a hint to a journal error.
pub(crate) fn hinted(what: &str, error: tapeline_journal::Error) -> anyhow::Error {
    let hint = error.hint().unwrap_or_default();
    anyhow::Error::new(error).context(Hinted::new(what, hint))
}
