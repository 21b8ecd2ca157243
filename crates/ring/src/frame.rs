//! Frames: a header word in band, then the bytes, aligned to 8 or to cache lines.
//!
//! ```text
//! bit 0      32     40          64
//!     length | kind | epoch      |  one word, stored last and whole: nonzero means committed
//! ```
//!
//! A reader at a frame boundary finds either a committed header or zero, never anything else: before a header is
//! stored, the word behind its frame is set to zero.

use crate::atomics::Ordering;
use std::fmt;
use std::ops::Deref;

use crate::layout::Framing;
use crate::memory::{FRAME_HEADER, Memory};
use crate::words;

/// Bytes of the word that follows the newest frame.
pub(crate) const TERMINATOR: u64 = 8;
/// Bits of the epoch in a header.
pub(crate) const EPOCH_MASK: u32 = (1 << 24) - 1;
/// The only kind so far; not zero, so that the header of an empty frame is not zero either.
const DATA: u64 = 1 << 32;
const LENGTH_AND_KIND: u64 = (1 << 40) - 1;

/// A position in a ring's stream: bytes since its first frame, headers and padding included. It only grows, also across
/// a change of publisher, and is always a multiple of 8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The header bits that all frames of one publisher share: everything but the length.
#[inline]
pub(crate) fn stamp(epoch: u32) -> u64 {
    u64::from(epoch & EPOCH_MASK) << 40 | DATA
}

/// The alignment of a ring's frames, less one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grain(usize);

impl Grain {
    pub(crate) const fn of(framing: Framing) -> Self {
        Self(framing.align() - 1)
    }

    /// Bytes that a frame of `len` bytes takes in the ring, header and padding included.
    #[inline]
    pub(crate) fn frame_size(self, len: usize) -> usize {
        (len + FRAME_HEADER + self.0) & !self.0
    }

    /// Whether a frame can start at `position`.
    pub(crate) fn is_boundary(self, position: u64) -> bool {
        position & self.0 as u64 == 0
    }
}

/// The length in a header, if the header is a committed frame's and the length is at most `max_frame`. One
/// comparison is enough: zero and other kinds yield huge values.
#[inline]
pub(crate) fn committed_len(header: u64, max_frame: usize) -> Option<usize> {
    let len = (header & LENGTH_AND_KIND).wrapping_sub(DATA);
    (len <= max_frame as u64).then_some(len as usize)
}

#[inline]
pub(crate) fn epoch(header: u64) -> u32 {
    (header >> 40) as u32
}

/// Why a walk over committed frames ended early: the word at this position is neither a frame's header nor zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) position: u64,
    pub(crate) header: u64,
}

/// Walks over committed frames from `start` to the first word that is no header, for at most `most` bytes. Calls
/// `visit` with each frame's position. Returns the position behind the last frame.
pub(crate) fn walk(
    memory: &Memory,
    start: u64,
    (grain, max_frame): (Grain, usize),
    most: usize,
    mut visit: impl FnMut(u64),
) -> Result<u64, Broken> {
    let mut position = start;
    while position - start < most as u64 {
        // Acquire pairs with the release store of `commit`: the frames before this one are whole.
        let header = memory.header(position).load(Ordering::Acquire);
        let Some(len) = committed_len(header, max_frame) else {
            return if header == 0 { Ok(position) } else { Err(Broken { position, header }) };
        };
        visit(position);
        position += grain.frame_size(len) as u64;
    }
    Ok(position)
}

/// A committed frame: borrowed in place from shared memory, or the subscriber's copy on a ring where the publisher may
/// overwrite it. Valid until the next call of [`Subscriber::next`](crate::Subscriber::next).
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) position: Position,
    pub(crate) epoch: u32,
}

impl<'a> Frame<'a> {
    /// Returns the frame's position in the ring's stream.
    #[inline]
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// Returns the epoch of the publisher that wrote the frame: 1 for the ring's first, one more for each that
    /// continued it (modulo 2²⁴).
    #[inline]
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Returns the frame's bytes, for as long as the subscriber is borrowed.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Copies the frame to the start of `to`, in 8-byte moves while it is short, and returns the number of bytes
    /// copied: the length of the frame or of `to`, whichever is less.
    #[inline]
    pub fn copy_to(&self, to: &mut [u8]) -> usize {
        words::copy_out(self.bytes, to)
    }
}

impl Deref for Frame<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl fmt::Debug for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frame")
            .field("position", &self.position.0)
            .field("epoch", &self.epoch)
            .field("len", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_read_back() {
        for (len, epoch_in) in [(0, 1), (1, 7), (1500, EPOCH_MASK), (u32::MAX as usize, 0)] {
            let header = stamp(epoch_in) | len as u64;
            assert_eq!(committed_len(header, u32::MAX as usize), Some(len));
            assert_eq!(epoch(header), epoch_in);
        }
    }

    #[test]
    fn what_is_no_frame_is_not_read_as_one() {
        for header in [0, 5, 2 << 32, stamp(1) | 101, u64::MAX] {
            assert_eq!(committed_len(header, 100), None, "{header:x}");
        }
    }

    #[test]
    fn sizes_are_aligned_and_hold_the_header() {
        let sizes = |framing| [0, 1, 8, 9, 24, 25, 56, 57].map(|len| Grain::of(framing).frame_size(len));
        assert_eq!(sizes(Framing::Packed), [8, 16, 16, 24, 32, 40, 64, 72]);
        assert_eq!(sizes(Framing::Lines), [64, 64, 64, 64, 64, 64, 64, 128]);
    }
}
