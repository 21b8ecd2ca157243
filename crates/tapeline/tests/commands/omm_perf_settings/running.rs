//! Run time of the tools, sleeping threads, and output during a run.

use std::net::TcpListener;

use rustix::process::Pid;
use serde_json::Value;
use tapeline_wire::rssl::ConnectionSettings;

use crate::omm_perf_settings::end::End;
use crate::omm_perf_settings::perf_peer::{Hub, Provider, Tool};

#[test]
fn tools_run_for_as_long_as_they_are_told_to_and_print_what_they_are_told_to() {
    let silent = ["--update-rate", "0", "--latency-update-rate", "0"];
    // This provider has a much longer run time, so a tool that ends before it has reached its own run time.
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
        // Statistics were collected, whether shown or not.
        assert!(running.file("S1.csv").lines().count() >= 3, "{tool} {how:?}");
        let shows = said.lines().any(|line| line.starts_with("001: "));
        assert_eq!(shows, how.is_empty(), "{tool} {how:?}: {said}");
        // A provider always prints its listening address.
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

/// Number of voluntary context switches of a process's connection thread.
fn sleeps(process: Pid) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", process.as_raw_nonzero())).unwrap();
    let count = |task: std::path::PathBuf| {
        let status = std::fs::read_to_string(task.join("status")).ok()?;
        let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        (value("Name:") == Some("connection-1"))
            .then(|| value("voluntary_ctxt_switches:").unwrap().parse().unwrap())
    };
    tasks.filter_map(|task| count(task.unwrap().path())).next().unwrap()
}

/// Upper limit for a thread that never sleeps, over a few seconds: it may block when it passes figures to the main
/// thread, and the like. Other threads sleep in each of a thousand slices a second.
const HARDLY: u64 = 100;

#[test]
fn who_reads_busily_never_sleeps() {
    let silent = ["--update-rate", "0", "--latency-update-rate", "0"];
    let provider = Provider::start(&silent);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let [of_items, of_bytes] = [provider.port, listener.local_addr().unwrap().port()];
    for is_consumer in [true, false] {
        let (tool, port) = if is_consumer {
            (&["consumer", "--item-count", "3", "--generic-msg-rate", "1000"][..], of_items)
        } else {
            (&["transport", "--app-type", "client", "--msg-rate", "1000", "--msg-size", "24"][..], of_bytes)
        };
        let server = format!("localhost:{port}");
        for more in [&[][..], &["--busy-read"]] {
            let usual = ["--server", &server, "--write-stats-interval", "1"];
            let mut running = Tool::start(&[&["omm"], tool, &usual, more].concat());
            // Wait until it is at work.
            let _end = if is_consumer {
                running.line("  - Image retrieval time");
                None
            } else {
                let settings = ConnectionSettings { protocol_type: 88, ..ConnectionSettings::default() };
                let mut end = End::accept(&listener, &mut running, settings);
                end.agreed();
                Some(end)
            };
            let before = sleeps(running.pid());
            if more.is_empty() {
                while sleeps(running.pid()) - before < HARDLY {
                    running.line("0");
                }
            } else {
                (0..3).for_each(|_| _ = running.line("0"));
                let times = sleeps(running.pid()) - before;
                assert!(times < HARDLY, "{tool:?}: {times} times");
            }
        }
    }
}
