//! The fan-out of a tick to all clients with its item open.
//!
//! Costs an access to the item by its number, and for each stream a copy of the message into the client's connection, with the stream's id patched.
//! A client without capacity costs a test of a flag. The fold into the image is deferred if possible: see [`crate::unfolded`].

use tapeline_nanos::Nanos;
use tapeline_omm::domain::{OwnedState, ServicePart};
use tapeline_omm::role::Sent;
use tapeline_omm::role::provider::StreamHandle;
use tapeline_omm::rwf::{
    DataState, DataType, Domain, Header, MessageView, RefreshHeader, StreamState, flags,
};
use tapeline_omm::{Qos, State};
use tapeline_plant::cache::ItemKey;
use tapeline_plant::tick::{self, Kind, Tick};
use tapeline_plant::{ItemId, Seq};

use crate::connections::{Connections, SessionId};
use crate::feeds;
use crate::hub::Hub;
use crate::images::Folded;
use crate::interest::{ItemSlot, MOST_PERMISSION, StreamPhase};
use crate::request_handler::copy;
use crate::services;
use crate::session::PendingReply;
use crate::slow_clients::{SlowPolicy, offer};
use crate::status_texts::MISSED;
use crate::statuses::{is_final, status};
use crate::views::choose;

impl Hub {
    /// Takes the next tick of the plant's ring.
    pub fn tick(&mut self, now: Nanos, tick: &Tick<'_>, connections: &mut impl Connections) {
        self.now = now;
        self.counters.ticks += 1;
        let seq = tick.header.seq.0;
        let missing = seq.saturating_sub(self.next_seq);
        if missing > 0 && self.next_seq > 0 {
            self.missed(missing, connections);
        }
        self.pass(tick.header.seq);
        if tick.header.kind != Kind::Update || tick.header.flags.contains(tick::Flags::LAST) {
            // The next steps read images, or remove an item.
            self.fold_all(connections);
        }
        let is_of_feeds = self.shared.services.is_of_feeds(tick.header.service);
        if is_of_feeds && !self.shared.is_up {
            self.bring_up(now, connections);
        }
        if tick.header.item == ItemId(0) {
            self.counters.about_no_item += 1;
            if tick.header.kind != Kind::Status {
                return;
            }
            if !is_of_feeds {
                self.service_tick(tick, connections);
            } else if let Some(group) = self.shared.feeds.status(tick, !self.resync.takes_image()) {
                self.tell([ServicePart::Group(group)], connections);
            }
            return;
        }
        let Ok(message) = MessageView::parse(tick.body) else {
            self.counters.unusable += 1;
            return;
        };
        if tick.header.flags.contains(tick::Flags::LAST) {
            return self.number_ends(tick, &message, connections);
        }
        if !is_of_feeds && message.header().is_err() {
            // No client could read it. The bytes after the header are checked when the tick is folded into an image.
            self.counters.unusable += 1;
            return;
        }
        let known = self.shared.interest.of_number(tick.header.item, message.domain());
        let Some(place) = known.or_else(|| self.appear(tick, message.domain(), connections)) else {
            return;
        };
        let Some(item) = self.shared.interest.get_mut(place) else { return };
        if tick.header.channel != tick::POSTED {
            item.channel = tick.header.channel;
        }
        let is_unasked = item.upstream.as_ref().is_some_and(|upstream| !upstream.is_told());
        if is_unasked && self.shared.is_on_demand(place) {
            self.counters.unwanted += 1;
            self.shared.interest.forget_if_idle(place);
            return;
        }
        match tick.header.kind {
            Kind::Update => self.update(place, tick, connections),
            Kind::Refresh => self.refresh(place, tick, &message, connections),
            Kind::Status => self.item_status(place, tick.header.seq, tick.body, connections),
            // A kind of a later version of the plant.
            _ => self.counters.unusable += 1,
        }
    }

