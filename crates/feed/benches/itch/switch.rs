//! What can be had without a library: the floors, and the yardstick.

use tapeline_feed::itch::framing::{FileFraming, Frames};

/// Reads every byte, as words of eight.
#[inline(never)]
pub(crate) fn memory(file: &[u8]) -> u64 {
    let (words, rest) = file.as_chunks();
    let words = words.iter().fold(0_u64, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    rest.iter().fold(words, |sum, byte| sum.wrapping_add(u64::from(*byte)))
}

#[inline(never)]
pub(crate) fn framing(file: &[u8]) -> u64 {
    let mut sum = 0;
    for message in Frames::with(file, FileFraming::Length) {
        sum += message.len() as u64;
    }
    sum
}

/// What a person would write without a library: one `match`, fields by their places.
#[inline(never)]
pub(crate) fn switch(file: &[u8]) -> u64 {
    #[inline(always)]
    fn n1<const L: usize>(m: &[u8; L], at: usize) -> u64 {
        u64::from(m[at])
    }
    #[inline(always)]
    fn n2<const L: usize>(m: &[u8; L], at: usize) -> u64 {
        u64::from(u16::from_be_bytes([m[at], m[at + 1]]))
    }
    #[inline(always)]
    fn n4<const L: usize>(m: &[u8; L], at: usize) -> u64 {
        u64::from(u32::from_be_bytes([m[at], m[at + 1], m[at + 2], m[at + 3]]))
    }
    #[inline(always)]
    fn n8<const L: usize>(m: &[u8; L], at: usize) -> u64 {
        let [.., a, b, c, d] = [0, m[at], m[at + 1], m[at + 2], m[at + 3]];
        u64::from(u32::from_be_bytes([a, b, c, d])) << 32 | n4(m, at + 4)
    }
    #[inline(always)]
    fn prefix<const L: usize>(m: &[u8; L]) -> u64 {
        n2(m, 1).wrapping_add(n2(m, 3)).wrapping_add(n2(m, 5) << 32 | n4(m, 7))
    }
    #[inline(always)]
    fn message<const L: usize>(m: &[u8], read: impl FnOnce(&[u8; L]) -> u64) -> u64 {
        m.first_chunk().map_or(0, |m| prefix(m).wrapping_add(read(m)))
    }
    macro_rules! sum {
        ($($read:ident $at:literal),*) => { |m| 0_u64 $(.wrapping_add($read(m, $at)))* };
    }
    let mut sum = 0_u64;
    let mut rest = file;
    while let Some((length, after)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes(*length));
        let Some((m, after)) = after.split_at_checked(length) else { break };
        rest = after;
        let Some(kind) = m.first() else { break };
        sum = sum.wrapping_add(match kind {
            b'A' => message::<36>(m, sum!(n8 11, n1 19, n4 20, n8 24, n4 32)),
            b'D' => message::<19>(m, sum!(n8 11)),
            b'E' => message::<31>(m, sum!(n8 11, n4 19, n8 23)),
            b'U' => message::<35>(m, sum!(n8 11, n8 19, n4 27, n4 31)),
            b'X' => message::<23>(m, sum!(n8 11, n4 19)),
            b'P' => message::<44>(m, sum!(n8 11, n1 19, n4 20, n8 24, n4 32, n8 36)),
            b'F' => message::<40>(m, sum!(n8 11, n1 19, n4 20, n8 24, n4 32, n4 36)),
            b'C' => message::<36>(m, sum!(n8 11, n4 19, n8 23, n1 31, n4 32)),
            b'Q' => message::<40>(m, sum!(n8 11, n8 19, n4 27, n8 31, n1 39)),
            b'I' => message::<50>(m, sum!(n8 11, n8 19, n1 27, n8 28, n4 36, n4 40, n4 44, n1 48, n1 49)),
            b'S' => message::<12>(m, sum!(n1 11)),
            b'R' => message::<39>(
                m,
                // Short codes side by side are one number, as a record has them.
                sum!(n8 11, n1 19, n1 20, n4 21, n4 25, n4 29, n1 33, n4 34, n1 38),
            ),
            b'H' => message::<25>(m, sum!(n8 11, n1 19, n1 20, n4 21)),
            b'Y' => message::<20>(m, sum!(n8 11, n1 19)),
            b'L' => message::<26>(m, sum!(n4 11, n8 15, n1 23, n1 24, n1 25)),
            b'V' => message::<35>(m, sum!(n8 11, n8 19, n8 27)),
            b'W' => message::<12>(m, sum!(n1 11)),
            b'K' => message::<28>(m, sum!(n8 11, n4 19, n1 23, n4 24)),
            b'J' => message::<35>(m, sum!(n8 11, n4 19, n4 23, n4 27, n4 31)),
            b'h' => message::<21>(m, sum!(n8 11, n1 19, n1 20)),
            b'B' => message::<19>(m, sum!(n8 11)),
            b'N' => message::<20>(m, sum!(n8 11, n1 19)),
            b'O' => message::<48>(m, sum!(n8 11, n1 19, n4 20, n4 24, n4 28, n8 32, n4 40, n4 44)),
            _ => 0,
        });
    }
    sum
}
