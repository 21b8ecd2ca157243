//! The counters as metrics: their names, meanings and values, and `/metrics`, which is their form in Prometheus's text
//! format, version 0.0.4 (prometheus.io, "Exposition formats").

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use tapeline_measure::Nanos;

use crate::stat::snapshot::{
    AeronReceivedSnapshot, AeronSendingSnapshot, BridgeSnapshot, ClockSnapshot, FeedSnapshot, Hub, Journal,
    LATE_NS, Latency, LeaseSnapshot, Outlet, Session, Snapshot, SourceSnapshot, SymbolSnapshot, ThreadSign,
    UpstreamSnapshot, VenueSnapshot,
};

/// A metric, which has any number of [values](MetricValue).
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    write: fn(&mut Page<'_>),
}

/// What the values of a metric mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetricKind {
    Gauge,
    Counter,
    /// Quantiles, and the sum and the count of all samples.
    Summary,
}

/// A value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MetricValue<'a> {
    /// `_sum` or `_count` for these of a summary, otherwise empty.
    pub(crate) suffix: &'static str,
    pub(crate) labels: &'a [(&'a str, &'a str)],
    pub(crate) number: Number,
}

/// A whole number, or a floating-point number, which may be NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Whole(u64),
    Real(f64),
}

impl From<u64> for Number {
    fn from(number: u64) -> Self {
        Self::Whole(number)
    }
}

impl From<usize> for Number {
    fn from(number: usize) -> Self {
        Self::Whole(number as u64)
    }
}

impl From<bool> for Number {
    fn from(holds: bool) -> Self {
        Self::Whole(holds.into())
    }
}

impl From<f64> for Number {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(number) => number.fmt(f),
            Self::Real(number) => number.fmt(f),
        }
    }
}

macro_rules! metrics {
    ($($name:ident $help:literal => $write:ident $values:tt;)*) => {
        &[$(Metric { name: stringify!($name), help: $help, write: |page| page.$write $values }),*]
    };
}

