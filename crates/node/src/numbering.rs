//! Who numbers and publishes: the plant's thread, or, while that sleeps, the thread of kdb+ clients for their rows.
//!
//! A hand-over between threads takes about as long as everything else that happens to a row, and one of the two
//! cores of a small machine. So the plant's thread leaves the sequencer where the other thread finds it before it
//! sleeps, and takes it back when it wakes. While it is awake it has the sequencer to itself: feeds take no lock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use tapeline_measure::Clock;
use tapeline_plant::{Refused, RingPublish, Sequencer};

use crate::config::Config;
use crate::kdb::publishing::Publishing;

/// The sequencer, and the rows that wait for it.
#[derive(Debug)]
pub(crate) struct Numbering {
    pub(crate) sequencer: Sequencer<RingPublish>,
    /// What kdb+ clients publish.
    pub(crate) rows: Option<Publishing>,
    /// Why rows could not be published while the plant's thread slept.
    pub(crate) refused: Option<Refused>,
}

/// What a turn of the plant's thread found.
pub(crate) enum PlantTurn {
    /// Something has arrived: more may have by now.
    Busy,
    /// Nothing has arrived.
    Idle,
    /// The plant was stopped, or every session has ended.
    Over,
}

/// Where the plant's thread leaves the sequencer while it sleeps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lending(Arc<Mutex<Option<Numbering>>>);

impl Lending {
    /// Lends the sequencer while `sleep` runs. If rows are being published when `sleep` returns, waits until
    /// that is done.
    pub(crate) fn during(&self, numbering: Numbering, sleep: impl FnOnce()) -> Numbering {
        *self.lock() = Some(numbering);
        sleep();
        self.lock().take().expect("only the plant's thread takes the sequencer out")
    }

    /// Publishes the rows that wait if the plant's thread sleeps and the ring has capacity for `bytes` of rows.
    /// Never waits. Returns whether nothing is left for the plant's thread to do; else it must be woken.
    pub(crate) fn publish_rows(&self, bytes: usize, clock: &Clock) -> bool {
        let mut lent = match self.0.try_lock() {
            Ok(lent) => lent,
            Err(TryLockError::Poisoned(lent)) => lent.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        let Some(Numbering { sequencer, rows: Some(rows), refused }) = lent.as_mut() else { return false };
        // Whoever calls reads the ring too: it must not wait for its own reading.
        if refused.is_some() || !sequencer.publisher().has_room(bytes) {
            return false;
        }
        *refused = rows.turn(clock, sequencer).err();
        refused.is_none()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Numbering>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether rows of kdb+ clients become ticks, and whether the plant has no other ticks.
pub(crate) const fn rows_of(config: &Config, has_sources: bool) -> (bool, bool) {
    let takes_rows = config.upstream.is_none();
    (takes_rows, takes_rows && config.feeds.is_empty() && !has_sources)
}
