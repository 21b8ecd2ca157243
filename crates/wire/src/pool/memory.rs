//! The slots' memory, and an owned slot.
//!
//! [`Memory`] is one mapping, divided into slots. Each [`Slot`] is the only access to its bytes and keeps the
//! mapping alive, so slots can move to any thread and be dropped in any order. Dropping a slot does not
//! return it to the pool; the mapping ends with its last slot.

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::Error;

/// Size of a slot in bytes: an exchange's datagram fits into an Ethernet frame of 1,500 bytes. Longer datagrams are cut
/// and marked as truncated.
pub const SLOT_BYTES: usize = 2_048;

/// Distance from one slot to the next: a cache line more than a power of two, so that the slots' first lines,
/// all that short datagrams touch, spread over all sets of a cache.
const STRIDE: usize = SLOT_BYTES + 64;

/// Size of a huge page on x86-64, and on ARM with pages of 4 KiB.
const HUGE_PAGE: usize = 2 << 20;

/// The kind of memory pages of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pages {
    /// Pages of the ordinary size, or the kernel's choice.
    #[default]
    Ordinary,
    /// Huge pages as the kernel finds them, because they were requested (`transparent_hugepage`).
    Advised,
    /// Huge pages reserved in advance (`vm.nr_hugepages`).
    Reserved,
}

/// A mapping divided into slots.
#[derive(Debug)]
pub(super) struct Memory {
    start: NonNull<u8>,
    bytes: usize,
    slots: usize,
    pages: Pages,
}

// SAFETY: the mapping belongs to no thread, and its bytes are accessed only through slots. Test:
// `slots_go_to_other_threads_and_outlive_their_pool`.
unsafe impl Send for Memory {}
// SAFETY: as above; `&Memory` returns only numbers.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps memory for `slots` slots and writes to each page once.
    pub(super) fn new(slots: usize, huge_pages: bool) -> Result<Self, Error> {
        let needed = slots * STRIDE;
        let memory = if huge_pages { Self::huge(needed, slots)? } else { Self::ordinary(needed, slots)? };
        for at in (0..memory.bytes).step_by(rustix::param::page_size()) {
            // SAFETY: `at` is inside the mapping, to which no other code has a pointer yet. Volatile: the
            // purpose of the write is to fault the page in. Test: every receive.
            unsafe { memory.start.add(at).write_volatile(0) };
        }
        Ok(memory)
    }

    fn ordinary(bytes: usize, slots: usize) -> Result<Self, Error> {
        let start = map(bytes, MapFlags::PRIVATE).map_err(|cause| Error::Memory { bytes, cause })?;
        Ok(Self { start, bytes, slots, pages: Pages::Ordinary })
    }

    /// Maps reserved huge pages, or else requests huge pages as the kernel finds them.
    fn huge(needed: usize, slots: usize) -> Result<Self, Error> {
        let bytes = needed.next_multiple_of(HUGE_PAGE);
        if let Ok(start) = map(bytes, MapFlags::PRIVATE | MapFlags::HUGETLB) {
            return Ok(Self { start, bytes, slots, pages: Pages::Reserved });
        }
        // No explicit alignment: kernels from 6.7 on align large mappings; older ones waste at most the first
        // and the last huge page.
        let mut memory = Self::ordinary(bytes, slots)?;
        // SAFETY: the range is the whole of a mapping that is owned here; the advice changes no content.
        // Test: `huge_pages_are_asked_for`.
        if unsafe { madvise(memory.start.as_ptr().cast(), bytes, Advice::LinuxHugepage) }.is_ok() {
            memory.pages = Pages::Advised;
        }
        Ok(memory)
    }

    pub(super) fn pages(&self) -> Pages {
        self.pages
    }

    /// Creates all slots of a mapping; called once per mapping.
    pub(super) fn slots(memory: &Arc<Self>) -> Vec<Slot> {
        debug_assert_eq!(Arc::strong_count(memory), 1, "the slots are made once");
        (0..memory.slots)
            .map(|number| Slot {
                // SAFETY: `number` is below the count for which the mapping was made, so the slot lies inside
                // the mapping, and no two numbers give the same bytes. Test: `slots_do_not_overlap`.
                start: unsafe { memory.start.add(number * STRIDE) },
                home: Some(Arc::clone(memory)),
            })
            .collect()
    }
}

