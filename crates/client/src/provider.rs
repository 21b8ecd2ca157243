//! An interactive provider with its own event loop: it serves items to the consumers that request them.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tapeline_measure::{Nanos, monotonic_ns};
use tapeline_omm::domain::directory::ServiceState;
use tapeline_omm::domain::login::{BATCH_CLOSES, BATCH_REQUESTS};
use tapeline_omm::domain::{Directory, LoginFeatures, ServiceEntry};
use tapeline_omm::role::provider::{self as role, ProviderApplication, RequestedItem, StreamHandle};
use tapeline_omm::role::{Outbox, Sent};
use tapeline_omm::rwf::{DataState, DataType, Domain, StateCode, StatusHeader, StreamState, UpdateType};
use tapeline_omm::{Dictionary, Fid, Refused, State, Value};
use tapeline_wire::rssl::{ConnectionId, ConnectionSettings, Negotiated, Reactor, Sender};

use crate::Error;
use crate::connection::{JsonSettings, MOST_MALFORMED, RoleConnection, Side};
use crate::server::{Connections, Serve};
use crate::values::{self, LastValues};

/// The number of the service.
const SERVICE_ID: u16 = 1;
/// The longest wait between two turns.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// An action of a consumer of a [`Provider`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// A user has logged in.
    LoggedIn(String),
    /// A consumer has requested an item that has no values yet. Answer with [`Provider::publish`] or [`Provider::close_item`].
    Opened {
        /// The item's name.
        item: String,
        /// `true` if the consumer wants one image and no updates.
        is_snapshot: bool,
    },
    /// Information for the user about a consumer's JSON.
    Note(String),
    /// A consumer's connection is closed.
    Closed {
        /// The user's name.
        user: String,
        /// The reason.
        reason: String,
    },
}

/// A provider that serves the items of one service to every consumer that connects. It keeps the last value of each field for images.
///
/// ```no_run
/// use std::time::Duration;
/// use tapeline_client::{Provider, Request};
/// use tapeline_omm::{Real, fid};
///
/// let mut provider = Provider::listen("127.0.0.1:14002".parse().unwrap(), "DIRECT_FEED")?;
/// loop {
///     if let Some(Request::Opened { item, .. }) = provider.poll(Duration::from_secs(1))? {
///         provider.publish(&item, &[(fid::BID, Real::decimal(3991, 2).into())])?;
///     }
/// }
/// # Ok::<(), tapeline_client::Error>(())
/// ```
#[derive(Debug)]
pub struct Provider {
    reactor: Reactor,
    connections: Connections<Market>,
    market: Market,
    address: SocketAddr,
}

/// The state that all consumers share.
#[derive(Debug)]
struct Market {
    services: Directory,
    dictionary: Arc<Dictionary>,
    items: HashMap<String, LastValues>,
    requests: VecDeque<Request>,
}

/// A consumer's connection.
#[derive(Debug)]
struct Client {
    role: role::Provider,
    messages: RoleConnection,
    user: String,
    /// The item of each open stream.
    streams: HashMap<StreamHandle, String>,
    /// Streams whose image is to be sent, or sent again because an update found no capacity.
    owed: VecDeque<StreamHandle>,
}

impl Provider {
    /// Listens on an address, and serves prices as items of the named service.
    ///
    /// # Errors
    /// The port is not available.
    pub fn listen(address: SocketAddr, service: &str) -> Result<Self, Error> {
        let settings = ConnectionSettings {
            guaranteed_output_buffers: 200,
            connection_ping_timeout: 60,
            ..ConnectionSettings::default()
        };
        Self::listen_with(address, service, settings)
    }

    /// Does the same as [`Self::listen`], with other connection settings: TLS, compression, buffers.
    ///
    /// # Errors
    /// The port is not available.
    pub fn listen_with(
        address: SocketAddr,
        service: &str,
        settings: ConnectionSettings,
    ) -> Result<Self, Error> {
        let mut reactor = Reactor::new(1_000)?;
        let address = reactor.listen(address, &Arc::new(settings))?;
        let mut info = values::service(service);
        info.dictionaries_provided.clone_from(&info.dictionaries_used);
        let mut services = Directory::new();
        services.apply(&ServiceEntry::new(SERVICE_ID, info, ServiceState::UP));
        let market = Market {
            services,
            dictionary: Arc::new(Dictionary::builtin().clone()),
            items: HashMap::new(),
            requests: VecDeque::new(),
        };
        Ok(Self { reactor, connections: Connections::default(), market, address })
    }

