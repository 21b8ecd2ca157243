//! What goes on from one client to a source and back: private streams, posts, generic messages; and how clients choose to hear
//! of doubt.
use crate::exchange;

use std::net::Ipv4Addr;

use exchange::{Client, Exchange, bid, close, item, item_of, message, quote, request};
use tapeline_hub::access::{Access, Action, Pattern, Rule};
use tapeline_hub::{HubEvent, Late, Peer, Posts, Service, Settings};
use tapeline_nanos::Nanos;
use tapeline_omm::State;
use tapeline_omm::domain::{LoginRequest, RoundTrip, login};
use tapeline_omm::rwf::{
    AckHeader, DataState, DataType, Domain, Flags, GenericHeader, Header, Key, MessageClass, MessageView,
    NakCode, PostHeader, PostUserInfo, Priority, RefreshHeader, RequestHeader, StateCode, StatusHeader,
    StreamState, UpdateHeader, UpdateType, flags, update_header,
};
use tapeline_plant::demand::{Answer, Demand, ItemName, Ticket};

const ROOM: usize = 1 << 20;
const IDN: u16 = 7;
const REFUSES: u16 = 8;
const LOGIN: i32 = 1;

fn settings() -> Settings {
    let takes = Service { posts: Posts::Forward, ..Service::new("IDN", IDN) };
    Settings { services: vec![takes, Service::new("DEAF", REFUSES)], ..Settings::default() }
}

fn up(settings: Settings) -> Exchange {
    let mut exchange = Exchange::new(settings);
    exchange.up(IDN, true);
    exchange.up(REFUSES, true);
    exchange
}

fn named(name: &str) -> ItemName {
    ItemName { service: IDN, domain: Domain::MARKET_PRICE, name: name.into() }
}

fn state_on(client: &Client, stream: i32) -> (StreamState, DataState, StateCode) {
    client.on(stream).last().unwrap().state.unwrap()
}

fn private(id: i32, name: &str) -> Vec<u8> {
    let key = Key::item(IDN, name.as_bytes());
    request(Domain::MARKET_PRICE, id, flags::request::STREAMING | flags::request::PRIVATE_STREAM, key)
}

fn status(state: State<'_>) -> Box<[u8]> {
    let header = StatusHeader { state: Some(state), ..StatusHeader::new(Domain::MARKET_PRICE, 0) };
    message(|room| header.encode(room)).into()
}

fn generic(id: i32, text: &[u8]) -> Vec<u8> {
    message(|room| {
        GenericHeader::new(Domain::MARKET_PRICE, id, DataType::OPAQUE).encode_with(room, |room| {
            room[..text.len()].copy_from_slice(text);
            Ok(text.len())
        })
    })
}

fn post(id: i32, post_id: u32, key: Option<Key<'_>>) -> Vec<u8> {
    let user = PostUserInfo { address: 0x0A0B_0C0D, user_id: 77 };
    let domain = if id == LOGIN { Domain::LOGIN } else { Domain::MARKET_PRICE };
    let header = PostHeader {
        flags: flags::post::ACK | flags::post::POST_COMPLETE,
        post_id: Some(post_id),
        sequence: Some(5),
        key,
        ..PostHeader::new(domain, id, user, DataType::OPAQUE)
    };
    message(|room| {
        header.encode_with(room, |room| {
            room[..3].copy_from_slice(b"buy");
            Ok(3)
        })
    })
}

fn ack_of(bytes: &[u8]) -> AckHeader<'_> {
    let Ok(Header::Ack(ack)) = MessageView::parse(bytes).unwrap().header() else { panic!("no receipt") };
    ack
}

fn receipt(nak: Option<(NakCode, &[u8])>) -> Box<[u8]> {
    let ack = AckHeader {
        nak_code: nak.map(|(code, _)| code),
        text: nak.map(|(_, text)| text),
        ..AckHeader::new(Domain::MARKET_PRICE, 0, 1)
    };
    message(|room| ack.encode(room)).into()
}

