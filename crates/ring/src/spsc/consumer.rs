//! The consuming side: reads the available records in place, and releases the slots in batches.

#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::{GONE, Shared};
use crate::atomics::Ordering;

/// The single consumer of a queue. Dropping it closes the queue: from then on the producer is refused.
///
/// Slots are released once an eighth of the queue is read and whenever the queue is found empty, so that the producer's
/// cache line is not fetched for each record. A consumer that stops reading can leave up to an eighth unreleased.
#[derive(Debug)]
pub struct Consumer<T: Send> {
    shared: Arc<Shared<T>>,
    /// Records below this are known to be available.
    limit: u64,
    done: Done,
}

/// The consumer's progress.
#[derive(Debug)]
struct Done {
    /// Records read.
    next: u64,
    /// Records whose slots were released.
    released: u64,
    /// Number of slots released at a time.
    eighth: u64,
}

impl Done {
    /// Releases the slots of all records read.
    #[inline]
    fn release<T>(&mut self, shared: &Shared<T>) {
        self.released = self.next;
        // Release: all accesses to the slots are over; pairs with the producer's acquire.
        shared.read.0.store(self.next, Ordering::Release);
    }
}

/// The result of reading from the queue.
#[derive(Debug)]
#[must_use]
pub enum QueuePoll<R> {
    /// Available records.
    Ready(R),
    /// No record yet.
    Empty,
    /// No more records: the producer is gone and all its records are read.
    Ended,
}

impl<T: Send> Consumer<T> {
    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        let eighth = (shared.slots.count() / 8).max(1);
        Self { shared, limit: 0, done: Done { next: 0, released: 0, eighth } }
    }

    /// Lends the oldest available adjacent records: at least one and at most an eighth of the queue, so that the
    /// producer has free slots while they are read. Dropping the records counts all of them as read.
    #[inline]
    pub fn take(&mut self) -> QueuePoll<Records<'_, T>> {
        self.take_up_to(usize::MAX)
    }

    /// Takes records as [`take`](Self::take) does, but at most `most`.
    ///
    /// # Panics
    /// If `most` is 0.
    #[inline]
    pub fn take_up_to(&mut self, most: usize) -> QueuePoll<Records<'_, T>> {
        assert!(most > 0, "a look for no records");
        match self.look() {
            QueuePoll::Ready(()) => QueuePoll::Ready(self.lend(most as u64)),
            QueuePoll::Empty => QueuePoll::Empty,
            QueuePoll::Ended => QueuePoll::Ended,
        }
    }

    /// Copies the next record out.
    #[inline(always)]
    pub fn pop(&mut self) -> QueuePoll<T>
    where
        T: Copy,
    {
        match self.look() {
            QueuePoll::Ready(()) => QueuePoll::Ready(self.lend(1)[0]),
            QueuePoll::Empty => QueuePoll::Empty,
            QueuePoll::Ended => QueuePoll::Ended,
        }
    }

    /// Releases the slots of all read records without waiting for an eighth. For a consumer that is about to pause.
    pub fn release(&mut self) {
        if self.done.released != self.done.next {
            self.done.release(&self.shared);
        }
    }

    /// Returns the number of slots.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.shared.slots.count() as usize
    }

    /// Returns the number of records read since the queue was created.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.done.next
    }

    /// Whether a record is available. The producer's line is fetched only when all known records are read.
    #[inline(always)]
    fn look(&mut self) -> QueuePoll<()> {
        if self.done.next < self.limit {
            return QueuePoll::Ready(());
        }
        // Acquire pairs with the producer's release: the records are written.
        let written = self.shared.written.0.load(Ordering::Acquire);
        self.limit = written & !GONE;
        if self.done.next < self.limit {
            return QueuePoll::Ready(());
        }
        self.release();
        if written & GONE == 0 { QueuePoll::Empty } else { QueuePoll::Ended }
    }

    /// At least one record must be available.
    #[inline(always)]
    fn lend(&mut self, most: u64) -> Records<'_, T> {
        let Self { shared, limit, done } = self;
        let len = most.min(*limit - done.next).min(done.eighth).min(shared.slots.up_to_end(done.next));
        // SAFETY: below `limit` and before the end, so the slots are this side's until they are given back, which
        // needs what is borrowed here; `models::spsc` finds slots that are given back too early.
        let records = unsafe { shared.slots.lend(done.next, len) };
        Records { records, shared, done }
    }
}

impl<T: Send> Drop for Consumer<T> {
    fn drop(&mut self) {
        // Release pairs with the producer's acquire, as in `release`.
        self.shared.read.0.store(self.done.next | GONE, Ordering::Release);
    }
}

/// Adjacent records, lent in place. They may be changed, or replaced to move them out: the producer finds the
/// contents of its slot a lap later.
#[derive(Debug)]
pub struct Records<'a, T: Send> {
    records: &'a mut [T],
    shared: &'a Shared<T>,
    done: &'a mut Done,
}

impl<T: Send> Deref for Records<'_, T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        self.records
    }
}

impl<T: Send> DerefMut for Records<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        self.records
    }
}

impl<T: Send> Drop for Records<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        let len = self.records.len() as u64;
        self.shared.slots.give_back(self.done.next, len);
        self.done.next += len;
        if self.done.next - self.done.released >= self.done.eighth {
            self.done.release(self.shared);
        }
    }
}
