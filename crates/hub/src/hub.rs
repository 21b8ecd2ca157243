//! The hub: one input at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use tapeline_nanos::Nanos;
use tapeline_omm::domain::Directory;
use tapeline_omm::role::{Outbox, Over};
use tapeline_omm::rwf::{StateCode, StreamState};
use tapeline_plant::Seq;
use tapeline_plant::cache::Memory;

use crate::access::{Access, Check, CheckNumber, Peer, Verdict};
use crate::connections::{Behind, Connections, SessionId};
use crate::event::{AccessCounters, Counters, End, HubEvent, TooMuch};
use crate::interest::ItemSlot;
use crate::prefetch::MOST_EXPECTED;
use crate::request_handler::RequestHandler;
use crate::resync::Resync;
use crate::session::Session;
use crate::sessions::Sessions;
use crate::settings::Settings;
use crate::shared_state::SharedState;
use crate::slow_clients::SlowPolicy;
use crate::statuses::suspect;

/// Interval of the checks of all sessions, ns: short enough for time-outs, long enough for thousands of sessions.
const TURN_NS: u64 = 10_000_000;
/// Number of sessions that get deferred replies in one turn, and number of replies for each. An image takes 2 µs, and 20 µs as JSON.
const SESSIONS: usize = 4;
const REPLIES: usize = 8;
/// Number of replies that are sent together with the handling of a message.
const REPLIES_AT_ONCE: usize = 2;
/// Time in which the client of an ended session may take the reason, ns: the same number of seconds as for the final messages of a hub that stops.
const LEAVE_NS: u64 = 2_000_000_000;
/// Minimum time for a login if there are too many sessions without one, ns.
const STRANGE_NS: u64 = 1_000_000_000;
/// Maximum number of queued events; beyond it the oldest are dropped.
const MOST_NOTES: usize = 10_000;

/// A hub for all clients of one plant. See the [crate](crate).
#[derive(Debug)]
pub struct Hub {
    pub(crate) shared: SharedState,
    pub(crate) sessions: Sessions,
    pub(crate) over: VecDeque<SessionId>,
    /// Sessions with deferred replies and capacity for them.
    owed_more: VecDeque<SessionId>,
    pub(crate) notes: VecDeque<HubEvent>,
    pub(crate) next_seq: u64,
    /// Items whose images are from before a gap.
    pub(crate) resync: Resync,
    /// The session whose streams got the states of their items last.
    pub(crate) restating: usize,
    next_turn: Nanos,
    /// Time of the present or the last input.
    pub(crate) now: Nanos,
    pub(crate) counters: Counters,
    pub(crate) expected: Vec<ItemSlot>,
}

