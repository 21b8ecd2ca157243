//! An element of queues that carry values of one type.

use crate::message::{Message, copy};

/// A message in a queue of fixed slots, `N` bytes long: the length is known at compile time, which is the best case of
/// such queues.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot<const N: usize>(pub(crate) [u8; N]);

impl<const N: usize> Default for Slot<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> Slot<N> {
    /// The message as a value, to be moved into the queue.
    #[inline]
    pub(crate) fn of(message: &Message<'_>) -> Self {
        let mut slot = Self::default();
        copy(&message.body[..N], &mut slot.0);
        message.fill(&mut slot.0);
        slot
    }
}

/// Calls a generic function with the length of a case's messages as a constant.
macro_rules! with_length {
    ($bytes:expr, $run:ident ($($argument:expr),*)) => {
        match $bytes {
            32 => $run::<32>($($argument),*),
            100 => $run::<100>($($argument),*),
            500 => $run::<500>($($argument),*),
            1500 => $run::<1500>($($argument),*),
            other => anyhow::bail!("no slots of {other} bytes: 32, 100, 500 and 1500 are built in"),
        }
    };
}
pub(crate) use with_length;
