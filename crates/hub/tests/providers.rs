//! Services of providers: what clients see of them, and what their sources are told.
use crate::exchange;

use exchange::{Client, DELAYED, Exchange, bid, close, item, item_of, quote, request};
use tapeline_hub::access::{Access, Action, Code, Rule};
use tapeline_hub::{Late, Service, Settings, SlowPolicy, Unknown};
use tapeline_omm::State;
use tapeline_omm::domain::OwnedState;
use tapeline_omm::domain::directory::{Group, ServiceState};
use tapeline_omm::domain::{ServiceEntry, ServicePart};
use tapeline_omm::rwf::{
    DataState, DataType, Domain, Flags, Header, Key, MessageClass, MessageView, Priority, RefreshHeader,
    StateCode, StatusHeader, StreamState, flags,
};
use tapeline_plant::demand::{Answer, Demand, ItemName};
use tapeline_plant::tick::Kind;

const ROOM: usize = 1 << 20;
/// Of interactive providers, and of non-interactive ones.
const ASKED: u16 = 7;
const UNASKED: u16 = 8;
const ONE: Priority = Priority { class: 1, count: 1 };

fn settings() -> Settings {
    let unasked = Service { on_demand: false, unknown: Unknown::Closed, ..Service::new("NI", UNASKED) };
    Settings { services: vec![Service::new("IDN", ASKED), unasked], ..Settings::default() }
}

fn up(settings: Settings) -> Exchange {
    let mut exchange = Exchange::new(settings);
    exchange.up(ASKED, true);
    exchange.up(UNASKED, true);
    exchange
}

fn named(service: u16, name: &str) -> ItemName {
    ItemName { service, domain: Domain::MARKET_PRICE, name: name.into() }
}

fn classes(client: &Client, stream: i32) -> Vec<MessageClass> {
    client.on(stream).iter().map(|received| received.class).collect()
}

fn last_state(client: &Client, stream: i32) -> (StreamState, DataState, StateCode) {
    client.on(stream).last().unwrap().state.unwrap()
}

#[test]
fn services_share_names_and_not_items() {
    let mut exchange = up(settings());
    exchange.refresh("AAPL", &quote(1, 1));
    exchange.publish(UNASKED, "AAPL", &quote(2, 2));
    let mut client = exchange.client(ROOM);
    exchange.say(&client, &item(5, "AAPL"));
    exchange.say(&client, &item_of(UNASKED, 6, "AAPL"));
    exchange.update("AAPL", &bid(3));
    exchange.change(UNASKED, "AAPL", &bid(4));
    exchange.read_all(&mut client);
    assert_eq!((client.folded(5), client.folded(6)), (Some(quote(3, 1)), Some(quote(4, 2))));
    // Of the provider's image the labels are the provider's.
    let image = client.on(6)[0].bytes.clone();
    let message = MessageView::parse(&image).unwrap();
    let Ok(Header::Refresh(header)) = message.header() else { panic!("no refresh") };
    assert_eq!((header.group_id, header.permission_data), (&b"\x07\x07"[..], Some(&b"permitted"[..])));
    assert_eq!((header.qos, header.key.unwrap().service_id), (Some(DELAYED), Some(UNASKED)));
}

#[test]
fn the_first_to_ask_opens_and_the_last_to_leave_closes() {
    let mut exchange = up(settings());
    let (mut first, mut second) = (exchange.client(ROOM), exchange.client(ROOM));
    exchange.say(&first, &item_of(ASKED, 5, "VOD.L"));
    let item = named(ASKED, "VOD.L");
    assert_eq!(exchange.demands(), [Demand::Open { item: item.clone(), priority: ONE }]);
    exchange.publish(ASKED, "VOD.L", &quote(1, 2));
    exchange.change(ASKED, "VOD.L", &bid(3));
    exchange.say(&second, &item_of(ASKED, 5, "VOD.L"));
    let two = Priority { class: 1, count: 2 };
    assert_eq!(exchange.demands(), [Demand::Priority { item: item.clone(), priority: two }]);
    exchange.read_all(&mut first);
    exchange.read_all(&mut second);
    assert_eq!(classes(&first, 5), [MessageClass::STATUS, MessageClass::REFRESH, MessageClass::UPDATE]);
    assert_eq!(classes(&second, 5), [MessageClass::REFRESH]);
    assert_eq!(second.folded(5), Some(quote(3, 2)));
    exchange.say(&second, &close(5));
    assert_eq!(exchange.demands(), [Demand::Priority { item: item.clone(), priority: ONE }]);
    exchange.leave(&first);
    assert_eq!(exchange.demands(), [Demand::Close(item.clone())]);
    // What was on its way when the source was told is nobody's, and no image for who asks later.
    exchange.publish(ASKED, "VOD.L", &quote(8, 8));
    assert_eq!(exchange.hub.counters().unwanted, 1);
    exchange.say(&second, &item_of(ASKED, 6, "VOD.L"));
    assert_eq!(exchange.demands(), [Demand::Open { item, priority: ONE }]);
    exchange.read_all(&mut second);
    assert_eq!(classes(&second, 6), [MessageClass::STATUS]);
    exchange.publish(ASKED, "VOD.L", &quote(9, 9));
    exchange.read_all(&mut second);
    assert_eq!(second.folded(6), Some(quote(9, 9)));
}

