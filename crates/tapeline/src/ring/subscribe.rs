//! `tapeline ring sub`: read a ring.

use std::fmt::Write as _;
use std::io::{BufWriter, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::{Args, ValueEnum};
use tapeline_measure::{Clock, Nanos, Verdict, pin};
use tapeline_ring::{Error, Name, Poll, Position, Start, Subscriber, Wait};

use super::failures;
use super::message::Note;
use super::tally::{Tally, Wanted};
use crate::arguments;
use crate::failure::Hinted;
use crate::output::{self, Format, Progress};
use crate::stop::Stop;

/// Frames between two looks at the clock, and empty polls between two.
const FRAMES_PER_LOOK: u64 = 4096;
const POLLS_PER_LOOK: u32 = 16_384;
/// How often the publisher's note, its life and the progress are looked at.
const UPKEEP_NS: u64 = 1_000_000_000;
/// The longest wait in the ring, so that a signal is heeded soon.
const NAP: Duration = Duration::from_millis(20);
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
    name: Name,

    /// Where to join: only what comes from now on, or from the oldest message that is still there
    #[arg(long, value_enum, default_value_t)]
    from: From,

    /// How to wait for the next message
    #[arg(long, value_enum, default_value_t)]
    wait: How,

    /// End after so many messages
    #[arg(long, value_name = "N", value_parser = arguments::rate)]
    messages: Option<u64>,

    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = arguments::some_duration)]
    seconds: Option<Duration>,

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
enum How {
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

/// What is done with what comes.
trait Sink {
    /// Takes a frame.
    fn take(&mut self, position: Position, frame: &[u8], clock: &Clock) -> anyhow::Result<()>;

    /// The first frame of a publisher is about to be taken; `note` is the publisher's, where it is a `ring pub`.
    fn begin(&mut self, _now: Nanos, _note: Option<Note>) {}

    /// All frames that there were have been taken by now; called now and then.
    fn seen(&mut self, _now: Nanos) -> anyhow::Result<()> {
        Ok(())
    }

    /// Called about once a second.
    fn upkeep(&mut self, _now: Nanos) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Prints frames.
struct Raw<W: Write> {
    out: W,
    line: String,
}

impl<W: Write> Sink for Raw<W> {
    fn take(&mut self, position: Position, frame: &[u8], _clock: &Clock) -> anyhow::Result<()> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        self.line.clear();
        // Cannot fail: it writes to memory.
        let _ = write!(self.line, "{} {} ", position, frame.len());
        for byte in frame {
            self.line.push(char::from(DIGITS[usize::from(byte >> 4)]));
            self.line.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
        self.line.push('\n');
        self.out.write_all(self.line.as_bytes()).context("cannot write to standard output")
    }

    fn seen(&mut self, _now: Nanos) -> anyhow::Result<()> {
        self.out.flush().context("cannot write to standard output")
    }
}

/// Checks and measures.
struct Measured {
    tally: Tally,
    intervals: bool,
}

impl Sink for Measured {
    #[inline]
    fn take(&mut self, _position: Position, frame: &[u8], clock: &Clock) -> anyhow::Result<()> {
        self.tally.take(frame, clock);
        Ok(())
    }

    fn begin(&mut self, now: Nanos, note: Option<Note>) {
        self.tally.begin(now, note.is_none_or(|note| note.rate_hz > 0));
    }

    fn seen(&mut self, now: Nanos) -> anyhow::Result<()> {
        self.tally.seen(now);
        Ok(())
    }

