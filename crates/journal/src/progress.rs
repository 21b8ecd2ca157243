//! The progress of a journal, for other threads.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::Durability;

/// The state of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// The journal is being written.
    Keeping = 0,
    /// The journal could not be written, and the publisher must stop.
    Stopped = 1,
    /// The journal could not be written, and publishing continues without it for now.
    Without = 2,
}

/// The progress of a journal: updated by its thread once per write, readable from any other thread.
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

    /// Returns the last sequence given to the kernel; a [`Reader`](crate::Reader) can read it.
    #[must_use]
    pub fn written_up_to(&self) -> u64 {
        // Acquire pairs with the release after the write: a thread that sees a sequence can read its record.
        self.written.load(Ordering::Acquire)
    }

    /// Returns the last sequence synced to disk. It does not advance unless durability is [`Durability::Synced`].
    #[must_use]
    pub fn synced_up_to(&self) -> u64 {
        // Acquire pairs with the release after the sync.
        self.synced.load(Ordering::Acquire)
    }

    /// Returns `true` if this sequence may leave the plant: it has the required durability, or publishing continues
    /// without a journal.
    #[must_use]
    pub fn lets_go(&self, seq: u64) -> bool {
        let up_to = match self.durability {
            Durability::Written => self.written_up_to(),
            Durability::Synced => self.synced_up_to(),
        };
        seq <= up_to || self.state() == State::Without
    }

    /// Returns the number of records that were appended and are not in the journal.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.missing.load(Ordering::Relaxed)
    }

    /// Returns the state of the journal.
    #[must_use]
    pub fn state(&self) -> State {
        // Acquire pairs with the release of the failing thread: a thread that sees the stop sees the last progress.
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
