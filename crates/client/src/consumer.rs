//! A consumer with its own event loop: subscribe, then take events one at a time.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tapeline_measure::{Nanos, monotonic_ns};
use tapeline_omm::role::consumer::{self as role, ConsumerApplication, ItemRequest, ServiceName};
use tapeline_omm::role::{Outbox, consumer};
use tapeline_omm::rwf::{Container, MessageClass, MessageView};
use tapeline_omm::{Dictionary, Fid, FieldList, Malformed, Real, Value};

use crate::Error;
use crate::connection::JsonSettings;
use crate::dialer::{ConnectionEvent, Dialer, Dialing};
use crate::endpoint::Endpoint;
use crate::login::Login;

/// An event of a [`Consumer`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The connection is open, and the consumer logs in.
    Connected {
        /// The server, as the user wrote it.
        server: &'a str,
    },
    /// There is no connection, or the connection is lost, or the server has ended the login. The consumer reconnects by itself, unless the server
    /// has forbidden it; items keep their last values, which may be stale.
    Disconnected {
        /// The server, as the user wrote it.
        server: &'a str,
        /// The reason.
        reason: &'a str,
    },
    /// The login is accepted and the services are known; the consumer requests its items.
    Ready,
    /// An image, an update or a status of an item.
    Message(ItemMessage<'a>),
    /// The state of an item changed without a message, for example because the connection was lost.
    State {
        /// The item's service.
        service: &'a str,
        /// The item's name.
        item: &'a str,
        /// The new state, as text.
        state: &'a str,
    },
    /// Information for the user.
    Note(&'a str),
}

/// A message of an item.
#[derive(Clone, Copy, Debug)]
pub struct ItemMessage<'a> {
    /// The item's service.
    pub service: &'a str,
    /// The item's name.
    pub item: &'a str,
    /// The message.
    pub message: MessageView<'a>,
    /// The whole message, as RWF.
    pub bytes: &'a [u8],
    /// The dictionary of the server, or the built-in one until the server has sent its own.
    pub dictionary: &'a Dictionary,
}

impl<'a> ItemMessage<'a> {
    /// Returns `true` if the message is an image: all fields, which replace earlier values.
    #[must_use]
    pub fn is_image(&self) -> bool {
        self.message.class() == MessageClass::REFRESH
    }

    /// Returns `true` if the message is an update: the fields that changed.
    #[must_use]
    pub fn is_update(&self) -> bool {
        self.message.class() == MessageClass::UPDATE
    }

    /// Returns the fields of the message; an empty list if the message has other contents.
    ///
    /// # Errors
    /// A field list that is malformed at its start.
    pub fn fields(&self) -> Result<FieldList<'a>, Malformed> {
        match self.message.open()? {
            Container::FieldList(list) => Ok(list),
            _ => FieldList::parse(&[]),
        }
    }

    /// Returns a field as a decimal number; `None` if the field is missing, blank or malformed.
    #[must_use]
    pub fn real(&self, fid: Fid) -> Option<Real> {
        self.fields().ok()?.find(fid).ok()??.real().ok()?
    }

    /// Returns the value of a field by its name in the dictionary; `None` if the message does not have the field.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<Value<'a>> {
        let field = self.dictionary.field_named(name)?;
        self.fields().ok()?.find(field.fid).ok()??.value(field.data_type).ok()
    }
}

/// Writes the item, the kind of message and its contents as readable text.
impl fmt::Display for ItemMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.item.escape_debug(), self.message.class())?;
        if let Some(state) = self.message.header().ok().and_then(|header| header.state()) {
            write!(f, " {state}")?;
        }
        match self.message.open() {
            Ok(Container::NoData) => Ok(()),
            Ok(Container::FieldList(list)) => write!(f, " {}", list.render(self.dictionary)),
            Ok(container) => {
                write!(f, " {}", container.outline(self.dictionary).to_string().replace('\n', " "))
            }
            Err(fault) => write!(f, " <{fault}>"),
        }
    }
}

/// A consumer of items, with its own connection and event loop.
///
/// ```no_run
/// use tapeline_client::{Consumer, Event, Login};
/// use tapeline_omm::fid;
///
/// let mut consumer = Consumer::connect("localhost:14002", &Login::user("me"))?;
/// consumer.subscribe("TAPELINE", &["AAPL"])?;
/// loop {
///     if let Event::Message(message) = consumer.next()?
///         && let Some(bid) = message.real(fid::BID)
///     {
///         println!("{} {bid}", message.item);
///     }
/// }
/// # Ok::<(), tapeline_client::Error>(())
/// ```
#[derive(Debug)]
pub struct Consumer {
    dialer: Dialer<role::Consumer>,
    inbox: Inbox,
    dictionary: Arc<Dictionary>,
}

