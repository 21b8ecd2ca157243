//! The bridge out of a plant: one more reader of its ring, which sends every tick to the plants below, answers their re-requests, and has
//! them [catch up](catch_up_server). `[bridge]` in the configuration.
//!
//! A plant with a journal sends a tick when the journal has it: after a restart no sequence stands for another tick.

mod catch_up_server;
pub(crate) mod counters;
mod demand_server;
pub(crate) mod epochs;
pub(crate) mod line;
mod tcp_line;

use std::net::{SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tapeline_feed::moldudp64::HEADER_BYTES;
use tapeline_measure::{Clock, Nanos};
use tapeline_plant::Seq;
use tapeline_plant::bridge::clocks::ClockExchange;
use tapeline_plant::bridge::{BridgeSession, Epoch, Packer, PackerSettings, PlantId};
use tapeline_plant::demand::FarPolicy;
use tapeline_ring::Wait;
use tapeline_wire::tls::Tls;
use tapeline_wire::udp::{Batch, ReceiveOptions, UdpReceiver};

use self::catch_up_server::RunningCatchUp;
use self::counters::{BridgeCounters, BridgeView};
use self::demand_server::RunningDemandServer;
pub use self::epochs::{EpochFound, Epochs, FILE as EPOCHS_FILE};
pub use self::line::BridgeLine;
use self::line::LineSender;
pub use self::tcp_line::TcpLineOptions;
use self::tcp_line::{Followers, TcpLine, WhenQuiet};
use crate::Error;
use crate::cursor::RingCursor;
use crate::error::Context;
use crate::events::Events;
use crate::image_server::ImageServerConfig;
use crate::journal::{Gate, WHILE_HELD};
use crate::lease::Term;
use crate::readers::reader::{Pulse, Reader, Signs};
use crate::readers::sequence_cursor::{Kept, SequenceCursor, Taken};
use crate::sources::far::FarSources;
use crate::stat::snapshot::AeronSendingSnapshot;
use crate::ticks::OnRing;

/// Ticks packed before the re-requests are looked at again.
const BATCH: usize = 256;
/// The longest sleep while the ring is quiet: a re-request may wait this long.
const SLEEP: Duration = Duration::from_micros(500);
/// The longest sleep of a thread that has lines over TCP alone: who connects waits that long.
const LONG_SLEEP: Duration = Duration::from_millis(5);
/// How often a silent bridge says which sequence comes next, so that the loss of the last datagram shows.
const HEARTBEAT_NS: i64 = 100_000_000;
/// Re-requests taken at once, and the bytes of one: a longer datagram is cut, and still too long.
const REQUESTS: usize = 64;
const REQUEST_BYTES: usize = 64;
/// How often the clock is compared with the kernel's.
const HOUSEKEEPING_NS: i64 = 1_000_000_000;
/// A bridge whose plant has ended still answers, until it was asked nothing for this long: the last datagrams may be lost too.
const LAST_WORDS_NS: i64 = 1_000_000_000;
/// The longest time that it answers then.
const LONGEST_LEAVE_NS: i64 = 10_000_000_000;
/// The longest sleep then.
const LAST_SLEEP: Duration = Duration::from_millis(5);
/// How often it says meanwhile that the plant has ended.
const FAREWELL_NS: i64 = 50_000_000;

/// The bridge out of a plant.
#[derive(Debug)]
pub struct BridgeConfig {
    /// The id of this plant, unlike that of every other plant that is bridged.
    pub plant: PlantId,
    /// Where the ticks are sent: every line gets all of them.
    pub lines: Vec<BridgeLine>,
    /// Where plants below follow the ticks over TCP.
    pub tcp_lines: Vec<TcpLineOptions>,
    /// The certificate for everything over TCP: these lines and catching up; `None` for no TLS.
    pub tls: Option<Tls>,
    /// The address of the re-request server; port 0 takes a free one.
    pub requests: SocketAddrV4,
    /// The address of the catch-up server; port 0 takes a free one.
    pub catch_up: SocketAddr,
    /// Datagrams, and the ticks kept for re-requests.
    pub packer: PackerSettings,
    /// Maximum number of plants that catch up at once.
    pub max_catching_up: usize,
    /// Maximum rate at which one plant catches up, in bytes per second.
    pub catch_up_bytes_per_second: u64,
    /// The images with which plants below begin; `None`: they begin with the first tick of the epoch in the journal.
    pub images: Option<ImageServerConfig>,
    /// The part of the plant under its lease, which has the epoch; `None` without a lease.
    pub term: Option<Term>,
    /// What plants below may demand of this plant's sources.
    pub demands: FarPolicy,
    /// Maximum number of items that one of them may have open.
    pub max_demanded: usize,
}

impl BridgeConfig {
    /// Returns the memory bound of the demands of plants below, in bytes; 0 if none are taken.
    #[must_use]
    pub fn demands_bound(&self) -> usize {
        if self.demands == FarPolicy::Refuse { 0 } else { demand_server::memory_bound(self.max_demanded) }
    }
}

/// Where plants below reach a bridge.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BridgeReady {
    /// The session: plant and epoch.
    pub session: String,
    /// The address of the re-request server.
    pub requests: SocketAddrV4,
    /// The address of the catch-up server.
    pub catch_up: SocketAddr,
    /// The addresses of the lines over TCP.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tcp_lines: Vec<SocketAddr>,
}

