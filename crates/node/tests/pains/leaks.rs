//! Memory over many reconnects.

use std::time::Duration;

use tapeline_client::{Consumer, Event, Login};

use crate::allocator::live_bytes;
use crate::market::{Market, PRICES, SERVICES, alone, consumer, publish};
use crate::relay::Relay;

const RECONNECTS: usize = 1_000;
/// The tables of sessions and connections have their size by then: they grew for the first 700 of 5,000 reconnects, by 21 KB.
const WARM_UP: usize = 1_000;
/// What each reconnect leaks has the size of a pointer at least.
const BOUND: isize = (RECONNECTS * size_of::<usize>()).cast_signed();

fn wait_for_image(consumer: &mut Consumer) {
    loop {
        if let Event::Message(message) = consumer.next().unwrap()
            && message.is_image()
        {
            return;
        }
    }
}

/// The pain: each consumer that is made and removed leaves memory behind, up to gigabytes after some dozens (Real-Time-SDK #118, #270, #278,
/// #323), also one that never connects (#210), so that a service that reconnects over weeks has to be started again.
///
/// The promise: memory is flat, in the consumer and in the hub. The whole process is counted, byte by byte, while one consumer loses its
/// connection and another is made and closed, five hundred times each.
#[test]
fn memory_is_flat_over_a_thousand_reconnects() {
    let _alone = alone();
    let market = Market::open_alone(|_| {});
    let mut publisher = market.publisher(SERVICES[0]);
    publish(&mut publisher, "A", 1);
    publisher.flush().unwrap();
    let relay = Relay::to(&market.hub);
    let login = Login::user("me");
    let mut idle = consumer(&market.hub, &login);
    let mut lasting = consumer(&relay.address, &login);
    lasting.subscribe(PRICES, &["A"]).unwrap();
    wait_for_image(&mut lasting);
    let mut reconnect = |times: usize| {
        for _ in 0..times / 2 {
            relay.cut();
            wait_for_image(&mut lasting);
            let mut brief = market.consumer(&login);
            brief.subscribe(PRICES, &["A"]).unwrap();
            wait_for_image(&mut brief);
            brief.close();
        }
    };
    reconnect(WARM_UP);
    // Twice as long as the plant takes between two reports of its figures, in which it takes and returns some kilobytes.
    let before = samples(&mut idle, 200).max();
    reconnect(RECONNECTS);
    let after = samples(&mut idle, 50).min();
    let grown = after.unwrap() - before.unwrap();
    assert!(grown < BOUND, "{grown} bytes more after {RECONNECTS} reconnects");
}

/// Live bytes, each after 10 ms of a consumer that has nothing to do.
fn samples(idle: &mut Consumer, count: usize) -> impl Iterator<Item = isize> {
    let sample = || {
        idle.poll(Duration::from_millis(10)).unwrap();
        live_bytes()
    };
    std::iter::repeat_with(sample).take(count)
}
