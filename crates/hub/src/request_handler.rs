//! The handling of a client's requests.

use std::collections::VecDeque;

use tapeline_nanos::Nanos;
use tapeline_omm::domain::{RequestPayload, View};
use tapeline_omm::role::provider::{
    Provider, ProviderApplication, ProviderEvent, RequestedItem, StreamHandle,
};
use tapeline_omm::role::{Outbox, Sent};
use tapeline_omm::rwf::{Flags, Priority, RequestHeader, StateCode, StreamState, flags};
use tapeline_omm::{Fid, Refused, State};
use tapeline_plant::ItemId;
use tapeline_plant::cache::ItemKey;
use tapeline_plant::demand::Demand;

use crate::backlog::Backlog;
use crate::demands::Full;
use crate::event::{End, HubEvent, TooMuch};
use crate::interest::{Item, ItemSlot, Open, StreamPhase};
use crate::session::{PendingReply, Refusal, SessionState};
use crate::shared_state::SharedState;
use crate::status_texts::{
    IMAGE_TOO_LONG, ITEM_SUSPECT, NAME_NOT_TEXT, NO_IMAGE_YET, NO_ITEM, NO_NAME, NO_SERVICE, OPEN_TOO_OFTEN,
    SERVICE_DOWN, TOO_MANY_ITEMS, TOO_MANY_PRIVATE, TOO_MANY_STREAMS, UPDATES_DROPPED,
};
use crate::statuses::{is_final, status, suspect};
use crate::views::{MOST_FIDS, ViewId};
use crate::{SessionId, Unknown};

/// A client during the handling of one input.
pub(crate) struct RequestHandler<'a> {
    pub(crate) id: SessionId,
    pub(crate) now: Nanos,
    pub(crate) shared: &'a mut SharedState,
    pub(crate) session_state: &'a mut SessionState,
    pub(crate) notes: &'a mut VecDeque<HubEvent>,
    /// The view of the message in progress, which counts as one user: computed once for any number of items.
    view: Option<ViewId>,
}

impl ProviderApplication for RequestHandler<'_> {
    fn event(&mut self, provider: &mut Provider, out: &mut dyn Outbox, event: ProviderEvent<'_>) {
        match event {
            ProviderEvent::Login { request, is_reissue } => self.login(provider, out, &request, is_reissue),
            ProviderEvent::Directory { stream, .. } => {
                // A service whose parts came in one message each also fits in one message.
                let _ = provider.directory(out, stream, self.shared.services.directory());
            }
            ProviderEvent::Dictionary { stream, .. } => {
                let _ = provider.dictionary(out, stream, &self.shared.settings.dictionary);
            }
            ProviderEvent::Open { stream, request } => self.open(provider, stream, &request),
            ProviderEvent::Reissue { stream, request } => self.reissue(provider, stream, &request),
            ProviderEvent::Closed { stream } => match self.shared.private.close(self.id, stream) {
                Some(ticket) => self.shared.demands.last_word(Demand::ClosePrivate(ticket)),
                None => self.shared.close(self.id, stream),
            },
            ProviderEvent::Post { stream, header, message, receipt } => {
                self.post(provider, out, stream, (&header, &message), receipt);
            }
            ProviderEvent::Generic { stream, message, .. } => self.generic(stream, &message),
            ProviderEvent::Standing { takes_over: true } => self.take_over(provider),
            ProviderEvent::RoundTrip { ns } => {
                self.session_state.round_trip_ns = ns;
                self.session_state.counters.round_trips += 1;
            }
            _ => {}
        }
    }
}

impl<'a> RequestHandler<'a> {
    pub(crate) const fn new(
        id: SessionId,
        now: Nanos,
        shared: &'a mut SharedState,
        session_state: &'a mut SessionState,
        notes: &'a mut VecDeque<HubEvent>,
    ) -> Self {
        Self { id, now, shared, session_state, notes, view: None }
    }

    /// Ends the handling of a message.
    pub(crate) fn done(&mut self) {
        if let Some(view) = self.view.take() {
            self.shared.views.release(view);
        }
    }

    /// Returns the view of a request, and adds a user to it.
    fn view_of(&mut self, request: &RequestedItem<'_>) -> ViewId {
        let views = &mut self.shared.views;
        let view =
            *self.view.get_or_insert_with(|| wanted(request).map_or(ViewId::ALL, |fids| views.take(fids)));
        views.share(view);
        view
    }

