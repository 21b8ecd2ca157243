//! The record of a run, and its summary for people.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use tapeline_console::output::{Table, byte_rate, latency, painted, percentile_table, rate, table};
use tapeline_console::paths;
use tapeline_measure::{
    Environment, Evidence, Jitter, Nanos, Percentiles, Rank, Spent, Verdict, figures, floor_ns, judge,
};

/// The layout of `run.json`. It is incremented when a field changes its meaning or is removed.
const LAYOUT: u32 = 1;

/// Everything about one run: the contents of `run.json`, and of the printed summary.
#[derive(Debug, Serialize)]
pub struct Run {
    layout: u32,
    /// The kind of run, for instance `demo`.
    pub kind: String,
    /// Start of the measured time.
    pub started: Nanos,
    /// The same as UTC text.
    started_utc: String,
    /// The measured time in seconds, without warm-up.
    pub seconds: f64,
    /// The command's settings, defaults included.
    pub settings: serde_json::Value,
    /// The verdict.
    pub verdict: Verdict,
    /// The figures behind the verdict.
    pub why: String,
    /// Messages and bytes.
    pub throughput: Throughput,
    /// Number of lost messages, by sequence.
    pub lost: u64,
    /// Latency by hop; the last hop is the whole path.
    pub hops: Vec<HopLatency>,
    /// Where the time of a message goes, in the order of its way.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// The receivers of the messages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<Client>,
    /// The result of a replay of the journal, if it was replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal: Option<Journal>,
    /// Parts of the run that are measured separately: start-up and steady state.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
    /// Messages by kind, if there are several kinds.
    #[serde(skip_serializing_if = "serde_json::Value::is_null")]
    pub counts: serde_json::Value,
    /// The run by second.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Second>,
    /// The jitter of the cores used, measured separately.
    pub jitter: Vec<Jitter>,
    /// The resulting floor under the 99th percentile, in nanoseconds.
    pub jitter_floor_p99_ns: Option<u64>,
    /// Resources used by each process.
    pub processes: Vec<Process>,
    /// The machine and the build.
    pub environment: Environment,
}

/// Messages and bytes over the measured time.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Throughput {
    /// Number of messages.
    pub messages: u64,
    /// Bytes of these messages.
    pub bytes: u64,
    /// Messages a second.
    pub messages_per_second: f64,
    /// Bytes a second.
    pub bytes_per_second: f64,
}

impl Throughput {
    /// Throughput of `messages` messages with `bytes` bytes in all within `over`.
    pub fn new(messages: u64, bytes: u64, over: Duration) -> Self {
        let seconds = over.as_secs_f64();
        let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        Self {
            messages,
            bytes,
            messages_per_second: per_second(messages),
            bytes_per_second: per_second(bytes),
        }
    }
}

/// The latency of one hop.
#[derive(Clone, Debug, Serialize)]
pub struct HopLatency {
    /// The name, for instance `wire→decoded`.
    pub name: String,
    /// Its distribution.
    #[serde(flatten)]
    pub percentiles: Percentiles,
    /// The bound on the error of the two clocks involved, in nanoseconds.
    pub clock_error_ns: u64,
}

/// A hop of the way that messages take, by its mean: the means of all hops add up to that of the whole way, as
/// percentiles do not.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// The name, for instance `wire→decoded`.
    pub name: String,
    /// Mean of all messages, in nanoseconds.
    pub mean_ns: u64,
    /// Median, in nanoseconds; `None` for a hop that is the difference of two others.
    pub median_ns: Option<u64>,
    /// The mean behind a [bare relay](crate::path::BareRelay) at the same rate in the same run: the floor under this
    /// hop.
    pub relay_ns: Option<u64>,
    /// The median behind the relay.
    pub relay_median_ns: Option<u64>,
    /// `true` for a sum of hops before it, which is not a part of the way itself.
    pub is_sum: bool,
}

