//! A socket, with or without TLS.

use std::io::IoSlice;

use super::{Received, TcpSocket};
use crate::Error;

#[cfg(feature = "rssl")]
pub(crate) use encrypted::Encrypted;

/// A socket, with or without TLS.
#[derive(Debug)]
pub(crate) enum MaybeTls {
    Plain(TcpSocket),
    #[cfg(feature = "rssl")]
    Tls(Box<Encrypted>),
}

impl MaybeTls {
    #[cfg(feature = "rssl")]
    pub(crate) fn encrypted(socket: TcpSocket, tls: rustls::Connection) -> Self {
        Self::Tls(Box::new(Encrypted::new(socket, tls)))
    }

    /// Reads once into `room`; returns [`Received::Full`] if `room` is empty.
    pub(crate) fn receive(&mut self, room: &mut [u8]) -> Result<Received, Error> {
        match self {
            Self::Plain(socket) => socket.receive(room),
            #[cfg(feature = "rssl")]
            Self::Tls(encrypted) => encrypted.receive(room),
        }
    }

    /// Sends as much as possible and returns the number of bytes. With TLS, the bytes of one call start a
    /// record of their own; if one record is long enough, they are in that record alone.
    pub(crate) fn send(&mut self, pieces: &[IoSlice<'_>]) -> Result<usize, Error> {
        match self {
            Self::Plain(socket) => socket.send(pieces),
            #[cfg(feature = "rssl")]
            Self::Tls(encrypted) => encrypted.send(pieces),
        }
    }

    /// Sends the bytes that TLS has buffered and returns `true` if nothing remains.
    #[cfg(feature = "rssl")]
    pub(crate) fn flush(&mut self) -> Result<bool, Error> {
        match self {
            Self::Plain(socket) => socket.has_connected(),
            Self::Tls(encrypted) => encrypted.flush(),
        }
    }

    /// Connects, and agrees on TLS; returns `true` once bytes can reach the peer.
    pub(crate) fn establish(&mut self) -> Result<bool, Error> {
        match self {
            Self::Plain(socket) => socket.has_connected(),
            #[cfg(feature = "rssl")]
            Self::Tls(encrypted) => encrypted.establish(),
        }
    }

    /// Tells the peer that nothing more will be sent.
    pub(crate) fn finish(&mut self) {
        #[cfg(feature = "rssl")]
        if let Self::Tls(encrypted) = self {
            encrypted.close();
        }
        self.socket().finish();
    }

    /// Returns `true` if a flush is needed that the caller does not know of: for the connect, or for bytes of TLS.
    pub(crate) fn wants_flush(&self) -> bool {
        match self {
            Self::Plain(socket) => socket.is_connecting(),
            #[cfg(feature = "rssl")]
            Self::Tls(encrypted) => encrypted.wants_flush(),
        }
    }

    /// Returns `true` once bytes can reach the peer, as far as is known.
    pub(crate) fn is_established(&self) -> bool {
        match self {
            Self::Plain(socket) => !socket.is_connecting(),
            #[cfg(feature = "rssl")]
            Self::Tls(encrypted) => encrypted.is_established(),
        }
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            #[cfg(feature = "rssl")]
            Self::Tls(_) => true,
        }
    }

    pub(crate) fn socket(&self) -> &TcpSocket {
        match self {
            Self::Plain(socket) => socket,
            #[cfg(feature = "rssl")]
            Self::Tls(encrypted) => encrypted.socket(),
        }
    }
}

#[cfg(feature = "rssl")]
mod encrypted {
    use std::io::{self, IoSlice, Read, Write};

    use rustls::{AlertDescription, CertificateError, Connection, InvalidMessage};

    use super::{Received, TcpSocket};
    use crate::Error;
    use crate::impls::shown;

    /// Maximum bytes that TLS buffers for encryption, and encrypted bytes that the socket has not accepted.
    const UNSENT: usize = 64 << 10;

    /// A socket with TLS.
    pub(crate) struct Encrypted {
        socket: TcpSocket,
        tls: Connection,
        /// The peer has closed its side, with or without a TLS close message.
        ended: bool,
    }

    impl Encrypted {
        pub(super) fn new(socket: TcpSocket, mut tls: Connection) -> Self {
            tls.set_buffer_limit(Some(UNSENT));
            Self { socket, tls, ended: false }
        }

