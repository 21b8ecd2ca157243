//! A queue between two threads of one process: one producer, one consumer, records of one type.
//!
//! For the stages of a pipeline. The caller's function fills the slots when the queue is created. After that nothing is
//! allocated, no page is touched for the first time, and both sides lend out existing records. The producer
//! [claims](Producer::claim) a slot, writes its record in place and commits it; the consumer [takes](Consumer::take)
//! all available records as a slice, in place.
//!
//! ```
//! use tapeline_ring::spsc::{self, QueuePoll};
//! use std::thread;
//!
//! #[derive(Clone, Copy, Default)]
//! struct Trade { price: i64, shares: u32 }
//!
//! let (mut producer, mut consumer) = spsc::queue(1024, Trade::default);
//! let counting = thread::spawn(move || {
//!     let mut shares = 0;
//!     loop {
//!         match consumer.take() {
//!             QueuePoll::Ready(trades) => shares += trades.iter().map(|trade| u64::from(trade.shares)).sum::<u64>(),
//!             QueuePoll::Empty => std::hint::spin_loop(),
//!             QueuePoll::Ended => return shares,
//!         }
//!     }
//! });
//! for price in 0..5000 {
//!     let mut trade = loop {
//!         match producer.claim() {
//!             Ok(trade) => break trade,
//!             Err(spsc::QueueRefused::Full) => std::hint::spin_loop(),
//!             Err(spsc::QueueRefused::Closed) => panic!("nobody reads"),
//!         }
//!     };
//!     trade.price = price;
//!     trade.shares = 100;
//!     trade.commit();
//! }
//! drop(producer);
//! assert_eq!(counting.join().unwrap(), 500_000);
//! ```
//!
//! # What stays in a slot
//!
//! A slot keeps its record until the producer overwrites it, a lap later. Records that own memory are therefore reused:
//! a queue of `Vec<u8>` carries bytes without allocating if both sides leave the vectors in place. To move a record
//! out, take it from the slice with [`std::mem::take`] or [`replace`](std::mem::replace).

//!
//! # This or the ring
//!
//! Use the queue between two threads where records have one size and are read as slices ([`Consumer::take`]): a
//! consumer that is behind reads the producer's index once for the whole backlog, and 32 bytes go at the speed of
//! copying. Use the [ring](crate) for everything else: other processes, several readers, frames of any length, and
//! latency. A frame of the ring carries its own header in the cache line that has to be fetched anyway; in the queue
//! the index is a second line, and a consumer that has caught up waits for both. Where the consumer keeps up, the ring
//! is faster.
//!
//! A flag in each slot would need only one line, as in the ring, but cost a third of the throughput of slices, which
//! cannot be lent with flags between the records. Publishing the index for each 16th record gained nothing over each
//! record with a backlog, and would delay the others; a [batch](Producer::claim_batch) serves a producer that has
//! several records anyway. `make bench-peers ARGS="--only limits,ring,rtrb"` measures both types in both regimes.

mod consumer;
mod producer;
#[cfg_attr(loom, path = "../models/slots.rs")]
mod slots;

use std::sync::Arc;

pub use consumer::{Consumer, QueuePoll, Records};
pub use producer::{Producer, QueueRefused, SlotBatch, SlotClaim};

use crate::atomics::AtomicU64;
use slots::Slots;

/// The most slots that a queue can have, so that positions have bits to spare.
const MOST_SLOTS: usize = 1 << 40;

/// The bit of an index that says that its side is gone. The bits below it suffice for a record each nanosecond for
/// 292 years.
const GONE: u64 = 1 << 63;

/// Creates a queue of at least `capacity` records, rounded up to a power of two; `record` makes the slots' initial
/// records.
///
/// A total size of 512 KiB to 2 MiB is best, because it fits the second-level caches of both sides.
///
/// # Panics
/// If `capacity` is above 2⁴⁰, or the records need more than `isize::MAX` bytes.
pub fn queue<T: Send>(capacity: usize, record: impl FnMut() -> T) -> (Producer<T>, Consumer<T>) {
    assert!(capacity <= MOST_SLOTS, "{capacity} records are more than {MOST_SLOTS}");
    let slots = Slots::new(capacity.next_power_of_two(), record);
    let shared =
        Arc::new(Shared { written: Index(AtomicU64::default()), read: Index(AtomicU64::default()), slots });
    (Producer::new(Arc::clone(&shared)), Consumer::new(shared))
}

/// The state that both sides share.
#[derive(Debug)]
struct Shared<T> {
    /// Records that the producer has made visible, and whether it is gone. Written by the producer alone.
    written: Index,
    /// Records whose slots the consumer has released, and whether it is gone. Written by the consumer alone.
    read: Index,
    slots: Slots<T>,
}

/// A number on a line that only one side writes: 128 bytes, because processors fetch lines of 64 bytes in pairs.
#[repr(align(128))]
#[derive(Debug)]
struct Index(AtomicU64);