/// Events that were received and not taken yet. A turn runs only when no event is left.
#[derive(Debug, Default)]
struct Inbox {
    events: VecDeque<Waiting>,
    /// The event that was taken last, from which the caller borrows.
    last: Option<Waiting>,
    /// The bytes and texts of the events.
    bytes: Vec<u8>,
    items: Vec<Item>,
    dictionary: Option<Arc<Dictionary>>,
    /// The server of the open connection.
    server: String,
    /// Why the server or the consumer gives up the connection, until the connection is closed.
    reason: String,
    ended: Option<String>,
}

/// A requested item, by the number that its events carry.
#[derive(Debug)]
struct Item {
    service: Arc<str>,
    name: String,
}

#[derive(Debug)]
enum Waiting {
    Connected(String),
    Disconnected { server: String, reason: String },
    Ready,
    Message { item: usize, bytes: Range<usize> },
    State { item: usize, state: String },
    Note(String),
}

impl Consumer {
    /// Creates a consumer of one server, such as `localhost:14002`, with default settings. [`Self::next`] opens the connection.
    ///
    /// # Errors
    /// The login does not fit in a message, or the system refuses to create the poller for sockets.
    pub fn connect(server: &str, login: &Login) -> Result<Self, Error> {
        Self::new(vec![Endpoint::plain(server)], login, consumer::ConsumerSettings::default())
    }

    /// Creates a consumer that connects to the first of several servers that accepts the connection.
    ///
    /// # Errors
    /// The login does not fit in a message, or the system refuses to create the poller for sockets.
    pub fn new(
        endpoints: Vec<Endpoint>,
        login: &Login,
        settings: consumer::ConsumerSettings,
    ) -> Result<Self, Error> {
        let role = role::Consumer::new(settings, &login.request())?;
        let dictionary = Arc::new(Dictionary::builtin().clone());
        let dialer = Dialer::new(role, endpoints, Arc::clone(&dictionary), JsonSettings::default())?;
        Ok(Self { dialer, inbox: Inbox::default(), dictionary })
    }

    /// Requests MarketPrice items of a service by name. Items that are lost are requested again.
    ///
    /// # Errors
    /// A name does not fit in a message; [`Error::NotOpened`] if the session is over.
    pub fn subscribe(&mut self, service: &str, items: &[&str]) -> Result<(), Error> {
        self.request(service, items, true)
    }

    /// Requests one image of each MarketPrice item of a service; there are no updates after the image.
    ///
    /// # Errors
    /// Those of [`Self::subscribe`].
    pub fn snapshot(&mut self, service: &str, items: &[&str]) -> Result<(), Error> {
        self.request(service, items, false)
    }

    fn request(&mut self, service: &str, items: &[&str], is_streaming: bool) -> Result<(), Error> {
        let shared: Arc<str> = service.into();
        for name in items {
            let closure = self.inbox.items.len() as u64;
            let request = ItemRequest::new(ServiceName::Name(service), name.as_bytes());
            self.dialer.role().open(&ItemRequest { closure, is_streaming, ..request })?;
            self.inbox.items.push(Item { service: Arc::clone(&shared), name: (*name).to_owned() });
        }
        Ok(())
    }

