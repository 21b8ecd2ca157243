//! Output for items: requests, batches, reissues, closes, each when there is space.

use super::losses::Timer;
use super::services::Readiness;
use super::{Call, Consumer, LinkProgress};
use crate::domain::{List, RequestPayload, View};
use crate::role::watchlist::{Image, Owner, Phase, StreamKey, ViewOf};
use crate::role::{CLOSED, Outbox, SUSPECT, Sent};
use crate::rwf::{Attributes, CloseHeader, Flags, Key, Priority, RequestHeader, StateCode, flags};
use crate::{Refused, State};

/// Request to the provider of a stream, for all items on it together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    priority: Priority,
    view: Option<Box<ViewOf>>,
    is_paused: bool,
    /// `true` if an item has no image yet.
    is_image_wanted: bool,
}

/// Change of an open stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) asked: Asked,
    pub(super) flags: Flags,
    is_image_wanted: bool,
    /// `true` if the next image is for all items on the stream.
    is_for_all: bool,
}

/// Result of processing a queued stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Done {
    Yes,
    /// There is no space: try later.
    Full,
}

impl Consumer {
    /// Sends pending output, then the output of queued streams, while there is space.
    pub(super) fn send_all(&mut self, call: &mut Call<'_>) {
        if !self.owed.is_empty() && !self.owed.send_on(call.out) {
            return;
        }
        // Streams wait until items can be requested.
        while self.connection.link == LinkProgress::Ready
            && !self.list.is_idle()
            && let Some(place) = self.list.next_in_line()
        {
            if self.send(place, call) == Done::Full {
                self.list.put_back(place);
                return;
            }
        }
    }

    fn send(&mut self, place: u32, call: &mut Call<'_>) -> Done {
        let Some(stream) = self.list.streams.get(place) else { return Done::Yes };
        if stream.id != 0 && (stream.is_forsaken() || stream.is_late) {
            if stream.is_forsaken()
                && let Some(done) = self.close_batch(place, call.out)
            {
                return done;
            }
            let Some(stream) = self.list.streams.get(place) else { return Done::Yes };
            let close = CloseHeader::new(stream.key.domain, stream.id);
            if !matches!(call.out.encode(&mut |room| close.encode(room)), Ok(Sent::Queued)) {
                return Done::Full;
            }
            self.answered(place);
            self.list.release_id(place);
            self.forget_asking(place);
        }
        let Some(stream) = self.list.streams.get(place) else { return Done::Yes };
        if stream.is_forsaken() {
            self.list.remove(place);
            return Done::Yes;
        }
        match stream.phase {
            Phase::Waiting => self.request(place, call),
            Phase::Open => self.reissue_stream(place, call.out),
            Phase::Asked => {
                // An item that joins before the answer receives it too. Other changes are sent after the answer.
                if !stream.is_in_parts {
                    self.list.change_items(place, |_, item| item.image = item.image.max(Image::Asked));
                }
                Done::Yes
            }
        }
    }

    /// Discards the request that was sent.
    fn forget_asking(&mut self, place: u32) {
        if let Some(stream) = self.list.streams.get_mut(place) {
            (stream.phase, stream.due) = (Phase::Waiting, None);
            (stream.is_late, stream.is_in_parts) = (false, false);
        }
        self.list.change_items(place, |_, item| item.image = Image::Wanted);
    }