#[test]
fn a_private_stream_goes_to_the_source_and_its_answers_to_one_client() {
    let mut exchange = up(settings());
    let (mut mine, mut other) = (exchange.client(ROOM), exchange.client(ROOM));
    exchange.say(&mine, &private(5, "TUNNEL"));
    exchange.say(&other, &item_of(IDN, 5, "TUNNEL"));
    let demands = exchange.demands();
    let Demand::OpenPrivate { ticket, request } = &demands[0] else { panic!("{demands:?}") };
    let asked = MessageView::parse(request).unwrap();
    let Ok(Header::Request(header)) = asked.header() else { panic!("no request") };
    assert_eq!(header.key, Key::item(IDN, b"TUNNEL"));
    assert!(header.flags.has(flags::request::PRIVATE_STREAM));
    assert_eq!(demands[1], Demand::Open { item: named("TUNNEL"), priority: ONE });
    let refresh = RefreshHeader {
        flags: flags::refresh::REFRESH_COMPLETE,
        ..RefreshHeader::new(Domain::MARKET_PRICE, 0, State::OPEN_OK, DataType::NO_DATA)
    };
    let update = message(|room| {
        Ok(update_header(room, Domain::MARKET_PRICE, 0, UpdateType::UNSPECIFIED, DataType::NO_DATA)?)
    });
    let closed = State { stream: StreamState::CLOSED_RECOVER, data: DataState::SUSPECT, ..State::OPEN_OK };
    for answer in [message(|room| refresh.encode(room)), update, generic(0, b"hello"), receipt(None).into()] {
        exchange.answer(Answer::Private { ticket: *ticket, message: answer.into() });
    }
    exchange.read_all(&mut mine);
    let classes: Vec<_> = mine.on(5).iter().map(|received| received.class).collect();
    use MessageClass as Class;
    assert_eq!(classes, [Class::REFRESH, Class::UPDATE, Class::GENERIC, Class::ACK]);
    let view = MessageView::parse(&mine.on(5)[0].bytes).unwrap();
    assert!(view.flags().has(flags::refresh::PRIVATE_STREAM));
    // The other way.
    exchange.say(&mine, &generic(5, b"you too"));
    exchange.say(&mine, &post(5, 1, None));
    let told = exchange.demands();
    let is_private = |demand: &Demand| matches!(demand, Demand::Private { ticket: of, .. } if of == ticket);
    assert!(told.len() == 2 && told.iter().all(is_private), "{told:?}");
    // It ends by the source's word, and then the ticket is nobody's.
    exchange.answer(Answer::Private { ticket: *ticket, message: status(closed) });
    exchange.answer(Answer::Private { ticket: *ticket, message: status(closed) });
    exchange.read_all(&mut mine);
    exchange.read_all(&mut other);
    assert_eq!(state_on(&mine, 5).0, StreamState::CLOSED_RECOVER);
    assert_eq!((other.on(5).len(), exchange.hub.counters().stray_answers), (1, 1));
    assert_eq!((exchange.demands(), exchange.hub.private_streams()), (vec![], 0));
    // What it asked for and was sent counts like that of any other stream.
    exchange.leave(&mine);
    let counters = exchange.notes().into_iter().find_map(|note| match note {
        HubEvent::Gone { counters, .. } => Some(counters),
        _ => None,
    });
    let counters = counters.unwrap();
    assert_eq!((counters.requests, counters.refreshes, counters.updates, counters.statuses), (1, 1, 1, 1));
    assert_eq!(counters.answers, 5);
}

const ONE: Priority = Priority { class: 1, count: 1 };

