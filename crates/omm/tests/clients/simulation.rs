//! A consumer and a provider, with a bad network between them: whatever has happened, once it is quiet every image at the
//! consumer's is the provider's.

use std::collections::{BTreeMap, HashMap, VecDeque};

use tapeline_nanos::Nanos;
use tapeline_omm::domain::directory::{Group, ServiceEntry, ServicePart, ServiceState};
use tapeline_omm::domain::{Directory, LoginFeatures, LoginRequest, OwnedState, ServiceEntry as Entry};
use tapeline_omm::role::consumer::{self, Consumer, Handle, ItemRequest, Reissue, ServiceName};
use tapeline_omm::role::provider::{self, Provider, StreamHandle};
use tapeline_omm::role::{Outbox, Queue, Sent};
use tapeline_omm::rwf::{
    DataState, DataType, Domain, Header, MessageClass, MessageView, RefreshHeader, StatusHeader, StreamState,
    UpdateType, flags, update_header,
};
use tapeline_omm::{FieldList, FieldListEncoder, Real, State, fid};

use super::desk::SECOND;
use super::recovery::service;

const ITEMS: usize = 40;
const MS: u64 = SECOND / 1000;

/// A generator of numbers that are as good as random, from a seed (splitmix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

fn name(item: usize) -> String {
    format!("ITEM{item}")
}

fn fields(room: &mut [u8], value: u64) -> usize {
    let mut list = FieldListEncoder::new(room).unwrap();
    list.real(fid::BID, Real::integer(i64::try_from(value).unwrap())).unwrap();
    list.finish()
}

/// What the provider's application knows.
struct Source {
    values: Vec<u64>,
    directory: Directory,
    /// Streams to be answered, and when.
    unanswered: VecDeque<(Nanos, StreamHandle)>,
    open: Vec<StreamHandle>,
    chance: Chance,
    /// Answers are slow, or none, and items are refused.
    is_bad: bool,
    now: Nanos,
    batches: bool,
}

impl Source {
    fn item(&self, provider: &Provider, stream: StreamHandle) -> Option<usize> {
        let key = provider.key(stream)?;
        std::str::from_utf8(key.name?).ok()?.strip_prefix("ITEM")?.parse().ok()
    }

    fn answer(&mut self, provider: &mut Provider, out: &mut dyn Outbox, stream: StreamHandle) {
        let Some(item) = self.item(provider, stream) else { return };
        if self.is_bad && self.chance.one_in(8) {
            let stream_state =
                if self.chance.one_in(2) { StreamState::CLOSED_RECOVER } else { StreamState::OPEN };
            let state =
                State { stream: stream_state, data: DataState::SUSPECT, text: b"bad luck", ..State::OPEN_OK };
            let header = StatusHeader { state: Some(state), ..StatusHeader::new(Domain::MARKET_PRICE, 0) };
            let _ = provider.status(self.now, out, stream, &header).unwrap();
            if stream_state == StreamState::OPEN {
                self.unanswered.push_back((self.now + 3 * SECOND, stream));
            }
            return;
        }
        let group = [0, u8::try_from(item % 3).unwrap()];
        let value = self.values[item];
        // In two parts now and then, of which the first says nothing.
        let parts = if self.chance.one_in(4) { 2 } else { 1 };
        for part in 0..parts {
            let is_last = part + 1 == parts;
            let header = RefreshHeader {
                flags: if is_last {
                    flags::refresh::REFRESH_COMPLETE
                } else {
                    tapeline_omm::rwf::Flags::NONE
                },
                group_id: &group,
                ..RefreshHeader::new(Domain::MARKET_PRICE, 0, State::OPEN_OK, DataType::FIELD_LIST)
            };
            let sent = provider.refresh(out, stream, &header, &mut |room| {
                if room.len() < 64 { Err(tapeline_omm::Refused::Full) } else { Ok(fields(room, value)) }
            });
            // It may be refused already, and hear of it later.
            if sent.unwrap() == Sent::NotOpen {
                return;
            }
        }
        self.open.push(stream);
    }
}

