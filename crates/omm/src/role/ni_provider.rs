//! Non-interactive (NI) provider: connects to a distribution hub, logs in as a provider, and publishes unsolicited.
//!
//! There are no requests: after the login the provider sends its directory, then an image of each item and its updates,
//! on negative stream ids. An [`NiProvider`] outlives its connections, as a consumer does. It requests a connection,
//! and after each login it sends the directory and asks its application for the image of every item
//! ([`NiProviderEvent::ImageWanted`]), as space allows. It stores no images: the application has them.
//!
//! Memory: about a hundred bytes and the name for each item, up to [`NiProviderSettings::most_items`]. An update takes two table
//! lookups and no allocation.

mod event;
mod items;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tapeline_nanos::Nanos;

use super::consumer::Backoff;
use super::loading::{Loaded, Loading};
use super::watchlist::{Slots, StreamIds};
use super::{CLOSED, Outbox, Queue, Sent, encoded, later};
use crate::domain::directory::{ServiceEntry, filter};
use crate::domain::login::ROLE_PROVIDER;
use crate::domain::{Directory, LOGIN_STREAM, LoginRefresh, LoginRequest, directory};
use crate::rwf::{
    CloseHeader, DataState, DataType, Domain, Header, Key, MessageView, RefreshHeader, StreamState, flags,
};
use crate::{Dictionary, Refused, State};
use event::Call;
pub use event::{NiProviderApplication, NiProviderEvent};
use items::Item;
pub use items::{NotAdded, Publish};

/// Stream of the directory, which is unsolicited.
const DIRECTORY_STREAM: i32 = 0;
/// Streams of the dictionaries, which are the only requests.
const DICTIONARY_STREAMS: [i32; 2] = [3, 4];
/// Maximum bytes of closes that wait for space.
const MOST_OWED: usize = 4 << 10;

/// Time limits and other limits of an NI provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NiProviderSettings {
    /// Wait between connections: 1 s, doubling up to 5 s, as in the vendor's library.
    pub reconnect: Backoff,
    /// Maximum number of consecutive connections without a completed login; unlimited if `None`.
    pub reconnect_attempts: Option<u32>,
    /// Time limit for an accepted login: 45 s.
    pub login_timeout: Duration,
    /// Wait before a login that was closed to recover is tried again on the same connection: 1 s.
    pub login_again: Duration,
    /// Maximum number of items.
    pub most_items: usize,
    /// `true` to request the hub's dictionaries, if the hub offers them (`SupportProviderDictionaryDownload`).
    pub downloads_dictionary: bool,
    /// Filter of the published directory: information about the services, and their state.
    pub directory_filter: u32,
}

impl Default for NiProviderSettings {
    fn default() -> Self {
        let consumer = super::consumer::ConsumerSettings::default();
        Self {
            reconnect: consumer.reconnect,
            reconnect_attempts: None,
            login_timeout: consumer.login_timeout,
            login_again: consumer.login_again,
            most_items: 1_000_000,
            downloads_dictionary: false,
            directory_filter: filter::INFO | filter::STATE,
        }
    }
}

/// Progress of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Link {
    #[default]
    Down,
    Connecting,
    Login,
    /// The directory is to be sent.
    Directory,
    Ready,
    Ended,
}

/// An NI provider: see the [module](self).
#[derive(Debug)]
pub struct NiProvider {
    settings: NiProviderSettings,
    login: Box<[u8]>,
    directory: Directory,
    link: Link,
    attempts: u32,
    /// Time to connect, or to log in, again.
    again: Option<Nanos>,
    give_up: Option<Nanos>,
    owes_login: bool,
    loading: Option<Box<Loading>>,
    dictionary: Option<Arc<Dictionary>>,
    items: Slots<Item>,
    ids: StreamIds,
    /// Items whose image the application is to be asked for, with their turns.
    unpublished: VecDeque<(u32, u32)>,
    /// There was no space for an image.
    was_full: bool,
    owed: Queue,
    now: Nanos,
}

