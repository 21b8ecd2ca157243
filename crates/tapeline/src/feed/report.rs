//! What `tapeline feed inspect` prints. The JSON carries everything that was found, in the wire's own numbers (prices with four
//! decimals, nanoseconds); the tables are an excerpt for people.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use tapeline_feed::book::{Book, Volume};
use tapeline_feed::itch::{ByType, Kind, Price4, Side};
use tapeline_feed::line::{Line, LineStatistics};
use tapeline_measure::figures::{self, thousands};

use super::inspect::{Findings, Protocols};
use crate::output::{self, table};

/// One file.
#[derive(Debug, Serialize)]
pub(super) struct FileReport {
    pub(super) name: String,
    pub(super) format: &'static str,
    /// Of the file as it lies on the disk.
    pub(super) bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) packets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) datagrams: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) non_udp: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) payload_bytes: Option<u64>,
    /// Packets that gave no datagram, by reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) skipped: BTreeMap<&'static str, u64>,
    /// Datagrams by destination.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) dest: BTreeMap<String, u64>,
    #[serde(rename = "pcap_first_ns", skip_serializing_if = "Option::is_none")]
    pub(super) first_ns: Option<u64>,
    #[serde(rename = "pcap_last_ns", skip_serializing_if = "Option::is_none")]
    pub(super) last_ns: Option<u64>,
    pub(super) max_payload: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes_consumed: Option<u64>,
    pub(super) trailing_bytes: u64,
    /// Whether a file of messages ended as a whole one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) end_marker: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

impl FileReport {
    pub(super) fn new(path: &Path, bytes: u64, format: &'static str) -> Self {
        Self {
            name: path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
            format,
            bytes,
            packets: None,
            datagrams: None,
            non_udp: None,
            payload_bytes: None,
            skipped: BTreeMap::new(),
            dest: BTreeMap::new(),
            first_ns: None,
            last_ns: None,
            max_payload: 0,
            bytes_consumed: None,
            trailing_bytes: 0,
            end_marker: None,
            error: None,
        }
    }
}

/// Everything.
#[derive(Debug, Serialize)]
pub(super) struct Report<'f> {
    protocol: &'static str,
    files: &'f [FileReport],
    #[serde(flatten)]
    feed: Option<FeedReport>,
    #[serde(flatten)]
    itch: Option<ItchReport>,
}

/// The MoldUDP64 feed that the lines carried.
#[derive(Debug, Serialize)]
struct FeedReport {
    sessions: Vec<String>,
    /// By line letter and kind, such as `A_data_packets`.
    counts: BTreeMap<String, u64>,
    first_delivery_by_feed: BTreeMap<String, u64>,
    unique_messages: u64,
    first_sequence: Option<u64>,
    next_sequence: Option<u64>,
    end_of_session_sequence: Option<u64>,
    missing_ranges: Vec<(u64, u64)>,
    missing_range_count: u64,
    missing_messages: u64,
    lines: BTreeMap<String, LineReport>,
}

#[derive(Debug, Serialize)]
struct LineReport {
    datagrams: u64,
    bytes: u64,
    data_packets: u64,
    heartbeats: u64,
    end_of_session: u64,
    messages: u64,
    first_deliveries: u64,
    duplicate_messages: u64,
    late_messages: u64,
    /// Messages that never came on this line.
    missing_messages: u64,
    stale_session_packets: u64,
    absurd_packets: u64,
    trailing_bytes: u64,
    malformed: BTreeMap<&'static str, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    behind_other_lines_ns: Option<SkewReport>,
}

#[derive(Debug, Serialize)]
struct SkewReport {
    min: i64,
    mean: f64,
    max: i64,
}

/// The ITCH messages.
#[derive(Debug, Serialize)]
struct ItchReport {
    messages: u64,
    message_bytes: u64,
    bytes_consumed: Option<u64>,
    trailing_bytes: u64,
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

impl<'f> Report<'f> {
    /// Puts together what was found; books of `symbols` with so many `levels` a side.
    pub(super) fn of(findings: &'f Findings, symbols: &[String], levels: usize) -> Self {
        let Protocols { mold, iex, itch_files, .. } = findings.protocols;
        let protocol = match (itch_files, mold, iex) {
            (1.., ..) => "ITCH 5.0",
            (_, 1.., _) => "ITCH 5.0 in MoldUDP64",
            (_, _, 1..) => "IEX-TP (protocol not known yet)",
            _ => "unknown",
        };
        let itch = itch_files > 0 || mold > 0;
        Self {
            protocol,
            files: &findings.files,
            feed: (mold > 0).then(|| FeedReport::of(findings)),
            itch: itch.then(|| ItchReport::of(findings, symbols, levels)),
        }
    }

