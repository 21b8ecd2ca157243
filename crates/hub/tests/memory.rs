//! Clients that take as much memory as they can get, beside what the settings say is the most.
use crate::exchange;

use exchange::{Client, Exchange, bid, close, item, item_of, item_view, message, quote};
use tapeline_hub::{End, HubEvent, MemoryBound, Service, Settings, SlowPolicy, TooMuch, Unknown};
use tapeline_omm::State;
use tapeline_omm::role::provider;
use tapeline_omm::rwf::{
    CloseHeader, DataType, Domain, Header, Map, MapAction, MapEncoder, MapHead, MessageView, RefreshHeader,
    flags,
};
use tapeline_plant::tick::Kind;

/// Of each session's connection, which is soon full; it is the test's, not the hub's.
const NARROW: usize = 512;

fn settings() -> Settings {
    Settings {
        slow: SlowPolicy::Cut { bytes: 64 << 10, messages: 100_000 },
        unknown: Unknown::Wait,
        max_items: 500,
        max_streams: 5_000,
        max_views: 50,
        cache_bytes: 1 << 20,
        image_bytes: 8 << 10,
        demand_bytes: 64 << 10,
        session: provider::ProviderSettings {
            most_streams: 500,
            owed_bytes: 16 << 10,
            ..provider::ProviderSettings::default()
        },
        ..Settings::default()
    }
}

/// A name as long as names may be.
fn name(number: i32) -> String {
    format!("{number:0>255}")
}

/// What a hub takes at most while `drive` has so many clients do with it what they like, and what was stated.
fn taken(
    settings: Settings,
    clients: usize,
    drive: impl Fn(&mut Exchange, &mut [Client]),
) -> (usize, MemoryBound) {
    let bound = settings.memory_bound(clients);
    let counted = allocation_counter::measure(|| {
        let mut exchange = Exchange::new(settings.clone());
        let mut clients: Vec<Client> = (0..clients).map(|_| exchange.client(NARROW)).collect();
        drive(&mut exchange, &mut clients);
    });
    (counted.bytes_max as usize, bound)
}

/// The bound holds, and says something: no part of it is more than so many times what was taken.
fn assert_bound(what: &str, taken: usize, bound: usize, times: usize) {
    assert!(taken <= bound, "{what}: {taken} bytes of {bound} at most");
    assert!(taken * times >= bound, "{what}: no more than {taken} bytes of {bound}");
}

#[test]
fn streams_that_nobody_reads_take_what_is_stated() {
    let (taken, bound) = taken(settings(), 30, |exchange, clients| {
        for (client, number) in clients.iter().zip(0..) {
            for stream in 5..600 {
                // Names of its own, then those that others have; opened, closed and opened again, and none is read.
                let name = name(number * 40 + stream % 40);
                exchange.say(client, &item(stream, &name));
                if stream % 3 == 0 {
                    exchange.say(client, &close(stream));
                    exchange.say(client, &item(stream, &name));
                }
            }
        }
        for _ in 0..3 {
            exchange.pass(10);
        }
    });
    assert_bound("streams and items", taken, bound.streams + bound.items + bound.sessions + bound.rest, 20);
}

#[test]
fn what_waits_for_sessions_takes_what_is_stated() {
    let (taken, bound) = taken(settings(), 100, |exchange, clients| {
        exchange.refresh("AAPL", &quote(1, 100));
        for client in clients.iter_mut() {
            exchange.say(client, &item(5, "AAPL"));
            exchange.read(client, 100);
            exchange.pass(10);
        }
        // Receipts that are owed, as many as may be; then updates that wait, the shortest that there are.
        let close = message(|room| {
            CloseHeader { flags: flags::close::ACK, ..CloseHeader::new(Domain::MARKET_PRICE, 77) }
                .encode(room)
        });
        for value in 0..400 {
            exchange.update("AAPL", &bid(value));
            for client in clients.iter() {
                exchange.say(client, &close);
            }
        }
    });
    assert_bound("sessions", taken, bound.sessions + bound.rest, 40);
}

