//! `tapeline plant watch`: quotes and trades, as a refreshing table on a terminal and as JSON lines in a pipe.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use serde_json::{Map, Value as Json};
use tapeline_console::near::unknown;
use tapeline_console::{Format, Stop, output};
use tapeline_measure::Nanos;
use tapeline_measure::figures::thousands;
use tapeline_omm::domain::directory;
use tapeline_omm::rwf::{self, DataType, Domain, Header, MessageView, NamedValue, Value};
use tapeline_omm::{Dictionary, FieldList};
use tapeline_plant::State;
use tapeline_plant::tick::{Flags, Kind, POSTED, Quality, Tick};

use super::follow::{Follow, FollowArgs};

/// Watch a plant's quotes and trades.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tapeline plant watch                      the busiest symbols, on the terminal\n  \
    tapeline plant watch AAPL MSFT            these symbols only\n  \
    tapeline plant watch AAPL --ticks 10 | cat    ten JSON lines")]
pub(crate) struct PlantWatchArgs {
    /// Symbols to show; empty means all
    #[arg(value_name = "SYMBOL")]
    symbols: Vec<String>,
    #[command(flatten)]
    follow: FollowArgs,
    /// Output format [default: table on a terminal, JSON lines in a pipe]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Number of rows in the table
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    rows: usize,
}

/// Maximum number of symbols in the table; later ones are counted but not shown.
const MAX_SYMBOLS: usize = 65_536;
/// Lines of a screen that are not rows: counts, headings, the last status.
const FRAME_LINES: usize = 6;
/// The minimum time between two screens.
const REFRESH_NS: i64 = 250_000_000;

impl PlantWatchArgs {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals()?;
        let wanted = RefCell::new(Wanted { symbols: &self.symbols, ..Wanted::default() });
        let wants = |tick: &Tick<'_>, received| wanted.borrow_mut().takes(tick.name, received);
        let mut follow = Follow::join(&self.follow, "watch", stop)?;
        let terminal = std::io::stdout().is_terminal();
        let end = match self.format.unwrap_or(if terminal { Format::Table } else { Format::Json }) {
            Format::Json => {
                let mut out = std::io::BufWriter::new(std::io::stdout().lock());
                let out = RefCell::new(&mut out);
                let end = follow.run(
                    |tick, received| {
                        if wants(tick, received) {
                            let mut out = out.borrow_mut();
                            serde_json::to_writer(&mut **out, &as_json(tick)?)
                                .map_err(std::io::Error::from)?;
                            out.write_all(b"\n")?;
                        }
                        Ok(())
                    },
                    |clock, _| {
                        for said in wanted.borrow_mut().unseen(clock.now()) {
                            anstream::eprintln!("note: {said}");
                        }
                        Ok(out.borrow_mut().flush()?)
                    },
                )?;
                out.into_inner().flush()?;
                end
            }
            Format::Table => {
                let board = RefCell::new(Board { rows: self.rows, terminal, ..Board::default() });
                let end = follow.run(
                    |tick, received| {
                        if wants(tick, received) {
                            board.borrow_mut().apply(tick, received)?;
                        }
                        Ok(())
                    },
                    |clock, _| {
                        board.borrow_mut().notes.extend(wanted.borrow_mut().unseen(clock.now()));
                        board.borrow_mut().show(clock.now())
                    },
                )?;
                board.borrow_mut().draw()?;
                anstream::eprintln!("ended: {end}");
                end
            }
        };
        // A user who requested few ticks, or whose ticks are all old, gets the notes at the end.
        for said in wanted.borrow_mut().unseen(Nanos(u64::MAX)) {
            anstream::eprintln!("note: {said}");
        }
        Ok(end.exit_code(follow.missing()))
    }
}

/// The symbols to watch, and the names that occur.
#[derive(Debug, Default)]
struct Wanted<'a> {
    symbols: &'a [String],
    /// Names that have ticked; at most [`MAX_SYMBOLS`] of those that were not requested.
    seen: HashSet<String>,
    /// When the first tick was seen.
    since: Option<Nanos>,
    said: bool,
}

/// How long other symbols may tick before a symbol is reported as unseen: it takes seconds to survey a busy feed.
const UNSEEN_NS: i64 = 3_000_000_000;

