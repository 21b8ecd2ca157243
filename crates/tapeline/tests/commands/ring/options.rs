//! Options of `ring pub` and `ring sub`, and the spellings of older tools.

use rustix::process::Signal;
use serde_json::Value;
use tapeline_ring::{Poll, Start, Subscriber, inspect};

use crate::ring::{OwnName, json, ring, start, subscribers, text, until};

/// Publishes with some options and reads with others; returns both outputs.
fn exchange(publish: &[&str], read: &[&str]) -> (Value, Value) {
    let name = OwnName::new();
    let fixed = ["--name", name.as_str(), "--format", "json"];
    let publisher = start(&[&["pub", "--subscribers", "1"], &fixed[..], publish].concat());
    until(|| inspect(&name.0).is_ok());
    let reader = start(&[&["sub"], &fixed[..], read].concat());
    (json(&publisher.end()), json(&reader.end()))
}

fn count(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("no {key} in {value}"))
}

#[test]
fn a_warm_up_is_stated_and_not_measured() {
    let (sent, got) = exchange(&["--messages", "2000", "--warmup", "500"], &["--warmup", "100"]);
    assert_eq!((count(&sent, "messages"), count(&sent, "warm_up_messages")), (2000, 500));
    // The publisher marks the warm-up messages, and the subscriber discards the same ones.
    assert_eq!((count(&got, "messages"), count(&got, "warm_up_messages")), (2000, 500));
    assert_eq!((count(&got, "lost"), got["service"]["samples"].as_u64()), (0, Some(2000)));

    let (sent, got) = exchange(&["--messages", "300", "--rate", "1k"], &["--warmup", "100ms"]);
    assert_eq!(count(&sent, "warm_up_messages"), 0);
    assert!(count(&got, "warm_up_messages") >= 50, "{got}");
    assert_eq!(count(&got, "messages") + count(&got, "warm_up_messages"), 300);
    assert_eq!(count(&got, "lost"), 0);
}

#[test]
fn every_way_of_reading_gets_every_message() {
    for (way, latencies) in [
        (&["--copy"][..], 5000),
        (&["--batch", "64"], 5000),
        (&["--verify", "--spin", "4"], 5000),
        (&["--test", "--batch", "7"], 5000),
        (&["--fast"], 0),
        (&["--fast", "--copy", "--spin_cnt", "2"], 0),
        (&["--fast", "--batch", "1000", "--lock-memory"], 0),
    ] {
        let (_, got) = exchange(&["--messages", "5000", "--message-size", "113"], way);
        assert_eq!((count(&got, "messages"), count(&got, "bytes")), (5000, 5000 * 113), "{way:?}");
        assert_eq!((count(&got, "lost"), count(&got, "damaged")), (0, 0), "{way:?}");
        assert_eq!(got["service"]["samples"].as_u64().unwrap_or(0), latencies, "{way:?}");
    }
}

#[test]
fn both_framings_and_what_a_ring_is_made_of() {
    for framing in ["packed", "lines"] {
        let made = ["--framing", framing, "--messages", "3000", "--message-size", "25", "--lock-memory"];
        let (_, got) = exchange(&made, &["--verify"]);
        assert_eq!((count(&got, "messages"), count(&got, "damaged")), (3000, 0), "{framing}");
    }
    let name = OwnName::new();
    let options = ["--mode", "640", "--stall-limit", "3s", "--framing", "lines", "--keep", "--messages", "1"];
    assert!(ring(&[&["pub", "--name", name.as_str()], &options[..]].concat()).status.success());
    let stat = json(&ring(&["stat", name.as_str(), "--format", "json"]));
    assert_eq!(stat["mode"], "0640");
    assert_eq!((&stat["policy"], &stat["framing"]), (&"gated".into(), &"lines".into()));
    assert_eq!(stat["stall_limit_ns"].as_u64(), Some(3_000_000_000));
    let stat = text(&ring(&["stat", "--name", name.as_str()]).stdout);
    assert!(
        stat.contains("policy       gated, lines frames, waits at most 3.0 s for a subscriber"),
        "{stat}"
    );
}

