//! IEX-TP, the transport of TOPS and DEEP: segments read and written.
//!
//! Source: IEX Transport Specification 1 (outbound segment header, message blocks, heartbeats). A datagram is one segment: a header of 40 bytes,
//! then message blocks, each with a length of two bytes before it; everything is little-endian. Protocol, channel, session and sequence identify a
//! message; lines A and B carry the same messages, not the same segments.
//!
//! A sender may keep its session's number over a restart and begin with sequence 1 and stream offset 0: see [`Segment::is_start`]. A receiver that
//! compares only session and sequence takes everything after the restart for duplicates.
//!
//! ```
//! use tapeline_feed::iex::tp::{self, IexSession, MessageProtocol, SegmentBuilder};
//!
//! let session = IexSession { protocol: MessageProtocol::TOPS_1_6, channel: 1, number: 77 };
//! let mut buffer = [0; 1400];
//! let mut segment = SegmentBuilder::new(&mut buffer, session, 5, 120)?;
//! segment.push(b"one")?;
//! let length = segment.finish(1_499_697_138_000_000_000);
//! let segment = tp::parse(&buffer[..length])?;
//! assert_eq!((segment.session, segment.first, segment.next()), (session, 5, 6));
//! assert!(segment.messages.eq([(5, &b"one"[..])]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod builder;

use std::fmt;

use tapeline_nanos::Nanos;

use crate::framing::MalformedDatagram;

pub use crate::blocks::Messages;
pub use builder::{DEFAULT_SEGMENT_BYTES, SegmentBuilder, SegmentRefused, heartbeat};

/// The size of a segment's header in bytes.
pub const HEADER_BYTES: usize = 40;

/// The only existing version.
pub const VERSION: u8 = 1;

/// The number of a session's message protocol.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageProtocol(pub u16);

impl MessageProtocol {
    /// TOPS 1.5.
    pub const TOPS_1_5: Self = Self(0x8002);
    /// TOPS 1.6.
    pub const TOPS_1_6: Self = Self(0x8003);
    /// DEEP 1.0.
    pub const DEEP_1_0: Self = Self(0x8004);
    /// DEEP+, order by order.
    pub const DEEP_PLUS: Self = Self(0x8005);

    /// Returns the name, if it is known.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::TOPS_1_5 => Some("TOPS 1.5"),
            Self::TOPS_1_6 => Some("TOPS 1.6"),
            Self::DEEP_1_0 => Some("DEEP 1.0"),
            Self::DEEP_PLUS => Some("DEEP+"),
            _ => None,
        }
    }

    /// Returns `true` if [`iex::decode`](super::decode) reads its messages.
    #[must_use]
    pub const fn is_read(self) -> bool {
        matches!(self, Self::TOPS_1_6 | Self::DEEP_1_0)
    }
}

impl fmt::Display for MessageProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "protocol 0x{:04x}", self.0),
        }
    }
}

/// A session: sequences count within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IexSession {
    /// The message protocol.
    pub protocol: MessageProtocol,
    /// The channel.
    pub channel: u32,
    /// The session's number.
    pub number: u32,
}

impl fmt::Display for IexSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.protocol, self.channel, self.number)
    }
}

/// A well-formed segment; all of its blocks have been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Segment<'a> {
    /// The session.
    pub session: IexSession,
    /// The position of the payload in the session's stream, in bytes.
    pub offset: u64,
    /// The sequence of the first message; of the next one, in a heartbeat.
    pub first: u64,
    /// The send time, by IEX's clock.
    pub sent: Nanos,
    /// Number of bytes after the payload: ignored, but counted.
    pub trailing: usize,
    /// The blocks in datagram order, each with its length of two bytes.
    pub blocks: &'a [u8],
    /// The messages with their sequences.
    pub messages: Messages<'a>,
}

impl Segment<'_> {
    /// Returns the position of the next segment's payload. Does not overflow: [`parse`] has checked it.
    #[must_use]
    pub const fn next_offset(&self) -> u64 {
        self.offset + self.blocks.len() as u64
    }

    /// Returns the sequence after the last message. Does not overflow: [`parse`] has checked it.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.messages.end()
    }

    /// Returns the number of messages.
    #[must_use]
    pub const fn count(&self) -> u16 {
        self.messages.left()
    }

    /// Returns `true` if there are no messages: the sender is alive, and has sent everything before [`first`](Self::first).
    #[must_use]
    pub const fn is_heartbeat(&self) -> bool {
        self.count() == 0
    }

    /// Returns `true` at the very beginning of a session: sequence 1 and stream offset 0. If the session had messages before, the sender has
    /// restarted.
    #[must_use]
    pub const fn is_start(&self) -> bool {
        self.first == 1 && self.offset == 0
    }
}

/// Returns `N` bytes of the header from offset `AT`.
#[inline(always)]
fn field<const AT: usize, const N: usize>(header: &[u8; HEADER_BYTES]) -> [u8; N] {
    crate::wire::chunk::<AT, N, HEADER_BYTES>(header)
}

