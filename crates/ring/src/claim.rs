//! Claims: single frames that are not visible yet.

#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut};

use crate::discipline::{Discipline, Gated};
use crate::frame::Position;
use crate::{PublisherOf, Refused};

/// A claimed frame that is not visible yet: `len` bytes of the ring, to be filled in place. Dropping it aborts it.
///
/// Fill the frame field by field. Copying in a struct built elsewhere costs more than ten times as much, because the
/// vector move waits for the stores that built the struct.
#[derive(Debug)]
#[must_use = "a claim that is not committed is aborted"]
pub struct Claim<'a, D: Discipline = Gated> {
    publisher: &'a mut PublisherOf<D>,
    /// Reserved, and at most the ring's longest frame: `new` is called only after `PublisherOf::reserve`.
    len: usize,
    /// Bytes that the frame takes in the ring.
    size: usize,
}

impl<'a, D: Discipline> Claim<'a, D> {
    #[inline(always)]
    pub(crate) fn new(publisher: &'a mut PublisherOf<D>, len: usize, size: usize) -> Self {
        Self { publisher, len, size }
    }

    /// Makes the frame visible and returns its position.
    #[inline(always)]
    pub fn commit(self) -> Position {
        let Self { publisher, len, size } = self;
        let start = publisher.next_position();
        // SAFETY: `len` was reserved, and a shorter frame lies within it.
        unsafe { publisher.commit(len, start, size, 1) }
    }

    /// Makes the frame visible with only its first `len` bytes; the rest of the claim is discarded.
    ///
    /// # Errors
    /// [`Refused::TooLong`] if `len` is more than was claimed; then nothing becomes visible.
    #[inline(always)]
    pub fn commit_prefix(mut self, len: usize) -> Result<Position, Refused> {
        if len > self.len {
            return Err(Refused::TooLong);
        }
        self.len = len;
        self.size = self.publisher.grain.frame_size(len);
        Ok(self.commit())
    }

    /// Ends the frame with its first `len` bytes, but leaves it hidden: it becomes visible together with all frames
    /// behind it at [`show`](PublisherOf::show), at [`flush`](PublisherOf::flush), at the end of the ring, or when a
    /// claim needs more space than is certainly free. Frames that are committed while others are hidden stay hidden
    /// too. For frames that come in bursts: subscribers that poll then touch the publisher's cache lines once for a
    /// burst and not once for a frame. The hidden frames of a publisher that dies are lost.
    ///
    /// # Errors
    /// [`Refused::TooLong`] if `len` is more than was claimed; then there is no frame.
    #[inline(always)]
    pub fn hide_prefix(self, len: usize) -> Result<Position, Refused> {
        if len > self.len {
            return Err(Refused::TooLong);
        }
        let Self { publisher, .. } = self;
        let size = publisher.grain.frame_size(len);
        // SAFETY: `self.len` was reserved, and a shorter frame lies within it.
        Ok(unsafe { publisher.hide(len, size) })
    }
}

impl<D: Discipline> Deref for Claim<'_, D> {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        // SAFETY: `len` bytes are reserved and none of them is committed, so only this claim's borrower touches
        // them.
        unsafe { self.publisher.memory.body(self.publisher.next_position(), self.len) }
    }
}

impl<D: Discipline> DerefMut for Claim<'_, D> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        let start = self.publisher.next_position();
        // SAFETY: as in `deref`; the claim is borrowed mutably, so no other slice of it lives.
        unsafe { self.publisher.memory.body_mut(start, self.len) }
    }
}
