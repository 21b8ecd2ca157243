//! Consumers that are closed at a bad moment.

use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use tapeline_client::{Event, Login};

use crate::market::{Market, PRICES, SERVICES, consumer, publish, wait_for_bid};
use crate::relay::Relay;

/// The pain: the destructor of a consumer waits for the dispatch thread, which waits for the consumer's lock (Real-Time-SDK #138). A request that
/// is refused leaves the lock locked (#152). An item that is closed while the connection is lost never returns (#76).
///
/// The promise: a consumer has no thread and no lock. Closing one returns at any moment: before it is connected, while a server is silent, amid
/// updates, after a refused request, and between a lost connection and the next one.
#[test]
fn a_consumer_is_closed_at_any_moment() {
    let market = Market::open(|_| {});
    let login = Login::user("me");
    // A server that accepts connections and says nothing.
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let mut waiting = consumer(&address, &login);
    waiting.subscribe(PRICES, &["A"]).unwrap();
    assert!(waiting.poll(Duration::from_millis(10)).unwrap().is_none());
    waiting.close();

    // No server at all, and no turn either.
    drop(silent);
    let mut refused = consumer(&address, &login);
    assert!(matches!(refused.next().unwrap(), Event::Disconnected { .. }));
    refused.close();
    consumer(&address, &login).close();

    let mut publisher = market.publisher(SERVICES[0]);
    publish(&mut publisher, "A", 1);
    publisher.flush().unwrap();
    let relay = Relay::to(&market.hub);
    let mut amid = consumer(&relay.address, &login);
    amid.subscribe(PRICES, &["A"]).unwrap();
    wait_for_bid(&mut amid, 1);
    amid.subscribe(PRICES, &[&"too long ".repeat(50)]).unwrap_err();
    (2..1_000).for_each(|bid| publish(&mut publisher, "A", bid));
    wait_for_bid(&mut amid, 2);
    amid.close();

    let mut lost = consumer(&relay.address, &login);
    lost.subscribe(PRICES, &["A"]).unwrap();
    while !matches!(lost.next().unwrap(), Event::Message(_)) {}
    relay.cut();
    while !matches!(lost.next().unwrap(), Event::Disconnected { .. }) {}
    lost.close();
}
