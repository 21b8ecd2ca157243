//! A plant at one moment, as its counters file has it: what `tapeline stat` prints as JSON, and what the metrics and the
//! live page are made of.

use serde::{Deserialize, Serialize};
use tapeline_measure::{Percentiles, Rank, Recorder};

/// Names the layout: another version is not misread. What is added keeps it; what changes its meaning does not.
pub const LAYOUT: &str = "tapeline-stat-1";

/// A thread that has said nothing for so long hangs: it speaks once a second.
pub const LATE_NS: u64 = 5_000_000_000;

/// A plant at one moment. Counts run since its start, rates are of the last second.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Snapshot {
    /// [`LAYOUT`].
    pub layout: String,
    /// The plant's name.
    pub plant: String,
    /// Its ring.
    pub ring: String,
    /// Whether the ring's name was removed while the plant runs: nobody can join the ring any more.
    pub ring_removed: bool,
    /// Its process.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// When it started, ns since 1970 UTC.
    pub started_ns: u64,
    /// When this was written.
    pub written_ns: u64,
    /// When its own thread was heard of last; zero before.
    pub heard_ns: u64,
    /// What the process uses.
    pub process: Process,
    /// Ticks published.
    pub ticks: u64,
    /// See `ticks`.
    pub ticks_per_second: f64,
    /// Items named.
    pub items: usize,
    /// Feeds, in the order of the configuration.
    pub feeds: Vec<FeedSnapshot>,
    /// Sources that speak OMM: providers of the configuration, then those that connected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceSnapshot>,
    /// Services that non-interactive providers publish, and what of them nobody serves any more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unserved: Vec<Unserved>,
    /// How the ring stands.
    pub backpressure: Backpressure,
    /// Those who read the ring, the hub among them.
    pub readers: Vec<ReaderSnapshot>,
    /// The journal, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal: Option<Journal>,
    /// The port of kdb+ clients, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kdb: Option<Outlet>,
    /// That of ZeroMQ's subscribers, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zeromq: Option<Outlet>,
    /// The hub, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hub: Option<Hub>,
}

/// What a process uses.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Process {
    /// CPU time of all its threads, in ns.
    pub cpu_ns: u64,
    /// Cores kept busy in the last second.
    pub cores: f64,
    /// Resident memory in bytes, touched shared memory such as the ring included.
    pub resident_bytes: u64,
    /// Highest resident memory so far, in bytes.
    pub peak_resident_bytes: u64,
    /// Number of threads.
    pub threads: u64,
    /// Files, sockets, pipes that are open.
    pub descriptors: u64,
}

/// A feed.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct FeedSnapshot {
    /// The feed's name.
    pub name: String,
    /// Name of the feed's protocol, such as `itch50-moldudp64`.
    pub protocol: String,
    /// initial, live, recovering or stale.
    pub state: String,
    /// Its session is over: silence is as it should be.
    pub ended: bool,
    /// Messages, each once however many lines carried it.
    pub messages: u64,
    /// Rate of `messages` in the last second.
    pub messages_per_second: f64,
    /// Messages that never came, on any line.
    pub missing: u64,
    /// Holes that they make, and absurd holes.
    pub gaps: u64,
    /// Holes of more messages than any feed sends, which `missing` leaves out.
    #[serde(default)]
    pub absurd_gaps: u64,
    /// Messages that could not be decoded.
    pub malformed: u64,
    /// What it publishes may be wrong until the next session: messages of this one were lost, or came before the plant.
    pub suspect: bool,
    /// Messages about orders that were not on the books.
    pub unknown_orders: u64,
    /// Ticks of new symbols that went out without an item, as `max_items` or the feed's share of it is used up.
    #[serde(default)]
    pub items_refused: u64,
    /// Ticks published for the feed.
    pub ticks: u64,
    /// Datagrams that the kernel dropped for want of buffer.
    pub kernel_drops: u64,
}

