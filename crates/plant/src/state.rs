//! The state of a channel: the completeness and currency of its data.
//!
//! ```text
//!             quiet        hole         whole
//! initial     initial      recovering   live
//! live        stale        recovering   live
//! recovering  stale        recovering   live
//! stale       stale        recovering   live
//! ```
//! Silent: no line has received anything, heartbeats included, for longer than the set time. Hole: messages are missing and recovery is in
//! progress. Whole: neither. A channel that has never received anything cannot become quiet.

use std::fmt;

/// The state of a channel's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum State {
    /// Nothing has been received yet.
    #[default]
    Initial = 0,
    /// All messages have been received, or have been declared lost.
    Live = 1,
    /// Messages are missing; later messages wait while the missing ones are requested. Data is suspect.
    Recovering = 2,
    /// No line receives anything. Data is suspect.
    Stale = 3,
}

/// The observed condition of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Seen {
    /// No line has received anything for too long.
    Silent = 0,
    /// Messages are missing, and requested.
    Hole = 1,
    /// Neither.
    Whole = 2,
}

/// The next state, by state and observed condition.
const NEXT: [[State; 3]; 4] = {
    use State::{Initial, Live, Recovering, Stale};
    [
        [Initial, Recovering, Live],
        [Stale, Recovering, Live],
        [Stale, Recovering, Live],
        [Stale, Recovering, Live],
    ]
};

impl State {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Initial, Self::Live, Self::Recovering, Self::Stale];

    /// Returns the state's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Live => "live",
            Self::Recovering => "recovering",
            Self::Stale => "stale",
        }
    }

    /// Returns the state of a number in ticks and notes.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Initial),
            1 => Some(Self::Live),
            2 => Some(Self::Recovering),
            3 => Some(Self::Stale),
            _ => None,
        }
    }

    /// Sets the state that follows from the observed condition; returns the previous state if it changed.
    #[must_use = "a change is told once"]
    pub(crate) fn see(&mut self, seen: Seen) -> Option<Self> {
        let before = *self;
        *self = NEXT[before as usize][seen as usize];
        (*self != before).then_some(before)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SEEN: [Seen; 3] = [Seen::Silent, Seen::Hole, Seen::Whole];

    #[test]
    fn the_table_is_the_one_of_the_page() {
        for state in State::ALL {
            for seen in SEEN {
                let mut next = state;
                let before = next.see(seen);
                let wanted = match (state, seen) {
                    (State::Initial, Seen::Silent) => State::Initial,
                    (_, Seen::Silent) => State::Stale,
                    (_, Seen::Hole) => State::Recovering,
                    (_, Seen::Whole) => State::Live,
                };
                assert_eq!(next, wanted, "{state} and {seen:?}");
                assert_eq!(before, (next != state).then_some(state));
            }
            assert_eq!(State::from_number(state as u8), Some(state));
        }
        assert_eq!(State::from_number(4), None);
    }

    proptest! {
        /// A reader of all changes knows the state, and gets no change twice.
        #[test]
        fn no_change_is_silent_and_none_is_told_twice(seen in prop::collection::vec(0_usize..3, 0..200)) {
            let mut state = State::Initial;
            let mut told = State::Initial;
            for seen in seen {
                if let Some(before) = state.see(SEEN[seen]) {
                    prop_assert_eq!(before, told);
                    prop_assert_ne!(state, told);
                    told = state;
                }
                prop_assert_eq!(state, told);
            }
        }
    }
}
