//! Reports on ITCH messages, for people and programs: the result of `tapeline feed inspect` and of
//! `tapeline plant tally`. The JSON is in wire units (prices with four decimals, nanoseconds of the day).

use std::collections::BTreeMap;
use std::fmt::Display;

use serde::Serialize;
use tapeline_console::output::table;
use tapeline_feed::book::{Book, Quote, Volume};
use tapeline_feed::itch::{ByType, MessageKind, Price4, Side};
use tapeline_measure::figures::thousands;

use super::report::{or_dash, sides, top_table};
use super::tally::FeedTally;

#[derive(Debug, Serialize)]
pub(crate) struct ItchReport {
    pub(super) messages: u64,
    message_bytes: u64,
    by_type: BTreeMap<char, u64>,
    type_names: BTreeMap<char, &'static str>,
    wrong_length: BTreeMap<char, u64>,
    longer_than_known: BTreeMap<char, u64>,
    empty_messages: u64,
    unknown_types: BTreeMap<String, u64>,
    first_timestamp_ns: Option<u64>,
    last_timestamp_ns: Option<u64>,
    first_time: Option<String>,
    last_time: Option<String>,
    timestamps_going_back: u64,
    system_events: Vec<(String, u64)>,
    directory: BTreeMap<u16, String>,
    trading_state: BTreeMap<String, (String, String)>,
    messages_by_symbol: BTreeMap<String, u64>,
    unknown_order_references: BTreeMap<char, u64>,
    duplicate_order_references: BTreeMap<char, u64>,
    excess_shares: BTreeMap<char, u64>,
    live_orders_end: usize,
    max_live_orders: usize,
    volume: BTreeMap<String, VolumeReport>,
    books_price_shares_orders: BTreeMap<String, BookReport>,
}

#[derive(Debug, Serialize)]
struct VolumeReport {
    traded_shares: u64,
    #[serde(rename = "hidden_shares_P")]
    hidden_shares: u64,
    #[serde(rename = "cross_shares_Q")]
    cross_shares: u64,
    nonprintable_shares: u64,
    trades: u64,
    notional_price4: u128,
    last_trade_price_qty_ts_match: Option<(u32, u64, u64, u64)>,
}

#[derive(Debug, Serialize)]
struct BookReport {
    bids: Vec<(u32, u64, u32)>,
    asks: Vec<(u32, u64, u32)>,
    bid_levels: usize,
    ask_levels: usize,
    bid_shares: u64,
    ask_shares: u64,
}

/// A table of the known types with letter, name and count, the most frequent first, then of the unknown ones; `all` is
/// the total.
pub(super) fn type_table<'a>(
    mut known: Vec<(String, &'a str, u64)>,
    unknown: impl Iterator<Item = (&'a String, &'a u64)>,
    all: u64,
) -> String {
    known.sort_by_key(|(.., count)| std::cmp::Reverse(*count));
    known.extend(unknown.map(|(letter, count)| (letter.clone(), "unknown", *count)));
    let mut types = table(["type", "letter", "messages", "share"]);
    for (letter, name, count) in known {
        let share = format!("{:.2} %", count as f64 * 100.0 / all.max(1) as f64);
        types.add_row([name.to_owned(), letter, thousands(count), share]);
    }
    types.add_row(["all".to_owned(), String::new(), thousands(all), String::new()]);
    types.to_string()
}

/// Message types with nonzero counts.
pub(super) fn letters(counts: &ByType) -> BTreeMap<char, u64> {
    counts.iter().map(|(kind, count)| (kind.letter() as char, count)).collect()
}

/// A remark about counts by message type, if there are any.
pub(super) fn letters_line(what: &str, counts: &BTreeMap<char, u64>) -> Option<String> {
    let counts: Vec<_> = counts.iter().map(|(letter, count)| format!("{letter} {count}")).collect();
    (!counts.is_empty()).then(|| format!("{what}: {}", counts.join(", ")))
}

/// The stock of a book; its locate if the directory has not named it.
fn named(locate: impl Display, book: &Book) -> String {
    match book.symbol() {
        symbol if symbol.is_blank() => format!("#{locate}"),
        symbol => symbol.to_string(),
    }
}

