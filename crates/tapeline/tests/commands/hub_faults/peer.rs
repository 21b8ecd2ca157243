//! An RSSL client over a plain socket, which can do what a valid client never does.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use tapeline_measure::{Clock, Nanos};
use tapeline_omm::Refused;
use tapeline_omm::domain::LoginRequest;
use tapeline_omm::rwf::{Domain, Header, Key, MessageView, RequestHeader, flags};
use tapeline_wire::rssl::{ConnectionSettings, Event, Sent, Session, Version};

use crate::hub_faults::market::STOCKS;

/// Default service number.
const SERVICE: u16 = 1;

/// One end of a connection without automatic activity: it sends no pings, and reads only on request.
pub(crate) struct Peer {
    pub(crate) socket: TcpStream,
    session: Session,
    received: Vec<u8>,
    now: Nanos,
}

impl Peer {
    /// An open connection without a login.
    pub(crate) fn connect(address: SocketAddr) -> Self {
        // The socket buffer limits the data in flight to a peer that does not read.
        let socket = socket(address);
        let now = Clock::calibrate().now();
        // It sends no pings: the hub's time counts alone.
        let settings =
            ConnectionSettings { connection_ping_timeout: u8::MAX, ..ConnectionSettings::default() };
        let session = Session::client(Arc::new(settings), Version::V14, now);
        let mut peer = Self { socket, session, received: Vec::new(), now };
        while !peer.session.is_open() {
            peer.flush();
            assert!(peer.read(&mut |_| {}), "the hub closed before the connection was open");
        }
        peer
    }

    /// Logs in under this name, and opens each stock `times` times.
    pub(crate) fn open(address: SocketAddr, user: &str, times: i32) -> Self {
        let mut peer = Self::log_in(address, user);
        for (stock, number) in STOCKS.iter().zip(0..) {
            for time in 0..times {
                peer.ask(5 + number * times + time, stock);
            }
        }
        peer
    }

    /// A connection that is logged in under this name.
    pub(crate) fn log_in(address: SocketAddr, user: &str) -> Self {
        let mut peer = Self::connect(address);
        peer.send(&encoded(|room| LoginRequest::new(user.as_bytes()).encode(room)));
        let mut is_in = false;
        while !is_in {
            assert!(peer.read(&mut |message| is_in |= message.domain() == Domain::LOGIN));
        }
        peer
    }

    /// Opens an item.
    pub(crate) fn ask(&mut self, stream: i32, name: &str) {
        self.ask_of(SERVICE, stream, name);
    }

    /// Opens an item of another service.
    pub(crate) fn ask_of(&mut self, service: u16, stream: i32, name: &str) {
        let header = RequestHeader::new(Domain::MARKET_PRICE, stream, Key::item(service, name.as_bytes()));
        self.send(&encoded(|room| RequestHeader { flags: flags::request::STREAMING, ..header }.encode(room)));
    }

    pub(crate) fn send(&mut self, message: &[u8]) {
        assert_eq!(self.session.output().send(message), Sent::Queued);
        self.flush();
    }

    /// Sends raw bytes; returns whether the hub is still connected.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> bool {
        self.socket.write_all(bytes).is_ok()
    }

    /// The encoded frame of a message.
    pub(crate) fn frame(&mut self, message: &[u8]) -> Vec<u8> {
        assert_eq!(self.session.output().send(message), Sent::Queued);
        self.session.drain()
    }

    fn flush(&mut self) {
        let bytes = self.session.drain();
        self.socket.write_all(&bytes).unwrap();
    }

    /// Waits for data and handles it; returns whether the connection is still open.
    pub(crate) fn read(&mut self, each: &mut dyn FnMut(&MessageView<'_>)) -> bool {
        let mut bytes = [0; 64 << 10];
        let count = match self.socket.read(&mut bytes) {
            Ok(0) | Err(_) => return false,
            Ok(count) => count,
        };
        self.received.extend_from_slice(&bytes[..count]);
        loop {
            let (consumed, event) = self.session.take(&mut self.received, self.now).unwrap();
            let is_last = event.is_none();
            if let Some(Event::Message(message)) = event {
                each(&MessageView::parse(message).unwrap());
            }
            self.received.drain(..consumed);
            if is_last {
                return true;
            }
        }
    }

    /// Reads to the end; returns the last state of the login, if there was one.
    pub(crate) fn last_words(&mut self) -> Option<String> {
        let mut last = None;
        while self.read(&mut |message| {
            if message.domain() == Domain::LOGIN
                && let Ok(Header::Status(status)) = message.header()
                && let Some(state) = status.state
            {
                last = Some(String::from_utf8_lossy(state.text).into_owned());
            }
        }) {}
        last
    }
}

/// A connection with a small receive buffer.
fn socket(address: SocketAddr) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, connect, socket, sockopt};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    sockopt::set_socket_recv_buffer_size(&socket, 16 << 10).unwrap();
    connect(&socket, &address).unwrap();
    TcpStream::from(socket)
}

pub(crate) fn encoded(write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    let len = write(&mut bytes).unwrap();
    bytes.truncate(len);
    bytes
}
