//! The result of a probe, for people and for programs.

use std::net::{SocketAddr, SocketAddrV4};

use serde::Serialize;
use tapeline_console::output::{self, Format};
use tapeline_measure::figures::thousands;

use super::ask::StepSent;
use super::datagram::COUNTS;
use super::tcp_ask::StepLateness;

/// The headers of IPv4 and UDP.
const HEADERS: usize = 28;

/// What a path carries.
#[derive(Debug, Serialize)]
pub(super) struct Probed {
    pub(super) to: SocketAddrV4,
    pub(super) from: SocketAddrV4,
    /// The largest datagram that arrives everywhere without being split, in bytes of payload.
    pub(super) largest_datagram: usize,
    pub(super) listeners: Vec<Listener>,
}

/// One listener.
#[derive(Debug, Serialize)]
pub(super) struct Listener {
    pub(super) address: SocketAddrV4,
    pub(super) round_trip: RoundTrip,
    pub(super) steps: Vec<RateStep>,
}

/// Round trips in ns; `None` if none came back.
#[derive(Debug, Serialize)]
pub(super) struct RoundTrip {
    least_ns: Option<u64>,
    median_ns: Option<u64>,
    p90_ns: Option<u64>,
    p99_ns: Option<u64>,
    most_ns: Option<u64>,
    asked: u64,
    lost: u64,
}

impl RoundTrip {
    /// From sorted times.
    pub(super) fn new(sorted: &[u64], asked: u64) -> Self {
        let at = |share: usize| sorted.get(sorted.len() * share / 100).or(sorted.last()).copied();
        Self {
            least_ns: sorted.first().copied(),
            median_ns: at(50),
            p90_ns: at(90),
            p99_ns: at(99),
            most_ns: sorted.last().copied(),
            asked,
            lost: asked.saturating_sub(sorted.len() as u64),
        }
    }

    fn text(&self) -> String {
        let times = [self.least_ns, self.median_ns, self.p90_ns, self.p99_ns, self.most_ns];
        let [least, median, p90, p99, most] = times.map(output::latency);
        format!(
            "round trip   {median} median, {least} to {most}, p90 {p90}, p99 {p99}; {} of {} lost",
            self.lost, self.asked
        )
    }
}

/// One rate.
#[derive(Debug, Serialize)]
pub(super) struct RateStep {
    rate: u64,
    datagram_bytes: usize,
    sent: u64,
    /// Datagrams that the sending host did not take.
    unsent: u64,
    received: u64,
    lost: u64,
    lost_share: f64,
    reordered: u64,
    duplicates: u64,
    /// Lost datagrams that the listener's kernel dropped, because the socket's buffer was full.
    dropped_by_host: u64,
    sent_per_second: f64,
    received_bytes_per_second: f64,
}

impl RateStep {
    pub(super) fn new(rate: u64, datagram_bytes: usize, sent: &StepSent, counts: [u64; COUNTS]) -> Self {
        let [received, duplicates, reordered, bytes, ns, dropped_by_host, ..] = counts;
        let lost = sent.count.saturating_sub(received);
        let per_second = |count: u64, ns: u64| count as f64 * 1e9 / ns.max(1) as f64;
        Self {
            rate,
            datagram_bytes,
            sent: sent.count,
            unsent: sent.unsent,
            received,
            lost,
            lost_share: lost as f64 / sent.count.max(1) as f64,
            reordered,
            duplicates,
            dropped_by_host,
            sent_per_second: per_second(sent.count, sent.ns),
            received_bytes_per_second: if received > 1 { per_second(bytes, ns) } else { 0.0 },
        }
    }
}

/// What a path carries over TCP.
#[derive(Debug, Serialize)]
pub(super) struct TcpProbed {
    pub(super) to: SocketAddr,
    pub(super) tls: bool,
    /// The time until the connection was made, and TLS agreed on.
    pub(super) connect_ns: u64,
    pub(super) round_trip: RoundTrip,
    /// First as fast as the path takes, then the rates.
    pub(super) steps: Vec<TcpStep>,
}

/// One rate over TCP.
#[derive(Debug, Serialize)]
pub(super) struct TcpStep {
    /// Datagrams per second; `None`: as many as the path takes.
    rate: Option<u64>,
    datagram_bytes: u16,
    sent: u64,
    /// Datagrams that were due and that the path did not take in time.
    unsent: u64,
    received: u64,
    received_per_second: f64,
    received_bytes_per_second: f64,
    /// How much longer the slowest datagram took than the fastest.
    latest_ns: u64,
    /// How much longer datagrams took at the end of the step than at its beginning.
    backlog_ns: u64,
    /// Everything was sent, and nothing waits longer and longer.
    is_carried: bool,
}

