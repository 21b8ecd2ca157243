//! `tapeline ring sub`: read a ring.

use std::io::BufWriter;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::{Args, ValueEnum};
use tapeline_measure::{Verdict, pin};
use tapeline_ring::{Error, Name, Start, Subscriber};

use super::failures;
use super::reader::{Measured, Raw, Reader};
use super::tally::{Tally, Wanted};
use crate::arguments;
use crate::output::{self, Format};
use crate::stop::Stop;

/// How often to look for a ring that is not there yet.
const LOOK_FOR_RING: Duration = Duration::from_millis(5);

/// Read a ring: check sequence and measure latency, or print what comes
#[derive(Debug, Args)]
#[command(after_help = "\
Messages of `ring pub` are checked for gaps and measured: from due to received (what a user of the data \
would see) and from sent to received (what the ring took). Frames of other publishers are counted, or \
printed with --raw. Ends with the publisher, after --messages or --seconds, or at Ctrl-C.

Examples:
  tapeline ring sub --name smem                                     until the publisher ends
  tapeline ring sub --name smem --cpu 2 --wait spin --messages 10M  the least latency: a core of its own
  tapeline ring sub --name smem --stats interval,latency            a line each second as well
  tapeline ring sub --name ticks --from oldest --raw | head         bytes of any ring, in hex
  tapeline ring sub --name smem --count --seconds 5                 only how many came")]
pub(super) struct Subscribe {
    /// The ring's name; `ring ls` lists them
    #[arg(long, value_name = "NAME", value_parser = failures::name)]
    pub(super) name: Name,

    /// Where to join: only what comes from now on, or from the oldest message that is still there
    #[arg(long, value_enum, default_value_t)]
    from: From,

    /// How to wait for the next message
    #[arg(long, value_enum, default_value_t)]
    pub(super) wait: How,

    /// End after so many messages
    #[arg(long, value_name = "N", value_parser = arguments::rate)]
    pub(super) messages: Option<u64>,

    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = arguments::some_duration)]
    pub(super) seconds: Option<Duration>,

    /// What to report, comma-separated; without latency the clock is not read for each message
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Stats::Latency, Stats::Throughput])]
    stats: Vec<Stats>,

    /// Print each frame instead: position, bytes, hex
    #[arg(long, conflicts_with_all = ["stats", "count", "format"])]
    raw: bool,

    /// Print only the number of frames at the end
    #[arg(long, conflicts_with_all = ["stats", "format"])]
    count: bool,

    /// Bind this thread to a core
    #[arg(long, value_name = "CORE")]
    cpu: Option<usize>,

    /// What to call this subscriber in `ring stat` [default: its command]
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,

    /// Wait so long for the ring to be made
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = arguments::duration)]
    wait_for_ring: Duration,

    /// How to print the summary
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Where to join.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum From {
    /// Only what comes from now on
    #[default]
    Newest,
    /// Also what is still in the ring
    Oldest,
}

/// How to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum How {
    /// Poll without a break: the least latency, a whole core
    Spin,
    /// Poll with the processor's pause: a whole core, kinder to its sibling
    Pause,
    /// Give the core away between polls
    Yield,
    /// Sleep until woken: no core while idle, tens of microseconds to wake up
    Park,
    /// Poll for 50 µs, then sleep
    #[default]
    Adaptive,
}

/// What to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stats {
    /// Percentiles at the end
    Latency,
    /// Messages and bytes a second, which is always in the summary
    Throughput,
    /// A line each second
    Interval,
}

impl Subscribe {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals().context("cannot listen for signals")?;
        if let Some(core) = self.cpu {
            pin(core)?;
        }
        let Some(subscriber) = self.join(&stop)? else { return Ok(ExitCode::SUCCESS) };
        let reader = Reader::new(subscriber, &self, &stop);
        if self.raw {
            reader.read(Raw { out: BufWriter::new(std::io::stdout().lock()), line: String::new() })?;
            return Ok(ExitCode::SUCCESS);
        }
        let intervals = self.stats.contains(&Stats::Interval) && !self.count;
        let latency = self.stats.contains(&Stats::Latency);
        let wanted = Wanted { latency: (latency || intervals) && !self.count, intervals };
        let (Measured { tally, .. }, note) =
            reader.read(Measured { tally: Tally::new(wanted), intervals })?;
        if self.count {
            output::print(&tally.frames().to_string())?;
            return Ok(ExitCode::SUCCESS);
        }
        let summary = tally.summary(note);
        match self.format {
            Format::Table => output::print(&summary.text(latency))?,
            Format::Json => output::print_json(&summary)?,
        }
        // Nothing may be lost: a gap is a failure of the ring or of its user, and scripts should see it.
        let lossy = summary.verdict == Some(Verdict::Lossy);
        Ok(if lossy { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    /// Joins, or waits until that is possible. `None`: it is time to end.
    fn join(&self, stop: &Stop) -> anyhow::Result<Option<Subscriber>> {
        let start = match self.from {
            From::Newest => Start::Newest,
            From::Oldest => Start::Oldest,
        };
        let begun = Instant::now();
        loop {
            let joined = match &self.label {
                Some(label) => Subscriber::join_as(&self.name, start, label),
                None => Subscriber::join(&self.name, start),
            };
            match joined {
                Ok(subscriber) => return Ok(Some(subscriber)),
                Err(Error::NotFound { .. }) if begun.elapsed() < self.wait_for_ring => {
                    if stop.requested() {
                        return Ok(None);
                    }
                    std::thread::sleep(LOOK_FOR_RING);
                }
                Err(error) => return Err(failures::told(error)),
            }
        }
    }
}
