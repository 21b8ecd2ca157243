//! `tapeline ring sub`: read a ring.

use std::io::BufWriter;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use tapeline_console::arguments::{self, Core};
use tapeline_console::output::{self, Format};
use tapeline_console::stop::Stop;
use tapeline_measure::{Verdict, instant, pin};
use tapeline_ring::{Broadcast, Error, Gated, Name, Start, SubscriberOf};

use super::failures;
use super::message::Topic;
use super::reader::{Measured, Raw, Reader};
use super::source::Readable;
use super::talk::Level;
use super::tally::{ReaderTally, Wanted};
use super::warm_up::WarmUp;

/// Interval at which to look for a ring that does not exist yet.
const LOOK_FOR_RING: Duration = Duration::from_millis(5);

/// Read a ring: check sequence numbers and measure latency, or print frames
#[derive(Debug, Args)]
#[command(after_help = "\
Messages of `ring pub` are checked for gaps and measured: from due time to receive time (what a user of \
the data would see) and from send time to receive time (the time in the ring). Frames of other \
publishers are counted, or printed with --raw. Ends with the publisher, after --messages or --seconds, or \
at Ctrl-C.

Examples:
  tapeline ring sub --name smem                                     until the publisher ends
  tapeline ring sub --name smem --cpu 2 --wait spin --messages 10M  the lowest latency, on a dedicated core
  tapeline ring sub --name smem --stats interval,latency            a line each second as well
  tapeline ring sub --name ticks --from oldest --raw | head         bytes of any ring, in hex
  tapeline ring sub --name smem --count --seconds 5                 only the number of frames")]
pub struct Subscribe {
    /// The ring's name; `ring ls` lists them
    #[arg(long, alias = "ring", value_name = "NAME", value_parser = failures::name)]
    pub(super) name: Name,

    /// Start with new messages only, or with the oldest message still in the ring
    #[arg(long, value_enum, default_value_t)]
    from: From,

    /// How to wait for the next message
    #[arg(long, value_enum, default_value_t)]
    pub(super) wait: How,

    /// End after this many messages
    #[arg(long, value_name = "N", value_parser = arguments::rate)]
    pub(super) messages: Option<u64>,

    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = arguments::some_duration)]
    pub(super) seconds: Option<Duration>,

    /// Figures to report, comma-separated; without latency, the clock is not read for each message
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Stats::Latency, Stats::Throughput])]
    stats: Vec<Stats>,

    /// Print each frame instead: position, bytes, hex
    #[arg(long, conflicts_with_all = ["stats", "count", "format"])]
    raw: bool,

    /// Print only the number of frames at the end
    #[arg(long, conflicts_with_all = ["stats", "format"])]
    count: bool,

    /// Only count messages, which costs the least: no clock is read, and gaps are found at the end
    #[arg(long, conflicts_with_all = ["stats", "count", "raw", "verify"])]
    fast: bool,

    /// Iterations of an empty loop after each message, to simulate work
    #[arg(long, value_name = "TURNS", default_value_t = 0, aliases = ["spin_cnt", "spin-count"])]
    pub(super) spin: u32,

    /// Copy each message out of the ring instead of reading it in place
    #[arg(long, conflicts_with = "batch")]
    pub(super) copy: bool,

    /// Copy up to this many messages out of the ring before processing them; a whole batch counts as received at once
    #[arg(long, value_name = "N", value_parser = batch)]
    pub(super) batch: Option<usize>,

    /// Check every byte of every message as well as the sequence numbers
    #[arg(long, alias = "test")]
    verify: bool,

    /// Exclude this many first messages (10k), or this time after the first message (2s)
    #[arg(long, value_name = "N|TIME", default_value = "0", value_parser = WarmUp::parse)]
    warmup: WarmUp,

    /// Refuse a ring that does not carry this topic
    #[arg(long, value_name = "TEXT", value_parser = Topic::new)]
    pub(super) topic: Option<Topic>,

    /// Pin this thread to a core; -1 means none
    #[arg(long, value_name = "CORE", value_parser = arguments::core, allow_negative_numbers = true)]
    cpu: Option<Core>,

    /// Name of this subscriber in `ring stat` [default: its command]
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,

    /// Keep the ring's memory from being paged out
    #[arg(long)]
    lock_memory: bool,

    /// Wait this long for the ring to appear
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = arguments::duration)]
    wait_for_ring: Duration,

    /// Verbosity on standard error
    #[arg(long, value_enum, default_value_t, alias = "log_level", alias = "loglevel", ignore_case = true)]
    pub(super) log_level: Level,

    /// Output format of the summary
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The largest batch: bounds memory, and a ring of 1 MiB has no more small messages than this.
const LARGEST_BATCH: usize = 65_536;

