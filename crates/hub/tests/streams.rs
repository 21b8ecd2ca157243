//! What clients are sent: an image, then every update in order, whatever the others do.
use crate::exchange;

use std::collections::BTreeMap;

use exchange::{Client, Exchange, Values, bid, close, item, item_view, quote, request};
use proptest::prelude::*;
use tapeline_hub::{End, HubEvent, Settings, SlowPolicy, TooMuch, Unknown};
use tapeline_omm::domain::standby::{ConnectionStatus, ServerType};
use tapeline_omm::domain::{LOGIN_STREAM, List, RequestPayload, View};
use tapeline_omm::fid;
use tapeline_omm::rwf::{DataState, Domain, Key, MessageClass, RequestHeader, StateCode, StreamState, flags};
use tapeline_plant::tick;

const ROOM: usize = 1 << 20;

fn cut(messages: usize) -> Settings {
    Settings { slow: SlowPolicy::Cut { bytes: 1 << 20, messages }, ..Settings::default() }
}

fn classes(client: &Client, stream: i32) -> Vec<MessageClass> {
    client.on(stream).iter().map(|received| received.class).collect()
}

#[test]
fn a_client_gets_the_image_at_n_and_then_n_plus_1() {
    let mut exchange = Exchange::new(Settings::default());
    exchange.refresh("AAPL", &quote(1, 100));
    exchange.update("AAPL", &bid(2));
    let mut client = exchange.client(ROOM);
    let stream = client.stream();
    exchange.say(&client, &item(stream, "AAPL"));
    exchange.update("AAPL", &bid(3));
    exchange.update("MSFT", &bid(9));
    exchange.update("AAPL", &bid(4));
    exchange.read_all(&mut client);
    let got: Vec<_> =
        client.on(stream).iter().map(|received| (received.class, received.values.clone())).collect();
    assert_eq!(
        got,
        [
            (MessageClass::REFRESH, quote(2, 100)),
            (MessageClass::UPDATE, bid(3)),
            (MessageClass::UPDATE, bid(4))
        ]
    );
    let image = client.on(stream)[0];
    assert!(image.is_solicited);
    assert_eq!(image.state, Some((StreamState::OPEN, DataState::OK, StateCode::NONE)));
}

#[test]
fn a_hundred_requests_at_once_are_answered_over_many_turns() {
    let mut exchange = Exchange::new(Settings::default());
    let names: Vec<String> = (0..100).map(|at| format!("I{at}")).collect();
    names.iter().for_each(|name| exchange.refresh(name, &quote(1, 100)));
    let [mut greedy, mut other] = [(); 2].map(|()| exchange.client(ROOM));
    let stream = other.stream();
    exchange.say(&other, &item(stream, "I7"));
    exchange.read_all(&mut other);
    exchange.read_all(&mut greedy);
    let items: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
    let payload = RequestPayload { items: Some(List::Given(&items)), ..RequestPayload::default() };
    let ask = batch(10, Key { service_id: Some(1), ..Key::default() }, &payload);
    exchange.say(&greedy, &ask);
    // The batch's own status, and few images; the next update is not behind the others.
    assert!((1..=3).contains(&exchange.read(&mut greedy, usize::MAX)));
    exchange.update("I7", &bid(2));
    assert_eq!(exchange.read(&mut other, usize::MAX), 1);
    let (mut turns, mut read) = (0, 0);
    while exchange.hub.is_owed_more() {
        exchange.pass(0);
        let more = exchange.read(&mut greedy, usize::MAX);
        assert!(more <= 8, "{more} in one turn");
        (turns, read) = (turns + 1, read + more);
    }
    assert!((97..=99).contains(&read) && turns >= 12, "{read} in {turns} turns");
    assert_eq!(
        greedy.received.iter().filter(|received| received.class == MessageClass::REFRESH).count(),
        100 + 2
    );
}

