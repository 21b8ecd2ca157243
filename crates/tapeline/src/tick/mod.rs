//! `tapeline tick`: a tickerplant for kdb+ clients.
//!
//! | file | owns |
//! |---|---|
//! | `serve.rs` | the command: the loop between sockets, tickerplant and log |
//! | `config.rs` | its TOML file |
//! | `access.rs` | who may in, and what they may do |
//! | `log.rs` | the kdb+ log of each day |
//! | `zone.rs` | what time it is where the tickerplant's days are |

mod access;
mod config;
mod log;
mod serve;
mod zone;

use std::process::ExitCode;

use clap::{Args, Subcommand};

/// Serve kdb+ clients as a tickerplant does.
#[derive(Debug, Args)]
pub(crate) struct Tick {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve publishers and subscribers of kdb+ from a TOML file
    Serve(serve::Serve),
}

impl Tick {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Serve(serve) => serve.run(),
        }
    }
}
