//! `tapeline bridge`: what plants on several hosts need beside their configuration.

mod witness;

use std::process::ExitCode;

use clap::Subcommand;

/// Measure the paths between plants, and decide which of two leads.
#[derive(Debug, Subcommand)]
pub(crate) enum Bridge {
    Probe(Box<tapeline_perf::probe::Probe>),
    Witness(witness::WitnessArgs),
}

impl Bridge {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        run!(self, Bridge: Probe Witness)
    }
}
