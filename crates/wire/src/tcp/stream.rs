//! One connection.

use std::fmt;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use super::{Interest, Received, Socket, wait};
use crate::Error;

/// A connection that never waits. What was received stays until it is taken, in a buffer of fixed size; what is to be sent
/// is appended to [`output`](Self::output) and goes out with [`flush`](Self::flush), as much as there is room for.
///
/// An [`Error`] of a connection is the end of it: reset, refused, gone.
pub struct Stream {
    socket: Socket,
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
    pub fn connect(address: impl Into<SocketAddr>, input_bytes: usize) -> Result<Self, Error> {
        Self::new(Socket::connect(address, None)?, input_bytes)
    }

    pub(super) fn new(socket: Socket, input_bytes: usize) -> Result<Self, Error> {
        // What is flushed has been put together already: waiting for more would only make it late.
        socket.set_no_delay(true)?;
        let input = vec![0; input_bytes.max(1)].into();
        Ok(Self { socket, input, start: 0, end: 0, output: Vec::new(), written: 0 })
    }

    /// Reads once, as much as there is room for.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn receive(&mut self) -> Result<Received, Error> {
        if self.start > 0 {
            // At most one packet's beginning is left over as a rule.
            self.input.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let received = self.socket.receive(&mut self.input[self.end..])?;
        if let Received::Bytes(count) = received {
            self.end += count;
        }
        Ok(received)
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
        if !self.socket.has_connected()? {
            return Ok(false);
        }
        while self.written < self.output.len() {
            match self.socket.send(&[IoSlice::new(&self.output[self.written..])])? {
                0 => {
                    // What is out need not be kept: the rest moves to the front.
                    self.output.drain(..self.written);
                    self.written = 0;
                    return Ok(false);
                }
                count => self.written += count,
            }
        }
        self.output.clear();
        self.written = 0;
        Ok(true)
    }

    /// Says to the peer that nothing more will be sent, once all is out. What it sends until it has heard of it can still be
    /// received; closing at once instead could take back what is still on its way.
    pub fn finish(&self) {
        self.socket.finish();
    }

    /// What this connection should be waited for.
    pub fn interest(&self) -> Interest {
        if self.socket.is_connecting() || self.unsent() > 0 { Interest::ReadOrWrite } else { Interest::Read }
    }

    /// Waits until it can go on, or `timeout` is over, or a signal arrives: whether it can.
    pub fn wait(&self, timeout: Duration) -> bool {
        wait([(self.as_fd(), self.interest())], timeout)
    }

    /// Whether it has connected.
    pub fn is_connected(&self) -> bool {
        !self.socket.is_connecting()
    }

    /// The other end.
    pub fn peer_address(&self) -> SocketAddr {
        self.socket.peer_address()
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
            .field("socket", &self.socket)
            .field("received", &(self.end - self.start))
            .field("unsent", &self.unsent())
            .finish_non_exhaustive()
    }
}
