//! `tapeline feed simulate`: the simulated exchange on a fixed schedule, onto the network or into a file.
//!
//! The unit of the schedule is the message: message k is due at start + k / rate (bursts as asked). A datagram takes the
//! messages that fit and are due within a millisecond, and is sent when the first of them is due, as one burst; that instant is the
//! event time of all of them. So a receiver gets the latency from due as: its time − midnight in New York − event time, and what
//! packing costs is not in it. A sender that was held up catches up: the schedule never waits.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde::Serialize;
use tapeline_feed::capture::PcapWriter;
use tapeline_feed::itch::encode::LONGEST;
use tapeline_feed::moldudp64::{
    DEFAULT_PACKET_BYTES, HEADER_BYTES, MAX_MESSAGES, PacketBuilder, Session, end_of_session, heartbeat,
};
use tapeline_feed::simulate::{Burst, CLOSING_MESSAGES, Exchange, FASTEST_HZ, Schedule, Settings};
use tapeline_measure::{
    Clock, Evidence, Lateness, Nanos, Pacer, Percentiles, Rank, Recorder, Verdict, Waiting, figures, judge,
    pin,
};

use super::lines::{BATCH, Lines, Route, Staged};
use super::replay::Pack;
use crate::arguments;
use crate::failure::Hinted;
use crate::output::{self, Format, Progress};
use crate::stop::Stop;
use crate::trading_day;

/// A silent feed says so every second, as exchanges do; the clock is looked after as often.
const SECOND_NS: u64 = 1_000_000_000;
/// How long a wait goes on before it looks whether the user wants to end.
const LOOK_NS: u64 = 100_000_000;
/// A file's progress is shown after so many messages.
const SHOW_EVERY: u64 = 65_536;
/// How often the end of the session is said at once.
const ENDS: usize = 3;
/// A datagram takes no message that is due so much later than its first.
const TOGETHER_NS: u64 = 1_000_000;
/// Time to get going before the first message is due.
const LEAD_NS: u64 = 1_000_000;
/// Bytes that the longest message takes in a datagram, with its length.
const BLOCK: usize = 2 + LONGEST;
/// A file's day begins when the market opens, 09:30 in New York, on 2020-01-02 (a file has to be the same every time).
const FILE_OPENING_NS: u64 = 34_200 * SECOND_NS;
const FILE_MIDNIGHT: Nanos = Nanos(1_577_941_200 * SECOND_NS);

/// Generate a plausible exchange day.
///
/// The same seed gives the same messages but for their times. Event times are those at which messages were due, so that a receiver
/// can tell its latency from due. With --write, nothing is sent and the day is generated as fast as it goes, with the times that the
/// rate gives from 09:30 on.
#[derive(Debug, Args)]
pub(super) struct Simulate {
    /// Where to send: a multicast group, or an address for unicast
    #[arg(long, value_name = "GROUP:PORT", required_unless_present = "write")]
    to: Option<SocketAddrV4>,
    #[command(flatten)]
    route: Route,
    /// Write a file instead: `.itch` for messages behind their lengths, `.pcap` for datagrams
    #[arg(long, value_name = "FILE", conflicts_with_all = ["to", "also"])]
    write: Option<PathBuf>,
    /// Messages a second
    #[arg(long, default_value = "1M", value_parser = arguments::rate)]
    rate: u64,
    /// Bursts on top of the rate: FACTORx:LENGTH:EVERY, such as 10x:50ms:1s
    #[arg(long, value_name = "BURST")]
    burst: Option<Burst>,
    /// For how long; the day ends with it
    #[arg(long, default_value = "10s", value_parser = arguments::some_duration, conflicts_with = "messages")]
    duration: Duration,
    /// For so many messages instead, opening and closing messages included
    #[arg(long, value_name = "NUMBER", value_parser = arguments::rate)]
    messages: Option<u64>,
    /// The same seed gives the same day
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many stocks
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..=65_000))]
    symbols: u16,
    /// At so many orders the books stop growing; 800 a stock unless given
    #[arg(long, value_name = "ORDERS", value_parser = arguments::rate)]
    live_orders: Option<u64>,
    /// What goes into a datagram: one message, or as many as fit
    #[arg(long, default_value = "max")]
    pack: Pack,
    /// The longest datagram
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT_PACKET_BYTES as u16, value_parser = clap::value_parser!(u16).range((HEADER_BYTES + BLOCK) as i64..=65_507))]
    datagram_bytes: u16,
    /// The session, up to ten characters
    #[arg(long, default_value = "SIMULATED")]
    session: String,
    /// Bind the sending thread to this core
    #[arg(long, value_name = "CORE")]
    cpu: Option<usize>,
    /// How to wait until messages are due: `spin` is exact and takes a whole core, `sleep` spins for the last 60 µs only
    #[arg(long, default_value = "sleep")]
    wait: Wait,
    /// Go on repeating the end of the session for so long
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = arguments::duration)]
    linger: Duration,
    /// How to print what was sent
    #[arg(long, default_value = "table")]
    format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Wait {
    Spin,
    Sleep,
}