/// Totals of a bridge.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BridgeReport {
    /// The session: plant and epoch.
    pub session: String,
    /// Ticks sent, once for all lines.
    pub ticks: u64,
    /// Ticks that the bridge itself missed on its ring.
    pub missing: u64,
    /// Datagrams with ticks, once for all lines.
    pub datagrams: u64,
    /// Datagrams that a line did not take.
    pub unsent: u64,
    /// Those of them that the flow control of Aeron refused: a plant below was too slow.
    pub back_pressured: u64,
    /// Times that a line has lost its media driver of Aeron.
    pub drivers_lost: u64,
    /// Re-requests received.
    pub requests: u64,
    /// Ticks sent again.
    pub sent_again: u64,
    /// Re-requests without an answer.
    pub unanswered: u64,
    /// Times that a plant below has caught up.
    pub caught_up: u64,
    /// Times that a plant below was cut off a line over TCP because it was too slow.
    pub cut_off: u64,
    /// Connections to lines over TCP that were refused.
    pub refused: u64,
}

/// A bridge with its threads: one for the lines of datagrams, one for those over TCP if there are both, and the catch-up server.
#[derive(Debug)]
pub(crate) struct RunningBridge {
    pub(crate) ready: BridgeReady,
    readers: Vec<Reader<BridgeReport>>,
    catch_up: RunningCatchUp,
    demands: Option<RunningDemandServer>,
    counters: Vec<Arc<BridgeCounters>>,
}

/// What one thread sends on.
struct Outlets {
    lines: Vec<LineSender>,
    tcp_lines: Vec<TcpLine>,
    requests: Option<UdpReceiver>,
}

