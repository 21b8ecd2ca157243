//! The sockets of a publisher.

use std::net::SocketAddr;
use std::time::Duration;

use mio::{Events, Interest, Poll, Token};
use slab::Slab;
use tapeline_nanos::Nanos;

use super::frame;
use super::protocol::{Asked, OUR_GREETING, Protocol, SubscriberFault};
use super::topics::{Route, Topics};
use crate::impls::shown;
use crate::tcp::{Listener, Received, Stream};
use crate::{Error, polling};

/// Settings of a publisher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublisherSettings {
    /// Maximum number of connections; default 1,000. One more replaces the oldest connection that has not
    /// completed its handshake within a second; without one, the new connection is closed at once.
    pub max_subscribers: usize,
    /// The high-water mark: bytes that may wait for one subscriber; default 8 MiB. A message that does not fit is dropped
    /// as a whole.
    pub queue_bytes: usize,
    /// Maximum number of subscriptions of one subscriber; default 10,000. A subscriber that asks for more is disconnected.
    pub max_subscriptions_each: usize,
    /// Maximum number of subscriptions of all subscribers together; default 100,000. A subscriber that asks for more is
    /// disconnected.
    pub max_subscriptions: usize,
    /// Time limit in milliseconds; default 60,000. A subscriber that reads nothing of its queue, or does not complete the
    /// handshake, for this time is disconnected.
    pub stuck_ms: u64,
}

impl Default for PublisherSettings {
    fn default() -> Self {
        Self {
            max_subscribers: 1_000,
            queue_bytes: 8 << 20,
            max_subscriptions_each: 10_000,
            max_subscriptions: 100_000,
            stuck_ms: 60_000,
        }
    }
}

/// Counts since the start, and current numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PublisherCounters {
    /// Connections accepted.
    pub connected: u64,
    /// Connections closed at once because there were too many.
    pub refused: u64,
    /// Subscribers disconnected by the publisher for a fault or a time limit.
    pub let_go: u64,
    /// Messages queued, counted once per subscriber.
    pub queued: u64,
    /// Messages that did not fit under a subscriber's high-water mark, counted once per subscriber.
    pub dropped: u64,
    /// Current subscribers.
    pub subscribers: usize,
    /// Current subscriptions.
    pub subscriptions: usize,
}

/// A subscriber that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// The subscriber's address.
    pub address: SocketAddr,
    /// The reason, in words.
    pub why: String,
    /// `true` if the publisher disconnected the subscriber; `false` if the subscriber left.
    pub is_let_go: bool,
    /// Messages that did not fit under its high-water mark.
    pub dropped: u64,
}

/// A listening PUB socket. See the [module](super).
pub struct Publisher {
    settings: PublisherSettings,
    listener: Listener,
    poll: Poll,
    events: Events,
    peers: Slab<Peer>,
    topics: Topics,
    counters: PublisherCounters,
    /// The published message as it is sent to all subscribers.
    message: Vec<u8>,
    /// Subscribers with something new to send, each once.
    touched: Vec<u32>,
    /// Subscribers that may have sent something.
    readable: Vec<u32>,
    left: Vec<Left>,
    may_accept: bool,
    accept_error: Option<Error>,
    next_turn: Nanos,
}

struct Peer {
    stream: Stream,
    protocol: Protocol,
    since: Nanos,
    /// Time since which none of the waiting bytes could be sent.
    stuck: Option<Nanos>,
    dropped: u64,
    is_touched: bool,
    is_readable: bool,
    /// The connection is over: its input is no longer read.
    over: Option<Result<String, SubscriberFault>>,
}

const LISTENER: Token = Token(usize::MAX - 1);
/// Maximum number of events per wait.
const EVENTS: usize = 256;
/// Input buffer of a subscriber in bytes: the longest frame, or many ordinary ones.
const INPUT: usize = 4 << 10;
/// Interval between checks of the time limits.
const TURN_NS: u64 = 100_000_000;
/// Connections accepted at a time, before the existing ones get their turn.
const ACCEPTED_AT_ONCE: usize = 8;
/// Minimum time for a subscriber's handshake before another connection can replace it.
const HANDSHAKE_NS: i64 = 1_000_000_000;
/// Maximum memory of sent bytes that is retained for the next ones.
const KEPT: usize = 64 << 10;
/// Maximum number of departed subscribers recorded until [`Publisher::take_left`].
const MOST_LEFT: usize = 1_000;

