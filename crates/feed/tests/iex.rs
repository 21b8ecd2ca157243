//! IEX's sample captures against what an independent parser found in them (`expected.json` beside each).

use crate::shared_data;

use std::fs::File;

use serde_json::{Map, Value, json};
use shared_data::{expected, shared};
use tapeline_feed::capture::{self, Recording};
use tapeline_feed::iex::{IexBook, IexLevel, IexQuote, IexSettings, IexSummary, MessageCounts, Stream, tp};
use tapeline_feed::itch::{ByType, Side, Symbol};

/// What becomes of a sender that begins anew under the same session.
#[derive(Clone, Copy, PartialEq)]
enum Restart {
    /// Books and counts start from nothing.
    Reset,
    /// What is behind the sequence is a duplicate.
    Ignore,
    /// Every message is applied.
    Raw,
}

struct Found {
    stream: Stream,
    whole: MessageCounts,
    summary: IexSummary,
    duplicates: u64,
}

fn read(path: &str, restart: Restart) -> Option<Found> {
    let file = File::open(shared(&format!("data/{path}"))?).unwrap();
    let Recording::Datagrams(mut capture) = capture::open(file).unwrap() else { panic!("not a capture") };
    let mut found = Found {
        stream: Stream::default(),
        whole: MessageCounts::default(),
        summary: IexSummary::new(IexSettings::default()),
        duplicates: 0,
    };
    let mut next = 0;
    while let Some(datagram) = capture.next().unwrap() {
        let segment = tp::parse(datagram.payload).unwrap();
        if found.stream.segment(&segment) && restart == Restart::Reset {
            found.summary.reset();
            next = 0;
        }
        for (sequence, message) in segment.messages {
            found.whole.message(message).unwrap();
            if sequence < next && restart != Restart::Raw {
                found.duplicates += 1;
            } else {
                found.summary.message(message);
                next = sequence + 1;
            }
        }
    }
    Some(found)
}

fn letters(counts: &ByType) -> Value {
    counts.iter().map(|(kind, count)| (char::from(kind.letter()).to_string(), json!(count))).collect()
}

fn flags(counts: &[u64; 256]) -> Value {
    let some = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    some.map(|(flags, count)| (flags.to_string(), json!(count))).collect()
}

impl Found {
    fn book(&self, symbol: &str) -> &IexBook {
        let books = &self.summary.books;
        books.book(books.find(Symbol::new(symbol)).unwrap()).unwrap()
    }

    /// The volumes of as many symbols as are wanted, which must be the largest.
    fn volumes(&self, wanted: &Value) {
        let mut volumes: Vec<_> = self.summary.books.iter().map(|(_, book, _)| book.volume.shares).collect();
        volumes.sort_unstable_by(|a, b| b.cmp(a));
        for (largest, (symbol, volume)) in volumes.into_iter().zip(wanted.as_object().unwrap()) {
            assert_eq!(json!(self.book(symbol).volume.shares), *volume, "{symbol}");
            assert_eq!(json!(largest), *volume, "{symbol}");
        }
    }

    fn books(&self, wanted: &Value) {
        for (symbol, wanted) in wanted.as_object().unwrap() {
            let book = self.book(symbol);
            let best = |side| -> Vec<Value> {
                book.levels(side).take(5).map(|level| json!([level.price.0, level.size])).collect()
            };
            let found = json!({
                "bids": best(Side::Bid),
                "asks": best(Side::Ask),
                "bid_levels": book.levels(Side::Bid).len(),
                "ask_levels": book.levels(Side::Ask).len(),
            });
            assert_eq!(found, *wanted, "{symbol}");
            // The best as published is that of the levels: every event is complete.
            let first = |side| {
                book.levels(side)
                    .next()
                    .map_or(IexQuote::NONE, |IexLevel { price, size }| IexQuote { price, size })
            };
            assert_eq!((book.top.bid, book.top.ask), (first(Side::Bid), first(Side::Ask)));
            assert!(book.is_settled());
        }
    }

    fn top_changes(&self, wanted: &Value) {
        let books = &self.summary.books;
        for (symbol, wanted) in wanted.as_object().unwrap() {
            let at = books.find(Symbol::new(symbol)).unwrap().0 as usize;
            assert_eq!(json!(self.summary.per_symbol[at].top_changes), *wanted, "{symbol}");
        }
    }