impl Wanted<'_> {
    /// Whether to show a tick of this name.
    fn takes(&mut self, name: &str, received: Nanos) -> bool {
        if self.symbols.is_empty() || name.is_empty() {
            return true;
        }
        self.since.get_or_insert(received);
        let is_wanted = self.symbols.iter().any(|symbol| symbol == name);
        if (is_wanted || self.seen.len() < MAX_SYMBOLS) && !self.said && !self.seen.contains(name) {
            self.seen.insert(name.to_owned());
        }
        is_wanted
    }

    /// Reports once, after others have ticked for a while, which symbols have not.
    fn unseen(&mut self, now: Nanos) -> Vec<String> {
        if self.said || self.since.is_none_or(|since| now.since(since) < UNSEEN_NS) {
            return Vec::new();
        }
        self.said = true;
        let known: Vec<&str> = self.seen.iter().map(String::as_str).collect();
        let notes = unknown(self.symbols, &known).map(|said| format!("so far {said}"));
        let notes = notes.collect();
        self.seen = HashSet::new();
        notes
    }
}

/// A tick as one JSON object: sequence, item, kind, stamps, and the fields by name.
fn as_json(tick: &Tick<'_>) -> anyhow::Result<Json> {
    let header = &tick.header;
    let mut line = Map::new();
    line.insert("seq".into(), header.seq.0.into());
    line.insert("feed_seq".into(), header.feed_seq.into());
    if !tick.name.is_empty() {
        line.insert("item".into(), tick.name.into());
    }
    line.insert("kind".into(), header.kind.name().into());
    if header.source_type != 0 {
        line.insert("message".into(), char::from(header.source_type).to_string().into());
    }
    line.insert("event_ns".into(), header.event.0.into());
    line.insert("wire_ns".into(), header.wire.0.into());
    line.insert("decoded_ns".into(), header.decoded.0.into());
    line.insert("sequenced_ns".into(), header.sequenced.0.into());
    if header.kind == Kind::Status {
        line.insert("feed".into(), header.channel.into());
        line.insert("state".into(), header.state.name().into());
    }
    if header.flags.contains(Flags::SUSPECT) {
        line.insert("suspect".into(), true.into());
    } else if header.kind != Kind::Status && header.quality() == Quality::Late {
        line.insert("late".into(), true.into());
    }
    if let Some(text) = status_text(tick)? {
        line.insert("text".into(), text.into());
    }
    let message = MessageView::parse(tick.body).context("a tick's RWF message cannot be read")?;
    if message.domain() == Domain::SOURCE {
        add_service(&mut line, &message)?;
        return Ok(line.into());
    }
    if let Ok(Header::Status(rwf::StatusHeader { state: Some(state), .. })) = message.header() {
        line.insert("stream".into(), state.stream.to_string().into());
        line.insert("data".into(), state.data.to_string().into());
    }
    if !is_plain(&message) {
        // A provider's own domain: only its service knows the meaning.
        line.insert("domain".into(), message.domain().to_string().into());
        line.insert("container".into(), message.container().to_string().into());
        line.insert("bytes".into(), message.payload().len().into());
        return Ok(line.into());
    }
    if message.container() == DataType::MAP {
        line.insert("domain".into(), message.domain().to_string().into());
        if header.kind == Kind::Refresh {
            // An image may have several parts.
            line.insert("complete".into(), message.is_refresh_complete().into());
        }
        add_map(&mut line, &message)?;
        return Ok(line.into());
    }
    let fields = fields_json(message.payload())?;
    if !fields.is_empty() {
        line.insert("fields".into(), fields.into());
    }
    Ok(line.into())
}

/// Whether fields and orders can be shown: always for feeds, and for providers if they can be decoded.
fn is_plain(message: &MessageView<'_>) -> bool {
    let is_list = |list: &[u8]| list.is_empty() || fields_json(list).is_ok();
    match message.container() {
        DataType::FIELD_LIST | DataType::NO_DATA => is_list(message.payload()),
        DataType::MAP => rwf::Map::parse(message.payload()).is_ok_and(|map| {
            map.head().summary.is_none_or(is_list)
                && map.iter().all(|entry| entry.is_ok_and(|entry| is_list(entry.data)))
        }),
        _ => false,
    }
}

fn add_service(line: &mut Map<String, Json>, message: &MessageView<'_>) -> anyhow::Result<()> {
    let services = directory::services(message.payload()).context("a tick's directory cannot be read")?;
    for service in services {
        let service = service.context("a tick's directory cannot be read")?;
        line.insert("service".into(), service.id.into());
        if let Some(name) = service.name() {
            line.insert("name".into(), name.into());
        }
        if let Some(up) = service.state().and_then(|state| state.service_state) {
            line.insert("up".into(), (up != 0).into());
        }
    }
    Ok(())
}

