//! State changes of many items at once, sent item by item.
//!
//! JSON has no term for the group of an item, so its clients cannot apply a group's state to their items. Each stream whose item changed its state
//! with its group or service is marked, and each [turn](Hub::turn) of the hub sends to some of the marked streams the state of their items *at that
//! time*: a state that has passed before a stream's turn is never sent. Streams with a pending image get the state with the image.
//!
//! Memory: a mark in each stream, and a position in each session. Updates have precedence: a session without capacity, or with queued output, gets
//! no statuses here, and the statuses use at most half of the remaining capacity.

use tapeline_omm::role::Sent;

use crate::connections::{Connections, SessionId};
use crate::hub::Hub;
use crate::interest::{ItemSlot, StreamPhase};
use crate::session::Session;
use crate::statuses::status;

/// Maximum number of statuses to all sessions together in one turn of 10 ms: 50,000 a second, about 5 % of a core.
const MOST_TOLD: usize = 500;
/// Maximum number of streams examined in one turn, marked or not, for all sessions together: some 0.2 ms.
const MOST_SEEN: usize = 20_000;

/// The remaining statuses and streams of one turn.
struct Budget {
    told: usize,
    seen: usize,
}

impl Hub {
    /// Marks the streams of an item whose clients get states item by item.
    pub(crate) fn mark_restated(&mut self, place: ItemSlot) {
        let Some(item) = self.shared.interest.get_mut(place) else { return };
        for open in &mut item.streams {
            let Some(session) = self.sessions.get_mut(open.session) else { continue };
            if session.session_state.pass.peer.is_json && open.phase == StreamPhase::Current {
                open.is_restated = true;
                session.session_state.restates = Some(0);
            }
        }
    }

    /// Sends the states of their items to marked streams, as many as one turn allows. The session at which the budget ends is the last one of the
    /// next turn.
    pub(crate) fn restate(&mut self, connections: &mut impl Connections) {
        let mut budget = Budget { told: MOST_TOLD, seen: MOST_SEEN };
        let sessions = self.sessions.numbers().count();
        for _ in 0..sessions {
            if budget.told == 0 || budget.seen == 0 {
                return;
            }
            self.restating = (self.restating + 1) % sessions;
            self.restate_one(SessionId(self.restating as u32), &mut budget, connections);
        }
    }

    fn restate_one(&mut self, id: SessionId, budget: &mut Budget, connections: &mut impl Connections) {
        let Some(Session { provider, backlog, session_state }) = self.sessions.get_live(id) else { return };
        let Some(mut at) = session_state.restates else { return };
        if session_state.is_full || !backlog.is_empty() {
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
                    budget.told -= 1;
                    match provider.status(self.now, out, stream, &status(state)) {
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
