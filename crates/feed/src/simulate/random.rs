//! A random stream that depends only on its seed, and draws from a Zipf distribution.

/// xoshiro256++ (Blackman and Vigna, 2018), seeded through SplitMix64: 0.3 ns for each number, period 2^256 − 1. The sequence of a seed is part of
/// the simulator's contract and must not change.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: [u64; 4],
}

impl Random {
    pub(crate) fn seeded(seed: u64) -> Self {
        let mut split = seed;
        let mut word = || {
            split = split.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = split;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^ (z >> 31)
        };
        Self { state: [word(), word(), word(), word()] }
    }

    #[inline]
    pub(crate) fn word(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let mut next = [a, b, c ^ a, d ^ b];
        next[1] ^= next[2];
        next[0] ^= next[3];
        next[2] ^= b << 17;
        next[3] = next[3].rotate_left(45);
        self.state = next;
        result
    }

    /// Returns a number in `0..bound`; 0 if `bound` is 0. The bias (below `bound` / 2^32) does not matter here.
    #[inline]
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.word() as u32) * u64::from(bound)) >> 32) as u32
    }
}

/// A distribution over `0..n` with probabilities proportional to 1 / (k + 1)^exponent; draws in constant time (alias method, Vose 1991).
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    /// For each slot its threshold and alias: a 32-bit number below the threshold selects the slot, any other its alias.
    slots: Vec<(u32, u32)>,
    /// The same probabilities, in parts of 2^32.
    shares: Vec<u32>,
}

impl Zipf {
    /// Creates the distribution; `n` is at least 1.
    pub(crate) fn new(n: u32, exponent: f64) -> Self {
        let n = n.max(1);
        // Integers from here on, so that rounding is the same on all machines.
        let weights: Vec<u64> =
            (1..=n).map(|k| ((1e9 * f64::from(k).powf(-exponent)).round() as u64).max(1)).collect();
        let total: u128 = weights.iter().map(|w| u128::from(*w)).sum();
        let parts = |weight: u128, of: u128| ((weight << 32) / of).min(u128::from(u32::MAX)) as u32;
        let shares = weights.iter().map(|w| parts(u128::from(*w), total)).collect();

        // Scaled to the mean `total`: a slot above it gives its surplus to one below.
        let mut scaled: Vec<u128> = weights.iter().map(|w| u128::from(*w) * u128::from(n)).collect();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..n).partition(|slot| scaled[*slot as usize] < total);
        let mut slots: Vec<(u32, u32)> = (0..n).map(|slot| (u32::MAX, slot)).collect();
        while let (Some(low), Some(high)) = (small.pop(), large.pop()) {
            slots[low as usize] = (parts(scaled[low as usize], total), high);
            scaled[high as usize] = scaled[high as usize] + scaled[low as usize] - total;
            if scaled[high as usize] < total { small.push(high) } else { large.push(high) }
        }
        Self { slots, shares }
    }

    #[inline]
    pub(crate) fn draw(&self, random: &mut Random) -> u32 {
        let word = random.word();
        let slot = (((word >> 32) * self.slots.len() as u64) >> 32) as u32;
        let (threshold, alias) = self.slots[slot as usize];
        if (word as u32) < threshold { slot } else { alias }
    }

    /// Returns the probability of `k` in parts of 2^32.
    pub(crate) fn share(&self, k: u32) -> u32 {
        self.shares.get(k as usize).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_of_a_seed_are_fixed() {
        let mut random = Random::seeded(1);
        let first: Vec<u64> = (0..3).map(|_| random.word()).collect();
        assert_eq!(first, {
            let mut again = Random::seeded(1);
            (0..3).map(|_| again.word()).collect::<Vec<_>>()
        });
        assert_ne!(first[0], Random::seeded(2).word());
        assert_eq!(Random::seeded(9).below(0), 0);
        assert!((0..1000).all(|_| random.below(7) < 7));
    }

    #[test]
    fn draws_follow_the_shares() {
        let zipf = Zipf::new(50, 0.9);
        let mut random = Random::seeded(5);
        let mut counts = [0_u32; 50];
        for _ in 0..200_000 {
            counts[zipf.draw(&mut random) as usize] += 1;
        }
        for (k, count) in counts.iter().enumerate() {
            let expected = 200_000.0 * f64::from(zipf.share(k as u32)) / 4_294_967_296.0;
            let slack = 6.0 * expected.sqrt();
            assert!((f64::from(*count) - expected).abs() < slack, "{k}: {count} for {expected}");
        }
        assert!(counts[0] > counts[10] && counts[10] > counts[49]);
        assert_eq!(Zipf::new(1, 0.9).draw(&mut random), 0);
    }
}
