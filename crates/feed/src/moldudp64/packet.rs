//! Reading a packet.

use super::{END_OF_SESSION, HEADER_BYTES, HEARTBEAT, MoldSession, fields};
use crate::blocks::{Cut, Messages};

/// The reason why a datagram is not a MoldUDP64 packet. The fault is at the sender or on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum MalformedMoldPacket {
    /// The datagram is shorter than a header.
    #[error("shorter than the header of 20 bytes")]
    ShortHeader,
    /// The datagram ends before or within a block's length.
    #[error("the length of an announced message is missing")]
    MissingLength,
    /// A block announces more bytes than the datagram contains.
    #[error("a message runs past the end of the datagram")]
    BlockPastEnd,
    /// The sequences of the packet's messages do not fit in 64 bits.
    #[error("sequence and count exceed 64 bits")]
    SequenceOverflow,
}

impl From<Cut> for MalformedMoldPacket {
    fn from(cut: Cut) -> Self {
        match cut {
            Cut::MissingLength => Self::MissingLength,
            Cut::PastEnd => Self::BlockPastEnd,
        }
    }
}

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
    session: MoldSession,
    trailing: usize,
    messages: Messages<'a>,
}

impl<'a> Data<'a> {
    /// Returns the session.
    #[must_use]
    pub const fn session(&self) -> MoldSession {
        self.session
    }

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

    /// Returns the bytes after the last message.
    #[must_use]
    pub const fn trailing(&self) -> usize {
        self.trailing
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
/// [`MalformedMoldPacket`], with nothing delivered. Trailing bytes are no error; they are counted in the packet.
#[inline]
pub fn parse(datagram: &[u8]) -> Result<MoldPacket<'_>, MalformedMoldPacket> {
    let (head, rest) =
        datagram.split_first_chunk::<HEADER_BYTES>().ok_or(MalformedMoldPacket::ShortHeader)?;
    let (session, sequence, count) = fields(head);
    match count {
        HEARTBEAT => return Ok(MoldPacket::Heartbeat { session, next: sequence, trailing: rest.len() }),
        END_OF_SESSION => {
            return Ok(MoldPacket::EndOfSession { session, next: sequence, trailing: rest.len() });
        }
        _ => {}
    }
    if sequence.checked_add(u64::from(count)).is_none() {
        return Err(MalformedMoldPacket::SequenceOverflow);
    }
    let (messages, after) = Messages::split(rest, sequence, count, false)?;
    Ok(MoldPacket::Data(Data { session, trailing: after.len(), messages }))
}
