//! Waits that end at an exact time; a poll alone has a resolution of one millisecond.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use crate::impls::has_descriptor;

/// A timer that a poll can wait for: readable from its set time on, until it is set again.
#[derive(Debug)]
pub(super) struct Alarm(OwnedFd);

impl Alarm {
    pub(super) fn new() -> Result<Self, Errno> {
        timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK).map(Self)
    }

    /// Sets the timer to expire after this duration, at least a nanosecond from now. Replaces the previous
    /// setting.
    pub(super) fn set(&self, after: Duration) -> Result<(), Errno> {
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Zero would disarm the timer.
        let after = after.max(Duration::from_nanos(1));
        let value = Timespec::try_from(after).map_err(|_| Errno::INVAL)?;
        let time = Itimerspec { it_interval: zero, it_value: value };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &time).map(|_| ())
    }
}

has_descriptor!(Alarm, 0);

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, AsRawFd};

    use mio::unix::SourceFd;
    use mio::{Events, Interest, Poll, Token};

    use super::*;

    #[test]
    fn ends_a_wait_each_time_that_it_is_set() {
        let (alarm, mut poll, mut events) =
            (Alarm::new().unwrap(), Poll::new().unwrap(), Events::with_capacity(1));
        let fd = alarm.as_fd().as_raw_fd();
        poll.registry().register(&mut SourceFd(&fd), Token(7), Interest::READABLE).unwrap();
        for after in [Duration::from_micros(300), Duration::ZERO, Duration::from_micros(10)] {
            alarm.set(after).unwrap();
            // Only the alarm can end this poll.
            poll.poll(&mut events, None).unwrap();
            assert!(events.iter().any(|event| event.token() == Token(7)), "{after:?}");
        }
    }
}
