//! Snapshots and streams, as a provider sees them.

use std::time::Duration;

use tapeline_client::{Consumer, Endpoint, Event, Login, Provider, ProviderEvent, Request};
use tapeline_omm::role::consumer::ConsumerSettings;
use tapeline_omm::{Real, fid};

use crate::market::{PRICES, shared};

/// The pain: a provider asks whether a request is for a snapshot, and is always told that it is for a stream, so that it cannot know whether
/// updates are wanted (Real-Time-SDK #221).
///
/// The promise: each request says so, over RSSL and in JSON. A snapshot is one image, and its stream is closed; a stream goes on.
#[test]
fn a_provider_can_tell_a_snapshot_from_a_stream() {
    let _shared = shared();
    let mut provider = Provider::listen("127.0.0.1:0".parse().unwrap(), PRICES).unwrap();
    let address = provider.address().to_string();
    for (round, endpoint) in (0..).zip([Endpoint::plain(&address), Endpoint::json(&address)]) {
        let settings = ConsumerSettings::default();
        let mut consumer = Consumer::new(vec![endpoint], &Login::user("me"), settings).unwrap();
        let names = [format!("ONCE{round}"), format!("ALWAYS{round}")];
        consumer.request(&Request::new(PRICES, &names[0]).snapshot()).unwrap();
        consumer.subscribe(PRICES, &[&names[1]]).unwrap();
        let mut opened = Vec::new();
        while opened.len() < 2 {
            consumer.poll(Duration::ZERO).unwrap();
            if let Some(ProviderEvent::Opened { item, is_snapshot, .. }) =
                provider.poll(Duration::ZERO).unwrap()
            {
                opened.push((item, is_snapshot));
            }
        }
        opened.sort();
        assert_eq!(opened, [(names[1].clone(), false), (names[0].clone(), true)]);

        // An image to both, then an update of both, which only the stream has.
        let mut received = Vec::new();
        for bid in 1..=2 {
            for name in &names {
                provider.publish(name, &[(fid::BID, Real::decimal(bid, 0).into())]).unwrap();
            }
        }
        while received.len() < 3 {
            provider.poll(Duration::ZERO).unwrap();
            if let Some(Event::Message(message)) = consumer.poll(Duration::ZERO).unwrap() {
                received.push((message.item == names[0], message.is_update()));
            }
        }
        received.sort();
        assert_eq!(received, [(false, false), (false, true), (true, false)], "{round}");
    }
}
