//! Clients that do not read, under each policy, and a hub that gets no processor.

use crate::hub_faults::market::{Market, Process, STOCKS};
use crate::hub_faults::peer::Peer;
use crate::hub_faults::stage::Place;
use crate::hub_faults::{DAY, count, day, timed};

/// How often the client that does not read has each stock open: its updates exceed any buffer.
const TIMES: i32 = 400;

/// Runs a day with a client that never reads and is disconnected for this reason; returns the plant's report.
fn never_reads(hub: &str, why: &str) -> serde_json::Value {
    let mut market = Market::open(&format!("{hub}\nmax_streams_of_item = {TIMES}"), &[]);
    let stalled = Peer::open(market.address(), "stalled", TIMES);
    // Longer than needed: the kernel's buffers for a client that does not read grow for a while.
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

/// A hub in its own process is a normal reader of the ring. When it is stopped, it blocks the plant for the stall limit
/// only, and the plant's own hub misses nothing. When it continues, its clients are still connected and get suspect
/// items.
#[test]
fn a_hub_elsewhere_that_gets_no_processor_loses_its_place_and_its_clients_hear_of_it() {
    let place = Place { keys: "stall_limit = \"1s\"\nring_size = \"64KiB\"", ..Place::new(1) };
    let config = place.folder.path().join("plant.toml");
    let market = Market::open_at(place, "", &[]);
    let serve = ["plant", "serve", "--config", config.to_str().unwrap(), "--format", "json"];
    let mut elsewhere = Process::start(&serve);
    let server = elsewhere.says()["hub"].as_str().unwrap().replace("127.0.0.1", "localhost");
    let fixed = ["omm", "watch", "--server", &server, "--service", "TAPELINE", "--attempts", "1"];
    let mut client = Process::start(&[&fixed[..], &STOCKS].concat());
    let (report, _) = day(market, |market| {
        while client.says()["event"] != "update" {}
        elsewhere.signal(rustix::process::Signal::STOP);
        let line = timed("a hub elsewhere is stopped: the plant goes on without it", || {
            market.plant.tells(&["1 reader was evicted from the ring"])
        });
        assert!(line.contains(" warning: 1 reader was evicted "), "{line}");
        elsewhere.signal(rustix::process::Signal::CONT);
        timed("it goes on: its client hears that its items are suspect", || {
            elsewhere.tells(&["was evicted from the ring"]);
            while client.says()["state"]["data"] != "SUSPECT" {}
        });
    });
    elsewhere.signal(rustix::process::Signal::TERM);
    let elsewhere = elsewhere.says();
    assert_eq!((&elsewhere["rejoined"], &elsewhere["cut"]), (&1.into(), &0.into()), "{elsewhere}");
    assert!(elsewhere["missing"].as_u64() > Some(0), "{elsewhere}");
    assert_eq!(report["hub"]["ticks"], report["ticks"], "the plant's own hub has missed nothing");
}
