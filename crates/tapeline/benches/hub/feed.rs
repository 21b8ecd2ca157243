//! A feed, the whole way: the simulated exchange's datagrams into the binary's own plant, with the hub in it, to one client over TCP.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::Context;
use serde_json::Value;
use tapeline_measure::{Evidence, Usage, Verdict, judge, monotonic_ns};

use crate::clients::Clients;
use crate::{Bench, SERVICE, say, spent};

/// Stocks of the exchange, and messages of its day in a file: some seconds' worth.
const STOCKS: u16 = 500;
const MESSAGES: u64 = 6_000_000;
/// Messages of the feed a second that are tried over UDP, one rate after the other, each for so many seconds.
const RATES: [u64; 4] = [250_000, 500_000, 1_000_000, 1_500_000];
const UDP_SECONDS: u64 = 3;

/// What the whole way carried.
pub(crate) struct Carried {
    /// Messages of the feed a second that were asked for over UDP; `None` where a file was read as fast as it went.
    pub(crate) asked: Option<u64>,
    /// Whether the hub was there.
    pub(crate) is_served: bool,
    pub(crate) verdict: Verdict,
    pub(crate) why: String,
    pub(crate) messages_per_s: f64,
    pub(crate) ticks_per_s: f64,
    /// Processor time a tick, ns: plant, hub, client, and who sent the datagrams.
    pub(crate) cpu_ns: [f64; 4],
}

/// The exchange's day, in a file.
pub(crate) struct Day {
    folder: tempfile::TempDir,
    file: PathBuf,
    datagrams: u64,
    names: Vec<String>,
}

impl Day {
    pub(crate) fn write() -> anyhow::Result<Self> {
        say("the exchange's day is written");
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("day.pcap");
        let (stocks, messages) = (STOCKS.to_string(), MESSAGES.to_string());
        let written = Command::new(env!("CARGO_BIN_EXE_tapeline"))
            .args([
                "feed",
                "simulate",
                "--symbols",
                &stocks,
                "--messages",
                &messages,
                "--format",
                "json",
                "--write",
            ])
            .arg(&file)
            .output()?;
        let said = String::from_utf8_lossy(&written.stderr);
        anyhow::ensure!(written.status.success(), "the exchange's day could not be written: {said}");
        let datagrams = number(&serde_json::from_slice(&written.stdout)?, "/datagrams");
        let settings = tapeline_feed::simulate::Settings { symbols: STOCKS, ..Default::default() };
        let exchange = tapeline_feed::simulate::Exchange::new(settings);
        let names = (1..=STOCKS).filter_map(|locate| exchange.symbol(locate));
        let names = names.map(|name| String::from_utf8_lossy(&name).trim_end().to_owned()).collect();
        Ok(Self { folder, file, datagrams, names })
    }
}

/// A plant of its own process, on both cores: its thread on the near one, its hub's on the far one.
struct Plant {
    child: Child,
    says: BufReader<ChildStdout>,
    ready: Value,
}

