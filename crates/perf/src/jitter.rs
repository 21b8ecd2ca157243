//! `tapeline jitter`: the noise floor of this machine's cores.

use std::process::ExitCode;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use serde::Serialize;
use tapeline_console::arguments::{self, Cores};
use tapeline_console::failure::Hinted;
use tapeline_console::output::{self, Format, Progress};
use tapeline_console::stop::Stop;
use tapeline_measure::{Clock, Environment, Jitter as Measured, Rank, cores, figures, floor_ns};

/// Interval of progress updates. Each update wakes this thread on a core that may be under measurement.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);

/// Quantiles for which the floor is printed.
const FLOORS: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// Measure the noise floor of this machine's cores
#[derive(Debug, Args)]
#[command(after_help = "\
A thread on each core does nothing but read the clock. A long gap between two readings means that something \
else used the core: an interrupt, another program, the hypervisor or the firmware. All cores are measured \
at once. No latency measured on these cores can be lower than these gaps.

Examples:
  tapeline jitter                                all cores for 5 seconds
  tapeline jitter --cpus 2-3 --duration 1m       two cores for a minute
  tapeline jitter --threshold 200ns              count shorter gaps as well
  tapeline jitter --format json | jq .floor_ns   JSON, for a program")]
pub struct Jitter {
    /// Cores to measure, such as 0,2-3 [default: all available]
    #[arg(long, value_name = "LIST", value_parser = arguments::cores)]
    cpus: Option<Cores>,

    /// Duration of the measurement, such as 5s, 500ms, 2m
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = arguments::some_duration)]
    duration: Duration,

    /// Count gaps of at least this length, 100ns to 1us
    #[arg(long, value_name = "TIME", default_value = "1us", value_parser = threshold)]
    threshold: Duration,

    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

fn threshold(text: &str) -> Result<Duration, String> {
    match arguments::duration(text)? {
        threshold if (100..=1_000).contains(&threshold.as_nanos()) => Ok(threshold),
        _ => Err(format!("'{text}' is not between 100ns and 1us")),
    }
}

/// The result as JSON.
#[derive(Serialize)]
struct Report<'a> {
    environment: &'a Environment,
    /// Latency in nanoseconds that the cores impose on a message that passes through all of them.
    floor_ns: serde_json::Map<String, serde_json::Value>,
    cores: Vec<Core<'a>>,
}

#[derive(Serialize)]
struct Core<'a> {
    #[serde(flatten)]
    measured: &'a Measured,
    lost_share: f64,
    over_1_us_per_second: f64,
    over_10_us_per_second: f64,
    over_100_us_per_second: f64,
    over_1_ms_per_second: f64,
}

impl Jitter {
    /// Runs the tool and returns the process's exit status.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let watched = self.cpus.map_or_else(cores, |Cores(list)| list);
        check(&watched)?;
        let stop = Stop::on_signals().context("cannot listen for signals")?;
        let mut clock = Clock::calibrate();
        let measured = measure(&watched, self.duration, self.threshold, &clock, &stop)?;
        clock.recalibrate();
        let environment = Environment::read(&clock);
        match self.format {
            Format::Table => output::print(&table(&measured, &environment))?,
            Format::Json => output::print_json(&report(&measured, &environment))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Refuses cores that this process may not use.
pub(crate) fn check(watched: &[usize]) -> anyhow::Result<()> {
    let usable = cores();
    let Some(core) = watched.iter().find(|core| !usable.contains(core)) else { return Ok(()) };
    let what = format!("core {core} is not available to this process");
    let hint = format!("the cores that may be used are {}", figures::list(&usable));
    Err(Hinted::new(what, hint).into())
}

/// Measures all cores at once, one thread each; results are in the given order.
pub fn measure(
    watched: &[usize],
    duration: Duration,
    threshold: Duration,
    clock: &Clock,
    stop: &Stop,
) -> anyhow::Result<Vec<Measured>> {
    let threshold_ns = u64::try_from(threshold.as_nanos()).unwrap_or(u64::MAX);
    let mut progress = Progress::over("watching the cores", duration);
    thread::scope(|scope| {
        let threads: Vec<_> = watched
            .iter()
            .map(|&core| {
                scope.spawn(move || {
                    Measured::measure(core, duration, threshold_ns, clock, || stop.requested())
                })
            })
            .collect();
        while !threads.iter().all(ScopedJoinHandle::is_finished) {
            // The sleep is shorter for a short measurement, so that it ends on time.
            thread::park_timeout(PROGRESS_EVERY.min(duration / 4 + Duration::from_millis(1)));
            progress.set_elapsed();
        }
        threads.into_iter().map(|thread| Ok(joined(thread)?)).collect()
    })
}

/// What a thread returned; its panic goes on in this one.
pub(crate) fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn report<'a>(measured: &'a [Measured], environment: &'a Environment) -> Report<'a> {
    let floors =
        FLOORS.iter().map(|(name, quantile)| ((*name).to_owned(), floor_ns(measured, *quantile).into()));
    let core = |measured: &'a Measured| Core {
        measured,
        lost_share: measured.lost_share(),
        over_1_us_per_second: measured.per_second(measured.over_1_us),
        over_10_us_per_second: measured.per_second(measured.over_10_us),
        over_100_us_per_second: measured.per_second(measured.over_100_us),
        over_1_ms_per_second: measured.per_second(measured.over_1_ms),
    };
    Report { environment, floor_ns: floors.collect(), cores: measured.iter().map(core).collect() }
}

fn table(measured: &[Measured], environment: &Environment) -> String {
    let heading =
        ["core", ">1 µs /s", ">10 µs /s", ">100 µs /s", ">1 ms /s", "p50", "p99", "max", "lost", "loop"];
    let mut gaps = output::table(heading);
    for core in measured {
        gaps.add_row(row(core));
    }
    let elapsed = measured.iter().map(|core| core.elapsed_ns).max().unwrap_or(0);
    let threshold = measured.first().map_or(0, |core| core.threshold_ns);
    let floors: Vec<String> = FLOORS
        .iter()
        .map(|(name, quantile)| format!("{name} {}", figures::duration(floor_ns(measured, *quantile))))
        .collect();
    format!(
        "{}\n\n\
         Gaps between clock readings over {}; p50 and p99 of gaps from {} on; lost: their share of the time;\n\
         loop: the shortest distance of two readings.\n\n\
         floor     {}, for a message that passes through {}\n{}",
        gaps,
        figures::duration(elapsed),
        figures::duration(threshold),
        floors.join(", "),
        if measured.len() == 1 { "this core" } else { "all of these cores" },
        environment.summary()
    )
}

fn row(core: &Measured) -> Vec<String> {
    let often = |count: u64| {
        let per_second = core.per_second(count);
        // A low rate needs a decimal, to distinguish it from zero.
        if count > 0 && per_second < 10.0 {
            format!("{per_second:.1}")
        } else {
            figures::thousands(per_second.round() as u64)
        }
    };
    vec![
        core.core.to_string(),
        often(core.over_1_us),
        often(core.over_10_us),
        often(core.over_100_us),
        often(core.over_1_ms),
        output::latency(core.gaps.at(Rank::MEDIAN)),
        output::latency(core.gaps.at(Rank::P99)),
        figures::duration(core.max_ns),
        format!("{:.3} %", core.lost_share() * 100.0),
        figures::duration(core.loop_ns),
    ]
}
