//! The arbiter itself.

mod ending;
mod numbering;
mod recovery;
mod rollover;

use tapeline_nanos::Nanos;

use super::arrivals::Arrivals;
use ending::End;
use recovery::GivenUp;

use super::held::{Held, Insert, MAX_WINDOW};
use super::lane::Lane;
use super::seen::Seen;
use super::{
    ArbiterSettings, ChannelStatistics, Jump, LANES, LARGEST_GAP, Line, LineStatistics, Restart, Sink,
};
use crate::framing::{DatagramKind, MalformedDatagram, Messages, Packet, Session};

/// An arbiter that makes one stream of messages from the lines of a channel. See [the module](super) for its actions.
///
/// Allocates all memory at creation. A message in order costs a comparison and the call of the sink, a packet
/// a few words of book-keeping (`benches/itch`); only a message ahead of its sequence is copied.
#[derive(Debug)]
pub struct Arbiter {
    settings: ArbiterSettings,
    session: Option<Session>,
    /// The previous sessions with their next sequences, the latest first.
    over: [Option<(Session, u64)>; SESSIONS],
    /// Time of the last packet of the present session.
    heard: Nanos,
    /// Start time of the session, or of its last reset.
    begun: Nanos,
    /// The first sequence that is delivered.
    start: u64,
    /// The sequence that will be delivered next.
    next: u64,
    /// One more than the latest sequence known to exist; the messages from `next` to before it are held or missing.
    known_end: u64,
    /// Time of the last advance of `known_end`.
    known_since: Nanos,
    /// Time since which the message `next` has been known to be missing.
    gap_since: Option<Nanos>,
    end: End,
    /// A sequence beyond the maximum jump, not confirmed yet.
    far: Option<u64>,
    /// The delivered sequences: they distinguish duplicates from messages that were declared missing.
    delivered: Seen,
    held: Held,
    given_up: GivenUp,
    arrivals: Arrivals,
    /// The arrivals of the previous numbering, in the same session.
    before: Arrivals,
    /// The next sequence of the previous numbering.
    before_end: u64,
    /// `true` if sequences were reset within the session, so that packets of the previous numbering may arrive.
    renumbered: bool,
    /// `true` if that reset is so recent that such packets may even fit.
    settling: bool,
    /// `true` if the server of recovery has shown that it has the present numbering.
    is_renumbered_at_recovery: bool,
    statistics: ChannelStatistics,
    lines: [Lane; LANES],
}

/// Number of remembered previous sessions: a slower line, or a damaged name, may bring packets of one again.
const SESSIONS: usize = 8;

impl Arbiter {
    /// Creates an arbiter in its initial state.
    #[must_use]
    pub fn new(mut settings: ArbiterSettings) -> Self {
        settings.window_messages = settings.window_messages.min(MAX_WINDOW);
        Self {
            settings,
            session: None,
            over: [None; SESSIONS],
            heard: Nanos(0),
            begun: Nanos(0),
            start: 0,
            next: 0,
            known_end: 0,
            known_since: Nanos(0),
            gap_since: None,
            end: End::Open,
            far: None,
            delivered: Seen::new(),
            held: Held::new(settings.window_messages, settings.window_bytes),
            given_up: GivenUp::default(),
            arrivals: Arrivals::new(),
            before: Arrivals::new(),
            before_end: 0,
            renumbered: false,
            settling: false,
            is_renumbered_at_recovery: false,
            statistics: ChannelStatistics::default(),
            lines: std::array::from_fn(|_| Lane::new()),
        }
    }

    /// Handles a datagram that arrived on `line`.
    ///
    /// # Errors
    /// [`MalformedDatagram`]: it was counted, and nothing else has changed.
    #[inline]
    pub fn datagram(
        &mut self,
        line: Line,
        datagram: &[u8],
        received: Nanos,
        sink: &mut impl Sink,
    ) -> Result<(), MalformedDatagram> {
        let parsed = self.settings.framing.parse(datagram);
        let statistics = &mut self.lines[line.number()].statistics;
        statistics.bytes += datagram.len() as u64;
        match parsed {
            Ok(packet) => {
                self.packet(line, &packet, received, sink);
                Ok(())
            }
            Err(malformed) => {
                statistics.datagrams += 1;
                statistics.malformed[malformed.index()] += 1;
                Err(malformed)
            }
        }
    }

