//! `recvmmsg(2)` and `sendmmsg(2)` over arrays that are allocated once. With `option.rs` the only `unsafe` of
//! [`crate::udp`].
//!
//! A message header is a few pointers into other arrays. [`Envelopes`] own all of these arrays except the
//! datagrams' memory, for which the caller is responsible. [`Batch`] owns that memory too, so its headers
//! are set once; [`OutgoingArrays`] points its headers at the caller's bytes for one call.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::mem;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use rustix::io::Errno;
use tapeline_nanos::Nanos;

use super::control::{control_value, nanos};
use super::option::last_errno;
use crate::impls::shown;

/// Space for the control messages of one datagram: a stamp (32 bytes), a drop count and a length (24 bytes each).
const CONTROL_BYTES: usize = 80;

/// Control messages start with a `cmsghdr`, so they have its alignment.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

/// The headers of one `recvmmsg` and everything that they point to, except the datagrams' memory.
pub(crate) struct Envelopes {
    controls: Vec<Control>,
    names: Vec<libc::sockaddr_in>,
    // Read only by the kernel, through `headers`.
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
    filled: usize,
}

// SAFETY: the pointers in `vectors` and `headers` point into the other vectors' heap memory, which moves to
// the other thread together with them and is shared with nobody, and into the datagrams' memory, for which
// the code that addresses an envelope is responsible. Test:
// `a_batch_can_be_filled_again_and_moves_between_threads`.
unsafe impl Send for Envelopes {}
// SAFETY: `&Envelopes` permits only reads, and the pointers are not followed at all. Test: as above.
unsafe impl Sync for Envelopes {}

/// The kernel's report on one datagram.
pub(crate) struct KernelReport<'a> {
    /// Bytes of the datagram that the kernel wrote.
    pub(crate) length: usize,
    control: &'a [u8],
    flags: c_int,
    /// The sender's address.
    pub(super) source: SocketAddrV4,
}

impl KernelReport<'_> {
    /// Returns the kernel's receive time, if the socket has stamps.
    #[inline]
    pub(crate) fn received(&self) -> Option<Nanos> {
        control_value::<16>(self.control, (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS)).and_then(nanos)
    }

    /// Returns the number of datagrams that the kernel had dropped when this one was queued, modulo 2^32; `None` while
    /// it is 0.
    #[inline]
    pub(crate) fn dropped(&self) -> Option<u32> {
        control_value::<4>(self.control, (libc::SOL_SOCKET, libc::SO_RXQ_OVFL)).map(u32::from_ne_bytes)
    }

    /// Returns the length of each of the datagrams that the kernel has joined to this one, of which the last may be shorter; `None` if it
    /// has joined none.
    #[inline]
    fn joined(&self) -> Option<usize> {
        let length = control_value::<4>(self.control, (libc::SOL_UDP, libc::UDP_GRO))?;
        usize::try_from(i32::from_ne_bytes(length)).ok().filter(|&length| length > 0)
    }

    /// Returns `true` if the datagram was longer than its memory.
    #[inline]
    pub(crate) fn is_truncated(&self) -> bool {
        self.flags & libc::MSG_TRUNC != 0
    }
}

impl Envelopes {
    /// Creates envelopes without an address.
    pub(crate) fn new(count: usize) -> Self {
        let mut controls = vec![Control([0; CONTROL_BYTES]); count];
        // SAFETY: all three are plain C structures for which all zeroes is a valid value (null pointers,
        // length 0). Test: every receive.
        let (name, vector, header) = unsafe {
            (mem::zeroed::<libc::sockaddr_in>(), mem::zeroed::<libc::iovec>(), mem::zeroed::<libc::mmsghdr>())
        };
        let mut names = vec![name; count];
        let mut vectors = vec![vector; count];
        let mut headers = vec![header; count];
        let first_control = controls.as_mut_ptr();
        let (first_name, first_vector) = (names.as_mut_ptr(), vectors.as_mut_ptr());
        for (i, header) in headers.iter_mut().enumerate() {
            // SAFETY: `i < count`, the length of each of the three vectors, so every offset stays inside its
            // own allocation. The vectors never grow, so the pointers stay valid when `self` moves. Test:
            // `mixed_sizes_arrive_in_order_in_one_batch` fills every slot.
            unsafe {
                header.msg_hdr.msg_iov = first_vector.add(i);
                header.msg_hdr.msg_name = first_name.add(i).cast();
                header.msg_hdr.msg_control = first_control.add(i).cast();
            }
            header.msg_hdr.msg_iovlen = 1;
            reset(&mut header.msg_hdr);
        }
        Self { controls, names, vectors, headers, filled: 0 }
    }

    /// Returns the number of datagrams from the last [`receive`](Self::receive).
    pub(crate) fn filled(&self) -> usize {
        self.filled
    }

    /// Sets where datagram `i` of the next receive goes. Only the receive follows the pointer.
    #[inline]
    pub(crate) fn address(&mut self, i: usize, start: *mut u8, length: usize) {
        self.vectors[i] = libc::iovec { iov_base: start.cast(), iov_len: length };
    }

