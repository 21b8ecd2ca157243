//! A hub whose clients have connections that take everything and keep nothing, and ticks that are made beforehand.

#![allow(clippy::unwrap_used, reason = "what cannot go on should stop")]

use std::hint::black_box;

use tapeline_hub::{Coming, Connections, Hub, Service, SessionId, Settings};
use tapeline_nanos::Nanos;
use tapeline_omm::domain::directory::{self, Group};
use tapeline_omm::domain::{List, LoginRequest, OwnedState, RequestPayload, ServiceEntry, ServicePart, View};
use tapeline_omm::role::Outbox;
use tapeline_omm::rwf::{
    CloseHeader, DataState, DataType, Domain, Key, RefreshHeader, RequestHeader, State, UpdateType, flags,
    update_header,
};
use tapeline_omm::{Fid, FieldListEncoder, Real, Refused};
use tapeline_plant::tick::{self, Kind, Tick};
use tapeline_plant::{Items, Origin, Publish, Sequencer, Stamps, Time};

const NOW: Nanos = Nanos(1_000_000_000);
const SERVICE: u16 = 1;
/// Of a provider, and a group of its items.
const PROVIDED: u16 = 7;
const GROUP: &[u8] = b"\x00\x07";
/// Streams that are used in turn.
const VARIED: usize = 1_024;
/// Updates after which this bench folds them all.
const TOGETHER: usize = 16;
/// As a price record has them, and as many as an update changes.
const FIELDS: i16 = 70;
const CHANGED: i16 = 13;

/// One connection for all: the place where messages are written, over and over.
pub(crate) struct Links {
    room: [u8; 4096],
    /// Bytes that were sent.
    pub(crate) sent: u64,
    /// Nobody has room.
    pub(crate) is_full: bool,
}

impl Connections for Links {
    fn with<R>(&mut self, _: SessionId, send: impl FnOnce(&mut dyn Outbox) -> R) -> Option<R> {
        Some(send(self))
    }

    fn is_flushed(&mut self, _: SessionId) -> bool {
        !self.is_full
    }
}

impl Outbox for Links {
    fn most(&self) -> usize {
        self.room.len()
    }

    fn claim(&mut self, len: usize) -> Option<&mut [u8]> {
        if self.is_full { None } else { self.room.get_mut(..len) }
    }

    fn commit(&mut self, len: usize) {
        self.sent += len as u64;
        black_box(&self.room[..len]);
    }
}

/// The ticks, one behind the other.
#[derive(Default)]
struct Ticks(Vec<Vec<u8>>);

impl Publish for Ticks {
    fn publish(
        &mut self,
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<(), tapeline_plant::Refused> {
        let mut tick = vec![0; len];
        let used = fill(&mut tick);
        tick.truncate(used);
        self.0.push(tick);
        Ok(())
    }
}

struct Noon;

impl Time for Noon {
    fn now(&self) -> Nanos {
        NOW
    }
}

/// A hub at work.
pub(crate) struct Floor {
    pub(crate) hub: Hub,
    pub(crate) connections: Links,
    sequencer: Sequencer<Ticks>,
    /// The first update.
    first: usize,
    /// Who came last.
    last: Option<SessionId>,
    names: Vec<String>,
}

impl Floor {
    /// So many clients that have all of so many items open, or these of their fields; and so many updates, of the items in turn.
    pub(crate) fn new(clients: usize, items: usize, view: Option<&[i16]>, updates: usize) -> Self {
        Self::in_order(clients, items, view, updates, |update| update)
    }