    pub(super) fn print_json(&self) -> anyhow::Result<()> {
        output::print_json(self)
    }

    /// Prints tables; `top` stocks by messages.
    pub(super) fn print_tables(&self, findings: &Findings, top: usize) -> anyhow::Result<()> {
        let mut parts = vec![files_table(findings)];
        if let Some(feed) = &self.feed {
            parts.push(feed.tables());
        }
        match &self.itch {
            Some(itch) => parts.extend(itch.tables(findings, top)),
            None => parts.push(self.no_messages(findings)),
        }
        output::print(&parts.join("\n\n"))
    }

    fn no_messages(&self, findings: &Findings) -> String {
        match findings.protocols {
            Protocols { iex: 1.., .. } => {
                format!("{} segments of IEX-TP: protocol not known yet", thousands(findings.protocols.iex))
            }
            Protocols { other: 1.., .. } => {
                format!("{} datagrams of an unknown protocol", thousands(findings.protocols.other))
            }
            _ => "nothing to decode".to_owned(),
        }
    }
}

fn files_table(findings: &Findings) -> String {
    let mut files =
        table(["file", "format", "bytes", "packets", "datagrams", "left over", "from", "to (UTC)"]);
    for file in &findings.files {
        let count = |count: Option<u64>| count.map_or_else(|| "–".to_owned(), thousands);
        let time = |ns: Option<u64>| ns.map_or_else(|| "–".to_owned(), utc);
        files.add_row([
            file.name.clone(),
            file.format.to_owned(),
            thousands(file.bytes),
            count(file.packets),
            count(file.datagrams),
            thousands(file.trailing_bytes),
            time(file.first_ns),
            time(file.last_ns),
        ]);
    }
    let mut text = files.to_string();
    for file in &findings.files {
        for (destination, count) in &file.dest {
            text.push_str(&format!("\n{}: {} datagrams to {destination}", file.name, thousands(*count)));
        }
        for (reason, count) in &file.skipped {
            text.push_str(&format!("\n{}: {} packets left out: {reason}", file.name, thousands(*count)));
        }
    }
    text
}

/// A time of the capture; nanoseconds are kept.
fn utc(ns: u64) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(ns))
        .map_or_else(|_| ns.to_string(), |time| time.strftime("%Y-%m-%d %H:%M:%S.%9f").to_string())
}

impl FeedReport {
    fn of(findings: &Findings) -> Self {
        let (arbiter, summary) = (&findings.arbiter, &findings.tally.summary);
        let lines =
            (0..findings.files.len()).filter_map(Line::new).map(|line| (line.letter(), arbiter.line(line)));
        let mut counts = BTreeMap::new();
        let mut first = BTreeMap::new();
        let mut reports = BTreeMap::new();
        for (letter, line) in lines {
            for (kind, count) in [
                ("data_packets", line.data_packets),
                ("heartbeats", line.heartbeats),
                ("end_of_session", line.ends_of_session),
            ] {
                counts.insert(format!("{letter}_{kind}"), count);
            }
            *counts.entry("duplicate_messages".to_owned()).or_default() += line.duplicates;
            first.insert(letter.to_string(), line.first);
            reports.insert(letter.to_string(), LineReport::of(line));
        }
        Self {
            sessions: summary.sessions().iter().map(ToString::to_string).collect(),
            counts,
            first_delivery_by_feed: first,
            unique_messages: arbiter.statistics().delivered,
            first_sequence: summary.sequences().map(|(first, _)| first),
            next_sequence: arbiter.next_sequence(),
            end_of_session_sequence: summary.end_of_session_sequence(),
            missing_ranges: summary.gaps().to_vec(),
            missing_range_count: summary.gap_count(),
            missing_messages: summary.missing_messages(),
            lines: reports,
        }
    }

