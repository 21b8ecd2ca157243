//! Binance: the recorded futures, and a stream made by hand.

use serde_json::{Value, json};

use super::{Market, config, trimmed, unpacked};
use crate::shared_data::{expected, shared};
use crate::stage::{Place, Running, tapeline};
use crate::venue_server::{Behaviour, Books, Side, Step, VenueServer};

pub(super) const SYMBOL: &str = "BTCUSDT";

/// Binance's answers: an acknowledgement of each subscription; snapshots by HTTPS, the recorded one first.
#[derive(Default)]
pub(super) struct Binance {
    books: Books,
    update: u64,
    recorded: Option<String>,
}

impl Binance {
    fn replace(&mut self, snapshot: &str) {
        let value: Value = serde_json::from_str(snapshot).unwrap();
        self.update = value["lastUpdateId"].as_u64().unwrap();
        self.books.clear(SYMBOL);
        self.books.set_all(SYMBOL, Side::Bid, &value["bids"]);
        self.books.set_all(SYMBOL, Side::Ask, &value["asks"]);
    }

    /// The true book starts from the recorded snapshot; the differences before it must not be applied to it.
    pub(super) fn recorded(snapshot: &str) -> Self {
        let mut binance = Self { recorded: Some(snapshot.to_owned()), ..Self::default() };
        binance.replace(snapshot);
        binance
    }
}

impl Behaviour for Binance {
    fn see(&mut self, message: &str) {
        if !message.contains("depthUpdate") {
            return;
        }
        let value: Value = serde_json::from_str(message).unwrap();
        let data = &value["data"];
        let last = data["u"].as_u64().unwrap();
        if last > self.update {
            self.books.set_all(SYMBOL, Side::Bid, &data["b"]);
            self.books.set_all(SYMBOL, Side::Ask, &data["a"]);
            self.update = last;
        }
    }

    fn answer(&mut self, request: &str) -> Vec<String> {
        // An answer that is no book is not counted as a snapshot: it is sent with the first message of the script.
        assert!(request.contains("\"SUBSCRIBE\"") && request.contains("btcusdt@depth@100ms"), "{request}");
        Vec::new()
    }

    fn snapshot(&mut self, query: &str) -> Option<String> {
        assert_eq!(query, "symbol=BTCUSDT&limit=1000");
        if let Some(recorded) = self.recorded.take() {
            return Some(recorded);
        }
        let [bids, asks] = [Side::Bid, Side::Ask].map(|side| self.books.best(SYMBOL, side, 1_000));
        Some(json!({ "lastUpdateId": self.update, "bids": bids, "asks": asks }).to_string())
    }

    fn books(&self) -> &Books {
        &self.books
    }
}

/// The number of the trade behind the script: a reader of the ring has then seen everything.
const MARK: &str = "9999999999";

pub(super) fn mark() -> Step {
    Step::Send(format!(
        r#"{{"stream":"btcusdt@trade","data":{{"e":"trade","E":1723161599999,"T":1723161599999,"s":"BTCUSDT","t":{MARK},"p":"1.00","q":"1","X":"MARKET","m":true}}}}"#
    ))
}

pub(super) fn is_mark(tick: &Value) -> bool {
    tick["fields"]["TRADE_ID"] == MARK
}

/// The recorded messages, with the recorded snapshot; the script waits where the snapshot was recorded.
fn recorded() -> Option<(Vec<Step>, Binance)> {
    let path = shared("crypto-binance-20240808/usdm_btcusdt_20240808.gz")?;
    let (mut script, mut snapshot) = (Vec::new(), None);
    for line in unpacked(&path).lines() {
        let (_, json) = line.split_once(' ').unwrap();
        if json.starts_with("{\"lastUpdateId\"") {
            snapshot = Some(json.to_owned());
            script.push(Step::AwaitSnapshots(1));
        } else {
            script.push(Step::Send(json.to_owned()));
        }
    }
    Some((script, Binance::recorded(&snapshot.unwrap())))
}

fn is_difference(step: &Step) -> bool {
    matches!(step, Step::Send(text) if text.contains("depthUpdate"))
}

