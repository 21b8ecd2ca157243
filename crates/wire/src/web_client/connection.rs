//! A blocking connection with time-outs, over TLS or plain TCP.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use rustls::{ClientConnection, StreamOwned};
use tapeline_measure::instant;

use super::{Url, WebError, WebLimits};
use crate::Error;
use crate::tls::Tls;

/// A connection to a web server.
pub(super) enum WebConnection {
    Plain(TimedSocket),
    Tls(Box<StreamOwned<ClientConnection, TimedSocket>>),
}

impl WebConnection {
    /// Connects to the first address of the host that accepts. All addresses together have `answer_time`, and so has the handshake of TLS.
    pub(super) fn dial(url: &Url, tls: Option<&Tls>, limits: &WebLimits) -> Result<Self, WebError> {
        let resolve = |cause| WebError::Resolve { host: url.host().to_owned(), cause };
        let addresses: Vec<_> =
            (url.host(), url.port()).to_socket_addrs().map_err(resolve)?.take(MOST_ADDRESSES).collect();
        let each = limits.answer_time / u32::try_from(addresses.len().max(1)).unwrap_or(1);
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        let mut connected = None;
        for address in addresses {
            match TcpStream::connect_timeout(&address, each) {
                Ok(stream) => {
                    connected = Some(stream);
                    break;
                }
                Err(cause) => last = cause,
            }
        }
        let failed = |cause| WebError::Connection { host: url.authority(), cause };
        let stream = connected.ok_or(()).map_err(|()| failed(last))?;
        let socket = TimedSocket::new(stream, limits.answer_time).map_err(failed)?;
        if !url.is_encrypted() {
            return Ok(Self::Plain(socket));
        }
        let tls = tls.ok_or_else(|| Error::Tls {
            what: "no settings",
            cause: "the address asks for TLS".to_owned(),
        })?;
        let mut tls = StreamOwned::new(tls.client_connection(url.host())?, socket);
        while tls.conn.is_handshaking() {
            // A time-out is an error here: the server had its time.
            tls.conn.complete_io(&mut tls.sock).map_err(failed)?;
        }
        tls.sock.begin(limits.answer_time).map_err(failed)?;
        Ok(Self::Tls(Box::new(tls)))
    }

    /// The socket.
    pub(super) fn socket(&mut self) -> &mut TimedSocket {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(tls) => &mut tls.sock,
        }
    }
}

impl Read for WebConnection {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(room),
            Self::Tls(tls) => tls.read(room),
        }
    }
}

impl Write for WebConnection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(tls) => tls.flush(),
        }
    }
}

/// Maximum number of a host's addresses that are tried.
const MOST_ADDRESSES: usize = 8;

/// A socket whose reads and writes end, however slowly the other side sends or takes.
pub(super) struct TimedSocket {
    stream: TcpStream,
    /// The time of a read and of a write alone, as the kernel has it.
    read_time: Duration,
    write_time: Duration,
    /// The ends of all reads and all writes together since [`begin`](Self::begin). The last of them may begin just before.
    read_until: Instant,
    write_until: Instant,
    /// `false` until the first read of the exchange, which takes what is there however late it is.
    has_read: bool,
    received: u64,
}

impl TimedSocket {
    fn new(stream: TcpStream, time: Duration) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let time = time.max(SHORTEST);
        stream.set_read_timeout(Some(time))?;
        stream.set_write_timeout(Some(time))?;
        let until = instant() + time;
        Ok(Self {
            stream,
            read_time: time,
            write_time: time,
            read_until: until,
            write_until: until,
            has_read: false,
            received: 0,
        })
    }

    /// Begins an exchange: all its reads together have `time`, and all its writes the time that the connection was made with.
    pub(super) fn begin(&mut self, time: Duration) -> io::Result<()> {
        let time = time.max(SHORTEST);
        if time != self.read_time {
            self.stream.set_read_timeout(Some(time))?;
            self.read_time = time;
        }
        let now = instant();
        (self.read_until, self.write_until) = (now + time, now + self.write_time);
        self.has_read = false;
        Ok(())
    }

    /// The present time of a read.
    pub(super) const fn read_time(&self) -> Duration {
        self.read_time
    }

    /// Number of bytes received so far.
    pub(super) const fn received(&self) -> u64 {
        self.received
    }
}

/// The kernel takes zero for no limit.
const SHORTEST: Duration = Duration::from_millis(1);

impl Read for TimedSocket {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if std::mem::replace(&mut self.has_read, true) {
            in_time(self.read_until, NO_ANSWER)?;
        }
        let count = self.stream.read(room).map_err(|cause| told(cause, NO_ANSWER))?;
        self.received += count as u64;
        Ok(count)
    }
}

impl Write for TimedSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        in_time(self.write_until, NOT_TAKEN)?;
        self.stream.write(bytes).map_err(|cause| told(cause, NOT_TAKEN))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const NO_ANSWER: &str = "the server did not answer in time";
const NOT_TAKEN: &str = "the server did not take what was sent in time";

fn in_time(until: Instant, what: &'static str) -> io::Result<()> {
    if instant() < until { Ok(()) } else { Err(io::Error::new(io::ErrorKind::WouldBlock, what)) }
}

/// A time-out in words: the kernel calls it "Resource temporarily unavailable".
fn told(cause: io::Error, what: &'static str) -> io::Error {
    match cause.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            io::Error::new(io::ErrorKind::WouldBlock, what)
        }
        _ => cause,
    }
}

/// Returns `true` if a read has only reached its time limit.
pub(super) fn is_time_out(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
