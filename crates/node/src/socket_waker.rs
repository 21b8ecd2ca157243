//! Waiting for the ring and for sockets at once.
//!
//! The kernel has no call for a futex and sockets together. So a thread that serves clients from the ring
//! sleeps on the ring, and a second thread sleeps on the sockets. When a socket has input, the second thread
//! rings the first one's bell, and then sleeps until the bell is answered. While only ticks arrive, or while
//! the first thread never sleeps, it costs nothing.

use std::thread::JoinHandle;

use tapeline_ring::Bell;
use tapeline_wire::rssl::{Readiness, Waker};

/// The second thread, from the first one's side.
pub(crate) struct SocketWaker {
    /// Rings when a socket has input.
    pub(crate) bell: Bell,
    thread: Option<JoinHandle<()>>,
    end: Waker,
}

impl SocketWaker {
    /// Starts to watch the sockets, on a thread with this name.
    pub(crate) fn begin(name: &str, (mut lookout, end): (Readiness, Waker)) -> crate::Result<Self> {
        let bell = Bell::new();
        let rings = bell.clone();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            // If the system refuses to wait, the only consequence is latency: the first thread never sleeps
            // for long.
            while lookout.wait(None).unwrap_or(false) {
                rings.ring();
                while rings.is_rung() {
                    std::thread::park();
                }
            }
        })?;
        Ok(Self { bell, thread: Some(thread), end })
    }

    /// Call after a sleep, before the sockets are read: later input rings again.
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
