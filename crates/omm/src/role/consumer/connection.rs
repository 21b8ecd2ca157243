//! Steps from no connection to item requests: login, directory, dictionary.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tapeline_nanos::Nanos;

use super::event::Wait;
use super::{Call, Consumer, ConsumerApplication, ConsumerEvent, DICTIONARY_STREAMS, DIRECTORY_STREAM};
use crate::domain::dictionary::{ENUMERATIONS, FIELDS};
use crate::domain::directory::{self, ServiceEntry, ServicePart};
use crate::domain::login::{BATCH_CLOSES, BATCH_REISSUES, BATCH_REQUESTS};
use crate::domain::{LOGIN_STREAM, LoginRefresh, RoundTrip};
use crate::role::loading::{Loaded, Loading};
use crate::role::{CLOSED, Outbox, Queue, SUSPECT, Sent, later};
use crate::rwf::{
    CloseHeader, DataState, DataType, Domain, Flags, Header, Key, MapAction, MessageView, RequestHeader,
    StreamState, flags,
};
use crate::{Dictionary, State};

/// Progress of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum LinkProgress {
    /// There is no connection.
    #[default]
    Down,
    /// A connection was requested.
    Connecting,
    /// The login was sent, or is to be sent.
    Login,
    /// The directory was requested.
    Directory,
    /// The dictionaries were requested, or will be when a service has them.
    Dictionary,
    /// Items are requested.
    Ready,
    /// The consumer has ended.
    Ended,
}

impl LinkProgress {
    /// Returns `true` from the login on, until the consumer has ended.
    pub(super) fn is_up(self) -> bool {
        (Self::Login..Self::Ended).contains(&self)
    }
}

/// Features of the provider, from its login refresh.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Features {
    pub(super) posts: bool,
    pub(super) views: bool,
    pub(super) pauses_items: bool,
    pub(super) batches: bool,
    pub(super) batch_reissues: bool,
    pub(super) batch_closes: bool,
    /// Bits of the supported standby modes.
    pub(super) standby: u64,
}

/// State of the current connection and of the attempts to connect.
#[derive(Debug, Default)]
pub(super) struct Connection {
    pub(super) link: LinkProgress,
    /// Connections since the last completed login.
    attempts: u32,
    /// Time to repeat what `link` waits for.
    again: Option<Nanos>,
    /// Time to give up what `link` waits for.
    give_up: Option<Nanos>,
    /// Time to request the directory again after it was closed.
    directory_again: Option<Nanos>,
    token_due: Option<Nanos>,
    pub(super) owes_login: bool,
    pub(super) features: Features,
    loading: Option<Box<Loading>>,
    pub(super) dictionary: Option<Arc<Dictionary>>,
    /// Services named so far by a new directory refresh, in one part or several.
    renewing: Option<HashSet<u16>>,
}

impl Connection {
    pub(super) fn due(&self) -> Option<Nanos> {
        [self.again, self.give_up, self.directory_again, self.token_due].into_iter().flatten().min()
    }
}

impl Consumer {
    /// Returns the time `wait` from now.
    pub(super) fn after(&self, wait: Duration) -> Nanos {
        later(self.now, wait)
    }

    /// Reports that the connection is established. Logs in.
    pub fn connected(&mut self, now: Nanos, out: &mut dyn Outbox) {
        self.now = now;
        if self.connection.link == LinkProgress::Ended {
            return;
        }
        self.connection.link = LinkProgress::Login;
        self.connection.give_up = Some(self.after(self.settings.login_timeout));
        self.connection.again = None;
        self.connection.owes_login = true;
        self.send_login(out);
    }

    /// Reports that the connection is lost or failed. Items become suspect, and another connection is requested after a
    /// wait.
    pub fn disconnected(&mut self, now: Nanos, application: &mut dyn ConsumerApplication) {
        self.now = now;
        if matches!(self.connection.link, LinkProgress::Down | LinkProgress::Ended) {
            return;
        }
        self.lose(application);
    }

    fn lose(&mut self, application: &mut dyn ConsumerApplication) {
        let connection = &mut self.connection;
        let failures = connection.attempts;
        *connection = Connection {
            attempts: failures,
            dictionary: connection.dictionary.take(),
            ..Connection::default()
        };
        self.connection.again = Some(self.after(self.settings.reconnect.after(failures)));
        self.owed = Queue::new(super::MOST_OWED);
        self.directory.clear();
        self.services.forget();
        // Nothing is sent without a connection.
        let call = &mut Call { out: &mut Queue::new(0), application };
        self.lose_items(call);
        if self.settings.reconnect_attempts.is_some_and(|most| failures >= most) {
            self.end(&State { text: b"No connection could be had.", ..CLOSED }, call);
        }
    }