/// All metrics, in the order in which they are written: name, help text, values. `docs/operating.md` lists the same names.
const METRICS: &[Metric] = metrics! {
    tapeline_info "Constant 1, labelled with the plant's name, ring and version" => info();
    tapeline_start_time_seconds "Start time of the plant, in seconds since 1970 UTC"
        => plant(|plant| seconds(plant.started_ns));
    tapeline_thread_silent_seconds "Time since the thread last reported; each thread reports once a second"
        => threads();
    process_cpu_seconds_total "CPU time of the process" => plant(|plant| seconds(plant.process.cpu_ns));
    process_resident_memory_bytes "Resident memory of the process"
        => plant(|plant| plant.process.resident_bytes);
    process_open_fds "Open file descriptors of the process" => plant(|plant| plant.process.descriptors);
    tapeline_ticks_total "Ticks published" => plant(|plant| plant.ticks);
    tapeline_items "Items in the plant" => plant(|plant| plant.items);
    tapeline_feed_state "1 for the feed's current state, 0 for the others" => feed_states();
    tapeline_feed_messages_total "Messages of the feed, each counted once however many lines carried it"
        => feeds(|feed| feed.messages);
    tapeline_feed_missing_total "Messages that arrived neither on a line nor by recovery"
        => feeds(|feed| feed.missing);
    tapeline_feed_gaps_total "Gaps, each of one or more missing messages" => feeds(|feed| feed.gaps);
    tapeline_feed_absurd_gaps_total
        "Gaps of more messages than any feed sends, from wrong or forged sequence numbers; not counted as missing"
        => feeds(|feed| feed.absurd_gaps);
    tapeline_feed_suspect
        "1 while the feed's data may be wrong: messages of the session were lost, or were sent before the plant started"
        => feeds(|feed| feed.suspect.into());
    tapeline_feed_unknown_orders_total "Messages about orders that were not in the books"
        => feeds(|feed| feed.unknown_orders);
    tapeline_feed_items_refused_total "Ticks without an item, because the item limit is reached"
        => feeds(|feed| feed.items_refused);
    tapeline_feed_malformed_total "Messages that could not be decoded" => feeds(|feed| feed.malformed);
    tapeline_feed_kernel_drops_total "Datagrams that the kernel dropped because the socket buffer was full"
        => feeds(|feed| feed.kernel_drops);
    tapeline_venue_connected "1 while the plant is connected to the venue of the feed"
        => venues(|venue| venue.connected);
    tapeline_venue_connections_total "Connections made to the venue; each after the first is a reconnect"
        => venues(|venue| venue.connections);
    tapeline_venue_silent_seconds "Time since the venue's last message, since the plant's start if there was none"
        => venue_silence();
    tapeline_venue_book_joined "1 while the book of the symbol equals the venue's, by the venue's rule"
        => symbols(|symbol| symbol.joined);
    tapeline_venue_symbol_messages_total "Messages of the venue that name the symbol"
        => symbols(|symbol| symbol.messages);
    tapeline_venue_symbol_snapshots_total "Snapshots that the book of the symbol was joined with"
        => symbols(|symbol| symbol.snapshots);
    tapeline_venue_symbol_gaps_total "Times that messages of the symbol were found to be missing"
        => symbols(|symbol| symbol.gaps);
    tapeline_venue_symbol_silent_seconds
        "Time since the last message that names the symbol, since the plant's start if there was none"
        => symbol_silence();
    tapeline_source_up
        "1 while the provider is connected; non-interactive providers are listed only while connected"
        => sources(|source| usize::from(source.state == "connected"));
    tapeline_source_items "Items that are open at the provider or published by it"
        => sources(|source| source.items);
    tapeline_source_served_items "Items of the provider that are passed on; it was the first with them"
        => sources(|source| source.serves);
    tapeline_certificate_expires_timestamp_seconds
        "When the certificate of a server of the plant expires, in seconds since 1970 UTC" => certificates();
    tapeline_service_unserved_items
        "Items of a published service without a publisher: all that published them are gone"
        => unserved();
    tapeline_source_service_state
        "1 for the provider's role in the service: serves, standby or suspect; 0 for the others"
        => source_states();
    tapeline_ring_bytes "Size of the ring" => plant(|plant| plant.backpressure.ring_bytes);
    tapeline_ring_named "1 while the ring has its name, 0 after it was removed: then no reader can join"
        => plant(|plant| !plant.ring_removed);
    tapeline_ring_stalls_total "Ticks that waited because a slow reader kept the ring full"
        => plant(|plant| plant.backpressure.stalls);
    tapeline_ring_stalled_seconds_total "Total time that ticks waited for slow readers"
        => plant(|plant| seconds(plant.backpressure.stalled_ns));
    tapeline_ring_evicted_total "Readers that were evicted from the ring"
        => plant(|plant| plant.backpressure.evicted);
    tapeline_ring_reader_lag_bytes "Distance between a reader and the newest tick" => readers();
    tapeline_journal_state "1 for the journal's current state, 0 for the others" => journal_states();
    tapeline_journal_sequence "Sequence number of the last tick in the journal"
        => journal(|journal| journal.kept);
    tapeline_journal_missing_total "Ticks that are not in the journal" => journal(|journal| journal.missing);
    tapeline_kdb_up "1 while kdb+ clients are served, 0 after the kdb+ thread has ended"
        => kdb(|kdb| (!kdb.ended).into());
    tapeline_kdb_missing_ticks_total "Ticks that are missing in the tables of kdb+ clients"
        => kdb(|kdb| kdb.missing);
    tapeline_zeromq_up "1 while ZeroMQ subscribers are served, 0 after the ZeroMQ thread has ended"
        => zeromq(|zeromq| (!zeromq.ended).into());
    tapeline_zeromq_missing_ticks_total "Ticks that were not published to ZeroMQ subscribers"
        => zeromq(|zeromq| zeromq.missing);
    tapeline_bridge_up "1 while ticks are sent to plants below, 0 after the bridge's thread has ended"
        => bridge(|bridge| (!bridge.ended).into());
    tapeline_bridge_sequence "Last sequence number sent to plants below" => bridge(|bridge| bridge.sequence);
    tapeline_bridge_missing_ticks_total "Ticks that were not sent to plants below"
        => bridge(|bridge| bridge.missing);
    tapeline_bridge_unsent_total "Datagrams that a line did not take" => bridge(|bridge| bridge.unsent);
    tapeline_bridge_back_pressured_total "Datagrams that the flow control of Aeron refused"
        => bridge(|bridge| bridge.back_pressured);
    tapeline_bridge_drivers_lost_total "Times that a line to plants below has lost its media driver"
        => bridge(|bridge| bridge.drivers_lost);
    tapeline_bridge_aeron_naks_total "NAKs of plants below: what Aeron's driver has sent again"
        => bridge_over_aeron(|aeron| aeron.naks);
    tapeline_bridge_aeron_window_bytes "Bytes that Aeron's flow control lets the driver send, on the line with the fewest"
        => bridge_over_aeron(|aeron| aeron.window_bytes);
    tapeline_bridge_requests_total "Re-requests of plants below" => bridge(|bridge| bridge.requests);
    tapeline_bridge_sent_again_total "Ticks that were sent again on request"
        => bridge(|bridge| bridge.sent_again);
    tapeline_bridge_unanswered_total "Re-requests without an answer" => bridge(|bridge| bridge.unanswered);
    tapeline_bridge_catching_up "Plants that are connected to the catch-up server"
        => bridge(|bridge| bridge.catching_up);
    tapeline_bridge_caught_up_total "Times that a plant below has caught up" => bridge(|bridge| bridge.caught_up);
    tapeline_bridge_followers "Plants that follow a line over TCP" => bridge(|bridge| bridge.followers);
    tapeline_bridge_cut_off_total "Times that a plant was cut off a line over TCP because it was too slow"
        => bridge(|bridge| bridge.cut_off);
    tapeline_bridge_refused_total "Connections to lines over TCP that were refused"
        => bridge(|bridge| bridge.refused);
    tapeline_bridge_demanding "Plants below that are connected for demands" => bridge(|bridge| bridge.demanding);
    tapeline_bridge_demanded_items "Items that plants below have open, each once for each plant"
        => bridge(|bridge| bridge.demanded);
    tapeline_bridge_posts_total "Posts of plants below" => bridge(|bridge| bridge.far_posts);
    tapeline_bridge_demands_refused_total "Demands of plants below beyond their limits"
        => bridge(|bridge| bridge.demands_refused);
    tapeline_bridge_demands_cut_off_total "Times that a plant with demands was disconnected"
        => bridge(|bridge| bridge.demands_cut_off);
    tapeline_upstream_sequence "Last sequence number of the plant above that was published"
        => upstream(|upstream| upstream.sequence);
    tapeline_upstream_behind_ticks "Ticks that the plant above has announced and that are not published yet"
        => upstream(|upstream| upstream.behind);
    tapeline_upstream_requests_total "Re-requests sent to the plant above" => upstream(|upstream| upstream.requests);
    tapeline_upstream_recovered_total "Ticks that answers to re-requests brought"
        => upstream(|upstream| upstream.recovered);
    tapeline_upstream_left_lines_total "Times that the catch-up server was needed in place of the lines"
        => upstream(|upstream| upstream.left_lines);
    tapeline_upstream_strangers_total "Datagrams on the lines that are not of the session that is followed"
        => upstream(|upstream| upstream.strangers);
    tapeline_upstream_drivers_lost_total "Times that a line of the plant above has lost its media driver"
        => upstream(|upstream| upstream.drivers_lost);
    tapeline_upstream_aeron_naks_total "NAKs sent to the plant above: what Aeron's driver has requested again"
        => upstream_over_aeron(|aeron| aeron.naks);
    tapeline_upstream_aeron_unread_bytes "Bytes that Aeron's driver has received and the plant has not read"
        => upstream_over_aeron(|aeron| aeron.unread_bytes);
    tapeline_upstream_connections_lost_total "Times that a line over TCP has lost its connection, or got none"
        => upstream(|upstream| upstream.connections_lost);
    tapeline_upstream_demands_connected "1 while items of the plant above can be demanded"
        => upstream(|upstream| upstream.demands_connected.into());
    tapeline_upstream_demanded_items "Items that are demanded of the plant above" => upstream(|upstream| upstream.demanded);
    tapeline_upstream_posts_total "Posts for the plant above" => upstream(|upstream| upstream.posts);
    tapeline_upstream_posts_refused_total "Posts that the plant above did not get, or did not answer"
        => upstream(|upstream| upstream.posts_refused);
    tapeline_upstream_demands_lost_total "Times that the connection for demands was lost, or could not be made"
        => upstream(|upstream| upstream.demands_lost);
    tapeline_upstream_clock_ahead_seconds "Clock of the plant above less this plant's; not there while it is unknown"
        => clock_above(|clock| clock.ahead_ns as f64 / 1e9);
    tapeline_upstream_clock_bound_seconds "Bound on the error of the difference of both clocks"
        => clock_above(|clock| seconds(clock.bound_ns));
    tapeline_lease_held "1 while this plant leads, 0 while it follows the other one" => lease(|lease| lease.held.into());
    tapeline_lease_epoch "Epoch of the lease that is held, or was granted last; 0 for none"
        => lease(|lease| lease.epoch);
    tapeline_lease_left_seconds "Time until the lease of this plant ends unless it is renewed; 0 while it follows"
        => lease_left();
    tapeline_lease_changes_total "Times that this plant has got or lost the lease" => lease(|lease| lease.changes);
    tapeline_lease_witnesses_silent "Witnesses that do not answer" => lease(|lease| lease.silent as u64);
    tapeline_service_up "1 while the service is up" => services();
    tapeline_hub_ticks_total "Ticks that the hub read from the ring" => hub(|hub| hub.ticks);
    tapeline_hub_missing_ticks_total "Ticks that the hub missed" => hub(|hub| hub.missing);
    tapeline_cache_items "Images in the cache" => hub(|hub| hub.cache.items as u64);
    tapeline_cache_bytes "Memory used by images in the cache" => hub(|hub| hub.cache.bytes as u64);
    tapeline_cache_limit_bytes "Memory limit of the cache" => hub(|hub| hub.cache.limit_bytes as u64);
    tapeline_sessions "Open sessions, by transport" => sessions();
    tapeline_sessions_opened_total "Sessions opened" => hub(|hub| hub.opened);
    tapeline_sessions_cut_total "Sessions disconnected for being slow" => hub(|hub| hub.cut);
    tapeline_logins_total "Logins accepted" => hub(|hub| hub.logins);
    tapeline_logins_refused_total "Logins refused, or ended because the user's right was withdrawn"
        => hub(|hub| hub.logins_refused);
    tapeline_denied_total "Items that clients were denied" => hub(|hub| hub.denied);
    tapeline_sessions_behind "Sessions with queued output"
        => hub(|hub| each(hub, |session| (session.lag_ns > 0).into()).sum());
    tapeline_streams "Open streams of all sessions" => hub(|hub| each(hub, |session| session.streams).sum());
    tapeline_queue_bytes "Output of all sessions in queues and connections"
        => hub(|hub| each(hub, waiting_bytes).sum());
    tapeline_queue_bytes_max "Queued output of the session with the most"
        => hub(|hub| each(hub, waiting_bytes).max().unwrap_or(0));
    tapeline_lag_seconds_max "Age of the oldest queued output of any session" => longest_lag();
    tapeline_requests_total "Items requested" => hub(|hub| hub.totals.requests);
    tapeline_requests_refused_total "Item requests that were refused" => hub(|hub| hub.totals.refused);
    tapeline_refreshes_total "Images sent" => hub(|hub| hub.totals.refreshes);
    tapeline_updates_total "Updates sent" => hub(|hub| hub.totals.updates);
    tapeline_conflated_total "Updates that were conflated into a later image"
        => hub(|hub| hub.totals.conflated);
    tapeline_dropped_total "Updates that were dropped, with a notification to the client"
        => hub(|hub| hub.totals.dropped);
    tapeline_held_total "Times that the source of an item with a single, slow client was asked to pause"
        => hub(|hub| hub.totals.held);
    tapeline_malformed_total "Client messages that could not be decoded" => hub(|hub| hub.totals.malformed);
    tapeline_latency_seconds
        "Latency of ticks by hop: quantiles of the last second, sum and count since the start"
        => latencies();
};

