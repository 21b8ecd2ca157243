//! How far a journal is, for others to see.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::Durability;

/// How a journal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// It keeps what it is given.
    Keeping = 0,
    /// It could not be written, and whoever publishes has to stop.
    Stopped = 1,
    /// It could not be written, and publishing goes on without it, for now.
    Without = 2,
}

/// How far a journal is: written by its thread once for each write, read by any other.
#[derive(Debug)]
pub struct Progress {
    durability: Durability,
    written: AtomicU64,
    synced: AtomicU64,
    missing: AtomicU64,
    state: AtomicU8,
}

impl Progress {
    pub(crate) fn new(durability: Durability, last: u64) -> Self {
        Self {
            durability,
            written: AtomicU64::new(last),
            synced: AtomicU64::new(last),
            missing: AtomicU64::new(0),
            state: AtomicU8::new(State::Keeping as u8),
        }
    }

    /// The last sequence that the kernel has; a [`Reader`](crate::Reader) finds it.
    #[must_use]
    pub fn written_up_to(&self) -> u64 {
        // Acquire pairs with the release behind the write: who knows of a sequence can read it.
        self.written.load(Ordering::Acquire)
    }

    /// The last sequence that is on the disk; it stands still where durability is not [`Durability::Synced`].
    #[must_use]
    pub fn synced_up_to(&self) -> u64 {
        // Acquire pairs with the release behind the sync.
        self.synced.load(Ordering::Acquire)
    }

    /// Whether this sequence may leave the plant: it is as sure as was asked for, or publishing goes on without a journal.
    #[must_use]
    pub fn lets_go(&self, seq: u64) -> bool {
        let up_to = match self.durability {
            Durability::Written => self.written_up_to(),
            Durability::Synced => self.synced_up_to(),
        };
        seq <= up_to || self.state() == State::Without
    }

    /// How many records were given and are not in the journal.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.missing.load(Ordering::Relaxed)
    }

    /// How the journal is.
    #[must_use]
    pub fn state(&self) -> State {
        // Acquire pairs with the release of the failing thread: who sees it stopped sees up to where it came.
        match self.state.load(Ordering::Acquire) {
            0 => State::Keeping,
            1 => State::Stopped,
            _ => State::Without,
        }
    }

    pub(crate) fn set_written(&self, seq: u64) {
        self.written.store(seq, Ordering::Release);
    }

    pub(crate) fn set_synced(&self, seq: u64) {
        self.synced.store(seq, Ordering::Release);
    }

    pub(crate) fn add_missing(&self, records: u64) {
        self.missing.fetch_add(records, Ordering::Relaxed);
    }

    pub(crate) fn set_state(&self, state: State) {
        self.state.store(state as u8, Ordering::Release);
    }
}
