//! Reports on captures of IEX, for people and programs. The JSON is in wire units: prices with four decimals,
//! nanoseconds since 1970.

use std::collections::BTreeMap;

use serde::Serialize;
use tapeline_console::output::table;
use tapeline_feed::iex::{
    IexBook, IexLastTrade, IexMessageType, IexPrice, IexQuote, IexVolume, Listing, MessageCounts, PerSymbol,
    Stream,
};
use tapeline_feed::itch::{ByType, Code, Side};
use tapeline_feed::line::Line;
use tapeline_measure::figures::thousands;

use super::iex::{IexFindings, Restart};
use super::report::utc;

/// The segments as captured, and their result.
#[derive(Debug, Serialize)]
pub(super) struct IexReport {
    #[serde(flatten)]
    whole: CountsReport,
    lines: BTreeMap<char, StreamReport>,
    unread_segments: u64,
    restart_policy: Restart,
    /// The result under this restart policy.
    result: ResultReport,
}

/// Messages by type and flags.
#[derive(Debug, Serialize)]
struct CountsReport {
    messages: u64,
    message_bytes: u64,
    by_type: BTreeMap<char, u64>,
    wrong_length: BTreeMap<char, u64>,
    longer_than_known: BTreeMap<char, u64>,
    empty_messages: u64,
    unknown_types: BTreeMap<String, u64>,
    system_events: Vec<(String, u64)>,
    message_ts_min: Option<u64>,
    message_ts_max: Option<u64>,
    trade_breaks: u64,
    quote_flags: BTreeMap<u8, u64>,
    sale_condition_flags: BTreeMap<u8, u64>,
    price_level_flags: BTreeMap<u8, u64>,
}

#[derive(Debug, Serialize)]
struct StreamReport {
    packets: u64,
    heartbeats: u64,
    messages: u64,
    first_seq: Option<u64>,
    next_seq: u64,
    seq_gaps: Vec<(u64, u64)>,
    seq_gap_count: u64,
    stream_offset_breaks: u64,
    final_stream_offset: u64,
    header: Vec<HeaderReport>,
    max_payload: usize,
    max_msgs_in_segment: u16,
    send_first_ns: Option<u64>,
    send_last_ns: Option<u64>,
    restart_count: u64,
    restarts: Vec<EpochReport>,
}

#[derive(Debug, Serialize)]
struct HeaderReport {
    protocol: String,
    channel: u32,
    session: u32,
    packets: u64,
}

#[derive(Debug, Serialize)]
struct EpochReport {
    epoch: usize,
    first_packet: u64,
    packets: u64,
    messages: u64,
    last_sequence: u64,
}

#[derive(Debug, Serialize)]
struct ResultReport {
    #[serde(flatten)]
    counts: CountsReport,
    dropped_as_duplicate: u64,
    missing_messages: u64,
    missing_ranges: Vec<(u64, u64)>,
    missing_range_count: u64,
    resets: u64,
    symbols: usize,
    symbols_with_quote: usize,
    symbols_with_book: usize,
    symbols_with_trading_status: usize,
    unknown_levels: u64,
    levels_without_room: u64,
    messages_without_room: u64,
    volume: BTreeMap<String, VolumeReport>,
    quotes_flags_ts_bidsz_bidpx_askpx_asksz: BTreeMap<String, QuoteReport>,
    quote_updates: BTreeMap<String, u64>,
    bbo_changes_at_event_end: BTreeMap<String, u64>,
    trading_status: BTreeMap<String, (String, String, String)>,
    security_directory_symbols: Vec<String>,
    official_prices: BTreeMap<String, (Option<i64>, Option<i64>)>,
    auction_messages: BTreeMap<String, u64>,
    books_price_size: BTreeMap<String, BookReport>,
}

/// Flags and time, size and price of the bid, price and size of the ask.
type QuoteReport = (u8, u64, u32, i64, i64, u32);

#[derive(Debug, Serialize)]
struct VolumeReport {
    volume: u64,
    trades: u64,
    notional_price4: i128,
    last_price_size_ts_id: Option<(i64, u32, u64, u64)>,
    high: Option<i64>,
    low: Option<i64>,
    broken_volume: u64,
    broken_trades: u64,
}

