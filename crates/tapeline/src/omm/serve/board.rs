//! Open items and their streams.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use tapeline_measure::Nanos;
use tapeline_omm::Refused;
use tapeline_omm::role::provider::StreamHandle;
use tapeline_omm::rwf::{DataType, Domain, UpdateHeader, UpdateType};
use tapeline_perf::omm::messages::DomainMessages;
use tapeline_wire::rssl::ConnectionId;

use crate::omm::market::{GONE, Moment, View};

/// Domain and name of an item.
pub(super) type Name = (Domain, Box<[u8]>);

/// Maximum bytes of queued posts, over all connections; a post beyond is refused.
const MOST_POSTED: usize = 64 << 20;
/// Maximum bytes of one connection's queued posts: one post of maximum length, or many short ones.
const MOST_POSTED_BY_ONE: usize = 17 << 20;
/// Cost of a post in addition to its payload, in bytes.
const POST_COST: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Board {
    /// Messages that replace the simulated content of quoted items.
    pub(super) messages: Option<DomainMessages>,
    places: HashMap<Rc<Name>, usize>,
    items: Vec<Item>,
    spots: HashMap<(ConnectionId, StreamHandle), Spot>,
    /// Index of the next item to change.
    next: usize,
    posted: VecDeque<(ConnectionId, ItemChange)>,
    /// Cost of all queued posts, and the cost for each connection with queued posts.
    posted_bytes: usize,
    posted_by: HashMap<ConnectionId, usize>,
}

/// Finds a stream without a search: one message can open an item a hundred thousand times.
#[derive(Debug)]
struct Spot {
    name: Rc<Name>,
    /// Index among the item's streams.
    index: usize,
}

/// A post was refused: too many are queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooManyPosts;

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
    /// An image is pending, so updates are useless until it is sent.
    pub(super) wants_image: bool,
}

#[derive(Debug)]
pub(super) struct ItemChange {
    item: Rc<Name>,
    what: What,
}

#[derive(Debug)]
enum What {
    /// The next simulated change.
    Turn(u64),
    Posted(DataType, Box<[u8]>),
    Closes,
}

