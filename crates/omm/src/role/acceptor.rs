//! Acceptor: the end of a connection that non-interactive (NI) providers publish to.
//!
//! The provider logs in, sends its directory and then its items, unsolicited, on streams with negative ids of its own
//! choice. The application receives services, images, updates and status changes, each with service and name. It can
//! send posts and generic messages to the provider, and it serves dictionaries.
//!
//! ```
//! use tapeline_nanos::Nanos;
//! use tapeline_omm::domain::login::{LoginAttributes, ROLE_PROVIDER};
//! use tapeline_omm::domain::{LoginFeatures, LoginRequest};
//! use tapeline_omm::role::acceptor::{Acceptor, AcceptorEvent, AcceptorSettings};
//! use tapeline_omm::role::{Outbox, Queue};
//!
//! let (now, mut out) = (Nanos(0), Queue::new(65_536));
//! let mut acceptor = Acceptor::new(AcceptorSettings::default(), now);
//! let mut application = |acceptor: &mut Acceptor, out: &mut dyn Outbox, event: AcceptorEvent<'_>| match event {
//!     AcceptorEvent::Login { request, .. } if request.attributes.role == Some(ROLE_PROVIDER) => {
//!         acceptor.accept_login(out, &request, LoginFeatures::default()).expect("there are no attributes");
//!     }
//!     AcceptorEvent::Image { item, .. } => println!("service {:?}, {:?}", item.service_id, item.name),
//!     _ => {}
//! };
//!
//! let mut bytes = [0; 256];
//! let attributes = LoginAttributes { role: Some(ROLE_PROVIDER), ..LoginAttributes::default() };
//! let len = LoginRequest { attributes, ..LoginRequest::new(b"user") }.encode(&mut bytes)?;
//! acceptor.message(now, &bytes[..len], &mut out, &mut application)?;
//! assert!(acceptor.is_logged_in());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod published;

use std::collections::HashMap;
use std::sync::Arc;

use tapeline_nanos::Nanos;

use super::downloads::{Downloads, Progress};
pub use super::peer::ConnectionCounters;
use super::peer::{Login, Peer};
use super::{Outbox, Over, Sent, application};
use crate::domain::directory::ServiceEntry;
use crate::domain::post::{self, Nak};
use crate::domain::{
    DictionaryKind, DictionaryRequest, Directory, LoginFeatures, LoginRefresh, LoginRequest,
};
use crate::rwf::{
    AckHeader, Domain, GenericHeader, Header, MessageView, NakCode, PostHeader, RefreshHeader, RequestHeader,
    StateCode, StatusHeader, StreamState, UpdateHeader,
};
use crate::{Dictionary, Malformed, Refused, State};

use published::Published;
pub use published::PublishedItem;

/// Options of an NI provider's connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptorSettings {
    /// Time limit for the provider's login, milliseconds.
    pub login_timeout_ms: u64,
    /// Maximum number of items published at the same time; further items are ignored, and the provider is informed.
    pub most_items: u32,
    /// Maximum bytes of pending output for a provider that does not read; above it, the provider is disconnected.
    pub owed_bytes: usize,
    /// Maximum length of a message with a part of a dictionary, bytes.
    pub dictionary_part_bytes: usize,
}

impl Default for AcceptorSettings {
    fn default() -> Self {
        Self {
            login_timeout_ms: 30_000,
            most_items: 1_000_000,
            owed_bytes: 1 << 18,
            dictionary_part_bytes: 60_000,
        }
    }
}