/// A source that speaks OMM.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct SourceSnapshot {
    /// The source's name: a provider's in the configuration, or `publisher` with a number.
    pub name: String,
    /// provider: interactive, the plant connects to it; publisher: non-interactive, it connects to the plant.
    pub kind: String,
    /// away, refused (it does not let the plant in) or connected.
    pub state: String,
    /// Since when, to the second; ns since 1970 UTC.
    pub since_ns: u64,
    /// Items that are open at it, or that it publishes.
    pub items: usize,
    /// Of them, those that are passed on: it is the first that has them.
    pub serves: usize,
    /// And those of which it keeps images, until the one that serves them goes.
    pub stands_by: usize,
    /// Services of the source, each with the role of the source.
    pub services: Vec<Part>,
}

/// What nobody serves any more.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Unserved {
    /// The service's name.
    pub service: String,
    /// Items that were published, and whose publishers are gone: they are suspect.
    pub items: usize,
}

/// What a source is to a service.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Part {
    /// The service's name.
    pub service: String,
    /// serves, standby, or suspect: it does not have the service, and what it said of items is in doubt.
    pub state: String,
    /// Since when, to the second; ns since 1970 UTC.
    pub since_ns: u64,
}

/// What the ring's readers did to the plant.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Backpressure {
    /// Times at which a tick waited because a reader held the ring full.
    pub stalls: u64,
    /// For how long, all together.
    pub stalled_ns: u64,
    /// Readers that lost their place.
    pub evicted: u64,
    /// Bytes of the ring.
    pub ring_bytes: u64,
}

/// One reader of the ring.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct ReaderSnapshot {
    /// The reader's label in the ring's registry.
    pub name: String,
    /// Id of the reader's process.
    pub pid: u32,
    /// `true` if the reader lives; a dead one blocks the ring until its space is needed.
    pub alive: bool,
    /// `true` if the reader blocked the full ring for longer than the stall limit and lost its place.
    pub evicted: bool,
    /// Between it and the newest tick; told once in an eighth of the ring.
    pub lag_bytes: u64,
}

/// A journal.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Journal {
    /// keeping; stopped: it cannot be written, and the plant ends; without: it cannot be written, and the plant goes on without it.
    pub state: String,
    /// The last sequence that is in it.
    pub kept: u64,
    /// Ticks that are not in it.
    pub missing: u64,
}

/// A port of clients that a thread of its own serves.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Outlet {
    /// Where they connect, or did.
    pub address: String,
    /// It has ended before the plant did.
    pub ended: bool,
    /// When its thread was at its loop last, ns since 1970.
    pub heard_ns: u64,
    /// Ticks that its clients did not get: it lost its place on the ring, and no journal has them.
    pub missing: u64,
}

/// A hub.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Hub {
    /// Where clients connect.
    pub address: String,
    /// Where the live page is, if anywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub web: Option<String>,
    /// Items that the page shows at first.
    pub page_items: Vec<String>,
    /// Clients connect with TLS.
    pub tls: bool,
    /// When its thread was heard of last; zero before.
    pub heard_ns: u64,
    /// It has ended before the plant did.
    pub ended: bool,
    /// What becomes of a client that does not take its updates.
    pub slow: String,
    /// Ticks taken from the ring.
    pub ticks: u64,
    /// Ticks missing in the plant's sequence.
    pub missing: u64,
    /// Services, as the directory has them.
    pub services: Vec<Service>,
    /// Size and limit of the hub's images.
    pub cache: Cache,
    /// Sessions that were opened.
    pub opened: u64,
    /// Of them, those that were cut because they were too slow.
    pub cut: u64,
    /// Clients that were let in.
    pub logins: u64,
    /// Logins that were refused, and those that ended because their user may not be in any more.
    pub logins_refused: u64,
    /// Items that clients were kept from.
    pub denied: u64,
    /// What all sessions got, those that are over included.
    pub totals: Totals,
    /// Rates of all sessions together in the last second.
    pub rates: Rates,
    /// Sessions that are open.
    pub sessions: Vec<Session>,
    /// How long ticks take from hop to hop: of the first tick in each turn of the hub's thread.
    pub latency: Vec<Hop>,
}

