//! Sends datagrams on the lines of a feed when they are due.

use std::time::Duration;

use serde::Serialize;
use tapeline_console::output::Progress;
use tapeline_console::stop::Stop;
use tapeline_feed::capture::LARGEST_PACKET;
use tapeline_feed::moldudp64::{MoldSession, end_of_session, heartbeat};
use tapeline_feed::simulate::Schedule;
use tapeline_measure::{Clock, Nanos, Pacer, Waiting};

use super::faults::{Done, Faults};
use super::lines::{BATCH, Lines, Staged};

/// Silence before a heartbeat is sent, and the interval of repeated end-of-session packets.
const HEARTBEAT_NS: u64 = 1_000_000_000;
/// Maximum length of one wait before the next check for a stop request.
const LOOK_NS: u64 = 100_000_000;
/// Number of end-of-session packets to send at once.
const ENDS: usize = 3;

/// When datagrams are due.
#[derive(Clone, Copy, Debug)]
pub enum PlayPace {
    /// At the original times, this many times as fast.
    Original(f64),
    /// At a fixed rate a second.
    Rate(Schedule),
    /// As fast as possible.
    Max,
}

/// The result, for programs.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// Datagrams sent on each line.
    pub datagrams: u64,
    /// Messages packed here; absent if the datagrams came from captures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// Bytes of UDP payload.
    pub bytes: u64,
    /// Lines.
    pub lines: usize,
    /// Heartbeats sent in silence.
    pub heartbeats: u64,
    /// Time from the first datagram to the last, in ns.
    pub duration_ns: u64,
    /// Rate reached.
    pub datagrams_per_second: f64,
    /// The same in bytes.
    pub bytes_per_second: f64,
    /// Batches that waited for socket capacity.
    pub back_pressure: u64,
    /// Time of these waits in ns.
    pub back_pressure_ns: u64,
    /// The greatest delay after the due time, in ns.
    pub latest_ns: u64,
    /// Counts of applied faults, by line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faults: Option<Done>,
    /// Whether a signal ended the run early.
    pub interrupted: bool,
}

/// Sends datagrams when they are due.
#[derive(Debug)]
pub struct Player {
    pub(super) lines: Lines,
    stop: Stop,
    progress: Progress,
    pace: PlayPace,
    /// The session of datagrams packed here.
    pub session: MoldSession,
    staged: Staged,
    clock: Clock,
    start: Nanos,
    /// The time of the last clock read; never ahead of the clock.
    now: Nanos,
    last_sent: Nanos,
    recalibrate_at: Nanos,
    show_at: Nanos,
    /// The file's time that corresponds to a due time.
    origin: Option<(Nanos, Nanos)>,
    due: Nanos,
    /// Messages or datagrams so far, for a fixed rate.
    units: u64,
    /// Sequence of the next message, after a file of messages has been played.
    pub next_sequence: Option<u64>,
    heartbeats: u64,
    latest_ns: u64,
}

impl Player {
    /// A player for these lines.
    pub fn new(lines: Lines, stop: Stop, pace: PlayPace, session: MoldSession) -> Self {
        let clock = Clock::calibrate();
        let start = clock.now();
        Self {
            lines,
            stop,
            progress: Progress::counting("replaying", "datagrams", None),
            pace,
            session,
            staged: Staged::new(LARGEST_PACKET / BATCH),
            start,
            now: start,
            last_sent: start,
            recalibrate_at: start + HEARTBEAT_NS,
            show_at: start,
            clock,
            origin: None,
            due: start,
            units: 0,
            next_sequence: None,
            heartbeats: 0,
            latest_ns: 0,
        }
    }

    /// Sends one datagram when it is due, with others that are due by then. `sequence` is the sequence of a datagram
    /// that was packed here; its feed sends heartbeats. Returns `false` if the user stopped it.
    pub fn play(
        &mut self,
        time: Nanos,
        units: u64,
        payload: &[u8],
        sequence: Option<u64>,
    ) -> anyhow::Result<bool> {
        self.due = match self.pace {
            PlayPace::Max => self.now,
            PlayPace::Rate(schedule) => self.start + schedule.due_ns(self.units),
            PlayPace::Original(factor) => {
                let (from, at) = *self.origin.get_or_insert((time, self.due));
                at + (time.0.saturating_sub(from.0) as f64 / factor) as u64
            }
        };
        self.units += units;
        if self.due > self.now {
            self.now = self.clock.now();
        }
        if (self.due > self.now || self.staged.len() == BATCH) && !self.flush()? {
            return Ok(false);
        }
        if self.due > self.now && !self.wait(sequence)? {
            return Ok(false);
        }
        if matches!(self.pace, PlayPace::Original(_) | PlayPace::Rate(_)) {
            self.latest_ns = self.latest_ns.max(self.now.0.saturating_sub(self.due.0));
        }
        self.staged.push(payload);
        Ok(true)
    }

