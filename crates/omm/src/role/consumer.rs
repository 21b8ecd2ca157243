//! Consumer: logs in, reads the directory of services, opens items, and keeps them open across losses.
//!
//! A [`Consumer`] outlives its connections. It requests a connection with [`ConsumerEvent::Connect`], and its end with
//! [`ConsumerEvent::Disconnect`]; the loop around it reports the result with [`Consumer::connected`] and
//! [`Consumer::disconnected`]. On each connection the consumer logs in, requests the directory and, if configured, the
//! dictionaries, and then requests the open items under new stream ids. An item is open from [`Consumer::open`] to
//! [`Consumer::close`] or to a final event. In between it may become suspect and recover any number of times; recovery
//! is the consumer's task, not the application's.
//!
//! # What happens to an item
//!
//! | event | the application receives | the consumer's action |
//! |---|---|---|
//! | no service serves the item yet | OPEN/SUSPECT | requests it as soon as the directory allows |
//! | no answer within [`ConsumerSettings::request_timeout`] | OPEN/SUSPECT, TIMEOUT | closes it and requests it again |
//! | CLOSED_RECOVER, of the item or its group | OPEN/SUSPECT | requests it again after [`ConsumerSettings::recover`] |
//! | the connection or the service is lost | OPEN/SUSPECT | requests it again when the connection or service is back |
//! | CLOSED, REDIRECTED, a snapshot's image | that message, final | none: the application follows a redirection |
//! | a private stream, or any without `SingleOpen`, is lost | CLOSED_RECOVER, final | none: another stream would not be the same |
//! | the item becomes suspect, for a login without `SingleOpen` and `AllowSuspectData` | CLOSED_RECOVER, final | closes it |
//! | the login is refused, closed or redirected | CLOSED, final | disconnects, and ends: the application logs in elsewhere, see [`ConsumerEvent::Login`] |
//!
//! Recovery waits before it requests an item again; the vendor's library does not wait. Without a wait, a provider that
//! refuses would receive thousands of requests a second from each of its consumers, just when it is short of resources.
//! The first wait is short enough for a provider that closes and opens (100 ms). Each further wait is twice the last
//! one, up to ten seconds; the waits start again for an item that stayed open for ten seconds. A thousand items that
//! were lost together are requested one after the other, as space allows.

mod batches;
mod connection;
mod event;
mod items;
mod losses;
mod posts;
mod request;
mod sending;
mod services;
mod settings;
mod standby;

use std::sync::Arc;

use tapeline_nanos::Nanos;

pub use super::watchlist::Handle;
use super::watchlist::{Timers, Watchlist};
use super::{Outbox, Queue, Sent};
use crate::domain::{Directory, LOGIN_STREAM, LoginRequest};
use crate::rwf::{Header, MessageClass, MessageView};
use crate::{Dictionary, Refused};
use connection::{Connection, LinkProgress};
use event::Call;
pub use event::{ConsumerApplication, ConsumerEvent, Wait};
use losses::Timer;
use posts::Posts;
pub use request::{ItemRequest, NotOpened, Reissue, Target};
pub use services::ServiceName;
use services::Services;
pub use settings::{Backoff, ConsumerSettings};

/// Stream of the directory.
const DIRECTORY_STREAM: i32 = 2;
/// Streams of fields and enumerations, if they are downloaded.
const DICTIONARY_STREAMS: [i32; 2] = [3, 4];
/// Maximum bytes of pending output for a provider that does not read: round trips, and closes of unknown streams.
const MOST_OWED: usize = 64 << 10;
/// Maximum number of items for which memory is reserved at the start.
const MOST_RESERVED: usize = 1_000_000;

/// Counters of a consumer since its creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ConsumerCounters {
    /// Messages processed.
    pub messages: u64,
    /// Messages that were malformed, or of an unknown class; part of `messages`.
    pub malformed: u64,
    /// Messages for a stream that was never opened, or of a class that no provider sends; part of `messages`.
    pub misplaced: u64,
    /// Updates that arrived before the item's image; dropped.
    pub early_updates: u64,
    /// Item requests without reissues; a batch counts once for each of its items.
    pub requests: u64,
    /// Requests without an answer in time.
    pub timeouts: u64,
    /// Items that had to be requested again, for any reason.
    pub recoveries: u64,
    /// Connections with a completed login.
    pub logins: u64,
    /// Answers that were dropped because the provider does not read.
    pub dropped: u64,
}

