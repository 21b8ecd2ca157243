//! A plant: sockets in, ring out, on one thread, or one more for each feed that receives; other threads read
//! its ring.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tapeline_measure::{Clock, Nanos};
use tapeline_plant::{ItemSource, Items, Note, Refused, RingPublish, Seq, Sequencer, StampedBy};
use tapeline_ring::SubscriberId;
use tapeline_wire::http::Server;
use tapeline_wire::udp::{UdpReceiver, wait_any, wait_any_or};

use crate::bridge::RunningBridge;
use crate::certificates::CertificateWatch;
use crate::config::{Config, Receive};
use crate::error::Context;
use crate::events::Events;
use crate::hub::counting::HubFigures;
use crate::hub::{Joining, RunningHub};
use crate::image_server::RunningImageServer;
use crate::inputs::inlet::Inlet;
use crate::inputs::intake::{Complaints, LONGEST_SLEEP};
use crate::inputs::recovery::Recovery;
use crate::inputs::venue;
use crate::journal::{Gate, RunningJournal};
use crate::kdb::publishing::Publishing;
use crate::kdb::{KdbReport, RunningKdb};
use crate::numbering::{Lending, Numbering, rows_of};
use crate::otlp::Otlp;
use crate::readers::counting::{
    Counting, FeedFigures, LatestSnapshot, PlantFigures, Served, SnapshotWriter, snapshots_between,
};
use crate::report::{PlantReport, Ready};
use crate::ring::{on_stall, ring_options};
use crate::sources::{RunningSources, far};
use crate::stat::file::{self, Found};
use crate::stat::snapshot;
use crate::upstream::Upstream;
use crate::upstream::demands::{DemandsAbove, RunningDemands};
use crate::zeromq::RunningZeromq;
use crate::{Error, Liveness, Result, Stop, web};

/// Sleeping subscribers are woken after this many datagrams, and after the last of a batch. With a larger
/// number they would sleep through a burst; with a smaller one they would fall asleep again during it.
const WAKE_EVERY: usize = 8;
/// How long the plant sleeps while a retransmission is pending: an answer on the same host takes as long.
const WHILE_RECOVERING: Duration = Duration::from_micros(200);
/// The longest sleep while the plant waits for other threads, which cannot wake it together with sockets.
const BETWEEN_THREADS: Duration = Duration::from_micros(500);
/// How long a plant that was asked to stop still processes input that has arrived.
const LAST_WORDS_NS: i64 = 500_000_000;
/// A plant that stops waits for so long without input: a busy kernel may still have datagrams between sender and socket.
const QUIET_NS: i64 = 20_000_000;
/// How often the clock is compared with the kernel's and the note is rewritten.
const HOUSEKEEPING_NS: i64 = 1_000_000_000;

/// What a turn of the plant's thread found.
enum PlantTurn {
    /// Something has arrived: more may have by now.
    Busy,
    /// Nothing has arrived.
    Idle,
    /// The plant was stopped, or every session has ended.
    Over,
}

struct Running {
    ring: tapeline_ring::Name,
    inlets: Vec<Inlet>,
    /// The plant above, in place of all other inputs.
    upstream: Option<Upstream>,
    sources: Option<RunningSources>,
    /// Where the thread of kdb+ clients finds the sequencer while this thread sleeps; `None` without that thread.
    lending: Option<Lending>,
    clock: Clock,
    journal: Option<RunningJournal>,
    stop: Stop,
    /// Since when the plant stops, and since when nothing has arrived meanwhile.
    stopping: Option<(Nanos, Nanos)>,
    housekept: Nanos,
    /// The ring's name was removed.
    is_name_removed: bool,
    truncated: u64,
    /// Evicted subscribers of the ring, as last reported.
    evicted: u64,
    complaints: Complaints,
    snapshots: SnapshotWriter<PlantFigures>,
    each_second: Option<Box<dyn FnMut()>>,
    events: Events,
}

/// A plant with its sockets open and its ring named. It runs on the thread that opened it.
pub struct Plant {
    config: Config,
    running: Running,
    numbering: Numbering,
    threads: Threads,
    ready: Ready,
    at_end: Option<Box<dyn FnOnce()>>,
}

impl fmt::Debug for Plant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plant").field("ready", &self.ready).finish_non_exhaustive()
    }
}

