//! The main thread: starts the working threads, collects what they counted at each interval, writes and prints it, and ends the
//! run.

use std::collections::VecDeque;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use tapeline_console::failure::Hinted;
use tapeline_console::stop::Stop;
use tapeline_measure::{
    Clock, Environment, Jitter, Nanos, Usage, Verdict, cores, figures, instant, pin, utc_now,
};

use super::link::{Handle, Link, Links, Word};
use super::options::{ResultArgs, ThreadArgs};
use super::output::{Cost, Interval, Moment, Output, Resources, Sample, Second};
use super::stamp::Unit;
use super::sums::Sums;
use super::tally::{Counts, Milestone, Phase, Tally, Terms};
use super::verdict::{self, Failure};
use crate::jitter;

/// Which tool it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    Consumer,
    Provider,
    NiProvider,
    Transport,
}

impl Tool {
    /// Whether what it times is what it receives as updates; a provider times generic messages alone.
    pub(super) fn times_updates(self) -> bool {
        matches!(self, Self::Consumer | Self::Transport)
    }

    /// The messages that throughput and timeline are of: updates; of a provider generic messages beside them, as its rate is of
    /// both; of the transport what went either way.
    pub(super) fn carried(self, counts: &Counts) -> u64 {
        match self {
            Self::Consumer => counts.updates,
            Self::Transport => counts.messages_sent + counts.updates,
            Self::Provider | Self::NiProvider => counts.updates + counts.generics_sent,
        }
    }
}

/// When a run is over.
#[derive(Clone, Copy, Debug)]
pub(super) enum Limit {
    /// So long after the last image; images may take as long. What the first `delay` of it times does not count.
    SteadyState { time: Duration, delay: Duration },
    /// So long after it began.
    RunTime(Duration),
}

/// A run, as the main thread has to know it.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) tool: Tool,
    /// What the summary calls TEST INPUTS: names as the guide has them and values, in its order.
    pub(super) inputs: Vec<(&'static str, String)>,
    pub(super) threads: &'a ThreadArgs,
    pub(super) results: &'a ResultArgs,
    pub(super) summary_file: &'a Path,
    pub(super) stats_file: &'a str,
    pub(super) limit: Limit,
    /// Whether who ends it before that cuts it short; not of a provider that nobody gave a time, which ends with a signal.
    pub(super) is_timed: bool,
    /// Images that each thread is to have, of a consumer; empty for a provider.
    pub(super) images: Vec<u64>,
    /// What this tool is asked to send on each connection.
    pub(super) rates: Rates,
    /// Slices a second.
    pub(super) tick_rate: u64,
    /// The unit of times in messages, and in the latency file.
    pub(super) unit: Unit,
}

/// Messages a second that a tool is asked to send; zero for what it does not send.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rates {
    pub(super) updates: u64,
    pub(super) posts: u64,
    /// Of the posts, those with a time.
    pub(super) stamped_posts: u64,
    pub(super) generics: u64,
    /// Of the generic messages, those with a time.
    pub(super) stamped_generics: u64,
}

/// What came of a run that did not fail.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    verdict: Verdict,
    /// The user ended it before its time was over.
    is_cut: bool,
}

/// What who interrupts a run that has a time is given: 128 and SIGINT, as by a shell.
const INTERRUPTED: u8 = 130;
/// Asked to end, a thread has so long to do it.
const GRACE: Duration = Duration::from_secs(10);
/// The longest time without a look at signals.
const NAP: Duration = Duration::from_millis(20);
/// Seconds that the record follows one by one: more than a day.
const SECONDS: usize = 100_000;