#[test]
fn what_a_full_ring_refuses_is_counted_on_both_sides() {
    let name = OwnName::new();
    let options = ["--queue-size", "4KiB", "--message-size", "100", "--messages", "10k", "--non-blocking"];
    let publish = [&["pub", "--name", name.as_str(), "--format", "json", "--keep"], &options[..]].concat();
    // The publisher starts when the second subscriber has joined; the first is stopped by then. Neither reads before
    // the publisher has ended.
    let publisher = start(&[&publish[..], &["--subscribers", "2"]].concat());
    until(|| inspect(&name.0).is_ok());
    let reader = start(&["sub", "--name", name.as_str(), "--format", "json"]);
    until(|| subscribers(&name) == 1);
    reader.signal(Signal::STOP);
    let stalled = Subscriber::join(&name.0, Start::Newest).unwrap();
    // It does not wait for readers, so it ends although none reads.
    let sent = json(&publisher.end());
    drop(stalled);
    reader.signal(Signal::CONT);
    let got = json(&reader.end());
    assert_eq!(count(&sent, "messages") + count(&sent, "refused"), 10_000);
    assert_eq!(
        (count(&got, "refused"), count(&got, "messages")),
        (count(&sent, "refused"), count(&sent, "messages"))
    );
    assert!(count(&sent, "refused") > 9_000, "{sent}");
    assert_eq!(count(&got, "lost"), 0, "what was not sent is not lost on the way");
}

#[test]
fn a_topic_is_carried_and_checked() {
    let (sent, got) = exchange(&["--topic", "smx_perf", "--messages", "10"], &["--topic", "smx_perf"]);
    assert_eq!((&sent["topic"], &got["topic"]), (&"smx_perf".into(), &"smx_perf".into()));
    let name = OwnName::new();
    let kept = ["pub", "--name", name.as_str(), "--keep", "--messages", "10", "--topic", "quotes"];
    assert!(ring(&kept).status.success());
    let refused = ring(&["sub", "--name", name.as_str(), "--from", "oldest", "--topic", "trades"]);
    let error = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{error}");
    assert!(error.contains("carries topic 'quotes', and topic 'trades' was asked for"), "{error}");
    assert!(error.contains("hint: "), "{error}");
}

/// A publisher that never waits overtakes a stopped subscriber, and the loss is reported at every level.
#[test]
fn a_slow_subscriber_of_a_broadcast_ring_is_told_what_it_lost() {
    let name = OwnName::new();
    let policy = ["--policy", "broadcast", "--queue-size", "4KiB", "--keep"];
    let publish = [&["pub", "--name", name.as_str(), "--subscribers", "1"], &policy[..]].concat();
    let publisher = start(&publish);
    until(|| inspect(&name.0).is_ok());
    let reader = start(&["sub", "--name", name.as_str(), "--format", "json"]);
    // It has read something: messages before the first one read do not count as lost.
    until(|| inspect(&name.0).is_ok_and(|ring| ring.subscribers.iter().any(|reader| reader.position.0 > 0)));
    reader.signal(Signal::STOP);
    let frames = inspect(&name.0).unwrap().publisher.frames;
    until(|| inspect(&name.0).is_ok_and(|ring| ring.publisher.frames > frames + 100_000));
    reader.signal(Signal::CONT);
    publisher.signal(Signal::INT);
    assert!(publisher.end().status.success());
    let read = reader.end();
    assert_eq!(read.status.code(), Some(3), "a loss is a failure: {read:?}");
    let got: Value = serde_json::from_slice(&read.stdout).unwrap();
    assert_eq!(got["verdict"], "LOSSY");
    assert!(count(&got, "lost") > 90_000 && count(&got, "passed") > 90_000, "{got}");
}

/// A gated ring with a limit continues without a stopped subscriber, which gets an error.
#[test]
fn an_evicted_subscriber_says_so() {
    for (way, summary) in [(&[][..], true), (&["--fast"], true), (&["--count"], false), (&["--raw"], false)] {
        let name = OwnName::new();
        let limit = ["--stall-limit", "20ms", "--queue-size", "4KiB"];
        let publish = ["pub", "--name", name.as_str(), "--subscribers", "1", "--format", "json"];
        let publisher = start(&[&publish, &limit[..]].concat());
        until(|| inspect(&name.0).is_ok());
        let reader = start(&[&["sub", "--name", name.as_str(), "--log-level", "error"], way].concat());
        until(|| inspect(&name.0).is_ok_and(|ring| ring.publisher.frames > 1000));
        reader.signal(Signal::STOP);
        until(|| inspect(&name.0).is_ok_and(|ring| ring.publisher.evicted == 1));
        reader.signal(Signal::CONT);
        let read = reader.end();
        assert_eq!(read.status.code(), Some(3), "{way:?}");
        let said = text(&read.stderr);
        assert!(said.contains("has evicted this subscriber at position"), "{way:?}: {said}");
        assert_eq!(text(&read.stdout).contains("LOSSY"), summary, "{way:?}");
        publisher.signal(Signal::INT);
        assert_eq!(count(&json(&publisher.end()), "evicted"), 1);
    }
}