/// What a plant did and why it ended.
#[derive(Debug)]
pub struct Ended {
    /// The totals.
    pub report: PlantReport,
    /// Why the plant could not continue; `None` if it was stopped or every feed has ended.
    pub refused: Option<Refused>,
    /// The first error of one of its threads, if one failed.
    pub failed: Option<Error>,
}

impl Plant {
    /// Opens sockets, ring and files, and starts the threads. The calling thread becomes the plant's own
    /// thread and is pinned to [`Config::cpu`]. Where files have a size limit, the program should handle
    /// SIGXFSZ, whose default action ends the process. A journal or log at its limit is then an error like a
    /// full disk.
    ///
    /// # Errors
    /// What cannot be opened, with its place in the configuration and advice.
    pub fn open(mut config: Config, stop: &Stop, events: &Events) -> Result<Self> {
        // Before the threads take their parts of the configuration.
        let shares = sources_of(&config);
        let (threads, beside) = Threads::start(&mut config, events)?;
        if let Some((term, journal)) = config.term.as_ref().zip(threads.journal.as_ref()) {
            term.follow(journal.progress());
        }
        let cpu = config.cpu;
        let pin = || cpu.map_or(Ok(()), tapeline_measure::pin);
        // A thread inherits the CPU affinity of its creator, and one that receives, from sockets or from a venue, must have a core of its own.
        if matches!(config.receive, Receive::Inline) && config.feeds.iter().all(|feed| feed.stream.is_none())
        {
            pin()?;
        }
        let excuses = beside.excuses;
        let inputs = (beside.sources, beside.demands, beside.rows, beside.after, shares);
        let (mut running, mut numbering) = Running::open(&config, inputs, stop, beside.snapshots, events)?;
        pin()?;
        let threads = threads.join(&config, &mut running, &mut numbering, (excuses, beside.after))?;
        let publishers = running.sources.as_ref().and_then(|sources| sources.address);
        let ready = Ready {
            kdb: threads.kdb.as_ref().map(|kdb| kdb.listening.clone()),
            publishers,
            web: threads.web.as_ref().map(Server::address),
            zeromq: threads.zeromq.as_ref().map(|zeromq| zeromq.address),
            hub: threads.hub.as_ref().map(|hub| hub.address),
            bridge: threads.bridge.as_ref().map(|bridge| bridge.ready.clone()),
            hub_memory_bytes: threads.hub.as_ref().map(|hub| hub.memory_bytes),
            ..Ready::of(&config)
        };
        Ok(Self { config, running, numbering, threads, ready, at_end: None })
    }

    /// Returns where clients connect.
    #[must_use]
    pub const fn ready(&self) -> &Ready {
        &self.ready
    }

    /// Returns the configuration, without the parts that threads have taken: hub, sources, kdb+, images.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Sets a function that the plant's thread calls about once a second.
    pub fn each_second(&mut self, does: impl FnMut() + 'static) {
        self.running.each_second = Some(Box::new(does));
    }

    /// Sets a function that the plant's thread calls once, when the plant has published its last tick and before the other threads end.
    pub fn at_end(&mut self, does: impl FnOnce() + 'static) {
        self.at_end = Some(Box::new(does));
    }

    /// Returns the view of the plant for its supervisor.
    #[must_use]
    pub fn liveness(&self) -> Liveness {
        Liveness(Arc::clone(&self.threads.latest))
    }

    /// Publishes until the plant is stopped, or, with `until_end_of_session`, until every feed has ended its
    /// session. Then ends the ring, sends the clients what is queued for them, and ends the threads.
    #[must_use]
    pub fn run(self, until_end_of_session: bool) -> Ended {
        let Self { config, mut running, numbering, threads, at_end, .. } = self;
        let (ring, events) = (config.ring.clone(), running.events.clone());
        events.note(format_args!("the plant begins: ring {ring}, process {}", std::process::id()));
        let (mut numbering, outcome) = running.run(numbering, &config, until_end_of_session);
        let refused = outcome.err();
        if let Some(at_end) = at_end {
            at_end();
        }
        let mut report = running.report(&mut numbering.sequencer, &config, refused.as_ref());
        let mut failed = Failed::default();
        let why = match (&refused, running.stop.is_requested()) {
            (Some(refused), _) => refused.to_string(),
            (None, true) => "somebody asked it to (SIGTERM or SIGINT)".to_owned(),
            (None, false) => "its feeds have ended".to_owned(),
        };
        threads.end(running, numbering, &mut report, &mut failed);
        events.note(format_args!("the plant ends: ring {ring}, after {} ticks: {why}", report.ticks));
        Ended { report, refused, failed: failed.0 }
    }
}

