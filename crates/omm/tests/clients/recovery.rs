//! What becomes of items when something goes wrong.

use tapeline_omm::State;
use tapeline_omm::domain::directory::{self, Group, Info, Load, ServiceEntry, ServicePart, ServiceState};
use tapeline_omm::domain::{LoginRequest, OwnedState};
use tapeline_omm::role::consumer::{ConsumerSettings, ItemRequest, ServiceName};
use tapeline_omm::rwf::{DataState, Domain, MapAction, StateCode, StreamState, flags};

use super::desk::{Desk, SECOND, answer, flags_of, image, login_refresh, status, update};

/// A service of prices that is up.
pub(crate) fn service(id: u16, name: &str) -> ServiceEntry {
    let info = Info {
        name: Some(name.into()),
        capabilities: Some(vec![Domain::DICTIONARY, Domain::MARKET_PRICE]),
        ..Info::default()
    };
    ServiceEntry::new(id, info, ServiceState::UP)
}

fn directory_update(services: &[ServiceEntry]) -> Vec<u8> {
    let mut out = vec![0; 4096];
    let len = directory::encode_update(2, 0x3F, services, &mut out).unwrap();
    out.truncate(len);
    out
}

fn changes(part: ServicePart) -> Vec<u8> {
    directory_update(&[ServiceEntry::change(1, part)])
}

const RECOVER: State<'static> = State {
    stream: StreamState::CLOSED_RECOVER,
    data: DataState::SUSPECT,
    code: StateCode::NO_RESOURCES,
    text: b"later",
};
const CLOSED: State<'static> = State { stream: StreamState::CLOSED, ..RECOVER };

#[test]
fn a_request_without_an_answer_is_closed_and_sent_again() {
    let mut desk = Desk::ready(ConsumerSettings::default());
    desk.open("A", 1);
    assert_eq!(desk.sent(), ["REQUEST 3 A"]);
    desk.pass(15 * SECOND - 1);
    assert_eq!(desk.sent(), [""; 0]);
    desk.pass(1);
    assert_eq!(desk.sent(), ["CLOSE 3", "REQUEST 4 A"]);
    assert_eq!(desk.heard(), ["item 1: OPEN/SUSPECT/TIMEOUT \"The request was not answered.\""]);
    // The answer to the first request is late, and nobody's; updates on it are no reason to close it once more.
    desk.feed(&answer(3));
    desk.feed(&update(3));
    assert_eq!((desk.sent(), desk.heard()), (vec!["CLOSE 3".into()], vec![]));
    desk.feed(&answer(4));
    desk.pass(60 * SECOND);
    assert_eq!((desk.sent(), desk.heard().len()), (vec![], 1));
    // A provider that says that it is busy has answered.
    desk.open("B", 2);
    desk.feed(&status(5, State { stream: StreamState::OPEN, ..RECOVER }));
    desk.pass(60 * SECOND);
    assert_eq!(desk.sent(), ["REQUEST 5 B"]);
    assert_eq!(desk.heard(), ["item 2: STATUS OPEN/SUSPECT/NO_RESOURCES \"later\""]);
}

#[test]
fn an_image_in_parts_must_be_complete_in_time() {
    let mut desk = Desk::ready(ConsumerSettings::default());
    desk.open("A", 1);
    desk.pass(14 * SECOND);
    desk.feed(&image(3, &[0, 1], State::OPEN_OK, flags_of::PART));
    desk.pass(14 * SECOND);
    assert_eq!(desk.sent(), ["REQUEST 3 A"]);
    desk.pass(SECOND);
    assert_eq!(desk.sent(), ["CLOSE 3", "REQUEST 4 A"]);
}

