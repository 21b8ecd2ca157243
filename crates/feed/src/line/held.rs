//! Messages that arrived ahead of sequence.

use std::ops::RangeInclusive;

use tapeline_nanos::Nanos;

/// Maximum distance of held sequences.
pub(super) const MAX_WINDOW: usize = 1 << 24;

/// Copies of messages, held until the hole before them is filled or declared. All memory is allocated, and touched, at creation.
#[derive(Debug)]
pub(super) struct Held {
    slots: Box<[Slot]>,
    bytes: Box<[u8]>,
    spare: Box<[u8]>,
    /// Position of the next copy in `bytes`.
    used: usize,
    /// Bytes of the held messages.
    live: usize,
    limit: usize,
    count: usize,
    first: u64,
    last: u64,
}

/// A held message. Sequences begin at 1: 0 is an empty slot.
#[derive(Clone, Copy, Debug)]
struct Slot {
    sequence: u64,
    received: Nanos,
    at: usize,
    length: usize,
}

const EMPTY: Slot = Slot { sequence: 0, received: Nanos(0), at: 0, length: 0 };

/// The result of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Insert {
    /// The message is held.
    Held,
    /// The message was held already.
    Duplicate,
    /// There is no capacity for its bytes.
    NoRoom,
}

impl Held {
    /// Creates a window for sequences less than `messages` apart, and for `bytes` bytes of messages.
    pub(super) fn new(messages: usize, bytes: usize) -> Self {
        let slots = messages.clamp(1, MAX_WINDOW).next_power_of_two();
        // Twice the limit, so that compaction always frees half. Not zeros, for which the system would defer the allocation.
        let arena = vec![0xEE; bytes.saturating_mul(2)];
        Self {
            slots: vec![EMPTY; slots].into(),
            spare: arena.clone().into(),
            bytes: arena.into(),
            used: 0,
            live: 0,
            limit: bytes,
            count: 0,
            first: 0,
            last: 0,
        }
    }

    pub(super) const fn count(&self) -> usize {
        self.count
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the lowest held sequence with its receive time.
    pub(super) fn first(&self) -> Option<(u64, Nanos)> {
        (self.count > 0).then(|| (self.first, self.slots[self.place(self.first)].received))
    }

    #[inline]
    const fn place(&self, sequence: u64) -> usize {
        // The truncation is harmless: only the low bits count.
        sequence as usize & (self.slots.len() - 1)
    }

    #[inline]
    fn holds(&self, sequence: u64) -> bool {
        self.slots[self.place(sequence)].sequence == sequence
    }

    /// Returns the sequences from `next`, which is before the first held one, to before `end` that are not held, as ranges in order.
    pub(super) fn holes(&self, next: u64, end: u64) -> impl Iterator<Item = RangeInclusive<u64>> + '_ {
        let mut at = next;
        std::iter::from_fn(move || {
            let behind = |at| self.count == 0 || at > self.last;
            while !behind(at) && self.holds(at) {
                at += 1;
            }
            if at >= end {
                return None;
            }
            let first = at;
            if behind(at) {
                at = end;
            }
            // Ends at `last` at the latest, which is held.
            while !behind(at) && !self.holds(at) {
                at += 1;
            }
            Some(first..=at.min(end) - 1)
        })
    }

    /// Stores a copy. The caller ensures that all held sequences are less than the window apart, and not 0.
    pub(super) fn insert(&mut self, sequence: u64, message: &[u8], received: Nanos) -> Insert {
        let place = self.place(sequence);
        if self.holds(sequence) {
            return Insert::Duplicate;
        }
        let length = message.len();
        if self.live + length > self.limit {
            return Insert::NoRoom;
        }
        if self.used + length > self.bytes.len() {
            self.gather();
        }
        self.bytes[self.used..self.used + length].copy_from_slice(message);
        self.slots[place] = Slot { sequence, received, at: self.used, length };
        self.used += length;
        self.live += length;
        if self.count == 0 {
            (self.first, self.last) = (sequence, sequence);
        }
        self.first = self.first.min(sequence);
        self.last = self.last.max(sequence);
        self.count += 1;
        Insert::Held
    }

    /// Removes and returns the message `sequence` if it is the first. Its bytes are valid until the next insertion.
    pub(super) fn take_first(&mut self, sequence: u64) -> Option<(&[u8], Nanos)> {
        if self.count == 0 || self.first != sequence {
            return None;
        }
        let place = self.place(sequence);
        let slot = std::mem::replace(&mut self.slots[place], EMPTY);
        self.live -= slot.length;
        self.count -= 1;
        if self.count == 0 {
            self.used = 0;
        } else {
            // Ends at `last` at the latest, which is held. Each sequence is passed once.
            self.first += 1;
            while self.slots[self.place(self.first)].sequence != self.first {
                self.first += 1;
            }
        }
        Some((&self.bytes[slot.at..slot.at + slot.length], slot.received))
    }

    /// Compacts the copies. At most half of the bytes are live, so this happens at most once for every `limit` held bytes.
    #[cold]
    fn gather(&mut self) {
        let mut used = 0;
        for sequence in self.first..=self.last {
            let place = self.place(sequence);
            let slot = &mut self.slots[place];
            if slot.sequence == sequence {
                let to = used..used + slot.length;
                self.spare[to].copy_from_slice(&self.bytes[slot.at..slot.at + slot.length]);
                slot.at = used;
                used += slot.length;
            }
        }
        std::mem::swap(&mut self.bytes, &mut self.spare);
        self.used = used;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_in_order_with_their_bytes() {
        let mut held = Held::new(64, 1 << 10);
        for sequence in [9, 7, 12, 8] {
            let message = vec![sequence as u8; sequence as usize];
            assert_eq!(held.insert(sequence, &message, Nanos(sequence)), Insert::Held);
        }
        assert_eq!(held.insert(12, b"", Nanos(0)), Insert::Duplicate);
        assert_eq!(held.first(), Some((7, Nanos(7))));
        assert_eq!(held.take_first(8), None);
        for sequence in [7, 8, 9, 12] {
            let message = vec![sequence as u8; sequence as usize];
            assert_eq!(held.take_first(sequence), Some((&message[..], Nanos(sequence))));
        }
        assert!(held.is_empty());
        assert_eq!(held.first(), None);
    }

    #[test]
    fn holes_are_what_is_not_held() {
        let mut held = Held::new(64, 1 << 10);
        let holes = |held: &Held, next, end| held.holes(next, end).collect::<Vec<_>>();
        assert_eq!(holes(&held, 5, 5), []);
        assert_eq!(holes(&held, 5, 9), [5..=8]);
        for sequence in [7, 8, 10] {
            held.insert(sequence, b"x", Nanos(0));
        }
        assert_eq!(holes(&held, 5, 11), [5..=6, 9..=9]);
        assert_eq!(holes(&held, 5, 14), [5..=6, 9..=9, 11..=13]);
    }

    #[test]
    fn bytes_are_bounded_and_used_again() {
        let mut held = Held::new(64, 100);
        let mut next = 1;
        for sequence in 1..5_000_u64 {
            let message = [sequence as u8; 30];
            while held.insert(sequence, &message, Nanos(0)) == Insert::NoRoom {
                assert_eq!(held.count(), 3);
                assert_eq!(held.take_first(next), Some((&[next as u8; 30][..], Nanos(0))));
                next += 1;
            }
        }
        assert_eq!(held.insert(5_000, &[0; 101], Nanos(0)), Insert::NoRoom);
    }
}
