//! `tapeline ring sweep`: the whole matrix of sizes, rates, rings, receivers and framings, and a report with plots.
//!
//! The folder of a sweep contains `plan.json`, `sessions.json` (where and when it ran, with the noise of the cores), a
//! record of every run in `cells/NAME/run-N.json`, and the results derived from them: `figures.json`, `figures.csv`,
//! `report.md`, `report.html` and `plots/`. Only a run that was interrupted is run again.

mod document;
mod figures;
mod plan;
mod record;
mod report;

use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use crate::jitter;
use crate::run_folder::RunFolder;
use anyhow::Context;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tapeline_console::arguments::{self, Cores};
use tapeline_console::failure::Hinted;
use tapeline_console::output::{self, Format, Progress};
use tapeline_console::paths::{self, FilePath};
use tapeline_console::stop::Stop;
use tapeline_measure::{Clock, Environment, Jitter, cores, instant};

use self::figures::SweepFigure;
use self::plan::{Section, SweepPlan};
use self::record::Record;

/// How long the cores are observed before the first run of a session.
const JITTER: Duration = Duration::from_secs(1);
const JITTER_SHORT: Duration = Duration::from_millis(100);
/// The defaults: a full sweep takes about twelve minutes, and `--short` some seconds.
const PER_RUN: Duration = Duration::from_millis(300);
const PER_RUN_SHORT: Duration = Duration::from_millis(30);
const RUNS: u32 = 5;
const RUNS_SHORT: u32 = 1;
/// Interval between progress reports if there is no terminal.
const TELL_EVERY: Duration = Duration::from_secs(30);
/// Cores for the publisher and up to three subscribers.
const MOST_CORES: usize = 4;

/// Measure a matrix of sizes, rates, rings, receivers and framings, and write a report with plots
#[derive(Debug, Args)]
#[command(after_help = "\
Publisher and subscribers are separate processes, each pinned to a core. All cells run in turn, several \
times over, so that a change of the machine affects all of them; figures are medians. Continue a sweep that \
was stopped or killed with --resume.

Examples:
  tapeline ring sweep                                          all sections: about twelve minutes
  tapeline ring sweep --sections throughput,latency --runs 3   two sections
  tapeline ring sweep --short --run-folder look                few values of each axis: half a minute
  tapeline ring sweep --resume runs/2026-11-21T11-10-36Z-sweep-19ee
  tapeline ring sweep --report-only look                       only the report, from earlier results")]
pub struct Sweep {
    /// Sections to run, comma-separated [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    sections: Vec<Section>,

    /// Measured time of each run [default: 300ms, with --short 30ms]
    #[arg(long, value_name = "TIME", value_parser = arguments::some_duration)]
    seconds_per_run: Option<Duration>,

    /// Runs of each cell [default: 5, with --short 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,

    /// Cores: the publisher's first, then the subscribers' [default: the first four available]
    #[arg(long, value_name = "LIST", value_parser = arguments::cores)]
    cpus: Option<Cores>,

    /// Use few values on each axis, as a quick check
    #[arg(long)]
    short: bool,

    /// Folder for all results; a folder with the same plan is continued [default: a new one under runs/]
    #[arg(long, value_name = "FOLDER")]
    run_folder: Option<FilePath>,

