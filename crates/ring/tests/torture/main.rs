//! Processes that publish, subscribe, and are killed and stopped at any moment, while every bit of every frame is
//! checked by everybody who sees it.
//!
//! A few seconds in `cargo test`; `make torture` goes on for as long as `TORTURE_SECONDS` says. `TORTURE_SEED` repeats a
//! run: the same frames, the same faults in the same order, though the moments differ from run to run.
//!
//! What is checked, in every kind of ring ([`shape::SHAPES`]):
//!
//! * a subscriber sees each frame from its first on, once, in order and whole, over any number of publishers;
//! * nothing that was aborted, cut off or not yet committed is ever seen;
//! * of a publisher that was killed, the act that it was at (a frame, a batch) is there as a whole or not at all;
//! * its successor goes on at exactly that place, with the next epoch;
//! * who was killed holds up nobody, and who was only stopped loses nothing.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "all of this is a test")]

mod kills;
mod players;
#[path = "../scene/mod.rs"]
mod scene;
mod script;
mod shape;
mod stage;

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use players::Note;
use script::{Dice, mix};
use shape::SHAPES;
use stage::Stage;
use tapeline_ring::{Start, Subscriber, inspect};

/// Faults for each kind of ring, when time is short.
const FAULTS: u64 = 14;
/// Faults for each kind of ring in a long run.
const MANY_FAULTS: u64 = 100;
const SUBSCRIBERS: u64 = 3;

/// Not a test: what the other processes do.
#[test]
#[ignore = "a role that the other tests start"]
fn player() {
    players::play();
}

/// One play at a time: the other would share its cores.
static STAGE: Mutex<()> = Mutex::new(());

/// The seed of this run, told to whoever wants to repeat it.
fn seed() -> u64 {
    let seed = number("TORTURE_SEED").unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        now.as_millis() as u64
    });
    println!("torture: TORTURE_SEED={seed}");
    seed
}

fn number(what: &str) -> Option<u64> {
    std::env::var(what).ok().map(|text| text.parse::<u64>().expect(what))
}

#[test]
fn a_thousand_times_the_publisher_goes_on() {
    let _alone = STAGE.lock().unwrap_or_else(PoisonError::into_inner);
    kills::torture(seed());
}

#[test]
fn whoever_is_killed_or_stopped_nothing_is_lost() {
    let _alone = STAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let (seed, seconds) = (seed(), number("TORTURE_SECONDS"));
    let began = Instant::now();
    let mut total = Tally::default();
    for turn in 0.. {
        for (shape, what) in SHAPES.iter().enumerate() {
            let faults = if seconds.is_some() { MANY_FAULTS } else { FAULTS };
            let tally = torture(shape, mix(seed ^ mix(turn << 8 | shape as u64)), faults);
            println!("torture: {:4} s  {:18} {tally}", began.elapsed().as_secs(), what.name);
            total.add(&tally);
        }
        if began.elapsed() >= Duration::from_secs(seconds.unwrap_or(0)) {
            break;
        }
    }
    println!("torture: {:4} s  in all             {total}", began.elapsed().as_secs());
}

/// What happened to a ring.
#[derive(Debug, Default)]
struct Tally {
    frames: u64,
    publishers_killed: u64,
    subscribers_killed: u64,
    stopped: u64,
    evicted: u64,
    blocked_ns: u64,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.frames += other.frames;
        self.publishers_killed += other.publishers_killed;
        self.subscribers_killed += other.subscribers_killed;
        self.stopped += other.stopped;
        self.evicted += other.evicted;
        self.blocked_ns = self.blocked_ns.max(other.blocked_ns);
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:10} frames; killed {:4} publishers, {:4} subscribers; stopped {:4}, evicted {:4}; \
             full for {:7.3} ms at most",
            self.frames,
            self.publishers_killed,
            self.subscribers_killed,
            self.stopped,
            self.evicted,
            self.blocked_ns as f64 / 1e6
        )
    }
}

