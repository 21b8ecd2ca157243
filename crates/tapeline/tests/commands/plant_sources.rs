//! A plant's OMM sources: real processes, with Tapeline's providers on one side, and ring readers and clients on the
//! other.

use serde_json::{Value, json};
use stage::{Place, Running};

use crate::stage;

/// A plant without feeds.
struct Plant {
    place: Place,
    plant: Running,
    ready: Value,
}

impl Plant {
    fn open(sources: &str) -> Self {
        let place = Place::new(0);
        let path = place.folder.path().join("plant.toml");
        std::fs::write(&path, format!("[plant]\nring = \"{}\"\n{sources}", place.ring)).unwrap();
        let config = path.to_str().unwrap();
        let mut plant = Running::start(&["plant", "--config", config, "--format", "json"]);
        let ready = plant.says();
        assert_eq!(ready["ready"], json!(place.ring));
        Self { place, plant, ready }
    }

    /// A reader of the ring, from its oldest tick.
    fn watch(&self) -> Running {
        let ring = &self.place.ring;
        Running::start(&["plant", "watch", "--ring", ring, "--from", "oldest", "--format", "json"])
    }

    /// A consumer of the plant's hub.
    fn consumer(&self, items: &[&str], options: &[&str]) -> Running {
        let server = self.ready["hub"].as_str().unwrap();
        let fixed = ["omm", "watch", "--server", server, "--service", "FEED", "--format", "json"];
        Running::start(&[&fixed, items, options].concat())
    }

    fn publisher(&self, items: &[&str], options: &[&str]) -> Running {
        let server = self.ready["publishers"].as_str().unwrap();
        let fixed = ["omm", "publish", "--server", server, "--service", "FEED", "--format", "json"];
        Running::start(&[&fixed, items, options].concat())
    }
}

/// An interactive provider on its own port, or on a given one.
pub(crate) struct Provider {
    pub(crate) running: Running,
    pub(crate) port: String,
}

impl Provider {
    pub(crate) fn start(port: &str) -> Self {
        let fixed = ["omm", "serve", "--port", port, "--service", "FEED", "--update-rate", "200"];
        let mut running = Running::start(&[&fixed[..], &["--format", "json"]].concat());
        let port = running.says()["port"].to_string();
        Self { running, port }
    }
}

/// Configuration of a hub with the service FEED and providers at these ports.
fn provided(ports: &[&str], keys: &str) -> String {
    let names: Vec<String> = (0..ports.len()).map(|number| format!("\"p{number}\"")).collect();
    let providers: String = ports
        .iter()
        .enumerate()
        .map(|(number, port)| {
            format!("[[provider]]\nname = \"p{number}\"\nservers = [\"127.0.0.1:{port}\"]\n")
        })
        .collect();
    let names = names.join(", ");
    format!(
        "[hub]\nport = 0\n[[service]]\nname = \"FEED\"\nid = 7\nproviders = [{names}]\n{keys}\n{providers}"
    )
}

fn is_of(said: &Value, item: &str, event: &str) -> bool {
    said["item"] == item && said["event"] == event
}

/// Waits for the next line for which `is` returns true.
pub(crate) fn wait_for(running: &mut Running, is: impl Fn(&Value) -> bool) -> Value {
    loop {
        let said = running.says();
        if is(&said) {
            return said;
        }
    }
}

/// Waits until `is` returns true for the output of `tapeline stat`.
fn stat(ring: &str, is: impl Fn(&Value) -> bool) -> Value {
    wait_for(&mut Running::start(&["stat", ring, "--every", "50ms", "--format", "json"]), is)
}

#[test]
fn providers_and_their_services_are_seen_from_outside() {
    let mut providers = [Provider::start("0"), Provider::start("0")].map(Some);
    let ports = providers.each_ref().map(|provider| provider.as_ref().unwrap().port.clone());
    let config = provided(&ports.each_ref().map(String::as_str), "sources = \"warm\"");
    let plant = Plant::open(&format!("{config}{}", PUBLISHED.replace("FEED", "OWN").replace('7', "8")));
    let mut consumer = plant.consumer(&["IBM.N"], &["--quiet"]);
    wait_for(&mut consumer, |said| said["event"] == "ready");
    let server = plant.ready["publishers"].as_str().unwrap();
    let publish = ["omm", "publish", "--server", server, "--service", "OWN", "--format", "json", "A", "B"];
    let publisher = Running::start(&publish);
    let is = |seen: &Value, at: usize, state: &str, part: &str| {
        let source = &seen["sources"][at];
        source["state"] == state && source["services"][0]["state"] == part
    };
    let seen = stat(&plant.place.ring, |seen| {
        let pair = |first, second| {
            is(seen, first, "connected", "serves") && is(seen, second, "connected", "standby")
        };
        (pair(0, 1) || pair(1, 0))
            && is(seen, 2, "connected", "serves")
            && [0, 1].iter().all(|at| seen["sources"][at]["items"] == 1)
            && seen["sources"][2]["items"] == 2
    });
    let kinds: Vec<_> = (0..3).map(|at| &seen["sources"][at]["kind"]).collect();
    assert_eq!(kinds, [&json!("provider"), &json!("provider"), &json!("publisher")]);
    assert!(seen["sources"][0]["since_ns"].as_u64().unwrap() > 0);
    // The provider that was connected first serves.
    let serving = usize::from(is(&seen, 1, "connected", "serves"));
    drop((providers[serving].take(), publisher));
    let seen = stat(&plant.place.ring, |seen| {
        is(seen, serving, "away", "suspect")
            && is(seen, 1 - serving, "connected", "serves")
            && seen["sources"][2].is_null()
    });
    assert_eq!(seen["sources"][0]["services"][0]["service"], "FEED");
    let output = stage::tapeline(&["stat", &plant.place.ring]).output().unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("AWAY") && table.contains("FEED SUSPECT for"), "{table}");
}

