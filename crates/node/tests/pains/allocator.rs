//! The memory that the process has at this moment.
//!
//! What keeps it sound: each call is passed on to the system's allocator with the arguments that it came with; the counter beside it is an
//! atomic of its own. `leaks.rs` breaks without the counts.

#![allow(unsafe_code, reason = "an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};

/// The system's allocator, with a count.
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

/// Statistics: nothing else is read in their order.
static LIVE: AtomicIsize = AtomicIsize::new(0);

/// Bytes that are allocated and not freed.
pub(crate) fn live_bytes() -> isize {
    LIVE.load(Ordering::Relaxed)
}

fn count(bytes: usize, sign: isize) {
    LIVE.fetch_add(sign * bytes.cast_signed(), Ordering::Relaxed);
}

// SAFETY: each method passes its arguments on to `System` unchanged and returns its answer; counting allocates nothing and cannot unwind.
// Every test of this program breaks without it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller keeps `alloc`'s contract, and it is `System`'s. Every test of this program breaks without it.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: the memory came from `System` with this layout, as the caller states. Every test of this program breaks without it.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: as in `alloc`. Every test of this program breaks without it.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, 1);
        count(layout.size(), -1);
        // SAFETY: the memory came from `System` with this layout, and the size is sound, as the caller states. Every test of this program
        // breaks without it.
        unsafe { System.realloc(memory, layout, size) }
    }
}
