//! Journals as tables for other tools, through the real binary: complete, or not written.

use crate::kdb_client;
use crate::shared_data;
use crate::stage;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Output;

use kdb_client::{Client, zone};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use serde_json::{Value, json};
use shared_data::{expected, shared};
use stage::{Place, Running, tapeline};
use tapeline_journal::{Directory, Next, Reader, Settings, Writer};
use tapeline_kdb::{MessageKind, Type, Value as KdbValue};
use tapeline_measure::Nanos;
use tapeline_omm::rwf::{self, DataType, Domain, Hint, MessageView, UpdateType};
use tapeline_omm::{FieldList, FieldListEncoder, Real, fid};
use tapeline_plant::tick::{Flags, Header, Kind, Tick};
use tapeline_plant::{ItemId, Seq, State};

/// 21 November 2025, 23:59:59.
const BEFORE_MIDNIGHT: u64 = 1_763_769_599_000_000_000;

/// A trade with this size and time.
fn trade(seq: u64, time: u64, size: i64) -> Vec<u8> {
    let mut body = [0; 128];
    let list = DataType::FIELD_LIST;
    let header = rwf::update_header(&mut body, Domain::MARKET_PRICE, 0, UpdateType::TRADE, list).unwrap();
    let mut fields = FieldListEncoder::new(&mut body[header..]).unwrap();
    fields.real(fid::TRDPRC_1, Real::decimal(8_425, 2)).unwrap();
    fields.real(fid::TRDVOL_1, Real::integer(size)).unwrap();
    let len = header + fields.finish();
    let time = Nanos(time);
    let header = Header {
        seq: Seq(seq),
        feed_seq: seq,
        event: time,
        wire: time,
        decoded: time,
        sequenced: time,
        item: ItemId(1),
        service: 1,
        channel: 0,
        kind: Kind::Update,
        flags: Flags::default(),
        source_type: 0,
        state: State::Live,
    };
    let mut frame = Vec::new();
    Tick { header, name: "AAPL", body: &body[..len], source: &[] }.write(&mut frame);
    frame
}

/// A journal of trades: sequence, seconds from one second before midnight, shares.
fn keep(folder: &Path, trades: &[(u64, i64, i64)]) {
    let (mut writer, _) = Writer::open(Directory::create(folder).unwrap(), Settings::default()).unwrap();
    for &(seq, seconds, size) in trades {
        let time = BEFORE_MIDNIGHT.saturating_add_signed(seconds * 1_000_000_000);
        assert!(writer.append(seq, Nanos(time), &trade(seq, time, size)).is_kept());
        assert!(writer.flush().is_kept());
    }
    assert!(writer.finish().is_kept());
}

fn export(journal: &Path, into: &Path, options: &[&str]) -> Output {
    let fixed = ["journal", "export", journal.to_str().unwrap(), into.to_str().unwrap()];
    tapeline(&[&fixed, options].concat()).output().unwrap()
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(output)))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// All files below a folder, as relative paths.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let below = files(&path).into_iter();
            found.extend(below.map(|file| Path::new(path.file_name().unwrap()).join(file)));
        } else {
            found.push(path.file_name().unwrap().into());
        }
    }
    found.sort();
    found
}

/// A table's rows, over all days.
fn rows(exported: &Path, table: &str) -> Vec<Row> {
    let of_table = exported.join(table);
    let read = |file: PathBuf| SerializedFileReader::new(File::open(of_table.join(file)).unwrap()).unwrap();
    let rows = |reader: SerializedFileReader<File>| reader.get_row_iter(None).unwrap().collect::<Vec<_>>();
    let mut found = Vec::new();
    for file in files(&of_table) {
        found.extend(rows(read(file)).into_iter().map(Result::unwrap));
    }
    found
}

fn whole(row: &Row, column: &str) -> Option<i64> {
    let (_, field) = row.get_column_iter().find(|(name, _)| *name == column).unwrap();
    match field {
        Field::Long(value) => Some(*value),
        Field::Null => None,
        other => panic!("{column} is {other}"),
    }
}

