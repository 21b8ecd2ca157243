//! The same session from its beginning.
//!
//! Nothing in a packet says that numbers begin again: it looks like a copy of what had come. So copies are compared, where a
//! line does not simply go on: what is not alike is set aside, and believed in once there is enough of it. Then it is taken
//! from its first packet on. What shows to be old after all is taken as that.

use tapeline_nanos::Nanos;

use super::ending::End;
use super::rollover::as_i64;
use super::{Arbiter, Lane};
use crate::framing::{Kind, Packet, Session};
use crate::line::arrivals::{Arrivals, Likeness};
use crate::line::quarantine::Keep;
use crate::line::{Line, Restart, Sink};

impl Arbiter {
    /// A packet of the present session that does not simply go on where its line was. Whether it is to be taken now.
    pub(super) fn goes_on(
        &mut self,
        line: Line,
        packet: &Packet<'_>,
        received: Nanos,
        sink: &mut impl Sink,
    ) -> bool {
        let to = packet.kind.sequences().1;
        let lane = &mut self.lines[line.number()];
        if to > lane.seen.end() && lane.doubt.about().is_some_and(|(session, _)| session != packet.session) {
            // A line that has gone over to another session has nothing new to say in this one.
            lane.drop_doubt();
        }
        if self.settings.restart == Restart::Ignore {
            lane.proven = true;
            return true;
        }
        if self.is_of_before(line, packet, received) {
            self.lines[line.number()].statistics.stale_session += 1;
            return false;
        }
        if self.settings.restart == Restart::Reset
            && let Some(taken) = self.begins_again(line, packet, received, sink)
        {
            return taken;
        }
        self.fits(line, packet, received, sink)
    }

    /// Whether a packet belongs to the numbering before: lines are behind, and packets late. What can be compared says so for
    /// ever, the rest for as long as a session is held for alive.
    fn is_of_before(&mut self, line: Line, packet: &Packet<'_>, received: Nanos) -> bool {
        if !self.renumbered {
            return false;
        }
        let (from, to) = packet.kind.sequences();
        let compared = self.settings.restart == Restart::Changed;
        let alike = |arrivals: &Arrivals| match compared {
            true => arrivals.likeness(packet),
            false => Likeness::Unknown,
        };
        let (now, before) = (alike(&self.arrivals), alike(&self.before));
        let over = received.since(self.begun) >= as_i64(self.settings.session_hold_ns);
        self.settling &= !over;
        let lane = &mut self.lines[line.number()];
        let is_of_before = match (now, before, lane.old_end) {
            (Likeness::Same, ..) => false,
            (_, Likeness::Same, _) => {
                lane.told = (0, 0);
                true
            }
            (Likeness::Unknown, Likeness::Other, _) => false,
            _ if over => false,
            // The line has not shown that it began again.
            (.., Some(old_end)) if from >= old_end || !compared => {
                !(from < old_end && (from == 1 || to <= self.known_end))
            }
            (.., Some(_)) if from == 1 || to <= self.known_end => false,
            (.., None) if !compared || from <= lane.seen.end() || from <= self.known_end => false,
            // It goes on where the one before was to go on, which may have been its end.
            (.., None) if from == self.before_end => {
                self.before_end = to;
                true
            }
            (.., None) if matches!(packet.kind, Kind::EndOfSession { .. }) => false,
            // Far ahead, and nothing to compare it with: it has to be said three times in a row.
            _ => {
                let again = std::mem::replace(&mut lane.told.0, to) == from;
                lane.told.1 = if again { lane.told.1 + 1 } else { 1 };
                lane.told.1 < 3
            }
        };
        if let Some(old_end) = &mut lane.old_end {
            if !is_of_before {
                lane.old_end = None;
            } else if from == *old_end {
                *old_end = to;
            }
        }
        is_of_before
    }