    /// The same, with the updates in another order: `order` gives the item of each, by its number, which may exceed theirs.
    pub(crate) fn in_order(
        clients: usize,
        items: usize,
        view: Option<&[i16]>,
        updates: usize,
        order: impl Fn(usize) -> usize,
    ) -> Self {
        // As the defaults are, where those do not limit it.
        let mut settings = Settings::default();
        settings.max_items = settings.max_items.max(items);
        settings.max_streams = settings.max_streams.max(items * clients.max(1) + VARIED);
        settings.cache_bytes = settings.cache_bytes.max(items << 10);
        settings.session.most_streams = settings.session.most_streams.max((items + VARIED) as u32);
        let mut floor = Self {
            hub: Hub::new(settings),
            connections: Links { room: [0; 4096], sent: 0, is_full: false },
            sequencer: Sequencer::new(SERVICE, Items::new(items), Ticks::default()),
            first: items,
            last: None,
            names: Vec::new(),
        };
        let names: Vec<String> = (0..items).map(|item| format!("ITEM{item}")).collect();
        for name in &names {
            floor.tick(Kind::Refresh, name, |out| {
                let mut header =
                    RefreshHeader::new(Domain::MARKET_PRICE, 0, State::OPEN_OK, DataType::FIELD_LIST);
                header.flags = flags::refresh::REFRESH_COMPLETE | flags::refresh::CLEAR_CACHE;
                header.encode_with(out, |room| fields(room, FIELDS, 0))
            });
        }
        for update in 0..updates {
            floor.tick(Kind::Update, &names[order(update) % items], |out| {
                let quote = UpdateType::QUOTE;
                let start = update_header(out, Domain::MARKET_PRICE, 0, quote, DataType::FIELD_LIST)?;
                Ok(start + fields(&mut out[start..], CHANGED, update)?)
            });
        }
        for image in 0..items {
            floor.take(image);
        }
        for _ in 0..clients {
            floor.client(&names, view);
        }
        floor.names = names;
        floor
    }

    /// Items of a provider's service, which nobody has open, one in ten of them in a group; and what the service says of the
    /// group, good and suspect by turns.
    pub(crate) fn provided(items: usize) -> Self {
        let mut floor = Self::new(0, 0, None, 0);
        let service = Service { on_demand: false, ..Service::new("PROVIDED", PROVIDED) };
        floor.hub = Hub::new(Settings { services: vec![service], ..Settings::default() });
        floor.sequencer = Sequencer::new(SERVICE, Items::new(items), Ticks::default());
        let none = tick::Flags::default();
        for number in 0..items {
            let name = format!("ITEM{number}");
            let item = floor.sequencer.item_of(PROVIDED, &name).unwrap();
            let origin = Origin { service: Some(PROVIDED), item, name: &name, ..Origin::default() };
            let image = floor.sequencer.tick(Kind::Refresh, none, &origin, Stamps::default(), &Noon, |out| {
                let mut header =
                    RefreshHeader::new(Domain::MARKET_PRICE, 0, State::OPEN_OK, DataType::FIELD_LIST);
                header.flags = flags::refresh::REFRESH_COMPLETE | flags::refresh::CLEAR_CACHE;
                header.group_id = if number % 10 == 0 { GROUP } else { b"\x00\x08" };
                header.encode_with(out, |room| fields(room, FIELDS, 0)).unwrap()
            });
            image.unwrap();
        }
        for data in [DataState::SUSPECT, DataState::OK] {
            let status = OwnedState::from(State { data, text: b"as said", ..State::OPEN_OK });
            let group = Group { group: Some(GROUP.into()), status: Some(status), ..Group::default() };
            let change = ServiceEntry::change(PROVIDED, ServicePart::Group(group));
            let origin = Origin { service: Some(PROVIDED), ..Origin::default() };
            let told = floor.sequencer.tick(Kind::Status, none, &origin, Stamps::default(), &Noon, |out| {
                directory::encode_update(0, directory::filter::ALL, [&change], out).unwrap()
            });
            told.unwrap();
        }
        floor.first = items;
        for image in 0..items {
            floor.take(image);
        }
        floor
    }

    /// A client opens the items of these names, one request each; `done` is told of each.
    pub(crate) fn open_all(&mut self, names: impl Iterator<Item = String>, mut done: impl FnMut()) {
        let session = self.hub.open(NOW);
        let mut room = [0; 1024];
        let len = LoginRequest::new(b"user").encode(&mut room).unwrap();
        self.hub.message(NOW, session, &room[..len], &mut self.connections);
        for (name, stream) in names.zip(5..) {
            let header =
                RequestHeader::new(Domain::MARKET_PRICE, stream, Key::item(SERVICE, name.as_bytes()));
            let header = RequestHeader { flags: flags::request::STREAMING, ..header };
            let len = header.encode(&mut room).unwrap();
            done();
            self.hub.message(NOW, session, &room[..len], &mut self.connections);
            done();
        }
    }