#[test]
fn images_and_views_take_what_is_stated() {
    let (taken, bound) = taken(settings(), 2, |exchange, clients| {
        for number in 0..500 {
            let values = (0..900).map(|fid| (tapeline_omm::Fid(fid), i64::from(fid))).collect();
            exchange.refresh(&name(number), &values);
        }
        for stream in 5..200 {
            let fids: Vec<i16> = (0..900).map(|fid| fid + stream as i16).collect();
            exchange.say(&clients[0], &item_view(stream, &name(1), &fids));
        }
        for value in 0..3 {
            let values = (0..900).map(|fid| (tapeline_omm::Fid(fid), i64::from(fid) + value)).collect();
            exchange.update(&name(1), &values);
            exchange.read_all(&mut clients[0]);
        }
    });
    assert_bound("images and views", taken, bound.total(), 100);
}

/// Clients that had many streams, each of which has the one left that it opened last.
#[test]
fn what_streams_took_that_are_closed_does_not_add_up() {
    const CLIENTS: usize = 400;
    // Each has its directory's beside them.
    let settings = Settings { max_streams: CLIENTS + 1_000, ..settings() };
    let (taken, bound) = taken(settings, CLIENTS, |exchange, clients| {
        exchange.refresh("AAPL", &quote(1, 100));
        for client in clients.iter_mut() {
            for stream in 5..504 {
                exchange.say(client, &item(stream, "AAPL"));
                exchange.read(client, 100);
                client.received.clear();
            }
            exchange.pass(10);
            for stream in 5..503 {
                exchange.say(client, &close(stream));
            }
            exchange.read(client, 1_000);
            client.received = Vec::new();
        }
    });
    let bound = bound.streams + CLIENTS * CLIENT + EXCHANGE;
    assert_bound("streams that were closed", taken, bound, 20);
}

/// Of a provider whose images are longer than a client has room for.
const BOOKS: u16 = 7;
const ENTRIES: usize = 400;
const PART: usize = 8 << 10;

fn books(waiting_bytes: usize) -> Settings {
    let services = vec![Service::new("BOOKS", BOOKS)];
    Settings { services, waiting_bytes, image_bytes: 128 << 10, ..settings() }
}

/// A book of 56 KB.
fn book(exchange: &mut Exchange, value: u8) {
    exchange.provide(Kind::Refresh, (BOOKS, "BOOK"), |out| {
        let mut header = RefreshHeader::new(Domain::MARKET_PRICE, 0, State::OPEN_OK, DataType::MAP);
        header.flags = flags::refresh::REFRESH_COMPLETE | flags::refresh::CLEAR_CACHE;
        header.encode_with(out, |room| {
            let mut map = MapEncoder::new(room, &MapHead::new(DataType::BUFFER, DataType::OPAQUE))?;
            for number in 0..ENTRIES {
                let key = number.to_be_bytes();
                map.entry_in_place(MapAction::ADD, &key, None, |room| {
                    room[..120].fill(value);
                    Ok(120)
                })?;
            }
            Ok(map.finish())
        })
    });
}

/// What a client has of an image so far, and the value of its entries: all of those that came since are taken, and forgotten.
fn take(client: &mut Client, entries: &mut usize, value: &mut u8) {
    for received in std::mem::take(&mut client.received) {
        let message = MessageView::parse(&received.bytes).unwrap();
        let Ok(Header::Refresh(header)) = message.header() else { continue };
        if received.stream != 5 {
            continue;
        }
        if header.flags.has(flags::refresh::CLEAR_CACHE) {
            *entries = 0;
        }
        for entry in Map::parse(message.payload()).unwrap().iter().flatten() {
            assert!(*entries == 0 || entry.data[0] == *value, "parts of two images");
            (*entries, *value) = (*entries + 1, entry.data[0]);
        }
        let is_whole = header.flags.has(flags::refresh::REFRESH_COMPLETE);
        assert_eq!(is_whole, *entries == ENTRIES, "an image without its end");
    }
}

