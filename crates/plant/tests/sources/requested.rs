//! Interactive providers.

use tapeline_omm::State;
use tapeline_omm::rwf::{
    DataState, DataType, Domain, GenericHeader, Key, Priority, RequestHeader, StreamState, flags,
};
use tapeline_plant::Items;
use tapeline_plant::demand::{Demand, Ticket};
use tapeline_plant::sources::{LinkId, Policy, Posts, Settings};

use super::world::{SERVICE, World, bytes, copy, fields, item, open, post, provided, refresh};

const P0: LinkId = LinkId(0);

fn one() -> World {
    World::new(provided(1, Policy::First, Posts::Refuse))
}

#[test]
fn an_item_is_open_as_long_as_somebody_wants_it() {
    let mut world = one();
    world.arrive(0);
    assert_eq!(world.ticks(), ["FEED up"]);
    world.demand(open("IBM"));
    world.demand(open("IBM"));
    assert_eq!(world.heard(P0), ["open IBM"]);
    assert_eq!(world.ticks(), ["IBM REFRESH OPEN OK 1.00"]);
    world.update(P0, "IBM", 101);
    assert_eq!(world.ticks(), ["IBM UPDATE 1.01"]);
    world.demand(Demand::Refresh(item("IBM")));
    assert_eq!(world.heard(P0), ["reissue"]);
    assert_eq!(world.ticks(), ["IBM REFRESH OPEN OK 1.01"]);
    world.demand(Demand::Priority { item: item("IBM"), priority: Priority { class: 3, count: 2 } });
    assert_eq!(world.heard(P0), ["reissue"]);
    world.demand(Demand::Close(item("IBM")));
    world.demand(Demand::Close(item("IBM")));
    assert_eq!((world.heard(P0), world.sources.open_items()), (vec!["close IBM".to_owned()], 0));
    // It keeps its number while nobody else needs the place.
    world.demand(open("IBM"));
    assert_eq!(world.sequencer.items().len(), 1);
    assert_eq!(world.answered(), [""; 0]);
}

/// What the ring has said of an item may still be on its way to who asks for it again: the refusal is to come behind that.
#[test]
fn one_item_too_many_that_was_there_before_is_refused_on_the_ring() {
    let mut world = World::new(Settings { max_items: 1, ..provided(1, Policy::First, Posts::Refuse) });
    world.arrive(0);
    world.demand(open("IBM"));
    world.demand(Demand::Close(item("IBM")));
    world.demand(open("VOD.L"));
    world.ticks();
    world.demand(open("IBM"));
    assert_eq!(world.ticks(), ["IBM STATUS CLOSED SUSPECT \"Too many items are open\" (suspect)"]);
    assert_eq!(world.answered(), [""; 0]);
    world.demand(open("BT.L"));
    assert_eq!(world.answered(), ["BT.L: STATUS CLOSED SUSPECT \"Too many items are open\""]);
    assert_eq!(world.ticks(), [""; 0]);
}

#[test]
fn an_item_is_held_back_where_its_provider_can() {
    let mut world = one();
    world.arrive(0);
    world.demand(open("IBM"));
    world.heard(P0);
    world.ticks();
    let (pause, resume) = (Demand::Pause(item("IBM")), Demand::Resume(item("IBM")));
    world.demand(pause.clone());
    world.demand(pause.clone());
    assert_eq!(world.heard(P0), ["reissue paused"]);
    // What its client will want to know is an image.
    world.demand(resume.clone());
    world.demand(resume.clone());
    assert_eq!(world.heard(P0), ["reissue"]);
    assert_eq!(world.ticks(), ["IBM REFRESH OPEN OK 1.00"]);
    // A connection that breaks ends no pause.
    world.demand(pause.clone());
    world.kill(P0);
    world.arrive(0);
    assert_eq!(world.heard(P0), ["open IBM", "reissue paused"]);
    world.demand(resume.clone());
    assert_eq!(world.heard(P0), ["reissue"]);
    // One that cannot pause is not asked to.
    world.can_pause = false;
    world.kill(P0);
    world.arrive(0);
    assert_eq!(world.heard(P0), ["open IBM"]);
    world.demand(pause);
    world.demand(resume);
    world.demand(Demand::Pause(item("NOSUCH")));
    assert_eq!(world.heard(P0), [""; 0]);
}

