//! The main thread: starts the working threads, collects their tallies at each interval, writes and prints the
//! results, and ends the run.

use std::collections::VecDeque;
use std::io::Write;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use tapeline_console::failure::Hinted;
use tapeline_console::stop::Stop;
use tapeline_measure::{
    Clock, Environment, Jitter, Nanos, Usage, Verdict, cores, figures, instant, pin, utc_now,
};
use tapeline_wire::rssl::{ConnectionSettings, Reactor};

use super::link::{Link, Links, Word};
use super::options::{ResultArgs, ThreadArgs};
use super::output::{Cost, IntervalEnd, Output, Resources, Sample, Second};
use super::stamp::Unit;
use super::sums::Sums;
use super::tally::{Milestone, RunPhase, Tally, Terms};
use super::tool::Tool;
use super::verdict::{self, Failure};
use crate::jitter;

/// When a run is over.
#[derive(Clone, Copy, Debug)]
pub(super) enum Limit {
    /// This time after the last image, and at most this time for images. Times of the first `delay` do not count.
    SteadyState { time: Duration, delay: Duration },
    /// This time after the run began.
    RunTime(Duration),
}

impl Limit {
    const fn time(self) -> Duration {
        match self {
            Self::SteadyState { time, .. } | Self::RunTime(time) => time,
        }
    }

    const fn waits_for_images(self) -> bool {
        matches!(self, Self::SteadyState { .. })
    }
}

/// A run's settings for the main thread.
#[derive(Debug)]
pub(super) struct RunSettings<'a> {
    pub(super) tool: Tool,
    /// The summary's TEST INPUTS: names and values in the guide's order.
    pub(super) inputs: Vec<(&'static str, String)>,
    pub(super) threads: &'a ThreadArgs,
    pub(super) results: &'a ResultArgs,
    pub(super) summary_file: &'a Path,
    pub(super) stats_file: &'a str,
    pub(super) limit: Limit,
    /// Whether ending the run early cuts it short; false for a provider without a run time, which a signal ends.
    pub(super) is_timed: bool,
    /// Expected images of each of a consumer's threads; empty for a provider.
    pub(super) images: Vec<u64>,
    /// The rates at which this tool sends on each connection.
    pub(super) rates: Rates,
    pub(super) tick_rate: u64,
    /// The unit of times in messages, and in the latency file.
    pub(super) unit: Unit,
}

/// Requested send rates in messages per second; 0 if the tool sends none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rates {
    pub(super) updates: u64,
    pub(super) posts: u64,
    /// Posts that carry a time.
    pub(super) stamped_posts: u64,
    pub(super) generics: u64,
    /// Generic messages that carry a time.
    pub(super) stamped_generics: u64,
}

/// The outcome of a run that did not fail.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    verdict: Verdict,
    /// The user ended it early.
    is_cut: bool,
}

/// Exit status of an interrupted run with a run time: 128 plus SIGINT, as in a shell.
const INTERRUPTED: u8 = 130;
/// Time that a thread has to end once told to.
const GRACE: Duration = Duration::from_secs(10);
/// Maximum time between two checks for signals.
const NAP: Duration = Duration::from_millis(20);
/// Maximum seconds in the record's timeline: more than a day.
const SECONDS: usize = 100_000;

