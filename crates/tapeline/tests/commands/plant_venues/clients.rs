//! One plant with two venues' streams of the same symbol, and every kind of client: ring, hub, ZeroMQ, kdb+, counters, metrics, journal; and the best bid
//! and ask of both venues.

use std::path::Path;

use serde_json::{Value, json};
use tapeline_kdb::Atom;

use super::binance::{Binance, SYMBOL, difference, mark};
use crate::kdb_client::{Client, zone};
use crate::plant_kdb::{Cell, Rows, add, float, page};
use crate::plant_zeromq::subscribe;
use crate::stage::{Place, Running, tapeline};
use crate::venue_server::{Step, VenueServer};

/// A venue with one level of each side, which then waits for the test; then a change of both sides, and the mark.
fn venue(folder: &Path, bid: &str, ask: &str, then: (&str, &str)) -> VenueServer {
    std::fs::create_dir(folder).unwrap();
    let snapshot = format!(r#"{{"lastUpdateId":100,"bids":[["{bid}","1.5"]],"asks":[["{ask}","2"]]}}"#);
    let script = vec![
        Step::Send(difference(99, 100, "", "")),
        Step::AwaitSnapshots(1),
        Step::Hold,
        Step::Send(difference(101, 102, then.0, then.1)),
        Step::Send("not JSON".to_owned()),
        mark(),
    ];
    VenueServer::start(folder, script, Binance::recorded(&snapshot))
}

fn config(place: &Place, servers: &[(&str, &VenueServer)]) -> String {
    let feed = |(name, server): &(&str, &VenueServer)| {
        let port = server.port;
        format!(
            "[[feed]]\nname = \"{name}\"\nprotocol = \"binance\"\nsymbols = [\"{SYMBOL}\"]\nvenue = \"{name}\"\nsuffix = \".{name}\"\n\
             url = \"wss://localhost:{port}/stream\"\nsnapshot_url = \"https://localhost:{port}/api/v3/depth\"\nca = \"{name}/ca.pem\"\n"
        )
    };
    let feeds: String = servers.iter().map(feed).collect();
    let text = format!(
        "[plant]\nring = \"{}\"\nstall_limit = \"0s\"\n{feeds}[nbbo]\nfeeds = [\"spot\", \"usdm\"]\n[journal]\nfolder = \"journal\"\n\
         [hub]\nport = 0\nunknown = \"wait\"\n[hub.web]\nport = 0\n[hub.zeromq]\nport = 0\nbody = \"json\"\nimages_every = \"10ms\"\n\
         [kdb]\nport = 0\nlog_folder = \"logs\"\ntimezone = \"{}\"\n\
         [[kdb.table]]\nname = \"trade\"\nrows = \"trades\"\n\
         columns = [\"time timespan\", \"sym symbol\", \"price float TRDPRC_1\", \"size float TRDVOL_1\", \"id symbol TRADE_ID\"]\n\
         [[kdb.table]]\nname = \"quote\"\nrows = \"quotes\"\n\
         columns = [\"time timespan\", \"sym symbol\", \"bid float BID\", \"ask float ASK\", \"bsize float BIDSIZE\", \"asize float ASKSIZE\"]\n",
        place.ring,
        zone()
    );
    let path = place.folder.path().join("plant.toml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The last row of an item: its cells behind time and symbol.
fn last_row(rows: &Rows, table: &str, item: &str) -> Option<Vec<f64>> {
    let is_it = |row: &&Vec<Cell>| matches!(&row[1], Atom::Symbol(name) if **name == *item.as_bytes());
    let row = rows.get(table)?.iter().rfind(is_it)?;
    Some(row[2..].iter().filter(|cell| !matches!(cell, Atom::Symbol(_))).map(float).collect())
}

/// Merges the fields of what a subscriber or a reader receives, until the item has these values.
fn until(what: &str, wanted: &[(&str, Value)], mut next: impl FnMut() -> (bool, Value)) {
    let mut fields = serde_json::Map::new();
    loop {
        let (is_it, said) = next();
        if let (true, Some(new)) = (is_it, said.as_object()) {
            fields.extend(new.clone());
            if wanted.iter().all(|(name, value)| fields.get(*name) == Some(value)) {
                println!("{what}: {fields:?}");
                return;
            }
        }
    }
}

#[test]
fn every_kind_of_client_has_the_books_and_trades_of_two_venues_and_the_best_of_both() {
    let place = Place::new(0);
    let folder = place.folder.path();
    let spot = venue(&folder.join("spot"), "61837.50", "61837.75", (r#"["61837.60","0.25"]"#, ""));
    let usdm = venue(&folder.join("usdm"), "61836.00", "61837.70", ("", r#"["61837.65","0.125"]"#));
    let mut plant = Running::start(&[
        "plant",
        "--config",
        &config(&place, &[("spot", &spot), ("usdm", &usdm)]),
        "--format",
        "json",
    ]);
    let ready = plant.says();
    let address = |part: &Value| part.as_str().unwrap().to_owned();
    let (hub, web) = (address(&ready["hub"]), address(&ready["web"]));
    let best_item = format!("{SYMBOL}.NBBO");
    let mut rdb = Client::tcp(&address(&ready["kdb"]["address"]));
    rdb.ask("(.u.sub[`;`];.u `i`L)");
    let subscriber = subscribe(&address(&ready["zeromq"]));
    let fixed = ["omm", "watch", "--server", &hub, "--service", "TAPELINE", "--format", "json"];
    let mut consumer = Running::start(&[&fixed[..], &[&best_item]].concat());
    let mut watch =
        Running::start(&["plant", "watch", "--ring", &place.ring, "--from", "oldest", "--format", "json"]);
    spot.go_on();
    usdm.go_on();

    // The best bid is of one venue, the best ask of the other.
    let best = [
        ("BID", json!(61_837.6)),
        ("BIDSIZE", json!(0.25)),
        ("BID_SRC", json!("spot")),
        ("ASK", json!(61_837.65)),
        ("ASKSIZE", json!(0.125)),
        ("ASK_SRC", json!("usdm")),
    ];
    until("ring", &best, || {
        let said = watch.says();
        (said["item"] == best_item, said["fields"].clone())
    });
    until("hub", &best, || (true, consumer.says()["fields"].clone()));
    let topic = format!("TAPELINE/{best_item}");
    until("ZeroMQ", &best, || {
        let (of, _, body) = subscriber.recv().unwrap();
        (of == topic, body["Fields"].clone())
    });
    let mut rows = Rows::new();
    let items = ["spot", "usdm"].map(|name| format!("{SYMBOL}.{name}"));
    let has_all = |rows: &Rows| {
        items.iter().all(|item| last_row(rows, "trade", item) == Some(vec![1.0, 1.0]))
            && last_row(rows, "quote", &best_item) == Some(vec![61_837.6, 61_837.65, 0.25, 0.125])
            && last_row(rows, "quote", &items[0]) == Some(vec![61_837.6, 61_837.75, 0.25, 2.0])
            && last_row(rows, "quote", &items[1]) == Some(vec![61_836.0, 61_837.65, 1.5, 0.125])
    };
    while !has_all(&rows) {
        add(&mut rows, &rdb.next());
    }

    // The counters, once the plant's thread has reported: the difference before the snapshot, the snapshot, a difference, a trade.
    let of_symbol = json!({ "symbol": SYMBOL, "joined": true, "messages": 4, "snapshots": 1, "gaps": 0 });
    let mut stat = Running::start(&["stat", &place.ring, "--every", "50ms", "--format", "json"]);
    loop {
        let seen = stat.says();
        let venues = [0, 1].map(|feed| seen["feeds"][feed]["venue"].clone());
        let is_so = |venue: &Value| {
            let mut symbol = venue["symbols"][0].clone();
            let heard_ns = symbol.as_object_mut().and_then(|symbol| symbol.remove("heard_ns"));
            symbol == of_symbol && heard_ns.and_then(|ns| ns.as_u64()) > Some(0)
        };
        if venues.iter().all(is_so) {
            assert!(venues.iter().all(|venue| venue["connected"] == true && venue["connections"] == 1));
            assert!(venues.iter().all(|venue| venue["heard_ns"].as_u64() > Some(0)));
            assert!([0, 1].iter().all(|feed| seen["feeds"][feed]["malformed"] == 1), "{seen}");
            break;
        }
    }
    let metrics = page(&web, "/metrics");
    for line in [
        "tapeline_venue_connected{feed=\"usdm\"} 1",
        "tapeline_venue_connections_total{feed=\"spot\"} 1",
        "tapeline_venue_book_joined{feed=\"spot\",symbol=\"BTCUSDT\"} 1",
        "tapeline_venue_symbol_messages_total{feed=\"usdm\",symbol=\"BTCUSDT\"} 4",
        "tapeline_venue_symbol_silent_seconds{feed=\"usdm\",symbol=\"BTCUSDT\"} ",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let text = String::from_utf8(tapeline(&["stat", &place.ring]).output().unwrap().stdout).unwrap();
    assert!(text.contains("venue        spot connected, 0 reconnects, last message"), "{text}");

    // The journal has every tick.
    plant.ask_to_end();
    let mut report = Value::Null;
    while let Some(said) = plant.may_say() {
        report = said;
    }
    let journal = folder.join("journal");
    let verified =
        tapeline(&["journal", "verify", journal.to_str().unwrap(), "--format", "json"]).output().unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    let verified: Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert_eq!((&verified["ticks"], &verified["missing"]), (&report["ticks"], &json!(0)), "{report}");
}