#[derive(Debug, Serialize)]
struct BookReport {
    bids: Vec<(i64, u32)>,
    asks: Vec<(i64, u32)>,
    bid_levels: usize,
    ask_levels: usize,
}

/// Message types with nonzero counts.
fn letters(counts: &ByType) -> BTreeMap<char, u64> {
    counts.iter().map(|(kind, count)| (kind.letter() as char, count)).collect()
}

/// Flags with nonzero counts.
fn flags(counts: &[u64; 256]) -> BTreeMap<u8, u64> {
    (0..=u8::MAX).zip(counts).filter(|(_, count)| **count > 0).map(|(flags, count)| (flags, *count)).collect()
}

impl IexReport {
    /// The names of all symbols in the feed.
    pub(super) fn names(&self) -> Vec<&str> {
        let result = &self.result;
        let spoken_of =
            [&result.quote_updates, &result.auction_messages].map(BTreeMap::keys).into_iter().flatten();
        let traded = result.volume.keys().chain(result.trading_status.keys());
        let listed = result.security_directory_symbols.iter();
        spoken_of.chain(traded).chain(listed).map(String::as_str).collect()
    }

    /// Builds the report, with books of `symbols` of `levels` price levels a side.
    pub(super) fn of(found: &IexFindings, symbols: &[String], levels: usize) -> Self {
        let lines =
            found.streams.iter().enumerate().filter_map(|(at, stream)| Some((Line::new(at)?, stream)));
        Self {
            whole: CountsReport::of(&found.whole),
            lines: lines.map(|(line, stream)| (line.letter(), StreamReport::of(stream))).collect(),
            unread_segments: found.unread,
            restart_policy: found.restart,
            result: ResultReport::of(found, symbols, levels),
        }
    }

    /// The protocol of the messages, such as `DEEP 1.0 in IEX-TP`.
    pub(super) fn protocol(found: &IexFindings) -> String {
        let sessions = found.streams.iter().flat_map(|stream| &stream.sessions);
        let mut names: Vec<_> = sessions.map(|(session, _)| session.protocol.to_string()).collect();
        names.sort_unstable();
        names.dedup();
        format!("{} in IEX-TP", names.join(", "))
    }

    /// Tables for people, with the `top` symbols by number of messages.
    pub(super) fn tables(&self, found: &IexFindings, top: usize) -> Vec<String> {
        let mut parts = vec![self.line_table(), self.whole.types(), self.remarks()];
        parts.push(busiest(found, top));
        parts.extend(self.result.books_price_size.iter().map(|(name, book)| book.table(name)));
        parts
    }

    fn line_table(&self) -> String {
        let mut lines = table([
            "line",
            "segments",
            "heartbeats",
            "messages",
            "gaps",
            "restarts",
            "sent from",
            "to (UTC)",
        ]);
        for (letter, line) in &self.lines {
            let time = |ns: Option<u64>| ns.map_or_else(|| "–".to_owned(), utc);
            lines.add_row([
                letter.to_string(),
                thousands(line.packets),
                thousands(line.heartbeats),
                thousands(line.messages),
                thousands(line.seq_gap_count),
                thousands(line.restart_count),
                time(line.send_first_ns),
                time(line.send_last_ns),
            ]);
        }
        let mut text = lines.to_string();
        for (letter, line) in &self.lines {
            for HeaderReport { protocol, channel, session, packets } in &line.header {
                let packets = thousands(*packets);
                text.push_str(&format!(
                    "\n{letter}: protocol {protocol}, channel {channel}, session {session}: {packets} segments"
                ));
            }
        }
        text
    }

