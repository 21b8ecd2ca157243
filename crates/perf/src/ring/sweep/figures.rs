//! The figures of a sweep: medians of a cell's runs, with their spread.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use tapeline_console::{arguments, output};
use tapeline_measure::figures;

use super::plan::{Cell, SweepPlan};
use super::record::Record;
use crate::ring::view;
use crate::spread::Spread;

/// The results of one cell.
#[derive(Debug, Serialize)]
pub(super) struct SweepFigure {
    #[serde(flatten)]
    pub(super) cell: Cell,
    pub(super) runs: usize,
    /// Whether processes shared a core.
    pub(super) shared_cores: bool,
    /// Of the subscriber with the lowest throughput.
    pub(super) messages_per_second: Option<Spread>,
    pub(super) bytes_per_second: Option<Spread>,
    /// Latency from sent to received of the slowest subscriber, by percentile.
    pub(super) latency_ns: BTreeMap<&'static str, Spread>,
    /// Messages between two moments at which a subscriber had read everything: near one, both sides touch the same
    /// cache lines all the time; in the thousands, they rarely do.
    pub(super) messages_per_catch_up: Option<Spread>,
    /// The share of the time in which the ring was full.
    pub(super) held_back_share: Option<Spread>,
    /// Over all runs and all subscribers.
    pub(super) lost: u64,
    /// The number of times that each verdict was given.
    pub(super) verdicts: BTreeMap<String, usize>,
}

/// The percentiles in a figure.
const RANKS: [&str; 6] = ["min", "p50", "p90", "p99", "p99.9", "max"];

impl SweepFigure {
    /// The figures of all cells with a record, in the plan's order.
    pub(super) fn all(folder: &Path, plan: &SweepPlan) -> Vec<Self> {
        let records = |cell: &Cell| -> Vec<Record> {
            (1..=plan.runs).filter_map(|round| Record::read(folder, cell, round)).collect()
        };
        plan.cells
            .iter()
            .map(|cell| (cell, records(cell)))
            .filter(|(_, records)| !records.is_empty())
            .map(|(cell, records)| Self::of(cell, &records))
            .collect()
    }

    fn of(cell: &Cell, records: &[Record]) -> Self {
        let each = |value: &dyn Fn(&Record) -> Option<f64>| {
            Spread::of(records.iter().filter_map(value), f64::total_cmp, f64::midpoint)
        };
        let latency_ns = RANKS
            .into_iter()
            .filter_map(|rank| {
                let pointer = format!("/service/latency_ns/{rank}");
                // A percentile is included only if every run has it.
                let values: Option<Vec<f64>> =
                    records.iter().map(|record| worst(record, &pointer, f64::max)).collect();
                Some((rank, Spread::of(values?, f64::total_cmp, f64::midpoint)?))
            })
            .collect();
        let mut verdicts = BTreeMap::new();
        let mut lost = 0;
        for subscriber in records.iter().flat_map(|record| &record.subscribers) {
            let verdict = subscriber["verdict"].as_str().unwrap_or("none").to_owned();
            *verdicts.entry(verdict).or_insert(0) += 1;
            lost += subscriber["lost"].as_u64().unwrap_or(0) + subscriber["passed"].as_u64().unwrap_or(0);
        }
        Self {
            cell: cell.clone(),
            runs: records.len(),
            shared_cores: records.iter().any(|record| record.shared_cores),
            messages_per_second: each(&|record| worst(record, "/messages_per_second", f64::min)),
            bytes_per_second: each(&|record| worst(record, "/bytes_per_second", f64::min)),
            latency_ns,
            messages_per_catch_up: each(&|record| {
                let messages = worst(record, "/messages", f64::min)?;
                Some(messages / worst(record, "/caught_up", f64::max)?.max(1.0))
            }),
            held_back_share: each(&|record| record.publisher["held_back_share"].as_f64()),
            lost,
            verdicts,
        }
    }
}

/// A figure of the subscriber with the worst result.
fn worst(record: &Record, pointer: &str, worse: fn(f64, f64) -> f64) -> Option<f64> {
    let values: Option<Vec<f64>> = record
        .subscribers
        .iter()
        .map(|subscriber| subscriber.pointer(pointer).and_then(Value::as_f64))
        .collect();
    values?.into_iter().reduce(worse)
}

