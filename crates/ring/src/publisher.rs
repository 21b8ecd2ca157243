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

/// What a new ring is like. An existing ring that is continued must be of the same shape: capacity, longest frame,
/// framing, stall limit and huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes of the data area: a power of two from 4 KiB (or a page) to 1 TiB. Best is what fits the second-level
    /// cache: 512 KiB to 2 MiB.
    pub capacity: usize,
    /// Permission bits of the segment. Who subscribes needs to read and write it.
    pub mode: u32,
    /// The group that the segment is given, by its number; none = the process's. With a mode of 0660 its members can
    /// subscribe.
    pub group: Option<u32>,
    /// The longest frame in bytes, up to a quarter of the capacity; 0 = that quarter.
    pub max_frame: usize,
    /// How frames lie.
    pub framing: Framing,
    /// For how long a live subscriber may hold a full ring without releasing anything; then it is evicted and told so.
    /// Zero = for ever. It is noticed by claims that find the ring full: five at least, over that time. Broadcast rings
    /// never wait, and take no limit.
    pub stall_limit: Duration,
    /// Lay the data area on huge pages (of 2 MiB, so the capacity is at least that).
    pub huge_pages: bool,
    /// Keep the segment's name after the publisher has closed, so that subscribers can still join and drain.
    pub keep: bool,
    /// Wake subscribers that sleep at each commit. A publisher whose frames come in bursts leaves it to
    /// [`Publisher::flush`](PublisherOf::flush) at the end of each: otherwise a subscriber that is woken by a burst's
    /// first frame reads that one, falls asleep again, and costs the publisher a system call for nearly every frame.
    /// Polling subscribers see each commit at once in any case.
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
    /// The longest frame in bytes that a ring of these takes.
    #[must_use]
    pub fn longest_frame(&self) -> usize {
        if self.max_frame == 0 { longest_frame(self.capacity) } else { self.max_frame }
    }
}

