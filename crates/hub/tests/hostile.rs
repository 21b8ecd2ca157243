//! Clients and rings that say anything.
use crate::exchange;

use exchange::{Exchange, bid, close, item, item_of, item_view, message, quote, request};
use proptest::collection::vec;
use proptest::prelude::*;
use tapeline_hub::{Posts, Service, Settings, SlowPolicy, Unknown};
use tapeline_omm::State;
use tapeline_omm::domain::directory::Group;
use tapeline_omm::domain::{OwnedState, ServicePart};
use tapeline_omm::rwf::{
    AckHeader, DataState, DataType, Domain, GenericHeader, Key, MessageClass, PostHeader, PostUserInfo,
    RefreshHeader, StatusHeader, StreamState, flags,
};
use tapeline_plant::demand::{Answer, ItemName, Ticket};
use tapeline_plant::tick::Tick;

/// A message or a tick, and where it is damaged.
type Damage = (usize, Vec<(usize, u8)>, usize);

fn damage() -> impl Strategy<Value = Damage> {
    (0..8_usize, vec((0..200_usize, any::<u8>()), 0..4), 0..400_usize)
}

fn damaged(mut bytes: Vec<u8>, (_, flips, keep): &Damage) -> Vec<u8> {
    for (at, to) in flips {
        if let Some(byte) = bytes.get_mut(*at) {
            *byte = *to;
        }
    }
    bytes.truncate(*keep);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever one client sends, the other one gets every update.
    #[test]
    fn a_client_that_says_anything_harms_nobody(sent in vec(damage(), 0..60), is_cut in any::<bool>()) {
        let slow = if is_cut { SlowPolicy::Cut { bytes: 4096, messages: 100 } } else { SlowPolicy::Conflate };
        let mut exchange = Exchange::new(Settings { slow, max_malformed: 20, ..Settings::default() });
        exchange.refresh("AAPL", &quote(1, 1));
        let (bad, mut good) = (exchange.client(2048), exchange.client(1 << 20));
        exchange.say(&good, &item(5, "AAPL"));
        for (turn, damage) in (2..).zip(&sent) {
            let message = match damage.0 {
                0 => item(7, "AAPL"),
                1 => item(8, "NONE"),
                2 => item_view(9, "AAPL", &[22, 25]),
                3 => close(7),
                _ => vec![0x55; 64],
            };
            exchange.say(&bad, &damaged(message, damage));
            exchange.update("AAPL", &bid(turn));
            exchange.pass(10);
            while let Some(over) = exchange.over() {
                prop_assert_eq!(over, bad.session);
            }
        }
        exchange.read_all(&mut good);
        let updates = good.on(5).iter().filter(|got| got.class == MessageClass::UPDATE).count();
        prop_assert_eq!(updates, sent.len());
    }

    /// Whatever stands on the ring, the hub goes on, and so do items that are not damaged.
    #[test]
    fn ticks_that_say_anything_are_counted_and_passed_over(damages in vec(damage(), 0..60)) {
        let mut exchange = Exchange::new(Settings { max_items: 100, ..Settings::default() });
        let mut client = exchange.client(1 << 20);
        // Known by its number from the first: a damaged number could be the next one, and take it.
        exchange.refresh("GOOD", &quote(0, 0));
        for (turn, damage) in (1..).zip(&damages) {
            exchange.refresh("BAD", &quote(turn, turn));
            let frame = damaged(exchange.last(), damage);
            if Tick::parse(&frame).is_ok() {
                exchange.frame(&frame);
            }
        }
        exchange.refresh("GOOD", &quote(7, 7));
        exchange.say(&client, &item(5, "GOOD"));
        exchange.read_all(&mut client);
        prop_assert_eq!(client.folded(5), Some(quote(7, 7)));
    }

    /// Whatever sources answer and providers' services say, and whatever one client asks of them: what waits for the sources
    /// is bounded, and a client of another service gets every update.
    #[test]
    fn sources_that_say_anything_harm_nobody_elses_items(
        events in vec((0..16_u8, 0..4_u64, damage(), any::<bool>()), 0..120),
        on_demand in any::<bool>(),
        is_cached in any::<bool>(),
        is_cut in any::<bool>(),
    ) {
        let slow = if is_cut { SlowPolicy::Cut { bytes: 4096, messages: 100 } } else { SlowPolicy::Conflate };
        let bad_service =
            Service { on_demand, is_cached, posts: Posts::Forward, request_timeout_ms: 50, ..Service::new("BAD", BAD) };
        let good_service = Service { on_demand: false, unknown: Unknown::Closed, ..Service::new("GOOD", GOOD) };
        let limits = Settings { max_demands: 20, max_private: 10, max_receipts: 10, ..Settings::default() };
        let settings = Settings { slow, services: vec![bad_service, good_service], ..limits };
        let mut exchange = Exchange::new(settings);
        exchange.up(BAD, true);
        exchange.up(GOOD, true);
        exchange.publish(GOOD, "A", &quote(1, 1));
        let (mut bad, mut good) = (exchange.client(2048), exchange.client(1 << 20));
        exchange.say(&good, &item_of(GOOD, 5, "A"));
        for (turn, (event, number, damage, is_whole)) in (2..).zip(&events) {
            let (name, id) = (["A", "B", "C", "D"][*number as usize], 10 + *number as i32);
            let keep = |bytes: Vec<u8>| if *is_whole { bytes } else { damaged(bytes, damage) };
            let item = ItemName { service: BAD, domain: Domain::MARKET_PRICE, name: name.into() };
            let ticket = Ticket(*number);
            match event {
                0 | 1 => exchange.say(&bad, &keep(item_of(BAD, id, name))),
                2 => exchange.say(&bad, &keep(private(id + 10, name))),
                3 => exchange.say(&bad, &keep(post(id, *number as u32))),
                4 => exchange.say(&bad, &keep(post(1, *number as u32))),
                5 => exchange.say(&bad, &keep(generic(id))),
                6 => exchange.say(&bad, &keep(close(id + i32::from(*is_whole) * 10))),
                7 => exchange.publish(BAD, name, &quote(turn, turn)),
                8 => exchange.change(BAD, name, &bid(turn)),
                9 => {
                    exchange.publish(BAD, name, &quote(turn, turn));
                    let frame = keep(exchange.last());
                    if Tick::parse(&frame).is_ok() {
                        exchange.frame(&frame);
                    }
                }
                10 => exchange.answer(Answer::Status { item, message: keep(status(*number)).into() }),
                11 => exchange.answer(Answer::Private { ticket, message: keep(refresh()).into() }),
                12 => exchange.answer(Answer::Private { ticket, message: keep(status(*number)).into() }),
                13 => exchange.answer(Answer::Ack { ticket, message: keep(receipt()).into() }),
                14 => exchange.answer(Answer::Generic { item, message: keep(generic(0)).into() }),
                _ if *is_whole => drop(exchange.demands()),
                _ => exchange.service(BAD, vec![group(*number)]),
            }
            exchange.change(GOOD, "A", &bid(turn));
            exchange.pass(10);
            exchange.read(&mut bad, 3);
            while let Some(over) = exchange.over() {
                prop_assert_eq!(over, bad.session);
            }
            prop_assert!(exchange.hub.demands() <= 20 + 10 + 100, "{} demands", exchange.hub.demands());
            prop_assert!(exchange.hub.private_streams() <= 10 && exchange.hub.awaited_receipts() <= 10);
        }
        exchange.read_all(&mut good);
        let updates = good.on(5).iter().filter(|got| got.class == MessageClass::UPDATE).count();
        prop_assert_eq!(updates, events.len());
        // Nothing is left of who goes.
        exchange.leave(&bad);
        exchange.demands();
        prop_assert_eq!((exchange.hub.private_streams(), exchange.hub.awaited_receipts()), (0, 0));
    }
}