#[test]
fn a_refused_item_is_asked_for_ever_more_rarely() {
    let mut desk = Desk::ready(ConsumerSettings::default());
    desk.open("A", 1);
    let (mut id, mut waits) = (3, Vec::new());
    for _ in 0..10 {
        desk.feed(&status(id, RECOVER));
        assert!(desk.heard().ends_with(&["item 1: OPEN/SUSPECT/NO_RESOURCES \"later\"".into()]));
        desk.sent();
        let before = desk.now;
        id += 1;
        assert_eq!(desk.wait_to_send(), [format!("REQUEST {id} A")]);
        waits.push((desk.now.0 - before.0) / 1_000_000);
    }
    assert_eq!(waits, [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 10_000]);
    // It opens, and is closed at once: that is no sign of health. Having been open for long is.
    for (open_for, wait) in [(0, 10_000), (11 * SECOND, 100)] {
        desk.feed(&answer(id));
        desk.pass(open_for);
        let before = desk.now;
        desk.feed(&status(id, RECOVER));
        id += 1;
        assert_eq!(desk.wait_to_send(), [format!("REQUEST {id} A")]);
        assert_eq!((desk.now.0 - before.0) / 1_000_000, wait);
    }
    assert_eq!(desk.consumer.counters().recoveries, 12);
}

#[test]
fn final_states_are_final() {
    let mut desk = Desk::ready(ConsumerSettings::default());
    for (id, state) in [(3, CLOSED), (4, State { stream: StreamState::REDIRECTED, ..RECOVER })] {
        let item = desk.open("A", 1);
        assert_eq!(desk.sent(), [format!("REQUEST {id} A")]);
        desk.feed(&status(id, state));
        assert_eq!(desk.heard(), [format!("item 1: STATUS {state}, final")]);
        assert!(!desk.consumer.close(item), "it is nobody's any more");
        desk.pass(60 * SECOND);
        assert_eq!((desk.sent(), desk.consumer.items(), desk.consumer.streams()), (vec![], 0, 0));
    }
}

#[test]
fn after_a_lost_connection_everything_is_asked_for_again() {
    let mut desk = Desk::ready(ConsumerSettings::default());
    for (name, closure) in [("A", 1), ("B", 2)] {
        desk.open(name, closure);
    }
    desk.feed(&answer(3));
    desk.sent();
    desk.heard();
    let before = desk.now;
    desk.lose_connection();
    let lost = "OPEN/SUSPECT/NONE \"The connection is lost.\"";
    assert_eq!(desk.heard(), [format!("item 1: {lost}"), format!("item 2: {lost}")]);
    // Nothing that still comes from the old connection is taken.
    desk.feed(&answer(4));
    assert_eq!(desk.heard(), [""; 0]);
    desk.connect();
    assert_eq!(desk.now.0 - before.0, SECOND);
    desk.log_in(&[]);
    // The service has another number now.
    desk.directory(&[(9, "FEED")]);
    assert_eq!(desk.sent(), ["REQUEST 5 A", "REQUEST 6 B"]);
    desk.feed(&answer(5));
    assert_eq!(desk.heard().last().unwrap(), "item 1: REFRESH OPEN/OK/NONE");
}

#[test]
fn connections_are_tried_ever_more_rarely() {
    let settings = ConsumerSettings { reconnect_attempts: Some(7), ..ConsumerSettings::default() };
    let mut desk = Desk::new(settings, &LoginRequest::new(b"user"));
    let item = desk.open("A", 1);
    let mut times = Vec::new();
    while !desk.consumer.is_ended() {
        desk.connect_only();
        times.push(desk.now.0 / SECOND - 1_000);
        desk.heard();
        desk.lose_connection();
    }
    assert_eq!(times, [0, 1, 3, 7, 12, 17, 22]);
    let why = "CLOSED/SUSPECT/NONE \"No connection could be had.\"";
    assert_eq!(desk.heard(), [format!("item 1: {why}, final"), format!("ended {why}")]);
    assert!(!desk.consumer.close(item));
}

