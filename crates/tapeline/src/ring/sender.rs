//! The sending loop of `ring pub`, and what it gives.

use std::time::Duration;

use serde::Serialize;
use tapeline_measure::{Clock, Nanos, Pacer, Percentiles, Recorder, Waiting, figures};
use tapeline_ring::{Name, Publisher, Refused};

use super::failures;
use super::message::{Message, Note, Stamps};
use super::publish::{Pause, Publish};
use crate::output::{self, Progress};
use crate::stop::Stop;

/// Messages between two looks at whether to stop, when there is no waiting to look in.
const MESSAGES_PER_LOOK: u64 = 1024;
/// How often the clock is compared with the kernel's, and the note and the progress brought up to date.
const UPKEEP_NS: u64 = 1_000_000_000;
/// How long a sleep may be, so that a signal is heeded soon.
const NAP: Duration = Duration::from_millis(20);

/// What was sent, as JSON.
#[derive(Serialize)]
pub(super) struct Summary {
    name: String,
    messages: u64,
    message_size: u64,
    queue_size: u64,
    seconds: f64,
    messages_per_second: f64,
    bytes_per_second: f64,
    /// Times that a message found the ring full.
    full: u64,
    /// The share of the time in which a message waited for room.
    held_back_share: f64,
    /// Subscribers that died and were dropped.
    reclaimed: u64,
    epoch: u32,
    /// Actual send less due, in ns; of paced messages only.
    #[serde(skip_serializing_if = "Option::is_none")]
    lateness: Option<Percentiles>,
}

/// The sending loop's state.
pub(super) struct Sender<'a> {
    publisher: Publisher,
    clock: Clock,
    stop: &'a Stop,
    wait: Pause,
    stamped: bool,
    len: usize,
    rate_hz: u64,
    /// Messages to send.
    total: u64,
    /// When to end.
    end: Nanos,
    start: Nanos,
    sent: u64,
    held_back_ns: u64,
    lateness: Recorder,
    upkeep_due: Nanos,
    /// When to end and how much of it is done, for people.
    progress: Progress,
    counts_messages: bool,
    name: &'a Name,
    capacity: usize,
}

