//! What a plant says about itself: that it is ready, and, at its end, what it did.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use tapeline_console::output;
use tapeline_feed::line::Line;
use tapeline_measure::figures::{duration, thousands};
use tapeline_plant::{Channel, Refused, RingPublish, Sequencer};
use tapeline_wire::pool::Counters;
use tapeline_wire::udp::Receiver;

use super::config::Config;
use super::cursor;
use super::hub::{HubReport, RunningHub};
use super::journal::JournalReport;
use super::kdb::KdbReport;
use super::recovery::Recovery;
use super::sources::SourcesReport;
use super::zeromq::{RunningZeromq, ZeromqReport};
use crate::tick::server::Listening;

/// Printed as a line of JSON when the plant's sockets are open and its ring can be joined.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ready {
    /// The ring to join.
    pub(crate) ready: String,
    /// The process.
    pub(crate) pid: u32,
    /// Where clients connect, where there is a hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hub: Option<SocketAddr>,
    /// The most memory that the hub takes, bytes, by its settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hub_memory_bytes: Option<usize>,
    /// Where non-interactive providers connect, where they can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) publishers: Option<SocketAddr>,
    /// Where the live page, metrics and health are, if anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) web: Option<SocketAddr>,
    /// Where subscribers of ZeroMQ connect, where there is anything for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) zeromq: Option<SocketAddr>,
    /// Where kdb+ clients connect, where they can, and the day's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kdb: Option<Listening>,
}

impl Ready {
    pub(super) fn of(
        config: &Config,
        hub: Option<&RunningHub>,
        publishers: Option<SocketAddr>,
        web: Option<SocketAddr>,
        zeromq: Option<&RunningZeromq>,
    ) -> Self {
        Self {
            ready: config.ring.to_string(),
            pid: std::process::id(),
            hub: hub.map(|hub| hub.address),
            hub_memory_bytes: hub.map(|hub| hub.memory_bytes),
            publishers,
            web,
            zeromq: zeromq.map(|zeromq| zeromq.address),
            kdb: None,
        }
    }
}

/// What a plant did.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PlantReport {
    /// The service.
    pub(crate) service: String,
    /// The ring.
    pub(crate) ring: String,
    /// Ticks published.
    pub(crate) ticks: u64,
    /// Items named.
    pub(crate) items: usize,
    /// Times and ns that ticks waited because a subscriber held the ring full.
    pub(crate) ring_stalls: u64,
    /// See `ring_stalls`.
    pub(crate) ring_stalled_ns: u64,
    /// Live subscribers that lost their place because they held the full ring for longer than its stall limit.
    pub(crate) ring_evicted: u64,
    /// Datagrams that were longer than a slot and so cut.
    pub(crate) truncated_datagrams: u64,
    /// Why it ended early, if it did.
    pub(crate) refused: Option<String>,
    /// The feeds.
    pub(crate) feeds: Vec<FeedReport>,
    /// The best bid and offer over feeds, where it is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) nbbo: Option<NbboReport>,
    /// What came of its sources that speak OMM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sources: Option<SourcesReport>,
    /// What its clients got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hub: Option<HubReport>,
    /// What subscribers of ZeroMQ got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) zeromq: Option<ZeromqReport>,
    /// What kdb+ clients got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kdb: Option<KdbReport>,
    /// What its journal kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) journal: Option<JournalReport>,
}

/// What was published of the best bid and offer over feeds.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NbboReport {
    pub(crate) ticks: u64,
    /// Ticks whose bid was equal to the ask.
    pub(crate) locked: u64,
    /// Ticks whose bid was above the ask.
    pub(crate) crossed: u64,
    /// Changes that were not published because the service was full.
    pub(crate) items_refused: u64,
}