    /// Continue the sweep in this folder
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["sections", "seconds_per_run", "runs", "cpus", "short", "run_folder", "report_only"])]
    resume: Option<FilePath>,

    /// Only write the report of the sweep in this folder, from its results so far
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["sections", "seconds_per_run", "runs", "cpus", "short", "run_folder"])]
    report_only: Option<FilePath>,

    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Sweep {
    /// Runs the whole matrix and writes its report.
    ///
    /// # Errors
    /// If a process of the matrix fails, or the run folder cannot be written.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals().context("cannot listen for signals")?;
        if let Some(folder) = &self.report_only {
            let plan = read_plan(folder)?;
            return self.conclude(folder, &plan, 0);
        }
        let (folder, plan) = match &self.resume {
            Some(folder) => {
                let plan = read_plan(folder)?;
                // What this program makes of the same options.
                let now =
                    SweepPlan::new(&plan.sections, plan.short, plan.per_run(), plan.runs, plan.cpus.clone());
                check_same(folder, &plan, &now)?;
                jitter::check(&plan.cpus)?;
                (folder.to_path_buf(), plan)
            }
            None => self.prepare()?,
        };
        match run_all(&folder, &plan, &stop)? {
            None => {
                anstream::eprintln!(
                    "stopped; continue with `tapeline ring sweep --resume {}`",
                    paths::shown(&folder)
                );
                Ok(ExitCode::from(130))
            }
            Some(failed) => self.conclude(&folder, &plan, failed),
        }
    }

    /// Creates the folder with its plan, or opens the one of a sweep to continue.
    fn prepare(&self) -> anyhow::Result<(PathBuf, SweepPlan)> {
        let plan = self.plan();
        jitter::check(&plan.cpus)?;
        if let Some(folder) = self.run_folder.as_ref().filter(|folder| folder.join("plan.json").exists()) {
            check_same(folder, &read_plan(folder)?, &plan)?;
            return Ok((folder.to_path_buf(), plan));
        }
        let folder = RunFolder::create(self.run_folder.as_deref(), "sweep")?.path().to_owned();
        write(&folder.join("plan.json"), &(output::json(&plan)? + "\n"))?;
        Ok((folder, plan))
    }

    fn plan(&self) -> SweepPlan {
        let sections =
            if self.sections.is_empty() { Section::value_variants() } else { self.sections.as_slice() };
        let (per_run, runs) = if self.short { (PER_RUN_SHORT, RUNS_SHORT) } else { (PER_RUN, RUNS) };
        let cpus = match &self.cpus {
            Some(Cores(cpus)) => cpus.clone(),
            None => cores().into_iter().take(MOST_CORES).collect(),
        };
        let (per_run, runs) = (self.seconds_per_run.unwrap_or(per_run), self.runs.unwrap_or(runs));
        SweepPlan::new(sections, self.short, per_run, runs, cpus)
    }

    /// Writes figures and a report from the available results.
    fn conclude(&self, folder: &Path, plan: &SweepPlan, failed: usize) -> anyhow::Result<ExitCode> {
        let figures = SweepFigure::all(folder, plan);
        write(&folder.join("figures.json"), &(output::json(&figures)? + "\n"))?;
        write(&folder.join("figures.csv"), &figures::csv(&figures))?;
        let command = command(plan);
        report::report(plan, &figures, &read_sessions(folder), &command).write(folder)?;
        match self.format {
            Format::Json => output::print_json(&figures)?,
            Format::Table => output::print(&figures::table(&figures))?,
        }
        anstream::eprintln!("\nreport       {}", folder.join("report.html").display());
        let lost: u64 = figures.iter().map(|figure| figure.lost).sum();
        if failed > 0 {
            let what = format!("{failed} runs failed; their messages are above");
            let hint = format!("`tapeline ring sweep --resume {}` tries them again", folder.display());
            return Err(Hinted::new(what, hint).into());
        }
        Ok(if lost > 0 { ExitCode::from(3) } else { ExitCode::SUCCESS })
    }
}

