//! A plant's own messages: that it is ready, and at its end its totals.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use tapeline_feed::line::Line;
use tapeline_plant::{Channel, Consolidation, Refused, RingPublish, Sequencer};
use tapeline_wire::pool::PoolCounters;
use tapeline_wire::udp::UdpReceiver;

use crate::bridge::{BridgeReady, BridgeReport};
use crate::config::{self, Config};
use crate::hub::HubReport;
use crate::inputs::recovery::Recovery;
use crate::journal::JournalReport;
use crate::kdb::KdbReport;
use crate::sources::SourcesReport;
use crate::tick::server::Listening;
use crate::upstream::UpstreamReport;
use crate::zeromq::ZeromqReport;

/// Printed as a line of JSON when the plant's sockets are open and its ring can be joined.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Ready {
    /// The ring to join.
    pub ready: String,
    /// Id of the process.
    pub pid: u32,
    /// Address of the hub's listener, if there is a hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub: Option<SocketAddr>,
    /// The hub's memory bound by its settings, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub_memory_bytes: Option<usize>,
    /// The address at which non-interactive providers connect, if they can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publishers: Option<SocketAddr>,
    /// Address of the live page, metrics and health, if they are served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<SocketAddr>,
    /// The address at which ZeroMQ subscribers connect, if there is an outlet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zeromq: Option<SocketAddr>,
    /// The address at which kdb+ clients connect, if they can, and the day's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kdb: Option<Listening>,
    /// Where plants below catch up and send re-requests, if there is a bridge to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridge: Option<BridgeReady>,
}

impl Ready {
    /// Describes the ring only; the caller fills in the addresses.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        Self { ready: config.ring.to_string(), pid: std::process::id(), ..Self::default() }
    }
}

/// Totals of a plant.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PlantReport {
    /// Name of the service.
    pub service: String,
    /// Name of the ring.
    pub ring: String,
    /// Ticks published.
    pub ticks: u64,
    /// Items in the plant.
    pub items: usize,
    /// Times that ticks waited because a subscriber kept the ring full.
    pub ring_stalls: u64,
    /// Total of those waits, in ns.
    pub ring_stalled_ns: u64,
    /// Live subscribers that lost their place because they kept the ring full for longer than its stall
    /// limit.
    pub ring_evicted: u64,
    /// Datagrams that were longer than a slot and were truncated.
    pub truncated_datagrams: u64,
    /// Why the plant ended early, if it did.
    pub refused: Option<String>,
    /// The feeds.
    pub feeds: Vec<FeedReport>,
    /// The best bid and offer over feeds, if it is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbbo: Option<NbboReport>,
    /// Totals of the OMM sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<SourcesReport>,
    /// Totals of the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub: Option<HubReport>,
    /// Totals of the ZeroMQ outlet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zeromq: Option<ZeromqReport>,
    /// Totals of the kdb+ outlet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kdb: Option<KdbReport>,
    /// Totals of the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<JournalReport>,
    /// Totals of the bridge to plants below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridge: Option<BridgeReport>,
    /// Totals of the plant above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<UpstreamReport>,
}

/// Totals of the best bid and offer over feeds.
#[derive(Debug, Serialize, Deserialize)]
pub struct NbboReport {
    /// Ticks published.
    pub ticks: u64,
    /// Ticks whose bid was equal to the ask.
    pub locked: u64,
    /// Ticks whose bid was above the ask.
    pub crossed: u64,
    /// Changes that were not published because the service was full.
    pub items_refused: u64,
}

impl NbboReport {
    /// The totals so far.
    fn of(consolidation: &Consolidation) -> Self {
        let counters = consolidation.counters();
        Self {
            ticks: counters.ticks,
            locked: counters.locked,
            crossed: counters.crossed,
            items_refused: counters.items_refused,
        }
    }
}

