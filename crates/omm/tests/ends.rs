//! Both ends of a connection against each other, through small buffers: consumer and provider, NI provider and acceptor.
use std::collections::HashMap;
use std::sync::Arc;

use tapeline_nanos::Nanos;
use tapeline_omm::domain::directory::{Info, ServiceState};
use tapeline_omm::domain::post::Nak;
use tapeline_omm::domain::{
    Directory, LoginFeatures, LoginRequest, OwnedState, RoundTrip, ServiceEntry, ServicePart, login,
};
use tapeline_omm::role::acceptor::{self, Acceptor};
use tapeline_omm::role::consumer::{self, Consumer, Handle, ItemRequest, ServiceName, Target};
use tapeline_omm::role::ni_provider::{self, NiProvider, Publish};
use tapeline_omm::role::provider::{self, Provider, StreamHandle};
use tapeline_omm::role::{Outbox, Over, Queue, Sent};
use tapeline_omm::rwf::{
    DataState, DataType, Domain, MessageClass, MessageView, NakCode, PostHeader, PostUserInfo, RefreshHeader,
    StatusHeader, StreamState, UpdateHeader, UpdateType, flags,
};
use tapeline_omm::{Dictionary, FieldList, FieldListEncoder, Real, Refused, State, fid};

const ITEMS: usize = 10_000;
/// Bytes on their way in each direction at most: far less than ten thousand images have.
const ROOM: usize = 20_000;
/// A millisecond.
const STEP: u64 = 1_000_000;

fn price(value: i64) -> impl FnMut(&mut [u8]) -> Result<usize, Refused> {
    move |room| {
        let mut list = FieldListEncoder::new(room)?;
        list.real(fid::BID, Real::decimal(value, 2))?;
        Ok(list.finish())
    }
}

fn bid(message: &MessageView<'_>) -> Real {
    FieldList::parse(message.payload()).unwrap().find(fid::BID).unwrap().unwrap().real().unwrap().unwrap()
}

fn service() -> ServiceEntry {
    let info = Info {
        name: Some("TAPELINE".into()),
        capabilities: Some(vec![Domain::DICTIONARY, Domain::MARKET_PRICE]),
        dictionaries_provided: Some(vec!["RWFFld".into(), "RWFEnum".into()]),
        ..Info::default()
    };
    ServiceEntry::new(7, info, ServiceState::UP)
}

/// What a provider's application has.
struct Source {
    directory: Directory,
    dictionary: Arc<Dictionary>,
    /// What waits for room or time: images.
    unanswered: Vec<StreamHandle>,
    streams: HashMap<Vec<u8>, StreamHandle>,
    refusals: usize,
    trips: usize,
    closed: usize,
    now: Nanos,
}

impl Source {
    fn image(&mut self, provider: &mut Provider, out: &mut dyn Outbox, stream: StreamHandle) -> bool {
        let name = provider.key(stream).unwrap().name.unwrap().to_vec();
        if name == b"MOODY" && self.refusals < 3 {
            self.refusals += 1;
            let state =
                State { stream: StreamState::CLOSED_RECOVER, data: DataState::SUSPECT, ..State::OPEN_OK };
            let header = StatusHeader { state: Some(state), ..StatusHeader::new(Domain(0), 0) };
            return provider.status(self.now, out, stream, &header).unwrap().is_queued();
        }
        let header = RefreshHeader {
            flags: flags::refresh::REFRESH_COMPLETE,
            ..RefreshHeader::new(Domain(0), 0, State::OPEN_OK, DataType::FIELD_LIST)
        };
        let sent = provider.refresh(out, stream, &header, &mut price(100)).unwrap();
        if sent == Sent::Queued {
            self.streams.insert(name, stream);
        }
        sent == Sent::Queued
    }
}

impl provider::ProviderApplication for Source {
    fn event(&mut self, provider: &mut Provider, out: &mut dyn Outbox, event: provider::ProviderEvent<'_>) {
        use provider::ProviderEvent;
        match event {
            ProviderEvent::Login { request, .. } => {
                let features = LoginFeatures {
                    support_omm_post: Some(1),
                    support_batch_requests: Some(7),
                    round_trip_latency: request.attributes.round_trip_latency,
                    single_open: Some(1),
                    ..LoginFeatures::default()
                };
                let sent = provider.accept_login(self.now, out, &request, features);
                assert_eq!(sent, Ok(Sent::Queued));
            }
            ProviderEvent::Directory { stream, .. } => {
                assert_eq!(provider.directory(out, stream, &self.directory), Ok(Sent::Queued));
            }
            ProviderEvent::Dictionary { stream, .. } => {
                assert_eq!(provider.dictionary(out, stream, &self.dictionary), Sent::Queued);
            }
            ProviderEvent::Open { stream, request } | ProviderEvent::Reissue { stream, request } => {
                assert_eq!(request.domain, Domain::MARKET_PRICE);
                if !self.image(provider, out, stream) {
                    self.unanswered.push(stream);
                }
            }
            ProviderEvent::Closed { .. } => self.closed += 1,
            ProviderEvent::Post { receipt, header, .. } => {
                let text = b"not today";
                let nak = (header.post_id == Some(2)).then_some(Nak { code: NakCode::DENIED_BY_SRC, text });
                assert_eq!(provider.ack(out, receipt.unwrap(), nak), Sent::Queued);
            }
            ProviderEvent::RoundTrip { .. } => self.trips += 1,
            other => panic!("{other:?}"),
        }
    }
}

