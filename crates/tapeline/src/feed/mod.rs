//! `tapeline feed`: replay, inspect or simulate a market feed.
//!
//! | file | owns |
//! |---|---|
//! | `lines.rs` | where datagrams go: one or two lines, back pressure, batches |
//! | `replay.rs` | a capture onto the network |
//! | `simulate.rs`, `generator.rs`, `sending.rs` | the simulated exchange onto the network or into a file: options, what is due, sending it |
//! | `inspect.rs`, `report.rs` | what captures hold: reading them, and showing what was found |
//! | `tally.rs`, `itch_report.rs` | adding up messages, and showing what they amount to |

mod generator;
mod inspect;
mod itch_report;
mod lines;
mod replay;
mod report;
mod sending;
mod simulate;
mod tally;

use std::process::ExitCode;

use clap::{Args, Subcommand};

pub(crate) use self::itch_report::ItchReport;
pub(crate) use self::tally::Tally;

/// Replay, inspect or simulate a market feed.
#[derive(Debug, Args)]
pub(crate) struct Feed {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Send a capture's datagrams onto multicast or unicast UDP, or pack a file of messages and send that
    Replay(replay::Replay),
    /// Show what captures hold: message types, sequences, gaps, symbols, books
    Inspect(inspect::Inspect),
    /// Generate a plausible exchange day at any rate, on one or two lines or into a file
    Simulate(simulate::Simulate),
}

impl Feed {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Replay(replay) => replay.run(),
            Command::Inspect(inspect) => inspect.run(),
            Command::Simulate(simulate) => simulate.run(),
        }
    }
}