impl<'a> Sender<'a> {
    pub(super) fn new(publisher: Publisher, options: &'a Publish, stop: &'a Stop) -> Self {
        let clock = Clock::calibrate();
        let progress = match (options.messages, options.seconds) {
            (Some(messages), _) => Progress::counting("publishing", "messages", Some(messages)),
            (None, Some(time)) => Progress::over("publishing", time),
            (None, None) => Progress::counting("publishing", "messages", None),
        };
        let start = clock.now();
        let time =
            options.seconds.map_or(u64::MAX, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let mut sender = Self {
            capacity: publisher.capacity(),
            publisher,
            clock,
            stop,
            wait: options.wait,
            stamped: !options.no_stamps,
            len: usize::try_from(options.message_size).unwrap_or(usize::MAX),
            rate_hz: options.rate,
            total: options.messages.unwrap_or(u64::MAX),
            end: Nanos(start.0.saturating_add(time)),
            start,
            sent: 0,
            held_back_ns: 0,
            lateness: Recorder::new(),
            upkeep_due: start + UPKEEP_NS,
            progress,
            counts_messages: options.messages.is_some() || options.seconds.is_none(),
            name: &options.name,
        };
        sender.write_note(start);
        sender
    }

    /// Message `k` is due at its time, however late the ones before it were.
    pub(super) fn send_paced(&mut self, rate: u64) {
        let pacer = Pacer::per_second(rate, self.start);
        let waiting = if self.wait == Pause::Sleep { Waiting::Sleep } else { Waiting::Spin };
        while self.sent < self.total {
            let due = pacer.due(self.sent);
            let mut now = self.clock.now();
            // The end is part of the schedule: what was due before it is sent.
            if due >= self.end || self.look(now) {
                return;
            }
            while now < due {
                // At most a nap at a time, so that slow rates hear signals.
                let until = due.min(now + NAP.as_nanos() as u64);
                now = pacer.wait(&self.clock, until, waiting);
                if self.look(now) {
                    return;
                }
            }
            // All that are due by now, without another look.
            let last = pacer.due_by(now).min(self.total).min(self.sent + MESSAGES_PER_LOOK);
            while self.sent < last {
                let due = pacer.due(self.sent);
                if due >= self.end || !self.send(Some(due)) {
                    return;
                }
            }
        }
    }

    pub(super) fn send_flat_out(&mut self) {
        while self.sent < self.total {
            if self.look(self.clock.now()) {
                return;
            }
            for _ in 0..MESSAGES_PER_LOOK.min(self.total - self.sent) {
                if !self.send(None) {
                    return;
                }
            }
        }
    }

    /// Publishes the next message, once there is room. `false`: it is time to end.
    #[inline]
    fn send(&mut self, due: Option<Nanos>) -> bool {
        let sequence = self.publisher.frames();
        loop {
            match self.publisher.claim(self.len) {
                Ok(mut claim) => {
                    let stamps = self.stamped.then(|| {
                        let sent = self.clock.now();
                        Stamps { due: due.unwrap_or(sent), sent }
                    });
                    Message { sequence, stamps }.write(&mut claim);
                    claim.commit();
                    self.sent += 1;
                    if let (Some(_), Some(Stamps { due, sent })) = (due, stamps) {
                        self.lateness.record(sent.since(due));
                    }
                    return true;
                }
                Err(Refused::Full) => {
                    if !self.wait_for_room() {
                        return false;
                    }
                }
                // The size was checked against the ring at the start.
                Err(Refused::TooLong) => return false,
            }
        }
    }

    /// Waits until the next message may fit. `false`: it is time to end.
    #[cold]
    fn wait_for_room(&mut self) -> bool {
        let begun = self.clock.now();
        let mut looks = 0u32;
        let room = loop {
            if self.publisher.claim(self.len).is_ok() {
                break true;
            }
            looks += 1;
            match self.wait {
                Pause::Spin => std::hint::spin_loop(),
                Pause::Yield => std::thread::yield_now(),
                // Readers at work make room within microseconds; one that does not is not worth a core.
                Pause::Sleep if looks < 1000 => std::hint::spin_loop(),
                Pause::Sleep => std::thread::sleep(Duration::from_micros(100)),
            }
            if looks.is_multiple_of(1024) && self.look(self.clock.now()) {
                break false;
            }
        };
        self.held_back_ns += u64::try_from(self.clock.now().since(begun)).unwrap_or(0);
        room
    }

    /// Whether it is time to end; and what is to be done now and then.
    fn look(&mut self, now: Nanos) -> bool {
        if now >= self.upkeep_due {
            self.upkeep_due = now + UPKEEP_NS;
            self.clock.recalibrate();
            self.publisher.flush();
            self.write_note(now);
            if self.counts_messages {
                self.progress.set(self.sent);
            } else {
                self.progress.set_elapsed();
            }
        }
        // A schedule's own end is looked at where it is followed: what was due before it is still sent, if there is room.
        let over =
            if self.rate_hz == 0 { now >= self.end } else { now.0 >= self.end.0.saturating_add(UPKEEP_NS) };
        over || self.stop.requested()
    }

    fn write_note(&mut self, now: Nanos) {
        let note = Note {
            calibration: self.clock.calibration(),
            rate_hz: self.rate_hz,
            elapsed_ns: u64::try_from(now.since(self.start)).unwrap_or(0),
            held_back_ns: self.held_back_ns,
        };
        self.publisher.set_note(note.to_words());
    }

    pub(super) fn finish(mut self) -> anyhow::Result<Summary> {
        let now = self.clock.now();
        self.write_note(now);
        let seconds = now.since(self.start).max(1) as f64 / 1e9;
        let elapsed_ns = now.since(self.start).max(1) as f64;
        let summary = Summary {
            name: self.name.to_string(),
            messages: self.sent,
            message_size: self.len as u64,
            queue_size: self.capacity as u64,
            seconds,
            messages_per_second: self.sent as f64 / seconds,
            bytes_per_second: self.sent as f64 * self.len as f64 / seconds,
            full: self.publisher.full(),
            held_back_share: self.held_back_ns as f64 / elapsed_ns,
            reclaimed: self.publisher.reclaimed(),
            epoch: self.publisher.epoch(),
            lateness: (self.lateness.samples() > 0).then(|| self.lateness.percentiles()),
        };
        self.publisher.close().map_err(failures::told)?;
        Ok(summary)
    }
}

impl Summary {
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "sent         {} messages of {} bytes in {:.1} s\n\
             throughput   {}   {}\n\
             held back    {:.1} % of the time",
            figures::thousands(self.messages),
            self.message_size,
            self.seconds,
            output::rate(self.messages_per_second, "msgs"),
            output::byte_rate(self.bytes_per_second),
            self.held_back_share * 100.0,
        );
        if self.reclaimed > 0 {
            text.push_str(&format!("\ndropped      {} dead subscribers", self.reclaimed));
        }
        if let Some(lateness) = &self.lateness {
            text.push_str("\n\n");
            text.push_str(&output::percentile_table(&[("due→sent", lateness)]));
        }
        text
    }
}