struct Threads {
    journal: Option<RunningJournal>,
    hub: Option<RunningHub>,
    zeromq: Option<RunningZeromq>,
    kdb: Option<RunningKdb>,
    bridge: Option<RunningBridge>,
    demands: Option<RunningDemands>,
    image_server: Option<RunningImageServer>,
    web: Option<Server>,
    otlp: Option<Otlp>,
    counting: Counting,
    latest: Arc<LatestSnapshot>,
    #[cfg(feature = "aeron")]
    aeron_driver: Option<tapeline_wire::aeron::EmbeddedAeronDriver>,
}

/// Tells whether a gate holds a subscriber back, which exempts the subscriber from the stall limit meanwhile.
type Excuse = Box<dyn Fn(SubscriberId) -> bool + Send>;

/// What the plant's thread gets from the other threads.
struct Beside {
    sources: Option<RunningSources>,
    /// The demands on the plant above.
    demands: Option<Arc<DemandsAbove>>,
    /// What kdb+ clients publish.
    rows: Option<(Publishing, Lending)>,
    snapshots: SnapshotWriter<PlantFigures>,
    /// The last tick of the plants before this one.
    after: Seq,
    /// One for each reader with a gate.
    excuses: Vec<Excuse>,
}

impl Threads {
    /// Opens the ports and starts the threads, which wait for the ring. Call before the plant's thread is
    /// pinned: the others inherit its CPU affinity.
    fn start(config: &mut Config, events: &Events) -> Result<(Self, Beside)> {
        #[cfg(feature = "aeron")]
        let aeron_driver =
            config.aeron_driver.take().map(|driver| start_driver(&driver, events)).transpose()?;
        #[cfg(not(feature = "aeron"))]
        crate::error::ensure!(
            config.aeron_driver.is_none(),
            "a media driver is wanted, and this build has no Aeron"
        );
        let is_awaited = config.bridge.is_some();
        let certificates = CertificateWatch::all(config);
        let start_journal = |journal| RunningJournal::start(journal, is_awaited, events);
        let journal = config.journal.as_ref().map(start_journal).transpose()?;
        let after = journal.as_ref().map(|journal| journal.after).unwrap_or_default();
        let mut excuses = Vec::new();
        let mut gate = || {
            let gate = journal.as_ref().and_then(RunningJournal::gate);
            excuses.extend(gate.as_ref().map(Gate::excuse));
            gate
        };
        let serve_images = |images| RunningImageServer::start(images, events);
        let image_server = config.images.take().map(serve_images).transpose()?;
        let (sources, mut demanding, far) = far::open(config, events)?;
        let demands = RunningDemands::of_hub(config, &mut demanding, events)?;
        let (snapshots, of_plant) = snapshots_between(PlantFigures::default);
        let (hub_snapshots, of_hub) = snapshots_between(HubFigures::with_latencies);
        let begin = config.hub.as_ref().map(crate::hub::HubConfig::begin);
        let latest = Arc::new(LatestSnapshot::default());
        let web = config.hub.as_mut().map(|hub| web::open(hub, &latest)).transpose()?.flatten();
        let otlp = config.otlp.take().map(|otlp| Otlp::start(otlp, &latest, events)).transpose()?;
        let zeromq = config.hub.as_mut().and_then(|hub| hub.zeromq.take());
        let most_tick = ring_options(config).longest_frame();
        let kept = config.journal.as_ref().zip(journal.as_ref());
        let kept = kept.map(|(config, journal)| (config.folder.clone(), journal.progress()));
        let zeromq = zeromq.map(|zeromq| RunningZeromq::start(zeromq, (gate(), kept.clone(), after), events));
        let zeromq = zeromq.transpose()?;
        let kdb = config.kdb.take();
        let of_rows = (most_tick, rows_of(config, sources.is_some()));
        let kdb = kdb.map(|kdb| RunningKdb::start(kdb, (gate(), kept.clone(), after), of_rows, events));
        let (kdb, rows) = kdb.transpose()?.unzip();
        let rows = rows.flatten();
        let start_hub = |hub| RunningHub::start(hub, demanding, hub_snapshots, gate(), events);
        let hub = config.hub.take().map(start_hub).transpose()?;
        let gates = [(); 3].map(|()| journal.as_ref().map(RunningJournal::gate_of_bridge));
        excuses.extend(gates.iter().flatten().map(Gate::excuse));
        let start_bridge = |bridge| RunningBridge::start(bridge, (gates, kept, after), far, events);
        let bridge = config.bridge.take().map(start_bridge).transpose()?;
        let of_hub = begin.zip(hub.as_ref()).map(|(begin, hub)| {
            let (address, web) = (hub.address.to_string(), web.as_ref().map(|web| web.address().to_string()));
            (of_hub, snapshot::Hub { address, web, ..begin })
        });
        // Ends, and removes its file, before the plant has reported its end.
        let progress = journal.as_ref().map(RunningJournal::progress);
        let served = Served {
            bridge: bridge.as_ref().map(RunningBridge::view),
            kdb: kdb.as_ref().map(RunningKdb::standing),
            zeromq: zeromq.as_ref().map(RunningZeromq::standing),
            term: config.term.clone(),
        };
        let counting =
            Counting::start(config, of_plant, of_hub, (progress, served), certificates, &latest, events)?;
        let of_upstream = demands.as_ref().map(|demands| Arc::clone(&demands.shared));
        let threads = Self {
            journal,
            hub,
            zeromq,
            kdb,
            bridge,
            demands,
            image_server,
            web,
            otlp,
            counting,
            latest,
            #[cfg(feature = "aeron")]
            aeron_driver,
        };
        Ok((threads, Beside { sources, demands: of_upstream, rows, snapshots, after, excuses }))
    }

