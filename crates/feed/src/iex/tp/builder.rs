//! Writing segments.

use super::{HEADER_BYTES, IexSession, VERSION};

/// The default maximum size of a segment in bytes: with the headers of IPv4 and UDP it fits in an Ethernet frame of 1,500 bytes, with room for
/// tunnels.
pub const DEFAULT_SEGMENT_BYTES: usize = 1_400;

/// The reason why a segment did not take a message, or a buffer a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentRefused {
    /// The segment has no capacity for the message now: send it and begin the next one.
    #[error("the segment is full")]
    Full,
    /// The message does not fit in an empty segment of this size.
    #[error("the message is longer than a segment of this size can hold")]
    TooLong,
    /// The buffer is shorter than a header.
    #[error("the buffer is shorter than the header of 40 bytes")]
    ShortBuffer,
}

/// A builder that packs messages into one segment in the caller's buffer.
#[derive(Debug)]
pub struct SegmentBuilder<'b> {
    buffer: &'b mut [u8],
    session: IexSession,
    first: u64,
    offset: u64,
    count: u16,
    used: usize,
}

impl<'b> SegmentBuilder<'b> {
    /// Begins a segment whose first message has number `first` and whose payload has position `offset` in the stream, of at most
    /// [`DEFAULT_SEGMENT_BYTES`] or the length of the buffer, whichever is less.
    ///
    /// # Errors
    /// [`SegmentRefused::ShortBuffer`].
    pub fn new(
        buffer: &'b mut [u8],
        session: IexSession,
        first: u64,
        offset: u64,
    ) -> Result<Self, SegmentRefused> {
        // A payload's length has 16 bits.
        let limit = DEFAULT_SEGMENT_BYTES.min(buffer.len());
        if limit < HEADER_BYTES {
            return Err(SegmentRefused::ShortBuffer);
        }
        Ok(Self { buffer: &mut buffer[..limit], session, first, offset, count: 0, used: HEADER_BYTES })
    }

    /// Adds a message.
    ///
    /// # Errors
    /// [`SegmentRefused`]; the segment stays as it was.
    #[inline]
    pub fn push(&mut self, message: &[u8]) -> Result<(), SegmentRefused> {
        let block = 2 + message.len();
        if HEADER_BYTES + block > self.buffer.len() {
            return Err(SegmentRefused::TooLong);
        }
        let Some(room) = self.buffer.get_mut(self.used..self.used + block) else {
            return Err(SegmentRefused::Full);
        };
        let (prefix, data) = room.split_at_mut(2);
        // Lossless: the segment is shorter than 2¹⁶ bytes.
        prefix.copy_from_slice(&(message.len() as u16).to_le_bytes());
        data.copy_from_slice(message);
        self.count += 1;
        self.used += block;
        Ok(())
    }

    /// Returns sequence and stream offset of the following segment.
    #[must_use]
    pub const fn next(&self) -> (u64, u64) {
        (self.first + self.count as u64, self.offset + (self.used - HEADER_BYTES) as u64)
    }

    /// Writes the header with the send time `sent_ns`, ns since 1970, and returns the segment's length. A segment without messages is a heartbeat.
    #[must_use]
    pub fn finish(self, sent_ns: u64) -> usize {
        let payload = (self.used - HEADER_BYTES) as u16;
        let header = header(self.session, payload, self.count, self.offset, self.first, sent_ns);
        self.buffer[..HEADER_BYTES].copy_from_slice(&header);
        self.used
    }
}

/// Returns a heartbeat; `next` is the sequence of the next message, `offset` its position in the stream.
#[must_use]
pub fn heartbeat(session: IexSession, next: u64, offset: u64, sent_ns: u64) -> [u8; HEADER_BYTES] {
    header(session, 0, 0, offset, next, sent_ns)
}

fn header(
    session: IexSession,
    payload: u16,
    count: u16,
    offset: u64,
    first: u64,
    sent_ns: u64,
) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[0] = VERSION;
    header[2..4].copy_from_slice(&session.protocol.0.to_le_bytes());
    header[4..8].copy_from_slice(&session.channel.to_le_bytes());
    header[8..12].copy_from_slice(&session.number.to_le_bytes());
    header[12..14].copy_from_slice(&payload.to_le_bytes());
    header[14..16].copy_from_slice(&count.to_le_bytes());
    header[16..24].copy_from_slice(&offset.to_le_bytes());
    header[24..32].copy_from_slice(&first.to_le_bytes());
    header[32..].copy_from_slice(&sent_ns.to_le_bytes());
    header
}
