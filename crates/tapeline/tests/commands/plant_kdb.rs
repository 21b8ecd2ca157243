//! A plant's ticks as rows of a tickerplant's tables, as an RDB gets them, and rows from kdb+ clients as ticks.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use kdb_client::{Client, logged, zone};
use serde_json::{Value as Json, json};
use shared_data::{expected, shared};
use stage::{Place, Running, tapeline};
use tapeline_kdb::{Atom, Log, MessageKind, Order, Type, Value};
use tapeline_omm::rwf::MessageView;
use tapeline_omm::{FieldList, fid};
use tapeline_plant::tick::{Kind, Tick};
use tapeline_ring::{Name, Poll, Start, Subscriber};

use crate::kdb_client;
use crate::shared_data;
use crate::stage;

const TABLES: &str = "[kdb]\nport = 0\nlog_folder = \"logs\"\n\
    [[kdb.table]]\nname = \"trade\"\nrows = \"trades\"\n\
    columns = [\"time timespan\", \"sym symbol\", \"price float TRDPRC_1\", \"size long TRDVOL_1\", \
    \"volume long ACVOL_1\", \"at timestamp event\", \"seq long seq\"]\n\
    [[kdb.table]]\nname = \"quote\"\nrows = \"quotes\"\n\
    columns = [\"time timespan\", \"sym symbol\", \"bid float BID\", \"ask float ASK\", \"bsize long BIDSIZE\", \
    \"asize long ASKSIZE\"]\n";

pub(crate) type Cell = Atom<Box<[u8]>>;
/// Rows of cells, by table.
pub(crate) type Rows = BTreeMap<String, Vec<Vec<Cell>>>;

/// Adds the rows of an update, in any shape.
pub(crate) fn add(rows: &mut Rows, update: &Value) {
    let Value::List(parts) = update else { panic!("{update:?}") };
    let [_, Value::Atom(Atom::Symbol(table)), what] = &parts[..] else { panic!("{update:?}") };
    let columns = match what {
        Value::Table { columns, .. } | Value::List(columns) => columns,
        other => panic!("{other:?}"),
    };
    let column = |column: &Value| match column {
        Value::Vector { items, .. } => items.clone(),
        Value::Atom(cell) => vec![cell.clone()],
        // Strings: only their number matters here.
        Value::List(cells) => vec![Atom::Char(b' '); cells.len()],
        other => panic!("{other:?}"),
    };
    let columns: Vec<_> = columns.iter().map(column).collect();
    let of = rows.entry(String::from_utf8(table.to_vec()).unwrap()).or_default();
    of.extend((0..columns[0].len()).map(|row| columns.iter().map(|cells| cells[row].clone()).collect()));
}

/// Compares as text: nulls must match, but are not equal to each other.
fn assert_same(some: &Rows, others: &Rows) {
    for (table, rows) in some {
        assert_eq!(format!("{rows:?}"), format!("{:?}", others[table]), "{table}");
    }
    assert_eq!(some.len(), others.len());
}

fn count(rows: &Rows, table: &str) -> usize {
    rows.get(table).map_or(0, Vec::len)
}

pub(crate) fn float(cell: &Cell) -> f64 {
    let Atom::Float(number) = cell else { panic!("{cell:?}") };
    *number
}

fn long(cell: &Cell) -> i64 {
    let Atom::Long(number) = cell else { panic!("{cell:?}") };
    *number
}

/// All rows of a log, as `-11!` replays them.
fn replayed(path: &str) -> Rows {
    let bytes = std::fs::read(path).unwrap();
    let mut log = Log::parse(&bytes, Order::Little).unwrap();
    let mut rows = Rows::new();
    log.by_ref().for_each(|entry| add(&mut rows, &entry.value.to_value()));
    assert_eq!(log.torn(), None);
    rows
}

/// Counts of a ring reader's ticks: those with a trade, those with a quote; and each item's fields.
#[derive(Default)]
struct Watched {
    trades: usize,
    quotes: usize,
    fields: BTreeMap<String, serde_json::Map<String, Json>>,
}