#[test]
fn each_stream_gets_the_plants_own_bytes_under_its_id() {
    let mut exchange = Exchange::new(Settings::default());
    exchange.refresh("AAPL", &quote(1, 100));
    let mut clients: Vec<Client> = (0..3).map(|_| exchange.client(ROOM)).collect();
    for client in &mut clients {
        for _ in 0..2 {
            let stream = client.stream();
            exchange.say(client, &item(stream, "AAPL"));
        }
    }
    exchange.update("AAPL", &bid(2));
    let mut bodies = Vec::new();
    for client in &mut clients {
        exchange.read_all(client);
        for stream in [3, 4] {
            let mut bytes = client.on(stream)[1].bytes.clone();
            tapeline_omm::rwf::patch_stream_id(&mut bytes, 0).unwrap();
            bodies.push(bytes);
        }
    }
    assert_eq!(bodies.len(), 6);
    assert!(bodies.iter().all(|body| *body == bodies[0]));
}

#[test]
fn a_snapshot_is_one_image_and_no_more() {
    let mut exchange = Exchange::new(Settings::default());
    exchange.refresh("AAPL", &quote(1, 100));
    let mut client = exchange.client(ROOM);
    let key = Key::item(exchange::SERVICE, b"AAPL");
    exchange.say(&client, &request(Domain::MARKET_PRICE, 9, flags::request::STREAMING, key));
    exchange.say(&client, &request(Domain::MARKET_PRICE, 8, tapeline_omm::rwf::Flags::NONE, key));
    exchange.update("AAPL", &bid(2));
    exchange.read_all(&mut client);
    assert_eq!(classes(&client, 8), [MessageClass::REFRESH]);
    assert_eq!(client.on(8)[0].state.unwrap().0, StreamState::NON_STREAMING);
    assert_eq!(classes(&client, 9), [MessageClass::REFRESH, MessageClass::UPDATE]);
}

#[test]
fn a_hub_that_stands_by_has_no_data_until_it_is_the_active_server() {
    let mut exchange = Exchange::new(Settings::default());
    exchange.refresh("AAPL", &quote(1, 100));
    let mut client = exchange.client(ROOM);
    let stream = client.stream();
    let tell = |exchange: &mut Exchange, client: &Client, server| {
        let status = ConnectionStatus::Login(server);
        exchange.say(client, &exchange::message(|room| status.encode(LOGIN_STREAM, room)));
    };
    tell(&mut exchange, &client, ServerType::Standby);
    exchange.say(&client, &item(stream, "AAPL"));
    exchange.update("AAPL", &bid(2));
    exchange.read_all(&mut client);
    let values = |client: &Client| -> Vec<_> {
        client.on(stream).iter().map(|received| (received.class, received.values.clone())).collect()
    };
    assert_eq!(values(&client), [(MessageClass::REFRESH, Values::new())]);
    // What was missed is in the image, and updates follow that.
    tell(&mut exchange, &client, ServerType::Active);
    exchange.update("AAPL", &bid(3));
    exchange.read_all(&mut client);
    exchange.update("AAPL", &bid(4));
    exchange.read_all(&mut client);
    assert_eq!(values(&client)[1].0, MessageClass::REFRESH);
    assert_eq!(client.folded(stream), Some(quote(4, 100)));
    // It stands by once more.
    tell(&mut exchange, &client, ServerType::Standby);
    exchange.update("AAPL", &bid(5));
    exchange.read_all(&mut client);
    assert_eq!(client.folded(stream), Some(quote(4, 100)));
    tell(&mut exchange, &client, ServerType::Active);
    exchange.read_all(&mut client);
    assert_eq!(client.folded(stream), Some(quote(5, 100)));
}