    /// The ring exists. Returns when every thread reads it, before the first tick: they miss nothing.
    fn join(
        mut self,
        config: &Config,
        running: &mut Running,
        numbering: &mut Numbering,
        (excuses, after): (Vec<Excuse>, Seq),
    ) -> Result<Self> {
        self.counting.begin();
        let ring = numbering.sequencer.publisher().ring();
        if let Some(journal) = &mut self.journal {
            ring.exempt(journal.reader.join(&config.ring)?);
        }
        running.journal = self.journal.take();
        for excuse in excuses {
            ring.excuse_while(excuse);
        }
        let hub = self.hub.take().map(|hub| hub.join(&config.ring, Joining::First(after))).transpose()?;
        self.hub = hub.map(|(hub, _)| hub);
        self.zeromq.iter_mut().try_for_each(|zeromq| zeromq.reader.join(&config.ring).map(|_| ()))?;
        self.kdb.iter_mut().try_for_each(|kdb| kdb.reader.join(&config.ring).map(|_| ()))?;
        if let Some(bridge) = &mut self.bridge {
            ring.exempt(bridge.join(&config.ring)?);
        }
        if let Some(image_server) = &mut self.image_server {
            ring.exempt(image_server.join(&config.ring)?);
        }
        Ok(self)
    }

    /// Ends the ring, and then the hub after its clients have received their queued output. If one thread
    /// fails, the others are still waited for: the journal writes the rest of the ring.
    fn end(self, mut running: Running, numbering: Numbering, report: &mut PlantReport, failed: &mut Failed) {
        let journal = running.journal.take();
        let published = numbering.rows.as_ref().map(Publishing::report);
        failed.unless(running.close(numbering.sequencer));
        report.hub = self.hub.and_then(|hub| failed.unless(hub.end()));
        if let Some(demands) = self.demands {
            demands.end();
        }
        report.zeromq = self.zeromq.and_then(|zeromq| failed.unless(zeromq.reader.end()));
        let kdb = self.kdb.and_then(|kdb| failed.unless(kdb.reader.end()));
        report.kdb = kdb.map(|kdb| KdbReport { published: published.unwrap_or_default(), ..kdb });
        report.bridge = self.bridge.and_then(|bridge| failed.unless(bridge.end()));
        if let Some(image_server) = self.image_server {
            failed.unless(image_server.end());
        }
        report.journal = journal.and_then(|journal| failed.unless(journal.reader.end()));
        drop(self.web);
        drop(self.otlp);
        drop(self.counting);
        #[cfg(feature = "aeron")]
        drop(self.aeron_driver);
    }
}

