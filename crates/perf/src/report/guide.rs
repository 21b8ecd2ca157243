//! Files of other vendors' performance tools, in the formats of LSEG's guide: interval statistics and single
//! latencies.

use std::path::Path;

use anyhow::{Context, bail};
use tapeline_measure::Recorder;

use super::folder::{name_of, text_of};
use super::groups::{UPDATES, group_of};
use super::loaded::{Latency, Loaded, Moment};

/// The first words of a latency file, and of a statistics file.
const LATENCIES: &str = "Message type";
const STATISTICS: &str = "UTC";
const NS_PER_US: f64 = 1_000.0;
/// The number of bytes that these tools call 1 MB.
const MEGABYTE: f64 = 1_048_576.0;
/// The note shown with every latency file.
const ALL_OF_IT: &str =
    "A latency file has the times of the whole run, start-up included, from the start of encoding.";

/// Loads a folder in which such tools ran, all their files combined. `None` if the folder has no such file.
///
/// # Errors
/// One of the files cannot be read; the error names the file and the line.
pub(super) fn folder(path: &Path) -> anyhow::Result<Option<Loaded>> {
    let mut files: Vec<_> = std::fs::read_dir(path)?
        .collect::<Result<Vec<_>, _>>()?
        .iter()
        .map(std::fs::DirEntry::path)
        .collect();
    files.sort();
    let name = path.canonicalize()?;
    let (mut whole, mut others) = (None::<(String, Loaded)>, Vec::new());
    for file in files.iter().filter(|file| file.extension().is_some_and(|is| is == "csv")) {
        let Some(loaded) = self::file(file)? else { continue };
        let tool = tool_of(&loaded.name);
        match &mut whole {
            // The figures of a consumer and of its provider must not be added: the user has to name the files.
            Some((of, _)) if *of != tool => others.push(loaded.name),
            Some((_, whole)) => whole.take(loaded),
            None => whole = Some((tool, loaded)),
        }
    }
    Ok(whole.map(|(_, mut whole)| {
        if !others.is_empty() {
            whole.notes.push(format!(
                "Files of other tools in this folder were passed over: {}.",
                others.join(", ")
            ));
        }
        let name = name_of(&name);
        Loaded { group: group_of(&name), name, ..whole }
    }))
}

/// The tool that wrote a file, from the file name: `Cons` for ConsStats1.
fn tool_of(name: &str) -> String {
    let end = ["Stats", "Latency", "latency"].iter().filter_map(|word| name.find(word)).min();
    name[..end.unwrap_or(name.len())].to_owned()
}

/// Loads one file; `None` if it has neither format.
///
/// # Errors
/// A line does not have the expected form.
pub(super) fn file(path: &Path) -> anyhow::Result<Option<Loaded>> {
    let text = text_of(path)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let head = text.lines().next().unwrap_or_default();
    let columns: Vec<&str> = head.split(',').map(str::trim).collect();
    let (rows, is_cut) = rows(&text);
    let read = match columns.first() {
        Some(&LATENCIES) => latencies(&columns, &rows),
        Some(&STATISTICS) => statistics(&columns, &rows),
        _ => return Ok(None),
    };
    let file = name_of(path);
    let mut loaded = read.with_context(|| file.clone())?;
    if is_cut {
        loaded
            .notes
            .push(format!("The last line of {file} has no end, as its writer was cut off: it is left out."));
    }
    // ProvStats1, NIProvStats1, IProvLatency.
    if tool_of(&name).ends_with("Prov") {
        loaded.kind = format!("provider's {}", loaded.kind);
    }
    Ok(Some(Loaded { group: group_of(&name), name, ..loaded }))
}

/// The rows below the first line, each with its line number, and whether the last line was incomplete. An
/// incomplete last line is left out: its values may be truncated.
fn rows(text: &str) -> (Vec<(usize, &str)>, bool) {
    let mut rows: Vec<(usize, &str)> = (2..).zip(text.lines().skip(1)).collect();
    let is_cut = !rows.is_empty() && !text.ends_with('\n');
    if is_cut {
        rows.pop();
    }
    rows.retain(|(_, row)| !row.trim().is_empty());
    (rows, is_cut)
}

/// The number in a column of a row, if the file has the column and the cell is not empty.
fn number_in(
    columns: &[&str],
    cells: &[&str],
    at: Option<usize>,
    line: usize,
) -> anyhow::Result<Option<f64>> {
    let Some((at, column)) = at.and_then(|at| Some((at, columns.get(at)?))) else { return Ok(None) };
    let cell = cells.get(at).with_context(|| {
        format!("line {line}, column {column}: the line ends before it; expected {} columns", columns.len())
    })?;
    if cell.is_empty() {
        return Ok(None);
    }
    let number = cell.parse::<f64>();
    let number =
        number.ok().with_context(|| format!("line {line}, column {column}: '{cell}' is no number"))?;
    Ok(number.is_finite().then_some(number))
}