#[test]
fn who_goes_leaves_no_private_stream_behind() {
    let mut exchange = up(Settings { max_private: 2, ..settings() });
    let mut client = exchange.client(ROOM);
    for id in [5, 6, 7] {
        exchange.say(&client, &private(id, "TUNNEL"));
    }
    exchange.say(&client, &close(5));
    exchange.read_all(&mut client);
    assert_eq!(
        state_on(&client, 7),
        (StreamState::CLOSED_RECOVER, DataState::SUSPECT, StateCode::NO_RESOURCES)
    );
    exchange.leave(&client);
    let closed: Vec<_> = exchange
        .demands()
        .into_iter()
        .filter_map(|demand| match demand {
            Demand::ClosePrivate(ticket) => Some(ticket),
            _ => None,
        })
        .collect();
    assert_eq!(closed, [Ticket(1), Ticket(2)]);
}

#[test]
fn a_post_goes_to_its_source_with_who_posts_and_its_receipt_comes_back() {
    let mut exchange = up(settings());
    let address = (Ipv4Addr::new(192, 168, 1, 2), 5000).into();
    let mut client = exchange.connect(Peer { address: Some(address), ..Peer::default() });
    exchange.say(&client, &message(|room| LoginRequest::new(b"user").encode(room)));
    exchange.say(&client, &item_of(IDN, 5, "VOD.L"));
    exchange.demands();
    exchange.publish(IDN, "VOD.L", &quote(1, 1));
    exchange.say(&client, &post(5, 9, None));
    exchange.say(&client, &post(LOGIN, 10, Some(Key::item(IDN, b"BT.L"))));
    let mut tickets = Vec::new();
    for (demand, name) in exchange.demands().into_iter().zip(["VOD.L", "BT.L"]) {
        let Demand::Post { ticket, service, item, message, .. } = demand else { panic!("{demand:?}") };
        assert_eq!((service, item.unwrap().name.as_ref()), (IDN, name));
        let view = MessageView::parse(&message).unwrap();
        let Ok(Header::Post(header)) = view.header() else { panic!("no post") };
        let who = PostUserInfo { address: u32::from_be_bytes([192, 168, 1, 2]), user_id: 77 };
        assert_eq!((header.post_user_info, header.stream_id, view.payload()), (who, 0, &b"buy"[..]));
        tickets.push(ticket.unwrap());
    }
    exchange
        .answer(Answer::Ack { ticket: tickets[1], message: receipt(Some((NakCode::SYMBOL_UNKNOWN, b"no"))) });
    exchange.answer(Answer::Ack { ticket: tickets[0], message: receipt(None) });
    exchange.answer(Answer::Ack { ticket: tickets[0], message: receipt(None) });
    exchange.read_all(&mut client);
    let of_item = client.on(5).last().unwrap().bytes.clone();
    let ack = ack_of(&of_item);
    assert_eq!((ack.ack_id, ack.sequence, ack.nak_code), (9, Some(5), None));
    let of_login = client.on(LOGIN).last().unwrap().bytes.clone();
    let nak = ack_of(&of_login);
    assert_eq!((nak.ack_id, nak.nak_code, nak.text), (10, Some(NakCode::SYMBOL_UNKNOWN), Some(&b"no"[..])));
    assert_eq!((exchange.hub.awaited_receipts(), exchange.hub.counters().stray_answers), (0, 1));
}

/// A part of a post off stream, of an item that its payload names or does not.
fn part(id: u32, number: u16, is_last: bool, key: Option<Key<'_>>, payload: &[u8]) -> Vec<u8> {
    let complete = if is_last { flags::post::POST_COMPLETE } else { Flags::NONE };
    let container = if payload.len() > 8 { DataType::MSG } else { DataType::OPAQUE };
    let header = PostHeader {
        flags: flags::post::ACK | complete,
        post_id: Some(id),
        part: Some(number),
        key,
        ..PostHeader::new(Domain::MARKET_PRICE, LOGIN, PostUserInfo::default(), container)
    };
    message(|room| {
        header.encode_with(room, |room| {
            room[..payload.len()].copy_from_slice(payload);
            Ok(payload.len())
        })
    })
}

