//! What the hub does in a second, beside a bare relay and beside LSEG's own pairs: images, updates, response time, many
//! clients, memory.
//!
//! ```text
//! cargo bench -p tapeline --bench hub -- [--rtsdk FOLDER] [--to PAGE] [--turns N] [--only WHAT] [--seconds S]
//! ```
//!
//! `--only` is `memory`, `images`, `latency`, `neighbour`, `rate`, `alone`, `clients` or `feed`.
//!
//! But for `feed`, where plant and hub are one process of the binary and an exchange's datagrams go in, the hub is the binary's own
//! (`tapeline plant serve`) in a process of its own, on the last core; a publisher of synthetic ticks and the clients, each a thread
//! of this process, are on the core before it: the plant itself would take more than half a core at the highest of these rates.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program of its own")]

mod clients;
mod day;
mod feed;
mod messages;
mod page;
mod peers;
mod process;
mod publisher;
mod relay;
mod served;
mod spent;
mod stages;
mod tap;
mod turns;

use std::ops::Range;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::{Parser, ValueEnum};
use tapeline_measure::{Clock, Environment, Evidence, Usage, Verdict, cores, judge, pin};
use tapeline_ring::Name;

use self::clients::Clients;
use self::feed::Carried;
use self::messages::Messages;
use self::peers::Tools;
use self::publisher::{Market, Published, item_name};
use self::served::{Served, Slow};
use self::stages::Alone;

/// What the tools call the service.
const SERVICE: &str = "DIRECT_FEED";
/// Items of a large client.
const ITEMS: usize = 100_000;
/// At which response time is looked at, and what goes out to many clients together, updates a second.
const USUAL_RATE: u64 = 100_000;
/// Many clients, each with items of its own.
const CLIENTS: usize = 1_000;
const ITEMS_EACH: usize = 100;
/// Updates a second that are tried one after the other.
const RATES: [u64; 4] = [1_000_000, 2_000_000, 2_500_000, 3_000_000];

/// How long clients wait for what comes next, and how often in vain until nothing more will.
const TURN: Duration = Duration::from_millis(5);
const LAST_TURNS: u32 = 400;

/// What the hub does in a second
#[derive(Debug, Parser)]
struct Arguments {
    /// Folder with LSEG's performance tools; without it there is nothing beside
    #[arg(long, value_name = "FOLDER")]
    rtsdk: Option<PathBuf>,
    /// Write the page there rather than to standard output
    #[arg(long)]
    to: Option<PathBuf>,
    /// How often each has its turn
    #[arg(long, default_value_t = 3)]
    turns: usize,
    /// Of these alone
    #[arg(long, value_enum)]
    only: Vec<Part>,
    /// Rates that are tried, updates a second
    #[arg(long, value_delimiter = ',')]
    rates: Vec<u64>,
    /// How long each rate is held
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// What cargo passes on
    #[arg(long, hide = true)]
    bench: bool,
}

/// A part of what is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    Memory,
    Images,
    Latency,
    Neighbour,
    Rate,
    Alone,
    Clients,
    Feed,
}

/// All that was measured: for each turn a figure, in the units of its name.
#[derive(Default)]
struct Figures {
    images_hub_s: Vec<f64>,
    images_hub_eta_s: Vec<f64>,
    images_eta_s: Vec<f64>,
    rates: Vec<Rate>,
    latency_relay_us: Vec<f64>,
    latency_hub_us: Vec<f64>,
    latency_hub_mean_us: Vec<f64>,
    latency_ema_mean_us: Vec<f64>,
    /// Of each turn: without a stalled neighbour, and with one.
    witness_median_us: Vec<[f64; 2]>,
    witness_p99_us: Vec<[f64; 2]>,
    alone: Vec<Alone>,
    /// A feed, the whole way: the simulated exchange's, and quotes alone.
    simulated: Vec<Carried>,
    quotes: Vec<Carried>,
    clients: Option<Rate>,
    /// Bytes: with the images alone, and with a client that has all of them open.
    memory: Option<[Usage; 2]>,
    /// ETA C's provider, whose consumer has all items.
    eta_provider: Option<Usage>,
}

