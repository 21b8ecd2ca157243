//! Waiting for the ring and for sockets at once.
//!
//! The kernel has no call for a futex and sockets together. So a thread that serves clients from the ring sleeps on the ring, and
//! a second one, its sentry, on the sockets; when one of those has something it rings the first one's bell, and then sleeps until
//! the bell is answered. While nothing but ticks moves, or while the first has no time to sleep, it costs nothing.

use std::thread::JoinHandle;

use tapeline_ring::Bell;
use tapeline_wire::rssl::{Readiness, Waker};

/// The second thread, from the first one's side.
pub(crate) struct SocketWaker {
    bell: Bell,
    thread: Option<JoinHandle<()>>,
    end: Waker,
}

impl SocketWaker {
    /// Begins to look out for what comes to sockets; the name is its thread's.
    pub(crate) fn begin(name: &str, (mut lookout, end): (Readiness, Waker)) -> crate::Result<Self> {
        let bell = Bell::new();
        let rings = bell.clone();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            // A machine that refuses to wait makes it slower and nothing else: the other never sleeps for long.
            while lookout.wait(None).unwrap_or(false) {
                rings.ring();
                while rings.is_rung() {
                    std::thread::park();
                }
            }
        })?;
        Ok(Self { bell, thread: Some(thread), end })
    }

    /// What rings when there is something.
    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// To be called after a sleep, before the sockets are looked at: what comes from here on rings again.
    pub(crate) fn answer(&self) {
        if self.bell.answer()
            && let Some(thread) = &self.thread
        {
            thread.thread().unpark();
        }
    }
}

impl Drop for SocketWaker {
    fn drop(&mut self) {
        let is_told = self.end.wake().is_ok();
        self.answer();
        if is_told && let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