impl Metric {
    pub(crate) fn kind(&self) -> MetricKind {
        match self.name {
            "tapeline_latency_seconds" => MetricKind::Summary,
            name if name.ends_with("_total") => MetricKind::Counter,
            _ => MetricKind::Gauge,
        }
    }
}

impl MetricKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
            Self::Summary => "summary",
        }
    }
}

/// Gives each metric with its values.
pub(crate) fn each_metric(
    plant: &Snapshot,
    now: Nanos,
    take: &mut dyn FnMut(&'static Metric, MetricEntry<'_>),
) {
    for metric in METRICS {
        take(metric, MetricEntry::Metric);
        let mut of_one = |value: MetricValue<'_>| take(metric, MetricEntry::Value(value));
        (metric.write)(&mut Page { take: &mut of_one, plant, now });
    }
}

/// What [`each_metric`] gives: a metric, then its values.
pub(crate) enum MetricEntry<'a> {
    Metric,
    Value(MetricValue<'a>),
}

/// The metrics in Prometheus's text format.
pub(super) fn of(plant: &Snapshot, now: Nanos) -> String {
    let mut text = String::new();
    each_metric(plant, now, &mut |metric, entry| {
        let name = metric.name;
        let _ = match entry {
            MetricEntry::Metric => {
                writeln!(text, "# HELP {name} {}\n# TYPE {name} {}", metric.help, metric.kind().name())
            }
            MetricEntry::Value(value) => write_value(&mut text, name, &value),
        };
    });
    text
}