/// A row's price in units of 10^-9.
fn price(row: &Row) -> i128 {
    let (_, field) = row.get_column_iter().find(|(name, _)| *name == "price").unwrap();
    let Field::Decimal(price) = field else { panic!("{field}") };
    assert_eq!((price.precision(), price.scale()), (18, 9));
    let bytes: Vec<u8> = price.data().to_vec();
    i64::from_be_bytes(bytes.try_into().unwrap()).into()
}

#[test]
fn days_are_directories_also_where_the_clock_went_back() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    keep(&journal, &[(1, 0, 10), (2, 1, 20), (3, 2, 30), (4, 0, 40), (6, 3, 50)]);
    let into = folder.path().join("a/new/folder");
    let output = export(&journal, &into, &["--to", "parquet", "--format", "json"]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let report = report(&output);
    let days = json!({ "2025-11-21": 2, "2025-11-22": 3 });
    assert_eq!(report["rows"], json!({ "ticks": days, "trades": days }));
    assert_eq!((&report["ticks"], &report["last"], &report["missing"]), (&json!(5), &json!(6), &json!(1)));
    assert!(said(&output).contains("ticks 5 to 5 are missing"), "{}", said(&output));
    let expected = ["21/part-0", "21/part-1", "22/part-0", "22/part-1"];
    let of_table = |table: &str| {
        let path = |part: &&str| PathBuf::from(format!("{table}/date=2025-11-{part}.parquet"));
        expected.iter().map(path).collect::<Vec<_>>()
    };
    assert_eq!(files(&into), [of_table("ticks"), of_table("trades")].concat());
    let mut sizes: Vec<_> = rows(&into, "trades").iter().map(|row| whole(row, "size")).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [10, 20, 30, 40, 50].map(Some));

    // The folder must be empty.
    let again = export(&journal, &into, &["--to", "parquet"]);
    assert!(!again.status.success() && said(&again).contains("is not empty"), "{}", said(&again));
    // Some tables, from a sequence on, as one kdb+ log a day.
    let into = folder.path().join("tplogs");
    let options = ["--to", "kdb-log", "--tables", "trades", "--from-sequence", "3", "--format", "json"];
    let output = export(&journal, &into, &options);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let expected = ["tables.q", "tapeline2025.11.21", "tapeline2025.11.22", "tapeline2025.11.22.1"];
    assert_eq!(files(&into), expected.map(PathBuf::from));
    assert_eq!(self::report(&output)["rows"], json!({ "trades": { "2025-11-21": 1, "2025-11-22": 2 } }));
}

/// A tail torn by a crash is reported; damage, or a record that is no tick, leaves no file that looks complete.
#[test]
fn all_of_a_journal_is_exported_or_the_command_fails() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    keep(&journal, &[(1, 0, 10), (2, 0, 20), (3, 0, 30)]);
    let file = journal.join("00000000000000000001.journal");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() - 5]).unwrap();
    let into = folder.path().join("torn");
    let output = export(&journal, &into, &["--to", "parquet", "--format", "json"]);
    assert!(output.status.success(), "{}", said(&output));
    let report = report(&output);
    assert_eq!(
        (&report["ticks"], &report["torn"]["segment"]),
        (&json!(2), &json!("00000000000000000001.journal"))
    );
    assert!(said(&output).contains("torn by a crash"), "{}", said(&output));

    let mut damaged = whole;
    damaged[100] ^= 1;
    std::fs::write(&file, damaged).unwrap();
    let into = folder.path().join("damaged");
    let output = export(&journal, &into, &["--to", "parquet"]);
    assert!(!output.status.success() && said(&output).contains("record 1"), "{}", said(&output));
    assert!(files(&into).is_empty(), "{:?}", files(&into));

    let (mut writer, _) =
        Writer::open(Directory::create(&folder.path().join("other")).unwrap(), Settings::default()).unwrap();
    assert!(writer.append(1, Nanos(1), &trade(1, BEFORE_MIDNIGHT, 1)).is_kept());
    assert!(writer.append(2, Nanos(2), b"something else").is_kept());
    assert!(writer.finish().is_kept());
    for format in ["parquet", "kdb-log"] {
        let into = folder.path().join(format);
        let output = export(&folder.path().join("other"), &into, &["--to", format]);
        assert!(!output.status.success() && said(&output).contains("record 2"), "{}", said(&output));
        let left: Vec<_> = files(&into).into_iter().filter(|file| file != Path::new("tables.q")).collect();
        assert!(left.is_empty(), "{format}: {left:?}");
    }
}