/// Answers do not come on the ring: one may be read after what the plant said later.
#[test]
fn an_answer_that_an_image_has_overtaken_says_nothing() {
    for is_cached in [true, false] {
        let service = Service { is_cached, ..Service::new("IDN", ASKED) };
        let mut exchange = Exchange::new(Settings { services: vec![service], ..Settings::default() });
        exchange.up(ASKED, true);
        let mut client = exchange.client(ROOM);
        exchange.say(&client, &item_of(ASKED, 5, "VOD.L"));
        exchange.demands();
        exchange.publish(ASKED, "VOD.L", &quote(1, 2));
        exchange.read_all(&mut client);
        for stream in [StreamState::OPEN, StreamState::CLOSED] {
            let state =
                State { stream, data: DataState::SUSPECT, text: b"nobody is there", ..State::OPEN_OK };
            let status = StatusHeader { state: Some(state), ..StatusHeader::new(Domain::MARKET_PRICE, 0) };
            let message = exchange::message(|room| status.encode(room)).into();
            exchange.answer(Answer::Status { item: named(ASKED, "VOD.L"), message });
        }
        exchange.change(ASKED, "VOD.L", &bid(3));
        exchange.read_all(&mut client);
        assert_eq!(client.folded(5), Some(quote(3, 2)));
        assert_eq!(client.on(5).last().unwrap().class, MessageClass::UPDATE, "cached: {is_cached}");
        assert_eq!(exchange.hub.counters().stray_answers, 2);
    }
}

/// What found no room goes out when there is some, as far as it is still so then.
#[test]
fn that_there_is_no_image_is_not_said_behind_the_image() {
    let service = Service { is_cached: false, ..Service::new("IDN", ASKED) };
    let slow = SlowPolicy::Cut { bytes: 1 << 20, messages: 1_000 };
    let settings = Settings { services: vec![service], slow, max_streams_of_item: 75, ..Settings::default() };
    let mut exchange = Exchange::new(settings);
    exchange.up(ASKED, true);
    let mut client = exchange.client(4_096);
    for stream in 5..80 {
        exchange.say(&client, &item_of(ASKED, stream, "VOD.L"));
    }
    exchange.demands();
    exchange.publish(ASKED, "VOD.L", &quote(1, 2));
    exchange.read_all(&mut client);
    for stream in 5..80 {
        assert_eq!(
            last_state(&client, stream),
            (StreamState::OPEN, DataState::OK, StateCode::NONE),
            "{stream}"
        );
    }
}

#[test]
fn a_service_without_a_cache_is_asked_for_each_image() {
    let uncached = Service { is_cached: false, ..Service::new("IDN", ASKED) };
    let mut exchange = Exchange::new(Settings { services: vec![uncached], ..Settings::default() });
    exchange.up(ASKED, true);
    let (mut first, mut second) = (exchange.client(ROOM), exchange.client(ROOM));
    exchange.say(&first, &item_of(ASKED, 5, "VOD.L"));
    exchange.demands();
    exchange.publish(ASKED, "VOD.L", &quote(1, 2));
    exchange.change(ASKED, "VOD.L", &bid(3));
    assert_eq!(exchange.hub.memory().items, 0);
    exchange.say(&second, &item_of(ASKED, 5, "VOD.L"));
    let item = named(ASKED, "VOD.L");
    let told = exchange.demands();
    assert!(told.contains(&Demand::Refresh(item)), "{told:?}");
    exchange.change(ASKED, "VOD.L", &bid(4));
    exchange.publish(ASKED, "VOD.L", &quote(4, 2));
    exchange.change(ASKED, "VOD.L", &bid(5));
    for client in [&mut first, &mut second] {
        exchange.read_all(client);
        assert_eq!(client.folded(5), Some(quote(5, 2)));
    }
    assert_eq!(classes(&second, 5), [MessageClass::STATUS, MessageClass::REFRESH, MessageClass::UPDATE]);
}