fn write_value(text: &mut String, name: &str, value: &MetricValue<'_>) -> fmt::Result {
    let MetricValue { suffix, labels, number } = value;
    write!(text, "{name}{suffix}")?;
    for (at, (label, value)) in labels.iter().enumerate() {
        write!(text, "{}{label}=\"", if at == 0 { '{' } else { ',' })?;
        for character in value.chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str("\\n"),
                other => text.push(other),
            }
        }
        text.push('"');
    }
    writeln!(text, "{} {number}", if labels.is_empty() { "" } else { "}" })
}

/// The source of one metric's values.
struct Page<'p> {
    take: &'p mut dyn FnMut(MetricValue<'_>),
    plant: &'p Snapshot,
    now: Nanos,
}

impl Page<'_> {
    fn put(&mut self, labels: &[(&str, &str)], value: impl Into<Number>) {
        self.put_as("", labels, value);
    }

    fn put_as(&mut self, suffix: &'static str, labels: &[(&str, &str)], value: impl Into<Number>) {
        (self.take)(MetricValue { suffix, labels, number: value.into() });
    }

    /// A value without labels.
    fn one(&mut self, value: impl Into<Number>) {
        self.put(&[], value);
    }

    /// A value of a part that not every plant has.
    fn of<T>(&mut self, part: &Option<T>, value: impl Fn(&T) -> u64) {
        part.iter().for_each(|part| self.one(value(part)));
    }

    fn hub(&mut self, value: impl Fn(&Hub) -> u64) {
        self.of(&self.plant.hub, value);
    }

    fn journal(&mut self, value: impl Fn(&Journal) -> u64) {
        self.of(&self.plant.journal, value);
    }

    fn kdb(&mut self, value: impl Fn(&Outlet) -> u64) {
        self.of(&self.plant.kdb, value);
    }

    fn zeromq(&mut self, value: impl Fn(&Outlet) -> u64) {
        self.of(&self.plant.zeromq, value);
    }

    fn bridge(&mut self, value: impl Fn(&BridgeSnapshot) -> u64) {
        self.of(&self.plant.bridge, value);
    }

    fn upstream(&mut self, value: impl Fn(&UpstreamSnapshot) -> u64) {
        self.of(&self.plant.upstream, value);
    }

    fn bridge_over_aeron(&mut self, value: impl Fn(&AeronSendingSnapshot) -> u64) {
        self.of(&self.plant.bridge.as_ref().and_then(|bridge| bridge.aeron), value);
    }

    fn upstream_over_aeron(&mut self, value: impl Fn(&AeronReceivedSnapshot) -> u64) {
        self.of(&self.plant.upstream.as_ref().and_then(|upstream| upstream.aeron), value);
    }

    fn lease(&mut self, value: impl Fn(&LeaseSnapshot) -> u64) {
        self.of(&self.plant.lease, value);
    }

    fn lease_left(&mut self) {
        let lease = self.plant.lease.as_ref();
        lease.iter().for_each(|lease| self.one(seconds(lease.left_ns)));
    }

    fn clock_above(&mut self, value: impl Fn(&ClockSnapshot) -> f64) {
        let clock = self.plant.upstream.as_ref().and_then(|upstream| upstream.clock.as_ref());
        clock.iter().for_each(|clock| self.one(value(clock)));
    }

    fn plant<T: Into<Number>>(&mut self, value: impl Fn(&Snapshot) -> T) {
        self.one(value(self.plant));
    }

    fn feeds(&mut self, value: impl Fn(&FeedSnapshot) -> u64) {
        self.plant.feeds.iter().for_each(|feed| self.put(&[("feed", &feed.name)], value(feed)));
    }

    fn venues<T: Into<Number>>(&mut self, value: impl Fn(&VenueSnapshot) -> T) {
        for feed in &self.plant.feeds {
            feed.venue.iter().for_each(|venue| self.put(&[("feed", &feed.name)], value(venue)));
        }
    }

    fn symbols<T: Into<Number>>(&mut self, value: impl Fn(&SymbolSnapshot) -> T) {
        for feed in &self.plant.feeds {
            for symbol in feed.venue.iter().flat_map(|venue| &venue.symbols) {
                self.put(&[("feed", &feed.name), ("symbol", &symbol.symbol)], value(symbol));
            }
        }
    }

    fn venue_silence(&mut self) {
        let silence = self.silence();
        self.venues(|venue| silence(venue.heard_ns));
    }

    fn symbol_silence(&mut self) {
        let silence = self.silence();
        self.symbols(|symbol| silence(symbol.heard_ns));
    }

    /// Returns what computes the time since an arrival, in seconds.
    fn silence(&self) -> impl Fn(u64) -> f64 + use<> {
        let (now, started_ns) = (self.now.0, self.plant.started_ns);
        move |heard_ns| seconds(now.saturating_sub(heard_ns.max(started_ns)))
    }

    /// A value of each source. Two publishers may have the same name.
    fn sources(&mut self, value: impl Fn(&SourceSnapshot) -> usize) {
        for (number, source) in self.plant.sources.iter().enumerate() {
            let number = number.to_string();
            let labels = [("source", &*source.name), ("kind", &source.kind), ("number", &number)];
            self.put(&labels, value(source));
        }
    }

    /// 1 for the current state, 0 for the others.
    fn states(&mut self, labels: &[(&str, &str)], states: &[&str], current: &str) {
        for state in states {
            self.put(&[labels, &[("state", *state)]].concat(), *state == current);
        }
    }

    fn info(&mut self) {
        let Snapshot { plant, ring, version, .. } = self.plant;
        self.put(&[("plant", plant), ("ring", ring), ("version", version)], true);
    }

    fn threads(&mut self) {
        let (plant, now) = (self.plant, self.now.0);
        for ThreadSign { name, heard_ns, .. } in plant.threads() {
            // A thread that has never reported is late from the beginning.
            let heard_ns = if heard_ns == 0 { now.saturating_sub(LATE_NS) } else { heard_ns };
            self.put(&[("thread", name)], seconds(now.saturating_sub(heard_ns)));
        }
    }

    fn feed_states(&mut self) {
        for feed in &self.plant.feeds {
            self.states(&[("feed", &feed.name)], &["initial", "live", "recovering", "stale"], &feed.state);
        }
    }

    fn source_states(&mut self) {
        for (number, source) in self.plant.sources.iter().enumerate() {
            for part in &source.services {
                let number = number.to_string();
                let labels = [("source", &*source.name), ("number", &number), ("service", &part.service)];
                self.states(&labels, &["serves", "standby", "suspect"], &part.state);
            }
        }
    }

    fn journal_states(&mut self) {
        let journal = self.plant.journal.iter();
        journal.for_each(|journal| self.states(&[], &["keeping", "stopped", "without"], &journal.state));
    }

    fn unserved(&mut self) {
        self.plant.unserved.iter().for_each(|of| self.put(&[("service", &of.service)], of.items));
    }

    fn readers(&mut self) {
        for (number, reader) in self.plant.readers.iter().enumerate() {
            // An evicted or dead one holds up nobody.
            if reader.evicted || !reader.alive {
                continue;
            }
            // Two readers may have the same name, and one process may have several readers.
            let (number, pid) = (number.to_string(), reader.pid.to_string());
            self.put(&[("reader", &reader.name), ("pid", &pid), ("number", &number)], reader.lag_bytes);
        }
    }

    fn certificates(&mut self) {
        let plant = self.plant;
        plant.certificates.iter().for_each(|of| self.put(&[("server", &of.of)], seconds(of.ends_ns)));
    }

    fn services(&mut self) {
        for service in self.plant.hub.iter().flat_map(|hub| &hub.services) {
            self.put(&[("service", &service.name)], service.up);
        }
    }

    fn sessions(&mut self) {
        let mut by_transport: BTreeMap<&str, usize> = BTreeMap::new();
        for session in self.plant.hub.iter().flat_map(|hub| &hub.sessions) {
            *by_transport.entry(&session.transport).or_default() += 1;
        }
        for (transport, count) in by_transport {
            self.put(&[("transport", transport)], count);
        }
    }

    fn longest_lag(&mut self) {
        if let Some(hub) = &self.plant.hub {
            let longest = hub.sessions.iter().map(|session| session.lag_ns).max();
            self.one(seconds(longest.unwrap_or(0)));
        }
    }

    fn latencies(&mut self) {
        for hop in self.plant.hub.iter().flat_map(|hub| &hub.latency) {
            let label = ("hop", &*hop.hop);
            let Latency { p50_ns, p90_ns, p99_ns, p99_9_ns, max_ns, .. } = hop.now;
            let ranks =
                [("0.5", p50_ns), ("0.9", p90_ns), ("0.99", p99_ns), ("0.999", p99_9_ns), ("1", max_ns)];
            for (quantile, ns) in ranks {
                // With too few samples the format's value is NaN.
                self.put(&[label, ("quantile", quantile)], ns.map_or(f64::NAN, seconds));
            }
            self.put_as("_sum", &[label], seconds(hop.all.sum_ns));
            self.put_as("_count", &[label], hop.all.samples);
        }
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn each(hub: &Hub, value: impl Fn(&Session) -> usize) -> impl Iterator<Item = u64> {
    hub.sessions.iter().map(move |session| value(session) as u64)
}

fn waiting_bytes(session: &Session) -> usize {
    session.queued_bytes + session.unsent_bytes
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::stat::snapshot::{CertificateSnapshot, Hop, Part, ReaderSnapshot, Service, Unserved};

    fn full() -> Snapshot {
        let hub = Hub {
            services: vec![Service { name: "S \"1\"\\\n".to_owned(), up: true, ..Service::default() }],
            sessions: vec![Session {
                transport: "tcp".to_owned(),
                lag_ns: 1_500_000_000,
                queued_bytes: 7,
                unsent_bytes: 3,
                ..Session::default()
            }],
            latency: vec![Hop {
                hop: "wire_to_sent".to_owned(),
                now: Latency { samples: 2, p50_ns: Some(2_500), ..Latency::default() },
                all: Latency { samples: 9, sum_ns: 18_000, ..Latency::default() },
            }],
            ..Hub::default()
        };
        Snapshot {
            plant: "P".to_owned(),
            feeds: vec![FeedSnapshot {
                name: "itch".to_owned(),
                state: "stale".to_owned(),
                venue: Some(VenueSnapshot {
                    connections: 2,
                    symbols: vec![SymbolSnapshot {
                        symbol: "XBT/USD".to_owned(),
                        heard_ns: 8_000_000_000,
                        ..SymbolSnapshot::default()
                    }],
                    ..VenueSnapshot::default()
                }),
                ..FeedSnapshot::default()
            }],
            started_ns: 5_000_000_000,
            sources: vec![SourceSnapshot {
                name: "ema".to_owned(),
                state: "connected".to_owned(),
                services: vec![Part {
                    service: "A".to_owned(),
                    state: "standby".to_owned(),
                    ..Part::default()
                }],
                ..SourceSnapshot::default()
            }],
            unserved: vec![Unserved { service: "A".to_owned(), items: 3 }],
            certificates: vec![CertificateSnapshot { of: "hub".to_owned(), ends_ns: 7_000_000_000 }],
            journal: Some(Journal { state: "without".to_owned(), kept: 9, missing: 2 }),
            kdb: Some(Outlet { ended: true, ..Outlet::default() }),
            zeromq: Some(Outlet { missing: 3, ..Outlet::default() }),
            bridge: Some(BridgeSnapshot {
                requests: 4,
                aeron: Some(AeronSendingSnapshot { naks: 2, window_bytes: 65_536 }),
                ..BridgeSnapshot::default()
            }),
            upstream: Some(UpstreamSnapshot {
                behind: 5,
                aeron: Some(AeronReceivedSnapshot { naks: 3, unread_bytes: 64 }),
                clock: Some(ClockSnapshot { ahead_ns: -2_000, bound_ns: 30_000 }),
                ..UpstreamSnapshot::default()
            }),
            lease: Some(LeaseSnapshot {
                held: true,
                epoch: 6,
                left_ns: 500_000_000,
                ..LeaseSnapshot::default()
            }),
            readers: vec![
                ReaderSnapshot { name: "hub".to_owned(), alive: true, ..ReaderSnapshot::default() },
                ReaderSnapshot { alive: true, ..ReaderSnapshot::default() },
            ],
            hub: Some(hub),
            ..Snapshot::default()
        }
    }

    /// Reads the format as its specification has it: a series once, after its metric's help and type, with a number.
    fn read(text: &str) -> BTreeMap<String, f64> {
        assert!(text.ends_with('\n'));
        let mut series = BTreeMap::new();
        let (mut metric, mut kind, mut seen) = ("", "", BTreeSet::new());
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                metric = help.split(' ').next().unwrap();
                assert!(seen.insert(metric), "{metric} twice");
                assert!(help.len() > metric.len() + 1, "{line}");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, is) = rest.split_once(' ').unwrap();
                assert_eq!(name, metric);
                assert!(["gauge", "counter", "summary"].contains(&is), "{line}");
                assert_eq!(is == "counter", name.ends_with("_total"), "{line}");
                kind = is;
            } else {
                let (key, value) = line.rsplit_once(' ').unwrap();
                let (name, labels) = key.split_once('{').unwrap_or((key, "}"));
                let base = match kind {
                    "summary" => name.trim_end_matches("_sum").trim_end_matches("_count"),
                    _ => name,
                };
                assert_eq!(base, metric, "{line}");
                assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'), "{line}");
                read_labels(labels.strip_suffix('}').unwrap_or_else(|| panic!("{line}")));
                let value = value.parse::<f64>().unwrap_or_else(|_| panic!("{line}"));
                assert!(series.insert(key.to_owned(), value).is_none(), "{key} twice");
            }
        }
        series
    }

    fn read_labels(mut rest: &str) {
        while !rest.is_empty() {
            let (name, value) = rest.split_once("=\"").unwrap();
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
            let mut characters = value.char_indices();
            let end = loop {
                match characters.next().unwrap() {
                    (_, '\\') => assert!(matches!(characters.next(), Some((_, '\\' | '"' | 'n')))),
                    (at, '"') => break at,
                    _ => {}
                }
            };
            rest = &value[end + 1..];
            rest = rest.strip_prefix(',').unwrap_or(rest);
        }
    }

    #[test]
    fn the_format_is_kept_and_every_metric_has_a_value() {
        let series = read(&of(&full(), Nanos(10_000_000_000)));
        for Metric { name, .. } in METRICS {
            assert!(series.keys().any(|key| key.starts_with(name)), "{name}");
        }
        assert_eq!(series["tapeline_queue_bytes"], 10.0);
        assert_eq!(series["tapeline_lag_seconds_max"], 1.5);
        assert_eq!(series["tapeline_feed_state{feed=\"itch\",state=\"stale\"}"], 1.0);
        assert_eq!(series["tapeline_feed_state{feed=\"itch\",state=\"live\"}"], 0.0);
        assert_eq!(series["tapeline_venue_connections_total{feed=\"itch\"}"], 2.0);
        assert_eq!(series["tapeline_venue_silent_seconds{feed=\"itch\"}"], 5.0);
        assert_eq!(series["tapeline_venue_symbol_silent_seconds{feed=\"itch\",symbol=\"XBT/USD\"}"], 2.0);
        assert_eq!(series["tapeline_journal_state{state=\"without\"}"], 1.0);
        assert_eq!(series["tapeline_journal_missing_total"], 2.0);
        assert_eq!(series["tapeline_kdb_up"], 0.0);
        assert_eq!(series["tapeline_zeromq_up"], 1.0);
        assert_eq!(series["tapeline_zeromq_missing_ticks_total"], 3.0);
        assert_eq!(series["tapeline_bridge_requests_total"], 4.0);
        assert_eq!(series["tapeline_bridge_aeron_naks_total"], 2.0);
        assert_eq!(series["tapeline_bridge_aeron_window_bytes"], 65_536.0);
        assert_eq!(series["tapeline_upstream_behind_ticks"], 5.0);
        assert_eq!(series["tapeline_upstream_aeron_naks_total"], 3.0);
        assert_eq!(series["tapeline_upstream_aeron_unread_bytes"], 64.0);
        assert_eq!(series["tapeline_upstream_clock_ahead_seconds"], -2e-6);
        assert_eq!(series["tapeline_upstream_clock_bound_seconds"], 3e-5);
        assert_eq!(series["tapeline_lease_held"], 1.0);
        assert_eq!(series["tapeline_lease_epoch"], 6.0);
        assert_eq!(series["tapeline_lease_left_seconds"], 0.5);
        assert_eq!(series["tapeline_service_up{service=\"S \\\"1\\\"\\\\\\n\"}"], 1.0);
        assert_eq!(series["tapeline_latency_seconds{hop=\"wire_to_sent\",quantile=\"0.5\"}"], 2.5e-6);
        assert!(series["tapeline_latency_seconds{hop=\"wire_to_sent\",quantile=\"0.99\"}"].is_nan());
        assert_eq!(series["tapeline_latency_seconds_count{hop=\"wire_to_sent\"}"], 9.0);
        assert_eq!(series["tapeline_thread_silent_seconds{thread=\"hub\"}"], 5.0);
    }

    #[test]
    fn a_plant_without_a_hub_has_metrics_too() {
        read(&of(&Snapshot::default(), Nanos(0)));
    }

    #[test]
    fn the_operators_page_has_every_metric() {
        let page = include_str!("../../../../../docs/operating.md");
        for metric in METRICS {
            let (name, kind) = (metric.name, metric.kind().name());
            assert!(page.contains(&format!("| `{name}` | {kind} |")), "{name}, {kind}");
        }
    }
}
