//! `tapeline report`: pages, comparisons and gates from run folders, and from what LSEG's tools write.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use tapeline_measure::{Nanos, Recorder, write_hlog};

/// Writes a run folder with latencies from this many microseconds up.
fn run_folder(base: &Path, name: &str, us: i64, rate: f64) -> PathBuf {
    let folder = base.join(name);
    fs::create_dir_all(&folder).unwrap();
    let mut recorder = Recorder::new();
    for sample in 0..10_000 {
        recorder.record(us * 1_000 + sample * 10);
    }
    let record = json!({
        "layout": 1,
        "kind": "omm-consumer",
        "started_utc": "2026-11-22T10:00:00Z",
        "seconds": 10.0,
        "settings": {"inputs": {"Item Count": "100"}},
        "verdict": "PASS",
        "why": "none of 10,000 messages lost",
        "throughput": {"messages_per_second": rate},
        "lost": 0,
        "hops": [],
        "steps": [
            {"name": "wire→decoded", "mean_ns": 30_000, "relay_ns": 20_000, "is_sum": false},
            {"name": "sequenced→received", "mean_ns": 70_000, "relay_ns": null, "is_sum": false},
            {"name": "wire→received", "mean_ns": 100_000, "relay_ns": 90_000, "is_sum": true},
        ],
        "phases": [
            {"name": "start-up", "seconds": 0.5, "messages_per_second": 10.0, "service": {"samples": 100, "latency_ns": {"p50": 500_000, "max": 900_000}}, "response": {"samples": 0, "latency_ns": {}}},
            {"name": "steady state", "seconds": 9.5, "messages_per_second": rate, "service": {"samples": 100, "latency_ns": {"p50": 50_000, "max": 90_000}}, "response": {"samples": 0, "latency_ns": {}}},
        ],
        "timeline": [
            {"second": 1, "messages": 100, "cpu_percent": 5.0, "memory_bytes": 50_000_000},
            {"second": 2, "messages": 120, "cpu_percent": 6.0, "memory_bytes": 51_000_000},
        ],
        "jitter_floor_p99_ns": 5_000,
        "processes": [{"name": "consumer", "cores": 0.05, "peak_resident_bytes": 50_000_000}],
        "environment": {"cpu": "a machine <of> ours", "kernel": null},
    });
    fs::write(folder.join("run.json"), record.to_string()).unwrap();
    let mut log = Vec::new();
    let hops = [("service", &recorder), ("response", &recorder)];
    write_hlog(&mut log, Nanos(0), Duration::from_secs(10), &hops).unwrap();
    fs::write(folder.join("latency.hlog"), log).unwrap();
    let rows =
        "start_s,count,negatives,p50_ns,p99_ns,max_ns\n0,10,0,50000,90000,95000\n1,10,0,51000,91000,96000\n";
    fs::write(folder.join("stats-1.csv"), rows).unwrap();
    folder
}

/// Status, standard output, standard error.
fn report(base: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapeline"));
    let output = command.arg("report").args(arguments).current_dir(base).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_page_has_all_of_its_runs_and_needs_nothing_else() {
    let base = tempfile::tempdir().unwrap();
    run_folder(base.path(), "before-1", 50, 100_000.0);
    run_folder(base.path(), "before-2", 52, 101_000.0);
    run_folder(base.path(), "after", 75, 90_000.0);
    let (status, _, said) =
        report(base.path(), &["before-1", "before-2", "after", "--title", "Faster <or> not"]);
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("report.html: 3 runs"), "{said}");
    let page = fs::read_to_string(base.path().join("report.html")).unwrap();
    for part in [
        "<title>Faster &lt;or&gt; not</title>",
        "before-1",
        "before-2",
        "2 runs: median, least to most",
        "none of 10,000 messages lost",
        "id=\"percentiles\"",
        "id=\"histogram\"",
        "id=\"hops\"",
        "id=\"latency-over-time\"",
        "id=\"throughput\"",
        "id=\"cpu\"",
        "id=\"memory\"",
        "id=\"phases\"",
        "id=\"waterfall\"",
        "sequenced→received: 70",
        "id=\"comparison\"",
        "jitter floor at p99",
        "99 %",
        "steady state",
        "a machine &lt;of&gt; ours",
        "Item Count",
    ] {
        assert!(page.contains(part), "{part}");
    }
    // The medians are 101 µs and 125 µs: latencies of 50 to 150 and of 75 to 175, in even steps.
    assert!(page.contains("<b>1.24 ×</b>"), "the ratio of medians");
    assert!(!page.contains("<script") && !page.contains("src=") && !page.contains("href="));
    assert_eq!(page.matches("http").count(), page.matches("http://www.w3.org/2000/svg").count());
    // A sum of hops is no part of the waterfall.
    assert!(page.contains("wire→decoded: 30 (20)") && !page.contains("wire→received: 100"));
    assert!(!page.contains("NaN") && !page.contains(">inf"));
}