fn map(bytes: usize, flags: MapFlags) -> Result<NonNull<u8>, std::io::Error> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a fresh private mapping at an address that the kernel chooses touches no existing memory. Test:
    // every receive.
    let start: *mut c_void = unsafe { mmap_anonymous(ptr::null_mut(), bytes, access, flags) }?;
    NonNull::new(start.cast()).ok_or_else(|| std::io::ErrorKind::OutOfMemory.into())
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: this is the mapping from `map`, and it ends here: every slot holds an `Arc` of `self`, so
        // no slot is left. Test: `slots_go_to_other_threads_and_outlive_their_pool`.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Memory for one datagram, owned.
#[derive(Debug)]
pub(super) struct Slot {
    start: NonNull<u8>,
    /// The mapping that contains the slot; none for a slot on the heap.
    home: Option<Arc<Memory>>,
}

// SAFETY: a slot is the only access to its bytes, so the bytes move with it. Test:
// `slots_go_to_other_threads_and_outlive_their_pool`.
unsafe impl Send for Slot {}
// SAFETY: `&Slot` permits only reads of the bytes. Test: as above.
unsafe impl Sync for Slot {}

/// Layout of a slot on the heap.
const HEAP: Layout = Layout::new::<[u8; SLOT_BYTES]>();

impl Slot {
    /// Allocates a slot on the heap. Its bytes are uninitialized.
    pub(super) fn on_heap() -> Self {
        // SAFETY: the layout is not empty. Test: `datagrams_arrive_in_slots_of_every_kind`.
        let start = unsafe { alloc(HEAP) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(HEAP) };
        Self { start, home: None }
    }

    /// Returns `true` if the slot is part of a pool's memory.
    #[inline]
    pub(super) fn is_pooled(&self) -> bool {
        self.home.is_some()
    }

    /// Returns a pointer to its [`SLOT_BYTES`] bytes, for writing.
    #[inline]
    pub(super) fn start(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Copies as much of `bytes` as fits and returns the number of bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> usize {
        let length = bytes.len().min(SLOT_BYTES);
        // SAFETY: at most a slot's length, into bytes that are owned here, so `bytes` does not overlap them.
        // Test: `what_is_put_comes_out_unchanged`.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.as_ptr(), length) };
        length
    }

    /// Returns the first `length` bytes. Only the pool sets `length`: the number of bytes written.
    #[inline]
    pub(super) fn bytes(&self, length: usize) -> &[u8] {
        debug_assert!(length <= SLOT_BYTES);
        // SAFETY: at most a slot's bytes, all of them written: by the kernel (`loaded.rs` passes on the
        // length that the kernel reported) or by `write`. They do not change while `self` is borrowed. Test:
        // `datagrams_arrive_in_slots_of_every_kind`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), length.min(SLOT_BYTES)) }
    }
}

impl Drop for Slot {
    #[inline]
    fn drop(&mut self) {
        if self.home.is_none() {
            // SAFETY: a slot without a home came from `on_heap`, with this layout. Test:
            // `datagrams_arrive_in_slots_of_every_kind`.
            unsafe { dealloc(self.start.as_ptr(), HEAP) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_do_not_overlap() {
        let memory = Arc::new(Memory::new(100, false).unwrap());
        let mut slots = Memory::slots(&memory);
        for (number, slot) in slots.iter_mut().enumerate() {
            assert_eq!(slot.write(&[number as u8; SLOT_BYTES + 1]), SLOT_BYTES, "what is too long is cut");
        }
        for (number, slot) in slots.iter().enumerate() {
            assert!(slot.bytes(SLOT_BYTES).iter().all(|byte| *byte == number as u8), "slot {number}");
        }
    }

    #[test]
    fn slots_go_to_other_threads_and_outlive_their_pool() {
        let memory = Arc::new(Memory::new(3, false).unwrap());
        let mut slots = Memory::slots(&memory);
        let mut last = slots.pop().unwrap();
        drop((memory, slots));
        let read = std::thread::spawn(move || {
            let length = last.write(b"tape");
            last.bytes(length).to_vec()
        });
        assert_eq!(read.join().unwrap(), b"tape");
    }

    #[test]
    fn huge_pages_are_asked_for() {
        let memory = Arc::new(Memory::new(10, true).unwrap());
        assert_eq!(memory.bytes, HUGE_PAGE);
        // Kernels without huge pages return ordinary ones.
        assert!(matches!(memory.pages(), Pages::Advised | Pages::Reserved | Pages::Ordinary));
        let mut slots = Memory::slots(&memory);
        assert_eq!(slots[9].write(b"tape"), 4);
        assert_eq!(slots[9].bytes(4), b"tape");
    }
}
