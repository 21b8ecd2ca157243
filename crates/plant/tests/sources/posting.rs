//! Posts.

use std::sync::Arc;

use tapeline_omm::role::ni_provider::Publish as Say;
use tapeline_omm::rwf::{
    AckHeader, DataType, Domain, Flags, Header, Key, MessageView, PostHeader, RefreshHeader, RequestHeader,
    StatusHeader, UpdateHeader, flags,
};
use tapeline_omm::{Dictionary, Fid, FieldListEncoder, State};
use tapeline_plant::demand::{Demand, ItemName, Ticket};
use tapeline_plant::sources::{LinkId, Policy, Posts, ServiceSettings, Settings, Sourcing};
use tapeline_plant::tick::{POSTED, Tick};

use super::world::{
    NAME, SERVICE, World, bytes, copy, fields, item, open, post, provided, published, refresh, service,
    update,
};

const P0: LinkId = LinkId(0);

fn posting(name: Option<&str>, message: Box<[u8]>) -> Demand {
    Demand::Post {
        ticket: Some(Ticket(3)),
        service: SERVICE,
        item: name.map(item),
        message,
        more: Vec::new(),
    }
}

/// A post in so many parts.
fn in_parts(parts: Vec<Box<[u8]>>) -> Demand {
    let mut parts = parts.into_iter();
    let message = parts.next().unwrap();
    Demand::Post {
        ticket: Some(Ticket(3)),
        service: SERVICE,
        item: Some(item("IBM")),
        message,
        more: parts.collect(),
    }
}

fn part(number: u16, is_last: bool, payload: &[u8], container: DataType) -> Box<[u8]> {
    let whole = post(None, payload, container);
    let Header::Post(header) = MessageView::parse(&whole).unwrap().header().unwrap() else {
        panic!("no post")
    };
    let complete = if is_last { flags::post::POST_COMPLETE } else { Flags::NONE };
    let header = PostHeader { flags: flags::post::ACK | complete, part: Some(number), ..header };
    bytes(|room| header.encode_with(room, |room| copy(payload, room)))
}

fn price() -> Box<[u8]> {
    post(None, &fields(300), DataType::FIELD_LIST)
}

#[test]
fn a_post_reaches_the_provider_and_its_receipt_the_client() {
    let mut world = World::new(provided(1, Policy::First, Posts::Forward));
    world.demand(posting(Some("IBM"), price()));
    assert_eq!(world.answered(), ["ticket 3: ACK 5 SOURCE_DOWN \"No source of this service is up\""]);
    world.arrive(0);
    world.demand(open("IBM"));
    world.heard(P0);
    world.demand(posting(Some("IBM"), price()));
    assert_eq!(world.heard(P0), ["POST on item by 42"]);
    world.demand(posting(None, price()));
    assert_eq!(world.heard(P0), ["POST on login by 42"]);
    assert_eq!(world.answered(), ["ticket 3: ACK 5", "ticket 3: ACK 5"]);
    world.desk(P0).is_mute = true;
    world.demand(posting(Some("IBM"), price()));
    world.pass_time(16);
    let answered = world.answered();
    assert!(matches!(&answered[..], [nak] if nak.starts_with("ticket 3: ACK 5 NO_RESPONSE")), "{answered:?}");
    world.demand(posting(Some("IBM"), price()));
    world.kill(P0);
    let answered = world.answered();
    assert!(matches!(&answered[..], [nak] if nak.starts_with("ticket 3: ACK 5 NO_RESPONSE")), "{answered:?}");
}

#[test]
fn a_publisher_takes_posts_too() {
    let mut world = World::new(published(Posts::Forward));
    let link = world.publisher("alice", &[service(NAME, true)], &[("IBM", 100)]);
    world.heard(link);
    world.demand(posting(Some("IBM"), price()));
    world.demand(posting(Some("OTHER"), post(Some("OTHER"), &fields(1), DataType::FIELD_LIST)));
    assert_eq!(world.heard(link), ["POST on item", "POST on login"]);
    assert_eq!(world.answered(), ["ticket 3: ACK 5", "ticket 3: ACK 5"]);
    world.desk(link).is_mute = true;
    world.demand(posting(Some("IBM"), price()));
    world.pass_time(16);
    let answered = world.answered();
    assert!(matches!(&answered[..], [nak] if nak.starts_with("ticket 3: ACK 5 NO_RESPONSE")), "{answered:?}");
}

