//! The transport of a session's bytes: a socket, with or without TLS, or none.

use std::io::IoSlice;
use std::net::SocketAddr;

use super::fault::Reason;
use super::in_memory::NearEnd;
use super::settings::ConnectionSettings;
use crate::Error;
use crate::tcp::{MaybeTls, Received, TcpSocket};

/// The carrier of a session's bytes.
#[derive(Debug)]
pub(super) enum Transport {
    Socket(MaybeTls),
    /// No socket.
    InMemory(NearEnd),
}

impl Transport {
    pub(super) fn plain(socket: TcpSocket) -> Self {
        Self::Socket(MaybeTls::Plain(socket))
    }

    pub(super) fn encrypted(socket: TcpSocket, tls: rustls::Connection) -> Self {
        Self::Socket(MaybeTls::encrypted(socket, tls))
    }

    pub(super) fn receive(&mut self, room: &mut [u8]) -> Result<Received, Reason> {
        Ok(match self {
            Self::Socket(socket) => socket.receive(room)?,
            Self::InMemory(end) => end.receive(room)?,
        })
    }

    /// Sends as much as possible and returns the number of bytes. With TLS, the bytes of one call start a
    /// record of their own; if one record is long enough, they are in that record alone.
    pub(super) fn send(&mut self, pieces: &[IoSlice<'_>]) -> Result<usize, Reason> {
        Ok(match self {
            Self::Socket(socket) => socket.send(pieces)?,
            Self::InMemory(end) => end.send(pieces)?,
        })
    }

    /// Sends the bytes that TLS has buffered and returns `true` if nothing remains.
    pub(super) fn flush(&mut self) -> Result<bool, Reason> {
        match self {
            Self::Socket(socket) => Ok(socket.flush()?),
            Self::InMemory(_) => Ok(true),
        }
    }

    /// Tells the peer that nothing more will be sent.
    pub(super) fn finish(&mut self) {
        match self {
            Self::Socket(socket) => socket.finish(),
            Self::InMemory(end) => end.finish(),
        }
    }

    /// Returns `true` if a flush is needed that the session does not know of: for the connect, or for bytes
    /// of TLS.
    pub(super) fn wants_flush(&self) -> bool {
        matches!(self, Self::Socket(socket) if socket.wants_flush())
    }

    /// Returns `true` once a session's bytes can reach the peer.
    pub(super) fn is_established(&self) -> bool {
        match self {
            Self::Socket(socket) => socket.is_established(),
            Self::InMemory(_) => true,
        }
    }

    pub(super) fn is_encrypted(&self) -> bool {
        matches!(self, Self::Socket(MaybeTls::Tls(_)))
    }

    /// Returns the TLS version, such as `TLSv1_3`, once it is negotiated.
    pub(super) fn tls_version(&self) -> Option<&'static str> {
        match self {
            Self::Socket(MaybeTls::Tls(encrypted)) => encrypted.version(),
            Self::Socket(MaybeTls::Plain(_)) | Self::InMemory(_) => None,
        }
    }

    pub(super) fn socket(&self) -> Option<&TcpSocket> {
        match self {
            Self::Socket(socket) => Some(socket.socket()),
            Self::InMemory(_) => None,
        }
    }

    pub(super) fn is_connecting(&self) -> bool {
        self.socket().is_some_and(TcpSocket::is_connecting)
    }

    pub(super) fn peer_address(&self) -> SocketAddr {
        match self {
            Self::Socket(socket) => socket.socket().peer_address(),
            Self::InMemory(end) => end.peer_address(),
        }
    }

    pub(super) fn set_options(&self, settings: &ConnectionSettings) -> Result<(), Error> {
        let Some(socket) = self.socket() else { return Ok(()) };
        socket.set_no_delay(settings.tcp_nodelay)?;
        if settings.sys_send_buf_size > 0 {
            socket.set_send_buffer(settings.sys_send_buf_size)?;
        }
        if settings.sys_recv_buf_size > 0 {
            socket.set_receive_buffer(settings.sys_recv_buf_size)?;
        }
        Ok(())
    }
}
