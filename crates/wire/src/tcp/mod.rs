//! Non-blocking TCP over IPv4 and IPv6, with bounded input and output.
//!
//! | file | owns |
//! |---|---|
//! | `input.rs` | received bytes that are not yet consumed |
//! | `listener.rs` | a listening socket |
//! | `maybe_tls.rs` | one connection, with or without TLS |
//! | `socket.rs` | one connection without buffers |
//! | `stream.rs` | one connection with buffers for unconsumed input and unsent output |
//! | `wakeup.rs` | what wakes a thread that waits for connections |
//!
//! Both ends of a connection are a [`Stream`], with or without TLS. A protocol reads [`Stream::bytes`], removes whole packets with
//! [`Stream::consume`], appends answers to [`Stream::output`] and flushes. [`wait`] sleeps until any of several sockets
//! is ready.

mod input;
mod listener;
mod maybe_tls;
mod socket;
mod stream;
mod wakeup;

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

pub(crate) use input::Input;
pub use listener::Listener;
pub(crate) use maybe_tls::MaybeTls;
pub use socket::TcpSocket;
#[cfg(feature = "streams")]
pub(crate) use socket::{receive, send};
pub use stream::Stream;
pub use wakeup::Wakeup;

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Received {
    /// The number of bytes added.
    Bytes(usize),
    /// Nothing for now.
    Nothing,
    /// The buffer is full: consume something first.
    Full,
    /// The peer sends nothing more. Bytes already received can still be consumed.
    Closed,
}

/// The condition that a wait on a socket waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Bytes to read, or a connection to accept.
    Read,
    /// As `Read`, or space to write; also a completed connect.
    ReadOrWrite,
}

/// Waits until one of the sockets is ready; returns `false` if `timeout` passes first, or early when a signal arrives.
/// Allocates: not for a hot path.
pub fn wait<'fd>(sockets: impl IntoIterator<Item = (BorrowedFd<'fd>, Interest)>, timeout: Duration) -> bool {
    let events = |interest| match interest {
        Interest::Read => PollFlags::IN,
        Interest::ReadOrWrite => PollFlags::IN | PollFlags::OUT,
    };
    let mut polled: Vec<PollFd<'_>> =
        sockets.into_iter().map(|(fd, interest)| PollFd::from_borrowed_fd(fd, events(interest))).collect();
    poll_for(&mut polled, timeout)
}

/// Waits until one of the descriptors is ready; returns `false` if `timeout` passes first, or early when a signal
/// arrives.
pub(crate) fn poll_for(polled: &mut [PollFd<'_>], timeout: Duration) -> bool {
    // A time-out longer than a timespec can express is treated as none.
    let limit = Timespec::try_from(timeout).ok();
    match poll(polled, limit.as_ref()) {
        Ok(ready) => ready > 0,
        Err(Errno::INTR) => false,
        // The caller cannot act on this error here: its following call reports it.
        Err(_) => true,
    }
}
