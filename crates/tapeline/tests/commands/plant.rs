//! The plant as a user runs it: real processes, real multicast on loopback, real shared memory, real captures.

use crate::shared_data;
use crate::stage;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, UdpSocket};
use std::process::Stdio;

use serde_json::{Value, json};
use shared_data::{expected, shared};
use stage::{Place, Running, tapeline};

#[track_caller]
fn same(found: &Value, expected: &Value, members: &[&str]) {
    for member in members {
        assert!(!expected[member].is_null(), "nothing is expected of {member}");
        assert_eq!(found[member], expected[member], "{member}");
    }
}

/// Every message of a file reaches a subscriber in another process: by sequence, by type, and by the resulting book.
fn reaches_a_subscriber(file: &str, folder: &str, symbol: &str) {
    let (Some(file), Some(expected)) = (shared(file), expected(&format!("{folder}/expected.json"))) else {
        return;
    };
    let place = Place::new(1);
    let mut plant = place.plant("");
    let mut tally = place.tally(symbol);
    place.replay(&file, 0);
    let (found, report) = (tally.says(), plant.says());

    let messages = expected["messages"].as_u64().unwrap();
    assert_eq!(found["messages"], json!(messages));
    assert_eq!((&found["lost_ticks"], &found["missing_messages"]), (&json!(0), &json!(0)));
    assert_eq!(found["first_sequence"], json!(1));
    assert_eq!(found["next_sequence"], json!(messages + 1));
    assert_eq!(found["end_of_session_sequence"], json!(messages + 1));
    assert_eq!(found["end"], "session-over");
    // One tick before the messages for the beginning of the session, and one after them for its end.
    assert_eq!(found["ticks"], json!(messages + 2));
    same(
        &found,
        &expected,
        &[
            "by_type",
            "first_timestamp_ns",
            "last_timestamp_ns",
            "trading_state",
            "unknown_order_references",
            "live_orders_end",
            "books_price_shares_orders",
        ],
    );
    same(&found["volume"], &expected["volume"], &[symbol]);
    let feed = &report["feeds"][0];
    assert_eq!((&feed["messages"], &feed["missing_messages"]), (&json!(messages), &json!(0)));
    assert_eq!(feed["live_orders"], expected["live_orders_end"]);
}

#[test]
fn a_capture_of_packets_reaches_a_subscriber() {
    reaches_a_subscriber("moldudp64-derived/aapl5000-clean.pcap", "itch50-aapl-20200130", "AAPL");
}

#[test]
fn a_file_of_real_messages_reaches_a_subscriber() {
    reaches_a_subscriber("itch50-aapl-20200130/aapl-first5000.itch", "itch50-aapl-20200130", "AAPL");
}

#[test]
fn a_day_that_ends_crossed_reaches_a_subscriber() {
    reaches_a_subscriber("itch50-synthetic-ritch/ritch-framed.itch", "itch50-synthetic-ritch", "ALC");
}

#[test]
fn sequences_of_the_packets_are_those_of_the_capture() {
    let file = shared("moldudp64-derived/aapl5000-clean.pcap");
    let (Some(file), Some(expected)) = (file, expected("moldudp64-derived/expected.json")) else { return };
    let expected = &expected["clean"];
    let place = Place::new(1);
    let mut plant = place.plant("");
    let mut tally = place.tally("AAPL");
    place.replay(&file, 0);
    let (found, report) = (tally.says(), plant.says());
    same(
        &found,
        expected,
        &["next_sequence", "end_of_session_sequence", "missing_ranges", "missing_messages"],
    );
    let feed = &report["feeds"][0];
    assert_eq!(json!([feed["session"]]), expected["sessions"]);
    assert_eq!(feed["messages"], expected["unique_messages"]);
    assert_eq!(feed["lines"][0]["first"], expected["first_delivery_by_feed"]["A"]);
}

