//! `tapeline feed inspect` of DBN files. The JSON is in the format's own units (prices in 1e-9, ns since 1970);
//! the tables are an excerpt for people.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use serde_json::{Map, Value, json};
use tapeline_console::near::note_unknown;
use tapeline_console::output::{self, Format, table};
use tapeline_feed::dbn::{self, Best, DbnBook, DbnSettings, DbnSummary, DbnSymbols, Header};
use tapeline_feed::itch::Side;
use tapeline_measure::figures::thousands;

use super::report::utc;

/// Maximum length of a symbol list that is shown in full; of a longer list, only the length is shown.
const MOST_LISTED: usize = 100;

/// One file and its content.
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
    let reports: Vec<_> = files.iter().map(|file| Report::of(file, symbols, levels)).collect();
    match format {
        Format::Json => output::print_json(&json!({ "protocol": "DBN", "files": reports }))?,
        Format::Table => {
            let parts: Vec<_> =
                files.iter().zip(&reports).map(|(file, report)| report.tables(file, top)).collect();
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

/// One file.
#[derive(Debug, Serialize)]
struct Report {
    name: String,
    bytes: u64,
    /// Bytes up to the end of the last whole record, after decompression.
    bytes_consumed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    metadata: Option<MetadataReport>,
    records: u64,
    by_rtype: BTreeMap<String, u64>,
    record_sizes: BTreeMap<usize, u64>,
    first_ts_event: Option<u64>,
    last_ts_event: Option<u64>,
    first_ts_recv: Option<u64>,
    last_ts_recv: Option<u64>,
    first_sequence: Option<u32>,
    last_sequence: Option<u32>,
    times_going_back: u64,
    publishers: BTreeMap<u16, u64>,
    /// Number of distinct instruments.
    instruments: usize,
    actions: BTreeMap<String, u64>,
    sides: BTreeMap<String, u64>,
    flags: BTreeMap<u8, u64>,
    counters: CountersReport,
    live_orders_end: usize,
    max_live_orders: usize,
    /// In order of first appearance.
    symbols: Vec<SymbolReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    records_decoded: Vec<Value>,
}

/// The metadata in front of a file's records.
#[derive(Debug, Serialize)]
struct MetadataReport {
    version: u8,
    metadata_length: u32,
    dataset: String,
    schema: Option<&'static str>,
    start: u64,
    end: Option<u64>,
    limit: Option<u64>,
    stype_in: Option<String>,
    stype_out: String,
    ts_out: bool,
    symbol_cstr_len: usize,
    symbols: List,
    partial: List,
    not_found: List,
    mapped_symbols: usize,
    mapped_intervals: usize,
}

/// A list, or only its length.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum List {
    All(Vec<String>),
    Count { count: usize, first: Vec<String> },
}

#[derive(Debug, Serialize)]
struct CountersReport {
    unknown_orders_cancelled: u64,
    unknown_orders_modified: u64,
    duplicate_orders: u64,
    excess_cancelled: u64,
    odd_orders: u64,
    refused_orders: u64,
    refused_instruments: u64,
    malformed_records: u64,
    events_without_end: u64,
}

/// One instrument.
#[derive(Debug, Serialize)]
struct SymbolReport {
    name: String,
    publisher: u16,
    instrument: u32,
    records: u64,
    trades: u64,
    volume: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_trade_price_size_ts: Option<(i64, u32, u64)>,
    /// Price, size and number of orders after the last event.
    bid: Option<(i64, u64, u32)>,
    ask: Option<(i64, u64, u32)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    live_orders: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tick: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    display_factor: Option<i64>,
    /// Action and reason of the last trading state.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<(u16, u16)>,
    /// Price and quantity for each kind of statistic.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    statistics: BTreeMap<u16, (Option<i64>, Option<i64>)>,
    /// Levels of the order book, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    book: Option<Levels>,
}

#[derive(Debug, Serialize)]
struct Levels {
    bids: Vec<(i64, u64, u32)>,
    asks: Vec<(i64, u64, u32)>,
}

fn listed(symbols: &[String]) -> List {
    if symbols.len() <= MOST_LISTED {
        return List::All(symbols.to_vec());
    }
    List::Count { count: symbols.len(), first: symbols.iter().take(3).cloned().collect() }
}

fn figures(best: Best) -> (i64, u64, u32) {
    (best.price.0, best.size, best.orders)
}

impl MetadataReport {
    fn of(metadata: &dbn::Metadata) -> Self {
        let about = &metadata.about;
        Self {
            version: about.version,
            metadata_length: metadata.length,
            dataset: about.dataset.clone(),
            schema: about.schema.map(|schema| schema.as_str()),
            start: about.start,
            end: about.end.map(u64::from),
            limit: about.limit.map(u64::from),
            stype_in: about.stype_in.map(|stype| stype.to_string()),
            stype_out: about.stype_out.to_string(),
            ts_out: about.ts_out,
            symbol_cstr_len: about.symbol_cstr_len,
            symbols: listed(&about.symbols),
            partial: listed(&about.partial),
            not_found: listed(&about.not_found),
            mapped_symbols: about.mappings.len(),
            mapped_intervals: about.mappings.iter().map(|mapping| mapping.intervals.len()).sum(),
        }
    }
}

impl SymbolReport {
    fn of(book: &DbnBook, levels: Option<usize>) -> Self {
        let volume = &book.volume;
        let side = |side, count| book.levels(side).take(count).map(figures).collect();
        Self {
            name: book.name().to_owned(),
            publisher: book.publisher,
            instrument: book.instrument,
            records: book.records,
            trades: volume.trades,
            volume: volume.size,
            last_trade_price_size_ts: volume.last.map(|last| (last.price.0, last.size, last.ts_event)),
            bid: book.top.bid.map(figures),
            ask: book.top.ask.map(figures),
            live_orders: book.live_orders(),
            tick: book.definition().and_then(|it| it.tick.defined()).map(|tick| tick.0),
            display_factor: book
                .definition()
                .and_then(|it| it.display_factor.defined())
                .map(|factor| factor.0),
            status: book.status.map(|status| (status.action, status.reason)),
            statistics: book
                .statistics
                .iter()
                .map(|statistic| {
                    (statistic.kind, (statistic.price.defined().map(|price| price.0), statistic.quantity))
                })
                .collect(),
            book: levels.map(|count| Levels { bids: side(Side::Bid, count), asks: side(Side::Ask, count) }),
        }
    }
}

impl Report {
    fn of(file: &DbnFile, symbols: &[String], levels: usize) -> Self {
        let (summary, books) = (&file.summary, &file.summary.books);
        let counters = books.counters();
        let numbers: BTreeSet<u32> = books.iter().map(|(_, book)| book.instrument).collect();
        Self {
            name: file.name.clone(),
            bytes: file.bytes,
            bytes_consumed: file.bytes_consumed,
            error: file.error.clone(),
            metadata: file.metadata.as_ref().map(MetadataReport::of),
            records: summary.records,
            by_rtype: summary.by_kind().map(|(kind, count)| (name_of(kind), count)).collect(),
            record_sizes: summary.by_length().collect(),
            first_ts_event: summary.ts_event.first,
            last_ts_event: summary.ts_event.last,
            first_ts_recv: summary.ts_recv.first,
            last_ts_recv: summary.ts_recv.last,
            first_sequence: summary.sequence.first,
            last_sequence: summary.sequence.last,
            times_going_back: summary.times_going_back,
            publishers: summary.by_publisher.clone(),
            instruments: numbers.len(),
            actions: summary.by_action().map(|(letter, count)| (letter.to_string(), count)).collect(),
            sides: summary.by_side().map(|(letter, count)| (letter.to_string(), count)).collect(),
            flags: summary.by_flags().map(|(flags, count)| (flags.0, count)).collect(),
            counters: CountersReport {
                unknown_orders_cancelled: counters.unknown_cancelled,
                unknown_orders_modified: counters.unknown_modified,
                duplicate_orders: counters.duplicate_orders,
                excess_cancelled: counters.excess_cancelled,
                odd_orders: counters.odd_orders,
                refused_orders: counters.refused_orders,
                refused_instruments: counters.refused_instruments,
                malformed_records: summary.malformed,
                events_without_end: books.iter().filter(|(_, book)| book.in_event()).count() as u64,
            },
            live_orders_end: books.live_orders(),
            max_live_orders: counters.max_live_orders,
            symbols: books
                .iter()
                .map(|(_, book)| {
                    let asked = symbols.iter().any(|symbol| symbol == book.name());
                    SymbolReport::of(book, asked.then_some(levels))
                })
                .collect(),
            records_decoded: file.first.clone(),
        }
    }

    /// Tables for people, with the `top` instruments by number of records.
    fn tables(&self, file: &DbnFile, top: usize) -> String {
        let mut parts = vec![self.heading(), self.kinds(file)];
        let books = &file.summary.books;
        let mut busiest: Vec<&DbnBook> = books.iter().map(|(_, book)| book).collect();
        busiest.sort_by_key(|book| (std::cmp::Reverse(book.records), book.name().to_owned()));
        let mut rows =
            table(["instrument", "number", "records", "trades", "volume", "last", "bid", "ask", "orders"]);
        for book in busiest.iter().take(top) {
            let best = |best: Option<Best>| {
                best.map_or_else(
                    || "–".to_owned(),
                    |best| format!("{} × {}", best.price, thousands(best.size)),
                )
            };
            rows.add_row([
                book.name().to_owned(),
                book.instrument.to_string(),
                thousands(book.records),
                thousands(book.volume.trades),
                thousands(book.volume.size),
                book.volume.last.map_or_else(|| "–".to_owned(), |last| last.price.to_string()),
                best(book.top.bid),
                best(book.top.ask),
                book.live_orders().map_or_else(|| "–".to_owned(), |orders| thousands(orders as u64)),
            ]);
        }
        let heading = if busiest.len() > top {
            format!("the {top} busiest of {} instruments\n", thousands(busiest.len() as u64))
        } else {
            String::new()
        };
        if !busiest.is_empty() {
            parts.push(format!("{heading}{rows}"));
        }
        parts
            .extend(self.symbols.iter().filter_map(|symbol| Some(symbol.book.as_ref()?.table(&symbol.name))));
        if !self.records_decoded.is_empty() {
            let records = self.records_decoded.iter().map(ToString::to_string);
            parts.push(records.collect::<Vec<_>>().join("\n"));
        }
        parts.join("\n\n")
    }

    fn heading(&self) -> String {
        let mut text = format!("{}: {} bytes, ", self.name, thousands(self.bytes));
        match &self.metadata {
            None => text.push_str("a fragment without metadata"),
            Some(about) => {
                text.push_str(&format!(
                    "DBN version {}, {}, schema {}, from {}",
                    about.version,
                    about.dataset,
                    about.schema.unwrap_or("mixed"),
                    utc(about.start)
                ));
                if let Some(end) = about.end {
                    text.push_str(&format!(" to {}", utc(end)));
                }
                text.push_str(&format!(
                    "\n{} symbols over {} spans of days, {} bytes of metadata",
                    thousands(about.mapped_symbols as u64),
                    thousands(about.mapped_intervals as u64),
                    thousands(u64::from(about.metadata_length))
                ));
            }
        }
        if let Some(error) = &self.error {
            text.push_str(&format!("\ndamaged, read up to there: {error}"));
        }
        text
    }

    fn kinds(&self, file: &DbnFile) -> String {
        let mut kinds = table(["record", "kind", "records"]);
        for (kind, count) in file.summary.by_kind() {
            kinds.add_row([name_of(kind), format!("0x{:02X}", kind.0), thousands(count)]);
        }
        kinds.add_row(["all".to_owned(), String::new(), thousands(self.records)]);
        let mut text = kinds.to_string();
        if let (Some(first), Some(last)) = (self.first_ts_event, self.last_ts_event) {
            text.push_str(&format!("\nevents from {} to {} (UTC)", utc(first), utc(last)));
        }
        let counters = &self.counters;
        for (what, count) in [
            ("events older than the one before", self.times_going_back),
            ("cancels of unknown orders", counters.unknown_orders_cancelled),
            ("modifications of unknown orders", counters.unknown_orders_modified),
            ("orders added twice", counters.duplicate_orders),
            ("cancels of more than was left", counters.excess_cancelled),
            ("orders without side or price", counters.odd_orders),
            ("orders without room", counters.refused_orders),
            ("records of instruments without room", counters.refused_instruments),
            ("malformed records", counters.malformed_records),
            ("events that were not told to their end", counters.events_without_end),
        ] {
            if count > 0 {
                text.push_str(&format!("\n{what}: {}", thousands(count)));
            }
        }
        text
    }
}

impl Levels {
    fn table(&self, name: &str) -> String {
        let mut rows = table(["bid orders", "size", "bid", "ask", "size", "ask orders"]);
        for level in 0..self.bids.len().max(self.asks.len()) {
            let cells = |side: &[(i64, u64, u32)]| match side.get(level) {
                Some((price, size, orders)) => {
                    [orders.to_string(), thousands(*size), dbn::DbnPrice(*price).to_string()]
                }
                None => [const { String::new() }; 3],
            };
            let (bid, [orders, size, price]) = (cells(&self.bids), cells(&self.asks));
            rows.add_row(bid.into_iter().chain([price, size, orders]));
        }
        format!("{name}\n{rows}")
    }
}

fn name_of(kind: dbn::RecordKind) -> String {
    kind.name().map_or_else(|| format!("unknown 0x{:02X}", kind.0), str::to_owned)
}