#[test]
fn a_view_has_its_fields_and_is_told_of_nothing_else() {
    let mut exchange = Exchange::new(Settings::default());
    exchange.refresh("AAPL", &quote(1, 100));
    let mut client = exchange.client(ROOM);
    exchange.say(&client, &item_view(5, "AAPL", &[fid::ASK.0]));
    exchange.update("AAPL", &bid(2));
    exchange.update("AAPL", &quote(3, 101));
    exchange.refresh("AAPL", &quote(4, 102));
    exchange.read_all(&mut client);
    let asks: Vec<_> = client.on(5).iter().map(|received| received.values.clone()).collect();
    let ask = |value| Values::from([(fid::ASK, value)]);
    assert_eq!(asks, [ask(100), ask(101), ask(102)]);
    // Again for all fields: a new image.
    exchange.say(&client, &item(5, "AAPL"));
    exchange.read_all(&mut client);
    assert_eq!(client.on(5)[3].values, quote(4, 102));
}

/// A request with what may be longer than an item's.
fn batch(id: i32, key: Key<'_>, payload: &RequestPayload<'_>) -> Vec<u8> {
    let mut header = RequestHeader::new(Domain::MARKET_PRICE, id, key);
    header.flags = flags::request::STREAMING;
    payload.mark(&mut header);
    let mut bytes = vec![0; 128 << 10];
    let len = header.encode_with(&mut bytes, |room| payload.encode(room)).unwrap();
    bytes.truncate(len);
    bytes
}

#[test]
fn the_items_of_a_batch_have_its_view_and_the_last_of_them_ends_it() {
    let mut exchange = Exchange::new(Settings { max_views: 1, ..Settings::default() });
    let names: [&[u8]; 3] = [b"AAPL", b"MSFT", b"NONE"];
    exchange.refresh("AAPL", &quote(1, 100));
    exchange.refresh("MSFT", &quote(2, 200));
    let mut client = exchange.client(ROOM);
    let ask = View::Fids(List::Given(&[fid::ASK.0]));
    let payload =
        RequestPayload { items: Some(List::Given(&names)), view: Some(ask), ..RequestPayload::default() };
    exchange.say(&client, &batch(10, Key { service_id: Some(1), ..Key::default() }, &payload));
    exchange.update("MSFT", &bid(3));
    exchange.update("MSFT", &Values::from([(fid::ASK, 201)]));
    exchange.read_all(&mut client);
    let asked = |ask| Some(Values::from([(fid::ASK, ask)]));
    assert_eq!([client.folded(11), client.folded(12), client.folded(13)], [asked(100), asked(201), None]);
    assert_eq!(classes(&client, 12), [MessageClass::REFRESH, MessageClass::UPDATE]);
    // There is room for another one when all are closed, and not before.
    for (id, is_viewed) in [(20, false), (21, true)] {
        exchange.say(&client, &item_view(id, "AAPL", &[fid::BID.0]));
        exchange.read_all(&mut client);
        assert_eq!(client.folded(id), Some(if is_viewed { bid(1) } else { quote(1, 100) }));
        (11..14).for_each(|id| exchange.say(&client, &close(id)));
    }
}

#[test]
fn a_view_is_worked_out_once_however_often_a_batch_names_a_stream() {
    let mut exchange = Exchange::new(Settings::default());
    exchange.refresh("AAPL", &quote(1, 100));
    let mut client = exchange.client(ROOM);
    exchange.say(&client, &item(5, "AAPL"));
    exchange.read_all(&mut client);
    let again = |fids: &[i16]| {
        let view = Some(View::Fids(List::Given(fids)));
        let streams = Some(List::Given(&[5; 10_000][..]));
        batch(6, Key::default(), &RequestPayload { streams, view, ..RequestPayload::default() })
    };
    for (most, is_viewed) in [(1_024, true), (1_025, false), (30_000, false)] {
        let fids: Vec<i16> = (0..most).map(|number| 25 + number).collect();
        let request = again(&fids);
        let made = allocation_counter::measure(|| exchange.say(&client, &request));
        assert!(made.bytes_total < 1 << 20, "{most} fields: {} bytes", made.bytes_total);
        exchange.read_all(&mut client);
        let last = client.on(5).last().unwrap().values.clone();
        assert_eq!(last.contains_key(&fid::BID), !is_viewed, "{most} fields");
    }
}

