//! The plant's information about itself in the ring's note: its clock and its losses.

use tapeline_measure::Calibration;

use crate::State;

/// The plant's note: rewritten about once a second, read by any subscriber.
#[derive(Clone, Copy, Debug)]
pub struct Note {
    /// The clock of the time stamps: a reader on the same host that uses this clock compares without error.
    pub calibration: Calibration,
    /// Feed messages so far, each counted once across lines.
    pub messages: u64,
    /// Feed messages that were lost on all lines.
    pub missing: u64,
    /// Datagrams that the kernel dropped because the socket's buffer was full.
    pub kernel_drops: u64,
    /// The state of the feed in the worst state: live only if all are live.
    pub state: State,
    /// The clock of the time stamps in ticks.
    pub stamped_by: StampedBy,
}

/// The clock by which the ticks of a ring are stamped. A plant below a [bridge](crate::bridge) publishes ticks as the plant above has stamped them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StampedBy {
    /// The clock of this plant: times of this host can be compared with stamps.
    #[default]
    ThisPlant,
    /// The clock of the plant above, and how far it is known to differ from this plant's; `None` while that is unknown: then times of this host
    /// say nothing about stamps.
    PlantAbove(Option<ClockDifference>),
}

/// How far another clock differs from this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockDifference {
    /// The other clock less this one, in ns: negative if the other is behind.
    pub ahead_ns: i64,
    /// The bound on the error of `ahead_ns`, in ns.
    pub bound_ns: u32,
}

impl StampedBy {
    /// Returns what to add to the time from a stamp to a reading of this host's clock; `None` if the two cannot be compared.
    #[inline]
    #[must_use]
    pub fn correction_ns(self) -> Option<i64> {
        match self {
            Self::ThisPlant => Some(0),
            Self::PlantAbove(difference) => difference.map(|difference| difference.ahead_ns),
        }
    }
}

/// Half of the last word of a note identifies its layout, so that the ring of another program is not misread.
const LAYOUT: u32 = u32::from_le_bytes(*b"pla3");

/// In place of a bound: the difference is unknown. 0 stands for this plant's own clock.
const UNKNOWN: u32 = u32::MAX;

/// The most losses and drops that a note states.
const MOST_MISSING: u64 = (1 << 32) - 1;
const MOST_DROPS: u64 = (1 << 24) - 1;

impl Note {
    /// Returns the worst of several states; stale is worse than recovering.
    #[must_use]
    pub fn worst(states: impl IntoIterator<Item = State>) -> State {
        let badness = |state: &State| match state {
            State::Live => 0,
            State::Recovering => 1,
            State::Initial => 2,
            State::Stale => 3,
        };
        states.into_iter().max_by_key(badness).unwrap_or_default()
    }

    /// Returns the note in the form of the ring.
    #[must_use]
    pub fn to_words(&self) -> [u64; 8] {
        let [a, b, c, d] = self.calibration.to_words();
        let (missing, drops) = (self.missing.min(MOST_MISSING), self.kernel_drops.min(MOST_DROPS));
        let losses = missing | drops << 32 | (self.state as u64) << 56;
        let (ahead_ns, bound) = match self.stamped_by {
            StampedBy::ThisPlant => (0, 0),
            StampedBy::PlantAbove(None) => (0, UNKNOWN),
            // A difference is never exact.
            StampedBy::PlantAbove(Some(known)) => (known.ahead_ns, known.bound_ns.clamp(1, UNKNOWN - 1)),
        };
        let last = u64::from(LAYOUT) | u64::from(bound) << 32;
        [a, b, c, d, self.messages, losses, ahead_ns.cast_unsigned(), last]
    }

    /// Reads a note; `None` if the ring's publisher is not a plant or has not written a note yet.
    #[must_use]
    pub fn from_words(words: [u64; 8]) -> Option<Self> {
        let [a, b, c, d, messages, losses, ahead_ns, last] = words;
        // Lossless, here and below: the other bits are those above.
        if last as u32 != LAYOUT {
            return None;
        }
        Some(Self {
            calibration: Calibration::from_words([a, b, c, d])?,
            messages,
            missing: losses & MOST_MISSING,
            kernel_drops: losses >> 32 & MOST_DROPS,
            state: State::from_number((losses >> 56) as u8)?,
            stamped_by: match (last >> 32) as u32 {
                0 => StampedBy::ThisPlant,
                UNKNOWN => StampedBy::PlantAbove(None),
                bound_ns => StampedBy::PlantAbove(Some(ClockDifference {
                    ahead_ns: ahead_ns.cast_signed(),
                    bound_ns,
                })),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let calibration = tapeline_measure::Clock::calibrate().calibration();
        let known = |ahead_ns, bound_ns| StampedBy::PlantAbove(Some(ClockDifference { ahead_ns, bound_ns }));
        for stamped_by in
            [StampedBy::ThisPlant, StampedBy::PlantAbove(None), known(-5, 1), known(i64::MAX, UNKNOWN - 1)]
        {
            let state = State::Stale;
            let note = Note {
                calibration,
                messages: u64::MAX,
                missing: 7,
                kernel_drops: 1 << 40,
                state,
                stamped_by,
            };
            let read = Note::from_words(note.to_words()).unwrap();
            assert_eq!((read.messages, read.missing, read.kernel_drops), (u64::MAX, 7, MOST_DROPS));
            assert_eq!((read.state, read.stamped_by), (state, stamped_by));
        }
        let note = Note {
            calibration,
            messages: 0,
            missing: 1 << 40,
            kernel_drops: 0,
            state: State::Live,
            stamped_by: known(0, 0),
        };
        let read = Note::from_words(note.to_words()).unwrap();
        assert_eq!((read.missing, read.kernel_drops, read.stamped_by), (MOST_MISSING, 0, known(0, 1)));
        assert!(Note::from_words([0; 8]).is_none() && Note::from_words([u64::MAX; 8]).is_none());
    }
}
