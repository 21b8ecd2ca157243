//! `tapeline ring pub`: measured messages at a rate, or as fast as the subscribers read.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde::Serialize;
use tapeline_measure::{Clock, Nanos, Pacer, Percentiles, Recorder, Waiting, figures, pin};
use tapeline_ring::{Name, Options, Publisher, Refused};

use super::failures;
use super::message::{Message, Note, STAMPED_BYTES, Stamps, UNSTAMPED_BYTES};
use crate::arguments;
use crate::failure::Hinted;
use crate::output::{self, Format, Progress};
use crate::stop::Stop;

/// The smallest ring.
const LEAST_QUEUE: u64 = 4096;
/// Messages between two looks at whether to stop, when there is no waiting to look in.
const MESSAGES_PER_LOOK: u64 = 1024;
/// How often the clock is compared with the kernel's, and the note and the progress brought up to date.
const UPKEEP_NS: u64 = 1_000_000_000;
/// How long a sleep may be, so that a signal is heeded soon.
const NAP: Duration = Duration::from_millis(20);

/// Publish measured messages at a rate, or as fast as the subscribers read
#[derive(Debug, Args)]
#[command(after_help = "\
Makes the ring, or continues one whose publisher has died: its subscribers keep their places. Each \
message carries its sequence, when it was due by the schedule, and when it was sent; `ring sub` turns \
them into percentiles. Ends after --messages or --seconds, or at Ctrl-C; subscribers read what is left.

Examples:
  tapeline ring pub --name smem --rate 250k                        a quarter of a million a second
  tapeline ring pub --name smem --messages 100M --subscribers 1    wait for one reader, then full speed
  tapeline ring pub --name smem --message-size 100 --queue-size 8MiB --rate 1M --seconds 30 --cpu 1")]
pub(super) struct Publish {
    /// The ring's name: 1 to 64 of A-Z a-z 0-9 . _ -
    #[arg(long, value_name = "NAME", value_parser = failures::name)]
    name: Name,

    /// Bytes of each message
    #[arg(long, value_name = "BYTES", default_value = "32", alias = "message_size", value_parser = arguments::size)]
    message_size: u64,

    /// Bytes of the ring, rounded up to a power of two of at least 4 KiB
    #[arg(long, value_name = "BYTES", default_value = "1MiB", alias = "queue_size", value_parser = arguments::size)]
    queue_size: u64,

    /// Messages a second; 0 = as fast as the subscribers read
    #[arg(long, value_name = "RATE", default_value = "0", value_parser = arguments::rate)]
    rate: u64,

    /// End after so many messages
    #[arg(long, value_name = "N", value_parser = arguments::rate)]
    messages: Option<u64>,

    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = arguments::some_duration)]
    seconds: Option<Duration>,

    /// Wait for so many subscribers before the first message
    #[arg(long, value_name = "N", default_value_t = 0)]
    subscribers: usize,

    /// Bind the sending thread to this core
    #[arg(long, value_name = "CORE")]
    cpu: Option<usize>,

    /// How to wait until a message is due or there is room
    #[arg(long, value_enum, default_value_t)]
    wait: Pause,

    /// Leave out the stamps: no latencies, and no reading of the clock for each message
    #[arg(long)]
    no_stamps: bool,

    /// Leave the ring's name when done, so that subscribers can still join and read what is left
    #[arg(long)]
    keep: bool,

    /// How to print the summary
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// How the publisher waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Pause {
    /// Sleep until shortly before a message is due, then spin: no core is taken at low rates
    #[default]
    Sleep,
    /// Spin: a whole core, and the least lateness
    Spin,
    /// Give the core away between looks: for more threads than cores
    Yield,
}

/// What was sent, as JSON.
#[derive(Serialize)]
struct Summary {
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

impl Publish {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals().context("cannot listen for signals")?;
        let capacity = self.capacity()?;
        let options = Options { capacity, keep: self.keep, ..Options::default() };
        let publisher = Publisher::open(&self.name, &options).map_err(failures::told)?;
        self.check_message_size(&publisher)?;
        if publisher.epoch() > 1 {
            anstream::eprintln!(
                "continues ring {}: publisher {}, {} frames so far",
                self.name,
                publisher.epoch(),
                figures::thousands(publisher.frames())
            );
        }
        if let Some(core) = self.cpu {
            pin(core)?;
        }
        self.wait_for_subscribers(&publisher, &stop);
        let mut sender = Sender::new(publisher, &self, &stop);
        match self.rate {
            0 => sender.send_flat_out(),
            rate => sender.send_paced(rate),
        }
        let summary = sender.finish()?;
        match self.format {
            Format::Table => output::print(&summary.text())?,
            Format::Json => output::print_json(&summary)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn capacity(&self) -> anyhow::Result<usize> {
        let bytes = self.queue_size.max(LEAST_QUEUE).checked_next_power_of_two();
        let Some(bytes) = bytes.and_then(|bytes| usize::try_from(bytes).ok()) else {
            let what = format!("--queue-size {} is larger than any memory", self.queue_size);
            return Err(Hinted::new(what, "1MiB is a good size; /dev/shm is the limit").into());
        };
        if bytes as u64 != self.queue_size {
            anstream::eprintln!("--queue-size {} is rounded up to {bytes}", self.queue_size);
        }
        Ok(bytes)
    }

    fn check_message_size(&self, publisher: &Publisher) -> anyhow::Result<()> {
        let least = if self.no_stamps { UNSTAMPED_BYTES } else { STAMPED_BYTES } as u64;
        let most = publisher.max_frame() as u64;
        if (least..=most).contains(&self.message_size) {
            return Ok(());
        }
        let what = format!("--message-size {} is not between {least} and {most}", self.message_size);
        let hint = if self.message_size > most {
            "a message takes at most a quarter of the ring: give a larger --queue-size"
        } else {
            "sequence and stamps take 24 bytes; with --no-stamps 8 are enough"
        };
        Err(Hinted::new(what, hint).into())
    }

    fn wait_for_subscribers(&self, publisher: &Publisher, stop: &Stop) {
        if publisher.subscribers() < self.subscribers {
            let wanted = if self.subscribers == 1 { "a subscriber" } else { "subscribers" };
            anstream::eprintln!("waiting for {wanted} ({} of {})", publisher.subscribers(), self.subscribers);
        }
        while publisher.subscribers() < self.subscribers && !stop.requested() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The sending loop's state.
struct Sender<'a> {
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
    fn new(publisher: Publisher, options: &'a Publish, stop: &'a Stop) -> Self {
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
    fn send_paced(&mut self, rate: u64) {
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

    fn send_flat_out(&mut self) {
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

    fn finish(mut self) -> anyhow::Result<Summary> {
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
    fn text(&self) -> String {
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
