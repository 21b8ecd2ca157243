//! Clients that do not take what they are sent: what becomes of them under each policy, and that nobody else notices.
use crate::exchange;

use exchange::{Client, Exchange, bid, item, item_of, message, quote, request};
use tapeline_hub::{End, HubEvent, Service, SessionCounters, Settings, SlowPolicy, TooMuch};
use tapeline_omm::rwf::{
    DataState, DataType, Domain, Flags, Header, Key, MessageClass, MessageView, Priority, RefreshHeader,
    StateCode, StreamState, UpdateHeader, UpdateType, flags,
};
use tapeline_omm::{State, fid};
use tapeline_plant::demand::{Answer, Demand, ItemName, Ticket};

const ROOM: usize = 1 << 20;
/// Of a connection that is soon full.
const NARROW: usize = 4096;

/// A hub with this policy, a client that reads and one that does not, both with one item.
fn market(settings: Settings) -> (Exchange, Client, Client) {
    let mut exchange = Exchange::new(settings);
    exchange.refresh("AAPL", &quote(1, 100));
    let (slow, good) = (exchange.client(NARROW), exchange.client(ROOM));
    exchange.say(&slow, &item(5, "AAPL"));
    exchange.say(&good, &item(5, "AAPL"));
    (exchange, slow, good)
}

fn updates(exchange: &mut Exchange, values: std::ops::RangeInclusive<i64>) {
    for value in values {
        exchange.update("AAPL", &bid(value));
    }
}

/// Whoever reads got every bid from 1 on, once.
fn assert_whole(exchange: &mut Exchange, good: &mut Client, last: i64) {
    exchange.read_all(good);
    let bids: Vec<i64> = good.on(5).iter().map(|received| received.values[&fid::BID]).collect();
    assert_eq!(bids, (1..=last).collect::<Vec<_>>());
}

/// Why a client is gone, and what it did.
fn gone(exchange: &mut Exchange) -> Option<(End, SessionCounters)> {
    exchange.notes().into_iter().find_map(|note| match note {
        HubEvent::Gone { end, counters, .. } => Some((end, counters)),
        _ => None,
    })
}

#[test]
fn what_finds_no_room_is_dropped_and_the_stream_told() {
    let slow = SlowPolicy::DropWithGap { bytes: 1 << 20, messages: 100 };
    let (mut exchange, mut slow, mut good) = market(Settings { slow, ..Settings::default() });
    updates(&mut exchange, 2..=1000);
    exchange.read_all(&mut slow);
    let got = slow.on(5);
    // What the connection held and what waited, in order; then the word, then what the item is now.
    let kept = got.len() - 2;
    let bids: Vec<i64> = got[..kept].iter().map(|received| received.values[&fid::BID]).collect();
    assert_eq!(bids, (1..=kept as i64).collect::<Vec<_>>());
    let said = (StreamState::OPEN, DataState::SUSPECT, StateCode::GAP_DETECTED);
    assert_eq!((got[kept].class, got[kept].state), (MessageClass::STATUS, Some(said)));
    assert_eq!((got[kept + 1].class, &got[kept + 1].values), (MessageClass::REFRESH, &quote(1000, 100)));
    assert_eq!(got[kept + 1].state.unwrap().1, DataState::OK);
    // It goes on from there.
    updates(&mut exchange, 1001..=1002);
    exchange.read_all(&mut slow);
    assert_eq!(slow.on(5).last().unwrap().values, bid(1002));
    assert_whole(&mut exchange, &mut good, 1002);
    exchange.leave(&slow);
    let (_, counters) = gone(&mut exchange).unwrap();
    assert_eq!((counters.queued, counters.gaps), (100, 1));
    assert_eq!(counters.dropped as usize + kept, 1000);
}

