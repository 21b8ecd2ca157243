//! The two ends of a connection as state machines over RWF messages: no I/O, no clock, bounded memory.
//!
//! All roles follow the same conventions.
//!
//! * **Input.** `message(now, bytes, out, application)` processes one message from the peer.
//!   `tick(now, out, application)` does the work that is due, and returns the time of the next call, unless a message
//!   comes before. Call `tick` also when the output has free space again. A connection that opens or ends creates or
//!   drops a role (or a method of the role is called: a consumer outlives its connections).
//! * **Output.** Messages are written once, in place, into the buffer that an [`Outbox`] lends. Without space, a
//!   message of the application returns [`Sent::Full`]: try again after the next `tick`. A message that the role itself
//!   must send waits in a [`Queue`] with a stated limit, and is sent before anything else. A peer that makes this queue
//!   overflow is [disconnected](Over).
//! * **Events.** Events are values that borrow from the message. One method of the role's trait receives them, together
//!   with the role and the outbox, so that the application can answer at once; it can also keep the handle and answer
//!   later.
//! * **Handles.** A handle consists of the place of a stream and a count of how often the place was used. An obsolete
//!   handle is refused; it never reaches another stream.
//! * **Hostile peers.** No input causes a panic. The number of streams, the data stored for each, and the pending
//!   output are limited. A malformed message is counted and reported, and processing continues with the next one.
//!
//! Connections of JSON use the same roles: a converter at the edge converts texts to RWF messages and back.

pub mod acceptor;
pub mod consumer;
mod downloads;
mod loading;
mod name;
pub mod ni_provider;
mod peer;
pub mod provider;
pub mod watchlist;

use std::collections::VecDeque;
use std::time::Duration;

use tapeline_nanos::Nanos;

use crate::domain::LoginRequest;
use crate::rwf::{DataState, StateCode, StreamState};
use crate::{Refused, State};

pub use loading::DownloadFailed;
pub use name::Name;

/// Result of sending a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Sent {
    /// The message will be sent, in order.
    Queued,
    /// Back pressure: there is no space, and nothing was accepted. Try again when there is space.
    Full,
    /// The message is longer than any message that can be sent here.
    TooLong,
    /// Nothing was sent: the stream does not exist, is closed, or does not accept this message now.
    NotOpen,
}

impl Sent {
    /// Returns `true` if the message will be sent.
    #[must_use]
    pub fn is_queued(self) -> bool {
        self == Self::Queued
    }
}

/// Output of one connection. Messages keep their order.
///
/// Space is claimed, written and committed; a claim without a commit has no effect. Implementations are the transport's
/// output, and [`Queue`].
pub trait Outbox {
    /// Returns the length of the longest message that can ever be sent, bytes.
    fn most(&self) -> usize;

    /// Returns the length of the longest message that may fit now, if that is known.
    fn left(&self) -> usize {
        self.most()
    }

    /// Returns a buffer of at least `len` bytes for one message of at most `len` bytes; `None` while there is no space.
    /// The content of the buffer is unspecified. A new claim replaces an earlier one.
    fn claim(&mut self, len: usize) -> Option<&mut [u8]>;

    /// Commits the first `len` bytes of the last claim as a message; `len` must not exceed the claim.
    fn commit(&mut self, len: usize);

    /// Sends an encoded message.
    fn send(&mut self, message: &[u8]) -> Sent {
        if message.len() > self.most() {
            return Sent::TooLong;
        }
        match self.claim(message.len()).and_then(|room| room.get_mut(..message.len())) {
            Some(room) => room.copy_from_slice(message),
            None => return Sent::Full,
        }
        self.commit(message.len());
        Sent::Queued
    }

