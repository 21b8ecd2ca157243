//! One connection.

use std::fmt;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags, sockopt};

use super::listener::open_socket;
use super::{Interest, wait};
use crate::Error;
use crate::error::Operation;

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

/// A connection that never waits. What was received stays until it is taken, in a buffer of fixed size; what is to be sent
/// is appended to [`output`](Self::output) and goes out with [`flush`](Self::flush), as much as there is room for.
///
/// An [`Error`] of a connection is the end of it: reset, refused, gone.
pub struct Stream {
    socket: OwnedFd,
    peer: SocketAddrV4,
    connecting: bool,
    input: Box<[u8]>,
    start: usize,
    end: usize,
    output: Vec<u8>,
    written: usize,
}

impl Stream {
    /// Begins to connect, with room for `input_bytes` that were received and not taken. Whether it has connected is known
    /// with the first [`flush`](Self::flush) that says so.
    ///
    /// # Errors
    /// [`Error::Socket`] when it is known at once that nobody can be reached there.
    pub fn connect(address: SocketAddrV4, input_bytes: usize) -> Result<Self, Error> {
        let socket = open_socket(address)?;
        let connecting = match net::connect(&socket, &address) {
            Ok(()) => false,
            Err(Errno::INPROGRESS | Errno::INTR) => true,
            Err(errno) => return Err(Error::socket(Operation::Dial, address, errno)),
        };
        Self::new(socket, address, connecting, input_bytes)
    }

    pub(super) fn accepted(socket: OwnedFd, peer: SocketAddrV4, input_bytes: usize) -> Result<Self, Error> {
        Self::new(socket, peer, false, input_bytes)
    }

    fn new(socket: OwnedFd, peer: SocketAddrV4, connecting: bool, input_bytes: usize) -> Result<Self, Error> {
        // What is flushed has been put together already: waiting for more would only make it late.
        sockopt::set_tcp_nodelay(&socket, true).map_err(|cause| Error::Option {
            option: "TCP_NODELAY",
            value: "1".to_owned(),
            address: peer.to_string(),
            cause: cause.into(),
        })?;
        let input = vec![0; input_bytes.max(1)].into();
        Ok(Self { socket, peer, connecting, input, start: 0, end: 0, output: Vec::new(), written: 0 })
    }

    /// Reads once, as much as there is room for.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn receive(&mut self) -> Result<Received, Error> {
        if self.connecting {
            return Ok(Received::Nothing);
        }
        if self.start > 0 {
            // At most one packet's beginning is left over as a rule.
            self.input.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let room = &mut self.input[self.end..];
        if room.is_empty() {
            return Ok(Received::Full);
        }
        loop {
            match net::recv(&self.socket, &mut *room, RecvFlags::empty()) {
                Ok((0, _)) => return Ok(Received::Closed),
                Ok((count, _)) => {
                    self.end += count;
                    return Ok(Received::Bytes(count));
                }
                Err(Errno::AGAIN) => return Ok(Received::Nothing),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Error::socket(Operation::Receive, self.peer, errno)),
            }
        }
    }

    /// What was received and not taken.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.input[self.start..self.end]
    }

    /// Takes so many bytes off the front, at most all.
    #[inline]
    pub fn consume(&mut self, bytes: usize) {
        self.start = self.end.min(self.start + bytes);
    }

    /// What is received and not taken, and where to append what is to be sent: the limit is the caller's
    /// ([`unsent`](Self::unsent)).
    pub fn split(&mut self) -> (&[u8], &mut Vec<u8>) {
        (&self.input[self.start..self.end], &mut self.output)
    }

    /// Where to append what is to be sent.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Bytes that were appended and have not gone out.
    pub fn unsent(&self) -> usize {
        self.output.len() - self.written
    }

    /// Sends as much as there is room for; whether all of it is out. `false` also while the connection is being made.
    ///
    /// # Errors
    /// The connection is broken, or could not be made.
    pub fn flush(&mut self) -> Result<bool, Error> {
        if self.connecting && !self.has_connected()? {
            return Ok(false);
        }
        while self.written < self.output.len() {
            match net::send(&self.socket, &self.output[self.written..], SendFlags::NOSIGNAL) {
                Ok(count) => self.written += count,
                Err(Errno::AGAIN) => {
                    // What is out need not be kept: the rest moves to the front.
                    self.output.drain(..self.written);
                    self.written = 0;
                    return Ok(false);
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Error::socket(Operation::Send, self.peer, errno)),
            }
        }
        self.output.clear();
        self.written = 0;
        Ok(true)
    }

    /// Says to the peer that nothing more will be sent, once all is out. What it sends until it has heard of it can still be
    /// received; closing at once instead could take back what is still on its way.
    pub fn finish(&self) {
        // A connection that is broken needs no end.
        let _ = net::shutdown(&self.socket, net::Shutdown::Write);
    }

    /// What this connection should be waited for.
    pub fn interest(&self) -> Interest {
        if self.connecting || self.unsent() > 0 { Interest::ReadOrWrite } else { Interest::Read }
    }

    /// Waits until it can go on, or `timeout` is over, or a signal arrives: whether it can.
    pub fn wait(&self, timeout: Duration) -> bool {
        wait([(self.as_fd(), self.interest())], timeout)
    }

    /// Whether it has connected.
    pub fn is_connected(&self) -> bool {
        !self.connecting
    }

    /// The other end.
    pub fn peer_address(&self) -> SocketAddrV4 {
        self.peer
    }

    fn has_connected(&mut self) -> Result<bool, Error> {
        let failed = |errno| Error::socket(Operation::Dial, self.peer, errno);
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut polled = [PollFd::new(&self.socket, PollFlags::OUT)];
        if poll(&mut polled, Some(&none)).unwrap_or(0) == 0 {
            return Ok(false);
        }
        sockopt::socket_error(&self.socket).map_err(failed)?.map_err(failed)?;
        self.connecting = false;
        Ok(true)
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the bytes: there may be a password among them.
        f.debug_struct("Stream")
            .field("peer", &self.peer)
            .field("connecting", &self.connecting)
            .field("received", &(self.end - self.start))
            .field("unsent", &self.unsent())
            .finish_non_exhaustive()
    }
}
