//! Several non-interactive providers whose items are merged.

use tapeline_omm::State;
use tapeline_omm::domain::directory::{Group, ServiceState};
use tapeline_omm::domain::{OwnedState, ServicePart};
use tapeline_omm::role::ni_provider::Publish as Say;
use tapeline_omm::rwf::{
    DataState, DataType, Domain, Key, MessageView, RefreshHeader, StatusHeader, StreamState,
};
use tapeline_plant::Items;
use tapeline_plant::demand::{Demand, Ticket};
use tapeline_plant::sources::{LinkId, Posts, SourceRole};
use tapeline_plant::tick::Tick;

use super::world::{
    NAME, SERVICE, THEIRS, World, bytes, copy, fields, item, merged, open, post, refresh, service, update,
};

/// The figures of each publisher that is there: what it is to the service, how many items it serves and stands by for.
fn figures(world: &World) -> Vec<(SourceRole, usize, usize)> {
    let of = |seen: tapeline_plant::sources::SeenSource<'_>| {
        let (_, part) = seen.services().next().unwrap();
        (part, seen.serves(), seen.stands_by())
    };
    world.sources.seen().map(of).collect()
}

/// Items of the service that nobody serves any more.
fn unserved(world: &World) -> usize {
    world.sources.unserved().map(|(_, items)| items).sum()
}

fn closed(text: &[u8]) -> StatusHeader<'_> {
    let state = State { stream: StreamState::CLOSED, data: DataState::SUSPECT, text, ..State::OPEN_OK };
    StatusHeader { state: Some(state), ..StatusHeader::new(Domain::MARKET_PRICE, 0) }
}

#[test]
fn a_service_has_the_items_of_all_its_publishers() {
    let mut world = World::new(merged(Posts::Refuse));
    let first = world.publisher("alice", &[service(NAME, true)], &[("A", 100)]);
    let second = world.publisher("bob", &[service(NAME, true)], &[("B", 200)]);
    assert_eq!(world.ticks(), ["FEED up", "A REFRESH OPEN OK 1.00", "B REFRESH OPEN OK 2.00"]);
    world.say_of_last(second, &Say::Update(update()), &fields(201));
    world.say_of_last(first, &Say::Update(update()), &fields(101));
    assert_eq!(world.ticks(), ["B UPDATE 2.01", "A UPDATE 1.01"]);
    assert_eq!(figures(&world), [(SourceRole::Serves, 1, 0), (SourceRole::Serves, 1, 0)]);
    let notes: Vec<String> =
        std::iter::from_fn(|| world.sources.next_note()).map(|n| n.to_string()).collect();
    let serves = |name: &str| format!("service FEED is served by publisher {name}");
    assert!(notes.contains(&serves("alice")) && notes.contains(&serves("bob")), "{notes:?}");
    // Whose items are gone is said item by item; the service is up as long as somebody has it.
    world.kill(first);
    assert_eq!(world.ticks(), ["A STATUS OPEN SUSPECT \"The source is down\" (suspect)"]);
    assert_eq!((unserved(&world), figures(&world)), (1, vec![(SourceRole::Serves, 1, 0)]));
    world.say_of_last(second, &Say::Update(update()), &fields(202));
    assert_eq!(world.ticks(), ["B UPDATE 2.02"]);
    world.publisher("alice", &[service(NAME, true)], &[("A", 105)]);
    assert_eq!((world.ticks(), unserved(&world)), (vec!["A REFRESH OPEN OK 1.05".to_owned()], 0));
    world.kill(second);
    assert_eq!(world.ticks(), ["B STATUS OPEN SUSPECT \"The source is down\" (suspect)"]);
}