impl ItchReport {
    /// Builds the report, with books of `symbols` of `levels` price levels a side.
    pub(crate) fn of(tally: &FeedTally, symbols: &[String], levels: usize) -> Self {
        let summary = &tally.summary;
        let (books, counters) = (summary.books(), summary.counters());
        let (known, unknown): (Vec<_>, Vec<_>) =
            summary.counters().messages.iter().partition(|(kind, _)| matches!(kind, MessageKind::Known(_)));
        let name_of =
            |locate| books.book(locate).map_or_else(|| format!("#{locate}"), |book| named(locate, book));
        Self {
            messages: summary.messages,
            message_bytes: summary.message_bytes,
            by_type: known.iter().map(|(kind, count)| (kind.letter() as char, *count)).collect(),
            type_names: known
                .iter()
                .filter_map(|(kind, _)| Some((kind.letter() as char, kind.known()?.name())))
                .collect(),
            wrong_length: letters(&counters.short),
            longer_than_known: letters(&counters.longer),
            empty_messages: counters.empty,
            unknown_types: unknown
                .iter()
                .map(|(kind, count)| (kind.letter().escape_ascii().to_string(), *count))
                .collect(),
            first_timestamp_ns: summary.first_ns_of_day,
            last_timestamp_ns: summary.last_ns_of_day,
            first_time: summary.first_ns_of_day.map(time_of_day),
            last_time: summary.last_ns_of_day.map(time_of_day),
            timestamps_going_back: summary.times_going_back,
            system_events: summary.system_events.iter().map(|(code, ns)| (code.to_string(), *ns)).collect(),
            directory: books
                .iter()
                .filter(|(_, book)| book.is_listed())
                .map(|(locate, book)| (locate.0, book.symbol().to_string()))
                .collect(),
            trading_state: books
                .iter()
                .filter(|(_, book)| book.trading_state().0.is_ascii_graphic())
                .map(|(locate, book)| {
                    (named(locate, book), (book.trading_state().to_string(), book.reason().to_string()))
                })
                .collect(),
            messages_by_symbol: tally
                .busiest()
                .into_iter()
                .map(|(locate, count)| (name_of(locate), count))
                .collect(),
            unknown_order_references: letters(&books.counters().unknown_reference),
            duplicate_order_references: letters(&books.counters().duplicate_reference),
            excess_shares: letters(&books.counters().excess_shares),
            live_orders_end: books.live_orders(),
            max_live_orders: books.counters().max_live_orders,
            volume: books
                .iter()
                .filter(|(_, book)| book.volume().trades > 0 || book.volume().nonprintable_shares > 0)
                .map(|(locate, book)| (named(locate, book), VolumeReport::of(book.volume())))
                .collect(),
            books_price_shares_orders: books
                .iter()
                .map(|(locate, book)| (named(locate, book), book))
                .filter(|(name, _)| symbols.contains(name))
                .map(|(name, book)| (name, BookReport::of(book, levels)))
                .collect(),
        }
    }

    /// Number of messages that are not ITCH 5.0: unknown type, or a length that does not match the type.
    pub(super) fn foreign(&self) -> u64 {
        let lengths = self.wrong_length.values().chain(self.longer_than_known.values());
        lengths.chain(self.unknown_types.values()).sum::<u64>() + self.empty_messages
    }

    /// Whether this is ITCH 5.0: most messages have a known type and its length.
    pub(super) fn is_itch(&self) -> bool {
        self.foreign() * 2 <= self.messages
    }

