//! Sequence resets and session rolls of an exchange.

use super::ledger::packet;
use super::{FaultKind, Numbers, Script};
use crate::framing::{self, Session};
use crate::moldudp64::{self, HEADER_BYTES, end_of_session};

/// A renumbering of packets from certain messages on.
#[derive(Clone, Debug)]
pub(super) struct Numbering {
    /// The remaining turns: the message, and `true` if a session begins with it. In reverse order: the next one is last.
    turns: Vec<(u64, bool)>,
    /// The past turns with their starts. Overtaken packets may belong to an earlier one.
    epochs: Vec<Epoch>,
}

/// A range of messages whose numbers are those of the source less `base`.
#[derive(Clone, Copy, Debug, Default)]
struct Epoch {
    start: u64,
    base: u64,
    /// Position of its payload in the source's stream, in bytes; IEX-TP counts bytes too.
    offset: u64,
    /// Number of sessions begun so far.
    rolls: u32,
}

/// A reached turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// The source's number of the message that now has number 1.
    pub(super) from: u64,
    /// `true` if a session begins.
    pub(super) rolls: bool,
    /// The end of the previous session, if the transport has such a packet.
    pub(super) end: Option<[u8; HEADER_BYTES]>,
}

impl Numbering {
    pub(super) fn new(script: &Script) -> Self {
        let mut turns: Vec<_> = script
            .faults()
            .iter()
            .filter_map(|fault| match fault.kind {
                FaultKind::Reset { at } => Some((at, false)),
                FaultKind::Roll { at } => Some((at, true)),
                _ => None,
            })
            .collect();
        turns.sort_unstable();
        turns.reverse();
        Self { turns, epochs: Vec::new() }
    }

    /// Returns the next turn if it is before this datagram. Call it until it returns `None`.
    pub(super) fn turn(&mut self, datagram: &[u8]) -> Option<Turn> {
        let &(at, rolls) = self.turns.last()?;
        let packet = packet(datagram)?;
        let framing::DatagramKind::Data { first, .. } = packet.kind else { return None };
        if first < at {
            return None;
        }
        self.turns.pop();
        let before = self.epoch(first);
        let (mut end, mut offset) = (None, 0);
        match packet.session {
            Session::MoldUdp64(session) if rolls => {
                end = Some(end_of_session(numbered(session, before.rolls), first - before.base));
            }
            Session::IexTp(_) => offset = stream_offset(datagram),
            _ => {}
        }
        // A message's sequence is at least 1.
        let base = first.saturating_sub(1);
        self.epochs.push(Epoch { start: first, base, offset, rolls: before.rolls + u32::from(rolls) });
        Some(Turn { from: first, rolls, end })
    }

    /// Renumbers a packet; a datagram that is not a packet stays unchanged.
    pub(super) fn apply(&self, datagram: &mut [u8]) {
        if self.epochs.is_empty() {
            return;
        }
        let Some(numbers) = Numbers::of(datagram) else { return };
        let epoch = self.epoch(numbers.message());
        let sequence = numbers.sequence.saturating_sub(epoch.base);
        match numbers.session {
            Session::MoldUdp64(session) => {
                datagram[..10].copy_from_slice(&numbered(session, epoch.rolls).0);
                datagram[10..18].copy_from_slice(&sequence.to_be_bytes());
            }
            Session::IexTp(session) => {
                let offset = stream_offset(datagram).saturating_sub(epoch.offset);
                datagram[8..12].copy_from_slice(&session.number.wrapping_add(epoch.rolls).to_le_bytes());
                datagram[16..24].copy_from_slice(&offset.to_le_bytes());
                datagram[24..32].copy_from_slice(&sequence.to_le_bytes());
            }
        }
    }

    fn epoch(&self, message: u64) -> Epoch {
        self.epochs.iter().rev().find(|epoch| epoch.start <= message).copied().unwrap_or_default()
    }
}

