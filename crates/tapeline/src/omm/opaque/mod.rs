//! `tapeline omm transport`: messages without a meaning, sent, counted and timed. What it measures is RSSL alone.
//!
//! | file | owns |
//! |---|---|
//! | `message.rs` | what the messages are: those of ETA's TransportPerf |
//! | `sending.rs` | one connection's sending: its pace, its stamps, its packing |
//! | `totals.rs` | what came, and what is said of all of it in the end |

mod message;
mod sending;
mod totals;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use tapeline_measure::{Clock, Nanos};
use tapeline_wire::rssl::{ConnectionId, Event, Reactor, Settings};

use self::message::SHORTEST;
use self::sending::{Load, Sending};
use self::totals::{Heard, Totals};
use super::MOST_MALFORMED;
use super::lines::{LineFormat, Lines};
use super::transport::{ClientArgs, ServerArgs, resolve};
use crate::arguments;
use crate::failure::Hinted;
use crate::output;
use crate::stop::Stop;

/// Send and receive messages without a meaning, and time them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tapeline omm transport server                                  at localhost:14002; then on another terminal\n  \
    tapeline omm transport client --msg-rate 1M --run-time 10s     a million each way each second, and a verdict\n  \
    tapeline omm transport client --msg-rate 0 --pack 20 --run-time 10s --websocket rwf\n\
    LSEG's TransportPerf can be either end.")]
pub(crate) struct Transport {
    #[command(subcommand)]
    end: End,
}

#[derive(Debug, Subcommand)]
enum End {
    /// Wait for clients
    Server {
        #[command(flatten)]
        server: ServerArgs,
        #[command(flatten)]
        traffic: TrafficArgs,
    },
    /// Connect to a server
    Client {
        #[command(flatten)]
        server: ClientArgs,
        /// Connections to try, one a second, before giving up; without end if not said
        #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
        attempts: Option<u32>,
        #[command(flatten)]
        traffic: TrafficArgs,
    },
}

/// What to send for how long.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Traffic")]
struct TrafficArgs {
    /// Messages a second on each connection; 0: as fast as it goes
    #[arg(long, value_name = "RATE", default_value = "100k", value_parser = arguments::rate)]
    msg_rate: u64,
    /// Send nothing
    #[arg(long, conflicts_with_all = ["msg_rate", "latency_msg_rate", "pack"])]
    receive_only: bool,
    /// Messages a second that carry a time stamp, for the other end to take the latency; 0 for none
    #[arg(long, value_name = "RATE", default_value = "1000", value_parser = arguments::rate)]
    latency_msg_rate: u64,
    /// Bytes of a message
    #[arg(long, value_name = "BYTES", default_value_t = 76, value_parser = clap::value_parser!(u32).range(SHORTEST as i64..=1 << 24))]
    msg_size: u32,
    /// Messages in a frame at most, as far as they fit; JSON's go alone
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pack: u32,
    /// End so long after the first connection; a client ends with its connection too
    #[arg(long, value_name = "DURATION", value_parser = arguments::some_duration)]
    run_time: Option<Duration>,
    /// How to wait until the next message is due
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    wait: Wait,
    /// How to print; text on a terminal and JSON lines in a pipe if not said
    #[arg(long, value_enum)]
    format: Option<LineFormat>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Wait {
    /// Sleep: what is due goes out each millisecond, as TransportPerf sends it
    #[default]
    Sleep,
    /// Look all the time: the least lateness, and a whole core
    Spin,
}

/// The protocol type that TransportPerf asks for; what is said is not RWF.
const PROTOCOL_TYPE: u8 = 88;
/// Connections of a server.
const CONNECTIONS: usize = 1_000;
/// The longest wait between two looks at whether to end.
const TURN: Duration = Duration::from_millis(100);
/// Time between two attempts to connect.
const AGAIN_NS: u64 = 1_000_000_000;
/// How long what was sent may take to go out, in the end.
const DRAIN_NS: u64 = 2_000_000_000;

impl Transport {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.end {
            End::Server { server, traffic } => {
                let (address, settings) = server.listen(Vec::new(), 14_002)?;
                let mut program = Program::new(traffic, Reactor::new(CONNECTIONS)?)?;
                let address = program.reactor.listen(address, &opaque(&settings))?;
                let members = [("address", address.to_string().into()), ("port", address.port().into())];
                program.lines.event("listening", &members);
                program.run()
            }
            End::Client { server, attempts, traffic } => {
                let endpoint = server.endpoints(Vec::new(), "localhost:14002")?.remove(0);
                let mut program = Program::new(traffic, Reactor::new(1)?)?;
                program.calling = Some(Calling {
                    server: endpoint.server,
                    settings: opaque(&endpoint.settings),
                    attempts_left: attempts,
                    next: Some(Nanos(0)),
                    closed: None,
                });
                program.run()
            }
        }
    }
}

