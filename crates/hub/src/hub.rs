//! The hub, one step at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use tapeline_nanos::Nanos;
use tapeline_omm::State;
use tapeline_omm::domain::Directory;
use tapeline_omm::role::Outbox;
use tapeline_omm::rwf::{DataState, StateCode, StreamState};
use tapeline_plant::Seq;
use tapeline_plant::cache::Memory;
use tapeline_plant::demand::Demand;

use crate::access::{Access, Check, CheckNumber, Peer, Verdict};
use crate::ahead::MOST_EXPECTED;
use crate::anew::Anew;
use crate::desk::Desk;
use crate::fan_out::age_of_too_old;
use crate::interest::Place;
use crate::interest::Standing;
use crate::market::Market;
use crate::note::{AccessCounters, Counters, End, Note, TooMuch};
use crate::outlets::{Behind, Outlets, SessionId};
use crate::session::{Owed, Session};
use crate::settings::{Settings, SlowPolicy};

/// How often sessions are looked at for what is due, ns: fine enough for time-outs, and coarse enough for thousands.
const TURN_NS: u64 = 10_000_000;
/// For how long a session that is ended may take what tells it why, ns: as many seconds as a hub that stops has for the
/// last words to all.
const LEAVE_NS: u64 = 2_000_000_000;
/// A client has so long for its login where there are too many without one, ns.
const STRANGE_NS: u64 = 1_000_000_000;
/// Notes that wait to be taken; older ones make room, and are counted.
const MOST_NOTES: usize = 10_000;

/// All clients of one plant. See the [crate](crate).
#[derive(Debug)]
pub struct Hub {
    pub(crate) market: Market,
    pub(crate) sessions: Vec<Option<Session>>,
    free: Vec<SessionId>,
    pub(crate) over: VecDeque<SessionId>,
    pub(crate) notes: VecDeque<Note>,
    pub(crate) next_seq: u64,
    /// Items whose images are of before a gap.
    pub(crate) anew: Anew,
    /// The session whose streams were told their items' states last.
    pub(crate) restating: usize,
    next_turn: Nanos,
    now: Nanos,
    pub(crate) counters: Counters,
    /// Items of the ticks that are expected.
    pub(crate) expected: Vec<Place>,
}

