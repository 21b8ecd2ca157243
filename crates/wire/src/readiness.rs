//! Waits for the sockets of a loop, on another thread.

use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};

use crate::{Error, error};

/// Sleeps on its own thread until a [`Reactor`](crate::rssl::Reactor), or
/// [`Streams`](crate::streams::Streams), has something to do, while their thread sleeps on something else,
/// such as a ring. It reads no socket and consumes no event.
#[derive(Debug)]
pub struct Readiness {
    poll: Poll,
    events: Events,
}

/// The loop's own poll, which is ready when one of its sockets is.
const LOOP: Token = Token(0);
/// The waker that ends the sleep for good.
const END: Token = Token(1);

impl Readiness {
    /// Creates the readiness of a loop's poll, and the waker that ends its sleep.
    pub(crate) fn new(waits: &Poll) -> Result<(Self, Waker), Error> {
        let failed = |cause| error::reactor("look out for", cause);
        let poll = Poll::new().map_err(failed)?;
        poll.registry()
            .register(&mut SourceFd(&waits.as_raw_fd()), LOOP, Interest::READABLE)
            .map_err(failed)?;
        let waker = Waker::new(poll.registry(), END).map_err(failed)?;
        Ok((Self { poll, events: Events::with_capacity(2) }, waker))
    }

    /// Sleeps until something new happened in the loop or `timeout` passes, and returns `true`; returns `false` if it
    /// was woken to end. Can return `true` without a reason.
    ///
    /// # Errors
    /// The machine refuses to wait.
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<bool, Error> {
        match self.poll.poll(&mut self.events, timeout) {
            Ok(()) => Ok(self.events.iter().all(|event| event.token() != END)),
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(cause) => Err(error::reactor("look out for", cause)),
        }
    }
}
