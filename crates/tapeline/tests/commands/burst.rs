//! `tapeline burst` through the real binary: small bursts, and every message accounted for.
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Messages per datagram, and a rate at which a small socket buffer lasts for a while: a busy machine loses nothing.
const FEED: [&str; 6] = ["--messages-per-datagram", "10", "--feed-rate", "20k", "--rounds", "1"];

fn burst(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tapeline"))
        .arg("burst")
        .args(FEED)
        .args(arguments)
        .arg("--run-folder")
        .arg(folder)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Every lost message was dropped by the kernel or by the pool's policy, and counted there.
fn is_accounted_for(round: &Value) {
    let number = |name: &str| round[name].as_u64().unwrap();
    let datagrams = number("kernel_drops") + number("dropped");
    assert_eq!(number("lost_messages"), datagrams * 10, "{round}");
    assert_eq!((number("repeated_messages"), number("malformed")), (0, 0), "{round}");
    assert!(number("sent_messages") > 10 * 300, "{round}");
    if datagrams == 0 {
        assert_eq!(round["books_are_right"], true, "{round}");
        assert!(number("peak_backlog") >= 300, "{round}");
    }
}

#[test]
fn small_bursts_are_absorbed_wherever_they_are_held() {
    for at in ["socket", "sender"] {
        for decode in ["full", "none"] {
            let folder = tempfile::tempdir().unwrap();
            let options = ["--hold", "300", "--at", at, "--decode", decode, "--format", "json"];
            let output = burst(folder.path(), &options);
            let report = json(&output);
            let pool = &report["pools"][0];
            assert_eq!(pool["pool"], "spsc");
            is_accounted_for(&pool["rounds"][0]);
            assert_eq!(pool["misses"], 0);
            if pool["lost_messages"] == 0 {
                assert!(output.status.success(), "{output:?}");
                assert!(pool["rounds"][0]["held"].as_u64().unwrap() >= 300);
                // A machine with much else to do may not have drained the backlog before the round ends; the report says so.
                let drained = pool["drain_ns"]["median"].as_u64();
                assert_eq!(drained.is_some_and(|ns| ns > 0), pool["not_drained"] == 0, "{pool}");
            }
            assert!(report["bare_ns"]["median"].as_u64().unwrap() > 0);
            assert!(report["floor"]["decode_ns"].as_u64().unwrap() > 0);
        }
    }
}

#[test]
fn one_thread_can_receive_and_decode() {
    for decode in ["full", "none"] {
        let folder = tempfile::tempdir().unwrap();
        let options =
            ["--hold", "300", "--at", "sender", "--pool", "inline", "--decode", decode, "--format", "json"];
        let report = json(&burst(folder.path(), &options));
        let pool = &report["pools"][0];
        assert_eq!((&pool["pool"], &pool["hits"], &pool["misses"]), (&"inline".into(), &0.into(), &0.into()));
        is_accounted_for(&pool["rounds"][0]);
        // As above: the round may end before the backlog is drained.
        if pool["lost_messages"] == 0 {
            let drained = pool["drain_ns"]["median"].as_u64();
            assert_eq!(drained.is_some_and(|ns| ns > 0), pool["not_drained"] == 0, "{pool}");
        }
    }
}

#[test]
fn pools_are_compared_in_one_run_that_leaves_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let output = burst(folder.path(), &["--hold", "300", "--compare"]);
    let summary = text(&output.stdout);
    for said in ["spsc ", "malloc ", "list-lock ", "300 datagrams withheld", "floor, bare", "run folder"] {
        assert!(summary.contains(said), "{said}\n{summary}");
    }
    let verdict = summary.split(':').next().unwrap();
    assert!(
        ["PASS", "NOISY", "LOSSY", "OVERLOAD", "GENERATOR-LIMITED"].contains(&verdict),
        "the verdict comes first: {summary}"
    );
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("summary.txt").trim_end(), summary.trim_end());
    let run: Value = serde_json::from_str(&read("run.json")).unwrap();
    for pool in run["pools"].as_array().unwrap() {
        is_accounted_for(&pool["rounds"][0]);
    }
    assert_eq!(read("rounds.csv").lines().count(), 4);
    assert!(read("backlog.csv").lines().count() > 3);
    let plot = read("backlog.svg");
    assert!(plot.starts_with("<svg") && plot.contains("spsc:") && plot.contains("list-lock:"), "{plot}");
    assert!(folder.path().join("latency.hlog").exists());
}

#[test]
fn a_pool_that_is_too_small_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["--hold", "300", "--slots", "128", "--policy", "drop-newest", "--format", "json"];
    let output = burst(folder.path(), &options);
    let report = json(&output);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert_eq!(report["verdict"], "LOSSY");
    let round = &report["pools"][0]["rounds"][0];
    is_accounted_for(round);
    assert!(round["dropped"].as_u64().unwrap() > 0 && round["exhaustions"].as_u64().unwrap() > 0, "{round}");
    assert!(round["high_water"].as_u64().unwrap() <= 128, "{round}");
    let advice = report["advice"].to_string();
    assert!(advice.contains("a pool of 128 slots was too small: `--slots 8192`"), "{advice}");
}

#[test]
fn a_hold_that_the_pool_has_no_room_for_does_not_pass() {
    let folder = tempfile::tempdir().unwrap();
    let output = burst(folder.path(), &["--hold", "100", "--slots", "1", "--format", "json"]);
    let report = json(&output);
    let round = &report["pools"][0]["rounds"][0];
    assert!(round["held"].as_u64().unwrap() < 100 && round["exhaustions"].as_u64().unwrap() > 0, "{round}");
    // A machine that was busy meanwhile may cause another verdict.
    assert_ne!(report["verdict"], "PASS");
    if report["verdict"] == "OVERLOAD" && !round["drain_ns"].is_null() {
        let why = report["why"].as_str().unwrap();
        assert!(why.contains("of 100 datagrams") && why.contains("`--slots` too small"), "{why}");
    }
    assert!(report["advice"].to_string().contains("a pool of 1 slot was too small"), "{report}");
}

#[test]
fn wrong_values_are_explained() {
    for (arguments, code, expected) in [
        (&["--hold", "0"][..], 1, "--hold takes 1 to"),
        (&["--hold", "9G"], 1, "--hold takes 1 to"),
        (&["--feed-rate", "0"], 1, "--feed-rate takes 1 to"),
        (&["--slots", "0"], 1, "--slots takes 1 to"),
        (&["--hold", "1M", "--feed-rate", "10"], 1, "raise --feed-rate, or hold fewer"),
        (&["--cpus", "8191,-,-"], 1, "the cores that may be used are"),
        (&["--cpus", "0-3"], 2, "write 1,2,3 or 0,1,-"),
        (&["--line-rate", "0"], 1, "--line-rate takes bits a second"),
        (&["--pool", "lifo"], 2, "list-lock"),
        (&["--pool", "inline"], 1, "--pool inline goes with --at sender"),
        (&["--pool", "spsc", "--compare"], 2, "cannot be used with"),
        (&["--messages-per-datagram", "99"], 2, "99 is not in 1..="),
    ] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_tapeline")).arg("burst").args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
        let error = text(&output.stderr);
        assert!(error.contains(expected), "{arguments:?}: {error}");
        assert_eq!(text(&output.stdout), "");
    }
}
