//! One way to end: SIGINT and SIGTERM set a flag that every loop reads. SIGHUP sets another: look at the files again. A file at its limit
//! is no end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};

use tapeline_measure::instant;

/// The longest sleep, so that a signal is heeded soon.
const NAP: Duration = Duration::from_millis(20);

/// Set once the user, or a parent process, has asked this process to end.
#[derive(Clone, Debug)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens for SIGINT and SIGTERM from here on. A second SIGINT, from a user who has lost patience, ends the process at
    /// once. A second SIGTERM does not: the kernel sends one for each thread of a parent that dies, all within microseconds.
    pub fn on_signals() -> std::io::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        let interrupted = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register_conditional_shutdown(SIGINT, 1, Arc::clone(&interrupted))?;
        signal_hook::flag::register(SIGINT, interrupted)?;
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
        }
        Ok(Self(flag))
    }

    /// The flag that signals set, for a library.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Whether it is time to end.
    pub fn requested(&self) -> bool {
        // Relaxed: nothing is published by this flag but itself.
        self.0.load(Ordering::Relaxed)
    }

    /// Sleeps, but not beyond the moment at which it is time to end: `false` then.
    pub fn sleep(&self, time: Duration) -> bool {
        let begun = instant();
        while !self.requested() {
            let left = time.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(NAP));
        }
        false
    }
}

/// From here on a limit on the size of files is an error of what writes one, and not the end of the process without a word.
pub fn outlive_file_limits() -> anyhow::Result<()> {
    // What is set by it nobody reads: the write that meets the limit fails.
    signal_hook::flag::register(SIGXFSZ, Arc::default()).context("cannot heed SIGXFSZ")?;
    Ok(())
}

/// Raised each time somebody asks this process, with SIGHUP, to look at its files again.
#[derive(Debug)]
pub struct Again(Arc<AtomicBool>);

impl Again {
    /// Listens for SIGHUP from here on, which ends the process otherwise.
    pub fn on_signal() -> std::io::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGHUP, Arc::clone(&flag))?;
        Ok(Self(flag))
    }

    /// Whether it was raised since this was asked last.
    pub fn is_requested(&self) -> bool {
        // Relaxed, as above; read first, so that a line of memory is not written for nothing by a loop that asks often.
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::Relaxed)
    }
}
