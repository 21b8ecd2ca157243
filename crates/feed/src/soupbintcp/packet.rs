//! The packets of each end.

use super::login::number;
use super::{Frame, Login, Reject, SoupSession};

/// The reason why bytes are not a packet. The fault is at the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum MalformedSoupPacket {
    /// The length is 0: there is no type.
    #[error("a packet of length 0 has no type")]
    NoType,
    /// This end of the connection does not send this type.
    #[error("a packet of type '{}' does not belong here", .0.escape_ascii())]
    UnknownType(u8),
    /// The length does not match the fixed length of the type.
    #[error("a packet of type '{}' has {length} bytes", .kind.escape_ascii())]
    Length {
        /// The type.
        kind: u8,
        /// Bytes after the length.
        length: usize,
    },
    /// A field does not contain a decimal number up to 2⁶⁴ − 1.
    #[error("a sequence in a login is no decimal number")]
    Number,
}

/// A packet of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerPacket<'a> {
    /// Readable text.
    Debug(&'a [u8]),
    /// The login is accepted.
    Accepted {
        /// The session of the login.
        session: SoupSession,
        /// The sequence of the next sequenced message.
        sequence: u64,
    },
    /// The login is refused.
    Rejected(Reject),
    /// The next message in sequence.
    Sequenced(&'a [u8]),
    /// A message without a sequence.
    Unsequenced(&'a [u8]),
    /// The server is alive.
    Heartbeat,
    /// The session has no more messages.
    EndOfSession,
}

impl<'a> ServerPacket<'a> {
    /// Decodes a packet.
    ///
    /// # Errors
    /// [`MalformedSoupPacket`].
    #[inline]
    pub fn decode(frame: Frame<'a>) -> Result<Self, MalformedSoupPacket> {
        let wrong = MalformedSoupPacket::Length { kind: frame.kind, length: 1 + frame.payload.len() };
        Ok(match (frame.kind, frame.payload) {
            (b'S', message) => Self::Sequenced(message),
            (b'U', message) => Self::Unsequenced(message),
            (b'H', []) => Self::Heartbeat,
            (b'Z', []) => Self::EndOfSession,
            (b'+', text) => Self::Debug(text),
            (b'J', [letter]) => Self::Rejected(Reject::of(*letter)),
            (b'A', fields) => {
                let fields: &[u8; 30] = fields.try_into().map_err(|_| wrong)?;
                let (session, sequence) = fields.split_first_chunk().ok_or(wrong)?;
                Self::Accepted { session: SoupSession(*session), sequence: number(sequence)? }
            }
            (b'H' | b'Z' | b'J', _) => return Err(wrong),
            (other, _) => return Err(MalformedSoupPacket::UnknownType(other)),
        })
    }
}

/// A packet of a client.
#[derive(Clone, Copy, Debug)]
pub enum ClientPacket<'a> {
    /// Readable text.
    Debug(&'a [u8]),
    /// The login, a client's first packet.
    Login(Login),
    /// A message without a sequence: orders, on an order entry port.
    Unsequenced(&'a [u8]),
    /// The client is alive.
    Heartbeat,
    /// The client logs out.
    Logout,
}

impl<'a> ClientPacket<'a> {
    /// Decodes a packet.
    ///
    /// # Errors
    /// [`MalformedSoupPacket`].
    pub fn decode(frame: Frame<'a>) -> Result<Self, MalformedSoupPacket> {
        let wrong = MalformedSoupPacket::Length { kind: frame.kind, length: 1 + frame.payload.len() };
        Ok(match (frame.kind, frame.payload) {
            (b'R', []) => Self::Heartbeat,
            (b'O', []) => Self::Logout,
            (b'U', message) => Self::Unsequenced(message),
            (b'+', text) => Self::Debug(text),
            (b'L', fields) => Self::Login(Login::decode(fields.try_into().map_err(|_| wrong)?)?),
            (b'R' | b'O', _) => return Err(wrong),
            (other, _) => return Err(MalformedSoupPacket::UnknownType(other)),
        })
    }
}
