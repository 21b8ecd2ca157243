//! `tapeline feed inspect` of DBN files. The JSON is in the format's own units (prices in 1e-9, ns since 1970);
//! the tables are an excerpt for people.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Map, Value, json};
use tapeline_console::near::note_unknown;
use tapeline_console::output::{self, Format, table};
use tapeline_feed::dbn::{self, Best, DbnBook, DbnSettings, DbnSummary, DbnSymbols, Header};
use tapeline_feed::itch::Side;
use tapeline_measure::figures::thousands;

use super::report::{or_dash, sides, top_table, utc};

/// Maximum length of a symbol list that is shown in full; of a longer list, only the length is shown.
const MOST_LISTED: usize = 100;

pub(super) struct DbnFile {
    name: String,
    bytes: u64,
    bytes_consumed: u64,
    metadata: Option<dbn::Metadata>,
    summary: DbnSummary,
    first: Vec<Value>,
    error: Option<String>,
}

impl DbnFile {
    /// Reads a file while `go_on` returns true. Damage ends the read; everything before it stays valid.
    pub(super) fn read(
        mut file: dbn::File<'_>,
        path: &Path,
        bytes: u64,
        shown: usize,
        mut go_on: impl FnMut() -> bool,
    ) -> Self {
        let symbols = file.metadata().map_or_else(DbnSymbols::default, DbnSymbols::of);
        let mut summary = DbnSummary::new(DbnSettings::default(), symbols);
        let (mut first, mut error) = (Vec::new(), None);
        loop {
            match file.next() {
                Ok(Some(bytes)) => {
                    if first.len() < shown {
                        first.push(fields(bytes));
                    }
                    summary.record(bytes);
                    summary.expect(file.ahead());
                }
                Ok(None) => break,
                Err(damage) => {
                    error = Some(format!("{:#}", anyhow::Error::new(damage)));
                    break;
                }
            }
            if !go_on() {
                break;
            }
        }
        Self {
            name: path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
            bytes,
            bytes_consumed: file.bytes_consumed(),
            metadata: file.metadata().cloned(),
            summary,
            first,
            error,
        }
    }
}

