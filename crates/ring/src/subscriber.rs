//! The reading end.

#![allow(unsafe_code)]

use std::hint::spin_loop;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use crate::frame::{self, Frame, Position, committed_len, frame_size};
use crate::gate::PARTS;
use crate::lines::{ENDED, SLOTS, Slot};
use crate::memory::{Access, Memory};
use crate::segment::{Purpose, Segment};
use crate::waiting::{self, Bed, Deadline, Wait};
use crate::{Error, Name, process};

/// Where a subscriber joins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Start {
    /// Behind the newest frame: only what comes from now on.
    #[default]
    Newest,
    /// At the oldest frame that is guaranteed to be still there: about seven eighths of the ring back.
    Oldest,
}

/// What a look at the ring gives.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
#[must_use]
pub enum Poll<'a> {
    /// The next frame, borrowed until the next call.
    Frame(Frame<'a>),
    /// Nothing new. More may come: also from another publisher, if this one has died.
    Empty,
    /// Nothing new, and the publisher has said that nothing more comes. (A kept ring can be opened again; then frames
    /// come after all.)
    Ended,
    /// Something other than a publisher has written into the ring. The subscriber can go no further.
    Damaged {
        /// Where a frame's header should have stood.
        position: Position,
    },
}

impl<'a> Poll<'a> {
    /// The frame, if there is one.
    #[inline]
    #[must_use]
    pub fn frame(self) -> Option<Frame<'a>> {
        match self {
            Self::Frame(frame) => Some(frame),
            _ => None,
        }
    }
}

/// One of a ring's subscribers. While it lives, the publisher does not write over what it has not released, so a
/// subscriber that stops reading stops the publisher.
///
/// Reading writes nothing but, once in an eighth of the ring or when nothing is left, the position up to which frames
/// are released. A frame is released by the call of [`next`](Self::next) that follows it.
#[derive(Debug)]
pub struct Subscriber {
    memory: Memory,
    /// Where the next frame's header stands. Everything before it is released.
    position: u64,
    /// The position as last published.
    published: u64,
    /// Where to publish next: a part of the ring further on.
    publish_at: u64,
    /// Capacity ÷ [`PARTS`].
    part: u64,
    max_frame: usize,
    slot: usize,
    segment: Segment,
}

impl Subscriber {
    /// Joins a ring, labelled with this process's command.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::NoSlot`] if 64 live subscribers are there; [`Error::Foreign`], [`Error::Layout`]
    /// or [`Error::Damaged`] if what goes by that name is no ring that this build can read.
    pub fn join(name: &Name, start: Start) -> Result<Self, Error> {
        Self::join_as(name, start, &process::command())
    }

