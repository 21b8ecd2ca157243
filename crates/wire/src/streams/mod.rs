//! A server's connections over TCP and Unix-domain sockets in one loop, with a bounded output queue for each.
//!
//! The caller interprets the bytes and provides the buffer to read into. [`wait`](Streams::wait) finds the connections
//! that have sent something, [`ready`](Streams::ready) returns them one by one, and the bytes given to
//! [`send`](Streams::send) go out with [`flush`](Streams::flush), in one system call per connection. A
//! connection that does not read is closed when more than [`StreamSettings::queue_bytes`] wait for it.

mod socket;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token, Waker};
use slab::Slab;

pub use self::socket::Socket;
use tapeline_measure::instant;

use crate::error::Operation;
use crate::impls::shown;
use crate::polling::{self, Readiness};
use crate::tcp::{self, Received};
use crate::{Error, local};

/// Settings of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamSettings {
    /// Maximum number of connections. One more replaces the connection that has been silent longest since it
    /// connected, for at least a second; without one, the new connection is closed at once.
    pub max_connections: usize,
    /// Maximum bytes that may wait for one connection.
    pub queue_bytes: usize,
}

/// Identifies a connection. The number is reused after [`Streams::close`] was called for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u32);

/// A connection that needs attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    /// The connection was accepted.
    Connected(StreamId),
    /// The connection may have sent something.
    Readable(StreamId),
    /// The connection is over, for the reason in [`Streams::why`], and waits for [`Streams::close`].
    Over(StreamId),
}

/// Why a connection is over.
#[derive(Debug, thiserror::Error)]
pub enum Over {
    /// The peer has closed it.
    #[error("it has closed the connection")]
    Closed,
    /// More bytes waited for it than permitted.
    #[error("it is too slow: {waiting} bytes wait for it")]
    TooSlow {
        /// The number of waiting bytes.
        waiting: usize,
    },
    /// It has sent nothing since it connected, and another client needs its place.
    #[error("it has sent nothing, and another connection needs its place")]
    Silent,
    /// The connection failed.
    #[error(transparent)]
    Broken(Error),
}

/// Listening sockets and their connections. See the [module](self).
pub struct Streams {
    settings: StreamSettings,
    poll: Poll,
    events: Events,
    listeners: Vec<Listener>,
    peers: Slab<Peer>,
    /// Connections that need attention, each once, longest waiting first.
    ready: VecDeque<u32>,
    /// Connections to return again after the next wait.
    again: Vec<u32>,
    /// Connections with bytes to send, each once.
    touched: Vec<u32>,
    may_accept: bool,
    /// The machine refused to accept a connection, which still waits.
    accept_later: bool,
    refused: u64,
    accept_error: Option<Error>,
}

enum Listener {
    Tcp(tcp::Listener),
    Local(local::LocalListener),
}

struct Peer {
    socket: Socket,
    output: Vec<u8>,
    written: usize,
    /// The socket did not accept all flushed bytes.
    is_behind: bool,
    /// The peer has closed its side; unread bytes may come before the end.
    is_ending: bool,
    is_new: bool,
    is_ready: bool,
    is_touched: bool,
    /// Time of the connect, until the peer sends something.
    silent_since: Option<Instant>,
    over: Option<Over>,
}

/// Maximum number of events per wait.
const EVENTS: usize = 256;
/// Tokens of listeners start here.
const LISTENERS: usize = usize::MAX / 2;
/// A connection that has sent nothing for this time since it connected can be replaced.
const SILENCE: Duration = Duration::from_secs(1);
/// Connections accepted at a time, per listener.
const ACCEPTED_AT_ONCE: usize = 64;
/// Maximum memory of sent bytes that is retained for the next ones.
const KEPT: usize = 1 << 20;

impl Streams {
    /// Multiple of [`StreamSettings::queue_bytes`] that may be sent between two flushes to a peer that has read everything
    /// before.
    pub const AT_ONCE: usize = 4;

