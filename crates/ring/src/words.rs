//! Copies of short messages.
//!
//! A message that was just built field by field lies in the processor's store buffer. A vector load over several of
//! those stores has to wait until they have left it, and so does every store behind it, the ring's lines included:
//! measured, 250 million messages a second become 15. Loads as wide as the stores do not wait. The compiler would turn
//! plain loops over words into vector moves or a call of `memcpy`; relaxed atomic words it leaves as they are.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};

/// Longer copies use `memcpy`: its call costs about 5 ns, and from this length on its wide moves save more than
/// that.
const LONGEST: usize = 256;

/// Copies `bytes` to `to`, which may be filled up to the next multiple of 8.
///
/// # Safety
/// `to` is aligned to 8 and has space for `bytes.len()` rounded up to 8, which nobody else reads or writes.
#[inline(always)]
pub(crate) unsafe fn copy_in(to: *mut u8, bytes: &[u8]) {
    let (from, len) = (bytes.as_ptr(), bytes.len());
    if len > LONGEST {
        // SAFETY: the caller provides the space, and a borrowed slice cannot overlap bytes that nobody else reads.
        unsafe { to.copy_from_nonoverlapping(from, len) };
        return;
    }
    let whole = len & !7;
    let mut at = 0;
    // SAFETY: `at` + 16, then `at` + 8, is at most `len`; the place is aligned and the caller's.
    unsafe {
        while at + 16 <= whole {
            pair(to.add(at), from.add(at));
            at += 16;
        }
        if at < whole {
            word(to.add(at), from.add(at));
        }
    }
    let rest = len - whole;
    if rest > 0 {
        // SAFETY: all reads lie inside `bytes` as the branches show; the destination has space up to the next
        // multiple of 8.
        unsafe {
            let word = if len >= 8 {
                u64::from_le(from.add(len - 8).cast::<u64>().read_unaligned()) >> (64 - 8 * rest)
            } else if rest >= 4 {
                let low = u32::from_le(from.cast::<u32>().read_unaligned());
                let high = u32::from_le(from.add(rest - 4).cast::<u32>().read_unaligned());
                u64::from(low) | u64::from(high) << (8 * (rest - 4))
            } else if rest >= 2 {
                let low = u16::from_le(from.cast::<u16>().read_unaligned());
                let high = u16::from_le(from.add(rest - 2).cast::<u16>().read_unaligned());
                u64::from(low) | u64::from(high) << (8 * (rest - 2))
            } else {
                u64::from(*from)
            };
            (*to.add(whole).cast::<AtomicU64>()).store(word.to_le(), Ordering::Relaxed);
        }
    }
}

/// Moves 8 bytes.
///
/// # Safety
/// `to` is aligned to 8 and may be written, `from` may be read, for 8 bytes.
#[inline(always)]
unsafe fn word(to: *mut u8, from: *const u8) {
    // SAFETY: the caller's promise.
    unsafe {
        let word = from.cast::<u64>().read_unaligned();
        (*to.cast::<AtomicU64>()).store(word, Ordering::Relaxed);
    }
}

/// Moves 16 bytes: two loads as narrow as the stores that built the message, one store. Half as many stores to the
/// ring's lines gain 8 % at 100 bytes.
///
/// # Safety
/// As for [`word`], for 16 bytes.
#[inline(always)]
unsafe fn pair(to: *mut u8, from: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_loadl_epi64, _mm_storeu_si128, _mm_unpacklo_epi64};
        // SAFETY: the caller's promise; these instructions are part of x86-64 and ask for no alignment.
        unsafe {
            let low = _mm_loadl_epi64(from.cast());
            let high = _mm_loadl_epi64(from.add(8).cast());
            _mm_storeu_si128(to.cast(), _mm_unpacklo_epi64(low, high));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the caller's promise.
    unsafe {
        word(to, from);
        word(to.add(8), from.add(8));
    }
}

/// Copies a frame's `bytes` to the start of `to`, as many as fit. Returns the number of bytes copied.
///
/// Wide moves are right here: another core stored the bytes that are read. Two moves that may overlap cover every
/// length from one to two of their widths, so a short copy is two comparisons and two to eight moves.
#[inline]
pub(crate) fn copy_out(bytes: &[u8], to: &mut [u8]) -> usize {
    let len = bytes.len().min(to.len());
    let (from, to) = (bytes.as_ptr(), to.as_mut_ptr());
    // SAFETY: `len` is within both slices, which do not overlap because one is mutable; each branch's moves stay below
    // `len` by its condition.
    unsafe {
        match len {
            16..=32 => ends::<16>(from, to, len),
            33..=64 => ends::<32>(from, to, len),
            65..=128 => ends::<64>(from, to, len),
            8..=15 => ends::<8>(from, to, len),
            _ => to.copy_from_nonoverlapping(from, len),
        }
    }
    len
}

/// Copies the first and the last `WIDTH` bytes of `len`.
///
/// # Safety
/// `WIDTH` ≤ `len` ≤ 2 × `WIDTH`; `from` has `len` bytes to read and `to` as many to write, and they do not overlap.
#[inline(always)]
unsafe fn ends<const WIDTH: usize>(from: *const u8, to: *mut u8, len: usize) {
    let last = len - WIDTH;
    // SAFETY: the caller's promise; a move of arrays has no alignment to keep.
    unsafe {
        let first: [u8; WIDTH] = from.cast::<[u8; WIDTH]>().read();
        let second: [u8; WIDTH] = from.add(last).cast::<[u8; WIDTH]>().read();
        to.cast::<[u8; WIDTH]>().write(first);
        to.add(last).cast::<[u8; WIDTH]>().write(second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn copies_are_copies(bytes in proptest::collection::vec(any::<u8>(), 0..2 * LONGEST)) {
            let mut room = vec![!0u64; bytes.len() / 8 + 2];
            // SAFETY: aligned by its type and larger than the rounded length.
            unsafe { copy_in(room.as_mut_ptr().cast(), &bytes) };
            let filled: Vec<u8> = room.iter().flat_map(|word| word.to_ne_bytes()).collect();
            prop_assert_eq!(&filled[..bytes.len()], &bytes[..]);
            prop_assert!(filled[bytes.len().next_multiple_of(8)..].iter().all(|byte| *byte == !0));
            let mut out = vec![0; bytes.len()];
            prop_assert_eq!(copy_out(&bytes, &mut out), bytes.len());
            prop_assert_eq!(out, bytes);
        }
    }
}
