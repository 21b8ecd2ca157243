//! What servers do alike: a role for each connection, from its opening to its end.

use std::collections::HashMap;

use serde_json::Value as Json;
use tapeline_measure::Nanos;
use tapeline_wire::rssl::{ConnectionId, Event, Negotiated, Reactor, Sender};

use super::config::Host;
use super::lines::Lines;
use super::transport::ServerArgs;

/// A server: what it does with one connection.
pub(super) trait Serve {
    /// What it keeps of each.
    type Client;

    /// A connection has been opened.
    fn meet(&mut self, agreed: &Negotiated, now: Nanos) -> Self::Client;

    /// A client has its turn: a message of its, or what is due. The connection ends with what comes back as an error.
    fn step(
        &mut self,
        client: &mut Self::Client,
        id: ConnectionId,
        sender: &mut Sender<'_>,
        message: Option<&[u8]>,
        now: Nanos,
    ) -> Result<(), String>;

    /// A client has ended its connection: what waits to go out to it never will.
    fn parting(&mut self, _client: &Self::Client, _sender: &Sender<'_>) {}

    /// A connection is over, for this reason.
    fn gone(&mut self, id: ConnectionId, client: Self::Client, reason: &str);
}

/// The connections of a server.
pub(super) struct Clients<S: Serve> {
    pub(super) open: HashMap<ConnectionId, S::Client>,
}

impl<S: Serve> Clients<S> {
    pub(super) fn new() -> Self {
        Self { open: HashMap::new() }
    }

    /// Takes what the connections have.
    pub(super) fn serve(&mut self, server: &mut S, reactor: &mut Reactor, now: Nanos) {
        while let Some((id, event, mut sender)) = reactor.next(now) {
            let message = match event {
                Event::Connected(agreed) => {
                    self.open.insert(id, server.meet(agreed, now));
                    None
                }
                Event::Message(message) => Some(message),
                Event::Closed(reason) => {
                    let reason = reason.to_string();
                    if let Some(client) = self.open.get(&id) {
                        server.parting(client, &sender);
                    }
                    self.gone(server, id, &reason);
                    continue;
                }
                _ => None,
            };
            let Some(client) = self.open.get_mut(&id) else { continue };
            if let Err(reason) = server.step(client, id, &mut sender, message, now) {
                // At once: nothing else of what it sent is looked at.
                reactor.close(id);
                self.gone(server, id, &reason);
            }
        }
        if let Some(cause) = reactor.accept_error() {
            anstream::eprintln!("note: nobody can be let in: {cause}");
        }
    }

    /// Does what is due on each.
    pub(super) fn tick(&mut self, server: &mut S, reactor: &mut Reactor, now: Nanos) {
        let mut over = Vec::new();
        for (id, client) in &mut self.open {
            let Some(mut sender) = reactor.sender(*id) else { continue };
            if let Err(reason) = server.step(client, *id, &mut sender, None, now) {
                over.push((*id, reason));
            }
        }
        for (id, reason) in over {
            reactor.close(id);
            self.gone(server, id, &reason);
        }
    }

    /// This side ends.
    pub(super) fn leave(&mut self, server: &mut S) {
        for (id, client) in self.open.drain() {
            server.gone(id, client, "this side ends");
        }
    }

    fn gone(&mut self, server: &mut S, id: ConnectionId, reason: &str) {
        if let Some(client) = self.open.remove(&id) {
            server.gone(id, client, reason);
        }
    }
}

impl ServerArgs {
    /// Listens for at most so many connections, and says where.
    pub(super) fn open(
        &self,
        hosts: Vec<Host>,
        usual_port: u16,
        limit: usize,
        lines: &mut Lines,
    ) -> anyhow::Result<Reactor> {
        let (address, settings) = self.listen(hosts, usual_port)?;
        let mut reactor = Reactor::new(limit)?;
        let address = reactor.listen(address, &settings)?;
        let members: [(&str, Json); 2] =
            [("address", address.to_string().into()), ("port", address.port().into())];
        lines.event("listening", &members);
        lines.flush()?;
        Ok(reactor)
    }
}
