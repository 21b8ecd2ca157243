//! Streams made of the kinds of messages that the venues send, in the proportions of the recordings.

use flate2::Crc;
use tapeline_feed::itch::Side;
use tapeline_feed::venues::{CryptoVenue, VenueFeed, VenueSettings, snapshot_message};

use super::Stream;
use super::harness::VARIED;

/// Levels of each side of a snapshot.
const LEVELS: usize = 200;

/// The price of a level below (bids) or above (asks) the middle, in steps of 0.5.
fn price(side: Side, level: usize) -> String {
    let steps = if side == Side::Bid { 120_000 - level } else { 120_001 + level };
    format!("{}.{}", steps / 2, steps % 2 * 5)
}

/// A level near the best more often than a distant one, and its size, which is sometimes zero.
fn change(number: usize) -> (Side, usize, String) {
    let side = if number.is_multiple_of(2) { Side::Bid } else { Side::Ask };
    let level = (number * number * 7 + number) % (if number.is_multiple_of(3) { LEVELS } else { 12 });
    (side, level, format!("{}.{:03}", number % 4, number % 4 * 125))
}

fn levels(side: Side, write: impl Fn(&str) -> String) -> String {
    (0..LEVELS).map(|level| write(&price(side, level))).collect::<Vec<_>>().join(",")
}

fn stream(
    venue: CryptoVenue,
    symbol: &str,
    first: Vec<Vec<u8>>,
    later: impl FnMut(usize) -> String,
) -> Stream {
    let mut messages = first;
    messages.extend((messages.len()..VARIED).map(later).map(String::into_bytes));
    Stream { venue, symbols: vec![symbol.to_owned()], messages }
}

/// One message in fourteen is a difference of 50 levels, one in four a trade, the others are best bids and asks.
pub(crate) fn binance() -> Stream {
    let level = |price: &str| format!("[\"{price}\",\"1.250\"]");
    let body = format!(
        r#"{{"lastUpdateId":2,"bids":[{}],"asks":[{}]}}"#,
        levels(Side::Bid, level),
        levels(Side::Ask, level)
    );
    let mut last = 1;
    let mut difference = move |number: usize| {
        let side = |wanted: Side| {
            let all = (number..number + 50).map(change).filter(|(side, ..)| *side == wanted);
            all.map(|(side, level, size)| format!("[\"{}\",\"{size}\"]", price(side, level)))
                .collect::<Vec<_>>()
                .join(",")
        };
        let (before, first) = (last, last + 1);
        last = number * 100;
        format!(
            r#"{{"stream":"btcusdt@depth@0ms","data":{{"e":"depthUpdate","E":1723161256299,"T":1723161256298,"s":"BTCUSDT","U":{first},"u":{last},"pu":{before},"b":[{}],"a":[{}]}}}}"#,
            side(Side::Bid),
            side(Side::Ask)
        )
    };
    let first = vec![difference(1).into_bytes(), snapshot_message("BTCUSDT", body.as_bytes())];
    let mut trade = 0;
    stream(CryptoVenue::Binance, "BTCUSDT", first, |number| {
        if number % 14 == 2 {
            return difference(number);
        }
        if number.is_multiple_of(4) {
            trade += 1;
            return format!(
                r#"{{"stream":"btcusdt@trade","data":{{"e":"trade","E":1723161256322,"T":1723161256322,"s":"BTCUSDT","t":{trade},"p":"60000.50","q":"0.006","X":"MARKET","m":false}}}}"#
            );
        }
        format!(
            r#"{{"stream":"btcusdt@bookTicker","data":{{"e":"bookTicker","u":{},"s":"BTCUSDT","b":"{}","B":"2.{:03}","a":"{}","A":"2.510","T":1723161256313,"E":1723161256313}}}}"#,
            number * 100 + 50,
            price(Side::Bid, number % 3),
            number,
            price(Side::Ask, number % 2)
        )
    })
}