    /// Requests the end of the connection, and another connection.
    fn drop_connection(&mut self, call: &mut Call<'_>) {
        call.event(self, ConsumerEvent::Disconnect);
        self.lose(call.application);
    }

    /// Ends the consumer.
    pub(super) fn end(&mut self, state: &State<'_>, call: &mut Call<'_>) {
        let dictionary = self.connection.dictionary.take();
        self.connection = Connection { link: LinkProgress::Ended, dictionary, ..Connection::default() };
        self.timers.clear();
        self.close_items(state, call);
        call.event(self, ConsumerEvent::Ended { state: *state });
    }

    /// Does the work that is due.
    pub(super) fn connection_due(&mut self, call: &mut Call<'_>) {
        let now = self.now;
        let is_due = |time: &mut Option<Nanos>| time.take_if(|time| *time <= now).is_some();
        if is_due(&mut self.connection.token_due) {
            call.event(self, ConsumerEvent::TokenDue);
        }
        if is_due(&mut self.connection.give_up) {
            let wait = match self.connection.link {
                LinkProgress::Login => Wait::Login,
                LinkProgress::Directory => Wait::Directory,
                _ => Wait::Dictionary,
            };
            call.event(self, ConsumerEvent::TimedOut(wait));
            self.drop_connection(call);
        }
        if is_due(&mut self.connection.directory_again) {
            self.ask_for_directory(call.out);
        }
        let begins = self.connection.link == LinkProgress::Down && self.connection.again.is_none();
        if is_due(&mut self.connection.again) || begins {
            match self.connection.link {
                LinkProgress::Down => {
                    self.connection.link = LinkProgress::Connecting;
                    let attempt = self.connection.attempts;
                    self.connection.attempts += 1;
                    call.event(self, ConsumerEvent::Connect { attempt });
                }
                LinkProgress::Login => self.connection.owes_login = true,
                LinkProgress::Directory => {
                    self.close_stream(Domain::SOURCE, DIRECTORY_STREAM, call.out);
                    self.ask_for_directory(call.out);
                }
                LinkProgress::Dictionary => self.ask_for_dictionaries(call.out),
                LinkProgress::Connecting | LinkProgress::Ready | LinkProgress::Ended => {}
            }
        }
        self.send_login(call.out);
    }

    pub(super) fn close_stream(&mut self, domain: Domain, id: i32, out: &mut dyn Outbox) {
        let mut close = [0; 16];
        if let Ok(len) = CloseHeader::new(domain, id).encode(&mut close) {
            self.owe(close.get(..len).unwrap_or_default(), out);
        }
    }

    /// Sends the login if it is pending and there is space.
    pub(super) fn send_login(&mut self, out: &mut dyn Outbox) {
        if self.connection.owes_login && out.send(&self.login) != Sent::Full {
            self.connection.owes_login = false;
        }
    }

    /// Processes a message on the login stream.
    pub(super) fn login_message(
        &mut self,
        message: &MessageView<'_>,
        header: &Header<'_>,
        bytes: &[u8],
        call: &mut Call<'_>,
    ) {
        if let Header::Generic(_) = header {
            return match RoundTrip::read(message) {
                Ok(Some(trip)) if self.answers_round_trips => {
                    // The same bytes, at once: other output that is queued waits for other reasons.
                    self.owe(bytes, call.out);
                    call.event(self, ConsumerEvent::RoundTrip(trip));
                }
                Ok(_) => call.event(self, ConsumerEvent::LoginGeneric(message)),
                Err(fault) => self.tell_malformed(fault, call),
            };
        }
        let Some(state) = header.state() else { return };
        call.event(self, ConsumerEvent::Login { message, state });
        match state.stream {
            StreamState::CLOSED | StreamState::REDIRECTED | StreamState::NON_STREAMING => {
                call.event(self, ConsumerEvent::Disconnect);
                return self.end(&State { stream: StreamState::CLOSED, ..state }, call);
            }
            StreamState::CLOSED_RECOVER if self.connection.link == LinkProgress::Login => {
                self.connection.again = Some(self.after(self.settings.login_again));
                return;
            }
            // The streams of the login are lost with it.
            StreamState::CLOSED_RECOVER => return self.drop_connection(call),
            _ => {}
        }
        let Header::Refresh(refresh) = header else { return };
        match LoginRefresh::read(refresh) {
            Ok(refresh) => self.login_refresh(&refresh, call.out),
            Err(fault) => self.tell_malformed(fault, call),
        }
    }

