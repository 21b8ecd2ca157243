//! Events and counters for the operator.

use std::fmt;

use tapeline_omm::domain::LoginRequest;
use tapeline_omm::role::Over;
use tapeline_omm::rwf::Domain;

use crate::{Peer, SessionId};

/// An event for the log of an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HubEvent {
    /// A client has logged in.
    Login {
        /// The session.
        session: SessionId,
        /// The address of the client.
        peer: Peer,
        /// The user name, with bytes that are not UTF-8 replaced. Empty if no name is required and the client sent a token in its place.
        user: String,
        /// The client's description of itself.
        who: Box<Who>,
    },
    /// A login was refused, or has ended because its user may no longer log in.
    Refused {
        /// The session.
        session: SessionId,
        /// The address of the client.
        peer: Peer,
        /// The user name of the attempt; empty for a token that belongs to no user.
        user: String,
        /// The client's description of itself.
        who: Box<Who>,
        /// The reason sent to the client.
        why: &'static str,
    },
    /// A client was denied an item, or has lost access to it.
    Denied {
        /// The session.
        session: SessionId,
        /// The address of the client.
        peer: Peer,
        /// The user name.
        user: String,
        /// The item's service.
        service: String,
        /// The item's domain.
        domain: Domain,
        /// The item's name, with bytes that are not UTF-8 replaced.
        name: String,
        /// The reason sent to the client.
        why: &'static str,
    },
    /// A client was refused an item for another reason than access: it is unknown, its service is down, or a limit is reached.
    ItemRefused {
        /// The session.
        session: SessionId,
        /// The address of the client.
        peer: Peer,
        /// The user name.
        user: String,
        /// The item's service; its number if there is no such service, empty if the request names none.
        service: String,
        /// The item's domain.
        domain: Domain,
        /// The item's name, with bytes that are not UTF-8 replaced.
        name: String,
        /// The reason sent to the client.
        why: &'static str,
    },
    /// A client was refused this number of items more, without an event for each.
    MoreItemsRefused {
        /// The session.
        session: SessionId,
        /// The address of the client.
        peer: Peer,
        /// The user name.
        user: String,
        /// The number of items.
        items: u64,
    },
    /// A session is over.
    Gone {
        /// The session.
        session: SessionId,
        /// The address of the client.
        peer: Peer,
        /// The user name; empty without a login.
        user: String,
        /// The reason.
        end: End,
        /// The counters of the session.
        counters: SessionCounters,
    },
}

/// The text in a login that describes the client. It is not verified.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Who {
    /// The application id: a number as text.
    pub application_id: String,
    /// The application's name for itself.
    pub application_name: String,
    /// The position: an address and a network or host, as in DACS.
    pub position: String,
}

impl Who {
    pub(crate) fn of(request: &LoginRequest<'_>) -> Self {
        // Long enough for legitimate text, and a limit for any other.
        let text = |bytes: Option<&[u8]>| {
            let bytes = bytes.unwrap_or_default();
            String::from_utf8_lossy(bytes.get(..LONGEST_SAID).unwrap_or(bytes)).into_owned()
        };
        let attributes = &request.attributes;
        Self {
            application_id: text(attributes.application_id),
            application_name: text(attributes.application_name),
            position: text(attributes.position),
        }
    }
}

/// Maximum number of stored bytes of each text in a login.
const LONGEST_SAID: usize = 255;

/// The reason for the end of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// The connection is over.
    Connection(String),
    /// The protocol between the two roles ended the session.
    Role(Over),
    /// The client was too slow, and its queue reached a limit.
    Slow(TooMuch),
    /// The client took nothing for this number of milliseconds.
    Stuck(u64),
    /// The client sent this number of unreadable messages, the limit.
    Malformed(u64),
    /// The client sent no login, and there were too many such sessions.
    Stranger,
    /// The hub stops.
    Stopped,
}

impl End {
    /// Returns `true` if the client gets the reason, and time to take it.
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
            Self::Stranger => f.write_str("it has not logged in, and others want its place"),
            Self::Stopped => f.write_str("the hub stops"),
        }
    }
}