impl Plant {
    /// `source`: the feed's keys, a file or lines.
    fn begin(bench: &mut Bench, folder: &Path, source: &str, is_served: bool) -> anyhow::Result<Self> {
        let ring = bench.ring()?;
        let on = |core: Option<usize>| core.map_or(String::new(), |core| format!("cpu = {core}\n"));
        let mut text = format!(
            "[plant]\nname = \"{SERVICE}\"\nring = \"{ring}\"\n{}\
             [[feed]]\nname = \"exchange\"\nprotocol = \"itch50-moldudp64\"\nstale_after = \"0s\"\n{source}\n",
            on(bench.near)
        );
        if is_served {
            text.push_str(&format!(
                "[hub]\nport = 0\n{}unknown = \"wait\"\nslow = \"cut\"\nslow_bytes = \"256MiB\"\nslow_messages = 10000000\n",
                on(bench.far)
            ));
        }
        let config = folder.join("plant.toml");
        std::fs::write(&config, text)?;
        let mut command = bench.on_both(env!("CARGO_BIN_EXE_tapeline"));
        command.args(["plant", "--until-end-of-session", "--format", "json", "--config"]).arg(&config);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(folder.join("said"))?)
            .spawn()
            .context("cannot start the plant")?;
        let says = BufReader::new(child.stdout.take().context("the plant's output")?);
        let mut plant = Self { child, says, ready: Value::Null };
        let said = || std::fs::read_to_string(folder.join("said")).unwrap_or_default();
        plant.ready = plant.line().with_context(|| format!("the plant did not begin: {}", said()))?;
        Ok(plant)
    }

    fn line(&mut self) -> anyhow::Result<Value> {
        let mut line = String::new();
        self.says.read_line(&mut line)?;
        serde_json::from_str(&line).with_context(|| format!("the plant said {line:?}"))
    }

    /// Tells it to end.
    fn stop(&self) -> anyhow::Result<()> {
        let plant = rustix::process::Pid::from_child(&self.child);
        Ok(rustix::process::kill_process(plant, rustix::process::Signal::TERM)?)
    }
}

