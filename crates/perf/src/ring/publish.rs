//! `tapeline ring pub`: measured messages at a rate, or as fast as the subscribers read.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use tapeline_console::arguments::{self, Core};
use tapeline_console::failure::Hinted;
use tapeline_console::output::{self, Format};
use tapeline_console::stop::Stop;
use tapeline_measure::{figures, pin};
use tapeline_ring::{Broadcast, Discipline, Framing, Gated, Name, Options, PublisherOf};

use super::failures;
use super::message::{STAMPED_BYTES, Topic, UNSTAMPED_BYTES};
use super::sender::Sender;
use super::talk::Level;
use super::view;
use super::warm_up::WarmUp;

/// The minimum ring size in bytes.
const LEAST_QUEUE: u64 = 4096;
/// Publish time-stamped messages at a rate, or as fast as the subscribers read
#[derive(Debug, Args)]
#[command(after_help = "\
Creates the ring, or continues one whose publisher has died: its subscribers keep their positions. Each \
message carries its sequence number, its due time and its send time; `ring sub` reports latency \
percentiles. Ends after --messages or --seconds, or at Ctrl-C; subscribers can still read the backlog.

Examples:
  tapeline ring pub --name smem --rate 250k                        a quarter of a million a second
  tapeline ring pub --name smem --messages 100M --subscribers 1    wait for one subscriber, then full speed
  tapeline ring pub --name smem --message-size 100 --queue-size 8MiB --rate 1M --seconds 30 --cpu 1")]
pub struct Publish {
    /// The ring's name: 1 to 64 of A-Z a-z 0-9 . _ -
    #[arg(long, alias = "ring", value_name = "NAME", value_parser = failures::name)]
    pub(super) name: Name,

    /// Size of each message in bytes
    #[arg(long, value_name = "BYTES", default_value = "32", alias = "message_size", value_parser = arguments::size)]
    pub(super) message_size: u64,

    /// Size of the ring in bytes, rounded up to a power of two of at least 4 KiB
    #[arg(long, value_name = "BYTES", default_value = "1MiB", alias = "queue_size", value_parser = arguments::size)]
    queue_size: u64,

    /// Messages a second; 0 means as fast as the subscribers read
    #[arg(long, value_name = "RATE", default_value = "0", value_parser = arguments::rate)]
    pub(super) rate: u64,

    /// End after this many messages
    #[arg(long, value_name = "N", value_parser = arguments::rate)]
    pub(super) messages: Option<u64>,

    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = arguments::some_duration)]
    pub(super) seconds: Option<Duration>,

    /// Wait for this many subscribers before the first message
    #[arg(long, value_name = "N", default_value_t = 0, alias = "clients")]
    subscribers: usize,

    /// Pin the sending thread to this core; -1 means none
    #[arg(long, value_name = "CORE", value_parser = arguments::core, allow_negative_numbers = true)]
    cpu: Option<Core>,

    /// Warm-up before the measured time, as a number of messages (10k) or a time (500ms): sent as fast as they are read, and
    /// read completely before the measured time starts
    #[arg(long, value_name = "N|TIME", default_value = "0", value_parser = WarmUp::parse)]
    warmup: WarmUp,

    /// Keep the ring open for this long after the last message
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = arguments::duration)]
    linger: Duration,

    /// Do not wait for capacity: a message that finds the ring full is counted and not sent
    #[arg(long, alias = "non_blocking")]
    pub(super) non_blocking: bool,

    /// Frame layout: packed for the highest throughput, lines for the lowest latency
    #[arg(long, value_enum, default_value_t)]
    framing: Layout,

    /// Policy for slow subscribers: the publisher waits for them, or overtakes them
    #[arg(long, value_enum, default_value_t)]
    policy: Choice,

    /// Evict a subscriber that blocks the full ring for this long; 0 means never
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = arguments::duration)]
    stall_limit: Duration,

    /// Use huge pages for the ring, which is then at least 2 MiB
    #[arg(long)]
    huge_pages: bool,

    /// Keep the ring's memory from being paged out
    #[arg(long)]
    lock_memory: bool,

    /// Permission bits of the ring, in octal [default: 600, with --group 660]
    #[arg(long, value_name = "OCTAL", value_parser = mode)]
    mode: Option<u32>,

    /// Let the members of this group subscribe, by group ID
    #[arg(long, value_name = "GID")]
    group: Option<u32>,

    /// Short description of the ring's content, which subscribers can require
    #[arg(long, value_name = "TEXT", value_parser = Topic::new)]
    pub(super) topic: Option<Topic>,

    /// Iterations of an empty loop after each message, to simulate work
    #[arg(long, value_name = "TURNS", default_value_t = 0)]
    pub(super) spin: u32,

    /// How to wait until a message is due or the ring has capacity
    #[arg(long, value_enum, default_value_t)]
    pub(super) wait: Pause,

    /// Omit time stamps: no latencies, and no clock read for each message
    #[arg(long)]
    pub(super) no_stamps: bool,

    /// Write only the part of a message before its filler, which moves less memory
    #[arg(long)]
    pub(super) no_fill: bool,

    /// Keep the ring's name at the end, so that subscribers can still join and read the backlog
    #[arg(long)]
    keep: bool,

    /// Verbosity on standard error
    #[arg(long, value_enum, default_value_t, alias = "log_level", alias = "loglevel", ignore_case = true)]
    pub(super) log_level: Level,

    /// Output format of the summary
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// How the publisher waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Pause {
    /// Sleep until shortly before a message is due, then spin: low CPU use at low rates
    #[default]
    Sleep,
    /// Spin: uses a whole core, with the lowest lateness
    Spin,
    /// Yield the core between polls: for more threads than cores
    Yield,
}

