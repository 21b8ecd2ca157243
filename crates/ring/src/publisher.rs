//! The publishing end.

use crate::atomics::{Ordering, fence};
use crate::clock::Instant;
use std::time::Duration;

use crate::batch::Batch;
use crate::claim::Claim;
use crate::discipline::Discipline;
use crate::frame::{Grain, Position};
use crate::gate::Boundaries;
use crate::layout::{Framing, longest_frame};
use crate::lines::ENDED;
use crate::memory::Memory;
use crate::segment::Segment;
use crate::subscriber::SubscriberId;
use crate::{Error, Refused, waiting};

mod commit;
mod opening;
mod room;
mod stall;

use commit::PACKED;
use stall::{Excuse, Stalls};

/// Options of a new ring. An existing ring can be continued only with the same capacity, longest frame, framing, stall
/// limit and huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Size of the data area in bytes: a power of two from 4 KiB (or a page) to 1 TiB; default 1 MiB. Best is a size
    /// that fits the second-level cache: 512 KiB to 2 MiB.
    pub capacity: usize,
    /// Permission bits of the segment; default 0600. A subscriber needs read and write permission.
    pub mode: u32,
    /// Group of the segment, by number; default `None`, the group of the process. With mode 0660 the group's members
    /// can subscribe.
    pub group: Option<u32>,
    /// The longest frame in bytes, up to a quarter of the capacity; default 0, a quarter of the capacity.
    pub max_frame: usize,
    /// How frames are placed in the data area; default [`Framing::Packed`].
    pub framing: Framing,
    /// How long a live subscriber may block a full ring without releasing anything. After this time the subscriber is
    /// evicted and gets [`Poll::Evicted`](crate::Poll::Evicted). Default zero: no limit. The publisher notices a stall
    /// in claims that find the ring full: at least five of them, over that time. Broadcast rings never wait and take no
    /// limit.
    pub stall_limit: Duration,
    /// Place the data area on huge pages (2 MiB each, so the capacity is at least 2 MiB); default `false`.
    pub huge_pages: bool,
    /// Keep the segment's name after the publisher closes, so that subscribers can still join and drain; default
    /// `false`.
    pub keep: bool,
    /// Wake sleeping subscribers at each commit; default `true`. A publisher whose frames come in bursts sets `false`
    /// and calls [`Publisher::flush`](PublisherOf::flush) at the end of each burst. Otherwise the burst's first frame
    /// wakes a subscriber, which reads that frame and sleeps again, so that nearly every frame costs the publisher a
    /// system call. Polling subscribers see each commit at once in either case.
    pub wake_on_commit: bool,
}

impl Default for Options {
    /// 1 MiB, for this user only, packed frames of up to 256 KiB, no stall limit, the name removed at the end.
    fn default() -> Self {
        Self {
            capacity: 1 << 20,
            mode: 0o600,
            group: None,
            max_frame: 0,
            framing: Framing::Packed,
            stall_limit: Duration::ZERO,
            huge_pages: false,
            keep: false,
            wake_on_commit: true,
        }
    }
}

impl Options {
    /// Returns the longest frame, in bytes, of a ring with these options.
    #[must_use]
    pub fn longest_frame(&self) -> usize {
        if self.max_frame == 0 { longest_frame(self.capacity) } else { self.max_frame }
    }
}

/// The single publisher of a ring with policy `D`: [`Publisher`](crate::Publisher) for a gated ring,
/// [`broadcast::Publisher`](crate::broadcast::Publisher) for a broadcast ring.
#[derive(Debug)]
pub struct PublisherOf<D: Discipline> {
    pub(crate) memory: Memory,
    /// Where the next frame's header goes.
    position: u64,
    /// Below this position nothing needs to be checked: the lower of `limit` and the next boundary to remember.
    soft_limit: u64,
    /// All of a frame's header but the length.
    stamp: u64,
    max_frame: usize,
    pub(crate) grain: Grain,
    /// Whether frames have lines of their own; only then are the next two fields used.
    lines: bool,
    /// Lines from the position up to here start with a zero, provided that `claimed` is not beyond the position.
    cleared: u64,
    /// Frames up to here were claimed since the last commit, and their bytes may be where a line starts.
    claimed: u64,
    frames: u64,
    /// Position and header of the first hidden frame; a header of zero if no frame is hidden.
    hidden: (u64, u64),
    /// The gate and the subscribers allow writes up to here.
    limit: u64,
    /// Where the next boundary is due.
    mark: u64,
    gate: u64,
    /// The cursor as last stored.
    published: u64,
    capacity: u64,
    boundaries: Boundaries,
    epoch: u32,
    full: u64,
    reclaimed: u64,
    stalls: Stalls,
    liveness_looked_at: Option<Instant>,
    wake_on_commit: bool,
    keep: bool,
    pub(crate) closed: bool,
    segment: Segment,
    discipline: std::marker::PhantomData<D>,
}