impl Loaded {
    /// Adds another file of the same run.
    fn take(&mut self, other: Self) {
        for latency in other.latency {
            match self.latency.iter_mut().find(|known| known.name == latency.name) {
                Some(known) => known.distribution.merge(&latency.distribution),
                None => self.latency.push(latency),
            }
        }
        // Updates, if there are any, go last: the last entry represents the run.
        self.latency.sort_by_key(|latency| latency.name == UPDATES);
        self.timelines.extend(other.timelines);
        // The rates of one tool's threads are added.
        self.throughput = match (self.throughput, other.throughput) {
            (Some(one), Some(other)) => Some(one + other),
            (one, other) => one.or(other),
        };
        self.cpu_cores = self.cpu_cores.or(other.cpu_cores);
        self.memory_bytes = self.memory_bytes.or(other.memory_bytes);
        self.seconds = self.seconds.or(other.seconds);
        self.notes.extend(other.notes);
        self.notes.dedup();
    }
}

/// Reads the columns `Message type, Send time, Receive time, Latency (usec)`.
fn latencies(columns: &[&str], rows: &[(usize, &str)]) -> anyhow::Result<Loaded> {
    let at = columns.iter().position(|column| column.starts_with("Latency"));
    let at = at.context("line 1: there is no column Latency")?;
    let scale = match columns.get(at).and_then(|column| column.split_once('(')) {
        Some((_, "nsec)")) => 1.0,
        Some((_, "usec)")) => NS_PER_US,
        _ => bail!("line 1: expected a column Latency (usec) or Latency (nsec), not {}", columns[at]),
    };
    let mut all: Vec<Latency> = Vec::new();
    for (number, line) in rows {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let latency = cells.get(at).and_then(|cell| cell.parse::<f64>().ok());
        let latency = latency.with_context(|| format!("line {number}: the latency is no number: {line}"))?;
        let kind = match cells.first() {
            Some(&"Upd") => UPDATES,
            Some(&"Pst") => "posts",
            Some(&"Gen") => "generic messages",
            _ => bail!("line {number}: expected Upd, Pst or Gen: {line}"),
        };
        let at = all.iter().position(|known| known.name == kind).unwrap_or_else(|| {
            all.push(Latency { name: kind.to_owned(), distribution: Recorder::new() });
            all.len() - 1
        });
        all[at].distribution.record((latency * scale).round() as i64);
    }
    all.sort_by_key(|latency| latency.name == UPDATES);
    Ok(Loaded {
        kind: "latency file".to_owned(),
        latency: all,
        notes: vec![ALL_OF_IT.to_owned()],
        ..Loaded::default()
    })
}

/// Reads interval statistics of a consumer, a provider or a transport tool.
fn statistics(columns: &[&str], rows: &[(usize, &str)]) -> anyhow::Result<Loaded> {
    let at = |name: &str| columns.iter().position(|column| *column == name);
    // A column with a rate, or else a column with a count for the interval.
    let (rate, count) =
        (at("Update rate (msg/sec)"), at("Updates sent").or(at("Msgs received")).or(at("Msgs sent")));
    let mut moments: Vec<Moment> = Vec::new();
    let (mut first, mut before) = (None, None::<f64>);
    for (number, line) in rows {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let time = cells.first().and_then(|cell| seconds_of_day(cell));
        let time = time
            .with_context(|| format!("line {number}: expected a time such as 2021-06-02 13:07:27: {line}"))?;
        let first = *first.get_or_insert(time);
        // The run passed midnight.
        let second = if time < first { time + 86_400.0 } else { time } - first;
        let cell = |at: Option<usize>| number_in(columns, &cells, at, *number);
        let us = |name: &str| -> anyhow::Result<Option<f64>> {
            Ok(cell(at(name))?.filter(|us| *us > 0.0).map(|us| us * NS_PER_US))
        };
        let interval = before.map(|before| second - before).filter(|interval| *interval > 0.0);
        before = Some(second);
        let count = cell(count)?;
        moments.push(Moment {
            second,
            messages_per_second: cell(rate)?.or_else(|| Some(count? / interval?)),
            mean_ns: us("Latency avg (usec)")?,
            max_ns: us("Latency max (usec)")?,
            cpu_percent: cell(at("CPU usage (%)"))?,
            memory_bytes: cell(at("Memory (MB)"))?.map(|megabytes| megabytes * MEGABYTE),
            ..Moment::default()
        });
    }
    let mean = |of: fn(&Moment) -> Option<f64>| {
        let all: Vec<f64> = moments.iter().filter_map(of).collect();
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    };
    Ok(Loaded {
        kind: "statistics file".to_owned(),
        throughput: mean(|moment| moment.messages_per_second),
        cpu_cores: mean(|moment| moment.cpu_percent).map(|percent| percent / 100.0),
        memory_bytes: moments.iter().filter_map(|moment| moment.memory_bytes).reduce(f64::max),
        seconds: moments.last().map(|moment| moment.second),
        notes: vec!["Averages and maxima by interval are all that a statistics file has; a latency file has every latency.".to_owned()],
        timelines: vec![moments],
        ..Loaded::default()
    })
}

/// The second of the day of a time such as `2021-06-02 13:07:27`.
fn seconds_of_day(text: &str) -> Option<f64> {
    let (_, time) = text.split_once(' ')?;
    let mut parts = time.split(':').map(|part| part.parse::<f64>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    Some((hours * 60.0 + minutes) * 60.0 + seconds)
}
