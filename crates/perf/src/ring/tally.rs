//! The results of `ring sub`: sequence checks, latency, throughput, a verdict.

use serde::Serialize;
use tapeline_console::output;
use tapeline_measure::{
    Clock, Evidence, Lateness, Nanos, Percentiles, Rank, Recorder, Ticks, Verdict, figures, judge,
    ticks_ordered,
};

use super::message::{Message, Note, Stamps};
use super::warm_up::WarmUp;

/// What one subscriber found beside messages in order, as JSON.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Found {
    /// Messages missing by sequence.
    lost: u64,
    gaps: u64,
    /// Sequences below the expected one.
    backwards: u64,
    /// Frames that `ring pub` did not write; they are counted but not measured.
    foreign: u64,
    /// Frames before the measured time, not included in any other count.
    warm_up_messages: u64,
    /// Messages whose bytes differ from those sent; checked with --verify only.
    damaged: u64,
    /// Frames that the publisher overwrote before they were read, as a broadcast ring counts them.
    pub(super) passed: u64,
    /// Whether the publisher evicted this subscriber.
    pub(super) evicted: bool,
    /// Number of times that every available frame had been read: if messages divided by this is near one, both
    /// sides touch the same cache lines all the time.
    caught_up: u64,
}

/// Counts and distributions of one subscriber.
#[derive(Debug, Default)]
pub(super) struct ReaderTally {
    /// Frames of all kinds.
    pub(super) frames: u64,
    bytes: u64,
    pub(super) found: Found,
    /// Whether the first frames are still being discarded, and until when, if the limit is a time.
    discarding: bool,
    discard_until: Option<Nanos>,
    /// The first and the last sequence that [`count`](Self::count) has counted.
    counted: Option<(u64, u64)>,
    /// The next expected sequence, once one is known.
    next: Option<u64>,
    /// From due to received, and from sent to received.
    response: Recorder,
    service: Recorder,
    sender_lateness: Option<Lateness>,
    system_lateness: Option<Lateness>,
    /// When the first frame arrived, and by when the last one had arrived.
    first: Option<Nanos>,
    last: Nanos,
    interval: Interval,
    wanted: Wanted,
    /// Whether messages have a schedule. Without one, messages are due when they are sent, and the ring is full on
    /// purpose, so its latency is its length.
    paced: bool,
}

/// What to check and measure: each item costs some nanoseconds per message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wanted {
    /// Latencies, which need a clock reading.
    pub(super) latency: bool,
    /// One line each second.
    pub(super) intervals: bool,
    /// Whether every byte is checked.
    pub(super) bytes: bool,
    /// The first messages to discard.
    pub(super) warm_up: WarmUp,
}

/// Counts since the last interval line.
#[derive(Debug, Default)]
struct Interval {
    since: Nanos,
    frames: u64,
    bytes: u64,
    service: Recorder,
}

impl ReaderTally {
    pub(super) fn new(wanted: Wanted) -> Self {
        Self { discarding: !wanted.warm_up.is_none(), wanted, paced: true, ..Self::default() }
    }

    /// Takes one frame, received at `received` or now: `true` if it counts, `false` if it belongs to a warm-up.
    #[inline]
    pub(super) fn take(&mut self, frame: &[u8], received: Option<Ticks>, clock: &Clock) -> bool {
        // Read the clock first: this is the moment of arrival.
        let stamp = self.wanted.latency.then(|| received.unwrap_or_else(ticks_ordered));
        let message = Message::read(frame);
        if self.discarding || message.is_some_and(|message| message.warm_up) {
            self.discard(message);
            return false;
        }
        if self.frames == 0 {
            self.start(clock.now());
        }
        self.frames += 1;
        self.bytes += frame.len() as u64;
        let Some(message) = message else {
            self.found.foreign += 1;
            return true;
        };
        if self.next != Some(message.sequence) {
            self.leap(message.sequence);
        }
        self.next = Some(message.sequence + 1);
        if self.wanted.bytes && !message.is_intact(frame) {
            self.found.damaged += 1;
        }
        if let (Some(stamp), Some(stamps)) = (stamp, message.stamps) {
            self.measure(stamps, clock.at(stamp));
        }
        true
    }