#[test]
fn what_nobody_has_is_not_found_or_waited_for() {
    let mut exchange = Exchange::new(Settings { unknown: Unknown::Closed, ..Settings::default() });
    let mut client = exchange.client(ROOM);
    exchange.say(&client, &item(5, "AAPL"));
    let other = Key::item(77, b"AAPL");
    exchange.say(&client, &request(Domain::MARKET_PRICE, 6, flags::request::STREAMING, other));
    exchange.read_all(&mut client);
    assert_eq!(client.on(5)[0].state, Some((StreamState::CLOSED, DataState::SUSPECT, StateCode::NOT_FOUND)));
    assert_eq!(client.on(6)[0].state.unwrap().2, StateCode::SOURCE_UNKNOWN);

    let mut exchange = Exchange::new(Settings { unknown: Unknown::Wait, ..Settings::default() });
    let mut client = exchange.client(ROOM);
    exchange.say(&client, &item(5, "AAPL"));
    exchange.read_all(&mut client);
    assert_eq!(client.on(5)[0].state, Some((StreamState::OPEN, DataState::SUSPECT, StateCode::NONE)));
    exchange.refresh("AAPL", &quote(1, 100));
    exchange.update("AAPL", &bid(2));
    exchange.read_all(&mut client);
    assert_eq!(classes(&client, 5), [MessageClass::STATUS, MessageClass::REFRESH, MessageClass::UPDATE]);
    assert_eq!(client.folded(5), Some(quote(2, 100)));
}

#[test]
fn a_service_is_down_until_the_plant_says_something() {
    let mut exchange = Exchange::down(Settings::default());
    let mut client = exchange.client(ROOM);
    exchange.say(&client, &item(5, "AAPL"));
    exchange.read_all(&mut client);
    assert_eq!(client.on(5)[0].state.unwrap().0, StreamState::CLOSED_RECOVER);
    let before = client.on(0x4000_0000).len();
    exchange.refresh("AAPL", &quote(1, 100));
    exchange.say(&client, &item(6, "AAPL"));
    exchange.read_all(&mut client);
    assert_eq!(client.on(0x4000_0000).len(), before + 1);
    assert_eq!(client.folded(6), Some(quote(1, 100)));
}

#[test]
fn a_channel_in_doubt_is_a_group_in_doubt_and_a_suspect_image() {
    let mut exchange = Exchange::new(Settings::default());
    exchange.refresh("AAPL", &quote(1, 100));
    let mut client = exchange.client(ROOM);
    exchange.say(&client, &item(5, "AAPL"));
    exchange.read_all(&mut client);
    let before = client.on(0x4000_0000).len();
    exchange.status(0, DataState::SUSPECT, tick::Flags::GAP | tick::Flags::SUSPECT);
    // Which says nothing of the data.
    exchange.status(0, DataState::NO_CHANGE, tick::Flags::END_OF_SESSION | tick::Flags::SUSPECT);
    exchange.say(&client, &item(6, "AAPL"));
    exchange.read_all(&mut client);
    assert_eq!(client.on(0x4000_0000).len(), before + 1);
    assert_eq!(client.on(6)[0].state.unwrap().1, DataState::SUSPECT);
    assert_eq!(client.on(5)[0].group, client.on(6)[0].group);
    assert_ne!(client.on(5)[0].group.as_deref(), Some(&[0, 0][..]), "as items without a group have it");
    exchange.status(0, DataState::OK, tick::Flags::STATE);
    exchange.say(&client, &item(7, "AAPL"));
    exchange.read_all(&mut client);
    assert_eq!(client.on(0x4000_0000).len(), before + 2);
    assert_eq!(client.on(7)[0].state.unwrap().1, DataState::OK);
}

