//! What a plant says about itself: that it is ready, and, at its end, what it did.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use tapeline_feed::line::Line;
use tapeline_plant::{Channel, Consolidation, Refused, RingPublish, Sequencer};
use tapeline_wire::pool::Counters;
use tapeline_wire::udp::Receiver;

use crate::config::{self, Config};
use crate::hub::HubReport;
use crate::journal::JournalReport;
use crate::kdb::KdbReport;
use crate::recovery::Recovery;
use crate::sources::SourcesReport;
use crate::tick::server::Listening;
use crate::zeromq::ZeromqReport;

/// Printed as a line of JSON when the plant's sockets are open and its ring can be joined.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ready {
    /// The ring to join.
    pub ready: String,
    /// The process.
    pub pid: u32,
    /// Where clients connect, where there is a hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub: Option<SocketAddr>,
    /// The most memory that the hub takes, bytes, by its settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub_memory_bytes: Option<usize>,
    /// Where non-interactive providers connect, where they can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publishers: Option<SocketAddr>,
    /// Where the live page, metrics and health are, if anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<SocketAddr>,
    /// Where subscribers of ZeroMQ connect, where there is anything for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zeromq: Option<SocketAddr>,
    /// Where kdb+ clients connect, where they can, and the day's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kdb: Option<Listening>,
}

impl Ready {
    /// Of the ring alone; where clients connect is filled in.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        Self {
            ready: config.ring.to_string(),
            pid: std::process::id(),
            hub: None,
            hub_memory_bytes: None,
            publishers: None,
            web: None,
            zeromq: None,
            kdb: None,
        }
    }
}

/// What a plant did.
#[derive(Debug, Serialize, Deserialize)]
pub struct PlantReport {
    /// The service.
    pub service: String,
    /// The ring.
    pub ring: String,
    /// Ticks published.
    pub ticks: u64,
    /// Items named.
    pub items: usize,
    /// Times and ns that ticks waited because a subscriber held the ring full.
    pub ring_stalls: u64,
    /// See `ring_stalls`.
    pub ring_stalled_ns: u64,
    /// Live subscribers that lost their place because they held the full ring for longer than its stall limit.
    pub ring_evicted: u64,
    /// Datagrams that were longer than a slot and so cut.
    pub truncated_datagrams: u64,
    /// Why it ended early, if it did.
    pub refused: Option<String>,
    /// The feeds.
    pub feeds: Vec<FeedReport>,
    /// The best bid and offer over feeds, where it is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbbo: Option<NbboReport>,
    /// What came of its sources that speak OMM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<SourcesReport>,
    /// What its clients got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub: Option<HubReport>,
    /// What subscribers of ZeroMQ got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zeromq: Option<ZeromqReport>,
    /// What kdb+ clients got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kdb: Option<KdbReport>,
    /// What its journal kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<JournalReport>,
}

/// What was published of the best bid and offer over feeds.
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
    /// What was published so far.
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

/// What a feed brought.
#[derive(Debug, Serialize, Deserialize)]
pub struct FeedReport {
    /// The feed's name.
    pub name: String,
    /// Name of the feed's protocol, such as `itch50-moldudp64`.
    pub protocol: String,
    /// The present session, as the protocol names it; `None` before the first packet, and for a file without packets.
    pub session: Option<String>,
    /// `true` if the present session has ended.
    pub ended: bool,
    /// Announced ends that were taken back, as the session went on.
    #[serde(default)]
    pub false_ends: u64,
    /// As subscribers were told it last: initial, live, recovering or stale.
    pub state: String,
    /// The first message that was lost in the present session: since then what is published may be wrong.
    pub damaged_from: Option<u64>,
    /// The first message that came of the present session, where its books lack those before it: they are suspect.
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
    /// Gaps in the sequence, those of `absurd_gaps` included.
    pub gaps: u64,
    /// Holes of more messages than any feed sends, which `missing_messages` leaves out.
    #[serde(default)]
    pub absurd_gaps: u64,
    /// Messages that could not be decoded.
    pub malformed_messages: u64,
    /// Ticks published without an item, because the plant had no place for another item.
    pub items_refused: u64,
    /// Orders on the books at the end; 0 for a protocol without orders.
    pub live_orders: usize,
    /// Messages of symbols that are not wanted.
    #[serde(default)]
    pub passed_over: u64,
    /// Of the receiving thread's pool, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolReport>,
    /// The file that took the place of the lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What ended the file early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
    /// The lines, in the order of the configuration.
    pub lines: Vec<LineReport>,
    /// Absent where nobody is asked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recovery: Option<RecoveryReport>,
}