/// Turns the difference with this number into a lost one; returns its place.
fn lose(script: &mut [Step], number: usize) -> usize {
    let place = (0..script.len()).filter(|at| is_difference(&script[*at])).nth(number).unwrap();
    let Step::Send(text) = script[place].clone() else { panic!("a difference is sent") };
    script[place] = Step::Lose(text);
    place
}

/// The published book is the one of `expected.json`.
#[track_caller]
fn check_expected(market: &Market) {
    let expected = &expected("crypto-binance-20240808/expected.json").unwrap()["files"][0];
    let truth = &expected["l2_book_from_snapshot_and_updates"];
    for (side, member) in [(Side::Bid, "bids"), (Side::Ask, "asks")] {
        let text = |value: &Value| trimmed(value.as_str().unwrap());
        let wanted: Vec<_> = truth[member]
            .as_array()
            .unwrap()
            .iter()
            .map(|level| (text(&level[0]), text(&level[1])))
            .collect();
        let shown = market.levels(SYMBOL, side);
        assert_eq!(shown.len(), 10);
        assert_eq!(shown[..5], wanted);
    }
    let fields = &market.items[SYMBOL].fields;
    let best = ["BID", "BIDSIZE", "ASK", "ASKSIZE"].map(|name| trimmed(&fields[name].to_string()));
    let wanted = expected["final_bookTicker_b_B_a_A_u"].as_array().unwrap();
    assert_eq!(
        best[..],
        wanted[..4].iter().map(|value| trimmed(value.as_str().unwrap())).collect::<Vec<_>>()
    );
}

#[test]
fn a_plant_ends_with_the_recorded_book() {
    let Some((mut script, binance)) = recorded() else { return };
    script.push(mark());
    let place = Place::new(0);
    let server = VenueServer::start(place.folder.path(), script, binance);
    let mut market = Market::open(&place, &config(&place, &server, "binance", &[SYMBOL.to_owned()], ""));
    market.read_until_live(is_mark);
    market.end();
    check_expected(&market);
    market.check_books(&server, &[SYMBOL.to_owned()]);
    assert_eq!(server.snapshots(), 1);
    let report = &market.report["feeds"][0];
    // The mark skips numbers, which is one gap of trades.
    assert_eq!((&report["malformed_messages"], &report["gaps"]), (&json!(0), &json!(1)), "{report}");
    // The snapshot is a message too.
    assert_eq!(report["messages"], 93_954 + 1);
    assert_eq!(market.items[SYMBOL].trades, 21_313 + 1);
}

#[test]
fn a_lost_difference_is_told_and_the_book_is_joined_again() {
    let Some((mut script, binance)) = recorded() else { return };
    let place = lose(&mut script, 3_000);
    let after = (place..script.len()).filter(|at| is_difference(&script[*at])).nth(20).unwrap();
    script.insert(after, Step::AwaitSnapshots(2));
    script.push(mark());
    let place = Place::new(0);
    let server = VenueServer::start(place.folder.path(), script, binance);
    let mut market = Market::open(&place, &config(&place, &server, "binance", &[SYMBOL.to_owned()], ""));
    market.read_until_live(is_mark);
    market.end();
    check_expected(&market);
    assert_eq!(server.snapshots(), 2);
    assert_eq!(market.report["feeds"][0]["gaps"], 2, "{}", market.report);
    assert!(market.has_status("is missing on every line"));
    assert!(market.has_status("recovering: messages from"));
    assert_eq!(market.statuses.last().unwrap(), "live: every message that was missing has come");
}

#[test]
fn a_cut_makes_the_feed_stale_until_the_plant_has_connected_again() {
    let Some((mut script, binance)) = recorded() else { return };
    let cut = (0..script.len()).filter(|at| is_difference(&script[*at])).nth(2_000).unwrap();
    for step in &mut script[cut..cut + 200] {
        if let Step::Send(text) = step {
            *step = Step::Lose(std::mem::take(text));
        }
    }
    script.insert(cut, Step::Cut);
    let after = (cut + 201..script.len()).filter(|at| is_difference(&script[*at])).nth(20).unwrap();
    script.insert(after, Step::AwaitSnapshots(2));
    script.push(mark());
    let place = Place::new(0);
    let server = VenueServer::start(place.folder.path(), script, binance);
    let mut market = Market::open(&place, &config(&place, &server, "binance", &[SYMBOL.to_owned()], ""));
    market.read_until_live(is_mark);
    market.end();
    check_expected(&market);
    assert_eq!((server.snapshots(), server.requests().len()), (2, 2));
    assert!(market.has_status("stale: no line is heard of"));
    assert_eq!(market.statuses.last().unwrap(), "live: every message that was missing has come");
}

