//! `tapeline journal import`: rows of kdb+ logs as ticks of a journal.
//!
//! | file | owns |
//! |---|---|
//! | `import/mapping.rs` | maps columns to fields: a file of the user's, or the usual mapping |
//! | `import/cell.rs` | a q value as a field |
//! | `import/ticks.rs` | converts rows to ticks in the journal |
//! | `import/untaken.rs` | data that could not be taken, by place and reason |

mod cell;
mod mapping;
mod ticks;
mod untaken;

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use jiff::civil::Date;
use serde_json::json;
use tapeline_console::output::{Progress, table};
use tapeline_console::{FilePath, Format, Hinted, Stop, output, paths};
use tapeline_journal::{Directory, Settings, Writer};
use tapeline_kdb::{Order, Update};
use tapeline_measure::figures::thousands;
use tapeline_node::tick::log_file::LogFile;

use self::mapping::{Mapping, TABLES_HINT};
use self::ticks::Ticks;
use super::hinted;

/// Messages between two checks for an interrupt.
const LOOK_EVERY: u64 = 4_096;

#[derive(Debug, Args)]
#[command(
    after_help = "Each row becomes a tick of the item that its `sym` names, at its `time`. An item's first tick is an image without \
    fields. A file (--tables) maps columns to fields of the dictionary:\n\n  \
    [[table]]\n  name = \"trade\"\n  columns = [\"time\", \"sym\", \"price\", \"size\"]\n  \
    fields = { price = \"TRDPRC_1\", size = \"TRDVOL_1\" }\n\n\
    Without --tables, this mapping is used, and one for a table `quote` with the columns time, sym, bid, ask, bsize and asize; \
    columns without names whose types do not fit are an error. Logs of `tapeline journal export` are recognized by the types of their columns. The output \
    lists by name what was not imported. Give logs of several tables in the order of their times.\n\nExamples:\n  \
    tapeline journal import sym2022.06.16 --into journal\n  \
    tapeline journal import trade.gz quote.gz --into journal --tables tables.toml --format json"
)]
pub(crate) struct Import {
    /// Logs of a tickerplant, plain or gzip
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<FilePath>,
    /// The journal's folder: a new one, or an existing one to append to
    #[arg(long, value_name = "FOLDER")]
    into: FilePath,
    /// File that maps columns to fields
    #[arg(long, value_name = "FILE")]
    tables: Option<FilePath>,
    /// Date of times without a date [default: the date at the end of a log's name, such as sym2022.06.16]
    #[arg(long, value_name = "DATE")]
    date: Option<Date>,
    /// Read logs of a big-endian machine (SPARC)
    #[arg(long)]
    big_endian: bool,
    /// Output format of the summary
    #[arg(long, default_value = "table")]
    format: Format,
}

impl Import {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals()?;
        let mapping = match &self.tables {
            Some(path) => Mapping::read(path)?,
            None => Mapping::usual(),
        };
        // Open all logs first, so that a wrong name does not leave half an import.
        let order = if self.big_endian { Order::Big } else { Order::Little };
        let mut logs = Vec::new();
        for path in &self.logs {
            logs.push((path, LogFile::open(path, &paths::shown(path), order)?));
        }
        let into = paths::shown(&self.into).to_string();
        let journal = Directory::create(&self.into).and_then(|open| Writer::open(open, Settings::default()));
        let (writer, opened) =
            journal.map_err(|error| hinted(&format!("cannot open the journal in {into}"), error))?;
        if let Some(tail) = &opened.tail {
            let (bytes, tick) = (thousands(tail.bytes), tail.after);
            anstream::eprintln!("the journal was torn: {bytes} bytes after tick {tick} were cut off");
        }
        let mut ticks = Ticks::new(writer, opened.last, &mapping);
        let mut is_whole = true;
        for (path, log) in &mut logs {
            ticks.begin_log(self.date.or_else(|| day_of(path)));
            is_whole &= read(path, log, &mut ticks, &stop)?;
        }
        let done = ticks.finish()?;
        if self.format == Format::Json {
            output::print_json(&json!({
                "ticks": done.ticks,
                "items": done.items,
                "first": (done.ticks > 0).then_some(opened.last + 1),
                "last": (done.ticks > 0).then_some(opened.last + done.ticks),
                "rows": done.rows,
                "not_taken": done.untaken.json(),
            }))?;
        } else {
            let mut rows = table(["table", "rows"]);
            for (name, count) in &done.rows {
                rows.add_row([name.as_str(), &thousands(*count)]);
            }
            let [ticks, items] = [done.ticks, done.items].map(thousands);
            output::print(&format!("{ticks} ticks of {items} items appended to {into}\n\n{rows}"))?;
        }
        done.untaken.say();
        if done.rows.is_empty()
            && let Some((rows, why)) = done.untaken.rows()
        {
            let what = format!("nothing was imported: 0 of {} rows were taken", thousands(rows));
            return Err(anyhow::anyhow!(why).context(Hinted::new(what, TABLES_HINT)));
        }
        Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// The date at the end of a log's name, as `tick.q` writes it, such as `sym2022.06.16`, or `sym2022.06.16.gz`.
fn day_of(path: &Path) -> Option<Date> {
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix(".gz").unwrap_or(name);
    let day = name.get(name.len().checked_sub(10)?..)?;
    let is_day = day
        .bytes()
        .enumerate()
        .all(|(at, byte)| if matches!(at, 4 | 7) { byte == b'.' } else { byte.is_ascii_digit() });
    is_day.then(|| day.replace('.', "-").parse().ok())?
}

/// Reads a log to its end; returns whether it ended with a complete message.
fn read(path: &Path, log: &mut LogFile, ticks: &mut Ticks<'_>, stop: &Stop) -> anyhow::Result<bool> {
    let mut progress = Progress::counting("importing", "messages", None);
    let (mut messages, mut failed) = (0, None);
    let tail = log.each(|offset, message| {
        messages += 1;
        if messages % LOOK_EVERY == 0 {
            progress.set(messages);
            if stop.requested() {
                failed = Some(anyhow::anyhow!("stopped after message {messages}"));
                return false;
            }
        }
        match Update::of(message) {
            Ok(update) => failed = ticks.add(&update, offset).err(),
            Err(reason) => ticks.untaken.count("", None, &reason.to_string(), 1, offset),
        }
        failed.is_none()
    });
    drop(progress);
    if let Some(failed) = failed {
        let what = format!("{} was not imported completely", paths::shown(&path));
        return Err(failed
            .context(Hinted::new(what, "the rows before that are in the journal: import into a new one")));
    }
    if let Some(cause) = &log.failure {
        anstream::eprintln!("warning: {} cannot be read to its end: {cause}", paths::shown(&path));
        return Ok(false);
    }
    if let Some(tail) = &tail {
        anstream::eprintln!(
            "warning: {}: {} bytes from byte {} on are not a whole message: {}; `tapeline kdb inspect` shows more",
            paths::shown(&path),
            thousands(tail.bytes),
            tail.offset,
            tail.fault
        );
    }
    Ok(tail.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logs_day_is_at_the_end_of_its_name() {
        let day = |name| day_of(Path::new(name)).map(|day| day.to_string());
        for name in ["sym2022.06.16", "logs/tapeline2022.06.16", "2022.06.16", "sym2022.06.16.gz"] {
            assert_eq!(day(name).as_deref(), Some("2022-06-16"), "{name}");
        }
        for name in ["stp1_trade20220616122504", "sym2022.13.16", "sym", "sym2022-06-16", "", "é22.06.16"] {
            assert_eq!(day(name), None, "{name}");
        }
    }
}