/// A silent feed becomes stale until the next datagram; each change is published once.
#[test]
fn silence_makes_a_feed_stale_and_a_heartbeat_live_again() {
    let place = Place::new(1);
    let mut plant = place.plant("stale_after = \"50ms\"");
    let mut watch =
        Running::start(&["plant", "watch", "--ring", &place.ring, "--from", "oldest", "--format", "json"]);
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let heartbeat = [&b"SESSION-01"[..], &1u64.to_be_bytes(), &[0, 0]].concat();
    for (text, suspect) in
        [("the feed's session SESSION-01 begins", Value::Null), ("live: the feed is heard of", Value::Null)]
    {
        socket.send_to(&heartbeat, place.lines[0]).unwrap();
        let tick = watch.says();
        assert_eq!(
            (&tick["kind"], &tick["feed"], &tick["state"]),
            (&json!("status"), &json!(0), &json!("live"))
        );
        assert_eq!((&tick["text"], &tick["suspect"]), (&json!(text), &suspect));
        let tick = watch.says();
        assert_eq!((&tick["state"], &tick["suspect"]), (&json!("stale"), &json!(true)));
        assert_eq!(tick["text"], json!("stale: no line is heard of"));
    }
    plant.ask_to_end();
    let report = plant.says();
    let feed = &report["feeds"][0];
    assert_eq!((&feed["state"], &feed["lines"][0]["state"]), (&json!("stale"), &json!("stale")));
    assert_eq!(report["ticks"], json!(4));
}

/// Two feeds with the same stock have an item each, and either feed can be tallied.
#[test]
fn two_feeds_have_items_of_their_own() {
    let Some(file) = shared("moldudp64-derived/aapl5000-clean.pcap") else { return };
    let place = Place::new(2);
    let feed = |name: &str, line: usize| {
        format!(
            "[[feed]]\nname = \"{name}\"\nprotocol = \"itch50-moldudp64\"\ndate = \"2020-01-30\"\nstale_after = \
             \"0s\"\n[[feed.line]]\naddress = \"{}\"\ninterface = \"127.0.0.1\"\n",
            place.lines[line]
        )
    };
    let config = place.folder.path().join("two.toml");
    let plant = format!("[plant]\nring = \"{}\"\npublish = \"every-message\"\n", place.ring);
    std::fs::write(&config, [plant, feed("one", 0), feed("two", 1)].concat()).unwrap();
    let config = config.to_str().unwrap();
    let mut plant =
        Running::start(&["plant", "--config", config, "--until-end-of-session", "--format", "json"]);
    assert_eq!(plant.says()["ready"], json!(place.ring));
    let ring = ["--ring", &place.ring, "--from", "oldest", "--format", "json"];
    let tally = ["plant", "tally", "--feed", "1", "--announce", "--until-end-of-session"];
    let mut tally = Running::start(&[&tally[..], &ring].concat());
    assert_eq!(tally.says()["joined"], json!(place.ring));
    place.replay(&file, 0);
    place.replay(&file, 1);
    let (found, report) = (tally.says(), plant.says());
    assert_eq!((&found["messages"], &found["missing_messages"]), (&json!(5_000), &json!(0)));
    assert_eq!(found["lost_ticks"], json!(0));
    assert_eq!(report["items"], json!(2));
    for feed in 0..2 {
        assert_eq!(report["feeds"][feed]["messages"], json!(5_000));
    }
}

/// Two lines that each lose messages: each line fills the other's gaps; messages lost on both are reported.
#[test]
fn two_lossy_lines_become_one_feed() {
    let Some(report) = two_lossy_lines("") else { return };
    assert!(report["feeds"][0].get("pool").is_none(), "{report}");
}

/// The same through a receiving thread, with a pool so small that datagrams wait for slots.
#[test]
fn two_lossy_lines_become_one_feed_behind_a_receiving_thread() {
    let keys = "receive = \"thread\"\npool_slots = 16\npool_policy = \"block\"";
    let Some(report) = two_lossy_lines(keys) else { return };
    let pool = &report["feeds"][0]["pool"];
    assert_eq!((&pool["misses"], &pool["dropped"]), (&json!(0), &json!(0)), "{pool}");
    let high_water = pool["high_water"].as_u64().unwrap();
    assert!((1..=16).contains(&high_water), "{pool}");
    let datagrams = |line: usize| report["feeds"][0]["lines"][line]["datagrams"].as_u64().unwrap();
    let taken = datagrams(0) + datagrams(1);
    // Some slots are loaded for datagrams that do not follow.
    assert!((taken..=taken + 16).contains(&pool["hits"].as_u64().unwrap()), "{report}");
}

