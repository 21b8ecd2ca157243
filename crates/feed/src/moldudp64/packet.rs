//! Reading a packet.

use super::{END_OF_SESSION, HEADER_BYTES, HEARTBEAT, MoldSession, fields};
use crate::blocks::Messages;
use crate::framing::MalformedDatagram;

/// A well-formed packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoldPacket<'a> {
    /// Messages.
    Data(Data<'a>),
    /// The sender is alive, and has sent everything before `next`.
    Heartbeat {
        /// The session.
        session: MoldSession,
        /// Sequence of the next message.
        next: u64,
        /// Bytes after the header, which should not be there.
        trailing: usize,
    },
    /// The session has no more messages.
    EndOfSession {
        /// The session.
        session: MoldSession,
        /// One more than the sequence of the session's last message.
        next: u64,
        /// Bytes after the header, which should not be there.
        trailing: usize,
    },
}

impl MoldPacket<'_> {
    /// Returns the session of the packet.
    #[must_use]
    pub const fn session(&self) -> MoldSession {
        match *self {
            Self::Data(Data { session, .. })
            | Self::Heartbeat { session, .. }
            | Self::EndOfSession { session, .. } => session,
        }
    }

    /// Returns the bytes after the announced contents: ignored, but counted.
    #[must_use]
    pub const fn trailing(&self) -> usize {
        match *self {
            Self::Data(Data { trailing, .. })
            | Self::Heartbeat { trailing, .. }
            | Self::EndOfSession { trailing, .. } => trailing,
        }
    }
}

/// A packet with messages; all of its blocks have been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data<'a> {
    /// The session.
    pub session: MoldSession,
    /// Bytes after the last message.
    pub trailing: usize,
    messages: Messages<'a>,
}

impl<'a> Data<'a> {
    /// Returns the sequence of the first message.
    #[must_use]
    pub const fn sequence(&self) -> u64 {
        self.messages.sequence()
    }

    /// Returns the number of messages, at least 1.
    #[must_use]
    pub fn count(&self) -> u16 {
        // Lossless: at most the 16 bits of the header's count.
        self.messages.len() as u16
    }

    /// Returns the sequence after the last message. Does not overflow: [`parse`] has checked it.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.messages.end()
    }

    /// Returns the messages with their sequences.
    #[must_use]
    pub const fn messages(&self) -> Messages<'a> {
        self.messages
    }
}

/// Parses a datagram as a packet and checks that every announced message is present.
///
/// # Errors
/// [`MalformedDatagram`], with nothing delivered. Trailing bytes are no error; they are counted in the packet.
#[inline]
pub fn parse(datagram: &[u8]) -> Result<MoldPacket<'_>, MalformedDatagram> {
    let (head, rest) = datagram.split_first_chunk::<HEADER_BYTES>().ok_or(MalformedDatagram::ShortHeader)?;
    let (session, sequence, count) = fields(head);
    match count {
        HEARTBEAT => return Ok(MoldPacket::Heartbeat { session, next: sequence, trailing: rest.len() }),
        END_OF_SESSION => {
            return Ok(MoldPacket::EndOfSession { session, next: sequence, trailing: rest.len() });
        }
        _ => {}
    }
    if sequence.checked_add(u64::from(count)).is_none() {
        return Err(MalformedDatagram::SequenceOverflow);
    }
    let (messages, after) = Messages::split(rest, sequence, count, false)?;
    Ok(MoldPacket::Data(Data { session, trailing: after.len(), messages }))
}
