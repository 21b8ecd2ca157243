//! Packing: ticks into datagrams of MoldUDP64, and the same ticks again for those who lost a datagram.

use std::net::Ipv4Addr;

use tapeline_feed::history::{History, Limits};
use tapeline_feed::moldudp64::retransmit::{
    LONGEST_ANSWER, RetransmissionServer, ServerSettings, ServerStatistics,
};
use tapeline_feed::moldudp64::{HEADER_BYTES, PacketBuilder, end_of_session, heartbeat};
use tapeline_measure::Nanos;

use super::{BridgeSession, tcp_line};
use crate::Seq;

/// The longest tick that fits in one datagram of UDP over IPv4, in bytes. For a longer tick an empty message travels: a plant below
/// then takes the tick from the catch-up server.
pub const LONGEST_MESSAGE: usize = LONGEST_ANSWER - HEADER_BYTES - 2;

/// The settings of a packer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackerSettings {
    /// Maximum bytes of a datagram with several ticks. A longer tick gets a datagram of its own, which IP splits.
    pub packet_bytes: usize,
    /// The ticks kept for re-requests.
    pub history: Limits,
    /// The limits of the answers to re-requests.
    pub answers: ServerSettings,
}

/// Packs the ticks of one session into datagrams, and answers re-requests. Costs two copies of a tick; allocates nothing once its buffers
/// have grown.
#[derive(Debug)]
pub struct Packer {
    session: BridgeSession,
    packet_bytes: usize,
    history: History,
    /// The first sequence that no datagram carries yet.
    unsent: u64,
    /// The datagrams to send, one behind the other, their lengths, and how much of each is padding.
    bytes: Vec<u8>,
    lengths: Vec<usize>,
    padding: Vec<usize>,
    room: Box<[u8]>,
    server: RetransmissionServer,
}

impl Packer {
    /// Creates a packer without ticks. The next tick's sequence is `next`, as far as is known.
    #[must_use]
    pub fn new(session: BridgeSession, next: Seq, settings: PackerSettings) -> Self {
        let mut history = History::new(settings.history);
        history.begin(session.to_mold());
        let answers = ServerSettings { packet_bytes: settings.packet_bytes, ..settings.answers };
        Self {
            session,
            packet_bytes: settings.packet_bytes.clamp(HEADER_BYTES + 2, LONGEST_ANSWER),
            history,
            unsent: next.0.max(1),
            bytes: Vec::new(),
            lengths: Vec::new(),
            padding: Vec::new(),
            room: vec![0; LONGEST_ANSWER].into(),
            server: RetransmissionServer::new(answers),
        }
    }

    /// Takes a tick as it stands on the ring. Ticks outside the sequence, and ticks that are not later than the last, are left out.
    #[inline]
    pub fn tick(&mut self, seq: Seq, frame: &[u8]) {
        let message = if frame.len() > LONGEST_MESSAGE { &[] } else { frame };
        self.history.push(seq.0, message);
    }

    /// Packs the ticks that no datagram carries yet, in place of the [datagrams](Self::datagrams) before. Returns the number of datagrams.
    pub fn pack(&mut self) -> usize {
        self.bytes.clear();
        self.lengths.clear();
        self.padding.clear();
        let next = self.history.next();
        self.unsent = self.unsent.max(self.history.first());
        while self.unsent < next {
            let (length, behind) = self.packet(self.unsent);
            self.unsent = behind;
            if length > 0 {
                self.pad();
                self.bytes.extend_from_slice(&self.room[..length]);
                self.lengths.push(length);
                self.padding.push(0);
            }
        }
        self.lengths.len()
    }

    /// Brings the last datagram to the length of a full one, so that it goes through the kernel as one with the next. The padding is behind the
    /// messages that the datagram announces, and looks like one more.
    fn pad(&mut self) {
        let (Some(length), Some(padding)) = (self.lengths.last_mut(), self.padding.last_mut()) else {
            return;
        };
        // A longer one has a tick of its own.
        *padding = self.packet_bytes.saturating_sub(*length);
        *length += *padding;
        if let Some(zeros) = padding.checked_sub(2) {
            // Less than the 16 bits of a length, as are those of a datagram.
            self.bytes.extend_from_slice(&(zeros as u16).to_be_bytes());
            self.bytes.resize(self.bytes.len() + zeros, 0);
        } else {
            self.bytes.resize(self.bytes.len() + *padding, 0);
        }
    }

    /// Counts the ticks so far as packed, for those who [follow](Self::follow) alone.
    pub fn skip(&mut self) {
        self.unsent = self.unsent.max(self.history.next());
    }