/// The plant's report; `None` without the captures.
fn two_lossy_lines(keys: &'static str) -> Option<Value> {
    let path = |line: &str| shared(&format!("moldudp64-derived/aapl5000-{line}.pcap"));
    let (a, b) = (path("A")?, path("B")?);
    let expected = expected("moldudp64-derived/expected.json")?;
    let place = Place { keys, ..Place::new(2) };
    // All of A is sent before B: the messages buffered behind A's gaps need capacity and time. A heartbeat on B keeps
    // the session open after A's end of session.
    let mut plant = place.plant("reorder_time = \"5s\"\nreorder_messages = 8192");
    let mut tally = place.tally("AAPL");
    let heartbeat = [&b"AAPL200130"[..], &1u64.to_be_bytes(), &[0, 0]].concat();
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().send_to(&heartbeat, place.lines[1]).unwrap();
    place.replay(&a, 0);
    place.replay(&b, 1);
    let (found, report) = (tally.says(), plant.says());

    let both = &expected["A_and_B_arbitrated_without_recovery"];
    same(&found, both, &["next_sequence", "missing_ranges", "missing_messages"]);
    let feed = &report["feeds"][0];
    assert_eq!(feed["messages"], both["unique_messages"]);
    assert_eq!(feed["missing_messages"], both["missing_messages"]);
    let lines = feed["lines"].as_array().unwrap();
    assert_eq!(lines[0]["missing"], expected["feed_A_alone"]["missing_messages"]);
    assert_eq!(lines[1]["missing"], expected["feed_B_alone"]["missing_messages"]);
    assert_eq!(found["lost_ticks"], json!(0));
    Some(report)
}

#[test]
fn datagrams_that_cannot_be_read_are_counted_and_do_no_harm() {
    let place = Place::new(1);
    let mut plant = place.plant("");
    let mut tally = place.tally("NONE");
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let send = |bytes: &[u8]| sender.send_to(bytes, place.lines[0]).unwrap();
    let header = |sequence: u64, count: u16| {
        [&b"BADDAY0001"[..], &sequence.to_be_bytes(), &count.to_be_bytes()].concat()
    };
    send(b"");
    send(b"short");
    // The header announces two messages; the first exceeds the datagram.
    send(&[&header(1, 2)[..], &[0, 200, b'S']].concat());
    // A valid system event, then an empty message and one of an unknown type, then the end of the session.
    let event = [&[0, 12, b'S', 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, b'O'][..]].concat();
    send(&[&header(1, 1)[..], &event].concat());
    send(&[&header(2, 2)[..], &[0, 0, 0, 3, b'z', 1, 2]].concat());
    send(&header(4, 0xFFFF));
    let (found, report) = (tally.says(), plant.says());

    let malformed = &report["feeds"][0]["lines"][0]["malformed"];
    let total: u64 = malformed.as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(total, 3, "{malformed}");
    assert_eq!(malformed.as_object().unwrap().len(), 2, "by reason: {malformed}");
    assert_eq!(found["messages"], json!(3));
    assert_eq!(found["by_type"], json!({"S": 1}));
    assert_eq!(found["unknown_types"], json!({"z": 1}));
    assert_eq!(report["feeds"][0]["malformed_messages"], json!(1));
}

/// The exit status tells a script whether messages are missing.
#[test]
fn plant_and_tally_end_with_status_3_where_messages_are_missing() {
    for (hole, status) in [(0, 0), (5, 3)] {
        let place = Place::new(1);
        let mut plant = place.plant("");
        let mut tally = place.tally("NONE");
        let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let send = |sequence: u64, count: u16, message: &[u8]| {
            let header = [&b"BADDAY0001"[..], &sequence.to_be_bytes(), &count.to_be_bytes()].concat();
            sender.send_to(&[&header, message].concat(), place.lines[0]).unwrap();
        };
        let event = [0, 12, b'S', 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, b'O'];
        send(1, 1, &event);
        send(2 + hole, 1, &event);
        send(3 + hole, 0xFFFF, b"");
        let (found, report) = (tally.says(), plant.says());
        assert_eq!(found["missing_messages"], json!(hole), "{found}");
        assert_eq!(report["feeds"][0]["missing_messages"], json!(hole), "{report}");
        assert_eq!(tally.child.wait().unwrap().code(), Some(status), "tally, {hole} missing");
        assert_eq!(plant.child.wait().unwrap().code(), Some(status), "plant, {hole} missing");
    }
}

/// The ticks of one symbol, from the oldest tick on, until the end of the session.
fn watch(place: &Place, symbol: &str) -> Running {
    let ring = ["--ring", &place.ring, "--from", "oldest", "--until-end-of-session"];
    Running::start(&[&["plant", "watch", symbol], &ring[..]].concat())
}

