//! Tapeline's ring beside other queues and the machine's own limits, in turns on the same two cores.
//!
//! `make bench-peers` builds and runs it; README.md says what is measured and how.
#![deny(unsafe_code)]

mod case;
mod measuring;
mod message;
mod plots;
mod record;
mod report;
mod results;
mod session;
mod stage;
mod systems;
mod table;
mod verdicts;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use tapeline_measure::{Clock, Environment, Jitter, cores, floor_ns, ticks};

use crate::record::{Described, Record};
use crate::session::{Figure, Outcome, Plan};

/// Tapeline's ring beside other queues and the machine's own limits
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure, print the tables, and leave a run folder
    Run(RunArguments),
    /// Print the page of a run folder as Markdown
    Report {
        /// The run folder
        folder: PathBuf,
        /// Write the page there, and the plots beside it, rather than to standard output
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
    },
    /// List the systems of this build, and their settings
    List,
    /// A part of a measurement
    #[command(hide = true)]
    Role { stage: String },
}

#[derive(Debug, Args)]
struct RunArguments {
    /// Only these systems or peers, separated by commas; `limits` and `ring` are always of use
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    only: Vec<String>,
    /// Only the measurements whose name contains this text, such as "32 B, backlog"; may be repeated
    #[arg(long, value_name = "TEXT")]
    measure: Vec<String>,
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..), help = "How often each system answers each question [default: 5; 1 with --short]")]
    turns: Option<u16>,
    /// Measured time of each measurement in ms; 1,000 messages a second are given four times that
    #[arg(long, default_value_t = 250, value_name = "MS", value_parser = clap::value_parser!(u16).range(1..))]
    measured_ms: u16,
    /// One turn of 50 ms: to see that all works, and the order of magnitude
    #[arg(long, conflicts_with = "measured_ms")]
    short: bool,
    /// Sender's and receiver's core; the first and the last if not given
    #[arg(long, value_delimiter = ',', num_args = 2, value_name = "CORES")]
    cores: Vec<usize>,
    /// Where to leave the run; a new folder under runs/ if not given
    #[arg(long, value_name = "FOLDER")]
    run_folder: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Run(arguments) => run(&arguments),
        Command::Report { folder, to } => print_page(&folder, to.as_deref()),
        Command::List => list(),
        Command::Role { stage } => stage::Stage::perform(&stage),
    }
}

fn run(arguments: &RunArguments) -> anyhow::Result<()> {
    let began = Instant::now();
    let clock = Clock::calibrate();
    let started = clock.now();
    let usable = cores();
    let cores = match (&arguments.cores[..], &usable[..]) {
        ([sender, receiver], _) => [*sender, *receiver],
        (_, [first, .., last]) => [*first, *last],
        _ => anyhow::bail!("two cores are needed, and this process may use {} only", usable.len()),
    };
    let measured_ms = if arguments.short { 50 } else { arguments.measured_ms.into() };
    let plan = Plan {
        systems: session::chosen(&arguments.only)?,
        metrics: Plan::chosen_metrics(&arguments.measure)?,
        turns: arguments.turns.unwrap_or(if arguments.short { 1 } else { 5 }).into(),
        warm_up_ms: measured_ms * 2 / 5,
        measured_ms,
        slow_ms: measured_ms * 4,
        cores,
    };
    let skipped = skipped();
    for why in &skipped {
        tell(&format!("left out: {why}"));
    }
    let folder = record::make_folder(arguments.run_folder.as_deref(), started)?;
    let environment = Environment::read(&clock);
    let jitter = jitter(cores, &clock, Duration::from_millis(plan.slow_ms))?;

    let total = plan.count();
    let mut done = 0;
    let figures = plan.run(&clock, |figure| {
        done += 1;
        progress(done, total, began, figure);
    });
    let (layout, kind) = Record::KIND;
    let command: Vec<String> = std::env::args().skip(1).collect();
    let record = Record {
        layout,
        kind: kind.to_owned(),
        started: started.0,
        started_utc: started.to_string(),
        seconds: began.elapsed().as_secs_f64(),
        command: std::env::var("PEERS_COMMAND").unwrap_or_else(|_| format!("peers {}", command.join(" "))),
        turns: plan.turns,
        measured_ms: plan.measured_ms,
        cores,
        cores_usable: usable.len(),
        clock_step_ns: clock_step_ns(&clock),
        jitter_floor_p99_ns: floor_ns(&jitter, 0.99),
        systems: plan.systems.iter().map(|system| Described::of(system)).collect(),
        skipped,
        figures,
        lines_written: [1, 2, 3].into_iter().map(systems::lines_written).collect::<anyhow::Result<_>>()?,
        jitter: serde_json::to_value(&jitter)?,
        environment: serde_json::to_value(&environment)?,
        environment_text: environment.summary(),
    };
    record::write(&folder, "run.json", &serde_json::to_string_pretty(&record)?)?;
    let text = report::text(&record);
    record::write(&folder, "summary.txt", &text)?;
    record::write(&folder, "throughput.svg", &plots::throughput(&record))?;
    record::write(&folder, "latency.svg", &plots::latency(&record))?;
    print(&format!("{text}\nrun folder   {}\n", folder.display()))
}

