//! The end of a session, and the revocation of a false end.
//!
//! After an end no messages are expected, so nothing is requested and silence is no fault. One stray packet must not cause that state for the rest
//! of a day: a packet from after the end is held, and a second packet that agrees revokes the end.

use tapeline_nanos::Nanos;

use super::Arbiter;
use crate::framing::{DatagramKind, Packet};
use crate::line::{Line, Sink};

/// The progress of a session towards its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Open,
    Announced(u64),
    Reached,
}

impl Arbiter {
    pub(super) fn announce(&mut self, line: Line, next: u64, received: Nanos, sink: &mut impl Sink) {
        if self.end != End::Open {
            self.lines[line.number()].ended = true;
            if next == self.known_end && self.is_beyond(line.number()) {
                // The line confirms this end.
                self.lines[line.number()].drop_doubt();
            }
            // If no line can deliver anything more, no time is given to the lines.
            if self.is_left_to_recovery() {
                if self.settings.recovery_age_ns == 0 {
                    self.flush(sink);
                } else if self.gap_since.is_some() {
                    self.gap_since = Some(Nanos(received.0.saturating_sub(self.settings.window_age_ns)));
                }
            }
            return;
        }
        if next < self.known_end {
            // Messages after this end have arrived, or were announced, already.
            self.lines[line.number()].statistics.absurd += 1;
            return;
        }
        self.end = End::Announced(next);
        self.knows(next, received);
        self.announce(line, next, received, sink);
    }

    #[inline]
    pub(super) fn finish(&mut self, sink: &mut impl Sink) {
        if let End::Announced(next) = self.end
            && self.next >= next
        {
            self.end = End::Reached;
            self.statistics.ends += 1;
            sink.end_of_session(next);
        }
    }

    /// Handles a packet that goes beyond the announced end. Returns `true` if the packet is to be handled further: the end was revoked, or the
    /// packet begins before it. The part beyond the end is held until a second packet agrees.
    #[cold]
    pub(super) fn beyond(
        &mut self,
        line: Line,
        packet: &Packet<'_>,
        received: Nanos,
        sink: &mut impl Sink,
    ) -> bool {
        let (from, to) = packet.kind.sequences();
        if self.agrees_beyond(line, (from.max(self.known_end), to)) {
            self.take_end_back(sink);
            // A held packet may have announced another end.
            if self.end == End::Open || to <= self.known_end {
                return true;
            }
        }
        let from = from.max(self.known_end);
        let lane = &mut self.lines[line.number()];
        lane.drop_doubt();
        (lane.heard, lane.statistics.last) = (true, Some(received));
        lane.statistics.after_end += to - from;
        match packet.kind {
            DatagramKind::Data { first, mut messages } => {
                // Lossless: less than the packet's count of 16 bits.
                messages.pass((from - first) as u16);
                lane.doubt.keep(
                    &Packet { kind: DatagramKind::Data { first: from, messages }, ..*packet },
                    received,
                );
                first < from
            }
            DatagramKind::Heartbeat { .. } => {
                lane.doubt.keep(packet, received);
                false
            }
            DatagramKind::EndOfSession { next } => {
                lane.doubt.keep(packet, received);
                let before = self.next;
                self.announce(line, next, received, sink);
                self.moved(before, received, sink);
                false
            }
        }
    }

    /// Returns the receive time of the latest unconfirmed packet from after the announced end: the end may be false. `None` if nothing contradicts
    /// the end.
    #[must_use]
    pub fn end_doubted_at(&self) -> Option<Nanos> {
        let doubted = self.lines.iter().enumerate().filter(|(number, _)| self.is_beyond(*number));
        doubted.filter_map(|(_, lane)| lane.doubt.received()).max()
    }

    /// Returns `true` if the line's unconfirmed packet lies beyond the announced end.
    pub(super) fn is_beyond(&self, line: usize) -> bool {
        self.end != End::Open
            && self.lines[line]
                .doubt
                .about()
                .is_some_and(|(session, (from, _))| Some(session) == self.session && from >= self.known_end)
    }

    /// Returns `true` if an unconfirmed packet from after the end agrees with this packet. The same data packet again on the same line proves
    /// nothing; a repeated heartbeat or end does.
    fn agrees_beyond(&self, line: Line, (from, to): (u64, u64)) -> bool {
        self.lines.iter().enumerate().any(|(number, lane)| {
            self.is_beyond(number)
                && lane.doubt.about().is_some_and(|(_, before)| {
                    (number != line.number() || before != (from, to) || from == to)
                        && from.abs_diff(before.0) <= self.settings.max_jump
                })
        })
    }

    /// Revokes the announced end, and handles the packets held from after it.
    fn take_end_back(&mut self, sink: &mut impl Sink) {
        for number in 0..self.lines.len() {
            let beyond = self.is_beyond(number);
            let lane = &mut self.lines[number];
            lane.ended = false;
            if beyond && let Some((_, (from, to))) = lane.doubt.about() {
                // A packet held before the end was announced has not been counted as after it.
                lane.statistics.after_end = lane.statistics.after_end.saturating_sub(to - from);
            }
        }
        self.statistics.false_ends += 1;
        if std::mem::replace(&mut self.end, End::Open) == End::Reached {
            self.statistics.ends -= 1;
            sink.end_taken_back(self.next);
        }
        self.take_doubted(sink);
    }

    /// Drops packets from after an end: they are no evidence in the next session.
    pub(super) fn drop_beyond(&mut self) {
        for number in 0..self.lines.len() {
            if self.is_beyond(number) {
                self.lines[number].drop_doubt();
            }
        }
    }
}