    /// Reports the feeds' service as up before its first tick, so that clients can request items that will appear.
    #[cold]
    pub fn bring_up(&mut self, now: Nanos, connections: &mut impl Connections) {
        self.now = now;
        if self.shared.services.feeds().is_some() && !self.shared.is_up {
            self.shared.is_up = true;
            self.tell([ServicePart::State(services::state(true, ""))], connections);
        }
    }

    /// Takes a tick that another reader made in place of ticks that this hub missed: the state of a feed or of a service, or an item's image as a
    /// refresh. Call before the first [`tick`](Self::tick), or after [`begin_anew`](Self::begin_anew), in any order.
    pub fn image(&mut self, now: Nanos, tick: &Tick<'_>, connections: &mut impl Connections) {
        // It belongs to another time than the ticks: the next sequence stays.
        let next_seq = std::mem::take(&mut self.next_seq);
        self.resync.is_image = true;
        self.tick(now, tick, connections);
        self.resync.is_image = false;
        self.next_seq = next_seq;
    }

    /// Returns the sequence of the next tick in the plant's sequence; 0 before the first.
    #[must_use]
    pub const fn next_seq(&self) -> Seq {
        Seq(self.next_seq)
    }

    /// Skips a tick that an image already contains. A tick outside the sequence changes nothing.
    pub const fn pass(&mut self, seq: Seq) {
        if !seq.is_outside() {
            self.next_seq = seq.0.saturating_add(1);
        }
    }

    /// Registers an item that the plant publishes for the first time; `None` if it is not served.
    #[cold]
    fn appear(
        &mut self,
        tick: &Tick<'_>,
        domain: Domain,
        connections: &mut impl Connections,
    ) -> Option<ItemSlot> {
        let service = tick.header.service;
        if self.shared.services.get(service).is_none() {
            self.counters.not_served += 1;
            return None;
        }
        let named = ItemKey { service, domain, name: tick.name.as_bytes() };
        let Ok(place) = self.shared.interest.appear(tick.header.item, &named) else {
            self.counters.unusable += 1;
            return None;
        };
        self.shared.note_source(place);
        if self.shared.services.is_of_feeds(service)
            && let Some(info) = self.shared.services.serves(domain)
        {
            self.tell([info], connections);
        }
        Some(place)
    }

    /// Handles missing ticks: all images are suspect.
    #[cold]
    pub(crate) fn missed(&mut self, missing: u64, connections: &mut impl Connections) {
        self.counters.missing = self.counters.missing.saturating_add(missing);
        self.fold_all(connections);
        // If a number was reassigned meanwhile, clients would get the updates of another item.
        self.shared.interest.forget_numbers();
        let groups = self.shared.feeds.doubt_all();
        self.tell(groups.into_iter().map(ServicePart::Group), connections);
        let changes = self.shared.services.doubt(MISSED);
        self.announce(Seq(self.next_seq), &changes, connections);
    }

    fn update(&mut self, place: ItemSlot, tick: &Tick<'_>, connections: &mut impl Connections) {
        if !self.shared.unfolded.has_room(tick.body.len()) {
            self.fold_all(connections);
        }
        let shared = &mut self.shared;
        let Some(item) = shared.interest.get_mut(place) else { return };
        if item.is_kept && item.is_of_feeds() {
            shared.unfolded.push(place, tick.header.seq, tick.body);
        } else if item.is_kept && shared.images.apply(item, tick.header.seq, tick.body).is_malformed {
            return self.unreadable(place, connections);
        }
        for open in &mut item.streams {
            let Some(session) = self.sessions.get_live(open.session) else { continue };
            if open.phase != StreamPhase::Current {
                match open.phase {
                    StreamPhase::ImageOwed => session.session_state.counters.conflated += 1,
                    StreamPhase::GapOwed => session.session_state.counters.dropped += 1,
                    _ => {}
                }
                continue;
            }
            let Some(bytes) = shared.views.cut(open.view, tick.header.seq, tick.body) else { continue };
            let stream = open.stream;
            let sent = offer(self.now, session, open, &shared.settings, connections, |provider, out| {
                provider.update(out, stream, bytes)
            });
            match sent {
                Sent::Queued => session.session_state.counters.updates += 1,
                Sent::Full if session.session_state.over.is_some() => self.over.push_back(open.session),
                Sent::Full => match session.session_state.slow {
                    SlowPolicy::DropWithGap { .. } => session.session_state.counters.dropped += 1,
                    _ => session.session_state.counters.conflated += 1,
                },
                Sent::NotOpen => open.missed = true,
                Sent::TooLong => {}
            }
        }
    }

