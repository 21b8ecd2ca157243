//! Evaluates the rounds of a burst and writes the result: for people, for programs, and into the run folder.

use std::fmt::Write as _;
use std::io::Write as _;

use serde::Serialize;
use tapeline_console::output;
use tapeline_console::paths;
use tapeline_measure::{Environment, Nanos, Percentiles, Rank, Recorder, Verdict, figures};
use tapeline_wire::pool::MAX_SLOTS;

use super::floor::Floor;
use super::plan::{At, BurstPlan, Pool, roomy};
use super::round::BurstOutcome;
use crate::plot::{Curve, Curves, Scale};
use crate::run_folder::RunFolder;
use crate::spread::Spread;

/// The layout of `run.json`. It is incremented when a field changes its meaning or is removed.
pub(super) const LAYOUT: u32 = 2;
/// A feeder whose median lateness before the hold exceeds this does not send the requested load.
const LATE_NS: u64 = 2_000_000;

impl Spread<u64> {
    fn durations(&self) -> String {
        format!("{} ({})", figures::duration(self.median), self.range())
    }

    fn range(&self) -> String {
        format!("{} to {}", figures::duration(self.least), figures::duration(self.most))
    }
}

/// One pool over all rounds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct BurstSummary {
    pub(super) pool: Pool,
    /// The drain, over the rounds that drained.
    pub(super) drain_ns: Option<Spread<u64>>,
    /// Number of rounds that did not drain before the give-up time.
    pub(super) not_drained: usize,
    pub(super) peak_backlog: u64,
    pub(super) steady_backlog: u64,
    pub(super) hits: u64,
    pub(super) misses: u64,
    pub(super) exhaustions: u64,
    pub(super) dropped: u64,
    pub(super) high_water: u64,
    pub(super) kernel_drops: u64,
    pub(super) lost_messages: u64,
    /// Latency from due to decoded of live messages, over all rounds: before the hold, and between release and
    /// drain.
    pub(super) before: Percentiles,
    pub(super) meanwhile: Percentiles,
    /// Ratio of the median drain to that of the first pool.
    pub(super) to_first: Option<f64>,
    /// Ratio of the median drain to bare sending and receiving; only if the feeder withheld the datagrams.
    pub(super) to_bare: Option<f64>,
    pub(super) rounds: Vec<BurstOutcome>,
}

impl BurstSummary {
    /// The pools, each beside the first one and, if the feeder withheld the datagrams, beside bare sending.
    pub(super) fn all(
        plan: &BurstPlan,
        pools: &[Pool],
        mut outcomes: Vec<BurstOutcome>,
        bare_ns: Option<Spread<u64>>,
    ) -> Vec<Self> {
        let of =
            |pool: &Pool| Self::of(*pool, outcomes.extract_if(.., |round| round.pool == *pool).collect());
        let mut pools: Vec<Self> = pools.iter().map(of).collect();
        let bare = bare_ns.filter(|_| plan.at == At::Sender).map(|bare| bare.median);
        let first = pools.first().and_then(|pool| pool.drain_ns).map(|drain| drain.median);
        for pool in &mut pools {
            let own = pool.drain_ns.map(|drain| drain.median);
            let beside = |other: Option<u64>| other.zip(own).map(|(of, own)| own as f64 / of.max(1) as f64);
            (pool.to_first, pool.to_bare) = (beside(first), beside(bare));
        }
        pools
    }

    fn of(pool: Pool, rounds: Vec<BurstOutcome>) -> Self {
        let sum = |of: fn(&BurstOutcome) -> u64| rounds.iter().map(of).sum();
        let most = |of: fn(&BurstOutcome) -> u64| rounds.iter().map(of).max().unwrap_or(0);
        Self {
            pool,
            drain_ns: Spread::of(rounds.iter().filter_map(|round| round.drain_ns), u64::cmp, u64::midpoint),
            not_drained: rounds.iter().filter(|round| round.drain_ns.is_none()).count(),
            peak_backlog: most(|round| round.peak_backlog),
            steady_backlog: most(|round| round.steady_backlog),
            hits: sum(|round| round.hits),
            misses: sum(|round| round.misses),
            exhaustions: sum(|round| round.exhaustions),
            dropped: sum(|round| round.dropped),
            high_water: most(|round| round.high_water),
            kernel_drops: sum(|round| round.kernel_drops),
            lost_messages: sum(|round| round.lost_messages),
            before: merged(&rounds, |round| &round.recorders.before).percentiles(),
            meanwhile: merged(&rounds, |round| &round.recorders.meanwhile).percentiles(),
            to_first: None,
            to_bare: None,
            rounds,
        }
    }

