//! `tapeline burst`: withholds datagrams under a live feed, releases them at once, and times the recovery.
//!
//! Real sockets on loopback and three threads, as in a plant: one sends on a fixed schedule, one receives into a
//! pool, one decodes (or two threads: the decoder receives). Withheld datagrams are in the receiving thread's
//! slots, or not sent yet. All times come from one clock. The backlog is the number of datagrams that are due by
//! the schedule but not decoded, wherever they are.

mod decoding;
mod feeder;
mod floor;
mod gun;
mod plan;
mod receiving;
mod report;
mod round;
mod stream;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use serde_json::json;
use tapeline_console::arguments;
use tapeline_console::failure::Hinted;
use tapeline_console::output::{self, Format, Progress};
use tapeline_console::paths::{self, FilePath};
use tapeline_console::stop::Stop;
use tapeline_measure::{Clock, Environment, Jitter, Verdict, cores, figures, floor_ns};
use tapeline_wire::pool::MAX_SLOTS;

use self::floor::Floor;
pub(crate) use self::plan::Exhausted;
use self::plan::{At, BurstPlan, Decode, Pool, roomy};
use self::report::{BurstReport, BurstSummary};
use self::round::BurstOutcome;
use self::stream::{MOST_MESSAGES, Stream};
use crate::jitter;
use crate::run_folder::RunFolder;
use crate::spread::Spread;

/// Hold back datagrams of a live feed, release them all at once, and measure the recovery time
#[derive(Debug, Args)]
#[command(after_help = "\
Three threads on loopback sockets: a feeder on a fixed schedule, a receiving thread with a pool of slots, a decoder. \
Datagrams are held back, then released all at once while the feed continues. The drain ends when the backlog (datagrams \
due and not decoded) is back at its steady level. Every message is accounted for by its sequence number.

Examples:
  tapeline burst                                 50,000 datagrams, held in the receiving thread
  tapeline burst --at sender                     the same, held by the feeder and sent at full speed
  tapeline burst --at sender --pool inline       the same, received and decoded by one thread
  tapeline burst --compare                       three kinds of pool in turn, in one run
  tapeline burst --compare --decode none         the same without decoding
  tapeline burst --hold 200k --feed-rate 300k    a larger backlog and a faster feed
  tapeline burst --format json | jq .pools       JSON, for a program")]
pub struct Burst {
    /// Number of datagrams to hold back
    #[arg(long, value_name = "DATAGRAMS", default_value = "50000", value_parser = arguments::rate)]
    hold: u64,
    /// Rate of the live feed, in messages a second
    #[arg(long, value_name = "RATE", default_value = "100k", value_parser = arguments::rate)]
    feed_rate: u64,
    /// Messages in each datagram
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=MOST_MESSAGES))]
    messages_per_datagram: u64,
    /// Where datagrams are held back
    #[arg(long, value_enum, default_value = "socket")]
    at: At,
    /// Where the receiving thread keeps its empty slots
    #[arg(long, value_enum, default_value = "spsc", conflicts_with = "compare")]
    pool: Pool,
    /// Measure spsc, malloc and list-lock in turn, round by round, and inline with --at sender
    #[arg(long)]
    compare: bool,
    /// What the decoder does
    #[arg(long, value_enum, default_value = "full")]
    decode: Decode,
    /// Number of rounds for each pool
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Number of slots in the pool, 2 KiB each [default: the power of two above 1.25 times --hold]
    #[arg(long, value_name = "COUNT", value_parser = arguments::rate)]
    slots: Option<u64>,
    /// What to do when no slot is free
    #[arg(long, value_enum, default_value = "block")]
    policy: Exhausted,
    /// Request huge pages for the slots
    #[arg(long)]
    huge_pages: bool,
    /// Buffer size of the receiving socket
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = arguments::size)]
    receive_buffer: u64,
    /// Send each datagram with its own call, without UDP_SEGMENT, with which the kernel splits one send into datagrams
    #[arg(long)]
    no_segments: bool,
    /// Line rate in bits a second, for the arithmetic floor
    #[arg(long, value_name = "RATE", default_value = "10G", value_parser = arguments::rate)]
    line_rate: u64,
    /// Cores of feeder, receiving thread and decoder, such as 1,2,3 or 0,1,- (a dash means the kernel chooses)
    /// [default: one core for each thread on a machine with at least four cores, otherwise the kernel chooses]
    #[arg(long, value_name = "LIST", value_parser = three_cores)]
    cpus: Option<Cpus>,
    /// Give up a round that has not drained after this time
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = arguments::some_duration)]
    give_up: Duration,
    /// The run folder [default: a new one under runs/]
    #[arg(long, value_name = "PATH")]
    run_folder: Option<FilePath>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Duration of the jitter measurement on the cores.
