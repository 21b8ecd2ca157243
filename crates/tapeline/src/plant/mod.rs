//! `tapeline plant`: the plant itself, and the readers of its ring.

mod check;
pub(crate) mod config;
mod follow;
pub(crate) mod measure;
mod passwd;
pub(crate) mod relay;
pub(crate) mod reload;
pub(crate) mod report;
mod resumed;
mod run;
pub(crate) mod serve;
mod simulated;
mod supervised;
mod tally;
mod watch;

pub(crate) use self::watch::{is_of_message, status_text};

use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};

/// `tapeline plant --config FILE`, or one of its readers.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    arg_required_else_help = true,
    after_help = "Examples:\n  \
        tapeline plant sample > plant.toml     a commented configuration to start from\n  \
        tapeline plant check plant.toml        all its faults, and the parts that would run\n  \
        tapeline plant check plant.toml --running tapeline   what a reload (SIGHUP) would apply and refuse\n  \
        tapeline plant --config plant.toml     run it until Ctrl-C\n  \
        tapeline plant --config plant.toml --log json   with a log for machines\n  \
        tapeline plant watch AAPL MSFT         its quotes, on the terminal\n  \
        tapeline plant watch | jq .            the same as JSON lines\n  \
        tapeline plant watch --journal journal --from-sequence 1001 | cat    each tick from 1001 on, exactly once"
)]
pub(crate) struct Plant {
    #[command(subcommand)]
    command: Option<PlantCommand>,
    #[command(flatten)]
    run: Option<run::RunArgs>,
}

#[derive(Debug, Subcommand)]
enum PlantCommand {
    /// Watch quotes and trades live: a table on a terminal, JSON lines in a pipe
    Watch(watch::PlantWatchArgs),
    /// Check that no tick is missing, and measure the latency of every hop
    Measure(measure::MeasureArgs),
    /// Count the published ticks, rebuild the order books from them, and print both at the end
    ///
    /// Needs a plant with publish = "every-message", whose ticks carry the feed's own messages.
    Tally(tally::TallyArgs),
    Relay(relay::RelayArgs),
    /// Serve network clients from the ring of another plant process on this host
    Serve(serve::PlantServeArgs),
    /// Print a commented configuration
    Sample,
    /// Check a configuration and the files that it names: list every fault, and the parts that would run
    Check(check::CheckArgs),
    /// Set a hub user's password, typed at the terminal or read from standard input
    Passwd(passwd::UserArgs),
    /// Create a token for a hub user and print it; only its hash is stored
    Token(passwd::UserArgs),
}

impl Plant {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let Some(command) = self.command else {
            return self.run.context("--config FILE is missing")?.run();
        };
        match command {
            PlantCommand::Watch(command) => command.run(),
            PlantCommand::Measure(command) => command.run(),
            PlantCommand::Tally(command) => command.run(),
            PlantCommand::Relay(command) => command.run(),
            PlantCommand::Serve(command) => command.run(),
            PlantCommand::Sample => {
                tapeline_console::output::print(config::SAMPLE)?;
                Ok(ExitCode::SUCCESS)
            }
            PlantCommand::Check(command) => command.run(),
            PlantCommand::Passwd(user) => user.set_password(),
            PlantCommand::Token(user) => user.create_token(),
        }
    }
}
