//! The connections of the hub's sessions.

use std::collections::{HashMap, HashSet, VecDeque};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tapeline_client::connection::MOST_MALFORMED;
use tapeline_client::connection::{JsonSettings, RoleConnection, SharedTexts, Side};
use tapeline_hub::{Connections, End, Hub, Peer, SessionId};
use tapeline_measure::Nanos;
use tapeline_omm::Dictionary;
use tapeline_omm::domain::Directory;
use tapeline_omm::role::Outbox;
use tapeline_wire::Error;
use tapeline_wire::rssl::{ConnectionId, Delivery, Event, Handler, Reactor, SubProtocol};

use super::audit::Audit;
use super::counting::Connected;
use crate::events::{Events, Kind, Severity};

/// What clients may cost between two looks at the ring, in bytes of messages; the rest waits. A request of 60
/// bytes in RWF takes 2 µs, so updates wait for about a quarter of a millisecond at most.
const TURN_COST: usize = 4 << 10;
/// The minimum cost of a message; the start and end of a connection have their own.
const LEAST_COST: usize = 64;
/// A byte of JSON costs as much as four of RWF: a request of 55 bytes, answered with an image, takes 20 µs.
const JSON_COST: usize = 4;
const CONNECTION_COST: usize = 1 << 10;

/// How long a connection remains open after its session has ended. EMA Java ignores a message that arrives
/// together with the end of TLS, such as the reason of a refused login, and tries again.
pub(super) const PARTING_NS: u64 = 100_000_000;

#[derive(Debug)]
pub(super) struct ClientConnections {
    reactor: Reactor,
    clients: Clients,
}

/// The state of all connections, without the reactor.
#[derive(Debug)]
struct Clients {
    /// Indexed by session number.
    connections: Vec<Option<ClientConnection>>,
    sessions: HashMap<ConnectionId, SessionId>,
    /// Connections whose session has ended, with the time to close them, in order of that time.
    parting: VecDeque<(Nanos, ConnectionId)>,
    /// The same connections, for look-up.
    parted: HashSet<ConnectionId>,
    dictionary: Arc<Dictionary>,
    /// The names of services in JSON.
    services: Directory,
    /// Settings for JSON: a request without a service name means the only service.
    json: JsonSettings,
    never_opened: NeverOpened,
    /// JSON texts shared by messages to many clients.
    texts: SharedTexts,
    events: Events,
}

#[derive(Debug)]
struct ClientConnection {
    connection: ConnectionId,
    room: RoleConnection,
    since: Nanos,
}

impl Connections for ClientConnections {
    #[inline]
    fn with<R>(&mut self, session: SessionId, send: impl FnOnce(&mut dyn Outbox) -> R) -> Option<R> {
        let connection = self.clients.connection(session)?;
        let mut sender = self.reactor.sender(connection.connection)?;
        Some(send(&mut connection.room.outbox(&mut sender)))
    }

    fn is_flushed(&mut self, session: SessionId) -> bool {
        let Self { reactor, clients } = self;
        clients.connection(session).is_none_or(|connection| is_flushed(reactor, connection))
    }
}

impl ClientConnections {
    /// Uses a reactor that already listens.
    pub(super) fn new(
        reactor: Reactor,
        dictionary: Arc<Dictionary>,
        services: Directory,
        events: Events,
    ) -> Self {
        let mut json = JsonSettings::default();
        json.default_service = services.services().map(|service| service.id).next();
        let clients = Clients {
            connections: Vec::new(),
            sessions: HashMap::new(),
            parting: VecDeque::new(),
            parted: HashSet::new(),
            dictionary,
            services,
            json,
            never_opened: NeverOpened::default(),
            texts: SharedTexts::default(),
            events,
        };
        Self { reactor, clients }
    }

    /// Sends queued output, looks at the sockets, and passes input to the hub, as much as one turn allows.
    /// Returns whether there was any input.
    ///
    /// # Errors
    /// The system refuses to wait for sockets.
    pub(super) fn serve(&mut self, hub: &mut Hub, now: Nanos) -> Result<bool, Error> {
        let Self { reactor, clients } = self;
        while let Some((_, connection)) = clients.parting.front().copied().filter(|(due, _)| *due <= now) {
            clients.parting.pop_front();
            clients.parted.remove(&connection);
            reactor.close(connection);
        }
        reactor.wait(Duration::ZERO)?;
        let mut turn = ClientsTurn { clients, hub, cost: 0, remaining: Remaining::Nothing };
        let Ok(is_busy) = reactor.handle(&mut turn, now);
        // There is input left for the next turn, or a connection to accept.
        Ok(is_busy || !reactor.is_idle())
    }