    /// Returns the next event; waits until there is one.
    ///
    /// # Errors
    /// [`Error::Ended`] once the session is over for good, or the system refuses to wait for sockets.
    #[expect(clippy::should_implement_trait, reason = "the event borrows from the consumer")]
    pub fn next(&mut self) -> Result<Event<'_>, Error> {
        while !self.is_filled(Duration::MAX)? {}
        self.take().ok_or_else(|| Error::Ended("there is no event".to_owned()))
    }

    /// Returns the next event; waits for at most `timeout`, and returns `None` if there is no event by then.
    ///
    /// # Errors
    /// Those of [`Self::next`].
    pub fn poll(&mut self, timeout: Duration) -> Result<Option<Event<'_>>, Error> {
        Ok(if self.is_filled(timeout)? { self.take() } else { None })
    }

    /// Logs out and closes the connection.
    pub fn close(mut self) {
        let Self { dialer, inbox, .. } = &mut self;
        dialer.act(|consumer, out| consumer.log_out(out, inbox));
        dialer.flush();
        dialer.close();
    }

    /// Waits for an event for at most `timeout`. Returns `true` if there is one.
    fn is_filled(&mut self, timeout: Duration) -> Result<bool, Error> {
        let timeout = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let deadline = Nanos(monotonic_ns().saturating_add(timeout));
        if self.inbox.events.is_empty() {
            // With a timeout of zero there is no other wait, and nothing would ever be received.
            self.dialer.wait(Duration::ZERO)?;
        }
        while self.inbox.events.is_empty() {
            if let Some(why) = self.inbox.ended.take() {
                return Err(Error::Ended(why));
            }
            self.inbox.bytes.clear();
            let now = Nanos(monotonic_ns());
            let next = self.dialer.turn(now, &mut self.inbox);
            if let Some(new) = self.inbox.dictionary.take() {
                self.dictionary = new;
            }
            if !self.inbox.events.is_empty() || self.inbox.ended.is_some() {
                continue;
            }
            if now >= deadline {
                return Ok(false);
            }
            let next = next.unwrap_or(deadline).min(deadline);
            let due = Duration::from_nanos(next.0.saturating_sub(now.0));
            self.dialer.wait(due.min(LONGEST_WAIT))?;
        }
        Ok(true)
    }

    fn take(&mut self) -> Option<Event<'_>> {
        self.inbox.last = self.inbox.events.pop_front();
        let Inbox { last, bytes, items, .. } = &self.inbox;
        let named =
            |item: usize| items.get(item).map_or(("", ""), |item| (&*item.service, item.name.as_str()));
        Some(match last.as_ref()? {
            Waiting::Connected(server) => Event::Connected { server },
            Waiting::Disconnected { server, reason } => Event::Disconnected { server, reason },
            Waiting::Ready => Event::Ready,
            Waiting::Message { item, bytes: range } => {
                // The message was parsed when it was received.
                let bytes = bytes.get(range.clone())?;
                let message = MessageView::parse(bytes).ok()?;
                let (service, item) = named(*item);
                Event::Message(ItemMessage { service, item, message, bytes, dictionary: &self.dictionary })
            }
            Waiting::State { item, state } => {
                let (service, item) = named(*item);
                Event::State { service, item, state }
            }
            Waiting::Note(text) => Event::Note(text),
        })
    }
}

/// The longest wait between two turns.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

impl Dialing<role::Consumer> for Inbox {
    fn connection(&mut self, _role: &mut role::Consumer, event: ConnectionEvent<'_>) {
        self.events.push_back(match event {
            ConnectionEvent::Connected { server, .. } => {
                (self.server, self.reason) = (server.to_owned(), String::new());
                Waiting::Connected(server.to_owned())
            }
            ConnectionEvent::Disconnected { server, reason } => {
                Waiting::Disconnected { server: server.to_owned(), reason: reason.to_owned() }
            }
            ConnectionEvent::Note(note) => Waiting::Note(note.to_string()),
        });
    }
}

impl ConsumerApplication for Inbox {
    fn event(
        &mut self,
        _consumer: &mut role::Consumer,
        _out: &mut dyn Outbox,
        event: role::ConsumerEvent<'_>,
    ) {
        use role::ConsumerEvent;
        let waiting = match event {
            ConsumerEvent::Ready => Waiting::Ready,
            ConsumerEvent::Login { state, .. } => {
                self.reason = state.to_string();
                return;
            }
            // The connection is closed without an event of its own.
            ConsumerEvent::Disconnect => Waiting::Disconnected {
                server: self.server.clone(),
                reason: std::mem::take(&mut self.reason),
            },
            ConsumerEvent::Message { closure, message, .. } => {
                let start = self.bytes.len();
                message.append_to(&mut self.bytes);
                Waiting::Message { item: closure as usize, bytes: start..self.bytes.len() }
            }
            ConsumerEvent::State { closure, state, .. } => {
                Waiting::State { item: closure as usize, state: state.to_string() }
            }
            ConsumerEvent::Ended { state } => {
                self.ended = Some(state.to_string());
                return;
            }
            ConsumerEvent::Dictionary(dictionary) => {
                self.dictionary = Some(Arc::clone(dictionary));
                return;
            }
            ConsumerEvent::TimedOut(wait) => {
                self.reason = format!("the server does not answer: {wait:?}");
                return;
            }
            ConsumerEvent::Malformed(fault) => Waiting::Note(format!("a message cannot be read: {fault}")),
            ConsumerEvent::DictionaryFailed(failed) => {
                Waiting::Note(format!("there is no dictionary: {failed}"))
            }
            _ => return,
        };
        self.events.push_back(waiting);
    }
}
