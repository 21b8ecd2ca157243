//! Closes and reissues of many streams in one message, for providers that take them.

use super::Consumer;
use super::losses::Timer;
use super::sending::{Change, Done, send_reissues};
use crate::domain::item::encode_batch_close;
use crate::role::watchlist::{Owner, Phase};
use crate::role::{Outbox, Sent};
use crate::rwf::CloseHeader;

impl Consumer {
    /// Closes a stream that nobody wants any more together with those behind it in line. `None`: it is alone, or the provider
    /// takes no such batch.
    pub(super) fn close_batch(&mut self, first: u32, out: &mut dyn Outbox) -> Option<Done> {
        let domain = self.list.stream(first)?.key.domain;
        if !self.connection.features.batch_closes {
            return None;
        }
        let places = self.those_behind(first, |consumer, place| {
            consumer
                .list
                .stream(place)
                .is_some_and(|stream| stream.id != 0 && stream.is_forsaken() && stream.key.domain == domain)
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

    /// Tells the provider of a stream what has changed, and of those behind it in line that have changed alike. `None`: as
    /// above.
    pub(super) fn reissue_batch(
        &mut self,
        first: u32,
        change: &Change,
        out: &mut dyn Outbox,
    ) -> Option<Done> {
        let head = self.list.stream(first)?;
        if !self.connection.features.batch_reissues || head.key.is_special() {
            return None;
        }
        let service_id = head.service_id;
        let places = self.those_behind(first, |consumer, place| {
            let Some(head) = consumer.list.stream(first) else { return false };
            let is_like_it = consumer.list.stream(place).is_some_and(|stream| {
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
        let sent = send_reissues(&self.list.stream(first)?.key, id, service_id, change, &ids, out);
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

    /// The stream, and those behind it in line that fit, as many as a batch has. They have left the line.
    fn those_behind(&mut self, first: u32, fits: impl Fn(&Self, u32) -> bool) -> Vec<u32> {
        let mut places = vec![first];
        while places.len() < self.settings.most_in_batch.max(1)
            && let Some(place) = self.list.next_in_line()
        {
            if !fits(self, place) {
                self.list.put_back(place);
                break;
            }
            places.push(place);
        }
        places
    }

    /// The id of a batch, and those of its streams. `None`: it is not worth one.
    fn batch(&mut self, places: &[u32]) -> Option<(i32, Vec<i32>)> {
        if places.len() < 2 {
            return None;
        }
        let Some(id) = self.list.ids.row(1) else {
            self.put_back_behind(places);
            return None;
        };
        let ids = places.iter().filter_map(|place| self.list.stream(*place)).map(|stream| stream.id);
        Some((id, ids.collect()))
    }

    /// The provider's answer to the batch itself comes on an id of its own, which is of no further use then.
    fn begin_batch(&mut self, id: i32) {
        self.list.ids.take_in_row(id, Owner::Batch(0));
        let due = self.after(self.settings.request_timeout);
        self.set_timer(due, Timer::Batch(id));
    }

    /// All but the first are in line again, as they were.
    fn put_back_behind(&mut self, places: &[u32]) {
        for place in places.iter().skip(1).rev() {
            self.list.put_back(*place);
        }
    }
}
