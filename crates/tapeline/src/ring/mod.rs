//! `tapeline ring`: shared-memory rings from the command line.

mod list;
mod remove;
mod stat;

use std::process::ExitCode;

use clap::Subcommand;
use tapeline_perf::ring::{Publish, Subscribe, Sweep};

/// Publish to, read from, list and remove shared-memory rings.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
A ring is a file in /dev/shm with one publisher and up to 64 subscribers, in any processes of this \
machine. Nothing is lost: a full ring blocks its publisher until the slowest subscriber has read. \
In a broadcast ring, the publisher never waits, and a slow subscriber is notified of what it lost.

Examples:
  tapeline ring pub --name smem --rate 1M                    one million messages a second
  tapeline ring sub --name smem --messages 5M                read five million and print latency percentiles
  tapeline ring ls                                           the rings of this machine
  tapeline ring stat smem --watch                            subscribers and their lag
  tapeline ring sweep --short                                every section in half a minute
  tapeline ring rm --dead                                    remove the rings of dead publishers")]
pub(crate) enum Ring {
    /// Publish time-stamped messages at a rate, or as fast as the subscribers read
    Pub(Publish),
    /// Read a ring: check sequence numbers and measure latency, or print frames
    Sub(Subscribe),
    /// List the rings of this machine
    Ls(list::List),
    /// Remove rings
    Rm(remove::Remove),
    /// Show a ring's publisher and subscribers
    Stat(stat::RingStat),
    /// Measure a matrix of sizes, rates, rings, receivers and framings, and write a report with plots
    Sweep(Sweep),
}

impl Ring {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        run!(self, Ring: Pub Sub Ls Rm Stat Sweep)
    }
}
