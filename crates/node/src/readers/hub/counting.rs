//! The figures that the hub's thread reports once a second, and their merge on another thread.

use std::net::SocketAddr;

use tapeline_hub::{AccessCounters, Counters, Hub, SessionCounters, SlowPolicy};
use tapeline_measure::{Nanos, Recorder};
use tapeline_omm::domain::directory::ServiceState;
use tapeline_plant::StampedBy;
use tapeline_plant::cache::Memory;
use tapeline_plant::tick;

use super::connections::ClientConnections;
use crate::readers::counting::{SnapshotWriter, per_second};
use crate::stat::snapshot::{self, Cache, Hop, Latency, Rates, Totals};

/// How often the hub reports.
const EVERY_NS: i64 = 1_000_000_000;

/// The hops of a tick's way through the hub, in the order of [`HubFigures::hops`].
pub(crate) const HOPS: [&str; 4] =
    ["wire_to_decoded", "decoded_to_sequenced", "sequenced_to_taken", "wire_to_sent"];

/// The figures of the hub's thread.
#[derive(Debug, Default)]
pub(crate) struct HubFigures {
    at: Nanos,
    /// The last report.
    ended: bool,
    counters: Counters,
    access: AccessCounters,
    memory: Option<Memory>,
    /// The number of current entries in `sessions`.
    open: usize,
    /// Entries are reused with the memory of their texts.
    sessions: Vec<SessionFigures>,
    services: Vec<snapshot::Service>,
    /// Latencies since the last report; `None` where nobody reads them, because each set takes 1.1 MB.
    hops: Option<Box<[Recorder; 4]>>,
}

#[derive(Clone, Debug, Default)]
struct SessionFigures {
    number: usize,
    user: String,
    connected: Connected,
    streams: usize,
    queued_messages: usize,
    queued_bytes: usize,
    owed: usize,
    waits_since: Option<Nanos>,
    slow: &'static str,
    counters: SessionCounters,
}

impl HubFigures {
    /// Figures with latencies.
    pub(crate) fn with_latencies() -> Self {
        Self { hops: Some(Box::default()), ..Self::default() }
    }

    /// Items requested by the sessions that are open.
    pub(crate) fn requests(&self) -> u64 {
        let sessions = self.sessions.get(..self.open).unwrap_or_default();
        sessions.iter().map(|session| session.counters.requests).sum()
    }
}

/// Data of a session's connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Connected {
    pub(crate) since: Nanos,
    pub(crate) address: Option<SocketAddr>,
    pub(crate) transport: &'static str,
    pub(crate) unsent_bytes: usize,
}

/// The hub's side. The first tick of each turn is timed, since it has waited longest, and every tick of the turn counts with its latencies:
/// after a stall the delayed ticks weigh as many as they are. That costs a look at the clock and four histogram entries per batch of ticks; the
/// rest is done once a second.
#[derive(Debug)]
pub(crate) struct FigureWriter {
    snapshots: SnapshotWriter<HubFigures>,
    told: Nanos,
    /// This turn's first tick.
    first: Option<Taken>,
    /// The number of ticks of this turn.
    ticks: usize,
    /// By which clock the ticks are stamped.
    stamped_by: StampedBy,
}

/// When the hub took a tick, with the times of the tick.
#[derive(Clone, Copy, Debug)]
struct Taken {
    wire: Nanos,
    decoded: Nanos,
    sequenced: Nanos,
    taken: Nanos,
}

impl FigureWriter {
    pub(crate) fn new(snapshots: SnapshotWriter<HubFigures>) -> Self {
        Self { snapshots, told: Nanos(0), first: None, ticks: 0, stamped_by: StampedBy::default() }
    }

    /// Notes by which clock the ticks are stamped. While that cannot be compared with this host's, hops from a stamp to this host are not recorded.
    pub(crate) const fn stamped_by(&mut self, clock: StampedBy) {
        self.stamped_by = clock;
    }

