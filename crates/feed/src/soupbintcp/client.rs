//! The client's end of one connection.

use tapeline_nanos::Nanos;

use super::{
    CLIENT_HEARTBEAT, LOGIN_BYTES, Login, Malformed, Reject, ServerPacket, Session, Silence, Split, login,
    split,
};

/// Why a connection is of no more use: the server broke the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// Not a packet, or none that this end sends.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// Something else than an answer to the login came first.
    #[error("something came before the login was settled")]
    BeforeLogin,
    /// A second login, or a second answer to it.
    #[error("the login came twice")]
    SecondLogin,
    /// Another session than the one asked for.
    #[error("the login was accepted into another session")]
    OtherSession,
    /// Messages begin with sequence 0, or would go beyond 2⁶⁴ − 1.
    #[error("a sequence that cannot be")]
    Sequence,
    /// Something came after the end.
    #[error("something came after the end")]
    AfterEnd,
}

/// Something that a server said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientEvent<'a> {
    /// The login is accepted. Where `sequence` is later than asked for, what is before it cannot be had here.
    Accepted {
        /// The session.
        session: Session,
        /// Sequence of the first message that will come.
        sequence: u64,
    },
    /// The login is refused; the server will close.
    Rejected(Reject),
    /// A message in sequence.
    Message {
        /// Its sequence.
        sequence: u64,
        /// The message.
        bytes: &'a [u8],
    },
    /// A message without a number.
    Unsequenced(&'a [u8]),
    /// Text for people.
    Debug(&'a [u8]),
    /// The server is alive.
    Heartbeat,
    /// No message follows; `next` is one more than the last one's sequence.
    EndOfSession {
        /// One more than the last sequence.
        next: u64,
    },
}

/// What was at the front of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum ClientStep<'a> {
    /// A packet, and the bytes that it took.
    Event(ClientEvent<'a>, usize),
    /// Part of a packet, which has at least so many bytes.
    Incomplete {
        /// How many there must be.
        needed: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    LoggingIn,
    Live { next: u64 },
    Over,
}

/// One connection, from the login on. Bytes and time come in as arguments; what it wants sent comes out.
#[derive(Debug)]
pub struct Client {
    login: Login,
    state: State,
    silence: Silence,
}

impl Client {
    /// A connection that has just been made. [`hello`](Self::hello) is to be sent first.
    #[must_use]
    pub const fn new(login: Login, now: Nanos) -> Self {
        Self { login, state: State::LoggingIn, silence: Silence::new(now) }
    }

    /// The login.
    #[must_use]
    pub fn hello(&self) -> [u8; LOGIN_BYTES] {
        login(&self.login)
    }

    /// Takes one packet off the front of what has been received and not taken yet.
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

    /// What is to be sent now so that the server knows that this end is alive.
    pub fn heartbeat(&mut self, now: Nanos) -> Option<&'static [u8]> {
        if !self.silence.is_heartbeat_due(now) {
            return None;
        }
        self.silence.said(now);
        Some(&CLIENT_HEARTBEAT)
    }

    /// Whether the server has been silent for too long.
    #[must_use]
    pub fn is_dead(&self, now: Nanos) -> bool {
        self.silence.is_dead(now)
    }

    /// When to look at [`heartbeat`](Self::heartbeat) and [`is_dead`](Self::is_dead) again.
    #[must_use]
    pub fn next_due(&self) -> Nanos {
        self.silence.next_due()
    }

    /// The sequence of the next message; `None` before the login is accepted and after the end.
    #[must_use]
    pub const fn next_sequence(&self) -> Option<u64> {
        match self.state {
            State::Live { next } => Some(next),
            State::LoggingIn | State::Over => None,
        }
    }

    /// Whether nothing more will come.
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