/// Datagrams that take no more than this longer at the end of a step are not delayed by others.
const STEADY_NS: u64 = 1_000_000;

impl TcpStep {
    pub(super) fn new(
        (rate, datagram_bytes): (u64, u16),
        (sent, unsent): (u64, u64),
        tally: &StepLateness,
        round_trip: &RoundTrip,
    ) -> Self {
        let per_second = |count: u64| count as f64 * 1e9 / tally.ns().max(1) as f64;
        let is_several = tally.received > 1;
        let backlog_ns = tally.backlog_ns();
        // A way whose times vary by more varies in a step too.
        let steady_ns = STEADY_NS.max(round_trip.median_ns.unwrap_or(0));
        Self {
            rate: (rate > 0).then_some(rate),
            datagram_bytes,
            sent,
            unsent,
            received: tally.received,
            received_per_second: if is_several { per_second(tally.received) } else { 0.0 },
            received_bytes_per_second: if is_several { per_second(tally.bytes) } else { 0.0 },
            latest_ns: tally.latest_ns(),
            backlog_ns,
            is_carried: unsent == 0 && backlog_ns <= steady_ns,
        }
    }
}

pub(super) fn print_tcp(probed: &TcpProbed, format: Format) -> anyhow::Result<()> {
    match format {
        Format::Table => output::print(&text_tcp(probed)),
        Format::Json => output::print_json(probed),
    }
}

fn text_tcp(probed: &TcpProbed) -> String {
    let TcpProbed { to, tls, connect_ns, round_trip, steps } = probed;
    let mut text = format!(
        "path         to {to} over TCP, {} TLS\nconnected    after {}\n{}\n\n",
        if *tls { "with" } else { "without" },
        output::latency(Some(*connect_ns)),
        round_trip.text()
    );
    let headings =
        ["datagrams/s", "size", "sent", "unsent", "arriving/s", "arriving", "latest", "backlog", "carried"];
    let mut table = output::table(headings);
    for step in steps {
        table.add_row([
            step.rate.map_or_else(|| "as it goes".to_owned(), thousands),
            step.datagram_bytes.to_string(),
            thousands(step.sent),
            thousands(step.unsent),
            thousands(step.received_per_second.round() as u64),
            output::byte_rate(step.received_bytes_per_second),
            output::latency(Some(step.latest_ns)),
            output::latency(Some(step.backlog_ns)),
            if step.is_carried { "yes" } else { "no" }.to_owned(),
        ]);
    }
    text.push_str(&table.to_string());
    text.push_str(&format!("\n\n{}", verdict_tcp(steps)));
    text.push_str(
        "\n\nunsent: datagrams that were due and that the path did not take in time. latest: how much longer the slowest took \
         than the fastest.\nbacklog: how much longer they took at the end of the step than at its beginning.",
    );
    text
}

/// The highest rate that the path carries, and what it takes at most.
fn verdict_tcp(steps: &[TcpStep]) -> String {
    let clean = steps.iter().filter(|step| step.rate.is_some()).take_while(|step| step.is_carried).last();
    let mut said = match clean {
        Some(step) => format!(
            "latency does not grow up to {} datagrams/s of {} bytes",
            thousands(step.rate.unwrap_or_default()),
            step.datagram_bytes
        ),
        None => "latency grows at every rate".to_owned(),
    };
    if let Some(most) = steps.iter().find(|step| step.rate.is_none()) {
        said.push_str(&format!(
            "; the path takes {} at most, {} datagrams/s, and delays each by up to {} then",
            output::byte_rate(most.received_bytes_per_second),
            thousands(most.received_per_second.round() as u64),
            output::latency(Some(most.latest_ns))
        ));
    }
    said
}

pub(super) fn print(probed: &Probed, format: Format) -> anyhow::Result<()> {
    match format {
        Format::Table => output::print(&text(probed)),
        Format::Json => output::print_json(probed),
    }
}

