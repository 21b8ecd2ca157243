//! Demands of clients on the sources of a service, and answers of a source to one client alone.
//!
//! Market data flows down: the messages of a source get their place in the plant's sequence and go to the ring. Demand flows the other way,
//! as data in a bounded queue from the servers of clients to the one thread that owns the sources: [`Demand`]. Answers that are not market
//! data (a receipt, a private stream of one client, a status that an item does not exist) are not part of the sequence, and use a second
//! queue: [`Answer`].
//!
//! Messages are RWF. Their stream ids are ignored: each side sets its own.

mod shared;

use tapeline_omm::rwf::{Domain, Priority};

pub use shared::{DemanderId, FarDemand, FarPolicy, SharedDemands, SharedLimits, nak, status};

/// An item of a service.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ItemName {
    /// The service's number in the plant.
    pub service: u16,
    /// The domain of the item.
    pub domain: Domain,
    /// The name of the item: UTF-8, like all names on the ring, at most 255 bytes.
    pub name: Box<str>,
}

/// The number that identifies an answer. The demanding side assigns it, and never reuses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A demand on the sources of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Demand {
    /// Opens an item that no client had open. The source is asked for a stream, and again if the stream is lost, until [`Demand::Close`]. The
    /// answer comes on the ring, or as [`Answer::Status`] if there is no image.
    Open {
        /// The item.
        item: ItemName,
        /// The priority.
        priority: Priority,
    },
    /// Changes the total priority of the clients that have an item open.
    Priority {
        /// The item.
        item: ItemName,
        /// The new priority.
        priority: Priority,
    },
    /// Requests a new image of an open item, whose service keeps no image.
    Refresh(ItemName),
    /// Asks the source of an item to pause, because its only client does not take its updates. A source that cannot pause continues, and messages
    /// already on their way still arrive.
    Pause(ItemName),
    /// Resumes an item, because its client takes updates again or others have it open too. A paused source continues with a new image.
    Resume(ItemName),
    /// Closes an item that no client has open any more.
    Close(ItemName),
    /// Opens a private stream of one client. The answer is [`Answer::Private`].
    OpenPrivate {
        /// The stream.
        ticket: Ticket,
        /// The request as the client sent it; its service is the plant's number.
        request: Box<[u8]>,
    },
    /// Sends a message of the client on its private stream: a reissue, a generic message, a post.
    Private {
        /// The stream.
        ticket: Ticket,
        /// The message.
        message: Box<[u8]>,
    },
    /// Closes a private stream, because the client closed it or has disconnected.
    ClosePrivate(Ticket),
    /// Sends a client's post. If a receipt is requested, the answer is always [`Answer::Ack`].
    Post {
        /// The number that identifies the receipt; `None` if none is requested.
        ticket: Option<Ticket>,
        /// The service.
        service: u16,
        /// The item of the post; `None` if neither stream nor key names one.
        item: Option<ItemName>,
        /// The post as the client sent it, with the post-user information filled in; the first part of a post in several parts.
        message: Box<[u8]>,
        /// The other parts, in order. The receipt is for the last part.
        more: Vec<Box<[u8]>>,
    },
    /// Sends a client's generic message on the stream of an item.
    Generic {
        /// The item.
        item: ItemName,
        /// The message.
        message: Box<[u8]>,
    },
}

impl Demand {
    /// Returns the size of the demand in a queue, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let (item, message) = match self {
            Self::Open { item, .. }
            | Self::Priority { item, .. }
            | Self::Refresh(item)
            | Self::Pause(item)
            | Self::Resume(item)
            | Self::Close(item) => (Some(item), None),
            Self::OpenPrivate { request: message, .. } | Self::Private { message, .. } => {
                (None, Some(message))
            }
            Self::ClosePrivate(_) => (None, None),
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

/// An answer of a source that is not market data.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// The state of an item without an image: it does not exist, or is not available now.
    Status {
        /// The item.
        item: ItemName,
        /// A status message.
        message: Box<[u8]>,
    },
    /// A message on a client's private stream: a refresh, an update, a status, a generic message, an ack. After a final state the ticket
    /// is void.
    Private {
        /// The stream.
        ticket: Ticket,
        /// The message.
        message: Box<[u8]>,
    },
    /// The receipt of a post.
    Ack {
        /// The post.
        ticket: Ticket,
        /// An ack.
        message: Box<[u8]>,
    },
    /// A generic message for all clients that have an item open.
    Generic {
        /// The item.
        item: ItemName,
        /// The message.
        message: Box<[u8]>,
    },
}

impl Answer {
    /// Returns the size of the answer in a queue, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let (name, message) = match self {
            Self::Status { item, message } | Self::Generic { item, message } => (item.name.len(), message),
            Self::Private { message, .. } | Self::Ack { message, .. } => (0, message),
        };
        size_of::<Self>() + name + message.len()
    }
}