#[test]
fn a_receipt_is_taken_from_whoever_was_sent_the_post() {
    let mut world = World::new(published(Posts::Forward));
    let link = world.publisher("alice", &[service(NAME, true)], &[("IBM", 100)]);
    let other = world.publisher("mallory", &[], &[]);
    world.desk(link).is_mute = true;
    world.demand(posting(Some("IBM"), price()));
    for id in 0..3 {
        let ack = AckHeader::new(Domain::LOGIN, 1, id);
        let ack = bytes(|room| ack.encode(room));
        world.say(other, |out| _ = out.send(&ack));
    }
    assert_eq!(world.answered(), [""; 0]);
    let ack = bytes(|room| AckHeader::new(Domain::LOGIN, 1, 1).encode(room));
    world.say(link, |out| _ = out.send(&ack));
    assert_eq!(world.answered(), ["ticket 3: ACK 5"]);
}

#[test]
fn a_post_on_a_stream_of_ones_own_has_its_receipt_there() {
    let mine = |world: &mut World| {
        let header = RequestHeader {
            flags: flags::request::STREAMING | flags::request::PRIVATE_STREAM,
            ..RequestHeader::new(Domain::MARKET_PRICE, 0, Key::item(SERVICE, b"MINE"))
        };
        let request = bytes(|room| header.encode(room));
        world.demand(Demand::OpenPrivate { ticket: Ticket(77), request });
        world.answered();
    };
    let mut world = World::new(provided(1, Policy::First, Posts::Forward));
    world.arrive(0);
    mine(&mut world);
    // Somebody else's posts, of which the plant calls one as the client calls its own.
    world.desk(P0).is_mute = true;
    (0..6).for_each(|_| world.demand(posting(None, price())));
    world.desk(P0).is_mute = false;
    world.demand(Demand::Private { ticket: Ticket(77), message: price() });
    assert_eq!(world.answered(), ["private 77: ACK 5"]);
    // Where no posts are taken, none are there either.
    let mut world = World::new(provided(1, Policy::First, Posts::Refuse));
    world.arrive(0);
    mine(&mut world);
    world.heard(P0);
    world.demand(Demand::Private { ticket: Ticket(77), message: price() });
    assert_eq!(world.answered(), ["private 77: ACK 5 DENIED_BY_SRC \"This service takes no posts\""]);
    assert_eq!(world.heard(P0), [""; 0]);
}

#[test]
fn a_post_is_for_the_item_that_it_was_let_through_for() {
    let mut world = World::new(provided(1, Policy::First, Posts::Forward));
    world.arrive(0);
    world.demand(open("IBM"));
    for key in [None, Some(""), Some("IBM"), Some("OTHER")] {
        world.demand(posting(Some("IBM"), post(key, &fields(1), DataType::FIELD_LIST)));
        assert_eq!(world.desk(P0).posted.take().as_deref(), Some("IBM"), "{key:?}");
        assert_eq!(world.answered(), ["ticket 3: ACK 5"]);
    }
    let inner = |name: &'static [u8]| {
        let header = UpdateHeader { key: Some(Key::item(SERVICE, name)), ..update() };
        let message = bytes(|room| header.encode_with(room, |room| copy(&fields(1), room)));
        posting(Some("IBM"), post(None, &message, DataType::MSG))
    };
    world.demand(inner(b"IBM"));
    assert_eq!(world.answered(), ["ticket 3: ACK 5"]);
    world.heard(P0);
    world.demand(inner(b"OTHER"));
    let answered = world.answered();
    assert!(answered[0].starts_with("ticket 3: ACK 5 INVALID_CONTENT"), "{answered:?}");
    assert_eq!(world.heard(P0), [""; 0]);
}

