//! Plots as SVG, drawn from a record: throughput by size as bars, latency by rate as lines, both on logarithmic axes.

use std::fmt::Write;

use tapeline_measure::figures;

use crate::case::{Metric, Regime};
use crate::record::Record;
use crate::results::{Results, Spread, three};
use crate::session::{BYTES, RATES_HZ};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 40.0;
/// Apart also for those who see no red and green; the limits are grey and ours dark.
const COLOURS: [&str; 12] = [
    "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#999933", "#882255", "#44aa99",
    "#aa4499", "#661100", "#6699cc",
];

/// One system's values, one for each place on the axis.
struct Series {
    title: String,
    colour: String,
    values: Vec<Option<Spread>>,
}

/// Messages a second by size, contended above and backlog below.
pub(crate) fn throughput(record: &Record) -> String {
    let results = Results(&record.figures);
    let panel = |regime, title: &str, top: f64, out: &mut String| {
        let all = series(record, |system| {
            let value = |bytes| results.value(system, Metric::Throughput { bytes, regime });
            BYTES.map(|bytes| Some(value(bytes)?.map(|value| value / 1e6))).to_vec()
        });
        let labels = BYTES.map(|bytes| format!("{bytes} B"));
        let axis = Axis::of(&all, top);
        axis.draw(title, &labels, out);
        let group = (WIDTH - LEFT) / labels.len() as f64;
        let bar = group * 0.9 / all.len().max(1) as f64;
        for (number, one) in all.iter().enumerate() {
            for (place, spread) in one.values.iter().enumerate() {
                let Some(spread) = spread else { continue };
                let x = LEFT + group * (place as f64 + 0.05) + bar * number as f64;
                let (y, low, high) = (axis.y(spread.median), axis.y(spread.least), axis.y(spread.most));
                let (title, colour, middle) = (&one.title, &one.colour, x + bar / 2.0);
                // Writing to a string cannot fail, here and below.
                let _ = writeln!(
                    out,
                    r#"<rect x="{x:.1}" y="{y:.1}" width="{:.1}" height="{:.1}" fill="{colour}"><title>{title}: {spread}</title></rect><path d="M{middle:.1} {low:.1}V{high:.1}" stroke="black"/>"#,
                    bar * 0.9,
                    axis.bottom() - y
                );
            }
        }
        legend(&all, top + HEIGHT + 60.0, out)
    };
    let mut body = String::new();
    let contended = "Contended: million messages/s, the sender reads the clock before each message";
    let end = panel(Regime::Contended, contended, TOP, &mut body);
    let end = panel(Regime::Backlog, "Backlog: million messages/s at full speed", end + TOP, &mut body);
    page(end, &body)
}

