//! Streams that are one client's alone.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tapeline_omm::role::provider::StreamHandle;
use tapeline_plant::demand::Ticket;

use crate::SessionId;

/// Private streams that go on to a source, each with the ticket that the source knows it by.
#[derive(Debug)]
pub(crate) struct Private {
    streams: HashMap<u64, (SessionId, StreamHandle), RandomState>,
    /// By session.
    tickets: Vec<HashMap<StreamHandle, Ticket, RandomState>>,
    most: usize,
}

impl Private {
    /// None, and room for so many.
    pub(crate) fn new(most: usize) -> Self {
        Self { streams: HashMap::default(), tickets: Vec::new(), most }
    }

    /// Whether there is room for no more.
    pub(crate) fn is_full(&self) -> bool {
        self.streams.len() >= self.most
    }

    /// A stream goes on to a source under this ticket.
    pub(crate) fn open(&mut self, ticket: Ticket, session: SessionId, stream: StreamHandle) {
        if self.tickets.len() <= session.index() {
            self.tickets.resize_with(session.index() + 1, HashMap::default);
        }
        self.tickets[session.index()].insert(stream, ticket);
        self.streams.insert(ticket.0, (session, stream));
    }

    /// The ticket of a stream, if it is one that goes on to a source.
    pub(crate) fn ticket(&self, session: SessionId, stream: StreamHandle) -> Option<Ticket> {
        self.tickets.get(session.index())?.get(&stream).copied()
    }

    /// The stream of a ticket.
    pub(crate) fn stream(&self, ticket: Ticket) -> Option<(SessionId, StreamHandle)> {
        self.streams.get(&ticket.0).copied()
    }

    /// A stream is open no longer: its ticket.
    pub(crate) fn close(&mut self, session: SessionId, stream: StreamHandle) -> Option<Ticket> {
        let ticket = self.tickets.get_mut(session.index())?.remove(&stream)?;
        self.streams.remove(&ticket.0);
        Some(ticket)
    }

    /// Those of a session.
    pub(crate) fn of(&self, session: SessionId) -> Vec<StreamHandle> {
        let tickets = self.tickets.get(session.index()).into_iter().flatten();
        let mut streams: Vec<_> = tickets.map(|(stream, _)| *stream).collect();
        streams.sort_unstable();
        streams
    }

    /// How many a session has.
    pub(crate) fn open_streams(&self, session: SessionId) -> usize {
        self.tickets.get(session.index()).map_or(0, HashMap::len)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.streams.len()
    }
}