/// Prints the files; the exit status is 1 if a file is damaged.
pub(super) fn print(
    files: &[DbnFile],
    symbols: &[String],
    levels: usize,
    top: usize,
    format: Format,
) -> anyhow::Result<ExitCode> {
    match format {
        Format::Json => {
            let reports: Vec<_> = files.iter().map(|file| file.json(symbols, levels)).collect();
            output::print_json(&json!({ "protocol": "DBN", "files": reports }))?;
        }
        Format::Table => {
            let parts: Vec<_> = files.iter().map(|file| file.tables(symbols, levels, top)).collect();
            output::print(&parts.join("\n\n\n"))?;
        }
    }
    let books = files.iter().flat_map(|file| file.summary.books.iter());
    let names: Vec<&str> = books.map(|(_, book)| book.name()).collect();
    note_unknown(symbols, &names);
    for file in files {
        if let Some(error) = &file.error {
            anstream::eprintln!("error: {}: {error}", file.name);
        }
    }
    let damaged = files.iter().any(|file| file.error.is_some());
    Ok(if damaged { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A record with all its fields, under the names of the format.
fn fields(bytes: &[u8]) -> Value {
    let mut fields = Map::new();
    if let Some(header) = Header::of(bytes) {
        fields.insert("length".to_owned(), json!(bytes.first()));
        fields.insert("rtype".to_owned(), json!(header.kind.0));
        fields.insert("publisher_id".to_owned(), json!(header.publisher));
        fields.insert("instrument_id".to_owned(), json!(header.instrument));
        fields.insert("ts_event".to_owned(), json!(header.ts_event));
    }
    match dbn::decode(bytes) {
        Ok(record) => record.fields(&mut |name, value| {
            let value = match value {
                dbn::Value::Number(number) => match u64::try_from(number) {
                    Ok(number) => json!(number),
                    Err(_) => json!(i64::try_from(number).unwrap_or_default()),
                },
                dbn::Value::Letter(letter) => json!(letter.to_string()),
                dbn::Value::Text(text) => json!(String::from_utf8_lossy(text)),
            };
            fields.insert(name.to_owned(), value);
        }),
        Err(malformed) => {
            fields.insert("error".to_owned(), json!(malformed.to_string()));
        }
    }
    Value::Object(fields)
}

/// A list, or its length and beginning if it is long.
fn listed(symbols: &[String]) -> Value {
    if symbols.len() <= MOST_LISTED {
        return json!(symbols);
    }
    json!({ "count": symbols.len(), "first": symbols.iter().take(3).collect::<Vec<_>>() })
}

/// Price, size and number of orders.
fn figures(best: Best) -> (i64, u64, u32) {
    (best.price.0, best.size, best.orders)
}

/// Counts by letter.
fn letters(counts: impl Iterator<Item = (impl ToString, u64)>) -> BTreeMap<String, u64> {
    counts.map(|(letter, count)| (letter.to_string(), count)).collect()
}

/// The members without those of these keys that have no value.
fn without_empty(mut members: Value, keys: &[&str]) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Array(values) => values.is_empty(),
        Value::Object(members) => members.is_empty(),
        other => other.is_null(),
    };
    if let Some(members) = members.as_object_mut() {
        members.retain(|key, value| !keys.contains(&key.as_str()) || !is_empty(value));
    }
    members
}

/// The metadata in front of a file's records.
fn metadata_json(metadata: &dbn::Metadata) -> Value {
    let about = &metadata.about;
    let intervals: usize = about.mappings.iter().map(|mapping| mapping.intervals.len()).sum();
    json!({
        "version": about.version,
        "metadata_length": metadata.length,
        "dataset": about.dataset,
        "schema": about.schema.map(|schema| schema.as_str()),
        "start": about.start,
        "end": about.end,
        "limit": about.limit,
        "stype_in": about.stype_in.map(|stype| stype.to_string()),
        "stype_out": about.stype_out.to_string(),
        "ts_out": about.ts_out,
        "symbol_cstr_len": about.symbol_cstr_len,
        "symbols": listed(&about.symbols),
        "partial": listed(&about.partial),
        "not_found": listed(&about.not_found),
        "mapped_symbols": about.mappings.len(),
        "mapped_intervals": intervals,
    })
}

/// One instrument; with its order book, of this many levels, if that is requested.
fn symbol_json(book: &DbnBook, levels: Option<usize>) -> Value {
    let volume = &book.volume;
    let side = |side, count| book.levels(side).take(count).map(figures).collect::<Vec<_>>();
    let statistics: BTreeMap<_, _> = book
        .statistics
        .iter()
        .map(|of| (of.kind, (of.price.defined().map(|price| price.0), of.quantity)))
        .collect();
    let members = json!({
        "name": book.name(),
        "publisher": book.publisher,
        "instrument": book.instrument,
        "records": book.records,
        "trades": volume.trades,
        "volume": volume.size,
        "last_trade_price_size_ts": volume.last.map(|last| (last.price.0, last.size, last.ts_event)),
        "bid": book.top.bid.map(figures),
        "ask": book.top.ask.map(figures),
        "live_orders": book.live_orders(),
        "tick": book.definition().and_then(|it| it.tick.defined()).map(|tick| tick.0),
        "display_factor": book.definition().and_then(|it| it.display_factor.defined()).map(|factor| factor.0),
        // Action and reason of the last trading state.
        "status": book.status.map(|status| (status.action, status.reason)),
        // Price and quantity for each kind of statistic.
        "statistics": statistics,
        "book": levels.map(|count| json!({ "bids": side(Side::Bid, count), "asks": side(Side::Ask, count) })),
    });
    let optional =
        ["last_trade_price_size_ts", "live_orders", "tick", "display_factor", "status", "statistics", "book"];
    without_empty(members, &optional)
}

impl DbnFile {
    /// All findings, for programs.
    fn json(&self, symbols: &[String], levels: usize) -> Value {
        let (summary, books) = (&self.summary, &self.summary.books);
        let counters = books.counters();
        let instruments: BTreeSet<u32> = books.iter().map(|(_, book)| book.instrument).collect();
        let by_kind: BTreeMap<_, _> = summary.by_kind().map(|(kind, count)| (name_of(kind), count)).collect();
        let by_flags: BTreeMap<_, _> = summary.by_flags().map(|(flags, count)| (flags.0, count)).collect();
        let levels_of = |book: &DbnBook| is_asked_for(book, symbols).then_some(levels);
        let members = json!({
            "name": self.name,
            "bytes": self.bytes,
            // Bytes up to the end of the last whole record, after decompression.
            "bytes_consumed": self.bytes_consumed,
            "error": self.error,
            "metadata": self.metadata.as_ref().map(metadata_json),
            "records": summary.records,
            "by_rtype": by_kind,
            "record_sizes": summary.by_length().collect::<BTreeMap<_, _>>(),
            "first_ts_event": summary.ts_event.first,
            "last_ts_event": summary.ts_event.last,
            "first_ts_recv": summary.ts_recv.first,
            "last_ts_recv": summary.ts_recv.last,
            "first_sequence": summary.sequence.first,
            "last_sequence": summary.sequence.last,
            "times_going_back": summary.times_going_back,
            "publishers": &summary.by_publisher,
            "instruments": instruments.len(),
            "actions": letters(summary.by_action()),
            "sides": letters(summary.by_side()),
            "flags": by_flags,
            "counters": {
                "unknown_orders_cancelled": counters.unknown_cancelled,
                "unknown_orders_modified": counters.unknown_modified,
                "duplicate_orders": counters.duplicate_orders,
                "excess_cancelled": counters.excess_cancelled,
                "odd_orders": counters.odd_orders,
                "refused_orders": counters.refused_orders,
                "refused_instruments": counters.refused_instruments,
                "malformed_records": summary.malformed,
                "events_without_end": self.events_without_end(),
            },
            "live_orders_end": books.live_orders(),
            "max_live_orders": counters.max_live_orders,
            // In order of first appearance.
            "symbols": books.iter().map(|(_, book)| symbol_json(book, levels_of(book))).collect::<Vec<_>>(),
            "records_decoded": self.first,
        });
        without_empty(members, &["error", "records_decoded"])
    }

    fn events_without_end(&self) -> u64 {
        self.summary.books.iter().filter(|(_, book)| book.in_event()).count() as u64
    }

    /// Tables for people, with the `top` instruments by number of records.
    fn tables(&self, symbols: &[String], levels: usize, top: usize) -> String {
        let mut parts = vec![self.heading(), self.kinds()];
        let all: Vec<&DbnBook> = self.summary.books.iter().map(|(_, book)| book).collect();
        let mut busiest = all.clone();
        busiest.sort_by_key(|book| (std::cmp::Reverse(book.records), book.name().to_owned()));
        let mut rows =
            table(["instrument", "number", "records", "trades", "volume", "last", "bid", "ask", "orders"]);
        for book in busiest.iter().take(top) {
            let best =
                |best| or_dash(best, |best: Best| format!("{} × {}", best.price, thousands(best.size)));
            rows.add_row([
                book.name().to_owned(),
                book.instrument.to_string(),
                thousands(book.records),
                thousands(book.volume.trades),
                thousands(book.volume.size),
                or_dash(book.volume.last, |last| last.price.to_string()),
                best(book.top.bid),
                best(book.top.ask),
                or_dash(book.live_orders(), |orders| thousands(orders as u64)),
            ]);
        }
        if !busiest.is_empty() {
            parts.push(top_table("instruments", busiest.len(), top, &rows));
        }
        let asked = all.into_iter().filter(|book| is_asked_for(book, symbols));
        parts.extend(asked.map(|book| levels_table(book, levels)));
        if !self.first.is_empty() {
            parts.push(self.first.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
        }
        parts.join("\n\n")
    }

    fn heading(&self) -> String {
        let mut text = format!("{}: {} bytes, ", self.name, thousands(self.bytes));
        match &self.metadata {
            None => text.push_str("a fragment without metadata"),
            Some(dbn::Metadata { about, length, .. }) => {
                text.push_str(&format!(
                    "DBN version {}, {}, schema {}, from {}",
                    about.version,
                    about.dataset,
                    about.schema.map_or("mixed", |schema| schema.as_str()),
                    utc(about.start)
                ));
                if let Some(end) = about.end {
                    text.push_str(&format!(" to {}", utc(end.into())));
                }
                let intervals = about.mappings.iter().map(|mapping| mapping.intervals.len() as u64);
                text.push_str(&format!(
                    "\n{} symbols over {} spans of days, {} bytes of metadata",
                    thousands(about.mappings.len() as u64),
                    thousands(intervals.sum()),
                    thousands(u64::from(*length))
                ));
            }
        }
        if let Some(error) = &self.error {
            text.push_str(&format!("\ndamaged, read up to there: {error}"));
        }
        text
    }

    fn kinds(&self) -> String {
        let summary = &self.summary;
        let mut kinds = table(["record", "kind", "records"]);
        for (kind, count) in summary.by_kind() {
            kinds.add_row([name_of(kind), format!("0x{:02X}", kind.0), thousands(count)]);
        }
        kinds.add_row(["all".to_owned(), String::new(), thousands(summary.records)]);
        let mut text = kinds.to_string();
        if let (Some(first), Some(last)) = (summary.ts_event.first, summary.ts_event.last) {
            text.push_str(&format!("\nevents from {} to {} (UTC)", utc(first), utc(last)));
        }
        let counters = summary.books.counters();
        for (what, count) in [
            ("events older than the one before", summary.times_going_back),
            ("cancels of unknown orders", counters.unknown_cancelled),
            ("modifications of unknown orders", counters.unknown_modified),
            ("orders added twice", counters.duplicate_orders),
            ("cancels of more than was left", counters.excess_cancelled),
            ("orders without side or price", counters.odd_orders),
            ("orders without room", counters.refused_orders),
            ("records of instruments without room", counters.refused_instruments),
            ("malformed records", summary.malformed),
            ("events that were not told to their end", self.events_without_end()),
        ] {
            if count > 0 {
                text.push_str(&format!("\n{what}: {}", thousands(count)));
            }
        }
        text
    }
}

fn is_asked_for(book: &DbnBook, symbols: &[String]) -> bool {
    symbols.iter().any(|symbol| symbol == book.name())
}

/// The price levels of an order book.
fn levels_table(book: &DbnBook, levels: usize) -> String {
    let side = |side| -> Vec<_> {
        let levels = book.levels(side).take(levels);
        levels.map(|of| [of.orders.to_string(), thousands(of.size), of.price.to_string()]).collect()
    };
    let headings = "bid orders, size, bid, ask, size, ask orders";
    let rows = sides(headings, &side(Side::Bid), &side(Side::Ask));
    format!("{}\n{rows}", book.name())
}

fn name_of(kind: dbn::RecordKind) -> String {
    kind.name().map_or_else(|| format!("unknown 0x{:02X}", kind.0), str::to_owned)
}