#[test]
fn images_that_wait_take_what_is_stated_and_nobody_goes_without() {
    const CLIENTS: usize = 100;
    let settings = books(256 << 10);
    let session =
        provider::ProviderSettings { most_streams: 5, owed_bytes: 1 << 10, ..settings.session.clone() };
    let settings = Settings { slow: SlowPolicy::Conflate, max_streams: 500, session, ..settings };
    let (taken, bound) = taken(settings, 0, |exchange, _| {
        // Room for one part of an image.
        let mut clients: Vec<Client> = (0..CLIENTS).map(|_| exchange.client(PART)).collect();
        exchange.up(BOOKS, true);
        for client in &mut clients {
            exchange.read(client, 100);
            exchange.say(client, &item_of(BOOKS, 5, "BOOK"));
        }
        while exchange.hub.next_demand().is_some() {}
        book(exchange, 1);
        exchange.pass(10);
        let mut seen = vec![(0, 0); CLIENTS];
        // The first never reads: it holds room, and nobody up.
        for round in 0..10_000 {
            if round == 50 {
                book(exchange, 2);
            }
            for (client, (entries, value)) in clients.iter_mut().zip(&mut seen).skip(1) {
                exchange.read(client, 1);
                take(client, entries, value);
            }
            exchange.pass(10);
            if seen[1..].iter().all(|(entries, _)| *entries == ENTRIES) {
                // Some had it made before the second came, and who was last afterwards.
                let seconds = seen.iter().filter(|(_, value)| *value == 2).count();
                assert!((CLIENTS / 2..CLIENTS - 1).contains(&seconds), "{seconds} of the second");
                return;
            }
        }
        panic!("not all came: {seen:?}");
    });
    let stated = bound.waiting + CLIENTS * CLIENT + EXCHANGE;
    assert_bound("images that wait", taken, stated, 20);
    // It is the images that are bounded here, and not what is allowed beside them.
    assert!(CLIENTS * (56 << 10) > stated, "{stated}");
}

/// Clients that read a little now and then, and never all, keep the room of what waits; whoever stands in line has it all the same.
#[test]
fn who_reads_a_little_now_and_then_keeps_no_room_from_others_for_long() {
    let stuck_ms = 60_000;
    let slow = SlowPolicy::Conflate;
    let mut exchange = Exchange::new(Settings { slow, stuck_ms, ..books(256 << 10) });
    let mut clients: Vec<Client> = (0..5).map(|_| exchange.client(PART)).collect();
    exchange.up(BOOKS, true);
    for client in &mut clients {
        exchange.read(client, 100);
    }
    let [trickling @ .., good] = clients.as_mut_slice() else { unreachable!() };
    for client in trickling.iter() {
        exchange.say(client, &item_of(BOOKS, 5, "BOOK"));
    }
    while exchange.hub.next_demand().is_some() {}
    book(&mut exchange, 1);
    exchange.say(good, &item_of(BOOKS, 5, "BOOK"));
    let (mut entries, mut value) = (0, 0);
    let mut took = 0;
    for second in 0..120 {
        if second % 15 == 14 {
            took += trickling.iter_mut().map(|client| exchange.read(client, 1)).sum::<usize>();
        }
        exchange.read(good, 1);
        take(good, &mut entries, &mut value);
        exchange.pass(1_000);
        while exchange.over().is_some() {}
    }
    assert!(took > 0 && entries == ENTRIES, "{took} messages were taken, and {entries} entries came");
    let ends: Vec<End> = exchange
        .notes()
        .into_iter()
        .filter_map(|note| if let HubEvent::Gone { end, .. } = note { Some(end) } else { None })
        .collect();
    assert!(
        !ends.is_empty() && ends.iter().all(|end| *end == End::Slow(TooMuch::OverflowBudget(stuck_ms))),
        "{ends:?}"
    );
}

/// What a client of such a test takes beside that, and the test's own plant.
const CLIENT: usize = 24 << 10;
const EXCHANGE: usize = 2 << 20;
