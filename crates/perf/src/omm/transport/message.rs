//! The message format of ETA's TransportPerf (3.6), so that either end can be that tool.
//!
//! A message is a sequence number, from 0 on each connection and in each direction; a time stamp in nanoseconds of
//! CLOCK_MONOTONIC at the sender, 0 for none; and zeros. In a message with a time stamp that is long enough, the
//! first zeros hold the due time on the same clock; TransportPerf ignores it. On JSON connections (the messages are
//! not JSON there either) four bytes with the length come first, and ETA packs several as `[one,other]`. All numbers
//! are in the machine's byte order, which is little-endian on all supported machines.

/// Minimum length that TransportPerf accepts, over any transport.
pub(in super::super) const SHORTEST: usize = 20;

const WORD: usize = 8;
const LENGTH: usize = 4;

/// The contents of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) sequence: u64,
    /// When it was sent, in nanoseconds of CLOCK_MONOTONIC; 0 if not stated.
    pub(super) stamp_ns: u64,
    /// When it was due, in the same form.
    pub(super) due_ns: u64,
}

/// The message that is sent repeatedly, in its own memory.
#[derive(Debug)]
pub(super) struct Template {
    bytes: Box<[u8]>,
    /// Offset of the sequence number.
    at: usize,
}

impl Template {
    /// A message of `len` bytes, at least [`SHORTEST`].
    pub(super) fn new(len: usize, is_json: bool) -> Self {
        let mut bytes = vec![0; len.max(SHORTEST)];
        let at = if is_json { LENGTH } else { 0 };
        if is_json {
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            bytes[..LENGTH].copy_from_slice(&length.to_le_bytes());
        }
        Self { bytes: bytes.into(), at }
    }

    /// The message with this sequence number and without a time.
    #[inline]
    pub(super) fn number(&mut self, sequence: u64) -> &[u8] {
        self.bytes[self.at..self.at + WORD].copy_from_slice(&sequence.to_le_bytes());
        &self.bytes
    }

    /// The message with these contents; the due time only if the message is long enough.
    pub(super) fn say(&mut self, said: Said) -> &[u8] {
        let words = [said.sequence, said.stamp_ns, said.due_ns];
        for (place, word) in self.bytes[self.at..].chunks_exact_mut(WORD).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        &self.bytes
    }
}

/// Calls `tell` for each message in a received buffer. `false`: from some point on, the format is invalid.
#[inline]
pub(super) fn read(bytes: &[u8], is_json: bool, mut tell: impl FnMut(Said)) -> bool {
    if !is_json {
        return said(bytes).map(tell).is_some();
    }
    // A length can look like a bracket: a length that matches the buffer decides.
    let mut rest = match bytes.strip_prefix(b"[") {
        Some(packed) if length(bytes) != Some(bytes.len()) => packed,
        _ => bytes,
    };
    loop {
        let Some(message) = length(rest).and_then(|length| rest.get(..length)) else { return false };
        let Some(said) = message.get(LENGTH..).and_then(said) else { return false };
        tell(said);
        rest = match &rest[message.len()..] {
            [] | [b']'] => return true,
            [b',', rest @ ..] => rest,
            _ => return false,
        };
    }
}

fn said(bytes: &[u8]) -> Option<Said> {
    let word = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let (sequence, stamp_ns) = (word(0)?, word(WORD)?);
    let due_ns = if stamp_ns > 0 { word(2 * WORD).unwrap_or(0) } else { 0 };
    Some(Said { sequence, stamp_ns, due_ns })
}

fn length(bytes: &[u8]) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(*bytes.first_chunk()?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Said = Said { sequence: 0, stamp_ns: 0, due_ns: 0 };

    fn all(bytes: &[u8], is_json: bool) -> Option<Vec<u64>> {
        let mut found = Vec::new();
        read(bytes, is_json, |said| found.push(said.sequence)).then_some(found)
    }

    #[test]
    fn comes_as_it_went() {
        for is_json in [false, true] {
            // A length of 91 starts with the byte of a bracket.
            for len in [20, 27, 28, 76, 91, 347, 5_000] {
                let mut template = Template::new(len, is_json);
                for said in [PLAIN, Said { sequence: 1 << 40, stamp_ns: 7, due_ns: 5 }, PLAIN] {
                    let bytes = template.say(said).to_vec();
                    assert_eq!(bytes.len(), len);
                    let mut found = Vec::new();
                    assert!(read(&bytes, is_json, |said| found.push(said)));
                    let has_room = len >= if is_json { 28 } else { 24 };
                    assert_eq!(found, [Said { due_ns: if has_room { said.due_ns } else { 0 }, ..said }]);
                    assert_eq!(all(&bytes[..15], is_json), None, "cut");
                }
                assert_eq!(all(template.number(9), is_json), Some(vec![9]));
            }
        }
    }

    #[test]
    fn packed_by_eta() {
        let mut template = Template::new(76, true);
        let mut text = vec![b'['];
        for sequence in 3..6 {
            text.extend_from_slice(template.number(sequence));
            text.push(if sequence == 5 { b']' } else { b',' });
        }
        assert_eq!(all(&text, true), Some(vec![3, 4, 5]));
        text[77] = b';';
        assert_eq!(all(&text, true), None);
    }

    #[test]
    fn whatever_is_changed_is_read_or_not() {
        let mut template = Template::new(20, true);
        let one = template.say(Said { sequence: 1, stamp_ns: 2, due_ns: 3 }).to_vec();
        let packed = [b"[", &one[..], b",", &one, b"]"].concat();
        for text in [one, packed] {
            for at in 0..text.len() {
                for changed in [0, 1, 0x7f, 0xff, b'[', b',', b']'] {
                    let mut bytes = text.clone();
                    bytes[at] = changed;
                    for end in 0..=bytes.len() {
                        let mut told = 0;
                        read(&bytes[..end], true, |_| told += 1);
                        assert!(told <= end / SHORTEST, "{bytes:?} to {end}");
                    }
                }
            }
        }
    }
}
