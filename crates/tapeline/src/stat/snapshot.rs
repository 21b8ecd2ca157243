//! A plant at one moment, as its counters file has it: what `tapeline stat` prints as JSON, and what the metrics and the
//! live page are made of.

use serde::{Deserialize, Serialize};
use tapeline_measure::{Percentiles, Rank, Recorder};

/// Names the layout: another version is not misread. What is added keeps it; what changes its meaning does not.
pub(crate) const LAYOUT: &str = "tapeline-stat-1";

/// A thread that has said nothing for so long hangs: it speaks once a second.
pub(crate) const LATE_NS: u64 = 5_000_000_000;

/// A plant at one moment. Counts run since its start, rates are of the last second.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Snapshot {
    /// [`LAYOUT`].
    pub(crate) layout: String,
    /// The plant's name.
    pub(crate) plant: String,
    /// Its ring.
    pub(crate) ring: String,
    /// Whether the ring's name was removed while the plant runs: nobody can join the ring any more.
    pub(crate) ring_removed: bool,
    /// Its process.
    pub(crate) pid: u32,
    /// Its version.
    pub(crate) version: String,
    /// When it started, ns since 1970 UTC.
    pub(crate) started_ns: u64,
    /// When this was written.
    pub(crate) written_ns: u64,
    /// When its own thread was heard of last; zero before.
    pub(crate) heard_ns: u64,
    /// What the process uses.
    pub(crate) process: Process,
    /// Ticks published.
    pub(crate) ticks: u64,
    /// See `ticks`.
    pub(crate) ticks_per_second: f64,
    /// Items named.
    pub(crate) items: usize,
    /// Feeds, in the order of the configuration.
    pub(crate) feeds: Vec<Feed>,
    /// Sources that speak OMM: providers of the configuration, then those that connected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) sources: Vec<Source>,
    /// Services that non-interactive providers publish, and what of them nobody serves any more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unserved: Vec<Unserved>,
    /// How the ring stands.
    pub(crate) backpressure: Backpressure,
    /// Those who read the ring, the hub among them.
    pub(crate) readers: Vec<Reader>,
    /// The journal, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) journal: Option<Journal>,
    /// The port of kdb+ clients, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kdb: Option<Outlet>,
    /// That of ZeroMQ's subscribers, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) zeromq: Option<Outlet>,
    /// The hub, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hub: Option<Hub>,
}

/// What a process uses.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Process {
    /// CPU time of all its threads.
    pub(crate) cpu_ns: u64,
    /// Cores kept busy in the last second.
    pub(crate) cores: f64,
    pub(crate) resident_bytes: u64,
    pub(crate) peak_resident_bytes: u64,
    pub(crate) threads: u64,
    /// Files, sockets, pipes that are open.
    pub(crate) descriptors: u64,
}

/// A feed.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Feed {
    pub(crate) name: String,
    pub(crate) protocol: String,
    /// initial, live, recovering or stale.
    pub(crate) state: String,
    /// Its session is over: silence is as it should be.
    pub(crate) ended: bool,
    /// Messages, each once however many lines carried it.
    pub(crate) messages: u64,
    pub(crate) messages_per_second: f64,
    /// Messages that never came, on any line.
    pub(crate) missing: u64,
    /// Holes that they make.
    pub(crate) gaps: u64,
    /// Holes of more messages than any feed sends, which `missing` leaves out.
    #[serde(default)]
    pub(crate) absurd_gaps: u64,
    /// Messages that could not be decoded.
    pub(crate) malformed: u64,
    /// What it publishes may be wrong until the next session: messages of this one were lost, or came before the plant.
    pub(crate) suspect: bool,
    /// Messages about orders that were not on the books.
    pub(crate) unknown_orders: u64,
    pub(crate) ticks: u64,
    /// Datagrams that the kernel dropped for want of buffer.
    pub(crate) kernel_drops: u64,
}

/// A source that speaks OMM.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Source {
    pub(crate) name: String,
    /// provider: interactive, the plant connects to it; publisher: non-interactive, it connects to the plant.
    pub(crate) kind: String,
    /// away, refused (it does not let the plant in) or connected.
    pub(crate) state: String,
    /// Since when, to the second; ns since 1970 UTC.
    pub(crate) since_ns: u64,
    /// Items that are open at it, or that it publishes.
    pub(crate) items: usize,
    /// Of them, those that are passed on: it is the first that has them.
    pub(crate) serves: usize,
    /// And those of which it keeps images, until the one that serves them goes.
    pub(crate) stands_by: usize,
    pub(crate) services: Vec<Part>,
}

/// What nobody serves any more.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Unserved {
    pub(crate) service: String,
    /// Items that were published, and whose publishers are gone: they are suspect.
    pub(crate) items: usize,
}

/// What a source is to a service.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Part {
    pub(crate) service: String,
    /// serves, standby, or suspect: it does not have the service, and what it said of items is in doubt.
    pub(crate) state: String,
    /// Since when, to the second; ns since 1970 UTC.
    pub(crate) since_ns: u64,
}

/// What the ring's readers did to the plant.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Backpressure {
    /// Times at which a tick waited because a reader held the ring full.
    pub(crate) stalls: u64,
    /// For how long, all together.
    pub(crate) stalled_ns: u64,
    /// Readers that lost their place.
    pub(crate) evicted: u64,
    /// Bytes of the ring.
    pub(crate) ring_bytes: u64,
}