/// A part of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Phase {
    /// The name, for instance `start-up`.
    pub name: String,
    /// Duration in seconds.
    pub seconds: f64,
    /// Number of messages.
    pub messages: u64,
    /// Messages a second.
    pub messages_per_second: f64,
    /// Latency from the start of encoding to decoded.
    pub service: Percentiles,
    /// Latency from the due time.
    pub response: Percentiles,
}

/// One second of a run.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Second {
    /// The end of the second, in seconds since the start of the run.
    pub second: u64,
    /// Number of messages.
    pub messages: u64,
    /// CPU use, in per cent of one core.
    pub cpu_percent: f64,
    /// Resident memory at the end of the second.
    pub memory_bytes: u64,
}

/// A receiver of the messages.
#[derive(Clone, Debug, Serialize)]
pub struct Client {
    /// The name, for instance `subscriber 1`.
    pub name: String,
    /// The transport: shared memory or TCP.
    pub over: String,
    /// Number of messages received.
    pub received: u64,
    /// Number of messages lost.
    pub lost: u64,
    /// The verdict on this receiver.
    pub verdict: Verdict,
    /// Latency from the due time to this receiver.
    #[serde(flatten)]
    pub percentiles: Percentiles,
}

/// The result of a journal replay.
#[derive(Clone, Debug, Serialize)]
pub struct Journal {
    /// Number of ticks replayed.
    pub replayed: u64,
    /// Number of ticks missing.
    pub missing: u64,
    /// Sequence of the last tick.
    pub last_sequence: u64,
    /// CRC-32C over all replayed ticks, in hexadecimal. Equal to that of the published ticks if none is missing.
    pub checksum: String,
    /// Duration of the replay in seconds, process start included.
    pub replay_seconds: f64,
}

/// Resources that one process used during the run.
#[derive(Clone, Debug, Serialize)]
pub struct Process {
    /// The name, for instance `plant`.
    pub name: String,
    /// CPU time and memory.
    #[serde(flatten)]
    pub spent: Spent,
}

impl Run {
    /// A run of `kind` over the measured time, judged by `evidence` with the jitter floor of `jitter`. The other
    /// fields start empty.
    pub fn new(
        kind: &str,
        started: Nanos,
        over: Duration,
        mut evidence: Evidence,
        jitter: Vec<Jitter>,
        environment: Environment,
    ) -> Self {
        let floor = (!jitter.is_empty()).then(|| floor_ns(&jitter, 0.99));
        evidence.floor_p99_ns = evidence.floor_p99_ns.or(floor);
        let (verdict, why) = judge(&evidence);
        Self {
            layout: LAYOUT,
            kind: kind.to_owned(),
            started,
            started_utc: started.to_string(),
            seconds: over.as_secs_f64(),
            settings: serde_json::Value::Null,
            verdict,
            why,
            throughput: Throughput::default(),
            lost: evidence.lost,
            hops: Vec::new(),
            steps: Vec::new(),
            clients: Vec::new(),
            journal: None,
            phases: Vec::new(),
            counts: serde_json::Value::Null,
            timeline: Vec::new(),
            jitter,
            jitter_floor_p99_ns: evidence.floor_p99_ns,
            processes: Vec::new(),
            environment,
        }
    }

