//! The decoding thread's end of a pool.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tapeline_ring::spsc::{Consumer, QueuePoll, Records};

use super::stock::Returns;
use super::{PooledDatagram, Returned};

/// Maximum number of datagrams lent at once: a limit on the time before their slots can be reused.
const MOST: usize = 64;

/// The decoding thread's end: takes datagrams in order of arrival and returns their slots. After it is dropped, the
/// intake gets [`Closed`](super::Closed).
#[derive(Debug)]
pub struct Outlet {
    filled: Consumer<Option<PooledDatagram>>,
    returns: Returns,
    returned: Arc<Returned>,
    /// Slots returned since the start.
    count: u64,
}

impl Outlet {
    pub(super) fn new(
        filled: Consumer<Option<PooledDatagram>>,
        returns: Returns,
        returned: Arc<Returned>,
    ) -> Self {
        Self { filled, returns, returned, count: 0 }
    }

    /// Lends the oldest available datagrams, in place: up to 64, and fewer in a small pool. Dropping them returns their
    /// slots.
    #[inline]
    pub fn take(&mut self) -> QueuePoll<PooledDatagrams<'_>> {
        self.take_up_to(MOST)
    }

    /// Takes datagrams as [`take`](Self::take) does, but at most `most`.
    ///
    /// # Panics
    /// If `most` is 0.
    #[inline]
    pub fn take_up_to(&mut self, most: usize) -> QueuePoll<PooledDatagrams<'_>> {
        match self.filled.take_up_to(most.min(MOST)) {
            QueuePoll::Ready(records) => QueuePoll::Ready(PooledDatagrams {
                records,
                returns: &mut self.returns,
                returned: &self.returned,
                count: &mut self.count,
            }),
            QueuePoll::Empty => QueuePoll::Empty,
            QueuePoll::Ended => QueuePoll::Ended,
        }
    }

    /// Returns the number of datagrams taken so far.
    pub fn taken(&self) -> u64 {
        self.filled.read()
    }
}

/// Datagrams lent by an [`Outlet`]. Dropping them returns their slots.
#[derive(Debug)]
pub struct PooledDatagrams<'a> {
    records: Records<'a, Option<PooledDatagram>>,
    returns: &'a mut Returns,
    returned: &'a Returned,
    count: &'a mut u64,
}

impl PooledDatagrams<'_> {
    /// Returns the datagrams in order of arrival.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &PooledDatagram> {
        // Every record contains a datagram: it was delivered, and is removed only on drop.
        self.records.iter().flatten()
    }

    /// Returns the number of datagrams, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.records.len()
    }
}

impl Drop for PooledDatagrams<'_> {
    #[inline]
    fn drop(&mut self) {
        let count = self.records.len();
        let slots = self.records.iter_mut().filter_map(Option::take).map(|datagram| datagram.slot);
        *self.count += count as u64;
        // Relaxed: a statistic. Stored before the slots are returned; their queue then makes it visible to
        // the thread that takes them.
        self.returned.0.store(*self.count, Ordering::Relaxed);
        self.returns.give(count, slots);
    }
}