/// Runs `work` on each thread until the limit, writes all results, and returns the exit status: failure unless the
/// verdict is PASS or NOISY; [`INTERRUPTED`] if the only defect is that the user ended the run early.
///
/// # Errors
/// A file cannot be written, a thread failed or panicked, a connection was lost, or the steady state was not reached.
/// All but the first are returned after the summary is written.
pub(super) fn run(
    run: &RunSettings<'_>,
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

/// As [`run`], with a reactor for each thread.
pub(super) fn run_on(
    run: &RunSettings<'_>,
    reactors: Vec<Reactor>,
    work: impl Fn(usize, Reactor, Link) + Clone + Send + 'static,
) -> anyhow::Result<ExitCode> {
    // Each thread takes its own.
    let reactors: Vec<_> = reactors.into_iter().map(|reactor| Mutex::new(Some(reactor))).collect();
    let reactors = Arc::new(reactors);
    self::run(run, move |number, link| {
        let reactor = reactors[number].lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(reactor) = reactor {
            work(number, reactor, link);
        }
    })
}

/// A reactor for each thread.
pub(super) fn reactors(threads: usize, most_connections: usize) -> anyhow::Result<Vec<Reactor>> {
    Ok((0..threads).map(|_| Reactor::new(most_connections)).collect::<Result<_, _>>()?)
}

/// Listens at one port for all threads: a connection goes to the thread with the fewest.
pub(super) fn listen(
    reactors: &mut [Reactor],
    address: SocketAddr,
    settings: &Arc<ConnectionSettings>,
) -> anyhow::Result<()> {
    let doors = reactors.iter_mut().map(Reactor::door).collect::<Result<Vec<_>, _>>()?;
    if let Some(first) = reactors.first_mut() {
        let address = first.listen_for(&doors, address, settings)?;
        tapeline_console::output::print(&format!("listening at {address}"))?;
    }
    Ok(())
}

/// As [`run`], on any console, until `stops` returns true.
fn collect<'a>(
    run: &'a RunSettings<'a>,
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
    // After the others: a new thread inherits the cores of its creator.
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

/// A working thread: pins itself to its core, and always reports its end.
fn work_on(number: usize, core: Option<usize>, link: Link, work: impl Fn(usize, Link)) {
    if let Some(core) = core
        && let Err(error) = pin(core)
    {
        return link.end(Err(anyhow::Error::new(error).context("cannot bind its thread (--threads)")));
    }
    let bury = link.undertaker();
    // No other code uses the state that the thread leaves behind.
    match catch_unwind(AssertUnwindSafe(|| work(number, link))) {
        Ok(()) => bury(anyhow!("its thread ended without a word")),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().copied();
            let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            bury(anyhow!("its thread panicked: {}", text.unwrap_or("it does not say why")));
        }
    }
}

/// The main thread's state of one working thread.
#[derive(Default)]
struct Thread {
    sums: Sums,
    /// The current interval.
    interval: Tally,
    /// Ended intervals that wait for other threads, each with the second that it ended with.
    ended: VecDeque<(u64, Tally)>,
    /// The second up to which its intervals are written.
    written: u64,
    /// Requested tallies that are not answered yet.
    asked: VecDeque<Ask>,
    /// When its last tally arrived, in seconds of the run.
    at: f64,
    /// The second up to which its latency by second extends, and the messages since then.
    second: u64,
    messages: u64,
    is_ready: bool,
    /// Whether its steady-state times count yet, and when they begin to count.
    counts_times: bool,
    counts_times_from: Option<Instant>,
    is_done: bool,
    lost: Option<String>,
    /// Set when the thread has ended.
    over: Option<anyhow::Result<()>>,
}

/// A request for a thread's tally.
#[derive(Clone, Copy, Debug, Default)]
struct Ask {
    /// The second of the run that the tally ends, if any.
    second: Option<u64>,
    /// The second with which an interval ends, if any: not later than `second`.
    interval: Option<u64>,
    /// Whether times count from there on.
    ends_delay: bool,
}

/// The state of a run.
struct Collector<'a> {
    run: &'a RunSettings<'a>,
    terms: Terms,
    output: Output<'a>,
    /// One for each thread: an empty tally requests the current one.
    handles: Vec<Sender<Box<Tally>>>,
    is_over: Arc<AtomicBool>,
    threads: Vec<Thread>,
    /// Tallies for reuse: boxed, as they are sent.
    #[allow(clippy::vec_box)]
    spares: Vec<Box<Tally>>,
    began: Instant,
    /// The current second of the run, from 1.
    second: u64,
    /// Ended intervals that are not written yet.
    moments: VecDeque<IntervalEnd>,
    resources: Resources,
    /// Usage at the beginning, at the last second and at the last interval; time and usage at the last image.
    first: Usage,
    by_second: Usage,
    by_interval: Usage,
    at_images: Option<(Instant, Usage)>,
    timeline: Vec<Second>,
    /// Set when the threads are told to end: the time, and whether that was early.
    ending: Option<(Instant, bool)>,
}

