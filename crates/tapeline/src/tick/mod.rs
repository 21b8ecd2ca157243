//! `tapeline tick`: a tickerplant for kdb+ clients, and a benchmark of tickerplants.
//!
//! | file | owns |
//! |---|---|
//! | `serve.rs` | the command |
//! | `config.rs` | its TOML file |
//! | `access.rs` | that file's users and their rights |
//! | `bench` | the benchmark: latency by rate, compared with a bare relay |

mod access;
mod bench;
pub(crate) mod config;
mod serve;

use std::process::ExitCode;

use clap::{Args, Subcommand};

/// Serve kdb+ clients as a tickerplant does, and measure tickerplants.
#[derive(Debug, Args)]
pub(crate) struct Tick {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve kdb+ publishers and subscribers, as a TOML file configures
    Serve(serve::Serve),
    /// Measure a tickerplant: latency by rate, from when updates were due, compared with a bare relay
    Bench(Box<bench::BenchArgs>),
    #[command(subcommand, hide = true)]
    Part(bench::Part),
}

impl Tick {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Serve(serve) => serve.run(),
            Command::Bench(bench) => bench.run(),
            Command::Part(part) => part.run(),
        }
    }
}