    /// Only counts a frame. Gaps between the first and the last frame are found at the end.
    #[inline]
    pub(super) fn count(&mut self, frame: &[u8], clock: &Clock) -> bool {
        let Some(message) = Message::read(frame) else {
            if self.frames == 0 {
                self.start(clock.now());
            }
            self.frames += 1;
            self.bytes += frame.len() as u64;
            self.found.foreign += 1;
            return true;
        };
        if self.discarding || message.warm_up {
            self.discard(Some(message));
            return false;
        }
        match &mut self.counted {
            Some((_, last)) => *last = message.sequence,
            None => {
                self.counted = Some((message.sequence, message.sequence));
                self.start(clock.now());
            }
        }
        self.frames += 1;
        self.bytes += frame.len() as u64;
        true
    }

    #[cold]
    fn discard(&mut self, message: Option<Message>) {
        self.found.warm_up_messages += 1;
        self.next = message.map(|message| message.sequence + 1).or(self.next);
        if let WarmUp::Messages(messages) = self.wanted.warm_up {
            self.discarding &= self.found.warm_up_messages < messages;
        }
    }

    /// Starts the measured time.
    #[cold]
    fn start(&mut self, now: Nanos) {
        if self.first.is_none() {
            self.first = Some(now);
            self.last = now;
            self.interval.since = now;
        }
    }

    /// Whether the publisher evicted this subscriber, or overwrote unread frames.
    pub(super) fn is_lossy(&self) -> bool {
        self.found.evicted || self.found.passed > 0
    }

    /// Every available frame has been read.
    #[inline]
    pub(super) fn caught_up(&mut self) {
        if self.frames > 0 {
            self.found.caught_up += 1;
        }
    }

    #[inline]
    fn measure(&mut self, Stamps { due, sent }: Stamps, received: Nanos) {
        let service_ns = received.since(sent);
        self.service.record(service_ns);
        if self.paced {
            self.response.record(received.since(due));
            self.sender_lateness.get_or_insert_with(|| Lateness::new(sent)).record(sent, sent.since(due));
            self.system_lateness.get_or_insert_with(|| Lateness::new(sent)).record(received, service_ns);
        }
        if self.wanted.intervals {
            self.interval.service.record(service_ns);
        }
    }

    #[cold]
    fn leap(&mut self, sequence: u64) {
        let Some(expected) = self.next else { return };
        if sequence > expected {
            self.found.gaps += 1;
            self.found.lost += sequence - expected;
        } else {
            self.found.backwards += 1;
        }
    }

    /// The first frame of a publisher arrived now; `paced` if the publisher has a schedule.
    pub(super) fn begin(&mut self, now: Nanos, paced: bool) {
        self.paced = paced;
        if let WarmUp::Time(time) = self.wanted.warm_up {
            let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            self.discard_until.get_or_insert(Nanos(now.0.saturating_add(time)));
        }
    }

    /// All frames taken so far had arrived by now.
    pub(super) fn seen(&mut self, now: Nanos) {
        self.last = now;
        if self.discard_until.is_some_and(|until| now >= until) {
            self.discarding = false;
        }
    }

    /// A line of figures since the last line; starts the next interval.
    pub(super) fn interval_line(&mut self, now: Nanos) -> String {
        let interval = &mut self.interval;
        let seconds = now.since(interval.since).max(1) as f64 / 1e9;
        let frames = (self.frames - interval.frames) as f64 / seconds;
        let bytes = (self.bytes - interval.bytes) as f64 / seconds;
        let mut line = format!("{}   {}", output::byte_rate(bytes), output::rate(frames, "msgs"));
        for (title, quantile) in [("p50", 0.5), ("p99", 0.99), ("max", 1.0)] {
            if let Some(ns) = interval.service.value_at(quantile) {
                line.push_str(&format!("   {title} {}", figures::duration(ns)));
            }
        }
        (interval.since, interval.frames, interval.bytes) = (now, self.frames, self.bytes);
        interval.service.clear();
        line
    }