    /// Requests a stream, if its service can serve it and its wait is over.
    fn request(&mut self, place: u32, call: &mut Call<'_>) -> Done {
        let Some(stream) = self.list.streams.get(place) else { return Done::Yes };
        if stream.due.is_some() {
            return Done::Yes;
        }
        let (service, domain, batch) = (stream.key.service, stream.key.domain, stream.batch);
        let id = match self.services.readiness(service, domain, self.settings.obeys_open_window, 0) {
            Readiness::Ready(id) => id,
            Readiness::WindowFull => {
                self.block(place, service);
                return Done::Yes;
            }
            Readiness::NotYet(text) => {
                self.block(place, service);
                self.tell_state(place, &State { text, ..SUSPECT }, call);
                return Done::Yes;
            }
        };
        if batch != 0 && self.connection.features.batches && !stream.key.is_special() {
            return self.request_batch(place, id, call.out);
        }
        let stream_id = self.list.take_id(place);
        let asked = self.asked(place);
        let sent = match self.list.streams.get(place) {
            Some(stream) => {
                let alone = RequestPayload::default();
                send_request(&stream.key, (stream_id, id), &asked, Flags::NONE, alone, call.out)
            }
            None => Ok(Sent::Queued),
        };
        match sent {
            Ok(Sent::Queued) => self.is_asked(place, id, asked),
            Ok(Sent::Full) => {
                self.list.release_id(place);
                self.list.ids.take_back(stream_id);
                return Done::Full;
            }
            // With its view, the request is longer than any message.
            _ => {
                let text = b"The request is too long to be sent.";
                let state = State { code: StateCode::USAGE_ERROR, text, ..CLOSED };
                self.finish_with_state(place, &state, call);
            }
        }
        Done::Yes
    }

    fn block(&mut self, place: u32, service: u32) {
        let turn = self.list.streams.turn(place);
        if let Some(stream) = self.list.streams.get_mut(place)
            && !std::mem::replace(&mut stream.is_blocked, true)
        {
            let (list, most) = (&self.list, self.list.streams.len());
            self.services
                .block(service, (place, turn), most, |place, turn| list.streams.is_current(place, turn));
        }
    }

    /// Records that the stream was requested under its id.
    fn is_asked(&mut self, place: u32, service_id: u16, asked: Asked) {
        self.counters.requests += 1;
        let due = self.after(self.settings.request_timeout);
        let Some(stream) = self.list.streams.get_mut(place) else { return };
        (stream.phase, stream.service_id) = (Phase::Asked, service_id);
        (stream.priority, stream.view, stream.is_paused) = (asked.priority, asked.view, false);
        stream.is_reissued = false;
        stream.is_counted = true;
        let service = stream.key.service;
        self.services.count_request(service);
        self.list.change_items(place, |_, item| item.image = Image::Asked);
        self.set_due(place, due);
    }

    /// Requests a stream, and the streams queued behind it that were opened with it, in one message. The batch has one
    /// id, and its items have the ids that follow.
    fn request_batch(&mut self, first: u32, service_id: u16, out: &mut dyn Outbox) -> Done {
        let Some(head) = self.list.streams.get(first) else { return Done::Yes };
        let (batch, service, domain) = (head.batch, head.key.service, head.key.domain);
        let asked = self.asked(first);
        let places = self.those_behind(first, |consumer, place, before| {
            let list = &consumer.list;
            let fits = list.streams.get(place).is_some_and(|stream| {
                stream.batch == batch
                    && stream.phase == Phase::Waiting
                    && stream.id == 0
                    && stream.due.is_none()
                    && !stream.is_forsaken()
                    && list.streams.get(first).is_some_and(|head| head.key.is_like(&stream.key))
                    && consumer.asked(place) == asked
            });
            // The streams behind count against the service's window before they are requested.
            let obeys_window = consumer.settings.obeys_open_window;
            let ready = consumer.services.readiness(service, domain, obeys_window, before);
            fits && ready == Readiness::Ready(service_id)
        });
        let Some(batch_id) = self.list.ids.row(places.len() + 1) else {
            // The ids in use are so scattered that no row is free: request the items one by one.
            return self.split_batch(&places);
        };
        let sent = self.list.streams.get(first).map(|head| {
            let streams = places.iter().filter_map(|place| self.list.streams.get(*place));
            let names: Vec<&[u8]> = streams.map(|stream| &*stream.key.name).collect();
            let batch = RequestPayload { items: Some(List::Given(&names)), ..RequestPayload::default() };
            send_request(&head.key, (batch_id, service_id), &asked, Flags::NONE, batch, out)
        });
        match sent {
            Some(Ok(Sent::Queued)) => {}
            Some(Ok(Sent::Full)) => {
                self.put_back_behind(&places);
                return Done::Full;
            }
            _ => return self.split_batch(&places),
        }
        let count = u32::try_from(places.len()).unwrap_or(u32::MAX);
        self.list.ids.take_in_row(batch_id, Owner::Batch(count));
        let due = self.after(self.settings.request_timeout);
        self.set_timer(due, Timer::Batch(batch_id));
        for (place, id) in places.into_iter().zip(batch_id.saturating_add(1)..) {
            self.list.ids.take_in_row(id, Owner::Stream(place));
            if let Some(stream) = self.list.streams.get_mut(place) {
                stream.id = id;
            }
            self.is_asked(place, service_id, asked.clone());
        }
        Done::Yes
    }

