//! `tapeline plant serve`: a plant's hub in a process of its own.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::config;
use super::counting::telling;
use super::hub::{Joining, RunningHub};
use super::report::Ready;
use crate::failure::Hinted;
use crate::output::Format;
use crate::stop::Stop;

/// Serve clients from the ring of a plant that runs elsewhere on this host.
#[derive(Debug, Args)]
#[command(
    after_help = "The [hub] of the configuration is served, from the ring that it names; its feeds are not touched. \
    It begins with the oldest tick that the ring still holds: an item is there once its image passes. \
    Start it before the plant's first tick for all of them."
)]
pub(crate) struct ServeArgs {
    /// The plant's configuration
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// How to print what was done, at the end
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl ServeArgs {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals()?;
        let mut config = config::read(&self.config)?;
        let Some(hub) = config.hub.take() else {
            let what = format!("{} has no [hub]", self.config.display());
            return Err(Hinted::new(what, "an empty [hub] serves on 127.0.0.1:14002").into());
        };
        let (hub, _) = RunningHub::start(hub, None, telling().0)?.join(&config.ring, Joining::Later(stop))?;
        match self.format {
            Format::Json => {
                crate::output::print_json_line(&Ready::of(&config, Some(&hub), None, None, None))?;
            }
            Format::Table => anstream::eprintln!(
                "ring {} is served; clients connect to {}; Ctrl-C ends it",
                config.ring,
                hub.address
            ),
        }
        let report = hub.end()?;
        match self.format {
            Format::Json => crate::output::print_json_line(&report)?,
            Format::Table => crate::output::print(&report.to_string())?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
