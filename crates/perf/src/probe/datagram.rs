//! The datagrams of a probe: a head, and what fills the datagram up.
//!
//! | bytes | meaning (numbers are little-endian) |
//! |---|---|
//! | 8 | `tapeprb1` |
//! | 8 | the measurement, chosen by the asking end |
//! | 8 | the sequence within the step |
//! | 4 | the step |
//! | 2 | the port of the asking end that takes answers |
//! | 1 | the kind |
//! | 1 | zero |
//! | 72 | of an answer with counts: eight numbers, and zeros |

/// The length of the head.
pub(super) const HEAD_BYTES: usize = 32;
/// The length of an answer with counts. No answer is longer than its question.
pub(super) const LEAST_BYTES: usize = HEAD_BYTES + 72;
const MAGIC: &[u8; 8] = b"tapeprb1";
/// Numbers of an answer with counts.
pub(super) const COUNTS: usize = 8;

/// What a datagram says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeKind {
    /// Answer at once.
    Ping = 1,
    /// Count this.
    Data = 2,
    /// Answer with the counts of the step.
    Ask = 3,
    /// The measurement is over.
    Over = 4,
    /// The answer to a ping.
    Pong = 5,
    /// The answer with counts.
    Counts = 6,
}

impl ProbeKind {
    const ALL: [Self; 6] = [Self::Ping, Self::Data, Self::Ask, Self::Over, Self::Pong, Self::Counts];
}

/// The head of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) measurement: u64,
    pub(super) seq: u64,
    pub(super) step: u32,
    pub(super) port: u16,
    pub(super) kind: ProbeKind,
}

impl Head {
    /// Writes the head to the beginning of a datagram.
    pub(super) fn write(&self, datagram: &mut [u8]) {
        datagram[..8].copy_from_slice(MAGIC);
        datagram[8..16].copy_from_slice(&self.measurement.to_le_bytes());
        datagram[16..24].copy_from_slice(&self.seq.to_le_bytes());
        datagram[24..28].copy_from_slice(&self.step.to_le_bytes());
        datagram[28..30].copy_from_slice(&self.port.to_le_bytes());
        datagram[30..32].copy_from_slice(&[self.kind as u8, 0]);
    }

    /// Reads the head of a datagram; `None` if it is not a probe's.
    pub(super) fn read(datagram: &[u8]) -> Option<Self> {
        let head: &[u8; HEAD_BYTES] = datagram.first_chunk()?;
        let kind = *ProbeKind::ALL.iter().find(|kind| **kind as u8 == head[30])?;
        let word = |at: usize| head[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
        (head[..8] == *MAGIC).then_some(Self {
            measurement: word(8),
            seq: word(16),
            step: word(24) as u32,
            port: u16::from_le_bytes([head[28], head[29]]),
            kind,
        })
    }
}

/// Writes counts behind a head.
pub(super) fn write_counts(datagram: &mut [u8; LEAST_BYTES], counts: [u64; COUNTS]) {
    for (place, count) in datagram[HEAD_BYTES..].chunks_exact_mut(8).zip(counts) {
        place.copy_from_slice(&count.to_le_bytes());
    }
}

/// Reads the counts behind a head.
pub(super) fn read_counts(datagram: &[u8]) -> Option<[u64; COUNTS]> {
    let counts = datagram.get(HEAD_BYTES..LEAST_BYTES)?;
    Some(std::array::from_fn(|at| counts[at * 8..at * 8 + 8].try_into().map_or(0, u64::from_le_bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_and_counts_come_back_and_foreign_bytes_do_not() {
        let head = Head { measurement: 1 << 40, seq: 7, step: 3, port: 900, kind: ProbeKind::Counts };
        let mut datagram = [0; LEAST_BYTES];
        head.write(&mut datagram);
        write_counts(&mut datagram, [1, 2, 3, 4, 5, 6, 7, u64::MAX]);
        assert_eq!(Head::read(&datagram), Some(head));
        assert_eq!(read_counts(&datagram), Some([1, 2, 3, 4, 5, 6, 7, u64::MAX]));
        assert_eq!(Head::read(&datagram[..HEAD_BYTES - 1]), None);
        assert_eq!(read_counts(&datagram[..LEAST_BYTES - 1]), None);
        for (at, byte) in [(0, b'T'), (30, 0), (30, 7)] {
            let mut other = datagram;
            other[at] = byte;
            assert_eq!(Head::read(&other), None);
        }
    }
}
