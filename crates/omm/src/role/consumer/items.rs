//! What becomes of items: answers, losses, time-outs.

use tapeline_measure::Nanos;

use super::{Application, Consumer, Event, Handle};
use crate::State;
use crate::role::Outbox;
use crate::role::watchlist::{Image, Interest, Owner, Phase};
use crate::rwf::{
    AckHeader, DataState, Header, MessageView, NakCode, RefreshHeader, StateCode, StreamState, flags,
};

/// Something that a time was set for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// A stream's answer is late, or it is to be asked for again: its place, and the place's turn.
    Stream(u32, u32),
    /// A batch's own stream is of no use any more.
    Batch(i32),
}

/// What an item is told that is to recover.
pub(super) const SUSPECT: State<'static> =
    State { stream: StreamState::OPEN, data: DataState::SUSPECT, code: StateCode::NONE, text: b"" };
/// What an item is told that is over.
pub(super) const CLOSED: State<'static> = State { stream: StreamState::CLOSED, ..SUSPECT };

impl Consumer {
    /// Sets the stream's time, at which it is late or to be asked for again.
    pub(super) fn set_due(&mut self, place: u32, due: Nanos) {
        let Some(stream) = self.list.stream_mut(place) else { return };
        stream.due = Some(due);
        self.set_timer(due, Timer::Stream(place, self.list.turn(place)));
    }

    pub(super) fn set_timer(&mut self, due: Nanos, timer: Timer) {
        let list = &self.list;
        self.timers.set(due, timer, |due, timer| match timer {
            Timer::Stream(place, turn) => {
                list.is_current(place, turn)
                    && list.stream(place).is_some_and(|stream| stream.due == Some(due))
            }
            Timer::Batch(id) => matches!(list.ids.find(id), Some(Owner::Batch(_))),
        });
    }

