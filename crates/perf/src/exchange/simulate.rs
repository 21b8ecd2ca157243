//! `tapeline feed simulate`: the simulated exchange on a fixed schedule, over the network or into a file.
//!
//! The unit of the schedule is the message: message k is due at start + k / rate (bursts as requested). A datagram
//! takes the messages that fit and are due within a millisecond. It is sent when its first message is due, as one
//! burst; that instant is the event time of all its messages. A receiver measures latency from due as: its time −
//! midnight in New York − event time, which excludes the cost of packing. A late sender catches up: the schedule
//! never waits.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde::Serialize;
use tapeline_console::failure::Hinted;
use tapeline_console::output::{self, Format, Progress};
use tapeline_console::paths::{self, FilePath};
use tapeline_console::stop::Stop;
use tapeline_console::{LogArgs, arguments, log};
use tapeline_feed::capture::PcapWriter;
use tapeline_feed::itch::encode::LONGEST;
use tapeline_feed::moldudp64::{DEFAULT_PACKET_BYTES, MoldSession, end_of_session};
use tapeline_feed::simulate::{Burst, CLOSING_MESSAGES, Exchange, FASTEST_HZ, Schedule, SimulatedDay};
use tapeline_measure::{Clock, Evidence, Nanos, Percentiles, Rank, Verdict, Waiting, figures, judge, pin};

use super::faults::{self, Done};
use super::generator::{Generator, SHORTEST_LIMIT};
use super::lines::{Lines, Route, Staged};
use super::replay::Pack;
use super::sending::{DaySender, ENDS};

const SECOND_NS: u64 = 1_000_000_000;
/// Exit status of a sender that did not keep its schedule.
const GENERATOR_LIMITED: u8 = 4;
/// Number of messages between two progress updates for a file.
const SHOW_EVERY: u64 = 65_536;
/// A file's day begins when the market opens, 09:30 in New York, on 2020-01-02 (so that a file is the same every time).
const FILE_OPENING_NS: u64 = 34_200 * SECOND_NS;
const FILE_MIDNIGHT: Nanos = Nanos(1_577_941_200 * SECOND_NS);

/// The options; the help is with the subcommand.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tapeline feed simulate --to 239.255.12.111:26477 --rate 1M --duration 60s\n  \
    tapeline feed simulate --to 239.255.12.111:26477 --rate 200k --burst 10x:50ms:1s\n  \
    tapeline feed simulate --write day.pcap --messages 5M")]
pub struct Simulate {
    /// Destination: a multicast group, or an address for unicast
    #[arg(long, value_name = "GROUP:PORT", required_unless_present = "write", value_parser = arguments::address::<SocketAddrV4>)]
    to: Option<SocketAddrV4>,
    #[command(flatten)]
    route: Route,
    /// Write a file instead: `.itch` for length-prefixed messages, `.pcap` for datagrams
    #[arg(long, value_name = "FILE", conflicts_with_all = ["to", "also", "interface", "ttl", "faults", "fault_file", "cpu", "wait", "linger"])]
    write: Option<FilePath>,
    /// Messages a second
    #[arg(long, default_value = "1M", value_parser = arguments::rate)]
    rate: u64,
    /// Bursts on top of the rate: FACTORx:LENGTH:EVERY, such as 10x:50ms:1s
    #[arg(long, value_name = "BURST")]
    burst: Option<Burst>,
    /// Duration of the day
    #[arg(long, default_value = "10s", value_parser = arguments::some_duration, conflicts_with = "messages")]
    duration: Duration,
    /// Length of the day in messages instead, opening and closing messages included
    #[arg(long, value_name = "NUMBER", value_parser = arguments::rate)]
    messages: Option<u64>,
    /// Seed of the day: the same seed gives the same day
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of stocks
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..=65_000))]
    symbols: u16,
    /// Number of orders at which the books stop growing [default: 800 a stock]
    #[arg(long, value_name = "ORDERS", value_parser = arguments::rate)]
    live_orders: Option<u64>,
    /// Messages in a datagram: one, or as many as fit
    #[arg(long, default_value = "max")]
    pack: Pack,
    /// Maximum datagram size
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT_PACKET_BYTES as u16, value_parser = clap::value_parser!(u16).range(SHORTEST_LIMIT as i64..=65_507))]
    datagram_bytes: u16,
    /// Session name, up to ten characters
    #[arg(long, default_value = "SIMULATED", value_parser = arguments::session)]
    session: String,
    /// Pin the sending thread to this core
    #[arg(long, value_name = "CORE")]
    cpu: Option<usize>,
    /// How to wait until messages are due: `spin` is exact and uses a whole core, `sleep` spins for the last 60 µs only
    #[arg(long, default_value = "sleep")]
    wait: Wait,
    /// Repeat the end of the session for this long
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = arguments::duration)]
    linger: Duration,
    /// Output format
    #[arg(long, default_value = "table")]
    format: Format,
    #[command(flatten)]
    log: LogArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Wait {
    /// Poll the clock until the message is due: exact, and uses a whole core
    Spin,
    /// Sleep until shortly before, then spin
    Sleep,
    /// Sleep until shortly before, then yield the core between polls of the clock
    Yield,
}

