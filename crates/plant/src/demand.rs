//! Demand: what clients want of the sources behind a service, and what a source answers one of them alone.
//!
//! Market data flows down: what a source publishes is given its place in the plant's sequence and stands on the ring. Demand
//! travels the other way, as data in a bounded queue from those who serve clients to the one thread that holds the
//! sources: [`Demand`]. What comes back and is not market data (a receipt, a stream that is one client's alone, word that
//! there is no such item) does not belong to the sequence, and travels in a second queue: [`Answer`].
//!
//! Messages are RWF. Their stream ids mean nothing here: either side puts in its own.

use tapeline_omm::rwf::{Domain, Priority};

/// An item of a service.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ItemName {
    /// The service's number in the plant.
    pub service: u16,
    /// What kind of item.
    pub domain: Domain,
    /// What it is called: UTF-8, as all names on the ring, of at most 255 bytes.
    pub name: Box<str>,
}

/// What an answer is known by. Whoever demands something gives it a number, and uses none twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What is wanted of the sources of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Demand {
    /// Somebody wants an item that nobody had open. The source is asked for a stream, and asked again where it is lost,
    /// until [`Demand::Close`]. Comes back on the ring, or as [`Answer::Status`] where there is no image.
    Open {
        /// Which.
        item: ItemName,
        /// How urgently.
        priority: Priority,
    },
    /// How urgently those who have an item open want it, all together, has changed.
    Priority {
        /// Which.
        item: ItemName,
        /// How urgently now.
        priority: Priority,
    },
    /// A new image of an open item is wanted: its service keeps none.
    Refresh {
        /// Which.
        item: ItemName,
    },
    /// The one client that has an open item does not take its updates: its source is asked to pause. One that cannot goes on,
    /// and so does all that is on its way.
    Pause {
        /// Which.
        item: ItemName,
    },
    /// It takes them again, or others have the item too: a source that has paused goes on with a new image.
    Resume {
        /// Which.
        item: ItemName,
    },
    /// Nobody wants an item any more.
    Close {
        /// Which.
        item: ItemName,
    },
    /// A client wants a stream of its own. Comes back as [`Answer::Private`].
    OpenPrivate {
        /// The stream.
        ticket: Ticket,
        /// The request as the client sent it; its service is the plant's number.
        request: Box<[u8]>,
    },
    /// A message of the client's on its own stream: a reissue, a generic message, a post.
    Private {
        /// The stream.
        ticket: Ticket,
        /// The message.
        message: Box<[u8]>,
    },
    /// The client has closed its own stream, or is gone.
    ClosePrivate {
        /// The stream.
        ticket: Ticket,
    },
    /// A client posts. Comes back as [`Answer::Ack`] where a receipt is wanted, always.
    Post {
        /// What the receipt is known by; `None` where none is wanted.
        ticket: Option<Ticket>,
        /// The service.
        service: u16,
        /// The item that it is for; `None` where neither stream nor key name one.
        item: Option<ItemName>,
        /// The post as it came, with the client's post-user information filled in; of one in several parts the first.
        message: Box<[u8]>,
        /// The other parts, in their order. The receipt is that of the last.
        more: Vec<Box<[u8]>>,
    },
    /// A client sends a generic message on the stream of an item.
    Generic {
        /// Which.
        item: ItemName,
        /// The message.
        message: Box<[u8]>,
    },
}

impl Demand {
    /// Bytes that it takes while it waits.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let (item, message) = match self {
            Self::Open { item, .. }
            | Self::Priority { item, .. }
            | Self::Refresh { item }
            | Self::Pause { item }
            | Self::Resume { item }
            | Self::Close { item } => (Some(item), None),
            Self::OpenPrivate { request: message, .. } | Self::Private { message, .. } => {
                (None, Some(message))
            }
            Self::ClosePrivate { .. } => (None, None),
            Self::Post { item, message, .. } => (item.as_ref(), Some(message)),
            Self::Generic { item, message } => (Some(item), Some(message)),
        };
        let more = match self {
            Self::Post { more, .. } => more.iter().map(|part| size_of_val(part) + part.len()).sum(),
            _ => 0,
        };
        let name = item.map_or(0, |item| item.name.len());
        size_of::<Self>() + name + message.map_or(0, |message| message.len()) + more
    }
}

/// What a source answers beside its market data.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// The state of an item of which there is no image: there is no such item, or not now.
    Status {
        /// Which.
        item: ItemName,
        /// A status message.
        message: Box<[u8]>,
    },
    /// A message on a client's own stream: a refresh, an update, a status, a generic message, an ack. After a state that is
    /// final the ticket is nobody's.
    Private {
        /// The stream.
        ticket: Ticket,
        /// The message.
        message: Box<[u8]>,
    },
    /// The receipt of a post.
    Ack {
        /// Which post.
        ticket: Ticket,
        /// An ack.
        message: Box<[u8]>,
    },
    /// A generic message for all who have an item open.
    Generic {
        /// Which.
        item: ItemName,
        /// The message.
        message: Box<[u8]>,
    },
}

impl Answer {
    /// Bytes that it takes while it waits.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let (name, message) = match self {
            Self::Status { item, message } | Self::Generic { item, message } => (item.name.len(), message),
            Self::Private { message, .. } | Self::Ack { message, .. } => (0, message),
        };
        size_of::<Self>() + name + message.len()
    }
}