/// What was generated, for programs.
#[derive(Debug, Serialize)]
struct Outcome {
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Verdict>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    messages: u64,
    datagrams: u64,
    bytes: u64,
    lines: usize,
    heartbeats: u64,
    session: String,
    last_sequence: u64,
    seed: u64,
    symbols: u16,
    asked_rate_hz: u64,
    duration_ns: u64,
    messages_per_second: f64,
    datagrams_per_second: f64,
    bytes_per_second: f64,
    back_pressure: u64,
    back_pressure_ns: u64,
    /// Actual send less due, per datagram; absent in a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    lateness: Option<Percentiles>,
    live_orders: usize,
    levels: usize,
    traded_shares: u64,
    /// Over best bid and ask of all stocks: see `tapeline_feed::simulate::checksum`.
    books_checksum: String,
    interrupted: bool,
}

impl Simulate {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        if self.rate == 0 || self.rate > FASTEST_HZ {
            let hint =
                format!("between 1 and {} messages a second are possible", figures::thousands(FASTEST_HZ));
            return Err(Hinted::new(format!("no schedule for a rate of {}", self.rate), hint).into());
        }
        let opening = self.generator().exchange.opening_messages();
        if self.total() < opening + CLOSING_MESSAGES {
            anstream::eprintln!(
                "note: {} messages are asked for, but opening {} stocks takes {opening}: trading will not begin",
                figures::thousands(self.total()),
                self.symbols
            );
        }
        let outcome = match (&self.write, self.to) {
            (Some(path), _) => {
                self.write_file(path).with_context(|| format!("writing {}", path.display()))?
            }
            (None, Some(to)) => self.send(to)?,
            // clap asks for one of the two.
            (None, None) => anyhow::bail!("neither --to nor --write"),
        };
        self.print(&outcome)?;
        Ok(if outcome.interrupted { ExitCode::from(130) } else { ExitCode::SUCCESS })
    }

    fn schedule(&self) -> Schedule {
        Schedule::new(self.rate, self.burst)
    }

    /// How many messages the day has, opening and closing included.
    fn total(&self) -> u64 {
        let duration_ns = u64::try_from(self.duration.as_nanos()).unwrap_or(u64::MAX);
        self.messages.unwrap_or_else(|| self.schedule().messages_in(duration_ns)).max(CLOSING_MESSAGES)
    }

    fn generator(&self) -> Generator {
        let all = self.live_orders.unwrap_or(u64::from(self.symbols) * 800);
        let live_orders = u32::try_from(all).unwrap_or(u32::MAX);
        Generator {
            exchange: Exchange::new(Settings { seed: self.seed, symbols: self.symbols, live_orders }),
            schedule: self.schedule(),
            total: self.total(),
            done: 0,
            session: Session::new(&self.session),
            datagram_bytes: usize::from(self.datagram_bytes),
            most: match self.pack {
                Pack::One => 1,
                Pack::Max => (usize::from(self.datagram_bytes) / 14).min(usize::from(MAX_MESSAGES)) as u64,
            },
        }
    }

    /// Sends the day on the network.
    fn send(&self, to: SocketAddrV4) -> anyhow::Result<Outcome> {
        let stop = Stop::on_signals().context("cannot listen for signals")?;
        if let Some(core) = self.cpu {
            pin(core).with_context(|| format!("cannot use core {core}"))?;
        }
        let mut lines = Lines::open(to, &self.route)?;
        if let Some(advice) = lines.advice() {
            anstream::eprintln!("note: {advice}");
        }
        let mut generator = self.generator();
        let mut clock = Clock::calibrate();
        let midnight = trading_day::midnight_before(clock.now())?;
        let start = clock.now() + LEAD_NS;
        let waiting = match self.wait {
            Wait::Spin => Waiting::Spin,
            Wait::Sleep => Waiting::Sleep,
        };
        // Only waits: the schedule with its bursts is the generator's.
        let pacer = Pacer::per_second(1, start);
        let mut progress = Progress::counting("sending", "messages", Some(generator.total));
        let mut show_at = start;
        let mut staged = Staged::new(usize::from(self.datagram_bytes));
        let mut due_times = Vec::with_capacity(BATCH);
        let mut lateness = Recorder::new();
        let mut trend = Lateness::new(start);
        let mut heartbeats = 0;
        let mut last_sent = start;
        let mut recalibrate_at = start + SECOND_NS;
        let mut interrupted = false;

        'day: while let Some(due_ns) = generator.due_ns() {
            let due = start + due_ns;
            let mut now = clock.now();
            while now < due {
                now = pacer.wait(&clock, due.min(now + LOOK_NS), waiting);
                if stop.requested() {
                    interrupted = true;
                    break 'day;
                }
                if now < due && now.0.saturating_sub(last_sent.0) >= SECOND_NS {
                    let packet = heartbeat(generator.session, generator.next_sequence());
                    lines.send_one(&packet, &clock, &stop)?;
                    heartbeats += 1;
                    last_sent = now;
                }
            }
            // Everything that is due by now goes out with one call.
            staged.clear();
            due_times.clear();
            while staged.len() < BATCH
                && let Some(due) = generator.due_ns().map(|due_ns| start + due_ns).filter(|due| *due <= now)
            {
                generator.datagram(&mut staged, due.0.saturating_sub(midnight.0));
                due_times.push(due);
            }
            if !lines.send(&staged, &clock, &stop)? || stop.requested() {
                interrupted = true;
                break;
            }
            last_sent = clock.now();
            for due in &due_times {
                let late_ns = last_sent.since(*due);
                lateness.record(late_ns);
                trend.record(last_sent, late_ns);
            }
            if last_sent >= recalibrate_at {
                clock.recalibrate();
                recalibrate_at = last_sent + SECOND_NS;
            }
            if last_sent >= show_at {
                progress.set(generator.done);
                show_at = last_sent + LOOK_NS;
            }
        }
        drop(progress);
        let duration_ns = last_sent.0.saturating_sub(start.0).max(1);
        let carried = lines.carried();
        let mut outcome = self.outcome(&generator, duration_ns);
        (outcome.datagrams, outcome.bytes) = (carried.datagrams - heartbeats, carried.bytes);
        if !interrupted {
            interrupted = !end(&mut lines, &generator, self.linger, &pacer, &clock, &stop)?;
        }

        let seconds = duration_ns as f64 / 1e9;
        // Over the time from the first due message to the last, a sender that is on time sends one less than it has.
        let sent_rate_hz = generator.done.saturating_sub(1).max(1) as f64 / seconds;
        let span_s = generator.schedule.due_ns(generator.done.saturating_sub(1)) as f64 / 1e9;
        let (verdict, why) = judge(&Evidence {
            asked_rate_hz: (span_s > 0.0).then_some(generator.done.saturating_sub(1) as f64 / span_s),
            sent_rate_hz,
            sent: generator.done,
            received: generator.done,
            sender: trend.trend(),
            held_back_share: carried.blocked_ns as f64 / duration_ns as f64,
            result: Some(lateness.percentiles()),
            ..Evidence::default()
        });
        outcome.lines = lines.count();
        outcome.heartbeats = heartbeats;
        outcome.back_pressure = carried.blocked;
        outcome.back_pressure_ns = carried.blocked_ns;
        outcome.datagrams_per_second = outcome.datagrams as f64 / seconds;
        outcome.bytes_per_second = outcome.bytes as f64 / seconds;
        outcome.lateness = Some(lateness.percentiles());
        outcome.interrupted = interrupted;
        // What was sent at the asked rate until it was interrupted is no less good for that.
        outcome.verdict = Some(verdict);
        outcome.why = (verdict != Verdict::Pass).then_some(why);
        Ok(outcome)
    }

    /// Writes the day into a file.
    fn write_file(&self, path: &Path) -> anyhow::Result<Outcome> {
        let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
        if !matches!(kind, "itch" | "pcap") {
            let hint = "name it .itch for messages behind their lengths, or .pcap for datagrams";
            return Err(Hinted::new(format!("no kind of file is called .{kind}"), hint).into());
        }
        let stop = Stop::on_signals().context("cannot listen for signals")?;
        let clock = Clock::calibrate();
        let start = clock.now();
        let mut generator = self.generator();
        let mut progress = Progress::counting("writing", "messages", Some(generator.total));
        let mut stream = BufWriter::with_capacity(1 << 20, File::create(path)?);
        let (mut datagrams, mut bytes) = (0, 0);
        if kind == "itch" {
            let mut message = [0; LONGEST];
            while let Some(due_ns) = generator.due_ns()
                && !stop.requested()
                && let Some(length) = generator.message(FILE_OPENING_NS + due_ns, &mut message)
            {
                stream.write_all(&(length as u16).to_be_bytes())?;
                stream.write_all(&message[..length])?;
                bytes += 2 + length as u64;
                if generator.done.is_multiple_of(SHOW_EVERY) {
                    progress.set(generator.done);
                }
            }
            stream.flush()?;
        } else {
            let source = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 18_000);
            let group = SocketAddrV4::new(Ipv4Addr::new(239, 255, 0, 1), 26_477);
            let mut pcap = PcapWriter::new(stream)?;
            let mut staged = Staged::new(usize::from(self.datagram_bytes));
            let mut time = FILE_MIDNIGHT + FILE_OPENING_NS;
            while let Some(due_ns) = generator.due_ns().filter(|_| !stop.requested()) {
                time = FILE_MIDNIGHT + (FILE_OPENING_NS + due_ns);
                staged.clear();
                let before = generator.done / SHOW_EVERY;
                generator.datagram(&mut staged, FILE_OPENING_NS + due_ns);
                if generator.done / SHOW_EVERY > before {
                    progress.set(generator.done);
                }
                for datagram in staged.iter() {
                    pcap.write(time, source, group, datagram)?;
                    bytes += datagram.len() as u64;
                }
            }
            datagrams = pcap.packets();
            let packet = end_of_session(generator.session, generator.next_sequence());
            for _ in 0..ENDS {
                pcap.write(time, source, group, &packet)?;
            }
            pcap.finish()?;
        }
        let duration_ns = clock.now().0.saturating_sub(start.0).max(1);
        let mut outcome = self.outcome(&generator, duration_ns);
        outcome.interrupted = generator.done < generator.total;
        (outcome.datagrams, outcome.bytes) = (datagrams, bytes);
        outcome.datagrams_per_second = datagrams as f64 * 1e9 / duration_ns as f64;
        outcome.bytes_per_second = bytes as f64 * 1e9 / duration_ns as f64;
        Ok(outcome)
    }

    /// What can be said of both: the rest is filled in by the caller.
    fn outcome(&self, generator: &Generator, duration_ns: u64) -> Outcome {
        let exchange = &generator.exchange;
        Outcome {
            verdict: None,
            why: None,
            messages: generator.done,
            datagrams: 0,
            bytes: 0,
            lines: 0,
            heartbeats: 0,
            session: generator.session.to_string(),
            last_sequence: generator.done,
            seed: self.seed,
            symbols: self.symbols,
            asked_rate_hz: generator.schedule.mean_hz(),
            duration_ns,
            messages_per_second: generator.done as f64 * 1e9 / duration_ns as f64,
            datagrams_per_second: 0.0,
            bytes_per_second: 0.0,
            back_pressure: 0,
            back_pressure_ns: 0,
            lateness: None,
            live_orders: exchange.live_orders(),
            levels: exchange.levels(),
            traded_shares: exchange.totals().traded_shares,
            books_checksum: format!("{:016x}", exchange.checksum()),
            interrupted: false,
        }
    }

    fn print(&self, outcome: &Outcome) -> anyhow::Result<()> {
        if self.format == Format::Json {
            return output::print_json(outcome);
        }
        if let (Some(verdict), Some(why)) = (outcome.verdict, &outcome.why) {
            output::print(&format!("{}: {why}", output::painted(verdict)))?;
        }
        output::print(&format!(
            "{} {} messages in {} datagrams, {} bytes, in {}: {} ({} asked), {}, {}{}",
            if self.write.is_some() { "wrote" } else { "sent" },
            figures::thousands(outcome.messages),
            figures::thousands(outcome.datagrams),
            figures::thousands(outcome.bytes),
            figures::duration(outcome.duration_ns),
            output::rate(outcome.messages_per_second, "msgs"),
            output::rate(outcome.asked_rate_hz as f64, "msgs"),
            output::rate(outcome.datagrams_per_second, "datagrams"),
            output::byte_rate(outcome.bytes_per_second),
            if outcome.interrupted { " (interrupted)" } else { "" },
        ))?;
        if let Some(lateness) = &outcome.lateness {
            let at = |rank| lateness.at(rank).map_or_else(|| "–".to_owned(), figures::duration);
            output::print(&format!(
                "send less due: median {}, 99 % {}, max {}; back pressure {} times, {} in all; {} heartbeats",
                at(Rank::MEDIAN),
                at(Rank::P99),
                at(Rank::Max),
                figures::thousands(outcome.back_pressure),
                figures::duration(outcome.back_pressure_ns),
                figures::thousands(outcome.heartbeats),
            ))?;
        }
        output::print(&format!(
            "books: {} live orders on {} levels of {} stocks, {} shares traded, checksum {}",
            figures::thousands(outcome.live_orders as u64),
            figures::thousands(outcome.levels as u64),
            outcome.symbols,
            figures::thousands(outcome.traded_shares),
            outcome.books_checksum,
        ))
    }
}