/// Totals of a feed.
#[derive(Debug, Serialize, Deserialize)]
pub struct FeedReport {
    /// The feed's name.
    pub name: String,
    /// Name of the feed's protocol, such as `itch50-moldudp64`.
    pub protocol: String,
    /// The current session, as the protocol names it; `None` before the first packet, and for a file without
    /// packets.
    pub session: Option<String>,
    /// `true` if the current session has ended.
    pub ended: bool,
    /// Announced ends of session that were withdrawn because the session continued.
    #[serde(default)]
    pub false_ends: u64,
    /// The state last published to subscribers: initial, live, recovering or stale.
    pub state: String,
    /// The first message that was lost in the current session: everything published since then may be wrong.
    pub damaged_from: Option<u64>,
    /// The first message received of the current session if earlier ones are missing from its books: they are
    /// suspect.
    #[serde(default)]
    pub begun_late_at: Option<u64>,
    /// Messages about orders that were not on the books.
    #[serde(default)]
    pub unknown_orders: u64,
    /// Sequence of the next message to deliver; `None` before the first packet, and for a file without packets.
    pub next_sequence: Option<u64>,
    /// Messages, each counted once however many lines carried it.
    pub messages: u64,
    /// Bytes of those messages.
    pub message_bytes: u64,
    /// Ticks published for the feed.
    pub ticks: u64,
    /// Messages that neither a line nor recovery delivered in time, except those of `absurd_gaps`.
    pub missing_messages: u64,
    /// Gaps in the sequence, including those of `absurd_gaps`.
    pub gaps: u64,
    /// Gaps of more messages than any feed sends, which `missing_messages` excludes.
    #[serde(default)]
    pub absurd_gaps: u64,
    /// Messages that could not be decoded.
    pub malformed_messages: u64,
    /// Ticks published without an item, because the plant's item limit was reached.
    pub items_refused: u64,
    /// Orders on the books at the end; 0 for a protocol without orders.
    pub live_orders: usize,
    /// Messages of symbols outside the configured selection.
    #[serde(default)]
    pub passed_over: u64,
    /// Counters of the receiving thread's pool, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolReport>,
    /// The file that replaces the lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What ended the file early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
    /// The lines, in the order of the configuration.
    pub lines: Vec<LineReport>,
    /// Recovery; `None` if the feed has none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recovery: Option<RecoveryReport>,
}

impl FeedReport {
    /// Collects the counters of a feed's channel and lines.
    fn of(
        feed: &config::Feed,
        channel: &Channel,
        receivers: &mut [UdpReceiver],
        pool: Option<PoolCounters>,
        recovery: Option<&Recovery>,
    ) -> Self {
        let counters = channel.counters();
        Self {
            name: feed.name.clone(),
            protocol: feed.protocol.name().to_owned(),
            session: channel.arbiter().session().map(|session| session.to_string()),
            ended: counters.ended,
            false_ends: channel.arbiter().statistics().false_ends,
            state: channel.state().to_string(),
            damaged_from: channel.damaged_from(),
            begun_late_at: channel.begun_late_at(),
            unknown_orders: channel.normaliser().unknown_orders(),
            next_sequence: channel.arbiter().next_sequence(),
            messages: counters.messages,
            message_bytes: counters.message_bytes,
            ticks: counters.ticks,
            missing_messages: counters.missing,
            gaps: counters.gaps,
            absurd_gaps: counters.absurd_gaps,
            malformed_messages: counters.malformed_messages,
            items_refused: counters.items_refused,
            live_orders: channel.normaliser().live_orders(),
            passed_over: channel.passed_over(),
            pool: pool.map(PoolReport::of),
            file: feed.file.as_ref().map(|file| file.path.display().to_string()),
            damage: None,
            recovery: recovery.map(|recovery| RecoveryReport::of(recovery, channel)),
            lines: feed
                .lines
                .iter()
                .zip(receivers)
                .enumerate()
                .filter_map(|(number, (line, receiver))| {
                    Some(LineReport::of(line, Line::new(number)?, channel, receiver))
                })
                .collect(),
        }
    }
}