    fn open(&mut self, provider: &Provider, stream: StreamHandle, request: &RequestedItem<'_>) {
        self.session_state.counters.requests += 1;
        match self.admit(stream, request) {
            Ok(Some(owed)) => self.session_state.owe(provider, stream, owed),
            Ok(None) => {}
            Err(refusal) => {
                self.session_state.counters.refused += 1;
                self.note_refused(request, refusal);
                self.session_state.owe(provider, stream, PendingReply::Closed(refusal));
            }
        }
    }

    /// Opens an item for a request; returns the pending reply of its stream.
    fn admit(
        &mut self,
        stream: StreamHandle,
        request: &RequestedItem<'_>,
    ) -> Result<Option<PendingReply>, Refusal> {
        let shared = &mut *self.shared;
        let name = request.key.name.unwrap_or_default();
        let Some(service) = request.key.service_id.and_then(|id| shared.services.get(id)) else {
            return Err(Refusal::closed(StateCode::SOURCE_UNKNOWN, NO_SERVICE));
        };
        let named = ItemKey { service: service.id, domain: request.domain, name };
        let (is_of_feeds, can_wait) =
            (shared.services.is_of_feeds(service.id), service.unknown == Unknown::Wait);
        let is_down = if is_of_feeds { !shared.is_up } else { !shared.services.is_up(service.id) };
        if request.is_private() && !is_of_feeds {
            return self.open_private(stream, &named, request).map(|()| None);
        }
        if name.is_empty() {
            return Err(Refusal::closed(StateCode::USAGE_ERROR, NO_NAME));
        }
        if let Some(refusal) = self.refuses(&named) {
            return Err(refusal);
        }
        let shared = &mut *self.shared;
        if shared.streams >= shared.settings.max_streams {
            return Err(Refusal::closed(StateCode::TOO_MANY_ITEMS, TOO_MANY_STREAMS));
        }
        let found = shared.interest.find(&named);
        let known = found.and_then(|place| shared.interest.get(place));
        let has_image = known.is_some_and(|item| item.has_image);
        if is_down && (is_of_feeds || !has_image && !can_wait) {
            return Err(Refusal::recover(StateCode::NONE, SERVICE_DOWN));
        }
        // A provider's item that has only updates, without an image, counts as missing.
        let is_there = |item: &Item| has_image || item.number != ItemId(0) && (is_of_feeds || !item.is_kept);
        if !can_wait && !known.is_some_and(is_there) {
            return Err(Refusal::closed(StateCode::NOT_FOUND, NO_ITEM));
        }
        if !is_of_feeds && std::str::from_utf8(name).is_err() {
            // No item on the ring has such a name.
            return Err(Refusal::closed(StateCode::NOT_FOUND, NAME_NOT_TEXT));
        }
        let Ok(place) = found.map_or_else(|| shared.interest.take(&named), Ok) else {
            return Err(Refusal::closed(StateCode::TOO_MANY_ITEMS, TOO_MANY_ITEMS));
        };
        if shared.interest.is_open_on(shared.settings.max_streams_of_item, place, self.id) {
            return Err(Refusal::closed(StateCode::TOO_MANY_ITEMS, OPEN_TOO_OFTEN));
        }
        if !is_of_feeds {
            shared.note_source(place);
        }
        self.open_item(stream, request, place, has_image)
    }

    /// Opens an item for this session, and returns the reply that is due to its request.
    fn open_item(
        &mut self,
        stream: StreamHandle,
        request: &RequestedItem<'_>,
        place: ItemSlot,
        has_image: bool,
    ) -> Result<Option<PendingReply>, Refusal> {
        let view = self.view_of(request);
        let shared = &mut *self.shared;
        (shared.streams, self.session_state.streams) = (shared.streams + 1, self.session_state.streams + 1);
        // An item whose source was paused for another client is old: a new image is requested.
        let has_image = has_image && !shared.interest.get(place).is_some_and(Item::is_old);
        let phase = if has_image { StreamPhase::FirstImageOwed } else { StreamPhase::NoImage };
        let priority = request.priority.unwrap_or(USUAL);
        shared.interest.open(
            place,
            Open {
                session: self.id,
                stream,
                view,
                phase,
                missed: false,
                is_snapshot: !request.is_streaming(),
                is_behind: false,
                is_told: false,
                is_restated: false,
                priority,
            },
        );
        shared.tell_source(place);
        if has_image {
            if !(shared.is_suspect(place) && self.session_state.refuses_suspect) {
                return Ok(Some(PendingReply::Image));
            }
            shared.close(self.id, stream);
            return Err(Refusal::recover(StateCode::NONE, ITEM_SUSPECT));
        }
        shared.await_item(self.now, place);
        shared.ask_again(place);
        Ok((!self.session_state.refuses_suspect).then_some(PendingReply::Pending))
    }

