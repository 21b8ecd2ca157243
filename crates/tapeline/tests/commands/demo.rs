//! The demo as a user runs it, stops it, and kills it.

use crate::shared_data;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use shared_data::shared;

fn demo(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapeline"));
    command
        .arg("demo")
        .args(["--format", "json", "--run-folder", folder.to_str().unwrap()])
        .args(arguments)
        .stdin(Stdio::null());
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Value {
    let output = demo(folder, arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    // The disconnects of the demo's own clients at the end are not reported.
    assert!(!errors.contains("no connection to"), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"))
}

/// The ring that a demo of this process id makes.
fn ring(pid: u32) -> PathBuf {
    PathBuf::from(format!("/dev/shm/tapeline-demo-{pid}"))
}

const PAGE: &str = include_str!("../../../../docs/demo.md");

/// The receivers in the last table of a summary: name and transport, the heading first.
fn rows(text: &str) -> Vec<String> {
    let from = text.find("\nclient ").unwrap() + 1;
    let lines = text[from..].lines().take_while(|line| !line.trim().is_empty() && !line.starts_with("```"));
    let cells = |line: &str| {
        let cells = line.split("   ").map(str::trim).filter(|cell| !cell.is_empty());
        cells.take(2).collect::<Vec<_>>().join(" | ")
    };
    lines.filter(|line| !line.starts_with('-')).map(cells).collect()
}

#[test]
fn every_message_of_the_simulated_exchange_reaches_both_subscribers() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("run");
    let run = run(&folder, &["--rate", "20k", "--duration", "2s"]);
    assert_eq!(run["lost"], json!(0), "{}", run["why"]);
    assert_eq!(run["throughput"]["messages"], json!(40_000));
    for subscriber in run["settings"]["parts"]["subscribers"].as_array().unwrap() {
        // The beginning and the end of the session are ticks too.
        assert_eq!(subscriber["received"], json!(40_002));
        assert_eq!(subscriber["last_feed_seq"], json!(40_000));
    }
    // The two on shared memory have everything, the two on the network all of their items.
    let clients = run["clients"].as_array().unwrap();
    let over: Vec<_> = clients.iter().map(|client| client["over"].as_str().unwrap()).collect();
    assert_eq!(
        over,
        ["shared memory", "shared memory", "RSSL over TCP", "WebSocket, JSON", "disk, replayed"]
    );
    for client in clients {
        assert_eq!((&client["lost"], &client["verdict"]), (&json!(0), &json!("PASS")), "{client}");
        let is_timed = client["samples"].as_u64() > Some(100) || client["name"] == "journal";
        assert!(is_timed && client["received"].as_u64() > Some(300), "{client}");
    }
    // The journal has everything that was published; its files are removed.
    let journal = &run["journal"];
    let found = (&journal["replayed"], &journal["last_sequence"], &journal["missing"]);
    assert_eq!(found, (&json!(40_002), &json!(40_002), &json!(0)), "{journal}");
    for subscriber in run["settings"]["parts"]["subscribers"].as_array().unwrap() {
        let checksum = format!("{:08x}", subscriber["checksum"].as_u64().unwrap());
        assert_eq!(journal["checksum"], json!(checksum));
    }
    assert!(!folder.join("journal").exists());
    assert_eq!(rows(&std::fs::read_to_string(folder.join("summary.txt")).unwrap()), rows(PAGE));
    let hops: Vec<_> =
        run["hops"].as_array().unwrap().iter().map(|hop| hop["name"].as_str().unwrap()).collect();
    let expected =
        ["wire→decoded", "decoded→sequenced", "→received 1", "→received 2", "wire→received", "due→received"];
    assert_eq!(hops, expected);
    // Where the time goes: the hops beside those of a bare relay at the same rate.
    let steps = run["steps"].as_array().unwrap();
    let named: Vec<_> = steps.iter().map(|step| step["name"].as_str().unwrap()).collect();
    let expected = ["due→wire", "wire→decoded", "decoded→sequenced", "sequenced→received", "wire→received"];
    assert_eq!(named, expected);
    for step in &steps[1..] {
        for figure in ["mean_ns", "median_ns", "relay_ns", "relay_median_ns"] {
            assert!(step[figure].as_u64() > Some(0), "{step}");
        }
    }
    let mean = |step: &Value| step["mean_ns"].as_u64().unwrap();
    let parts: u64 = steps[1..4].iter().map(mean).sum();
    assert!(parts.abs_diff(mean(&steps[4])) < mean(&steps[4]) / 50 + 10, "{steps:?}");
    for file in [
        "run.json",
        "summary.txt",
        "stats-1.csv",
        "stats-2.csv",
        "latency.hlog",
        "latency.hgrm",
        "plant.toml",
    ] {
        assert!(folder.join(file).metadata().unwrap().len() > 0, "{file}");
    }
}

#[test]
fn a_journal_stays_where_that_is_asked_for_and_there_is_none_where_not() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    let found = run(&kept, &["--rate", "5k", "--duration", "1s", "--journal", "kept"]);
    assert_eq!(found["journal"]["replayed"], json!(5_002));
    let verify =
        ["journal", "verify", kept.join("journal").to_str().unwrap(), "--format", "json"].map(str::to_owned);
    let output = Command::new(env!("CARGO_BIN_EXE_tapeline")).args(verify).output().unwrap();
    let verified: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&verified["ticks"], &verified["damage"]), (&json!(5_002), &Value::Null), "{verified}");
    let none = folder.path().join("none");
    let found = run(&none, &["--rate", "5k", "--duration", "1s", "--journal", "none"]);
    assert!(found["journal"].is_null() && !none.join("journal").exists(), "{found}");
}

