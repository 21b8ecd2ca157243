//! Every file that the publisher and users of theirs gave away, against what an independent parser found in it.

use crate::shared_data;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use serde_json::{Map, Value, json};
use tapeline_feed::capture::{self, Recording};
use tapeline_feed::dbn::{self, DbnSettings, DbnSummary, DbnSymbols, Header};
use tapeline_feed::itch::Side;

const FOLDERS: [(&str, usize); 2] = [("dbn-databento", 47), ("dbn-cme-opra", 9)];

/// A file's summary and its first two records, all fields by name.
fn read(path: &std::path::Path) -> (Option<dbn::Metadata>, DbnSummary, Vec<Value>) {
    let Recording::Records(mut file) = capture::open(File::open(path).unwrap()).unwrap() else {
        panic!("{}: taken for something else", path.display());
    };
    let symbols = file.metadata().map_or_else(DbnSymbols::default, DbnSymbols::of);
    let mut summary = DbnSummary::new(DbnSettings::default(), symbols);
    let mut first = Vec::new();
    while let Some(bytes) = file.next().unwrap() {
        if first.len() < 2 {
            first.push(fields(bytes));
        }
        summary.record(bytes);
    }
    (file.metadata().cloned(), summary, first)
}

fn fields(bytes: &[u8]) -> Value {
    let header = Header::of(bytes).unwrap();
    let mut fields = Map::new();
    fields.insert("length".to_owned(), bytes[0].into());
    fields.insert("rtype".to_owned(), header.kind.0.into());
    fields.insert("publisher_id".to_owned(), header.publisher.into());
    fields.insert("instrument_id".to_owned(), header.instrument.into());
    fields.insert("ts_event".to_owned(), header.ts_event.into());
    dbn::decode(bytes).unwrap().fields(&mut |name, value| {
        let value = match value {
            dbn::Value::Number(number) => match u64::try_from(number) {
                Ok(number) => number.into(),
                Err(_) => i64::try_from(number).unwrap().into(),
            },
            dbn::Value::Letter(letter) => letter.to_string().into(),
            dbn::Value::Text(text) => String::from_utf8(text.to_vec()).unwrap().into(),
        };
        assert!(fields.insert(name.to_owned(), value).is_none(), "{name} is shown twice");
    });
    Value::Object(fields)
}

#[test]
fn every_file_holds_what_another_parser_found() {
    for (folder, count) in FOLDERS {
        let Some(expected) = shared_data::expected(folder) else { return };
        let files = expected["files"].as_object().unwrap();
        assert_eq!(files.len(), count);
        for (name, expected) in files {
            let path = shared_data::shared(&format!("data/{folder}/{name}")).unwrap();
            let (metadata, summary, first) = read(&path);
            check_metadata(name, metadata.as_ref(), &expected["metadata"]);
            check_counts(name, &summary, expected);
            check_books(name, &summary, expected);
            for (found, expected) in first.iter().zip(expected["records_decoded"].as_array().unwrap()) {
                assert_eq!(found, expected, "{name}");
            }
        }
    }
}

fn check_metadata(name: &str, found: Option<&dbn::Metadata>, expected: &Value) {
    let Some(found) = found else {
        assert!(expected.is_null(), "{name} has metadata");
        return;
    };
    let about = &found.about;
    assert_eq!(expected["metadata_length"], found.length, "{name}");
    assert_eq!(expected["version"], about.version, "{name}");
    assert_eq!(expected["dataset"], *about.dataset, "{name}");
    assert_eq!(expected["schema"], about.schema.unwrap().as_str(), "{name}");
    assert_eq!(expected["start"], about.start, "{name}");
    assert_eq!(expected["end"].as_u64(), about.end.map(u64::from), "{name}");
    assert_eq!(expected["limit"].as_u64().unwrap_or(0), about.limit.map_or(0, u64::from), "{name}");
    assert_eq!(expected["stype_in"], about.stype_in.map_or(255, |stype| stype as u8), "{name}");
    assert_eq!(expected["stype_out"], about.stype_out as u8, "{name}");
    assert_eq!(expected["ts_out"], u8::from(about.ts_out), "{name}");
    assert_eq!(expected["symbol_cstr_len"], about.symbol_cstr_len, "{name}");
    for (list, expected) in [
        (&about.symbols, &expected["symbols"]),
        (&about.partial, &expected["partial"]),
        (&about.not_found, &expected["not_found"]),
    ] {
        match expected.as_array() {
            Some(expected) => assert_eq!(expected, &json!(list).as_array().unwrap()[..], "{name}"),
            None => assert_eq!(expected["count"], list.len(), "{name}"),
        }
    }
    let intervals: usize = about.mappings.iter().map(|mapping| mapping.intervals.len()).sum();
    assert_eq!(expected["mappings"]["symbols"], about.mappings.len(), "{name}");
    assert_eq!(expected["mappings"]["intervals"], intervals, "{name}");
}