#[test]
fn what_has_waited_for_too_long_is_dropped_with_what_came_behind_it() {
    let slow = SlowPolicy::DropWithGap { bytes: 1 << 20, messages: 100_000 };
    let settings = Settings { slow, slow_age_ms: 500, ..Settings::default() };
    let (mut exchange, mut slow, mut good) = market(settings);
    updates(&mut exchange, 2..=1000);
    exchange.pass(400);
    updates(&mut exchange, 1001..=1010);
    exchange.pass(200);
    exchange.read_all(&mut slow);
    let classes: Vec<_> = slow.on(5).iter().map(|received| received.class).collect();
    let told = classes.iter().position(|class| *class == MessageClass::STATUS).unwrap();
    assert_eq!(classes[told + 1..], [MessageClass::REFRESH]);
    assert_eq!(slow.folded(5), Some(quote(1010, 100)));
    assert_whole(&mut exchange, &mut good, 1010);
    exchange.leave(&slow);
    assert_eq!(gone(&mut exchange).unwrap().1.dropped as usize, 1010 - told);
}

#[test]
fn what_waits_for_too_long_ends_who_wants_every_update() {
    let (bytes, messages) = (1 << 20, 100_000);
    for (slow, age_ms) in [
        (SlowPolicy::Cut { bytes, messages }, 500),
        // Held back for as long as a client may take nothing, and no longer.
        (SlowPolicy::Block { bytes, messages }, 700),
    ] {
        let slow_age_ms = if matches!(slow, SlowPolicy::Cut { .. }) { age_ms } else { 0 };
        let settings = Settings { slow, slow_age_ms, stuck_ms: 700, ..Settings::default() };
        let (mut exchange, mut slow, mut good) = market(settings);
        updates(&mut exchange, 2..=1000);
        exchange.pass(age_ms - 10);
        // It reads, and never catches up.
        assert!(exchange.read(&mut slow, 3) == 3);
        updates(&mut exchange, 1001..=1002);
        exchange.pass(20);
        assert_eq!(exchange.over(), None, "it is told first");
        exchange.pass(2001);
        assert_eq!(exchange.over(), Some(slow.session));
        assert_eq!(gone(&mut exchange).unwrap().0, End::Slow(TooMuch::Age(age_ms)));
        assert_whole(&mut exchange, &mut good, 1002);
    }
}

#[test]
fn who_is_cut_hears_why_if_it_reads_at_all() {
    for (messages, reads) in [(100, true), (100, false)] {
        let slow = SlowPolicy::Cut { bytes: 1 << 20, messages };
        let (mut exchange, mut slow, mut good) = market(Settings { slow, ..Settings::default() });
        updates(&mut exchange, 2..=1000);
        assert_eq!(exchange.over(), None);
        if reads {
            exchange.read_all(&mut slow);
        } else {
            exchange.pass(1990);
            assert_eq!(exchange.over(), None);
            exchange.pass(10);
        }
        assert_eq!(exchange.over(), Some(slow.session));
        let last = slow.received.last().filter(|last| last.domain == Domain::LOGIN);
        assert_eq!(last.is_some_and(|last| last.class == MessageClass::STATUS), reads);
        if let Some(last) = last.filter(|_| reads) {
            let message = MessageView::parse(&last.bytes).unwrap();
            let state = message.header().unwrap().state().unwrap();
            assert_eq!((state.stream, state.data), (StreamState::CLOSED, DataState::SUSPECT));
            assert_eq!(state.text, b"too slow: more than 100 updates wait for it");
        }
        assert_eq!(gone(&mut exchange).unwrap().0, End::Slow(TooMuch::Messages(100)));
        assert_whole(&mut exchange, &mut good, 1000);
    }
}

