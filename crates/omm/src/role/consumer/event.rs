//! Events of a consumer for its application.

use std::sync::Arc;

use super::{Consumer, Handle};
use crate::domain::RoundTrip;
use crate::role::{DownloadFailed, Outbox, application};
use crate::rwf::{AckHeader, MessageView};
use crate::{Dictionary, Malformed, State};

/// Step that took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// The login was not accepted.
    Login,
    /// The directory was not complete.
    Directory,
    /// The dictionaries were not complete.
    Dictionary,
}

/// Event of a consumer. It borrows from the message that caused it.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConsumerEvent<'a> {
    /// A connection is wanted. Call [`Consumer::connected`] when it is established, [`Consumer::disconnected`] when it
    /// fails.
    Connect {
        /// Failed attempts since the last completed login. With several hosts, select another host each time.
        attempt: u32,
    },
    /// Close the connection after its output is sent. The connection is over for the consumer: do not call
    /// [`Consumer::disconnected`] for it.
    Disconnect,
    /// A step took too long. The connection is given up; [`ConsumerEvent::Disconnect`] follows.
    TimedOut(Wait),
    /// State of the login stream, as received in a refresh or status.
    Login {
        /// The message.
        message: &'a MessageView<'a>,
        /// Its state.
        state: State<'a>,
    },
    /// The consumer has ended: the login was refused or closed, or the maximum number of connection attempts failed.
    /// Every item was reported as closed.
    Ended {
        /// Final state, with the reason.
        state: State<'a>,
    },
    /// Renew the token now ([`Consumer::renew_login`]). Sent only if times are wall-clock times.
    TokenDue,
    /// A directory message, which the consumer has processed.
    Directory(&'a MessageView<'a>),
    /// The dictionaries were downloaded.
    Dictionary(&'a Arc<Dictionary>),
    /// The download of the dictionaries failed. Items are opened without them.
    DictionaryFailed(&'a DownloadFailed<'a>),
    /// Items are requested from now on.
    Ready,
    /// A message on the stream of an item: a refresh, an update, a status, a generic message.
    Message {
        /// The item.
        item: Handle,
        /// The application's number for the item.
        closure: u64,
        /// The message.
        message: &'a MessageView<'a>,
        /// `true` if the item is closed; the handle is no longer valid.
        is_final: bool,
    },
    /// The state of an item changed for a reason other than a message on its stream.
    State {
        /// The item.
        item: Handle,
        /// The application's number for the item.
        closure: u64,
        /// The new state.
        state: State<'a>,
        /// `true` if the item is closed; the handle is no longer valid.
        is_final: bool,
    },
    /// The acknowledgement of a post, or a nak of NO_RESPONSE if there is none.
    Ack {
        /// Item on whose stream the post was sent; `None` off-stream.
        item: Option<Handle>,
        /// The acknowledgement.
        ack: AckHeader<'a>,
    },
    /// A generic message on the login stream, except round trips.
    LoginGeneric(&'a MessageView<'a>),
    /// A round trip was answered.
    RoundTrip(RoundTrip),
    /// A malformed message; it was skipped.
    Malformed(Malformed),
}

application! {
    /// Handles an event. Output of `consumer` goes to `out`; sending, opening and closing are allowed here as well as
    /// later.
    ConsumerApplication: Consumer, ConsumerEvent
}
