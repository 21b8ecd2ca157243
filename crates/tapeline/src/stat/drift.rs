//! `tapeline stat --drift FILE`: checks output of `--every` for resource use that grows over time.
//!
//! A plant fills its tables first, and every second differs from the next. So the medians of two quarters are compared:
//! the second, when the tables are full, and the last.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::iter;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use serde::Serialize;
use tapeline_console::output::{Table, table};
use tapeline_console::{Format, Hinted, output, paths};
use tapeline_measure::figures;
use tapeline_node::stat::snapshot::Snapshot;
use tapeline_perf::plot::{Curve, Curves, Scale};

/// Minimum number of samples for a meaningful quarter.
const LEAST: usize = 12;
/// Number of parts of the run in the table over time, at most.
const PARTS: usize = 12;
/// The hop to check: the latency of the whole plant, from the wire to the client's connection.
const HOP: &str = "wire_to_sent";

/// A figure that must not grow.
struct Figure {
    name: &'static str,
    unit: &'static str,
    /// Reads the figure from a sample; `None` if the sample lacks it.
    of: fn(&Snapshot) -> Option<f64>,
    /// Allowed growth between the two quarters as a share, and the minimum allowance in the figure's unit.
    share: f64,
    least: f64,
}

/// All figures. Memory: first use of allocated pages is no leak. Latency: it includes the machine's other load.
const FIGURES: [Figure; 5] = [
    Figure { name: "resident memory", unit: "MB", of: resident_mb, share: 0.02, least: 1.0 },
    Figure { name: "descriptors", unit: "", of: descriptors, share: 0.0, least: 2.0 },
    Figure { name: "threads", unit: "", of: threads, share: 0.0, least: 0.0 },
    Figure { name: "latency, median", unit: "µs", of: median_us, share: 0.5, least: 20.0 },
    Figure { name: "latency, p90", unit: "µs", of: p90_us, share: 0.5, least: 50.0 },
];

fn resident_mb(plant: &Snapshot) -> Option<f64> {
    Some(plant.process.resident_bytes as f64 / 1e6)
}

fn descriptors(plant: &Snapshot) -> Option<f64> {
    Some(plant.process.descriptors as f64).filter(|descriptors| *descriptors > 0.0)
}

fn threads(plant: &Snapshot) -> Option<f64> {
    Some(plant.process.threads as f64)
}

fn median_us(plant: &Snapshot) -> Option<f64> {
    Some(latency(plant)?.p50_ns? as f64 / 1e3)
}

fn p90_us(plant: &Snapshot) -> Option<f64> {
    Some(latency(plant)?.p90_ns? as f64 / 1e3)
}

