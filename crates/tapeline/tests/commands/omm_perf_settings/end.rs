//! The other end of a tool's connection, in the test's own thread, and its view of the tool.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{getpeername, sockopt};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use tapeline_measure::{Nanos, monotonic_ns};
use tapeline_omm::domain::{LoginFeatures, LoginRefresh, LoginRequest};
use tapeline_omm::rwf::{Domain, Header, MessageView};
use tapeline_wire::rssl::{ConnectionSettings, Event, Negotiated, Session, Version};

use crate::omm_perf_settings::perf_peer::Tool;

/// One end of an RSSL connection.
pub(crate) struct End {
    pub(crate) stream: TcpStream,
    pub(crate) session: Session,
    input: Vec<u8>,
    /// Number of received bytes.
    pub(crate) bytes: usize,
    /// The bytes of the first read.
    pub(crate) first: Vec<u8>,
}

fn now() -> Nanos {
    Nanos(monotonic_ns())
}

impl End {
    /// The server end of a connection that the tool opens.
    pub(crate) fn accept(listener: &TcpListener, tool: &mut Tool, settings: ConnectionSettings) -> Self {
        let mut ready = [PollFd::new(listener, PollFlags::IN)];
        let while_it_runs = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        while poll(&mut ready, Some(&while_it_runs)).unwrap() == 0 {
            assert!(tool.runs(), "it ended without a connection: see what it said on standard error");
        }
        Self::new(listener.accept().unwrap().0, Session::server(Arc::new(settings), now()))
    }

    /// The client end of a connection to a server at this address.
    pub(crate) fn connect(address: (&str, u16), settings: ConnectionSettings) -> Self {
        let session = Session::client(Arc::new(settings), Version::V14, now());
        Self::new(TcpStream::connect(address).unwrap(), session)
    }

    fn new(stream: TcpStream, session: Session) -> Self {
        Self { stream, session, input: Vec::new(), bytes: 0, first: Vec::new() }
    }

    /// The negotiated settings, after the connection is open.
    pub(crate) fn agreed(&mut self) -> Negotiated {
        while !self.session.is_open() {
            assert!(self.take(), "it is over before it is open");
        }
        self.session.negotiated().unwrap().clone()
    }

    /// The next message; `None` at the end of the connection.
    pub(crate) fn message(&mut self) -> Option<Vec<u8>> {
        loop {
            let (consumed, message) = match self.session.take(&mut self.input, now()) {
                Ok((consumed, Some(Event::Message(message)))) => (consumed, Some(message.to_vec())),
                Ok((consumed, event)) => {
                    let goes_on = event.is_some();
                    self.input.drain(..consumed);
                    self.flush();
                    if !goes_on && !self.receive() {
                        return None;
                    }
                    continue;
                }
                Err(_) => return None,
            };
            self.input.drain(..consumed);
            return message;
        }
    }

    /// Sends a message.
    pub(crate) fn send(&mut self, message: &[u8]) {
        assert_eq!(self.session.output().send(message), tapeline_wire::rssl::Sent::Queued);
        self.flush();
    }

    /// Accepts the login if this message is one.
    pub(crate) fn let_in(&mut self, message: &[u8]) {
        let view = MessageView::parse(message).unwrap();
        if let (Domain::LOGIN, Ok(Header::Request(request))) = (view.domain(), view.header()) {
            let request = LoginRequest::read(&request).unwrap();
            let mut room = [0; 4096];
            let len = LoginRefresh::accepting(&request, LoginFeatures::default()).encode(&mut room).unwrap();
            self.send(&room[..len]);
        }
    }

    /// Handles received data of the handshake; returns whether the connection is still open.
    fn take(&mut self) -> bool {
        self.flush();
        if !self.receive() {
            return false;
        }
        let (consumed, _) = self.session.take(&mut self.input, now()).unwrap();
        self.input.drain(..consumed);
        self.flush();
        true
    }

    fn flush(&mut self) {
        self.stream.write_all(&self.session.drain()).unwrap();
    }

    fn receive(&mut self) -> bool {
        let mut buffer = vec![0; 1 << 16];
        let count = self.stream.read(&mut buffer).unwrap_or(0);
        if self.bytes == 0 {
            self.first = buffer[..count].to_vec();
        }
        self.bytes += count;
        self.input.extend_from_slice(&buffer[..count]);
        count > 0
    }

    /// SO_SNDBUF, SO_RCVBUF and TCP_NODELAY of the tool's own socket. `None`, with a note, if the system does not give
    /// access to it.
    pub(crate) fn options_of(&self, tool: Pid) -> Option<(usize, usize, bool)> {
        let Some(socket) = socket_of(tool, &self.stream) else {
            eprintln!("skipped: a child's socket cannot be had here (pidfd_getfd)");
            return None;
        };
        let send = sockopt::socket_send_buffer_size(&socket).unwrap();
        let receive = sockopt::socket_recv_buffer_size(&socket).unwrap();
        Some((send, receive, sockopt::tcp_nodelay(&socket).unwrap()))
    }
}

/// The socket of a process that is connected to `other`.
fn socket_of(process: Pid, other: &TcpStream) -> Option<OwnedFd> {
    let of_process = pidfd_open(process, PidfdFlags::empty()).ok()?;
    let folder = format!("/proc/{}/fd", process.as_raw_nonzero());
    let numbers = std::fs::read_dir(folder).unwrap().filter_map(|entry| {
        let path = entry.ok()?.path();
        let is_socket = std::fs::read_link(&path).ok()?.to_str()?.starts_with("socket:");
        is_socket.then(|| path.file_name()?.to_str()?.parse().ok()).flatten()
    });
    let ours = other.local_addr().unwrap();
    let sockets = numbers.map(|number| pidfd_getfd(&of_process, number, PidfdGetfdFlags::empty()));
    let mut sockets = sockets.filter_map(Result::ok);
    sockets.find(|socket| getpeername(socket).is_ok_and(|peer| peer.is_some_and(|peer| peer == ours.into())))
}

/// Total size of a process's writable anonymous memory blocks of at least this size, in bytes.
pub(crate) fn blocks(process: Pid, at_least: usize) -> usize {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", process.as_raw_nonzero())).unwrap();
    let sizes = maps.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        let address = |text: &str| usize::from_str_radix(text, 16).ok();
        let is_writable = words.next()?.starts_with("rw");
        (is_writable && words.nth(3).is_none()).then(|| Some(address(to)? - address(from)?)).flatten()
    });
    sizes.filter(|size| *size >= at_least).sum()
}