impl provider::ProviderApplication for Source {
    fn event(&mut self, provider: &mut Provider, out: &mut dyn Outbox, event: provider::ProviderEvent<'_>) {
        match event {
            provider::ProviderEvent::Login { request, .. } => {
                let features = LoginFeatures {
                    support_view_requests: Some(1),
                    support_optimized_pause_resume: Some(1),
                    support_batch_requests: Some(u64::from(self.batches)),
                    ..LoginFeatures::default()
                };
                let _ = provider.accept_login(self.now, out, &request, features).unwrap();
            }
            provider::ProviderEvent::Directory { stream, .. } => {
                let _ = provider.directory(out, stream, &self.directory).unwrap();
            }
            provider::ProviderEvent::Open { stream, .. } => {
                let wait = match self.is_bad {
                    true if self.chance.one_in(10) => 40 * SECOND,
                    true => self.chance.below(500) * MS,
                    false => self.chance.below(20) * MS,
                };
                self.unanswered.push_back((self.now + wait, stream));
            }
            provider::ProviderEvent::Reissue { stream, request } if request.wants_refresh() => {
                self.unanswered.push_back((self.now + self.chance.below(50) * MS, stream));
            }
            _ => {}
        }
    }
}

/// What the consumer's application has.
#[derive(Default)]
struct Book {
    /// Item, value if there is one, and whether it can be trusted.
    images: BTreeMap<Handle, (usize, Option<u64>, bool)>,
    wants_connection: bool,
    disconnects: bool,
    states: usize,
    refreshes: usize,
    updates: usize,
}

impl consumer::ConsumerApplication for Book {
    fn event(&mut self, _: &mut Consumer, _: &mut dyn Outbox, event: consumer::ConsumerEvent<'_>) {
        match event {
            consumer::ConsumerEvent::Connect { .. } => self.wants_connection = true,
            consumer::ConsumerEvent::Disconnect => self.disconnects = true,
            consumer::ConsumerEvent::State { item, closure, state, is_final } => {
                assert!(!is_final, "nothing here is final: {state}");
                self.states += 1;
                let image =
                    self.images.entry(item).or_insert((usize::try_from(closure).unwrap(), None, false));
                image.2 = state.data == DataState::OK;
            }
            consumer::ConsumerEvent::Message { item, closure, message, is_final } => {
                assert!(!is_final);
                let image =
                    self.images.entry(item).or_insert((usize::try_from(closure).unwrap(), None, false));
                match message.header().unwrap() {
                    Header::Status(status) => {
                        self.states += 1;
                        image.2 = status.state.unwrap().data == DataState::OK;
                        return;
                    }
                    Header::Refresh(refresh) => {
                        self.refreshes += 1;
                        image.2 = refresh.state.data == DataState::OK;
                    }
                    _ => {
                        self.updates += 1;
                        assert!(image.1.is_some(), "an update before the image");
                    }
                }
                let list = FieldList::parse(message.payload()).unwrap();
                let value = list.find(fid::BID).unwrap().unwrap().real().unwrap().unwrap();
                let value = u64::try_from(value.mantissa).unwrap();
                if message.class() == MessageClass::UPDATE {
                    assert!(image.1 <= Some(value), "values only go up: {image:?}, {value}");
                }
                image.1 = Some(value);
            }
            consumer::ConsumerEvent::Malformed(fault) => panic!("{fault}"),
            _ => {}
        }
    }
}

/// The first message on its way, if it is there.
fn arrived(way: &mut VecDeque<(Nanos, Box<[u8]>)>, now: Nanos) -> Option<Box<[u8]>> {
    if way.front()?.0 > now { None } else { way.pop_front().map(|(_, message)| message) }
}