/// Adds the summary and the entries of a map: orders with their numbers, or price levels with their keys; each with
/// its action.
fn add_map(line: &mut Map<String, Json>, message: &MessageView<'_>) -> anyhow::Result<()> {
    let map = rwf::Map::parse(message.payload()).context("a tick's map cannot be read")?;
    if let Some(summary) = map.head().summary {
        line.insert("summary".into(), fields_json(summary)?.into());
    }
    let (all, one) = match message.domain() {
        Domain::MARKET_BY_PRICE => ("levels", "level"),
        _ => ("orders", "order"),
    };
    let entries = map.iter().map(|entry| {
        let entry = entry.context("a tick's map cannot be read")?;
        let mut order = Map::new();
        order.insert("action".into(), entry.action.to_string().to_lowercase().into());
        order.insert(one.into(), String::from_utf8_lossy(entry.key).into());
        order.extend(fields_json(entry.data)?);
        Ok(Json::from(order))
    });
    line.insert(all.into(), entries.collect::<anyhow::Result<Vec<_>>>()?.into());
    Ok(())
}

fn fields_json(list: &[u8]) -> anyhow::Result<Map<String, Json>> {
    let mut fields = Map::new();
    let list = FieldList::parse(list).context("a tick's fields cannot be read")?;
    for value in list.render(Dictionary::builtin()) {
        let value = value?;
        let name = value.name().map_or_else(|| value.fid.to_string(), str::to_owned);
        fields.insert(name, field_json(&value));
    }
    Ok(fields)
}

fn field_json(value: &NamedValue<'_, '_>) -> Json {
    match value.value {
        Value::Blank => Json::Null,
        Value::Int(number) => number.into(),
        Value::UInt(number) => number.into(),
        // A real prints as a decimal number, except for infinities and similar values.
        Value::Real(real) => serde_json::from_str(&real.to_string()).unwrap_or(Json::Null),
        _ => value.to_string().into(),
    }
}

pub(crate) fn status_text(tick: &Tick<'_>) -> anyhow::Result<Option<String>> {
    if tick.header.kind != Kind::Status {
        return Ok(None);
    }
    let message = MessageView::parse(tick.body).context("a tick's RWF message cannot be read")?;
    Ok(match message.header()? {
        Header::Status(status) => status.state.map(|state| String::from_utf8_lossy(state.text).into_owned()),
        _ => None,
    })
}

/// Whether a tick stands for a message of the feed, one tick a message, where a plant publishes every message. Ticks of
/// orders and consolidated prices are extra and carry no message.
pub(crate) fn is_of_message(tick: &Tick<'_>) -> bool {
    MessageView::parse(tick.body).is_ok_and(|message| message.domain() == Domain::MARKET_PRICE)
}

fn for_each_field(tick: &Tick<'_>, mut on_field: impl FnMut(&NamedValue<'_, '_>)) -> anyhow::Result<()> {
    let message = MessageView::parse(tick.body).context("a tick's RWF message cannot be read")?;
    if message.container() != DataType::FIELD_LIST || !is_plain(&message) {
        return Ok(());
    }
    let list = FieldList::parse(message.payload()).context("a tick's fields cannot be read")?;
    for value in list.render(Dictionary::builtin()) {
        on_field(&value?);
    }
    Ok(())
}

/// The table of the known values of each symbol.
#[derive(Debug, Default)]
struct Board {
    quotes: BTreeMap<String, Quote>,
    rows: usize,
    terminal: bool,
    ticks: u64,
    shown: Option<Nanos>,
    shown_ticks: u64,
    rate_hz: f64,
    last_status: Option<String>,
    /// Notes to show next to the table.
    notes: Vec<String>,
    /// By feed: its state, and whether its data is suspect.
    feeds: BTreeMap<u16, (State, bool)>,
}

/// The known values of one symbol, as text, and its number of ticks.
#[derive(Debug, Default)]
struct Quote {
    fields: BTreeMap<&'static str, String>,
    ticks: u64,
}

/// The columns: a field's name in the dictionary and its heading.
const COLUMNS: [(&str, &str); 8] = [
    ("BIDSIZE", "bid size"),
    ("BID", "bid"),
    ("ASK", "ask"),
    ("ASKSIZE", "ask size"),
    ("TRDPRC_1", "last"),
    ("TRDVOL_1", "size"),
    ("ACVOL_1", "volume"),
    ("NUM_MOVES", "trades"),
];