impl<'a> Collector<'a> {
    fn new(
        run: &'a RunSettings<'a>,
        terms: Terms,
        handles: Vec<Sender<Box<Tally>>>,
        is_over: Arc<AtomicBool>,
        output: Output<'a>,
    ) -> anyhow::Result<Self> {
        let threads = (0..handles.len()).map(|number| {
            let images = run.images.get(number).copied().unwrap_or(0);
            Thread {
                sums: Sums::new(run.tool, terms, images),
                interval: Tally::new(terms),
                counts_times: !run.limit.waits_for_images(),
                ..Thread::default()
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
            if self.all(|thread| thread.over.is_some()) {
                return self.write_intervals();
            }
            let next = self.next_look().saturating_duration_since(now).min(NAP);
            if let Ok((thread, word)) = said.recv_timeout(next) {
                self.hear(thread, word)?;
            }
            while let Ok((thread, word)) = said.try_recv() {
                self.hear(thread, word)?;
            }
        }
    }

    /// Tells the threads to end, and ignores their remaining messages.
    fn give_up(&mut self, said: &Receiver<(usize, Word)>) {
        self.tell_to_end(false);
        let until = instant() + GRACE;
        while !self.all(|thread| thread.over.is_some()) && instant() < until {
            if let Ok((number, Word::Over(how))) = said.recv_timeout(NAP) {
                self.threads[number].over.get_or_insert(how);
            }
        }
    }

    /// When the next action is due.
    fn next_look(&self) -> Instant {
        let delays = self.threads.iter().filter_map(|thread| thread.counts_times_from);
        let second = self.began + Duration::from_secs(self.second);
        delays.chain([second, self.deadline()]).min().unwrap_or(second)
    }

    /// Since when the run's time counts: for a consumer, since the last image, once that has arrived.
    fn counted_from(&self) -> Instant {
        self.at_images.map_or(self.began, |(at, _)| at)
    }

    fn deadline(&self) -> Instant {
        self.counted_from() + self.run.limit.time()
    }

    /// Performs due actions: requests tallies at each second and after the delay, and ends the run.
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
                let grace = GRACE.as_secs();
                for thread in &mut self.threads {
                    thread.over.get_or_insert_with(|| {
                        Err(anyhow!("its thread did not end within {grace} s of being told to"))
                    });
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn tell_to_end(&mut self, early: bool) {
        self.ending.get_or_insert((instant(), early));
        // Relaxed: the flag publishes no other data.
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn all(&self, what: impl Fn(&Thread) -> bool) -> bool {
        self.threads.iter().all(what)
    }

    /// Ends a second of the run, and possibly an interval.
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
            self.resources.0.push(sample);
            let utc = utc_now();
            let moment =
                IntervalEnd { utc, second, seconds: interval, sample, verdict: self.verdict_so_far() };
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

    /// Requests a thread's tally, unless two requests are outstanding: then the second one and its interval are extended.
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
        // An ended thread sends no more tallies.
        let _ = self.handles[number].send(empty);
    }

    fn hear(&mut self, number: usize, word: Word) -> anyhow::Result<()> {
        match word {
            Word::Tally(tally) => self.take(number, tally),
            Word::Milestone(milestone) => {
                self.note(number, &milestone);
                Ok(())
            }
            Word::Over(how) => {
                // The first end counts: `undertaker` reports after the thread's own end.
                if self.threads[number].over.is_some() {
                    return Ok(());
                }
                let failed = how.is_err();
                // A run can end with an interval: then the thread's last tally also ends that interval.
                while let Some(ask) = self.threads[number].asked.pop_front() {
                    self.end_of(number, ask)?;
                }
                self.threads[number].over = Some(how);
                if failed {
                    // The remaining threads no longer measure the requested run.
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
        let steady = tally.phase == RunPhase::Steady || self.run.tool != Tool::Consumer;
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

    /// Ends a second, and possibly an interval, of a thread with its tally, with any seconds that it answered late.
    fn end_of(&mut self, number: usize, ask: Ask) -> anyhow::Result<()> {
        let Some(second) = ask.second else { return Ok(()) };
        let thread = &mut self.threads[number];
        if let Some(row) = self.timeline.get_mut(second.saturating_sub(1) as usize) {
            row.messages += std::mem::take(&mut thread.messages);
        }
        thread.sums.end_window(thread.second);
        thread.second = second;
        if let Some(end) = ask.interval {
            let interval = std::mem::replace(&mut thread.interval, Tally::new(self.terms));
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
        if self.run.limit.waits_for_images()
            && self.at_images.is_none()
            && self.all(|thread| thread.sums.is_complete())
        {
            // Without a reading, the record covers the whole run.
            self.at_images = Some((now, Usage::now().unwrap_or(self.first)));
        }
    }

    /// Writes intervals that all running threads have ended. One that was answered with the next one makes that longer.
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
            let intervals: Vec<Option<(u64, Tally)>> = self.threads.iter_mut().map(of_moment).collect();
            let images: Vec<Option<f64>> =
                self.threads.iter().map(|thread| thread.sums.images_seconds()).collect();
            self.output.interval(&intervals, &moment, &images)?;
        }
        Ok(())
    }

    /// The reason that the run has no result, if any: the first that applies.
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
        if self.run.limit.waits_for_images() && !self.all(|thread| thread.sums.is_complete()) {
            let of = |count: fn(&Sums) -> u64| self.threads.iter().map(|thread| count(&thread.sums)).sum();
            let (images, asked): (u64, u64) = (of(|sums| sums.tally.counts.images), of(|sums| sums.images));
            let early = self.is_early();
            let [images, asked] = [images.min(asked), asked].map(figures::thousands);
            let after = if early { "when it was stopped after" } else { "after" };
            let what =
                format!("did not reach steady state: {images} of {asked} images {after} {seconds:.1} s");
            let hint = if self.all(|thread| thread.is_ready) {
                "see whether provider or consumer uses a whole core, and whether the provider has all these items; \
                 then ask for less, or give images more time with --steady-state-time"
            } else {
                "no service was ready on each connection: see whether host, port and --service-name are the provider's"
            };
            // A run that was stopped early did not fall behind.
            let verdict = if early { Verdict::NoResult } else { Verdict::Overload };
            let is_of_user = early && self.run.is_timed;
            return Some(Failure { verdict, error: Hinted::new(what, hint).into(), is_of_user });
        }
        None
    }

    /// Whether the user ended the run early.
    fn is_early(&self) -> bool {
        self.ending.is_some_and(|(_, early)| early)
    }

    /// Reports how much of its time a run had that the user cut short.
    fn cut(&self) -> Option<String> {
        let (told, _) = self.ending.filter(|(_, early)| *early && self.run.is_timed)?;
        let had = told.saturating_duration_since(self.counted_from()).as_secs_f64();
        Some(format!("; ended by the user after {had:.1} s of {} s", self.run.limit.time().as_secs_f64()))
    }

    fn end(
        mut self,
        started: Nanos,
        environment: Environment,
        jitter: Vec<Jitter>,
        result: anyhow::Result<()>,
    ) -> anyhow::Result<Outcome> {
        // The run ends when its connections ended, if they did: threads that hang are excluded.
        let seconds = self.threads.iter().map(|thread| thread.at).fold(0.0, f64::max);
        let seconds = if seconds > 0.0 { seconds } else { self.began.elapsed().as_secs_f64() };
        // The threads' shutdown is excluded too.
        let told = self.ending.map_or(f64::INFINITY, |(since, _)| (since - self.began).as_secs_f64());
        let seconds = seconds.min(told);
        let usage = Usage::now()?;
        if self.resources.0.is_empty() {
            self.resources.0.push(Sample::between(&self.first, &usage));
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
            // A run that the user cut short is not an error; the verdict names what was missing.
            Some(Failure { is_of_user: true, .. }) => ended,
            // The first failure is the one to report.
            Some(failure) => Err(failure.error),
            None => ended,
        }
    }
}

#[cfg(test)]
mod tests;