#[test]
fn watch_gives_json_lines_in_a_pipe() {
    let Some(file) = shared("itch50-aapl-20200130/aapl-first5000.itch") else { return };
    let place = Place::new(1);
    let _plant = place.plant("");
    let mut tally = place.tally("AAPL");
    let mut watch = watch(&place, "AAPL");
    place.replay(&file, 0);
    let (mut bid, mut ask, mut last, mut trades) = (Value::Null, Value::Null, Value::Null, 0);
    loop {
        let tick = watch.says();
        if tick["kind"] == "status" {
            if tick["text"].as_str().unwrap().contains("ended") {
                break;
            }
            continue;
        }
        assert_eq!(tick["item"], "AAPL");
        let Some(fields) = tick["fields"].as_object() else { continue };
        for (field, place) in [("BID", &mut bid), ("ASK", &mut ask), ("TRDPRC_1", &mut last)] {
            if let Some(value) = fields.get(field) {
                *place = value.clone();
            }
        }
        trades += u64::from(fields.get("TRDPRC_1").is_some_and(|price| !price.is_null()));
    }
    // The values of expected.json, with the decimal point inserted.
    assert_eq!((bid, ask, last), (json!(320.8), json!(321.4), json!(321.29)));
    assert_eq!(trades, 473);
    assert_eq!(tally.says()["messages"], json!(5_000));
}

/// The orders that a plant publishes add up to the real book; a tally at the same time is not affected.
#[test]
fn the_orders_of_a_real_day_make_its_book() {
    let (Some(file), Some(expected)) =
        (shared("itch50-aapl-20200130/aapl-first5000.itch"), expected("itch50-aapl-20200130/expected.json"))
    else {
        return;
    };
    let place = Place::new(1);
    let mut plant = place.plant("market_by_order = true");
    let mut tally = place.tally("AAPL");
    let mut watch = watch(&place, "AAPL");
    place.replay(&file, 0);
    // By order number: side, price in ten-thousandths, shares.
    let mut orders: BTreeMap<String, (String, i64, u64)> = BTreeMap::new();
    let mut by_order = 0;
    loop {
        let tick = watch.says();
        if tick["kind"] == "status" && tick["text"].as_str().unwrap().contains("ended") {
            break;
        }
        if tick["domain"] != "MarketByOrder" {
            continue;
        }
        by_order += 1;
        if tick["kind"] == "refresh" {
            assert_eq!((&tick["complete"], &tick["summary"]["CURRENCY"]), (&json!(true), &json!("USD")));
        }
        for order in tick["orders"].as_array().unwrap() {
            let number = order["order"].as_str().unwrap().to_owned();
            match order["action"].as_str().unwrap() {
                "delete" => assert!(orders.remove(&number).is_some()),
                "update" => orders.get_mut(&number).unwrap().2 = order["ORDER_SIZE"].as_u64().unwrap(),
                _ => {
                    let price = (order["ORDER_PRC"].as_f64().unwrap() * 10_000.0).round() as i64;
                    let side = order["ORDER_SIDE"].as_str().unwrap().to_owned();
                    let entry = (side, price, order["ORDER_SIZE"].as_u64().unwrap());
                    assert_eq!(orders.insert(number, entry), None);
                }
            }
        }
    }
    let levels = |wanted: &str| {
        let mut levels: BTreeMap<i64, (u64, u64)> = BTreeMap::new();
        for (_, price, shares) in orders.values().filter(|(side, ..)| side == wanted) {
            let level = levels.entry(*price).or_default();
            *level = (level.0 + shares, level.1 + 1);
        }
        levels.into_iter().map(|(price, (shares, orders))| json!([price, shares, orders])).collect::<Vec<_>>()
    };
    let (mut bids, mut asks) = (levels("BID"), levels("ASK"));
    bids.reverse();
    let book = &expected["books_price_shares_orders"]["AAPL"];
    assert_eq!(
        (json!(bids.len()), json!(asks.len())),
        (book["bid_levels"].clone(), book["ask_levels"].clone())
    );
    bids.truncate(5);
    asks.truncate(5);
    assert_eq!((json!(bids), json!(asks)), (book["bids"].clone(), book["asks"].clone()));
    assert_eq!(json!(orders.len()), expected["live_orders_end"]);

    let (found, report) = (tally.says(), plant.says());
    assert_eq!((&found["messages"], &found["lost_ticks"]), (&json!(5_000), &json!(0)));
    assert_eq!(found["ticks"], json!(5_002 + by_order));
    assert_eq!(report["feeds"][0]["ticks"], json!(5_002 + by_order));
}

