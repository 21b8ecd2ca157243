//! Orders, symbol filter and the best bid and offer of a plant on a made clock and a made ring, over simulated days.

use std::cell::Cell;
use std::collections::BTreeMap;

use tapeline_feed::draft::TradingStatus;
use tapeline_feed::itch::encode::{LONGEST, PrefixFields, StockDirectory, TradingAction, text};
use tapeline_feed::line::Line;
use tapeline_feed::moldudp64::{MoldSession, PacketBuilder};
use tapeline_feed::normalise::Instrument;
use tapeline_feed::simulate::{Exchange, SimulatedDay};
use tapeline_feed::symbols::Symbols;
use tapeline_feed::{Protocol, book, itch, line};
use tapeline_measure::Nanos;
use tapeline_omm::rwf::{Domain, Header, Map, MapAction, MessageView, flags};
use tapeline_omm::{FieldList, Real, fid};
use tapeline_plant::tick::{Kind, Tick};
use tapeline_plant::{
    Channel, ChannelSettings, ConsolidationSettings, Items, Participant, Publish, PublishPolicy, Refused,
    Sequencer, Time,
};

#[derive(Default)]
struct Kept(Vec<Vec<u8>>);

impl Publish for Kept {
    fn publish(&mut self, len: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> Result<(), Refused> {
        let mut frame = vec![0xEE; len];
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

const MIDNIGHT: Nanos = Nanos(1_580_360_400_000_000_000);
const OPEN_NS: u64 = 34_200_000_000_000;

/// Channels that publish to one sequencer.
struct Plant {
    channels: Vec<(Channel, u64)>,
    sequencer: Sequencer<Kept>,
    clock: Steps,
}

impl Plant {
    fn new(channels: u16) -> Self {
        let channel = |number| {
            Channel::new(ChannelSettings {
                number,
                protocol: Protocol::ItchMoldUdp64,
                lines: 1,
                stale_after_ns: 0,
                midnight: MIDNIGHT,
                midnight_before: None,
                publish: PublishPolicy::Changes,
                arbitration: line::ArbiterSettings::default(),
                books: book::BookSettings::default(),
            })
        };
        Self {
            channels: (0..channels).map(|number| (channel(number), 1)).collect(),
            sequencer: Sequencer::new(1, Items::new(10_000), Kept::default()),
            clock: Steps(Cell::new(MIDNIGHT.0 + OPEN_NS)),
        }
    }

    /// One message as the next of its feed; the ticks that it makes.
    fn message(&mut self, channel: usize, message: &[u8]) -> Vec<Vec<u8>> {
        let (channel, next) = &mut self.channels[channel];
        let mut buffer = [0; 1_400];
        let mut packet = PacketBuilder::new(&mut buffer, MoldSession::new("DAY"), *next).unwrap();
        packet.push(message).unwrap();
        let len = packet.finish();
        *next += 1;
        let wire = Nanos(self.clock.0.get());
        channel.datagram(Line::A, &buffer[..len], wire, &self.clock, &mut self.sequencer).unwrap();
        std::mem::take(&mut self.sequencer.publisher().0)
    }
}

/// What a subscriber knows of one item's orders.
#[derive(Default)]
struct Image {
    /// By number: price in ten-thousandths, side, size.
    orders: BTreeMap<u64, (i64, u16, i64)>,
    /// Whether the last part of an image has come.
    is_complete: bool,
    /// Parts of the present image.
    parts: u16,
    hint: Option<u32>,
}

impl Image {
    /// Applies a tick as any client of the Open Message Model would.
    fn apply(&mut self, tick: &Tick<'_>) {
        let message = MessageView::parse(tick.body).unwrap();
        let map = Map::parse(message.payload()).unwrap();
        assert_eq!(map.head().key_fid, Some(fid::ORDER_ID));
        if let Header::Refresh(refresh) = message.header().unwrap() {
            assert_eq!(tick.header.kind, Kind::Refresh);
            if refresh.flags.has(flags::refresh::CLEAR_CACHE) {
                *self = Self { hint: map.head().count_hint, ..Self::default() };
                let summary = FieldList::parse(map.head().summary.unwrap()).unwrap();
                assert_eq!(summary.find(fid::CURRENCY).unwrap().unwrap().enumeration(), Ok(Some(840)));
            }
            assert_eq!(refresh.part, Some(self.parts));
            self.parts += 1;
            self.is_complete = refresh.flags.has(flags::refresh::REFRESH_COMPLETE);
            if self.is_complete {
                assert_eq!(self.hint, Some((self.orders.len() + map.len()) as u32));
            }
        } else {
            assert!(self.is_complete, "an update before the image of {}", tick.name);
        }
        for entry in map.iter() {
            let entry = entry.unwrap();
            let reference = std::str::from_utf8(entry.key).unwrap().parse().unwrap();
            if entry.action == MapAction::DELETE {
                self.orders.remove(&reference).unwrap();
                continue;
            }
            let fields = FieldList::parse(entry.data).unwrap();
            let real = |id| fields.find(id).unwrap().map(|field| field.real().unwrap().unwrap());
            let size = real(fid::ORDER_SIZE).unwrap().mantissa;
            match entry.action {
                MapAction::ADD => {
                    let side = fields.find(fid::ORDER_SIDE).unwrap().unwrap().enumeration().unwrap().unwrap();
                    assert!(fields.find(fid::PR_TIM_NS).unwrap().unwrap().time().unwrap().is_some());
                    let price = real(fid::ORDER_PRC).unwrap().mantissa;
                    assert_eq!(self.orders.insert(reference, (price, side, size)), None);
                }
                MapAction::UPDATE => self.orders.get_mut(&reference).unwrap().2 = size,
                other => panic!("{other}"),
            }
        }
    }
}

fn orders_of(channel: &Channel, locate: u32) -> BTreeMap<u64, (i64, u16, i64)> {
    let side = |side| match side {
        itch::Side::Bid => 1,
        itch::Side::Ask => 2,
    };
    let depth = channel.normaliser().depth().unwrap();
    let orders = depth.orders(Instrument(locate));
    orders.map(|o| (o.reference, (o.price.mantissa, side(o.side), o.size as i64))).collect()
}

fn is_orders(tick: &Tick<'_>) -> bool {
    MessageView::parse(tick.body).unwrap().domain() == Domain::MARKET_BY_ORDER
}

fn directory(locate: u16, stock: &str) -> Vec<u8> {
    let mut bytes = vec![0; StockDirectory::LENGTH];
    let stock = StockDirectory { stock: text(stock), ..StockDirectory::default() };
    stock.encode(PrefixFields { locate, tracking: 0, ts_ns: OPEN_NS }, &mut bytes).unwrap();
    bytes
}

/// A client that applies every market by order tick has the orders of the channel, and those of the books.
#[test]
fn the_ticks_of_a_day_make_its_orders() {
    let settings = SimulatedDay { seed: 5, symbols: 7, live_orders: 4_000 };
    let mut exchange = Exchange::new(settings);
    let mut plant = Plant::new(1);
    assert!(plant.channels[0].0.publish_orders(1_000_000));
    let mut clients: BTreeMap<String, Image> = BTreeMap::new();
    let mut message = [0; LONGEST];
    let mut names = BTreeMap::new();
    let (mut by_order, mut prices) = (0, 0);
    let mut follow = |clients: &mut BTreeMap<String, Image>, frames: Vec<Vec<u8>>| {
        for frame in frames {
            let tick = Tick::parse(&frame).unwrap();
            if is_orders(&tick) {
                clients.entry(tick.name.to_owned()).or_default().apply(&tick);
                by_order += 1;
            } else {
                prices += 1;
            }
        }
    };
    for k in 0..30_000 {
        let len = exchange.next(OPEN_NS + k, &mut message).unwrap();
        if message[0] == b'R' {
            let name = std::str::from_utf8(&message[11..19]).unwrap().trim_end().to_owned();
            names.insert(u32::from(u16::from_be_bytes([message[1], message[2]])), name);
        }
        let frames = plant.message(0, &message[..len]);
        follow(&mut clients, frames);
    }
    assert_eq!(names.len(), 7);
    let channel = &plant.channels[0].0;
    let counters = *channel.counters();
    let mut live = 0;
    for (locate, name) in &names {
        let orders = orders_of(channel, *locate);
        assert_eq!(clients[name].orders, orders, "{name}");
        live += orders.len();
        // The levels of the books, from the orders.
        let tapeline_feed::normalise::Normaliser::Itch(normaliser) = channel.normaliser() else {
            panic!("ITCH")
        };
        let book = normaliser.books().book(itch::Locate(*locate as u16)).unwrap();
        for (side, number) in [(itch::Side::Bid, 1), (itch::Side::Ask, 2)] {
            let mut levels: BTreeMap<i64, (u64, u32)> = BTreeMap::new();
            for (price, _, size) in orders.values().filter(|(_, side, _)| *side == number) {
                let level = levels.entry(*price).or_default();
                *level = (level.0 + *size as u64, level.1 + 1);
            }
            let books = book.levels(side).map(|l| (i64::from(l.price.0), (l.shares, l.orders)));
            assert_eq!(books.collect::<BTreeMap<_, _>>(), levels, "{name}");
        }
    }
    assert_eq!(live, channel.normaliser().live_orders());
    assert!(live > 300, "{live}");

    // The busiest stock is listed again: its image is now too large for one tick.
    let (locate, name) = names.iter().max_by_key(|(locate, _)| orders_of(channel, **locate).len()).unwrap();
    let before = orders_of(channel, *locate);
    let frames = plant.message(0, &directory(*locate as u16, name));
    let parts = frames.iter().filter(|frame| is_orders(&Tick::parse(frame).unwrap())).count();
    assert!(parts > before.len() / 15, "{parts} parts for {} orders", before.len());
    assert!(
        frames
            .iter()
            .all(|frame| Tick::parse(frame).unwrap().body.len() <= Sequencer::<Kept>::MAX_BODY_BYTES)
    );
    follow(&mut clients, frames);
    assert_eq!((&clients[name].orders, clients[name].is_complete), (&before, true));
    assert_eq!(usize::from(clients[name].parts), parts);
    assert_eq!((counters.drafts_cut, counters.ticks), (0, by_order + prices - parts as u64 - 1));
}

/// With a filter, the wanted symbols have the same ticks as without, and the others none.
#[test]
fn a_filter_leaves_the_wanted_symbols_as_they_were() {
    let settings = SimulatedDay { seed: 9, symbols: 20, live_orders: 4_000 };
    let ticks = |patterns: Option<&[&str]>| {
        let mut exchange = Exchange::new(settings);
        let mut plant = Plant::new(1);
        plant.channels[0].0.publish_orders(1_000_000);
        if let Some(patterns) = patterns {
            plant.channels[0].0.choose_symbols(Symbols::new(patterns.iter().copied()).unwrap());
        }
        let mut message = [0; LONGEST];
        let mut all: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
        for k in 0..10_000 {
            let len = exchange.next(OPEN_NS + k, &mut message).unwrap();
            for frame in plant.message(0, &message[..len]) {
                let tick = Tick::parse(&frame).unwrap();
                all.entry(tick.name.to_owned()).or_default().push(tick.body.to_vec());
            }
        }
        let channel = &plant.channels[0].0;
        (all, channel.passed_over(), channel.counters().messages)
    };
    let (all, none_passed, messages) = ticks(None);
    assert_eq!((none_passed, messages), (0, 10_000));
    let names: Vec<&str> = all.keys().map(String::as_str).filter(|name| !name.is_empty()).collect();
    assert_eq!(names.len(), 20);
    let wanted = [names[3], names[11]];
    let (some, passed, messages) = ticks(Some(&wanted));
    assert_eq!(messages, 10_000);
    assert!(passed > 5_000, "{passed}");
    let found: Vec<&str> = some.keys().map(String::as_str).filter(|name| !name.is_empty()).collect();
    assert_eq!(found, wanted);
    for name in wanted {
        assert_eq!(some[name], all[name], "{name}");
    }
}

fn consolidated(participants: u16) -> ConsolidationSettings {
    ConsolidationSettings {
        number: participants,
        participants: (0..participants)
            .map(|channel| Participant { channel, venue: format!("VENUE{channel}LONG") })
            .collect(),
        suffix: ".NBBO".into(),
        max_symbols: 1_000,
    }
}

/// Two exchanges with the same symbols: after each message the consolidated item has the better of both tops.
#[test]
fn the_best_of_two_exchanges() {
    let mut exchanges = [1, 2].map(|seed| Exchange::new(SimulatedDay { seed, symbols: 3, live_orders: 500 }));
    let mut plant = Plant::new(2);
    // One of them has items of other names: what is consolidated goes by the symbol.
    plant.channels[1].0.name_items(".XNYS");
    plant.sequencer.consolidate(&consolidated(2));
    let mut best: BTreeMap<String, (Option<Real>, Option<Real>)> = BTreeMap::new();
    let mut message = [0; LONGEST];
    let (mut updates, mut sources) = (0_u64, std::collections::BTreeSet::new());
    // Exchange and locate of the stocks that do not trade.
    let mut halted = std::collections::BTreeSet::new();
    for k in 0..6_000_u64 {
        let at = (k % 2) as usize;
        let len = exchanges[at].next(OPEN_NS + k, &mut message).unwrap();
        if message[0] == b'H' {
            let stock = (at, u16::from_be_bytes([message[1], message[2]]));
            if message[19] == b'T' {
                halted.remove(&stock)
            } else {
                halted.insert(stock)
            };
        }
        for frame in plant.message(at, &message[..len]) {
            let tick = Tick::parse(&frame).unwrap();
            if tick.header.channel != 2 {
                continue;
            }
            updates += 1;
            let body = MessageView::parse(tick.body).unwrap();
            let fields = FieldList::parse(body.payload()).unwrap();
            let real = |id| fields.find(id).unwrap().unwrap().real().unwrap();
            let source = fields.find(fid::BID_SRC).unwrap().unwrap();
            sources.insert(source.data.to_vec());
            let known = best.insert(tick.name.to_owned(), (real(fid::BID), real(fid::ASK)));
            let kind = if known.is_some() { Kind::Update } else { Kind::Refresh };
            assert_eq!(tick.header.kind, kind);
        }
        for locate in 1..=3_u16 {
            let Some(symbol) = exchanges[0].symbol(locate) else { continue };
            let name = format!("{}.NBBO", std::str::from_utf8(&symbol).unwrap().trim_end());
            let Some(found) = best.get(&name) else { continue };
            let same = (1..=3).find(|other| exchanges[1].symbol(*other) == Some(symbol)).unwrap();
            let tops = [(0, locate), (1, same)].into_iter().filter(|stock| !halted.contains(stock));
            let tops: Vec<_> = tops.map(|(at, locate)| exchanges[at].top(locate)).collect();
            let price = |real: Option<Real>| real.map(|real| real.mantissa as u32);
            assert_eq!(
                price(found.0),
                tops.iter().filter_map(|top| top.0.map(|q| q.0)).max(),
                "{name} at {k}"
            );
            assert_eq!(
                price(found.1),
                tops.iter().filter_map(|top| top.1.map(|q| q.0)).min(),
                "{name} at {k}"
            );
        }
    }
    assert_eq!(best.len(), 3);
    let counters = *plant.sequencer.consolidation().unwrap().counters();
    assert_eq!((counters.ticks, counters.items_refused), (updates, 0));
    assert!(updates > 500 && updates < 6_000, "{updates}");
    let sources: Vec<_> = sources.iter().map(|source| std::str::from_utf8(source).unwrap()).collect();
    assert_eq!(sources.iter().filter(|source| !source.is_empty()).count(), 2);
    assert!(sources.contains(&"VENUE0") && sources.contains(&"VENUE1"));
}

/// A stock that is halted on one exchange, and an exchange that has lost messages, take no part.
#[test]
fn halted_and_doubtful_quotes_take_no_part() {
    let mut plant = Plant::new(2);
    plant.sequencer.consolidate(&consolidated(2));
    let prefix = PrefixFields { locate: 1, tracking: 0, ts_ns: OPEN_NS };
    let add = |price| {
        let mut bytes = vec![0; itch::encode::AddOrder::LENGTH];
        let order =
            itch::encode::AddOrder { reference: 1, side: b'B', shares: 100, stock: text("AAPL"), price };
        order.encode(prefix, &mut bytes).unwrap();
        bytes
    };
    let action = |state| {
        let mut bytes = vec![0; TradingAction::LENGTH];
        let action = TradingAction { stock: text("AAPL"), state, reserved: 0, reason: text("") };
        action.encode(prefix, &mut bytes).unwrap();
        bytes
    };
    for (channel, price) in [(0, 1_000_000), (1, 1_010_000)] {
        plant.message(channel, &directory(1, "AAPL"));
        plant.message(channel, &action(b'T'));
        plant.message(channel, &add(price));
    }
    let bid = |plant: &Plant| {
        let best = plant.sequencer.consolidation().unwrap().best("AAPL");
        best.bid.map(|bid| bid.quote.price.mantissa)
    };
    assert_eq!(bid(&plant), Some(1_010_000));
    let frames = plant.message(1, &action(b'H'));
    assert_eq!(frames.len(), 2, "the halt, and the best without it");
    assert_eq!(bid(&plant), Some(1_000_000));
    plant.message(1, &action(b'T'));
    assert_eq!(bid(&plant), Some(1_010_000));
    // A message of channel 1 is lost for good.
    plant.channels[1].1 += 1;
    plant.message(1, &action(b'T'));
    let (channel, _) = &mut plant.channels[1];
    channel.finish(&plant.clock, &mut plant.sequencer).unwrap();
    assert_eq!(channel.counters().missing, 1);
    assert_eq!(bid(&plant), Some(1_000_000));
    assert_eq!(TradingStatus::NORMAL, TradingStatus(1));
}
