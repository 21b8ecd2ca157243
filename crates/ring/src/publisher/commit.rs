//! Making frames visible, in either framing.

#![allow(unsafe_code)]

use crate::atomics::Ordering;

use super::PublisherOf;
use crate::discipline::Discipline;
use crate::frame::Position;
use crate::layout::Framing;
use crate::waiting;

/// Bytes of a cache line, on which frames lie in [`Framing::Lines`].
const LINE: u64 = Framing::Lines.align() as u64;
/// Bytes behind the newest frame whose lines are cleared after its commit: eight lines. The stores wait for the lines to
/// come from whoever read them last, and the frames that follow find them there. With fewer the next commit waits, with
/// more nothing is won up to 10 million messages a second (measured on prototypes: 153 ns against 227 without).
const AHEAD: u64 = 8 * LINE;

impl<D: Discipline> PublisherOf<D> {
    /// Makes `frames` frames visible by storing the first one's header: those from the position up to the last, which is
    /// at `last` and takes `last_size` bytes. The headers between are in place.
    ///
    /// # Safety
    /// All of it was reserved, the last frame included, with the word behind it.
    #[inline]
    pub(crate) unsafe fn commit(
        &mut self,
        first_len: usize,
        last: u64,
        last_size: usize,
        frames: u64,
    ) -> Position {
        let (start, end) = (self.position, last + last_size as u64);
        if !self.lines || self.must_clear(end) {
            // SAFETY: the frame's size is a multiple of 8 and far below the capacity, because it was reserved. Without
            // this store a subscriber reads an old word as a header: the property test in `tests/oracle.rs` breaks.
            unsafe { self.memory.terminator(last, last_size) }.store(0, Ordering::Relaxed);
        }
        // Release pairs with the acquire load in `Subscriber::next`: who sees the header sees everything before it.
        self.memory.header(start).store(self.header_word(first_len), Ordering::Release);
        self.position = end;
        // Wrapping: the count comes out of a segment when a ring is continued.
        self.frames = self.frames.wrapping_add(frames);
        if self.lines {
            self.clear_ahead();
        }
        if self.wake_on_commit {
            waiting::wake_sleepers(&self.memory.subscribers().waiters);
        }
        Position(start)
    }

    /// Whether the line at `end` may start with something other than zero. Counts on it being cleared then.
    #[inline]
    fn must_clear(&mut self, end: u64) -> bool {
        // What was claimed beyond is aborted, and its bytes may stand where a line starts.
        if self.claimed > end {
            self.cleared = self.cleared.min(end);
        }
        self.claimed = end;
        let must = self.cleared <= end;
        if must {
            self.cleared = end + LINE;
        }
        must
    }

    /// Clears the starts of the next lines, as far as there is room for certain.
    #[inline]
    fn clear_ahead(&mut self) {
        let until = (self.position + AHEAD).min(self.limit);
        while self.cleared < until {
            // Relaxed: a subscriber gets here only by the header before it, which is stored later and releases this.
            self.memory.header(self.cleared).store(0, Ordering::Relaxed);
            self.cleared += LINE;
        }
    }
}
