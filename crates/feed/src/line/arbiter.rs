//! The arbiter itself.

use tapeline_measure::Nanos;

use super::{Line, LineStatistics, MAX_LINES, Sink, Statistics};
use crate::moldudp64::{Malformed, Packet, Session, parse};

/// Where delivery starts in the first session that a channel meets. Later sessions start at 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// With the first message that arrives: for one who joins while the feed runs.
    #[default]
    First,
    /// With message 1; what came before the first arrival is a gap.
    FromOne,
}

/// What becomes of a packet that is more than [`Settings::max_jump`] ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jump {
    /// It is ignored unless the next packet so far ahead agrees with it: one stray packet does no harm, and after a
    /// long outage the second packet is believed. What was ignored is part of the gap.
    #[default]
    Confirm,
    /// It is believed at once.
    Believe,
    /// It is always ignored.
    Ignore,
}

/// The bounds and policies of an arbiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Messages ahead of the next one that can be held; the memory for them is taken at the start.
    pub window_messages: usize,
    /// Bytes that can be held; twice as many are taken at the start.
    pub window_bytes: usize,
    /// How long to wait for a missing message before it is declared missing, ns.
    pub window_age_ns: u64,
    /// Where the first session starts.
    pub start: Start,
    /// Messages ahead of the next one beyond which a packet is not simply believed.
    pub max_jump: u64,
    /// What becomes of such a packet.
    pub on_jump: Jump,
    /// For how long after its last packet the present session is preferred to the one before it, ns.
    pub session_hold_ns: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            window_messages: 16_384,
            window_bytes: 1 << 20,
            window_age_ns: 20_000_000,
            start: Start::First,
            max_jump: 100_000_000,
            on_jump: Jump::Confirm,
            session_hold_ns: 3_000_000_000,
        }
    }
}

/// Makes one stream of messages of a channel's lines. See [the module](super) for what it does when.
#[derive(Debug)]
pub struct Arbiter {
    settings: Settings,
    session: Option<Session>,
    next: u64,
    statistics: Statistics,
    lines: [LineStatistics; MAX_LINES],
}

impl Arbiter {
    /// An arbiter that has seen nothing; takes all the memory that it will ever use.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            session: None,
            next: 0,
            statistics: Statistics::default(),
            lines: std::array::from_fn(|_| LineStatistics::default()),
        }
    }

    /// Takes a datagram that came on `line`.
    ///
    /// # Errors
    /// [`Malformed`]: it was counted, and nothing else has changed.
    pub fn datagram(
        &mut self,
        line: Line,
        datagram: &[u8],
        received: Nanos,
        sink: &mut impl Sink,
    ) -> Result<(), Malformed> {
        let packet = parse(datagram)?;
        self.packet(line, &packet, received, sink);
        Ok(())
    }

    /// Takes a packet that has been read already.
    pub fn packet(&mut self, line: Line, packet: &Packet<'_>, received: Nanos, sink: &mut impl Sink) {
        let _ = (line, packet, received, sink, self.settings);
    }

    /// Declares the gaps that are older than [`Settings::window_age_ns`]. Every packet does that too; call it when
    /// none comes, at [`next_expiry`](Self::next_expiry) or regularly.
    pub fn expire(&mut self, now: Nanos, sink: &mut impl Sink) {
        let _ = (now, sink);
    }

    /// Declares every gap and delivers everything that is held: nothing more will come.
    pub fn flush(&mut self, sink: &mut impl Sink) {
        let _ = sink;
    }

    /// When the oldest open gap will be too old; `None` without an open gap.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Nanos> {
        None
    }

    /// The present session.
    #[must_use]
    pub fn session(&self) -> Option<Session> {
        self.session
    }

    /// The sequence that will be delivered next; `None` before the first packet.
    #[must_use]
    pub fn next_sequence(&self) -> Option<u64> {
        self.session.map(|_| self.next)
    }

    /// What the channel did.
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// What one line did.
    #[must_use]
    pub fn line(&self, line: Line) -> &LineStatistics {
        &self.lines[line.number()]
    }
}
