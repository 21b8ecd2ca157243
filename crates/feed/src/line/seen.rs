//! The set of the latest sequences that have arrived.

/// Number of remembered sequences. 65,536 bits are 8 KiB: they fit in the cache, and lines differ by less.
pub(super) const SPAN: u64 = 1 << 16;

const WORDS: usize = (SPAN / 64) as usize;

/// One bit for each of the latest [`SPAN`] sequences before `end`. A run of sequences is marked at once, so a packet costs one or two words for any
/// number of messages.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    words: Box<[u64]>,
    start: u64,
    end: u64,
}

impl Seen {
    /// Creates an empty set that begins at sequence 0.
    pub(super) fn new() -> Self {
        Self { words: vec![0; WORDS].into(), start: 0, end: 0 }
    }

    /// Empties the set; `start` is the first sequence that counts.
    pub(super) fn restart(&mut self, start: u64) {
        self.words.fill(0);
        (self.start, self.end) = (start, start);
    }

    /// Returns one more than the latest sequence known to exist.
    #[inline]
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// Records that the sequences before `end` exist, and returns the number of new ones. They have not arrived yet.
    #[inline]
    pub(super) fn advance(&mut self, end: u64) -> u64 {
        let new = end.saturating_sub(self.end);
        if new >= SPAN {
            self.words.fill(0);
        } else if new > 0 {
            runs(self.end, new, |word, mask| self.words[word] &= !mask);
        }
        self.end = self.end.max(end);
        new
    }

    /// Marks the sequences from `from` to before `to`, and returns the number of those not marked before. Sequences before the start, or too far
    /// back, count as marked; sequences from `end` on are ignored.
    #[inline]
    pub(super) fn mark(&mut self, from: u64, to: u64) -> u64 {
        let from = from.max(self.start).max(self.end.saturating_sub(SPAN));
        let to = to.min(self.end);
        let mut new = 0;
        if from < to {
            runs(from, to - from, |word, mask| {
                new += u64::from((mask & !self.words[word]).count_ones());
                self.words[word] |= mask;
            });
        }
        new
    }
}

/// Passes the words and bit masks of `count` sequences from `from` on to `each`; at most [`SPAN`] sequences.
#[inline]
fn runs(from: u64, count: u64, mut each: impl FnMut(usize, u64)) {
    let (mut at, end) = (from, from + count);
    while at < end {
        let bit = at % 64;
        let bits = (64 - bit).min(end - at);
        let mask = (u64::MAX >> (64 - bits)) << bit;
        // Lossless: below WORDS.
        each((at / 64) as usize % WORDS, mask);
        at += bits;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sequence_is_new_once() {
        let mut seen = Seen::new();
        seen.restart(100);
        assert_eq!(seen.advance(300), 200);
        assert_eq!(seen.mark(90, 110), 10);
        assert_eq!(seen.mark(105, 200), 90);
        assert_eq!(seen.mark(100, 300), 100);
        assert_eq!(seen.mark(100, 400), 0);
        assert_eq!(seen.advance(200), 0);
        assert_eq!(seen.end(), 300);
    }

    #[test]
    fn what_is_too_far_back_is_taken_as_seen() {
        let mut seen = Seen::new();
        seen.restart(1);
        seen.advance(SPAN + 11);
        assert_eq!(seen.mark(1, 11), 0);
        assert_eq!(seen.mark(11, 12), 1);
        seen.advance(3 * SPAN);
        assert_eq!(seen.mark(2 * SPAN, 3 * SPAN), SPAN);
        seen.advance(3 * SPAN + 1);
        assert_eq!(seen.mark(2 * SPAN + 1, 3 * SPAN + 1), 1);
    }

    #[test]
    fn it_agrees_with_a_set() {
        let mut seen = Seen::new();
        seen.restart(5);
        let mut set = std::collections::BTreeSet::new();
        let mut random = 1_u64;
        let mut end = 5;
        for _ in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            end = end.max(5) + (random >> 60);
            seen.advance(end);
            let from = end.saturating_sub(random >> 40 & 0x3FF);
            let to = (from + (random >> 50 & 0x7F)).min(end);
            let new = (from.max(5)..to).filter(|sequence| set.insert(*sequence)).count();
            assert_eq!(seen.mark(from, to), new as u64);
        }
    }
}