    /// The remarks, one a line.
    fn remarks(&self) -> String {
        let mut lines = Vec::new();
        if let (Some(first), Some(last)) = (self.whole.message_ts_min, self.whole.message_ts_max) {
            lines.push(format!("events from {} to {} UTC", utc(first), utc(last)));
        }
        if !self.whole.system_events.is_empty() {
            let events: Vec<_> = self
                .whole
                .system_events
                .iter()
                .map(|(code, ns)| format!("{code} {}", &utc(*ns)[11..]))
                .collect();
            lines.push(format!("system events: {}", events.join(", ")));
        }
        let result = &self.result;
        if self.lines.values().any(|line| line.restart_count > 0) {
            lines.push(match self.restart_policy {
                Restart::Reset => format!(
                    "the sender began again; the last {} messages count, with --restart reset",
                    thousands(result.counts.messages)
                ),
                policy => format!(
                    "the sender began again; {} messages count and {} do not, with --restart {}",
                    thousands(result.counts.messages),
                    thousands(result.dropped_as_duplicate),
                    policy.name()
                ),
            });
        }
        lines.push(format!(
            "{} symbols: {} with quote updates, {} with price levels, {} with a trading status; {} trades broken",
            thousands(result.symbols as u64),
            thousands(result.symbols_with_quote as u64),
            thousands(result.symbols_with_book as u64),
            thousands(result.symbols_with_trading_status as u64),
            thousands(result.counts.trade_breaks)
        ));
        for (what, counts) in [
            ("messages shorter than their type", &self.whole.wrong_length),
            ("messages longer than their type", &self.whole.longer_than_known),
        ] {
            if !counts.is_empty() {
                let counts: Vec<_> =
                    counts.iter().map(|(letter, count)| format!("{letter} {count}")).collect();
                lines.push(format!("{what}: {}", counts.join(", ")));
            }
        }
        for (what, count) in [
            ("segments of a message protocol that is not read", self.unread_segments),
            ("empty messages", self.whole.empty_messages),
            ("levels taken away that were not there", result.unknown_levels),
            ("levels without room", result.levels_without_room),
            ("messages about symbols without room", result.messages_without_room),
        ] {
            if count > 0 {
                lines.push(format!("{what}: {}", thousands(count)));
            }
        }
        lines.push(match result.missing_range_count {
            0 => "no message is missing".to_owned(),
            gaps => format!("{} messages are missing in {gaps} gaps", thousands(result.missing_messages)),
        });
        lines.join("\n")
    }
}

/// The symbols with the most messages.
fn busiest(found: &IexFindings, top: usize) -> String {
    let summary = &found.tally.summary;
    let mut symbols: Vec<_> = summary.books.iter().zip(&summary.per_symbol).collect();
    symbols.sort_by_key(|(_, counted)| std::cmp::Reverse(counted.messages));
    let mut rows = table(["symbol", "messages", "trades", "shares", "last", "bid", "ask", "status"]);
    let quote = |quote: IexQuote| match quote.is_some() {
        true => format!("{} × {}", quote.price, quote.size),
        false => "–".to_owned(),
    };
    for ((_, book, listing), counted) in symbols.iter().take(top) {
        let volume = book.volume;
        rows.add_row([
            book.symbol.to_string(),
            thousands(counted.messages),
            thousands(volume.trades),
            thousands(volume.shares),
            volume.last.map_or_else(|| "–".to_owned(), |last| last.price.to_string()),
            quote(book.top.bid),
            quote(book.top.ask),
            format!(
                "{}{}",
                letter(listing.trading),
                if listing.is_halted_operationally() { " (IEX halt)" } else { "" }
            ),
        ]);
    }
    match symbols.len() {
        listed if listed > top => {
            format!("the {top} busiest of {} symbols\n{rows}", thousands(listed as u64))
        }
        _ => rows.to_string(),
    }
}

/// A code as text, empty if none was received.
fn letter(code: Code) -> String {
    if code.0 == 0 { String::new() } else { code.to_string() }
}