    /// Reads the available datagrams, up to `most`, without waiting. Returns their number, and the kernel's drop count if
    /// the last datagram carried it. Costs one system call.
    ///
    /// # Safety
    /// The first `most` envelopes are addressed to memory that may be written for the length given with it,
    /// and that no other code touches during the call.
    pub(crate) unsafe fn receive(
        &mut self,
        fd: BorrowedFd<'_>,
        most: usize,
    ) -> Result<(usize, Option<u32>), Errno> {
        // The kernel has set these lengths to the bytes that it wrote.
        for header in self.headers.iter_mut().take(self.filled) {
            reset(&mut header.msg_hdr);
        }
        self.filled = 0;
        let most = most.min(self.headers.len());
        // SAFETY: `headers` has as many headers as the call is told, each with arrays of `self` of their true
        // length (see `new`) and with an address for which the caller is responsible. A null time-out means
        // none, and with MSG_DONTWAIT the call does not wait. Test: `a_long_datagram_is_cut_and_flagged`
        // checks that nothing is written after a slot.
        let count = unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                self.headers.as_mut_ptr(),
                most as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        };
        // Negative means errno; the kernel never returns more than it was given, and `envelope` checks again.
        self.filled = usize::try_from(count).map_err(|_| last_errno())?.min(most);
        let last = self.filled.checked_sub(1).and_then(|last| self.envelope(last));
        Ok((self.filled, last.and_then(|envelope| envelope.dropped())))
    }

    /// Returns the kernel's report on datagram `i` of the last receive.
    #[inline]
    pub(crate) fn envelope(&self, i: usize) -> Option<KernelReport<'_>> {
        if i >= self.filled {
            return None;
        }
        let header = &self.headers[i];
        let control_length = header.msg_hdr.msg_controllen.min(CONTROL_BYTES);
        let name = &self.names[i];
        Some(KernelReport {
            length: (header.msg_len as usize).min(self.vectors[i].iov_len),
            control: &self.controls[i].0[..control_length],
            flags: header.msg_hdr.msg_flags,
            source: SocketAddrV4::new(
                Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr)),
                u16::from_be(name.sin_port),
            ),
        })
    }
}

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
    stride: usize,
    bytes: Vec<u8>,
    envelopes: Envelopes,
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
        let (slots, slot_bytes) = (slots.clamp(1, MAX_SLOTS), slot_bytes.clamp(1, 65_535));
        let stride = slot_bytes + SPARE_BYTES;
        let mut bytes = vec![0u8; slots * stride];
        let mut envelopes = Envelopes::new(slots);
        for (i, slot) in bytes.chunks_exact_mut(stride).enumerate() {
            // The kernel never writes the spare bytes.
            envelopes.address(i, slot.as_mut_ptr(), slot_bytes);
        }
        Self { stride, bytes, envelopes }
    }

    /// Returns the number of slots.
    pub fn slots(&self) -> usize {
        self.envelopes.headers.len()
    }

    /// Returns the number of datagrams from the last receive.
    pub fn len(&self) -> usize {
        self.envelopes.filled
    }

    /// Returns `true` if the last receive found nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns datagram `i` of the last receive.
    #[inline]
    pub fn datagram(&self, i: usize) -> Option<Datagram<'_>> {
        let envelope = self.envelopes.envelope(i)?;
        let padded = &self.bytes[i * self.stride..][..self.stride];
        Some(Datagram {
            bytes: &padded[..envelope.length],
            padded,
            received: envelope.received(),
            truncated: envelope.is_truncated(),
            source: envelope.source,
        })
    }

    /// Returns the datagrams of the last receive, in order of arrival.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Datagram<'_>> {
        (0..self.len()).filter_map(|i| self.datagram(i))
    }

    /// Returns the same, with the datagrams apart that the kernel has [joined](super::ReceiveOptions::joined).
    #[inline]
    pub fn apart(&self) -> impl Iterator<Item = Datagram<'_>> {
        self.iter().zip(0..).flat_map(|(slot, i)| {
            let joined = self.envelopes.envelope(i).and_then(|envelope| envelope.joined());
            let length = joined.unwrap_or(slot.bytes.len()).max(1);
            // An empty datagram is one, too.
            (0..slot.bytes.len().div_ceil(length).max(1)).map(move |number| {
                let start = number * length;
                let bytes = &slot.bytes[start..slot.bytes.len().min(start + length)];
                Datagram { bytes, padded: &slot.padded[start..], ..slot }
            })
        })
    }

    /// Reads the available datagrams, up to one per slot, without waiting. Returns their number, and the kernel's drop
    /// count if the last datagram carried it. Costs one system call.
    pub(super) fn fill(&mut self, fd: BorrowedFd<'_>) -> Result<(usize, Option<u32>), Errno> {
        // SAFETY: every envelope is addressed to a slot of its own within `bytes`, which never grows, and
        // `&mut self` excludes every other view of it. Test: `a_long_datagram_is_cut_and_flagged`.
        unsafe { self.envelopes.receive(fd, self.slots()) }
    }
}

