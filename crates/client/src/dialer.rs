//! A role that connects out: a consumer, or a non-interactive provider, on one connection at a time to the first of several servers that
//! accepts it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tapeline_measure::Nanos;
use tapeline_omm::Dictionary;
use tapeline_omm::domain::Directory;
use tapeline_omm::role::consumer::{Consumer, ConsumerApplication, ConsumerEvent};
use tapeline_omm::role::ni_provider::{NiProvider, NiProviderApplication, NiProviderEvent};
use tapeline_omm::role::{Nowhere, Outbox};
use tapeline_wire::rssl::{self, ConnectionId, Delivery, Handler, Negotiated, Reactor, Sender, Waker};

use crate::Error;
use crate::connection::{JsonSettings, Note, RoleConnection, Side};
use crate::endpoint::Endpoint;

/// An event of the connection itself, as opposed to a message of the peer.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectionEvent<'a> {
    /// The connection is open; the role logs in.
    Connected {
        /// The server, as the user wrote it.
        server: &'a str,
        /// The parameters that both ends agreed on.
        agreed: &'a Negotiated,
    },
    /// There is no connection, or the connection is lost. The role decides when to reconnect.
    Disconnected {
        /// The server, as the user wrote it.
        server: &'a str,
        /// The reason.
        reason: &'a str,
    },
    /// Information for the user about the connection's JSON.
    Note(Note),
}

/// The program's handling of the connection of its role `R`, in addition to the role's application.
pub trait Dialing<R> {
    /// Handles an event of the connection.
    fn connection(&mut self, role: &mut R, event: ConnectionEvent<'_>);

    /// Sends messages to the outbox of the open connection. Called after each message of the peer, and once a turn.
    fn send(&mut self, _role: &mut R, _out: &mut dyn Outbox) {}

    /// Called before the connection is closed for good: `connection` still holds the messages that have not left this process.
    fn closing(&mut self, _connection: &RoleConnection, _sender: &Sender<'_>) {}
}

/// A role that connects out, with an application `A`.
pub trait Role<A> {
    /// Returns the services by which JSON names items.
    fn directory(&self) -> &Directory;
    /// Handles a connection that has opened.
    fn connected(&mut self, now: Nanos, out: &mut dyn Outbox);
    /// Prefetches for the messages behind the next one.
    fn expect(&mut self, following: rssl::Following<'_>) {
        let _ = following;
    }
    /// Handles a message of the peer.
    fn message(&mut self, now: Nanos, bytes: &[u8], out: &mut dyn Outbox, application: &mut A);
    /// Handles a connection that is lost, or that failed to open.
    fn disconnected(&mut self, now: Nanos, application: &mut A);
    /// Does what is due, and returns the latest time of the next call.
    fn tick(&mut self, now: Nanos, out: &mut dyn Outbox, application: &mut A) -> Option<Nanos>;
}

macro_rules! role {
    ($role:ident: $application:ident, $event:ident $(, $directory:ident, $expect:ident)?) => {
        impl<A: $application> Role<A> for $role {
            fn directory(&self) -> &Directory {
                self.directory()
            }

            fn connected(&mut self, now: Nanos, out: &mut dyn Outbox) {
                self.connected(now, out);
            }

            $(fn $expect(&mut self, following: rssl::Following<'_>) {
                self.expect(following);
            })?

            fn message(&mut self, now: Nanos, bytes: &[u8], out: &mut dyn Outbox, application: &mut A) {
                self.message(now, bytes, out, application);
            }

            fn disconnected(&mut self, now: Nanos, application: &mut A) {
                self.disconnected(now, application);
            }

            fn tick(&mut self, now: Nanos, out: &mut dyn Outbox, application: &mut A) -> Option<Nanos> {
                self.tick(now, out, application)
            }
        }

        impl<A: $application> $application for Driven<'_, A> {
            #[inline]
            fn event(&mut self, role: &mut $role, out: &mut dyn Outbox, event: $event<'_>) {
                match &event {
                    $event::Connect { attempt } => {
                        (self.wants.connection, self.wants.attempt) = (true, *attempt);
                    }
                    $event::Disconnect => self.wants.disconnection = true,
                    $($event::$directory(_) => self.wants.has_directory = true,)?
                    $event::Dictionary(dictionary) => self.wants.dictionary = Some(Arc::clone(dictionary)),
                    _ => {}
                }
                self.application.event(role, out, event);
            }
        }
    };
}

role!(Consumer: ConsumerApplication, ConsumerEvent, Directory, expect);
role!(NiProvider: NiProviderApplication, NiProviderEvent);

/// The role's requests to its connection that are not done yet.
#[derive(Debug, Default)]
struct Wants {
    connection: bool,
    disconnection: bool,
    /// Connections that failed since the last successful login.
    attempt: u32,
    has_directory: bool,
    dictionary: Option<Arc<Dictionary>>,
}

/// An application that records the role's requests to the connection before it passes each event to the program.
#[derive(Debug)]
pub struct Driven<'a, A> {
    application: &'a mut A,
    wants: &'a mut Wants,
}