/// The content of a journal, counted without the export.
#[derive(Debug, Default, PartialEq)]
struct Counted {
    ticks: usize,
    trades: usize,
    shares: i64,
    /// Sum of price times shares, in units of 10^-9.
    notional: i128,
    quotes: usize,
}

fn count(journal: &Path) -> Counted {
    let mut counted = Counted::default();
    let mut reader = Reader::open(Directory::open(journal).unwrap()).unwrap();
    while let Next::Record(record) = reader.next().unwrap() {
        counted.ticks += 1;
        let tick = Tick::parse(record.body).unwrap();
        let message = MessageView::parse(tick.body).unwrap();
        if message.container() != DataType::FIELD_LIST {
            continue;
        }
        let list = FieldList::parse(message.payload()).unwrap();
        let real = |fid| list.find(fid).unwrap().and_then(|field| Real::decode(field.data).unwrap());
        if let (Kind::Update, Some(price)) = (tick.header.kind, real(fid::TRDPRC_1)) {
            let shares = real(fid::TRDVOL_1).unwrap().mantissa;
            counted.trades += 1;
            counted.shares += shares;
            // Four decimals, as in ITCH.
            assert_eq!(price.hint, Hint::TEN_THOUSANDTHS);
            counted.notional += i128::from(price.mantissa) * i128::from(shares) * 100_000;
        }
        let fids = [fid::BID, fid::ASK, fid::BIDSIZE, fid::ASKSIZE];
        // An image has all fields, including blank ones.
        let is_image = tick.header.kind == Kind::Refresh;
        let says = |fid| list.find(fid).unwrap().is_some_and(|field| !is_image || !field.is_blank());
        counted.quotes += usize::from(fids.into_iter().any(says));
    }
    counted
}

/// The journal of a plant that read a simulated day and publishes orders.
fn day(place: &Place) -> PathBuf {
    let journal = place.folder.path().join("journal");
    let file = place.folder.path().join("day.itch");
    let write =
        ["feed", "simulate", "--symbols", "3", "--messages", "5000", "--write", file.to_str().unwrap()];
    let output = tapeline(&write).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let config = place.folder.path().join("plant.toml");
    let text = format!(
        "[plant]\nring = \"{}\"\n[[feed]]\nname = \"file\"\nprotocol = \"itch50-moldudp64\"\ndate = \"2020-01-02\"\n\
         file = \"{}\"\npace = \"fast\"\nmarket_by_order = true\n[journal]\nfolder = \"{}\"\n",
        place.ring,
        file.display(),
        journal.display()
    );
    std::fs::write(&config, text).unwrap();
    let arguments =
        ["plant", "--config", config.to_str().unwrap(), "--until-end-of-session", "--format", "json"];
    let mut plant = Running::start(&arguments);
    plant.says();
    let report = plant.says();
    assert!(plant.child.wait().unwrap().success(), "{report}");
    journal
}

