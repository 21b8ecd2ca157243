//! Recorded streams.

use std::io::Read as _;
use std::path::Path;

use serde_json::Value;
use tapeline_feed::itch::Side;
use tapeline_feed::venues::{self, CryptoVenue, VenueFeed, VenueSettings};

use super::{apply, gaps, requests, shown, text, trimmed};
use crate::shared_data::{expected, shared};

fn unpacked(path: &Path) -> String {
    let mut all = String::new();
    flate2::read::MultiGzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut all).unwrap();
    all
}

fn top(book: &venues::PriceBook, side: Side, most: usize) -> Vec<(String, String)> {
    shown(book, side).into_iter().take(most).collect()
}

fn pairs(levels: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| trimmed(value.as_str().unwrap());
    levels.as_array().unwrap().iter().map(|level| (text(&level[0]), text(&level[1]))).collect()
}

#[test]
fn binance_futures_end_with_the_book_of_an_independent_parser() {
    let Some(path) = shared("data/crypto-binance-20240808/usdm_btcusdt_20240808.gz") else { return };
    let expected = &expected("crypto-binance-20240808").unwrap()["files"][0];
    let mut feed = VenueFeed::new(VenueSettings::new(CryptoVenue::Binance, ["BTCUSDT"]));
    feed.connected();
    let mut last = None;
    let (mut bought, mut sold) = (0, 0);
    for line in unpacked(&path).lines() {
        let (_, json) = line.split_once(' ').unwrap();
        let wrapped;
        let message = if json.starts_with("{\"lastUpdateId\"") {
            wrapped = venues::snapshot_message("BTCUSDT", json.as_bytes());
            std::str::from_utf8(&wrapped).unwrap()
        } else {
            json
        };
        for applied in apply(&mut feed, message) {
            let Some(draft) = applied.change else { continue };
            last = Some(draft);
            if let Some(trade) = draft.trade.filter(|_| draft.changed.trade) {
                let size =
                    i64::try_from(trade.size).unwrap() * 10_i64.pow(3 - u32::from(trade.size_decimals));
                *(if trade.aggressor == Some(Side::Bid) { &mut bought } else { &mut sold }) += size;
            }
        }
    }
    assert_eq!(gaps(&mut feed), []);
    let book = feed.book("BTCUSDT").unwrap();
    let truth = &expected["l2_book_from_snapshot_and_updates"];
    assert_eq!(top(book, Side::Bid, 5), pairs(&truth["bids"]));
    assert_eq!(top(book, Side::Ask, 5), pairs(&truth["asks"]));
    assert_eq!((book.len(Side::Bid) as u64, book.len(Side::Ask) as u64), (5_018, 4_578));
    assert_eq!((truth["bid_levels"].as_u64(), truth["ask_levels"].as_u64()), (Some(5_018), Some(4_578)));
    let counters = feed.counters();
    assert_eq!(Some(counters.differences), truth["updates_applied"].as_u64());
    assert_eq!(Some(counters.old_differences), truth["updates_dropped"].as_u64());
    assert_eq!((counters.snapshots, counters.malformed, counters.unknown_symbols), (1, 0, 0));
    let by_stream = &expected["by_stream"];
    for (letter, stream) in
        [(b'D', "depth"), (b'Q', "bookTicker"), (b'T', "trade"), (b'S', "rest_depth_snapshot")]
    {
        assert_eq!(Some(feed.by_letter().of(letter)), by_stream[stream].as_u64(), "{stream}");
    }
    assert_eq!(text(bought, 3), trimmed(expected["taker_buy_qty"].as_str().unwrap()));
    assert_eq!(text(sold, 3), trimmed(expected["taker_sell_qty"].as_str().unwrap()));
    let draft = last.unwrap();
    assert_eq!(text(draft.volume as i64, draft.volume_decimals), text(bought + sold, 3));
    let quote = |quote: tapeline_feed::draft::DraftQuote| {
        [text(quote.price.mantissa, quote.price.decimals), text(quote.size as i64, quote.size_decimals)]
    };
    let best = [quote(draft.bid.unwrap()), quote(draft.ask.unwrap())].concat();
    let wanted = expected["final_bookTicker_b_B_a_A_u"].as_array().unwrap();
    let wanted: Vec<String> = wanted[..4].iter().map(|value| trimmed(value.as_str().unwrap())).collect();
    assert_eq!(best, wanted);
}