/// Runs `work` on each thread until the limit, writes everything that comes out, and gives the exit status: failure unless
/// the verdict is PASS or NOISY, and [`INTERRUPTED`] where nothing is wrong but that the user ended it before its time.
///
/// # Errors
/// A file that cannot be written, a thread's own error or panic, a connection that was lost, or a steady state that was not
/// reached. All but the first come after the summary was written.
pub(super) fn run(
    run: &Run<'_>,
    work: impl Fn(usize, Link) + Clone + Send + 'static,
) -> anyhow::Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let clock = Clock::calibrate();
    let time = run.results.jitter_time;
    let noise = match time.is_zero() {
        true => Vec::new(),
        false => {
            let bound: Vec<usize> = run.threads.threads.iter().filter_map(|core| core.0).collect();
            let watched = if bound.is_empty() { cores() } else { bound };
            jitter::measure(&watched, time, Duration::from_nanos(Jitter::THRESHOLD_NS), &clock, &stop)?
        }
    };
    let console = Box::new(anstream::AutoStream::auto(std::io::stdout()));
    let Outcome { verdict, is_cut } = collect(run, &clock, noise, &|| stop.requested(), console, work)?;
    Ok(match verdict {
        Verdict::Pass | Verdict::Noisy | Verdict::NoResult if is_cut => ExitCode::from(INTERRUPTED),
        Verdict::Pass | Verdict::Noisy => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// As [`run`], on any console, until `stops` says so.
fn collect<'a>(
    run: &'a Run<'a>,
    clock: &Clock,
    noise: Vec<Jitter>,
    stops: &dyn Fn() -> bool,
    console: Box<dyn Write + 'a>,
    work: impl Fn(usize, Link) + Clone + Send + 'static,
) -> anyhow::Result<Outcome> {
    let output = Output::open(run, console)?;
    let environment = Environment::read(clock);
    let terms = Terms {
        keeps: run.results.latency_file.is_some(),
        slice_ns: (1_000_000_000 / run.tick_rate.max(1)) as i64,
        ..Terms::default()
    };
    let count = run.threads.threads.len();
    let Links { threads: links, handles, is_over, said } = Links::new(count, terms);
    let started = clock.now();
    let mut collector = Collector::new(run, terms, handles, is_over, output)?;
    for (number, (link, core)) in links.into_iter().zip(&run.threads.threads).enumerate() {
        let (work, core) = (work.clone(), core.0);
        thread::Builder::new()
            .name(format!("connection-{}", number + 1))
            .spawn(move || work_on(number, core, link, work))
            .with_context(|| format!("cannot start the thread of connection {}", number + 1))?;
    }
    // After the others: a thread begins on the cores of the one that starts it.
    let bound = run.threads.main_thread.0.map_or(Ok(()), pin);
    let result = match bound {
        Ok(()) => collector.until_over(&said, stops),
        Err(error) => Err(anyhow::Error::new(error).context("cannot bind the main thread (--main-thread)")),
    };
    if result.is_err() {
        collector.give_up(&said);
    }
    collector.end(started, environment, noise, result)
}

/// A working thread: on its core, and never without a last word.
fn work_on(number: usize, core: Option<usize>, link: Link, work: impl Fn(usize, Link)) {
    if let Some(core) = core
        && let Err(error) = pin(core)
    {
        return link.end(Err(anyhow::Error::new(error).context("cannot bind its thread (--threads)")));
    }
    let bury = link.undertaker();
    // What the thread leaves half done is nobody's any more.
    match catch_unwind(AssertUnwindSafe(|| work(number, link))) {
        Ok(()) => bury(anyhow!("its thread ended without a word")),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().copied();
            let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            bury(anyhow!("its thread panicked: {}", text.unwrap_or("it does not say why")));
        }
    }
}

/// What the main thread knows of a working one.
struct Thread {
    sums: Sums,
    /// What was done since the last interval ended, and intervals that wait for other threads.
    interval: Interval,
    /// By the second that each ended with.
    ended: VecDeque<(u64, Interval)>,
    /// The second up to which its intervals are written.
    written: u64,
    /// What was asked for and not answered yet.
    asked: VecDeque<Ask>,
    /// When its last tally came, in seconds of the run.
    at: f64,
    /// The second up to which its latency by second goes, and messages since then.
    second: u64,
    messages: u64,
    is_ready: bool,
    /// Whether times of its steady state count yet, and when they begin to.
    counts_times: bool,
    counts_times_from: Option<Instant>,
    is_done: bool,
    lost: Option<String>,
    /// Set when it has ended.
    over: Option<anyhow::Result<()>>,
}