impl RunningBridge {
    /// Opens the ports and starts the threads, which wait for the ring. Call before this thread is pinned. `after` is the last tick of the
    /// plants before this one; from the plant's journal come its folder and progress, and the gates of the threads. `sources` leads to the
    /// plant's sources, and has their services, if there are any.
    pub(crate) fn start(
        config: BridgeConfig,
        (gates, journal, after): ([Option<Gate>; 3], Option<Kept>, Seq),
        sources: Option<FarSources>,
        events: &Events,
    ) -> crate::Result<Self> {
        let folder: Option<PathBuf> = journal.as_ref().map(|(folder, _)| folder.clone());
        let mut epochs = Epochs::of(folder.as_deref())?;
        let epoch = epochs.later(Epoch::at(Clock::calibrate().now()));
        let epoch = match config.term.as_ref().and_then(Term::epoch) {
            // What the journal has was numbered before.
            Some(granted) if granted >= epochs.later(Epoch(0)) => granted,
            Some(granted) => {
                let what = format!("the lease is of epoch {}, and the journal has a later one", granted.0);
                return Err(Error::hinted(what, "the plant asks for a later epoch when it is started again"));
            }
            None => epoch,
        };
        let session = BridgeSession { plant: config.plant, epoch };
        epochs.begin(session, Seq(after.0 + 1))?;
        // Plants below compare clocks by the arrival of their requests.
        let options = ReceiveOptions::new(config.requests);
        let requests = UdpReceiver::open(&options).map_err(|error| {
            let what = format!("re-requests cannot be answered at {}", config.requests);
            Error::of_port(what, "[bridge]", error)
        })?;
        let lines = config.lines.iter().map(|line| LineSender::open(line, events));
        let lines = lines.collect::<crate::Result<Vec<_>>>()?;
        let tcp_lines = config.tcp_lines.iter().map(|line| TcpLine::open(line, config.tls.as_ref(), session));
        let tcp_lines = tcp_lines.collect::<crate::Result<Vec<_>>>()?;
        let [gate_of_catch_up, mut gates @ ..] = gates;
        let mut counters = vec![Arc::<BridgeCounters>::default()];
        let start_demands =
            |(link, services)| RunningDemandServer::start(link, services, &counters[0], events);
        let (demands, to_demands) = sources.map(start_demands).transpose()?.unzip();
        let (catch_up, address) = RunningCatchUp::start(
            &config,
            (epochs, gate_of_catch_up, journal.clone()),
            to_demands,
            &counters[0],
            events,
        )?;
        let ready = BridgeReady {
            session: session.to_string(),
            requests: requests.local_address(),
            catch_up: address,
            tcp_lines: tcp_lines.iter().map(TcpLine::address).collect(),
        };
        let has_both = !lines.is_empty() && !tcp_lines.is_empty();
        let mut outlets = vec![("bridge", Outlets { lines, tcp_lines, requests: Some(requests) })];
        if has_both {
            // TLS costs more than a datagram: the lines of datagrams do not wait for it.
            let tcp_lines = std::mem::take(&mut outlets[0].1.tcp_lines);
            outlets.push(("bridge-tcp", Outlets { lines: Vec::new(), tcp_lines, requests: None }));
            counters.push(Arc::default());
        }
        let mut readers = Vec::new();
        for (((name, outlets), counted), gate) in outlets.into_iter().zip(&counters).zip(&mut gates) {
            let (gate, journal, term) = (gate.take(), journal.clone(), config.term.clone());
            let (counted, of_catch_up) = (Arc::clone(counted), Arc::clone(&counters[0]));
            let (packer, of_thread) = (Packer::new(session, Seq(after.0 + 1), config.packer), events.clone());
            readers.push(Reader::start(name, events, move |ring, subscriber, signs| {
                let ring = RingCursor::new(name, OnRing { ring, subscriber }, gate, &of_thread);
                let place = SequenceCursor::new(ring, journal, after, "for the plants below");
                let clock = Clock::calibrate();
                let report = BridgeReport { session: session.to_string(), ..BridgeReport::default() };
                let Outlets { lines, tcp_lines, requests } = outlets;
                let (frame, sent) = (Vec::new(), clock.now());
                let out = Out { packer, lines, tcp_lines, frame, report, sent, events: of_thread };
                let batch = Batch::new(REQUESTS, REQUEST_BYTES);
                Sending { place, clock, session, out, requests, batch, signs, counted, of_catch_up, term }
                    .run()
            })?);
        }
        Ok(Self { ready, readers, catch_up, demands, counters })
    }

    /// The ring exists. Returns the places on it that must be [exempt](tapeline_ring::Publisher) from the stall limit.
    pub(crate) fn join(&mut self, ring: &tapeline_ring::Name) -> crate::Result<tapeline_ring::SubscriberId> {
        self.readers.iter_mut().try_for_each(|reader| reader.join(ring).map(|_| ()))?;
        self.catch_up.join(ring)
    }

    /// Returns access to the figures.
    pub(crate) fn view(&self) -> BridgeView {
        BridgeView {
            session: self.ready.session.clone(),
            pulses: self.readers.iter().map(Reader::pulse).collect::<Vec<Pulse>>(),
            counters: self.counters.clone(),
        }
    }

    /// The ring has ended: waits until the threads have ended.
    pub(crate) fn end(self) -> crate::Result<BridgeReport> {
        let caught_up = self.catch_up.end();
        if let Some(demands) = self.demands {
            demands.end();
        }
        let reports = self.readers.into_iter().map(Reader::end).collect::<Vec<_>>();
        let mut all = BridgeReport { caught_up: caught_up?, ..BridgeReport::default() };
        for report in reports {
            let report = report?;
            all = BridgeReport {
                session: report.session,
                ticks: all.ticks.max(report.ticks),
                missing: all.missing.max(report.missing),
                datagrams: all.datagrams + report.datagrams,
                unsent: all.unsent + report.unsent,
                back_pressured: all.back_pressured + report.back_pressured,
                drivers_lost: all.drivers_lost + report.drivers_lost,
                requests: all.requests + report.requests,
                sent_again: all.sent_again + report.sent_again,
                unanswered: all.unanswered + report.unanswered,
                caught_up: all.caught_up,
                cut_off: all.cut_off + report.cut_off,
                refused: all.refused + report.refused,
            };
        }
        Ok(all)
    }
}

/// The sending thread.
struct Sending {
    place: SequenceCursor,
    clock: Clock,
    session: BridgeSession,
    out: Out,
    /// The re-request server, if it is this thread's.
    requests: Option<UdpReceiver>,
    batch: Batch,
    signs: Arc<Signs>,
    counted: Arc<BridgeCounters>,
    /// Those that the catch-up server writes.
    of_catch_up: Arc<BridgeCounters>,
    term: Option<Term>,
}

