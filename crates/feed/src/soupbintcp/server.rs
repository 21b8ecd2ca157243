//! The server's end of one connection: checks the login, replays from the requested sequence, and continues with new messages.

use tapeline_nanos::Nanos;

use super::{
    ClientPacket, END_OF_SESSION, LOGIN_NS, LONGEST_PACKET, Login, Password, Reject, SERVER_HEARTBEAT,
    Silence, SoupSession, Split, Username, Violation, accepted, rejected, sequenced_header, split,
};
use crate::history::History;
use crate::line;

/// The accounts that may log in. Without accounts every login is accepted.
#[derive(Clone, Debug, Default)]
pub struct Accounts(Vec<(Username, Password)>);

impl Accounts {
    /// Adds an account.
    pub fn add(&mut self, username: Username, password: Password) {
        self.0.push((username, password));
    }

    /// Returns `true` if every login is accepted.
    #[must_use]
    pub fn are_open(&self) -> bool {
        self.0.is_empty()
    }

    fn admit(&self, login: &Login) -> bool {
        // Every account and every password is compared, so that the time reveals nothing.
        let matches = self.0.iter().fold(false, |matches, (username, password)| {
            matches | (*username == login.username) & password.matches(&login.password)
        });
        self.are_open() || matches
    }
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// The client has not logged in yet.
    AwaitingLogin,
    /// Messages are sent.
    Live {
        /// The sequence of the next message.
        next: u64,
    },
    /// Nothing more is sent: close the connection when the output has been sent.
    Over(Over),
}

/// The reason for the end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Over {
    /// The login was refused.
    Rejected(Reject),
    /// The client logged out.
    Logout,
    /// The session is over, and the client has all its messages and the end.
    EndOfSession,
    /// The next message is no longer in the history, or never was: messages were dropped for newer ones, or their session for the next. The client
    /// gets no packet about it, because an end of session would mean the end of its messages. A new login gets the sequence from which the session
    /// is available, or the answer that the session is not available.
    NotHere {
        /// The sequence of that message.
        sequence: u64,
    },
    /// The client was silent for too long, or sent no login.
    Silent,
}

/// One connection, from its acceptance on. Bytes and time are arguments; output is appended to a buffer of the
/// caller.
#[derive(Debug)]
pub struct SoupServer {
    state: ServerState,
    session: SoupSession,
    began: Nanos,
    silence: Silence,
    sent: u64,
    sent_bytes: u64,
}

impl SoupServer {
    /// Creates the state of a connection that has just been accepted.
    #[must_use]
    pub const fn new(now: Nanos) -> Self {
        let state = ServerState::AwaitingLogin;
        Self {
            state,
            session: SoupSession::CURRENT,
            began: now,
            silence: Silence::new(now),
            sent: 0,
            sent_bytes: 0,
        }
    }