pub(super) fn difference(first: u64, last: u64, bids: &str, asks: &str) -> String {
    format!(
        r#"{{"stream":"btcusdt@depth@100ms","data":{{"e":"depthUpdate","E":1723161255208,"s":"BTCUSDT","U":{first},"u":{last},"b":[{bids}],"a":[{asks}]}}}}"#
    )
}

/// A spot stream of a few messages, made by hand, through the whole plant: ring, journal and hub.
#[test]
fn a_stream_made_by_hand_reaches_ring_journal_and_hub() {
    let snapshot =
        r#"{"lastUpdateId":100,"bids":[["61837.63","3.5"],["61837.50","1.25"]],"asks":[["61837.64","1.5"]]}"#;
    let trade = r#"{"stream":"btcusdt@trade","data":{"e":"trade","E":1723161255343,"s":"BTCUSDT","t":41,"p":"61837.63000000","q":"0.02000000","T":1723161255342,"m":true,"M":true}}"#;
    let script = vec![
        Step::Send(r#"{"result":null,"id":1}"#.to_owned()),
        Step::Send(difference(98, 101, r#"["61837.60","0.75"]"#, "")),
        Step::AwaitSnapshots(1),
        Step::Send(trade.to_owned()),
        Step::Send(difference(102, 103, r#"["61837.63","0.00000000"]"#, r#"["61837.64","2.00000000"]"#)),
        Step::Lose(difference(104, 104, r#"["61837.61","9"]"#, "")),
        Step::Send(difference(105, 105, "", r#"["61837.70","4"]"#)),
        Step::AwaitSnapshots(2),
        Step::Send("not JSON".to_owned()),
        Step::Send(difference(106, 107, r#"["61837.62","0.125"]"#, "")),
        mark(),
    ];
    let place = Place::new(0);
    let server = VenueServer::start(place.folder.path(), script, Binance::recorded(snapshot));
    let more = "[journal]\nfolder = \"journal\"\n[hub]\nport = 0\n";
    let path = config(&place, &server, "binance", &[SYMBOL.to_owned()], more);
    let mut plant = Running::start(&["plant", "--config", &path, "--format", "json"]);
    let ready = plant.says();
    let hub = ready["hub"].as_str().unwrap();
    let fixed = ["omm", "watch", "--server", hub, "--service", "TAPELINE", "--format", "json", SYMBOL];
    let mut fields = Running::start(&fixed);
    loop {
        let said = fields.says();
        if said["fields"]["TRADE_ID"] == MARK {
            break;
        }
    }
    let book =
        tapeline(&[&fixed[..], &["--domain", "MarketByPrice", "--snapshot"]].concat()).output().unwrap();
    let book = String::from_utf8(book.stdout).unwrap();
    for part in ["61837.62B", "61837.61B", "61837.6B", "61837.5B", "61837.64A", "61837.7A"] {
        assert!(book.contains(part), "{part}: {book}");
    }
    assert!(!book.contains("61837.63B"), "{book}");
    let watch =
        Running::start(&["plant", "watch", "--ring", &place.ring, "--from", "oldest", "--format", "json"]);
    let mut market = Market {
        ready: Value::Null,
        plant,
        watch,
        items: std::collections::BTreeMap::new(),
        statuses: Vec::new(),
        report: Value::Null,
    };
    market.read_until_live(is_mark);
    market.end();
    market.check_books(&server, &[SYMBOL.to_owned()]);
    let report = &market.report["feeds"][0];
    assert_eq!((&report["malformed_messages"], &report["state"]), (&json!(1), &json!("live")), "{report}");
    let fields = &market.items[SYMBOL].fields;
    assert_eq!((&fields["BID"], &fields["BIDSIZE"]), (&json!(61_837.62), &json!(0.125)));
    let journal = place.folder.path().join("journal");
    let info =
        tapeline(&["journal", "verify", journal.to_str().unwrap(), "--format", "json"]).output().unwrap();
    assert!(info.status.success(), "{}", String::from_utf8_lossy(&info.stderr));
}