/// A rate that was held, or was not.
struct Rate {
    asked: u64,
    received_per_s: f64,
    verdict: Verdict,
    why: String,
    median_us: f64,
    p99_us: f64,
    hub_cores: f64,
    /// Processor time an update, ns: who publishes, the hub, the clients.
    cpu_ns: [f64; 3],
    cut: u64,
}

/// What came of publishing while clients read.
struct Ran {
    clients: Clients,
    published: Published,
    /// Processor time, ns: who published, and the clients.
    used_ns: [u64; 2],
}

/// A bench at work.
struct Bench {
    messages: Messages,
    tools: Option<Tools>,
    peers: Option<PathBuf>,
    near: Option<usize>,
    far: Option<usize>,
    seconds: Duration,
    rings: u32,
    figures: Figures,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let cores = cores();
    let (near, far) = match cores[..] {
        [.., near, far] => (Some(near), Some(far)),
        _ => (None, None),
    };
    let clock = Clock::calibrate();
    let environment = Environment::read(&clock).summary();
    let peers = arguments.rtsdk.filter(|folder| folder.join("bin/ConsPerf").is_file());
    let peers = peers.map(|folder| folder.join("bin").canonicalize()).transpose()?;
    if peers.is_none() {
        eprintln!(
            "hub: LSEG's tools are left out: no RTSDK=FOLDER with bin/ConsPerf; docs/interop.md says how they are built"
        );
    }
    if let Some(near) = near {
        pin(near)?;
    }
    let of_tools = far.zip(near).map(|(far, near)| [far, near]);
    let mut bench = Bench {
        messages: Messages::read(peers.as_deref())?,
        tools: peers.as_deref().map(|folder| Tools::new(folder, of_tools)).transpose()?,
        peers,
        near,
        far,
        seconds: Duration::from_secs_f64(arguments.seconds),
        rings: 0,
        figures: Figures::default(),
    };
    let wanted = |part| arguments.only.is_empty() || arguments.only.contains(&part);
    if wanted(Part::Memory) {
        bench.memory()?;
    }
    for _ in 0..arguments.turns {
        if wanted(Part::Images) {
            bench.images()?;
        }
        if wanted(Part::Latency) {
            bench.latency()?;
        }
        if wanted(Part::Neighbour) {
            bench.neighbour()?;
        }
        if wanted(Part::Alone) {
            bench.alone()?;
        }
    }
    if wanted(Part::Rate) {
        let rates = if arguments.rates.is_empty() { &RATES[..] } else { &arguments.rates };
        for rate in rates {
            let held = bench.rate(*rate, 1, ITEMS)?;
            bench.figures.rates.push(held);
        }
    }
    if wanted(Part::Clients) {
        bench.figures.clients = Some(bench.rate(USUAL_RATE, CLIENTS, ITEMS_EACH)?);
    }
    if wanted(Part::Feed) {
        bench.feed()?;
    }
    let page = page::page(&bench.figures, arguments.turns, &environment);
    match arguments.to {
        Some(file) => std::fs::write(file, page)?,
        None => print!("{page}"),
    }
    Ok(())
}

impl Bench {
    /// A ring with a hub on it, and the images of so many items in both.
    fn begin(&mut self, items: usize, slow: Slow) -> anyhow::Result<(Market, Served)> {
        let ring = self.ring()?;
        let mut market = Market::open(&ring)?;
        let served = Served::begin(&ring, self.far, self.peers.as_deref(), slow)?;
        market.images(items, &self.messages)?;
        Ok((market, served))
    }

    /// A program that may run on both cores: of itself it would be on the core of this process alone.
    fn on_both(&self, program: &str) -> Command {
        match (self.near, self.far) {
            (Some(near), Some(far)) => {
                let mut command = Command::new("taskset");
                command.args(["-c", &format!("{near},{far}"), program]);
                command
            }
            _ => Command::new(program),
        }
    }

