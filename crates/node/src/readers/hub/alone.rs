//! A hub in another process than the plant's, or on a ring that this process fills.

use std::net::SocketAddr;

use tapeline_ring::{Name, SubscriberId};

use super::counting::HubFigures;
use super::{HubConfig, HubReport, Joining, RunningHub};
use crate::readers::counting::{SnapshotReader, snapshots_between};
use crate::{Events, Result};

/// A hub on its own thread, without a plant.
#[derive(Debug)]
pub struct HubAlone {
    hub: RunningHub,
    figures: SnapshotReader<HubFigures>,
}

impl HubAlone {
    /// Opens the port and starts the thread, which waits for the ring.
    ///
    /// # Errors
    /// The port, or a file of the configuration, cannot be used.
    pub fn start(config: HubConfig, events: &Events) -> Result<Self> {
        let (snapshots, figures) = snapshots_between();
        Ok(Self { hub: RunningHub::start(config, None, snapshots, None, events)?, figures })
    }

    /// The ring exists: returns when the hub reads it, with the hub's place on the ring.
    ///
    /// # Errors
    /// The hub cannot join the ring.
    pub fn join(self, ring: &Name, from: Joining) -> Result<(Self, SubscriberId)> {
        let (hub, seat) = self.hub.join(ring, from)?;
        Ok((Self { hub, ..self }, seat))
    }

    /// Returns the address at which clients connect.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.hub.address
    }

    /// Returns the hub's memory bound by its settings, in bytes.
    #[must_use]
    pub const fn memory_bytes(&self) -> usize {
        self.hub.memory_bytes
    }

    /// Returns the number of items requested by the connected clients, at most one second old.
    pub fn requests(&mut self) -> u64 {
        self.figures.refresh();
        self.figures.figures.requests()
    }

    /// Returns `true` if the thread has ended, whatever the state of the ring.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.hub.has_ended()
    }

    /// The ring has ended: waits until the clients have received their queued output, or the time limit has
    /// passed.
    ///
    /// # Errors
    /// The hub ended early, with the reason.
    pub fn end(self) -> Result<HubReport> {
        self.hub.end()
    }
}
