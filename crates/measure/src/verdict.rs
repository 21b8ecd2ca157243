//! The verdict on a run, with its reason.

use std::fmt;

use serde::Serialize;

use crate::figures::{duration, quantity, signed_duration, thousands};
use crate::lateness::Trend;
use crate::percentiles::{Percentiles, Rank};

/// The verdict on a run, in order of precedence: the first that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
#[non_exhaustive]
pub enum Verdict {
    /// There was no run to judge: the load never started, a connection was lost, or the two ends' times do not match.
    NoResult,
    /// Messages were lost.
    Lossy,
    /// The measured system could not keep up: its lateness grows, or it held the sender back.
    Overload,
    /// The sender did not produce the requested load although nothing held it back: the result does not describe that
    /// load.
    GeneratorLimited,
    /// The machine's own jitter accounts for half or more of the 99th percentile: the tail describes the machine.
    Noisy,
    /// None of these.
    Pass,
}

impl Verdict {
    /// Returns the verdict's word, for people and for JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Overload => "OVERLOAD",
            Self::NoResult => "NO-RESULT",
            Self::Lossy => "LOSSY",
            Self::GeneratorLimited => "GENERATOR-LIMITED",
            Self::Noisy => "NOISY",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// The input of [`judge`]. Leave fields that a run does not have at their `Default`.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The requested rate in messages a second; `None` for "as fast as it goes", which no sender can fall short of.
    pub asked_rate_hz: Option<f64>,
    /// The rate at which messages were sent over the measured time, in messages a second.
    pub sent_rate_hz: f64,
    /// Number of messages sent. Include or exclude the warm-up in this and the next two fields alike.
    pub sent: u64,
    /// Number of messages that arrived (at the subscriber that got the fewest).
    pub received: u64,
    /// Number of messages known to be lost, by sequence.
    pub lost: u64,
    /// The sender's lateness: actual send time less due time.
    pub sender: Trend,
    /// The measured system's lateness: arrival less actual send time (service time), without the sender's own lateness.
    pub system: Trend,
    /// The share of the sender's time, 0 to 1, in which the system accepted nothing more (a full ring or socket). Tells
    /// whether the sender or the system caused a late send.
    pub held_back_share: f64,
    /// The percentiles that represent the run: usually end-to-end latency.
    pub result: Option<Percentiles>,
    /// The jitter floor of the cores in the path at the 99th percentile, in nanoseconds, from
    /// [`floor_ns`](crate::floor_ns).
    pub floor_p99_ns: Option<u64>,
}

/// The sent rate may be below the requested rate by this share.
const SHORTFALL: f64 = 0.01;
/// A sender that was held back for more than this share of its time is late because of the system.
const HELD_BACK: f64 = 0.01;

/// Returns the verdict on a run and one line with its figures. The caller decides that there was no run (`NO-RESULT`).
///
/// * `LOSSY`: `lost > 0`.
/// * `OVERLOAD`: the system's lateness grows (the rule is at [`Lateness::trend`](crate::Lateness::trend)); or the sender's
///   grows, or it sent over 1 % less than asked, while the system held it back for more than 1 % of its time.
/// * `GENERATOR-LIMITED`: the same for a sender that was not held back.
/// * `NOISY`: the jitter floor at the 99th percentile is half or more of the measured 99th percentile.
/// * `PASS`: otherwise. A run that received nothing is `LOSSY` if something was sent, and `GENERATOR-LIMITED` if not.
#[must_use]
pub fn judge(evidence: &Evidence) -> (Verdict, String) {
    let Evidence { sent, received, lost, sender, system, .. } = evidence;
    if *lost > 0 || (*sent > 0 && *received == 0) {
        let missing = if *lost > 0 { *lost } else { *sent };
        let share = 100.0 * missing as f64 / (*sent).max(missing) as f64;
        let (missing, sent) = (thousands(missing), thousands(*sent));
        return (Verdict::Lossy, format!("{missing} of {sent} messages lost ({share:.3} %)"));
    }
    if *sent == 0 {
        return (Verdict::GeneratorLimited, "nothing was sent".to_owned());
    }
    if system.grows {
        return (Verdict::Overload, grows("latency from send to receive", system));
    }
    let short = evidence.asked_rate_hz.filter(|asked| evidence.sent_rate_hz < asked * (1.0 - SHORTFALL));
    let sender_fault = match short {
        Some(asked) => Some(format!(
            "sent {} where {} were asked",
            quantity(evidence.sent_rate_hz, "msgs/s", false),
            quantity(asked, "msgs/s", false)
        )),
        None if sender.grows => Some(grows("the sender's lateness", sender)),
        None => None,
    };
    if let Some(why) = sender_fault {
        let percent = evidence.held_back_share * 100.0;
        if evidence.held_back_share > HELD_BACK {
            let why = format!("{why}; the system held the sender back for {percent:.1} % of the time");
            return (Verdict::Overload, why);
        }
        return (Verdict::GeneratorLimited, format!("{why}, though nothing held the sender back"));
    }
    let p99 = evidence.result.as_ref().and_then(|result| result.at(Rank::P99));
    let floor = match (p99, evidence.floor_p99_ns) {
        (Some(p99), Some(floor)) if p99 > 0 && floor.saturating_mul(2) >= p99 => {
            let why = format!(
                "the machine's own jitter floor at the 99th percentile is {}, and {} was measured: read the \
                 percentiles below it only",
                duration(floor),
                duration(p99)
            );
            return (Verdict::Noisy, why);
        }
        (Some(p99), Some(floor)) => {
            format!(", p99 {} above a jitter floor of {}", duration(p99), duration(floor))
        }
        (Some(p99), None) => format!(", p99 {}", duration(p99)),
        (None, _) => String::new(),
    };
    let why = format!(
        "none of {} messages lost, lateness steady ({} at the start, {} at the end){floor}",
        thousands(*sent),
        signed_duration(system.at_start_ns),
        signed_duration(system.at_end_ns)
    );
    (Verdict::Pass, why)
}