    /// Appends the ticks from `next` on, of those that were [packed](Self::pack), as datagrams of a line over TCP: about `most` bytes. Returns the
    /// sequence behind them; `None` if the memory no longer has `next`.
    pub fn follow(&mut self, next: Seq, most: usize, out: &mut Vec<u8>) -> Option<Seq> {
        let (mut next, begun) = (next.0, out.len());
        if next < self.oldest().0 {
            return None;
        }
        while next < self.unsent && out.len() - begun < most {
            let (length, behind) = self.packet(next);
            next = behind;
            if length > 0 {
                tcp_line::put_datagram(out, &self.room[..length]);
            }
        }
        Some(Seq(next))
    }

    /// Returns the oldest sequence that [`follow`](Self::follow) has, or would have next.
    #[must_use]
    pub fn oldest(&self) -> Seq {
        let first = self.history.first();
        Seq(if self.history.next() == first { self.unsent } else { first })
    }

    /// Makes the datagram that begins with the tick `first`. Returns its length, 0 if the tick is missing, and the sequence behind it.
    fn packet(&mut self, first: u64) -> (usize, u64) {
        let Self { session, packet_bytes, history, room, .. } = self;
        // If it is missing, this plant's reader has lost its place on the ring.
        let Some(message) = history.message(first) else { return (0, first + 1) };
        let limit = (*packet_bytes).max(HEADER_BYTES + 2 + message.len());
        let packet = PacketBuilder::with_limit(room, session.to_mold(), first, limit);
        let Ok(mut packet) = packet else { return (0, first + 1) };
        for (_, message) in history.run(first) {
            if packet.push(message).is_err() {
                break;
            }
        }
        // A packet takes its first message: the limit was chosen for it.
        let behind = packet.next_sequence().max(first + 1);
        (packet.finish(), behind)
    }

    /// Returns the datagrams that were packed last, in order, without padding.
    pub fn datagrams(&self) -> impl Iterator<Item = &[u8]> + Clone {
        let mut at = 0;
        self.lengths.iter().zip(&self.padding).map(move |(length, padding)| {
            at += length;
            &self.bytes[at - length..at - padding]
        })
    }

    /// Returns the same, one behind the other, and their lengths: each but the last is padded to the length of a full one.
    #[must_use]
    pub fn padded(&self) -> (&[u8], &[usize]) {
        (&self.bytes, &self.lengths)
    }

    /// Returns the datagram that says which sequence comes next; lines are silent without it.
    #[must_use]
    pub fn heartbeat(&self) -> [u8; HEADER_BYTES] {
        heartbeat(self.session.to_mold(), self.unsent)
    }

    /// Returns the datagram that says that the plant has ended.
    #[must_use]
    pub fn end(&self) -> [u8; HEADER_BYTES] {
        end_of_session(self.session.to_mold(), self.unsent)
    }

    /// Answers a re-request of `requester`; `None` if there is no answer, which the [statistics](Self::statistics) count by reason.
    pub fn answer(&mut self, requester: Ipv4Addr, request: &[u8], now: Nanos) -> Option<&[u8]> {
        self.server.answer(requester, request, &self.history, now, &mut self.room).ok()
    }

    /// Returns the counters of re-requests.
    #[must_use]
    pub const fn statistics(&self) -> &ServerStatistics {
        self.server.statistics()
    }

    /// Returns the first sequence that was not sent yet.
    #[must_use]
    pub const fn next(&self) -> Seq {
        Seq(self.unsent)
    }
}

#[cfg(test)]
mod tests {
    use tapeline_feed::moldudp64::{MoldPacket, Request, parse};

    use super::*;
    use crate::bridge::Epoch;

    fn packer() -> Packer {
        let session = BridgeSession { plant: "A".parse().unwrap(), epoch: Epoch(7) };
        let history = Limits { messages: 64, bytes: 1 << 20 };
        let settings = PackerSettings { packet_bytes: 100, history, answers: ServerSettings::default() };
        Packer::new(session, Seq(5), settings)
    }