    /// Joins a ring under a label of its own, of which the first 48 bytes are shown to people.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    pub fn join_as(name: &Name, start: Start, label: &str) -> Result<Self, Error> {
        let segment = Segment::open(name, Purpose::TakePart)?;
        let memory = Memory::map(&segment, Access::Subscriber)?;
        let slot = take_slot(&segment, &memory, label)?;
        let (part, max_frame) = ((segment.shape.capacity / PARTS) as u64, segment.shape.max_frame);
        let mut subscriber =
            Self { memory, position: 0, published: 0, publish_at: part, part, max_frame, slot, segment };
        match start {
            Start::Newest => subscriber.join_newest()?,
            Start::Oldest => subscriber.join_oldest()?,
        }
        Ok(subscriber)
    }

    /// The protocol and its proof are in `gate.rs`.
    fn join_newest(&mut self) -> Result<(), Error> {
        let cursor = self.cursor()?;
        self.enter(cursor);
        let cursor = self.cursor()?;
        self.move_to(cursor);
        // The cursor is published now and then, so what is newest is found by walking. What lies behind it is safe
        // now, and it is less than a quarter of the ring unless the publisher goes on while we walk.
        let most = self.segment.shape.capacity;
        let end = frame::walk(&self.memory, cursor, self.max_frame, most, |_| {}).map_err(|broken| {
            let why =
                format!("at position {} stands {:016x}, which is no frame", broken.position, broken.header);
            Error::Damaged { path: self.segment.path.clone(), why }
        })?;
        self.move_to(end);
        Ok(())
    }

    /// The protocol and its proof are in `gate.rs`.
    fn join_oldest(&mut self) -> Result<(), Error> {
        // Each round needs the publisher to have moved its gate, by an eighth of the ring, in the time of two loads.
        const ROUNDS: usize = 1000;
        let mut gate = self.gate()?;
        self.enter(gate);
        for _ in 0..ROUNDS {
            let newer = self.gate()?;
            if newer == gate {
                return Ok(());
            }
            gate = newer;
            self.move_to(gate);
            fence(Ordering::SeqCst);
        }
        // The slot gates at an older position, which holds the publisher: only a segment that others write to gets here.
        Err(Error::Damaged {
            path: self.segment.path.clone(),
            why: "its gate does not come to rest".to_owned(),
        })
    }

    /// Registers at `position`, then fences (F2 in `gate.rs`).
    fn enter(&mut self, position: u64) {
        #[cfg(test)]
        tests::interlude();
        self.move_to(position);
        // Release: who sees the bit sees the position.
        self.memory.subscribers().members.slots.fetch_or(1 << self.slot, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    fn move_to(&mut self, position: u64) {
        self.position = position;
        self.publish();
    }

    fn cursor(&self) -> Result<u64, Error> {
        // Acquire: the frames before the cursor are committed.
        self.believable(self.memory.publisher().cursor.position.load(Ordering::Acquire))
    }

    fn gate(&self) -> Result<u64, Error> {
        self.believable(self.memory.publisher().gate.position.load(Ordering::Acquire))
    }

    fn believable(&self, position: u64) -> Result<u64, Error> {
        if position.is_multiple_of(8) && position <= 1 << 62 {
            return Ok(position);
        }
        let why = format!("its publisher's position is {position}");
        Err(Error::Damaged { path: self.segment.path.clone(), why })
    }

    /// The next frame, or why there is none. Releases the frame before.
    ///
    /// Costs one load and one comparison a frame, and no store but once in an eighth of the ring.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "a frame borrows the subscriber, which an iterator cannot say"
    )]
    pub fn next(&mut self) -> Poll<'_> {
        let start = self.position;
        if start >= self.publish_at {
            self.publish();
        }
        // Acquire pairs with the release store of the header: the frame's bytes are there.
        let header = self.memory.header(start).load(Ordering::Acquire);
        let Some(len) = committed_len(header, self.max_frame) else {
            return self.nothing(header);
        };
        self.position = start + frame_size(len) as u64;
        // SAFETY: the frame is committed, its length is at most the ring's longest, and `published` is not beyond its
        // start while it is borrowed, so the publisher does not touch it.
        let bytes = unsafe { self.memory.body(start, len) };
        Poll::Frame(Frame { bytes, position: Position(start), epoch: frame::epoch(header) })
    }

    /// The rarer half of `next`.
    #[inline]
    fn nothing(&mut self, header: u64) -> Poll<'_> {
        if header != 0 {
            return Poll::Damaged { position: Position(self.position) };
        }
        if self.published != self.position {
            self.publish();
        }
        // Acquire pairs with the release store at the end of the publisher: every frame before it is visible, so one
        // more look decides.
        if self.memory.publisher().status.state.load(Ordering::Acquire) == ENDED && !self.has_frame() {
            return Poll::Ended;
        }
        Poll::Empty
    }

    /// Waits until [`next`](Self::next) gives something other than [`Poll::Empty`]; `false` when `timeout` was first.
    /// Releases all frames read.
    ///
    /// A publisher that died has not ended its ring, so nothing comes and the time runs out: see
    /// [`publisher_alive`](Self::publisher_alive).
    pub fn wait(&mut self, how: Wait, timeout: Duration) -> bool {
        if self.is_ready() {
            return true;
        }
        if self.published != self.position {
            self.publish();
        }
        let ready = || self.is_ready();
        // What comes soon is not delayed by a look at the clock.
        let soon = match how {
            Wait::Spin => waiting::poll(ready, || ()),
            Wait::Pause | Wait::Adaptive => waiting::poll(ready, spin_loop),
            Wait::Yield | Wait::Park => false,
        };
        if soon {
            return true;
        }
        let deadline = Deadline::after(timeout);
        let bed = Bed {
            waiters: &self.memory.subscribers().waiters,
            flags: &self.memory.publisher().status.flags,
            slot: self.slot,
        };
        match how {
            Wait::Spin => waiting::poll_until(ready, deadline, || ()),
            Wait::Pause => waiting::poll_until(ready, deadline, spin_loop),
            Wait::Yield => waiting::poll_until(ready, deadline, std::thread::yield_now),
            Wait::Park => bed.park_until(ready, deadline),
            Wait::Adaptive => bed.adapt_until(ready, deadline),
        }
    }

    /// Whether `next` would give something other than `Empty`.
    #[inline]
    fn is_ready(&self) -> bool {
        // Acquire pairs with the publisher's end.
        self.has_frame() || self.memory.publisher().status.state.load(Ordering::Acquire) == ENDED
    }

    /// Whether there is something at the position: a frame, or what is none and will be reported.
    #[inline]
    fn has_frame(&self) -> bool {
        self.memory.header(self.position).load(Ordering::Acquire) != 0
    }

    /// Tells the publisher now that all frames read so far are released. Only for a subscriber that stops reading
    /// for a while without having seen [`Poll::Empty`]: the frame that was lent last is released as well.
    pub fn release(&mut self) {
        self.publish();
    }

    #[cold]
    fn publish(&mut self) {
        // Release pairs with the acquire load of the publisher's scan: all reads of what is released are over.
        self.slot().progress.position.store(self.position, Ordering::Release);
        self.published = self.position;
        self.publish_at = self.position + self.part;
    }

    fn slot(&self) -> &Slot {
        &self.memory.subscribers().slots[self.slot]
    }

    /// Where the next frame stands.
    #[must_use]
    pub fn position(&self) -> Position {
        Position(self.position)
    }

    /// Bytes between this subscriber and the publisher's cursor, which lags by up to an eighth of the ring.
    #[must_use]
    pub fn lag_bytes(&self) -> u64 {
        self.memory.publisher().cursor.position.load(Ordering::Acquire).saturating_sub(self.position)
    }

    /// Which publisher has the ring now: 1 for the first, one more for each that continued it (modulo 2²⁴). Each frame
    /// carries its own, so that the change can be seen where it happens in the stream.
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.memory.publisher().status.epoch.load(Ordering::Relaxed)
    }

    /// The publisher's note; all zero before the first. `None` while notes are written faster than they can be read.
    #[must_use]
    pub fn note(&self) -> Option<[u64; 8]> {
        self.memory.publisher().note.read()
    }

    /// Whether there is a publisher, by the lock that dies with it. A system call.
    ///
    /// # Errors
    /// If the system refuses to say.
    pub fn publisher_alive(&self) -> Result<bool, Error> {
        self.segment.publisher_is_alive()
    }

    /// Whether the ring still goes by its name. If not, no publisher will ever continue it. A system call.
    ///
    /// # Errors
    /// If the system refuses to say.
    pub fn is_named(&self) -> Result<bool, Error> {
        self.segment.is_named()
    }

    /// Bytes of the ring's data area.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.segment.shape.capacity
    }

    /// The longest frame that can come, in bytes.
    #[must_use]
    pub fn max_frame(&self) -> usize {
        self.max_frame
    }
}