impl Watched {
    fn of(mut watch: Running) -> Self {
        let mut all = Self::default();
        while let Some(said) = watch.may_say() {
            let (Some(item), Some(fields)) = (said["item"].as_str(), said["fields"].as_object()) else {
                continue;
            };
            let is_image = said["kind"] == "refresh";
            let says = |name: &str| fields.get(name).is_some_and(|value| !is_image || !value.is_null());
            all.trades += usize::from(!is_image && says("TRDPRC_1"));
            all.quotes += usize::from(["BID", "ASK", "BIDSIZE", "ASKSIZE"].iter().any(|name| says(name)));
            all.fields.entry(item.to_owned()).or_default().extend(fields.clone());
        }
        all
    }
}

/// Sends a file of ITCH to a plant with a tickerplant. Returns the rows of an RDB, the rows of its log, the ticks of
/// a ring reader, and the tally of this symbol.
fn through(file: &Path, symbol: &str, keys: &str) -> (Rows, Rows, Watched, Json) {
    let place = Place::new(1);
    let config = place.config("");
    let mut text = std::fs::read_to_string(&config).unwrap();
    text.push_str(&TABLES.replace("port = 0", &format!("port = 0\ntimezone = \"{}\"\n{keys}", zone())));
    std::fs::write(&config, text).unwrap();
    let mut plant = Running::start(&["plant", "--config", &config, "--format", "json"]);
    let ready = plant.says();
    let mut rdb = Client::tcp(ready["kdb"]["address"].as_str().unwrap());
    let log = ready["kdb"]["log"].as_str().unwrap().to_owned();
    let Value::List(answer) = rdb.ask("(.u.sub[`;`];.u `i`L)") else { panic!() };
    assert_eq!(answer[1], Value::List(vec![Value::Atom(Atom::Long(0)), Value::symbol(&format!(":{log}"))]));
    let mut tally = place.tally(symbol);
    let fixed = ["plant", "watch", "--ring", &place.ring, "--from", "oldest", "--until-end-of-session"];
    let watch = Running::start(&[&fixed[..], &["--format", "json"]].concat());
    place.replay(file, 0);
    let watched = Watched::of(watch);
    let tally = tally.says();
    let mut rows = Rows::new();
    while count(&rows, "trade") < watched.trades || count(&rows, "quote") < watched.quotes {
        add(&mut rows, &rdb.next());
    }
    // Everything that was sent is in the log.
    let messages = logged(&log) as i64;
    assert_eq!(rdb.ask(".u.i"), Value::Atom(Atom::Long(messages)), "nothing came behind them");
    // No client publishes.
    plant.ask_to_end();
    let report = plant.says();
    assert!(plant.child.wait().unwrap().success());
    assert_eq!(report["kdb"]["ticks"], report["ticks"]);
    assert_eq!(report["kdb"]["rows"], json!(watched.trades + watched.quotes));
    let inspected = tapeline(&["kdb", "inspect", &log, "--format", "json"]).output().unwrap();
    assert!(inspected.status.success());
    let inspected: Json = serde_json::from_slice(&inspected.stdout).unwrap();
    assert_eq!(inspected["files"][0]["rows"], report["kdb"]["rows"]);
    let replayed = replayed(&log);
    (rows, replayed, watched, tally)
}

/// Totals of a symbol's trades in ITCH units: number, shares, and sum of price times shares.
fn volume(rows: &Rows, symbol: &str) -> (usize, i64, i64) {
    let mut sum = (0, 0, 0);
    let symbol = Cell::Symbol(symbol.as_bytes().into());
    for row in rows["trade"].iter().filter(|row| row[1] == symbol) {
        let (price, size) = ((float(&row[2]) * 10_000.0).round() as i64, long(&row[3]));
        sum = (sum.0 + 1, sum.1 + size, sum.2 + price * size);
        assert_eq!(long(&row[4]), sum.1, "the volume of the day is that of all rows so far");
    }
    sum
}

fn volume_of(figures: &Json) -> (usize, i64, i64) {
    let number = |key: &str| figures[key].as_i64().unwrap();
    (number("trades") as usize, number("traded_shares"), number("notional_price4"))
}