/// Requests for retransmission, and their results.
#[derive(Debug, Serialize, Deserialize)]
pub struct RecoveryReport {
    /// Requests made, including those that could not be sent.
    pub requests: u64,
    /// Answers accepted.
    pub answers: u64,
    /// Messages that were missing on every line and were recovered.
    pub recovered: u64,
    /// Requests without an answer in time.
    pub timeouts: u64,
    /// Messages that no server delivered.
    pub given_up: u64,
    /// Answers that were rejected, by reason.
    pub rejected: BTreeMap<String, u64>,
    /// Datagrams from an address that is not a configured server.
    pub strangers: u64,
    /// Requests not sent, connections not made or broken, logins refused.
    pub failures: u64,
    /// Connections started, for servers that use connections.
    pub connections: u64,
}

impl RecoveryReport {
    fn of(recovery: &Recovery, channel: &Channel) -> Self {
        let (statistics, counters) = (recovery.statistics(), recovery.counters);
        let received = channel.line(Line::RECOVERY);
        // A change of sequence numbering is seen by the arbiter only, not by the client.
        let rejected = statistics.rejected_by_reason().chain([("other-numbering", received.stale_session)]);
        Self {
            requests: statistics.requests,
            answers: statistics.answers,
            recovered: received.first,
            timeouts: statistics.timeouts,
            given_up: statistics.given_up,
            rejected: by_reason(rejected),
            strangers: counters.strangers,
            failures: counters.failures,
            connections: counters.connections,
        }
    }
}

/// The reasons that occurred, with their counts.
fn by_reason<'r>(counts: impl Iterator<Item = (&'r str, u64)>) -> BTreeMap<String, u64> {
    let counts = counts.filter(|(_, count)| *count > 0);
    counts.map(|(reason, count)| (reason.to_owned(), count)).collect()
}

/// Totals of one line.
#[derive(Debug, Serialize, Deserialize)]
pub struct LineReport {
    /// The line's name.
    pub name: String,
    /// Initial, live or stale.
    pub state: String,
    /// Multicast group, or own address for unicast, with the port.
    pub address: String,
    /// Datagrams received, malformed ones included.
    pub datagrams: u64,
    /// Bytes of those datagrams.
    pub bytes: u64,
    /// Messages that arrived on this line first.
    pub first: u64,
    /// Messages that had arrived before, on this line or another.
    pub duplicates: u64,
    /// Messages that had been declared missing before they arrived.
    pub late: u64,
    /// Packets of other sessions that no later packet confirmed.
    pub strays: u64,
    /// Messages after the session's announced end, which was not withdrawn.
    #[serde(default)]
    pub after_end: u64,
    /// Messages that never arrived on this line.
    pub missing: u64,
    /// Datagrams that the kernel dropped because the socket buffer was full.
    pub kernel_drops: u64,
    /// Size of the socket's receive buffer that the kernel granted, in bytes.
    pub receive_buffer: usize,
    /// Datagrams that could not be read, by reason.
    pub malformed: BTreeMap<String, u64>,
}

impl LineReport {
    /// Collects the counters of the channel and the socket for a line.
    fn of(line: &config::Line, number: Line, channel: &Channel, receiver: &mut UdpReceiver) -> Self {
        let seen = channel.line(number);
        Self {
            name: line.name.clone(),
            state: channel.line_state(number).to_string(),
            address: line.address.to_string(),
            datagrams: seen.datagrams,
            bytes: seen.bytes,
            first: seen.first,
            duplicates: seen.duplicates,
            late: seen.late,
            strays: seen.strays,
            after_end: seen.after_end,
            missing: seen.missing(),
            kernel_drops: receiver.ask_kernel_drops(),
            receive_buffer: receiver.receive_buffer().got,
            malformed: by_reason(seen.malformed_by_reason()),
        }
    }
}

/// Counters of a receiving thread's pool.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct PoolReport {
    /// Slots that were available when one was needed.
    pub hits: u64,
    /// Slots that were not available.
    pub misses: u64,
    /// Times that no slot was free.
    pub exhaustions: u64,
    /// Datagrams that were dropped because no slot was free.
    pub dropped: u64,
    /// Maximum number of slots in use.
    pub high_water: u64,
}