    /// Handles a packet that is already parsed.
    pub fn packet(&mut self, line: Line, packet: &Packet<'_>, received: Nanos, sink: &mut impl Sink) {
        let statistics = &mut self.lines[line.number()].statistics;
        statistics.datagrams += 1;
        statistics.trailing_bytes += packet.trailing as u64;
        match packet.kind {
            DatagramKind::Data { .. } => statistics.data_packets += 1,
            DatagramKind::Heartbeat { .. } => statistics.heartbeats += 1,
            DatagramKind::EndOfSession { .. } => statistics.ends_of_session += 1,
        }
        let from = packet.kind.sequences().0;
        if from == 0 {
            statistics.absurd += 1;
            return;
        }
        let lane = &self.lines[line.number()];
        let known = self.session == Some(packet.session) && !lane.is_wary() && !self.settling;
        let end = lane.seen.end();
        let goes_on = from == end || (from > end && from >= self.known_end && !self.renumbered);
        if (known && goes_on && line != Line::RECOVERY) || self.enter(line, packet, received, sink) {
            self.take(line, packet, received, sink);
        }
    }

    /// Handles a packet of the present session.
    fn take(&mut self, line: Line, packet: &Packet<'_>, received: Nanos, sink: &mut impl Sink) {
        let (from, to) = packet.kind.sequences();
        let lane = &self.lines[line.number()];
        let fits = match self.settings.restart {
            Restart::Ignore => true,
            // A quarantined packet may be handled and still belong to another numbering.
            Restart::Changed => lane.quarantine.is_empty(),
            Restart::Reset => from == lane.seen.end(),
        };
        if fits || to >= self.known_end {
            self.heard = self.heard.max(received);
        }
        if !self.believes(from) {
            self.lines[line.number()].statistics.absurd += 1;
            return;
        }
        let before = self.next;
        let mut to = to;
        if to > self.known_end && self.end != End::Open {
            if !self.beyond(line, packet, received, sink) {
                return;
            }
            if self.end != End::Open {
                to = to.min(self.known_end);
            }
        }
        self.lines[line.number()].count(from, to, received);
        match packet.kind {
            DatagramKind::Data { messages, .. } => self.data(line, messages, received, sink),
            DatagramKind::Heartbeat { next } => self.knows(next, received),
            DatagramKind::EndOfSession { next } => self.announce(line, next, received, sink),
        }
        self.moved(before, received, sink);
    }

    /// Runs after `next` or `known_end` may have advanced.
    #[inline]
    fn moved(&mut self, before: u64, received: Nanos, sink: &mut impl Sink) {
        if !self.given_up.is_empty() {
            self.declare_given_up(sink);
        }
        self.settle(before, received);
        self.finish(sink);
        if self.gap_since.is_some() && self.settings.expire_on_packet {
            self.expire(received, sink);
        }
    }

    /// Declares the gaps older than [`ArbiterSettings::window_age_ns`] plus the time for recovery. Every packet does so too, unless
    /// [`ArbiterSettings::expire_on_packet`] is off. Call it at [`next_expiry`](Self::next_expiry) or regularly while no packet arrives.
    pub fn expire(&mut self, now: Nanos, sink: &mut impl Sink) {
        // Each round advances `next`.
        while let Some(expiry) = self.next_expiry()
            && now >= expiry
        {
            self.statistics.expired += 1;
            let before = self.next;
            self.declare_front(sink);
            if !self.given_up.is_empty() {
                self.declare_given_up(sink);
            }
            self.settle(before, now);
        }
        self.finish(sink);
    }

    /// Declares every gap and delivers all held messages, at the end of the input.
    pub fn flush(&mut self, sink: &mut impl Sink) {
        self.settle_aside(sink);
        self.flush_window(sink);
    }

    /// Declares every gap and delivers all held messages of the present numbering.
    fn flush_window(&mut self, sink: &mut impl Sink) {
        while self.next < self.known_end {
            self.declare_front(sink);
        }
        self.gap_since = None;
        self.finish(sink);
    }

