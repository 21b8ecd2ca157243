//! Waits for many sockets: the polls of this crate's loops, and a wait for a whole loop on another thread.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

#[cfg(any(feature = "rssl", feature = "streams"))]
use mio::Waker;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};

use crate::Error;

/// A connection can be ready for both.
pub(crate) const EITHER: Interest = Interest::READABLE.add(Interest::WRITABLE);

/// Adds a socket to a poll.
pub(crate) fn register(
    poll: &Poll,
    source: &impl AsFd,
    token: Token,
    interest: Interest,
) -> Result<(), Error> {
    let fd = source.as_fd().as_raw_fd();
    let registered = poll.registry().register(&mut SourceFd(&fd), token, interest);
    registered.map_err(Error::reactor("add a socket to"))
}

/// Removes a socket that is closed next. Closing it does the same, so that a failure does not matter.
#[cfg(any(feature = "streams", feature = "zmtp"))]
pub(crate) fn deregister(poll: &Poll, source: &impl AsFd) {
    let _ = poll.registry().deregister(&mut SourceFd(&source.as_fd().as_raw_fd()));
}

/// Waits for events; returns `false` if a signal ended the wait.
pub(crate) fn wait(poll: &mut Poll, events: &mut Events, timeout: Option<Duration>) -> Result<bool, Error> {
    match poll.poll(events, timeout) {
        Ok(()) => Ok(true),
        Err(cause) if cause.kind() == io::ErrorKind::Interrupted => Ok(false),
        Err(cause) => Err(Error::reactor("wait for")(cause)),
    }
}

/// Sleeps on its own thread until a [`Reactor`](crate::rssl::Reactor), or
/// [`Streams`](crate::streams::Streams), has something to do, while their thread sleeps on something else,
/// such as a ring. It reads no socket and consumes no event.
#[cfg(any(feature = "rssl", feature = "streams"))]
#[derive(Debug)]
pub struct Readiness {
    poll: Poll,
    events: Events,
}

#[cfg(any(feature = "rssl", feature = "streams"))]
impl Readiness {
    /// The loop's own poll, which is ready when one of its sockets is.
    const LOOP: Token = Token(0);
    /// The waker that ends the sleep for good.
    const END: Token = Token(1);

    /// Creates the readiness of a loop's poll, and the waker that ends its sleep.
    pub(crate) fn new(waits: &Poll) -> Result<(Self, Waker), Error> {
        let failed = Error::reactor("look out for");
        let poll = Poll::new().map_err(&failed)?;
        poll.registry()
            .register(&mut SourceFd(&waits.as_raw_fd()), Self::LOOP, Interest::READABLE)
            .map_err(&failed)?;
        let waker = Waker::new(poll.registry(), Self::END).map_err(&failed)?;
        Ok((Self { poll, events: Events::with_capacity(2) }, waker))
    }

    /// Sleeps until something new happened in the loop or `timeout` passes, and returns `true`; returns `false` if it
    /// was woken to end. Can return `true` without a reason.
    ///
    /// # Errors
    /// The machine refuses to wait.
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<bool, Error> {
        match self.poll.poll(&mut self.events, timeout) {
            Ok(()) => Ok(self.events.iter().all(|event| event.token() != Self::END)),
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(cause) => Err(Error::reactor("look out for")(cause)),
        }
    }
}
