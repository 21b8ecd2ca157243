//! Private streams.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tapeline_omm::role::provider::StreamHandle;
use tapeline_plant::demand::Ticket;

use crate::SessionId;

/// Private streams that are passed to a source, each with its ticket at the source.
#[derive(Debug)]
pub(crate) struct Private {
    streams: HashMap<u64, (SessionId, StreamHandle), RandomState>,
    /// Tickets by session and stream.
    tickets: Vec<HashMap<StreamHandle, Ticket, RandomState>>,
    most: usize,
}

impl Private {
    /// Creates an empty set for `most` streams.
    pub(crate) fn new(most: usize) -> Self {
        Self { streams: HashMap::default(), tickets: Vec::new(), most }
    }

    /// Returns `true` if the set is full.
    pub(crate) fn is_full(&self) -> bool {
        self.streams.len() >= self.most
    }

    pub(crate) fn open(&mut self, ticket: Ticket, session: SessionId, stream: StreamHandle) {
        if self.tickets.len() <= session.index() {
            self.tickets.resize_with(session.index() + 1, HashMap::default);
        }
        self.tickets[session.index()].insert(stream, ticket);
        self.streams.insert(ticket.0, (session, stream));
    }

    /// Returns the ticket of a stream, if it is a private one.
    pub(crate) fn ticket(&self, session: SessionId, stream: StreamHandle) -> Option<Ticket> {
        self.tickets.get(session.index())?.get(&stream).copied()
    }

    pub(crate) fn stream(&self, ticket: Ticket) -> Option<(SessionId, StreamHandle)> {
        self.streams.get(&ticket.0).copied()
    }

    /// Removes a stream; returns its ticket.
    pub(crate) fn close(&mut self, session: SessionId, stream: StreamHandle) -> Option<Ticket> {
        let ticket = self.tickets.get_mut(session.index())?.remove(&stream)?;
        self.streams.remove(&ticket.0);
        Some(ticket)
    }

    pub(crate) fn of(&self, session: SessionId) -> Vec<StreamHandle> {
        let tickets = self.tickets.get(session.index()).into_iter().flatten();
        let mut streams: Vec<_> = tickets.map(|(stream, _)| *stream).collect();
        streams.sort_unstable();
        streams
    }

    pub(crate) fn open_streams(&self, session: SessionId) -> usize {
        self.tickets.get(session.index()).map_or(0, HashMap::len)
    }

    /// Returns the number of private streams.
    pub(crate) fn len(&self) -> usize {
        self.streams.len()
    }
}
