//! `tapeline journal`: reads what a plant has published.
//!
//! | file | owns |
//! |---|---|
//! | `place.rs` | which journal, and where in it |
//! | `backup.rs` | a copy, also while a plant writes |
//! | `verify.rs` | every checksum and sequence: counts, holes, verdict |
//! | `inspect.rs` | segments, and ticks from a place on |
//! | `ending.rs` | reports about a torn end |
//! | `export.rs` and its folder | ticks as rows of tables, in files for other programs |
//! | `import.rs` and its folder | rows of kdb+ logs as ticks of a journal |
//! | `replay.rs` and its folder | onto a ring, at any speed, then live ticks; to clients; onto UDP |

mod backup;
mod ending;
mod export;
mod import;
mod inspect;
mod place;
mod replay;
mod verify;

use std::process::ExitCode;

use anyhow::Context;
use clap::Subcommand;
use tapeline_console::{Hinted, log};
use tapeline_journal::Record;
use tapeline_plant::tick::Tick;

/// Verify, back up, inspect, export, import and replay a plant's journal.
#[derive(Debug, Subcommand)]
pub(crate) enum Journal {
    /// Read a whole journal, and check every checksum and sequence number
    Verify(verify::Verify),
    Backup(backup::Backup),
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
        run!(self, Journal: Verify Backup Inspect Export Import Replay)
    }
}

/// Adds the context and a hint to a journal error.
pub(crate) fn hinted(what: &str, error: tapeline_journal::Error) -> anyhow::Error {
    let hint = error.hint().unwrap_or_default();
    anyhow::Error::new(error).context(Hinted::new(what, hint))
}

/// The error if a journal cannot be read to its end.
pub(crate) fn broken(error: tapeline_journal::Error) -> anyhow::Error {
    hinted("the journal cannot be read on", error)
}

/// Warns of ticks that the journal does not have; returns their number.
pub(crate) fn warn_of_missing(from: u64, to: u64) -> u64 {
    log::warning(format_args!("ticks {from} to {to} are missing in the journal"));
    to - from + 1
}

fn tick_of<'a>(record: &Record<'a>) -> anyhow::Result<Tick<'a>> {
    Tick::parse(record.body).with_context(|| format!("record {} of the journal is not a tick", record.seq))
}
