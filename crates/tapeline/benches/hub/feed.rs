//! A feed, the whole way: an exchange's datagrams into the binary's own plant, with the hub in it, to one client over TCP.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::thread::ScopedJoinHandle;

use anyhow::Context;
use serde_json::Value;
use tapeline_measure::{Evidence, Usage, Verdict, judge, monotonic_ns, pin};
use tapeline_wire::udp::{Batch, ReceiveOptions, UdpReceiver};

use crate::clients::Clients;
use crate::day::{Day, SentDay};
use crate::process::PlantProcess;
use crate::{Bench, SERVICE, TURN, say, since, spent};

/// Messages of the feed a second that are tried over UDP, one rate after the other until one is too much: of the simulated
/// exchange, and of quotes.
const RATES: [u64; 6] = [1_000_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000, 6_000_000];
const QUOTE_RATES: [u64; 6] = [1_000_000, 2_000_000, 2_500_000, 3_000_000, 3_500_000, 4_000_000];
/// How often a rate is tried until it is too much.
const TRIES: u32 = 3;
/// The client has the last update so long after the last datagram at most: what takes longer has piled up.
const BEHIND_NS: u64 = 20_000_000;
/// Of the plant's line: room for a tenth of a second at the highest rates.
const RECEIVE_BUFFER_MIB: usize = 16;
/// Datagrams that the plant takes at a time.
const BATCH: usize = 64;

/// What the whole way carried, or a part of it.
pub(crate) struct Carried {
    pub(crate) what: String,
    /// `None` where nothing could go wrong.
    pub(crate) verdict: Option<(Verdict, String)>,
    pub(crate) messages_per_s: f64,
    pub(crate) ticks_per_s: f64,
    /// From the last datagram to the last update.
    pub(crate) behind_ms: Option<f64>,
    /// Processor time a tick, ns: plant (or what is there in its place), hub, client, and who sent the datagrams.
    pub(crate) cpu_ns: [f64; 4],
}

impl Carried {
    fn is_held(&self) -> bool {
        self.verdict.as_ref().is_none_or(|(verdict, _)| *verdict == Verdict::Pass)
    }
}

/// Starts a plant on both cores: its thread on the near one, its hub's on the far one. `source`: the feed's keys, a file or lines.
fn begin_plant(bench: &mut Bench, day: &Day, source: &str, is_served: bool) -> anyhow::Result<PlantProcess> {
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
    let config = day.folder().join("plant.toml");
    std::fs::write(&config, text)?;
    PlantProcess::begin(bench.on_both(env!("CARGO_BIN_EXE_tapeline")), &config, &day.folder().join("said"))
}

/// A moment: how many updates the client had, and the processor time of plant, hub and client.
#[derive(Clone, Copy)]
struct Moment {
    at_ns: u64,
    updates: u64,
    used_ns: [u64; 3],
}

impl Moment {
    fn now(updates: u64, plant: &PlantProcess) -> Self {
        let mut used_ns = [0, 0, spent::of_this_thread().unwrap_or(0)];
        for (name, ns) in spent::of_threads(plant.child.id()) {
            used_ns[usize::from(name == "hub")] += ns;
        }
        Self { at_ns: monotonic_ns(), updates, used_ns }
    }
}

impl Bench {
    /// Both days: the plant alone, then the whole way, from a file as fast as it goes and over UDP at one rate after the other.
    pub(crate) fn feed(&mut self) -> anyhow::Result<()> {
        let day = Day::simulated()?;
        self.figures.simulated = self.whole_way(&day, &RATES)?;
        drop(day);
        let day = Day::quotes()?;
        let mut quotes = self.whole_way(&day, &QUOTE_RATES)?;
        quotes.push(tried(|| self.floor(&day, QUOTE_RATES[QUOTE_RATES.len() - 1]))?);
        self.figures.quotes = quotes;
        Ok(())
    }

    fn whole_way(&mut self, day: &Day, rates: &[u64]) -> anyhow::Result<Vec<Carried>> {
        let mut all = vec![self.plant_alone(day)?, self.carry(day, None)?];
        for rate in rates {
            let carried = tried(|| self.carry(day, Some(*rate)))?;
            let is_held = carried.is_held();
            all.push(carried);
            if !is_held {
                break;
            }
        }
        Ok(all)
    }