/// A subscriber that loses frames continually never reads enough between two losses to reach a clock check there.
#[test]
fn a_subscriber_that_loses_all_the_time_still_ends() {
    let name = OwnName::new();
    let policy = ["--policy", "broadcast", "--queue-size", "64KiB"];
    let publisher = start(&[&["pub", "--name", name.as_str(), "--subscribers", "1"], &policy[..]].concat());
    until(|| inspect(&name.0).is_ok());
    let slow = ["sub", "--name", name.as_str(), "--batch", "64", "--spin", "20000"];
    let timed = start(&[&slow[..], &["--seconds", "300ms"]].concat()).end();
    assert_eq!(timed.status.code(), Some(3), "{timed:?}");

    let signalled = start(&slow);
    until(|| subscribers(&name) == 1);
    signalled.signal(Signal::TERM);
    assert!(signalled.end().status.code().is_some(), "it ended by itself");
    publisher.signal(Signal::INT);
    assert!(publisher.end().status.success());
}

/// A message that waits for capacity counts once, however often the publisher retries.
#[test]
fn messages_that_waited_are_counted_once_each() {
    let name = OwnName::new();
    let few = ["--queue-size", "4KiB", "--messages", "200", "--format", "json"];
    let publisher = start(&[&["pub", "--name", name.as_str(), "--subscribers", "1"], &few[..]].concat());
    until(|| inspect(&name.0).is_ok());
    let mut slow = Subscriber::join(&name.0, Start::Newest).unwrap();
    until(|| inspect(&name.0).is_ok_and(|ring| ring.publisher.full > 1000));
    let mut frames = 0;
    loop {
        match slow.next() {
            Poll::Frame(_) => frames += 1,
            Poll::Empty => std::thread::yield_now(),
            Poll::Ended => break,
            other => panic!("{other:?}"),
        }
    }
    let sent = json(&publisher.end());
    assert_eq!((frames, count(&sent, "messages")), (200, 200));
    assert!((1..=200).contains(&count(&sent, "held_back_messages")), "{sent}");
}

#[test]
fn the_older_tools_names_and_levels_are_taken() {
    let name = OwnName::new();
    let options = ["--message_size", "32", "--queue_size", "4096", "--log_level", "INFO", "--cpu", "-1"];
    let publisher = start(
        &[&["pub", "--name", name.as_str(), "--clients", "1", "--messages", "9"], &options[..]].concat(),
    );
    until(|| inspect(&name.0).is_ok());
    let read =
        ring(&["sub", "--ring", name.as_str(), "--stats", "latency,throughput", "--log_level", "NOTICE"]);
    assert!(text(&read.stdout).contains("received     9 messages"), "{read:?}");
    let said = text(&publisher.end().stderr);
    assert!(
        said.contains(" of 4 KiB, packed frames: 32 bytes, as fast as they are read, on any core"),
        "{said}"
    );
    let quiet = ring(&[
        "pub",
        "--name",
        name.as_str(),
        "--queue-size",
        "5000",
        "--messages",
        "1",
        "--log-level",
        "error",
    ]);
    assert_eq!(text(&quiet.stderr), "");
}

#[test]
fn several_rings_are_removed_by_their_names() {
    let (one, other) = (OwnName::new(), OwnName::new());
    for name in [&one, &other] {
        assert!(ring(&["pub", "--name", name.as_str(), "--messages", "1", "--keep"]).status.success());
    }
    let names = format!("{},{}", one.as_str(), other.as_str());
    let removed = ring(&["rm", "--names", &names]);
    assert!(removed.status.success(), "{removed:?}");
    assert!(!one.0.path().exists() && !other.0.path().exists());
}

#[test]
fn options_that_cannot_be_are_explained() {
    for (arguments, said) in [
        (&["pub", "--cpu", "one"][..], "is not a core"),
        (&["pub", "--warmup", "much"], "is not a warm-up"),
        (&["pub", "--topic", "longer than sixteen"], "1 to 16 bytes"),
        (&["pub", "--mode", "999"], "three octal digits"),
        (&["sub", "--batch", "0"], "between 1 and 65536"),
        (&["sub", "--fast", "--verify"], "cannot be used with"),
        (&["pub", "--framing", "loose"], "packed, lines"),
    ] {
        let output = ring(&[arguments, &["--name", "test-never-made"]].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text(&output.stderr).contains(said), "{output:?}");
    }
    let absent = ring(&["pub", "--name", OwnName::new().as_str(), "--cpu", "8000", "--messages", "1"]);
    assert!(text(&absent.stderr).contains("8000"), "{absent:?}");
}
