//! One end of a stream: TCP, or a Unix-domain socket of this machine.

use std::fmt;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::error::Operation;
use crate::tcp::{self, Received};
use crate::{Error, local};

/// A non-blocking connection without buffers of its own.
///
/// An [`Error`] is final: the connection was reset or refused, or the peer is gone.
#[derive(Debug)]
pub struct Socket(Kind);

#[derive(Debug)]
enum Kind {
    Tcp(tcp::TcpSocket),
    Local(UnixStream),
}

impl Socket {
    /// Begins to connect over TCP. Bytes sent before the connection is complete are not accepted.
    ///
    /// # Errors
    /// The address is known at once to be unreachable.
    pub fn connect(address: SocketAddr) -> Result<Self, Error> {
        tcp::TcpSocket::connect(address, None).and_then(Self::of_tcp)
    }

    /// Connects to a process of this user that listens at a name in the file system or, with a leading `@`, in the
    /// [abstract namespace](local).
    ///
    /// # Errors
    /// No process listens there, or a process of another user.
    pub fn connect_local(path: &Path) -> Result<Self, Error> {
        local::connect(path)
            .map(Self::of_local)
            .map_err(|cause| Error::socket(Operation::Dial, path.display(), cause))
    }

    pub(super) fn of_tcp(socket: tcp::TcpSocket) -> Result<Self, Error> {
        // The caller sends complete batches: waiting for more would only delay them.
        socket.set_no_delay(true)?;
        Ok(Self(Kind::Tcp(socket)))
    }

    pub(super) const fn of_local(stream: UnixStream) -> Self {
        Self(Kind::Local(stream))
    }

    /// Reads once into `room`; returns [`Received::Full`] if `room` is empty.
    ///
    /// # Errors
    /// The connection is broken.
    #[inline]
    pub fn receive(&mut self, room: &mut [u8]) -> Result<Received, Error> {
        match &mut self.0 {
            Kind::Tcp(socket) => socket.receive(room),
            Kind::Local(stream) => {
                tcp::receive(stream, room).map_err(|errno| Error::socket(Operation::Receive, LOCAL, errno))
            }
        }
    }

    /// Sends once, as much as the socket accepts, and returns the number of bytes.
    ///
    /// # Errors
    /// The connection is broken, or could not be made.
    #[inline]
    pub fn send(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        let pieces = [IoSlice::new(bytes)];
        match &mut self.0 {
            Kind::Tcp(socket) => socket.send(&pieces),
            Kind::Local(stream) => {
                tcp::send(stream, &pieces).map_err(|errno| Error::socket(Operation::Send, LOCAL, errno))
            }
        }
    }

    /// Returns `true` once the connection is complete.
    ///
    /// # Errors
    /// It could not be made.
    pub fn has_connected(&mut self) -> Result<bool, Error> {
        match &mut self.0 {
            Kind::Tcp(socket) => socket.has_connected(),
            Kind::Local(_) => Ok(true),
        }
    }

    /// Waits until there is something to read or, with `or_room`, space to write; returns `false` if `timeout` passes
    /// first. Returns early when a signal arrives.
    pub fn wait(&self, or_room: bool, timeout: Duration) -> bool {
        let interest = if or_room { tcp::Interest::ReadOrWrite } else { tcp::Interest::Read };
        tcp::wait([(self.as_fd(), interest)], timeout)
    }

    /// Returns the peer's address; `None` for a peer on this machine without an address.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        match &self.0 {
            Kind::Tcp(socket) => Some(socket.peer_address()),
            Kind::Local(_) => None,
        }
    }
}

/// The name of a Unix-domain socket's peer in errors.
const LOCAL: &str = "a process of this machine";

/// Shows the peer.
impl fmt::Display for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.peer_address() {
            Some(address) => address.fmt(f),
            None => f.write_str(LOCAL),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Kind::Tcp(socket) => socket.as_fd(),
            Kind::Local(stream) => stream.as_fd(),
        }
    }
}
