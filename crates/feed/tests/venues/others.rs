//! The rules of the other venues, and messages that no venue should send.

use proptest::prelude::*;
use tapeline_feed::itch::Side;
use tapeline_feed::venues::{
    CryptoVenue, GapKind, SymbolCounters, VenueFault, VenueFeed, VenueRequest, VenueSettings,
};
use tapeline_nanos::Nanos;

use super::{apply, feed, gaps, requests, shown};

const BITMEX_PARTIAL: &str = r#"{"table":"orderBookL2","action":"partial","keys":["symbol","id","side"],"data":[
    {"symbol":"XBTUSD","id":17999992000,"side":"Sell","size":100,"price":80.5,"timestamp":"2017-04-04T22:16:38.461Z"},
    {"symbol":"XBTUSD","id":17999993000,"side":"Sell","size":20,"price":70,"timestamp":"2017-04-04T22:16:38.461Z"},
    {"symbol":"XBTUSD","id":17999996000,"side":"Buy","size":10,"price":40,"timestamp":"2017-04-04T22:16:38.461Z"}]}"#;

#[test]
fn bitmex_rows_are_levels_by_number() {
    let mut feed = feed(CryptoVenue::Bitmex, "XBTUSD");
    let early = r#"{"table":"orderBookL2","action":"update","data":[{"symbol":"XBTUSD","id":17999996000,"side":"Buy","size":5}]}"#;
    apply(&mut feed, early);
    assert_eq!((gaps(&mut feed).len(), feed.is_whole()), (0, false), "before the partial rows are ignored");
    let results = apply(&mut feed, BITMEX_PARTIAL);
    assert!(results[0].image && feed.is_whole());
    apply(&mut feed, early);
    for message in [
        r#"{"table":"orderBookL2","action":"delete","data":[{"symbol":"XBTUSD","id":17999993000,"side":"Sell"}]}"#,
        r#"{"table":"orderBookL2","action":"insert","data":[{"symbol":"XBTUSD","id":17999995500,"side":"Buy","size":10,"price":45}]}"#,
    ] {
        apply(&mut feed, message);
    }
    let of = |feed: &VenueFeed, side| shown(feed.book("XBTUSD").unwrap(), side);
    let pair = |price: &str, size: &str| (price.to_owned(), size.to_owned());
    assert_eq!(of(&feed, Side::Bid), [pair("45", "10"), pair("40", "5")]);
    assert_eq!(of(&feed, Side::Ask), [pair("80.5", "100")]);
    requests(&mut feed);
    // The level was deleted: its update shows that a message is missing.
    apply(
        &mut feed,
        r#"{"table":"orderBookL2","action":"update","data":[{"symbol":"XBTUSD","id":17999993000,"side":"Sell","size":5}]}"#,
    );
    assert_eq!(gaps(&mut feed)[0].kind, GapKind::UnknownLevel { id: 17_999_993_000 });
    let texts =
        ["unsubscribe", "subscribe"].map(|op| format!(r#"{{"op":"{op}","args":["orderBookL2:XBTUSD"]}}"#));
    assert_eq!((feed.is_whole(), requests(&mut feed)), (false, texts.map(VenueRequest::Send).to_vec()));
    apply(&mut feed, BITMEX_PARTIAL);
    assert!(feed.is_whole());
    assert_eq!(of(&feed, Side::Bid), [pair("40", "10")]);
}

#[test]
fn bitmex_trades_come_several_in_a_message() {
    let mut feed = feed(CryptoVenue::Bitmex, "XBTUSD");
    let row = |size: u32| {
        format!(
            r#"{{"timestamp":"2017-04-04T22:16:38.461Z","symbol":"XBTUSD","side":"Sell","size":{size},"price":1.5e3,"tickDirection":"PlusTick"}}"#
        )
    };
    let partial = format!(r#"{{"table":"trade","action":"partial","data":[{},{}]}}"#, row(1), row(2));
    let [first] = &apply(&mut feed, &partial)[..] else { panic!("the last trade before the subscription") };
    assert_eq!((first.change.unwrap().trade.unwrap().size, first.change.unwrap().trades), (2, 0));
    let message = format!(r#"{{"table":"trade","action":"insert","data":[{},{}]}}"#, row(3), row(4));
    let sizes: Vec<_> = apply(&mut feed, &message)
        .iter()
        .map(|applied| applied.change.unwrap())
        .map(|draft| (draft.trade.unwrap().size, draft.volume, draft.trade.unwrap().price.mantissa))
        .collect();
    assert_eq!(sizes, [(3, 3, 1_500), (4, 7, 1_500)]);
}

#[test]
fn a_wrong_checksum_of_kraken_subscribes_again() {
    let mut feed = feed(CryptoVenue::Kraken, "XBT/USD");
    let snapshot = r#"[336,{"as":[["5541.30000","2.50700000","1534614248.123678"]],"bs":[["5541.20000","1.52900000","1534614248.765567"]]},"book-1000","XBT/USD"]"#;
    apply(&mut feed, snapshot);
    assert!(feed.is_whole());
    apply(
        &mut feed,
        r#"[336,{"a":[["5541.30000","0.40100000","1534614248.456738"]],"c":"1"},"book-1000","XBT/USD"]"#,
    );
    let [gap] = &gaps(&mut feed)[..] else { panic!("one gap") };
    assert!(matches!(gap.kind, GapKind::Checksum { theirs: 1, .. }), "{gap}");
    assert!(!feed.is_whole());
    let [VenueRequest::Send(first), VenueRequest::Send(second)] = &requests(&mut feed)[..] else {
        panic!("two requests")
    };
    assert!(first.contains("\"unsubscribe\"") && second.contains("\"subscribe\""), "{first} {second}");
    apply(&mut feed, snapshot);
    assert!(feed.is_whole());
}

/// The example of Kraken's page "Book checksum".
#[test]
fn the_checksum_is_that_of_krakens_own_example() {
    let levels = |prices: [(&str, &str); 10]| {
        prices.map(|(price, size)| format!(r#"["{price}","{size}","1582905487.684110"]"#)).join(",")
    };
    let asks = levels([
        ("0.05005", "0.00000500"),
        ("0.05010", "0.00000500"),
        ("0.05015", "0.00000500"),
        ("0.05020", "0.00000500"),
        ("0.05025", "0.00000500"),
        ("0.05030", "0.00000500"),
        ("0.05035", "0.00000500"),
        ("0.05040", "0.00000500"),
        ("0.05045", "0.00000500"),
        ("0.05050", "0.00000500"),
    ]);
    let bids = levels([
        ("0.05000", "0.00000500"),
        ("0.04995", "0.00000500"),
        ("0.04990", "0.00000500"),
        ("0.04980", "0.00000500"),
        ("0.04975", "0.00000500"),
        ("0.04970", "0.00000500"),
        ("0.04965", "0.00000500"),
        ("0.04960", "0.00000500"),
        ("0.04955", "0.00000500"),
        ("0.04950", "0.00000500"),
    ]);
    let mut feed = feed(CryptoVenue::Kraken, "XBT/USD");
    apply(&mut feed, &format!(r#"[0,{{"as":[{asks}],"bs":[{bids}]}},"book-1000","XBT/USD"]"#));
    // A removal of nothing, with the checksum of what is there.
    apply(
        &mut feed,
        r#"[0,{"a":[["9.00000","0.00000000","1582905487.684110"]],"c":"974947235"},"book-1000","XBT/USD"]"#,
    );
    assert_eq!(gaps(&mut feed), []);
}

#[test]
fn coinbase_trades_name_the_resting_side() {
    let mut feed = feed(CryptoVenue::Coinbase, "BTC-USD");
    let trade = |kind: &str, id: u64| {
        format!(
            r#"{{"type":"{kind}","trade_id":{id},"side":"sell","size":"0.5","price":"61737.63","product_id":"BTC-USD","sequence":50,"time":"2021-04-17T16:43:37.089723Z"}}"#
        )
    };
    let before = apply(&mut feed, &trade("last_match", 9))[0].change.unwrap();
    assert_eq!((before.trade.unwrap().aggressor, before.volume, before.trades), (Some(Side::Bid), 0, 0));
    let next = apply(&mut feed, &trade("match", 10))[0].change.unwrap();
    assert_eq!((next.volume, next.volume_decimals, next.trades), (5, 1, 1));
    // After a cut the last trade shows how many were missed, itself included.
    feed.disconnected();
    feed.connected();
    apply(&mut feed, &trade("last_match", 13));
    assert_eq!(gaps(&mut feed)[0].kind, GapKind::Trades { first: 11, last: 13 });
}

/// The counters of each symbol: a message counts once for a symbol, however many of its rows name the symbol.
#[test]
fn messages_snapshots_and_gaps_are_counted_for_each_symbol() {
    let mut feed = VenueFeed::new(VenueSettings::new(CryptoVenue::Bitmex, ["XBTUSD", "ETHUSD"]));
    feed.connected();
    let of = |feed: &VenueFeed| {
        let of_symbol = feed.symbols().map(|it| {
            let SymbolCounters { messages, snapshots, gaps, arrived } = it.counters;
            (it.symbol.to_owned(), it.is_joined, [messages, snapshots, gaps], arrived)
        });
        of_symbol.collect::<Vec<_>>()
    };
    let nothing = |symbol: &str| (symbol.to_owned(), false, [0; 3], None);
    assert_eq!(of(&feed), [nothing("XBTUSD"), nothing("ETHUSD")]);
    feed.arrives(Nanos(7));
    apply(&mut feed, BITMEX_PARTIAL);
    assert_eq!(of(&feed), [("XBTUSD".to_owned(), true, [1, 1, 0], Some(Nanos(7))), nothing("ETHUSD")]);
    feed.arrives(Nanos(9));
    let row = |symbol: &str| format!(r#"{{"symbol":"{symbol}","side":"Sell","size":1,"price":2}}"#);
    let rows = [row("XBTUSD"), row("ETHUSD"), row("XBTUSD")].join(",");
    apply(&mut feed, &format!(r#"{{"table":"trade","action":"insert","data":[{rows}]}}"#));
    apply(
        &mut feed,
        r#"{"table":"orderBookL2","action":"update","data":[{"symbol":"XBTUSD","id":1,"side":"Buy","size":5}]}"#,
    );
    // A failed fetch of a snapshot is no message.
    feed.snapshot_failed("ETHUSD");
    let wanted = [
        ("XBTUSD".to_owned(), false, [3, 1, 1], Some(Nanos(9))),
        ("ETHUSD".to_owned(), false, [1, 0, 0], Some(Nanos(9))),
    ];
    assert_eq!(of(&feed), wanted);
    feed.reset();
    assert_eq!(of(&feed), wanted, "counters stay");
}

#[test]
fn a_refusal_is_passed_on() {
    for (venue, message, says) in [
        (
            CryptoVenue::Binance,
            r#"{"error":{"code":2,"msg":"Invalid request: unknown stream"},"id":1}"#,
            "unknown stream",
        ),
        (
            CryptoVenue::Coinbase,
            r#"{"type":"error","message":"Failed to subscribe","reason":"X-Y is not valid"}"#,
            "X-Y",
        ),
        (
            CryptoVenue::Kraken,
            r#"{"errorMessage":"Currency pair not supported","event":"subscriptionStatus"}"#,
            "pair",
        ),
        (CryptoVenue::Bitmex, r#"{"status":400,"error":"Unknown table: x","meta":{}}"#, "Unknown table"),
    ] {
        let mut feed = feed(venue, "X");
        apply(&mut feed, message);
        let said = feed.next_refusal().unwrap();
        assert!(said.contains(says), "{said}");
    }
}

const VENUES: [CryptoVenue; 4] =
    [CryptoVenue::Binance, CryptoVenue::Coinbase, CryptoVenue::Kraken, CryptoVenue::Bitmex];

#[test]
fn damaged_messages_are_counted_and_change_nothing() {
    let mut feed = feed(CryptoVenue::Bitmex, "XBTUSD");
    apply(&mut feed, BITMEX_PARTIAL);
    let before = shown(feed.book("XBTUSD").unwrap(), Side::Ask);
    for (end, _) in BITMEX_PARTIAL.char_indices().skip(1) {
        assert!(feed.apply(&BITMEX_PARTIAL.as_bytes()[..end]).is_err());
    }
    assert_eq!(feed.apply(b"[[[[[[[[[[[[[[[[[[[[[[[["), Err(VenueFault::Syntax));
    let huge = BITMEX_PARTIAL.replace("80.5", "99999999999999999999999");
    assert_eq!(feed.apply(huge.as_bytes()), Err(VenueFault::Number));
    assert_eq!(shown(feed.book("XBTUSD").unwrap(), Side::Ask), before);
    assert_eq!(feed.counters().malformed, BITMEX_PARTIAL.len() as u64 + 1);
}

/// Messages of all venues, as material for damage.
const MATERIAL: [&str; 8] = [
    r#"{"data":{"e":"depthUpdate","E":1,"s":"S","U":1,"u":2,"b":[["1.5","2"]],"a":[["3","0"]]}}"#,
    r#"{"snapshot":"S","data":{"lastUpdateId":1,"bids":[["1","2"]],"asks":[["3","4"]]}}"#,
    r#"{"type":"snapshot","product_id":"S","bids":[["1","2"]],"asks":[["3","4"]]}"#,
    r#"{"type":"l2update","product_id":"S","changes":[["buy","1","2"]],"time":"2021-04-17T16:43:37.075687Z"}"#,
    r#"[1,{"as":[["1.5","2.0","1.5"]],"bs":[["1.0","2.0","1.5"]]},"book-1000","S"]"#,
    r#"[1,{"a":[["1.5","2.0","1.5"]],"c":"77"},"book-1000","S"]"#,
    r#"[1,[["1.5","2.0","1.5","b","l",""]],"trade","S"]"#,
    r#"{"table":"orderBookL2","action":"partial","data":[{"symbol":"S","id":1,"side":"Buy","size":5,"price":1}]}"#,
];

proptest! {
    /// No text makes a feed fail, and its memory stays bounded.
    #[test]
    fn no_message_makes_a_feed_fail(
        messages in prop::collection::vec((0_usize..8, any::<prop::sample::Index>(), any::<u8>(), 0_u8..3), 1..60)
    ) {
        for venue in VENUES {
            let mut settings = VenueSettings::new(venue, ["S"]);
            (settings.max_levels, settings.max_waiting_bytes) = (4, 400);
            let mut feed = VenueFeed::new(settings);
            feed.connected();
            for (material, at, byte, damage) in &messages {
                let mut bytes = MATERIAL[*material].as_bytes().to_vec();
                let at = at.index(bytes.len());
                match damage {
                    0 => {}
                    1 => bytes[at] = *byte,
                    _ => bytes.truncate(at),
                }
                let _ = feed.apply(&bytes);
                while feed.more().is_some() {}
                requests(&mut feed);
                let book = feed.book("S").unwrap();
                prop_assert!(book.len(Side::Bid) <= 4 && book.len(Side::Ask) <= 4);
            }
        }
    }

    #[test]
    fn no_bytes_make_a_feed_fail(messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..40)) {
        for venue in VENUES {
            let mut feed = VenueFeed::new(VenueSettings::new(venue, ["S"]));
            feed.connected();
            for bytes in &messages {
                let _ = feed.apply(bytes);
                while feed.more().is_some() {}
            }
        }
    }
}