/// The frame layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Layout {
    /// Frames follow each other without gaps
    #[default]
    Packed,
    /// Each frame has its own cache lines
    Lines,
}

impl Layout {
    /// The word on the command line.
    pub(super) fn word(self) -> String {
        arguments::word(&self)
    }
}

/// The policy for slow subscribers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Choice {
    /// The publisher waits: nothing is lost
    #[default]
    Gated,
    /// The publisher never waits: a slow subscriber is notified of what it lost
    Broadcast,
}

fn mode(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 => Ok(mode),
        _ => Err(format!("'{text}' is not a mode; write three octal digits, such as 660")),
    }
}

impl Publish {
    /// Runs the command to its end.
    ///
    /// # Errors
    /// If the ring cannot be used, or the process has no time or memory to lock.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals().context("cannot listen for signals")?;
        let capacity = self.capacity()?;
        let options = Options {
            capacity,
            mode: self.mode.unwrap_or(if self.group.is_some() { 0o660 } else { 0o600 }),
            group: self.group,
            framing: match self.framing {
                Layout::Packed => Framing::Packed,
                Layout::Lines => Framing::Lines,
            },
            stall_limit: self.stall_limit,
            huge_pages: self.huge_pages,
            keep: self.keep,
            ..Options::default()
        };
        match self.policy {
            Choice::Gated => self.publish::<Gated>(&options, &stop),
            Choice::Broadcast => self.publish::<Broadcast>(&options, &stop),
        }
    }

    fn publish<D: Discipline>(&self, options: &Options, stop: &Stop) -> anyhow::Result<ExitCode> {
        let publisher = PublisherOf::<D>::open(&self.name, options).map_err(failures::with_hint)?;
        self.check_message_size(publisher.max_frame() as u64)?;
        if self.lock_memory {
            publisher.lock_memory().map_err(failures::with_hint)?;
        }
        if publisher.epoch() > 1 {
            self.log_level.say(
                Level::Notice,
                &format!(
                    "continues ring {}: publisher {}, {} frames so far",
                    self.name,
                    publisher.epoch(),
                    figures::thousands(publisher.frames())
                ),
            );
        }
        if let Some(Core(Some(core))) = self.cpu {
            pin(core)?;
        }
        self.log_level.say(Level::Info, &self.settings(options));
        let mut sender = Sender::new(publisher, self, stop);
        sender.wait_for_subscribers(self.subscribers);
        sender.warm_up(self.warmup);
        sender.send_all(self.messages);
        let summary = sender.finish(self.linger)?;
        match self.format {
            Format::Table => output::print(&summary.text())?,
            Format::Json => output::print_json(&summary)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn settings(&self, options: &Options) -> String {
        let rate = match self.rate {
            0 => "as fast as they are read".to_owned(),
            rate => output::rate(rate as f64, "msgs"),
        };
        let core = match self.cpu {
            Some(Core(Some(core))) => format!("on core {core}"),
            _ => "on any core".to_owned(),
        };
        let capacity = view::bytes(options.capacity as u64);
        let (name, size, framing) = (&self.name, self.message_size, options.framing);
        format!("publishes ring {name} of {capacity}, {framing} frames: {size} bytes, {rate}, {core}")
    }

    fn capacity(&self) -> anyhow::Result<usize> {
        let bytes = self.queue_size.max(LEAST_QUEUE).checked_next_power_of_two();
        let Some(bytes) = bytes.and_then(|bytes| usize::try_from(bytes).ok()) else {
            let what = format!("--queue-size {} is larger than any memory", self.queue_size);
            return Err(Hinted::new(what, "1MiB is a good size; /dev/shm is the limit").into());
        };
        if bytes as u64 != self.queue_size {
            self.log_level
                .say(Level::Notice, &format!("--queue-size {} is rounded up to {bytes}", self.queue_size));
        }
        Ok(bytes)
    }

    fn check_message_size(&self, most: u64) -> anyhow::Result<()> {
        let least = if self.no_stamps { UNSTAMPED_BYTES } else { STAMPED_BYTES } as u64;
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
}