    /// What a capture holds, whatever is made of restarts.
    fn whole(&self, wanted: &Value) {
        let Self { stream, whole, .. } = self;
        let header: Vec<_> = stream
            .sessions
            .iter()
            .map(|(session, packets)| {
                json!({
                    "version": 1,
                    "reserved": 0,
                    "protocol": format!("0x{:04x}", session.protocol.0),
                    "channel": session.channel,
                    "session": session.number,
                    "packets": packets,
                })
            })
            .collect();
        let (first_sent, last_sent) = stream.sent.unwrap();
        let (earliest, latest) = whole.ts_ns.unwrap();
        let events: Vec<_> = whole.events.iter().map(|(code, ns)| json!([code.to_string(), ns])).collect();
        let found = json!({
            "packets": stream.segments,
            "heartbeats": stream.heartbeats,
            "messages": whole.messages,
            "first_seq": stream.first,
            "next_seq": stream.next,
            "last_seq": stream.next - 1,
            "seq_gap_count": stream.gap_count + stream.restarts,
            "stream_offset_breaks": stream.offset_breaks,
            "final_stream_offset": stream.next_offset,
            "header": header,
            "max_payload": stream.max_payload,
            "max_msgs_in_segment": stream.max_messages,
            "send_first_ns": first_sent.0,
            "send_last_ns": last_sent.0,
            "by_type": letters(&whole.by_type),
            "wrong_length": letters(&whole.short),
            "system_events": events,
            "message_ts_min": earliest,
            "message_ts_max": latest,
            "trade_breaks": whole.by_type.of(b'B'),
        });
        for (key, found) in found.as_object().unwrap() {
            assert_eq!(found, &wanted[key], "{key}");
        }
        assert_eq!(wanted["unknown_types"], json!({}));
        assert_eq!((letters(&whole.longer), whole.empty), (json!({}), 0));
        for (key, found) in [
            ("quote_flags", &whole.quote_flags),
            ("sale_condition_flags", &whole.sale_flags),
            ("price_level_flags", &whole.level_flags),
        ] {
            if !wanted[key].is_null() {
                assert_eq!(flags(found), wanted[key], "{key}");
            }
        }
    }
}

#[test]
fn deep_with_its_restarts_as_resets() {
    let Some(wanted) = expected("iex-deep-20170425") else { return };
    let found = read("iex-deep-20170425/DEEP10.pcap.gz", Restart::Reset).unwrap();
    found.whole(&wanted);
    let epochs: Vec<_> = found
        .stream
        .epochs
        .iter()
        .enumerate()
        .map(|(number, epoch)| {
            json!({
                "epoch": number,
                "first_packet": epoch.first_segment,
                "packets": epoch.segments,
                "messages": epoch.messages,
                "last_sequence": epoch.last_sequence,
            })
        })
        .collect();
    assert_eq!(json!(epochs), wanted["restarts"]);
    assert_eq!((found.stream.restarts, found.stream.gap_count, found.duplicates), (11, 0, 0));

    let policy = &wanted["policy_epoch_final"];
    let counts = &found.summary.counts;
    assert_eq!(json!(counts.messages), policy["messages"]);
    assert_eq!(letters(&counts.by_type), policy["by_type"]);
    found.volumes(&policy["volume_top10"]);
    found.books(&policy["books_price_size"]);
    found.top_changes(&policy["bbo_changes_at_event_end"]);
}

#[test]
fn deep_as_one_who_applies_everything_sees_it() {
    let Some(wanted) = expected("iex-deep-20170425") else { return };
    let found = read("iex-deep-20170425/DEEP10.pcap.gz", Restart::Raw).unwrap();
    let policy = &wanted["policy_raw"];
    assert_eq!(json!(found.summary.counts.messages), wanted["messages"]);
    found.volumes(&policy["volume_top10"]);
    found.books(&policy["books_price_size"]);
    found.top_changes(&policy["bbo_changes_at_event_end"]);
    let with_status = found.summary.books.iter().filter(|(_, _, listing)| listing.trading.0 != 0).count();
    assert_eq!(json!(with_status), wanted["symbols_with_trading_status"]);
    let with_book = found.summary.per_symbol.iter().filter(|symbol| symbol.levels > 0).count();
    assert_eq!(json!(with_book), wanted["symbols_with_book"]);
}