/// A role, its servers and its connection.
#[derive(Debug)]
pub struct Dialer<R> {
    reactor: Reactor,
    dialed: Dialed<R>,
}

/// A dialer without its reactor.
#[derive(Debug)]
struct Dialed<R> {
    role: R,
    endpoints: Vec<Endpoint>,
    /// The index of the server that is connected or was tried last.
    endpoint: usize,
    open: Open,
    wants: Wants,
    dictionary: Arc<Dictionary>,
    json: JsonSettings,
    /// Unreadable JSON messages of closed connections.
    unreadable: u64,
}

#[derive(Debug, Default)]
struct Open {
    id: Option<ConnectionId>,
    messages: RoleConnection,
}

impl<R> Dialer<R> {
    /// Creates a dialer for a role without a connection, and for servers that are tried in order; at least one is required. JSON names fields
    /// by `dictionary` until the role has downloaded another.
    ///
    /// # Errors
    /// The system refuses to create the poller for sockets.
    pub fn new(
        role: R,
        endpoints: Vec<Endpoint>,
        dictionary: Arc<Dictionary>,
        json: JsonSettings,
    ) -> Result<Self, Error> {
        let (open, wants) = (Open::default(), Wants::default());
        let dialed = Dialed { role, endpoints, endpoint: 0, open, wants, dictionary, json, unreadable: 0 };
        Ok(Self { reactor: Reactor::new(1)?, dialed })
    }

    /// Returns the role.
    pub const fn role(&mut self) -> &mut R {
        &mut self.dialed.role
    }

    /// Returns the server that is connected or was tried last, as the user wrote it.
    #[must_use]
    pub fn server(&self) -> &str {
        server(&self.dialed.endpoints, self.dialed.endpoint)
    }

    /// Returns the number of unreadable JSON messages so far.
    #[must_use]
    pub fn unreadable(&self) -> u64 {
        self.dialed.unreadable + self.dialed.open.messages.unreadable()
    }

    /// Returns a waker that ends [`Self::wait`] from another thread.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn waker(&self) -> Result<Waker, Error> {
        Ok(self.reactor.waker()?)
    }

    /// Waits for at most `timeout` until something is received.
    ///
    /// # Errors
    /// The system refuses to wait for sockets.
    pub fn wait(&mut self, timeout: Duration) -> Result<(), Error> {
        Ok(self.reactor.wait(timeout)?)
    }

    /// Handles what was received, does what is due, and connects or disconnects as the role requests. Returns the latest time of the next call.
    pub fn turn<A>(&mut self, now: Nanos, application: &mut A) -> Option<Nanos>
    where
        A: Dialing<R>,
        for<'d> R: Role<Driven<'d, A>>,
    {
        let Self { reactor, dialed } = self;
        let Ok(_) = reactor.handle(&mut Receiving { dialed, application }, now);
        let Dialed { role, open, wants, .. } = dialed;
        let mut driven = Driven { application, wants };
        let next = match open.id.and_then(|id| reactor.sender(id)) {
            Some(mut sender) => {
                let mut out = open.messages.outbox(&mut sender);
                let next = role.tick(now, &mut out, &mut driven);
                driven.application.send(role, &mut out);
                next
            }
            None => role.tick(now, &mut Nowhere, &mut driven),
        };
        while let Some(note) = open.messages.next_note() {
            application.connection(role, ConnectionEvent::Note(note));
        }
        dialed.disconnect(reactor);
        dialed.connect(reactor, now, application);
        next
    }

    /// Calls `act` with the role and the outbox of the connection; with [`Nowhere`] if there is no connection.
    pub fn act<T>(&mut self, act: impl FnOnce(&mut R, &mut dyn Outbox) -> T) -> T {
        let Dialed { role, open, .. } = &mut self.dialed;
        match open.id.and_then(|id| self.reactor.sender(id)) {
            Some(mut sender) => act(role, &mut open.messages.outbox(&mut sender)),
            None => act(role, &mut Nowhere),
        }
    }

    /// Returns `true` if there is an open connection.
    #[must_use]
    pub const fn is_connected(&self) -> bool {
        self.dialed.open.id.is_some()
    }

    /// Sends buffered output. Returns `true` if all of it has left this process.
    pub fn flush(&mut self) -> bool {
        let open = &mut self.dialed.open;
        let Some(mut sender) = open.id.and_then(|id| self.reactor.sender(id)) else { return true };
        let is_sent = open.messages.outbox(&mut sender).send_waiting();
        sender.flush();
        is_sent && sender.unsent() == 0
    }

    /// Closes the connection, if there is one. The role gets no event.
    pub fn close(&mut self) {
        self.dialed.close(&mut self.reactor);
    }
}