    /// Returns the address on which the provider listens, with the port that the system chose if port 0 was requested.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Publishes fields of an item: an image to consumers that wait for one, an update to consumers that have one.
    ///
    /// # Errors
    /// The values do not fit in a message.
    pub fn publish(&mut self, item: &str, fields: &[(Fid, Value<'_>)]) -> Result<(), Error> {
        let fields = values::encode(fields)?;
        self.market.items.entry(item.to_owned()).or_default().merge(&fields)?;
        for (id, client) in &mut self.connections.open {
            if let Some(mut sender) = self.reactor.sender(*id) {
                client.update(&self.market, &mut sender, item, &fields);
            }
        }
        self.reactor.flush();
        Ok(())
    }

    /// Closes an item for all consumers that have it open or wait for it, with `why` as the reason. A consumer whose connection has no capacity
    /// at this moment keeps its stream, which has no more updates.
    pub fn close_item(&mut self, item: &str, why: &str) {
        self.market.items.remove(item);
        let now = Nanos(monotonic_ns());
        let header = not_found(Domain::MARKET_PRICE, why.as_bytes());
        for (id, client) in &mut self.connections.open {
            let Some(mut sender) = self.reactor.sender(*id) else { continue };
            let Client { role, messages, streams, .. } = client;
            let mut out = messages.outbox(&mut sender);
            streams.retain(|stream, name| {
                name != item || !matches!(role.status(now, &mut out, *stream, &header), Ok(Sent::Queued))
            });
        }
    }

    /// Returns the next request; waits for at most `timeout`. Handles what has arrived in any case.
    ///
    /// # Errors
    /// The system refuses to wait for sockets.
    pub fn poll(&mut self, timeout: Duration) -> Result<Option<Request>, Error> {
        let timeout = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let deadline = Nanos(monotonic_ns().saturating_add(timeout));
        self.reactor.wait(Duration::ZERO)?;
        loop {
            let now = Nanos(monotonic_ns());
            let Self { reactor, connections, market, .. } = self;
            connections.receive(market, reactor, now);
            connections.tick(market, reactor, now);
            reactor.flush();
            if let Some(request) = market.requests.pop_front() {
                return Ok(Some(request));
            }
            if now >= deadline {
                return Ok(None);
            }
            reactor.wait(LONGEST_WAIT.min(Duration::from_nanos(deadline.0 - now.0)))?;
        }
    }
}

impl Serve for Market {
    type Client = Client;

    fn open(&mut self, agreed: &Negotiated, now: Nanos) -> Client {
        let json = JsonSettings::default();
        let mut messages = RoleConnection::new(Side::Server, agreed, &self.dictionary, json);
        messages.set_services(&self.services);
        Client {
            role: role::Provider::new(role::ProviderSettings::default(), now),
            messages,
            user: String::new(),
            streams: HashMap::new(),
            owed: VecDeque::new(),
        }
    }

    fn step(
        &mut self,
        client: &mut Client,
        _id: ConnectionId,
        sender: &mut Sender<'_>,
        message: Option<&[u8]>,
        now: Nanos,
    ) -> Result<(), String> {
        let Client { role, messages, user, streams, owed } = client;
        let mut answers = Answers { market: self, user, streams, owed, now };
        let done = match message {
            Some(received) => messages
                .receive(received, sender, |message, out| role.message(now, message, out, &mut answers)),
            None => role.tick(now, &mut messages.outbox(sender), &mut answers).map(|_| ()),
        };
        done.map_err(|over| over.to_string())?;
        client.send_owed(self, sender);
        while let Some(note) = client.messages.next_note() {
            self.requests.push_back(Request::Note(note.to_string()));
        }
        if client.role.counters().malformed + client.messages.unreadable() >= MOST_MALFORMED {
            return Err(format!("{MOST_MALFORMED} of its messages could not be read"));
        }
        Ok(())
    }

    fn closed(&mut self, _id: ConnectionId, client: Client, reason: &str) {
        self.requests.push_back(Request::Closed { user: client.user, reason: reason.to_owned() });
    }
}

impl Client {
    /// Sends an update of an item to each of its streams; the image, where a stream has none yet.
    fn update(&mut self, market: &Market, sender: &mut Sender<'_>, item: &str, fields: &[u8]) {
        let Self { role, messages, streams, owed, .. } = self;
        let mut out = messages.outbox(sender);
        for stream in streams.iter().filter(|(_, name)| *name == item).map(|(stream, _)| *stream) {
            if owed.contains(&stream) {
                continue;
            }
            let kind = (UpdateType::UNSPECIFIED, DataType::FIELD_LIST);
            let sent = role.write_update(&mut out, stream, kind, &mut |room| copy(fields, room));
            let has_image = role.has_image(stream);
            if !has_image || matches!(sent, Ok(Sent::Full)) {
                owed.push_back(stream);
            }
        }
        self.send_owed(market, sender);
    }

    /// Sends the images that streams wait for, as long as there is capacity.
    fn send_owed(&mut self, market: &Market, sender: &mut Sender<'_>) {
        let Self { role, messages, streams, owed, .. } = self;
        let mut out = messages.outbox(sender);
        while let Some(stream) = owed.front().copied() {
            let values = streams.get(&stream).and_then(|item| market.items.get(item));
            let sent = values.map(|values| {
                role.refresh(&mut out, stream, &values::image(), &mut |room| values.encode(room))
            });
            if matches!(sent, Some(Ok(Sent::Full))) {
                return;
            }
            owed.pop_front();
            // A snapshot's stream is closed after its image.
            if role.stream_id(stream).is_none() {
                streams.remove(&stream);
            }
        }
    }
}

/// A consumer's connection, while one of its messages is handled.
struct Answers<'a> {
    market: &'a mut Market,
    user: &'a mut String,
    streams: &'a mut HashMap<StreamHandle, String>,
    owed: &'a mut VecDeque<StreamHandle>,
    now: Nanos,
}

impl ProviderApplication for Answers<'_> {
    fn event(&mut self, provider: &mut role::Provider, out: &mut dyn Outbox, event: role::ProviderEvent<'_>) {
        use role::ProviderEvent;
        // A stream stays unanswered if the answer cannot be encoded, or if the role's own queue has no capacity.
        match event {
            ProviderEvent::Login { request, is_reissue } => {
                let features = LoginFeatures {
                    application_name: Some(b"tapeline"),
                    position: request.attributes.position,
                    application_id: request.attributes.application_id,
                    single_open: Some(1),
                    allow_suspect_data: Some(1),
                    support_batch_requests: Some(BATCH_REQUESTS | BATCH_CLOSES),
                    ..LoginFeatures::default()
                };
                if provider.accept_login(self.now, out, &request, features).is_ok() && !is_reissue {
                    *self.user = String::from_utf8_lossy(request.user).into_owned();
                    self.market.requests.push_back(Request::LoggedIn(self.user.clone()));
                }
            }
            ProviderEvent::Directory { stream, .. } => {
                _ = provider.directory(out, stream, &self.market.services);
            }
            ProviderEvent::Dictionary { stream, .. } => {
                _ = provider.dictionary(out, stream, &self.market.dictionary);
            }
            ProviderEvent::Open { stream, request } => self.open(provider, out, stream, &request),
            ProviderEvent::Reissue { stream, request }
                if request.wants_refresh() && !self.owed.contains(&stream) =>
            {
                self.owed.push_back(stream);
            }
            ProviderEvent::Closed { stream } => _ = self.streams.remove(&stream),
            _ => {}
        }
    }
}