    /// Waits until the next datagram is due, and sends a heartbeat for every second of silence.
    fn wait(&mut self, sequence: Option<u64>) -> anyhow::Result<bool> {
        let pacer = Pacer::per_second(1, self.start);
        while self.now < self.due {
            let release = self.lines.next_release().unwrap_or(self.due);
            let until = self.due.min(self.now + LOOK_NS).min(release);
            self.now = pacer.wait(&self.clock, until, Waiting::Sleep);
            if self.stop.requested() || !self.lines.release(&self.clock, &self.stop)? {
                return Ok(false);
            }
            if let Some(sequence) = sequence
                && self.now < self.due
                && self.now.0.saturating_sub(self.last_sent.0) >= HEARTBEAT_NS
            {
                let packet = heartbeat(self.session, sequence);
                self.lines.send_one(&packet, &self.clock, &self.stop)?;
                self.heartbeats += 1;
                self.last_sent = self.now;
            }
            self.look();
        }
        Ok(true)
    }

    /// Sends the staged datagrams.
    pub fn flush(&mut self) -> anyhow::Result<bool> {
        if self.staged.len() > 0 {
            let sent = self.lines.send(&self.staged, &self.clock, &self.stop)?;
            self.staged.clear();
            self.now = self.clock.now();
            self.last_sent = self.now;
            if !sent {
                return Ok(false);
            }
        }
        self.look();
        Ok(!self.stop.requested())
    }

    /// Sends the staged datagrams and those that faults still buffer; no more follow.
    pub fn finish(&mut self) -> anyhow::Result<bool> {
        self.flush()?;
        self.lines.finish(&self.clock, &self.stop)
    }

    /// Recalibrates the clock and updates the progress, at intervals.
    fn look(&mut self) {
        if self.now >= self.recalibrate_at {
            self.clock.recalibrate();
            self.recalibrate_at = self.now + HEARTBEAT_NS;
        }
        if self.now >= self.show_at {
            self.progress.set(self.lines.carried().datagrams);
            self.show_at = self.now + LOOK_NS;
        }
    }

    /// Continues the schedule with the next file.
    pub fn next_file(&mut self) {
        self.origin = None;
        self.due = self.due.max(self.start);
    }

    /// Ends the session of datagrams packed here: at once, and repeatedly for `linger`.
    pub fn end(&mut self, linger: Duration) -> anyhow::Result<bool> {
        let Some(next) = self.next_sequence else { return self.lines.finish(&self.clock, &self.stop) };
        let packet = end_of_session(self.session, next);
        for _ in 0..ENDS {
            self.staged.push(&packet);
        }
        let until = self.clock.now() + u64::try_from(linger.as_nanos()).unwrap_or(u64::MAX);
        while self.flush()? {
            self.due = self.now + HEARTBEAT_NS;
            if self.due > until {
                return self.lines.finish(&self.clock, &self.stop);
            }
            if !self.wait(None)? {
                return Ok(false);
            }
            self.staged.push(&packet);
        }
        Ok(false)
    }

    /// Returns the result so far.
    pub fn outcome(&self, interrupted: bool) -> Outcome {
        let carried = self.lines.carried();
        let duration_ns = self.last_sent.0.saturating_sub(self.start.0).max(1);
        let per_second = |count: u64| count as f64 * 1e9 / duration_ns as f64;
        Outcome {
            datagrams: carried.datagrams,
            messages: self.next_sequence.map(|next| next - 1),
            bytes: carried.bytes,
            lines: self.lines.count(),
            heartbeats: self.heartbeats,
            duration_ns,
            datagrams_per_second: per_second(carried.datagrams),
            bytes_per_second: per_second(carried.bytes),
            back_pressure: carried.blocked,
            back_pressure_ns: carried.blocked_ns,
            latest_ns: self.latest_ns,
            faults: self.lines.faults().map(Faults::done).cloned(),
            interrupted,
        }
    }
}
