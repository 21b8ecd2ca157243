//! Waiting for a reactor's sockets without the reactor.

use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};

use crate::{Error, error};

/// Sleeps on a thread of its own until a [`Reactor`](super::Reactor) has something to do, while the reactor's thread sleeps on
/// something else: a ring, for instance. It looks at no socket and takes nothing away.
#[derive(Debug)]
pub struct Lookout {
    poll: Poll,
    events: Events,
}

/// The reactor's own poll, which is ready when one of its sockets is.
const REACTOR: Token = Token(0);
/// Who ends the sleep for good.
const END: Token = Token(1);

impl Lookout {
    /// On what a reactor waits for; and what ends its sleep.
    pub(super) fn new(reactor: &Poll) -> Result<(Self, Waker), Error> {
        let failed = |cause| error::reactor("look out for", cause);
        let poll = Poll::new().map_err(failed)?;
        poll.registry()
            .register(&mut SourceFd(&reactor.as_raw_fd()), REACTOR, Interest::READABLE)
            .map_err(failed)?;
        let waker = Waker::new(poll.registry(), END).map_err(failed)?;
        Ok((Self { poll, events: Events::with_capacity(2) }, waker))
    }

    /// Sleeps until the reactor has something to do that came after the last time, or for so long at most: `true`. `false`: it
    /// was woken to end. May say `true` without a reason.
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
