//! Messages with a length before each, as in one datagram of MoldUDP64 or IEX-TP.

use crate::framing::MalformedDatagram;

/// The messages of a packet, in order, each with its sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Messages<'a> {
    blocks: &'a [u8],
    sequence: u64,
    left: u16,
    little_endian: bool,
}

impl<'a> Messages<'a> {
    /// Splits `bytes` into the first `count` blocks, each a length of 16 bits and the message, and the bytes after them. The first message has the
    /// sequence `first`; the caller ensures that the sequence after the last fits in 64 bits.
    ///
    /// # Errors
    /// [`MalformedDatagram`]: there are fewer blocks.
    #[inline]
    pub(crate) fn split(
        bytes: &'a [u8],
        first: u64,
        count: u16,
        little_endian: bool,
    ) -> Result<(Self, &'a [u8]), MalformedDatagram> {
        let mut after = bytes;
        for _ in 0..count {
            (_, after) = block(after, little_endian)?;
        }
        let blocks = &bytes[..bytes.len() - after.len()];
        Ok((Self { blocks, sequence: first, left: count, little_endian }, after))
    }

    /// Returns the first `count` of these messages.
    #[inline]
    #[must_use]
    pub fn up_to(self, count: u64) -> Self {
        Self { left: u64::from(self.left).min(count) as u16, ..self }
    }

    /// Returns the sequence of the next message.
    #[must_use]
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Returns the sequence after the last message.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.sequence + self.left as u64
    }

    /// Returns the number of remaining messages.
    pub(crate) const fn left(&self) -> u16 {
        self.left
    }

    /// Returns the bytes of the remaining messages, with their lengths.
    #[must_use]
    pub(crate) const fn blocks(&self) -> &'a [u8] {
        self.blocks
    }

    /// Returns the same messages, read from a copy of their [`blocks`](Self::blocks).
    pub(crate) const fn over<'b>(&self, blocks: &'b [u8]) -> Messages<'b> {
        Messages { blocks, sequence: self.sequence, left: self.left, little_endian: self.little_endian }
    }

    /// Skips the next `count` messages.
    pub fn pass(&mut self, count: u16) {
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
        let (message, rest) = block(self.blocks, self.little_endian).ok()?;
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

/// Takes one block from the front: returns its data and the bytes after it.
#[inline]
fn block(bytes: &[u8], little_endian: bool) -> Result<(&[u8], &[u8]), MalformedDatagram> {
    let (length, rest) = bytes.split_first_chunk().ok_or(MalformedDatagram::MissingLength)?;
    let length = u16::from_be_bytes(*length);
    // Not a branch: the byte swap is one instruction, selected by a conditional move.
    let length = if little_endian { length.swap_bytes() } else { length };
    rest.split_at_checked(usize::from(length)).ok_or(MalformedDatagram::BlockPastEnd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_byte_orders_are_read() {
        for (bytes, little) in [(*b"\0\x01a\0\x02bc!", false), (*b"\x01\0a\x02\0bc!", true)] {
            let (mut messages, after) = Messages::split(&bytes, 7, 2, little).unwrap();
            assert_eq!((messages.len(), messages.end(), after), (2, 9, &b"!"[..]));
            let all: Vec<_> = messages.collect();
            assert_eq!(all, [(7, &b"a"[..]), (8, b"bc")]);
            messages.pass(1);
            assert_eq!((messages.sequence(), messages.next()), (8, Some((8, &b"bc"[..]))));
        }
    }

    #[test]
    fn what_is_cut_is_refused() {
        assert_eq!(Messages::split(b"\0\x03ab", 1, 1, false).unwrap_err(), MalformedDatagram::BlockPastEnd);
        assert_eq!(Messages::split(b"\0\x01a\0", 1, 2, false).unwrap_err(), MalformedDatagram::MissingLength);
    }
}