impl Hub {
    /// Creates a hub without sessions. Its services are down until the plant reports otherwise.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            shared: SharedState::new(settings),
            sessions: Sessions::default(),
            over: VecDeque::new(),
            owed_more: VecDeque::new(),
            notes: VecDeque::new(),
            next_seq: 0,
            resync: Resync::default(),
            restating: 0,
            next_turn: Nanos(0),
            now: Nanos(0),
            counters: Counters::default(),
            expected: Vec::with_capacity(MOST_EXPECTED),
        }
    }

    /// Opens a session for a client with an unknown address.
    pub fn open(&mut self, now: Nanos) -> SessionId {
        self.open_from(now, Peer::default())
    }

    /// Opens a session for a client that has connected.
    pub fn open_from(&mut self, now: Nanos, peer: Peer) -> SessionId {
        self.counters.sessions += 1;
        let mut session = Session::new(&self.shared.settings, now);
        session.session_state.pass.peer = peer;
        session.session_state.serial = self.counters.sessions;
        self.sessions.open(session)
    }

    /// Closes a session whose connection has ended, or is to end. Nothing is sent to it from here on, and its number may be
    /// reused.
    pub fn close(&mut self, session: SessionId, end: End) {
        let Some(mut gone) = self.sessions.close(session) else { return };
        self.shared.fold();
        for stream in self.shared.interest.streams_of(session) {
            self.shared.close(session, stream);
        }
        self.shared.gate.leave(session, &gone.session_state.user, &gone.session_state.pass);
        for stream in self.shared.private.of(session) {
            self.shared.close_private(session, stream);
        }
        self.shared.receipts.forget(session);
        self.shared.overflow.forget(session, &mut gone.session_state);
        self.shared.demands.keep(gone.session_state.parts.bytes(), 0);
        // A session that was ended has the reason of its end, whichever side closed the connection.
        let end = gone.session_state.over.unwrap_or(end);
        self.shared.streams = self.shared.streams.saturating_sub(gone.session_state.streams);
        let mut counters = gone.session_state.counters;
        counters.malformed = gone.provider.counters().malformed;
        self.counters.past.add(&counters);
        self.counters.cut += u64::from(matches!(end, End::Slow(_) | End::Stuck(_)));
        self.counters.stuck += u64::from(matches!(end, End::Stuck(_)));
        let (peer, user) = (gone.session_state.pass.peer, gone.session_state.user);
        if let Some(items) = gone.session_state.refusals.rest() {
            self.note(HubEvent::MoreItemsRefused { session, peer, user: user.clone(), items });
        }
        self.note(HubEvent::Gone { session, peer, user, end, counters });
    }

    /// Ends a session. A client that is logged in gets the reason, and up to 2 s to take it. Then the session is
    /// [over](Self::next_over).
    pub fn end(&mut self, session: SessionId, end: End) {
        let Some(there) = self.sessions.get_mut(session) else { return };
        there.session_state.end(end);
        self.over.push_back(session);
    }

    /// Sets another slow-client policy for one client. Messages that are already queued stay.
    pub fn set_slow(&mut self, session: SessionId, slow: SlowPolicy) {
        let Some(there) = self.sessions.get_mut(session) else { return };
        there.session_state.slow = slow;
        there.backlog.set_limit(slow.bytes());
    }

    /// Handles a message of a client.
    pub fn message(&mut self, now: Nanos, session: SessionId, message: &[u8], out: &mut dyn Outbox) {
        self.step(now, session, Some(message), REPLIES_AT_ONCE, out);
    }

    /// Handles a connection that has capacity again.
    pub fn room(&mut self, now: Nanos, session: SessionId, out: &mut dyn Outbox) {
        self.step(now, session, None, REPLIES, out);
    }

    /// Does what is due. Call it often: it returns at once while nothing is due.
    pub fn turn(&mut self, now: Nanos, connections: &mut impl Connections) {
        self.now = now;
        if now >= self.next_turn {
            self.do_what_is_due(connections);
        }
        self.send_owed(connections);
    }

    fn do_what_is_due(&mut self, connections: &mut impl Connections) {
        self.next_turn = Nanos(self.now.0.saturating_add(TURN_NS));
        self.fold_all(connections);
        self.tell_of_late(connections);
        self.part_with_strangers();
        for session in self.sessions.numbers() {
            let Some(there) = self.sessions.get(session) else { continue };
            if there.session_state.leaves.is_some() {
                self.leave(session, connections);
            } else {
                connections.with(session, |out| self.step(self.now, session, None, 0, out));
            }
        }
        self.restate(connections);
        // Sessions whose turn has come because other sessions freed queue capacity.
        while let Some(session) = self.shared.overflow.next() {
            connections.with(session, |out| self.step(self.now, session, None, REPLIES, out));
            if self.shared.overflow.next() == Some(session) {
                break;
            }
        }
    }

    /// Returns `true` if a session is owed replies for which its connection has capacity: the next [turn](Self::turn) sends some.
    #[must_use]
    pub fn is_owed_more(&self) -> bool {
        !self.owed_more.is_empty()
    }

    /// Sends a few deferred replies to a few sessions in turn, so that the requests of one client do not delay the updates of others.
    fn send_owed(&mut self, connections: &mut impl Connections) {
        for _ in 0..SESSIONS.min(self.owed_more.len()) {
            let Some(session) = self.owed_more.pop_front() else { return };
            // Its number may belong to another session by now, which then gets an early turn.
            if let Some(there) = self.sessions.get_mut(session) {
                there.session_state.is_owed_more = false;
                connections.with(session, |out| self.step(self.now, session, None, REPLIES, out));
            }
        }
    }

    /// Ends the oldest sessions without a login if there are too many: they would occupy the places of others.
    fn part_with_strangers(&mut self) {
        let most = self.shared.settings.max_strangers;
        if self.sessions() <= most {
            return;
        }
        let strangers = self.sessions.iter().filter(|(_, session)| session.is_stranger());
        let mut strangers: Vec<_> = strangers.map(|(id, there)| (there.session_state.since, id)).collect();
        strangers.sort_unstable();
        let too_many = strangers.len().saturating_sub(most);
        for (since, session) in strangers.into_iter().take(too_many) {
            if self.now.0.saturating_sub(since.0) >= STRANGE_NS {
                self.end(session, End::Stranger);
            }
        }
    }

    /// Reports all services as down to all clients, because the plant has ended or the hub is to stop. Queued output is still sent while the
    /// caller continues to call the hub.
    pub fn stop(&mut self, why: &str, connections: &mut impl Connections) {
        self.fold_all(connections);
        self.shared.is_up = false;
        let down = self.shared.services.end(why);
        self.announce(Seq(self.next_seq), &down, connections);
    }

    /// Returns `true` if no session waits for capacity or for the states of its items.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let waits = |there: &Session| there.is_behind() || there.session_state.restates.is_some();
        !self.sessions.iter().any(|(_, there)| waits(there))
    }

    /// Returns a password or token to check elsewhere, because the check is slow; pass the result to [`checked`](Self::checked). Call it only when
    /// the checker is idle: checks that wait here are in a fair order, checks already taken are not.
    pub fn next_check(&mut self) -> Option<Check> {
        self.shared.gate.next_check()
    }

    /// Handles the result of a check.
    pub fn checked(
        &mut self,
        now: Nanos,
        number: CheckNumber,
        verdict: Verdict,
        connections: &mut impl Connections,
    ) {
        self.now = now;
        let Some((id, outcome)) = self.shared.gate.checked(now, number, verdict) else { return };
        let Some(session) = self.sessions.get_mut(id) else { return };
        let pass = &mut session.session_state.pass;
        // Session numbers are reused: the result applies only if the session still waits for this check.
        if pass.pending.as_ref().is_some_and(|pending| pending.number == number) {
            pass.outcome = Some(outcome);
            connections.with(id, |out| self.step(now, id, None, REPLIES_AT_ONCE, out));
        }
    }

    /// Replaces the rules for logins and for access to items. At the next [`turn`](Self::turn) of each session, users who may no longer log in
    /// are logged out, and items that are no longer permitted are closed.
    pub fn set_access(&mut self, access: Arc<Access>) {
        self.shared.gate.set(access);
        self.next_turn = Nanos(0);
    }

    /// Returns the counters of logins and access.
    #[must_use]
    pub const fn access_counters(&self) -> &AccessCounters {
        &self.shared.gate.counters
    }

    /// Returns a session that the hub has ended; close its connection. Call until it returns `None`.
    pub fn next_over(&mut self) -> Option<SessionId> {
        while let Some(session) = self.over.pop_front() {
            let Some(there) = self.sessions.get_mut(session) else { continue };
            let Some(end) = &there.session_state.over else { continue };
            match there.session_state.leaves {
                None if end.is_told() => self.tell_why(session),
                Some(until) if self.now < until => {}
                _ => {
                    self.close(session, End::Stopped);
                    return Some(session);
                }
            }
        }
        None
    }

    /// Ends a session: its client gets only the reason from now on.
    fn tell_why(&mut self, id: SessionId) {
        self.shared.fold();
        for stream in self.shared.interest.streams_of(id) {
            self.shared.close(id, stream);
        }
        let Some(Session { provider, backlog, session_state }) = self.sessions.get_mut(id) else { return };
        let Some(end) = session_state.over.clone() else { return };
        session_state.leaves = Some(Nanos(self.now.0.saturating_add(LEAVE_NS)));
        session_state.owe_nothing();
        backlog.clear();
        backlog.set_limit(0);
        self.shared.overflow.forget(id, session_state);
        // The role has sent its reason already.
        if !matches!(end, End::Role(_)) {
            // The queue has no capacity, so the role owes the status: it follows the output in the connection.
            let _ = provider
                .login_status(backlog, suspect(StreamState::CLOSED, StateCode::NONE, &end.to_string()));
        }
    }

    /// Sends the reason to the client of an ended session, until it is sent or its time is over.
    fn leave(&mut self, id: SessionId, connections: &mut impl Connections) {
        let now = self.now;
        let Some(Session { provider, session_state, .. }) = self.sessions.get_mut(id) else { return };
        let is_out = connections.with(id, |out| provider.settle(out)).unwrap_or(true);
        if session_state.leaves.is_some_and(|until| now >= until) || is_out && connections.is_flushed(id) {
            session_state.leaves = Some(now);
            self.over.push_back(id);
        }
    }

    /// Returns the next event to log. Call until it returns `None`.
    pub fn next_event(&mut self) -> Option<HubEvent> {
        self.notes.pop_front()
    }

    /// Returns the directory of services that clients see.
    #[must_use]
    pub const fn directory(&self) -> &Directory {
        self.shared.services.directory()
    }

    /// Returns the memory use of the images.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.shared.images.memory()
    }

    /// Returns the counters of the hub. Open sessions are not included in [`Counters::past`].
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the number of open sessions.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Returns the last measured round-trip time of a session in ns; `None` if there is no measurement.
    #[must_use]
    pub fn round_trip_ns(&self, session: SessionId) -> Option<u64> {
        let there = self.sessions.get(session)?;
        Some(there.session_state.round_trip_ns).filter(|ns| *ns > 0)
    }

    fn note(&mut self, note: HubEvent) {
        if self.notes.len() >= MOST_NOTES {
            self.notes.pop_front();
        }
        self.notes.push_back(note);
    }

    /// Runs a step of a session: a message, due work, and at most `most` pending replies.
    fn step(&mut self, now: Nanos, id: SessionId, message: Option<&[u8]>, most: usize, out: &mut dyn Outbox) {
        self.now = now;
        self.shared.fold();
        let Some(session) = self.sessions.get_live(id) else { return };
        let Session { provider, backlog, session_state } = session;
        let (had, streams) = (backlog.len(), session_state.streams);
        // A client's message does not show capacity: it may request a thousand more items while none of the answers fits.
        let may_have_room = message.is_none() || !session_state.is_full;
        backlog.at(now);
        let mut desk = RequestHandler::new(id, now, &mut self.shared, session_state, &mut self.notes);
        let mut behind = Behind::new(backlog, out);
        desk.attend(provider, &mut behind);
        desk.note_more_refused();
        let done = match message {
            Some(message) => provider.message(now, message, &mut behind, &mut desk),
            None => provider.tick(now, &mut behind, &mut desk).map(|_| ()),
        };
        desk.done();
        // Images are sent only when nothing is queued before them: a stream that waits for an image has no queued updates.
        let mut stands_in_line = false;
        if may_have_room && backlog.send_on(out) {
            desk.session_state.is_full = false;
            stands_in_line = desk.go_on(provider, out, backlog, most);
        }
        let session_state = &mut session.session_state;
        let has_more = !stands_in_line && !session_state.is_full && !session_state.owes_nothing();
        if has_more && !std::mem::replace(&mut session_state.is_owed_more, true) {
            self.owed_more.push_back(id);
        }
        if !stands_in_line {
            // A session that could not take an image now does not block others.
            self.shared.overflow.leave(id, session_state);
        }
        self.shared.overflow.count(now, session_state, backlog);
        let kept = session_state.parts.bytes();
        if kept > 0 {
            session_state.parts.drop_late(now);
            self.shared.demands.keep(kept, session_state.parts.bytes());
        }
        if session_state.holds && !session_state.is_full && session.backlog.is_empty() {
            // Sources that could not be asked now are asked next time.
            session_state.holds = !self.shared.hold(id, &session.provider, false);
        }
        self.shared.hold_back(now, id, session);
        let session_state = &mut session.session_state;
        if session.backlog.len() < had || !session_state.is_full && session_state.owes_nothing() {
            session_state.stuck = None;
        }
        self.shared.drop_old(now, id, session);
        let session_state = &mut session.session_state;
        let open = session.provider.held_streams();
        self.shared.streams = (self.shared.streams + open).saturating_sub(session_state.streams);
        session_state.streams = open;
        let max_streams = self.shared.settings.max_streams;
        let most_streams = self.shared.settings.session.most_streams as usize;
        if open > streams && self.shared.streams > max_streams.saturating_add(most_streams) {
            session_state.end(End::Slow(TooMuch::Streams(max_streams)));
        }
        if let Some(end) = end_of(now, &self.shared, session, done) {
            session.session_state.end(end);
        }
        if session.session_state.over.is_some() {
            self.over.push_back(id);
        }
        while self.notes.len() > MOST_NOTES {
            self.notes.pop_front();
        }
    }
}

/// Returns the reason to end this session now, if there is one. `done` is the result of its role's last step.
#[inline]
fn end_of(now: Nanos, shared: &SharedState, session: &Session, done: Result<(), Over>) -> Option<End> {
    let (stuck_ms, max_malformed) = (shared.settings.stuck_ms, shared.settings.max_malformed);
    let is_long_since = |since: Option<Nanos>| {
        since.is_some_and(|since| now.0.saturating_sub(since.0) >= stuck_ms * 1_000_000)
    };
    if let Err(over) = done {
        return Some(End::Role(over));
    }
    if session.provider.counters().malformed >= max_malformed {
        return Some(End::Malformed(max_malformed));
    }
    if is_long_since(session.session_state.stuck) {
        return Some(End::Stuck(stuck_ms));
    }
    let is_wanted = shared.overflow.is_wanted() && is_long_since(session.session_state.rests);
    is_wanted.then_some(End::Slow(TooMuch::OverflowBudget(stuck_ms)))
}
