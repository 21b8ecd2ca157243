//! The transport of a session's bytes: a socket, with or without TLS.

use std::io::{self, IoSlice, Read, Write};
use std::net::SocketAddr;

use rustls::Connection;

use super::fault::Reason;
use super::in_memory::NearEnd;
use super::settings::ConnectionSettings;
use crate::Error;
use crate::impls::shown;
use crate::tcp::{Received, TcpSocket};

/// The carrier of a session's bytes.
#[derive(Debug)]
pub(super) enum Transport {
    /// A socket without TLS.
    Plain(TcpSocket),
    Tls(Box<Encrypted>),
    /// No socket.
    InMemory(NearEnd),
}

/// A socket with TLS.
pub(super) struct Encrypted {
    socket: TcpSocket,
    tls: Connection,
    /// The peer has closed its side, with or without a TLS close message.
    ended: bool,
}

/// Maximum bytes that TLS buffers for encryption, and encrypted bytes that the socket has not accepted.
const UNSENT: usize = 64 << 10;

impl Transport {
    pub(super) fn encrypted(socket: TcpSocket, mut tls: Connection) -> Self {
        tls.set_buffer_limit(Some(UNSENT));
        Self::Tls(Box::new(Encrypted { socket, tls, ended: false }))
    }

    pub(super) fn receive(&mut self, room: &mut [u8]) -> Result<Received, Reason> {
        match self {
            Self::Plain(socket) => Ok(socket.receive(room)?),
            Self::Tls(encrypted) => encrypted.receive(room),
            Self::InMemory(end) => Ok(end.receive(room)?),
        }
    }

    /// Sends as much as possible and returns the number of bytes. With TLS, the bytes of one call start a
    /// record of their own; if one record is long enough, they are in that record alone.
    pub(super) fn send(&mut self, pieces: &[IoSlice<'_>]) -> Result<usize, Reason> {
        match self {
            Self::Plain(socket) => Ok(socket.send(pieces)?),
            Self::InMemory(end) => Ok(end.send(pieces)?),
            Self::Tls(encrypted) => {
                // Otherwise the bytes could be split where TLS has no more space.
                if !encrypted.flush()? {
                    return Ok(0);
                }
                let taken = encrypted.tls.writer().write_vectored(pieces).unwrap_or(0);
                encrypted.flush()?;
                Ok(taken)
            }
        }
    }

    /// Sends the bytes that TLS has buffered and returns `true` if nothing remains.
    pub(super) fn flush(&mut self) -> Result<bool, Reason> {
        match self {
            Self::Plain(socket) => Ok(socket.has_connected()?),
            Self::Tls(encrypted) => encrypted.flush(),
            Self::InMemory(_) => Ok(true),
        }
    }

    /// Tells the peer that nothing more will be sent.
    pub(super) fn finish(&mut self) {
        if let Self::Tls(encrypted) = self {
            encrypted.tls.send_close_notify();
            // A failure does not matter: the connection ends anyway.
            let _ = encrypted.flush();
        }
        match self {
            Self::Plain(socket) => socket.finish(),
            Self::Tls(encrypted) => encrypted.socket.finish(),
            Self::InMemory(end) => end.finish(),
        }
    }

    /// Returns `true` if a flush is needed that the session does not know of: for the connect, or for bytes
    /// of TLS.
    pub(super) fn wants_flush(&self) -> bool {
        match self {
            Self::Plain(socket) => socket.is_connecting(),
            Self::Tls(encrypted) => encrypted.socket.is_connecting() || encrypted.tls.wants_write(),
            Self::InMemory(_) => false,
        }
    }

    /// Returns `true` once a session's bytes can reach the peer.
    pub(super) fn is_established(&self) -> bool {
        match self {
            Self::Plain(socket) => !socket.is_connecting(),
            Self::Tls(encrypted) => !encrypted.tls.is_handshaking(),
            Self::InMemory(_) => true,
        }
    }

    pub(super) fn is_encrypted(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Returns the TLS version, such as `TLSv1_3`, once it is negotiated.
    pub(super) fn tls_version(&self) -> Option<&'static str> {
        match self {
            Self::Plain(_) | Self::InMemory(_) => None,
            Self::Tls(encrypted) => encrypted.tls.protocol_version().and_then(|version| version.as_str()),
        }
    }

    pub(super) fn socket(&self) -> Option<&TcpSocket> {
        match self {
            Self::Plain(socket) => Some(socket),
            Self::Tls(encrypted) => Some(&encrypted.socket),
            Self::InMemory(_) => None,
        }
    }

    pub(super) fn is_connecting(&self) -> bool {
        self.socket().is_some_and(TcpSocket::is_connecting)
    }

    pub(super) fn peer_address(&self) -> SocketAddr {
        match self {
            Self::Plain(socket) => socket.peer_address(),
            Self::Tls(encrypted) => encrypted.socket.peer_address(),
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

impl Encrypted {
    fn receive(&mut self, room: &mut [u8]) -> Result<Received, Reason> {
        if room.is_empty() {
            return Ok(Received::Full);
        }
        // A peer cannot keep this loop busy with empty records: TLS ends the connection after 32 in a row.
        loop {
            match self.tls.reader().read(room) {
                Ok(0) => return Ok(Received::Closed),
                Ok(count) => return Ok(Received::Bytes(count)),
                // No decrypted bytes.
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock && !self.ended => {}
                // Closed without a TLS close message: accepted, because RSSL has no closing message either.
                Err(_) => return Ok(Received::Closed),
            }
            match self.tls.read_tls(&mut Bytes(&mut self.socket)) {
                Ok(0) => self.ended = true,
                Ok(_) => {}
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => return Ok(Received::Nothing),
                Err(cause) => return Err(failed(cause)),
            }
            if let Err(cause) = self.tls.process_new_packets() {
                // Sends the TLS alert to the peer.
                let _ = self.flush();
                return Err(Reason::Tls(cause.to_string()));
            }
        }
    }

    fn flush(&mut self) -> Result<bool, Reason> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Bytes(&mut self.socket)) {
                Ok(_) => {}
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(cause) => return Err(failed(cause)),
            }
        }
        Ok(true)
    }
}

/// Adapts a socket to TLS, which knows only I/O errors.
struct Bytes<'a>(&'a mut TcpSocket);

impl Read for Bytes<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self.0.receive(room) {
            Ok(Received::Bytes(count)) => Ok(count),
            Ok(Received::Nothing) => Err(io::ErrorKind::WouldBlock.into()),
            Ok(Received::Closed | Received::Full) => Ok(0),
            Err(cause) => Err(io::Error::other(cause)),
        }
    }
}

impl Write for Bytes<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self.0.send(pieces) {
            Ok(0) => Err(io::ErrorKind::WouldBlock.into()),
            Ok(count) => Ok(count),
            Err(cause) => Err(io::Error::other(cause)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Extracts the socket's error from the I/O error that carried it through TLS.
fn failed(cause: io::Error) -> Reason {
    match cause.downcast::<Error>() {
        Ok(error) => Reason::Socket(error),
        Err(cause) => Reason::Tls(cause.to_string()),
    }
}

shown!(Encrypted, it => socket: it.socket, handshaking: it.tls.is_handshaking());
