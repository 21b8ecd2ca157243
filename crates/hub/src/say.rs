//! States, said to clients: to all who have an item open, to one stream, to those who have waited for too long.

use std::sync::Arc;

use tapeline_nanos::Nanos;
use tapeline_omm::State;
use tapeline_omm::domain::OwnedState;
use tapeline_omm::role::Sent;
use tapeline_omm::role::provider::StreamHandle;
use tapeline_omm::rwf::{DataState, Domain, StateCode, StatusHeader, StreamState};

use crate::hub::Hub;
use crate::interest::{Open, Place, Standing};
use crate::note::{End, TooMuch};
use crate::outlets::{Behind, Outlets, SessionId};
use crate::session::{Owed, Session};
use crate::settings::{Late, SlowPolicy};
use crate::statuses::is_final;

impl Hub {
    /// Tells the streams of an item, of these sessions, a status. A stream that is owed an image hears of it by that, if the
    /// state is not final. Those to which it is the last word are closed.
    pub(crate) fn say_to_all(
        &mut self,
        now: Nanos,
        place: Place,
        header: &StatusHeader<'_>,
        is_meant: impl Fn(&Session, &Open) -> bool,
        outlets: &mut impl Outlets,
    ) {
        let is_over = header.state.is_some_and(|state| is_final(&state));
        let market = &mut self.market;
        let Some(item) = market.interest.get_mut(place) else { return };
        let mut owned: Option<Arc<OwnedState>> = None;
        let mut closed = Vec::new();
        for open in &mut item.streams {
            let Some(Some(session)) = self.sessions.get_mut(open.session.index()) else { continue };
            if session.account.over.is_some() || !is_meant(session, open) {
                continue;
            }
            if is_over {
                closed.push((open.session, open.stream));
            } else if matches!(open.standing, Standing::Owed | Standing::Gap) {
                continue;
            }
            let Session { provider, backlog, account } = session;
            let mut sent = Sent::Full;
            // Behind what is owed already, so that the last word is the last.
            if !account.is_full && account.owes_nothing() {
                let there = outlets.with(open.session, |out| {
                    provider.status(now, &mut Behind::new(backlog, out), open.stream, header)
                });
                sent = there.and_then(Result::ok).unwrap_or(Sent::NotOpen);
            }
            match sent {
                Sent::Queued => account.counters.statuses += 1,
                Sent::Full => {
                    account.found_no_room(now);
                    if open.standing != Standing::Current || is_over {
                        if let Some(state) = header.state {
                            let state = owned.get_or_insert_with(|| Arc::new(OwnedState::from(state)));
                            account.owe(provider, open.stream, Owed::State(Arc::clone(state)));
                        }
                        continue;
                    }
                    // In its place among the updates; or in the image that is there for them.
                    let slow = account.slow;
                    if slow != SlowPolicy::Conflate {
                        let has_room = market.rest.has_room(LONGEST_STATUS);
                        let room = if has_room { backlog.for_all() } else { &mut *backlog };
                        sent = provider.status(now, room, open.stream, header).unwrap_or(Sent::TooLong);
                        market.rest.count(now, account, backlog);
                    }
                    match slow {
                        _ if sent.is_queued() => account.counters.statuses += 1,
                        SlowPolicy::Conflate | SlowPolicy::DropWithGap { .. } => {
                            let is_gap = slow != SlowPolicy::Conflate;
                            open.standing = if is_gap { Standing::Gap } else { Standing::Owed };
                            account.owe(provider, open.stream, Owed::Image);
                        }
                        SlowPolicy::Cut { .. } | SlowPolicy::Block { .. } => {
                            account.end(End::Slow(TooMuch::Bytes(slow.bytes())));
                            self.over.push_back(open.session);
                        }
                    }
                }
                Sent::NotOpen | Sent::TooLong => {}
            }
        }
        for (session, stream) in closed {
            self.market.close(session, stream);
        }
    }

    /// The last word on one stream.
    pub(crate) fn say_last(
        &mut self,
        now: Nanos,
        id: SessionId,
        stream: StreamHandle,
        header: &StatusHeader<'_>,
        outlets: &mut impl Outlets,
    ) {
        let Some(Some(session)) = self.sessions.get_mut(id.index()) else { return };
        let Session { provider, backlog, account } = session;
        let mut sent = Ok(Sent::Full);
        if !account.is_full {
            let there =
                outlets.with(id, |out| provider.status(now, &mut Behind::new(backlog, out), stream, header));
            sent = there.unwrap_or(Ok(Sent::NotOpen));
        }
        if sent == Ok(Sent::Full)
            && let Some(state) = header.state
        {
            account.found_no_room(now);
            account.owe(provider, stream, Owed::State(Arc::new(OwnedState::from(state))));
        }
    }

    /// The cache has no room for the image of an item: whoever waits for it would wait for good.
    #[cold]
    pub(crate) fn say_no_room(&mut self, now: Nanos, place: Place, outlets: &mut impl Outlets) {
        let state = State {
            stream: StreamState::CLOSED,
            data: DataState::SUSPECT,
            code: StateCode::NO_RESOURCES,
            text: b"There is no room for the image of this item",
        };
        let header = StatusHeader { state: Some(state), ..StatusHeader::new(Domain::MARKET_PRICE, 0) };
        let waits = |_: &Session, open: &Open| open.standing == Standing::Waits;
        self.say_to_all(now, place, &header, waits, outlets);
    }

    /// Items that have not appeared in time: who waits for them hears of it.
    pub(crate) fn tell_of_late(&mut self, now: Nanos, outlets: &mut impl Outlets) {
        while let Some((place, service)) = self.market.next_late(now) {
            self.counters.late += 1;
            let state = |stream| State {
                stream,
                data: DataState::SUSPECT,
                code: StateCode::TIMEOUT,
                text: b"Nothing has come of this item in time",
            };
            let header = |stream| StatusHeader {
                state: Some(state(stream)),
                ..StatusHeader::new(Domain::MARKET_PRICE, 0)
            };
            let recover = StreamState::CLOSED_RECOVER;
            // Without a cache others have their image already, and go on.
            let waits = |_: &Session, open: &Open| !open.has_heard();
            match service.late {
                Late::Recover => self.say_to_all(now, place, &header(recover), waits, outlets),
                Late::Suspect => {
                    let ends = |session: &Session, open: &Open| open.is_snapshot && waits(session, open);
                    self.say_to_all(now, place, &header(recover), ends, outlets);
                    self.say_to_all(now, place, &header(StreamState::OPEN), waits, outlets);
                    self.market.close_in_time(now, place);
                }
            }
        }
        while let Some(place) = self.market.next_to_close(now) {
            let state = State {
                stream: StreamState::CLOSED_RECOVER,
                data: DataState::SUSPECT,
                code: StateCode::TIMEOUT,
                text: b"Nothing has come of this item for as long as a request may wait; ask again to go on waiting",
            };
            let header = StatusHeader { state: Some(state), ..StatusHeader::new(Domain::MARKET_PRICE, 0) };
            self.say_to_all(now, place, &header, |_, open| open.waits_told(), outlets);
        }
    }
}

/// Bytes of a status at most: a group, a text and permission data have some hundred each.
const LONGEST_STATUS: usize = 64 << 10;
