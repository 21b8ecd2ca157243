//! A pool of datagrams between the thread that receives and the thread that decodes.
//!
//! ```text
//!   socket ──recvmmsg──► Intake ══ filled slots ══► Outlet ──► decoder
//!                          ▲                          │
//!                          └═════ empty slots ════════┘
//! ```
//!
//! The kernel writes each datagram straight into a slot, the slot's handle goes to the decoder and comes back, and nothing
//! is copied or allocated on the way. The memory is made and touched before the first datagram. Both ways are
//! [`spsc`](tapeline_ring::spsc) queues, because there is exactly one thread at each end: one pool for each receive thread.
//!
//! A slot is owned: whoever has its handle is the only one who can touch it, and the compiler sees to it that no slot is
//! in two places. What comes back is used again before what has not been used for long, so that a plant with little to do
//! stays in its caches however large the pool is.
//!
//! ```
//! use tapeline_wire::pool::{self, Poll, Settings};
//! use tapeline_wire::udp::{ReceiveOptions, Receiver, SendOptions, Sender};
//!
//! let mut receiver = Receiver::open(&ReceiveOptions::new("127.0.0.1:0".parse()?))?;
//! let mut sender = Sender::open(&SendOptions::new(receiver.local_address()))?;
//! let (mut intake, mut outlet) = pool::open(&Settings { slots: 1024, ..Settings::default() })?;
//!
//! assert_eq!(sender.send(b"tape")?.count, 1);
//! let receiving = std::thread::spawn(move || {
//!     while intake.receive(&mut receiver, 0)?.count == 0 {}
//!     intake.deliver().expect("the decoder is there");
//!     Ok::<_, tapeline_wire::Error>(intake.counters())
//! });
//! loop {
//!     match outlet.take() {
//!         Poll::Ready(datagrams) => assert!(datagrams.iter().all(|datagram| datagram.bytes() == b"tape")),
//!         Poll::Empty => std::hint::spin_loop(),
//!         Poll::Ended => break,
//!     }
//! }
//! let counters = receiving.join().expect("it does not panic")?;
//! assert_eq!((counters.misses, counters.high_water), (0, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Three pools
//!
//! [`Kind::Spsc`] is the one to use. The others have the same face, to be measured beside it (`tapeline burst --compare`,
//! `docs/burst.md`): a list behind a spinlock, as one would write it first, and plain allocation.
//!
//! | file | owns |
//! |---|---|
//! | `memory.rs` | the slots' memory, and a slot as a thing that is owned: `unsafe` |
//! | `loaded.rs` | slots that the kernel is about to fill: `unsafe` |
//! | `stock.rs` | the empty slots, of each kind of pool |
//! | `intake.rs`, `outlet.rs` | the two ends |

mod intake;
mod loaded;
mod memory;
mod outlet;
mod stock;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

pub use intake::{Closed, Counters, Intake, Received};
pub use memory::{Pages, SLOT_BYTES};
pub use outlet::{Datagrams, Outlet};
use tapeline_nanos::Nanos;
use tapeline_ring::spsc;
pub use tapeline_ring::spsc::Poll;

use crate::Error;
use memory::{Memory, Slot};

/// The most slots that a pool can have: 8 GiB of them.
pub const MAX_SLOTS: usize = 1 << 22;

/// Where empty slots are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A queue between the two threads: no lock, no allocation.
    #[default]
    Spsc,
    /// A linked list behind a spinlock, with a node allocated for each slot that comes back. It begins empty: a slot that it
    /// does not have is allocated, up to [`Settings::slots`] of them.
    List,
    /// As `List`, and the list's length is counted by walking it whenever a slot comes back. C++'s `std::list::size()`
    /// did that where the standard library came with GCC before version 5 (GCC 5 release notes).
    CountedList,
    /// None are kept: each datagram is allocated, and freed behind the decoder.
    Heap,
}

