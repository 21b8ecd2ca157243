//! Which of two plants numbers: the [witnesses](WitnessServer), and a plant's [lease](RunningLease). `[lease]` in the configuration.
//!
//! [`tapeline_plant::bridge::lease`] has the rules. The thread of a lease renews it while the plant's own thread works; that thread, and those of
//! the bridge, look at the time before they number or send.

mod running;
mod witness_server;

use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tapeline_journal::Progress;
use tapeline_measure::boot_time;
use tapeline_plant::Refused;
use tapeline_plant::bridge::Epoch;
use tapeline_plant::bridge::lease::HolderName;

pub use self::running::RunningLease;
pub use self::witness_server::{WitnessConfig, WitnessReport, WitnessServer};
use crate::stat::snapshot::LeaseSnapshot;

/// How long a lease lasts unless it is renewed, by default.
pub const LEASE_TIME: Duration = Duration::from_secs(1);

/// A plant that may hold a lease.
#[derive(Clone, Debug)]
pub struct LeaseConfig {
    /// The name of this plant among those with its id.
    pub holder: HolderName,
    /// All witnesses: the same in every plant.
    pub witnesses: Vec<SocketAddrV4>,
    /// How long the lease lasts unless it is renewed.
    pub time: Duration,
    /// Take the lease although the last leader had more ticks, which are then lost.
    pub takes: bool,
}

/// What the thread of a lease tells others.
#[derive(Debug, Default)]
struct LeaseState {
    /// The epoch of the lease that is held, or was.
    epoch: AtomicU64,
    /// When it ends, by [`boot_time`]; 0 if it is not held.
    until: AtomicU64,
    /// When the thread that numbers last looked whether it may, by [`boot_time`]; 0 before it does.
    turned: AtomicU64,
    /// How far the journal reaches, once the plant has opened it.
    journal: Mutex<Option<Arc<Progress>>>,
    snapshot: Mutex<LeaseSnapshot>,
}

impl LeaseState {
    /// The epoch of the lease that is held now.
    fn held(&self) -> Option<Epoch> {
        // The epoch is written before the end: an end that is read has its epoch, or a later one.
        let until = self.until.load(Ordering::Acquire);
        let epoch = Epoch(self.epoch.load(Ordering::Acquire));
        (boot_time().0 < until).then_some(epoch)
    }
}

/// The part that a plant has under its lease, from one change to the next: it leads in an epoch, or stands by.
#[derive(Clone, Debug)]
pub struct Term {
    state: Arc<LeaseState>,
    leads: Option<Epoch>,
}

impl Term {
    /// Returns the epoch in which the plant leads; `None` if it stands by.
    pub(crate) const fn epoch(&self) -> Option<Epoch> {
        self.leads
    }

    /// Whether the plant still has the part. Costs a reading of the clock.
    ///
    /// # Errors
    /// [`Refused::LeaseLost`], [`Refused::LeaseTaken`].
    pub(crate) fn check(&self) -> Result<(), Refused> {
        match (self.leads, self.state.held()) {
            (leads, held) if leads == held => Ok(()),
            (Some(_), _) => Err(Refused::LeaseLost),
            (None, _) => Err(Refused::LeaseTaken),
        }
    }

    /// As [`check`](Self::check), by the thread that numbers. While it does not come, the lease is not renewed.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub(crate) fn turn(&self) -> Result<(), Refused> {
        self.state.turned.store(boot_time().0, Ordering::Relaxed);
        self.check()
    }

    /// The plant has opened its journal: a candidate says how far it reaches.
    pub(crate) fn follow(&self, journal: Arc<Progress>) {
        *self.state.journal.lock().unwrap_or_else(PoisonError::into_inner) = Some(journal);
    }

    /// The figures, for the counters.
    pub(crate) fn look(&self) -> LeaseSnapshot {
        let mut snapshot = self.state.snapshot.lock().unwrap_or_else(PoisonError::into_inner).clone();
        snapshot.held = self.state.held().is_some();
        let until = self.state.until.load(Ordering::Acquire);
        snapshot.left_ns = until.saturating_sub(boot_time().0);
        snapshot
    }
}