/// What the plant's thread takes in: its sources, the demands on the plant above, rows of kdb+ clients, the last tick of the plants before this one,
/// and what shares the items.
type Inputs =
    (Option<RunningSources>, Option<Arc<DemandsAbove>>, Option<(Publishing, Lending)>, Seq, Vec<ItemSource>);

/// Starts the media driver. Its end is reported by the lines that lose it.
#[cfg(feature = "aeron")]
fn start_driver(
    config: &crate::config::AeronDriverConfig,
    events: &Events,
) -> Result<tapeline_wire::aeron::EmbeddedAeronDriver> {
    let driver =
        tapeline_wire::aeron::EmbeddedAeronDriver::start(config.folder.as_deref()).map_err(|error| {
            let hint = error.hint().unwrap_or_default();
            Error::hinted("the plant has no media driver", hint).because(error)
        })?;
    events.info(format_args!("a media driver of Aeron runs in {}", driver.folder().display()));
    Ok(driver)
}

/// The first error, while the remaining threads are still ended.
#[derive(Default)]
struct Failed(Option<Error>);

impl Failed {
    /// Returns the result, or records the error.
    fn unless<T>(&mut self, done: Result<T>) -> Option<T> {
        done.map_err(|error| _ = self.0.get_or_insert(error)).ok()
    }
}

/// The sources of items. Each of them has reserved items.
fn sources_of(config: &Config) -> Vec<ItemSource> {
    let feeds = (0..config.feeds.len()).map(|number| ItemSource::Channel(number as u16));
    let kdb = config.kdb.iter().map(|kdb| ItemSource::Channel(kdb.channel));
    let services = config.sources.iter().flat_map(|sources| &sources.settings.services);
    feeds.chain(kdb).chain(services.map(|service| ItemSource::Service(service.id))).collect()
}

impl Running {
    fn open(
        config: &Config,
        (sources, demands, rows, after, shares): Inputs,
        stop: &Stop,
        snapshots: SnapshotWriter<PlantFigures>,
        events: &Events,
    ) -> Result<(Self, Numbering)> {
        let inlets = config
            .feeds
            .iter()
            .zip(0u16..)
            .map(|(feed, number)| Inlet::open(feed, number, config, events))
            .collect::<Result<Vec<_>>>()?;
        if let Ok(Found::Live(other)) = file::read(&config.ring)
            && !config.ring.path().exists()
        {
            let what = format!(
                "process {} still publishes ring {}, although the ring's name was removed",
                other.pid, config.ring
            );
            let hint = "end that plant first, or give this plant's ring another name";
            return Err(Error::hinted(what, hint));
        }
        let journal = config.journal.as_ref().map(|journal| (journal.folder.as_path(), after));
        let open_upstream = |upstream| Upstream::open(upstream, journal, demands, events);
        let upstream = config.upstream.as_ref().map(open_upstream).transpose()?;
        let ring = tapeline_ring::Publisher::open(&config.ring, &ring_options(config))
            .map_err(|error| Error::of_ring("cannot publish the plant's ring", error))?;
        let clock = Clock::calibrate();
        let publish = RingPublish::new(ring, on_stall(config.ring.clone(), stop.clone(), events.clone()));
        let mut items = Items::new(config.max_items);
        if !config.feeds.is_empty() {
            // Providers and clients may name any number of items: some must remain for feeds' new symbols.
            items = items.reserve(config.service_id, config.max_items.div_ceil(2));
        }
        items = items.share(shares, config.reserved_items);
        let (rows, lending) = rows.unzip();
        let mut sequencer = Sequencer::new(config.service_id, items, publish).after(after);
        let mut running = Self {
            ring: config.ring.clone(),
            inlets,
            upstream,
            sources,
            lending,
            housekept: clock.now(),
            clock,
            journal: None,
            stop: stop.clone(),
            stopping: None,
            is_name_removed: false,
            truncated: 0,
            evicted: 0,
            complaints: Complaints::to(events),
            snapshots,
            each_second: None,
            events: events.clone(),
        };
        if let Some(nbbo) = &config.nbbo {
            sequencer.consolidate(nbbo);
        }
        running.write_note(&mut sequencer);
        let numbering = Numbering { sequencer, clock, rows, meanwhile: 0, refused: None };
        Ok((running, numbering))
    }

