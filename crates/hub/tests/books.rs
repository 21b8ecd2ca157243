//! Orders of a feed: their images, which are too long for one message, and what changes them.
use crate::exchange;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;

use exchange::{Client, Exchange, SERVICE, item_view_in, request};
use tapeline_feed::itch::Side;
use tapeline_feed::itch::encode::LONGEST;
use tapeline_feed::itch::framing::Frames;
use tapeline_feed::line::Line;
use tapeline_feed::moldudp64::{MoldSession, PacketBuilder};
use tapeline_feed::normalise::Instrument;
use tapeline_feed::{Protocol, book, line, simulate};
use tapeline_hub::{Settings, SlowPolicy};
use tapeline_nanos::Nanos;
use tapeline_omm::rwf::{DataState, Domain, Header, Key, Map, MapAction, MessageView, StreamState, flags};
use tapeline_omm::{FieldList, fid};
use tapeline_plant::{
    Channel, ChannelSettings, Items, Publish, PublishPolicy, Refused, Sequencer, Stamps, Time,
};

const ROOM: usize = 1 << 20;
const MIDNIGHT: Nanos = Nanos(1_580_360_400_000_000_000);
const OPEN_NS: u64 = 34_200_000_000_000;

#[derive(Default)]
struct Kept(Vec<Vec<u8>>);

impl Publish for Kept {
    fn publish(&mut self, len: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> Result<(), Refused> {
        let mut frame = vec![0; len];
        let used = fill(&mut frame);
        frame.truncate(used);
        self.0.push(frame);
        Ok(())
    }
}

struct Steps(Cell<u64>);

impl Time for Steps {
    fn now(&self) -> Nanos {
        self.0.set(self.0.get() + 10);
        Nanos(self.0.get())
    }
}

/// A plant of one feed that publishes its orders.
struct Plant {
    channel: Channel,
    sequencer: Sequencer<Kept>,
    next: u64,
    clock: Steps,
}

impl Plant {
    fn new() -> Self {
        let mut channel = Channel::new(ChannelSettings {
            number: 0,
            protocol: Protocol::ItchMoldUdp64,
            lines: 1,
            stale_after_ns: 0,
            midnight: MIDNIGHT,
            midnight_before: None,
            publish: PublishPolicy::Changes,
            arbitration: line::ArbiterSettings::default(),
            books: book::BookSettings::default(),
        });
        assert!(channel.publish_orders(1_000_000));
        let sequencer = Sequencer::new(SERVICE, Items::new(1_000), Kept::default());
        Self { channel, sequencer, next: 1, clock: Steps(Cell::new(MIDNIGHT.0 + OPEN_NS)) }
    }

    fn message(&mut self, message: &[u8]) -> Vec<Vec<u8>> {
        let mut buffer = [0; 1_400];
        let mut packet = PacketBuilder::new(&mut buffer, MoldSession::new("DAY"), self.next).unwrap();
        packet.push(message).unwrap();
        let len = packet.finish();
        self.next += 1;
        let stamps = Stamps::default();
        let (clock, to) = (&self.clock, &mut self.sequencer);
        self.channel.datagram(Line::A, &buffer[..len], stamps.wire, clock, to).unwrap();
        std::mem::take(&mut self.sequencer.publisher().0)
    }

