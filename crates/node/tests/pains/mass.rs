//! Many items at once.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tapeline_client::{Event, Login};

use crate::market::{Market, PRICES, SERVICES, publish};

const ITEMS: usize = 100_000;
/// Updates of all items that the consumer sees after the last image.
const UPDATES: usize = 1_000;

/// The pain: a consumer that opens items in large batches stops receiving, without an error, because the thread that subscribes and the thread
/// that dispatches wait for each other (Real-Time-SDK #218, #35; #253: the same with a provider that answers slowly; #41: beyond 30,000 items
/// the connection has no buffers, and the rest is never requested).
///
/// The promise: requests are queued without a lock and without a limit but the consumer's own, and are sent as the connection takes them. Images
/// of all items come, and updates go on, also of items that do not exist yet when they are requested.
#[test]
fn a_hundred_thousand_items_are_subscribed_at_once_without_a_deadlock() {
    let market = Market::open(|_| {});
    let names: Vec<String> = (0..ITEMS).map(|number| format!("RIC{number:06}.N")).collect();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut publisher = market.publisher(SERVICES[0]);
            let mut round = 0;
            while !is_over.load(Ordering::Relaxed) {
                round += 1;
                for name in &names {
                    publish(&mut publisher, name, round);
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                }
            }
        });
        let mut consumer = market.consumer(&Login::user("mass"));
        let (mut pending, mut updates) = (HashSet::new(), 0);
        let mut batches = names.chunks(5_000);
        while !pending.is_empty() || updates < UPDATES || batches.len() > 0 {
            if let Some(batch) = batches.next() {
                let batch: Vec<&str> = batch.iter().map(String::as_str).collect();
                consumer.subscribe(PRICES, &batch).unwrap();
                pending.extend(batch);
            }
            match consumer.poll(Duration::from_secs(1)).unwrap() {
                Some(Event::Message(message)) if message.is_image() => {
                    pending.remove(message.item);
                    updates = 0;
                }
                Some(Event::Message(message)) if message.is_update() => updates += 1,
                Some(Event::Disconnected { reason, .. }) => panic!("disconnected: {reason}"),
                _ => {}
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
