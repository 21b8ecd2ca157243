//! Sends datagrams on the lines of a feed when they are due.

use std::time::Duration;

use serde::Serialize;
use tapeline_console::output::Progress;
use tapeline_console::stop::Stop;
use tapeline_feed::capture::LARGEST_PACKET;
use tapeline_feed::moldudp64::MoldSession;
use tapeline_feed::simulate::Schedule;
use tapeline_measure::{Clock, Nanos, Waiting};

use super::faults::Done;
use super::lines::{BATCH, Lines, Staged};
use super::sending::Sending;

/// When datagrams are due.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    pub(super) out: Sending,
    pace: PlayPace,
    /// The session of datagrams packed here.
    pub session: MoldSession,
    staged: Staged,
    /// The time of the last clock read; never ahead of the clock.
    now: Nanos,
    /// The file's time that corresponds to a due time.
    origin: Option<(Nanos, Nanos)>,
    due: Nanos,
    /// Messages or datagrams so far, for a fixed rate.
    units: u64,
    /// Sequence of the next message, after a file of messages has been played.
    pub next_sequence: Option<u64>,
    latest_ns: u64,
}

impl Player {
    /// A player for these lines.
    pub fn new(lines: Lines, stop: Stop, pace: PlayPace, session: MoldSession) -> Self {
        let clock = Clock::calibrate();
        let start = clock.now();
        let progress = Progress::counting("replaying", "datagrams", None);
        Self {
            out: Sending::new(lines, stop, clock, start, Waiting::Sleep, progress),
            pace,
            session,
            staged: Staged::new(LARGEST_PACKET / BATCH),
            now: start,
            origin: None,
            due: start,
            units: 0,
            next_sequence: None,
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
            PlayPace::Rate(schedule) => self.out.start + schedule.due_ns(self.units),
            PlayPace::Original(factor) => {
                let (from, at) = *self.origin.get_or_insert((time, self.due));
                at + (time.0.saturating_sub(from.0) as f64 / factor) as u64
            }
        };
        self.units += units;
        if self.due > self.now {
            self.now = self.out.clock.now();
        }
        if (self.due > self.now || self.staged.len() == BATCH) && !self.flush()? {
            return Ok(false);
        }
        if self.due > self.now {
            // Sends a heartbeat for every second of silence.
            let silence = sequence.map(|sequence| (self.session, sequence));
            let woken = self.out.wait(self.due, self.out.lines.carried.datagrams, silence)?;
            let Some(now) = woken else { return Ok(false) };
            self.now = now;
        }
        if self.pace != PlayPace::Max {
            self.latest_ns = self.latest_ns.max(self.now.0.saturating_sub(self.due.0));
        }
        self.staged.push(payload);
        Ok(true)
    }

    /// Sends the staged datagrams.
    pub fn flush(&mut self) -> anyhow::Result<bool> {
        if self.staged.len() > 0 {
            let sent = self.out.send(&self.staged)?;
            self.staged.clear();
            self.now = self.out.clock.now();
            self.out.last_sent = self.now;
            if !sent {
                return Ok(false);
            }
        }
        self.out.look(self.now, self.out.lines.carried.datagrams);
        Ok(!self.out.stop.requested())
    }

    /// Sends the staged datagrams and those that faults still buffer; no more follow.
    pub fn finish(&mut self) -> anyhow::Result<bool> {
        self.flush()?;
        self.out.finish()
    }

    /// Continues the schedule with the next file.
    pub fn next_file(&mut self) {
        self.origin = None;
        self.due = self.due.max(self.out.start);
    }

    /// Sends the staged datagrams, then ends the session of datagrams packed here: at once, and repeatedly for `linger`.
    pub fn end(&mut self, linger: Duration) -> anyhow::Result<bool> {
        if !self.flush()? {
            return Ok(false);
        }
        let Some(next) = self.next_sequence else { return self.out.finish() };
        self.out.end(self.session, next, self.out.lines.carried.datagrams, linger)
    }

    /// Returns the result so far.
    pub fn outcome(&self, interrupted: bool) -> Outcome {
        let Sending { lines, heartbeats, .. } = &self.out;
        let (carried, duration_ns) = (lines.carried, self.out.duration_ns());
        let per_second = |count: u64| count as f64 * 1e9 / duration_ns as f64;
        Outcome {
            datagrams: carried.datagrams,
            messages: self.next_sequence.map(|next| next - 1),
            bytes: carried.bytes,
            lines: lines.count(),
            heartbeats: *heartbeats,
            duration_ns,
            datagrams_per_second: per_second(carried.datagrams),
            bytes_per_second: per_second(carried.bytes),
            back_pressure: carried.blocked,
            back_pressure_ns: carried.blocked_ns,
            latest_ns: self.latest_ns,
            faults: lines.done(),
            interrupted,
        }
    }
}
