//! `tapeline tick bench`: measures a tickerplant between publisher and subscriber, rate by rate, next to a bare relay.
//!
//! | file | owns |
//! |---|---|
//! | `mod.rs` | the command: the order of the rounds |
//! | `round.rs` | one rate: starts the parts, judges their results, writes the run folder |
//! | `table.rs` | the results of all rates, for people |
//! | `feed.rs`, `sink.rs`, `relay.rs` | the parts, each a process: publisher, subscriber, a relay that does no work |
//! | `place.rs` | the address of a tickerplant, and a connection to it |

mod feed;
mod place;
mod relay;
mod round;
mod sink;
mod table;

use std::process::ExitCode;
use std::time::Duration;

use crate::report::Report;
use crate::run_folder::RunFolder;
use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use tapeline_console::arguments::{self, Cores};
use tapeline_console::failure::Hinted;
use tapeline_console::output::{self, Format};
use tapeline_console::paths::{self, FilePath};
use tapeline_console::stop::Stop;
use tapeline_measure::{Nanos, figures};

use self::place::{Place, TickLink};
use self::round::{Bench, Round, Through};

/// The table of the benchmark.
const TABLE: &str = "trade";

/// Measure a tickerplant's latency at several rates, from the due times of updates, and compare it with a bare relay.
#[derive(Debug, Args)]
#[command(
    after_help = "Publisher, tickerplant and subscriber are separate processes. Each update carries its due time, and latency is \
    measured from it, so it includes the publisher's lateness. It excludes the warm-up. The relay forwards the same bytes over the \
    same sockets without decoding them: no tickerplant is faster. A null sink shows the publisher's maximum rate.\n\n\
    The environment variables THROUGHPUT and DURATION (seconds) set the defaults of --rates and --duration. The run folder has a page \
    for each rate, with a histogram and a timeline, and a run folder for each row of the table.\n\n\
    Examples:\n  \
        tapeline tick bench --rates 10k,60k --duration 10s\n  \
        tapeline tick bench --journal none,written,synced --waiting block,spin\n  \
        tapeline tick bench --through tickerplant,plant --journal written\n  \
        tapeline tick bench --target localhost:5010    # q tick.q with trade:([]time:`timespan$();sym:`symbol$();price:`float$();size:`long$())"
)]
pub struct BenchArgs {
    /// Rates to measure, one after another, in updates a second [default: nine rates from 10k to 1M]
    #[arg(long, value_name = "RATES", value_delimiter = ',', value_parser = arguments::rate)]
    rates: Vec<u64>,
    /// Duration of the measurement at each rate [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = arguments::some_duration)]
    duration: Option<Duration>,
    /// Duration of the warm-up before each measurement
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = arguments::duration)]
    warm_up: Duration,
    /// Rows in each update
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    rows: u64,
    /// Programs to measure, one after another, between publisher and subscriber
    #[arg(long, value_enum, value_delimiter = ',', default_value = "tickerplant", conflicts_with = "target")]
    through: Vec<Middle>,
    /// Journal settings to measure, one after another
    #[arg(long, value_enum, value_delimiter = ',', default_value = "none", conflicts_with = "target")]
    journal: Vec<Journal>,
    /// Kind of socket between the processes
    #[arg(long, value_enum, default_value_t, conflicts_with = "target")]
    socket: Socket,
    /// How the processes wait for data; several values are measured one after another
    #[arg(long, value_enum, value_delimiter = ',', default_value = "block")]
    waiting: Vec<Waits>,
    /// Cores of publisher, tickerplant and subscriber, in this order; a shorter list is repeated
    #[arg(long, value_name = "CORES", value_parser = arguments::cores)]
    cpus: Option<Cores>,
    /// Measure this running tickerplant instead of Tapeline's own: HOST:PORT, the path of a socket, or @/tmp/kx.PORT,
    /// the Unix socket of q. The tickerplant also writes the published updates to its log. To log in, set
    /// TICK_LOGIN=USER:PASSWORD in the environment
    #[arg(long, value_name = "ADDRESS")]
    target: Option<Place>,
    /// Write the due, send and receive times of every measured row, in ns, to the file times.csv of each run folder.
    /// The subscriber needs 24 bytes of memory for each row until the end
    #[arg(long)]
    times: bool,
    /// New folder for the run folders and the pages [default: a new one under runs/]
    #[arg(long, value_name = "FOLDER")]
    run_folder: Option<FilePath>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The program to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Middle {
    /// `tapeline tick serve`: a tickerplant alone
    Tickerplant,
    /// `tapeline plant` with [kdb]: each row is published to the ring as a tick with its own sequence number, then sent
    Plant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Journal {
    /// No log
    None,
    /// The kdb+ log, written to the page cache before publishing; for a plant, also its journal
    Written,
    /// The kdb+ log, durable on disk before publishing; for a plant, its journal instead of the log
    Synced,
}

impl Journal {
    /// The durability in a configuration; `None` without a log.
    const fn durability(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Written => Some("written"),
            Self::Synced => Some("synced"),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Socket {
    /// Unix-domain sockets
    #[default]
    Unix,
    /// TCP over loopback
    Tcp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Waits {
    /// Sleep until data arrives
    Block,
    /// Poll: each process uses a whole core
    Spin,
}

impl Waits {
    /// The way of waiting, as in file names.
    const fn word(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Spin => "spin",
        }
    }
}

/// The processes of a bench. The bench starts them itself.
#[derive(Debug, Subcommand)]
pub enum Part {
    /// Publish updates
    Feed(feed::Feed),
    /// Subscribe and measure latencies
    Sink(sink::SinkPart),
    /// Forward bytes
    Relay(relay::Relay),
}

impl Part {
    /// Runs the part until it is told to end or its work is done.
    ///
    /// # Errors
    /// If its connection fails.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Feed(feed) => feed.run(),
            Self::Sink(sink) => sink.run(),
            Self::Relay(relay) => relay.run(),
        }
    }
}

/// The options of both publisher and subscriber.
#[derive(Debug, Args)]
struct PartArgs {
    #[arg(long)]
    target: Place,
    /// Due time of the first update, in ns since 1970
    #[arg(long)]
    start: u64,
    #[arg(long)]
    warm_up_ns: u64,
    #[arg(long)]
    duration_ns: u64,
    #[arg(long)]
    spins: bool,
    #[arg(long)]
    cpu: Option<usize>,
}

impl PartArgs {
    /// Pins this process, and connects.
    fn link(&self) -> anyhow::Result<TickLink> {
        pin(self.cpu)?;
        TickLink::open(&self.target, MOST_MESSAGE, self.spins)
    }

    fn measured_from(&self) -> Nanos {
        Nanos(self.start) + self.warm_up_ns
    }

    fn end(&self) -> Nanos {
        self.measured_from() + self.duration_ns
    }
}

/// Maximum size of a message for the subscriber: a foreign tickerplant may publish on a timer.
const MOST_MESSAGE: usize = 256 << 20;

/// Binds this thread to a core, if one is named.
pub(super) fn pin(core: Option<usize>) -> anyhow::Result<()> {
    if let Some(core) = core {
        tapeline_measure::pin(core).with_context(|| format!("cannot run on core {core}"))?;
    }
    Ok(())
}

/// The rates of the kdb-X suite, and more.
const USUAL_RATES: [u64; 9] = [10_000, 20_000, 40_000, 60_000, 80_000, 100_000, 200_000, 500_000, 1_000_000];
const USUAL_DURATION: Duration = Duration::from_secs(60);

impl BenchArgs {
    /// Measures all rates and prints the table.
    ///
    /// # Errors
    /// If a part fails or the run folder cannot be written.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals()?;
        let (rates, duration) = (self.rates_to_measure()?, self.time_of_each_rate()?);
        self.check_nothing_twice(&rates)?;
        let folder = RunFolder::create(self.run_folder.as_deref(), "tick")?;
        let measured = self.measured();
        let (mut rounds, mut generators): (Vec<Round>, _) = (Vec::new(), Vec::new());
        for waits in &self.waiting {
            let bench = Bench {
                args: self,
                duration,
                // The relay uses sockets of the same kind.
                is_local: self.target.as_ref().map_or(self.socket == Socket::Unix, Place::is_local),
                waits: *waits,
                folder: folder.path(),
                stop: &stop,
            };
            generators.push(Generator { waiting: *waits, limit_hz: bench.limit()? });
            for rate in &rates {
                let round = |through| {
                    anstream::eprintln!("{}/s through {through}", figures::thousands(*rate));
                    bench.round(through, *rate)
                };
                let relay = round(&Through::Relay)?;
                let mut others = measured.iter().map(round).collect::<anyhow::Result<Vec<_>>>()?;
                others.iter_mut().for_each(|other| other.blame(&relay));
                rounds.push(relay);
                rounds.extend(others);
            }
        }
        for rate in &rates {
            let of_it = rounds.iter().filter(|round| round.rate == *rate).map(|round| round.folder.as_path());
            let title = format!("{} updates/s", figures::thousands(*rate));
            Report::of(of_it, &title, &folder.path().join(format!("{rate}.html"))).run()?;
        }
        self.print(&rounds, &generators, &folder)?;
        Ok(ExitCode::SUCCESS)
    }

    /// The rates, in updates a second: from the command line, the environment, or the defaults.
    fn rates_to_measure(&self) -> anyhow::Result<Vec<u64>> {
        if !self.rates.is_empty() {
            return Ok(self.rates.clone());
        }
        let rates = from_environment("THROUGHPUT", |text| text.split(',').map(arguments::rate).collect())?;
        Ok(rates.unwrap_or_else(|| USUAL_RATES.to_vec()))
    }

    /// How long each rate is measured: from the command line, the environment, or the default.
    fn time_of_each_rate(&self) -> anyhow::Result<Duration> {
        if let Some(duration) = self.duration {
            return Ok(duration);
        }
        // A number alone is seconds, as in the suite.
        let duration = from_environment("DURATION", |text| match text.parse::<u64>() {
            Ok(_) => arguments::some_duration(&format!("{text}s")),
            Err(_) => arguments::some_duration(text),
        })?;
        Ok(duration.unwrap_or(USUAL_DURATION))
    }

    /// Refuses a rate of 0, and duplicate values.
    fn check_nothing_twice(&self, rates: &[u64]) -> anyhow::Result<()> {
        if rates.contains(&0) || has_twice(rates) {
            return Err(Hinted::new("a rate is 0, or given twice", "such as --rates 10k,60k,200k").into());
        }
        if has_twice(&self.through) || has_twice(&self.journal) || has_twice(&self.waiting) {
            let hint = "such as --through tickerplant,plant --journal none,written --waiting block,spin";
            let what = "a value of --through, --journal or --waiting is given twice";
            return Err(Hinted::new(what, hint).into());
        }
        Ok(())
    }

    /// What to measure in turn, besides the relay.
    fn measured(&self) -> Vec<Through> {
        match &self.target {
            Some(place) => vec![Through::Target(place.clone())],
            None => {
                let of = |middle| self.journal.iter().map(move |journal| Through::Ours(middle, *journal));
                self.through.iter().copied().flat_map(of).collect()
            }
        }
    }

    /// Prints the figures of all rates, and the paths of their pages.
    fn print(&self, rounds: &[Round], generators: &[Generator], folder: &RunFolder) -> anyhow::Result<()> {
        match self.format {
            Format::Json => {
                output::print_json(&serde_json::json!({
                    "generators": generators, "rounds": rounds, "folder": folder.path()
                }))?;
            }
            Format::Table => {
                output::print(&table::of(rounds).to_string())?;
                for &Generator { waiting, limit_hz } in generators {
                    let limit = output::rate(limit_hz, "updates");
                    let how = if waiting == Waits::Spin { ", spinning" } else { "" };
                    output::print(&format!("\ngenerator    {limit} at most, into a null sink{how}"))?;
                }
                output::print(&format!("pages        {}", paths::shown(&folder.path().join("RATE.html"))))?;
            }
        }
        Ok(())
    }
}

/// The value of an environment variable, if set.
fn from_environment<T>(name: &str, parse: impl Fn(&str) -> Result<T, String>) -> anyhow::Result<Option<T>> {
    let Ok(text) = std::env::var(name) else { return Ok(None) };
    parse(&text).map(Some).map_err(|what| anyhow::anyhow!("{name} in the environment: {what}"))
}

/// The limit of the publisher alone.
#[derive(Debug, Serialize)]
struct Generator {
    waiting: Waits,
    limit_hz: f64,
}

fn has_twice<T: PartialEq>(all: &[T]) -> bool {
    all.iter().enumerate().any(|(at, one)| all[..at].contains(one))
}
