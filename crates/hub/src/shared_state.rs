//! The state that all sessions share: services, items and images, and demands for the sources.

use std::collections::VecDeque;

use tapeline_nanos::Nanos;
use tapeline_omm::State;
use tapeline_omm::domain::{OwnedState, ServiceEntry};
use tapeline_omm::role::provider::{Provider, StreamHandle};
use tapeline_omm::role::{Outbox, Sent};
use tapeline_omm::rwf::{DataState, Domain, Priority, RefreshHeader, RequestHeader, flags};
use tapeline_plant::cache::ItemKey;
use tapeline_plant::demand::{Demand, ItemName};

use crate::access::Gate;
use crate::demands::{Demands, Waiting};
use crate::feeds::{self, Feeds};
use crate::images::{Images, Label};
use crate::interest::{Interest, Item, ItemSlot, Open, StreamPhase};
use crate::overflow_budget::OverflowBudget;
use crate::posts::Receipts;
use crate::private::Private;
use crate::services::Services;
use crate::settings::Service;
use crate::unfolded::Unfolded;
use crate::upstream::{Telling, Upstream};
use crate::views::Views;
use crate::{SessionId, Settings};

/// Items of a service in the order of a time-out.
type TimeOuts = VecDeque<(Nanos, ItemSlot)>;

/// The part of the hub that belongs to no session.
#[derive(Debug)]
pub(crate) struct SharedState {
    pub(crate) settings: Settings,
    pub(crate) services: Services,
    pub(crate) interest: Interest,
    pub(crate) images: Images,
    pub(crate) unfolded: Unfolded,
    pub(crate) views: Views,
    pub(crate) feeds: Feeds,
    pub(crate) gate: Gate,
    pub(crate) demands: Demands,
    pub(crate) private: Private,
    pub(crate) receipts: Receipts,
    pub(crate) overflow: OverflowBudget,
    /// Awaited items by service, with the time of the status that nothing came.
    pub(crate) awaited: Vec<TimeOuts>,
    /// Items by service whose clients have got that status, with the time at which the streams are closed.
    pub(crate) closing: Vec<TimeOuts>,
    /// `true` if the feeds have published, and have not ended.
    pub(crate) is_up: bool,
    /// Number of open streams of all sessions, as of the last step of each.
    pub(crate) streams: usize,
}

impl SharedState {
    /// Creates the state with services that are down.
    pub(crate) fn new(settings: Settings) -> Self {
        let services = Services::new(&settings);
        Self {
            interest: Interest::new(settings.max_items),
            images: Images::new(&settings, services.iter().map(|service| service.id)),
            unfolded: Unfolded::new(),
            views: Views::new(settings.max_views),
            feeds: Feeds::default(),
            gate: Gate::new(settings.access.clone(), settings.max_checks),
            demands: Demands::new(settings.max_demands, settings.demand_bytes),
            private: Private::new(settings.max_private),
            receipts: Receipts::new(settings.max_receipts),
            overflow: OverflowBudget::new(settings.waiting_bytes, settings.image_bytes),
            awaited: services.iter().map(|_| VecDeque::new()).collect(),
            closing: services.iter().map(|_| VecDeque::new()).collect(),
            services,
            is_up: false,
            streams: 0,
            settings,
        }
    }

    /// Creates the upstream state of a provider's item.
    #[inline]
    pub(crate) fn note_source(&mut self, place: ItemSlot) {
        let Some(item) = self.interest.get_mut(place).filter(|item| item.upstream.is_none()) else { return };
        if !self.services.is_of_feeds(item.service) {
            let service = self.services.get(item.service);
            let is_shared = service.is_some_and(|service| service.is_shared);
            item.upstream = Some(Box::new(Upstream::new(is_shared)));
            item.is_kept = service.is_some_and(|service| service.is_cached);
        }
    }

