//! `recvmmsg(2)` and `sendmmsg(2)` over arrays that are made once. With `option.rs` the only `unsafe` of
//! [`crate::udp`].
//!
//! A message header is a handful of pointers into other arrays. [`Incoming`] owns everything that its headers
//! point to, so they are set once; [`Outgoing`] lends its headers the caller's bytes for the length of one
//! call.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::mem;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use rustix::io::Errno;

use super::option::last_errno;

/// Room for the control messages of one datagram: a stamp (32 bytes) and a drop count (24 bytes).
pub(super) const CONTROL_BYTES: usize = 64;

/// Control messages start with a `cmsghdr`, so they are aligned like one.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

/// The memory that one `recvmmsg` fills.
pub(super) struct Incoming {
    stride: usize,
    bytes: Vec<u8>,
    controls: Vec<Control>,
    names: Vec<libc::sockaddr_in>,
    // Read by the kernel only, through `headers`.
    _vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
    filled: usize,
}

// SAFETY: the pointers in `_vectors` and `headers` lead into the other vectors' heap memory, which moves to
// the other thread together with them and is shared with nobody. Test:
// `a_batch_can_be_filled_again_and_moves_between_threads`.
unsafe impl Send for Incoming {}
// SAFETY: through `&Incoming` everything is only read, and the pointers are not followed at all.
// Test: as above.
unsafe impl Sync for Incoming {}

/// One datagram as the kernel left it.
pub(super) struct Slot<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) padded: &'a [u8],
    pub(super) control: &'a [u8],
    pub(super) flags: c_int,
    pub(super) source: SocketAddrV4,
}

impl Incoming {
    /// Room for `slots` datagrams of up to `slot_bytes` bytes, each followed by `spare_bytes` that the kernel
    /// never writes.
    pub(super) fn new(slots: usize, slot_bytes: usize, spare_bytes: usize) -> Self {
        let stride = slot_bytes + spare_bytes;
        let mut bytes = vec![0u8; slots * stride];
        let mut controls = vec![Control([0; CONTROL_BYTES]); slots];
        // SAFETY: all three are plain C structures for which all zeroes is a valid value (null pointers,
        // length 0). Test: every receive.
        let (name, vector, header) = unsafe {
            (mem::zeroed::<libc::sockaddr_in>(), mem::zeroed::<libc::iovec>(), mem::zeroed::<libc::mmsghdr>())
        };
        let mut names = vec![name; slots];
        let mut vectors = vec![vector; slots];
        let mut headers = vec![header; slots];
        let (first_byte, first_control) = (bytes.as_mut_ptr(), controls.as_mut_ptr());
        let (first_name, first_vector) = (names.as_mut_ptr(), vectors.as_mut_ptr());
        for (i, header) in headers.iter_mut().enumerate() {
            // SAFETY: `i < slots`, the length of each of the four vectors (`stride` times that for `bytes`),
            // so every offset stays inside its own allocation. The vectors are never grown, so the pointers
            // stay true when `self` moves. Test: `mixed_sizes_arrive_in_order_in_one_batch` fills every slot.
            unsafe {
                *first_vector.add(i) =
                    libc::iovec { iov_base: first_byte.add(i * stride).cast(), iov_len: slot_bytes };
                header.msg_hdr.msg_iov = first_vector.add(i);
                header.msg_hdr.msg_name = first_name.add(i).cast();
                header.msg_hdr.msg_control = first_control.add(i).cast();
            }
            header.msg_hdr.msg_iovlen = 1;
            reset(&mut header.msg_hdr);
        }
        Self { stride, bytes, controls, names, _vectors: vectors, headers, filled: 0 }
    }

    pub(super) fn slots(&self) -> usize {
        self.headers.len()
    }

    /// How many datagrams the last [`fill`](Self::fill) left.
    pub(super) fn filled(&self) -> usize {
        self.filled
    }

    /// Takes what is there, up to one datagram a slot, without waiting. Costs one system call.
    pub(super) fn fill(&mut self, fd: BorrowedFd<'_>) -> Result<usize, Errno> {
        // The kernel shortened these lengths to what it wrote.
        for header in self.headers.iter_mut().take(self.filled) {
            reset(&mut header.msg_hdr);
        }
        self.filled = 0;
        // SAFETY: `headers` holds as many headers as the call is told, and each points to memory of `self`
        // with its true length (see `new`); `&mut self` keeps every view of that memory away. A null time-out
        // means none, and with MSG_DONTWAIT the call does not wait. Test:
        // `a_long_datagram_is_cut_and_flagged` checks that nothing is written behind a slot.
        let count = unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                self.headers.as_mut_ptr(),
                self.headers.len() as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        };
        // Negative means errno; the kernel never answers with more than it was given, and `slot` checks again.
        self.filled = usize::try_from(count).map_err(|_| last_errno())?.min(self.headers.len());
        Ok(self.filled)
    }

    /// Datagram `i` of the last fill.
    pub(super) fn slot(&self, i: usize) -> Option<Slot<'_>> {
        if i >= self.filled {
            return None;
        }
        let header = &self.headers[i];
        let whole = &self.bytes[i * self.stride..][..self.stride];
        let length = (header.msg_len as usize).min(self.stride);
        let control_length = header.msg_hdr.msg_controllen.min(CONTROL_BYTES);
        let name = &self.names[i];
        Some(Slot {
            bytes: &whole[..length],
            padded: whole,
            control: &self.controls[i].0[..control_length],
            flags: header.msg_hdr.msg_flags,
            source: SocketAddrV4::new(
                Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr)),
                u16::from_be(name.sin_port),
            ),
        })
    }
}

/// The lengths that tell the kernel how much room there is for an address and for control messages.
fn reset(header: &mut libc::msghdr) {
    header.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    header.msg_controllen = CONTROL_BYTES;
    header.msg_flags = 0;
}

/// The arrays of one `sendmmsg`. Between calls they point at nothing that will be read.
pub(super) struct Outgoing {
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: as for `Incoming`: `headers` point into `vectors`, and both move together; what `vectors` point to
// is only read during the call that set it. Test: `a_batch_can_be_filled_again_and_moves_between_threads`.
unsafe impl Send for Outgoing {}
// SAFETY: nothing can be read through `&Outgoing`.
unsafe impl Sync for Outgoing {}

impl Outgoing {
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

    /// Sends what `datagrams` yields, one datagram each, up to as many as there are slots; does not wait.
    /// Answers how many items it took from the iterator and how many of those were sent; what was taken and
    /// not sent starts with the one that the error is about. Costs one system call.
    pub(super) fn send<'a, B: AsRef<[u8]> + ?Sized + 'a>(
        &mut self,
        fd: BorrowedFd<'_>,
        datagrams: &mut impl Iterator<Item = &'a B>,
    ) -> (usize, Result<usize, Errno>) {
        let mut taken = 0;
        // `zip` would take one item too many from `datagrams` when the slots run out, so the slots lead.
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
        // `'a`, which outlives this call; the kernel only reads them. Nothing follows those pointers after
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
    // SAFETY: all zeroes is a valid `msghdr`; then it gets one vector over `bytes` and one control message,
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
