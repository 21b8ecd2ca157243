//! What a role that is logged in to keeps of its peer: the login, and what it is owed.

use tapeline_nanos::Nanos;

use super::{Outbox, Over, Queue, Sent};
use crate::domain::{LoginRefresh, LoginRequest};
use crate::rwf::{
    AckHeader, CloseHeader, DataState, Domain, RequestHeader, StateCode, StatusHeader, StreamState, flags,
};
use crate::{Malformed, Refused, State};

/// What happened on a connection so far, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Messages taken.
    pub messages: u64,
    /// Of them, those that could not be read.
    pub malformed: u64,
    /// Requests that the role refused by itself, and messages that such a peer must not send.
    pub refused: u64,
    /// Messages on streams that are not open, and the like: passed over.
    pub ignored: u64,
}

/// Where the peer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Login {
    /// Nobody asked.
    Awaited,
    /// Somebody asked, and has had no answer.
    Asked(i32),
    Open(i32),
}

/// One peer.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) login: Login,
    pub(super) over: Option<Over>,
    pub(super) counters: Counters,
    owed: Queue,
    started: Nanos,
    login_timeout_ms: u64,
}

const NS_PER_MS: u64 = 1_000_000;

/// `from` and so many milliseconds.
pub(super) fn after(from: Nanos, ms: u64) -> Nanos {
    Nanos(from.0.saturating_add(ms.saturating_mul(NS_PER_MS)))
}

/// Whether a stream is over with this state, also if it stays so until somebody asks again.
pub(super) fn is_final(state: &State<'_>) -> bool {
    matches!(state.stream, StreamState::CLOSED | StreamState::CLOSED_RECOVER | StreamState::REDIRECTED)
}

impl Peer {
    pub(super) fn new(owed_bytes: usize, login_timeout_ms: u64, now: Nanos) -> Self {
        Self {
            login: Login::Awaited,
            over: None,
            counters: Counters::default(),
            owed: Queue::new(owed_bytes),
            started: now,
            login_timeout_ms,
        }
    }

    pub(super) fn verdict(&self) -> Result<(), Over> {
        self.over.map_or(Ok(()), Err)
    }

    /// Sends what is owed: whether that is all out, so that other messages may follow.
    #[inline]
    pub(super) fn settle(&mut self, out: &mut dyn Outbox) -> bool {
        self.owed.is_empty() || self.owed.send_on(out)
    }

    /// Sends what the role owes: at once, or when there is room.
    pub(super) fn owe(
        &mut self,
        out: &mut dyn Outbox,
        write: &mut dyn FnMut(&mut [u8]) -> Result<usize, Refused>,
    ) -> Result<Sent, Refused> {
        if self.settle(out) {
            let sent = out.encode(write)?;
            if sent != Sent::Full {
                return Ok(sent);
            }
        }
        let sent = self.owed.encode(write)?;
        // Also one that is too long to wait here: nothing that is owed is lost without a word.
        if !sent.is_queued() {
            self.over = Some(Over::Unread);
        }
        Ok(sent)
    }

    /// A status of the role's own.
    pub(super) fn say(&mut self, out: &mut dyn Outbox, domain: Domain, stream_id: i32, state: State<'_>) {
        let header = StatusHeader { state: Some(state), ..StatusHeader::new(domain, stream_id) };
        let _ = self.owe(out, &mut |room| header.encode(room));
    }

    /// Tells the peer that a stream is closed, or was never open.
    pub(super) fn refuse(
        &mut self,
        out: &mut dyn Outbox,
        (domain, stream_id): (Domain, i32),
        stream: StreamState,
        code: StateCode,
        text: &str,
    ) {
        self.counters.refused += 1;
        let state = State { stream, data: DataState::SUSPECT, code, text: text.as_bytes() };
        self.say(out, domain, stream_id, state);
    }

    /// Says what is wrong on a stream that stays as it is.
    pub(super) fn complain(&mut self, out: &mut dyn Outbox, (domain, stream_id): (Domain, i32), text: &str) {
        self.counters.refused += 1;
        let (data, code) = (DataState::NO_CHANGE, StateCode::USAGE_ERROR);
        let state = State { stream: StreamState::OPEN, data, code, text: text.as_bytes() };
        self.say(out, domain, stream_id, state);
    }

