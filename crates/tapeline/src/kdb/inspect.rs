//! `tapeline kdb inspect`: shows the content of tickerplants' logs.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use serde_json::json;
use tapeline_console::output::Progress;
use tapeline_console::{FilePath, Format, Stop, output, paths};
use tapeline_kdb::Order;
use tapeline_node::tick::log_file::LogFile;

use super::report::LogReport;
use super::tally::LogTally;

/// Number of messages between two checks for a stop request.
const LOOK_EVERY: u64 = 4_096;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tapeline kdb inspect sym2022.06.16\n  \
    tapeline kdb inspect trade.gz quote.gz --format json   numbers and times as in the log")]
pub(crate) struct InspectLog {
    /// Logs of a tickerplant, plain or gzip
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<FilePath>,
    /// Read logs of a big-endian machine (SPARC)
    #[arg(long)]
    big_endian: bool,
    /// Output format
    #[arg(long, default_value = "table")]
    format: Format,
}

impl InspectLog {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals().context("cannot listen for signals")?;
        let order = if self.big_endian { Order::Big } else { Order::Little };
        let mut reports = Vec::new();
        for path in &self.logs {
            reports.push(read(path, order, &stop)?);
        }
        match self.format {
            Format::Json => {
                output::print_json(
                    &json!({ "files": reports.iter().map(LogReport::json).collect::<Vec<_>>() }),
                )?;
            }
            Format::Table => {
                for (number, report) in reports.iter().enumerate() {
                    if number > 0 {
                        output::print("")?;
                    }
                    report.print_tables()?;
                }
            }
        }
        reports.iter().for_each(LogReport::print_faults);
        let is_damaged = reports.iter().any(|report| report.tail.is_some() || report.failure.is_some());
        Ok(if is_damaged { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// Reads a log to its end, or until the user stops it.
fn read(path: &Path, order: Order, stop: &Stop) -> anyhow::Result<LogReport> {
    let mut log = LogFile::open(path, &paths::shown(&path), order)?;
    let mut tally = LogTally::default();
    let mut progress = Progress::counting("reading", "messages", None);
    let tail = log.each(|offset, message| {
        tally.add(offset, message);
        if tally.messages.is_multiple_of(LOOK_EVERY) {
            progress.set(tally.messages);
            return !stop.requested();
        }
        true
    });
    drop(progress);
    let failure = log.failure.as_ref().map(ToString::to_string);
    Ok(LogReport { path: paths::shown(&path).to_string(), whole_bytes: log.offset, tally, tail, failure })
}