#[test]
fn a_post_in_parts_is_passed_on_when_it_is_whole() {
    let mut exchange = up(Settings { demand_bytes: 16 * 1_000, ..settings() });
    let mut client = exchange.client(ROOM);
    let key = Some(Key::item(IDN, b"A"));
    let naks = |exchange: &mut Exchange, client: &mut Client| -> Vec<_> {
        exchange.read_all(client);
        let acks = client.on(LOGIN).into_iter().filter(|received| received.class == MessageClass::ACK);
        acks.map(|received| ack_of(&received.bytes).nak_code).collect()
    };
    exchange.say(&client, &part(1, 0, false, key, b"buy"));
    exchange.say(&client, &part(2, 0, true, key, b"one"));
    exchange.say(&client, &part(1, 1, false, None, b"or"));
    let demands = exchange.demands();
    let [Demand::Post { more, .. }] = &demands[..] else { panic!("{demands:?}") };
    assert_eq!(more.len(), 0);
    exchange.say(&client, &part(1, 2, true, None, b"sell"));
    let demands = exchange.demands();
    let [Demand::Post { ticket, item: Some(item), message, more, .. }] = &demands[..] else {
        panic!("{demands:?}")
    };
    let payload = |message: &[u8]| MessageView::parse(message).unwrap().payload().to_vec();
    assert_eq!(
        (payload(message), payload(&more[0]), payload(&more[1])),
        (b"buy".into(), b"or".into(), b"sell".into())
    );
    assert_eq!((ticket.is_some(), &item.name[..], more.len()), (true, "A", 2));
    assert_eq!(naks(&mut exchange, &mut client), []);
    // One that is missing, and more than may be kept.
    exchange.say(&client, &part(3, 0, false, key, b"x"));
    exchange.say(&client, &part(3, 2, true, None, b"x"));
    assert_eq!(naks(&mut exchange, &mut client), [Some(NakCode::INVALID_CONTENT)]);
    (10..26).for_each(|id| exchange.say(&client, &part(id, 0, false, key, b"x")));
    exchange.say(&client, &part(25, 1, true, None, b"x"));
    assert_eq!(naks(&mut exchange, &mut client).last(), Some(&Some(NakCode::INVALID_CONTENT)));
    assert_eq!(exchange.demands(), []);
    // A client that goes takes with it what it has not said to the end.
    exchange.leave(&client);
    let client = exchange.client(ROOM);
    exchange.say(&client, &part(1, 0, false, key, b"x"));
    exchange.say(&client, &part(1, 1, true, None, b"x"));
    assert_eq!(exchange.demands().len(), 1);
}

#[test]
fn who_posts_a_message_is_asked_about_the_item_of_that_message() {
    let rule = |items: &str, post| Rule {
        users: Vec::new(),
        groups: Vec::new(),
        services: Vec::new(),
        items: vec![Pattern::new(items)],
        domains: Vec::new(),
        codes: Vec::new(),
        action: Action::Allow { post },
    };
    let access = Access { rules: vec![rule("MINE*", true), rule("*", false)], ..Access::default() };
    let mut exchange = up(Settings { access: access.into(), ..settings() });
    let mut client = exchange.client(ROOM);
    for (name, may) in [(&b"MINE.L"[..], true), (b"THEIRS.L", false), (b"\xFF", false)] {
        let inner = UpdateHeader {
            key: Some(Key { name: Some(name), ..Key::default() }),
            ..UpdateHeader::new(Domain::MARKET_BY_ORDER, 0, UpdateType::QUOTE, DataType::NO_DATA)
        };
        let inner = message(|room| inner.encode(room));
        let key = Key { service_id: Some(IDN), ..Key::default() };
        exchange.say(&client, &part(1, 0, true, Some(key), &inner));
        exchange.read_all(&mut client);
        let items: Vec<_> = exchange
            .demands()
            .into_iter()
            .map(|demand| match demand {
                Demand::Post { item: Some(item), .. } => (item.name, item.domain),
                _ => panic!("{demand:?}"),
            })
            .collect();
        let expected = may.then(|| ("MINE.L".into(), Domain::MARKET_BY_ORDER));
        assert_eq!(items, Vec::from_iter(expected));
    }
}