struct World {
    now: Nanos,
    chance: Chance,
    consumer: Consumer,
    book: Book,
    items: Vec<Handle>,
    /// On a connection: the provider's end, and what is on its way, with its time.
    provider: Option<Provider>,
    source: Source,
    to_provider: VecDeque<(Nanos, Box<[u8]>)>,
    to_consumer: VecDeque<(Nanos, Box<[u8]>)>,
    losses: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut chance = Chance(seed);
        let settings =
            consumer::ConsumerSettings { most_in_batch: 7, ..consumer::ConsumerSettings::default() };
        let mut directory = Directory::new();
        directory.apply(&service(1, "FEED"));
        let source = Source {
            values: vec![0; ITEMS],
            directory,
            unanswered: VecDeque::new(),
            open: Vec::new(),
            chance: Chance(chance.next()),
            is_bad: true,
            now: Nanos(0),
            batches: chance.one_in(2),
        };
        Self {
            now: Nanos(SECOND),
            chance,
            consumer: Consumer::new(settings, &LoginRequest::new(b"user")).unwrap(),
            book: Book::default(),
            items: Vec::new(),
            provider: None,
            source,
            to_provider: VecDeque::new(),
            to_consumer: VecDeque::new(),
            losses: 0,
        }
    }

    /// What was sent is on its way, in order.
    fn carry(queue: &mut Queue, way: &mut VecDeque<(Nanos, Box<[u8]>)>, now: Nanos, chance: &mut Chance) {
        while let Some(message) = queue.pop() {
            let earliest = way.back().map_or(now, |(time, _)| *time);
            way.push_back((earliest.max(now + chance.below(5) * MS), message));
        }
    }

    fn lose(&mut self) {
        self.losses += usize::from(self.provider.is_some());
        self.provider = None;
        self.to_provider.clear();
        self.to_consumer.clear();
        self.source.unanswered.clear();
        self.source.open.clear();
    }

    fn step(&mut self, is_bad: bool) {
        self.now = self.now + MS * (1 + self.chance.below(20));
        (self.source.now, self.source.is_bad) = (self.now, is_bad);
        // The consumer's end. There is not always room for all.
        let mut out = Queue::new(if self.chance.one_in(3) { 300 } else { 1 << 16 });
        while let Some(message) = arrived(&mut self.to_consumer, self.now) {
            self.consumer.message(self.now, &message, &mut out, &mut self.book);
        }
        self.consumer.tick(self.now, &mut out, &mut self.book);
        if std::mem::take(&mut self.book.disconnects) {
            self.lose();
        } else if self.provider.is_some() {
            Self::carry(&mut out, &mut self.to_provider, self.now, &mut self.chance);
        }
        if std::mem::take(&mut self.book.wants_connection) {
            if is_bad && self.chance.one_in(3) {
                self.consumer.disconnected(self.now, &mut self.book);
            } else {
                let settings = provider::ProviderSettings {
                    round_trip_interval_ms: 0,
                    ..provider::ProviderSettings::default()
                };
                self.provider = Some(Provider::new(settings, self.now));
                let mut out = Queue::new(1 << 16);
                self.consumer.connected(self.now, &mut out);
                Self::carry(&mut out, &mut self.to_provider, self.now, &mut self.chance);
            }
        }
        self.serve(is_bad);
    }

    /// The provider's end.
    fn serve(&mut self, is_bad: bool) {
        let Some(provider) = self.provider.as_mut() else { return };
        let mut out = Queue::new(1 << 20);
        while let Some(message) = arrived(&mut self.to_provider, self.now) {
            provider.message(self.now, &message, &mut out, &mut self.source).unwrap();
        }
        provider.tick(self.now, &mut out, &mut self.source).unwrap();
        for _ in 0..self.source.unanswered.len() {
            let Some((due, stream)) = self.source.unanswered.pop_front() else { break };
            if due <= self.now {
                self.source.answer(provider, &mut out, stream);
            } else {
                self.source.unanswered.push_back((due, stream));
            }
        }
        // Values change, and whoever has the item open hears of it.
        for _ in 0..self.chance.below(3) {
            let item = usize::try_from(self.chance.below(ITEMS as u64)).unwrap();
            self.source.values[item] += 1;
            let mut update = [0; 64];
            let header =
                update_header(&mut update, Domain::MARKET_PRICE, 0, UpdateType::QUOTE, DataType::FIELD_LIST)
                    .unwrap();
            let len = header + fields(&mut update[header..], self.source.values[item]);
            let source = &self.source;
            let mut of_item: Vec<_> = source
                .open
                .iter()
                .filter(|stream| source.item(provider, **stream) == Some(item))
                .copied()
                .collect();
            of_item.dedup();
            of_item.sort_unstable_by_key(|stream| provider.stream_id(*stream));
            of_item.dedup();
            assert_eq!(provider.publish(&mut out, &of_item, &update[..len]), of_item.len());
        }
        if is_bad && self.chance.one_in(40) {
            let change = self.misfortune();
            self.source.directory.apply(&change);
            let _ = self.provider.as_mut().unwrap().directory_changed(&mut out, &[change]).unwrap();
        }
        Self::carry(&mut out, &mut self.to_consumer, self.now, &mut self.chance);
        if is_bad && self.chance.one_in(150) {
            self.lose();
            self.consumer.disconnected(self.now, &mut self.book);
        }
    }

    /// Something happens to the service.
    fn misfortune(&mut self) -> Entry {
        let recover =
            State { stream: StreamState::CLOSED_RECOVER, data: DataState::SUSPECT, ..State::OPEN_OK };
        let suspect = State { data: DataState::SUSPECT, ..State::OPEN_OK };
        let group = |number: u64, status| {
            ServicePart::Group(Group {
                group: Some([0, u8::try_from(number).unwrap()].into()),
                merged_to_group: None,
                status: Some(OwnedState::from(status)),
            })
        };
        match self.chance.below(5) {
            0 => ServiceEntry::delete(1),
            1 => service(1, "FEED"),
            2 => ServiceEntry::change(1, group(self.chance.below(3), recover)),
            3 => ServiceEntry::change(
                1,
                ServicePart::State(ServiceState {
                    service_state: Some(0),
                    status: Some(OwnedState::from(suspect)),
                    ..ServiceState::default()
                }),
            ),
            _ => ServiceEntry::change(
                1,
                ServicePart::State(ServiceState {
                    service_state: Some(1),
                    status: Some(OwnedState::from(State::OPEN_OK)),
                    ..ServiceState::default()
                }),
            ),
        }
    }

    /// The application opens, closes and changes items.
    fn act(&mut self) {
        let item = usize::try_from(self.chance.below(ITEMS as u64)).unwrap();
        let (name, closure) = (name(item), item as u64);
        let request = ItemRequest { closure, ..ItemRequest::new(ServiceName::Name("FEED"), name.as_bytes()) };
        match self.chance.below(6) {
            0 | 1 => self.items.push(self.consumer.open(&request).unwrap()),
            2 => {
                // All of a batch have the same name: the provider does not mind.
                let names = vec![name.as_bytes(); usize::try_from(1 + self.chance.below(3)).unwrap()];
                let handles =
                    self.consumer.open_batch(&ItemRequest { closure: 0, ..request }, &names).unwrap();
                handles.into_iter().for_each(|handle| assert!(self.consumer.close(handle)));
                let names: Vec<_> = (0..ITEMS).map(super::simulation::name).collect();
                let names: Vec<_> = names.iter().map(String::as_bytes).collect();
                if self.items.len() < 3 * ITEMS {
                    self.items.extend(
                        self.consumer.open_batch(&ItemRequest { closure: 0, ..request }, &names).unwrap(),
                    );
                }
            }
            3 if !self.items.is_empty() => {
                let place = usize::try_from(self.chance.below(self.items.len() as u64)).unwrap();
                let handle = self.items.swap_remove(place);
                assert!(self.consumer.close(handle));
                self.book.images.remove(&handle);
            }
            4 if !self.items.is_empty() => {
                let place = usize::try_from(self.chance.below(self.items.len() as u64)).unwrap();
                let is_paused = Some(self.chance.one_in(2));
                assert!(
                    self.consumer.reissue(self.items[place], &Reissue { is_paused, ..Reissue::default() })
                );
            }
            5 if !self.items.is_empty() => {
                let place = usize::try_from(self.chance.below(self.items.len() as u64)).unwrap();
                assert!(
                    self.consumer
                        .reissue(self.items[place], &Reissue { wants_image: true, ..Reissue::default() })
                );
            }
            _ => {}
        }
    }
}

