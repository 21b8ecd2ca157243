//! `tapeline tick serve`: a tickerplant by itself, with the rows of its publishers.

use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use tapeline_console::{FilePath, Format, LogArgs, Stop, log, output, stop};
use tapeline_node::tick::server::Server;

use super::config;
use crate::events;

/// Serve kdb+ publishers and subscribers, configured by a TOML file.
#[derive(Debug, Args)]
#[command(
    after_help = "Implements a kdb+ tickerplant: `.u.sub`, `.u.upd`, `.u.end`, and a log for each day that `-11!` replays. \
    Publishers, RDBs and Python clients connect to this port instead of `tick.q`'s. Nothing that they send is evaluated.\n\n\
    Examples:\n  \
        tapeline tick serve --config tick.toml\n  \
        q tick/r.q localhost:5010"
)]
pub(crate) struct Serve {
    /// Configuration: tables, ports, log and users
    #[arg(long, value_name = "FILE")]
    config: FilePath,
    /// Pin the server to this core
    #[arg(long, value_name = "CORE")]
    cpu: Option<usize>,
    /// Output format of the listening ports and the summary
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    log: LogArgs,
}

impl Serve {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        self.log.begin("tick")?;
        let stop = Stop::on_signals()?;
        stop::outlive_file_limits()?;
        let config = config::read(&self.config)?;
        log::time_each_line();
        // The thread that checks passwords exists by now, so it is not pinned.
        let mut server = Server::open(config, "the configuration", None, &events::printed())?;
        if let Some(core) = self.cpu {
            tapeline_measure::pin(core).with_context(|| format!("cannot run on core {core}"))?;
        }
        tell(&server, self.format)?;
        while !stop.requested() {
            server.turn(server.nap())?;
        }
        let report = server.end()?;
        match self.format {
            Format::Json => output::print_json_line(&report)?,
            Format::Table => output::print(&report.to_string())?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn tell(server: &Server, format: Format) -> anyhow::Result<()> {
    let listening = server.listening();
    if format == Format::Json {
        return output::print_json_line(&listening);
    }
    log::info(format_args!("{listening}; Ctrl-C ends it"));
    if server.is_open() {
        log::warning(format_args!(
            "clients need no password: whoever reaches the port can publish; [access] sets users"
        ));
    }
    Ok(())
}
