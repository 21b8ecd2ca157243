//! Posts whose receipts are awaited.

use std::collections::{HashMap, VecDeque};

use tapeline_nanos::Nanos;

use super::{Application, Consumer, Event, Handle};
use crate::domain::LOGIN_STREAM;
use crate::role::Outbox;
use crate::role::watchlist::Owner;
use crate::rwf::{AckHeader, Domain, NakCode};

/// Where a post went, and its id: what its receipt is known by. The login stream is no item's.
pub(super) type PostKey = (Option<Handle>, u32);

/// What is kept of a post until its receipt comes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Awaited {
    due: Nanos,
    pub(super) sequence: Option<u32>,
    pub(super) domain: Domain,
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
    pub(super) fn await_receipt(&mut self, key: PostKey, due: Nanos, sequence: Option<u32>, domain: Domain) {
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

impl Consumer {
    /// The receipt of a post.
    pub(super) fn ack(&mut self, ack: &AckHeader<'_>, out: &mut dyn Outbox, app: &mut dyn Application) {
        let id = ack.ack_id;
        if ack.stream_id == LOGIN_STREAM {
            if self.posts.answer((None, id)).is_some() {
                app.event(self, out, Event::Ack { item: None, ack: *ack });
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
                app.event(self, out, Event::Ack { item: Some(item), ack: *ack });
                return;
            }
        }
        self.counters.misplaced += 1;
    }

    /// Posts that were not acknowledged in time.
    pub(super) fn posts_due(&mut self, out: &mut dyn Outbox, app: &mut dyn Application) {
        self.refuse_posts(self.now, b"No acknowledgement came in time.", out, app);
    }

    pub(super) fn refuse_posts(
        &mut self,
        by: Nanos,
        text: &[u8],
        out: &mut dyn Outbox,
        app: &mut dyn Application,
    ) {
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
            app.event(self, out, Event::Ack { item, ack });
        }
    }
}