#[test]
fn a_plants_day_is_in_every_format_what_its_journal_has() {
    let place = Place::new(1);
    let journal = day(&place);
    let counted = count(&journal);
    assert!(counted.trades > 50 && counted.quotes > 500, "{counted:?}");
    let into = place.folder.path().join("parquet");
    let output = export(&journal, &into, &["--to", "parquet", "--format", "json"]);
    assert!(output.status.success(), "{}", said(&output));
    let of_report: BTreeMap<String, BTreeMap<String, u64>> =
        serde_json::from_value(report(&output)["rows"].clone()).unwrap();
    let reported: BTreeMap<_, u64> =
        of_report.into_iter().map(|(table, days)| (table, days.values().sum())).collect();
    let trades = rows(&into, "trades");
    let found = Counted {
        ticks: rows(&into, "ticks").len(),
        trades: trades.len(),
        shares: trades.iter().filter_map(|row| whole(row, "size")).sum(),
        notional: trades.iter().map(|row| price(row) * i128::from(whole(row, "size").unwrap())).sum(),
        quotes: rows(&into, "quotes").len(),
    };
    assert_eq!(found, counted);
    for (table, count) in &reported {
        assert_eq!(rows(&into, table).len() as u64, *count, "{table}");
    }
    assert!(reported["orders"] > 1_000 && reported["fields"] > 10, "{reported:?}");
    let sequences: Vec<_> = rows(&into, "ticks").iter().map(|row| whole(row, "sequence").unwrap()).collect();
    assert!(sequences.iter().copied().eq(1..=counted.ticks as i64));

    // The exported kdb+ log has the same rows.
    let into = place.folder.path().join("tplogs");
    let output = export(&journal, &into, &["--to", "kdb-log"]);
    assert!(output.status.success(), "{}", said(&output));
    let logs = files(&into).into_iter().filter(|file| file != Path::new("tables.q"));
    let logs: Vec<_> = logs.map(|log| into.join(log).to_str().unwrap().to_owned()).collect();
    let arguments = ["kdb", "inspect", "--format", "json"].into_iter().chain(logs.iter().map(String::as_str));
    let read = tapeline(&arguments.collect::<Vec<_>>()).output().unwrap();
    assert!(read.status.success(), "{}", said(&read));
    let read: Value = serde_json::from_slice(&read.stdout).unwrap();
    // One log, unless midnight passed meanwhile.
    let logs = read["files"].as_array().unwrap();
    for (table, count) in reported {
        let name = table.trim_end_matches('s');
        let found: u64 = logs.iter().filter_map(|log| log["tables"][name]["rows"].as_u64()).sum();
        assert_eq!(found, count, "{table}");
    }
}

/// A row's cells as text, without the numbers that a plant assigns.
fn cells(row: &Row) -> Vec<String> {
    let given = |name: &String| matches!(name.as_str(), "sequence" | "service");
    let cells = row.get_column_iter().filter(|(name, _)| !given(name));
    cells.map(|(name, cell)| format!("{name} {cell}")).collect()
}

/// The journal of a plant that read a capture.
fn captured(place: &Place, protocol: &str, file: &Path) -> PathBuf {
    let journal = place.folder.path().join("journal");
    let config = place.folder.path().join("plant.toml");
    let text = format!(
        "[plant]\nring = \"{}\"\n[[feed]]\nname = \"iex\"\nprotocol = \"{protocol}\"\nfile = \"{}\"\npace = \"fast\"\n\
         [journal]\nfolder = \"{}\"\n",
        place.ring,
        file.display(),
        journal.display()
    );
    std::fs::write(&config, text).unwrap();
    let arguments =
        ["plant", "--config", config.to_str().unwrap(), "--until-end-of-session", "--format", "json"];
    let mut plant = Running::start(&arguments);
    plant.says();
    let report = plant.says();
    assert!(plant.child.wait().unwrap().success(), "{report}");
    journal
}

fn text(row: &Row, column: &str) -> Option<String> {
    let (_, field) = row.get_column_iter().find(|(name, _)| *name == column).unwrap();
    match field {
        Field::Str(text) => Some(text.clone()),
        Field::Null => None,
        other => panic!("{column} is {other}"),
    }
}

/// Shares by item, of trades that were not broken.
fn repaired(trades: &[Row]) -> BTreeMap<String, i64> {
    let mut by_id = BTreeMap::new();
    for row in trades {
        let name = text(row, "name").unwrap();
        let key = (name, text(row, "trade_id").expect("every trade has a number"));
        match text(row, "action").as_deref() {
            Some("trade") => assert!(by_id.insert(key, whole(row, "size").unwrap()).is_none()),
            // Some were traded before the beginning of the capture.
            Some("break") => drop(by_id.remove(&key)),
            other => panic!("{other:?}"),
        }
    }
    let mut volumes = BTreeMap::new();
    for ((name, _), shares) in by_id {
        *volumes.entry(name).or_default() += shares;
    }
    volumes
}

