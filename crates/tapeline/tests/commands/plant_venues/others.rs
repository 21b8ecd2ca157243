//! Coinbase and Kraken: the recorded sessions, with a lost message and with a cut. BitMEX: a stream made by hand.

use serde_json::{Value, json};

use super::{Market, config, unpacked};
use crate::shared_data::shared;
use crate::stage::Place;
use crate::venue_server::{Behaviour, Books, Side, Step, VenueServer};

/// The received messages of one of cryptofeed's recordings, and the subscribed symbols.
fn recorded(file: &str, member: &str) -> Option<(Vec<Step>, Vec<String>)> {
    let all = unpacked(&shared(&format!("crypto-ws-captures-2021/{file}"))?);
    let sent =
        all.lines().find_map(|line| line.split_once(": {").filter(|(url, _)| url.contains("<-"))).unwrap().1;
    let sent: Value = serde_json::from_str(&format!("{{{sent}")).unwrap();
    let symbols = sent[member].as_array().unwrap().iter().map(|symbol| symbol.as_str().unwrap().to_owned());
    let received =
        all.lines().filter(|line| !line.starts_with("wss:")).filter_map(|line| line.split_once(": "));
    Some((received.map(|(_, json)| Step::Send(json.to_owned())).collect(), symbols.collect()))
}

/// Coinbase's answers: after the first subscription the recorded snapshots follow; later ones get snapshots of the true books.
#[derive(Default)]
pub(super) struct Coinbase {
    books: Books,
    subscriptions: usize,
}

impl Behaviour for Coinbase {
    fn see(&mut self, message: &str) {
        let value: Value = serde_json::from_str(message).unwrap();
        let Some(symbol) = value["product_id"].as_str() else { return };
        if value["type"] == "snapshot" {
            self.books.clear(symbol);
            self.books.set_all(symbol, Side::Bid, &value["bids"]);
            self.books.set_all(symbol, Side::Ask, &value["asks"]);
        }
        for change in value["changes"].as_array().into_iter().flatten() {
            let side = if change[0] == "buy" { Side::Bid } else { Side::Ask };
            self.books.set(symbol, side, &change.as_array().unwrap()[1..]);
        }
    }

    fn answer(&mut self, request: &str) -> Vec<String> {
        assert!(request.contains("\"level2_batch\""), "{request}");
        let request: Value = serde_json::from_str(request).unwrap();
        if request["type"] == "unsubscribe" {
            return Vec::new();
        }
        self.subscriptions += 1;
        if self.subscriptions == 1 {
            return Vec::new();
        }
        let snapshot = |symbol: &Value| {
            let symbol = symbol.as_str().unwrap();
            let [bids, asks] = [Side::Bid, Side::Ask].map(|side| self.books.best(symbol, side, usize::MAX));
            json!({ "type": "snapshot", "product_id": symbol, "bids": bids, "asks": asks }).to_string()
        };
        request["product_ids"].as_array().unwrap().iter().map(snapshot).collect()
    }

    fn snapshot(&mut self, _: &str) -> Option<String> {
        None
    }

    fn books(&self) -> &Books {
        &self.books
    }
}

#[test]
fn coinbase_after_a_cut_has_the_books_of_the_venue() {
    let Some((mut script, symbols)) = recorded("COINBASE.ws.28.0.txt.gz", "product_ids") else { return };
    let middle = script.len() / 2;
    script.insert(middle, Step::Cut);
    // A trade behind the script, of the first symbol.
    let symbol = symbols[0].clone();
    script.push(Step::Send(format!(
        r#"{{"type":"match","trade_id":9999999999,"side":"sell","size":"1","price":"1","product_id":"{symbol}","sequence":1,"time":"2021-04-17T16:44:37.089723Z"}}"#
    )));
    let place = Place::new(0);
    let server = VenueServer::start(place.folder.path(), script, Coinbase::default());
    let mut market = Market::open(&place, &config(&place, &server, "coinbase", &symbols, ""));
    market.read_until_live(|tick| tick["fields"]["TRADE_ID"] == "9999999999");
    market.end();
    market.check_books(&server, &symbols);
    assert_eq!(server.requests().len(), 2);
    assert!(market.has_status("stale: no line is heard of"));
    assert_eq!(market.statuses.last().unwrap(), "live: every message that was missing has come");
    assert_eq!(market.report["feeds"][0]["malformed_messages"], 0);
}

/// Kraken's answers: as Coinbase's; a book never has more than a thousand levels of a side.
#[derive(Default)]
struct Kraken {
    books: Books,
    subscriptions: usize,
}

impl Behaviour for Kraken {
    fn see(&mut self, message: &str) {
        let value: Value = serde_json::from_str(message).unwrap();
        let Some(parts) = value.as_array() else { return };
        let pair = parts.last().unwrap().as_str().unwrap();
        for part in parts.iter().filter(|part| part.is_object()) {
            if !part["as"].is_null() {
                self.books.clear(pair);
            }
            for (member, side) in [("as", Side::Ask), ("bs", Side::Bid), ("a", Side::Ask), ("b", Side::Bid)] {
                self.books.set_all(pair, side, &part[member]);
            }
        }
        self.books.limit(pair, 1_000);
    }

