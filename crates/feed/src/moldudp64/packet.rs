//! Reading a packet.

use super::{END_OF_SESSION, HEADER_BYTES, HEARTBEAT, Session, fields};

/// Why a datagram is not a MoldUDP64 packet. Whoever sent it is at fault, or the way it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// Fewer bytes than a header has.
    #[error("shorter than the header of 20 bytes")]
    ShortHeader,
    /// The datagram ends before or within a block's length.
    #[error("the length of an announced message is missing")]
    MissingLength,
    /// A block announces more bytes than the datagram has.
    #[error("a message runs past the end of the datagram")]
    BlockPastEnd,
    /// The sequences of the packet's messages do not fit in 64 bits.
    #[error("sequence and count exceed 64 bits")]
    SequenceOverflow,
}

impl Malformed {
    /// Every reason, in the order of [`index`](Self::index).
    pub const ALL: [Self; 4] =
        [Self::ShortHeader, Self::MissingLength, Self::BlockPastEnd, Self::SequenceOverflow];

    /// A dense number for an array of counters.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// A stable label for reports and counters.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::ShortHeader => "short-header",
            Self::MissingLength => "missing-length",
            Self::BlockPastEnd => "block-past-end",
            Self::SequenceOverflow => "sequence-overflow",
        }
    }
}

/// A well-formed packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// Messages.
    Data(Data<'a>),
    /// The sender is alive, and has sent everything before `next`.
    Heartbeat {
        /// The session.
        session: Session,
        /// Sequence of the message that will come next.
        next: u64,
        /// Bytes behind the header, which should not be there.
        trailing: usize,
    },
    /// Nothing more comes in this session.
    EndOfSession {
        /// The session.
        session: Session,
        /// One more than the sequence of the session's last message.
        next: u64,
        /// Bytes behind the header, which should not be there.
        trailing: usize,
    },
}

impl Packet<'_> {
    /// The session that the packet belongs to.
    #[must_use]
    pub const fn session(&self) -> Session {
        match *self {
            Self::Data(Data { session, .. })
            | Self::Heartbeat { session, .. }
            | Self::EndOfSession { session, .. } => session,
        }
    }

    /// Bytes behind what the packet announces: ignored, but to be counted.
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
    session: Session,
    sequence: u64,
    count: u16,
    trailing: usize,
    blocks: &'a [u8],
}

impl<'a> Data<'a> {
    /// The session.
    #[must_use]
    pub const fn session(&self) -> Session {
        self.session
    }

    /// Sequence of the first message.
    #[must_use]
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// How many messages there are, at least 1.
    #[must_use]
    pub const fn count(&self) -> u16 {
        self.count
    }

    /// The sequence after the last message's. Does not overflow: [`parse`] has checked it.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.sequence + self.count as u64
    }

    /// Bytes behind the last message.
    #[must_use]
    pub const fn trailing(&self) -> usize {
        self.trailing
    }

    /// The messages with their sequences.
    #[must_use]
    pub const fn messages(&self) -> Messages<'a> {
        Messages { blocks: self.blocks, sequence: self.sequence, left: self.count }
    }
}

/// The messages of a packet, in order, each with its sequence.
#[derive(Clone, Debug)]
pub struct Messages<'a> {
    blocks: &'a [u8],
    sequence: u64,
    left: u16,
}

impl Messages<'_> {
    /// Leaves out the next `count` messages.
    pub(crate) fn pass(&mut self, count: u16) {
        for _ in 0..count {
            let _ = self.next();
        }
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = (u64, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let (message, rest) = block(self.blocks).ok()?;
        let sequence = self.sequence;
        self.sequence += 1;
        self.blocks = rest;
        Some((sequence, message))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::from(self.left), Some(usize::from(self.left)))
    }
}

impl ExactSizeIterator for Messages<'_> {}

/// Takes one block off the front: its data and what follows.
#[inline]
fn block(bytes: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let (length, rest) = bytes.split_first_chunk().ok_or(Malformed::MissingLength)?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length))).ok_or(Malformed::BlockPastEnd)
}

/// Reads a datagram as a packet and checks that every announced message is there.
///
/// # Errors
/// [`Malformed`], with nothing delivered. Trailing bytes are no error; they are counted in the packet.
#[inline]
pub fn parse(datagram: &[u8]) -> Result<Packet<'_>, Malformed> {
    let (head, rest) = datagram.split_first_chunk::<HEADER_BYTES>().ok_or(Malformed::ShortHeader)?;
    let (session, sequence, count) = fields(head);
    match count {
        HEARTBEAT => return Ok(Packet::Heartbeat { session, next: sequence, trailing: rest.len() }),
        END_OF_SESSION => return Ok(Packet::EndOfSession { session, next: sequence, trailing: rest.len() }),
        _ => {}
    }
    if sequence.checked_add(u64::from(count)).is_none() {
        return Err(Malformed::SequenceOverflow);
    }
    let mut after = rest;
    for _ in 0..count {
        (_, after) = block(after)?;
    }
    let trailing = after.len();
    let blocks = &rest[..rest.len() - trailing];
    Ok(Packet::Data(Data { session, sequence, count, trailing, blocks }))
}