#[test]
fn who_comes_in_the_middle_of_an_image_that_is_not_kept_gets_the_next() {
    let uncached = Service { is_cached: false, ..Service::new("IDN", ASKED) };
    let mut exchange = Exchange::new(Settings { services: vec![uncached], ..Settings::default() });
    exchange.up(ASKED, true);
    let (mut first, mut second) = (exchange.client(ROOM), exchange.client(ROOM));
    exchange.say(&first, &item_of(ASKED, 5, "BOOK"));
    exchange.demands();
    let part = |exchange: &mut Exchange, part, flags| {
        exchange.provide(Kind::Refresh, (ASKED, "BOOK"), |out| {
            let container = DataType::NO_DATA;
            let header = RefreshHeader::new(Domain::MARKET_PRICE, 0, State::OPEN_OK, container);
            RefreshHeader { flags, part: Some(part), ..header }.encode(out)
        });
    };
    let (begins, ends) = (flags::refresh::CLEAR_CACHE, flags::refresh::REFRESH_COMPLETE);
    part(&mut exchange, 0, begins);
    exchange.say(&second, &item_of(ASKED, 5, "BOOK"));
    part(&mut exchange, 1, ends);
    let told = exchange.demands();
    assert!(told.contains(&Demand::Refresh(named(ASKED, "BOOK"))), "{told:?}");
    part(&mut exchange, 0, begins);
    part(&mut exchange, 1, ends);
    exchange.read_all(&mut first);
    exchange.read_all(&mut second);
    let refreshes =
        |client: &Client| classes(client, 5).iter().filter(|c| **c == MessageClass::REFRESH).count();
    assert_eq!((refreshes(&first), refreshes(&second)), (4, 2));
}

#[test]
fn who_may_not_see_an_items_codes_does_not() {
    for is_cached in [true, false] {
        let allow = Rule {
            users: Vec::new(),
            groups: Vec::new(),
            services: Vec::new(),
            items: Vec::new(),
            domains: Vec::new(),
            codes: vec![Code::Bytes(b"permitted"[..].into())],
            action: Action::Allow { post: false },
        };
        let access = Access { rules: vec![allow], ..Access::default() };
        let service = Service { is_cached, ..Service::new("IDN", ASKED) };
        let settings = Settings { access: access.into(), services: vec![service], ..Settings::default() };
        let mut exchange = Exchange::new(settings);
        exchange.up(ASKED, true);
        let mut client = exchange.client(ROOM);
        exchange.say(&client, &item_of(ASKED, 5, "GOOD"));
        exchange.say(&client, &item_of(ASKED, 6, "BAD"));
        exchange.demands();
        exchange.publish(ASKED, "GOOD", &quote(1, 1));
        exchange.provide(Kind::Refresh, (ASKED, "BAD"), |out| {
            let mut header = RefreshHeader::new(Domain::MARKET_PRICE, 0, State::OPEN_OK, DataType::NO_DATA);
            header.flags = flags::refresh::REFRESH_COMPLETE | flags::refresh::CLEAR_CACHE;
            RefreshHeader { permission_data: Some(b"other"), ..header }.encode(out)
        });
        exchange.read_all(&mut client);
        assert_eq!(client.folded(5), Some(quote(1, 1)));
        assert_eq!(last_state(&client, 6).2, StateCode::NOT_ENTITLED);
        assert!(!classes(&client, 6).contains(&MessageClass::REFRESH));
        // Its codes become others.
        exchange.provide(Kind::Status, (ASKED, "GOOD"), |out| {
            let header = StatusHeader::new(Domain::MARKET_PRICE, 0);
            StatusHeader { permission_data: Some(b"other"), ..header }.encode(out)
        });
        exchange.change(ASKED, "GOOD", &bid(2));
        exchange.read_all(&mut client);
        assert_eq!(last_state(&client, 5).2, StateCode::NOT_ENTITLED);
        assert!(!classes(&client, 5).contains(&MessageClass::UPDATE));
    }
}

