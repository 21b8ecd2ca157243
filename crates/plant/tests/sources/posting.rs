//! Posts.

use tapeline_omm::role::ni_provider::Publish as Say;
use tapeline_omm::rwf::{AckHeader, DataType, Domain, Key, RequestHeader, UpdateHeader, flags};
use tapeline_plant::demand::{Demand, Ticket};
use tapeline_plant::sources::{LinkId, Policy, Posts};

use super::world::{
    NAME, SERVICE, World, bytes, copy, fields, item, open, post, provided, published, refresh, service,
    update,
};

const P0: LinkId = LinkId(0);

fn posting(name: Option<&str>, message: Box<[u8]>) -> Demand {
    Demand::Post { ticket: Some(Ticket(3)), service: SERVICE, item: name.map(item), message }
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
    let other = Demand::Post { ticket: Some(Ticket(1)), service: 9, item: None, message: price() };
    world.demand(other);
    assert!(world.answered()[0].contains("SOURCE_UNKNOWN"));
    assert_eq!(Domain::MARKET_PRICE, item("IBM").domain);
}