#[test]
fn a_message_in_a_post_is_of_the_item_that_the_post_is_for() {
    let message = |domain, service, name: Option<&'static [u8]>| {
        let key = Key { service_id: service, name, ..Key::default() };
        let header = UpdateHeader { key: Some(key), domain, ..update() };
        bytes(|room| header.encode_with(room, |room| copy(&fields(1), room)))
    };
    let request = RequestHeader::new(Domain::MARKET_PRICE, 0, Key::item(SERVICE, b"IBM"));
    let request = bytes(|room| request.encode(room));
    for posts in [Posts::Forward, Posts::Reflect] {
        let mut world = World::new(provided(1, Policy::First, posts));
        world.arrive(0);
        world.demand(open("IBM"));
        world.ticks();
        for (name, inner, says) in [
            (Some("IBM"), message(Domain::MARKET_BY_ORDER, None, None), "of another domain"),
            (
                Some("IBM"),
                message(Domain::MARKET_PRICE, Some(SERVICE + 1), Some(b"IBM")),
                "of another service",
            ),
            (Some("IBM"), message(Domain::MARKET_PRICE, None, Some(b"OTHER")), "of another item"),
            (None, message(Domain::MARKET_PRICE, None, Some(b"IBM")), "of another item"),
            (Some("IBM"), request.clone(), "no refresh, update or status"),
            (Some("IBM"), b"\x00".as_slice().into(), "cannot be read"),
        ] {
            world.demand(posting(name, post(None, &inner, DataType::MSG)));
            let answered = world.answered();
            assert!(
                answered[0].contains("INVALID_CONTENT") && answered[0].contains(says),
                "{answered:?}, not {says}"
            );
            assert_eq!(world.desk(P0).posted, None);
        }
        world.demand(posting(
            Some("IBM"),
            post(None, &message(Domain::MARKET_PRICE, Some(SERVICE), Some(b"IBM")), DataType::MSG),
        ));
        assert_eq!(world.answered(), ["ticket 3: ACK 5"]);
        assert_eq!(world.sources.counters().posts, 1);
    }
}

#[test]
fn a_post_in_parts_goes_on_whole_and_has_one_receipt() {
    let mut world = World::new(provided(1, Policy::First, Posts::Forward));
    world.arrive(0);
    world.demand(open("IBM"));
    world.heard(P0);
    let plain = |number, is_last| part(number, is_last, &fields(1), DataType::FIELD_LIST);
    world.demand(in_parts(vec![plain(0, false), plain(1, false), plain(2, true)]));
    assert_eq!(
        world.heard(P0),
        [
            "POST on item by 42 part 0 of 1",
            "POST on item by 42 part 1 of 1",
            "POST on item by 42 part 2 of 1"
        ]
    );
    assert_eq!(world.answered(), ["ticket 3: ACK 5"]);
    for parts in [vec![plain(0, false), plain(1, false)], vec![plain(0, true), plain(1, true)]] {
        world.demand(in_parts(parts));
        let answered = world.answered();
        assert!(answered[0].contains("Parts of the post are missing"), "{answered:?}");
    }
    assert_eq!(world.heard(P0), [""; 0]);
    // An image in parts is one, and one part that cannot be taken keeps the others back.
    let mut world = World::new(published(Posts::Reflect));
    world.publisher("alice", &[service(NAME, true)], &[("IBM", 100)]);
    world.ticks();
    let inner = bytes(|room| update().encode_with(room, |room| copy(&fields(301), room)));
    let inner = |number, is_last| part(number, is_last, &inner, DataType::MSG);
    world.demand(in_parts(vec![inner(0, false), plain(1, true)]));
    assert_eq!(world.ticks(), ["IBM UPDATE 3.01 by 42", "IBM UPDATE 0.01 by 42"]);
    assert_eq!(world.answered(), ["ticket 3: ACK 5"]);
    world.demand(in_parts(vec![inner(0, false), part(1, true, b"\x00", DataType::MSG)]));
    assert_eq!(world.ticks(), [""; 0]);
    assert!(world.answered()[0].contains("INVALID_CONTENT"));
}

/// A plant that takes posts to its feeds' items.
fn with_feeds(dictionary: Dictionary) -> World {
    World::new(Settings {
        dictionary: Arc::new(dictionary),
        services: vec![ServiceSettings {
            id: 1,
            name: "FEEDS".into(),
            channel: POSTED,
            sources: Sourcing::Feeds,
            posts: Posts::Reflect,
        }],
        ..published(Posts::Refuse)
    })
}

fn to_feeds(name: &str, message: Box<[u8]>) -> Demand {
    let item = ItemName { service: 1, ..item(name) };
    Demand::Post { ticket: Some(Ticket(3)), service: 1, item: Some(item), message, more: Vec::new() }
}

