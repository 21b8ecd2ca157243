//! The memory of a queue: slots that one side at a time may touch.
//!
//! The two indices define the owner of a slot: the consumer's from `read` up to `written`, the producer's from
//! there to a lap behind `read`. Each side alone advances its own index, with release, and loads the other's with
//! acquire, so all accesses to a slot are over before the other side begins. `spsc/producer.rs` and
//! `spsc/consumer.rs` ask only for slots that are theirs; the models of `models/spsc.rs` find every access that is
//! not.

#![allow(unsafe_code)]

use std::cell::UnsafeCell;

/// A power of two of slots, each with a live record at all times.
#[derive(Debug)]
pub(super) struct Slots<T>(Box<[UnsafeCell<T>]>);

// SAFETY: each slot is one side's at a time, as the module's documentation says, so its record moves between the
// threads and is never shared by them. `models::spsc` finds an index that is published too early or without its
// ordering.
unsafe impl<T: Send> Sync for Slots<T> {}

impl<T> Slots<T> {
    /// `count` is a power of two.
    pub(super) fn new(count: usize, record: impl FnMut() -> T) -> Self {
        Self(std::iter::repeat_with(record).map(UnsafeCell::new).take(count).collect())
    }

    pub(super) fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// Slots from that of record `from` to the end of the memory.
    #[inline(always)]
    pub(super) fn up_to_end(&self, from: u64) -> u64 {
        self.count() - self.at(from)
    }

    /// The records from number `from` on, for the side that owns them.
    ///
    /// # Safety
    /// All `len` slots are the caller's for as long as the slice lives, `len` is at most `up_to_end(from)`, and the caller
    /// has no other slice of them.
    #[inline(always)]
    #[expect(clippy::mut_from_ref, reason = "the caller gives its word that the slots are its own")]
    pub(super) unsafe fn lend(&self, from: u64, len: u64) -> &mut [T] {
        // SAFETY: inside the box as the caller promises, each slot holds a record, and only the caller touches it.
        unsafe {
            let first = UnsafeCell::raw_get(self.0.as_ptr().add(self.at(from) as usize));
            std::slice::from_raw_parts_mut(first, len as usize)
        }
    }

    /// Ends the use of lent slots. The models check it; on the machine there is nothing to do.
    #[inline(always)]
    pub(super) fn give_back(&self, _from: u64, _len: u64) {}

    #[inline(always)]
    fn at(&self, record: u64) -> u64 {
        record & (self.count() - 1)
    }
}
