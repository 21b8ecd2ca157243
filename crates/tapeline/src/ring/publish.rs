//! `tapeline ring pub`: measured messages at a rate, or as fast as the subscribers read.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
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

/// The smallest ring.
const LEAST_QUEUE: u64 = 4096;
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
    #[arg(long, alias = "ring", value_name = "NAME", value_parser = failures::name)]
    pub(super) name: Name,

    /// Bytes of each message
    #[arg(long, value_name = "BYTES", default_value = "32", alias = "message_size", value_parser = arguments::size)]
    pub(super) message_size: u64,

    /// Bytes of the ring, rounded up to a power of two of at least 4 KiB
    #[arg(long, value_name = "BYTES", default_value = "1MiB", alias = "queue_size", value_parser = arguments::size)]
    queue_size: u64,

    /// Messages a second; 0 = as fast as the subscribers read
    #[arg(long, value_name = "RATE", default_value = "0", value_parser = arguments::rate)]
    pub(super) rate: u64,

    /// End after so many messages
    #[arg(long, value_name = "N", value_parser = arguments::rate)]
    pub(super) messages: Option<u64>,

    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = arguments::some_duration)]
    pub(super) seconds: Option<Duration>,

    /// Wait for so many subscribers before the first message
    #[arg(long, value_name = "N", default_value_t = 0, alias = "clients")]
    subscribers: usize,

    /// Bind the sending thread to this core; -1 = to none
    #[arg(long, value_name = "CORE", value_parser = arguments::core, allow_negative_numbers = true)]
    cpu: Option<Core>,

    /// Send so many messages (10k), or for so long (500ms), before the measured time: as fast as they are read, and
    /// then wait until they are
    #[arg(long, value_name = "N|TIME", default_value = "0", value_parser = WarmUp::parse)]
    warmup: WarmUp,

    /// Stay so long after the last message before the ring ends
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = arguments::duration)]
    linger: Duration,

    /// Do not wait for room: a message that finds the ring full is counted and not sent
    #[arg(long, alias = "non_blocking")]
    pub(super) non_blocking: bool,

    /// How frames lie: packed for the most messages a second, lines for the least latency
    #[arg(long, value_enum, default_value_t)]
    framing: Layout,

    /// What becomes of slow subscribers: the publisher waits for them, or passes them
    #[arg(long, value_enum, default_value_t)]
    policy: Choice,

    /// Evict a subscriber that holds the full ring for so long; 0 = never
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = arguments::duration)]
    stall_limit: Duration,

    /// Lay the ring on huge pages: it is then at least 2 MiB
    #[arg(long)]
    huge_pages: bool,

    /// Keep the ring's memory from being paged out
    #[arg(long)]
    lock_memory: bool,

    /// Who may read, as permission bits in octal [default: 600, with --group 660]
    #[arg(long, value_name = "OCTAL", value_parser = mode)]
    mode: Option<u32>,

    /// Let the members of this group subscribe, by its number
    #[arg(long, value_name = "GID")]
    group: Option<u32>,

    /// A short text on what the ring carries, which subscribers can ask for
    #[arg(long, value_name = "TEXT", value_parser = Topic::new)]
    pub(super) topic: Option<Topic>,

    /// Turns of an empty loop after each message: work that a program would do
    #[arg(long, value_name = "TURNS", default_value_t = 0)]
    pub(super) spin: u32,

    /// How to wait until a message is due or there is room
    #[arg(long, value_enum, default_value_t)]
    pub(super) wait: Pause,

    /// Leave out the stamps: no latencies, and no reading of the clock for each message
    #[arg(long)]
    pub(super) no_stamps: bool,

    /// Write only what stands before the filler: less memory is moved than a message has
    #[arg(long)]
    pub(super) no_fill: bool,

    /// Leave the ring's name when done, so that subscribers can still join and read what is left
    #[arg(long)]
    keep: bool,

    /// How much to say on standard error
    #[arg(long, value_enum, default_value_t, alias = "log_level", alias = "loglevel", ignore_case = true)]
    pub(super) log_level: Level,

    /// How to print the summary
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// How the publisher waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Pause {
    /// Sleep until shortly before a message is due, then spin: no core is taken at low rates
    #[default]
    Sleep,
    /// Spin: a whole core, and the least lateness
    Spin,
    /// Give the core away between looks: for more threads than cores
    Yield,
}

/// How frames lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Layout {
    /// One behind the other
    #[default]
    Packed,
    /// Each on cache lines of its own
    Lines,
}

impl From<Layout> for Framing {
    fn from(layout: Layout) -> Self {
        match layout {
            Layout::Packed => Self::Packed,
            Layout::Lines => Self::Lines,
        }
    }
}

/// What becomes of slow subscribers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Choice {
    /// The publisher waits: nothing is lost
    #[default]
    Gated,
    /// The publisher never waits: who is slow is told what it has lost
    Broadcast,
}

fn mode(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 => Ok(mode),
        _ => Err(format!("'{text}' is no mode; write three octal digits, such as 660")),
    }
}

impl Publish {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals().context("cannot listen for signals")?;
        let capacity = self.capacity()?;
        let options = Options {
            capacity,
            mode: self.mode.unwrap_or(if self.group.is_some() { 0o660 } else { 0o600 }),
            group: self.group,
            framing: self.framing.into(),
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
        let publisher = PublisherOf::<D>::open(&self.name, options).map_err(failures::told)?;
        self.check_message_size(publisher.max_frame() as u64)?;
        if self.lock_memory {
            publisher.lock_memory().map_err(failures::told)?;
        }
        if publisher.epoch() > 1 {
            self.log_level.notice(&format!(
                "continues ring {}: publisher {}, {} frames so far",
                self.name,
                publisher.epoch(),
                figures::thousands(publisher.frames())
            ));
        }
        if let Some(Core(Some(core))) = self.cpu {
            pin(core)?;
        }
        self.log_level.info(&self.settings(options));
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
            self.log_level.notice(&format!("--queue-size {} is rounded up to {bytes}", self.queue_size));
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