fn batch(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(frames) if (1..=LARGEST_BATCH).contains(&frames) => Ok(frames),
        _ => Err(format!("'{text}' is not between 1 and {LARGEST_BATCH}")),
    }
}

/// Where to start reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum From {
    /// Only new messages
    #[default]
    Newest,
    /// From the oldest message still in the ring
    Oldest,
}

/// How to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum How {
    /// Poll without a break: lowest latency, uses a whole core
    Spin,
    /// Poll with the processor's pause instruction: uses a whole core, but less of its sibling thread
    Pause,
    /// Yield the core between polls
    Yield,
    /// Sleep until woken: no CPU use while idle, tens of microseconds to wake up
    Park,
    /// Poll for 50 µs, then sleep
    #[default]
    Adaptive,
}

/// The figures to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stats {
    /// Percentiles at the end
    Latency,
    /// Messages and bytes a second; always in the summary
    Throughput,
    /// A line each second
    Interval,
}

impl Subscribe {
    /// Runs the command to its end.
    ///
    /// # Errors
    /// If the ring cannot be used, or the process has no time or memory to lock.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals().context("cannot listen for signals")?;
        if let Some(Core(Some(core))) = self.cpu {
            pin(core)?;
        }
        let begun = instant();
        loop {
            // The ring's creator chose the policy for slow subscribers; another ring can take its place meanwhile.
            let error = match self.join::<Gated>() {
                Ok(subscriber) => return self.read(subscriber, &stop),
                Err(Error::OtherPolicy { .. }) => match self.join::<Broadcast>() {
                    Ok(subscriber) => return self.read(subscriber, &stop),
                    Err(error) => error,
                },
                Err(error) => error,
            };
            if !matches!(error, Error::NotFound { .. }) || begun.elapsed() >= self.wait_for_ring {
                return Err(failures::with_hint(error));
            }
            if stop.requested() {
                return Ok(ExitCode::SUCCESS);
            }
            std::thread::sleep(LOOK_FOR_RING);
        }
    }

    fn read<D: Readable>(&self, subscriber: SubscriberOf<D>, stop: &Stop) -> anyhow::Result<ExitCode> {
        let reader = Reader::new(subscriber, self, stop);
        if self.raw {
            let out = BufWriter::new(std::io::stdout().lock());
            let (raw, _) = reader.read(Raw { out, line: String::new(), lossy: false })?;
            return Ok(status(raw.lossy));
        }
        let intervals = self.stats.contains(&Stats::Interval) && !self.count;
        let latency = self.stats.contains(&Stats::Latency) && !self.fast;
        let wanted = Wanted {
            latency: (latency || intervals) && !self.count,
            intervals,
            bytes: self.verify,
            warm_up: self.warmup,
        };
        let tally = ReaderTally::new(wanted);
        let (tally, note) = if self.fast {
            let (counted, note) = reader.read(Measured::<true> { tally, intervals })?;
            (counted.tally, note)
        } else {
            let (measured, note) = reader.read(Measured::<false> { tally, intervals })?;
            (measured.tally, note)
        };
        if self.count {
            output::print(&tally.frames.to_string())?;
            return Ok(status(tally.is_lossy()));
        }
        let summary = tally.summary(note);
        match self.format {
            Format::Table => output::print(&summary.text(latency))?,
            Format::Json => output::print_json(&summary)?,
        }
        Ok(status(summary.verdict == Some(Verdict::Lossy)))
    }

    /// Joins the ring if it has this policy.
    fn join<D: Readable>(&self) -> Result<SubscriberOf<D>, Error> {
        // Before a ring's first message its newest is its oldest: so a publisher that waits for this subscriber, and begins while it still joins, loses
        // no message.
        let has_begun = || tapeline_ring::inspect(&self.name).map_or(true, |ring| ring.publisher.frames > 0);
        let start = match self.from {
            From::Newest if has_begun() => Start::Newest,
            From::Newest | From::Oldest => Start::Oldest,
        };
        let subscriber = match &self.label {
            Some(label) => SubscriberOf::join_as(&self.name, start, label),
            None => SubscriberOf::join(&self.name, start),
        }?;
        if self.lock_memory {
            subscriber.lock_memory()?;
        }
        Ok(subscriber)
    }
}

/// The exit status. A loss is a failure of the ring or of its user, and scripts should notice it.
fn status(lossy: bool) -> ExitCode {
    if lossy { ExitCode::from(3) } else { ExitCode::SUCCESS }
}
