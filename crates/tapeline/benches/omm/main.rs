//! Tapeline's performance tools beside LSEG's, in one run: images, latency, processor time, memory, the highest rate, transport.
//!
//! ```text
//! cargo bench -p tapeline --bench omm -- [--rtsdk FOLDER] [--to PAGE] [--turns N] [--only WHAT]
//! ```
//!
//! `--only` is `images`, `latency`, `rate`, `own`, `transport` or `ni`. Provider and consumer have a core each, the last two. Without
//! LSEG's tools (built by a user from the public repository) Tapeline's are alone.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program of its own")]

mod hub;
mod makers;
#[path = "../hub/messages.rs"]
#[allow(dead_code, reason = "the other bench looks into them")]
mod messages;
mod null;
mod page;
mod running;
#[path = "../hub/spent.rs"]
#[allow(dead_code, reason = "the other bench has threads of its own")]
mod spent;
#[path = "../hub/turns.rs"]
mod turns;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use tapeline_measure::{Clock, Environment, cores};

use self::hub::Hub;
use self::makers::{Asking, Load, Maker};
use self::messages::Messages;
use self::null::Source;
use self::running::{Cost, Running, cost, folder, free_address};

/// What all tools call the service.
const SERVICE: &str = "DIRECT_FEED";
const ITEMS: usize = 100_000;
/// Updates and messages with a time, a second: as many as LSEG's tools take with their usual slices.
const STAMPS: u64 = 1_000;
/// Requests a second where images are not what is measured, and where they are: unpaced.
const PACED: u64 = 500_000;
const UNPACED: u64 = 10_000_000;
/// Seconds of steady state, and of those the window in which processor time is taken.
const STEADY_S: u64 = 5;
const WINDOW: Duration = Duration::from_secs(3);
/// Until the window begins: images are there by then.
const SETTLING: Duration = Duration::from_millis(1_500);
/// EMA's take longer.
const SETTLING_EMA: Duration = Duration::from_millis(3_500);
/// At which latency, processor time and memory are looked at, updates a second.
const RATES: [u64; 4] = [10_000, 100_000, 1_000_000, 2_000_000];
/// At which each tool meets each other, and all are in one report.
const COMPARED: u64 = 100_000;
/// That are tried one after the other, until one is not held.
const LADDER: [u64; 8] =
    [1_000_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000, 6_000_000, 7_000_000, 8_000_000];
/// How often the step in which a rate was not held any more is halved: to an eighth of a million.
const HALVINGS: u32 = 3;
/// The share of a rate that has to come for it to be held.
const HELD: f64 = 0.99;
/// More updates a second than any sends.
const FULL: u64 = 20_000_000;
/// Messages of transport alone, a second.
const MESSAGES: [u64; 5] = [100_000, 1_000_000, 4_000_000, 8_000_000, 12_000_000];
/// Seconds that a client of transport, and an NI provider, run.
const RUN_S: u64 = 6;

/// Tapeline's performance tools beside LSEG's
#[derive(Debug, Parser)]
struct Arguments {
    /// Folder with LSEG's performance tools in bin; without it Tapeline's are alone
    #[arg(long, value_name = "FOLDER")]
    rtsdk: Option<PathBuf>,
    /// Write the page there rather than to standard output
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Keep what the tools wrote in this folder, for tapeline report
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// How often each has its turn
    #[arg(long, default_value_t = 3)]
    turns: usize,
    /// Of these alone
    #[arg(long, value_enum)]
    only: Vec<Part>,
    /// What cargo passes on
    #[arg(long, hide = true)]
    bench: bool,
}

/// A part of what is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    Images,
    Latency,
    Rate,
    Own,
    Transport,
    Ni,
}

/// A provider's maker and a consumer's.
type Pair = [Maker; 2];

/// What one turn of a pair gave.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    received_per_s: f64,
    mean_us: f64,
    max_us: f64,
    /// The mean until the last image.
    startup_us: f64,
    image_s: f64,
    /// Items that had their image, of a provider that sends all it can.
    items: f64,
    /// The provider's and the consumer's.
    cost: [Cost; 2],
}

/// All that was measured: for each row a figure of each turn.
#[derive(Default)]
struct Figures {
    images: Vec<(Pair, Vec<f64>)>,
    latency: Vec<(Pair, u64, Vec<Held>)>,
    /// The highest rate that was held, and what came at the first that was not.
    rate: Vec<(Pair, Vec<[f64; 2]>)>,
    /// Beside a null end: what a provider sent, and what a consumer took.
    own: Vec<(Maker, [Vec<Held>; 2])>,
    transport: Vec<(Pair, u64, Vec<Held>)>,
    ni: Vec<(Maker, Vec<Held>)>,
}