    /// The round with the median drain, or the first round.
    fn typical(&self) -> Option<&BurstOutcome> {
        let mut drained: Vec<&BurstOutcome> =
            self.rounds.iter().filter(|round| round.drain_ns.is_some()).collect();
        drained.sort_by_key(|round| round.drain_ns);
        drained.get(drained.len() / 2).copied().or(self.rounds.first())
    }
}

/// Everything about a run: the contents of `run.json`, and of the printed summary.
#[derive(Clone, Debug, Serialize)]
pub(super) struct BurstReport {
    pub(super) layout: u32,
    pub(super) kind: &'static str,
    pub(super) started: Nanos,
    pub(super) started_utc: String,
    pub(super) settings: serde_json::Value,
    pub(super) verdict: Verdict,
    pub(super) why: String,
    /// Limits that were too small, each with how to raise it.
    pub(super) advice: Vec<String>,
    pub(super) pools: Vec<BurstSummary>,
    pub(super) floor: Floor,
    /// Bare sending and receiving of the withheld datagrams, measured between the rounds.
    pub(super) bare_ns: Option<Spread<u64>>,
    /// The jitter floor of the cores at the 99th percentile, measured before the rounds.
    pub(super) jitter_floor_p99_ns: u64,
    pub(super) environment: Environment,
    #[serde(skip)]
    pub(super) plan: BurstPlan,
}

impl BurstReport {
    /// The summary for people.
    pub(super) fn summary(&self, folder: &RunFolder) -> String {
        let mut text = format!("{}: {}\n", output::painted(self.verdict), self.why);
        for line in &self.advice {
            let _ = writeln!(text, "hint: {line}");
        }
        let BurstPlan { hold, rate_hz, stream, .. } = &self.plan;
        let rounds = self.pools.first().map_or(0, |pool| pool.rounds.len());
        let _ = writeln!(
            text,
            "\n{} datagrams withheld {}, {} of {} B each; live feed {}; {rounds} rounds{}\n\n{}",
            figures::thousands(*hold),
            match self.plan.at {
                At::Socket => "in the receiving thread",
                At::Sender => "at the sender",
            },
            plural(stream.messages, "message"),
            stream.datagram_bytes(),
            output::rate(*rate_hz as f64, "msgs"),
            if self.pools.len() > 1 { ", the pools in turn" } else { "" },
            self.table(),
        );
        let Floor { line_ns, decode_ns, decode_hz, line_rate_bits, bytes, messages, .. } = self.floor;
        let mut fact = |name: &str, value: String| _ = writeln!(text, "{name:<15}{value}");
        fact(
            "floor, line",
            format!(
                "{} for {} bytes and what is around them at {}",
                figures::duration(line_ns),
                figures::thousands(bytes),
                figures::quantity(line_rate_bits as f64, "bit/s", false)
            ),
        );
        fact(
            "floor, decode",
            format!(
                "{} for {} messages at {}, in memory",
                figures::duration(decode_ns),
                figures::thousands(messages),
                output::rate(decode_hz, "msgs")
            ),
        );
        if let Some(bare) = self.bare_ns {
            let ratios = self.ratios_to_bare();
            let each = bare.median as f64 / *hold as f64 / 1_000.0;
            fact(
                "floor, bare",
                format!("{} to send and receive them, {each:.2} µs each{ratios}", bare.durations()),
            );
        }
        fact(
            "jitter floor",
            format!("{} at p99, all cores, idle", figures::duration(self.jitter_floor_p99_ns)),
        );
        let _ =
            write!(text, "{}\n\nrun folder   {}", self.environment.summary(), paths::shown(folder.path()));
        text
    }

    fn table(&self) -> String {
        let headings = "pool, drain, least to most, ratio, peak, slots, misses, exhausted, dropped, kernel drops, lost, \
                        live p50, p99, max, before: p50, p99";
        let mut table = output::table(headings.split(", "));
        for pool in &self.pools {
            let count = figures::thousands;
            table.add_row([
                pool.pool.name(),
                pool.drain_ns.map_or_else(|| "never".to_owned(), |drain| figures::duration(drain.median)),
                pool.drain_ns.map_or_else(|| "–".to_owned(), |drain| drain.range()),
                ratio(pool),
                count(pool.peak_backlog),
                count(pool.high_water),
                count(pool.misses),
                count(pool.exhaustions),
                count(pool.dropped),
                count(pool.kernel_drops),
                count(pool.lost_messages),
                at(&pool.meanwhile, Rank::MEDIAN),
                at(&pool.meanwhile, Rank::P99),
                at(&pool.meanwhile, Rank::Max),
                at(&pool.before, Rank::MEDIAN),
                at(&pool.before, Rank::P99),
            ]);
        }
        format!(
            "{table}\n\n\
             drain: median of the rounds, from the release until the backlog is at its steady level; ratio: beside the \
             first pool;\npeak: datagrams due and not decoded; slots: the most that held datagrams; live: from due to \
             decoded, while it drained\n"
        )
    }