    /// Takes datagrams and publishes ticks until a stop is requested or every session has ended.
    fn run(
        &mut self,
        mut numbering: Numbering,
        config: &Config,
        until_end_of_session: bool,
    ) -> (Numbering, Result<(), Refused>) {
        if let Some(sources) = &mut self.sources
            && let Err(refused) = sources.begin(&self.clock, &mut numbering.sequencer)
        {
            return (numbering, Err(refused));
        }
        loop {
            match self.turn(&mut numbering, config, until_end_of_session) {
                Ok(PlantTurn::Over) => return (numbering, Ok(())),
                Ok(PlantTurn::Busy) => {}
                Ok(PlantTurn::Idle) if config.spin => {}
                Ok(PlantTurn::Idle) => {
                    // External observers see the ring's position while nothing moves.
                    numbering.sequencer.publisher().ring().flush();
                    match &self.lending {
                        // Under a lease, nothing is published before this thread has looked at it.
                        Some(lending) if config.term.is_none() => {
                            numbering.clock = self.clock;
                            numbering = lending.during(numbering, || self.sleep());
                        }
                        _ => self.sleep(),
                    }
                }
                Err(refused) => return (numbering, Err(refused)),
            }
        }
    }

    /// Takes what has arrived, and does the work of each second.
    fn turn(
        &mut self,
        numbering: &mut Numbering,
        config: &Config,
        until_end_of_session: bool,
    ) -> Result<PlantTurn, Refused> {
        if let Some(refused) = numbering.refused.take() {
            return Err(refused);
        }
        if let Some(term) = &config.term {
            term.turn()?;
        }
        let taken = self.take_input(numbering)?;
        if self.journal.as_ref().is_some_and(RunningJournal::has_stopped) {
            return Err(Refused::NotKept);
        }
        let sequencer = &mut numbering.sequencer;
        let now = self.clock.now();
        if self.stop.is_requested() {
            // Input that has arrived is still published, but a feed that never pauses is not followed for
            // ever.
            let (since, quiet) = self.stopping.get_or_insert((now, now));
            if taken > 0 {
                *quiet = now;
            }
            if now.since(*quiet) >= QUIET_NS || now.since(*since) >= LAST_WORDS_NS {
                self.inlets.iter_mut().try_for_each(|inlet| inlet.channel.finish(&self.clock, sequencer))?;
                return Ok(PlantTurn::Over);
            }
        }
        if taken == 0 && until_end_of_session && self.is_over(now) {
            return Ok(PlantTurn::Over);
        }
        if now.since(self.housekept) >= HOUSEKEEPING_NS {
            self.housekept = now;
            self.clock.recalibrate();
            self.look_after_name(sequencer, config)?;
            self.write_note(sequencer);
        }
        Ok(if taken == 0 { PlantTurn::Idle } else { PlantTurn::Busy })
    }

    /// Takes what has arrived from every input, and publishes it. Returns how much that was.
    fn take_input(&mut self, numbering: &mut Numbering) -> Result<usize, Refused> {
        let Numbering { sequencer, rows, meanwhile, .. } = numbering;
        let mut taken = std::mem::take(meanwhile);
        for inlet in &mut self.inlets {
            let (channel, clock) = (&mut inlet.channel, &self.clock);
            let truncated = &mut self.truncated;
            let turn = inlet.source.turn(&mut self.complaints, |arrived| {
                *truncated += u64::from(arrived.truncated);
                let wire = arrived.received.unwrap_or_else(|| clock.now());
                channel.datagram(arrived.line, arrived.bytes, wire, clock, sequencer)?;
                if arrived.left % WAKE_EVERY == 0 {
                    sequencer.publisher().ring().flush();
                }
                Ok(())
            })?;
            taken += turn.taken;
            let come = inlet.take_beside_lines(&self.clock, sequencer)?;
            taken += come;
            let all_read = turn.all_read && come == 0;
            if let Some(recovery) = &mut inlet.recovery
                && recovery.turn(&mut inlet.channel, &self.clock, sequencer)?
            {
                sequencer.publisher().ring().flush();
            }
            // Only now is it certain that a message missing on one line is not unread on another.
            if all_read && inlet.channel.expire(&self.clock, sequencer)? {
                sequencer.publisher().ring().flush();
            }
        }
        if let Some(upstream) = &mut self.upstream {
            taken += upstream.turn(&self.clock, sequencer)?;
        }
        if let Some(sources) = &mut self.sources {
            let has_come = sources.turn(taken > 0, &self.clock, sequencer)?;
            taken += usize::from(has_come);
        }
        if let Some(rows) = rows {
            taken += usize::from(rows.turn(&self.clock, sequencer)?);
        }
        Ok(taken)
    }

