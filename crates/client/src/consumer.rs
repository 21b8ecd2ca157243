//! A consumer with its own event loop: request items, then take events one at a time.

mod event;
mod inbox;
#[cfg(feature = "tokio")]
mod owned;
mod sending;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tapeline_measure::{Nanos, monotonic_ns};
use tapeline_omm::Dictionary;
use tapeline_omm::dictionary::DictionaryError;
use tapeline_omm::domain::ServiceEntry;
use tapeline_omm::role::consumer as role;

use crate::Error;
use crate::connection::JsonSettings;
use crate::dialer::Dialer;
use crate::ema_config::{Config, Group};
use crate::endpoint::Endpoint;
use crate::login::Login;
use crate::request::Request;

pub use event::{Event, ItemMessage, LoginMessage, Refusal};
use inbox::Inbox;
#[cfg(feature = "tokio")]
pub use owned::OwnedEvent;

/// The longest wait between two turns.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// An item that a [`Consumer`] has requested. No other item of the consumer ever gets the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Item(u64);

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
    /// The number of the next item.
    next_item: u64,
}

impl Consumer {
    /// Creates a consumer of one server, such as `localhost:14002`, with default settings. [`Self::next`] opens the connection.
    ///
    /// # Errors
    /// The login does not fit in a message, or the system refuses to create the poller for sockets.
    pub fn connect(server: &str, login: &Login) -> Result<Self, Error> {
        Self::new(vec![Endpoint::plain(server)], login, role::ConsumerSettings::default())
    }

    /// Creates a consumer that connects to the first of several servers that accepts the connection.
    ///
    /// # Errors
    /// The login does not fit in a message, or the system refuses to create the poller for sockets.
    pub fn new(
        endpoints: Vec<Endpoint>,
        login: &Login,
        settings: role::ConsumerSettings,
    ) -> Result<Self, Error> {
        let dictionary = Arc::new(Dictionary::builtin().clone());
        Self::with(endpoints, login, settings, dictionary, JsonSettings::default())
    }

    /// Creates a consumer with the settings of a file: `EmaConfig.xml` unchanged, or the same settings in TOML. `name` is an entry of its
    /// consumers; without it, the file's default is used. Servers of a warm standby are tried one after the other.
    ///
    /// # Errors
    /// The file, a certificate or a dictionary cannot be read or has a fault; the errors of [`Self::new`].
    pub fn from_config(file: &Path, name: Option<&str>, login: &Login) -> Result<Self, Error> {
        let mut chosen = Config::load(file)?.choose(Group::Consumer, name)?;
        chosen.one_after_the_other();
        let settings = chosen.consumer();
        let dictionary = match &chosen.dictionary {
            Some((fields, enumerations)) => dictionary(fields, enumerations)?,
            None => Dictionary::builtin().clone(),
        };
        let login = match chosen.takes_round_trips {
            Some(takes) => &login.clone().with_round_trips(takes),
            None => login,
        };
        let endpoints: Result<Vec<_>, _> =
            std::mem::take(&mut chosen.hosts).into_iter().map(crate::ema_config::Host::endpoint).collect();
        Self::with(endpoints?, login, settings, Arc::new(dictionary), chosen.json)
    }

    fn with(
        endpoints: Vec<Endpoint>,
        login: &Login,
        settings: role::ConsumerSettings,
        dictionary: Arc<Dictionary>,
        json: JsonSettings,
    ) -> Result<Self, Error> {
        let role = role::Consumer::new(settings, &login.request())?;
        let dialer = Dialer::new(role, endpoints, Arc::clone(&dictionary), json)?;
        Ok(Self { dialer, inbox: Inbox::default(), dictionary, next_item: 0 })
    }

    /// Requests MarketPrice items of a service by name. Items that are lost are requested again.
    ///
    /// # Errors
    /// A name does not fit in a message; no item is requested.
    pub fn subscribe(&mut self, service: &str, items: &[&str]) -> Result<Vec<Item>, Error> {
        self.request_all(&Request::new(service, ""), items)
    }

    /// Requests one item.
    ///
    /// # Errors
    /// The request does not fit in a message, or too many items are open.
    pub fn request(&mut self, request: &Request<'_>) -> Result<Item, Error> {
        let handle = self.dialer.role().open(&request.of_item(self.next_item))?;
        let name = String::from_utf8_lossy(request.name());
        Ok(self.add(&name, &request.service().into(), handle))
    }

    /// Requests items that differ only in their names: in one message, a batch, if the provider accepts batches. The name of `request` is not
    /// used.
    ///
    /// # Errors
    /// A request does not fit in a message, or too many items are open; no item is requested.
    pub fn request_all(&mut self, request: &Request<'_>, names: &[&str]) -> Result<Vec<Item>, Error> {
        let bytes: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        let handles = self.dialer.role().open_batch(&request.of_item(self.next_item), &bytes)?;
        let service = request.service().into();
        Ok(names.iter().zip(handles).map(|(name, handle)| self.add(name, &service, handle)).collect())
    }

