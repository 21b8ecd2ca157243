//! `tapeline feed inspect` of IEX's sample captures, compared with an independent parser's results.

use crate::shared_data;

use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use shared_data::{expected, shared};

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapeline"));
    command.args(["feed", "inspect"]).args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// The output of `inspect` for a capture, with the books of the symbols in `wanted`.
fn inspect(file: &str, wanted: &Value, more: &[&str]) -> Option<Value> {
    let path = shared(file)?;
    let symbols: Vec<_> = wanted["books_price_size"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(symbol, _)| symbol.as_str())
        .collect();
    let symbols = symbols.join(",");
    let output = run(&[&[path.to_str().unwrap(), "--format", "json", "--symbol", &symbols], more].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    let found: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"));
    let cut = found["trailing_bytes"] != 0;
    assert_eq!(output.status.code(), Some(i32::from(cut)), "{errors}");
    Some(found)
}

#[track_caller]
fn same(found: &Value, expected: &Value, members: &[&str]) {
    for member in members {
        assert!(!expected[member].is_null(), "nothing is expected of {member}");
        assert_eq!(found[member], expected[member], "{member}");
    }
}

/// The members that do not depend on the restart policy.
fn whole(found: &Value, expected: &Value) {
    same(
        found,
        expected,
        &[
            "messages",
            "by_type",
            "wrong_length",
            "unknown_types",
            "system_events",
            "message_ts_min",
            "message_ts_max",
            "trade_breaks",
        ],
    );
    for flags in ["quote_flags", "sale_condition_flags", "price_level_flags"] {
        if !expected[flags].is_null() {
            same(found, expected, &[flags]);
        }
    }
    let line = &found["lines"]["A"];
    same(
        line,
        expected,
        &[
            "packets",
            "heartbeats",
            "messages",
            "first_seq",
            "next_seq",
            "stream_offset_breaks",
            "final_stream_offset",
            "max_payload",
            "max_msgs_in_segment",
            "send_first_ns",
            "send_last_ns",
        ],
    );
    for member in ["protocol", "channel", "session", "packets"] {
        assert_eq!(line["header"][0][member], expected["header"][0][member]);
    }
    let file = &found["files"][0];
    same(file, expected, &["packets", "non_udp", "dest", "pcap_first_ns", "pcap_last_ns"]);
}

/// Volumes, books, tops and other members by symbol.
fn by_symbol(result: &Value, expected: &Value) {
    for (symbol, volume) in expected["volume_top10"].as_object().unwrap() {
        assert_eq!(result["volume"][symbol]["volume"], *volume, "{symbol}");
    }
    let mut volumes: Vec<_> =
        result["volume"].as_object().unwrap().values().map(|of| of["volume"].as_u64().unwrap()).collect();
    volumes.sort_unstable_by(|a, b| b.cmp(a));
    volumes.truncate(expected["volume_top10"].as_object().unwrap().len());
    assert_eq!(
        json!(volumes),
        json!(expected["volume_top10"].as_object().unwrap().values().collect::<Vec<_>>())
    );
    if let Some(books) = expected["books_price_size"].as_object() {
        assert!(!books.is_empty());
        same(result, expected, &["books_price_size"]);
        for (symbol, book) in books {
            let top =
                |side: &str| book[side][0].as_array().map_or_else(|| vec![json!(0), json!(0)], Clone::clone);
            let (bid, ask) = (top("bids"), top("asks"));
            let quote = &result["quotes_flags_ts_bidsz_bidpx_askpx_asksz"][symbol];
            let prices: Vec<_> = quote.as_array().map_or(vec![json!(0); 4], |quote| quote[2..].to_vec());
            assert_eq!(prices, [&bid[1], &bid[0], &ask[0], &ask[1]].map(Value::clone), "{symbol}");
        }
    }
    for of in [
        "bbo_changes_at_event_end",
        "quote_updates",
        "trades",
        "final_quotes_flags_ts_bidsz_bidpx_askpx_asksz",
    ] {
        let ours = match of {
            "trades" => "volume",
            other => other.trim_start_matches("final_"),
        };
        for (symbol, wanted) in expected[of].as_object().into_iter().flatten() {
            let found = &result[ours][symbol];
            match wanted {
                Value::Object(members) => {
                    same(found, wanted, &members.keys().map(String::as_str).collect::<Vec<_>>());
                }
                // A symbol without a book has no book changes.
                wanted => {
                    let found = if found.is_null() { json!(0) } else { found.clone() };
                    assert_eq!(found, *wanted, "{of} of {symbol}");
                }
            }
        }
    }
    for of in ["symbols_with_quote", "security_directory_symbols", "official_prices", "auction_messages"] {
        if !expected[of].is_null() {
            same(result, expected, &[of]);
        }
    }
}

#[test]
fn inspect_takes_a_restart_for_a_reset() {
    let Some(expected) = expected("iex-deep-20170425/expected.json") else { return };
    let policy = &expected["policy_epoch_final"];
    let found = inspect("iex-deep-20170425/DEEP10.pcap.gz", policy, &[]).unwrap();
    assert_eq!(found["protocol"], "DEEP 1.0 in IEX-TP");
    whole(&found, &expected);
    assert_eq!(found["lines"]["A"]["restarts"], expected["restarts"]);
    let result = &found["result"];
    same(result, policy, &["messages", "by_type"]);
    by_symbol(result, policy);
    assert_eq!((&result["resets"], &result["missing_messages"]), (&json!(11), &json!(0)));
    assert_eq!(result["dropped_as_duplicate"], json!(0));
}

#[test]
fn inspect_can_be_as_naive_as_others() {
    let Some(expected) = expected("iex-deep-20170425/expected.json") else { return };
    let file = "iex-deep-20170425/DEEP10.pcap.gz";
    let policy = &expected["policy_high_water"];
    let found = inspect(file, policy, &["--restart", "ignore"]).unwrap();
    whole(&found, &expected);
    let result = &found["result"];
    same(result, policy, &["dropped_as_duplicate", "by_type"]);
    assert_eq!(result["messages"], policy["accepted"]);
    assert_eq!(result["missing_range_count"], policy["forward_gaps"]);

    let policy = &expected["policy_raw"];
    let found = inspect(file, policy, &["--restart", "raw"]).unwrap();
    whole(&found, &expected);
    let result = &found["result"];
    same(result, &expected, &["messages", "by_type", "symbols_with_trading_status", "symbols_with_book"]);
    by_symbol(result, policy);
}

#[test]
fn inspect_finds_in_whole_and_cut_captures_what_is_in_them() {
    for (folder, file, slice) in [
        ("iex-deep-20170425", "deep10-lastsession-head.pcap", true),
        ("iex-tops-20170710", "tops16-part1.pcap.gz", false),
        ("iex-tops-20170710", "tops16-head.pcap", true),
        ("iex-tops-20180103-pcapng", "example1.pcapng", false),
    ] {
        let Some(expected) = expected(&format!("{folder}/expected.json")) else { return };
        let expected = if slice { &expected["slice"] } else { &expected };
        let found = inspect(&format!("{folder}/{file}"), expected, &[]).unwrap();
        whole(&found, expected);
        same(&found["result"], expected, &["messages", "by_type"]);
        by_symbol(&found["result"], expected);
    }
}

#[test]
fn inspect_makes_one_of_two_lines() {
    let Some(expected) = expected("iex-deep-20170425/expected.json") else { return };
    let path = shared("iex-deep-20170425/deep10-lastsession-head.pcap").unwrap();
    let found = inspect(
        "iex-deep-20170425/deep10-lastsession-head.pcap",
        &expected["slice"],
        &[path.to_str().unwrap()],
    );
    let result = &found.unwrap()["result"];
    same(result, &expected["slice"], &["messages", "by_type"]);
    by_symbol(result, &expected["slice"]);
    assert_eq!(result["dropped_as_duplicate"], expected["slice"]["messages"]);
    assert_eq!((&result["resets"], &result["missing_messages"]), (&json!(0), &json!(0)));
}

#[test]
fn inspect_tells_people_of_restarts() {
    let Some(path) = shared("iex-deep-20170425/DEEP10.pcap.gz") else { return };
    let table = run(&[path.to_str().unwrap(), "--symbol", "MSFT"]);
    let table = String::from_utf8(table.stdout).unwrap();
    for says in [
        "protocol 0x8004, channel 1, session 1132527616: 121,314 segments",
        "the sender began again; the last 105,210 messages count, with --restart reset",
        "no message is missing",
        "MSFT: 25 bid levels, 17 ask levels",
        "476 bytes at the end",
    ] {
        assert!(table.contains(says), "{says}: {table}");
    }
}
