//! Services that go away and come back.

use tapeline_client::{Event, Login};
use tapeline_omm::{Real, fid};

use crate::market::{Market, PRICES, SERVICES, publish, wait_for_bid};

/// The pain: over a weekend a service is down ("Service not available"), and when it is back its items have no data until the application is
/// started again (Real-Time-SDK #200), or an item's callbacks are not called any more after its first status (#37).
///
/// The promise: the consumer stays connected, and its items stay open. Each is suspect while its service is down. When the service is back, each
/// has a new image and then updates, without a request of the application.
#[test]
fn a_services_weekend_ends_without_a_restart_of_the_consumer() {
    let market = Market::open(|_| {});
    let mut other = market.publisher(SERVICES[1]);
    publish(&mut other, "A", 5);
    other.flush().unwrap();
    let mut consumer = market.consumer(&Login::user("weekend"));
    consumer.subscribe(PRICES, &["A", "B"]).unwrap();
    consumer.subscribe(SERVICES[1].1, &["A"]).unwrap();
    // Several weekends.
    for week in 1..=3 {
        let mut publisher = market.publisher(SERVICES[0]);
        for name in ["A", "B"] {
            publish(&mut publisher, name, week * 10);
        }
        publisher.flush().unwrap();
        let mut images = 0;
        while images < 2 {
            if let Event::Message(message) = consumer.next().unwrap()
                && message.real(fid::BID) == Some(Real::decimal(week * 10, 0))
            {
                assert!(message.is_image(), "{message}");
                images += 1;
            }
        }
        publish(&mut publisher, "A", week * 10 + 1);
        publisher.flush().unwrap();
        wait_for_bid(&mut consumer, week * 10 + 1);
        publisher.close(std::time::Duration::from_secs(10)).unwrap();
        let mut suspect = 0;
        while suspect < 2 {
            let (service, state) = match consumer.next().unwrap() {
                Event::Message(message) => (message.service, message.to_string()),
                Event::State { service, state, .. } => (service, state.to_owned()),
                Event::Disconnected { reason, .. } => panic!("disconnected: {reason}"),
                _ => continue,
            };
            assert!(service == PRICES || !state.contains("SUSPECT"), "another service: {state}");
            suspect += usize::from(service == PRICES && state.contains("SUSPECT"));
        }
    }
}
