//! A queue between two threads of one process: one producer, one consumer, records of one type.
//!
//! For the stages of a pipeline. The slots are filled when the queue is made, with whatever the caller's function gives:
//! from then on nothing is allocated, no page is touched for the first time, and both sides lend out records that are
//! there. The producer [claims](Producer::claim) a slot, writes its record in place and commits; the consumer
//! [takes](Consumer::take) as many as have come, as a slice where they lie.
//!
//! ```
//! use tapeline_ring::spsc::{self, Poll};
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
//!             Poll::Ready(trades) => shares += trades.iter().map(|trade| u64::from(trade.shares)).sum::<u64>(),
//!             Poll::Empty => std::hint::spin_loop(),
//!             Poll::Ended => return shares,
//!         }
//!     }
//! });
//! for price in 0..5000 {
//!     let mut trade = loop {
//!         match producer.claim() {
//!             Ok(trade) => break trade,
//!             Err(spsc::Refused::Full) => std::hint::spin_loop(),
//!             Err(spsc::Refused::Closed) => panic!("nobody reads"),
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
//! A slot keeps its record until the producer writes over it, a lap later. What owns memory is therefore used again: a
//! queue of `Vec<u8>` carries bytes without allocating, when both sides leave the vectors where they are. To move a record
//! out, take it from the slice with [`std::mem::take`] or [`replace`](std::mem::replace).

//!
//! # This or the ring
//!
//! Take the queue between two threads where records have one size and are read as slices ([`Consumer::take`]): a consumer
//! that is behind reads the producer's index once for all that is there, and 32 bytes go at the speed of copying. Take the
//! [ring](crate) for everything else: other processes, several readers, frames of any length, and latency. A frame of
//! the ring says itself that it is there, in the line that has to be fetched anyway; here the index is a second line, and a
//! consumer that has caught up waits for both. Where the consumer keeps up, the ring is the faster of the two.
//!
//! A flag in each slot would make one line of the two, as in the ring; it took a third of the speed of slices, which cannot
//! be lent with flags between the records. Publishing the index for each 16th record gained nothing over each one in
//! backlog, and would hold the others back; a [batch](Producer::claim_batch) is there for who has several anyway.
//! `make bench-peers ARGS="--only limits,ring,rtrb"` measures both types beside each other, in both regimes.

mod consumer;
mod producer;
#[cfg_attr(loom, path = "../models/slots.rs")]
mod slots;

use std::sync::Arc;

pub use consumer::{Consumer, Poll, Records};
pub use producer::{Batch, Claim, Producer, Refused};

use crate::atomics::AtomicU64;
use slots::Slots;

/// The most slots that a queue can have, so that positions have bits to spare.
const MOST_SLOTS: usize = 1 << 40;

/// The bit of an index that says that its side has gone. Below it there is room for a record each nanosecond for 292
/// years.
const GONE: u64 = 1 << 63;

/// A queue of at least `capacity` records, rounded up to a power of two; `record` makes what its slots hold at first.
///
/// 512 KiB to 2 MiB in all are best, because both sides' second-level caches hold them.
///
/// # Panics
/// If no memory holds so many records.
pub fn queue<T: Send>(capacity: usize, record: impl FnMut() -> T) -> (Producer<T>, Consumer<T>) {
    assert!(capacity <= MOST_SLOTS, "{capacity} records are more than {MOST_SLOTS}");
    let slots = Slots::new(capacity.next_power_of_two(), record);
    let shared =
        Arc::new(Shared { written: Index(AtomicU64::default()), read: Index(AtomicU64::default()), slots });
    (Producer::new(Arc::clone(&shared)), Consumer::new(shared))
}

/// What the two sides share.
#[derive(Debug)]
struct Shared<T> {
    /// Records that the producer has made visible, and whether it has gone. Written by the producer alone.
    written: Index,
    /// Records whose slots the consumer has given back, and whether it has gone. Written by the consumer alone.
    read: Index,
    slots: Slots<T>,
}

/// A number on a line that only one side writes: 128 bytes, because processors fetch lines of 64 bytes in pairs.
#[repr(align(128))]
#[derive(Debug)]
struct Index(AtomicU64);
