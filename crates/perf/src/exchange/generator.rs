//! The simulated exchange with its schedule: returns the messages that are due.

use tapeline_feed::itch::encode::LONGEST;
use tapeline_feed::moldudp64::{HEADER_BYTES, MAX_MESSAGES, MoldSession, PacketBuilder};
use tapeline_feed::simulate::{CLOSING_MESSAGES, Exchange, Schedule};

use super::lines::Staged;
use super::replay::Pack;

/// A datagram takes no message that is due more than this after its first message.
const TOGETHER_NS: u64 = 1_000_000;
/// Bytes of the longest message in a datagram, including its length prefix.
const BLOCK: usize = 2 + LONGEST;
/// Bytes of the shortest message, a system event, including its length prefix.
const SHORTEST_BLOCK: usize = 14;
/// The smallest limit on datagrams: the longest message must fit.
pub(super) const SHORTEST_LIMIT: usize = HEADER_BYTES + BLOCK;

/// A generated day in progress.
pub(super) struct Generator {
    pub(super) exchange: Exchange,
    pub(super) schedule: Schedule,
    /// Number of messages of the whole day, and of those generated so far.
    pub(super) total: u64,
    pub(super) done: u64,
    pub(super) session: MoldSession,
    datagram_bytes: usize,
    /// Maximum number of messages in a datagram.
    most: u64,
}

impl Generator {
    /// A day of `total` messages, including opening and closing, in datagrams of at most `datagram_bytes`
    /// ([`SHORTEST_LIMIT`] or more).
    pub(super) fn new(
        exchange: Exchange,
        schedule: Schedule,
        total: u64,
        session: MoldSession,
        datagram_bytes: usize,
        pack: Pack,
    ) -> Self {
        let most = match pack {
            Pack::One => 1,
            Pack::Max => (datagram_bytes / SHORTEST_BLOCK).min(usize::from(MAX_MESSAGES)) as u64,
        };
        Self { exchange, schedule, total, done: 0, session, datagram_bytes, most }
    }

    /// When the next message is due, from the start; `None` at the end of the day.
    pub(super) fn due_ns(&self) -> Option<u64> {
        (self.done < self.total).then(|| self.schedule.due_ns(self.done))
    }

    /// Sequence of the next message.
    pub(super) fn next_sequence(&self) -> u64 {
        self.done + 1
    }

    /// The next message; `None` at the end of the day.
    #[inline]
    pub(super) fn message(&mut self, event_ns: u64, out: &mut [u8; LONGEST]) -> Option<usize> {
        if self.total - self.done == CLOSING_MESSAGES {
            self.exchange.end_day();
        }
        let length = self.exchange.next(event_ns, out)?;
        self.done += 1;
        Some(length)
    }

    /// Stages a datagram with the messages that are due together with the next message.
    pub(super) fn datagram(&mut self, staged: &mut Staged, event_ns: u64) {
        let mut most = self.most.min(self.total - self.done);
        let due_ns = self.schedule.due_ns(self.done);
        let together = |k| self.schedule.due_ns(self.done + k) <= due_ns + TOGETHER_NS;
        // Binary search, since due times increase; at high rates the whole datagram is due together.
        if most > 1 && !together(most - 1) {
            let (mut low, mut high) = (1, most - 1);
            while low < high {
                let middle = low + (high - low) / 2;
                if together(middle) { low = middle + 1 } else { high = middle }
            }
            most = low;
        }
        let (session, sequence, limit) = (self.session, self.next_sequence(), self.datagram_bytes);
        staged.write(limit, |room| {
            // The limit is at least a header and the longest message: the range of the option ensures it.
            let Ok(mut packet) = PacketBuilder::with_limit(room, session, sequence, limit) else {
                return (0, ());
            };
            let mut message = [0; LONGEST];
            while u64::from(packet.count()) < most && packet.bytes() + BLOCK <= limit {
                let Some(length) = self.message(event_ns, &mut message) else { break };
                if packet.push(&message[..length]).is_err() {
                    break;
                }
            }
            (packet.finish(), ())
        });
    }
}

#[cfg(test)]
mod tests {
    use tapeline_feed::moldudp64::{MoldPacket, parse};
    use tapeline_feed::simulate::SimulatedDay;

    use super::*;

    fn generator(rate_hz: u64, total: u64, pack: Pack) -> Generator {
        let exchange = Exchange::new(SimulatedDay { symbols: 2, ..SimulatedDay::default() });
        Generator::new(exchange, Schedule::new(rate_hz, None), total, MoldSession::new("TEST"), 1_400, pack)
    }

    /// Sequence and message count of each datagram.
    fn datagrams(mut generator: Generator) -> Vec<(u64, u16)> {
        let mut staged = Staged::new(1_400);
        let mut found = Vec::new();
        let mut next = 1;
        while let Some(due_ns) = generator.due_ns() {
            staged.clear();
            generator.datagram(&mut staged, due_ns);
            for datagram in staged.iter() {
                assert!(datagram.len() <= 1_400);
                let Ok(MoldPacket::Data(data)) = parse(datagram) else { panic!("no data") };
                assert_eq!(data.sequence(), next);
                next = data.end();
                found.push((due_ns, data.count()));
            }
        }
        assert_eq!(next, generator.next_sequence());
        assert_eq!(generator.done, generator.total);
        found
    }

    #[test]
    fn a_datagram_takes_what_is_due_within_a_millisecond() {
        // One message every 400 µs: the messages of 0, 400 and 800 µs share a datagram.
        let found = datagrams(generator(2_500, 100, Pack::Max));
        assert_eq!(found.len(), 34);
        assert_eq!(found[..2], [(0, 3), (1_200_000, 3)]);
        assert_eq!(found.last(), Some(&(39_600_000, 1)));
        // Exactly one millisecond later still counts.
        assert_eq!(datagrams(generator(1_000, 4, Pack::Max)), [(0, 2), (2_000_000, 2)]);
        assert_eq!(datagrams(generator(500, 3, Pack::Max)), [(0, 1), (2_000_000, 1), (4_000_000, 1)]);
        let full = datagrams(generator(1_000_000_000, 1_000, Pack::Max));
        assert!(full.iter().rev().skip(1).all(|(_, messages)| *messages >= 25), "{full:?}");
    }

    #[test]
    fn one_message_each_if_asked() {
        assert!(datagrams(generator(1_000_000, 500, Pack::One)).iter().all(|(_, messages)| *messages == 1));
    }
}
