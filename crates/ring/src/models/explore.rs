//! Runs a model in every order that loom finds, counts them, and plants faults.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::model::Builder;
use loom::thread::{self, JoinHandle};

use super::atomics::{self, Fault, Site};
use super::clock;
use crate::segment;

/// A handful of operations in two or three threads.
pub(super) struct Model {
    pub(super) name: &'static str,
    /// How often a thread may be interrupted within one interleaving where it could go on. Nearly all faults need one or
    /// two; every further one costs ten times the time. `LOOM_MAX_PREEMPTIONS` overrules it.
    pub(super) preemptions: usize,
    /// Interleavings that there are at least: a model in which nothing meets finds nothing.
    pub(super) least: usize,
    pub(super) run: fn(),
}

impl Model {
    /// Whether the ring keeps its promise in every interleaving.
    pub(super) fn holds(&self) {
        let (count, outcome) = self.explore(None);
        if let Err(why) = outcome {
            panic!("{}: interleaving {count}: {why}", self.name);
        }
        println!("{}: {count} interleavings", self.name);
        assert!(count >= self.least, "{}: {count} interleavings, expected {}", self.name, self.least);
    }

    /// Whether `fault` makes the ring break its promise in some interleaving.
    pub(super) fn catches(&self, fault: Fault) {
        let (count, outcome) = self.explore(Some(fault));
        assert!(atomics::fault_was_met(), "{}: {fault:?} was never on the way", self.name);
        let Err(why) = outcome else {
            panic!("{}: {count} interleavings, and {fault:?} is not found", self.name);
        };
        println!("{}: {fault:?} found in interleaving {count}: {why}", self.name);
    }

    /// Gives the number of interleavings, and what went wrong in the last one.
    pub(super) fn explore(&self, fault: Option<Fault>) -> (usize, Result<(), String>) {
        atomics::plant(fault);
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

/// A thread of a model. Loom's own have stacks of 32 KiB, too small for a ring and for the story of a panic.
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

/// The only line of `file` (in the crate's `src`) that holds `text`.
pub(super) fn line(file: &str, text: &str) -> Site {
    let source = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file)).unwrap();
    let lines: Vec<_> = (1..).zip(source.lines()).filter(|(_, line)| line.contains(text)).collect();
    let [(line, _)] = lines[..] else { panic!("{file}: `{text}` stands in {} lines", lines.len()) };
    // As the compiler names this file, so the other.
    let folder = file!().strip_suffix("models/explore.rs").unwrap();
    Site { file: format!("{folder}{file}").leak(), line }
}