fn run(seed: u64) -> (usize, u64, Book) {
    let mut world = World::new(seed);
    for _ in 0..1_500 {
        if world.chance.one_in(8) {
            world.act();
        }
        world.step(true);
    }
    // All is well from now on: the service is up, nothing is lost, everybody is awake.
    for item in world.items.clone() {
        let reissue = Reissue { is_paused: Some(false), ..Reissue::default() };
        assert!(world.consumer.reissue(item, &reissue));
    }
    let up = service(1, "FEED");
    world.source.directory.clear();
    world.source.directory.apply(&up);
    if let Some(provider) = world.provider.as_mut() {
        let mut out = Queue::new(1 << 20);
        let mut good = up.clone();
        good.parts.push((
            tapeline_omm::rwf::FilterAction::UPDATE,
            ServicePart::State(ServiceState {
                status: Some(OwnedState::from(State::OPEN_OK)),
                ..ServiceState::UP
            }),
        ));
        let _ = provider.directory_changed(&mut out, &[good]).unwrap();
        World::carry(&mut out, &mut world.to_consumer, world.now, &mut world.chance);
    }
    for _ in 0..9_000 {
        world.step(false);
    }
    assert!(world.consumer.is_ready(), "seed {seed}");
    assert_eq!(world.book.images.len(), world.items.len(), "seed {seed}");
    let streams: HashMap<usize, ()> = world.book.images.values().map(|(item, ..)| (*item, ())).collect();
    assert_eq!(world.consumer.streams(), streams.len(), "seed {seed}: one stream for each name");
    assert_eq!(
        world.provider.as_ref().unwrap().open_streams(),
        streams.len() + 1,
        "seed {seed}: and the directory"
    );
    // What is still on its way is taken.
    let mut out = Queue::new(1 << 16);
    while let Some((_, message)) = world.to_consumer.pop_front() {
        world.consumer.message(world.now, &message, &mut out, &mut world.book);
    }
    for (item, value, is_good) in world.book.images.values() {
        assert_eq!(
            (*value, *is_good),
            (Some(world.source.values[*item]), true),
            "seed {seed}: {}",
            name(*item)
        );
    }
    (world.losses, world.consumer.counters().recoveries, world.book)
}