#[test]
fn private_streams_and_those_of_a_user_who_recovers_himself_are_not_recovered() {
    let mut desk = Desk::ready(ConsumerSettings::default());
    let request =
        ItemRequest { is_private: true, closure: 1, ..ItemRequest::new(ServiceName::Name("FEED"), b"A") };
    desk.consumer.open(&request).unwrap();
    desk.tick();
    assert_eq!(desk.sent(), ["REQUEST 3 A private"]);
    desk.feed(&answer(3));
    desk.heard();
    desk.lose_connection();
    assert_eq!(desk.heard(), ["item 1: CLOSED_RECOVER/SUSPECT/NONE \"The connection is lost.\", final"]);

    let mut login = LoginRequest::new(b"user");
    login.attributes.single_open = Some(0);
    let mut desk = Desk::new(ConsumerSettings::default(), &login);
    desk.connect();
    desk.log_in(&[]);
    desk.directory(&[(1, "FEED")]);
    desk.open("A", 1);
    desk.heard();
    desk.feed(&status(3, RECOVER));
    assert_eq!(desk.heard(), ["item 1: CLOSED_RECOVER/SUSPECT/NO_RESOURCES \"later\", final"]);
}

#[test]
fn who_wants_no_suspect_data_has_the_stream_closed() {
    let suspect = State { data: DataState::SUSPECT, text: b"old", ..State::OPEN_OK };
    let desk = |single_open| {
        let mut login = LoginRequest::new(b"user");
        (login.attributes.single_open, login.attributes.allow_suspect_data) = (Some(single_open), Some(0));
        let mut desk = Desk::new(ConsumerSettings::default(), &login);
        desk.connect();
        desk.log_in(&[]);
        desk.directory(&[(1, "FEED")]);
        for (name, closure) in [("A", 1), ("A", 2), ("B", 3), ("C", 4)] {
            desk.open(name, closure);
        }
        desk.feed(&answer(3));
        desk.feed(&answer(5));
        desk.sent();
        desk.heard();
        desk
    };
    let mut alone = desk(0);
    let closed = |item| format!("item {item}: CLOSED_RECOVER/SUSPECT/NONE \"old\", final");
    alone.feed(&status(3, suspect));
    assert_eq!(alone.heard(), [closed(2), closed(1)]);
    alone.feed(&image(4, &[0, 1], suspect, flags_of::SOLICITED));
    assert_eq!(alone.heard(), [closed(3)]);
    // Of the whole service.
    let said = ServiceState { status: Some(OwnedState::from(suspect)), ..ServiceState::UP };
    alone.feed(&changes(ServicePart::State(said)));
    assert_eq!(alone.heard().first(), Some(&closed(4)));
    assert_eq!(alone.sent(), ["CLOSE 3", "CLOSE 4", "CLOSE 5"]);
    assert_eq!((alone.consumer.items(), alone.consumer.streams()), (0, 0));
    // Who has his items recovered takes it in between.
    let mut recovered = desk(1);
    recovered.feed(&status(3, suspect));
    assert_eq!(
        recovered.heard(),
        ["item 2: STATUS OPEN/SUSPECT/NONE \"old\"", "item 1: STATUS OPEN/SUSPECT/NONE \"old\""]
    );
    assert_eq!(recovered.sent(), [""; 0]);
}

#[test]
fn a_service_that_goes_takes_its_items_with_it_until_it_is_back() {
    let mut desk = Desk::ready(ConsumerSettings::default());
    desk.open("A", 1);
    desk.feed(&answer(3));
    desk.sent();
    desk.heard();
    desk.feed(&directory_update(&[ServiceEntry::delete(1)]));
    assert_eq!(
        desk.heard(),
        [
            "item 1: OPEN/SUSPECT/NONE \"The service is lost.\"",
            "directory",
            "item 1: OPEN/SUSPECT/NONE \"The service is not in the directory.\""
        ]
    );
    desk.feed(&update(3));
    assert_eq!((desk.sent(), desk.heard()), (vec![], vec![]));
    let mut back = service(1, "FEED");
    back.action = MapAction::UPDATE;
    desk.feed(&directory_update(&[back]));
    assert_eq!(desk.sent(), ["REQUEST 4 A"]);
    // A directory that is given anew without it is the same loss.
    desk.feed(&answer(4));
    desk.heard();
    let mut out = vec![0; 1024];
    let len =
        directory::encode_refresh(2, directory::SOLICITED, 3, &[service(8, "OTHER")], &mut out).unwrap();
    desk.feed(&out[..len]);
    assert_eq!(desk.heard()[0], "item 1: OPEN/SUSPECT/NONE \"The service is lost.\"");
}

