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
}

/// The last word of a note identifies its layout, so that the ring of another program is not misread.
const LAYOUT: u64 = u64::from_le_bytes(*b"plant-02");

/// The bits of a word that count drops; the state is in the bits above.
const DROPS: u64 = (1 << 56) - 1;

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
        let drops = self.kernel_drops.min(DROPS);
        [a, b, c, d, self.messages, self.missing, drops | (self.state as u64) << DROPS.count_ones(), LAYOUT]
    }

    /// Reads a note; `None` if the ring's publisher is not a plant or has not written a note yet.
    #[must_use]
    pub fn from_words(words: [u64; 8]) -> Option<Self> {
        let [a, b, c, d, messages, missing, drops, layout] = words;
        if layout != LAYOUT {
            return None;
        }
        Some(Self {
            calibration: Calibration::from_words([a, b, c, d])?,
            messages,
            missing,
            kernel_drops: drops & DROPS,
            // Lossless: eight bits are left.
            state: State::from_number((drops >> DROPS.count_ones()) as u8)?,
        })
    }
}