    /// Splits a planned batch into single requests.
    fn split_batch(&mut self, places: &[u32]) -> Done {
        for place in places.iter().rev() {
            if let Some(stream) = self.list.streams.get_mut(*place) {
                stream.batch = 0;
            }
            self.list.put_back(*place);
        }
        Done::Yes
    }

    /// Sends the changes of an open stream to the provider, if there are any.
    fn reissue_stream(&mut self, place: u32, out: &mut dyn Outbox) -> Done {
        let Some(change) = self.change(place) else { return Done::Yes };
        if let Some(done) = self.reissue_batch(place, &change, out) {
            return done;
        }
        let Some(stream) = self.list.streams.get(place) else { return Done::Yes };
        let (at, alone) = ((stream.id, stream.service_id), RequestPayload::default());
        let sent = send_request(&stream.key, at, &change.asked, change.flags, alone, out);
        if sent == Ok(Sent::Full) {
            return Done::Full;
        }
        self.has_changed(place, &change);
        Done::Yes
    }

    /// Returns the changes of an open stream, if there are any.
    pub(super) fn change(&self, place: u32) -> Option<Change> {
        let asked = self.asked(place);
        let stream = self.list.streams.get(place)?;
        // An image in transit belongs to the items that requested it; later items request theirs after it.
        let is_image_wanted = asked.is_image_wanted && !stream.is_in_parts;
        let is_view_new = asked.view != stream.view;
        let resumes = stream.is_paused && !asked.is_paused;
        let is_changed = is_view_new || asked.is_paused != stream.is_paused || stream.is_reissued;
        if !is_image_wanted && !is_changed && !stream.wants_image {
            return None;
        }
        let is_for_all = stream.wants_image || is_view_new || resumes;
        let wants_image = is_image_wanted || is_for_all;
        let mut flags = if wants_image { Flags::NONE } else { flags::request::NO_REFRESH };
        if asked.is_paused {
            flags |= flags::request::PAUSE;
        }
        Some(Change { asked, flags, is_image_wanted, is_for_all })
    }

    /// Records that a change was sent to the provider.
    pub(super) fn has_changed(&mut self, place: u32, change: &Change) {
        let due = self.after(self.settings.request_timeout);
        let asked = &change.asked;
        if let Some(stream) = self.list.streams.get_mut(place) {
            (stream.priority, stream.is_paused) = (asked.priority, asked.is_paused);
            stream.view.clone_from(&asked.view);
            (stream.is_reissued, stream.wants_image) = (false, false);
            stream.image_is_for_all |= change.is_for_all;
        }
        if change.is_image_wanted {
            self.list.change_items(place, |_, item| {
                if item.image == Image::Wanted {
                    item.image = Image::Asked;
                }
            });
            self.set_due(place, due);
        }
    }

    /// Returns the combined request of all items of a stream, as far as the provider supports it.
    fn asked(&self, place: u32) -> Asked {
        let features = self.connection.features;
        let mut priority = Priority { class: 0, count: 0 };
        let (mut all_paused, mut is_image_wanted) = (true, false);
        let mut views = Vec::new();
        for (_, item) in self.list.items(place) {
            // The highest class counts, with the sum of its counts.
            match item.priority.class.cmp(&priority.class) {
                std::cmp::Ordering::Greater => priority = item.priority,
                std::cmp::Ordering::Equal => {
                    priority.count = priority.count.saturating_add(item.priority.count);
                }
                std::cmp::Ordering::Less => {}
            }
            all_paused &= item.is_paused;
            is_image_wanted |= item.image == Image::Wanted;
            if features.views {
                views.push(item.view.as_deref());
            }
        }
        Asked {
            priority,
            view: union(&views),
            is_paused: all_paused && features.pauses_items,
            is_image_wanted,
        }
    }
}

