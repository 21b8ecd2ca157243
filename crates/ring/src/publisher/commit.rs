//! Claiming space and making frames visible, in either framing.

#![allow(unsafe_code)]

use crate::atomics::Ordering;

use super::PublisherOf;
use crate::discipline::Discipline;
use crate::frame::{Grain, Position, TERMINATOR};
use crate::layout::Framing;
use crate::{Refused, waiting};

/// The framing as a constant, so that each framing has its own code: a check at every step costs the packed one a
/// third.
pub(super) const PACKED: bool = false;
/// See [`PACKED`].
pub(super) const LINES: bool = true;
/// Bytes of a cache line, to which frames are aligned in [`Framing::Lines`].
const LINE: u64 = Framing::Lines.align() as u64;
/// Bytes behind the newest frame whose lines are cleared after its commit: eight lines. The stores wait for the
/// lines to arrive from the core that read them last, and the following frames find them there. With fewer lines
/// the next commit waits; more lines gain nothing up to 10 million messages a second (measured on prototypes:
/// 153 ns against 227 without).
const AHEAD: u64 = 8 * LINE;

/// Bytes behind the newest frame where lines are prefetched for writing, before anything is stored there: 32 lines.
/// Stores leave in order, so a store whose line is still with the subscriber delays all stores behind it. Worth
/// 40 % of the throughput on lines of their own; where frames are packed it gains nothing, and is left out.
const FETCHED_AHEAD: u64 = 32 * LINE;

impl<D: Discipline> PublisherOf<D> {
    /// Makes `frames` frames visible by storing the first one's header: those from the position up to the last,
    /// which is at `last` and takes `last_size` bytes. The headers between are already stored.
    ///
    /// # Safety
    /// All of it was reserved, the last frame included, with the word behind it.
    #[inline(always)]
    pub(crate) unsafe fn commit(
        &mut self,
        first_len: usize,
        last: u64,
        last_size: usize,
        frames: u64,
    ) -> Position {
        // SAFETY: the caller's promise.
        unsafe {
            if self.lines {
                self.commit_on_lines(first_len, last, last_size, frames)
            } else {
                self.commit_as::<PACKED>(first_len, last, last_size, frames)
            }
        }
    }

    /// Out of line, so that the packed path stays short.
    ///
    /// # Safety
    /// As for [`commit`](Self::commit).
    #[inline(never)]
    unsafe fn commit_on_lines(
        &mut self,
        first_len: usize,
        last: u64,
        last_size: usize,
        frames: u64,
    ) -> Position {
        // SAFETY: the caller's promise.
        unsafe { self.commit_as::<LINES>(first_len, last, last_size, frames) }
    }

    /// # Safety
    /// As for [`commit`](Self::commit).
    #[inline(always)]
    unsafe fn commit_as<const FRAMING: bool>(
        &mut self,
        first_len: usize,
        last: u64,
        last_size: usize,
        frames: u64,
    ) -> Position {
        let (start, end) = (self.position, last + last_size as u64);
        if FRAMING == PACKED || self.must_clear(end) {
            // SAFETY: the frame's size is a multiple of 8 and far below the capacity, because it was reserved.
            // Without this store a subscriber reads an old word as a header: the property test in `tests/oracle.rs`
            // fails.
            unsafe { self.memory.terminator(last, last_size) }.store(0, Ordering::Relaxed);
        }
        // Release pairs with the acquire load in `Subscriber::next`: a subscriber that sees the header sees all
        // stores before it.
        self.memory.header(start).store(self.header_word(first_len), Ordering::Release);
        self.position = end;
        // Wrapping: the count comes from the segment when a ring is continued.
        self.frames = self.frames.wrapping_add(frames);
        if FRAMING == LINES {
            self.clear_ahead();
            self.memory.fetch_to_write(end + FETCHED_AHEAD);
        }
        if self.wake_on_commit {
            waiting::wake_sleepers(&self.memory.subscribers().waiters);
        }
        Position(start)
    }

