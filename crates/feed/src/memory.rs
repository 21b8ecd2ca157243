//! Memory in huge pages.
//!
//! Orders and levels of a day are some hundred megabytes, of which each message touches four or five cache lines somewhere.
//! With pages of 4 KiB the processor does not find those lines' addresses without a walk, and in a virtual machine a
//! walk of walks: with 2 MiB pages the same books are quicker by a quarter to a third (`benches/itch`).
//!
//! One of the two files of this crate with `unsafe`. What keeps it sound: a [`Piece`] is given out once and never again, so
//! that it is its owner's alone; its block lives as long as a piece of it; and it holds a value from the beginning.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

/// What the processor of most servers has as its next larger page.
const HUGE: usize = 2 << 20;

/// Addresses that a cache line begins at.
const LINE: usize = 64;

/// Asks for huge pages behind memory that is about to be filled. Where there are none it stays as it is.
pub(crate) fn ask_for_huge_pages<T>(memory: &mut [T]) {
    let bytes = size_of_val(memory);
    if bytes >= HUGE {
        advise(NonNull::from(memory).cast(), bytes);
    }
}

#[cfg(target_os = "linux")]
fn advise(place: NonNull<u8>, bytes: usize) {
    /// A page at least, on every processor: the system wants whole ones.
    const PAGE: usize = 1 << 16;
    let inside = place.align_offset(PAGE);
    if let Some(whole) = bytes.checked_sub(inside).map(|bytes| bytes - bytes % PAGE) {
        // SAFETY: a hint about how addresses are found: it changes no byte, and nobody else's memory is among these. (No test
        // can break: there is nothing to go wrong.)
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

/// A block of memory that pieces are cut from.
struct Block {
    place: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the block itself is only freed, by whoever has it last; its bytes are the pieces'. Test: `pieces_go_to_other_threads`.
unsafe impl Send for Block {}
// SAFETY: as above: a shared block gives no access to its bytes.
unsafe impl Sync for Block {}

impl Block {
    fn new(bytes: usize) -> Arc<Self> {
        let huge = bytes > HUGE / 2;
        let (bytes, align) = if huge { (HUGE, HUGE) } else { (bytes.max(LINE), LINE) };
        // Both are powers of two or small, so that a layout of them is one.
        let layout = Layout::from_size_align(bytes, align).unwrap_or(Layout::new::<[u64; 8]>());
        // SAFETY: the layout is not of 0 bytes. Test: `a_piece_is_what_it_was_made`.
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
        // SAFETY: allocated by `new` with this layout, and nobody has a piece of it any more: each holds the block. Test:
        // `pieces_outlive_what_they_came_from`.
        unsafe { dealloc(self.place.as_ptr(), self.layout) }
    }
}

/// A value of its own on a block, such as a box would hold it.
pub(crate) struct Piece<T: Copy> {
    place: NonNull<T>,
    _block: Arc<Block>,
}

// SAFETY: it owns its value as a box does. Test: `pieces_go_to_other_threads`.
unsafe impl<T: Copy + Send> Send for Piece<T> {}
// SAFETY: as above.
unsafe impl<T: Copy + Sync> Sync for Piece<T> {}

impl<T: Copy> Deref for Piece<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the place was given to this piece alone, holds a value since `take`, and lives as long as the block,
        // which the piece holds. Test: `a_piece_is_what_it_was_made`.
        unsafe { self.place.as_ref() }
    }
}

impl<T: Copy> DerefMut for Piece<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`, and the piece is borrowed alone. Test: `a_piece_is_what_it_was_made`.
        unsafe { self.place.as_mut() }
    }
}

impl<T: Copy> fmt::Debug for Piece<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Piece").finish_non_exhaustive()
    }
}

/// Where pieces come from: blocks of 2 MiB, and smaller ones before there is use for so large a one.
pub(crate) struct Pieces<T: Copy> {
    block: Option<Arc<Block>>,
    /// Pieces that the block has, and that were taken from it.
    fits: usize,
    taken: usize,
    _of: PhantomData<T>,
}

impl<T: Copy> Pieces<T> {
    /// The first block's pieces.
    const FEWEST: usize = 4;
    /// The largest block's. A piece is aligned to what its size is a multiple of, and so are its neighbours.
    const MOST: usize = HUGE / size_of::<T>();

    /// None so far.
    pub(crate) const fn new() -> Self {
        const {
            assert!(size_of::<T>().is_multiple_of(LINE), "its neighbour begins a line too");
            assert!(align_of::<T>() <= LINE && Self::MOST >= Self::FEWEST);
        }
        Self { block: None, fits: 0, taken: 0, _of: PhantomData }
    }

    /// A new piece. Allocates now and then: as much as there is, 2 MiB at most.
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
        // SAFETY: `taken` is less than `fits`, and so many pieces there are in the block's bytes, each aligned, since a block
        // begins at a cache line and a piece is whole lines. No two have the same place, since `taken` only grows while the
        // block is here. Test: `a_piece_is_what_it_was_made`.
        let place = unsafe {
            let place = block.place.cast::<T>().add(self.taken);
            place.write(value);
            place
        };
        self.taken += 1;
        Piece { place, _block: Arc::clone(block) }
    }

    /// Bytes of pieces still to be taken.
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
