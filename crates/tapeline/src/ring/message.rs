//! The messages of `ring pub`, which `ring sub` can check and measure.
//!
//! ```text
//! 0   mark and sequence: 16 bits that say what follows, 48 bits of sequence
//! 8   due, ns since 1970 UTC on the publisher's clock   (stamped messages only)
//! 16  sent, likewise
//! 24… filler up to the message's size
//! ```
//!
//! The sequence is the frame's number in the ring, so that it goes on where a publisher follows another. The publisher's
//! note carries its clock's calibration: both ends then read one time line, and no error of two clocks is in a latency.

use tapeline_measure::{Calibration, Nanos};

/// Bytes of a message with stamps, at least.
pub(super) const STAMPED_BYTES: usize = 24;
/// Bytes of a message without stamps, at least.
pub(super) const UNSTAMPED_BYTES: usize = 8;

const STAMPED: u64 = 0x7a9e << 48;
const UNSTAMPED: u64 = 0x7a9d << 48;
const SEQUENCE: u64 = (1 << 48) - 1;

/// Tells these notes from others' (the plant's, for instance).
const NOTE: u64 = u64::from_le_bytes(*b"ringpub1");

/// What a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) sequence: u64,
    pub(super) stamps: Option<Stamps>,
}

/// When a message was to be sent and when it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamps {
    pub(super) due: Nanos,
    pub(super) sent: Nanos,
}

impl Message {
    /// Writes the message field by field into the frame itself; the filler stays as it is. A shorter frame than the
    /// message needs is left alone: the caller has checked the size once.
    #[inline]
    pub(super) fn write(&self, frame: &mut [u8]) {
        let (words, _) = frame.as_chunks_mut::<8>();
        match (self.stamps, words) {
            (Some(stamps), [sequence, due, sent, ..]) => {
                *sequence = (STAMPED | self.sequence & SEQUENCE).to_le_bytes();
                *due = stamps.due.0.to_le_bytes();
                *sent = stamps.sent.0.to_le_bytes();
            }
            (None, [sequence, ..]) => *sequence = (UNSTAMPED | self.sequence & SEQUENCE).to_le_bytes(),
            _ => {}
        }
    }

    /// Reads a frame; `None` if it is not one of `ring pub`'s.
    #[inline]
    pub(super) fn read(frame: &[u8]) -> Option<Self> {
        let (words, _) = frame.as_chunks::<8>();
        let first = u64::from_le_bytes(*words.first()?);
        let sequence = first & SEQUENCE;
        match (first & !SEQUENCE, words) {
            (STAMPED, [_, due, sent, ..]) => {
                let nanos = |word: &[u8; 8]| Nanos(u64::from_le_bytes(*word));
                Some(Self { sequence, stamps: Some(Stamps { due: nanos(due), sent: nanos(sent) }) })
            }
            (UNSTAMPED, _) => Some(Self { sequence, stamps: None }),
            _ => None,
        }
    }
}

/// What `ring pub` keeps in its ring's note.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    pub(super) calibration: Calibration,
    /// 0 = as fast as it goes.
    pub(super) rate_hz: u64,
    /// Time since the start of sending, in ns.
    pub(super) elapsed_ns: u64,
    /// How much of it the ring was full and a message waited.
    pub(super) held_back_ns: u64,
}

impl Note {
    pub(super) fn to_words(self) -> [u64; 8] {
        let [a, b, c, d] = self.calibration.to_words();
        [NOTE, a, b, c, d, self.rate_hz, self.elapsed_ns, self.held_back_ns]
    }

    /// `None` for any other note.
    pub(super) fn from_words(words: [u64; 8]) -> Option<Self> {
        let [mark, a, b, c, d, rate_hz, elapsed_ns, held_back_ns] = words;
        let calibration = Calibration::from_words([a, b, c, d])?;
        (mark == NOTE).then_some(Self { calibration, rate_hz, elapsed_ns, held_back_ns })
    }

    /// The share of the time in which the ring held the publisher back, 0 to 1.
    pub(super) fn held_back_share(&self) -> f64 {
        self.held_back_ns as f64 / self.elapsed_ns.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_read_back() {
        let stamps = Some(Stamps { due: Nanos(5), sent: Nanos(7) });
        for (message, size) in [
            (Message { sequence: 0, stamps: None }, 8),
            (Message { sequence: SEQUENCE, stamps: None }, 1500),
            (Message { sequence: 3, stamps }, 24),
            (Message { sequence: SEQUENCE, stamps }, 25),
        ] {
            let mut frame = vec![0xff; size];
            message.write(&mut frame);
            assert_eq!(Message::read(&frame), Some(message));
        }
    }

    #[test]
    fn other_frames_are_not_ours() {
        assert_eq!(Message::read(&[]), None);
        assert_eq!(Message::read(&[0x9e; 7]), None);
        assert_eq!(Message::read(&[0; 64]), None);
        // Said to be stamped, and too short for stamps.
        assert_eq!(Message::read(&STAMPED.to_le_bytes()), None);
    }

    #[test]
    fn other_notes_are_not_ours() {
        assert!(Note::from_words([0; 8]).is_none());
        assert!(Note::from_words([u64::MAX; 8]).is_none());
    }
}
