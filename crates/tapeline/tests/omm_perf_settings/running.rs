//! For how long tools run, and what they print meanwhile.

use serde_json::Value;

use crate::perf_peer::{Hub, Provider, Tool};

#[test]
fn tools_run_for_as_long_as_they_are_told_to_and_print_what_they_are_told_to() {
    let silent = ["--update-rate", "0", "--latency-update-rate", "0"];
    // This one has much more time. Who ended before it did so when its own was over.
    let mut longer = Provider::start(&[&silent[..], &["--run-time", "100"]].concat());
    let mut hub = Hub::open();
    let [server, publishers] = [longer.port, hub.port].map(|port| format!("localhost:{port}"));
    let consumer = ["--server", &server, "--item-count", "3", "--steady-state-time", "5"];
    let provider = [&silent[..], &["--port", "0", "--run-time", "5"]].concat();
    let publisher = ["--server", &publishers, "--item-count", "3", "--run-time", "5"];
    let publisher = [&silent[..], &publisher].concat();
    let tools = [("consumer", &consumer[..]), ("provider", &provider), ("ni-provider", &publisher)];
    let hows = [&[][..], &["--no-display-stats"], &["--format", "json"]];
    let files = ["--write-stats-interval", "1", "--stats-file", "S", "--run-folder", "run"];
    let start = |tool: &'static str, words: &[&str], how: &'static [&'static str]| {
        (tool, how, Tool::start(&[&["omm", tool], words, &files, how].concat()))
    };
    let all = hows.iter().flat_map(|how| tools.map(|(tool, words)| start(tool, words, how)));
    let mut all: Vec<_> = all.collect();
    hub.until(|hub| hub.published.iter().filter(|(.., is_over)| *is_over).count() == hows.len());
    for (tool, how, running) in &mut all {
        let said = running.rest();
        assert!(longer.tool.runs(), "{tool} ran for longer than it was told to");
        // Seconds went by, whether they were shown or not.
        assert!(running.file("S1.csv").lines().count() >= 3, "{tool} {how:?}");
        let shows = said.lines().any(|line| line.starts_with("001: "));
        assert_eq!(shows, how.is_empty(), "{tool} {how:?}: {said}");
        // Where a provider listens is said in any case.
        let said = said.split_once('\n').filter(|_| *tool == "provider").map_or(&*said, |(_, rest)| rest);
        match serde_json::from_str::<Value>(said) {
            Ok(record) => {
                assert!(how.contains(&"json"), "{tool} {how:?}");
                assert_eq!(record["kind"], format!("omm-{tool}"));
            }
            Err(_) => {
                assert!(!how.contains(&"json") && said.contains("OVERALL SUMMARY"), "{tool} {how:?}: {said}");
            }
        }
    }
}
