//! Many connections on one thread.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use mio::{Events, Interest, Poll, Token, Waker};
use rustix::io::Errno;
use tapeline_nanos::Nanos;

use super::acceptor_handle::{AcceptorHandle, Arrivals};
use super::alarm::Alarm;
use super::connection::{Connection, Progress, Sender};
use super::fault::{Fault, Reason};
use super::handshake::Version;
use super::in_memory::{self, FarEnd};
use super::receiver::Following;
use super::session::{Event, Found, Negotiated, Session};
use super::settings::ConnectionSettings;
use super::transport::Transport;
use crate::Error;
use crate::error::Operation;
use crate::impls::shown;
use crate::polling::{self, Readiness};
use crate::tcp::{Listener, MaybeTls, TcpSocket};

/// Identifies a connection of a [`Reactor`], uniquely over the life of the reactor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    slot: u32,
    generation: u32,
}

/// The connections and listeners of one thread, without locks. Only [`wait`](Self::wait) blocks.
///
/// Each connection gets a turn of a few buffers or a few thousand events, whichever is used up first. Once every ready
/// connection had its turn, [`next`](Self::next) returns `None`, and `wait` looks at the others: no peer, however much
/// it sends, can delay them longer. Output is sent in batches: at the high-water mark, with [`flush`](Self::flush), and
/// always before `wait` sleeps.
pub struct Reactor {
    poll: Poll,
    events: Events,
    slots: Vec<Slot>,
    /// Slots without a connection.
    free: Vec<u32>,
    listeners: Vec<Listening>,
    /// Connections that may have something to do, each once.
    ready: VecDeque<u32>,
    /// Number of ready connections, from the front, that have not had their turn in this round.
    round: usize,
    /// Connections that may have something to send, each once.
    touched: Vec<u32>,
    /// A connection whose last event is being handled. It may be closed meanwhile, and its slot reused.
    over: Option<ConnectionId>,
    /// Maximum number of connections, and of clients from one address.
    limit: usize,
    address_limit: usize,
    /// Bytes of incomplete messages on all connections, as of the last turn of each, and the maximum.
    held: usize,
    most_held: usize,
    /// Connections that are refused and still open to deliver the refusal.
    refused: usize,
    /// Connections that were refused so far.
    refusals: u64,
    /// Connections without a socket, which no poll wakes.
    in_memory: usize,
    /// New outgoing connections, if they pass through memory.
    dialed: Option<Dialed>,
    /// Clients that may not have completed their handshake, in order of arrival, with the time of arrival.
    entering: VecDeque<(Nanos, ConnectionId)>,
    next_turn: Nanos,
    /// Why accepting failed.
    accept_error: Option<Error>,
    /// When to accept again after that.
    accept_again: Option<Nanos>,
    /// Connections that other reactors accept for this one.
    arrivals: Option<Arrivals>,
    /// Created on first use.
    alarm: Option<Alarm>,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    connection: Option<Box<Connection>>,
    /// How to retry: with an older version of the handshake, or at another address.
    attempt: Option<Attempt>,
    is_ready: bool,
    is_touched: bool,
    is_refused: bool,
    /// It came through the acceptor handle.
    is_arrival: bool,
    /// The address of an accepted client.
    from: Option<IpAddr>,
    /// Its bytes of incomplete messages, as counted in the reactor's total.
    held: usize,
}

struct Attempt {
    address: SocketAddr,
    /// The addresses to try if this one cannot be reached.
    others: VecDeque<SocketAddr>,
    settings: Arc<ConnectionSettings>,
    version: Version,
}

struct Listening {
    listener: Listener,
    settings: Arc<ConnectionSettings>,
    /// The handles that receive its connections; empty for this reactor.
    doors: Vec<AcceptorHandle>,
    is_ready: bool,
}

/// Outgoing connections in memory.
type Dialed = VecDeque<(SocketAddr, FarEnd)>;

