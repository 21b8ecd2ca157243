//! Serves a journal as a live service: the hub of a configuration, on the replay's ring.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};

use anyhow::Context;
use tapeline_console::{Format, Hinted, log, output, paths};
use tapeline_hub::{Late, Unknown};
use tapeline_measure::figures::thousands;
use tapeline_node::Config;
use tapeline_node::hub::{HubReport, Joining, RunningHub};
use tapeline_node::report::Ready;
use tapeline_plant::tick::Tick;
use tapeline_ring::{Name, Publisher};

use super::numbers::{Numbers, TooMany};
use crate::events;
use crate::plant::serve;

/// The hub, on a ring that this process writes, and the ticks prepared for it.
pub(super) struct Service {
    pub(super) config: Config,
    pub(super) hub: RunningHub,
    /// Until this is dropped, published ticks precede the part that clients are to see.
    past: Option<SyncSender<()>>,
    file: PathBuf,
    numbers: Numbers,
    /// The tick with its item's number in the replay.
    frame: Vec<u8>,
    /// The numbers of the services that the hub has.
    served: Vec<u16>,
    /// Numbers of services that occur in the journal but not in the hub.
    not_served: BTreeSet<u16>,
}

impl Service {
    /// Opens the port that the configuration names.
    ///
    /// # Errors
    /// The file cannot be used or has no `[hub]`, or the port cannot be opened.
    pub(super) fn open(file: &Path) -> anyhow::Result<Self> {
        let (config, mut hub) = serve::read(file)?;
        let settings = &mut hub.settings;
        // Items that do not exist yet may still be published.
        (settings.unknown, settings.wait_timeout_ms) = (Unknown::Wait, 0);
        for service in &mut settings.services {
            // Nothing is requested from providers: all data comes from the journal, once.
            (service.on_demand, service.is_cached) = (false, true);
            (service.unknown, service.late) = (Unknown::Wait, Late::Suspect);
        }
        let of_providers = settings.services.iter().map(|service| service.id);
        Ok(Self {
            served: of_providers.chain([settings.service_id]).collect(),
            numbers: Numbers::new(settings.max_items),
            hub: RunningHub::alone(hub, &events::printed())?,
            config,
            past: None,
            file: file.to_owned(),
            frame: Vec::new(),
            not_served: BTreeSet::new(),
        })
    }

    /// Joins a ring that exists and is still empty: the hub reads it, but admits no clients before
    /// [`let_in`](Self::let_in).
    pub(super) fn join(self, name: &Name, ring: &mut Publisher) -> anyhow::Result<Self> {
        let (past, is_past) = sync_channel(1);
        let (hub, seat) = self.hub.join(name, Joining::Past(is_past))?;
        ring.exempt(seat);
        Ok(Self { hub, past: Some(past), ..self })
    }

    /// Admits clients, after everything that has been published and flushed.
    pub(super) fn let_in(&mut self) {
        self.past = None;
    }

    /// Reports where clients connect.
    pub(super) fn say_ready(&self, ring: &Name, before: u64, format: Format) -> anyhow::Result<()> {
        if format == Format::Json {
            let ready = serve::ready(Ready::of(&self.config), &self.hub);
            return output::print_json_line(&Ready { ready: ring.to_string(), ..ready });
        }
        let images = match before {
            0 => String::new(),
            before => format!(", with images of {} ticks before", thousands(before)),
        };
        let address = self.hub.address;
        log::info(format_args!(
            "the journal is served{images}; clients connect to {address}; Ctrl-C ends it"
        ));
        Ok(())
    }

    /// Prepares a tick of the journal for the hub.
    ///
    /// # Errors
    /// The frame is not a tick, or there are more items than the hub's limit.
    pub(super) fn tick<'a>(&'a mut self, frame: &'a [u8]) -> anyhow::Result<&'a [u8]> {
        let mut tick = Tick::parse(frame).context("the journal holds something that is not a tick")?;
        let service = tick.header.service;
        let file = || paths::shown(&self.file);
        // Report each service once; there are at most 65,536.
        if !self.served.contains(&service) && self.not_served.insert(service) {
            log::warning_with(
                format_args!(
                    "the journal has ticks of service {service}, which {} does not name: they are not served",
                    file()
                ),
                "the plant's own configuration names it, with service_id in its [hub] and id in each [[service]]",
            );
        }
        let item = self.numbers.of(&tick).map_err(|TooMany| {
            let what = format!("the journal has more items than {} allows", file());
            Hinted::new(what, "raise max_items in its [plant]")
        })?;
        if item == tick.header.item {
            return Ok(frame);
        }
        tick.header.item = item;
        self.frame.clear();
        tick.write(&mut self.frame);
        Ok(&self.frame)
    }

    /// Ends the hub after the ring: waits until clients have received their queued messages, or the time limit is
    /// over.
    pub(super) fn end(self) -> anyhow::Result<HubReport> {
        drop(self.past);
        Ok(self.hub.end()?)
    }
}