/// The peers that this build lacks, and why. The reasons come from who built it.
fn skipped() -> Vec<String> {
    let given = std::env::var("PEERS_SKIPPED").unwrap_or_default();
    let mut skipped: Vec<String> = given.lines().map(str::to_owned).collect();
    for (name, is_built) in systems::OPTIONAL {
        if !is_built && !skipped.iter().any(|why| why.starts_with(name)) {
            skipped.push(format!("{name}: not in this build (feature `{name}`)"));
        }
    }
    skipped
}

/// The noise of the two cores, each from a thread of its own that stays on it.
fn jitter(cores: [usize; 2], clock: &Clock, duration: Duration) -> anyhow::Result<Vec<Jitter>> {
    cores
        .into_iter()
        .map(|core| {
            let clock = *clock;
            let watch = move || Jitter::measure(core, duration, Jitter::THRESHOLD_NS, &clock, || false);
            let watched = std::thread::spawn(watch).join();
            Ok(watched.map_err(|_| anyhow::anyhow!("the jitter thread broke down"))??)
        })
        .collect()
}

/// The greatest common divisor of differences between readings: what the counter counts in.
fn clock_step_ns(clock: &Clock) -> f64 {
    let mut step = 0_u64;
    let mut last = ticks().0;
    for _ in 0..10_000 {
        let now = ticks().0;
        let (mut a, mut b) = (step, now.saturating_sub(last));
        while b > 0 {
            (a, b) = (b, a % b);
        }
        step = a;
        last = now;
    }
    step as f64 * 1e9 / clock.ticks_in(1_000_000_000).max(1) as f64
}

fn progress(done: usize, total: usize, began: Instant, figure: &Figure) {
    if let Outcome::Failed(why) = &figure.result {
        tell(&format!("\r{}, {}: {why}\x1b[K", figure.system, figure.metric));
    }
    let left = began.elapsed().as_secs_f64() * (total - done) as f64 / done as f64;
    let line = format!(
        "{done} of {total}, {left:.0} s left: turn {}, {}, {}",
        figure.turn + 1,
        figure.metric,
        figure.system
    );
    let mut out = std::io::stderr().lock();
    // Who cannot be told is not told.
    if out.is_terminal() {
        let _ = write!(out, "\r{line}\x1b[K{}", if done == total { "\r\x1b[K" } else { "" });
    } else if done.is_multiple_of(50) || done == total {
        let _ = writeln!(out, "{line}");
    }
}

fn print_page(folder: &Path, to: Option<&Path>) -> anyhow::Result<()> {
    let record = Record::read(folder)?;
    let Some(to) = to else { return print(&report::page(&record, &[])) };
    let stem = to.file_stem().and_then(|stem| stem.to_str()).context("the page needs a name")?;
    let beside = to.parent().context("the page needs a folder")?;
    std::fs::create_dir_all(beside).with_context(|| format!("cannot make {}", beside.display()))?;
    let names = [format!("{stem}-throughput.svg"), format!("{stem}-latency.svg")];
    let plots = [plots::throughput(&record), plots::latency(&record)];
    for (name, plot) in names.iter().zip(plots) {
        record::write(beside, name, &plot)?;
    }
    let page = report::page(&record, &names.each_ref().map(String::as_str));
    std::fs::write(to, page).with_context(|| format!("cannot write {}", to.display()))
}

fn list() -> anyhow::Result<()> {
    let mut table = table::Table::new("Systems of this build", ["name", "system", "settings"]);
    for system in systems::SYSTEMS {
        table.rows.push([system.name, system.title, system.settings].map(str::to_owned).to_vec());
    }
    print(&table.text())
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write to standard output")
}

fn tell(text: &str) {
    // Who cannot be told is not told.
    let _ = writeln!(std::io::stderr(), "{text}");
}
