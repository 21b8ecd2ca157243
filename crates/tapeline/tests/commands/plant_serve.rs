//! A plant's hub in its own process, which starts late, is killed, and is restarted while the plant runs.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::ChildStderr;
use std::thread::JoinHandle;

use serde_json::{Map, Value, json};
use stage::{Nobody, Place, Running};

use crate::stage;

/// The busiest stocks of the simulated exchange are always the same.
const STOCKS: [&str; 3] = ["TAPE", "SENA", "RIMU"];
/// A ring for fewer ticks than `TICKS_GONE`: each tick has a header of 64 bytes.
const SMALL_RING: &str = "ring_size = \"64KiB\"\nstall_limit = \"0s\"\n";
const TICKS_GONE: u64 = 1_024;

/// A plant without its hub, and the hub's address.
struct Market {
    place: Place,
    plant: Running,
    /// The plant's standard error.
    talk: Option<ChildStderr>,
    config: String,
    server: String,
    _held: Nobody,
}

impl Market {
    fn open(keys: &'static str, hub: &str) -> Self {
        let mut place = Place::new(1);
        place.keys = keys;
        let config = place.config("");
        let held = Nobody::new();
        let port = held.port;
        let mut text = std::fs::read_to_string(&config).unwrap();
        text.push_str(&format!("[hub]\nport = {port}\n{hub}\n"));
        std::fs::write(&config, text).unwrap();
        let (mut plant, talk) =
            Running::start_talking(&["plant", "--config", &config, "--without-hub", "--format", "json"]);
        let ready = plant.says();
        assert_eq!((&ready["ready"], ready.get("hub")), (&json!(place.ring), None), "{ready}");
        Self { place, plant, talk: Some(talk), config, server: format!("127.0.0.1:{port}"), _held: held }
    }

    /// The exchange, at this many messages a second.
    fn exchange_at(&self, rate: &str) -> Running {
        let to = self.place.lines[0].to_string();
        let fixed = ["feed", "simulate", "--to", &to, "--symbols", "3", "--format", "json"];
        Running::start(&[&fixed[..], &["--rate", rate, "--duration", "600s"]].concat())
    }

    /// The exchange, after the ring has overwritten its first messages.
    fn exchange(&self) -> Running {
        let exchange = self.exchange_at("2k");
        let mut stat = Running::start(&["stat", &self.place.ring, "--every", "50ms", "--format", "json"]);
        while stat.says()["ticks"].as_u64().unwrap() <= TICKS_GONE {}
        exchange
    }

    /// The hub, as a separate process.
    fn serve(&self) -> (Running, ChildStderr) {
        let (mut hub, talk) =
            Running::start_talking(&["plant", "serve", "--config", &self.config, "--format", "json"]);
        assert_eq!(hub.says()["hub"], json!(self.server));
        (hub, talk)
    }

    /// A reader of the ring from its beginning: the final fields of each item.
    fn truth(&self) -> JoinHandle<Items> {
        let ring = &self.place.ring;
        let mut watch =
            Running::start(&["plant", "watch", "--ring", ring, "--from", "oldest", "--format", "json"]);
        std::thread::spawn(move || last(&mut watch, "kind"))
    }

    fn consumer(&self, options: &[&str]) -> Running {
        let fixed = ["omm", "watch", "--server", &self.server, "--service", "TAPELINE", "--format", "json"];
        Running::start(&[&fixed, &STOCKS[..], options].concat())
    }
}

/// The fields of each item.
type Items = BTreeMap<String, Map<String, Value>>;

/// Applies a program's line about an item; `kind` is the name of the member with the message class.
fn fold(items: &mut Items, said: &Value, kind: &str) {
    let (Some(kind), Some(item)) = (said[kind].as_str(), said["item"].as_str()) else { return };
    if matches!(kind, "refresh" | "update") {
        let fields = items.entry(item.to_owned()).or_default();
        if kind == "refresh" {
            fields.clear();
        }
        fields.extend(said["fields"].as_object().cloned().unwrap_or_default());
    }
}

/// The final fields of each item, from a program's remaining output.
fn last(running: &mut Running, kind: &str) -> Items {
    let mut items = Items::new();
    while let Some(said) = running.may_say() {
        fold(&mut items, &said, kind);
    }
    items
}

/// Waits for good images of all stocks.
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
    // Reads on, so that the process does not block.
    std::thread::spawn(move || lines.for_each(drop));
}