const JITTER: Duration = Duration::from_millis(300);
/// Limit of cores in the jitter measurement.
const MOST_CORES: usize = 16;
/// A hold that takes longer than this to fill is taken for a typing error.
const LONGEST_HOLD: Duration = Duration::from_secs(600);
/// The fastest live feed, in datagrams a second; a faster one cannot be sent on schedule.
const FASTEST_HZ: u64 = 2_000_000;

/// The cores of the three threads.
type Cpus = [Option<usize>; 3];

/// Parses three cores, each a number or a dash.
fn three_cores(text: &str) -> Result<Cpus, String> {
    let expected = || format!("'{text}' is no list of three cores; write 1,2,3 or 0,1,-");
    let core = |part: &str| match part.trim() {
        "-" => Ok(None),
        number => number.parse().map(Some).map_err(|_| expected()),
    };
    let cores = text.split(',').map(core).collect::<Result<Vec<_>, _>>()?;
    cores.try_into().map_err(|_| expected())
}

/// The default cores of the threads. With four cores or more, the first one is left to interrupts and other
/// programs. With fewer, the kernel chooses: two threads bound to one core of two wait for each other for a
/// millisecond at a time.
fn spread_over(cores: &[usize]) -> Cpus {
    match *cores {
        [_, feeder, receiving, decoding, ..] => [Some(feeder), Some(receiving), Some(decoding)],
        _ => [None; 3],
    }
}