#[test]
fn who_has_published_an_item_too_takes_it_over_with_its_image() {
    let mut world = World::new(merged(Posts::Refuse));
    let first = world.publisher("alice", &[service(NAME, true)], &[("ALONE", 7), ("BOTH", 100)]);
    let second = world.publisher("bob", &[service(NAME, true)], &[("OWN", 8), ("BOTH", 99)]);
    let third = world.publisher("carol", &[service(NAME, true)], &[("BOTH", 50)]);
    assert_eq!(world.ticks().len(), 4, "up, and three items: BOTH is alice's");
    world.say_of_last(second, &Say::Update(update()), &fields(98));
    world.say_of_last(third, &Say::Update(update()), &fields(49));
    assert_eq!(world.ticks(), [""; 0], "it is not their turn");
    assert_eq!(
        figures(&world),
        [(SourceRole::Serves, 2, 0), (SourceRole::Serves, 1, 1), (SourceRole::StandsBy, 0, 1)]
    );
    world.say_of_last(first, &Say::Update(update()), &fields(101));
    assert_eq!(world.ticks(), ["BOTH UPDATE 1.01"]);
    world.kill(first);
    let mut ticks = world.ticks();
    ticks.sort();
    assert_eq!(
        ticks,
        ["ALONE STATUS OPEN SUSPECT \"The source is down\" (suspect)", "BOTH REFRESH OPEN OK 0.98"]
    );
    assert_eq!((world.sources.counters().taken_over, unserved(&world)), (1, 1));
    let left = "of the items of service FEED that publisher alice served, others serve 1 now, and nobody 1, such as ALONE";
    assert!(std::iter::from_fn(|| world.sources.next_note()).any(|note| note.to_string() == left));
    world.say_of_last(second, &Say::Update(update()), &fields(97));
    world.say_of_last(third, &Say::Update(update()), &fields(48));
    assert_eq!(world.ticks(), ["BOTH UPDATE 0.97"]);
    assert_eq!(figures(&world), [(SourceRole::Serves, 2, 0), (SourceRole::StandsBy, 0, 1)]);
    // Who comes back stands by behind those that are there, and serves what is nobody's.
    let first = world.publisher("alice", &[service(NAME, true)], &[("ALONE", 9), ("BOTH", 110)]);
    assert_eq!(world.ticks(), ["ALONE REFRESH OPEN OK 0.09"]);
    world.kill(second);
    world.ticks();
    assert_eq!(figures(&world), [(SourceRole::Serves, 1, 0), (SourceRole::Serves, 1, 1)]);
    world.say_of_last(third, &Say::Update(update()), &fields(47));
    world.say_of_last(first, &Say::Update(update()), &fields(111));
    assert_eq!(world.ticks(), ["BOTH UPDATE 0.47"]);
}

#[test]
fn an_item_that_its_publisher_ends_goes_on_where_another_has_it() {
    let mut world = World::new(merged(Posts::Refuse));
    let first = world.publisher("alice", &[service(NAME, true)], &[("BOTH", 100)]);
    let second = world.publisher("bob", &[service(NAME, true)], &[("BOTH", 200)]);
    world.ticks();
    world.say_of_last(first, &Say::Status(closed(b"no more of mine")), &[]);
    assert_eq!(world.ticks(), ["BOTH REFRESH OPEN OK 2.00"]);
    // The last one's word is the item's.
    world.say_of_last(second, &Say::Status(closed(b"nor of mine")), &[]);
    assert_eq!(world.ticks(), ["BOTH STATUS CLOSED SUSPECT \"nor of mine\" (suspect)"]);
    assert_eq!(
        (unserved(&world), figures(&world)),
        (0, vec![(SourceRole::Serves, 0, 0), (SourceRole::Serves, 0, 0)])
    );
    // One that stood by and ended it takes nothing over.
    let first = world.publisher("carol", &[service(NAME, true)], &[("OTHER", 100)]);
    let second = world.publisher("dave", &[service(NAME, true)], &[("OTHER", 200)]);
    world.say_of_last(second, &Say::Status(closed(b"not mine")), &[]);
    assert_eq!(world.ticks(), ["OTHER REFRESH OPEN OK 1.00"]);
    world.kill(first);
    assert_eq!(world.ticks(), ["OTHER STATUS OPEN SUSPECT \"The source is down\" (suspect)"]);
}

/// A message of a publisher's own making.
fn say_refresh(
    world: &mut World,
    link: LinkId,
    stream_id: i32,
    name: &[u8],
    header: RefreshHeader<'_>,
    payload: &[u8],
) {
    let header = RefreshHeader { stream_id, key: Some(Key::item(THEIRS, name)), ..header };
    let image = bytes(|room| header.encode_with(room, |room| copy(payload, room)));
    world.say(link, |out| assert!(out.send(&image).is_queued()));
}