/// What a feed brought.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FeedReport {
    pub(crate) name: String,
    pub(crate) protocol: String,
    pub(crate) session: Option<String>,
    pub(crate) ended: bool,
    /// Announced ends that were taken back, as the session went on.
    #[serde(default)]
    pub(crate) false_ends: u64,
    /// As subscribers were told it last: initial, live, recovering or stale.
    pub(crate) state: String,
    /// The first message that was lost in the present session: since then what is published may be wrong.
    pub(crate) damaged_from: Option<u64>,
    /// The first message that came of the present session, where its books lack those before it: they are suspect.
    #[serde(default)]
    pub(crate) begun_late_at: Option<u64>,
    /// Messages about orders that were not on the books.
    #[serde(default)]
    pub(crate) unknown_orders: u64,
    pub(crate) next_sequence: Option<u64>,
    /// Messages, each counted once however many lines carried it.
    pub(crate) messages: u64,
    pub(crate) message_bytes: u64,
    pub(crate) ticks: u64,
    /// Messages missing on every line, and the holes that they make.
    pub(crate) missing_messages: u64,
    pub(crate) gaps: u64,
    /// Holes of more messages than any feed sends, which `missing_messages` leaves out.
    #[serde(default)]
    pub(crate) absurd_gaps: u64,
    pub(crate) malformed_messages: u64,
    pub(crate) items_refused: u64,
    pub(crate) live_orders: usize,
    /// Messages of symbols that are not wanted.
    #[serde(default)]
    pub(crate) passed_over: u64,
    /// Of the receiving thread's pool, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pool: Option<PoolReport>,
    /// The file that took the place of the lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    /// What ended the file early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) damage: Option<String>,
    pub(crate) lines: Vec<LineReport>,
    /// Absent where nobody is asked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) recovery: Option<RecoveryReport>,
}

/// What was asked for again, and what came of it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RecoveryReport {
    pub(crate) requests: u64,
    pub(crate) answers: u64,
    /// Messages that were missing on every line and came so.
    pub(crate) recovered: u64,
    /// Requests without an answer in time.
    pub(crate) timeouts: u64,
    /// Messages that no server gave.
    pub(crate) given_up: u64,
    /// Answers that were not taken, by reason.
    pub(crate) rejected: BTreeMap<String, u64>,
    /// Datagrams of somebody who is no server.
    pub(crate) strangers: u64,
    /// Requests not sent, connections not made or broken, logins refused.
    pub(crate) failures: u64,
    /// Connections begun, where servers are reached by those.
    pub(crate) connections: u64,
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
pub(crate) struct LineReport {
    pub(crate) name: String,
    /// Initial, live or stale.
    pub(crate) state: String,
    pub(crate) address: String,
    pub(crate) datagrams: u64,
    pub(crate) bytes: u64,
    /// Messages whose first copy came here.
    pub(crate) first: u64,
    pub(crate) duplicates: u64,
    pub(crate) late: u64,
    /// Packets of other sessions that nothing confirmed.
    pub(crate) strays: u64,
    /// Messages from behind the session's announced end, which was not taken back.
    #[serde(default)]
    pub(crate) after_end: u64,
    /// Messages that never came on this line.
    pub(crate) missing: u64,
    /// Datagrams that the kernel dropped for want of buffer.
    pub(crate) kernel_drops: u64,
    pub(crate) receive_buffer: usize,
    /// Datagrams that could not be read, by reason.
    pub(crate) malformed: BTreeMap<String, u64>,
}

/// What a receiving thread's pool has given.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct PoolReport {
    /// Slots that it had when one was needed.
    hits: u64,
    /// Slots that it did not have.
    misses: u64,
    /// Times at which none was free.
    exhaustions: u64,
    /// Datagrams that were thrown away because none was free.
    pub(crate) dropped: u64,
    /// The most that held datagrams.
    high_water: u64,
}

impl PoolReport {
    fn of(counters: Counters) -> Self {
        let Counters { hits, misses, exhaustions, dropped, high_water } = counters;
        Self { hits, misses, exhaustions, dropped, high_water }
    }
}