    /// Sends the image of its item to a stream, as of the last tick: in one or more messages; those without capacity are queued. Closes the stream
    /// of a snapshot. [`Sent::Full`]: nothing was sent.
    pub(crate) fn send_image(
        &mut self,
        session: SessionId,
        stream: StreamHandle,
        provider: &mut Provider,
        (out, backlog): (&mut dyn Outbox, &mut dyn Outbox),
    ) -> Given {
        let mut given = Given::default();
        let Some((item, open)) = self.interest.of_stream(session, stream) else { return given };
        if !item.has_image {
            let Some(place) = self.interest.place_of(session, stream) else { return given };
            // Its parts are still arriving, or it does not exist yet, or is not cached.
            self.stand(session, stream, StreamPhase::NoImage);
            self.ask_again(place);
            return given;
        }
        let group = feeds::group(item.channel);
        let label =
            item.is_of_feeds().then(|| Label { state: self.feeds.state(item.channel), group: &group });
        let fids = self.views.fids(open.view);
        let silence = self.services.silence(item.service);
        let sent = self.images.give(item, fids, label, &mut |header, write| {
            let doubted = silence.filter(|_| header.state.data == DataState::OK).map(|silence| {
                let state = State { stream: header.state.stream, ..silence };
                RefreshHeader { state, ..*header }
            });
            let header = doubted.as_ref().unwrap_or(header);
            let mut send = |provider: &mut Provider, out: &mut dyn Outbox| {
                // The only possible error is the length.
                provider.refresh(out, stream, header, write).unwrap_or(Sent::TooLong)
            };
            let mut sent = Sent::Full;
            if !given.is_behind {
                sent = send(provider, out);
            }
            if sent == Sent::Full && given.messages > 0 {
                given.is_behind = true;
                sent = send(provider, backlog);
            }
            given.messages += u64::from(sent.is_queued());
            sent
        });
        given.sent = sent.unwrap_or(Sent::NotOpen);
        if given.sent.is_queued() {
            self.stand(session, stream, StreamPhase::Current);
        }
        if provider.stream_id(stream).is_none() {
            self.close(session, stream);
        }
        given
    }

    /// Returns `true` if the image of a stream's item has several messages, which may exceed the capacity.
    pub(crate) fn is_in_parts(&self, session: SessionId, stream: StreamHandle) -> bool {
        let item = self.interest.of_stream(session, stream).map(|(item, _)| item);
        item.is_some_and(|item| item.has_image && self.images.is_in_parts(item))
    }

    /// Asks the sources of a session's private streams to pause, or to resume with an image; streams that the client paused itself stay paused.
    /// Returns `true` if all were asked.
    pub(crate) fn hold(&mut self, session: SessionId, provider: &Provider, is_held: bool) -> bool {
        let own = flags::request::STREAMING | flags::request::PRIVATE_STREAM;
        let flags = if is_held { own | flags::request::PAUSE | flags::request::NO_REFRESH } else { own };
        let mut are_all = true;
        for stream in self.private.of(session) {
            let ticket = self.private.ticket(session, stream).filter(|_| !provider.is_paused(stream));
            let request = provider.domain(stream).zip(provider.key(stream));
            let Some((ticket, (domain, key))) = ticket.zip(request) else { continue };
            let header = RequestHeader { flags, ..RequestHeader::new(domain, 0, key) };
            // The longest name, and its header.
            let mut room = [0; 512];
            let Ok(len) = header.encode(&mut room) else { continue };
            let message = room.get(..len).unwrap_or_default().into();
            are_all &= self.demands.message(Demand::Private { ticket, message }).is_ok();
        }
        are_all
    }

    fn stand(&mut self, session: SessionId, stream: StreamHandle, phase: StreamPhase) {
        if let Some(open) = self.interest.stream_mut(session, stream) {
            (open.phase, open.missed, open.is_told) = (phase, false, false);
        }
    }

    /// Closes a stream.
    pub(crate) fn close(&mut self, session: SessionId, stream: StreamHandle) {
        if let Some((place, closed)) = self.interest.close(session, stream) {
            self.views.release(closed.view);
            self.tell_source(place);
        }
    }

    /// Closes a private stream, also at its source.
    pub(crate) fn close_private(&mut self, session: SessionId, stream: StreamHandle) {
        if let Some(ticket) = self.private.close(session, stream) {
            self.demands.last_word(Demand::ClosePrivate(ticket));
        }
    }

