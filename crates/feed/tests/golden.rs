//! Real and made feeds against what an independent parser found in them (`expected.json` beside each).

use crate::shared_data;

use std::io::Read;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use shared_data::{bytes, expected};
use tapeline_feed::book::{self, Book};
use tapeline_feed::framing::MalformedDatagram;
use tapeline_feed::itch::framing::{FileFraming, Frames, RunEnd};
use tapeline_feed::itch::{ByType, Code, Message, Side, decode};
use tapeline_feed::moldudp64::{self, MoldPacket, MoldSession, Request};
use tapeline_feed::summary::Summary;

/// All messages of a file, added up.
fn summary_of(file: &[u8]) -> (Summary, Frames<'_>) {
    let mut summary = Summary::new(book::BookSettings::default());
    let mut frames = Frames::new(file);
    for message in frames.by_ref() {
        summary.message(message);
    }
    (summary, frames)
}

fn by_type(counts: &ByType) -> Value {
    counts.iter().map(|(kind, count)| (char::from(kind.letter()).to_string(), json!(count))).collect()
}

fn letter(code: Code) -> String {
    char::from(code.0).to_string()
}

fn time(ns: u64) -> String {
    let s = ns / 1_000_000_000;
    format!("{:02}:{:02}:{:02}.{:09}", s / 3600, s / 60 % 60, s % 60, ns % 1_000_000_000)
}

fn volume(book: &Book) -> Value {
    let volume = book.volume();
    let last = volume.last.unwrap();
    json!({
        "traded_shares": volume.traded_shares,
        "hidden_shares_P": volume.hidden_shares,
        "cross_shares_Q": volume.cross_shares,
        "nonprintable_shares": volume.nonprintable_shares,
        "trades": volume.trades,
        "notional_price4": u64::try_from(volume.notional).unwrap(),
        "last_trade_price_qty_ts_match": [last.price.0, last.shares, last.ts_ns, last.match_number.0],
    })
}

fn depth(book: &Book) -> Value {
    let best = |side| -> Vec<Value> {
        book.levels(side).take(5).map(|level| json!([level.price.0, level.shares, level.orders])).collect()
    };
    json!({
        "bids": best(Side::Bid),
        "asks": best(Side::Ask),
        "bid_levels": book.levels(Side::Bid).len(),
        "ask_levels": book.levels(Side::Ask).len(),
        "bid_shares": book.shares(Side::Bid),
        "ask_shares": book.shares(Side::Ask),
    })
}

/// What `expected.json` says of a file of messages, found by this crate. The keys are those that are asked for.
fn found(file: &[u8], wanted: &Value) -> Value {
    let (summary, frames) = summary_of(file);
    let (first, last) = (summary.first_ns_of_day.unwrap(), summary.last_ns_of_day.unwrap());
    let trailing = match frames.end() {
        RunEnd::Complete => 0,
        RunEnd::Incomplete { bytes } => bytes,
        other => panic!("{other:?}"),
    };
    let books = summary.books();
    let named = |has: fn(&Book) -> bool, of: fn(&Book) -> Value| -> Map<String, Value> {
        let with = books.iter().filter(|(_, book)| has(book));
        with.map(|(_, book)| (book.symbol().to_string(), of(book))).collect()
    };
    let directory: Map<String, Value> = books
        .iter()
        .filter(|(_, book)| book.is_listed())
        .map(|(locate, book)| (locate.to_string(), json!(book.symbol().to_string())))
        .collect();
    let mut found = json!({
        "bytes": file.len(),
        "sha256": format!("{:x}", Sha256::digest(file)),
        "messages": summary.messages,
        "bytes_consumed": frames.consumed(),
        "trailing_bytes": trailing,
        "by_type": by_type(&summary.counters().messages),
        "wrong_length": by_type(&summary.counters().longer),
        "unknown_types": summary.counters().messages.iter().filter(|(kind, _)| kind.known().is_none()).count(),
        "first_timestamp_ns": first,
        "last_timestamp_ns": last,
        "first_time": time(first),
        "last_time": time(last),
        "timestamps_going_back": summary.times_going_back,
        "system_events": summary.system_events.iter().map(|(event, ns)| json!([letter(*event), ns])).collect::<Vec<_>>(),
        "trading_state": named(|book| book.trading_state() != Code(0), |book| {
            json!([letter(book.trading_state()), book.reason().to_string()])
        }),
        "unknown_order_references": by_type(&books.counters().unknown_reference),
        "live_orders_end": books.live_orders(),
        "max_live_orders": books.counters().max_live_orders,
        "volume": named(|book| book.volume().trades > 0, volume),
        "books_price_shares_orders": named(|book| book.levels(Side::Bid).len() + book.levels(Side::Ask).len() > 0, depth),
    });
    // A long directory is given by its length only, no unknown types as an empty list.
    found["directory"] = if wanted["directory"].is_u64() { json!(directory.len()) } else { json!(directory) };
    assert_eq!(found["unknown_types"], 0);
    found["unknown_types"] = json!({});
    for key in ["file", "note", "first_directory_entries"] {
        found[key] = wanted[key].clone();
    }
    found
}

/// Compares key by key, so that a difference is easy to see, and both ways, so that none is left out.
fn same(found: &Value, wanted: &Value) {
    let (found, wanted) = (found.as_object().unwrap(), wanted.as_object().unwrap());
    for (key, value) in wanted {
        assert_eq!(found.get(key), Some(value), "{key}");
    }
    assert!(found.keys().all(|key| wanted.contains_key(key) || found[key].is_null()));
}