/// Parses a datagram as a segment and checks that its messages add up to its payload.
///
/// # Errors
/// [`MalformedDatagram`], with nothing delivered. Bytes after the payload are no error; they are counted in the segment.
#[inline]
pub fn parse(datagram: &[u8]) -> Result<Segment<'_>, MalformedDatagram> {
    let (header, rest) =
        datagram.split_first_chunk::<HEADER_BYTES>().ok_or(MalformedDatagram::ShortHeader)?;
    if header[0] != VERSION {
        return Err(MalformedDatagram::Version);
    }
    let payload = usize::from(u16::from_le_bytes(field::<12, 2>(header)));
    let count = u16::from_le_bytes(field::<14, 2>(header));
    let (blocks, behind) = rest.split_at_checked(payload).ok_or(MalformedDatagram::ShortPayload)?;
    // Signed on the wire; as unsigned numbers, negative ones are too large.
    let offset = u64::from_le_bytes(field::<16, 8>(header));
    let first = u64::from_le_bytes(field::<24, 8>(header));
    const MOST: u64 = i64::MAX as u64;
    if offset > MOST - payload as u64 || first > MOST - u64::from(count) {
        return Err(MalformedDatagram::SequenceOverflow);
    }
    let (messages, after) = Messages::split(blocks, first, count, true)?;
    if !after.is_empty() {
        return Err(MalformedDatagram::Uncounted);
    }
    let session = IexSession {
        protocol: MessageProtocol(u16::from_le_bytes(field::<2, 2>(header))),
        channel: u32::from_le_bytes(field::<4, 4>(header)),
        number: u32::from_le_bytes(field::<8, 4>(header)),
    };
    let sent = Nanos(u64::from_le_bytes(field::<32, 8>(header)));
    Ok(Segment { session, offset, first, sent, trailing: behind.len(), blocks, messages })
}

/// Returns `true` if a datagram is a complete segment of a known IEX protocol without trailing bytes: for the recognition of protocols in captures.
#[must_use]
pub fn is_likely(datagram: &[u8]) -> bool {
    datagram.get(1) == Some(&0)
        && parse(datagram)
            .is_ok_and(|segment| segment.trailing == 0 && segment.session.protocol.name().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: IexSession =
        IexSession { protocol: MessageProtocol::DEEP_1_0, channel: 1, number: 0x4380_0000 };

    #[test]
    fn a_segment_is_laid_out_as_specified() {
        let mut buffer = [0xEE; 64];
        let mut segment = SegmentBuilder::new(&mut buffer, SESSION, 0x0102, 0x0304).unwrap();
        segment.push(b"xyz").unwrap();
        segment.push(b"").unwrap();
        assert_eq!(segment.next(), (0x0104, 0x030B));
        assert_eq!(segment.finish(5), 47);
        let mut expected = vec![1, 0, 0x04, 0x80, 1, 0, 0, 0, 0, 0, 0x80, 0x43, 7, 0, 2, 0];
        expected.extend([4, 3, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
        expected.extend([3, 0, b'x', b'y', b'z', 0, 0]);
        assert_eq!(buffer[..47], expected);
    }

    #[test]
    fn each_reason_has_its_datagram() {
        let mut buffer = [0; 64];
        let mut segment = SegmentBuilder::new(&mut buffer, SESSION, 1, 0).unwrap();
        segment.push(b"xyz").unwrap();
        let length = segment.finish(5);
        let good = buffer[..length].to_vec();
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            bytes
        };
        for (bytes, reason) in [
            (Vec::new(), MalformedDatagram::ShortHeader),
            (good[..39].to_vec(), MalformedDatagram::ShortHeader),
            (with(0, 2), MalformedDatagram::Version),
            (good[..44].to_vec(), MalformedDatagram::ShortPayload),
            (with(14, 2), MalformedDatagram::MissingLength),
            (with(40, 4), MalformedDatagram::BlockPastEnd),
            (with(40, 2), MalformedDatagram::Uncounted),
            (with(14, 0), MalformedDatagram::Uncounted),
            (with(23, 0x80), MalformedDatagram::SequenceOverflow),
            (with(31, 0x80), MalformedDatagram::SequenceOverflow),
        ] {
            assert_eq!(parse(&bytes), Err(reason), "{bytes:?}");
            assert_eq!(MalformedDatagram::ALL[reason.index()], reason);
        }
        assert!(parse(&good).is_ok() && is_likely(&good));
        assert!(!is_likely(&with(1, 1)) && !is_likely(&with(2, 9)));
        assert_eq!(parse(&[&good[..], b"more"].concat()).unwrap().trailing, 4);
    }

    #[test]
    fn a_heartbeat_says_what_comes_next() {
        let bytes = heartbeat(SESSION, 1, 0, 9);
        let segment = parse(&bytes).unwrap();
        assert!(segment.is_heartbeat() && segment.is_start());
        assert_eq!((segment.next(), segment.sent, segment.messages.len()), (1, Nanos(9), 0));
        assert_eq!(segment.session.to_string(), "DEEP 1.0/1/1132462080");
    }
}