    /// What the plant turns over with nobody on its ring.
    fn plant_alone(&mut self, day: &Day) -> anyhow::Result<Carried> {
        say("the plant alone");
        let mut plant = begin_plant(self, day, &from_file(day), false)?;
        let begun = monotonic_ns();
        let report = plant.line()?;
        let took_s = (monotonic_ns() - begun) as f64 / 1e9;
        // It has not been waited for, so the kernel still knows.
        let used = Usage::of(plant.child.id())?;
        let ticks = number(&report, "/ticks") as f64;
        Ok(Carried {
            what: "from a file of datagrams, the plant alone".to_owned(),
            verdict: None,
            messages_per_s: number(&report, "/feeds/0/messages") as f64 / took_s,
            ticks_per_s: ticks / took_s,
            behind_ms: None,
            cpu_ns: [(used.user_ns + used.system_ns) as f64 / ticks, 0.0, 0.0, 0.0],
        })
    }

    /// `rate`: so many messages a second over UDP; without it the plant reads the day's file.
    fn carry(&mut self, day: &Day, rate: Option<u64>) -> anyhow::Result<Carried> {
        let what = match rate {
            Some(rate) => over_udp(rate),
            None => "from a file of datagrams, as fast as it goes".to_owned(),
        };
        say(&format!("{what}: plant, hub and client"));
        let to = free_address()?;
        let source = match rate {
            Some(_) => format!(
                "receive_buffer = \"{RECEIVE_BUFFER_MIB}MiB\"\n[[feed.line]]\naddress = \"{to}\"\ninterface = \"127.0.0.1\""
            ),
            None => from_file(day),
        };
        let mut plant = begin_plant(self, day, &source, true)?;
        let address = plant.ready["hub"].as_str().context("where the hub listens")?.parse()?;
        let mut clients = Clients::new(0)?;
        clients.may_end = true;
        clients.connect(address, day.stocks.clone(), true)?;
        if rate.is_some() {
            // Each is a stream at the hub before the first datagram.
            clients.until_asked()?;
        }
        let far = self.far;
        std::thread::scope(|scope| {
            let sending = rate.map(|rate| scope.spawn(move || send(day, to, rate, far)));
            let (begun, last, last_ns) = read(&mut clients, &plant, day.stocks.len() as u64)?;
            let sent = sending.map(sent).transpose()?;
            let report = plant.line()?;
            let seconds = (last_ns - begun.at_ns) as f64 / 1e9;
            let ticks_per_s = (clients.tally.updates - begun.updates) as f64 / seconds;
            let (messages, ticks) = (number(&report, "/feeds/0/messages"), number(&report, "/ticks"));
            let each_tick = messages as f64 / ticks.max(1) as f64;
            let of_hub = ["cut", "conflated", "dropped"].map(|what| number(&report, &format!("/hub/{what}")));
            let lost = number(&report, "/feeds/0/missing_messages")
                + of_hub.iter().sum::<u64>()
                + number(&report, "/hub/updates").abs_diff(clients.tally.updates);
            let messages_per_s = sent.as_ref().map_or(ticks_per_s * each_tick, SentDay::per_s);
            let behind_ns = sent.as_ref().map(|sent| last_ns.saturating_sub(sent.ended_ns));
            let mut verdict = judge(&Evidence {
                asked_rate_hz: rate.map(|rate| rate as f64),
                sent_rate_hz: messages_per_s,
                sent: sent.as_ref().map_or(messages, |sent| sent.messages),
                received: messages,
                lost,
                sender: sent.as_ref().map(|sent| sent.lateness).unwrap_or_default(),
                ..Evidence::default()
            });
            if verdict.0 == Verdict::Pass
                && let Some(ns) = behind_ns.filter(|ns| *ns > BEHIND_NS)
            {
                let why = format!("the last update came {} ms after the last datagram", ns / 1_000_000);
                verdict = (Verdict::Overload, why);
            }
            let updates = (last.updates - begun.updates).max(1) as f64;
            let used = |which: usize| (last.used_ns[which] - begun.used_ns[which]) as f64 / updates;
            let of_sender = sent.map_or(0.0, |sent| sent.used_ns as f64 / sent.messages as f64 * each_tick);
            Ok(Carried {
                what,
                verdict: Some(verdict),
                messages_per_s,
                ticks_per_s,
                behind_ms: behind_ns.map(|ns| ns as f64 / 1e6),
                cpu_ns: [used(0), used(1), used(2), of_sender],
            })
        })
    }

