//! A bell, which wakes a subscriber for something other than a frame.

use std::sync::Arc;

use rustix::io::Errno;
use rustix::thread::{ClockId, futex};
use rustix::time::clock_gettime;

use crate::atomics::{AtomicU32, Ordering};

/// Wakes a subscriber of this process that [waits for a frame or for the bell](crate::SubscriberOf::wait_or). Any
/// thread may ring it at any time. A rung bell stays rung until it is [answered](Self::answer), and until then a wait
/// does not sleep.
///
/// This lets one thread wait for a ring and for sockets: a second thread sleeps on the sockets and rings the bell.
#[derive(Clone, Debug, Default)]
pub struct Bell(Arc<AtomicU32>);

impl Bell {
    /// Creates a bell that has not been rung.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Rings the bell and wakes the waiting subscriber. Makes a system call unless the bell is already rung.
    pub fn ring(&self) {
        // Sequentially consistent, as the load in `answer`: the thread that answers sees what was done before.
        if self.0.swap(1, Ordering::SeqCst) == 0 {
            // Cannot fail with these arguments.
            let _ = futex::wake(&self.0, futex::Flags::PRIVATE, 1);
        }
    }

    /// Returns `true` if the bell was rung since it was last answered.
    #[inline]
    #[must_use]
    pub fn is_rung(&self) -> bool {
        self.0.load(Ordering::SeqCst) != 0
    }

    /// Resets the bell; returns `true` if it was rung.
    #[must_use]
    pub fn answer(&self) -> bool {
        self.is_rung() && self.0.swap(0, Ordering::SeqCst) != 0
    }

    /// Sleeps until the word, which is shared with other processes, is no longer `expected` or is woken, until the
    /// bell is rung, or until `timeout` passes. Since Linux 5.16; without it, or where a sandbox refuses it, a ring
    /// of the bell is noticed at the end of a short sleep.
    pub(super) fn doze(
        &self,
        word: &AtomicU32,
        expected: u32,
        timeout: &futex::Timespec,
    ) -> Result<(), Errno> {
        let waiter = |word: &AtomicU32, expected: u32, flags| {
            let mut wait = futex::Wait::new();
            wait.val = expected.into();
            wait.uaddr = futex::WaitPtr::new(word.as_ptr().cast());
            wait.flags = flags;
            wait
        };
        let size = futex::WaitFlags::SIZE_U32;
        let both = [waiter(word, expected, size), waiter(&self.0, 0, size | futex::WaitFlags::PRIVATE)];
        let until = clock_gettime(ClockId::Monotonic) + *timeout;
        match futex::waitv(&both, futex::WaitvFlags::empty(), Some(&until), ClockId::Monotonic) {
            Err(Errno::NOSYS | Errno::PERM) => {
                let short = futex::Timespec { tv_sec: 0, tv_nsec: SHORT_SLEEP_NS };
                let timeout =
                    if (timeout.tv_sec, timeout.tv_nsec) < (0, SHORT_SLEEP_NS) { *timeout } else { short };
                futex::wait(word, futex::Flags::empty(), expected, Some(&timeout))
            }
            woken => woken.map(|_| ()),
        }
    }
}

/// The longest sleep where the bell cannot wake the sleeper, ns.
const SHORT_SLEEP_NS: futex::Nsecs = 500_000;