    /// Tells items of a stream, those that `picks` names.
    fn tell<'e>(
        &mut self,
        place: u32,
        picks: impl Fn(&Interest) -> bool,
        event: impl Fn(Handle, u64) -> Event<'e>,
        out: &mut dyn Outbox,
        app: &mut dyn Application,
    ) {
        let mut told = std::mem::take(&mut self.told);
        told.extend(
            self.list
                .items(place)
                .filter(|(_, item)| picks(item))
                .map(|(handle, item)| (handle, item.closure)),
        );
        self.tell_these(told, event, out, app);
    }

    fn tell_these<'e>(
        &mut self,
        mut told: Vec<(Handle, u64)>,
        event: impl Fn(Handle, u64) -> Event<'e>,
        out: &mut dyn Outbox,
        app: &mut dyn Application,
    ) {
        for (handle, closure) in told.drain(..) {
            // The application may have closed it at the word before.
            if self.list.interest(handle).is_some() {
                app.event(self, out, event(handle, closure));
            }
        }
        self.told = told;
    }

    /// Takes a stream away, and then tells its items, which are nobody's any more: each can be opened anew at once.
    fn finish<'e>(
        &mut self,
        place: u32,
        event: impl Fn(Handle, u64) -> Event<'e>,
        out: &mut dyn Outbox,
        app: &mut dyn Application,
    ) {
        let mut told = std::mem::take(&mut self.told);
        told.extend(self.list.items(place).map(|(handle, item)| (handle, item.closure)));
        self.answered(place);
        self.list.remove(place);
        for (handle, closure) in told.drain(..) {
            app.event(self, out, event(handle, closure));
        }
        self.told = told;
    }

    pub(super) fn tell_state(
        &mut self,
        place: u32,
        state: &State<'_>,
        out: &mut dyn Outbox,
        app: &mut dyn Application,
    ) {
        if let Some(stream) = self.list.stream_mut(place) {
            stream.note(state.data);
        }
        let event = |item, closure| Event::State { item, closure, state: *state, is_final: false };
        self.tell(place, |_| true, event, out, app);
    }

    pub(super) fn finish_with_state(
        &mut self,
        place: u32,
        state: &State<'_>,
        out: &mut dyn Outbox,
        app: &mut dyn Application,
    ) {
        self.finish(
            place,
            |item, closure| Event::State { item, closure, state: *state, is_final: true },
            out,
            app,
        );
    }

    fn owner(&self, id: i32) -> Option<Owner> {
        self.list.ids.find(id)
    }

    /// An update: the common case, which touches the stream's entry and its items' and nothing else.
    pub(super) fn update(
        &mut self,
        message: &MessageView<'_>,
        out: &mut dyn Outbox,
        app: &mut dyn Application,
    ) {
        match self.owner(message.stream_id()) {
            Some(Owner::Stream(place)) => {
                if !self.list.items(place).any(|(_, item)| item.image >= Image::Coming) {
                    self.counters.early_updates += 1;
                    return;
                }
                let event = |item, closure| Event::Message { item, closure, message, is_final: false };
                self.tell(place, |item| item.image >= Image::Coming, event, out, app);
            }
            Some(Owner::Batch(_)) => self.counters.misplaced += 1,
            None => self.close_unknown(message, false, out),
        }
    }

    /// A refresh, status or generic message on a stream that is not an administrative one.
    pub(super) fn item_message(
        &mut self,
        message: &MessageView<'_>,
        header: &Header<'_>,
        out: &mut dyn Outbox,
        app: &mut dyn Application,
    ) {
        let place = match self.owner(message.stream_id()) {
            Some(Owner::Stream(place)) => place,
            Some(Owner::Batch(count)) => return self.batch_message(message.stream_id(), count, header),
            None => {
                let is_image =
                    matches!(header, Header::Refresh(refresh) if refresh.state.stream == StreamState::OPEN);
                return self.close_unknown(message, is_image, out);
            }
        };
        if let (Some(group), Some(stream)) = (header.group_id(), self.list.stream_mut(place))
            && *stream.group != *group
        {
            stream.group = group.into();
        }
        match header {
            Header::Refresh(refresh) => {
                self.refresh(message, refresh, place, out, app);
            }
            Header::Status(status) => match status.state {
                Some(state) => self.status(message, &state, place, out, app),
                None => {
                    let event = |item, closure| Event::Message { item, closure, message, is_final: false };
                    self.tell(place, |_| true, event, out, app);
                }
            },
            Header::Generic(_) => {
                let event = |item, closure| Event::Message { item, closure, message, is_final: false };
                self.tell(place, |_| true, event, out, app);
            }
            _ => self.counters.misplaced += 1,
        }
    }

    fn refresh(
        &mut self,
        message: &MessageView<'_>,
        refresh: &RefreshHeader<'_>,
        place: u32,
        out: &mut dyn Outbox,
        app: &mut dyn Application,
    ) {
        let is_complete = refresh.flags.has(flags::refresh::REFRESH_COMPLETE);
        let is_solicited = refresh.flags.has(flags::refresh::SOLICITED);
        let is_final = match refresh.state.stream {
            StreamState::CLOSED_RECOVER => return self.recover(place, &refresh.state, out, app),
            StreamState::CLOSED | StreamState::REDIRECTED => true,
            StreamState::NON_STREAMING => is_complete,
            // A snapshot that its provider takes for a stream.
            _ if is_complete && self.list.stream(place).is_some_and(|stream| !stream.key.is_streaming) => {
                self.close_stream(message.domain(), message.stream_id(), out);
                true
            }
            _ => false,
        };
        let event = |item, closure| Event::Message { item, closure, message, is_final };
        if is_final {
            return self.finish(place, event, out, app);
        }
        self.answered(place);
        let Some(stream) = self.list.stream_mut(place) else { return };
        // Where one asks, and learns that the data of all is good again, all learn it.
        let is_news = stream.note(refresh.state.data);
        stream.image_is_for_all |= !is_solicited || is_news;
        let is_everybodys = stream.image_is_for_all;
        stream.is_in_parts = !is_complete;
        if is_complete {
            (stream.phase, stream.opened, stream.due) = (Phase::Open, self.now, None);
            stream.image_is_for_all = false;
        }
        // Who waits for an image gets it, and nobody else, unless it is everybody's or nobody waits.
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
            // Before they are told: an item can be posted to as soon as its image is there.
            if item.image == Image::Coming && is_complete {
                item.image = Image::There;
            }
        });
        if is_complete {
            // What came up meanwhile is said now: more items, other fields, a pause.
            self.list.queue(place);
        } else {
            let due = self.after(self.settings.request_timeout);
            self.set_due(place, due);
        }
        self.tell_these(told, event, out, app);
    }

    fn status(
        &mut self,
        message: &MessageView<'_>,
        state: &State<'_>,
        place: u32,
        out: &mut dyn Outbox,
        app: &mut dyn Application,
    ) {
        let is_open = self.list.stream(place).is_some_and(|stream| stream.phase == Phase::Open);
        let is_final = match state.stream {
            StreamState::CLOSED_RECOVER => return self.recover(place, state, out, app),
            StreamState::CLOSED | StreamState::REDIRECTED => true,
            StreamState::NON_STREAMING => is_open,
            _ => false,
        };
        let event = |item, closure| Event::Message { item, closure, message, is_final };
        if is_final {
            return self.finish(place, event, out, app);
        }
        // The provider has heard, and will answer when it can: asking again would change nothing.
        if let Some(stream) = self.list.stream_mut(place) {
            stream.note(state.data);
            if !stream.is_in_parts {
                stream.due = None;
            }
        }
        self.tell(place, |_| true, event, out, app);
    }

    /// The receipt of a post.
    pub(super) fn ack(&mut self, ack: &AckHeader<'_>, out: &mut dyn Outbox, app: &mut dyn Application) {
        let id = ack.ack_id;
        if ack.stream_id == crate::domain::LOGIN_STREAM {
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

    fn refuse_posts(&mut self, by: Nanos, text: &[u8], out: &mut dyn Outbox, app: &mut dyn Application) {
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

    /// A stream was closed by the provider to be asked for again, or is lost: its items become suspect and it waits its
    /// time. What is not to be recovered is over.
    fn recover(&mut self, place: u32, state: &State<'_>, out: &mut dyn Outbox, app: &mut dyn Application) {
        let Some(stream) = self.list.stream(place) else { return };
        if stream.key.is_private || !self.single_open {
            let state = State { stream: StreamState::CLOSED_RECOVER, data: DataState::SUSPECT, ..*state };
            return self.finish_with_state(place, &state, out, app);
        }
        let most = u64::try_from(self.settings.recover.most.as_nanos()).unwrap_or(u64::MAX);
        let has_lasted = stream.phase == Phase::Open && self.now.0.saturating_sub(stream.opened.0) >= most;
        let failures = if has_lasted { 1 } else { stream.failures.saturating_add(1) };
        self.unask(place);
        if let Some(stream) = self.list.stream_mut(place) {
            stream.failures = failures;
        }
        let due = self.after(self.settings.recover.after(u32::from(failures)));
        self.set_due(place, due);
        let state = State { stream: StreamState::OPEN, data: DataState::SUSPECT, ..*state };
        self.tell_state(place, &state, out, app);
    }

    /// The stream is not asked for any more: whatever was, is to be asked for again.
    fn unask(&mut self, place: u32) {
        self.answered(place);
        self.list.release_id(place);
        let Some(stream) = self.list.stream_mut(place) else { return };
        (stream.phase, stream.due) = (Phase::Waiting, None);
        (stream.is_in_parts, stream.is_late, stream.is_paused, stream.view) = (false, false, false, None);
        (stream.wants_image, stream.image_is_for_all, stream.is_reissued) = (false, false, false);
        stream.group = Box::default();
        self.list.change_items(place, |_, item| item.image = Image::Wanted);
        self.counters.recoveries += 1;
    }

    /// A request that counted as unanswered does so no longer.
    pub(super) fn answered(&mut self, place: u32) {
        if let Some(stream) = self.list.stream_mut(place)
            && std::mem::take(&mut stream.is_counted)
        {
            let service = stream.key.service;
            self.services.count_answer(service);
            while self.services.has_room(service)
                && let Some((place, turn)) = self.services.unblock(service)
            {
                if self.release_blocked(place, turn) {
                    break;
                }
            }
        }
    }

    /// Puts a stream that waited for its service into the line. `false`: it is there no more.
    pub(super) fn release_blocked(&mut self, place: u32, turn: u32) -> bool {
        let is_current = self.list.is_current(place, turn);
        match self.list.stream_mut(place) {
            Some(stream) if is_current && stream.is_blocked => {
                stream.is_blocked = false;
                self.list.queue(place);
                true
            }
            _ => false,
        }
    }

    /// Time-outs, and streams whose time has come.
    pub(super) fn items_due(&mut self, out: &mut dyn Outbox, app: &mut dyn Application) {
        while let Some((due, timer)) = self.timers.next(self.now) {
            let place = match timer {
                Timer::Stream(place, turn) if self.list.is_current(place, turn) => place,
                Timer::Stream(..) => continue,
                Timer::Batch(id) => {
                    if let Some(Owner::Batch(_)) = self.owner(id) {
                        self.list.ids.free(id);
                    }
                    continue;
                }
            };
            let Some(stream) = self.list.stream_mut(place) else { continue };
            if stream.due != Some(due) {
                continue;
            }
            stream.due = None;
            match stream.phase {
                Phase::Waiting => self.list.queue(place),
                // Others have the stream, and go on having it: who waits for an image asks once more.
                Phase::Open => {
                    self.list.change_items(place, |_, item| {
                        if matches!(item.image, Image::Asked | Image::Coming) {
                            item.image = Image::Wanted;
                        }
                    });
                    self.list.queue(place);
                }
                Phase::Asked => {
                    stream.is_late = true;
                    self.counters.timeouts += 1;
                    self.list.queue(place);
                    let state =
                        State { code: StateCode::TIMEOUT, text: b"The request was not answered.", ..SUSPECT };
                    self.tell_state(place, &state, out, app);
                }
            }
        }
    }

    /// The stream of a batch request itself: its items are on the streams behind it, and it is of no further use.
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
            // Not taken after all: its items are asked for one by one.
            self.connection.features.batches = false;
            for item in (id.saturating_add(1)..).take(count as usize) {
                if let Some(Owner::Stream(place)) = self.owner(item)
                    && self.list.stream(place).is_some_and(|stream| stream.phase == Phase::Asked)
                {
                    self.unask(place);
                    self.list.queue(place);
                }
            }
        }
    }

    /// Places of streams that are on the connection with this service, of a group or all.
    fn streams_of(&self, service: u16, group: Option<&[u8]>) -> Vec<(u32, u32)> {
        (0..self.list.places())
            .filter(|place| {
                self.list.stream(*place).is_some_and(|stream| {
                    stream.id != 0
                        && stream.service_id == service
                        && !stream.is_forsaken()
                        && group.is_none_or(|group| *stream.group == *group)
                })
            })
            .map(|place| (place, self.list.turn(place)))
            .collect()
    }

    /// The directory says how all items of a service are, or those of a group.
    pub(super) fn service_status(
        &mut self,
        service: u16,
        group: Option<&[u8]>,
        state: &State<'_>,
        out: &mut dyn Outbox,
        app: &mut dyn Application,
    ) {
        for (place, turn) in self.streams_of(service, group) {
            if !self.list.is_current(place, turn) {
                continue;
            }
            match state.stream {
                StreamState::CLOSED_RECOVER => self.recover(place, state, out, app),
                StreamState::CLOSED => self.finish_with_state(place, state, out, app),
                _ => self.tell_state(place, state, out, app),
            }
        }
    }

    /// The items of one group are of another one from now on.
    pub(super) fn merge_group(&mut self, service: u16, group: &[u8], into: &[u8]) {
        for (place, _) in self.streams_of(service, Some(group)) {
            if let Some(stream) = self.list.stream_mut(place) {
                stream.group = into.into();
            }
        }
    }

    /// The service is gone from the directory: its streams with it.
    pub(super) fn service_lost(&mut self, service: u16, out: &mut dyn Outbox, app: &mut dyn Application) {
        let state = State { text: b"The service is lost.", ..SUSPECT };
        for (place, turn) in self.streams_of(service, None) {
            if self.list.is_current(place, turn) {
                self.lose_stream(place, &state, out, app);
            }
        }
    }

    /// The stream is gone, through no fault of its own: it is asked for again as soon as that is possible.
    fn lose_stream(
        &mut self,
        place: u32,
        state: &State<'_>,
        out: &mut dyn Outbox,
        app: &mut dyn Application,
    ) {
        let Some(stream) = self.list.stream(place) else { return };
        if stream.is_forsaken() {
            self.list.remove(place);
        } else if stream.key.is_private || !self.single_open {
            let state = State { stream: StreamState::CLOSED_RECOVER, ..*state };
            self.finish_with_state(place, &state, out, app);
        } else {
            self.unask(place);
            self.list.queue(place);
            self.tell_state(place, state, out, app);
        }
    }

    /// The connection is lost, and all streams on it.
    pub(super) fn lose_items(&mut self, out: &mut dyn Outbox, app: &mut dyn Application) {
        self.list.ids.clear();
        for place in 0..self.list.places() {
            if self.list.stream(place).is_some_and(|stream| stream.id != 0) {
                self.lose_stream(place, &super::connection::NO_CONNECTION, out, app);
            }
        }
        self.refuse_posts(Nanos(u64::MAX), b"The connection was lost.", out, app);
    }

    /// Everything is over.
    pub(super) fn close_items(&mut self, state: &State<'_>, out: &mut dyn Outbox, app: &mut dyn Application) {
        for place in 0..self.list.places() {
            if self.list.stream(place).is_some() {
                self.finish_with_state(place, state, out, app);
            }
        }
        self.refuse_posts(Nanos(u64::MAX), b"The connection is closed.", out, app);
    }

    /// Streams that wait for a service that has changed look once more whether it can serve them.
    pub(super) fn unblock_changed(&mut self) {
        while let Some(service) = self.services.changed() {
            while let Some((place, turn)) = self.services.unblock(service) {
                self.release_blocked(place, turn);
            }
        }
    }
}
