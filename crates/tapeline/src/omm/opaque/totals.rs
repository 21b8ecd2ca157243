//! What came, in sequence or not, and what is said of all of it in the end.

use serde_json::{Value as Json, json};
use tapeline_measure::{Evidence, Lateness, Nanos, Recorder, Verdict, judge, monotonic_ns};

use super::message::{self, Said};

/// What one connection received.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heard {
    pub(super) received: u64,
    /// Sequence numbers that were left out, by what came after them.
    pub(super) lost: u64,
    /// Messages whose number had passed already.
    pub(super) out_of_order: u64,
    /// What was none of these messages.
    pub(super) malformed: u64,
    /// The next sequence number.
    expected: u64,
}

impl Heard {
    /// A message, or several packed into one.
    #[inline]
    pub(super) fn take(&mut self, bytes: &[u8], is_json: bool, now: Nanos, totals: &mut Totals) {
        totals.received_bytes += bytes.len() as u64;
        let understood = message::read(bytes, is_json, |Said { sequence, stamp_ns }| {
            self.received += 1;
            if sequence == self.expected {
                self.expected = self.expected.saturating_add(1);
            } else if let Some(hole) = sequence.checked_sub(self.expected) {
                self.lost = self.lost.saturating_add(hole);
                self.expected = sequence.saturating_add(1);
            } else {
                self.out_of_order += 1;
            }
            if stamp_ns > 0 {
                let latency_ns = monotonic_ns().cast_signed().wrapping_sub(stamp_ns.cast_signed());
                totals.latency.record(latency_ns);
                totals.system.record(now, latency_ns);
            }
        });
        self.malformed += u64::from(!understood);
    }
}

/// All connections of a run.
#[derive(Debug)]
pub(super) struct Totals {
    pub(super) connections: u64,
    pub(super) sent: u64,
    pub(super) sent_bytes: u64,
    /// Of connections that are over.
    heard: Heard,
    pub(super) received_bytes: u64,
    /// For how long connections took nothing more, added up.
    pub(super) held_ns: u64,
    /// For how long connections were open, added up.
    open_ns: u64,
    /// Actual send less due, of messages with a stamp.
    pub(super) sender: Lateness,
    /// Arrival less actual send.
    system: Lateness,
    latency: Recorder,
    start: Nanos,
}

impl Totals {
    /// Of a run that begins now.
    pub(super) fn new(start: Nanos) -> Self {
        Self {
            connections: 0,
            sent: 0,
            sent_bytes: 0,
            heard: Heard::default(),
            received_bytes: 0,
            held_ns: 0,
            open_ns: 0,
            sender: Lateness::new(start),
            system: Lateness::new(start),
            latency: Recorder::new(),
            start,
        }
    }

    /// A connection is over that was open for so long.
    pub(super) fn add(&mut self, heard: Heard, open_ns: u64) {
        let all = &mut self.heard;
        all.received += heard.received;
        all.lost = all.lost.saturating_add(heard.lost);
        all.out_of_order += heard.out_of_order;
        all.malformed += heard.malformed;
        self.open_ns += open_ns;
    }

    /// What to say of a run that was over then, for which each connection was asked to send at a rate.
    pub(super) fn report(&self, over: Nanos, asked_hz: Option<u64>) -> Report {
        let seconds = u64::try_from(over.since(self.start)).unwrap_or(0).max(1) as f64 / 1e9;
        let open_seconds = self.open_ns.max(1) as f64 / 1e9;
        let Heard { received, lost, out_of_order, malformed, .. } = self.heard;
        let held_back_share = self.held_ns as f64 / self.open_ns.max(1) as f64;
        let latency = self.latency.percentiles();
        // Who heard nothing cannot say whether anything was lost.
        let verdict = (received > 0).then(|| {
            judge(&Evidence {
                asked_rate_hz: asked_hz.filter(|rate| *rate > 0).map(|rate| rate as f64),
                sent_rate_hz: self.sent as f64 / open_seconds,
                sent: received.saturating_add(lost),
                received,
                lost,
                sender: self.sender.trend(),
                system: self.system.trend(),
                held_back_share,
                result: Some(latency.clone()),
                floor_p99_ns: None,
            })
        });
        let rate = |count: u64| (count as f64 / seconds).round();
        let mut members: Vec<(&'static str, Json)> = vec![
            ("connections", self.connections.into()),
            ("seconds", ((seconds * 1e3).round() / 1e3).into()),
            ("sent", self.sent.into()),
            ("sent_bytes", self.sent_bytes.into()),
            ("sent_per_second", rate(self.sent).into()),
            ("received", received.into()),
            ("received_bytes", self.received_bytes.into()),
            ("received_per_second", rate(received).into()),
            ("lost", lost.into()),
            ("out_of_order", out_of_order.into()),
            ("malformed", malformed.into()),
            ("held_back_share", ((held_back_share * 1e4).round() / 1e4).into()),
        ];
        if let Some((verdict, why)) = &verdict {
            members.extend([("verdict", json!(verdict)), ("why", why.as_str().into())]);
        }
        let is_good = self.connections > 0
            && (lost, out_of_order, malformed) == (0, 0, 0)
            && verdict.is_none_or(|(verdict, _)| verdict != Verdict::Lossy);
        Report { members, latency, is_good }
    }
}

/// A run, told.
pub(super) struct Report {
    pub(super) members: Vec<(&'static str, Json)>,
    pub(super) latency: tapeline_measure::Percentiles,
    /// All that came was in order and whole.
    pub(super) is_good: bool,
}

#[cfg(test)]
mod tests {
    use super::super::message::Template;
    use super::*;

    #[test]
    fn what_is_missing_late_or_strange_is_counted() {
        let mut totals = Totals::new(Nanos(0));
        let mut heard = Heard::default();
        let mut template = Template::new(76, false);
        for sequence in [0, 1, 2, 5, 4, 6] {
            heard.take(template.say(Said { sequence, stamp_ns: 1 }), false, Nanos(1), &mut totals);
        }
        heard.take(b"short", false, Nanos(1), &mut totals);
        let Heard { received, lost, out_of_order, malformed, expected } = heard;
        assert_eq!((received, lost, out_of_order, malformed, expected), (6, 2, 1, 1, 7));
        totals.connections = 1;
        totals.add(heard, 1_000_000_000);
        let report = totals.report(Nanos(1_000_000_000), None);
        assert!(!report.is_good);
        assert!(report.members.contains(&("verdict", "LOSSY".into())), "{:?}", report.members);
        assert_eq!(report.latency.samples, 6);
    }

    #[test]
    fn any_sequence_is_counted() {
        let mut totals = Totals::new(Nanos(0));
        let mut heard = Heard::default();
        let mut template = Template::new(76, false);
        for sequence in [u64::MAX, 0, u64::MAX, u64::MAX - 1] {
            heard.take(template.say(Said { sequence, stamp_ns: u64::MAX }), false, Nanos(1), &mut totals);
        }
        assert_eq!((heard.received, heard.lost, heard.expected), (4, u64::MAX, u64::MAX));
    }
}