#[test]
fn a_state_of_an_item_is_told_and_kept_and_a_last_word_closes() {
    let mut exchange = up(settings());
    exchange.publish(UNASKED, "A", &quote(1, 1));
    let mut client = exchange.client(ROOM);
    exchange.say(&client, &item_of(UNASKED, 5, "A"));
    let suspect = State { data: DataState::SUSPECT, text: b"stale", ..State::OPEN_OK };
    exchange.say_of(UNASKED, "A", suspect);
    exchange.say(&client, &item_of(UNASKED, 6, "A"));
    exchange.read_all(&mut client);
    assert_eq!(classes(&client, 5), [MessageClass::REFRESH, MessageClass::STATUS]);
    for stream in [5, 6] {
        assert_eq!(last_state(&client, stream).1, DataState::SUSPECT);
    }
    let gone = State { stream: StreamState::CLOSED, code: StateCode::NOT_FOUND, ..suspect };
    exchange.say_of(UNASKED, "A", gone);
    exchange.change(UNASKED, "A", &bid(2));
    exchange.say(&client, &item_of(UNASKED, 7, "A"));
    exchange.read_all(&mut client);
    for stream in [5, 6] {
        assert_eq!(
            last_state(&client, stream),
            (StreamState::CLOSED, DataState::SUSPECT, StateCode::NOT_FOUND)
        );
    }
    assert_eq!(last_state(&client, 7).0, StreamState::CLOSED);
    assert_eq!(exchange.hub.memory().items, 0);
    // And what it says when it is back.
    exchange.publish(UNASKED, "A", &quote(3, 3));
    exchange.say(&client, &item_of(UNASKED, 8, "A"));
    exchange.read_all(&mut client);
    assert_eq!(client.folded(8), Some(quote(3, 3)));
}

#[test]
fn what_a_group_becomes_its_images_are() {
    let mut exchange = up(settings());
    exchange.publish(UNASKED, "A", &quote(1, 1));
    let mut client = exchange.client(ROOM);
    exchange.say(&client, &item_of(UNASKED, 5, "A"));
    exchange.read_all(&mut client);
    let suspect = State { data: DataState::SUSPECT, text: b"line down", ..State::OPEN_OK };
    let group = |state: State<'_>| {
        let status = Some(OwnedState::from(state));
        ServicePart::Group(Group { group: Some(b"\x07\x07"[..].into()), status, ..Group::default() })
    };
    let before = client.on(0x4000_0000).len();
    exchange.service(UNASKED, vec![group(suspect)]);
    exchange.say(&client, &item_of(UNASKED, 6, "A"));
    exchange.read_all(&mut client);
    assert_eq!((client.on(0x4000_0000).len(), last_state(&client, 6).1), (before + 1, DataState::SUSPECT));
    exchange.service(UNASKED, vec![group(State { data: DataState::OK, ..suspect })]);
    exchange.say(&client, &item_of(UNASKED, 7, "A"));
    exchange.read_all(&mut client);
    assert_eq!(last_state(&client, 7).1, DataState::OK);
    // A group that is closed takes its streams along: the client has them closed by the directory.
    exchange.service(UNASKED, vec![group(State { stream: StreamState::CLOSED_RECOVER, ..suspect })]);
    exchange.change(UNASKED, "A", &bid(2));
    exchange.read_all(&mut client);
    assert!(classes(&client, 5).iter().all(|class| *class != MessageClass::UPDATE));
    assert_eq!(exchange.hub.memory().items, 0);
}

#[test]
fn items_are_suspect_while_the_plant_above_is_silent_and_have_their_own_states_afterwards() {
    let mut exchange = up(settings());
    ["A", "B"].iter().for_each(|name| exchange.publish(UNASKED, name, &quote(1, 1)));
    let suspect = State { data: DataState::SUSPECT, text: b"line down", ..State::OPEN_OK };
    exchange.say_of(UNASKED, "B", suspect);
    let mut client = exchange.client(ROOM);
    exchange.say(&client, &item_of(UNASKED, 5, "B"));
    let above = |exchange: &mut Exchange, data| {
        let state = State { data, ..State::OPEN_OK };
        let header = StatusHeader { state: Some(state), ..StatusHeader::new(Domain::MARKET_PRICE, 0) };
        exchange.provide(Kind::Status, (UNASKED, ""), |out| header.encode(out));
    };
    exchange.read_all(&mut client);
    let told = client.on(0x4000_0000).len();
    // It may be said again, by who does not know of the first time.
    above(&mut exchange, DataState::SUSPECT);
    above(&mut exchange, DataState::SUSPECT);
    exchange.say(&client, &item_of(UNASKED, 6, "A"));
    exchange.read_all(&mut client);
    assert_eq!((client.on(0x4000_0000).len(), last_state(&client, 6).1), (told + 1, DataState::SUSPECT));
    let states = client.on(5).len();
    above(&mut exchange, DataState::OK);
    exchange.say(&client, &item_of(UNASKED, 8, "A"));
    exchange.read_all(&mut client);
    assert_eq!((client.on(0x4000_0000).len(), last_state(&client, 8).1), (told + 2, DataState::OK));
    // The directory has made all good, and this one is not.
    assert_eq!((client.on(5).len(), last_state(&client, 5).1), (states + 1, DataState::SUSPECT));
    assert_eq!(exchange.hub.counters().unusable, 0);
}

