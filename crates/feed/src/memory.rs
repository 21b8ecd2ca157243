//! Memory in huge pages.
//!
//! The orders and levels of a day take some hundred megabytes, and each message touches four or five cache lines at random places. With pages of 4
//! KiB the processor needs a page walk for each of those lines, and in a virtual machine a nested one. With 2 MiB pages the same books are faster
//! by a quarter to a third (`benches/itch`).
//!
//! One of the two files of this crate with `unsafe`. It is sound for three reasons: a [`Piece`] is handed out once, so it is exclusive to its
//! owner; its block lives as long as any piece of it; and a piece contains a value from the start.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

/// The next larger page size of most server processors.
const HUGE: usize = 2 << 20;

/// The size and alignment of a cache line.
const LINE: usize = 64;

/// Requests huge pages for memory that is about to be filled. Without huge pages the memory stays unchanged.
pub(crate) fn ask_for_huge_pages<T>(memory: &mut [T]) {
    let bytes = size_of_val(memory);
    if bytes >= HUGE {
        advise(NonNull::from(memory).cast(), bytes);
    }
}

#[cfg(target_os = "linux")]
fn advise(place: NonNull<u8>, bytes: usize) {
    /// At least one page on every processor: the system accepts only whole pages.
    const PAGE: usize = 1 << 16;
    let inside = place.align_offset(PAGE);
    if let Some(whole) = bytes.checked_sub(inside).map(|bytes| bytes - bytes % PAGE) {
        // SAFETY: a hint about address translation: it changes no byte, and the range contains only this caller's memory. (No test can break:
        // nothing can fail.)
        let _ = unsafe {
            rustix::mm::madvise(
                place.as_ptr().wrapping_add(inside).cast(),
                whole,
                rustix::mm::Advice::LinuxHugepage,
            )
        };
    }
}

#[cfg(not(target_os = "linux"))]
fn advise(_: NonNull<u8>, _: usize) {}

/// A block of memory that is divided into pieces.
struct Block {
    place: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the last owner frees the block itself; its bytes belong to the pieces. Test: `pieces_go_to_other_threads`.
unsafe impl Send for Block {}
// SAFETY: as above: a shared block gives no access to its bytes.
unsafe impl Sync for Block {}

impl Block {
    fn new(bytes: usize) -> Arc<Self> {
        let huge = bytes > HUGE / 2;
        let (bytes, align) = if huge { (HUGE, HUGE) } else { (bytes.max(LINE), LINE) };
        // Both are powers of two or small, so the layout is valid.
        let layout = Layout::from_size_align(bytes, align).unwrap_or(Layout::new::<[u64; 8]>());
        // SAFETY: the layout has more than 0 bytes. Test: `a_piece_is_what_it_was_made`.
        let place = unsafe { alloc(layout) };
        let Some(place) = NonNull::new(place) else { handle_alloc_error(layout) };
        if huge {
            advise(place, bytes);
        }
        Arc::new(Self { place, layout })
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` with this layout, and no piece is left: each piece owns a reference to the block. Test:
        // `pieces_outlive_what_they_came_from`.
        unsafe { dealloc(self.place.as_ptr(), self.layout) }
    }
}

/// A value that is stored in a block, owned as by a `Box`.
pub(crate) struct Piece<T: Copy> {
    place: NonNull<T>,
    _block: Arc<Block>,
}

// SAFETY: a piece owns its value as a box does. Test: `pieces_go_to_other_threads`.
unsafe impl<T: Copy + Send> Send for Piece<T> {}
// SAFETY: as above.
unsafe impl<T: Copy + Sync> Sync for Piece<T> {}

impl<T: Copy> Deref for Piece<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the place belongs to this piece alone, contains a value since `take`, and lives as long as the block, which the piece keeps
        // alive. Test: `a_piece_is_what_it_was_made`.
        unsafe { self.place.as_ref() }
    }
}

impl<T: Copy> DerefMut for Piece<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`, and the piece is borrowed exclusively. Test: `a_piece_is_what_it_was_made`.
        unsafe { self.place.as_mut() }
    }
}

impl<T: Copy> fmt::Debug for Piece<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Piece").finish_non_exhaustive()
    }
}

/// An allocator of pieces, in blocks of 2 MiB; the first blocks are smaller.
pub(crate) struct Pieces<T: Copy> {
    block: Option<Arc<Block>>,
    /// Capacity of the block in pieces, and the number of pieces taken.
    fits: usize,
    taken: usize,
    _of: PhantomData<T>,
}