    /// Whether no more input is expected.
    fn is_over(&self, now: Nanos) -> bool {
        match &self.upstream {
            Some(upstream) => upstream.is_over(now),
            None => !self.inlets.is_empty() && self.inlets.iter().all(|inlet| inlet.is_over(now)),
        }
    }

    fn sleep(&self) {
        if let Some(upstream) = &self.upstream {
            return upstream.sleep(LONGEST_SLEEP);
        }
        let files = self.inlets.iter().filter_map(|inlet| inlet.file.as_ref());
        let longest = files.map(|file| file.until_due(&self.clock)).fold(LONGEST_SLEEP, Duration::min);
        let recovers = |inlet: &Inlet| inlet.recovery.as_ref().is_some_and(Recovery::is_busy);
        let longest = if self.inlets.iter().any(recovers) { longest.min(WHILE_RECOVERING) } else { longest };
        if let Some(sources) = &self.sources {
            let longest = longest.min(sources.until_due(self.clock.now()));
            let all: Vec<&UdpReceiver> =
                self.inlets.iter().flat_map(|inlet| inlet.source.receivers()).collect();
            let is_threaded = self.is_woken() || self.inlets.iter().any(|inlet| inlet.source.is_thread());
            wait_any_or(&all, sources, if is_threaded { longest.min(BETWEEN_THREADS) } else { longest });
            return;
        }
        let are_sockets = self.inlets.iter().any(|inlet| !inlet.source.receivers().is_empty());
        let longest = if are_sockets && self.is_woken() { longest.min(BETWEEN_THREADS) } else { longest };
        match self.inlets.as_slice() {
            // Either all feeds with lines have a thread, or none has.
            all if all.iter().all(|inlet| inlet.source.receivers().is_empty()) => {
                std::thread::park_timeout(longest);
            }
            [one] => _ = wait_any(one.source.receivers(), longest),
            many => {
                let all: Vec<&UdpReceiver> = many.iter().flat_map(|inlet| inlet.source.receivers()).collect();
                wait_any(&all, longest);
            }
        }
    }

    /// Whether other threads wake this one, which they cannot do while it waits for sockets.
    fn is_woken(&self) -> bool {
        self.lending.is_some() || self.inlets.iter().any(|inlet| inlet.stream.is_some())
    }

    fn write_note(&mut self, sequencer: &mut Sequencer<RingPublish>) {
        self.publish_figures(sequencer);
        self.events.left_out(self.clock.now());
        if let Some(each_second) = &mut self.each_second {
            each_second();
        }
        let states = self.inlets.iter().map(|inlet| inlet.channel.state());
        let (relayed, nowhere) = self.upstream.as_ref().map_or((0, 0), Upstream::counts);
        let counters = || self.inlets.iter().map(|inlet| inlet.channel.counters());
        let note = Note {
            calibration: self.clock.calibration(),
            messages: relayed + counters().map(|counters| counters.messages).sum::<u64>(),
            missing: nowhere + counters().map(|counters| counters.missing).sum::<u64>(),
            state: Note::worst(states.chain(self.upstream.as_ref().map(Upstream::state))),
            kernel_drops: self.kernel_drops(),
            stamped_by: self
                .upstream
                .as_ref()
                .map_or(StampedBy::ThisPlant, |upstream| upstream.stamped_by(self.clock.now())),
        };
        let ring = sequencer.publisher().ring();
        ring.set_note(note.to_words());
        let evicted = ring.evicted();
        if evicted > self.evicted {
            let name = &self.ring;
            let who =
                tapeline_ring::inspect(name).map(|view| crate::report::evicted(&view)).unwrap_or_default();
            let count = evicted - self.evicted;
            let readers = if count == 1 { "reader was" } else { "readers were" };
            self.events.warning(format_args!(
                "{count} {readers} evicted from the ring {name}, after reading nothing for the stall limit: {who}"
            ));
            self.evicted = evicted;
        }
    }

