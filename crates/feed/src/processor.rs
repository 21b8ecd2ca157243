//! Processor instructions without a safe form in Rust: byte permutation by a table, and prefetching.
//!
//! One of the two files of this crate with `unsafe`. It is sound for three reasons: a [`Permutation`] exists only if the processor has reported its
//! instructions; a load from a message is masked by the message's length, and masked bytes are never touched; and a prefetch is a hint that reads
//! nothing.
#![allow(unsafe_code)]

use crate::itch::ItchRecord;

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::Permutation;

#[cfg(not(target_arch = "x86_64"))]
pub(crate) use other::Permutation;

/// Prefetches the cache line that contains the first byte of `place`.
#[inline(always)]
pub(crate) fn prefetch<T>(place: &T) {
    prefetch_line(std::ptr::from_ref(place).cast());
}

/// Prefetches all cache lines of `place`. Unlike after a load, the processor goes on meanwhile, and nothing waits for a value. Without effect on
/// other processors than x86-64.
#[inline(always)]
pub fn prefetch_lines<T: ?Sized>(place: &T) {
    let (start, size) = (std::ptr::from_ref(place).cast::<u8>(), size_of_val(place));
    (0..size).step_by(LINE).for_each(|at| prefetch_line(start.wrapping_add(at)));
    // The last line, if the place begins in the middle of one.
    prefetch_line(start.wrapping_add(size.saturating_sub(1)));
}

/// Prefetches the bytes at distance [`AHEAD`] from the start of `message`. Each message's length determines the place of the next message in
/// memory, so without prefetching the processor would wait at every line.
#[inline(always)]
pub(crate) fn prefetch_ahead(message: &[u8]) {
    prefetch_line(message.as_ptr().wrapping_add(AHEAD));
}

#[inline(always)]
fn prefetch_line(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint: it reads and writes nothing, for any address. (No test can break: nothing can fail.)
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Size of a cache line in bytes.
const LINE: usize = 64;

/// Sixteen cache lines, about thirty messages: with this prefetch, decoding from memory to records is 2.6 times as fast as with a `match`; without
/// it no faster (`make bench-peers-itch`).
const AHEAD: usize = 1_024;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m512i, _bzhi_u64, _mm512_load_si512, _mm512_maskz_loadu_epi8, _mm512_maskz_permutexvar_epi8,
        _mm512_store_si512,
    };

    use super::ItchRecord;
    use crate::itch::{ROWS, Row};

    /// Proof that the processor has the instructions.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Permutation(());

    /// The sources of one type's bytes, aligned for a vector load.
    #[repr(C, align(64))]
    struct Places([u8; 64]);

    /// The other data of a type.
    #[derive(Clone, Copy)]
    struct About {
        taken: u64,
        length: u32,
        known: u32,
    }

    static PLACES: [Places; 256] = {
        let mut places = [const { Places([0; 64]) }; 256];
        let mut kind = 0;
        while kind < 256 {
            places[kind].0 = ROWS[kind].from;
            kind += 1;
        }
        places
    };

    static ABOUT: [About; 256] = {
        let mut about = [About { taken: 0, length: 0, known: 0 }; 256];
        let mut kind = 0;
        while kind < 256 {
            let Row { taken, length, known, .. } = ROWS[kind];
            about[kind] = About { taken, length: length as u32, known: known as u32 };
            kind += 1;
        }
        about
    };

    impl Permutation {
        /// Returns the proof if the processor has the instructions.
        #[inline]
        pub(crate) fn detect() -> Option<Self> {
            let can = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vbmi")
                && is_x86_feature_detected!("bmi2");
            can.then_some(Self(()))
        }

        /// Writes the record of one message.
        #[inline]
        pub(crate) fn record(self, bytes: &[u8], record: &mut ItchRecord) {
            // SAFETY: `self` was made by `detect`, so the processor has every feature that `permute` is compiled for.
            // Test: `both_ways_give_the_same_records` in tests/records.rs.
            unsafe { permute(bytes, record) }
        }

        /// Writes the records of several messages; returns their number.
        #[inline]
        pub(crate) fn fill<'a>(
            self,
            messages: impl Iterator<Item = &'a [u8]>,
            records: &mut [ItchRecord],
        ) -> usize {
            // SAFETY: as in `record`. Test: `a_batch_is_its_messages_one_by_one` in tests/records.rs.
            unsafe { permute_all(messages, records) }
        }
    }

    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,bmi2")]
    fn permute_all<'a>(mut messages: impl Iterator<Item = &'a [u8]>, records: &mut [ItchRecord]) -> usize {
        let mut count = 0;
        for record in records {
            let Some(message) = messages.next() else { break };
            super::prefetch_ahead(message);
            permute(message, record);
            count += 1;
        }
        count
    }

    /// One load, one permutation, one store, and one byte for the flags.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,bmi2")]
    fn permute(bytes: &[u8], record: &mut ItchRecord) {
        let Some(kind) = bytes.first() else {
            *record = ItchRecord::of_nothing();
            return;
        };
        let kind = usize::from(*kind);
        let About { taken, length, known } = ABOUT[kind];
        let readable = _bzhi_u64(u64::MAX, bytes.len().min(64) as u32);
        let enough = bytes.len() >= length as usize;
        // A short message sets only its type.
        const KIND_ONLY: u64 = 1 << std::mem::offset_of!(ItchRecord, kind);
        let taken = if enough { taken } else { KIND_ONLY };
        // SAFETY: the load touches only bytes whose bit is set in `readable`, which belong to the message (the processor suppresses faults of the
        // others). The second load and the store are of 64 bytes at addresses that `Places` and `ItchRecord` align to 64. Any bytes are a valid
        // `ItchRecord`, which consists of numbers and arrays of numbers without padding. Test: `a_message_at_the_end_of_its_memory_is_read` in
        // tests/records.rs.
        unsafe {
            let message = _mm512_maskz_loadu_epi8(readable, bytes.as_ptr().cast());
            let places: __m512i = _mm512_load_si512(PLACES[kind].0.as_ptr().cast());
            let permuted = _mm512_maskz_permutexvar_epi8(taken, places, message);
            _mm512_store_si512(std::ptr::from_mut(record).cast(), permuted);
        }
        let short = u8::from(!enough) * ItchRecord::SHORT;
        let longer = u8::from(bytes.len() > length as usize) * ItchRecord::LONGER;
        let known = known as u8;
        record.flags = known | ((short | longer) & 0_u8.wrapping_sub(known));
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod other {
    use super::ItchRecord;

    /// Uninhabited: this processor does not have the instructions.
    #[derive(Clone, Copy, Debug)]
    pub(crate) enum Permutation {}

    impl Permutation {
        pub(crate) const fn detect() -> Option<Self> {
            None
        }

        pub(crate) fn record(self, _: &[u8], _: &mut ItchRecord) {
            match self {}
        }

        pub(crate) fn fill<'a>(self, _: impl Iterator<Item = &'a [u8]>, _: &mut [ItchRecord]) -> usize {
            match self {}
        }
    }
}
