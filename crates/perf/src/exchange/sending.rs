//! Sends a generated day on schedule.

use std::time::Duration;

use tapeline_console::output::Progress;
use tapeline_console::stop::Stop;
use tapeline_feed::moldudp64::{MoldSession, end_of_session, heartbeat};
use tapeline_measure::{Clock, Lateness, Nanos, Pacer, Recorder, Waiting};

use super::generator::Generator;
use super::lines::{BATCH, Lines, Staged};
use tapeline_console::trading_day;

/// Interval of heartbeats on a silent feed, as exchanges send them, and of clock recalibration.
const SECOND_NS: u64 = 1_000_000_000;
/// Maximum length of one wait before the next check for a stop request.
const LOOK_NS: u64 = 100_000_000;
/// Number of end-of-session packets to send at once.
pub(super) const ENDS: usize = 3;
/// Lead time before the first message is due.
const LEAD_NS: u64 = 1_000_000;

/// State of the sender.
pub(super) struct DaySender {
    pub(super) lines: Lines,
    stop: Stop,
    clock: Clock,
    /// Only waits: the generator has the schedule with its bursts.
    pacer: Pacer,
    waiting: Waiting,
    /// Origin of event times.
    midnight: Nanos,
    start: Nanos,
    progress: Progress,
    show_at: Nanos,
    recalibrate_at: Nanos,
    staged: Staged,
    /// Due times of the staged datagrams.
    due: Vec<Nanos>,
    /// Messages sent.
    pub(super) sent: u64,
    last_sent: Nanos,
    pub(super) heartbeats: u64,
    /// Actual send time less due time, for each datagram.
    pub(super) lateness: Recorder,
    pub(super) trend: Lateness,
}

impl DaySender {
    /// A sender of datagrams of at most `datagram_bytes`; the first is due after the lead time.
    pub(super) fn new(
        lines: Lines,
        stop: Stop,
        waiting: Waiting,
        datagram_bytes: usize,
        total: u64,
    ) -> anyhow::Result<Self> {
        let staged = Staged::new(datagram_bytes);
        let lateness = Recorder::new();
        let clock = Clock::calibrate();
        let midnight = trading_day::midnight_before(clock.now())?;
        let start = clock.now() + LEAD_NS;
        Ok(Self {
            lines,
            stop,
            clock,
            pacer: Pacer::per_second(1, start),
            waiting,
            midnight,
            start,
            progress: Progress::counting("sending", "messages", Some(total)),
            show_at: start,
            recalibrate_at: start + SECOND_NS,
            staged,
            due: Vec::with_capacity(BATCH),
            sent: 0,
            last_sent: start,
            heartbeats: 0,
            lateness,
            trend: Lateness::new(start),
        })
    }

    /// Sends the day; returns `false` if the user stopped it.
    pub(super) fn day(&mut self, generator: &mut Generator) -> anyhow::Result<bool> {
        self.sent = generator.done();
        while generator.due_ns().is_some() {
            // Staged before it is due, so that only the send is left at the due time.
            self.staged.clear();
            self.due.clear();
            let due = self.stage(generator);
            let Some(now) = self.wait(due, Some(generator.session()))? else { return Ok(false) };
            // Datagrams that are due by now go out with the same call.
            while self.staged.len() < BATCH
                && generator.due_ns().is_some_and(|due_ns| self.start + due_ns <= now)
            {
                self.stage(generator);
            }
            if !self.lines.send(&self.staged, &self.clock, &self.stop)? {
                return Ok(false);
            }
            self.last_sent = self.clock.now();
            self.sent = generator.done();
            for due in &self.due {
                let late_ns = self.last_sent.since(*due);
                self.lateness.record(late_ns);
                self.trend.record(self.last_sent, late_ns);
            }
            self.look(self.last_sent);
            if self.stop.requested() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Stages the next datagram and returns its due time.
    fn stage(&mut self, generator: &mut Generator) -> Nanos {
        let due = self.start + generator.due_ns().unwrap_or_default();
        generator.datagram(&mut self.staged, due.0.saturating_sub(self.midnight.0));
        self.due.push(due);
        due
    }

    /// Waits until `due`, with a heartbeat for every second of silence, and returns the time; `None` if the user
    /// stopped it.
    fn wait(&mut self, due: Nanos, session: Option<MoldSession>) -> anyhow::Result<Option<Nanos>> {
        let mut now = self.clock.now();
        while now < due {
            let until = due.min(now + LOOK_NS).min(self.lines.next_release().unwrap_or(due));
            now = self.pacer.wait(&self.clock, until, self.waiting);
            if self.stop.requested() || !self.lines.release(&self.clock, &self.stop)? {
                return Ok(None);
            }
            self.look(now);
            if let Some(session) = session
                && now < due
                && now.0.saturating_sub(self.last_sent.0) >= SECOND_NS
            {
                self.lines.send_one(&heartbeat(session, self.sent + 1), &self.clock, &self.stop)?;
                self.heartbeats += 1;
                self.last_sent = now;
            }
        }
        Ok(Some(now))
    }

    /// Recalibrates the clock and updates the progress, at intervals.
    fn look(&mut self, now: Nanos) {
        if now >= self.recalibrate_at {
            self.clock.recalibrate();
            self.recalibrate_at = now + SECOND_NS;
        }
        if now >= self.show_at {
            self.progress.set(self.sent);
            self.show_at = now + LOOK_NS;
        }
    }

    /// From the first due message to the last sent message.
    pub(super) fn duration_ns(&self) -> u64 {
        self.last_sent.0.saturating_sub(self.start.0).max(1)
    }

    /// Sends the end of the session three times, then every second for `linger`; returns `false` if the user stopped
    /// it.
    pub(super) fn end(&mut self, session: MoldSession, linger: Duration) -> anyhow::Result<bool> {
        let packet = end_of_session(session, self.sent + 1);
        for _ in 0..ENDS {
            if !self.lines.send_one(&packet, &self.clock, &self.stop)? {
                return Ok(false);
            }
        }
        let mut next = self.clock.now() + SECOND_NS;
        let until = self.clock.now() + u64::try_from(linger.as_nanos()).unwrap_or(u64::MAX);
        while next <= until {
            if self.wait(next, None)?.is_none() {
                return Ok(false);
            }
            self.lines.send_one(&packet, &self.clock, &self.stop)?;
            next = next + SECOND_NS;
        }
        self.lines.finish(&self.clock, &self.stop)
    }
}
