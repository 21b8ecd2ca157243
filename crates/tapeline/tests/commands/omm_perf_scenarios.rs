//! The four scenarios of chapter 7 of the performance guide, with Tapeline's hub as the distribution system. The
//! tools, the plant and their output are those that users have.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde_json::json;
use stage::{Place, Running, tapeline};
use tapeline_measure::monotonic_ns;

use crate::stage;

const ITEMS: &str = "500";

/// A running performance tool in its own folder.
struct Tool {
    child: Child,
    output: BufReader<ChildStdout>,
    said: String,
}

impl Tool {
    fn start(folder: &Path, role: &str, options: &[&str]) -> Self {
        std::fs::create_dir_all(folder).unwrap();
        let mut command = tapeline(&["omm", role, "--run-folder", "run", "--write-stats-interval", "1"]);
        let mut child = command.args(options).current_dir(folder).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output, said: String::new() }
    }

    /// The rest of the first line with these words.
    fn wait_for(&mut self, words: &str) -> String {
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).unwrap();
            assert!(read > 0, "it ended without '{words}': {}", self.said);
            self.said.push_str(&line);
            if let Some((_, rest)) = line.split_once(words) {
                return rest.trim().to_owned();
            }
        }
    }

    /// A provider's address.
    fn address(&mut self) -> String {
        self.wait_for("listening at ")
    }

    /// All output, after a successful end, or one with the verdict that this machine was too busy for the rate.
    fn end(mut self) -> String {
        while self.output.read_line(&mut self.said).unwrap() > 0 {}
        let status = self.child.wait().unwrap();
        let is_behind = self.said.contains("OVERLOAD: latency");
        assert!(status.success() || is_behind, "{status}: {}", self.said);
        std::mem::take(&mut self.said)
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        stage::remains::remove(self.child.id());
    }
}

/// A figure of a summary.
fn figure(summary: &str, name: &str) -> f64 {
    let found = summary
        .lines()
        .rev()
        .find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok());
    found.unwrap_or_else(|| panic!("no {name}: {summary}"))
}

/// The sum of a column of a statistics file.
fn column(folder: &Path, name: &str) -> u64 {
    let text = std::fs::read_to_string(folder.join("ConsStats1.csv")).unwrap();
    let mut lines = text.lines();
    let at = lines.next().unwrap().split(',').position(|column| column.trim() == name);
    let at = at.unwrap_or_else(|| panic!("no column {name}: {text}"));
    lines.filter_map(|line| line.split(',').nth(at)?.trim().parse::<u64>().ok()).sum()
}

/// A plant without feeds.
struct Plant {
    place: Place,
    _plant: Running,
    hub: String,
    publishers: String,
}

impl Plant {
    fn open(sources: &str) -> Self {
        let place = Place::new(0);
        let path = place.folder.path().join("plant.toml");
        std::fs::write(&path, format!("[plant]\nring = \"{}\"\n[hub]\nport = 0\n{sources}", place.ring))
            .unwrap();
        let mut plant = Running::start(&["plant", "--config", path.to_str().unwrap(), "--format", "json"]);
        let ready = plant.says();
        assert_eq!(ready["ready"], json!(place.ring));
        let address = |of: &str| ready[of].as_str().unwrap_or_default().to_owned();
        Self { hub: address("hub"), publishers: address("publishers"), place, _plant: plant }
    }

    fn folder(&self) -> &Path {
        self.place.folder.path()
    }

    /// A consumer of the hub.
    fn consumer(&self, options: &[&str]) -> Tool {
        let fixed = ["--server", &self.hub, "--service-name", "TEST_FEED", "--item-count", ITEMS];
        Tool::start(&self.folder().join("consumer"), "consumer", &[&fixed, options].concat())
    }

    fn ni_provider(&self, options: &[&str]) -> Tool {
        let fixed = ["--server", &self.publishers, "--service-name", "TEST_FEED", "--item-count", ITEMS];
        Tool::start(&self.folder().join("ni"), "ni-provider", &[&fixed, options].concat())
    }
}

/// A service whose items are published to the plant.
const PUBLISHED: &str = "[publishers]\nport = 0\n[[service]]\nname = \"TEST_FEED\"\nid = 2\n";
/// Time limit for the images, also on a busy machine.
const STEADY: [&str; 2] = ["--steady-state-time", "8"];
const UPDATES: [&str; 4] = ["--update-rate", "5000", "--latency-update-rate", "100"];

/// Checks that all images arrived, and updates with times.
fn assert_measured(summary: &str, folder: &Path) {
    assert_eq!(figure(summary, "Refreshes received"), 500.0);
    assert!(figure(summary, "Updates received") > 0.0);
    assert!(column(folder, "Latency updates") > 0, "{summary}");
}

