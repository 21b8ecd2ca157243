//! The plant's counters: a thread takes figures from the plant's and the hub's threads once a second, makes a
//! snapshot of them, writes it to the counters file, and serves it over HTTP.
//!
//! Those threads fill in numbers and exchange them for an empty set. The exchange takes a lock for its own
//! duration, and only if the lock is free: those threads never wait. Percentiles, rates, texts and files are
//! made here.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tapeline_journal::Progress;
use tapeline_measure::{Clock, Nanos, Usage};
use tapeline_plant::sources::{self as source, Standing};
use tapeline_ring::Name;

use crate::bridge::counters::BridgeView;
use crate::certificates::CertificateWatch;
use crate::config::Config;
use crate::error::Context;
use crate::events::Events;
use crate::hub::counting::{HubFigures, Merged};
use crate::lease::Term;
use crate::readers::reader::Pulse;
use crate::readers::web;
use crate::stat::file::CountersFile;
use crate::stat::snapshot::{
    Backpressure, FeedSnapshot, Hub, Journal, LATE_NS, LAYOUT, Outlet, Part, Process, ReaderSnapshot,
    Snapshot, SourceSnapshot, Unserved, UpstreamSnapshot, VenueSnapshot,
};

/// How often this thread looks for new figures; the others write once a second.
const LOOK: Duration = Duration::from_millis(200);
/// How often the file is written even without new figures, so that a hub that hangs is visible.
const AT_LEAST_NS: i64 = 1_000_000_000;

/// The set of figures that is exchanged when one thread writes, and when the other reads.
#[derive(Debug)]
struct Between<T> {
    figures: T,
    is_new: bool,
}

#[derive(Debug)]
pub(crate) struct SnapshotWriter<T> {
    /// The set to fill in. After an exchange it contains the set that was read two exchanges ago.
    pub(crate) figures: T,
    between: Arc<Mutex<Between<T>>>,
}

#[derive(Debug)]
pub(crate) struct SnapshotReader<T> {
    /// The figures read last.
    pub(crate) figures: T,
    between: Arc<Mutex<Between<T>>>,
}

/// Both sides; `new` makes a set.
pub(crate) fn snapshots_between<T>(new: impl Fn() -> T) -> (SnapshotWriter<T>, SnapshotReader<T>) {
    let between = Arc::new(Mutex::new(Between { figures: new(), is_new: false }));
    (
        SnapshotWriter { figures: new(), between: Arc::clone(&between) },
        SnapshotReader { figures: new(), between },
    )
}

impl<T> SnapshotWriter<T> {
    /// Hands the figures over. Returns whether that was possible. If not, the previous figures have not been
    /// read yet: try again later. The cost is an exchange of the bytes of one set.
    pub(crate) fn publish(&mut self) -> bool {
        let Ok(mut between) = self.between.try_lock() else { return false };
        if between.is_new {
            return false;
        }
        std::mem::swap(&mut between.figures, &mut self.figures);
        between.is_new = true;
        true
    }
}

impl<T> SnapshotReader<T> {
    /// Takes the figures that were written, and returns whether there were any; the set read before goes back.
    pub(crate) fn refresh(&mut self) -> bool {
        let mut between = self.between.lock().unwrap_or_else(PoisonError::into_inner);
        if !between.is_new {
            return false;
        }
        std::mem::swap(&mut between.figures, &mut self.figures);
        between.is_new = false;
        true
    }
}

