//! The invariants, and their violations.

use std::fmt;

/// An invariant of every world. The page docs/simulation.md explains each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Invariant {
    /// The plant's ticks are numbered without a gap and can be read.
    OneSequence,
    /// A client's image is what the plant's item was after some tick, not older than what the client had.
    Image,
    /// Each update is the next tick, or the part of it in the client's view.
    NextTick,
    /// The data state of an item is the one that the plant published for its channel.
    State,
    /// The other end receives what one end sends: all of it or, if the connection broke, the beginning of it.
    Transport,
    /// Every message can be converted to JSON and back.
    Text,
    /// Queues and images stay within their limits.
    Limits,
    /// Sessions end for a reason, and no well-behaved client is disconnected.
    Ends,
    /// The counters match the events.
    Counters,
    /// When all faults are over, every client is connected and has the plant's data.
    Liveness,
    /// The plant's books are the exchange's, unless the plant reports that they may differ.
    Books,
    /// A post has one receipt, which goes to its sender, and reaches each source at most once.
    Posts,
    /// A private stream has its source's messages in order.
    Own,
    /// No client receives data of an item that it may not see.
    Access,
    /// Ticks reported as durable are in the journal after a crash, as published and without a gap; so are ticks
    /// that outlets gave out.
    Kept,
    /// The plant continues on any input.
    Plant,
}

/// An invariant that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The invariant.
    pub invariant: Invariant,
    /// Time in ns since the world began.
    pub at_ns: u64,
    /// What was violated.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, micros) = (self.at_ns / 1_000_000_000, self.at_ns % 1_000_000_000 / 1_000);
        write!(f, "{:?} broke at {seconds}.{micros:06} s: {}", self.invariant, self.what)
    }
}

impl std::error::Error for Broken {}

/// A violation without its time.
pub(crate) type Wrong = (Invariant, String);

/// Returns the violation of an invariant, with this text.
macro_rules! broken {
    ($invariant:ident, $($what:tt)*) => {
        return Err(($crate::invariants::Invariant::$invariant, format!($($what)*)))
    };
}

pub(crate) use broken;
