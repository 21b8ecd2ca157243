//! Many clients at once.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tapeline_measure::Clock;
use tapeline_omm::domain::LoginRequest;
use tapeline_omm::rwf::{Domain, Key, MessageClass, MessageView, RequestHeader, flags};
use tapeline_wire::rssl::{ConnectionSettings, Event, Reactor, Sent};

use crate::hub_faults::market::{Market, STOCKS};
use crate::hub_faults::peer::{Peer, encoded};
use crate::hub_faults::{count, day, timed};

const CLIENTS: usize = 500;

/// Connects all clients at once, logs in and requests each stock; disconnects all when all have all images.
fn storm(address: SocketAddr) {
    let (clock, mut reactor) = (Clock::calibrate(), Reactor::new(CLIENTS).unwrap());
    let settings = Arc::new(ConnectionSettings::default());
    let login = encoded(|room| LoginRequest::new(b"storm").encode(room));
    for _ in 0..CLIENTS {
        reactor.connect(address, &settings, clock.now()).unwrap();
    }
    let mut images = 0;
    while images < CLIENTS * STOCKS.len() {
        reactor.wait(Duration::from_millis(100)).unwrap();
        reactor.each(clock.now(), |_, event, sender| match event {
            Event::Connected(_) => assert_eq!(sender.send(&login), Sent::Queued),
            Event::Message(bytes) => {
                let message = MessageView::parse(bytes).unwrap();
                match (message.domain(), message.class()) {
                    (Domain::LOGIN, MessageClass::REFRESH) => {
                        for (stock, stream) in STOCKS.iter().zip(5..) {
                            let key = Key::item(1, stock.as_bytes());
                            let header = RequestHeader::new(Domain::MARKET_PRICE, stream, key);
                            let header = RequestHeader { flags: flags::request::STREAMING, ..header };
                            let asked = encoded(|room| header.encode(room));
                            assert_eq!(sender.send(&asked), Sent::Queued);
                        }
                    }
                    (Domain::MARKET_PRICE, MessageClass::REFRESH) => images += 1,
                    _ => {}
                }
            }
            Event::Closed(reason) => panic!("one of them was not served: {reason}"),
            _ => {}
        });
    }
}

#[test]
fn five_hundred_clients_come_back_at_once_and_all_are_served() {
    let (report, _) = day(Market::open("", &[]), |market| {
        for _ in 0..2 {
            timed("500 clients connect at once: all have their three images", || storm(market.address()));
        }
        // Not one line for each client.
        for kind in ["hub: logins: ", "hub: sessions that are gone: "] {
            market.plant.tells(&[kind, " more lines left out"]);
        }
    });
    assert_eq!((count(&report, "sessions"), count(&report, "cut")), (1 + 2 * CLIENTS as u64, 0), "{report}");
    assert_eq!(count(&report, "never_opened"), 0, "{report}");
}

#[test]
fn who_is_one_too_many_is_refused_and_counted() {
    let (report, _) = day(Market::open("max_connections = 2", &[]), |market| {
        let _second = Peer::open(market.address(), "second", 1);
        let mut third = market.consumer(&["--user", "third"]);
        third.tells(&["Too many connections"]);
        market.plant.tells(&["more connections never opened: max_connections is reached"]);
    });
    assert_eq!(count(&report, "sessions"), 2, "{report}");
    assert!(count(&report, "never_opened") >= 1, "{report}");
}
