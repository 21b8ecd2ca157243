//! `tapeline tick bench`: a tickerplant between a publisher and a subscriber, at one rate after the other, beside a bare relay.
//!
//! | file | owns |
//! |---|---|
//! | `mod.rs` | the command: what runs one after the other |
//! | `round.rs` | one rate: starting the parts, judging what they say, the run folder |
//! | `feed.rs`, `sink.rs`, `relay.rs` | the parts, each a process: publisher, subscriber, a relay that does no work |
//! | `place.rs` | where a tickerplant is, and a connection to it |

mod feed;
mod place;
mod relay;
mod round;
mod sink;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use tapeline_measure::{Nanos, Rank, figures};

use self::place::{Link, Place};
use self::round::{Bench, Round, Through};
use crate::arguments::{self, Cores};
use crate::failure::Hinted;
use crate::output::{self, Format};
use crate::run_folder::RunFolder;
use crate::stop::Stop;

/// The table of the suite.
const TABLE: &str = "trade";

/// Measure a tickerplant: latency by rate from when updates were due, beside a bare relay.
#[derive(Debug, Args)]
#[command(
    after_help = "Publisher, tickerplant and subscriber are processes of their own. Each update carries the time at which it was due, so that a late publisher \
    counts; the warm-up does not. The relay passes the same bytes over the same sockets and looks at none of them: no tickerplant is faster. The null \
    sink tells what the publisher could send at most.\n\n\
    THROUGHPUT and DURATION (seconds) in the environment stand for --rates and --duration. `tapeline report` draws the run folders.\n\n\
    Examples:\n  \
        tapeline tick bench --rates 10k,60k --duration 10s\n  \
        tapeline tick bench --target localhost:5010    # q tick.q with trade:([]time:`timespan$();sym:`symbol$();price:`float$();size:`long$())"
)]
pub(crate) struct BenchArgs {
    /// Updates a second, one rate after the other
    #[arg(long, value_name = "RATES", value_delimiter = ',', value_parser = arguments::rate)]
    rates: Vec<u64>,
    /// How long each rate is measured
    #[arg(long, value_name = "TIME", value_parser = arguments::some_duration)]
    duration: Option<Duration>,
    /// How long each rate runs before it is measured
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = arguments::duration)]
    warm_up: Duration,
    /// Rows in each update
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    rows: u64,
    /// What is kept of what is published: nothing, or the kdb+ log, written before publication
    #[arg(long, value_enum, default_value_t, conflicts_with = "target")]
    journal: Journal,
    /// What connects the processes
    #[arg(long, value_enum, default_value_t, conflicts_with = "target")]
    socket: Socket,
    /// How all of them wait
    #[arg(long, value_enum, default_value_t)]
    waiting: Waits,
    /// Cores for publisher, tickerplant and subscriber, in that order and over again
    #[arg(long, value_name = "CORES", value_parser = arguments::cores)]
    cpus: Option<Cores>,
    /// Measure this tickerplant, which runs already, in place of our own: HOST:PORT or a socket's path. What is published is in its log, too;
    /// TICK_LOGIN=USER:PASSWORD in the environment says who publishes
    #[arg(long, value_name = "PLACE")]
    target: Option<Place>,
    /// A new folder for the run folders of all rates
    #[arg(long, value_name = "FOLDER")]
    run_folder: Option<PathBuf>,
    /// How to print the table
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Journal {
    /// Nothing
    #[default]
    None,
    /// The kdb+ log, in the page cache before anything is published
    Written,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Socket {
    /// Unix-domain sockets
    #[default]
    Unix,
    /// TCP over loopback
    Tcp,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Waits {
    /// Sleep until something comes
    #[default]
    Block,
    /// Take a core each
    Spin,
}

/// The parts of a bench, which it starts itself.
#[derive(Debug, Subcommand)]
pub(crate) enum Part {
    /// Publish
    Feed(feed::Feed),
    /// Subscribe
    Sink(sink::Sink),
    /// Pass on
    Relay(relay::Relay),
}

impl Part {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Feed(feed) => feed.run(),
            Self::Sink(sink) => sink.run(),
            Self::Relay(relay) => relay.run(),
        }
    }
}

/// What publisher and subscriber are told alike.
#[derive(Debug, Args)]
struct PartArgs {
    #[arg(long)]
    target: Place,
    /// When the first update is due, ns since 1970
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
    fn link(&self) -> anyhow::Result<Link> {
        pin(self.cpu)?;
        Link::open(&self.target, MOST_MESSAGE, self.spins)
    }