impl<D: Discipline> PublisherOf<D> {
    /// Claims a frame of `len` bytes, to be filled in place. The bytes contain whatever the ring stored there before. A
    /// claim dropped without a commit leaves no trace.
    ///
    /// Costs one comparison while the ring has free space. About once per eighth of the ring, the publisher reads the
    /// subscribers' positions. Makes no system call unless the ring is full: then one for each subscriber that blocks
    /// the ring, at most every 100 µs.
    ///
    /// # Errors
    /// [`Refused::Full`] while a subscriber has not released the space (never on a broadcast ring),
    /// [`Refused::TooLong`].
    #[inline(always)]
    pub fn claim(&mut self, len: usize) -> Result<Claim<'_, D>, Refused> {
        let size = self.reserve(self.position, len)?;
        Ok(Claim::new(self, len, size))
    }

    /// Starts a batch: frames that are claimed one after the other and become visible together.
    #[inline]
    pub fn claim_batch(&mut self) -> Batch<'_, D> {
        Batch::new(self)
    }

    /// Claims a frame, copies `bytes` into it and commits it. Short messages are copied in 8-byte moves.
    ///
    /// # Errors
    /// As [`claim`](Self::claim).
    #[inline(always)]
    pub fn publish(&mut self, bytes: &[u8]) -> Result<Position, Refused> {
        if self.lines { self.publish_on_lines(bytes) } else { self.publish_as::<PACKED>(bytes) }
    }

    /// Makes all [hidden](Claim::hide_prefix) frames visible, in order. Does nothing without hidden frames.
    #[inline]
    pub fn show(&mut self) {
        if self.hidden.1 != 0 {
            self.show_hidden();
            if self.wake_on_commit {
                waiting::wake_sleepers(&self.memory.subscribers().waiters);
            }
        }
    }

    /// Returns the position of the first hidden frame; `None` if all frames are visible.
    #[must_use]
    pub fn first_hidden(&self) -> Option<Position> {
        let (start, word) = self.hidden;
        (word != 0).then_some(Position(start))
    }

    /// Returns the length of the longest frame in bytes.
    #[must_use]
    pub fn max_frame(&self) -> usize {
        self.max_frame
    }

    /// Returns the size of the data area in bytes.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Returns the position of the next frame.
    #[must_use]
    pub fn position(&self) -> Position {
        Position(self.position)
    }

    /// Returns the number of frames committed to this ring by this publisher and its predecessors.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Returns the publisher's epoch: 1 for the ring's first publisher, one more for each that continued it (modulo
    /// 2²⁴).
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Returns the number of claims refused because the ring was full.
    #[must_use]
    pub fn full(&self) -> u64 {
        self.full
    }

    /// Returns the number of subscribers that died and no longer block the ring.
    #[must_use]
    pub fn reclaimed(&self) -> u64 {
        self.reclaimed
    }

    /// Returns the number of live subscribers evicted because they blocked the full ring for longer than its stall
    /// limit.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.stalls.evicted
    }

    /// Exempts a subscriber from the stall limit for as long as it lives. Use it for subscribers that nothing can
    /// replace. The publisher still asks the subscriber for its position, to free space as early as possible. An
    /// evicted subscriber stays evicted.
    pub fn exempt(&mut self, seat: SubscriberId) {
        self.stalls.exempt(seat);
    }

    /// Exempts subscribers as [`exempt`](Self::exempt) does, while `may_not_read` returns `true` for them, such as a
    /// subscriber whose next frame is not on disk yet. The publisher calls `may_not_read` on its own thread, while the
    /// ring is full, for a subscriber that it would otherwise evict. A subscriber that has not moved is evicted half
    /// the stall limit after the first `false`.
    pub fn excuse_while(&mut self, may_not_read: Box<dyn Fn(SubscriberId) -> bool + Send>) {
        self.stalls.excuse(Excuse(may_not_read));
    }

    /// Returns the number of registered subscribers. A dead one counts until its space is needed.
    #[must_use]
    pub fn subscribers(&self) -> usize {
        self.memory.subscribers().members.slots.load(Ordering::Acquire).count_ones() as usize
    }

    /// Returns the bytes that the slowest registered subscriber has not released yet, by its last stored position.
    #[must_use]
    pub fn backlog_bytes(&self) -> u64 {
        self.position.saturating_sub(self.lowest_subscriber(self.position))
    }

    /// Returns `true` if the ring still has its name. If not, current subscribers read on, but nobody else can join,
    /// and the name cannot be restored: Linux cannot link a file again after its last name is gone. Makes a system
    /// call.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn is_named(&self) -> Result<bool, Error> {
        self.segment.is_named()
    }

    /// Locks the ring's memory so that it is never paged out (mlock).
    ///
    /// # Errors
    /// The system's, usually because of the limit on locked memory (`ulimit -l`).
    pub fn lock_memory(&self) -> Result<(), Error> {
        self.memory.lock(&self.segment)
    }

    /// Writes the ring's note: 64 bytes that any subscriber can read at any time, always as a whole.
    pub fn set_note(&mut self, words: [u64; 8]) {
        self.memory.publisher().note.write(words);
    }

    /// Stores the current cursor for observers; without this call the cursor follows once per eighth of the ring. Wakes
    /// sleeping subscribers if [`Options::wake_on_commit`] is `false`. Shows hidden frames.
    pub fn flush(&mut self) {
        self.show_hidden();
        self.publish_cursor();
        waiting::wake_sleepers(&self.memory.subscribers().waiters);
    }

    /// Ends the ring: subscribers drain it, then get [`Poll::Ended`](crate::Poll::Ended). Removes the name unless
    /// [`Options::keep`] is set. Dropping a publisher does the same, but ignores errors.
    ///
    /// # Errors
    /// If the name cannot be removed.
    pub fn close(mut self) -> Result<(), Error> {
        self.end()
    }

    fn end(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.closed, true) {
            return Ok(());
        }
        self.show_hidden();
        self.publish_cursor();
        self.publish_tally();
        // Release pairs with the acquire load in `Subscriber::next`: a subscriber that sees the end sees every
        // frame before it.
        self.memory.publisher().status.state.store(ENDED, Ordering::Release);
        fence(Ordering::SeqCst);
        waiting::wake_all(&self.memory.subscribers().waiters);
        // The name goes first: a program that finds the ring without a publisher may take it over.
        let unlinked = if self.keep { Ok(()) } else { self.segment.unlink() };
        self.segment.unlock_publisher()?;
        unlinked
    }

    /// Makes sure that a frame of `len` bytes and the word behind it may be written at `at`: this publisher's
    /// position, or a later one in an open batch. Returns the bytes that the frame takes.
    #[inline(always)]
    pub(crate) fn reserve(&mut self, at: u64, len: usize) -> Result<usize, Refused> {
        if self.lines { self.reserve_on_lines(at, len) } else { self.reserve_as::<PACKED>(at, len) }
    }

    /// The header word of a frame of `len` bytes.
    #[inline(always)]
    pub(crate) fn header_word(&self, len: usize) -> u64 {
        self.stamp | len as u64
    }

    /// Where the next frame's header goes.
    #[inline]
    pub(crate) fn next_position(&self) -> u64 {
        self.position
    }
}

impl<D: Discipline> Drop for PublisherOf<D> {
    fn drop(&mut self) {
        // A drop cannot report an error; `close` does.
        let _ = self.end();
    }
}
