//! Clients that take as much memory as they can get, beside what the settings say is the most.
#![allow(clippy::unwrap_used)]

mod exchange;

use exchange::{Client, Exchange, bid, close, item, item_view, message, quote};
use tapeline_hub::{MemoryBound, Settings, SlowPolicy, Unknown};
use tapeline_omm::role::provider;
use tapeline_omm::rwf::{CloseHeader, Domain, flags};

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
        session: provider::Settings {
            most_streams: 500,
            owed_bytes: 16 << 10,
            ..provider::Settings::default()
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
