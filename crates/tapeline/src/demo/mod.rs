//! `tapeline demo`: runs the whole path on this machine, and measures it.
//!
//! A process tree: the simulated exchange (or the replay of a capture) sends multicast on loopback, the plant
//! receives it and publishes a ring, two subscribers read the ring, and two clients of its hub have a few busy
//! items open, over TCP and over a WebSocket. The plant writes a journal, which is replayed at the end. Each
//! process is this same program, started as a user would start it.

mod clients;
mod journal;
mod outcome;
mod stage;

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use serde_json::json;
use tapeline_console::output::Progress;
use tapeline_console::part::Part;
use tapeline_console::{FilePath, Format, Stop, arguments, output, paths};
use tapeline_measure::{Clock, Jitter, Nanos, Spent, Trend, Verdict, cores};
use tapeline_node::report::{PlantReport, Ready};
use tapeline_perf::path::{Joined, PathReport, RelayReport};
use tapeline_perf::run_folder::{Run, RunFolder};

use self::clients::{Client, Clients};
use self::journal::{DemoJournal, Expected, Kept, Replayed};
use self::stage::{Hub, Stage};
use crate::plant::relay::Relaying;

/// Run the whole data path on this machine, and print a latency table.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tapeline demo                              a rate that this machine sustains, for 10 seconds\n  \
    tapeline demo --rate 200k --duration 60s   your own rate and duration\n  \
    tapeline demo --page --duration 10m        with a live page in the browser\n  \
    tapeline demo --journal kept               the plant's journal stays in the run folder\n  \
    tapeline demo --capture day.pcap.gz        a real capture instead of the simulated exchange")]
pub(crate) struct Demo {
    /// Messages a second [default: half of the highest rate that passes a short trial, or a quarter on a noisy machine]
    #[arg(long, value_name = "RATE", value_parser = arguments::rate, conflicts_with = "capture")]
    rate: Option<u64>,
    /// Duration of the run
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = arguments::some_duration, conflicts_with = "capture")]
    duration: Duration,
    /// Replay this capture (pcap, pcapng, length-prefixed ITCH, gzip of any) instead of simulating an exchange
    #[arg(long, value_name = "FILE")]
    capture: Option<FilePath>,
    /// Replay speed of the capture: original, max, or a factor such as 10x
    #[arg(long, default_value = "max", requires = "capture")]
    speed: String,
    /// Trading day of the capture, in New York
    #[arg(long, value_name = "YYYY-MM-DD", requires = "capture")]
    date: Option<String>,
    /// Number of subscribers
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=16))]
    subscribers: u16,
    /// Lines that carry the feed: 1 for A alone, 2 for A and B
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=2))]
    lines: u8,
    /// Number of symbols of the simulated exchange
    #[arg(long, value_name = "COUNT", default_value_t = 500)]
    symbols: u16,
    /// Seed of the simulated exchange: the same seed gives the same day
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Messages in a datagram of the simulated exchange: 1, or as many as fit in 1,400 bytes
    #[arg(long, default_value = "max", value_parser = ["1", "max"])]
    pack: String,
    /// Serve the live page during the run, and print its address
    #[arg(long, conflicts_with = "capture")]
    page: bool,
    /// How to handle the plant's journal
    #[arg(long, value_enum, default_value_t)]
    journal: DemoJournal,
    /// The run folder [default: a new one under runs/]
    #[arg(long, value_name = "PATH")]
    run_folder: Option<FilePath>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Rates to try, highest first, if none is given.
const TRIED_RATES: [u64; 6] = [2_000_000, 1_000_000, 400_000, 200_000, 100_000, 50_000];
const TRY: Duration = Duration::from_millis(1_500);
/// How long the cores are observed for their jitter floor.
const JITTER: Duration = Duration::from_millis(1_000);
/// Time limit for a part to report that it is ready.
const START_LIMIT: Duration = Duration::from_secs(20);
/// Time limit for the rest after the feed's end: the queues are bounded, so they drain in far less.
const DRAIN_LIMIT: Duration = Duration::from_secs(30);
/// The same for a plant with a journal: up to 4 GiB must be written to a disk of 40 MB/s.
const SYNC_LIMIT: Duration = Duration::from_secs(120);
/// How long a plant or relay that gets no end of the session may still publish what has arrived; a plant that falls behind at a rate that is
/// only tried need not.
const END_PATIENCE: Duration = Duration::from_secs(10);
const TRY_PATIENCE: Duration = Duration::from_secs(2);
const RELAYED: Duration = Duration::from_secs(2);
/// The first latencies contain cold caches and page faults: this period is stated, and excluded.
const WARM_UP: &str = "500ms";
/// Maximum number of cores that are observed.
const MOST_CORES: usize = 16;

