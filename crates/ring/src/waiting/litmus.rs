//! The ways in which a wake-up could be lost, each provoked on purpose.

use std::cell::Cell;
use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::thread;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::*;

/// A sleep of this length was not ended by a wake-up; far less than [`LONGEST_SLEEP`] in unit tests.
const PATIENCE: Duration = Duration::from_secs(10);

/// A sleeper whose publisher is this test.
struct Lone {
    waiters: Waiters,
    flags: AtomicU32,
}

impl Lone {
    fn new() -> Self {
        Self {
            waiters: Waiters { parked: AtomicU64::new(0), wakes: AtomicU32::new(0) },
            flags: AtomicU32::new(0),
        }
    }

    fn parker(&self) -> Parker<'_> {
        Parker { waiters: &self.waiters, flags: &self.flags, slot: 5, bell: None }
    }

    /// Parks until `looks` returns `true` when it is called for the `n`th time, from 1. Returns whether that was
    /// before `PATIENCE` ran out.
    fn parks(&self, looks: impl Fn(usize) -> bool) -> bool {
        let count = Cell::new(0);
        let ready = || {
            count.set(count.get() + 1);
            looks(count.get())
        };
        let deadline = Deadline::after(PATIENCE);
        assert!(self.parker().park_until(ready, deadline));
        assert_eq!(self.waiters.parked.load(Ordering::Relaxed), 0, "it leaves no bit behind");
        !deadline.left().is_zero()
    }
}

/// A frame that is stored after the sleeper's last look, by a publisher that has not seen the bit: the first sleep
/// is short, and the sleeper finds the frame.
#[test]
fn what_the_barrier_missed_is_found() {
    assert!(Lone::new().parks(|look| look > 1));
}

/// The same after a wake-up for another frame: the bit is set again, and the sleep after it is a first one.
#[test]
fn what_the_barrier_missed_after_a_wake_up_is_found() {
    let lone = Lone::new();
    let woken = Cell::new(false);
    let missed = Cell::new(0);
    assert!(lone.parks(|look| {
        // The first sleep is over: the bit is certain to be seen. Two looks, because unit tests look once more
        // (`FOUND_LATE`).
        if look > 2 && !woken.replace(true) {
            wake_all(&lone.waiters);
        } else if woken.get() {
            // At the look after the wake-up there is no frame, and later there is one without a wake-up.
            missed.set(missed.get() + 1);
        }
        missed.get() > 1
    }));
}

/// A wake-up between the sleeper's last look and its sleep: the word that it sleeps on has changed.
#[test]
fn a_wake_up_before_the_sleep_counts() {
    let lone = Lone::new();
    let woken = Cell::new(false);
    assert!(lone.parks(|look| {
        let is_there = woken.get();
        // After the first sleep, when the next one would be long.
        if look > 2 && !is_there {
            woken.set(true);
            wake_all(&lone.waiters);
        }
        is_there
    }));
}

/// Without frames the sleeper sleeps: the short first sleep is not repeated.
#[test]
fn an_idle_sleeper_sleeps() {
    let lone = Lone::new();
    let looks = Cell::new(0);
    let ready = || {
        looks.set(looks.get() + 1);
        false
    };
    assert!(!lone.parker().park_until(ready, Deadline::after(100 * FIRST_SLEEP)));
    // Two sleeps, and up to two looks around each; a signal or two may end one.
    assert!(looks.get() < 20, "{} looks", looks.get());
}

/// Lines that two threads write in turn: a store to one waits for the line to come over.
#[repr(align(128))]
struct Line(AtomicU64);

/// Binds this thread to the `nth` of the cores that it may use, and runs another program there: from then on the
/// kernel knows that this process wants the barrier on that core (see [`Parker::settle`]).
fn settle_on(nth: usize) {
    let allowed = sched_getaffinity(None).expect("the cores are known");
    let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect();
    let mut one = CpuSet::new();
    one.set(cores[nth % cores.len()]);
    sched_setaffinity(None, &one).expect("a core of one's own");
    let this_program = std::env::current_exe().expect("it runs");
    let listed = Command::new(this_program).arg("--list").output().expect("it runs once more");
    assert!(listed.status.success(), "{listed:?}");
}

/// Without the barrier a publisher's load of the sleepers' bits comes before its frame is visible: made likely here
/// by stores that wait in front of the frame's (then 10 to 40 of 100 rounds are missed). Each round has a frame and
/// a bit; at least one side must see the other's. Runs in a process of its own: a thread that ends, such as another
/// test's, makes the kernel leave out its core until another program runs there, which on a quiet machine is never.
#[test]
fn the_barrier_lets_one_side_see_the_other() {
    const ALONE: &str = "TAPELINE_LITMUS_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let this_program = std::env::current_exe().expect("it runs");
        let mut alone = Command::new(this_program);
        alone.args(["--exact", "waiting::litmus::the_barrier_lets_one_side_see_the_other", "--nocapture"]);
        let ran = alone.env(ALONE, "1").output().expect("it runs once more");
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&ran.stderr));
        return;
    }
    const BLOCKS: usize = 40;
    const ROUNDS: u64 = 1_000;
    if !join_barrier() {
        return println!("skipped: no barrier here");
    }
    let lines: Vec<Line> = (0..32).map(|_| Line(AtomicU64::new(0))).collect();
    let (frame, lone) = (Line(AtomicU64::new(0)), Lone::new());
    lone.flags.store(HAS_BARRIER, Ordering::Relaxed);
    let mut missed = [0u64; BLOCKS];
    let (turn, seen) = (AtomicUsize::new(0), AtomicU64::new(0));
    let barrier = Barrier::new(2);
    // Both sides meet at the same point, on separate cores if there are two.
    let meet = |party: usize| {
        turn.fetch_add(1, Ordering::SeqCst);
        let mut polls = 0u32;
        while turn.load(Ordering::SeqCst) < party {
            polls += 1;
            if polls.is_multiple_of(1 << 12) { thread::yield_now() } else { spin_loop() }
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            settle_on(0);
            barrier.wait();
            for round in 1..=ROUNDS * BLOCKS as u64 {
                let parties = 4 * round as usize;
                meet(parties - 2);
                for line in &lines {
                    line.0.store(round, Ordering::Relaxed);
                }
                frame.0.store(round, Ordering::Release);
                compiler_fence(Ordering::SeqCst);
                seen.store(lone.waiters.parked.load(Ordering::Relaxed), Ordering::Relaxed);
                meet(parties);
            }
        });
        scope.spawn(|| {
            settle_on(1);
            barrier.wait();
            for round in 1..=ROUNDS * BLOCKS as u64 {
                // The lines are on this core, and have to move to the other.
                for line in &lines {
                    line.0.store(round, Ordering::Relaxed);
                }
                lone.waiters.parked.store(0, Ordering::SeqCst);
                let parties = 4 * round as usize;
                meet(parties - 2);
                for _ in 0..round % 64 {
                    spin_loop();
                }
                lone.waiters.parked.fetch_or(1 << 5, Ordering::SeqCst);
                lone.parker().settle();
                let found = frame.0.load(Ordering::Acquire) == round;
                meet(parties);
                if !found && seen.load(Ordering::Relaxed) == 0 {
                    missed[(round / ROUNDS) as usize % BLOCKS] += 1;
                }
            }
        });
    });
    let clean = missed.iter().filter(|missed| **missed <= ROUNDS / 100).count();
    assert!(clean > BLOCKS * 3 / 4, "missed by both in blocks of {ROUNDS}: {missed:?}");
}
