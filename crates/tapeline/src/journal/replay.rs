//! `tapeline journal replay`: ticks onto a ring, and on with those that are live; or a feed's messages onto UDP (`replay/feed.rs`).

mod behind;
mod feed;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use serde_json::json;
use tapeline_journal::{Directory, Next, Reader, Record};
use tapeline_measure::figures::thousands;
use tapeline_measure::{Clock, Nanos};
use tapeline_plant::tick::Tick;
use tapeline_ring::{Name, Options, Publisher, Refused, Start, Subscriber, Wait};

use self::feed::ToFeed;
use super::hinted;
use super::place::Place;
use crate::arguments;
use crate::failure::Hinted;
use crate::output::{self, Format};
use crate::plant::beside::Beside;
use crate::stop::Stop;

/// Where nothing comes, for how long to wait for more.
const NAP: Duration = Duration::from_millis(1);
/// Ticks between two looks whether the user wants to end.
const LOOK_EVERY: u64 = 4_096;

/// The options; the help is with the subcommand.
#[derive(Debug, Args)]
#[command(
    after_help = "The ring has the plant's ticks as they were, so that `tapeline plant watch` and `plant measure` read it, and so \
    does a program of yours. With --then it goes on with what the plant publishes now: what the journal has up to some tick, and \
    from the next one on what is live; nothing is left out, nothing comes twice.\n\nWith --to, what is sent are the messages of a feed, in MoldUDP64 with the \
    feed's own sequences, if the plant has kept them (publish = \"every-message\").\n\nExamples:\n  \
    tapeline journal replay journal --onto yesterday --speed max --keep\n  \
    tapeline journal replay journal --from-sequence 1000001 --onto mine --then tapeline --speed max\n  \
    tapeline journal replay journal --to 239.255.12.111:26477 --speed 10"
)]
pub(super) struct Replay {
    #[command(flatten)]
    place: Place,
    /// The ring to make and publish to
    #[arg(long, value_name = "RING", required_unless_present = "to")]
    onto: Option<Name>,
    #[command(flatten)]
    to_feed: ToFeed,
    /// Go on with what is published to this ring, which is the one that the journal is of
    #[arg(long, value_name = "RING")]
    then: Option<Name>,
    /// How fast: 1 as it was, 10 ten times as fast, max as fast as it goes
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = speed)]
    speed: Speed,
    /// The ring's size
    #[arg(long, value_name = "SIZE", default_value = "8MiB", value_parser = arguments::some_size)]
    ring_size: u64,
    /// Do not begin before so many subscribers are there
    #[arg(long, value_name = "N", default_value = "0")]
    subscribers: usize,
    /// Leave the ring in place at the end, for who comes later
    #[arg(long)]
    keep: bool,
    /// How to print what was done
    #[arg(long, default_value = "table")]
    format: Format,
}

/// How many times as fast as it was; `None` without a pause.
#[derive(Clone, Copy, Debug)]
struct Speed(Option<f64>);

fn speed(text: &str) -> Result<Speed, String> {
    if text == "max" {
        return Ok(Speed(None));
    }
    let factor = text.parse().ok().filter(|factor| (1e-6..=1e9).contains(factor));
    factor.map(|factor| Speed(Some(factor))).ok_or_else(|| "a number above 0, or max, is expected".to_owned())
}

/// What was published.
#[derive(Debug, Default)]
struct Done {
    history: u64,
    live: u64,
    missing: u64,
    last: Option<u64>,
    /// The user ended it before all of the journal was published, or while the journal was waited for.
    is_interrupted: bool,
}

/// Where it goes.
struct Onto<'a> {
    ring: Publisher,
    stop: &'a Stop,
    clock: Clock,
    speed: Speed,
    /// When the first tick was published: here, and then.
    begun: Option<(Nanos, Nanos)>,
    done: Done,
}

impl Replay {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals()?;
        let mut reader = self.place.open()?;
        if let Some(to) = self.to_feed.to {
            return self.to_feed.run(to, &mut reader, self.speed, stop, self.format);
        }
        let name = self.onto.as_ref().context("--onto names the ring to publish to")?;
        let capacity = usize::try_from(self.ring_size).unwrap_or(usize::MAX);
        let options = Options { capacity, keep: self.keep, wake_on_commit: false, ..Options::default() };
        let ring = Publisher::open(name, &options).map_err(|error| {
            let hint = error.hint().unwrap_or_default();
            anyhow::Error::new(error).context(Hinted::new("cannot make the ring", hint))
        })?;
        while ring.subscribers() < self.subscribers && stop.sleep(NAP) {}
        let mut onto = Onto {
            ring,
            stop: &stop,
            clock: Clock::calibrate(),
            speed: self.speed,
            begun: None,
            done: Done::default(),
        };
        let outcome = onto.history(&mut reader).and_then(|()| match &self.then {
            Some(live) => onto.live(&mut reader, live),
            None => Ok(()),
        });
        let Onto { ring, done, .. } = onto;
        ring.close()?;
        if self.format == Format::Json {
            output::print_json_line(&json!({
                "history": done.history, "live": done.live, "missing": done.missing, "last": done.last,
                "interrupted": done.is_interrupted,
            }))?;
        } else {
            output::print(&format!(
                "{} ticks of the journal and {} live ones published to {}, {} missing{}",
                thousands(done.history),
                thousands(done.live),
                name,
                thousands(done.missing),
                if done.is_interrupted { " (interrupted)" } else { "" },
            ))?;
        }
        outcome.map(|()| if done.is_interrupted { ExitCode::from(130) } else { ExitCode::SUCCESS })
    }
}