/// Checks that the last quote of each symbol equals its final fields.
fn assert_last_quotes(rows: &Rows, watched: &Watched) {
    let mut last = BTreeMap::new();
    for row in &rows["quote"] {
        let Atom::Symbol(symbol) = &row[1] else { panic!("{row:?}") };
        last.insert(String::from_utf8(symbol.to_vec()).unwrap(), row);
    }
    assert!(!last.is_empty());
    for (symbol, row) in last {
        let fields = &watched.fields[&symbol];
        for (at, name) in [(2, "BID"), (3, "ASK")] {
            let expected = fields.get(name).and_then(number);
            let found = Some(float(&row[at])).filter(|price| !price.is_nan());
            assert_eq!(found, expected, "{symbol} {name}");
        }
        for (at, name) in [(4, "BIDSIZE"), (5, "ASKSIZE")] {
            let expected = fields.get(name).and_then(number);
            let found = Some(long(&row[at])).filter(|size| *size != i64::MIN);
            assert_eq!(found.map(|size| size as f64), expected, "{symbol} {name}");
        }
    }
}

/// The number in a field, which is text if it has decimals.
fn number(value: &Json) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

#[test]
fn trades_and_quotes_of_a_feed_are_rows_and_the_log_has_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("day.itch");
    let write = ["feed", "simulate", "--symbols", "3", "--messages", "6k", "--write", file.to_str().unwrap()];
    assert!(tapeline(&write).output().unwrap().status.success());
    for keys in ["", "publish_every = \"5ms\"\n"] {
        let (rows, replayed, watched, tally) = through(&file, "AAPL", keys);
        assert_same(&rows, &replayed);
        let all = tally["volume"].as_object().unwrap();
        assert!(!all.is_empty());
        for (symbol, figures) in all.iter().filter(|(_, figures)| figures["trades"] != 0) {
            assert_eq!(volume(&rows, symbol), volume_of(figures), "{symbol}");
        }
        assert_last_quotes(&rows, &watched);
        let seqs: Vec<_> = rows["trade"].iter().map(|row| long(&row[6])).collect();
        assert!(seqs.is_sorted_by(|one, next| one < next));
    }
}

#[test]
fn a_capture_of_a_real_day_has_the_trades_that_others_found_in_it() {
    let Some(file) = shared("itch50-aapl-20200130/aapl-first5000.itch") else { return };
    let Some(expected) = expected("itch50-aapl-20200130/expected.json") else { return };
    let (rows, replayed, watched, _) = through(&file, "AAPL", "");
    assert_eq!(volume(&rows, "AAPL"), volume_of(&expected["volume"]["AAPL"]));
    assert_same(&rows, &replayed);
    assert_last_quotes(&rows, &watched);
    // ITCH has ns since midnight in New York on 30 January 2020, 05:00 GMT; `event` is in the tickerplant's time zone.
    let [.., last] = &rows["trade"][..] else { panic!() };
    let Atom::Timestamp(at) = last[5] else { panic!("{last:?}") };
    let ns = expected["volume"]["AAPL"]["last_trade_price_qty_ts_match"][2].as_i64().unwrap();
    let hour = 3_600_000_000_000;
    assert_eq!(at.rem_euclid(hour), ns % hour);
}

fn symbol(cell: &Cell) -> String {
    let Atom::Symbol(text) = cell else { panic!("{cell:?}") };
    String::from_utf8(text.to_vec()).unwrap()
}

