//! A party's view of the segment: the same operations as on the mapped segment, on loom's words.
//!
//! A frame's words are atomics, because any of them can be a header's in another lap. The publisher stores to them
//! relaxed; a subscriber of a gated ring reads them as plain memory ([`Memory::words`]), so that loom finds every store
//! that is not ordered before or after the read, whatever value it sees.
//!
//! No slice can be made of such words. A claim is lent as bytes of its own, which are stored to the words before
//! anything else is done to the frame; a committed frame is lent as `len` zeros, and the model of a reader takes
//! [`Memory::words`] while it has the frame.

#![allow(unsafe_code)]

use std::cell::RefCell;
use std::sync::Arc;

use crate::Error;
use crate::atomics::{AtomicU64, Ordering};
use crate::lines::{PublisherLines, SubscriberLines};
use crate::segment::{Segment, Shared};

/// Bytes of a frame's header: one word, in band.
pub(crate) const FRAME_HEADER: usize = 8;

/// As in the real file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Publisher,
    Subscriber,
    Observer,
}

/// As in the real file.
#[derive(Debug)]
pub(crate) struct Memory {
    shared: Arc<Shared>,
    /// The bytes of a claim, and its position.
    claimed: RefCell<Option<(u64, Vec<u8>)>>,
}

impl Memory {
    pub(crate) fn map(segment: &Segment, _: Access) -> Result<Self, Error> {
        Ok(Self { shared: Arc::clone(&segment.file.shared), claimed: RefCell::default() })
    }

    pub(crate) fn lock(&self, _: &Segment) -> Result<(), Error> {
        Ok(())
    }

    pub(crate) fn publisher(&self) -> &PublisherLines {
        &self.shared.publisher
    }

    pub(crate) fn subscribers(&self) -> &SubscriberLines {
        &self.shared.subscribers
    }

    pub(crate) fn header(&self, position: u64) -> &AtomicU64 {
        self.settle_claim();
        self.word(position)
    }

    /// # Safety
    /// None is needed; the real one has conditions.
    pub(crate) unsafe fn body(&self, _: u64, len: usize) -> &[u8] {
        static NOTHING: [u8; 256] = [0; 256];
        &NOTHING[..len]
    }

    /// # Safety
    /// As for `body`.
    pub(crate) unsafe fn body_mut(&mut self, position: u64, len: usize) -> &mut [u8] {
        self.settle_claim();
        &mut self.claimed.get_mut().insert((position, vec![0; len])).1
    }

    pub(crate) fn copy_unsettled(&self, position: u64, to: &mut [u64]) {
        for (at, word) in to.iter_mut().enumerate() {
            *word = self.body_word(position, at).load(Ordering::Relaxed);
        }
    }

    /// # Safety
    /// As for `body`.
    pub(crate) unsafe fn fill(&mut self, position: u64, bytes: &[u8]) {
        self.settle_claim();
        self.store_bytes(position, bytes);
    }

    /// # Safety
    /// As for `body`.
    pub(crate) unsafe fn terminator(&self, position: u64, size: usize) -> &AtomicU64 {
        self.settle_claim();
        self.word(position + size as u64)
    }

    pub(crate) fn fetch_to_write(&self, _: u64) {}

    /// The words of the frame of `len` bytes at `position`, as the borrower of the frame reads them.
    pub(crate) fn words(&self, position: u64, len: usize) -> Vec<u64> {
        (0..len.div_ceil(8)).map(|at| self.body_word(position, at).plain()).collect()
    }

    fn settle_claim(&self) {
        if let Some((position, bytes)) = self.claimed.take() {
            self.store_bytes(position, &bytes);
        }
    }

    fn store_bytes(&self, position: u64, bytes: &[u8]) {
        for (at, bytes) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            self.body_word(position, at).store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
    }

    fn body_word(&self, position: u64, at: usize) -> &AtomicU64 {
        self.word(position + (FRAME_HEADER + 8 * at) as u64)
    }

    fn word(&self, position: u64) -> &AtomicU64 {
        &self.shared.data[(position / 8) as usize % self.shared.data.len()]
    }
}