        pub(super) fn receive(&mut self, room: &mut [u8]) -> Result<Received, Error> {
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
                    // Closed without a TLS close message: the protocols inside say themselves what is whole.
                    Err(_) => return Ok(Received::Closed),
                }
                if !self.read()? {
                    return Ok(Received::Nothing);
                }
            }
        }

        pub(super) fn send(&mut self, pieces: &[IoSlice<'_>]) -> Result<usize, Error> {
            // Otherwise the bytes could be split where TLS has no more space.
            if !self.flush()? {
                return Ok(0);
            }
            let taken = self.tls.writer().write_vectored(pieces).unwrap_or(0);
            self.flush()?;
            Ok(taken)
        }

        pub(super) fn flush(&mut self) -> Result<bool, Error> {
            while self.tls.wants_write() {
                match self.tls.write_tls(&mut Bytes(&mut self.socket)) {
                    Ok(_) => {}
                    Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                    Err(cause) => return Err(self.failed(cause)),
                }
            }
            Ok(true)
        }

        pub(super) fn establish(&mut self) -> Result<bool, Error> {
            while self.tls.is_handshaking() {
                if !self.flush()? || !self.read()? {
                    return Ok(false);
                }
                if self.ended && self.tls.is_handshaking() {
                    let cause = "the peer closed the connection during the handshake".to_owned();
                    return Err(self.broken(cause, Some("does the other end have TLS, and on this port?")));
                }
            }
            self.flush()
        }

        pub(super) fn close(&mut self) {
            self.tls.send_close_notify();
            // A failure does not matter: the connection ends anyway.
            let _ = self.flush();
        }

        pub(super) fn wants_flush(&self) -> bool {
            self.socket.is_connecting() || self.tls.wants_write()
        }

        pub(super) fn is_established(&self) -> bool {
            !self.tls.is_handshaking()
        }

        pub(super) fn socket(&self) -> &TcpSocket {
            &self.socket
        }

        /// Returns the TLS version, such as `TLSv1_3`, once it is negotiated.
        pub(crate) fn version(&self) -> Option<&'static str> {
            self.tls.protocol_version().and_then(|version| version.as_str())
        }

        /// Reads encrypted bytes once, and decrypts them. Returns `false` if there are none for now.
        fn read(&mut self) -> Result<bool, Error> {
            match self.tls.read_tls(&mut Bytes(&mut self.socket)) {
                Ok(0) => self.ended = true,
                Ok(_) => {}
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(cause) => return Err(self.failed(cause)),
            }
            if let Err(cause) = self.tls.process_new_packets() {
                // Sends the TLS alert to the peer.
                let _ = self.flush();
                return Err(self.broken(cause.to_string(), hint_for(&cause)));
            }
            Ok(true)
        }

        /// Extracts the socket's error from the I/O error that carried it through TLS.
        fn failed(&self, cause: io::Error) -> Error {
            cause.downcast().unwrap_or_else(|cause| self.broken(cause.to_string(), None))
        }

        fn broken(&self, cause: String, hint: Option<&'static str>) -> Error {
            Error::TlsPeer { peer: self.socket.peer_address(), cause, hint }
        }
    }

    /// Returns advice for a user whose connection TLS has ended.
    fn hint_for(cause: &rustls::Error) -> Option<&'static str> {
        Some(match cause {
            // A bad signature: another authority has the same name.
            rustls::Error::InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::BadSignature,
            ) => "none of the trusted certificates has signed the peer's: does ca name the right file?",
            rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            ) => "the peer's certificate has another name or address than the one that is connected to",
            rustls::Error::InvalidCertificate(
                CertificateError::Expired | CertificateError::ExpiredContext { .. },
            ) => "the peer needs a new certificate; or this machine's clock is wrong",
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
                "the peer does not speak TLS on this port: both ends need it, or neither"
            }
            rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
                "the peer requires a certificate of this end: set cert and key"
            }
            rustls::Error::AlertReceived(_) => "the peer has ended the handshake: its own messages say why",
            _ => return None,
        })
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

    shown!(Encrypted, it => socket: it.socket, handshaking: it.tls.is_handshaking());
}