/// All figures as CSV, one cell per line, for other programs.
pub(super) fn csv(figures: &[SweepFigure]) -> String {
    let mut text =
        "section,framing,message_size,queue_size,rate_hz,subscribers,spin,sender_spin,runs,shared_cores,\
                    messages_per_second,messages_per_second_least,messages_per_second_most,\
                    bytes_per_second,messages_per_catch_up,held_back_share,lost"
            .to_owned();
    for rank in RANKS {
        text.push_str(&format!(",{rank}_ns,{rank}_ns_least,{rank}_ns_most"));
    }
    text.push('\n');
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.3}"));
    for figure in figures {
        let Cell { message_size, queue_size, rate_hz, subscribers, spin, sender_spin, .. } = figure.cell;
        let median = |spread: Option<Spread>| number(spread.map(|spread| spread.median));
        let all = |spread: Option<Spread>| {
            let [least, most] = [spread.map(|spread| spread.least), spread.map(|spread| spread.most)];
            format!("{},{},{}", median(spread), number(least), number(most))
        };
        let fields = [
            arguments::word(&figure.cell.section),
            figure.cell.framing.word(),
            format!(
                "{message_size},{queue_size},{rate_hz},{subscribers},{spin},{sender_spin},{}",
                figure.runs
            ),
            figure.shared_cores.to_string(),
            all(figure.messages_per_second),
            median(figure.bytes_per_second),
            median(figure.messages_per_catch_up),
            median(figure.held_back_share),
            figure.lost.to_string(),
        ];
        text.push_str(&fields.join(","));
        for rank in RANKS {
            text.push_str(&format!(",{}", all(figure.latency_ns.get(rank).copied())));
        }
        text.push('\n');
    }
    text
}

/// The figures as a table for a terminal.
pub(super) fn table(figures: &[SweepFigure]) -> String {
    let headings = "section, framing, bytes, ring, rate, subs, spin, sender, M msgs/s, spread, per catch-up, p50, p99, lost";
    let mut table = output::table(headings.split(", "));
    for figure in figures {
        let cell = &figure.cell;
        let [rate_reached, spread, catch_up] = rates(figure);
        table.add_row([
            arguments::word(&cell.section),
            cell.framing.word(),
            cell.message_size.to_string(),
            view::bytes(cell.queue_size),
            rate(cell.rate_hz),
            cell.subscribers.to_string(),
            cell.spin.to_string(),
            cell.sender_spin.to_string(),
            rate_reached,
            spread,
            catch_up,
            latency(figure, "p50"),
            latency(figure, "p99"),
            figure.lost.to_string(),
        ]);
    }
    table.to_string()
}

/// `250 k`, `1 M`, `max`.
pub(super) fn rate(rate_hz: u64) -> String {
    match rate_hz {
        0 => "max".to_owned(),
        rate if rate >= 1_000_000 => format!("{} M", rate / 1_000_000),
        rate if rate >= 1_000 => format!("{} k", rate / 1_000),
        rate => rate.to_string(),
    }
}

/// Throughput in millions of messages a second, its spread, and messages per catch-up; empty where there is none.
pub(super) fn rates(figure: &SweepFigure) -> [String; 3] {
    let catch_up = figure.messages_per_catch_up.map(|messages| messages.median.round() as u64);
    let catch_up = catch_up.map_or_else(String::new, figures::thousands);
    match figure.messages_per_second {
        Some(Spread { median, least, most }) => {
            [millions(median), format!("{}–{}", millions(least), millions(most)), catch_up]
        }
        None => [String::new(), String::new(), catch_up],
    }
}

/// Millions, with three digits.
fn millions(per_second: f64) -> String {
    let millions = per_second / 1e6;
    let decimals = match millions {
        millions if millions >= 100.0 => 0,
        millions if millions >= 10.0 => 1,
        millions if millions >= 1.0 => 2,
        _ => 3,
    };
    format!("{millions:.decimals$}")
}

/// The median of a percentile over the runs; a dash if there is none.
pub(super) fn latency(figure: &SweepFigure, rank: &str) -> String {
    output::latency(figure.latency_ns.get(rank).map(|spread| spread.median.round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!((rate(0), rate(250_000), rate(10_000_000)), ("max".into(), "250 k".into(), "10 M".into()));
        assert_eq!((millions(123_400_000.0), millions(45_600.0)), ("123".into(), "0.046".into()));
    }
}
