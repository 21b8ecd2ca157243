//! Connections from clients: the state of each, from open to close.

use std::collections::HashMap;

use tapeline_measure::Nanos;
use tapeline_wire::rssl::{ConnectionId, Event, Negotiated, Reactor, Sender};

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
        while let Some((id, event, mut sender)) = reactor.next(now) {
            let message = match event {
                Event::Connected(agreed) => {
                    self.open.insert(id, server.open(agreed, now));
                    None
                }
                Event::Message(message) => Some(message),
                Event::Closed(reason) => {
                    let reason = reason.to_string();
                    if let Some(client) = self.open.get(&id) {
                        server.closing(client, &sender);
                    }
                    self.close(server, id, &reason);
                    continue;
                }
                _ => None,
            };
            let Some(client) = self.open.get_mut(&id) else { continue };
            if let Err(reason) = server.step(client, id, &mut sender, message, now) {
                // Closed at once: the rest of the client's input is dropped.
                reactor.close(id);
                self.close(server, id, &reason);
            }
        }
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