    fn tables(&self) -> String {
        let mut lines = table([
            "line",
            "datagrams",
            "data",
            "heartbeats",
            "ends",
            "messages",
            "first here",
            "duplicates",
            "missing here",
            "malformed",
        ]);
        for (letter, line) in &self.lines {
            let malformed: u64 = line.malformed.values().sum();
            let counts = [
                line.datagrams,
                line.data_packets,
                line.heartbeats,
                line.end_of_session,
                line.messages,
                line.first_deliveries,
                line.duplicate_messages,
                line.missing_messages,
                malformed,
            ];
            lines.add_row(std::iter::once(letter.clone()).chain(counts.map(thousands)));
        }
        let mut text = lines.to_string();
        for (letter, line) in &self.lines {
            for (reason, count) in line.malformed.iter().filter(|(_, count)| **count > 0) {
                text.push_str(&format!("\n{letter}: {} datagrams malformed: {reason}", thousands(*count)));
            }
            if let Some(skew) = &line.behind_other_lines_ns {
                text.push_str(&format!(
                    "\n{letter}: second copies come {} after the first in the mean ({} to {})",
                    figures::signed_duration(skew.mean as i64),
                    figures::signed_duration(skew.min),
                    figures::signed_duration(skew.max)
                ));
            }
        }
        let number = |number: Option<u64>| number.map_or_else(|| "–".to_owned(), thousands);
        text.push_str(&format!(
            "\nsession {}: sequences {} up to {}, end of session {}",
            self.sessions.join(", "),
            number(self.first_sequence),
            number(self.next_sequence.map(|next| next.saturating_sub(1))),
            match self.end_of_session_sequence {
                Some(next) => format!("announced at {}", thousands(next)),
                None => "not announced".to_owned(),
            },
        ));
        if self.missing_range_count == 0 {
            text.push_str("\nno message is missing");
            return text;
        }
        const SHOWN: usize = 20;
        let ranges = self.missing_ranges.iter().take(SHOWN);
        let ranges: Vec<_> = ranges
            .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}–{last}") })
            .collect();
        let more = self.missing_range_count.saturating_sub(ranges.len() as u64);
        text.push_str(&format!(
            "\n{} messages are missing in {} gaps: {}{}",
            thousands(self.missing_messages),
            thousands(self.missing_range_count),
            ranges.join(", "),
            if more > 0 { format!(" and {} more", thousands(more)) } else { String::new() },
        ));
        text
    }
}

impl LineReport {
    fn of(line: &LineStatistics) -> Self {
        Self {
            datagrams: line.datagrams,
            bytes: line.bytes,
            data_packets: line.data_packets,
            heartbeats: line.heartbeats,
            end_of_session: line.ends_of_session,
            messages: line.messages,
            first_deliveries: line.first,
            duplicate_messages: line.duplicates,
            late_messages: line.late,
            missing_messages: line.missing(),
            stale_session_packets: line.stale_session,
            absurd_packets: line.absurd,
            trailing_bytes: line.trailing_bytes,
            malformed: line.malformed_by_reason().collect(),
            behind_other_lines_ns: line.skew.mean_ns().map(|mean| SkewReport {
                min: line.skew.min_ns,
                mean,
                max: line.skew.max_ns,
            }),
        }
    }
}

/// Letters with counts above zero.
fn letters(counts: &ByType) -> BTreeMap<char, u64> {
    counts.iter().map(|(kind, count)| (kind.letter() as char, count)).collect()
}