/// With an action column, broken trades are rows with the number of their trade; a table of auction fields has their
/// states.
#[test]
fn breaks_are_rows_where_a_column_says_so() {
    let Some(file) = shared("iex-tops-20170710/tops16-part1.pcap.gz") else { return };
    let Some(expected) = expected("iex-tops-20170710/expected.json") else { return };
    let place = Place::new(0);
    let config = place.folder.path().join("plant.toml");
    let table = |name: &str, rows: &str, columns: &str| {
        format!(
            "[[kdb.table]]\nname = \"{name}\"\nrows = \"{rows}\"\ncolumns = [\"time timespan\", \"sym symbol\", {columns}]\n"
        )
    };
    let price = "\"id symbol TRADE_ID\", \"price float TRDPRC_1\", \"size long TRDVOL_1\"";
    let text = format!(
        "[plant]\nring = \"{}\"\n[[feed]]\nname = \"iex\"\nprotocol = \"iex-tops-1.6\"\nfile = \"{}\"\npace = \"fast\"\n\
         [kdb]\nport = 0\nlog_folder = \"logs\"\ntimezone = \"{}\"\n{}{}{}",
        place.ring,
        file.display(),
        zone(),
        table(
            "trade",
            "trades",
            &format!("{price}, \"action symbol action\", \"cond symbol COND_N\", \"volume long ACVOL_1\"")
        ),
        table("plain", "trades", price),
        table("auction", "changes", "\"kind symbol INDAUCTYPE\", \"paired long IMB_PR_SH\"")
    );
    std::fs::write(&config, text).unwrap();
    let arguments =
        ["plant", "--config", config.to_str().unwrap(), "--until-end-of-session", "--format", "json"];
    let mut plant = Running::start(&arguments);
    let log = plant.says()["kdb"]["log"].as_str().unwrap().to_owned();
    plant.says();
    assert!(plant.child.wait().unwrap().success());
    let rows = replayed(&log);
    let known = &expected["by_type"];
    assert_eq!(json!(count(&rows, "plain")), known["T"]);
    assert_eq!(json!(count(&rows, "auction")), known["A"]);
    let (breaks, trades): (Vec<_>, Vec<_>) = rows["trade"].iter().partition(|row| symbol(&row[5]) == "break");
    assert_eq!((json!(breaks.len()), json!(trades.len())), (known["B"].clone(), known["T"].clone()));
    // Trades less breaks add up to the known volumes, and each row has the running sum.
    let mut volumes = BTreeMap::<String, i64>::new();
    for row in &rows["trade"] {
        let volume = volumes.entry(symbol(&row[1])).or_default();
        if symbol(&row[5]) == "break" {
            let same = |trade: &&&Vec<Cell>| {
                symbol(&trade[1]) == symbol(&row[1]) && symbol(&trade[2]) == symbol(&row[2])
            };
            let broken = trades.iter().find(same).expect("the trade of its number");
            assert_eq!((float(&broken[3]), long(&broken[4])), (float(&row[3]), long(&row[4])));
            assert_eq!(symbol(&row[6]), "", "a condition is the last trade's");
            *volume -= long(&row[4]);
        } else {
            *volume += long(&row[4]);
        }
        assert_eq!(long(&row[7]), *volume);
    }
    for (symbol, volume) in expected["volume_top10"].as_object().unwrap() {
        assert_eq!(json!(volumes[symbol]), *volume, "{symbol}");
    }
}

/// A plant without feeds for rows of kdb+ clients, with these keys of `[plant]` and more tables.
fn plant_of_rows(keys: &str, more: &str) -> (Place, Running, Json) {
    let place = Place::new(0);
    let text = format!(
        "[plant]\nring = \"{}\"\n{keys}\n[kdb]\nport = 0\nlog_folder = \"logs\"\ntimezone = \"{}\"\n\
         [[kdb.table]]\nname = \"trade\"\ncolumns = [\"time timespan\", \"sym symbol\", \"price float TRDPRC_1\", \
         \"size long TRDVOL_1\", \"note list\"]\n{more}",
        place.ring,
        zone()
    );
    let config = place.folder.path().join("plant.toml");
    std::fs::write(&config, text).unwrap();
    let mut plant = Running::start(&["plant", "--config", config.to_str().unwrap(), "--format", "json"]);
    let ready = plant.says();
    (place, plant, ready)
}

/// Publishes rows with these numbers as sizes, in one update.
fn publish(client: &mut Client, numbers: std::ops::Range<i64>, note: &str) {
    say(client, MessageKind::Async, numbers, note);
}

/// Publishes rows in one update, and returns the answer.
fn ask_to_publish(client: &mut Client, numbers: std::ops::Range<i64>, note: &str) -> Value {
    say(client, MessageKind::Sync, numbers, note);
    client.next()
}

fn say(client: &mut Client, kind: MessageKind, numbers: std::ops::Range<i64>, note: &str) {
    client.say(kind, |out| {
        out.list(3)?;
        out.symbol(b".u.upd")?;
        out.symbol(b"trade")?;
        out.list(4)?;
        let names: Vec<_> = numbers.clone().map(|number| format!("S{}", number % 7)).collect();
        out.symbols(names.iter().map(String::as_bytes))?;
        let sizes: Vec<_> = numbers.collect();
        out.column(Type::FLOAT, sizes.iter().copied().map(price))?;
        out.column(Type::LONG, sizes)?;
        out.list(names.len())?;
        names.iter().try_for_each(|_| out.string(note.as_bytes()))
    });
}

/// A price with decimals.
fn price(number: i64) -> f64 {
    (number * 100 + 1) as f64 / 100.0
}

