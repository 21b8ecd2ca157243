//! `tapeline tick`: a tickerplant for kdb+ clients. The benchmark, `tapeline tick bench`, is `tapeline_perf::tick`.
//!
//! | file | owns |
//! |---|---|
//! | `serve.rs` | the command |
//! | `config.rs` | its TOML file |
//! | `access.rs` | that file's users and their rights |

mod access;
pub(crate) mod config;
mod serve;

use std::process::ExitCode;

use clap::Subcommand;
use tapeline_perf::tick::{BenchArgs, Part};

/// Serve kdb+ clients as a tickerplant, and measure tickerplants.
#[derive(Debug, Subcommand)]
pub(crate) enum Tick {
    /// Serve kdb+ publishers and subscribers, configured by a TOML file
    Serve(serve::Serve),
    /// Measure a tickerplant's latency at several rates, from the due times of updates, and compare it with a bare
    /// relay
    Bench(Box<BenchArgs>),
    #[command(subcommand, hide = true)]
    Part(Part),
}

impl Tick {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        run!(self, Tick: Serve Bench Part)
    }
}