#[test]
fn a_check_lists_services_and_who_has_them() {
    let place = Place::new(0);
    let path = place.folder.path().join("plant.toml");
    let text = format!("[plant]\nring = \"{}\"\n{}", place.ring, provided(&["1", "2"], "sources = \"warm\""));
    std::fs::write(&path, text + &PUBLISHED.replace("FEED", "OWN").replace('7', "8")).unwrap();
    let output = stage::tapeline(&["plant", "check", path.to_str().unwrap(), "--format", "json"]).output();
    let checked: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    let parts = checked["runs"].as_array().unwrap();
    let is = |part: &str, name: &str| {
        let found = parts.iter().find(|one| one["part"] == part && one["name"] == name);
        found.unwrap_or_else(|| panic!("{part} {name}: {checked}"))["is"].as_str().unwrap()
    };
    assert_eq!(
        is("service", "FEED"),
        "number 7, requested from p0, p1, one active, the others warm standbys; images cached, posts refused"
    );
    assert!(is("service", "OWN").starts_with("number 8, published by any publisher"), "{checked}");
    assert_eq!(is("provider", "p1"), "127.0.0.1:2 over TCP, as user tapeline");
    assert!(is("port", "127.0.0.1:0").contains("non-interactive providers"), "{checked}");
}

const PUBLISHED: &str = "[publishers]\nport = 0\n[[service]]\nname = \"FEED\"\nid = 7\n";

#[test]
fn a_publishers_items_stand_on_the_ring() {
    let mut plant = Plant::open(PUBLISHED);
    let mut watch = plant.watch();
    let first = plant.publisher(&["IBM.N"], &["--update-rate", "100"]);
    let image = wait_for(&mut watch, |said| said["kind"] == "refresh");
    assert_eq!(image["item"], "IBM.N");
    wait_for(&mut watch, |said| said["kind"] == "update" && said["item"] == "IBM.N");
    drop(first);
    let gone = wait_for(&mut watch, |said| said["kind"] == "status" && said["item"] == "IBM.N");
    assert_eq!(gone["suspect"], json!(true), "{gone}");
    let _second = plant.publisher(&["IBM.N"], &[]);
    wait_for(&mut watch, |said| said["kind"] == "refresh" && said["item"] == "IBM.N");
    plant.plant.ask_to_end();
    let report = plant.plant.says();
    assert_eq!(report["sources"]["refreshes"], 2, "{report}");
}

#[test]
fn a_publishers_items_reach_clients_and_recover() {
    let plant = Plant::open(&format!("[hub]\nport = 0\n{PUBLISHED}"));
    let mut consumer = plant.consumer(&["IBM.N"], &[]);
    let first = plant.publisher(&["IBM.N"], &["--update-rate", "100"]);
    wait_for(&mut consumer, |said| is_of(said, "IBM.N", "refresh"));
    wait_for(&mut consumer, |said| is_of(said, "IBM.N", "update"));
    drop(first);
    wait_for(&mut consumer, |said| said["item"] == "IBM.N" && said["state"]["data"] == "SUSPECT");
    let _second = plant.publisher(&["IBM.N"], &["--update-rate", "100"]);
    let image = wait_for(&mut consumer, |said| is_of(said, "IBM.N", "refresh"));
    assert_eq!(image["state"]["data"], "OK");
    wait_for(&mut consumer, |said| is_of(said, "IBM.N", "update"));
}