#[test]
fn an_items_permission_data_is_its_sources_whatever_is_posted() {
    let codes = Some(&b"\x03\x01\x2c"[..]);
    let inner = |header: Header<'_>| {
        let data = fields(9);
        posting(
            Some("IBM"),
            post(None, &bytes(|room| header.encode_with(room, |room| copy(&data, room))), DataType::MSG),
        )
    };
    let mut world = World::new(published(Posts::Reflect));
    let link = world.publisher("alice", &[service(NAME, true)], &[("IBM", 100)]);
    world.ticks();
    let status = StatusHeader { state: Some(State::OPEN_OK), ..StatusHeader::new(Domain::MARKET_PRICE, 0) };
    for header in [
        RefreshHeader { permission_data: codes, ..refresh() }.into(),
        UpdateHeader { permission_data: codes, ..update() }.into(),
        Header::from(StatusHeader { permission_data: codes, ..status }),
        // That there are none would let in who lacks one.
        UpdateHeader { permission_data: Some(b""), ..update() }.into(),
        StatusHeader { permission_data: Some(b""), ..status }.into(),
    ] {
        world.demand(inner(header));
        let answered = world.answered();
        assert!(
            answered[0].contains("DENIED_BY_SRC") && answered[0].contains("permission data"),
            "{answered:?}"
        );
    }
    assert_eq!(world.ticks(), [""; 0]);
    // An image without would take away what its source gave it, and may be posted where that gave none.
    world.demand(inner(refresh().into()));
    assert_eq!((world.answered(), world.ticks().len()), (vec!["ticket 3: ACK 5".to_owned()], 1));
    world.say_of_last(
        link,
        &Say::Refresh(RefreshHeader { permission_data: codes, ..refresh() }),
        &fields(101),
    );
    world.ticks();
    world.demand(inner(refresh().into()));
    let answered = world.answered();
    assert!(answered[0].contains("DENIED_BY_SRC") && answered[0].contains("permission data"), "{answered:?}");
    world.demand(inner(update().into()));
    assert_eq!((world.answered(), world.ticks().len()), (vec!["ticket 3: ACK 5".to_owned()], 1));
    // Once it has had some, also of another domain or in a part before, that stays so.
    world.say_of_last(link, &Say::Refresh(refresh()), &fields(101));
    world.demand(inner(refresh().into()));
    assert!(world.answered()[0].contains("DENIED_BY_SRC"));
}

#[test]
fn posts_make_no_image_of_a_feed_longer_than_it_can_be() {
    let line = |fid: i16| format!("F{fid} \"F {fid}\" {fid} NULL ALPHANUMERIC 20 RMTES_STRING 20\n");
    let dictionary = Dictionary::parse(&(1..=70).map(line).collect::<String>()).unwrap();
    let known: Vec<Fid> = (1..=70).map(Fid).collect();
    let list = |fids: &[Fid], value: &[u8]| {
        let mut room = vec![0; 60_000];
        let mut list = FieldListEncoder::new(&mut room).unwrap();
        fids.iter().for_each(|fid| list.buffer(*fid, value).unwrap());
        let len = list.finish();
        to_feeds("AAPL", post(None, &room[..len], DataType::FIELD_LIST))
    };
    let mut world = with_feeds(dictionary);
    world.sequencer.item("AAPL").unwrap();
    let most = 64;
    for (demand, says) in [
        (list(&[known[0], Fid(71)], b"a"), "INVALID_CONTENT \"The dictionary"),
        (list(&known[..1], &[b'a'; 256]), "INVALID_CONTENT \"A field of the post is longer than 255"),
        (list(&known[..most], b"a"), "ACK 5"),
        (list(&known[..most], &[b'a'; 20]), "ACK 5"),
        (list(&known[most..=most], b"a"), "NO_RESOURCES \"This item takes 64"),
        (list(&known[most - 1..=most], b"a"), "NO_RESOURCES"),
        (list(&known[..1], b"a"), "ACK 5"),
    ] {
        world.demand(demand);
        let answered = world.answered();
        assert!(answered[0].contains(says), "{answered:?}, not {says}");
    }
    assert_eq!(world.sources.counters().posts, 3);
}