/// The spot file has no results of another parser: the book must agree with the venue's own best bid and ask at every update that both have.
#[test]
fn binance_spot_agrees_with_its_own_best_bid_and_ask() {
    let Some(path) = shared("data/crypto-binance-20240808/spot_btcusdt_20240808.gz") else { return };
    let mut feed = VenueFeed::new(VenueSettings::new(CryptoVenue::Binance, ["BTCUSDT"]));
    feed.connected();
    let (mut compared, mut ticker): (u32, Option<Value>) = (0, None);
    let mut tickers = std::collections::HashMap::new();
    for line in unpacked(&path).lines() {
        let (_, json) = line.split_once(' ').unwrap();
        if json.starts_with("{\"lastUpdateId\"") {
            let message = venues::snapshot_message("BTCUSDT", json.as_bytes());
            feed.apply(&message).unwrap();
            continue;
        }
        feed.apply(json.as_bytes()).unwrap();
        let value: Value = serde_json::from_str(json).unwrap();
        let data = &value["data"];
        if data["e"] == "depthUpdate" && feed.is_whole() {
            // The venue sends the best of the same update before or after the difference; before is usual.
            if let Some(best) = tickers.remove(&data["u"].as_u64().unwrap()) {
                let best: Value = best;
                let book = feed.book("BTCUSDT").unwrap();
                let of = |price: &str, size: &str| {
                    vec![(trimmed(best[price].as_str().unwrap()), trimmed(best[size].as_str().unwrap()))]
                };
                assert_eq!(top(book, Side::Bid, 1), of("b", "B"), "{json}");
                assert_eq!(top(book, Side::Ask, 1), of("a", "A"), "{json}");
                compared += 1;
            }
        } else if data["e"].is_null() {
            ticker = Some(data.clone());
            tickers.insert(data["u"].as_u64().unwrap(), data.clone());
        }
    }
    assert!(ticker.is_some() && compared > 100, "{compared} compared");
    assert_eq!(gaps(&mut feed), []);
    assert_eq!(feed.counters().malformed, 0);
}

/// The received messages of one of cryptofeed's recordings.
fn received(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter(|line| !line.starts_with("wss:"))
        .filter_map(|line| line.split_once(": "))
        .map(|(_, json)| json)
}

fn symbols(text: &str, member: &str) -> Vec<String> {
    let sent =
        text.lines().find_map(|line| line.split_once(": {").filter(|(url, _)| url.contains("<-"))).unwrap().1;
    let sent: Value = serde_json::from_str(&format!("{{{sent}")).unwrap();
    sent[member].as_array().unwrap().iter().map(|symbol| symbol.as_str().unwrap().to_owned()).collect()
}

#[test]
fn coinbase_books_are_those_of_a_plain_map() {
    let Some(path) = shared("data/crypto-ws-captures-2021/COINBASE.ws.28.0.txt.gz") else { return };
    let expected = &expected("crypto-ws-captures-2021").unwrap()["files"][0]["received_kinds"];
    let all = unpacked(&path);
    let symbols = symbols(&all, "product_ids");
    let mut feed =
        VenueFeed::new(VenueSettings::new(CryptoVenue::Coinbase, symbols.iter().map(String::as_str)));
    feed.connected();
    let mut maps = std::collections::HashMap::<String, Vec<(String, String, String)>>::new();
    for json in received(&all) {
        feed.apply(json.as_bytes()).unwrap();
        let value: Value = serde_json::from_str(json).unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let map = maps.entry(text(&value["product_id"])).or_default();
        if value["type"] == "snapshot" {
            map.clear();
            for (side, member) in [("buy", "bids"), ("sell", "asks")] {
                let levels = value[member].as_array().unwrap();
                map.extend(levels.iter().map(|level| (side.to_owned(), text(&level[0]), text(&level[1]))));
            }
        }
        for change in value["changes"].as_array().into_iter().flatten() {
            map.retain(|(side, price, _)| change[0] != **side || change[1] != **price);
            if change[2].as_str().unwrap().parse::<f64>().unwrap() > 0.0 {
                map.push((text(&change[0]), text(&change[1]), text(&change[2])));
            }
        }
    }
    let counters = *feed.counters();
    assert_eq!(
        (counters.malformed, counters.unknown_symbols, counters.gaps, counters.old_differences),
        (0, 0, 0, 0)
    );
    assert_eq!(Some(counters.differences), expected["l2update"].as_u64());
    assert_eq!(Some(counters.snapshots), expected["snapshot"].as_u64());
    assert!(feed.is_whole());
    for symbol in &symbols {
        let book = feed.book(symbol).unwrap();
        for (side, name) in [(Side::Bid, "buy"), (Side::Ask, "sell")] {
            let of_side = maps[symbol].iter().filter(|(side, ..)| side == name);
            let mut wanted: Vec<_> =
                of_side.map(|(_, price, size)| (trimmed(price), trimmed(size))).collect();
            wanted.sort_by(|(a, _), (b, _)| a.parse::<f64>().unwrap().total_cmp(&b.parse().unwrap()));
            if side == Side::Bid {
                wanted.reverse();
            }
            assert_eq!(shown(book, side), wanted, "{symbol} {name}");
        }
    }
    let trades = feed.by_letter().of(b'T');
    assert_eq!(
        Some(trades),
        expected["match"].as_u64().zip(expected["last_match"].as_u64()).map(|(a, b)| a + b)
    );
}

/// Each of the recording's messages has the venue's checksum: they are the truth.
#[test]
fn kraken_books_have_the_checksum_of_every_message() {
    let Some(path) = shared("data/crypto-ws-captures-2021/KRAKEN.ws.50.0.txt.gz") else { return };
    let all = unpacked(&path);
    let symbols = symbols(&all, "pair");
    let mut feed =
        VenueFeed::new(VenueSettings::new(CryptoVenue::Kraken, symbols.iter().map(String::as_str)));
    feed.connected();
    requests(&mut feed);
    let mut with_checksum = 0;
    for json in received(&all) {
        feed.apply(json.as_bytes()).unwrap();
        with_checksum += u32::from(json.contains("\"c\":"));
        assert_eq!(gaps(&mut feed), [], "{json}");
    }
    assert!(with_checksum > 4_000 && feed.is_whole());
    assert_eq!(requests(&mut feed), []);
    assert_eq!(feed.counters().snapshots, 10);
}