    /// Passes a private stream to the source.
    fn open_private(
        &mut self,
        stream: StreamHandle,
        named: &ItemKey<'_>,
        request: &RequestedItem<'_>,
    ) -> Result<(), Refusal> {
        if let Some(refusal) = self.refuses_for_certain(named) {
            return Err(refusal);
        }
        let shared = &mut *self.shared;
        let too_many = Refusal::recover(StateCode::NO_RESOURCES, TOO_MANY_PRIVATE);
        if shared.private.is_full() {
            return Err(too_many);
        }
        let ticket = shared.demands.ticket();
        let demand = Demand::OpenPrivate { ticket, request: encoded(request) };
        shared.demands.message(demand).map_err(|Full| too_many)?;
        shared.private.open(ticket, self.id, stream);
        Ok(())
    }

    fn reissue(&mut self, provider: &Provider, stream: StreamHandle, request: &RequestedItem<'_>) {
        let shared = &mut *self.shared;
        if let Some(ticket) = shared.private.ticket(self.id, stream) {
            let message = encoded(request);
            if shared.demands.message(Demand::Private { ticket, message }) == Err(Full) {
                self.session_state.counters.declined += 1;
            }
            return;
        }
        if let Some(priority) = request.priority {
            shared.change_priority(self.id, stream, priority);
        }
        let view = self.view_of(request);
        let shared = &mut *self.shared;
        let Some(open) = shared.interest.stream_mut(self.id, stream) else {
            shared.views.release(view);
            return;
        };
        let before = std::mem::replace(&mut open.view, view);
        shared.views.release(before);
        let goes_on = !request.is_pause();
        self.owe_image(provider, stream, |open| request.wants_refresh() || goes_on && open.missed);
    }

    /// Handles a takeover by this hub as the client's active server, for some services or for all: streams without an image get one.
    fn take_over(&mut self, provider: &Provider) {
        for stream in self.shared.interest.streams_of(self.id) {
            if !provider.has_image(stream) && !provider.stands_by(stream) {
                self.owe_image(provider, stream, |_| true);
            }
        }
    }

    /// Makes an image pending for a stream that has one, if `is_wanted`.
    pub(crate) fn owe_image(
        &mut self,
        provider: &Provider,
        stream: StreamHandle,
        is_wanted: impl Fn(&Open) -> bool,
    ) {
        if let Some(open) = self.shared.interest.stream_mut(self.id, stream)
            && open.phase == StreamPhase::Current
            && is_wanted(open)
        {
            open.phase = StreamPhase::ImageOwed;
            self.session_state.owe(provider, stream, PendingReply::Image);
        }
    }

    /// Sends pending replies while there is capacity, at most `most`. The queue must be empty. Returns `true` if the rest waits until an image in
    /// parts may be built.
    pub(crate) fn go_on(
        &mut self,
        provider: &mut Provider,
        out: &mut dyn Outbox,
        backlog: &mut Backlog,
        mut most: usize,
    ) -> bool {
        while most > 0
            && let Some((stream, owed)) = self.session_state.first_owed()
        {
            most -= 1;
            let is_image = matches!(owed, PendingReply::Image);
            if is_image && let Some(refusal) = self.denied_by_code(stream) {
                self.take_away(provider, stream, refusal);
                self.session_state.settled();
                continue;
            }
            if is_image
                && self.shared.is_in_parts(self.id, stream)
                && !self.shared.overflow.admits(self.id, self.session_state)
            {
                // The delay is not caused by the client.
                self.session_state.stuck = None;
                return true;
            }
            let sent = match owed {
                PendingReply::Image => match self.say_gap(provider, out, stream) {
                    Sent::Full => Sent::Full,
                    _ => self.give_image(provider, out, backlog, stream),
                },
                PendingReply::Closed(refusal) => self.say(provider, out, stream, refusal.state()),
                // The image may have been among the queued output.
                PendingReply::Pending if !self.waits(stream) => Sent::NotOpen,
                PendingReply::Pending => self.say(provider, out, stream, PENDING),
                // As above, and the image contains the state.
                PendingReply::State(state) if !is_final(&state.view()) && !self.waits(stream) => {
                    Sent::NotOpen
                }
                PendingReply::State(state) => self.say(provider, out, stream, state.view()),
            };
            if sent == Sent::Full {
                self.session_state.found_no_room(self.now);
                return false;
            }
            self.session_state.settled();
            if !backlog.is_empty() {
                // Parts of a long image are queued: later output follows them.
                self.session_state.found_no_room(self.now);
                return false;
            }
        }
        false
    }

