//! Non-interactive providers.

use tapeline_omm::State;
use tapeline_omm::domain::directory::{Group, ServiceState};
use tapeline_omm::domain::{LoginRequest, OwnedState, ServicePart};
use tapeline_omm::role::ni_provider::Publish as Say;
use tapeline_omm::rwf::{DataState, Domain, Key, StatusHeader, StreamState};
use tapeline_plant::Items;
use tapeline_plant::demand::Demand;
use tapeline_plant::sources::{Posts, Settings, Sharing, SourceNote, Sourcing};

use super::world::{
    NAME, SERVICE, World, bytes, copy, fields, item, open, published, refresh, service, update,
};

#[test]
fn what_a_provider_publishes_becomes_ticks() {
    let mut world = World::new(published(Posts::Refuse));
    let link = world.publisher("alice", &[service(NAME, true)], &[("IBM", 100), ("AAPL", 200)]);
    assert_eq!(world.ticks(), ["FEED up", "IBM REFRESH OPEN OK 1.00", "AAPL REFRESH OPEN OK 2.00"]);
    world.say_of_last(link, &Say::Update(update()), &fields(201));
    let state = State { data: DataState::SUSPECT, text: b"old", ..State::OPEN_OK };
    let status = StatusHeader { state: Some(state), ..StatusHeader::new(Domain::MARKET_PRICE, 0) };
    world.say_of_last(link, &Say::Status(status), &[]);
    world.say_of_last(link, &Say::Update(update()), &fields(202));
    world.say_of_last(link, &Say::Refresh(refresh()), &fields(203));
    assert_eq!(
        world.ticks(),
        [
            "AAPL UPDATE 2.01",
            "AAPL STATUS OPEN SUSPECT \"old\" (suspect)",
            "AAPL UPDATE 2.02 (suspect)",
            "AAPL REFRESH OPEN OK 2.03",
        ]
    );
    // Both the feeds' items and those of services are numbered by the plant.
    assert_eq!(world.sequencer.item("IBM").unwrap().0, 3);
    let counters = *world.sources.counters();
    assert_eq!((counters.refreshes, counters.updates, counters.passed_over), (3, 2, 0));
}

#[test]
fn what_is_published_can_be_asked_for_though_its_provider_takes_no_requests() {
    // As EMA's non-interactive providers say of themselves.
    let mut world = World::new(published(Posts::Refuse));
    let mut service = service(NAME, true);
    let state = ServiceState { accepting_requests: Some(0), ..ServiceState::UP };
    service.parts[1].1 = ServicePart::State(state);
    world.publisher("alice", &[service], &[("IBM", 100)]);
    assert_eq!(world.ticks(), ["FEED up", "IBM REFRESH OPEN OK 1.00"]);
}

#[test]
fn who_never_logs_in_gives_way() {
    let mut world = World::new(Settings { max_strangers: 2, ..published(Posts::Refuse) });
    let now = world.now();
    let strangers = [(); 4].map(|()| world.sources.open(now));
    let alice = world.publisher("alice", &[service(NAME, true)], &[("IBM", 100)]);
    let are_open = |world: &World| strangers.map(|link| world.sources.directory(link).is_some());
    // A second is enough for a login.
    assert_eq!(are_open(&world), [true; 4]);
    world.pass_time(1);
    assert_eq!(are_open(&world), [false, false, true, true]);
    assert!(world.ends.0.contains_key(&alice));
    let gone: Vec<String> =
        std::iter::from_fn(|| world.sources.next_note()).map(|note| note.to_string()).collect();
    assert_eq!(gone.iter().filter(|note| note.contains("without a login")).count(), 2, "{gone:?}");
}

#[test]
fn a_provider_that_goes_leaves_its_items_suspect_and_its_service_down() {
    let mut world = World::new(published(Posts::Refuse));
    let link = world.publisher("alice", &[service(NAME, true)], &[("IBM", 100)]);
    world.ticks();
    world.kill(link);
    assert_eq!(world.ticks(), ["IBM STATUS OPEN SUSPECT \"The source is down\" (suspect)", "down"]);
    world.publisher("alice", &[service(NAME, true)], &[("IBM", 110)]);
    assert_eq!(world.ticks(), ["up", "IBM REFRESH OPEN OK 1.10"]);
}

#[test]
fn a_service_that_goes_down_and_up_takes_its_items_along() {
    let mut world = World::new(published(Posts::Refuse));
    let link = world.publisher("alice", &[service(NAME, true)], &[("IBM", 100)]);
    world.ticks();
    let state =
        |up: u64| ServicePart::State(ServiceState { service_state: Some(up), ..ServiceState::default() });
    world.change_service(link, state(0));
    assert_eq!(world.ticks(), ["IBM STATUS OPEN SUSPECT \"The source is down\" (suspect)", "down"]);
    // What it says meanwhile is kept for the time when it is up again.
    world.say_of_last(link, &Say::Refresh(refresh()), &fields(105));
    world.say_of_last(link, &Say::Update(update()), &fields(106));
    assert_eq!(world.ticks(), [""; 0]);
    world.change_service(link, state(1));
    assert_eq!(world.ticks(), ["up", "IBM REFRESH OPEN OK 1.06"]);
}