    /// Creates a server that does not listen yet.
    ///
    /// # Errors
    /// The machine refuses.
    pub fn new(settings: StreamSettings) -> Result<Self, Error> {
        Ok(Self {
            settings,
            poll: Poll::new().map_err(Error::reactor("make"))?,
            events: Events::with_capacity(EVENTS),
            listeners: Vec::new(),
            peers: Slab::new(),
            ready: VecDeque::new(),
            again: Vec::new(),
            touched: Vec::new(),
            may_accept: false,
            accept_later: false,
            refused: 0,
            accept_error: None,
        })
    }

    /// Listens at an address of this machine (port 0 takes a free one) and returns the address.
    ///
    /// # Errors
    /// The address is taken or not this machine's, or the machine refuses.
    pub fn listen(&mut self, address: SocketAddr) -> Result<SocketAddr, Error> {
        let listener = tcp::Listener::open(address)?;
        let address = listener.local_address();
        self.add(Listener::Tcp(listener))?;
        Ok(address)
    }

    /// Listens at a name in the file system, for processes of this user, and replaces any file left there; with a
    /// leading `@`, at a name in the [abstract namespace](local).
    ///
    /// # Errors
    /// The folder or the file at the name belongs to another user; the abstract name is in use.
    pub fn listen_local(&mut self, path: &Path) -> Result<(), Error> {
        let failed = |cause| Error::socket(Operation::Listen, path.display(), cause);
        self.add(Listener::Local(local::LocalListener::bind(path).map_err(failed)?))
    }

    fn add(&mut self, listener: Listener) -> Result<(), Error> {
        let token = Token(LISTENERS + self.listeners.len());
        polling::register(&self.poll, &listener, token, Interest::READABLE)?;
        self.listeners.push(listener);
        Ok(())
    }

    /// Returns an object with which another thread waits until there is something to do here, and the waker that ends
    /// its wait.
    ///
    /// # Errors
    /// The machine refuses.
    pub fn lookout(&self) -> Result<(Readiness, Waker), Error> {
        Readiness::new(&self.poll)
    }

