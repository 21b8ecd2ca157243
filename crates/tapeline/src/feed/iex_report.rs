//! Reports on captures of IEX, for people and programs. The JSON is in wire units: prices with four decimals,
//! nanoseconds since 1970.

use std::collections::BTreeMap;

use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Value, json};
use tapeline_console::output::table;
use tapeline_feed::iex::tp::MessageProtocol;
use tapeline_feed::iex::{
    IexBook, IexLastTrade, IexMessageType, IexPrice, IexQuote, IexVolume, Listing, MessageCounts, PerSymbol,
    Stream,
};
use tapeline_feed::itch::{Code, Side};
use tapeline_feed::line::Line;
use tapeline_measure::figures::thousands;

use super::iex::{IexFindings, Restart};
use super::itch_report::{letters, letters_line, type_table};
use super::report::{or_dash, sides, top_table, utc};

/// The segments as captured, and their result.
#[derive(Debug, Serialize)]
pub(super) struct IexReport {
    #[serde(flatten)]
    whole: Value,
    lines: BTreeMap<char, Value>,
    unread_segments: u64,
    restart_policy: Restart,
    /// The result under this restart policy.
    result: ResultReport,
}

#[derive(Debug, Serialize)]
struct ResultReport {
    #[serde(flatten)]
    counts: Value,
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
        Self {
            whole: counts_json(&found.whole),
            lines: lines(found).map(|(letter, stream)| (letter, stream_json(stream))).collect(),
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
        let mut parts = vec![line_table(found), types(&found.whole), self.remarks(found)];
        parts.push(busiest(found, top));
        parts.extend(self.result.books_price_size.iter().map(|(name, book)| book.table(name)));
        parts
    }