/// Tokens of listeners start here; the token of a connection is its slot number.
const LISTENERS: usize = 1 << 40;
/// The token of the waker, for other threads.
const WAKER: Token = Token(usize::MAX - 1);
/// The token of the alarm.
const ALARM: Token = Token(usize::MAX - 2);
/// Shorter waits use the alarm to end on time; a poll alone ends at the next whole millisecond.
const EXACT: Duration = Duration::from_millis(10);
/// Maximum number of events per wait.
const EVENTS: usize = 1024;
/// Interval between checks of pings and time-outs: short compared with a third of the shortest time-out, one
/// second.
const TURN_NS: u64 = 100_000_000;
/// Pause after accepting failed.
const ACCEPT_PAUSE_NS: u64 = 1_000_000_000;
/// Minimum time for a client's handshake before another client can replace it.
const HANDSHAKE_NS: u64 = 1_000_000_000;
/// Connections accepted per listener and turn: each takes about 80 µs of system calls.
const ACCEPTED_AT_ONCE: usize = 4;
/// Refused connections closed at a time; each takes as long as an accept.
const REFUSED_CLOSED_AT_ONCE: usize = 4;
/// Maximum number of refused connections that get a nak; more are closed without one.
const REFUSED_AT_ONCE: usize = 64;

impl Reactor {
    /// Creates a reactor for at most `limit` connections at a time. A client beyond the limit replaces the
    /// oldest client that has not completed its handshake within a second; without one, the new client gets a
    /// nak with the reason.
    ///
    /// # Errors
    /// The machine refuses.
    pub fn new(limit: usize) -> Result<Self, Error> {
        Ok(Self {
            poll: Poll::new().map_err(Error::reactor("make"))?,
            events: Events::with_capacity(EVENTS),
            slots: Vec::new(),
            free: Vec::new(),
            listeners: Vec::new(),
            ready: VecDeque::new(),
            round: 0,
            touched: Vec::new(),
            over: None,
            limit,
            address_limit: usize::MAX,
            held: 0,
            most_held: usize::MAX,
            refused: 0,
            refusals: 0,
            in_memory: 0,
            dialed: None,
            entering: VecDeque::new(),
            next_turn: Nanos(0),
            accept_error: None,
            accept_again: None,
            arrivals: None,
            alarm: None,
        })
    }

    /// Creates a reactor as [`new`](Self::new) does, whose outgoing connections pass through memory too:
    /// [`next_dialed`](Self::next_dialed) returns their far ends.
    ///
    /// # Errors
    /// The machine refuses.
    pub fn in_memory(limit: usize) -> Result<Self, Error> {
        Ok(Self { dialed: Some(VecDeque::new()), ..Self::new(limit)? })
    }

    /// Limits the memory of incomplete messages of all connections together to `bytes`, in addition to what one turn of
    /// one connection brings. When the limit is exceeded, the connection that uses most is closed.
    pub fn limit_held(&mut self, bytes: usize) {
        self.most_held = bytes;
    }

    /// Listens at an address of this machine (port 0 takes a free one) and returns the address. `[::]` also accepts
    /// IPv4 clients.
    ///
    /// # Errors
    /// The address is taken or not this machine's; TLS without a server's certificate.
    pub fn listen(
        &mut self,
        address: SocketAddr,
        settings: &Arc<ConnectionSettings>,
    ) -> Result<SocketAddr, Error> {
        self.listen_for(&[], address, settings)
    }

    /// Creates the handle for connections that another reactor accepts. Create it once, instead of a
    /// [`waker`](Self::waker).
    ///
    /// # Errors
    /// The machine refuses.
    pub fn door(&mut self) -> Result<AcceptorHandle, Error> {
        let (door, arrivals) = AcceptorHandle::new(self.waker()?);
        self.arrivals = Some(arrivals);
        Ok(door)
    }

    /// Listens as [`listen`](Self::listen) does, for the reactors behind these handles; include this reactor's own if
    /// it takes connections too. Each connection goes to the handle with the fewest connections, the first of several.
    ///
    /// # Errors
    /// As [`listen`](Self::listen).
    pub fn listen_for(
        &mut self,
        doors: &[AcceptorHandle],
        address: SocketAddr,
        settings: &Arc<ConnectionSettings>,
    ) -> Result<SocketAddr, Error> {
        if let Some(tls) = &settings.tls {
            tls.accept()?;
        }
        let listener = Listener::open(address)?;
        let local = listener.local_address();
        let token = Token(LISTENERS + self.listeners.len());
        polling::register(&self.poll, &listener, token, Interest::READABLE)?;
        let settings = Arc::new(ConnectionSettings::clone(settings).sound());
        self.listeners.push(Listening { listener, settings, doors: doors.to_vec(), is_ready: true });
        Ok(local)
    }

