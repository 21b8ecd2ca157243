//! Any messages from sources, any demands: limits hold, and nothing panics.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use tapeline_omm::State;
use tapeline_omm::rwf::{DataState, DataType, Priority, StreamState};
use tapeline_plant::demand::{Answer, Demand, Ticket};
use tapeline_plant::sources::{LinkId, Policy, Posts, Settings};
use tapeline_plant::tick::{Flags, Tick};
use tapeline_plant::{ItemId, Items};

use super::world::{
    NAME, SERVICE, World, bytes, copy, fields, item, merged, open, post, provided, published, refresh,
    service,
};

/// A message that a publisher may send, with some of its bytes changed.
fn messages() -> Vec<Vec<u8>> {
    let image = |stream_id, name: &[u8]| {
        let key = Some(tapeline_omm::rwf::Key::item(super::world::THEIRS, name));
        let header = tapeline_omm::rwf::RefreshHeader { stream_id, key, ..refresh() };
        bytes(|room| header.encode_with(room, |room| copy(&fields(1), room))).into_vec()
    };
    let update = |stream_id| {
        let header = tapeline_omm::rwf::UpdateHeader { stream_id, ..super::world::update() };
        bytes(|room| header.encode_with(room, |room| copy(&fields(2), room))).into_vec()
    };
    let directory = |services: &[tapeline_omm::domain::ServiceEntry]| {
        use tapeline_omm::domain::directory::{SOLICITED, encode_refresh, filter};
        bytes(|room| encode_refresh(0, SOLICITED, filter::ALL, services, room)).into_vec()
    };
    vec![
        directory(&[service(NAME, true)]),
        directory(&[service(NAME, false)]),
        directory(&[]),
        image(-1, b"A"),
        image(-1, b"B"),
        image(-2, b"\xFF"),
        image(-3, b"C"),
        image(-4, b"D"),
        update(-1),
        update(-2),
        post(Some("A"), &fields(3), DataType::FIELD_LIST).into_vec(),
    ]
}

fn demands(number: u8, name: &str) -> Demand {
    let (item, ticket) = (item(name), Ticket(u64::from(number)));
    match number % 8 {
        0 | 1 => open(name),
        2 => Demand::Close(item),
        3 => Demand::Refresh(item),
        4 => Demand::Priority { item, priority: Priority { class: number, count: 1 } },
        5 => Demand::OpenPrivate { ticket, request: post(Some(name), b"", DataType::NO_DATA) },
        6 => Demand::ClosePrivate(ticket),
        _ => {
            let message = post(Some(name), &fields(7), DataType::FIELD_LIST);
            Demand::Post {
                ticket: Some(ticket),
                service: SERVICE,
                item: Some(item),
                message,
                more: Vec::new(),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_said_limits_hold(
        script in vec((0_u8..12, any::<prop::sample::Index>(), any::<u8>(), 0_u8..20, any::<u8>()), 0..60),
        is_published in any::<bool>(),
        is_merged in any::<bool>(),
        policy in prop::sample::select(vec![Policy::First, Policy::Balance, Policy::Warm]),
        posts in prop::sample::select(vec![Posts::Forward, Posts::Reflect]),
        places in 1_usize..5,
    ) {
        let settings = match (is_published, is_merged) {
            (true, true) => merged(posts),
            (true, false) => published(posts),
            (false, _) => provided(2, policy, posts),
        };
        let settings = Settings { max_items: 3, max_posts: 2, max_private: 1, ..settings };
        let mut world = World::of(settings, Items::new(places));
        let known = messages();
        let mut publishers: Vec<LinkId> = Vec::new();
        for (act, at, byte, change, value) in script {
            match act {
                0 if is_published => publishers.push(world.publisher("x", &[service(NAME, true)], &[("A", 1)])),
                0 if !world.is_there[usize::from(byte % 2)] => world.arrive(usize::from(byte % 2)),
                1 => {
                    let links: Vec<LinkId> = world.ends.0.keys().copied().collect();
                    if !links.is_empty() {
                        world.kill(links[at.index(links.len())]);
                    }
                }
                2 => world.pass_time(1),
                3..=7 => {
                    let mut message = known[at.index(known.len())].clone();
                    if change < 10 {
                        let place = usize::from(byte) % message.len();
                        message[place] = value;
                    }
                    let links: Vec<LinkId> = world.ends.0.keys().copied().collect();
                    if !links.is_empty() {
                        let link = links[usize::from(value) % links.len()];
                        world.say(link, |out| _ = out.send(&message));
                    }
                }
                _ => world.demand(demands(byte, ["A", "B", "C", "D", "NONE"][at.index(5)])),
            }
            prop_assert!(world.sources.open_items() <= 3);
            prop_assert!(world.sequencer.items().len() <= places);
            for source in world.sources.seen().filter(tapeline_plant::sources::SeenSource::is_publisher) {
                prop_assert!(source.serves() + source.stands_by() <= source.items());
            }
            let unserved: usize = world.sources.unserved().map(|(_, items)| items).sum();
            let served: usize = world.sources.seen().map(|source| source.serves()).sum();
            prop_assert!(!is_published || served + unserved <= 256 * places);
        }
        // As a reader of the ring knows items: by their numbers, each an item's until its last tick.
        let mut names: BTreeMap<u32, String> = BTreeMap::new();
        let frames = world.sequencer.publisher().frames.iter();
        for (frame, number) in frames.zip(1..) {
            let tick = Tick::parse(frame).unwrap();
            prop_assert_eq!(tick.header.seq.0, number);
            prop_assert!(!tick.body.is_empty() && frame.len() <= 2_000);
            let item = tick.header.item.0;
            if item > 0 {
                let name = names.entry(item).or_insert_with(|| tick.name.to_owned());
                prop_assert_eq!(&*name, tick.name);
                prop_assert!(item as usize <= places);
            }
            if tick.header.flags.contains(Flags::LAST) {
                names.remove(&item);
            }
        }
        for (item, name) in names {
            prop_assert_eq!(world.sequencer.items().name(ItemId(item)), Some(&*name));
        }
        // Every post has its one receipt in the end.
        world.pass_time(20);
    }
}

/// What nobody takes stays within its bytes, whatever a provider says; last words are not lost.
#[test]
fn answers_that_wait_are_bounded_in_bytes() {
    let settings = Settings { answer_bytes: 10_000, ..provided(1, Policy::First, Posts::Refuse) };
    let mut world = World::new(settings);
    world.arrive(0);
    world.demand(open("SLOW"));
    world.takes_answers = false;
    let long = [b'x'; 1_000];
    let suspect = State { data: DataState::SUSPECT, text: &long, ..State::OPEN_OK };
    for _ in 0..100 {
        world.status(LinkId(0), "SLOW", suspect);
    }
    world.status(LinkId(0), "SLOW", State { stream: StreamState::CLOSED, ..suspect });
    world.takes_answers = true;
    world.run();
    let bytes: usize = world.answers.iter().map(Answer::bytes).sum();
    assert!(bytes < 12_000, "{bytes}");
    assert!(world.sources.counters().answers_dropped > 80);
    assert_eq!(world.answered().last().unwrap(), "SLOW: STATUS CLOSED SUSPECT \"\"");
    world.demand(open("SLOW"));
    world.status(LinkId(0), "SLOW", suspect);
    assert!(world.answered().last().unwrap().ends_with("xx\""), "there is room again");
}
