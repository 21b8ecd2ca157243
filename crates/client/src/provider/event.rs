//! The events of a provider.

use tapeline_omm::role::provider::{Receipt, StreamHandle};
use tapeline_omm::rwf::Domain;
use tapeline_wire::rssl::ConnectionId;

/// An action of a consumer of a [`Provider`](super::Provider).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProviderEvent {
    /// A user has logged in.
    LoggedIn(String),
    /// A consumer has requested an item that has no values yet. Answer with [`Provider::publish`](super::Provider::publish),
    /// [`Provider::refresh`](super::Provider::refresh) or [`Provider::close_item`](super::Provider::close_item).
    Opened {
        /// The domain of the item.
        domain: Domain,
        /// The item's name.
        item: String,
        /// `true` if the consumer wants one image and no updates.
        is_snapshot: bool,
    },
    /// The last consumer that had the item open has closed it.
    Unused {
        /// The domain of the item.
        domain: Domain,
        /// The item's name.
        item: String,
    },
    /// A consumer has sent a generic message on the stream of an item. Answer, if an answer is due, with
    /// [`Provider::generic`](super::Provider::generic).
    Generic {
        /// The stream on which it arrived.
        stream: ItemStream,
        /// The domain of the item.
        domain: Domain,
        /// The item's name.
        item: String,
        /// The message; see [`MessageView::parse`](tapeline_omm::rwf::MessageView::parse).
        message: Box<[u8]>,
    },
    /// A consumer has posted; only after [`Provider::accept_posts`](super::Provider::accept_posts). Answer with
    /// [`Provider::acknowledge`](super::Provider::acknowledge) if there is a receipt.
    Posted {
        /// The connection on which it arrived.
        connection: ConnectionId,
        /// The user's name.
        user: String,
        /// The item's name; empty if the post names none.
        item: String,
        /// The message; see [`MessageView::parse`](tapeline_omm::rwf::MessageView::parse).
        message: Box<[u8]>,
        /// `Some` if the consumer wants an answer.
        receipt: Option<Receipt>,
    },
    /// Information for the user about a consumer's JSON.
    Note(String),
    /// A consumer's connection is closed.
    Closed {
        /// The user's name.
        user: String,
        /// The reason.
        reason: String,
    },
}

/// The stream of an item to one consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ItemStream {
    pub(super) connection: ConnectionId,
    pub(super) stream: StreamHandle,
}

/// The answer of a provider to a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginAnswer {
    /// The user is logged in.
    Accept,
    /// The user is logged in until this time, in seconds since 1970: the consumer must renew its token before.
    AcceptUntil(u64),
    /// The login is refused, with the text for the user.
    Refuse(String),
}
