//! The plots: one for each question, with a curve for each run or group.

use tapeline_measure::{Rank, Recorder};

use super::groups::{Group, Groups};
use super::loaded::{Figure, Latency, Loaded, Moment};
use crate::plot::{Bar, Chart, Curve, Curves, Point, Scale, Series, Waterfall};
use crate::spread::Spread;

/// A drawing and its name.
pub(super) struct Plot {
    /// The file name without an extension.
    pub(super) name: &'static str,
    pub(super) svg: String,
}

/// Points of a percentile curve for each halving of the share beyond.
const STEPS: u32 = 4;
/// Bars of a histogram for each power of ten of latency.
const BARS: u32 = 20;
const NS_PER_US: f64 = 1_000.0;
/// Limit of timelines in one plot: more could not be distinguished.
const MOST_CURVES: usize = 12;

/// Point limit of a curve over time, about its width in pixels: a run of one day has 86,400 points.
const MOST_POINTS: usize = 1_000;

/// A figure of a window: its name, its getter, and whether its line is dashed.
type OfAWindow = (&'static str, fn(&Moment) -> Option<f64>, bool);
const OF_A_WINDOW: [OfAWindow; 4] = [
    ("median", |moment| moment.median_ns, false),
    ("p99", |moment| moment.p99_ns, false),
    ("mean", |moment| moment.mean_ns, false),
    ("longest", |moment| moment.max_ns, true),
];

/// All plots that have data.
pub(super) fn all(groups: &Groups) -> Vec<Plot> {
    let floor = groups.runs().filter_map(|run| run.jitter_floor_ns).max();
    let curves = [
        ("percentiles", by_percentile("Latency by percentile", of_each_group(groups, quantiles), floor)),
        ("histogram", histogram(groups)),
        ("hops", by_percentile("Hops", hops(groups), None)),
        ("latency-over-time", timeline(groups, floor)),
        (
            "throughput",
            over_time(groups, "Throughput", "messages a second", |moment| moment.messages_per_second),
        ),
        ("cpu", over_time(groups, "Processor time", "% of a core", |moment| moment.cpu_percent)),
        ("memory", over_time(groups, "Memory", "MB", |moment| Some(moment.memory_bytes? / 1e6))),
    ];
    let mut plots: Vec<Plot> = curves
        .into_iter()
        .filter(|(_, curves)| curves.curves.iter().any(|curve| !curve.points.is_empty()))
        .map(|(name, curves)| Plot { name, svg: curves.svg() })
        .collect();
    plots.extend(waterfall(groups).map(|waterfall| Plot { name: "waterfall", svg: waterfall.svg() }));
    for (name, chart) in [("phases", phases(groups)), ("comparison", comparison(groups))] {
        if let Some(chart) = chart {
            plots.push(Plot { name, svg: chart.svg() });
        }
    }
    plots
}

/// A curve of the latency that represents the median run of each group.
fn of_each_group(groups: &Groups, points: fn(&Recorder) -> Vec<(f64, f64)>) -> Vec<Curve> {
    let curve = |(colour, group): (usize, &Group)| {
        let latency = group.typical()?.whole()?;
        let (name, points) = (named(group, latency), points(&latency.distribution));
        Some(Curve { name, points, colour, dashed: false })
    };
    groups.all.iter().enumerate().filter_map(curve).take(MOST_CURVES).collect()
}

fn by_percentile(title: &str, curves: Vec<Curve>, floor: Option<u64>) -> Curves {
    Curves {
        title: title.to_owned(),
        x_title: "so many of the samples are not above".to_owned(),
        y_title: "µs".to_owned(),
        across: Scale::Nines,
        up: Scale::Logarithmic,
        curves,
        reference: floor.map(reference),
    }
}

fn reference(floor_ns: u64) -> (f64, String) {
    (floor_ns as f64 / NS_PER_US, "jitter floor at p99".to_owned())
}

/// Points of share and latency in µs, up to the share with ten samples beyond it.
fn quantiles(distribution: &Recorder) -> Vec<(f64, f64)> {
    let samples = distribution.samples() as f64;
    let mut points = Vec::new();
    let mut step = 0;
    loop {
        let beyond = 0.5_f64.powf(f64::from(step) / f64::from(STEPS));
        if beyond * samples < 10.0 {
            return points;
        }
        let share = 1.0 - beyond;
        if let Some(ns) = distribution.value_at(share) {
            points.push((share, (ns as f64 / NS_PER_US).max(0.001)));
        }
        step += 1;
    }
}

/// The share of samples by latency, for the median run of each group.
fn histogram(groups: &Groups) -> Curves {
    Curves {
        title: "How many took how long".to_owned(),
        x_title: "µs".to_owned(),
        y_title: "% of the samples".to_owned(),
        across: Scale::Logarithmic,
        up: Scale::Linear,
        curves: of_each_group(groups, bars),
        reference: None,
    }
}

/// The outline of a histogram's bars.
fn bars(distribution: &Recorder) -> Vec<(f64, f64)> {
    let (Some(least), Some(most)) = (distribution.min_ns(), distribution.value_at(0.9999)) else {
        return Vec::new();
    };
    let edge = |number: i32| 10f64.powf(f64::from(number) / f64::from(BARS));
    let bar_of = |ns: u64| ((ns.max(1) as f64).log10() * f64::from(BARS)).floor() as i32;
    let samples = distribution.samples() as f64;
    let mut outline = Vec::new();
    for number in bar_of(least)..=bar_of(most) {
        let (from, to) = (edge(number), edge(number + 1));
        // Whole nanoseconds: each value belongs to exactly one bar.
        let (first, last) = (from.ceil() as u64, to.ceil() as u64);
        let count = if last > first { distribution.count_between(first, last - 1) } else { 0 };
        let percent = count as f64 * 100.0 / samples;
        outline.extend([(from / NS_PER_US, percent), (to / NS_PER_US, percent)]);
    }
    outline
}

/// Latency by hop, for the median run of each group with more than one hop.
fn hops(groups: &Groups) -> Vec<Curve> {
    let mut curves = Vec::new();
    for group in &groups.all {
        let latencies = group.typical().map(|run| run.latency.as_slice()).unwrap_or_default();
        // A single hop is already in the percentile plot.
        for latency in latencies.iter().filter(|_| latencies.len() > 1) {
            let name = if groups.all.len() > 1 {
                format!("{}, {}", group.name, latency.name)
            } else {
                latency.name.clone()
            };
            let (points, colour) = (quantiles(&latency.distribution), curves.len());
            curves.push(Curve { name, points, colour, dashed: false });
        }
    }
    curves.truncate(MOST_CURVES);
    curves
}

/// Where the time goes: the hops of the first group with means by hop.
fn waterfall(groups: &Groups) -> Option<Waterfall> {
    let typical = groups.all.iter().filter_map(|group| Some((group, group.typical()?)));
    let (group, run) = typical.into_iter().find(|(_, run)| !run.steps.is_empty())?;
    let part = |(name, mean, floor): &(String, f64, Option<f64>)| Bar {
        name: name.clone(),
        value: mean / NS_PER_US,
        floor: floor.map(|ns| ns / NS_PER_US),
    };
    let title = match groups.all.len() {
        1 => "Where the time goes".to_owned(),
        _ => format!("Where the time goes: {}", group.name),
    };
    Some(Waterfall {
        title,
        x_title: "mean of all messages, µs".to_owned(),
        parts: run.steps.iter().map(part).collect(),
        floor: "a bare relay: the same sockets, ring and threads, without a plant".to_owned(),
    })
}

/// Latency figures of each window, for the median run of each group.
fn timeline(groups: &Groups, floor: Option<u64>) -> Curves {
    let mut curves = Vec::new();
    for (number, group) in groups.all.iter().enumerate() {
        let Some(run) = group.typical() else { continue };
        let lines = run.timelines.iter().filter(|line| line.iter().any(|moment| moment.max_ns.is_some()));
        for (thread, line) in (1..).zip(lines) {
            let of = |what: &str| match run.timelines.len() {
                1 => format!("{}, {what}", group.name),
                _ => format!("{} {thread}, {what}", group.name),
            };
            curves.extend(OF_A_WINDOW.iter().filter_map(|(what, figure, dashed)| {
                let points = points_of(line, |moment| Some(figure(moment)? / NS_PER_US))?;
                Some(Curve { name: of(what), points, colour: number, dashed: *dashed })
            }));
        }
    }
    over_seconds("Latency over time", "µs", Scale::Logarithmic, curves, floor)
}

/// One figure by interval, for the median run of each group.
fn over_time(groups: &Groups, title: &str, unit: &str, figure: fn(&Moment) -> Option<f64>) -> Curves {
    let mut curves = Vec::new();
    for (number, group) in groups.all.iter().enumerate() {
        let lines = group.typical().map(|run| run.timelines.as_slice()).unwrap_or_default();
        curves.extend(lines.iter().filter_map(|line| points_of(line, figure)).map(|points| Curve {
            name: group.name.clone(),
            points,
            colour: number,
            dashed: false,
        }));
    }
    over_seconds(title, unit, Scale::Linear, curves, None)
}

/// The points of a figure over time; `None` if there are none.
fn points_of(line: &[Moment], figure: impl Fn(&Moment) -> Option<f64>) -> Option<Vec<(f64, f64)>> {
    let points = line.iter().filter_map(|moment| Some((moment.second, figure(moment)?))).collect();
    Some(extremes(points)).filter(|points| !points.is_empty())
}

fn over_seconds(title: &str, unit: &str, up: Scale, mut curves: Vec<Curve>, floor: Option<u64>) -> Curves {
    curves.truncate(MOST_CURVES);
    Curves {
        title: title.to_owned(),
        x_title: "seconds of the run".to_owned(),
        y_title: unit.to_owned(),
        across: Scale::Linear,
        up,
        curves,
        reference: floor.map(reference),
    }
}

/// Reduces a curve to at most the drawn number of points. Each bucket of neighbouring points keeps its lowest and
/// its highest, so that peaks and dips survive.
fn extremes(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    if points.len() <= MOST_POINTS {
        return points;
    }
    let together = points.len().div_ceil(MOST_POINTS / 2);
    let mut drawn = Vec::with_capacity(MOST_POINTS);
    for few in points.chunks(together) {
        let by_height = |one: &&(f64, f64), other: &&(f64, f64)| one.1.total_cmp(&other.1);
        let ends = [few.iter().min_by(by_height), few.iter().max_by(by_height)];
        let [Some(low), Some(high)] = ends else { continue };
        let (first, second) = if low.0 <= high.0 { (low, high) } else { (high, low) };
        drawn.push(*first);
        if first.0 < second.0 {
            drawn.push(*second);
        }
    }
    drawn
}

/// Start-up compared with steady state.
fn phases(groups: &Groups) -> Option<Chart> {
    let ranks = ["p50", "p90", "p99", "p99.9", "max"];
    let mut series = Vec::new();
    for (number, group) in groups.all.iter().enumerate() {
        let Some(run) = group.typical() else { continue };
        for (at, phase) in run.phases.iter().enumerate() {
            let point = |rank: &&str| {
                let (_, ns) = phase.latency.iter().find(|(name, _)| name == rank)?;
                let value = *ns as f64 / NS_PER_US;
                Some(Point { value, least: value, most: value })
            };
            let (name, points) =
                (format!("{}, {}", group.name, phase.name), ranks.iter().map(point).collect());
            series.push(Series { name, points, colour: number, dashed: at == 0 });
        }
    }
    by_rank("Start-up against steady state", ranks.map(str::to_owned).to_vec(), series, 1)
}

/// Groups side by side, with the spread of their runs.
fn comparison(groups: &Groups) -> Option<Chart> {
    let ranks = [Rank::MEDIAN, Rank::Hundredths(9_000), Rank::P99, Rank::Hundredths(9_990), Rank::Max];
    let series = |(number, group): (usize, &Group)| {
        let point = |rank: &Rank| {
            let Spread { median, least, most } = group.spread(Figure::Latency(*rank))?;
            Some(Point { value: median / NS_PER_US, least: least / NS_PER_US, most: most / NS_PER_US })
        };
        let points = ranks.iter().map(point).collect();
        Series { name: group.name.clone(), points, colour: number, dashed: false }
    };
    let alike = groups.alike().next()?;
    let of_one_end = groups.all.iter().enumerate().filter(|(_, group)| alike.has(group));
    let title = "Side by side: median of the runs, and their spread";
    by_rank(title, ranks.iter().map(ToString::to_string).collect(), of_one_end.map(series).collect(), 2)
}

/// Latency at some percentiles; `None` with fewer than `least` series that have a point.
fn by_rank(title: &str, categories: Vec<String>, mut series: Vec<Series>, least: usize) -> Option<Chart> {
    series.retain(|series| series.points.iter().any(Option::is_some));
    (series.len() >= least).then(|| Chart {
        title: title.to_owned(),
        x_title: "percentile".to_owned(),
        y_title: "µs".to_owned(),
        scale: Scale::Logarithmic,
        categories,
        series,
        reference: None,
    })
}

/// The name of a group, with the name of the drawn hop where the group has several.
fn named(group: &Group, latency: &Latency) -> String {
    let runs: &[Loaded] = &group.runs;
    if runs.iter().all(|run| run.latency.len() == 1) {
        group.name.clone()
    } else {
        format!("{}, {}", group.name, latency.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_long_a_run_was_its_curves_have_few_points_and_every_peak_and_dip() {
        let day = |second: u32| {
            let height = match second {
                70_001 => 9.0,
                70_010 => -1.0,
                _ => f64::from(second % 7),
            };
            (f64::from(second), height)
        };
        let drawn = extremes((0..86_400).map(day).collect());
        assert!(drawn.len() <= MOST_POINTS && drawn.len() > MOST_POINTS / 2, "{}", drawn.len());
        assert!(drawn.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(drawn.contains(&(70_001.0, 9.0)) && drawn.contains(&(70_010.0, -1.0)));
        let short: Vec<_> = (0..1_000).map(day).collect();
        assert_eq!(extremes(short.clone()), short);
        assert_eq!(extremes(Vec::new()), []);
        let flat = extremes((0..10_000).map(|second| (f64::from(second), 3.0)).collect());
        assert!(flat.len() <= MOST_POINTS && !flat.is_empty());
    }
}
