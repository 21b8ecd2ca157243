//! A made plant, a hub, and clients that remember what they were sent.

#![allow(dead_code, reason = "each test uses its part")]

use std::collections::BTreeMap;

use tapeline_hub::{Connections, End, Hub, HubEvent, Peer, SessionId, Settings};
use tapeline_nanos::Nanos;
use tapeline_omm::domain::directory::{self, ServiceState};
use tapeline_omm::domain::{LoginRequest, RequestPayload, ServiceEntry, ServicePart, View};
use tapeline_omm::role::{Outbox, Queue};
use tapeline_omm::rwf::Timeliness;
use tapeline_omm::rwf::{
    CloseHeader, DataState, DataType, Domain, Flags, Header, Key, MessageClass, MessageView, RefreshHeader,
    RequestHeader, State, StateCode, StatusHeader, StreamState, UpdateType, flags, update_header,
};
use tapeline_omm::{Fid, FieldList, FieldListEncoder, Qos, Real, Refused, fid};
use tapeline_plant::demand::{Answer, Demand};
use tapeline_plant::tick::{self, Kind, Tick};
use tapeline_plant::{ItemId, Items, Origin, Publish, Sequencer, Stamps, Time};

pub(crate) const SERVICE: u16 = 1;
/// The longest message of a made plant.
const LONGEST: usize = 16 << 10;

/// Another quality of service than the feeds'.
pub(crate) const DELAYED: Qos = Qos { timeliness: Timeliness::DELAYED_UNKNOWN, ..Qos::REALTIME_TICK };

/// Values of an item's fields.
pub(crate) type Values = BTreeMap<Fid, i64>;

/// Keeps the last tick.
#[derive(Default)]
struct Last(Vec<u8>);

impl Publish for Last {
    fn publish(
        &mut self,
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<(), tapeline_plant::Refused> {
        self.0 = vec![0; len];
        let used = fill(&mut self.0);
        self.0.truncate(used);
        Ok(())
    }
}

struct Noon;

impl Time for Noon {
    fn now(&self) -> Nanos {
        Nanos(1)
    }
}

/// Ways out of memory, and how often each was lent.
#[derive(Default)]
pub(crate) struct Queues(Vec<Option<Queue>>, pub(crate) BTreeMap<SessionId, u64>);

impl Connections for Queues {
    fn with<R>(&mut self, session: SessionId, send: impl FnOnce(&mut dyn Outbox) -> R) -> Option<R> {
        *self.1.entry(session).or_default() += 1;
        Some(send(self.0.get_mut(session.index())?.as_mut()?))
    }

    fn is_flushed(&mut self, session: SessionId) -> bool {
        self.0.get(session.index()).and_then(Option::as_ref).is_none_or(Queue::is_empty)
    }
}

/// A hub whose plant has items of two fields, each change of which has a number of its own.
pub(crate) struct Exchange {
    pub(crate) hub: Hub,
    pub(crate) queues: Queues,
    sequencer: Sequencer<Last>,
    pub(crate) now: Nanos,
    /// Ticks that the hub is not given, while there is a list of them.
    pub(crate) aside: Option<Vec<Vec<u8>>>,
}

impl Exchange {
    /// With a plant that has said something.
    pub(crate) fn new(settings: Settings) -> Self {
        let mut exchange = Self::down(settings);
        exchange.status(0, DataState::OK, tick::Flags::STATE);
        exchange
    }

    /// With a plant that has not.
    pub(crate) fn down(settings: Settings) -> Self {
        Self {
            hub: Hub::new(settings),
            queues: Queues::default(),
            sequencer: Sequencer::new(SERVICE, Items::new(1000), Last::default()),
            now: Nanos(1_000_000_000),
            aside: None,
        }
    }

    /// A tick of the plant, to the hub.
    pub(crate) fn tick(
        &mut self,
        kind: Kind,
        flags: tick::Flags,
        channel: u16,
        name: &str,
        write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>,
    ) {
        let item = if name.is_empty() { ItemId(0) } else { self.sequencer.item(name).unwrap() };
        let origin = Origin { channel, item, name, ..Origin::default() };
        self.sequencer
            .tick_up_to(LONGEST, (kind, flags), &origin, Stamps::default(), &Noon, |out| write(out).unwrap())
            .unwrap();
        let frame = self.last();
        self.frame(&frame);
    }

