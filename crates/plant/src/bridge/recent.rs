//! The last datagrams of the lines while the past comes from the catch-up server: when it is there, the lines go on where it ends.

use tapeline_feed::line::Line;
use tapeline_feed::moldudp64::MoldSession;

/// The line and the length before a datagram.
const HEAD_BYTES: usize = 3;

/// The last datagrams in order of arrival: at least half of the bytes that are permitted, if so many have come.
#[derive(Debug)]
pub(super) struct Recent {
    /// Full, and the one that is being filled.
    older: Vec<u8>,
    newer: Vec<u8>,
    /// Maximum bytes of each.
    half: usize,
    /// The session of the last datagram, and the sequence up to which all have come: other lines bring the same.
    session: MoldSession,
    end: u64,
}

impl Recent {
    /// Creates a memory of at most `bytes`, which are allocated when the first datagram comes.
    pub(super) const fn new(bytes: usize) -> Self {
        Self { older: Vec::new(), newer: Vec::new(), half: bytes / 2, session: MoldSession([0; 10]), end: 0 }
    }

    /// Takes a datagram with the sequences of its first message and behind its last, if it is not known to have come before. Forgets the oldest ones
    /// if there are too many. One that does not fit in half of the bytes is left out.
    pub(super) fn push(
        &mut self,
        line: Line,
        session: MoldSession,
        (first, end): (u64, u64),
        datagram: &[u8],
    ) {
        let bytes = HEAD_BYTES + datagram.len();
        let Ok(length) = u16::try_from(datagram.len()) else { return };
        if bytes > self.half {
            return;
        }
        if self.session != session {
            (self.session, self.end) = (session, first);
        }
        if end <= self.end {
            return;
        }
        // Behind a hole another line may bring what is in it.
        if first <= self.end {
            self.end = end;
        }
        if self.newer.len() + bytes > self.half {
            std::mem::swap(&mut self.older, &mut self.newer);
            self.newer.clear();
        }
        if self.newer.capacity() == 0 {
            self.newer.reserve_exact(self.half);
        }
        // Lossless: there are eight lines.
        self.newer.push(line.number() as u8);
        self.newer.extend_from_slice(&length.to_ne_bytes());
        self.newer.extend_from_slice(datagram);
    }

    /// Returns the datagrams with their lines, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Line, &[u8])> {
        [&self.older, &self.newer].into_iter().flat_map(|half| {
            let mut rest = half.as_slice();
            std::iter::from_fn(move || {
                let ([line, length @ ..], behind) = rest.split_first_chunk::<HEAD_BYTES>()?;
                let (datagram, behind) = behind.split_at_checked(usize::from(u16::from_ne_bytes(*length)))?;
                rest = behind;
                Some((Line::new(usize::from(*line))?, datagram))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_datagrams_are_kept_in_order_within_the_bytes() {
        let (mut recent, session) = (Recent::new(80), MoldSession::new("S"));
        for number in 0..100 {
            let seq = u64::from(number);
            recent.push(Line::B, session, (seq, seq + 1), &[number; 7]);
            recent.push(Line::A, session, (seq, seq + 1), &[number; 7]);
            let kept: Vec<_> = recent.iter().collect();
            assert!(kept.len() * (7 + HEAD_BYTES) <= 80 && kept.len() >= usize::from(number + 1).min(4));
            let first = usize::from(number) + 1 - kept.len();
            for ((line, datagram), at) in kept.iter().zip(first..) {
                assert_eq!((*line, *datagram), (Line::B, &[at as u8; 7][..]), "the first that came, once");
            }
        }
        recent.push(Line::A, session, (100, 101), &[0; 38]);
        recent.push(Line::A, MoldSession::new("T"), (5, 6), &[]);
        assert_eq!(recent.iter().last(), Some((Line::A, &[][..])), "one that is too long is left out");
    }

    #[test]
    fn what_one_line_has_lost_is_kept_of_another() {
        let (mut recent, session) = (Recent::new(800), MoldSession::new("S"));
        for (line, lost) in [(Line::A, 3), (Line::B, 7)] {
            for seq in (1..=9).filter(|seq| *seq != lost) {
                recent.push(line, session, (seq, seq + 1), &[seq as u8]);
            }
        }
        let kept: Vec<(Line, u8)> = recent.iter().map(|(line, datagram)| (line, datagram[0])).collect();
        assert!(kept.contains(&(Line::B, 3)) && kept.contains(&(Line::A, 7)), "{kept:?}");
        assert_eq!(kept.iter().filter(|(_, seq)| *seq < 3).count(), 2, "{kept:?}");
    }
}