/// Changes of one level, and one trade in a hundred messages.
pub(crate) fn coinbase() -> Stream {
    let level = |price: &str| format!("[\"{price}\",\"1.25000000\"]");
    let first = format!(
        r#"{{"type":"snapshot","product_id":"BTC-USD","bids":[{}],"asks":[{}]}}"#,
        levels(Side::Bid, level),
        levels(Side::Ask, level)
    );
    stream(CryptoVenue::Coinbase, "BTC-USD", vec![first.into_bytes()], |number| {
        let (side, level, size) = change(number);
        let (price, word) = (price(side, level), if side == Side::Bid { "buy" } else { "sell" });
        if number % 100 == 1 {
            return format!(
                r#"{{"type":"match","trade_id":{},"maker_order_id":"7af0b7f8-5e2f-4bd0-9a4c-5ba0a5f6b2d1","taker_order_id":"0f7e6c52-0a4e-4a37-9d36-8a6b1a1c3a7e","side":"{word}","size":"0.00150000","price":"{price}","product_id":"BTC-USD","sequence":{number},"time":"2021-04-17T16:43:37.089723Z"}}"#,
                number / 100 + 1
            );
        }
        format!(
            r#"{{"type":"l2update","product_id":"BTC-USD","changes":[["{word}","{price}","{size}"]],"time":"2021-04-17T16:43:37.075687Z"}}"#
        )
    })
}

/// Changes of one level, each with the checksum of the book.
pub(crate) fn kraken() -> Stream {
    let level = |price: &str| format!("[\"{price}0000\",\"1.25000000\",\"1618677817.123456\"]");
    let first = format!(
        r#"[560,{{"as":[{}],"bs":[{}]}},"book-1000","XBT/USD"]"#,
        levels(Side::Ask, level),
        levels(Side::Bid, level)
    );
    let mut feed = VenueFeed::new(VenueSettings::new(CryptoVenue::Kraken, ["XBT/USD"]));
    feed.connected();
    feed.apply(first.as_bytes()).unwrap();
    stream(CryptoVenue::Kraken, "XBT/USD", vec![first.into_bytes()], |number| {
        let (side, level, size) = change(number);
        let (price, letter) = (price(side, level), if side == Side::Bid { 'b' } else { 'a' });
        let message = |checksum: &str| {
            format!(
                r#"[560,{{"{letter}":[["{price}0000","{size}00000","1618677817.123456"]]{checksum}}},"book-1000","XBT/USD"]"#
            )
        };
        feed.apply(message("").as_bytes()).unwrap();
        let mut crc = Crc::new();
        for side in [Side::Ask, Side::Bid] {
            for quote in feed.book("XBT/USD").unwrap().quotes(side).take(10) {
                crc.update(format!("{}{}", quote.price.mantissa, quote.size).as_bytes());
            }
        }
        message(&format!(r#","c":"{}""#, crc.sum()))
    })
}

/// New sizes of two levels by number; one message in eight is a trade.
pub(crate) fn bitmex() -> Stream {
    let number_of = |side: Side, level: usize| match side {
        Side::Bid => 17_999_000_000 + level,
        Side::Ask => 17_998_000_000 + level,
    };
    let word = |side: Side| if side == Side::Bid { "Buy" } else { "Sell" };
    let row = |side: Side, level: usize| {
        let (id, price) = (number_of(side, level), price(side, level));
        format!(
            r#"{{"symbol":"XBTUSD","id":{id},"side":"{}","size":100,"price":{price},"timestamp":"2021-04-17T16:43:37.089Z"}}"#,
            word(side)
        )
    };
    let rows =
        [Side::Ask, Side::Bid].into_iter().flat_map(|side| (0..LEVELS).map(move |level| (side, level)));
    let rows = rows.map(|(side, level)| row(side, level)).collect::<Vec<_>>().join(",");
    let first = format!(
        r#"{{"table":"orderBookL2","action":"partial","keys":["symbol","id","side"],"data":[{rows}]}}"#
    );
    stream(CryptoVenue::Bitmex, "XBTUSD", vec![first.into_bytes()], |number| {
        if number.is_multiple_of(8) {
            return format!(
                r#"{{"table":"trade","action":"insert","data":[{{"timestamp":"2021-04-17T16:43:37.089Z","symbol":"XBTUSD","side":"Buy","size":{number},"price":60000.5,"tickDirection":"PlusTick","trdMatchID":"00000000-0000-0000-0000-000000000000"}}]}}"#
            );
        }
        let changed = |number: usize| {
            let (side, level, _) = change(number);
            format!(
                r#"{{"symbol":"XBTUSD","id":{},"side":"{}","size":{},"timestamp":"2021-04-17T16:43:37.089Z"}}"#,
                number_of(side, level),
                word(side),
                number * 100
            )
        };
        format!(
            r#"{{"table":"orderBookL2","action":"update","data":[{},{}]}}"#,
            changed(number),
            changed(number + 1)
        )
    })
}