    /// Answers what another kind of peer would have asked.
    pub(super) fn refuse_as_misplaced(&mut self, out: &mut dyn Outbox, at: (Domain, i32), text: &str) {
        self.refuse(out, at, StreamState::CLOSED_RECOVER, StateCode::USAGE_ERROR, text);
    }

    /// A request of the login domain: who, and whether it is logged in already. `None`: it was refused.
    pub(super) fn login_request<'a>(
        &mut self,
        out: &mut dyn Outbox,
        request: &RequestHeader<'a>,
    ) -> Option<Result<(LoginRequest<'a>, bool), Malformed>> {
        let id = request.stream_id;
        if matches!(self.login, Login::Asked(login) | Login::Open(login) if login != id) {
            // Two logins on one connection are none.
            let text = "There is a login on another stream already";
            self.refuse(out, (Domain::LOGIN, id), StreamState::CLOSED, StateCode::USAGE_ERROR, text);
            return None;
        }
        let is_reissue = self.login == Login::Open(id);
        let read = LoginRequest::read(request).map(|read| (read, is_reissue));
        if read.is_ok() && !is_reissue {
            self.login = Login::Asked(id);
        }
        Some(read)
    }

    /// Lets the peer in with a refresh, or says something new about its login.
    pub(super) fn refresh_login(
        &mut self,
        out: &mut dyn Outbox,
        refresh: &LoginRefresh<'_>,
    ) -> Result<Sent, Refused> {
        let (Login::Asked(id) | Login::Open(id)) = self.login else { return Ok(Sent::NotOpen) };
        if is_final(&refresh.state) {
            return Ok(self.login_status(out, refresh.state));
        }
        let refresh = LoginRefresh { stream_id: id, ..refresh.clone() };
        let sent = self.owe(out, &mut |room| refresh.encode(room))?;
        if sent.is_queued() && refresh.state.stream == StreamState::OPEN {
            self.login = Login::Open(id);
        }
        Ok(sent)
    }

    /// A change of the login's state; one that is final ends the connection.
    pub(super) fn login_status(&mut self, out: &mut dyn Outbox, state: State<'_>) -> Sent {
        let (Login::Asked(id) | Login::Open(id)) = self.login else { return Sent::NotOpen };
        self.say(out, Domain::LOGIN, id, state);
        if is_final(&state) {
            self.over = Some(Over::Refused);
        }
        Sent::Queued
    }

    /// Whether this closes the login, with which all is over.
    pub(super) fn closes_login(&mut self, out: &mut dyn Outbox, close: &CloseHeader<'_>) -> bool {
        let is_login = matches!(self.login, Login::Asked(id) | Login::Open(id) if id == close.stream_id);
        if is_login && close.domain == Domain::LOGIN {
            self.acknowledge(out, close);
            self.over = Some(Over::LoggedOut);
            return true;
        }
        false
    }

    /// The receipt of a close, if one is wanted.
    pub(super) fn acknowledge(&mut self, out: &mut dyn Outbox, close: &CloseHeader<'_>) {
        if close.flags.has(flags::close::ACK) {
            // What is received has no id of its own but the stream's.
            let id = close.stream_id.unsigned_abs();
            self.owe_ack(out, &AckHeader::new(close.domain, close.stream_id, id));
        }
    }

    pub(super) fn owe_ack(&mut self, out: &mut dyn Outbox, ack: &AckHeader<'_>) {
        let _ = self.owe(out, &mut |room| ack.encode(room));
    }

    /// When the peer must have logged in, as long as it has not; that is over then.
    pub(super) fn login_due(&mut self, now: Nanos) -> Option<Nanos> {
        let due = after(self.started, self.login_timeout_ms);
        if self.login != Login::Awaited {
            return None;
        }
        if now >= due {
            self.over = Some(Over::NoLogin(self.login_timeout_ms));
        }
        Some(due)
    }
}