/// What a consumer's application has.
#[derive(Default)]
struct Sink {
    images: usize,
    updates: usize,
    suspect: usize,
    good: usize,
    acks: Vec<(u32, Option<NakCode>)>,
    dictionary: usize,
}

impl consumer::ConsumerApplication for Sink {
    fn event(&mut self, consumer: &mut Consumer, out: &mut dyn Outbox, event: consumer::ConsumerEvent<'_>) {
        use consumer::ConsumerEvent;
        match event {
            ConsumerEvent::Connect { .. } => consumer.connected(consumer.now(), out),
            ConsumerEvent::Message { message, .. } => match message.class() {
                MessageClass::REFRESH => {
                    assert_eq!(bid(message), Real::decimal(100, 2));
                    self.images += 1;
                }
                MessageClass::UPDATE => {
                    assert_eq!(bid(message), Real::decimal(101, 2));
                    self.updates += 1;
                }
                class => panic!("{class}"),
            },
            ConsumerEvent::State { state, .. } if state.data == DataState::SUSPECT => self.suspect += 1,
            ConsumerEvent::State { .. } => self.good += 1,
            ConsumerEvent::Ack { ack, .. } => self.acks.push((ack.ack_id, ack.nak_code)),
            ConsumerEvent::Dictionary(dictionary) => self.dictionary = dictionary.len(),
            ConsumerEvent::TimedOut(_) | ConsumerEvent::Malformed(_) | ConsumerEvent::DictionaryFailed(_) => {
                panic!("{event:?}")
            }
            _ => {}
        }
    }
}

/// A connection between both.
struct Line {
    provider: Provider,
    source: Source,
    down: Queue,
    consumer: Consumer,
    sink: Sink,
    up: Queue,
    now: Nanos,
}

impl Line {
    /// One step of time: whether anything moved.
    fn step(&mut self) -> Result<bool, Over> {
        self.now = Nanos(self.now.0 + STEP);
        self.source.now = self.now;
        let mut moved = false;
        while let Some(message) = self.up.pop() {
            moved = true;
            self.provider.message(self.now, &message, &mut self.down, &mut self.source)?;
        }
        self.provider.tick(self.now, &mut self.down, &mut self.source)?;
        let unanswered = std::mem::take(&mut self.source.unanswered);
        for (at, stream) in unanswered.iter().enumerate() {
            if !self.source.image(&mut self.provider, &mut self.down, *stream) {
                self.source.unanswered = unanswered[at..].to_vec();
                break;
            }
        }
        while let Some(message) = self.down.pop() {
            moved = true;
            self.consumer.message(self.now, &message, &mut self.up, &mut self.sink);
        }
        self.consumer.tick(self.now, &mut self.up, &mut self.sink);
        Ok(moved || !self.up.is_empty())
    }

    fn until(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        // A minute of the line's own time.
        for _ in 0..60_000 {
            self.step().unwrap();
            if done(self) {
                return;
            }
        }
        panic!("{what}: {} images, {} updates", self.sink.images, self.sink.updates);
    }
}

fn line() -> Line {
    let settings =
        provider::ProviderSettings { round_trip_interval_ms: 20, ..provider::ProviderSettings::default() };
    let mut directory = Directory::new();
    directory.apply(&service());
    let source = Source {
        directory,
        dictionary: Arc::new(Dictionary::builtin().clone()),
        unanswered: Vec::new(),
        streams: HashMap::new(),
        refusals: 0,
        trips: 0,
        closed: 0,
        now: Nanos(0),
    };
    let mut request = LoginRequest::new(b"user");
    request.attributes.round_trip_latency = Some(login::ROUND_TRIP_WANTED);
    let wishes =
        consumer::ConsumerSettings { downloads_dictionary: true, ..consumer::ConsumerSettings::default() };
    Line {
        provider: Provider::new(settings, Nanos(0)),
        source,
        down: Queue::new(ROOM),
        consumer: Consumer::new(wishes, &request).unwrap(),
        sink: Sink::default(),
        up: Queue::new(ROOM),
        now: Nanos(0),
    }
}