/// Breaks name their trades, so that the sums are right; auctions are rows; files are of the event's day, and sorted.
#[test]
fn a_real_capture_has_its_breaks_and_auctions() {
    let Some(expected) = expected("iex-tops-20170710/expected.json") else { return };
    let Some(file) = shared("iex-tops-20170710/tops16-part1.pcap.gz") else { return };
    let place = Place::new(1);
    let journal = captured(&place, "iex-tops-1.6", &file);
    let into = place.folder.path().join("parquet");
    let options = ["--to", "parquet", "--tables", "trades,auctions", "--day", "event", "--sort"];
    let output = export(&journal, &into, &options);
    assert!(output.status.success(), "{}", said(&output));
    let days = ["auctions/date=2017-07-10/part-0.parquet", "trades/date=2017-07-10/part-0.parquet"];
    assert_eq!(files(&into), days.map(PathBuf::from));
    let trades = rows(&into, "trades");
    let of =
        |action: &str| trades.iter().filter(|row| text(row, "action").as_deref() == Some(action)).count();
    assert_eq!(
        (json!(of("trade")), json!(of("break"))),
        (expected["by_type"]["T"].clone(), expected["by_type"]["B"].clone())
    );
    let volumes = repaired(&trades);
    for (symbol, volume) in expected["volume_top10"].as_object().unwrap() {
        assert_eq!(json!(volumes[symbol]), *volume, "{symbol}");
    }
    let mut by_flags = BTreeMap::<String, u64>::new();
    for row in trades.iter().filter(|row| text(row, "action").as_deref() == Some("trade")) {
        *by_flags.entry(text(row, "conditions").unwrap_or_default()).or_default() += 1;
    }
    let known = expected["sale_condition_flags"].as_object().unwrap();
    for (flags, letters) in [("0", ""), ("24", "8X"), ("32", "I"), ("96", "TI"), ("128", "F"), ("224", "FTI")]
    {
        assert_eq!(json!(by_flags[letters]), known[flags], "{letters}");
    }
    let event = |row: &Row| {
        let (_, field) = row.get_column_iter().find(|(name, _)| *name == "event_time").unwrap();
        field.to_string()
    };
    let keys = trades.iter().map(|row| (text(row, "name").unwrap(), event(row)));
    assert!(keys.is_sorted());
    let auctions = rows(&into, "auctions");
    let mut by_symbol = BTreeMap::<String, u64>::new();
    for row in &auctions {
        *by_symbol.entry(text(row, "name").unwrap()).or_default() += 1;
        assert!(whole(row, "paired").is_some() && text(row, "kind").is_some(), "{row}");
    }
    assert_eq!(json!(by_symbol), expected["auction_messages"]);

    // Exported as a log and imported, the rows are the same.
    let at = |name: &str| place.folder.path().join(name);
    let output = export(&journal, &at("logs"), &["--to", "kdb-log", "--tables", "trades,auctions"]);
    assert!(output.status.success(), "{}", said(&output));
    let output = export(&journal, &at("plain"), &["--to", "parquet", "--tables", "trades,auctions"]);
    assert!(output.status.success(), "{}", said(&output));
    let found = files(&at("logs")).into_iter().filter(|file| file != Path::new("tables.q"));
    let found: Vec<_> = found.map(|log| at("logs").join(log).to_str().unwrap().to_owned()).collect();
    let again = at("again");
    let fixed = ["journal", "import", "--format", "json", "--into", again.to_str().unwrap()];
    let arguments: Vec<_> = fixed.into_iter().chain(found.iter().map(String::as_str)).collect();
    let output = tapeline(&arguments).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let output = export(&again, &at("came-back"), &["--to", "parquet", "--tables", "trades,auctions"]);
    assert!(output.status.success(), "{}", said(&output));
    for table in ["trades", "auctions"] {
        let (before, after) = (rows(&at("plain"), table), rows(&at("came-back"), table));
        assert_eq!(after.len(), before.len(), "{table}");
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(cells(after), cells(before), "{table}");
        }
    }
}

