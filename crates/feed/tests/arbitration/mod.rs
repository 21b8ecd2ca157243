//! An arbiter with a log of what it said: for tests of the rules.

#![allow(dead_code, reason = "each test uses its part")]

use tapeline_feed::line::{self, Arbiter, ArbiterSettings, Line, Sink};
use tapeline_feed::moldudp64::{DEFAULT_PACKET_BYTES, MoldSession, PacketBuilder};
use tapeline_nanos::Nanos;

pub(crate) const SESSION: MoldSession = MoldSession(*b"SESSION-01");
pub(crate) const OTHER: MoldSession = MoldSession(*b"SESSION-02");
pub(crate) const MS: u64 = 1_000_000;

/// What an arbiter said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Message(u64),
    Gap(u64, u64),
    End(u64),
    Again(u64),
    Reset(MoldSession),
}

use Event::{Again, End, Gap, Message, Reset};

/// Writes down everything; messages have to carry the bytes that belong to their sequence.
#[derive(Default)]
pub(crate) struct Log(pub(crate) Vec<Event>);

impl Sink for Log {
    fn message(&mut self, sequence: u64, bytes: &[u8], _received: Nanos) {
        assert_eq!(bytes, content(sequence), "the bytes of message {sequence}");
        self.0.push(Message(sequence));
    }

    fn gap(&mut self, first: u64, last: u64) {
        assert!(first <= last);
        self.0.push(Gap(first, last));
    }

    fn end_of_session(&mut self, next: u64) {
        self.0.push(End(next));
    }

    fn end_taken_back(&mut self, next: u64) {
        self.0.push(Again(next));
    }

    fn reset(&mut self, session: line::Session) {
        let line::Session::MoldUdp64(session) = session else { panic!("{session:?}") };
        self.0.push(Reset(session));
    }
}

impl Log {
    pub(crate) fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.0)
    }
}

/// What message `sequence` holds: of different lengths, none of it zero.
pub(crate) fn content(sequence: u64) -> Vec<u8> {
    vec![(sequence % 251) as u8 + 1; (sequence.wrapping_mul(7) % 13) as usize]
}

pub(crate) fn packet_of(session: MoldSession, from: u64, to: u64) -> Vec<u8> {
    let mut buffer = vec![0; DEFAULT_PACKET_BYTES];
    let mut packet = PacketBuilder::new(&mut buffer, session, from).unwrap();
    for sequence in from..to {
        packet.push(&content(sequence)).unwrap();
    }
    let length = packet.finish();
    buffer.truncate(length);
    buffer
}

/// A packet of the messages `from` to before `to`.
pub(crate) fn packet(from: u64, to: u64) -> Vec<u8> {
    packet_of(SESSION, from, to)
}

/// An arbiter with its log, and a clock in ms.
pub(crate) struct Rig {
    pub(crate) arbiter: Arbiter,
    pub(crate) log: Log,
}

impl Rig {
    pub(crate) fn new(settings: ArbiterSettings) -> Self {
        Self { arbiter: Arbiter::new(settings), log: Log::default() }
    }

    pub(crate) fn at(&mut self, ms: u64, line: Line, datagram: &[u8]) -> Vec<Event> {
        self.arbiter.datagram(line, datagram, Nanos(ms * MS), &mut self.log).unwrap();
        self.log.take()
    }
}
