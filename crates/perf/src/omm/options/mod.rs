//! The tools' options: the guide's names in kebab case, its defaults, and the rules between options.

mod consumer;
mod inputs;
mod ni_provider;
mod provider;
mod rules;
mod transport;

use std::fmt;
use std::time::Duration;

use clap::Args;
use tapeline_console::LogArgs;
use tapeline_console::arguments::{self, Core};
use tapeline_console::omm::transport::ConfigArgs;
use tapeline_console::output::Format;
use tapeline_console::paths::FilePath;

pub use self::consumer::ConsumerArgs;
pub use self::ni_provider::NiProviderArgs;
pub use self::provider::ProviderArgs;
pub(super) use self::provider::PublishingArgs;
pub(super) use self::transport::End;
pub use self::transport::TransportPerfArgs;
use super::division::Division;
use super::stamp::Unit;

/// How many messages carry a time: a number per second, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StampRate {
    /// Messages per second.
    PerSecond(u64),
    /// Each message (`all`).
    All,
}

/// The highest rate: far above what a loopback carries; a count of due messages over years fits a u64.
const HIGHEST_RATE: u64 = 1_000_000_000;

/// Parses a rate in messages per second.
fn rate(text: &str) -> Result<u64, String> {
    match arguments::rate(text)? {
        rate if rate > HIGHEST_RATE => {
            Err("it is more than 1G, the highest rate that there can be".to_owned())
        }
        rate => Ok(rate),
    }
}

/// Parses whole seconds.
fn seconds(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "whole seconds are expected, such as 60".to_owned())
}

/// Parses a number, or `all`.
fn stamp_rate(text: &str) -> Result<StampRate, String> {
    match text {
        "all" => Ok(StampRate::All),
        text => rate(text).map(StampRate::PerSecond),
    }
}

impl fmt::Display for StampRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerSecond(rate) => rate.fmt(f),
            Self::All => f.write_str("all"),
        }
    }
}

impl StampRate {
    /// The rate that was `asked`; by default 10 per second as in the guide, or 0 if nothing is sent.
    fn or_usual(asked: Option<Self>, sends: bool) -> Self {
        asked.unwrap_or(Self::PerSecond(if sends { 10 } else { 0 }))
    }
}

/// The items, and their division among threads.
#[derive(Clone, Debug, Args)]
pub(super) struct ItemArgs {
    /// Total number of items over all threads
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    pub(super) item_count: usize,
    /// Number of these items that every thread opens or publishes
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub(super) common_item_count: usize,
    /// Item list [default: 350k.xml in the current folder, or else RDT1 to RDT350000]
    #[arg(long, value_name = "FILE")]
    pub(super) item_file: Option<FilePath>,
}

impl ItemArgs {
    /// The division of the items among `threads` threads.
    pub(super) fn division(&self, threads: usize) -> Division {
        Division { all: self.item_count, common: self.common_item_count, threads }
    }
}

/// Name and number of a provider's service.
#[derive(Clone, Debug, Args)]
pub(super) struct ServiceArgs {
    /// Service name [default: that of the configuration, or DIRECT_FEED]
    #[arg(long, value_name = "NAME")]
    pub(super) service_name: Option<String>,
    /// Service number [default: that of the configuration, or 1]
    #[arg(long, value_name = "NUMBER")]
    pub(super) service_id: Option<u16>,
}

/// A service's number, its name, and its vendor if that is known.
type Service = (u16, String, Option<String>);

impl ServiceArgs {
    /// The given names and numbers; defaults are those of the configuration's first service.
    pub(super) fn or(&self, configured: Vec<Service>) -> Service {
        let usual = (1, "DIRECT_FEED".to_owned(), Some("Tapeline".to_owned()));
        let (id, name, vendor) = configured.into_iter().next().unwrap_or(usual);
        (self.service_id.unwrap_or(id), self.service_name.clone().unwrap_or(name), vendor)
    }
}

/// The grid of time slices.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Pace")]
pub(super) struct PaceArgs {
    /// Slices a second: the rate of a thread's bursts. More slices make smaller bursts
    #[arg(long, value_name = "RATE", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(super) tick_rate: u64,
}

/// Working threads, and their cores.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Threads")]
pub(super) struct ThreadArgs {
    /// Cores of the threads: 0,1 for two pinned threads; -1 for a thread that is not pinned
    #[arg(long, value_name = "CORES", value_delimiter = ',', default_value = "-1", allow_hyphen_values = true, value_parser = arguments::core)]
    pub(super) threads: Vec<Core>,
    /// Core of the main thread, which collects and writes results; -1 means not pinned
    #[arg(long, value_name = "CORE", default_value = "-1", allow_hyphen_values = true, value_parser = arguments::core)]
    pub(super) main_thread: Core,
}

/// Outputs for the results.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Results")]
pub(super) struct ResultArgs {
    /// Files of individual latencies, one for each thread: NAME1.csv and so on [default: none]
    #[arg(long, value_name = "NAME")]
    pub(super) latency_file: Option<String>,
    /// Interval between two lines of statistics, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) write_stats_interval: u64,
    /// Print no statistics during the run
    #[arg(long)]
    pub(super) no_display_stats: bool,
    /// Folder for run.json, distributions and the other files [default: a new one under runs/]
    #[arg(long, value_name = "FOLDER")]
    pub(super) run_folder: Option<FilePath>,
    /// Measure the jitter floor of the threads' cores (all cores, if none is pinned) for this long before the run
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = arguments::duration)]
    pub(super) jitter_time: Duration,
    /// Output format: statistics and summary, or only the run's record at the end
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(super) format: Format,
    #[command(flatten)]
    pub(super) log: LogArgs,
}

/// Options of every tool that has a role of the model.
#[derive(Clone, Debug, Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    pub(super) pace: PaceArgs,
    #[command(flatten)]
    pub(super) threads: ThreadArgs,
    /// API dispatch: for each thread, a second thread receives from its connections
    #[arg(long, help_heading = "Threads")]
    api_dispatch: bool,
    /// Cores of the API dispatch threads, one for each thread; -1 for a thread that is not pinned
    #[arg(long, value_name = "CORES", value_delimiter = ',', allow_hyphen_values = true, value_parser = arguments::core, help_heading = "Threads")]
    api_threads: Vec<Core>,
    /// Use time stamps in nanoseconds instead of microseconds; set it at both ends
    #[arg(long, help_heading = "Times")]
    pub(super) nano_time: bool,
    #[command(flatten)]
    pub(super) results: ResultArgs,
    #[command(flatten)]
    pub(super) config: ConfigArgs,
}

impl RunArgs {
    /// Number of threads.
    pub(super) fn threads(&self) -> usize {
        self.threads.threads.len()
    }

    /// Cores of the API dispatch threads; empty with user dispatch.
    pub(super) fn api_threads(&self) -> Vec<Core> {
        match self.api_dispatch && self.api_threads.is_empty() {
            true => vec![Core(None); self.threads()],
            false => self.api_threads.clone(),
        }
    }

    /// The unit of times on the wire.
    pub(super) fn unit(&self) -> Unit {
        if self.nano_time { Unit::Nanos } else { Unit::Micros }
    }
}

/// Parses a tool's options from a command line.
#[cfg(test)]
pub(super) fn of<T: Args + clap::FromArgMatches>(line: &str) -> T {
    let command = T::augment_args(clap::Command::new("tool"));
    T::from_arg_matches(&command.get_matches_from(format!("tool {line}").split_whitespace())).unwrap()
}