    /// Writes everything into the run folder.
    pub(super) fn write(&self, folder: &RunFolder) -> anyhow::Result<()> {
        let json = output::json(self)?;
        folder.write("run.json", |out| writeln!(out, "{json}"))?;
        folder.write_summary(&self.summary(folder))?;
        folder.write("table.md", |out| write!(out, "{}", self.markdown()))?;
        folder.write("rounds.csv", |out| {
            writeln!(
                out,
                "pool,round,drain_ns,held,steady_backlog,peak_backlog,hits,misses,exhaustions,dropped,high_water,\
                 kernel_drops,sent_messages,lost_messages,live_p50_ns,live_p99_ns,live_max_ns"
            )?;
            for round in self.rounds() {
                let at = |rank| round.meanwhile.at(rank).map_or_else(String::new, |ns| ns.to_string());
                writeln!(
                    out,
                    "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                    round.pool.name(),
                    round.round,
                    round.drain_ns.map_or_else(String::new, |ns| ns.to_string()),
                    round.held,
                    round.steady_backlog,
                    round.peak_backlog,
                    round.hits,
                    round.misses,
                    round.exhaustions,
                    round.dropped,
                    round.high_water,
                    round.kernel_drops,
                    round.sent_messages,
                    round.lost_messages,
                    at(Rank::MEDIAN),
                    at(Rank::P99),
                    at(Rank::Max)
                )?;
            }
            Ok(())
        })?;
        folder.write("backlog.csv", |out| {
            writeln!(out, "pool,round,since_release_ns,backlog_datagrams")?;
            for round in self.rounds() {
                for (ns, backlog) in &round.backlog {
                    writeln!(out, "{},{},{ns},{backlog}", round.pool.name(), round.round)?;
                }
            }
            Ok(())
        })?;
        let meanwhile = |pool: &BurstSummary| merged(&pool.rounds, |round| &round.recorders.meanwhile);
        let hops: Vec<(String, Recorder)> =
            self.pools.iter().map(|pool| (pool.pool.name(), meanwhile(pool))).collect();
        let named: Vec<_> = hops.iter().map(|(name, recorder)| (name.as_str(), recorder)).collect();
        let rounds = self.rounds().count() as u32;
        folder.write_latency(self.started, self.plan.duration() * rounds.max(1), &named)?;
        let svg = self.plot().svg();
        folder.write("backlog.svg", |out| out.write_all(svg.as_bytes()))
    }

