//! Serves a journal as a live service: the hub of a configuration, on the replay's ring.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context;
use tapeline_console::failure::Hinted;
use tapeline_console::paths;
use tapeline_plant::tick::Tick;
use tapeline_ring::{Name, Publisher};

use super::numbers::{Numbers, TooMany};
use crate::plant::history::HistoryHub;

/// The hub, and the ticks prepared for it.
pub(super) struct Service {
    pub(super) hub: HistoryHub,
    file: PathBuf,
    numbers: Numbers,
    /// The tick with its item's number in the replay.
    frame: Vec<u8>,
    /// Numbers of services that occur in the journal but not in the hub.
    not_served: BTreeSet<u16>,
}

impl Service {
    /// Opens the hub's port.
    pub(super) fn open(file: &Path) -> anyhow::Result<Self> {
        let hub = HistoryHub::open(file)?;
        let numbers = Numbers::new(hub.max_items());
        Ok(Self { hub, file: file.to_owned(), numbers, frame: Vec::new(), not_served: BTreeSet::new() })
    }

    /// Joins a ring that exists and is still empty.
    pub(super) fn join(self, name: &Name, ring: &mut Publisher) -> anyhow::Result<Self> {
        Ok(Self { hub: self.hub.join(name, ring)?, ..self })
    }

    /// Prepares a tick of the journal for the hub.
    ///
    /// # Errors
    /// The frame is not a tick, or there are more items than the hub's limit.
    pub(super) fn tick<'a>(&'a mut self, frame: &'a [u8]) -> anyhow::Result<&'a [u8]> {
        let mut tick = Tick::parse(frame).context("the journal holds something that is not a tick")?;
        let service = tick.header.service;
        // Report each service once; there are at most 65,536.
        if !self.hub.serves(service) && self.not_served.insert(service) {
            anstream::eprintln!(
                "warning: the journal has ticks of service {service}, which {} does not name: they are not served\n\
                     hint: the plant's own configuration names it, with service_id in its [hub] and id in each [[service]]",
                paths::shown(&self.file)
            );
        }
        let item = self.numbers.of(&tick).map_err(|TooMany| {
            let what = format!("the journal has more items than {} allows", paths::shown(&self.file));
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
}
