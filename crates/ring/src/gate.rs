//! How far the publisher may write: the gate.
//!
//! The publisher may write bytes below `limit`. It maintains `limit` ≤ `gate` + capacity, where `gate` is the
//! published oldest position that is guaranteed to be intact, and `limit` ≤ position + capacity for every
//! registered subscriber. To move the limit, it
//!
//! 1. stores the cursor, at its exact position, and the new gate;
//! 2. executes a sequentially consistent fence (F1);
//! 3. reads the table of subscribers, and only then sets the limit to `min(gate, their lowest) + capacity`.
//!
//! A subscriber that joins stores a position and its bit in the table, executes a sequentially consistent fence
//! (F2), and reads the cursor (newest) or the gate (oldest) again. Fences are totally ordered. If F2 is before F1,
//! step 3 sees the subscriber, and the limit respects it. If F1 is before F2, the subscriber reads the cursor or
//! gate of step 1 or a newer one:
//!
//! * *newest*: it moves to that cursor c₂, which is not before the gate of step 1, so the limit of step 3 is at most
//!   c₂ + capacity.
//! * *oldest*: it moves to that gate g₂, so the limit of step 3 is at most g₂ + capacity. Later scans see it at a position
//!   that is not beyond g₂.
//!
//! Positions only grow, so no value recurs.
//!
//! In a broadcast ring the publisher does not read the subscribers: the limit is gate + capacity. The same fence
//! lies between the store of the new gate and the bytes that are written behind it, so a subscriber that has copied
//! a byte of a later lap finds that the gate has passed it (`broadcast.rs`).

use crate::atomics::{Ordering, fence};

use crate::lines::SLOTS;
use crate::memory::Memory;

/// Parts of the ring: the publisher remembers a frame boundary in each, and subscribers release space in steps of a
/// part.
pub(crate) const PARTS: usize = 8;

/// Frame boundaries that the publisher remembers, about one for each eighth of the ring, oldest first. At most two fall
/// into an eighth (a long frame behind a short rest), so this is enough for a whole ring.
const REMEMBERED: usize = 4 * PARTS;

/// A frame boundary: its position, and the number of frames before it.
pub(crate) type Boundary = (u64, u64);

/// Remembered frame boundaries.
#[derive(Debug)]
pub(crate) struct Boundaries {
    places: [Boundary; REMEMBERED],
    first: usize,
    count: usize,
}

impl Boundaries {
    pub(crate) fn starting_at(boundary: Boundary) -> Self {
        let mut boundaries = Self { places: [(0, 0); REMEMBERED], first: 0, count: 0 };
        boundaries.remember(boundary);
        boundaries
    }

    /// Adds a boundary not before the last one; drops the oldest one if the array is full.
    pub(crate) fn remember(&mut self, boundary: Boundary) {
        if self.count > 0 && self.places[(self.first + self.count - 1) % REMEMBERED].0 == boundary.0 {
            return;
        }
        if self.count == REMEMBERED {
            self.first = (self.first + 1) % REMEMBERED;
            self.count -= 1;
        }
        self.places[(self.first + self.count) % REMEMBERED] = boundary;
        self.count += 1;
    }

    /// Adds `frames` to each count.
    pub(crate) fn count_from(&mut self, frames: u64) {
        for place in &mut self.places {
            place.1 = place.1.wrapping_add(frames);
        }
    }

    /// Drops the boundaries before `position` and returns the first one at or after it.
    pub(crate) fn first_from(&mut self, position: u64) -> Option<Boundary> {
        while self.count > 0 {
            let oldest = self.places[self.first];
            if oldest.0 >= position {
                return Some(oldest);
            }
            self.first = (self.first + 1) % REMEMBERED;
            self.count -= 1;
        }
        None
    }
}

/// The lowest position of the registered subscribers whose slots are not `excused`; `none` if there are none.
pub(crate) fn lowest_subscriber(memory: &Memory, excused: impl Fn(usize) -> bool, none: u64) -> u64 {
    let table = memory.subscribers();
    // Acquire pairs with the release of a leaving subscriber: its reads are over before its space is used again.
    let mut members = table.members.slots.load(Ordering::Acquire);
    let mut lowest = none;
    while members != 0 {
        let slot = members.trailing_zeros() as usize % SLOTS;
        members &= members - 1;
        // Acquire pairs with the subscriber's release store: it has read what it released.
        let position = table.slots[slot].progress.position.load(Ordering::Acquire);
        if position < lowest && !excused(slot) {
            lowest = position;
        }
    }
    lowest
}

/// Steps 1 and 2: publishes the gate, then fences. The cursor has been stored before.
pub(crate) fn publish(memory: &Memory, (position, frames): Boundary) {
    memory.publisher().gate.store(position, frames);
    fence(Ordering::SeqCst); // F1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries_are_found_from_a_position_on() {
        let mut boundaries = Boundaries::starting_at((0, 0));
        for boundary in [(100, 1), (200, 2), (300, 3)] {
            boundaries.remember(boundary);
        }
        assert_eq!(boundaries.first_from(0), Some((0, 0)));
        assert_eq!(boundaries.first_from(101), Some((200, 2)));
        assert_eq!(boundaries.first_from(0), Some((200, 2)), "what was passed is forgotten");
        assert_eq!(boundaries.first_from(301), None);
    }

    #[test]
    fn the_oldest_boundary_makes_room() {
        let mut boundaries = Boundaries::starting_at((0, 0));
        for position in 1..=REMEMBERED as u64 {
            boundaries.remember((position, position));
        }
        assert_eq!(boundaries.first_from(0), Some((1, 1)));
    }
}