#[test]
fn a_directory_in_parts_takes_away_only_what_no_part_names() {
    let mut desk = Desk::ready(ConsumerSettings::default());
    let part = |of, services: &[ServiceEntry]| {
        let mut out = vec![0; 1024];
        let len = directory::encode_refresh(2, of, 3, services, &mut out).unwrap();
        out.truncate(len);
        out
    };
    let (first, last) = (flags::refresh::CLEAR_CACHE, flags::refresh::REFRESH_COMPLETE);
    desk.feed(&part(directory::SOLICITED, &[service(1, "FEED"), service(2, "OTHER")]));
    desk.open("A", 1);
    desk.open("B", 2);
    desk.feed(&answer(3));
    desk.feed(&answer(4));
    desk.sent();
    desk.heard();
    desk.feed(&part(first, &[service(2, "OTHER")]));
    desk.feed(&part(last, &[service(1, "FEED")]));
    assert_eq!((desk.sent(), desk.heard()), (vec![], vec!["directory".to_owned(); 2]));
    // A part that is damaged takes nothing away; one that is whole and does not name it does.
    let mut damaged = part(last, &[service(2, "OTHER"), service(3, "THIRD")]);
    damaged.truncate(damaged.len() - 4);
    desk.feed(&part(first, &[]));
    desk.feed(&damaged);
    assert!(desk.heard().iter().all(|heard| !heard.starts_with("item")));
    desk.feed(&part(first, &[]));
    desk.feed(&part(last, &[service(2, "OTHER")]));
    assert_eq!(desk.heard()[1], "item 1: OPEN/SUSPECT/NONE \"The service is lost.\"");
}

#[test]
fn states_of_services_and_groups_reach_their_items_alone() {
    let mut desk = Desk::ready(ConsumerSettings::default());
    for (name, closure, group) in [("A", 1, [0, 1]), ("B", 2, [0, 2]), ("C", 3, [0, 2])] {
        desk.open(name, closure);
        desk.feed(&image(2 + i32::try_from(closure).unwrap(), &group, State::OPEN_OK, flags_of::SOLICITED));
    }
    desk.sent();
    desk.heard();
    let suspect = State { stream: StreamState::OPEN, ..RECOVER };
    let state = |state: u64, status: Option<State<'_>>| {
        changes(ServicePart::State(ServiceState {
            service_state: Some(state),
            status: status.map(OwnedState::from),
            ..ServiceState::default()
        }))
    };
    let told = |state: &str, items: &[u64]| -> Vec<String> {
        items.iter().map(|item| format!("item {item}: {state}")).chain(["directory".into()]).collect()
    };
    desk.feed(&state(0, Some(suspect)));
    assert_eq!(desk.heard(), told("OPEN/SUSPECT/NO_RESOURCES \"later\"", &[1, 2, 3]));
    desk.feed(&state(1, Some(State::OPEN_OK)));
    assert_eq!(desk.heard(), told("OPEN/OK/NONE", &[1, 2, 3]));
    desk.feed(&state(0, None));
    desk.feed(&state(1, None));
    assert_eq!(desk.heard(), ["directory", "directory"], "without a status nobody notices");
    let group = |of: [u8; 2], status: Option<State<'_>>, merged: Option<[u8; 2]>| {
        changes(ServicePart::Group(Group {
            group: Some(of.into()),
            merged_to_group: merged.map(Into::into),
            status: status.map(OwnedState::from),
        }))
    };
    desk.feed(&group([0, 2], Some(suspect), None));
    assert_eq!(desk.heard(), told("OPEN/SUSPECT/NO_RESOURCES \"later\"", &[2, 3]));
    desk.feed(&group([0, 1], None, Some([0, 2])));
    desk.feed(&group([0, 1], Some(suspect), None));
    assert_eq!(desk.heard(), ["directory", "directory"], "nobody is of that group any more");
    assert_eq!(desk.sent(), [""; 0]);
    desk.feed(&group([0, 2], Some(RECOVER), None));
    assert_eq!(desk.heard(), told("OPEN/SUSPECT/NO_RESOURCES \"later\"", &[1, 2, 3]));
    assert_eq!(desk.wait_to_send(), ["REQUEST 6 A", "REQUEST 7 B", "REQUEST 8 C"]);
    desk.feed(&state(0, Some(CLOSED)));
    assert_eq!(desk.heard()[..3], [1, 2, 3].map(|item| format!("item {item}: {CLOSED}, final")));
    assert_eq!((desk.consumer.items(), desk.consumer.streams()), (0, 0));
}