impl CountsReport {
    fn of(counts: &MessageCounts) -> Self {
        let (known, unknown): (Vec<_>, Vec<_>) = counts
            .by_type
            .iter()
            .map(|(kind, count)| (kind.letter(), count))
            .partition(|(letter, _)| IexMessageType::of(*letter).is_some());
        Self {
            messages: counts.messages,
            message_bytes: counts.message_bytes,
            by_type: known.into_iter().map(|(letter, count)| (letter as char, count)).collect(),
            wrong_length: letters(&counts.short),
            longer_than_known: letters(&counts.longer),
            empty_messages: counts.empty,
            unknown_types: unknown
                .into_iter()
                .map(|(letter, count)| (letter.escape_ascii().to_string(), count))
                .collect(),
            system_events: counts.events.iter().map(|(code, ns)| (code.to_string(), *ns)).collect(),
            message_ts_min: counts.ts_ns.map(|(earliest, _)| earliest),
            message_ts_max: counts.ts_ns.map(|(_, latest)| latest),
            trade_breaks: counts.by_type.of(IexMessageType::TradeBreak.letter()),
            quote_flags: flags(&counts.quote_flags),
            sale_condition_flags: flags(&counts.sale_flags),
            price_level_flags: flags(&counts.level_flags),
        }
    }

    fn types(&self) -> String {
        let name = |letter: char| {
            u8::try_from(letter).ok().and_then(IexMessageType::of).map_or("unknown", IexMessageType::name)
        };
        let mut rows: Vec<_> =
            self.by_type.iter().map(|(letter, count)| (letter.to_string(), name(*letter), *count)).collect();
        rows.sort_by_key(|(.., count)| std::cmp::Reverse(*count));
        rows.extend(self.unknown_types.iter().map(|(letter, count)| (letter.clone(), "unknown", *count)));
        super::itch_report::type_table(&rows, self.messages)
    }
}

impl StreamReport {
    fn of(stream: &Stream) -> Self {
        Self {
            packets: stream.segments,
            heartbeats: stream.heartbeats,
            messages: stream.messages,
            first_seq: stream.first,
            next_seq: stream.next,
            seq_gaps: stream.gaps.clone(),
            seq_gap_count: stream.gap_count,
            stream_offset_breaks: stream.offset_breaks,
            final_stream_offset: stream.next_offset,
            header: stream
                .sessions
                .iter()
                .map(|(session, packets)| HeaderReport {
                    protocol: format!("0x{:04x}", session.protocol.0),
                    channel: session.channel,
                    session: session.number,
                    packets: *packets,
                })
                .collect(),
            max_payload: stream.max_payload,
            max_msgs_in_segment: stream.max_messages,
            send_first_ns: stream.sent.map(|(first, _)| first.0),
            send_last_ns: stream.sent.map(|(_, last)| last.0),
            restart_count: stream.restarts,
            restarts: stream
                .epochs
                .iter()
                .enumerate()
                .map(|(epoch, about)| EpochReport {
                    epoch,
                    first_packet: about.first_segment,
                    packets: about.segments,
                    messages: about.messages,
                    last_sequence: about.last_sequence,
                })
                .collect(),
        }
    }
}

