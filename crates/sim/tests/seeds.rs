//! Whole plants from seeds: the invariants hold under any fault.
//!
//! `make sim SEEDS=100000` tries more seeds than `cargo test` does, and `SEED=N make sim` shows the trace of one.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a world that is looked at")]

use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tapeline_sim::{HostsOutcome, HostsTotals, Outcome, Totals};

/// Seeds that `cargo test` tries.
const SEEDS: u64 = 1_000;

fn number(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{variable}={value} is no number")))
}

/// The reason why a seed failed, if it did.
fn failure(outcome: std::thread::Result<&Outcome>) -> Option<String> {
    match outcome {
        Ok(Outcome { broken: None, .. }) => None,
        Ok(Outcome { broken: Some(broken), .. }) => Some(broken.to_string()),
        Err(_) => Some("it panicked".to_owned()),
    }
}

#[test]
fn nothing_goes_wrong_where_nothing_goes_wrong() {
    for seed in 0..20 {
        let outcome = tapeline_sim::calm(seed);
        assert_eq!(outcome.broken, None, "calm seed {seed}");
        assert!(outcome.totals.checked > 20, "calm seed {seed}: {:?}", outcome.totals);
    }
}

#[test]
fn what_must_hold_holds_whatever_goes_wrong() {
    if let Some(seed) = number("SEED") {
        let outcome = tapeline_sim::replay(seed);
        for line in &outcome.lines {
            println!("{line}");
        }
        println!("seed {seed}: {:?}, hash {:016x}", outcome.totals, outcome.hash);
        assert_eq!(outcome.broken, None, "seed {seed}");
        return;
    }
    let (from, seeds) = (number("FROM").unwrap_or(0), number("SEEDS").unwrap_or(SEEDS));
    // A world runs on one thread; each core runs its own worlds.
    let next = AtomicU64::new(from);
    let (failed, totals) = (Mutex::new(Vec::new()), Mutex::new(Totals::default()));
    let some_of_them = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= from + seeds {
                return;
            }
            let outcome = catch_unwind(|| tapeline_sim::run(seed));
            if let Ok(outcome) = &outcome {
                totals.lock().unwrap().add(&outcome.totals);
            }
            if let Some(why) = failure(outcome.as_ref().map_err(|_| Box::new(()) as _)) {
                println!("seed {seed}: {why}\n    SEED={seed} make sim");
                failed.lock().unwrap().push(seed);
            }
            let done = seed + 1 - from;
            if done.is_multiple_of(1_000) {
                println!("{done} of {seeds} seeds");
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(some_of_them))));
    let (mut failed, totals) = (failed.into_inner().unwrap(), totals.into_inner().unwrap());
    failed.sort_unstable();
    println!("{seeds} seeds from {from}: {totals:?}");
    assert!(failed.is_empty(), "{} of {seeds} seeds failed: {failed:?}", failed.len());
}

/// Seeds that failed once: a journal without its first ticks, an order that reused another one's number, a client
/// that gave up on a stalled hub, a snapshot that was dropped from a slow client's queue.
#[test]
fn what_was_mended_stays_so() {
    for seed in [
        2_165, 100_532, 100_804, 101_203, 101_716, 102_332, 103_557, 105_148, 112_813, 115_926, 117_064,
        117_762,
    ] {
        assert_eq!(tapeline_sim::run(seed).broken, None, "seed {seed}");
    }
}

#[test]
fn a_seed_is_one_world() {
    for seed in 0..30 {
        assert_eq!(tapeline_sim::run(seed).hash, tapeline_sim::run(seed).hash, "seed {seed}");
    }
}

/// Seeds of hosts that `cargo test` tries.
const HOSTS_SEEDS: u64 = 200;

/// Every plant below ends with the ticks of the plant above, whatever the links and the plants did.
#[test]
fn every_plant_below_ends_with_the_same_ticks() {
    if let Some(seed) = number("SEED") {
        let outcome = tapeline_sim::run_hosts(seed);
        println!("hosts, seed {seed}: {:?}, hash {:016x}", outcome.totals, outcome.hash);
        assert_eq!(outcome.broken, None, "hosts, seed {seed}");
        return;
    }
    let (from, seeds) = (number("FROM").unwrap_or(0), number("SEEDS").unwrap_or(HOSTS_SEEDS));
    let next = AtomicU64::new(from);
    let (failed, totals) = (Mutex::new(Vec::new()), Mutex::new(HostsTotals::default()));
    let some_of_them = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= from + seeds {
                return;
            }
            let outcome = catch_unwind(|| tapeline_sim::run_hosts(seed));
            if let Ok(outcome) = &outcome {
                totals.lock().unwrap().add(&outcome.totals);
            }
            let why = match outcome {
                Ok(HostsOutcome { broken: None, .. }) => continue,
                Ok(HostsOutcome { broken: Some(broken), .. }) => broken.to_string(),
                Err(_) => "it panicked".to_owned(),
            };
            println!("hosts, seed {seed}: {why}\n    SEED={seed} make sim");
            failed.lock().unwrap().push(seed);
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(some_of_them))));
    let (failed, totals) = (failed.into_inner().unwrap(), totals.into_inner().unwrap());
    println!("{seeds} seeds of hosts from {from}: {totals:?}");
    assert!(failed.is_empty(), "{} of {seeds} seeds of hosts failed: {failed:?}", failed.len());
    // Each way to the past was taken.
    let ways =
        [totals.caught_up, totals.requests, totals.left_lines, totals.resequenced, totals.gone, totals.lost];
    assert!(seeds < HOSTS_SEEDS || !ways.contains(&0), "{totals:?}");
}
