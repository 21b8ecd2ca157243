//! One thread's statistics of one interval: a row of its file, and lines on the console. The guide's columns and
//! lines come first (its chapters 4.6.2, 4.6.4, 5.7.3, 6.7.2 and 6.7.3; 5.7.2 is missing in print, so its columns are
//! those of the public tools: EmaCppIProvPerf/ProviderThread.cpp), then Tapeline's.

use tapeline_measure::{Nanos, Rank, Verdict};

use super::resources::Sample;
use super::transport;
use crate::omm::sums::Moments;
use crate::omm::tally::{Counts, Tally, Times};
use crate::omm::tool::Tool;

/// The end of an interval, and the process's resource usage in it.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct IntervalEnd {
    /// Wall-clock time.
    pub(in super::super) utc: Nanos,
    /// Seconds of the run.
    pub(in super::super) second: u64,
    /// Seconds of the interval.
    pub(in super::super) seconds: u64,
    pub(in super::super) sample: Sample,
    /// Verdict on the run so far.
    pub(in super::super) verdict: Verdict,
}

pub(super) fn header(tool: Tool) -> String {
    let theirs = match tool {
        Tool::Consumer => {
            "UTC, Latency updates, Latency avg (usec), Latency std dev (usec), Latency max (usec), \
             Latency min (usec), Images, Update rate (msg/sec), Posting Latency updates, \
             Posting Latency avg (usec), Posting Latency std dev (usec), Posting Latency max (usec), \
             Posting Latency min (usec), GenMsgs sent, GenMsgs received, GenMsg Latencies sent, \
             GenMsg latencies received, GenMsg Latency avg (usec), GenMsg Latency std dev (usec), \
             GenMsg Latency max (usec), GenMsg Latency min (usec), CPU usage (%), Memory (MB)"
        }
        Tool::Provider => {
            // The public tools spell it "GenMSg", and programs search for it.
            "UTC, Requests received, Images sent, Updates sent, Posts reflected, GenMsgs sent, \
             GenMsgs received, GenMSg Latencies sent, GenMsg Latencies received, \
             GenMsg Latency avg (usec), GenMsg Latency std dev (usec), GenMsg Latency max (usec), \
             GenMsg Latency min (usec), CPU usage (%), Memory (MB)"
        }
        Tool::NiProvider => "UTC, Images sent, Updates sent, CPU usage (%), Memory (MB)",
        Tool::Transport => transport::COLUMNS,
    };
    let mut header = theirs.to_owned();
    for what in ["Service", "Response"] {
        for (name, _) in PERCENTILES {
            header.push_str(&format!(", {what} {name} (usec)"));
        }
    }
    header.push_str(", Service samples, Response samples, Verdict so far");
    header
}

const PERCENTILES: [(&str, Rank); 5] = [
    ("p50", Rank::MEDIAN),
    ("p90", Rank::Hundredths(90_00)),
    ("p99", Rank::P99),
    ("p99.9", Rank::Hundredths(99_90)),
    ("p99.99", Rank::Hundredths(99_99)),
];

pub(super) fn row(tool: Tool, interval: &Tally, moment: &IntervalEnd) -> String {
    let Tally { counts, updates, posts, generics, .. } = interval;
    let mut cells = vec![utc(moment.utc)];
    match tool {
        Tool::Consumer => {
            times(&mut cells, &Moments::of(updates), 1);
            cells.push(counts.images.to_string());
            cells.push((counts.updates / moment.seconds.max(1)).to_string());
            times(&mut cells, &Moments::of(posts), 1);
            generic_cells(&mut cells, counts, generics);
        }
        Tool::Provider => {
            let of_items = [counts.requests, counts.images, counts.updates, counts.reflected_posts];
            cells.extend(of_items.map(|count| count.to_string()));
            generic_cells(&mut cells, counts, generics);
        }
        Tool::NiProvider => cells.extend([counts.images, counts.updates].map(|count| count.to_string())),
        Tool::Transport => transport::cells(&mut cells, counts, updates),
    }
    cells.push(format!("{:.2}", moment.sample.cpu_percent));
    cells.push(format!("{:.2}", moment.sample.memory_mb()));
    // A provider times only messages that it receives.
    let timed = if tool.times_updates() { updates } else { generics };
    for recorder in [&timed.service, &timed.response] {
        let percentiles = recorder.percentiles();
        // Empty if too few samples lie beyond the percentile.
        let cell =
            |rank| percentiles.at(rank).map_or_else(String::new, |ns| format!("{:.1}", ns as f64 / 1e3));
        cells.extend(PERCENTILES.map(|(_, rank)| cell(rank)));
    }
    cells.push(timed.service.samples().to_string());
    cells.push(timed.response.samples().to_string());
    cells.push(moment.verdict.to_string());
    cells.join(", ")
}

/// Cells of moments, with this many decimals.
pub(super) fn times(cells: &mut Vec<String>, moments: &Moments, places: usize) {
    cells.push(moments.count.to_string());
    let values = [moments.mean, moments.deviation, moments.max, moments.min];
    cells.extend(values.map(|value| format!("{value:.places$}")));
}