#[test]
fn an_item_waits_for_its_provider() {
    let mut world = one();
    world.demand(open("IBM"));
    let answered = world.answered();
    assert!(answered.iter().all(|answer| answer.starts_with("IBM: STATUS OPEN SUSPECT")), "{answered:?}");
    world.arrive(0);
    assert_eq!(world.ticks(), ["FEED up", "IBM REFRESH OPEN OK 1.00"]);
}

#[test]
fn what_nobody_has_is_said() {
    let mut world = one();
    world.arrive(0);
    world.ticks();
    world.demand(open("NONE"));
    assert_eq!(world.answered(), ["NONE: STATUS CLOSED SUSPECT \"no such item\""]);
    assert_eq!((world.ticks().len(), world.sources.open_items()), (0, 0));
    let other = tapeline_plant::demand::ItemName { service: 9, ..item("IBM") };
    world.demand(Demand::Open { item: other, priority: Priority { class: 1, count: 1 } });
    assert_eq!(world.answered(), ["IBM: STATUS CLOSED SUSPECT \"There is no such service\""]);
    // One that was there, and is closed.
    world.demand(open("IBM"));
    let state =
        State { stream: StreamState::CLOSED, data: DataState::SUSPECT, text: b"gone", ..State::OPEN_OK };
    world.status(P0, "IBM", state);
    assert_eq!(world.ticks(), ["IBM REFRESH OPEN OK 1.00", "IBM STATUS CLOSED SUSPECT \"gone\" (suspect)"]);
    assert_eq!(world.sources.open_items(), 0);
}

#[test]
fn a_provider_that_is_silent_is_asked_again() {
    let mut world = one();
    world.arrive(0);
    world.ticks();
    world.demand(open("SLOW"));
    assert_eq!(world.heard(P0), ["open SLOW"]);
    world.pass_time(17);
    assert_eq!(world.answered(), ["SLOW: STATUS OPEN SUSPECT \"The request was not answered.\""]);
    assert!(world.heard(P0).contains(&"open SLOW".to_owned()));
}

#[test]
fn a_provider_that_comes_back_is_asked_again() {
    let mut world = one();
    world.arrive(0);
    world.demand(open("IBM"));
    world.ticks();
    world.kill(P0);
    assert_eq!(world.ticks(), ["IBM STATUS OPEN SUSPECT \"The connection is lost.\" (suspect)", "down"]);
    world.demand(open("AAPL"));
    world.arrive(0);
    assert_eq!(world.heard(P0), ["open IBM", "open AAPL"]);
    assert_eq!(world.ticks(), ["up", "IBM REFRESH OPEN OK 1.00", "AAPL REFRESH OPEN OK 1.00"]);
}

#[test]
fn a_provider_that_refuses_the_plant_is_tried_again() {
    let mut world = one();
    world.is_denying = true;
    world.demand(open("IBM"));
    world.arrive(0);
    assert_eq!(world.ticks(), [""; 0]);
    world.is_denying = false;
    world.pass_time(20);
    assert_eq!(world.ticks(), ["FEED up", "IBM REFRESH OPEN OK 1.00"]);
    assert!(!world.answered().iter().any(|answer| answer.contains("CLOSED")));
}

