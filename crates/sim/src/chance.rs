//! Pseudo-random numbers from a seed.

/// SplitMix64 (Steele, Lea and Flood, 2014): one addition and three mixes a number, and any seed is a good one.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    /// The random stream of one part of the world. Each part has its own stream, so that additional draws in one
    /// part leave the others unchanged.
    pub(crate) fn of(seed: u64, part: u64) -> Self {
        let mut chance = Self(seed);
        let mixed = chance.word() ^ part.wrapping_mul(0xD6E8_FEB8_6659_FD93);
        Self(mixed)
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 if `end` is 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        if end == 0 { 0 } else { self.word() % end }
    }

    /// A number from `from` to `to`, both included.
    pub(crate) fn within(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    /// `true` with a probability of 1 in `n`.
    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// `true` with a probability of `times` in a thousand.
    pub(crate) fn per_mille(&mut self, times: u64) -> bool {
        self.below(1000) < times
    }

    pub(crate) fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }
}