#[test]
fn a_provider_and_its_consumer_are_two_ends_of_one_run() {
    let base = tempfile::tempdir().unwrap();
    for (name, kind) in [("a", "omm-consumer"), ("b", "omm-consumer"), ("c", "omm-provider")] {
        let path = run_folder(base.path(), name, 50, 100_000.0).join("run.json");
        let text = fs::read_to_string(&path).unwrap().replace("omm-consumer", kind);
        fs::write(path, text).unwrap();
    }
    let page = |runs: &[&str]| {
        let (status, _, said) = report(base.path(), runs);
        assert_eq!(status, 0, "{said}");
        fs::read_to_string(base.path().join("report.html")).unwrap()
    };
    let pair = page(&["before=a", "before=c"]);
    assert!(!pair.contains("Side by side") && !pair.contains(" ×</b>"), "nothing is to be compared");
    let three = page(&["consumer=a", "provider=c", "another=b"]);
    let table = three.split("Side by side").nth(1).unwrap().split("</table>").next().unwrap();
    assert!(
        table.contains("consumer") && table.contains("another") && !table.contains("provider"),
        "{table}"
    );
    assert!(three.contains("<td>another<br><small>omm-consumer, b</small>"), "as the reader calls it");
    let (status, said, _) = report(base.path(), &["a", "c", "--gate", "p99=+10%"]);
    assert!(status == 1 && said.contains("nothing to compare"), "{said}");
}

#[test]
fn gates_decide_the_status() {
    let base = tempfile::tempdir().unwrap();
    run_folder(base.path(), "a", 50, 100_000.0);
    run_folder(base.path(), "b", 55, 95_000.0);
    let (status, said, _) =
        report(base.path(), &["a", "b", "--gate", "p99=+10%", "--gate", "throughput=-6%"]);
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("PASS p99 (response): b against a: +3.4 %, +10 % allowed"), "{said}");
    assert!(said.contains("PASS throughput: b against a: -5.0 %, -6 % allowed"), "{said}");
    let (status, said, _) = report(base.path(), &["a", "b", "--gate", "p99=+3%", "--gate", "throughput=-4%"]);
    assert_eq!(status, 1);
    assert_eq!(said.matches("FAIL").count(), 2, "{said}");
    // Of 10,000 samples fewer than ten are beyond p99.99; and a gate needs two runs.
    let (status, said, _) = report(base.path(), &["a", "b", "--gate", "p99.99=+10%"]);
    assert!(status == 1 && said.contains("do not both have it"), "{said}");
    let (status, said, _) = report(base.path(), &["a", "--gate", "p99=+10%"]);
    assert!(status == 1 && said.contains("nothing to compare"), "{said}");
    // Runs of the same name are one group.
    let (status, said, _) = report(base.path(), &["x=a", "x=b", "y=b", "--gate", "p99=+10%"]);
    assert!(status == 0 && said.contains("y against x"), "{said}");
    for (gate, words) in [
        ("p98=+1%", "no figure"),
        ("p99=10%", "no gate"),
        ("p99", "no gate"),
        ("throughput=+5%", "worse the less"),
        ("cpu=-5%", "worse the more"),
    ] {
        let (status, _, said) = report(base.path(), &["a", "b", "--gate", gate]);
        assert!(status == 2 && said.contains(words), "{gate}: {said}");
    }
}