#[test]
fn who_is_behind_is_conflated_and_gets_one_image_for_all_it_missed() {
    let mut exchange = Exchange::new(Settings::default());
    exchange.refresh("AAPL", &quote(1, 100));
    let (mut slow, mut quick) = (exchange.client(4096), exchange.client(ROOM));
    for client in [&slow, &quick] {
        exchange.say(client, &item(5, "AAPL"));
    }
    for value in 2..1000 {
        exchange.update("AAPL", &bid(value));
        exchange.read(&mut quick, usize::MAX);
    }
    exchange.read_all(&mut slow);
    exchange.read_all(&mut quick);
    assert_eq!(quick.on(5).len(), 999);
    let last = slow.on(5).last().copied().unwrap().clone();
    assert_eq!((last.class, last.is_solicited), (MessageClass::REFRESH, false));
    assert_eq!(
        (slow.folded(5), slow.on(5).iter().filter(|got| got.class == MessageClass::REFRESH).count()),
        (Some(quote(999, 100)), 2)
    );
    exchange.update("AAPL", &bid(1000));
    exchange.read_all(&mut slow);
    assert_eq!(slow.on(5).last().unwrap().values, bid(1000));
}

#[test]
fn an_update_before_a_first_image_is_in_it_and_was_not_conflated() {
    for settings in [
        Settings { unknown: Unknown::Wait, ..cut(10_000) },
        Settings { unknown: Unknown::Wait, ..Settings::default() },
    ] {
        let mut exchange = Exchange::new(settings);
        // Room for a few images alone.
        let mut client = exchange.client(4096);
        let names: Vec<String> = (0..200).map(|at| format!("I{at}")).collect();
        for (name, stream) in names.iter().zip(5..) {
            exchange.say(&client, &item(stream, name));
            exchange.read_all(&mut client);
        }
        names.iter().for_each(|name| exchange.refresh(name, &quote(1, 100)));
        names.iter().for_each(|name| exchange.update(name, &bid(2)));
        exchange.read_all(&mut client);
        assert!((5..205).all(|stream| client.folded(stream) == Some(quote(2, 100))));
        let counters = exchange.hub.seen().next().unwrap().counters;
        // Those whose image found room before the update.
        let others = counters.updates + counters.conflated;
        assert_eq!(counters.refreshes, 200 + counters.conflated);
        assert!((1..100).contains(&others), "{others}");
    }
}

#[test]
fn who_is_too_slow_for_every_update_is_cut_and_nobody_else() {
    let mut exchange = Exchange::new(cut(100));
    exchange.refresh("AAPL", &quote(1, 100));
    let (mut slow, mut late, mut quick) =
        (exchange.client(4096), exchange.client(4096), exchange.client(ROOM));
    for client in [&slow, &late, &quick] {
        exchange.say(client, &item(5, "AAPL"));
    }
    for value in 2..=1000 {
        exchange.update("AAPL", &bid(value));
        if value % 50 == 0 {
            exchange.read_all(&mut late);
        }
    }
    // It has a moment to take the reason.
    assert_eq!(exchange.over(), None);
    exchange.pass(2001);
    assert_eq!(exchange.over(), Some(slow.session));
    assert_eq!(exchange.over(), None);
    for client in [&mut late, &mut quick] {
        exchange.read_all(client);
        let bids: Vec<i64> = client.on(5).iter().map(|received| received.values[&fid::BID]).collect();
        assert_eq!(bids, (1..=1000).collect::<Vec<_>>());
    }
    let gone = exchange.notes().into_iter().find_map(|note| match note {
        HubEvent::Gone { session, end, .. } => Some((session, end)),
        _ => None,
    });
    assert_eq!(gone, Some((slow.session, End::Slow(TooMuch::Messages(100)))));
    assert_eq!(exchange.hub.counters().cut, 1);
    assert_eq!(exchange.read(&mut slow, 1), 0);
}

