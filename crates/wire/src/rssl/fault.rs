//! What a peer did wrong, and why a connection ended.

use std::borrow::Cow;
use std::fmt;

/// Something in the received bytes that the protocol does not allow: what, where, and what was expected. It ends the
/// connection it came from, and no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong, such as `packed message of 300 bytes`.
    pub what: Cow<'static, str>,
    /// Where: bytes received on this connection before the frame or handshake message in question (inside TLS and
    /// WebSocket, where those are used).
    pub position: u64,
    /// What was expected in its place.
    pub expected: Cow<'static, str>,
}

impl Fault {
    /// A fault in the frame at hand; whoever counts bytes adds the position with [`at`](Self::at).
    pub(super) fn new(what: impl Into<Cow<'static, str>>, expected: impl Into<Cow<'static, str>>) -> Self {
        Self { what: what.into(), position: 0, expected: expected.into() }
    }

    pub(super) fn at(self, position: u64) -> Self {
        Self { position, ..self }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {} of what was received, expected {}", self.what, self.position, self.expected)
    }
}

impl std::error::Error for Fault {}

/// Why a connection is over.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// It was closed from this side.
    #[error("closed from this side")]
    Local,
    /// The peer closed it; RSSL has no goodbye.
    #[error("the peer closed the connection")]
    Peer,
    /// The server closed it without an answer to the connect request: it may not know this version of the handshake.
    #[error("the server closed the connection without an answer to the connect request")]
    NoAnswer,
    /// The server said no, or this side refused the client; the server's text.
    #[error("refused: {0}")]
    Refused(String),
    /// The peer sent what the protocol does not allow.
    #[error("{0}")]
    Broken(#[from] Fault),
    /// Nothing was received for the whole ping time-out that was agreed.
    #[error("nothing was received for {seconds} s, the ping time-out of this connection")]
    Silent {
        /// The time-out, seconds.
        seconds: u8,
    },
    /// The connection, or its handshake, was not made in time.
    #[error("not connected after {milliseconds} ms, while {during}")]
    Timeout {
        /// How long it was waited, milliseconds.
        milliseconds: u64,
        /// What was waited for.
        during: &'static str,
    },
    /// TLS could not be agreed on, or was broken.
    #[error("TLS: {0}")]
    Tls(String),
    /// The socket broke.
    #[error(transparent)]
    Socket(#[from] crate::Error),
}