impl Board {
    pub(super) fn new(messages: Option<DomainMessages>) -> Self {
        Self { messages, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Opens a stream for an item, with this view.
    pub(super) fn open(&mut self, connection: ConnectionId, stream: StreamHandle, name: Name, view: View) {
        let name = Rc::new(name);
        let place = *self.places.entry(Rc::clone(&name)).or_insert(self.items.len());
        if place == self.items.len() {
            self.items.push(Item { name, turn: 0, streams: Vec::new() });
        }
        let item = &mut self.items[place];
        let spot = Spot { name: Rc::clone(&item.name), index: item.streams.len() };
        self.spots.insert((connection, stream), spot);
        item.streams.push(Open { connection, stream, view, wants_image: false });
    }

    pub(super) fn set_view(&mut self, connection: ConnectionId, stream: StreamHandle, view: View) {
        if let Some(open) = self.find_mut(connection, stream) {
            open.view = view;
        }
    }

    /// Sets whether an image of the stream is pending; returns whether that changed.
    pub(super) fn want_image(
        &mut self,
        connection: ConnectionId,
        stream: StreamHandle,
        is_wanted: bool,
    ) -> bool {
        let Some(open) = self.find_mut(connection, stream) else { return false };
        std::mem::replace(&mut open.wants_image, is_wanted) != is_wanted
    }

    pub(super) fn close(&mut self, connection: ConnectionId, stream: StreamHandle) {
        let Some(Spot { name, index }) = self.spots.remove(&(connection, stream)) else { return };
        let Some(place) = self.places.get(&name).copied() else { return };
        let streams = &mut self.items[place].streams;
        streams.swap_remove(index);
        if let Some(moved) = streams.get(index)
            && let Some(spot) = self.spots.get_mut(&(moved.connection, moved.stream))
        {
            spot.index = index;
        }
        if streams.is_empty() {
            self.remove(place);
        }
    }

    /// Closes all streams of a connection.
    pub(super) fn leave(&mut self, connection: ConnectionId) {
        let of_it = |spot: &&(ConnectionId, StreamHandle)| spot.0 == connection;
        let gone: Vec<StreamHandle> = self.spots.keys().filter(of_it).map(|(_, stream)| *stream).collect();
        for stream in gone {
            self.close(connection, stream);
        }
    }

    /// Closes an item for all streams.
    pub(super) fn forget(&mut self, name: &Name) {
        let Some(place) = self.places.get(name).copied() else { return };
        for open in &self.items[place].streams {
            self.spots.remove(&(open.connection, open.stream));
        }
        self.remove(place);
    }

    /// The stream's item in its current state, with the view.
    pub(super) fn of(
        &self,
        connection: ConnectionId,
        stream: StreamHandle,
        now: Nanos,
    ) -> Option<(Domain, Moment<'_>, Option<&[i16]>)> {
        let Spot { name, index } = self.spots.get(&(connection, stream))?;
        let item = self.items.get(*self.places.get(name)?)?;
        let open = item.streams.get(*index)?;
        let messages = self.messages.as_ref();
        let moment = Moment { name: &item.name.1, turn: item.turn, now_ns: now.0, messages };
        Some((item.name.0, moment, open.view.as_deref()))
    }

    /// The streams of an item, and the messages that replace the simulated content.
    pub(super) fn streams(&mut self, name: &Name) -> (&mut [Open], Option<&DomainMessages>) {
        let streams: &mut [Open] = match self.places.get(name) {
            Some(place) => &mut self.items[*place].streams,
            None => &mut [],
        };
        (streams, self.messages.as_ref())
    }

    pub(super) fn next(&mut self) -> Option<ItemChange> {
        let place = if self.next < self.items.len() { self.next } else { 0 };
        self.next = place + 1;
        let item = self.items.get_mut(place)?;
        item.turn += 1;
        let is_over = *item.name.1 == *GONE && item.turn > 1;
        let what = if is_over { What::Closes } else { What::Turn(item.turn) };
        Some(ItemChange { item: Rc::clone(&item.name), what })
    }

    /// Queues a post to an item. A post to an item without open streams is dropped.
    pub(super) fn post(
        &mut self,
        by: ConnectionId,
        name: &Name,
        container: DataType,
        payload: &[u8],
    ) -> Result<(), TooManyPosts> {
        let Some((name, _)) = self.places.get_key_value(name) else { return Ok(()) };
        let cost = payload.len() + POST_COST;
        let of_one = self.posted_by.get(&by).copied().unwrap_or_default() + cost;
        if of_one > MOST_POSTED_BY_ONE || self.posted_bytes + cost > MOST_POSTED {
            return Err(TooManyPosts);
        }
        self.posted_by.insert(by, of_one);
        self.posted_bytes += cost;
        let change = ItemChange { item: Rc::clone(name), what: What::Posted(container, payload.into()) };
        self.posted.push_back((by, change));
        Ok(())
    }

    pub(super) fn posted(&mut self) -> Option<ItemChange> {
        let Some((by, change)) = self.posted.pop_front() else {
            // The queue is empty, so no cost is left.
            self.posted_by.clear();
            return None;
        };
        if let What::Posted(_, payload) = &change.what {
            let cost = payload.len() + POST_COST;
            self.posted_bytes -= cost;
            if let Some(of_one) = self.posted_by.get_mut(&by) {
                *of_one -= cost;
            }
        }
        Some(change)
    }

    fn find_mut(&mut self, connection: ConnectionId, stream: StreamHandle) -> Option<&mut Open> {
        let Spot { name, index } = self.spots.get(&(connection, stream))?;
        self.items.get_mut(*self.places.get(name)?)?.streams.get_mut(*index)
    }

    fn remove(&mut self, place: usize) {
        let item = self.items.swap_remove(place);
        self.places.remove(&item.name);
        if let Some(moved) = self.items.get(place) {
            self.places.insert(Rc::clone(&moved.name), place);
        }
    }
}

impl ItemChange {
    pub(super) fn item(&self) -> &Name {
        &self.item
    }

    /// Whether the change closes the item.
    pub(super) fn is_last(&self) -> bool {
        matches!(self.what, What::Closes)
    }

    /// Whether the change is the same in every view.
    pub(super) fn is_posted(&self) -> bool {
        matches!(self.what, What::Posted(..))
    }

    /// Upper limit of the encoded length, in bytes.
    pub(super) fn longest(&self) -> usize {
        match &self.what {
            // A header has 65,535 bytes at most.
            What::Posted(_, payload) => payload.len() + (1 << 16),
            _ => 1 << 17,
        }
    }

    /// Writes the update to the front of `room`: its length, or `None` if the view has none of its fields.
    pub(super) fn encode(
        &self,
        view: Option<&[i16]>,
        now: Nanos,
        messages: Option<&DomainMessages>,
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

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::Arc;

    use tapeline_omm::domain::{LoginFeatures, LoginRequest};
    use tapeline_omm::role::provider::{Provider, ProviderEvent, ProviderSettings};
    use tapeline_omm::role::{Outbox, Queue};
    use tapeline_omm::rwf::{Key, RequestHeader, flags};
    use tapeline_wire::rssl::{self, Reactor};

    use super::*;

    const NOW: Nanos = Nanos(0);

    fn connections() -> [ConnectionId; 2] {
        let mut reactor = Reactor::new(8).unwrap();
        let settings = Arc::new(rssl::ConnectionSettings::default());
        let address = reactor.listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), &settings).unwrap();
        [(); 2].map(|()| reactor.connect(address, &settings, NOW).unwrap())
    }

    fn streams(count: i32) -> Vec<StreamHandle> {
        let mut opened = Vec::new();
        let mut provider = Provider::new(ProviderSettings::default(), NOW);
        let mut application =
            |provider: &mut Provider, out: &mut dyn Outbox, event: ProviderEvent<'_>| match event {
                ProviderEvent::Login { request, .. } => {
                    let _ = provider.accept_login(NOW, out, &request, LoginFeatures::default()).unwrap();
                }
                ProviderEvent::Open { stream, .. } => opened.push(stream),
                other => panic!("{other:?}"),
            };
        let (mut out, mut room) = (Queue::new(1 << 20), [0; 256]);
        let len = LoginRequest::new(b"user").encode(&mut room).unwrap();
        provider.message(NOW, &room[..len], &mut out, &mut application).unwrap();
        for id in 0..count {
            let header = RequestHeader::new(Domain::MARKET_PRICE, id + 2, Key::item(1, b"A"));
            let len = RequestHeader { flags: flags::request::STREAMING, ..header }.encode(&mut room).unwrap();
            provider.message(NOW, &room[..len], &mut out, &mut application).unwrap();
        }
        opened
    }

