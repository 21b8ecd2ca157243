//! Missing messages and their recovery.

mod given_up;

use std::ops::RangeInclusive;

use tapeline_nanos::Nanos;

pub(super) use given_up::GivenUp;

use super::Arbiter;
use super::ending::End;
use crate::framing::{DatagramKind, Packet};
use crate::line::arrivals::{Arrivals, Likeness};
use crate::line::seen::SPAN;
use crate::line::{Line, Sink};

/// Maximum number of listed holes.
const MAX_HOLES: usize = 1_024;

impl Arbiter {
    /// Returns the open holes: sequences that are known to exist, have arrived on no line, and are not given up; the oldest 1,024, in ascending
    /// order. Costs a test of each slot of the window between the first hole and the last held message.
    ///
    /// Pass recovered packets to [`datagram`](Self::datagram) or [`packet`](Self::packet) as [`Line::RECOVERY`]; give up messages that recovery
    /// cannot deliver.
    pub fn missing(&self) -> impl Iterator<Item = RangeInclusive<u64>> + '_ {
        let holes = self.held.holes(self.next, self.known_end);
        holes.flat_map(|hole| self.given_up.less(hole)).take(MAX_HOLES)
    }

    /// Returns the ranges to request from recovery: all [`missing`](Self::missing) ones. After a sequence reset, as long as the server's numbering
    /// is unknown, a known message comes first, to find it out; that costs a test of at most 8,192 entries.
    pub fn wanted(&self) -> impl Iterator<Item = RangeInclusive<u64>> + '_ {
        let mut missing = self.missing().peekable();
        let known = missing.peek().and_then(|_| self.shows_numbering());
        known.map(|known| known..=known).into_iter().chain(missing)
    }

    /// Returns the latest message that distinguishes the present numbering from the previous one; `None` if the server's numbering is known.
    fn shows_numbering(&self) -> Option<u64> {
        if !self.renumbered || self.is_renumbered_at_recovery {
            return None;
        }
        self.arrivals
            .latest(self.start..self.next, |sequence, print| self.before.print(sequence) != Some(print))
    }

    /// Forgets the numbering of the recovery server, because the next recovered packets come from another server.
    pub const fn other_server(&mut self) {
        self.is_renumbered_at_recovery = false;
    }

    /// Returns the sequence to which every line has gone on: a missing message before it was lost on all of them, unless datagrams have overtaken
    /// each other. A line that was silent for [`session_hold_ns`](crate::line::ArbiterSettings::session_hold_ns) while another one was heard does
    /// not count. 0 without lines, and after a sequence reset as long as a late line, or the server of recovery, may have the previous numbering.
    #[must_use]
    pub fn passed_by_all(&self) -> u64 {
        if self.renumbered && !self.is_renumbered_at_recovery {
            return 0;
        }
        let lives = |last: Nanos| last + self.settings.session_hold_ns >= self.heard;
        let lanes = self.lines[..Line::RECOVERY.number()].iter();
        let living = lanes.filter(|lane| lane.statistics.last.is_some_and(lives));
        living.map(|lane| lane.seen.end()).min().unwrap_or(0)
    }

    /// Returns `true` if every line with packets of this session has announced its end: no line will deliver the missing messages.
    #[must_use]
    pub fn is_left_to_recovery(&self) -> bool {
        matches!(self.end, End::Announced(_)) && self.lines.iter().all(|lane| lane.ended || !lane.heard)
    }

    /// Gives up messages that recovery will not deliver. The missing ones among them are declared a gap as soon as no older message is waited for;
    /// then the messages after them are delivered.
    ///
    /// At most 1,024 ranges are stored; messages of further ranges are declared when they expire.
    pub fn give_up(&mut self, messages: RangeInclusive<u64>, now: Nanos, sink: &mut impl Sink) {
        self.given_up.add(messages);
        let before = self.next;
        self.declare_given_up(sink);
        self.settle(before, now);
        self.finish(sink);
    }

    /// Declares given-up messages for as long as the next one is given up.
    #[cold]
    pub(super) fn declare_given_up(&mut self, sink: &mut impl Sink) {
        self.given_up.forget_before(self.next);
        // Each round advances `next`.
        while self.next < self.known_end
            && let Some(last) = self.given_up.last_of(self.next)
        {
            let until = self.held.first().map_or(self.known_end, |(first, _)| first);
            self.declare(until.min(last.saturating_add(1)), sink);
            self.drain(sink);
            self.given_up.forget_before(self.next);
        }
    }

    /// Returns `true` if a recovered packet may belong to the previous numbering, which a server may still have: a reported gap is better than
    /// wrong messages. Comparable packets show the server's numbering.
    fn may_be_of_before(&mut self, packet: &Packet<'_>) -> bool {
        if !self.renumbered {
            return false;
        }
        let shown = match (self.arrivals.likeness(packet), self.before.likeness(packet)) {
            // Messages that are equal in both numberings prove nothing.
            (Likeness::Same, Likeness::Same) => None,
            (Likeness::Same, _) | (Likeness::Unknown, Likeness::Other) => Some(true),
            (Likeness::Other, _) | (_, Likeness::Same) => Some(false),
            // The previous numbering was shorter, even if a part of its end was lost.
            _ => (packet.kind.sequences().0 > self.before_end.saturating_add(SPAN)).then_some(true),
        };
        self.is_renumbered_at_recovery = shown.unwrap_or(self.is_renumbered_at_recovery);
        !self.is_renumbered_at_recovery
    }

    /// Handles a recovered packet. It fills holes; it does not affect which messages exist or which lines are alive.
    pub(super) fn recovered(&mut self, packet: &Packet<'_>, received: Nanos, sink: &mut impl Sink) {
        let DatagramKind::Data { first, messages } = packet.kind else { return };
        if self.may_be_of_before(packet) {
            self.lines[Line::RECOVERY.number()].statistics.stale_session += 1;
            return;
        }
        let before = self.next;
        let to = messages.end().min(self.known_end);
        let statistics = &mut self.lines[Line::RECOVERY.number()].statistics;
        statistics.last = Some(received);
        statistics.messages += messages.end() - first;
        // A message that no line has announced cannot be missing.
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