impl ItchReport {
    fn of(findings: &Findings, symbols: &[String], levels: usize) -> Self {
        let summary = &findings.tally.summary;
        let (books, counters) = (summary.books(), summary.counters());
        let (known, unknown): (Vec<_>, Vec<_>) =
            summary.by_type().iter().partition(|(kind, _)| matches!(kind, Kind::Known(_)));
        let named = |locate, book: &Book| match book.symbol() {
            symbol if symbol.is_blank() => format!("#{locate}"),
            symbol => symbol.to_string(),
        };
        let consumed = findings.files.iter().map(|file| file.bytes_consumed).sum::<Option<u64>>();
        Self {
            messages: summary.messages(),
            message_bytes: summary.message_bytes(),
            bytes_consumed: consumed,
            trailing_bytes: findings.files.iter().map(|file| file.trailing_bytes).sum(),
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
            first_timestamp_ns: summary.first_ns_of_day(),
            last_timestamp_ns: summary.last_ns_of_day(),
            first_time: summary.first_ns_of_day().map(time_of_day),
            last_time: summary.last_ns_of_day().map(time_of_day),
            timestamps_going_back: summary.times_going_back(),
            system_events: summary.system_events().iter().map(|(code, ns)| (code.to_string(), *ns)).collect(),
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
            messages_by_symbol: findings
                .tally
                .busiest()
                .into_iter()
                .map(|(locate, count)| {
                    (
                        books.book(locate).map_or_else(|| format!("#{locate}"), |book| named(locate, book)),
                        count,
                    )
                })
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

    fn tables(&self, findings: &Findings, top: usize) -> Vec<String> {
        let mut parts = vec![self.types(), self.remarks()];
        let books = findings.tally.summary.books();
        let mut busiest = table(["stock", "messages", "trades", "shares", "last", "bid", "ask", "state"]);
        for (locate, count) in findings.tally.busiest().into_iter().take(top) {
            let Some(book) = books.book(locate) else { continue };
            let quote = |quote: Option<tapeline_feed::book::Quote>| {
                quote.map_or_else(|| "–".to_owned(), |quote| format!("{} × {}", quote.price, quote.shares))
            };
            let name =
                if book.symbol().is_blank() { format!("#{locate}") } else { book.symbol().to_string() };
            let state = if book.trading_state().0.is_ascii_graphic() {
                book.trading_state().to_string()
            } else {
                String::new()
            };
            busiest.add_row([
                name,
                thousands(count),
                thousands(book.volume().trades),
                thousands(book.volume().traded_shares),
                book.volume().last.map_or_else(|| "–".to_owned(), |last| last.price.to_string()),
                quote(book.top().bid),
                quote(book.top().ask),
                state,
            ]);
        }
        let listed = self.messages_by_symbol.len();
        let heading = if listed > top {
            format!("the {top} busiest of {} stocks\n", thousands(listed as u64))
        } else {
            String::new()
        };
        parts.push(format!("{heading}{busiest}"));
        parts.extend(self.books_price_shares_orders.iter().map(|(name, book)| book.table(name)));
        parts
    }

    fn types(&self) -> String {
        let mut types = table(["type", "letter", "messages", "share"]);
        let mut rows: Vec<_> = self.by_type.iter().collect();
        rows.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let share = |count: u64| format!("{:.2} %", count as f64 * 100.0 / self.messages.max(1) as f64);
        for (letter, count) in rows {
            types.add_row([
                self.type_names[letter].to_owned(),
                letter.to_string(),
                thousands(*count),
                share(*count),
            ]);
        }
        for (letter, count) in &self.unknown_types {
            types.add_row(["unknown".to_owned(), letter.clone(), thousands(*count), share(*count)]);
        }
        types.add_row(["all".to_owned(), String::new(), thousands(self.messages), String::new()]);
        types.to_string()
    }

    /// What a line each says.
    fn remarks(&self) -> String {
        let time = |time: &Option<String>| time.clone().unwrap_or_else(|| "–".to_owned());
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
            if !counts.is_empty() {
                let counts: Vec<_> =
                    counts.iter().map(|(letter, count)| format!("{letter} {count}")).collect();
                text.push_str(&format!("\n{what}: {}", counts.join(", ")));
            }
        }
        if self.empty_messages > 0 {
            text.push_str(&format!("\nempty messages: {}", thousands(self.empty_messages)));
        }
        if self.trailing_bytes > 0 {
            text.push_str(&format!(
                "\n{} bytes at the end are no whole message or packet",
                self.trailing_bytes
            ));
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
        let mut rows = table(["bid orders", "shares", "bid", "ask", "shares", "ask orders"]);
        for level in 0..self.bids.len().max(self.asks.len()) {
            let cells = |side: &[(u32, u64, u32)]| match side.get(level) {
                Some((price, shares, orders)) => {
                    [orders.to_string(), thousands(*shares), Price4(*price).to_string()]
                }
                None => [const { String::new() }; 3],
            };
            let (bid, [orders, shares, price]) = (cells(&self.bids), cells(&self.asks));
            rows.add_row(bid.into_iter().chain([price, shares, orders]));
        }
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
        assert_eq!(utc(1_580_371_634_909_934_345), "2020-01-30 08:07:14.909934345");
    }
}