    /// Returns the time at which the oldest open gap expires; `None` without an open gap.
    #[inline]
    #[must_use]
    pub fn next_expiry(&self) -> Option<Nanos> {
        self.overdue_at().map(|at| at + self.settings.recovery_age_ns)
    }

    /// Returns the time from which the oldest open gap is left to recovery, because the lines have had their time to fill it.
    #[inline]
    #[must_use]
    pub fn overdue_at(&self) -> Option<Nanos> {
        self.gap_since.map(|since| since + self.settings.window_age_ns)
    }

    /// Returns the start time of the present session, or of its last reset.
    #[must_use]
    pub const fn begun(&self) -> Nanos {
        self.begun
    }

    /// Returns the time of the last packet on any line; `None` before the first packet.
    #[must_use]
    pub fn heard(&self) -> Option<Nanos> {
        self.session.map(|_| self.heard)
    }

    /// Returns the present session.
    #[must_use]
    pub const fn session(&self) -> Option<Session> {
        self.session
    }

    /// Returns the sequence that will be delivered next; `None` before the first packet.
    #[must_use]
    pub fn next_sequence(&self) -> Option<u64> {
        self.session.map(|_| self.next)
    }

    /// Returns the number of messages held now.
    #[must_use]
    pub const fn held(&self) -> usize {
        self.held.count()
    }

