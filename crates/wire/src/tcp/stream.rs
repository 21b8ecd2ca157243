//! One connection.

use std::io::IoSlice;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use super::{Input, Interest, Received, TcpSocket, wait};
use crate::Error;
use crate::impls::{has_descriptor, shown};

/// A non-blocking connection. Received bytes stay in a buffer of fixed size until they are consumed. Bytes to send are
/// appended to [`output`](Self::output) and go out with [`flush`](Self::flush), as far as the socket accepts them.
///
/// An [`Error`] is final: the connection was reset or refused, or the peer is gone.
pub struct Stream {
    socket: TcpSocket,
    input: Input,
    output: Vec<u8>,
    written: usize,
}

impl Stream {
    /// Begins to connect, with a buffer of `input_bytes` for received bytes. The first [`flush`](Self::flush)
    /// after the connection is complete detects that.
    ///
    /// # Errors
    /// [`Error::Socket`] when the address is known at once to be unreachable.
    pub fn connect(address: impl Into<SocketAddr>, input_bytes: usize) -> Result<Self, Error> {
        Self::new(TcpSocket::connect(address, None)?, input_bytes)
    }

    pub(super) fn new(socket: TcpSocket, input_bytes: usize) -> Result<Self, Error> {
        // The caller flushes complete batches: waiting for more would only delay them.
        socket.set_no_delay(true)?;
        Ok(Self { socket, input: Input::new(input_bytes.max(1)), output: Vec::new(), written: 0 })
    }

    /// Reads once, as much as the buffer has space for.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn receive(&mut self) -> Result<Received, Error> {
        let received = self.socket.receive(self.input.room())?;
        if let Received::Bytes(count) = received {
            self.input.add(count);
        }
        Ok(received)
    }

    /// Returns the received bytes that were not consumed.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.input.bytes()
    }

    /// Consumes `bytes` bytes from the front, at most all.
    #[inline]
    pub fn consume(&mut self, bytes: usize) {
        self.input.consume(bytes);
    }

    /// Returns the received bytes that were not consumed, and the buffer to which bytes to send are appended. The
    /// caller limits that buffer's size ([`unsent`](Self::unsent)).
    pub fn split(&mut self) -> (&[u8], &mut Vec<u8>) {
        (self.input.bytes(), &mut self.output)
    }

    /// Returns the buffer to which bytes to send are appended.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Returns the number of bytes that were appended and not sent.
    pub fn unsent(&self) -> usize {
        self.output.len() - self.written
    }

    /// Sends as much as the socket accepts; returns `true` if nothing remains, and `false` also while connecting.
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
                    // Removes sent bytes: the rest moves to the front.
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

    /// Tells the peer that nothing more will be sent, once all is out. Bytes that the peer sends until then can still
    /// be received; closing at once instead could discard bytes still on their way.
    pub fn finish(&self) {
        self.socket.finish();
    }

    /// Returns the condition to wait for on this connection.
    pub fn interest(&self) -> Interest {
        if self.socket.is_connecting() || self.unsent() > 0 { Interest::ReadOrWrite } else { Interest::Read }
    }

    /// Waits until the connection is ready; returns `false` if `timeout` passes first or a signal arrives.
    pub fn wait(&self, timeout: Duration) -> bool {
        wait([(self.as_fd(), self.interest())], timeout)
    }

    /// Returns `true` if the connection is complete.
    pub fn is_connected(&self) -> bool {
        !self.socket.is_connecting()
    }

    /// Returns the peer's address.
    pub fn peer_address(&self) -> SocketAddr {
        self.socket.peer_address()
    }
}

has_descriptor!(Stream, socket);

shown!(Stream, it => socket: it.socket, received: it.bytes().len(), unsent: it.unsent());