#[test]
fn nothing_that_is_said_later_overtakes_the_updates_that_wait() {
    let mut exchange = Exchange::new(cut(10_000));
    exchange.refresh("AAPL", &quote(1, 100));
    let mut client = exchange.client(4096);
    exchange.say(&client, &item(5, "AAPL"));
    for value in 2..=1000 {
        exchange.update("AAPL", &bid(value));
    }
    // Room for a few of those that wait, and for what is not theirs.
    exchange.read(&mut client, 30);
    exchange.status(0, DataState::SUSPECT, tick::Flags::GAP | tick::Flags::SUSPECT);
    exchange.update("AAPL", &bid(1001));
    exchange.read_all(&mut client);
    let order: Vec<_> = client
        .received
        .iter()
        .filter(|received| received.domain == Domain::SOURCE || received.values.contains_key(&fid::BID))
        .map(|received| received.values.get(&fid::BID).copied())
        .collect();
    let expected: Vec<_> =
        std::iter::once(None).chain((1..=1000).map(Some)).chain([None, Some(1001)]).collect();
    assert_eq!(order, expected);
}

#[test]
fn who_takes_nothing_at_all_is_cut_in_the_end() {
    for slow in [SlowPolicy::Conflate, SlowPolicy::Cut { bytes: 1 << 20, messages: 1 << 20 }] {
        let mut exchange = Exchange::new(Settings { slow, stuck_ms: 1000, ..Settings::default() });
        exchange.refresh("AAPL", &quote(1, 100));
        let mut client = exchange.client(4096);
        exchange.say(&client, &item(5, "AAPL"));
        for value in 2..1000 {
            exchange.update("AAPL", &bid(value));
        }
        exchange.pass(900);
        assert_eq!(exchange.over(), None);
        // One message is a sign of life.
        assert_eq!(exchange.read(&mut client, 20), 20);
        exchange.pass(900);
        assert_eq!(exchange.over(), None);
        exchange.update("AAPL", &bid(1000));
        for value in 0..1000 {
            exchange.update("AAPL", &bid(value));
        }
        exchange.pass(10);
        exchange.pass(1001);
        assert_eq!(exchange.over(), None, "it is told first");
        exchange.pass(2001);
        assert_eq!(exchange.over(), Some(client.session));
        assert_eq!((exchange.hub.counters().cut, exchange.hub.counters().stuck), (1, 1));
    }
}

#[test]
fn a_number_that_is_used_again_is_another_client() {
    let mut exchange = Exchange::new(Settings::default());
    exchange.refresh("AAPL", &quote(1, 100));
    let first = exchange.client(ROOM);
    exchange.say(&first, &item(5, "AAPL"));
    exchange.leave(&first);
    let mut second = exchange.client(ROOM);
    assert_eq!(first.session, second.session);
    exchange.update("AAPL", &bid(2));
    exchange.read_all(&mut second);
    assert!(second.on(5).is_empty());
    assert_eq!(exchange.hub.sessions(), 1);
}

#[test]
fn ticks_that_are_missing_put_everything_in_doubt() {
    let mut exchange = Exchange::new(Settings::default());
    exchange.refresh("AAPL", &quote(1, 100));
    let mut frame = None;
    for value in 2..5 {
        exchange.update("AAPL", &bid(value));
        frame = Some(exchange.last());
    }
    let mut frame = frame.unwrap();
    let seq = u64::from_le_bytes(frame[..8].try_into().unwrap());
    frame[..8].copy_from_slice(&(seq + 3).to_le_bytes());
    exchange.frame(&frame);
    assert_eq!(exchange.hub.counters().missing, 2);
    let mut client = exchange.client(ROOM);
    exchange.say(&client, &item(5, "AAPL"));
    exchange.read_all(&mut client);
    assert_eq!(client.on(5)[0].state.unwrap().1, DataState::SUSPECT);
    // That the feed is well again brings back nothing of it; a new session, which begins with blank images, does.
    for (flags, data) in [(tick::Flags::STATE, DataState::SUSPECT), (tick::Flags::RESET, DataState::OK)] {
        exchange.status(0, DataState::OK, flags);
        let mut client = exchange.client(ROOM);
        exchange.say(&client, &item(5, "AAPL"));
        exchange.read_all(&mut client);
        assert_eq!(client.on(5)[0].state.unwrap().1, data);
    }
}

