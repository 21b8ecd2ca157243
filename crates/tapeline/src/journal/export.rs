//! `tapeline journal export`: ticks as rows of tables, in files for other programs.
//!
//! | file | owns |
//! |---|---|
//! | `export/days.rs` | batches of a day's rows, and when they are written |
//! | `export/files.rs` | the files: their places, and that each is complete |

mod days;
mod files;

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::json;
use tapeline_console::output::{Progress, table};
use tapeline_console::{FilePath, Format, Hinted, Stop, arguments, output, paths};
use tapeline_export::{Numbers, Rows, SortBy, Table};
use tapeline_journal::{Directory, Next, Reader, Tail};
use tapeline_measure::figures::thousands;

use self::days::{DayOf, Days, Sorting};
use self::files::Files;
use super::ending::{say_torn, torn_json};
use super::place::Place;
use super::{broken, tick_of, warn_of_missing};

/// Ticks between two checks for an interrupt.
const LOOK_EVERY: u64 = 4_096;

#[derive(Debug, Args)]
#[command(
    after_help = "Every tick is a row of `ticks`. Trades, quotes, orders and auctions have their own tables, and every other field is a \
    row of `fields`. A broken trade is a row of `trades` whose `action` is `break`, with the number of the trade in `trade_id`.\n\n\
    Parquet files are DIR/trades/date=2026-11-21/part-0.parquet and so on. DuckDB, Polars, Spark and ClickHouse read them as one table \
    with a column `date`. Days are UTC, by the time at which a tick was published, or with --day event by the time of its event. \
    --sort orders the rows of a file by `name` and `time` (with --day event by `event_time`). It keeps all rows of a day in memory \
    until the day ends: at most --sort-limit, and up to twice as much while the files are written. Beyond the limit the command \
    fails. With --day event, at most eight days are open at once. When a ninth begins, the day that has had no tick for the \
    longest time is closed; if it gets ticks again, they go to another file.\n\n\
    A kdb-log is DIR/tapeline2026.11.21, with the tables' definitions in DIR/tables.q. Either all ticks are exported, or the command \
    fails.\n\nExamples:\n  \
    tapeline journal export journal parquet --to parquet\n  \
    tapeline journal export journal tplogs --to kdb-log --tables trades,quotes"
)]
pub(crate) struct Export {
    #[command(flatten)]
    place: Place,
    /// Output folder; it must be empty, or must not exist yet
    #[arg(value_name = "DIR")]
    into: FilePath,
    /// Format of the exported files
    #[arg(long, value_name = "FORMAT")]
    to: To,
    /// Tables to export: ticks, trades, quotes, orders, auctions, fields [default: all]
    #[arg(long, value_name = "TABLE,…", value_delimiter = ',', value_parser = named_table)]
    tables: Vec<Table>,
    /// Type of prices and sizes
    #[arg(long, default_value = "exact")]
    numbers: Held,
    /// How to assign ticks to days
    #[arg(long, default_value = "published", value_name = "WHICH")]
    day: DayOf,
    /// Sort the rows of each Parquet file by name and time
    #[arg(long)]
    sort: bool,
    /// Memory limit for the rows to sort
    #[arg(long, value_name = "SIZE", default_value = "1GiB", requires = "sort", value_parser = arguments::some_size)]
    sort_limit: u64,
    /// Output format of the summary
    #[arg(long, default_value = "table")]
    format: Format,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum To {
    /// Parquet files by table and day
    Parquet,
    /// A kdb+ log for each day: the file that `-11!` replays
    KdbLog,
}

/// The type of numbers.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Held {
    /// Prices as DECIMAL(18,9), in kdb+ as float; sizes as integers; a value that does not fit exactly is an error
    Exact,
    /// Prices and sizes as doubles
    Double,
}

fn named_table(name: &str) -> Result<Table, String> {
    let known = Table::ALL.iter().find(|table| table.name() == name);
    known.copied().ok_or_else(|| {
        let names = Table::ALL.map(Table::name);
        format!("one of {} is expected", names.join(", "))
    })
}

