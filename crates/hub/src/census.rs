//! The sessions, seen from outside.

use tapeline_nanos::Nanos;

use crate::connections::SessionId;
use crate::event::SessionCounters;
use crate::hub::Hub;
use crate::slow_clients::SlowPolicy;

/// The state of one session at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionSeen<'a> {
    /// The session.
    pub session: SessionId,
    /// The user name; empty before the login.
    pub user: &'a str,
    /// Open streams, those of login and directory included.
    pub streams: usize,
    /// Updates queued for capacity on the connection.
    pub queued_messages: usize,
    /// Bytes of those updates.
    pub queued_bytes: usize,
    /// Images and other answers that are pending until there is capacity.
    pub owed: usize,
    /// Time since which output is queued; `None` without queued output.
    pub waits_since: Option<Nanos>,
    /// The policy of the session for slow clients.
    pub slow: SlowPolicy,
    /// The counters of the session.
    pub counters: SessionCounters,
}

impl Hub {
    /// Returns the state of every open session. Looks at each session, and takes no memory.
    pub fn seen(&self) -> impl Iterator<Item = SessionSeen<'_>> {
        self.sessions.iter().map(|(id, session)| {
            let session_state = &session.session_state;
            let malformed = session.provider.counters().malformed;
            SessionSeen {
                session: id,
                user: &session_state.user,
                streams: session.provider.open_streams(),
                queued_messages: session.backlog.len(),
                queued_bytes: session.backlog.held(),
                owed: session_state.owed(),
                waits_since: session.backlog.oldest().into_iter().chain(session_state.stuck).min(),
                slow: session_state.slow,
                counters: SessionCounters { malformed, ..session_state.counters },
            }
        })
    }
}
