//! To come.

use std::process::ExitCode;

use clap::Args;

/// To come.
#[derive(Debug, Args)]
pub(crate) struct Demo {}

impl Demo {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        anyhow::bail!("not built yet")
    }
}
