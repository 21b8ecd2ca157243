//! Packets of one line that do not fit what is known, set aside until it shows what they are.

use tapeline_nanos::Nanos;

use super::arrivals::Likeness;
use super::statistics::Behind;
use crate::framing::{Kind, Packet, Session};

/// The most packets that are set aside on one line.
const PACKETS: usize = 32;

/// The most bytes of them, but for the last one's: two of the largest datagrams.
const BYTES: usize = 128 << 10;

/// What makes a numbering believed in. Two packets in a row that are not what had come under their numbers; or, where
/// nothing is known of what had come, eight that go on one from the other.
const BELIEVED: u32 = 8;

/// After so many packets of the old numbering it is not another one that has begun: more than a network reorders by.
const PATIENCE: u32 = 16;

/// Copies of what a line says of another numbering, in the order in which it came. It takes memory when it is first needed.
#[derive(Debug, Default)]
pub(super) struct Quarantine {
    packets: Vec<Kept>,
    blocks: Vec<u8>,
    /// Where the other numbering would go on.
    end: u64,
    /// How far ahead of that a packet was.
    told: u64,
    /// For the other numbering, since the line last went on in the old one.
    points: u32,
    /// Packets, those that said the same again among them.
    words: u32,
    /// Whether a packet was not what had come under its numbers.
    contradicts: bool,
    /// How often the line went on in the old numbering meanwhile.
    went_on: u32,
    /// How those of the messages were counted that were taken as some of the old numbering.
    counted: Behind,
}

/// What became of a packet that was to be set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// It is kept, or what it says is.
    Kept,
    /// It does not go on from what is kept.
    Dropped,
    /// There is no room for it.
    NoRoom,
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    kind: Kind<'static>,
    likeness: Likeness,
    received: Nanos,
    /// Whether it was taken as one of the old numbering too.
    taken: bool,
    at: usize,
    length: usize,
}

impl Quarantine {
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Where the other numbering would go on; `None` where there is none.
    pub(super) fn end(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.end)
    }

    /// Whether what was set aside is not what had come before, as far as that is known.
    pub(super) const fn contradicts(&self) -> bool {
        self.contradicts
    }

    /// Sets a packet aside, which may have been `taken` as one of the old numbering. What is unknown has to go on from what was
    /// set aside before, or takes its place.
    pub(super) fn keep(
        &mut self,
        packet: &Packet<'_>,
        likeness: Likeness,
        received: Nanos,
        taken: bool,
    ) -> Keep {
        let (from, to) = packet.kind.sequences();
        let goes_on = from == self.end;
        if !goes_on && !self.is_empty() {
            match likeness {
                Likeness::Other if self.contradicts => {}
                // Whoever repeats where the feed is means it, and whoever goes on from there.
                _ if from == to || self.contradicts => {
                    if from < self.end || std::mem::replace(&mut self.told, to) != from {
                        return Keep::Dropped;
                    }
                }
                _ => *self = std::mem::take(self).emptied(),
            }
        }
        let (kind, blocks) = packet.kind.apart();
        let again = self.packets.last().is_some_and(|last| from == to && last.kind == kind);
        if !again {
            if self.packets.len() == PACKETS || self.blocks.len() > BYTES {
                return Keep::NoRoom;
            }
            let (at, length) = (self.blocks.len(), blocks.len());
            self.blocks.extend_from_slice(blocks);
            self.packets.push(Kept { kind, likeness, received, taken, at, length });
        }
        self.points += match likeness {
            Likeness::Other => BELIEVED / 2,
            _ if self.contradicts && goes_on => BELIEVED / 4,
            // Heartbeats of the old numbering come late too, and have nothing in them to compare.
            _ => u32::from(from < to),
        };
        self.words += 1;
        self.contradicts |= likeness == Likeness::Other;
        self.end = if goes_on { to } else { self.end.max(to) };
        Keep::Kept
    }

    /// A packet that is kept was taken as one of the old numbering, and counted so.
    pub(super) fn count(&mut self, behind: Behind) {
        self.counted += behind;
    }

    /// How those of the messages that were taken were counted.
    pub(super) const fn counted(&self) -> Behind {
        self.counted
    }

    /// How much there is for it: what contradicts before what does not.
    pub(super) const fn weight(&self) -> (bool, u32) {
        (self.contradicts, self.points)
    }

    /// Another line says the same.
    pub(super) fn confirm(&mut self) {
        self.points = BELIEVED;
    }

    /// Whether another numbering is to be believed in, which so many points speak for on all lines.
    pub(super) const fn is_believed(&self, points: u32) -> bool {
        self.points >= BELIEVED || (self.contradicts && points >= BELIEVED)
    }

    /// Whether it is where nobody goes on in the old numbering any more: one packet may be late by ever so much.
    pub(super) const fn is_repeated(&self) -> bool {
        self.words > 1
    }

    /// Whether it is where nothing more comes: half as much is enough, if more than one packet says so.
    pub(super) const fn is_likely(&self) -> bool {
        self.points >= BELIEVED / 2 && self.is_repeated()
    }

    /// The line goes on in the old numbering; whether there is nothing to the other one.
    pub(super) fn goes_on(&mut self) -> bool {
        self.points = 0;
        self.went_on += 1;
        !self.contradicts || self.went_on >= PATIENCE
    }

    /// Whether a packet is here that was not what had come before, with these very blocks.
    pub(super) fn contradicts_as(&self, packet: &Packet<'_>) -> bool {
        let Kind::Data { first, messages } = packet.kind else { return false };
        self.packets.iter().any(|kept| {
            kept.likeness == Likeness::Other
                && kept.kind.sequences() == (first, messages.end())
                && self.blocks[kept.at..kept.at + kept.length] == *messages.blocks()
        })
    }

    /// What was set aside, as packets of `session`, with the times at which they came; `all` of it, or what was not taken.
    pub(super) fn packets(&self, session: Session, all: bool) -> impl Iterator<Item = (Nanos, Packet<'_>)> {
        self.packets.iter().filter(move |kept| all || !kept.taken).map(move |kept| {
            let kind = kept.kind.over(&self.blocks[kept.at..kept.at + kept.length]);
            (kept.received, Packet { session, kind, trailing: 0 })
        })
    }

    /// When the latest of it came.
    pub(super) fn latest(&self) -> Option<Nanos> {
        self.packets.last().map(|kept| kept.received)
    }

    /// How many packets there are that were not what had come under their numbers.
    pub(super) fn contradictions(&self) -> u64 {
        self.packets.iter().filter(|kept| kept.likeness == Likeness::Other).count() as u64
    }

    /// How many packets there are that contradicted or were not taken: what goes with them when they are let go.
    pub(super) fn dropped(&self) -> u64 {
        let dropped = |kept: &&Kept| kept.likeness == Likeness::Other || !kept.taken;
        self.packets.iter().filter(dropped).count() as u64
    }

    /// Nothing, in the same memory.
    pub(super) fn emptied(mut self) -> Self {
        self.packets.clear();
        self.blocks.clear();
        Self { packets: self.packets, blocks: self.blocks, ..Self::default() }
    }
}
