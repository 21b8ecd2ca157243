//! `tapeline tick`: a tickerplant for kdb+ clients, and how quick one is.
//!
//! | file | owns |
//! |---|---|
//! | `serve.rs` | the command |
//! | `server.rs` | the loop between sockets, tickerplant and log, for a plant's tickerplant too |
//! | `turns.rs` | how much of a turn, and of memory for what arrives, clients may take |
//! | `config.rs` | its TOML file |
//! | `access.rs` | who may in, and what they may do |
//! | `log.rs` | the kdb+ log of each day |
//! | `zone.rs` | what time it is where the tickerplant's days are |
//! | `bench` | the suite: latency by rate, beside a bare relay |

mod access;
mod bench;
pub(crate) mod config;
mod log;
mod serve;
pub(crate) mod server;
mod turns;
pub(crate) mod zone;

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
