//! Slots for the kernel to fill.

#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use super::PooledDatagram;
use super::memory::{SLOT_BYTES, Slot};
use crate::udp::Envelopes;

/// Slots with the headers of a `recvmmsg`: slot `i` belongs to header `i`.
pub(super) struct Loaded {
    slots: Vec<Slot>,
    envelopes: Envelopes,
    most: usize,
}

impl Loaded {
    /// Creates the headers for `most` slots; none is loaded.
    pub(super) fn new(most: usize) -> Self {
        Self { slots: Vec::with_capacity(most), envelopes: Envelopes::new(most), most }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the number of slots that can still be loaded.
    pub(super) fn room(&self) -> usize {
        self.most - self.slots.len()
    }

    /// Loads a slot after the loaded ones; [`room`](Self::room) must not be 0.
    #[inline]
    pub(super) fn load(&mut self, mut slot: Slot) {
        self.envelopes.address(self.slots.len(), slot.start(), SLOT_BYTES);
        self.slots.push(slot);
    }

    /// Reads the available datagrams, up to one per loaded slot, without waiting. Returns their number, and
    /// the kernel's drop count if a datagram carried it. Costs one system call.
    pub(super) fn fill(&mut self, fd: BorrowedFd<'_>) -> Result<(usize, Option<u32>), Errno> {
        // SAFETY: exactly as many envelopes are used as slots are loaded; each was addressed to its own slot,
        // of `SLOT_BYTES`, when the slot was loaded or moved to the front, and the slots are owned here.
        // Test: `datagrams_arrive_in_slots_of_every_kind`.
        unsafe { self.envelopes.receive(fd, self.slots.len()) }
    }

    /// Stages the slots filled by the last fill, in order of arrival, and moves the others to the front.
    ///
    /// The move costs about 40 ns if one of 64 slots was filled; the system call costs a microsecond.
    #[inline]
    pub(super) fn unload(&mut self, line: u8, staged: &mut VecDeque<PooledDatagram>) {
        let filled = self.envelopes.filled().min(self.slots.len());
        for (i, slot) in self.slots.drain(..filled).enumerate() {
            let Some(envelope) = self.envelopes.envelope(i) else { continue };
            staged.push_back(PooledDatagram {
                slot,
                received: envelope.received(),
                // Does not truncate: a slot is shorter than 65,536 bytes.
                length: envelope.length as u16,
                line,
                truncated: envelope.is_truncated(),
            });
        }
        for (i, slot) in self.slots.iter_mut().enumerate() {
            self.envelopes.address(i, slot.start(), SLOT_BYTES);
        }
    }
}