/// A tally that a thread was asked for.
#[derive(Clone, Copy, Debug, Default)]
struct Ask {
    /// The second of the run that it ends, if it ends one.
    second: Option<u64>,
    /// The second with which an interval ends, if one does: not later than the other.
    interval: Option<u64>,
    /// Whether times count from there on.
    ends_delay: bool,
}

/// The run as it goes on.
struct Collector<'a> {
    run: &'a Run<'a>,
    terms: Terms,
    output: Output<'a>,
    handles: Vec<Handle>,
    is_over: Arc<AtomicBool>,
    threads: Vec<Thread>,
    /// Tallies that wait to be used again: boxed, as they travel.
    #[allow(clippy::vec_box)]
    spares: Vec<Box<Tally>>,
    began: Instant,
    /// The second of the run that goes on, from 1.
    second: u64,
    /// Intervals that have ended, and are not written yet.
    moments: VecDeque<Moment>,
    resources: Resources,
    /// At the beginning, in the last second and in the last interval; when the last image came.
    first: Usage,
    by_second: Usage,
    by_interval: Usage,
    at_images: Option<(Instant, Usage)>,
    timeline: Vec<Second>,
    /// Set when the threads are told to end: since when, and whether that was before the time.
    ending: Option<(Instant, bool)>,
}

impl<'a> Collector<'a> {
    fn new(
        run: &'a Run<'a>,
        terms: Terms,
        handles: Vec<Handle>,
        is_over: Arc<AtomicBool>,
        output: Output<'a>,
    ) -> anyhow::Result<Self> {
        let threads = (0..handles.len()).map(|number| {
            let images = run.images.get(number).copied().unwrap_or(0);
            Thread {
                sums: Sums::new(run.tool, terms, images),
                interval: Interval::new(terms),
                ended: VecDeque::new(),
                written: 0,
                asked: VecDeque::new(),
                at: 0.0,
                second: 0,
                messages: 0,
                is_ready: false,
                counts_times: matches!(run.limit, Limit::RunTime(_)),
                counts_times_from: None,
                is_done: false,
                lost: None,
                over: None,
            }
        });
        let usage = Usage::now()?;
        Ok(Self {
            run,
            terms,
            output,
            threads: threads.collect(),
            handles,
            is_over,
            spares: Vec::new(),
            began: instant(),
            second: 1,
            moments: VecDeque::new(),
            resources: Resources::default(),
            first: usage,
            by_second: usage,
            by_interval: usage,
            at_images: None,
            timeline: Vec::new(),
            ending: None,
        })
    }

