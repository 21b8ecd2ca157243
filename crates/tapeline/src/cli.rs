//! The top level of the command line; each subcommand is described in its own folder.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// An open market-data plant, and the tools that measure and verify it.
#[derive(Debug, Parser)]
#[command(name = "tapeline", version, propagate_version = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the whole data path on this machine (simulated exchange, plant, subscribers, clients), and print a latency
    /// table
    Demo(crate::demo::Demo),
    /// Run the plant from a TOML file, or watch what it publishes
    Plant(crate::plant::Plant),
    /// Show running plants: feeds, services, sessions and their queues, latency
    Stat(crate::stat::Stat),
    /// Replay, inspect or simulate a market feed
    #[command(subcommand)]
    Feed(crate::feed::Feed),
    /// Publish to, read from, list and remove shared-memory rings
    #[command(subcommand)]
    Ring(crate::ring::Ring),
    /// Measure the paths between plants, and decide which of two leads
    #[command(subcommand)]
    Bridge(crate::bridge::Bridge),
    /// Verify, back up, inspect, export, import and replay a plant's journal
    #[command(subcommand)]
    Journal(crate::journal::Journal),
    /// Hold back datagrams of a live feed, release them all at once, and measure the recovery time
    Burst(tapeline_perf::burst::Burst),
    /// Consume, provide and decode Open Message Model data, over RSSL
    #[command(subcommand)]
    Omm(Box<crate::omm::Omm>),
    /// Inspect the logs of a kdb+ tickerplant
    #[command(subcommand)]
    Kdb(crate::kdb::Kdb),
    /// Serve kdb+ clients as a tickerplant, and measure tickerplants
    #[command(subcommand)]
    Tick(crate::tick::Tick),
    /// Make a report page from run folders: plots, comparison, regression gate
    Report(tapeline_perf::report::Report),
    /// Measure the noise floor of this machine's cores
    Jitter(tapeline_perf::jitter::Jitter),
    /// Check this machine's settings, and show the command that fixes each setting that costs latency
    Doctor(tapeline_perf::doctor::Doctor),
    /// Print completions for bash, zsh or fish
    Completions(crate::shell::Completions),
    /// Write pages for man into a folder
    Man(crate::shell::Man),
}

impl Command {
    /// Runs the subcommand to its end and returns the exit status of the process.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        run!(self, Command: Demo Plant Stat Feed Ring Bridge Journal Burst Omm Kdb Tick Report Jitter Doctor Completions Man)
    }
}