#[test]
fn a_service_is_what_its_provider_says_under_the_name_that_it_has_here() {
    let mut exchange = Exchange::new(settings());
    let service = |exchange: &Exchange| exchange.hub.directory().service(ASKED).unwrap().clone();
    assert_eq!(
        (service(&exchange).name(), service(&exchange).state().unwrap().is_up()),
        (Some("IDN"), false)
    );
    let mut info = service(&exchange).info().unwrap().clone();
    (info.name, info.vendor) = (Some("ELSE".to_owned()), Some("Maker".to_owned()));
    // Dictionaries are the hub's, whatever the provider has: clients look here for who gives them out.
    info.capabilities = Some(vec![Domain::MARKET_PRICE]);
    exchange.service(ASKED, vec![ServicePart::Info(info), ServicePart::State(ServiceState::UP)]);
    let now = service(&exchange);
    assert_eq!((now.name(), now.info().unwrap().vendor.as_deref()), (Some("IDN"), Some("Maker")));
    let capabilities = now.info().unwrap().capabilities.clone().unwrap();
    assert_eq!(capabilities, [Domain::DICTIONARY, Domain::MARKET_PRICE]);
    assert!(now.state().unwrap().is_up());
    // It may say nothing of another service.
    let other = ServiceEntry::change(UNASKED, ServicePart::State(ServiceState::UP));
    exchange.provide(Kind::Status, (ASKED, ""), |out| {
        tapeline_omm::domain::directory::encode_update(0, 0x3F, &[other], out)
    });
    assert!(!exchange.hub.directory().service(UNASKED).unwrap().state().unwrap().is_up());
    assert_eq!(exchange.hub.counters().unusable, 1);
    exchange.provide(Kind::Status, (ASKED, ""), |out| {
        tapeline_omm::domain::directory::encode_update(0, 0x3F, &[ServiceEntry::delete(ASKED)], out)
    });
    assert!(!service(&exchange).state().unwrap().is_up());
}

#[test]
fn who_asks_for_what_nobody_has_hears_of_it() {
    let mut exchange = up(settings());
    let mut client = exchange.client(ROOM);
    exchange.say(&client, &item_of(UNASKED, 5, "NONE"));
    exchange.say(&client, &item_of(ASKED, 6, "NONE"));
    exchange.demands();
    let state = State {
        stream: StreamState::CLOSED,
        data: DataState::SUSPECT,
        code: StateCode::NOT_FOUND,
        text: b"no",
    };
    let mut message = vec![0; 64];
    let header = StatusHeader { state: Some(state), ..StatusHeader::new(Domain::MARKET_PRICE, 0) };
    let len = header.encode(&mut message).unwrap();
    let answer = |name| Answer::Status { item: named(ASKED, name), message: message[..len].into() };
    exchange.answer(answer("NONE"));
    exchange.answer(answer("OTHER"));
    exchange.read_all(&mut client);
    for stream in [5, 6] {
        assert_eq!(
            last_state(&client, stream),
            (StreamState::CLOSED, DataState::SUSPECT, StateCode::NOT_FOUND)
        );
    }
    assert_eq!(exchange.demands(), [Demand::Close(named(ASKED, "NONE"))]);
    assert_eq!(exchange.hub.counters().stray_answers, 1);
}

#[test]
fn what_does_not_come_in_time_is_closed_or_suspect() {
    for late in [Late::Recover, Late::Suspect] {
        let service = Service { request_timeout_ms: 1000, late, ..Service::new("IDN", ASKED) };
        let mut exchange = Exchange::new(Settings { services: vec![service], ..Settings::default() });
        exchange.up(ASKED, true);
        let mut client = exchange.client(ROOM);
        exchange.say(&client, &item_of(ASKED, 5, "SLOW"));
        exchange.say(&client, &item_of(ASKED, 6, "QUICK"));
        exchange.demands();
        exchange.publish(ASKED, "QUICK", &quote(1, 1));
        exchange.pass(990);
        exchange.read(&mut client, usize::MAX);
        assert_eq!(last_state(&client, 5).2, StateCode::NONE);
        exchange.pass(20);
        exchange.pass(2000);
        exchange.read_all(&mut client);
        let stream = if late == Late::Recover { StreamState::CLOSED_RECOVER } else { StreamState::OPEN };
        assert_eq!(last_state(&client, 5), (stream, DataState::SUSPECT, StateCode::TIMEOUT));
        assert_eq!(client.on(6).len(), 2);
        exchange.publish(ASKED, "SLOW", &quote(2, 2));
        exchange.read_all(&mut client);
        let came = (late == Late::Suspect).then(|| quote(2, 2));
        assert_eq!((client.folded(5), exchange.hub.counters().late), (came, 1));
    }
}

