//! The message that every system carries, and the receiver's check of it.
//!
//! The first word is the sequence and so is the last one, so that a message that was read half is seen. The second word is
//! the send stamp, or zero. What lies between is the same in every message, and never written while a run lasts: no load
//! of it has to wait for a store.

use std::hint::black_box;

use tapeline_measure::{Clock, Recorder, Ticks, ticks_ordered};

/// The sequence of the message that ends a run. Its stamp is the number of messages before it, its last word the sender's
/// start.
pub(crate) const END: u64 = u64::MAX;
/// The longest message.
pub(crate) const LONGEST: usize = 2048;

/// A message as its sender writes it into the queue's own memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message<'a> {
    /// Sequence.
    pub(crate) first: u64,
    /// Send stamp, or zero.
    pub(crate) stamp: u64,
    /// The sequence once more.
    pub(crate) last: u64,
    /// What lies between, at its place: as many bytes as the message, at least 32.
    pub(crate) body: &'a [u8],
}

impl<'a> Message<'a> {
    /// Message number `sequence`.
    #[inline]
    pub(crate) fn new(sequence: u64, stamp: u64, body: &'a [u8]) -> Self {
        Self { first: sequence, stamp, last: sequence, body }
    }

    /// Bytes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.body.len()
    }

    /// Writes the message to `to`, which is exactly as long. The three words come as single stores from registers: built
    /// elsewhere and copied with wide moves, they would have to wait for the store buffer.
    #[inline]
    pub(crate) fn fill(&self, to: &mut [u8]) {
        let len = to.len().min(self.body.len());
        if len < 32 {
            return;
        }
        copy(&self.body[16..len], &mut to[16..len]);
        to[..8].copy_from_slice(&self.first.to_ne_bytes());
        to[8..16].copy_from_slice(&self.stamp.to_ne_bytes());
        to[len - 8..len].copy_from_slice(&self.last.to_ne_bytes());
    }
}

/// Copies `from` to the start of `to`, or as much as fits, and gives its length. Short ones without a call of `memcpy`,
/// which costs 5 ns: two moves of one width cover every length from one to two of it. Every system is given this copy.
#[inline]
pub(crate) fn copy(from: &[u8], to: &mut [u8]) -> usize {
    let len = from.len().min(to.len());
    let (from, to) = (&from[..len], &mut to[..len]);
    match len {
        8..=15 => both_ends::<8>(from, to),
        16..=31 => both_ends::<16>(from, to),
        32..=63 => both_ends::<32>(from, to),
        64..=128 => both_ends::<64>(from, to),
        _ => to.copy_from_slice(from),
    }
    len
}

#[inline]
fn both_ends<const N: usize>(from: &[u8], to: &mut [u8]) {
    if let (Some(first), Some(last)) = (from.first_chunk::<N>(), from.last_chunk::<N>()) {
        if let Some(place) = to.first_chunk_mut() {
            *place = *first;
        }
        if let Some(place) = to.last_chunk_mut() {
            *place = *last;
        }
    }
}

/// What a receiver counts. In C's layout: a system in another language keeps it in its own loop.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// The sequence that should come next, and so the number of messages.
    pub(crate) expected: u64,
    /// Messages missing.
    pub(crate) lost: u64,
    /// Messages late or twice.
    pub(crate) disordered: u64,
    /// Messages whose two ends do not belong together.
    pub(crate) torn: u64,
    /// From the ending message: how many were sent. Zero until it came.
    pub(crate) sent: u64,
    /// From the ending message: when the sender's measured time began, in ticks.
    pub(crate) started: u64,
    /// When the ending message was there, in ticks.
    pub(crate) ended: u64,
}

impl Tally {
    /// A message that is not the one expected.
    #[cold]
    pub(crate) fn unusual(&mut self, first: u64, stamp: u64, last: u64) {
        if first == END {
            self.ended = ticks_ordered().0;
            (self.sent, self.started) = (stamp, last);
            self.lost += stamp.saturating_sub(self.expected);
            return;
        }
        if first != last {
            self.torn += 1;
        }
        if first < self.expected {
            self.disordered += 1;
        } else {
            self.lost += first - self.expected;
            self.expected = first + 1;
        }
    }
}

/// The receiver's side: copies each message out, checks it, and records its latency if it carries a stamp.
#[derive(Debug)]
pub(crate) struct Inspector {
    pub(crate) tally: Tally,
    pub(crate) latency: Recorder,
    clock: Clock,
    copy: Box<[u8; LONGEST]>,
}

impl Inspector {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { tally: Tally::default(), latency: Recorder::new(), clock, copy: Box::new([0; LONGEST]) }
    }

    /// The end has come.
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        self.tally.ended != 0
    }

    /// One message, where it lies in the queue.
    #[inline]
    pub(crate) fn take(&mut self, message: &[u8]) {
        let len = copy(message, &mut self.copy[..]);
        let message = black_box(&self.copy[..len]);
        let (Some(first), Some(last)) = (message.first_chunk::<16>(), message.last_chunk::<8>()) else {
            self.tally.torn += 1;
            return;
        };
        let (first, stamp) = (word(first, 0), word(first, 8));
        let last = word(last, 0);
        if first != self.tally.expected || last != first {
            self.tally.unusual(first, stamp, last);
            return;
        }
        self.tally.expected += 1;
        if stamp != 0 {
            self.stamped(Ticks(stamp));
        }
    }

    /// The counter is read once all loads are done, that is when the whole message has been copied.
    #[inline]
    pub(crate) fn stamped(&mut self, sent: Ticks) {
        self.latency.record(self.clock.ns_between(sent, ticks_ordered()));
    }
}

#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |word| u64::from_ne_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(message: Message<'_>) -> Vec<u8> {
        let mut bytes = vec![0; message.len()];
        message.fill(&mut bytes);
        bytes
    }

    #[test]
    fn copies_every_length() {
        let from: Vec<u8> = (0..=255).cycle().take(LONGEST).collect();
        for len in 0..LONGEST {
            let mut to = [0; LONGEST];
            assert_eq!(copy(&from[..len], &mut to), len);
            assert_eq!(to[..len], from[..len]);
            assert!(to[len..].iter().all(|byte| *byte == 0), "{len} bytes and no more");
        }
    }

    #[test]
    fn what_is_wrong_is_counted_by_kind() {
        let body = [7; 100];
        let mut inspector = Inspector::new(Clock::calibrate());
        for sequence in [0, 1, 2, 5, 4] {
            inspector.take(&bytes(Message::new(sequence, 0, &body)));
        }
        let mut torn = bytes(Message::new(6, 0, &body));
        torn[99] ^= 1;
        inspector.take(&torn);
        assert!(!inspector.has_ended());
        inspector.take(&bytes(Message { first: END, stamp: 9, last: 3, body: &body }));
        let Tally { expected, lost, disordered, torn, sent, started, .. } = inspector.tally;
        assert_eq!((expected, lost, disordered, torn, sent, started), (7, 2 + 2, 1, 1, 9, 3));
        assert!(inspector.has_ended() && inspector.latency.samples() == 0);
    }

    #[test]
    fn a_stamp_makes_a_latency() {
        let mut inspector = Inspector::new(Clock::calibrate());
        inspector.take(&bytes(Message::new(0, tapeline_measure::ticks().0, &[0; 32])));
        assert_eq!((inspector.latency.samples(), inspector.latency.negatives()), (1, 0));
    }
}
