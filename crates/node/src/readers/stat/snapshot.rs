//! A snapshot of a plant as stored in its counters file: `tapeline stat` prints it as JSON, and the metrics
//! and the live page are made from it.

use serde::{Deserialize, Serialize};
use tapeline_measure::{Percentiles, Rank, Recorder};

/// Names the layout, so that another version is not misread. An addition keeps the name; a change of meaning
/// changes it.
pub const LAYOUT: &str = "tapeline-stat-1";

/// A thread that has not reported for this long hangs: each reports once a second.
pub const LATE_NS: u64 = 5_000_000_000;

/// A plant whose last report is older than this is stopped, hangs, or gets no processor time: it reports once a second.
const SILENT_NS: u64 = 3_000_000_000;

/// A snapshot of a plant. Counts are since its start, rates are of the last second.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Snapshot {
    /// [`LAYOUT`].
    pub layout: String,
    /// The plant's name.
    pub plant: String,
    /// Name of the ring.
    pub ring: String,
    /// Whether the ring's name was removed while the plant runs: new readers cannot join the ring.
    pub ring_removed: bool,
    /// Id of the process.
    pub pid: u32,
    /// Version of the plant.
    pub version: String,
    /// Start of the plant, ns since 1970 UTC.
    pub started_ns: u64,
    /// Time of this snapshot, ns since 1970 UTC.
    pub written_ns: u64,
    /// Last report of the plant's thread, ns since 1970 UTC; 0 before the first.
    pub heard_ns: u64,
    /// Set by the reader of a snapshot: how long the plant has reported nothing, in ns; 0 if it reports. Its rates are then 0.
    pub silent_ns: u64,
    /// Resources of the process.
    pub process: Process,
    /// Ticks published.
    pub ticks: u64,
    /// Rate of `ticks` in the last second.
    pub ticks_per_second: f64,
    /// Items in the plant.
    pub items: usize,
    /// Feeds, in the order of the configuration.
    pub feeds: Vec<FeedSnapshot>,
    /// OMM sources: providers of the configuration, then publishers that connected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceSnapshot>,
    /// Services of non-interactive providers, with the number of items that no source serves any more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unserved: Vec<Unserved>,
    /// Back pressure of the ring.
    pub backpressure: Backpressure,
    /// Readers of the ring, including the hub.
    pub readers: Vec<ReaderSnapshot>,
    /// The certificates of the plant's own servers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub certificates: Vec<CertificateSnapshot>,
    /// The journal, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal: Option<Journal>,
    /// The kdb+ outlet, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kdb: Option<Outlet>,
    /// The ZeroMQ outlet, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zeromq: Option<Outlet>,
    /// The bridge to plants below, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bridge: Option<BridgeSnapshot>,
    /// The plant above, if the ticks are another plant's; its state is that of the feed of its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<UpstreamSnapshot>,
    /// The lease, if two plants stand in for each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseSnapshot>,
    /// The hub, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hub: Option<Hub>,
}

/// The last sign of life of a plant's thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadSign {
    pub(crate) name: &'static str,
    /// Its last report, ns since 1970 UTC; 0 before the first.
    pub(crate) heard_ns: u64,
    /// It ended before the plant did.
    pub(crate) ended: bool,
}

impl Snapshot {
    /// Sets [`silent_ns`](Self::silent_ns) as of now, ns since 1970 UTC. All rates of a silent plant are removed: they are
    /// those of a second that is long over.
    pub fn judge_silence(&mut self, now_ns: u64) {
        // A thread that has not begun cannot have gone silent.
        let last_ns = if self.heard_ns == 0 { self.written_ns } else { self.heard_ns.min(self.written_ns) };
        self.silent_ns =
            Some(now_ns.saturating_sub(last_ns)).filter(|silent| *silent > SILENT_NS).unwrap_or(0);
        if self.silent_ns == 0 {
            return;
        }
        self.process.cores = 0.0;
        self.ticks_per_second = 0.0;
        self.feeds.iter_mut().for_each(|feed| feed.messages_per_second = 0.0);
        if let Some(hub) = &mut self.hub {
            hub.rates = Rates::default();
            hub.sessions.iter_mut().for_each(|session| session.rates = Rates::default());
            hub.latency.iter_mut().for_each(|hop| hop.now = Latency::default());
        }
    }

