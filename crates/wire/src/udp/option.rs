//! The socket options for which rustix has no function. The code is `unsafe` because the kernel reads and
//! writes through pointers; each call passes one local value and its true size.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

/// Sets an option whose value is one `int`.
pub(super) fn set_int(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: c_int) -> Result<(), Errno> {
    // SAFETY: the kernel reads `size_of::<c_int>()` bytes from `value`, which lives until the call returns.
    // Test: `stamps_are_close_to_now_and_in_order` fails when the value does not arrive.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(last_errno()) }
}

/// Returns the number of datagrams that the kernel has dropped on this socket, modulo 2^32: the last word of
/// `SO_MEMINFO`, the same counter that `SO_RXQ_OVFL` attaches to datagrams.
pub(super) fn dropped(fd: BorrowedFd<'_>) -> Result<u32, Errno> {
    const WORDS: usize = libc::SK_MEMINFO_DROPS as usize + 1;
    let mut words = [0u32; WORDS];
    let mut length = size_of_val(&words) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `words`, which is that long, and the true count to
    // `length`. Test: `kernel_drops_are_counted_without_reading`.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            words.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result == 0 { Ok(words[WORDS - 1]) } else { Err(last_errno()) }
}

pub(super) fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}
