//! One packet off the front of a stream.

use super::MalformedSoupPacket;

/// The maximum size of a packet with its length, in bytes: a length of 16 bits counts the type and the bytes after it.
pub const LONGEST_PACKET: usize = 2 + u16::MAX as usize;

/// A packet, not yet decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The letter of the packet type.
    pub kind: u8,
    /// The bytes after the letter.
    pub payload: &'a [u8],
    /// The total number of bytes, with the length in front.
    pub bytes: usize,
}

/// The front of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split<'a> {
    /// A complete packet.
    Packet(Frame<'a>),
    /// A part of a packet, or nothing.
    Incomplete {
        /// The minimum total number of bytes before the next attempt, at most [`LONGEST_PACKET`].
        needed: usize,
    },
}

/// Takes one packet from the front of `bytes`.
///
/// # Errors
/// [`MalformedSoupPacket::NoType`] for a length of 0, which leaves no byte for a type: the start of the next packet is unknown, so the connection is
/// unusable.
#[inline]
pub fn split(bytes: &[u8]) -> Result<Split<'_>, MalformedSoupPacket> {
    let Some((length, rest)) = bytes.split_first_chunk::<2>() else {
        // The shortest packet is a length and a type.
        return Ok(Split::Incomplete { needed: 3 });
    };
    let length = usize::from(u16::from_be_bytes(*length));
    if length == 0 {
        return Err(MalformedSoupPacket::NoType);
    }
    match rest.get(..length).and_then(<[u8]>::split_first) {
        Some((kind, payload)) => Ok(Split::Packet(Frame { kind: *kind, payload, bytes: 2 + length })),
        None => Ok(Split::Incomplete { needed: 2 + length }),
    }
}
