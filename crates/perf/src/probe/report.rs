//! The result of a probe, for people and for programs.

use std::net::SocketAddrV4;

use serde::Serialize;
use tapeline_console::output::{self, Format};
use tapeline_measure::figures::thousands;

use super::ask::StepSent;
use super::datagram::COUNTS;

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
            most_ns: sorted.last().copied(),
            asked,
            lost: asked.saturating_sub(sorted.len() as u64),
        }
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
        let [least, median, p90, most] =
            [round_trip.least_ns, round_trip.median_ns, round_trip.p90_ns, round_trip.most_ns]
                .map(output::latency);
        text.push_str(&format!(
            "\n\nlistener     {address}\n\
             round trip   {median} median, {least} to {most}, p90 {p90}; {} of {} lost\n\n",
            round_trip.lost, round_trip.asked
        ));
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
    fn round_trips_have_their_ranks() {
        let trips: Vec<u64> = (1..=99).collect();
        let RoundTrip { least_ns, median_ns, p90_ns, most_ns, lost, .. } = RoundTrip::new(&trips, 100);
        assert_eq!((least_ns, median_ns, p90_ns, most_ns, lost), (Some(1), Some(50), Some(90), Some(99), 1));
        assert_eq!(RoundTrip::new(&[], 100).median_ns, None);
    }
}
