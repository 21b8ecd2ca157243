//! A plant's hub as seen by its clients: real processes, a simulated exchange, Tapeline's consumers over TCP and
//! WebSocket.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, UdpSocket};

use serde_json::{Map, Value, json};
use stage::{Place, Running, tapeline};

use crate::stage;

/// The busiest stocks of the simulated exchange are always the same.
const STOCKS: [&str; 3] = ["TAPE", "SENA", "RIMU"];
/// Default session of `feed replay` for a file that names none.
const SESSION: &str = "TAPELINE";

/// A plant with a hub on its own port.
struct Market {
    place: Place,
    plant: Running,
    server: String,
}

impl Market {
    /// `options`: those of the plant.
    fn open(hub: &str, options: &[&str]) -> Self {
        let place = Place::new(1);
        // After the table of the feed's lines.
        let config = place.config("");
        let mut text = std::fs::read_to_string(&config).unwrap();
        text.push_str(&format!("[hub]\nport = 0\nunknown = \"wait\"\n{hub}\n"));
        std::fs::write(&config, text).unwrap();
        let fixed = ["plant", "--config", &config, "--format", "json"];
        let mut plant = Running::start(&[&fixed, options].concat());
        let ready = plant.says();
        assert_eq!(ready["ready"], json!(place.ring));
        let server = ready["hub"].as_str().unwrap().to_owned();
        Self { place, plant, server }
    }

    /// A consumer of all stocks, which waits for each image.
    fn consumer(&self, options: &[&str]) -> Running {
        let fixed = ["omm", "watch", "--server", &self.server, "--service", "TAPELINE", "--attempts", "1"];
        Running::start(&[&fixed, &STOCKS[..], options].concat())
    }

    /// Sends a heartbeat: the service is up, without a message yet.
    fn wake(&self) {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let heartbeat = [format!("{SESSION:10}").as_bytes(), &1u64.to_be_bytes(), &[0, 0]].concat();
        socket.send_to(&heartbeat, self.place.lines[0]).unwrap();
    }

    /// Replays a simulated day.
    fn replay(&self, messages: &str) {
        let file = self.place.folder.path().join("day.itch");
        let write = ["feed", "simulate", "--symbols", "3", "--messages", messages, "--write"];
        let output = tapeline(&[&write[..], &[file.to_str().unwrap()]].concat()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        self.place.replay(&file, 0);
    }
}

/// Waits until every stock's stream is open, without an image.
fn wait_until_asked(consumer: &mut Running) {
    let mut pending = 0;
    while pending < STOCKS.len() {
        let said = consumer.says();
        pending +=
            usize::from(said["item"].is_string() && said["state"]["text"].as_str().is_some_and(is_pending));
    }
}

fn is_pending(text: &str) -> bool {
    text.contains("no image")
}

/// The images and updates of each item, in order.
type Streams = BTreeMap<String, Vec<(String, Map<String, Value>)>>;

/// The images and updates in a program's remaining output.
fn streams(running: &mut Running, kind: &str) -> Streams {
    let mut streams = Streams::new();
    while let Some(said) = running.may_say() {
        let (Some(kind), Some(item)) = (said[kind].as_str(), said["item"].as_str()) else { continue };
        if matches!(kind, "refresh" | "update") {
            let fields = said["fields"].as_object().cloned().unwrap_or_default();
            streams.entry(item.to_owned()).or_default().push((kind.to_owned(), fields));
        }
    }
    streams
}

/// The ticks that the plant publishes, from its ring.
fn watch(market: &Market) -> Running {
    let ring = &market.place.ring;
    let fixed = ["plant", "watch", "--ring", ring, "--from", "oldest", "--until-end-of-session"];
    Running::start(&[&fixed[..], &["--format", "json"]].concat())
}

#[test]
fn posts_to_the_feeds_service_reach_all_where_that_is_said() {
    let market = Market::open("posts = \"reflect\"", &[]);
    market.replay("3000");
    let is_posted = |said: &Value| said["event"] == "update" && said["fields"]["BID"] == json!(0.07);
    let mut other = market.consumer(&["--format", "json"]);
    (0..STOCKS.len()).for_each(|_| while other.says()["event"] != "refresh" {});
    let mut poster = market.consumer(&["--format", "json", "--post", "BID=0.07"]);
    let ack = loop {
        let said = poster.says();
        if said["event"] == "ack" {
            break said;
        }
    };
    assert!(ack["nak"].is_null(), "{ack}");
    while !is_posted(&other.says()) {}
}

#[test]
fn every_transport_brings_the_image_and_every_update_in_order() {
    let mut market = Market::open("slow = \"cut\"\nslow_bytes = \"64MiB\"", &["--until-end-of-session"]);
    let mut watch = watch(&market);
    let ways: [&[&str]; 4] = [&[], &["--batch"], &["--websocket", "rwf"], &["--websocket", "json"]];
    let mut consumers: Vec<Running> = ways.iter().map(|way| market.consumer(way)).collect();
    market.wake();
    consumers.iter_mut().for_each(wait_until_asked);
    // Another one that does not read: its output is full after some hundred messages, and then its connection.
    let _deaf = market.consumer(&[]);
    market.replay("6k");
    let published = streams(&mut watch, "kind");
    assert_eq!(published.keys().collect::<Vec<_>>().len(), STOCKS.len(), "{:?}", published.keys());
    for (consumer, way) in consumers.iter_mut().zip(ways) {
        let got = streams(consumer, "event");
        for (item, published) in &published {
            let got = &got[item];
            // The plant's own image first, then every update that it published.
            assert_eq!(got.len(), published.len(), "{way:?} {item}");
            for (number, (got, published)) in got.iter().zip(published).enumerate() {
                assert_eq!(got, published, "{way:?} {item}: message {number}");
            }
        }
    }
    let report = market.plant.says();
    let ticks: usize = published.values().map(Vec::len).sum();
    assert!(
        report["hub"]["updates"].as_u64().unwrap() as usize >= 4 * (ticks - STOCKS.len()),
        "{}",
        report["hub"]
    );
    assert_eq!(report["hub"]["ticks"], report["ticks"]);
}

#[test]
fn who_comes_late_gets_what_is_and_hears_of_the_end() {
    let mut market = Market::open("", &[]);
    let mut watch = watch(&market);
    market.replay("3k");
    let published = streams(&mut watch, "kind");
    for way in [&["--batch"][..], &["--websocket", "json"]] {
        let got = streams(&mut market.consumer(&[&["--snapshot"], way].concat()), "event");
        for (item, published) in &published {
            let mut last = Map::new();
            for (kind, fields) in published {
                if kind == "refresh" {
                    last.clear();
                }
                last.extend(fields.clone());
            }
            assert_eq!(got[item], [("refresh".to_owned(), last)], "{way:?} {item}");
        }
    }
    // A connected consumer gets a status for each item before the plant closes the connection.
    let mut last = market.consumer(&[]);
    let mut images = 0;
    while images < STOCKS.len() {
        images += usize::from(last.says()["event"] == "refresh");
    }
    market.plant.ask_to_end();
    let mut told = 0;
    while let Some(said) = last.may_say() {
        if said["event"] == "state" && said["state"]["text"] == "The plant has ended" {
            assert_eq!(said["state"]["data"], "SUSPECT");
            told += 1;
        }
    }
    assert_eq!(told, STOCKS.len());
    let report = market.plant.says();
    assert_eq!((&report["hub"]["sessions"], &report["hub"]["refreshes"]), (&json!(3), &json!(9)));
}