impl ResultReport {
    fn of(found: &IexFindings, symbols: &[String], levels: usize) -> Self {
        let (tally, summary) = (&found.tally, &found.tally.summary);
        let all = || {
            summary
                .books()
                .iter()
                .zip(&summary.per_symbol)
                .map(|((_, book, listing), counted)| (book, listing, counted))
        };
        let counted = |of: fn(&PerSymbol) -> u64| {
            all()
                .filter(|(.., counted)| of(counted) > 0)
                .map(|(book, _, counted)| (name(book), of(counted)))
                .collect()
        };
        let with = |has: fn(&IexBook, &Listing, &PerSymbol) -> bool| {
            all().filter(move |(book, listing, counted)| has(book, listing, counted))
        };
        let quoted = |_: &IexBook, _: &Listing, counted: &PerSymbol| counted.quotes + counted.levels > 0;
        let mut directory: Vec<_> =
            with(|_, listing, _| listing.directory.is_some()).map(|(book, ..)| name(book)).collect();
        directory.sort_unstable();
        let lines = (0..found.streams.len()).filter_map(Line::new);
        let counters = summary.books.counters();
        Self {
            counts: CountsReport::of(&summary.counts),
            dropped_as_duplicate: lines.map(|line| found.arbiter.line(line).duplicates).sum(),
            missing_messages: tally.missing,
            missing_ranges: tally.gaps.clone(),
            missing_range_count: tally.gap_count,
            resets: tally.resets.saturating_sub(1),
            symbols: summary.books.iter().len(),
            symbols_with_quote: with(|_, _, counted| counted.quotes > 0).count(),
            symbols_with_book: with(|_, _, counted| counted.levels > 0).count(),
            symbols_with_trading_status: with(|_, listing, _| listing.trading.0 != 0).count(),
            unknown_levels: counters.no_level,
            levels_without_room: counters.full_side,
            messages_without_room: counters.refused,
            volume: with(|book, _, _| book.volume.last.is_some() || book.volume.broken_trades > 0)
                .map(|(book, ..)| (name(book), VolumeReport::of(&book.volume)))
                .collect(),
            quotes_flags_ts_bidsz_bidpx_askpx_asksz: with(quoted)
                .map(|(book, listing, _)| (name(book), quote_of(book, listing)))
                .collect(),
            quote_updates: counted(|counted| counted.quotes),
            bbo_changes_at_event_end: with(quoted)
                .map(|(book, _, counted)| (name(book), counted.top_changes))
                .collect(),
            trading_status: with(|_, listing, _| listing.trading.0 != 0 || listing.operational.0 != 0)
                .map(|(book, listing, _)| {
                    let Listing { trading, reason, operational, .. } = listing;
                    (name(book), (letter(*trading), reason.to_string(), letter(*operational)))
                })
                .collect(),
            security_directory_symbols: directory,
            official_prices: with(|_, listing, _| listing.official_open.or(listing.official_close).is_some())
                .map(|(book, listing, _)| {
                    let price = |price: Option<IexPrice>| price.map(|price| price.0);
                    (name(book), (price(listing.official_open), price(listing.official_close)))
                })
                .collect(),
            auction_messages: counted(|counted| counted.auctions),
            books_price_size: all()
                .map(|(book, ..)| (name(book), book))
                .filter(|(name, _)| symbols.contains(name))
                .map(|(name, book)| (name, BookReport::of(book, levels)))
                .collect(),
        }
    }
}

fn name(book: &IexBook) -> String {
    book.symbol.to_string()
}

/// The best bid and ask, with the flags and the time of the last quote.
fn quote_of(book: &IexBook, listing: &Listing) -> QuoteReport {
    let top = book.top;
    let ts_ns = book.quoted_ts_ns.unwrap_or_default().max(listing.quote_ts_ns);
    (listing.quote_flags, ts_ns, top.bid.size, top.bid.price.0, top.ask.price.0, top.ask.size)
}

impl VolumeReport {
    fn of(volume: &IexVolume) -> Self {
        let last = |last: IexLastTrade| (last.price.0, last.size, last.ts_ns, last.trade);
        Self {
            volume: volume.shares,
            trades: volume.trades,
            notional_price4: volume.notional,
            last_price_size_ts_id: volume.last.map(last),
            high: volume.high.map(|high| high.0),
            low: volume.low.map(|low| low.0),
            broken_volume: volume.broken_shares,
            broken_trades: volume.broken_trades,
        }
    }
}

impl BookReport {
    fn of(book: &IexBook, levels: usize) -> Self {
        let side = |side| book.levels(side).take(levels).map(|level| (level.price.0, level.size)).collect();
        Self {
            bids: side(Side::Bid),
            asks: side(Side::Ask),
            bid_levels: book.levels(Side::Bid).len(),
            ask_levels: book.levels(Side::Ask).len(),
        }
    }

    fn table(&self, name: &str) -> String {
        let mut rows = table(["shares", "bid", "ask", "shares"]);
        for level in 0..self.bids.len().max(self.asks.len()) {
            let cells = |side: &[(i64, u32)]| match side.get(level) {
                Some((price, size)) => [thousands(u64::from(*size)), IexPrice(*price).to_string()],
                None => [const { String::new() }; 2],
            };
            let ([bid_size, bid], [ask_size, ask]) = (cells(&self.bids), cells(&self.asks));
            rows.add_row([bid_size, bid, ask, ask_size]);
        }
        format!("{name}: {} bid levels, {} ask levels\n{rows}", self.bid_levels, self.ask_levels)
    }
}