    fn ring(&mut self) -> anyhow::Result<Name> {
        self.rings += 1;
        Ok(Name::new(&format!("bench-hub-{}-{}", std::process::id(), self.rings))?)
    }

    /// All items are asked for by one client, and answered from the cache.
    fn images(&mut self) -> anyhow::Result<()> {
        say("images");
        let (market, served) = self.begin(ITEMS, Slow::Cut)?;
        let mut clients = Clients::new(0)?;
        clients.connect(served.address, item_names(0..ITEMS), false)?;
        clients.until("the last image", |clients| clients.tally.images >= ITEMS as u64)?;
        self.figures.images_hub_s.push(clients.tally.images_took().as_secs_f64());
        drop(clients);
        if let Some(tools) = &self.tools {
            let took =
                |summary: peers::Summary| summary.figure("Test Statistics", "Image retrieval time (sec)");
            self.figures.images_hub_eta_s.push(took(tools.eta_consumer(served.address, ITEMS)?)?);
            let (summary, provider) = tools.eta_pair(ITEMS)?;
            self.figures.images_eta_s.push(took(summary)?);
            self.figures.eta_provider = Some(provider);
        }
        market.end()?;
        served.end()?;
        Ok(())
    }

    /// From when an update is due to when a client has it: relay, hub, EMA's pair.
    fn latency(&mut self) -> anyhow::Result<()> {
        say("response time");
        let ring = self.ring()?;
        let mut market = Market::open(&ring)?;
        // Before the relay is there: it has nobody to give images to.
        market.images(ITEMS, &self.messages)?;
        let (address, relay) = relay::begin(&ring, self.far)?;
        let mut clients = Clients::new(USUAL_RATE)?;
        clients.listen_to(address)?;
        let Ran { clients, .. } = self.run(&mut market, clients, USUAL_RATE)?;
        self.figures.latency_relay_us.push(at_us(&clients, 0.5));
        market.end()?;
        relay.join().map_err(|_| anyhow::anyhow!("the relay has panicked"))??;

        let (mut market, served) = self.begin(ITEMS, Slow::Cut)?;
        let mut clients = Clients::new(USUAL_RATE)?;
        clients.connect(served.address, item_names(0..ITEMS), true)?;
        clients.until("the last image", |clients| clients.tally.images >= ITEMS as u64)?;
        let Ran { clients, .. } = self.run(&mut market, clients, USUAL_RATE)?;
        self.figures.latency_hub_us.push(at_us(&clients, 0.5));
        self.figures.latency_hub_mean_us.push(clients.tally.latency.percentiles().mean_ns as f64 / 1e3);
        market.end()?;
        served.end()?;

        if let Some(tools) = &self.tools {
            let summary = tools.ema_pair(ITEMS, USUAL_RATE)?;
            self.figures
                .latency_ema_mean_us
                .push(summary.figure("Steady State Statistics", "Latency avg (usec)")?);
        }
        Ok(())
    }

    /// So many clients with so many items of their own each, and so many updates a second of all together.
    fn rate(&mut self, rate: u64, count: usize, items: usize) -> anyhow::Result<Rate> {
        say(&format!("{rate} updates a second to {count} client(s)"));
        let (mut market, served) = self.begin(count * items, Slow::Cut)?;
        let mut clients = Clients::new(rate)?;
        for client in 0..count {
            let names = item_names(client * items..(client + 1) * items);
            clients.connect(served.address, names, true)?;
        }
        clients.until("the last image", |clients| clients.tally.images >= (count * items) as u64)?;
        let before = served.usage()?;
        let Ran { clients, published, used_ns } = self.run(&mut market, clients, rate)?;
        let spent = served.usage()?.since(&before);
        market.end()?;
        let report = served.end()?;
        // Nothing is left out under this policy, so what has not come is a client's that was cut.
        let (verdict, why) = judge(&Evidence {
            asked_rate_hz: Some(rate as f64),
            sent_rate_hz: published.updates as f64 / published.seconds,
            sent: published.updates,
            received: clients.tally.updates,
            lost: published.updates.saturating_sub(clients.tally.updates),
            sender: published.lateness,
            system: clients.tally.trend(),
            held_back_share: published.held_back,
            ..Evidence::default()
        });
        Ok(Rate {
            asked: rate,
            received_per_s: clients.tally.updates as f64 / published.seconds,
            verdict,
            why,
            median_us: at_us(&clients, 0.5),
            p99_us: at_us(&clients, 0.99),
            hub_cores: spent.cores,
            cpu_ns: [used_ns[0], spent.user_ns + spent.system_ns, used_ns[1]]
                .map(|ns| ns as f64 / clients.tally.updates.max(1) as f64),
            cut: report["cut"].as_u64().unwrap_or(u64::MAX),
        })
    }