#[test]
fn a_post_that_cannot_go_on_is_refused_with_the_reason() {
    let rule = |service: &str, post| Rule {
        users: Vec::new(),
        groups: Vec::new(),
        services: vec![Pattern::new(service)],
        items: Vec::new(),
        domains: Vec::new(),
        codes: Vec::new(),
        action: Action::Allow { post },
    };
    let access = Access { rules: vec![rule("IDN", true), rule("*", false)], ..Access::default() };
    let mut exchange = up(Settings { max_demands: 1, ..settings() });
    let mut client = exchange.client(ROOM);
    let mut nak = |exchange: &mut Exchange, message: Vec<u8>, stream| {
        exchange.read_all(&mut client);
        let before = client.on(stream).len();
        exchange.say(&client, &message);
        exchange.read_all(&mut client);
        let answers = client.on(stream);
        answers.get(before).map(|received| {
            let ack = ack_of(&received.bytes);
            (ack.nak_code.unwrap(), String::from_utf8_lossy(ack.text.unwrap()).into_owned())
        })
    };
    let off = |service| post(LOGIN, 1, Some(Key::item(service, b"A")));
    let refused = nak(&mut exchange, off(REFUSES), LOGIN).unwrap();
    assert_eq!(refused, (NakCode::DENIED_BY_SRC, "Posts are not taken by this service".to_owned()));
    assert_eq!(nak(&mut exchange, off(99), LOGIN).unwrap().0, NakCode::SOURCE_UNKNOWN);
    assert_eq!(nak(&mut exchange, post(LOGIN, 1, None), LOGIN).unwrap().0, NakCode::SOURCE_UNKNOWN);
    assert_eq!(nak(&mut exchange, off(exchange::SERVICE), LOGIN).unwrap().0, NakCode::DENIED_BY_SRC);
    assert_eq!(nak(&mut exchange, post(44, 1, None), 44).unwrap().0, NakCode::NOT_OPEN);
    assert_eq!(nak(&mut exchange, off(IDN), LOGIN), None);
    assert_eq!(nak(&mut exchange, off(IDN), LOGIN).unwrap().0, NakCode::NO_RESOURCES);
    assert_eq!(exchange.demands().len(), 1);
    // And who may not.
    let mut deaf = settings();
    deaf.services[1].posts = Posts::Reflect;
    let mut exchange = up(Settings { access: access.into(), ..deaf });
    let mut client = exchange.client(ROOM);
    exchange.say(&client, &off(REFUSES));
    exchange.say(&client, &off(IDN));
    exchange.read_all(&mut client);
    let bytes = client.on(LOGIN).last().unwrap().bytes.clone();
    assert_eq!(ack_of(&bytes).nak_code, Some(NakCode::ACCESS_DENIED));
    assert_eq!(exchange.demands().len(), 1);
    // Nor where nobody can tell what it is for.
    for key in [Key { service_id: Some(IDN), ..Key::default() }, Key::item(IDN, b"\xFF"), Key::item(IDN, b"")]
    {
        exchange.say(&client, &post(LOGIN, 2, Some(key)));
        exchange.read_all(&mut client);
        let bytes = client.on(LOGIN).last().unwrap().bytes.clone();
        assert_eq!((ack_of(&bytes).ack_id, ack_of(&bytes).nak_code), (2, Some(NakCode::ACCESS_DENIED)));
    }
    assert_eq!(exchange.demands(), []);
    // On a private stream it is for what that was opened for.
    exchange.say(&client, &private(5, "TUNNEL"));
    exchange.say(&client, &post(5, 3, None));
    let told = exchange.demands();
    assert!(matches!(told[..], [Demand::OpenPrivate { .. }, Demand::Private { .. }]), "{told:?}");
}