/// `TAPELINE_SIM_SEED` tries one seed alone.
#[test]
fn final_images_are_the_providers_whatever_has_happened() {
    let one = std::env::var("TAPELINE_SIM_SEED").ok().map(|seed| seed.parse::<u64>().unwrap());
    let seeds = one.map_or(0..40, |seed| seed..seed + 1);
    let (mut losses, mut recoveries, mut states, mut refreshes, mut updates) = (0, 0, 0, 0, 0);
    let is_whole = one.is_none();
    for seed in seeds {
        let (lost, recovered, book) = run(seed);
        losses += lost;
        recoveries += recovered;
        states += book.states;
        refreshes += book.refreshes;
        updates += book.updates;
    }
    println!(
        "{losses} connections lost, {recoveries} recoveries, {states} states, {refreshes} refreshes, {updates} updates"
    );
    if is_whole {
        assert!(losses > 100 && recoveries > 1_000 && states > 1_000 && updates > 10_000);
    }
}

/// The consumer's messages are whole messages of its own classes: what a provider takes for malformed is counted there.
#[test]
fn a_provider_finds_nothing_amiss() {
    let mut world = World::new(99);
    for _ in 0..1_000 {
        if world.chance.one_in(4) {
            world.act();
        }
        world.step(true);
        if let Some(provider) = &world.provider {
            let counters = provider.counters();
            assert_eq!((counters.malformed, counters.refused), (0, 0));
        }
        for (_, message) in &world.to_provider {
            let message = MessageView::parse(message).unwrap();
            assert!(matches!(message.class(), MessageClass::REQUEST | MessageClass::CLOSE));
        }
    }
}
