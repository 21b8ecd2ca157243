//! What waits for a client that has no room.

use std::collections::VecDeque;

use tapeline_nanos::Nanos;
use tapeline_omm::role::provider::StreamHandle;
use tapeline_omm::role::{Outbox, Queue, Sent};

/// Messages in their order, up to a limit of bytes; in front of them those that no policy leaves out.
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
    /// The stream whose update it is; `None` for what may not be left out.
    stream: Option<StreamHandle>,
}

/// What a message counts for beside its bytes: its place in the queue, which may have grown to twice what it holds, and what
/// the allocator adds.
pub(crate) const MESSAGE_COST: usize = 2 * size_of::<Waiting>() + 16;
/// Places that are kept when nothing waits.
const KEPT: usize = 64;

impl Backlog {
    /// Empty, for so many bytes, and so many of what no policy leaves out.
    pub(crate) const fn new(limit: usize, ahead: usize) -> Self {
        let ahead = Queue::new(ahead);
        Self { ahead, waiting: VecDeque::new(), claimed: Vec::new(), held: 0, limit, now: Nanos(0) }
    }

    /// Another limit. What waits already stays.
    pub(crate) const fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// The time, for what comes next.
    pub(crate) const fn at(&mut self, now: Nanos) {
        self.now = now;
    }

    /// Messages that wait.
    pub(crate) fn len(&self) -> usize {
        self.ahead.len() + self.waiting.len()
    }

    /// Of them, those that a policy is for.
    pub(crate) fn limited(&self) -> usize {
        self.waiting.len()
    }

    /// Bytes that count towards the limit.
    pub(crate) const fn held(&self) -> usize {
        self.held
    }

    /// Bytes in front of those: of what no policy leaves out.
    pub(crate) const fn rest(&self) -> usize {
        self.ahead.held()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ahead.is_empty() && self.waiting.is_empty()
    }

    /// Room for what no policy leaves out, behind all that waits: the rest of an image, a message of a private stream.
    pub(crate) fn for_all(&mut self) -> &mut dyn Outbox {
        if self.waiting.is_empty() { &mut self.ahead } else { self }
    }

    /// Since when the first has waited.
    pub(crate) fn oldest(&self) -> Option<Nanos> {
        self.waiting.front().map(|first| first.since)
    }

    /// What `send` commits last is an update of this stream. What it commits before that its role owed: receipts, which no policy leaves
    /// out.
    pub(crate) fn update(&mut self, stream: StreamHandle, send: impl FnOnce(&mut Self) -> Sent) -> Sent {
        let sent = send(self);
        if sent.is_queued()
            && let Some(last) = self.waiting.back_mut()
        {
            last.stream = Some(stream);
        }
        sent
    }

    /// Sends on as many as `out` has room for: whether that were all.
    pub(crate) fn send_on(&mut self, out: &mut dyn Outbox) -> bool {
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

    /// Leaves all updates out: each one's stream goes to `lost`.
    pub(crate) fn drop_updates(&mut self, mut lost: impl FnMut(StreamHandle)) {
        let mut held = self.held;
        self.waiting.retain(|waiting| {
            let Some(stream) = waiting.stream else { return true };
            held -= waiting.message.len() + MESSAGE_COST;
            lost(stream);
            false
        });
        self.held = held;
    }

    /// Nothing waits any more.
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
