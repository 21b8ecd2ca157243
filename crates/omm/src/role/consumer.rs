//! The consumer: logs in, learns which services there are, opens items, and keeps them open whatever happens.
//!
//! A [`Consumer`] outlives its connections. It says when it wants one ([`Event::Connect`]) and when it wants it closed
//! ([`Event::Disconnect`]); the loop around it says what became of it ([`Consumer::connected`],
//! [`Consumer::disconnected`]). On each connection it logs in, asks for the directory and, if told to, for the dictionaries,
//! then asks for the items that the application has open, under new stream ids. An item is the application's from
//! [`Consumer::open`] to [`Consumer::close`] or to an event that is final: in between it may become suspect and recover any
//! number of times, which is the consumer's work and not the application's.
//!
//! # What happens to an item
//!
//! | what | the application sees | the consumer does |
//! |---|---|---|
//! | no service serves it yet | OPEN/SUSPECT | asks as soon as the directory allows |
//! | no answer within [`Settings::request_timeout`] | OPEN/SUSPECT, TIMEOUT | closes and asks again |
//! | CLOSED_RECOVER, of the item or its group | OPEN/SUSPECT | asks again after [`Settings::recover`] |
//! | the connection or the service is lost | OPEN/SUSPECT | asks again when it is back |
//! | CLOSED, REDIRECTED, a snapshot's image | that, and it is final | nothing: a redirection is the application's to follow |
//! | a private stream, or any without `SingleOpen`, is lost | CLOSED_RECOVER, final | nothing: another stream would not be the same |
//! | it becomes suspect, for a login without `SingleOpen` and `AllowSuspectData` | CLOSED_RECOVER, final | closes it |
//! | the login is refused, closed or redirected | CLOSED, final | asks for a disconnection, and ends: where to log in else is the application's to know, from [`Event::Login`] |
//!
//! Asking again waits, where the vendor's library asks at once: a provider that goes on refusing is then asked
//! thousands of times a second by each of its consumers, just when it is short of something. The first wait is short
//! enough for a provider that closes and opens (100 ms), and each is twice the last one up to ten seconds; an item that
//! stayed open for that long begins anew. A thousand items that were lost together are asked for in line, as room allows.

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
use connection::{Connection, Link};
pub use event::{Application, Event, Wait};
use losses::Timer;
use posts::Posts;
pub use request::{ItemRequest, NotOpened, Reissue, Target};
pub use services::ServiceName;
use services::Services;
pub use settings::{Backoff, Settings};

/// The stream of the directory.
const DIRECTORY_STREAM: i32 = 2;
/// The streams of fields and enumerations, where they are downloaded.
const DICTIONARY_STREAMS: [i32; 2] = [3, 4];
/// Bytes of answers that are owed to a provider that does not read: round trips, and closes of streams that it made up.
const MOST_OWED: usize = 64 << 10;

/// What a consumer has seen and done, counted from the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Messages that were taken.
    pub messages: u64,
    /// Of them malformed, or of a class that there is not.
    pub malformed: u64,
    /// Of them for a stream that was never opened, or of a class that no provider sends.
    pub misplaced: u64,
    /// Updates of an item whose image had not come; dropped.
    pub early_updates: u64,
    /// Requests for items, reissues aside; a batch counts for each of its items.
    pub requests: u64,
    /// Requests that were not answered in time.
    pub timeouts: u64,
    /// Items that were to be asked for again, for whatever reason.
    pub recoveries: u64,
    /// Connections that were logged in.
    pub logins: u64,
    /// Answers that were owed and dropped, as the provider does not read.
    pub dropped: u64,
}

/// A consumer: see the [module](self).
#[derive(Debug)]
pub struct Consumer {
    settings: Settings,
    /// The login request, encoded.
    login: Box<[u8]>,
    single_open: bool,
    /// Whether suspect data is wanted.
    takes_suspect: bool,
    answers_round_trips: bool,
    connection: Connection,
    directory: Directory,
    services: Services,
    list: Watchlist,
    timers: Timers<Timer>,
    posts: Posts,
    /// The number of the last batch.
    batches: u32,
    owed: Queue,
    /// Handles that are being told something; kept so that telling does not allocate.
    told: Vec<(Handle, u64)>,
    counters: Counters,
    now: Nanos,
}

impl Consumer {
    /// Bytes of memory for an item with a stream of its own, beside its name, group id and view.
    pub const BYTES_PER_ITEM: usize = Watchlist::BYTES_PER_ITEM + 2 * size_of::<(Nanos, Timer)>();

