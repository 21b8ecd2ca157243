//! What wakes a subscriber for something other than a frame.

use std::sync::Arc;

use rustix::io::Errno;
use rustix::thread::{ClockId, futex};
use rustix::time::clock_gettime;

use crate::atomics::{AtomicU32, Ordering};

/// Wakes a subscriber of this process that [waits for a frame or for this](crate::SubscriberOf::wait_or). Any thread may
/// ring it, at any time: one that has been rung stays so until it is [answered](Self::answer), and whoever waits with it then does
/// not sleep.
///
/// So one thread can wait for a ring and for sockets at once: another one sleeps on the sockets, and rings.
#[derive(Clone, Debug, Default)]
pub struct Bell(Arc<AtomicU32>);

impl Bell {
    /// One that has not been rung.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes who waits. A system call, unless it has been rung already.
    pub fn ring(&self) {
        // Sequentially consistent, as the look in `answer` is: what was done before is seen by who answers.
        if self.0.swap(1, Ordering::SeqCst) == 0 {
            // Fails on no argument that we pass.
            let _ = futex::wake(&self.0, futex::Flags::PRIVATE, 1);
        }
    }

    /// Whether it has been rung since it was answered last.
    #[inline]
    #[must_use]
    pub fn is_rung(&self) -> bool {
        self.0.load(Ordering::SeqCst) != 0
    }

    /// Whether it had been rung; now it has not.
    #[must_use]
    pub fn answer(&self) -> bool {
        self.is_rung() && self.0.swap(0, Ordering::SeqCst) != 0
    }

    /// Sleeps until the word, which is shared with other processes, is no longer `expected` or is woken, until the bell is rung,
    /// or for so long. Since Linux 5.16; without it, or where a sandbox refuses it, who rings is heard at the end of a short
    /// sleep.
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

/// The longest sleep where nobody can ring, ns.
const SHORT_SLEEP_NS: futex::Nsecs = 500_000;
