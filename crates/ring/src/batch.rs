//! Batches: several claimed frames that become visible together.

#![allow(unsafe_code)]

use crate::atomics::Ordering;

use crate::discipline::{Discipline, Gated};
use crate::frame::Position;
use crate::{PublisherOf, Refused};

/// Frames that are claimed one after the other and become visible together. Dropping the batch aborts all of them.
///
/// The headers of all frames but the first are stored when they are claimed. They stay invisible because the first
/// header is still zero; [`commit`](Self::commit) stores it last.
#[derive(Debug)]
#[must_use = "a batch that is not committed is aborted"]
pub struct Batch<'a, D: Discipline = Gated> {
    publisher: &'a mut PublisherOf<D>,
    /// Where the next frame's header goes.
    end: u64,
    first_len: usize,
    /// Position and size of the last frame claimed.
    last: (u64, usize),
    frames: u64,
}

impl<'a, D: Discipline> Batch<'a, D> {
    #[inline]
    pub(crate) fn new(publisher: &'a mut PublisherOf<D>) -> Self {
        let end = publisher.next_position();
        Self { publisher, end, first_len: 0, last: (end, 0), frames: 0 }
    }

    /// Claims the next frame of the batch: `len` bytes, to be filled in place.
    ///
    /// # Errors
    /// As [`PublisherOf::claim`]. Frames claimed earlier can still be committed. A batch that fills nearly the
    /// whole ring gets [`Refused::Full`] for every further claim: commit it.
    #[inline]
    pub fn claim(&mut self, len: usize) -> Result<&mut [u8], Refused> {
        let size = self.publisher.reserve(self.end, len)?;
        let start = self.end;
        if self.frames == 0 {
            self.first_len = len;
        } else {
            // Relaxed: a subscriber gets here only after it has seen the first header, which is stored last and
            // releases this.
            self.publisher.memory.header(start).store(self.publisher.header_word(len), Ordering::Relaxed);
        }
        self.frames += 1;
        self.end = start + size as u64;
        self.last = (start, size);
        // SAFETY: the space was reserved, none of it is committed, and the batch lends one frame at a time.
        Ok(unsafe { self.publisher.memory.body_mut(start, len) })
    }

    /// Returns the number of frames in the batch.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Makes all frames visible at once and returns the position of the first. An empty batch does nothing.
    #[inline]
    pub fn commit(self) -> Position {
        if self.frames == 0 {
            return Position(self.end);
        }
        let (last, last_size) = self.last;
        // SAFETY: every frame of the batch was reserved, the last one too.
        unsafe { self.publisher.commit(self.first_len, last, last_size, self.frames) }
    }
}