#[derive(Debug, Default)]
pub(crate) struct PlantFigures {
    pub(crate) at: Nanos,
    pub(crate) ticks: u64,
    pub(crate) is_name_removed: bool,
    pub(crate) items: usize,
    pub(crate) stalls: u64,
    pub(crate) stalled_ns: u64,
    /// In the order of the configuration.
    pub(crate) feeds: Vec<FeedFigures>,
    pub(crate) sources: Vec<SourceFigures>,
    /// Published services, each with its number of items that no source serves any more.
    pub(crate) unserved: Vec<(String, usize)>,
    pub(crate) upstream: Option<UpstreamSnapshot>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct SourceFigures {
    pub(crate) name: String,
    pub(crate) is_publisher: bool,
    pub(crate) standing: Standing,
    pub(crate) items: usize,
    /// Items that are published, and items buffered as a standby until the serving source disconnects.
    pub(crate) serves: usize,
    pub(crate) stands_by: usize,
    /// Services, and this source's part in each.
    pub(crate) services: Vec<(String, source::SourceRole)>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct FeedFigures {
    pub(crate) state: tapeline_plant::State,
    pub(crate) counters: tapeline_plant::ChannelCounters,
    /// What the feed publishes may be wrong: messages were lost, or were sent before the plant started.
    pub(crate) is_suspect: bool,
    pub(crate) unknown_orders: u64,
    pub(crate) kernel_drops: u64,
    pub(crate) venue: Option<VenueSnapshot>,
}

/// The last snapshot, for other threads.
#[derive(Debug, Default)]
pub(crate) struct LatestSnapshot(Mutex<Arc<Snapshot>>);

impl LatestSnapshot {
    /// The snapshot written last.
    pub(crate) fn read(&self) -> Arc<Snapshot> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn put(&self, snapshot: Arc<Snapshot>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }
}

#[derive(Debug)]
pub(crate) struct Counting {
    /// One message starts the thread's work; dropping the sender ends it.
    control: Option<Sender<()>>,
    /// The thread has begun: the file exists.
    begun: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

/// Threads other than the hub that serve clients.
#[derive(Debug, Default)]
pub(crate) struct Served {
    pub(crate) kdb: Option<Serving>,
    pub(crate) zeromq: Option<Serving>,
    pub(crate) bridge: Option<BridgeView>,
    pub(crate) term: Option<Term>,
}

/// Such a thread and its address.
#[derive(Clone, Debug)]
pub(crate) struct Serving {
    pub(crate) pulse: Pulse,
    pub(crate) address: String,
}

impl Serving {
    /// Reads the thread's current state into the outlet.
    fn look(&self, before: &mut Option<Outlet>) {
        let outlet =
            before.get_or_insert_with(|| Outlet { address: self.address.clone(), ..Outlet::default() });
        match self.pulse.look() {
            Some((turned, missing)) => (outlet.heard_ns, outlet.missing) = (turned.0, missing),
            None => outlet.ended = true,
        }
    }
}

impl Counting {
    /// Starts the thread, which does nothing before [`begin`](Self::begin). Call before the plant's thread is
    /// pinned. `hub` has the hub's figures, and what is known of it from the start.
    pub(crate) fn start(
        config: &Config,
        plant: SnapshotReader<PlantFigures>,
        hub: Option<(SnapshotReader<HubFigures>, Hub)>,
        (journal, served): (Option<Arc<Progress>>, Served),
        [clients, others @ ..]: [Option<CertificateWatch>; 3],
        latest: &Arc<LatestSnapshot>,
        events: &Events,
    ) -> crate::Result<Self> {
        let (control, told) = channel();
        let (tell, begun) = channel();
        let first = Snapshot {
            layout: LAYOUT.to_owned(),
            plant: config.name.clone(),
            ring: config.ring.to_string(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            feeds: feeds_of(config),
            hub: hub.as_ref().map(|(_, begin)| begin.clone()),
            ..Snapshot::default()
        };
        let hub = hub.map(|(latest, _)| (latest, Merged::default()));
        let (ring, latest, events) = (config.ring.clone(), Arc::clone(latest), events.clone());
        let run = move || {
            let mut snapshot = first;
            let clock = Clock::calibrate();
            snapshot.started_ns = clock.now().0;
            // Until the plant has its ring, the file may belong to another plant.
            if told.recv().is_err() {
                return;
            }
            let file = CountersFile::of(&ring);
            let mut counter = Counter {
                clock,
                ring,
                file,
                complained: false,
                snapshot,
                usage: None,
                silent: Vec::new(),
                plant,
                hub,
                journal,
                served,
                latest,
                clients,
                others: others.into_iter().flatten().collect(),
                events,
            };
            counter.write();
            let _ = tell.send(());
            counter.run(&told);
        };
        let thread = std::thread::Builder::new().name("counters".to_owned()).spawn(run);
        let thread = Some(thread.context("cannot start the thread that writes the counters")?);
        Ok(Self { control: Some(control), begun, thread })
    }

    /// The plant has its ring: returns when the counters are visible to other processes.
    pub(crate) fn begin(&self) {
        if let Some(control) = &self.control
            && control.send(()).is_ok()
        {
            let _ = self.begun.recv();
        }
    }
}

impl Drop for Counting {
    /// Removes the file.
    fn drop(&mut self) {
        self.control = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Counter {
    clock: Clock,
    ring: Name,
    file: CountersFile,
    /// An error of writing the file was reported.
    complained: bool,
    /// The threads of which it was reported that they are silent.
    silent: Vec<&'static str>,
    snapshot: Snapshot,
    usage: Option<Usage>,
    plant: SnapshotReader<PlantFigures>,
    hub: Option<(SnapshotReader<HubFigures>, Merged)>,
    journal: Option<Arc<Progress>>,
    served: Served,
    latest: Arc<LatestSnapshot>,
    /// The certificate for clients, of which the hub itself warns.
    clients: Option<CertificateWatch>,
    /// The certificates for publishers and for plants below.
    others: Vec<CertificateWatch>,
    events: Events,
}

impl Counter {
    fn run(&mut self, stopped: &Receiver<()>) {
        while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            let mut is_new = false;
            if self.plant.refresh() {
                merge_plant(&mut self.snapshot, &self.plant.figures);
                is_new = true;
            }
            if let (Some((latest, merged)), Some(hub)) = (&mut self.hub, &mut self.snapshot.hub)
                && latest.refresh()
            {
                merged.take(hub, &mut latest.figures);
                is_new = true;
            }
            let quiet = self.clock.now().since(Nanos(self.snapshot.written_ns));
            if is_new || quiet >= AT_LEAST_NS {
                self.clock.recalibrate();
                self.write();
            }
        }
    }

    /// Reports a thread that has become silent, or that is heard again. One that has ended says so itself.
    fn tell_silence(&mut self) {
        for thread in self.snapshot.threads() {
            let silent_ns = self.snapshot.written_ns.saturating_sub(thread.heard_ns);
            let is_silent = thread.heard_ns > 0 && !thread.ended && silent_ns >= LATE_NS;
            let told = self.silent.iter().position(|name| *name == thread.name);
            match (is_silent, told) {
                (true, None) => {
                    self.silent.push(thread.name);
                    let seconds = silent_ns / 1_000_000_000;
                    let why = match web::health::holder(&self.snapshot) {
                        Some(reader) if thread.name == "plant" => {
                            format!("it waits for reader {reader} of the full ring")
                        }
                        _ => "it hangs, or gets no processor time".to_owned(),
                    };
                    let name = thread.name;
                    self.events.warning(format_args!(
                        "the thread {name} has reported nothing for {seconds} s: {why}"
                    ));
                }
                (false, Some(at)) => {
                    self.silent.remove(at);
                    if !thread.ended {
                        self.events.note(format_args!("the thread {} reports again", thread.name));
                    }
                }
                _ => {}
            }
        }
    }

    fn write(&mut self) {
        self.snapshot.written_ns = self.clock.now().0;
        if let Ok(usage) = Usage::now() {
            // The kernel counts in steps of 10 ms: a shorter interval is too imprecise.
            let spent = self.usage.map(|before| usage.since(&before));
            let cores = match spent {
                Some(spent) if spent.elapsed_ns >= 900_000_000 => {
                    self.usage = Some(usage);
                    spent.cores
                }
                Some(_) => self.snapshot.process.cores,
                None => {
                    self.usage = Some(usage);
                    0.0
                }
            };
            self.snapshot.process = Process {
                cpu_ns: usage.user_ns.saturating_add(usage.system_ns),
                cores,
                resident_bytes: usage.resident_bytes,
                peak_resident_bytes: usage.peak_resident_bytes,
                threads: usage.threads,
                descriptors: usage.descriptors,
            };
        }
        self.snapshot.journal = self.journal.as_deref().map(of_journal);
        let certificates = self.clients.iter().chain(&self.others);
        self.snapshot.certificates = certificates.filter_map(CertificateWatch::snapshot).collect();
        for other in &mut self.others {
            other.look(self.clock.now(), &self.events);
        }
        let Served { kdb, zeromq, bridge, term } = &self.served;
        self.snapshot.bridge = bridge.as_ref().map(BridgeView::look);
        self.snapshot.lease = term.as_ref().map(Term::look);
        for (serving, outlet) in [(kdb, &mut self.snapshot.kdb), (zeromq, &mut self.snapshot.zeromq)] {
            serving.iter().for_each(|serving| serving.look(outlet));
        }
        // A removed name may belong to another plant's ring by now.
        if !self.snapshot.ring_removed
            && let Ok(ring) = tapeline_ring::inspect(&self.ring)
        {
            self.snapshot.backpressure.ring_bytes = ring.capacity as u64;
            self.snapshot.backpressure.evicted = ring.publisher.evicted;
            let reader = |reader: tapeline_ring::SubscriberView| ReaderSnapshot {
                name: reader.label,
                pid: reader.pid,
                alive: reader.alive,
                evicted: reader.evicted,
                lag_bytes: reader.lag_bytes,
            };
            self.snapshot.readers = ring.subscribers.into_iter().map(reader).collect();
        }
        self.tell_silence();
        if let Err(error) = self.file.write(&self.snapshot)
            && !std::mem::replace(&mut self.complained, true)
        {
            self.events.warning(format_args!(
                "cannot write the counters, so `tapeline stat` cannot show this plant: {}: {error}",
                crate::stat::file::path(&self.ring).display()
            ));
        }
        self.latest.put(Arc::new(self.snapshot.clone()));
    }
}

fn of_journal(progress: &Progress) -> Journal {
    let state = match progress.state() {
        tapeline_journal::State::Keeping => "keeping",
        tapeline_journal::State::Stopped => "stopped",
        tapeline_journal::State::Without => "without",
    };
    Journal { state: state.to_owned(), kept: progress.written_up_to(), missing: progress.missing() }
}

fn merge_plant(snapshot: &mut Snapshot, told: &PlantFigures) {
    let seconds = told.at.since(Nanos(snapshot.heard_ns)) as f64 / 1e9;
    // The first figures have nothing to compare with.
    let rate = |before: u64, now: u64| match snapshot.heard_ns {
        0 => 0.0,
        _ => per_second(before, now, seconds),
    };
    snapshot.ticks_per_second = rate(snapshot.ticks, told.ticks);
    snapshot.ring_removed = told.is_name_removed;
    for (feed, told) in snapshot.feeds.iter_mut().zip(&told.feeds) {
        let counters = &told.counters;
        feed.messages_per_second = rate(feed.messages, counters.messages);
        feed.state = told.state.to_string();
        feed.ended = counters.ended;
        feed.messages = counters.messages;
        feed.missing = counters.missing;
        feed.gaps = counters.gaps;
        feed.absurd_gaps = counters.absurd_gaps;
        feed.suspect = told.is_suspect;
        feed.unknown_orders = told.unknown_orders;
        feed.items_refused = counters.items_refused;
        feed.malformed = counters.malformed_messages;
        feed.ticks = counters.ticks;
        feed.kernel_drops = told.kernel_drops;
        feed.venue.clone_from(&told.venue);
    }
    snapshot.sources =
        told.sources.iter().map(|told_of| merge_source(&snapshot.sources, told_of, told.at)).collect();
    let unserved = |(service, items): &(String, usize)| Unserved { service: service.clone(), items: *items };
    snapshot.unserved = told.unserved.iter().map(unserved).collect();
    snapshot.upstream.clone_from(&told.upstream);
    snapshot.heard_ns = told.at.0;
    snapshot.ticks = told.ticks;
    snapshot.items = told.items;
    snapshot.backpressure =
        Backpressure { stalls: told.stalls, stalled_ns: told.stalled_ns, ..snapshot.backpressure };
}

/// The feeds before the first figures. A plant above takes their place.
fn feeds_of(config: &Config) -> Vec<FeedSnapshot> {
    let feeds = config.feeds.iter().map(|feed| (&feed.name, feed.protocol.name()));
    let upstream = config.upstream.iter().map(|upstream| (&upstream.name, "bridge-moldudp64"));
    let feed = |(name, protocol): (&String, &str)| FeedSnapshot {
        name: name.clone(),
        protocol: protocol.to_owned(),
        state: tapeline_plant::State::default().to_string(),
        ..FeedSnapshot::default()
    };
    feeds.chain(upstream).map(feed).collect()
}

/// The state of a source, and since when, as far as the earlier snapshot shows.
fn merge_source(before: &[SourceSnapshot], told: &SourceFigures, now: Nanos) -> SourceSnapshot {
    let before = before.iter().find(|before| before.name == told.name);
    let state = match told.standing {
        Standing::Away => "away",
        Standing::Refused => "refused",
        Standing::Connected => "connected",
    };
    let since = |since_ns: Option<u64>| since_ns.unwrap_or(now.0);
    let service = |(name, part): &(String, source::SourceRole)| {
        let state = match part {
            source::SourceRole::Serves => "serves",
            source::SourceRole::StandsBy => "standby",
            source::SourceRole::Down => "suspect",
        };
        let parts = before.map(|before| before.services.as_slice()).unwrap_or_default();
        let same = parts.iter().find(|before| before.service == *name && before.state == state);
        Part {
            service: name.clone(),
            state: state.to_owned(),
            since_ns: since(same.map(|same| same.since_ns)),
        }
    };
    SourceSnapshot {
        name: told.name.clone(),
        kind: if told.is_publisher { "publisher" } else { "provider" }.to_owned(),
        state: state.to_owned(),
        since_ns: since(before.filter(|before| before.state == state).map(|before| before.since_ns)),
        items: told.items,
        serves: told.serves,
        stands_by: told.stands_by,
        services: told.services.iter().map(service).collect(),
    }
}

/// The rate per second of a counter between two times.
pub(crate) fn per_second(before: u64, now: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { now.saturating_sub(before) as f64 / seconds } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_go_over_whole_and_nobody_waits() {
        let (mut snapshots, mut latest) = snapshots_between(Vec::<u32>::new);
        assert!(!latest.refresh());
        snapshots.figures.push(1);
        assert!(snapshots.publish());
        snapshots.figures.push(2);
        assert!(!snapshots.publish(), "the first has not been read");
        assert!(latest.refresh());
        assert_eq!(latest.figures, [1]);
        assert!(!latest.refresh());
        assert!(snapshots.publish());
        latest.figures.clear();
        assert!(latest.refresh());
        assert_eq!(latest.figures, [2]);
        assert!(snapshots.figures.is_empty());
        let held = latest.between.lock().unwrap();
        assert!(!snapshots.publish(), "the other side is at it");
        drop(held);
    }

    #[test]
    fn what_a_feed_counts_is_what_the_outside_sees() {
        let mut snapshot = Snapshot { feeds: vec![FeedSnapshot::default()], ..Snapshot::default() };
        let counters = tapeline_plant::ChannelCounters {
            messages: 1,
            missing: 2,
            gaps: 3,
            malformed_messages: 4,
            ticks: 5,
            items_refused: 6,
            ..Default::default()
        };
        let feed = FeedFigures { counters, unknown_orders: 7, kernel_drops: 8, ..FeedFigures::default() };
        merge_plant(&mut snapshot, &PlantFigures { feeds: vec![feed], ..PlantFigures::default() });
        let seen = &snapshot.feeds[0];
        assert_eq!((seen.messages, seen.missing, seen.gaps, seen.malformed), (1, 2, 3, 4));
        assert_eq!((seen.ticks, seen.items_refused, seen.unknown_orders, seen.kernel_drops), (5, 6, 7, 8));
    }

    #[test]
    fn since_when_a_source_is_as_it_is() {
        let mut snapshot = Snapshot::default();
        let mut tell = |at, standing, part| {
            let source = SourceFigures {
                name: "ema".to_owned(),
                standing,
                services: vec![("A".to_owned(), part)],
                ..SourceFigures::default()
            };
            let told = PlantFigures { at: Nanos(at), sources: vec![source], ..PlantFigures::default() };
            merge_plant(&mut snapshot, &told);
            let source = &snapshot.sources[0];
            let served = &source.services[0];
            (source.state.clone(), source.since_ns, served.state.clone(), served.since_ns)
        };
        let is = |state: &str, since, part: &str, since_part| {
            (state.to_owned(), since, part.to_owned(), since_part)
        };
        let (away, connected) = (Standing::Away, Standing::Connected);
        let (down, serves) = (source::SourceRole::Down, source::SourceRole::Serves);
        assert_eq!(tell(10, away, down), is("away", 10, "suspect", 10));
        assert_eq!(tell(20, connected, down), is("connected", 20, "suspect", 10));
        assert_eq!(tell(30, connected, serves), is("connected", 20, "serves", 30));
        assert_eq!(tell(40, connected, serves), is("connected", 20, "serves", 30));
        assert_eq!(tell(50, away, down), is("away", 50, "suspect", 50));
    }

    #[test]
    fn rates_are_those_between_two_snapshots() {
        let mut snapshot = Snapshot { feeds: vec![FeedSnapshot::default()], ..Snapshot::default() };
        let told = |at, ticks| PlantFigures {
            at: Nanos(at),
            ticks,
            feeds: vec![FeedFigures {
                counters: tapeline_plant::ChannelCounters { messages: 2 * ticks, ..Default::default() },
                ..FeedFigures::default()
            }],
            ..PlantFigures::default()
        };
        merge_plant(&mut snapshot, &told(5_000_000_000, 100));
        assert_eq!((snapshot.ticks, snapshot.ticks_per_second), (100, 0.0));
        merge_plant(&mut snapshot, &told(7_000_000_000, 500));
        assert_eq!((snapshot.ticks, snapshot.ticks_per_second), (500, 200.0));
        assert_eq!(snapshot.feeds[0].messages_per_second, 400.0);
    }
}