impl Hub {
    /// Without sessions, and with services that are down until the plant says otherwise.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            market: Market::new(settings),
            sessions: Vec::new(),
            free: Vec::new(),
            over: VecDeque::new(),
            notes: VecDeque::new(),
            next_seq: 0,
            anew: Anew::default(),
            restating: 0,
            next_turn: Nanos(0),
            now: Nanos(0),
            counters: Counters::default(),
            expected: Vec::with_capacity(MOST_EXPECTED),
        }
    }

    /// A client has connected, from where nobody knows.
    pub fn open(&mut self, now: Nanos) -> SessionId {
        self.open_from(now, Peer::default())
    }

    /// A client has connected.
    pub fn open_from(&mut self, now: Nanos, peer: Peer) -> SessionId {
        self.counters.sessions += 1;
        let mut session = Session::new(&self.market.settings, now);
        session.account.pass.peer = peer;
        session.account.serial = self.counters.sessions;
        if let Some(id) = self.free.pop() {
            self.sessions[id.index()] = Some(session);
            return id;
        }
        self.sessions.push(Some(session));
        // Cannot cut: there are fewer connections than that.
        SessionId((self.sessions.len() - 1) as u32)
    }

    /// A client's connection is over, or the caller wants it to be: nothing is sent to it from here on, and its number may
    /// be another's.
    pub fn close(&mut self, session: SessionId, end: End) {
        let Some(place) = self.sessions.get_mut(session.index()) else { return };
        let Some(mut gone) = place.take() else { return };
        self.market.fold();
        for stream in self.market.interest.streams_of(session) {
            self.market.close(session, stream);
        }
        self.market.gate.leave(session, &gone.account.user, &gone.account.pass);
        for stream in self.market.private.of(session) {
            if let Some(ticket) = self.market.private.close(session, stream) {
                self.market.demands.last_word(Demand::ClosePrivate { ticket });
            }
        }
        self.market.receipts.forget(session);
        self.market.rest.forget(session, &mut gone.account);
        self.market.demands.keep(gone.account.parts.bytes(), 0);
        self.free.push(session);
        // One that was told why it is over is over for that reason, whoever closed the connection first.
        let end = gone.account.over.unwrap_or(end);
        self.market.streams = self.market.streams.saturating_sub(gone.account.streams);
        let mut counters = gone.account.counters;
        counters.malformed = gone.provider.counters().malformed;
        self.counters.past.add(&counters);
        self.counters.cut += u64::from(matches!(end, End::Slow(_) | End::Stuck(_)));
        self.counters.stuck += u64::from(matches!(end, End::Stuck(_)));
        let peer = gone.account.pass.peer;
        self.note(Note::Gone { session, peer, user: gone.account.user, end, counters });
    }

    /// Ends a session: its client is told why, if it is logged in, and has a moment to take that. Then it is
    /// [over](Self::next_over).
    pub fn end(&mut self, session: SessionId, end: End) {
        let Some(Some(there)) = self.sessions.get_mut(session.index()) else { return };
        there.account.end(end);
        self.over.push_back(session);
    }

    /// Another policy for one client than the settings'. What waits for it already stays.
    pub fn set_slow(&mut self, session: SessionId, slow: SlowPolicy) {
        let Some(Some(there)) = self.sessions.get_mut(session.index()) else { return };
        there.account.slow = slow;
        there.backlog.set_limit(slow.bytes());
    }

    /// A client has sent a message.
    pub fn message(&mut self, now: Nanos, session: SessionId, message: &[u8], out: &mut dyn Outbox) {
        self.step(now, session, Some(message), out);
    }

    /// A client's connection, which had none, has room again.
    pub fn room(&mut self, now: Nanos, session: SessionId, out: &mut dyn Outbox) {
        self.step(now, session, None, out);
    }

    /// Does what is due. To be called often: it does nothing for as long as nothing can be due.
    pub fn turn(&mut self, now: Nanos, outlets: &mut impl Outlets) {
        if now < self.next_turn {
            return;
        }
        self.next_turn = Nanos(now.0.saturating_add(TURN_NS));
        self.now = now;
        self.fold_all(now, outlets);
        self.tell_of_late(now, outlets);
        self.part_with_strangers(now);
        for number in 0..self.sessions.len() {
            let session = SessionId(number as u32);
            let Some(there) = &self.sessions[number] else { continue };
            if there.account.leaves.is_some() {
                self.leave(session, outlets);
            } else {
                outlets.with(session, |out| self.step(now, session, None, out));
            }
        }
        self.restate(now, outlets);
        // Those whose turn has come by what others have taken meanwhile.
        while let Some(session) = self.market.rest.next() {
            outlets.with(session, |out| self.step(now, session, None, out));
            if self.market.rest.next() == Some(session) {
                break;
            }
        }
    }

    /// Ends the oldest of those that have not logged in, where there are too many of them: they would keep others out.
    fn part_with_strangers(&mut self, now: Nanos) {
        let most = self.market.settings.max_strangers;
        if self.sessions() <= most {
            return;
        }
        let strangers = self.sessions.iter().zip(0_u32..).filter_map(|(session, number)| {
            let session = session.as_ref().filter(|session| session.is_stranger())?;
            Some((session.account.since, SessionId(number)))
        });
        let mut strangers: Vec<_> = strangers.collect();
        strangers.sort_unstable();
        let too_many = strangers.len().saturating_sub(most);
        for (since, session) in strangers.into_iter().take(too_many) {
            if now.0.saturating_sub(since.0) >= STRANGE_NS {
                self.end(session, End::Stranger);
            }
        }
    }

    /// The plant has ended, or the hub is to stop: tells all clients that the services are down. What they are owed is sent
    /// as before, as long as the caller gives it the chance.
    pub fn stop(&mut self, why: &str, outlets: &mut impl Outlets) {
        self.fold_all(self.now, outlets);
        self.market.is_up = false;
        let down = self.market.services.end(why);
        self.announce(self.now, Seq(self.next_seq), &down, outlets);
    }

    /// Whether no session waits for room, or to be told states.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let waits = |there: &Session| there.is_behind() || there.account.restates.is_some();
        !self.sessions.iter().flatten().any(waits)
    }

    /// A password or token to be checked, where that takes its time, and the answer to be brought to [`checked`](Self::checked).
    /// To be asked when whoever checks has nothing to do: what waits here is in a fair order, what has been handed out is not.
    pub fn next_check(&mut self) -> Option<Check> {
        self.market.gate.next_check()
    }

    /// A check was made.
    pub fn checked(&mut self, now: Nanos, number: CheckNumber, verdict: Verdict, outlets: &mut impl Outlets) {
        let Some((id, outcome)) = self.market.gate.checked(now, number, verdict) else { return };
        let Some(Some(session)) = self.sessions.get_mut(id.index()) else { return };
        let pass = &mut session.account.pass;
        // The place of a session is used again: what was checked is the login that waits there, or nobody's.
        if pass.pending.as_ref().is_some_and(|pending| pending.number == number) {
            pass.outcome = Some(outcome);
            outlets.with(id, |out| self.step(now, id, None, out));
        }
    }

    /// From now on something else is set of who may in, and who may see what. Who may not be in any more is logged out, and
    /// what may not be seen any more is closed, at each session's next [`turn`](Self::turn).
    pub fn set_access(&mut self, access: Arc<Access>) {
        self.market.gate.set(access);
        self.next_turn = Nanos(0);
    }

    /// What happened at the door.
    #[must_use]
    pub const fn access_counters(&self) -> &AccessCounters {
        &self.market.gate.counters
    }

    /// A session that the hub has ended: its connection is to be closed. To be asked until there is none.
    pub fn next_over(&mut self) -> Option<SessionId> {
        while let Some(session) = self.over.pop_front() {
            let Some(Some(there)) = self.sessions.get_mut(session.index()) else { continue };
            let Some(end) = &there.account.over else { continue };
            match there.account.leaves {
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

    /// A session is over: its client gets nothing more but the reason.
    fn tell_why(&mut self, id: SessionId) {
        self.market.fold();
        for stream in self.market.interest.streams_of(id) {
            self.market.close(id, stream);
        }
        let Some(Some(Session { provider, backlog, account })) = self.sessions.get_mut(id.index()) else {
            return;
        };
        let Some(end) = account.over.clone() else { return };
        account.leaves = Some(Nanos(self.now.0.saturating_add(LEAVE_NS)));
        account.owe_nothing();
        backlog.clear();
        backlog.set_limit(0);
        self.market.rest.forget(id, account);
        // The role has said why it refuses.
        if !matches!(end, End::Role(_)) {
            let (text, code) = (end.to_string(), StateCode::NONE);
            let (stream, data) = (StreamState::CLOSED, DataState::SUSPECT);
            // Nothing fits there, so the role owes it: it goes out behind what the connection holds.
            let _ = provider.login_status(backlog, State { stream, data, code, text: text.as_bytes() });
        }
    }

    /// Sends a session that is over what tells it why, until that is out, or the time for it.
    fn leave(&mut self, id: SessionId, outlets: &mut impl Outlets) {
        let now = self.now;
        let Some(Some(Session { provider, account, .. })) = self.sessions.get_mut(id.index()) else { return };
        let is_out = outlets.with(id, |out| provider.settle(out)).unwrap_or(true);
        if account.leaves.is_some_and(|until| now >= until) || is_out && outlets.is_flushed(id) {
            account.leaves = Some(now);
            self.over.push_back(id);
        }
    }

    /// Something to write down. To be asked until there is nothing.
    pub fn next_note(&mut self) -> Option<Note> {
        self.notes.pop_front()
    }

    /// What clients are told of the services.
    #[must_use]
    pub const fn directory(&self) -> &Directory {
        self.market.services.directory()
    }

    /// What the images take.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.market.images.memory()
    }

    /// What happened so far. Sessions that are open are not among those that are past.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Sessions that are open.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.sessions.len() - self.free.len()
    }

    /// How long a message took to a client and back when that was last measured, ns; `None` where it never was.
    #[must_use]
    pub fn round_trip_ns(&self, session: SessionId) -> Option<u64> {
        let there = self.sessions.get(session.index())?.as_ref()?;
        Some(there.account.round_trip_ns).filter(|ns| *ns > 0)
    }

    fn note(&mut self, note: Note) {
        if self.notes.len() >= MOST_NOTES {
            self.notes.pop_front();
        }
        self.notes.push_back(note);
    }

    /// A session has its turn: a message of its, what is due, what it is owed.
    fn step(&mut self, now: Nanos, id: SessionId, message: Option<&[u8]>, out: &mut dyn Outbox) {
        self.now = now;
        self.market.fold();
        let Some(Some(session)) = self.sessions.get_mut(id.index()) else { return };
        let Session { provider, backlog, account } = session;
        if account.over.is_some() {
            return;
        }
        let (had, streams) = (backlog.len(), account.streams);
        // That a client says something is no news of room: it may ask for a thousand items more, none of which would find any.
        let may_have_room = message.is_none() || !account.is_full;
        backlog.at(now);
        let mut desk = Desk::new(id, now, &mut self.market, account, &mut self.notes);
        let mut behind = Behind::new(backlog, out);
        desk.attend(provider, &mut behind);
        let done = match message {
            Some(message) => provider.message(now, message, &mut behind, &mut desk),
            None => provider.tick(now, &mut behind, &mut desk).map(|_| ()),
        };
        desk.done();
        // Images go out when nothing is in front of them: a stream that waits for one has no updates in the backlog.
        let mut stands_in_line = false;
        if may_have_room && backlog.send_on(out) {
            desk.account.is_full = false;
            stands_in_line = desk.go_on(provider, out, backlog);
        }
        let account = &mut session.account;
        if !stands_in_line {
            // Who could not take an image now holds nobody up who can.
            self.market.rest.leave(id, account);
        }
        self.market.rest.count(now, account, backlog);
        let kept = account.parts.bytes();
        if kept > 0 {
            account.parts.drop_late(now);
            self.market.demands.keep(kept, account.parts.bytes());
        }
        if account.holds && !account.is_full && session.backlog.is_empty() {
            // Those that there was no room to ask are asked next time.
            account.holds = !self.market.hold(id, &session.provider, false);
        }
        self.market.hold_back(now, id, session);
        let account = &mut session.account;
        if session.backlog.len() < had || !account.is_full && account.owes_nothing() {
            account.stuck = None;
        }
        let age_ms = self.market.settings.age_ms(account.slow);
        if let Some(age_ms) = age_of_too_old(now, &session.backlog, age_ms) {
            let interest = &mut self.market.interest;
            session.too_old(age_ms, |account, provider, stream| {
                if let Some(open) = interest.stream_mut(id, stream)
                    && open.standing == Standing::Current
                {
                    open.standing = Standing::Gap;
                    account.owe(provider, stream, Owed::Image);
                }
            });
        }
        let account = &mut session.account;
        let open = session.provider.held_streams();
        self.market.streams = (self.market.streams + open).saturating_sub(account.streams);
        account.streams = open;
        let (max_streams, most_streams) =
            (self.market.settings.max_streams, self.market.settings.session.most_streams);
        if open > streams && self.market.streams > max_streams.saturating_add(most_streams as usize) {
            account.end(End::Slow(TooMuch::Streams(max_streams)));
        }
        let (stuck_ms, max_malformed) = (self.market.settings.stuck_ms, self.market.settings.max_malformed);
        if let Err(over) = done {
            account.end(End::Role(over));
        } else if session.provider.counters().malformed >= max_malformed {
            account.end(End::Malformed(max_malformed));
        } else if account.stuck.is_some_and(|since| now.0.saturating_sub(since.0) >= stuck_ms * 1_000_000) {
            account.end(End::Stuck(stuck_ms));
        } else if self.market.rest.is_wanted()
            && account.rests.is_some_and(|since| now.0.saturating_sub(since.0) >= stuck_ms * 1_000_000)
        {
            account.end(End::Slow(TooMuch::Rest(stuck_ms)));
        }
        if account.over.is_some() {
            self.over.push_back(id);
        }
        while self.notes.len() > MOST_NOTES {
            self.notes.pop_front();
        }
    }
}
