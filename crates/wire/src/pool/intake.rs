//! The receiving thread's end of a pool.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tapeline_nanos::Nanos;
use tapeline_ring::spsc::{Producer, QueueRefused};

use super::loaded::Loaded;
use super::memory::{Pages, Slot};
use super::stock::Stock;
use super::{Policy, PoolSettings, PooledDatagram, Returned};
use crate::Error;
use crate::impls::shown;
use crate::udp::{Batch, UdpReceiver};

/// The receiving thread's end: reads datagrams from sockets into slots and delivers them to the
/// [`Outlet`](super::Outlet). After it is dropped, the outlet gets the delivered datagrams, then the end.
pub struct Intake {
    loaded: Loaded,
    stock: Stock,
    /// Received and not yet delivered.
    staged: VecDeque<PooledDatagram>,
    filled: Producer<Option<PooledDatagram>>,
    returned: Arc<Returned>,
    /// Slots taken from the stock or the heap since the start.
    taken: u64,
    /// Slots returned, as last read.
    seen_returned: u64,
    /// Maximum number of slots.
    bound: u64,
    policy: Policy,
    /// Receives the datagrams to drop.
    scratch: Option<Batch>,
    dry: bool,
    pages: Pages,
    counters: PoolCounters,
}

/// Counts of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolCounters {
    /// Slots that were available in the pool when one was needed.
    pub hits: u64,
    /// Slots that were not available in the pool: allocated on the heap, or missing so that a datagram was
    /// dropped.
    pub misses: u64,
    /// Times at which all slots were in use, so that the policy applied.
    pub exhaustions: u64,
    /// Datagrams dropped ([`Policy::DropNewest`]).
    pub dropped: u64,
    /// Maximum number of slots that contained datagrams at once.
    pub high_water: u64,
}

/// The result of a receive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct PoolReceived {
    /// Datagrams in slots, staged for delivery.
    pub count: usize,
    /// Datagrams dropped because no slot was free.
    pub dropped: usize,
    /// `true` if no slot was free, so that the socket was not read: slots must be returned first ([`Policy::Block`]).
    pub exhausted: bool,
}

/// The outlet is gone: delivered datagrams would not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the decoder has gone")]
pub struct Closed;

impl Intake {
    pub(super) fn new(
        settings: &PoolSettings,
        most: usize,
        pages: Pages,
        stock: Stock,
        filled: Producer<Option<PooledDatagram>>,
        returned: Arc<Returned>,
    ) -> Self {
        let batch = settings.batch.clamp(1, crate::udp::MAX_SLOTS);
        Self {
            loaded: Loaded::new(batch),
            stock,
            staged: VecDeque::with_capacity(most),
            filled,
            returned,
            taken: 0,
            seen_returned: 0,
            bound: most as u64,
            policy: settings.policy,
            scratch: (settings.policy == Policy::DropNewest).then(|| Batch::new(batch, 1)),
            dry: false,
            pages,
            counters: PoolCounters::default(),
        }
    }

    /// Reads the available datagrams, up to a batch, straight into slots, without waiting. They are staged;
    /// [`deliver`](Self::deliver) passes them to the decoder.
    ///
    /// One system call; no lock and no allocation with [`PoolKind::Spsc`](super::PoolKind::Spsc) while slots are free.
    ///
    /// # Errors
    /// As of [`UdpReceiver::receive`].
    pub fn receive(&mut self, receiver: &mut UdpReceiver, line: u8) -> Result<PoolReceived, Error> {
        self.load();
        if self.loaded.len() == 0 {
            return self.without_slots(receiver);
        }
        let loaded = &mut self.loaded;
        let count = receiver.receive_with(|fd| loaded.fill(fd))?;
        // After a network error no slot is filled.
        if count > 0 {
            loaded.unload(line, &mut self.staged);
            self.note_high_water();
        }
        Ok(PoolReceived { count, ..PoolReceived::default() })
    }

