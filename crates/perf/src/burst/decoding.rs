//! The decoding thread: accounts for every message, builds books if requested, and notes its progress with the
//! time.

use std::thread;

use tapeline_feed::book::{BookSettings, Books};
use tapeline_feed::itch;
use tapeline_feed::moldudp64::{MoldPacket, parse};
use tapeline_measure::{Clock, Nanos, Recorder};
use tapeline_wire::pool::{Outlet, QueuePoll, SLOT_BYTES};
use tapeline_wire::udp::{Batch, UdpReceiver};

use super::plan::{BurstPlan, Decode, Told};
use super::stream::{Stream, Timetable};

/// Least time between notes while datagrams arrive, and while none arrive.
const NOTE_NS: u64 = 20_000;
const IDLE_NOTE_NS: u64 = 1_000_000;
/// Capacity for notes: 20 seconds of uninterrupted datagrams.
const NOTES: usize = 1 << 20;
/// Limit of latencies after the hold that are stored individually.
const KEPT: usize = 1 << 20;
/// Time after the last datagram at which missing ones count as lost, once the feed has ended.
const LAST_WORDS_NS: u64 = 200_000_000;

/// The decoder's progress at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct DecodingProgress {
    pub(super) at: Nanos,
    /// Number of datagrams, up to the newest decoded one.
    pub(super) progress: u64,
}

/// A live datagram after the hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Live {
    pub(super) due: Nanos,
    pub(super) latency_ns: i64,
}

/// The decoder's results.
#[derive(Debug)]
pub(super) struct Decoded {
    pub(super) account: Account,
    pub(super) notes: Vec<DecodingProgress>,
    /// Latency from due to decoded of the live datagrams before the hold.
    pub(super) before: Recorder,
    /// The live datagrams after the hold.
    pub(super) behind: Vec<Live>,
}

/// Decodes, and counts missing, repeated and malformed messages.
#[derive(Debug)]
pub(super) struct Account {
    decode: Decode,
    books: Books,
    /// The sequence after the newest message.
    pub(super) next: u64,
    /// Messages received, without repetitions.
    pub(super) messages: u64,
    /// Messages with an earlier sequence: duplicates, or out of order.
    pub(super) repeated: u64,
    /// Datagrams or messages that could not be read.
    pub(super) malformed: u64,
}

impl Account {
    pub(super) fn new(decode: Decode) -> Self {
        Self {
            decode,
            books: Books::new(BookSettings::default()),
            next: 1,
            messages: 0,
            repeated: 0,
            malformed: 0,
        }
    }

    /// Takes a datagram and returns the sequence of its first message; 0 for a malformed one.
    #[inline]
    pub(super) fn datagram(&mut self, bytes: &[u8]) -> u64 {
        let (first, count) = match self.decode {
            Decode::None => match header(bytes) {
                Some(found) => found,
                None => return self.unreadable(),
            },
            Decode::Full => {
                let Ok(MoldPacket::Data(data)) = parse(bytes) else { return self.unreadable() };
                for (_, message) in data.messages() {
                    match itch::decode(message) {
                        Ok(message) => _ = self.books.apply(&message),
                        Err(_) => self.malformed += 1,
                    }
                }
                (data.sequence(), u64::from(data.count()))
            }
        };
        if first >= self.next {
            self.messages += count;
            self.next = first + count;
        } else {
            self.repeated += count;
        }
        first
    }

    #[cold]
    fn unreadable(&mut self) -> u64 {
        self.malformed += 1;
        0
    }

    /// Whether the final books are those of the feed; `true` if no books were built.
    pub(super) fn books_are_right(&self, stream: &Stream) -> bool {
        let counters = self.books.counters();
        self.decode == Decode::None
            || (self.books.live_orders() as u64 == stream.resting
                && counters.unknown_reference == itch::ByType::default()
                && counters.duplicate_reference == itch::ByType::default())
    }
}

/// Sequence and count from a MoldUDP64 header. The rest of the datagram is not checked.
#[inline]
fn header(bytes: &[u8]) -> Option<(u64, u64)> {
    let sequence = bytes.get(10..18)?.first_chunk()?;
    let count = bytes.get(18..20)?.first_chunk()?;
    Some((u64::from_be_bytes(*sequence), u16::from_be_bytes(*count).into()))
}

/// Limit of datagrams in one turn.
const MOST: usize = 64;

/// The source of the decoder's datagrams.
pub(super) trait Source {
    /// Passes on the datagrams that have arrived, up to [`MOST`].
    fn take(&mut self, each: impl FnMut(&[u8])) -> Result<QueuePoll<()>, tapeline_wire::Error>;
}

impl Source for Outlet {
    #[inline]
    fn take(&mut self, mut each: impl FnMut(&[u8])) -> Result<QueuePoll<()>, tapeline_wire::Error> {
        Ok(match self.take_up_to(MOST) {
            QueuePoll::Ready(datagrams) => {
                datagrams.iter().for_each(|datagram| each(datagram.bytes()));
                QueuePoll::Ready(())
            }
            QueuePoll::Empty => QueuePoll::Empty,
            QueuePoll::Ended => QueuePoll::Ended,
        })
    }
}

