//! The ring, simulated: everything that the plant has published, and how far the hub has read.

use std::cell::Cell;
use std::rc::Rc;

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

/// A gated ring: nothing on it is lost, and the plant takes no datagram while too much of it is unread.
///
/// The plant's own ring holds it back in the middle of a datagram's messages; here it is held back between datagrams, since
/// there is no second thread that could make room meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    frames: Vec<Box<[u8]>>,
    read: usize,
    room: usize,
}

impl Tape {
    /// With room for so many unread ticks.
    pub(crate) fn new(room: usize) -> Self {
        Self { room, ..Self::default() }
    }

    /// Whether the plant may go on.
    pub(crate) fn has_room(&self) -> bool {
        self.frames.len() - self.read < self.room
    }

    /// The next tick for the hub.
    pub(crate) fn next(&mut self) -> Option<&[u8]> {
        let frame = self.frames.get(self.read)?;
        self.read += 1;
        Some(frame)
    }

    /// Ticks that were published.
    pub(crate) fn published(&self) -> usize {
        self.frames.len()
    }

    /// Ticks that the hub has read.
    pub(crate) fn read(&self) -> usize {
        self.read
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