#[test]
fn generic_messages_go_both_ways() {
    let mut exchange = up(settings());
    exchange.refresh("FEED", &quote(1, 1));
    let (mut first, mut second) = (exchange.client(ROOM), exchange.client(ROOM));
    for client in [&first, &second] {
        exchange.say(client, &item_of(IDN, 5, "VOD.L"));
    }
    exchange.demands();
    exchange.say(&first, &generic(5, b"question"));
    let told = exchange.demands();
    let Demand::Generic { item: of, message } = &told[0] else { panic!("{told:?}") };
    assert_eq!((of, MessageView::parse(message).unwrap().payload()), (&named("VOD.L"), &b"question"[..]));
    exchange.answer(Answer::Generic { item: named("VOD.L"), message: generic(0, b"answer").into() });
    for client in [&mut first, &mut second] {
        exchange.read_all(client);
        let last = client.on(5).last().unwrap().bytes.clone();
        let view = MessageView::parse(&last).unwrap();
        assert_eq!((view.class(), view.payload()), (MessageClass::GENERIC, &b"answer"[..]));
    }
    // The feeds listen to nobody.
    exchange.say(&first, &item(6, "FEED"));
    exchange.say(&first, &generic(6, b"question"));
    exchange.leave(&first);
    let told = exchange.demands();
    assert!(!told.iter().any(|demand| matches!(demand, Demand::Generic { .. })), "{told:?}");
    assert_eq!((exchange.hub.counters().past.generic, exchange.hub.counters().past.declined), (1, 1));
}

#[test]
fn who_refuses_suspect_data_is_told_to_ask_again() {
    let mut exchange = up(settings());
    let mut picky = exchange.connect(Peer::default());
    let mut request = LoginRequest::new(b"user");
    (request.attributes.single_open, request.attributes.allow_suspect_data) = (Some(0), Some(0));
    exchange.say(&picky, &message(|room| request.encode(room)));
    let mut usual = exchange.client(ROOM);
    exchange.refresh("FEED", &quote(1, 1));
    for client in [&picky, &usual] {
        exchange.say(client, &item_of(IDN, 5, "VOD.L"));
        exchange.say(client, &item(6, "FEED"));
    }
    exchange.demands();
    exchange.publish(IDN, "VOD.L", &quote(1, 1));
    let suspect = State { data: DataState::SUSPECT, text: b"line down", ..State::OPEN_OK };
    exchange.say_of(IDN, "VOD.L", suspect);
    let lost = tapeline_plant::tick::Flags::GAP | tapeline_plant::tick::Flags::SUSPECT;
    exchange.status(0, DataState::SUSPECT, lost);
    exchange.say(&picky, &item_of(IDN, 7, "VOD.L"));
    exchange.pass(3000);
    exchange.pass(3000);
    exchange.read_all(&mut picky);
    exchange.read_all(&mut usual);
    for stream in [5, 6, 7] {
        assert_eq!(state_on(&picky, stream).0, StreamState::CLOSED_RECOVER, "stream {stream}");
    }
    assert_eq!(picky.on(5)[0].class, MessageClass::REFRESH);
    assert_eq!((state_on(&usual, 5).0, state_on(&usual, 5).1), (StreamState::OPEN, DataState::SUSPECT));
    let features = MessageView::parse(&usual.on(LOGIN)[0].bytes).unwrap().header().unwrap();
    let Header::Refresh(header) = features else { panic!("no refresh") };
    let answer = tapeline_omm::domain::LoginRefresh::read(&header).unwrap().features;
    assert_eq!((answer.single_open, answer.support_omm_post), (Some(1), Some(1)));
}

