//! Processes that publish, subscribe, and are killed and stopped at any moment, while every reader checks every bit
//! of every frame.
//!
//! A few seconds in `cargo test`; `make torture` runs for `TORTURE_SECONDS`. `TORTURE_SEED` repeats a run: the same
//! frames, the same faults in the same order, though the moments differ from run to run.
//!
//! Checks for every kind of ring ([`shape::shapes`]):
//!
//! * a subscriber sees each frame from its first on, once, in order and whole, over any number of publishers;
//! * aborted, cut or uncommitted bytes are never seen;
//! * the last act of a killed publisher (a frame, a batch) is there as a whole or not at all;
//! * its successor continues at exactly that place, with the next epoch;
//! * a killed subscriber blocks nobody, and one that was only stopped loses nothing;
//! * with a stall limit, a subscriber that was stopped for longer is evicted, gets `Evicted`, and joins again;
//! * in a broadcast ring nobody blocks the publisher, and the lost frames of a subscriber are counted exactly.

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
use shape::shapes;
use stage::Stage;
use tapeline_ring::{Name, Policy, Start, Subscriber, broadcast, inspect};

/// Faults for each kind of ring in a short run.
const FAULTS: u64 = 12;
/// Faults for each kind of ring in a long run.
const MANY_FAULTS: u64 = 100;
const SUBSCRIBERS: u64 = 3;

/// Not a test: the roles of the other processes.
#[test]
#[ignore = "a role that the other tests start"]
fn player() {
    players::play();
}

/// One play at a time: the other would share its cores.
static STAGE: Mutex<()> = Mutex::new(());

/// The seed of this run, printed so that the run can be repeated.
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
        for (shape, what) in shapes().iter().enumerate() {
            let faults = if seconds.is_some() { MANY_FAULTS } else { FAULTS };
            let tally = torture(shape, mix(seed ^ mix(turn << 8 | shape as u64)), faults);
            println!("torture: {:4} s  {what:42} {tally}", began.elapsed().as_secs());
            total.add(&tally);
        }
        if began.elapsed() >= Duration::from_secs(seconds.unwrap_or(0)) {
            break;
        }
    }
    println!("torture: {:4} s  {:42} {total}", began.elapsed().as_secs(), "in all");
}

/// What happened to a ring.
#[derive(Debug, Default)]
struct Tally {
    frames: u64,
    publishers_killed: u64,
    subscribers_killed: u64,
    stopped: u64,
    evicted: u64,
    /// Counted by the subscribers that saw the end.
    lost: u64,
    blocked_ns: u64,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.frames += other.frames;
        self.publishers_killed += other.publishers_killed;
        self.subscribers_killed += other.subscribers_killed;
        self.stopped += other.stopped;
        self.evicted += other.evicted;
        self.lost += other.lost;
        self.blocked_ns = self.blocked_ns.max(other.blocked_ns);
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:10} frames; killed {:4} publishers, {:4} subscribers; stopped {:4}, evicted {:4}, lost {:7}; \
             full for {:7.3} ms at most",
            self.frames,
            self.publishers_killed,
            self.subscribers_killed,
            self.stopped,
            self.evicted,
            self.lost,
            self.blocked_ns as f64 / 1e6
        )
    }
}

/// The publisher's chair: the current publisher, and the last known state of the ring.
struct Chair {
    shape: usize,
    publisher: u64,
    /// The newest reported epoch, and the number of publishers started since.
    epoch: u64,
    started: u64,
    /// Frames of the ring when it last had no publisher.
    frames: u64,
}

fn torture(shape: usize, seed: u64, faults: u64) -> Tally {
    let mut dice = Dice::new(seed);
    let mut stage = Stage::new(shape, seed);
    let mut tally = Tally::default();
    let limit = shapes()[shape].stall_limit;
    let mut chair = Chair { shape, publisher: stage.start("publisher"), epoch: 0, started: 1, frames: 0 };
    chair.is_taken(&mut stage);
    let mut subscribers: Vec<u64> = (0..SUBSCRIBERS).map(|_| stage.start("subscriber")).collect();
    for _ in 0..faults {
        let which = dice.below(SUBSCRIBERS) as usize;
        stage.let_play(Duration::from_micros(dice.below(30_000)));
        match dice.below(8) {
            0..=2 => {
                chair.kill(&mut stage, &mut tally);
                // Sometimes there is no publisher for a while, sometimes the successor dies at once.
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
                let wait_for_eviction = !limit.is_zero() && dice.one_in(2);
                stop(&mut stage, subscribers[which], wait_for_eviction, dice.below(20_000));
                tally.stopped += 1;
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
        let saw = stage.said(subscriber, "saw");
        // An evicted subscriber has lost its place, and may be too late for another.
        let too_late = saw == "nothing" && stage.evictions(subscriber) > 0;
        assert!(too_late || saw == ended[0].to_string(), "subscriber {subscriber} saw {saw} of {}", ended[0]);
        tally.lost += numbers(&stage.said(subscriber, "lost"))[0];
    }
    tally.evicted = stage.evicted;
    tally
}

/// Stops a subscriber for some µs, or until it is evicted; then it must report the eviction.
fn stop(stage: &mut Stage, subscriber: u64, until_evicted: bool, us: u64) {
    let before = stage.evictions(subscriber);
    stage.stop(subscriber, true);
    stage.let_play(Duration::from_micros(us));
    if !until_evicted {
        return stage.stop(subscriber, false);
    }
    stage.until("evicted", |stage| stage.is_evicted(subscriber) != Some(false));
    let was_there = stage.is_evicted(subscriber).is_some();
    stage.stop(subscriber, false);
    if was_there {
        stage.until("told that it was evicted", |stage| stage.evictions(subscriber) > before);
    }
}

/// The note of a dead publisher.
fn note(name: &Name, policy: Policy) -> Note {
    let words = match policy {
        Policy::Broadcast => broadcast::Subscriber::join(name, Start::Newest).unwrap().note(),
        _ => Subscriber::join(name, Start::Newest).unwrap().note(),
    };
    Note::of(words.expect("nobody writes it"))
}

impl Chair {
    /// Waits until the publisher is running, and checks that it continues where the last one was.
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

    /// Kills the publisher, and checks what it leaves.
    fn kill(&mut self, stage: &mut Stage, tally: &mut Tally) {
        stage.kill(self.publisher);
        tally.publishers_killed += 1;
        let ring = inspect(&stage.name.0).unwrap().publisher;
        assert!(!ring.alive && !ring.ended);
        let note = note(&stage.name.0, shapes()[self.shape].policy);
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
