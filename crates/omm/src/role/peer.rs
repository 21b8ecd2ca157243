//! State of a peer that logs in to a role: its login, and its pending output.

use tapeline_nanos::Nanos;

use super::{Outbox, Over, Queue, Sent};
use crate::domain::{LoginRefresh, LoginRequest};
use crate::rwf::{
    AckHeader, CloseHeader, DataState, Domain, RequestHeader, StateCode, StatusHeader, StreamState, flags,
};
use crate::{Malformed, Refused, State};

/// Counters of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConnectionCounters {
    /// Messages processed.
    pub messages: u64,
    /// Messages that could not be read; part of `messages`.
    pub malformed: u64,
    /// Requests that the role refused by itself, and messages that this kind of peer must not send.
    pub refused: u64,
    /// Messages on streams that are not open, and similar ones: ignored.
    pub ignored: u64,
}

/// State of the peer's login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Login {
    /// No login was requested.
    Awaited,
    /// A login was requested, and is unanswered.
    Asked(i32),
    Open(i32),
}

/// One peer.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) login: Login,
    pub(super) over: Option<Over>,
    pub(super) counters: ConnectionCounters,
    owed: Queue,
    started: Nanos,
    login_timeout_ms: u64,
}

const NS_PER_MS: u64 = 1_000_000;

/// Returns the time `ms` milliseconds after `from`.
pub(super) fn after(from: Nanos, ms: u64) -> Nanos {
    Nanos(from.0.saturating_add(ms.saturating_mul(NS_PER_MS)))
}

/// Returns `true` if a stream ends with this state, even if it can be requested again.
pub(super) fn is_final(state: &State<'_>) -> bool {
    matches!(state.stream, StreamState::CLOSED | StreamState::CLOSED_RECOVER | StreamState::REDIRECTED)
}

impl Peer {
    pub(super) fn new(owed_bytes: usize, login_timeout_ms: u64, now: Nanos) -> Self {
        Self {
            login: Login::Awaited,
            over: None,
            counters: ConnectionCounters::default(),
            owed: Queue::new(owed_bytes),
            started: now,
            login_timeout_ms,
        }
    }

    pub(super) fn verdict(&self) -> Result<(), Over> {
        self.over.map_or(Ok(()), Err)
    }

    /// Sends pending output. Returns `true` if all was sent, so that other messages may follow.
    #[inline]
    pub(super) fn settle(&mut self, out: &mut dyn Outbox) -> bool {
        self.owed.is_empty() || self.owed.send_on(out)
    }

    /// Sends a message of the role itself: at once, or when there is space.
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
        // Also for a message that is too long for the queue: pending output is never lost without notice.
        if !sent.is_queued() {
            self.over = Some(Over::Unread);
        }
        Ok(sent)
    }

    /// Sends a status of the role itself.
    pub(super) fn say(&mut self, out: &mut dyn Outbox, domain: Domain, stream_id: i32, state: State<'_>) {
        let header = StatusHeader { state: Some(state), ..StatusHeader::new(domain, stream_id) };
        let _ = self.owe(out, &mut |room| header.encode(room));
    }

    /// Informs the peer that a stream is closed, or was never open.
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

    /// Reports an error on a stream that does not change.
    pub(super) fn complain(&mut self, out: &mut dyn Outbox, (domain, stream_id): (Domain, i32), text: &str) {
        self.counters.refused += 1;
        let (data, code) = (DataState::NO_CHANGE, StateCode::USAGE_ERROR);
        let state = State { stream: StreamState::OPEN, data, code, text: text.as_bytes() };
        self.say(out, domain, stream_id, state);
    }

    /// Processes a login request; returns it, and whether the peer is logged in already. `None`: it was refused.
    pub(super) fn login_request<'a>(
        &mut self,
        out: &mut dyn Outbox,
        request: &RequestHeader<'a>,
    ) -> Option<Result<(LoginRequest<'a>, bool), Malformed>> {
        let id = request.stream_id;
        if matches!(self.login, Login::Asked(login) | Login::Open(login) if login != id) {
            // A connection cannot have two logins.
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

    /// Accepts the peer's login with a refresh, or changes the login.
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

    /// Changes the state of the login; a final state ends the connection.
    pub(super) fn login_status(&mut self, out: &mut dyn Outbox, state: State<'_>) -> Sent {
        let (Login::Asked(id) | Login::Open(id)) = self.login else { return Sent::NotOpen };
        self.say(out, Domain::LOGIN, id, state);
        if is_final(&state) {
            self.over = Some(Over::Refused);
        }
        Sent::Queued
    }

    /// Returns `true` if this closes the login, which ends the connection.
    pub(super) fn closes_login(&mut self, out: &mut dyn Outbox, close: &CloseHeader<'_>) -> bool {
        let is_login = matches!(self.login, Login::Asked(id) | Login::Open(id) if id == close.stream_id);
        if is_login && close.domain == Domain::LOGIN {
            self.acknowledge(out, close);
            self.over = Some(Over::LoggedOut);
            return true;
        }
        false
    }

    /// Acknowledges a close, if it requests that.
    pub(super) fn acknowledge(&mut self, out: &mut dyn Outbox, close: &CloseHeader<'_>) {
        if close.flags.has(flags::close::ACK) {
            // A close has no id other than that of its stream.
            let id = close.stream_id.unsigned_abs();
            self.owe_ack(out, &AckHeader::new(close.domain, close.stream_id, id));
        }
    }

    pub(super) fn owe_ack(&mut self, out: &mut dyn Outbox, ack: &AckHeader<'_>) {
        let _ = self.owe(out, &mut |room| ack.encode(room));
    }

    /// Returns the time limit for the login, while there is none; at that time, ends the connection.
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
