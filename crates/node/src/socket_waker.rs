//! Waiting for the ring and for sockets at once.
//!
//! The kernel has no call for a futex and sockets together. So a thread that serves clients from the ring
//! sleeps on the ring, and a second thread sleeps on the sockets. When a socket has input, the second thread
//! rings the first one's bell, and then sleeps until the bell is answered. While only ticks arrive, or while
//! the first thread never sleeps, it costs nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use tapeline_ring::Bell;
use tapeline_wire::rssl::{Readiness, Waker};

/// The second thread, from the first one's side.
pub(crate) struct SocketWaker {
    /// Rings when a socket has input.
    pub(crate) bell: Bell,
    thread: Option<JoinHandle<()>>,
    end: Waker,
    /// Nobody answers the bell any more.
    is_over: Arc<AtomicBool>,
}

impl SocketWaker {
    /// Starts to watch the sockets, on a thread with this name.
    pub(crate) fn begin(name: &str, (mut lookout, end): (Readiness, Waker)) -> crate::Result<Self> {
        let bell = Bell::new();
        let is_over = Arc::new(AtomicBool::new(false));
        let (rings, ends) = (bell.clone(), Arc::clone(&is_over));
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            // If the system refuses to wait, the only consequence is latency: the first thread never sleeps
            // for long.
            watch(&rings, &ends, || lookout.wait(None).unwrap_or(false));
        })?;
        Ok(Self { bell, thread: Some(thread), end, is_over })
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
        self.is_over.store(true, Ordering::Release);
        let is_told = self.end.wake().is_ok();
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            if is_told {
                let _ = thread.join();
            }
        }
    }
}

/// Rings the bell for each input, and sleeps until the bell is answered or nobody will.
fn watch(bell: &Bell, is_over: &AtomicBool, mut has_input: impl FnMut() -> bool) {
    while has_input() {
        bell.ring();
        while bell.is_rung() && !is_over.load(Ordering::Acquire) {
            std::thread::park();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first thread ends after there was input and before the bell is rung: the second one must not wait for an answer.
    #[test]
    fn the_second_thread_ends_though_its_last_ring_is_not_answered() {
        let (bell, is_over, mut looked) = (Bell::new(), AtomicBool::new(false), 0);
        watch(&bell, &is_over, || {
            looked += 1;
            is_over.store(true, Ordering::Release);
            looked == 1
        });
        assert_eq!(looked, 2);
    }
}
