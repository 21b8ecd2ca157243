//! One rate: starts the parts, judges their results, writes the run folder.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::run_folder::{HopLatency, Process, Run, RunFolder, Throughput};
use anyhow::Context;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tapeline_console::part::Part;
use tapeline_console::stop::Stop;
use tapeline_measure::{Clock, Environment, Evidence, Nanos, Percentiles, Recorder, Verdict};

use super::feed::Sent;
use super::place::Place;
use super::relay::Listening;
use super::sink::{Received, Subscribed, WINDOW_NS, decode};
use super::{BenchArgs, Journal, Middle, Waits};

/// The settings that all rates share.
pub(super) struct Bench<'a> {
    pub(super) args: &'a BenchArgs,
    pub(super) duration: Duration,
    pub(super) is_local: bool,
    pub(super) waits: Waits,
    /// The parent of the run folders.
    pub(super) folder: &'a Path,
    pub(super) stop: &'a Stop,
}

/// The program between publisher and subscriber.
#[derive(Clone, Debug)]
pub(super) enum Through {
    /// A relay that does no work.
    Relay,
    /// One of Tapeline's own, with this journal setting.
    Ours(Middle, Journal),
    /// A running tickerplant of the user's.
    Target(Place),
}

impl fmt::Display for Through {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Relay => RELAY,
            Self::Target(_) => "target",
            Self::Ours(Middle::Tickerplant, _) => "tickerplant",
            Self::Ours(Middle::Plant, _) => "plant",
        })?;
        let Self::Ours(_, journal) = self else { return Ok(()) };
        journal.durability().map_or(Ok(()), |durability| write!(to, ", {durability}"))
    }
}

/// The Unix-domain socket of one rate.
const SOCKET: &str = "socket";
const RELAY: &str = "relay";
const OVERFLOW: &str = "overflow";
const NO_LOG: &str = "kdb_log = false";

/// The result of one rate.
#[derive(Debug, Serialize)]
pub(super) struct Round {
    pub(super) rate: u64,
    pub(super) through: String,
    pub(super) waiting: Waits,
    /// `overflow` if updates pile up, with the place; otherwise the verdict's word.
    pub(super) verdict: String,
    why: String,
    sent_updates: u64,
    received_rows: u64,
    missing_rows: u64,
    /// Arrival less due; `None` if updates piled up.
    pub(super) latency: Option<Percentiles>,
    /// The run folder.
    pub(super) folder: PathBuf,
}

impl Round {
    /// Whether this is a round of the bare relay.
    pub(super) fn is_relay(&self) -> bool {
        self.through == RELAY
    }

    /// Adds where updates pile up: if the relay with the same ends keeps up, the ends were not too slow.
    pub(super) fn blame(&mut self, relay: &Self) {
        if self.verdict == OVERFLOW {
            let does_keep_up = !relay.verdict.starts_with(OVERFLOW);
            self.verdict.push_str(if does_keep_up { " (relay keeps up)" } else { " (relay too)" });
        }
    }
}

/// Time between the start of the subscriber and the first update.
const LEAD: Duration = Duration::from_millis(1_500);
/// Time limit for a part to report that it is ready.
const READY: Duration = Duration::from_secs(120);
/// Time limit for a part to end after its time is over.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long the publisher's own limit is measured.
const LIMIT: Duration = Duration::from_secs(2);

/// The used part of the plant's ready message.
#[derive(Deserialize)]
struct PlantReady {
    kdb: Listening,
}

