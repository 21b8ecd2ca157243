//! What an NI provider tells its application.

use std::sync::Arc;

use super::NiProvider;
use crate::role::watchlist::Handle;
use crate::role::{DownloadFailed, Outbox};
use crate::rwf::MessageView;
use crate::{Dictionary, Malformed, State};

/// What happened. Borrowed from the message that it came in.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A connection is wanted. Say [`NiProvider::connected`] when it is there, [`NiProvider::disconnected`] when it fails.
    Connect {
        /// How many failed since the last that was logged in: of several hosts, take another each time.
        attempt: u32,
    },
    /// The connection is to be closed once what was sent is gone; it is over for the provider.
    Disconnect,
    /// The connection is lost: nothing can be published before [`Event::Ready`].
    Lost,
    /// The login was not accepted in time; [`Event::Disconnect`] follows.
    TimedOut,
    /// The login stream's state: of a refresh or status as it came.
    Login {
        /// The message.
        message: &'a MessageView<'a>,
        /// Its state.
        state: State<'a>,
    },
    /// It is over for good: the login was refused or closed, or no connection could be had as often as was to be tried.
    Ended {
        /// Why.
        state: State<'a>,
    },
    /// The directory is published; images are asked for now.
    Ready,
    /// An item is to be published, with [`NiProvider::publish`]: it is new, or the connection is. Asked once; again only where
    /// there was no room for it. An application that has no image yet publishes it when it has.
    ImageWanted {
        /// Which.
        item: Handle,
        /// The application's number for it.
        closure: u64,
    },
    /// A message of the hub's: a post or a generic message, or a status that refuses an item.
    Message {
        /// The item on whose stream it came, if it is one's.
        item: Option<Handle>,
        /// The message.
        message: &'a MessageView<'a>,
    },
    /// The hub's dictionary was downloaded.
    Dictionary(&'a Arc<Dictionary>),
    /// It was not.
    DictionaryFailed(&'a DownloadFailed<'a>),
    /// A message that is no message; it was passed over.
    Malformed(Malformed),
}

/// Who is told.
pub trait Application {
    /// Something happened. What `provider` sends goes to `out`.
    fn event(&mut self, provider: &mut NiProvider, out: &mut dyn Outbox, event: Event<'_>);
}

impl<F: FnMut(&mut NiProvider, &mut dyn Outbox, Event<'_>)> Application for F {
    fn event(&mut self, provider: &mut NiProvider, out: &mut dyn Outbox, event: Event<'_>) {
        self(provider, out, event);
    }
}