#[test]
fn the_second_provider_of_a_service_stands_by() {
    let mut world = World::new(published(Posts::Refuse));
    let first = world.publisher("alice", &[service(NAME, true)], &[("IBM", 100), ("OLD", 7)]);
    let second = world.publisher("bob", &[service(NAME, true)], &[("NEW", 8), ("IBM", 99)]);
    world.ticks();
    world.say_of_last(second, &Say::Update(update()), &fields(98));
    assert_eq!(world.ticks(), [""; 0], "it is not its turn");
    world.kill(first);
    let mut ticks = world.ticks();
    ticks.sort();
    assert_eq!(
        ticks,
        [
            "IBM REFRESH OPEN OK 0.98",
            "IBM STATUS OPEN SUSPECT \"Another source takes over\" (suspect)",
            "NEW REFRESH OPEN OK 0.08",
            "OLD STATUS OPEN SUSPECT \"Another source takes over\" (suspect)",
        ]
    );
    world.say_of_last(second, &Say::Update(update()), &fields(97));
    assert_eq!(world.ticks(), ["IBM UPDATE 0.97"]);
    assert_eq!(world.sources.counters().taken_over, 1);
    // Who comes back stands by in its turn.
    world.publisher("alice", &[service(NAME, true)], &[("IBM", 101), ("OLD", 9)]);
    assert_eq!(world.ticks(), [""; 0]);
    world.kill(second);
    let ticks = world.ticks();
    assert!(ticks.contains(&"OLD REFRESH OPEN OK 0.09".to_owned()), "{ticks:?}");
}

#[test]
fn states_of_all_items_and_of_groups_are_told_of_the_service() {
    let mut world = World::new(published(Posts::Refuse));
    let link = world.publisher("alice", &[service(NAME, true)], &[("IBM", 100)]);
    world.ticks();
    let status = OwnedState::from(State { data: DataState::SUSPECT, text: b"late", ..State::OPEN_OK });
    let group = Group { group: Some([1, 2].into()), status: Some(status.clone()), ..Group::default() };
    world.change_service(link, ServicePart::Group(group));
    let state = ServiceState { status: Some(status), ..ServiceState::default() };
    world.change_service(link, ServicePart::State(state));
    assert_eq!(world.ticks(), ["group [1, 2]", "all OPEN/SUSPECT/NONE \"late\""]);
}

#[test]
fn what_may_not_be_published_is_refused() {
    let users = Some(vec!["alice".to_owned(), "bob".to_owned()]);
    let mut settings = published(Posts::Refuse);
    settings.users = users;
    settings.services[0].sources =
        Sourcing::Publishers { users: Some(vec!["alice".to_owned()]), sharing: Sharing::First };
    let mut world = World::new(settings);
    let notes =
        |world: &mut World| -> Vec<SourceNote> { std::iter::from_fn(|| world.sources.next_note()).collect() };
    world.publisher("eve", &[service(NAME, true)], &[("IBM", 1)]);
    let said = notes(&mut world);
    assert!(matches!(&said[..], [SourceNote::Denied { .. }, ..]), "{said:?}");
    world.publisher("bob", &[service(NAME, true)], &[("IBM", 1)]);
    let said = notes(&mut world);
    assert!(matches!(&said[..], [SourceNote::LoggedIn(_), SourceNote::NotTaken { .. }]), "{said:?}");
    world.publisher("alice", &[service("OTHER", true)], &[("IBM", 1)]);
    let said = notes(&mut world);
    assert!(matches!(&said[..], [SourceNote::LoggedIn(_), SourceNote::NotTaken { .. }]), "{said:?}");
    assert_eq!(world.ticks(), [""; 0]);
    assert_eq!(world.sources.counters().passed_over, 2);
    // A consumer has lost its way.
    let link = world.sources.open(world.now());
    let login = bytes(|room| LoginRequest::new(b"alice").encode(room));
    world.say(link, |out| assert!(out.send(&login).is_queued()));
    let said = notes(&mut world);
    assert!(matches!(&said[..], [SourceNote::Denied { .. }, SourceNote::Gone { .. }]), "{said:?}");
}