    /// The pools and the floors, for a page.
    fn markdown(&self) -> String {
        let mut text = String::from(
            "| pool | drain | beside the first | peak backlog | pool misses | kernel drops | lost | live p50 | live p99 |\n\
             |---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
        );
        for pool in &self.pools {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                pool.pool.name(),
                match (pool.drain_ns, pool.not_drained) {
                    (Some(drain), 0) => drain.durations(),
                    (_, rounds) =>
                        format!("not within {:.0} s in {rounds} rounds", self.plan.give_up.as_secs_f64()),
                },
                ratio(pool),
                figures::thousands(pool.peak_backlog),
                figures::thousands(pool.misses),
                figures::thousands(pool.kernel_drops),
                figures::thousands(pool.lost_messages),
                at(&pool.meanwhile, Rank::MEDIAN),
                at(&pool.meanwhile, Rank::P99),
            );
        }
        let line = figures::duration(self.floor.line_ns);
        let rate = figures::quantity(self.floor.line_rate_bits as f64, "bit/s", false);
        let decode = figures::duration(self.floor.decode_ns);
        let _ = write!(text, "\nFloors: {line} on a line of {rate}, {decode} to decode in memory");
        if let Some(bare) = self.bare_ns {
            let ratios = self.ratios_to_bare();
            let _ = write!(text, ", {} to send and receive and nothing else{ratios}", bare.durations());
        }
        let verdict = self.verdict;
        let _ = writeln!(text, ".\n\n{verdict}: {}.", self.why);
        text
    }

    /// The ratios of the pools' drains to bare sending and receiving, as the end of a sentence.
    fn ratios_to_bare(&self) -> String {
        let ratio =
            |pool: &BurstSummary| pool.to_bare.map(|ratio| format!("{} {ratio:.2}", pool.pool.name()));
        let ratios: Vec<String> = self.pools.iter().filter_map(ratio).collect();
        if ratios.is_empty() { String::new() } else { format!("; drains beside that: {}", ratios.join(", ")) }
    }

    fn rounds(&self) -> impl Iterator<Item = &BurstOutcome> {
        self.pools.iter().flat_map(|pool| &pool.rounds)
    }

    /// Backlog over time, for the round with the median drain of each pool.
    fn plot(&self) -> Curves {
        let curve = |(number, pool): (usize, &BurstSummary)| {
            let round = pool.typical()?;
            let drain = round.drain_ns.map_or_else(|| "never".to_owned(), figures::duration);
            let points = round.backlog.iter().map(|(ns, backlog)| (*ns as f64 / 1e6, *backlog as f64));
            Some(Curve {
                name: format!("{}: {drain}", pool.pool.name()),
                points: points.collect(),
                colour: number,
                dashed: false,
            })
        };
        let held = match self.plan.at {
            At::Socket => "behind the socket",
            At::Sender => "at the sender",
        };
        Curves {
            title: format!(
                "{} datagrams held {held}, live feed {}",
                figures::thousands(self.plan.hold),
                output::rate(self.plan.rate_hz as f64, "msgs")
            ),
            x_title: "milliseconds since the release".to_owned(),
            y_title: "backlog, datagrams".to_owned(),
            across: Scale::Linear,
            up: Scale::Linear,
            reference: None,
            curves: self.pools.iter().enumerate().filter_map(curve).collect(),
        }
    }
}

fn merged(rounds: &[BurstOutcome], of: fn(&BurstOutcome) -> &Recorder) -> Recorder {
    let mut all = Recorder::new();
    rounds.iter().for_each(|round| all.merge(of(round)));
    all
}

fn at(latency: &Percentiles, rank: Rank) -> String {
    output::latency(latency.at(rank))
}

fn ratio(pool: &BurstSummary) -> String {
    pool.to_first.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}"))
}

fn plural(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{} {what}s", figures::thousands(count)) }
}

/// The verdict on the first pool, which is the one under test; a loss in any pool counts.
pub(super) fn judge(plan: &BurstPlan, pools: &[BurstSummary]) -> (Verdict, String) {
    let Some(first) = pools.first() else {
        return (Verdict::GeneratorLimited, "nothing was measured".to_owned());
    };
    let mut rounds = pools.iter().flat_map(|pool| &pool.rounds);
    let lost: u64 = pools.iter().map(|pool| pool.lost_messages).sum();
    if lost > 0 {
        let sent: u64 = rounds.map(|round| round.sent_messages).sum();
        let why = format!("{} of {} messages lost", figures::thousands(lost), figures::thousands(sent));
        return (Verdict::Lossy, why);
    }
    let is_wrong =
        |round: &&BurstOutcome| !round.books_are_right || round.malformed > 0 || round.repeated_messages > 0;
    if let Some(round) = rounds.find(is_wrong) {
        let why = format!(
            "{}, round {}: {} messages came twice or late, {} could not be read, the books are {}",
            round.pool.name(),
            round.round,
            round.repeated_messages,
            round.malformed,
            if round.books_are_right { "right" } else { "wrong" }
        );
        return (Verdict::Lossy, why);
    }
    let late = first.rounds.iter().filter_map(|round| round.sender_lateness.at(Rank::MEDIAN)).max();
    if let Some(late) = late.filter(|late| *late > LATE_NS) {
        let why =
            format!("the feeder was {} late in the median before anything was held", figures::duration(late));
        return (Verdict::GeneratorLimited, why);
    }
    let give_up = figures::duration(u64::try_from(plan.give_up.as_nanos()).unwrap_or(u64::MAX));
    let Some(drain) = first.drain_ns.filter(|_| first.not_drained == 0) else {
        let (failed, all) = (first.not_drained, first.rounds.len());
        let why = format!("{failed} of {all} rounds had not drained {give_up} after the release");
        return (Verdict::Overload, why);
    };
    let held = first.rounds.iter().map(|round| round.held).min().unwrap_or(0);
    if let Some(why) = shortfall(plan, held, first.exhaustions) {
        return (Verdict::Overload, why);
    }
    let absorbed = format!("{} held datagrams absorbed in {}", figures::thousands(held), drain.durations());
    if drain.most - drain.least > drain.median {
        let why = format!("{absorbed}: the rounds lie further apart than half of them take");
        return (Verdict::Noisy, why);
    }
    let misses = match first.misses {
        0 => "no pool miss".to_owned(),
        _ if first.pool == Pool::Malloc => "all from the heap".to_owned(),
        1 => "1 pool miss".to_owned(),
        misses => format!("{} pool misses", figures::thousands(misses)),
    };
    (Verdict::Pass, format!("{absorbed}; nothing lost, {misses}, no kernel drop"))
}