/// That the state of an item was told does not stop the clock of who wants its image and nothing else.
#[test]
fn a_snapshot_does_not_wait_for_good_though_its_item_has_a_state() {
    for late in [Late::Recover, Late::Suspect] {
        let service = Service { request_timeout_ms: 1000, late, ..Service::new("IDN", ASKED) };
        let mut exchange = Exchange::new(Settings { services: vec![service], ..Settings::default() });
        exchange.up(ASKED, true);
        let mut client = exchange.client(ROOM);
        let name = Key { service_id: Some(ASKED), name: Some(b"SLOW"), ..Key::default() };
        exchange.say(&client, &request(Domain::MARKET_PRICE, 5, Flags::NONE, name));
        exchange.say(&client, &item_of(ASKED, 6, "SLOW"));
        exchange.demands();
        let state = State { data: DataState::SUSPECT, text: b"soon", ..State::OPEN_OK };
        let status = StatusHeader { state: Some(state), ..StatusHeader::new(Domain::MARKET_PRICE, 0) };
        let message = exchange::message(|room| status.encode(room)).into();
        exchange.answer(Answer::Status { item: named(ASKED, "SLOW"), message });
        exchange.pass(500);
        // It has heard nothing but that there is no image.
        exchange.say(&client, &item_of(ASKED, 7, "SLOW"));
        exchange.pass(510);
        // The second of two refusals is put off.
        exchange.pass(2000);
        exchange.read_all(&mut client);
        let recover = (StreamState::CLOSED_RECOVER, DataState::SUSPECT, StateCode::TIMEOUT);
        assert_eq!(last_state(&client, 5), recover, "{late:?}");
        assert_eq!(last_state(&client, 6), (StreamState::OPEN, DataState::SUSPECT, StateCode::NONE));
        let stream = if late == Late::Recover { StreamState::CLOSED_RECOVER } else { StreamState::OPEN };
        assert_eq!(last_state(&client, 7), (stream, DataState::SUSPECT, StateCode::TIMEOUT));
        assert_eq!(exchange.hub.counters().late, 1);
    }
}

/// Without a cache an item is waited for by some, while others have had their image for long.
#[test]
fn who_has_an_image_does_not_hear_of_who_waits_in_vain() {
    for late in [Late::Recover, Late::Suspect] {
        let uncached =
            Service { is_cached: false, request_timeout_ms: 1000, late, ..Service::new("IDN", ASKED) };
        let mut exchange = Exchange::new(Settings { services: vec![uncached], ..Settings::default() });
        exchange.up(ASKED, true);
        let (mut first, mut second) = (exchange.client(ROOM), exchange.client(ROOM));
        exchange.say(&first, &item_of(ASKED, 5, "VOD.L"));
        exchange.demands();
        exchange.publish(ASKED, "VOD.L", &quote(1, 2));
        exchange.say(&second, &item_of(ASKED, 5, "VOD.L"));
        exchange.demands();
        exchange.pass(2000);
        exchange.change(ASKED, "VOD.L", &bid(3));
        for client in [&mut first, &mut second] {
            exchange.read_all(client);
        }
        assert_eq!(
            classes(&first, 5),
            [MessageClass::STATUS, MessageClass::REFRESH, MessageClass::UPDATE],
            "{late:?}"
        );
        assert_eq!(last_state(&second, 5).2, StateCode::TIMEOUT);
    }
}

#[test]
fn who_waits_for_an_image_that_the_cache_has_no_room_for_is_told() {
    let mut exchange = up(Settings { cache_bytes: 8, ..settings() });
    let mut client = exchange.client(ROOM);
    let snapshot = request(Domain::MARKET_PRICE, 6, Flags::default(), Key::item(ASKED, b"VOD.L"));
    exchange.say(&client, &item_of(ASKED, 5, "VOD.L"));
    exchange.say(&client, &snapshot);
    exchange.demands();
    exchange.publish(ASKED, "VOD.L", &quote(1, 2));
    exchange.read_all(&mut client);
    for stream in [5, 6] {
        let told = last_state(&client, stream);
        assert_eq!(told, (StreamState::CLOSED, DataState::SUSPECT, StateCode::NO_RESOURCES), "{stream}");
    }
    assert_eq!(exchange.demands(), [Demand::Close(named(ASKED, "VOD.L"))]);
}

