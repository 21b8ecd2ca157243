//! A sweep's report: text, tables and plots, as one HTML page and as Markdown with separate plots.

use crate::plot::{Chart, Point, Scale, Series};
use serde_json::Value;

use super::document::Document;
use super::figures::{SweepFigure, latency, rate, rates};
use super::plan::{Cell, MAX, REGIMES, Reading, Regime, Section, SweepPlan};
use crate::ring::publish::Layout;
use crate::ring::view;
use crate::spread::Spread;

/// The report on the results so far.
pub(super) fn report(
    plan: &SweepPlan,
    figures: &[SweepFigure],
    sessions: &[Value],
    command: &str,
) -> Document {
    let mut document = Document::new("Ring sweep");
    opening(&mut document, plan, figures, sessions, command);
    for section in &plan.sections {
        let figures: Vec<&SweepFigure> =
            figures.iter().filter(|figure| figure.cell.section == *section).collect();
        if figures.is_empty() {
            continue;
        }
        let part = Part { figures, floor_ns: floor_ns(sessions) };
        match section {
            Section::Throughput => part.throughput(&mut document),
            Section::Latency => part.latency(&mut document),
            Section::Spin => part.spin(&mut document),
            Section::SlowReceiver => part.slow_receiver(&mut document),
            Section::RingSize => part.ring_size(&mut document),
            Section::Subscribers => part.subscribers(&mut document),
        }
    }
    document
}

fn floor_ns(sessions: &[Value]) -> Option<f64> {
    sessions.iter().filter_map(|session| session["jitter_floor_p99_ns"].as_f64()).reduce(f64::max)
}

fn opening(
    document: &mut Document,
    plan: &SweepPlan,
    figures: &[SweepFigure],
    sessions: &[Value],
    command: &str,
) {
    let lost: u64 = figures.iter().map(|figure| figure.lost).sum();
    let runs: usize = figures.iter().map(|figure| figure.runs).sum();
    document.paragraph(&format!(
        "{} cells, {runs} runs, {lost} messages lost. Publisher and subscribers are separate processes, the publisher on \
         core {}, the subscribers on the others of cores {}. Each run measures {:.0} ms after a warm-up of twice around \
         the ring. All cells are run once, then all again, {} times; figures are medians, spreads the least and the \
         greatest. Every byte of every message is written, and where throughput is measured it is copied out.",
        figures.len(),
        plan.cpus.first().copied().unwrap_or(0),
        tapeline_measure::figures::list(&plan.cpus),
        plan.seconds_per_run * 1e3,
        plan.runs,
    ));
    document.code(command);
    for session in sessions {
        let floor = session["jitter_floor_p99_ns"].as_u64().map_or("unknown".to_owned(), |ns| {
            format!("{} at the 99th percentile", tapeline_measure::figures::duration(ns))
        });
        let started = session["started"].as_str().unwrap_or("at an unknown time");
        let summary = session["environment_summary"].as_str().unwrap_or("environment unknown");
        document.paragraph(&format!("Begun {started}. Jitter floor of the idle cores: {floor}."));
        document.code(summary);
    }
    if figures.iter().any(|figure| figure.shared_cores) {
        document.paragraph(
            "Where there were more processes than cores, subscribers shared theirs and gave it away between looks: such \
             figures are of the scheduler as much as of the ring. They are marked with *.",
        );
    }
}

/// A section's figures.
struct Part<'a> {
    figures: Vec<&'a SweepFigure>,
    floor_ns: Option<f64>,
}

/// The labels and the scale of a plot, without its lines.
struct Frame<'a> {
    file: &'a str,
    title: &'a str,
    x_title: &'a str,
    y_title: &'a str,
    scale: Scale,
}

