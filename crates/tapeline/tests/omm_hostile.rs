//! `tapeline omm provider` and `acceptor` with peers that mean no good.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use stage::Running;
use tapeline_measure::Clock;
use tapeline_wire::rssl::{Event, Reactor, Settings};

mod stage;

#[test]
fn who_sends_what_cannot_be_read_is_cut() {
    for server in ["provider", "acceptor"] {
        let mut running = Running::start(&["omm", server, "--port", "0"]);
        let port = running.says()["port"].as_u64().unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, u16::try_from(port).unwrap()));
        let (clock, mut reactor) = (Clock::calibrate(), Reactor::new(1).unwrap());
        reactor.connect(address, &Arc::new(Settings::default()), clock.now()).unwrap();
        let mut is_closed = false;
        while !is_closed {
            reactor.wait(Duration::from_millis(100)).unwrap();
            while let Some((_, event, mut sender)) = reactor.next(clock.now()) {
                match event {
                    Event::Connected(_) => (0..150).for_each(|_| {
                        let _ = sender.send(&[0xFF; 3]);
                    }),
                    Event::Closed(_) => is_closed = true,
                    _ => {}
                }
            }
        }
        let gone = running.says();
        assert_eq!((&gone["event"], &gone["malformed"]), (&"gone".into(), &100.into()), "{server}");
        assert_eq!(gone["reason"], "100 of its messages could not be read", "{server}");
    }
}
