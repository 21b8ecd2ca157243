//! Feeds and clients that die.

use std::io::Write;
use std::net::Shutdown;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use tapeline_omm::rwf::{CloseHeader, Domain};

use crate::hub_faults::market::Market;
use crate::hub_faults::peer::{Peer, encoded};
use crate::hub_faults::{DAY, count, day, timed};

#[test]
fn a_feed_that_is_killed_goes_on_where_it_was() {
    let mut market = Market::open("", &[]);
    let feeder = market.replay(DAY, "3k");
    let before = market.witness_gets(500);
    feeder.kill();
    // Replayed from the beginning: the first messages are duplicates.
    let (feeder, before) = timed("a feed's sender is started again: the next 500 updates", || {
        let feeder = market.replay(DAY, "10k");
        let mut before = before;
        for (item, more) in market.witness_gets(500) {
            before.entry(item).or_default().extend(more);
        }
        (feeder, before)
    });
    feeder.finish();
    let (report, _) = market.end(before);
    assert_eq!(report["feeds"][0]["missing_messages"], 0, "{report}");
}

#[test]
fn clients_that_die_in_the_middle_of_a_frame_are_gone_and_no_more() {
    let (report, _) = day(Market::open("", &[]), |market| {
        let message = encoded(|room| CloseHeader::new(Domain::MARKET_PRICE, 77).encode(room));
        let mut dying = Vec::new();
        for user in ["fin", "reset"] {
            let mut peer = Peer::open(market.address(), user, 1);
            let frame = peer.frame(&message);
            peer.socket.write_all(&frame[..frame.len() / 2]).unwrap();
            if user == "reset" {
                set_socket_linger(&peer.socket, Some(Duration::ZERO)).unwrap();
            } else {
                // Only the sending side: a full close with unread data would send a reset.
                peer.socket.shutdown(Shutdown::Write).unwrap();
                dying.push(peer);
            }
        }
        let mut killed = market.consumer(&["--user", "killed"]);
        while killed.says()["event"] != "update" {}
        market.plant.tells(&["gone fin: the peer closed the connection"]);
        market.plant.tells(&["gone reset: "]);
        killed.child.kill().unwrap();
        timed("a client is killed: its session is gone", || market.plant.tells(&["gone killed: "]));
    });
    assert_eq!((count(&report, "sessions"), count(&report, "cut")), (4, 0), "{report}");
}