/// DEEP names broken trades too, and its trading day is the day of the files.
#[test]
fn breaks_of_deep_are_rows() {
    let Some(expected) = expected("iex-deep-20170425/expected.json") else { return };
    let Some(file) = shared("iex-deep-20170425/DEEP10.pcap.gz") else { return };
    let place = Place::new(2);
    let journal = captured(&place, "iex-deep-1.0", &file);
    let into = place.folder.path().join("parquet");
    let output = export(&journal, &into, &["--to", "parquet", "--tables", "trades", "--day", "event"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(files(&into), [PathBuf::from("trades/date=2017-04-25/part-0.parquet")]);
    let trades = rows(&into, "trades");
    let breaks = trades.iter().filter(|row| text(row, "action").as_deref() == Some("break"));
    assert_eq!(json!(breaks.count()), expected["trade_breaks"]);
}

/// A tick belongs to the day of its event, not of its publication; without an event time, to the day of publication.
#[test]
fn days_may_be_those_of_the_events() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let day = 86_400_000_000_000;
    let (mut writer, _) = Writer::open(Directory::create(&journal).unwrap(), Settings::default()).unwrap();
    // The event is 0 to 9 days before the publication, in turn.
    for seq in 1..=40_u64 {
        let mut frame = trade(seq, BEFORE_MIDNIGHT, seq as i64);
        let event = if seq == 40 { 0 } else { BEFORE_MIDNIGHT - day * (seq % 10) };
        let at = frame.windows(8).position(|bytes| bytes == BEFORE_MIDNIGHT.to_le_bytes()).unwrap();
        frame[at..at + 8].copy_from_slice(&event.to_le_bytes());
        assert_eq!(Tick::parse(&frame).unwrap().header.event, Nanos(event));
        assert!(writer.append(seq, Nanos(BEFORE_MIDNIGHT), &frame).is_kept());
    }
    assert!(writer.finish().is_kept());
    let into = folder.path().join("parquet");
    let output = export(
        &journal,
        &into,
        &["--to", "parquet", "--tables", "trades", "--day", "event", "--format", "json"],
    );
    assert!(output.status.success(), "{}", said(&output));
    let days = report(&output)["rows"]["trades"].as_object().unwrap().clone();
    assert_eq!(days.len(), 10, "{days:?}");
    assert!(days.values().all(|rows| *rows == json!(4)), "{days:?}");
    assert_eq!(rows(&into, "trades").len(), 40);
    // More days than can be open at once: each day gets several files.
    assert_eq!(files(&into).len(), 40);
    // The memory for sorting has a limit, and a log keeps its order.
    let limited = ["--to", "parquet", "--sort", "--sort-limit", "1KiB"];
    let large = folder.path().join("large");
    let trades: Vec<_> = (1..=300).map(|seq| (seq, 0, 1)).collect();
    keep(&large, &trades);
    let output = export(&large, &folder.path().join("limited"), &limited);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        said(&output).contains("take more than 1024 bytes") && said(&output).contains("--sort-limit"),
        "{}",
        said(&output)
    );
    assert!(files(&folder.path().join("limited")).is_empty());
    let output = export(&large, &folder.path().join("log"), &["--to", "kdb-log", "--sort"]);
    assert!(!output.status.success() && said(&output).contains("--sort is for Parquet"), "{}", said(&output));
}

/// An exported kdb+ log is imported with the same trades and quotes, for each encoding of sizes.
#[test]
fn an_exported_log_is_imported_as_what_it_is() {
    let place = Place::new(1);
    let journal = day(&place);
    let at = |name: &str| place.folder.path().join(name);
    let output = export(&journal, &at("parquet"), &["--to", "parquet"]);
    assert!(output.status.success(), "{}", said(&output));
    for numbers in ["exact", "double"] {
        let (logs, again, into) =
            (at(&format!("logs-{numbers}")), at(&format!("again-{numbers}")), at(&format!("into-{numbers}")));
        let output = export(&journal, &logs, &["--to", "kdb-log", "--numbers", numbers]);
        assert!(output.status.success(), "{}", said(&output));
        let found = files(&logs).into_iter().filter(|file| file != Path::new("tables.q"));
        let found: Vec<_> = found.map(|log| logs.join(log).to_str().unwrap().to_owned()).collect();
        let fixed = ["journal", "import", "--format", "json", "--into", again.to_str().unwrap()];
        let arguments: Vec<_> = fixed.into_iter().chain(found.iter().map(String::as_str)).collect();
        let output = tapeline(&arguments).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let imported = report(&output);
        let output = export(&again, &into, &["--to", "parquet"]);
        assert!(output.status.success(), "{}", said(&output));
        for table in ["trades", "quotes"] {
            let (before, after) = (rows(&at("parquet"), table), rows(&into, table));
            assert!(!before.is_empty());
            assert_eq!(imported["rows"][table.trim_end_matches('s')], json!(before.len()));
            assert_eq!(after.len(), before.len(), "{table}");
            for (before, after) in before.iter().zip(&after) {
                assert_eq!(cells(after), cells(before), "{table}");
            }
        }
    }
}

