//! The targets of the ring, each with what was measured.

use crate::case::{Metric, Regime};
use crate::record::Record;
use crate::results::{Results, Spread};
use crate::systems::HIGHEST_PACE_HZ;

/// One target.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub(crate) target: String,
    pub(crate) measured: String,
    /// `None`: not measured, or the machine does not allow it.
    pub(crate) met: Option<bool>,
}

/// Our rings that stand for the targets; the best of them is taken and named.
const OURS: [&str; 2] = ["ring", "ring-lines"];
const OURS_LARGE: [&str; 2] = ["ring-64m", "ring-lines-64m"];
const BACKLOG_32: Metric = Metric::Throughput { bytes: 32, regime: Regime::Backlog };
const CONTENDED_32: Metric = Metric::Throughput { bytes: 32, regime: Regime::Contended };
/// Rates at which latency has a target.
const RATES_HZ: [u64; 3] = [250_000, 1_000_000, 10_000_000];
/// A message is not late within this.
const ON_TIME_NS: u64 = 1_000;

/// All targets.
pub(crate) fn verdicts(record: &Record) -> Vec<Verdict> {
    let results = Results(&record.figures);
    let mut verdicts = Vec::new();
    for rate_hz in RATES_HZ {
        latency(record, rate_hz, &mut verdicts);
    }
    let times = |target: f64, ours: &[&str], peer: &str, what: &str| {
        let ratio = |ours: &str| results.ratio((ours, BACKLOG_32), (peer, BACKLOG_32));
        Verdict::at_least(
            &format!("32 B, backlog: at least {target} × {what}"),
            best(ours, ratio, true),
            target,
        )
    };
    verdicts.extend([
        times(4.0, &OURS, "aeron", "Aeron"),
        times(2.5, &OURS_LARGE, "aeron", "Aeron with our ring at 64 MiB"),
        times(4.0, &OURS, "boost", "boost, push and pop"),
        times(1.0, &OURS, "disruptor", "disruptor"),
        times(0.8, &OURS, "boost-batch", "boost, push and consume_all"),
        times(2.0, &OURS, "rtrb", "rtrb, push and pop"),
        times(0.8, &OURS, "rtrb-batch", "rtrb, push and chunks"),
    ]);
    let contended = |ours: &str| results.ratio((ours, CONTENDED_32), ("aeron", CONTENDED_32));
    verdicts.push(Verdict::at_least("32 B, contended: at least Aeron's", best(&OURS, contended, true), 1.0));
    let long = Metric::Throughput { bytes: 1500, regime: Regime::Backlog };
    // A copy through memory that the sender's own cache holds, and one through more, which comes from the cache that both cores
    // share: a ring is as fast as where its bytes are.
    for (ours, limit, what) in [
        (&OURS[..], "copy-512k", "copying through 512 KiB"),
        (&["ring-8m"], "copy-8m", "copying through 8 MiB, with our ring at 8 MiB"),
    ] {
        let share = best(ours, |ours| results.ratio((ours, long), (limit, long)), true);
        verdicts.push(Verdict::at_least(&format!("1500 B: at least 0.85 × {what}"), share, 0.85));
    }
    verdicts.push(pace(results));
    for receivers in [2, 3] {
        verdicts.push(fan_out(record, receivers));
    }
    verdicts.push(loss(record));
    verdicts
}

impl Verdict {
    fn at_least(target: &str, found: Option<(&str, Spread)>, least: f64) -> Self {
        Self::judged(target, found, |spread| spread.median >= least)
    }

    fn judged(target: &str, found: Option<(&str, Spread)>, is_met: impl Fn(Spread) -> bool) -> Self {
        Self {
            target: target.to_owned(),
            measured: found.map_or_else(|| "not measured".to_owned(), |(who, s)| format!("{s} ({who})")),
            met: found.map(|(_, spread)| is_met(spread)),
        }
    }

    /// `met`, `NOT MET`, or a dash.
    pub(crate) fn word(&self) -> &'static str {
        match self.met {
            Some(true) => "met",
            Some(false) => "NOT MET",
            None => "–",
        }
    }
}

/// The best by median of what several systems of ours give.
fn best<'a>(
    ours: &[&'a str],
    of: impl Fn(&str) -> Option<Spread>,
    largest: bool,
) -> Option<(&'a str, Spread)> {
    let found = ours.iter().filter_map(|name| Some((*name, of(name)?)));
    let order = |a: &(&str, Spread), b: &(&str, Spread)| a.1.median.total_cmp(&b.1.median);
    if largest { found.max_by(order) } else { found.min_by(order) }
}