/// Locks a slot that no live subscriber has, and frees those of dead ones.
fn take_slot(segment: &Segment, memory: &Memory, label: &str) -> Result<usize, Error> {
    let table = memory.subscribers();
    let members = table.members.slots.load(Ordering::Acquire);
    let mut taken = None;
    for slot in 0..SLOTS {
        let is_member = members >> slot & 1 == 1;
        // To have a member's lock is the proof that it is dead, and keeps others off its slot until it is free.
        if (taken.is_some() && !is_member) || !segment.lock_slot(slot)? {
            continue;
        }
        table.members.slots.fetch_and(!(1 << slot), Ordering::AcqRel);
        match taken {
            None => taken = Some(slot),
            Some(_) => segment.unlock_slot(slot)?,
        }
    }
    let slot = taken.ok_or_else(|| Error::NoSlot { path: segment.path.clone(), slots: SLOTS })?;
    let identity = &table.slots[slot].identity;
    identity.pid.store(process::pid(), Ordering::Relaxed);
    identity.start_ticks.store(process::start_ticks(), Ordering::Relaxed);
    let ticket = table.members.tickets.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    identity.ticket.store(ticket, Ordering::Relaxed);
    identity.set_label(label);
    Ok(slot)
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let table = self.memory.subscribers();
        table.waiters.parked.fetch_and(!(1 << self.slot), Ordering::Relaxed);
        // Release pairs with the acquire load of the publisher's scan: all reads are over.
        table.members.slots.fetch_and(!(1 << self.slot), Ordering::Release);
        // Only then may another have the slot. What fails here is done by closing the file.
        let _ = self.segment.unlock_slot(self.slot);
    }
}

#[cfg(test)]
mod tests;
