//! A hub that is stopped.

use rustix::process::Signal;

use crate::hub_faults::market::Market;
use crate::hub_faults::peer::Peer;
use crate::hub_faults::{DAY, count, timed};

#[test]
fn whoever_does_not_read_keeps_nobody_from_the_last_words() {
    for is_asked_twice in [false, true] {
        let mut market = Market::open("max_streams_of_item = 400", &[]);
        let _stalled = Peer::open(market.address(), "stalled", 400);
        let mut hears = market.consumer(&["--user", "hears"]);
        let mut images = 0;
        let feeder = market.replay(DAY, "6k");
        while images < 3 {
            images += usize::from(hears.says()["event"] == "refresh");
        }
        feeder.finish();
        // The stalled client's buffers are full.
        let before = market.witness_gets(1000);
        if is_asked_twice {
            market.plant.signal(Signal::TERM);
        }
        let what = "SIGTERM with a client that never reads: the plant has ended";
        let (report, talk) = timed(what, || market.end(before));
        let mut told = 0;
        while let Some(said) = hears.may_say() {
            told += usize::from(said["state"]["text"] == "The plant has ended");
        }
        assert_eq!(told, 3, "{talk:#?}");
        assert_eq!(count(&report, "sessions"), 3, "{report}");
        assert!(talk.iter().any(|line| line.contains("gone stalled: the hub stops")), "{talk:#?}");
    }
}