/// Rows that kdb+ clients publish, over two runs of a plant, are all exported, including the first row of an item.
#[test]
fn rows_of_kdb_clients_are_trades_from_the_first_one_on() {
    let place = Place::new(0);
    let config = place.folder.path().join("plant.toml");
    let text = format!(
        "[plant]\nring = \"{}\"\n[journal]\nfolder = \"journal\"\n[kdb]\nport = 0\nlog_folder = \"logs\"\n\
         timezone = \"{}\"\n[[kdb.table]]\nname = \"trade\"\ncolumns = [\"time timespan\", \"sym symbol\", \
         \"price float TRDPRC_1\", \"size long TRDVOL_1\"]\n",
        place.ring,
        zone()
    );
    std::fs::write(&config, text).unwrap();
    for first in [1_i64, 5] {
        let mut plant = Running::start(&["plant", "--config", config.to_str().unwrap(), "--format", "json"]);
        let ready = plant.says();
        let mut feed = Client::tcp(ready["kdb"]["address"].as_str().unwrap());
        feed.say(MessageKind::Sync, |out| {
            out.list(3)?;
            out.symbol(b".u.upd")?;
            out.symbol(b"trade")?;
            out.list(3)?;
            out.symbols([b"A".as_slice(), b"B", b"A", b"B"])?;
            out.column(Type::FLOAT, [1.5, 2.5, 3.5, 4.5])?;
            out.column(Type::LONG, [first, first + 1, first + 2, first + 3])
        });
        assert_eq!(feed.next(), KdbValue::null());
        plant.ask_to_end();
        plant.says();
        assert!(plant.child.wait().unwrap().success());
    }
    let into = place.folder.path().join("parquet");
    let options = ["--to", "parquet", "--format", "json"];
    let output = export(&place.folder.path().join("journal"), &into, &options);
    assert!(output.status.success(), "{}", said(&output));
    let mut sizes: Vec<_> = rows(&into, "trades").iter().map(|row| whole(row, "size")).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 2, 3, 4, 5, 6, 7, 8].map(Some));
    assert!(report(&output)["rows"]["quotes"].is_null(), "none of them has a bid or an ask");
}

/// Independent readers: DuckDB and Polars. `make interop` installs them and sets `INTEROP`; without it, this test is
/// skipped.
#[test]
fn tables_in_python() {
    let Some(interop) = std::env::var_os("INTEROP") else {
        println!("skipped: INTEROP names no folder with duckdb and polars; `make interop` makes one");
        return;
    };
    let place = Place::new(1);
    let journal = day(&place);
    let counted = count(&journal);
    let into = place.folder.path().join("parquet");
    let output = export(&journal, &into, &["--to", "parquet", "--format", "json"]);
    assert!(output.status.success(), "{}", said(&output));
    let exported = report(&output);
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/interop/python/exported_tables.py");
    let read = std::process::Command::new(Path::new(&interop).join("python/bin/python"))
        .args([&program, &into])
        .output()
        .unwrap();
    assert!(read.status.success(), "{}", said(&read));
    let found: Value = serde_json::from_slice(&read.stdout).unwrap();
    println!("{found}");
    assert_eq!(found["duckdb"], found["polars"]);
    let found = &found["duckdb"];
    for (table, days) in exported["rows"].as_object().unwrap() {
        let rows: u64 = days.as_object().unwrap().values().filter_map(Value::as_u64).sum();
        assert_eq!(found["rows"][table], rows, "{table}");
    }
    assert_eq!(
        (&found["rows"]["ticks"], &found["rows"]["trades"]),
        (&json!(counted.ticks), &json!(counted.trades))
    );
    assert_eq!((&found["size"], &found["last"][0]), (&json!(counted.shares), &exported["last"]));
    let whole = 1_000_000_000;
    let notional = format!("{}.{:09}", counted.notional / whole, counted.notional % whole);
    assert_eq!(found["notional"], notional);
}
