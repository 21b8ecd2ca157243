//! The tickerplant by rate beside a bare relay, as `tapeline tick bench` measures it: rows one by one and a hundred at once.
//!
//! ```text
//! cargo bench -p tapeline --bench tick -- [--to PAGE] [--turns N] [--duration TIME] [--keep FOLDER]
//! ```
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program of its own")]

mod page;
#[path = "../hub/turns.rs"]
#[allow(dead_code, reason = "the other benches compare pairs")]
mod turns;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use clap::Parser;
use serde_json::Value;
use tapeline_measure::{Clock, Environment};

/// The rates of the kdb-X suite, and above.
const RATES: &str = "10k,20k,40k,60k,80k,100k,200k,500k,1M";
/// Those at which a plant stands between, too, whose journal keeps each row as a tick.
const PLANT: &str = "10k,20k,40k,60k,100k,200k";
/// Those at which spinning is looked at, too.
const SPINNING: &str = "10k,60k,200k";
/// Updates of [`ROWS`] rows a second: up to ten million rows.
const BATCHES: &str = "5k,10k,20k,50k,100k";
const ROWS: u64 = 100;
/// Rates that are drawn, each from the last turn, and what of them.
const DRAWN: [u64; 3] = [10_000, 60_000, 200_000];
const PLOTS: [&str; 3] = ["percentiles", "histogram", "latency-over-time"];
/// The curves of a drawing: what they are called, the part that they are of and what stood between.
const CURVES: [(&str, &str, &str); 3] = [
    ("relay", "one", "relay"),
    ("tickerplant", "one", "tickerplant-written"),
    ("plant", "plant", "plant-written"),
];

/// The tickerplant by rate, beside a bare relay
#[derive(Debug, Parser)]
struct Arguments {
    /// Write the page there rather than to standard output
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Keep the run folders and pages of all turns in this folder
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// How often each has its turn
    #[arg(long, default_value_t = 3)]
    turns: usize,
    /// How long each rate is measured
    #[arg(long, default_value = "5s")]
    duration: String,
    /// What cargo passes on
    #[arg(long, hide = true)]
    bench: bool,
}

/// A row of a table: the rate, how all wait, what is measured.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    waiting: String,
    rate: u64,
    through: String,
}

/// For each row what each turn gave.
type Rounds = BTreeMap<Row, Vec<Value>>;

/// One part of the page: its name, and how the suite is called.
struct Part {
    name: &'static str,
    arguments: Vec<&'static str>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let environment = Environment::read(&Clock::calibrate()).summary();
    let scratch = tempfile::tempdir()?;
    let base = arguments.keep.as_deref().unwrap_or(scratch.path());
    let one = ["--journal", "none,written,synced"];
    let parts = [
        Part { name: "one", arguments: [&one[..], &["--rates", RATES]].concat() },
        Part { name: "plant", arguments: [&one[..], &["--through", "plant", "--rates", PLANT]].concat() },
        Part {
            name: "spinning",
            arguments: [&one[..], &["--rates", SPINNING, "--waiting", "spin"]].concat(),
        },
        Part {
            name: "batches",
            arguments: vec![
                "--through",
                "tickerplant,plant",
                "--journal",
                "none,written",
                "--rates",
                BATCHES,
                "--rows",
                "100",
            ],
        },
    ];
    let mut all: Vec<Rounds> = parts.iter().map(|_| Rounds::new()).collect();
    let mut limits = Vec::new();
    for turn in 1..=arguments.turns {
        for (part, rounds) in parts.iter().zip(&mut all) {
            eprintln!("tick: turn {turn} of {}, {}", arguments.turns, part.name);
            let folder = base.join(format!("{}-{turn}", part.name));
            let said = suite(part, &arguments.duration, &folder)?;
            if part.name == "one" {
                limits.push(said["generators"][0]["limit_hz"].as_f64().unwrap_or(f64::NAN));
            }
            for round in said["rounds"].as_array().into_iter().flatten() {
                rounds.entry(row(round)).or_default().push(round.clone());
            }
        }
    }
    let page = page::page(&all, &limits, &arguments.duration, arguments.turns, &environment);
    match arguments.to {
        Some(to) => {
            std::fs::write(&to, page).with_context(|| format!("cannot write {}", to.display()))?;
            DRAWN.iter().try_for_each(|rate| draw(*rate, base, arguments.turns, &to))
        }
        None => {
            print!("{page}");
            Ok(())
        }
    }
}

/// Draws a rate into files beside the page, `tick-RATE-PLOT.svg`.
fn draw(rate: u64, base: &Path, turn: usize, page: &Path) -> anyhow::Result<()> {
    let plots = base.join(format!("plots-{rate}"));
    let runs = CURVES.map(|(name, part, through)| {
        let run = base.join(format!("{part}-{turn}")).join(format!("{through}-block-{rate}"));
        format!("{name}={}", run.display())
    });
    let status = Command::new(env!("CARGO_BIN_EXE_tapeline"))
        .arg("report")
        .args(runs)
        .args(["--to".as_ref(), base.join(format!("{rate}.html")).as_os_str()])
        .args(["--svg".as_ref(), plots.as_os_str()])
        .status()?;
    ensure!(status.success(), "tapeline report ended with {status}");
    for plot in PLOTS {
        let to = page.with_file_name(page::plot(rate, plot));
        std::fs::copy(plots.join(format!("{plot}.svg")), &to)
            .with_context(|| format!("cannot write {}", to.display()))?;
    }
    Ok(())
}

fn row(round: &Value) -> Row {
    let text = |of: &str| round[of].as_str().unwrap_or_default().to_owned();
    Row {
        waiting: text("waiting"),
        rate: round["rate"].as_u64().unwrap_or_default(),
        through: text("through"),
    }
}

/// Runs the suite once; what it says.
fn suite(part: &Part, duration: &str, folder: &Path) -> anyhow::Result<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_tapeline"))
        .args([
            "tick",
            "bench",
            "--format",
            "json",
            "--warm-up",
            "1s",
            "--duration",
            duration,
            "--run-folder",
        ])
        .arg(folder)
        .args(&part.arguments)
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "tapeline tick bench ended with {}", output.status);
    serde_json::from_slice(&output.stdout).context("tapeline tick bench has not said JSON")
}