    /// Closes the connections of the sessions that the hub has ended, after a delay.
    pub(super) fn close_those_over(&mut self, hub: &mut Hub, now: Nanos) {
        self.clients.close_those_over(hub, now);
    }

    pub(super) fn close_all(&mut self, hub: &mut Hub) {
        let open: Vec<SessionId> = self.clients.sessions.values().copied().collect();
        for session in open {
            self.close(session);
            hub.close(session, End::Stopped);
        }
    }

    /// Writes to the audit the connections that never opened since the last call; with `is_summed`, also the
    /// number of those without lines of their own.
    pub(super) fn say_who_never_opened(&mut self, now: Nanos, audit: &Audit, is_summed: bool) {
        let never_opened = &mut self.clients.never_opened;
        never_opened.say(now, audit);
        if is_summed {
            never_opened.sum(now, self.reactor.refusals(), audit);
        }
    }

    pub(super) const fn reactor(&mut self) -> &mut Reactor {
        &mut self.reactor
    }

    pub(super) const fn never_opened(&self) -> u64 {
        self.clients.never_opened.all
    }

    /// Returns the data of a session's connection.
    pub(super) fn connected(&mut self, session: SessionId) -> Option<Connected> {
        let Self { reactor, clients } = self;
        let ClientConnection { connection, since, .. } = clients.connection(session)?;
        let (plain, tls) = match reactor.negotiated(*connection)?.websocket {
            None => ("tcp", "tls"),
            Some(SubProtocol::Rwf) => ("websocket rssl.rwf", "websocket rssl.rwf, tls"),
            Some(SubProtocol::TrJson2) => ("websocket tr_json2", "websocket tr_json2, tls"),
            Some(SubProtocol::RsslJsonV2) => ("websocket rssl.json.v2", "websocket rssl.json.v2, tls"),
        };
        let transport = if reactor.tls_version(*connection).is_some() { tls } else { plain };
        let address = reactor.peer_address(*connection);
        let unsent_bytes = reactor.sender(*connection)?.unsent();
        Some(Connected { since: *since, address, transport, unsent_bytes })
    }

    /// Whether all output has left this process.
    pub(super) fn are_flushed(&mut self) -> bool {
        self.reactor.flush();
        let Self { reactor, clients } = self;
        clients.connections.iter_mut().flatten().all(|connection| is_flushed(reactor, connection))
    }

    fn close(&mut self, session: SessionId) {
        if let Some(connection) = self.clients.forget(session) {
            self.reactor.close(connection);
        }
    }
}

impl Clients {
    #[inline]
    fn connection(&mut self, session: SessionId) -> Option<&mut ClientConnection> {
        self.connections.get_mut(session.index())?.as_mut()
    }

    /// Opens the session of a new connection.
    fn open(&mut self, reactor: &mut Reactor, hub: &mut Hub, now: Nanos, id: ConnectionId) {
        let (address, is_encrypted) = (reactor.peer_address(id), reactor.tls_version(id).is_some());
        let Some(agreed) = reactor.negotiated(id) else { return };
        let mut room = RoleConnection::new(Side::Server, agreed, &self.dictionary, self.json);
        let (is_json, login) = (agreed.is_json(), RoleConnection::cookie_login(agreed));
        room.set_services(&self.services);
        room.share_texts(&self.texts);
        let session = hub.open_from(now, Peer { address, is_encrypted, is_json });
        if self.connections.len() <= session.index() {
            self.connections.resize_with(session.index() + 1, || None);
        }
        // A client that has logged in by a cookie sends no message for it.
        if let Some((login, mut sender)) = login.zip(reactor.sender(id)) {
            hub.message(now, session, &login, &mut room.outbox(&mut sender));
        }
        self.connections[session.index()] = Some(ClientConnection { connection: id, room, since: now });
        self.sessions.insert(id, session);
        self.close_those_over(hub, now);
    }

    /// Closes the connections of the sessions that the hub has ended: after a delay, so that the last message
    /// is read before the end of the connection.
    fn close_those_over(&mut self, hub: &mut Hub, now: Nanos) {
        while let Some(session) = hub.next_over() {
            if let Some(connection) = self.forget(session) {
                self.parting.push_back((Nanos(now.0.saturating_add(PARTING_NS)), connection));
                self.parted.insert(connection);
            }
        }
    }

    fn forget(&mut self, session: SessionId) -> Option<ConnectionId> {
        let connection = self.connections.get_mut(session.index())?.take()?;
        self.sessions.remove(&connection.connection);
        Some(connection.connection)
    }
}

/// The clients, while one turn handles their input.
struct ClientsTurn<'a> {
    clients: &'a mut Clients,
    hub: &'a mut Hub,
    /// What the events so far have cost.
    cost: usize,
    /// What remains to be done after the last event.
    remaining: Remaining,
}

