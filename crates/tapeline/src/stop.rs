//! One way to end: SIGINT and SIGTERM set a flag that every loop reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};

/// Set once the user, or a parent process, has asked this process to end.
#[derive(Clone, Debug)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens for SIGINT and SIGTERM from here on. A second SIGINT, from a user who has lost patience, ends the process at
    /// once. A second SIGTERM does not: the kernel sends one for each thread of a parent that dies, all within microseconds.
    pub(crate) fn on_signals() -> std::io::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        let interrupted = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register_conditional_shutdown(SIGINT, 1, Arc::clone(&interrupted))?;
        signal_hook::flag::register(SIGINT, interrupted)?;
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
        }
        Ok(Self(flag))
    }

    /// Whether it is time to end.
    pub(crate) fn requested(&self) -> bool {
        // Relaxed: nothing is published by this flag but itself.
        self.0.load(Ordering::Relaxed)
    }
}