impl Drop for Plant {
    fn drop(&mut self) {
        // Has no effect on one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Who sends the datagrams, ended with this.
struct Sender(Child);

impl Drop for Sender {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A moment: when, how many updates the client had, and the processor time of plant, hub, client and sender.
#[derive(Clone, Copy)]
struct Moment {
    at_ns: u64,
    updates: u64,
    used_ns: [u64; 4],
}

impl Moment {
    fn now(updates: u64, plant: &Plant, sender: Option<&Sender>) -> Self {
        let mut used_ns = [0, 0, spent::of_this_thread().unwrap_or(0), 0];
        for (name, ns) in spent::of_threads(plant.child.id()) {
            used_ns[usize::from(name == "hub")] += ns;
        }
        let sender = sender.map(|sender| spent::of_threads(sender.0.id())).unwrap_or_default();
        used_ns[3] = sender.iter().map(|(_, ns)| ns).sum();
        Self { at_ns: monotonic_ns(), updates, used_ns }
    }
}

impl Bench {
    /// The plant alone, then the whole way: from the file as fast as it goes, and over UDP at one rate after the other.
    pub(crate) fn feed(&mut self) -> anyhow::Result<()> {
        let day = Day::write()?;
        let file = format!("file = \"{}\"\npace = \"fast\"", day.file.display());
        self.plant_alone(&day, &file)?;
        say("from a file through plant and hub to a client");
        let carried = self.carry(&day, &file, None)?;
        self.figures.carried.push(carried);
        for rate in RATES {
            say(&format!("{rate} messages a second over UDP through plant and hub to a client"));
            // A port that is free now: the plant takes it at once.
            let free = std::net::UdpSocket::bind("127.0.0.1:0")?.local_addr()?;
            let lines = format!("[[feed.line]]\naddress = \"{free}\"\ninterface = \"127.0.0.1\"");
            let carried = self.carry(&day, &lines, Some((rate, free.to_string())))?;
            self.figures.carried.push(carried);
        }
        Ok(())
    }

    /// What the plant turns over with nobody on its ring.
    fn plant_alone(&mut self, day: &Day, file: &str) -> anyhow::Result<()> {
        say("the plant alone");
        let mut plant = Plant::begin(self, day.folder.path(), file, false)?;
        let begun = monotonic_ns();
        let report = plant.line()?;
        let took_s = (monotonic_ns() - begun) as f64 / 1e9;
        // It has not been waited for, so the kernel still knows.
        let used = Usage::of(plant.child.id())?;
        self.figures.carried.push(Carried {
            asked: None,
            is_served: false,
            verdict: Verdict::Pass,
            why: String::new(),
            messages_per_s: number(&report, "/feeds/0/messages") as f64 / took_s,
            ticks_per_s: number(&report, "/ticks") as f64 / took_s,
            cpu_ns: [
                (used.user_ns + used.system_ns) as f64 / number(&report, "/ticks") as f64,
                0.0,
                0.0,
                0.0,
            ],
        });
        Ok(())
    }

    /// `sent`: the rate of the datagrams' messages and where they go; without it the plant reads a file.
    fn carry(&mut self, day: &Day, source: &str, sent: Option<(u64, String)>) -> anyhow::Result<Carried> {
        let mut plant = Plant::begin(self, day.folder.path(), source, true)?;
        let address = plant.ready["hub"].as_str().context("where the hub listens")?.parse()?;
        let mut clients = Clients::new(0)?;
        clients.may_end = true;
        clients.connect(address, day.names.clone(), true)?;
        let sender = match &sent {
            Some((rate, to)) => {
                // Each is a stream at the hub before the first datagram.
                clients.until_asked()?;
                Some(self.send(day, *rate, to)?)
            }
            None => None,
        };
        let stocks = day.names.len() as u64;
        clients.until("the last image", |clients| clients.tally.images >= stocks || clients.is_over)?;
        let begun = Moment::now(clients.tally.updates, &plant, sender.as_ref());
        let mut last = begun;
        let until_ns = begun.at_ns + UDP_SECONDS * 1_000_000_000;
        let mut sender = sender;
        let mut is_stopped = false;
        while !clients.is_over {
            clients.turn(crate::TURN)?;
            let now = monotonic_ns();
            let is_due = now >= last.at_ns + 100_000_000;
            if is_due && !is_stopped {
                last = Moment::now(clients.tally.updates, &plant, sender.as_ref());
            }
            if sent.is_some() && now >= until_ns && !is_stopped {
                is_stopped = true;
                sender = None;
                plant.stop()?;
            }
        }
        drop(sender);
        let report = plant.line()?;
        let seconds = (last.at_ns - begun.at_ns) as f64 / 1e9;
        let updates = (last.updates - begun.updates).max(1) as f64;
        let (messages, ticks) = (number(&report, "/feeds/0/messages"), number(&report, "/ticks"));
        let missing = number(&report, "/feeds/0/missing_messages");
        let each_tick = messages as f64 / ticks.max(1) as f64;
        let messages_per_s = updates / seconds * each_tick;
        let lost_by_hub =
            ["cut", "conflated", "dropped"].map(|what| number(&report, &format!("/hub/{what}")));
        let sent_by_hub = number(&report, "/hub/updates");
        let lost = missing + lost_by_hub.iter().sum::<u64>() + sent_by_hub.abs_diff(clients.tally.updates);
        let (verdict, why) = judge(&Evidence {
            asked_rate_hz: sent.as_ref().map(|(rate, _)| *rate as f64),
            sent_rate_hz: messages_per_s,
            sent: messages + missing,
            received: messages,
            lost,
            ..Evidence::default()
        });
        let mut cpu_ns = [0.0; 4];
        for (each, (after, before)) in cpu_ns.iter_mut().zip(last.used_ns.iter().zip(begun.used_ns)) {
            *each = after.saturating_sub(before) as f64 / updates;
        }
        Ok(Carried {
            asked: sent.map(|(rate, _)| rate),
            is_served: true,
            verdict,
            why,
            messages_per_s,
            ticks_per_s: updates / seconds,
            cpu_ns,
        })
    }

    /// Sends the day's datagrams, so many of its messages a second.
    fn send(&self, day: &Day, rate: u64, to: &str) -> anyhow::Result<Sender> {
        let datagrams = (rate as f64 * day.datagrams as f64 / MESSAGES as f64).round().max(1.0);
        let mut command = self.on_both(env!("CARGO_BIN_EXE_tapeline"));
        command.args(["feed", "replay"]).arg(&day.file);
        command.args(["--to", to, "--rate", &datagrams.to_string()]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Ok(Sender(child.context("cannot start the exchange")?))
    }
}

/// A number in a report; 0 where it is not.
fn number(report: &Value, place: &str) -> u64 {
    report.pointer(place).and_then(Value::as_u64).unwrap_or(0)
}
