//! Signals: SIGINT and SIGTERM set a stop flag that every loop reads. SIGHUP sets another flag: reload the files.
//! A file at its size limit does not end the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};

use tapeline_measure::instant;

/// The longest single sleep, so that a signal takes effect soon.
const NAP: Duration = Duration::from_millis(20);

/// The stop flag: set when the user or a parent process asks this process to end.
#[derive(Clone, Debug)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens for SIGINT and SIGTERM from now on. A second SIGINT, from an impatient user, ends the process at
    /// once. A second SIGTERM does not: the kernel sends one for each thread of a parent that dies, all within
    /// microseconds.
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

    /// Whether the process was asked to end.
    pub fn requested(&self) -> bool {
        // Relaxed: this flag publishes no other data.
        self.0.load(Ordering::Relaxed)
    }

    /// Sleeps for `time`. Ends early and returns `false` when the process is asked to end.
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

/// From now on, a write beyond the file size limit fails with an error instead of ending the process silently.
pub fn outlive_file_limits() -> anyhow::Result<()> {
    // Nothing reads this flag: the write that meets the limit fails.
    signal_hook::flag::register(SIGXFSZ, Arc::default()).context("cannot heed SIGXFSZ")?;
    Ok(())
}

/// The reload flag: set each time SIGHUP asks this process to read its files again.
#[derive(Debug)]
pub struct Again(Arc<AtomicBool>);

impl Again {
    /// Listens for SIGHUP from now on. Without this call, SIGHUP ends the process.
    pub fn on_signal() -> std::io::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGHUP, Arc::clone(&flag))?;
        Ok(Self(flag))
    }

    /// Whether the flag was set since the last call.
    pub fn is_requested(&self) -> bool {
        // Relaxed, as above. Read first, so that a loop that calls this often does not write the cache line
        // needlessly.
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::Relaxed)
    }
}