#[test]
fn a_source_that_has_closed_an_item_is_asked_again_for_who_asks_then() {
    let mut exchange = up(settings());
    let mut client = exchange.client(ROOM);
    exchange.say(&client, &item_of(ASKED, 5, "A"));
    exchange.demands();
    exchange.publish(ASKED, "A", &quote(1, 1));
    let closed = State { stream: StreamState::CLOSED_RECOVER, data: DataState::SUSPECT, ..State::OPEN_OK };
    exchange.say_of(ASKED, "A", closed);
    exchange.say(&client, &item_of(ASKED, 6, "A"));
    let item = named(ASKED, "A");
    assert_eq!(exchange.demands(), [Demand::Close(item.clone()), Demand::Open { item, priority: ONE }]);
    exchange.publish(ASKED, "A", &quote(2, 2));
    exchange.pass(2000);
    exchange.read_all(&mut client);
    assert_eq!(
        (last_state(&client, 5).0, client.folded(6)),
        (StreamState::CLOSED_RECOVER, Some(quote(2, 2)))
    );
}

/// A number goes from one item to another, which have nothing to do with each other.
#[test]
fn a_number_that_has_another_item_brings_nothing_of_that_to_the_first_ones_clients() {
    let mut exchange = up(settings());
    let mut client = exchange.client(ROOM);
    exchange.publish(UNASKED, "OLD", &quote(1, 2));
    exchange.end(UNASKED, "OLD", false);
    exchange.publish(UNASKED, "NEW", &quote(3, 4));
    exchange.say(&client, &item_of(UNASKED, 5, "OLD"));
    exchange.say(&client, &item_of(UNASKED, 6, "NEW"));
    exchange.change(UNASKED, "NEW", &bid(5));
    exchange.read_all(&mut client);
    assert_eq!(last_state(&client, 5), (StreamState::CLOSED, DataState::SUSPECT, StateCode::NOT_FOUND));
    assert_eq!(client.folded(6), Some(quote(5, 4)));
    // Whoever has an item that the plant thought nobody had is told to ask again.
    exchange.end(UNASKED, "NEW", false);
    exchange.publish(UNASKED, "THIRD", &quote(7, 8));
    exchange.change(UNASKED, "THIRD", &bid(9));
    exchange.read_all(&mut client);
    assert_eq!(last_state(&client, 6).0, StreamState::CLOSED_RECOVER);
    assert_eq!(client.folded(6), Some(quote(5, 4)));
    assert_eq!(exchange.hub.counters().unusable, 0);
}

/// The word that an item is over is among what the hub has missed.
#[test]
fn a_number_is_not_believed_after_a_gap() {
    let mut exchange = up(settings());
    let mut client = exchange.client(ROOM);
    for name in ["OLD", "SAME"] {
        exchange.publish(UNASKED, name, &quote(1, 2));
    }
    exchange.say(&client, &item_of(UNASKED, 5, "OLD"));
    exchange.say(&client, &item_of(UNASKED, 6, "SAME"));
    exchange.end(UNASKED, "OLD", true);
    // The first tick that comes then has the number of an item that the hub knew.
    exchange.publish(UNASKED, "NEW", &quote(3, 4));
    exchange.change(UNASKED, "NEW", &bid(5));
    exchange.change(UNASKED, "SAME", &bid(6));
    exchange.say(&client, &item_of(UNASKED, 7, "NEW"));
    exchange.read_all(&mut client);
    assert_eq!(client.folded(5), Some(quote(1, 2)), "and what it has is suspect by its service");
    assert_eq!(client.folded(6), Some(quote(6, 2)));
    assert_eq!(client.folded(7), Some(quote(5, 4)));
}

/// A client asks for an item while the plant lets go of it: its demand is on its way.
#[test]
fn who_asks_while_a_number_goes_waits_for_the_plants_answer() {
    let mut exchange = up(settings());
    let mut client = exchange.client(ROOM);
    exchange.say(&client, &item_of(ASKED, 5, "IBM"));
    exchange.demands();
    exchange.publish(ASKED, "IBM", &quote(1, 2));
    exchange.say(&client, &close(5));
    assert_eq!(exchange.demands(), [Demand::Close(named(ASKED, "IBM"))]);
    exchange.say(&client, &item_of(ASKED, 6, "IBM"));
    exchange.end(ASKED, "IBM", false);
    assert_eq!(exchange.demands(), [Demand::Open { item: named(ASKED, "IBM"), priority: ONE }]);
    exchange.publish(ASKED, "OTHER", &quote(8, 8));
    exchange.publish(ASKED, "IBM", &quote(3, 4));
    exchange.change(ASKED, "IBM", &bid(5));
    exchange.read_all(&mut client);
    assert_eq!(client.folded(6), Some(quote(5, 4)));
    assert!(client.on(6).iter().all(|got| got.state.is_none_or(|state| state.0 == StreamState::OPEN)));
}

