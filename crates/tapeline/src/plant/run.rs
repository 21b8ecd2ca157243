//! `tapeline plant --config FILE`: runs the plant that a file describes.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use tapeline_console::log::LogFormat;
use tapeline_console::{FilePath, Format, LogArgs, Stop, log, stop};
use tapeline_node::access::Reload;
use tapeline_node::bridge::BridgeReady;
use tapeline_node::lease::{LeaseConfig, RunningLease};
use tapeline_node::report::{PlantReport, Ready};
use tapeline_node::{Config, Ended, Plant};
use tapeline_plant::Refused;

use super::reload::Running;
use super::simulated::SimulatedExchange;
use super::supervised::{self, Heartbeat};
use super::{config, report};
use crate::events;

/// Run the plant that a TOML file describes.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The plant's configuration; `tapeline plant sample` prints one to start from
    #[arg(long, value_name = "FILE")]
    pub(crate) config: FilePath,
    /// End when every feed has ended its session and has sent no message after that end for its `stale_after`
    #[arg(long)]
    until_end_of_session: bool,
    /// Run without the hub, its page and ZeroMQ; `tapeline plant serve` serves the clients
    #[arg(long)]
    without_hub: bool,
    /// Take the lease although the last leader had ticks that this plant has not: they are lost for this plant and those below
    #[arg(long)]
    take_lease: bool,
    /// Output format of the summary at the end
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    // As in `LogArgs`: clap takes no options inside options that may be absent.
    /// Format of the log on standard error [default: text, or the variable TAPELINE_LOG]
    #[arg(long, value_enum, value_name = "FORMAT")]
    log: Option<LogFormat>,
}

impl RunArgs {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        LogArgs { log: self.log }.begin("plant")?;
        let stop = Stop::on_signals()?;
        stop::outlive_file_limits()?;
        // Kept from one ring to the next, and given back at the end.
        let mut lease = None;
        loop {
            match self.run_once(&stop, &mut lease)? {
                Some(code) => return Ok(code),
                None if stop.requested() => return Ok(ExitCode::SUCCESS),
                // Another sequence begins, of this plant or of the one above: a ring of its own for each.
                None => {}
            }
        }
    }

    /// Runs the plant until its end; `None` if it must begin again, with a new ring, because the plant above has, or the other part is its now.
    fn run_once(&self, stop: &Stop, lease: &mut Option<RunningLease>) -> anyhow::Result<Option<ExitCode>> {
        let (mut config, mut simulated) = config::read_with_exchanges(&self.config)?;
        log::time_each_line();
        if self.without_hub {
            config.hub = None;
        }
        self.take_part(&mut config, lease, stop)?;
        if config.feeds.is_empty() {
            simulated.clear();
        }
        let journal = config.journal.as_ref().map(|journal| journal.folder.clone());
        let running = Arc::new(Running::of(&self.config, &config, config.hub.as_ref())?);
        // The hub reloads on its thread for passwords. Without a hub nobody else listens for SIGHUP.
        let reload = match &mut config.hub {
            Some(hub) => {
                hub.access.reload = Some(Arc::clone(&running) as Arc<dyn Reload>);
                None
            }
            None => Some(Arc::clone(&running)),
        };
        let mut plant = Plant::open(config, &stop.flag().into(), &events::printed())?;
        let shown = running.show_of(&plant.config().ring);
        reload.as_deref().map(Reload::begin).transpose()?;
        let exchanges: anyhow::Result<Vec<_>> = simulated.into_iter().map(SimulatedExchange::start).collect();
        let (mut exchanges, mut heartbeat) = (exchanges?, Heartbeat::of(plant.liveness()));
        let stopped = stop.clone();
        plant.each_second(move || {
            if let Some(reload) = reload.as_ref().filter(|reload| reload.is_requested()) {
                let reload = Arc::clone(reload);
                // Files can be slow, and the plant's thread does not wait for them.
                std::thread::spawn(move || reload.read());
            }
            // At the end, the last message to the service manager says so.
            if !stopped.requested() {
                exchanges.iter_mut().for_each(SimulatedExchange::turn);
                heartbeat.iter_mut().for_each(Heartbeat::beat);
            }
        });
        let stopped = stop.clone();
        // A plant that begins again does not end for the service manager.
        plant.at_end(move || {
            if stopped.requested() {
                supervised::stopping();
            }
        });
        self.say_ready(&plant)?;
        supervised::ready();
        let Ended { report, refused, failed } = plant.run(self.until_end_of_session);
        drop(shown);
        self.say_totals(&report)?;
        failed.map_or(Ok(()), Err)?;
        let code = match refused {
            Some(Refused::Resequenced | Refused::LeaseLost | Refused::LeaseTaken) => return Ok(None),
            Some(Refused::Unconnected) => {
                // Without its journal this plant must not number.
                lease.iter().for_each(RunningLease::give_back);
                journal.as_deref().map(set_aside).transpose()?;
                return Ok(None);
            }
            None if !report.files_are_whole() => Ok(ExitCode::FAILURE),
            // Readers were notified of the gaps.
            None if report.is_anything_missing() => Ok(ExitCode::from(3)),
            None => Ok(ExitCode::SUCCESS),
            // The user asked to stop while a subscriber blocked the ring: not all received messages were published.
            Some(Refused::Stopping) if stop.requested() => Ok(ExitCode::from(3)),
            Some(refused) => Err(refused).context("the plant cannot continue"),
        };
        code.map(Some)
    }

    fn say_totals(&self, report: &PlantReport) -> anyhow::Result<()> {
        match self.format {
            Format::Json => tapeline_console::output::print_json_line(report)?,
            Format::Table => report::print(report)?,
        }
        if report.kernel_drops() > 0 {
            log::warning(format_args!(
                "the kernel dropped {} datagrams because a socket's buffer was full; \
                 messages that no other line carried are counted as missing only if a later message revealed the gap",
                report.kernel_drops()
            ));
        }
        Ok(())
    }

    /// Lets the lease, if there is one, decide whether the plant leads or follows.
    fn take_part(
        &self,
        config: &mut Config,
        lease: &mut Option<RunningLease>,
        stop: &Stop,
    ) -> anyhow::Result<()> {
        let Some(of_lease) = &config.lease else {
            anyhow::ensure!(!self.take_lease, "--take-lease is set, and the plant has no [lease]");
            return Ok(());
        };
        let (Some(bridge), Some(journal)) = (&config.bridge, &config.journal) else { return Ok(()) };
        if lease.is_none() {
            let of_lease = LeaseConfig { takes: self.take_lease, ..of_lease.clone() };
            let events = events::printed();
            *lease = Some(RunningLease::start(&of_lease, bridge.plant, &journal.folder, &events)?);
        }
        if let Some(lease) = lease {
            lease.wait(&stop.flag().into());
            lease.assign(config);
        }
        Ok(())
    }

    fn say_ready(&self, plant: &Plant) -> anyhow::Result<()> {
        match self.format {
            Format::Json => return tapeline_console::output::print_json_line(plant.ready()),
            Format::Table => eprintln_ready(plant.config(), plant.ready()),
        }
        Ok(())
    }
}

