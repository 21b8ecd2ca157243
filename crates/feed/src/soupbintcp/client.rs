//! The client's end of one connection.

use tapeline_nanos::Nanos;

use super::{
    CLIENT_HEARTBEAT, LOGIN_BYTES, Login, MalformedSoupPacket, Reject, ServerPacket, Silence, SoupSession,
    Split, login, split,
};

/// The protocol error of a server after which the connection is unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// The bytes are not a packet, or not one that a server sends.
    #[error(transparent)]
    Malformed(#[from] MalformedSoupPacket),
    /// The first packet is not an answer to the login.
    #[error("something came before the login was settled")]
    BeforeLogin,
    /// A second login, or a second answer to it.
    #[error("the login came twice")]
    SecondLogin,
    /// The session is not the requested one.
    #[error("the login was accepted into another session")]
    OtherSession,
    /// Messages begin with sequence 0, or would exceed 2⁶⁴ − 1.
    #[error("a sequence that cannot be")]
    Sequence,
    /// A packet follows the end of the session.
    #[error("something came after the end")]
    AfterEnd,
}

/// A packet of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientEvent<'a> {
    /// The login is accepted. If `sequence` is later than requested, the earlier messages are not available here.
    Accepted {
        /// The session.
        session: SoupSession,
        /// Sequence of the first message.
        sequence: u64,
    },
    /// The login is refused; the server will close the connection.
    Rejected(Reject),
    /// A message in sequence.
    Message {
        /// Its sequence.
        sequence: u64,
        /// The message.
        bytes: &'a [u8],
    },
    /// A message without a sequence.
    Unsequenced(&'a [u8]),
    /// Readable text.
    Debug(&'a [u8]),
    /// The server is alive.
    Heartbeat,
    /// No message follows; `next` is one more than the last one's sequence.
    EndOfSession {
        /// One more than the last sequence.
        next: u64,
    },
}

/// The result for the front of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum ClientStep<'a> {
    /// A packet, and its number of bytes.
    Event(ClientEvent<'a>, usize),
    /// A part of a packet.
    Incomplete {
        /// The minimum size of the packet in bytes.
        needed: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    LoggingIn,
    Live { next: u64 },
    Over,
}

/// One connection, from the login on. Bytes and time are arguments; output is returned.
#[derive(Debug)]
pub struct SoupClient {
    login: Login,
    state: State,
    silence: Silence,
}

impl SoupClient {
    /// Creates the state of a new connection. Send [`hello`](Self::hello) first.
    #[must_use]
    pub const fn new(login: Login, now: Nanos) -> Self {
        Self { login, state: State::LoggingIn, silence: Silence::new(now) }
    }

    /// Returns the login packet.
    #[must_use]
    pub fn hello(&self) -> [u8; LOGIN_BYTES] {
        login(&self.login)
    }

    /// Takes one packet from the front of the received bytes.
    ///
    /// # Errors
    /// [`Violation`]; nothing has changed, and the connection should be closed.
    #[inline]
    pub fn receive<'b>(&mut self, bytes: &'b [u8], now: Nanos) -> Result<ClientStep<'b>, Violation> {
        let frame = match split(bytes)? {
            Split::Packet(frame) => frame,
            Split::Incomplete { needed } => return Ok(ClientStep::Incomplete { needed }),
        };
        let (state, event) = self.follow(ServerPacket::decode(frame)?)?;
        self.state = state;
        self.silence.heard(now);
        Ok(ClientStep::Event(event, frame.bytes))
    }

    /// Returns a heartbeat if one is due.
    pub fn heartbeat(&mut self, now: Nanos) -> Option<&'static [u8]> {
        if !self.silence.is_heartbeat_due(now) {
            return None;
        }
        self.silence.said(now);
        Some(&CLIENT_HEARTBEAT)
    }

    /// Returns `true` if the server has been silent for too long.
    #[must_use]
    pub fn is_dead(&self, now: Nanos) -> bool {
        self.silence.is_dead(now)
    }

    /// Returns the time of the next check of [`heartbeat`](Self::heartbeat) and [`is_dead`](Self::is_dead).
    #[must_use]
    pub fn next_due(&self) -> Nanos {
        self.silence.next_due()
    }

    /// Returns the sequence of the next message; `None` before the login is accepted and after the end.
    #[must_use]
    pub const fn next_sequence(&self) -> Option<u64> {
        match self.state {
            State::Live { next } => Some(next),
            State::LoggingIn | State::Over => None,
        }
    }

    /// Returns `true` if no more messages follow.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    #[inline]
    fn follow<'b>(&self, packet: ServerPacket<'b>) -> Result<(State, ClientEvent<'b>), Violation> {
        Ok(match (self.state, packet) {
            (State::Over, _) => return Err(Violation::AfterEnd),
            (State::Live { next }, ServerPacket::Sequenced(bytes)) => {
                let after = next.checked_add(1).ok_or(Violation::Sequence)?;
                (State::Live { next: after }, ClientEvent::Message { sequence: next, bytes })
            }
            (State::Live { next }, ServerPacket::EndOfSession) => {
                (State::Over, ClientEvent::EndOfSession { next })
            }
            (State::Live { .. }, ServerPacket::Accepted { .. } | ServerPacket::Rejected(_)) => {
                return Err(Violation::SecondLogin);
            }
            (State::Live { .. }, ServerPacket::Unsequenced(bytes)) => {
                (self.state, ClientEvent::Unsequenced(bytes))
            }
            (State::LoggingIn, ServerPacket::Accepted { session, sequence }) => {
                if !self.login.session.is_current() && session != self.login.session {
                    return Err(Violation::OtherSession);
                }
                if sequence == 0 {
                    return Err(Violation::Sequence);
                }
                (State::Live { next: sequence }, ClientEvent::Accepted { session, sequence })
            }
            (State::LoggingIn, ServerPacket::Rejected(reject)) => {
                (State::Over, ClientEvent::Rejected(reject))
            }
            (_, ServerPacket::Debug(text)) => (self.state, ClientEvent::Debug(text)),
            (_, ServerPacket::Heartbeat) => (self.state, ClientEvent::Heartbeat),
            (State::LoggingIn, _) => return Err(Violation::BeforeLogin),
        })
    }
}
