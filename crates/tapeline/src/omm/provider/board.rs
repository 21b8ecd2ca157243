//! Items that somebody has open, and who.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use tapeline_measure::Nanos;
use tapeline_omm::role::provider::StreamHandle;
use tapeline_omm::rwf::{
    DataState, DataType, Domain, StateCode, StatusHeader, StreamState, UpdateHeader, UpdateType,
};
use tapeline_omm::{Refused, State};
use tapeline_wire::rssl::ConnectionId;

use crate::omm::market::{GONE, Moment, View};
use crate::omm::message_file::MessageFile;

/// What an item is called, in its domain.
pub(super) type Name = (Domain, Box<[u8]>);

/// Posts that wait to be passed on at most; with more, the oldest are forgotten.
const MOST_POSTED: usize = 10_000;

/// All items that are open.
#[derive(Debug, Default)]
pub(super) struct Board {
    /// What is said of quoted items, if it is not made up.
    pub(super) messages: Option<MessageFile>,
    places: HashMap<Rc<Name>, usize>,
    items: Vec<Item>,
    names: HashMap<(ConnectionId, StreamHandle), Rc<Name>>,
    /// Whose turn it is.
    next: usize,
    posted: VecDeque<Change>,
}

#[derive(Debug)]
struct Item {
    name: Rc<Name>,
    turn: u64,
    streams: Vec<Open>,
}

/// A stream on which an item is open.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) connection: ConnectionId,
    pub(super) stream: StreamHandle,
    pub(super) view: View,
}

/// Something that happens to an item.
#[derive(Debug)]
pub(super) struct Change {
    item: Rc<Name>,
    what: What,
}

#[derive(Debug)]
enum What {
    /// It goes on by itself.
    Turn(u64),
    /// Somebody posted.
    Posted(DataType, Box<[u8]>),
    Closes,
}

