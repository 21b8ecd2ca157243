//! `tapeline stat`: a running plant with a hub, seen from outside.

use std::path::PathBuf;

use serde_json::{Value, json};
use stage::{Place, Running, tapeline};

use crate::stage;

/// A plant with a hub on a free port.
fn plant(place: &Place, hub: &str) -> (Running, Value) {
    let config = place.config("");
    let mut text = std::fs::read_to_string(&config).unwrap();
    text.push_str(&format!("[hub]\nport = 0\nunknown = \"wait\"\n{hub}\n"));
    std::fs::write(&config, text).unwrap();
    let mut plant = Running::start(&["plant", "--config", &config, "--format", "json"]);
    let ready = plant.says();
    (plant, ready)
}

fn counters_file(ring: &str) -> PathBuf {
    PathBuf::from(format!("/dev/shm/tapeline.{ring}.stat"))
}

/// The output of one `tapeline stat`.
fn stat(ring: &str) -> Value {
    let output = tapeline(&["stat", ring, "--format", "json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Waits until `is_so` returns true for the counters.
fn watch(ring: &str, mut is_so: impl FnMut(&Value) -> bool) -> Value {
    let mut looking = Running::start(&["stat", ring, "--every", "50ms", "--format", "json"]);
    loop {
        let seen = looking.says();
        if is_so(&seen) {
            return seen;
        }
    }
}

#[test]
fn a_plant_is_seen_from_outside_with_its_sessions_and_latency() {
    let place = Place::new(1);
    let (plant, ready) = plant(&place, "");
    let server = ready["hub"].as_str().unwrap();
    let at_once = stat(&place.ring);
    assert_eq!((&at_once["pid"], &at_once["hub"]["address"]), (&json!(plant.child.id()), &json!(server)));

    let fixed =
        ["omm", "watch", "--server", server, "--service", "TAPELINE", "TAPE", "SENA", "--user", "trader"];
    let mut consumers =
        [&[][..], &["--websocket", "json"]].map(|way: &[&str]| Running::start(&[&fixed[..], way].concat()));
    let file = place.folder.path().join("day.itch");
    let path = file.to_str().unwrap();
    let written = ["feed", "simulate", "--symbols", "3", "--messages", "3k", "--write", path];
    assert!(tapeline(&written).output().unwrap().status.success());
    place.replay(&file, 0);
    for consumer in &mut consumers {
        while consumer.says()["event"] != "update" {}
    }
    let seen = watch(&place.ring, |seen| {
        let hub = &seen["hub"];
        let sessions = hub["sessions"].as_array().unwrap();
        seen["feeds"][0]["messages"].as_u64() >= Some(3_000)
            && sessions.len() == 2
            && sessions.iter().all(|session| session["updates"].as_u64() > Some(10))
    });
    let hub = &seen["hub"];
    let mut ways: Vec<_> = hub["sessions"].as_array().unwrap().iter().map(|s| &s["transport"]).collect();
    ways.sort_by_key(ToString::to_string);
    assert_eq!(ways, [&json!("tcp"), &json!("websocket tr_json2")]);
    for session in hub["sessions"].as_array().unwrap() {
        assert_eq!(session["user"], "trader");
        assert!(session["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{session}");
    }
    assert_eq!((&hub["services"][0]["name"], &hub["services"][0]["up"]), (&json!("TAPELINE"), &json!(true)));
    assert_eq!(hub["cache"]["items"], json!(3));
    assert!(hub["cache"]["bytes"].as_u64() > Some(0) && hub["cache"]["limit_bytes"] == json!(1 << 30));
    assert_eq!((&seen["feeds"][0]["state"], &seen["items"]), (&json!("live"), &json!(3)));
    assert!(seen["process"]["resident_bytes"].as_u64() > Some(1_000_000), "{}", seen["process"]);
    assert!(seen["readers"].as_array().unwrap().iter().any(|reader| reader["name"] == "hub"));
    for (hop, name) in hub["latency"].as_array().unwrap().iter().zip([
        "wire_to_decoded",
        "decoded_to_sequenced",
        "sequenced_to_taken",
        "wire_to_sent",
    ]) {
        assert_eq!(hop["hop"], name);
        assert!(hop["all"]["samples"].as_u64() > Some(0), "{hop}");
    }

    let table = tapeline(&["stat"]).output().unwrap();
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.contains(&place.ring) && table.contains("wire→sent, since the start"), "{table}");

    // A normal end removes its file.
    plant.ask_to_end();
    let mut plant = plant;
    while plant.may_say().is_some() {}
    assert!(!counters_file(&place.ring).exists());
}

#[test]
fn what_a_killed_plant_leaves_is_known_for_that_and_removed() {
    let place = Place::new(1);
    let (mut plant, _) = plant(&place, "");
    plant.child.kill().unwrap();
    plant.child.wait().unwrap();
    assert!(counters_file(&place.ring).exists());
    let output = tapeline(&["stat", &place.ring]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("has died; its counters are removed") && said.contains("no running plant"),
        "{said}"
    );
    assert!(!counters_file(&place.ring).exists());
    tapeline(&["ring", "rm", &place.ring]).output().unwrap();
}

/// A plant that is stopped must not look as if it worked.
#[test]
fn a_stopped_plant_is_silent_and_has_no_rates() {
    let place = Place::new(1);
    let (plant, _) = plant(&place, "");
    let pid = rustix::process::Pid::from_child(&plant.child);
    let signal = |signal| rustix::process::kill_process(pid, signal).unwrap();
    // A rate that goes on to be shown unless somebody looks at the time.
    let path = place.folder.path().join("day.itch");
    let written =
        ["feed", "simulate", "--symbols", "3", "--messages", "20k", "--write", path.to_str().unwrap()];
    assert!(tapeline(&written).output().unwrap().status.success());
    place.replay(&path, 0);
    let seen = watch(&place.ring, |seen| seen["ticks_per_second"].as_f64() > Some(0.0));
    assert_eq!(seen["silent_ns"], json!(0), "{seen}");
    signal(rustix::process::Signal::STOP);
    let seen = watch(&place.ring, |seen| seen["silent_ns"].as_u64() > Some(0));
    assert!(seen["silent_ns"].as_u64() >= Some(3_000_000_000), "{seen}");
    for rates in
        [&seen["ticks_per_second"], &seen["feeds"][0]["messages_per_second"], &seen["process"]["cores"]]
    {
        assert_eq!(rates, &json!(0.0), "{seen}");
    }
    assert!(seen["ticks"].as_u64() > Some(0), "counts stay: {seen}");
    let table = String::from_utf8(tapeline(&["stat", &place.ring]).output().unwrap().stdout).unwrap();
    let first = table.lines().next().unwrap();
    assert!(first.starts_with("SILENT       the plant has reported nothing for "), "{table}");
    assert!(first.contains(&format!("kill -CONT {}", plant.child.id())), "{table}");
    assert!(table.contains("process      – cores") && !table.contains("ticks/s"), "{table}");
    signal(rustix::process::Signal::CONT);
    watch(&place.ring, |seen| seen["silent_ns"] == json!(0));
}

/// A ring that lost its name is no dead plant: it is visible, its counters stay, and no other plant can take its place.
#[test]
fn a_plant_whose_ring_lost_its_name_is_alive() {
    let place = Place::new(1);
    let (plant, _) = plant(&place, "");
    std::fs::remove_file(format!("/dev/shm/tapeline-{}", place.ring)).unwrap();
    assert_eq!(stat(&place.ring)["pid"], json!(plant.child.id()));
    let seen = watch(&place.ring, |plant| plant["ring_removed"] == json!(true));
    assert_eq!(seen["pid"], json!(plant.child.id()));

    let other = Place::new(1);
    let config = other.config("");
    let text = std::fs::read_to_string(&config).unwrap().replace(&other.ring, &place.ring);
    std::fs::write(&config, text).unwrap();
    let second = tapeline(&["plant", "--config", &config]).output().unwrap();
    let said = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(said.contains("although the ring's name was removed"), "{said}");
    assert_eq!(stat(&place.ring)["pid"], json!(plant.child.id()));

    plant.ask_to_end();
    let mut plant = plant;
    while plant.may_say().is_some() {}
    assert!(!counters_file(&place.ring).exists());
}

#[test]
fn a_plant_ends_without_its_name_where_it_is_told_to() {
    let place = Place { keys: "ring_removed = \"end\"\n", ..Place::new(1) };
    let (mut plant, _) = plant(&place, "");
    std::fs::remove_file(format!("/dev/shm/tapeline-{}", place.ring)).unwrap();
    assert_eq!(plant.child.wait().unwrap().code(), Some(1));
    assert!(!counters_file(&place.ring).exists());
}