fn check_counts(name: &str, found: &DbnSummary, expected: &Value) {
    let counts = |counts: Vec<(String, u64)>| json!(counts.into_iter().collect::<BTreeMap<_, _>>());
    let set = |field: &str| expected.get(field).cloned().unwrap_or_else(|| json!({}));
    assert_eq!(expected["records"], found.records, "{name}");
    assert_eq!(found.malformed, 0, "{name}");
    let by_kind = found.by_kind().map(|(kind, count)| (kind.name().unwrap().to_owned(), count)).collect();
    assert_eq!(set("by_rtype"), counts(by_kind), "{name}");
    let by_length = found.by_length().map(|(length, count)| (length.to_string(), count)).collect();
    assert_eq!(set("record_sizes"), counts(by_length), "{name}");
    assert_eq!(set("publishers"), json!(found.by_publisher), "{name}");
    let instruments: BTreeSet<u32> = found.books.iter().map(|(_, book)| book.instrument).collect();
    assert_eq!(expected["instruments"], instruments.len(), "{name}");
    assert_eq!(expected["first_ts_event"], json!(found.ts_event.first), "{name}");
    assert_eq!(expected["last_ts_event"], json!(found.ts_event.last), "{name}");
    if expected.get("actions").is_some() && !expected["first_sequence"].is_null() {
        assert_eq!(expected["first_ts_recv"], json!(found.ts_recv.first), "{name}");
        assert_eq!(expected["last_ts_recv"], json!(found.ts_recv.last), "{name}");
        assert_eq!(expected["first_sequence"], json!(found.sequence.first), "{name}");
        assert_eq!(expected["last_sequence"], json!(found.sequence.last), "{name}");
        let letters = |letters: Vec<(dbn::Letter, u64)>| {
            counts(letters.into_iter().map(|(letter, count)| (letter.to_string(), count)).collect())
        };
        assert_eq!(set("actions"), letters(found.by_action().collect()), "{name}");
        assert_eq!(set("sides"), letters(found.by_side().collect()), "{name}");
        let flags = found.by_flags().map(|(flags, count)| (flags.0.to_string(), count)).collect();
        assert_eq!(set("flags"), counts(flags), "{name}");
    }
    let counters = found.books.counters();
    assert_eq!(
        expected["mbo_unknown_order"]["C"].as_u64().unwrap_or(0),
        counters.unknown_cancelled,
        "{name}"
    );
    assert_eq!(
        (counters.unknown_modified, counters.duplicate_orders, counters.odd_orders),
        (0, 0, 0),
        "{name}"
    );
}

fn check_books(name: &str, found: &DbnSummary, expected: &Value) {
    for (_, book) in found.books.iter() {
        let number = book.instrument.to_string();
        if let Some(traded) = expected.get("volume_by_instrument") {
            assert_eq!(traded[&number], book.volume.size, "{name}");
            assert_eq!(expected["trades_by_instrument"][&number], book.volume.trades, "{name}");
        }
        if let Some([bids, asks, live]) = expected["books"][&number].as_array().map(Vec::as_slice) {
            let side = |side, count| {
                let levels = book.levels(side).take(count);
                json!(
                    levels.map(|level| json!([level.price.0, level.size, level.orders])).collect::<Vec<_>>()
                )
            };
            assert_eq!(*bids, side(Side::Bid, bids.as_array().unwrap().len()), "{name}");
            assert_eq!(*asks, side(Side::Ask, asks.as_array().unwrap().len()), "{name}");
            assert_eq!(*live, book.live_orders().unwrap(), "{name}");
            assert!(!book.in_event(), "{name} ends with an event");
            assert_eq!(book.top.bid, book.levels(Side::Bid).next(), "{name}");
            assert_eq!(book.top.ask, book.levels(Side::Ask).next(), "{name}");
        }
        if let Some(levels) = expected["last_levels"][&number].as_array() {
            let (bid, ask) = (book.top.bid.unwrap(), book.top.ask.unwrap());
            let best = json!([bid.price.0, ask.price.0, bid.size, ask.size, bid.orders, ask.orders]);
            assert_eq!(levels[0], best, "{name}");
            if let Some(depth) = book.depth() {
                for (expected, level) in levels.iter().zip(depth) {
                    let level = json!([
                        level.bid_px.0,
                        level.ask_px.0,
                        level.bid_sz,
                        level.ask_sz,
                        level.bid_ct,
                        level.ask_ct
                    ]);
                    assert_eq!(*expected, level, "{name}");
                }
            }
        }
    }
}