/// The result, for programs.
#[derive(Debug, Default, Serialize)]
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
    /// Actual send time less due time, for each datagram; absent in a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    lateness: Option<Percentiles>,
    live_orders: usize,
    levels: usize,
    traded_shares: u64,
    /// Checksum over the best bid and ask of all stocks: see `tapeline_feed::simulate::checksum`.
    books_checksum: String,
    /// Counts of applied faults, by line.
    #[serde(skip_serializing_if = "Option::is_none")]
    faults: Option<Done>,
    interrupted: bool,
}

impl Simulate {
    /// Sends the whole day, or writes it.
    ///
    /// # Errors
    /// If options contradict each other, a socket cannot send or the file cannot be written.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        self.log.begin("simulate")?;
        if self.rate == 0 || self.rate > FASTEST_HZ {
            let hint =
                format!("between 1 and {} messages a second are possible", figures::thousands(FASTEST_HZ));
            return Err(Hinted::new(format!("cannot schedule a rate of {}", self.rate), hint).into());
        }
        let opening = self.generator().exchange.opening_messages();
        if self.total() < opening + CLOSING_MESSAGES {
            log::note(format_args!(
                "{} messages are asked for, but opening {} stocks takes {opening}: trading will not begin",
                figures::thousands(self.total()),
                self.symbols
            ));
        }
        let outcome = match (&self.write, self.to) {
            (Some(path), _) => {
                self.write_file(path).with_context(|| format!("writing {}", paths::shown(&path)))?
            }
            (None, Some(to)) => self.send(to)?,
            // clap requires one of the two.
            (None, None) => anyhow::bail!("neither --to nor --write"),
        };
        self.print(&outcome)?;
        Ok(match outcome.verdict {
            _ if outcome.interrupted => ExitCode::from(130),
            // The requested rate was not reached: a script that measures with it must not take it for a good run.
            Some(Verdict::GeneratorLimited) => ExitCode::from(GENERATOR_LIMITED),
            _ => ExitCode::SUCCESS,
        })
    }

    fn schedule(&self) -> Schedule {
        Schedule::new(self.rate, self.burst)
    }

    /// Number of messages of the day, including opening and closing.
    fn total(&self) -> u64 {
        let duration_ns = u64::try_from(self.duration.as_nanos()).unwrap_or(u64::MAX);
        self.messages.unwrap_or_else(|| self.schedule().messages_in(duration_ns)).max(CLOSING_MESSAGES)
    }

    fn generator(&self) -> Generator {
        let all = self.live_orders.unwrap_or(u64::from(self.symbols) * 800);
        let live_orders = u32::try_from(all).unwrap_or(u32::MAX);
        let exchange = Exchange::new(SimulatedDay { seed: self.seed, symbols: self.symbols, live_orders });
        let session = MoldSession::new(&self.session);
        let datagram_bytes = usize::from(self.datagram_bytes);
        Generator::new(exchange, self.schedule(), self.total(), session, datagram_bytes, self.pack)
    }

    /// Sends the day on the network.
    fn send(&self, to: SocketAddrV4) -> anyhow::Result<Outcome> {
        let stop = Stop::on_signals().context("cannot listen for signals")?;
        if let Some(core) = self.cpu {
            pin(core).with_context(|| format!("cannot use core {core}"))?;
        }
        let lines = Lines::open(to, &self.route)?;
        if let Some(advice) = lines.advice() {
            log::note(advice);
        }
        let waiting = match self.wait {
            Wait::Spin => Waiting::Spin,
            Wait::Sleep => Waiting::Sleep,
            Wait::Yield => Waiting::Yield,
        };
        let mut generator = self.generator();
        let mut sending =
            DaySender::new(lines, stop, waiting, usize::from(self.datagram_bytes), generator.total)?;
        let complete = sending.day(&mut generator)?;
        let (carried, duration_ns) = (sending.out.lines.carried, sending.out.duration_ns());
        let interrupted =
            !(complete && sending.out.end(generator.session, sending.sent + 1, sending.sent, self.linger)?);

        let mut outcome = self.outcome(&generator, sending.sent, duration_ns);
        let seconds = duration_ns as f64 / 1e9;
        outcome.datagrams = carried.datagrams - sending.out.heartbeats;
        outcome.bytes = carried.bytes;
        outcome.datagrams_per_second = outcome.datagrams as f64 / seconds;
        outcome.bytes_per_second = outcome.bytes as f64 / seconds;
        outcome.lines = sending.out.lines.count();
        outcome.heartbeats = sending.out.heartbeats;
        outcome.back_pressure = carried.blocked;
        outcome.back_pressure_ns = carried.blocked_ns;
        outcome.lateness = Some(sending.lateness.percentiles());
        outcome.interrupted = interrupted;
        outcome.faults = sending.out.lines.done();

        // There is one interval less than messages.
        let intervals = sending.sent.saturating_sub(1);
        let span_s = generator.schedule.due_ns(intervals) as f64 / 1e9;
        let (verdict, why) = judge(&Evidence {
            asked_rate_hz: (span_s > 0.0).then_some(intervals as f64 / span_s),
            sent_rate_hz: intervals as f64 / seconds,
            sent: sending.sent,
            received: sending.sent,
            sender: sending.trend.trend(),
            held_back_share: carried.blocked_ns as f64 / duration_ns as f64,
            result: outcome.lateness.clone(),
            ..Evidence::default()
        });
        outcome.verdict = Some(verdict);
        outcome.why = (verdict != Verdict::Pass).then_some(why);
        Ok(outcome)
    }

    /// Writes the day into a file.
    fn write_file(&self, path: &Path) -> anyhow::Result<Outcome> {
        let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
        if !matches!(kind, "itch" | "pcap") {
            let hint = "name it .itch for length-prefixed messages, or .pcap for datagrams";
            return Err(Hinted::new(format!("there is no file type .{kind}"), hint).into());
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
        let mut outcome = self.outcome(&generator, generator.done, duration_ns);
        outcome.interrupted = generator.done < generator.total;
        (outcome.datagrams, outcome.bytes) = (datagrams, bytes);
        outcome.datagrams_per_second = datagrams as f64 * 1e9 / duration_ns as f64;
        outcome.bytes_per_second = bytes as f64 * 1e9 / duration_ns as f64;
        Ok(outcome)
    }

    /// The result fields that both kinds share; the caller sets the rest.
    fn outcome(&self, generator: &Generator, messages: u64, duration_ns: u64) -> Outcome {
        let exchange = &generator.exchange;
        Outcome {
            messages,
            session: generator.session.to_string(),
            last_sequence: messages,
            seed: self.seed,
            symbols: self.symbols,
            asked_rate_hz: generator.schedule.mean_hz(),
            duration_ns,
            messages_per_second: messages as f64 * 1e9 / duration_ns as f64,
            live_orders: exchange.live_orders(),
            levels: exchange.levels(),
            traded_shares: exchange.totals().traded_shares,
            books_checksum: format!("{:016x}", exchange.checksum()),
            ..Outcome::default()
        }
    }

    fn print(&self, outcome: &Outcome) -> anyhow::Result<()> {
        if self.format == Format::Json {
            return output::print_json(outcome);
        }
        if let (Some(verdict), Some(why)) = (outcome.verdict, &outcome.why) {
            output::print(&format!("{}: {why}", output::painted(verdict)))?;
        }
        // A file is written as fast as possible.
        let asked = match self.write {
            Some(_) => String::new(),
            None => format!(" ({} asked)", output::rate(outcome.asked_rate_hz as f64, "msgs")),
        };
        output::print(&format!(
            "{} {} messages in {} datagrams, {} bytes, in {}: {}{asked}, {}, {}{}",
            if self.write.is_some() { "wrote" } else { "sent" },
            figures::thousands(outcome.messages),
            figures::thousands(outcome.datagrams),
            figures::thousands(outcome.bytes),
            figures::duration(outcome.duration_ns),
            output::rate(outcome.messages_per_second, "msgs"),
            output::rate(outcome.datagrams_per_second, "datagrams"),
            output::byte_rate(outcome.bytes_per_second),
            if outcome.interrupted { " (interrupted)" } else { "" },
        ))?;
        if let Some(lateness) = &outcome.lateness {
            let at = |rank| output::latency(lateness.at(rank));
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
        if let Some(done) = &outcome.faults {
            output::print(&faults::summary(done))?;
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
