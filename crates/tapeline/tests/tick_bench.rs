//! `tapeline tick bench`: its parts meet each other, and what they say is written down.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use serde_json::Value;
use stage::tapeline;

mod stage;

/// What a bench says and writes; how quick anything is is not for a test.
fn bench(more: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs");
    let fixed =
        ["tick", "bench", "--duration", "200ms", "--warm-up", "50ms", "--format", "json", "--run-folder"];
    let arguments = [&fixed[..], &[runs.to_str().unwrap()], more].concat();
    let output = tapeline(&arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let left = std::fs::read_dir(&runs).unwrap().count();
    assert_eq!(left, said["rounds"].as_array().unwrap().len(), "run folders and nothing else");
    for round in said["rounds"].as_array().unwrap() {
        let name = format!("{}-{}", round["through"].as_str().unwrap(), round["rate"]);
        let run: Value =
            serde_json::from_slice(&std::fs::read(runs.join(name).join("run.json")).unwrap()).unwrap();
        assert_eq!(run["kind"], "tick");
    }
    said
}

#[test]
fn both_sockets_with_rows_and_a_log() {
    for (more, rows) in [
        (&["--rates", "1k", "--journal", "written"][..], 1),
        (&["--rates", "500", "--socket", "tcp", "--rows", "3"], 3),
    ] {
        let said = bench(more);
        assert!(said["generator_limit_hz"].as_f64() > Some(0.0));
        let rounds = said["rounds"].as_array().unwrap();
        assert_eq!(rounds.len(), 2);
        for round in rounds {
            let sent = round["sent_updates"].as_u64().unwrap();
            // What is due between start and end: a quarter of a second of it.
            assert_eq!(sent, round["rate"].as_u64().unwrap() / 4 + 1, "{round}");
            // On a machine that stands still for seconds rows are missing: it says how many.
            let (received, missing) = (round["received_rows"].as_u64(), round["missing_rows"].as_u64());
            assert_eq!(received.unwrap() + missing.unwrap(), sent * rows, "{round}");
        }
    }
}