impl Publisher {
    /// Listens at an address of this machine; port 0 takes a free one.
    ///
    /// # Errors
    /// The address is taken or not this machine's, or the machine refuses.
    pub fn bind(address: SocketAddr, settings: PublisherSettings) -> Result<Self, Error> {
        let listener = Listener::open(address)?;
        let poll = Poll::new().map_err(Error::reactor("make"))?;
        polling::register(&poll, &listener, LISTENER, Interest::READABLE)?;
        Ok(Self {
            topics: Topics::new(settings.max_subscriptions, settings.max_subscriptions_each),
            settings,
            listener,
            poll,
            events: Events::with_capacity(EVENTS),
            peers: Slab::new(),
            counters: PublisherCounters::default(),
            message: Vec::new(),
            touched: Vec::new(),
            readable: Vec::new(),
            left: Vec::new(),
            may_accept: true,
            accept_error: None,
            next_turn: Nanos(0),
        })
    }

    /// Returns the address at which the publisher listens.
    pub fn local_address(&self) -> SocketAddr {
        self.listener.local_address()
    }

    /// Returns `true` if any subscriber wants a topic. Use one `Route` per topic: it caches the topic's subscribers.
    #[inline]
    pub fn wants(&self, route: &mut Route, topic: &[u8]) -> bool {
        self.topics.find(route, topic)
    }

    /// Queues a message of these parts, the first of which is the topic, for the subscribers that
    /// [`wants`](Self::wants) has just found. Messages go out with [`turn`](Self::turn). A subscriber whose queue has
    /// no space for the whole message does not get it.
    pub fn publish(&mut self, route: &Route, parts: &[&[u8]]) {
        self.message.clear();
        frame::put_message(&mut self.message, parts);
        for number in &route.subscribers {
            let Some(peer) = self.peers.get_mut(*number as usize) else { continue };
            if !peer.protocol.is_open() || peer.over.is_some() {
                continue;
            }
            if peer.stream.unsent() + self.message.len() > self.settings.queue_bytes {
                peer.dropped += 1;
                self.counters.dropped += 1;
                continue;
            }
            peer.stream.output().extend_from_slice(&self.message);
            self.counters.queued += 1;
            if !std::mem::replace(&mut peer.is_touched, true) {
                self.touched.push(*number);
            }
        }
    }

    /// Sends queued messages, reads subscribers' bytes, and accepts and closes connections. Sleeps for at most
    /// `timeout` if nothing happens.
    ///
    /// # Errors
    /// The machine refuses to wait.
    pub fn turn(&mut self, now: Nanos, timeout: Duration) -> Result<(), Error> {
        self.flush(now);
        let timeout = if self.readable.is_empty() { timeout } else { Duration::ZERO };
        if !polling::wait(&mut self.poll, &mut self.events, Some(timeout))? {
            return Ok(());
        }
        for event in &self.events {
            if event.token() == LISTENER {
                self.may_accept = true;
                continue;
            }
            let number = event.token().0;
            let Some(peer) = self.peers.get_mut(number) else { continue };
            if !std::mem::replace(&mut peer.is_readable, true) {
                self.readable.push(number as u32);
            }
            // The socket may have space again.
            if !std::mem::replace(&mut peer.is_touched, true) {
                self.touched.push(number as u32);
            }
        }
        if self.may_accept {
            self.accept(now);
        }
        self.read();
        self.flush(now);
        if now >= self.next_turn {
            self.next_turn = now + TURN_NS;
            self.look_at_the_silent(now);
        }
        Ok(())
    }

    /// Returns the subscribers that are gone since the last call, in order; at most the first 1,000.
    pub fn take_left(&mut self) -> Vec<Left> {
        std::mem::take(&mut self.left)
    }

    /// Returns why no connection can be accepted, since the last call.
    pub fn accept_error(&mut self) -> Option<Error> {
        self.accept_error.take()
    }

    /// Returns `true` if everything published has left this process.
    pub fn is_flushed(&self) -> bool {
        self.peers.iter().all(|(_, peer)| peer.stream.unsent() == 0)
    }

    /// Returns the counts.
    pub fn counters(&self) -> PublisherCounters {
        let subscribers = self.peers.len();
        PublisherCounters { subscribers, subscriptions: self.topics.len(), ..self.counters }
    }

    fn accept(&mut self, now: Nanos) {
        for _ in 0..ACCEPTED_AT_ONCE {
            match self.listener.accept(INPUT) {
                Ok(Some(stream)) => {
                    self.let_in(stream, now);
                    continue;
                }
                Ok(None) => {}
                // Waiting connections are accepted after the next check of the time limits.
                Err(cause) => self.accept_error = Some(cause),
            }
            self.may_accept = false;
            return;
        }
    }

    fn let_in(&mut self, mut stream: Stream, now: Nanos) {
        if self.peers.len() >= self.settings.max_subscribers && !self.make_room(now) {
            self.counters.refused += 1;
            return;
        }
        let number = self.peers.vacant_key();
        if polling::register(&self.poll, &stream, Token(number), polling::EITHER).is_err() {
            return;
        }
        stream.output().extend_from_slice(&OUR_GREETING);
        self.counters.connected += 1;
        self.peers.insert(Peer {
            stream,
            protocol: Protocol::default(),
            since: now,
            stuck: None,
            dropped: 0,
            is_touched: true,
            is_readable: true,
            over: None,
        });
        self.touched.push(number as u32);
        self.readable.push(number as u32);
    }

