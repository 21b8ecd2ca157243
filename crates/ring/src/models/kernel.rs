//! What the kernel gives, as far as the models need it. They do not sleep: waking is a counter that nobody waits for.

pub(crate) use rustix::io::Errno;

/// `membarrier(2)`, as where a sandbox refuses it.
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
