//! The change to another session.
//!
//! It clears the books, so one stray packet must not cause it while the present session is alive: the packet is held until a second one agrees, and
//! then no message is lost.

use tapeline_nanos::Nanos;

use super::ending::End;
use super::{Arbiter, Lane, SESSIONS};
use crate::framing::{Packet, Session};
use crate::line::{LANES, Line, Sink, Start};

impl Arbiter {
    /// Establishes the session of the packet. Returns `false` if the packet was ignored, held or handled here.
    #[cold]
    pub(super) fn enter(
        &mut self,
        line: Line,
        packet: &Packet<'_>,
        received: Nanos,
        sink: &mut impl Sink,
    ) -> bool {
        if line == Line::RECOVERY {
            if self.session == Some(packet.session) {
                self.recovered(packet, received, sink);
            } else {
                self.lines[line.number()].statistics.stale_session += 1;
            }
            return false;
        }
        if self.session == Some(packet.session) {
            self.goes_on(line, packet, received, sink)
        } else {
            self.roll(line, packet, received, sink)
        }
    }

    /// Handles a packet of a session other than the present one.
    fn roll(&mut self, line: Line, packet: &Packet<'_>, received: Nanos, sink: &mut impl Sink) -> bool {
        let silent = self.is_silent(received);
        let over = self.over.iter().flatten().find(|(session, _)| *session == packet.session).copied();
        let start = match (self.session, over) {
            (None, _) => match self.settings.start {
                Start::First => packet.kind.sequences().0,
                Start::FromOne => 1,
            },
            (Some(_), Some(_)) if !silent => {
                self.lines[line.number()].statistics.stale_session += 1;
                return false;
            }
            (Some(_), Some((_, next))) => next,
            // Numbering starts at 1: the receiver missed any earlier messages.
            (Some(_), None) => 1,
        };
        // After an end, the first packet of another session is expected.
        let expected = self.end != End::Open && packet.kind.sequences().0 == 1;
        let unchallenged = self.session.is_none() || silent;
        let agreed =
            expected && self.may_leave(line.number(), received) || self.agrees(line, packet, received);
        if !unchallenged && !agreed {
            self.doubt(line, packet, received);
            return false;
        }
        if let Some(present) = self.session {
            self.flush(sink);
            self.is_over(present);
        }
        self.begin(packet.session, start, received, sink);
        self.take_doubted(sink);
        true
    }

    /// Returns `true` if the line may end the present session: it belongs to it, or no other line is alive in it. A line that lags far behind may
    /// bring a previous session that this arbiter never received.
    fn may_leave(&self, line: usize, now: Nanos) -> bool {
        let hold = as_i64(self.settings.session_hold_ns);
        let lives =
            |lane: &Lane| lane.heard && lane.statistics.last.is_some_and(|last| now.since(last) < hold);
        self.lines[line].heard || !self.lines.iter().any(lives)
    }

    /// Stores the next sequence of a previous session, in place of the oldest stored one.
    fn is_over(&mut self, session: Session) {
        let known = self.over.iter().position(|over| over.is_some_and(|(known, _)| known == session));
        self.over[..=known.unwrap_or(SESSIONS - 1)].rotate_right(1);
        self.over[0] = Some((session, self.next));
    }

    pub(super) fn begin(&mut self, session: Session, start: u64, received: Nanos, sink: &mut impl Sink) {
        self.drop_beyond();
        self.session = Some(session);
        (self.start, self.next, self.known_end) = (start, start, start);
        (self.heard, self.begun, self.known_since) = (received, received, received);
        (self.gap_since, self.end, self.far) = (None, End::Open, None);
        (self.renumbered, self.settling, self.is_renumbered_at_recovery) = (false, false, false);
        self.given_up.clear();
        self.delivered.restart(start);
        self.arrivals.clear();
        for lane in &mut self.lines {
            lane.restart(start);
        }
        self.statistics.sessions += 1;
        sink.reset(session);
        if start > 1 {
            sink.begins_late(start);
        }
    }

    /// Handles the held packets that turn out to belong to the present session, in the order of their arrival.
    pub(super) fn take_doubted(&mut self, sink: &mut impl Sink) {
        // Each line once: a packet that is held again, because it lies beyond an end that another line announced, stays.
        let mut taken = [false; LANES];
        loop {
            let believed = |lane: &Lane| {
                let (session, _) = lane.doubt.about()?;
                (Some(session) == self.session).then(|| lane.doubt.received())?
            };
            let lanes = self.lines.iter().enumerate().filter(|(number, _)| !taken[*number]);
            let first = lanes.filter_map(|(number, lane)| Some((believed(lane)?, number))).min();
            let Some((received, number)) = first else { return };
            taken[number] = true;
            let Some(believed) = self.lines[number].doubt.take() else { return };
            // Packets of recovery are never held, so this is one of the lines.
            let Some(line) = Line::new(number) else { return };
            self.take(line, &believed.packet(), received, sink);
        }
    }

    /// Returns `true` if the packet agrees with a held one: it follows on the same line, or arrived on another line; and one of the lines may end
    /// the session.
    pub(super) fn agrees(&self, line: Line, packet: &Packet<'_>, received: Nanos) -> bool {
        let sequences = packet.kind.sequences();
        let has_say = |number| self.may_leave(number, received);
        self.lines.iter().enumerate().any(|(number, lane)| {
            lane.doubt.about().is_some_and(|(session, before)| {
                // The same packet again on the same line proves nothing, nor does one from before this session.
                session == packet.session
                    && !self.is_beyond(number)
                    && lane.doubt.received() >= Some(self.begun)
                    && (number != line.number() || before != sequences)
                    && sequences.0.abs_diff(before.0) <= self.settings.max_jump
                    && (has_say(number) || has_say(line.number()))
            })
        })
    }

    pub(super) fn doubt(&mut self, line: Line, packet: &Packet<'_>, received: Nanos) {
        let lane = &mut self.lines[line.number()];
        lane.drop_doubt();
        lane.doubt.keep(packet, received);
    }

    /// Returns `true` if the present session has been silent for so long that it counts as gone.
    pub(super) fn is_silent(&self, now: Nanos) -> bool {
        now.since(self.heard) >= as_i64(self.settings.session_hold_ns)
    }
}

pub(super) fn as_i64(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}
