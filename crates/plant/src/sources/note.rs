//! The output of the sources: actions on connections, notes and counters.

use std::fmt;

use super::LinkId;

/// An action on a connection for the owner of the connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Connect to an interactive provider. Call [`Sources::connected`](super::Sources::connected) on success,
    /// [`Sources::closed`](super::Sources::closed) on failure.
    Connect {
        /// The link.
        link: LinkId,
        /// Failed attempts since the last login: with several hosts, take another one each time.
        attempt: u32,
    },
    /// Close the connection once its output is sent. Report nothing more about it.
    Disconnect(LinkId),
}

/// A note for the log of an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceNote {
    /// A provider has started to publish, or the plant has logged in to a provider.
    LoggedIn(String),
    /// The login of a source was refused, or the plant's login to a source.
    Denied {
        /// The source.
        source: String,
        /// The reason.
        why: String,
    },
    /// The plant cannot connect or log in to a provider. Reported once until it succeeds.
    NotReached {
        /// The source.
        source: String,
        /// The reason.
        why: String,
    },
    /// The connection of a source is over.
    Gone {
        /// The source.
        source: String,
        /// The reason.
        why: String,
    },
    /// A service has a new source; `None` if it has no source now.
    Serves {
        /// The service.
        service: String,
        /// The source.
        source: Option<String>,
    },
    /// A publisher of a service has disconnected, or no longer has the service.
    Left {
        /// The service.
        service: String,
        /// The publisher.
        source: String,
        /// Items of the publisher that another one serves now.
        taken_over: usize,
        /// Items of the publisher without a source now.
        unserved: usize,
        /// The names of a few of the latter.
        such_as: Vec<String>,
    },
    /// A provider offers a service that is not permitted, or that the plant does not have.
    NotTaken {
        /// The provider.
        source: String,
        /// The provider's name for the service.
        service: String,
    },
    /// A message exceeds the maximum of the ring. Reported once per service.
    TooLong {
        /// The service.
        service: String,
        /// The item.
        item: String,
        /// Bytes of the tick.
        len: usize,
        /// Maximum number of bytes.
        max: usize,
    },
    /// An item has no place: the plant is full, or the name is not UTF-8. Reported once per service.
    NoPlace {
        /// The service.
        service: String,
        /// The item.
        item: String,
        /// The reason.
        why: &'static str,
    },
}

impl fmt::Display for SourceNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LoggedIn(source) => write!(f, "{source} login"),
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
            Self::Left { service, source, taken_over, unserved, such_as } => {
                write!(
                    f,
                    "of the items of service {service} that {source} served, others serve {taken_over} now, and nobody {unserved}"
                )?;
                if such_as.is_empty() { Ok(()) } else { write!(f, ", such as {}", such_as.join(", ")) }
            }
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

/// The counters of the sources.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Images, or parts of images, that became ticks.
    pub refreshes: u64,
    /// Updates that became ticks.
    pub updates: u64,
    /// Statuses that became ticks; those of services too.
    pub statuses: u64,
    /// Messages that exceed the maximum of the ring: their items became suspect.
    pub too_long: u64,
    /// Messages of items without a place: see [`SourceNote::NoPlace`].
    pub no_place: u64,
    /// Items that were ended because they were unused and their place was needed.
    pub ended: u64,
    /// Messages of services that are not accepted, and of items without an image.
    pub passed_over: u64,
    /// Accepted posts.
    pub posts: u64,
    /// Posts that were refused, or not answered.
    pub posts_refused: u64,
    /// Answers dropped because too many were queued.
    pub answers_dropped: u64,
    /// Times that a service, or one source's share of it, failed over to another source.
    pub taken_over: u64,
}
