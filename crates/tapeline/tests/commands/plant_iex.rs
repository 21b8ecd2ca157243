//! IEX's sample captures sent to a real plant, and the state that a subscriber in another process derives from its
//! ticks.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::shared_data::{expected, shared};
use crate::stage::{Running, tapeline};

/// A subscriber's state: the fields of each item, and counts.
#[derive(Default)]
struct Known {
    fields: BTreeMap<String, serde_json::Map<String, Value>>,
    /// Number of sessions that began.
    begun: usize,
    corrections: usize,
    last_seq: u64,
}

impl Known {
    fn tick(&mut self, tick: &Value) {
        let seq = tick["seq"].as_u64().unwrap();
        assert!(self.last_seq == 0 || seq == self.last_seq + 1, "tick {seq} after {}", self.last_seq);
        self.last_seq = seq;
        if tick["text"].as_str().is_some_and(|text| text.contains("session") && text.ends_with("begins")) {
            // A new session invalidates all state.
            self.fields.clear();
            self.begun += 1;
            self.corrections = 0;
        }
        self.corrections += usize::from(tick["message"] == "B");
        let (Some(item), Some(fields)) = (tick["item"].as_str(), tick["fields"].as_object()) else { return };
        let known = self.fields.entry(item.to_owned()).or_default();
        known.extend(fields.clone());
    }

    /// A price in ten-thousandths, or a size; 0 for a blank field.
    fn number(&self, item: &str, field: &str) -> i64 {
        let value = &self.fields.get(item).unwrap_or_else(|| panic!("no tick about {item}"))[field];
        let scale = if matches!(field, "BID" | "ASK" | "TRDPRC_1") { 10_000.0 } else { 1.0 };
        match value {
            Value::Null => 0,
            Value::Number(number) => (number.as_f64().unwrap() * scale).round() as i64,
            Value::String(text) => (text.parse::<f64>().unwrap() * scale).round() as i64,
            other => panic!("{item}: {field} is {other}"),
        }
    }
}

/// Sends a capture with these messages to a plant; returns a subscriber's final state, and the plant's report.
fn through_a_plant(
    protocol: &str,
    file: &str,
    name: &str,
    rate: &str,
    messages: &Value,
) -> Option<(Known, Value)> {
    let (file, messages) = (shared(file)?, messages.as_u64()?);
    let ring = format!("test-iex-{name}-{}", std::process::id());
    let port = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let address = format!("239.{}.{high}.{low}:{port}", 210 + name.len());
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("plant.toml");
    let text = format!(
        "[plant]\nring = \"{ring}\"\nring_size = \"128MiB\"\nstall_limit = \"0s\"\n[[feed]]\nname = \"iex\"\n\
         protocol = \"{protocol}\"\nreceive_buffer = \"64MiB\"\nstart = \"from-one\"\n[[feed.line]]\n\
         address = \"{address}\"\ninterface = \"127.0.0.1\"\n"
    );
    std::fs::write(&config, text).unwrap();
    let mut plant = Running::start(&["plant", "--config", config.to_str().unwrap(), "--format", "json"]);
    assert_eq!(plant.says()["ready"], json!(ring));
    let mut watch =
        Running::start(&["plant", "watch", "--ring", &ring, "--from", "oldest", "--format", "json"]);
    let replay = tapeline(&["feed", "replay", file.to_str().unwrap(), "--to", &address, "--rate", rate])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // The plant's ticks are read while the capture is sent; otherwise the ring would fill up.
    let asked = std::thread::spawn(move || {
        let mut replay = replay;
        assert!(replay.wait().unwrap().success());
        // A plant that is asked to end does not wait for readers of a full ring.
        let mut seen = Running::start(&["stat", &ring, "--every", "100ms", "--format", "json"]);
        let count = |feed: &Value, of: &str| feed[of].as_u64().unwrap_or(0);
        loop {
            let feed = &seen.says()["feeds"][0];
            if count(feed, "messages") + count(feed, "missing") >= messages {
                break;
            }
        }
        plant.ask_to_end();
        plant.says()
    });
    let mut known = Known::default();
    while let Some(tick) = watch.may_say() {
        known.tick(&tick);
    }
    Some((known, asked.join().unwrap()))
}

