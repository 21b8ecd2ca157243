//! `/metrics`: the counters in Prometheus's text format, version 0.0.4 (prometheus.io, "Exposition formats").

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use tapeline_measure::Nanos;

use crate::stat::snapshot::{Hub, Journal, LATE_NS, Latency, Snapshot};

/// A metric: its name, its type, its help text.
type Metric = (&'static str, &'static str, &'static str);

/// All metrics, in the order in which they are written. `docs/operating.md` lists the same names.
pub(in super::super) const METRICS: &[Metric] = &[
    ("tapeline_info", "gauge", "Constant 1, labelled with the plant's name, ring and version"),
    ("tapeline_start_time_seconds", "gauge", "Start time of the plant, in seconds since 1970 UTC"),
    (
        "tapeline_thread_silent_seconds",
        "gauge",
        "Time since the thread last reported; each thread reports once a second",
    ),
    ("process_cpu_seconds_total", "counter", "CPU time of the process"),
    ("process_resident_memory_bytes", "gauge", "Resident memory of the process"),
    ("process_open_fds", "gauge", "Open file descriptors of the process"),
    ("tapeline_ticks_total", "counter", "Ticks published"),
    ("tapeline_items", "gauge", "Items in the plant"),
    ("tapeline_feed_state", "gauge", "1 for the feed's current state, 0 for the others"),
    (
        "tapeline_feed_messages_total",
        "counter",
        "Messages of the feed, each counted once however many lines carried it",
    ),
    ("tapeline_feed_missing_total", "counter", "Messages that arrived neither on a line nor by recovery"),
    ("tapeline_feed_gaps_total", "counter", "Gaps, each of one or more missing messages"),
    (
        "tapeline_feed_absurd_gaps_total",
        "counter",
        "Gaps of more messages than any feed sends, from wrong or forged sequence numbers; not counted as missing",
    ),
    (
        "tapeline_feed_suspect",
        "gauge",
        "1 while the feed's data may be wrong: messages of the session were lost, or were sent before the plant started",
    ),
    ("tapeline_feed_unknown_orders_total", "counter", "Messages about orders that were not in the books"),
    (
        "tapeline_feed_items_refused_total",
        "counter",
        "Ticks without an item, because the item limit is reached",
    ),
    ("tapeline_feed_malformed_total", "counter", "Messages that could not be decoded"),
    (
        "tapeline_feed_kernel_drops_total",
        "counter",
        "Datagrams that the kernel dropped because the socket buffer was full",
    ),
    (
        "tapeline_source_up",
        "gauge",
        "1 while the provider is connected; non-interactive providers are listed only while connected",
    ),
    ("tapeline_source_items", "gauge", "Items that are open at the provider or published by it"),
    (
        "tapeline_source_served_items",
        "gauge",
        "Items of the provider that are passed on; it was the first with them",
    ),
    (
        "tapeline_service_unserved_items",
        "gauge",
        "Items of a published service without a publisher: all that published them are gone",
    ),
    (
        "tapeline_source_service_state",
        "gauge",
        "1 for the provider's role in the service: serves, standby or suspect; 0 for the others",
    ),
    ("tapeline_ring_bytes", "gauge", "Size of the ring"),
    ("tapeline_ring_stalls_total", "counter", "Ticks that waited because a slow reader kept the ring full"),
    ("tapeline_ring_stalled_seconds_total", "counter", "Total time that ticks waited for slow readers"),
    ("tapeline_ring_evicted_total", "counter", "Readers that were evicted from the ring"),
    ("tapeline_ring_reader_lag_bytes", "gauge", "Distance between a reader and the newest tick"),
    ("tapeline_journal_state", "gauge", "1 for the journal's current state, 0 for the others"),
    ("tapeline_journal_sequence", "gauge", "Sequence number of the last tick in the journal"),
    ("tapeline_journal_missing_total", "counter", "Ticks that are not in the journal"),
    ("tapeline_kdb_up", "gauge", "1 while kdb+ clients are served, 0 after the kdb+ thread has ended"),
    ("tapeline_kdb_missing_ticks_total", "counter", "Ticks that are missing in the tables of kdb+ clients"),
    (
        "tapeline_zeromq_up",
        "gauge",
        "1 while ZeroMQ subscribers are served, 0 after the ZeroMQ thread has ended",
    ),
    ("tapeline_zeromq_missing_ticks_total", "counter", "Ticks that were not published to ZeroMQ subscribers"),
    ("tapeline_service_up", "gauge", "1 while the service is up"),
    ("tapeline_hub_ticks_total", "counter", "Ticks that the hub read from the ring"),
    ("tapeline_hub_missing_ticks_total", "counter", "Ticks that the hub missed"),
    ("tapeline_cache_items", "gauge", "Images in the cache"),
    ("tapeline_cache_bytes", "gauge", "Memory used by images in the cache"),
    ("tapeline_cache_limit_bytes", "gauge", "Memory limit of the cache"),
    ("tapeline_sessions", "gauge", "Open sessions, by transport"),
    ("tapeline_sessions_opened_total", "counter", "Sessions opened"),
    ("tapeline_sessions_cut_total", "counter", "Sessions disconnected for being slow"),
    ("tapeline_logins_total", "counter", "Logins accepted"),
    (
        "tapeline_logins_refused_total",
        "counter",
        "Logins refused, or ended because the user's right was withdrawn",
    ),
    ("tapeline_denied_total", "counter", "Items that clients were denied"),
    ("tapeline_sessions_behind", "gauge", "Sessions with queued output"),
    ("tapeline_streams", "gauge", "Open streams of all sessions"),
    ("tapeline_queue_bytes", "gauge", "Output of all sessions in queues and connections"),
    ("tapeline_queue_bytes_max", "gauge", "Queued output of the session with the most"),
    ("tapeline_lag_seconds_max", "gauge", "Age of the oldest queued output of any session"),
    ("tapeline_requests_total", "counter", "Items requested"),
    ("tapeline_requests_refused_total", "counter", "Item requests that were refused"),
    ("tapeline_refreshes_total", "counter", "Images sent"),
    ("tapeline_updates_total", "counter", "Updates sent"),
    ("tapeline_conflated_total", "counter", "Updates that were conflated into a later image"),
    ("tapeline_dropped_total", "counter", "Updates that were dropped, with a notification to the client"),
    (
        "tapeline_held_total",
        "counter",
        "Times that the source of an item with a single, slow client was asked to pause",
    ),
    ("tapeline_malformed_total", "counter", "Client messages that could not be decoded"),
    (
        "tapeline_latency_seconds",
        "summary",
        "Latency of ticks by hop: quantiles of the last second, sum and count since the start",
    ),
];

/// Writes all metrics of this snapshot.
pub(super) fn of(plant: &Snapshot, now: Nanos) -> String {
    let mut page = Page { text: String::new(), name: "" };
    for (name, kind, help) in METRICS {
        let _ = writeln!(page.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        page.name = name;
        write_plant(&mut page, plant, now);
        if let Some(hub) = &plant.hub {
            write_hub(&mut page, hub);
        }
    }
    page.text
}

/// The page written so far, and the metric being written.
struct Page {
    text: String,
    name: &'static str,
}

impl Page {
    fn put(&mut self, labels: &[(&str, &str)], value: impl fmt::Display) {
        self.put_as("", labels, value);
    }

    fn put_as(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl fmt::Display) {
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        for (number, (label, text)) in labels.iter().enumerate() {
            let _ = write!(self.text, "{}{label}=\"", if number == 0 { '{' } else { ',' });
            for character in text.chars() {
                match character {
                    '\\' => self.text.push_str("\\\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str("\\n"),
                    other => self.text.push(other),
                }
            }
            self.text.push('"');
        }
        let _ = writeln!(self.text, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn write_plant(page: &mut Page, plant: &Snapshot, now: Nanos) {
    let ring = &plant.backpressure;
    match page.name {
        "tapeline_info" => {
            let labels = [("plant", &*plant.plant), ("ring", &plant.ring), ("version", &plant.version)];
            page.put(&labels, 1);
        }
        "tapeline_start_time_seconds" => page.put(&[], seconds(plant.started_ns)),
        "tapeline_thread_silent_seconds" => {
            let threads = [("counters", plant.written_ns), ("plant", plant.heard_ns)];
            let hub = plant.hub.iter().map(|hub| ("hub", hub.heard_ns));
            let kdb = plant.kdb.iter().map(|kdb| ("kdb", kdb.heard_ns));
            let zeromq = plant.zeromq.iter().map(|zeromq| ("zeromq", zeromq.heard_ns));
            for (thread, heard_ns) in threads.into_iter().chain(hub).chain(kdb).chain(zeromq) {
                // A thread that has never reported is late from the beginning.
                let heard_ns = if heard_ns == 0 { now.0.saturating_sub(LATE_NS) } else { heard_ns };
                page.put(&[("thread", thread)], seconds(now.0.saturating_sub(heard_ns)));
            }
        }
        "process_cpu_seconds_total" => page.put(&[], seconds(plant.process.cpu_ns)),
        "process_resident_memory_bytes" => page.put(&[], plant.process.resident_bytes),
        "process_open_fds" => page.put(&[], plant.process.descriptors),
        "tapeline_ticks_total" => page.put(&[], plant.ticks),
        "tapeline_items" => page.put(&[], plant.items),
        "tapeline_ring_bytes" => page.put(&[], ring.ring_bytes),
        "tapeline_ring_stalls_total" => page.put(&[], ring.stalls),
        "tapeline_ring_stalled_seconds_total" => page.put(&[], seconds(ring.stalled_ns)),
        "tapeline_ring_evicted_total" => page.put(&[], ring.evicted),
        "tapeline_ring_reader_lag_bytes" => {
            for (number, reader) in plant.readers.iter().enumerate() {
                // Two readers may have the same name, and one process may have several readers.
                let (number, pid) = (number.to_string(), reader.pid.to_string());
                page.put(&[("reader", &reader.name), ("pid", &pid), ("number", &number)], reader.lag_bytes);
            }
        }
        "tapeline_source_up"
        | "tapeline_source_items"
        | "tapeline_source_served_items"
        | "tapeline_source_service_state" => write_sources(page, plant),
        "tapeline_service_unserved_items" => {
            plant.unserved.iter().for_each(|of| page.put(&[("service", &of.service)], of.items));
        }
        "tapeline_journal_state" | "tapeline_journal_sequence" | "tapeline_journal_missing_total" => {
            plant.journal.iter().for_each(|journal| write_journal(page, journal));
        }
        "tapeline_kdb_up" => plant.kdb.iter().for_each(|kdb| page.put(&[], u8::from(!kdb.ended))),
        "tapeline_kdb_missing_ticks_total" => plant.kdb.iter().for_each(|kdb| page.put(&[], kdb.missing)),
        "tapeline_zeromq_up" => plant.zeromq.iter().for_each(|zeromq| page.put(&[], u8::from(!zeromq.ended))),
        "tapeline_zeromq_missing_ticks_total" => {
            plant.zeromq.iter().for_each(|zeromq| page.put(&[], zeromq.missing));
        }
        _ => write_feeds(page, plant),
    }
}

fn write_sources(page: &mut Page, plant: &Snapshot) {
    for (number, source) in plant.sources.iter().enumerate() {
        // Two publishers may have the same name.
        let number = number.to_string();
        let labels = [("source", &*source.name), ("kind", &source.kind), ("number", &number)];
        match page.name {
            "tapeline_source_up" => page.put(&labels, u8::from(source.state == "connected")),
            "tapeline_source_items" => page.put(&labels, source.items),
            "tapeline_source_served_items" => page.put(&labels, source.serves),
            _ => {
                for part in &source.services {
                    for state in ["serves", "standby", "suspect"] {
                        let [source, _, number] = labels;
                        let labels = [source, number, ("service", &*part.service), ("state", state)];
                        page.put(&labels, u8::from(part.state == state));
                    }
                }
            }
        }
    }
}

fn write_journal(page: &mut Page, journal: &Journal) {
    match page.name {
        "tapeline_journal_state" => {
            for state in ["keeping", "stopped", "without"] {
                page.put(&[("state", state)], u8::from(journal.state == state));
            }
        }
        "tapeline_journal_sequence" => page.put(&[], journal.kept),
        _ => page.put(&[], journal.missing),
    }
}

fn write_feeds(page: &mut Page, plant: &Snapshot) {
    for feed in &plant.feeds {
        let label = ("feed", &*feed.name);
        let count = match page.name {
            "tapeline_feed_state" => {
                for state in ["initial", "live", "recovering", "stale"] {
                    page.put(&[label, ("state", state)], u8::from(feed.state == state));
                }
                continue;
            }
            "tapeline_feed_messages_total" => feed.messages,
            "tapeline_feed_missing_total" => feed.missing,
            "tapeline_feed_gaps_total" => feed.gaps,
            "tapeline_feed_absurd_gaps_total" => feed.absurd_gaps,
            "tapeline_feed_malformed_total" => feed.malformed,
            "tapeline_feed_suspect" => u64::from(feed.suspect),
            "tapeline_feed_unknown_orders_total" => feed.unknown_orders,
            "tapeline_feed_items_refused_total" => feed.items_refused,
            "tapeline_feed_kernel_drops_total" => feed.kernel_drops,
            _ => return,
        };
        page.put(&[label], count);
    }
}

fn write_hub(page: &mut Page, hub: &Hub) {
    let waits = |session: &crate::stat::snapshot::Session| session.queued_bytes + session.unsent_bytes;
    let value = match page.name {
        "tapeline_service_up" => {
            for service in &hub.services {
                page.put(&[("service", &service.name)], u8::from(service.up));
            }
            return;
        }
        "tapeline_sessions" => {
            let mut by_transport: BTreeMap<&str, usize> = BTreeMap::new();
            for session in &hub.sessions {
                *by_transport.entry(&session.transport).or_default() += 1;
            }
            for (transport, count) in by_transport {
                page.put(&[("transport", transport)], count);
            }
            return;
        }
        "tapeline_lag_seconds_max" => {
            let worst = hub.sessions.iter().map(|session| session.lag_ns).max();
            return page.put(&[], seconds(worst.unwrap_or(0)));
        }
        "tapeline_latency_seconds" => return write_latency(page, hub),
        "tapeline_hub_ticks_total" => hub.ticks,
        "tapeline_hub_missing_ticks_total" => hub.missing,
        "tapeline_cache_items" => hub.cache.items as u64,
        "tapeline_cache_bytes" => hub.cache.bytes as u64,
        "tapeline_cache_limit_bytes" => hub.cache.limit_bytes as u64,
        "tapeline_sessions_opened_total" => hub.opened,
        "tapeline_sessions_cut_total" => hub.cut,
        "tapeline_logins_total" => hub.logins,
        "tapeline_logins_refused_total" => hub.logins_refused,
        "tapeline_denied_total" => hub.denied,
        "tapeline_sessions_behind" => hub.sessions.iter().filter(|session| session.lag_ns > 0).count() as u64,
        "tapeline_streams" => hub.sessions.iter().map(|session| session.streams as u64).sum(),
        "tapeline_queue_bytes" => hub.sessions.iter().map(|session| waits(session) as u64).sum(),
        "tapeline_queue_bytes_max" => hub.sessions.iter().map(waits).max().unwrap_or(0) as u64,
        "tapeline_requests_total" => hub.totals.requests,
        "tapeline_requests_refused_total" => hub.totals.refused,
        "tapeline_refreshes_total" => hub.totals.refreshes,
        "tapeline_updates_total" => hub.totals.updates,
        "tapeline_conflated_total" => hub.totals.conflated,
        "tapeline_dropped_total" => hub.totals.dropped,
        "tapeline_held_total" => hub.totals.held,
        "tapeline_malformed_total" => hub.totals.malformed,
        _ => return,
    };
    page.put(&[], value);
}

fn write_latency(page: &mut Page, hub: &Hub) {
    for hop in &hub.latency {
        let label = ("hop", &*hop.hop);
        let Latency { p50_ns, p90_ns, p99_ns, p99_9_ns, max_ns, .. } = hop.now;
        let ranks = [("0.5", p50_ns), ("0.9", p90_ns), ("0.99", p99_ns), ("0.999", p99_9_ns), ("1", max_ns)];
        for (quantile, ns) in ranks {
            // With too few samples the format's value is NaN.
            let value = ns.map_or(f64::NAN, seconds);
            page.put(&[label, ("quantile", quantile)], value);
        }
        page.put_as("_sum", &[label], seconds(hop.all.sum_ns));
        page.put_as("_count", &[label], hop.all.samples);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::stat::snapshot::{
        FeedSnapshot, Hop, Outlet, Part, ReaderSnapshot, Service, Session, SourceSnapshot, Unserved,
    };

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
                ..FeedSnapshot::default()
            }],
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
            journal: Some(Journal { state: "without".to_owned(), kept: 9, missing: 2 }),
            kdb: Some(Outlet { ended: true, ..Outlet::default() }),
            zeromq: Some(Outlet { missing: 3, ..Outlet::default() }),
            readers: vec![
                ReaderSnapshot { name: "hub".to_owned(), ..ReaderSnapshot::default() },
                ReaderSnapshot::default(),
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
        for (name, ..) in METRICS {
            assert!(series.keys().any(|key| key.starts_with(name)), "{name}");
        }
        assert_eq!(series["tapeline_queue_bytes"], 10.0);
        assert_eq!(series["tapeline_lag_seconds_max"], 1.5);
        assert_eq!(series["tapeline_feed_state{feed=\"itch\",state=\"stale\"}"], 1.0);
        assert_eq!(series["tapeline_feed_state{feed=\"itch\",state=\"live\"}"], 0.0);
        assert_eq!(series["tapeline_journal_state{state=\"without\"}"], 1.0);
        assert_eq!(series["tapeline_journal_missing_total"], 2.0);
        assert_eq!(series["tapeline_kdb_up"], 0.0);
        assert_eq!(series["tapeline_zeromq_up"], 1.0);
        assert_eq!(series["tapeline_zeromq_missing_ticks_total"], 3.0);
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
        for (name, kind, _) in METRICS {
            assert!(page.contains(&format!("| `{name}` | {kind} |")), "{name}, {kind}");
        }
    }
}