    /// Whether latencies are recorded: otherwise a turn needs no look at the clock for them.
    pub(crate) const fn has_latencies(&self) -> bool {
        self.snapshots.figures.hops.is_some()
    }

    /// Notes the first tick of a turn, taken `now`.
    pub(crate) fn taken(&mut self, header: &tick::Header, now: Nanos) {
        let &tick::Header { wire, decoded, sequenced, .. } = header;
        self.first = Some(Taken { wire, decoded, sequenced, taken: now });
    }

    /// Notes how many ticks the turn has taken.
    pub(crate) const fn turned(&mut self, ticks: usize) {
        self.ticks = ticks;
    }

    /// Records the ticks of the last turn: its output was passed to the kernel.
    pub(crate) fn sent(&mut self, now: Nanos) {
        let Some(first) = self.first.take() else { return };
        let Some([decoded, sequenced, taken, sent]) = self.snapshots.figures.hops.as_deref_mut() else {
            return;
        };
        let ticks = self.ticks as u64;
        decoded.record_n(first.decoded.since(first.wire), ticks);
        sequenced.record_n(first.sequenced.since(first.decoded), ticks);
        if let Some(correction) = self.stamped_by.correction_ns() {
            taken.record_n(first.taken.since(first.sequenced).saturating_add(correction), ticks);
            sent.record_n(now.since(first.wire).saturating_add(correction), ticks);
        }
    }

    /// Reports once a second.
    pub(super) fn turn(&mut self, now: Nanos, hub: &Hub, connections: &mut ClientConnections) {
        if now.since(self.told) >= EVERY_NS {
            self.publish(now, hub, connections, false);
        }
    }

    /// Reports at once; `ended` marks the last report.
    pub(super) fn publish(
        &mut self,
        now: Nanos,
        hub: &Hub,
        connections: &mut ClientConnections,
        ended: bool,
    ) {
        self.told = now;
        let HubFigures { sessions, services, open, .. } = &mut self.snapshots.figures;
        *open = 0;
        for seen in hub.seen() {
            let Some(connected) = connections.connected(seen.session) else { continue };
            if sessions.len() <= *open {
                sessions.push(SessionFigures::default());
            }
            let place = &mut sessions[*open];
            *open += 1;
            place.user.clear();
            place.user.push_str(seen.user);
            *place = SessionFigures {
                number: seen.session.index(),
                user: std::mem::take(&mut place.user),
                connected,
                streams: seen.streams,
                queued_messages: seen.queued_messages,
                queued_bytes: seen.queued_bytes,
                owed: seen.owed,
                waits_since: seen.waits_since,
                slow: slow(seen.slow),
                counters: seen.counters,
            };
        }
        services.clear();
        services.extend(hub.directory().services().map(|service| {
            let state = service.state();
            // The text of an outage remains in the directory after the service is up again.
            let status = state.filter(|state| !state.is_up()).and_then(|state| state.status.as_ref());
            snapshot::Service {
                id: service.id,
                name: service.name().unwrap_or_default().to_owned(),
                up: state.is_some_and(ServiceState::is_up),
                text: status
                    .map_or_else(String::new, |status| String::from_utf8_lossy(&status.text).into_owned()),
            }
        }));
        let figures = &mut self.snapshots.figures;
        (figures.at, figures.ended) = (now, ended);
        figures.counters = *hub.counters();
        figures.access = *hub.access_counters();
        figures.memory = Some(hub.memory());
        self.snapshots.publish();
    }
}

/// The state from one report to the next.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    hops: [Recorder; 4],
    totals: Totals,
}

