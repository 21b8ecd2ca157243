//! The publishing end.

use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use crate::batch::Batch;
use crate::claim::Claim;
use crate::frame::{self, EPOCH_MASK, Position, TERMINATOR, frame_size};
use crate::gate::{self, Boundaries, PARTS};
use crate::layout::{Framing, Policy, Shape, longest_frame};
use crate::lines::{ENDED, HAS_BARRIER, LIVE, SLOTS};
use crate::memory::{Access, Memory};
use crate::segment::{Purpose, Segment};
use crate::{Error, Name, Refused, process, waiting};

/// What a new ring is like. An existing ring that is continued must be of the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes of the data area: a power of two from 4 KiB (or a page) to 1 TiB. Best is what fits the second-level
    /// cache: 512 KiB to 2 MiB.
    pub capacity: usize,
    /// Permission bits of the segment.
    pub mode: u32,
    /// The longest frame in bytes, up to a quarter of the capacity; 0 = that quarter.
    pub max_frame: usize,
    /// Keep the segment's name after the publisher has closed, so that subscribers can still join and drain.
    pub keep: bool,
    /// Wake subscribers that sleep at each commit. A publisher whose frames come in bursts leaves it to
    /// [`Publisher::flush`] at the end of each: otherwise a subscriber that is woken by a burst's first frame reads that
    /// one, falls asleep again, and costs the publisher a system call for nearly every frame. Polling subscribers see
    /// each commit at once in any case.
    pub wake_on_commit: bool,
}

impl Default for Options {
    /// 1 MiB, for this user only, frames up to 256 KiB, the name removed at the end.
    fn default() -> Self {
        Self { capacity: 1 << 20, mode: 0o600, max_frame: 0, keep: false, wake_on_commit: true }
    }
}

/// Openers that race for one name go round at most this often: each round needs another to have made or removed it.
const ROUNDS: usize = 64;
/// While the ring is full, how often the publisher asks the kernel whether who holds it up is alive.
const LIVENESS_INTERVAL: Duration = Duration::from_micros(100);
/// Positions in a segment beyond this were never reached by counting.
const FAR: u64 = 1 << 62;

/// The one publisher of a ring.
///
/// ```
/// use tapeline_ring::{Name, Options, Poll, Publisher, Start, Subscriber};
///
/// let name = Name::new(&format!("doc-publisher-{}", std::process::id()))?;
/// let mut publisher = Publisher::open(&name, &Options::default())?;
/// let mut subscriber = Subscriber::join(&name, Start::Newest)?;
///
/// let mut claim = publisher.claim(5)?;
/// claim.copy_from_slice(b"hello");
/// claim.commit();
///
/// let Poll::Frame(frame) = subscriber.next() else { panic!("the frame is visible") };
/// assert_eq!(&*frame, b"hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Publisher {
    pub(crate) memory: Memory,
    /// Where the next frame's header goes.
    position: u64,
    /// Up to here nothing needs to be looked up: the lower of `limit` and the next boundary to remember.
    soft_limit: u64,
    /// All but the length of a frame's header.
    stamp: u64,
    max_frame: usize,
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
    liveness_looked_at: Option<Instant>,
    wake_on_commit: bool,
    keep: bool,
    closed: bool,
    segment: Segment,
}