/// The exchange with its schedule: gives what is due.
struct Generator {
    exchange: Exchange,
    schedule: Schedule,
    total: u64,
    done: u64,
    session: Session,
    datagram_bytes: usize,
    /// Messages of one datagram, at most.
    most: u64,
}

impl Generator {
    /// When the next message is due, from the start; `None` when the day is over.
    fn due_ns(&self) -> Option<u64> {
        (self.done < self.total).then(|| self.schedule.due_ns(self.done))
    }

    fn next_sequence(&self) -> u64 {
        self.done + 1
    }

    /// The next message; `None` when the day is over.
    #[inline]
    fn message(&mut self, event_ns: u64, out: &mut [u8; LONGEST]) -> Option<usize> {
        if self.total - self.done == CLOSING_MESSAGES {
            self.exchange.end_day();
        }
        let length = self.exchange.next(event_ns, out)?;
        self.done += 1;
        Some(length)
    }

    /// Stages a datagram with the messages that are due together with the next one.
    fn datagram(&mut self, staged: &mut Staged, event_ns: u64) {
        let mut most = self.most.min(self.total - self.done);
        let due_ns = self.schedule.due_ns(self.done);
        let together = |k| self.schedule.due_ns(self.done + k) <= due_ns + TOGETHER_NS;
        // Found by halving, since due times grow; at high rates the whole datagram is due together.
        if most > 1 && !together(most - 1) {
            let (mut low, mut high) = (1, most - 1);
            while low < high {
                let middle = low + (high - low) / 2;
                if together(middle) { low = middle + 1 } else { high = middle }
            }
            most = low;
        }
        let (session, sequence, limit) = (self.session, self.next_sequence(), self.datagram_bytes);
        staged.write(limit, |room| {
            // The limit is at least a header and the longest message: the option's range says so.
            let Ok(mut packet) = PacketBuilder::with_limit(room, session, sequence, limit) else {
                return (0, ());
            };
            let mut message = [0; LONGEST];
            while u64::from(packet.count()) < most && packet.bytes() + BLOCK <= limit {
                let Some(length) = self.message(event_ns, &mut message) else { break };
                if packet.push(&message[..length]).is_err() {
                    break;
                }
            }
            (packet.finish(), ())
        });
    }
}

/// Says three times that the session is over, and for as long as `linger` again every second.
fn end(
    lines: &mut Lines,
    generator: &Generator,
    linger: Duration,
    pacer: &Pacer,
    clock: &Clock,
    stop: &Stop,
) -> anyhow::Result<bool> {
    let packet = end_of_session(generator.session, generator.next_sequence());
    for _ in 0..ENDS {
        if !lines.send_one(&packet, clock, stop)? {
            return Ok(false);
        }
    }
    let mut next = clock.now() + SECOND_NS;
    let until = clock.now() + u64::try_from(linger.as_nanos()).unwrap_or(u64::MAX);
    while next <= until {
        let mut now = clock.now();
        while now < next {
            now = pacer.wait(clock, next.min(now + LOOK_NS), Waiting::Sleep);
            if stop.requested() {
                return Ok(false);
            }
        }
        lines.send_one(&packet, clock, stop)?;
        next = next + SECOND_NS;
    }
    Ok(true)
}
