//! What must hold, and what did not.

use std::fmt;

/// What holds in every world. The page docs/simulation.md says what each means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Invariant {
    /// The plant's ticks are numbered without a gap and can be read.
    OneSequence,
    /// A client's image is what the plant's item was after some tick, not older than what the client had.
    Image,
    /// Each update is the next tick, or what the client's view has of it.
    NextTick,
    /// What is said of data's state is what the plant said of its channel.
    State,
    /// What one end sends, the other one receives: all of it or, where the connection broke, the beginning of it.
    Transport,
    /// Whatever is said can be said in JSON, and read back.
    Text,
    /// Queues and images keep their limits.
    Limits,
    /// Sessions end for a reason, and no client that behaves is made to go.
    Ends,
    /// What is counted is what happened.
    Counters,
    /// When nothing is wrong any more, every client is connected and has what the plant has.
    Liveness,
    /// The plant's books are the exchange's, unless the plant says that they may not be.
    Books,
    /// A post has one receipt, at most once a source, and nobody else hears of it.
    Posts,
    /// A stream that is one client's alone has what its source said on it, in order.
    Own,
    /// No client is sent anything of an item that it may not see.
    Access,
    /// What was said to be kept is in the journal after a crash, as it was published, without a hole; what outlets gave out too.
    Kept,
    /// The plant goes on, whatever comes.
    Plant,
}

/// An invariant that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Which.
    pub invariant: Invariant,
    /// When, in ns since the world began.
    pub at_ns: u64,
    /// What was wrong.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, micros) = (self.at_ns / 1_000_000_000, self.at_ns % 1_000_000_000 / 1_000);
        write!(f, "{:?} broke at {seconds}.{micros:06} s: {}", self.invariant, self.what)
    }
}

impl std::error::Error for Broken {}

/// What is wrong, before it is known when.
pub(crate) type Wrong = (Invariant, String);
