//! What the sources leave for others to do, to write down, and to count.

use std::fmt;

use super::LinkId;

/// What is wanted of whoever has the connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// A connection to an interactive provider: [`Sources::connected`](super::Sources::connected) when it is there,
    /// [`Sources::closed`](super::Sources::closed) when it fails.
    Connect {
        /// Which.
        link: LinkId,
        /// How many failed since the last that was logged in: of several hosts, take another each time.
        attempt: u32,
    },
    /// The connection is to be closed, once what was sent is gone. Nothing more is to be said of it.
    Disconnect {
        /// Which.
        link: LinkId,
    },
}

/// Something that an operator may want to read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// A provider publishes from now on, or the plant is logged in to one.
    LoggedIn {
        /// Who.
        source: String,
    },
    /// Somebody was not let in, or the plant was not.
    Denied {
        /// Who.
        source: String,
        /// Why.
        why: String,
    },
    /// No connection to a provider could be had, or none that the plant could log in on. Said once until it can.
    NotReached {
        /// Who.
        source: String,
        /// Why.
        why: String,
    },
    /// The connection of somebody is over.
    Gone {
        /// Who.
        source: String,
        /// Why.
        why: String,
    },
    /// A service is served by this source from now on; by nobody, if there is none.
    Serves {
        /// The service.
        service: String,
        /// Who.
        source: Option<String>,
    },
    /// A publisher that had its part in a service is gone, or has the service no longer.
    Left {
        /// The service.
        service: String,
        /// Who.
        source: String,
        /// Items that it served and another serves now.
        taken_over: usize,
        /// Items that it served and nobody serves now.
        unserved: usize,
    },
    /// A provider offers a service that it may not, or that the plant does not have.
    NotTaken {
        /// Who.
        source: String,
        /// What it calls the service.
        service: String,
    },
    /// A message is longer than the ring takes. Said once of each service.
    TooLong {
        /// The service.
        service: String,
        /// The item.
        item: String,
        /// Bytes of the tick.
        len: usize,
        /// Bytes that are taken at most.
        max: usize,
    },
    /// An item has no place: the plant is full, or its name is not text. Said once of each service.
    NoPlace {
        /// The service.
        service: String,
        /// The item.
        item: String,
        /// Why.
        why: &'static str,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LoggedIn { source } => write!(f, "{source} login"),
            Self::Denied { source, why } => write!(f, "{source} denied: {why}"),
            Self::NotReached { source, why } => {
                write!(f, "{source} cannot be reached: {why}; it is tried again and again")
            }
            Self::Gone { source, why } => write!(f, "{source} gone: {why}"),
            Self::Serves { service, source: Some(source) } => {
                write!(f, "service {service} is served by {source}")
            }
            Self::Serves { service, source: None } => {
                write!(f, "service {service} is down: no source has it")
            }
            Self::Left { service, source, taken_over, unserved } => write!(
                f,
                "of the items of service {service} that {source} served, others serve {taken_over} now, and nobody {unserved}"
            ),
            Self::NotTaken { source, service } => {
                write!(f, "{source} offers the service {service}, which is not taken from it")
            }
            Self::TooLong { service, item, len, max } => write!(
                f,
                "a message of {item}, service {service}, makes a tick of {len} bytes, and the ring takes {max}: \
                 the item is suspect"
            ),
            Self::NoPlace { service, item, why } => {
                write!(f, "the item {item} of service {service} is left out: {why}")
            }
        }
    }
}

/// What the sources did, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Images, or parts of them, that became ticks.
    pub refreshes: u64,
    /// Updates that did.
    pub updates: u64,
    /// Statuses that did; those of services too.
    pub statuses: u64,
    /// Messages that are longer than the ring takes: their items became suspect.
    pub too_long: u64,
    /// Messages of items that have no place: see [`Note::NoPlace`].
    pub no_place: u64,
    /// Items that were ended because nobody had them and their place was needed.
    pub ended: u64,
    /// Messages of services that are not taken, and of items without an image.
    pub passed_over: u64,
    /// Posts that were taken.
    pub posts: u64,
    /// Posts that were refused, or not answered.
    pub posts_refused: u64,
    /// Answers that were dropped because too many waited.
    pub answers_dropped: u64,
    /// Times that a service, or what one source of it had served, went over to another source.
    pub taken_over: u64,
}
