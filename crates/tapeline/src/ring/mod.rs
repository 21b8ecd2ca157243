//! `tapeline ring`: shared-memory rings from the command line.

mod failures;
mod list;
mod message;
mod publish;
mod reader;
mod remove;
mod sender;
mod source;
mod stat;
mod subscribe;
mod sweep;
mod talk;
mod tally;
mod view;
mod warm_up;

use std::process::ExitCode;

use clap::{Args, Subcommand};

/// Publish to, read from, list and remove shared-memory rings.
#[derive(Debug, Args)]
#[command(after_help = "\
A ring is a file in /dev/shm with one publisher and up to 64 subscribers, in any processes of this \
machine. Nothing is lost: a full ring holds its publisher back until the slowest subscriber has read. \
A broadcast ring is the other choice: its publisher never waits, and who is slow is told what is lost.

Examples:
  tapeline ring pub --name smem --rate 1M                    one million messages a second
  tapeline ring sub --name smem --messages 5M                read five million and print latency percentiles
  tapeline ring ls                                           the rings of this machine
  tapeline ring stat smem --watch                            who reads, and how far behind
  tapeline ring sweep --short                                every section in half a minute
  tapeline ring rm --dead                                    remove what killed publishers left behind")]
pub(crate) struct Ring {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Publish measured messages at a rate, or as fast as the subscribers read
    Pub(publish::Publish),
    /// Read a ring: check sequence and measure latency, or print what comes
    Sub(subscribe::Subscribe),
    /// List the rings of this machine
    Ls(list::List),
    /// Remove rings
    Rm(remove::Remove),
    /// Show a ring's publisher and subscribers
    Stat(stat::Stat),
    /// Run the whole matrix of sizes, rates, rings, receivers and framings, and make a report with plots
    Sweep(sweep::Sweep),
}

impl Ring {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Pub(command) => command.run(),
            Command::Sub(command) => command.run(),
            Command::Ls(command) => command.run(),
            Command::Rm(command) => command.run(),
            Command::Stat(command) => command.run(),
            Command::Sweep(command) => command.run(),
        }
    }
}