impl FeedReport {
    /// What a feed's channel and lines say of it.
    fn of(
        feed: &config::Feed,
        channel: &Channel,
        receivers: &mut [Receiver],
        pool: Option<Counters>,
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

/// What was asked for again, and what came of it.
#[derive(Debug, Serialize, Deserialize)]
pub struct RecoveryReport {
    /// Requests made, those that could not be sent included.
    pub requests: u64,
    /// Answers accepted.
    pub answers: u64,
    /// Messages that were missing on every line and came so.
    pub recovered: u64,
    /// Requests without an answer in time.
    pub timeouts: u64,
    /// Messages that no server gave.
    pub given_up: u64,
    /// Answers that were not taken, by reason.
    pub rejected: BTreeMap<String, u64>,
    /// Datagrams of somebody who is no server.
    pub strangers: u64,
    /// Requests not sent, connections not made or broken, logins refused.
    pub failures: u64,
    /// Connections begun, where servers are reached by those.
    pub connections: u64,
}

impl RecoveryReport {
    fn of(recovery: &Recovery, channel: &Channel) -> Self {
        let (statistics, counters) = (recovery.statistics(), recovery.counters());
        let received = channel.line(Line::RECOVERY);
        // The client sees no other numbering: the arbiter does.
        let rejected = statistics.rejected_by_reason().chain([("other-numbering", received.stale_session)]);
        let rejected = rejected.filter(|(_, count)| *count > 0);
        Self {
            requests: statistics.requests,
            answers: statistics.answers,
            recovered: received.first,
            timeouts: statistics.timeouts,
            given_up: statistics.given_up,
            rejected: rejected.map(|(reason, count)| (reason.to_owned(), count)).collect(),
            strangers: counters.strangers,
            failures: counters.failures,
            connections: counters.connections,
        }
    }
}

/// What came on one line.
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
    /// Messages whose first copy came here.
    pub first: u64,
    /// Messages that had arrived before, on this line or another.
    pub duplicates: u64,
    /// Messages that had been declared missing before they arrived.
    pub late: u64,
    /// Packets of other sessions that nothing confirmed.
    pub strays: u64,
    /// Messages from behind the session's announced end, which was not taken back.
    #[serde(default)]
    pub after_end: u64,
    /// Messages that never came on this line.
    pub missing: u64,
    /// Datagrams that the kernel dropped for want of buffer.
    pub kernel_drops: u64,
    /// Size of the socket's receive buffer that the kernel granted, in bytes.
    pub receive_buffer: usize,
    /// Datagrams that could not be read, by reason.
    pub malformed: BTreeMap<String, u64>,
}

impl LineReport {
    /// What the channel and the socket say of a line.
    fn of(line: &config::Line, number: Line, channel: &Channel, receiver: &mut Receiver) -> Self {
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
            malformed: seen
                .malformed_by_reason()
                .filter(|(_, count)| *count > 0)
                .map(|(reason, count)| (reason.to_owned(), count))
                .collect(),
        }
    }
}

/// What a receiving thread's pool has given.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct PoolReport {
    /// Slots that it had when one was needed.
    pub hits: u64,
    /// Slots that it did not have.
    pub misses: u64,
    /// Times at which none was free.
    pub exhaustions: u64,
    /// Datagrams that were thrown away because none was free.
    pub dropped: u64,
    /// The most that held datagrams.
    pub high_water: u64,
}

impl PoolReport {
    fn of(counters: Counters) -> Self {
        let Counters { hits, misses, exhaustions, dropped, high_water } = counters;
        Self { hits, misses, exhaustions, dropped, high_water }
    }
}

impl PlantReport {
    pub(crate) fn of<'a>(
        config: &Config,
        sequencer: &mut Sequencer<RingPublish>,
        truncated_datagrams: u64,
        refused: Option<&Refused>,
        feeds: impl Iterator<Item = (&'a Channel, &'a mut [Receiver], Option<Counters>, Option<&'a Recovery>)>,
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
            hub: None,
            sources: None,
            zeromq: None,
            kdb: None,
            journal: None,
            nbbo: sequencer.consolidation().map(NbboReport::of),
            feeds: config
                .feeds
                .iter()
                .zip(feeds)
                .map(|(feed, (channel, receivers, pool, recovery))| {
                    FeedReport::of(feed, channel, receivers, pool, recovery)
                })
                .collect(),
        }
    }

    /// Datagrams that the kernel dropped, on all lines.
    pub fn kernel_drops(&self) -> u64 {
        self.feeds.iter().flat_map(|feed| &feed.lines).map(|line| line.kernel_drops).sum()
    }

    /// Whether every file that took the place of lines was read to its end.
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

    /// Messages that came on no line, of all feeds.
    pub fn missing_messages(&self) -> u64 {
        self.feeds.iter().map(|feed| feed.missing_messages).sum()
    }

    /// Whether messages came on no line of a feed, or sequences made it seem so.
    pub fn is_anything_missing(&self) -> bool {
        self.feeds.iter().any(|feed| feed.missing_messages > 0 || feed.absurd_gaps > 0)
    }
}

/// Who holds a ring full, for a warning.
pub fn slowest(view: &tapeline_ring::Snapshot) -> String {
    match view.subscribers.iter().filter(|one| !one.evicted).max_by_key(|subscriber| subscriber.lag_bytes) {
        Some(slow) => format!(
            "subscriber {} (process {}) has not released {} bytes; end it, or see all with `tapeline ring stat`",
            slow.label, slow.pid, slow.lag_bytes
        ),
        None => "no subscriber is registered".to_owned(),
    }
}
