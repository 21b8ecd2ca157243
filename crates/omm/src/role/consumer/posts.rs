//! Posts whose receipts are awaited.

use std::collections::{HashMap, VecDeque};

use tapeline_measure::Nanos;

use super::Handle;

/// Where a post went, and its id: what its receipt is known by. The login stream is no item's.
pub(super) type PostKey = (Option<Handle>, u32);

/// What is kept of a post until its receipt comes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Awaited {
    due: Nanos,
    pub(super) sequence: Option<u32>,
    pub(super) domain: crate::rwf::Domain,
}

/// Posts without a receipt, up to a limit. All wait equally long, so the first that was sent is the first that is late.
#[derive(Debug, Default)]
pub(super) struct Posts {
    awaited: HashMap<PostKey, Awaited>,
    /// In the order of their times; some may have been answered, or were sent again.
    order: VecDeque<(Nanos, PostKey)>,
}

impl Posts {
    pub(super) fn len(&self) -> usize {
        self.awaited.len()
    }

    /// Awaits a receipt until `due`.
    pub(super) fn await_receipt(
        &mut self,
        key: PostKey,
        due: Nanos,
        sequence: Option<u32>,
        domain: crate::rwf::Domain,
    ) {
        self.awaited.insert(key, Awaited { due, sequence, domain });
        self.order.push_back((due, key));
        // Answered ones go when they are in front; where an old one is never answered, they go in time too.
        if self.order.len() > 2 * self.awaited.len() + 64 {
            let awaited = &self.awaited;
            self.order.retain(|(due, key)| awaited.get(key).is_some_and(|post| post.due == *due));
        }
    }

    pub(super) fn is_awaited(&self, key: PostKey) -> bool {
        self.awaited.contains_key(&key)
    }

    /// The receipt is there. `None`: nobody waits for it.
    pub(super) fn answer(&mut self, key: PostKey) -> Option<Awaited> {
        let post = self.awaited.remove(&key);
        while let Some((due, key)) = self.order.front()
            && self.awaited.get(key).is_none_or(|post| post.due != *due)
        {
            self.order.pop_front();
        }
        post
    }

    /// A post whose receipt is late at `now`; of any at the end of time.
    pub(super) fn late(&mut self, now: Nanos) -> Option<(PostKey, Awaited)> {
        while let Some((due, key)) = self.order.front().copied() {
            if due > now {
                return None;
            }
            self.order.pop_front();
            if self.awaited.get(&key).is_some_and(|post| post.due == due) {
                return self.awaited.remove(&key).map(|post| (key, post));
            }
        }
        None
    }

    /// When the next is late.
    pub(super) fn due(&self) -> Option<Nanos> {
        self.order.front().map(|(due, _)| *due)
    }
}