    /// Returns the threads that report once a second.
    pub(crate) fn threads(&self) -> impl Iterator<Item = ThreadSign> {
        let sign = |name, heard_ns, ended| ThreadSign { name, heard_ns, ended };
        let outlet =
            |name, outlet: &Option<Outlet>| outlet.as_ref().map(|of| sign(name, of.heard_ns, of.ended));
        let (hub, bridge) = (self.hub.as_ref(), self.bridge.as_ref());
        [
            Some(sign("counters", self.written_ns, false)),
            Some(sign("plant", self.heard_ns, false)),
            hub.map(|hub| sign("hub", hub.heard_ns, hub.ended)),
            outlet("kdb", &self.kdb),
            outlet("zeromq", &self.zeromq),
            bridge.map(|bridge| sign("bridge", bridge.heard_ns, bridge.ended)),
        ]
        .into_iter()
        .flatten()
    }
}

/// Resources of a process.
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
    /// Open files, sockets and pipes.
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
    /// The session has ended: silence is expected.
    pub ended: bool,
    /// Messages, each once however many lines carried it.
    pub messages: u64,
    /// Rate of `messages` in the last second.
    pub messages_per_second: f64,
    /// Messages that never arrived on any line.
    pub missing: u64,
    /// Gaps in the sequence, including absurd gaps.
    pub gaps: u64,
    /// Gaps of more messages than any feed sends, which `missing` excludes.
    pub absurd_gaps: u64,
    /// Messages that could not be decoded.
    pub malformed: u64,
    /// The data may be wrong until the next session: messages of this session were lost, or were sent before
    /// the plant started.
    pub suspect: bool,
    /// Messages about orders that were not on the books.
    pub unknown_orders: u64,
    /// Ticks of new symbols published without an item, because `max_items` or the feed's share of it is used
    /// up.
    pub items_refused: u64,
    /// Ticks published for the feed.
    pub ticks: u64,
    /// Datagrams that the kernel dropped because the socket buffer was full.
    pub kernel_drops: u64,
    /// The stream of a crypto venue, if the feed is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub venue: Option<VenueSnapshot>,
}

/// The stream of a crypto venue.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct VenueSnapshot {
    /// `true` while the plant is connected to the venue.
    pub connected: bool,
    /// Connections so far; each after the first is a reconnect.
    pub connections: u64,
    /// Arrival of the last message, ns since 1970 UTC; 0 before the first.
    pub heard_ns: u64,
    /// The symbols, in the order of the configuration.
    pub symbols: Vec<SymbolSnapshot>,
}

/// A symbol of a crypto venue.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct SymbolSnapshot {
    /// The symbol, in the venue's notation.
    pub symbol: String,
    /// `true` if the book equals the venue's, by the venue's rule.
    pub joined: bool,
    /// Messages that name the symbol.
    pub messages: u64,
    /// Snapshots that the book was joined with.
    pub snapshots: u64,
    /// Evidence of missing messages.
    pub gaps: u64,
    /// Arrival of the last message that names the symbol, ns since 1970 UTC; 0 before the first.
    pub heard_ns: u64,
}

/// An OMM source.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct SourceSnapshot {
    /// The source's name: a provider's in the configuration, or `publisher` with a number.
    pub name: String,
    /// provider: interactive, the plant connects to it; publisher: non-interactive, it connects to the plant.
    pub kind: String,
    /// away, refused (it rejected the plant's login) or connected.
    pub state: String,
    /// Start of this state, to the second; ns since 1970 UTC.
    pub since_ns: u64,
    /// Items that are open at the source, or published by it.
    pub items: usize,
    /// Items of the source that are passed on: it was the first with them.
    pub serves: usize,
    /// Items whose images are buffered as a standby until the serving source disconnects.
    pub stands_by: usize,
    /// Services of the source, each with the role of the source.
    pub services: Vec<Part>,
}

/// Items of a service that no source serves any more.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Unserved {
    /// The service's name.
    pub service: String,
    /// Items that were published and whose publishers are gone: they are suspect.
    pub items: usize,
}

/// The role of a source in a service.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Part {
    /// The service's name.
    pub service: String,
    /// serves, standby, or suspect: the source does not have the service, and its items' data is in doubt.
    pub state: String,
    /// Start of this state, to the second; ns since 1970 UTC.
    pub since_ns: u64,
}

/// Back pressure of the ring's readers on the plant.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Backpressure {
    /// Times that a tick waited because a reader kept the ring full.
    pub stalls: u64,
    /// Total of those waits, in ns.
    pub stalled_ns: u64,
    /// Readers that were evicted.
    pub evicted: u64,
    /// Size of the ring, in bytes.
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
    /// Distance from the newest tick, in bytes; reported once per eighth of the ring.
    pub lag_bytes: u64,
}

/// A journal.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Journal {
    /// keeping; stopped: it cannot be written, and the plant ends; without: it cannot be written, and the
    /// plant continues without it.
    pub state: String,
    /// The last sequence number in the journal.
    pub kept: u64,
    /// Ticks that are missing in the journal.
    pub missing: u64,
}