impl Onto<'_> {
    /// Publishes all that the journal has.
    fn history(&mut self, reader: &mut Reader<Directory>) -> anyhow::Result<()> {
        let broken = |error| hinted("the journal cannot be read on", error);
        loop {
            if self.stop.requested() {
                self.done.is_interrupted = true;
                break;
            }
            match reader.next().map_err(broken)? {
                Next::Record(record) => self.record(&record)?,
                Next::Missing { from, to } => self.miss(from, to),
                Next::End => {
                    reader.ending().map_err(broken)?;
                    break;
                }
            }
        }
        self.ring.flush();
        Ok(())
    }

    /// Publishes a tick of the journal, when it is due.
    fn record(&mut self, record: &Record<'_>) -> anyhow::Result<()> {
        self.pause(record.time);
        if self.publish(record.body)? {
            self.done.history += 1;
            self.done.last = Some(record.seq);
        }
        Ok(())
    }

    /// These are nowhere.
    fn miss(&mut self, from: u64, to: u64) {
        anstream::eprintln!("warning: ticks {from} to {to} are missing in the journal");
        self.done.missing += to - from + 1;
        self.done.last = Some(to);
    }

    /// Goes on with a ring, from the tick behind the last one: what is no longer there is in the journal.
    fn live(&mut self, reader: &mut Reader<Directory>, ring: &Name) -> anyhow::Result<()> {
        self.speed = Speed(None);
        let mut live = Subscriber::join(ring, Start::Oldest)
            .with_context(|| Hinted::new(format!("cannot join the ring {ring}"), "does its plant run?"))?;
        let mut beside = Beside::of(ring.clone(), "replay");
        let mut is_alive = true;
        while !self.stop.requested() {
            let epoch = live.epoch();
            match live.next() {
                // Of a plant that was killed: what the journal has of it is passed on already, and the numbers of the rest are others' now.
                tapeline_ring::Poll::Frame(frame) if frame.epoch() < epoch => {}
                tapeline_ring::Poll::Frame(frame) => {
                    let tick =
                        Tick::parse(frame.bytes()).context("the ring holds something that is not a tick")?;
                    let seq = tick.header.seq.0;
                    if self.done.last >= Some(seq) {
                        continue;
                    }
                    let is_behind = self.done.last.is_some_and(|last| last + 1 < seq);
                    if is_behind && !self.fill(reader, seq - 1)? {
                        // This one is in the journal too, or will be.
                        beside.take(seq);
                        self.catch_up(reader, &mut live, &mut beside)?;
                    } else if self.publish(frame.bytes())? {
                        self.done.live += 1;
                        self.done.last = Some(seq);
                    }
                }
                tapeline_ring::Poll::Ended => break,
                tapeline_ring::Poll::Empty => {
                    self.ring.flush();
                    anyhow::ensure!(is_alive, "the plant has died");
                    live.wait(Wait::Park, Duration::from_millis(20));
                    // Who ends the ring lets go of it too: one more look tells that from death.
                    is_alive = live.publisher_alive()?;
                }
                // What was lost is in the journal.
                tapeline_ring::Poll::Evicted { .. } => live = Subscriber::join(ring, Start::Oldest)?,
                _ => anyhow::bail!("the ring {ring} is damaged"),
            }
        }
        Ok(())
    }

    /// Waits until a tick of that time is due.
    fn pause(&mut self, time: Nanos) {
        let Speed(Some(factor)) = self.speed else { return };
        let now = self.clock.now();
        let (begun, first) = *self.begun.get_or_insert((now, time));
        let due = time.since(first).max(0) as f64 / factor;
        let left = due - now.since(begun) as f64;
        if left >= 1_000.0 {
            self.ring.flush();
            self.stop.sleep(Duration::from_nanos(left as u64));
        }
    }

    /// Publishes a tick, when there is room; `false` if the user ends it before.
    fn publish(&mut self, tick: &[u8]) -> anyhow::Result<bool> {
        if (self.done.history + self.done.live).is_multiple_of(LOOK_EVERY) {
            self.ring.flush();
        }
        loop {
            match self.ring.publish(tick) {
                Ok(_) => return Ok(true),
                Err(Refused::TooLong) => {
                    let what = format!("a tick of {} bytes is longer than the ring takes", tick.len());
                    return Err(Hinted::new(what, "raise --ring-size: a quarter of it is the longest").into());
                }
                Err(Refused::Full) if self.stop.requested() => return Ok(false),
                Err(Refused::Full) => {
                    self.ring.flush();
                    std::thread::yield_now();
                }
            }
        }
    }
}