#[test]
fn requests_wait_for_a_service_that_can_take_them() {
    let mut desk = Desk::new(ConsumerSettings::default(), &LoginRequest::new(b"user"));
    desk.open("A", 1);
    desk.connect();
    desk.log_in(&[]);
    desk.directory(&[(1, "OTHER")]);
    assert_eq!(
        desk.heard().last().unwrap(),
        "item 1: OPEN/SUSPECT/NONE \"The service is not in the directory.\""
    );
    let mut down = service(2, "FEED");
    down.parts.truncate(1);
    desk.feed(&directory_update(&[down]));
    assert_eq!(
        desk.heard().last().unwrap(),
        "item 1: OPEN/SUSPECT/NONE \"The service is down or takes no requests.\""
    );
    let change = |part| directory_update(&[ServiceEntry::change(2, part)]);
    let info =
        |domains: Vec<Domain>| ServicePart::Info(Info { capabilities: Some(domains), ..Info::default() });
    desk.feed(&change(info(vec![Domain::HISTORY])));
    for state in [ServiceState { accepting_requests: Some(0), ..ServiceState::UP }, ServiceState::UP] {
        desk.feed(&change(ServicePart::State(state)));
    }
    assert_eq!(
        desk.heard().last().unwrap(),
        "item 1: OPEN/SUSPECT/NONE \"The service does not serve this domain.\""
    );
    desk.feed(&change(ServicePart::Load(Load {
        open_window: Some(0),
        open_limit: Some(0),
        ..Load::default()
    })));
    desk.feed(&change(info(vec![Domain::MARKET_PRICE])));
    assert_eq!(desk.sent(), [""; 0]);
    desk.feed(&change(ServicePart::Load(Load { open_window: Some(1), ..Load::default() })));
    assert_eq!(desk.sent(), ["REQUEST 3 A"]);
}

#[test]
fn no_more_is_asked_than_a_service_has_room_for() {
    let mut desk = Desk::ready(ConsumerSettings::default());
    desk.feed(&changes(ServicePart::Load(Load { open_window: Some(2), ..Load::default() })));
    for closure in 0..10 {
        desk.open(&format!("I{closure}"), closure);
    }
    assert_eq!(desk.sent(), ["REQUEST 3 I0", "REQUEST 4 I1"]);
    desk.feed(&answer(4));
    assert_eq!(desk.sent(), ["REQUEST 5 I2"]);
    desk.feed(&answer(4));
    assert_eq!(desk.sent(), [""; 0], "one answer counts once");
    for id in [3, 5] {
        desk.feed(&answer(id));
    }
    assert_eq!(desk.sent(), ["REQUEST 6 I3", "REQUEST 7 I4"]);
    desk.feed(&status(6, CLOSED));
    assert_eq!(desk.sent(), ["REQUEST 8 I5"]);
    desk.pass(15 * SECOND);
    // Both are late; two others have their turn.
    assert_eq!(desk.sent().iter().filter(|line| line.starts_with("REQUEST")).count(), 2);
    desk.feed(&changes(ServicePart::Load(Load { open_window: Some(100), ..Load::default() })));
    assert_eq!(desk.consumer.streams(), 9);
    assert!(desk.sent().len() >= 3);
}