    /// Returns what the last client sends to open an item once more, and to close it.
    pub(crate) fn open_and_close(&self, number: usize) -> [Vec<u8>; 2] {
        // Behind the streams that it has.
        let stream = (5 + self.names.len() + number % VARIED) as i32;
        let name = &self.names[number % self.names.len()];
        let header = RequestHeader::new(Domain::MARKET_PRICE, stream, Key::item(SERVICE, name.as_bytes()));
        let header = RequestHeader { flags: flags::request::STREAMING, ..header };
        let mut room = [0; 1024];
        let open = header.encode(&mut room).unwrap();
        let open = room[..open].to_vec();
        let close = CloseHeader::new(Domain::MARKET_PRICE, stream).encode(&mut room).unwrap();
        [open, room[..close].to_vec()]
    }

    /// The last client sends messages.
    pub(crate) fn send(&mut self, messages: &[Vec<u8>]) {
        let Some(session) = self.last else { return };
        for message in messages {
            self.hub.message(NOW, session, message, &mut self.connections);
        }
    }

    fn tick(&mut self, kind: Kind, name: &str, write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>) {
        let item = self.sequencer.item(name).unwrap();
        let origin = Origin { item, name, ..Origin::default() };
        let flags = tick::Flags::default();
        let told =
            self.sequencer.tick(kind, flags, &origin, Stamps::default(), &Noon, |out| write(out).unwrap());
        told.unwrap();
    }

    fn client(&mut self, names: &[String], view: Option<&[i16]>) {
        let session = self.hub.open(NOW);
        self.last = Some(session);
        let mut say = |write: &mut dyn FnMut(&mut [u8]) -> Result<usize, Refused>| {
            let mut room = [0; 1024];
            let len = write(&mut room).unwrap();
            self.hub.message(NOW, session, &room[..len], &mut self.connections);
        };
        say(&mut |room| LoginRequest::new(b"user").encode(room));
        for (name, stream) in names.iter().zip(5..) {
            let key = Key::item(SERVICE, name.as_bytes());
            let header = RequestHeader::new(Domain::MARKET_PRICE, stream, key);
            let header = RequestHeader { flags: flags::request::STREAMING, ..header };
            match view {
                None => say(&mut |room| header.encode(room)),
                Some(fids) => say(&mut |room| {
                    let view = Some(View::Fids(List::Given(fids)));
                    let payload = RequestPayload { view, ..RequestPayload::default() };
                    let mut header = header;
                    payload.mark(&mut header);
                    header.encode_with(room, |room| payload.encode(room))
                }),
            }
        }
    }

    /// The hub takes an update; behind the last comes the first again.
    pub(crate) fn update(&mut self, number: usize) {
        let count = self.sequencer.publisher().0.len() - self.first;
        self.take(self.first + number % count);
        if self.hub.unfolded() >= TOGETHER {
            self.fold();
        }
    }

    /// What was sent is folded into the images.
    pub(crate) fn fold(&mut self) {
        while self.hub.unfolded() > 0 {
            self.hub.fold(NOW, &mut self.connections);
        }
    }

    /// The hub prepares for an update and those behind it: for how many.
    pub(crate) fn expect(&mut self, number: usize) -> usize {
        let ticks = &self.sequencer.publisher().0[self.first..];
        let ahead = ticks.iter().cycle().skip(number % ticks.len());
        self.hub.expect(ahead.map(|frame| Coming::of(frame).unwrap()))
    }

    fn take(&mut self, place: usize) {
        let tick = Tick::parse(&self.sequencer.publisher().0[place]).unwrap();
        self.hub.tick(NOW, &tick, &mut self.connections);
    }
}

fn fields(room: &mut [u8], count: i16, turn: usize) -> Result<usize, Refused> {
    let mut list = FieldListEncoder::new(room)?;
    for place in 0..count {
        // Values of lengths that differ now and then.
        let value = (turn as i64 * 37 + i64::from(place)) % 300;
        list.real(Fid(1 + place * 5), Real::decimal(value, 2))?;
    }
    Ok(list.finish())
}