#[test]
fn the_real_feed_of_one_stock() {
    let Some(wanted) = expected("itch50-aapl-20200130") else { return };
    let file = bytes("data/itch50-aapl-20200130/aapl-first5000.itch").unwrap();
    same(&found(&file, &wanted), &wanted);
}

#[test]
fn the_made_day_of_three_stocks() {
    let Some(wanted) = expected("itch50-synthetic-ritch") else { return };
    let file = bytes("data/itch50-synthetic-ritch/ritch-framed.itch").unwrap();
    let mut found = found(&file, &wanted);
    // Three stocks have orders; the file tells of the one that is traded.
    for key in ["volume", "books_price_shares_orders"] {
        found[key] = json!({ "ALC": found[key]["ALC"] });
    }
    same(&found, &wanted);
}

#[test]
fn the_made_day_in_its_original_framing() {
    let Some(packed) = bytes("data/itch50-synthetic-ritch/ex20101224.TEST_ITCH_50.gz") else { return };
    let mut original = Vec::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut original).unwrap();
    let framed = bytes("data/itch50-synthetic-ritch/ritch-framed.itch").unwrap();
    let mut by_type = Frames::new(&original);
    assert_eq!(by_type.framing(), FileFraming::Type);
    assert!(by_type.by_ref().eq(Frames::new(&framed)));
    assert_eq!(by_type.end(), RunEnd::Complete);
    assert_eq!(by_type.consumed(), original.len());
}

#[test]
fn the_cut_head_of_a_real_day() {
    let Some(wanted) = expected("itch50-head-nasdaq") else { return };
    let file = bytes("data/itch50-head-nasdaq/nasdaq-head-4096.itch").unwrap();
    let found = found(&file, &wanted);
    same(&found, &wanted);

    let stocks = Frames::new(&file).filter_map(|message| match decode(message).unwrap() {
        Message::StockDirectory(stock) => Some(stock),
        _ => None,
    });
    let found: Vec<Value> = stocks
        .take(5)
        .map(|stock| {
            json!({
                "locate": stock.locate().0,
                "stock": stock.stock().to_string(),
                "market_category": letter(stock.market_category()),
                "round_lot": stock.round_lot(),
                "issue_class": letter(stock.issue_classification()),
                "sub_type": stock.issue_sub_type().to_string(),
                "authenticity": letter(stock.authenticity()),
                "luld_tier": letter(stock.luld_tier()),
                "etp": letter(stock.etp_flag()),
                "etp_leverage": stock.etp_leverage(),
                "inverse": letter(stock.inverse()),
            })
        })
        .collect();
    assert_eq!(json!(found), wanted["first_directory_entries"]);
}

#[test]
fn the_real_packets_of_another_exchange() {
    let Some(wanted) = expected("moldudp64-bist-sample") else { return };
    let file = bytes("data/moldudp64-bist-sample/mold.sample.dat").unwrap();
    assert_eq!(json!(file.len()), wanted["bytes"]);
    let packets = wanted["packets"].as_array().unwrap();
    let mut complete = 0;
    for (index, packet) in packets.iter().enumerate() {
        let offset = |packet: &Value| usize::try_from(packet["offset"].as_u64().unwrap()).unwrap();
        let start = offset(packet);
        let end = packets.get(index + 1).map_or(file.len(), offset);
        let announced = packet["announced_messages"].as_u64().unwrap();
        let whole = &packet["message_type_and_length"];
        let mut datagram = file[start..end].to_vec();
        if packet["complete_messages"] != packet["announced_messages"] {
            // The file ends in the middle of its last message: not a packet.
            assert_eq!(moldudp64::parse(&datagram), Err(MalformedDatagram::BlockPastEnd));
            let missing = wanted["note"].as_str().unwrap().contains("5 bytes short");
            assert!(missing);
            datagram.resize(datagram.len() + 5, 0);
        }
        let MoldPacket::Data(data) = moldudp64::parse(&datagram).unwrap() else {
            panic!("a packet with messages")
        };
        assert_eq!(data.session, MoldSession([0; 10]));
        assert_eq!(json!(data.sequence()), packet["sequence"]);
        assert_eq!(u64::from(data.count()), announced);
        assert_eq!(data.trailing, 0);
        let found: Vec<Value> =
            data.messages().map(|(_, message)| json!([letter(Code(message[0])), message.len()])).collect();
        let whole = whole.as_array().unwrap();
        assert_eq!(found[..whole.len()], whole[..]);
        assert!(data.messages().map(|(sequence, _)| sequence).eq(data.sequence()..data.end()));
        complete += whole.len();
    }
    assert_eq!(json!(complete), wanted["total_complete_messages"]);
}

#[test]
fn the_requests_for_what_both_lines_lost() {
    let Some(wanted) = expected("moldudp64-derived") else { return };
    for wanted in wanted["recovery"]["requests"].as_array().unwrap() {
        let session = MoldSession::new(wanted["session"].as_str().unwrap());
        let first = wanted["sequence"].as_u64().unwrap();
        let count = wanted["count"].as_u64().unwrap();
        let request = Request::for_gap(session, first, first + count - 1);
        let packet = request.encode();
        let hex: String = packet.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(json!(hex), wanted["packet_hex"]);
        assert_eq!(Request::decode(&packet), Ok(request));
        assert!(request.is_answerable());
    }
}
