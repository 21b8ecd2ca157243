//! Following a plant's ring: the code that `watch`, `measure` and `tally` share.

use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use tapeline_console::{FilePath, Hinted, Stop, arguments};
use tapeline_measure::{Clock, Nanos};
use tapeline_node::ticks::{self, Next};
use tapeline_perf::path::Ending;
use tapeline_plant::Note;
use tapeline_plant::tick::{Flags, Tick};
use tapeline_ring::{Name, Start, Subscriber, Wait};

use super::resumed::Resumed;

/// The ring to follow, and how to follow it.
#[derive(Debug, Args)]
pub(crate) struct FollowArgs {
    /// The plant's ring
    #[arg(long, default_value = "tapeline", value_name = "NAME")]
    pub(crate) ring: String,
    /// Start with new ticks, or with the oldest tick still in the ring
    #[arg(long, value_enum, default_value_t = From::Newest)]
    pub(crate) from: From,
    /// Read ticks from the plant's journal instead of its ring, which must exist: those from --from-sequence on, then new ticks as the
    /// plant writes them. Each tick is read exactly once, even if the plant is killed and this reader restarts after
    /// the last sequence number that it read
    #[arg(long, value_name = "FOLDER", requires = "from_sequence")]
    pub(crate) journal: Option<FilePath>,
    /// First sequence number to read from the journal; to continue, the last one that was read plus 1
    #[arg(long, value_name = "N", requires = "journal", conflicts_with = "from")]
    pub(crate) from_sequence: Option<u64>,
    /// How to wait for the next tick: "spin" and "pause" use a whole core, "park" sleeps in the kernel
    #[arg(long, value_enum, default_value_t = WaitFor::Park)]
    pub(crate) wait: WaitFor,
    /// Pin the reading thread to this core
    #[arg(long, value_name = "CORE")]
    pub(crate) cpu: Option<usize>,
    /// Wait this long for the ring to appear
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = arguments::duration)]
    pub(crate) wait_for_ring: Duration,
    /// End after this many ticks
    #[arg(long, value_name = "COUNT")]
    pub(crate) ticks: Option<u64>,
    /// End after this long
    #[arg(long, value_name = "TIME", value_parser = arguments::duration)]
    pub(crate) duration: Option<Duration>,
    /// End when the feed ends its session
    #[arg(long)]
    pub(crate) until_end_of_session: bool,
}

/// The first tick to read.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum From {
    /// Only ticks published from now on
    Newest,
    /// From the oldest tick still in the ring
    Oldest,
}

/// How to wait.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum WaitFor {
    /// Poll without a break
    Spin,
    /// Poll with a pause instruction
    Pause,
    /// Yield the core between polls
    Yield,
    /// Sleep in the kernel until a tick is published
    Park,
    /// Poll for a while, then sleep
    Adaptive,
}

