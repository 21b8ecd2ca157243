//! Slots that the kernel is about to fill.

#![allow(unsafe_code)]

use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use tapeline_nanos::Nanos;

use super::memory::{SLOT_BYTES, Slot};
use crate::udp::Envelopes;

/// Slots with the headers of a `recvmmsg`: slot `i` belongs to header `i`.
pub(super) struct Loaded {
    slots: Vec<Slot>,
    envelopes: Envelopes,
    most: usize,
}

/// A slot that was filled.
pub(super) struct Arrival {
    pub(super) slot: Slot,
    pub(super) length: usize,
    pub(super) received: Option<Nanos>,
    pub(super) truncated: bool,
}

impl Loaded {
    /// Room for `most` slots; none is loaded.
    pub(super) fn new(most: usize) -> Self {
        Self { slots: Vec::with_capacity(most), envelopes: Envelopes::new(most), most }
    }

    /// Slots that are loaded.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Slots for which there is room.
    pub(super) fn room(&self) -> usize {
        self.most - self.slots.len()
    }

    /// Loads a slot behind those that are there; there must be room.
    #[inline]
    pub(super) fn load(&mut self, mut slot: Slot) {
        self.envelopes.address(self.slots.len(), slot.start(), SLOT_BYTES);
        self.slots.push(slot);
    }

    /// Takes what is there, up to one datagram a loaded slot, without waiting: how many, and the kernel's drop count where
    /// it came with them. Costs one system call.
    pub(super) fn fill(&mut self, fd: BorrowedFd<'_>) -> Result<(usize, Option<u32>), Errno> {
        // SAFETY: as many envelopes are used as slots are loaded; each was addressed to its own slot, of `SLOT_BYTES`,
        // when that was loaded or moved up, and the slots are owned here. Test:
        // `datagrams_arrive_in_slots_of_every_kind`.
        let filled = unsafe { self.envelopes.receive(fd, self.slots.len()) }?;
        let last = filled.checked_sub(1).and_then(|last| self.envelopes.envelope(last));
        Ok((filled, last.and_then(|envelope| envelope.dropped())))
    }

    /// Hands over all that the last fill filled, in the order of arrival, and moves the others up.
    ///
    /// Moving up costs some 40 ns where one of 64 slots was filled, beside a system call of a microsecond.
    #[inline]
    pub(super) fn unload(&mut self, mut take: impl FnMut(Arrival)) {
        let filled = self.envelopes.filled().min(self.slots.len());
        for (i, slot) in self.slots.drain(..filled).enumerate() {
            let Some(envelope) = self.envelopes.envelope(i) else { continue };
            take(Arrival {
                slot,
                length: envelope.length,
                received: envelope.received(),
                truncated: envelope.is_truncated(),
            });
        }
        for (i, slot) in self.slots.iter_mut().enumerate() {
            self.envelopes.address(i, slot.start(), SLOT_BYTES);
        }
    }
}
