//! The sending loop of `ring pub`, and its summary.

use std::time::Duration;

use serde::Serialize;
use tapeline_console::output::{self, Progress};
use tapeline_console::stop::Stop;
use tapeline_measure::{Clock, Nanos, Pacer, Percentiles, Recorder, Waiting, figures};
use tapeline_ring::{Discipline, PublisherOf, Refused};

use super::failures;
use super::message::{Message, Note, Stamps};
use super::publish::{Pause, Publish};
use super::talk::Level;
use super::warm_up::{WarmUp, spin};

/// Messages between two checks whether to stop, when there is no wait to check in.
const MESSAGES_PER_LOOK: u64 = 1024;
/// Interval at which the clock is compared with the kernel's, and the note and the progress are updated.
const UPKEEP_NS: u64 = 1_000_000_000;
/// The longest sleep, so that a signal is handled soon.
const NAP: Duration = Duration::from_millis(20);

/// The longest wait for subscribers to read the warm-up. A subscriber that takes longer is measured from its
/// position.
const DRAIN_LIMIT_NS: u64 = 2_000_000_000;

/// The summary of a run, as JSON.
#[derive(Serialize)]
pub(super) struct PublishSummary {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<String>,
    /// Not counting the warm-up.
    messages: u64,
    /// Sent before the measured time.
    warm_up_messages: u64,
    message_size: u64,
    queue_size: u64,
    seconds: f64,
    messages_per_second: f64,
    bytes_per_second: f64,
    /// Messages that had to wait for capacity, each counted once however long it waited.
    held_back_messages: u64,
    /// Messages that were not sent because the ring was full; with --non-blocking only.
    refused: u64,
    /// The share of the time in which a message waited for capacity.
    held_back_share: f64,
    /// Subscribers that died and were dropped.
    reclaimed: u64,
    /// Live subscribers that blocked the full ring for longer than the stall limit.
    evicted: u64,
    epoch: u32,
    /// Actual send time less due time, in ns; of paced messages only.
    #[serde(skip_serializing_if = "Option::is_none")]
    lateness: Option<Percentiles>,
}

/// The sending loop's state.
pub(super) struct Sender<'a, D: Discipline> {
    publisher: PublisherOf<D>,
    clock: Clock,
    stop: &'a Stop,
    options: &'a Publish,
    stamped: bool,
    filled: bool,
    blocking: bool,
    spin: u32,
    len: usize,
    /// Messages to offer to the ring.
    total: u64,
    /// Time to send, in ns.
    time_ns: u64,
    end: Nanos,
    start: Nanos,
    /// Messages that were sent or refused since the start.
    offered: u64,
    refused: u64,
    warm_up: bool,
    warm_up_messages: u64,
    held_back_messages: u64,
    held_back_ns: u64,
    lateness: Recorder,
    upkeep_due: Nanos,
    /// Progress towards the end of the run, for people.
    progress: Progress,
}