#[test]
fn interactive_provider_through_the_hub() {
    let place = tempfile::tempdir().unwrap();
    let options = [&UPDATES[..], &["--port", "0", "--service-name", "TEST_FEED"]].concat();
    let mut provider = Tool::start(&place.path().join("provider"), "provider", &options);
    let server = provider.address();
    let plant = Plant::open(&format!(
        "[[service]]\nname = \"TEST_FEED\"\nid = 2\nproviders = [\"perf\"]\n\
         [[provider]]\nname = \"perf\"\nservers = [\"{server}\"]\n"
    ));
    let summary = plant.consumer(&STEADY).end();
    assert_measured(&summary, &plant.folder().join("consumer"));
}

#[test]
fn interactive_provider_direct() {
    let place = tempfile::tempdir().unwrap();
    let mut provider =
        Tool::start(&place.path().join("provider"), "provider", &[&UPDATES[..], &["--port", "0"]].concat());
    let server = provider.address();
    let folder = place.path().join("consumer");
    let options = [&["--server", &server, "--item-count", ITEMS][..], &STEADY].concat();
    let summary = Tool::start(&folder, "consumer", &options).end();
    assert_measured(&summary, &folder);
}

#[test]
fn ni_provider_through_the_hub_with_a_cache_that_is_full() {
    let plant = Plant::open(PUBLISHED);
    let mut provider = plant.ni_provider(&UPDATES);
    provider.wait_for("(total: 500)");
    let summary = plant.consumer(&STEADY).end();
    assert_measured(&summary, &plant.folder().join("consumer"));
}

#[test]
fn ni_provider_through_the_hub_where_items_are_suspect_at_first() {
    // A request before there is an image opens the item as suspect.
    let plant = Plant::open(&format!("{PUBLISHED}unknown = \"wait\"\n"));
    let mut consumer = plant.consumer(&["--steady-state-time", "20"]);
    // Its first interval, without an image.
    consumer.wait_for("Images:      0");
    let _provider = plant.ni_provider(&UPDATES);
    let summary = consumer.end();
    assert_measured(&summary, &plant.folder().join("consumer"));
}

#[test]
fn posting_through_the_hub() {
    let plant = Plant::open(&format!("{PUBLISHED}posts = \"reflect\"\n"));
    let mut provider = plant.ni_provider(&["--update-rate", "0", "--latency-update-rate", "0"]);
    provider.wait_for("(total: 500)");
    let posting = ["--posting-rate", "1000", "--posting-latency-rate", "100"];
    let summary = plant.consumer(&[&STEADY[..], &posting].concat()).end();
    assert_eq!(figure(&summary, "Refreshes received"), 500.0);
    assert!(figure(&summary, "Posts sent") > 0.0);
    let timed = column(&plant.folder().join("consumer"), "Posting Latency updates");
    assert!(timed > 0, "{summary}");
}

#[test]
fn stalls_of_the_sender_show_in_response_times_and_in_the_verdict() {
    const STALL_NS: u64 = 5_000_000;
    const STALLS: u64 = 10;
    let place = tempfile::tempdir().unwrap();
    let every = ["--update-rate", "10000", "--latency-update-rate", "all", "--port", "0", "--nano-time"];
    let mut provider = Tool::start(&place.path().join("provider"), "provider", &every);
    let server = provider.address();
    let folder = place.path().join("consumer");
    let options = ["--server", &server, "--item-count", ITEMS, "--steady-state-time", "8", "--nano-time"];
    let mut consumer = Tool::start(&folder, "consumer", &options);
    consumer.wait_for("Image retrieval time");
    // The whole sender is stopped, as if its core were taken away.
    let pid = Pid::from_child(&provider.child);
    for _ in 0..STALLS {
        kill_process(pid, Signal::STOP).unwrap();
        // A process stops after each of its threads has run once more; the kernel reports that.
        let stopped = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap();
        assert!(stopped.is_some_and(|(_, status)| status.stopped()));
        let until = monotonic_ns() + STALL_NS;
        while monotonic_ns() < until {
            std::hint::spin_loop();
        }
        kill_process(pid, Signal::CONT).unwrap();
    }
    consumer.end();
    let run = std::fs::read_to_string(folder.join("run/run.json")).unwrap();
    let run: serde_json::Value = serde_json::from_str(&run).unwrap();
    let hops = run["hops"].as_array().unwrap();
    let response = hops.iter().find(|found| found["name"] == "response");
    let response = response.unwrap_or_else(|| panic!("no response: {run}"));
    let latency =
        |rank: &str| response["latency_ns"][rank].as_u64().unwrap_or_else(|| panic!("{rank}: {run}"));
    // Updates due in the first slice of a stall arrived after it.
    assert!(latency("max") >= STALL_NS - 1_000_000, "{run}");
    // Updates due in the first two milliseconds of each stall arrived at least three milliseconds late: over 0.1 %.
    let late = STALLS * 20;
    assert!(response["samples"].as_u64().unwrap() < late * 1_000, "{run}");
    assert!(latency("p99.9") >= STALL_NS - 2_000_000, "{run}");
    let why = run["why"].as_str().unwrap();
    assert!(why.contains("later than a slice") && why.contains("worst response time"), "{why}");
}