/// One reader of the ring.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Reader {
    pub(crate) name: String,
    pub(crate) pid: u32,
    pub(crate) alive: bool,
    pub(crate) evicted: bool,
    /// Between it and the newest tick; told once in an eighth of the ring.
    pub(crate) lag_bytes: u64,
}

/// A journal.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Journal {
    /// keeping; stopped: it cannot be written, and the plant ends; without: it cannot be written, and the plant goes on without it.
    pub(crate) state: String,
    /// The last sequence that is in it.
    pub(crate) kept: u64,
    /// Ticks that are not in it.
    pub(crate) missing: u64,
}

/// A port of clients that a thread of its own serves.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Outlet {
    /// Where they connect, or did.
    pub(crate) address: String,
    /// It has ended before the plant did.
    pub(crate) ended: bool,
    /// When its thread was at its loop last, ns since 1970.
    pub(crate) heard_ns: u64,
    /// Ticks that its clients did not get: it lost its place on the ring, and no journal has them.
    pub(crate) missing: u64,
}

/// A hub.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Hub {
    /// Where clients connect.
    pub(crate) address: String,
    /// Where the live page is, if anywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) web: Option<String>,
    /// Items that the page shows at first.
    pub(crate) page_items: Vec<String>,
    /// Clients connect with TLS.
    pub(crate) tls: bool,
    /// When its thread was heard of last; zero before.
    pub(crate) heard_ns: u64,
    /// It has ended before the plant did.
    pub(crate) ended: bool,
    /// What becomes of a client that does not take its updates.
    pub(crate) slow: String,
    /// Ticks taken from the ring.
    pub(crate) ticks: u64,
    /// Ticks missing in the plant's sequence.
    pub(crate) missing: u64,
    /// Services, as the directory has them.
    pub(crate) services: Vec<Service>,
    pub(crate) cache: Cache,
    /// Sessions that were opened.
    pub(crate) opened: u64,
    /// Of them, those that were cut because they were too slow.
    pub(crate) cut: u64,
    /// Clients that were let in.
    pub(crate) logins: u64,
    /// Logins that were refused, and those that ended because their user may not be in any more.
    pub(crate) logins_refused: u64,
    /// Items that clients were kept from.
    pub(crate) denied: u64,
    /// What all sessions got, those that are over included.
    pub(crate) totals: Totals,
    pub(crate) rates: Rates,
    /// Sessions that are open.
    pub(crate) sessions: Vec<Session>,
    /// How long ticks take from hop to hop: of the first tick in each turn of the hub's thread.
    pub(crate) latency: Vec<Hop>,
}

/// A service.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Service {
    pub(crate) id: u16,
    pub(crate) name: String,
    pub(crate) up: bool,
    /// Why it is down, where that was said.
    pub(crate) text: String,
}

/// The hub's images.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Cache {
    pub(crate) items: usize,
    pub(crate) bytes: usize,
    /// At most.
    pub(crate) limit_bytes: usize,
}

/// What sessions did and got.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub(crate) struct Totals {
    /// Items asked for.
    pub(crate) requests: u64,
    pub(crate) refused: u64,
    /// Images sent.
    pub(crate) refreshes: u64,
    pub(crate) updates: u64,
    /// Updates that are in a later image instead, as their client had no room.
    pub(crate) conflated: u64,
    /// Updates that were dropped, and their clients told.
    pub(crate) dropped: u64,
    /// Times that the source of an item that one slow client alone has was asked to pause.
    pub(crate) held: u64,
    /// Messages that could not be read.
    pub(crate) malformed: u64,
}

/// The same a second.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub(crate) struct Rates {
    pub(crate) refreshes: f64,
    pub(crate) updates: f64,
    pub(crate) conflated: f64,
}

/// A client.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Session {
    /// Its number, which another has when it is gone.
    pub(crate) session: usize,
    /// When it connected.
    pub(crate) since_ns: u64,
    /// Whatever it called itself: not to be trusted.
    pub(crate) user: String,
    pub(crate) address: String,
    /// tcp, tls, or websocket with its sub-protocol.
    pub(crate) transport: String,
    pub(crate) streams: usize,
    /// Messages and bytes that wait for room in its connection.
    pub(crate) queued_messages: usize,
    pub(crate) queued_bytes: usize,
    /// Bytes in its connection's own buffer, not yet taken by the kernel.
    pub(crate) unsent_bytes: usize,
    /// Images and other answers that it is owed.
    pub(crate) owed: usize,
    /// What becomes of its updates when it is slow.
    pub(crate) slow: String,
    /// For how long the oldest of what waits for it has waited.
    pub(crate) lag_ns: u64,
    #[serde(flatten)]
    pub(crate) totals: Totals,
    pub(crate) rates: Rates,
}

/// A hop of the ticks' way.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Hop {
    /// From where to where, such as `wire_to_sent`.
    pub(crate) hop: String,
    /// In the last second.
    pub(crate) now: Latency,
    /// Since the start.
    pub(crate) all: Latency,
}

/// Percentiles; each is there only where enough samples lie beyond it.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub(crate) struct Latency {
    pub(crate) samples: u64,
    pub(crate) sum_ns: u64,
    pub(crate) p50_ns: Option<u64>,
    pub(crate) p90_ns: Option<u64>,
    pub(crate) p99_ns: Option<u64>,
    pub(crate) p99_9_ns: Option<u64>,
    pub(crate) max_ns: Option<u64>,
}

impl Latency {
    pub(crate) fn of(recorder: &Recorder) -> Self {
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
