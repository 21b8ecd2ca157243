//! Consumers that take less than is published.

use std::sync::Arc;

use tapeline_client::{Error, Event, Login};
use tapeline_hub::SlowPolicy;
use tapeline_node::hub::HubConfig;
use tapeline_omm::{Real, fid};
use tapeline_wire::rssl::ConnectionSettings;

use crate::market::{Market, PRICES, SERVICES, publish, wait_for_bid};

/// Updates while the consumer takes nothing: a hundred times what its buffers take.
const MISSED: i64 = 50_000;

/// Small buffers, so that a consumer is behind soon.
fn narrow(hub: &mut HubConfig) {
    hub.transport = Arc::new(ConnectionSettings {
        sys_send_buf_size: 4_096,
        guaranteed_output_buffers: 2,
        ..ConnectionSettings::clone(&hub.transport)
    });
}

/// The pain: the server cuts a consumer that reads too slowly, and the consumer learns only that its channel is down, or nothing (Real-Time-SDK
/// #41: "Channel out of buffers", then nothing is sent or received any more; #253: a consumer of a slow network stops without an error).
///
/// The promise: by default a slow consumer is not cut. It misses updates, and then has the newest values. Where the operator chose that it is
/// cut, the login's last status says so, with the limit, and [`tapeline_client::Consumer`] passes it on.
#[test]
fn a_slow_consumer_is_not_cut_without_a_word() {
    let market = Market::open(narrow);
    let mut publisher = market.publisher(SERVICES[0]);
    publish(&mut publisher, "A", 0);
    publisher.flush().unwrap();
    let mut consumer = market.consumer(&Login::user("slow"));
    consumer.subscribe(PRICES, &["A"]).unwrap();
    wait_for_bid(&mut consumer, 0);
    (1..=MISSED).for_each(|bid| publish(&mut publisher, "A", bid));
    publisher.flush().unwrap();
    let mut taken = 0;
    loop {
        match consumer.next().unwrap() {
            Event::Message(message) if message.real(fid::BID) == Some(Real::decimal(MISSED, 0)) => break,
            Event::Message(_) => taken += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(taken < MISSED, "a consumer that takes nothing misses updates");

    // A second market beside the first would wait for ever if a test waits to run alone.
    drop((consumer, publisher, market));
    let slow = SlowPolicy::Cut { bytes: 1 << 20, messages: 100 };
    let market = Market::open(|hub| {
        narrow(hub);
        hub.settings.slow = slow;
    });
    let mut publisher = market.publisher(SERVICES[0]);
    publish(&mut publisher, "A", 0);
    publisher.flush().unwrap();
    let mut consumer = market.consumer(&Login::user("slow"));
    consumer.subscribe(PRICES, &["A"]).unwrap();
    wait_for_bid(&mut consumer, 0);
    let (mut bid, mut disconnected) = (0, None);
    let ended = loop {
        // The consumer takes one event for each hundred that are published.
        for _ in 0..100 {
            bid += 1;
            publish(&mut publisher, "A", bid);
        }
        match consumer.next() {
            Ok(Event::Disconnected { reason, .. }) => disconnected = Some(reason.to_owned()),
            Ok(_) => {}
            Err(Error::Ended(why)) => break why,
            Err(other) => panic!("{other}"),
        }
    };
    let word = "too slow: more than 100 updates wait for it";
    assert!(ended.contains(word), "{ended}");
    assert!(disconnected.as_deref().is_some_and(|reason| reason.contains(word)), "{disconnected:?}");
}