#[test]
fn a_round_trip_waits_for_the_one_before_it() {
    let mut line = line();
    line.until("a round trip", |line| line.source.trips == 1);
    // Ten seconds in which nothing arrives: five hundred would be due.
    for _ in 0..10_000 {
        line.now = Nanos(line.now.0 + STEP);
        line.provider.tick(line.now, &mut line.down, &mut line.source).unwrap();
    }
    let mut begun = 0;
    while let Some(message) = line.down.pop() {
        let trip = RoundTrip::read(&MessageView::parse(&message).unwrap()).unwrap();
        begun += usize::from(trip.is_some());
        line.consumer.message(line.now, &message, &mut line.up, &mut line.sink);
    }
    assert_eq!(begun, 1);
    line.until("it counts, and others follow", |line| line.source.trips == 3);
    // One that is never answered is given up.
    for _ in 0..31_000 {
        line.now = Nanos(line.now.0 + STEP);
        line.provider.tick(line.now, &mut line.down, &mut line.source).unwrap();
    }
    assert_eq!(std::iter::from_fn(|| line.down.pop()).count(), 2);
}

#[test]
fn ten_thousand_items_through_a_small_buffer() {
    let mut line = line();
    let names: Vec<String> = (0..ITEMS).map(|number| format!("ITEM{number}")).collect();
    let names: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
    let request = ItemRequest::new(ServiceName::Name("TAPELINE"), b"");
    let handles: Vec<Handle> = line.consumer.open_batch(&request, &names).unwrap();
    line.until("images", |line| line.sink.images == ITEMS);
    assert_eq!(line.sink.dictionary, Dictionary::builtin().len());
    // Two dictionaries and the directory beside the items.
    assert_eq!(line.provider.open_streams(), ITEMS + 3);

    let mut update = vec![0; 64];
    let header = UpdateHeader::new(Domain::MARKET_PRICE, 0, UpdateType::QUOTE, DataType::FIELD_LIST);
    let len = header.encode_with(&mut update, price(101)).unwrap();
    let mut waiting: Vec<_> = line.source.streams.values().copied().collect();
    while !waiting.is_empty() {
        waiting.retain(|stream| match line.provider.update(&mut line.down, *stream, &update[..len]) {
            Sent::Queued => false,
            Sent::Full => true,
            other => panic!("{other:?}"),
        });
        line.step().unwrap();
    }
    line.until("updates", |line| line.sink.updates == ITEMS);

    // The service goes down and comes back, with a word to the items each time.
    let change = |line: &mut Line, is_up: bool| {
        let data = if is_up { DataState::OK } else { DataState::SUSPECT };
        let state = ServiceState {
            service_state: Some(u64::from(is_up)),
            accepting_requests: None,
            status: Some(OwnedState::from(State { data, ..State::OPEN_OK })),
        };
        let changes = [ServiceEntry::change(7, ServicePart::State(state))];
        assert_eq!(line.provider.directory_changed(&mut line.down, &changes), Ok(Sent::Queued));
    };
    let suspect = line.sink.suspect;
    change(&mut line, false);
    line.until("suspect", |line| line.sink.suspect == suspect + ITEMS);
    let good = line.sink.good;
    change(&mut line, true);
    line.until("good", |line| line.sink.good == good + ITEMS);

    handles.iter().for_each(|handle| assert!(line.consumer.close(*handle)));
    line.until("closed", |line| line.source.closed == ITEMS);
    assert_eq!(line.provider.open_streams(), 3);
    assert!(line.source.trips > 0);
    assert_eq!((line.provider.counters().refused, line.provider.counters().malformed), (0, 0));
    line.consumer.log_out(&mut line.up, &mut line.sink);
    assert_eq!(line.step(), Err(Over::LoggedOut));
}