    fn add(&mut self, name: &str, service: &Arc<str>, handle: role::Handle) -> Item {
        let number = self.next_item;
        self.next_item += 1;
        self.inbox.add(number, name, service, handle);
        Item(number)
    }

    /// Changes an open item: view, priority, paused or not, a new image. All four are as in `request`; the rest of `request` is not used.
    /// Returns `false` if the item is not open.
    pub fn reissue(&mut self, item: Item, request: &Request<'_>) -> bool {
        let handle = self.inbox.handle(item);
        handle.is_some_and(|handle| self.dialer.role().reissue(handle, &request.of_reissue()))
    }

    /// Closes an item: there are no more events of it. Returns `false` if it was not open.
    pub fn unsubscribe(&mut self, item: Item) -> bool {
        let Some(handle) = self.inbox.close(item.0) else { return false };
        self.inbox.events.retain(|event| event.item() != Some(item.0));
        self.dialer.role().close(handle)
    }

    /// Returns the services that the server has announced.
    pub fn services(&mut self) -> impl Iterator<Item = &ServiceEntry> {
        self.dialer.role().directory().services()
    }

    /// Returns the dictionary: the built-in one, that of the configuration, or the last one that the provider sent.
    #[must_use]
    pub fn dictionary(&self) -> &Dictionary {
        &self.dictionary
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
        while !self.turn(deadline)? {
            if monotonic_ns() >= deadline.0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Does what is due if no event is left, then waits once: until something is received, until the next work is due, until `deadline`, or
    /// until the waker is called. Returns `true` if there is an event; it may not be received yet if there is none.
    pub(crate) fn turn(&mut self, deadline: Nanos) -> Result<bool, Error> {
        if !self.inbox.events.is_empty() {
            return Ok(true);
        }
        if let Some(why) = &self.inbox.ended {
            return Err(Error::Ended(why.clone()));
        }
        self.inbox.clear();
        let now = Nanos(monotonic_ns());
        let next = self.dialer.turn(now, &mut self.inbox);
        if let Some(new) = self.inbox.dictionary.take() {
            self.dictionary = new;
        }
        if !self.inbox.events.is_empty() {
            return Ok(true);
        }
        if self.inbox.ended.is_none() {
            let next = next.unwrap_or(deadline).min(deadline);
            let due = Duration::from_nanos(next.0.saturating_sub(now.0));
            self.dialer.wait(due.min(LONGEST_WAIT))?;
        }
        Ok(false)
    }

    /// Returns a waker that ends the wait of [`Self::turn`].
    #[cfg(feature = "tokio")]
    pub(crate) fn waker(&self) -> Result<tapeline_wire::rssl::Waker, Error> {
        self.dialer.waker()
    }

    /// Returns the next event that was received, with copies of all that it borrows.
    #[cfg(feature = "tokio")]
    pub(crate) fn take_owned(&mut self) -> Option<OwnedEvent> {
        let waiting = self.inbox.events.pop_front()?;
        let named = waiting.item().and_then(|item| self.inbox.items.get(&item));
        let names = named.map(|named| (Arc::clone(&named.name), Arc::clone(&named.service)));
        let bytes = self.inbox.bytes.get(waiting.bytes())?.into();
        Some(OwnedEvent { waiting, names, bytes, dictionary: Arc::clone(&self.dictionary) })
    }

    fn take(&mut self) -> Option<Event<'_>> {
        self.inbox.last = self.inbox.events.pop_front();
        let Inbox { last, bytes, items, .. } = &self.inbox;
        let last = last.as_ref()?;
        let named = last.item().and_then(|item| items.get(&item));
        let names = named.map_or(("", ""), |named| (&*named.name, &*named.service));
        last.event(bytes.get(last.bytes())?, names, &self.dictionary)
    }
}

/// The largest dictionary file, in bytes: ten times LSEG's own.
const MOST_DICTIONARY: u64 = 64 << 20;

/// Reads the two files of a dictionary: the fields, and the enumerations.
fn dictionary(fields: &Path, enumerations: &Path) -> Result<Dictionary, Error> {
    let fault = |path: &Path, fault: DictionaryError| Error::Line {
        file: path.display().to_string(),
        line: fault.line,
        what: fault.problem.to_string(),
        hint: String::new(),
    };
    let text = |path| crate::xml::text(path, MOST_DICTIONARY, "a dictionary");
    let read = Dictionary::parse(&text(fields)?).map_err(|error| fault(fields, error))?;
    read.with_enumerations(&text(enumerations)?).map_err(|error| fault(enumerations, error))
}
