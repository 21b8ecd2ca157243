//! What the hub leaves for others to write down.

use std::fmt;

use tapeline_omm::role::Over;

use crate::SessionId;

/// Something that an operator may want to read later.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// A client has logged in.
    Login {
        /// Which session.
        session: SessionId,
        /// As whom; bytes that are not UTF-8 are replaced.
        user: String,
    },
    /// A session is over.
    Gone {
        /// Which session.
        session: SessionId,
        /// Who it was; empty where nobody logged in.
        user: String,
        /// Why.
        end: End,
        /// What it did and got.
        counters: SessionCounters,
    },
}

/// Why a session is over.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// Its connection is.
    Connection(String),
    /// What was agreed on between the two roles.
    Role(Over),
    /// It did not take its updates, and as many wait for it as may.
    Slow(TooMuch),
    /// It has taken nothing for so many milliseconds.
    Stuck(u64),
    /// It sent as many messages that cannot be read as are put up with.
    Malformed(u64),
    /// The hub stops.
    Stopped,
}

impl End {
    /// Whether the client is told why, and has a moment to take that.
    pub(crate) const fn is_told(&self) -> bool {
        matches!(self, Self::Slow(_) | Self::Stuck(_) | Self::Malformed(_) | Self::Role(Over::Refused))
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(why) => f.write_str(why),
            Self::Role(over) => over.fmt(f),
            Self::Slow(limit) => write!(f, "too slow: {limit}"),
            Self::Stuck(ms) => write!(f, "too slow: it has taken nothing for {ms} ms"),
            Self::Malformed(count) => write!(f, "{count} of its messages could not be read"),
            Self::Stopped => f.write_str("the hub stops"),
        }
    }
}

/// Which limit a client that is too slow went over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TooMuch {
    /// So many bytes may wait for it.
    Bytes(usize),
    /// So many messages may.
    Messages(usize),
    /// None may for longer than so many milliseconds.
    Age(u64),
}

impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "more than {bytes} bytes of updates wait for it"),
            Self::Messages(count) => write!(f, "more than {count} updates wait for it"),
            Self::Age(ms) => write!(f, "updates have waited for it for more than {ms} ms"),
        }
    }
}

/// What a session did and got.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionCounters {
    /// Items that it asked for.
    pub requests: u64,
    /// Of them, those that were refused.
    pub refused: u64,
    /// Images that it was sent, parts included.
    pub refreshes: u64,
    /// Updates that it was sent, or that were put where they wait for room.
    pub updates: u64,
    /// Updates that it had no room for, and which are in a later image.
    pub conflated: u64,
    /// Of them, those that had to wait for room.
    pub queued: u64,
    /// Updates that were dropped, before or while they waited; a later image has them.
    pub dropped: u64,
    /// How often a stream was told that it missed some.
    pub gaps: u64,
    /// Posts and generic messages, which the hub does not take.
    pub declined: u64,
    /// Messages that could not be read.
    pub malformed: u64,
}

impl SessionCounters {
    pub(crate) const fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.refused += other.refused;
        self.refreshes += other.refreshes;
        self.updates += other.updates;
        self.conflated += other.conflated;
        self.queued += other.queued;
        self.dropped += other.dropped;
        self.gaps += other.gaps;
        self.declined += other.declined;
        self.malformed += other.malformed;
    }
}

/// What the hub did, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Ticks taken from the ring.
    pub ticks: u64,
    /// Ticks missing in the plant's sequence: none, unless the hub lost its place on the ring.
    pub missing: u64,
    /// Ticks that are for no item.
    pub about_no_item: u64,
    /// Ticks that no client can be served from: malformed, or of an item beyond the limit.
    pub unusable: u64,
    /// Ticks of a domain that is not served: orders.
    pub not_served: u64,
    /// Sessions that were opened.
    pub sessions: u64,
    /// Sessions that the hub ended because they were too slow.
    pub cut: u64,
    /// Of them, those that took nothing at all.
    pub stuck: u64,
    /// Of the sessions that are over.
    pub past: SessionCounters,
}
