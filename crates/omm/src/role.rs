//! The two ends of a connection as state machines over RWF messages: no I/O, no clock, bounded memory.
//!
//! All roles keep to the same conventions.
//!
//! * **Fed.** `message(now, bytes, out, application)` takes one message that the peer sent; `tick(now, out, application)`
//!   does what is due and returns when there is something to do next, if nothing comes before. `tick` is also to be called
//!   when there is room to send again. A connection that opens or ends makes or drops a role (or its method is called: a
//!   consumer outlives its connections).
//! * **Sends.** Messages are written in place into the room that an [`Outbox`] lends, once. Room may be lacking: what the
//!   application sends comes back as [`Sent::Full`], to be tried again after the next `tick`; what the role itself owes its
//!   peer waits in a [`Queue`] of a stated limit, and goes out before anything else. A peer that lets even that overflow is
//!   [cut](Over).
//! * **Tells.** Events are values that borrow from the message. They go to a trait of the role's, by one method, together
//!   with the role itself and the outbox, so that the application can answer at once; it can as well keep the handle and
//!   answer later.
//! * **Handles.** A stream is known by an id and a count of how often its place was used: a handle that is kept for too long
//!   is refused, and never reaches another stream.
//! * **Peers are hostile.** Whatever comes, nothing panics; there are limits to streams, to what is kept of each, and to
//!   what is owed. A message that is malformed is counted and told, and the next one is looked at.
//!
//! Connections of JSON use the same roles: a converter turns texts into RWF messages and back, at the edge.

pub mod acceptor;
pub mod consumer;
mod downloads;
mod loading;
pub mod ni_provider;
mod peer;
pub mod provider;
pub mod watchlist;

use std::collections::VecDeque;

use crate::Refused;

pub use loading::DownloadFailed;

/// What came of sending a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Sent {
    /// It will go out, in its turn.
    Queued,
    /// Back-pressure: there is no room, and nothing was taken. Try again when there is.
    Full,
    /// It is longer than any message that can be sent here.
    TooLong,
    /// There is no such stream, or no longer, or it takes no such message now: nothing was sent.
    NotOpen,
}

impl Sent {
    /// Whether it will go out.
    #[must_use]
    pub fn is_queued(self) -> bool {
        self == Self::Queued
    }
}

/// Where the messages of one connection go, in their order.
///
/// Room is claimed, written to and committed; a claim that is not committed counts for nothing. Implementations are the
/// transport's output, and [`Queue`].
pub trait Outbox {
    /// Length of the longest message that can ever be sent.
    fn most(&self) -> usize;

    /// Length of the longest message that there may be room for by now, where that is known.
    fn left(&self) -> usize {
        self.most()
    }

    /// Room for one message of up to `len` bytes, at least so many; `None` as long as there is none. What is in it is of no
    /// meaning. Takes the place of an earlier claim.
    fn claim(&mut self, len: usize) -> Option<&mut [u8]>;

    /// The first `len` bytes of the room that was claimed last are a message, and no more than was claimed.
    fn commit(&mut self, len: usize);

    /// Sends a message that is there already.
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

    /// Sends a message that `write` puts into the room that it is given, returning its length. `write` is called again with
    /// more room where it says that it is [`Full`](Refused::Full): it has to write the same each time.
    ///
    /// # Errors
    ///
    /// What `write` refuses, room aside.
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

/// The outbox of a role without a connection: there is never capacity.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nowhere;

impl Outbox for Nowhere {
    /// So long that no message is too long: what a role owes waits.
    fn most(&self) -> usize {
        16 << 20
    }

    fn claim(&mut self, _len: usize) -> Option<&mut [u8]> {
        None
    }

    fn commit(&mut self, _len: usize) {}
}

/// Room that is claimed for a message of unknown length: nearly all that roles send of themselves are shorter.
const FIRST_CLAIM: usize = 1024;
/// How much more is claimed each time.
const CLAIM_GROWTH: usize = 8;

/// Messages that wait in memory, in their order, up to a limit of bytes.
#[derive(Debug)]
pub struct Queue {
    bytes: VecDeque<Box<[u8]>>,
    claimed: Vec<u8>,
    held: usize,
    limit: usize,
}

/// What a message in a [`Queue`] counts for beside its bytes.
const MESSAGE_COST: usize = 32;

impl Queue {
    /// Empty, for so many bytes; each message counts for 32 more than it has.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self { bytes: VecDeque::new(), claimed: Vec::new(), held: 0, limit }
    }

    /// Messages that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that count towards the limit.
    #[must_use]
    pub const fn held(&self) -> usize {
        self.held
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The first message; it is gone from here.
    pub fn pop(&mut self) -> Option<Box<[u8]>> {
        let message = self.bytes.pop_front()?;
        self.held -= message.len() + MESSAGE_COST;
        Some(message)
    }

    /// Sends on as many as `out` has room for: whether that were all.
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

/// Why a role is done with its connection, which is to be closed once what waits is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Over {
    /// The peer said good-bye: it closed its login.
    #[error("the peer has logged out")]
    LoggedOut,
    /// The login was refused, and the peer told.
    #[error("the login was refused")]
    Refused,
    /// No login came in time.
    #[error("no login came within {0} ms")]
    NoLogin(u64),
    /// The peer asks, and does not read the answers.
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
        // Whatever is claimed on the way.
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
