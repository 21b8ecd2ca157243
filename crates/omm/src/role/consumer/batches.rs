//! Closes and reissues of many streams in one message, for providers that accept them.

use super::Consumer;
use super::losses::Timer;
use super::sending::{Change, Done, send_request};
use crate::domain::item::encode_batch_close;
use crate::domain::{List, RequestPayload};
use crate::role::watchlist::{Owner, Phase};
use crate::role::{Outbox, Sent};
use crate::rwf::CloseHeader;

impl Consumer {
    /// Closes an unused stream together with the streams queued behind it. `None`: there is only one, or the provider
    /// does not accept such batches.
    pub(super) fn close_batch(&mut self, first: u32, out: &mut dyn Outbox) -> Option<Done> {
        let domain = self.list.streams.get(first)?.key.domain;
        if !self.connection.features.batch_closes {
            return None;
        }
        let places =
            self.those_behind(first, |consumer, place, _| {
                consumer.list.streams.get(place).is_some_and(|stream| {
                    stream.id != 0 && stream.is_forsaken() && stream.key.domain == domain
                })
            });
        let (id, ids) = self.batch(&places)?;
        let header = CloseHeader::new(domain, id);
        if !matches!(out.encode(&mut |room| encode_batch_close(&header, &ids, room)), Ok(Sent::Queued)) {
            self.put_back_behind(&places);
            return Some(Done::Full);
        }
        self.begin_batch(id);
        for place in places {
            self.answered(place);
            self.list.remove(place);
        }
        Some(Done::Yes)
    }

    /// Sends a change of a stream, together with equal changes of the streams queued behind it. `None`: as for
    /// [`Self::close_batch`].
    pub(super) fn reissue_batch(
        &mut self,
        first: u32,
        change: &Change,
        out: &mut dyn Outbox,
    ) -> Option<Done> {
        let head = self.list.streams.get(first)?;
        if !self.connection.features.batch_reissues || head.key.is_special() {
            return None;
        }
        let service_id = head.service_id;
        let places = self.those_behind(first, |consumer, place, _| {
            let Some(head) = consumer.list.streams.get(first) else { return false };
            let is_like_it = consumer.list.streams.get(place).is_some_and(|stream| {
                stream.phase == Phase::Open
                    && stream.id != 0
                    && stream.service_id == service_id
                    && !stream.is_forsaken()
                    && !stream.is_late
                    && head.key.is_like(&stream.key)
            });
            is_like_it && consumer.change(place).as_ref() == Some(change)
        });
        let (id, ids) = self.batch(&places)?;
        let batch = RequestPayload { streams: Some(List::Given(&ids)), ..RequestPayload::default() };
        let key = &self.list.streams.get(first)?.key;
        let sent = send_request(key, (id, service_id), &change.asked, change.flags, batch, out);
        if sent != Ok(Sent::Queued) {
            self.put_back_behind(&places);
            return Some(Done::Full);
        }
        self.begin_batch(id);
        for place in places {
            self.has_changed(place, change);
        }
        Some(Done::Yes)
    }

    /// Returns the stream and the streams queued behind it that fit, up to the size of a batch. They leave the queue.
    /// `fits` is given a stream and the number of streams before it.
    pub(super) fn those_behind(&mut self, first: u32, fits: impl Fn(&Self, u32, usize) -> bool) -> Vec<u32> {
        let mut places = vec![first];
        while places.len() < self.settings.most_in_batch.max(1)
            && let Some(place) = self.list.next_in_line()
        {
            if !fits(self, place, places.len()) {
                self.list.put_back(place);
                break;
            }
            places.push(place);
        }
        places
    }

    /// Returns the id of a batch and the ids of its streams. `None`: a batch would have fewer than two streams, or no
    /// id is free.
    fn batch(&mut self, places: &[u32]) -> Option<(i32, Vec<i32>)> {
        if places.len() < 2 {
            return None;
        }
        let Some(id) = self.list.ids.row(1) else {
            self.put_back_behind(places);
            return None;
        };
        let ids = places.iter().filter_map(|place| self.list.streams.get(*place)).map(|stream| stream.id);
        Some((id, ids.collect()))
    }

    /// Reserves the id on which the provider answers the batch itself; the id has no further use.
    fn begin_batch(&mut self, id: i32) {
        self.list.ids.take_in_row(id, Owner::Batch(0));
        let due = self.after(self.settings.request_timeout);
        self.set_timer(due, Timer::Batch(id));
    }

    /// Returns all streams but the first to the front of the queue, in the same order.
    pub(super) fn put_back_behind(&mut self, places: &[u32]) {
        for place in places.iter().skip(1).rev() {
            self.list.put_back(*place);
        }
    }
}
