//! One connection.

use std::io::IoSlice;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use super::{Input, Interest, MaybeTls, Received, TcpSocket, wait};
use crate::Error;
use crate::impls::shown;
#[cfg(feature = "rssl")]
use crate::tls::Tls;

/// A non-blocking connection. Received bytes stay in a buffer of fixed size until they are consumed. Bytes to send are
/// appended to [`output`](Self::output) and go out with [`flush`](Self::flush), as far as the socket accepts them.
///
/// An [`Error`] is final: the connection was reset or refused, or the peer is gone.
pub struct Stream {
    carrier: MaybeTls,
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
        Self::new(MaybeTls::Plain(TcpSocket::connect(address, None)?), input_bytes)
    }

    /// As [`connect`](Self::connect), with TLS. `server_name` is the name or address that the server's certificate must have.
    ///
    /// # Errors
    /// As [`connect`](Self::connect); [`Error::Tls`] when the settings are not a client's, or the name is not valid.
    #[cfg(feature = "rssl")]
    pub fn connect_tls(
        address: impl Into<SocketAddr>,
        tls: &Tls,
        server_name: &str,
        input_bytes: usize,
    ) -> Result<Self, Error> {
        let tls = tls.dial(server_name)?;
        Self::new(MaybeTls::encrypted(TcpSocket::connect(address, None)?, tls), input_bytes)
    }

    pub(super) fn new(carrier: MaybeTls, input_bytes: usize) -> Result<Self, Error> {
        // The caller flushes complete batches: waiting for more would only delay them.
        carrier.socket().set_no_delay(true)?;
        Ok(Self { carrier, input: Input::new(input_bytes.max(1)), output: Vec::new(), written: 0 })
    }

    /// Makes the buffer for received bytes at least this large, for a connection that has said that longer messages follow.
    pub fn enlarge_input(&mut self, input_bytes: usize) {
        self.input.enlarge(input_bytes);
    }

    /// Reads as much as the buffer has space for: once, or with TLS until nothing is left, because a wait would not see decrypted bytes.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn receive(&mut self) -> Result<Received, Error> {
        let mut added = 0;
        loop {
            match self.carrier.receive(self.input.room()) {
                Ok(Received::Bytes(count)) => {
                    self.input.add(count);
                    added += count;
                    if !self.carrier.is_encrypted() {
                        break;
                    }
                }
                // The next call finds the end again.
                _ if added > 0 => break,
                other => return other,
            }
        }
        Ok(Received::Bytes(added))
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

    /// Sends as much as the socket accepts; returns `true` if nothing remains, and `false` also while connecting or agreeing on TLS.
    ///
    /// # Errors
    /// The connection is broken, or could not be made.
    pub fn flush(&mut self) -> Result<bool, Error> {
        if !self.carrier.establish()? {
            return Ok(false);
        }
        while self.written < self.output.len() {
            match self.carrier.send(&[IoSlice::new(&self.output[self.written..])])? {
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
        // TLS may still have some of it.
        self.carrier.establish()
    }

    /// Tells the peer that nothing more will be sent, once all is out. Bytes that the peer sends until then can still
    /// be received; closing at once instead could discard bytes still on their way.
    pub fn finish(&mut self) {
        self.carrier.finish();
    }

    /// Returns the condition to wait for on this connection.
    pub fn interest(&self) -> Interest {
        let can_send = self.carrier.is_established() && self.unsent() > 0;
        if can_send || self.carrier.wants_flush() { Interest::ReadOrWrite } else { Interest::Read }
    }

    /// Waits until the connection is ready; returns `false` if `timeout` passes first or a signal arrives.
    pub fn wait(&self, timeout: Duration) -> bool {
        wait([(self.as_fd(), self.interest())], timeout)
    }

    /// Returns `true` if the connection is complete, and TLS is agreed on.
    pub fn is_connected(&self) -> bool {
        self.carrier.is_established()
    }

    /// Returns the peer's address.
    pub fn peer_address(&self) -> SocketAddr {
        self.carrier.socket().peer_address()
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.carrier.socket().as_fd()
    }
}

shown!(Stream, it => carrier: it.carrier, received: it.bytes().len(), unsent: it.unsent());
