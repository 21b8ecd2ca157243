//! The messages of `ring pub`, which `ring sub` can check and measure.
//!
//! ```text
//! 0   mark and sequence: 16 bits that say what follows, 48 bits of sequence
//! 8   due, ns since 1970 UTC on the publisher's clock   (stamped messages only)
//! 16  sent, likewise
//! 24… filler up to the message's size, made from the sequence so that every byte can be checked
//! ```
//!
//! The sequence is the frame's number in the ring, so it continues when one publisher follows another. The
//! publisher's note carries the calibration of its clock: both ends use one timeline, and no latency contains an
//! error between two clocks.

use tapeline_measure::{Calibration, Nanos};

/// Minimum size of a message with stamps, in bytes.
pub(super) const STAMPED_BYTES: usize = 24;
/// Minimum size of a message without stamps, in bytes.
pub(super) const UNSTAMPED_BYTES: usize = 8;
/// Maximum length of a topic, in bytes: the space left in a ring's note.
pub(super) const TOPIC_BYTES: usize = 16;

/// The upper 12 bits of the mark identify these messages; the lower 4 describe the message.
const MARK: u64 = 0x7a9 << 52;
const MARK_BITS: u64 = 0xfff << 52;
const STAMPED: u64 = 1 << 48;
const FILLED: u64 = 1 << 49;
const WARM_UP: u64 = 1 << 50;
const SEQUENCE: u64 = (1 << 48) - 1;

/// Distinguishes these notes from others (the plant's, for example).
const NOTE: u32 = u32::from_le_bytes(*b"rpb2");

/// The content of a message without its filler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) sequence: u64,
    pub(super) stamps: Option<Stamps>,
    /// Sent before the measured time: counted but not measured.
    pub(super) warm_up: bool,
    /// Whether every byte is written, or only the part before the filler.
    pub(super) filled: bool,
}

/// When a message was due and when it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamps {
    pub(super) due: Nanos,
    pub(super) sent: Nanos,
}

impl Message {
    /// Writes the message word by word directly into the frame. A frame that is too short is left unchanged: the
    /// caller has checked the size once.
    #[inline]
    pub(super) fn write(&self, frame: &mut [u8]) {
        let flag = |set: bool, flag: u64| if set { flag } else { 0 };
        let first = MARK
            | flag(self.stamps.is_some(), STAMPED)
            | flag(self.filled, FILLED)
            | flag(self.warm_up, WARM_UP)
            | self.sequence & SEQUENCE;
        let (words, tail) = frame.as_chunks_mut::<8>();
        let filler = match (self.stamps, words) {
            (Some(stamps), [sequence, due, sent, filler @ ..]) => {
                *sequence = first.to_le_bytes();
                *due = stamps.due.0.to_le_bytes();
                *sent = stamps.sent.0.to_le_bytes();
                filler
            }
            (None, [sequence, filler @ ..]) => {
                *sequence = first.to_le_bytes();
                filler
            }
            _ => return,
        };
        if self.filled {
            let pattern = pattern(self.sequence);
            filler.fill(pattern);
            for (byte, &value) in tail.iter_mut().zip(&pattern) {
                *byte = value;
            }
        }
    }

    /// Reads a frame; `None` if `ring pub` did not write it.
    #[inline]
    pub(super) fn read(frame: &[u8]) -> Option<Self> {
        let (words, _) = frame.as_chunks::<8>();
        let first = u64::from_le_bytes(*words.first()?);
        if first & MARK_BITS != MARK {
            return None;
        }
        let stamps = if first & STAMPED == 0 {
            None
        } else {
            let [_, due, sent, ..] = words else { return None };
            let nanos = |word: &[u8; 8]| Nanos(u64::from_le_bytes(*word));
            Some(Stamps { due: nanos(due), sent: nanos(sent) })
        };
        Some(Self {
            sequence: first & SEQUENCE,
            stamps,
            warm_up: first & WARM_UP != 0,
            filled: first & FILLED != 0,
        })
    }

    /// Whether every byte of the frame's filler is what the publisher wrote; `true` for a message without filler.
    pub(super) fn is_intact(&self, frame: &[u8]) -> bool {
        if !self.filled {
            return true;
        }
        let before = if self.stamps.is_some() { STAMPED_BYTES } else { UNSTAMPED_BYTES };
        let pattern = pattern(self.sequence);
        let (words, tail) = frame.get(before..).unwrap_or_default().as_chunks::<8>();
        words.iter().all(|word| *word == pattern) && tail.iter().zip(&pattern).all(|(a, b)| a == b)
    }
}

/// Eight bytes of filler. The odd factor spreads the sequence over all eight (Knuth's multiplicative hash), so that
/// a byte of another message differs.
#[inline]
fn pattern(sequence: u64) -> [u8; 8] {
    (sequence | 1 << 63).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()
}

/// A short description of a ring's content: 1 to 16 bytes of visible characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Topic([u8; TOPIC_BYTES]);

