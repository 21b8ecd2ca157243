//! Protocol violations of a peer, and why a connection ended.

use std::borrow::Cow;

/// A protocol violation in the received bytes: what, where, and what was expected. It closes the connection on which it
/// was received, and no other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {position} of what was received, expected {expected}")]
pub struct Fault {
    /// What is wrong, such as `packed message of 300 bytes`.
    pub what: Cow<'static, str>,
    /// The position: bytes received on this connection before the faulty frame or handshake message (inside TLS and
    /// WebSocket, if used).
    pub position: u64,
    /// What was expected instead.
    pub expected: Cow<'static, str>,
}

impl Fault {
    /// Creates a fault in the current frame; the caller that counts bytes adds the position with
    /// [`at`](Self::at).
    pub(super) fn new(what: impl Into<Cow<'static, str>>, expected: impl Into<Cow<'static, str>>) -> Self {
        Self { what: what.into(), position: 0, expected: expected.into() }
    }

    /// Creates a fault as [`new`](Self::new) does, for what exceeds a limit that is set here.
    pub(super) fn over_limit(what: impl Into<Cow<'static, str>>, limit: usize) -> Self {
        Self::new(what, format!("at most {limit}, the limit that is set"))
    }

    pub(super) fn at(self, position: u64) -> Self {
        Self { position, ..self }
    }
}

/// Why a connection closed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// This side closed the connection.
    #[error("closed from this side")]
    Local,
    /// The peer closed the connection; RSSL has no closing message.
    #[error("the peer closed the connection")]
    Peer,
    /// The server closed without an answer to the connect request: it may not support this version of the handshake.
    #[error("the server closed the connection without an answer to the connect request")]
    NoAnswer,
    /// The server refused the connection, or this side refused the client; the server's text.
    #[error("refused: {0}")]
    Refused(String),
    /// The peer violated the protocol.
    #[error("{0}")]
    Broken(#[from] Fault),
    /// Nothing was received during the negotiated ping time-out.
    #[error("nothing was received for {seconds} s, the ping time-out of this connection")]
    Silent {
        /// The time-out in seconds.
        seconds: u8,
    },
    /// The connection or its handshake was not complete in time.
    #[error("not connected after {milliseconds} ms, while {during}")]
    Timeout {
        /// The time waited, in milliseconds.
        milliseconds: u64,
        /// The step that was not complete.
        during: &'static str,
    },
    /// The TLS negotiation or connection failed.
    #[error("TLS: {0}")]
    Tls(String),
    /// The socket failed.
    #[error(transparent)]
    Socket(crate::Error),
}

impl From<crate::Error> for Reason {
    fn from(error: crate::Error) -> Self {
        match error {
            crate::Error::TlsPeer { cause, .. } => Self::Tls(cause),
            error => Self::Socket(error),
        }
    }
}