#[test]
fn deep_as_one_who_knows_only_sequences_sees_it() {
    let Some(wanted) = expected("iex-deep-20170425") else { return };
    let found = read("iex-deep-20170425/DEEP10.pcap.gz", Restart::Ignore).unwrap();
    let policy = &wanted["policy_high_water"];
    let counts = &found.summary.counts;
    assert_eq!(json!(counts.messages), policy["accepted"]);
    assert_eq!(json!(found.duplicates), policy["dropped_as_duplicate"]);
    assert_eq!(json!(found.stream.gap_count), policy["forward_gaps"]);
    assert_eq!(letters(&counts.by_type), policy["by_type"]);
}

#[test]
fn the_beginning_of_deeps_last_epoch() {
    let Some(wanted) = expected("iex-deep-20170425") else { return };
    let wanted = &wanted["slice"];
    let found = read("iex-deep-20170425/deep10-lastsession-head.pcap", Restart::Reset).unwrap();
    found.whole(wanted);
    found.volumes(&wanted["volume_top10"]);
    found.books(&wanted["books_price_size"]);
}

/// What only TOPS has.
fn quotes(found: &Found, wanted: &Value) {
    let books = &found.summary.books;
    for (symbol, wanted) in wanted["final_quotes_flags_ts_bidsz_bidpx_askpx_asksz"].as_object().unwrap() {
        let instrument = books.find(Symbol::new(symbol)).unwrap();
        let (top, listing) = (books.book(instrument).unwrap().top, books.listing(instrument).unwrap());
        let found = json!([
            listing.quote_flags,
            listing.quote_ts_ns,
            top.bid.size,
            top.bid.price.0,
            top.ask.price.0,
            top.ask.size
        ]);
        assert_eq!(found, *wanted, "{symbol}");
    }
    let counted = |of: fn(&tapeline_feed::iex::PerSymbol) -> u64| -> Map<String, Value> {
        let some = books.iter().zip(&found.summary.per_symbol).filter(|(_, symbol)| of(symbol) > 0);
        some.map(|((_, book, _), symbol)| (book.symbol.to_string(), json!(of(symbol)))).collect()
    };
    let quotes = counted(|symbol| symbol.quotes);
    assert_eq!(json!(quotes.len()), wanted["symbols_with_quote"]);
    for (symbol, updates) in wanted["quote_updates"].as_object().unwrap() {
        assert_eq!(&quotes[symbol], updates, "{symbol}");
    }
    assert_eq!(json!(counted(|symbol| symbol.auctions)), wanted["auction_messages"]);
    let mut directory: Vec<_> = books
        .iter()
        .filter(|(_, _, listing)| listing.directory.is_some())
        .map(|(_, book, _)| book.symbol.to_string())
        .collect();
    directory.sort_unstable();
    assert_eq!(json!(directory), wanted["security_directory_symbols"]);
    let official =
        books.iter().filter(|(_, _, listing)| listing.official_open.or(listing.official_close).is_some());
    assert_eq!((official.count(), &wanted["official_prices"]), (0, &json!({})));
}

#[test]
fn tops_of_a_morning_and_its_beginning() {
    let Some(wanted) = expected("iex-tops-20170710") else { return };
    let found = read("iex-tops-20170710/tops16-part1.pcap.gz", Restart::Reset).unwrap();
    found.whole(&wanted);
    found.volumes(&wanted["volume_top10"]);
    quotes(&found, &wanted);
    for (symbol, wanted) in wanted["trades"].as_object().unwrap() {
        let volume = &found.book(symbol).volume;
        let last = volume.last.unwrap();
        let found = json!({
            "volume": volume.shares,
            "trades": volume.trades,
            "notional_price4": i64::try_from(volume.notional).unwrap(),
            "last_price_size_ts_id": [last.price.0, last.size, last.ts_ns, last.trade],
            "high": volume.high.unwrap().0,
            "low": volume.low.unwrap().0,
        });
        assert_eq!(found, *wanted, "{symbol}");
    }
    let wanted = &wanted["slice"];
    let found = read("iex-tops-20170710/tops16-head.pcap", Restart::Reset).unwrap();
    found.whole(wanted);
    found.volumes(&wanted["volume_top10"]);
    quotes(&found, wanted);
}

#[test]
fn tops_in_pcapng() {
    let Some(wanted) = expected("iex-tops-20180103-pcapng") else { return };
    let found = read("iex-tops-20180103-pcapng/example1.pcapng", Restart::Reset).unwrap();
    found.whole(&wanted);
    quotes(&found, &wanted);
}