#[test]
fn what_does_not_fit_is_said_and_suspect() {
    let mut world = World::new(Settings { ..published(Posts::Refuse) });
    let link = world.publisher("alice", &[service(NAME, true)], &[("IBM", 100)]);
    world.ticks();
    world.say_of_last(link, &Say::Update(update()), &[0; 3_000]);
    world.say_of_last(link, &Say::Update(update()), &fields(101));
    world.say_of_last(link, &Say::Refresh(refresh()), &fields(102));
    assert_eq!(
        world.ticks(),
        [
            "IBM STATUS OPEN SUSPECT \"A message of this item is too long for the plant\" (suspect)",
            "IBM UPDATE 1.01 (suspect)",
            "IBM REFRESH OPEN OK 1.02",
        ]
    );
    assert_eq!(world.sources.counters().too_long, 1);
    // A name that is not text.
    let image = tapeline_omm::rwf::RefreshHeader {
        stream_id: -77,
        key: Some(Key::item(super::world::THEIRS, b"\xFF\xFE")),
        ..refresh()
    };
    let image = bytes(|room| image.encode_with(room, |room| copy(&fields(1), room)));
    world.say(link, |out| assert!(out.send(&image).is_queued()));
    assert_eq!(world.ticks(), [""; 0]);
    assert_eq!(world.sources.counters().no_place, 1);
    let notes: Vec<SourceNote> = std::iter::from_fn(|| world.sources.next_note()).collect();
    assert!(notes.iter().any(|note| matches!(note, SourceNote::TooLong { .. })), "{notes:?}");
    assert!(notes.iter().any(|note| matches!(note, SourceNote::NoPlace { .. })), "{notes:?}");
}

#[test]
fn nobody_can_be_asked_for_what_is_published() {
    let mut world = World::new(published(Posts::Refuse));
    world.demand(open("IBM"));
    assert_eq!(world.answered(), ["IBM: STATUS OPEN SUSPECT \"Nobody has published this item yet\""]);
    let link = world.publisher("alice", &[service(NAME, true)], &[("IBM", 100)]);
    world.ticks();
    // It is on the ring, which says how it is.
    world.demand(open("IBM"));
    assert_eq!(world.answered(), [""; 0]);
    let state =
        State { stream: StreamState::CLOSED, data: DataState::SUSPECT, text: b"gone", ..State::OPEN_OK };
    let status = StatusHeader { state: Some(state), ..StatusHeader::new(Domain::MARKET_PRICE, 0) };
    world.say_of_last(link, &Say::Status(status), &[]);
    assert_eq!(world.ticks(), ["IBM STATUS CLOSED SUSPECT \"gone\" (suspect)"]);
    world.kill(link);
    assert_eq!(world.ticks(), ["down"]);
}

const LAST: &str = "STATUS CLOSED_RECOVER SUSPECT \"Nobody publishes or wants this item, and its place is needed\" \
                    (suspect) (last)";

#[test]
fn an_item_that_nobody_has_makes_place_for_another() {
    let mut world = World::of(published(Posts::Refuse), Items::new(2));
    let alice = world.publisher("alice", &[service(NAME, true)], &[("A", 100), ("B", 200)]);
    let bob = world.publisher("bob", &[service(NAME, true)], &[("C", 300), ("D", 400)]);
    world.demand(open("A"));
    assert_eq!(world.ticks().len(), 3);
    world.kill(alice);
    // A client has A open, and waits for somebody to publish it again.
    let doubt = "STATUS OPEN SUSPECT \"Another source takes over\" (suspect)";
    let told =
        [format!("A {doubt}"), format!("B {doubt}"), format!("B {LAST}"), "C REFRESH OPEN OK 3.00".into()];
    assert_eq!(world.ticks(), told);
    assert!(
        std::iter::from_fn(|| world.sources.next_note())
            .any(|note| matches!(note, SourceNote::NoPlace { .. }))
    );
    // Nobody has it any more: whoever was refused finds the place with its next image, and keeps it.
    world.demand(Demand::Close(item("A")));
    world.say_of_last(bob, &Say::Refresh(refresh()), &fields(401));
    assert_eq!(world.ticks(), [format!("A {LAST}"), "D REFRESH OPEN OK 4.01".into()]);
    world.say_of_last(bob, &Say::Update(update()), &fields(402));
    assert_eq!(world.ticks(), ["D UPDATE 4.02"]);
    assert_eq!((world.sources.counters().ended, world.sequencer.items().len()), (2, 2));
}

#[test]
fn names_that_are_invented_for_ever_fill_no_plant() {
    let mut world = World::of(published(Posts::Refuse), Items::new(3));
    world.demand(open("WANTED"));
    let link = world.publisher("keeper", &[service(NAME, true)], &[("WANTED", 100)]);
    world.kill(link);
    for round in 0..50 {
        world.ticks();
        let name = format!("N{round}");
        let link = world.publisher("inventor", &[service(NAME, true)], &[(&name, 200)]);
        assert_eq!(world.ticks().last().unwrap(), &format!("{name} REFRESH OPEN OK 2.00"));
        world.kill(link);
        assert!(world.sequencer.items().len() <= 3);
    }
    assert_eq!((world.sources.counters().ended, world.sources.counters().no_place), (48, 0));
    assert!(world.sequencer.items().find(SERVICE, "WANTED").is_some());
    // Nobody serves clients any more.
    world.sources.nobody_demands(world.now(), world.sequencer.items());
    for name in ["X", "Y", "Z"] {
        let link = world.publisher("inventor", &[service(NAME, true)], &[(name, 200)]);
        world.kill(link);
    }
    assert!(world.sequencer.items().find(SERVICE, "WANTED").is_none());
}