/// The sizes of an update's rows; checks that the other cells match them.
fn sizes(update: &Value) -> Vec<i64> {
    let Value::List(parts) = update else { panic!("{update:?}") };
    let [_, _, Value::Table { columns, .. }] = &parts[..] else { panic!("{update:?}") };
    let items = |at: usize| match &columns[at] {
        Value::Vector { items, .. } => items,
        other => panic!("{other:?}"),
    };
    let rows = items(1).iter().zip(items(2)).zip(items(3));
    rows.map(|((symbol, found), size)| {
        let size = long(size);
        assert_eq!(*symbol, Cell::Symbol(format!("S{}", size % 7).into_bytes().into()));
        assert_eq!(float(found), price(size));
        size
    })
    .collect()
}

#[test]
fn rows_of_publishers_become_ticks_and_leave_as_the_updates_that_they_were() {
    let journal = "[journal]\nfolder = \"journal\"\ndurability = \"synced\"\n";
    let (place, mut plant, ready) = plant_of_rows("", &format!("[hub]\nport = 0\n{journal}"));
    let address = ready["kdb"]["address"].as_str().unwrap();
    let mut ring = Subscriber::join(&Name::new(&place.ring).unwrap(), Start::Oldest).unwrap();
    let (mut rdb, mut feed) = (Client::tcp(address), Client::tcp(address));
    rdb.ask(".u.sub[`trade;`]");
    let (updates, rows) = (100, 100);
    let all = |update: i64| update * rows..(update + 1) * rows;
    (0..updates).for_each(|update| publish(&mut feed, all(update), "x"));
    // The answer comes after everything sent before.
    assert_eq!(feed.ask(".u.i"), Value::Atom(Atom::Long(updates)));
    for update in 0..updates {
        assert_eq!(sizes(&rdb.next()), all(update).collect::<Vec<_>>());
    }
    let log = ready["kdb"]["log"].as_str().unwrap();
    assert_eq!(logged(log) as i64, updates);
    let replayed = replayed(log);
    assert_eq!(count(&replayed, "trade") as i64, updates * rows);
    // A row with the wrong number of columns is refused, and reaches no subscriber.
    feed.say(MessageKind::Sync, |out| {
        out.list(3)?;
        out.symbol(b".u.upd")?;
        out.symbol(b"trade")?;
        out.list(2)?;
        out.symbol(b"S1")?;
        out.atom(&Atom::<&[u8]>::Float(1.0))
    });
    assert!(matches!(feed.next(), Value::Error(_)));
    // An acknowledged row is in the log.
    feed.say(MessageKind::Sync, |out| {
        out.list(3)?;
        out.symbol(b".u.upd")?;
        out.symbol(b"trade")?;
        out.list(4)?;
        out.symbol(b"S0")?;
        out.atom(&Atom::<&[u8]>::Float(price(0)))?;
        out.atom(&Atom::<&[u8]>::Long(0))?;
        out.string(b"acknowledged")
    });
    assert_eq!(feed.next(), Value::null());
    assert_eq!(logged(log) as i64, updates + 1);
    assert_eq!(sizes(&rdb.next()), [0]);
    // On the ring each row is a tick, and an item's first row is an image.
    let (mut seen, mut seq, mut items) = (0, None, BTreeSet::new());
    while seen < updates * rows {
        let Poll::Frame(frame) = ring.next() else { panic!("they are there by now") };
        let tick = Tick::parse(frame.bytes()).unwrap();
        assert!(seq.is_none_or(|seq| tick.header.seq.0 == seq + 1));
        seq = Some(tick.header.seq.0);
        if tick.header.kind == Kind::Status {
            continue;
        }
        assert_eq!(tick.name, format!("S{}", seen % 7));
        assert_eq!(tick.header.feed_seq as i64, seen / rows + 1, "the number of its update");
        assert_eq!(tick.header.kind == Kind::Refresh, items.insert(tick.name.to_owned()));
        let message = MessageView::parse(tick.body).unwrap();
        let fields = FieldList::parse(message.payload()).unwrap();
        let field = |fid| fields.find(fid).unwrap().unwrap().real().unwrap().unwrap().to_f64();
        assert_eq!((field(fid::TRDPRC_1), field(fid::TRDVOL_1)), (price(seen), seen as f64));
        seen += 1;
    }
    drop(ring);
    plant.ask_to_end();
    let report = plant.says();
    assert!(plant.child.wait().unwrap().success());
    let published = &report["kdb"]["published"];
    let expected = (&json!(updates + 1), &json!(updates * rows + 1));
    assert_eq!((&published["updates"], &published["rows"]), expected);
    assert_eq!((&report["kdb"]["unusable"], &report["kdb"]["refused"]), (&json!(0), &json!(1)));
    assert_eq!(report["ticks"], json!(updates * rows + 2));
    let journal = place.folder.path().join("journal");
    let verify = ["journal", "verify", journal.to_str().unwrap(), "--format", "json"];
    let verified: Json = serde_json::from_slice(&tapeline(&verify).output().unwrap().stdout).unwrap();
    assert_eq!((&verified["ticks"], &verified["missing"]), (&report["ticks"], &json!(0)));
}

