//! Plants on the streams of crypto venues, which a server of the tests plays behind TLS: whole, with lost messages, and with cuts.

mod binance;
mod clients;
mod others;
mod refusals;
mod silence;
mod unreadable;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::stage::{Place, Running};
use crate::venue_server::{Side, VenueServer};

/// A file of a recording, unpacked.
fn unpacked(path: &Path) -> String {
    let mut all = String::new();
    flate2::read::MultiGzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut all).unwrap();
    all
}

/// A number without zeros at the end.
fn trimmed(number: &str) -> String {
    match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => number.to_owned(),
    }
}

/// The configuration of a plant on a server of the tests.
fn config(place: &Place, server: &VenueServer, protocol: &str, symbols: &[String], more: &str) -> String {
    let (port, ring) = (server.port, &place.ring);
    let snapshots = match protocol {
        "binance" => format!("snapshot_url = \"https://localhost:{port}/fapi/v1/depth\"\n"),
        _ => String::new(),
    };
    let text = format!(
        "[plant]\nring = \"{ring}\"\nring_size = \"64MiB\"\nstall_limit = \"0s\"\n[[feed]]\nname = \"venue\"\nprotocol = \"{protocol}\"\n\
         symbols = {symbols:?}\nurl = \"wss://localhost:{port}/stream\"\n{snapshots}ca = \"ca.pem\"\n{more}\n"
    );
    let path = place.folder.path().join("plant.toml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// What a reader of the ring knows of one item.
#[derive(Debug, Default)]
struct Item {
    fields: Map<String, Value>,
    levels: BTreeMap<String, Map<String, Value>>,
    trades: u64,
}

/// A plant, and a reader of its ring in another process.
struct Market {
    plant: Running,
    watch: Running,
    /// What the plant said when it was ready.
    ready: Value,
    items: BTreeMap<String, Item>,
    /// The texts of statuses of the whole feed.
    statuses: Vec<String>,
    /// The report of the plant, once it has ended.
    report: Value,
}

impl Market {
    fn open(place: &Place, config: &str) -> Self {
        let mut plant = Running::start(&["plant", "--config", config, "--format", "json"]);
        let ready = plant.says();
        assert_eq!(ready["ready"], json!(place.ring));
        let watch = Running::start(&[
            "plant",
            "watch",
            "--ring",
            &place.ring,
            "--from",
            "oldest",
            "--format",
            "json",
        ]);
        let (items, statuses, report) = (BTreeMap::new(), Vec::new(), Value::Null);
        Self { plant, watch, ready, items, statuses, report }
    }

    /// Reads the ring until a line satisfies `is_last`.
    fn read_until(&mut self, is_last: impl Fn(&Value) -> bool) {
        loop {
            let tick = self.watch.says();
            self.take(&tick);
            if is_last(&tick) {
                return;
            }
        }
    }

    /// Reads the ring until a line satisfies `is_last`, and then until the feed is live.
    fn read_until_live(&mut self, is_last: impl Fn(&Value) -> bool) {
        self.read_until(is_last);
        while !self.statuses.last().is_some_and(|text| text.starts_with("live")) {
            let tick = self.watch.says();
            self.take(&tick);
        }
    }

    fn take(&mut self, tick: &Value) {
        if let Some(text) = tick["text"].as_str() {
            self.statuses.push(text.to_owned());
        }
        let Some(name) = tick["item"].as_str() else { return };
        let item = self.items.entry(name.to_owned()).or_default();
        let is_image = tick["kind"] == "refresh";
        if tick["domain"] == "MarketByPrice" {
            if is_image {
                item.levels.clear();
            }
            for entry in tick["levels"].as_array().unwrap() {
                let key = entry["level"].as_str().unwrap().to_owned();
                if entry["action"] == "delete" {
                    assert!(item.levels.remove(&key).is_some(), "{name} {key}");
                } else {
                    item.levels.entry(key).or_default().extend(entry.as_object().unwrap().clone());
                }
            }
        } else if let Some(fields) = tick["fields"].as_object() {
            item.trades += u64::from(!is_image && fields.contains_key("TRDPRC_1"));
            item.fields.extend(fields.clone());
        }
    }

    /// Stops the plant, and reads the rest of the ring.
    fn end(&mut self) {
        self.plant.ask_to_end();
        while let Some(tick) = self.watch.may_say() {
            self.take(&tick);
        }
        while let Some(said) = self.plant.may_say() {
            self.report = said;
        }
        // 3: something was missing, and readers were told.
        assert!(matches!(self.plant.child.wait().unwrap().code(), Some(0 | 3)));
    }

    /// The published levels of a side, best first.
    fn levels(&self, name: &str, side: Side) -> Vec<(String, String)> {
        let letter = if side == Side::Bid { 'B' } else { 'A' };
        let item = &self.items[name];
        let mut levels: Vec<_> = item
            .levels
            .iter()
            .filter_map(|(key, level)| {
                Some((key.strip_suffix(letter)?.to_owned(), trimmed(&level["ACC_SIZE"].to_string())))
            })
            .collect();
        let number = |text: &str| text.parse::<f64>().unwrap();
        levels.sort_by(|(a, _), (b, _)| number(a).total_cmp(&number(b)));
        if side == Side::Bid {
            levels.reverse();
        }
        levels
    }

    /// Every published book is the venue's.
    fn check_books(&self, server: &VenueServer, symbols: &[String]) {
        for symbol in symbols {
            for side in [Side::Bid, Side::Ask] {
                let truth = server.with(|books| books.best(symbol, side, 10));
                let truth: Vec<_> =
                    truth.iter().map(|(price, size)| (trimmed(price), trimmed(size))).collect();
                assert_eq!(self.levels(symbol, side), truth, "{symbol} {side:?}");
                assert!(!truth.is_empty());
            }
        }
    }

    fn has_status(&self, part: &str) -> bool {
        self.statuses.iter().any(|text| text.contains(part))
    }
}