struct Bench {
    tools: Option<PathBuf>,
    /// The provider's and the consumer's.
    cores: [Option<usize>; 2],
    base: PathBuf,
    runs: u32,
    /// What consumers wrote at the rate at which pairs are compared: whose, and where.
    written: Vec<(String, PathBuf)>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let environment = Environment::read(&Clock::calibrate()).summary();
    if let Some(folder) = &arguments.rtsdk {
        // Not after half an hour.
        anyhow::ensure!(
            folder.join("bin/ConsPerf").is_file(),
            "there is no bin/ConsPerf in {}; docs/interop.md says how LSEG's tools are built",
            folder.display()
        );
    } else {
        eprintln!(
            "omm: LSEG's rows are left out: no RTSDK=FOLDER; docs/interop.md says how its tools are built"
        );
    }
    let tools = arguments.rtsdk.map(|folder| folder.join("bin").canonicalize()).transpose()?;
    let scratch = tempfile::tempdir()?;
    let base = match &arguments.keep {
        Some(keep) => {
            std::fs::create_dir_all(keep)?;
            keep.canonicalize()?
        }
        None => scratch.path().to_owned(),
    };
    let cores = match cores()[..] {
        [.., near, far] => [Some(near), Some(far)],
        _ => [None, None],
    };
    let pairs = match tools {
        Some(_) => vec![
            [Maker::Tapeline; 2],
            [Maker::Eta; 2],
            [Maker::Ema; 2],
            [Maker::Tapeline, Maker::Eta],
            [Maker::Eta, Maker::Tapeline],
            [Maker::Tapeline, Maker::Ema],
            [Maker::Ema, Maker::Tapeline],
        ],
        None => vec![[Maker::Tapeline; 2]],
    };
    let mut bench = Bench { tools, cores, base, runs: 0, written: Vec::new() };
    let mut figures = Figures::default();
    let wanted = |part| arguments.only.is_empty() || arguments.only.contains(&part);
    for turn in 0..arguments.turns {
        eprintln!("omm: turn {} of {}", turn + 1, arguments.turns);
        for &pair in &pairs {
            if wanted(Part::Images) {
                let held = tried(bench.pair("images", pair, 0, UNPACED, turn));
                row(&mut figures.images, |row| row.0 == pair, || (pair, Vec::new())).1.push(held.image_s);
            }
            for rate in RATES {
                // EMA C++ is full at more than a million.
                if !wanted(Part::Latency) || (rate != COMPARED && pair[0] != pair[1]) {
                    continue;
                }
                let held = tried(bench.pair("latency", pair, rate, PACED, turn));
                row(&mut figures.latency, |row| (row.0, row.1) == (pair, rate), || (pair, rate, Vec::new()))
                    .2
                    .push(held);
            }
            if wanted(Part::Rate) && !(pair.contains(&Maker::Ema) && pair[0] != pair[1]) {
                let most = bench.ladder(pair, turn);
                row(&mut figures.rate, |row| row.0 == pair, || (pair, Vec::new())).1.push(most);
            }
            if wanted(Part::Own) && pair[0] == pair[1] {
                let (sent, taken) = (tried(bench.sent(pair[0], turn)), tried(bench.taken(pair[0], turn)));
                let new = || (pair[0], [Vec::new(), Vec::new()]);
                let [sends, takes] = &mut row(&mut figures.own, |row| row.0 == pair[0], new).1;
                sends.push(sent);
                takes.push(taken);
            }
            let has_transport = pair.iter().all(|maker| *maker != Maker::Ema);
            for rate in MESSAGES.into_iter().filter(|_| wanted(Part::Transport) && has_transport) {
                let held = tried(bench.transport(pair, rate, turn));
                row(
                    &mut figures.transport,
                    |row| (row.0, row.1) == (pair, rate),
                    || (pair, rate, Vec::new()),
                )
                .2
                .push(held);
            }
            if wanted(Part::Ni) && pair[0] == pair[1] {
                let held = tried(bench.ni(pair[0], turn));
                row(&mut figures.ni, |row| row.0 == pair[0], || (pair[0], Vec::new())).1.push(held);
            }
        }
    }
    let page = page::page(&figures, arguments.turns, &environment);
    match arguments.to {
        Some(file) => std::fs::write(file, page)?,
        None => print!("{page}"),
    }
    bench.report()
}