    /// Returns the state of an item's image; `None` without one.
    pub(crate) fn state(&self, place: ItemSlot) -> Option<State<'_>> {
        let item = self.interest.get(place)?;
        if item.is_of_feeds() {
            let service = self.services.directory().service(item.service).and_then(ServiceEntry::state);
            let down = service.and_then(|state| state.status.as_ref()).map(OwnedState::view);
            return Some(down.unwrap_or_else(|| self.feeds.state(item.channel)));
        }
        let own = self.images.label(item)?.state;
        Some(self.services.silence(item.service).filter(|_| own.data == DataState::OK).unwrap_or(own))
    }

    /// Returns `true` if the data of an item's image is suspect.
    pub(crate) fn is_suspect(&self, place: ItemSlot) -> bool {
        let Some(item) = self.interest.get(place) else { return false };
        let of_feed = item.is_of_feeds().then(|| self.feeds.state(item.channel));
        let state = of_feed.or_else(|| self.images.label(item).map(|label| label.state));
        state.is_some_and(|state| state.data == DataState::SUSPECT)
            || self.services.silence(item.service).is_some()
    }

    /// Changes the priority of a stream.
    pub(crate) fn change_priority(&mut self, session: SessionId, stream: StreamHandle, priority: Priority) {
        let Some(place) = self.interest.place_of(session, stream) else { return };
        let Some(open) = self.interest.stream_mut(session, stream) else { return };
        let before = std::mem::replace(&mut open.priority, priority);
        if let Some(upstream) = self.interest.get_mut(place).and_then(|item| item.upstream.as_mut()) {
            upstream.wishes.add(priority);
            upstream.wishes.remove(before);
        }
        self.tell_source(place);
    }

    /// Requests a new image of an item without one from its source, unless one is expected.
    pub(crate) fn ask_again(&mut self, place: ItemSlot) {
        let item = self.interest.get_mut(place);
        if let Some(upstream) = item.and_then(|item| item.upstream.as_mut()) {
            upstream.ask_again();
            self.tell_source(place);
        }
    }

    /// Queues a demand for an item if its source needs one.
    #[inline]
    pub(crate) fn tell_source(&mut self, place: ItemSlot) {
        let item = self.interest.get_mut(place);
        if let Some(upstream) = item.and_then(|item| item.upstream.as_mut())
            && upstream.has_news()
            && !upstream.is_queued
        {
            upstream.is_queued = true;
            self.demands.item(place);
        }
    }

    /// Returns the next demand for the sources.
    pub(crate) fn next_demand(&mut self) -> Option<Demand> {
        loop {
            let place = match self.demands.pop()? {
                Waiting::Message(demand) => return Some(demand),
                Waiting::Item(place) => place,
            };
            let Some(item) = self.interest.get_mut(place) else { continue };
            let Some(upstream) = item.upstream.as_mut() else { continue };
            upstream.is_queued = false;
            let telling = upstream.next();
            let demand = telling.zip(name_of(item)).map(|(telling, item)| match telling {
                Telling::Open(priority) => Demand::Open { item, priority },
                Telling::Priority(priority) => Demand::Priority { item, priority },
                Telling::Refresh => Demand::Refresh(item),
                Telling::Pause => Demand::Pause(item),
                Telling::Resume => Demand::Resume(item),
                Telling::Close => Demand::Close(item),
            });
            if telling == Some(Telling::Close) && self.is_on_demand(place) {
                // The image is no longer updated.
                self.forget_image(place);
            }
            self.tell_source(place);
            self.interest.forget_if_idle(place);
            if demand.is_some() {
                return demand;
            }
        }
    }

    /// Returns `true` if an item exists only while this hub demands it.
    pub(crate) fn is_on_demand(&self, place: ItemSlot) -> bool {
        let item = self.interest.get(place);
        item.and_then(|item| self.services.get(item.service))
            .is_some_and(|service| service.on_demand && !service.is_shared)
    }

    /// Removes the image of an item.
    pub(crate) fn forget_image(&mut self, place: ItemSlot) {
        if let Some(item) = self.interest.get_mut(place) {
            item.has_image = false;
            self.images.remove(item);
        }
    }

    /// Starts the time-out of an awaited item.
    pub(crate) fn await_item(&mut self, now: Nanos, place: ItemSlot) {
        let Some(item) = self.interest.get_mut(place).filter(|item| item.due() == Nanos(0)) else { return };
        let service = self.services.find(item.service);
        let Some((at, service)) = service.filter(|(_, service)| service.request_timeout_ms > 0) else {
            return;
        };
        let due = after(now, service.request_timeout_ms);
        item.set_due(due);
        wait(&mut self.awaited[at], &self.interest, (due, place), Item::due);
    }

    /// Returns the next item that has not appeared in time, with its service.
    pub(crate) fn next_late(&mut self, now: Nanos) -> Option<(ItemSlot, Service)> {
        for (awaited, service) in self.awaited.iter_mut().zip(self.services.iter()) {
            while let Some((due, place)) = awaited.front().copied().filter(|(due, _)| *due <= now) {
                awaited.pop_front();
                if let Some(item) = self.interest.get_mut(place).filter(|item| item.due() == due) {
                    item.set_due(Nanos(0));
                    if !item.streams.iter().all(Open::has_heard) {
                        return Some((place, service.clone()));
                    }
                }
            }
        }
        None
    }

    /// Records that the clients of an awaited item have got the status that nothing came, and starts the time after which they are closed.
    pub(crate) fn close_in_time(&mut self, now: Nanos, place: ItemSlot) {
        let Some(item) = self.interest.get_mut(place) else { return };
        for open in item.streams.iter_mut().filter(|open| open.phase == StreamPhase::NoImage) {
            open.is_told = true;
        }
        let service = self.services.find(item.service).filter(|_| item.closes() == Nanos(0));
        let Some((at, service)) = service.filter(|(_, service)| service.wait_timeout_ms > 0) else { return };
        let closes = after(now, service.wait_timeout_ms.saturating_sub(service.request_timeout_ms));
        item.set_closes(closes);
        wait(&mut self.closing[at], &self.interest, (closes, place), Item::closes);
    }

    /// Returns the next item whose clients have waited for the maximum time.
    pub(crate) fn next_to_close(&mut self, now: Nanos) -> Option<ItemSlot> {
        for closing in &mut self.closing {
            while let Some((closes, place)) = closing.front().copied().filter(|(closes, _)| *closes <= now) {
                closing.pop_front();
                if let Some(item) = self.interest.get_mut(place).filter(|item| item.closes() == closes) {
                    item.set_closes(Nanos(0));
                    if item.streams.iter().any(Open::waits_told) {
                        return Some(place);
                    }
                }
            }
        }
        None
    }

    /// Returns the item of a name in demands and answers.
    pub(crate) fn find(&self, item: &ItemName) -> Option<ItemSlot> {
        self.interest.find(&ItemKey {
            service: item.service,
            domain: item.domain,
            name: item.name.as_bytes(),
        })
    }
}