#[test]
fn an_update_that_is_larger_than_the_ring_is_answered_when_all_of_it_is_in_the_log() {
    let (_place, plant, ready) = plant_of_rows("ring_size = \"64KiB\"", "");
    let (log, address) = (ready["kdb"]["log"].as_str().unwrap(), ready["kdb"]["address"].as_str().unwrap());
    let (mut rdb, mut feed, mut other) = (Client::tcp(address), Client::tcp(address), Client::tcp(address));
    rdb.ask(".u.sub[`trade;`]");
    // Half of the ring has capacity for a few hundred rows.
    let (updates, rows) = (10, 5_000);
    for update in 0..updates {
        let all = update * rows..(update + 1) * rows;
        assert_eq!(ask_to_publish(&mut feed, all.clone(), "xyz"), Value::null());
        let replayed = replayed(log);
        assert_eq!(count(&replayed, "trade") as i64, all.end);
        // It counts as one update at any time.
        assert_eq!(other.ask(".u.i"), Value::Atom(Atom::Long(update + 1)));
        assert_eq!(sizes(&rdb.next()), all.collect::<Vec<_>>());
    }
    end(plant);
}

#[test]
fn a_row_that_is_longer_than_the_ring_takes_is_refused_with_its_update() {
    let (_place, plant, ready) = plant_of_rows("ring_size = \"64KiB\"", "");
    let address = ready["kdb"]["address"].as_str().unwrap();
    let (mut rdb, mut feed) = (Client::tcp(address), Client::tcp(address));
    rdb.ask(".u.sub[`trade;`]");
    // A tick may take a quarter of the ring at most.
    let refused =
        Value::Error("limit: a row is longer than the plant's ring takes (ring_size)".as_bytes().into());
    for note in [16_400, 30_000, 60_000] {
        assert_eq!(ask_to_publish(&mut feed, 0..3, &"x".repeat(note)), refused, "{note}");
    }
    // A client that requests no answer gets none; later updates arrive.
    publish(&mut feed, 3..5, &"x".repeat(30_000));
    assert_eq!(ask_to_publish(&mut feed, 5..6, &"x".repeat(16_000)), Value::null());
    publish(&mut feed, 6..9, "");
    assert_eq!(sizes(&rdb.next()), [5]);
    assert_eq!(sizes(&rdb.next()), [6, 7, 8]);
    assert_eq!(feed.ask(".u.i"), Value::Atom(Atom::Long(2)));
    let report = end(plant);
    let published = &report["kdb"]["published"];
    assert_eq!((&published["updates"], &report["kdb"]["refused"]), (&json!(2), &json!(4)));
}