/// What can happen.
#[derive(Clone, Debug)]
enum Step {
    Refresh(usize),
    Update(usize, bool),
    Open(usize, usize, bool),
    Close(usize, usize),
    Read(usize, usize),
    Leave(usize),
    Pass,
}

const NAMES: [&str; 3] = ["A", "B", "C"];
const CLIENTS: usize = 3;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (item, client) = (0..NAMES.len(), 0..CLIENTS);
    let step = prop_oneof![
        1 => item.clone().prop_map(Step::Refresh),
        12 => (item.clone(), any::<bool>()).prop_map(|(item, both)| Step::Update(item, both)),
        2 => (client.clone(), item, any::<bool>()).prop_map(|(client, item, view)| Step::Open(client, item, view)),
        1 => (client.clone(), 0..8_usize).prop_map(|(client, at)| Step::Close(client, at)),
        4 => (client.clone(), 0..40_usize).prop_map(|(client, most)| Step::Read(client, most)),
        1 => client.prop_map(Step::Leave),
        1 => Just(Step::Pass),
    ];
    prop::collection::vec(step, 0..300)
}

/// An open stream of a client's, or one that was.
struct Stream {
    id: i32,
    item: usize,
    is_view: bool,
    is_open: bool,
}

/// Whatever happens: each stream is an image of what its item was at one moment and all updates from there on, or (where a
/// client that is behind is conflated) another such image; nothing else, nothing twice; and at the end what the item is now.
fn any_day(slow: SlowPolicy, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let settings = Settings { slow, stuck_ms: u64::MAX / 2_000_000, ..Settings::default() };
    let mut exchange = Exchange::new(settings);
    let rooms = [2048, 8192, ROOM];
    let mut clients: Vec<(Client, Vec<Stream>)> =
        rooms.iter().map(|room| (exchange.client(*room), Vec::new())).collect();
    // All that an item ever was, by its bid, which goes up with each change; and which change it was that changed the ask.
    let mut past: Vec<BTreeMap<i64, Values>> = vec![BTreeMap::new(); NAMES.len()];
    let mut turn = 0;
    for (name, past) in NAMES.iter().zip(&mut past) {
        turn += 1;
        exchange.refresh(name, &quote(turn, turn));
        past.insert(turn, quote(turn, turn));
    }
    for step in steps {
        match step {
            Step::Refresh(at) => {
                turn += 1;
                exchange.refresh(NAMES[at], &quote(turn, turn));
                past[at].insert(turn, quote(turn, turn));
            }
            Step::Update(at, both) => {
                turn += 1;
                let mut now = past[at].last_key_value().unwrap().1.clone();
                let change = if both { quote(turn, turn) } else { bid(turn) };
                exchange.update(NAMES[at], &change);
                now.extend(change);
                past[at].insert(turn, now);
            }
            Step::Open(of, at, is_view) => {
                let (client, streams) = &mut clients[of];
                let id = client.stream();
                let asked =
                    if is_view { item_view(id, NAMES[at], &[fid::ASK.0]) } else { item(id, NAMES[at]) };
                exchange.say(client, &asked);
                streams.push(Stream { id, item: at, is_view, is_open: true });
            }
            Step::Close(of, at) => {
                let (client, streams) = &mut clients[of];
                if let Some(stream) = streams.get_mut(at) {
                    exchange.say(client, &close(stream.id));
                    stream.is_open = false;
                }
            }
            Step::Read(of, most) => {
                exchange.read(&mut clients[of].0, most);
            }
            Step::Leave(of) => {
                exchange.leave(&clients[of].0);
                check(&clients[of], &past, slow, false)?;
                clients[of] = (exchange.client(rooms[of]), Vec::new());
            }
            Step::Pass => exchange.pass(10),
        }
    }
    for (client, _) in &mut clients {
        exchange.read_all(client);
    }
    prop_assert_eq!(exchange.over(), None);
    clients.iter().try_for_each(|client| check(client, &past, slow, true))
}

