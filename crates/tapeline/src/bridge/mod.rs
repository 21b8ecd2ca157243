//! `tapeline bridge`: what plants on several hosts need beside their configuration.

use std::process::ExitCode;

use clap::Subcommand;

/// Measure the paths between plants.
#[derive(Debug, Subcommand)]
pub(crate) enum Bridge {
    Probe(tapeline_perf::probe::Probe),
}

impl Bridge {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        run!(self, Bridge: Probe)
    }
}