#[test]
fn posts_and_refusals() {
    let mut line = line();
    let item = |name: &'static [u8]| ItemRequest::new(ServiceName::Name("TAPELINE"), name);
    let handle = line.consumer.open(&item(b"A")).unwrap();
    line.until("image", |line| line.sink.images == 1);
    let mut payload = vec![0; 32];
    let len = price(5)(&mut payload).unwrap();
    for (id, target) in [(1, Target::Item(handle)), (2, Target::Login)] {
        let user = PostUserInfo::default();
        let mut post = PostHeader::new(Domain::MARKET_PRICE, 0, user, DataType::FIELD_LIST);
        post.flags = flags::post::ACK | flags::post::POST_COMPLETE;
        post.post_id = Some(id);
        assert_eq!(line.consumer.post(&mut line.up, target, &post, &payload[..len]), Ok(Sent::Queued));
    }
    line.until("acks", |line| line.sink.acks.len() == 2);
    assert_eq!(line.sink.acks, [(1, None), (2, Some(NakCode::DENIED_BY_SRC))]);

    // Refused three times to be asked again, then served; the pauses are those of both ends.
    line.consumer.open(&item(b"MOODY")).unwrap();
    let begun = line.now.0;
    line.until("after refusals", |line| line.sink.images == 2);
    assert_eq!(line.source.refusals, 3);
    assert!(line.now.0 - begun > 2000 * STEP, "one refusal at once, and one each second");
    let snapshot = ItemRequest { is_streaming: false, ..item(b"S") };
    let open = line.provider.open_streams();
    line.consumer.open(&snapshot).unwrap();
    line.until("snapshot", |line| line.sink.images == 3);
    assert_eq!((line.provider.open_streams(), line.source.closed), (open, 0));
}

#[test]
fn publishing_through_a_small_buffer() {
    let (mut down, mut up) = (Queue::new(ROOM), Queue::new(ROOM));
    let mut acceptor = Acceptor::new(acceptor::AcceptorSettings::default(), Nanos(0));
    let mut publisher = NiProvider::new(
        ni_provider::NiProviderSettings::default(),
        &LoginRequest::new(b"user"),
        &[service()],
    )
    .unwrap();
    for number in 0..ITEMS {
        publisher.add(7, Domain::MARKET_PRICE, format!("ITEM{number}").as_bytes(), number as u64).unwrap();
    }
    let (mut images, mut posts) = (0, 0);
    let mut payload = vec![0; 32];
    let len = price(100)(&mut payload).unwrap();
    for step in 1..10_000 {
        let now = Nanos(step * STEP);
        let mut publish = |publisher: &mut NiProvider,
                           out: &mut dyn Outbox,
                           event: ni_provider::NiProviderEvent<'_>| match event {
            ni_provider::NiProviderEvent::Connect { .. } => publisher.connected(now, out),
            ni_provider::NiProviderEvent::ImageWanted { item, .. } => {
                let header = RefreshHeader::new(Domain(0), 0, State::OPEN_OK, DataType::FIELD_LIST);
                let header = RefreshHeader { flags: flags::refresh::REFRESH_COMPLETE, ..header };
                let _ = publisher.publish(out, item, &Publish::Refresh(header), &payload[..len]).unwrap();
            }
            ni_provider::NiProviderEvent::Message { message, .. } => {
                posts += usize::from(message.class() == MessageClass::POST);
            }
            _ => {}
        };
        publisher.tick(now, &mut up, &mut publish);
        while let Some(message) = down.pop() {
            publisher.message(now, &message, &mut up, &mut publish);
        }
        let mut accept =
            |acceptor: &mut Acceptor, out: &mut dyn Outbox, event: acceptor::AcceptorEvent<'_>| match event {
                acceptor::AcceptorEvent::Login { request, .. } => {
                    assert_eq!(request.attributes.role, Some(login::ROLE_PROVIDER));
                    let _ = acceptor.accept_login(out, &request, LoginFeatures::default()).unwrap();
                }
                acceptor::AcceptorEvent::Image { item, message, .. } => {
                    assert_eq!(bid(&message), Real::decimal(100, 2));
                    assert_eq!(
                        acceptor.directory().service(item.service_id.unwrap()).unwrap().name(),
                        Some("TAPELINE")
                    );
                    images += 1;
                }
                acceptor::AcceptorEvent::Service(_) => {}
                other => panic!("{other:?}"),
            };
        while let Some(message) = up.pop() {
            acceptor.message(now, &message, &mut down, &mut accept).unwrap();
        }
        acceptor.tick(now, &mut down, &mut accept).unwrap();
        if images == ITEMS {
            break;
        }
    }
    assert_eq!((images, acceptor.items().len()), (ITEMS, ITEMS));
    assert_eq!((acceptor.counters().ignored, acceptor.counters().malformed), (0, 0));
    let stream_id = acceptor.items().next().unwrap().stream_id;
    let post =
        PostHeader::new(Domain::MARKET_PRICE, stream_id, PostUserInfo::default(), DataType::FIELD_LIST);
    assert_eq!(acceptor.post(&mut down, &post, &mut price(1)), Ok(Sent::Queued));
    let mut count = |_: &mut NiProvider, _: &mut dyn Outbox, event: ni_provider::NiProviderEvent<'_>| {
        if let ni_provider::NiProviderEvent::Message { item, .. } = event {
            posts += usize::from(item.is_some());
        }
    };
    publisher.message(Nanos(0), &down.pop().unwrap(), &mut up, &mut count);
    assert_eq!(posts, 1);
}