impl Default for Batch {
    fn default() -> Self {
        Self::new(64, 2048)
    }
}

shown!(Batch, it => slots: it.slots(), len: it.len());

/// Resets the lengths that state the kernel's space for an address and for control messages.
fn reset(header: &mut libc::msghdr) {
    header.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    header.msg_controllen = CONTROL_BYTES;
    header.msg_flags = 0;
}

/// The arrays of one `sendmmsg`. Between calls no code reads what they point to.
pub(super) struct OutgoingArrays {
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: as for `Envelopes`: `headers` point into `vectors`, and both move together; the bytes that `vectors`
// point to are only read during the call that set the pointers. Test:
// `a_batch_can_be_filled_again_and_moves_between_threads`.
unsafe impl Send for OutgoingArrays {}
// SAFETY: `&Outgoing` permits no reads.
unsafe impl Sync for OutgoingArrays {}

impl OutgoingArrays {
    pub(super) fn new(slots: usize) -> Self {
        // SAFETY: plain C structures, for which all zeroes is a valid value. Test: every send.
        let (vector, header) = unsafe { (mem::zeroed::<libc::iovec>(), mem::zeroed::<libc::mmsghdr>()) };
        let mut vectors = vec![vector; slots];
        let mut headers = vec![header; slots];
        let first_vector = vectors.as_mut_ptr();
        for (i, header) in headers.iter_mut().enumerate() {
            // SAFETY: `i < slots == vectors.len()`, and `vectors` never grows. Test:
            // `every_datagram_of_a_large_send_is_received_or_counted_as_dropped`.
            header.msg_hdr.msg_iov = unsafe { first_vector.add(i) };
            header.msg_hdr.msg_iovlen = 1;
        }
        Self { vectors, headers }
    }

    /// Sends the items of `datagrams`, one datagram each, up to the number of slots; does not wait. Returns
    /// how many items it took from the iterator and how many of those were sent. The first item taken and not
    /// sent is the one that the error is about. Costs one system call.
    pub(super) fn send<'a, B: AsRef<[u8]> + ?Sized + 'a>(
        &mut self,
        fd: BorrowedFd<'_>,
        datagrams: &mut impl Iterator<Item = &'a B>,
    ) -> (usize, Result<usize, Errno>) {
        let mut taken = 0;
        // `zip` would take one item too many from `datagrams` when the slots run out, so the loop is over the
        // slots.
        for vector in &mut self.vectors {
            let Some(datagram) = datagrams.next() else { break };
            let bytes: &'a [u8] = datagram.as_ref();
            vector.iov_base = bytes.as_ptr().cast_mut().cast();
            vector.iov_len = bytes.len();
            taken += 1;
        }
        if taken == 0 {
            return (0, Ok(0));
        }
        // SAFETY: the first `taken` headers each point to one vector, which points to bytes borrowed for
        // `'a`, which outlives this call; the kernel only reads them. No code follows those pointers after
        // the call. Test: `mixed_sizes_arrive_in_order_in_one_batch` compares every byte.
        let count = unsafe {
            libc::sendmmsg(
                fd.as_raw_fd(),
                self.headers.as_mut_ptr(),
                taken as libc::c_uint,
                (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
            )
        };
        (taken, usize::try_from(count).map_err(|_| last_errno()))
    }
}

/// Sends `bytes` as datagrams of `segment_bytes` each (the last may be shorter) with one pass through the
/// kernel's stack: `UDP_SEGMENT` of `udp(7)`, Linux 4.18 and later. All or nothing.
pub(super) fn send_segmented(fd: BorrowedFd<'_>, bytes: &[u8], segment_bytes: u16) -> Result<(), Errno> {
    #[repr(C)]
    struct SegmentSize {
        header: libc::cmsghdr,
        value: u16,
        padding: [u8; 6],
    }
    let mut control = SegmentSize {
        header: libc::cmsghdr {
            cmsg_len: size_of::<libc::cmsghdr>() + size_of::<u16>(),
            cmsg_level: libc::SOL_UDP,
            cmsg_type: libc::UDP_SEGMENT,
        },
        value: segment_bytes,
        padding: [0; 6],
    };
    let mut vector = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: all zeroes is a valid `msghdr`; it then gets one vector over `bytes` and one control message,
    // both alive until the call returns; the kernel only reads them. Test:
    // `segments_arrive_as_datagrams_of_their_own`.
    let count = unsafe {
        let mut header = mem::zeroed::<libc::msghdr>();
        header.msg_iov = &raw mut vector;
        header.msg_iovlen = 1;
        header.msg_control = (&raw mut control).cast();
        header.msg_controllen = size_of::<SegmentSize>();
        libc::sendmsg(fd.as_raw_fd(), &raw const header, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
    };
    if count < 0 { Err(last_errno()) } else { Ok(()) }
}

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
