//! Crypto venues: recorded streams against an independent parser's results, the join of snapshots and differences, hostile messages.

mod binance;
mod others;
mod recorded;
mod unreadable;

use tapeline_feed::itch::Side;
use tapeline_feed::normalise::Applied;
use tapeline_feed::venues::{CryptoVenue, PriceBook, VenueFeed, VenueGap, VenueRequest, VenueSettings};

/// A feed whose connection has begun; its requests for subscriptions are taken.
pub(super) fn feed(venue: CryptoVenue, symbol: &str) -> VenueFeed {
    let mut feed = VenueFeed::new(VenueSettings::new(venue, [symbol]));
    feed.connected();
    while feed.next_request().is_some() {}
    feed
}

/// All results of a message.
pub(super) fn apply(feed: &mut VenueFeed, message: &str) -> Vec<Applied> {
    let first = feed.apply(message.as_bytes()).expect("a message of the venue");
    let mut all = vec![first];
    all.extend(std::iter::from_fn(|| feed.more()));
    all
}

pub(super) fn requests(feed: &mut VenueFeed) -> Vec<VenueRequest> {
    std::iter::from_fn(|| feed.next_request()).collect()
}

pub(super) fn gaps(feed: &mut VenueFeed) -> Vec<VenueGap> {
    std::iter::from_fn(|| feed.next_gap()).collect()
}

/// Prices and sizes of a side as people write them, without zeros at the end.
pub(super) fn shown(book: &PriceBook, side: Side) -> Vec<(String, String)> {
    let all = book.quotes(side);
    all.map(|quote| {
        let size = i64::try_from(quote.size).expect("a size of a test");
        (text(quote.price.mantissa, quote.price.decimals), text(size, quote.size_decimals))
    })
    .collect()
}

/// A decimal number without zeros at the end.
pub(super) fn text(mantissa: i64, decimals: u8) -> String {
    let power = 10_i64.pow(u32::from(decimals));
    let text = format!("{}.{:0width$}", mantissa / power, mantissa % power, width = usize::from(decimals));
    trimmed(&text)
}

/// A number without zeros at the end, such as those of `expected.json`.
pub(super) fn trimmed(number: &str) -> String {
    match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => number.to_owned(),
    }
}
