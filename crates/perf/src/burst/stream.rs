//! The feed of a burst: ITCH messages in datagrams of equal length, and the due time of each.

use tapeline_feed::itch::encode::{AddOrder, LONGEST, OrderReplace, PrefixFields, text};
use tapeline_feed::moldudp64::{HEADER_BYTES, MoldSession, PacketBuilder};
use tapeline_measure::{Nanos, Pacer};

/// Approximate number of orders that rest on the books after the opening.
const RESTING: u64 = 2_000;
const STOCKS: u64 = 50;
/// Number of price steps from the touch within which orders are placed.
const DEPTH: u64 = 50;
/// A cent; prices have four decimals.
const CENT: u32 = 100;
/// The highest bid price; the lowest offer is a cent above.
const TOUCH: u32 = 1_000_000;
/// Bytes of a replacement with its length prefix.
const BLOCK: usize = 2 + OrderReplace::LENGTH;
/// Bytes of a new order with its length prefix: the longest message of the feed.
const LONGEST_BLOCK: usize = 2 + AddOrder::LENGTH;

/// Limit of messages in a datagram, which keeps it below 1,400 bytes.
pub(super) const MOST_MESSAGES: u64 = ((1_400 - HEADER_BYTES) / LONGEST_BLOCK) as u64;

/// An endless feed: it opens with new orders, and then each message replaces the oldest order.
///
/// A replacement is the most expensive message for a book (a delete and an add). All replacements have one
/// length, so that the kernel can split one send into datagrams (`UDP_SEGMENT`). At the end as many orders rest
/// as at the beginning, unless messages were lost or duplicated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    /// Number of messages in each datagram.
    pub(super) messages: u64,
    /// Number of orders on the books from the first replacement on: a multiple of `messages`, so that no datagram mixes
    /// messages of two lengths.
    pub(super) resting: u64,
}

impl Stream {
    /// A feed with `messages` (1 to [`MOST_MESSAGES`]) in each datagram.
    pub(super) fn new(messages: u64) -> Self {
        // Also a multiple of twice the number of stocks, so that an order and its replacement are on the same
        // side of the same stock.
        Self { messages, resting: RESTING.next_multiple_of(messages * 2 * STOCKS) }
    }

    /// Number of datagrams before the first replacement.
    pub(super) fn opening(&self) -> u64 {
        self.resting / self.messages
    }

    /// Bytes of each datagram after the opening.
    pub(super) fn datagram_bytes(&self) -> usize {
        HEADER_BYTES + self.messages as usize * BLOCK
    }

    /// The number of the datagram that contains a sequence.
    pub(super) fn datagram_of(&self, sequence: u64) -> u64 {
        sequence.saturating_sub(1) / self.messages
    }

    /// Appends datagram `number`, counted from 0, and returns its length.
    pub(super) fn append(&self, number: u64, event_ns: u64, out: &mut Vec<u8>) -> usize {
        let most = HEADER_BYTES + self.messages as usize * LONGEST_BLOCK;
        let start = out.len();
        out.resize(start + most, 0);
        let first = number * self.messages;
        let mut length = 0;
        // The buffer is large enough for the header and all messages, so nothing is refused.
        if let Ok(mut packet) = PacketBuilder::with_limit(&mut out[start..], session(), first + 1, most) {
            let mut message = [0; LONGEST];
            for k in first..first + self.messages {
                if let Some(length) = self.message(k, event_ns, &mut message) {
                    let _ = packet.push(&message[..length]);
                }
            }
            length = packet.finish();
        }
        out.truncate(start + length);
        length
    }

    /// Message `k`, counted from 0: an order with reference `k + 1`, either new or replacing the oldest.
    fn message(&self, k: u64, event_ns: u64, out: &mut [u8]) -> Option<usize> {
        let stock = k % STOCKS;
        let buys = (k / STOCKS).is_multiple_of(2);
        let prefix = PrefixFields { locate: stock as u16 + 1, tracking: 0, ts_ns: event_ns };
        // Spreads consecutive orders over all steps (Knuth's multiplicative hash).
        let steps = (k.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % DEPTH;
        let away = steps as u32 * CENT;
        let price = if buys { TOUCH - away } else { TOUCH + CENT + away };
        let shares = 100 * (1 + steps as u32 % 5);
        if k < self.resting {
            let side = if buys { b'B' } else { b'S' };
            let name = format!("BURST{stock:02}");
            AddOrder { reference: k + 1, side, shares, stock: text(&name), price }.encode(prefix, out)
        } else {
            let replace =
                OrderReplace { reference: k + 1 - self.resting, new_reference: k + 1, shares, price };
            replace.encode(prefix, out)
        }
    }
}

fn session() -> MoldSession {
    MoldSession::new("BURST")
}

/// The due times of datagrams at a steady rate of messages. All messages of a datagram are due at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timetable {
    pub(super) pacer: Pacer,
    messages: u64,
}

impl Timetable {
    /// `rate_hz` messages a second from `start` on, `messages` in each datagram.
    pub(super) fn new(rate_hz: u64, messages: u64, start: Nanos) -> Self {
        Self { pacer: Pacer::per_second(rate_hz, start), messages }
    }

    /// When datagram `number` is due.
    #[inline]
    pub(super) fn due(&self, number: u64) -> Nanos {
        self.pacer.due(number * self.messages)
    }

    /// The number of datagrams due at `now`.
    #[inline]
    pub(super) fn due_by(&self, now: Nanos) -> u64 {
        self.pacer.due_by(now).div_ceil(self.messages)
    }
}

#[cfg(test)]
mod tests {
    use tapeline_feed::book::{BookSettings, Books};
    use tapeline_feed::itch;
    use tapeline_feed::moldudp64::{MoldPacket, parse};

    use super::*;

    #[test]
    fn datagrams_have_one_length_and_keep_the_books_as_they_are() {
        for messages in [1, 7, MOST_MESSAGES] {
            let stream = Stream::new(messages);
            let mut books = Books::new(BookSettings::default());
            let mut sequence = 1;
            for number in 0..stream.opening() * 3 {
                let mut bytes = Vec::new();
                let length = stream.append(number, 0, &mut bytes);
                assert_eq!(length, bytes.len());
                assert!(length <= 1_400);
                if number >= stream.opening() {
                    assert_eq!(length, stream.datagram_bytes());
                }
                let Ok(MoldPacket::Data(data)) = parse(&bytes) else { panic!("it holds messages") };
                assert_eq!((data.sequence(), u64::from(data.count())), (sequence, messages));
                for (found, message) in data.messages() {
                    assert_eq!(stream.datagram_of(found), number);
                    let _ = books.apply(&itch::decode(message).unwrap());
                }
                sequence = data.end();
            }
            assert_eq!(books.live_orders() as u64, stream.resting);
            assert_eq!(books.counters().unknown_reference, itch::ByType::default());
            assert_eq!(books.counters().duplicate_reference, itch::ByType::default());
        }
    }

    #[test]
    fn datagrams_are_due_at_the_rate_of_their_messages() {
        let timetable = Timetable::new(1_000, 4, Nanos(50));
        assert_eq!((timetable.due(0), timetable.due(1)), (Nanos(50), Nanos(4_000_050)));
        for number in 0..100 {
            assert_eq!(timetable.due_by(timetable.due(number)), number + 1);
            assert_eq!(timetable.due_by(Nanos(timetable.due(number).0 - 1)), number);
        }
    }
}
