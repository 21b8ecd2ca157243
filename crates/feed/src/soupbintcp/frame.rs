//! One packet off the front of a stream.

use super::Malformed;

/// Bytes of the longest packet with its length: a length of 16 bits counts the type and what follows it.
pub const LONGEST_PACKET: usize = 2 + u16::MAX as usize;

/// A packet, not yet looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The letter of its type.
    pub kind: u8,
    /// What follows the letter.
    pub payload: &'a [u8],
    /// Bytes of the whole, with the length in front.
    pub bytes: usize,
}

/// What stands at the front of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split<'a> {
    /// A whole packet.
    Packet(Frame<'a>),
    /// A part of one, or nothing. The packet has at least so many bytes in all, at most [`LONGEST_PACKET`].
    Incomplete {
        /// How many bytes there must be before it is worth looking again.
        needed: usize,
    },
}

/// Takes one packet off the front of `bytes`.
///
/// # Errors
/// [`Malformed::NoType`] for a length of 0, which leaves no room for a type: where the next packet would begin is
/// anybody's guess, so the connection is of no more use.
#[inline]
pub fn split(bytes: &[u8]) -> Result<Split<'_>, Malformed> {
    let Some((length, rest)) = bytes.split_first_chunk::<2>() else {
        // No packet is shorter than a length and a type.
        return Ok(Split::Incomplete { needed: 3 });
    };
    let length = usize::from(u16::from_be_bytes(*length));
    if length == 0 {
        return Err(Malformed::NoType);
    }
    match rest.get(..length).and_then(<[u8]>::split_first) {
        Some((kind, payload)) => Ok(Split::Packet(Frame { kind: *kind, payload, bytes: 2 + length })),
        None => Ok(Split::Incomplete { needed: 2 + length }),
    }
}
