//! Tests that affect rings of other tests (`ring rm --dead` removes every dead ring), so no other test runs meanwhile.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "../commands/ring/running.rs"]
#[allow(dead_code, reason = "the tests of commands use more of it")]
mod running;

use std::sync::Mutex;

use running::*;
use tapeline_ring::{Options, Publisher, inspect};

/// Serializes the tests of this file.
static ONE: Mutex<()> = Mutex::new(());

#[test]
fn a_killed_publisher_is_followed_without_a_gap() {
    let _one = ONE.lock();
    let name = OwnName::new();
    let mut first = start(&["pub", "--name", name.as_str(), "--rate", "20k", "--subscribers", "1"]);
    until(|| inspect(&name.0).is_ok());
    let reader = start(&["sub", "--name", name.as_str(), "--format", "json"]);
    until(|| inspect(&name.0).is_ok_and(|ring| ring.publisher.frames > 500));
    first.0.kill().unwrap();
    first.0.wait().unwrap();
    let left = inspect(&name.0).unwrap();
    assert!(!left.publisher.alive);
    let listed = json(&ring(&["ls", "--format", "json"]));
    let entry = listed.as_array().unwrap().iter().find(|ring| ring["name"] == name.as_str()).unwrap();
    assert_eq!(entry["state"], "dead", "{entry}");
    // A reader still has it open.
    ring(&["rm", "--dead"]);
    assert!(name.0.path().exists());

    let second = ring(&["pub", "--name", name.as_str(), "--messages", "1000"]);
    assert!(text(&second.stderr).contains("publisher 2"), "{second:?}");
    let got = json(&reader.end());
    assert_eq!(got["lost"].as_u64(), Some(0), "{got}");
    assert_eq!(got["backwards"].as_u64(), Some(0), "{got}");
    assert_eq!(got["messages"].as_u64(), Some(left.publisher.frames + 1000), "{got}");
}

#[test]
fn dead_rings_are_removed_and_others_are_not() {
    let _one = ONE.lock();
    let (dead, live, foreign) = (OwnName::new(), OwnName::new(), OwnName::new());
    let mut killed = start(&["pub", "--name", dead.as_str(), "--rate", "1"]);
    until(|| inspect(&dead.0).is_ok());
    killed.0.kill().unwrap();
    killed.0.wait().unwrap();
    let _publisher = Publisher::open(&live.0, &Options::default()).unwrap();
    std::fs::write(foreign.0.path(), "something else").unwrap();
    let output = ring(&["rm", "--dead"]);
    assert!(output.status.success(), "{output:?}");
    assert!(!dead.0.path().exists() && live.0.path().exists() && foreign.0.path().exists());
    let list = text(&ring(&["ls"]).stdout);
    assert!(list.contains("is not a ring"), "{list}");
    assert!(!ring(&["rm", foreign.as_str()]).status.success());
    assert!(ring(&["rm", "--force", foreign.as_str()]).status.success());
    assert!(!foreign.0.path().exists());
}