    /// Sends queued bytes and finds the connections that need attention. If there are none, sleeps for at most
    /// `timeout`; `None` means no limit.
    ///
    /// # Errors
    /// The machine refuses to wait.
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        self.flush();
        while let Some(number) = self.again.pop() {
            self.name(StreamId(number));
        }
        let is_busy = self.may_accept || !self.ready.is_empty();
        let timeout = if is_busy { Some(Duration::ZERO) } else { timeout };
        if !polling::wait(&mut self.poll, &mut self.events, timeout)? {
            return Ok(());
        }
        for event in &self.events {
            let number = event.token().0;
            if number >= LISTENERS {
                self.may_accept = true;
                continue;
            }
            let Some(peer) = self.peers.get_mut(number) else { continue };
            if event.is_writable() && peer.written < peer.output.len() && !peer.is_touched {
                peer.is_touched = true;
                self.touched.push(number as u32);
            }
            // The last bytes and the end after them can share one edge.
            peer.is_ending |= event.is_read_closed() || event.is_error();
            if (event.is_readable() || event.is_read_closed() || event.is_error()) && !peer.is_ready {
                peer.is_ready = true;
                self.ready.push_back(number as u32);
            }
        }
        // After a wait a refused connection may succeed.
        if self.may_accept || self.accept_later {
            self.accept();
        }
        Ok(())
    }

    /// Returns the next connection that needs attention, each once per wait, longest waiting first. Connections not
    /// returned before the next wait come first after it. A connection that [`receive`](Self::receive) may not have
    /// read completely is returned again after the next wait.
    pub fn ready(&mut self) -> Option<Ready> {
        while let Some(number) = self.ready.pop_front() {
            let Some(peer) = self.peers.get_mut(number as usize) else { continue };
            let id = StreamId(number);
            peer.is_ready = false;
            if peer.over.is_some() {
                return Some(Ready::Over(id));
            }
            if std::mem::take(&mut peer.is_new) {
                // It may have sent something already.
                peer.is_ready = true;
                self.ready.push_back(number);
                return Some(Ready::Connected(id));
            }
            return Some(Ready::Readable(id));
        }
        None
    }

    /// Reads once from a connection and returns the number of bytes. A connection that is over is returned by
    /// [`ready`](Self::ready).
    pub fn receive(&mut self, id: StreamId, room: &mut [u8]) -> usize {
        let Some(peer) = self.peer(id) else { return 0 };
        match peer.socket.receive(room) {
            Ok(Received::Bytes(count)) => {
                peer.silent_since = None;
                // A short read means that everything was read (`epoll(7)`, edge-triggered), except the end.
                if count == room.len() || peer.is_ending {
                    self.again.push(id.0);
                }
                return count;
            }
            Ok(Received::Nothing) => {}
            Ok(Received::Full) => self.again.push(id.0),
            Ok(Received::Closed) => self.end(id, Over::Closed),
            Err(cause) => self.end(id, Over::Broken(cause)),
        }
        0
    }

    /// Returns a connection once more after the next wait, because some of its bytes were left for later.
    pub fn look_again(&mut self, id: StreamId) {
        self.again.push(id.0);
    }

    /// Queues bytes for a connection. They are sent by [`flush`](Self::flush), not before.
    ///
    /// A peer that left flushed bytes unread is disconnected if the new bytes do not fit within
    /// [`StreamSettings::queue_bytes`]. A peer that has read everything is not too slow: between two flushes its limit is
    /// [`AT_ONCE`](Self::AT_ONCE) times as large, plus one message of any length.
    #[inline]
    pub fn send(&mut self, id: StreamId, bytes: &[u8]) {
        let most = self.settings.queue_bytes;
        let Some(peer) = self.peers.get_mut(id.0 as usize) else { return };
        let waiting = peer.output.len() - peer.written;
        let most = if peer.is_behind { most } else { most.saturating_mul(Self::AT_ONCE) };
        if waiting > 0 && waiting + bytes.len() > most {
            self.end(id, Over::TooSlow { waiting });
            return;
        }
        if peer.over.is_some() {
            return;
        }
        peer.output.extend_from_slice(bytes);
        if !std::mem::replace(&mut peer.is_touched, true) {
            self.touched.push(id.0);
        }
    }

    /// Sends queued bytes, as far as the sockets accept them.
    pub fn flush(&mut self) {
        while let Some(number) = self.touched.pop() {
            let Some(peer) = self.peers.get_mut(number as usize) else { continue };
            peer.is_touched = false;
            if let Err(cause) = peer.flush() {
                self.end(StreamId(number), Over::Broken(cause));
            }
        }
    }

    /// Returns `true` if all bytes for a connection have left this process.
    pub fn is_flushed(&self, id: StreamId) -> bool {
        self.peers
            .get(id.0 as usize)
            .is_none_or(|peer| peer.written == peer.output.len() || peer.over.is_some())
    }

    /// Returns the peer's address; `None` for a process of this machine without an address.
    pub fn peer_address(&self, id: StreamId) -> Option<SocketAddr> {
        self.peers.get(id.0 as usize)?.socket.peer_address()
    }

    /// Returns why a connection is over, if it is.
    pub fn why(&self, id: StreamId) -> Option<&Over> {
        self.peers.get(id.0 as usize)?.over.as_ref()
    }

    /// Closes a connection and discards its queued bytes.
    pub fn close(&mut self, id: StreamId) {
        let Some(peer) = self.peers.try_remove(id.0 as usize) else { return };
        polling::deregister(&self.poll, &peer.socket);
        // Removes the old connection from all lists, because its number is reused.
        self.ready.retain(|number| *number != id.0);
        self.again.retain(|number| *number != id.0);
        self.touched.retain(|number| *number != id.0);
    }

    /// Returns the number of connections, including those that are over and not closed yet.
    pub fn len(&self) -> usize {
        self.peers.len()
    }

    /// Returns `true` if there are no connections.
    pub fn is_empty(&self) -> bool {
        self.peers.is_empty()
    }

    /// Returns the number of connections closed at once because there were too many.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns why no connection could be accepted, since the last call. Accepting is tried again after each wait.
    pub fn accept_error(&mut self) -> Option<Error> {
        self.accept_error.take()
    }

    fn peer(&mut self, id: StreamId) -> Option<&mut Peer> {
        self.peers.get_mut(id.0 as usize).filter(|peer| peer.over.is_none())
    }

    /// Ends a connection: nothing more is sent to it, and [`ready`](Self::ready) returns it.
    fn end(&mut self, id: StreamId, why: Over) {
        let Some(peer) = self.peers.get_mut(id.0 as usize) else { return };
        peer.over.get_or_insert(why);
        self.name(id);
    }

    /// Adds a connection to those that [`ready`](Self::ready) returns.
    fn name(&mut self, id: StreamId) {
        if let Some(peer) = self.peers.get_mut(id.0 as usize)
            && !std::mem::replace(&mut peer.is_ready, true)
        {
            self.ready.push_back(id.0);
        }
    }

    fn accept(&mut self) {
        (self.may_accept, self.accept_later) = (false, false);
        for at in 0..self.listeners.len() {
            for turn in 0.. {
                if turn == ACCEPTED_AT_ONCE {
                    // The next wait accepts the others; it does not sleep.
                    self.may_accept = true;
                    break;
                }
                let socket = match &mut self.listeners[at] {
                    Listener::Tcp(listener) => {
                        listener.accept_socket().and_then(|socket| socket.map(Socket::of_tcp).transpose())
                    }
                    Listener::Local(listener) => listener
                        .accept()
                        .map(|stream| stream.map(Socket::of_local))
                        .map_err(|cause| Error::socket(Operation::Accept, "a Unix-domain socket", cause)),
                };
                match socket {
                    Ok(Some(socket)) => self.let_in(socket),
                    Ok(None) => break,
                    Err(cause) => {
                        self.accept_error = Some(cause);
                        self.accept_later = true;
                        break;
                    }
                }
            }
        }
    }

    /// Ends the connection that has been silent longest since it connected, for at least a second. Returns
    /// `true` if there is one. It counts until it is closed, which follows next.
    fn make_room(&mut self) -> bool {
        let live = self.peers.iter().filter(|(_, peer)| peer.over.is_none());
        let oldest = live.filter_map(|(number, peer)| Some((peer.silent_since?, number))).min();
        let Some((_, number)) = oldest.filter(|(since, _)| since.elapsed() >= SILENCE) else { return false };
        self.end(StreamId(number as u32), Over::Silent);
        true
    }

    fn let_in(&mut self, socket: Socket) {
        if self.len() >= self.settings.max_connections && !self.make_room() {
            self.refused += 1;
            return;
        }
        let number = self.peers.vacant_key();
        if let Err(cause) = polling::register(&self.poll, &socket, Token(number), polling::EITHER) {
            self.accept_error = Some(cause);
            return;
        }
        self.peers.insert(Peer {
            socket,
            output: Vec::new(),
            written: 0,
            is_behind: false,
            is_ending: false,
            is_new: true,
            is_ready: true,
            is_touched: false,
            silent_since: Some(instant()),
            over: None,
        });
        self.ready.push_back(number as u32);
    }
}

impl Peer {
    fn flush(&mut self) -> Result<(), Error> {
        while self.written < self.output.len() {
            match self.socket.send(&self.output[self.written..])? {
                0 => {
                    // Removes sent bytes once they are at least as many as the unsent ones, so that each byte
                    // moves at most once.
                    if self.written >= self.output.len() - self.written {
                        self.output.drain(..self.written);
                        self.written = 0;
                    }
                    self.is_behind = true;
                    return Ok(());
                }
                count => self.written += count,
            }
        }
        (self.written, self.is_behind) = (0, false);
        if self.output.capacity() > KEPT {
            self.output = Vec::new();
        } else {
            self.output.clear();
        }
        Ok(())
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::Local(listener) => listener.as_fd(),
        }
    }
}

shown!(Streams, it => settings: it.settings, connections: it.len());