/// Returns the position of a segment's payload in the session's stream.
fn stream_offset(segment: &[u8]) -> u64 {
    segment.get(16..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Returns the session's name with `number` at its end; the first session keeps its name.
fn numbered(moldudp64::MoldSession(mut name): moldudp64::MoldSession, number: u32) -> moldudp64::MoldSession {
    if number > 0 {
        name[8] = b'0' + (number / 10 % 10) as u8;
        name[9] = b'0' + (number % 10) as u8;
    }
    moldudp64::MoldSession(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iex::tp::{self, MessageProtocol, SegmentBuilder};
    use crate::moldudp64::{MoldSession, PacketBuilder, heartbeat};

    fn packet(first: u64, count: u64) -> Vec<u8> {
        let mut bytes = vec![0; 100];
        let mut packet = PacketBuilder::new(&mut bytes, MoldSession::new("DAY"), first).unwrap();
        for _ in 0..count {
            packet.push(b"x").unwrap();
        }
        let length = packet.finish();
        bytes.truncate(length);
        bytes
    }

    fn numbers(numbering: &Numbering, mut bytes: Vec<u8>) -> (String, u64) {
        numbering.apply(&mut bytes);
        let numbers = Numbers::of(&bytes).unwrap();
        (numbers.session.to_string(), numbers.sequence)
    }

    #[test]
    fn a_reset_and_a_roll_begin_with_the_first_packet_from_their_message_on() {
        let mut numbering = Numbering::new(&"roll=20\nreset=10".parse().unwrap());
        let named = |name: &str, sequence| (name.to_owned(), sequence);
        assert!(numbering.turn(&packet(8, 3)).is_none());
        assert_eq!(numbers(&numbering, packet(8, 3)), named("DAY", 8));
        assert!(numbering.turn(&heartbeat(MoldSession::new("DAY"), 11)).is_none());
        let turn = numbering.turn(&packet(11, 3)).unwrap();
        assert!(turn.from == 11 && turn.end.is_none());
        assert_eq!(numbers(&numbering, packet(11, 3)), named("DAY", 1));
        // An overtaken packet, and a heartbeat before and after it.
        assert_eq!(numbers(&numbering, packet(8, 3)), named("DAY", 8));
        assert_eq!(numbers(&numbering, heartbeat(MoldSession::new("DAY"), 11).to_vec()), named("DAY", 11));
        assert_eq!(numbers(&numbering, heartbeat(MoldSession::new("DAY"), 14).to_vec()), named("DAY", 4));
        let turn = numbering.turn(&packet(20, 1)).unwrap();
        assert_eq!(turn.end, Some(end_of_session(MoldSession::new("DAY"), 10)));
        assert!(numbering.turn(&packet(20, 1)).is_none());
        assert_eq!(numbers(&numbering, packet(20, 1)), named("DAY     01", 1));
        assert_eq!(numbers(&numbering, packet(14, 3)), named("DAY", 4));
    }

    #[test]
    fn segments_of_iex_begin_again_at_the_start_of_their_stream() {
        let session = tp::IexSession { protocol: MessageProtocol::DEEP_1_0, channel: 1, number: 7 };
        let segment = |first, offset| {
            let mut bytes = vec![0; 100];
            let mut segment = SegmentBuilder::new(&mut bytes, session, first, offset).unwrap();
            segment.push(b"one").unwrap();
            let length = segment.finish(1);
            bytes.truncate(length);
            bytes
        };
        for (script, number) in [("reset=5", 7), ("roll=5", 8)] {
            let mut numbering = Numbering::new(&script.parse().unwrap());
            assert!(numbering.turn(&segment(4, 15)).is_none());
            let turn = numbering.turn(&segment(5, 20)).unwrap();
            assert_eq!((turn.from, turn.rolls, turn.end), (5, number == 8, None));
            for (source, first, offset, number) in
                [(segment(5, 20), 1, 0, number), (segment(6, 25), 2, 5, number), (segment(4, 15), 4, 15, 7)]
            {
                let mut bytes = source;
                numbering.apply(&mut bytes);
                let segment = tp::parse(&bytes).unwrap();
                assert_eq!((segment.first, segment.offset), (first, offset));
                assert_eq!(segment.session.number, number);
            }
        }
    }
}