/// What the sender of one turn does.
#[derive(Clone, Copy, Debug)]
struct Load {
    /// Messages a second; `None` for a capture.
    rate: Option<u64>,
    duration: Duration,
    /// How long the plant may take for the rest behind the sender's end.
    patience: Duration,
}

/// How the journal of one turn is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Bare,
    /// The journal is written, but not read.
    Kept,
    /// The journal is replayed at the end.
    Replayed,
}

/// The used part of the summary of the simulated exchange or of the replay.
#[derive(Debug, Deserialize)]
struct Sent {
    /// Messages sent; `None` for a replayed capture of datagrams, whose messages the plant counts.
    #[serde(default)]
    messages: Option<u64>,
    duration_ns: u64,
    #[serde(default)]
    asked_rate_hz: Option<f64>,
    /// Time in which the socket had no capacity.
    #[serde(default)]
    back_pressure_ns: u64,
    /// The sender compared with its schedule.
    #[serde(default)]
    trend: Trend,
}

/// The results of all parts of one run.
#[derive(Debug)]
struct Said {
    sent: Sent,
    plant: PlantReport,
    subscribers: Vec<PathReport>,
    clients: Vec<Client>,
    /// The replay of the plant's journal, if requested.
    replayed: Option<Replayed>,
    usage: Vec<(String, Spent)>,
    started: Nanos,
}