    fn upkeep(&mut self, now: Nanos) -> anyhow::Result<()> {
        if self.intervals && self.tally.frames() > 0 {
            let line = self.tally.interval_line(now);
            output::print(&line)?;
        }
        Ok(())
    }
}

/// The reading loop's state.
struct Reader<'a> {
    subscriber: Subscriber,
    clock: Clock,
    /// The publisher's, where it is a `ring pub`.
    note: Option<Note>,
    stop: &'a Stop,
    how: How,
    total: u64,
    end: Nanos,
    /// The publisher of the last frame; none has this number before the first.
    epoch: u32,
    taken: u64,
    /// Frames taken at the last look.
    looked_at: u64,
    upkeep_due: Nanos,
    polls: u32,
    progress: Progress,
    counts_messages: bool,
    /// Whether the last poll found nothing.
    dry: bool,
    /// Whether the publisher was found dead since the last frame, and that was said.
    orphaned: bool,
    /// Whether the ring has neither a publisher nor a name.
    forsaken: bool,
    name: &'a Name,
}

impl<'a> Reader<'a> {
    fn new(subscriber: Subscriber, options: &'a Subscribe, stop: &'a Stop) -> Self {
        let note = read_note(&subscriber);
        let clock = note.map_or_else(Clock::calibrate, |note| Clock::with(note.calibration));
        let now = clock.now();
        let time =
            options.seconds.map_or(u64::MAX, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let progress = match (options.messages, options.seconds) {
            (Some(messages), _) => Progress::counting("reading", "messages", Some(messages)),
            (None, Some(time)) => Progress::over("reading", time),
            (None, None) => Progress::counting("reading", "messages", None),
        };
        Self {
            subscriber,
            clock,
            note,
            stop,
            how: options.wait,
            total: options.messages.unwrap_or(u64::MAX),
            end: Nanos(now.0.saturating_add(time)),
            epoch: u32::MAX,
            taken: 0,
            looked_at: 0,
            upkeep_due: now + UPKEEP_NS,
            polls: 0,
            progress,
            counts_messages: options.messages.is_some() || options.seconds.is_none(),
            dry: false,
            orphaned: false,
            forsaken: false,
            name: &options.name,
        }
    }

    /// Reads until there is a reason to end. Gives the sink back, and the publisher's last note.
    fn read<S: Sink>(mut self, mut sink: S) -> anyhow::Result<(S, Option<Note>)> {
        while self.taken < self.total {
            match self.subscriber.next() {
                Poll::Frame(frame) if frame.epoch() == self.epoch => {
                    sink.take(frame.position(), &frame, &self.clock)?;
                    self.dry = false;
                    self.taken += 1;
                    if self.taken.is_multiple_of(FRAMES_PER_LOOK) && self.look(&mut sink)? {
                        break;
                    }
                }
                // The first of a publisher: from here on its note is the one that counts.
                Poll::Frame(frame) => {
                    let (epoch, position, bytes) = (frame.epoch(), frame.position(), frame.to_vec());
                    self.follow_publisher(epoch, &mut sink);
                    sink.take(position, &bytes, &self.clock)?;
                    self.dry = false;
                    self.taken += 1;
                }
                // Empty after it was found that nothing more can come.
                Poll::Empty if self.forsaken => break,
                Poll::Empty => {
                    self.dry = true;
                    if self.idle(&mut sink)? {
                        break;
                    }
                }
                Poll::Ended => break,
                Poll::Damaged { position } => {
                    let what = format!(
                        "ring {} is damaged at position {position}: no frame stands there",
                        self.name
                    );
                    let hint =
                        "something other than its publisher has written into it; start the publisher anew";
                    return Err(Hinted::new(what, hint).into());
                }
                _ => break,
            }
        }
        if self.taken != self.looked_at {
            sink.seen(self.clock.now())?;
        }
        // The last one says how the run ended; a ring that was never one of `ring pub` has none.
        let note = read_note(&self.subscriber).or(self.note);
        Ok((sink, note))
    }

    /// Waits for the next frame. `true`: it is time to end.
    #[inline]
    fn idle(&mut self, sink: &mut impl Sink) -> anyhow::Result<bool> {
        let wait = match self.how {
            How::Spin | How::Pause => {
                if self.how == How::Pause {
                    std::hint::spin_loop();
                }
                self.polls += 1;
                if self.polls < POLLS_PER_LOOK {
                    return Ok(false);
                }
                self.polls = 0;
                return self.look(sink);
            }
            How::Yield => Wait::Yield,
            How::Park => Wait::Park,
            How::Adaptive => Wait::Adaptive,
        };
        if self.subscriber.wait(wait, NAP) { Ok(false) } else { self.look(sink) }
    }

    /// What is to be done now and then; whether it is time to end.
    #[cold]
    fn look(&mut self, sink: &mut impl Sink) -> anyhow::Result<bool> {
        let now = self.clock.now();
        if self.taken != self.looked_at {
            self.looked_at = self.taken;
            self.orphaned = false;
            sink.seen(now)?;
        }
        if now >= self.upkeep_due {
            self.upkeep_due = now + UPKEEP_NS;
            self.follow_clock();
            sink.upkeep(now)?;
            if self.counts_messages {
                self.progress.set(self.taken);
            } else {
                self.progress.set_elapsed();
            }
            if self.dry && !self.subscriber.publisher_alive().map_err(failures::told)? {
                self.look_for_successor()?;
            }
        }
        Ok(now >= self.end || self.stop.requested())
    }

    /// Another publisher, or the first one, has begun: its clock is the one that its stamps are of.
    #[cold]
    fn follow_publisher(&mut self, epoch: u32, sink: &mut impl Sink) {
        self.epoch = epoch;
        self.note = read_note(&self.subscriber);
        if let Some(note) = self.note {
            self.clock = Clock::with(note.calibration);
        }
        sink.begin(self.clock.now(), self.note);
    }

    /// The publisher recalibrates once a second, and so does who reads its stamps; otherwise the clock is our own.
    fn follow_clock(&mut self) {
        match read_note(&self.subscriber) {
            Some(note) => {
                self.note = Some(note);
                self.clock = Clock::with(note.calibration);
            }
            None => {
                self.clock.recalibrate();
            }
        }
    }

    /// All has been read, and there is no publisher. Either it has just ended the ring, which `next` will say; or it has
    /// died, and another may continue the ring as long as it has its name.
    fn look_for_successor(&mut self) -> anyhow::Result<()> {
        self.forsaken = !self.subscriber.is_named().map_err(failures::told)?;
        if !self.forsaken && !std::mem::replace(&mut self.orphaned, true) {
            let name = self.name;
            self.progress
                .say(&format!("the publisher of ring {name} died; waiting for another (Ctrl-C ends)"));
        }
        Ok(())
    }
}

fn read_note(subscriber: &Subscriber) -> Option<Note> {
    subscriber.note().and_then(Note::from_words)
}