    /// What the hub's process holds.
    fn memory(&mut self) -> anyhow::Result<()> {
        say("memory");
        let (market, served) = self.begin(ITEMS, Slow::Cut)?;
        let mut clients = Clients::new(0)?;
        // Its images are there once it answers for the last item.
        clients.connect(served.address, item_names(ITEMS - 1..ITEMS), false)?;
        clients.until("the last image", |clients| clients.tally.images >= 1)?;
        let images = served.usage()?;
        let mut clients = Clients::new(0)?;
        clients.connect(served.address, item_names(0..ITEMS), true)?;
        clients.until("the last image", |clients| clients.tally.images >= ITEMS as u64)?;
        self.figures.memory = Some([images, served.usage()?]);
        drop(clients);
        market.end()?;
        served.end()?;
        Ok(())
    }

    /// Publishes at a rate while the clients read.
    fn run(&self, market: &mut Market, clients: Clients, rate: u64) -> anyhow::Result<Ran> {
        self.beside(clients, |_| market.updates(rate, self.seconds, &self.messages))
    }

    /// Publishes while the clients read on a thread of their own, until they have all of it. `publish` is told how many updates they
    /// have.
    fn beside(
        &self,
        mut clients: Clients,
        publish: impl FnOnce(&AtomicU64) -> anyhow::Result<Published>,
    ) -> anyhow::Result<Ran> {
        clients.tally.begin();
        let (sent, come) = (AtomicU64::new(u64::MAX), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let reading = scope.spawn(|| {
                if let Some(near) = self.near {
                    pin(near)?;
                }
                let before = spent::of_this_thread();
                let mut turns_left = LAST_TURNS;
                while clients.tally.updates < sent.load(Ordering::Relaxed) && turns_left > 0 {
                    let before = clients.tally.updates;
                    clients.turn(TURN)?;
                    come.store(clients.tally.updates, Ordering::Relaxed);
                    let is_over = sent.load(Ordering::Relaxed) < u64::MAX && clients.tally.updates == before;
                    turns_left = if is_over { turns_left - 1 } else { LAST_TURNS };
                }
                anyhow::Ok((clients, since(before)))
            });
            let before = spent::of_this_thread();
            let published = publish(&come);
            let used_ns = since(before);
            let count = published.as_ref().map_or(0, |published| published.updates);
            sent.store(count, Ordering::Relaxed);
            let read = reading.join().map_err(|_| anyhow::anyhow!("the clients have panicked"))?;
            let (clients, read_ns) = read?;
            Ok(Ran { clients, published: published?, used_ns: [used_ns, read_ns] })
        })
    }
}

/// Processor time of this thread since then, ns.
fn since(before: Option<u64>) -> u64 {
    spent::of_this_thread().zip(before).map_or(0, |(after, before)| after - before)
}

/// Response time at a percentile.
fn at_us(clients: &Clients, percentile: f64) -> f64 {
    clients.tally.latency.value_at(percentile).unwrap_or(0) as f64 / 1e3
}

fn item_names(items: Range<usize>) -> Vec<String> {
    items.map(item_name).collect()
}

fn say(what: &str) {
    eprintln!("hub: {what}");
}