fn check(
    (client, streams): &(Client, Vec<Stream>),
    past: &[BTreeMap<i64, Values>],
    slow: SlowPolicy,
    is_all_read: bool,
) -> Result<(), TestCaseError> {
    for stream in streams {
        let past = &past[stream.item];
        let viewed = |values: &Values| -> Values {
            values
                .iter()
                .filter(|(fid, _)| !stream.is_view || **fid == fid::ASK)
                .map(|(f, v)| (*f, *v))
                .collect()
        };
        let mut now: Option<Values> = None;
        let (mut missed, mut is_told) = (0, false);
        for received in client.on(stream.id) {
            prop_assert!(!is_told || received.class == MessageClass::REFRESH);
            is_told = false;
            match received.class {
                MessageClass::REFRESH => {
                    // A feed's own refresh, or the one image that was asked for, unless who is behind is conflated.
                    prop_assert!(past.values().any(|then| viewed(then) == received.values));
                    if let Some(before) = &now {
                        prop_assert!(before[&fid::ASK] <= received.values[&fid::ASK]);
                    }
                    now = Some(received.values.clone());
                }
                MessageClass::UPDATE => {
                    let before = now.clone().expect("an image comes first");
                    let mut next = before.clone();
                    next.extend(received.values.clone());
                    if !stream.is_view {
                        let follows = past.range(before[&fid::BID] + 1..).next();
                        prop_assert_eq!(follows.map(|(_, then)| then), Some(&next), "none left out");
                    } else {
                        let follows =
                            past.values().map(&viewed).find(|then| then[&fid::ASK] > before[&fid::ASK]);
                        prop_assert_eq!(follows, Some(next.clone()), "none left out");
                    }
                    now = Some(next);
                }
                MessageClass::STATUS if matches!(slow, SlowPolicy::DropWithGap { .. }) => {
                    let said = (StreamState::OPEN, DataState::SUSPECT, StateCode::GAP_DETECTED);
                    prop_assert_eq!(received.state, Some(said));
                    missed += 1;
                    // Nothing but an image can follow.
                    is_told = true;
                    continue;
                }
                other => prop_assert!(false, "{other:?} on a stream that nobody ends"),
            }
        }
        if stream.is_open && is_all_read {
            let last = past.last_key_value().map(|(_, last)| viewed(last));
            prop_assert_eq!(now, last, "it ends with what the item is");
        }
        if !matches!(slow, SlowPolicy::Conflate) {
            let images = client.on(stream.id).iter().filter(|got| got.is_solicited).count();
            let refreshes: Vec<_> =
                client.on(stream.id).into_iter().filter(|got| got.class == MessageClass::REFRESH).collect();
            prop_assert!(images <= 1);
            // Besides the image, and one for each time that it missed something, only what the feed itself sent as a whole: bid
            // and ask are of one change then.
            let own = |got: &&&exchange::Received| got.values[&fid::BID] != got.values[&fid::ASK];
            let others = if stream.is_view { 0 } else { refreshes.iter().skip(1).filter(own).count() };
            prop_assert!(others <= missed, "{} images for {} gaps", others, missed);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn conflated_clients_end_with_what_is(steps in steps()) {
        any_day(SlowPolicy::Conflate, steps)?;
    }

    #[test]
    fn clients_that_miss_something_are_told(steps in steps(), messages in 0..40_usize) {
        any_day(SlowPolicy::DropWithGap { bytes: 1 << 12, messages }, steps)?;
    }

    #[test]
    fn other_clients_get_every_update(steps in steps()) {
        any_day(SlowPolicy::Cut { bytes: 1 << 22, messages: 1 << 20 }, steps)?;
    }
}
