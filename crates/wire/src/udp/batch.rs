//! The memory that a receive call fills, and the view of each datagram in it.

use std::fmt;
use std::net::SocketAddrV4;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use tapeline_nanos::Nanos;

use super::message::Incoming;

/// Readable bytes after every datagram, so that a decoder may load a whole cache line from any of its bytes.
pub const SPARE_BYTES: usize = 64;

/// Maximum number of datagrams that the kernel returns in one call (`UIO_MAXIOV`).
pub const MAX_SLOTS: usize = 1024;

/// A buffer for a number of datagrams, allocated once and reused by each
/// [`UdpReceiver::receive`](super::UdpReceiver::receive).
///
/// The default, 64 slots of 2048 bytes, fits the datagrams of exchanges (up to 1,500 bytes) and keeps a batch inside a
/// core's second-level cache.
pub struct Batch {
    incoming: Incoming,
}

/// One datagram of a [`Batch`].
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// The payload; cut to the slot's size if [`truncated`](Self::truncated).
    pub bytes: &'a [u8],
    /// The same bytes and at least [`SPARE_BYTES`] more, whose content is undefined.
    pub padded: &'a [u8],
    /// The kernel's receive time, if the socket has stamps.
    pub received: Option<Nanos>,
    /// `true` if the datagram was longer than the slot, so that its end is lost.
    pub truncated: bool,
    /// The sender's address.
    pub source: SocketAddrV4,
}

impl Batch {
    /// Creates a batch of `slots` datagrams of up to `slot_bytes` bytes each.
    ///
    /// `slots` is limited to 1..=[`MAX_SLOTS`] and `slot_bytes` to 1..=65,535, the bounds of the kernel and of UDP.
    pub fn new(slots: usize, slot_bytes: usize) -> Self {
        Self { incoming: Incoming::new(slots.clamp(1, MAX_SLOTS), slot_bytes.clamp(1, 65_535), SPARE_BYTES) }
    }

    /// Returns the number of slots.
    pub fn slots(&self) -> usize {
        self.incoming.slots()
    }

    /// Returns the number of datagrams from the last receive.
    pub fn len(&self) -> usize {
        self.incoming.filled()
    }

    /// Returns `true` if the last receive found nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns datagram `i` of the last receive.
    #[inline]
    pub fn datagram(&self, i: usize) -> Option<Datagram<'_>> {
        let slot = self.incoming.slot(i)?;
        Some(Datagram {
            bytes: slot.bytes,
            padded: slot.padded,
            received: slot.envelope.received(),
            truncated: slot.envelope.is_truncated(),
            source: slot.envelope.source,
        })
    }

    /// Returns the datagrams of the last receive, in order of arrival.
    #[inline]
    pub fn iter(&self) -> Datagrams<'_> {
        Datagrams { batch: self, next: 0 }
    }

    pub(super) fn fill(&mut self, fd: BorrowedFd<'_>) -> Result<usize, Errno> {
        self.incoming.fill(fd)
    }

    /// Returns the kernel's drop count when the last datagram was queued; `None` while it is 0.
    pub(super) fn dropped(&self) -> Option<u32> {
        self.incoming.slot(self.len().checked_sub(1)?)?.envelope.dropped()
    }
}

impl Default for Batch {
    fn default() -> Self {
        Self::new(64, 2048)
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("slots", &self.slots())
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl<'a> IntoIterator for &'a Batch {
    type Item = Datagram<'a>;
    type IntoIter = Datagrams<'a>;

    fn into_iter(self) -> Datagrams<'a> {
        self.iter()
    }
}

/// The datagrams of a [`Batch`], in order.
#[derive(Clone, Debug)]
pub struct Datagrams<'a> {
    batch: &'a Batch,
    next: usize,
}

impl<'a> Iterator for Datagrams<'a> {
    type Item = Datagram<'a>;

    #[inline]
    fn next(&mut self) -> Option<Datagram<'a>> {
        let datagram = self.batch.datagram(self.next)?;
        self.next += 1;
        Some(datagram)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.batch.len().saturating_sub(self.next);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Datagrams<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_brought_into_bounds() {
        assert_eq!(Batch::new(0, 0).slots(), 1);
        assert_eq!(Batch::new(usize::MAX, 1).slots(), MAX_SLOTS);
        assert!(Batch::default().is_empty() && Batch::default().iter().next().is_none());
    }
}
