//! What is missing, and what is done about it.

mod given_up;

use std::ops::RangeInclusive;

use tapeline_nanos::Nanos;

pub(super) use given_up::GivenUp;

use super::Arbiter;
use super::ending::End;
use crate::framing::{Kind, Packet};
use crate::line::arrivals::{Arrivals, Likeness};
use crate::line::seen::SPAN;
use crate::line::{Line, Sink};

/// The most holes that are listed at once.
const MAX_HOLES: usize = 1_024;

impl Arbiter {
    /// The holes that are open: sequences that are known to exist, have come on no line, and are not given up. Oldest
    /// first, the first 1,024 of them. Costs a look at each place of the window between the first hole and the last message
    /// that is held.
    ///
    /// What recovery brings is taken through [`datagram`](Self::datagram) or [`packet`](Self::packet) as
    /// [`Line::RECOVERY`]; what it cannot bring is given up.
    pub fn missing(&self) -> impl Iterator<Item = RangeInclusive<u64>> + '_ {
        let holes = self.held.holes(self.next, self.known_end);
        holes.flat_map(|hole| self.given_up.less(hole)).take(MAX_HOLES)
    }

    /// What recovery is to be asked for: what is [`missing`](Self::missing); and before it, where numbers have begun again and
    /// nothing has shown which numbering the server has, a message that is known. Costs a look at 8,192 places at the most for
    /// that.
    pub fn wanted(&self) -> impl Iterator<Item = RangeInclusive<u64>> + '_ {
        let mut missing = self.missing().peekable();
        let known = missing.peek().and_then(|_| self.shows_numbering());
        known.map(|known| known..=known).into_iter().chain(missing)
    }

    /// The latest message that is known to tell the present numbering from the one before, if that is to be found out.
    fn shows_numbering(&self) -> Option<u64> {
        if !self.renumbered || self.is_renumbered_at_recovery {
            return None;
        }
        self.arrivals
            .latest(self.start..self.next, |sequence, print| self.before.print(sequence) != Some(print))
    }

    /// What recovery brings from here on comes of another server than before: what that one has shown of its numbering says
    /// nothing of this one's.
    pub const fn other_server(&mut self) {
        self.is_renumbered_at_recovery = false;
    }

    /// Whether every line that was heard of in this session has said that it is over: what is missing none of them will
    /// bring.
    #[must_use]
    pub fn is_left_to_recovery(&self) -> bool {
        matches!(self.end, End::Announced(_)) && self.lines.iter().all(|lane| lane.ended || !lane.heard)
    }

    /// Recovery will not bring these messages: those of them that are missing are declared as soon as nothing older is
    /// waited for, and what follows them is delivered.
    ///
    /// At most 1,024 ranges are remembered; what is beyond them is declared when its time is over.
    pub fn give_up(&mut self, messages: RangeInclusive<u64>, now: Nanos, sink: &mut impl Sink) {
        self.given_up.add(messages);
        let before = self.next;
        self.declare_given_up(sink);
        self.settle(before, now);
        self.finish(sink);
    }

    /// Declares what is next and given up, as often as it is.
    #[cold]
    pub(super) fn declare_given_up(&mut self, sink: &mut impl Sink) {
        self.given_up.forget_before(self.next);
        // Each round moves `next` on.
        while self.next < self.known_end
            && let Some(last) = self.given_up.last_of(self.next)
        {
            let until = self.held.first().map_or(self.known_end, |(first, _)| first);
            self.declare(until.min(last.saturating_add(1)), sink);
            self.drain(sink);
            self.given_up.forget_before(self.next);
        }
    }

    /// Whether recovery's packet may be of the numbering before, which a server may still have: then a gap that is reported
    /// is better than what belongs elsewhere. What can be compared says which numbering the server has.
    fn may_be_of_before(&mut self, packet: &Packet<'_>) -> bool {
        if !self.renumbered {
            return false;
        }
        let shown = match (self.arrivals.likeness(packet), self.before.likeness(packet)) {
            // What was said in both numberings alike shows nothing.
            (Likeness::Same, Likeness::Same) => None,
            (Likeness::Same, _) | (Likeness::Unknown, Likeness::Other) => Some(true),
            (Likeness::Other, _) | (_, Likeness::Same) => Some(false),
            // The one before did not get as far, whatever of its end was lost.
            _ => (packet.kind.sequences().0 > self.before_end.saturating_add(SPAN)).then_some(true),
        };
        self.is_renumbered_at_recovery = shown.unwrap_or(self.is_renumbered_at_recovery);
        !self.is_renumbered_at_recovery
    }

    /// Takes a packet that was asked for. It fills holes; it says nothing about what else exists or who is alive.
    pub(super) fn recovered(&mut self, packet: &Packet<'_>, received: Nanos, sink: &mut impl Sink) {
        let Kind::Data { first, messages } = packet.kind else { return };
        if self.may_be_of_before(packet) {
            self.lines[Line::RECOVERY.number()].statistics.stale_session += 1;
            return;
        }
        let before = self.next;
        let to = messages.end().min(self.known_end);
        let statistics = &mut self.lines[Line::RECOVERY.number()].statistics;
        statistics.last = Some(received);
        statistics.messages += messages.end() - first;
        // What nobody has announced cannot be missing.
        statistics.absurd += u64::from(to < messages.end());
        self.behind(Line::RECOVERY, first, to.min(self.next));
        for (sequence, bytes) in messages {
            if sequence >= to {
                break;
            }
            if sequence < before {
                continue;
            }
            let fills = self.place(sequence, bytes, received, sink);
            let statistics = &mut self.lines[Line::RECOVERY.number()].statistics;
            if fills {
                statistics.first += 1;
                self.statistics.recovered += 1;
                if Arrivals::is_beginning(sequence) {
                    self.arrivals.remember(sequence, bytes);
                }
            } else {
                statistics.duplicates += 1;
            }
        }
        self.moved(before, received, sink);
    }
}
