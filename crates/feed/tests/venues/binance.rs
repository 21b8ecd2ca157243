//! Binance's rule for snapshots and differences, message by message.

use tapeline_feed::itch::Side;
use tapeline_feed::venues::{CryptoVenue, GapKind, VenueRequest, snapshot_message};

use super::{apply, feed, gaps, requests, shown};

const SYMBOL: &str = "BTCUSDT";

fn spot(first: u64, last: u64, bid: &str) -> String {
    format!(
        r#"{{"stream":"btcusdt@depth@100ms","data":{{"e":"depthUpdate","E":1723161255208,"s":"BTCUSDT","U":{first},"u":{last},"b":[["{bid}","1.50000000"]],"a":[]}}}}"#
    )
}

fn futures(first: u64, last: u64, before: u64, bid: &str) -> String {
    spot(first, last, bid).replace(r#","b":"#, &format!(r#","pu":{before},"T":1723161255207,"b":"#))
}

fn snapshot(update: u64) -> String {
    let body =
        format!(r#"{{"lastUpdateId":{update},"bids":[["90.00000000","1.0"]],"asks":[["101.0","2.0"]]}}"#);
    String::from_utf8(snapshot_message(SYMBOL, body.as_bytes())).unwrap()
}

fn asks_for_snapshot() -> Vec<VenueRequest> {
    vec![VenueRequest::Snapshot { symbol: SYMBOL.into(), query: "symbol=BTCUSDT&limit=1000".into() }]
}

fn bids(feed: &tapeline_feed::venues::VenueFeed) -> Vec<String> {
    shown(feed.book(SYMBOL).unwrap(), Side::Bid).into_iter().map(|(price, _)| price).collect()
}

#[test]
fn spot_differences_join_the_snapshot_that_contains_a_part_of_them() {
    let mut feed = feed(CryptoVenue::Binance, SYMBOL);
    apply(&mut feed, &spot(10, 12, "91"));
    assert_eq!(requests(&mut feed), asks_for_snapshot());
    apply(&mut feed, &spot(13, 15, "92"));
    assert_eq!(requests(&mut feed), [], "it is requested once");
    assert!(!feed.is_whole());
    let results = apply(&mut feed, &snapshot(12));
    assert!(feed.is_whole() && results.len() == 1 && results[0].image);
    assert_eq!(bids(&feed), ["92", "90"], "12 is in the snapshot, 15 is not");
    apply(&mut feed, &spot(16, 16, "93"));
    assert_eq!(bids(&feed)[0], "93");
    assert_eq!((feed.counters().old_differences, feed.counters().differences), (1, 2));
    assert_eq!(gaps(&mut feed), []);
}

#[test]
fn a_snapshot_older_than_the_differences_is_fetched_again() {
    let mut feed = feed(CryptoVenue::Binance, SYMBOL);
    apply(&mut feed, &spot(20, 22, "91"));
    requests(&mut feed);
    apply(&mut feed, &snapshot(18));
    assert!(!feed.is_whole());
    assert_eq!(requests(&mut feed), asks_for_snapshot());
    apply(&mut feed, &snapshot(19));
    assert!(feed.is_whole(), "19 is right before 20");
    assert_eq!((bids(&feed), feed.counters().old_snapshots), (vec!["91".to_owned(), "90".to_owned()], 1));
}

#[test]
fn a_missing_difference_is_told_and_the_book_joins_a_new_snapshot() {
    for is_spot in [true, false] {
        let message = |first, last, before, bid| match is_spot {
            true => spot(first, last, bid),
            false => futures(first, last, before, bid),
        };
        let mut feed = feed(CryptoVenue::Binance, SYMBOL);
        apply(&mut feed, &message(10, 12, 9, "91"));
        apply(&mut feed, &snapshot(11));
        apply(&mut feed, &message(13, 14, 12, "92"));
        assert!(feed.is_whole());
        requests(&mut feed);
        // 15 to 17 are missing.
        apply(&mut feed, &message(18, 19, 17, "93"));
        let [gap] = &gaps(&mut feed)[..] else { panic!("one gap") };
        assert_eq!(gap.kind, GapKind::Updates { first: 15, last: 17 });
        assert_eq!(
            gap.to_string(),
            "BTCUSDT: updates 15 to 17 of the book are missing: its snapshot is requested again"
        );
        assert_eq!((feed.is_whole(), requests(&mut feed)), (false, asks_for_snapshot()));
        apply(&mut feed, &message(20, 21, 19, "94"));
        assert_eq!(bids(&feed)[0], "92", "nothing is applied meanwhile");
        apply(&mut feed, &snapshot(18));
        assert_eq!((feed.is_whole(), bids(&feed)), (true, ["94", "93", "90"].map(str::to_owned).to_vec()));
    }
}

#[test]
fn futures_chain_by_the_update_before() {
    let mut feed = feed(CryptoVenue::Binance, SYMBOL);
    // Numbers of futures have holes: only `pu` tells.
    apply(&mut feed, &futures(100, 110, 95, "91"));
    apply(&mut feed, &snapshot(105));
    apply(&mut feed, &futures(150, 160, 110, "92"));
    assert_eq!((gaps(&mut feed).len(), feed.is_whole()), (0, true));
    apply(&mut feed, &futures(170, 180, 165, "93"));
    assert_eq!(gaps(&mut feed)[0].kind, GapKind::Updates { first: 161, last: 165 });
}

#[test]
fn a_futures_difference_right_behind_the_snapshot_joins_it() {
    for first in [106, 150] {
        let mut feed = feed(CryptoVenue::Binance, SYMBOL);
        apply(&mut feed, &futures(first, 160, 105, "91"));
        requests(&mut feed);
        apply(&mut feed, &snapshot(105));
        assert_eq!(
            (gaps(&mut feed), feed.is_whole(), requests(&mut feed)),
            (vec![], true, vec![]),
            "{first}"
        );
        assert_eq!(bids(&feed), ["91", "90"]);
        // A number before the snapshot's does not lead to it.
        apply(&mut feed, &futures(170, 180, 104, "93"));
        assert_eq!(gaps(&mut feed)[0].kind, GapKind::Updates { first: 161, last: 161 });
    }
}

#[test]
fn the_newer_of_book_and_ticker_is_published() {
    let mut feed = feed(CryptoVenue::Binance, SYMBOL);
    let ticker = |update: u64, bid: &str| {
        format!(
            r#"{{"stream":"btcusdt@bookTicker","data":{{"u":{update},"s":"BTCUSDT","b":"{bid}","B":"3","a":"101.0","A":"2"}}}}"#
        )
    };
    apply(&mut feed, &spot(10, 12, "91"));
    apply(&mut feed, &snapshot(12));
    let best = |results: Vec<tapeline_feed::normalise::Applied>| {
        results[0].change.map(|draft| (draft.bid.unwrap().price.mantissa, draft.changed.ask))
    };
    assert_eq!(best(apply(&mut feed, &ticker(14, "95"))), Some((95, false)));
    assert_eq!(best(apply(&mut feed, &ticker(13, "80"))), None, "an older one");
    assert_eq!(best(apply(&mut feed, &spot(13, 13, "94"))), None, "the book is older than the ticker");
    assert_eq!(best(apply(&mut feed, &spot(14, 15, "96"))), Some((96, false)));
}

#[test]
fn trades_have_sides_numbers_and_gaps() {
    let mut feed = feed(CryptoVenue::Binance, SYMBOL);
    let trade = |id: u64, is_maker: bool| {
        format!(
            r#"{{"e":"trade","E":1723161255343,"s":"BTCUSDT","t":{id},"p":"61837.63000000","q":"0.02000000","T":1723161255342,"m":{is_maker},"M":true}}"#
        )
    };
    let first = apply(&mut feed, &trade(7, true))[0].change.unwrap();
    let told = first.trade.unwrap();
    assert_eq!(
        (told.price.mantissa, told.price.decimals, told.size, told.size_decimals),
        (6_183_763, 2, 2, 2)
    );
    assert_eq!((told.id, told.aggressor, first.trades, first.volume), (7, Some(Side::Ask), 1, 2));
    let next = apply(&mut feed, &trade(8, false))[0].change.unwrap();
    assert_eq!((next.trade.unwrap().aggressor, next.volume, next.volume_decimals), (Some(Side::Bid), 4, 2));
    assert_eq!(gaps(&mut feed), []);
    apply(&mut feed, &trade(11, false));
    assert_eq!(gaps(&mut feed)[0].kind, GapKind::Trades { first: 9, last: 10 });
    assert!(apply(&mut feed, &trade(11, false))[0].change.is_none(), "a trade counts once");
    // The numbers are remembered over a cut.
    feed.disconnected();
    feed.connected();
    apply(&mut feed, &trade(13, false));
    assert_eq!(gaps(&mut feed)[0].kind, GapKind::Trades { first: 12, last: 12 });
}

#[test]
fn a_cut_makes_every_book_apart() {
    let mut feed = feed(CryptoVenue::Binance, SYMBOL);
    apply(&mut feed, &spot(10, 12, "91"));
    apply(&mut feed, &snapshot(12));
    assert!(feed.is_whole());
    feed.disconnected();
    assert!(!feed.is_whole());
    feed.connected();
    let [VenueRequest::Send(text)] = &requests(&mut feed)[..] else { panic!("one subscription") };
    assert_eq!(
        text,
        r#"{"method":"SUBSCRIBE","params":["btcusdt@depth@100ms","btcusdt@bookTicker","btcusdt@trade"],"id":1}"#
    );
    apply(&mut feed, &spot(100, 101, "95"));
    assert_eq!(requests(&mut feed), asks_for_snapshot());
    apply(&mut feed, &snapshot(100));
    assert_eq!((feed.is_whole(), bids(&feed)), (true, ["95", "90"].map(str::to_owned).to_vec()));
}

#[test]
fn differences_that_wait_are_bounded() {
    let mut settings = tapeline_feed::venues::VenueSettings::new(CryptoVenue::Binance, [SYMBOL]);
    settings.max_waiting_bytes = 1_000;
    let mut feed = tapeline_feed::venues::VenueFeed::new(settings);
    feed.connected();
    requests(&mut feed);
    for update in 1..100 {
        apply(&mut feed, &spot(update, update, "91"));
    }
    assert!(feed.counters().dropped_differences > 90);
    apply(&mut feed, &snapshot(50));
    assert!(!feed.is_whole(), "the differences after 50 were dropped");
    apply(&mut feed, &snapshot(99));
    assert!(feed.is_whole());
}

/// A venue's day has no end: its books, numbers, volume and counts go on over midnight, and only the time of the day begins again.
#[test]
fn midnight_changes_nothing_but_the_time_of_the_day() {
    /// 2024-08-09 00:00 UTC, in ms.
    const MIDNIGHT: u64 = 1_723_161_600_000;
    const DAY_MS: u64 = 86_400_000;
    let mut feed = feed(CryptoVenue::Binance, SYMBOL);
    let difference =
        |number: u64, bid: &str, at: u64| spot(number, number, bid).replace("1723161255208", &at.to_string());
    let trade = |number: u64, at: u64| {
        format!(
            r#"{{"e":"trade","E":{at},"s":"BTCUSDT","t":{number},"p":"95.0","q":"2.0","T":{at},"m":true,"M":true}}"#
        )
    };
    apply(&mut feed, &difference(10, "91", MIDNIGHT - 3_000));
    apply(&mut feed, &snapshot(9));
    assert!(feed.is_whole());
    requests(&mut feed);
    for (number, at) in
        (11..).zip([MIDNIGHT - 2, MIDNIGHT - 1, MIDNIGHT, MIDNIGHT + 1, MIDNIGHT + DAY_MS + 5])
    {
        let quoted = apply(&mut feed, &difference(number, &(81 + number).to_string(), at))[0];
        let draft = quoted.change.unwrap();
        assert!(!quoted.image && quoted.event.0 == at * 1_000_000, "{quoted:?}");
        assert_eq!(draft.quote_ns, Some(at % DAY_MS * 1_000_000), "{at}");
        let traded = apply(&mut feed, &trade(number, at))[0].change.unwrap();
        assert_eq!(traded.trade_ns, Some(at % DAY_MS * 1_000_000), "{at}");
        let count = number - 10;
        assert_eq!((traded.trades, traded.volume, traded.volume_decimals), (count, 2 * count, 0), "{at}");
        assert_eq!(bids(&feed).len() as u64, 2 + count, "{at}");
    }
    assert_eq!((gaps(&mut feed), requests(&mut feed), feed.counters().differences), (vec![], vec![], 6));
    assert!(feed.is_whole());
}