    fn login_refresh(&mut self, refresh: &LoginRefresh<'_>, out: &mut dyn Outbox) {
        let features = &refresh.features;
        if let Some(seconds) = features.authentication_tt_reissue {
            let end = Nanos(seconds.saturating_mul(1_000_000_000));
            let left = u64::try_from(end.since(self.now)).unwrap_or(0);
            let part = left / 100 * u64::from(self.settings.token_percent.clamp(1, 100));
            self.connection.token_due = Some(self.after(Duration::from_nanos(part)));
        }
        let is_accepted = refresh.flags.has(flags::refresh::SOLICITED)
            && refresh.state.stream == StreamState::OPEN
            && refresh.state.data == DataState::OK;
        if self.connection.link != LinkProgress::Login || !is_accepted {
            return;
        }
        self.connection.features = Features {
            posts: features.takes_posts(),
            views: features.serves_views(),
            pauses_items: features.pauses_items(),
            batches: features.batches(BATCH_REQUESTS),
            batch_reissues: features.batches(BATCH_REISSUES),
            batch_closes: features.batches(BATCH_CLOSES),
            standby: features.standby_modes(),
        };
        self.counters.logins += 1;
        self.connection.attempts = 0;
        self.connection.link = LinkProgress::Directory;
        self.connection.give_up = Some(self.after(self.settings.directory_timeout));
        self.ask_for_directory(out);
    }

    fn ask_for_directory(&mut self, out: &mut dyn Outbox) {
        let key = Key { filter: Some(self.settings.directory_filter), ..Key::default() };
        let header = RequestHeader {
            flags: flags::request::STREAMING,
            ..RequestHeader::new(Domain::SOURCE, DIRECTORY_STREAM, key)
        };
        let is_sent = matches!(out.encode(&mut |room| header.encode(room)), Ok(Sent::Queued));
        // Without space, the next tick comes when there is space.
        let again = if is_sent { self.after(self.settings.request_timeout) } else { self.now };
        match self.connection.link {
            LinkProgress::Directory => self.connection.again = Some(again),
            _ if !is_sent => self.connection.directory_again = Some(again),
            _ => {}
        }
    }

    /// Processes a message on the directory stream.
    pub(super) fn directory_message(
        &mut self,
        message: &MessageView<'_>,
        header: &Header<'_>,
        call: &mut Call<'_>,
    ) {
        if self.connection.link < LinkProgress::Directory {
            self.counters.misplaced += 1;
            return;
        }
        if let Some(StreamState::CLOSED | StreamState::CLOSED_RECOVER) =
            header.state().map(|state| state.stream)
        {
            let again = Some(self.after(self.settings.login_again));
            match self.connection.link {
                LinkProgress::Directory => self.connection.again = again,
                _ => self.connection.directory_again = again,
            }
        }
        if message.container() == DataType::MAP && matches!(header, Header::Refresh(_) | Header::Update(_)) {
            if let Header::Refresh(refresh) = header {
                self.forget_services(message, refresh.flags, call);
            }
            if let Err(fault) = self.take_services(message.payload(), call) {
                self.tell_malformed(fault, call);
            }
        }
        call.event(self, ConsumerEvent::Directory(message));
        if message.is_refresh_complete() && self.connection.link == LinkProgress::Directory {
            (self.connection.again, self.connection.give_up) = (None, None);
            if self.settings.downloads_dictionary {
                self.connection.link = LinkProgress::Dictionary;
                self.connection.give_up = Some(self.after(self.settings.dictionary_timeout));
                self.connection.loading = Some(Box::default());
            } else {
                self.be_ready(call);
            }
        }
        self.ask_for_dictionaries(call.out);
    }

    /// Removes the services that no part of a new directory names, after its last part. A directory that cannot be read
    /// completely removes nothing.
    fn forget_services(&mut self, message: &MessageView<'_>, of: Flags, call: &mut Call<'_>) {
        if of.has(flags::refresh::CLEAR_CACHE) {
            self.connection.renewing = Some(HashSet::new());
        }
        let Some(mut named) = self.connection.renewing.take() else { return };
        let Ok(services) = directory::services(message.payload()) else { return };
        for service in services {
            let Ok(service) = service else { return };
            named.insert(service.id);
        }
        if !of.has(flags::refresh::REFRESH_COMPLETE) {
            self.connection.renewing = Some(named);
            return;
        }
        let gone: Vec<_> =
            self.directory.services().map(|service| service.id).filter(|id| !named.contains(id)).collect();
        for id in gone {
            self.service_changed(&ServiceEntry::delete(id), call);
        }
    }

