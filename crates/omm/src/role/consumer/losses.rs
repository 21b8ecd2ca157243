//! Time-outs, refusals, losses and recovery.

use tapeline_nanos::Nanos;

use super::{Call, Consumer};
use crate::State;
use crate::role::SUSPECT;
use crate::role::watchlist::{Image, Owner, Phase, Stream, Watchlist};
use crate::rwf::{DataState, StateCode, StreamState};

/// Subject of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// The answer of a stream is late, or the stream is to be requested again: its place, and the place's turn.
    Stream(u32, u32),
    /// The stream of a batch has no further use.
    Batch(i32),
}

impl Consumer {
    /// Sets the time at which the stream is late, or is to be requested again.
    pub(super) fn set_due(&mut self, place: u32, due: Nanos) {
        let Some(stream) = self.list.streams.get_mut(place) else { return };
        stream.due = Some(due);
        self.set_timer(due, Timer::Stream(place, self.list.streams.turn(place)));
    }

    pub(super) fn set_timer(&mut self, due: Nanos, timer: Timer) {
        let list = &self.list;
        self.timers.set(due, timer, |due, timer| is_meant(list, due, timer));
    }

    /// Removes timers that became obsolete because an answer has arrived.
    pub(super) fn settle_timers(&mut self) {
        let list = &self.list;
        self.timers.settle(|due, timer| is_meant(list, due, timer));
    }

    /// Returns `true` if a lost stream is requested again. Another private stream would not be the same one, and an
    /// application without `SingleOpen` recovers its items itself.
    const fn recovers(&self, stream: &Stream) -> bool {
        self.single_open && !stream.key.is_private
    }

    /// Handles a stream that the provider closed with CLOSED_RECOVER, or that is lost: its items become suspect, and it
    /// waits before the next request. A stream that is not to be recovered ends.
    pub(super) fn recover(&mut self, place: u32, state: &State<'_>, call: &mut Call<'_>) {
        let Some(stream) = self.list.streams.get(place) else { return };
        if !self.recovers(stream) {
            let state = State { stream: StreamState::CLOSED_RECOVER, data: DataState::SUSPECT, ..*state };
            return self.finish_with_state(place, &state, call);
        }
        let most = u64::try_from(self.settings.recover.most.as_nanos()).unwrap_or(u64::MAX);
        let has_lasted = stream.phase == Phase::Open && self.now.0.saturating_sub(stream.opened.0) >= most;
        let failures = if has_lasted { 1 } else { stream.failures.saturating_add(1) };
        self.unask(place);
        if let Some(stream) = self.list.streams.get_mut(place) {
            stream.failures = failures;
        }
        let due = self.after(self.settings.recover.after(u32::from(failures)));
        self.set_due(place, due);
        let state = State { stream: StreamState::OPEN, data: DataState::SUSPECT, ..*state };
        self.tell_state(place, &state, call);
    }

    /// Marks the stream as not requested: all that was requested must be requested again.
    pub(super) fn unask(&mut self, place: u32) {
        self.answered(place);
        self.list.release_id(place);
        let Some(stream) = self.list.streams.get_mut(place) else { return };
        (stream.phase, stream.due) = (Phase::Waiting, None);
        (stream.is_in_parts, stream.is_late, stream.is_paused, stream.view) = (false, false, false, None);
        (stream.wants_image, stream.image_is_for_all, stream.is_reissued) = (false, false, false);
        stream.group = Box::default();
        self.list.change_items(place, |_, item| item.image = Image::Wanted);
        self.counters.recoveries += 1;
    }

    /// Stops counting a request as unanswered.
    pub(super) fn answered(&mut self, place: u32) {
        if let Some(stream) = self.list.streams.get_mut(place)
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

    /// Queues a stream that waited for its service. `false`: the stream no longer exists.
    pub(super) fn release_blocked(&mut self, place: u32, turn: u32) -> bool {
        let is_current = self.list.streams.is_current(place, turn);
        match self.list.streams.get_mut(place) {
            Some(stream) if is_current && stream.is_blocked => {
                stream.is_blocked = false;
                self.list.queue(place);
                true
            }
            _ => false,
        }
    }

    /// Handles time-outs, and streams whose wait is over.
    pub(super) fn items_due(&mut self, call: &mut Call<'_>) {
        while let Some((due, timer)) = self.timers.next(self.now) {
            let place = match timer {
                Timer::Stream(place, turn) if self.list.streams.is_current(place, turn) => place,
                Timer::Stream(..) => continue,
                Timer::Batch(id) => {
                    if let Some(Owner::Batch(_)) = self.owner(id) {
                        self.list.ids.free(id);
                    }
                    continue;
                }
            };
            let Some(stream) = self.list.streams.get_mut(place) else { continue };
            if stream.due != Some(due) {
                continue;
            }
            stream.due = None;
            match stream.phase {
                Phase::Waiting => self.list.queue(place),
                // Other items have the stream and keep it: an item that waits for an image requests it again.
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
                    self.tell_state(place, &state, call);
                }
            }
        }
    }

