//! Sequence resets within a session.
//!
//! No packet states a sequence reset: it looks like a duplicate of earlier messages. So if a line does not simply continue, its packets are
//! compared with the earlier messages. Packets that differ are quarantined. When the evidence suffices, they are handled from the first one on.
//! Packets that turn out to be old are handled as old.

use tapeline_nanos::Nanos;

use super::ending::End;
use super::rollover::as_i64;
use super::{Arbiter, Lane};
use crate::framing::{DatagramKind, Packet, Session};
use crate::line::arrivals::{Arrivals, Likeness};
use crate::line::quarantine::Keep;
use crate::line::{Line, Restart, Sink};

impl Arbiter {
    /// Examines a packet of the present session that does not simply continue its line. Returns `true` if it is to be handled now.
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
            // A line with a packet of another session and then new messages of this one has not changed its session.
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

    /// Returns `true` if a packet belongs to the previous numbering: lines lag, and packets arrive late. Comparable packets are recognised without
    /// a time limit, others for as long as a session counts as alive.
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
            // The line has not shown its reset.
            (.., Some(old_end)) if from >= old_end || !compared => {
                !(from < old_end && (from == 1 || to <= self.known_end))
            }
            (.., Some(_)) if from == 1 || to <= self.known_end => false,
            (.., None) if !compared || from <= lane.seen.end() || from <= self.known_end => false,
            // It continues the previous numbering, possibly with its end.
            (.., None) if from == self.before_end => {
                self.before_end = to;
                true
            }
            (.., None) if matches!(packet.kind, DatagramKind::EndOfSession { .. }) => false,
            // Far ahead, and not comparable: three packets in a row have to agree.
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

    /// Handles sequence 1 on a line that was beyond it. If the line continues from there, it is a reset, with any contents. `None` for any other
    /// packet.
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
            // If both readings fit, the line sent the beginning twice and continues: no reset.
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

    /// Returns `true` if a packet fits the earlier messages; quarantines it if not.
    fn fits(&mut self, line: Line, packet: &Packet<'_>, received: Nanos, sink: &mut impl Sink) -> bool {
        let (from, to) = packet.kind.sequences();
        let likeness = self.arrivals.likeness(packet);
        let fills = to > self.known_end || self.held.holes(self.next, to).any(|hole| *hole.end() >= from);
        let lane = &mut self.lines[line.number()];
        let end = lane.seen.end();
        lane.proven = match likeness {
            Likeness::Same => true,
            Likeness::Other => false,
            // New sequences need no proof; a jump to old sequences does.
            Likeness::Unknown => from >= self.known_end || (lane.proven && from <= end),
        };
        let likeness = match likeness {
            // After a reset the same messages may be sent again.
            Likeness::Same if self.settings.restart == Restart::Reset => Likeness::Unknown,
            likeness => likeness,
        };
        let other = match likeness {
            // If the packet of the line's last jump was not part of its flow, the flow continues before it.
            _ if lane.heard && from == lane.resumes => false,
            Likeness::Same => false,
            Likeness::Other => true,
            // It continues the quarantined packets and not the line. Or the line goes back to passed sequences, and fills no hole.
            Likeness::Unknown => {
                (lane.quarantine.end() == Some(from) && from != end)
                    || (lane.heard && from < lane.resumes && !fills)
            }
        };
        if other {
            self.set_aside(line, packet, likeness, received, sink);
            return false;
        }
        // Ahead of both, the packet may belong to either numbering: then the quarantine is released only if it contradicts nothing.
        let ahead = from > end && lane.quarantine.contradicts();
        if !lane.quarantine.is_empty() && from >= end && !ahead && lane.quarantine.goes_on() {
            self.let_go(line, sink);
        }
        true
    }

    /// Quarantines a packet. If the evidence for another numbering suffices now, that numbering begins with the quarantined packets. Otherwise the
    /// packet may be handled now as well: a completely passed one is only counted, and one that contradicts nothing may fill a hole.
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
                        // The same packet again proves nothing.
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
        // After an announced end, silence is no evidence.
        let alone = silent && quarantine.is_repeated() && (quarantine.contradicts() || self.end == End::Open);
        if quarantine.is_believed(points) || alone {
            self.start_again(line, packet.session, received, sink);
            return;
        }
        if passed {
            let before = self.lines[line.number()].statistics.behind();
            self.take(line, packet, received, sink);
            let lane = &mut self.lines[line.number()];
            // If the packet ended everything, the quarantine has been settled.
            if kept == Keep::Kept && !lane.quarantine.is_empty() {
                lane.quarantine.count(lane.statistics.behind() - before);
            }
        } else if self.settings.expire_on_packet {
            self.expire(received, sink);
        }
    }

    /// Releases a line's quarantine: its packets belong to the present numbering or, soon after a reset, to the previous one.
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

    /// Settles all quarantines at the end of the present session: a likely one becomes another numbering, any other belongs to this one.
    pub(super) fn settle_aside(&mut self, sink: &mut impl Sink) {
        let weightiest = |lanes: &[Lane]| {
            let some = lanes.iter().enumerate().filter(|(_, lane)| !lane.quarantine.is_empty());
            some.max_by_key(|(_, lane)| lane.quarantine.weight()).map(|(number, _)| number)
        };
        // Each round empties the quarantine of one line.
        while let Some(number) = weightiest(&self.lines) {
            let (Some(line), Some(session)) = (Line::new(number), self.session) else { return };
            let quarantine = &self.lines[number].quarantine;
            match quarantine.latest() {
                Some(received) if quarantine.is_likely() => self.start_again(line, session, received, sink),
                _ => self.let_go(line, sink),
            }
        }
    }

    /// Resets the sequences within the session, on the evidence of `line`. Lines without such evidence remain in the previous numbering.
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
        // No maximum jump applies: more than one packet has confirmed this sequence.
        self.far = packets.first().map(|(.., packet)| packet.kind.sequences().0);
        for (number, quarantine) in asides.iter().enumerate().filter(|(number, _)| says_so(*number)) {
            // All its messages are counted again.
            self.lines[number].statistics.take_back(quarantine.counted());
            self.statistics.late -= quarantine.counted().late;
        }
        for (received, number, packet) in packets {
            // Packets of recovery are never quarantined, so this is one of the lines.
            let Some(line) = Line::new(number) else { return };
            self.take(line, &packet, received, sink);
        }
        for (lane, quarantine) in self.lines.iter_mut().zip(asides) {
            lane.quarantine = quarantine.emptied();
        }
    }
}