/// What remains to be done after an event, with the reactor.
#[derive(Default)]
enum Remaining {
    #[default]
    Nothing,
    Open,
    Repeat,
    /// Counts a connection that never opened, with its reason.
    NeverOpened(String),
}

impl Handler for ClientsTurn<'_> {
    type Error = Infallible;

    fn event(&mut self, Delivery { id, event, sender, now, .. }: Delivery<'_, '_>) -> Result<(), Infallible> {
        let Self { clients, hub, cost, remaining } = self;
        if !matches!(event, Event::Message(_)) {
            *cost += CONNECTION_COST;
        }
        let Some(session) = clients.sessions.get(&id).copied() else {
            match event {
                Event::Connected(_) => *remaining = Remaining::Open,
                Event::Closed(reason) if !clients.parted.remove(&id) => {
                    *remaining = Remaining::NeverOpened(reason.to_string());
                }
                _ => {}
            }
            return Ok(());
        };
        let Some(connection) = clients.connections.get_mut(session.index()).and_then(Option::as_mut) else {
            return Ok(());
        };
        match event {
            Event::Message(received) => {
                // The rest of a text with more messages than the turn has capacity for follows after
                // other clients.
                let bytes = (TURN_COST - *cost).div_ceil(JSON_COST);
                let Ok(is_read) = connection.room.receive_some(received, sender, bytes, |message, out| {
                    hub.message(now, session, message, out);
                    Ok::<(), Infallible>(())
                });
                *cost += received.len().max(LEAST_COST);
                if !is_read {
                    *cost = TURN_COST;
                    *remaining = Remaining::Repeat;
                }
                while let Some(note) = connection.room.next_note() {
                    clients.events.peer(now, Kind::Unreadable, Severity::Info, format_args!("hub: {note}"));
                }
                // The hub itself counts those in RWF.
                if connection.room.unreadable() >= MOST_MALFORMED {
                    hub.end(session, End::Malformed(MOST_MALFORMED));
                }
            }
            Event::Room => hub.room(now, session, &mut connection.room.outbox(sender)),
            Event::Closed(reason) => {
                let end = End::Connection(reason.to_string());
                clients.forget(session);
                hub.close(session, end);
            }
            _ => {}
        }
        // At once: further input of the client is not processed.
        clients.close_those_over(hub, now);
        Ok(())
    }

    fn after(&mut self, reactor: &mut Reactor, id: ConnectionId, now: Nanos) -> Result<bool, Infallible> {
        match std::mem::take(&mut self.remaining) {
            Remaining::Nothing => {}
            Remaining::Open => self.clients.open(reactor, self.hub, now, id),
            Remaining::Repeat => reactor.repeat(id),
            Remaining::NeverOpened(reason) => {
                self.clients.never_opened.add(reactor.peer_address(id), reason);
            }
        }
        Ok(self.cost < TURN_COST)
    }
}

/// Whether all output of one connection has left this process.
fn is_flushed(reactor: &mut Reactor, connection: &mut ClientConnection) -> bool {
    reactor
        .sender(connection.connection)
        .is_none_or(|mut sender| connection.room.outbox(&mut sender).send_waiting() && sender.unsent() == 0)
}

/// Connections that ended before they became sessions: any host can make as many as a network carries.
#[derive(Debug, Default)]
struct NeverOpened {
    all: u64,
    /// Those that the reactor refused because of its limits.
    refused: u64,
    /// Those since the last sum.
    lately: u64,
    /// Those to be written one by one.
    each: Vec<(Option<SocketAddr>, String)>,
}

/// Maximum number written one by one per second.
const SAID_EACH: u64 = 10;

impl NeverOpened {
    fn add(&mut self, from: Option<SocketAddr>, reason: String) {
        (self.all, self.lately) = (self.all + 1, self.lately + 1);
        if self.lately <= SAID_EACH {
            self.each.push((from, reason));
        }
    }

    fn say(&mut self, now: Nanos, audit: &Audit) {
        for (from, why) in self.each.drain(..) {
            audit.never_opened(now, from, &why);
        }
    }

    /// Called about once a second. `refused` is the reactor's total of refused connections.
    fn sum(&mut self, now: Nanos, refused: u64, audit: &Audit) {
        let refusals = refused - std::mem::replace(&mut self.refused, refused);
        self.all += refusals;
        if refusals > 0 {
            let why = "max_connections is reached, or max_connections_per_address";
            audit.more_never_opened(now, refusals, why);
        }
        let lately = std::mem::take(&mut self.lately);
        if lately > SAID_EACH {
            audit.more_never_opened(now, lately - SAID_EACH, "too many for a line each");
        }
    }
}
