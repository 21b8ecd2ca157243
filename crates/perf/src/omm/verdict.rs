//! The verdict on a run, and the line that gives its reasons.

use tapeline_measure::{Evidence, Lateness, Rank, Trend, Verdict, figures, judge};

use super::bursts::Served;
use super::collect::{Rates, RunSettings};
use super::stamp::Unit;
use super::sums::{Figures, Sums};
use super::tally::{Counts, Terms, Times, Trends};
use super::tool::Tool;

/// Why a run has no result.
#[derive(Debug)]
pub(super) struct Failure {
    /// The verdict if any messages were sent or received.
    pub(super) verdict: Verdict,
    pub(super) error: anyhow::Error,
    /// The user ended the run before it was complete, which is not an error.
    pub(super) is_of_user: bool,
}

/// The evidence after this many `seconds`.
pub(super) fn evidence(run: &RunSettings<'_>, terms: Terms, threads: &[&Sums], seconds: f64) -> Evidence {
    let mut trends = Trends::new(terms);
    let (mut messages, mut sent_rate_hz, mut active, mut held_back) = (0_u64, 0.0, 0_u64, 0);
    let (mut lost, mut due, mut sent) = (0_u64, 0, 0);
    let mut worst = Served::default();
    for sums in threads {
        let counts = &sums.tally.counts;
        trends.merge(&sums.tally.trends);
        messages += match run.tool {
            Tool::Consumer => counts.images + counts.updates + counts.generics_received,
            Tool::Provider | Tool::NiProvider => counts.images + counts.updates + counts.generics_sent,
            // An end that received nothing cannot detect losses.
            Tool::Transport if counts.updates == 0 => counts.messages_sent,
            Tool::Transport => counts.updates,
        };
        if run.tool == Tool::Transport {
            // An unreadable message counts as lost.
            lost = lost.saturating_add(counts.lost).saturating_add(counts.malformed);
        }
        due += counts.messages_due;
        // Messages that the connection accepted do not count against the sender, whether or not they were sent.
        sent += counts.messages_sent + counts.unsent;
        held_back += counts.held_back;
        worst = worst.worse(sums.tally.worst);
        if let Some(rate) = sums.sent.while_active() {
            sent_rate_hz += rate;
            active += 1;
        }
    }
    let asked = run.rates.posts + run.rates.updates + run.rates.generics;
    let asked_rate_hz = match run.tool {
        // The rate is that of each connection, of any number: the one with the smallest share represents all.
        Tool::Provider if worst.due > 0 => {
            sent_rate_hz = asked as f64 * worst.share();
            Some(asked as f64)
        }
        // Before a connection has ended: at least one connection, once anything was sent.
        Tool::Provider => (active > 0 && asked > 0).then_some(asked as f64),
        // For any number of connections: the sent rate scaled by due over sent.
        Tool::Transport => {
            (active > 0 && sent > 0 && due > 0).then(|| sent_rate_hz * due as f64 / sent as f64)
        }
        // A consumer's threads whose items accept no posts have nothing to send.
        _ => (active > 0 && asked > 0).then_some((asked * active) as f64),
    };
    let slices = seconds * run.tick_rate as f64 * threads.len() as f64;
    Evidence {
        asked_rate_hz,
        sent_rate_hz,
        // One end alone can detect losses between the two only if messages are numbered.
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

/// The trend of transit times. If the sender's lateness grows while the transit time also became longer, the sender
/// is not the cause: the path between is full and accepts only as much as the receiver takes.
fn system(system: Trend, sender: Trend) -> Trend {
    let longer = system.at_end_ns.saturating_sub(system.at_start_ns) > Lateness::MARGIN_NS;
    Trend { grows: system.grows || (sender.grows && longer), ..system }
}

/// Error of a time in microseconds: the maximum difference between two readings of one clock.
const CLOCK_ERROR_NS: i64 = 1_000;

/// Number of impossible times and of all times, if most times of one kind are impossible: negative, or longer than
/// the run (at least one second), in which all timed messages were sent. Their clock or their unit is another.
fn impossible(threads: &[&Sums], seconds: f64) -> Option<(u64, u64)> {
    let longest_ns = (seconds.max(1.0) * 1e9) as u64;
    let kinds: [fn(&Sums) -> &Times; 3] =
        [|sums| &sums.steady, |sums| &sums.tally.posts, |sums| &sums.tally.generics];
    kinds.into_iter().find_map(|kind| {
        let (mut wrong, mut all) = (0_u64, 0_u64);
        for sums in threads {
            let service = &kind(sums).service;
            all += service.samples() + service.negatives();
            wrong += service.count_between(longest_ns, u64::MAX);
            if service.most_negative_ns() < -CLOCK_ERROR_NS {
                wrong += service.negatives();
            }
        }
        (wrong > all / 2).then_some((wrong, all))
    })
}

/// The reason for a verdict on impossible times.
fn misfit(run: &RunSettings<'_>, wrong: u64, all: u64) -> String {
    let other = match (run.tool, run.unit) {
        (Tool::Transport, _) => "has the other end another machine's clock?",
        (_, Unit::Micros) => "has the other end --nano-time, or another machine's clock?",
        (_, Unit::Nanos) => "is the other end without --nano-time, or has it another machine's clock?",
    };
    let [wrong, all] = [wrong, all].map(figures::thousands);
    let wrong = format!("{wrong} of {all} latencies are below nothing or longer than the run");
    format!("the times of messages do not fit this clock: {wrong}; {other}")
}

/// The verdict on a run in progress, after this many `seconds`.
pub(super) fn so_far(run: &RunSettings<'_>, terms: Terms, threads: &[&Sums], seconds: f64) -> Verdict {
    match impossible(threads, seconds) {
        Some(_) => Verdict::NoResult,
        None => judge(&evidence(run, terms, threads, seconds)).0,
    }
}

/// The verdict after this many `seconds`, and its reasons: [`judge`]'s, then the caveats of a run that passes.
pub(super) fn of(
    run: &RunSettings<'_>,
    terms: Terms,
    all: &Sums,
    seconds: f64,
    mut evidence: Evidence,
) -> (Verdict, String) {
    let times = all.main_times();
    let knows_due = times.response.samples() > 0;
    let result = if knows_due { &times.response } else { &times.service }.percentiles();
    let p99 = result.at(Rank::P99);
    evidence.result = Some(result);
    if evidence.sent == 0 && all.tally.counts.messages_due == 0 {
        return (Verdict::NoResult, NOBODY.to_owned());
    }
    if let Some((wrong, of)) = impossible(&[all], seconds) {
        return (Verdict::NoResult, misfit(run, wrong, of));
    }
    let (mut verdict, mut why) = judge(&evidence);
    if matches!(verdict, Verdict::Pass | Verdict::Noisy)
        && let Some(omission) = omission(run.tool, &run.rates, &all.tally.counts)
    {
        (verdict, why) = (Verdict::GeneratorLimited, omission);
    } else if verdict == Verdict::Pass {
        why = passes(&messages(run.tool, &all.tally.counts, &evidence), times, &evidence, p99);
    }
    let late = all.tally.trends.late;
    if late > 0 {
        let what = match run.tool {
            Tool::Consumer => "messages with a time",
            Tool::Provider | Tool::NiProvider => "slices",
            Tool::Transport => "slices and messages with a time",
        };
        let (late, slice) = (figures::thousands(late), figures::duration(terms.slice_ns.unsigned_abs()));
        let worst = figures::signed_duration(evidence.sender.most_ns);
        let began = format!("{late} {what} began later than a slice ({slice}) after they were due");
        why.push_str(&format!("; {began}, the worst {worst} late"));
        if let Some(worst) = times.response.max_ns() {
            why.push_str(&format!("; worst response time {}", figures::duration(worst)));
        }
    }
    if all.tally.worst.due > 0 && run.tool == Tool::Provider && verdict != Verdict::Pass {
        let share = all.tally.worst.share() * 100.0;
        why.push_str(&format!("; the connection that had the least had {share:.1} % of what was due to it"));
    }
    if all.tally.counts.unsent > 0 {
        let unsent = figures::thousands(all.tally.counts.unsent);
        why.push_str(&format!(
            "; {unsent} messages did not go out before the end, and are not counted as sent"
        ));
    }
    if times.service.samples() > 0 && !knows_due {
        why.push_str(if run.tool == Tool::Transport { NOTHING_DUE } else { ONLY_SERVICE });
    }
    (verdict, why)
}

/// Requested work of this end that was not done, or only in part. No rate shows work that never began.
fn omission(tool: Tool, rates: &Rates, counts: &Counts) -> Option<String> {
    let mut omitted = Vec::new();
    let (is_provider, is_consumer) = (tool == Tool::Provider, tool == Tool::Consumer);
    let answered = counts.images + counts.suspect_images + counts.statuses;
    if is_provider && answered < counts.requests {
        let (answered, requests) = (figures::thousands(answered), figures::thousands(counts.requests));
        omitted.push(format!("{answered} of {requests} requests were answered"));
    }
    let no_update = "no consumer had an item open to be updated";
    let no_post = "the provider takes none (SupportOMMPost), or no item of the list does";
    let no_generic = "no item of the list takes them, or none was open";
    for (is_its, what, rate, sent, why) in [
        (is_provider, "updates", rates.updates, counts.updates, no_update),
        (is_consumer, "posts", rates.posts, counts.posts, no_post),
        (is_consumer || is_provider, "generic messages", rates.generics, counts.generics_sent, no_generic),
    ] {
        if is_its && rate > 0 && sent == 0 {
            let rate = figures::thousands(rate);
            omitted.push(format!("none of the {rate} {what}/s that were asked for was sent: {why}"));
        }
    }
    (!omitted.is_empty()).then(|| omitted.join("; "))
}

/// The number of messages of a run; for the transport tool, whose ends both send and receive, per direction.
fn messages(tool: Tool, counts: &Counts, evidence: &Evidence) -> String {
    let [sent, received] = [counts.messages_sent, counts.updates].map(figures::thousands);
    match tool {
        Tool::Transport if counts.updates == 0 => format!("{sent} messages sent"),
        Tool::Transport if counts.messages_sent == 0 => format!("{received} messages received"),
        Tool::Transport => format!("{sent} messages sent and {received} received"),
        _ => format!("{} messages", figures::thousands(evidence.received)),
    }
}

/// The reasons for a pass. They do not mention loss, which one end alone cannot detect.
fn passes(messages: &str, times: &Times, evidence: &Evidence, p99: Option<u64>) -> String {
    let mut why = messages.to_owned();
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

/// Why there was nothing to measure, if no error gives the reason.
const NOBODY: &str = "nothing was due, sent or received: nobody was connected, or nobody had an item open";

/// For times from other vendors' tools, and with `--no-due`.
const ONLY_SERVICE: &str = "; service time only: the sender does not say when messages were due (TIM_TRK_4), so its own stalls do not show";

/// The same for transport messages.
const NOTHING_DUE: &str =
    "; service time only: messages do not say when they were due, so the sender's own stalls do not show";

/// The verdict on a run that failed: NO RESULT if no message was sent or received, whatever the failure.
pub(super) fn of_failure(figures: &Figures, failure: &Failure) -> (Verdict, String) {
    let counts = &figures.counts;
    let nothing = counts.images + counts.updates + counts.messages_sent == 0;
    let verdict = if nothing { Verdict::NoResult } else { failure.verdict };
    (verdict, format!("{:#}", failure.error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::omm::tally::{Kind, Tally, Timed};

    #[test]
    fn times_that_cannot_be_are_those_of_another_clock_or_unit() {
        const HOUR_NS: i64 = 3_600_000_000_000;
        let of = |latencies: &[i64], seconds: f64| {
            let terms = Terms::default();
            let mut tally = Tally::new(terms);
            for ns in latencies {
                let sent = 2 * HOUR_NS.cast_unsigned();
                let received = sent.wrapping_add_signed(*ns);
                tally.time(Timed { kind: Kind::Post, sent, due: None, received });
            }
            let mut sums = Sums::new(Tool::Consumer, terms, 0);
            sums.add(&tally, seconds, seconds, true);
            impossible(&[&sums], seconds)
        };
        assert_eq!(of(&[], 10.0), None);
        assert_eq!(of(&[-HOUR_NS, -HOUR_NS, 50_000], 10.0), Some((2, 3)));
        assert_eq!(of(&[2 * HOUR_NS, 50_000, 11_000_000_000], 10.0), Some((2, 3)));
        // Exactly half of them; errors within one clock's precision; times within the length of the run.
        assert_eq!(of(&[-HOUR_NS, 50_000], 10.0), None);
        assert_eq!(of(&[-900, -1_000], 10.0), None);
        assert_eq!(of(&[900_000_000], 0.1), None);
        assert_eq!(of(&[11_000_000_000], 20.0), None);
    }

    #[test]
    fn what_never_began_is_an_omission() {
        let updates = Rates { updates: 2_000, ..Rates::default() };
        let part = Counts { requests: 500, images: 140, ..Counts::default() };
        assert_eq!(
            omission(Tool::Provider, &updates, &part).unwrap(),
            "140 of 500 requests were answered; none of the 2,000 updates/s that were asked for was sent: no consumer had an item \
             open to be updated"
        );
        let whole = Counts { images: 498, statuses: 2, updates: 1, ..part };
        assert_eq!(omission(Tool::Provider, &updates, &whole), None);
        assert_eq!(omission(Tool::Provider, &Rates::default(), &Counts { updates: 0, ..whole }), None);
        let posts = Rates { posts: 100, generics: 100, ..Rates::default() };
        let why = omission(Tool::Consumer, &posts, &Counts { generics_sent: 1, ..whole }).unwrap();
        assert!(why.starts_with("none of the 100 posts/s that were asked for was sent"), "{why}");
        assert_eq!(omission(Tool::Consumer, &posts, &Counts { posts: 1, generics_sent: 1, ..whole }), None);
    }

    #[test]
    fn the_transport_tells_of_both_directions() {
        let both = Counts { messages_sent: 6_990_000, updates: 699_100, ..Counts::default() };
        assert_eq!(Tool::Transport.carried(&both), 7_689_100);
        for (counts, said) in [
            (both, "6,990,000 messages sent and 699,100 received"),
            (Counts { updates: 0, ..both }, "6,990,000 messages sent"),
            (Counts { messages_sent: 0, ..both }, "699,100 messages received"),
        ] {
            assert_eq!(messages(Tool::Transport, &counts, &Evidence::default()), said);
        }
    }

    #[test]
    fn a_sender_that_is_held_back_by_what_lies_between_is_not_to_blame() {
        let grown = |from, to| Trend { grows: true, at_start_ns: from, at_end_ns: to, most_ns: to };
        let steady = Trend { at_start_ns: 50_000, at_end_ns: 60_000, ..Trend::default() };
        // A full socket: the transit time grew until it was full, and the sender's lateness grew from then on.
        let full = Trend { at_start_ns: 50_000, at_end_ns: 80_000_000, ..Trend::default() };
        assert!(system(full, grown(0, 2_000_000_000)).grows);
        assert!(!system(steady, grown(0, 2_000_000_000)).grows, "its own fault");
        assert!(!system(full, Trend::default()).grows);
        assert!(system(grown(0, 1_000_000), Trend::default()).grows);
    }
}