impl<'a, D: Discipline> Sender<'a, D> {
    pub(super) fn new(publisher: PublisherOf<D>, options: &'a Publish, stop: &'a Stop) -> Self {
        let clock = Clock::calibrate();
        let progress = Progress::towards("publishing", "messages", options.messages, options.seconds);
        let start = clock.now();
        let mut sender = Self {
            publisher,
            clock,
            stop,
            options,
            stamped: !options.no_stamps,
            filled: !options.no_fill,
            blocking: !options.non_blocking,
            spin: options.spin,
            len: usize::try_from(options.message_size).unwrap_or(usize::MAX),
            total: u64::MAX,
            time_ns: options
                .seconds
                .map_or(u64::MAX, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
            end: Nanos(u64::MAX),
            start,
            offered: 0,
            refused: 0,
            warm_up: false,
            warm_up_messages: 0,
            held_back_messages: 0,
            held_back_ns: 0,
            lateness: Recorder::new(),
            upkeep_due: start + UPKEEP_NS,
            progress,
        };
        // A subscriber that joins before the first message can already see the publisher's note.
        sender.write_note(start);
        sender
    }

    /// Waits until this many subscribers have joined.
    pub(super) fn wait_for_subscribers(&self, wanted: usize) {
        if self.publisher.subscribers() < wanted {
            let whom = if wanted == 1 { "a subscriber" } else { "subscribers" };
            let text = format!("waiting for {whom} ({} of {wanted})", self.publisher.subscribers());
            self.options.log_level.say(Level::Notice, &text);
        }
        while self.publisher.subscribers() < wanted && !self.stop.requested() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Sends the warm-up as fast as subscribers read it, to touch every page of the ring and load the code into the
    /// caches; then waits until it has been read. Subscribers count these messages but do not measure them.
    pub(super) fn warm_up(&mut self, how_much: WarmUp) {
        if how_much.is_none() {
            return;
        }
        let blocking = std::mem::replace(&mut self.blocking, true);
        self.warm_up = true;
        match how_much {
            WarmUp::Messages(messages) => self.total = messages,
            WarmUp::Time(time) => {
                let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
                self.end = Nanos(self.clock.now().0.saturating_add(time));
            }
        }
        self.send_flat_out();
        self.publisher.flush();
        let begun = self.clock.now();
        let mut looks = 0u32;
        while self.publisher.backlog_bytes() > 0 && !self.stop.requested() {
            // Each check reads the line that each subscriber writes, so checks are spaced out.
            std::thread::sleep(Duration::from_micros(200));
            looks += 1;
            if looks.is_multiple_of(16) && self.clock.now().since(begun) >= DRAIN_LIMIT_NS as i64 {
                break;
            }
        }
        (self.warm_up, self.blocking) = (false, blocking);
        self.warm_up_messages = std::mem::take(&mut self.offered);
        let text = format!("warmed up with {} messages", figures::thousands(self.warm_up_messages));
        self.options.log_level.say(Level::Info, &text);
    }

    /// Sends messages; the measured time begins here. Ends after `messages`, after its time, or on a signal.
    pub(super) fn send_all(&mut self, messages: Option<u64>) {
        self.total = messages.unwrap_or(u64::MAX);
        (self.held_back_messages, self.held_back_ns, self.refused) = (0, 0, 0);
        self.start = self.clock.now();
        self.end = Nanos(self.start.0.saturating_add(self.time_ns));
        self.upkeep_due = self.start + UPKEEP_NS;
        self.write_note(self.start);
        match self.options.rate {
            0 => self.send_flat_out(),
            rate => self.send_paced(rate),
        }
    }

    /// Message `k` is due at its scheduled time, however late the messages before it were.
    fn send_paced(&mut self, rate: u64) {
        let pacer = Pacer::per_second(rate, self.start);
        let waiting = if self.options.wait == Pause::Sleep { Waiting::Sleep } else { Waiting::Spin };
        while self.offered < self.total {
            let due = pacer.due(self.offered);
            let mut now = self.clock.now();
            // The end is part of the schedule: messages due before it are sent.
            if due >= self.end || self.look(now) {
                return;
            }
            while now < due {
                // Wait at most `NAP` at a time, so that slow rates notice signals.
                let until = due.min(now + NAP.as_nanos() as u64);
                now = pacer.wait(&self.clock, until, waiting);
                if self.look(now) {
                    return;
                }
            }
            // Send all messages due by now without another check.
            let last = pacer.due_by(now).min(self.total).min(self.offered + MESSAGES_PER_LOOK);
            while self.offered < last {
                let due = pacer.due(self.offered);
                if due >= self.end || !self.send(Some(due)) {
                    return;
                }
            }
        }
    }

    fn send_flat_out(&mut self) {
        while self.offered < self.total {
            if self.look(self.clock.now()) {
                return;
            }
            for _ in 0..MESSAGES_PER_LOOK.min(self.total - self.offered) {
                if !self.send(None) {
                    return;
                }
            }
        }
    }

    /// Publishes the next message once the ring has capacity. `false`: it is time to end.
    #[inline]
    fn send(&mut self, due: Option<Nanos>) -> bool {
        let (sequence, warm_up, filled) = (self.publisher.frames(), self.warm_up, self.filled);
        let mut held_back = false;
        loop {
            match self.publisher.claim(self.len) {
                Ok(mut claim) => {
                    let stamps = self.stamped.then(|| {
                        let sent = self.clock.now();
                        Stamps { due: due.unwrap_or(sent), sent }
                    });
                    Message { sequence, stamps, warm_up, filled }.write(&mut claim);
                    claim.commit();
                    self.offered += 1;
                    if let (Some(_), Some(Stamps { due, sent })) = (due, stamps) {
                        self.lateness.record(sent.since(due));
                    }
                    spin(self.spin);
                    return true;
                }
                Err(Refused::Full) if !self.blocking => {
                    self.offered += 1;
                    self.refused += 1;
                    return true;
                }
                Err(Refused::Full) => {
                    self.held_back_messages += u64::from(!held_back);
                    held_back = true;
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
            match self.options.wait {
                Pause::Spin => std::hint::spin_loop(),
                Pause::Yield => std::thread::yield_now(),
                // Active readers free capacity within microseconds; waiting for a slow one is not worth a core.
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

    /// Does the periodic work; returns whether it is time to end.
    fn look(&mut self, now: Nanos) -> bool {
        if now >= self.upkeep_due {
            self.upkeep_due = now + UPKEEP_NS;
            self.clock.recalibrate();
            self.publisher.flush();
            self.write_note(now);
            self.progress.set(self.offered);
        }
        // `send_paced` checks the end of the schedule: messages due before it are still sent, if the ring has capacity.
        let has_schedule = self.options.rate > 0 && !self.warm_up;
        let over = if has_schedule { now.0 >= self.end.0.saturating_add(UPKEEP_NS) } else { now >= self.end };
        over || self.stop.requested()
    }

    fn write_note(&mut self, now: Nanos) {
        let note = Note {
            calibration: self.clock.calibration(),
            rate_hz: self.options.rate,
            held_back_share: self.held_back_ns as f64 / now.since(self.start).max(1) as f64,
            refused: u32::try_from(self.refused).unwrap_or(u32::MAX),
            topic: self.options.topic.unwrap_or_default(),
        };
        self.publisher.set_note(note.to_words());
    }

    /// Ends the ring `linger` after the last message, and returns the summary.
    pub(super) fn finish(mut self, linger: Duration) -> anyhow::Result<PublishSummary> {
        let now = self.clock.now();
        self.write_note(now);
        self.linger(linger);
        let elapsed_ns = now.since(self.start).max(1) as f64;
        let seconds = elapsed_ns / 1e9;
        let messages = self.offered - self.refused;
        let publisher = &self.publisher;
        let (epoch, queue_size) = (publisher.epoch(), publisher.capacity() as u64);
        let (reclaimed, evicted) = (publisher.reclaimed(), publisher.evicted());
        // Before the percentiles are computed: subscribers wait for the end.
        self.publisher.close().map_err(failures::with_hint)?;
        Ok(PublishSummary {
            name: self.options.name.to_string(),
            topic: self.options.topic.and_then(|topic| topic.text()),
            messages,
            warm_up_messages: self.warm_up_messages,
            message_size: self.len as u64,
            queue_size,
            seconds,
            messages_per_second: messages as f64 / seconds,
            bytes_per_second: messages as f64 * self.len as f64 / seconds,
            held_back_messages: self.held_back_messages,
            refused: self.refused,
            held_back_share: self.held_back_ns as f64 / elapsed_ns,
            reclaimed,
            evicted,
            epoch,
            lateness: (self.lateness.samples() > 0).then(|| self.lateness.percentiles()),
        })
    }

    /// Keeps the ring open for this time, so that late subscribers can still join and read the backlog.
    fn linger(&mut self, time: Duration) {
        let Ok(time_ns) = i64::try_from(time.as_nanos()) else { return };
        if time_ns == 0 {
            return;
        }
        self.publisher.flush();
        self.options.log_level.say(Level::Info, &format!("lingers for {time:?}"));
        let begun = self.clock.now();
        while self.clock.now().since(begun) < time_ns && !self.stop.requested() {
            std::thread::sleep(NAP.min(time));
        }
    }
}

impl PublishSummary {
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "sent         {} messages of {} bytes in {:.1} s\n\
             throughput   {}   {}\n\
             held back    {} messages, {:.1} % of the time",
            figures::thousands(self.messages),
            self.message_size,
            self.seconds,
            output::rate(self.messages_per_second, "msgs"),
            output::byte_rate(self.bytes_per_second),
            figures::thousands(self.held_back_messages),
            self.held_back_share * 100.0,
        );
        let mut count = |count: u64, what: &str| {
            if count > 0 {
                text.push_str(&format!("\n{}", what.replace('#', &figures::thousands(count))));
            }
        };
        count(self.warm_up_messages, "warm-up      # messages before, not measured");
        count(self.refused, "refused      # messages found the ring full and were not sent");
        count(self.reclaimed, "dropped      # dead subscribers");
        count(
            self.evicted,
            "evicted      # live subscribers held the full ring for longer than the stall limit",
        );
        if let Some(lateness) = &self.lateness {
            text.push_str("\n\n");
            text.push_str(&output::percentile_table(&[("due→sent", lateness)]));
        }
        text
    }
}