fn grows(what: &str, trend: &Trend) -> String {
    format!(
        "{what} grows, from {} at the start to {} at the end",
        signed_duration(trend.at_start_ns),
        signed_duration(trend.at_end_ns)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::Recorder;

    fn good() -> Evidence {
        let mut recorder = Recorder::new();
        for k in 0..10_000 {
            recorder.record(10_000 + k);
        }
        Evidence {
            asked_rate_hz: Some(100_000.0),
            sent_rate_hz: 99_990.0,
            sent: 1_500_000,
            received: 1_500_000,
            system: Trend { grows: false, at_start_ns: 2_100, at_end_ns: 2_300, most_ns: 900_000 },
            result: Some(recorder.percentiles()),
            floor_p99_ns: Some(2_000),
            ..Evidence::default()
        }
    }

    fn growing() -> Trend {
        Trend { grows: true, at_start_ns: 1_000, at_end_ns: 2_000_000_000, most_ns: 2_000_000_000 }
    }

    #[track_caller]
    fn expect(change: impl FnOnce(&mut Evidence), verdict: Verdict, phrases: &[&str]) {
        let mut evidence = good();
        change(&mut evidence);
        let (found, why) = judge(&evidence);
        assert_eq!(found, verdict, "{why}");
        for phrase in phrases {
            assert!(why.contains(phrase), "{phrase:?} in {why:?}");
        }
    }

    #[test]
    fn each_verdict_has_its_cause_and_figures() {
        use Verdict::{GeneratorLimited, Lossy, Noisy, Overload, Pass};
        expect(|_| (), Pass, &["none of 1,500,000", "2.1 µs", "2.3 µs", "p99 19.9 µs", "2.0 µs"]);
        expect(|e| e.lost = 3, Lossy, &["3 of 1,500,000", "0.000 %"]);
        expect(|e| e.received = 0, Lossy, &["1,500,000 of 1,500,000", "100.000 %"]);
        expect(|e| e.sent = 0, GeneratorLimited, &["nothing was sent"]);
        expect(|e| e.system = growing(), Overload, &["1.0 µs", "2.0 s"]);
        expect(|e| e.sender = growing(), GeneratorLimited, &["the sender's lateness grows"]);
        expect(|e| (e.sender, e.held_back_share) = (growing(), 0.4), Overload, &["40.0 %"]);
        expect(|e| e.sent_rate_hz = 98_900.0, GeneratorLimited, &["98.9 k msgs/s", "100 k msgs/s"]);
        expect(|e| e.sent_rate_hz = 99_100.0, Pass, &[]);
        expect(|e| (e.sent_rate_hz, e.asked_rate_hz) = (1.0, None), Pass, &[]);
        expect(|e| e.floor_p99_ns = Some(9_960), Noisy, &["19.9 µs"]);
        expect(|e| e.floor_p99_ns = None, Pass, &["p99"]);
        expect(|e| e.result = None, Pass, &["steady"]);
    }

    #[test]
    fn loss_outranks_everything_and_overload_outranks_noise() {
        let all = |e: &mut Evidence, lost| {
            (e.system, e.sender, e.floor_p99_ns, e.lost) = (growing(), growing(), Some(u64::MAX), lost);
        };
        expect(|e| all(e, 1), Verdict::Lossy, &[]);
        expect(|e| all(e, 0), Verdict::Overload, &[]);
        assert_eq!(serde_json::to_string(&Verdict::GeneratorLimited).unwrap(), "\"GENERATOR-LIMITED\"");
    }
}