    /// Begins to connect; an [`Event::Connected`] or [`Event::Closed`] follows. If a server closes without an answer,
    /// the reactor tries again with the next older version of the handshake.
    ///
    /// # Errors
    /// The address is known at once to be unreachable; TLS settings of a server, or a server without a valid
    /// name.
    pub fn connect(
        &mut self,
        address: SocketAddr,
        settings: &Arc<ConnectionSettings>,
        now: Nanos,
    ) -> Result<ConnectionId, Error> {
        self.connect_to_any(&[address], settings, now)
    }

    /// Begins to connect to a server with several addresses, such as one of each family. Each address has the full time
    /// to open; when one cannot be reached, the next is tried.
    ///
    /// # Errors
    /// All addresses are known at once to be unreachable; TLS as with [`connect`](Self::connect).
    pub fn connect_to_any(
        &mut self,
        addresses: &[SocketAddr],
        settings: &Arc<ConnectionSettings>,
        now: Nanos,
    ) -> Result<ConnectionId, Error> {
        let mut others: VecDeque<SocketAddr> = addresses.iter().copied().collect();
        let Some(address) = others.pop_front() else {
            return Err(Error::socket(Operation::Dial, "a server without an address", Errno::DESTADDRREQ));
        };
        let mut settings = ConnectionSettings::clone(settings).sound();
        if settings.host.is_empty() {
            settings.host = address.to_string();
        }
        let settings = Arc::new(settings);
        let mut attempt = Attempt { address, others, settings, version: Version::V14 };
        let connection = attempt.begin_anywhere(now, &mut self.dialed)?;
        let slot = self.add(connection)?;
        self.slots[slot as usize].attempt = Some(attempt);
        Ok(self.id(slot))
    }

    /// Accepts a client of this address whose bytes pass through memory, as if it had connected to a listener
    /// with these settings (without TLS). [`wait`](Self::wait) checks such connections on each call, but they
    /// do not end its sleep: call it with a timeout of zero.
    pub fn accept_in_memory(
        &mut self,
        peer: SocketAddr,
        settings: &Arc<ConnectionSettings>,
        now: Nanos,
    ) -> FarEnd {
        let (near, far) = in_memory::connect(peer);
        self.accepted(Transport::InMemory(near), settings, now);
        far
    }

    /// Returns the next outgoing connection [in memory](Self::in_memory): the address, and the server's end.
    /// To refuse it, [reset](FarEnd::reset) it.
    pub fn next_dialed(&mut self) -> Option<(SocketAddr, FarEnd)> {
        self.dialed.as_mut()?.pop_front()
    }

    /// Sends waiting output, then sleeps until there is something to do or `timeout` passes, and never much longer than
    /// until the next ping check. Afterwards call [`next`](Self::next) until it returns `None`.
    ///
    /// # Errors
    /// The machine refuses to wait.
    pub fn wait(&mut self, timeout: Duration) -> Result<(), Error> {
        self.flush();
        let timeout =
            if self.is_idle() { timeout.min(Duration::from_nanos(TURN_NS)) } else { Duration::ZERO };
        self.set_alarm(timeout)?;
        if !polling::wait(&mut self.poll, &mut self.events, Some(timeout))? {
            return Ok(());
        }
        if self.in_memory > 0 {
            for slot in 0..self.slots.len() as u32 {
                let connection = self.slots[slot as usize].connection.as_ref();
                if connection.is_some_and(|connection| connection.transport().socket().is_none()) {
                    self.wake(slot);
                }
            }
        }
        for event in &self.events {
            let token = event.token();
            if token == WAKER || token == ALARM {
                continue;
            }
            if let Some(listening) =
                token.0.checked_sub(LISTENERS).and_then(|index| self.listeners.get_mut(index))
            {
                listening.is_ready = true;
            } else if let Some(slot) = self.slots.get_mut(token.0)
                && slot.connection.is_some()
                && !std::mem::replace(&mut slot.is_ready, true)
            {
                self.ready.push_back(token.0 as u32);
            }
        }
        Ok(())
    }

    /// Returns `true` if no received bytes are left to handle. While it is `false`, a [`Readiness`] need not
    /// signal.
    pub fn is_idle(&self) -> bool {
        self.ready.is_empty()
            && self.over.is_none()
            && !self.listeners.iter().any(|listening| listening.is_ready)
    }

