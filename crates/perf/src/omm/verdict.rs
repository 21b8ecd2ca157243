//! The verdict on a run, and the line that gives its reasons.

use tapeline_measure::{Evidence, Lateness, Rank, Trend, Verdict, figures, judge};

use super::bursts::Served;
use super::collect::{Rates, Run, Tool};
use super::stamp::Unit;
use super::sums::{Figures, Sums};
use super::tally::{Counts, Terms, Times, Trends};

/// Why a run is no result.
#[derive(Debug)]
pub(super) struct Failure {
    /// The word for it, where something came or went.
    pub(super) verdict: Verdict,
    pub(super) error: anyhow::Error,
    /// The user would not wait for what is missing, which is no error.
    pub(super) is_of_user: bool,
}

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
        // What the connection took is not the sender's fault, whether or not it went out.
        sent += counts.messages_sent + counts.unsent;
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

/// What is lost of a time in microseconds, by which two readings of one clock differ at most.
const CLOCK_ERROR_NS: i64 = 1_000;

/// How many times of how many cannot be, where that is most of one kind: below nothing, or longer than the run has gone on for
/// so many seconds (a second at least), as all that is timed is sent after it began. They are of another clock, or in another unit.
fn impossible(threads: &[&Sums], seconds: f64) -> Option<(u64, u64)> {
    let longest_ns = (seconds.max(1.0) * 1e9) as u64;
    let kinds: [fn(&Sums) -> &Times; 3] = [|sums| &sums.steady, |sums| &sums.posts, |sums| &sums.generics];
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

/// What is said of times that cannot be.
fn misfit(run: &Run<'_>, wrong: u64, all: u64) -> String {
    let other = match (run.tool, run.unit) {
        (Tool::Transport, _) => "has the other end another machine's clock?",
        (_, Unit::Micros) => "has the other end --nano-time, or another machine's clock?",
        (_, Unit::Nanos) => "is the other end without --nano-time, or has it another machine's clock?",
    };
    format!(
        "the times of messages do not fit this clock: {} of {} latencies are below nothing or longer than the run; {other}",
        figures::thousands(wrong),
        figures::thousands(all),
    )
}

/// The verdict on a run that goes on, after so many seconds.
pub(super) fn so_far(run: &Run<'_>, terms: Terms, threads: &[&Sums], seconds: f64) -> Verdict {
    match impossible(threads, seconds) {
        Some(_) => Verdict::NoResult,
        None => judge(&evidence(run, terms, threads, seconds)).0,
    }
}

/// The verdict after so many seconds, and why: [`judge`]'s, then what a run that passes has to admit.
pub(super) fn of(
    run: &Run<'_>,
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
    if evidence.sent == 0 && all.counts.messages_due == 0 {
        return (Verdict::NoResult, NOBODY.to_owned());
    }
    if let Some((wrong, of)) = impossible(&[all], seconds) {
        return (Verdict::NoResult, misfit(run, wrong, of));
    }
    let (mut verdict, mut why) = judge(&evidence);
    if matches!(verdict, Verdict::Pass | Verdict::Noisy)
        && let Some(omission) = omission(run.tool, &run.rates, &all.counts)
    {
        (verdict, why) = (Verdict::GeneratorLimited, omission);
    } else if verdict == Verdict::Pass {
        why = passes(&messages(run.tool, &all.counts, &evidence), times, &evidence, p99);
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

/// What this end was asked to do and did not do at all, or did to a part of what asked for it: no rate shows that, as there is none
/// of what never began.
fn omission(tool: Tool, rates: &Rates, counts: &Counts) -> Option<String> {
    let mut omitted = Vec::new();
    if tool == Tool::Provider {
        let answered = counts.images + counts.suspect_images + counts.statuses;
        if answered < counts.requests {
            let (answered, requests) = (figures::thousands(answered), figures::thousands(counts.requests));
            omitted.push(format!("{answered} of {requests} requests were answered"));
        }
        if rates.updates > 0 && counts.updates == 0 {
            omitted.push(none_of("updates", rates.updates, "no consumer had an item open to be updated"));
        }
    }
    if tool == Tool::Consumer && rates.posts > 0 && counts.posts == 0 {
        omitted.push(none_of(
            "posts",
            rates.posts,
            "the provider takes none (SupportOMMPost), or no item of the list does",
        ));
    }
    if matches!(tool, Tool::Consumer | Tool::Provider) && rates.generics > 0 && counts.generics_sent == 0 {
        omitted.push(none_of(
            "generic messages",
            rates.generics,
            "no item of the list takes them, or none was open",
        ));
    }
    (!omitted.is_empty()).then(|| omitted.join("; "))
}

/// Nothing was sent of what was asked for at a rate.
fn none_of(what: &str, rate: u64, why: &str) -> String {
    format!("none of the {} {what}/s that were asked for was sent: {why}", figures::thousands(rate))
}

/// How many messages a run had: of the transport, whose ends both send and receive, each way by itself.
fn messages(tool: Tool, counts: &Counts, evidence: &Evidence) -> String {
    let [sent, received] = [counts.messages_sent, counts.updates].map(figures::thousands);
    match tool {
        Tool::Transport if counts.updates == 0 => format!("{sent} messages sent"),
        Tool::Transport if counts.messages_sent == 0 => format!("{received} messages received"),
        Tool::Transport => format!("{sent} messages sent and {received} received"),
        _ => format!("{} messages", figures::thousands(evidence.received)),
    }
}

/// Why a run passes: without a word on loss, of which one end alone cannot tell.
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

/// Why there was nothing to measure, if no error says it.
const NOBODY: &str = "nothing was due, sent or received: nobody was connected, or nobody had an item open";

/// Said of times from other makers' tools, and with `--no-due`.
const ONLY_SERVICE: &str = "; service time only: the sender does not say when messages were due (TIM_TRK_4), so its own stalls do not show";

/// The same of messages without a meaning.
const NOTHING_DUE: &str =
    "; service time only: messages do not say when they were due, so the sender's own stalls do not show";

/// The verdict on a run that failed: where nothing came or went, there was none, whatever the failure.
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
        // Half of them, what one clock can show, and what a run that is long enough can.
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
        // A full socket: the way took longer until it was full, and the sender got later from then on.
        let full = Trend { at_start_ns: 50_000, at_end_ns: 80_000_000, ..Trend::default() };
        assert!(system(full, grown(0, 2_000_000_000)).grows);
        assert!(!system(steady, grown(0, 2_000_000_000)).grows, "its own fault");
        assert!(!system(full, Trend::default()).grows);
        assert!(system(grown(0, 1_000_000), Trend::default()).grows);
    }
}
