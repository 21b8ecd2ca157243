//! The memory that a receive call fills, and the view of each datagram in it.

use std::fmt;
use std::net::SocketAddrV4;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use tapeline_measure::Nanos;

use super::message::Incoming;

/// Readable bytes behind every datagram, so that a decoder may load a whole cache line from any of its bytes.
pub const SPARE_BYTES: usize = 64;

/// The most datagrams that the kernel hands over in one call (`UIO_MAXIOV`).
pub const MAX_SLOTS: usize = 1024;

/// Room for a number of datagrams, made once and filled over and over by
/// [`Receiver::receive`](super::Receiver::receive).
///
/// The default, 64 slots of 2048 bytes, holds what exchanges send (up to 1,500 bytes) and keeps a batch
/// inside a core's second-level cache.
pub struct Batch {
    incoming: Incoming,
}

/// One datagram of a [`Batch`].
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// What it carries; cut to the slot's size when [`truncated`](Self::truncated).
    pub bytes: &'a [u8],
    /// The same bytes and at least [`SPARE_BYTES`] more, whose content means nothing.
    pub padded: &'a [u8],
    /// When the kernel received it, where the socket has stamps.
    pub received: Option<Nanos>,
    /// Whether it was longer than the slot, so that its end is lost.
    pub truncated: bool,
    /// Who sent it.
    pub source: SocketAddrV4,
}

impl Batch {
    /// Room for `slots` datagrams of up to `slot_bytes` bytes each.
    ///
    /// `slots` is brought into 1..=[`MAX_SLOTS`] and `slot_bytes` into 1..=65,535, the bounds of the kernel and
    /// of UDP.
    pub fn new(slots: usize, slot_bytes: usize) -> Self {
        Self { incoming: Incoming::new(slots.clamp(1, MAX_SLOTS), slot_bytes.clamp(1, 65_535), SPARE_BYTES) }
    }

    /// How many datagrams fit.
    pub fn slots(&self) -> usize {
        self.incoming.slots()
    }

    /// How many datagrams the last receive left here.
    pub fn len(&self) -> usize {
        self.incoming.filled()
    }

    /// Whether the last receive found nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Datagram `i` of those that the last receive left.
    #[inline]
    pub fn datagram(&self, i: usize) -> Option<Datagram<'_>> {
        let slot = self.incoming.slot(i)?;
        Some(Datagram {
            bytes: slot.bytes,
            padded: slot.padded,
            received: control_value::<16>(slot.control, libc::SCM_TIMESTAMPNS).and_then(nanos),
            truncated: slot.flags & libc::MSG_TRUNC != 0,
            source: slot.source,
        })
    }

    /// The datagrams that the last receive left, in the order of their arrival.
    #[inline]
    pub fn iter(&self) -> Datagrams<'_> {
        Datagrams { batch: self, next: 0 }
    }

    pub(super) fn fill(&mut self, fd: BorrowedFd<'_>) -> Result<usize, Errno> {
        self.incoming.fill(fd)
    }

    /// The kernel's drop count when the last datagram was queued; absent while it is 0.
    pub(super) fn dropped(&self) -> Option<u32> {
        let last = self.incoming.slot(self.len().checked_sub(1)?)?;
        control_value::<4>(last.control, libc::SO_RXQ_OVFL).map(u32::from_ne_bytes)
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

/// A `cmsghdr`: a length that counts the header, a level, a type. `cmsg(3)`.
const HEADER_BYTES: usize = size_of::<libc::cmsghdr>();

/// The first `N` bytes of the socket-level control message of this type.
#[inline]
fn control_value<const N: usize>(mut control: &[u8], wanted: i32) -> Option<[u8; N]> {
    // Never more rounds than headers fit, since every round takes at least one away.
    while let Some(&header) = control.first_chunk::<HEADER_BYTES>() {
        let length = usize::from_ne_bytes(*header.first_chunk()?);
        let level = i32::from_ne_bytes(*header[size_of::<usize>()..].first_chunk()?);
        let kind = i32::from_ne_bytes(*header[size_of::<usize>() + 4..].first_chunk()?);
        if level == libc::SOL_SOCKET && kind == wanted {
            return control.get(HEADER_BYTES..length)?.first_chunk().copied();
        }
        let step = length.max(HEADER_BYTES).checked_next_multiple_of(align_of::<usize>())?;
        control = control.get(step..)?;
    }
    None
}

/// A `timespec` of the kernel, two native words, as nanoseconds since 1970.
fn nanos(timespec: [u8; 16]) -> Option<Nanos> {
    let seconds = i64::from_ne_bytes(*timespec.first_chunk()?);
    let ns = i64::from_ne_bytes(*timespec.last_chunk()?);
    let seconds = u64::try_from(seconds).ok()?;
    let ns = u64::try_from(ns).ok()?;
    // A machine whose clock was never set reports the epoch itself: that is no stamp.
    seconds.checked_mul(1_000_000_000)?.checked_add(ns).filter(|&total| total > 0).map(Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(length: usize, kind: i32, value: &[u8]) -> Vec<u8> {
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend_from_slice(&libc::SOL_SOCKET.to_ne_bytes());
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(value);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    #[test]
    fn control_messages_are_found_behind_others() {
        let mut control = message(20, libc::SO_RXQ_OVFL, &7u32.to_ne_bytes());
        let stamp: Vec<u8> = [1u64.to_ne_bytes(), 5u64.to_ne_bytes()].concat();
        control.extend(message(32, libc::SCM_TIMESTAMPNS, &stamp));
        assert_eq!(control_value::<4>(&control, libc::SO_RXQ_OVFL), Some(7u32.to_ne_bytes()));
        assert_eq!(
            control_value::<16>(&control, libc::SCM_TIMESTAMPNS).and_then(nanos),
            Some(Nanos(1_000_000_005))
        );
        assert_eq!(control_value::<4>(&control, libc::SCM_RIGHTS), None);
    }

    #[test]
    fn odd_lengths_in_control_messages_end_the_search() {
        for length in [0, 1, 15, 16, 19, 4096, usize::MAX, usize::MAX - 8] {
            let control = message(length, libc::SO_RXQ_OVFL, &7u32.to_ne_bytes());
            assert_eq!(control_value::<4>(&control, libc::SO_RXQ_OVFL), None, "{length}");
            assert_eq!(control_value::<16>(&control, libc::SCM_TIMESTAMPNS), None, "{length}");
        }
        assert_eq!(control_value::<4>(&[0; 11], 1), None);
        assert_eq!(control_value::<4>(&[0; 64], 1), None);
    }

    #[test]
    fn stamps_before_1970_and_unset_ones_are_none() {
        let pair = |seconds: i64, ns: i64| {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&seconds.to_ne_bytes());
            bytes[8..].copy_from_slice(&ns.to_ne_bytes());
            nanos(bytes)
        };
        assert_eq!(pair(0, 0), None);
        assert_eq!(pair(-1, 0), None);
        assert_eq!(pair(i64::MAX, 0), None);
        assert_eq!(pair(0, 1), Some(Nanos(1)));
    }

    #[test]
    fn sizes_are_brought_into_bounds() {
        assert_eq!(Batch::new(0, 0).slots(), 1);
        assert_eq!(Batch::new(usize::MAX, 1).slots(), MAX_SLOTS);
        assert!(Batch::default().is_empty() && Batch::default().iter().next().is_none());
    }
}