/// What becomes of datagrams while no slot is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// They stay in the kernel's socket buffer until slots come back; when that is full too, the kernel drops and counts.
    #[default]
    Block,
    /// They are taken from the socket, counted and thrown away, so that those that come later are fresh.
    DropNewest,
    /// They get slots from the heap, up to as many again as the pool has; then as `Block`.
    Heap,
}

/// What a pool is made of.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Where empty slots are kept.
    pub kind: Kind,
    /// Slots of [`SLOT_BYTES`] each, 1 to [`MAX_SLOTS`]; values outside are brought inside. They hold the datagrams that
    /// the decoder is behind, so the longest stall that is to be survived decides. Of the kinds that allocate it is the
    /// most that can be under way.
    pub slots: usize,
    /// What happens while all of them are taken.
    pub policy: Policy,
    /// Ask for huge pages: fewer misses of the address cache where the pool is large.
    pub huge_pages: bool,
    /// The most datagrams of one system call, 1 to 1,024.
    pub batch: usize,
}

impl Default for Settings {
    /// 16,384 slots (34 MB) in queues, filled 64 at a time, that block.
    fn default() -> Self {
        Self { kind: Kind::Spsc, slots: 16_384, policy: Policy::Block, huge_pages: false, batch: 64 }
    }
}

/// Makes a pool: the end for the thread that receives, and the end for the one that decodes.
///
/// All memory of [`Kind::Spsc`] is there and touched when this comes back, but for what [`Policy::Heap`] allocates later.
///
/// # Errors
/// [`Error::Memory`] where the machine does not give the slots' memory.
pub fn open(settings: &Settings) -> Result<(Intake, Outlet), Error> {
    let slots = settings.slots.clamp(1, MAX_SLOTS);
    // Only the queues' pool has memory of its own; the others begin with nothing, as whoever writes them first lets them.
    let (pages, owned) = match settings.kind {
        Kind::Spsc => {
            let memory = Arc::new(Memory::new(slots, settings.huge_pages)?);
            (memory.pages(), Memory::slots(&memory))
        }
        Kind::List | Kind::CountedList | Kind::Heap => (Pages::Ordinary, Vec::new()),
    };
    let (stock, returns) = stock::of(settings.kind, owned, slots);
    // All slots there can be fit, with those that the other side has read and not yet given back (an eighth of the
    // queue), so neither end waits for room.
    let most = if settings.policy == Policy::Heap { 2 * slots } else { slots };
    let (producer, consumer) = spsc::queue(2 * most, || None);
    let returned = Arc::new(Returned::default());
    let intake = Intake::new(settings, most, pages, stock, producer, Arc::clone(&returned));
    Ok((intake, Outlet::new(consumer, returns, returned)))
}

/// A datagram in its slot.
#[derive(Debug)]
pub struct Datagram {
    slot: Slot,
    /// When the kernel received it, where the socket has stamps.
    received: Option<Nanos>,
    length: u16,
    line: u8,
    truncated: bool,
}

impl Datagram {
    /// What it carries; cut to [`SLOT_BYTES`] when [`is_truncated`](Self::is_truncated).
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.slot.bytes(usize::from(self.length))
    }

    /// When the kernel received it, where the socket has stamps.
    #[inline]
    #[must_use]
    pub fn received(&self) -> Option<Nanos> {
        self.received
    }

    /// The number of the line on which it came, as it was given to [`Intake::receive`].
    #[inline]
    #[must_use]
    pub fn line(&self) -> u8 {
        self.line
    }

    /// Whether it was longer than a slot, so that its end is lost.
    #[inline]
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.truncated
    }
}

/// Slots that the decoder has given back since the beginning, on a line that only it writes: a statistic, for the bound on
/// what is under way and for the high-water mark. No slot is handed over by it, so its accesses are relaxed.
#[repr(align(128))]
#[derive(Debug, Default)]
struct Returned(AtomicU64);
