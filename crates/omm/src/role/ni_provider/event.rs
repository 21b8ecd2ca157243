//! Events of an NI provider for its application.

use std::sync::Arc;

use super::NiProvider;
use crate::role::watchlist::Handle;
use crate::role::{DownloadFailed, Outbox, application};
use crate::rwf::MessageView;
use crate::{Dictionary, Malformed, State};

/// Event of an NI provider. It borrows from the message that caused it.
#[derive(Debug)]
#[non_exhaustive]
pub enum NiProviderEvent<'a> {
    /// A connection is wanted. Call [`NiProvider::connected`] when it is established, [`NiProvider::disconnected`] when
    /// it fails.
    Connect {
        /// Failed attempts since the last completed login. With several hosts, select another host each time.
        attempt: u32,
    },
    /// Close the connection after its output is sent; it is over for the provider.
    Disconnect,
    /// The connection is lost: nothing can be published before [`NiProviderEvent::Ready`].
    Lost,
    /// The login was not accepted in time; [`NiProviderEvent::Disconnect`] follows.
    TimedOut,
    /// State of the login stream, as received in a refresh or status.
    Login {
        /// The message.
        message: &'a MessageView<'a>,
        /// Its state.
        state: State<'a>,
    },
    /// The provider has ended: the login was refused or closed, or the maximum number of connection attempts failed.
    Ended {
        /// Final state, with the reason.
        state: State<'a>,
    },
    /// The directory is published; images are requested from now on.
    Ready,
    /// Publish this item with [`NiProvider::publish`]: the item or the connection is new. Sent once, and again only if
    /// there was no space for the image. An application without an image publishes it when it has one.
    ImageWanted {
        /// The item.
        item: Handle,
        /// The application's number for the item.
        closure: u64,
    },
    /// A message from the hub: a post, a generic message, or a status that refuses an item.
    Message {
        /// Item of the stream on which the message arrived, if there is one.
        item: Option<Handle>,
        /// The message.
        message: &'a MessageView<'a>,
    },
    /// The hub's dictionary was downloaded.
    Dictionary(&'a Arc<Dictionary>),
    /// The download of the hub's dictionary failed.
    DictionaryFailed(&'a DownloadFailed<'a>),
    /// A malformed message; it was skipped.
    Malformed(Malformed),
}

application! {
    /// Handles an event. Output of `provider` goes to `out`.
    NiProviderApplication: NiProvider, NiProviderEvent
}