    fn refresh(
        &mut self,
        place: ItemSlot,
        tick: &Tick<'_>,
        message: &MessageView<'_>,
        connections: &mut impl Connections,
    ) {
        let Ok(Header::Refresh(mut header)) = message.header() else {
            self.counters.unusable += 1;
            return;
        };
        if header.permission_data.is_some_and(|data| data.len() > MOST_PERMISSION) {
            self.counters.unusable += 1;
            return;
        }
        let Some(arrived) = self.cache_refresh(place, tick, &header, connections) else { return };
        let shared = &self.shared;
        let Some(item) = shared.interest.get(place) else { return };
        let group = feeds::group(item.channel);
        let doubt = Some(shared.feeds.state(item.channel)).filter(|state| state.data == DataState::SUSPECT);
        let doubt = doubt.map(OwnedState::from);
        if item.is_of_feeds() {
            (header.group_id, header.qos) = (&group, Some(Qos::REALTIME_TICK));
            // The same state as in an answer to a request.
            if let Some(doubt) = &doubt {
                header.state = State { stream: header.state.stream, ..doubt.view() };
            }
        }
        // An image with a final state is sent as an image, then as a final status.
        let last_word = Some(header.state).filter(is_final);
        if last_word.is_some() {
            header.state.stream = StreamState::OPEN;
        }
        let Offered { ready, closed, are_left } =
            self.offer_refresh(place, &header, message, &arrived, connections);
        for (id, stream) in ready {
            let Some(session) = self.sessions.get_mut(id) else { continue };
            if let Some(open) = self.shared.interest.stream_mut(id, stream) {
                open.phase = match open.phase {
                    StreamPhase::NoImage => StreamPhase::FirstImageOwed,
                    _ => StreamPhase::ImageOwed,
                };
            }
            session.session_state.owe(&session.provider, stream, PendingReply::Image);
            connections.with(id, |out| self.room(self.now, id, out));
        }
        closed.into_iter().for_each(|(id, stream)| self.shared.close(id, stream));
        if are_left && arrived.is_complete && arrived.folded.is_passed_by {
            // These clients requested the item in the middle of an image that is not cached.
            self.shared.await_item(self.now, place);
            self.shared.ask_again(place);
        }
        if arrived.folded.is_over_limit {
            self.say_no_room(place, connections);
        }
        if let Some(state) = last_word {
            self.last_word(place, &status(state), connections);
        }
    }

