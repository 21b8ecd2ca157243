//! The bridge between two plants on one machine, by carrier and rate, beside a bare relay, and bare datagrams of the same length.
//!
//! ```text
//! cargo bench -p tapeline --bench bridge -- [--to PAGE] [--turns N] [--seconds S] [--rates R,R] [--only CARRIER,…] [--archive JAR]
//! ```
//!
//! Every message of a simulated exchange becomes a tick of the plant above. This process reads the ring of the plant below, and takes the time from
//! the tick being written above; both plants and this process have one clock. With the feature `aeron` lines over Aeron take part, and a bare
//! publication and subscription of Aeron. A plant below also joins late, beside a subscriber of Aeron Archive if its jar is named, and a reader of one
//! stands still beside another.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program of its own")]

mod bare;
mod late;
mod lossy;
mod page;
mod plants;
#[path = "../hub/process.rs"]
#[allow(dead_code, reason = "the other bench asks what a plant said when it was ready")]
mod process;
mod relay;
mod stalled;
#[path = "../hub/turns.rs"]
#[allow(dead_code, reason = "the other benches compare pairs")]
mod turns;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::{Parser, ValueEnum};
use tapeline_measure::{Clock, Environment, Recorder};

use self::late::LateJoin;
use self::plants::Plants;
use self::stalled::Neighbour;

/// Ticks a second.
const RATES: [u64; 7] = [10_000, 100_000, 500_000, 1_000_000, 1_200_000, 2_000_000, 3_000_000];
/// Above this rate a datagram for each message would measure the kernel alone.
const MOST_BARE: u64 = 100_000;
/// The rate at which lines lose datagrams, and one of how many they lose.
const LOSSY_RATE: u64 = 100_000;
const LOST_OF: u64 = 100;
/// From the first tick that is read until latencies are recorded.
const WARM_UP: Duration = Duration::from_secs(1);

/// The bridge by carrier and rate
#[derive(Debug, Parser)]
struct Arguments {
    /// Write the page there rather than to standard output
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// How often each has its turn
    #[arg(long, default_value_t = 3)]
    turns: usize,
    /// How long each rate is held, with a second of warm-up
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// Ticks a second
    #[arg(long, value_delimiter = ',', default_values_t = RATES)]
    rates: Vec<u64>,
    /// Of these carriers alone, and nothing besides rates
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Carrier>,
    /// Aeron's jar for Java (io.aeron:aeron-all), to join late at Aeron Archive, too
    #[arg(long, value_name = "JAR")]
    archive: Option<PathBuf>,
    /// What cargo passes on
    #[arg(long, hide = true)]
    bench: bool,
}

/// What carries the ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
enum Carrier {
    /// A datagram for each message, from thread to thread.
    BareDatagrams,
    /// The same with a publication and a subscription of Aeron.
    #[cfg(feature = "aeron")]
    BareAeron,
    /// The ring of the plant above, without a bridge.
    Ring,
    /// The rings, sockets and threads of [`Self::Datagrams`], without plants.
    BareRelay,
    /// Two lines of MoldUDP64.
    Datagrams,
    /// One line of MoldUDP64 that loses one datagram of [`LOST_OF`].
    LossyLine,
    /// Two such lines.
    LossyLines,
    /// A line over TCP.
    Tcp,
    /// The same with TLS.
    Tls,
    /// The rings, line, threads and media drivers of [`Self::Aeron`], without plants.
    #[cfg(feature = "aeron")]
    BareRelayAeron,
    /// A line over Aeron, with a media driver in each plant.
    #[cfg(feature = "aeron")]
    Aeron,
}

impl Carrier {
    /// Whether it is measured at this rate.
    fn is_measured_at(self, rate: u64) -> bool {
        match self {
            Self::LossyLine | Self::LossyLines => rate == LOSSY_RATE,
            Self::BareDatagrams => rate <= MOST_BARE,
            _ => true,
        }
    }
}

/// What one turn of a carrier gave.
struct Turn {
    /// From the tick being written to it being read.
    latency: Recorder,
    /// Messages received a second.
    rate_hz: f64,
    /// Messages that did not come.
    lost: u64,
    /// Ticks that came again on request.
    recovered: u64,
}

/// By rate and carrier, the turns.
type Turns = BTreeMap<(u64, Carrier), Vec<Turn>>;

/// What is measured besides rates, turn by turn.
#[derive(Default)]
struct OtherTurns {
    /// Joining late at a plant above, as it is without further keys.
    plant: Vec<LateJoin>,
    /// At one that does not limit the rate.
    unlimited: Vec<LateJoin>,
    /// At Aeron Archive.
    archive: Vec<LateJoin>,
    /// Beside a reader that stands still.
    stalled: Vec<Neighbour>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if let Some(jar) = &arguments.archive {
        // Not after ten minutes.
        ensure!(
            jar.is_file(),
            "there is no jar at {}; peers/aeron-archive/README.md says where it is from",
            jar.display()
        );
    }
    let environment = Environment::read(&Clock::calibrate()).summary();
    let folder = tempfile::tempdir()?;
    // Run as a test: enough to see that it works.
    let is_test = !arguments.bench;
    let (count, seconds) = if is_test { (1, 2) } else { (arguments.turns, arguments.seconds) };
    let rates = if is_test { vec![10_000] } else { arguments.rates };
    let mut turns = Turns::new();
    for rate in &rates {
        let day = plants::day(folder.path(), *rate, seconds)?;
        for turn in 1..=count {
            let is_wanted = |carrier: &&Carrier| {
                carrier.is_measured_at(*rate)
                    && (arguments.only.is_empty() || arguments.only.contains(carrier))
            };
            for carrier in Carrier::value_variants().iter().filter(is_wanted) {
                eprintln!("bridge: {rate} ticks/s, turn {turn} of {count}, {carrier:?}");
                let told = match carrier {
                    Carrier::BareDatagrams => bare::datagrams(*rate, seconds),
                    #[cfg(feature = "aeron")]
                    Carrier::BareAeron => bare::aeron(*rate, seconds),
                    Carrier::BareRelay => relay::datagrams(*rate, seconds),
                    #[cfg(feature = "aeron")]
                    Carrier::BareRelayAeron => relay::aeron(*rate, seconds),
                    _ => Plants::begin(*carrier, folder.path(), &day).and_then(Plants::measure),
                };
                let told = told.with_context(|| format!("{carrier:?} at {rate} ticks/s"))?;
                turns.entry((*rate, *carrier)).or_default().push(told);
            }
        }
    }
    let mut others = OtherTurns::default();
    // Days of some seconds: not as a test.
    for turn in 1..=if is_test || !arguments.only.is_empty() { 0 } else { count } {
        eprintln!("bridge: a stalled reader, joining late, turn {turn} of {count}");
        others.stalled.push(stalled::turn(folder.path()).context("a reader that stands still")?);
        let join = |bridge| late::plant(folder.path(), bridge).context("a plant that joins late");
        others.plant.push(join("")?);
        others.unlimited.push(join("catch_up_rate = \"1GiB\"\n")?);
        if let Some(jar) = &arguments.archive {
            others.archive.push(late::archive(folder.path(), jar)?);
        }
    }
    let page = page::page(&turns, &others, count, seconds, &environment);
    match arguments.to {
        Some(to) => std::fs::write(&to, page).with_context(|| format!("cannot write {}", to.display())),
        None => {
            print!("{page}");
            Ok(())
        }
    }
}
