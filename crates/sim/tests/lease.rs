//! The lease of two plants from seeds: nobody holds it twice, whatever happens; a rule that is left out shows.
//!
//! `SEEDS=1000000 cargo test --release -p tapeline-sim --test lease` tries more seeds than `cargo test` does, `FROM` begins elsewhere.

#![allow(clippy::unwrap_used, reason = "a world that is looked at")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tapeline_sim::BrokenRule;

/// Seeds that `cargo test` tries.
const SEEDS: u64 = 10_000;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|value| value.parse().unwrap())
}

#[test]
fn the_lease_is_held_once_whatever_happens() {
    let (from, seeds) = (number("FROM").unwrap_or(0), number("SEEDS").unwrap_or(SEEDS));
    let (next, leaders, failed) = (AtomicU64::new(from), AtomicU64::new(0), Mutex::new(Vec::new()));
    let some_of_them = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= from + seeds {
                return;
            }
            let outcome = tapeline_sim::lease(seed, None);
            if let Some(broken) = outcome.broken {
                failed.lock().unwrap().push(format!("seed {seed}: {broken}"));
            }
            leaders.fetch_add(outcome.leaders, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..cores {
            scope.spawn(some_of_them);
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} seeds: {:#?}", failed.len(), &failed[..failed.len().min(10)]);
    assert!(leaders.into_inner() > 3 * seeds, "the lease changes hands");
}

#[test]
fn a_rule_that_is_left_out_shows() {
    for rule in [BrokenRule::NoMargin, BrokenRule::NoWait, BrokenRule::NoFile] {
        let broken = (0..SEEDS).find(|seed| tapeline_sim::lease(*seed, Some(rule)).broken.is_some());
        assert!(broken.is_some(), "{rule:?}");
    }
}
