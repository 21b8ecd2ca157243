//! The times and contents of first arrivals.

use std::ops::Range;

use tapeline_nanos::Nanos;

use super::Line;
use crate::framing::{DatagramKind, Packet};

/// Number of remembered packets: at one packet a microsecond, lines that are 8 ms apart can still be compared.
const PLACES: usize = 8_192;

/// Number of messages from the start of a numbering that are all remembered permanently, because a reset begins there.
const BEGINNING: u64 = 4_096;

/// The first new sequence of each packet, with its time, its line and a print of the message. A later packet overwrites one of [`PLACES`] sequences
/// before. In addition, the prints of all messages at the start of the numbering.
#[derive(Debug)]
pub(super) struct Arrivals {
    recent: Box<[Arrival]>,
    /// Prints by sequence; 0 for a message that has not arrived.
    beginning: Box<[u32]>,
}

#[derive(Clone, Copy, Debug)]
struct Arrival {
    sequence: u64,
    received: Nanos,
    print: u32,
    line: Line,
}

const NONE: Arrival = Arrival { sequence: 0, received: Nanos(0), print: 0, line: Line::A };

/// The result of comparing a packet with earlier messages of the same sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Likeness {
    /// A duplicate.
    Same,
    /// Different messages, wherever the two can be compared.
    Other,
    /// Nothing to compare with.
    Unknown,
}

impl Arrivals {
    pub(super) fn new() -> Self {
        Self { recent: vec![NONE; PLACES].into(), beginning: vec![0; BEGINNING as usize].into() }
    }

    pub(super) fn clear(&mut self) {
        self.recent.fill(NONE);
        self.beginning.fill(0);
    }

    /// Records that `sequence` arrived first on `line`, as the first new message of its packet.
    #[inline]
    pub(super) fn record(&mut self, sequence: u64, message: &[u8], line: Line, received: Nanos) {
        let print = print(message);
        self.recent[sequence as usize % PLACES] = Arrival { sequence, received, print, line };
    }

    /// Returns `true` if a message is to be [remembered](Self::remember).
    #[inline]
    pub(super) const fn is_beginning(sequence: u64) -> bool {
        sequence < BEGINNING
    }

    /// Remembers the first arrival of a message at the start of the numbering.
    #[cold]
    pub(super) fn remember(&mut self, sequence: u64, message: &[u8]) {
        if let Some(known) = self.beginning.get_mut(sequence as usize) {
            *known = print(message);
        }
    }

    /// Returns the time of the first arrival, if it is remembered and was on another line.
    #[inline]
    pub(super) fn on_another_line(&self, sequence: u64, line: Line) -> Option<Nanos> {
        let first = self.recent[sequence as usize % PLACES];
        (first.sequence == sequence && first.line != line).then_some(first.received)
    }

    /// Compares a packet with the earlier messages. One equal message is enough: a packet of another numbering has none, a damaged copy usually
    /// some. Compares every message, so it is for packets that do not continue their line.
    pub(super) fn likeness(&self, packet: &Packet<'_>) -> Likeness {
        let DatagramKind::Data { messages, .. } = packet.kind else { return Likeness::Unknown };
        let mut likeness = Likeness::Unknown;
        for (sequence, message) in messages {
            match self.print(sequence) {
                Some(known) if known == print(message) => return Likeness::Same,
                Some(_) => likeness = Likeness::Other,
                None => {}
            }
        }
        likeness
    }

    /// Returns the latest of these sequences whose print is known and satisfies `is`; tests at most [`PLACES`] of them.
    pub(super) fn latest(&self, among: Range<u64>, is: impl Fn(u64, u32) -> bool) -> Option<u64> {
        let is = |sequence: &u64| self.print(*sequence).is_some_and(|print| is(*sequence, print));
        among.rev().take(PLACES).find(is)
    }

    /// Returns the print of a message, if it is known.
    pub(super) fn print(&self, sequence: u64) -> Option<u32> {
        if Self::is_beginning(sequence) {
            return Some(self.beginning[sequence as usize]).filter(|print| *print != 0);
        }
        let arrival = self.recent[sequence as usize % PLACES];
        (arrival.sequence == sequence).then_some(arrival.print)
    }
}

/// Returns 31 bits that differ for different messages except once in 2,000 million; never 0. Costs a few nanoseconds for each packet: one
/// multiplication for eight bytes (the constant is that of the golden ratio, as in Knuth's multiplicative hashing).
#[inline]
pub(super) fn print(message: &[u8]) -> u32 {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut state = (message.len() as u64).wrapping_mul(GOLDEN);
    let (words, rest) = message.as_chunks::<8>();
    let mut mix = |word: [u8; 8]| {
        state = (state ^ u64::from_le_bytes(word)).wrapping_mul(GOLDEN);
        state ^= state >> 29;
    };
    for word in words {
        mix(*word);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(last);
    // Keeps the high half, whose bits depend on all bits of the message.
    (state >> 32) as u32 | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_tell_messages_apart() {
        let mut prints = std::collections::BTreeSet::new();
        let mut messages = 0;
        for length in 0..64_usize {
            let message = vec![0; length];
            assert!(prints.insert(print(&message)));
            messages += 1;
            for bit in 0..8 * length {
                let mut other = message.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                prints.insert(print(&other));
                messages += 1;
            }
        }
        assert!(messages - prints.len() < 3, "{} of {messages}", prints.len());
    }
}