    /// Returns the next event, with its connection and the [`Sender`] to answer it. `None` when each connection had its
    /// turn: call [`wait`](Self::wait) next, which does not sleep if there is more to do.
    #[inline]
    pub fn next(&mut self, now: Nanos) -> Option<(ConnectionId, Event<'_>, Sender<'_>)> {
        let (id, event, _, sender) = self.next_and_following(now)?;
        Some((id, event, sender))
    }

    /// Returns the next event as [`next`](Self::next) does, with the messages behind it.
    #[inline(always)]
    pub(super) fn next_and_following(
        &mut self,
        now: Nanos,
    ) -> Option<(ConnectionId, Event<'_>, Following<'_>, Sender<'_>)> {
        let (slot, found) = match self.next_whole() {
            Some((slot, found)) => (slot, Some(found)),
            None => self.advance(now)?,
        };
        let id = self.id(slot);
        self.touch(slot);
        let (event, following, sender) = self.slots[slot as usize].connection.as_mut()?.event(found);
        Some((id, event, following, sender))
    }

    /// Delivers the last message of a connection once more, as an event, after the other connections had their turn: for a
    /// message that is too much work for one turn. Call it while that message is the last event.
    pub fn repeat(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connection(id) {
            connection.repeat();
        }
    }

    /// Returns the [`Sender`] of a connection; `None` if the connection is closed.
    #[inline]
    pub fn sender(&mut self, id: ConnectionId) -> Option<Sender<'_>> {
        self.connection(id)?;
        self.touch(id.slot);
        Some(self.slots[id.slot as usize].connection.as_mut()?.sender())
    }

    /// Returns the settings negotiated with a connection's peer; `None` until it opened, and after it closed.
    pub fn negotiated(&mut self, id: ConnectionId) -> Option<&Negotiated> {
        self.connection(id)?.negotiated()
    }

    /// Limits the number of clients from one address; more are refused.
    pub fn limit_address(&mut self, clients: usize) {
        self.address_limit = clients;
    }

    /// Returns the peer's address; `None` if the connection is closed.
    pub fn peer_address(&mut self, id: ConnectionId) -> Option<SocketAddr> {
        Some(self.connection(id)?.transport().peer_address())
    }

    /// Returns the TLS version of a connection, such as `TLSv1_3`; `None` without TLS (yet).
    pub fn tls_version(&mut self, id: ConnectionId) -> Option<&'static str> {
        self.connection(id)?.transport().tls_version()
    }

    /// Sends waiting output on all connections, as far as the sockets accept it.
    pub fn flush(&mut self) {
        while let Some(slot) = self.touched.pop() {
            let Some(entry) = self.slots.get_mut(slot as usize) else { continue };
            entry.is_touched = false;
            let Some(connection) = &mut entry.connection else { continue };
            if connection.unsent() > 0 {
                connection.flush();
            }
            if connection.is_ending() {
                self.wake(slot);
            }
        }
    }

    /// Closes a connection after sending waiting output as far as the socket accepts it. No event follows.
    pub fn close(&mut self, id: ConnectionId) {
        if self.connection(id).is_some() {
            if let Some(connection) = &mut self.slots[id.slot as usize].connection {
                connection.end(Reason::Local);
            }
            self.remove(id.slot);
        }
    }

    /// Returns the number of connections, including those not open yet.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns `true` if there are no connections.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of connections refused so far because the limit was reached.
    pub const fn refusals(&self) -> u64 {
        self.refusals
    }

    /// Returns why accepting failed since the last call, such as too many open files. Waiting clients are accepted a
    /// second later, if possible.
    pub fn accept_error(&mut self) -> Option<Error> {
        self.accept_error.take()
    }

    /// Returns a waker that ends [`wait`](Self::wait) from another thread. Create it once.
    ///
    /// # Errors
    /// The machine refuses.
    pub fn waker(&self) -> Result<Waker, Error> {
        Waker::new(self.poll.registry(), WAKER).map_err(Error::reactor("make a waker for"))
    }

    /// Returns an object that sleeps on another thread until there is something to do here, and the waker that ends
    /// that sleep for good.
    ///
    /// # Errors
    /// The machine refuses.
    pub fn lookout(&self) -> Result<(Readiness, Waker), Error> {
        Readiness::new(&self.poll)
    }

    /// Advances to another message of the connection whose turn it is, if one has [arrived whole](Connection::next_whole).
    #[inline(always)]
    fn next_whole(&mut self) -> Option<(u32, Found)> {
        if self.round == 0 || self.over.is_some() {
            return None;
        }
        let &slot = self.ready.front()?;
        Some((slot, self.slots[slot as usize].connection.as_mut()?.next_whole()?))
    }

    fn advance(&mut self, now: Nanos) -> Option<(u32, Option<Found>)> {
        if let Some(id) = self.over.take()
            && self.id(id.slot) == id
        {
            self.remove(id.slot);
        }
        if self.round == 0 {
            if now >= self.next_turn {
                self.turn(now);
            }
            self.accept(now);
            self.welcome(now);
            // Connections that become ready from here on wait for the next round.
            self.round = self.ready.len();
        }
        let mut refused = 0;
        while self.round > 0 {
            if refused == REFUSED_CLOSED_AT_ONCE {
                return None;
            }
            let &slot = self.ready.front()?;
            let entry = &mut self.slots[slot as usize];
            let progress =
                entry.connection.as_mut().map_or(Progress::Idle, |connection| connection.advance(now));
            if let Progress::Event(found) = progress {
                return Some((slot, Some(found)));
            }
            self.round -= 1;
            if progress != Progress::Over {
                self.count_held(slot);
            }
            let entry = &mut self.slots[slot as usize];
            if progress == Progress::Yield {
                self.ready.rotate_left(1);
                continue;
            }
            entry.is_ready = false;
            self.ready.pop_front();
            if progress == Progress::Over {
                if entry.is_refused {
                    refused += 1;
                    self.remove(slot);
                } else if !self.fall_back(slot, now) {
                    self.over = Some(self.id(slot));
                    return Some((slot, None));
                }
            }
        }
        None
    }

    /// Counts a connection's incomplete messages after its turn. If the total exceeds the limit, ends the
    /// connection with the most.
    fn count_held(&mut self, slot: u32) {
        let entry = &mut self.slots[slot as usize];
        let held = entry.connection.as_ref().map_or(0, |connection| connection.held());
        self.held = self.held + held - std::mem::replace(&mut entry.held, held);
        while self.held > self.most_held {
            let Some((most, slot)) = (0..).zip(&mut self.slots).max_by_key(|(_, slot)| slot.held) else {
                return;
            };
            let held = std::mem::take(&mut slot.held);
            if held == 0 {
                return;
            }
            self.held -= held;
            if let Some(connection) = &mut slot.connection {
                let what = format!("{held} bytes of messages that are not complete");
                let expected =
                    format!("at most {} on all connections, where no other one has more", self.most_held);
                connection.end(Fault::new(what, expected).into());
            }
            self.wake(most);
        }
    }

    /// Retries: with the next older version if the server did not know the requested one, or at the next
    /// address if this one cannot be reached. Returns `true` if it does.
    fn fall_back(&mut self, slot: u32, now: Nanos) -> bool {
        let entry = &mut self.slots[slot as usize];
        let (Some(connection), Some(attempt)) = (&mut entry.connection, &mut entry.attempt) else {
            return false;
        };
        let below = attempt.version.below();
        let next = match (connection.reason(), below) {
            (Some(Reason::NoAnswer), Some(version)) => {
                attempt.version = version;
                attempt.begin(now, &mut self.dialed)
            }
            _ if connection.transport().is_connecting() && attempt.moves_on() => {
                attempt.begin_anywhere(now, &mut self.dialed)
            }
            _ => return false,
        };
        match next {
            Ok(next) => **connection = next,
            Err(_) => return false,
        }
        let Some(socket) = connection.transport().socket() else { return true };
        polling::register(&self.poll, socket, Token(slot as usize), polling::EITHER).is_ok()
    }

    fn turn(&mut self, now: Nanos) {
        self.next_turn = now + TURN_NS;
        if self.accept_again.is_some_and(|again| now >= again) {
            self.accept_again = None;
            self.listeners.iter_mut().for_each(|listening| listening.is_ready = true);
        }
        for slot in 0..self.slots.len() as u32 {
            let Some(connection) = &mut self.slots[slot as usize].connection else { continue };
            connection.turn(now);
            if connection.is_ending() {
                self.wake(slot);
            } else if connection.unsent() > 0 {
                self.touch(slot);
            }
        }
    }

    fn accept(&mut self, now: Nanos) {
        for index in 0..self.listeners.len() {
            for _ in 0..ACCEPTED_AT_ONCE {
                let listening = &mut self.listeners[index];
                if !listening.is_ready {
                    break;
                }
                match listening.listener.accept_socket() {
                    Ok(Some(socket)) => {
                        let settings = listening.settings.clone();
                        match listening.doors.iter().min_by_key(|door| door.inside()) {
                            Some(door) => door.give(socket, &settings),
                            None => _ = self.accepted(Transport::plain(socket), &settings, now),
                        }
                    }
                    Ok(None) => listening.is_ready = false,
                    Err(cause) => {
                        listening.is_ready = false;
                        self.accept_error = Some(cause);
                        self.accept_again = Some(now + ACCEPT_PAUSE_NS);
                    }
                }
            }
        }
    }

    /// Takes the connections that other reactors accepted for this one.
    fn welcome(&mut self, now: Nanos) {
        while let Some((socket, settings)) = self.arrivals.as_ref().and_then(Arrivals::next) {
            match self.accepted(Transport::plain(socket), &settings, now) {
                Some(slot) => self.slots[slot as usize].is_arrival = true,
                None => self.has_left(),
            }
        }
    }

    /// Counts a connection from the acceptor handle as closed.
    fn has_left(&self) {
        if let Some(arrivals) = &self.arrivals {
            arrivals.leave();
        }
    }

    /// Sets the alarm so that a short wait ends on time.
    fn set_alarm(&mut self, timeout: Duration) -> Result<(), Error> {
        if timeout >= EXACT || timeout.subsec_nanos().is_multiple_of(1_000_000) {
            return Ok(());
        }
        let failed = |cause: Errno| Error::reactor("set an alarm for")(cause.into());
        if self.alarm.is_none() {
            let alarm = Alarm::new().map_err(failed)?;
            polling::register(&self.poll, &alarm, ALARM, Interest::READABLE)?;
            self.alarm = Some(alarm);
        }
        self.alarm.as_ref().map_or(Ok(()), |alarm| alarm.set(timeout)).map_err(failed)
    }

    /// Adds a client. `None` if it was closed at once, or if the machine refused a resource.
    fn accepted(
        &mut self,
        arrived: Transport,
        settings: &Arc<ConnectionSettings>,
        now: Nanos,
    ) -> Option<u32> {
        let from = arrived.peer_address().ip();
        let why = if self.is_full_of(from) {
            Some("Too many connections from this address.")
        } else {
            let is_full = self.len() - self.refused >= self.limit && !self.make_room(now);
            is_full.then_some("Too many connections.")
        };
        let is_refused = why.is_some();
        self.refusals += u64::from(is_refused);
        let session = match why {
            None => Session::server(settings.clone(), now),
            Some(why) if self.refused < REFUSED_AT_ONCE => Session::refusal(settings.clone(), why, now),
            Some(_) => return None,
        };
        let transport = match (&settings.tls, arrived) {
            (Some(tls), Transport::Socket(MaybeTls::Plain(socket))) => {
                tls.accept().map(|connection| Transport::encrypted(socket, connection))
            }
            (_, arrived) => Ok(arrived),
        };
        let connection = transport.and_then(|transport| Connection::new(transport, session, settings));
        match connection.and_then(|connection| self.add(connection)) {
            Ok(slot) => {
                self.slots[slot as usize].is_refused = is_refused;
                self.refused += usize::from(is_refused);
                if !is_refused {
                    self.slots[slot as usize].from = Some(from);
                    self.enters(slot, now);
                }
                self.wake(slot);
                Some(slot)
            }
            Err(cause) => {
                self.accept_error = Some(cause);
                None
            }
        }
    }

    /// Returns `true` if the limit of clients from this address is reached. Reads each slot if there is such
    /// a limit.
    fn is_full_of(&self, from: IpAddr) -> bool {
        self.address_limit < self.limit
            && self.slots.iter().filter(|slot| slot.from == Some(from)).count() >= self.address_limit
    }

    /// Records a client that has not completed its handshake.
    fn enters(&mut self, slot: u32, now: Nanos) {
        if self.entering.len() > self.limit {
            let mut entering = std::mem::take(&mut self.entering);
            entering.retain(|(_, id)| self.is_entering(*id));
            self.entering = entering;
        }
        self.entering.push_back((now, self.id(slot)));
    }

    fn is_entering(&mut self, id: ConnectionId) -> bool {
        self.connection(id).is_some_and(|connection| connection.negotiated().is_none())
    }

    /// Closes the oldest client that has not completed its handshake in time, so that silent clients cannot
    /// occupy all connections. Returns `true` if there was one.
    fn make_room(&mut self, now: Nanos) -> bool {
        while let Some((since, id)) = self.entering.front().copied() {
            let is_idle = self.is_entering(id);
            if is_idle && now.0.saturating_sub(since.0) < HANDSHAKE_NS {
                return false;
            }
            self.entering.pop_front();
            if is_idle {
                self.close(id);
                return true;
            }
        }
        false
    }

    fn add(&mut self, connection: Connection) -> Result<u32, Error> {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        match connection.transport().socket() {
            Some(socket) => {
                let token = Token(slot as usize);
                if let Err(cause) = polling::register(&self.poll, socket, token, polling::EITHER) {
                    self.free.push(slot);
                    return Err(cause);
                }
            }
            None => self.in_memory += 1,
        }
        self.slots[slot as usize].connection = Some(Box::new(connection));
        self.touch(slot);
        Ok(slot)
    }

    fn remove(&mut self, slot: u32) {
        let entry = &mut self.slots[slot as usize];
        let Some(connection) = entry.connection.take() else { return };
        self.in_memory -= usize::from(connection.transport().socket().is_none());
        // Its socket left the poll when it was closed. A queue that still contains the slot finds it empty.
        entry.generation = entry.generation.wrapping_add(1);
        (entry.attempt, entry.from) = (None, None);
        self.held -= std::mem::take(&mut entry.held);
        self.refused -= usize::from(std::mem::take(&mut entry.is_refused));
        let is_arrival = std::mem::take(&mut entry.is_arrival);
        self.free.push(slot);
        if is_arrival {
            self.has_left();
        }
    }

    fn connection(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let entry = self.slots.get_mut(id.slot as usize)?;
        if entry.generation == id.generation { entry.connection.as_deref_mut() } else { None }
    }

    fn id(&self, slot: u32) -> ConnectionId {
        ConnectionId { slot, generation: self.slots[slot as usize].generation }
    }

    #[inline]
    fn touch(&mut self, slot: u32) {
        if !std::mem::replace(&mut self.slots[slot as usize].is_touched, true) {
            self.touched.push(slot);
        }
    }

    fn wake(&mut self, slot: u32) {
        if !std::mem::replace(&mut self.slots[slot as usize].is_ready, true) {
            self.ready.push_back(slot);
        }
    }
}