/// A consumer: see the [module](self).
#[derive(Debug)]
pub struct Consumer {
    settings: ConsumerSettings,
    /// Encoded login request.
    login: Box<[u8]>,
    single_open: bool,
    /// `true` if suspect data is wanted.
    takes_suspect: bool,
    answers_round_trips: bool,
    connection: Connection,
    directory: Directory,
    services: Services,
    list: Watchlist,
    timers: Timers<Timer>,
    posts: Posts,
    /// Number of the last batch.
    batches: u32,
    owed: Queue,
    /// Handles that receive an event; stored to avoid an allocation.
    told: Vec<(Handle, u64)>,
    counters: ConsumerCounters,
    /// Number of messages that were prefetched for and have not come yet.
    expected: usize,
    now: Nanos,
}

impl Consumer {
    /// Memory for an item with a stream of its own, bytes, without its name, group id and view.
    pub const BYTES_PER_ITEM: usize = Watchlist::BYTES_PER_ITEM + 2 * size_of::<(Nanos, Timer)>();

    /// Creates a consumer that logs in with `login`. It requests a connection at its first `tick`.
    ///
    /// # Errors
    ///
    /// Fails if no message can hold the login.
    pub fn new(settings: ConsumerSettings, login: &LoginRequest<'_>) -> Result<Self, Refused> {
        let first_id =
            if settings.downloads_dictionary { DICTIONARY_STREAMS[1] + 1 } else { DIRECTORY_STREAM + 1 };
        let mut consumer = Self {
            settings,
            login: Box::default(),
            single_open: true,
            takes_suspect: true,
            answers_round_trips: false,
            connection: Connection::default(),
            directory: Directory::new(),
            services: Services::default(),
            list: Watchlist::new(first_id),
            timers: Timers::default(),
            posts: Posts::default(),
            batches: 0,
            owed: Queue::new(MOST_OWED),
            told: Vec::new(),
            counters: ConsumerCounters::default(),
            expected: 0,
            now: Nanos(0),
        };
        consumer.take_login(login)?;
        let settings = &consumer.settings;
        let expected = settings.expected_items.min(settings.most_items).min(MOST_RESERVED);
        consumer.reserve(expected);
        Ok(consumer)
    }

    /// Makes room for `items` in total, for items that [`ConsumerSettings::expected_items`] does not count. Otherwise the
    /// tables double as items are opened, and messages wait meanwhile: the last doubling before 100,000 items takes about
    /// 15 ms.
    pub fn reserve(&mut self, items: usize) {
        self.list.reserve(items);
    }

