//! A pool of datagrams between the receiving thread and the decoding thread.
//!
//! ```text
//!   socket ──recvmmsg──► Intake ══ filled slots ══► Outlet ──► decoder
//!                          ▲                          │
//!                          └═════ empty slots ════════┘
//! ```
//!
//! The kernel writes each datagram straight into a slot. The slot's handle goes to the decoder and comes
//! back; nothing is copied or allocated. The memory is allocated and touched before the first datagram. Both
//! directions are [`spsc`] queues, because each end is exactly one thread: use one pool
//! for each receiving thread.
//!
//! A slot is owned: only its owner can access it, and the compiler ensures that no slot is in two places.
//! Recently returned slots are reused first, so a lightly loaded plant stays in its caches however large the
//! pool is.
//!
//! ```
//! use tapeline_wire::pool::{self, PoolSettings, QueuePoll};
//! use tapeline_wire::udp::{ReceiveOptions, SendOptions, UdpReceiver, UdpSender};
//!
//! let mut receiver = UdpReceiver::open(&ReceiveOptions::new("127.0.0.1:0".parse()?))?;
//! let mut sender = UdpSender::open(&SendOptions::new(receiver.local_address()))?;
//! let (mut intake, mut outlet) = pool::open(&PoolSettings { slots: 1024, ..PoolSettings::default() })?;
//!
//! assert_eq!(sender.send(b"tape")?.count, 1);
//! let receiving = std::thread::spawn(move || {
//!     while intake.receive(&mut receiver, 0)?.count == 0 {}
//!     intake.deliver().expect("the decoder is there");
//!     Ok::<_, tapeline_wire::Error>(intake.counters())
//! });
//! loop {
//!     match outlet.take() {
//!         QueuePoll::Ready(datagrams) => assert!(datagrams.iter().all(|datagram| datagram.bytes() == b"tape")),
//!         QueuePoll::Empty => std::hint::spin_loop(),
//!         QueuePoll::Ended => break,
//!     }
//! }
//! let counters = receiving.join().expect("it does not panic")?;
//! assert_eq!((counters.misses, counters.high_water), (0, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Three pools
//!
//! Use [`PoolKind::Spsc`]. The other kinds have the same interface and exist for comparison (`tapeline burst --compare`,
//! `docs/burst.md`): a list behind a spinlock, the obvious first design, and plain allocation.
//!
//! | file | owns |
//! |---|---|
//! | `memory.rs` | the slots' memory, and an owned slot: `unsafe` |
//! | `loaded.rs` | slots for the kernel to fill: `unsafe` |
//! | `stock.rs` | the empty slots, of each kind of pool |
//! | `intake.rs`, `outlet.rs` | the two ends |

mod intake;
mod loaded;
mod memory;
mod outlet;
mod stock;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

pub use intake::{Closed, Intake, PoolCounters, PoolReceived};
pub use memory::{Pages, SLOT_BYTES};
pub use outlet::{Outlet, PooledDatagrams};
use tapeline_nanos::Nanos;
use tapeline_ring::spsc;
pub use tapeline_ring::spsc::QueuePoll;

use crate::Error;
use memory::{Memory, Slot};

/// Maximum number of slots of a pool: 8 GiB of memory.
pub const MAX_SLOTS: usize = 1 << 22;

/// The store of empty slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PoolKind {
    /// A queue between the two threads: no lock, no allocation.
    #[default]
    Spsc,
    /// A linked list behind a spinlock, with a node allocated for each returned slot. It begins empty: a missing slot
    /// is allocated, up to [`PoolSettings::slots`] of them.
    List,
    /// As `List`, with the length of the list counted by walking it whenever a slot is returned. C++'s
    /// `std::list::size()` did that in the standard library of GCC before version 5 (GCC 5 release notes).
    CountedList,
    /// No empty slots are stored: each datagram is allocated, and freed after decoding.
    Heap,
}

