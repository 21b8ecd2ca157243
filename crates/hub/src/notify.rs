//! Statuses to clients: to all streams of an item, to one stream, and after a time-out.

use std::sync::Arc;

use tapeline_omm::State;
use tapeline_omm::domain::OwnedState;
use tapeline_omm::role::Sent;
use tapeline_omm::role::provider::StreamHandle;
use tapeline_omm::rwf::{StateCode, StatusHeader, StreamState};

use crate::connections::{Behind, Connections, SessionId};
use crate::event::TooMuch;
use crate::hub::Hub;
use crate::interest::{ItemSlot, Open, StreamPhase};
use crate::session::{PendingReply, Session};
use crate::settings::Late;
use crate::slow_clients::{SlowPolicy, give_up};
use crate::status_texts::{LATE, NO_ROOM_FOR_IMAGE, WAITED_TOO_LONG};
use crate::statuses::{is_final, status, suspect};

impl Hub {
    /// Sends a status to the streams of an item that `is_meant` selects. For a stream with a pending image, a status that is not final is contained
    /// in the image. A final status closes the streams.
    pub(crate) fn say_to_all(
        &mut self,
        place: ItemSlot,
        header: &StatusHeader<'_>,
        is_meant: impl Fn(&Session, &Open) -> bool,
        connections: &mut impl Connections,
    ) {
        let is_over = header.state.is_some_and(|state| is_final(&state));
        let shared = &mut self.shared;
        let Some(item) = shared.interest.get_mut(place) else { return };
        let mut owned: Option<Arc<OwnedState>> = None;
        let mut closed = Vec::new();
        for open in &mut item.streams {
            let session = self.sessions.get_live(open.session);
            let Some(session) = session.filter(|session| is_meant(session, open)) else { continue };
            if is_over {
                closed.push((open.session, open.stream));
            } else if matches!(
                open.phase,
                StreamPhase::FirstImageOwed | StreamPhase::ImageOwed | StreamPhase::GapOwed
            ) {
                continue;
            }
            let Session { provider, backlog, session_state } = session;
            let mut sent = Sent::Full;
            // After pending answers, so that the final status is the last message.
            if !session_state.is_full && session_state.owes_nothing() {
                let there = connections.with(open.session, |out| {
                    provider.status(self.now, &mut Behind::new(backlog, out), open.stream, header)
                });
                sent = there.and_then(Result::ok).unwrap_or(Sent::NotOpen);
            }
            match sent {
                Sent::Queued => session_state.counters.statuses += 1,
                Sent::Full => {
                    session_state.found_no_room(self.now);
                    if open.phase != StreamPhase::Current || is_over {
                        if let Some(state) = header.state {
                            let state = owned.get_or_insert_with(|| Arc::new(OwnedState::from(state)));
                            session_state.owe(provider, open.stream, PendingReply::State(Arc::clone(state)));
                        }
                        continue;
                    }
                    // In sequence with the updates, or as a part of the pending image.
                    let slow = session_state.slow;
                    if slow != SlowPolicy::Conflate {
                        let has_room = shared.overflow.has_room(LONGEST_STATUS);
                        let room = if has_room { backlog.for_all() } else { &mut *backlog };
                        sent = provider.status(self.now, room, open.stream, header).unwrap_or(Sent::TooLong);
                        shared.overflow.count(self.now, session_state, backlog);
                    }
                    if sent.is_queued() {
                        session_state.counters.statuses += 1;
                        continue;
                    }
                    give_up(session_state, provider, open, TooMuch::Bytes(slow.bytes()));
                    if session_state.over.is_some() {
                        self.over.push_back(open.session);
                    }
                }
                Sent::NotOpen | Sent::TooLong => {}
            }
        }
        closed.into_iter().for_each(|(session, stream)| self.shared.close(session, stream));
    }

    /// Sends the final state of one stream.
    pub(crate) fn say_last(
        &mut self,
        id: SessionId,
        stream: StreamHandle,
        state: State<'_>,
        connections: &mut impl Connections,
    ) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Session { provider, backlog, session_state } = session;
        let mut sent = Ok(Sent::Full);
        if !session_state.is_full {
            let there = connections.with(id, |out| {
                provider.status(self.now, &mut Behind::new(backlog, out), stream, &status(state))
            });
            sent = there.unwrap_or(Ok(Sent::NotOpen));
        }
        if sent == Ok(Sent::Full) {
            session_state.found_no_room(self.now);
            session_state.owe(provider, stream, PendingReply::State(Arc::new(OwnedState::from(state))));
        }
    }

    /// Handles an item whose image exceeds the cache: clients would wait for it forever.
    #[cold]
    pub(crate) fn say_no_room(&mut self, place: ItemSlot, connections: &mut impl Connections) {
        let state = suspect(StreamState::CLOSED, StateCode::NO_RESOURCES, NO_ROOM_FOR_IMAGE);
        let waits = |_: &Session, open: &Open| open.phase == StreamPhase::NoImage;
        self.say_to_all(place, &status(state), waits, connections);
    }

    /// Handles items that have not appeared in time: their clients get a status.
    pub(crate) fn tell_of_late(&mut self, connections: &mut impl Connections) {
        while let Some((place, service)) = self.shared.next_late(self.now) {
            self.counters.late += 1;
            let late = |stream| status(suspect(stream, StateCode::TIMEOUT, LATE));
            let recover = late(StreamState::CLOSED_RECOVER);
            // Without a cache, other clients have their image already and continue.
            let waits = |_: &Session, open: &Open| !open.has_heard();
            match service.late {
                Late::Recover => self.say_to_all(place, &recover, waits, connections),
                Late::Suspect => {
                    let ends = |session: &Session, open: &Open| open.is_snapshot && waits(session, open);
                    self.say_to_all(place, &recover, ends, connections);
                    self.say_to_all(place, &late(StreamState::OPEN), waits, connections);
                    self.shared.close_in_time(self.now, place);
                }
            }
        }
        while let Some(place) = self.shared.next_to_close(self.now) {
            let state = suspect(StreamState::CLOSED_RECOVER, StateCode::TIMEOUT, WAITED_TOO_LONG);
            self.say_to_all(place, &status(state), |_, open| open.waits_told(), connections);
        }
    }
}

/// Maximum size of a status in bytes: a group, a text and permission data of some hundred bytes each.
const LONGEST_STATUS: usize = 64 << 10;