fn generic_cells(cells: &mut Vec<String>, counts: &Counts, generics: &Times) {
    let sent = [counts.generics_sent, counts.generics_received, counts.stamped_generics];
    cells.extend(sent.map(|count| count.to_string()));
    times(cells, &Moments::of(generics), 1);
}

/// `2021-06-02 13:07:27`.
fn utc(at: Nanos) -> String {
    let text = at.to_string();
    text.get(..19).unwrap_or(&text).replace('T', " ")
}

/// Console text of an interval. `thread`: its number from 1, if there are several. `totals`: requests and images so far.
pub(super) fn console(
    tool: Tool,
    thread: Option<usize>,
    interval: &Tally,
    moment: &IntervalEnd,
    totals: (u64, u64),
) -> String {
    if tool == Tool::Transport {
        return transport::console(thread, interval, moment);
    }
    let Tally { counts, updates, generics, encoding, decoding, .. } = interval;
    let mut text = format!("{:03}: ", moment.second);
    if let Some(number) = thread {
        let what = if tool == Tool::Consumer { "Client" } else { "Thread" };
        text.push_str(&format!("{what} {number}:\n  "));
    }
    let rate = counts.updates / moment.seconds.max(1);
    let used = format!("CPU: {:6.2}%, Mem: {:6.2}MB", moment.sample.cpu_percent, moment.sample.memory_mb());
    match tool {
        Tool::Consumer => {
            let Counts { images, posts, .. } = counts;
            text.push_str(&format!("Images: {images:6}, Posts: {posts:6}, UpdRate: {rate:8}, {used}\n"));
            text.push_str(&value_line("  Latency(usec)", &Moments::of(updates)));
            text.push_str(&value_line("  PostLat(usec)", &Moments::of(&interval.posts)));
        }
        _ => text.push_str(&format!("UpdRate: {rate:8}, {used}\n")),
    }
    let (all_requests, all_images) = totals;
    let Counts { requests, images, posts, reflected_posts, .. } = counts;
    match tool {
        Tool::Provider if *requests > 0 || *images > 0 => {
            let received = format!("Received {requests} item requests (total: {all_requests})");
            text.push_str(&format!("  - {received}, sent {images} images (total: {all_images})\n"));
        }
        Tool::NiProvider if *images > 0 => {
            text.push_str(&format!("  - Sent {images} images (total: {all_images})\n"));
        }
        _ => {}
    }
    if tool != Tool::Consumer && *posts > 0 {
        text.push_str(&format!("  Posting: received {posts}, reflected {reflected_posts}\n"));
    }
    let moments = Moments::of(generics);
    if counts.generics_sent > 0 || counts.generics_received > 0 {
        text.push_str(&format!(
            "  GenMsgs: sent {}, received {}, latencies sent {}, latencies received {}\n",
            counts.generics_sent, counts.generics_received, counts.stamped_generics, moments.count
        ));
    }
    text.push_str(&value_line("  GenMsgLat(usec)", &moments));
    for (name, recorder) in [("  Encode time (usec)", encoding), ("  Decode time (usec)", decoding)] {
        text.push_str(&fine_line(name, &Moments::of_recorder(recorder)));
    }
    text.push_str(&faults(&[
        (counts.held_back, "slices held back: the connection took nothing more"),
        (counts.dropped_posts, "posts dropped: too many waited to go back"),
        (counts.statuses, "statuses received"),
        (counts.suspect_images, "suspect images received"),
        (counts.malformed, "messages could not be read"),
    ]));
    text
}

/// A line for each count that is not 0.
pub(super) fn faults(counts: &[(u64, &str)]) -> String {
    let there = counts.iter().filter(|(count, _)| *count > 0);
    there.map(|(count, what)| format!("  - {count} {what}\n")).collect()
}

/// A line of moments, if there are any.
fn value_line(name: &str, moments: &Moments) -> String {
    line(name, moments, 6, 1, 0)
}

/// The same with three decimals.
pub(super) fn fine_line(name: &str, moments: &Moments) -> String {
    line(name, moments, 8, 3, 3)
}

