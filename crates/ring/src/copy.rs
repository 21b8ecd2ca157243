//! A subscriber's own copy of a frame, for rings whose publisher may overwrite a frame while it is read.

#![allow(unsafe_code)]

use crate::memory::Memory;

/// The copy of one frame. It grows to the longest frame received.
#[derive(Debug, Default)]
pub struct FrameCopy {
    /// Whole words, as they are loaded.
    words: Vec<u64>,
}

impl FrameCopy {
    /// Copies the `len` bytes behind the header at `position`, even while they are overwritten. The caller must
    /// check that the publisher has not passed the subscriber before it uses the copy.
    #[inline]
    pub(crate) fn take(&mut self, memory: &Memory, position: u64, len: usize) {
        let words = len.div_ceil(8);
        if words > self.words.len() {
            self.words.resize(words, 0);
        }
        memory.copy_unsettled(position, &mut self.words[..words]);
    }

    /// The first `len` bytes of the copy: at most what was copied.
    #[inline]
    pub(crate) fn bytes(&self, len: usize) -> &[u8] {
        debug_assert!(len <= 8 * self.words.len());
        // SAFETY: `take` has resized `words` to at least this many bytes, words are initialised and any bytes are
        // valid, and the slice borrows `self`.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), len.min(8 * self.words.len())) }
    }
}

/// A broadcast subscriber's state beyond its position.
#[derive(Debug, Default)]
pub struct Lap {
    /// The frame that the subscriber lends.
    pub(crate) copy: FrameCopy,
    /// Frames before the subscriber's position.
    pub(crate) frames: u64,
}
