//! The kernel calls that the models need. The models do not sleep: a wake-up is a counter for which nobody waits.

pub(crate) use rustix::io::Errno;

/// `membarrier(2)`, as in a sandbox that refuses it.
pub(crate) fn membarrier(_: MembarrierCommand) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

pub(crate) enum MembarrierCommand {
    RegisterGlobalExpedited,
    GlobalExpedited,
}

/// `futex(2)`.
pub(crate) mod futex {
    use super::Errno;
    use crate::atomics::AtomicU32;
    pub(crate) use rustix::thread::futex::{Flags, Nsecs, Secs, Timespec};

    pub(crate) fn wait(_: &AtomicU32, _: Flags, _: u32, _: Option<&Timespec>) -> Result<(), Errno> {
        Err(Errno::TIMEDOUT)
    }

    pub(crate) fn wake(_: &AtomicU32, _: Flags, _: u32) -> Result<usize, Errno> {
        Ok(0)
    }
}