    /// Returns the places of the streams on the connection with this service, of one group or of all.
    fn streams_of(&self, service: u16, group: Option<&[u8]>) -> Vec<(u32, u32)> {
        (0..self.list.streams.places())
            .filter(|place| {
                self.list.streams.get(*place).is_some_and(|stream| {
                    stream.id != 0
                        && stream.service_id == service
                        && !stream.is_forsaken()
                        && group.is_none_or(|group| *stream.group == *group)
                })
            })
            .map(|place| (place, self.list.streams.turn(place)))
            .collect()
    }

    /// Processes a state of all items of a service or of a group, from the directory.
    pub(super) fn service_status(
        &mut self,
        service: u16,
        group: Option<&[u8]>,
        state: &State<'_>,
        call: &mut Call<'_>,
    ) {
        for (place, turn) in self.streams_of(service, group) {
            if !self.list.streams.is_current(place, turn) {
                continue;
            }
            match state.stream {
                StreamState::CLOSED_RECOVER => self.recover(place, state, call),
                StreamState::CLOSED => self.finish_with_state(place, state, call),
                _ => self.tell_state(place, state, call),
            }
        }
    }

    /// Moves the items of one group to another.
    pub(super) fn merge_group(&mut self, service: u16, group: &[u8], into: &[u8]) {
        for (place, _) in self.streams_of(service, Some(group)) {
            if let Some(stream) = self.list.streams.get_mut(place) {
                stream.group = into.into();
            }
        }
    }

    /// Handles the loss of a service from the directory, and of its streams.
    pub(super) fn service_lost(&mut self, service: u16, call: &mut Call<'_>) {
        let state = State { text: b"The service is lost.", ..SUSPECT };
        for (place, turn) in self.streams_of(service, None) {
            if self.list.streams.is_current(place, turn) {
                self.lose_stream(place, &state, call);
            }
        }
    }

    /// Handles the loss of a stream that is not at fault: it is requested again as soon as possible.
    fn lose_stream(&mut self, place: u32, state: &State<'_>, call: &mut Call<'_>) {
        let Some(stream) = self.list.streams.get(place) else { return };
        if stream.is_forsaken() {
            self.list.remove(place);
        } else if !self.recovers(stream) {
            let state = State { stream: StreamState::CLOSED_RECOVER, ..*state };
            self.finish_with_state(place, &state, call);
        } else {
            self.unask(place);
            self.list.queue(place);
            self.tell_state(place, state, call);
        }
    }

    /// Handles the loss of the connection, and of all streams on it.
    pub(super) fn lose_items(&mut self, call: &mut Call<'_>) {
        self.list.ids.clear();
        for place in 0..self.list.streams.places() {
            if self.list.streams.get(place).is_some_and(|stream| stream.id != 0) {
                self.lose_stream(place, &super::connection::NO_CONNECTION, call);
            }
        }
        self.refuse_posts(Nanos(u64::MAX), b"The connection was lost.", call);
    }

    /// Closes all items.
    pub(super) fn close_items(&mut self, state: &State<'_>, call: &mut Call<'_>) {
        for place in 0..self.list.streams.places() {
            if self.list.streams.get(place).is_some() {
                self.finish_with_state(place, state, call);
            }
        }
        self.refuse_posts(Nanos(u64::MAX), b"The connection is closed.", call);
    }

    /// Queues the streams that wait for a changed service: they check again whether it can serve them.
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
            list.streams.is_current(place, turn)
                && list.streams.get(place).is_some_and(|stream| stream.due == Some(due))
        }
        Timer::Batch(id) => matches!(list.ids.find(id), Some(Owner::Batch(_))),
    }
}