#[test]
fn a_stream_that_is_used_for_another_item_hands_the_first_one_over() {
    let mut world = World::new(merged(Posts::Refuse));
    let first = world.publisher("alice", &[service(NAME, true)], &[]);
    world.publisher("bob", &[service(NAME, true)], &[("BOTH", 200)]);
    let carol = world.publisher("carol", &[service(NAME, true)], &[]);
    world.ticks();
    say_refresh(&mut world, carol, -9, b"BOTH", refresh(), &fields(300));
    say_refresh(&mut world, first, -9, b"MINE", refresh(), &fields(100));
    say_refresh(&mut world, first, -9, b"NEXT", refresh(), &fields(101));
    assert_eq!(
        world.ticks(),
        [
            "MINE REFRESH OPEN OK 1.00",
            "MINE STATUS CLOSED SUSPECT \"The item is no longer published\" (suspect)",
            "NEXT REFRESH OPEN OK 1.01",
        ]
    );
    // On two streams of one publisher an item is one: it is over with the one that came last.
    say_refresh(&mut world, first, -10, b"BOTH", refresh(), &fields(102));
    say_refresh(&mut world, first, -11, b"BOTH", refresh(), &fields(103));
    assert_eq!(world.ticks(), [""; 0]);
    say_refresh(&mut world, carol, -9, b"OTHER", refresh(), &fields(301));
    assert_eq!(world.ticks(), ["OTHER REFRESH OPEN OK 3.01"]);
    world.kill(LinkId(1));
    assert_eq!(world.ticks(), ["BOTH REFRESH OPEN OK 1.03"]);
}

#[test]
fn a_publisher_without_an_image_takes_over_and_is_suspect_until_it_sends_one() {
    // Its images are longer than what is kept.
    let settings = tapeline_plant::sources::Settings { standby_bytes: 300, ..merged(Posts::Refuse) };
    let mut world = World::new(settings);
    let first = world.publisher("alice", &[service(NAME, true)], &[("BOTH", 100)]);
    let second = world.publisher("bob", &[service(NAME, true)], &[]);
    let long = RefreshHeader { container: DataType::OPAQUE, ..refresh() };
    say_refresh(&mut world, second, -1, b"BOTH", long, &[1; 1_000]);
    world.ticks();
    world.kill(first);
    assert_eq!(world.ticks(), ["BOTH STATUS OPEN SUSPECT \"Another source takes over\" (suspect)"]);
    let header = tapeline_omm::rwf::UpdateHeader { stream_id: -1, ..update() };
    let change = bytes(|room| header.encode_with(room, |room| copy(&fields(98), room)));
    world.say(second, |out| assert!(out.send(&change).is_queued()));
    say_refresh(&mut world, second, -1, b"BOTH", refresh(), &fields(99));
    assert_eq!(world.ticks(), ["BOTH UPDATE 0.98 (suspect)", "BOTH REFRESH OPEN OK 0.99"]);
}

#[test]
fn a_publisher_whose_service_is_down_serves_nothing_until_it_is_up() {
    let mut world = World::new(merged(Posts::Refuse));
    let first = world.publisher("alice", &[service(NAME, true)], &[("ALONE", 7), ("BOTH", 100)]);
    let second = world.publisher("bob", &[service(NAME, true)], &[("BOTH", 200)]);
    world.ticks();
    let state =
        |up: u64| ServicePart::State(ServiceState { service_state: Some(up), ..ServiceState::default() });
    world.change_service(first, state(0));
    let mut ticks = world.ticks();
    ticks.sort();
    assert_eq!(
        ticks,
        ["ALONE STATUS OPEN SUSPECT \"The source is down\" (suspect)", "BOTH REFRESH OPEN OK 2.00"]
    );
    assert_eq!(figures(&world), [(SourceRole::Down, 0, 0), (SourceRole::Serves, 1, 0)]);
    world.say_of_last(first, &Say::Refresh(refresh()), &fields(105));
    world.change_service(first, state(1));
    assert_eq!(world.ticks(), [""; 0], "it stands by for BOTH, and has no new image of ALONE");
    world.kill(second);
    assert_eq!(world.ticks(), ["BOTH REFRESH OPEN OK 1.05"]);
    assert_eq!(figures(&world), [(SourceRole::Serves, 2, 0)]);
    world.change_service(first, state(0));
    assert_eq!(
        world.ticks(),
        ["BOTH STATUS OPEN SUSPECT \"The source is down\" (suspect)", "down"],
        "ALONE is suspect already"
    );
    assert_eq!(unserved(&world), 2);
}