    /// Whether the beginning came again, and the line goes on from there: then it is no copy, whatever is in it. `None`
    /// where it is about something else.
    fn begins_again(
        &mut self,
        line: Line,
        packet: &Packet<'_>,
        received: Nanos,
        sink: &mut impl Sink,
    ) -> Option<bool> {
        let from = packet.kind.sequences().0;
        let beyond = self.is_beyond(line.number());
        let lane = &mut self.lines[line.number()];
        let end = lane.seen.end();
        if let Some((session, (_, after))) = lane.doubt.about()
            && session == packet.session
            && !beyond
        {
            // Where both readings fit, the beginning came twice, and the line goes on.
            if from == after && end != after {
                self.start_again(line, packet.session, received, sink);
                return Some(true);
            }
            lane.drop_doubt();
        }
        if from > 1 || end <= 1 || self.known_end <= 1 {
            return None;
        }
        if self.agrees(line, packet, received) {
            self.start_again(line, packet.session, received, sink);
            return Some(true);
        }
        self.doubt(line, packet, received);
        Some(false)
    }

    /// Whether a packet fits what has come; what does not is set aside.
    fn fits(&mut self, line: Line, packet: &Packet<'_>, received: Nanos, sink: &mut impl Sink) -> bool {
        let (from, to) = packet.kind.sequences();
        let likeness = self.arrivals.likeness(packet);
        let fills = to > self.known_end || self.held.holes(self.next, to).any(|hole| *hole.end() >= from);
        let lane = &mut self.lines[line.number()];
        let end = lane.seen.end();
        lane.proven = match likeness {
            Likeness::Same => true,
            Likeness::Other => false,
            // On new ground there is nothing to prove; a jump onto old ground has to be.
            Likeness::Unknown => from >= self.known_end || (lane.proven && from <= end),
        };
        let likeness = match likeness {
            // Who begins again may say the same again.
            Likeness::Same if self.settings.restart == Restart::Reset => Likeness::Unknown,
            likeness => likeness,
        };
        let other = match likeness {
            // Where a packet with which the line jumped ahead was none of its flow, the flow goes on below it.
            _ if lane.heard && from == lane.resumes => false,
            Likeness::Same => false,
            Likeness::Other => true,
            // It follows what was set aside, and not what came before. Or the line goes back to what it has passed, and fills
            // no hole.
            Likeness::Unknown => {
                (lane.quarantine.end() == Some(from) && from != end)
                    || (lane.heard && from < lane.resumes && !fills)
            }
        };
        if other {
            self.set_aside(line, packet, likeness, received, sink);
            return false;
        }
        // Ahead of both, it may be either; then only what nothing speaks against is given up.
        let ahead = from > end && lane.quarantine.contradicts();
        if !lane.quarantine.is_empty() && from >= end && !ahead && lane.quarantine.goes_on() {
            self.let_go(line, sink);
        }
        true
    }

    /// Sets a packet aside; if there is enough now to believe in another numbering, it begins with what was set aside. If not,
    /// the packet may be taken now all the same: where all of it has been passed, that does no more than to count it, and where
    /// nothing speaks against it, it may fill a hole.
    fn set_aside(
        &mut self,
        line: Line,
        packet: &Packet<'_>,
        likeness: Likeness,
        received: Nanos,
        sink: &mut impl Sink,
    ) {
        let mut agreed = false;
        if likeness == Likeness::Other {
            for (number, lane) in self.lines.iter().enumerate() {
                if lane.quarantine.contradicts_as(packet) {
                    if number == line.number() {
                        // The same once more proves nothing.
                        self.lines[number].statistics.strays += 1;
                        return;
                    }
                    agreed = true;
                }
            }
        }
        let to = packet.kind.sequences().1;
        let lane = &self.lines[line.number()];
        let contradicts = likeness == Likeness::Other || lane.quarantine.contradicts();
        let passed = !contradicts || to <= self.next.min(lane.seen.end());
        let mut kept = self.lines[line.number()].quarantine.keep(packet, likeness, received, passed);
        if kept == Keep::NoRoom {
            self.let_go(line, sink);
            kept = self.lines[line.number()].quarantine.keep(packet, likeness, received, passed);
        }
        self.lines[line.number()].statistics.strays += u64::from(kept != Keep::Kept && !passed);
        let silent = self.is_silent(received);
        let quarantine = &mut self.lines[line.number()].quarantine;
        if agreed {
            quarantine.confirm();
        }
        let points = self.lines.iter().map(|lane| lane.quarantine.weight().1).sum();
        let quarantine = &self.lines[line.number()].quarantine;
        // Behind an announced end silence says nothing.
        let alone = silent && quarantine.is_repeated() && (quarantine.contradicts() || self.end == End::Open);
        if quarantine.is_believed(points) || alone {
            self.start_again(line, packet.session, received, sink);
            return;
        }
        if passed {
            let before = self.lines[line.number()].statistics.behind();
            self.take(line, packet, received, sink);
            let lane = &mut self.lines[line.number()];
            // Where it was the end of all, what was set aside has been settled.
            if kept == Keep::Kept && !lane.quarantine.is_empty() {
                lane.quarantine.count(lane.statistics.behind() - before);
            }
        } else if self.settings.expire_on_packet {
            self.expire(received, sink);
        }
    }

