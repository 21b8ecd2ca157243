//! Connections from clients: the state of each, from open to close.

use std::collections::HashMap;
use std::convert::Infallible;

use tapeline_measure::Nanos;
use tapeline_wire::rssl::{ConnectionId, Delivery, Event, Handler, Negotiated, Reactor, Sender};

/// The server's handling of its connections.
pub trait Serve {
    /// The state of a connection.
    type Client;

    /// Creates the state of a connection that has opened.
    fn open(&mut self, agreed: &Negotiated, now: Nanos) -> Self::Client;

    /// Handles a message of a client, or does what is due. An error closes the connection with that reason.
    ///
    /// # Errors
    /// The reason why the connection ends.
    fn step(
        &mut self,
        client: &mut Self::Client,
        id: ConnectionId,
        sender: &mut Sender<'_>,
        message: Option<&[u8]>,
        now: Nanos,
    ) -> Result<(), String>;

    /// Called when a client has closed its connection: messages that are still queued will not be sent.
    fn closing(&mut self, _client: &Self::Client, _sender: &Sender<'_>) {}

    /// Handles the end of a connection, with its reason.
    fn closed(&mut self, id: ConnectionId, client: Self::Client, reason: &str);
}

/// The open connections of a server.
#[derive(Debug)]
pub struct Connections<S: Serve> {
    /// The state of each connection, by its id.
    pub open: HashMap<ConnectionId, S::Client>,
}

impl<S: Serve> Default for Connections<S> {
    fn default() -> Self {
        Self { open: HashMap::new() }
    }
}

impl<S: Serve> Connections<S> {
    /// Handles what the connections have received.
    pub fn receive(&mut self, server: &mut S, reactor: &mut Reactor, now: Nanos) {
        let Ok(_) = reactor.handle(&mut Receiving { connections: self, server, failed: None }, now);
    }

    /// Does what is due on each connection.
    pub fn tick(&mut self, server: &mut S, reactor: &mut Reactor, now: Nanos) {
        let mut over = Vec::new();
        for (id, client) in &mut self.open {
            let Some(mut sender) = reactor.sender(*id) else { continue };
            if let Err(reason) = server.step(client, *id, &mut sender, None, now) {
                over.push((*id, reason));
            }
        }
        for (id, reason) in over {
            reactor.close(id);
            self.close(server, id, &reason);
        }
    }

    /// Ends all connections from this side.
    pub fn leave(&mut self, server: &mut S) {
        for (id, client) in self.open.drain() {
            server.closed(id, client, "this side ends");
        }
    }

    fn close(&mut self, server: &mut S, id: ConnectionId, reason: &str) {
        if let Some(client) = self.open.remove(&id) {
            server.closed(id, client, reason);
        }
    }
}

struct Receiving<'a, S: Serve> {
    connections: &'a mut Connections<S>,
    server: &'a mut S,
    /// Why the connection of the last event ends, if it does.
    failed: Option<String>,
}

impl<S: Serve> Handler for Receiving<'_, S> {
    type Error = Infallible;

    fn event(&mut self, Delivery { id, event, sender, now, .. }: Delivery<'_, '_>) -> Result<(), Infallible> {
        let Self { connections, server, failed } = self;
        let message = match event {
            Event::Connected(agreed) => {
                connections.open.insert(id, server.open(agreed, now));
                None
            }
            Event::Message(message) => Some(message),
            Event::Closed(reason) => {
                if let Some(client) = connections.open.get(&id) {
                    server.closing(client, sender);
                }
                connections.close(server, id, &reason.to_string());
                return Ok(());
            }
            _ => None,
        };
        if let Some(client) = connections.open.get_mut(&id) {
            *failed = server.step(client, id, sender, message, now).err();
        }
        Ok(())
    }

    fn after(&mut self, reactor: &mut Reactor, id: ConnectionId, _: Nanos) -> Result<bool, Infallible> {
        if let Some(reason) = self.failed.take() {
            // Closed at once: the rest of the client's input is dropped.
            reactor.close(id);
            self.connections.close(self.server, id, &reason);
        }
        Ok(true)
    }
}