    /// A consumer that logs in with `login`. It wants to connect at its first `tick`.
    ///
    /// # Errors
    ///
    /// A login that no message can hold.
    pub fn new(settings: Settings, login: &LoginRequest<'_>) -> Result<Self, Refused> {
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
            counters: Counters::default(),
            now: Nanos(0),
        };
        consumer.take_login(login)?;
        Ok(consumer)
    }

    /// Whether items are asked for: the login is accepted, directory and dictionary are there.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.connection.link == Link::Ready
    }

    /// Whether it is over for good: the login was refused or closed, by either side.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.connection.link == Link::Ended
    }

    /// Whether the provider holds back updates of single items, as its login says: [`Reissue::is_paused`] has an effect.
    #[must_use]
    pub const fn can_pause(&self) -> bool {
        self.connection.features.pauses_items
    }

    /// The services that the provider has said there are.
    #[must_use]
    pub const fn directory(&self) -> &Directory {
        &self.directory
    }

    /// The dictionary that was downloaded last.
    #[must_use]
    pub const fn dictionary(&self) -> Option<&Arc<Dictionary>> {
        self.connection.dictionary.as_ref()
    }

    /// Items that are open.
    #[must_use]
    pub const fn items(&self) -> usize {
        self.list.len()
    }

    /// Streams that serve them; those that are being closed count too.
    #[must_use]
    pub const fn streams(&self) -> usize {
        self.list.streams()
    }

    /// What it has seen and done.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The time it was last told.
    #[must_use]
    pub const fn now(&self) -> Nanos {
        self.now
    }

    /// Whether the item is open, and its image has come.
    #[must_use]
    pub fn has_image(&self, item: Handle) -> bool {
        self.list.interest(item).is_some_and(|interest| interest.image == super::watchlist::Image::There)
    }

    /// Takes one message of the provider's.
    pub fn message(
        &mut self,
        now: Nanos,
        bytes: &[u8],
        out: &mut dyn Outbox,
        application: &mut dyn Application,
    ) {
        self.now = now;
        self.counters.messages += 1;
        if self.connection.link < Link::Login || self.connection.link == Link::Ended {
            self.counters.misplaced += 1;
            return;
        }
        match MessageView::parse(bytes) {
            Ok(message) => self.take(&message, bytes, out, application),
            Err(fault) => self.tell_malformed(fault, out, application),
        }
        self.send_all(out, application);
    }

    /// Does what is due at `now`, and sends what there is room for. Returns when it wants to be called again, if nothing
    /// happens before; `None` while it waits for what others do.
    pub fn tick(
        &mut self,
        now: Nanos,
        out: &mut dyn Outbox,
        application: &mut dyn Application,
    ) -> Option<Nanos> {
        self.now = now;
        self.connection_due(out, application);
        self.items_due(out, application);
        self.posts_due(out, application);
        self.send_all(out, application);
        [self.connection.due(), self.timers.due(), self.posts.due()].into_iter().flatten().min()
    }

    fn take(
        &mut self,
        message: &MessageView<'_>,
        bytes: &[u8],
        out: &mut dyn Outbox,
        app: &mut dyn Application,
    ) {
        // Whatever the key may say, the stream id says whose an answer is.
        let id = message.stream_id();
        let header = match message.class() {
            // The one class that comes in numbers is looked at no further than needed.
            MessageClass::UPDATE if id > DIRECTORY_STREAM => return self.update(message, out, app),
            MessageClass::ACK => match message.header() {
                Ok(Header::Ack(ack)) => return self.ack(&ack, out, app),
                Ok(_) => return,
                Err(fault) => return self.tell_malformed(fault, out, app),
            },
            MessageClass::REQUEST | MessageClass::CLOSE | MessageClass::POST => {
                self.counters.misplaced += 1;
                return;
            }
            _ => match message.header() {
                Ok(header) => header,
                Err(fault) => return self.tell_malformed(fault, out, app),
            },
        };
        match id {
            LOGIN_STREAM => self.login_message(message, &header, bytes, out, app),
            DIRECTORY_STREAM => self.directory_message(message, &header, out, app),
            _ if self.settings.downloads_dictionary && DICTIONARY_STREAMS.contains(&id) => {
                self.dictionary_message(message, &header, out, app);
            }
            _ => self.item_message(message, &header, out, app),
        }
    }

    fn tell_malformed(&mut self, fault: crate::Malformed, out: &mut dyn Outbox, app: &mut dyn Application) {
        self.counters.malformed += 1;
        app.event(self, out, Event::Malformed(fault));
    }

    /// What the consumer owes its peer goes out now or later; a peer that does not read gets no more than what waits.
    fn owe(&mut self, message: &[u8], out: &mut dyn Outbox) {
        let is_sent = self.owed.send_on(out) && out.send(message) != Sent::Full;
        if !is_sent && self.owed.send(message) != Sent::Queued {
            self.counters.dropped += 1;
        }
    }

    /// A message on a stream that is not open. The provider is told that nobody wants it: of one that was never opened; and
    /// where an image comes, which is of a stream that the provider holds open: a request may have crossed the loss of its
    /// service, with which it ended here. What else comes on one that was open before has crossed its close.
    fn close_unknown(&mut self, message: &MessageView<'_>, is_image: bool, out: &mut dyn Outbox) {
        self.counters.misplaced += 1;
        if is_image || !self.list.ids.was_open(message.stream_id()) {
            self.close_stream(message.domain(), message.stream_id(), out);
        }
    }
}