impl Burst {
    /// Runs the tool and returns the process's exit status.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let plan = self.plan()?;
        let stop = Stop::on_signals().context("cannot listen for signals")?;
        let folder = RunFolder::create(self.run_folder.as_deref(), "burst")?;
        let Some(report) = self.measure(&plan, &stop)? else {
            anstream::eprintln!("stopped; nothing was left behind but {}", paths::shown(folder.path()));
            return Ok(ExitCode::from(130));
        };
        report.write(&folder)?;
        match self.format {
            Format::Table => output::print(&report.summary(&folder))?,
            Format::Json => output::print_json(&report)?,
        }
        Ok(if report.verdict == Verdict::Lossy { ExitCode::from(3) } else { ExitCode::SUCCESS })
    }

    fn plan(&self) -> anyhow::Result<BurstPlan> {
        let refused = |what: String, hint: String| Err(Hinted::new(what, hint).into());
        let most = MAX_SLOTS as u64 / 2;
        if self.hold == 0 || self.hold > most {
            let hint = format!("--hold takes 1 to {}", figures::thousands(most));
            return refused(format!("cannot hold {} datagrams back", figures::thousands(self.hold)), hint);
        }
        if self.feed_rate == 0 || self.feed_rate / self.messages_per_datagram > FASTEST_HZ {
            let hint = format!(
                "--feed-rate takes 1 to {} messages a second with {} in a datagram",
                figures::thousands(FASTEST_HZ * self.messages_per_datagram),
                self.messages_per_datagram
            );
            return refused(format!("no live feed at a rate of {}", self.feed_rate), hint);
        }
        if self.pool == Pool::Inline && self.at == At::Socket {
            return refused(
                "without a receiving thread nothing can be held behind the socket".to_owned(),
                "--pool inline goes with --at sender".to_owned(),
            );
        }
        let slots = self.slots.unwrap_or_else(|| roomy(self.hold));
        if slots == 0 || slots > MAX_SLOTS as u64 {
            let hint = format!("--slots takes 1 to {}", figures::thousands(MAX_SLOTS as u64));
            return refused(format!("no pool has {} slots", figures::thousands(slots)), hint);
        }
        if self.line_rate == 0 {
            return refused(
                "no line has a rate of 0".to_owned(),
                "--line-rate takes bits a second, such as 10G".to_owned(),
            );
        }
        let named: Vec<usize> = self.cpus.iter().flatten().flatten().copied().collect();
        jitter::check(&named)?;
        let plan = BurstPlan {
            stream: Stream::new(self.messages_per_datagram),
            rate_hz: self.feed_rate,
            hold: self.hold,
            at: self.at,
            decode: self.decode,
            slots: usize::try_from(slots).unwrap_or(MAX_SLOTS),
            policy: self.policy,
            huge_pages: self.huge_pages,
            receive_buffer: usize::try_from(self.receive_buffer).unwrap_or(usize::MAX),
            segmented: !self.no_segments,
            cpus: self.cpus.unwrap_or_else(|| spread_over(&cores())),
            give_up: self.give_up,
        };
        if plan.duration() > LONGEST_HOLD {
            let what = format!(
                "at {} a second it takes {} until {} datagrams have come",
                figures::thousands(self.feed_rate),
                figures::duration(u64::try_from(plan.duration().as_nanos()).unwrap_or(u64::MAX)),
                figures::thousands(self.hold)
            );
            return refused(what, "raise --feed-rate, or hold fewer".to_owned());
        }
        Ok(plan)
    }

    fn measure(&self, plan: &BurstPlan, stop: &Stop) -> anyhow::Result<Option<BurstReport>> {
        let clock = Clock::calibrate();
        let started = clock.now();
        let pools = if self.compare { Pool::compared(self.at) } else { vec![self.pool] };
        let watched: Vec<usize> = cores().into_iter().take(MOST_CORES).collect();
        let threshold = Duration::from_nanos(Jitter::THRESHOLD_NS);
        let noise = jitter::measure(&watched, JITTER, threshold, &clock, stop)?;
        let floor = Floor::of(plan, self.line_rate);
        let all = self.rounds * pools.len() as u32;
        let seconds = (plan.duration() * all).as_secs_f64();
        if seconds > 5.0 {
            anstream::eprintln!("{all} rounds, about {seconds:.0} s and the drains");
        }
        let mut progress = Progress::counting("burst", "rounds", Some(u64::from(all)));
        let (mut outcomes, mut bare) = (Vec::new(), Vec::new());
        for round in 1..=self.rounds {
            bare.extend(floor::bare(plan, &clock)?);
            for number in 0..pools.len() {
                // Each pool takes each position of the order equally often.
                let pool = pools[(number + round as usize) % pools.len()];
                let Some(outcome) = BurstOutcome::measure(plan, pool, round, &clock, stop)? else {
                    return Ok(None);
                };
                outcomes.push(outcome);
                progress.set(outcomes.len() as u64);
            }
        }
        drop(progress);
        let bare_ns = Spread::of(bare, u64::cmp, u64::midpoint);
        let pools = BurstSummary::all(plan, &pools, outcomes, bare_ns);
        let (verdict, why) = report::judge(plan, &pools);
        Ok(Some(BurstReport {
            layout: report::LAYOUT,
            kind: "burst",
            started,
            started_utc: started.to_string(),
            settings: self.settings(plan),
            verdict,
            why,
            advice: report::advice(plan, &pools),
            pools,
            floor,
            bare_ns,
            jitter_floor_p99_ns: floor_ns(&noise, 0.99),
            environment: Environment::read(&clock),
            plan: *plan,
        }))
    }

    /// The settings in use, defaults included.
    fn settings(&self, plan: &BurstPlan) -> serde_json::Value {
        json!({
            "hold": plan.hold,
            "feed_rate_hz": plan.rate_hz,
            "messages_per_datagram": plan.stream.messages,
            "datagram_bytes": plan.stream.datagram_bytes(),
            "at": plan.at,
            "decode": plan.decode,
            "rounds": self.rounds,
            "slots": plan.slots,
            "policy": plan.policy,
            "huge_pages": plan.huge_pages,
            "receive_buffer": plan.receive_buffer,
            "segments": plan.segmented,
            "line_rate_bits": self.line_rate,
            "cpus": plan.cpus,
            "give_up_ns": plan.give_up.as_nanos() as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_numbers_or_dashes() {
        assert_eq!(three_cores("1,2,3"), Ok([Some(1), Some(2), Some(3)]));
        assert_eq!(three_cores("0,1,-"), Ok([Some(0), Some(1), None]));
        for wrong in ["0-3", "0,1", "0,1,2,3", "", "a,b,c"] {
            assert!(three_cores(wrong).is_err_and(|error| error.contains("write 1,2,3")), "{wrong}");
        }
    }

    #[test]
    fn threads_spread_over_what_there_is() {
        assert_eq!(spread_over(&[0, 1, 2, 3, 4]), [Some(1), Some(2), Some(3)]);
        assert_eq!(spread_over(&[0, 1]), [None; 3]);
        assert_eq!(spread_over(&[5]), [None; 3]);
    }
}