/// A service.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Service {
    /// The service's number.
    pub id: u16,
    /// The service's name; empty if the directory has none.
    pub name: String,
    /// `true` if the service is up.
    pub up: bool,
    /// Why it is down, where that was said.
    pub text: String,
}

/// The hub's images.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Cache {
    /// Items with an image.
    pub items: usize,
    /// Memory of the images in bytes, indexes and spare capacity included.
    pub bytes: usize,
    /// Maximum of `bytes`.
    pub limit_bytes: usize,
}

/// What sessions did and got.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Totals {
    /// Items asked for.
    pub requests: u64,
    /// Requests for items that were refused.
    pub refused: u64,
    /// Images sent.
    pub refreshes: u64,
    /// Updates sent or queued.
    pub updates: u64,
    /// Updates that are in a later image instead, as their client had no room.
    pub conflated: u64,
    /// Updates that were dropped, and their clients told.
    pub dropped: u64,
    /// Times that the source of an item that one slow client alone has was asked to pause.
    pub held: u64,
    /// Messages that could not be read.
    pub malformed: u64,
}

/// The same a second.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Rates {
    /// Images sent, per second.
    pub refreshes: f64,
    /// Updates sent or queued, per second.
    pub updates: f64,
    /// Updates that a later image contains instead, per second.
    pub conflated: f64,
}

/// A client.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Session {
    /// Its number, which another has when it is gone.
    pub session: usize,
    /// When it connected.
    pub since_ns: u64,
    /// Whatever it called itself: not to be trusted.
    pub user: String,
    /// The client's address and port; empty if unknown.
    pub address: String,
    /// tcp, tls, or websocket with its sub-protocol.
    pub transport: String,
    /// Open streams, those of login and directory included.
    pub streams: usize,
    /// Updates that wait for capacity in its connection.
    pub queued_messages: usize,
    /// Bytes of those updates.
    pub queued_bytes: usize,
    /// Bytes in its connection's own buffer, not yet taken by the kernel.
    pub unsent_bytes: usize,
    /// Images and other answers that it is owed.
    pub owed: usize,
    /// What becomes of its updates when it is slow.
    pub slow: String,
    /// For how long the oldest of what waits for it has waited.
    pub lag_ns: u64,
    /// What this session did and got; JSON has these fields at the level of the session.
    #[serde(flatten)]
    pub totals: Totals,
    /// Rates of this session in the last second; 0 in its first.
    pub rates: Rates,
}

/// A hop of the ticks' way.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Hop {
    /// From where to where, such as `wire_to_sent`.
    pub hop: String,
    /// In the last second.
    pub now: Latency,
    /// Since the start.
    pub all: Latency,
}

/// Percentiles; each is there only where enough samples lie beyond it.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Latency {
    /// Number of samples.
    pub samples: u64,
    /// Sum of all samples in ns: the mean, rounded to 1 ns, times `samples`.
    pub sum_ns: u64,
    /// Median in ns; `None` with fewer than 20 samples.
    pub p50_ns: Option<u64>,
    /// 90th percentile in ns; `None` with fewer than 100 samples.
    pub p90_ns: Option<u64>,
    /// 99th percentile in ns; `None` with fewer than 1,000 samples.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile in ns; `None` with fewer than 10,000 samples.
    pub p99_9_ns: Option<u64>,
    /// Largest sample in ns; `None` without samples.
    pub max_ns: Option<u64>,
}

impl Latency {
    /// Creates the percentiles of what was recorded so far.
    pub fn of(recorder: &Recorder) -> Self {
        let percentiles: Percentiles = recorder.percentiles();
        Self {
            samples: percentiles.samples,
            sum_ns: percentiles.mean_ns.saturating_mul(percentiles.samples),
            p50_ns: percentiles.at(Rank::MEDIAN),
            p90_ns: percentiles.at(Rank::Hundredths(9_000)),
            p99_ns: percentiles.at(Rank::P99),
            p99_9_ns: percentiles.at(Rank::Hundredths(99_90)),
            max_ns: percentiles.at(Rank::Max),
        }
    }
}