    /// Returns `true` if items are being requested: the login is accepted, and directory and dictionary are complete.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.connection.link == LinkProgress::Ready
    }

    /// Returns `true` if the consumer has ended: the login was refused or closed, by either side.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.connection.link == LinkProgress::Ended
    }

    /// Returns `true` if the provider can pause single items, as its login states: [`Reissue::is_paused`] then has an
    /// effect.
    #[must_use]
    pub const fn can_pause(&self) -> bool {
        self.connection.features.pauses_items
    }

    /// Returns the services that the provider has announced.
    #[must_use]
    pub const fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Returns the last downloaded dictionary.
    #[must_use]
    pub const fn dictionary(&self) -> Option<&Arc<Dictionary>> {
        self.connection.dictionary.as_ref()
    }

    /// Returns the number of open items.
    #[must_use]
    pub const fn items(&self) -> usize {
        self.list.len()
    }

    /// Returns the number of streams that serve the items, including streams that are being closed.
    #[must_use]
    pub const fn streams(&self) -> usize {
        self.list.streams.len()
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &ConsumerCounters {
        &self.counters
    }

    /// Returns the last time that was passed to the consumer.
    #[must_use]
    pub const fn now(&self) -> Nanos {
        self.now
    }

    /// Returns `true` if the item is open and its image has arrived.
    #[must_use]
    pub fn has_image(&self, item: Handle) -> bool {
        self.list.interest(item).is_some_and(|interest| interest.image == super::watchlist::Image::There)
    }

    /// Processes one message from the provider.
    pub fn message(
        &mut self,
        now: Nanos,
        bytes: &[u8],
        out: &mut dyn Outbox,
        application: &mut dyn ConsumerApplication,
    ) {
        let call = &mut Call { out, application };
        self.now = now;
        self.counters.messages += 1;
        if !self.connection.link.is_up() {
            self.counters.misplaced += 1;
            return;
        }
        match MessageView::parse(bytes) {
            Ok(message) => self.take(&message, bytes, call),
            Err(fault) => self.tell_malformed(fault, call),
        }
        self.send_all(call);
    }

    /// Prefetches what the messages behind the next one need. Call it before each [`message`](Self::message) with those that have arrived behind
    /// that message. Affects only the processor's caches; a wrong prediction does no harm.
    #[inline]
    pub fn expect<'m>(&mut self, following: impl Iterator<Item = &'m [u8]>) {
        if let Some(left) = self.expected.checked_sub(1) {
            self.expected = left;
            return;
        }
        let id = |message: &[u8]| message.get(4..)?.first_chunk().map(|id| i32::from_be_bytes(*id));
        self.expected = self.list.expect(following.map(|message| id(message).unwrap_or_default()));
    }

    /// Does the work that is due at `now`, and sends queued output. Returns the time of the next call, unless something
    /// happens before; `None` while the consumer waits for others.
    pub fn tick(
        &mut self,
        now: Nanos,
        out: &mut dyn Outbox,
        application: &mut dyn ConsumerApplication,
    ) -> Option<Nanos> {
        let call = &mut Call { out, application };
        self.now = now;
        self.connection_due(call);
        self.items_due(call);
        self.posts_due(call);
        self.send_all(call);
        [self.connection.due(), self.timers.due(), self.posts.due()].into_iter().flatten().min()
    }

    fn take(&mut self, message: &MessageView<'_>, bytes: &[u8], call: &mut Call<'_>) {
        // The stream id determines the owner of an answer, whatever the key says.
        let id = message.stream_id();
        match message.class() {
            // Updates, the only frequent class, are decoded no further than necessary.
            MessageClass::UPDATE if id > DIRECTORY_STREAM => return self.update(message, call),
            MessageClass::REQUEST | MessageClass::CLOSE | MessageClass::POST => {
                self.counters.misplaced += 1;
                return;
            }
            _ => {}
        }
        let header = match message.header() {
            Ok(Header::Ack(ack)) => return self.ack(&ack, call),
            Ok(header) => header,
            Err(fault) => return self.tell_malformed(fault, call),
        };
        match id {
            LOGIN_STREAM => self.login_message(message, &header, bytes, call),
            DIRECTORY_STREAM => self.directory_message(message, &header, call),
            _ if self.settings.downloads_dictionary && DICTIONARY_STREAMS.contains(&id) => {
                self.dictionary_message(message, &header, call);
            }
            _ => self.item_message(message, &header, call),
        }
    }

    fn tell_malformed(&mut self, fault: crate::Malformed, call: &mut Call<'_>) {
        self.counters.malformed += 1;
        call.event(self, ConsumerEvent::Malformed(fault));
    }

    /// Sends a message of the consumer itself, now or later. For a peer that does not read, messages beyond the queue's
    /// limit are dropped.
    fn owe(&mut self, message: &[u8], out: &mut dyn Outbox) {
        let is_sent = self.owed.send_on(out) && out.send(message) != Sent::Full;
        if !is_sent && self.owed.send(message) != Sent::Queued {
            self.counters.dropped += 1;
        }
    }

    /// Handles a message on a stream that is not open. A close is sent for a stream that was never opened, and for an
    /// image: the provider holds that stream open, because a request may have crossed the loss of its service, which
    /// ended the stream here. Any other message on a stream that was open before has crossed the close of the stream.
    fn close_unknown(&mut self, message: &MessageView<'_>, is_image: bool, out: &mut dyn Outbox) {
        self.counters.misplaced += 1;
        if is_image || !self.list.ids.was_open(message.stream_id()) {
            self.close_stream(message.domain(), message.stream_id(), out);
        }
    }
}
