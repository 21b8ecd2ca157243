//! A hub for the past: what a journal has is published to a ring again, and clients have it as a live service.

use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};

use tapeline_console::output::{self, Format};
use tapeline_hub::{Late, Unknown};
use tapeline_measure::figures::thousands;
use tapeline_node::Config;
use tapeline_node::hub::{HubAlone, HubReport, Joining};
use tapeline_node::report::Ready;
use tapeline_ring::{Name, Publisher};

use super::serve;
use crate::events;

/// The hub of a configuration, on a ring that this process fills.
pub(crate) struct HistoryHub {
    config: Config,
    hub: HubAlone,
    /// The services that it has, by their numbers.
    services: Vec<u16>,
    max_items: usize,
    /// What is published is before what clients are to see, until this is dropped.
    past: Option<SyncSender<()>>,
}

impl HistoryHub {
    /// Opens the port that the configuration names.
    ///
    /// # Errors
    /// The file cannot be used, has no `[hub]`, or the port cannot be had.
    pub(crate) fn open(file: &Path) -> anyhow::Result<Self> {
        let (config, mut hub) = serve::read(file)?;
        let settings = &mut hub.settings;
        // What is not there yet may come.
        (settings.unknown, settings.wait_timeout_ms) = (Unknown::Wait, 0);
        for service in &mut settings.services {
            // Nobody is asked for anything: what comes is what the journal has, and it comes once.
            (service.on_demand, service.is_cached) = (false, true);
            (service.unknown, service.late) = (Unknown::Wait, Late::Suspect);
        }
        let of_providers = settings.services.iter().map(|service| service.id);
        let services = of_providers.chain([settings.service_id]).collect();
        let max_items = settings.max_items;
        let hub = HubAlone::start(hub, &events::printed())?;
        Ok(Self { config, hub, services, max_items, past: None })
    }

    /// The ring that the configuration names.
    pub(crate) fn ring(&self) -> &Name {
        &self.config.ring
    }

    /// The ring is there, and nothing on it yet: the hub takes what comes, and lets nobody in before it is [told](Self::let_in).
    pub(crate) fn join(self, name: &Name, ring: &mut Publisher) -> anyhow::Result<Self> {
        let (past, is_past) = sync_channel(1);
        let (hub, seat) = self.hub.join(name, Joining::Past(is_past))?;
        ring.exempt(seat);
        Ok(Self { hub, past: Some(past), ..self })
    }

    /// Clients are let in, behind what has been published and flushed.
    pub(crate) fn let_in(&mut self) {
        self.past = None;
    }

    /// Items that the clients who are there have asked for, as of a second ago at most.
    pub(crate) fn requests(&mut self) -> u64 {
        self.hub.requests()
    }

    /// Whether it has items of this service.
    pub(crate) fn serves(&self, service: u16) -> bool {
        self.services.contains(&service)
    }

    /// Items that it takes at most.
    pub(crate) const fn max_items(&self) -> usize {
        self.max_items
    }

    /// Whether it has ended, though the ring has not.
    pub(crate) fn has_ended(&self) -> bool {
        self.hub.has_ended()
    }

    /// Says where clients connect.
    pub(crate) fn say_ready(&self, ring: &Name, before: u64, format: Format) -> anyhow::Result<()> {
        if format == Format::Json {
            let ready = Ready::of(&self.config);
            return output::print_json_line(&Ready {
                ready: ring.to_string(),
                ..serve::ready(ready, &self.hub)
            });
        }
        let images = match before {
            0 => String::new(),
            before => format!(", with images of {} ticks before", thousands(before)),
        };
        anstream::eprintln!(
            "the journal is served{images}; clients connect to {}; Ctrl-C ends it",
            self.hub.address()
        );
        Ok(())
    }

    /// The ring has ended: waits until the clients have what they are owed, or the time for that is over.
    pub(crate) fn end(self) -> anyhow::Result<HubReport> {
        drop(self.past);
        Ok(self.hub.end()?)
    }
}