#[test]
fn nothing_is_looked_at_for_who_has_no_room() {
    let (bytes, messages) = (1 << 20, 1 << 20);
    for slow in [
        SlowPolicy::Conflate,
        SlowPolicy::DropWithGap { bytes: 0, messages: 0 },
        SlowPolicy::DropWithGap { bytes, messages },
        SlowPolicy::Cut { bytes, messages },
        SlowPolicy::Block { bytes, messages },
    ] {
        let (mut exchange, stalled, mut good) = market(Settings { slow, ..Settings::default() });
        updates(&mut exchange, 2..=1000);
        let before = exchange.queues.1.clone();
        updates(&mut exchange, 1001..=2000);
        let lent = |session| exchange.queues.1[&session] - before[&session];
        // One way out for each update of who takes them, and none for who does not.
        assert_eq!((lent(good.session), lent(stalled.session)), (1000, 0), "{slow:?}");
        assert_whole(&mut exchange, &mut good, 2000);
    }
}

#[test]
fn one_client_can_have_a_policy_of_its_own() {
    let (mut exchange, mut slow, mut good) = market(Settings::default());
    exchange.hub.set_slow(slow.session, SlowPolicy::Cut { bytes: 1 << 20, messages: 10_000 });
    updates(&mut exchange, 2..=1000);
    assert_whole(&mut exchange, &mut slow, 1000);
    assert_whole(&mut exchange, &mut good, 1000);
}

/// Whether a source is asked to pause, of which stream.
fn is_pause(demand: &Demand) -> (Ticket, bool) {
    let Demand::Private { ticket, message } = demand else { panic!("{demand:?}") };
    let message = MessageView::parse(message).unwrap();
    let Ok(Header::Request(header)) = message.header() else { panic!("no request") };
    assert_eq!(header.key.name, Some(&b"MINE"[..]));
    (*ticket, header.flags.has(flags::request::PAUSE))
}

#[test]
fn a_source_that_is_one_clients_alone_is_held_back_until_it_reads() {
    const OWN: u16 = 7;
    let slow = SlowPolicy::Block { bytes: 1 << 20, messages: 10_000 };
    let services = vec![Service::new("OWN", OWN)];
    let mut exchange = Exchange::new(Settings { slow, services, ..Settings::default() });
    exchange.up(OWN, true);
    let mut client = exchange.client(NARROW);
    let own = Flags(flags::request::STREAMING.0 | flags::request::PRIVATE_STREAM.0);
    exchange.say(&client, &request(Domain::MARKET_PRICE, 5, own, Key::item(OWN, b"MINE")));
    let demands = exchange.demands();
    let [Demand::OpenPrivate { ticket, .. }] = demands[..] else { panic!("{demands:?}") };
    let refresh = message(|room| {
        let flags = flags::refresh::REFRESH_COMPLETE | flags::refresh::PRIVATE_STREAM;
        let header = RefreshHeader::new(Domain::MARKET_PRICE, 0, State::OPEN_OK, DataType::NO_DATA);
        RefreshHeader { flags, ..header }.encode(room)
    });
    exchange.answer(Answer::Private { ticket, message: refresh.into() });
    let update: Box<[u8]> = message(|room| {
        UpdateHeader::new(Domain::MARKET_PRICE, 0, UpdateType::QUOTE, DataType::NO_DATA).encode(room)
    })
    .into();
    let mut sent = 0;
    let mut demands = Vec::new();
    while demands.is_empty() {
        exchange.answer(Answer::Private { ticket, message: update.clone() });
        sent += 1;
        demands = exchange.demands();
    }
    assert_eq!(demands.iter().map(is_pause).collect::<Vec<_>>(), [(ticket, true)]);
    // What is on its way already still comes, and it is asked once.
    for _ in 0..10 {
        exchange.answer(Answer::Private { ticket, message: update.clone() });
    }
    assert_eq!(exchange.demands(), []);
    exchange.read_all(&mut client);
    assert_eq!(exchange.demands().iter().map(is_pause).collect::<Vec<_>>(), [(ticket, false)]);
    let updates = client.on(5).iter().filter(|got| got.class == MessageClass::UPDATE).count();
    assert_eq!(updates, sent + 10);
}

const OWN: u16 = 7;

