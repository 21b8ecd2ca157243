//! The queue of a client without capacity.

use std::collections::VecDeque;

use tapeline_nanos::Nanos;
use tapeline_omm::role::provider::StreamHandle;
use tapeline_omm::role::{Outbox, Queue, Sent};

/// Messages in order, up to a limit of bytes; before them those that no policy drops.
#[derive(Debug)]
pub(crate) struct Backlog {
    ahead: Queue,
    waiting: VecDeque<Waiting>,
    claimed: Vec<u8>,
    held: usize,
    limit: usize,
    now: Nanos,
}

#[derive(Debug)]
struct Waiting {
    message: Box<[u8]>,
    since: Nanos,
    /// The stream of an update; `None` for a message that must not be dropped.
    stream: Option<StreamHandle>,
}

/// Overhead of a queued message in bytes: its entry in the queue, which may have grown to twice its contents, and the allocator's.
pub(crate) const MESSAGE_COST: usize = 2 * size_of::<Waiting>() + 16;
/// Capacity that is kept when the queue is empty.
const KEPT: usize = 64;

impl Backlog {
    /// Creates an empty queue for `limit` bytes, and `ahead` bytes of messages that no policy drops.
    pub(crate) const fn new(limit: usize, ahead: usize) -> Self {
        let ahead = Queue::new(ahead);
        Self { ahead, waiting: VecDeque::new(), claimed: Vec::new(), held: 0, limit, now: Nanos(0) }
    }

    /// Sets another limit. Queued messages stay.
    pub(crate) const fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Sets the time of the next messages.
    pub(crate) const fn at(&mut self, now: Nanos) {
        self.now = now;
    }

    /// Returns the number of queued messages.
    pub(crate) fn len(&self) -> usize {
        self.ahead.len() + self.waiting.len()
    }

    /// Returns the number of queued messages that a policy applies to.
    pub(crate) fn limited(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the bytes that count towards the limit.
    pub(crate) const fn held(&self) -> usize {
        self.held
    }

    /// Returns the bytes of queued messages that no policy drops.
    pub(crate) const fn rest(&self) -> usize {
        self.ahead.held()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ahead.is_empty() && self.waiting.is_empty()
    }

    /// Returns an outbox for messages that no policy drops, after all queued ones: the rest of an image, a message of a private stream.
    pub(crate) fn for_all(&mut self) -> &mut dyn Outbox {
        if self.waiting.is_empty() { &mut self.ahead } else { self }
    }

    /// Returns the time since which the first message has been queued.
    pub(crate) fn oldest(&self) -> Option<Nanos> {
        self.waiting.front().map(|first| first.since)
    }

    /// Marks the last queued message as an update of a stream, which a policy may drop.
    pub(crate) fn mark_update(&mut self, stream: StreamHandle) {
        if let Some(last) = self.waiting.back_mut() {
            last.stream = Some(stream);
        }
    }

    /// Sends as many messages as `out` has capacity for. Returns `true` if all were sent.
    #[inline]
    pub(crate) fn send_on(&mut self, out: &mut dyn Outbox) -> bool {
        // Nearly always nothing is queued.
        self.is_empty() || self.send_queued(out)
    }

    fn send_queued(&mut self, out: &mut dyn Outbox) -> bool {
        if !self.ahead.is_empty() && !self.ahead.send_on(out) {
            return false;
        }
        while let Some(first) = self.waiting.front() {
            if out.send(&first.message) == Sent::Full {
                return false;
            }
            self.held -= first.message.len() + MESSAGE_COST;
            self.waiting.pop_front();
        }
        self.waiting.shrink_to(KEPT);
        true
    }

    /// Drops all updates: passes the stream of each to `lost`.
    pub(crate) fn drop_updates(&mut self, mut lost: impl FnMut(StreamHandle)) {
        let mut held = self.held;
        self.waiting.retain(|waiting| {
            let Some(stream) = waiting.stream else { return true };
            held -= waiting.message.len() + MESSAGE_COST;
            lost(stream);
            false
        });
        self.waiting.shrink_to(KEPT);
        self.held = held;
    }

    pub(crate) fn clear(&mut self) {
        while self.ahead.pop().is_some() {}
        (self.waiting, self.claimed, self.held) = (VecDeque::new(), Vec::new(), 0);
    }
}

impl Outbox for Backlog {
    fn most(&self) -> usize {
        self.limit.saturating_sub(MESSAGE_COST)
    }

    fn left(&self) -> usize {
        self.limit.saturating_sub(self.held).saturating_sub(MESSAGE_COST)
    }

    fn claim(&mut self, len: usize) -> Option<&mut [u8]> {
        if len.saturating_add(MESSAGE_COST) > self.limit.saturating_sub(self.held) {
            return None;
        }
        self.claimed.clear();
        self.claimed.resize(len, 0);
        Some(&mut self.claimed)
    }

    fn commit(&mut self, len: usize) {
        let message: Box<[u8]> = self.claimed.get(..len).unwrap_or_default().into();
        self.held += message.len() + MESSAGE_COST;
        self.waiting.push_back(Waiting { message, since: self.now, stream: None });
        self.claimed = Vec::new();
    }
}