/// The publisher's chair: who sits there, and what was last known of the ring.
struct Chair {
    publisher: u64,
    /// The newest epoch that was told, and how many publishers have been started since.
    epoch: u64,
    started: u64,
    /// Frames of the ring when it last had no publisher.
    frames: u64,
}

fn torture(shape: usize, seed: u64, faults: u64) -> Tally {
    let mut dice = Dice::new(seed);
    let mut stage = Stage::new(shape, seed);
    let mut tally = Tally::default();
    let mut chair = Chair { publisher: stage.start("publisher"), epoch: 0, started: 1, frames: 0 };
    chair.is_taken(&mut stage);
    let mut subscribers: Vec<u64> = (0..SUBSCRIBERS).map(|_| stage.start("subscriber")).collect();
    for _ in 0..faults {
        let which = dice.below(SUBSCRIBERS) as usize;
        stage.let_play(Duration::from_micros(dice.below(30_000)));
        match dice.below(8) {
            0..=2 => {
                chair.kill(&mut stage, &mut tally);
                // Sometimes the subscribers see an empty chair for a while, sometimes the successor dies at once.
                stage.let_play(Duration::from_micros(dice.below(2) * dice.below(5_000)));
                chair.publisher = stage.start("publisher");
                chair.started += 1;
                if !dice.one_in(4) {
                    chair.is_taken(&mut stage);
                }
            }
            3..=5 => {
                stage.kill(subscribers[which]);
                tally.subscribers_killed += 1;
                subscribers[which] = stage.start("subscriber");
            }
            _ => {
                stage.stop(subscribers[which], true);
                tally.stopped += 1;
                stage.let_play(Duration::from_micros(dice.below(20_000)));
                stage.stop(subscribers[which], false);
            }
        }
    }
    chair.is_taken(&mut stage);
    for subscriber in &subscribers {
        stage.said(*subscriber, "joined");
        stage.tell(*subscriber);
        stage.said(*subscriber, "stays");
    }
    stage.tell(chair.publisher);
    let ended = numbers(&stage.said(chair.publisher, "ended"));
    tally.frames = ended[0];
    tally.blocked_ns = tally.blocked_ns.max(ended[1]);
    for subscriber in subscribers {
        assert_eq!(stage.said(subscriber, "saw"), ended[0].to_string(), "subscriber {subscriber}");
    }
    tally.evicted = stage.evicted;
    tally
}

impl Chair {
    /// Waits until the publisher is at work, and checks that it goes on where the last one was.
    fn is_taken(&mut self, stage: &mut Stage) {
        let says = numbers(&stage.said(self.publisher, "publishes"));
        if self.started > 0 {
            let (epoch, frames) = (says[0], says[1]);
            assert!(
                epoch > self.epoch && epoch <= self.epoch + self.started,
                "epoch {epoch} after {}",
                self.epoch
            );
            assert_eq!(frames, self.frames, "a publisher goes on where the last one was");
            (self.epoch, self.started) = (epoch, 0);
        }
    }

    /// Kills the publisher, and looks at what it leaves.
    fn kill(&mut self, stage: &mut Stage, tally: &mut Tally) {
        stage.kill(self.publisher);
        tally.publishers_killed += 1;
        let ring = inspect(&stage.name.0).unwrap().publisher;
        assert!(!ring.alive && !ring.ended);
        let witness = Subscriber::join(&stage.name.0, Start::Newest).unwrap();
        let note = Note::of(witness.note().expect("nobody writes it"));
        tally.blocked_ns = tally.blocked_ns.max(note.blocked_ns);
        let is_whole = match note.is_exact {
            true => ring.frames == note.frames || ring.frames == note.frames + note.act,
            false => ring.frames >= note.frames,
        };
        assert!(is_whole, "{note:?} and {} frames are there", ring.frames);
        assert!(ring.frames >= self.frames);
        self.frames = ring.frames;
    }
}

fn numbers(text: &str) -> Vec<u64> {
    text.split(' ').map(|number| number.parse().unwrap()).collect()
}
