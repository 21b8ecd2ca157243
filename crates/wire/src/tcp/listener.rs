//! A listening socket.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{self, SocketFlags, sockopt};

use super::socket::open;
use super::{MaybeTls, Stream, TcpSocket};
use crate::Error;
use crate::error::Operation;
use crate::impls::has_descriptor;
#[cfg(feature = "rssl")]
use crate::tls::Tls;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

/// A socket that accepts connections without waiting for them.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    local: SocketAddr,
}

impl Listener {
    /// Listens at an address of this machine; port 0 takes a free one, and `[::]` also accepts IPv4 clients.
    ///
    /// # Errors
    /// The address is taken or not this machine's.
    pub fn open(address: impl Into<SocketAddr>) -> Result<Self, Error> {
        let address = address.into();
        let failed = |operation| move |errno| Error::socket(operation, address, errno);
        let socket = open(address)?;
        // A restarted server's port still has the server's old connections in TIME_WAIT.
        sockopt::set_socket_reuseaddr(&socket, true).map_err(Error::option("SO_REUSEADDR", 1, address))?;
        if address.is_ipv6() {
            // Independent of the machine's setting (`net.ipv6.bindv6only`).
            sockopt::set_ipv6_v6only(&socket, false).map_err(Error::option("IPV6_V6ONLY", 0, address))?;
        }
        net::bind(&socket, &address).map_err(failed(Operation::Bind))?;
        net::listen(&socket, BACKLOG).map_err(failed(Operation::Listen))?;
        let local = net::getsockname(&socket)
            .and_then(|any| SocketAddr::try_from(any).map_err(|_| Errno::AFNOSUPPORT))
            .map_err(failed(Operation::Bind))?;
        Ok(Self { socket, local })
    }

    /// Returns the next waiting connection, with a buffer of `input_bytes` for received bytes; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Socket`] when the machine refuses, such as for too many open files. Waiting connections stay
    /// in the backlog.
    pub fn accept(&mut self, input_bytes: usize) -> Result<Option<Stream>, Error> {
        self.accept_socket()?.map(|socket| Stream::new(MaybeTls::Plain(socket), input_bytes)).transpose()
    }

    /// As [`accept`](Self::accept), with TLS, on which the [flushes](Stream::flush) of the stream agree.
    ///
    /// # Errors
    /// As [`accept`](Self::accept); [`Error::Tls`] when the settings are not a server's.
    #[cfg(feature = "rssl")]
    pub fn accept_tls(&mut self, tls: &Tls, input_bytes: usize) -> Result<Option<Stream>, Error> {
        let Some(socket) = self.accept_socket()? else { return Ok(None) };
        Stream::new(MaybeTls::encrypted(socket, tls.accept()?), input_bytes).map(Some)
    }

    /// Returns the next waiting connection, without buffers; `None` if there is none.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn accept_socket(&mut self) -> Result<Option<TcpSocket>, Error> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        loop {
            match net::acceptfrom_with(&self.socket, flags) {
                Ok((socket, peer)) => {
                    let peer = peer.and_then(|any| SocketAddr::try_from(any).ok());
                    // The peer left before it was accepted.
                    let Some(peer) = peer else { continue };
                    // An IPv4 client that arrived on an IPv6 socket has its IPv4 address.
                    let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
                    return Ok(Some(TcpSocket::accepted(socket, peer)));
                }
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR | Errno::CONNABORTED | Errno::PROTO) => {}
                Err(errno) => return Err(Error::socket(Operation::Accept, self.local, errno)),
            }
        }
    }

    /// Returns the address at which the socket listens, with the port assigned if port 0 was requested.
    pub fn local_address(&self) -> SocketAddr {
        self.local
    }
}

has_descriptor!(Listener, socket);