impl PlantReport {
    pub(super) fn of<'a>(
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
            nbbo: sequencer.consolidation().map(|consolidation| {
                let counters = consolidation.counters();
                NbboReport {
                    ticks: counters.ticks,
                    locked: counters.locked,
                    crossed: counters.crossed,
                    items_refused: counters.items_refused,
                }
            }),
            feeds: config
                .feeds
                .iter()
                .zip(feeds)
                .map(|(feed, (channel, receivers, pool, recovery))| {
                    let counters = channel.counters();
                    FeedReport {
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
                                let number = Line::new(number)?;
                                let seen = channel.line(number);
                                Some(LineReport {
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
                                })
                            })
                            .collect(),
                    }
                })
                .collect(),
        }
    }

    /// Prints the report for people: a row for each line, then a paragraph for each feed, then what the plant's clients got.
    pub(crate) fn print(&self) -> anyhow::Result<()> {
        let mut text = format!("{}\n", self.table());
        for feed in &self.feeds {
            feed.describe(&mut text);
        }
        self.describe_clients(&mut text);
        text.push_str(&format!(
            "\n\nring {}: {} ticks of {} items; waited {} times for a slow subscriber, {} in all",
            self.ring,
            thousands(self.ticks),
            thousands(self.items as u64),
            thousands(self.ring_stalls),
            duration(self.ring_stalled_ns),
        ));
        if let Some(refused) = &self.refused {
            text.push_str(&format!("\nended early: {refused}"));
        }
        output::print(&text)
    }

    /// A row for each line.
    fn table(&self) -> output::Table {
        let heading = [
            "line",
            "state",
            "datagrams",
            "messages first",
            "duplicates",
            "missing here",
            "late",
            "malformed",
            "kernel drops",
        ];
        let mut table = output::table(heading);
        for feed in &self.feeds {
            for line in &feed.lines {
                let malformed: u64 = line.malformed.values().sum();
                let counts = [
                    line.datagrams,
                    line.first,
                    line.duplicates,
                    line.missing,
                    line.late,
                    malformed,
                    line.kernel_drops,
                ];
                let name = format!("{} {} ({})", feed.name, line.name, line.address);
                table.add_row([name, line.state.clone()].into_iter().chain(counts.map(thousands)));
            }
        }
        table
    }

    /// What came of providers, and what clients, journal and ring got.
    fn describe_clients(&self, text: &mut String) {
        if let Some(sources) = &self.sources {
            text.push_str(&format!(
                "\nsources: {} images, {} updates and {} statuses, {} take-overs, {} posts taken and {} refused, {} messages \
                 passed over, {} of items without a place, {} too long for the ring, {} items ended whose place another has",
                thousands(sources.refreshes),
                thousands(sources.updates),
                thousands(sources.statuses),
                thousands(sources.taken_over),
                thousands(sources.posts),
                thousands(sources.posts_refused),
                thousands(sources.passed_over),
                thousands(sources.no_place),
                thousands(sources.too_long),
                thousands(sources.ended),
            ));
        }
        if let Some(hub) = &self.hub {
            text.push_str(&format!("\n{hub}"));
        }
        if let Some(JournalReport { folder, ticks, missing, last }) = &self.journal {
            let (ticks, missing) = (thousands(*ticks), thousands(*missing));
            text.push_str(&format!(
                "\njournal in {folder}: {ticks} ticks kept, {missing} missing, the last is {last}"
            ));
        }
        if let Some(zeromq) = &self.zeromq {
            text.push_str(&format!(
                "\nZeroMQ at {}: {} subscribers, {} let go; {} messages sent, {} dropped",
                zeromq.address,
                thousands(zeromq.subscribers),
                thousands(zeromq.let_go),
                thousands(zeromq.sent),
                thousands(zeromq.dropped),
            ));
            text.push_str(&cursor::losses(zeromq.rejoined, zeromq.missing));
        }
        if let Some(kdb) = &self.kdb {
            text.push_str(&format!("\nkdb+: {kdb}"));
        }
        if let Some(nbbo) = &self.nbbo {
            text.push_str(&format!(
                "\nbest bid and offer: {} ticks, {} of them locked and {} crossed; {} refused",
                thousands(nbbo.ticks),
                thousands(nbbo.locked),
                thousands(nbbo.crossed),
                thousands(nbbo.items_refused),
            ));
        }
    }

    /// Datagrams that the kernel dropped, on all lines.
    pub(crate) fn kernel_drops(&self) -> u64 {
        self.feeds.iter().flat_map(|feed| &feed.lines).map(|line| line.kernel_drops).sum()
    }

    /// Whether every file that took the place of lines was read to its end.
    pub(crate) fn files_are_whole(&self) -> bool {
        self.feeds.iter().all(|feed| feed.damage.is_none())
    }

    /// Messages of all feeds.
    pub(crate) fn messages(&self) -> u64 {
        self.feeds.iter().map(|feed| feed.messages).sum()
    }

    /// Bytes of the messages of all feeds.
    pub(crate) fn message_bytes(&self) -> u64 {
        self.feeds.iter().map(|feed| feed.message_bytes).sum()
    }

    /// The sequence of the last message of all feeds, added up: for the demo, which has one.
    pub(crate) fn last_sequence(&self) -> u64 {
        self.feeds.iter().filter_map(|feed| feed.next_sequence).map(|next| next.saturating_sub(1)).sum()
    }

    /// Messages that came on no line, of all feeds.
    pub(crate) fn missing_messages(&self) -> u64 {
        self.feeds.iter().map(|feed| feed.missing_messages).sum()
    }

    /// Whether messages came on no line of a feed, or sequences made it seem so.
    pub(crate) fn is_anything_missing(&self) -> bool {
        self.feeds.iter().any(|feed| feed.missing_messages > 0 || feed.absurd_gaps > 0)
    }
}