    /// What was set aside on a line is of the present numbering; or, soon after a restart, of the one before.
    fn let_go(&mut self, line: Line, sink: &mut impl Sink) {
        let quarantine = std::mem::take(&mut self.lines[line.number()].quarantine);
        let old = self.settling && quarantine.contradicts();
        self.lines[line.number()].statistics.strays +=
            if old { quarantine.dropped() } else { quarantine.contradictions() };
        if let Some(session) = self.session.filter(|_| !old) {
            for (received, packet) in quarantine.packets(session, false) {
                self.take(line, &packet, received, sink);
            }
        }
        self.lines[line.number()].quarantine = quarantine.emptied();
    }

    /// Nothing more comes in the present session: what was set aside is of another numbering, if it is likely, or of this one.
    pub(super) fn settle_aside(&mut self, sink: &mut impl Sink) {
        let weightiest = |lanes: &[Lane]| {
            let some = lanes.iter().enumerate().filter(|(_, lane)| !lane.quarantine.is_empty());
            some.max_by_key(|(_, lane)| lane.quarantine.weight()).map(|(number, _)| number)
        };
        // Each round empties what one line has set aside.
        while let Some(number) = weightiest(&self.lines) {
            let (Some(line), Some(session)) = (Line::new(number), self.session) else { return };
            let quarantine = &self.lines[number].quarantine;
            match quarantine.latest() {
                Some(received) if quarantine.is_likely() => self.start_again(line, session, received, sink),
                _ => self.let_go(line, sink),
            }
        }
    }

    /// Sequences begin again within the session, as `line` says. Lines that have not shown that they did so too are still in
    /// what was.
    fn start_again(&mut self, line: Line, session: Session, received: Nanos, sink: &mut impl Sink) {
        let asides = self.lines.each_mut().map(|lane| std::mem::take(&mut lane.quarantine));
        self.flush_window(sink);
        let ends = self.lines.each_ref().map(|lane| if lane.heard { lane.seen.end() } else { 0 });
        self.before_end = self.known_end;
        std::mem::swap(&mut self.arrivals, &mut self.before);
        self.begin(session, 1, received, sink);
        self.statistics.restarts += 1;
        (self.renumbered, self.settling) = (true, true);
        let says_so = |number: usize| number == line.number() || asides[number].contradicts();
        for (number, (lane, end)) in self.lines.iter_mut().zip(ends).enumerate() {
            let begun = !lane.doubt.is_empty() || (says_so(number) && !asides[number].is_empty());
            lane.old_end = (!begun).then_some(end);
        }
        self.take_doubted(sink);
        let believed = asides.iter().enumerate().filter(|(number, _)| says_so(*number));
        let mut packets: Vec<_> = believed
            .flat_map(|(number, quarantine)| {
                quarantine.packets(session, true).map(move |(received, packet)| (received, number, packet))
            })
            .collect();
        packets.sort_by_key(|(received, ..)| *received);
        // However far it has got, more than one packet has said so.
        self.far = packets.first().map(|(.., packet)| packet.kind.sequences().0);
        for (number, quarantine) in asides.iter().enumerate().filter(|(number, _)| says_so(*number)) {
            // All of it is counted once more.
            self.lines[number].statistics.take_back(quarantine.counted());
            self.statistics.late -= quarantine.counted().late;
        }
        for (received, number, packet) in packets {
            // Recovery's packets are never set aside, so this is one of the lines.
            let Some(line) = Line::new(number) else { return };
            self.take(line, &packet, received, sink);
        }
        for (lane, quarantine) in self.lines.iter_mut().zip(asides) {
            lane.quarantine = quarantine.emptied();
        }
    }
}