/// Checks the plant's counts: all messages of the capture, nothing missing.
fn complete(report: &Value, expected: &Value) {
    let feed = &report["feeds"][0];
    assert_eq!(feed["messages"], expected["messages"]);
    assert_eq!((&feed["missing_messages"], &feed["malformed_messages"]), (&json!(0), &json!(0)));
}

fn volumes(known: &Known, expected: &Value) {
    for (symbol, volume) in expected["volume_top10"].as_object().unwrap() {
        assert_eq!(json!(known.number(symbol, "ACVOL_1")), *volume, "{symbol}");
    }
}

/// Checks the top of every expected book.
fn tops(known: &Known, expected: &Value) {
    let books = expected["books_price_size"].as_object().unwrap();
    assert!(!books.is_empty());
    for (symbol, book) in books {
        for (side, fields) in [("bids", ["BID", "BIDSIZE"]), ("asks", ["ASK", "ASKSIZE"])] {
            let best = book[side][0].as_array().map_or_else(|| vec![json!(0); 2], Clone::clone);
            let found = fields.map(|field| json!(known.number(symbol, field)));
            assert_eq!(found[..], best[..], "{symbol}");
        }
    }
}

#[test]
fn deep_with_all_its_restarts_reaches_a_subscriber() {
    let Some(expected) = expected("iex-deep-20170425/expected.json") else { return };
    let file = "iex-deep-20170425/DEEP10.pcap.gz";
    let (known, report) =
        through_a_plant("iex-deep-1.0", file, "deep", "15k", &expected["messages"]).unwrap();
    complete(&report, &expected);
    assert_eq!(known.begun, 12);
    let policy = &expected["policy_epoch_final"];
    volumes(&known, policy);
    tops(&known, policy);
    assert_eq!(json!(known.fields.len()), json!(7_802));
    assert_eq!(json!(known.corrections), policy["by_type"]["B"]);
    assert_eq!(known.fields["MSFT"]["TRD_STATUS"], json!("N"), "it trades normally");
}

#[test]
fn the_beginning_of_deeps_last_epoch_reaches_a_subscriber() {
    let Some(expected) = expected("iex-deep-20170425/expected.json") else { return };
    let expected = &expected["slice"];
    let file = "iex-deep-20170425/deep10-lastsession-head.pcap";
    let (known, report) =
        through_a_plant("iex-deep-1.0", file, "slice", "10k", &expected["messages"]).unwrap();
    complete(&report, expected);
    volumes(&known, expected);
    tops(&known, expected);
}

#[test]
fn tops_reaches_a_subscriber() {
    let Some(expected) = expected("iex-tops-20170710/expected.json") else { return };
    let file = "iex-tops-20170710/tops16-part1.pcap.gz";
    let (known, report) =
        through_a_plant("iex-tops-1.6", file, "tops16", "10k", &expected["messages"]).unwrap();
    complete(&report, &expected);
    volumes(&known, &expected);
    for (symbol, quote) in expected["final_quotes_flags_ts_bidsz_bidpx_askpx_asksz"].as_object().unwrap() {
        let found = ["BIDSIZE", "BID", "ASK", "ASKSIZE"].map(|field| json!(known.number(symbol, field)));
        assert_eq!(json!(found), json!(quote.as_array().unwrap()[2..]), "{symbol}");
    }
    for (symbol, trades) in expected["trades"].as_object().unwrap() {
        let last = &trades["last_price_size_ts_id"];
        assert_eq!(json!(known.number(symbol, "TRDPRC_1")), last[0], "{symbol}");
        assert_eq!(json!(known.number(symbol, "TRDVOL_1")), last[1], "{symbol}");
        assert_eq!(json!(known.number(symbol, "NUM_MOVES")), trades["trades"], "{symbol}");
    }
    assert_eq!(json!(known.corrections), expected["by_type"]["B"]);
}
