//! `tapeline plant serve`: a plant's hub in a process of its own.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use tapeline_console::{FilePath, Format, Hinted, LogArgs, Stop, log};
use tapeline_hub::Posts;
use tapeline_journal::Durability;
use tapeline_node::Config;
use tapeline_node::hub::{HubConfig, Joining, RunningHub};
use tapeline_node::report::Ready;

use super::config;
use super::reload::Running;
use crate::events;

/// Serve network clients from the ring of another plant process on this host.
#[derive(Debug, Args)]
#[command(
    after_help = "Runs the [hub] of the configuration on the ring that the configuration names. The feeds of the configuration are \
    not used, and items of interactive providers cannot be requested here. Run the plant with --without-hub, or with a configuration without [hub].\n\n\
    Images that are no longer in the ring when this process starts come from the plant, if [plant] has images = \"1GiB\". \
    Without that setting, an item is suspect until its next image is published.\n\n\
    Examples:\n  \
        tapeline plant --config plant.toml --without-hub\n  \
        tapeline plant serve --config plant.toml"
)]
pub(crate) struct PlantServeArgs {
    /// The plant's configuration
    #[arg(long, value_name = "FILE")]
    config: FilePath,
    /// Output format of the summary at the end
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    log: LogArgs,
}

impl PlantServeArgs {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        self.log.begin("serve")?;
        let stop = Stop::on_signals()?;
        let (config, hub) = read(&self.config)?;
        if config.journal.as_ref().is_some_and(|journal| journal.settings.durability == Durability::Synced) {
            let what = "with durability = \"synced\" in [journal] the hub waits for the disk, which a hub in a process of its own cannot see";
            return Err(Hinted::new(what, "run the hub in the plant, or keep the journal \"written\"").into());
        }
        let asked = hub.settings.services.iter().filter(|service| service.on_demand);
        for service in asked.map(|service| &service.name) {
            log::warning(format_args!(
                "service {service} has interactive providers, which only the plant's own hub can ask"
            ));
        }
        let (hub, _) = RunningHub::alone(hub, &events::printed())?
            .join(&config.ring, Joining::Later(stop.flag().into()))?;
        match self.format {
            Format::Json => {
                tapeline_console::output::print_json_line(&ready(Ready::of(&config), &hub))?;
            }
            Format::Table => log::info(format_args!(
                "ring {} is served; clients connect to {}; Ctrl-C ends it",
                config.ring, hub.address
            )),
        }
        let report = hub.end()?;
        match self.format {
            Format::Json => tapeline_console::output::print_json_line(&report)?,
            Format::Table => tapeline_console::output::print(&report.to_string())?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Reads a configuration whose hub runs in another process than its plant.
///
/// # Errors
/// The file cannot be used, or has no `[hub]`.
pub(crate) fn read(file: &Path) -> anyhow::Result<(Config, HubConfig)> {
    let mut config = config::read(file)?;
    let Some(mut hub) = config.hub.take() else {
        let what = format!("{} has no [hub]", file.display());
        return Err(Hinted::new(what, "an empty [hub] serves on 127.0.0.1:14002").into());
    };
    log::time_each_line();
    if hub.web.is_some() || hub.zeromq.is_some() {
        log::note(format_args!(
            "the page, metrics and ZeroMQ are served by the plant's own hub only, not by this process"
        ));
    }
    hub.access.reload = Some(Arc::new(Running::of(file, &config, Some(&hub))?));
    // The plant's sources are in another process, which this one cannot reach.
    hub.settings.posts = Posts::Refuse;
    hub.settings.services.iter_mut().for_each(|service| service.posts = Posts::Refuse);
    Ok((config, hub))
}

/// Adds the address at which the hub's clients connect.
pub(crate) fn ready(ready: Ready, hub: &RunningHub) -> Ready {
    Ready { hub: Some(hub.address), hub_memory_bytes: Some(hub.memory_bytes), ..ready }
}
