//! Time-outs, refusals and losses, and asking again.

use tapeline_nanos::Nanos;

use super::{Application, Consumer};
use crate::State;
use crate::role::Outbox;
use crate::role::watchlist::{Image, Owner, Phase, Stream, Watchlist};
use crate::rwf::{DataState, StateCode, StreamState};

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
        self.timers.set(due, timer, |due, timer| is_meant(list, due, timer));
    }

    /// A time that was set means nothing any more: an answer has come.
    pub(super) fn settle_timers(&mut self) {
        let list = &self.list;
        self.timers.settle(|due, timer| is_meant(list, due, timer));
    }

    /// Whether a stream that is lost is asked for again. Another private stream would not be the same one, and who said that he
    /// recovers his items himself is left to.
    const fn recovers(&self, stream: &Stream) -> bool {
        self.single_open && !stream.key.is_private
    }

    /// A stream was closed by the provider to be asked for again, or is lost: its items become suspect and it waits its
    /// time. What is not to be recovered is over.
    pub(super) fn recover(
        &mut self,
        place: u32,
        state: &State<'_>,
        out: &mut dyn Outbox,
        app: &mut dyn Application,
    ) {
        let Some(stream) = self.list.stream(place) else { return };
        if !self.recovers(stream) {
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
    pub(super) fn unask(&mut self, place: u32) {
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
        } else if !self.recovers(stream) {
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

fn is_meant(list: &Watchlist, due: Nanos, timer: Timer) -> bool {
    match timer {
        Timer::Stream(place, turn) => {
            list.is_current(place, turn) && list.stream(place).is_some_and(|stream| stream.due == Some(due))
        }
        Timer::Batch(id) => matches!(list.ids.find(id), Some(Owner::Batch(_))),
    }
}
