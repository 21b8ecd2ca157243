//! Resets and session rolls: what an exchange does to its numbers.

use super::{Kind, Script};
use crate::moldudp64::{HEADER_BYTES, Packet, Session, end_of_session, parse};

/// Gives packets other numbers from certain messages on.
#[derive(Clone, Debug)]
pub(super) struct Numbering {
    /// What is to come: the message, and whether a session begins with it. In reverse, so that the next one is last.
    turns: Vec<(u64, bool)>,
    /// What has come, and where each began. Packets that were overtaken belong to one before the last.
    epochs: Vec<Epoch>,
    rolls: u32,
}

/// Messages whose numbers are the source's less `base`.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: u64,
    base: u64,
    session: Session,
}

/// A turn that was reached.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// The source's number of the message that has the number 1 now.
    pub(super) from: u64,
    /// The end of the session before, for a roll.
    pub(super) end: Option<[u8; HEADER_BYTES]>,
}

impl Numbering {
    pub(super) fn new(script: &Script) -> Self {
        let mut turns: Vec<_> = script
            .faults()
            .iter()
            .filter_map(|fault| match fault.kind {
                Kind::Reset { at } => Some((at, false)),
                Kind::Roll { at } => Some((at, true)),
                _ => None,
            })
            .collect();
        turns.sort_unstable();
        turns.reverse();
        Self { turns, epochs: Vec::new(), rolls: 0 }
    }

    /// The turn that comes before this datagram, if there is (still) one.
    pub(super) fn turn(&mut self, datagram: &[u8]) -> Option<Turn> {
        let &(at, roll) = self.turns.last()?;
        let Ok(Packet::Data(data)) = parse(datagram) else { return None };
        let from = data.sequence();
        if from < at {
            return None;
        }
        self.turns.pop();
        let before = self.epoch(from, data.session());
        let mut end = None;
        let mut session = before.session;
        if roll {
            end = Some(end_of_session(session, from - before.base));
            self.rolls += 1;
            session = numbered(data.session(), self.rolls);
        }
        // Cannot fail: the sequence is at least that of a message, which is at least 1.
        self.epochs.push(Epoch { start: from, base: from.saturating_sub(1), session });
        Some(Turn { from, end })
    }

    /// Gives a packet its new numbers; what is no packet stays as it is.
    pub(super) fn apply(&self, datagram: &mut [u8]) {
        if self.epochs.is_empty() {
            return;
        }
        let Ok(packet) = parse(datagram) else { return };
        // A heartbeat names the message after the last.
        let (sequence, last) = match packet {
            Packet::Data(data) => (data.sequence(), data.sequence()),
            Packet::Heartbeat { next, .. } | Packet::EndOfSession { next, .. } => {
                (next, next.saturating_sub(1))
            }
        };
        let epoch = self.epoch(last, packet.session());
        datagram[..10].copy_from_slice(&epoch.session.0);
        datagram[10..18].copy_from_slice(&(sequence - epoch.base).to_be_bytes());
    }

    fn epoch(&self, message: u64, session: Session) -> Epoch {
        let known = self.epochs.iter().rev().find(|epoch| epoch.start <= message).copied();
        known.unwrap_or(Epoch { start: 0, base: 0, session })
    }
}

/// The session's name with another number at its end.
fn numbered(Session(mut name): Session, number: u32) -> Session {
    name[8] = b'0' + (number / 10 % 10) as u8;
    name[9] = b'0' + (number % 10) as u8;
    Session(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moldudp64::{PacketBuilder, heartbeat};

    fn packet(first: u64, count: u64) -> Vec<u8> {
        let mut bytes = vec![0; 100];
        let mut packet = PacketBuilder::new(&mut bytes, Session::new("DAY"), first).unwrap();
        for _ in 0..count {
            packet.push(b"x").unwrap();
        }
        let length = packet.finish();
        bytes.truncate(length);
        bytes
    }

    fn numbers(numbering: &Numbering, mut bytes: Vec<u8>) -> (String, u64) {
        numbering.apply(&mut bytes);
        match parse(&bytes).unwrap() {
            Packet::Data(data) => (data.session().to_string(), data.sequence()),
            Packet::Heartbeat { session, next, .. } | Packet::EndOfSession { session, next, .. } => {
                (session.to_string(), next)
            }
        }
    }

    #[test]
    fn a_reset_and_a_roll_begin_with_the_first_packet_from_their_message_on() {
        let mut numbering = Numbering::new(&"roll=20\nreset=10".parse().unwrap());
        let named = |name: &str, sequence| (name.to_owned(), sequence);
        assert!(numbering.turn(&packet(8, 3)).is_none());
        assert_eq!(numbers(&numbering, packet(8, 3)), named("DAY", 8));
        assert!(numbering.turn(&heartbeat(Session::new("DAY"), 11)).is_none());
        let turn = numbering.turn(&packet(11, 3)).unwrap();
        assert!(turn.from == 11 && turn.end.is_none());
        assert_eq!(numbers(&numbering, packet(11, 3)), named("DAY", 1));
        // Overtaken, and a heartbeat before and behind.
        assert_eq!(numbers(&numbering, packet(8, 3)), named("DAY", 8));
        assert_eq!(numbers(&numbering, heartbeat(Session::new("DAY"), 11).to_vec()), named("DAY", 11));
        assert_eq!(numbers(&numbering, heartbeat(Session::new("DAY"), 14).to_vec()), named("DAY", 4));
        let turn = numbering.turn(&packet(20, 1)).unwrap();
        assert_eq!(turn.end, Some(end_of_session(Session::new("DAY"), 10)));
        assert!(numbering.turn(&packet(20, 1)).is_none());
        assert_eq!(numbers(&numbering, packet(20, 1)), named("DAY     01", 1));
        assert_eq!(numbers(&numbering, packet(14, 3)), named("DAY", 4));
    }
}
