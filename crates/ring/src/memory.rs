//! A segment mapped into this process: control lines, and a data area in which no frame wraps.
//!
//! Only this file and `words.rs` make references into the mapping. They are sound because:
//!
//! * The mapping has `data_at + 2 × capacity` bytes and lives exactly as long as [`Memory`]; the data area is mapped
//!   twice in a row, so an offset below `capacity` plus a length up to `capacity` stays inside.
//! * The file has all its bytes allocated (`Segment::create`) and its size checked (`Shape::decode`).
//! * Control words are atomics. Bytes of a frame are plain: the publisher alone writes them, before the release
//!   store of the frame's header; a subscriber reads them after an acquire load of that header and before it
//!   releases the position, and the publisher does not write them again before it has seen that release
//!   (`gate.rs`). Where the publisher need not wait for the release (broadcast rings, rings with a stall limit), a
//!   subscriber makes no reference to them: it loads words ([`Memory::copy_unsettled`]), and uses the copy only if
//!   it has not been passed or evicted since.
//!
//! Another process with write permission can break the last point, as in any shared memory. It then corrupts the
//! bytes of frames; lengths and positions are checked on every read, so it cannot lead a subscriber outside the
//! mapping.

#![allow(unsafe_code)]

use crate::atomics::{AtomicU64, Ordering};
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::slice;

use rustix::mm::{MapFlags, ProtFlags};

use crate::layout::HUGE_PAGE;
use crate::lines::{PublisherLines, SubscriberLines};
use crate::segment::Segment;
use crate::{Error, words};

/// Bytes of a frame's header: one word, in band.
pub(crate) const FRAME_HEADER: usize = 8;

/// Words copied per iteration. The compiler does not unroll a loop of atomic loads; with one word per iteration, a
/// copy takes twice the instructions.
const AT_ONCE: usize = 4;

/// The role of the mapping process, which decides what it may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everything but the header page.
    Publisher,
    /// Only the subscribers' lines.
    Subscriber,
    /// Nothing.
    Observer,
}

/// A mapped segment.
#[derive(Debug)]
pub(crate) struct Memory {
    base: NonNull<u8>,
    bytes: usize,
    capacity: usize,
    publisher_at: usize,
    subscribers_at: usize,
    /// First byte of the data area.
    data: NonNull<u8>,
    /// Maps a position to an offset into the data area: capacity − 8, which also rounds down to a multiple of 8.
    mask: u64,
}

// SAFETY: the mapping belongs to the process, not to a thread; access through the pointers is synchronised as the
// module's documentation says, whichever thread owns the value.
unsafe impl Send for Memory {}