/// What came, or, of a turn that failed, nothing: the others' figures stand.
fn tried(held: anyhow::Result<Held>) -> Held {
    held.unwrap_or_else(|why| {
        eprintln!("omm: this turn is left out: {why:#}");
        MISSING
    })
}

/// No figures.
const MISSING: Held = {
    let cost = Cost { cores: f64::NAN, megabytes: f64::NAN };
    let missing = f64::NAN;
    Held {
        received_per_s: missing,
        mean_us: missing,
        max_us: missing,
        startup_us: missing,
        image_s: missing,
        items: missing,
        cost: [cost; 2],
    }
};

/// The row that is so, which is made if there is none.
fn row<T>(rows: &mut Vec<T>, is: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> &mut T {
    let at = rows.iter().position(is).unwrap_or_else(|| {
        rows.push(new());
        rows.len() - 1
    });
    &mut rows[at]
}

impl Bench {
    /// Folders for the two ends of a run.
    fn folders(&mut self, what: &str, turn: usize, port: u16) -> anyhow::Result<[PathBuf; 2]> {
        self.runs += 1;
        let run = self.base.join(format!("{:03}-{what}-{}", self.runs, turn + 1).to_lowercase());
        let end = |name| folder(&run.join(name), self.tools.as_deref(), port);
        Ok([end("sender")?, end("receiver")?])
    }

    fn tools(&self) -> Option<&Path> {
        self.tools.as_deref()
    }

    /// A provider and a consumer, at so many updates a second.
    fn pair(
        &mut self,
        what: &str,
        pair: Pair,
        rate: u64,
        requests: u64,
        turn: usize,
    ) -> anyhow::Result<Held> {
        let [provider, consumer] = pair;
        eprintln!("omm: {what}: {} to {}, {rate}/s", provider.name(), consumer.name());
        let server = free_address()?;
        let name = format!("{what}-{rate}-{provider:?}-{consumer:?}");
        let [near, far] = self.folders(&name, turn, server.port())?;
        let load = Load { rate, stamps: STAMPS.min(rate) };
        let asking = Asking { items: ITEMS, requests, steady_s: STEADY_S };
        let of_provider =
            Running::start(self.cores[0], provider.provider(self.tools(), server, load), &near)?;
        let of_provider = of_provider.listens(server)?;
        let command = consumer.consumer(self.tools(), server, asking);
        let mut of_consumer = Running::start(self.cores[1], command, &far)?;
        std::thread::sleep(if consumer == Maker::Ema { SETTLING_EMA } else { SETTLING });
        let cost = cost([&of_provider, &of_consumer], WINDOW)?;
        let said = of_consumer.end()?;
        if what == "latency" && rate == COMPARED {
            let folder = if consumer == Maker::Tapeline { far.join("consumer") } else { far };
            self.written.push((format!("{} to {}", provider.name(), consumer.name()), folder));
        }
        let steady = |name| said.figure("Steady State Statistics", name).unwrap_or(f64::NAN);
        Ok(Held {
            received_per_s: steady("Avg update rate"),
            mean_us: steady("Latency avg (usec)"),
            max_us: steady("Latency max (usec)"),
            startup_us: said.figure("Startup State Statistics", "Latency avg (usec)").unwrap_or(f64::NAN),
            image_s: said.figure("Test Statistics", "Image retrieval time (sec)").unwrap_or(f64::NAN),
            cost,
            ..Held::default()
        })
    }

    /// One page of what all consumers wrote, beside it what they ran in.
    fn report(&self) -> anyhow::Result<()> {
        if self.written.is_empty() {
            return Ok(());
        }
        let page = self.base.join("report.html");
        let runs = self.written.iter().map(|(name, folder)| format!("{name}={}", folder.display()));
        let mut command = Command::new(env!("CARGO_BIN_EXE_tapeline"));
        let title = format!("{COMPARED} updates a second, {ITEMS} items: Tapeline's tools and LSEG's");
        command.args(["report", "--title", &title, "--to"]).arg(page).args(runs);
        anyhow::ensure!(command.status()?.success(), "there is no report");
        Ok(())
    }

    /// The highest rate that is held, and what came at the first that is not.
    fn ladder(&mut self, pair: Pair, turn: usize) -> [f64; 2] {
        let (mut most, mut missed) = ([0.0, 0.0], None);
        let mut try_one = |rate: u64| {
            let came = tried(self.pair("rate", pair, rate, PACED, turn)).received_per_s;
            // Without its images there is no steady state, and no rate in it.
            (came >= rate as f64 * HELD, came)
        };
        for rate in LADDER {
            let (is_held, came) = try_one(rate);
            if !is_held {
                (most[1], missed) = (came, Some(rate));
                break;
            }
            most[0] = rate as f64;
        }
        for _ in 0..if missed.is_some() { HALVINGS } else { 0 } {
            let rate = u64::midpoint(most[0] as u64, missed.unwrap_or(0));
            match try_one(rate) {
                (true, _) => most[0] = rate as f64,
                (false, came) => (most[1], missed) = (came, Some(rate)),
            }
        }
        most
    }

    /// A provider that sends all it can to a null sink.
    fn sent(&mut self, maker: Maker, turn: usize) -> anyhow::Result<Held> {
        eprintln!("omm: {} beside a null sink", maker.name());
        let server = free_address()?;
        let [near, _] = self.folders(&format!("sent-{maker:?}"), turn, server.port())?;
        let load = Load { rate: FULL, stamps: STAMPS };
        let running = Running::start(self.cores[0], maker.provider(self.tools(), server, load), &near)?;
        let running = running.listens(server)?;
        let core = self.cores[1];
        let sink = null::Sink::open(server, ITEMS, core)?;
        let items = sink.items() as f64;
        let sunk = std::thread::spawn(move || sink.count(WINDOW * 2));
        let [spent] = cost([&running], WINDOW)?;
        let received_per_s = sunk.join().map_err(|_| anyhow::anyhow!("the sink has panicked"))??;
        Ok(Held { received_per_s, items, cost: [spent, Cost::default()], ..Held::default() })
    }

    /// A consumer that takes all it can of a null source.
    fn taken(&mut self, maker: Maker, turn: usize) -> anyhow::Result<Held> {
        eprintln!("omm: {} beside a null source", maker.name());
        let source = Source::begin(&Messages::read(self.tools())?, self.cores[0])?;
        let [_, far] = self.folders(&format!("taken-{maker:?}"), turn, source.address.port())?;
        let asking = Asking { items: ITEMS, requests: PACED, steady_s: STEADY_S };
        let command = maker.consumer(self.tools(), source.address, asking);
        let mut running = Running::start(self.cores[1], command, &far)?;
        std::thread::sleep(if maker == Maker::Ema { SETTLING_EMA } else { SETTLING });
        let [spent] = cost([&running], WINDOW)?;
        let said = running.end()?;
        let received_per_s = said.figure("Steady State Statistics", "Avg update rate")?;
        Ok(Held { received_per_s, cost: [Cost::default(), spent], ..Held::default() })
    }

    fn transport(&mut self, pair: Pair, rate: u64, turn: usize) -> anyhow::Result<Held> {
        let [sender, receiver] = pair;
        eprintln!("omm: transport: {} to {}, {rate}/s", sender.name(), receiver.name());
        let server = free_address()?;
        let name = format!("transport-{rate}-{sender:?}-{receiver:?}");
        let [near, far] = self.folders(&name, turn, server.port())?;
        let of_server =
            Running::start(self.cores[0], sender.transport_server(self.tools(), server, rate), &near)?;
        let of_server = of_server.listens(server)?;
        let command = receiver.transport_client(self.tools(), server, RUN_S);
        let mut of_client = Running::start(self.cores[1], command, &far)?;
        std::thread::sleep(SETTLING);
        let cost = cost([&of_server, &of_client], WINDOW)?;
        let said = of_client.end()?;
        let figure = |name| said.figure("\nStatistics", name).unwrap_or(f64::NAN);
        Ok(Held {
            received_per_s: figure("Avg. Msg Recv Rate"),
            mean_us: figure("Latency avg (usec)"),
            max_us: figure("Latency max (usec)"),
            cost,
            ..Held::default()
        })
    }

    /// A non-interactive provider of Tapeline's hub.
    fn ni(&mut self, maker: Maker, turn: usize) -> anyhow::Result<Held> {
        eprintln!("omm: NI provider: {}", maker.name());
        let port = free_address()?;
        let [near, far] = self.folders(&format!("ni-{maker:?}"), turn, port.port())?;
        let hub = Hub::begin(&far, port, self.cores[1])?;
        let load = Load { rate: 100_000, stamps: STAMPS };
        let command = maker.ni_provider(self.tools(), port, ITEMS, load, RUN_S + 60);
        let running = Running::start(self.cores[0], command, &near)?;
        std::thread::sleep(SETTLING_EMA);
        let [cost] = cost([&running], WINDOW)?;
        drop((running, hub));
        Ok(Held { cost: [cost, Cost::default()], ..Held::default() })
    }
}