#[test]
fn a_login_that_is_refused_or_closed_is_the_end() {
    for is_in in [false, true] {
        let mut desk = Desk::new(ConsumerSettings::default(), &LoginRequest::new(b"user"));
        desk.open("A", 1);
        desk.connect();
        if is_in {
            desk.log_in(&[]);
            desk.directory(&[(1, "FEED")]);
        }
        desk.heard();
        desk.feed(&login_refresh(CLOSED, &[]));
        assert_eq!(
            desk.heard(),
            [
                format!("login {CLOSED}"),
                "disconnect".into(),
                format!("item 1: {CLOSED}, final"),
                format!("ended {CLOSED}")
            ]
        );
        assert_eq!((desk.next, desk.consumer.is_ended(), desk.consumer.items()), (None, true, 0));
        desk.feed(&answer(3));
        assert_eq!(desk.heard(), [""; 0]);
        assert!(desk.consumer.open(&ItemRequest::new(ServiceName::Id(1), b"B")).is_err());
    }
}

#[test]
fn logins_and_directories_that_do_not_come() {
    let mut desk = Desk::new(ConsumerSettings::default(), &LoginRequest::new(b"user"));
    desk.connect();
    desk.sent();
    // Suspect: it goes on waiting. Closed to recover: it tries again every second.
    desk.feed(&login_refresh(State { stream: StreamState::OPEN, ..RECOVER }, &[]));
    assert_eq!(desk.sent(), [""; 0]);
    desk.feed(&login_refresh(RECOVER, &[]));
    desk.pass(SECOND);
    assert_eq!(desk.sent(), ["REQUEST 1 user"]);
    desk.heard();
    desk.pass(44 * SECOND);
    assert_eq!(desk.heard(), ["timed out: Login", "disconnect"]);
    desk.connect();
    desk.log_in(&[]);
    desk.heard();
    assert_eq!(desk.sent(), ["REQUEST 2"]);
    desk.pass(15 * SECOND);
    assert_eq!(desk.sent(), ["CLOSE 2", "REQUEST 2"]);
    desk.pass(30 * SECOND);
    assert_eq!(desk.heard(), ["timed out: Directory", "disconnect"]);
    desk.sent();
    // A directory that is closed later is asked for again; items do not notice.
    desk.connect();
    desk.log_in(&[]);
    desk.directory(&[(1, "FEED")]);
    desk.open("A", 1);
    desk.feed(&answer(3));
    desk.sent();
    desk.heard();
    let header = tapeline_omm::rwf::StatusHeader {
        state: Some(RECOVER),
        ..tapeline_omm::rwf::StatusHeader::new(Domain::SOURCE, 2)
    };
    desk.feed(&super::desk::encode(|out| header.encode(out)));
    desk.pass(SECOND);
    assert_eq!((desk.sent(), desk.heard()), (vec!["REQUEST 2".into()], vec!["directory".into()]));
}

#[test]
fn streams_that_were_never_opened_are_closed() {
    let mut desk = Desk::ready(ConsumerSettings::default());
    for id in [77, -3] {
        desk.feed(&update(id));
        assert_eq!(desk.sent(), [format!("CLOSE {id}")]);
    }
    let item = desk.open("A", 1);
    desk.feed(&answer(3));
    desk.consumer.close(item);
    desk.tick();
    desk.feed(&update(3));
    assert_eq!(desk.sent(), ["REQUEST 3 A", "CLOSE 3"], "an update that was on its way is no offence");
    assert_eq!(desk.consumer.counters().misplaced, 3);
}