    /// The result; `note` is the publisher's note, if the publisher is a `ring pub`.
    pub(super) fn summary(mut self, note: Option<Note>) -> SubscribeSummary {
        if let Some((first, last)) = self.counted {
            let there = self.frames - self.found.foreign;
            let sent = last.saturating_sub(first) + 1;
            self.found.lost += sent.saturating_sub(there);
            self.found.gaps += u64::from(sent > there);
            self.found.backwards += there.saturating_sub(sent);
        }
        let seconds = self.first.map_or(0.0, |first| self.last.since(first).max(0) as f64 / 1e9);
        let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        let (response, service) = (self.response.percentiles(), self.service.percentiles());
        let measured = self.frames - self.found.foreign;
        let verdict = (measured > 0).then(|| {
            let sent = measured + self.found.lost;
            judge(&Evidence {
                asked_rate_hz: note.map(|note| note.rate_hz).filter(|rate| *rate > 0).map(|rate| rate as f64),
                sent_rate_hz: per_second(sent),
                sent,
                received: measured,
                lost: self.found.lost,
                sender: self.sender_lateness.as_ref().map(Lateness::trend).unwrap_or_default(),
                system: self.system_lateness.as_ref().map(Lateness::trend).unwrap_or_default(),
                held_back_share: note.map_or(0.0, |note| note.held_back_share),
                ..Evidence::default()
            })
        });
        let (mut verdict, mut why) = verdict.unzip();
        let Found { damaged, evicted, passed, lost, .. } = self.found;
        let loss = if damaged > 0 {
            let (damaged, measured) = (figures::thousands(damaged), figures::thousands(measured));
            Some(format!("{damaged} of {measured} messages have other bytes than were sent"))
        } else if evicted {
            Some("evicted: it held the full ring for longer than the stall limit".to_owned())
        } else if lost == 0 && passed > 0 {
            // Foreign frames have no sequence; the ring's count is all there is.
            Some(format!("{} frames lost: the publisher passed by", figures::thousands(passed)))
        } else {
            None
        };
        if loss.is_some() {
            (verdict, why) = (Some(Verdict::Lossy), loss);
        }
        SubscribeSummary {
            verdict,
            why,
            messages: self.frames,
            bytes: self.bytes,
            seconds,
            messages_per_second: per_second(self.frames),
            bytes_per_second: per_second(self.bytes),
            found: self.found,
            refused: note.map_or(0, |note| note.refused),
            topic: note.and_then(|note| note.topic.text()),
            held_back_share: note.map(|note| note.held_back_share),
            response: (response.samples > 0).then_some(response),
            service: (service.samples > 0).then_some(service),
        }
    }
}

/// The result, as JSON.
#[derive(Debug, Serialize)]
pub(super) struct SubscribeSummary {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) verdict: Option<Verdict>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    messages: u64,
    bytes: u64,
    /// From the first message to the last.
    seconds: f64,
    messages_per_second: f64,
    bytes_per_second: f64,
    #[serde(flatten)]
    found: Found,
    /// Messages that the publisher did not send because the ring was full.
    refused: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<String>,
    /// The share of the publisher's time in which the ring was full.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_back_share: Option<f64>,
    /// From due to received; paced messages only.
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<Percentiles>,
    /// From sent to received.
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<Percentiles>,
}

