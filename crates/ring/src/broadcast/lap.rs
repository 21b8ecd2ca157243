//! What a broadcast subscriber keeps: a copy of the frame that it lends, and its count.

#![allow(unsafe_code)]

use crate::memory::Memory;

/// A broadcast subscriber's own.
#[derive(Debug, Default)]
pub struct Lap {
    /// Whole words, so that a copy is of whole words; grows to the longest frame that has come.
    copy: Vec<u64>,
    /// Frames before the subscriber's position.
    pub(crate) frames: u64,
}

impl Lap {
    /// Copies the `len` bytes behind the header at `position`, whatever is written there meanwhile.
    #[inline]
    pub(crate) fn copy(&mut self, memory: &Memory, position: u64, len: usize) {
        let words = len.div_ceil(8);
        if words > self.copy.len() {
            self.copy.resize(words, 0);
        }
        memory.copy_unsettled(position, &mut self.copy[..words]);
    }

    /// The first `len` bytes of the copy: at most what was copied.
    #[inline]
    pub(crate) fn bytes(&self, len: usize) -> &[u8] {
        debug_assert!(len <= 8 * self.copy.len());
        // SAFETY: `copy` has made room for as many bytes, words are initialised and of any bytes, and the slice borrows
        // `self`.
        unsafe { std::slice::from_raw_parts(self.copy.as_ptr().cast(), len.min(8 * self.copy.len())) }
    }
}
