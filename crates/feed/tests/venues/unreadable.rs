//! Messages that cannot be read or applied: which books they set apart, and how often new snapshots are requested.

use tapeline_feed::itch::Side;
use tapeline_feed::venues::{CryptoVenue, GapKind, VenueFeed, VenueRequest, VenueSettings, snapshot_message};
use tapeline_nanos::Nanos;

use super::{apply, gaps, requests, shown};

const SYMBOLS: [&str; 2] = ["XA", "XB"];

/// A snapshot of a venue's book, as a message.
fn snapshot(venue: CryptoVenue, symbol: &str) -> Vec<u8> {
    match venue {
        CryptoVenue::Binance => {
            snapshot_message(symbol, br#"{"lastUpdateId":7,"bids":[["1","2"]],"asks":[["3","4"]]}"#)
        }
        CryptoVenue::Coinbase => {
            format!(r#"{{"type":"snapshot","product_id":"{symbol}","bids":[["1","2"]],"asks":[["3","4"]]}}"#).into()
        }
        CryptoVenue::Kraken => {
            format!(r#"[1,{{"as":[["3","4","1"]],"bs":[["1","2","1"]]}},"book-1000","{symbol}"]"#).into()
        }
        CryptoVenue::Bitmex => format!(
            r#"{{"table":"orderBookL2","action":"partial","data":[{{"symbol":"{symbol}","id":1,"side":"Buy","size":2,"price":1}},{{"symbol":"{symbol}","id":2,"side":"Sell","size":4,"price":3}}]}}"#
        )
        .into(),
    }
}

/// A difference of a venue's book with this price.
fn difference(venue: CryptoVenue, symbol: &str, price: &str) -> String {
    match venue {
        CryptoVenue::Binance => {
            format!(
                r#"{{"data":{{"e":"depthUpdate","E":1,"s":"{symbol}","U":1,"u":9,"b":[["{price}","5"]],"a":[]}}}}"#
            )
        }
        CryptoVenue::Coinbase => format!(
            r#"{{"type":"l2update","product_id":"{symbol}","changes":[["buy","{price}","5"]],"time":"2021-04-17T16:43:37Z"}}"#
        ),
        CryptoVenue::Kraken => format!(r#"[1,{{"b":[["{price}","5","1"]]}},"book-1000","{symbol}"]"#),
        CryptoVenue::Bitmex => format!(
            r#"{{"table":"orderBookL2","action":"insert","data":[{{"symbol":"{symbol}","id":3,"side":"Buy","size":5,"price":{price}}}]}}"#
        ),
    }
}

/// A feed whose books are joined.
fn joined(venue: CryptoVenue) -> VenueFeed {
    let mut feed = VenueFeed::new(VenueSettings::new(venue, SYMBOLS));
    feed.connected();
    for symbol in SYMBOLS {
        if venue == CryptoVenue::Binance {
            apply(&mut feed, &difference(venue, symbol, "1.5"));
        }
        feed.apply(&snapshot(venue, symbol)).unwrap();
    }
    assert!(feed.is_whole());
    requests(&mut feed);
    feed
}

fn are_joined(feed: &VenueFeed) -> Vec<bool> {
    feed.symbols().map(|symbol| symbol.is_joined).collect()
}

/// What a venue is asked for new snapshots of these symbols.
fn resubscriptions(venue: CryptoVenue, symbols: &[&str]) -> Vec<VenueRequest> {
    let list =
        |name: &str| symbols.iter().map(|symbol| format!("\"{name}{symbol}\"")).collect::<Vec<_>>().join(",");
    if venue == CryptoVenue::Binance {
        let fetch = |symbol: &&str| VenueRequest::Snapshot {
            symbol: (*symbol).to_owned(),
            query: format!("symbol={symbol}&limit=1000"),
        };
        return symbols.iter().map(fetch).collect();
    }
    let text = |what: &str| match venue {
        CryptoVenue::Coinbase => {
            format!(r#"{{"type":"{what}","product_ids":[{}],"channels":["level2_batch"]}}"#, list(""))
        }
        CryptoVenue::Kraken => format!(
            r#"{{"event":"{what}","pair":[{}],"subscription":{{"name":"book","depth":1000}}}}"#,
            list("")
        ),
        _ => format!(r#"{{"op":"{what}","args":[{}]}}"#, list("orderBookL2:")),
    };
    ["unsubscribe", "subscribe"].map(|what| VenueRequest::Send(text(what))).to_vec()
}

const VENUES: [CryptoVenue; 4] =
    [CryptoVenue::Binance, CryptoVenue::Coinbase, CryptoVenue::Kraken, CryptoVenue::Bitmex];

#[test]
fn a_message_that_cannot_be_applied_sets_its_book_apart_until_the_next_snapshot() {
    for venue in VENUES {
        let mut feed = joined(venue);
        // A number of twenty digits: the message is whole, but no book can have it.
        let bad = difference(venue, "XB", "99999999999999999999");
        feed.apply(bad.as_bytes()).unwrap_err();
        assert_eq!(are_joined(&feed), [true, false], "{venue:?}");
        let [gap] = &gaps(&mut feed)[..] else { panic!("{venue:?}: one gap") };
        assert_eq!((gap.symbol.as_deref(), gap.kind), (Some("XB"), GapKind::Unreadable), "{venue:?}");
        assert_eq!(requests(&mut feed), resubscriptions(venue, &["XB"]));
        // Differences of the old subscription do not join the book.
        apply(&mut feed, &difference(venue, "XB", "1.75"));
        assert_eq!((are_joined(&feed), requests(&mut feed)), (vec![true, false], vec![]), "{venue:?}");
        feed.apply(&snapshot(venue, "XB")).unwrap();
        assert!(feed.is_whole(), "{venue:?}");
        let bids = shown(feed.book("XB").unwrap(), Side::Bid);
        assert_eq!(bids.last(), Some(&("1".to_owned(), "2".to_owned())), "{venue:?}");
        assert_eq!((feed.counters().malformed, feed.counters().gaps), (1, 1), "{venue:?}");
    }
}

#[test]
fn a_damaged_text_may_concern_every_book() {
    for venue in VENUES {
        for bad in ["", "not JSON", "{\"a\":", "[7"] {
            let mut feed = joined(venue);
            feed.apply(bad.as_bytes()).unwrap_err();
            if venue == CryptoVenue::Binance {
                // The next number shows whether a difference is missing.
                assert_eq!((feed.is_whole(), requests(&mut feed)), (true, vec![]), "{bad}");
                continue;
            }
            assert_eq!(are_joined(&feed), [false, false], "{venue:?} {bad}");
            let [gap] = &gaps(&mut feed)[..] else { panic!("{venue:?}: one gap") };
            assert_eq!((gap.symbol.as_deref(), gap.kind), (None, GapKind::Unreadable), "{venue:?}");
            assert_eq!(requests(&mut feed), resubscriptions(venue, &SYMBOLS));
        }
    }
}

#[test]
fn messages_without_their_levels_are_not_empty_books() {
    let mut feed = joined(CryptoVenue::Coinbase);
    for bad in [
        r#"{"type":"snapshot","product_id":"XA","bids":[["1","2"]]}"#,
        r#"{"type":"l2update","product_id":"XA","time":"2021-04-17T16:43:37Z"}"#,
    ] {
        feed.apply(bad.as_bytes()).unwrap_err();
        assert_eq!(are_joined(&feed), [false, true], "{bad}");
        feed.apply(&snapshot(CryptoVenue::Coinbase, "XA")).unwrap();
    }
    let mut feed = joined(CryptoVenue::Bitmex);
    let bad = difference(CryptoVenue::Bitmex, "XA", "2").replace(r#""symbol":"XA","#, "");
    feed.apply(bad.as_bytes()).unwrap_err();
    assert_eq!(are_joined(&feed), [false, false]);
}

#[test]
fn trades_that_cannot_be_read_concern_no_book() {
    for (venue, bad) in [
        (CryptoVenue::Binance, r#"{"e":"trade","E":1,"s":"XA","t":5,"p":"7..5","q":"0.01","m":true}"#),
        (CryptoVenue::Binance, r#"{"u":400,"s":"XA","b":"25.35","B":"-","a":"25.36","A":"40.66"}"#),
        (CryptoVenue::Coinbase, r#"{"type":"match","trade_id":7,"product_id":"XA","size":"9"}"#),
        (CryptoVenue::Kraken, r#"[1,[["1.5","2.0","now","b","l",""]],"trade","XA"]"#),
        (CryptoVenue::Bitmex, r#"{"table":"trade","action":"insert","data":[{"symbol":"XA","size":"?"}]}"#),
    ] {
        let mut feed = joined(venue);
        feed.apply(bad.as_bytes()).unwrap_err();
        assert_eq!((feed.is_whole(), requests(&mut feed)), (true, vec![]), "{bad}");
    }
}

/// A level that is unknown sets one book apart; the rows of the others behind it count.
#[test]
fn rows_behind_an_unknown_level_are_applied() {
    let mut feed = joined(CryptoVenue::Bitmex);
    let message = r#"{"table":"orderBookL2","action":"update","data":[{"symbol":"XA","id":9,"side":"Buy","size":5},{"symbol":"XB","id":1,"side":"Buy","size":77}]}"#;
    apply(&mut feed, message);
    assert_eq!(are_joined(&feed), [false, true]);
    assert_eq!(shown(feed.book("XB").unwrap(), Side::Bid), [("1".to_owned(), "77".to_owned())]);
}

/// A venue that sends bad messages without end, and a snapshot after each request.
#[test]
fn pauses_between_requests_double_up_to_half_a_minute_and_end_with_peace() {
    for venue in VENUES {
        let mut feed = joined(venue);
        let bad = difference(venue, "XA", "99999999999999999999");
        let second = |ns: u64| ns / 1_000_000_000;
        let mut asked = Vec::new();
        // Ten messages a second, for ten minutes.
        for tick in 0..6_000 {
            let now = Nanos(1_000_000_000_000 + tick * 100_000_000);
            feed.request_due(now);
            feed.arrives(now);
            if !requests(&mut feed).is_empty() {
                asked.push(tick);
                feed.apply(&snapshot(venue, "XA")).unwrap();
            }
            feed.apply(bad.as_bytes()).unwrap_err();
            gaps(&mut feed);
        }
        let pauses: Vec<u64> =
            asked.windows(2).map(|pair| second((pair[1] - pair[0]) * 100_000_000)).collect();
        assert_eq!(pauses[..8], [0, 0, 1, 2, 4, 8, 16, 30], "{venue:?}");
        assert!(pauses[8..].iter().all(|pause| *pause == 30) && asked.len() < 30, "{venue:?} {pauses:?}");
        // Peace, and then one more: at once.
        let now = Nanos(2_000_000_000_000);
        feed.request_due(now);
        feed.arrives(now);
        feed.apply(&snapshot(venue, "XA")).unwrap();
        requests(&mut feed);
        let later = Nanos(now.0 + 61_000_000_000);
        feed.arrives(later);
        feed.apply(bad.as_bytes()).unwrap_err();
        assert_eq!(requests(&mut feed), resubscriptions(venue, &["XA"]));
    }
}

#[test]
fn a_snapshot_that_does_not_come_on_the_stream_is_requested_again() {
    for venue in [CryptoVenue::Coinbase, CryptoVenue::Kraken, CryptoVenue::Bitmex] {
        let mut feed = joined(venue);
        let second = |count: u64| Nanos((1_000 + count) * 1_000_000_000);
        feed.arrives(second(0));
        feed.apply(difference(venue, "XB", "99999999999999999999").as_bytes()).unwrap_err();
        let asked = requests(&mut feed);
        assert!(!asked.is_empty(), "{venue:?}");
        feed.request_due(second(29));
        assert_eq!(requests(&mut feed), [], "{venue:?}");
        feed.request_due(second(30));
        assert_eq!(requests(&mut feed), asked, "{venue:?}");
        feed.apply(&snapshot(venue, "XB")).unwrap();
        feed.request_due(second(90));
        assert_eq!(requests(&mut feed), [], "{venue:?}");
    }
}

#[test]
fn a_subscription_that_is_refused_is_made_again_for_each_book_by_itself() {
    for venue in [CryptoVenue::Coinbase, CryptoVenue::Kraken, CryptoVenue::Bitmex] {
        let mut feed = VenueFeed::new(VenueSettings::new(venue, SYMBOLS));
        let at = |ms: u64| Nanos(1_000_000_000_000 + ms * 1_000_000);
        let asked = |feed: &mut VenueFeed, ms| {
            feed.request_due(at(ms));
            requests(feed)
        };
        feed.connected();
        assert!(!asked(&mut feed, 0).is_empty(), "{venue:?}: the subscription");
        assert_eq!(asked(&mut feed, 29_999), [], "{venue:?}");
        assert_eq!(asked(&mut feed, 30_000), subscriptions(venue, "XA"));
        assert_eq!(asked(&mut feed, 30_249), [], "{venue:?}");
        assert_eq!(asked(&mut feed, 30_250), subscriptions(venue, "XB"));
        feed.apply(&snapshot(venue, "XB")).unwrap();
        // The venue does not know the other one.
        assert_eq!(asked(&mut feed, 59_999), [], "{venue:?}");
        assert_eq!(asked(&mut feed, 60_000), subscriptions(venue, "XA"));
        // A new connection begins anew.
        feed.disconnected();
        assert_eq!(asked(&mut feed, 95_000), [], "{venue:?}");
        feed.connected();
        assert!(!asked(&mut feed, 95_000).is_empty(), "{venue:?}");
        assert_eq!(asked(&mut feed, 124_000), [], "{venue:?}");
        assert_eq!(asked(&mut feed, 125_000), subscriptions(venue, "XA"));
    }
}

/// What a venue is asked for a symbol whose first subscription it may have refused: the trades too, if both were in one request.
fn subscriptions(venue: CryptoVenue, symbol: &str) -> Vec<VenueRequest> {
    let trades = |text: String| match venue {
        CryptoVenue::Coinbase => text.replace(r#""level2_batch""#, r#""level2_batch","matches","heartbeat""#),
        CryptoVenue::Bitmex => {
            text.replace(&format!(r#"{symbol}""#), &format!(r#"{symbol}","trade:{symbol}""#))
        }
        _ => text,
    };
    let with_trades = |request| match request {
        VenueRequest::Send(text) => VenueRequest::Send(trades(text)),
        other => other,
    };
    resubscriptions(venue, &[symbol]).into_iter().map(with_trades).collect()
}

#[test]
fn books_that_never_come_do_not_keep_others_back() {
    let symbols: Vec<String> = (0..200).map(|number| format!("X{number}")).collect();
    let mut feed =
        VenueFeed::new(VenueSettings::new(CryptoVenue::Kraken, symbols.iter().map(String::as_str)));
    feed.connected();
    let mut asked = vec![0; symbols.len()];
    // Two minutes and a half, looked at ten times a second.
    for tick in 0..1_500 {
        feed.request_due(Nanos(1_000_000_000_000 + tick * 100_000_000));
        for request in requests(&mut feed).into_iter().skip(if tick == 0 { 2 } else { 0 }) {
            let VenueRequest::Send(text) = request else { panic!("{request:?}") };
            let is_of = |symbol: &String| text.contains(&format!("[\"{symbol}\"]"));
            asked[symbols.iter().position(is_of).unwrap()] += usize::from(text.contains("\"subscribe\""));
        }
    }
    let (least, most) = (asked.iter().min(), asked.iter().max());
    assert!(least >= Some(&1) && most <= Some(&3), "{asked:?}");
}
