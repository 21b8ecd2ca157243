//! What a consumer tells its application.

use std::sync::Arc;

use super::{Consumer, Handle};
use crate::domain::RoundTrip;
use crate::role::{DownloadFailed, Outbox};
use crate::rwf::{AckHeader, MessageView};
use crate::{Dictionary, Malformed, State};

/// What took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// The login was not accepted.
    Login,
    /// The directory was not complete.
    Directory,
    /// The dictionaries were not complete.
    Dictionary,
}

/// What happened. Borrowed from the message that it came in.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A connection is wanted. Say [`Consumer::connected`] when it is there, [`Consumer::disconnected`] when it fails.
    Connect {
        /// How many failed since the last that was logged in: of several hosts, take another each time.
        attempt: u32,
    },
    /// The connection is to be closed once what was sent is gone. It is over for the consumer: do not say
    /// [`Consumer::disconnected`] of it.
    Disconnect,
    /// Something took too long. The connection is given up; [`Event::Disconnect`] follows.
    TimedOut(Wait),
    /// The login stream's state: of a refresh or status as it came.
    Login {
        /// The message.
        message: &'a MessageView<'a>,
        /// Its state.
        state: State<'a>,
    },
    /// It is over for good: the login was refused or closed, or no connection could be had as often as was to be tried. Every
    /// item has been told that it is closed.
    Ended {
        /// Why.
        state: State<'a>,
    },
    /// The time to renew the token ([`Consumer::renew_login`]). Only where times are those of the day.
    TokenDue,
    /// A directory message; the consumer has taken it in.
    Directory(&'a MessageView<'a>),
    /// The dictionaries were downloaded.
    Dictionary(&'a Arc<Dictionary>),
    /// The dictionaries were not. Items are opened without.
    DictionaryFailed(&'a DownloadFailed<'a>),
    /// Items are asked for from now on.
    Ready,
    /// A message on the stream of an item: a refresh, an update, a status, a generic message.
    Message {
        /// Whose.
        item: Handle,
        /// The application's number for it.
        closure: u64,
        /// The message.
        message: &'a MessageView<'a>,
        /// The item is closed: the handle is nobody's.
        is_final: bool,
    },
    /// The state of an item changed for a reason other than a message on its stream.
    State {
        /// Whose.
        item: Handle,
        /// The application's number for it.
        closure: u64,
        /// The new state.
        state: State<'a>,
        /// The item is closed: the handle is nobody's.
        is_final: bool,
    },
    /// The receipt of a post, or word that there is none: a nak of NO_RESPONSE.
    Ack {
        /// The item on whose stream it was posted; `None` off-stream.
        item: Option<Handle>,
        /// The receipt.
        ack: AckHeader<'a>,
    },
    /// A generic message on the login stream, round trips aside.
    LoginGeneric(&'a MessageView<'a>),
    /// A round trip was answered.
    RoundTrip(RoundTrip),
    /// A message that is no message; it was passed over.
    Malformed(Malformed),
}

/// Who is told.
pub trait Application {
    /// Something happened. What `consumer` sends goes to `out`; it may be sent, opened and closed here as well as later.
    fn event(&mut self, consumer: &mut Consumer, out: &mut dyn Outbox, event: Event<'_>);
}

impl<F: FnMut(&mut Consumer, &mut dyn Outbox, Event<'_>)> Application for F {
    fn event(&mut self, consumer: &mut Consumer, out: &mut dyn Outbox, event: Event<'_>) {
        self(consumer, out, event);
    }
}