/// A hub that holds back what it can, and a client of it that has an item of an interactive provider alone.
fn held_market() -> (Exchange, Client) {
    let slow = SlowPolicy::Block { bytes: 1 << 20, messages: 10_000 };
    let services = vec![Service::new("OWN", OWN)];
    let mut exchange = Exchange::new(Settings { slow, services, stuck_ms: 700, ..Settings::default() });
    exchange.up(OWN, true);
    let client = exchange.client(NARROW);
    exchange.say(&client, &item_of(OWN, 5, "MINE"));
    exchange.demands();
    exchange.publish(OWN, "MINE", &quote(1, 100));
    (exchange, client)
}

fn changes(exchange: &mut Exchange, values: std::ops::RangeInclusive<i64>) {
    for value in values {
        exchange.change(OWN, "MINE", &bid(value));
    }
}

fn mine() -> ItemName {
    ItemName { service: OWN, domain: Domain::MARKET_PRICE, name: "MINE".into() }
}

#[test]
fn the_source_of_an_item_that_one_client_alone_has_pauses_until_that_reads() {
    let (mut exchange, mut client) = held_market();
    changes(&mut exchange, 2..=500);
    exchange.pass(40);
    assert_eq!(exchange.demands(), [], "it may have room again at once");
    exchange.pass(20);
    assert_eq!(exchange.demands(), [Demand::Pause(mine())]);
    // What is on its way already still comes, and it is asked once.
    changes(&mut exchange, 501..=510);
    exchange.pass(20);
    assert_eq!(exchange.demands(), []);
    exchange.read_all(&mut client);
    assert_eq!(exchange.demands(), [Demand::Resume(mine())]);
    let values = client.on(5).into_iter().filter_map(|received| received.values.get(&fid::BID).copied());
    assert_eq!(values.collect::<Vec<_>>(), (1..=510).collect::<Vec<_>>(), "nothing is lost");
    exchange.publish(OWN, "MINE", &quote(900, 100));
    exchange.read_all(&mut client);
    assert_eq!(client.folded(5), Some(quote(900, 100)));
    exchange.leave(&client);
    assert_eq!(gone(&mut exchange).unwrap().1.held, 1);
}

#[test]
fn who_never_reads_is_cut_however_its_source_pauses() {
    let (mut exchange, client) = held_market();
    changes(&mut exchange, 2..=500);
    exchange.pass(60);
    assert_eq!(exchange.demands(), [Demand::Pause(mine())]);
    exchange.pass(650);
    assert_eq!(exchange.over(), None, "it is told first");
    exchange.pass(2001);
    assert_eq!(exchange.over(), Some(client.session));
    assert_eq!(gone(&mut exchange).unwrap().0, End::Slow(TooMuch::Age(700)));
    assert_eq!(exchange.demands(), [Demand::Close(mine())]);
}

#[test]
fn a_source_goes_on_for_who_comes_and_is_asked_for_an_image_of_now() {
    let (mut exchange, mut slow) = held_market();
    changes(&mut exchange, 2..=500);
    exchange.pass(60);
    assert_eq!(exchange.demands(), [Demand::Pause(mine())]);
    let mut other = exchange.client(ROOM);
    exchange.say(&other, &item_of(OWN, 5, "MINE"));
    let priority = Priority { class: 1, count: 2 };
    let demands =
        [Demand::Priority { item: mine(), priority }, Demand::Resume(mine()), Demand::Refresh(mine())];
    assert_eq!(exchange.demands(), demands);
    exchange.read_all(&mut other);
    assert_eq!(other.folded(5), None, "what is here is old");
    exchange.publish(OWN, "MINE", &quote(900, 100));
    changes(&mut exchange, 901..=905);
    exchange.read_all(&mut other);
    assert_eq!(other.folded(5), Some(quote(905, 100)));
    // It is not the slow one's alone, and is not held back for it again.
    exchange.pass(100);
    assert_eq!(exchange.demands(), []);
    exchange.read_all(&mut slow);
    assert_eq!(slow.folded(5), Some(quote(905, 100)));
}