impl Merged {
    /// Merges the hub's figures, and clears their histograms for the hub's next use.
    pub(crate) fn take(&mut self, hub: &mut snapshot::Hub, told: &mut HubFigures) {
        let before = std::mem::take(&mut hub.sessions);
        let seconds = told.at.since(Nanos(hub.heard_ns)) as f64 / 1e9;
        let open = told.sessions.get(..told.open).unwrap_or_default();
        hub.sessions = open
            .iter()
            .map(|session| {
                let totals = totals(&session.counters);
                let Connected { since, address, transport, unsent_bytes } = session.connected;
                // Another session may have had this number before.
                let known = before.binary_search_by_key(&session.number, |known| known.session).ok();
                let known = known.map(|at| &before[at]).filter(|known| known.since_ns == since.0);
                snapshot::Session {
                    session: session.number,
                    since_ns: since.0,
                    user: session.user.clone(),
                    address: address.map_or_else(String::new, |address| address.to_string()),
                    transport: transport.to_owned(),
                    streams: session.streams,
                    queued_messages: session.queued_messages,
                    queued_bytes: session.queued_bytes,
                    unsent_bytes,
                    owed: session.owed,
                    slow: session.slow.to_owned(),
                    lag_ns: session.waits_since.map_or(0, |since| told.at.since(since).max(0).unsigned_abs()),
                    rates: known.map_or_else(Rates::default, |known| rates(&known.totals, &totals, seconds)),
                    totals,
                }
            })
            .collect();
        let mut sum = told.counters.past;
        open.iter().for_each(|session| sum.add(&session.counters));
        let sum = totals(&sum);
        hub.rates = if hub.heard_ns == 0 { Rates::default() } else { rates(&self.totals, &sum, seconds) };
        (self.totals, hub.totals) = (sum, sum);
        (hub.heard_ns, hub.ended) = (told.at.0, told.ended);
        hub.ticks = told.counters.ticks;
        hub.missing = told.counters.missing;
        hub.opened = told.counters.sessions;
        hub.cut = told.counters.cut;
        let access = told.access;
        (hub.logins, hub.logins_refused, hub.denied) = (access.logins, access.refused, access.denied);
        hub.services.clone_from(&told.services);
        if let Some(memory) = told.memory {
            hub.cache = Cache { items: memory.items, bytes: memory.bytes, ..hub.cache };
        }
        hub.latency = HOPS
            .iter()
            .zip(told.hops.iter_mut().flat_map(|hops| hops.iter_mut()))
            .zip(&mut self.hops)
            .map(|((hop, now), all)| {
                all.merge(now);
                let latency = Hop { hop: (*hop).to_owned(), now: Latency::of(now), all: Latency::of(all) };
                now.clear();
                latency
            })
            .collect();
    }
}

/// The name of a policy in the configuration.
pub(crate) const fn slow(policy: SlowPolicy) -> &'static str {
    match policy {
        SlowPolicy::Conflate => "conflate",
        SlowPolicy::Cut { .. } => "cut",
        SlowPolicy::DropWithGap { .. } => "drop-with-gap",
        SlowPolicy::Block { .. } => "block",
    }
}

fn totals(counters: &SessionCounters) -> Totals {
    let SessionCounters {
        requests, refused, refreshes, updates, conflated, dropped, held, malformed, ..
    } = *counters;
    Totals { requests, refused, refreshes, updates, conflated, dropped, held, malformed }
}

fn rates(before: &Totals, now: &Totals, seconds: f64) -> Rates {
    Rates {
        refreshes: per_second(before.refreshes, now.refreshes, seconds),
        updates: per_second(before.updates, now.updates, seconds),
        conflated: per_second(before.conflated, now.conflated, seconds),
    }
}

#[cfg(test)]
mod tests {
    use tapeline_plant::ClockDifference;

    use super::*;

