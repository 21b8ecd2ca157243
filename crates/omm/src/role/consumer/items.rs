//! Messages of providers about items, and the resulting events.

use super::{Call, Consumer, ConsumerEvent, Handle};
use crate::State;
use crate::role::watchlist::{Image, Interest, Owner, Phase};
use crate::rwf::{DataState, Header, MessageView, RefreshHeader, StateCode, StreamState, flags};

/// Returns the event of a message, for each item.
#[inline]
fn message_event<'e>(
    message: &'e MessageView<'e>,
    is_final: bool,
) -> impl Fn(Handle, u64) -> ConsumerEvent<'e> {
    move |item, closure| ConsumerEvent::Message { item, closure, message, is_final }
}

/// Returns the event of a state, for each item.
fn state_event<'e>(state: &'e State<'e>, is_final: bool) -> impl Fn(Handle, u64) -> ConsumerEvent<'e> {
    move |item, closure| ConsumerEvent::State { item, closure, state: *state, is_final }
}

impl Consumer {
    /// Sends an event to those items of a stream that `picks` selects.
    fn tell<'e>(
        &mut self,
        place: u32,
        picks: impl Fn(&Interest) -> bool,
        event: impl Fn(Handle, u64) -> ConsumerEvent<'e>,
        call: &mut Call<'_>,
    ) {
        let told = self.items_of(place, picks);
        self.tell_these(told, event, call);
    }

    /// Returns those items of a stream that `picks` selects, in the list that is stored for this; put it back.
    fn items_of(&mut self, place: u32, picks: impl Fn(&Interest) -> bool) -> Vec<(Handle, u64)> {
        let mut told = std::mem::take(&mut self.told);
        let picked = self.list.items(place).filter(|(_, item)| picks(item));
        told.extend(picked.map(|(handle, item)| (handle, item.closure)));
        told
    }

    fn tell_these<'e>(
        &mut self,
        mut told: Vec<(Handle, u64)>,
        event: impl Fn(Handle, u64) -> ConsumerEvent<'e>,
        call: &mut Call<'_>,
    ) {
        for (handle, closure) in told.drain(..) {
            // The application may have closed the item in the previous event.
            if self.list.interest(handle).is_some() {
                call.event(self, event(handle, closure));
            }
        }
        self.told = told;
    }

    /// Removes a stream, then sends an event to its items. Their handles are then invalid: each item can be opened
    /// again at once.
    fn finish<'e>(
        &mut self,
        place: u32,
        event: impl Fn(Handle, u64) -> ConsumerEvent<'e>,
        call: &mut Call<'_>,
    ) {
        let mut told = self.items_of(place, |_| true);
        self.answered(place);
        self.list.remove(place);
        self.settle_timers();
        for (handle, closure) in told.drain(..) {
            call.event(self, event(handle, closure));
        }
        self.told = told;
    }

    pub(super) fn tell_state(&mut self, place: u32, state: &State<'_>, call: &mut Call<'_>) {
        if self.is_unwanted(state) {
            return self.close_suspect(place, state, call);
        }
        if let Some(stream) = self.list.streams.get_mut(place) {
            stream.note(state.data);
        }
        self.tell(place, |_| true, state_event(state, false), call);
    }

    /// Returns `true` if a stream in this state is not acceptable at all.
    fn is_unwanted(&self, state: &State<'_>) -> bool {
        !self.takes_suspect && state.stream == StreamState::OPEN && state.data == DataState::SUSPECT
    }

    /// Closes items that would be suspect, for the application. The close is sent to the provider when there is space.
    fn close_suspect(&mut self, place: u32, state: &State<'_>, call: &mut Call<'_>) {
        let mut told = self.items_of(place, |_| true);
        for (handle, _) in &told {
            self.list.close(*handle);
        }
        let state = State { stream: StreamState::CLOSED_RECOVER, ..*state };
        for (item, closure) in told.drain(..) {
            call.event(self, ConsumerEvent::State { item, closure, state, is_final: true });
        }
        self.told = told;
    }

    pub(super) fn finish_with_state(&mut self, place: u32, state: &State<'_>, call: &mut Call<'_>) {
        self.finish(place, state_event(state, true), call);
    }

    pub(super) fn owner(&self, id: i32) -> Option<Owner> {
        self.list.ids.find(id)
    }

    /// Processes an update: the common case, which touches only the entries of the stream and its items.
    pub(super) fn update(&mut self, message: &MessageView<'_>, call: &mut Call<'_>) {
        match self.owner(message.stream_id()) {
            Some(Owner::Stream(place)) => {
                let (first, is_only) = {
                    let taking = self.list.items(place).filter(|(_, item)| item.image >= Image::Coming);
                    let mut taking = taking.map(|(handle, item)| (handle, item.closure));
                    (taking.next(), taking.next().is_none())
                };
                let Some((item, closure)) = first else {
                    self.counters.early_updates += 1;
                    return;
                };
                let event = message_event(message, false);
                if is_only {
                    // Nearly always; and no event in between can have closed the item.
                    return call.event(self, event(item, closure));
                }
                self.tell(place, |item| item.image >= Image::Coming, event, call);
            }
            Some(Owner::Batch(_)) => self.counters.misplaced += 1,
            None => self.close_unknown(message, false, call.out),
        }
    }

    /// Processes a refresh, status or generic message on a stream that is not an administrative one.
    pub(super) fn item_message(
        &mut self,
        message: &MessageView<'_>,
        header: &Header<'_>,
        call: &mut Call<'_>,
    ) {
        let place = match self.owner(message.stream_id()) {
            Some(Owner::Stream(place)) => place,
            Some(Owner::Batch(count)) => return self.batch_message(message.stream_id(), count, header),
            None => {
                let is_image =
                    matches!(header, Header::Refresh(refresh) if refresh.state.stream == StreamState::OPEN);
                return self.close_unknown(message, is_image, call.out);
            }
        };
        if let (Some(group), Some(stream)) = (header.group_id(), self.list.streams.get_mut(place))
            && *stream.group != *group
        {
            stream.group = group.into();
        }
        match header {
            Header::Refresh(refresh) => self.refresh(message, refresh, place, call),
            Header::Status(status) => match status.state {
                Some(state) => self.status(message, &state, place, call),
                None => self.tell(place, |_| true, message_event(message, false), call),
            },
            Header::Generic(_) => self.tell(place, |_| true, message_event(message, false), call),
            _ => self.counters.misplaced += 1,
        }
    }

    fn refresh(
        &mut self,
        message: &MessageView<'_>,
        refresh: &RefreshHeader<'_>,
        place: u32,
        call: &mut Call<'_>,
    ) {
        if self.is_unwanted(&refresh.state) {
            return self.close_suspect(place, &refresh.state, call);
        }
        let is_complete = refresh.flags.has(flags::refresh::REFRESH_COMPLETE);
        let is_solicited = refresh.flags.has(flags::refresh::SOLICITED);
        let is_final = match refresh.state.stream {
            StreamState::CLOSED_RECOVER => return self.recover(place, &refresh.state, call),
            StreamState::CLOSED | StreamState::REDIRECTED => true,
            StreamState::NON_STREAMING => is_complete,
            // A snapshot that its provider treats as a stream.
            _ if is_complete
                && self.list.streams.get(place).is_some_and(|stream| !stream.key.is_streaming) =>
            {
                self.close_stream(message.domain(), message.stream_id(), call.out);
                true
            }
            _ => false,
        };
        let event = message_event(message, is_final);
        if is_final {
            return self.finish(place, event, call);
        }
        self.answered(place);
        let Some(stream) = self.list.streams.get_mut(place) else { return };
        // If one item's request shows that the data of all items is good again, all items are informed.
        let is_news = stream.note(refresh.state.data);
        stream.image_is_for_all |= !is_solicited || is_news;
        let is_everybodys = stream.image_is_for_all;
        stream.is_in_parts = !is_complete;
        if is_complete {
            (stream.phase, stream.opened, stream.due) = (Phase::Open, self.now, None);
            stream.image_is_for_all = false;
        }
        // The image goes only to the items that wait for one, unless it is for all items or no item waits.
        let mut is_awaited = false;
        self.list.change_items(place, |_, item| {
            if item.image == Image::Asked {
                item.image = Image::Coming;
            }
            is_awaited |= item.image == Image::Coming;
        });
        let mut told = std::mem::take(&mut self.told);
        self.list.change_items(place, |handle, item| {
            if item.image == Image::Coming || item.image == Image::There && (is_everybodys || !is_awaited) {
                told.push((handle, item.closure));
            }
            // Before the events: posts to an item are allowed as soon as its image has arrived.
            if item.image == Image::Coming && is_complete {
                item.image = Image::There;
            }
        });
        if is_complete {
            self.settle_timers();
            // Changes that were made in between are sent now: more items, other fields, a pause.
            self.list.queue(place);
        } else {
            let due = self.after(self.settings.request_timeout);
            self.set_due(place, due);
        }
        self.tell_these(told, event, call);
    }

    fn status(&mut self, message: &MessageView<'_>, state: &State<'_>, place: u32, call: &mut Call<'_>) {
        if self.is_unwanted(state) {
            return self.close_suspect(place, state, call);
        }
        let is_open = self.list.streams.get(place).is_some_and(|stream| stream.phase == Phase::Open);
        let is_final = match state.stream {
            StreamState::CLOSED_RECOVER => return self.recover(place, state, call),
            StreamState::CLOSED | StreamState::REDIRECTED => true,
            StreamState::NON_STREAMING => is_open,
            _ => false,
        };
        let event = message_event(message, is_final);
        if is_final {
            return self.finish(place, event, call);
        }
        // The provider has received the request, and will answer when it can: another request would change nothing.
        if let Some(stream) = self.list.streams.get_mut(place) {
            stream.note(state.data);
            if !stream.is_in_parts {
                stream.due = None;
            }
        }
        self.tell(place, |_| true, event, call);
    }

    /// Processes a message on the stream of a batch request itself. Its items are on the streams after it, and it has
    /// no further use.
    fn batch_message(&mut self, id: i32, count: u32, header: &Header<'_>) {
        let Some(state) = header.state() else { return };
        if !matches!(
            state.stream,
            StreamState::CLOSED | StreamState::CLOSED_RECOVER | StreamState::NON_STREAMING
        ) {
            return;
        }
        self.list.ids.free(id);
        if matches!(
            state.code,
            StateCode::UNABLE_TO_REQUEST_AS_BATCH
                | StateCode::NO_BATCH_VIEW_SUPPORT_IN_REQ
                | StateCode::USAGE_ERROR
        ) {
            // The batch was not accepted: its items are requested one by one.
            self.connection.features.batches = false;
            for item in (id.saturating_add(1)..).take(count as usize) {
                if let Some(Owner::Stream(place)) = self.owner(item)
                    && self.list.streams.get(place).is_some_and(|stream| stream.phase == Phase::Asked)
                {
                    self.unask(place);
                    self.list.queue(place);
                }
            }
        }
    }
}