impl<R> Dialed<R> {
    fn lost<A>(&mut self, now: Nanos, reason: &str, application: &mut A)
    where
        A: Dialing<R>,
        for<'d> R: Role<Driven<'d, A>>,
    {
        self.forget();
        let server = server(&self.endpoints, self.endpoint);
        application.connection(&mut self.role, ConnectionEvent::Disconnected { server, reason });
        self.role.disconnected(now, &mut Driven { application, wants: &mut self.wants });
    }

    /// Connects, if the role requested it. A name that cannot be resolved counts as a failed connection.
    fn connect<A>(&mut self, reactor: &mut Reactor, now: Nanos, application: &mut A)
    where
        A: Dialing<R>,
        for<'d> R: Role<Driven<'d, A>>,
    {
        if !std::mem::take(&mut self.wants.connection) {
            return;
        }
        self.endpoint = self.wants.attempt as usize % self.endpoints.len().max(1);
        let Some(endpoint) = self.endpoints.get(self.endpoint) else { return };
        let begun = endpoint
            .resolve()
            .and_then(|addresses| Ok(reactor.connect_to_any(&addresses, &endpoint.settings, now)?));
        match begun {
            Ok(id) => self.open.id = Some(id),
            Err(cause) => self.lost(now, &with_causes(&cause), application),
        }
    }

    /// Closes the connection, if the role requested it.
    fn disconnect(&mut self, reactor: &mut Reactor) {
        if std::mem::take(&mut self.wants.disconnection) {
            self.close(reactor);
        }
    }

    fn close(&mut self, reactor: &mut Reactor) {
        if let Some(id) = self.open.id {
            reactor.close(id);
        }
        self.forget();
    }

    fn forget(&mut self) {
        self.unreadable += std::mem::take(&mut self.open).messages.unreadable();
    }
}

/// A dialer while it receives, with the program's application.
struct Receiving<'a, R, A> {
    dialed: &'a mut Dialed<R>,
    application: &'a mut A,
}

impl<R, A> Handler for Receiving<'_, R, A>
where
    A: Dialing<R>,
    for<'d> R: Role<Driven<'d, A>>,
{
    type Error = Infallible;

    fn event(&mut self, delivery: Delivery<'_, '_>) -> Result<(), Infallible> {
        let Delivery { id, event, following, sender, now } = delivery;
        let Self { dialed, application } = self;
        let Dialed { role, open, wants, endpoints, endpoint, dictionary, json, .. } = &mut **dialed;
        if open.id != Some(id) {
            return Ok(());
        }
        match event {
            rssl::Event::Connected(agreed) => {
                let server = server(endpoints, *endpoint);
                application.connection(role, ConnectionEvent::Connected { server, agreed });
                open.messages = RoleConnection::new(Side::Client, agreed, dictionary, *json);
                open.messages.set_services(role.directory());
                role.connected(now, &mut open.messages.outbox(sender));
            }
            rssl::Event::Message(received) => {
                role.expect(following);
                let mut driven = Driven { application: &mut **application, wants };
                let Ok(()) = open.messages.receive(received, sender, |message, out| {
                    role.message(now, message, out, &mut driven);
                    driven.application.send(role, out);
                    Ok::<(), Infallible>(())
                });
                if std::mem::take(&mut wants.has_directory) {
                    open.messages.set_services(role.directory());
                }
                if let Some(new) = wants.dictionary.take() {
                    open.messages.set_dictionary(&new);
                    *dictionary = new;
                }
            }
            rssl::Event::Closed(reason) => {
                let reason = reason.to_string();
                application.closing(&open.messages, sender);
                dialed.lost(now, &reason, *application);
            }
            _ => {}
        }
        Ok(())
    }

    fn after(&mut self, reactor: &mut Reactor, _: ConnectionId, _: Nanos) -> Result<bool, Infallible> {
        self.dialed.disconnect(reactor);
        Ok(true)
    }
}

/// Returns the name of the server with this index.
fn server(endpoints: &[Endpoint], at: usize) -> &str {
    endpoints.get(at).map_or("", |endpoint| &endpoint.server)
}

/// Returns an error with its causes, in one line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