    /// Disconnects the oldest subscriber that has not completed its handshake within a second. Returns `true`
    /// if there was one.
    fn make_room(&mut self, now: Nanos) -> bool {
        let silent = self.peers.iter().filter(|(_, peer)| !peer.protocol.is_open());
        match silent.map(|(number, peer)| (peer.since, number as u32)).min() {
            Some((since, number)) if now.since(since) >= HANDSHAKE_NS => {
                let why = "another subscriber takes its place, as it has not completed the handshake";
                self.remove(number, why.to_owned(), true);
                true
            }
            _ => false,
        }
    }

    /// Reads received bytes, once from each subscriber.
    fn read(&mut self) {
        for number in std::mem::take(&mut self.readable) {
            let Some(peer) = self.peers.get_mut(number as usize) else { continue };
            peer.is_readable = false;
            if peer.over.is_some() {
                continue;
            }
            match peer.stream.receive() {
                Ok(Received::Bytes(_)) => {
                    peer.is_readable = true;
                    self.readable.push(number);
                }
                Ok(Received::Nothing) => continue,
                // The buffer is longer than the longest frame, so a frame's rest always fits.
                Ok(Received::Full) => {}
                Ok(Received::Closed) => peer.over = Some(Ok("it has closed the connection".to_owned())),
                Err(cause) => peer.over = Some(Ok(cause.to_string())),
            }
            // Answers to pings count toward the high-water mark, too.
            let room = self.settings.queue_bytes.saturating_sub(peer.stream.unsent());
            let (bytes, out) = peer.stream.split();
            let before = out.len();
            let topics = &mut self.topics;
            let taken = peer.protocol.take(bytes, out, |asked| match asked {
                Asked::Subscribe(topic) => topics.subscribe(number, topic),
                Asked::Cancel(topic) => {
                    topics.cancel(number, topic);
                    Ok(())
                }
            });
            if out.len() > before + room {
                out.truncate(before);
            }
            match taken {
                Ok(taken) => peer.stream.consume(taken),
                Err(fault) => peer.over = Some(Err(fault)),
            }
            if !std::mem::replace(&mut peer.is_touched, true) {
                self.touched.push(number);
            }
        }
    }

    /// Sends waiting bytes, as far as the sockets accept them, and removes the connections that are over.
    fn flush(&mut self, now: Nanos) {
        while let Some(number) = self.touched.pop() {
            let Some(peer) = self.peers.get_mut(number as usize) else { continue };
            peer.is_touched = false;
            let before = peer.stream.unsent();
            match peer.stream.flush() {
                Ok(true) => {
                    peer.stuck = None;
                    if peer.stream.output().capacity() > KEPT {
                        *peer.stream.output() = Vec::new();
                    }
                }
                Ok(false) if peer.stream.unsent() < before => peer.stuck = Some(now),
                Ok(false) => _ = peer.stuck.get_or_insert(now),
                Err(cause) => _ = peer.over.get_or_insert_with(|| Ok(cause.to_string())),
            }
            match peer.over.take() {
                None => {}
                Some(Ok(why)) => self.remove(number, why, false),
                Some(Err(fault)) => self.remove(number, fault.to_string(), true),
            }
        }
    }

    /// Disconnects subscribers that read nothing of their queue, or do not complete the handshake, within the
    /// time limit.
    fn look_at_the_silent(&mut self, now: Nanos) {
        self.may_accept = true;
        let limit = i64::try_from(self.settings.stuck_ms.saturating_mul(1_000_000)).unwrap_or(i64::MAX);
        let fault = |peer: &Peer| {
            if peer.stuck.is_some_and(|since| now.since(since) >= limit) {
                Some("it has taken nothing")
            } else if !peer.protocol.is_open() && now.since(peer.since) >= limit {
                Some("it has not completed the handshake")
            } else {
                None
            }
        };
        let silent: Vec<_> =
            self.peers.iter().filter_map(|(number, peer)| Some((number as u32, fault(peer)?))).collect();
        for (number, what) in silent {
            self.remove(number, format!("{what} for {} ms", self.settings.stuck_ms), true);
        }
    }

    fn remove(&mut self, number: u32, why: String, is_let_go: bool) {
        let Some(mut peer) = self.peers.try_remove(number as usize) else { return };
        self.topics.forget(number);
        self.counters.let_go += u64::from(is_let_go);
        polling::deregister(&self.poll, &peer.stream);
        peer.stream.finish();
        if self.left.len() < MOST_LEFT {
            let address = peer.stream.peer_address();
            self.left.push(Left { address, why, is_let_go, dropped: peer.dropped });
        }
    }
}

shown!(Publisher, it => address: it.local_address(), counters: it.counters());
