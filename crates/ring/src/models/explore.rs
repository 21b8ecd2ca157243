//! Runs a model in every order that loom finds, counts the interleavings, and plants faults.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use loom::model::Builder;
use loom::thread::{self, JoinHandle};

use super::atomics::{self, Fault, Site};
use super::clock;
use crate::segment;

/// A handful of operations in two or three threads.
pub(super) struct Model {
    pub(super) name: &'static str,
    /// How often a thread may be interrupted within one interleaving where it could continue. Nearly all faults
    /// need one or two interruptions; each further one takes ten times the time. `LOOM_MAX_PREEMPTIONS` overrides
    /// it.
    pub(super) preemptions: usize,
    /// The least number of interleavings: a model in which no threads meet finds nothing.
    pub(super) least: usize,
    pub(super) run: fn(),
}

impl Model {
    /// Asserts that the ring keeps its promise in every interleaving.
    pub(super) fn holds(&self) {
        let started = Instant::now();
        let (count, outcome) = self.explore(&[]);
        if let Err(why) = outcome {
            panic!("{}: interleaving {count}: {why}", self.name);
        }
        println!("{}: {count} interleavings in {:?}", self.name, started.elapsed());
        assert!(count >= self.least, "{}: {count} interleavings, expected {}", self.name, self.least);
    }

    /// Asserts that `faults` together, which are `what`, make the ring break its promise in some interleaving.
    pub(super) fn catches(&self, what: &str, faults: &[Fault]) {
        let (count, outcome) = self.explore(faults);
        assert!(atomics::faults_were_met(), "{}: {what}: {faults:?} was never on the way", self.name);
        let Err(why) = outcome else {
            panic!("{}: {count} interleavings, and {what} is not found: {faults:?}", self.name);
        };
        println!("{}: {what} found in interleaving {count}: {why}", self.name);
    }

    /// Returns the number of interleavings, and the error of the last one.
    pub(super) fn explore(&self, faults: &[Fault]) -> (usize, Result<(), String>) {
        // Leaks a few dozen bytes for each test that plants faults.
        atomics::plant(faults.to_vec().leak());
        let count = Arc::new(AtomicUsize::new(0));
        let (counter, run) = (Arc::clone(&count), self.run);
        let mut builder = Builder::new();
        // An interleaving is a few hundred accesses long.
        builder.max_branches = 10_000;
        builder.preemption_bound = builder.preemption_bound.or(Some(self.preemptions));
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            builder.check(move || {
                counter.fetch_add(1, Ordering::Relaxed);
                begin();
                let _ = spawn(run).join();
            });
        }));
        begin();
        let why = outcome.map_err(|payload| {
            let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
            text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
        });
        (count.load(Ordering::Relaxed), why)
    }
}

/// A thread of a model. Loom's own threads have stacks of 32 KiB, too small for a ring and for the report of a
/// panic.
pub(super) fn spawn<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    /// In words.
    const STACK: usize = 32 << 10;
    thread::Builder::new().stack_size(STACK).spawn(run).unwrap()
}

fn begin() {
    atomics::begin();
    clock::begin();
    segment::begin();
}

/// The only line of `file` (in the crate's `src`) that contains `text`; for `this … that`, the first line with
/// `that` at or after the only line with `this`.
pub(super) fn line(file: &str, text: &str) -> Site {
    let source = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file)).unwrap();
    let (from, then) = text.split_once(" … ").unwrap_or((text, ""));
    let lines: Vec<_> = (1..).zip(source.lines()).filter(|(_, line)| line.contains(from)).collect();
    let [(from, _)] = lines[..] else { panic!("{file}: `{from}` stands in {} lines", lines.len()) };
    let Some((line, _)) = (1..).zip(source.lines()).find(|(line, text)| *line >= from && text.contains(then))
    else {
        panic!("{file}: `{then}` does not follow line {from}");
    };
    // The compiler names the other file the same way as this one.
    let folder = file!().strip_suffix("models/explore.rs").unwrap();
    Site { file: format!("{folder}{file}").leak(), line }
}