impl Part<'_> {
    fn throughput(&self, document: &mut Document) {
        document.section(
            "Throughput by message size",
            "Three regimes, side by side. Contended: the sender does 16 turns of an empty loop for each message, so the \
             receiver has always read everything, and both cores want the line that is being written. Fast receiver: both \
             do nothing but send, copy and count, and timing decides. Relaxed: the receiver does 8 turns for each message \
             and reads behind the sender, so that they hardly meet. The notes of smx_perf (its README, \"Memory \
             Contention and Cache Invalidation\") explain the effect and take the contended figure as the one to rely on: \
             the others depend on timing. \"Per catch-up\" says how it was: messages between two moments at which the \
             receiver had read everything.",
        );
        let regime = |cell: &Cell| REGIMES.into_iter().position(|regime| regime.is_of(cell)).unwrap_or(0);
        for (file, title, y_title, value) in [
            ("throughput", "Throughput by message size", "million messages/s", RATE),
            ("throughput-bytes", "Bytes by message size", "GB/s", BYTES),
        ] {
            let series = self.series_by(
                |cell| cell.message_size,
                |_| true,
                |cell| format!("{}, {}", REGIMES[regime(cell)].name, cell.framing.word()),
                value,
                |cell| (regime(cell), cell.framing == Layout::Lines),
            );
            let frame =
                Frame { file, title, x_title: "message size, bytes", y_title, scale: Scale::Logarithmic };
            self.plot(document, &frame, |cell| cell.message_size, |size| size.to_string(), series);
        }
        self.regimes(document);
    }

    /// All regimes of a message size and a framing in one row.
    fn regimes(&self, document: &mut Document) {
        let mut headings = vec!["bytes", "framing"];
        for regime in REGIMES {
            headings.extend([regime.name, "spread", "per catch-up"]);
        }
        let first = self.figures.iter().filter(|figure| REGIMES[0].is_of(&figure.cell));
        let rows = first.map(|figure| {
            let mut row = vec![figure.cell.message_size.to_string(), figure.cell.framing.word()];
            for Regime { sender_spin, spin, .. } in REGIMES {
                let wanted = Cell { sender_spin, spin, ..figure.cell.clone() };
                let found = self.figures.iter().find(|other| other.cell == wanted);
                row.extend(found.map_or_else(Default::default, |figure| rates(figure)));
            }
            row
        });
        document.table(&headings, rows.collect());
        document.paragraph("Millions of messages a second.");
    }

    fn latency(&self, document: &mut Document) {
        document.section(
            "Latency by rate",
            "From sent to received, by messages on a fixed schedule. At the highest rate (max) there is no schedule: the \
             ring is full on purpose, and its latency is its length. Percentiles above the noise of the machine say more \
             about the machine than about the ring: the jitter floor is what its idle cores impose at the 99th percentile. \
             A percentile is there where every run has at least ten samples beyond it.",
        );
        for framing in [Layout::Packed, Layout::Lines] {
            let layout = framing.word();
            for (rank, what) in [("p50", "median"), ("p99", "99th percentile")] {
                let series = self.series_by(
                    |cell| cell.rate_hz,
                    |cell| cell.framing == framing,
                    |cell| format!("{} bytes", cell.message_size),
                    |figure| figure.latency_ns.get(rank).copied(),
                    |cell| (cell.message_size as usize, false),
                );
                let frame = Frame {
                    file: &format!("latency-{rank}-{layout}"),
                    title: &format!("Latency by rate, {what}, {layout} frames"),
                    x_title: "messages a second",
                    y_title: "ns from sent to received",
                    scale: Scale::Logarithmic,
                };
                self.plot(document, &frame, |cell| cell.rate_hz, rate, series);
            }
        }
        self.table(document, &["rate", "bytes", "framing"], |cell| {
            vec![rate(cell.rate_hz), cell.message_size.to_string(), cell.framing.word()]
        });
    }

    fn spin(&self, document: &mut Document) {
        document.section(
            "A little work in the receiver",
            "Turns of an empty loop after each message. A few of them can make the whole faster: the receiver then comes \
             just after the sender has finished a line, and not while it is writing it. Thousands make the receiver the \
             slower side.",
        );
        let series = self.by_size_and_framing(|cell| cell.spin, |_| true);
        let frame = Frame {
            file: "spin",
            title: "Throughput by work in the receiver",
            x_title: "turns of an empty loop for each message",
            y_title: "million messages/s",
            scale: Scale::Logarithmic,
        };
        self.plot(document, &frame, |cell| cell.spin, |spin| spin.to_string(), series);
        self.table(document, &["turns", "bytes", "framing"], |cell| {
            vec![cell.spin.to_string(), cell.message_size.to_string(), cell.framing.word()]
        });
    }

    fn slow_receiver(&self, document: &mut Document) {
        document.section(
            "A slow receiver",
            "Nothing is lost, so a slow receiver slows its sender: throughput is the receiver's, and the ring is full for \
             the rest of the sender's time (held back).",
        );
        for (file, title, y_title, scale, value) in [
            (
                "slow-receiver",
                "Throughput by the receiver's work",
                "million messages/s",
                Scale::Logarithmic,
                RATE,
            ),
            ("held-back", "Time in which the sender waits", "% of the time", Scale::Linear, HELD_BACK),
        ] {
            let series = self.series_by_framing(|cell| cell.spin, |_| true, value);
            let frame =
                Frame { file, title, x_title: "turns of an empty loop for each message", y_title, scale };
            self.plot(document, &frame, |cell| cell.spin, |spin| spin.to_string(), series);
        }
        self.table(document, &["turns", "framing"], |cell| vec![cell.spin.to_string(), cell.framing.word()]);
    }

    fn ring_size(&self, document: &mut Document) {
        document.section(
            "Ring size",
            "A ring that fits the second-level caches is read from them; a larger one goes through the cache behind, a \
             much larger one through memory. A very small one is full again and again.",
        );
        let series = self.series_by_framing(|cell| cell.queue_size, |_| true, RATE);
        let frame = Frame {
            file: "ring-size",
            title: "Throughput by ring size, 32 bytes",
            x_title: "ring",
            y_title: "million messages/s",
            scale: Scale::Linear,
        };
        self.plot(document, &frame, |cell| cell.queue_size, view::bytes, series);
        self.table(document, &["ring", "framing"], |cell| {
            vec![view::bytes(cell.queue_size), cell.framing.word()]
        });
    }

    fn subscribers(&self, document: &mut Document) {
        document.section(
            "Subscribers",
            "Every subscriber gets every message; the figures are of the one that fares worst.",
        );
        let counted =
            self.by_size_and_framing(|cell| cell.subscribers, |cell| cell.reading == Reading::Count);
        let timed = self.series_by_framing(
            |cell| cell.subscribers,
            |cell| cell.reading == Reading::Latency,
            |figure| figure.latency_ns.get("p50").copied(),
        );
        for (file, title, y_title, series) in [
            ("subscribers", "Throughput by subscribers", "million messages/s", counted),
            (
                "subscribers-latency",
                "Median latency by subscribers, 100 bytes, 250 k/s",
                "ns from sent to received",
                timed,
            ),
        ] {
            let frame = Frame { file, title, x_title: "subscribers", y_title, scale: Scale::Logarithmic };
            self.plot(document, &frame, |cell| cell.subscribers, |count| count.to_string(), series);
        }
        self.table(document, &["subscribers", "rate", "bytes", "framing"], |cell| {
            vec![
                cell.subscribers.to_string(),
                rate(cell.rate_hz),
                cell.message_size.to_string(),
                cell.framing.word(),
            ]
        });
    }

    /// A row for each figure: its settings, then its results.
    fn table(&self, document: &mut Document, of: &[&str], cell: impl Fn(&Cell) -> Vec<String>) {
        let timed = self.figures.iter().any(|figure| !figure.latency_ns.is_empty());
        let held = self.figures.iter().any(|figure| figure.cell.rate_hz == MAX);
        let mut headings = [of, &["M msgs/s", "spread", "per catch-up"]].concat();
        if held {
            headings.push("held back");
        }
        if timed {
            headings.extend(["min", "p50", "spread of p50", "p90", "p99", "verdicts"]);
        }
        let rows =
            self.figures.iter().map(|figure| {
                let mut row = cell(&figure.cell);
                if let (true, Some(first)) = (figure.shared_cores, row.first_mut()) {
                    first.push('*');
                }
                row.extend(rates(figure));
                if held {
                    let share = figure.held_back_share.map(|share| format!("{:.0} %", share.median * 100.0));
                    row.push(share.unwrap_or_default());
                }
                if timed {
                    row.extend(["min", "p50"].map(|rank| latency(figure, rank)));
                    row.push(figure.latency_ns.get("p50").map_or_else(String::new, |spread| {
                        format!("{:.0}–{:.0} ns", spread.least, spread.most)
                    }));
                    row.extend(["p90", "p99"].map(|rank| latency(figure, rank)));
                    row.push(verdicts(figure));
                }
                row
            });
        document.table(&headings, rows.collect());
    }

    fn plot<K: PartialEq + Copy>(
        &self,
        document: &mut Document,
        frame: &Frame<'_>,
        key: impl Fn(&Cell) -> K,
        label: impl Fn(K) -> String,
        series: Vec<Series>,
    ) {
        let latencies = frame.y_title.starts_with("ns ");
        document.plot(
            frame.file,
            Chart {
                title: frame.title.to_owned(),
                x_title: frame.x_title.to_owned(),
                y_title: frame.y_title.to_owned(),
                scale: frame.scale,
                categories: self.categories(key).into_iter().map(label).collect(),
                series,
                reference: self
                    .floor_ns
                    .filter(|floor| latencies && frame.file.contains("p99") && *floor > 0.0)
                    .map(|floor| (floor, "jitter floor at p99".to_owned())),
            },
        );
    }

    /// The values along the horizontal axis, in the plan's order.
    fn categories<K: PartialEq>(&self, key: impl Fn(&Cell) -> K) -> Vec<K> {
        let mut found = Vec::new();
        for figure in &self.figures {
            let key = key(&figure.cell);
            if !found.contains(&key) {
                found.push(key);
            }
        }
        found
    }

    /// A line of throughput for each size and framing: the size sets the colour, and cache-line framing is dashed.
    fn by_size_and_framing<K: PartialEq>(
        &self,
        key: impl Fn(&Cell) -> K,
        wanted: impl Fn(&Cell) -> bool,
    ) -> Vec<Series> {
        self.series_by(
            key,
            wanted,
            |cell| format!("{} bytes, {}", cell.message_size, cell.framing.word()),
            RATE,
            |cell| (cell.message_size as usize, cell.framing == Layout::Lines),
        )
    }

    fn series_by_framing<K: PartialEq>(
        &self,
        key: impl Fn(&Cell) -> K,
        wanted: impl Fn(&Cell) -> bool,
        value: impl Fn(&SweepFigure) -> Option<Spread>,
    ) -> Vec<Series> {
        let name = |cell: &Cell| cell.framing.word();
        self.series_by(key, wanted, name, value, |cell| (usize::from(cell.framing == Layout::Lines), false))
    }

    /// A line for each name among the wanted cells. `looks` returns the colour's key, and whether the line is
    /// dashed.
    fn series_by<K: PartialEq>(
        &self,
        key: impl Fn(&Cell) -> K,
        wanted: impl Fn(&Cell) -> bool,
        name: impl Fn(&Cell) -> String,
        value: impl Fn(&SweepFigure) -> Option<Spread>,
        looks: impl Fn(&Cell) -> (usize, bool),
    ) -> Vec<Series> {
        let categories = self.categories(&key);
        let mut colours = Vec::new();
        let mut series: Vec<Series> = Vec::new();
        for figure in self.figures.iter().filter(|figure| wanted(&figure.cell)) {
            let (name, (family, dashed)) = (name(&figure.cell), looks(&figure.cell));
            let colour = colours.iter().position(|known| *known == family).unwrap_or_else(|| {
                colours.push(family);
                colours.len() - 1
            });
            let place = categories.iter().position(|category| *category == key(&figure.cell));
            let line = match series.iter().position(|line| line.name == name) {
                Some(line) => line,
                None => {
                    let points = vec![None; categories.len()];
                    series.push(Series { name, points, colour, dashed });
                    series.len() - 1
                }
            };
            if let Some(place) = place {
                series[line].points[place] =
                    value(figure).map(|Spread { median, least, most }| Point { value: median, least, most });
            }
        }
        series
    }
}

/// Millions of messages a second.
const RATE: fn(&SweepFigure) -> Option<Spread> = |figure| scaled(figure.messages_per_second, 1e-6);
const BYTES: fn(&SweepFigure) -> Option<Spread> = |figure| scaled(figure.bytes_per_second, 1e-9);
/// Per cent.
const HELD_BACK: fn(&SweepFigure) -> Option<Spread> = |figure| scaled(figure.held_back_share, 100.0);

fn scaled(spread: Option<Spread>, factor: f64) -> Option<Spread> {
    spread.map(|Spread { median, least, most }| Spread {
        median: median * factor,
        least: least * factor,
        most: most * factor,
    })
}

fn verdicts(figure: &SweepFigure) -> String {
    let each = figure.verdicts.iter().map(|(verdict, count)| format!("{count} {verdict}"));
    each.collect::<Vec<_>>().join(", ")
}
