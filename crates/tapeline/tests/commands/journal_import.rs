//! Logs of kdb+ tickerplants as journals, through the real binary.

use crate::shared_data;
use crate::stage;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Value, json};
use shared_data::{expected, shared};
use stage::tapeline;
use tapeline_kdb::{Encoder, LogWriter, Refused, Type};

fn run(arguments: &[&str], paths: &[&Path]) -> Output {
    let paths = paths.iter().map(|path| path.to_str().unwrap());
    let arguments: Vec<&str> = arguments.iter().copied().chain(paths).collect();
    tapeline(&arguments).output().unwrap()
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(output)))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A real tickerplant's day, imported and exported as Parquet: rows and volumes by symbol have the known values.
#[test]
fn a_tickerplants_day_comes_through() {
    let Some(log) = shared("kdb-tplogs/stp1_trade20220616122504") else { return };
    let known = &expected("kdb-tplogs/expected.json").unwrap()["files"][0];
    let folder = tempfile::tempdir().unwrap();
    let (journal, into) = (folder.path().join("journal"), folder.path().join("parquet"));
    let output = run(&["journal", "import", "--format", "json", "--into"], &[&journal, &log]);
    assert!(output.status.success(), "{}", said(&output));
    let imported = report(&output);
    assert_eq!(imported["rows"], known["rows"]);
    let symbols = known["rows_by_symbol"].as_object().unwrap();
    assert_eq!(imported["items"], symbols.len());
    // One tick a row, and one image a symbol.
    assert_eq!(imported["ticks"], known["rows"]["trade"].as_u64().unwrap() + symbols.len() as u64);
    let columns: Vec<_> = imported["not_taken"]
        .as_array()
        .unwrap()
        .iter()
        .map(|kind| kind["column"].as_str().unwrap())
        .collect();
    assert_eq!(columns, ["column 5", "column 6", "column 7", "column 8"]);

    let output = run(
        &["journal", "export", "--to", "parquet", "--numbers", "double", "--format", "json"],
        &[&journal, &into],
    );
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(report(&output)["rows"]["trades"], json!({ "2022-06-16": known["rows"]["trade"] }));
    let file = std::fs::File::open(into.join("trades/date=2022-06-16/part-0.parquet")).unwrap();
    let (mut rows, mut volumes) = (BTreeMap::<String, u64>::new(), BTreeMap::<String, u64>::new());
    let mut last = BTreeMap::new();
    for row in SerializedFileReader::new(file).unwrap().get_row_iter(None).unwrap() {
        let cells: BTreeMap<String, Field> =
            row.unwrap().get_column_iter().map(|(name, cell)| (name.clone(), cell.clone())).collect();
        let (Field::Str(name), Field::Double(size)) = (&cells["name"], &cells["size"]) else {
            panic!("{cells:?}")
        };
        *rows.entry(name.clone()).or_default() += 1;
        *volumes.entry(name.clone()).or_default() += *size as u64;
        last.insert(name.clone(), (cells["time"].to_string(), cells["price"].to_string()));
    }
    assert_eq!(json!(rows), known["rows_by_symbol"]);
    assert_eq!(json!(volumes), known["trade_volume"]);
    // kdb+ time stamps count ns from 2000.
    let time = 708_697_697_727_152_000_u64 + 946_684_800_000_000_000;
    assert_eq!(last["AAPL"], (time.to_string(), "84.28".to_owned()));
}