    /// Returns `true` if the present session has reached its announced end.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.end == End::Reached
    }

    /// Returns the statistics of the channel.
    #[must_use]
    pub const fn statistics(&self) -> &ChannelStatistics {
        &self.statistics
    }

    /// Returns the statistics of one line.
    #[must_use]
    pub const fn line(&self, line: Line) -> &LineStatistics {
        &self.lines[line.number()].statistics
    }

    /// Returns `true` if a sequence is within the maximum jump, or confirms one beyond it.
    #[inline]
    fn believes(&mut self, from: u64) -> bool {
        let limit = self.settings.max_jump;
        if from.saturating_sub(self.known_end) <= limit {
            return true;
        }
        match (self.settings.on_jump, self.far) {
            (Jump::Believe, _) => true,
            (Jump::Confirm, Some(far)) if from.abs_diff(far) <= limit => {
                self.far = None;
                true
            }
            (Jump::Confirm, _) => {
                self.far = Some(from);
                false
            }
            (Jump::Ignore, _) => false,
        }
    }

    /// Records that the sequences before `end` exist.
    #[inline]
    fn knows(&mut self, end: u64, received: Nanos) {
        if end > self.known_end {
            (self.known_end, self.known_since) = (end, received);
        }
    }

    #[inline]
    fn data(&mut self, line: Line, mut messages: Messages<'_>, received: Nanos, sink: &mut impl Sink) {
        let (from, to) = (messages.sequence(), messages.end());
        if self.end == End::Open {
            self.knows(to, received);
        }
        let to = to.min(self.known_end);
        self.skew(line, from, received);
        self.behind(line, from, to.min(self.next));
        if to <= self.next {
            return;
        }
        if let Some(passed) = self.next.checked_sub(from) {
            // Lossless: less than the packet's count of 16 bits.
            messages.pass(passed as u16);
            if self.held.is_empty() {
                // All in sequence: no lookup needed.
                let run = self.next;
                let new = to - run;
                if let Some((_, first)) = { messages }.next() {
                    self.arrivals.record(run, first, line, received);
                }
                if Arrivals::is_beginning(run) {
                    for (sequence, bytes) in messages.take(new as usize) {
                        self.arrivals.remember(sequence, bytes);
                    }
                }
                sink.run(messages.up_to(new), received);
                self.next = to;
                self.delivered.advance(to);
                self.delivered.mark(run, to);
                self.statistics.delivered += new;
                self.lines[line.number()].statistics.first += new;
                return;
            }
        }
        let mut first = true;
        for (sequence, bytes) in messages {
            if sequence >= to {
                break;
            }
            if self.place(sequence, bytes, received, sink) {
                self.lines[line.number()].statistics.first += 1;
                if Arrivals::is_beginning(sequence) {
                    self.arrivals.remember(sequence, bytes);
                }
                if std::mem::take(&mut first) {
                    self.arrivals.record(sequence, bytes, line, received);
                }
            } else {
                self.lines[line.number()].statistics.duplicates += 1;
            }
        }
    }

    /// Delivers or holds a message that has not been passed; returns `false` if it is already held or delivered.
    fn place(&mut self, sequence: u64, bytes: &[u8], received: Nanos, sink: &mut impl Sink) -> bool {
        // Each round that does not return frees a part of the window, or makes this message the next one.
        loop {
            if sequence < self.next {
                // It was held, and was delivered when the window was full.
                return false;
            }
            if sequence == self.next {
                self.deliver(bytes, received, sink);
                self.drain(sink);
                return true;
            }
            // Lossless: a distance that does not fit is beyond every window.
            if usize::try_from(sequence - self.next).is_ok_and(|ahead| ahead < self.settings.window_messages)
            {
                match self.held.insert(sequence, bytes, received) {
                    Insert::Held => {
                        self.statistics.held += 1;
                        self.statistics.max_held = self.statistics.max_held.max(self.held.count() as u64);
                        return true;
                    }
                    Insert::Duplicate => return false,
                    Insert::NoRoom => {}
                }
            }
            self.statistics.window_full += 1;
            if self.held.first().is_some_and(|(first, _)| first < sequence) {
                self.declare_front(sink);
            } else {
                self.declare(sequence, sink);
            }
        }
    }

    #[inline]
    fn deliver(&mut self, bytes: &[u8], received: Nanos, sink: &mut impl Sink) {
        sink.message(self.next, bytes, received);
        self.pass_delivered();
    }

    /// Delivers held messages that are next in sequence.
    fn drain(&mut self, sink: &mut impl Sink) {
        while let Some((bytes, received)) = self.held.take_first(self.next) {
            sink.message(self.next, bytes, received);
            self.pass_delivered();
        }
    }

    /// Records the delivery of the next message.
    #[inline]
    fn pass_delivered(&mut self) {
        let sequence = self.next;
        self.next = sequence + 1;
        self.delivered.advance(self.next);
        self.delivered.mark(sequence, self.next);
        self.statistics.delivered += 1;
    }

    /// Declares the oldest gap, and delivers the held messages after it. Advances `next` if it is before `known_end`.
    fn declare_front(&mut self, sink: &mut impl Sink) {
        let until = self.held.first().map_or(self.known_end, |(first, _)| first);
        self.declare(until, sink);
        self.drain(sink);
    }

    /// Declares the messages from the next one to before `until` missing.
    fn declare(&mut self, until: u64, sink: &mut impl Sink) {
        if until > self.next {
            self.statistics.gaps += 1;
            match until - self.next {
                missing @ ..=LARGEST_GAP => {
                    self.statistics.missing = self.statistics.missing.saturating_add(missing);
                }
                _ => self.statistics.absurd_gaps += 1,
            }
            sink.gap(self.next, until - 1);
            self.next = until;
            self.delivered.advance(until);
        }
    }

    /// Counts the passed part of a packet: the messages `from` to before `to`.
    #[inline]
    fn behind(&mut self, line: Line, from: u64, to: u64) {
        if from >= to {
            return;
        }
        let statistics = &mut self.lines[line.number()].statistics;
        let early = self.start.clamp(from, to) - from;
        let late = self.delivered.mark(from, to);
        statistics.before_start += early;
        statistics.late += late;
        self.statistics.late += late;
        statistics.duplicates += to - from - early - late;
    }

    /// Records the delay of this packet after the copy on another line.
    #[inline]
    fn skew(&mut self, line: Line, from: u64, received: Nanos) {
        if let Some(first) = self.arrivals.on_another_line(from, line) {
            self.lines[line.number()].statistics.skew.record(received.since(first));
        }
    }

    /// Updates `gap_since` after `next` or `known_end` may have advanced.
    #[inline]
    fn settle(&mut self, before: u64, received: Nanos) {
        self.gap_since = if self.next >= self.known_end {
            None
        } else if self.next != before {
            // A new gap: known since the first message after it arrived, or since its end was announced.
            Some(self.held.first().map_or(self.known_since, |(_, received)| received))
        } else {
            self.gap_since.or(Some(received))
        };
    }
}
