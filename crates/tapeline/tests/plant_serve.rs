//! A plant's hub in a process of its own, which comes late, is killed, and comes back under a plant that goes on.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::process::ChildStderr;

use serde_json::{Map, Value, json};
use stage::{Place, Running};

mod stage;

/// The busiest stocks of the simulated exchange are always the same.
const STOCKS: [&str; 3] = ["TAPE", "SENA", "RIMU"];
/// More ticks than such a ring can hold: each has a header of 64 bytes.
const SMALL_RING: &str = "ring_size = \"64KiB\"\nstall_limit = \"0s\"\n";
const TICKS_GONE: u64 = 1_024;

/// A plant without its hub, and the port at which that is to be.
struct Market {
    place: Place,
    plant: Running,
    config: String,
    server: String,
}

impl Market {
    fn open(keys: &'static str, hub: &str) -> Self {
        let mut place = Place::new(1);
        place.keys = keys;
        let config = place.config("");
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let mut text = std::fs::read_to_string(&config).unwrap();
        text.push_str(&format!("[hub]\nport = {port}\n{hub}\n"));
        std::fs::write(&config, text).unwrap();
        let mut plant = Running::start(&["plant", "--config", &config, "--without-hub", "--format", "json"]);
        let ready = plant.says();
        assert_eq!((&ready["ready"], ready.get("hub")), (&json!(place.ring), None), "{ready}");
        Self { place, plant, config, server: format!("127.0.0.1:{port}") }
    }

    /// The exchange, whose first messages are no longer on the ring.
    fn exchange(&self) -> Running {
        let to = self.place.lines[0].to_string();
        let fixed = ["feed", "simulate", "--to", &to, "--symbols", "3", "--format", "json"];
        let exchange = Running::start(&[&fixed[..], &["--rate", "2k", "--duration", "600s"]].concat());
        let mut stat = Running::start(&["stat", &self.place.ring, "--every", "50ms", "--format", "json"]);
        while stat.says()["ticks"].as_u64().unwrap() <= TICKS_GONE {}
        exchange
    }

    /// The hub: a process that serves.
    fn serve(&self) -> (Running, ChildStderr) {
        let (mut hub, talk) =
            Running::start_talking(&["plant", "serve", "--config", &self.config, "--format", "json"]);
        assert_eq!(hub.says()["hub"], json!(self.server));
        (hub, talk)
    }

    fn consumer(&self, options: &[&str]) -> Running {
        let fixed =
            ["omm", "consumer", "--server", &self.server, "--service", "TAPELINE", "--format", "json"];
        Running::start(&[&fixed, &STOCKS[..], options].concat())
    }
}

/// What each item is in the end, of all that a program says from here to its own.
fn last(running: &mut Running, kind: &str) -> BTreeMap<String, Map<String, Value>> {
    let mut items: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    while let Some(said) = running.may_say() {
        let (Some(kind), Some(item)) = (said[kind].as_str(), said["item"].as_str()) else { continue };
        if matches!(kind, "refresh" | "update") {
            let fields = items.entry(item.to_owned()).or_default();
            if kind == "refresh" {
                fields.clear();
            }
            fields.extend(said["fields"].as_object().cloned().unwrap_or_default());
        }
    }
    items
}

/// Waits for images of all stocks, and none of them in doubt.
fn wait_for_images(consumer: &mut Running) {
    let mut there = Vec::new();
    while there.len() < STOCKS.len() {
        let said = consumer.says();
        if said["event"] == "refresh" && said["state"]["data"] != "SUSPECT" {
            assert!(said["fields"]["BID"].is_number() || said["fields"]["BID"].is_string(), "{said}");
            there.push(said["item"].clone());
        }
    }
}

fn wait_for_line(talk: ChildStderr, part: &str) {
    let mut lines = BufReader::new(talk).lines();
    let found = lines.by_ref().map(Result::unwrap).find(|line| line.contains(part));
    assert!(found.is_some(), "it ended without a word of \"{part}\"");
    // Whoever talks is not to wait for this reader.
    std::thread::spawn(move || lines.for_each(drop));
}

#[test]
fn a_hub_that_comes_late_and_comes_again_has_every_image() {
    let keys = concat!("ring_size = \"64KiB\"\nstall_limit = \"0s\"\n", "images = \"64MiB\"\n");
    let mut market = Market::open(keys, "slow = \"cut\"\nslow_bytes = \"64MiB\"");
    let ring = market.place.ring.clone();
    let mut watch =
        Running::start(&["plant", "watch", "--ring", &ring, "--from", "oldest", "--format", "json"]);
    // Read as it comes: the ring waits for it.
    let truth = std::thread::spawn(move || last(&mut watch, "kind"));
    let exchange = market.exchange();
    let (mut hub, _talk) = market.serve();
    let mut consumer = market.consumer(&[]);
    wait_for_images(&mut consumer);
    while consumer.says()["event"] != "update" {}

    hub.child.kill().unwrap();
    hub.child.wait().unwrap();
    let (mut hub, _talk) = market.serve();
    wait_for_images(&mut consumer);
    while consumer.says()["event"] != "update" {}

    // One that sees the end: image and updates make what all updates make.
    let mut other = market.consumer(&["--until-closed"]);
    wait_for(&mut other, "ready");
    exchange.ask_to_end();
    market.plant.ask_to_end();
    let (seen, truth) = (last(&mut other, "event"), truth.join().unwrap());
    assert_eq!(seen.keys().collect::<Vec<_>>().len(), STOCKS.len());
    for (item, fields) in &seen {
        assert_eq!(fields, &truth[item], "{item}");
    }
    assert!(other.child.wait().unwrap().success());
    let report = hub.says();
    assert_eq!(report["cut"], json!(0), "{report}");
    while market.plant.may_say().is_some() {}
    assert!(!std::path::Path::new(&format!("/dev/shm/tapeline.{ring}.images")).exists());
}

fn wait_for(running: &mut Running, event: &str) {
    while running.says()["event"] != event {}
}

#[test]
fn without_images_a_late_hub_says_so_and_takes_nothing_for_closed() {
    let mut market = Market::open(SMALL_RING, "unknown = \"closed\"");
    let exchange = market.exchange();
    let (mut hub, talk) = market.serve();
    wait_for_line(talk, "the plant keeps no images");
    let mut consumer = market.consumer(&[]);
    let mut waiting = 0;
    while waiting < STOCKS.len() {
        let said = consumer.says();
        let state = &said["state"];
        if said["item"].is_string() && state["text"].as_str().is_some_and(|text| text.contains("no image")) {
            assert_eq!((&state["stream"], &state["data"]), (&json!("OPEN"), &json!("SUSPECT")), "{said}");
            waiting += 1;
        }
    }
    // A plant that dies takes its hub along, wherever that runs.
    drop(exchange);
    market.plant.child.kill().unwrap();
    market.plant.child.wait().unwrap();
    while hub.may_say().is_some() {}
    assert_eq!(hub.child.wait().unwrap().code(), Some(1));
}
