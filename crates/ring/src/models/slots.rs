//! The memory of a queue for the models: loom sees each slot that a side is lent and gives back.
//!
//! Loom reports an access that is not ordered after every earlier access of the other side. The records themselves
//! are plain memory: all threads of a model run on one thread of the system.

#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::thread::panicking;

use loom::cell;

/// As in the real file.
#[derive(Debug)]
pub(super) struct Slots<T> {
    records: Box<[UnsafeCell<T>]>,
    watches: Box<[cell::UnsafeCell<()>]>,
}

// SAFETY: the threads of a model never run at the same time.
unsafe impl<T: Send> Sync for Slots<T> {}

impl<T> Slots<T> {
    pub(super) fn new(count: usize, record: impl FnMut() -> T) -> Self {
        let records = std::iter::repeat_with(record).map(UnsafeCell::new).take(count).collect();
        let watches = std::iter::repeat_with(|| cell::UnsafeCell::new(())).take(count).collect();
        Self { records, watches }
    }

    pub(super) fn count(&self) -> u64 {
        self.records.len() as u64
    }

    pub(super) fn up_to_end(&self, from: u64) -> u64 {
        self.count() - self.at(from)
    }

    /// # Safety
    /// As in the real file.
    #[expect(clippy::mut_from_ref, reason = "as of the real one")]
    pub(super) unsafe fn lend(&self, from: u64, len: u64) -> &mut [T] {
        self.touch(from, len);
        // SAFETY: the caller's promise, which the watches check.
        unsafe {
            let first = UnsafeCell::raw_get(self.records.as_ptr().add(self.at(from) as usize));
            std::slice::from_raw_parts_mut(first, len as usize)
        }
    }

    pub(super) fn give_back(&self, from: u64, len: u64) {
        self.touch(from, len);
    }

    fn touch(&self, from: u64, len: u64) {
        if panicking() {
            return;
        }
        for record in from..from + len {
            self.watches[self.at(record) as usize].with_mut(|_| ());
        }
    }

    fn at(&self, record: u64) -> u64 {
        record & (self.count() - 1)
    }
}
