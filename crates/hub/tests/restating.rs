//! States of groups and services, as clients hear them that know no groups: item by item, and behind their updates.
use crate::exchange;

use exchange::{Client, Exchange, bid, item, item_of, quote};
use tapeline_hub::{Service, Settings};
use tapeline_omm::domain::directory::{Group, ServiceState};
use tapeline_omm::domain::{OwnedState, ServicePart};
use tapeline_omm::rwf::{DataState, MessageClass, State, StateCode, StreamState};
use tapeline_plant::tick;

const ROOM: usize = 1 << 20;
/// The service of a provider.
const OTHER: u16 = 2;

/// What the statuses of a stream said of the data, behind its first image.
fn statuses(client: &Client, stream: i32) -> Vec<DataState> {
    let on = client.on(stream);
    let behind = on.iter().skip_while(|received| received.class != MessageClass::REFRESH);
    let statuses = behind.filter(|received| received.class == MessageClass::STATUS);
    statuses.map(|received| received.state.unwrap().1).collect()
}

fn stale(exchange: &mut Exchange) {
    exchange.status(0, DataState::SUSPECT, tick::Flags::STATE | tick::Flags::SUSPECT);
}

fn live(exchange: &mut Exchange) {
    exchange.status(0, DataState::OK, tick::Flags::STATE);
}

#[test]
fn a_json_client_hears_of_each_of_its_items_that_the_feed_is_stale_and_live_again() {
    let mut exchange = Exchange::new(Settings::default());
    exchange.refresh("AAPL", &quote(1, 100));
    exchange.refresh("MSFT", &quote(2, 200));
    let (mut json, mut rwf) = (exchange.json_client(ROOM), exchange.client(ROOM));
    for client in [&mut json, &mut rwf] {
        exchange.say(client, &item(5, "AAPL"));
        exchange.say(client, &item(6, "MSFT"));
        exchange.read_all(client);
    }
    stale(&mut exchange);
    exchange.read_all(&mut json);
    live(&mut exchange);
    for client in [&mut json, &mut rwf] {
        exchange.read_all(client);
    }
    let both = vec![DataState::SUSPECT, DataState::OK];
    assert_eq!((statuses(&json, 5), statuses(&json, 6)), (both.clone(), both));
    assert_eq!((statuses(&rwf, 5), statuses(&rwf, 6)), (vec![], vec![]), "the directory has told it");
}

#[test]
fn of_a_state_that_is_over_before_its_turn_only_what_it_became_is_told() {
    let mut exchange = Exchange::new(Settings::default());
    exchange.refresh("AAPL", &quote(1, 100));
    let mut json = exchange.json_client(ROOM);
    exchange.say(&json, &item(5, "AAPL"));
    exchange.read_all(&mut json);
    stale(&mut exchange);
    live(&mut exchange);
    exchange.read_all(&mut json);
    assert_eq!(statuses(&json, 5), [DataState::OK]);
}

#[test]
fn what_many_items_are_told_leaves_room_for_updates() {
    const ITEMS: i32 = 900;
    // Of one room all images fit, and not all statuses.
    const SMALL: usize = 32 << 10;
    let mut exchange = Exchange::new(Settings::default());
    let names: Vec<String> = (0..ITEMS).map(|number| format!("I{number}")).collect();
    names.iter().for_each(|name| exchange.refresh(name, &quote(1, 100)));
    let mut json = exchange.json_client(SMALL);
    for (name, stream) in names.iter().zip(5..) {
        exchange.say(&json, &item(stream, name));
        exchange.read(&mut json, usize::MAX);
    }
    exchange.read_all(&mut json);
    stale(&mut exchange);
    for turn in 0..20 {
        exchange.pass(10);
        let before = json.on(5).len();
        // As long as the client takes what it is sent, each update finds room, whatever else is told.
        exchange.update(&names[0], &bid(turn));
        let told = exchange.read(&mut json, usize::MAX);
        assert!(told <= 501, "{told} in a turn");
        assert!(json.on(5).len() > before, "turn {turn}");
    }
    exchange.read_all(&mut json);
    let images = json.received.iter().filter(|received| received.class == MessageClass::REFRESH).count();
    // The login's and the directory's beside.
    assert_eq!(images, ITEMS as usize + 2, "nothing was conflated");
    for stream in 5..5 + ITEMS {
        assert_eq!(statuses(&json, stream), [DataState::SUSPECT], "{stream}");
    }
    assert!(exchange.hub.is_settled());
}

#[test]
fn who_takes_nothing_is_told_when_there_is_room_and_counts_as_unsettled() {
    let mut exchange = Exchange::new(Settings::default());
    exchange.refresh("AAPL", &quote(1, 100));
    let mut json = exchange.json_client(2048);
    exchange.say(&json, &item(5, "AAPL"));
    exchange.read_all(&mut json);
    (0..200).for_each(|value| exchange.update("AAPL", &bid(value)));
    stale(&mut exchange);
    exchange.pass(10);
    assert!(!exchange.hub.is_settled());
    exchange.read_all(&mut json);
    // The image that it is owed says so.
    assert_eq!(json.on(5).last().unwrap().state.unwrap().1, DataState::SUSPECT);
    assert!(exchange.hub.is_settled());
}

#[test]
fn the_end_of_the_plant_is_told_of_each_item() {
    let mut exchange = Exchange::new(Settings::default());
    exchange.refresh("AAPL", &quote(1, 100));
    let mut json = exchange.json_client(ROOM);
    exchange.say(&json, &item(5, "AAPL"));
    exchange.read_all(&mut json);
    exchange.hub.stop("The plant has ended", &mut exchange.queues);
    assert!(!exchange.hub.is_settled());
    exchange.read_all(&mut json);
    let told = json.on(5).last().copied().unwrap().clone();
    assert_eq!((told.class, told.state.unwrap().1), (MessageClass::STATUS, DataState::SUSPECT));
    assert!(told.bytes.windows(19).any(|text| text == b"The plant has ended"));
}

#[test]
fn a_group_and_a_service_of_a_provider_are_told_as_those_of_feeds() {
    let services = vec![Service::new("OTHER", OTHER)];
    let mut exchange = Exchange::new(Settings { services, ..Settings::default() });
    exchange.up(OTHER, true);
    let mut json = exchange.json_client(ROOM);
    exchange.publish(OTHER, "EUR=", &quote(1, 100));
    exchange.say(&json, &item_of(OTHER, 5, "EUR="));
    // Its source has been asked.
    exchange.demands();
    exchange.publish(OTHER, "EUR=", &quote(1, 100));
    exchange.read_all(&mut json);
    let state =
        |data, text| OwnedState::from(State { stream: StreamState::OPEN, data, code: StateCode::NONE, text });
    let group = |status| {
        let group = Some(b"\x07\x07"[..].into());
        vec![ServicePart::Group(Group { group, merged_to_group: None, status: Some(status) })]
    };
    exchange.service(OTHER, group(state(DataState::SUSPECT, b"line down")));
    exchange.read_all(&mut json);
    exchange.service(OTHER, group(state(DataState::OK, b"line up")));
    exchange.read_all(&mut json);
    let status = Some(state(DataState::SUSPECT, b"all of it"));
    exchange.service(OTHER, vec![ServicePart::State(ServiceState { status, ..ServiceState::default() })]);
    exchange.read_all(&mut json);
    assert_eq!(statuses(&json, 5), [DataState::SUSPECT, DataState::OK, DataState::SUSPECT]);
}