impl<T: Copy> Pieces<T> {
    /// Capacity of the first block.
    const FEWEST: usize = 4;
    /// Capacity of the largest block. The size of a piece is a multiple of its alignment, so all pieces of a block are aligned.
    const MOST: usize = HUGE / size_of::<T>();

    /// Creates an allocator without a block.
    pub(crate) const fn new() -> Self {
        const {
            assert!(size_of::<T>().is_multiple_of(LINE), "its neighbour begins a line too");
            assert!(align_of::<T>() <= LINE && Self::MOST >= Self::FEWEST);
        }
        Self { block: None, fits: 0, taken: 0, _of: PhantomData }
    }

    /// Returns a new piece. Sometimes allocates a block: each has twice the size of the one before, up to 2 MiB.
    pub(crate) fn take(&mut self, value: T) -> Piece<T> {
        let block = match &self.block {
            Some(block) if self.taken < self.fits => block,
            _ => {
                self.fits = (self.fits * 2).clamp(Self::FEWEST, Self::MOST);
                let bytes = self.fits * size_of::<T>();
                if bytes > HUGE / 2 {
                    self.fits = Self::MOST;
                }
                self.taken = 0;
                self.block.insert(Block::new(bytes))
            }
        };
        // SAFETY: `taken` is less than `fits`, the capacity of the block's bytes in pieces. Each piece is aligned, because a block begins at a
        // cache line and a piece is whole lines. No two pieces have the same place, because `taken` only grows during the life of the block. Test:
        // `a_piece_is_what_it_was_made`.
        let place = unsafe {
            let place = block.place.cast::<T>().add(self.taken);
            place.write(value);
            place
        };
        self.taken += 1;
        Piece { place, _block: Arc::clone(block) }
    }

    /// Returns the bytes of the remaining pieces.
    pub(crate) fn spare_bytes(&self) -> usize {
        (self.fits - self.taken) * size_of::<T>()
    }
}

impl<T: Copy> fmt::Debug for Pieces<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pieces").field("fits", &self.fits).field("taken", &self.taken).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Kilobyte = [u64; 128];

    #[test]
    fn a_piece_is_what_it_was_made() {
        let mut pieces = Pieces::<Kilobyte>::new();
        let mut all: Vec<_> = (0..5_000_u64).map(|k| pieces.take([k; 128])).collect();
        for (k, piece) in (0..).zip(&mut all) {
            assert!(piece.iter().all(|word| *word == k));
            assert_eq!(piece.as_ptr().addr() % LINE, 0);
            piece.fill(k + 7);
        }
        assert!(
            (0..).zip(&all).all(|(k, piece)| piece.iter().all(|word| *word == k + 7)),
            "no two share a byte"
        );
        assert!(pieces.spare_bytes() <= HUGE);
    }

    #[test]
    fn large_blocks_are_whole_huge_pages() {
        let mut pieces = Pieces::<Kilobyte>::new();
        let all: Vec<_> = (0..8_000).map(|_| pieces.take([0; 128])).collect();
        let begin = |piece: &Piece<Kilobyte>| piece.as_ptr().addr() / HUGE;
        let mut in_each = std::collections::BTreeMap::<usize, usize>::new();
        for piece in &all[2_000..] {
            *in_each.entry(begin(piece)).or_default() += 1;
        }
        assert!(in_each.values().filter(|count| **count == HUGE / 1_024).count() >= 2, "{in_each:?}");
    }

    #[test]
    fn pieces_outlive_what_they_came_from() {
        let mut pieces = Pieces::<Kilobyte>::new();
        let first = pieces.take([1; 128]);
        let rest: Vec<_> = (0..3_000).map(|_| pieces.take([2; 128])).collect();
        drop((pieces, rest));
        assert_eq!(*first, [1; 128]);
    }

    #[test]
    fn pieces_go_to_other_threads() {
        let mut pieces = Pieces::<Kilobyte>::new();
        let mut mine = pieces.take([1; 128]);
        let mut theirs = pieces.take([2; 128]);
        let theirs = std::thread::spawn(move || {
            theirs[0] = 3;
            drop(pieces);
            theirs
        });
        mine[127] = 4;
        let theirs = theirs.join().expect("it does not panic");
        assert_eq!((mine[0], mine[127], theirs[0], theirs[127]), (1, 4, 3, 2));
    }
}