/// An outlet with a thread of its own.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Outlet {
    /// The address at which clients connect, or did.
    pub address: String,
    /// The outlet ended before the plant did.
    pub ended: bool,
    /// Last turn of the outlet's thread, ns since 1970 UTC.
    pub heard_ns: u64,
    /// Ticks that its clients did not get: the outlet lost its position on the ring, and no journal has them.
    pub missing: u64,
}

/// A bridge to plants below.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct BridgeSnapshot {
    /// The session: plant and epoch.
    pub session: String,
    /// The bridge ended before the plant did.
    pub ended: bool,
    /// Last turn of the sending thread, ns since 1970 UTC.
    pub heard_ns: u64,
    /// Ticks that the bridge missed on its ring, and that no journal has.
    pub missing: u64,
    /// The last sequence that was sent.
    pub sequence: u64,
    /// Datagrams that a line did not take.
    pub unsent: u64,
    /// Those of them that the flow control of Aeron refused.
    pub back_pressured: u64,
    /// Times that a line has lost its media driver of Aeron.
    pub drivers_lost: u64,
    /// What the driver counts for the lines over Aeron; `None` while there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aeron: Option<AeronSendingSnapshot>,
    /// Re-requests received.
    pub requests: u64,
    /// Ticks sent again.
    pub sent_again: u64,
    /// Re-requests without an answer.
    pub unanswered: u64,
    /// Plants that are connected to the catch-up server.
    pub catching_up: u64,
    /// Times that a plant has caught up.
    pub caught_up: u64,
    /// Plants that follow a line over TCP.
    pub followers: u64,
    /// Times that a plant was cut off such a line because it was too slow.
    pub cut_off: u64,
    /// Connections to such a line that were refused.
    pub refused: u64,
    /// Plants that are connected for demands on this plant's sources.
    pub demanding: u64,
    /// Items that are open for plants below, each once for each plant.
    pub demanded: u64,
    /// Posts that came from plants below.
    pub far_posts: u64,
    /// Demands of plants below beyond their limits.
    pub demands_refused: u64,
    /// Times that a plant with demands was disconnected: silent, too slow, or not of this protocol.
    pub demands_cut_off: u64,
}

/// What a media driver of Aeron counts for lines to plants below, since they were opened.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct AeronSendingSnapshot {
    /// NAKs received: requests to send again what was lost, which the driver answers itself.
    pub naks: u64,
    /// Bytes that flow control lets the driver send beyond what it has sent, on the line with the fewest: the window of the receiver that sets
    /// the pace.
    pub window_bytes: u64,
}

/// What a media driver of Aeron counts for lines of the plant above, since their senders came.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct AeronReceivedSnapshot {
    /// NAKs sent: requests to send again what was lost.
    pub naks: u64,
    /// Bytes that have arrived and are not read, with those that are missing among them.
    pub unread_bytes: u64,
}

/// A plant above.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct UpstreamSnapshot {
    /// The session: plant and epoch; empty before the first.
    pub session: String,
    /// The last sequence that was published.
    pub sequence: u64,
    /// Ticks that the plant above has sent, as far as is known, and that are not published yet.
    pub behind: u64,
    /// Re-requests sent.
    pub requests: u64,
    /// Ticks that answers to re-requests brought.
    pub recovered: u64,
    /// Times that the lines were left for the catch-up server.
    pub left_lines: u64,
    /// Datagrams on its lines that are not of the session.
    pub strangers: u64,
    /// Times that a line has lost its media driver of Aeron.
    pub drivers_lost: u64,
    /// What the driver counts for the lines over Aeron; `None` while there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aeron: Option<AeronReceivedSnapshot>,
    /// Times that a line over TCP has lost its connection, or got none.
    pub connections_lost: u64,
    /// `true` if this plant's hub has services of the plant above, and demands items of them.
    pub demands: bool,
    /// `true` while the connection for demands is there.
    pub demands_connected: bool,
    /// Items that are demanded of the plant above.
    pub demanded: u64,
    /// Posts for the plant above.
    pub posts: u64,
    /// Those of them that were refused here, because the plant above was not there.
    pub posts_refused: u64,
    /// Times that the connection for demands was lost, or could not be made.
    pub demands_lost: u64,
    /// How far the clock of the plant above differs from this plant's; `None` while that is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockSnapshot>,
}

/// The lease that decides which of two plants numbers.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct LeaseSnapshot {
    /// The name of this plant.
    pub holder: String,
    /// `true` while this plant leads.
    pub held: bool,
    /// The name of the plant that leads; empty while none is known to.
    pub leader: String,
    /// The epoch of the lease that is held, or the latest that was granted; 0 for none.
    pub epoch: u64,
    /// The same as a session: plant and epoch.
    pub session: String,
    /// Time until the lease ends unless it is renewed, in ns; 0 while this plant does not lead.
    pub left_ns: u64,
    /// Times that this plant has got or lost the lease since its process started.
    pub changes: u64,
    /// Number of witnesses.
    pub witnesses: usize,
    /// Those that do not answer.
    pub silent: usize,
    /// Why nobody can lead, or this plant cannot; empty if nothing is wrong.
    pub problem: String,
}