#[test]
fn an_item_that_ends_after_a_gap_is_known_by_its_name() {
    let mut exchange = up(settings());
    let mut client = exchange.client(ROOM);
    for name in ["HAD", "UNHAD", "MISSED"] {
        exchange.publish(UNASKED, name, &quote(1, 2));
    }
    exchange.say(&client, &item_of(UNASKED, 5, "HAD"));
    exchange.end(UNASKED, "MISSED", true);
    exchange.publish(UNASKED, "NEXT", &quote(3, 4));
    assert_eq!(exchange.hub.counters().missing, 1);
    exchange.end(UNASKED, "HAD", false);
    exchange.end(UNASKED, "UNHAD", false);
    exchange.say(&client, &item_of(UNASKED, 6, "UNHAD"));
    exchange.read_all(&mut client);
    assert_eq!(last_state(&client, 5).0, StreamState::CLOSED_RECOVER);
    assert_eq!(last_state(&client, 6), (StreamState::CLOSED, DataState::SUSPECT, StateCode::NOT_FOUND));
}

/// Where no image is kept the hub does not know an item's group, and its clients' streams are closed all the same.
#[test]
fn a_group_that_is_over_is_so_for_items_without_an_image() {
    let services = vec![Service { is_cached: false, ..Service::new("IDN", ASKED) }];
    let mut exchange = Exchange::new(Settings { services, ..Settings::default() });
    exchange.up(ASKED, true);
    let mut client = exchange.client(ROOM);
    exchange.say(&client, &item_of(ASKED, 5, "IBM"));
    exchange.demands();
    exchange.publish(ASKED, "IBM", &quote(1, 2));
    exchange.read_all(&mut client);
    assert_eq!(client.folded(5), Some(quote(1, 2)));
    let state = State { stream: StreamState::CLOSED_RECOVER, data: DataState::SUSPECT, ..State::OPEN_OK };
    let group = Group {
        group: Some(b"\x07\x07"[..].into()),
        status: Some(OwnedState::from(state)),
        ..Group::default()
    };
    exchange.service(ASKED, vec![ServicePart::Group(group)]);
    assert_eq!(exchange.demands(), [Demand::Close(named(ASKED, "IBM"))]);
}

/// An item of the feeds that never comes: its client hears of it, waits on, and is let go; one that asks later has time of its own.
#[test]
fn a_request_for_an_unknown_item_of_the_feeds_ends_after_a_time() {
    for wait_timeout_ms in [3_000, 0] {
        let settings = Settings { request_timeout_ms: 1_000, wait_timeout_ms, ..Settings::default() };
        let mut exchange = Exchange::new(settings);
        let (mut client, mut later) = (exchange.client(ROOM), exchange.client(ROOM));
        exchange.say(&client, &item(5, "NEVER"));
        exchange.say(&client, &item(6, "COMES"));
        exchange.pass(1_010);
        exchange.read_all(&mut client);
        let waits = (StreamState::OPEN, DataState::SUSPECT, StateCode::TIMEOUT);
        assert_eq!((last_state(&client, 5), last_state(&client, 6)), (waits, waits));
        exchange.refresh("COMES", &quote(1, 1));
        exchange.pass(1_500);
        exchange.say(&later, &item(5, "NEVER"));
        exchange.pass(600);
        exchange.read_all(&mut client);
        exchange.read_all(&mut later);
        let closed = (StreamState::CLOSED_RECOVER, DataState::SUSPECT, StateCode::TIMEOUT);
        assert_eq!(last_state(&client, 5), if wait_timeout_ms == 0 { waits } else { closed });
        assert_eq!(client.folded(6), Some(quote(1, 1)));
        assert_ne!(later.on(5).last().and_then(|said| said.state).map(|state| state.0), Some(closed.0));
        // What waits no longer is not waited for: an image goes to nobody but those who have asked since.
        exchange.pass(600);
        exchange.refresh("NEVER", &quote(2, 2));
        exchange.read_all(&mut client);
        exchange.read_all(&mut later);
        assert_eq!(client.folded(5), (wait_timeout_ms == 0).then(|| quote(2, 2)));
        assert_eq!(later.folded(5), Some(quote(2, 2)));
    }
}
