//! A hub in another process than the plant whose ring it serves, or on a ring that this process fills.

use std::net::SocketAddr;

use tapeline_ring::{Name, SubscriberId};

use super::counting::HubFigures;
use super::{HubConfig, HubReport, Joining, RunningHub};
use crate::counting::{SnapshotReader, telling};
use crate::{Events, Result};

/// A hub on a thread of its own, without a plant around it.
#[derive(Debug)]
pub struct HubAlone {
    hub: RunningHub,
    figures: SnapshotReader<HubFigures>,
}

impl HubAlone {
    /// Opens the port and makes the thread, which waits for the ring.
    ///
    /// # Errors
    /// The port, or a file of the configuration, cannot be used.
    pub fn start(config: HubConfig, events: &Events) -> Result<Self> {
        let (teller, figures) = telling();
        Ok(Self { hub: RunningHub::start(config, None, teller, None, events)?, figures })
    }

    /// The ring is there: returns when the hub reads it, with its place there.
    ///
    /// # Errors
    /// The hub cannot join the ring.
    pub fn join(self, ring: &Name, from: Joining) -> Result<(Self, SubscriberId)> {
        let (hub, seat) = self.hub.join(ring, from)?;
        Ok((Self { hub, ..self }, seat))
    }

    /// Returns where clients connect.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.hub.address
    }

    /// Returns the most memory that the hub takes by its settings, in bytes.
    #[must_use]
    pub const fn memory_bytes(&self) -> usize {
        self.hub.memory_bytes
    }

    /// Returns the number of items that the clients who are connected have requested, as of a second ago at most.
    pub fn requests(&mut self) -> u64 {
        self.figures.hear();
        self.figures.figures.requests()
    }

    /// Returns `true` if the thread has ended, whatever the ring does.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.hub.has_ended()
    }

    /// The ring has ended: waits until the clients have what they are owed, or the time for that is over.
    ///
    /// # Errors
    /// The hub has ended early, and why.
    pub fn end(self) -> Result<HubReport> {
        self.hub.end()
    }
}