/// Everything except the source of the ticks.
struct Out {
    packer: Packer,
    lines: Vec<LineSender>,
    tcp_lines: Vec<TcpLine>,
    /// The last tick as it stands on the ring.
    frame: Vec<u8>,
    report: BridgeReport,
    /// When the last datagram was sent.
    sent: Nanos,
    events: Events,
}

impl Sending {
    /// Sends until the ring ends, and then that it has.
    fn run(mut self) -> crate::Result<BridgeReport> {
        let (mut housekept, mut is_alive) = (self.clock.now(), true);
        loop {
            let now = self.clock.now();
            self.signs.turned.store(now.0, Ordering::Relaxed);
            self.out.turn(now);
            let (taken, is_over) = self.take_ticks()?;
            if !self.may_send() {
                break;
            }
            self.out.send(now);
            let heartbeat = self.out.packer.heartbeat();
            let is_behind = self.out.follow(heartbeat, HEARTBEAT_NS, (now, &self.clock));
            let asked = self.answer(now)?;
            if is_over {
                break;
            }
            crate::error::ensure!(is_alive || taken > 0 || self.place.is_held(), "the plant has died");
            if now.since(housekept) >= HOUSEKEEPING_NS {
                housekept = now;
                self.clock.recalibrate();
                self.count();
                is_alive = self.place.subscriber().publisher_alive()?;
            }
            if taken > 0 || asked > 0 {
                continue;
            }
            if self.place.is_held() {
                // The ring has ticks, so waiting on it would return at once.
                std::thread::sleep(WHILE_HELD);
            } else {
                let is_short = self.requests.is_some() || is_behind || self.out.is_time_due(now);
                let sleep = if is_short { SLEEP } else { LONG_SLEEP };
                self.place.subscriber().wait(Wait::Park, sleep);
            }
        }
        self.take_leave()?;
        let (statistics, followers) = (*self.out.packer.statistics(), self.out.followers());
        Ok(BridgeReport {
            cut_off: followers.cut_off,
            refused: followers.refused,
            requests: statistics.requests,
            sent_again: statistics.messages,
            unanswered: statistics.unanswered.iter().sum(),
            drivers_lost: self.out.drivers_lost(),
            ..self.out.report
        })
    }

    /// Whether the plant still numbers: another one may have begun when this one's lease is over.
    fn may_send(&self) -> bool {
        self.term.as_ref().is_none_or(|term| term.check().is_ok())
    }

    /// Writes the figures.
    fn count(&self) {
        let (statistics, followers) = (self.out.packer.statistics(), self.out.followers());
        let counted = &self.counted;
        for (counter, value) in [
            (&counted.next, self.out.packer.next().0),
            (&counted.unsent, self.out.report.unsent),
            (&counted.back_pressured, self.out.report.back_pressured),
            (&counted.drivers_lost, self.out.drivers_lost()),
            (&counted.requests, statistics.requests),
            (&counted.sent_again, statistics.messages),
            (&counted.unanswered, statistics.unanswered.iter().sum()),
            (&counted.followers, followers.now),
            (&counted.cut_off, followers.cut_off),
            (&counted.refused, followers.refused),
        ] {
            counter.store(value, Ordering::Relaxed);
        }
        *counted.aeron.lock().unwrap_or_else(PoisonError::into_inner) = self.out.of_driver();
    }

    /// Says that the plant has ended, and answers those who lack its last ticks.
    fn take_leave(&mut self) -> crate::Result<()> {
        let (end, begun) = (self.out.packer.end(), self.clock.now());
        let (mut said, mut asked) = (Nanos(0), begun);
        loop {
            let now = self.clock.now();
            if !self.may_send() {
                return Ok(());
            }
            self.out.turn(now);
            if now.since(said) >= FAREWELL_NS {
                said = now;
                self.out.send_to_all(&end);
            }
            let is_behind = self.out.follow(end, FAREWELL_NS, (now, &self.clock));
            // A plant that catches up connects to its lines afterwards.
            let is_awaited = is_behind || self.of_catch_up.catching_up.load(Ordering::Relaxed) > 0;
            if self.answer(now)? > 0 || is_awaited {
                asked = now;
            }
            if now.since(asked) >= LAST_WORDS_NS || now.since(begun) >= LONGEST_LEAVE_NS {
                return Ok(());
            }
            match &self.requests {
                Some(requests) if !is_behind => _ = requests.wait(LAST_SLEEP),
                _ => std::thread::sleep(SLEEP),
            }
        }
    }