    /// A tick of a provider's service, to the hub; with an empty name of the service itself.
    pub(crate) fn provide(
        &mut self,
        kind: Kind,
        (service, name): (u16, &str),
        write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>,
    ) {
        let item = if name.is_empty() { ItemId(0) } else { self.sequencer.item_of(service, name).unwrap() };
        let origin = Origin { service: Some(service), item, name, ..Origin::default() };
        let none = tick::Flags::default();
        self.sequencer
            .tick_up_to(1 << 16, (kind, none), &origin, Stamps::default(), &Noon, |out| write(out).unwrap())
            .unwrap();
        let frame = self.last();
        self.frame(&frame);
    }

    /// A provider's service says something of itself.
    pub(crate) fn service(&mut self, service: u16, parts: Vec<ServicePart>) {
        let changes: Vec<_> = parts.into_iter().map(|part| ServiceEntry::change(service, part)).collect();
        self.provide(Kind::Status, (service, ""), |out| {
            directory::encode_update(0, directory::filter::ALL, &changes, out)
        });
    }

    /// A provider's service is up, or down.
    pub(crate) fn up(&mut self, service: u16, is_up: bool) {
        let state = ServiceState {
            service_state: Some(is_up.into()),
            accepting_requests: Some(is_up.into()),
            status: None,
        };
        self.service(service, vec![ServicePart::State(state)]);
    }

    /// The whole image of an item of a provider, with a group and permission data of its own.
    pub(crate) fn publish(&mut self, service: u16, name: &str, values: &Values) {
        self.provide(Kind::Refresh, (service, name), |out| {
            let mut header =
                RefreshHeader::new(Domain::MARKET_PRICE, 0, State::OPEN_OK, DataType::FIELD_LIST);
            header.flags = flags::refresh::REFRESH_COMPLETE | flags::refresh::CLEAR_CACHE;
            (header.group_id, header.permission_data) = (b"\x07\x07", Some(&b"permitted"[..]));
            header.qos = Some(DELAYED);
            header.encode_with(out, |room| fields(room, values))
        });
    }

    /// Fields of an item of a provider that change.
    pub(crate) fn change(&mut self, service: u16, name: &str, values: &Values) {
        self.provide(Kind::Update, (service, name), |out| {
            let quote = UpdateType::QUOTE;
            let header = update_header(out, Domain::MARKET_PRICE, 0, quote, DataType::FIELD_LIST)?;
            Ok(header + fields(&mut out[header..], values)?)
        });
    }

    /// The state of an item of a provider.
    pub(crate) fn say_of(&mut self, service: u16, name: &str, state: State<'_>) {
        self.provide(Kind::Status, (service, name), |out| {
            StatusHeader { state: Some(state), ..StatusHeader::new(Domain::MARKET_PRICE, 0) }.encode(out)
        });
    }

    /// The last tick of an item of a provider, whose number is the next new item's; the hub misses it, if it does.
    pub(crate) fn end(&mut self, service: u16, name: &str, is_missed: bool) {
        let item = self.sequencer.item_of(service, name).unwrap();
        let origin = Origin { service: Some(service), item, name, ..Origin::default() };
        let state = State { stream: StreamState::CLOSED_RECOVER, data: DataState::SUSPECT, ..State::OPEN_OK };
        let header = StatusHeader { state: Some(state), ..StatusHeader::new(Domain::MARKET_PRICE, 0) };
        let none = tick::Flags::default();
        self.sequencer
            .end_item(1 << 10, none, &origin, Stamps::default(), &Noon, |out| header.encode(out).unwrap())
            .unwrap();
        if !is_missed {
            let frame = self.last();
            self.frame(&frame);
        }
    }

    /// What the sources are told.
    pub(crate) fn demands(&mut self) -> Vec<Demand> {
        std::iter::from_fn(|| self.hub.next_demand()).collect()
    }

    /// A source answers.
    pub(crate) fn answer(&mut self, answer: Answer) {
        self.hub.answer(self.now, answer, &mut self.queues);
    }

    /// The tick that was made last.
    pub(crate) fn last(&mut self) -> Vec<u8> {
        self.sequencer.publisher().0.clone()
    }

    /// Any tick, to the hub.
    pub(crate) fn frame(&mut self, frame: &[u8]) {
        if let Some(aside) = &mut self.aside {
            return aside.push(frame.to_vec());
        }
        self.hub.tick(self.now, &Tick::parse(frame).unwrap(), &mut self.queues);
    }

    /// The whole image of an item.
    pub(crate) fn refresh(&mut self, name: &str, values: &Values) {
        self.tick(Kind::Refresh, tick::Flags::default(), 0, name, |out| {
            let mut header =
                RefreshHeader::new(Domain::MARKET_PRICE, 0, State::OPEN_OK, DataType::FIELD_LIST);
            header.flags = flags::refresh::REFRESH_COMPLETE | flags::refresh::CLEAR_CACHE;
            header.encode_with(out, |room| fields(room, values))
        });
    }