    fn found(datagrams: impl Iterator<Item = Vec<u8>>) -> Vec<(u64, Vec<usize>)> {
        datagrams
            .map(|datagram| match parse(&datagram).unwrap() {
                MoldPacket::Data(data) => {
                    (data.sequence(), data.messages().map(|(_, message)| message.len()).collect())
                }
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn ticks_are_packed_in_order_and_a_long_one_travels_alone() {
        let mut packer = packer();
        assert_eq!(packer.pack(), 0);
        for (seq, len) in [(5, 30), (6, 30), (7, 30), (8, 500), (9, LONGEST_MESSAGE + 1), (10, 10)] {
            packer.tick(Seq(seq), &vec![b'x'; len]);
        }
        packer.pack();
        let datagrams = found(packer.datagrams().map(<[u8]>::to_vec));
        assert_eq!(datagrams, [(5, vec![30, 30]), (7, vec![30]), (8, vec![500]), (9, vec![0, 10])]);
        assert_eq!((packer.pack(), packer.next()), (0, Seq(11)));
        // What the reader of the ring missed is a hole between two datagrams.
        packer.tick(Seq(0), b"outside the sequence");
        packer.tick(Seq(13), b"x");
        packer.pack();
        assert_eq!(found(packer.datagrams().map(<[u8]>::to_vec)), [(13, vec![1])]);
    }

    #[test]
    fn each_datagram_but_the_last_is_padded_to_a_full_one() {
        let mut packer = packer();
        // Of 100 bytes 22 are for the header and a length: paddings of 46, 1, 0, none of a long one, and 68.
        for (seq, len) in [(5, 32), (6, 77), (7, 78), (8, 500), (9, 10), (10, 90)] {
            packer.tick(Seq(seq), &vec![b'x'; len]);
        }
        assert_eq!(packer.pack(), 6);
        let (bytes, lengths) = packer.padded();
        assert_eq!((lengths, bytes.len()), (&[100, 100, 100, 522, 100, 112][..], 1_034));
        let mut rest = bytes;
        for (datagram, length) in packer.datagrams().zip(lengths) {
            let (padded, behind) = rest.split_at(*length);
            rest = behind;
            assert!(padded.starts_with(datagram));
            let (MoldPacket::Data(with), MoldPacket::Data(without)) =
                (parse(padded).unwrap(), parse(datagram).unwrap())
            else {
                panic!("no data");
            };
            assert!(with.messages().eq(without.messages()));
            // A reader that looks behind the last message finds one of zeros.
            let padding = &padded[datagram.len()..];
            if let Some((zeros, padding)) = padding.split_first_chunk() {
                assert_eq!(usize::from(u16::from_be_bytes(*zeros)), padding.len());
            }
        }
    }

    #[test]
    fn who_follows_over_tcp_has_every_tick_from_a_sequence_on_or_is_told_that_it_is_gone() {
        let mut packer = packer();
        let mut out = Vec::new();
        assert_eq!((packer.oldest(), packer.follow(Seq(1), 1, &mut out)), (Seq(5), None));
        for seq in 5..70 {
            packer.tick(Seq(seq), &[b'x'; 30]);
        }
        assert_eq!(packer.follow(Seq(7), 1, &mut out), Some(Seq(7)), "nothing is packed");
        packer.pack();
        // Limits of 64 messages and of 100 bytes a datagram.
        assert_eq!((packer.oldest(), packer.follow(Seq(5), 1, &mut out)), (Seq(6), None));
        assert_eq!(packer.follow(Seq(7), 1, &mut out), Some(Seq(9)));
        assert_eq!(packer.follow(Seq(9), usize::MAX, &mut out), Some(Seq(70)));
        assert_eq!(packer.follow(Seq(70), usize::MAX, &mut out), Some(Seq(70)));
        assert_eq!(packer.follow(Seq(500), usize::MAX, &mut out), Some(Seq(500)), "it is ahead");
        let (mut rest, mut came) = (&out[..], Vec::new());
        while let Some(datagram) = tcp_line::datagram(rest).unwrap() {
            rest = &rest[2 + datagram.len()..];
            came.push(datagram.to_vec());
        }
        let came = found(came.into_iter());
        assert_eq!((came[0].clone(), came.len(), rest.len()), ((7, vec![30, 30]), 32, 0));
        assert_eq!(came.iter().map(|(_, messages)| messages.len()).sum::<usize>(), 63);
    }

    #[test]
    fn a_tick_is_sent_again_to_who_asks_for_it() {
        let mut packer = packer();
        packer.tick(Seq(5), b"five");
        assert_eq!(packer.pack(), 1);
        let session = packer.session.to_mold();
        let request = Request::for_gap(session, 5, 5).encode();
        let answer = packer.answer(Ipv4Addr::LOCALHOST, &request, Nanos(1)).unwrap().to_vec();
        assert_eq!(found([answer].into_iter()), [(5, vec![4])]);
        let request = Request::for_gap(session, 6, 6).encode();
        assert!(packer.answer(Ipv4Addr::LOCALHOST, &request, Nanos(1)).is_none());
    }
}