fn latency(record: &Record, rate_hz: u64, verdicts: &mut Vec<Verdict>) {
    let results = Results(&record.figures);
    let metric = Metric::Latency { rate_hz };
    let step_ns = record.clock_step_ns;
    let p50 = |system: &str| results.latency(system, metric, |latency| latency.p50_ns);
    let limit = p50("line").map_or(0.0, |limit| limit.median);
    let ratio = |ours: &str| results.ratio((ours, metric), ("line", metric));
    let is_near = |spread: Spread| spread.median <= 1.1 || (spread.median - 1.0) * limit <= step_ns;
    let target = format!("{metric}: p50 at most 1.1 × the limit");
    verdicts.push(Verdict::judged(&target, best(&OURS, ratio, false), is_near));

    let aeron = p50("aeron").map_or(0.0, |aeron| aeron.median);
    let ratio = |ours: &str| results.ratio((ours, metric), ("aeron", metric));
    let is_below = |spread: Spread| (spread.median - 1.0) * aeron <= step_ns.max(1.0);
    let target = format!("{metric}: p50 not above Aeron's");
    verdicts.push(Verdict::judged(&target, best(&OURS, ratio, false), is_below));

    let p99 = |system: &str| results.latency(system, metric, |latency| latency.p99_ns);
    let peers = record
        .systems
        .iter()
        .filter(|system| !["ring", "limits", "promises"].contains(&system.peer.as_str()));
    let peer = peers
        .filter_map(|system| Some((system.name.as_str(), p99(&system.name)?)))
        .min_by(|a, b| a.1.median.total_cmp(&b.1.median));
    let target = format!("{metric}: p99 no worse than the best peer's");
    verdicts.push(match (best(&OURS, p99, false), peer) {
        (Some((who, ours)), Some((peer, theirs))) => Verdict {
            target,
            measured: format!("{ours} ns ({who}), {theirs} ns ({peer})"),
            met: Some(ours.median <= theirs.median + step_ns.max(1.0)),
        },
        _ => Verdict { target, measured: "not measured".to_owned(), met: None },
    });
}

fn pace(results: Results<'_>) -> Verdict {
    let metric = Metric::Latency { rate_hz: HIGHEST_PACE_HZ };
    let late =
        |ours: &str| Spread::of(results.done(ours, metric).map(|(_, sent, _)| sent.late_p50_ns as f64));
    let found = best(&OURS, late, false);
    let grew = |who: &str| results.done(who, metric).filter(|(_, sent, _)| sent.late_grows).count();
    Verdict {
        target: "32 B, 40 million/s on a schedule: no lateness".to_owned(),
        measured: found.map_or_else(
            || "not measured".to_owned(),
            |(who, late)| format!("p50 {late} ns late ({who}), grew in {} turns", grew(who)),
        ),
        met: found.map(|(who, late)| late.median <= ON_TIME_NS as f64 && grew(who) == 0),
    }
}

fn fan_out(record: &Record, receivers: usize) -> Verdict {
    let results = Results(&record.figures);
    let metric = Metric::FanOut { receivers };
    let ratio = |ours: &str| results.ratio((ours, metric), (ours, BACKLOG_32));
    let target = format!("32 B to {receivers} receivers: at least 0.7 × to one");
    let mut verdict = Verdict::at_least(&target, best(&OURS, ratio, true), 0.7);
    if record.cores_usable <= receivers {
        // One core cannot read what two would have: nothing that can be failed.
        verdict.measured += ", receivers share one core";
        verdict.met = verdict.met.filter(|met| *met);
    }
    verdict
}

fn loss(record: &Record) -> Verdict {
    let results = Results(&record.figures);
    let ours = record.systems.iter().filter(|system| system.peer == "ring");
    let (mut wrong, mut failed, mut any) = (0, 0, false);
    for system in ours {
        let faults = results.faults(&system.name);
        wrong += faults.0;
        failed += faults.1.len();
        any = true;
    }
    Verdict {
        target: "messages lost, by sequence and content: none".to_owned(),
        measured: format!("{wrong} lost, disordered or torn, {failed} measurements failed"),
        met: any.then_some(wrong == 0 && failed == 0),
    }
}
