//! Proof of life: locks that the kernel drops when their holder dies, however it dies.
//!
//! They are locks of the open file (`F_OFD_SETLK`), not of the process, so that two subscribers of one process have
//! separate locks. Each holder locks the byte of the segment that represents it. A child that was forked without
//! `exec` keeps its parent's locks.

#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;

/// Tries to lock the byte at `at` for this open file. `Ok(false)`: another open file holds it.
pub(crate) fn acquire(file: impl AsFd, at: u64) -> Result<bool, Errno> {
    match control(file, libc::F_OFD_SETLK, libc::F_WRLCK, at) {
        Ok(_) => Ok(true),
        Err(Errno::AGAIN | Errno::ACCESS) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Releases the lock on the byte at `at`.
pub(crate) fn release(file: impl AsFd, at: u64) -> Result<(), Errno> {
    control(file, libc::F_OFD_SETLK, libc::F_UNLCK, at).map(|_| ())
}

/// Whether another open file holds the lock on the byte at `at`.
pub(crate) fn held_by_another(file: impl AsFd, at: u64) -> Result<bool, Errno> {
    control(file, libc::F_OFD_GETLK, libc::F_WRLCK, at).map(|kind| kind != libc::F_UNLCK)
}

fn control(file: impl AsFd, command: i32, kind: i32, at: u64) -> Result<i32, Errno> {
    // An offset beyond `i64` cannot be in a file.
    let start = i64::try_from(at).map_err(|_| Errno::INVAL)?;
    let mut lock = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: start,
        l_len: 1,
        l_pid: 0, // must be zero for locks of an open file
    };
    loop {
        // SAFETY: the descriptor is open while `file` is borrowed, `lock` is a whole `flock` that outlives the
        // call, and these commands touch nothing else. The liveness tests in `tests/processes.rs` show it.
        let done = unsafe { libc::fcntl(file.as_fd().as_raw_fd(), command, &raw mut lock) };
        if done >= 0 {
            return Ok(i32::from(lock.l_type));
        }
        let errno =
            std::io::Error::last_os_error().raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error);
        if errno != Errno::INTR {
            return Err(errno);
        }
    }
}