    /// Collects until every thread has ended.
    fn until_over(&mut self, said: &Receiver<(usize, Word)>, stops: &dyn Fn() -> bool) -> anyhow::Result<()> {
        loop {
            let now = instant();
            self.keep_time(now, stops())?;
            if self.threads.iter().all(|thread| thread.over.is_some()) {
                return self.write_intervals();
            }
            let next = self.next_look().saturating_duration_since(now).min(NAP);
            match said.recv_timeout(next) {
                Ok((thread, word)) => self.hear(thread, word)?,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            while let Ok((thread, word)) = said.try_recv() {
                self.hear(thread, word)?;
            }
        }
    }

    /// Has the threads end, whatever they still say.
    fn give_up(&mut self, said: &Receiver<(usize, Word)>) {
        self.tell_to_end(false);
        let until = instant() + GRACE;
        while !self.all(|thread| thread.over.is_some()) && instant() < until {
            if let Ok((number, Word::Over(how))) = said.recv_timeout(NAP) {
                self.threads[number].over.get_or_insert(how);
            }
        }
    }

    /// When something is due next.
    fn next_look(&self) -> Instant {
        let delays = self.threads.iter().filter_map(|thread| thread.counts_times_from);
        let second = self.began + Duration::from_secs(self.second);
        delays.chain([second, self.deadline()]).min().unwrap_or(second)
    }

    /// When the run is over: of a consumer so long after its last image, and images may take as long.
    fn deadline(&self) -> Instant {
        match self.run.limit {
            Limit::RunTime(time) => self.began + time,
            Limit::SteadyState { time, .. } => match self.at_images {
                Some((at, _)) => at + time,
                None => self.began + time,
            },
        }
    }

    /// Does what is due: asks for tallies at each second and after the delay, and ends the run.
    fn keep_time(&mut self, now: Instant, stops: bool) -> anyhow::Result<()> {
        while now >= self.began + Duration::from_secs(self.second) {
            self.end_second()?;
        }
        for number in 0..self.threads.len() {
            if self.threads[number].counts_times_from.is_some_and(|from| now >= from) {
                self.threads[number].counts_times_from = None;
                self.ask(number, Ask { ends_delay: true, ..Ask::default() });
            }
        }
        match self.ending {
            None => {
                let is_over = now >= self.deadline() || self.all(|thread| thread.is_done);
                if is_over || stops {
                    self.tell_to_end(!is_over);
                }
            }
            Some((since, _)) if now >= since + GRACE => {
                for thread in self.threads.iter_mut().filter(|thread| thread.over.is_none()) {
                    let grace = GRACE.as_secs();
                    thread.over =
                        Some(Err(anyhow!("its thread did not end within {grace} s of being told to")));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn tell_to_end(&mut self, early: bool) {
        self.ending.get_or_insert((instant(), early));
        // Relaxed: the flag publishes nothing but itself.
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn all(&self, what: impl Fn(&Thread) -> bool) -> bool {
        self.threads.iter().all(what)
    }

    /// A second of the run is over, and perhaps an interval.
    fn end_second(&mut self) -> anyhow::Result<()> {
        let (second, interval) = (self.second, self.run.results.write_stats_interval.max(1));
        self.second += 1;
        let usage = Usage::now()?;
        let Sample { cpu_percent, memory_bytes } = Sample::between(&self.by_second, &usage);
        self.by_second = usage;
        if self.timeline.len() < SECONDS {
            self.timeline.push(Second { second, messages: 0, cpu_percent, memory_bytes });
        }
        let ends_interval = second.is_multiple_of(interval);
        if ends_interval {
            let sample = Sample::between(&self.by_interval, &usage);
            self.by_interval = usage;
            self.resources.add(sample);
            let utc = utc_now();
            let moment = Moment { utc, second, seconds: interval, sample, verdict: self.verdict_so_far() };
            self.moments.push_back(moment);
        }
        for number in 0..self.threads.len() {
            let interval = ends_interval.then_some(second);
            self.ask(number, Ask { second: Some(second), interval, ends_delay: false });
        }
        Ok(())
    }

    fn verdict_so_far(&self) -> Verdict {
        let sums: Vec<&Sums> = self.threads.iter().map(|thread| &thread.sums).collect();
        verdict::so_far(self.run, self.terms, &sums, self.began.elapsed().as_secs_f64())
    }

    /// Asks a thread for its tally, unless two are to come already: the second of these is longer then, and so is the interval
    /// that it ends.
    fn ask(&mut self, number: usize, ask: Ask) {
        let thread = &mut self.threads[number];
        if thread.over.is_some() {
            return;
        }
        if thread.asked.len() >= 2
            && let Some(last) = thread.asked.back_mut()
        {
            last.second = ask.second.or(last.second);
            last.interval = ask.interval.or(last.interval);
            last.ends_delay |= ask.ends_delay;
            return;
        }
        thread.asked.push_back(ask);
        let empty = self.spares.pop().unwrap_or_else(|| Box::new(Tally::new(self.terms)));
        self.handles[number].ask(empty);
    }

    fn hear(&mut self, number: usize, word: Word) -> anyhow::Result<()> {
        match word {
            Word::Tally(tally) => self.take(number, tally),
            Word::Milestone(milestone) => {
                self.note(number, &milestone);
                Ok(())
            }
            Word::Over(how) => {
                // Of several ends the first counts: what buries a thread comes behind its own word.
                if self.threads[number].over.is_some() {
                    return Ok(());
                }
                let failed = how.is_err();
                // A run can end with an interval: then the thread's last tally is that one's, too.
                while let Some(ask) = self.threads[number].asked.pop_front() {
                    self.end_of(number, ask)?;
                }
                self.threads[number].over = Some(how);
                if failed {
                    // What the others measure without it is not the run that was asked for.
                    self.tell_to_end(false);
                }
                self.write_intervals()
            }
        }
    }

    fn take(&mut self, number: usize, mut tally: Box<Tally>) -> anyhow::Result<()> {
        let at = self.began.elapsed().as_secs_f64();
        self.output.latencies(number, &tally)?;
        let thread = &mut self.threads[number];
        let steady = tally.phase == Phase::Steady || self.run.tool != Tool::Consumer;
        thread.sums.add(&tally, at, at - thread.at, thread.counts_times && steady);
        thread.at = at;
        thread.interval.add(&tally);
        let ask = if tally.asked { thread.asked.pop_front().unwrap_or_default() } else { Ask::default() };
        thread.counts_times |= ask.ends_delay;
        thread.messages += self.run.tool.carried(&tally.counts);
        tally.clear();
        self.spares.push(tally);
        self.end_of(number, ask)
    }

    /// A thread has given its tally up to the end of a second, and perhaps of an interval. Those that it did not answer in
    /// time are part of it.
    fn end_of(&mut self, number: usize, ask: Ask) -> anyhow::Result<()> {
        let Some(second) = ask.second else { return Ok(()) };
        let thread = &mut self.threads[number];
        if let Some(row) = self.timeline.get_mut(second.saturating_sub(1) as usize) {
            row.messages += std::mem::take(&mut thread.messages);
        }
        thread.sums.end_window(thread.second);
        thread.second = second;
        if let Some(end) = ask.interval {
            let interval = std::mem::replace(&mut thread.interval, Interval::new(self.terms));
            thread.ended.push_back((end, interval));
        }
        self.write_intervals()
    }

    fn note(&mut self, number: usize, milestone: &Milestone) {
        let now = instant();
        let thread = &mut self.threads[number];
        thread.sums.note(milestone, self.began.elapsed().as_secs_f64());
        match milestone {
            Milestone::Ready => thread.is_ready = true,
            Milestone::FirstRequest(_) | Milestone::Switched | Milestone::Resumed(_) | Milestone::Parted => {}
            Milestone::AllImages(_) => {
                if let Limit::SteadyState { delay, .. } = self.run.limit {
                    if delay.is_zero() {
                        thread.counts_times = true;
                    } else {
                        thread.counts_times_from = Some(now + delay);
                    }
                }
            }
            Milestone::Done(_) => thread.is_done = true,
            Milestone::Lost(why) => thread.lost = Some(why.clone()),
        }
        let waits = matches!(self.run.limit, Limit::SteadyState { .. });
        if waits && self.at_images.is_none() && self.all(|thread| thread.sums.is_complete()) {
            // Without a reading the record tells of the whole run.
            self.at_images = Some((now, Usage::now().unwrap_or(self.first)));
        }
    }

    /// Writes intervals that all threads have ended, those that are over apart. An interval that a thread answered together with
    /// the next one is a part of that, which is so much longer.
    fn write_intervals(&mut self) -> anyhow::Result<()> {
        while let Some(moment) = self.moments.front().copied() {
            let is_there = |thread: &Thread| {
                thread.over.is_some()
                    || thread.ended.front().is_some_and(|(second, _)| *second >= moment.second)
            };
            if !self.all(is_there) {
                return Ok(());
            }
            self.moments.pop_front();
            let of_moment = |thread: &mut Thread| {
                let is_its = thread.ended.front().is_some_and(|(second, _)| *second == moment.second);
                let (_, interval) = is_its.then(|| thread.ended.pop_front()).flatten()?;
                let seconds = moment.second - thread.written;
                thread.written = moment.second;
                Some((seconds, interval))
            };
            let intervals: Vec<Option<(u64, Interval)>> = self.threads.iter_mut().map(of_moment).collect();
            let images: Vec<Option<f64>> =
                self.threads.iter().map(|thread| thread.sums.images_seconds()).collect();
            self.output.interval(&intervals, &moment, &images)?;
        }
        Ok(())
    }

    /// Why the run is no result, if it is none: the first that applies.
    fn failure(&mut self, result: anyhow::Result<()>) -> Option<Failure> {
        let broken =
            |error: anyhow::Error| Some(Failure { verdict: Verdict::NoResult, error, is_of_user: false });
        if let Err(error) = result {
            return broken(error);
        }
        for (number, thread) in (1..).zip(&mut self.threads) {
            if let Some(Err(error)) = thread.over.take() {
                return broken(error.context(format!("connection {number} failed")));
            }
        }
        let seconds = self.began.elapsed().as_secs_f64();
        for (number, thread) in (1..).zip(&self.threads) {
            if let Some(why) = &thread.lost {
                let what = format!("connection {number} was lost: {why}");
                return broken(Hinted::new(what, "what was measured up to then is in the summary").into());
            }
        }
        let waits = matches!(self.run.limit, Limit::SteadyState { .. });
        if waits && !self.all(|thread| thread.sums.is_complete()) {
            let of = |count: fn(&Sums) -> u64| self.threads.iter().map(|thread| count(&thread.sums)).sum();
            let (images, asked): (u64, u64) = (of(|sums| sums.counts.images), of(|sums| sums.images));
            let early = self.is_early();
            let what = format!(
                "did not reach steady state: {} of {} images {} {seconds:.1} s",
                figures::thousands(images.min(asked)),
                figures::thousands(asked),
                if early { "when it was stopped after" } else { "after" },
            );
            let hint = if self.all(|thread| thread.is_ready) {
                "see whether provider or consumer uses a whole core, and whether the provider has all these items; \
                 then ask for less, or give images more time with --steady-state-time"
            } else {
                "no service was ready on each connection: see whether host, port and --service-name are the provider's"
            };
            // Who was not given the time did not fall behind.
            let verdict = if early { Verdict::NoResult } else { Verdict::Overload };
            let is_of_user = early && self.run.is_timed;
            return Some(Failure { verdict, error: Hinted::new(what, hint).into(), is_of_user });
        }
        None
    }

    /// Whether the user ended it before it was over.
    fn is_early(&self) -> bool {
        self.ending.is_some_and(|(_, early)| early)
    }

    /// How much of its time a run had that the user cut short.
    fn cut(&self) -> Option<String> {
        let (told, _) = self.ending.filter(|(_, early)| *early && self.run.is_timed)?;
        let (from, time) = match self.run.limit {
            Limit::RunTime(time) => (self.began, time),
            Limit::SteadyState { time, .. } => (self.at_images.map_or(self.began, |(at, _)| at), time),
        };
        let had = told.saturating_duration_since(from).as_secs_f64();
        Some(format!("; ended by the user after {had:.1} s of {} s", time.as_secs_f64()))
    }

    /// Writes what came of it.
    fn end(
        mut self,
        started: Nanos,
        environment: Environment,
        jitter: Vec<Jitter>,
        result: anyhow::Result<()>,
    ) -> anyhow::Result<Outcome> {
        // When its connections ended, if they did: threads that hang are not part of what was measured.
        let seconds = self.threads.iter().map(|thread| thread.at).fold(0.0, f64::max);
        let seconds = if seconds > 0.0 { seconds } else { self.began.elapsed().as_secs_f64() };
        // Nor is what threads take to say goodbye.
        let told = self.ending.map_or(f64::INFINITY, |(since, _)| (since - self.began).as_secs_f64());
        let seconds = seconds.min(told);
        let usage = Usage::now()?;
        if self.resources.is_empty() {
            self.resources.add(Sample::between(&self.first, &usage));
        }
        let from = self.at_images.map_or(self.first, |(_, usage)| usage);
        let failure = self.failure(result);
        let cut = self.cut();
        let is_cut = cut.is_some();
        let Self { output, threads, resources, timeline, terms, .. } = self;
        let sums: Vec<&Sums> = threads.iter().map(|thread| &thread.sums).collect();
        let spent = usage.since(&from);
        let (resources, timeline) = (&resources, timeline.as_slice());
        let cost = Cost { started, seconds, spent, resources, timeline, jitter, environment, cut };
        let ended = output.end(terms, &sums, cost, failure.as_ref());
        let ended = ended.map(|verdict| Outcome { verdict, is_cut });
        match failure {
            // What the user did not want to wait for is no failure; the verdict says what was missing.
            Some(Failure { is_of_user: true, .. }) => ended,
            // The first failure is the one to tell of.
            Some(failure) => Err(failure.error),
            None => ended,
        }
    }
}

#[cfg(test)]
mod tests;