#[test]
fn plots_as_files() {
    let base = tempfile::tempdir().unwrap();
    run_folder(base.path(), "a", 50, 100_000.0);
    let (status, _, said) = report(base.path(), &["a", "--svg", "plots", "--to", "page.html"]);
    assert_eq!(status, 0, "{said}");
    let svg = fs::read_to_string(base.path().join("plots/percentiles.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("Latency by percentile"));
    let (status, _, said) = report(base.path(), &["a", "--png", "plots", "--to", "page.html"]);
    if status == 0 {
        let png = fs::read(base.path().join("plots/percentiles.png")).unwrap();
        assert!(png.starts_with(b"\x89PNG"));
    } else {
        // The machine has no font.
        assert!(said.contains("a PNG needs fonts"), "{said}");
    }
}

/// As in chapter 4.6 of the guide.
const STATISTICS: &str = "UTC, Latency updates, Latency avg (usec), Latency std dev (usec), Latency max (usec), Latency min (usec), \
    Images, Update rate (msg/sec), CPU usage (%), Memory (MB)\n\
    2021-06-02 23:59:57, 189, 81.5, 35.6, 230.0, 51.0, 100000, 3777, 97.49, 338.21\n\
    2021-06-03 00:00:02, 2399, 81.7, 26.3, 258.0, 52.0, 0, 48034, 33.32, 338.30\n";

#[test]
fn other_makers_files_are_read_as_they_are() {
    let base = tempfile::tempdir().unwrap();
    run_folder(base.path(), "ours", 50, 100_000.0);
    let theirs = base.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    fs::write(theirs.join("ConsStats1.csv"), STATISTICS).unwrap();
    let mut latencies = "Message type, Send time, Receive time, Latency (usec)\n".to_owned();
    for number in 0..1_000 {
        latencies.push_str(&format!("Upd, {}, {}, {}\n", number * 100, number * 100 + 200, 200));
        latencies.push_str(&format!("Pst, {}, {}, {}\n", number * 100, number * 100 + 900, 900));
    }
    fs::write(theirs.join("ConsLatency1.csv"), &latencies).unwrap();
    fs::write(theirs.join("other.csv"), "a,b\n1,2\n").unwrap();
    let (status, said, error) = report(base.path(), &["ours", "theirs", "--gate", "p50=+300%"]);
    assert_eq!(status, 0, "{said} {error}");
    let page = fs::read_to_string(base.path().join("report.html")).unwrap();
    // Updates represent the run; the statistics cross midnight.
    for part in ["updates", "posts", "200 µs", "25.9 k msgs/s", "id=\"throughput\"", "Averages and maxima"] {
        assert!(page.contains(part), "{part}");
    }
    // Their runs have no response time: the gate uses the time that both have.
    assert!(said.contains("PASS p50 (service time): theirs against ours"), "{said}");
    assert!(page.contains("not all of these runs know when messages were due"));
    let in_ns = "Message type, Send time, Receive time, Latency (nsec)\nUpd, 1, 200001, 200000\n".to_owned();
    fs::write(base.path().join("nano1.csv"), in_ns).unwrap();
    assert_eq!(report(base.path(), &["nano1.csv", "--to", "nano.html"]).0, 0);
    let nano = fs::read_to_string(base.path().join("nano.html")).unwrap();
    assert!(nano.contains("200 µs") && !nano.contains("200 ms"));
    // Statistics of another tool are not added to the consumer's.
    fs::write(theirs.join("ProvStats1.csv"), STATISTICS).unwrap();
    assert_eq!(report(base.path(), &["theirs"]).0, 0);
    let page = fs::read_to_string(base.path().join("report.html")).unwrap();
    assert!(page.contains("25.9 k msgs/s") && page.contains("passed over: ProvStats1"), "ProvStats1");
    let (status, ..) = report(base.path(), &["theirs/ConsLatency1.csv", "theirs/ConsStats1.csv"]);
    assert_eq!(status, 0);
}

#[test]
fn what_cannot_be_read_is_said_with_its_place() {
    let base = tempfile::tempdir().unwrap();
    let good = run_folder(base.path(), "good", 50, 1.0);
    let with = |name: &str, file: &str, bytes: &[u8]| {
        let folder = base.path().join(name);
        fs::create_dir(&folder).unwrap();
        for entry in fs::read_dir(&good).unwrap().map(Result::unwrap) {
            fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
        }
        fs::write(folder.join(file), bytes).unwrap();
    };
    with("newer", "run.json", b"{\"layout\": 99}");
    with("burst", "run.json", b"{\"layout\": 2, \"kind\": \"burst\"}");
    with("cut", "run.json", b"{\"layout\": 1");
    with("no-log", "latency.hlog", b"Tag=a,0.000,1.000,1.0,!!!!\n");
    with("no-number", "stats-1.csv", b"start_s,count\nx,1\n");
    with("no-median", "stats-1.csv", b"start_s,p50_ns\n0,1\n1,x\n");
    let damaged = |name: &str, from: &str, to: &str| {
        assert!(STATISTICS.contains(from));
        fs::write(base.path().join(name), STATISTICS.replace(from, to)).unwrap();
    };
    damaged("rate.csv", "48034", "abc");
    damaged("memory.csv", ", 338.21\n", "\n");
    fs::create_dir(base.path().join("empty")).unwrap();
    let lines = "Message type, Send time, Receive time, Latency (usec)\nUpd, 1, 2, 1\nUpd, 1, 2\n";
    fs::write(base.path().join("cut.csv"), lines).unwrap();
    for (path, words) in [
        ("nowhere", "cannot read nowhere"),
        ("empty", "empty is no run folder"),
        ("empty", "its run may still be going on"),
        ("newer", "layout 99"),
        ("burst", "this is a run of `tapeline burst`"),
        ("cut", "run.json is no JSON"),
        ("no-log", "latency.hlog"),
        ("no-number", "stats-1.csv, line 2: start_s"),
        ("no-median", "stats-1.csv, line 3: p50_ns is no number"),
        ("rate.csv", "rate.csv"),
        ("rate.csv", "line 3, column Update rate (msg/sec): 'abc' is no number"),
        ("memory.csv", "line 2, column Memory (MB): the line ends before it; expected 10 columns"),
        ("cut.csv", "line 3: the latency is no number"),
    ] {
        let (status, _, said) = report(base.path(), &[path]);
        assert!(status == 1 && said.contains(words), "{path}: {said}");
        assert!(!base.path().join("report.html").exists(), "no page of half of the runs");
    }
}

#[test]
fn a_last_line_whose_writer_was_cut_off_is_left_out_and_that_is_said() {
    let base = tempfile::tempdir().unwrap();
    let latencies =
        "Message type, Send time, Receive time, Latency (usec)\nUpd, 100, 300, 200\nUpd, 200, 400, 200\n";
    for (name, text) in [("ConsStats1.csv", STATISTICS), ("ConsLatency1.csv", latencies)] {
        let (whole, _) = text.trim_end().rsplit_once('\n').unwrap();
        // Cut anywhere in the line: part of a number still parses as a number.
        for len in [1, 9, text.len() - whole.len() - 3] {
            fs::write(base.path().join(name), &text[..whole.len() + 1 + len]).unwrap();
            let (status, _, said) = report(base.path(), &[name]);
            assert_eq!(status, 0, "{name}, {len}: {said}");
            let page = fs::read_to_string(base.path().join("report.html")).unwrap();
            let note = format!("The last line of {name} has no end");
            assert!(page.contains(&note), "{name}, {len}");
        }
        fs::write(base.path().join(name), text).unwrap();
        assert_eq!(report(base.path(), &[name]).0, 0);
        let page = fs::read_to_string(base.path().join("report.html")).unwrap();
        assert!(!page.contains("has no end"), "{name}");
    }
}
