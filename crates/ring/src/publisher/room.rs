//! Space for the next frames: the gate, the limit, and the handling of subscribers that block the ring.

use crate::atomics::Ordering;
use crate::clock::Instant;
use std::time::Duration;

use super::PublisherOf;
use super::stall::Patience;
use crate::discipline::Discipline;
use crate::gate::{self, PARTS};
use crate::layout::Policy;
use crate::lines::SLOTS;
use crate::{Refused, waiting};

/// How often the publisher of a full ring asks the kernel whether the blocking subscribers are alive.
const LIVENESS_INTERVAL: Duration = Duration::from_micros(100);

impl<D: Discipline> PublisherOf<D> {
    /// The rare path of `reserve`: remembers boundaries, and moves the gate and the limit.
    #[cold]
    #[inline(never)]
    pub(super) fn make_room(&mut self, end: u64) -> Result<(), Refused> {
        // Subscribers can release only what they see, and the cursor must not pass a frame that nobody sees.
        self.show_hidden();
        if end > self.mark {
            self.boundaries.remember((self.position, self.frames));
            // From the position: `end` may belong to a batch, of which nothing is in the ring if it is aborted.
            self.mark = self.position + self.part();
            self.publish_cursor();
        }
        let has_room =
            end <= self.limit || self.raise_limit(end) || (self.clear_the_way(end) && self.raise_limit(end));
        if !has_room {
            self.full = self.full.wrapping_add(1);
            // A subscriber that sleeps and was not woken for its frames would never release space.
            waiting::wake_sleepers(&self.memory.subscribers().waiters);
            return Err(Refused::Full);
        }
        self.soft_limit = self.limit.min(self.mark);
        Ok(())
    }

    /// Moves the gate so that `end` can be reached, if the subscribers allow it: by a whole part where they do, so
    /// that moves are rare. The protocol is described in `gate.rs`.
    fn raise_limit(&mut self, end: u64) -> bool {
        // A scan without a fence: it may miss a subscriber that has just joined, but decides nothing yet.
        let lowest = self.lowest_subscriber(self.position).min(self.position);
        if lowest.saturating_add(self.capacity) < end {
            self.publish_cursor();
            return false;
        }
        let wanted = end.max(self.position + self.part()).saturating_sub(self.capacity);
        let (mut gate, frames) = self.boundaries.first_from(wanted).unwrap_or((self.position, self.frames));
        // In a broadcast ring this leaves the gate unchanged, so the count belongs to it.
        gate = gate.min(lowest).max(self.gate);
        if gate + self.capacity < end {
            return false;
        }
        self.publish_cursor();
        self.gate = gate;
        gate::publish(&self.memory, (gate, frames));
        let limit = self.lowest_subscriber(gate).min(gate).saturating_add(self.capacity);
        // A subscriber that stores a lower position than before is faulty; the space behind it is released already.
        self.limit = self.limit.max(limit);
        self.stalls.over(&self.memory);
        end <= self.limit
    }

    fn part(&self) -> u64 {
        self.capacity / PARTS as u64
    }

    pub(super) fn publish_cursor(&mut self) {
        if self.published != self.position {
            self.memory.publisher().cursor.store(self.position, self.frames);
            self.published = self.position;
        }
    }

    pub(super) fn publish_tally(&self) {
        let tally = &self.memory.publisher().tally;
        tally.full.store(self.full, Ordering::Relaxed);
        tally.reclaimed.store(self.reclaimed, Ordering::Relaxed);
        tally.evicted.store(self.stalls.evicted, Ordering::Relaxed);
    }

    /// The lowest position of the subscribers that gate; `none` if there are none.
    pub(super) fn lowest_subscriber(&self, none: u64) -> u64 {
        match D::POLICY {
            Policy::Gated => {
                let excused = |slot| self.stalls.is_evicted(&self.memory, slot);
                let lowest = gate::lowest_subscriber(&self.memory, excused, none);
                // No subscriber can be where no frame starts: one that stores such a position is treated as at the
                // gate.
                if self.grain.is_boundary(lowest) { lowest } else { self.gate.min(lowest) }
            }
            Policy::Broadcast => none,
        }
    }

    /// Frees the slots of dead subscribers that block `end`, and evicts live ones that have blocked it for longer
    /// than the stall limit. Returns whether there was one.
    fn clear_the_way(&mut self, end: u64) -> bool {
        let now = Instant::now();
        if self.liveness_looked_at.is_some_and(|then| now.duration_since(then) < LIVENESS_INTERVAL) {
            return false;
        }
        self.liveness_looked_at = Some(now);
        let table = self.memory.subscribers();
        let members = table.members.slots.load(Ordering::Acquire);
        let mut found = false;
        for slot in (0..SLOTS).filter(|slot| members >> slot & 1 == 1) {
            let position = table.slots[slot].progress.position.load(Ordering::Relaxed);
            if position.saturating_add(self.capacity) >= end || self.stalls.is_evicted(&self.memory, slot) {
                continue;
            }
            // Owning the slot's lock proves that the subscriber is dead, and keeps a joiner out until the slot is
            // free. A lock that cannot be tried proves nothing, so that slot is left alone.
            if self.segment.lock_slot(slot).unwrap_or(false) {
                // A subscriber that has left in order meanwhile has cleared its own bit, and does not count as
                // dead.
                let before = table.members.slots.fetch_and(!(1 << slot), Ordering::AcqRel);
                self.reclaimed = self.reclaimed.wrapping_add(before >> slot & 1);
                found = true;
                // Released at the latest when this publisher closes the file.
                let _ = self.segment.unlock_slot(slot);
            } else {
                found |= self.stalls.meet(&self.memory, slot, position, now) == Patience::Over;
            }
        }
        self.publish_tally();
        found
    }
}