const BAD: u16 = 7;
const GOOD: u16 = 8;

fn private(id: i32, name: &str) -> Vec<u8> {
    let key = Key::item(BAD, name.as_bytes());
    request(Domain::MARKET_PRICE, id, flags::request::STREAMING | flags::request::PRIVATE_STREAM, key)
}

fn post(id: i32, post_id: u32) -> Vec<u8> {
    let user = PostUserInfo::default();
    let header = PostHeader {
        flags: flags::post::ACK | flags::post::POST_COMPLETE,
        post_id: Some(post_id),
        key: Some(Key::item(BAD, b"A")),
        ..PostHeader::new(Domain::MARKET_PRICE, id, user, DataType::NO_DATA)
    };
    message(|room| header.encode(room))
}

fn generic(id: i32) -> Vec<u8> {
    message(|room| GenericHeader::new(Domain::MARKET_PRICE, id, DataType::NO_DATA).encode(room))
}

fn refresh() -> Vec<u8> {
    let header = RefreshHeader {
        flags: flags::refresh::REFRESH_COMPLETE,
        ..RefreshHeader::new(Domain::MARKET_PRICE, 0, State::OPEN_OK, DataType::NO_DATA)
    };
    message(|room| header.encode(room))
}

fn state(number: u64) -> State<'static> {
    let stream =
        [StreamState::OPEN, StreamState::CLOSED, StreamState::CLOSED_RECOVER, StreamState::NON_STREAMING];
    State { stream: stream[number as usize], data: DataState::SUSPECT, ..State::OPEN_OK }
}

fn status(number: u64) -> Vec<u8> {
    let header = StatusHeader { state: Some(state(number)), ..StatusHeader::new(Domain::MARKET_PRICE, 0) };
    message(|room| header.encode(room))
}

fn receipt() -> Vec<u8> {
    message(|room| AckHeader::new(Domain::MARKET_PRICE, 0, 1).encode(room))
}

/// What the group of all items becomes.
fn group(number: u64) -> ServicePart {
    let status = Some(OwnedState::from(state(number)));
    ServicePart::Group(Group { group: Some(b"\x07\x07"[..].into()), status, ..Group::default() })
}