/// `places`: decimals of the mean and the deviation, `of_extremes`: those of the extremes.
fn line(name: &str, moments: &Moments, width: usize, places: usize, of_extremes: usize) -> String {
    let Moments { count, mean, deviation, max, min } = moments;
    if *count == 0 {
        return String::new();
    }
    let centre = format!("Avg:{mean:width$.places$} StdDev:{deviation:width$.places$}");
    format!("{name}: {centre} Max:{max:width$.of_extremes$} Min:{min:width$.of_extremes$}, Msgs: {count}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::omm::tally::{Kind, Terms, Timed};

    /// An interval with samples of every kind, and its end.
    fn sample() -> (Tally, IntervalEnd) {
        let mut tally = Tally::new(Terms::default());
        let times = [
            (Kind::Update, 50_000),
            (Kind::Update, 70_000),
            (Kind::Post, 1_418_000),
            (Kind::Generic, 90_000),
        ];
        for (kind, ns) in times {
            tally.time(Timed { kind, sent: 1_000, due: None, received: 1_000 + ns });
        }
        tally.encoding.record(812);
        tally.decoding.record(1_530);
        tally.counts = Counts {
            requests: 40,
            images: 39,
            suspect_images: 1,
            statuses: 2,
            updates: 500_000,
            stamped_updates: 50,
            posts: 100,
            stamped_posts: 10,
            reflected_posts: 99,
            dropped_posts: 1,
            generics_sent: 30,
            stamped_generics: 3,
            generics_received: 20,
            malformed: 4,
            held_back: 5,
            messages_due: 1_000_001,
            messages_sent: 1_000_000,
            stamped_messages: 60,
            bytes_sent: 104_857_600,
            bytes_received: 52_428_800,
            lost: 6,
            out_of_order: 7,
            ..Counts::default()
        };
        let mut interval = Tally::new(Terms::default());
        interval.add(&tally);
        let moment = IntervalEnd {
            utc: Nanos(1_622_639_247_999_999_999),
            second: 5,
            seconds: 5,
            sample: Sample { cpu_percent: 97.493, memory_bytes: 354_638_889 },
            verdict: Verdict::Pass,
        };
        (interval, moment)
    }

    #[test]
    fn rows_have_the_guide_s_columns_first() {
        let (interval, moment) = sample();
        let expected = [
            (
                Tool::Consumer,
                "2021-06-02 13:07:27, 2, 60.0, 14.1, 70.0, 50.0, 39, 100000, 1, 1418.0, 0.0, 1418.0, 1418.0, \
                 30, 20, 3, 1, 90.0, 0.0, 90.0, 90.0, 97.49, 338.21, , , , , , , , , , , 2, 0, PASS",
            ),
            (
                Tool::Provider,
                "2021-06-02 13:07:27, 40, 39, 500000, 99, 30, 20, 3, 1, 90.0, 0.0, 90.0, 90.0, 97.49, 338.21, \
                 , , , , , , , , , , 1, 0, PASS",
            ),
            (
                Tool::NiProvider,
                "2021-06-02 13:07:27, 39, 500000, 97.49, 338.21, , , , , , , , , , , 1, 0, PASS",
            ),
            (
                Tool::Transport,
                "2021-06-02 13:07:27, 1000000, 104857600, 500000, 52428800, 2, 60.000, 14.142, 70.000, 50.000, \
                 97.49, 338.21, , , , , , , , , , , 2, 0, PASS",
            ),
        ];
        for (tool, text) in expected {
            let row = row(tool, &interval, &moment);
            assert_eq!(row, text);
            assert_eq!(row.split(", ").count(), header(tool).split(", ").count());
        }
    }

    #[test]
    fn the_console_shows_what_there_is() {
        let (interval, moment) = sample();
        let rest = "  GenMsgs: sent 30, received 20, latencies sent 3, latencies received 1
  GenMsgLat(usec): Avg:  90.0 StdDev:   0.0 Max:    90 Min:    90, Msgs: 1
  Encode time (usec): Avg:   0.812 StdDev:   0.000 Max:   0.812 Min:   0.812, Msgs: 1
  Decode time (usec): Avg:   1.530 StdDev:   0.000 Max:   1.530 Min:   1.530, Msgs: 1
  - 5 slices held back: the connection took nothing more
  - 1 posts dropped: too many waited to go back
  - 2 statuses received
  - 1 suspect images received
  - 4 messages could not be read
";
        let consumer = "005: Images:     39, Posts:    100, UpdRate:   100000, CPU:  97.49%, Mem: 338.21MB
  Latency(usec): Avg:  60.0 StdDev:  14.1 Max:    70 Min:    50, Msgs: 2
  PostLat(usec): Avg:1418.0 StdDev:   0.0 Max:  1418 Min:  1418, Msgs: 1
";
        let provider = "005: Thread 2:
  UpdRate:   100000, CPU:  97.49%, Mem: 338.21MB
  - Received 40 item requests (total: 140), sent 39 images (total: 139)
  Posting: received 100, reflected 99
";
        let shown = |tool, thread| console(tool, thread, &interval, &moment, (140, 139));
        assert_eq!(shown(Tool::Consumer, None), format!("{consumer}{rest}"));
        assert_eq!(shown(Tool::Provider, Some(2)), format!("{provider}{rest}"));
        let transport = "005: Thread 2:
  Sent: MsgRate:   200000, DataRate:  20.000MBps
  Recv: MsgRate:   100000, DataRate:  10.000MBps
  Latency (usec): Avg:  60.000 StdDev:  14.142 Max:  70.000 Min:  50.000, Msgs: 2
  - 5 slices held back: the connection took nothing more
  - 6 messages lost
  - 7 messages out of order
  - 4 messages could not be read
  CPU:  97.49% Mem:   338.21MB
";
        assert_eq!(shown(Tool::Transport, Some(2)), transport);
        let quiet = console(Tool::NiProvider, None, &Tally::new(Terms::default()), &moment, (0, 0));
        assert_eq!(quiet, "005: UpdRate:        0, CPU:  97.49%, Mem: 338.21MB\n");
    }
}
