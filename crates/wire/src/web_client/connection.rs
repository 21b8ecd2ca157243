//! A blocking connection with time-outs, over TLS or plain TCP.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use rustls::{ClientConnection, StreamOwned};

use super::{Url, WebError, WebLimits};
use crate::Error;
use crate::tls::Tls;

/// A connection to a web server.
pub(super) enum WebConnection {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl WebConnection {
    /// Connects to the first address of the host that accepts.
    pub(super) fn dial(url: &Url, tls: Option<&Tls>, limits: &WebLimits) -> Result<Self, WebError> {
        let resolve = |cause| WebError::Resolve { host: url.host().to_owned(), cause };
        let addresses = (url.host(), url.port()).to_socket_addrs().map_err(resolve)?;
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        let mut connected = None;
        for address in addresses {
            match TcpStream::connect_timeout(&address, limits.answer_time) {
                Ok(stream) => {
                    connected = Some(stream);
                    break;
                }
                Err(cause) => last = cause,
            }
        }
        let failed = |cause| WebError::Connection { host: url.authority(), cause };
        let stream = connected.ok_or(()).map_err(|()| failed(last))?;
        stream.set_nodelay(true).map_err(failed)?;
        stream.set_read_timeout(Some(limits.answer_time)).map_err(failed)?;
        stream.set_write_timeout(Some(limits.answer_time)).map_err(failed)?;
        if !url.is_encrypted() {
            return Ok(Self::Plain(stream));
        }
        let tls = tls.ok_or_else(|| Error::Tls {
            what: "no settings",
            cause: "the address asks for TLS".to_owned(),
        })?;
        let mut tls = StreamOwned::new(tls.client_connection(url.host())?, stream);
        while tls.conn.is_handshaking() {
            // A time-out is an error here: the server had its time.
            tls.conn.complete_io(&mut tls.sock).map_err(failed)?;
        }
        Ok(Self::Tls(Box::new(tls)))
    }

    /// Sets the maximum time of a read.
    pub(super) fn set_read_time(&self, time: Duration) -> io::Result<()> {
        let socket = match self {
            Self::Plain(stream) => stream,
            Self::Tls(tls) => &tls.sock,
        };
        // Zero would mean no limit.
        socket.set_read_timeout(Some(time.max(Duration::from_millis(1))))
    }
}

impl Read for WebConnection {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(room),
            Self::Tls(tls) => tls.read(room),
        }
    }
}

impl Write for WebConnection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Tls(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Tls(tls) => tls.flush(),
        }
    }
}

/// Returns `true` if a read has only reached its time limit.
pub(super) fn is_time_out(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