    /// The names of all stocks in the feed.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.directory.values().chain(self.messages_by_symbol.keys()).map(String::as_str).collect()
    }

    /// Tables for people, with the `top` stocks by number of messages.
    pub(crate) fn tables(&self, tally: &FeedTally, top: usize) -> Vec<String> {
        let mut parts = vec![self.types(), self.remarks()];
        let books = tally.summary.books();
        let mut busiest = table(["stock", "messages", "trades", "shares", "last", "bid", "ask", "state"]);
        for (locate, count) in tally.busiest().into_iter().take(top) {
            let Some(book) = books.book(locate) else { continue };
            let quote = |quote| or_dash(quote, |quote: Quote| format!("{} × {}", quote.price, quote.shares));
            let state = Some(book.trading_state()).filter(|state| state.0.is_ascii_graphic());
            busiest.add_row([
                named(locate, book),
                thousands(count),
                thousands(book.volume().trades),
                thousands(book.volume().traded_shares),
                or_dash(book.volume().last, |last| last.price.to_string()),
                quote(book.top().bid),
                quote(book.top().ask),
                state.map_or_else(String::new, |state| state.to_string()),
            ]);
        }
        parts.push(top_table("stocks", self.messages_by_symbol.len(), top, &busiest));
        parts.extend(self.books_price_shares_orders.iter().map(|(name, book)| book.table(name)));
        parts
    }

    fn types(&self) -> String {
        let known = self.by_type.iter();
        let known = known.map(|(letter, count)| (letter.to_string(), self.type_names[letter], *count));
        type_table(known.collect(), self.unknown_types.iter(), self.messages)
    }

    /// The remarks, one a line.
    fn remarks(&self) -> String {
        let time = |time: &Option<String>| or_dash(time.clone(), |time| time);
        let mut text = format!("from {} to {} in New York", time(&self.first_time), time(&self.last_time));
        if self.timestamps_going_back > 0 {
            text.push_str(&format!(", {} times going back", thousands(self.timestamps_going_back)));
        }
        if !self.system_events.is_empty() {
            let events: Vec<_> =
                self.system_events.iter().map(|(code, ns)| format!("{code} {}", time_of_day(*ns))).collect();
            text.push_str(&format!("\nsystem events: {}", events.join(", ")));
        }
        text.push_str(&format!(
            "\n{} live orders at the end, {} at most, {} stocks in the directory",
            thousands(self.live_orders_end as u64),
            thousands(self.max_live_orders as u64),
            thousands(self.directory.len() as u64)
        ));
        for (what, counts) in [
            ("messages shorter than their type", &self.wrong_length),
            ("messages longer than their type", &self.longer_than_known),
            ("references to unknown orders", &self.unknown_order_references),
            ("orders added twice", &self.duplicate_order_references),
            ("more shares taken than there were", &self.excess_shares),
        ] {
            if let Some(line) = letters_line(what, counts) {
                text.push_str(&format!("\n{line}"));
            }
        }
        if self.empty_messages > 0 {
            text.push_str(&format!("\nempty messages: {}", thousands(self.empty_messages)));
        }
        text
    }
}

impl VolumeReport {
    fn of(volume: &Volume) -> Self {
        Self {
            traded_shares: volume.traded_shares,
            hidden_shares: volume.hidden_shares,
            cross_shares: volume.cross_shares,
            nonprintable_shares: volume.nonprintable_shares,
            trades: volume.trades,
            notional_price4: volume.notional,
            last_trade_price_qty_ts_match: volume
                .last
                .map(|last| (last.price.0, last.shares, last.ts_ns, last.match_number.0)),
        }
    }
}

impl BookReport {
    fn of(book: &Book, levels: usize) -> Self {
        let side = |side| {
            book.levels(side).take(levels).map(|level| (level.price.0, level.shares, level.orders)).collect()
        };
        Self {
            bids: side(Side::Bid),
            asks: side(Side::Ask),
            bid_levels: book.levels(Side::Bid).len(),
            ask_levels: book.levels(Side::Ask).len(),
            bid_shares: book.shares(Side::Bid),
            ask_shares: book.shares(Side::Ask),
        }
    }

    fn table(&self, name: &str) -> String {
        let cells = |side: &[(u32, u64, u32)]| -> Vec<_> {
            let levels = side.iter();
            levels
                .map(|(price, size, of)| [of.to_string(), thousands(*size), Price4(*price).to_string()])
                .collect()
        };
        let headings = "bid orders, shares, bid, ask, shares, ask orders";
        let rows = sides(headings, &cells(&self.bids), &cells(&self.asks));
        format!(
            "{name}: {} bid levels with {} shares, {} ask levels with {}\n{rows}",
            self.bid_levels,
            thousands(self.bid_shares),
            self.ask_levels,
            thousands(self.ask_shares)
        )
    }
}

/// `09:30:00.000000000`.
fn time_of_day(ns: u64) -> String {
    let (seconds, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
    format!("{:02}:{:02}:{:02}.{rest:09}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_the_day_keep_their_nanoseconds() {
        assert_eq!(time_of_day(11_234_909_934_345), "03:07:14.909934345");
    }
}
