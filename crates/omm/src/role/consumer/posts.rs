//! Posts that wait for their acknowledgements.

use std::collections::{HashMap, VecDeque};

use tapeline_nanos::Nanos;

use super::{Call, Consumer, ConsumerEvent, Handle};
use crate::domain::LOGIN_STREAM;
use crate::role::watchlist::Owner;
use crate::rwf::{AckHeader, Domain, NakCode};

/// Stream and id of a post: they identify its acknowledgement. `None` is the login stream.
pub(super) type PostKey = (Option<Handle>, u32);

/// Data of a post until its acknowledgement arrives.
#[derive(Debug, Clone, Copy)]
pub(super) struct Awaited {
    due: Nanos,
    pub(super) sequence: Option<u32>,
    pub(super) domain: Domain,
}

/// Unacknowledged posts, up to a limit. All have the same time limit, so the first post sent is the first to be late.
#[derive(Debug, Default)]
pub(super) struct Posts {
    awaited: HashMap<PostKey, Awaited>,
    /// In order of time; some entries may be acknowledged, or sent again.
    order: VecDeque<(Nanos, PostKey)>,
}

impl Posts {
    pub(super) fn len(&self) -> usize {
        self.awaited.len()
    }

    /// Waits for an acknowledgement until `due`.
    pub(super) fn await_receipt(&mut self, key: PostKey, due: Nanos, sequence: Option<u32>, domain: Domain) {
        self.awaited.insert(key, Awaited { due, sequence, domain });
        self.order.push_back((due, key));
        // Acknowledged entries leave at the front. Behind an old one that is never acknowledged they are removed here.
        if self.order.len() > 2 * self.awaited.len() + 64 {
            let awaited = &self.awaited;
            self.order.retain(|(due, key)| awaited.get(key).is_some_and(|post| post.due == *due));
        }
    }

    pub(super) fn is_awaited(&self, key: PostKey) -> bool {
        self.awaited.contains_key(&key)
    }

    /// Records an acknowledgement. `None`: no post waits for it.
    pub(super) fn answer(&mut self, key: PostKey) -> Option<Awaited> {
        let post = self.awaited.remove(&key);
        while let Some((due, key)) = self.order.front()
            && self.awaited.get(key).is_none_or(|post| post.due != *due)
        {
            self.order.pop_front();
        }
        post
    }

    /// Returns a post that is late at `now`; any post at the end of time.
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

    /// Returns the time at which the next post is late.
    pub(super) fn due(&self) -> Option<Nanos> {
        self.order.front().map(|(due, _)| *due)
    }
}

impl Consumer {
    /// Processes the acknowledgement of a post.
    pub(super) fn ack(&mut self, ack: &AckHeader<'_>, call: &mut Call<'_>) {
        let id = ack.ack_id;
        if ack.stream_id == LOGIN_STREAM {
            if self.posts.answer((None, id)).is_some() {
                call.event(self, ConsumerEvent::Ack { item: None, ack: *ack });
                return;
            }
        } else if let Some(Owner::Stream(place)) = self.owner(ack.stream_id) {
            let posted = self
                .list
                .items(place)
                .map(|(item, _)| item)
                .find(|item| self.posts.is_awaited((Some(*item), id)));
            if let Some(item) = posted {
                self.posts.answer((Some(item), id));
                call.event(self, ConsumerEvent::Ack { item: Some(item), ack: *ack });
                return;
            }
        }
        self.counters.misplaced += 1;
    }

    /// Refuses posts that were not acknowledged in time.
    pub(super) fn posts_due(&mut self, call: &mut Call<'_>) {
        self.refuse_posts(self.now, b"No acknowledgement came in time.", call);
    }

    pub(super) fn refuse_posts(&mut self, by: Nanos, text: &[u8], call: &mut Call<'_>) {
        while let Some(((item, id), awaited)) = self.posts.late(by) {
            if item.is_some_and(|item| self.list.interest(item).is_none()) {
                continue;
            }
            let ack = AckHeader {
                nak_code: Some(NakCode::NO_RESPONSE),
                text: Some(text),
                sequence: awaited.sequence,
                ..AckHeader::new(awaited.domain, 0, id)
            };
            call.event(self, ConsumerEvent::Ack { item, ack });
        }
    }
}