/// Returns all fields of all views; `None`, which is every field, if one has no view or they are of different kinds.
fn union(views: &[Option<&ViewOf>]) -> Option<Box<ViewOf>> {
    let (first, others) = views.split_first()?;
    let mut all = (*first)?.clone();
    for view in others {
        match (&mut all, (*view)?) {
            (ViewOf::Fids(all), ViewOf::Fids(more)) => *all = joined(all, more),
            (ViewOf::Names(all), ViewOf::Names(more)) => *all = joined(all, more),
            _ => return None,
        }
    }
    Some(Box::new(all))
}

/// Returns `all`, followed by the new entries of `more`.
fn joined<T: Clone + Ord>(all: &[T], more: &[T]) -> Box<[T]> {
    let seen: std::collections::BTreeSet<_> = all.iter().collect();
    let new = more.iter().filter(|one| !seen.contains(one));
    all.iter().chain(new).cloned().collect()
}

fn header<'a>(
    key: &'a StreamKey,
    (id, service_id): (i32, u16),
    asked: &Asked,
    flags: Flags,
) -> RequestHeader<'a> {
    let more = key.more.as_deref();
    let attributes = more.and_then(|more| more.attributes.as_ref());
    let wire_key = Key {
        service_id: Some(service_id),
        name: Some(&*key.name),
        name_type: key.name_type,
        filter: more.and_then(|more| more.filter),
        identifier: more.and_then(|more| more.identifier),
        attributes: attributes.map(|(container, data)| Attributes { container: *container, data }),
    };
    let mut header = RequestHeader::new(key.domain, id, wire_key);
    header.flags = flags;
    for (flag, is_set) in [
        (flags::request::STREAMING, key.is_streaming),
        (flags::request::PRIVATE_STREAM, key.is_private),
        (flags::request::MSG_KEY_IN_UPDATES, key.key_in_updates),
    ] {
        if is_set {
            header.flags |= flag;
        }
    }
    // No priority for a private stream, as in the vendor's library and as its providers expect: the stream is not
    // shared, so there is nothing to precede.
    header.priority = (!key.is_private).then_some(asked.priority);
    (header.qos, header.worst_qos) = (key.qos, key.worst_qos);
    header
}

/// Sends a request on the stream and at the service `at`. A `batch` names items or streams, in place of the key's name.
pub(super) fn send_request(
    key: &StreamKey,
    at: (i32, u16),
    asked: &Asked,
    flags: Flags,
    batch: RequestPayload<'_>,
    out: &mut dyn Outbox,
) -> Result<Sent, Refused> {
    let mut header = header(key, at, asked, flags);
    let is_batch = batch.items.is_some() || batch.streams.is_some();
    if is_batch {
        header.key.name = None;
    }
    let data_streams = key.more.as_deref().and_then(|more| more.data_streams);
    let view_names: Vec<&[u8]> = match asked.view.as_deref() {
        Some(ViewOf::Names(names)) => names.iter().map(|name| &**name).collect(),
        _ => Vec::new(),
    };
    let view = asked.view.as_deref().map(|view| match view {
        ViewOf::Fids(fids) => View::Fids(List::Given(fids)),
        ViewOf::Names(_) => View::Names(List::Given(&view_names)),
    });
    if view.is_none() && data_streams.is_none() && !is_batch {
        return out.encode(&mut |room| header.encode(room));
    }
    let payload = RequestPayload { view, data_streams, ..batch };
    payload.mark(&mut header);
    out.encode(&mut |room| header.encode_with(room, |room| payload.encode(room)))
}
