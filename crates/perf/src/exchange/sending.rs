//! Sends datagrams on schedule, with heartbeats in silence; sends a generated day.

use std::time::Duration;

use tapeline_console::{Stop, output::Progress, trading_day};
use tapeline_feed::moldudp64::{MoldSession, end_of_session, heartbeat};
use tapeline_measure::{Clock, Lateness, Nanos, Pacer, Recorder, Waiting};

use super::generator::Generator;
use super::lines::{BATCH, Lines, Staged};

/// Interval of heartbeats on a silent feed, as exchanges send them, and of clock recalibration.
const SECOND_NS: u64 = 1_000_000_000;
/// Maximum length of one wait before the next check for a stop request.
const LOOK_NS: u64 = 100_000_000;
/// Number of end-of-session packets to send at once.
pub(super) const ENDS: usize = 3;
/// Lead time before the first message is due.
const LEAD_NS: u64 = 1_000_000;

/// A feed's lines with the clock that they are sent by.
#[derive(Debug)]
pub(super) struct Sending {
    pub(super) lines: Lines,
    pub(super) stop: Stop,
    pub(super) clock: Clock,
    pub(super) start: Nanos,
    pub(super) last_sent: Nanos,
    /// Heartbeats sent in silence.
    pub(super) heartbeats: u64,
    /// Only waits: the datagrams have their own schedule.
    pacer: Pacer,
    waiting: Waiting,
    progress: Progress,
    show_at: Nanos,
    recalibrate_at: Nanos,
}

impl Sending {
    pub(super) fn new(
        lines: Lines,
        stop: Stop,
        clock: Clock,
        start: Nanos,
        waiting: Waiting,
        progress: Progress,
    ) -> Self {
        Self {
            lines,
            stop,
            clock,
            start,
            last_sent: start,
            heartbeats: 0,
            pacer: Pacer::per_second(1, start),
            waiting,
            progress,
            show_at: start,
            recalibrate_at: start + SECOND_NS,
        }
    }

    /// Waits until `due` and returns the time; `None` if the user stopped it. With a session and its next sequence, sends a
    /// heartbeat for every second of silence. `done` is the progress.
    pub(super) fn wait(
        &mut self,
        due: Nanos,
        done: u64,
        silence: Option<(MoldSession, u64)>,
    ) -> anyhow::Result<Option<Nanos>> {
        let mut now = self.clock.now();
        while now < due {
            let until = due.min(now + LOOK_NS).min(self.lines.next_release().unwrap_or(due));
            now = self.pacer.wait(&self.clock, until, self.waiting);
            if self.stop.requested() || !self.lines.release(&self.clock, &self.stop)? {
                return Ok(None);
            }
            self.look(now, done);
            if let Some((session, sequence)) = silence
                && now < due
                && now.0.saturating_sub(self.last_sent.0) >= SECOND_NS
            {
                self.send_one(&heartbeat(session, sequence))?;
                self.heartbeats += 1;
                self.last_sent = now;
            }
        }
        Ok(Some(now))
    }

    /// Sends staged datagrams on every line. Returns `false` if the user stopped it.
    pub(super) fn send(&mut self, staged: &Staged) -> anyhow::Result<bool> {
        self.lines.send(staged, &self.clock, &self.stop)
    }

    /// Sends one datagram on every line.
    fn send_one(&mut self, datagram: &[u8]) -> anyhow::Result<bool> {
        let mut batch = Staged::new(datagram.len());
        batch.push(datagram);
        self.send(&batch)
    }

    /// Sends the datagrams that faults still buffer: no more follow.
    pub(super) fn finish(&mut self) -> anyhow::Result<bool> {
        self.lines.finish(&self.clock, &self.stop)
    }

    /// Sends the end of the session three times, then every second for `linger`; returns `false` if the user stopped
    /// it. `next` is the sequence after the last message, `done` the progress.
    pub(super) fn end(
        &mut self,
        session: MoldSession,
        next: u64,
        done: u64,
        linger: Duration,
    ) -> anyhow::Result<bool> {
        let packet = end_of_session(session, next);
        for _ in 0..ENDS {
            if !self.send_one(&packet)? {
                return Ok(false);
            }
        }
        self.last_sent = self.clock.now();
        let until = self.last_sent + u64::try_from(linger.as_nanos()).unwrap_or(u64::MAX);
        let mut due = self.last_sent + SECOND_NS;
        while due <= until {
            if self.wait(due, done, None)?.is_none() || !self.send_one(&packet)? {
                return Ok(false);
            }
            self.last_sent = self.clock.now();
            due = due + SECOND_NS;
        }
        self.finish()
    }

    /// Recalibrates the clock and updates the progress, at intervals.
    pub(super) fn look(&mut self, now: Nanos, done: u64) {
        if now >= self.recalibrate_at {
            self.clock.recalibrate();
            self.recalibrate_at = now + SECOND_NS;
        }
        if now >= self.show_at {
            self.progress.set(done);
            self.show_at = now + LOOK_NS;
        }
    }

    /// From the start to the last sent datagram.
    pub(super) fn duration_ns(&self) -> u64 {
        self.last_sent.0.saturating_sub(self.start.0).max(1)
    }
}

/// Sends a generated day.
pub(super) struct DaySender {
    pub(super) out: Sending,
    /// Origin of event times.
    midnight: Nanos,
    staged: Staged,
    /// Due times of the staged datagrams.
    due: Vec<Nanos>,
    pub(super) sent: u64,
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
        let (staged, lateness) = (Staged::new(datagram_bytes), Recorder::new());
        let clock = Clock::calibrate();
        let midnight = trading_day::midnight_before(clock.now())?;
        let start = clock.now() + LEAD_NS;
        let progress = Progress::counting("sending", "messages", Some(total));
        Ok(Self {
            out: Sending::new(lines, stop, clock, start, waiting, progress),
            midnight,
            staged,
            due: Vec::with_capacity(BATCH),
            sent: 0,
            lateness,
            trend: Lateness::new(start),
        })
    }

    /// Sends the day; returns `false` if the user stopped it.
    pub(super) fn day(&mut self, generator: &mut Generator) -> anyhow::Result<bool> {
        self.sent = generator.done;
        while generator.due_ns().is_some() {
            // Staged before it is due, so that only the send is left at the due time.
            self.staged.clear();
            self.due.clear();
            let due = self.stage(generator);
            let silence = Some((generator.session, self.sent + 1));
            let Some(now) = self.out.wait(due, self.sent, silence)? else { return Ok(false) };
            // Datagrams that are due by now go out with the same call.
            while self.staged.len() < BATCH
                && generator.due_ns().is_some_and(|due_ns| self.out.start + due_ns <= now)
            {
                self.stage(generator);
            }
            if !self.out.send(&self.staged)? {
                return Ok(false);
            }
            let now = self.out.clock.now();
            self.out.last_sent = now;
            self.sent = generator.done;
            for due in &self.due {
                let late_ns = now.since(*due);
                self.lateness.record(late_ns);
                self.trend.record(now, late_ns);
            }
            self.out.look(now, self.sent);
            if self.out.stop.requested() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Stages the next datagram and returns its due time.
    fn stage(&mut self, generator: &mut Generator) -> Nanos {
        let due = self.out.start + generator.due_ns().unwrap_or_default();
        generator.datagram(&mut self.staged, due.0.saturating_sub(self.midnight.0));
        self.due.push(due);
        due
    }
}
