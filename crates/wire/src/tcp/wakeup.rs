//! Waking a thread that waits for sockets.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

use super::Interest;
use crate::Error;

/// Wakes a thread that [waits](super::wait) for sockets, among which this is. All clones wake the same thread.
#[derive(Clone, Debug)]
pub struct Wakeup(Arc<OwnedFd>);

impl Wakeup {
    /// Creates one that is not rung.
    ///
    /// # Errors
    /// The process has too many open files.
    pub fn new() -> Result<Self, Error> {
        let made = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
        made.map(|fd| Self(Arc::new(fd))).map_err(|errno| Error::reactor("create a wakeup for")(errno.into()))
    }

    /// Wakes the thread, or lets its next wait return at once.
    pub fn wake(&self) {
        // It fails only if it was rung 2^64 times.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Call after a wait, before the work is looked for: later work wakes again.
    pub fn answer(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }

    /// Returns what to wait for.
    pub fn readiness(&self) -> (BorrowedFd<'_>, Interest) {
        (self.0.as_fd(), Interest::Read)
    }
}