impl SubscribeSummary {
    /// The result as text; with `latency`, includes the percentile table.
    pub(super) fn text(&self, latency: bool) -> String {
        let mut lines = Vec::new();
        if let (Some(verdict), Some(why)) = (self.verdict, &self.why) {
            lines.push(format!("verdict      {}   {why}", output::painted(verdict)));
        }
        lines.push(format!(
            "throughput   {}   {}",
            output::byte_rate(self.bytes_per_second),
            output::rate(self.messages_per_second, "msgs")
        ));
        lines.push(format!(
            "received     {} messages in {:.1} s",
            figures::thousands(self.messages),
            self.seconds
        ));
        if self.messages > self.found.foreign {
            let mut line = format!("lost         {}", figures::thousands(self.found.lost));
            if self.found.gaps > 0 {
                line.push_str(&format!(" in {} gaps", figures::thousands(self.found.gaps)));
            }
            if self.found.backwards > 0 {
                line.push_str(&format!(
                    ", {} sequences ran backwards",
                    figures::thousands(self.found.backwards)
                ));
            }
            lines.push(line);
        }
        if self.found.foreign > 0 {
            let count = figures::thousands(self.found.foreign);
            lines.push(format!("other        {count} frames that `ring pub` has not made, not measured"));
        }
        let mut count = |count: u64, what: &str| {
            if count > 0 {
                lines.push(what.replace('#', &figures::thousands(count)));
            }
        };
        count(
            self.found.passed,
            "passed       # frames by the ring's own count: the publisher does not wait",
        );
        count(self.found.damaged, "damaged      # messages have other bytes than were sent");
        count(self.found.warm_up_messages, "warm-up      # messages before, not measured");
        count(
            self.refused.into(),
            "refused      # messages were not sent: the ring was full, and the publisher does not wait",
        );
        if let Some(share) = self.held_back_share.filter(|share| *share >= 0.001) {
            lines.push(format!(
                "held back    the publisher waited for room {:.1} % of the time",
                share * 100.0
            ));
        }
        if latency {
            let columns: Vec<(&str, &Percentiles)> =
                [("due→received", &self.response), ("sent→received", &self.service)]
                    .into_iter()
                    .filter_map(|(title, column)| column.as_ref().map(|column| (title, column)))
                    .filter(|(_, column)| column.at(Rank::Max).is_some())
                    .collect();
            if !columns.is_empty() {
                lines.push(String::new());
                lines.push(output::percentile_table(&columns));
            }
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Wanted = Wanted { latency: true, intervals: true, bytes: true, warm_up: WarmUp::Messages(0) };

    fn written(message: Message) -> Vec<u8> {
        let mut frame = vec![0; 32];
        message.write(&mut frame);
        frame
    }

    fn frame(sequence: u64, stamps: Option<Stamps>) -> Vec<u8> {
        written(Message { sequence, stamps, warm_up: false, filled: true })
    }

    #[test]
    fn what_is_missing_is_counted_once() {
        let clock = Clock::calibrate();
        let mut tally = ReaderTally::new(Wanted { latency: false, ..ALL });
        for sequence in [7, 8, 9, 12, 13, 13, 14] {
            tally.take(&frame(sequence, None), None, &clock);
        }
        tally.take(b"something else", None, &clock);
        let summary = tally.summary(None);
        assert_eq!((summary.messages, summary.found.foreign), (8, 1));
        assert_eq!((summary.found.lost, summary.found.gaps, summary.found.backwards), (2, 1, 1));
        assert_eq!(summary.verdict, Some(Verdict::Lossy));
        assert!(summary.text(true).contains("lost         2 in 1 gaps"), "{}", summary.text(true));
    }

    #[test]
    fn latency_counts_from_due_and_from_sent() {
        let clock = Clock::calibrate();
        let mut tally = ReaderTally::new(ALL);
        for sequence in 0..100 {
            let now = clock.now().0;
            let stamps = Stamps { due: Nanos(now - 2_000_000), sent: Nanos(now - 1_000_000) };
            tally.take(&frame(sequence, Some(stamps)), None, &clock);
        }
        let summary = tally.summary(None);
        let median = |column: &Option<Percentiles>| column.as_ref().and_then(|c| c.at(Rank::MEDIAN)).unwrap();
        assert!(median(&summary.service) >= 1_000_000 && median(&summary.response) >= 2_000_000);
        assert_eq!(summary.found.lost, 0);
    }

    #[test]
    fn other_publishers_frames_have_no_verdict() {
        let mut tally = ReaderTally::new(ALL);
        tally.take(&[0; 64], None, &Clock::calibrate());
        let summary = tally.summary(None);
        assert_eq!(summary.verdict, None);
        assert!(!summary.text(true).contains("lost"));
    }
    #[test]
    fn a_warm_up_is_counted_and_not_measured() {
        let clock = Clock::calibrate();
        let warm = |sequence| written(Message { sequence, stamps: None, warm_up: true, filled: true });
        let wanted = Wanted { warm_up: WarmUp::Messages(3), ..ALL };
        let (mut tally, mut counter) = (ReaderTally::new(wanted), ReaderTally::new(wanted));
        for frame in (0..2).map(warm).chain((2..10).map(|sequence| frame(sequence, None))) {
            assert_eq!(tally.take(&frame, None, &clock), counter.count(&frame, &clock));
        }
        for summary in [tally.summary(None), counter.summary(None)] {
            assert_eq!((summary.found.warm_up_messages, summary.messages, summary.found.lost), (3, 7, 0));
        }
    }

    #[test]
    fn counting_alone_shows_what_is_missing() {
        let clock = Clock::calibrate();
        let mut tally = ReaderTally::new(ALL);
        for sequence in [5, 6, 9] {
            assert!(tally.count(&frame(sequence, None), &clock));
        }
        let summary = tally.summary(None);
        assert_eq!((summary.messages, summary.found.lost, summary.verdict), (3, 2, Some(Verdict::Lossy)));
    }

    #[test]
    fn other_bytes_than_were_sent_are_a_loss() {
        let mut tally = ReaderTally::new(ALL);
        let mut wrong = frame(1, None);
        wrong[31] ^= 1;
        tally.take(&wrong, None, &Clock::calibrate());
        let summary = tally.summary(None);
        assert_eq!((summary.found.damaged, summary.verdict), (1, Some(Verdict::Lossy)));
    }
}