    /// Notices once that the ring's name was removed.
    fn look_after_name(
        &mut self,
        sequencer: &mut Sequencer<RingPublish>,
        config: &Config,
    ) -> Result<(), Refused> {
        // If the system does not answer, the check is repeated later.
        if self.is_name_removed || sequencer.publisher().ring().is_named().unwrap_or(true) {
            return Ok(());
        }
        self.is_name_removed = true;
        self.events.warning_with(
            format_args!(
                "the name of the ring, {}, was removed: current readers continue, new readers cannot join",
                config.ring.path().display()
            ),
            "systemd removes the shared memory of a user whose last session ends, unless RemoveIPC=no is in \
             /etc/systemd/logind.conf; start the plant again to get a ring with a name",
        );
        if config.ends_without_name { Err(Refused::NameRemoved) } else { Ok(()) }
    }

    /// Passes the plant's figures to the counters thread.
    fn publish_figures(&mut self, sequencer: &mut Sequencer<RingPublish>) {
        let publisher = sequencer.publisher();
        let (stalls, stalled_ns) = (publisher.stalls(), publisher.stalled_ns());
        let figures = &mut self.snapshots.figures;
        figures.at = self.clock.now();
        figures.ticks = sequencer.published();
        figures.is_name_removed = self.is_name_removed;
        figures.items = sequencer.items().len();
        (figures.stalls, figures.stalled_ns) = (stalls, stalled_ns);
        let now = figures.at;
        for inlet in &mut self.inlets {
            inlet.log.look(now, &inlet.channel, inlet.source.kernel_drops());
        }
        figures.feeds.clear();
        figures.feeds.extend(self.inlets.iter_mut().map(|inlet| FeedFigures {
            state: inlet.channel.state(),
            counters: *inlet.channel.counters(),
            is_suspect: inlet.channel.damaged_from().is_some(),
            unknown_orders: inlet.channel.normaliser().unknown_orders(),
            kernel_drops: inlet.source.kernel_drops(),
            venue: venue::figures(&inlet.channel),
        }));
        figures.feeds.extend(self.upstream.as_mut().map(Upstream::figures));
        figures.upstream = self.upstream.as_ref().map(|upstream| upstream.snapshot(self.clock.now()));
        if let Some(sources) = &self.sources {
            sources.put_figures(&mut figures.sources, &mut figures.unserved);
        }
        self.snapshots.publish();
    }

    fn kernel_drops(&mut self) -> u64 {
        let of_upstream = self.upstream.as_mut().map_or(0, Upstream::kernel_drops);
        of_upstream + self.inlets.iter_mut().map(|inlet| inlet.source.kernel_drops()).sum::<u64>()
    }

    fn report(
        &mut self,
        sequencer: &mut Sequencer<RingPublish>,
        config: &Config,
        refused: Option<&Refused>,
    ) -> PlantReport {
        self.write_note(sequencer);
        let mut report = PlantReport::of(
            config,
            sequencer,
            self.truncated,
            refused,
            self.inlets.iter_mut().map(|inlet| {
                let (receivers, pool) = inlet.source.end();
                (&inlet.channel, receivers, pool, inlet.recovery.as_ref())
            }),
        );
        report.sources = self.sources.as_ref().map(RunningSources::report);
        report.upstream = self.upstream.as_mut().map(Upstream::report);
        for (feed, inlet) in report.feeds.iter_mut().zip(&self.inlets) {
            feed.damage = inlet.file.as_ref().and_then(|file| file.damage.clone());
        }
        report
    }

    fn close(mut self, mut sequencer: Sequencer<RingPublish>) -> Result<()> {
        self.write_note(&mut sequencer);
        drop(self.inlets);
        if let Some(sources) = self.sources {
            sources.end();
        }
        sequencer.into_publisher().close().context("cannot end the plant's ring")
    }
}
