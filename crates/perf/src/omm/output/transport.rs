//! TransportPerf's files and console output (ETA C 3.6: TransportPerf.c), and Tapeline's additions.

use serde_json::{Value, json};

use super::resources::{MEGABYTE, Resources};
use super::statistics::{self, IntervalEnd};
use super::summary::SummaryLines;
use crate::omm::sums::{Figures, Moments};
use crate::omm::tally::{Counts, Tally, Times};
use crate::run_folder::Throughput;

pub(super) const COLUMNS: &str = "UTC, Msgs sent, Bytes sent, Msgs received, Bytes received, \
    Latency msgs received, Latency avg (usec), Latency std dev (usec), Latency max (usec), Latency min (usec), \
    CPU usage (%), Memory (MB)";

/// A row's cells, without time and resource usage.
pub(super) fn cells(cells: &mut Vec<String>, counts: &Counts, times: &Times) {
    let sent = [counts.messages_sent, counts.bytes_sent, counts.updates, counts.bytes_received];
    cells.extend(sent.map(|count| count.to_string()));
    statistics::times(cells, &Moments::of(times), 3);
}

/// Console text of an interval. `thread`: its number from 1, if there are several.
pub(super) fn console(thread: Option<usize>, interval: &Tally, moment: &IntervalEnd) -> String {
    let Tally { counts, updates, .. } = interval;
    let seconds = moment.seconds.max(1) as f64;
    let mut text = format!("{:03}:", moment.second);
    if let Some(number) = thread {
        text.push_str(&format!(" Thread {number}:"));
    }
    for (way, messages, bytes) in
        [("Sent", counts.messages_sent, counts.bytes_sent), ("Recv", counts.updates, counts.bytes_received)]
    {
        let (rate, data) = (messages as f64 / seconds, bytes as f64 / MEGABYTE / seconds);
        text.push_str(&format!("\n  {way}: MsgRate: {rate:8.0}, DataRate:{data:8.3}MBps"));
    }
    text.push('\n');
    text.push_str(&statistics::fine_line("  Latency (usec)", &Moments::of(updates)));
    text.push_str(&statistics::faults(&[
        (counts.held_back, "slices held back: the connection took nothing more"),
        (counts.lost, "messages lost"),
        (counts.out_of_order, "messages out of order"),
        (counts.malformed, "messages could not be read"),
    ]));
    let sample = &moment.sample;
    text.push_str(&format!("  CPU: {:6.2}% Mem: {:8.2}MB\n", sample.cpu_percent, sample.memory_mb()));
    text
}

/// Summary of one thread, or of all.
pub(super) fn summary(lines: &mut SummaryLines, figures: &Figures, resources: Option<&Resources>) {
    let Figures { counts, overall, .. } = figures;
    lines.head("Statistics:");
    lines.moments("Latency", &overall.latency, 3, "No latency information was received.");
    let seconds = overall.seconds;
    lines.say(format_args!("Sampling duration(sec): {seconds:.2}"));
    lines.count("Msgs Sent", counts.messages_sent);
    lines.unsent(counts);
    lines.count("Msgs Received", counts.updates);
    let rate = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
    let (sent, received) = (counts.bytes_sent as f64 / MEGABYTE, counts.bytes_received as f64 / MEGABYTE);
    lines.say(format_args!("Data Sent (MB): {sent:.2}"));
    lines.say(format_args!("Data Received (MB): {received:.2}"));
    lines.rate("Avg. Msg Sent Rate", rate(counts.messages_sent as f64));
    lines.rate("Avg. Msg Recv Rate", rate(counts.updates as f64));
    lines.say(format_args!("Avg. Data Sent Rate (MB): {:.2}", rate(sent)));
    lines.say(format_args!("Avg. Data Recv Rate (MB): {:.2}", rate(received)));
    lines.resources(resources);
    if resources.is_some() {
        lines.count("Process ID", u64::from(std::process::id()));
    }
}

/// The record's counts.
pub(super) fn counts(counts: &Counts) -> Value {
    json!({
        "due": counts.messages_due,
        "sent": counts.messages_sent,
        "stamped": counts.stamped_messages,
        "sent_bytes": counts.bytes_sent,
        "received": counts.updates,
        "received_bytes": counts.bytes_received,
        "lost": counts.lost,
        "out_of_order": counts.out_of_order,
        "malformed": counts.malformed,
        "slices_held_back": counts.held_back,
        "unsent": counts.unsent,
    })
}

/// Throughput of this end: messages sent and received.
pub(super) fn throughput(counts: &Counts, seconds: f64) -> Throughput {
    let messages = counts.messages_sent + counts.updates;
    let bytes = counts.bytes_sent + counts.bytes_received;
    Throughput::new(messages, bytes, std::time::Duration::from_secs_f64(seconds.max(0.0)))
}