    /// Fields of an item that change.
    pub(crate) fn update(&mut self, name: &str, values: &Values) {
        self.tick(Kind::Update, tick::Flags::default(), 0, name, |out| {
            let quote = UpdateType::QUOTE;
            let header = update_header(out, Domain::MARKET_PRICE, 0, quote, DataType::FIELD_LIST)?;
            Ok(header + fields(&mut out[header..], values)?)
        });
    }

    /// What a channel says of itself.
    pub(crate) fn status(&mut self, channel: u16, data: DataState, flags: tick::Flags) {
        let state = State { stream: StreamState::OPEN, data, code: StateCode::NONE, text: b"as said" };
        self.tick(Kind::Status, flags, channel, "", |out| {
            StatusHeader { state: Some(state), ..StatusHeader::new(Domain::MARKET_PRICE, 0) }.encode(out)
        });
    }

    /// A client with so many bytes of room that is logged in, and knows the services.
    pub(crate) fn client(&mut self, room: usize) -> Client {
        self.client_at(room, Peer::default())
    }

    /// The same, whose connection carries JSON.
    pub(crate) fn json_client(&mut self, room: usize) -> Client {
        self.client_at(room, Peer { is_json: true, ..Peer::default() })
    }

    fn client_at(&mut self, room: usize, peer: Peer) -> Client {
        let session = self.hub.open_from(self.now, peer);
        if self.queues.0.len() <= session.index() {
            self.queues.0.resize_with(session.index() + 1, || None);
        }
        self.queues.0[session.index()] = Some(Queue::new(room));
        let client = Client { session, received: Vec::new(), next: 2 };
        self.say(&client, &message(|room| LoginRequest::new(b"user").encode(room)));
        let directory = Key { filter: Some(0x3F), ..Key::default() };
        self.say(&client, &request(Domain::SOURCE, 0x4000_0000, flags::request::STREAMING, directory));
        client
    }

    /// A client that has connected, and said nothing yet.
    pub(crate) fn connect(&mut self, peer: Peer) -> Client {
        let session = self.hub.open_from(self.now, peer);
        if self.queues.0.len() <= session.index() {
            self.queues.0.resize_with(session.index() + 1, || None);
        }
        self.queues.0[session.index()] = Some(Queue::new(1 << 20));
        Client { session, received: Vec::new(), next: 2 }
    }

    /// A client sends a message.
    pub(crate) fn say(&mut self, client: &Client, message: &[u8]) {
        let (hub, now) = (&mut self.hub, self.now);
        self.queues.with(client.session, |out| hub.message(now, client.session, message, out));
    }

    /// Time goes by: so that sessions are looked at.
    pub(crate) fn pass(&mut self, ms: u64) {
        self.now = Nanos(self.now.0 + ms * 1_000_000);
        self.hub.turn(self.now, &mut self.queues);
    }

    /// The next session that the hub has ended.
    pub(crate) fn over(&mut self) -> Option<SessionId> {
        let over = self.hub.next_over()?;
        self.queues.0[over.index()] = None;
        Some(over)
    }

    /// A client goes.
    pub(crate) fn leave(&mut self, client: &Client) {
        self.queues.0[client.session.index()] = None;
        self.hub.close(client.session, End::Connection("it went".to_owned()));
    }

    pub(crate) fn notes(&mut self) -> Vec<HubEvent> {
        std::iter::from_fn(|| self.hub.next_event()).collect()
    }

    /// A client takes so many messages, or all that there are.
    pub(crate) fn read(&mut self, client: &mut Client, most: usize) -> usize {
        let Some(Some(queue)) = self.queues.0.get_mut(client.session.index()) else { return 0 };
        let messages: Vec<_> = std::iter::from_fn(|| queue.pop()).take(most).collect();
        client.received.extend(messages.iter().map(|bytes| Received::of(bytes)));
        messages.len()
    }

    /// A client takes everything, and what comes then.
    pub(crate) fn read_all(&mut self, client: &mut Client) {
        loop {
            let read = self.read(client, usize::MAX);
            self.pass(10);
            if read == 0 && self.read(client, usize::MAX) == 0 {
                return;
            }
        }
    }
}

/// A client.
pub(crate) struct Client {
    pub(crate) session: SessionId,
    pub(crate) received: Vec<Received>,
    next: i32,
}

impl Client {
    /// The next free stream.
    pub(crate) fn stream(&mut self) -> i32 {
        self.next += 1;
        self.next
    }

    /// What came on a stream.
    pub(crate) fn on(&self, stream: i32) -> Vec<&Received> {
        self.received.iter().filter(|received| received.stream == stream).collect()
    }

