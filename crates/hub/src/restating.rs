//! States of many items at once, told item by item.
//!
//! JSON has no word for the group of an item, so its clients cannot apply a group's state to their items. Each stream whose item
//! changed its state with its group or service is marked, and each [turn](Hub::turn) of the hub tells some of the marked streams
//! how their items are *then*: a state that came and went before a stream's turn is never told. Streams that are owed an image
//! read the state there.
//!
//! Memory: a mark in each stream, and a position in each session. Updates come first: who has no room, or something queued, is
//! told nothing here, and what is told takes half of the room that is left at most.

use tapeline_nanos::Nanos;
use tapeline_omm::role::Sent;
use tapeline_omm::rwf::{Domain, StatusHeader};

use crate::connections::{Connections, SessionId};
use crate::hub::Hub;
use crate::interest::{ItemSlot, StreamPhase};
use crate::session::Session;

/// Statuses that all sessions together are told in one turn of 10 ms: 50,000 a second, about 5 % of a core.
const MOST_TOLD: usize = 500;
/// Streams that are looked at in one turn, marked or not, for all sessions together: some 0.2 ms.
const MOST_SEEN: usize = 20_000;

/// What is left of the statuses and looks of one turn.
struct Budget {
    told: usize,
    seen: usize,
}

impl Hub {
    /// Marks the streams of an item on which the client hears of states item by item.
    pub(crate) fn mark_restated(&mut self, place: ItemSlot) {
        let Some(item) = self.shared.interest.get_mut(place) else { return };
        for open in &mut item.streams {
            let Some(Some(session)) = self.sessions.get_mut(open.session.index()) else { continue };
            if session.session_state.pass.peer.is_json && open.phase == StreamPhase::Current {
                open.is_restated = true;
                session.session_state.restates = Some(0);
            }
        }
    }

    /// Tells marked streams how their items are, as many as one turn allows. The session that the budget ended with is the last of
    /// the next turn.
    pub(crate) fn restate(&mut self, now: Nanos, connections: &mut impl Connections) {
        let mut budget = Budget { told: MOST_TOLD, seen: MOST_SEEN };
        let sessions = self.sessions.len();
        for _ in 0..sessions {
            if budget.told == 0 || budget.seen == 0 {
                return;
            }
            self.restating = (self.restating + 1) % sessions;
            self.restate_one(now, SessionId(self.restating as u32), &mut budget, connections);
        }
    }

    fn restate_one(
        &mut self,
        now: Nanos,
        id: SessionId,
        budget: &mut Budget,
        connections: &mut impl Connections,
    ) {
        let Some(Some(Session { provider, backlog, session_state })) = self.sessions.get_mut(id.index())
        else {
            return;
        };
        let Some(mut at) = session_state.restates else { return };
        if session_state.over.is_some() || session_state.is_full || !backlog.is_empty() {
            return;
        }
        let shared = &mut self.shared;
        let places = shared.interest.stream_places(id);
        let done = connections.with(id, |out| {
            let least = out.left() / 2;
            while at < places {
                if budget.told == 0 || budget.seen == 0 || out.left() < least {
                    return;
                }
                budget.seen -= 1;
                if let Some((place, stream)) = shared.interest.restated_at(id, at)
                    && let Some(state) = shared.state(place)
                {
                    let header =
                        StatusHeader { state: Some(state), ..StatusHeader::new(Domain::MARKET_PRICE, 0) };
                    budget.told -= 1;
                    match provider.status(now, out, stream, &header) {
                        Ok(Sent::Full) => return,
                        Ok(Sent::Queued) => session_state.counters.statuses += 1,
                        _ => {}
                    }
                }
                shared.interest.unmark_restated(id, at);
                at += 1;
            }
        });
        session_state.restates = (done.is_some() && at < places).then_some(at);
    }
}