    fn name(name: &str) -> Name {
        (Domain::MARKET_PRICE, name.as_bytes().into())
    }

    #[test]
    fn streams_of_an_item_are_found_whichever_are_closed() {
        let ([one, two], streams, mut board) = (connections(), streams(6), Board::default());
        for (fid, stream) in (0..).zip(&streams) {
            board.open(one, *stream, name("A"), Some(Rc::new([fid])));
            board.open(two, *stream, name("A"), Some(Rc::new([-fid])));
        }
        for closed in [0, 5, 2] {
            board.close(one, streams[closed]);
        }
        board.leave(two);
        let views = |board: &Board| {
            let view =
                |stream: &StreamHandle| board.of(one, *stream, NOW).map(|(_, _, view)| view.unwrap()[0]);
            streams.iter().map(view).collect::<Vec<_>>()
        };
        assert_eq!(views(&board), [None, Some(1), None, Some(3), Some(4), None]);
        assert_eq!(board.streams(&name("A")).0.len(), 3);
        board.forget(&name("A"));
        assert_eq!(views(&board), [None; 6]);
        assert!(board.is_empty() && board.spots.is_empty());
    }

    #[test]
    fn an_image_is_owed_once() {
        let ([one, _], streams, mut board) = (connections(), streams(1), Board::default());
        board.open(one, streams[0], name("A"), None);
        let news = [true, true, false, true].map(|is_wanted| board.want_image(one, streams[0], is_wanted));
        assert_eq!(news, [true, false, true, true]);
    }

    #[test]
    fn posts_that_wait_are_bounded_by_their_bytes() {
        let ([one, two], streams, mut board) = (connections(), streams(1), Board::default());
        board.open(one, streams[0], name("A"), None);
        let long = vec![0; 9 << 20];
        let post = |board: &mut Board, by| board.post(by, &name("A"), DataType::OPAQUE, &long);
        assert_eq!(post(&mut board, one), Ok(()));
        assert_eq!(post(&mut board, one), Err(TooManyPosts), "more than one connection may have");
        assert_eq!(post(&mut board, two), Ok(()), "which is no matter of another one's");
        assert_eq!(board.post(two, &name("B"), DataType::OPAQUE, &long), Ok(()), "nobody has it open");
        assert_eq!(std::iter::from_fn(|| board.posted()).count(), 2);
        assert_eq!((board.posted_bytes, board.posted_by.len()), (0, 0));
        assert_eq!(post(&mut board, one), Ok(()));
    }
}