#[test]
fn what_a_publisher_says_of_all_its_items_is_of_its_own() {
    let mut world = World::new(merged(Posts::Refuse));
    let alice = world.publisher("alice", &[service(NAME, true)], &[]);
    let bob = world.publisher("bob", &[service(NAME, true)], &[]);
    let image = |group_id| RefreshHeader { group_id, ..refresh() };
    say_refresh(&mut world, alice, -1, b"A", image(&[0, 1]), &fields(100));
    say_refresh(&mut world, alice, -2, b"B", image(&[]), &fields(100));
    say_refresh(&mut world, bob, -1, b"C", image(&[0, 1]), &fields(100));
    let groups: Vec<Vec<u8>> = (world.sequencer.publisher().frames.iter())
        .map(|frame| Tick::parse(frame).unwrap())
        .filter(|tick| tick.header.item.0 != 0)
        .map(|tick| MessageView::parse(tick.body).unwrap().header().unwrap().group_id().unwrap().to_vec())
        .collect();
    assert_eq!(groups, [[0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 1]]);
    world.ticks();
    let status = OwnedState::from(State { data: DataState::SUSPECT, text: b"late", ..State::OPEN_OK });
    let group = Group {
        group: Some([0, 1].into()),
        merged_to_group: Some([0, 2].into()),
        status: Some(status.clone()),
    };
    world.change_service(bob, ServicePart::Group(group));
    let state = ServiceState { status: Some(status), ..ServiceState::default() };
    world.change_service(alice, ServicePart::State(state));
    assert_eq!(
        world.ticks(),
        ["group [0, 0, 0, 1, 0, 1]", "group [0, 0, 0, 0, 0, 1] group [0, 0, 0, 0, 0, 0]"]
    );
}

#[test]
fn a_post_goes_to_the_publisher_that_serves_its_item() {
    let mut world = World::new(merged(Posts::Forward));
    let first = world.publisher("alice", &[service(NAME, true)], &[("A", 100)]);
    let second = world.publisher("bob", &[service(NAME, true)], &[("A", 99), ("B", 200)]);
    let post = |world: &mut World, name: &str| {
        let message = post(Some(name), &fields(7), DataType::FIELD_LIST);
        let (ticket, item) = (Some(Ticket(1)), Some(item(name)));
        world.demand(Demand::Post { ticket, service: SERVICE, item, message, more: Vec::new() });
    };
    world.heard(first);
    world.heard(second);
    post(&mut world, "B");
    assert_eq!((world.heard(first).len(), world.heard(second)), (0, vec!["POST on item".to_owned()]));
    post(&mut world, "A");
    assert_eq!((world.heard(first).len(), world.heard(second).len()), (1, 0));
    world.kill(first);
    post(&mut world, "A");
    assert_eq!(world.heard(second), ["POST on item"]);
}

#[test]
fn items_of_all_publishers_together_have_their_places() {
    let mut world = World::of(merged(Posts::Refuse), Items::new(2));
    let alice = world.publisher("alice", &[service(NAME, true)], &[("A", 100), ("B", 200)]);
    let bob = world.publisher("bob", &[service(NAME, true)], &[("B", 201), ("C", 300)]);
    assert_eq!(world.ticks().len(), 3, "there is no place for C");
    assert_eq!(figures(&world), [(SourceRole::Serves, 2, 0), (SourceRole::StandsBy, 0, 1)]);
    world.kill(alice);
    world.ticks();
    world.say_of_last(bob, &Say::Refresh(refresh()), &fields(301));
    let ticks = world.ticks();
    assert!(ticks[0].starts_with("A STATUS CLOSED_RECOVER") && ticks[0].ends_with("(last)"), "{ticks:?}");
    assert_eq!(ticks[1..], ["C REFRESH OPEN OK 3.01"]);
    // What was ended is no longer missing.
    assert_eq!((unserved(&world), figures(&world)), (0, vec![(SourceRole::Serves, 2, 0)]));
    world.demand(open("A"));
    assert_eq!(world.answered(), ["A: STATUS OPEN SUSPECT \"Nobody has published this item yet\""]);
}
