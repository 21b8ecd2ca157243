//! Waiting for the ring and for sockets at once.
//!
//! The kernel has no call for a futex and sockets together. So the hub's thread sleeps on the ring, and a second one, the
//! sentry, on the sockets; when one of those has something it rings the hub's bell, and then sleeps until the bell is
//! answered. While nothing but ticks moves, or while the hub has no time to sleep, it costs nothing.

use std::thread::JoinHandle;

use tapeline_ring::Bell;
use tapeline_wire::rssl::{Reactor, Waker};

/// The second thread, from the first one's side.
pub(super) struct Sentry {
    bell: Bell,
    thread: Option<JoinHandle<()>>,
    end: Waker,
}

impl Sentry {
    /// Begins to look out for what comes to a reactor.
    pub(super) fn begin(reactor: &Reactor) -> anyhow::Result<Self> {
        let (mut lookout, end) = reactor.lookout()?;
        let bell = Bell::new();
        let rings = bell.clone();
        let thread = std::thread::Builder::new().name("hub-sentry".to_owned()).spawn(move || {
            // A machine that refuses to wait makes it slower and nothing else: the hub never sleeps for long.
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
    pub(super) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// To be called after a sleep, before the sockets are looked at: what comes from here on rings again.
    pub(super) fn answer(&self) {
        if self.bell.answer()
            && let Some(thread) = &self.thread
        {
            thread.thread().unpark();
        }
    }
}

impl Drop for Sentry {
    fn drop(&mut self) {
        let is_told = self.end.wake().is_ok();
        self.answer();
        if is_told && let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
