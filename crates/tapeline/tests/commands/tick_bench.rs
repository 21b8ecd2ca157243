//! `tapeline tick bench`: all its parts together, and the recorded results.

use std::path::Path;

use serde_json::Value;
use stage::{Running, tapeline};

use crate::stage;

/// Runs a bench in a folder, into its folder `runs`; returns the output. Speed is not tested.
fn bench(folder: &Path, more: &[&str]) -> Value {
    let fixed = ["tick", "bench", "--duration", "200ms", "--warm-up", "50ms", "--format", "json"];
    // A relative path, as users give it.
    let arguments = [&fixed[..], &["--run-folder", "runs"], more].concat();
    let output = tapeline(&arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A file of a round's run folder.
fn read(folder: &Path, round: &Value, name: &str) -> String {
    std::fs::read_to_string(folder.join(round["folder"].as_str().unwrap()).join(name)).unwrap()
}

#[test]
fn both_sockets_with_rows_and_logs() {
    for (more, rows, through) in [
        (
            &["--rates", "1k", "--journal", "written,synced"][..],
            1,
            &["relay", "tickerplant, written", "tickerplant, synced"][..],
        ),
        (&["--rates", "500", "--socket", "tcp", "--rows", "3"], 3, &["relay", "tickerplant"]),
        (
            &["--rates", "500", "--through", "plant", "--journal", "none,written,synced", "--rows", "3"],
            3,
            &["relay", "plant", "plant, written", "plant, synced"],
        ),
        (&["--rates", "500", "--socket", "tcp", "--through", "plant"], 1, &["relay", "plant"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let said = bench(folder.path(), more);
        assert!(said["generators"][0]["limit_hz"].as_f64() > Some(0.0));
        let rounds = said["rounds"].as_array().unwrap();
        let names: Vec<_> = rounds.iter().map(|round| round["through"].as_str().unwrap()).collect();
        assert_eq!(names, through);
        for round in rounds {
            let sent = round["sent_updates"].as_u64().unwrap();
            // The updates due between start and end: a quarter of a second.
            assert_eq!(sent, round["rate"].as_u64().unwrap() / 4 + 1, "{round}");
            // On a machine that stalls for seconds rows are missing, and counted.
            let (received, missing) = (round["received_rows"].as_u64(), round["missing_rows"].as_u64());
            assert_eq!(received.unwrap() + missing.unwrap(), sent * rows, "{round}");
            let run: Value = serde_json::from_str(&read(folder.path(), round, "run.json")).unwrap();
            assert_eq!(run["kind"], "tick");
            let journal = names_of(round).nth(1).unwrap_or("none");
            let is_ours = round["through"] != "relay";
            assert_eq!(run["settings"]["journal"], if is_ours { journal.into() } else { Value::Null });
        }
        // No log or socket is left.
        let left = std::fs::read_dir(folder.path().join("runs")).unwrap().count();
        assert_eq!(left, rounds.len() + 1, "run folders, and a page of the rate");
    }
}

/// The parts of a name such as `tickerplant, written`.
fn names_of(round: &Value) -> impl Iterator<Item = &str> {
    round["through"].as_str().unwrap().split(", ")
}

#[test]
fn every_latency_is_kept_and_each_rate_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let said = bench(folder.path(), &["--rates", "200", "--waiting", "block,spin", "--times"]);
    let rounds = said["rounds"].as_array().unwrap();
    assert_eq!((rounds.len(), said["generators"].as_array().unwrap().len()), (4, 2));
    for round in rounds {
        let times = read(folder.path(), round, "times.csv");
        let (head, rows) = times.split_once('\n').unwrap();
        assert_eq!(head, "due_ns,sent_ns,received_ns");
        let mut measured = 0;
        for row in rows.lines() {
            let [due, sent, received] =
                row.split(',').map(|ns| ns.parse::<u64>().unwrap()).collect::<Vec<_>>()[..]
            else {
                panic!("{row}")
            };
            // The clocks of two processes differ: an update may seem to be received slightly before it was sent.
            assert!(due <= sent && received > 0, "{row}");
            measured += 1;
        }
        // Warm-up rows are received, but not measured.
        let (rate, received) = (round["rate"].as_u64().unwrap(), round["received_rows"].as_u64().unwrap());
        assert_eq!(measured, received.saturating_sub(rate / 20), "{round}");
    }
    let page = std::fs::read_to_string(folder.path().join("runs/200.html")).unwrap();
    assert!(page.contains("How many took how long") && page.contains("<svg"));
    for through in ["relay-block", "relay-spin", "tickerplant-block", "tickerplant-spin"] {
        assert!(page.contains(&format!("{through}-200")), "{through}");
    }
}

/// A disconnected subscriber is an overflow too, and the suite continues: no second update may be queued for a
/// subscriber here, and more arrive than it can read.
#[test]
fn a_subscriber_that_is_cut_off_is_an_overflow() {
    let folder = tempfile::tempdir().unwrap();
    let (file, unix) = (folder.path().join("tick.toml"), folder.path().join("kx.5010"));
    let config = format!(
        "tcp = false\nunix = {unix:?}\nqueue = \"1KiB\"\nkdb_log = false\n[[table]]\nname = \"trade\"\n\
         columns = [\"time timespan\", \"sym symbol\", \"price float\", \"size long\"]\n"
    );
    std::fs::write(&file, config).unwrap();
    let mut tickerplant =
        Running::start(&["tick", "serve", "--config", file.to_str().unwrap(), "--format", "json"]);
    tickerplant.says();
    let more = ["--target", unix.to_str().unwrap(), "--rates", "2k,4k", "--rows", "10000"];
    let said = bench(folder.path(), &more);
    let rounds = said["rounds"].as_array().unwrap();
    assert_eq!(rounds.len(), 4);
    for round in rounds.iter().filter(|round| round["through"] == "target") {
        assert!(round["verdict"].as_str().unwrap().starts_with("overflow"), "{round}");
        assert!(round["missing_rows"].as_u64() > Some(0) && round["latency"].is_null(), "{round}");
        assert!(round["why"].as_str().unwrap().contains("the subscriber was cut off"), "{round}");
    }
}

#[test]
fn what_cannot_be_is_said_before_anything_runs() {
    for (more, says) in [
        (&["--rates", "10k,10k"][..], "given twice"),
        (&["--journal", "written,written"], "given twice"),
        (&["--through", "plant,plant"], "given twice"),
        (&["--target", "localhost:1", "--journal", "synced"], "cannot be used with"),
    ] {
        let output = tapeline(&[&["tick", "bench"], more].concat()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(says), "{more:?}: {said}");
    }
}