fn text(probed: &Probed) -> String {
    let Probed { to, from, largest_datagram: largest, listeners } = probed;
    let mut text = format!(
        "path         from {from} to {to}, {} listening\n\
         datagram     up to {} bytes arrive whole, an MTU of {}: packet = {} is the largest in [bridge]",
        listeners.len(),
        thousands(*largest as u64),
        thousands((largest + HEADERS) as u64),
        largest
    );
    for Listener { address, round_trip, steps } in listeners {
        text.push_str(&format!("\n\nlistener     {address}\n{}\n\n", round_trip.text()));
        let headings = [
            "datagrams/s",
            "size",
            "sent/s",
            "sent",
            "lost",
            "lost %",
            "reordered",
            "duplicates",
            "by host",
            "arriving",
        ];
        let mut table = output::table(headings);
        for step in steps {
            table.add_row([
                thousands(step.rate),
                step.datagram_bytes.to_string(),
                thousands(step.sent_per_second.round() as u64),
                thousands(step.sent),
                thousands(step.lost),
                format!("{:.4}", step.lost_share * 100.0),
                thousands(step.reordered),
                thousands(step.duplicates),
                thousands(step.dropped_by_host),
                output::byte_rate(step.received_bytes_per_second),
            ]);
        }
        text.push_str(&table.to_string());
        text.push_str(&format!("\n\n{}", verdict(steps)));
    }
    text.push_str("\n\nby host: lost datagrams that the listener's kernel dropped, because the socket's buffer was full.");
    text
}

/// The highest rate without loss, and what to do about loss.
fn verdict(steps: &[RateStep]) -> String {
    let is_clean = |step: &&RateStep| step.lost == 0 && step.unsent == 0 && step.received > 0;
    let clean = steps.iter().take_while(is_clean).last();
    let mut said = match clean {
        Some(step) => format!(
            "no loss up to {} datagrams/s of {} bytes",
            thousands(step.sent_per_second.round() as u64),
            step.datagram_bytes
        ),
        None => "loss at every rate".to_owned(),
    };
    if steps.iter().any(|step| step.dropped_by_host > 0) {
        said.push_str("; raise net.core.rmem_max at the listener: `tapeline doctor` there says how");
    }
    if let Some(step) = steps.iter().find(|step| step.unsent > 0) {
        said.push_str(&format!("; this host could not send {} datagrams", thousands(step.unsent)));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_says_what_was_lost_and_where() {
        let sent = StepSent { count: 1_000, unsent: 0, ns: 1_000_000_000 };
        let counts = [990, 3, 2, 99_000, 1_000_000_000, 10, 0, 0];
        let step = RateStep::new(1_000, 100, &sent, counts);
        assert_eq!((step.lost, step.reordered, step.duplicates, step.dropped_by_host), (10, 2, 3, 10));
        assert!(
            (step.lost_share - 0.01).abs() < 1e-9 && (step.received_bytes_per_second - 99_000.0).abs() < 1.0
        );
        let clean = RateStep::new(500, 100, &sent, [1_000, 0, 0, 100_000, 1_000_000_000, 0, 0, 0]);
        let said = verdict(&[clean, step]);
        assert!(
            said.starts_with("no loss up to 1,000 datagrams/s of 100 bytes; raise net.core.rmem_max"),
            "{said}"
        );
        assert_eq!(verdict(&[]), "loss at every rate");
    }

    #[test]
    fn over_tcp_the_highest_rate_without_a_backlog_is_told() {
        let step = |rate, backlog_ns| TcpStep {
            rate,
            datagram_bytes: 1_400,
            sent: 10,
            unsent: 0,
            received: 10,
            received_per_second: 5_000.0,
            received_bytes_per_second: 7_000_000.0,
            latest_ns: 40_000_000,
            backlog_ns,
            is_carried: backlog_ns <= STEADY_NS,
        };
        let steps = [step(None, 40_000_000), step(Some(1_000), 0), step(Some(10_000), 30_000_000)];
        let said = verdict_tcp(&steps);
        assert!(
            said.starts_with("latency does not grow up to 1,000 datagrams/s of 1400 bytes; the path takes 7"),
            "{said}"
        );
        assert!(said.contains("5,000 datagrams/s, and delays each by up to 40"), "{said}");
        assert!(verdict_tcp(&steps[2..]).starts_with("latency grows at every rate"));
    }

    #[test]
    fn round_trips_have_their_ranks() {
        let trips: Vec<u64> = (1..=99).collect();
        let RoundTrip { least_ns, median_ns, p90_ns, most_ns, lost, .. } = RoundTrip::new(&trips, 100);
        assert_eq!((least_ns, median_ns, p90_ns, most_ns, lost), (Some(1), Some(50), Some(90), Some(99), 1));
        assert_eq!(RoundTrip::new(&[], 100).median_ns, None);
    }
}
