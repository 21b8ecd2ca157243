//! A non-blocking TCP socket: connecting, reading, writing, and its options.

use std::io::IoSlice;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, ipproto, sockopt,
};

use super::Received;
use crate::Error;
use crate::error::Operation;
use crate::impls::has_descriptor;

/// One end of a connection, without buffers of its own.
///
/// An [`Error`] is final: the connection was reset or refused, or the peer is gone.
#[derive(Debug)]
pub struct TcpSocket {
    fd: OwnedFd,
    peer: SocketAddr,
    connecting: bool,
}

impl TcpSocket {
    /// Begins to connect, from the given address of the machine or from the one that the routing table
    /// chooses. [`has_connected`](Self::has_connected) reports when the connection is complete.
    ///
    /// # Errors
    /// [`Error::Socket`] when the address is known at once to be unreachable, or when `from` is not an
    /// address of this machine or is of another family.
    pub fn connect(address: impl Into<SocketAddr>, from: Option<IpAddr>) -> Result<Self, Error> {
        let address = address.into();
        let fd = open(address)?;
        if let Some(from) = from {
            let failed = |errno| Error::socket(Operation::Bind, from, errno);
            net::bind(&fd, &SocketAddr::new(from, 0)).map_err(failed)?;
        }
        let connecting = match net::connect(&fd, &address) {
            Ok(()) => false,
            Err(Errno::INPROGRESS | Errno::INTR) => true,
            Err(errno) => return Err(Error::socket(Operation::Dial, address, errno)),
        };
        Ok(Self { fd, peer: address, connecting })
    }

    pub(super) fn accepted(fd: OwnedFd, peer: SocketAddr) -> Self {
        Self { fd, peer, connecting: false }
    }

    /// Reads once into `room`; returns [`Received::Full`] if `room` is empty.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn receive(&mut self, room: &mut [u8]) -> Result<Received, Error> {
        if self.connecting {
            return Ok(Received::Nothing);
        }
        receive(&self.fd, room).map_err(|errno| Error::socket(Operation::Receive, self.peer, errno))
    }

    /// Sends the pieces once, as far as the socket accepts them, and returns the number of bytes; 0 if the socket is
    /// full or still connecting.
    ///
    /// # Errors
    /// The connection is broken, or could not be made.
    pub fn send(&mut self, pieces: &[IoSlice<'_>]) -> Result<usize, Error> {
        if self.connecting && !self.has_connected()? {
            return Ok(0);
        }
        send(&self.fd, pieces).map_err(|errno| Error::socket(Operation::Send, self.peer, errno))
    }

    /// Tells the peer that nothing more will be sent. Bytes that the peer sends until then can still be received;
    /// closing at once instead could discard bytes still on their way.
    pub fn finish(&self) {
        // A failure does not matter: the connection ends anyway.
        let _ = net::shutdown(&self.fd, net::Shutdown::Write);
    }

    /// Returns `true` once the connection is complete.
    ///
    /// # Errors
    /// It could not be made.
    pub fn has_connected(&mut self) -> Result<bool, Error> {
        if !self.connecting {
            return Ok(true);
        }
        let failed = |errno| Error::socket(Operation::Dial, self.peer, errno);
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut polled = [PollFd::new(&self.fd, PollFlags::OUT)];
        if poll(&mut polled, Some(&none)).unwrap_or(0) == 0 {
            return Ok(false);
        }
        sockopt::socket_error(&self.fd).map_err(failed)?.map_err(failed)?;
        self.connecting = false;
        Ok(true)
    }

    /// Returns `true` while the connection is not known to be complete.
    pub fn is_connecting(&self) -> bool {
        self.connecting
    }

    /// Sets `TCP_NODELAY`: small pieces go out at once, without waiting for the peer to acknowledge earlier ones.
    ///
    /// # Errors
    /// The machine refuses.
    pub fn set_no_delay(&self, on: bool) -> Result<(), Error> {
        let refused = Error::option("TCP_NODELAY", u32::from(on), self.peer);
        sockopt::set_tcp_nodelay(&self.fd, on).map_err(refused)
    }

    /// Sets `SO_SNDBUF` in bytes; the kernel doubles it for its own needs, and `net.core.wmem_max` limits it.
    ///
    /// # Errors
    /// The machine refuses.
    pub fn set_send_buffer(&self, bytes: u32) -> Result<(), Error> {
        let refused = Error::option("SO_SNDBUF", bytes, self.peer);
        sockopt::set_socket_send_buffer_size(&self.fd, bytes as usize).map_err(refused)
    }

    /// Sets `SO_RCVBUF` in bytes; the kernel doubles it for its own needs, and `net.core.rmem_max` limits it.
    ///
    /// # Errors
    /// The machine refuses.
    pub fn set_receive_buffer(&self, bytes: u32) -> Result<(), Error> {
        let refused = Error::option("SO_RCVBUF", bytes, self.peer);
        sockopt::set_socket_recv_buffer_size(&self.fd, bytes as usize).map_err(refused)
    }

    /// Returns the peer's address.
    pub fn peer_address(&self) -> SocketAddr {
        self.peer
    }

    /// Returns the local address, once there is one.
    pub fn local_address(&self) -> Option<SocketAddr> {
        net::getsockname(&self.fd).ok().and_then(|any| SocketAddr::try_from(any).ok())
    }
}

has_descriptor!(TcpSocket, fd);

/// Reads once from a stream of any kind; see [`TcpSocket::receive`].
#[inline]
pub(crate) fn receive(stream: impl AsFd, room: &mut [u8]) -> Result<Received, Errno> {
    if room.is_empty() {
        return Ok(Received::Full);
    }
    loop {
        match net::recv(&stream, &mut *room, RecvFlags::empty()) {
            Ok((0, _)) => return Ok(Received::Closed),
            Ok((count, _)) => return Ok(Received::Bytes(count)),
            Err(Errno::AGAIN) => return Ok(Received::Nothing),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Sends once to a stream of any kind; see [`TcpSocket::send`].
#[inline]
pub(crate) fn send(stream: impl AsFd, pieces: &[IoSlice<'_>]) -> Result<usize, Errno> {
    loop {
        match net::sendmsg(&stream, pieces, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL) {
            Ok(count) => return Ok(count),
            Err(Errno::AGAIN) => return Ok(0),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Opens a non-blocking TCP socket.
pub(super) fn open(address: SocketAddr) -> Result<OwnedFd, Error> {
    net::socket_with(
        if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 },
        SocketType::STREAM,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        Some(ipproto::TCP),
    )
    .map_err(|errno| Error::socket(Operation::Open, address, errno))
}