#[test]
fn a_real_capture_takes_the_place_of_the_exchange() {
    let Some(capture) = shared("moldudp64-derived/aapl5000-clean.pcap") else { return };
    let folder = tempfile::tempdir().unwrap();
    let capture = capture.to_str().unwrap();
    let run = run(&folder.path().join("run"), &["--capture", capture, "--date", "2020-01-30"]);
    assert_eq!(run["lost"], json!(0), "{}", run["why"]);
    assert_eq!(run["throughput"]["messages"], json!(5_000), "{run}");
    assert_eq!(run["settings"]["parts"]["plant"]["feeds"][0]["live_orders"], json!(128));
    assert_eq!(run["journal"]["replayed"], run["settings"]["parts"]["plant"]["ticks"]);
}

/// Most excerpts of a real day begin anywhere in the day and have no end of session.
#[test]
fn an_excerpt_from_the_middle_of_a_day_will_do() {
    let Some(capture) = shared("moldudp64-derived/aapl5000-clean.pcap") else { return };
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(capture).unwrap();
    // A file header of 24 bytes, then packets: 16 bytes of header with the little-endian length at offset 8.
    let mut packets = Vec::new();
    let mut rest = &whole[24..];
    while !rest.is_empty() {
        let len = 16 + u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        packets.push(&rest[..len]);
        rest = &rest[len..];
    }
    // Without the first 100 packets and the last 10, which have the end of session.
    let excerpt = [&whole[..24], &packets[100..packets.len() - 10].concat()].concat();
    let path = folder.path().join("excerpt.pcap");
    std::fs::write(&path, excerpt).unwrap();
    let run = run(&folder.path().join("run"), &["--capture", path.to_str().unwrap(), "--date", "2020-01-30"]);
    assert_eq!(run["lost"], json!(0), "{}", run["why"]);
    let subscribers = run["settings"]["parts"]["subscribers"].as_array().unwrap();
    let last = run["settings"]["parts"]["plant"]["feeds"][0]["next_sequence"].as_u64().unwrap() - 1;
    assert!(
        subscribers.iter().all(|subscriber| subscriber["last_feed_seq"] == json!(last)),
        "{subscribers:?}"
    );
    assert_eq!(subscribers[0]["end"], "plant-ended");
}

#[test]
fn a_capture_that_no_plant_can_read_is_refused_before_anything_starts() {
    let Some(capture) = shared("iex-tops-20170710/tops16-head.pcap") else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("run");
    let output = demo(&folder, &["--capture", capture.to_str().unwrap()]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("holds TOPS or DEEP in IEX-TP\nhint: "), "{error}");
    assert!(!folder.exists());
}

/// A running demo whose plant has made its ring.
fn under_way(folder: &Path) -> Child {
    let mut child = demo(folder, &["--rate", "20k", "--duration", "60s"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !ring(child.id()).exists() {
        assert!(child.try_wait().unwrap().is_none(), "the demo ended early");
        std::thread::yield_now();
    }
    child
}

/// Waits until every process with the demo's standard error open has ended.
fn wait_for_all(child: &mut Child) -> String {
    let errors = BufReader::new(child.stderr.take().unwrap());
    errors.lines().map_while(Result::ok).collect::<Vec<_>>().join("\n")
}

#[test]
fn ctrl_c_leaves_no_ring_and_no_process_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = under_way(&folder.path().join("run"));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let errors = wait_for_all(&mut child);
    assert_eq!(child.wait().unwrap().code(), Some(130), "{errors}");
    assert!(!ring(child.id()).exists(), "{errors}");
}

#[test]
fn a_second_ctrl_c_leaves_nothing_behind_either() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = under_way(&folder.path().join("run"));
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::INT).unwrap();
    let _ = kill_process(pid, Signal::INT);
    let errors = wait_for_all(&mut child);
    child.wait().unwrap();
    assert!(!ring(child.id()).exists(), "{errors}");
}

#[test]
fn even_a_killed_demo_leaves_no_ring_and_no_process_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = under_way(&folder.path().join("run"));
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    // The kernel signals each process of the demo; the plant removes its ring, and what it showed beside the ring.
    let errors = wait_for_all(&mut child);
    child.wait().unwrap();
    assert!(!ring(child.id()).exists(), "{errors}");
    assert!(!Path::new(&format!("/dev/shm/tapeline.demo-{}.config", child.id())).exists(), "{errors}");
}

#[test]
fn contradictory_wishes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["--capture", "x", "--rate", "1k"][..], &["--speed", "max"], &["--subscribers", "0"]] {
        let output = demo(&folder.path().join("run"), arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}