impl Answers<'_> {
    fn open(
        &mut self,
        provider: &mut role::Provider,
        out: &mut dyn Outbox,
        stream: StreamHandle,
        request: &RequestedItem<'_>,
    ) {
        let is_here = request.key.service_id == Some(SERVICE_ID) && request.domain == Domain::MARKET_PRICE;
        let name = request.key.name.map(|name| String::from_utf8_lossy(name).into_owned());
        let Some(name) = name.filter(|_| is_here) else {
            let header = not_found(request.domain, b"There is no such item");
            _ = provider.status(self.now, out, stream, &header);
            return;
        };
        if self.market.items.contains_key(&name) {
            self.owed.push_back(stream);
        } else {
            let is_snapshot = !request.is_streaming();
            self.market.requests.push_back(Request::Opened { item: name.clone(), is_snapshot });
        }
        self.streams.insert(stream, name);
    }
}

/// Returns the status that closes an item, with its reason.
fn not_found(domain: Domain, text: &[u8]) -> StatusHeader<'_> {
    let (stream, data, code) = (StreamState::CLOSED, DataState::SUSPECT, StateCode::NOT_FOUND);
    StatusHeader { state: Some(State { stream, data, code, text }), ..StatusHeader::new(domain, 0) }
}

fn copy(bytes: &[u8], room: &mut [u8]) -> Result<usize, Refused> {
    room.get_mut(..bytes.len()).ok_or(Refused::Full)?.copy_from_slice(bytes);
    Ok(bytes.len())
}