impl Topic {
    /// Parses a topic given as an argument.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let fits = (1..=TOPIC_BYTES).contains(&text.len()) && text.chars().all(|c| !c.is_control());
        if !fits {
            return Err(format!("a topic has 1 to {TOPIC_BYTES} bytes, and no control characters"));
        }
        let mut bytes = [0; TOPIC_BYTES];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Self(bytes))
    }

    /// The topic as text; `None` if it is empty.
    pub(super) fn text(&self) -> Option<String> {
        let len = self.0.iter().position(|byte| *byte == 0).unwrap_or(TOPIC_BYTES);
        // Other processes may write to the ring's memory: remove control characters.
        let text: String =
            String::from_utf8_lossy(&self.0[..len]).chars().filter(|c| !c.is_control()).collect();
        (!text.is_empty()).then_some(text)
    }
}

/// What `ring pub` stores in its ring's note.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    pub(super) calibration: Calibration,
    /// 0 = as fast as possible.
    pub(super) rate_hz: u64,
    /// The share of the time, 0 to 1, during which the ring was full and a message waited.
    pub(super) held_back_share: f64,
    /// Messages that were not sent because the ring was full, up to 4 billion.
    pub(super) refused: u32,
    pub(super) topic: Topic,
}

/// The rate has 40 bits, up to a trillion a second; the share has the other 24.
const RATE_BITS: u32 = 40;
const SHARE_STEPS: f64 = ((1 << 24) - 1) as f64;

impl Note {
    pub(super) fn to_words(self) -> [u64; 8] {
        let [a, b, c, d] = self.calibration.to_words();
        let rate = self.rate_hz.min((1 << RATE_BITS) - 1);
        let share = (self.held_back_share.clamp(0.0, 1.0) * SHARE_STEPS).round() as u64;
        let first = u64::from(NOTE) | u64::from(self.refused) << 32;
        let (words, _) = self.topic.0.as_chunks::<8>();
        let topic = |word: usize| words.get(word).map_or(0, |bytes| u64::from_le_bytes(*bytes));
        [first, a, b, c, d, share << RATE_BITS | rate, topic(0), topic(1)]
    }

    /// `None` if this is another kind of note.
    pub(super) fn from_words(words: [u64; 8]) -> Option<Self> {
        let [first, a, b, c, d, rate_and_share, topic_0, topic_1] = words;
        if first as u32 != NOTE {
            return None;
        }
        let mut topic = [0; TOPIC_BYTES];
        topic.copy_from_slice([topic_0, topic_1].map(u64::to_le_bytes).as_flattened());
        Some(Self {
            calibration: Calibration::from_words([a, b, c, d])?,
            rate_hz: rate_and_share & ((1 << RATE_BITS) - 1),
            held_back_share: (rate_and_share >> RATE_BITS) as f64 / SHARE_STEPS,
            refused: (first >> 32) as u32,
            topic: Topic(topic),
        })
    }
}

#[cfg(test)]
mod tests {
    use tapeline_measure::Clock;

    use super::*;

    #[test]
    fn messages_read_back() {
        let stamps = Some(Stamps { due: Nanos(5), sent: Nanos(7) });
        for (sequence, stamps, size) in
            [(0, None, 8), (SEQUENCE, None, 1500), (3, stamps, 24), (SEQUENCE, stamps, 25), (9, stamps, 100)]
        {
            for (warm_up, filled) in [(false, true), (true, false)] {
                let message = Message { sequence, stamps, warm_up, filled };
                let mut frame = vec![0xff; size];
                message.write(&mut frame);
                assert_eq!(Message::read(&frame), Some(message));
                assert!(message.is_intact(&frame));
            }
        }
    }

    #[test]
    fn a_wrong_byte_anywhere_in_the_filler_is_seen() {
        for (stamps, from) in [(None, 8), (Some(Stamps { due: Nanos(1), sent: Nanos(2) }), 24)] {
            let message = Message { sequence: 77, stamps, warm_up: false, filled: true };
            let mut frame = vec![0; 45];
            message.write(&mut frame);
            for at in from..frame.len() {
                frame[at] ^= 1;
                assert!(!message.is_intact(&frame), "byte {at}");
                frame[at] ^= 1;
            }
            let other = Message { sequence: 78, ..message };
            assert!(!other.is_intact(&frame), "another message's bytes");
        }
    }

    #[test]
    fn other_frames_are_not_ours() {
        assert_eq!(Message::read(&[]), None);
        assert_eq!(Message::read(&[0x9e; 7]), None);
        assert_eq!(Message::read(&[0; 64]), None);
        // Marked as stamped, but too short for stamps.
        assert_eq!(Message::read(&(MARK | STAMPED).to_le_bytes()), None);
    }

    #[test]
    fn notes_read_back() {
        let calibration = Clock::calibrate().calibration();
        let topic = Topic::new("smx_perf").unwrap();
        let note = Note { calibration, rate_hz: 10_000_000, held_back_share: 0.25, refused: 7, topic };
        let read = Note::from_words(note.to_words()).unwrap();
        assert_eq!((read.rate_hz, read.refused, read.topic), (10_000_000, 7, topic));
        assert!((read.held_back_share - 0.25).abs() < 1e-6);
        assert_eq!(read.topic.text().as_deref(), Some("smx_perf"));
        assert_eq!(Topic::default().text(), None);
        assert!(
            Topic::new("").is_err() && Topic::new("seventeen letters").is_err() && Topic::new("a\n").is_err()
        );
    }

    #[test]
    fn other_notes_are_not_ours() {
        assert!(Note::from_words([0; 8]).is_none());
        assert!(Note::from_words([u64::MAX; 8]).is_none());
    }
}
