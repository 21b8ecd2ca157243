//! The verdict on a run, and the line that gives its reasons.

use tapeline_measure::{Evidence, Lateness, Rank, Trend, Verdict, figures, judge};

use super::bursts::Served;
use super::collect::{Run, Tool};
use super::sums::{Figures, Sums};
use super::tally::{Terms, Times, Trends};

/// What there is to weigh after so many seconds.
pub(super) fn evidence(run: &Run<'_>, terms: Terms, threads: &[&Sums], seconds: f64) -> Evidence {
    let mut trends = Trends::new(terms);
    let (mut messages, mut sent_rate_hz, mut active, mut held_back) = (0_u64, 0.0, 0_u64, 0);
    let (mut lost, mut due, mut sent) = (0_u64, 0, 0);
    let mut worst = Served::default();
    for sums in threads {
        let counts = &sums.counts;
        trends.merge(&sums.trends);
        messages += match run.tool {
            Tool::Consumer => counts.images + counts.updates + counts.generics_received,
            Tool::Provider | Tool::NiProvider => counts.images + counts.updates + counts.generics_sent,
            // Who received nothing cannot tell what was lost.
            Tool::Transport if counts.updates == 0 => counts.messages_sent,
            Tool::Transport => counts.updates,
        };
        if run.tool == Tool::Transport {
            // What cannot be read did not arrive.
            lost = lost.saturating_add(counts.lost).saturating_add(counts.malformed);
        }
        due += counts.messages_due;
        sent += counts.messages_sent;
        held_back += counts.held_back;
        worst = worst.worse(sums.worst);
        if let Some(rate) = sums.sent.while_active() {
            sent_rate_hz += rate;
            active += 1;
        }
    }
    let asked = run.rates.posts + run.rates.updates + run.rates.generics;
    let asked_rate_hz = match run.tool {
        // How many connections a provider has is for its consumers to say, and the rate is each one's: that which had the
        // least of it speaks for all.
        Tool::Provider if worst.due > 0 => {
            sent_rate_hz = asked as f64 * worst.share();
            Some(asked as f64)
        }
        // Until one of them is over: at least one, once anything was sent.
        Tool::Provider => (active > 0 && asked > 0).then_some(asked as f64),
        // However many connections there are: as much more than was sent as was due.
        Tool::Transport => {
            (active > 0 && sent > 0 && due > 0).then(|| sent_rate_hz * due as f64 / sent as f64)
        }
        // Of a consumer, threads of whose items none takes posts have nothing to send.
        _ => (active > 0 && asked > 0).then_some((asked * active) as f64),
    };
    let slices = seconds * run.tick_rate as f64 * threads.len() as f64;
    Evidence {
        asked_rate_hz,
        sent_rate_hz,
        // One end alone can tell what was lost between them only where messages are numbered.
        sent: messages.saturating_add(lost),
        received: messages,
        lost,
        sender: trends.sender.trend(),
        system: system(trends.system.trend(), trends.sender.trend()),
        held_back_share: if slices > 0.0 { held_back as f64 / slices } else { 0.0 },
        result: None,
        floor_p99_ns: None,
    }
}

/// How the way of messages went on. A sender whose lateness grows while that way, too, became longer is not late by its own
/// fault: what lies between is full, and takes no more than the receiver does.
fn system(system: Trend, sender: Trend) -> Trend {
    let longer = system.at_end_ns.saturating_sub(system.at_start_ns) > Lateness::MARGIN_NS;
    Trend { grows: system.grows || (sender.grows && longer), ..system }
}