#[test]
fn a_paused_client_goes_on_with_images_of_every_service() {
    let mut exchange = up(settings());
    exchange.refresh("FEED", &quote(1, 1));
    let mut client = exchange.client(ROOM);
    exchange.say(&client, &item(5, "FEED"));
    exchange.say(&client, &item_of(IDN, 6, "VOD.L"));
    let prior = RequestHeader {
        flags: flags::request::STREAMING | flags::request::NO_REFRESH,
        priority: Some(Priority { class: 3, count: 2 }),
        ..RequestHeader::new(Domain::MARKET_PRICE, 6, Key::item(IDN, b"VOD.L"))
    };
    exchange.demands();
    exchange.publish(IDN, "VOD.L", &quote(1, 1));
    exchange.say(&client, &message(|room| prior.encode(room)));
    let priority = Priority { class: 3, count: 2 };
    assert_eq!(exchange.demands(), [Demand::Priority { item: named("VOD.L"), priority }]);
    let mut pause = LoginRequest::new(b"user");
    pause.flags = flags::request::STREAMING | flags::request::PAUSE;
    exchange.say(&client, &message(|room| pause.encode(room)));
    exchange.update("FEED", &bid(2));
    exchange.change(IDN, "VOD.L", &bid(3));
    exchange.read_all(&mut client);
    assert_eq!((client.folded(5), client.folded(6)), (Some(quote(1, 1)), Some(quote(1, 1))));
    exchange.say(&client, &message(|room| LoginRequest::new(b"user").encode(room)));
    exchange.read_all(&mut client);
    assert_eq!((client.folded(5), client.folded(6)), (Some(quote(2, 1)), Some(quote(3, 1))));
    // Another view, of a provider's item.
    exchange.say(&client, &exchange::item_view_of(IDN, 6, "VOD.L", &[tapeline_omm::fid::ASK.0]));
    exchange.change(IDN, "VOD.L", &bid(4));
    exchange.read_all(&mut client);
    assert_eq!(
        client.on(6).last().unwrap().values.keys().copied().collect::<Vec<_>>(),
        [tapeline_omm::fid::ASK]
    );
}

#[test]
fn a_round_trip_is_measured_with_who_takes_part() {
    let mut exchange = up(settings());
    let mut client = exchange.connect(Peer::default());
    let mut request = LoginRequest::new(b"user");
    request.attributes.round_trip_latency = Some(login::ROUND_TRIP_WANTED);
    exchange.say(&client, &message(|room| request.encode(room)));
    exchange.pass(20_000);
    exchange.read(&mut client, usize::MAX);
    let sent = client.on(LOGIN).last().unwrap().bytes.clone();
    let round = RoundTrip::read(&MessageView::parse(&sent).unwrap()).unwrap().unwrap();
    assert_eq!(round.ticks, Some(exchange.now.0));
    exchange.now = Nanos(exchange.now.0 + 1_234);
    exchange.say(&client, &sent);
    assert_eq!(exchange.hub.round_trip_ns(client.session), Some(1_234));
    exchange.leave(&client);
    assert_eq!(exchange.hub.counters().past.round_trips, 1);
}

#[test]
fn what_a_source_says_late_is_no_other_clients() {
    let settings = Settings {
        services: vec![Service { late: Late::Suspect, posts: Posts::Forward, ..Service::new("IDN", IDN) }],
        ..Settings::default()
    };
    let mut exchange = up(settings);
    let first = exchange.client(ROOM);
    exchange.say(&first, &post(LOGIN, 1, Some(Key::item(IDN, b"A"))));
    exchange.say(&first, &private(5, "TUNNEL"));
    let tickets: Vec<Ticket> = exchange
        .demands()
        .iter()
        .filter_map(|demand| match demand {
            Demand::Post { ticket, .. } => *ticket,
            Demand::OpenPrivate { ticket, .. } => Some(*ticket),
            _ => None,
        })
        .collect();
    exchange.leave(&first);
    let mut second = exchange.client(ROOM);
    assert_eq!(first.session, second.session);
    exchange.say(&second, &private(5, "TUNNEL"));
    exchange.answer(Answer::Ack { ticket: tickets[0], message: receipt(None) });
    exchange.answer(Answer::Private { ticket: tickets[1], message: status(State::OPEN_OK) });
    exchange.read_all(&mut second);
    assert_eq!(second.on(5).len(), 0);
    assert!(second.on(LOGIN).iter().all(|received| received.class != MessageClass::ACK));
    assert_eq!(exchange.hub.counters().stray_answers, 2);
}