#[test]
fn a_feed_with_many_symbols_leaves_places_for_the_items_of_publishers() {
    let place = Place::new(1);
    let text = format!(
        "[plant]\nring = \"{}\"\nmax_items = 4\n[kdb]\nport = 0\nkdb_log = false\n[[kdb.table]]\nname = \"trade\"\n\
         columns = [\"time timespan\", \"sym symbol\", \"price float TRDPRC_1\", \"size long TRDVOL_1\", \"note list\"]\n\
         [[feed]]\nname = \"test\"\nprotocol = \"nasdaq-itch-5.0\"\ndate = \"2020-01-30\"\nstart = \"from-one\"\nstale_after = \"0s\"\n\
         [[feed.line]]\naddress = \"{}\"\ninterface = \"127.0.0.1\"\n",
        place.ring, place.lines[0]
    );
    let config = place.folder.path().join("plant.toml");
    std::fs::write(&config, text).unwrap();
    let mut plant = Running::start(&["plant", "--config", config.to_str().unwrap(), "--format", "json"]);
    let ready = plant.says();
    let day = place.folder.path().join("day.itch");
    let write =
        ["feed", "simulate", "--symbols", "10", "--messages", "3000", "--write", day.to_str().unwrap()];
    assert!(tapeline(&write).output().unwrap().status.success());
    place.replay(&day, 0);
    let stat = ["stat", &place.ring, "--format", "json"];
    let messages = || {
        let said = tapeline(&stat).output().unwrap().stdout;
        serde_json::from_slice::<Json>(&said).ok().and_then(|said| said["feeds"][0]["messages"].as_u64())
    };
    while messages() != Some(3_000) {
        std::thread::yield_now();
    }
    let mut publisher = Client::tcp(ready["kdb"]["address"].as_str().unwrap());
    assert_eq!(ask_to_publish(&mut publisher, 0..1, ""), Value::null());
    plant.ask_to_end();
    let report = plant.says();
    assert_eq!((&report["items"], &report["kdb"]["published"]["items_refused"]), (&json!(4), &json!(0)));
    assert!(report["feeds"][0]["items_refused"].as_u64().unwrap() > 0);
}

/// Either the plant's thread numbers a row, or the kdb+ thread while the feed leaves the plant asleep: the sequence is one.
#[test]
fn rows_and_a_feed_share_one_sequence() {
    let place = Place::new(1);
    let text = format!(
        "[plant]\nring = \"{}\"\n[journal]\nfolder = \"journal\"\n[kdb]\nport = 0\nlog_folder = \"logs\"\n\
         timezone = \"{}\"\n[[kdb.table]]\nname = \"trade\"\n\
         columns = [\"time timespan\", \"sym symbol\", \"price float TRDPRC_1\", \"size long TRDVOL_1\", \"note list\"]\n\
         [[feed]]\nname = \"test\"\nprotocol = \"nasdaq-itch-5.0\"\ndate = \"2020-01-30\"\nstart = \"from-one\"\nstale_after = \"0s\"\n\
         [[feed.line]]\naddress = \"{}\"\ninterface = \"127.0.0.1\"\n",
        place.ring,
        zone(),
        place.lines[0]
    );
    let config = place.folder.path().join("plant.toml");
    std::fs::write(&config, text).unwrap();
    let mut plant = Running::start(&["plant", "--config", config.to_str().unwrap(), "--format", "json"]);
    let ready = plant.says();
    let (log, address) = (ready["kdb"]["log"].as_str().unwrap(), ready["kdb"]["address"].as_str().unwrap());
    let day = place.folder.path().join("day.itch");
    let write =
        ["feed", "simulate", "--symbols", "10", "--messages", "10000", "--write", day.to_str().unwrap()];
    assert!(tapeline(&write).output().unwrap().status.success());
    let (mut rdb, mut feed) = (Client::tcp(address), Client::tcp(address));
    rdb.ask(".u.sub[`trade;`]");
    let mut rows = 0;
    std::thread::scope(|threads| {
        let replay = threads.spawn(|| place.replay(&day, 0));
        while !replay.is_finished() || rows < 100 {
            publish(&mut feed, rows..rows + 1, "x");
            assert_eq!(ask_to_publish(&mut feed, rows + 1..rows + 3, "x"), Value::null());
            assert_eq!((sizes(&rdb.next()), sizes(&rdb.next())), (vec![rows], vec![rows + 1, rows + 2]));
            rows += 3;
        }
    });
    plant.ask_to_end();
    let report = plant.says();
    assert!(plant.child.wait().unwrap().success());
    let counted = (&report["feeds"][0]["messages"], &report["kdb"]["published"]["rows"]);
    assert_eq!(counted, (&json!(10_000), &json!(rows)));
    assert_eq!(count(&replayed(log), "trade") as i64, rows);
    let journal = place.folder.path().join("journal");
    let verify = ["journal", "verify", journal.to_str().unwrap(), "--format", "json"];
    let verified: Json = serde_json::from_slice(&tapeline(&verify).output().unwrap().stdout).unwrap();
    assert_eq!((&verified["ticks"], &verified["missing"]), (&report["ticks"], &json!(0)));
}