    /// The remarks, one a line.
    fn remarks(&self, found: &IexFindings) -> String {
        let (whole, result) = (&found.whole, &self.result);
        let (messages, counts) = (found.tally.summary.counts.messages, &found.tally.summary.counts);
        let mut lines = Vec::new();
        if let Some((first, last)) = whole.ts_ns {
            lines.push(format!("events from {} to {} UTC", utc(first), utc(last)));
        }
        if !whole.events.is_empty() {
            let events = whole.events.iter().map(|(code, ns)| format!("{code} {}", &utc(*ns)[11..]));
            lines.push(format!("system events: {}", events.collect::<Vec<_>>().join(", ")));
        }
        if found.streams.iter().any(|stream| stream.restarts > 0) {
            lines.push(match found.restart {
                Restart::Reset => format!(
                    "the sender began again; the last {} messages count, with --restart reset",
                    thousands(messages)
                ),
                policy => format!(
                    "the sender began again; {} messages count and {} do not, with --restart {}",
                    thousands(messages),
                    thousands(result.dropped_as_duplicate),
                    policy.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
                ),
            });
        }
        lines.push(format!(
            "{} symbols: {} with quote updates, {} with price levels, {} with a trading status; {} trades broken",
            thousands(result.symbols as u64),
            thousands(result.symbols_with_quote as u64),
            thousands(result.symbols_with_book as u64),
            thousands(result.symbols_with_trading_status as u64),
            thousands(counts.by_type.of(IexMessageType::TradeBreak.letter()))
        ));
        lines.extend(
            [
                ("messages shorter than their type", &whole.short),
                ("messages longer than their type", &whole.longer),
            ]
            .into_iter()
            .filter_map(|(what, counts)| letters_line(what, &letters(counts))),
        );
        for (what, count) in [
            ("segments of a message protocol that is not read", found.unread),
            ("empty messages", whole.empty),
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
    let quote = |quote: IexQuote| {
        or_dash(quote.is_some().then_some(quote), |quote| format!("{} × {}", quote.price, quote.size))
    };
    for ((_, book, listing), counted) in symbols.iter().take(top) {
        let volume = book.volume;
        let halt = if listing.is_halted_operationally() { " (IEX halt)" } else { "" };
        rows.add_row([
            book.symbol.to_string(),
            thousands(counted.messages),
            thousands(volume.trades),
            thousands(volume.shares),
            or_dash(volume.last, |last| last.price.to_string()),
            quote(book.top.bid),
            quote(book.top.ask),
            format!("{}{halt}", letter(listing.trading)),
        ]);
    }
    top_table("symbols", symbols.len(), top, &rows)
}

/// A code as text, empty if none was received.
fn letter(code: Code) -> String {
    if code.0 == 0 { String::new() } else { code.to_string() }
}

/// Messages by type and flags.
fn counts_json(counts: &MessageCounts) -> Value {
    let (known, unknown): (Vec<_>, Vec<_>) =
        counts.by_type.iter().partition(|(kind, _)| IexMessageType::of(kind.letter()).is_some());
    let by_type = known.into_iter().map(|(kind, count)| (kind.letter() as char, count));
    let unknown = unknown.into_iter().map(|(kind, count)| (kind.letter().escape_ascii().to_string(), count));
    let events: Vec<_> = counts.events.iter().map(|(code, ns)| (code.to_string(), ns)).collect();
    json!({
        "messages": counts.messages,
        "message_bytes": counts.message_bytes,
        "by_type": by_type.collect::<BTreeMap<_, _>>(),
        "wrong_length": letters(&counts.short),
        "longer_than_known": letters(&counts.longer),
        "empty_messages": counts.empty,
        "unknown_types": unknown.collect::<BTreeMap<_, _>>(),
        "system_events": events,
        "message_ts_min": counts.ts_ns.map(|(earliest, _)| earliest),
        "message_ts_max": counts.ts_ns.map(|(_, latest)| latest),
        "trade_breaks": counts.by_type.of(IexMessageType::TradeBreak.letter()),
        "quote_flags": flags(&counts.quote_flags),
        "sale_condition_flags": flags(&counts.sale_flags),
        "price_level_flags": flags(&counts.level_flags),
    })
}

fn types(counts: &MessageCounts) -> String {
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for (kind, count) in counts.by_type.iter() {
        let letter = kind.letter();
        match IexMessageType::of(letter) {
            Some(known_type) => known.push(((letter as char).to_string(), known_type.name(), count)),
            None => unknown.push((letter.escape_ascii().to_string(), count)),
        }
    }
    unknown.sort_unstable();
    type_table(known, unknown.iter().map(|(letter, count)| (letter, count)), counts.messages)
}

/// The lines with their letters.
fn lines(found: &IexFindings) -> impl Iterator<Item = (char, &Stream)> {
    found.streams.iter().enumerate().filter_map(|(at, stream)| Some((Line::new(at)?.letter(), stream)))
}

/// The segments of a line.
fn stream_json(stream: &Stream) -> Value {
    let headers = stream.sessions.iter().map(|(session, packets)| {
        json!({
            "protocol": protocol(session.protocol),
            "channel": session.channel,
            "session": session.number,
            "packets": packets,
        })
    });
    let epochs = (0..).zip(&stream.epochs).map(|(epoch, about): (usize, _)| {
        json!({
            "epoch": epoch,
            "first_packet": about.first_segment,
            "packets": about.segments,
            "messages": about.messages,
            "last_sequence": about.last_sequence,
        })
    });
    json!({
        "packets": stream.segments,
        "heartbeats": stream.heartbeats,
        "messages": stream.messages,
        "first_seq": stream.first,
        "next_seq": stream.next,
        "seq_gaps": stream.gaps,
        "seq_gap_count": stream.gap_count,
        "stream_offset_breaks": stream.offset_breaks,
        "final_stream_offset": stream.next_offset,
        "header": headers.collect::<Vec<_>>(),
        "max_payload": stream.max_payload,
        "max_msgs_in_segment": stream.max_messages,
        "send_first_ns": stream.sent.map(|(first, _)| first.0),
        "send_last_ns": stream.sent.map(|(_, last)| last.0),
        "restart_count": stream.restarts,
        "restarts": epochs.collect::<Vec<_>>(),
    })
}

fn protocol(protocol: MessageProtocol) -> String {
    format!("0x{:04x}", protocol.0)
}

fn line_table(found: &IexFindings) -> String {
    let headings = "line, segments, heartbeats, messages, gaps, restarts, sent from, to (UTC)";
    let mut rows = table(headings.split(", "));
    for (letter, stream) in lines(found) {
        rows.add_row([
            letter.to_string(),
            thousands(stream.segments),
            thousands(stream.heartbeats),
            thousands(stream.messages),
            thousands(stream.gap_count),
            thousands(stream.restarts),
            or_dash(stream.sent, |(first, _)| utc(first.0)),
            or_dash(stream.sent, |(_, last)| utc(last.0)),
        ]);
    }
    let mut text = rows.to_string();
    for (letter, stream) in lines(found) {
        for (session, packets) in &stream.sessions {
            let (protocol, packets) = (protocol(session.protocol), thousands(*packets));
            text.push_str(&format!(
                "\n{letter}: protocol {protocol}, channel {}, session {}: {packets} segments",
                session.channel, session.number
            ));
        }
    }
    text
}

impl ResultReport {
    fn of(found: &IexFindings, symbols: &[String], levels: usize) -> Self {
        let (tally, summary) = (&found.tally, &found.tally.summary);
        let all = || {
            summary
                .books
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
            counts: counts_json(&summary.counts),
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
        let cells = |side: &[(i64, u32)]| -> Vec<_> {
            side.iter()
                .map(|(price, size)| [thousands((*size).into()), IexPrice(*price).to_string()])
                .collect()
        };
        let rows = sides("shares, bid, ask, shares", &cells(&self.bids), &cells(&self.asks));
        format!("{name}: {} bid levels, {} ask levels\n{rows}", self.bid_levels, self.ask_levels)
    }
}