/// Returns the name of an item at its source; `None` if it is not text, which no source has.
pub(crate) fn name_of(item: &Item) -> Option<ItemName> {
    item_name(item.service, item.domain, &item.name)
}

pub(crate) fn item_name(service: u16, domain: Domain, name: &[u8]) -> Option<ItemName> {
    Some(ItemName { service, domain, name: std::str::from_utf8(name).ok()?.into() })
}

/// The result of sending an image.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given {
    /// The result of the last message.
    pub(crate) sent: Sent,
    /// Number of sent or queued messages.
    pub(crate) messages: u64,
    /// `true` if some messages were queued.
    pub(crate) is_behind: bool,
}

impl Default for Given {
    fn default() -> Self {
        Self { sent: Sent::NotOpen, messages: 0, is_behind: false }
    }
}

/// Returns the time in so many milliseconds; never 0, which stands for no time.
fn after(now: Nanos, ms: u64) -> Nanos {
    Nanos(now.0.saturating_add(ms.saturating_mul(1_000_000)).max(1))
}

/// Queues an item for its time-out. If there are many, those whose item no longer has that time are removed.
fn wait(queue: &mut TimeOuts, interest: &Interest, entry: (Nanos, ItemSlot), time: fn(&Item) -> Nanos) {
    if queue.len() > 2 * interest.len() + MOST_CLOSED {
        queue.retain(|(at, place)| interest.get(*place).is_some_and(|item| time(item) == *at));
    }
    queue.push_back(entry);
}

/// Number of entries above which those of items no longer awaited are removed.
const MOST_CLOSED: usize = 1024;
