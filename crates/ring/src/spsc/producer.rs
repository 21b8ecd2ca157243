//! The producing side: claims slots, fills them in place, makes them visible.

#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::slots::Slots;
use super::{GONE, Shared};
use crate::atomics::{AtomicU64, Ordering};

/// The single producer of a queue. Dropping it ends the queue: the consumer reads the remaining records, then gets the
/// end.
#[derive(Debug)]
pub struct Producer<T: Send> {
    shared: Arc<Shared<T>>,
    /// Records made visible.
    next: u64,
    /// Slots of records below this are known to be free.
    limit: u64,
}

/// Why no slot could be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueueRefused {
    /// The queue is full. Try again later.
    #[error("the queue is full")]
    Full,
    /// The consumer is gone. Records that it has not read stay unread.
    #[error("the queue's consumer has gone")]
    Closed,
}

impl<T: Send> Producer<T> {
    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        let limit = shared.slots.count();
        Self { shared, next: 0, limit }
    }

    /// Claims the next slot, to be written in place. The slot contains the record of the previous lap.
    ///
    /// Costs a comparison. Reads what the other side writes only once a lap or when the queue is full.
    ///
    /// # Errors
    /// [`QueueRefused::Full`] and [`QueueRefused::Closed`] are outcomes. A claim notices that the consumer is gone at the
    /// latest when the queue is full; [`is_closed`](Self::is_closed) notices it at once.
    #[inline(always)]
    pub fn claim(&mut self) -> Result<SlotClaim<'_, T>, QueueRefused> {
        if self.next == self.limit {
            self.look()?;
        }
        let Self { shared, next, .. } = self;
        // SAFETY: `next` is below `limit`, so the slot is this side's until `next` is published, which ends the
        // claim; without the limit, `models::spsc` finds the consumer's record changed. One slot never passes the
        // end.
        let record = unsafe { &mut shared.slots.lend(*next, 1)[0] };
        Ok(SlotClaim { record, after: After { slots: &shared.slots, written: &shared.written.0, next } })
    }

    /// Claims as many free adjacent slots as there are, from 1 up to `most`. They become visible together.
    ///
    /// # Errors
    /// As [`claim`](Self::claim).
    ///
    /// # Panics
    /// If `most` is 0.
    #[inline]
    pub fn claim_batch(&mut self, most: usize) -> Result<SlotBatch<'_, T>, QueueRefused> {
        assert!(most > 0, "a batch of no records");
        if self.limit - self.next < most as u64 {
            // Slots known to be free are used first; a refusal counts only if there are none.
            let looked = self.look();
            if self.next == self.limit {
                looked?;
            }
        }
        let Self { shared, next, limit } = self;
        let len = (most as u64).min(*limit - *next).min(shared.slots.up_to_end(*next));
        // SAFETY: `next + len` is at most `limit`, so the slots are this side's until `next` passes them, which ends the
        // batch (found as in `claim`); the end of the memory is respected.
        let records = unsafe { shared.slots.lend(*next, len) };
        Ok(SlotBatch { records, after: After { slots: &shared.slots, written: &shared.written.0, next } })
    }

    /// Writes a record into the next slot and makes it visible. Write a large record in place instead: copying a struct
    /// built elsewhere waits for the stores that built it.
    ///
    /// # Errors
    /// As [`claim`](Self::claim).
    #[inline(always)]
    pub fn push(&mut self, record: T) -> Result<(), QueueRefused>
    where
        T: Copy,
    {
        let mut claim = self.claim()?;
        *claim = record;
        claim.commit();
        Ok(())
    }

    /// Returns `true` if the consumer is gone. Fetches the consumer's cache line.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        // Acquire pairs with the consumer's last release: a caller that acts on the answer sees what the consumer
        // did before.
        self.shared.read.0.load(Ordering::Acquire) & GONE != 0
    }

    /// Returns the number of slots.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.shared.slots.count() as usize
    }

    /// Returns the number of records made visible since the queue was created.
    #[must_use]
    pub fn pushed(&self) -> u64 {
        self.next
    }

    /// Reads the consumer's index.
    #[inline(never)]
    fn look(&mut self) -> Result<(), QueueRefused> {
        // Acquire pairs with the consumer's release: all its accesses to the slots that it gives back are over.
        let read = self.shared.read.0.load(Ordering::Acquire);
        if read & GONE != 0 {
            return Err(QueueRefused::Closed);
        }
        self.limit = read + self.shared.slots.count();
        if self.next == self.limit { Err(QueueRefused::Full) } else { Ok(()) }
    }
}

impl<T: Send> Drop for Producer<T> {
    fn drop(&mut self) {
        // Release: the records are visible before the end is; pairs with the consumer's acquire.
        self.shared.written.0.store(self.next | GONE, Ordering::Release);
    }
}

/// The parts that a claim needs for its commit.
#[derive(Debug)]
struct After<'a, T> {
    slots: &'a Slots<T>,
    written: &'a AtomicU64,
    next: &'a mut u64,
}

impl<T> After<'_, T> {
    #[inline(always)]
    fn commit(self, len: u64) {
        self.slots.give_back(*self.next, len);
        *self.next += len;
        // Release: the records are written before the index covers them; pairs with the consumer's acquire.
        self.written.store(*self.next, Ordering::Release);
    }
}

/// A claimed slot that is not visible yet: its record, to be written in place. Dropping it aborts it.
#[derive(Debug)]
#[must_use = "a claim that is not committed is aborted"]
pub struct SlotClaim<'a, T> {
    record: &'a mut T,
    after: After<'a, T>,
}

impl<T> SlotClaim<'_, T> {
    /// Makes the record visible.
    #[inline(always)]
    pub fn commit(self) {
        self.after.commit(1);
    }
}

impl<T> Deref for SlotClaim<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        self.record
    }
}

impl<T> DerefMut for SlotClaim<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        self.record
    }
}

/// Adjacent claimed slots that are not visible yet. Dropping them aborts them.
#[derive(Debug)]
#[must_use = "a batch that is not committed is aborted"]
pub struct SlotBatch<'a, T> {
    records: &'a mut [T],
    after: After<'a, T>,
}

impl<T> SlotBatch<'_, T> {
    /// Makes all records visible at once.
    #[inline]
    pub fn commit(self) {
        self.after.commit(self.records.len() as u64);
    }

    /// Makes the first `len` records visible at once, or all if there are fewer; the rest is discarded.
    #[inline]
    pub fn commit_first(self, len: usize) {
        self.after.commit(len.min(self.records.len()) as u64);
    }
}

impl<T> Deref for SlotBatch<'_, T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        self.records
    }
}

impl<T> DerefMut for SlotBatch<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        self.records
    }
}
