//! The ring, simulated: everything that the plant has published, and how far the hub has read.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use tapeline_journal::Progress;
use tapeline_measure::Nanos;
use tapeline_plant::{Publish, Refused, Time};

/// The world's clock.
#[derive(Clone, Debug)]
pub(crate) struct Clock(Rc<Cell<u64>>);

impl Clock {
    pub(crate) fn at(now: u64) -> Self {
        Self(Rc::new(Cell::new(now)))
    }

    pub(crate) fn set(&self, now: u64) {
        self.0.set(now);
    }
}

impl Time for Clock {
    fn now(&self) -> Nanos {
        Nanos(self.0.get())
    }
}

/// A gated ring: the plant takes no datagram while too much of it is unread. With a stall limit a reader that has kept it full for
/// so long loses its place, and goes on with the oldest that is still there; without one nothing is lost.
///
/// The plant's own ring holds it back in the middle of a datagram's messages; here it is held back between datagrams, since
/// there is no second thread that could make room meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    frames: Vec<Box<[u8]>>,
    read: usize,
    room: usize,
    /// 0 for none.
    stall_limit_ns: u64,
    /// Since when it has been full.
    full_since: Option<u64>,
    /// The reader has no place, and does not know it yet.
    is_evicted: bool,
    /// Ticks that the reader has lost.
    lost: usize,
    /// Whether there is a journal, and how many ticks it has taken.
    has_journal: bool,
    kept: usize,
    /// What keeps ticks from the hub until they are on disk, and the last tick before this tape's.
    gate: (u64, Option<Arc<Progress>>),
}

impl Tape {
    /// With room for so many unread ticks, and a stall limit, or 0 for none.
    pub(crate) fn new(room: usize, stall_limit_ns: u64) -> Self {
        Self { room, stall_limit_ns, ..Self::default() }
    }

    /// The hub reads what this lets go.
    pub(crate) fn behind(self, gate: (u64, Option<Arc<Progress>>)) -> Self {
        Self { gate, ..self }
    }

    /// Whether the plant may go on.
    pub(crate) fn has_room(&mut self, now: u64) -> bool {
        if self.has_journal && self.frames.len() - self.kept >= self.room {
            // It is exempt from the limit.
            return false;
        }
        if self.is_evicted || self.frames.len() - self.read < self.room {
            self.full_since = None;
            return true;
        }
        let since = *self.full_since.get_or_insert(now);
        // Who has not begun to read is not there yet.
        let may_be = self.stall_limit_ns > 0 && self.read > 0;
        self.is_evicted = may_be && now >= since + self.stall_limit_ns;
        self.is_evicted
    }

    /// The next tick for the hub, and how many it has lost in all.
    pub(crate) fn next(&mut self) -> Option<(&[u8], usize)> {
        if std::mem::take(&mut self.is_evicted) {
            let oldest = self.frames.len().saturating_sub(self.room).max(self.read);
            self.lost += oldest - std::mem::replace(&mut self.read, oldest);
        }
        let frame = self.frames.get(self.read)?;
        let (after, gate) = &self.gate;
        if gate.as_ref().is_some_and(|gate| !gate.lets_go(after + self.read as u64 + 1)) {
            return None;
        }
        self.read += 1;
        Some((frame, self.lost))
    }

    /// The ticks from that place on, for the journal.
    pub(crate) fn frames_from(&self, place: usize) -> impl Iterator<Item = &[u8]> {
        self.frames.iter().skip(place).map(|frame| &**frame)
    }

    /// So many have been taken by the journal.
    pub(crate) const fn keep(&mut self, taken: usize) {
        (self.has_journal, self.kept) = (true, taken);
    }

    /// Ticks that were published.
    pub(crate) fn published(&self) -> usize {
        self.frames.len()
    }

    /// Ticks that the hub has read, or lost.
    pub(crate) const fn read(&self) -> usize {
        self.read
    }

    /// Ticks that it has lost.
    pub(crate) const fn lost(&self) -> usize {
        self.lost
    }
}

impl Publish for Tape {
    fn publish(&mut self, len: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> Result<(), Refused> {
        // What a ring lends is whatever was there before.
        let mut frame = vec![0xEE; len];
        let used = fill(&mut frame);
        if used > len {
            return Err(Refused::TooLong { len: used, max: len });
        }
        frame.truncate(used);
        self.frames.push(frame.into());
        Ok(())
    }
}
