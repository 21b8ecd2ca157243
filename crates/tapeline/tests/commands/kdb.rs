//! Logs of kdb+ tickerplants through the real binary.

use crate::shared_data;

use std::fs::write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use shared_data::{expected, shared};
use tapeline_kdb::{Encoder, LogWriter, Refused, Type};

fn inspect(path: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapeline"));
    command.args(["kdb", "inspect"]).arg(path).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn report(output: &Output) -> Value {
    serde_json::from_slice::<Value>(&output.stdout).unwrap()["files"][0].clone()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_tickerplants_log_holds_what_it_is_known_to() {
    let file = "stp1_trade20220616122504";
    let Some(path) = shared(&format!("kdb-tplogs/{file}")) else { return };
    let expected = &expected("kdb-tplogs/expected.json").unwrap()["files"][0];
    let output = inspect(&path, &["--format", "json"]);
    assert!(output.status.success(), "{}", said(&output));
    let found = report(&output);
    let trade = &found["tables"]["trade"];
    assert_eq!(found["log_bytes"], expected["log_bytes"]);
    assert_eq!(json!({ "trade": trade["messages"] }), expected["upd_messages"]);
    assert_eq!(json!({ "trade": trade["rows"] }), expected["rows"]);
    assert_eq!(json!({ "trade": trade["columns"].as_array().unwrap().len() }), expected["columns"]);
    assert_eq!(trade["functions"], json!({ "upd": 306 }));
    let letters: String = trade["columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column["letters"].as_str().unwrap())
        .collect();
    assert_eq!(letters, "psfibccs");
    // The last row of the log is also the last row of its symbol.
    let last = trade["last_row"].as_array().unwrap();
    let of_symbol = &expected["last_row"][format!("trade:{}", last[1].as_str().unwrap())];
    assert!(of_symbol.is_null() || *of_symbol == trade["last_row"], "{last:?}");
    assert_eq!((&found["torn"], &found["others"]), (&Value::Null, &json!(0)));

    let people = String::from_utf8(inspect(&path, &[]).stdout).unwrap();
    for part in ["306 messages in 99,435 bytes", "timestamp (p)", "2022.06.16D", "2,409"] {
        assert!(people.contains(part), "{part}: {people}");
    }
}

#[test]
fn logs_in_gzip_are_read() {
    let Some(path) = shared("kdb-tplogs/stp1_quote20220616122504.gz") else { return };
    let output = inspect(&path, &["--format", "json"]);
    assert!(output.status.success(), "{}", said(&output));
    let found = report(&output);
    assert_eq!(found["log_bytes"], 601_310);
    assert!(found["tables"]["quote"]["rows"].as_u64().unwrap() > 1_000);
    assert_eq!(found["torn"], Value::Null);
}

/// The content before the cut is shown, then the position and the reason.
#[test]
fn a_gzip_file_that_is_cut_is_read_up_to_there() {
    let Some(path) = shared("kdb-tplogs/stp1_quote20220616122504.gz") else { return };
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.gz");
    write(&cut, &std::fs::read(path).unwrap()[..100_000]).unwrap();
    let output = inspect(&cut, &["--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let found = report(&output);
    assert!(found["messages"].as_u64().unwrap() > 100, "{found}");
    assert!(found["failure"].as_str().is_some_and(|failure| failure.contains("deflate")), "{found}");
    let said = said(&output);
    assert!(said.contains("cannot be read to its end") && said.contains(cut.to_str().unwrap()), "{said}");
}

/// Writes a message.
type Write = fn(&mut Encoder<'_>) -> Result<(), Refused>;

/// A log of these messages, and their offsets.
fn log(messages: &[Write]) -> (Vec<u8>, Vec<usize>) {
    let mut bytes = vec![0; 4_096];
    let (mut writer, mut len) = LogWriter::begin(&mut bytes).unwrap();
    let mut begins = Vec::new();
    for message in messages {
        begins.push(len);
        len += writer.append(&mut bytes[len..], message).unwrap();
    }
    bytes.truncate(len);
    (bytes, begins)
}

fn trade(message: &mut Encoder<'_>) -> Result<(), Refused> {
    message.list(3)?;
    message.symbol(b"upd")?;
    message.symbol(b"trade")?;
    message.list(2)?;
    message.symbols([b"AAPL".as_slice(), b"IBM"])?;
    message.column(Type::FLOAT, [84.28, f64::NAN])
}

/// The same table in another shape: one row's cells, with one more column.
fn wide_trade(message: &mut Encoder<'_>) -> Result<(), Refused> {
    message.list(3)?;
    message.symbol(b".u.upd")?;
    message.symbol(b"trade")?;
    message.list(3)?;
    message.symbol(b"MSFT")?;
    message.atom(&tapeline_kdb::Atom::<&[u8]>::Long(85))?;
    message.string(b"late")
}

fn end_of_day(message: &mut Encoder<'_>) -> Result<(), Refused> {
    message.list(2)?;
    message.symbol(b".u.end")?;
    message.atom(&tapeline_kdb::Atom::<&[u8]>::Date(8_000))
}

#[test]
fn shapes_types_and_other_messages_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let (bytes, begins) = log(&[trade, wide_trade, end_of_day]);
    write(&path, &bytes).unwrap();
    let output = inspect(&path, &["--format", "json"]);
    assert!(output.status.success());
    let found = report(&output);
    let trade = &found["tables"]["trade"];
    assert_eq!((&trade["messages"], &trade["rows"]), (&json!(2), &json!(3)));
    assert_eq!(trade["functions"], json!({ ".u.upd": 1, "upd": 1 }));
    assert_eq!((&trade["fewest_columns"], &trade["most_columns"]), (&json!(2), &json!(3)));
    assert_eq!(trade["columns"][1]["types"], json!(["float", "long"]));
    assert_eq!(
        (&trade["first_row"], &trade["last_row"]),
        (&json!(["AAPL", 84.28]), &json!(["MSFT", 85, "late"]))
    );
    assert_eq!((&found["others"], &found["first_other"]["offset"]), (&json!(1), &json!(begins[2])));
    let note = said(&inspect(&path, &[]));
    assert!(
        note.contains("messages that are not updates: 1, the first") && note.contains("found a list of 2"),
        "{note}"
    );
}

#[test]
fn a_torn_tail_is_told_with_place_reason_and_hint() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("torn");
    let (bytes, begins) = log(&[trade, trade]);
    write(&path, &bytes[..bytes.len() - 5]).unwrap();
    let output = inspect(&path, &["--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let found = report(&output);
    assert_eq!(found["torn"]["offset"], begins[1]);
    assert_eq!(found["torn"]["bytes"], bytes.len() - 5 - begins[1]);
    assert_eq!((&found["messages"], &found["log_bytes"]), (&json!(1), &json!(bytes.len() - 5)));
    let said = said(&output);
    for part in [
        path.to_str().unwrap(),
        &format!("from byte {} on", begins[1]),
        "expected 16 more bytes of float, found the end after 11",
        &format!(
            "hint: a torn tail, as a tickerplant leaves when it dies while writing; `-11!(1;file)` replays what is before it, {} bytes",
            begins[1]
        ),
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn damage_is_told_from_a_torn_tail() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged");
    let (mut bytes, begins) = log(&[trade, trade, trade]);
    bytes[begins[1]] = 50;
    write(&path, &bytes).unwrap();
    let output = inspect(&path, &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = said(&output);
    let place = format!("at byte {}: expected the type of a value, found 50", begins[1]);
    assert!(said.contains(&place) && said.contains("hint: damage"), "{said}");
}

#[test]
fn what_is_no_log_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let fails = |name: &str, bytes: &[u8], part: &str| {
        let path = folder.path().join(name);
        write(&path, bytes).unwrap();
        let output = inspect(&path, &[]);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(path.to_str().unwrap()) && said.contains(part), "{part}: {said}");
        assert!(output.stdout.is_empty());
    };
    fails("empty", b"", "expected 8 more bytes of a log's header, found the end after 0");
    fails("csv", b"time,sym,price\n", "at byte 0: expected the start of a kdb+ log");
    fails("zipped", b"kxzipped\0\0\0\0", "a file that kdb+ compressed");
    fails("gzip", &[0x1F, 0x8B, 8, 0, 1, 2, 3, 4, 5, 6], "cannot read");
    let missing = inspect(&folder.path().join("missing"), &[]);
    assert!(said(&missing).contains("cannot open") && missing.status.code() == Some(1));
    let given = inspect(folder.path(), &[]);
    let talk = said(&given);
    assert!(talk.contains("is a folder, not a log") && talk.contains("hint: a tickerplant's logs"), "{talk}");
    assert_eq!(given.status.code(), Some(1));
    // A log of a big-endian machine: the hint names the option.
    let path = folder.path().join("sparc");
    write(&path, b"\xFF\x01\0\0\0\0\0\0\0\0\0\0\0\x01\xF5a\0").unwrap();
    let turned = inspect(&path, &[]);
    assert!(said(&turned).contains("--big-endian"), "{}", said(&turned));
    assert!(inspect(&path, &["--big-endian"]).status.success());
    write(&path, log(&[trade]).0).unwrap();
    assert!(said(&inspect(&path, &["--big-endian"])).contains("without --big-endian"));
    let none = Command::new(env!("CARGO_BIN_EXE_tapeline")).args(["kdb", "inspect"]).output().unwrap();
    assert_eq!(none.status.code(), Some(2));
}