    /// What a stream's item is, as far as its messages say; `None` without an image.
    pub(crate) fn folded(&self, stream: i32) -> Option<Values> {
        let mut now: Option<Values> = None;
        for received in self.on(stream) {
            match received.class {
                MessageClass::REFRESH => now = Some(received.values.clone()),
                MessageClass::UPDATE => {
                    now.as_mut().expect("an image before updates").extend(received.values.clone());
                }
                _ => {}
            }
        }
        now
    }
}

/// A message as a client sees it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Received {
    pub(crate) class: MessageClass,
    pub(crate) domain: Domain,
    pub(crate) stream: i32,
    pub(crate) state: Option<(StreamState, DataState, StateCode)>,
    pub(crate) group: Option<Vec<u8>>,
    pub(crate) is_solicited: bool,
    pub(crate) values: Values,
    pub(crate) bytes: Vec<u8>,
}

impl Received {
    fn of(bytes: &[u8]) -> Self {
        let message = MessageView::parse(bytes).unwrap();
        let header = message.header().unwrap();
        let values = match message.container() {
            // What a source sends through a service without a cache is anything.
            DataType::FIELD_LIST => FieldList::parse(message.payload()).map_or(Values::new(), |list| {
                let fields = list.iter().filter_map(Result::ok);
                fields.filter_map(|field| Some((field.fid, field.real().ok()??.mantissa))).collect()
            }),
            _ => Values::new(),
        };
        let (group, is_solicited) = match &header {
            Header::Refresh(refresh) => {
                (Some(refresh.group_id.to_vec()), refresh.flags.has(flags::refresh::SOLICITED))
            }
            _ => (None, false),
        };
        Self {
            class: message.class(),
            domain: message.domain(),
            stream: message.stream_id(),
            state: header.state().map(|state| (state.stream, state.data, state.code)),
            group,
            is_solicited,
            values,
            bytes: bytes.to_vec(),
        }
    }
}

fn fields(room: &mut [u8], values: &Values) -> Result<usize, Refused> {
    let mut list = FieldListEncoder::new(room)?;
    for (fid, value) in values {
        list.real(*fid, Real::integer(*value))?;
    }
    Ok(list.finish())
}

/// A bid, and an ask.
pub(crate) fn quote(bid: i64, ask: i64) -> Values {
    Values::from([(fid::BID, bid), (fid::ASK, ask)])
}

/// A bid.
pub(crate) fn bid(bid: i64) -> Values {
    Values::from([(fid::BID, bid)])
}

/// Bytes of one message.
pub(crate) fn message(write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    let len = write(&mut bytes).unwrap();
    bytes.truncate(len);
    bytes
}

pub(crate) fn request(domain: Domain, id: i32, flags: Flags, key: Key<'_>) -> Vec<u8> {
    message(|room| RequestHeader { flags, ..RequestHeader::new(domain, id, key) }.encode(room))
}

/// A streaming request for an item.
pub(crate) fn item(id: i32, name: &str) -> Vec<u8> {
    request(Domain::MARKET_PRICE, id, flags::request::STREAMING, Key::item(SERVICE, name.as_bytes()))
}

/// The same of another service.
pub(crate) fn item_of(service: u16, id: i32, name: &str) -> Vec<u8> {
    request(Domain::MARKET_PRICE, id, flags::request::STREAMING, Key::item(service, name.as_bytes()))
}

/// The same for these fields alone.
pub(crate) fn item_view(id: i32, name: &str, fids: &[i16]) -> Vec<u8> {
    item_view_of(SERVICE, id, name, fids)
}

/// The same of another service.
pub(crate) fn item_view_of(service: u16, id: i32, name: &str, fids: &[i16]) -> Vec<u8> {
    item_view_in(Domain::MARKET_PRICE, service, id, name, fids)
}

/// The same in another domain.
pub(crate) fn item_view_in(domain: Domain, service: u16, id: i32, name: &str, fids: &[i16]) -> Vec<u8> {
    message(|room| {
        let key = Key::item(service, name.as_bytes());
        let mut header = RequestHeader::new(domain, id, key);
        header.flags = flags::request::STREAMING;
        let view = View::Fids(tapeline_omm::domain::List::Given(fids));
        let payload = RequestPayload { view: Some(view), ..RequestPayload::default() };
        payload.mark(&mut header);
        header.encode_with(room, |room| payload.encode(room))
    })
}

pub(crate) fn close(id: i32) -> Vec<u8> {
    message(|room| CloseHeader::new(Domain::MARKET_PRICE, id).encode(room))
}