#[test]
fn a_stream_of_ones_own_is_passed_through() {
    let mut world = one();
    world.arrive(0);
    world.ticks();
    let ticket = Ticket(77);
    let header = RequestHeader {
        flags: flags::request::STREAMING | flags::request::PRIVATE_STREAM,
        ..RequestHeader::new(Domain::MARKET_PRICE, 0, Key::item(SERVICE, b"MINE"))
    };
    let request = bytes(|room| header.encode(room));
    world.demand(Demand::OpenPrivate { ticket, request: request.clone() });
    assert_eq!(world.heard(P0), ["open private MINE"]);
    assert_eq!(world.answered(), ["private 77: REFRESH OPEN OK 1.00"]);
    let header = GenericHeader::new(Domain::MARKET_PRICE, 0, DataType::OPAQUE);
    let message = bytes(|room| header.encode_with(room, |room| copy(b"hello", room)));
    world.demand(Demand::Private { ticket, message: message.clone() });
    assert_eq!(world.heard(P0), ["generic \"hello\""]);
    assert_eq!(world.answered(), ["private 77: GENERIC"]);
    world.kill(P0);
    assert_eq!(world.answered(), ["private 77: STATUS CLOSED_RECOVER SUSPECT \"The connection is lost.\""]);
    world.demand(Demand::OpenPrivate { ticket, request: request.clone() });
    assert_eq!(world.answered(), ["private 77: STATUS CLOSED_RECOVER SUSPECT \"The service is down\""]);
    world.arrive(0);
    world.demand(Demand::OpenPrivate { ticket, request });
    world.demand(Demand::ClosePrivate(ticket));
    assert_eq!(world.heard(P0), ["open private MINE", "close private"]);
    assert_eq!(world.ticks(), ["down", "up"], "nothing of it is on the ring");
    // An item's own generic messages go to all who have it.
    world.demand(open("IBM"));
    world.answered();
    world.demand(Demand::Generic { item: item("IBM"), message });
    assert_eq!(world.answered(), ["IBM: GENERIC"]);
}

#[test]
fn the_end_of_an_item_that_has_a_number_is_on_the_ring() {
    let mut world = World::new(provided(1, Policy::First, Posts::Reflect));
    world.arrive(0);
    world.demand(open("SLOW"));
    let image = bytes(|room| refresh().encode_with(room, |room| copy(&fields(9), room)));
    let message = post(None, &image, DataType::MSG);
    world.demand(Demand::Post {
        ticket: None,
        service: SERVICE,
        item: Some(item("SLOW")),
        message,
        more: Vec::new(),
    });
    assert_eq!(world.ticks(), ["FEED up", "SLOW REFRESH OPEN OK 0.09 by 42"]);
    let state =
        State { stream: StreamState::CLOSED, data: DataState::SUSPECT, text: b"gone", ..State::OPEN_OK };
    world.status(P0, "SLOW", state);
    assert_eq!(world.ticks(), ["SLOW STATUS CLOSED SUSPECT \"gone\" (suspect)"]);
    assert_eq!((world.answered(), world.sources.open_items()), (vec![], 0));
    // And where it is opened again.
    world.demand(open("SLOW"));
    world.status(P0, "SLOW", state);
    assert_eq!(world.ticks(), ["SLOW STATUS CLOSED SUSPECT \"gone\" (suspect)"]);
    assert_eq!(world.answered(), [""; 0]);
}

#[test]
fn items_that_come_and_go_fill_no_plant() {
    let mut world = World::of(provided(1, Policy::First, Posts::Refuse), Items::new(2));
    world.arrive(0);
    world.demand(open("STAYS"));
    world.ticks();
    for round in 0..50 {
        let name = format!("N{round}");
        world.demand(open(&name));
        assert_eq!(world.ticks().last().unwrap(), &format!("{name} REFRESH OPEN OK 1.00"));
        world.demand(Demand::Close(item(&name)));
        assert!(world.ticks().is_empty(), "nobody needs its place yet");
    }
    world.update(P0, "STAYS", 101);
    assert_eq!(world.ticks(), ["STAYS UPDATE 1.01"]);
    // One too many, and both are wanted.
    world.demand(open("N49"));
    world.demand(open("NEXT"));
    world.ticks();
    assert_eq!(world.answered(), ["NEXT: STATUS CLOSED SUSPECT \"The plant has no place for it\""]);
    assert_eq!((world.sources.counters().ended, world.sequencer.items().len()), (49, 2));
}

#[test]
fn what_is_open_for_clients_is_closed_when_nobody_serves_them() {
    let mut world = one();
    world.arrive(0);
    world.demand(open("IBM"));
    let header = RequestHeader {
        flags: flags::request::STREAMING | flags::request::PRIVATE_STREAM,
        ..RequestHeader::new(Domain::MARKET_PRICE, 0, Key::item(SERVICE, b"MINE"))
    };
    world.demand(Demand::OpenPrivate { ticket: Ticket(77), request: bytes(|room| header.encode(room)) });
    world.heard(P0);
    world.sources.nobody_demands(world.now(), world.sequencer.items());
    world.run();
    assert_eq!(world.heard(P0), ["close IBM", "close private"]);
    assert_eq!(world.sources.open_items(), 0);
}