impl WaitFor {
    fn strategy(self) -> Wait {
        match self {
            Self::Spin => Wait::Spin,
            Self::Pause => Wait::Pause,
            Self::Yield => Wait::Yield,
            Self::Park => Wait::Park,
            Self::Adaptive => Wait::Adaptive,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Follow {
    subscriber: Subscriber,
    /// The source of the ticks, if it is not the ring.
    resumed: Option<Resumed>,
    wait: Wait,
    stop: Stop,
    /// Its error bounds that of times compared with the plant's stamps.
    pub(crate) clock: Clock,
    ticks_left: u64,
    duration: Option<Duration>,
    until_end_of_session: bool,
    /// The feed whose end of session counts; if `None`, any feed's.
    pub(crate) feed: Option<u16>,
}

/// Interval between checks of signals, limits and the plant's life.
const LOOK_NS: i64 = 50_000_000;
/// The longest single wait, so that signals, limits and a dead plant are noticed.
const LONGEST_WAIT: Duration = Duration::from_millis(50);
/// How long to sleep while a tick that is on the ring is not in the journal yet: the journal does not wake its
/// reader.
const WHILE_BEHIND: Duration = Duration::from_micros(200);

impl Follow {
    /// Joins the ring; `label` is what `tapeline ring stat` shows.
    pub(crate) fn join(args: &FollowArgs, label: &str, stop: Stop) -> anyhow::Result<Self> {
        if let Some(core) = args.cpu {
            tapeline_measure::pin(core)?;
        }
        let name = Name::new(&args.ring)?;
        let start = match args.from {
            From::Newest => Start::Newest,
            From::Oldest => Start::Oldest,
        };
        let clock = Clock::calibrate();
        let begun = clock.now();
        let subscriber = loop {
            let error = match Subscriber::join_as(&name, start, label) {
                Ok(subscriber) => break subscriber,
                Err(error) => error,
            };
            let what = "cannot join the plant's ring";
            if !matches!(error, tapeline_ring::Error::NotFound { .. }) {
                return match error.hint() {
                    Some(hint) => Err(error).context(Hinted::new(what, hint)),
                    None => Err(error).context(what),
                };
            }
            if clock.now().since(begun) >= args.wait_for_ring.as_nanos() as i64 || stop.requested() {
                let rings = tapeline_ring::list().unwrap_or_default();
                let names: Vec<_> = rings.iter().map(|ring| ring.name.as_str()).collect();
                let hint = match names.join(", ") {
                    none if none.is_empty() => {
                        "no ring exists: start a plant first, or give --wait-for-ring 30s".to_owned()
                    }
                    names => format!("these rings exist: {names}"),
                };
                return Err(error).context(Hinted::new(what, hint));
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let resumed = match (&args.journal, args.from_sequence) {
            (Some(journal), Some(from)) => Some(Resumed::open(journal, from, name, label)?),
            _ => None,
        };
        Ok(Self {
            subscriber,
            resumed,
            wait: args.wait.strategy(),
            stop,
            clock,
            ticks_left: args.ticks.unwrap_or(u64::MAX),
            duration: args.duration,
            until_end_of_session: args.until_end_of_session,
            feed: None,
        })
    }

    /// Ticks that are missing in the journal, if ticks are read from it.
    pub(crate) fn missing(&self) -> u64 {
        self.resumed.as_ref().map_or(0, |resumed| resumed.place.missing)
    }

    pub(crate) fn note(&self) -> Option<Note> {
        Note::from_words(self.subscriber.note()?)
    }

    /// Reads ticks until the end. `on_tick` receives each tick with the time at which it was seen; `on_idle` is
    /// called when no tick is available, and at least every 50 ms, with the plant's note.
    pub(crate) fn run(
        &mut self,
        mut on_tick: impl FnMut(&Tick<'_>, Nanos) -> anyhow::Result<()>,
        mut on_idle: impl FnMut(&Clock, Option<&Note>) -> anyhow::Result<()>,
    ) -> anyhow::Result<Ending> {
        self.adopt_clock();
        let begun = self.clock.now();
        let mut looked = begun;
        let mut busy = 0u32;
        let mut is_dead = false;
        loop {
            let next = match &mut self.resumed {
                Some(resumed) => resumed.next(&mut self.subscriber),
                None => ticks::next(&mut self.subscriber).map_err(Into::into),
            };
            match next? {
                Next::Tick(tick) => {
                    let received = self.clock.now();
                    on_tick(&tick, received)?;
                    self.ticks_left -= 1;
                    if self.ticks_left == 0 {
                        return Ok(Ending::Ticks);
                    }
                    if self.until_end_of_session
                        && tick.header.flags.contains(Flags::END_OF_SESSION)
                        && self.feed.is_none_or(|feed| feed == tick.header.channel)
                    {
                        return Ok(Ending::SessionOver);
                    }
                    busy += 1;
                    // Under load there is no idle moment: check signals and limits regularly all the same.
                    if busy < 4_096 {
                        continue;
                    }
                }
                Next::End => return Ok(Ending::PlantEnded),
                Next::Lost(lost) => return Err(lost.of("this reader").into()),
                Next::Nothing => {
                    let is_all = self.resumed.as_ref().is_none_or(|resumed| resumed.place.is_at_end);
                    if is_dead && is_all && !self.subscriber.wait(Wait::Spin, Duration::ZERO) {
                        return Ok(Ending::PlantDied);
                    }
                    let there = if self.resumed.as_ref().is_some_and(|resumed| resumed.place.is_behind) {
                        std::thread::sleep(WHILE_BEHIND);
                        true
                    } else {
                        self.subscriber.wait(self.wait, LONGEST_WAIT)
                    };
                    if there && self.clock.now().since(looked) < LOOK_NS {
                        continue;
                    }
                }
            }
            busy = 0;
            let now = self.clock.now();
            if now.since(looked) >= LOOK_NS {
                looked = now;
                let note = self.adopt_clock();
                on_idle(&self.clock, note.as_ref())?;
                if self.stop.requested() {
                    return Ok(Ending::Stopped);
                }
                if self.duration.is_some_and(|limit| now.since(begun) >= limit.as_nanos() as i64) {
                    return Ok(Ending::Duration);
                }
                is_dead = !self.subscriber.publisher_alive()?;
            }
        }
    }

    /// The plant's clock stamps the ticks; a reader with the same calibration adds no error between two clocks.
    fn adopt_clock(&mut self) -> Option<Note> {
        let note = self.note()?;
        self.clock = Clock::with(note.calibration);
        Some(note)
    }
}
