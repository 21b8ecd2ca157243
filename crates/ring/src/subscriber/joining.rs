//! Joining a ring.

use crate::atomics::{Ordering, fence};

use super::hold_off::HoldOff;
use super::{Start, SubscriberOf};
use crate::discipline::{Discipline, Gated};
use crate::frame::{self, Broken, Grain};
use crate::gate::PARTS;
use crate::lines::SLOTS;
use crate::memory::{Access, Memory};
use crate::segment::{Purpose, Segment};
use crate::{Error, Name, process};

impl<D: Discipline> SubscriberOf<D> {
    /// Joins a ring. The label is this process's command.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::NoSlot`] if the ring has 64 live subscribers; [`Error::OtherPolicy`];
    /// [`Error::Foreign`], [`Error::Layout`] or [`Error::Damaged`] if the file of that name is no ring that this
    /// build can read.
    pub fn join(name: &Name, start: Start) -> Result<Self, Error> {
        Self::join_as(name, start, &process::command())
    }

    /// Joins a ring with the given label, of which the first 48 bytes are shown.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    pub fn join_as(name: &Name, start: Start, label: &str) -> Result<Self, Error> {
        let segment = Segment::open(name, Purpose::TakePart)?;
        if segment.shape.policy != D::POLICY {
            let (found, wanted) = (segment.shape.policy, D::POLICY);
            return Err(Error::OtherPolicy { path: segment.path, found, wanted });
        }
        let memory = Memory::map(&segment, Access::Subscriber)?;
        let shape = segment.shape;
        let part = (shape.capacity / PARTS) as u64;
        let (slot, ticket) = take_slot(&segment, &memory, label)?;
        let mut subscriber = Self {
            position: 0,
            published: 0,
            publish_at: part,
            heeded: memory.publisher().orders[slot].word.load(Ordering::Relaxed),
            grain: Grain::of(shape.framing),
            max_frame: shape.max_frame,
            copies: shape.stall_limit_ns > 0,
            part,
            slot,
            ticket,
            hold_off: HoldOff::default(),
            reading: D::Reading::default(),
            memory,
            segment,
        };
        D::enter(&mut subscriber, start)?;
        Ok(subscriber)
    }

    /// Registers at `position`, then fences (F2 in `gate.rs`).
    fn enter(&mut self, position: u64) {
        #[cfg(test)]
        #[cfg(not(loom))]
        super::tests::interlude();
        self.move_to(position);
        self.register();
        fence(Ordering::SeqCst);
    }

    /// Sets the slot's bit.
    pub(crate) fn register(&self) {
        // Release: a publisher that sees the bit sees the position.
        self.memory.subscribers().members.slots.fetch_or(1 << self.slot, Ordering::Release);
    }

    pub(crate) fn move_to(&mut self, position: u64) {
        self.position = position;
        self.publish();
    }

    pub(crate) fn cursor(&self) -> Result<u64, Error> {
        // Acquire: the frames before the cursor are committed.
        self.believable(self.memory.publisher().cursor.position.load(Ordering::Acquire))
    }

    pub(crate) fn gate(&self) -> Result<u64, Error> {
        self.believable(self.memory.publisher().gate.position.load(Ordering::Acquire))
    }

    fn believable(&self, position: u64) -> Result<u64, Error> {
        if self.grain.is_boundary(position) && position <= 1 << 62 {
            return Ok(position);
        }
        Err(self.damaged(format!("its publisher's position is {position}")))
    }

    pub(crate) fn broken(&self, broken: Broken) -> Error {
        self.damaged(format!(
            "expected a frame at position {}, found {:016x}",
            broken.position, broken.header
        ))
    }

    pub(crate) fn damaged(&self, why: String) -> Error {
        Error::Damaged { path: self.segment.path.clone(), why }
    }
}

impl SubscriberOf<Gated> {
    /// The protocol and its proof are in `gate.rs`.
    pub(crate) fn join_newest(&mut self) -> Result<(), Error> {
        let cursor = self.cursor()?;
        self.enter(cursor);
        let cursor = self.cursor()?;
        self.move_to(cursor);
        // The cursor is published now and then, so the newest frame is found by walking. The frames behind the
        // cursor are safe now, and they are less than a quarter of the ring unless the publisher continues during
        // the walk.
        let most = self.segment.shape.capacity;
        match frame::walk(&self.memory, cursor, (self.grain, self.max_frame), most, |_| {}) {
            Ok(end) => self.move_to(end),
            // Stopped for longer than the stall limit, so that the publisher has evicted this subscriber: `next`
            // reports it.
            Err(_) if self.is_evicted() => {}
            Err(broken) => return Err(self.broken(broken)),
        }
        Ok(())
    }

    /// The protocol and its proof are in `gate.rs`.
    pub(crate) fn join_oldest(&mut self) -> Result<(), Error> {
        let gate = self.gate()?;
        self.enter(gate);
        let gate = self.gate()?;
        self.move_to(gate);
        Ok(())
    }
}

/// Locks a slot without a live subscriber, and frees the slots of dead ones. Returns the slot and a ticket for it.
fn take_slot(segment: &Segment, memory: &Memory, label: &str) -> Result<(usize, u64), Error> {
    let table = memory.subscribers();
    let members = table.members.slots.load(Ordering::Acquire);
    let mut taken = None;
    for slot in 0..SLOTS {
        let is_member = members >> slot & 1 == 1;
        // Owning a member's lock proves that it is dead, and keeps others off its slot until the slot is free.
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
    identity.pid.store(std::process::id(), Ordering::Relaxed);
    identity.start_ticks.store(process::start_ticks(), Ordering::Relaxed);
    let next_ticket = || table.members.tickets.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    let mut ticket = next_ticket();
    // The counter may have been overwritten. With a ticket that was given before, the order to an earlier holder of
    // the slot would apply to this subscriber, which would be evicted before it has read a frame.
    if memory.publisher().orders[slot].word.load(Ordering::Relaxed) >> 2 == ticket {
        ticket = next_ticket();
    }
    identity.ticket.store(ticket, Ordering::Relaxed);
    identity.set_label(label);
    Ok((slot, ticket))
}
