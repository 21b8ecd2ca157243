//! Crypto venues: any messages, one after another. The first byte selects the venue.

use tapeline_feed::itch::Side;
use tapeline_feed::levels::MOST_LEVELS;
use tapeline_feed::normalise::Instrument;
use tapeline_feed::venues::{CryptoVenue, PriceBook, VenueFeed, VenueSettings, VenueSymbol};

use super::pieces;

const MOST: usize = 8;
const VENUES: [CryptoVenue; 4] =
    [CryptoVenue::Binance, CryptoVenue::Coinbase, CryptoVenue::Kraken, CryptoVenue::Bitmex];

/// What is kept is bounded, sides are sorted, and a message that cannot be read is counted.
pub(crate) fn messages(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let venue = VENUES[usize::from(*first) % VENUES.len()];
    let mut settings = VenueSettings::new(venue, ["S", "T"]);
    (settings.max_levels, settings.max_waiting_bytes) = (MOST, 512);
    let mut feed = VenueFeed::new(settings);
    feed.connected();
    let (mut malformed, mut taken) = (0, 0);
    for piece in pieces(rest) {
        malformed += u64::from(feed.apply(piece).is_err());
        while feed.more().is_some() {}
        assert_eq!(feed.counters().malformed, malformed);
        for symbol in ["S", "T"] {
            let book = feed.book(symbol).unwrap();
            sorted(book, Side::Bid);
            sorted(book, Side::Ask);
        }
        for instrument in [Instrument(1), Instrument(2)] {
            let shown = feed.levels().of(instrument).map_or(0, |levels| levels.len());
            assert!(shown <= 2 * MOST_LEVELS && feed.image(instrument).is_some());
        }
        let of_symbols =
            |count: fn(&VenueSymbol<'_>) -> u64| feed.symbols().map(|symbol| count(&symbol)).sum::<u64>();
        assert_eq!(feed.counters().snapshots, of_symbols(|symbol| symbol.counters.snapshots));
        assert_eq!(feed.counters().gaps, of_symbols(|symbol| symbol.counters.gaps));
        taken += 1;
        assert!(feed.symbols().all(|symbol| symbol.counters.messages <= taken));
        while feed.next_request().is_some() {}
        while feed.next_gap().is_some() {}
        while feed.next_refusal().is_some() {}
    }
}

fn sorted(book: &PriceBook, side: Side) {
    let prices: Vec<_> = book.quotes(side).map(|quote| (quote.price.mantissa, quote.size)).collect();
    assert!(prices.len() <= MOST && prices.iter().all(|(_, size)| *size > 0));
    assert!(prices.windows(2).all(|pair| match side {
        Side::Bid => pair[0].0 > pair[1].0,
        Side::Ask => pair[0].0 < pair[1].0,
    }));
}

/// Whole streams of each venue.
pub(crate) fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let stream = |venue: u8, messages: &[&str]| {
        let mut bytes = vec![venue];
        for message in messages {
            bytes.push(u8::try_from(message.len()).expect("a short message"));
            bytes.extend_from_slice(message.as_bytes());
        }
        bytes
    };
    vec![
        (
            "binance",
            stream(
                0,
                &[
                    r#"{"data":{"e":"depthUpdate","E":1,"s":"S","U":1,"u":2,"b":[["1.5","2"]],"a":[["3","1"]]}}"#,
                    r#"{"snapshot":"S","data":{"lastUpdateId":1,"bids":[["1","2"]],"asks":[["3.25","4"]]}}"#,
                    r#"{"e":"depthUpdate","E":1,"s":"S","U":3,"u":9,"b":[["1.5","0"]],"a":[]}"#,
                    r#"{"e":"depthUpdate","E":1,"s":"S","U":3,"u":9,"pu":9,"b":[["1.5","0"]],"a":[]}"#,
                    r#"{"e":"trade","E":1,"T":1,"s":"T","t":5,"p":"7.5","q":"0.01","m":true}"#,
                    r#"{"u":400,"s":"S","b":"25.35","B":"31.21","a":"25.36","A":"40.66"}"#,
                ],
            ),
        ),
        (
            "binance-futures",
            stream(
                0,
                &[
                    r#"{"data":{"e":"depthUpdate","E":1,"T":1,"s":"S","U":1,"u":4,"pu":0,"b":[["1.5","2"]],"a":[]}}"#,
                    r#"{"snapshot":"S","data":{"lastUpdateId":3,"bids":[["1","2"]],"asks":[["3.25","4"]]}}"#,
                    r#"{"e":"depthUpdate","E":1,"T":1,"s":"S","U":5,"u":9,"pu":4,"b":[["1.50","0.0"]],"a":[["3","1"]]}"#,
                    r#"{"e":"depthUpdate","E":1,"T":1,"s":"S","U":12,"u":13,"pu":11,"b":[["1","0"]],"a":[]}"#,
                    r#"{"snapshot":"S","data":{"lastUpdateId":2,"bids":[],"asks":[]}}"#,
                    r#"{"snapshot":"S","data":{"lastUpdateId":12,"bids":[["1","2"]],"asks":[]}}"#,
                    r#"{"e":"trade","E":1,"T":1,"s":"S","t":5,"p":"7.5","q":"0.01","X":"MARKET","m":true}"#,
                    r#"{"e":"trade","E":1,"T":1,"s":"S","t":9,"p":"7.5","q":"0.01","X":"MARKET","m":false}"#,
                ],
            ),
        ),
        (
            "coinbase",
            stream(
                1,
                &[
                    r#"{"type":"snapshot","product_id":"S","bids":[["1","2"]],"asks":[["3","4"]]}"#,
                    r#"{"type":"l2update","product_id":"S","changes":[["buy","1.5","2"],["sell","3","0"]],"time":"2021-04-17T16:43:37.07Z"}"#,
                    r#"{"type":"match","trade_id":7,"side":"sell","size":"9","price":"1","product_id":"S","time":"2021-04-17T16:43:37Z"}"#,
                ],
            ),
        ),
        (
            "kraken",
            stream(
                2,
                &[
                    r#"[1,{"as":[["1.5","2.0","1.5"]],"bs":[["1.0","2.0","1.5"]]},"book-1000","S"]"#,
                    r#"[1,{"a":[["1.5","2.0","1.5"]]},{"b":[["1.0","0.0","1.5"]],"c":"77"},"book-1000","S"]"#,
                    r#"[1,[["1.5","2.0","1.5","b","l",""],["1","2","3","s","m",""]],"trade","S"]"#,
                ],
            ),
        ),
        (
            "bitmex",
            stream(
                3,
                &[
                    r#"{"table":"orderBookL2","action":"partial","data":[{"symbol":"S","id":1,"side":"Buy","size":5,"price":1}]}"#,
                    r#"{"table":"orderBookL2","action":"update","data":[{"symbol":"S","id":1,"side":"Buy","size":6}]}"#,
                    r#"{"table":"orderBookL2","action":"delete","data":[{"symbol":"S","id":2,"side":"Buy"}]}"#,
                    r#"{"table":"trade","action":"insert","data":[{"symbol":"S","side":"Sell","size":3,"price":1.5e3}]}"#,
                ],
            ),
        ),
    ]
}
