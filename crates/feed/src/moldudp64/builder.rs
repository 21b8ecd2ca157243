//! Writing packets.

use super::{END_OF_SESSION, HEADER_BYTES, HEARTBEAT, MAX_MESSAGES, MoldSession, header};

/// The default maximum size of a packet in bytes: with the headers of IPv4 and UDP it fits in an
/// Ethernet frame of 1,500 bytes, with room for tunnels.
pub const DEFAULT_PACKET_BYTES: usize = 1_400;

/// The reason why a packet did not take a message, or a buffer a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PacketRefused {
    /// The packet has no capacity for the message now: send it and begin the next one.
    #[error("the packet is full")]
    Full,
    /// The message does not fit in an empty packet of this size.
    #[error("the message is longer than a packet of this size can hold")]
    TooLong,
    /// The buffer is shorter than a header.
    #[error("the buffer is shorter than the header of 20 bytes")]
    ShortBuffer,
    /// The sequence after the last message would not fit in 64 bits.
    #[error("the session has no sequence left")]
    SequenceOverflow,
}

/// A builder that packs messages into one packet in the caller's buffer.
#[derive(Debug)]
pub struct PacketBuilder<'b> {
    buffer: &'b mut [u8],
    session: MoldSession,
    sequence: u64,
    count: u16,
    used: usize,
}

impl<'b> PacketBuilder<'b> {
    /// Begins a packet whose first message has number `sequence`, of at most [`DEFAULT_PACKET_BYTES`] or the
    /// length of the buffer, whichever is less.
    ///
    /// # Errors
    /// [`PacketRefused::ShortBuffer`].
    pub fn new(buffer: &'b mut [u8], session: MoldSession, sequence: u64) -> Result<Self, PacketRefused> {
        Self::with_limit(buffer, session, sequence, DEFAULT_PACKET_BYTES)
    }

    /// Does the same as [`new`](Self::new), with another limit in bytes for the whole packet.
    ///
    /// # Errors
    /// [`PacketRefused::ShortBuffer`], also where the limit is below the header's 20 bytes.
    pub fn with_limit(
        buffer: &'b mut [u8],
        session: MoldSession,
        sequence: u64,
        limit: usize,
    ) -> Result<Self, PacketRefused> {
        let limit = limit.min(buffer.len());
        if limit < HEADER_BYTES {
            return Err(PacketRefused::ShortBuffer);
        }
        Ok(Self { buffer: &mut buffer[..limit], session, sequence, count: 0, used: HEADER_BYTES })
    }

    /// Adds a message.
    ///
    /// # Errors
    /// [`PacketRefused`]; the packet stays as it was.
    #[inline]
    pub fn push(&mut self, message: &[u8]) -> Result<(), PacketRefused> {
        let Ok(length) = u16::try_from(message.len()) else { return Err(PacketRefused::TooLong) };
        let block = 2 + message.len();
        if HEADER_BYTES + block > self.buffer.len() {
            return Err(PacketRefused::TooLong);
        }
        if self.count == MAX_MESSAGES {
            return Err(PacketRefused::Full);
        }
        let Some(room) = self.buffer.get_mut(self.used..self.used + block) else {
            return Err(PacketRefused::Full);
        };
        if self.sequence.checked_add(u64::from(self.count) + 1).is_none() {
            return Err(PacketRefused::SequenceOverflow);
        }
        let (prefix, data) = room.split_at_mut(2);
        prefix.copy_from_slice(&length.to_be_bytes());
        data.copy_from_slice(message);
        self.count += 1;
        self.used += block;
        Ok(())
    }

    /// Returns the number of messages in the packet.
    #[must_use]
    pub const fn count(&self) -> u16 {
        self.count
    }

    /// Returns the bytes of the packet so far.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.used
    }

    /// Returns the sequence of the next message, in this packet or the following one.
    #[must_use]
    pub const fn next_sequence(&self) -> u64 {
        self.sequence + self.count as u64
    }

    /// Writes the header and returns the packet's length. A packet without a message is a heartbeat.
    #[must_use]
    pub fn finish(self) -> usize {
        self.buffer[..HEADER_BYTES].copy_from_slice(&header(self.session, self.sequence, self.count));
        self.used
    }
}

/// Returns a heartbeat; `next` is the sequence of the next message.
#[must_use]
pub fn heartbeat(session: MoldSession, next: u64) -> [u8; HEADER_BYTES] {
    header(session, next, HEARTBEAT)
}

/// Returns an end-of-session packet; `next` is one more than the sequence of the last message.
#[must_use]
pub fn end_of_session(session: MoldSession, next: u64) -> [u8; HEADER_BYTES] {
    header(session, next, END_OF_SESSION)
}
