//! The sessions, seen from outside.

use tapeline_nanos::Nanos;

use crate::connections::SessionId;
use crate::event::SessionCounters;
use crate::hub::Hub;
use crate::settings::SlowPolicy;

/// A session at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionSeen<'a> {
    /// Which.
    pub session: SessionId,
    /// Who it is; empty before the login.
    pub user: &'a str,
    /// Streams that it has open, those of login and directory included.
    pub streams: usize,
    /// Updates that wait for room in its connection.
    pub queued_messages: usize,
    /// Bytes of them.
    pub queued_bytes: usize,
    /// Images and other answers that are made when there is room.
    pub owed: usize,
    /// Since when something waits for it.
    pub waits_since: Option<Nanos>,
    /// What becomes of its updates when it is slow.
    pub slow: SlowPolicy,
    /// What it did and got.
    pub counters: SessionCounters,
}

impl Hub {
    /// All sessions that are open. Costs a look at each, and no memory.
    pub fn seen(&self) -> impl Iterator<Item = SessionSeen<'_>> {
        self.sessions.iter().zip(0..).filter_map(|(session, number)| {
            let session = session.as_ref()?;
            let session_state = &session.session_state;
            let malformed = session.provider.counters().malformed;
            Some(SessionSeen {
                session: SessionId(number),
                user: &session_state.user,
                streams: session.provider.open_streams(),
                queued_messages: session.backlog.len(),
                queued_bytes: session.backlog.held(),
                owed: session_state.owed(),
                waits_since: session.backlog.oldest().into_iter().chain(session_state.stuck).min(),
                slow: session_state.slow,
                counters: SessionCounters { malformed, ..session_state.counters },
            })
        })
    }
}