#[derive(Debug, Default)]
struct Done {
    ticks: u64,
    first: Option<u64>,
    last: Option<u64>,
    missing: u64,
    torn: Option<Tail>,
}

impl Export {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals()?;
        let numbers = match (self.numbers, self.to) {
            (Held::Double, _) => Numbers::Double,
            (Held::Exact, To::Parquet) => Numbers::Exact,
            (Held::Exact, To::KdbLog) => Numbers::WholeSizes,
        };
        if self.sort && self.to == To::KdbLog {
            let what = "--sort is for Parquet: a log keeps the order of its ticks";
            return Err(Hinted::of_options(what, "leave out --sort, or write --to parquet").into());
        }
        let by = if self.day == DayOf::Event { SortBy::Event } else { SortBy::Published };
        let sorting = self.sort.then_some(Sorting { by, limit: self.sort_limit });
        let tables = if self.tables.is_empty() { Table::ALL.to_vec() } else { self.tables.clone() };
        let mut reader = self.place.open()?;
        let files = match self.to {
            To::Parquet => Files::parquet(&self.into, numbers, self.sort.then_some(by))?,
            To::KdbLog => Files::kdb_logs(&self.into, &tables, numbers)?,
        };
        let mut days = Days::new(files, &tables, numbers, self.day, sorting);
        let done = export(&mut reader, &mut days, &stop)?;
        let rows = days.finish().map_err(|error| {
            failed(error).context(format!("the export to {} is incomplete", paths::shown(&self.into)))
        })?;
        if let Some(tail) = &done.torn {
            say_torn(tail);
        }
        if self.format == Format::Json {
            let mut tables = serde_json::Map::new();
            for ((table, day), rows) in &rows {
                tables.entry(table.name()).or_insert_with(|| json!({}))[day] = json!(rows);
            }
            output::print_json(&json!({
                "ticks": done.ticks,
                "first": done.first,
                "last": done.last,
                "missing": done.missing,
                "torn": done.torn.as_ref().map(torn_json),
                "rows": tables,
            }))?;
        } else {
            let mut counts = table(["table", "day", "rows"]);
            for ((table, day), rows) in &rows {
                counts.add_row([table.name(), day, &thousands(*rows)]);
            }
            let ([ticks, missing], into) =
                ([done.ticks, done.missing].map(thousands), paths::shown(&self.into));
            output::print(&format!("{ticks} ticks to {into}, {missing} missing\n\n{counts}"))?;
        }
        Ok(if done.missing > 0 { ExitCode::from(3) } else { ExitCode::SUCCESS })
    }
}

/// Adds a hint to an export error.
fn failed(error: tapeline_export::Error) -> anyhow::Error {
    let hint = error.hint().unwrap_or_default();
    anyhow::Error::new(error).context(Hinted::new("ticks cannot be written as rows", hint))
}

/// Exports the journal from the reader's position.
fn export(reader: &mut Reader<Directory>, days: &mut Days, stop: &Stop) -> anyhow::Result<Done> {
    let mut done = Done::default();
    let mut rows = Rows::default();
    let mut progress = Progress::counting("exporting", "ticks", None);
    loop {
        match reader.next().map_err(broken)? {
            Next::Record(record) => {
                let tick = tick_of(&record)?;
                days.turn_to(&tick.header).map_err(failed)?;
                rows.add(&tick, days).map_err(failed)?;
                done.ticks += 1;
                done.first.get_or_insert(record.seq);
                done.last = Some(record.seq);
                if done.ticks.is_multiple_of(LOOK_EVERY) {
                    progress.set(done.ticks);
                    anyhow::ensure!(
                        !stop.requested(),
                        "stopped after tick {}: the export is incomplete",
                        record.seq
                    );
                }
            }
            Next::Missing { from, to } => {
                progress.apart(|| done.missing += warn_of_missing(from, to));
                // The changes in the gap are not known.
                rows.forget();
            }
            Next::End => {
                done.torn = reader.ending().map_err(broken)?;
                return Ok(done);
            }
        }
    }
}