/// Runs every cell that has no record yet, one round over all cells at a time. Returns how many failed; `None` if the user
/// stopped it.
fn run_all(folder: &Path, plan: &SweepPlan, stop: &Stop) -> anyhow::Result<Option<usize>> {
    let left: Vec<_> = (1..=plan.runs)
        .flat_map(|round| plan.cells.iter().map(move |cell| (cell, round)))
        .filter(|(cell, round)| Record::read(folder, cell, *round).is_none())
        .collect();
    let all = plan.cells.len() * plan.runs as usize;
    if left.is_empty() {
        anstream::eprintln!("all {all} runs are done");
        return Ok(Some(0));
    }
    let done = all - left.len();
    anstream::eprintln!(
        "{} cells, {} runs of {all} to go: about {}",
        plan.cells.len(),
        left.len(),
        minutes(plan.estimate(left.len() as u64))
    );
    let clock = Clock::calibrate();
    begin_session(folder, plan, &clock, stop)?;
    let mut progress = Progress::counting("sweep", "runs", Some(all as u64));
    let (begun, mut told) = (instant(), instant());
    let mut failed = 0;
    for (number, (cell, round)) in left.iter().enumerate() {
        if stop.requested() {
            return Ok(None);
        }
        match Record::run(plan, cell, *round, clock.now(), stop) {
            Ok(record) => record.write(folder)?,
            Err(_) if stop.requested() => return Ok(None),
            Err(error) => {
                failed += 1;
                progress.apart(|| anstream::eprintln!("{} failed: {error:#}", cell.name()));
            }
        }
        progress.set((done + number + 1) as u64);
        if told.elapsed() >= TELL_EVERY && !std::io::stderr().is_terminal() {
            told = instant();
            let each = begun.elapsed() / u32::try_from(number + 1).unwrap_or(u32::MAX);
            let to_go = left.len() - number - 1;
            let time = each * u32::try_from(to_go).unwrap_or(u32::MAX);
            anstream::eprintln!("{} of {all} runs, about {} left", done + number + 1, minutes(time));
        }
    }
    Ok(Some(failed))
}

/// Records place and time, and the noise of the cores before anything runs on them.
fn begin_session(folder: &Path, plan: &SweepPlan, clock: &Clock, stop: &Stop) -> anyhow::Result<()> {
    let time = if plan.short { JITTER_SHORT } else { JITTER };
    let threshold = Duration::from_nanos(Jitter::THRESHOLD_NS);
    let jitter = jitter::measure(&plan.cpus, time, threshold, clock, stop)?;
    let mut sessions = read_sessions(folder);
    sessions.push(json!({
        "started": clock.now().to_string(),
        "jitter_floor_p99_ns": tapeline_measure::floor_ns(&jitter, 0.99),
        "jitter": jitter,
        "environment": Environment::read(clock),
        "environment_summary": Environment::read(clock).summary(),
    }));
    write(&folder.join("sessions.json"), &(output::json(&sessions)? + "\n"))
}

fn read_sessions(folder: &Path) -> Vec<Value> {
    let text = fs::read(folder.join("sessions.json")).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

fn read_plan(folder: &Path) -> anyhow::Result<SweepPlan> {
    let path = folder.join("plan.json");
    let hint = "name the folder of a sweep: the sweep printed it at its start";
    let text =
        fs::read(&path).with_context(|| Hinted::new(format!("{} holds no sweep", folder.display()), hint))?;
    let hint = "it was made by another version, or changed by hand; begin a new sweep";
    serde_json::from_slice(&text)
        .with_context(|| Hinted::new(format!("cannot read {}", path.display()), hint))
}

fn check_same(folder: &Path, there: &SweepPlan, now: &SweepPlan) -> anyhow::Result<()> {
    let Some(difference) = there.difference(now) else { return Ok(()) };
    let what = format!("the sweep in {} has a different plan ({difference})", folder.display());
    let hint = format!(
        "give the options that it was started with, or `--resume {}` with the same program; or name a new folder",
        folder.display()
    );
    Err(Hinted::new(what, hint).into())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn command(plan: &SweepPlan) -> String {
    let cpus: Vec<String> = plan.cpus.iter().map(usize::to_string).collect();
    format!(
        "tapeline ring sweep{} --sections {} --seconds-per-run {}ms --runs {} --cpus {}",
        if plan.short { " --short" } else { "" },
        plan.section_words(),
        plan.per_run().as_millis(),
        plan.runs,
        cpus.join(","),
    )
}

/// `11 min`, `40 s`.
fn minutes(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 90.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", seconds / 60.0) }
}