impl Bench<'_> {
    /// The maximum updates a second that the publisher can send to a reader that does no work.
    pub(super) fn limit(&self) -> anyhow::Result<f64> {
        self.make_scratch()?;
        let (_relay, place) = self.start_relay("null sink", true)?;
        let start = Clock::calibrate().now() + LEAD.as_nanos() as u64;
        let arguments = self.feed(&place, 0, start, (Duration::ZERO, LIMIT));
        let mut feed = Part::start("publisher", &arguments)?;
        let sent: Sent = feed.says(LEAD + LIMIT + PATIENCE, self.stop, || {})?;
        Ok(sent.rate_hz)
    }

    /// Measures one rate.
    pub(super) fn round(&self, through: &Through, rate: u64) -> anyhow::Result<Round> {
        let name = format!("{}-{}-{rate}", through.to_string().replace(", ", "-"), self.waits.word());
        let folder = RunFolder::create(Some(&self.folder.join(name)), "tick")?;
        let (mut server, place) = self.server(through)?;
        let clock = Clock::calibrate();
        let start = clock.now() + LEAD.as_nanos() as u64;
        let times = (self.args.warm_up, self.duration);
        let arguments = self.sink(through, &place, (rate, start), &folder);
        let mut sink = Part::start("subscriber", &arguments)?;
        let _: Subscribed = sink.says(READY, self.stop, || {})?;
        let mut feed = Part::start("publisher", &self.feed(&place, rate, start, times))?;
        let over = LEAD + self.args.warm_up + self.duration + PATIENCE;
        let sent: Sent = feed.says(over, self.stop, || server.iter_mut().for_each(Part::look))?;
        let received: Received = sink.says(PATIENCE, self.stop, || server.iter_mut().for_each(Part::look))?;
        if let Some(server) = server.as_mut().filter(|_| received.is_cut_off) {
            server.still_runs()?;
        }
        let (latency, service) = (decode(&received.latency)?, decode(&received.service)?);
        let evidence = evidence(rate, &sent, &received, &latency);
        let started = start + self.args.warm_up.as_nanos() as u64;
        let mut run =
            Run::new("tick", started, self.duration, evidence, Vec::new(), Environment::read(&clock));
        let missing = note_missing(&mut run, sent.updates * self.args.rows, &received);
        let seconds = self.duration.as_secs_f64();
        run.throughput = Throughput::new((seconds * rate as f64) as u64, received.bytes, self.duration);
        let hops = [("sent→received", &service), ("due→received", &latency)];
        run.hops = hops
            .map(|(name, recorder)| HopLatency {
                name: name.to_owned(),
                percentiles: recorder.percentiles(),
                clock_error_ns: clock.error_ns(),
            })
            .into();
        run.settings = self.settings(through, rate);
        let parts = server.iter().chain([&feed, &sink]);
        run.processes = parts.map(Part::spent).map(|(name, spent)| Process { name, spent }).collect();
        folder.write_latency(started, self.duration, &hops)?;
        folder.write_stats(1, WINDOW_NS, &received.windows)?;
        folder.write_run(&run)?;
        // The next round starts with a log of its own, and this one may have gigabytes.
        drop(server);
        std::fs::remove_dir_all(self.scratch())
            .with_context(|| format!("cannot remove {}", self.scratch().display()))?;
        let is_over = run.verdict == Verdict::Overload;
        Ok(Round {
            rate,
            through: through.to_string(),
            waiting: self.waits,
            verdict: if is_over { OVERFLOW.to_owned() } else { run.verdict.word().to_owned() },
            why: run.why,
            sent_updates: sent.updates,
            received_rows: received.rows,
            missing_rows: missing,
            latency: (!is_over).then(|| latency.percentiles()),
            folder: folder.path().to_owned(),
        })
    }

    /// The setup in the record of a run.
    fn settings(&self, through: &Through, rate: u64) -> serde_json::Value {
        // Unknown for a foreign tickerplant.
        let journal = if let Through::Ours(_, journal) = through { Some(*journal) } else { None };
        serde_json::json!({
            "through": through.to_string(), "rate": rate, "rows": self.args.rows, "journal": journal, "unix": self.is_local,
            "waiting": self.waits, "cpus": self.cpus(), "warm_up_s": self.args.warm_up.as_secs_f64(),
        })
    }

    /// Starts the program between publisher and subscriber; returns it and its address.
    fn server(&self, through: &Through) -> anyhow::Result<(Option<Part>, Place)> {
        self.make_scratch()?;
        match through {
            Through::Target(place) => Ok((None, place.clone())),
            Through::Relay => self.start_relay(RELAY, false).map(|(relay, place)| (Some(relay), place)),
            Through::Ours(Middle::Tickerplant, journal) => {
                let mut arguments = vec!["tick".to_owned(), "serve".to_owned()];
                self.add_cpu(&mut arguments, 1);
                let (server, said): (_, Listening) =
                    self.ours("tickerplant", arguments, &self.tickerplant(*journal))?;
                Ok((Some(server), self.place(said.address)?))
            }
            Through::Ours(Middle::Plant, journal) => {
                let (server, said): (_, PlantReady) =
                    self.ours("plant", vec!["plant".to_owned()], &self.plant(*journal))?;
                Ok((Some(server), self.place(said.kdb.address)?))
            }
        }
    }

    /// Starts one of Tapeline's own with this configuration; returns its ready message.
    fn ours<T: DeserializeOwned>(
        &self,
        role: &str,
        mut arguments: Vec<String>,
        config: &str,
    ) -> anyhow::Result<(Part, T)> {
        let file = self.scratch().join("config.toml");
        std::fs::write(&file, config).with_context(|| format!("cannot write {}", file.display()))?;
        arguments.extend(["--format", "json", "--config"].map(str::to_owned));
        arguments.push(file.display().to_string());
        let mut server = Part::start(role, &arguments)?;
        let said = server.says(READY, self.stop, || {})?;
        Ok((server, said))
    }

    /// The folder for configuration, log and socket of one rate.
    fn scratch(&self) -> PathBuf {
        self.folder.join("server")
    }

    fn make_scratch(&self) -> anyhow::Result<()> {
        let scratch = self.scratch();
        std::fs::create_dir_all(&scratch).with_context(|| format!("cannot make {}", scratch.display()))
    }

    /// The path of the Unix-domain socket.
    fn socket(&self) -> PathBuf {
        self.scratch().join(SOCKET)
    }

    fn place(&self, address: Option<SocketAddr>) -> anyhow::Result<Place> {
        let text = address.map_or_else(|| self.socket().display().to_string(), |address| address.to_string());
        text.parse().map_err(|what: String| anyhow::anyhow!(what))
    }

    const fn spins(&self) -> bool {
        matches!(self.waits, Waits::Spin)
    }

    /// The configuration of a tickerplant alone.
    fn tickerplant(&self, journal: Journal) -> String {
        let durability = journal.durability().map(|durability| format!("durability = \"{durability}\""));
        let log = durability.unwrap_or_else(|| NO_LOG.to_owned());
        format!(
            "{}{log}\n[[table]]\nname = \"{}\"\n\
             columns = [\"time timespan\", \"sym symbol\", \"price float\", \"size long\"]\n",
            self.listening(),
            super::TABLE
        )
    }

    /// The configuration of a plant without feeds, whose only ticks are rows of kdb+ clients.
    fn plant(&self, journal: Journal) -> String {
        let cpu = self.cpu(1).map(|core| format!("cpu = {core}\n"));
        // A fixed size limit: older ticks are deleted.
        let kept = journal.durability().map(|durability| {
            format!("[journal]\nfolder = \"journal\"\ndurability = \"{durability}\"\nkeep_size = \"4GiB\"\n")
        });
        let log = if journal == Journal::None { format!("{NO_LOG}\n") } else { String::new() };
        format!(
            "[plant]\nring = \"tick-bench-{}\"\nwait = \"{}\"\n{}{}[kdb]\n{}{log}[[kdb.table]]\nname = \"{}\"\n\
             columns = [\"time timespan\", \"sym symbol\", \"price float TRDPRC_1\", \"size long TRDVOL_1\"]\n",
            std::process::id(),
            self.waits.word(),
            cpu.unwrap_or_default(),
            kept.unwrap_or_default(),
            self.listening(),
            super::TABLE
        )
    }

    /// The configuration of the listening address and the way of waiting.
    fn listening(&self) -> String {
        let place = if self.is_local {
            // Relative to the configuration's folder, like all of its paths.
            format!("tcp = false\nunix = \"{SOCKET}\"")
        } else {
            "port = 0".to_owned()
        };
        format!("{place}\nwaiting = \"{}\"\n", self.waits.word())
    }

    fn start_relay(&self, role: &str, is_null: bool) -> anyhow::Result<(Part, Place)> {
        let mut arguments = ["tick", "part", "relay"].map(str::to_owned).to_vec();
        if self.is_local {
            arguments.extend(["--unix".to_owned(), self.socket().display().to_string()]);
        }
        arguments.extend(is_null.then(|| "--null".to_owned()));
        arguments.extend(self.spins().then(|| "--spins".to_owned()));
        self.add_cpu(&mut arguments, 1);
        let mut relay = Part::start(role, &arguments)?;
        let said: Listening = relay.says(READY, self.stop, || {})?;
        Ok((relay, self.place(said.address)?))
    }

    fn feed(&self, place: &Place, rate: u64, start: Nanos, times: (Duration, Duration)) -> Vec<String> {
        let mut arguments = self.part("feed", place, start, times, 0);
        arguments.extend([
            "--rate".to_owned(),
            rate.to_string(),
            "--rows".to_owned(),
            self.args.rows.to_string(),
        ]);
        arguments
    }

    /// The subscriber's arguments for a rate and a start time.
    fn sink(
        &self,
        through: &Through,
        place: &Place,
        (rate, start): (u64, Nanos),
        folder: &RunFolder,
    ) -> Vec<String> {
        let expected = tapeline_measure::Pacer::per_second(rate, start)
            .due_by(start + (self.args.warm_up + self.duration).as_nanos() as u64)
            .saturating_mul(self.args.rows);
        let mut arguments = self.part("sink", place, start, (self.args.warm_up, self.duration), 2);
        arguments.extend(["--expect".to_owned(), expected.to_string()]);
        if matches!(through, Through::Relay) {
            arguments.push("--bare".to_owned());
        }
        if self.args.times {
            arguments.extend(["--times".to_owned(), folder.path().join("times.csv").display().to_string()]);
        }
        arguments
    }

    fn part(
        &self,
        part: &str,
        place: &Place,
        start: Nanos,
        (warm_up, duration): (Duration, Duration),
        cpu: usize,
    ) -> Vec<String> {
        let mut arguments = vec!["tick".to_owned(), "part".to_owned(), part.to_owned()];
        let options = [
            ("--target", place.argument()),
            ("--start", start.0.to_string()),
            ("--warm-up-ns", warm_up.as_nanos().to_string()),
            ("--duration-ns", duration.as_nanos().to_string()),
        ];
        arguments.extend(options.into_iter().flat_map(|(option, value)| [option.to_owned(), value]));
        arguments.extend(self.spins().then(|| "--spins".to_owned()));
        self.add_cpu(&mut arguments, cpu);
        arguments
    }

    /// Cores of publisher, tickerplant and subscriber; a shorter list repeats.
    fn cpus(&self) -> &[usize] {
        self.args.cpus.as_ref().map_or(&[], |cores| &cores.0)
    }

    fn cpu(&self, part: usize) -> Option<&usize> {
        self.cpus().iter().cycle().nth(part)
    }

    /// Adds the core of a part, by the part's number.
    fn add_cpu(&self, arguments: &mut Vec<String>, part: usize) {
        if let Some(core) = self.cpu(part) {
            arguments.extend(["--cpu".to_owned(), core.to_string()]);
        }
    }
}

/// The evidence for the verdict on a rate.
fn evidence(rate: u64, sent: &Sent, received: &Received, latency: &Recorder) -> Evidence {
    Evidence {
        asked_rate_hz: Some(rate as f64),
        sent_rate_hz: sent.rate_hz,
        sent: sent.updates,
        // Updates that are still in flight are not lost: that is an overflow.
        received: sent.updates,
        sender: sent.lateness,
        system: received.trend,
        held_back_share: sent.held_back_share,
        result: Some(latency.percentiles()),
        ..Evidence::default()
    }
}

/// Counts the rows that had not arrived, and notes them in the run's verdict.
fn note_missing(run: &mut Run, all: u64, received: &Received) -> u64 {
    let missing = all.saturating_sub(received.rows);
    if missing > 0 {
        // Whether rows are lost or in flight is the same to the subscriber. A late publisher disconnects nobody.
        if received.is_cut_off || run.verdict != Verdict::GeneratorLimited {
            run.verdict = Verdict::Overload;
        }
        let cut = if received.is_cut_off { ": the subscriber was cut off" } else { "" };
        run.why = format!("{missing} of {all} rows had not arrived when all should have{cut}; {}", run.why);
    }
    missing
}