    fn measured_from(&self) -> Nanos {
        Nanos(self.start) + self.warm_up_ns
    }

    fn end(&self) -> Nanos {
        self.measured_from() + self.duration_ns
    }
}

/// The longest message that the subscriber takes: a foreign tickerplant may publish by the timer.
const MOST_MESSAGE: usize = 256 << 20;

/// Binds this thread to a core, if one is named.
pub(super) fn pin(core: Option<usize>) -> anyhow::Result<()> {
    if let Some(core) = core {
        tapeline_measure::pin(core).with_context(|| format!("cannot run on core {core}"))?;
    }
    Ok(())
}

/// What the suite of kdb-X takes, and more.
const USUAL_RATES: [u64; 9] = [10_000, 20_000, 40_000, 60_000, 80_000, 100_000, 200_000, 500_000, 1_000_000];
const USUAL_DURATION: Duration = Duration::from_secs(60);

impl BenchArgs {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals()?;
        let from_environment = |name: &str| std::env::var(name).ok();
        let wrong =
            |name: &'static str| move |what: String| anyhow::anyhow!("{name} in the environment: {what}");
        let rates = match (&self.rates[..], from_environment("THROUGHPUT")) {
            ([], None) => USUAL_RATES.to_vec(),
            ([], Some(rates)) => {
                let rates: Result<_, _> = rates.split(',').map(arguments::rate).collect();
                rates.map_err(wrong("THROUGHPUT"))?
            }
            (rates, _) => rates.to_vec(),
        };
        let duration = match (self.duration, from_environment("DURATION")) {
            (Some(duration), _) => duration,
            (None, None) => USUAL_DURATION,
            // As the suite has it, seconds.
            (None, Some(text)) if text.parse::<u64>().is_ok() => {
                arguments::some_duration(&format!("{text}s")).map_err(wrong("DURATION"))?
            }
            (None, Some(text)) => arguments::some_duration(&text).map_err(wrong("DURATION"))?,
        };
        if rates.contains(&0) || rates.iter().enumerate().any(|(at, rate)| rates[..at].contains(rate)) {
            return Err(Hinted::new("a rate is 0, or there twice", "such as --rates 10k,60k,200k").into());
        }
        let folder = RunFolder::create(self.run_folder.as_deref(), "tick")?;
        let bench = Bench {
            duration,
            warm_up: self.warm_up,
            rows: self.rows,
            is_logged: self.journal == Journal::Written,
            // The relay stands beside it, on sockets of the same kind.
            is_local: self.target.as_ref().map_or(self.socket == Socket::Unix, Place::is_local),
            spins: self.waiting == Waits::Spin,
            cpus: self.cpus.as_ref().map(|cores| cores.0.clone()).unwrap_or_default(),
            folder: folder.path().to_owned(),
            stop,
        };
        let limit_hz = bench.limit()?;
        let through = match &self.target {
            Some(place) => Through::Target(place.clone()),
            None => Through::Tickerplant,
        };
        let mut rounds = Vec::new();
        for rate in rates {
            for through in [&Through::Relay, &through] {
                anstream::eprintln!("{}/s through {}", figures::thousands(rate), through.name());
                rounds.push(bench.round(through, rate)?);
            }
        }
        match self.format {
            Format::Json => {
                output::print_json(&serde_json::json!({
                    "generator_limit_hz": limit_hz, "rounds": rounds, "folder": folder.path()
                }))?;
            }
            Format::Table => {
                output::print(&table(&rounds).to_string())?;
                let limit = output::rate(limit_hz, "updates");
                output::print(&format!("\ngenerator    {limit} at most, into a null sink"))?;
                output::print(&format!("run folders  {}", folder.path().display()))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Rates, latencies from when updates were due, verdicts.
fn table(rounds: &[Round]) -> output::Table {
    let mut table =
        output::table(["updates/s", "through", "p50", "p90", "p99", "p99.9", "p99.99", "verdict"]);
    for round in rounds {
        let at = |rank| match &round.latency {
            Some(latency) => latency.at(rank).map_or_else(|| "–".to_owned(), figures::duration),
            None => "–".to_owned(),
        };
        table.add_row([
            figures::thousands(round.rate),
            round.through.clone(),
            at(Rank::MEDIAN),
            at(Rank::Hundredths(90_00)),
            at(Rank::P99),
            at(Rank::Hundredths(99_90)),
            at(Rank::Hundredths(99_99)),
            round.verdict.clone(),
        ]);
    }
    table
}
