//! CRC-32C of a record in three parallel lanes; a record is too short for the three lanes of the crate `crc32c`.
//!
//! The CRC instruction processes eight bytes in three cycles and can start in every cycle, so a single lane leaves two
//! of three cycles idle. The crate `crc32c` uses three lanes from 768 bytes on; a record has about two hundred. Here
//! each third of the record is a lane, and a carry-less multiplication joins the lanes (Gopal et al., "Fast CRC
//! Computation for iSCSI Polynomial Using CRC32 Instruction", Intel 2011). Other checksums, and processors without
//! these instructions, use the crate.
//!
//! `unsafe` covers one call: a function that needs the instructions, after a check that the processor has them.

#![allow(unsafe_code, reason = "a function for some processors is called where the processor is one of them")]

/// Returns the CRC-32C (RFC 3720, B.4) of a record after its checksum: the three numbers of its header, as in the file,
/// and its body.
#[inline]
pub(crate) fn of_record(length: u32, seq: u64, time: u64, body: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("sse4.2") && std::arch::is_x86_feature_detected!("pclmulqdq") {
        // SAFETY: the processor has both features, which are the function's only requirement; the function accesses the
        // slice through safe methods only. `lanes_give_what_the_crate_gives` calls it with every length.
        return unsafe { lanes::of_record(length, seq, time, body) };
    }
    by_the_crate(length, seq, time, body)
}

/// The same, for processors without these instructions.
fn by_the_crate(length: u32, seq: u64, time: u64, body: &[u8]) -> u32 {
    let head = [&length.to_le_bytes()[..], &seq.to_le_bytes(), &time.to_le_bytes()];
    let crc = head.into_iter().fold(0, crc32c::crc32c_append);
    crc32c::crc32c_append(crc, body)
}

#[cfg(target_arch = "x86_64")]
mod lanes {
    use std::arch::x86_64::{
        _mm_clmulepi64_si128, _mm_crc32_u8, _mm_crc32_u32, _mm_crc32_u64, _mm_cvtsi64_si128,
        _mm_cvtsi128_si64,
    };

    type Word = [u8; 8];

    /// The most words in a lane: three lanes have 1,536 bytes.
    const MOST: usize = 64;
    /// The polynomial, with its lowest power in the highest bit.
    const POLYNOMIAL: u32 = 0x82F6_3B78;
    /// For n words of zeros after a checksum: x^(64 n - 33) modulo the polynomial. The checksum is multiplied by it;
    /// the CRC instruction then adds its own eight bytes.
    const BEHIND: [u32; 2 * MOST + 1] = behind();

    const fn behind() -> [u32; 2 * MOST + 1] {
        let mut table = [0; 2 * MOST + 1];
        // x^31, for one word.
        let mut power = 1_u32;
        let mut words = 1;
        while words < table.len() {
            table[words] = power;
            let mut bit = 0;
            while bit < 64 {
                power = (power >> 1) ^ (POLYNOMIAL & (power & 1).wrapping_neg());
                bit += 1;
            }
            words += 1;
        }
        table
    }

    #[target_feature(enable = "sse4.2,pclmulqdq")]
    pub(super) fn of_record(length: u32, seq: u64, time: u64, body: &[u8]) -> u32 {
        let mut crc = u64::from(_mm_crc32_u32(u32::MAX, length));
        crc = _mm_crc32_u64(crc, seq);
        crc = _mm_crc32_u64(crc, time);
        let (mut words, rest) = body.as_chunks::<8>();
        while words.len() >= 6 {
            let lane = (words.len() / 3).min(MOST);
            let (these, behind) = words.split_at(3 * lane);
            crc = three(crc, these, lane);
            words = behind;
        }
        for word in words {
            crc = _mm_crc32_u64(crc, u64::from_le_bytes(*word));
        }
        let (halves, rest) = rest.as_chunks::<4>();
        let mut crc = crc as u32;
        for half in halves {
            crc = _mm_crc32_u32(crc, u32::from_le_bytes(*half));
        }
        for byte in rest {
            crc = _mm_crc32_u8(crc, *byte);
        }
        !crc
    }

    /// Continues a checksum over three lanes of `lane` words each.
    #[target_feature(enable = "sse4.2,pclmulqdq")]
    fn three(crc: u64, words: &[Word], lane: usize) -> u64 {
        let (first, others) = words.split_at(lane);
        let (second, third) = others.split_at(lane);
        let (mut a, mut b, mut c) = (crc, 0, 0);
        for ((one, two), three) in first.iter().zip(second).zip(third) {
            a = _mm_crc32_u64(a, u64::from_le_bytes(*one));
            b = _mm_crc32_u64(b, u64::from_le_bytes(*two));
            c = _mm_crc32_u64(c, u64::from_le_bytes(*three));
        }
        // Both products are one power short of the place after eight bytes, and the instruction adds eight bytes.
        c ^ _mm_crc32_u64(0, times(a, BEHIND[2 * lane]) ^ times(b, BEHIND[lane]))
    }

    /// Multiplies without carries.
    #[target_feature(enable = "sse4.2,pclmulqdq")]
    fn times(crc: u64, by: u32) -> u64 {
        let product =
            _mm_clmulepi64_si128::<0>(_mm_cvtsi64_si128(crc as i64), _mm_cvtsi64_si128(i64::from(by)));
        _mm_cvtsi128_si64(product) as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crc32c::crc32c;

    use super::{by_the_crate, of_record};

    #[test]
    fn lanes_give_what_the_crate_gives() {
        let body: Vec<u8> = (0..6_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for length in 0..body.len() {
            let (word, seq, time, body) = (length as u32, length as u64 * 77, u64::MAX - 5, &body[..length]);
            let record = [&word.to_le_bytes()[..], &seq.to_le_bytes(), &time.to_le_bytes(), body].concat();
            assert_eq!(of_record(word, seq, time, body), crc32c(&record), "{length} bytes");
            assert_eq!(by_the_crate(word, seq, time, body), crc32c(&record), "{length} bytes");
        }
    }

    proptest! {
        #[test]
        fn any_body_at_any_place_has_the_same_checksum(
            head: (u32, u64, u64), bytes in proptest::collection::vec(any::<u8>(), 0..5_000), from in 0..8_usize,
        ) {
            let (length, seq, time) = head;
            let body = bytes.get(from..).unwrap_or(&[]);
            prop_assert_eq!(of_record(length, seq, time, body), by_the_crate(length, seq, time, body));
        }
    }
}