    #[test]
    fn each_tick_of_a_turn_counts() {
        let (snapshots, _reader) = crate::readers::counting::snapshots_between(HubFigures::with_latencies);
        let mut writer = FigureWriter::new(snapshots);
        let at = |ns| tick::Header {
            wire: Nanos(ns),
            decoded: Nanos(ns + 10),
            sequenced: Nanos(ns + 30),
            ..tick::Header::default()
        };
        // 98 prompt ticks, a turn each, one without any, and two that waited together.
        for _ in 0..98 {
            writer.taken(&at(0), Nanos(60));
            writer.turned(1);
            writer.sent(Nanos(100));
        }
        writer.turned(0);
        writer.sent(Nanos(100));
        writer.taken(&at(0), Nanos(1_000_000));
        writer.turned(2);
        writer.sent(Nanos(1_000_100));
        let of = |hop: &Recorder| (hop.samples(), hop.min_ns(), hop.max_ns());
        let [decoded, sequenced, taken, sent] = writer.snapshots.figures.hops.as_deref().unwrap();
        assert_eq!(of(decoded), (100, Some(10), Some(10)));
        assert_eq!(of(sequenced), (100, Some(20), Some(20)));
        assert_eq!(of(taken), (100, Some(30), Some(999_970)));
        assert_eq!(of(sent), (100, Some(100), Some(1_000_100)));
        assert!(sent.value_at(0.985) > Some(999_000), "two of a hundred waited");
    }

    #[test]
    fn stamps_of_another_host_are_compared_by_its_clock_or_not_at_all() {
        let (snapshots, _reader) = crate::readers::counting::snapshots_between(HubFigures::with_latencies);
        let mut writer = FigureWriter::new(snapshots);
        let header = tick::Header {
            wire: Nanos(1_000),
            decoded: Nanos(1_010),
            sequenced: Nanos(1_030),
            ..tick::Header::default()
        };
        let known = ClockDifference { ahead_ns: 900, bound_ns: 5 };
        for clock in [StampedBy::PlantAbove(None), StampedBy::PlantAbove(Some(known))] {
            writer.stamped_by(clock);
            writer.taken(&header, Nanos(150));
            writer.turned(1);
            writer.sent(Nanos(160));
        }
        let of = |hop: &Recorder| (hop.samples(), hop.min_ns());
        let [decoded, sequenced, taken, sent] = writer.snapshots.figures.hops.as_deref().unwrap();
        assert_eq!((of(decoded), of(sequenced)), ((2, Some(10)), (2, Some(20))));
        assert_eq!((of(taken), of(sent)), ((1, Some(20)), (1, Some(60))));
    }

    fn told(at: u64, since: u64, updates: u64, past: u64) -> HubFigures {
        let counters = |updates| SessionCounters { updates, ..SessionCounters::default() };
        let mut figures = HubFigures { at: Nanos(at), open: 1, ..HubFigures::with_latencies() };
        figures.counters.past = counters(past);
        figures.sessions = vec![
            SessionFigures {
                connected: Connected { since: Nanos(since), ..Connected::default() },
                user: "me".to_owned(),
                counters: counters(updates),
                ..SessionFigures::default()
            },
            // Of a session that has ended.
            SessionFigures { number: 9, counters: counters(1_000), ..SessionFigures::default() },
        ];
        figures.hops.as_mut().unwrap()[3].record(1_000);
        figures
    }

    #[test]
    fn a_number_that_another_session_has_now_is_not_taken_for_the_one_before() {
        let (mut merged, mut hub) = (Merged::default(), snapshot::Hub::default());
        const S: u64 = 1_000_000_000;
        merged.take(&mut hub, &mut told(2 * S, S, 100, 50));
        assert_eq!((hub.totals.updates, hub.rates.updates), (150, 0.0));
        merged.take(&mut hub, &mut told(4 * S, S, 500, 50));
        assert_eq!(
            (hub.totals.updates, hub.rates.updates, hub.sessions[0].rates.updates),
            (550, 200.0, 200.0)
        );
        // The session has ended, and the next one has its number.
        let mut next = told(5 * S, 4 * S, 10, 550);
        merged.take(&mut hub, &mut next);
        assert_eq!((hub.totals.updates, hub.rates.updates, hub.sessions[0].rates.updates), (560, 10.0, 0.0));
        assert_eq!(hub.sessions.len(), 1);
        assert_eq!((hub.latency[3].now.samples, hub.latency[3].all.samples), (1, 3));
        assert_eq!(next.hops.unwrap()[3].samples(), 0, "what the hub gets back is empty");
    }
}