/// The next day's log cannot be created; everything else continues.
#[test]
fn a_plant_whose_log_fails_says_so_and_ends_its_journal_with_a_report() {
    let journal = "[journal]\nfolder = \"journal\"\n";
    let (place, mut plant, ready) =
        plant_of_rows("", &format!("[hub]\nport = 0\n[hub.web]\nport = 0\n{journal}"));
    let address = ready["kdb"]["address"].as_str().unwrap();
    let web = ready["web"].as_str().unwrap();
    let mut feed = Client::tcp(address);
    assert_eq!(ask_to_publish(&mut feed, 0..100, ""), Value::null());
    let check = || {
        let health: Json = serde_json::from_str(&page(web, "/health")).unwrap();
        let mut checks = health["checks"].as_array().unwrap().iter();
        checks.find(|check| check["check"] == "kdb").expect("there is a check of it").clone()
    };
    // The check appears with the next snapshot.
    while check()["ok"] != true {}
    assert!(page(web, "/metrics").contains("\ntapeline_kdb_up 1\n"));
    let logs = place.folder.path().join("logs");
    std::fs::remove_dir_all(&logs).unwrap();
    std::fs::write(&logs, "no folder").unwrap();
    feed.say(MessageKind::Async, |out| out.string(b".u.endofday[]"));
    while check()["ok"] == true {
        std::thread::yield_now();
    }
    assert_eq!(check()["says"], "ended");
    assert!(page(web, "/metrics").contains("\ntapeline_kdb_up 0\n"));
    let stat: Json = serde_json::from_str(&page(web, "/stat.json")).unwrap();
    assert_eq!((&stat["kdb"]["address"], &stat["kdb"]["ended"]), (&json!(address), &json!(true)));
    plant.ask_to_end();
    let report = plant.says();
    assert!(!plant.child.wait().unwrap().success());
    // One tick is the beginning of the channel.
    assert_eq!((&report["ticks"], &report["journal"]["ticks"]), (&json!(101), &json!(101)), "{report}");
    assert!(report["hub"].is_object(), "{report}");
    let journal = place.folder.path().join("journal");
    let verify = ["journal", "verify", journal.to_str().unwrap(), "--format", "json"];
    let verified: Json = serde_json::from_slice(&tapeline(&verify).output().unwrap().stdout).unwrap();
    assert_eq!((&verified["ticks"], &verified["missing"]), (&json!(101), &json!(0)));
}

/// The body of the page server's answer.
pub(crate) fn page(web: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(web).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {web}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[test]
fn what_was_sent_before_the_day_ends_is_of_that_day() {
    for kind in [MessageKind::Sync, MessageKind::Async] {
        a_day_ends(kind);
    }
}

/// The feed ends the day with a message of this kind, directly after its rows.
fn a_day_ends(kind: MessageKind) {
    let (_place, plant, ready) = plant_of_rows("", "");
    let address = ready["kdb"]["address"].as_str().unwrap();
    let (mut rdb, mut feed) = (Client::tcp(address), Client::tcp(address));
    rdb.ask(".u.sub[`trade;`]");
    (0..3).for_each(|number| publish(&mut feed, number..number + 1, ""));
    feed.say(kind, |out| out.string(b".u.endofday[]"));
    if kind == MessageKind::Sync {
        feed.next();
    }
    for number in 0..3 {
        assert_eq!(sizes(&rdb.next()), [number]);
    }
    let Value::List(end_of_day) = rdb.next() else { panic!() };
    assert_eq!(end_of_day[0], Value::symbol(".u.end"));
    publish(&mut feed, 3..5, "");
    assert_eq!(sizes(&rdb.next()), [3, 4]);
    let yesterday = ready["kdb"]["log"].as_str().unwrap();
    assert_eq!(logged(yesterday), 3);
    let Value::List(now) = feed.ask("`.u `i`L") else { panic!() };
    assert_eq!(now[0], Value::Atom(Atom::Long(1)));
    let Value::Atom(Atom::Symbol(log)) = &now[1] else { panic!("{now:?}") };
    let today = std::str::from_utf8(log).unwrap().strip_prefix(':').unwrap();
    assert_ne!(today, yesterday);
    assert_eq!(count(&replayed(today), "trade"), 2);
    end(plant);
}

/// Stops a plant; returns its report.
fn end(mut plant: Running) -> Json {
    plant.ask_to_end();
    let report = plant.says();
    assert!(plant.child.wait().unwrap().success());
    report
}