/// The policy for datagrams while no slot is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// They stay in the kernel's socket buffer until slots are returned; when the buffer is full too, the kernel drops
    /// and counts.
    #[default]
    Block,
    /// They are read from the socket, counted and dropped, so that later ones are fresh.
    DropNewest,
    /// They get slots from the heap, up to as many again as the pool has; beyond that as `Block`.
    Heap,
}

/// Settings of a pool.
#[derive(Clone, Copy, Debug)]
pub struct PoolSettings {
    /// The store of empty slots; default [`PoolKind::Spsc`].
    pub kind: PoolKind,
    /// Number of slots of [`SLOT_BYTES`] each, 1 to [`MAX_SLOTS`], default 16,384; other values are moved to the nearest
    /// bound. The slots hold the decoder's backlog, so the longest stall to survive determines the number. For kinds
    /// that allocate, it is the maximum number in use.
    pub slots: usize,
    /// The policy while all slots are in use; default [`Policy::Block`].
    pub policy: Policy,
    /// Request huge pages: fewer misses of the address cache with a large pool. Default `false`.
    pub huge_pages: bool,
    /// Maximum number of datagrams per system call, 1 to 1,024; default 64.
    pub batch: usize,
}

impl Default for PoolSettings {
    /// 16,384 slots (34 MB) in queues, filled 64 at a time, that block.
    fn default() -> Self {
        Self { kind: PoolKind::Spsc, slots: 16_384, policy: Policy::Block, huge_pages: false, batch: 64 }
    }
}

/// Creates a pool and returns its two ends: for the receiving thread and for the decoding thread.
///
/// All memory of [`PoolKind::Spsc`] is allocated and touched on return, except what [`Policy::Heap`] allocates later.
///
/// # Errors
/// [`Error::Memory`] where the machine does not give the slots' memory.
pub fn open(settings: &PoolSettings) -> Result<(Intake, Outlet), Error> {
    let slots = settings.slots.clamp(1, MAX_SLOTS);
    // Only the pool with queues has memory of its own; the others start empty, as in the simplest
    // implementation.
    let (pages, owned) = match settings.kind {
        PoolKind::Spsc => {
            let memory = Arc::new(Memory::new(slots, settings.huge_pages)?);
            (memory.pages(), Memory::slots(&memory))
        }
        PoolKind::List | PoolKind::CountedList | PoolKind::Heap => (Pages::Ordinary, Vec::new()),
    };
    let (stock, returns) = stock::of(settings.kind, owned, slots);
    // The capacity covers all slots, plus those that the other side has read and not yet released (an eighth
    // of the queue), so neither end waits for capacity.
    let most = if settings.policy == Policy::Heap { 2 * slots } else { slots };
    let (producer, consumer) = spsc::queue(2 * most, || None);
    let returned = Arc::new(Returned::default());
    let intake = Intake::new(settings, most, pages, stock, producer, Arc::clone(&returned));
    Ok((intake, Outlet::new(consumer, returns, returned)))
}

/// A datagram in its slot.
#[derive(Debug)]
pub struct PooledDatagram {
    slot: Slot,
    /// The kernel's receive time, if the socket has stamps.
    received: Option<Nanos>,
    length: u16,
    line: u8,
    truncated: bool,
}

impl PooledDatagram {
    /// Returns the payload; cut to [`SLOT_BYTES`] if [`is_truncated`](Self::is_truncated).
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.slot.bytes(usize::from(self.length))
    }

    /// Returns the kernel's receive time, if the socket has stamps.
    #[inline]
    pub fn received(&self) -> Option<Nanos> {
        self.received
    }

    /// Returns the number of the line on which the datagram arrived, as given to [`Intake::receive`].
    #[inline]
    pub fn line(&self) -> u8 {
        self.line
    }

    /// Returns `true` if the datagram was longer than a slot, so that its end is lost.
    #[inline]
    pub fn is_truncated(&self) -> bool {
        self.truncated
    }
}

/// Slots that the decoder has returned since the start, on a cache line that only the decoder writes. A
/// statistic, for the bound on slots in use and for the high-water mark. It does not transfer slots, so its
/// accesses are relaxed.
#[repr(align(128))]
#[derive(Debug, Default)]
struct Returned(AtomicU64);