#[test]
fn a_hub_that_comes_late_and_comes_again_has_every_image() {
    let keys = concat!("ring_size = \"64KiB\"\nstall_limit = \"0s\"\n", "images = \"64MiB\"\n");
    let mut market = Market::open(keys, "slow = \"cut\"\nslow_bytes = \"64MiB\"");
    let ring = market.place.ring.clone();
    let truth = market.truth();
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

    // A consumer that stays to the end: its image and updates add up to all updates.
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
    // A plant that dies ends its hub too, also in another process.
    drop(exchange);
    market.plant.child.kill().unwrap();
    market.plant.child.wait().unwrap();
    while hub.may_say().is_some() {}
    assert_eq!(hub.child.wait().unwrap().code(), Some(1));
}

fn signal(running: &Running, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_child(&running.child), signal).unwrap();
}

/// A hub that got no processor for too long has lost ticks, and starts again like a late hub.
#[test]
fn a_hub_that_lost_its_place_has_the_images_again_and_its_clients_too() {
    // The ring is full some time after the hub was stopped; the hub loses its position one second later. For that
    // time the plant does not read its socket, whose buffer has twice the capacity needed.
    let keys = concat!("ring_size = \"64KiB\"\nstall_limit = \"1s\"\n", "images = \"64MiB\"\n");
    let mut market = Market::open(keys, "slow = \"cut\"\nslow_bytes = \"64MiB\"");
    let truth = market.truth();
    let (mut hub, talk) = market.serve();
    let exchange = market.exchange_at("200");
    let mut consumer = market.consumer(&["--until-closed"]);
    let (mut seen, mut states) = (Items::new(), BTreeMap::new());
    let mut hear = |consumer: &mut Running| {
        let said = consumer.says();
        fold(&mut seen, &said, "event");
        if let (Some(item), Some(data)) = (said["item"].as_str(), said["state"]["data"].as_str()) {
            states.insert(item.to_owned(), data.to_owned());
        }
        let all = |data: &str| states.len() == STOCKS.len() && states.values().all(|state| state == data);
        (all("OK"), all("SUSPECT"))
    };
    while !hear(&mut consumer).0 {}
    signal(&hub, rustix::process::Signal::STOP);
    wait_for_line(market.talk.take().unwrap(), "1 reader was evicted from the ring");
    signal(&hub, rustix::process::Signal::CONT);
    while !hear(&mut consumer).1 {}
    while !hear(&mut consumer).0 {}
    wait_for_line(talk, "items again");
    exchange.ask_to_end();
    market.plant.ask_to_end();
    while let Some(said) = consumer.may_say() {
        fold(&mut seen, &said, "event");
    }
    let truth = truth.join().unwrap();
    assert_eq!(seen.len(), STOCKS.len());
    for (item, fields) in &seen {
        assert_eq!(fields, &truth[item], "{item}");
    }
    let report = hub.says();
    assert_eq!((&report["rejoined"], &report["cut"]), (&json!(1), &json!(0)), "{report}");
    assert!(report["missing"].as_u64() > Some(0), "{report}");
    assert!(hub.child.wait().unwrap().success());
}

#[test]
fn a_hub_that_waits_for_images_ends_when_it_is_told_to_and_with_the_plant() {
    let keys = concat!("ring_size = \"64KiB\"\nstall_limit = \"0s\"\n", "images = \"64MiB\"\n");
    let mut market = Market::open(keys, "");
    drop(market.exchange());
    // The thread that stores the images is stopped too.
    signal(&market.plant, rustix::process::Signal::STOP);
    let (mut hub, _talk) = market.serve();
    hub.ask_to_end();
    assert_eq!(hub.says()["ticks"], json!(0));
    assert!(hub.child.wait().unwrap().success());
    let (mut hub, _talk) = market.serve();
    market.plant.child.kill().unwrap();
    market.plant.child.wait().unwrap();
    while hub.may_say().is_some() {}
    assert_eq!(hub.child.wait().unwrap().code(), Some(1));
}

/// The threads that serve clients block the feeds for the stall limit only: each loses its position, and gets the
/// missed ticks from the images or from the journal.
#[test]
fn a_plants_own_servers_lose_their_places_and_nothing_else() {
    // On an idle machine all lose their positions in one day. On a busy one perhaps only one does, or none: the journal,
    // which nobody evicts, may be the slowest all day.
    assert!((0..20).any(|_| servers_lost_their_places()), "nobody lost its position in twenty days");
}

