//! Clients that do not read, under each policy, and a hub that does not get its turn.

use crate::market::Market;
use crate::peer::Peer;
use crate::stage::Place;
use crate::{DAY, count, day, timed};

/// How often the one that does not read has each stock open: its updates are more than any buffer holds.
const TIMES: i32 = 400;

/// A day with a client that never reads and is gone for this reason: the plant's report.
fn never_reads(hub: &str, why: &str) -> serde_json::Value {
    let mut market = Market::open(hub, &[]);
    let stalled = Peer::open(market.address(), "stalled", TIMES);
    // For longer than it takes: what the system holds for who does not read grows for a while.
    let feeder = market.replay(DAY, "1k");
    let before = market.witness_gets(200);
    let policy = hub.lines().next().unwrap_or_default();
    let what = format!("a client never reads ({policy}): it is gone");
    let line = timed(&what, || market.plant.tells(&["gone stalled"]));
    assert!(line.contains(why), "{line}");
    drop(stalled);
    feeder.kill();
    let (report, _) = market.end(before);
    assert_eq!((count(&report, "sessions"), count(&report, "cut")), (2, 1), "{report}");
    report
}

#[test]
fn who_never_reads_is_conflated_and_gone_in_the_end() {
    let hub = "slow = \"conflate\"\nslow_time = \"1s\"";
    let report = never_reads(hub, "too slow: it has taken nothing for 1000 ms");
    assert!(count(&report, "conflated") > 0 && count(&report, "stuck") == 1, "{report}");
}

#[test]
fn who_never_reads_is_cut_with_too_many_updates() {
    let hub = "slow = \"cut\"\nslow_messages = 2000";
    let report = never_reads(hub, "too slow: more than 2000 updates wait for it");
    assert_eq!(count(&report, "stuck"), 0, "{report}");
}

#[test]
fn who_never_reads_is_cut_with_too_many_bytes() {
    never_reads(
        "slow = \"cut\"\nslow_bytes = \"256KiB\"",
        "too slow: more than 262144 bytes of updates wait for it",
    );
}

#[test]
fn who_never_reads_is_cut_when_its_updates_are_old() {
    let hub = "slow = \"cut\"\nslow_age = \"500ms\"\nslow_bytes = \"1GiB\"\nslow_messages = 100000000";
    never_reads(hub, "too slow: updates have waited for it for more than 500 ms");
}

#[test]
fn who_never_reads_blocks_nobody() {
    let hub = "slow = \"block\"\nslow_time = \"1s\"\nslow_bytes = \"1GiB\"\nslow_messages = 100000000";
    never_reads(hub, "too slow: ");
}

#[test]
fn who_never_reads_misses_updates_and_is_gone_in_the_end() {
    let hub = "slow = \"drop-with-gap\"\nslow_messages = 2000\nslow_time = \"1s\"";
    let report = never_reads(hub, "too slow: it has taken nothing for 1000 ms");
    assert!(count(&report, "dropped") > 0 && count(&report, "stuck") == 1, "{report}");
}

/// The plant waits for its hub even where it waits for nobody else, and nobody's images get a hole by it.
#[test]
fn the_hub_keeps_its_place_on_a_ring_that_waits_for_nobody() {
    let place = Place { keys: "stall_limit = \"1us\"\nring_size = \"64KiB\"", ..Place::new(1) };
    let market = Market::open_at(place, "", &[]);
    let (report, talk) = day(market, |_| {});
    assert!(!talk.iter().any(|line| line.contains("hub has")), "{talk:#?}");
    assert_eq!(report["hub"]["ticks"], report["ticks"]);
}