impl NiProvider {
    /// Creates a provider of these services that logs in with `login`; the role of the login is set to provider. It
    /// requests a connection at its first `tick`.
    ///
    /// # Errors
    ///
    /// Fails if no message can hold the login.
    pub fn new(
        settings: NiProviderSettings,
        login: &LoginRequest<'_>,
        services: &[ServiceEntry],
    ) -> Result<Self, Refused> {
        let mut provider = Self {
            settings,
            login: Box::default(),
            directory: Directory::new(),
            link: Link::Down,
            attempts: 0,
            again: None,
            give_up: None,
            owes_login: false,
            loading: None,
            dictionary: None,
            items: Slots::default(),
            ids: StreamIds::new(1),
            unpublished: VecDeque::new(),
            was_full: false,
            owed: Queue::new(MOST_OWED),
            now: Nanos(0),
        };
        for service in services {
            provider.directory.apply(service);
        }
        provider.take_login(login)?;
        Ok(provider)
    }

    /// Returns `true` if items can be published.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.link == Link::Ready
    }

    /// Returns `true` if the provider has ended: the login was refused or closed, by either side.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.link == Link::Ended
    }

    /// Returns the number of items that are published, or will be.
    #[must_use]
    pub const fn items(&self) -> usize {
        self.items.len()
    }

    /// Returns the hub's dictionary, as last downloaded.
    #[must_use]
    pub const fn dictionary(&self) -> Option<&Arc<Dictionary>> {
        self.dictionary.as_ref()
    }

    /// Returns the published services.
    #[must_use]
    pub const fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Reports that the connection is established. Logs in.
    pub fn connected(&mut self, now: Nanos, out: &mut dyn Outbox) {
        self.now = now;
        if self.link == Link::Ended {
            return;
        }
        (self.link, self.again, self.owes_login) = (Link::Login, None, true);
        self.give_up = Some(self.after(self.settings.login_timeout));
        self.send_login(out);
    }

    /// Reports that the connection is lost or failed. Another connection is requested after a wait.
    pub fn disconnected(&mut self, now: Nanos, application: &mut dyn NiProviderApplication) {
        self.now = now;
        if !matches!(self.link, Link::Down | Link::Ended) {
            self.lose(application);
        }
    }

    /// Processes one message from the hub.
    pub fn message(
        &mut self,
        now: Nanos,
        bytes: &[u8],
        out: &mut dyn Outbox,
        application: &mut dyn NiProviderApplication,
    ) {
        let call = &mut Call { out, application };
        self.now = now;
        if self.link < Link::Login || self.link == Link::Ended {
            return;
        }
        match MessageView::parse(bytes).and_then(|message| Ok((message, message.header()?))) {
            Ok((message, header)) => self.take(&message, &header, call),
            Err(fault) => call.event(self, NiProviderEvent::Malformed(fault)),
        }
        self.send_all(call);
    }

    /// Does the work that is due at `now`, and sends queued output. Returns the time of the next call, unless something
    /// happens before.
    pub fn tick(
        &mut self,
        now: Nanos,
        out: &mut dyn Outbox,
        application: &mut dyn NiProviderApplication,
    ) -> Option<Nanos> {
        let call = &mut Call { out, application };
        self.now = now;
        let is_due = |time: &mut Option<Nanos>| time.take_if(|time| *time <= now).is_some();
        if is_due(&mut self.give_up) {
            call.event(self, NiProviderEvent::TimedOut);
            self.drop_connection(call);
        }
        let begins = self.link == Link::Down && self.again.is_none();
        if is_due(&mut self.again) || begins {
            match self.link {
                Link::Down => {
                    self.link = Link::Connecting;
                    let attempt = self.attempts;
                    self.attempts += 1;
                    call.event(self, NiProviderEvent::Connect { attempt });
                }
                Link::Login => self.owes_login = true,
                _ => {}
            }
        }
        self.send_all(call);
        [self.again, self.give_up].into_iter().flatten().min()
    }

    /// Replaces the attributes of the login, for example the token, and sends the login if there is one.
    ///
    /// # Errors
    ///
    /// Fails if no message can hold the login: the old login stays.
    pub fn renew_login(&mut self, out: &mut dyn Outbox, login: &LoginRequest<'_>) -> Result<(), Refused> {
        self.take_login(login)?;
        if self.link >= Link::Login && self.link != Link::Ended {
            self.owes_login = true;
            self.send_login(out);
        }
        Ok(())
    }

    /// Changes a service, adds one, or removes one. [`Sent::Full`]: there is no space, and nothing changed; try again.
    /// [`Sent::NotOpen`]: there is no connection yet; the change is part of the next directory.
    ///
    /// # Errors
    ///
    /// Fails if no message can hold the service.
    pub fn change_service(&mut self, out: &mut dyn Outbox, change: &ServiceEntry) -> Result<Sent, Refused> {
        let mut write =
            |room: &mut [u8]| directory::encode_update(DIRECTORY_STREAM, filter::ALL, [change], room);
        let sent = if self.link == Link::Ready { out.encode(&mut write)? } else { Sent::NotOpen };
        if matches!(sent, Sent::Queued | Sent::NotOpen) {
            self.directory.apply(change);
        }
        Ok(sent)
    }

    /// Logs out: the hub marks the items as suspect, and the provider ends. Close the connection when the output is
    /// sent ([`NiProviderEvent::Disconnect`]).
    pub fn log_out(&mut self, out: &mut dyn Outbox, application: &mut dyn NiProviderApplication) {
        let call = &mut Call { out, application };
        if self.link >= Link::Login && self.link != Link::Ended {
            let close = CloseHeader::new(Domain::LOGIN, LOGIN_STREAM);
            let mut bytes = [0; 16];
            let len = close.encode(&mut bytes).unwrap_or(0);
            self.owe(bytes.get(..len).unwrap_or_default(), call.out);
            call.event(self, NiProviderEvent::Disconnect);
        }
        self.end(&State { text: b"Logged out.", ..CLOSED }, call);
    }

    fn after(&self, wait: Duration) -> Nanos {
        later(self.now, wait)
    }

    fn take_login(&mut self, login: &LoginRequest<'_>) -> Result<(), Refused> {
        let mut login = login.clone();
        login.attributes.role = Some(ROLE_PROVIDER);
        self.login = encoded(&login)?;
        Ok(())
    }

    fn send_login(&mut self, out: &mut dyn Outbox) {
        if self.owes_login && out.send(&self.login) != Sent::Full {
            self.owes_login = false;
        }
    }

    fn owe(&mut self, message: &[u8], out: &mut dyn Outbox) {
        if !self.owed.send_on(out) || out.send(message) == Sent::Full {
            // A hub that has read nothing for so long that the queue is full is not informed either.
            let _ = self.owed.send(message);
        }
    }

    fn lose(&mut self, application: &mut dyn NiProviderApplication) {
        (self.link, self.give_up, self.owes_login, self.loading) = (Link::Down, None, false, None);
        self.again = Some(self.after(self.settings.reconnect.after(self.attempts)));
        self.owed = Queue::new(MOST_OWED);
        self.unpublish();
        let call = &mut Call { out: &mut Queue::new(0), application };
        call.event(self, NiProviderEvent::Lost);
        if self.settings.reconnect_attempts.is_some_and(|most| self.attempts >= most) {
            self.end(&State { text: b"No connection could be had.", ..CLOSED }, call);
        }
    }

    fn drop_connection(&mut self, call: &mut Call<'_>) {
        call.event(self, NiProviderEvent::Disconnect);
        self.lose(call.application);
    }

    fn end(&mut self, state: &State<'_>, call: &mut Call<'_>) {
        (self.link, self.again, self.give_up, self.loading) = (Link::Ended, None, None, None);
        self.unpublish();
        call.event(self, NiProviderEvent::Ended { state: *state });
    }

    fn take(&mut self, message: &MessageView<'_>, header: &Header<'_>, call: &mut Call<'_>) {
        let id = message.stream_id();
        match header {
            Header::Refresh(_) | Header::Status(_) if id == LOGIN_STREAM => {
                self.login_message(message, header, call);
            }
            Header::Refresh(_) | Header::Status(_) if DICTIONARY_STREAMS.contains(&id) => {
                self.dictionary_message(message, header, call);
            }
            _ => {
                let item = self.item_of(id);
                call.event(self, NiProviderEvent::Message { item, message });
            }
        }
    }

    fn login_message(&mut self, message: &MessageView<'_>, header: &Header<'_>, call: &mut Call<'_>) {
        let Some(state) = header.state() else { return };
        call.event(self, NiProviderEvent::Login { message, state });
        match state.stream {
            StreamState::CLOSED | StreamState::REDIRECTED | StreamState::NON_STREAMING => {
                call.event(self, NiProviderEvent::Disconnect);
                return self.end(&state, call);
            }
            StreamState::CLOSED_RECOVER if self.link == Link::Login => {
                self.again = Some(self.after(self.settings.login_again));
                return;
            }
            StreamState::CLOSED_RECOVER => return self.drop_connection(call),
            _ => {}
        }
        let Header::Refresh(refresh) = header else { return };
        let is_accepted = state.stream == StreamState::OPEN && state.data == DataState::OK;
        if self.link != Link::Login || !is_accepted {
            return;
        }
        let has_dictionary = match LoginRefresh::read(refresh) {
            Ok(refresh) => refresh.features.support_provider_dictionary_download == Some(1),
            Err(fault) => {
                call.event(self, NiProviderEvent::Malformed(fault));
                false
            }
        };
        (self.link, self.attempts, self.again, self.give_up) = (Link::Directory, 0, None, None);
        if self.settings.downloads_dictionary && has_dictionary {
            self.loading = Some(Box::default());
        }
    }

    fn dictionary_message(&mut self, message: &MessageView<'_>, header: &Header<'_>, call: &mut Call<'_>) {
        let Some(loading) = self.loading.as_mut() else { return };
        match loading.message(message, header) {
            Ok(Loaded::More) => {}
            Ok(Loaded::All) => {
                if let Some(loading) = self.loading.take() {
                    let dictionary = Arc::new(loading.finish());
                    self.dictionary = Some(dictionary.clone());
                    call.event(self, NiProviderEvent::Dictionary(&dictionary));
                }
            }
            // Publishing does not wait for the dictionary: the next connection requests it again.
            Ok(Loaded::Again) => self.loading = None,
            Err(failed) => {
                self.loading = None;
                call.event(self, NiProviderEvent::DictionaryFailed(&failed));
            }
        }
    }

    fn send_all(&mut self, call: &mut Call<'_>) {
        self.send_login(call.out);
        if !self.owed.is_empty() && !self.owed.send_on(call.out) {
            return;
        }
        if self.link == Link::Directory && self.send_directory(call.out) {
            self.link = Link::Ready;
            call.event(self, NiProviderEvent::Ready);
        }
        if self.link != Link::Ready {
            return;
        }
        let service = self.directory.services().next().map(|service| service.id);
        if let (Some(loading), Some(service)) = (self.loading.as_mut(), service) {
            loading.ask(DICTIONARY_STREAMS, service, call.out);
        }
        self.ask_for_images(call);
    }

    /// Returns `true` if there was space.
    fn send_directory(&mut self, out: &mut dyn Outbox) -> bool {
        use flags::refresh as flag;
        let header = RefreshHeader {
            flags: flag::REFRESH_COMPLETE | flag::CLEAR_CACHE,
            key: Some(Key { filter: Some(self.settings.directory_filter), ..Key::default() }),
            ..RefreshHeader::new(
                Domain::SOURCE,
                DIRECTORY_STREAM,
                State { text: b"Source Directory Refresh Completed", ..State::OPEN_OK },
                DataType::MAP,
            )
        };
        let (services, filter) = (&self.directory, self.settings.directory_filter);
        let sent = out.encode(&mut |room| {
            header.encode_with(room, |room| directory::encode_services(services.services(), filter, room))
        });
        sent != Ok(Sent::Full)
    }
}