    /// Takes up to a batch of ticks. Returns their number and whether the ring has ended.
    fn take_ticks(&mut self) -> crate::Result<(usize, bool)> {
        let Self { place, out, signs, .. } = self;
        place.take(BATCH, |taken| match taken {
            // What the plant says outside the sequence is not the others' business.
            Taken::Tick(tick) if tick.header.seq.is_outside() => {}
            Taken::Tick(tick) => {
                out.report.ticks += 1;
                out.frame.clear();
                tick.write(&mut out.frame);
                out.packer.tick(tick.header.seq, &out.frame);
            }
            Taken::Gone(count) => {
                out.report.missing += count;
                signs.missing.fetch_add(count, Ordering::Relaxed);
            }
        })
    }

    /// Answers the re-requests that have arrived. Returns their number.
    fn answer(&mut self, now: Nanos) -> crate::Result<usize> {
        let Self { requests: Some(requests), batch, out, clock, session, .. } = self else { return Ok(0) };
        let count = requests.receive(batch).context("the bridge cannot read re-requests")?;
        let mut clocks = 0;
        for request in batch.iter() {
            if let Some(asked) = ClockExchange::decode(request.bytes) {
                clocks += 1;
                let answered = clock.now();
                let received = request.received.unwrap_or(answered);
                let answer = ClockExchange { received, answered, error_ns: clock.error_ns(), ..asked };
                if asked.plant == session.plant {
                    // Without an answer the plant below asks again.
                    let _ = requests.send_to(&answer.encode(), request.source);
                }
                continue;
            }
            if let Some(answer) = out.packer.answer(*request.source.ip(), request.bytes, now) {
                // A failed answer must not end the service for the others: it is requested again.
                let _ = requests.send_to(answer, request.source);
            }
        }
        // Who only compares clocks is not waited for.
        Ok(count - clocks)
    }
}

impl Out {
    /// Keeps the lines' connections.
    fn turn(&mut self, now: Nanos) {
        self.lines.iter_mut().for_each(|line| line.turn(now, &self.events));
    }

    /// Gives the plants that follow over TCP what they take; `saying` is said every `every_ns` to those that have everything. Returns whether
    /// one lacks something.
    fn follow(&mut self, saying: [u8; HEADER_BYTES], every_ns: i64, times: (Nanos, &Clock)) -> bool {
        let Self { packer, tcp_lines, events, .. } = self;
        let saying = WhenQuiet { datagram: saying, every_ns };
        let each = |is_behind, line: &mut TcpLine| line.turn(packer, saying, times, events) | is_behind;
        tcp_lines.iter_mut().fold(false, each)
    }

    /// Whether a plant that follows over TCP is about to ask for the time.
    fn is_time_due(&self, now: Nanos) -> bool {
        self.tcp_lines.iter().any(|line| line.is_time_due(now))
    }

    fn followers(&self) -> Followers {
        self.tcp_lines.iter().map(TcpLine::counts).fold(Followers::default(), |all, line| Followers {
            now: all.now + line.now,
            cut_off: all.cut_off + line.cut_off,
            refused: all.refused + line.refused,
        })
    }

    /// Returns what media drivers count for all lines over Aeron together.
    fn of_driver(&self) -> Option<AeronSendingSnapshot> {
        let lines = self.lines.iter().filter_map(LineSender::of_driver);
        lines.reduce(|all, line| AeronSendingSnapshot {
            naks: all.naks + line.naks,
            window_bytes: all.window_bytes.min(line.window_bytes),
        })
    }

    fn drivers_lost(&self) -> u64 {
        self.lines.iter().map(LineSender::drivers_lost).sum()
    }

    /// Sends the ticks that were taken, or a heartbeat if one is due.
    fn send(&mut self, now: Nanos) {
        if self.lines.is_empty() {
            return self.packer.skip();
        }
        let count = self.packer.pack();
        if count == 0 {
            if now.since(self.sent) >= HEARTBEAT_NS {
                self.sent = now;
                let heartbeat = self.packer.heartbeat();
                self.send_to_all(&heartbeat);
            }
            return;
        }
        let Self { packer, lines, report, sent, events, .. } = self;
        (*sent, report.datagrams) = (now, report.datagrams + count as u64);
        for line in lines {
            let untaken = line.send_packed(packer, now, events);
            report.unsent += untaken.unsent;
            report.back_pressured += untaken.back_pressured;
        }
    }

    fn send_to_all(&mut self, datagram: &[u8]) {
        for line in &mut self.lines {
            // The next one says the same.
            line.send(datagram);
        }
    }
}
