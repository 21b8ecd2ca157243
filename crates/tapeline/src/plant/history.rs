//! A hub for past data: a journal is published to a ring again, and clients receive it as a live service.

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

/// The hub of a configuration, on a ring that this process writes.
pub(crate) struct HistoryHub {
    config: Config,
    hub: HubAlone,
    /// The numbers of the services that the hub has.
    services: Vec<u16>,
    max_items: usize,
    /// Until this is dropped, published ticks precede the part that clients are to see.
    past: Option<SyncSender<()>>,
}

impl HistoryHub {
    /// Opens the port that the configuration names.
    ///
    /// # Errors
    /// The file cannot be used or has no `[hub]`, or the port cannot be opened.
    pub(crate) fn open(file: &Path) -> anyhow::Result<Self> {
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
        let services = of_providers.chain([settings.service_id]).collect();
        let max_items = settings.max_items;
        let hub = HubAlone::start(hub, &events::printed())?;
        Ok(Self { config, hub, services, max_items, past: None })
    }

    /// The ring that the configuration names.
    pub(crate) fn ring(&self) -> &Name {
        &self.config.ring
    }

    /// Joins a ring that exists and is still empty: the hub reads it, but admits no clients before
    /// [`let_in`](Self::let_in).
    pub(crate) fn join(self, name: &Name, ring: &mut Publisher) -> anyhow::Result<Self> {
        let (past, is_past) = sync_channel(1);
        let (hub, seat) = self.hub.join(name, Joining::Past(is_past))?;
        ring.exempt(seat);
        Ok(Self { hub, past: Some(past), ..self })
    }

    /// Admits clients, after everything that has been published and flushed.
    pub(crate) fn let_in(&mut self) {
        self.past = None;
    }

    /// Number of items that connected clients have requested, at most a second old.
    pub(crate) fn requests(&mut self) -> u64 {
        self.hub.requests()
    }

    /// Whether the hub has items of this service.
    pub(crate) fn serves(&self, service: u16) -> bool {
        self.services.contains(&service)
    }

    /// Maximum number of items of the hub.
    pub(crate) const fn max_items(&self) -> usize {
        self.max_items
    }

    /// Whether the hub has ended although the ring has not.
    pub(crate) fn has_ended(&self) -> bool {
        self.hub.has_ended()
    }

    /// Reports where clients connect.
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

    /// Ends the hub after the ring: waits until clients have received their queued messages, or the time limit is
    /// over.
    pub(crate) fn end(self) -> anyhow::Result<HubReport> {
        drop(self.past);
        Ok(self.hub.end()?)
    }
}