    /// The summary for people: verdict, throughput, loss, latency by hop, jitter floor, resources, and the path
    /// of the folder.
    pub fn summary(&self, folder: Option<&Path>) -> String {
        let mut text = format!("{}: {}\n\n", painted(self.verdict), self.why);
        let Throughput { messages, bytes, messages_per_second, bytes_per_second } = self.throughput;
        let mut fact = |name: &str, value: String| text.push_str(&format!("{name:<13}{value}\n"));
        fact("throughput", format!("{}, {}", rate(messages_per_second, "msgs"), byte_rate(bytes_per_second)));
        fact(
            "messages",
            format!(
                "{} ({} bytes) in {:.1} s",
                figures::thousands(messages),
                figures::thousands(bytes),
                self.seconds
            ),
        );
        fact("lost", figures::thousands(self.lost));
        if let Some(journal) = &self.journal {
            let Journal { replayed, missing, last_sequence, checksum, replay_seconds } = journal;
            let replayed = figures::thousands(*replayed);
            let verdict = match *missing {
                0 => "as they were published".to_owned(),
                missing => format!("{} are missing", figures::thousands(missing)),
            };
            let last = figures::thousands(*last_sequence);
            fact(
                "journal",
                format!(
                    "{replayed} ticks replayed in {replay_seconds:.1} s, {verdict}: up to {last}, checksum {checksum}"
                ),
            );
        }
        if let Some(floor) = self.jitter_floor_p99_ns {
            let cores: Vec<usize> = self.jitter.iter().map(|jitter| jitter.core).collect();
            let longest = self.jitter.iter().map(|jitter| jitter.max_ns).max().unwrap_or(0);
            let floor = figures::duration(floor);
            let longest = figures::duration(longest);
            let cores = figures::list(&cores);
            fact("jitter floor", format!("{floor} at p99, longest gap {longest} (cores {cores}, idle)"));
        }
        let error = self.hops.iter().map(|hop| hop.clock_error_ns).max();
        if let Some(error) = error {
            fact("clock error", format!("at most {} on any hop", figures::duration(error)));
        }
        for Process { name, spent } in &self.processes {
            let memory = figures::quantity(spent.peak_resident_bytes as f64, "B", true);
            fact(name, format!("{:.2} cores, peak memory {memory}", spent.cores));
        }
        if !self.hops.is_empty() {
            let hops: Vec<(&str, &Percentiles)> =
                self.hops.iter().map(|hop| (hop.name.as_str(), &hop.percentiles)).collect();
            text.push('\n');
            text.push_str(&percentile_table(&hops));
            text.push('\n');
        }
        if !self.steps.is_empty() {
            text.push_str(&format!("\n{}\n", self.of_steps()));
        }
        if !self.clients.is_empty() {
            text.push_str(&format!("\n{}\n", self.of_clients()));
        }
        if let Some(folder) = folder {
            text.push_str(&format!("\nrun folder   {}\n", paths::shown(folder)));
        }
        text.trim_end().to_owned()
    }

    /// The table of hops by their means, beside a bare relay.
    fn of_steps(&self) -> Table {
        let mut table = table(["where the time goes", "mean", "relay's", "ratio", "p50", "relay's", "ratio"]);
        let ratio = |ns: Option<u64>, floor: Option<u64>| match (ns, floor) {
            (Some(ns), Some(floor)) if floor > 0 => format!("{:.2}", ns as f64 / floor as f64),
            _ => "–".to_owned(),
        };
        for Step { name, mean_ns, median_ns, relay_ns, relay_median_ns, .. } in &self.steps {
            table.add_row([
                name.clone(),
                figures::duration(*mean_ns),
                latency(*relay_ns),
                ratio(Some(*mean_ns), *relay_ns),
                latency(*median_ns),
                latency(*relay_median_ns),
                ratio(*median_ns, *relay_median_ns),
            ]);
        }
        table
    }

    /// The table of receivers, one row each.
    fn of_clients(&self) -> Table {
        let mut table =
            table(["client", "over", "received", "lost", "verdict", "due→here p50", "p99", "p99.9", "max"]);
        for client in &self.clients {
            let at = |rank| latency(client.percentiles.at(rank));
            table.add_row([
                client.name.clone(),
                client.over.clone(),
                figures::thousands(client.received),
                figures::thousands(client.lost),
                client.verdict.to_string(),
                at(Rank::MEDIAN),
                at(Rank::P99),
                at(Rank::Hundredths(99_90)),
                at(Rank::Max),
            ]);
        }
        table
    }
}