    /// Sends a message that `write` writes into the given buffer, returning its length. If `write` returns
    /// [`Full`](Refused::Full), it is called again with a larger buffer, and must write the same message. Fails with
    /// what `write` refuses, except for lack of space.
    fn encode(
        &mut self,
        write: &mut dyn FnMut(&mut [u8]) -> Result<usize, Refused>,
    ) -> Result<Sent, Refused> {
        let (most, left) = (self.most(), self.left());
        let mut size = FIRST_CLAIM.min(left);
        loop {
            let Some(room) = self.claim(size) else { return Ok(Sent::Full) };
            match write(room) {
                Ok(len) => {
                    self.commit(len);
                    return Ok(Sent::Queued);
                }
                Err(Refused::Full) if size < left => size = size.saturating_mul(CLAIM_GROWTH).min(left),
                Err(Refused::Full) if left < most => return Ok(Sent::Full),
                Err(Refused::Full) => return Ok(Sent::TooLong),
                Err(other) => return Err(other),
            }
        }
    }
}

/// What a role is given for one call: the output of its connection, and its application.
struct Call<'c, A: ?Sized> {
    out: &'c mut dyn Outbox,
    application: &'c mut A,
}

/// Declares the trait of a role's application, which closures implement too, and the role's `Call`.
macro_rules! application {
    ($(#[$about:meta])* $application:ident: $role:ident, $event:ident) => {
        /// Receiver of the events.
        pub trait $application {
            $(#[$about])*
            fn event(&mut self, role: &mut $role, out: &mut dyn Outbox, event: $event<'_>);
        }

        impl<F: FnMut(&mut $role, &mut dyn Outbox, $event<'_>)> $application for F {
            fn event(&mut self, role: &mut $role, out: &mut dyn Outbox, event: $event<'_>) {
                self(role, out, event);
            }
        }

        pub(super) type Call<'c> = crate::role::Call<'c, dyn $application + 'c>;

        impl Call<'_> {
            pub(super) fn event(&mut self, role: &mut $role, event: $event<'_>) {
                self.application.event(role, self.out, event);
            }
        }
    };
}
use application;

/// Returns the writer of a payload that exists already.
fn copy_of(payload: &[u8]) -> impl Fn(&mut [u8]) -> Result<usize, Refused> {
    move |room| {
        room.get_mut(..payload.len()).ok_or(Refused::Full)?.copy_from_slice(payload);
        Ok(payload.len())
    }
}

/// Returns the bytes of a login request.
fn encoded(login: &LoginRequest<'_>) -> Result<Box<[u8]>, Refused> {
    let mut bytes = vec![0; 0xFFFF];
    let len = login.encode(&mut bytes)?;
    bytes.truncate(len);
    Ok(bytes.into())
}

/// Returns the time `wait` after `now`.
fn later(now: Nanos, wait: Duration) -> Nanos {
    Nanos(now.0.saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)))
}

/// State of an item that will recover.
const SUSPECT: State<'static> =
    State { stream: StreamState::OPEN, data: DataState::SUSPECT, code: StateCode::NONE, text: b"" };
/// State of an item that is closed.
const CLOSED: State<'static> = State { stream: StreamState::CLOSED, ..SUSPECT };

/// Outbox of a role without a connection: it never has capacity.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nowhere;

impl Outbox for Nowhere {
    /// So large that no message is too long: the role's own messages are queued.
    fn most(&self) -> usize {
        16 << 20
    }

    fn claim(&mut self, _len: usize) -> Option<&mut [u8]> {
        None
    }

    fn commit(&mut self, _len: usize) {}
}

/// First claim for a message of unknown length, bytes. Nearly all messages of the roles themselves are shorter.
const FIRST_CLAIM: usize = 1024;
/// Growth factor of the claim.
const CLAIM_GROWTH: usize = 8;

/// Messages that wait in memory, in order, up to a limit in bytes.
#[derive(Debug)]
pub struct Queue {
    bytes: VecDeque<Box<[u8]>>,
    claimed: Vec<u8>,
    held: usize,
    limit: usize,
}