/// Writes a message.
type Write = fn(&mut Encoder<'_>) -> Result<(), Refused>;

fn log(path: &Path, messages: &[Write]) {
    let mut bytes = vec![0; 4_096];
    let (mut writer, mut len) = LogWriter::begin(&mut bytes).unwrap();
    for message in messages {
        len += writer.append(&mut bytes[len..], message).unwrap();
    }
    std::fs::write(path, &bytes[..len]).unwrap();
}

/// Two rows with times of day, one without a symbol.
fn spans(message: &mut Encoder<'_>) -> Result<(), Refused> {
    message.list(3)?;
    message.symbol(b"upd")?;
    message.symbol(b"book")?;
    message.list(4)?;
    message.column(Type::TIMESPAN, [43_200_000_000_000_i64, 43_200_000_000_001])?;
    message.symbols([b"IBM".as_slice(), b""])?;
    message.column(Type::FLOAT, [1e-20, 2.5])?;
    message.column(Type::LONG, [7_i64, 8])
}

fn other_table(message: &mut Encoder<'_>) -> Result<(), Refused> {
    message.list(3)?;
    message.symbol(b"upd")?;
    message.symbol(b"other")?;
    message.list(1)?;
    message.column(Type::LONG, [7_i64, 8, 9])
}

fn no_update(message: &mut Encoder<'_>) -> Result<(), Refused> {
    message.symbol(b"hello")
}

#[test]
fn what_cannot_be_taken_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, tables) = (folder.path().join("journal"), folder.path().join("tables.toml"));
    let path = folder.path().join("sym2022.06.16");
    log(&path, &[spans, other_table, no_update]);
    let mapping = "[[table]]\nname = \"book\"\ncolumns = [\"time\", \"sym\", \"bid\", \"bsize\"]\n\
                   fields = { bid = \"BID\", bsize = \"BIDSIZE\" }\n";
    std::fs::write(&tables, mapping).unwrap();
    let arguments = ["journal", "import", "--format", "json", "--into"];
    let output = run(&arguments, &[&journal, &path, Path::new("--tables"), &tables]);
    assert!(output.status.success(), "{}", said(&output));
    let imported = report(&output);
    assert_eq!((&imported["ticks"], &imported["rows"]), (&json!(2), &json!({ "book": 1 })));
    let kinds = imported["not_taken"].as_array().unwrap();
    let kinds: Vec<_> =
        kinds.iter().map(|kind| json!([kind["table"], kind["column"], kind["count"]])).collect();
    assert_eq!(
        kinds,
        [
            json!([null, null, 1]),
            json!(["book", null, 1]),
            json!(["book", "bid", 1]),
            json!(["other", null, 3])
        ]
    );
    let talk = said(&output);
    assert!(
        talk.contains("1 cells of book.bid not taken") && talk.contains("3 rows of other not taken"),
        "{talk}"
    );

    // The day comes from the log's name; a second import appends.
    let looked = run(&["journal", "inspect", "--format", "json"], &[&journal]);
    assert_eq!(report(&looked)["ticks"][1]["at"], "2022-06-16T12:00:00.000000000Z", "{}", said(&looked));
    let output = run(&arguments, &[&journal, &path, Path::new("--tables"), &tables]);
    assert_eq!(
        (&report(&output)["first"], &report(&output)["last"]),
        (&json!(3), &json!(4)),
        "{}",
        said(&output)
    );

    // Without a day no time can be derived.
    let dayless = folder.path().join("log");
    std::fs::copy(&path, &dayless).unwrap();
    let output = run(&arguments, &[&folder.path().join("none"), &dayless, Path::new("--tables"), &tables]);
    assert_eq!((output.status.code(), &report(&output)["ticks"]), (Some(1), &json!(0)));
    assert!(said(&output).contains("--date"), "{}", said(&output));
    // A torn tail: exit status 1, after the whole messages are imported.
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
    let output = run(&arguments, &[&folder.path().join("torn"), &path, Path::new("--tables"), &tables]);
    assert_eq!((output.status.code(), &report(&output)["ticks"]), (Some(1), &json!(2)));
    assert!(said(&output).contains("not a whole message"), "{}", said(&output));
}

/// A trade with its venue before the price, in a table with a standard name.
fn other_trade(message: &mut Encoder<'_>) -> Result<(), Refused> {
    message.list(3)?;
    message.symbol(b"upd")?;
    message.symbol(b"trade")?;
    message.list(5)?;
    message.column(Type::TIMESPAN, [43_200_000_000_000_i64])?;
    message.symbols([b"IBM".as_slice()])?;
    message.column(Type::LONG, [12_i64])?;
    message.column(Type::FLOAT, [2.5])?;
    message.column(Type::LONG, [7_i64])
}

/// A column's position does not identify it: a wrong type at the price's position ends the import; a mapping solves it.
#[test]
fn a_table_that_is_not_the_usual_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, tables) = (folder.path().join("journal"), folder.path().join("tables.toml"));
    let path = folder.path().join("sym2022.06.16");
    log(&path, &[other_trade]);
    let arguments = ["journal", "import", "--format", "json", "--into"];
    let output = run(&arguments, &[&folder.path().join("none"), &path]);
    let talk = said(&output);
    assert_eq!(output.status.code(), Some(1), "{talk}");
    assert!(talk.contains("column 3 of 5 is of type long, where floats are expected, for price"), "{talk}");
    assert!(talk.contains("hint: --tables FILE"), "{talk}");
    let mapping = "[[table]]\nname = \"trade\"\ncolumns = [\"time\", \"sym\", \"venue\", \"price\", \"size\"]\n\
                   fields = { price = \"TRDPRC_1\", size = \"TRDVOL_1\" }\n";
    std::fs::write(&tables, mapping).unwrap();
    let output = run(&arguments, &[&journal, &path, Path::new("--tables"), &tables]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(report(&output)["rows"], json!({ "trade": 1 }));
}

