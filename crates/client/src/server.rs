//! Connections that clients make: the state of each, from its opening to its end.

use std::collections::HashMap;

use tapeline_measure::Nanos;
use tapeline_wire::rssl::{ConnectionId, Event, Negotiated, Reactor, Sender};

/// What a server does with one connection.
pub trait Serve {
    /// The state of a connection.
    type Client;

    /// A connection has been opened.
    fn open(&mut self, agreed: &Negotiated, now: Nanos) -> Self::Client;

    /// A client has its turn: a message of the client's, or what is due. An error ends the connection, with this reason.
    ///
    /// # Errors
    /// Why the connection is to end.
    fn step(
        &mut self,
        client: &mut Self::Client,
        id: ConnectionId,
        sender: &mut Sender<'_>,
        message: Option<&[u8]>,
        now: Nanos,
    ) -> Result<(), String>;

    /// A client has ended its connection: messages that wait to be sent never will be.
    fn closing(&mut self, _client: &Self::Client, _sender: &Sender<'_>) {}

    /// A connection is over, for this reason.
    fn closed(&mut self, id: ConnectionId, client: Self::Client, reason: &str);
}

/// The open connections of a server.
#[derive(Debug)]
pub struct Connections<S: Serve> {
    /// Each by its connection.
    pub open: HashMap<ConnectionId, S::Client>,
}

impl<S: Serve> Default for Connections<S> {
    fn default() -> Self {
        Self { open: HashMap::new() }
    }
}

impl<S: Serve> Connections<S> {
    /// Takes what the connections have received.
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
                // At once: nothing else of what the client sent is looked at.
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

    /// This side ends.
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