/// Runs a day; returns whether a server lost its position. None has lost anything else.
fn servers_lost_their_places() -> bool {
    let place = Place::new(0);
    let folder = place.folder.path();
    let day = folder.join("day.itch");
    let day = day.to_str().unwrap();
    let write = ["feed", "simulate", "--symbols", "3", "--messages", "100k", "--write", day];
    assert!(stage::tapeline(&write).output().unwrap().status.success());
    let config = folder.join("plant.toml");
    let keys = "ring_size = \"64KiB\"\nstall_limit = \"1us\"\nimages = \"64MiB\"\n\n[hub]\nport = 0\n[hub.zeromq]\nport = 0\n";
    // Its log is slow, and the plant does not wait for it.
    let kdb = "[kdb]\nport = 0\nlog_folder = \"logs\"\ndurability = \"synced\"\n[[kdb.table]]\nname = \"trade\"\n\
        rows = \"trades\"\n\
        columns = [\"time timespan\", \"sym symbol\", \"seq long seq\"]\n";
    let text = format!(
        "[plant]\nring = \"{}\"\n{keys}\n[journal]\nfolder = \"journal\"\n{kdb}\n[[feed]]\nname = \"file\"\n\
         protocol = \"nasdaq-itch-5.0\"\nfile = \"{day}\"\npace = \"fast\"\n",
        place.ring
    );
    std::fs::write(&config, text).unwrap();
    let (mut plant, talk) =
        Running::start_talking(&["plant", "--config", config.to_str().unwrap(), "--format", "json"]);
    let talk =
        std::thread::spawn(move || BufReader::new(talk).lines().map(Result::unwrap).collect::<Vec<_>>());
    let ready = plant.says();
    let journal = folder.join("journal");
    let from = ["--journal", journal.to_str().unwrap(), "--from-sequence", "1"];
    let watch = ["plant", "watch", "--ring", &place.ring, "--until-end-of-session", "--format", "json"];
    let truth = last(&mut Running::start(&[&watch[..], &from].concat()), "kind");
    // A service that lost its position still has everything; its clients may see suspect items meanwhile.
    let server = ready["hub"].as_str().unwrap();
    let fixed = ["omm", "watch", "--server", server, "--service", "TAPELINE", "--format", "json"];
    let mut consumer = Running::start(&[&fixed, &STOCKS[..], &["--until-closed"]].concat());
    let (mut seen, mut well) = (Items::new(), BTreeMap::new());
    while well.len() < STOCKS.len() || !well.values().all(|is_well| *is_well) {
        let said = consumer.says();
        fold(&mut seen, &said, "event");
        if let (Some(item), Some(data)) = (said["item"].as_str(), said["state"]["data"].as_str()) {
            well.insert(item.to_owned(), data == "OK");
        }
    }
    plant.ask_to_end();
    while let Some(said) = consumer.may_say() {
        fold(&mut seen, &said, "event");
    }
    for item in STOCKS {
        assert_eq!(seen[item], truth[item], "{item}");
    }
    let report = plant.says();
    let (ended, talk) = (plant.child.wait().unwrap(), talk.join().unwrap());
    assert!(ended.success(), "{report}: {talk:#?}");
    for reader in ["hub", "kdb", "zeromq"] {
        let is_lost = report[reader]["rejoined"].as_u64() > Some(0);
        let warning = format!("warning: {reader} has read nothing for the plant's stall_limit");
        assert_eq!(talk.iter().any(|line| line.contains(&warning)), is_lost, "{reader}: {talk:#?}");
    }
    for reader in ["kdb", "zeromq"] {
        let has = (&report[reader]["ticks"], &report[reader]["missing"]);
        assert_eq!(has, (&report["ticks"], &json!(0)), "{report}");
    }
    report["ring_evicted"].as_u64() > Some(0)
}

/// Nothing else can take over from the reader that stores the images.
#[test]
fn who_keeps_the_images_is_waited_for_where_nobody_else_is() {
    let place = Place::new(0);
    let day = place.folder.path().join("day.itch");
    let day = day.to_str().unwrap();
    let write = ["feed", "simulate", "--symbols", "3", "--messages", "300k", "--write", day];
    assert!(stage::tapeline(&write).output().unwrap().status.success());
    let config = place.folder.path().join("plant.toml");
    let plant = format!(
        "ring = \"{}\"\nring_size = \"64KiB\"\nstall_limit = \"1us\"\nimages = \"64MiB\"",
        place.ring
    );
    let feed = format!("name = \"file\"\nprotocol = \"nasdaq-itch-5.0\"\nfile = \"{day}\"\npace = \"fast\"");
    std::fs::write(&config, format!("[plant]\n{plant}\n[[feed]]\n{feed}\n")).unwrap();
    let arguments =
        ["plant", "--config", config.to_str().unwrap(), "--until-end-of-session", "--format", "json"];
    let mut plant = Running::start(&arguments);
    assert_eq!(plant.says()["ready"], json!(place.ring));
    let report = plant.says();
    assert!(report["ring_stalls"].as_u64() > Some(0), "it never had to wait: {report}");
    assert!(plant.child.wait().unwrap().success(), "{report}");
}