impl Attempt {
    /// Advances to the next address. Returns `true` if there is one.
    fn moves_on(&mut self) -> bool {
        let next = self.others.pop_front();
        self.address = next.unwrap_or(self.address);
        next.is_some()
    }

    /// Connects to the first address that is not known at once to be unreachable.
    fn begin_anywhere(&mut self, now: Nanos, dialed: &mut Option<Dialed>) -> Result<Connection, Error> {
        loop {
            match self.begin(now, dialed) {
                Err(Error::Socket { .. }) if self.moves_on() => {}
                begun => return begun,
            }
        }
    }

    fn begin(&self, now: Nanos, dialed: &mut Option<Dialed>) -> Result<Connection, Error> {
        let session = Session::client(self.settings.clone(), self.version, now);
        if let Some(dialed) = dialed {
            let (near, far) = in_memory::connect(self.address);
            dialed.push_back((self.address, far));
            return Connection::new(Transport::InMemory(near), session, &self.settings);
        }
        let tls = self.settings.tls.as_ref().map(|tls| tls.dial(&self.settings.host)).transpose()?;
        let socket = TcpSocket::connect(self.address, self.settings.interface)?;
        let transport = match tls {
            Some(connection) => Transport::encrypted(socket, connection),
            None => Transport::plain(socket),
        };
        Connection::new(transport, session, &self.settings)
    }
}

/// Readable when [`wait`](Reactor::wait) has something to do: poll it together with other descriptors.
impl AsFd for Reactor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poll.registry().as_fd()
    }
}

shown!(Reactor, it => connections: it.len(), listeners: it.listeners.len());