    /// Puts an image into the cache, and decides whether access is decided again. Returns `None` if there is nothing to send.
    fn cache_refresh(
        &mut self,
        place: ItemSlot,
        tick: &Tick<'_>,
        header: &RefreshHeader<'_>,
        connections: &mut impl Connections,
    ) -> Option<Arrived> {
        let shared = &mut self.shared;
        let item = shared.interest.get_mut(place)?;
        let folded = if item.is_kept {
            shared.images.apply(item, tick.header.seq, tick.body)
        } else {
            Folded::NOT_KEPT
        };
        if folded.is_malformed {
            self.unreadable(place, connections);
            return None;
        }
        let is_complete = header.flags.has(flags::refresh::REFRESH_COMPLETE);
        item.has_image = folded.is_whole && is_complete;
        // An image that the cache refused is not complete yet.
        if is_complete && (item.has_image || folded.is_passed_by) {
            item.set_due(Nanos(0));
        }
        if let Some(upstream) = item.upstream.as_mut().filter(|_| is_complete) {
            upstream.has_come();
        }
        let permission = header.permission_data.unwrap_or_default();
        // If the item's codes changed, access is decided again, as before a first image. A later part without codes leaves them unchanged.
        let stays =
            header.permission_data.is_none() && header.part.unwrap_or(0) > 0 && item.permission().is_some();
        let changes = !stays && item.permission() != Some(permission);
        let uses_codes = shared.gate.uses_codes;
        if changes {
            item.set_permission(permission);
        }
        let begins = folded.is_passed_by && header.part.unwrap_or(0) == 0;
        if begins && uses_codes {
            // No image will follow at which access could be decided.
            self.take_away_denied(place, connections);
        }
        // A client with an image from before a gap gets the new one when it has capacity.
        let is_asked_again = (self.resync.has_come(place) || uses_codes && changes) && !folded.is_passed_by;
        Some(Arrived { folded, is_complete, begins, is_asked_again })
    }

    /// Sends an image to the clients that have no image, or that get each image as it arrives.
    fn offer_refresh(
        &mut self,
        place: ItemSlot,
        header: &RefreshHeader<'_>,
        message: &MessageView<'_>,
        arrived: &Arrived,
        connections: &mut impl Connections,
    ) -> Offered {
        let shared = &mut self.shared;
        let mut offered = Offered::default();
        let Some(item) = shared.interest.get_mut(place) else { return offered };
        for open in &mut item.streams {
            let Some(session) = self.sessions.get_live(open.session) else { continue };
            match open.phase {
                StreamPhase::Current if arrived.is_asked_again => {
                    offered.ready.push((open.session, open.stream));
                    continue;
                }
                StreamPhase::FirstImageOwed | StreamPhase::ImageOwed | StreamPhase::GapOwed => continue,
                StreamPhase::NoImage if item.has_image => {
                    offered.ready.push((open.session, open.stream));
                    continue;
                }
                StreamPhase::NoImage if arrived.begins => open.phase = StreamPhase::Current,
                StreamPhase::NoImage => {
                    offered.are_left = true;
                    continue;
                }
                StreamPhase::Current => {}
            }
            let fids = shared.views.fids(open.view).filter(|_| header.container == DataType::FIELD_LIST);
            let stream = open.stream;
            let sent = offer(self.now, session, open, &shared.settings, connections, |provider, out| {
                let sent = provider.refresh(out, stream, header, &mut |room| match fids {
                    Some(fids) => choose(message.payload(), fids, room).map(|(len, _)| len),
                    None => copy(message.payload(), room),
                });
                sent.unwrap_or(Sent::TooLong)
            });
            match sent {
                Sent::Queued => {
                    session.session_state.counters.refreshes += 1;
                    if session.provider.stream_id(stream).is_none() {
                        offered.closed.push((open.session, stream));
                    }
                }
                Sent::Full if session.session_state.over.is_some() => self.over.push_back(open.session),
                _ => {}
            }
        }
        offered
    }
}

/// An image that arrived, and its effect on its item.
struct Arrived {
    folded: Folded,
    is_complete: bool,
    /// The first part of an image that is not cached.
    begins: bool,
    /// Clients that have an image get this one too: after a gap, or since the access to the item changed.
    is_asked_again: bool,
}

/// The streams for which there is more to do after an image was sent.
#[derive(Default)]
struct Offered {
    /// Those that get the image from the cache.
    ready: Vec<(SessionId, StreamHandle)>,
    /// Those that ended with this image.
    closed: Vec<(SessionId, StreamHandle)>,
    /// Some requested the item in the middle of an image that is not cached.
    are_left: bool,
}