/// Action of an NI provider.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AcceptorEvent<'a> {
    /// The provider logs in, or renews its login. Answer: [`Acceptor::accept_login`] or [`Acceptor::login_status`].
    Login {
        /// Login request; its role should be that of a provider.
        request: LoginRequest<'a>,
        /// `true` if the provider is logged in already.
        is_reissue: bool,
    },
    /// The provider sends data about a service, which [`Acceptor::directory`] contains already. Changes of groups are
    /// reported only here. Items of a deleted service stay; treat them as suspect.
    Service(&'a ServiceEntry),
    /// The provider starts a new directory: services that it does not send again are gone.
    DirectoryCleared,
    /// An image of an item, or a part of one.
    Image {
        /// The item.
        item: PublishedItem<'a>,
        /// Header of the message.
        header: RefreshHeader<'a>,
        /// The whole message.
        message: MessageView<'a>,
    },
    /// An update of an item.
    Update {
        /// The item.
        item: PublishedItem<'a>,
        /// Header of the message.
        header: UpdateHeader<'a>,
        /// The whole message.
        message: MessageView<'a>,
    },
    /// A status of an item. After a final state the item is no longer published.
    Status {
        /// The item.
        item: PublishedItem<'a>,
        /// Header of the message.
        header: StatusHeader<'a>,
        /// The whole message.
        message: MessageView<'a>,
    },
    /// The item is no longer published: its stream is used for another item from now on.
    Withdrawn {
        /// The item.
        item: PublishedItem<'a>,
    },
    /// The provider requests a dictionary. Answer: [`Acceptor::dictionary`], or [`Acceptor::refuse_dictionary`].
    Dictionary(DictionaryRequest<'a>),
    /// The provider acknowledges a post.
    Ack(AckHeader<'a>),
    /// The provider sends a generic message, on the login stream or on the stream of an item.
    Generic {
        /// Header of the message.
        header: GenericHeader<'a>,
        /// The whole message.
        message: MessageView<'a>,
    },
    /// The provider sent a malformed message. It was counted and otherwise ignored.
    Malformed(Malformed),
}

application! {
    /// Handles an event on the connection of `acceptor`.
    AcceptorApplication: Acceptor, AcceptorEvent
}

/// One connection of an NI provider. See the [module](self).
#[derive(Debug)]
pub struct Acceptor {
    settings: AcceptorSettings,
    peer: Peer,
    directory: Directory,
    /// `true` while the last part of a directory refresh has not arrived.
    is_directory_open: bool,
    items: HashMap<i32, Published>,
    /// Dictionary requests that are unanswered or stay open, by stream id, with the data for the answer.
    dictionaries: HashMap<i32, DictionaryRequest<'static>>,
    downloads: Downloads,
}

/// Maximum number of dictionary streams at the same time. A provider requests two.
const MOST_DICTIONARIES: usize = 16;

impl Acceptor {
    /// Creates the acceptor of a new connection.
    #[must_use]
    pub fn new(settings: AcceptorSettings, now: Nanos) -> Self {
        let peer = Peer::new(settings.owed_bytes, settings.login_timeout_ms, now);
        Self {
            settings,
            peer,
            directory: Directory::new(),
            is_directory_open: false,
            items: HashMap::new(),
            dictionaries: HashMap::new(),
            downloads: Downloads::default(),
        }
    }

    /// Returns `true` if the provider is logged in.
    #[must_use]
    pub fn is_logged_in(&self) -> bool {
        self.login_stream().is_some()
    }

    /// Returns the stream of the provider's login, for messages about none of its items; `None` until the provider is
    /// logged in.
    #[must_use]
    pub fn login_stream(&self) -> Option<i32> {
        match self.peer.login {
            Login::Open(stream_id) => Some(stream_id),
            _ => None,
        }
    }

    /// Returns the provider's services.
    #[must_use]
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Returns the items that are published now. At the end of the connection they become suspect.
    pub fn items(&self) -> impl ExactSizeIterator<Item = PublishedItem<'_>> {
        self.items.iter().map(|(id, item)| item.view(*id))
    }

    /// Returns the counters of the connection.
    #[must_use]
    pub fn counters(&self) -> ConnectionCounters {
        self.peer.counters
    }

    /// Processes one message. Fails if the connection is over: close it after the queued output is sent.
    pub fn message(
        &mut self,
        _now: Nanos,
        bytes: &[u8],
        out: &mut dyn Outbox,
        application: &mut dyn AcceptorApplication,
    ) -> Result<(), Over> {
        let call = &mut Call { out, application };
        self.peer.verdict()?;
        self.peer.counters.messages += 1;
        self.peer.settle(call.out);
        match MessageView::parse(bytes).and_then(|message| Ok((message, message.header()?))) {
            Ok((message, header)) => self.dispatch(&message, header, call),
            Err(fault) => self.malformed(fault, call),
        }
        self.peer.verdict()
    }

    /// Does the work that is due, and sends queued output. Returns the time of the next call, if there is one. Fails if
    /// the connection is over: close it.
    pub fn tick(
        &mut self,
        now: Nanos,
        out: &mut dyn Outbox,
        _application: &mut dyn AcceptorApplication,
    ) -> Result<Option<Nanos>, Over> {
        self.peer.verdict()?;
        self.go_on_with_downloads(out);
        let login_due = self.peer.login_due(now);
        self.peer.verdict()?;
        Ok(login_due)
    }

    fn malformed(&mut self, fault: Malformed, call: &mut Call<'_>) {
        self.peer.counters.malformed += 1;
        call.event(self, AcceptorEvent::Malformed(fault));
    }

    fn dispatch(&mut self, message: &MessageView<'_>, header: Header<'_>, call: &mut Call<'_>) {
        match header {
            Header::Request(request) => self.request(&request, call),
            Header::Close(close) => {
                if !self.peer.closes_login(call.out, &close) {
                    self.downloads.cancel(close.stream_id);
                    self.dictionaries.remove(&close.stream_id);
                    self.peer.acknowledge(call.out, &close);
                }
            }
            _ if !self.is_logged_in() => self.peer.counters.ignored += 1,
            Header::Refresh(_) | Header::Update(_) if message.domain() == Domain::SOURCE => {
                self.source(message, &header, call);
            }
            // The provider reports the state of its services by updates.
            Header::Status(_) if message.domain() == Domain::SOURCE => self.peer.counters.ignored += 1,
            Header::Refresh(_) | Header::Update(_) | Header::Status(_) => {
                self.published(message, &header, call);
            }
            Header::Ack(ack) => call.event(self, AcceptorEvent::Ack(ack)),
            Header::Generic(header) => {
                call.event(self, AcceptorEvent::Generic { header, message: *message });
            }
            Header::Post(header) => {
                self.peer.counters.refused += 1;
                if post::wants_ack(&header) {
                    let nak = Nak { code: NakCode::DENIED_BY_SRC, text: b"Posts are not taken here" };
                    self.peer.owe_ack(call.out, &post::ack(&header, Some(nak)));
                }
            }
        }
    }

    fn request(&mut self, request: &RequestHeader<'_>, call: &mut Call<'_>) {
        let at = (request.domain, request.stream_id);
        match request.domain {
            Domain::LOGIN => match self.peer.login_request(call.out, request) {
                Some(Ok((request, is_reissue))) => {
                    call.event(self, AcceptorEvent::Login { request, is_reissue });
                }
                Some(Err(fault)) => self.malformed(fault, call),
                None => {}
            },
            Domain::DICTIONARY if self.is_logged_in() && request.stream_id > 0 => {
                let request = DictionaryRequest::read(request);
                let is_known = self.dictionaries.contains_key(&request.stream_id);
                match DictionaryKind::named(request.name) {
                    Some(kind) if is_known || self.dictionaries.len() < MOST_DICTIONARIES => {
                        self.dictionaries.insert(request.stream_id, request.kept(kind));
                        call.event(self, AcceptorEvent::Dictionary(request));
                    }
                    _ => {
                        let text = "There is no such dictionary";
                        self.peer.refuse(call.out, at, StreamState::CLOSED, StateCode::NOT_FOUND, text);
                    }
                }
            }
            _ => {
                let text = "Nothing can be asked for here but dictionaries, after a login";
                self.peer.refuse(call.out, at, StreamState::CLOSED, StateCode::USAGE_ERROR, text);
            }
        }
    }

    /// Accepts the provider's login. Fails if no message can hold the attributes.
    pub fn accept_login(
        &mut self,
        out: &mut dyn Outbox,
        request: &LoginRequest<'_>,
        features: LoginFeatures<'_>,
    ) -> Result<Sent, Refused> {
        self.refresh_login(out, &LoginRefresh::accepting(request, features))
    }

    /// As [`Acceptor::accept_login`], with a refresh from the application. Fails if no message can hold the attributes.
    pub fn refresh_login(
        &mut self,
        out: &mut dyn Outbox,
        refresh: &LoginRefresh<'_>,
    ) -> Result<Sent, Refused> {
        self.peer.refresh_login(out, refresh)
    }

    /// Changes the state of the login. A final state refuses the login, or ends it: the connection is then over, as the
    /// next message or tick reports.
    pub fn login_status(&mut self, out: &mut dyn Outbox, state: State<'_>) -> Sent {
        self.peer.login_status(out, state)
    }

    /// Answers a dictionary request on the stream `stream_id`. Parts without space are sent by later ticks.
    pub fn dictionary(&mut self, out: &mut dyn Outbox, stream_id: i32, dictionary: &Arc<Dictionary>) -> Sent {
        let Some(request) = self.dictionaries.get(&stream_id) else { return Sent::NotOpen };
        let Some(kind) = DictionaryKind::named(request.name) else { return Sent::NotOpen };
        // The number of streams never exceeds the limit of downloads.
        if !self.downloads.begin(kind, request, dictionary) {
            return Sent::Full;
        }
        self.go_on_with_downloads(out);
        Sent::Queued
    }

    /// Refuses a dictionary request.
    pub fn refuse_dictionary(&mut self, out: &mut dyn Outbox, stream_id: i32, text: &str) -> Sent {
        if self.dictionaries.remove(&stream_id).is_none() {
            return Sent::NotOpen;
        }
        self.downloads.cancel(stream_id);
        let at = (Domain::DICTIONARY, stream_id);
        self.peer.refuse(out, at, StreamState::CLOSED, StateCode::NOT_FOUND, text);
        Sent::Queued
    }

    fn go_on_with_downloads(&mut self, out: &mut dyn Outbox) {
        while self.peer.settle(out) {
            match self.downloads.go_on(self.settings.dictionary_part_bytes, out) {
                Progress::Waits => return,
                Progress::Sent { stream_id, is_last } => {
                    let is_done =
                        self.dictionaries.get(&stream_id).is_some_and(|request| !request.is_streaming());
                    if is_last && is_done {
                        self.dictionaries.remove(&stream_id);
                    }
                }
                Progress::Failed { stream_id } => {
                    let text = "The dictionary has an entry that is too long to be sent";
                    let _ = self.refuse_dictionary(out, stream_id, text);
                }
            }
        }
    }

    /// Sends a post to the provider: on the stream of an item that it publishes, or on the login stream with a key. The
    /// acknowledgement arrives as [`AcceptorEvent::Ack`]. Fails if `write` refuses, or a member is too long.
    pub fn post(
        &mut self,
        out: &mut dyn Outbox,
        header: &PostHeader<'_>,
        write: &mut dyn FnMut(&mut [u8]) -> Result<usize, Refused>,
    ) -> Result<Sent, Refused> {
        self.send(header.stream_id, out, &mut |room| header.encode_with(room, &mut *write))
    }

    /// Sends a generic message to the provider, on the same streams as a post. Fails if `write` refuses, or a member is
    /// too long.
    pub fn generic(
        &mut self,
        out: &mut dyn Outbox,
        header: &GenericHeader<'_>,
        write: &mut dyn FnMut(&mut [u8]) -> Result<usize, Refused>,
    ) -> Result<Sent, Refused> {
        self.send(header.stream_id, out, &mut |room| header.encode_with(room, &mut *write))
    }

    fn send(
        &mut self,
        stream_id: i32,
        out: &mut dyn Outbox,
        write: &mut dyn FnMut(&mut [u8]) -> Result<usize, Refused>,
    ) -> Result<Sent, Refused> {
        if self.peer.login != Login::Open(stream_id) && !self.items.contains_key(&stream_id) {
            return Ok(Sent::NotOpen);
        }
        if !self.peer.settle(out) {
            return Ok(Sent::Full);
        }
        out.encode(write)
    }
}
