//! Clients that send nothing, such as half-open connections.

use std::io::Read;
use std::net::TcpStream;

use crate::hub_faults::market::Market;
use crate::hub_faults::peer::Peer;
use crate::hub_faults::{DAY, count, timed};

/// Long enough for a witness on a busy machine: it pings three times as often.
const PING_TIMEOUT: &str = "ping_timeout = \"4s\"";

#[test]
fn who_sends_no_pings_is_gone_after_the_time_that_was_agreed() {
    let mut market = Market::open(PING_TIMEOUT, &[]);
    // One reads normally; the other behaves as if it had lost its network.
    let mut reads = Peer::open(market.address(), "reads", 1);
    let reader = std::thread::spawn(move || reads.last_words());
    let silent = Peer::open(market.address(), "silent", 1);
    let feeder = market.replay(DAY, "3k");
    let before = market.witness_gets(200);
    let mut gone = timed("pings are withheld (ping_timeout = \"4s\"): both sessions are gone", || {
        [market.plant.tells(&["gone"]), market.plant.tells(&["gone"])]
    });
    gone.sort_by_key(|line| line.contains("silent"));
    for (line, user) in gone.iter().zip(["reads", "silent"]) {
        let why = "nothing was received for 4 s, the ping time-out of this connection";
        assert!(line.contains(&format!("gone {user}: {why}")), "{line}");
    }
    assert_eq!(reader.join().unwrap(), None);
    drop(silent);
    feeder.finish();
    let (report, _) = market.end(before);
    assert_eq!((count(&report, "sessions"), count(&report, "cut")), (3, 0), "{report}");
}

#[test]
fn who_connects_and_says_nothing_is_shut_out() {
    let mut market = Market::open("", &[]);
    let mut mute = TcpStream::connect(market.address()).unwrap();
    let feeder = market.replay(DAY, "3k");
    let before = market.witness_gets(200);
    let address = mute.local_addr().unwrap().to_string();
    let line = timed("a connection says nothing: it is shut out", || {
        market.plant.tells(&["never opened", &address])
    });
    assert!(line.contains("not connected after 10000 ms, while waiting for the connect request"), "{line}");
    assert_eq!(mute.read(&mut [0; 16]).unwrap_or(0), 0);
    feeder.finish();
    let (report, _) = market.end(before);
    assert_eq!((count(&report, "sessions"), count(&report, "never_opened")), (1, 1), "{report}");
}

#[test]
fn who_never_logs_in_is_gone() {
    let mut market = Market::open("login_timeout = \"1s\"", &[]);
    let mut stranger = Peer::connect(market.address());
    let feeder = market.replay(DAY, "3k");
    let before = market.witness_gets(200);
    let line = market.plant.tells(&["gone", "no login came within 1000 ms"]);
    let (time, _) = line.split_once(" hub: session ").unwrap();
    assert!(time.len() == "2026-11-25T14:30:07.104311Z".len() && time.ends_with('Z'), "{line}");
    assert_eq!(stranger.last_words(), None);
    feeder.finish();
    market.end(before);
}
