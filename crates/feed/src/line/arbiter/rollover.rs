//! Another session.
//!
//! It clears the books, so one stray packet must not bring it about while the present session is alive: it is kept until a
//! second packet agrees, and then nothing of it is lost.

use tapeline_nanos::Nanos;

use super::ending::End;
use super::{Arbiter, Lane, SESSIONS};
use crate::framing::{Packet, Session};
use crate::line::{LANES, Line, Sink, Start};

impl Arbiter {
    /// Sees to it that the packet belongs to the present session; `false` where it is ignored, kept, or taken by itself.
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

    /// A packet of another session than the present one.
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
            // Numbering starts again, and whoever was listening missed what came before.
            (Some(_), None) => 1,
        };
        // After an end another session is expected, with its first packet.
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

    /// Whether the line has a say in the present session's end: it belongs to it, or no other line lives in it. Where one is
    /// far behind the other, it may bring a session that is over and of which nothing was heard.
    fn may_leave(&self, line: usize, now: Nanos) -> bool {
        let hold = as_i64(self.settings.session_hold_ns);
        let lives =
            |lane: &Lane| lane.heard && lane.statistics.last.is_some_and(|last| now.since(last) < hold);
        self.lines[line].heard || !self.lines.iter().any(lives)
    }

    /// Remembers where a session had got to, in place of the one that was over first.
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

    /// Takes the packets that were doubted and turn out to belong to the present session, in the order in which they came.
    pub(super) fn take_doubted(&mut self, sink: &mut impl Sink) {
        // Each line once: what is kept again, as it lies beyond an end that another one announced, stays.
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
            // Recovery's packets are never doubted, so this is one of the lines.
            let Some(line) = Line::new(number) else { return };
            self.take(line, &believed.packet(), received, sink);
        }
    }

    /// Whether the packet and one that is doubted say the same: it follows on its line, or another line brought it; and one
    /// of the lines has a say.
    pub(super) fn agrees(&self, line: Line, packet: &Packet<'_>, received: Nanos) -> bool {
        let sequences = packet.kind.sequences();
        let has_say = |number| self.may_leave(number, received);
        self.lines.iter().enumerate().any(|(number, lane)| {
            lane.doubt.about().is_some_and(|(session, before)| {
                // The same packet once more on its line proves nothing, nor does what came before this session.
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

    /// Whether the present session has not been heard of for so long that it is gone.
    pub(super) fn is_silent(&self, now: Nanos) -> bool {
        now.since(self.heard) >= as_i64(self.settings.session_hold_ns)
    }
}

pub(super) fn as_i64(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}