impl Board {
    fn apply(&mut self, tick: &Tick<'_>, received: Nanos) -> anyhow::Result<()> {
        self.ticks += 1;
        let header = &tick.header;
        if header.channel != POSTED {
            self.feeds.insert(header.channel, (header.state, header.flags.contains(Flags::SUSPECT)));
        }
        if let Some(text) = status_text(tick)? {
            self.last_status = Some(text);
        }
        if !tick.name.is_empty() {
            if !self.quotes.contains_key(tick.name) && self.quotes.len() >= MAX_SYMBOLS {
                return Ok(());
            }
            let quote = self.quotes.entry(tick.name.to_owned()).or_default();
            quote.ticks += 1;
            for_each_field(tick, |value| {
                let column = COLUMNS.iter().find(|(name, _)| value.name() == Some(name));
                if let Some((name, _)) = column {
                    quote.fields.insert(name, value.to_string());
                }
            })?;
        }
        // Under load there are few idle moments: check the clock from time to time.
        if self.ticks.is_multiple_of(1_024) { self.show(received) } else { Ok(()) }
    }

    /// Draws a screen if the last one is old enough; only on a terminal.
    fn show(&mut self, now: Nanos) -> anyhow::Result<()> {
        let age = self.shown.map_or(i64::MAX, |shown| now.since(shown));
        if !self.terminal || age < REFRESH_NS {
            return Ok(());
        }
        if self.shown.is_some() {
            self.rate_hz = (self.ticks - self.shown_ticks) as f64 * 1e9 / age as f64;
        }
        self.shown = Some(now);
        self.shown_ticks = self.ticks;
        self.draw()
    }

    /// The busiest symbols, with the first `columns` columns.
    fn table(&self, busiest: &[(&String, &Quote)], rows: usize, columns: usize) -> String {
        let shown = &COLUMNS[..columns];
        let headings = shown.iter().map(|(_, heading)| *heading);
        let mut table = output::table(["symbol"].into_iter().chain(headings).chain(["ticks"]));
        for (name, quote) in busiest.iter().take(rows) {
            let cells = shown.iter().map(|(column, _)| quote.fields.get(column).cloned().unwrap_or_default());
            table.add_row(std::iter::once((*name).clone()).chain(cells).chain([thousands(quote.ticks)]));
        }
        table.to_string()
    }

    /// The feeds' states: one word if all are OK.
    fn states(&self) -> String {
        let word = |(state, suspect): &(State, bool)| match (state, suspect) {
            (State::Live, true) => "live, but suspect".to_owned(),
            (state, _) => state.to_string(),
        };
        if self.feeds.values().all(|feed| *feed == (State::Live, false)) {
            return if self.feeds.is_empty() { State::Initial } else { State::Live }.to_string();
        }
        let each = self.feeds.iter().map(|(number, feed)| format!("feed {number}: {}", word(feed)));
        each.collect::<Vec<_>>().join("; ")
    }

    fn draw(&mut self) -> anyhow::Result<()> {
        let mut busiest: Vec<_> = self.quotes.iter().collect();
        busiest.sort_by_key(|(name, quote)| (std::cmp::Reverse(quote.ticks), *name));
        let window = if self.terminal { rustix::termios::tcgetwinsize(std::io::stdout()).ok() } else { None };
        let (lines, width) =
            window.map_or((usize::MAX, usize::MAX), |size| (size.ws_row.into(), size.ws_col.into()));
        let rows = self.rows.min(lines.saturating_sub(FRAME_LINES + self.notes.len())).max(1);
        // On a narrow terminal, the rightmost columns are left out.
        let mut columns = COLUMNS.len();
        let mut table = self.table(&busiest, rows, columns);
        while columns > 2 && table.lines().any(|line| line.chars().count() > width) {
            columns -= 1;
            table = self.table(&busiest, rows, columns);
        }
        let mut text = String::new();
        if self.terminal {
            // Cursor to the top left, and clear to the end of the screen.
            text.push_str("\x1b[H\x1b[J");
        }
        let [symbols, ticks] = [self.quotes.len() as u64, self.ticks].map(thousands);
        let (rate, states) = (output::rate(self.rate_hz, "ticks"), self.states());
        text.push_str(&format!("{symbols} symbols, {ticks} ticks, {rate}; {states}\n\n{table}\n"));
        if let Some(status) = &self.last_status {
            text.push_str(&format!("last status: {status}\n"));
        }
        for note in &self.notes {
            text.push_str(&format!("{note}\n"));
        }
        output::print(text.trim_end())
    }
}
