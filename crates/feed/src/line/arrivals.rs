//! When first copies came, and what they were.

use std::ops::Range;

use tapeline_nanos::Nanos;

use super::Line;
use crate::framing::{Kind, Packet};

/// Remembered packets: at one packet a microsecond, lines that are 8 ms apart can still be compared.
const PLACES: usize = 8_192;

/// So many messages from a numbering's beginning are all remembered for good: who numbers anew begins there.
const BEGINNING: u64 = 4_096;

/// The sequences at which packets began to be new, with their times, their lines and a print of the message. A later packet
/// overwrites one of [`PLACES`] sequences before. Of the numbering's beginning, the prints of all messages.
#[derive(Debug)]
pub(super) struct Arrivals {
    recent: Box<[Arrival]>,
    /// By sequence; 0 where nothing has come.
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

/// What a packet is beside what had come under its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Likeness {
    /// A copy of it.
    Same,
    /// Something else, wherever the two can be compared.
    Other,
    /// Not to be compared with anything.
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

    /// The first copy of `sequence` came on `line`, and the message before it did not come with it.
    #[inline]
    pub(super) fn record(&mut self, sequence: u64, message: &[u8], line: Line, received: Nanos) {
        let print = print(message);
        self.recent[sequence as usize % PLACES] = Arrival { sequence, received, print, line };
    }

    /// Whether a message is to be [remembered](Self::remember).
    #[inline]
    pub(super) const fn is_beginning(sequence: u64) -> bool {
        sequence < BEGINNING
    }

    /// The first copy of a message of the numbering's beginning came.
    #[cold]
    pub(super) fn remember(&mut self, sequence: u64, message: &[u8]) {
        if let Some(known) = self.beginning.get_mut(sequence as usize) {
            *known = print(message);
        }
    }

    /// When the first copy came, if it is remembered and another line brought it.
    #[inline]
    pub(super) fn on_another_line(&self, sequence: u64, line: Line) -> Option<Nanos> {
        let first = self.recent[sequence as usize % PLACES];
        (first.sequence == sequence && first.line != line).then_some(first.received)
    }

    /// Whether a packet's messages are those that had come. One alike is enough: a packet of another numbering has none, a
    /// damaged copy mostly some. Looks at every message: for packets that do not go on where their line was.
    pub(super) fn likeness(&self, packet: &Packet<'_>) -> Likeness {
        let Kind::Data { messages, .. } = packet.kind else { return Likeness::Unknown };
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

    /// The latest of these sequences whose print is known and is such a one; looks at [`PLACES`] of them.
    pub(super) fn latest(&self, among: Range<u64>, is: impl Fn(u64, u32) -> bool) -> Option<u64> {
        let is = |sequence: &u64| self.print(*sequence).is_some_and(|print| is(*sequence, print));
        among.rev().take(PLACES).find(is)
    }

    /// What is known of a message.
    pub(super) fn print(&self, sequence: u64) -> Option<u32> {
        if Self::is_beginning(sequence) {
            return Some(self.beginning[sequence as usize]).filter(|print| *print != 0);
        }
        let arrival = self.recent[sequence as usize % PLACES];
        (arrival.sequence == sequence).then_some(arrival.print)
    }
}

/// 31 bits that differ where messages do, but for one time in two thousand million; never 0. Once for each packet, in a few
/// nanoseconds: a multiplication for eight bytes (the constant is the golden ratio's, as in Knuth's multiplicative hashing).
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
    // Cuts the low half away: the high bits depend on all of the message's.
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