/// Moves a journal aside that the plant above does not continue.
fn set_aside(journal: &Path) -> anyhow::Result<()> {
    let aside = tapeline_node::upstream::set_aside(journal)?;
    log::note(format_args!(
        "the journal was moved to {}: the ticks that follow are not those behind its last",
        aside.display()
    ));
    Ok(())
}

fn eprintln_ready(config: &Config, ready: &Ready) {
    let lines: usize = config.feeds.iter().map(|feed| feed.lines.len()).sum();
    let files = config.feeds.iter().filter(|feed| feed.file.is_some()).count();
    log::info(format_args!(
        "plant {} publishes to ring {}; {} feed(s) on {lines} line(s) and {files} file(s); Ctrl-C ends it",
        config.name,
        config.ring,
        config.feeds.len()
    ));
    if let Some((address, bytes)) = ready.hub.zip(ready.hub_memory_bytes) {
        let most = bytes >> 20;
        log::info(format_args!(
            "clients connect to {address}; by its limits the hub takes {most} MiB at most"
        ));
    }
    if let Some(address) = ready.publishers {
        log::info(format_args!("non-interactive providers connect to {address}"));
    }
    if let Some(page) = ready.web {
        log::info(format_args!("the live page, metrics and health: http://{page}/, /metrics, /health"));
    }
    if let Some(address) = ready.zeromq {
        log::info(format_args!("subscribers of ZeroMQ connect to tcp://{address}"));
    }
    if let Some(kdb) = &ready.kdb {
        log::info(kdb);
    }
    if let Some(BridgeReady { session, requests, catch_up, tcp_lines }) = &ready.bridge {
        let follow = tcp_lines.iter().map(|address| format!(", follow at {address}")).collect::<String>();
        log::info(format_args!(
            "bridge: session {session}; plants below send re-requests to {requests}, catch up at {catch_up}{follow}"
        ));
    }
    if let Some(upstream) = &config.upstream {
        log::info(format_args!(
            "the ticks are those of plant {} at {}",
            upstream.follower.plant,
            upstream.servers()
        ));
    }
}