/// The one publisher of a ring whose policy is `D`: [`Publisher`](crate::Publisher) where it is gated,
/// [`broadcast::Publisher`](crate::broadcast::Publisher) where it is broadcast.
#[derive(Debug)]
pub struct PublisherOf<D: Discipline> {
    pub(crate) memory: Memory,
    /// Where the next frame's header goes.
    position: u64,
    /// Up to here nothing needs to be looked up: the lower of `limit` and the next boundary to remember.
    soft_limit: u64,
    /// All but the length of a frame's header.
    stamp: u64,
    max_frame: usize,
    pub(crate) grain: Grain,
    /// Whether frames lie on lines of their own; then the next two mean something.
    lines: bool,
    /// Lines from the position up to here start with a zero, where `claimed` is not beyond the position.
    cleared: u64,
    /// Up to here frames were claimed since the last commit, and their bytes may stand where a line starts.
    claimed: u64,
    frames: u64,
    /// Up to here the gate and the subscribers allow to write.
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
    /// Claims a frame of `len` bytes, to be written in place. Dropped without a commit, it leaves no trace. The bytes
    /// are what the ring held there before.
    ///
    /// Costs one comparison while there is room. About once in an eighth of the ring it looks up how far the
    /// subscribers are. No system call, but while the ring is full: one for each subscriber that holds it up, at most
    /// every 100 µs.
    ///
    /// # Errors
    /// [`Refused::Full`] while a subscriber has not released the room (never of a broadcast ring), [`Refused::TooLong`].
    #[inline(always)]
    pub fn claim(&mut self, len: usize) -> Result<Claim<'_, D>, Refused> {
        let size = self.reserve(self.position, len)?;
        Ok(Claim::new(self, len, size))
    }

    /// Claims frames one after the other and makes all of them visible at once.
    #[inline]
    pub fn claim_batch(&mut self) -> Batch<'_, D> {
        Batch::new(self)
    }

    /// Claims, copies and commits in one go. Short messages are copied in 8-byte moves.
    ///
    /// # Errors
    /// As [`claim`](Self::claim).
    #[inline(always)]
    pub fn publish(&mut self, bytes: &[u8]) -> Result<Position, Refused> {
        if self.lines { self.publish_on_lines(bytes) } else { self.publish_as::<PACKED>(bytes) }
    }

    /// The longest frame in bytes.
    #[must_use]
    pub fn max_frame(&self) -> usize {
        self.max_frame
    }

    /// Bytes of the data area.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Where the next frame will stand.
    #[must_use]
    pub fn position(&self) -> Position {
        Position(self.position)
    }

    /// Frames committed to this ring, by this publisher and those before it.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// 1 for the ring's first publisher, one more for each that continued it (modulo 2²⁴).
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Claims that were refused because the ring was full.
    #[must_use]
    pub fn full(&self) -> u64 {
        self.full
    }

    /// Subscribers that died and no longer gate.
    #[must_use]
    pub fn reclaimed(&self) -> u64 {
        self.reclaimed
    }

    /// Live subscribers that held the full ring for longer than its stall limit and no longer gate.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.stalls.evicted
    }

    /// From now on this publisher waits for this subscriber for as long as it lives, whatever the stall limit: for those in
    /// whose place nobody else could go on. Asked for its position, so that it frees room as early as it can, it is all
    /// the same. One that has been evicted stays so.
    pub fn exempt(&mut self, seat: SubscriberId) {
        self.stalls.exempt(seat);
    }

    /// As [`exempt`](Self::exempt), for each subscriber of which `may_not_read` says so, such as one whose next frame is not on disk yet. It is
    /// called on this thread, while the ring is full, for a subscriber that would be evicted otherwise. Half the stall limit after
    /// it has said no for the first time, a subscriber that has not moved is evicted.
    pub fn excuse_while(&mut self, may_not_read: Box<dyn Fn(SubscriberId) -> bool + Send>) {
        self.stalls.excuse(Excuse(may_not_read));
    }

    /// Subscribers that are registered now (dead ones count until their room is needed).
    #[must_use]
    pub fn subscribers(&self) -> usize {
        self.memory.subscribers().members.slots.load(Ordering::Acquire).count_ones() as usize
    }

    /// Bytes that the slowest registered subscriber has not yet released, as far as it has said.
    #[must_use]
    pub fn backlog_bytes(&self) -> u64 {
        self.position.saturating_sub(self.lowest_subscriber(self.position))
    }

    /// Whether the ring still goes by its name. If not, those who have joined read on, nobody else can join, and the name
    /// cannot be given back: Linux links no file again whose last name is gone. A system call.
    ///
    /// # Errors
    /// If the system refuses to say.
    pub fn is_named(&self) -> Result<bool, Error> {
        self.segment.is_named()
    }

    /// Locks the ring's memory, so that it is never paged out (mlock).
    ///
    /// # Errors
    /// The system's, as a rule because of the limit on locked memory (`ulimit -l`).
    pub fn lock_memory(&self) -> Result<(), Error> {
        self.memory.lock(&self.segment)
    }

    /// Writes the ring's note: 64 bytes that any subscriber can read at any time, whole or not at all.
    pub fn set_note(&mut self, words: [u64; 8]) {
        self.memory.publisher().note.write(words);
    }

    /// Stores the cursor where it is, for those who look from outside; otherwise it follows once in an eighth of the
    /// ring. Wakes subscribers that sleep, where [`Options::wake_on_commit`] leaves that to this call.
    pub fn flush(&mut self) {
        self.publish_cursor();
        waiting::wake_sleepers(&self.memory.subscribers().waiters);
    }

    /// Says that nothing more comes: subscribers drain, then see [`Poll::Ended`](crate::Poll::Ended). Removes the name
    /// unless the ring is kept. Dropping a publisher does the same, and keeps a failure to itself.
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
        self.publish_cursor();
        self.publish_tally();
        // Release pairs with the acquire load in `Subscriber::next`: who sees the end sees every frame before it.
        self.memory.publisher().status.state.store(ENDED, Ordering::Release);
        fence(Ordering::SeqCst);
        waiting::wake_all(&self.memory.subscribers().waiters);
        // The name goes first: whoever finds the ring without a publisher may take it over.
        let unlinked = if self.keep { Ok(()) } else { self.segment.unlink() };
        self.segment.unlock_publisher()?;
        unlinked
    }

    /// Makes sure that a frame of `len` bytes and the word behind it may be written at `at`: this publisher's
    /// position, or further on in an open batch. Gives the bytes that the frame takes.
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
        // A drop has nobody to tell; `close` does.
        let _ = self.end();
    }
}