    /// Takes one packet from the front of the received bytes. Returns its number of bytes, or 0 if it is not
    /// complete. Appends an answer to a login to `out`.
    ///
    /// # Errors
    /// [`Violation`]; nothing has changed, and the connection should be closed.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        accounts: &Accounts,
        history: &History,
        now: Nanos,
        out: &mut Vec<u8>,
    ) -> Result<usize, Violation> {
        let frame = match split(bytes)? {
            Split::Packet(frame) => frame,
            Split::Incomplete { .. } => return Ok(0),
        };
        let packet = ClientPacket::decode(frame)?;
        match (self.state, packet) {
            // Input after the end of the connection is ignored.
            (ServerState::Over(_), _) => {}
            (ServerState::AwaitingLogin, ClientPacket::Login(login)) => {
                self.log_in(&login, accounts, history, now, out);
            }
            (ServerState::AwaitingLogin, ClientPacket::Debug(_)) => {}
            (ServerState::AwaitingLogin, _) => return Err(Violation::BeforeLogin),
            (ServerState::Live { .. }, ClientPacket::Login(_)) => return Err(Violation::SecondLogin),
            (ServerState::Live { .. }, ClientPacket::Logout) => self.state = ServerState::Over(Over::Logout),
            // This is not an order entry port: packets without a sequence are ignored.
            (
                ServerState::Live { .. },
                ClientPacket::Heartbeat | ClientPacket::Unsequenced(_) | ClientPacket::Debug(_),
            ) => {}
        }
        self.silence.heard(now);
        Ok(frame.bytes)
    }

    /// Appends the output that is due, until `out` has `room` bytes or nothing is left: messages, a heartbeat, the end of
    /// the session.
    pub fn serve(&mut self, history: &History, now: Nanos, out: &mut Vec<u8>, room: usize) {
        let login_is_late = self.state == ServerState::AwaitingLogin && now >= self.began + LOGIN_NS;
        let is_silent = matches!(self.state, ServerState::Live { .. }) && self.silence.is_dead(now);
        if login_is_late || is_silent {
            self.state = ServerState::Over(Over::Silent);
        }
        let ServerState::Live { mut next } = self.state else { return };
        let before = out.len();
        let present = session_of(history.session()) == Some(self.session);
        if present {
            for (sequence, message) in history.run(next) {
                let Some(header) = sequenced_header(message.len()) else { break };
                if out.len() + header.len() + message.len() > room.max(LONGEST_PACKET) {
                    break;
                }
                out.extend_from_slice(&header);
                out.extend_from_slice(message);
                next = sequence + 1;
                self.sent += 1;
                self.sent_bytes += message.len() as u64;
            }
        }
        self.state = ServerState::Live { next };
        let is_complete = if present {
            history.is_ended() && next >= history.next()
        } else {
            // The end of a session before the previous one is no longer known.
            history
                .over()
                .is_some_and(|(session, end)| session_of(Some(session)) == Some(self.session) && next >= end)
        };
        if is_complete {
            out.extend_from_slice(&END_OF_SESSION);
            self.state = ServerState::Over(Over::EndOfSession);
        } else if !present || (next < history.next() && history.message(next).is_none()) {
            self.state = ServerState::Over(Over::NotHere { sequence: next });
        }
        if out.len() > before {
            self.silence.said(now);
        } else if self.silence.is_heartbeat_due(now) && out.len() < room {
            out.extend_from_slice(&SERVER_HEARTBEAT);
            self.silence.said(now);
        }
    }

    /// Returns the state of the connection.
    #[must_use]
    pub const fn state(&self) -> ServerState {
        self.state
    }

    /// Returns the number of sent messages.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns the bytes of those messages, without their headers.
    #[must_use]
    pub const fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// Returns the time of the next call of [`serve`](Self::serve) unless something else happens.
    #[must_use]
    pub fn next_due(&self) -> Nanos {
        match self.state {
            ServerState::AwaitingLogin => self.began + LOGIN_NS,
            ServerState::Live { .. } => self.silence.next_due(),
            ServerState::Over(_) => self.began,
        }
    }

    fn log_in(
        &mut self,
        login: &Login,
        accounts: &Accounts,
        history: &History,
        now: Nanos,
        out: &mut Vec<u8>,
    ) {
        let session = session_of(history.session())
            .filter(|session| login.session.is_current() || login.session == *session);
        let answer = match session {
            _ if !accounts.admit(login) => Err(Reject::NotAuthorized),
            None => Err(Reject::SessionNotAvailable),
            Some(session) => Ok(session),
        };
        match answer {
            Ok(session) => {
                let wanted = match login.sequence {
                    0 => history.next().saturating_sub(1).max(1),
                    sequence => sequence,
                };
                // Skips messages that are not available: the answer tells the client.
                let next = (wanted.max(history.first())..history.next())
                    .find(|sequence| history.message(*sequence).is_some())
                    .unwrap_or_else(|| wanted.max(history.next()));
                self.session = session;
                self.state = ServerState::Live { next };
                out.extend_from_slice(&accepted(session, next));
            }
            Err(reject) => {
                self.state = ServerState::Over(Over::Rejected(reject));
                out.extend_from_slice(&rejected(reject));
            }
        }
        self.silence.said(now);
    }
}

/// Returns a history's session, if the protocol can carry its name.
fn session_of(session: Option<line::Session>) -> Option<SoupSession> {
    match session? {
        line::Session::MoldUdp64(session) => Some(SoupSession(session.0)),
        line::Session::IexTp { .. } => None,
    }
}
