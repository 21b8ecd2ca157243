//! What the hub leaves for others to write down.

use std::fmt;

use tapeline_omm::domain::LoginRequest;
use tapeline_omm::role::Over;
use tapeline_omm::rwf::Domain;

use crate::{Peer, SessionId};

/// Something that an operator may want to read later.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HubEvent {
    /// A client has logged in.
    Login {
        /// Which session.
        session: SessionId,
        /// Where its client is.
        peer: Peer,
        /// As whom; bytes that are not UTF-8 are replaced. Empty where no name was asked for, and a token was shown as one.
        user: String,
        /// What it says of itself.
        who: Box<Who>,
    },
    /// A login was refused, or is over because its user may not be in any more.
    Refused {
        /// Which session.
        session: SessionId,
        /// Where its client is.
        peer: Peer,
        /// As whom it was tried; empty with a token, unless it was somebody's.
        user: String,
        /// What it says of itself.
        who: Box<Who>,
        /// What it was told.
        why: &'static str,
    },
    /// A client was kept from an item, or an item was taken away from it.
    Denied {
        /// Which session.
        session: SessionId,
        /// Where its client is.
        peer: Peer,
        /// Who it is.
        user: String,
        /// The item's service.
        service: String,
        /// Its domain.
        domain: Domain,
        /// Its name; bytes that are not UTF-8 are replaced.
        name: String,
        /// What it was told.
        why: &'static str,
    },
    /// A session is over.
    Gone {
        /// Which session.
        session: SessionId,
        /// Where its client is.
        peer: Peer,
        /// Who it was; empty where nobody logged in.
        user: String,
        /// Why.
        end: End,
        /// What it did and got.
        counters: SessionCounters,
    },
}

/// What a login says of whoever logs in, as far as that is text; it can say anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Who {
    /// A number as text.
    pub application_id: String,
    /// What the application calls itself.
    pub application_name: String,
    /// Where: an address and a network or host, as DACS has it.
    pub position: String,
}

impl Who {
    pub(crate) fn of(request: &LoginRequest<'_>) -> Self {
        // Enough for what is true, and no more than that for what is not.
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

/// Bytes that are kept of what a login says.
const LONGEST_SAID: usize = 255;

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
    /// It has sent no login, and there are too many of its kind.
    Stranger,
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
            Self::Stranger => f.write_str("it has not logged in, and others want its place"),
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
    /// So many streams may be open, and it does not take the word that more are refused.
    Streams(usize),
    /// What is kept for it of images and of private streams may wait for so many milliseconds while others wait for its room.
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

/// What a session did and got.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionCounters {
    /// Items that it asked for, those of private streams among them.
    pub requests: u64,
    /// Of them, those that were refused.
    pub refused: u64,
    /// Images that it was sent, parts included, on private streams too.
    pub refreshes: u64,
    /// Updates that it was sent, on private streams too, or that were put where they wait for room.
    pub updates: u64,
    /// Updates that it had no room for, and which are in a later image.
    pub conflated: u64,
    /// Of them, those that had to wait for room.
    pub queued: u64,
    /// Updates that were dropped, before or while they waited; a later image has them.
    pub dropped: u64,
    /// How often a stream was told that it missed some.
    pub gaps: u64,
    /// How often the source of an item that it alone has was asked to pause.
    pub held: u64,
    /// Posts that went on to a source.
    pub posts: u64,
    /// Generic messages that went on to a source.
    pub generic: u64,
    /// Posts and generic messages that were not taken.
    pub declined: u64,
    /// States of items, and of private streams, that it was told.
    pub statuses: u64,
    /// Messages of its own private streams, whichever they are, receipts and generic messages that it was sent.
    pub answers: u64,
    /// Generic messages that it had no room for.
    pub lost: u64,
    /// Round trips that were measured with it.
    pub round_trips: u64,
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

/// What happened at the hub's door, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AccessCounters {
    /// Clients that were let in.
    pub logins: u64,
    /// Logins that were refused, and those that ended because their user may not be in any more.
    pub refused: u64,
    /// Passwords and tokens that were checked, or are about to be.
    pub checks: u64,
    /// Items that clients were kept from.
    pub denied: u64,
    /// Of them, those without a [`HubEvent`], because many waited.
    pub denied_unsaid: u64,
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
    /// Ticks of services that are not in the settings.
    pub not_served: u64,
    /// Ticks of items that nobody wants any more: they were on their way when their source was told.
    pub unwanted: u64,
    /// What the sources were told.
    pub demands: u64,
    /// What the sources answered beside the ticks.
    pub answers: u64,
    /// Answers that nobody waits for any more, or that cannot be read.
    pub stray_answers: u64,
    /// Items that did not appear in time.
    pub late: u64,
    /// Sessions that were opened.
    pub sessions: u64,
    /// Sessions that the hub ended because they were too slow.
    pub cut: u64,
    /// Of them, those that took nothing at all.
    pub stuck: u64,
    /// Of the sessions that are over.
    pub past: SessionCounters,
}