impl PoolReport {
    fn of(counters: PoolCounters) -> Self {
        let PoolCounters { hits, misses, exhaustions, dropped, high_water } = counters;
        Self { hits, misses, exhaustions, dropped, high_water }
    }
}

impl PlantReport {
    pub(crate) fn of<'a>(
        config: &Config,
        sequencer: &mut Sequencer<RingPublish>,
        truncated_datagrams: u64,
        refused: Option<&Refused>,
        feeds: impl Iterator<
            Item = (&'a Channel, &'a mut [UdpReceiver], Option<PoolCounters>, Option<&'a Recovery>),
        >,
    ) -> Self {
        Self {
            service: config.name.clone(),
            ring: config.ring.to_string(),
            ticks: sequencer.published(),
            items: sequencer.items().len(),
            ring_stalls: sequencer.publisher().stalls(),
            ring_stalled_ns: sequencer.publisher().stalled_ns(),
            ring_evicted: sequencer.publisher().ring().evicted(),
            truncated_datagrams,
            refused: refused.map(ToString::to_string),
            nbbo: sequencer.consolidation().map(NbboReport::of),
            feeds: config
                .feeds
                .iter()
                .zip(feeds)
                .map(|(feed, (channel, receivers, pool, recovery))| {
                    FeedReport::of(feed, channel, receivers, pool, recovery)
                })
                .collect(),
            ..Self::default()
        }
    }

    /// Datagrams that the kernel dropped, on all lines.
    pub fn kernel_drops(&self) -> u64 {
        self.feeds.iter().flat_map(|feed| &feed.lines).map(|line| line.kernel_drops).sum()
    }

    /// Whether every file that replaces lines was read to its end.
    pub fn files_are_whole(&self) -> bool {
        self.feeds.iter().all(|feed| feed.damage.is_none())
    }

    /// Messages of all feeds.
    pub fn messages(&self) -> u64 {
        self.feeds.iter().map(|feed| feed.messages).sum()
    }

    /// Bytes of the messages of all feeds.
    pub fn message_bytes(&self) -> u64 {
        self.feeds.iter().map(|feed| feed.message_bytes).sum()
    }

    /// Messages that arrived on no line, of all feeds.
    pub fn missing_messages(&self) -> u64 {
        self.feeds.iter().map(|feed| feed.missing_messages).sum()
    }

    /// Whether messages arrived on no line of a feed, or sequence numbers suggest so.
    pub fn is_anything_missing(&self) -> bool {
        self.feeds.iter().any(|feed| feed.missing_messages > 0 || feed.absurd_gaps > 0)
    }
}

/// Names the subscriber that keeps a ring full, for a warning.
pub fn slowest(view: &tapeline_ring::Snapshot) -> String {
    match view.subscribers.iter().filter(|one| !one.evicted).max_by_key(|subscriber| subscriber.lag_bytes) {
        Some(own) if own.pid == std::process::id() => {
            format!(
                "{}, a thread of this plant, has not released {} bytes: it hangs, or lacks processor time",
                own.label, own.lag_bytes
            )
        }
        Some(slow) => format!(
            "reader {} (process {}) has not released {} bytes; end it, or let it go on (`ps -o stat,cmd -p {}`: T is stopped, `kill -CONT {}`)",
            slow.label, slow.pid, slow.lag_bytes, slow.pid, slow.pid
        ),
        None => "no reader is registered".to_owned(),
    }
}

/// Returns the evicted subscribers that are still registered, for an operator.
pub(crate) fn evicted(view: &tapeline_ring::Snapshot) -> String {
    let evicted = view.subscribers.iter().filter(|one| one.evicted);
    let named: Vec<_> = evicted.map(|one| format!("{} (process {})", one.label, one.pid)).collect();
    if named.is_empty() { "gone meanwhile".to_owned() } else { named.join(", ") }
}