#[test]
fn a_provider_is_asked_on_demand_and_again_when_it_is_back() {
    let provider = Provider::start("0");
    let port = provider.port.clone();
    let plant = Plant::open(&provided(&[&port], ""));
    let mut consumer = plant.consumer(&["IBM.N"], &[]);
    wait_for(&mut consumer, |said| is_of(said, "IBM.N", "refresh"));
    wait_for(&mut consumer, |said| is_of(said, "IBM.N", "update"));
    drop(provider);
    wait_for(&mut consumer, |said| said["item"] == "IBM.N" && said["state"]["data"] == "SUSPECT");
    let _back = Provider::start(&port);
    let image = wait_for(&mut consumer, |said| is_of(said, "IBM.N", "refresh"));
    assert_eq!(image["state"]["data"], "OK");
    wait_for(&mut consumer, |said| is_of(said, "IBM.N", "update"));
}

#[test]
fn the_next_provider_takes_over() {
    for policy in ["first", "warm"] {
        let (first, second) = (Provider::start("0"), Provider::start("0"));
        let port = second.port.clone();
        drop(second);
        let plant = Plant::open(&provided(&[&first.port, &port], &format!("sources = \"{policy}\"")));
        let mut consumer = plant.consumer(&["IBM.N"], &[]);
        wait_for(&mut consumer, |said| is_of(said, "IBM.N", "refresh"));
        let mut second = Provider::start(&port);
        wait_for(&mut second.running, |said| said["event"] == "login");
        drop(first);
        wait_for(&mut consumer, |said| said["item"] == "IBM.N" && said["state"]["data"] == "SUSPECT");
        let image = wait_for(&mut consumer, |said| is_of(said, "IBM.N", "refresh"));
        assert_eq!(image["state"]["data"], "OK", "{policy}");
        wait_for(&mut consumer, |said| is_of(said, "IBM.N", "update"));
    }
}

#[test]
fn a_provider_is_found_by_its_hosts_name_and_logged_out_of_at_the_end() {
    let mut provider = Provider::start("0");
    // The provider listens at one of the addresses of the name.
    let config = provided(&[&provider.port], "").replace("127.0.0.1", "localhost");
    let mut plant = Plant::open(&config);
    let mut consumer = plant.consumer(&["IBM.N"], &[]);
    wait_for(&mut consumer, |said| is_of(said, "IBM.N", "refresh"));
    plant.plant.ask_to_end();
    let gone = wait_for(&mut provider.running, |said| said["event"] == "gone");
    assert_eq!(gone["reason"], "the peer has logged out", "{gone}");
    plant.plant.says();
}

#[test]
fn a_post_is_acknowledged_by_its_provider() {
    let provider = Provider::start("0");
    let plant = Plant::open(&provided(&[&provider.port], "posts = \"forward\""));
    let mut consumer = plant.consumer(&["IBM.N"], &["--post", "BID=39.91", "--updates", "1"]);
    let ack = wait_for(&mut consumer, |said| said["event"] == "ack");
    assert!(ack["nak"].is_null(), "{ack}");
}

/// Two publishers that share the items of one service, with one item in common.
#[test]
fn publishers_of_one_service_are_merged() {
    let plant = Plant::open(&format!("[hub]\nport = 0\n{PUBLISHED}"));
    let mut first = Some(plant.publisher(&["A", "BOTH"], &[]));
    let _second = plant.publisher(&["B", "BOTH"], &[]);
    let mut consumer = plant.consumer(&["A", "B", "BOTH"], &[]);
    let mut left = vec!["A", "B", "BOTH"];
    while !left.is_empty() {
        let said = wait_for(&mut consumer, |said| said["event"] == "refresh");
        left.retain(|item| said["item"] != *item);
    }
    let items = |source: &Value| (source["serves"].as_u64().unwrap(), source["stands_by"].as_u64().unwrap());
    let seen = stat(&plant.place.ring, |seen| {
        let sources = seen["sources"].as_array().map(Vec::as_slice).unwrap_or_default();
        sources.len() == 2 && sources.iter().map(items).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1)) == (3, 1)
    });
    assert_eq!(seen["unserved"], json!([{ "service": "FEED", "items": 0 }]));
    // An item of the first publisher alone is suspect; the common item continues.
    drop(first.take());
    wait_for(&mut consumer, |said| is_of(said, "A", "status") && said.to_string().contains("SUSPECT"));
    stat(&plant.place.ring, |seen| seen["unserved"][0]["items"] == 1);
    let table = stage::tapeline(&["stat", &plant.place.ring]).output().unwrap().stdout;
    let table = String::from_utf8(table).unwrap();
    assert!(table.contains("NOBODY serves 1 of service FEED's items"), "{table}");
    wait_for(&mut consumer, |said| is_of(said, "BOTH", "update"));
    let _third = plant.publisher(&["A"], &[]);
    wait_for(&mut consumer, |said| is_of(said, "A", "refresh"));
    stat(&plant.place.ring, |seen| seen["unserved"][0]["items"] == 0);
}