impl Memory {
    /// Maps `segment` with no more rights than `access` needs.
    pub(crate) fn map(segment: &Segment, access: Access) -> Result<Self, Error> {
        let shape = &segment.shape;
        // Spare bytes, so that the start can move to where pages of either size are aligned as in the file.
        let align = if shape.huge_pages { HUGE_PAGE } else { 0 };
        let bytes = align + shape.data_at() + 2 * shape.capacity;
        let system = |errno| Error::system(&segment.path, "map", errno);
        // SAFETY: a fresh private mapping at an address of the kernel's choice touches nothing that exists. It
        // reserves the address range into which the parts are then mapped.
        let base = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::empty(),
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }
        .map_err(system)?;
        let base = NonNull::new(base.cast::<u8>()).ok_or_else(|| system(rustix::io::Errno::NOMEM))?;
        let skipped = if align == 0 { 0 } else { base.as_ptr().align_offset(align) };
        // SAFETY: less than `align` is skipped, so with `data_at` it is below `bytes`.
        let data = unsafe { base.add(skipped + shape.data_at()) };
        let memory = Self {
            base,
            bytes,
            capacity: shape.capacity,
            publisher_at: skipped + shape.publisher_at(),
            subscribers_at: skipped + shape.subscribers_at(),
            data,
            mask: shape.capacity as u64 - 8,
        };
        let read = ProtFlags::READ;
        let write = ProtFlags::READ | ProtFlags::WRITE;
        // Populated, so that the first lap measures the ring and not the kernel's page faults. Not for an observer,
        // which touches a few pages of what may be gigabytes.
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        let flags = if access == Access::Observer { flags } else { flags | MapFlags::POPULATE };
        let (own, table) = match access {
            Access::Publisher => (write, write),
            Access::Subscriber => (read, write),
            Access::Observer => (read, read),
        };
        let (publisher, subscribers, data) = (shape.publisher_at(), shape.subscribers_at(), shape.data_at());
        for (place, len, offset, rights) in [
            (publisher, subscribers - publisher, publisher, own),
            (subscribers, data - subscribers, subscribers, table),
            (data, shape.capacity, data, own),
            (data + shape.capacity, shape.capacity, data, own),
        ] {
            // SAFETY: [place, place + len) lies in the reservation made above, which nothing else uses; the parts do
            // not overlap. On error `memory` is dropped, which unmaps the reservation.
            unsafe {
                rustix::mm::mmap(
                    memory.base.add(skipped + place).as_ptr().cast(),
                    len,
                    rights,
                    flags,
                    segment.file.as_fd(),
                    offset as u64,
                )
            }
            .map_err(system)?;
        }
        if shape.huge_pages && access != Access::Observer {
            memory.lay_on_huge_pages(segment, access)?;
        }
        Ok(memory)
    }

    /// Requests huge pages for the data area. The publisher creates them, and fails if it cannot; a subscriber that
    /// cannot map them reads the same bytes through ordinary pages.
    fn lay_on_huge_pages(&self, segment: &Segment, access: Access) -> Result<(), Error> {
        for copy in 0..2 {
            // SAFETY: the data area is mapped twice in a row. The advice changes how its pages are mapped, and none of
            // its bytes (madvise(2), MADV_COLLAPSE: since Linux 6.1).
            let done = unsafe {
                let start = self.data.add(copy * self.capacity).as_ptr();
                libc::madvise(start.cast(), self.capacity, libc::MADV_COLLAPSE)
            };
            if done != 0 && access == Access::Publisher && copy == 0 {
                let source = std::io::Error::last_os_error();
                return Err(Error::NoHugePages { path: segment.path.clone(), source });
            }
        }
        Ok(())
    }

    /// Locks every page in memory, control lines and frames.
    pub(crate) fn lock(&self, segment: &Segment) -> Result<(), Error> {
        for (start, bytes) in [
            (self.base.as_ptr().wrapping_add(self.publisher_at), size_of::<PublisherLines>()),
            (self.base.as_ptr().wrapping_add(self.subscribers_at), size_of::<SubscriberLines>()),
            (self.data.as_ptr(), 2 * self.capacity),
        ] {
            // SAFETY: the range is mapped as long as `self` is; locking it changes none of its bytes.
            unsafe { rustix::mm::mlock(start.cast(), bytes) }
                .map_err(|errno| Error::system(&segment.path, "lock the memory of", errno))?;
        }
        Ok(())
    }

    /// The lines that the publisher writes. All others have them mapped read-only and must not store to them.
    #[inline]
    pub(crate) fn publisher(&self) -> &PublisherLines {
        // SAFETY: the region is mapped, page-aligned, at least as large as the type (`Shape::publisher_at` and the
        // size assertions in `lines.rs`), lives as long as `self`, and holds atomics, for which any bytes are valid.
        unsafe { self.base.add(self.publisher_at).cast().as_ref() }
    }

    /// The lines that subscribers write. Observers have them mapped read-only and must not store to them.
    #[inline]
    pub(crate) fn subscribers(&self) -> &SubscriberLines {
        // SAFETY: as for `publisher`.
        unsafe { self.base.add(self.subscribers_at).cast().as_ref() }
    }

    /// The word that is or becomes the header of the frame at `position`. Positions are multiples of 8; others,
    /// which only a damaged segment can contain, are rounded down.
    #[inline]
    pub(crate) fn header(&self, position: u64) -> &AtomicU64 {
        // SAFETY: the offset is below the capacity and a multiple of 8 (the capacity is a power of two, at least 4096),
        // so the word is inside and aligned; any bytes are a valid atomic.
        unsafe { self.data.add((position & self.mask) as usize).cast().as_ref() }
    }

    /// The `len` bytes behind the header at `position`.
    ///
    /// # Safety
    /// `len` is at most `capacity` − 8. The frame is committed and not released on a gated ring without a stall limit, or
    /// it is this publisher's own claim; either way nobody writes its bytes while the slice lives.
    #[inline]
    pub(crate) unsafe fn body(&self, position: u64, len: usize) -> &[u8] {
        debug_assert!(len as u64 <= self.mask);
        // SAFETY: the offset is below the capacity and `len` + 8 at most the capacity, so both lie in the two
        // mappings of the data area; the caller promises that nobody writes.
        unsafe { slice::from_raw_parts(self.body_start(position).as_ptr(), len) }
    }

    /// The `len` bytes behind the header at `position`, to be written.
    ///
    /// # Safety
    /// `len` is at most `capacity` − 8. The space is this publisher's claim: the gate permits it, none of it is
    /// committed, and no other slice of it lives.
    #[inline]
    pub(crate) unsafe fn body_mut(&mut self, position: u64, len: usize) -> &mut [u8] {
        debug_assert!(len as u64 <= self.mask);
        // SAFETY: as for `body`; the caller promises that the space is nobody else's.
        unsafe { slice::from_raw_parts_mut(self.body_start(position).as_ptr(), len) }
    }

    /// Copies the words behind the header at `position`, which the publisher may be overwriting. Each word is one
    /// that was stored there; the caller must check that they belong together. Copies at most as many words as fit
    /// between two headers.
    #[inline]
    pub(crate) fn copy_unsettled(&self, position: u64, to: &mut [u64]) {
        debug_assert!(8 * to.len() as u64 <= self.mask);
        let words = to.len().min(self.capacity / 8 - 1);
        // SAFETY: the offset is at most capacity − 8 and less than capacity ÷ 8 words follow, so all lie in the two
        // mappings of the data area; the data area and the offset are aligned to 8; any bytes are valid atomics.
        let from =
            unsafe { slice::from_raw_parts(self.body_start(position).cast::<AtomicU64>().as_ptr(), words) };
        let (from, last) = from.as_chunks::<AT_ONCE>();
        let (to, to_last) = to.as_chunks_mut::<AT_ONCE>();
        for (to, from) in to.iter_mut().zip(from) {
            for (to, from) in to.iter_mut().zip(from) {
                *to = from.load(Ordering::Relaxed);
            }
        }
        for (to, from) in to_last.iter_mut().zip(last) {
            *to = from.load(Ordering::Relaxed);
        }
    }

    /// Copies `bytes` behind the header at `position`; short ones in whole words of 8.
    ///
    /// # Safety
    /// As for [`body_mut`](Self::body_mut), with space for `bytes.len()` rounded up to 8.
    #[inline(always)]
    pub(crate) unsafe fn fill(&mut self, position: u64, bytes: &[u8]) {
        // SAFETY: the caller's promise; bodies start 8 bytes behind an aligned word.
        unsafe { words::copy_in(self.body_start(position).as_ptr(), bytes) }
    }

    /// The header word that follows a frame of `size` bytes (header included) at `position`, through the same
    /// mapping of the data area as the frame's own bytes.
    ///
    /// The compiler does not know that the two mappings are the same memory. The terminator of a shortened claim
    /// lies inside the bytes that its owner wrote; only through the same mapping is it sure to be written after
    /// them.
    ///
    /// # Safety
    /// `size` is a multiple of 8 and at most `capacity` − 8.
    #[inline]
    pub(crate) unsafe fn terminator(&self, position: u64, size: usize) -> &AtomicU64 {
        debug_assert!(size.is_multiple_of(8) && size as u64 <= self.mask);
        // SAFETY: below capacity plus at most capacity − 8 leaves 8 bytes inside the two mappings; aligned by
        // `size`.
        unsafe { self.data.add((position & self.mask) as usize + size).cast().as_ref() }
    }

    /// Prefetches the cache line at `position` for writing. A hint: it changes nothing.
    #[inline(always)]
    pub(crate) fn fetch_to_write(&self, position: u64) {
        #[cfg(target_arch = "x86_64")]
        {
            let line = self.data.as_ptr().wrapping_add((position & self.mask) as usize);
            // SAFETY: a prefetch of any address is allowed, and has no effect that a program can see. Processors
            // without the instruction ignore it.
            unsafe {
                std::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = position;
    }

    #[inline]
    fn body_start(&self, position: u64) -> NonNull<u8> {
        // SAFETY: the offset is at most capacity − 8, so 8 more is still inside the two mappings.
        unsafe { self.data.add((position & self.mask) as usize + FRAME_HEADER) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: exactly the range that `map` reserved; every reference into it has borrowed `self` and is gone.
        // It can only fail on arguments that are not a mapping.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}
