//! A plant that reads files instead of lines: real processes, with a subscriber in another process.

use crate::remains;
use crate::shared_data;

use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use serde_json::{Map, Value, json};
use shared_data::{expected, shared};
use tapeline_feed::capture::PcapWriter;
use tapeline_feed::itch::encode::LONGEST;
use tapeline_feed::moldudp64::{MoldSession, PacketBuilder};
use tapeline_feed::simulate::{Exchange, SimulatedDay};
use tapeline_measure::Nanos;

/// The result of playing one file: the plant's output, and the ticks of a subscriber in its own process.
struct Played {
    ticks: Vec<Value>,
    report: Value,
    status: ExitStatus,
    /// The plant's standard error.
    said: String,
    /// The subscriber's standard error.
    watch_said: String,
}

/// A plant process; it ends with the test.
struct Plant {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Drop for Plant {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        remains::remove(self.child.id());
    }
}

fn tapeline(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapeline"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Plays a file as fast as possible.
fn play(test: &str, protocol: &str, file: &Path, more: &str) -> Played {
    let feed = format!("protocol = \"{protocol}\"\nfile = \"{}\"\npace = \"fast\"\n{more}\n", file.display());
    play_feed(test, "", &feed, &[])
}

/// Plays a feed, with more keys of the plant, and with a subscriber of these symbols.
fn play_feed(test: &str, plant: &str, feed: &str, symbols: &[&str]) -> Played {
    let folder = tempfile::tempdir().unwrap();
    let ring = format!("test-{test}-{}", std::process::id());
    let config = folder.path().join("plant.toml");
    let text = format!("[plant]\nring = \"{ring}\"\n{plant}\n[[feed]]\nname = \"file\"\n{feed}\n");
    std::fs::write(&config, text).unwrap();
    let stderr = folder.path().join("stderr");
    let arguments = ["plant", "--config", config.to_str().unwrap(), "--format", "json"];
    let errors = std::fs::File::create(&stderr).unwrap();
    let mut child = tapeline(&arguments).stdout(Stdio::piped()).stderr(errors).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut plant = Plant { child, output };
    let mut line = String::new();
    plant.output.read_line(&mut line).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["ready"], json!(ring));
    // The ring still has all ticks.
    let watch =
        ["plant", "watch", "--ring", &ring, "--from", "oldest", "--until-end-of-session", "--format", "json"];
    let watched = tapeline(&[&watch, symbols].concat()).output().unwrap();
    let watch_said = String::from_utf8(watched.stderr).unwrap();
    assert!(watched.status.success(), "{watch_said}");
    let ticks = watched.stdout.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    let pid = rustix::process::Pid::from_child(&plant.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    line.clear();
    plant.output.read_line(&mut line).unwrap();
    let report = serde_json::from_str::<Value>(&line).unwrap()["feeds"][0].clone();
    let status = plant.child.wait().unwrap();
    let said = std::fs::read_to_string(stderr).unwrap();
    Played { ticks, report, status, said, watch_said }
}

/// An item's fields after all its ticks, the number of trades, and their volume.
fn fold(ticks: &[Value], item: &str) -> (Map<String, Value>, u64, u64) {
    let (mut fields, mut trades, mut volume) = (Map::new(), 0, 0);
    for tick in ticks.iter().filter(|tick| tick["item"] == item) {
        let changed = tick["fields"].as_object().cloned().unwrap_or_default();
        if !changed.get("TRDPRC_1").is_none_or(Value::is_null) {
            trades += 1;
            volume += changed["TRDVOL_1"].as_u64().unwrap();
        }
        fields.extend(changed);
    }
    (fields, trades, volume)
}

#[track_caller]
fn check_order(played: &Played, messages: u64) {
    let last = played.ticks.last().unwrap();
    assert_eq!(last["text"], format!("the feed's session ended with message {messages}"));
    let sequences: Vec<u64> = played.ticks.iter().map(|tick| tick["feed_seq"].as_u64().unwrap()).collect();
    assert!(sequences.is_sorted(), "a record's number is its sequence");
    assert!(played.ticks.iter().zip(1..).all(|(tick, seq)| tick["seq"] == seq), "no tick is missing");
    let report = &played.report;
    assert_eq!((&report["messages"], &report["ended"]), (&json!(messages), &json!(true)));
    assert_eq!((&report["missing_messages"], &report["malformed_messages"]), (&json!(0), &json!(0)));
}

fn price(nano: &Value) -> f64 {
    nano.as_i64().unwrap() as f64 / 1e9
}

#[test]
fn tops_and_trades_of_dbn_records_become_ticks() {
    let file = "futures_mbp-1_2024-07-01.dbn.zst";
    let Some(path) = shared(&format!("dbn-cme-opra/{file}")) else { return };
    let expected = &expected("dbn-cme-opra/expected.json").unwrap()["files"][file];
    let played = play("dbn-mbp", "dbn", &path, "");
    assert!(played.status.success());
    check_order(&played, 2_288);
    let (fields, trades, volume) = fold(&played.ticks, "ESU4");
    assert_eq!(expected["trades_by_instrument"]["118"], trades);
    assert_eq!(expected["volume_by_instrument"]["118"], volume);
    assert_eq!((&fields["NUM_MOVES"], &fields["ACVOL_1"]), (&json!(trades), &json!(volume)));
    let level = &expected["last_levels"]["118"][0];
    assert_eq!(fields["BID"].as_f64(), Some(price(&level[0])));
    assert_eq!(fields["ASK"].as_f64(), Some(price(&level[1])));
    assert_eq!((&fields["BIDSIZE"], &fields["ASKSIZE"]), (&level[2], &level[3]));
}

#[test]
fn orders_of_dbn_records_become_tops_at_the_end_of_their_events() {
    let file = "orderbooks_mbo_2024-05-08.dbn.zst";
    let Some(path) = shared(&format!("dbn-cme-opra/{file}")) else { return };
    let expected = &expected("dbn-cme-opra/expected.json").unwrap()["files"][file];
    let played = play("dbn-mbo", "dbn", &path, "");
    check_order(&played, 13_796);
    // The snapshot has 13,601 records; its last record publishes its top.
    let quotes = |tick: &&Value| !tick["fields"]["BID"].is_null();
    assert_eq!(played.ticks.iter().find(quotes).unwrap()["feed_seq"], 13_601);
    let (fields, trades, volume) = fold(&played.ticks, "ESM4");
    assert_eq!(
        (json!(trades), json!(volume)),
        (expected["trades_by_instrument"]["5602"].clone(), expected["volume_by_instrument"]["5602"].clone())
    );
    let [bids, asks, live] = expected["books"]["5602"].as_array().unwrap().as_slice() else {
        panic!("a book")
    };
    assert_eq!(fields["BID"].as_f64(), Some(price(&bids[0][0])));
    assert_eq!(fields["ASK"].as_f64(), Some(price(&asks[0][0])));
    assert_eq!((&fields["BIDSIZE"], &fields["ASKSIZE"]), (&bids[0][1], &asks[0][1]));
    assert_eq!(played.report["live_orders"], *live);
}

#[test]
fn ten_levels_of_dbn_records_become_a_market_by_price() {
    let file = "test_data.mbp-10.dbn";
    let Some(path) = shared(&format!("dbn-databento/{file}")) else { return };
    let expected = &expected("dbn-databento/expected.json").unwrap()["files"][file]["last_levels"]["5482"];
    let played = play("dbn-mbp-10", "dbn", &path, "");
    check_order(&played, 2);
    let mut levels = Map::new();
    let of_levels = played.ticks.iter().filter(|tick| tick["domain"] == "MarketByPrice");
    let kinds: Vec<&Value> = of_levels.clone().map(|tick| &tick["kind"]).collect();
    assert_eq!(kinds, ["refresh", "update"]);
    for entry in of_levels.flat_map(|tick| tick["levels"].as_array().unwrap()) {
        let key = entry["level"].as_str().unwrap();
        match entry["action"].as_str().unwrap() {
            "delete" => assert!(levels.remove(key).is_some()),
            _ => {
                let level = levels.entry(key).or_insert_with(|| json!({}));
                level.as_object_mut().unwrap().extend(entry.as_object().unwrap().clone());
            }
        }
    }
    assert_eq!(levels.len(), 20);
    for level in expected.as_array().unwrap() {
        for (side, letter, at) in [("BID", "B", 0), ("ASK", "A", 1)] {
            let shown = &levels[&format!("{}{letter}", price(&level[at]))];
            assert_eq!((&shown["ACC_SIZE"], &shown["NO_ORD"]), (&level[2 + at], &level[4 + at]), "{level}");
            assert_eq!(shown["ORDER_PRC"].as_f64(), Some(price(&level[at])));
            assert_eq!(shown["ORDER_SIDE"], side);
        }
    }
}

#[test]
fn dbn_records_of_which_nothing_is_published_are_no_feed() {
    let Some(bars) = shared("dbn-databento/test_data.ohlcv-1m.dbn") else { return };
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("plant.toml");
    for (number, kind) in ["ohlcv-1m", "statistics", "imbalance", "definition"].into_iter().enumerate() {
        let file = shared(&format!("dbn-databento/test_data.{kind}.dbn")).unwrap();
        let ring = format!("test-plant-files-unused-{number}-{}", std::process::id());
        let feed = format!("name = \"file\"\nprotocol = \"dbn\"\nfile = \"{}\"", file.display());
        std::fs::write(&config, format!("[plant]\nring = \"{ring}\"\n[[feed]]\n{feed}\n")).unwrap();
        let mut command = tapeline(&["plant", "--config", config.to_str().unwrap(), "--format", "json"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = child.stderr.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut plant = Plant { child, output };
        let (mut ready, mut said) = (String::new(), String::new());
        plant.output.read_line(&mut ready).unwrap();
        assert_eq!(ready, "", "{kind}: a plant began");
        errors.read_to_string(&mut said).unwrap();
        assert_eq!(plant.child.wait().unwrap().code(), Some(1), "{kind}");
        for part in [&format!("holds {kind} records, which a plant does not publish"), "mbp-10", "bbo-1s"] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
    // A file without metadata is reported at its end.
    let fragment = folder.path().join("bars.dbn.frag");
    let whole = std::fs::read(&bars).unwrap();
    let metadata = 8 + u32::from_le_bytes(whole[4..8].try_into().unwrap()) as usize;
    std::fs::write(&fragment, &whole[metadata..]).unwrap();
    let played = play("dbn-bars", "dbn", &fragment, "");
    assert_eq!(played.status.code(), Some(1));
    assert_eq!(played.report["damage"], "none of its 2 records are published");
    // With publishable records in the file, the others are named.
    let trades = std::fs::read(shared("dbn-databento/test_data.trades.dbn").unwrap()).unwrap();
    let of_trades = 8 + u32::from_le_bytes(trades[4..8].try_into().unwrap()) as usize;
    std::fs::write(&fragment, [&whole[metadata..], &trades[of_trades..]].concat()).unwrap();
    let played = play("dbn-mixed", "dbn", &fragment, "");
    assert!(played.status.success());
    assert!(played.said.contains("2 ohlcv-1m records are not published"), "{}", played.said);
}

#[test]
fn captures_and_files_of_messages_are_read_the_same_way() {
    let date = "date = \"2020-01-30\"";
    for (test, file) in [
        ("itch-file", "itch50-aapl-20200130/aapl-first5000.itch"),
        ("itch-capture", "moldudp64-derived/aapl5000-clean.pcap"),
    ] {
        let Some(path) = shared(file) else { return };
        let played = play(test, "itch50-moldudp64", &path, date);
        check_order(&played, 5_000);
        let (fields, trades, volume) = fold(&played.ticks, "AAPL");
        assert_eq!((trades, volume), (473, 43_485), "{file}");
        assert_eq!(fields["NUM_MOVES"], 473);
        assert_eq!(played.report["live_orders"], 128);
    }
}

#[test]
fn a_recording_is_played_no_faster_than_it_was_recorded_times_the_pace() {
    const MS: u64 = 1_000_000;
    // Offset of each message's time from the first.
    const AFTER: [u64; 6] = [0, 0, 30 * MS, 31 * MS, 120 * MS, 200 * MS];
    const FIRST: u64 = 34_200_000 * MS;
    let folder = tempfile::tempdir().unwrap();
    let messages = folder.path().join("messages.itch");
    let capture = folder.path().join("capture.pcap");
    let mut exchange = Exchange::new(SimulatedDay { symbols: 2, ..SimulatedDay::default() });
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1);
    let (mut file, mut pcap) = (Vec::new(), PcapWriter::new(Vec::new()).unwrap());
    for (after, sequence) in AFTER.into_iter().zip(1..) {
        let (mut message, mut datagram) = ([0; LONGEST], [0; 200]);
        let length = exchange.next(FIRST + after, &mut message).unwrap();
        file.extend((length as u16).to_be_bytes());
        file.extend(&message[..length]);
        let mut packet = PacketBuilder::new(&mut datagram, MoldSession::new("DAY1"), sequence).unwrap();
        packet.push(&message[..length]).unwrap();
        let length = packet.finish();
        pcap.write(Nanos(FIRST + after), address, address, &datagram[..length]).unwrap();
    }
    std::fs::write(&messages, file).unwrap();
    std::fs::write(&capture, pcap.finish().unwrap()).unwrap();
    for (file, pace, factor) in [(&messages, "recorded", 1), (&capture, "recorded", 1), (&messages, "2x", 2)]
    {
        let feed = format!(
            "protocol = \"itch50-moldudp64\"\ndate = \"2020-01-30\"\nfile = \"{}\"\npace = \"{pace}\"",
            file.display()
        );
        let played = play_feed("recorded", "publish = \"every-message\"", &feed, &[]);
        let messages: Vec<&Value> = played.ticks.iter().filter(|tick| tick["kind"] != "status").collect();
        assert_eq!(messages.len(), AFTER.len(), "{}", played.said);
        let of = |tick: &Value, stamp: &str| tick[stamp].as_u64().unwrap();
        for (tick, after) in messages.iter().zip(AFTER) {
            assert_eq!(of(tick, "event_ns") - of(messages[0], "event_ns"), after);
            // Read at its due time or later; the delay depends on the machine.
            let taken = of(tick, "wire_ns") - of(messages[0], "wire_ns");
            assert!(taken >= after / factor, "{pace}: {taken} ns instead of {after} / {factor}");
        }
    }
}

#[test]
fn symbols_that_are_not_there_are_named_to_whoever_asked_for_them() {
    let Some(path) = shared("dbn-cme-opra/futures_mbp-1_2024-07-01.dbn.zst") else { return };
    let file = path.display();
    let feed = format!(
        "protocol = \"dbn\"\nfile = \"{file}\"\npace = \"fast\"\nsymbols = [\"ESU4\", \"ESUU\", \"ES*\", \"ZZ*\"]"
    );
    let played = play_feed("unknown-symbols", "", &feed, &["ESU4", "NOSUCH", "ESU44"]);
    assert!(played.ticks.iter().any(|tick| tick["item"] == "ESU4"));
    let timed = played.said.lines().filter_map(|line| line.split_once(' '));
    let warnings: Vec<&str> =
        timed.map(|(_, text)| text).filter(|text| text.starts_with("warning: ")).collect();
    assert_eq!(
        warnings,
        [
            format!("warning: {file}: nothing is called ESUU; there is ESU4"),
            format!("warning: {file}: nothing is called ZZ*"),
        ]
    );
    let notes: Vec<&str> = played.watch_said.lines().collect();
    assert_eq!(
        notes,
        ["note: so far nothing is called NOSUCH", "note: so far nothing is called ESU44; there is ESU4",]
    );
}

#[test]
fn a_damaged_file_is_played_up_to_the_damage_and_ends_in_failure() {
    let Some(path) = shared("dbn-databento/test_data.trades.dbn") else { return };
    let folder = tempfile::tempdir().unwrap();
    let damaged = folder.path().join("damaged.dbn");
    let whole = std::fs::read(path).unwrap();
    std::fs::write(&damaged, &whole[..whole.len() - 1]).unwrap();
    let played = play("dbn-damaged", "dbn", &damaged, "");
    assert_eq!(played.status.code(), Some(1));
    check_order(&played, 1);
    assert_eq!(played.report["damage"], "damaged at byte 401: the file ends after 47 of 48 bytes");
}

#[test]
fn a_file_of_another_protocol_is_refused() {
    let Some(path) = shared("dbn-databento/test_data.trades.dbn") else { return };
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("plant.toml");
    for (feed, said) in [
        (
            format!("protocol = \"itch50-moldudp64\"\nfile = \"{}\"", path.display()),
            "holds DBN records, and the feed's protocol is itch50-moldudp64",
        ),
        ("protocol = \"dbn\"".to_owned(), "protocol \"dbn\" is read from a file"),
        (
            format!("protocol = \"dbn\"\nfile = \"{}\"\npace = \"slowly\"", path.display()),
            "pace is \"slowly\"",
        ),
        ("protocol = \"itch50-moldudp64\"\npace = \"fast\"".to_owned(), "pace without a file"),
        (
            format!(
                "protocol = \"dbn\"\nfile = \"{}\"\n[[feed.line]]\naddress = \"239.1.1.1:1\"",
                path.display()
            ),
            "has a file and lines",
        ),
    ] {
        let ring = format!("test-plant-files-refused-{}", std::process::id());
        std::fs::write(&config, format!("[plant]\nring = \"{ring}\"\n[[feed]]\nname = \"file\"\n{feed}\n"))
            .unwrap();
        let output = tapeline(&["plant", "--config", config.to_str().unwrap()]).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(said), "{said}: {error}");
    }
}
