//! Logs of a tickerplant, compared with their known contents.
use crate::shared_data;

use std::collections::BTreeMap;
use std::io::Read;

use serde_json::{Value as Json, json};
use tapeline_kdb::{Atom, Column, Encoder, Log, LogWriter, Order, Torn, Type, Update};

/// Returns a log's bytes, if there is test data.
fn read(name: &str) -> Option<Vec<u8>> {
    let mut bytes = std::fs::read(shared_data::shared("data/kdb-tplogs")?.join(name)).unwrap();
    if bytes.starts_with(&[0x1F, 0x8B]) {
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut plain).unwrap();
        bytes = plain;
    }
    Some(bytes)
}

fn cell(atom: Atom<&[u8]>) -> Json {
    match atom {
        Atom::Boolean(value) => json!(value),
        Atom::Char(value) => json!(char::from(value).to_string()),
        Atom::Symbol(name) => json!(str::from_utf8(name).unwrap()),
        Atom::Int(value) => json!(value),
        Atom::Long(value) | Atom::Timestamp(value) => json!(value),
        Atom::Float(value) => json!(value),
        other => panic!("{other}"),
    }
}

#[test]
fn a_tickerplants_log_is_read_as_it_is_known_to_be() {
    let Some(bytes) = read("stp1_trade20220616122504") else { return };
    let expected = shared_data::shared_text("data/kdb-tplogs/expected.json").unwrap();
    let expected = &serde_json::from_str::<Json>(&expected).unwrap()["files"][0];
    assert_eq!(expected["log_bytes"], bytes.len());

    let mut rows_by_symbol: BTreeMap<String, u64> = BTreeMap::new();
    let mut volume: BTreeMap<String, i64> = BTreeMap::new();
    let mut last_row: BTreeMap<String, Json> = BTreeMap::new();
    let (mut rows, mut width) = (0, 0);
    let mut log = Log::parse(&bytes, Order::Little).unwrap();
    for entry in log.by_ref() {
        let update = Update::of(&entry.value).unwrap();
        assert_eq!((update.function, update.table), (&b"upd"[..], &b"trade"[..]));
        rows += update.rows.len();
        width = update.rows.columns().len();
        let columns: Vec<Vec<Json>> = update
            .rows
            .columns()
            .map(|column| match column {
                Column::Vector(vector) => vector.iter().map(cell).collect(),
                Column::List(_) => panic!("{column:?}"),
            })
            .collect();
        for row in 0..update.rows.len() {
            let row: Vec<Json> = columns.iter().map(|column| column[row].clone()).collect();
            let symbol = row[1].as_str().unwrap().to_owned();
            *rows_by_symbol.entry(symbol.clone()).or_default() += 1;
            *volume.entry(symbol.clone()).or_default() += row[3].as_i64().unwrap();
            last_row.insert(format!("trade:{symbol}"), Json::Array(row));
        }
    }
    assert_eq!((log.torn(), log.offset()), (None, bytes.len()));
    assert_eq!(json!({ "trade": log.messages() }), expected["upd_messages"]);
    assert_eq!(json!({ "trade": rows }), expected["rows"]);
    assert_eq!(json!({ "trade": width }), expected["columns"]);
    assert_eq!(json!(rows_by_symbol), expected["rows_by_symbol"]);
    assert_eq!(json!(volume), expected["trade_volume"]);
    for (which, row) in expected["last_row"].as_object().unwrap() {
        assert_eq!(&last_row[which], row, "{which}");
    }
}

/// Each message is written again from its columns: the file is the same to the byte.
#[test]
fn logs_are_written_as_they_were() {
    for name in ["stp1_trade20220616122504", "stp1_quote20220616122504.gz"] {
        let Some(bytes) = read(name) else { return };
        let mut again = vec![0; bytes.len()];
        let (mut writer, mut len) = LogWriter::begin(&mut again).unwrap();
        let log = Log::parse(&bytes, Order::Little).unwrap();
        for entry in log {
            let update = Update::of(&entry.value).unwrap();
            len += writer
                .append(&mut again[len..], |message| {
                    message.list(3)?;
                    message.symbol(update.function)?;
                    message.symbol(update.table)?;
                    message.list(update.rows.columns().len())?;
                    update.rows.columns().try_for_each(|column| write(message, column))
                })
                .unwrap();
        }
        assert!(again == bytes, "{name}");
        assert_eq!(writer.bytes(), len as u64);
    }
}

fn write(message: &mut Encoder<'_>, column: Column<'_>) -> Result<(), tapeline_kdb::Refused> {
    let Column::Vector(vector) = column else { panic!("{column:?}") };
    match vector.kind() {
        Type::SYMBOL => message.symbols(vector.symbols().unwrap()),
        Type::BOOLEAN => message.column(vector.kind(), vector.items::<bool>().unwrap()),
        Type::CHAR => message.column(vector.kind(), vector.items::<u8>().unwrap()),
        Type::INT => message.column(vector.kind(), vector.items::<i32>().unwrap()),
        Type::LONG | Type::TIMESTAMP => message.column(vector.kind(), vector.items::<i64>().unwrap()),
        Type::FLOAT => message.column(vector.kind(), vector.items::<f64>().unwrap()),
        other => panic!("{}", other.name()),
    }
}

#[test]
fn a_torn_tail_is_told_with_its_place() {
    let mut file = vec![0; 256];
    let (mut writer, mut len) = LogWriter::begin(&mut file).unwrap();
    for price in [1.0, 2.0] {
        len += writer.append(&mut file[len..], |message| message.column(Type::FLOAT, [price])).unwrap();
    }
    // Cut within the second message; then an invalid byte in it; the first message stays whole.
    let second = 8 + 14;
    let mut log = Log::parse(&file[..len - 3], Order::Little).unwrap();
    assert_eq!(log.by_ref().count(), 1);
    let Some(Torn { offset, bytes, fault }) = log.torn() else { panic!("not torn") };
    assert_eq!((offset, bytes, fault.offset, fault.is_cut()), (second, 11, second + 6, true));
    file[second] = 50;
    let mut log = Log::parse(&file[..len], Order::Little).unwrap();
    assert_eq!(log.by_ref().count(), 1);
    let fault = log.torn().unwrap().fault;
    assert_eq!((fault.offset, fault.is_cut()), (second, false));
    assert!(log.next().is_none());
}