impl Publisher {
    /// Makes the ring, or continues one whose publisher is gone: with the next epoch, from the last committed frame,
    /// and its subscribers keep their places.
    ///
    /// # Errors
    /// [`Error::PublisherAlive`] if another publisher holds it; [`Error::OtherShape`] if it is there with another
    /// size; [`Error::NoRoom`]; [`Error::Foreign`], [`Error::Layout`] or [`Error::Damaged`] if what goes by that name
    /// is no ring that this build can continue.
    pub fn open(name: &Name, options: &Options) -> Result<Self, Error> {
        let max_frame =
            if options.max_frame == 0 { longest_frame(options.capacity) } else { options.max_frame };
        let shape = Shape {
            page: rustix::param::page_size(),
            capacity: options.capacity,
            max_frame,
            policy: Policy::Gated,
            framing: Framing::Packed,
            stall_limit_ns: 0,
            created_ns: 0,
            creator_pid: process::pid(),
        };
        shape.check()?;
        for _ in 0..ROUNDS {
            match Segment::open(name, Purpose::TakePart) {
                Ok(segment) => {
                    if let Some(publisher) = Self::take_over(segment, &shape, options)? {
                        return Ok(publisher);
                    }
                }
                Err(Error::NotFound { .. }) => {
                    if let Some(publisher) = Self::create(name, shape, options)? {
                        return Ok(publisher);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Err(Error::system(&name.path(), "settle who opens", rustix::io::Errno::BUSY))
    }

    /// `Ok(None)`: another was faster to take the name.
    fn create(name: &Name, shape: Shape, options: &Options) -> Result<Option<Self>, Error> {
        let segment = Segment::create(name, shape, options.mode)?;
        // Nobody else can have the file open: it has no name.
        segment.lock_publisher()?;
        let memory = Memory::map(&segment, Access::Publisher)?;
        let publisher = Self::at(segment, memory, Boundaries::starting_at(0), 0, 0, 0, options);
        publisher.enter(1);
        if publisher.segment.publish_name()? { Ok(Some(publisher)) } else { Ok(None) }
    }

    /// `Ok(None)`: the ring lost its name before it was ours.
    fn take_over(segment: Segment, wanted: &Shape, options: &Options) -> Result<Option<Self>, Error> {
        if !segment.lock_publisher()? {
            let pid = Memory::map(&segment, Access::Observer)?.publisher().status.pid.load(Ordering::Relaxed);
            return Err(Error::PublisherAlive { path: segment.path, pid });
        }
        if !segment.is_named()? {
            return Ok(None);
        }
        for (what, found, wanted) in [
            ("a capacity of", segment.shape.capacity, wanted.capacity),
            ("a longest frame of", segment.shape.max_frame, wanted.max_frame),
        ] {
            if found != wanted {
                let (found, wanted) = (found as u64, wanted as u64);
                return Err(Error::OtherShape { path: segment.path, what, found, wanted });
            }
        }
        let memory = Memory::map(&segment, Access::Publisher)?;
        let (gate, end, frames, boundaries) = Self::recover(&segment, &memory)?;
        let epoch = memory.publisher().status.epoch.load(Ordering::Relaxed);
        let mut publisher = Self::at(segment, memory, boundaries, gate, end, frames, options);
        let tally = &publisher.memory.publisher().tally;
        (publisher.full, publisher.reclaimed) =
            (tally.full.load(Ordering::Relaxed), tally.reclaimed.load(Ordering::Relaxed));
        publisher.epoch = epoch.wrapping_add(1) & EPOCH_MASK;
        publisher.stamp = frame::stamp(publisher.epoch);
        // The dead publisher's cursor may be far behind; the gate must never pass it, so it is stored whatever it was.
        publisher.published = u64::MAX;
        publisher.publish_cursor();
        publisher.enter(publisher.epoch);
        Ok(Some(publisher))
    }

    /// Finds the true end of what an earlier publisher committed. What it had claimed and not committed is behind a
    /// header of zero, and stays unseen.
    fn recover(segment: &Segment, memory: &Memory) -> Result<(u64, u64, u64, Boundaries), Error> {
        let damaged = |why: String| Error::Damaged { path: segment.path.clone(), why };
        let lines = memory.publisher();
        let gate = lines.gate.position.load(Ordering::Acquire);
        let cursor = lines.cursor.position.load(Ordering::Acquire);
        let (capacity, max_frame) = (segment.shape.capacity, segment.shape.max_frame);
        let aligned = gate.is_multiple_of(8) && cursor.is_multiple_of(8);
        if !aligned || gate > cursor || cursor - gate > capacity as u64 || cursor > FAR {
            return Err(damaged(format!("its gate is {gate} and its cursor {cursor}")));
        }
        let Some(mut frames) = lines.cursor.frames_at(cursor) else {
            return Err(damaged(format!("its cursor is {cursor}, and it counts no frames there")));
        };
        let mut boundaries = Boundaries::starting_at(gate);
        let mut mark = gate + (capacity / PARTS) as u64;
        let end = frame::walk(memory, gate, max_frame, capacity, |position| {
            if position >= mark {
                boundaries.remember(position);
                mark = position + (capacity / PARTS) as u64;
            }
            if position >= cursor {
                frames = frames.wrapping_add(1);
            }
        })
        .map_err(|broken| {
            damaged(format!(
                "at position {} stands {:016x}, which is no frame",
                broken.position, broken.header
            ))
        })?;
        if end < cursor || end - gate > (capacity - TERMINATOR) as u64 {
            return Err(damaged(format!(
                "its frames end at {end}, its gate is {gate} and its cursor {cursor}"
            )));
        }
        Ok((gate, end, frames, boundaries))
    }

    fn at(
        segment: Segment,
        memory: Memory,
        boundaries: Boundaries,
        gate: u64,
        position: u64,
        frames: u64,
        options: &Options,
    ) -> Self {
        let (capacity, max_frame) = (segment.shape.capacity as u64, segment.shape.max_frame);
        Self {
            memory,
            position,
            // Nothing is allowed before the first look at the subscribers.
            soft_limit: 0,
            stamp: frame::stamp(1),
            max_frame,
            frames,
            limit: 0,
            mark: position + capacity / PARTS as u64,
            gate,
            published: position,
            capacity,
            boundaries,
            epoch: 1,
            full: 0,
            reclaimed: 0,
            liveness_looked_at: None,
            keep: options.keep,
            wake_on_commit: options.wake_on_commit,
            closed: false,
            segment,
        }
    }

    /// Says who publishes.
    fn enter(&self, epoch: u32) {
        let status = &self.memory.publisher().status;
        status.pid.store(process::pid(), Ordering::Relaxed);
        status.start_ticks.store(process::start_ticks(), Ordering::Relaxed);
        status.flags.store(if waiting::join_barrier() { HAS_BARRIER } else { 0 }, Ordering::Relaxed);
        status.epoch.store(epoch, Ordering::Relaxed);
        // Release: who sees the ring live sees whose it is.
        status.state.store(LIVE, Ordering::Release);
    }

    /// Claims a frame of `len` bytes, to be written in place. Dropped without a commit, it leaves no trace. The bytes
    /// are what the ring held there before.
    ///
    /// Costs one comparison while there is room. About once in an eighth of the ring it looks up how far the
    /// subscribers are. No system call, but while the ring is full: one for each subscriber that holds it up, at most
    /// every 100 µs.
    ///
    /// # Errors
    /// [`Refused::Full`] while a subscriber has not released the room, [`Refused::TooLong`].
    #[inline]
    pub fn claim(&mut self, len: usize) -> Result<Claim<'_>, Refused> {
        self.reserve(self.position, len)?;
        Ok(Claim::new(self, len))
    }

    /// Claims frames one after the other and makes all of them visible at once.
    #[inline]
    pub fn claim_batch(&mut self) -> Batch<'_> {
        Batch::new(self)
    }

    /// Claims, copies and commits in one go. Short messages are copied in 8-byte moves.
    ///
    /// # Errors
    /// As [`claim`](Self::claim).
    #[inline]
    pub fn publish(&mut self, bytes: &[u8]) -> Result<Position, Refused> {
        let mut claim = self.claim(bytes.len())?;
        claim.copy_in(bytes);
        Ok(claim.commit())
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

    /// Subscribers that are registered now (dead ones count until their room is needed).
    #[must_use]
    pub fn subscribers(&self) -> usize {
        self.memory.subscribers().members.slots.load(Ordering::Acquire).count_ones() as usize
    }

    /// Bytes that the slowest registered subscriber has not yet released, as far as it has said.
    #[must_use]
    pub fn backlog_bytes(&self) -> u64 {
        self.position - gate::lowest_subscriber(&self.memory, self.position)
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
    /// position, or further on in an open batch.
    #[inline]
    pub(crate) fn reserve(&mut self, at: u64, len: usize) -> Result<(), Refused> {
        if len > self.max_frame {
            return Err(Refused::TooLong);
        }
        let end = at + (frame_size(len) + TERMINATOR) as u64;
        if end > self.soft_limit { self.make_room(end) } else { Ok(()) }
    }

    /// The header word of a frame of `len` bytes.
    #[inline]
    pub(crate) fn header_word(&self, len: usize) -> u64 {
        self.stamp | len as u64
    }

    /// Where the next frame's header goes.
    #[inline]
    pub(crate) fn next_position(&self) -> u64 {
        self.position
    }

    /// Makes `frames` frames from the position up to `end` visible by storing the first one's header. All others are in
    /// place, and the word behind the last one is zero.
    #[inline]
    pub(crate) fn commit(&mut self, first_len: usize, end: u64, frames: u64) -> Position {
        let start = self.position;
        // Release pairs with the acquire load in `Subscriber::next`: who sees the header sees everything before it.
        self.memory.header(start).store(self.header_word(first_len), Ordering::Release);
        self.position = end;
        // Wrapping: the count comes out of a segment when a ring is continued.
        self.frames = self.frames.wrapping_add(frames);
        if self.wake_on_commit {
            waiting::wake_sleepers(&self.memory.subscribers().waiters);
        }
        Position(start)
    }

    /// The rare half of `reserve`: remembers boundaries, and moves the gate and the limit.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, end: u64) -> Result<(), Refused> {
        if end > self.mark {
            self.boundaries.remember(self.position);
            self.mark = end + self.part();
            self.publish_cursor();
        }
        if end > self.limit && !self.raise_limit(end) {
            self.full = self.full.wrapping_add(1);
            if !self.reclaim_dead(end) || !self.raise_limit(end) {
                // Who sleeps through frames that it has not been told of would never make room.
                waiting::wake_sleepers(&self.memory.subscribers().waiters);
                return Err(Refused::Full);
            }
        }
        self.soft_limit = self.limit.min(self.mark);
        Ok(())
    }

    /// Moves the gate so that `end` can be reached, if the subscribers allow it: by a whole part where they do, so that
    /// this is rare. The protocol is described in `gate.rs`.
    fn raise_limit(&mut self, end: u64) -> bool {
        // A look without a fence: it may miss who has just joined, but decides nothing yet.
        let lowest = gate::lowest_subscriber(&self.memory, self.position).min(self.position);
        if lowest.saturating_add(self.capacity) < end {
            self.publish_cursor();
            return false;
        }
        let wanted = end.max(self.position + self.part()).saturating_sub(self.capacity);
        let gate = self.boundaries.first_from(wanted).unwrap_or(self.position).min(lowest).max(self.gate);
        if gate + self.capacity < end {
            return false;
        }
        self.publish_cursor();
        self.gate = gate;
        let limit = gate::move_gate(&self.memory, gate, self.capacity);
        // A subscriber that stores a lower position than it had is lying; the room behind it is given already.
        self.limit = self.limit.max(limit);
        end <= self.limit
    }

    fn part(&self) -> u64 {
        self.capacity / PARTS as u64
    }

    fn publish_cursor(&mut self) {
        if self.published != self.position {
            self.memory.publisher().cursor.store(self.position, self.frames);
            self.published = self.position;
        }
    }

    fn publish_tally(&self) {
        let tally = &self.memory.publisher().tally;
        tally.full.store(self.full, Ordering::Relaxed);
        tally.reclaimed.store(self.reclaimed, Ordering::Relaxed);
    }

    /// Frees the slots of dead subscribers that stand in the way of `end`; whether there was one.
    fn reclaim_dead(&mut self, end: u64) -> bool {
        let now = Instant::now();
        if self.liveness_looked_at.is_some_and(|then| now.duration_since(then) < LIVENESS_INTERVAL) {
            return false;
        }
        self.liveness_looked_at = Some(now);
        let table = self.memory.subscribers();
        let members = table.members.slots.load(Ordering::Acquire);
        let mut found = false;
        for slot in (0..SLOTS).filter(|slot| members >> slot & 1 == 1) {
            let position = table.slots[slot].progress.position.load(Ordering::Relaxed);
            // To have its lock is the proof that it is dead, and keeps a joiner out until the slot is free. A lock that
            // cannot be tried proves nothing, so its slot is left alone.
            if position.saturating_add(self.capacity) < end && self.segment.lock_slot(slot).unwrap_or(false) {
                table.members.slots.fetch_and(!(1 << slot), Ordering::AcqRel);
                self.reclaimed = self.reclaimed.wrapping_add(1);
                found = true;
                // Given back at the latest when this publisher closes the file.
                let _ = self.segment.unlock_slot(slot);
            }
        }
        self.publish_tally();
        found
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        // A drop has nobody to tell; `close` does.
        let _ = self.end();
    }
}