    /// Ends a frame at the position without making it visible: [`show_hidden`](Self::show_hidden) does that. As in a
    /// batch, the headers of hidden frames are stored at once, except that of the first.
    ///
    /// # Safety
    /// As for [`commit`](Self::commit).
    #[inline(always)]
    pub(crate) unsafe fn hide(&mut self, len: usize, size: usize) -> Position {
        let (start, end) = (self.position, self.position + size as u64);
        if !self.lines || self.must_clear(end) {
            // SAFETY: as in `commit_as`.
            unsafe { self.memory.terminator(start, size) }.store(0, Ordering::Relaxed);
        }
        let word = self.header_word(len);
        if self.hidden.1 == 0 {
            self.hidden = (start, word);
        } else {
            // Relaxed: a subscriber gets here only through the first hidden header, which is stored last and releases
            // this.
            self.memory.header(start).store(word, Ordering::Relaxed);
        }
        self.position = end;
        self.frames = self.frames.wrapping_add(1);
        if self.lines {
            self.clear_ahead();
            self.memory.fetch_to_write(end + FETCHED_AHEAD);
        }
        Position(start)
    }

    /// Stores the header of the first hidden frame, if there is one: all hidden frames are then visible.
    #[inline]
    pub(super) fn show_hidden(&mut self) {
        let (start, word) = std::mem::take(&mut self.hidden);
        if word != 0 {
            // Release pairs with the acquire load in `Subscriber::next`, as in `commit_as`.
            self.memory.header(start).store(word, Ordering::Release);
        }
    }

    /// Claims, copies and commits: [`publish`](Self::publish) with the framing known.
    #[inline(always)]
    pub(super) fn publish_as<const FRAMING: bool>(&mut self, bytes: &[u8]) -> Result<Position, Refused> {
        let size = self.reserve_as::<FRAMING>(self.position, bytes.len())?;
        let start = self.position;
        // SAFETY: space for exactly these bytes, rounded up to 8, and for the word behind them is reserved, and
        // nobody reads it yet.
        unsafe {
            self.memory.fill(start, bytes);
            Ok(self.commit_as::<FRAMING>(bytes.len(), start, size, 1))
        }
    }

    /// Out of line, as for commits.
    #[inline(never)]
    pub(super) fn publish_on_lines(&mut self, bytes: &[u8]) -> Result<Position, Refused> {
        self.publish_as::<LINES>(bytes)
    }

    /// [`reserve`](Self::reserve) with the framing known.
    #[inline(always)]
    pub(super) fn reserve_as<const FRAMING: bool>(&mut self, at: u64, len: usize) -> Result<usize, Refused> {
        if len > self.max_frame {
            return Err(Refused::TooLong);
        }
        let size = Grain::of(if FRAMING == LINES { Framing::Lines } else { Framing::Packed }).frame_size(len);
        let end = at + size as u64;
        if end + TERMINATOR > self.soft_limit {
            self.make_room(end + TERMINATOR)?;
        }
        if FRAMING == LINES {
            self.claimed = self.claimed.max(end);
        }
        Ok(size)
    }

    /// Out of line, as for commits.
    #[inline(never)]
    pub(super) fn reserve_on_lines(&mut self, at: u64, len: usize) -> Result<usize, Refused> {
        self.reserve_as::<LINES>(at, len)
    }

    /// Whether the line at `end` may start with something other than zero. Marks it as cleared; the caller must
    /// clear it then.
    #[inline(always)]
    fn must_clear(&mut self, end: u64) -> bool {
        // Claims beyond `end` are aborted, and their bytes may be where a line starts.
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

    /// Clears the starts of the next lines, as far as the limit certainly allows.
    #[inline(always)]
    fn clear_ahead(&mut self) {
        let until = (self.position + AHEAD).min(self.limit);
        while self.cleared < until {
            // Relaxed: a subscriber gets here only through the header before it, which is stored later and releases
            // this.
            self.memory.header(self.cleared).store(0, Ordering::Relaxed);
            self.cleared += LINE;
        }
    }
}