/// A socket that the decoder reads itself.
pub(super) struct Socket {
    pub(super) receiver: UdpReceiver,
    batch: Batch,
}

impl Socket {
    pub(super) fn new(receiver: UdpReceiver) -> Self {
        Self { receiver, batch: Batch::new(MOST, SLOT_BYTES) }
    }
}

impl Source for Socket {
    #[inline]
    fn take(&mut self, mut each: impl FnMut(&[u8])) -> Result<QueuePoll<()>, tapeline_wire::Error> {
        if self.receiver.receive(&mut self.batch)? == 0 {
            return Ok(QueuePoll::Empty);
        }
        self.batch.iter().for_each(|datagram| each(datagram.bytes));
        Ok(QueuePoll::Ready(()))
    }
}

/// Decodes until all sent datagrams have arrived, or no more arrive.
pub(super) fn decode(
    plan: &BurstPlan,
    source: &mut impl Source,
    timetable: &Timetable,
    clock: &Clock,
    told: &Told,
) -> Result<Decoded, tapeline_wire::Error> {
    let stream = &plan.stream;
    let (warm, first_held, end_held) = (plan.warm(), plan.first_held(), plan.end_held());
    let mut account = Account::new(plan.decode);
    // Allocated and touched before the measurement. Filled with ones, because zeroed memory is not touched until
    // its first use.
    let mut notes = vec![DecodingProgress { at: Nanos(1), progress: 1 }; NOTES];
    let mut behind = vec![Live { due: Nanos(1), latency_ns: 1 }; KEPT];
    notes.clear();
    behind.clear();
    let mut before = Recorder::new();
    let mut noted = Nanos(0);
    let mut last = clock.now();
    loop {
        let mut live = [0; MOST];
        let mut count = 0;
        let taken = source.take(|datagram| {
            let number = stream.datagram_of(account.datagram(datagram));
            if !(first_held..end_held).contains(&number) {
                live[count] = number;
                count += 1;
            }
        });
        if taken.is_err() {
            told.end();
        }
        let now = match taken? {
            QueuePoll::Ready(()) => {
                let now = clock.now();
                for &number in &live[..count] {
                    let due = timetable.due(number);
                    let latency_ns = now.since(due);
                    if number >= end_held {
                        if behind.len() < KEPT {
                            behind.push(Live { due, latency_ns });
                        }
                    } else if number >= warm {
                        before.record(latency_ns);
                    }
                }
                last = now;
                now
            }
            QueuePoll::Empty => {
                thread::yield_now();
                let now = clock.now();
                if let Some(total) = told.total()
                    && (stream.datagram_of(account.next) >= total || now.0 > last.0 + LAST_WORDS_NS)
                {
                    break;
                }
                if now.0 < noted.0 + IDLE_NOTE_NS {
                    continue;
                }
                now
            }
            QueuePoll::Ended => break,
        };
        let progress = stream.datagram_of(account.next);
        told.set_progress(progress);
        if now.0 >= noted.0 + NOTE_NS && notes.len() < NOTES {
            noted = now;
            notes.push(DecodingProgress { at: now, progress });
        }
    }
    told.end();
    Ok(Decoded { account, notes, before, behind })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagrams(stream: &Stream, count: u64) -> Vec<Vec<u8>> {
        let datagram = |number| {
            let mut bytes = Vec::new();
            stream.append(number, 0, &mut bytes);
            bytes
        };
        (0..count).map(datagram).collect()
    }

    #[test]
    fn every_message_is_accounted_for() {
        let stream = Stream::new(3);
        let sent = datagrams(&stream, stream.opening() + 20);
        for decode in [Decode::None, Decode::Full] {
            let mut account = Account::new(decode);
            for (number, datagram) in (0..).zip(&sent) {
                assert_eq!(account.datagram(datagram), number * 3 + 1);
            }
            assert_eq!((account.messages, account.next), (sent.len() as u64 * 3, sent.len() as u64 * 3 + 1));
            assert_eq!((account.repeated, account.malformed), (0, 0));
            assert!(account.books_are_right(&stream));
        }
    }

    #[test]
    fn what_is_lost_doubled_or_damaged_is_seen() {
        let stream = Stream::new(3);
        let sent = datagrams(&stream, stream.opening() + 20);
        let lost = stream.opening() as usize + 4;
        for decode in [Decode::None, Decode::Full] {
            let mut account = Account::new(decode);
            for (number, datagram) in sent.iter().enumerate() {
                if number != lost {
                    account.datagram(datagram);
                }
            }
            assert_eq!(account.messages, (sent.len() as u64 - 1) * 3);
            account.datagram(&sent[lost]);
            assert_eq!(account.repeated, 3);
            assert_eq!(account.datagram(b"short"), 0);
            assert_eq!(account.malformed, 1);
        }
        let mut account = Account::new(Decode::Full);
        sent.iter().skip(1).for_each(|datagram| _ = account.datagram(datagram));
        assert!(!account.books_are_right(&stream), "orders are missing");
    }
}