fn opaque(settings: &Settings) -> Arc<Settings> {
    Arc::new(Settings { protocol_type: PROTOCOL_TYPE, ..settings.clone() })
}

struct Program {
    traffic: TrafficArgs,
    load: Load,
    stop: Stop,
    clock: Clock,
    reactor: Reactor,
    lines: Lines,
    flows: BTreeMap<ConnectionId, Flow>,
    totals: Totals,
    /// When the last connection was over.
    last: Nanos,
    /// When nothing more is sent.
    end: Nanos,
    /// A client's.
    calling: Option<Calling>,
}

/// A client's way to its server. It ends with its connection.
struct Calling {
    server: String,
    settings: Arc<Settings>,
    /// None: without end.
    attempts_left: Option<u32>,
    /// When to try to connect; none while it does, or has.
    next: Option<Nanos>,
    /// Why it is over.
    closed: Option<String>,
}

/// One connection.
struct Flow {
    /// What it calls itself.
    peer: String,
    is_json: bool,
    since: Nanos,
    /// `None`: it sends nothing.
    sending: Option<Sending>,
    heard: Heard,
}

impl Program {
    fn new(traffic: TrafficArgs, reactor: Reactor) -> anyhow::Result<Self> {
        let clock = Clock::calibrate();
        let now = clock.now();
        Ok(Self {
            load: Load {
                rate_hz: (!traffic.receive_only).then_some(traffic.msg_rate),
                stamps_hz: traffic.latency_msg_rate,
                len: traffic.msg_size as usize,
                pack: traffic.pack,
            },
            stop: Stop::on_signals()?,
            clock,
            reactor,
            lines: Lines::new(traffic.format),
            flows: BTreeMap::new(),
            totals: Totals::new(now),
            last: now,
            end: Nanos(u64::MAX),
            calling: None,
            traffic,
        })
    }

    fn run(mut self) -> anyhow::Result<ExitCode> {
        loop {
            self.connect()?;
            self.receive();
            let now = self.clock.now();
            if self.stop.requested() {
                self.end = self.end.min(now);
            }
            self.send(now);
            self.lines.flush()?;
            if now >= self.end || self.calling.as_ref().is_some_and(|calling| calling.closed.is_some()) {
                break;
            }
            let wait = self.wait(now);
            self.reactor.wait(wait)?;
            if let Some(cause) = self.reactor.accept_error() {
                anstream::eprintln!("note: nobody can be let in: {cause}");
            }
        }
        self.drain()?;
        self.finish()
    }

    /// Connects, where a client is to.
    fn connect(&mut self) -> anyhow::Result<()> {
        let now = self.clock.now();
        let Some(calling) =
            self.calling.as_mut().filter(|calling| calling.next.is_some_and(|next| now >= next))
        else {
            return Ok(());
        };
        calling.next = None;
        calling.attempts_left = calling.attempts_left.map(|left| left.saturating_sub(1));
        let addresses = resolve(&calling.server)?;
        let begun = self.reactor.connect_to_any(&addresses, &calling.settings, now);
        if let Err(cause) = begun {
            calling.failed(now, &cause.to_string());
        }
        Ok(())
    }

    fn receive(&mut self) {
        let now = self.clock.now();
        while let Some((id, event, _)) = self.reactor.next(now) {
            match event {
                Event::Connected(agreed) => {
                    if self.totals.connections == 0 {
                        self.totals = Totals::new(now);
                        let run_time = self.traffic.run_time.map(|time| now + time.as_nanos() as u64);
                        self.end = self.end.min(run_time.unwrap_or(self.end));
                    }
                    self.totals.connections += 1;
                    let is_json = agreed.is_json();
                    let sending = Sending::new(self.load, is_json, now);
                    let server = self.calling.as_ref().map_or("", |calling| &calling.server);
                    self.lines.connected(server, agreed);
                    let peer = agreed.peer_version.clone();
                    self.flows
                        .insert(id, Flow { peer, is_json, since: now, sending, heard: Heard::default() });
                }
                Event::Message(bytes) => {
                    let Some(flow) = self.flows.get_mut(&id) else { continue };
                    flow.heard.take(bytes, flow.is_json, now, &mut self.totals);
                    if flow.heard.malformed >= MOST_MALFORMED {
                        self.reactor.close(id);
                        self.gone(id, now, &format!("{MOST_MALFORMED} of its messages could not be read"));
                    }
                }
                Event::Room => {
                    if let Some(sending) = self.flows.get_mut(&id).and_then(|flow| flow.sending.as_mut()) {
                        sending.goes_on(now, &mut self.totals);
                    }
                }
                Event::Closed(reason) => {
                    let reason = reason.to_string();
                    self.gone(id, now, &reason);
                    match &mut self.calling {
                        Some(calling) if self.totals.connections == 0 => calling.failed(now, &reason),
                        Some(calling) => calling.closed = Some(reason),
                        None => {}
                    }
                }
                _ => {}
            }
        }
    }

