//! TCP over IPv4 and IPv6, without waiting: bounded bytes in, bounded bytes out.
//!
//! | file | owns |
//! |---|---|
//! | `listener.rs` | a listening socket |
//! | `socket.rs` | one connection without buffers |
//! | `stream.rs` | one connection with what was received and not taken, and what is to be sent |
//!
//! Both ends of a connection are a [`Stream`]. Whoever speaks a protocol looks at [`Stream::bytes`], takes whole packets off
//! with [`Stream::consume`], appends answers to [`Stream::output`] and flushes. [`wait`] sleeps until any of many can go on.

mod listener;
mod socket;
mod stream;

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

pub use listener::Listener;
pub use socket::Socket;
pub use stream::Stream;

/// What came of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Received {
    /// So many bytes more are there.
    Bytes(usize),
    /// Nothing for now.
    Nothing,
    /// There is no room: take something first.
    Full,
    /// The peer sends nothing any more. What is there can still be taken.
    Closed,
}

/// What a socket is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Something to read, or to accept.
    Read,
    /// The same, or room to write; also a connection that has been made.
    ReadOrWrite,
}

/// Waits until one of the sockets has what it is waited for, or `timeout` is over: whether one has. Comes back early, with
/// `false`, when a signal arrives. Allocates: not for a hot path.
pub fn wait<'fd>(sockets: impl IntoIterator<Item = (BorrowedFd<'fd>, Interest)>, timeout: Duration) -> bool {
    let events = |interest| match interest {
        Interest::Read => PollFlags::IN,
        Interest::ReadOrWrite => PollFlags::IN | PollFlags::OUT,
    };
    let mut polled: Vec<PollFd<'_>> =
        sockets.into_iter().map(|(fd, interest)| PollFd::from_borrowed_fd(fd, events(interest))).collect();
    let limit = Timespec::try_from(timeout).ok();
    match poll(&mut polled, limit.as_ref()) {
        Ok(ready) => ready > 0,
        Err(Errno::INTR) => false,
        // The call that follows says what is wrong.
        Err(_) => true,
    }
}