/// A kind of loss, and its count in a sample.
type Counted = (&'static str, fn(&Snapshot) -> u64);

/// Losses: every count must be zero.
const LOSSES: [Counted; 7] = [
    ("messages of the feeds", |plant| plant.feeds.iter().map(|feed| feed.missing).sum()),
    ("messages that could not be decoded", |plant| plant.feeds.iter().map(|feed| feed.malformed).sum()),
    ("ticks that the hub missed", |plant| plant.hub.as_ref().map_or(0, |hub| hub.missing)),
    ("ticks that kdb+'s tables lack", |plant| plant.kdb.as_ref().map_or(0, |kdb| kdb.missing)),
    ("ticks that ZeroMQ's subscribers lack", |plant| {
        plant.zeromq.as_ref().map_or(0, |zeromq| zeromq.missing)
    }),
    ("ticks that the journal lacks", |plant| plant.journal.as_ref().map_or(0, |journal| journal.missing)),
    ("readers that lost their place", |plant| plant.backpressure.evicted),
];

fn latency(plant: &Snapshot) -> Option<&tapeline_node::stat::snapshot::Latency> {
    let hops = &plant.hub.as_ref()?.latency;
    hops.iter().find(|hop| hop.hop == HOP).map(|hop| &hop.now)
}

#[derive(Debug, Serialize)]
struct Grown {
    figure: &'static str,
    unit: &'static str,
    /// Median of the second quarter of the samples with the figure.
    second_quarter: f64,
    /// Median of the last quarter.
    last_quarter: f64,
    /// Limit for the last quarter.
    at_most: f64,
    drifts: bool,
}

/// A figure in the course of the run.
#[derive(Debug, Serialize)]
struct Course {
    figure: &'static str,
    unit: &'static str,
    /// Median of each part; `null` for a part without the figure.
    medians: Vec<Option<f64>>,
}

/// The count of one kind of loss.
#[derive(Debug, Serialize)]
struct Loss {
    what: &'static str,
    count: u64,
}

/// The report, as in JSON.
#[derive(Debug, Serialize)]
struct Report {
    plant: String,
    samples: usize,
    seconds: f64,
    verdict: &'static str,
    figures: Vec<Grown>,
    lost: Vec<Loss>,
    /// Minutes from the first sample to the first one of each part of the run.
    minutes: Vec<f64>,
    /// The figures in these parts.
    over_time: Vec<Course>,
}

/// Checks a file, prints the report, and draws the plot.
///
/// # Errors
/// The file cannot be read, or is not of one run of one plant; the plot cannot be written.
pub(super) fn judge(file: &Path, svg: Option<&Path>, format: Format) -> anyhow::Result<ExitCode> {
    let samples = read(file)?;
    let report = report(&samples);
    if let Some(svg) = svg {
        std::fs::write(svg, plot(&samples).svg())
            .with_context(|| format!("cannot write {}", paths::shown(svg)))?;
    }
    match format {
        Format::Json => output::print_json(&report)?,
        Format::Table => output::print(&report.text())?,
    }
    Ok(match report.verdict {
        "PASS" => ExitCode::SUCCESS,
        "LOSSY" => ExitCode::from(3),
        _ => ExitCode::FAILURE,
    })
}

/// The samples of one plant, in file order.
fn read(file: &Path) -> anyhow::Result<Vec<Snapshot>> {
    let hint = "`tapeline stat NAME --every 10s --format json > FILE` writes such a file";
    let shown = paths::shown(file);
    let lines = BufReader::new(File::open(file).map_err(|error| {
        anyhow::Error::new(error).context(Hinted::new(format!("cannot read {shown}"), hint))
    })?)
    .lines();
    let mut samples: Vec<Snapshot> = Vec::new();
    for (number, line) in (1..).zip(lines) {
        let line = line.with_context(|| format!("cannot read {shown}, line {number}"))?;
        let sample: Snapshot = serde_json::from_str(&line).map_err(|error| {
            let what = format!("{shown}, line {number} is not what `tapeline stat` writes");
            anyhow::Error::new(error).context(Hinted::new(what, hint))
        })?;
        if let Some(first) = samples.first()
            && (first.ring != sample.ring || first.started_ns != sample.started_ns)
        {
            let what = format!("{shown}, line {number} belongs to another plant, or to another run of it");
            return Err(Hinted::new(what, "name one plant, and keep each run in a file of its own").into());
        }
        samples.push(sample);
    }
    if samples.len() < LEAST {
        let what = format!("{shown} has {} samples; at least {LEAST} are needed", samples.len());
        return Err(Hinted::new(what, hint).into());
    }
    Ok(samples)
}

fn report(samples: &[Snapshot]) -> Report {
    let figures: Vec<_> = FIGURES.iter().filter_map(|figure| figure.grown(samples)).collect();
    let last = samples.last();
    let count = |of: fn(&Snapshot) -> u64| last.map_or(0, of);
    let lost: Vec<_> = LOSSES
        .iter()
        .map(|(what, of)| Loss { what, count: count(*of) })
        .filter(|loss| loss.count > 0)
        .collect();
    let verdict = if !lost.is_empty() {
        "LOSSY"
    } else if figures.iter().any(|figure| figure.drifts) {
        "DRIFT"
    } else {
        "PASS"
    };
    let part = samples.len().div_ceil(PARTS);
    Report {
        minutes: (0..samples.len()).step_by(part).map(|first| seconds(samples, first) / 60.0).collect(),
        over_time: FIGURES.iter().filter_map(|figure| figure.course(samples, part)).collect(),
        plant: last.map(|last| last.plant.clone()).unwrap_or_default(),
        samples: samples.len(),
        seconds: seconds(samples, samples.len() - 1),
        verdict,
        figures,
        lost,
    }
}

/// Seconds from the first sample to another.
fn seconds(samples: &[Snapshot], to: usize) -> f64 {
    let at = |place: usize| samples.get(place).map_or(0, |sample| sample.written_ns);
    at(to).saturating_sub(at(0)) as f64 / 1e9
}

impl Figure {
    /// `None` if too few samples have the figure.
    fn grown(&self, samples: &[Snapshot]) -> Option<Grown> {
        let values: Vec<f64> = samples.iter().filter_map(self.of).collect();
        if values.len() < LEAST {
            return None;
        }
        let quarter = values.len() / 4;
        let (second, last) =
            (median(&values[quarter..2 * quarter]), median(&values[values.len() - quarter..]));
        let at_most = second + (second * self.share).max(self.least);
        Some(Grown {
            figure: self.name,
            unit: self.unit,
            second_quarter: second,
            last_quarter: last,
            at_most,
            drifts: last > at_most,
        })
    }

    /// `None` if no sample has the figure.
    fn course(&self, samples: &[Snapshot], part: usize) -> Option<Course> {
        let medians: Vec<_> = samples
            .chunks(part)
            .map(|part| part.iter().filter_map(self.of).collect::<Vec<_>>())
            .map(|values| (!values.is_empty()).then(|| median(&values)))
            .collect();
        let has_one = medians.iter().any(Option::is_some);
        has_one.then_some(Course { figure: self.name, unit: self.unit, medians })
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

impl Report {
    fn text(&self) -> String {
        let mut rows = table(["figure", "second quarter", "last quarter", "at most", ""]);
        for figure in &self.figures {
            let value = |value: f64| format!("{value:.1} {}", figure.unit).trim_end().to_owned();
            rows.add_row([
                figure.figure.to_owned(),
                value(figure.second_quarter),
                value(figure.last_quarter),
                value(figure.at_most),
                if figure.drifts { "grows".to_owned() } else { String::new() },
            ]);
        }
        let over = figures::duration((self.seconds * 1e9) as u64);
        let lost: Vec<_> = self.lost.iter().map(|loss| format!("{} {}", loss.count, loss.what)).collect();
        let said = match self.verdict {
            "PASS" => "nothing grew and nothing was lost".to_owned(),
            "LOSSY" => format!("lost: {}", lost.join(", ")),
            _ => {
                let grown = self.figures.iter().filter(|figure| figure.drifts).map(|figure| figure.figure);
                format!("what grew: {}", grown.collect::<Vec<_>>().join(", "))
            }
        };
        let course = self.course();
        format!("{rows}\n\n{course}\n\n{}: {said}; {} samples over {over}", self.verdict, self.samples)
    }

    /// The table of the figures in the parts of the run.
    fn course(&self) -> Table {
        let headings = self.over_time.iter().map(|course| match course.unit {
            "" => course.figure.to_owned(),
            unit => format!("{}, {unit}", course.figure),
        });
        let headings: Vec<_> = iter::once("from minute".to_owned()).chain(headings).collect();
        let mut rows = table(headings.iter().map(String::as_str));
        for (part, minute) in self.minutes.iter().enumerate() {
            let value =
                |course: &Course| course.medians[part].map_or(String::new(), |value| format!("{value:.1}"));
            rows.add_row(iter::once(format!("{minute:.0}")).chain(self.over_time.iter().map(value)));
        }
        rows
    }
}

/// Each figure as a share of its median in the second quarter.
fn plot(samples: &[Snapshot]) -> Curves {
    let curves = FIGURES.iter().enumerate().filter_map(|(colour, figure)| {
        let base = figure.grown(samples)?.second_quarter;
        let points = (0..).zip(samples).filter_map(|(place, sample)| {
            Some((seconds(samples, place) / 60.0, 100.0 * (figure.of)(sample)? / base))
        });
        let unit = if figure.unit.is_empty() { String::new() } else { format!(" {}", figure.unit) };
        let name = format!("{} (100 % is {base:.1}{unit})", figure.name);
        Some(Curve { name, points: points.collect(), colour, dashed: figure.name.starts_with("latency") })
    });
    Curves {
        title: "A plant over time".to_owned(),
        x_title: "minutes".to_owned(),
        y_title: "% of the second quarter's median".to_owned(),
        across: Scale::Linear,
        up: Scale::Linear,
        curves: curves.collect(),
        reference: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tapeline_node::stat::snapshot::{FeedSnapshot, Hop, Hub, Latency, Process};

    /// One sample a minute, with memory and descriptors from `of`.
    fn samples(of: impl Fn(u64) -> (u64, u64)) -> Vec<Snapshot> {
        let sample = |minute: u64| {
            let (resident_bytes, descriptors) = of(minute);
            let now = Latency { p50_ns: Some(100_000 + minute % 7 * 1_000), ..Latency::default() };
            Snapshot {
                written_ns: minute * 60_000_000_000,
                process: Process { resident_bytes, descriptors, threads: 11, ..Process::default() },
                feeds: vec![FeedSnapshot::default()],
                hub: Some(Hub {
                    latency: vec![Hop { hop: HOP.to_owned(), now, all: Latency::default() }],
                    ..Hub::default()
                }),
                ..Snapshot::default()
            }
        };
        (0..120).map(sample).collect()
    }

    #[test]
    fn what_fills_up_first_is_no_drift_and_what_goes_on_growing_is_one() {
        let full = samples(|minute| (150_000_000 + minute.min(20) * 3_000_000 + minute % 3 * 500_000, 30));
        assert_eq!(report(&full).verdict, "PASS", "{}", report(&full).text());
        // 1.5 MB a minute.
        let leak = report(&samples(|minute| (91_000_000 + minute * 1_500_000, 30)));
        assert_eq!(leak.verdict, "DRIFT");
        assert!(
            leak.text().contains("DRIFT: what grew: resident memory; 120 samples over "),
            "{}",
            leak.text()
        );
        assert_eq!(leak.minutes, (0..12).map(|part| f64::from(part) * 10.0).collect::<Vec<_>>());
        assert_eq!(leak.over_time[0].medians[..2], [Some(98.5), Some(113.5)]);
        assert!(leak.text().contains("\n110 "), "{}", leak.text());
        let sockets = report(&samples(|minute| (150_000_000, 30 + minute / 10)));
        assert!(sockets.figures.iter().any(|figure| figure.figure == "descriptors" && figure.drifts));
    }

    #[test]
    fn what_is_lost_fails_whatever_else_is_so() {
        let mut lossy = samples(|_| (150_000_000, 30));
        lossy.last_mut().unwrap().feeds[0].missing = 3;
        let report = report(&lossy);
        assert_eq!(report.verdict, "LOSSY");
        assert!(report.text().contains("3 messages of the feeds"), "{}", report.text());
    }

    #[test]
    fn a_plot_has_a_curve_for_each_figure_that_there_is() {
        let svg = plot(&samples(|_| (150_000_000, 30))).svg();
        for said in ["resident memory (100 % is 150.0 MB)", "descriptors", "threads", "latency, median"] {
            assert!(svg.contains(said), "{said}\n{svg}");
        }
        assert!(!svg.contains("latency, p90") && !svg.contains("NaN"), "{svg}");
    }
}