/// A stopped subscriber of a small ring blocks the plant for the stall limit only. It gets an error when it continues;
/// the plant has published everything.
#[test]
fn a_stopped_subscriber_loses_its_place_and_is_told() {
    let Some(file) = shared("moldudp64-derived/aapl5000-clean.pcap") else { return };
    let place = Place::new(1);
    let config = place.config("");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(
        &config,
        text.replace("[plant]\n", "[plant]\nring_size = \"64KiB\"\nstall_limit = \"50ms\"\n"),
    )
    .unwrap();
    let mut plant =
        Running::start(&["plant", "--config", &config, "--until-end-of-session", "--format", "json"]);
    assert_eq!(plant.says()["ready"], json!(place.ring));
    let mut child = tapeline(&[
        "plant",
        "tally",
        "--ring",
        &place.ring,
        "--announce",
        "--symbol",
        "AAPL",
        "--format",
        "json",
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let mut joined = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut joined).unwrap();
    assert!(joined.contains("joined"), "{joined}");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    place.replay(&file, 0);
    let report = plant.says();
    assert_eq!(report["ring_evicted"], json!(1));
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("the plant continued without this reader") && said.contains("hint:"), "{said}");
}

#[test]
fn a_plant_that_is_told_to_end_leaves_nothing_behind() {
    let place = Place::new(1);
    let mut plant = place.plant("");
    plant.ask_to_end();
    let report = plant.says();
    assert_eq!(report["ticks"], json!(0));
    assert!(plant.child.wait().unwrap().success());
    let rings = tapeline(&["ring", "ls", "--format", "json"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&rings.stdout).contains(&place.ring));
}

/// Error messages for mistakes in the configuration.
#[test]
fn mistakes_in_the_configuration_are_named_with_line_and_hint() {
    let folder = tempfile::tempdir().unwrap();
    let good = "[plant]\nring = \"mistakes\"\n[[feed]]\nname = \"f\"\nprotocol = \"nasdaq-itch-5.0\"\n\
                [[feed.line]]\naddress = \"239.255.9.9:26477\"\n";
    for (from, to, said) in [
        ("[plant]\n", "[plant]\npulish = \"changes\"\n", ":2:1: unknown key `pulish`"),
        (
            "239.255.9.9:26477",
            "239.255.9.9",
            ":7:11: address \"239.255.9.9\" is not an IPv4 address with a port",
        ),
        (":26477\"\n", ":26477\"\ninterface = \"nosuch0\"\n", ":8:13:"),
        ("ring = \"mistakes\"\n", "", ":1:1: missing key `ring`"),
        ("[plant]\n", "[plant]\nring_size = \"3MiB\"\n", ":2:13: ring_size is 3145728 bytes"),
        ("protocol = \"nasdaq-itch-5.0\"", "protocol = nasdaq", ":5:12:"),
        ("[plant]\n", "[plant]\nreceive = \"threads\"\n", ":2:11: receive is \"threads\""),
        ("[plant]\n", "[plant]\npool_slots = 64\n", ":2:14: pool_slots is set, but there is no pool"),
        ("[plant]\n", "[plant]\nreceive = \"thread\"\npool_slots = 0\n", ":3:14: pool_slots is 0"),
        (
            "[plant]\n",
            "[plant]\nreceive = \"thread\"\npool_policy = \"wait\"\n",
            ":3:15: pool_policy is \"wait\"; \"block\", \"drop-newest\" or \"heap\" is expected",
        ),
        (
            "26477\"\n",
            "26477\"\n[[feed.line]]\naddress = \"239.255.9.9:26477\"\n",
            ":9:12: 239.255.9.9:26477 is the address of two lines",
        ),
    ] {
        let path = folder.path().join("plant.toml");
        std::fs::write(&path, good.replace(from, to)).unwrap();
        let output = tapeline(&["plant", "--config", path.to_str().unwrap()]).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.starts_with(&format!("error: {}{said}", path.display())), "{said}: {error}");
        assert!(error.contains("\nhint: "), "{error}");
        assert_eq!(output.stdout, b"");
    }
}
