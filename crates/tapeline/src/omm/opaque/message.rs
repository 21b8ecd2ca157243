//! What the messages are: those of ETA's TransportPerf (3.6), so that either end can be that one.
//!
//! A sequence number, from 0 on each connection and in each direction; a time stamp, nanoseconds of CLOCK_MONOTONIC at the
//! sender, 0 for none; zeros. Where messages are JSON (they are no JSON all the same) four bytes with the length go first,
//! and ETA packs several into `[one,other]`. All in the byte order of the machine, of which those that run this have one.

/// The shortest that TransportPerf takes, over whichever transport.
pub(super) const SHORTEST: usize = 20;

const WORD: usize = 8;
const LENGTH: usize = 4;

/// What a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) sequence: u64,
    /// Nanoseconds of CLOCK_MONOTONIC; 0 for none.
    pub(super) stamp_ns: u64,
}

/// The one message that is sent again and again, in memory of its own.
#[derive(Debug)]
pub(super) struct Template {
    bytes: Box<[u8]>,
    /// Where the sequence number is.
    at: usize,
}

impl Template {
    /// Of so many bytes, [`SHORTEST`] at least.
    pub(super) fn new(len: usize, is_json: bool) -> Self {
        let mut bytes = vec![0; len.max(SHORTEST)];
        let at = if is_json { LENGTH } else { 0 };
        if is_json {
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            bytes[..LENGTH].copy_from_slice(&length.to_le_bytes());
        }
        Self { bytes: bytes.into(), at }
    }

    #[inline]
    pub(super) fn say(&mut self, said: Said) -> &[u8] {
        let words = &mut self.bytes[self.at..self.at + 2 * WORD];
        words[..WORD].copy_from_slice(&said.sequence.to_le_bytes());
        words[WORD..].copy_from_slice(&said.stamp_ns.to_le_bytes());
        &self.bytes
    }
}

/// Tells each message of what came as one. `false`: it is none of these messages, from some point on.
#[inline]
pub(super) fn read(bytes: &[u8], is_json: bool, mut tell: impl FnMut(Said)) -> bool {
    if !is_json {
        return said(bytes).map(tell).is_some();
    }
    // A length can look like a bracket: the one that is right decides.
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
    Some(Said { sequence: word(0)?, stamp_ns: word(WORD)? })
}

fn length(bytes: &[u8]) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(*bytes.first_chunk()?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8], is_json: bool) -> Option<Vec<u64>> {
        let mut found = Vec::new();
        read(bytes, is_json, |said| found.push(said.sequence)).then_some(found)
    }

    #[test]
    fn comes_as_it_went() {
        for is_json in [false, true] {
            // 91 is the length that begins as a bracket does.
            for len in [20, 76, 91, 347, 5_000] {
                let mut template = Template::new(len, is_json);
                for said in [Said { sequence: 0, stamp_ns: 0 }, Said { sequence: 1 << 40, stamp_ns: 7 }] {
                    let bytes = template.say(said).to_vec();
                    assert_eq!(bytes.len(), len);
                    let mut found = Vec::new();
                    assert!(read(&bytes, is_json, |said| found.push(said)));
                    assert_eq!(found, [said]);
                    assert_eq!(all(&bytes[..15], is_json), None, "cut");
                }
            }
        }
    }

    #[test]
    fn packed_by_eta() {
        let mut template = Template::new(76, true);
        let mut text = vec![b'['];
        for sequence in 3..6 {
            text.extend_from_slice(template.say(Said { sequence, stamp_ns: 0 }));
            text.push(if sequence == 5 { b']' } else { b',' });
        }
        assert_eq!(all(&text, true), Some(vec![3, 4, 5]));
        text[77] = b';';
        assert_eq!(all(&text, true), None);
    }

    #[test]
    fn whatever_is_changed_is_read_or_not() {
        let mut template = Template::new(20, true);
        let one = template.say(Said { sequence: 1, stamp_ns: 2 }).to_vec();
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