    /// The day's datagrams to somebody who does nothing but count them: the same socket, the same batches. Each message counts as a
    /// tick.
    fn floor(&self, day: &Day, rate: u64) -> anyhow::Result<Carried> {
        let what = format!("{}, and nothing but counted", over_udp(rate));
        say(&what);
        let mut receiver = UdpReceiver::open(&ReceiveOptions {
            interface: "127.0.0.1".to_owned(),
            receive_buffer: RECEIVE_BUFFER_MIB << 20,
            ..ReceiveOptions::new(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))
        })?;
        let (to, far) = (receiver.local_address(), self.far);
        let mut batch = Batch::new(BATCH, 2_048);
        std::thread::scope(|scope| {
            let before = spent::of_this_thread();
            let sending = scope.spawn(move || send(day, to, rate, far));
            let mut datagrams = 0;
            loop {
                // Asked before the look: nothing comes behind it.
                let is_over = sending.is_finished();
                match receiver.receive(&mut batch)? {
                    0 if is_over => break,
                    0 => _ = receiver.wait(TURN),
                    count => datagrams += count as u64,
                }
            }
            let used_ns = since(before);
            let sent = sent(sending)?;
            let verdict = judge(&Evidence {
                asked_rate_hz: Some(rate as f64),
                sent_rate_hz: sent.per_s(),
                sent: sent.datagrams,
                received: datagrams,
                lost: sent.datagrams.saturating_sub(datagrams),
                sender: sent.lateness,
                ..Evidence::default()
            });
            let messages = sent.messages as f64;
            Ok(Carried {
                what,
                verdict: Some(verdict),
                messages_per_s: sent.per_s(),
                ticks_per_s: sent.per_s(),
                behind_ms: None,
                cpu_ns: [used_ns as f64 / messages, 0.0, 0.0, sent.used_ns as f64 / messages],
            })
        })
    }
}

/// Once more where it was too much, a few times: a virtual machine is without its cores now and then.
fn tried(mut once: impl FnMut() -> anyhow::Result<Carried>) -> anyhow::Result<Carried> {
    let mut carried = once()?;
    for number in 2..=TRIES {
        if carried.is_held() {
            break;
        }
        carried = once()?;
        carried.what.push_str(&format!(" (try {number})"));
    }
    Ok(carried)
}

/// Reads until the hub ends the connection. The moment at which every stock had its image, one shortly before the end, and when the
/// last update came.
fn read(clients: &mut Clients, plant: &PlantProcess, stocks: u64) -> anyhow::Result<(Moment, Moment, u64)> {
    clients.until("the last image", |clients| clients.tally.images >= stocks || clients.is_over)?;
    let begun = Moment::now(clients.tally.updates, plant);
    let (mut last, mut last_ns) = (begun, begun.at_ns);
    while !clients.is_over {
        let before = clients.tally.updates;
        clients.turn(TURN)?;
        if clients.tally.updates > before {
            last_ns = monotonic_ns();
        }
        if last_ns >= last.at_ns + SAMPLE_NS {
            last = Moment::now(clients.tally.updates, plant);
        }
    }
    Ok((begun, last, last_ns))
}

/// Processor time is asked for so often: it is gone with the plant.
const SAMPLE_NS: u64 = 100_000_000;

fn send(day: &Day, to: SocketAddrV4, rate: u64, core: Option<usize>) -> anyhow::Result<SentDay> {
    core.map_or(Ok(()), pin)?;
    day.send(to, rate)
}

fn sent(sending: ScopedJoinHandle<'_, anyhow::Result<SentDay>>) -> anyhow::Result<SentDay> {
    sending.join().map_err(|_| anyhow::anyhow!("the sender has panicked"))?
}

fn from_file(day: &Day) -> String {
    format!("file = \"{}\"\npace = \"fast\"", day.file.display())
}

fn over_udp(rate: u64) -> String {
    format!("over UDP, {} messages/s asked", tapeline_measure::figures::thousands(rate))
}

/// A port that is free now: the plant takes it at once.
fn free_address() -> anyhow::Result<SocketAddrV4> {
    let free = UdpReceiver::open(&ReceiveOptions::new(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)))?;
    Ok(free.local_address())
}

/// A number in a report; 0 where it is not.
fn number(report: &Value, place: &str) -> u64 {
    report.pointer(place).and_then(Value::as_u64).unwrap_or(0)
}