#[test]
fn a_log_of_which_nothing_is_taken_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sym2022.06.16");
    log(&path, &[other_table, no_update]);
    for format in ["json", "table"] {
        let output =
            run(&["journal", "import", "--format", format, "--into"], &[&folder.path().join(format), &path]);
        let talk = said(&output);
        assert_eq!(output.status.code(), Some(1), "{talk}");
        assert!(talk.contains("nothing was imported: 0 of 4 rows were taken"), "{talk}");
        assert!(talk.contains("because: 3 rows of other not taken: there is no such table"), "{talk}");
        assert!(talk.contains("hint: --tables FILE"), "{talk}");
    }
    // An empty log is no error.
    log(&path, &[]);
    let output = run(&["journal", "import", "--into"], &[&folder.path().join("empty"), &path]);
    assert!(output.status.success(), "{}", said(&output));
}

/// A row with non-ASCII text, as a symbol and as a string, and a date.
fn beyond_ascii(message: &mut Encoder<'_>) -> Result<(), Refused> {
    message.list(3)?;
    message.symbol(b"upd")?;
    message.symbol(b"names")?;
    message.list(5)?;
    message.column(Type::TIMESPAN, [43_200_000_000_000_i64])?;
    message.symbols([b"IBM".as_slice()])?;
    message.symbols(["é€".as_bytes()])?;
    message.list(1)?;
    message.string("Łódź".as_bytes())?;
    message.column(Type::DATE, [8_202_i32])
}

#[test]
fn text_beyond_ascii_and_dates_come_through() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, tables) = (folder.path().join("journal"), folder.path().join("tables.toml"));
    let path = folder.path().join("sym2022.06.16");
    log(&path, &[beyond_ascii]);
    let mapping = "[[table]]\nname = \"names\"\ncolumns = [\"time\", \"sym\", \"name\", \"long\", \"day\"]\n\
                   fields = { name = \"OFFCL_CODE\", long = \"GV1_TEXT\", day = \"TRADE_DATE\" }\n";
    std::fs::write(&tables, mapping).unwrap();
    let arguments = ["journal", "import", "--format", "json", "--into"];
    let output = run(&arguments, &[&journal, &path, Path::new("--tables"), &tables]);
    assert_eq!(report(&output)["not_taken"], json!([]), "{}", said(&output));
    let into = folder.path().join("parquet");
    let output = run(&["journal", "export", "--to", "parquet"], &[&journal, &into]);
    assert!(output.status.success(), "{}", said(&output));
    let file = std::fs::File::open(into.join("fields/date=2022-06-16/part-0.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let texts = reader.get_row_iter(None).unwrap().map(|row| {
        let row = row.unwrap();
        let (_, text) = row.get_column_iter().find(|(name, _)| *name == "text").unwrap();
        text.to_string()
    });
    assert_eq!(texts.collect::<Vec<_>>(), ["\"é€\"", "\"Łódź\"", "\"2022-06-16\""]);
}

#[test]
fn a_wrong_mapping_is_told_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let (path, tables) = (folder.path().join("sym2022.06.16"), folder.path().join("tables.toml"));
    log(&path, &[spans]);
    std::fs::write(
        &tables,
        "[[table]]\nname = \"book\"\ncolumns = [\"time\", \"sym\"]\nfields = { bid = \"BID\" }\n",
    )
    .unwrap();
    let output = run(
        &["journal", "import", "--into"],
        &[&folder.path().join("journal"), &path, Path::new("--tables"), &tables],
    );
    let talk = said(&output);
    assert!(!output.status.success() && talk.contains("no \"bid\" among its columns"), "{talk}");
    assert!(talk.contains("tables.toml") && talk.contains("hint: docs/journal.md"), "{talk}");
    assert!(!folder.path().join("journal").exists());
}