impl Demo {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals()?;
        if let Some(capture) = &self.capture {
            crate::feed::check_readable_by_a_plant(capture)?;
        }
        let folder = RunFolder::create(self.run_folder.as_deref(), "demo")?;
        match self.measure(&folder, &stop) {
            Ok(run) => {
                match self.format {
                    Format::Table => output::print(&run.summary(Some(folder.path())))?,
                    Format::Json => output::print_json(&run)?,
                }
                if matches!(run.verdict, Verdict::Lossy | Verdict::Overload) && self.capture.is_none() {
                    anstream::eprintln!(
                        "hint: this machine sustains less at its current load; try `tapeline demo --rate 100k`"
                    );
                }
                Ok(if run.verdict == Verdict::Lossy { ExitCode::from(3) } else { ExitCode::SUCCESS })
            }
            Err(_) if stop.requested() => {
                anstream::eprintln!("stopped; only {} was left behind", paths::shown(folder.path()));
                Ok(ExitCode::from(130))
            }
            Err(error) => Err(error),
        }
    }

    fn measure(&self, folder: &RunFolder, stop: &Stop) -> anyhow::Result<Run> {
        let clock = Clock::calibrate();
        let jitter = watch_jitter(&clock, stop)?;
        let rate = match (&self.capture, self.rate) {
            (Some(_), _) => None,
            (None, Some(rate)) => Some(rate),
            (None, None) => Some(self.find_rate(folder, &jitter, &clock, stop)?),
        };
        let progress = match &self.capture {
            Some(file) => Progress::counting(&format!("replaying {}", file.display()), "", None),
            None => Progress::over("demo", self.duration),
        };
        let expected = match &self.capture {
            Some(capture) => Expected::Capture(capture),
            None => {
                Expected::Ticks(self.duration.as_secs_f64().mul_add(rate.unwrap_or(0) as f64, 1.0) as u64)
            }
        };
        let free = journal::free_bytes(folder.path());
        let refused = self.journal.refused(&expected, folder.path(), free);
        if let Some(why) = &refused {
            anstream::eprintln!("note: {why}");
        }
        let turn =
            if self.journal == DemoJournal::None || refused.is_some() { Turn::Bare } else { Turn::Replayed };
        let load = Load { rate, duration: self.duration, patience: END_PATIENCE };
        let said = self.once(folder, load, turn, progress, stop)?;
        if said.plant.kernel_drops() > 0 {
            anstream::eprintln!(
                "warning: the kernel dropped {} datagrams because a socket's buffer was full; run.json says on which line",
                said.plant.kernel_drops()
            );
        }
        let mut run = outcome::run_of(&said, jitter, &clock)?;
        let floor = rate.and_then(|rate| {
            let floor = self.floor(rate, stop);
            floor.inspect_err(|why| anstream::eprintln!("note: no bare relay beside this run: {why:#}")).ok()
        });
        run.steps = outcome::steps(&said.subscribers, floor.as_deref())?;
        run.settings = self.settings(rate, &said);
        outcome::write(folder, &run, &said)?;
        Ok(run)
    }

    /// The highest of the tried rates that passes, halved: a rate that this machine sustains with capacity to
    /// spare.
    fn find_rate(
        &self,
        folder: &RunFolder,
        jitter: &[Jitter],
        clock: &Clock,
        stop: &Stop,
    ) -> anyhow::Result<u64> {
        for rate in TRIED_RATES {
            let progress = Progress::over(&format!("trying {}", output::rate(rate as f64, "msgs")), TRY);
            // Include the cost of the journal.
            let turn = if self.journal == DemoJournal::None { Turn::Bare } else { Turn::Kept };
            let load = Load { rate: Some(rate), duration: TRY, patience: TRY_PATIENCE };
            let said = self.once(folder, load, turn, progress, stop)?;
            let verdict = outcome::run_of(&said, jitter.to_vec(), clock)?.verdict;
            anstream::eprintln!("tried {}: {verdict}", output::rate(rate as f64, "msgs"));
            match verdict {
                Verdict::Pass => return Ok(rate / 2),
                // The plant kept up on a machine that is shared: leave more capacity.
                Verdict::Noisy => return Ok(rate / 4),
                _ => {}
            }
        }
        Ok(TRIED_RATES[TRIED_RATES.len() - 1] / 2)
    }

    /// Runs the whole tree once: plant, subscribers, then the sender; collects the summary of each at its end.
    fn once(
        &self,
        folder: &RunFolder,
        Load { rate, duration, patience }: Load,
        turn: Turn,
        mut progress: Progress,
        stop: &Stop,
    ) -> anyhow::Result<Said> {
        let is_left = self.journal == DemoJournal::Kept && turn == Turn::Replayed;
        let journal = (turn != Turn::Bare).then(|| Kept::new(folder.path(), is_left));
        let stage = Stage::set(
            folder,
            self.lines,
            usize::from(self.subscribers),
            self.start(),
            self.date.as_deref(),
            self.warm_up(),
            (self.hub(), journal.as_ref()),
        )?;
        let mut plant = Part::start("plant", &stage.plant())?;
        let ready: Ready = plant.says(START_LIMIT, stop, || {})?;
        if let Some(page) = ready.web {
            anstream::eprintln!("the live page: http://{page}/");
        }
        let mut subscribers = self.subscribers(&stage, stop)?;
        let clients = ready
            .hub
            .map(|hub| Clients::start(hub, clients::items(self.symbols), self.warm_up(), START_LIMIT, stop));
        let mut clients = clients.transpose()?;
        let started = Clock::calibrate().now();
        let mut sender = Part::start("sender", &self.sender(&stage, rate, duration))?;
        let limit = if self.capture.is_some() { Duration::MAX } else { duration + DRAIN_LIMIT };
        let sent: Sent = {
            let of_hub = clients.iter_mut().flat_map(Clients::parts);
            let mut parts: Vec<&mut Part> =
                subscribers.iter_mut().chain([&mut plant]).chain(of_hub).collect();
            sender.says(limit, stop, || {
                progress.set_elapsed();
                parts.iter_mut().for_each(|part| part.look());
            })?
        };
        if self.capture.is_some() {
            // An excerpt of a day has no end of session: the plant publishes what has arrived, and ends.
            plant.ask_to_end();
        }
        let limit = if journal.is_some() { SYNC_LIMIT } else { DRAIN_LIMIT };
        // The kernel may have dropped the end of the session: on an overloaded machine, all of its datagrams.
        let plant_report: PlantReport = plant.says_at_the_end(patience, limit, stop)?;
        let reports = subscribers
            .iter_mut()
            .map(|part| part.says(DRAIN_LIMIT, stop, || {}))
            .collect::<anyhow::Result<Vec<PathReport>>>()?;
        let found = clients.as_mut().map(|clients| clients.end(DRAIN_LIMIT, stop)).transpose()?;
        let mut usage: Vec<_> = [&sender, &plant].into_iter().chain(&subscribers).map(Part::spent).collect();
        usage.extend(clients.iter_mut().flat_map(Clients::parts).map(|part| part.spent()));
        let clients = found.unwrap_or_default();
        let replayed = match &journal {
            Some(journal) if turn == Turn::Replayed => {
                drop(progress);
                Some(journal.replay(limit.saturating_add(duration), stop)?)
            }
            _ => None,
        };
        Ok(Said { sent, plant: plant_report, subscribers: reports, clients, replayed, usage, started })
    }

    /// Starts the subscribers; returns when all have joined the ring.
    fn subscribers(&self, stage: &Stage, stop: &Stop) -> anyhow::Result<Vec<Part>> {
        let started = (1..=usize::from(self.subscribers)).map(|number| {
            let mut part = Part::start(&format!("subscriber {number}"), &stage.subscriber(number))?;
            let _: Joined = part.says(START_LIMIT, stop, || {})?;
            Ok(part)
        });
        started.collect()
    }

    /// Runs a bare relay in the plant's place, with the same sender, ring and subscribers, and returns what the
    /// subscribers measured: the floor under the plant's latency.
    fn floor(&self, rate: u64, stop: &Stop) -> anyhow::Result<Vec<PathReport>> {
        let duration = self.duration.min(RELAYED);
        let mut progress = Progress::over("a bare relay", duration);
        // With the cores that the plant's run had.
        let others = usize::from(self.subscribers) + usize::from(self.hub() != Hub::None);
        let stage = Stage::bare(self.lines, others, self.warm_up())?;
        let mut relay = Part::start("relay", &stage.relay())?;
        let _: Relaying = relay.says(START_LIMIT, stop, || {})?;
        let mut subscribers = self.subscribers(&stage, stop)?;
        let mut sender = Part::start("sender", &self.sender(&stage, Some(rate), duration))?;
        let sent: Sent = sender.says(duration + DRAIN_LIMIT, stop, || progress.set_elapsed())?;
        let relayed: RelayReport = relay.says_at_the_end(END_PATIENCE, DRAIN_LIMIT, stop)?;
        let measured = subscribers.iter_mut().map(|part| part.says(DRAIN_LIMIT, stop, || {})).collect();
        let missing = relayed.missing;
        anyhow::ensure!(missing == 0, "it lost {missing} messages, so its figures are no floor");
        anyhow::ensure!(
            !sent.trend.grows,
            "its sender fell behind its schedule, so its figures are no floor"
        );
        measured
    }

    fn sender(&self, stage: &Stage, rate: Option<u64>, duration: Duration) -> Vec<String> {
        let mut line = match &self.capture {
            Some(file) => {
                let mut line = words("feed replay");
                line.extend([file.display().to_string(), "--speed".to_owned(), self.speed.clone()]);
                line
            }
            None => words(&format!(
                "feed simulate --rate {} --duration {}ms --symbols {} --seed {} --pack {} --wait {}",
                rate.unwrap_or(0),
                duration.as_millis(),
                self.symbols,
                self.seed,
                self.pack,
                stage.sender_wait()
            )),
        };
        line.extend(stage.destination());
        line
    }

    /// The simulated exchange begins with message 1; an excerpt of a real day begins anywhere.
    fn start(&self) -> &'static str {
        if self.capture.is_some() { "first-seen" } else { "from-one" }
    }

    /// The items of a capture are not known in advance.
    fn hub(&self) -> Hub {
        match (self.capture.is_some(), self.page) {
            (true, _) => Hub::None,
            (false, false) => Hub::Clients,
            (false, true) => Hub::Page(clients::items(self.symbols)),
        }
    }

    /// A capture may end before the warm-up does.
    fn warm_up(&self) -> &'static str {
        if self.capture.is_some() { "0s" } else { WARM_UP }
    }

    fn settings(&self, rate: Option<u64>, said: &Said) -> serde_json::Value {
        json!({
            "rate_hz": rate,
            "duration_s": self.duration.as_secs_f64(),
            "capture": self.capture,
            "speed": self.capture.as_ref().map(|_| &self.speed),
            "lines": self.lines,
            "subscribers": self.subscribers,
            "symbols": self.symbols,
            "clients": said.clients.iter().map(|client| client.name).collect::<Vec<_>>(),
            "client_items": clients::items(self.symbols),
            "seed": self.seed,
            "pack": self.pack,
            "warm_up": self.warm_up(),
            "journal": said.plant.journal.is_some(),
            "parts": outcome::parts(said),
        })
    }
}

/// The words of a command line, none of which has a space in it.
fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

/// Measures the noise of the cores before anything runs on them.
fn watch_jitter(clock: &Clock, stop: &Stop) -> anyhow::Result<Vec<Jitter>> {
    let mut progress = Progress::over("watching the cores", JITTER);
    let jitter = std::thread::scope(|scope| {
        let watchers: Vec<_> = cores()
            .into_iter()
            .take(MOST_CORES)
            .map(|core| {
                scope.spawn(move || {
                    Jitter::measure(core, JITTER, Jitter::THRESHOLD_NS, clock, || stop.requested())
                })
            })
            .collect();
        watchers
            .into_iter()
            .map(|watcher| match watcher.join() {
                Ok(jitter) => Ok(jitter?),
                Err(_) => anyhow::bail!("a thread that watched a core failed"),
            })
            .collect()
    });
    progress.set_elapsed();
    jitter
}