impl FeedReport {
    /// Adds the feed's paragraph.
    fn describe(&self, text: &mut String) {
        let session = self.session.as_deref().or(self.file.as_deref()).unwrap_or("none seen");
        let over = if self.ended { ", over" } else { "" };
        text.push_str(&format!(
            "\n{}: {}, session {session}{over}; {} messages, {} missing in {} gaps; {} malformed; {} live orders",
            self.name,
            self.state,
            thousands(self.messages),
            thousands(self.missing_messages),
            thousands(self.gaps),
            thousands(self.malformed_messages),
            thousands(self.live_orders as u64),
        ));
        let after_end = self.lines.iter().map(|line| line.after_end).sum();
        for (count, what) in [
            (self.passed_over, "messages passed over: their symbols are not wanted"),
            (self.false_ends, "announced ends taken back: the session went on"),
            (after_end, "messages from behind the session's end left out: nothing confirmed them"),
            (
                self.absurd_gaps,
                "of the gaps are larger than any feed: sequences were wrong or forged, and nothing of them is counted as missing",
            ),
            (self.unknown_orders, "messages about orders that were not on the books"),
        ] {
            if count > 0 {
                text.push_str(&format!("\n  {} {what}", thousands(count)));
            }
        }
        if let Some(first) = self.begun_late_at {
            text.push_str(&format!(
                "\n  suspect: heard from message {} of its session on, and books lack what was before; start = \"from-one\" with \
                 [feed.recovery] asks for it",
                thousands(first)
            ));
        } else if let Some(lost) = self.damaged_from {
            text.push_str(&format!(
                "\n  suspect since message {}, which was lost, until the next session",
                thousands(lost)
            ));
        }
        if let Some(damage) = &self.damage {
            text.push_str(&format!("\n  the file is damaged, and was read up to there: {damage}"));
        }
        for (reason, count) in self.lines.iter().flat_map(|line| &line.malformed) {
            text.push_str(&format!("\n  {} datagrams refused: {reason}", thousands(*count)));
        }
        if let Some(pool) = &self.pool {
            text.push_str(&format!(
                "\n  pool: at most {} datagrams at once; {} times without a free slot, {} slots from elsewhere, \
                 {} datagrams thrown away",
                thousands(pool.high_water),
                thousands(pool.exhaustions),
                thousands(pool.misses - pool.dropped.min(pool.misses)),
                thousands(pool.dropped)
            ));
        }
        if let Some(recovery) = &self.recovery {
            text.push_str(&format!(
                "\n  recovery: {} messages in {} answers to {} requests; {} timeouts, {} given up, {} answers not taken",
                thousands(recovery.recovered),
                thousands(recovery.answers),
                thousands(recovery.requests),
                thousands(recovery.timeouts),
                thousands(recovery.given_up),
                thousands(recovery.rejected.values().sum()),
            ));
        }
        if self.items_refused > 0 {
            text.push_str(&format!(
                "\n  {} ticks went out without an item: max_items is reached",
                thousands(self.items_refused)
            ));
        }
    }
}

/// Who holds a ring full, for a warning.
pub(crate) fn slowest(view: &tapeline_ring::Snapshot) -> String {
    match view.subscribers.iter().filter(|one| !one.evicted).max_by_key(|subscriber| subscriber.lag_bytes) {
        Some(slow) => format!(
            "subscriber {} (process {}) has not released {} bytes; end it, or `tapeline ring stat` shows all",
            slow.label, slow.pid, slow.lag_bytes
        ),
        None => "no subscriber is registered".to_owned(),
    }
}