/// Why an absorbed burst was not the requested one: fewer datagrams were withheld, or the pool ran out of slots
/// and datagrams had to wait elsewhere.
fn shortfall(plan: &BurstPlan, held: u64, exhaustions: u64) -> Option<String> {
    let fewer = (held < plan.hold).then(|| {
        let (held, asked) = (figures::thousands(held), figures::thousands(plan.hold));
        format!("no more than {held} of {asked} datagrams could be withheld")
    });
    let exhausted = (exhaustions > 0).then(|| {
        let slots = plural(plan.slots as u64, "slot");
        let times = plural(exhaustions, "time");
        format!("`--slots` too small, the pool's {slots} ran out {times}")
    });
    match (fewer, exhausted) {
        (Some(fewer), Some(exhausted)) => Some(format!("{fewer}: {exhausted}")),
        (fewer, exhausted) => fewer.or(exhausted),
    }
}

/// The buffers that were too small, each with how to raise it.
pub(super) fn advice(plan: &BurstPlan, pools: &[BurstSummary]) -> Vec<String> {
    let rounds = || pools.iter().flat_map(|pool| &pool.rounds);
    let mut advice = Vec::new();
    let kernel_drops: u64 = rounds().map(|round| round.kernel_drops).sum();
    let dropped: u64 = rounds().map(|round| round.dropped).sum();
    let lost: u64 = rounds().map(|round| round.lost_messages).sum();
    let given = rounds().map(|round| round.receive_buffer).min().unwrap_or(0);
    // The minimum that the kernel charges for a datagram, doubled for the datagrams that arrive meanwhile.
    let wanted = (plan.hold as usize * 2 * 1_280).max(2 * given).next_power_of_two();
    if kernel_drops > 0 {
        advice.push(format!(
            "the socket's receive buffer of {given} bytes was too small, the kernel dropped {}: \
             `--receive-buffer {wanted}`{}",
            figures::thousands(kernel_drops),
            if given < plan.receive_buffer {
                format!(", after `sysctl -w net.core.rmem_max={wanted}`")
            } else {
                String::new()
            }
        ));
    } else if given < plan.receive_buffer {
        advice.push(format!(
            "the kernel gave a receive buffer of {given} bytes where {} were asked for; \
             `sysctl -w net.core.rmem_max={}` lets it give more",
            plan.receive_buffer, plan.receive_buffer
        ));
    }
    if pools.iter().any(|pool| pool.exhaustions > 0) {
        let more = (2 * plan.slots).max(roomy(plan.hold) as usize).min(MAX_SLOTS).next_power_of_two();
        advice
            .push(format!("a pool of {} was too small: `--slots {more}`", plural(plan.slots as u64, "slot")));
    }
    if lost > 0 && kernel_drops == 0 && dropped == 0 {
        advice.push(
            "what was lost reached no socket: raise `sysctl net.core.netdev_max_backlog`, the queue before it".to_owned(),
        );
    }
    advice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_that_was_not_the_one_asked_for_falls_short() {
        let plan = BurstPlan { slots: 1, hold: 100, ..BurstPlan::of_tests(100_000, 1) };
        let why = |held, exhaustions| shortfall(&plan, held, exhaustions);
        assert_eq!(why(100, 0), None);
        assert_eq!(why(99, 0).unwrap(), "no more than 99 of 100 datagrams could be withheld");
        let exhausted = "`--slots` too small, the pool's 1 slot ran out 2,000 times";
        assert_eq!(why(100, 2_000).unwrap(), exhausted);
        assert_eq!(
            why(1, 2_000).unwrap(),
            format!("no more than 1 of 100 datagrams could be withheld: {exhausted}")
        );
    }
}