    /// Copies a datagram that arrived another way (a retransmission, a file) into a slot and stages it after
    /// the others. While no slot is free, the policy applies as with [`receive`](Self::receive): the datagram
    /// is not taken, or it is dropped.
    pub fn put(&mut self, bytes: &[u8], received: Option<Nanos>, line: u8) -> PoolReceived {
        self.see_returned();
        let Some(mut slot) = self.slot() else {
            self.run_dry();
            let dropped = usize::from(self.policy == Policy::DropNewest);
            self.drop_newest(dropped);
            return PoolReceived { dropped, exhausted: dropped == 0, ..PoolReceived::default() };
        };
        self.dry = false;
        let length = slot.write(bytes);
        let truncated = length < bytes.len();
        // Does not truncate: a slot is shorter than 65,536 bytes.
        self.staged.push_back(PooledDatagram { slot, received, length: length as u16, line, truncated });
        self.note_high_water();
        PoolReceived { count: 1, ..PoolReceived::default() }
    }

    /// Delivers the staged datagrams in order of arrival and returns their number.
    ///
    /// # Errors
    /// [`Closed`] when the outlet has gone.
    pub fn deliver(&mut self) -> Result<usize, Closed> {
        let mut delivered = 0;
        while !self.staged.is_empty() {
            match self.filled.claim_batch(self.staged.len()) {
                Ok(mut batch) => {
                    for place in batch.iter_mut() {
                        *place = self.staged.pop_front();
                    }
                    delivered += batch.len();
                    batch.commit();
                }
                Err(QueueRefused::Closed) => return Err(Closed),
                // Cannot happen while the queue has capacity for every slot; the staged datagrams stay.
                Err(QueueRefused::Full) => break,
            }
        }
        if delivered == 0 && self.filled.is_closed() { Err(Closed) } else { Ok(delivered) }
    }

    /// Returns the number of datagrams received and not yet delivered.
    pub fn staged(&self) -> usize {
        self.staged.len()
    }

    /// Returns the counts of the pool.
    pub fn counters(&self) -> PoolCounters {
        self.counters
    }

    /// Returns the kind of memory pages of the slots.
    pub fn pages(&self) -> Pages {
        self.pages
    }

    /// Loads the available slots, up to a batch.
    #[inline]
    fn load(&mut self) {
        if self.loaded.room() > 0 {
            self.see_returned();
            while self.loaded.room() > 0
                && let Some(slot) = self.slot()
            {
                self.loaded.load(slot);
            }
        }
        if self.loaded.len() > 0 {
            self.dry = false;
        } else {
            self.run_dry();
        }
    }

    /// Returns the next slot, from the pool or, if the policy permits, from the heap.
    #[inline]
    fn slot(&mut self) -> Option<Slot> {
        // Slots in queues are bounded by their number. Allocated slots must be counted.
        let allocates = self.policy == Policy::Heap || !matches!(self.stock, Stock::Spsc { .. });
        if allocates && self.under_way() >= self.bound {
            return None;
        }
        let found = self.stock.take();
        match found {
            Some(_) => self.counters.hits += 1,
            None if allocates => self.counters.misses += 1,
            None => return None,
        }
        self.taken += 1;
        Some(found.unwrap_or_else(Slot::on_heap))
    }

    fn without_slots(&mut self, receiver: &mut UdpReceiver) -> Result<PoolReceived, Error> {
        let Some(scratch) = &mut self.scratch else {
            return Ok(PoolReceived { exhausted: true, ..PoolReceived::default() });
        };
        let dropped = receiver.receive(scratch)?;
        self.drop_newest(dropped);
        Ok(PoolReceived { dropped, ..PoolReceived::default() })
    }

    fn drop_newest(&mut self, dropped: usize) {
        self.counters.dropped += dropped as u64;
        self.counters.misses += dropped as u64;
    }

    fn run_dry(&mut self) {
        self.counters.exhaustions += u64::from(!self.dry);
        self.dry = true;
    }

    #[inline]
    fn see_returned(&mut self) {
        self.stock.collect();
        self.count_returned();
    }

    #[inline]
    fn count_returned(&mut self) {
        // Relaxed: a statistic.
        self.seen_returned = self.returned.0.load(Ordering::Relaxed);
    }

    /// Returns the number of slots taken and not yet seen to be returned.
    fn under_way(&self) -> u64 {
        self.taken.saturating_sub(self.seen_returned)
    }

    #[inline]
    fn note_high_water(&mut self) {
        // After slots are taken, so that slots returned since then are not counted twice.
        self.count_returned();
        let holding = self.under_way().saturating_sub(self.loaded.len() as u64);
        self.counters.high_water = self.counters.high_water.max(holding);
    }
}

shown!(Intake, it => bound: it.bound, policy: it.policy, staged: it.staged.len(), counters: it.counters);