#[test]
fn updates_of_the_feeds_items_are_reflected_and_nothing_else() {
    let mut world = with_feeds(Dictionary::builtin().clone());
    let number = world.sequencer.item("AAPL").unwrap();
    world.demand(to_feeds("AAPL", price()));
    assert_eq!(world.answered(), ["ticket 3: ACK 5"]);
    let frames = &world.sequencer.publisher().frames;
    let tick = Tick::parse(frames.last().unwrap()).unwrap();
    assert_eq!((tick.header.service, tick.header.channel, tick.header.item), (1, POSTED, number));
    assert_eq!(tick.name, "AAPL");
    let before = frames.len();
    world.demand(to_feeds("MSFT", price()));
    assert!(world.answered()[0].contains("SYMBOL_UNKNOWN"));
    let image = bytes(|room| refresh().encode_with(room, |room| copy(&fields(9), room)));
    world.demand(to_feeds("AAPL", post(None, &image, DataType::MSG)));
    assert!(world.answered()[0].contains("DENIED_BY_SRC"));
    // What would break the image, or make one of a domain that the feed does not have.
    let [cut, other_data] = [&fields(300)[..3], b"anything"];
    for (payload, container) in [(cut, DataType::FIELD_LIST), (other_data, DataType::OPAQUE)] {
        world.demand(to_feeds("AAPL", post(None, payload, container)));
        let answered = world.answered();
        assert!(answered[0].contains("INVALID_CONTENT"), "{answered:?}");
    }
    let orders = ItemName { service: 1, domain: Domain::MARKET_BY_ORDER, ..item("AAPL") };
    let message = price();
    let ticket = Some(Ticket(3));
    world.demand(Demand::Post { ticket, service: 1, item: Some(orders), message, more: Vec::new() });
    assert!(world.answered()[0].contains("DENIED_BY_SRC"));
    assert_eq!(world.sequencer.publisher().frames.len(), before);
    assert_eq!(world.sources.services().count(), 0);
}

#[test]
fn a_post_is_reflected_to_all() {
    let mut world = World::new(published(Posts::Reflect));
    let link = world.publisher("alice", &[service(NAME, true)], &[("IBM", 100)]);
    world.ticks();
    world.demand(posting(Some("IBM"), price()));
    let inner = bytes(|room| update().encode_with(room, |room| copy(&fields(301), room)));
    world.demand(posting(Some("IBM"), post(None, &inner, DataType::MSG)));
    assert_eq!(world.ticks(), ["IBM UPDATE 3.00 by 42", "IBM UPDATE 3.01 by 42"]);
    assert_eq!(world.answered(), ["ticket 3: ACK 5", "ticket 3: ACK 5"]);
    // A new item begins with its image.
    world.demand(posting(Some("NEW"), price()));
    let answered = world.answered();
    assert!(answered[0].starts_with("ticket 3: ACK 5 SYMBOL_UNKNOWN"), "{answered:?}");
    let inner = bytes(|room| refresh().encode_with(room, |room| copy(&fields(9), room)));
    world.demand(posting(Some("NEW"), post(None, &inner, DataType::MSG)));
    assert_eq!(world.ticks(), ["NEW REFRESH OPEN OK 0.09 by 42"]);
    assert_eq!(world.answered(), ["ticket 3: ACK 5"]);
    assert_eq!(world.heard(link), ["login OPEN"]);
    world.say_of_last(link, &Say::Update(update()), &fields(101));
    assert_eq!(world.ticks(), ["IBM UPDATE 1.01"]);
}

#[test]
fn what_cannot_be_taken_is_refused_with_a_reason() {
    let mut world = World::new(published(Posts::Refuse));
    world.publisher("alice", &[service(NAME, true)], &[("IBM", 100)]);
    world.demand(posting(Some("IBM"), price()));
    assert_eq!(world.answered(), ["ticket 3: ACK 5 DENIED_BY_SRC \"This service takes no posts\""]);
    let mut world = World::new(published(Posts::Reflect));
    world.publisher("alice", &[service(NAME, true)], &[("IBM", 100)]);
    for (name, message, says) in [
        (None, price(), "SYMBOL_UNKNOWN"),
        (Some("IBM"), post(None, b"\x00", DataType::MSG), "INVALID_CONTENT"),
        (Some("IBM"), post(None, &price(), DataType::MSG), "INVALID_CONTENT"),
        (Some("IBM"), post(None, b"", DataType::NO_DATA), "INVALID_CONTENT"),
        (Some("IBM"), post(None, &[0; 2_500], DataType::OPAQUE), "NO_RESOURCES"),
    ] {
        world.demand(posting(name, message));
        let answered = world.answered();
        assert!(answered[0].contains(says), "{answered:?}, not {says}");
    }
    assert_eq!(world.sources.counters().posts, 0);
    let other =
        Demand::Post { ticket: Some(Ticket(1)), service: 9, item: None, message: price(), more: Vec::new() };
    world.demand(other);
    assert!(world.answered()[0].contains("SOURCE_UNKNOWN"));
    assert_eq!(Domain::MARKET_PRICE, item("IBM").domain);
}