    fn send(&mut self, now: Nanos) {
        for (id, flow) in &mut self.flows {
            if let Some(sending) = &mut flow.sending
                && let Some(mut sender) = self.reactor.sender(*id)
            {
                sending.turn(now, self.end, &mut sender, &mut self.totals);
            }
        }
    }

    /// How long there is nothing to send. Sleeping takes whole milliseconds.
    fn wait(&self, now: Nanos) -> Duration {
        let due = self.flows.values().filter_map(|flow| flow.sending.as_ref()?.due()).min();
        let next = self.calling.as_ref().and_then(|calling| calling.next);
        let due = due.into_iter().chain(next).chain([self.end]).min().unwrap_or(self.end);
        match due.0.saturating_sub(now.0) {
            0 => Duration::ZERO,
            _ if self.traffic.wait == Wait::Spin && !self.flows.is_empty() => Duration::ZERO,
            ns => Duration::from_nanos(ns).min(TURN),
        }
    }

    /// Lets what was sent go out, and takes what comes meanwhile.
    fn drain(&mut self) -> anyhow::Result<()> {
        let until = self.clock.now() + DRAIN_NS;
        loop {
            let Self { flows, reactor, .. } = self;
            let is_out = flows.keys().all(|id| reactor.sender(*id).is_none_or(|sender| sender.unsent() == 0));
            if is_out || self.clock.now() >= until {
                return Ok(());
            }
            self.reactor.wait(TURN)?;
            self.receive();
        }
    }

    /// A connection is over.
    fn gone(&mut self, id: ConnectionId, now: Nanos, reason: &str) {
        let Some(mut flow) = self.flows.remove(&id) else { return };
        let mut sent = 0;
        if let Some(sending) = &mut flow.sending {
            sending.goes_on(now, &mut self.totals);
            sent = sending.sent();
        }
        self.totals.add(flow.heard, u64::try_from(now.since(flow.since)).unwrap_or(0));
        self.last = now;
        self.lines.event(
            "disconnected",
            &[
                ("peer", flow.peer.into()),
                ("reason", reason.into()),
                ("sent", sent.into()),
                ("received", flow.heard.received.into()),
                ("lost", flow.heard.lost.into()),
                ("out_of_order", flow.heard.out_of_order.into()),
                ("malformed", flow.heard.malformed.into()),
            ],
        );
    }

    fn finish(mut self) -> anyhow::Result<ExitCode> {
        let open: Vec<ConnectionId> = self.flows.keys().copied().collect();
        let now = self.clock.now();
        for id in open {
            self.reactor.close(id);
            self.gone(id, now, "this side ends");
        }
        if let (Some(Calling { server, closed: Some(reason), .. }), 0) =
            (&self.calling, self.totals.connections)
        {
            let what = format!("cannot connect to {server}: {reason}");
            let hint =
                "start the other end first: tapeline omm transport server, or TransportPerf -appType server";
            return Err(Hinted::new(what, hint).into());
        }
        let report = self.totals.report(self.last, self.load.rate_hz);
        let mut members = report.members;
        let is_timed = report.latency.samples + report.latency.negatives > 0;
        if self.lines.is_json() && is_timed {
            members.push(("latency", serde_json::to_value(&report.latency)?));
        }
        self.lines.event("end", &members);
        self.lines.flush()?;
        if !self.lines.is_json() && is_timed {
            output::print(&output::percentile_table(&[("latency", &report.latency)]))?;
        }
        Ok(if report.is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

impl Calling {
    /// An attempt came to nothing: there may be another.
    fn failed(&mut self, now: Nanos, reason: &str) {
        if self.attempts_left == Some(0) {
            self.closed = Some(reason.to_owned());
            return;
        }
        if self.next.is_none() {
            anstream::eprintln!("note: no connection to {}: {reason}", self.server);
        }
        self.next = Some(now + AGAIN_NS);
    }
}