/// The verdict, and why: [`judge`]'s, then what a run that passes has to admit.
pub(super) fn of(run: &Run<'_>, terms: Terms, all: &Sums, mut evidence: Evidence) -> (Verdict, String) {
    let times = all.main_times();
    let knows_due = times.response.samples() > 0;
    let result = if knows_due { &times.response } else { &times.service }.percentiles();
    let p99 = result.at(Rank::P99);
    evidence.result = Some(result);
    if evidence.sent == 0 && all.counts.messages_due == 0 {
        return (Verdict::NoResult, NOBODY.to_owned());
    }
    let (verdict, mut why) = judge(&evidence);
    if verdict == Verdict::Pass {
        why = passes(times, &evidence, p99);
    }
    let late = all.trends.late;
    if late > 0 {
        let what = match run.tool {
            Tool::Consumer => "messages with a time",
            Tool::Provider | Tool::NiProvider => "slices",
            Tool::Transport => "slices and messages with a time",
        };
        why.push_str(&format!(
            "; {} {what} began later than a slice ({}) after they were due, the worst {} late",
            figures::thousands(late),
            figures::duration(terms.slice_ns.unsigned_abs()),
            figures::signed_duration(evidence.sender.most_ns),
        ));
        if let Some(worst) = times.response.max_ns() {
            why.push_str(&format!("; worst response time {}", figures::duration(worst)));
        }
    }
    if all.worst.due > 0 && run.tool == Tool::Provider && verdict != Verdict::Pass {
        why.push_str(&format!(
            "; the connection that had the least had {:.1} % of what was due to it",
            all.worst.share() * 100.0
        ));
    }
    if all.counts.unsent > 0 {
        why.push_str(&format!(
            "; {} messages did not go out before the end, and are not counted as sent",
            figures::thousands(all.counts.unsent)
        ));
    }
    if times.service.samples() > 0 && !knows_due {
        why.push_str(if run.tool == Tool::Transport { NOTHING_DUE } else { ONLY_SERVICE });
    }
    (verdict, why)
}

/// Why a run passes: without a word on loss, of which one end alone cannot tell.
fn passes(times: &Times, evidence: &Evidence, p99: Option<u64>) -> String {
    let mut why = format!("{} messages", figures::thousands(evidence.received));
    if times.service.samples() > 0 {
        let [start, end] =
            [evidence.system.at_start_ns, evidence.system.at_end_ns].map(figures::signed_duration);
        why.push_str(&format!(", latency steady ({start} at the start, {end} at the end)"));
    }
    if let Some(p99) = p99 {
        why.push_str(&format!(", p99 {}", figures::duration(p99)));
    }
    if let Some(floor) = evidence.floor_p99_ns {
        why.push_str(&format!(" above a jitter floor of {}", figures::duration(floor)));
    }
    why
}

/// Why there was nothing to measure, if no error says it.
const NOBODY: &str = "nothing was due, sent or received: nobody was connected, or nobody had an item open";

/// Said of times from other makers' tools, and with `--no-due`.
const ONLY_SERVICE: &str = "; service time only: the sender does not say when messages were due (TIM_TRK_4), so its own stalls do not show";

/// The same of messages without a meaning.
const NOTHING_DUE: &str =
    "; service time only: messages do not say when they were due, so the sender's own stalls do not show";

/// The verdict on a run that failed: where nothing came or went, there was none; else some of what was asked came, not all.
pub(super) fn of_failure(figures: &Figures, failure: &anyhow::Error) -> (Verdict, String) {
    let counts = &figures.counts;
    let nothing = counts.images + counts.updates + counts.messages_sent == 0;
    let verdict = if nothing { Verdict::NoResult } else { Verdict::Overload };
    (verdict, format!("{failure:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_that_is_held_back_by_what_lies_between_is_not_to_blame() {
        let grown = |from, to| Trend { grows: true, at_start_ns: from, at_end_ns: to, most_ns: to };
        let steady = Trend { at_start_ns: 50_000, at_end_ns: 60_000, ..Trend::default() };
        // A full socket: the way took longer until it was full, and the sender got later from then on.
        let full = Trend { at_start_ns: 50_000, at_end_ns: 80_000_000, ..Trend::default() };
        assert!(system(full, grown(0, 2_000_000_000)).grows);
        assert!(!system(steady, grown(0, 2_000_000_000)).grows, "its own fault");
        assert!(!system(full, Trend::default()).grows);
        assert!(system(grown(0, 1_000_000), Trend::default()).grows);
    }
}
