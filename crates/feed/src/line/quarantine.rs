//! Packets of one line that do not fit the earlier messages, held until it is clear which are right.

use tapeline_nanos::Nanos;

use super::arrivals::Likeness;
use super::statistics::Behind;
use crate::framing::{DatagramKind, Packet, Session};

/// Maximum number of quarantined packets of one line.
const PACKETS: usize = 32;

/// Maximum bytes of those packets, without the last one: two of the largest datagrams.
const BYTES: usize = 128 << 10;

/// Points for which another numbering is accepted: two packets in a row that differ from the earlier messages of the same sequences; or, if those
/// are unknown, eight packets that continue one another.
const BELIEVED: u32 = 8;

/// Number of packets of the old numbering after which another one is ruled out: more than a network reorders by.
const PATIENCE: u32 = 16;

/// Copies of a line's packets of a possible other numbering, in the order of arrival. Memory is allocated on first use.
#[derive(Debug, Default)]
pub(super) struct Quarantine {
    packets: Vec<Kept>,
    blocks: Vec<u8>,
    /// The next sequence of the other numbering.
    end: u64,
    /// The end of the last packet that was ahead of that.
    told: u64,
    /// Points for the other numbering since the line last continued the old one.
    points: u32,
    /// Number of packets, repetitions included.
    words: u32,
    /// `true` if a packet differed from the earlier messages of its sequences.
    contradicts: bool,
    /// Number of times that the line continued the old numbering meanwhile.
    went_on: u32,
    /// The counts of those messages that were handled as messages of the old numbering.
    counted: Behind,
}

/// The result of quarantining a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// The packet is stored, or repeats the stored one.
    Kept,
    /// The packet does not continue the stored ones.
    Dropped,
    /// There is no capacity for the packet.
    NoRoom,
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    kind: DatagramKind<'static>,
    likeness: Likeness,
    received: Nanos,
    /// `true` if the packet was also handled as one of the old numbering.
    taken: bool,
    at: usize,
    length: usize,
}

impl Quarantine {
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Returns the next sequence of the other numbering; `None` if the quarantine is empty.
    pub(super) fn end(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.end)
    }

    /// Returns `true` if a quarantined packet differs from the earlier messages.
    pub(super) const fn contradicts(&self) -> bool {
        self.contradicts
    }

    /// Stores a packet; `taken` if it was also handled as one of the old numbering. A packet that cannot be compared has to continue the stored
    /// ones, or it replaces them.
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
                // A packet that repeats or continues the last one ahead is evidence.
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
            // Late heartbeats of the old numbering contain nothing to compare.
            _ => u32::from(from < to),
        };
        self.words += 1;
        self.contradicts |= likeness == Likeness::Other;
        self.end = if goes_on { to } else { self.end.max(to) };
        Keep::Kept
    }

    /// Adds the counts of a stored packet that was handled as one of the old numbering.
    pub(super) fn count(&mut self, behind: Behind) {
        self.counted += behind;
    }

    /// Returns the counts of the handled messages.
    pub(super) const fn counted(&self) -> Behind {
        self.counted
    }

    /// Returns the weight of the evidence: packets that differ before others.
    pub(super) const fn weight(&self) -> (bool, u32) {
        (self.contradicts, self.points)
    }

    /// Records that another line has the same packet.
    pub(super) fn confirm(&mut self) {
        self.points = BELIEVED;
    }

    /// Returns `true` if the other numbering is accepted; `points` are those of all lines.
    pub(super) const fn is_believed(&self, points: u32) -> bool {
        self.points >= BELIEVED || (self.contradicts && points >= BELIEVED)
    }

    /// Returns `true` if several packets agree, as required when no line continues the old numbering: one packet may be late by any time.
    pub(super) const fn is_repeated(&self) -> bool {
        self.words > 1
    }

    /// Returns `true` if the other numbering is likely, at the end of all input: half of the points are enough, from more than one packet.
    pub(super) const fn is_likely(&self) -> bool {
        self.points >= BELIEVED / 2 && self.is_repeated()
    }

    /// Records that the line continues the old numbering. Returns `true` if the other one is ruled out.
    pub(super) fn goes_on(&mut self) -> bool {
        self.points = 0;
        self.went_on += 1;
        !self.contradicts || self.went_on >= PATIENCE
    }

    /// Returns `true` if a stored packet that differed from the earlier messages has the same blocks as `packet`.
    pub(super) fn contradicts_as(&self, packet: &Packet<'_>) -> bool {
        let DatagramKind::Data { first, messages } = packet.kind else { return false };
        self.packets.iter().any(|kept| {
            kept.likeness == Likeness::Other
                && kept.kind.sequences() == (first, messages.end())
                && self.blocks[kept.at..kept.at + kept.length] == *messages.blocks()
        })
    }

    /// Returns the packets of `session`, with their receive times; `all` of them, or only those not handled yet.
    pub(super) fn packets(&self, session: Session, all: bool) -> impl Iterator<Item = (Nanos, Packet<'_>)> {
        self.packets.iter().filter(move |kept| all || !kept.taken).map(move |kept| {
            let kind = kept.kind.over(&self.blocks[kept.at..kept.at + kept.length]);
            (kept.received, Packet { session, kind, trailing: 0 })
        })
    }

    /// Returns the receive time of the latest packet.
    pub(super) fn latest(&self) -> Option<Nanos> {
        self.packets.last().map(|kept| kept.received)
    }

    /// Returns the number of packets that differed from the earlier messages of their sequences.
    pub(super) fn contradictions(&self) -> u64 {
        self.packets.iter().filter(|kept| kept.likeness == Likeness::Other).count() as u64
    }

    /// Returns the number of packets that differed or were not handled, which are lost when the quarantine is dropped.
    pub(super) fn dropped(&self) -> u64 {
        let dropped = |kept: &&Kept| kept.likeness == Likeness::Other || !kept.taken;
        self.packets.iter().filter(dropped).count() as u64
    }

    /// Returns an empty quarantine with the same memory.
    pub(super) fn emptied(mut self) -> Self {
        self.packets.clear();
        self.blocks.clear();
        Self { packets: self.packets, blocks: self.blocks, ..Self::default() }
    }
}
