//! Run folders of Tapeline's programs.

use std::path::Path;

use anyhow::{Context, bail};
use serde_json::Value;
use tapeline_console::paths;
use tapeline_measure::read_hlog;

use super::groups::group_of;
use super::loaded::{Latency, Loaded, LoadedPhase, Moment};

/// The supported layout of `run.json`.
const LAYOUT: u64 = 1;
/// Size limit of a file, in bytes.
const LARGEST: u64 = 64 << 20;

/// Loads a run folder.
///
/// # Errors
/// One of its files cannot be read; the error names the file and the place.
pub(super) fn load(path: &Path) -> anyhow::Result<Loaded> {
    let text = text_of(&path.join("run.json"))?;
    let run: Value = serde_json::from_str(&text).context("run.json is no JSON")?;
    match run["layout"].as_u64() {
        _ if run["kind"] == "burst" => bail!(
            "this is a run of `tapeline burst`, which measures the time to drain one burst and has plots of its own in its folder; \
            reports compare runs of messages over time"
        ),
        Some(LAYOUT) => {}
        Some(other) => bail!(
            "run.json has layout {other}; this program reads {LAYOUT}: make the report with the one that wrote it"
        ),
        None => bail!("run.json has no layout: it is no record of a run"),
    }
    let name = name_of(&path.canonicalize()?);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let processes = run["processes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let sum = |of: &str| {
        let all: Vec<f64> = processes.iter().filter_map(|process| process[of].as_f64()).collect();
        (!all.is_empty()).then(|| all.iter().sum())
    };
    let mut loaded = Loaded {
        group: group_of(&name),
        kind: text(&run["kind"]),
        started: text(&run["started_utc"]),
        seconds: run["seconds"].as_f64(),
        verdict: run["verdict"].as_str().map(|verdict| (verdict.to_owned(), text(&run["why"]))),
        throughput: run["throughput"]["messages_per_second"].as_f64(),
        lost: run["lost"].as_u64(),
        cpu_cores: sum("cores"),
        memory_bytes: sum("peak_resident_bytes"),
        latency: latencies(path)?,
        steps: run["steps"].as_array().into_iter().flatten().filter_map(step).collect(),
        timelines: timelines(path)?,
        phases: run["phases"].as_array().into_iter().flatten().map(phase).collect(),
        jitter_floor_ns: run["jitter_floor_p99_ns"].as_u64(),
        environment: flat(&run["environment"]),
        settings: flat(&run["settings"]),
        name,
        ..Loaded::default()
    };
    let of_all: Vec<Moment> = run["timeline"].as_array().into_iter().flatten().map(moment).collect();
    if !of_all.is_empty() {
        loaded.timelines.push(of_all);
    }
    Ok(loaded)
}

/// The distributions, in the order of `run.json`.
fn latencies(path: &Path) -> anyhow::Result<Vec<Latency>> {
    let file = path.join("latency.hlog");
    if !file.exists() {
        return Ok(Vec::new());
    }
    let all = read_hlog(text_of(&file)?.as_bytes()).context("latency.hlog")?;
    Ok(all.into_iter().map(|(name, distribution)| Latency { name, distribution }).collect())
}

/// Reads `stats-1.csv`, `stats-2.csv` and so on.
fn timelines(path: &Path) -> anyhow::Result<Vec<Vec<Moment>>> {
    let mut all = Vec::new();
    for number in 1.. {
        let file = path.join(format!("stats-{number}.csv"));
        if !file.exists() {
            break;
        }
        let text = text_of(&file)?;
        let mut lines = text.lines();
        let head: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        let at = |name: &str| head.iter().position(|column| *column == name);
        let mut rows = Vec::new();
        for (line, row) in (2..).zip(lines) {
            let cells: Vec<&str> = row.split(',').collect();
            let number = |name: &str| -> anyhow::Result<Option<f64>> {
                let Some(at) = at(name) else { return Ok(None) };
                let cell = cells.get(at).and_then(|cell| cell.parse().ok());
                let place = || format!("stats-{number}.csv, line {line}: {name} is no number");
                cell.with_context(place).map(Some)
            };
            let second = number("start_s")?;
            let second = second.with_context(|| format!("{}: there is no start_s", paths::shown(&file)))?;
            rows.push(Moment {
                second,
                median_ns: number("p50_ns")?,
                p99_ns: number("p99_ns")?,
                max_ns: number("max_ns")?,
                ..Moment::default()
            });
        }
        all.push(rows);
    }
    Ok(all)
}

fn moment(second: &Value) -> Moment {
    Moment {
        second: second["second"].as_f64().unwrap_or(0.0),
        messages_per_second: second["messages"].as_f64(),
        cpu_percent: second["cpu_percent"].as_f64(),
        memory_bytes: second["memory_bytes"].as_f64(),
        ..Moment::default()
    }
}

/// A hop's name, mean and floor; `None` for a sum of hops.
fn step(step: &Value) -> Option<(String, f64, Option<f64>)> {
    if step["is_sum"] == true {
        return None;
    }
    Some((step["name"].as_str()?.to_owned(), step["mean_ns"].as_f64()?, step["relay_ns"].as_f64()))
}

fn phase(phase: &Value) -> LoadedPhase {
    // Response time (from the due time) where the run has it, service time otherwise.
    let has_due = phase["response"]["samples"].as_u64().is_some_and(|samples| samples > 0);
    let latency = &phase[if has_due { "response" } else { "service" }]["latency_ns"];
    LoadedPhase {
        name: phase["name"].as_str().unwrap_or_default().to_owned(),
        seconds: phase["seconds"].as_f64().unwrap_or(0.0),
        messages_per_second: phase["messages_per_second"].as_f64().unwrap_or(0.0),
        latency: latency
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(rank, ns)| Some((rank.clone(), ns.as_u64()?)))
            .collect(),
    }
}

/// The members of an object; a member of a nested object is named `outer: inner`.
fn flat(value: &Value) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        match value {
            Value::Object(_) => {
                all.extend(flat(value).into_iter().map(|(inner, value)| (format!("{name}: {inner}"), value)));
            }
            Value::Null => {}
            Value::String(text) => all.push((name.clone(), text.clone())),
            other => all.push((name.clone(), other.to_string())),
        }
    }
    all
}

/// The name of a file or folder.
pub(super) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The text of a file, if the file does not exceed the size limit.
pub(super) fn text_of(path: &Path) -> anyhow::Result<String> {
    let name = name_of(path);
    let size = std::fs::metadata(path).with_context(|| name.clone())?.len();
    if size > LARGEST {
        bail!("{name} has {size} bytes; {LARGEST} at most are read");
    }
    std::fs::read_to_string(path).with_context(|| name)
}
