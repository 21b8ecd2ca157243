//! Counting: what of a step has arrived, and in which order.

use tapeline_measure::Nanos;

use super::datagram::COUNTS;

/// Sequences behind the highest within which a duplicate is told from a late datagram.
const WINDOW: u64 = 65_536;

/// The counts of one step. Costs a few instructions for each datagram, and 8 KiB.
#[derive(Debug)]
pub(super) struct StepTally {
    received: u64,
    duplicates: u64,
    reordered: u64,
    bytes: u64,
    first: Nanos,
    last: Nanos,
    /// The highest sequence, plus one.
    next: u64,
    /// A bit for each sequence of the window.
    seen: Box<[u64]>,
}

impl StepTally {
    pub(super) fn new() -> Self {
        Self {
            received: 0,
            duplicates: 0,
            reordered: 0,
            bytes: 0,
            first: Nanos(0),
            last: Nanos(0),
            next: 0,
            seen: vec![0; (WINDOW / 64) as usize].into(),
        }
    }

    /// Counts a datagram.
    pub(super) fn take(&mut self, seq: u64, bytes: usize, at: Nanos) {
        if seq >= self.next {
            // What was skipped may still come.
            for skipped in (self.next..seq).rev().take(WINDOW as usize) {
                self.set(skipped, false);
            }
            self.set(seq, true);
            self.next = seq.saturating_add(1);
        } else if self.next - seq <= WINDOW && self.is_set(seq) {
            self.duplicates += 1;
            return;
        } else {
            self.reordered += 1;
            if self.next - seq <= WINDOW {
                self.set(seq, true);
            }
        }
        if self.received == 0 {
            self.first = at;
        }
        self.last = at;
        self.received += 1;
        self.bytes += bytes as u64;
    }

    fn set(&mut self, seq: u64, is_seen: bool) {
        let (word, bit) = ((seq % WINDOW / 64) as usize, 1 << (seq % 64));
        if is_seen {
            self.seen[word] |= bit;
        } else {
            self.seen[word] &= !bit;
        }
    }

    fn is_set(&self, seq: u64) -> bool {
        self.seen[(seq % WINDOW / 64) as usize] & 1 << (seq % 64) != 0
    }

    /// Returns the counts as they travel. `dropped` is the number of datagrams that the host has dropped.
    pub(super) fn counts(&self, dropped: u64) -> [u64; COUNTS] {
        [
            self.received,
            self.duplicates,
            self.reordered,
            self.bytes,
            self.last.since(self.first).unsigned_abs(),
            dropped,
            0,
            0,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(sequences: impl IntoIterator<Item = u64>) -> [u64; 3] {
        let mut tally = StepTally::new();
        for (seq, at) in sequences.into_iter().zip(1..) {
            tally.take(seq, 100, Nanos(at));
        }
        let [received, duplicates, reordered, ..] = tally.counts(0);
        [received, duplicates, reordered]
    }

    #[test]
    fn loss_order_and_duplicates_are_told_apart() {
        assert_eq!(counted([0, 1, 2, 3]), [4, 0, 0]);
        assert_eq!(counted([0, 2, 1, 1, 2, 5]), [4, 2, 1]);
        // A sequence that was skipped long ago is late once, and then a duplicate.
        assert_eq!(counted([0, WINDOW + 3, 4, 4]), [3, 1, 1]);
        // Behind the window nobody knows.
        assert_eq!(counted([0, 3 * WINDOW, 1, 1]), [4, 0, 2]);
        // The bits of the sequences before do not stay.
        assert_eq!(
            counted((0..WINDOW).chain(2 * WINDOW..2 * WINDOW + 1).chain([WINDOW + 7])),
            [WINDOW + 2, 0, 1]
        );
    }
}