/// Median latency by rate.
pub(crate) fn latency(record: &Record) -> String {
    let results = Results(&record.figures);
    let all = series(record, |system| {
        RATES_HZ.map(|rate_hz| results.latency(system, Metric::Latency { rate_hz }, |l| l.p50_ns)).to_vec()
    });
    let labels = RATES_HZ.map(|rate_hz| format!("{}/s", figures::thousands(rate_hz)));
    let axis = Axis::of(&all, TOP);
    let mut body = String::new();
    axis.draw("Median latency in ns by rate, 32 bytes", &labels, &mut body);
    let group = (WIDTH - LEFT) / labels.len() as f64;
    for one in &all {
        let mut line = String::new();
        for (place, spread) in one.values.iter().enumerate() {
            let Some(spread) = spread else { continue };
            let (x, y) = (LEFT + group * (place as f64 + 0.5), axis.y(spread.median));
            let _ = write!(line, "{}{x:.1} {y:.1}", if line.is_empty() { 'M' } else { 'L' });
            let (title, colour) = (&one.title, &one.colour);
            let _ = writeln!(
                body,
                r#"<circle cx="{x:.1}" cy="{y:.1}" r="4" fill="{colour}"><title>{title}: {spread}</title></circle>"#
            );
        }
        let _ = writeln!(body, r#"<path d="{line}" fill="none" stroke="{}" stroke-width="2"/>"#, one.colour);
    }
    let end = legend(&all, TOP + HEIGHT + 60.0, &mut body);
    page(end, &body)
}

/// Every system for which `values` has anything.
fn series(record: &Record, values: impl Fn(&str) -> Vec<Option<Spread>>) -> Vec<Series> {
    let mut colours = COLOURS.iter().cycle();
    let mut all = Vec::new();
    for system in record.systems.iter().filter(|system| system.peer != "promises") {
        let values = values(&system.name);
        let is_limit = system.peer == "limits";
        let colour = if is_limit { "#aaaaaa" } else { colours.next().unwrap_or(&"black") };
        if values.iter().any(Option::is_some) {
            all.push(Series { title: system.title.clone(), colour: colour.to_owned(), values });
        }
    }
    all
}

/// A logarithmic axis over whole decades.
struct Axis {
    low: i32,
    high: i32,
    top: f64,
}

impl Axis {
    fn of(all: &[Series], top: f64) -> Self {
        let values = || all.iter().flat_map(|one| one.values.iter().flatten());
        let least = values().map(|spread| spread.least).filter(|v| *v > 0.0).fold(f64::MAX, f64::min);
        let most = values().map(|spread| spread.most).fold(f64::MIN_POSITIVE, f64::max);
        // Without values: one decade of nothing.
        let (low, high) =
            if least > most { (0, 1) } else { (least.log10().floor() as i32, most.log10().ceil() as i32) };
        Self { low, high: high.max(low + 1), top }
    }

    fn bottom(&self) -> f64 {
        self.top + HEIGHT
    }

    fn y(&self, value: f64) -> f64 {
        let decades = f64::from(self.high - self.low);
        let share = (value.max(f64::MIN_POSITIVE).log10() - f64::from(self.low)) / decades;
        self.bottom() - HEIGHT * share.clamp(0.0, 1.0)
    }

    fn draw(&self, title: &str, labels: &[String], out: &mut String) {
        let _ = writeln!(out, r#"<text x="0" y="{}" font-weight="bold">{title}</text>"#, self.top - 20.0);
        for decade in self.low..=self.high {
            let value = 10_f64.powi(decade);
            let y = self.y(value);
            let label = if value >= 10.0 { figures::thousands(value as u64) } else { three(value) };
            let _ = writeln!(
                out,
                r##"<path d="M{LEFT} {y:.1}H{WIDTH}" stroke="#cccccc"/><text x="{}" y="{:.1}" text-anchor="end">{label}</text>"##,
                LEFT - 6.0,
                y + 4.0
            );
        }
        let group = (WIDTH - LEFT) / labels.len() as f64;
        for (place, label) in labels.iter().enumerate() {
            let x = LEFT + group * (place as f64 + 0.5);
            let _ = writeln!(
                out,
                r#"<text x="{x:.1}" y="{:.1}" text-anchor="middle">{label}</text>"#,
                self.bottom() + 18.0
            );
        }
    }
}

/// Gives where it ends.
fn legend(all: &[Series], top: f64, out: &mut String) -> f64 {
    const COLUMNS: usize = 3;
    for (number, one) in all.iter().enumerate() {
        let x = WIDTH / COLUMNS as f64 * (number % COLUMNS) as f64;
        let y = top + 20.0 * (number / COLUMNS) as f64;
        let _ = writeln!(
            out,
            r#"<rect x="{x:.1}" y="{:.1}" width="12" height="12" fill="{}"/><text x="{:.1}" y="{y:.1}">{}</text>"#,
            y - 11.0,
            one.colour,
            x + 18.0,
            one.title
        );
    }
    top + 20.0 * all.len().div_ceil(COLUMNS) as f64
}

fn page(height: f64, body: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}</svg>\n"
    )
}