/// How far another plant's clock differs from this one's.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct ClockSnapshot {
    /// The other clock less this one, in ns: negative if the other is behind.
    pub ahead_ns: i64,
    /// The bound on the error of `ahead_ns`, in ns.
    pub bound_ns: u64,
}

/// A hub.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Hub {
    /// The address at which clients connect.
    pub address: String,
    /// Address of the live page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub web: Option<String>,
    /// Items that the page shows initially.
    pub page_items: Vec<String>,
    /// `true` if clients connect with TLS.
    pub tls: bool,
    /// Last report of the hub's thread, ns since 1970 UTC; 0 before the first.
    pub heard_ns: u64,
    /// The hub ended before the plant did.
    pub ended: bool,
    /// Policy for a client that does not take its updates.
    pub slow: String,
    /// Ticks taken from the ring.
    pub ticks: u64,
    /// Ticks missing in the plant's sequence.
    pub missing: u64,
    /// Services in the directory.
    pub services: Vec<Service>,
    /// Size and limit of the hub's images.
    pub cache: Cache,
    /// Sessions opened.
    pub opened: u64,
    /// Sessions disconnected for being slow.
    pub cut: u64,
    /// Logins accepted.
    pub logins: u64,
    /// Logins refused, and logins ended because the user's right was withdrawn.
    pub logins_refused: u64,
    /// Items that clients were denied.
    pub denied: u64,
    /// Totals of all sessions, including closed ones.
    pub totals: Totals,
    /// Rates of all sessions together in the last second.
    pub rates: Rates,
    /// Open sessions.
    pub sessions: Vec<Session>,
    /// Latency of ticks by hop. Each tick counts with the latency of the first tick in its turn of the hub's thread.
    pub latency: Vec<Hop>,
}

/// The certificate of a server.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct CertificateSnapshot {
    /// The table of the configuration that names the certificate: `hub` or `publishers`.
    pub of: String,
    /// When the first certificate of the chain ends, ns since 1970 UTC.
    pub ends_ns: u64,
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
    /// Why the service is down, if a reason was given.
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

/// Counters of sessions.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Totals {
    /// Items requested.
    pub requests: u64,
    /// Item requests that were refused.
    pub refused: u64,
    /// Images sent.
    pub refreshes: u64,
    /// Updates sent or queued.
    pub updates: u64,
    /// Updates that were conflated into a later image, because the client had no capacity.
    pub conflated: u64,
    /// Updates that were dropped, with a notification to the client.
    pub dropped: u64,
    /// Times that the source of an item with a single, slow client was asked to pause.
    pub held: u64,
    /// Messages that could not be decoded.
    pub malformed: u64,
}

/// Rates of the same counters.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Rates {
    /// Images sent, per second.
    pub refreshes: f64,
    /// Updates sent or queued, per second.
    pub updates: f64,
    /// Updates that were conflated into a later image, per second.
    pub conflated: f64,
}

/// A client.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Session {
    /// Number of the session; another session has it later.
    pub session: usize,
    /// Time of the connection, ns since 1970 UTC.
    pub since_ns: u64,
    /// The client's own name for itself; not authenticated.
    pub user: String,
    /// The client's address and port; empty if unknown.
    pub address: String,
    /// tcp, tls, or websocket with its sub-protocol.
    pub transport: String,
    /// Open streams, those of login and directory included.
    pub streams: usize,
    /// Updates queued until the connection has capacity.
    pub queued_messages: usize,
    /// Bytes of those updates.
    pub queued_bytes: usize,
    /// Bytes in the connection's own buffer, not yet taken by the kernel.
    pub unsent_bytes: usize,
    /// Images and other answers still to be sent.
    pub owed: usize,
    /// Policy for its updates while it is slow.
    pub slow: String,
    /// Age of the oldest queued output, in ns.
    pub lag_ns: u64,
    /// Counters of this session; JSON has these fields at the level of the session.
    #[serde(flatten)]
    pub totals: Totals,
    /// Rates of this session in the last second; 0 in its first.
    pub rates: Rates,
}

/// A hop on the way of ticks.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Hop {
    /// The ends of the hop, such as `wire_to_sent`.
    pub hop: String,
    /// In the last second.
    pub now: Latency,
    /// Since the start.
    pub all: Latency,
}

/// Percentiles; each is present only with enough samples beyond it.
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
    /// Creates the percentiles of the samples recorded so far.
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