    fn answer(&mut self, request: &str) -> Vec<String> {
        let value: Value = serde_json::from_str(request).unwrap();
        if value["event"] != "subscribe" || value["subscription"]["name"] != "book" {
            return Vec::new();
        }
        self.subscriptions += 1;
        if self.subscriptions == 1 {
            return Vec::new();
        }
        let snapshot = |pair: &Value| {
            let levels = |side| -> Vec<Value> {
                let best = self.books.best(pair.as_str().unwrap(), side, 1_000);
                best.iter().map(|(price, size)| json!([price, size, "1618678150.000000"])).collect()
            };
            json!([1, { "as": levels(Side::Ask), "bs": levels(Side::Bid) }, "book-1000", pair]).to_string()
        };
        value["pair"].as_array().unwrap().iter().map(snapshot).collect()
    }

    fn snapshot(&mut self, _: &str) -> Option<String> {
        None
    }

    fn books(&self) -> &Books {
        &self.books
    }
}

#[test]
fn a_lost_message_of_kraken_is_found_by_its_checksum() {
    let Some((mut script, symbols)) = recorded("KRAKEN.ws.50.0.txt.gz", "pair") else { return };
    let checksum = |step: &Step| match step {
        Step::Send(text) if text.contains("SC/EUR") => text.split("\"c\":").nth(1).map(str::to_owned),
        _ => None,
    };
    // A message that changes the checksum: the checksum covers the best ten levels only.
    let all: Vec<usize> = (0..script.len()).filter(|at| checksum(&script[*at]).is_some()).skip(100).collect();
    let changes = |pair: &&[usize]| checksum(&script[pair[0]]) != checksum(&script[pair[1]]);
    let lost = all.windows(2).find(changes).unwrap()[1];
    let Step::Send(text) = script[lost].clone() else { panic!("it is sent") };
    script[lost] = Step::Lose(text);
    let after = all.iter().copied().filter(|at| *at > lost).nth(10).unwrap();
    script.insert(after, Step::AwaitSnapshots(1));
    script.push(Step::Send(
        r#"[1,[["1.00000","2.00000000","1618678160.000001","s","l",""]],"trade","SC/EUR"]"#.to_owned(),
    ));
    let place = Place::new(0);
    let server = VenueServer::start(place.folder.path(), script, Kraken::default());
    let mut market = Market::open(&place, &config(&place, &server, "kraken", &symbols, ""));
    market.read_until_live(|tick| tick["fields"]["TRDPRC_1"] == json!(1.0) && tick["item"] == "SC/EUR");
    market.end();
    market.check_books(&server, &symbols);
    let report = &market.report["feeds"][0];
    assert_eq!((&report["malformed_messages"], &report["gaps"]), (&json!(0), &json!(1)), "{report}");
    assert_eq!(market.statuses.last().unwrap(), "live: every message that was missing has come");
}

/// BitMEX's answers: the whole table after each subscription.
struct Bitmex(Books);

const PARTIAL: &str = r#"{"table":"orderBookL2","action":"partial","data":[{"symbol":"XBTUSD","id":1,"side":"Sell","size":100,"price":80.5},{"symbol":"XBTUSD","id":2,"side":"Buy","size":10,"price":40}]}"#;

impl Behaviour for Bitmex {
    fn see(&mut self, _: &str) {}

    fn answer(&mut self, request: &str) -> Vec<String> {
        if request.contains("\"subscribe\"") { vec![PARTIAL.to_owned()] } else { Vec::new() }
    }

    fn snapshot(&mut self, _: &str) -> Option<String> {
        None
    }

    fn books(&self) -> &Books {
        &self.0
    }
}

#[test]
fn bitmex_rows_for_unknown_levels_bring_the_table_again() {
    let row = |action: &str, row: &str| {
        Step::Send(format!(
            r#"{{"table":"orderBookL2","action":"{action}","data":[{{"symbol":"XBTUSD",{row}}}]}}"#
        ))
    };
    let script = vec![
        row("insert", r#""id":3,"side":"Buy","size":7,"price":41.5"#),
        row("update", r#""id":9,"side":"Buy","size":7"#),
        Step::AwaitSnapshots(2),
        row("update", r#""id":1,"side":"Sell","size":60"#),
        Step::Send(r#"{"table":"trade","action":"insert","data":[{"timestamp":"2017-04-04T22:16:38.461Z","symbol":"XBTUSD","side":"Buy","size":33,"price":80.5}]}"#.to_owned()),
    ];
    let place = Place::new(0);
    let mut books = Books::default();
    books.set("XBTUSD", Side::Ask, &[json!("80.5"), json!("60")]);
    books.set("XBTUSD", Side::Bid, &[json!("40"), json!("10")]);
    let server = VenueServer::start(place.folder.path(), script, Bitmex(books));
    let symbols = ["XBTUSD".to_owned()];
    let mut market = Market::open(&place, &config(&place, &server, "bitmex", &symbols, ""));
    market.read_until_live(|tick| tick["fields"]["TRDVOL_1"] == json!(33));
    market.end();
    market.check_books(&server, &symbols);
    assert_eq!(market.report["feeds"][0]["gaps"], 1);
    assert!(server.requests().iter().any(|text| text.contains("\"unsubscribe\"")));
}