    /// The orders of an instrument: price, side and size by number.
    fn orders(&self, instrument: u32) -> Orders {
        let depth = self.channel.normaliser().depth().unwrap();
        let side = |side| if side == Side::Bid { 1 } else { 2 };
        let orders = depth.orders(Instrument(instrument));
        orders.map(|o| (o.reference, (o.price.mantissa, side(o.side), o.size as i64))).collect()
    }
}

type Orders = BTreeMap<u64, (i64, u16, i64)>;

/// What a stream's messages make of an item's orders; and in how many messages its longest image came.
fn folded(client: &Client, stream: i32) -> (Orders, usize) {
    let (mut orders, mut parts, mut longest, mut is_whole) = (Orders::new(), 0, 0, false);
    for received in client.on(stream) {
        let message = MessageView::parse(&received.bytes).unwrap();
        match message.header().unwrap() {
            Header::Refresh(header) => {
                if header.flags.has(flags::refresh::CLEAR_CACHE) {
                    (orders, parts) = (Orders::new(), 0);
                }
                assert!(header.part.is_none_or(|part| part == parts), "{:?} after {parts}", header.part);
                parts += 1;
                longest = longest.max(usize::from(parts));
                is_whole = header.flags.has(flags::refresh::REFRESH_COMPLETE);
                let state = (header.state.stream, header.state.data);
                assert_eq!((state, message.domain()), (OPEN, Domain::MARKET_BY_ORDER));
            }
            Header::Update(_) => assert!(is_whole, "an update in the middle of an image"),
            Header::Status(_) => continue,
            other => panic!("{other:?}"),
        }
        for entry in Map::parse(message.payload()).unwrap().iter() {
            let entry = entry.unwrap();
            let number = std::str::from_utf8(entry.key).unwrap().parse().unwrap();
            if entry.action == MapAction::DELETE {
                orders.remove(&number).expect("an order that was there");
                continue;
            }
            let fields = FieldList::parse(entry.data).unwrap();
            let real = |id| fields.find(id).unwrap().map(|field| field.real().unwrap().unwrap().mantissa);
            let size = real(fid::ORDER_SIZE).unwrap();
            if entry.action == MapAction::UPDATE {
                orders.get_mut(&number).expect("an order that was there").2 = size;
                continue;
            }
            let side = fields.find(fid::ORDER_SIDE).unwrap().unwrap().enumeration().unwrap().unwrap();
            orders.insert(number, (real(fid::ORDER_PRC).unwrap(), side, size));
        }
    }
    assert!(is_whole);
    (orders, longest)
}

const OPEN: (StreamState, DataState) = (StreamState::OPEN, DataState::OK);

fn orders_of(id: i32, name: &str) -> Vec<u8> {
    request(Domain::MARKET_BY_ORDER, id, flags::request::STREAMING, Key::item(SERVICE, name.as_bytes()))
}

/// In how many messages the longest image came. Whoever follows an item's orders, from whatever moment on and however slowly, has those of the feed's own books in the end.
fn follow(slow: SlowPolicy, messages: impl Iterator<Item = Vec<u8>>, name: &str, instrument: u32) -> usize {
    let mut exchange = Exchange::down(Settings { slow, ..Settings::default() });
    let mut plant = Plant::new();
    let mut clients: Vec<Client> = Vec::new();
    for (at, message) in messages.enumerate() {
        for frame in plant.message(&message) {
            exchange.frame(&frame);
        }
        if at % 1_000 == 500 {
            // Room for all, and for a part of an image alone.
            let client = exchange.client(if at % 2_000 == 500 { 8 * ROOM } else { 8_192 });
            // A view of prices has nothing to choose from among orders: they are whole, in images as in updates.
            let viewed = item_view_in(Domain::MARKET_BY_ORDER, SERVICE, 5, name, &[fid::BID.0]);
            exchange.say(&client, &if at % 3_000 == 500 { viewed } else { orders_of(5, name) });
            clients.push(client);
        }
        for (client, turn) in clients.iter_mut().zip(0..) {
            if at % (7 + 10 * turn) == 0 {
                exchange.read(client, 2);
            }
        }
    }
    let orders = plant.orders(instrument);
    assert!(orders.len() > 100 && clients.len() > 3, "{} orders", orders.len());
    let mut longest = 0;
    for client in &mut clients {
        exchange.read_all(client);
        let (has, parts) = folded(client, 5);
        assert_eq!(has, orders);
        longest = longest.max(parts);
    }
    assert_eq!(exchange.hub.counters().unusable, 0);
    let services = exchange.hub.directory().service(SERVICE).unwrap().info().unwrap();
    assert!(services.capabilities.as_ref().unwrap().contains(&Domain::MARKET_BY_ORDER));
    longest
}

fn simulated() -> impl Iterator<Item = Vec<u8>> {
    let mut exchange =
        simulate::Exchange::new(simulate::SimulatedDay { seed: 5, symbols: 1, live_orders: 4_000 });
    (0..40_000).map(move |k| {
        let mut message = [0; LONGEST];
        let len = exchange.next(OPEN_NS + k, &mut message).unwrap();
        message[..len].to_vec()
    })
}

/// The name and the number of the instrument that a day lists first.
fn first(mut messages: impl Iterator<Item = Vec<u8>>) -> (String, u32) {
    let listed = messages.find(|message| message[0] == b'R').unwrap();
    let name = std::str::from_utf8(&listed[11..19]).unwrap().trim_end().to_owned();
    (name, u32::from(u16::from_be_bytes([listed[1], listed[2]])))
}

#[test]
fn orders_of_a_simulated_day_are_those_of_its_books() {
    let (name, number) = first(simulated());
    for slow in [SlowPolicy::Conflate, SlowPolicy::Cut { bytes: 64 << 20, messages: 1 << 20 }] {
        let longest = follow(slow, simulated(), &name, number);
        assert!(longest > 2, "no image had more than {longest} messages");
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "a skipped test says so")]
fn orders_of_a_real_day_are_those_of_its_books() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("TAPELINE_SHARED").map_or(beside, Into::into);
    let Ok(file) = std::fs::read(shared.join("data/itch50-aapl-20200130/aapl-first5000.itch")) else {
        println!("skipped: no shared test data beside the repository");
        return;
    };
    let messages = || Frames::new(&file).map(<[u8]>::to_vec);
    let (name, number) = first(messages());
    follow(SlowPolicy::Conflate, messages(), &name, number);
    follow(SlowPolicy::Cut { bytes: 64 << 20, messages: 1 << 20 }, messages(), &name, number);
}