/// Overhead of a message in a [`Queue`], bytes.
const MESSAGE_COST: usize = 32;

impl Queue {
    /// Creates an empty queue with a limit in bytes. Each message counts for 32 bytes more than its length.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self { bytes: VecDeque::new(), claimed: Vec::new(), held: 0, limit }
    }

    /// Returns the number of queued messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the bytes that count towards the limit.
    #[must_use]
    pub const fn held(&self) -> usize {
        self.held
    }

    /// Returns `true` if no message is queued.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Removes and returns the first message.
    pub fn pop(&mut self) -> Option<Box<[u8]>> {
        let message = self.bytes.pop_front()?;
        self.held -= message.len() + MESSAGE_COST;
        Some(message)
    }

    /// Sends queued messages while `out` has space. Returns `true` if all were sent.
    pub fn send_on(&mut self, out: &mut dyn Outbox) -> bool {
        while let Some(message) = self.bytes.front() {
            if out.send(message) == Sent::Full {
                return false;
            }
            self.pop();
        }
        true
    }
}

impl Outbox for Queue {
    fn most(&self) -> usize {
        self.limit.saturating_sub(MESSAGE_COST)
    }

    fn left(&self) -> usize {
        (self.limit - self.held).saturating_sub(MESSAGE_COST)
    }

    fn claim(&mut self, len: usize) -> Option<&mut [u8]> {
        if len + MESSAGE_COST > self.limit - self.held {
            return None;
        }
        self.claimed.clear();
        self.claimed.resize(len, 0);
        Some(&mut self.claimed)
    }

    fn commit(&mut self, len: usize) {
        let message: Box<[u8]> = self.claimed.get(..len).unwrap_or_default().into();
        self.held += message.len() + MESSAGE_COST;
        self.bytes.push_back(message);
        self.claimed = Vec::new();
    }
}

/// Reason why a role has ended its connection. Close the connection after the queued output is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Over {
    /// The peer logged out: it closed its login.
    #[error("the peer has logged out")]
    LoggedOut,
    /// The login was refused, and the peer was informed.
    #[error("the login was refused")]
    Refused,
    /// No login arrived in time.
    #[error("no login came within {0} ms")]
    NoLogin(u64),
    /// The peer sends requests and does not read the answers.
    #[error("the peer does not read the answers that it is owed")]
    Unread,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_keeps_its_limit() {
        let mut queue = Queue::new(200);
        assert_eq!(queue.send(&[7; 100]), Sent::Queued);
        assert_eq!(queue.send(&[8; 100]), Sent::Full);
        assert_eq!(queue.send(&[8; 169]), Sent::TooLong);
        let mut write = |room: &mut [u8]| room.get_mut(..100).map(|room| room.len()).ok_or(Refused::Full);
        assert_eq!(queue.encode(&mut write), Ok(Sent::Full));
        let mut next = Queue::new(300);
        assert!(queue.send_on(&mut next));
        assert_eq!((queue.len(), next.len()), (0, 1));
        assert_eq!(queue.encode(&mut |_| Err(Refused::Full)), Ok(Sent::TooLong));
        assert_eq!(queue.encode(&mut |room| Ok(room.len())), Ok(Sent::Queued));
        assert_eq!(queue.pop().map(|message| message.len()), Some(168));
    }

    #[test]
    fn a_queue_takes_what_there_is_room_for() {
        // The result does not depend on the claims in between.
        for held in [0, 1, 5_000] {
            let mut queue = Queue::new(held + 20_000 + 2 * MESSAGE_COST);
            assert_eq!(queue.send(&vec![7; held]), Sent::Queued);
            let mut encode = |len: usize| {
                queue.encode(&mut |room| room.get_mut(..len).map(|room| room.len()).ok_or(Refused::Full))
            };
            assert_eq!([encode(20_001), encode(20_000)], [Ok(Sent::Full), Ok(Sent::Queued)]);
        }
    }
}