    /// Returns `true` if a stream has no image yet.
    fn waits(&self, stream: StreamHandle) -> bool {
        let there = self.shared.interest.of_stream(self.id, stream);
        there.is_some_and(|(_, open)| open.phase == StreamPhase::NoImage)
    }

    /// Sends a pending gap status.
    fn say_gap(&mut self, provider: &mut Provider, out: &mut dyn Outbox, stream: StreamHandle) -> Sent {
        let open = self.shared.interest.stream_mut(self.id, stream);
        if open.as_ref().is_none_or(|open| open.phase != StreamPhase::GapOwed) {
            return Sent::NotOpen;
        }
        let sent = self.say(provider, out, stream, GAP);
        if sent == Sent::Queued
            && let Some(open) = self.shared.interest.stream_mut(self.id, stream)
        {
            open.phase = StreamPhase::ImageOwed;
            self.session_state.counters.gaps += 1;
        }
        sent
    }

    fn give_image(
        &mut self,
        provider: &mut Provider,
        out: &mut dyn Outbox,
        backlog: &mut Backlog,
        stream: StreamHandle,
    ) -> Sent {
        let given = self.shared.send_image(self.id, stream, provider, (out, backlog.for_all()));
        self.session_state.counters.refreshes += given.messages;
        match given.sent {
            Sent::Full if given.is_behind => {
                self.session_state.end(End::Slow(TooMuch::Bytes(self.shared.settings.image_bytes)));
            }
            Sent::TooLong => {
                let too_long = Refusal::closed(StateCode::NO_RESOURCES, IMAGE_TOO_LONG);
                self.shared.close(self.id, stream);
                return self.say(provider, out, stream, too_long.state());
            }
            _ => {}
        }
        given.sent
    }

    fn say(
        &self,
        provider: &mut Provider,
        out: &mut dyn Outbox,
        stream: StreamHandle,
        state: State<'_>,
    ) -> Sent {
        provider.status(self.now, out, stream, &status(state)).unwrap_or(Sent::TooLong)
    }
}

/// The state of an item that the plant has not published yet.
const PENDING: State<'static> = suspect(StreamState::OPEN, StateCode::NONE, NO_IMAGE_YET);
/// The state after dropped updates; an image follows.
const GAP: State<'static> = suspect(StreamState::OPEN, StateCode::GAP_DETECTED, UPDATES_DROPPED);
/// The priority of a request without one (RWF chapter 2: class 1, count 1).
const USUAL: Priority = Priority { class: 1, count: 1 };

/// Returns a request as received, for a source; for a batch, the request for this item alone.
fn encoded(request: &RequestedItem<'_>) -> Box<[u8]> {
    let is_batch = request.flags.has(flags::request::HAS_BATCH);
    let mut header = RequestHeader {
        flags: request.flags,
        container: request.message.container(),
        priority: request.priority,
        qos: request.qos,
        worst_qos: request.worst_qos,
        extended_header: request.extended_header,
        ..RequestHeader::new(request.domain, 0, request.key)
    };
    let payload = RequestPayload {
        view: request.view,
        data_streams: request.data_streams,
        ..RequestPayload::default()
    };
    if is_batch {
        header.flags = Flags(request.flags.0 & !flags::request::HAS_BATCH.0);
        payload.mark(&mut header);
    }
    // In addition to the original: a key with name and attributes of the maximum length.
    let mut room = vec![0; request.message.header_len() + request.message.payload().len() + 1024];
    let written = header.encode_with(&mut room, |room| {
        if is_batch { payload.encode(room) } else { copy(request.message.payload(), room) }
    });
    // Cannot fail: no part has grown.
    room.truncate(written.unwrap_or(0));
    room.into()
}

/// Returns the fields of a request's view; `None` for all fields, also if the view has too many.
fn wanted(request: &RequestedItem<'_>) -> Option<Vec<Fid>> {
    match &request.view {
        Some(View::Fids(fids)) if fids.len() <= MOST_FIDS => Some(fids.iter().flatten().map(Fid).collect()),
        _ => None,
    }
}

/// Copies bytes into a payload's buffer.
pub(crate) fn copy(payload: &[u8], room: &mut [u8]) -> Result<usize, Refused> {
    room.get_mut(..payload.len()).ok_or(Refused::Full)?.copy_from_slice(payload);
    Ok(payload.len())
}