impl Board {
    /// Nothing is open.
    pub(super) fn new(messages: Option<MessageFile>) -> Self {
        Self { messages, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// A stream is open for an item from now on, with this view.
    pub(super) fn open(&mut self, connection: ConnectionId, stream: StreamHandle, name: Name, view: View) {
        let name = Rc::new(name);
        let place = *self.places.entry(Rc::clone(&name)).or_insert(self.items.len());
        if place == self.items.len() {
            self.items.push(Item { name, turn: 0, streams: Vec::new() });
        }
        let item = &mut self.items[place];
        self.names.insert((connection, stream), Rc::clone(&item.name));
        item.streams.push(Open { connection, stream, view });
    }

    /// The stream's view is another one from now on.
    pub(super) fn set_view(&mut self, connection: ConnectionId, stream: StreamHandle, view: View) {
        let Some(place) = self.place(connection, stream) else { return };
        let mut streams = self.items[place].streams.iter_mut();
        if let Some(open) = streams.find(|open| (open.connection, open.stream) == (connection, stream)) {
            open.view = view;
        }
    }

    /// The stream is open no longer.
    pub(super) fn close(&mut self, connection: ConnectionId, stream: StreamHandle) {
        let Some(place) = self.place(connection, stream) else { return };
        self.names.remove(&(connection, stream));
        let streams = &mut self.items[place].streams;
        streams.retain(|open| (open.connection, open.stream) != (connection, stream));
        if streams.is_empty() {
            self.remove(place);
        }
    }

    /// A connection is over.
    pub(super) fn leave(&mut self, connection: ConnectionId) {
        self.names.retain(|(of, _), _| *of != connection);
        for place in (0..self.items.len()).rev() {
            let streams = &mut self.items[place].streams;
            streams.retain(|open| open.connection != connection);
            if streams.is_empty() {
                self.remove(place);
            }
        }
    }

    /// An item is closed for all.
    pub(super) fn forget(&mut self, name: &Name) {
        let Some(place) = self.places.get(name).copied() else { return };
        for open in &self.items[place].streams {
            self.names.remove(&(open.connection, open.stream));
        }
        self.remove(place);
    }

    /// What the stream is open for, as it is now, and the view.
    pub(super) fn of(
        &self,
        connection: ConnectionId,
        stream: StreamHandle,
        now: Nanos,
    ) -> Option<(Domain, Moment<'_>, Option<&[i16]>)> {
        let item = &self.items[self.place(connection, stream)?];
        let mut streams = item.streams.iter();
        let open = streams.find(|open| (open.connection, open.stream) == (connection, stream))?;
        let messages = self.messages.as_ref();
        let moment = Moment { name: &item.name.1, turn: item.turn, now_ns: now.0, messages };
        Some((item.name.0, moment, open.view.as_deref()))
    }

    /// Who has an item open.
    pub(super) fn streams(&self, name: &Name) -> &[Open] {
        self.places.get(name).map_or(&[], |place| &self.items[*place].streams)
    }

    /// The next item changes.
    pub(super) fn next(&mut self) -> Option<Change> {
        let place = if self.next < self.items.len() { self.next } else { 0 };
        self.next = place + 1;
        let item = self.items.get_mut(place)?;
        item.turn += 1;
        let is_over = *item.name.1 == *GONE && item.turn > 1;
        let what = if is_over { What::Closes } else { What::Turn(item.turn) };
        Some(Change { item: Rc::clone(&item.name), what })
    }

    /// Somebody posted to an item, on its stream or with its name.
    pub(super) fn post(&mut self, name: &Name, container: DataType, payload: &[u8]) {
        let Some((name, _)) = self.places.get_key_value(name) else { return };
        if self.posted.len() == MOST_POSTED {
            self.posted.pop_front();
        }
        self.posted
            .push_back(Change { item: Rc::clone(name), what: What::Posted(container, payload.into()) });
    }

    /// The next post to be passed on.
    pub(super) fn posted(&mut self) -> Option<Change> {
        self.posted.pop_front()
    }

    fn place(&self, connection: ConnectionId, stream: StreamHandle) -> Option<usize> {
        self.places.get(self.names.get(&(connection, stream))?).copied()
    }

    fn remove(&mut self, place: usize) {
        let item = self.items.swap_remove(place);
        self.places.remove(&item.name);
        if let Some(moved) = self.items.get(place) {
            self.places.insert(Rc::clone(&moved.name), place);
        }
    }
}

impl Change {
    pub(super) fn item(&self) -> &Name {
        &self.item
    }

    /// The item's last word, if it is closed.
    pub(super) fn status(&self) -> Option<StatusHeader<'static>> {
        let (stream, data, code) = (StreamState::CLOSED, DataState::SUSPECT, StateCode::NONE);
        let state = State { stream, data, code, text: b"This item is gone" };
        let status = StatusHeader { state: Some(state), ..StatusHeader::new(self.item.0, 0) };
        matches!(self.what, What::Closes).then_some(status)
    }

    /// Bytes that it has at most, encoded.
    pub(super) fn longest(&self) -> usize {
        match &self.what {
            // With a header's 65,535 bytes at most.
            What::Posted(_, payload) => payload.len() + (1 << 16),
            _ => 1 << 17,
        }
    }

    /// Writes the update to the front of `room`: its length, or `None` where a view has nothing of it.
    pub(super) fn encode(
        &self,
        view: Option<&[i16]>,
        now: Nanos,
        messages: Option<&MessageFile>,
        room: &mut [u8],
    ) -> Result<Option<usize>, Refused> {
        let (domain, name) = &*self.item;
        let header = |update_type, container| UpdateHeader::new(*domain, 0, update_type, container);
        match &self.what {
            What::Turn(turn) => {
                let moment = Moment { name, turn: *turn, now_ns: now.0, messages };
                if *domain == Domain::MARKET_BY_ORDER {
                    let header = header(UpdateType::UNSPECIFIED, DataType::MAP);
                    return header.encode_with(room, |room| moment.book_change(room)).map(Some);
                }
                let mut has_some = false;
                let len = header(moment.update_type(), DataType::FIELD_LIST).encode_with(room, |room| {
                    let (len, is_something) = moment.price_change(view, room)?;
                    has_some = is_something;
                    Ok(len)
                })?;
                Ok(has_some.then_some(len))
            }
            What::Posted(container, payload) => {
                let header = header(UpdateType::UNSPECIFIED, *container);
                let len = header.encode_with(room, |room| {
                    room.get_mut(..payload.len()).ok_or(Refused::Full)?.copy_from_slice(payload);
                    Ok(payload.len())
                })?;
                Ok(Some(len))
            }
            What::Closes => Ok(None),
        }
    }
}
