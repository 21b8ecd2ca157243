//! Events and the items that they belong to.

use std::collections::HashSet;
use std::thread;

use tapeline_client::{Event, Login};
use tapeline_omm::{Real, fid};

use crate::market::{Market, SERVICES, publish};

const ITEMS: i64 = 500;

/// The pain: an event comes with the closure of another item, so that the application books a price under the wrong name (Real-Time-SDK #26:
/// several threads request items at the same time).
///
/// The promise: each event names its service and its item. Items of one name in two services are two items, and consumers in several threads do
/// not mix theirs.
#[test]
fn an_event_names_the_item_that_was_asked_for() {
    let market = Market::open(|_| {});
    let names: Vec<String> = (0..ITEMS).map(|number| format!("ITEM{number}")).collect();
    let name = |number: i64| names[number as usize].as_str();
    // The bid says which item of which service it is, and which update.
    let bid = |service: usize, number: i64, round: i64| (round * 2 + service as i64) * ITEMS + number;
    let mut publishers = SERVICES.map(|service| market.publisher(service));
    let mut publish_all = |round| {
        for (service, publisher) in publishers.iter_mut().enumerate() {
            (0..ITEMS).for_each(|number| publish(publisher, name(number), bid(service, number, round)));
            publisher.flush().unwrap();
        }
    };
    publish_all(0);
    thread::scope(|scope| {
        // Each thread requests the items in another order: steps that have no divisor in common with 500.
        for step in [3, 7, 9, 11] {
            let market = &market;
            scope.spawn(move || {
                let mut consumer = market.consumer(&Login::user(&format!("thread {step}")));
                for count in 0..ITEMS {
                    let number = count * step % ITEMS;
                    let both = if count % 2 == 0 { [0, 1] } else { [1, 0] };
                    for service in both {
                        consumer.subscribe(SERVICES[service].1, &[name(number)]).unwrap();
                    }
                }
                let mut last = HashSet::new();
                while last.len() < 2 * ITEMS as usize {
                    let Event::Message(message) = consumer.next().unwrap() else { continue };
                    let Some(value) = message.real(fid::BID) else { continue };
                    let service = SERVICES.iter().position(|(_, name)| *name == message.service).unwrap();
                    let number: i64 = message.item["ITEM".len()..].parse().unwrap();
                    let of_this = |round| value == Real::decimal(bid(service, number, round), 0);
                    assert!(of_this(0) || of_this(1), "{message}");
                    if of_this(1) {
                        last.insert((service, number));
                    }
                }
            });
        }
        publish_all(1);
    });
}