/// The limit that a slow client exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TooMuch {
    /// The maximum number of queued bytes.
    Bytes(usize),
    /// The maximum number of queued messages.
    Messages(usize),
    /// The maximum age of a queued message, in milliseconds.
    Age(u64),
    /// The maximum number of open streams, while the client does not take the refusals of further requests.
    Streams(usize),
    /// The maximum time in milliseconds that images and private-stream messages may stay queued while other clients wait for queue capacity.
    OverflowBudget(u64),
}

impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "more than {bytes} bytes of updates wait for it"),
            Self::Messages(count) => write!(f, "more than {count} updates wait for it"),
            Self::Streams(count) => {
                write!(
                    f,
                    "{count} streams are open on all connections, and more that it asked for wait to be refused"
                )
            }
            Self::OverflowBudget(ms) => {
                write!(
                    f,
                    "images have waited for it for more than {ms} ms, and other clients wait for their room"
                )
            }
            Self::Age(ms) => write!(f, "updates have waited for it for more than {ms} ms"),
        }
    }
}

/// The counters of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionCounters {
    /// Requested items, those of private streams included.
    pub requests: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Images sent, parts included, those on private streams too.
    pub refreshes: u64,
    /// Updates sent or queued, those on private streams included.
    pub updates: u64,
    /// Updates without capacity that were conflated into a later image.
    pub conflated: u64,
    /// Updates that were queued for capacity, a part of [`updates`](Self::updates).
    pub queued: u64,
    /// Updates dropped before or while they were queued; a later image contains them.
    pub dropped: u64,
    /// Gap statuses sent to streams.
    pub gaps: u64,
    /// Number of times that the source of an item that only this session has open was asked to pause.
    pub held: u64,
    /// Posts passed to a source.
    pub posts: u64,
    /// Generic messages passed to a source.
    pub generic: u64,
    /// Posts and generic messages that were refused.
    pub declined: u64,
    /// Statuses sent for items and private streams.
    pub statuses: u64,
    /// Messages sent to this session alone: all messages of its private streams, receipts and generic messages.
    pub answers: u64,
    /// Generic messages dropped for lack of capacity.
    pub lost: u64,
    /// Round trips measured with the client.
    pub round_trips: u64,
    /// Messages that were unreadable.
    pub malformed: u64,
}

impl SessionCounters {
    /// Adds the counters of another session.
    pub const fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.refused += other.refused;
        self.refreshes += other.refreshes;
        self.updates += other.updates;
        self.conflated += other.conflated;
        self.queued += other.queued;
        self.dropped += other.dropped;
        self.gaps += other.gaps;
        self.held += other.held;
        self.posts += other.posts;
        self.generic += other.generic;
        self.declined += other.declined;
        self.statuses += other.statuses;
        self.answers += other.answers;
        self.lost += other.lost;
        self.round_trips += other.round_trips;
        self.malformed += other.malformed;
    }
}

/// The counters of logins and access.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AccessCounters {
    /// Accepted logins.
    pub logins: u64,
    /// Refused logins, and logins that ended because their user may no longer log in.
    pub refused: u64,
    /// Passwords and tokens that were checked, or are about to be checked.
    pub checks: u64,
    /// Requests for items that were denied.
    pub denied: u64,
    /// Denied requests without a [`HubEvent`], because many were waiting.
    pub denied_unsaid: u64,
}

/// The counters of a hub.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Ticks taken from the ring.
    pub ticks: u64,
    /// Ticks missing in the plant's sequence; 0 unless the hub lost its place on the ring.
    pub missing: u64,
    /// Ticks without an item.
    pub about_no_item: u64,
    /// Ticks that cannot be served to any client: malformed, or of an item beyond the limit.
    pub unusable: u64,
    /// Ticks of services that are not in the settings.
    pub not_served: u64,
    /// Ticks of items that are no longer demanded, already on their way when the source was informed.
    pub unwanted: u64,
    /// Demands sent to the sources.
    pub demands: u64,
    /// Answers of the sources, in addition to ticks.
    pub answers: u64,
    /// Answers without a waiting client, or unreadable.
    pub stray_answers: u64,
    /// Items that did not appear in time.
    pub late: u64,
    /// Sessions that were opened.
    pub sessions: u64,
    /// Sessions that the hub disconnected because they were too slow.
    pub cut: u64,
    /// Sessions among those that took nothing at all.
    pub stuck: u64,
    /// The sum of the counters of closed sessions.
    pub past: SessionCounters,
}
