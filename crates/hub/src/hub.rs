//! The hub, one step at a time.

use std::collections::VecDeque;

use tapeline_measure::Nanos;
use tapeline_omm::domain::{Directory, ServicePart};
use tapeline_omm::role::Outbox;
use tapeline_plant::cache::Memory;

use crate::desk::Desk;
use crate::feeds;
use crate::market::Market;
use crate::note::{Counters, End, Note};
use crate::outlets::{Behind, Outlets, SessionId};
use crate::session::Session;
use crate::settings::Settings;

/// How often sessions are looked at for what is due, ns: fine enough for time-outs, and coarse enough for thousands.
const TURN_NS: u64 = 10_000_000;
/// Notes that wait to be taken; older ones make room, and are counted.
const MOST_NOTES: usize = 10_000;

/// All clients of one plant. See the [crate](crate).
#[derive(Debug)]
pub struct Hub {
    pub(crate) market: Market,
    pub(crate) sessions: Vec<Option<Session>>,
    free: Vec<SessionId>,
    pub(crate) over: VecDeque<SessionId>,
    notes: VecDeque<Note>,
    pub(crate) next_seq: u64,
    next_turn: Nanos,
    pub(crate) counters: Counters,
}

impl Hub {
    /// Without sessions, and with a service that is down until the first tick.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            market: Market::new(settings),
            sessions: Vec::new(),
            free: Vec::new(),
            over: VecDeque::new(),
            notes: VecDeque::new(),
            next_seq: 0,
            next_turn: Nanos(0),
            counters: Counters::default(),
        }
    }

    /// A client has connected.
    pub fn open(&mut self, now: Nanos) -> SessionId {
        self.counters.sessions += 1;
        let session = Session::new(&self.market.settings, now);
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
        let Some(gone) = place.take() else { return };
        for stream in self.market.interest.streams_of(session) {
            self.market.close(session, stream);
        }
        self.free.push(session);
        let mut counters = gone.account.counters;
        counters.malformed = gone.provider.counters().malformed;
        self.counters.past.add(&counters);
        self.counters.cut += u64::from(matches!(end, End::Slow | End::Stuck(_)));
        self.note(Note::Gone { session, user: gone.account.user, end, counters });
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
        for number in 0..self.sessions.len() {
            let session = SessionId(number as u32);
            if self.sessions[number].is_some() {
                outlets.with(session, |out| self.step(now, session, None, out));
            }
        }
    }

    /// The plant has ended, or the hub is to stop: tells all clients that the service is down. What they are owed is sent
    /// as before, as long as the caller gives it the chance.
    pub fn stop(&mut self, why: &str, outlets: &mut impl Outlets) {
        self.market.is_up = false;
        let down = ServicePart::State(feeds::service_state(false, why));
        self.tell([down], outlets);
    }

    /// Whether no session waits for room.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        !self.sessions.iter().flatten().any(Session::is_behind)
    }

    /// A session that the hub has ended: its connection is to be closed. To be asked until there is none.
    pub fn next_over(&mut self) -> Option<SessionId> {
        while let Some(session) = self.over.pop_front() {
            let there = self.sessions.get_mut(session.index()).and_then(Option::as_mut);
            if let Some(end) = there.and_then(|session| session.account.over.take()) {
                self.close(session, end);
                return Some(session);
            }
        }
        None
    }

    /// Something to write down. To be asked until there is nothing.
    pub fn next_note(&mut self) -> Option<Note> {
        self.notes.pop_front()
    }

    /// What clients are told of the service.
    #[must_use]
    pub const fn directory(&self) -> &Directory {
        &self.market.services
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

    fn note(&mut self, note: Note) {
        if self.notes.len() >= MOST_NOTES {
            self.notes.pop_front();
        }
        self.notes.push_back(note);
    }

    /// A session has its turn: a message of its, what is due, what it is owed.
    fn step(&mut self, now: Nanos, id: SessionId, message: Option<&[u8]>, out: &mut dyn Outbox) {
        let Some(Some(session)) = self.sessions.get_mut(id.index()) else { return };
        let Session { provider, backlog, account } = session;
        if account.over.is_some() {
            return;
        }
        let had = backlog.len();
        let mut desk = Desk { id, now, market: &mut self.market, account, notes: &mut self.notes };
        let mut behind = Behind::new(backlog, out);
        let done = match message {
            Some(message) => provider.message(now, message, &mut behind, &mut desk),
            None => provider.tick(now, &mut behind, &mut desk).map(|_| ()),
        };
        // Images go out when nothing is in front of them: a stream that waits for one has no updates in the backlog.
        if backlog.send_on(out) {
            desk.account.is_full = false;
            desk.go_on(provider, out);
        }
        let account = &mut session.account;
        if session.backlog.len() < had || !account.is_full && account.owes_nothing() {
            account.stuck = None;
        }
        let (stuck_ms, max_malformed) = (self.market.settings.stuck_ms, self.market.settings.max_malformed);
        if let Err(over) = done {
            account.end(End::Role(over));
        } else if session.provider.counters().malformed >= max_malformed {
            account.end(End::Malformed(max_malformed));
        } else if account.stuck.is_some_and(|since| now.0.saturating_sub(since.0) >= stuck_ms * 1_000_000) {
            account.end(End::Stuck(stuck_ms));
        }
        if account.over.is_some() {
            self.over.push_back(id);
        }
        while self.notes.len() > MOST_NOTES {
            self.notes.pop_front();
        }
    }

    /// Tells every client of a change of the directory.
    pub(crate) fn tell(&mut self, parts: impl IntoIterator<Item = ServicePart>, outlets: &mut impl Outlets) {
        let changes = feeds::change(self.market.settings.service_id, parts);
        for change in &changes {
            self.market.services.apply(change);
        }
        for (session, number) in self.sessions.iter_mut().zip(0..) {
            let Some(Session { provider, backlog, .. }) = session else { continue };
            let id = SessionId(number);
            // What there is no room for the role owes, and cuts who does not take even that: see its next step.
            outlets.with(id, |out| provider.directory_changed(&mut Behind::new(backlog, out), &changes));
        }
    }
}