    fn take_services(&mut self, payload: &[u8], call: &mut Call<'_>) -> Result<(), crate::Malformed> {
        let mut outcome = Ok(());
        for service in directory::services(payload)? {
            match service {
                Ok(service) => self.service_changed(&service, call),
                Err(fault) => outcome = Err(fault),
            }
        }
        outcome
    }

    fn service_changed(&mut self, entry: &ServiceEntry, call: &mut Call<'_>) {
        self.directory.apply(entry);
        let mut gone = Vec::new();
        self.services.look_up(&self.directory, &mut gone);
        for id in gone {
            self.service_lost(id, call);
        }
        let parts = if entry.action == MapAction::DELETE { &[][..] } else { &entry.parts };
        for (_, part) in parts {
            let (group, status) = match part {
                ServicePart::State(state) => (None, &state.status),
                ServicePart::Group(group) if group.group.is_some() => (group.group.as_deref(), &group.status),
                _ => continue,
            };
            if let Some(status) = status {
                self.service_status(entry.id, group, &status.view(), call);
            }
            if let (ServicePart::Group(change), Some(group)) = (part, group)
                && let Some(merged) = &change.merged_to_group
            {
                self.merge_group(entry.id, group, merged);
            }
        }
        self.unblock_changed();
    }

    fn be_ready(&mut self, call: &mut Call<'_>) {
        (self.connection.again, self.connection.give_up) = (None, None);
        self.connection.link = LinkProgress::Ready;
        call.event(self, ConsumerEvent::Ready);
    }

    /// Requests both dictionaries from the first service that has them.
    fn ask_for_dictionaries(&mut self, out: &mut dyn Outbox) {
        if self.connection.link != LinkProgress::Dictionary {
            return;
        }
        let service = self.directory.services().find(|service| {
            let provided =
                service.info().and_then(|info| info.dictionaries_provided.as_deref()).unwrap_or_default();
            [FIELDS, ENUMERATIONS].iter().all(|kind| provided.iter().any(|name| name == kind))
        });
        let service = service.map(|service| service.id);
        if let (Some(service), Some(loading)) = (service, self.connection.loading.as_mut()) {
            let is_asked = loading.ask(DICTIONARY_STREAMS, service, out);
            // Without space, the next tick comes when there is space.
            self.connection.again = (!is_asked).then_some(self.now);
        }
    }

    /// Processes a message on a dictionary stream.
    pub(super) fn dictionary_message(
        &mut self,
        message: &MessageView<'_>,
        header: &Header<'_>,
        call: &mut Call<'_>,
    ) {
        // A complete dictionary that is still offered is downloaded again on the next connection.
        let Some(loading) = self.connection.loading.as_mut() else { return };
        match loading.message(message, header) {
            Ok(Loaded::More) => {}
            Ok(Loaded::Again) => {
                self.connection.loading = Some(Box::default());
                self.close_dictionaries(call.out);
                self.connection.again = Some(self.after(self.settings.login_again));
            }
            Ok(Loaded::All) => {
                if let Some(loading) = self.connection.loading.take() {
                    let dictionary = Arc::new(loading.finish());
                    self.connection.dictionary = Some(dictionary.clone());
                    call.event(self, ConsumerEvent::Dictionary(&dictionary));
                }
                self.be_ready(call);
            }
            Err(failed) => {
                self.connection.loading = None;
                self.close_dictionaries(call.out);
                call.event(self, ConsumerEvent::DictionaryFailed(&failed));
                self.be_ready(call);
            }
        }
    }

    fn close_dictionaries(&mut self, out: &mut dyn Outbox) {
        for id in DICTIONARY_STREAMS {
            self.close_stream(Domain::DICTIONARY, id, out);
        }
    }
}

/// Streams that belong to no item.
const _: () = assert!(LOGIN_STREAM < DIRECTORY_STREAM && DIRECTORY_STREAM < DICTIONARY_STREAMS[0]);
/// State that items receive while there is no connection.
pub(super) const NO_CONNECTION: State<'static> = State { text: b"The connection is lost.", ..SUSPECT };
