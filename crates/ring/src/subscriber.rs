//! The reading end.

#![allow(unsafe_code)]

use crate::atomics::{Ordering, fence};
use std::hint::spin_loop;
use std::time::{Duration, Instant};

use crate::Error;
use crate::discipline::{Discipline, Gated};
use crate::frame::{self, Frame, Grain, Position, committed_len};
use crate::layout::Policy;
use crate::lines::{ENDED, EVICTED, NO_ORDER, Order, Slot, TELL, order_word};
use crate::memory::Memory;
use crate::segment::Segment;
use crate::waiting::{self, Deadline, Parker, Wait};
use hold_off::HoldOff;

mod hold_off;
mod joining;

/// The position at which a subscriber joins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Start {
    /// Behind the newest frame: only later frames are read.
    #[default]
    Newest,
    /// At the oldest frame that is guaranteed to be intact: about seven eighths of the ring back.
    Oldest,
}

/// The result of [`next`](SubscriberOf::next) on a gated ring.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
#[must_use]
pub enum Poll<'a> {
    /// The next frame, borrowed until the next call.
    Frame(Frame<'a>),
    /// No new frame. More may come, also from another publisher if this one has died.
    Empty,
    /// No new frame, and the publisher has ended the ring. (A kept ring can be opened again; then more frames follow.)
    Ended,
    /// This subscriber blocked the full ring for longer than its stall limit and was evicted. Eviction is permanent:
    /// join again.
    Evicted {
        /// The position up to which the subscriber had released frames; the loss starts there.
        position: Position,
    },
    /// Something other than a publisher has written into the ring. The subscriber cannot continue.
    Damaged {
        /// The position of the expected frame header.
        position: Position,
    },
}

impl<'a> Poll<'a> {
    /// Returns the frame, if there is one.
    #[inline]
    #[must_use]
    pub fn frame(self) -> Option<Frame<'a>> {
        match self {
            Self::Frame(frame) => Some(frame),
            _ => None,
        }
    }
}

/// Identifies a subscriber of a ring, uniquely over the life of the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SubscriberId {
    pub(crate) slot: usize,
    pub(crate) ticket: u64,
}

/// A subscriber of a ring with policy `D`: [`Subscriber`](crate::Subscriber) for a gated ring,
/// [`broadcast::Subscriber`](crate::broadcast::Subscriber) for a broadcast ring.
#[derive(Debug)]
pub struct SubscriberOf<D: Discipline> {
    pub(crate) memory: Memory,
    /// The position of the next frame's header. Everything before it is released.
    pub(crate) position: u64,
    /// The position as last published.
    pub(crate) published: u64,
    /// The position at which to publish next: one part of the ring later.
    pub(crate) publish_at: u64,
    /// The last order that needs no more action.
    heeded: u64,
    pub(crate) grain: Grain,
    pub(crate) max_frame: usize,
    /// Whether a gated frame is lent as a copy: the ring has a stall limit.
    copies: bool,
    /// Capacity ÷ [`PARTS`](crate::gate::PARTS).
    part: u64,
    slot: usize,
    ticket: u64,
    hold_off: HoldOff,
    pub(crate) reading: D::Reading,
    pub(crate) segment: Segment,
}

impl SubscriberOf<Gated> {
    /// Returns the next frame, or why there is none. Releases the previous frame.
    ///
    /// Costs two loads and comparisons a frame, one of them on a cache line that changes only when this subscriber
    /// stalls, and no store except once per eighth of the ring. With a stall limit it also costs a copy of the frame
    /// and a second load of that line.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "a frame borrows the subscriber, which an iterator cannot say"
    )]
    pub fn next(&mut self) -> Poll<'_> {
        let start = self.position;
        if start >= self.publish_at {
            self.publish();
        }
        // Acquire pairs with the release store of the header: the frame's bytes are there.
        let header = self.memory.header(start).load(Ordering::Acquire);
        // After the header: a reader of a header that was overwritten sees the order that came before (`stall.rs`).
        if self.order().word.load(Ordering::Relaxed) != self.heeded && self.heed() {
            return self.evicted();
        }
        let Some(len) = committed_len(header, self.max_frame) else {
            return self.nothing(header);
        };
        if self.copies {
            return self.copied(header, len);
        }
        self.position = start + self.grain.frame_size(len) as u64;
        // SAFETY: the frame is committed, its length is at most the ring's longest, and `published` is not beyond
        // its start while it is borrowed, so the publisher, which waits without a limit here, does not touch it.
        let bytes = unsafe { self.memory.body(start, len) };
        Poll::Frame(Frame { bytes, position: Position(start), epoch: frame::epoch(header) })
    }

    /// The frame of `len` bytes at the position, where the publisher may overwrite it. Out of line: rings without a
    /// stall limit keep a short `next`.
    #[inline(never)]
    fn copied(&mut self, header: u64, len: usize) -> Poll<'_> {
        let start = self.position;
        self.reading.take(&self.memory, start, len);
        // Behind the copy: if a byte of it was overwritten, the order came before (`stall.rs`).
        if self.is_evicted() {
            return self.evicted();
        }
        self.position = start + self.grain.frame_size(len) as u64;
        let bytes = self.reading.bytes(len);
        Poll::Frame(Frame { bytes, position: Position(start), epoch: frame::epoch(header) })
    }

    /// Applies `view` to each frame already in the ring, starting with the next one, to prepare for the frames. The
    /// frames are still [taken](Self::next) afterwards. With a stall limit `view` gets a copy, as with `next`; the
    /// iterator ends early when this subscriber is evicted.
    pub fn ahead<T>(&mut self, mut view: impl FnMut(&[u8]) -> T) -> impl Iterator<Item = T> {
        let mut at = self.position;
        let end = at + self.segment.shape.capacity as u64;
        std::iter::from_fn(move || {
            // Acquire, as in `next`.
            let header = self.memory.header(at).load(Ordering::Acquire);
            let len = committed_len(header, self.max_frame).filter(|_| at < end)?;
            let bytes = if self.copies {
                self.reading.take(&self.memory, at, len);
                // Behind the copy, as in `next`.
                if self.is_evicted() {
                    return None;
                }
                self.reading.bytes(len)
            } else {
                // SAFETY: as in `next`: the frame is committed and not released, because the released part ends
                // before the position at which this began, and nothing is released while `self` is borrowed. Behind
                // the newest frame there is a header of zero, where this ends.
                unsafe { self.memory.body(at, len) }
            };
            at += self.grain.frame_size(len) as u64;
            Some(view(bytes))
        })
    }

    /// Returns `true` if there is a frame to take.
    #[must_use]
    pub fn has_next(&self) -> bool {
        self.has_frame() && !self.is_evicted()
    }

    /// The rare path of `next`. Out of line: inlined into a polling loop, it made the subscriber so fast that rings
    /// fell into the contended regime in nearly every run (see the pause below).
    #[inline(never)]
    fn nothing(&mut self, header: u64) -> Poll<'_> {
        if header != 0 {
            return Poll::Damaged { position: Position(self.position) };
        }
        if self.published != self.position {
            self.publish();
            self.give_way();
        }
        #[cfg(test)]
        #[cfg(not(loom))]
        tests::between_looks();
        // Acquire pairs with the release store in the publisher's `end`: every frame before it is visible, so one
        // more look decides.
        if self.memory.publisher().status.state.load(Ordering::Acquire) == ENDED && !self.has_frame() {
            return Poll::Ended;
        }
        Poll::Empty
    }

    /// Lets the publisher get ahead of a subscriber that has just caught up: a load of a line that is being written
    /// takes it away from the publisher, and both wait for it at every frame (`hold_off.rs`).
    fn give_way(&mut self) {
        // Where frames come slowly, one pause (50 ns where it is long): at 10 million a second the next frame is
        // further away than that, and is not delayed.
        spin_loop();
        // The models have no time to pass.
        if !cfg!(loom) && self.hold_off.is_due() {
            let begun = Instant::now();
            while begun.elapsed() < hold_off::TIME {
                spin_loop();
            }
            let mut hold_off = std::mem::take(&mut self.hold_off);
            hold_off.learn(self.ahead(<[u8]>::len));
            self.hold_off = hold_off;
        }
    }

    #[cold]
    fn evicted(&self) -> Poll<'_> {
        // Pairs with the release store of the order, whichever load has seen it: the eviction's position is
        // visible.
        fence(Ordering::Acquire);
        Poll::Evicted { position: Position(self.order().position.load(Ordering::Relaxed)) }
    }
}

impl<D: Discipline> SubscriberOf<D> {
    /// Waits until [`next`](Self::next) would return something other than [`Poll::Empty`]; returns `false` if `timeout`
    /// passes first. Releases all frames read, unless the next one is already there.
    ///
    /// A publisher that died has not ended its ring, so the wait times out: see
    /// [`publisher_alive`](Self::publisher_alive).
    pub fn wait(&mut self, how: Wait, timeout: Duration) -> bool {
        if self.is_ready() {
            return true;
        }
        if self.published != self.position {
            self.publish();
        }
        let ready = || self.is_ready();
        // A frame that comes soon is not delayed by a read of the clock.
        let soon = match how {
            Wait::Spin => waiting::poll(ready, || ()),
            Wait::Pause | Wait::Adaptive => waiting::poll(ready, spin_loop),
            Wait::Yield | Wait::Park => false,
        };
        if soon {
            return true;
        }
        let deadline = Deadline::after(timeout);
        let bed = Parker {
            waiters: &self.memory.subscribers().waiters,
            flags: &self.memory.publisher().status.flags,
            slot: self.slot,
            #[cfg(not(loom))]
            bell: None,
        };
        match how {
            Wait::Spin => waiting::poll_until(ready, deadline, || ()),
            Wait::Pause => waiting::poll_until(ready, deadline, spin_loop),
            Wait::Yield => waiting::poll_until(ready, deadline, std::thread::yield_now),
            Wait::Park => bed.park_until(ready, deadline),
            Wait::Adaptive => bed.adapt_until(ready, deadline),
        }
    }

    /// Sleeps until [`next`](SubscriberOf::next) would return something other than [`Poll::Empty`], until the bell is
    /// rung, or until `timeout` passes, as [`wait`](Self::wait) does with [`Wait::Park`]. Returns `true` in the first
    /// case.
    #[cfg(not(loom))]
    pub fn wait_or(&mut self, bell: &crate::Bell, timeout: Duration) -> bool {
        if self.published != self.position {
            self.publish();
        }
        let bed = Parker {
            waiters: &self.memory.subscribers().waiters,
            flags: &self.memory.publisher().status.flags,
            slot: self.slot,
            bell: Some(bell),
        };
        bed.park_until(|| self.is_ready() || bell.is_rung(), Deadline::after(timeout));
        self.is_ready()
    }

    /// Whether `next` would return something other than `Empty`.
    #[inline]
    fn is_ready(&self) -> bool {
        self.has_frame()
            // Acquire pairs with the publisher's end.
            || self.memory.publisher().status.state.load(Ordering::Acquire) == ENDED
            || match D::POLICY {
                Policy::Gated => self.is_evicted(),
                Policy::Broadcast => self.is_passed(),
            }
    }

    /// Whether the word at the position is not zero: a frame's header, or damage that `next` reports.
    #[inline]
    pub(crate) fn has_frame(&self) -> bool {
        self.memory.header(self.position).load(Ordering::Acquire) != 0
    }

    /// Whether the publisher of a broadcast ring may have overwritten the frame at the position, and the bytes that
    /// were read there before this call.
    #[inline]
    pub(crate) fn is_passed(&self) -> bool {
        // Pairs with the fence behind the publisher's gate (`gate.rs`): a reader that has read a byte of a later
        // lap sees the gate that came before it.
        fence(Ordering::Acquire);
        self.memory.publisher().gate.position.load(Ordering::Relaxed) > self.position
    }

    /// Returns `true` if this subscriber was evicted because it blocked the full ring for longer than the stall limit.
    /// A frame lent earlier stays whole.
    #[inline]
    #[must_use]
    pub fn is_evicted(&self) -> bool {
        // As in `next`: if a byte read before was overwritten, the order is visible now.
        fence(Ordering::Acquire);
        self.order().word.load(Ordering::Relaxed) == order_word(self.ticket, EVICTED)
    }

    /// Returns this subscriber's identity, for [`Publisher::exempt`](crate::PublisherOf::exempt).
    #[must_use]
    pub fn seat(&self) -> SubscriberId {
        SubscriberId { slot: self.slot, ticket: self.ticket }
    }

    fn order(&self) -> &Order {
        &self.memory.publisher().orders[self.slot]
    }

    /// Does what the publisher orders. Returns whether the order is an eviction, which is permanent.
    #[cold]
    #[inline(never)]
    fn heed(&mut self) -> bool {
        let word = self.order().word.load(Ordering::Relaxed);
        if word & !3 == order_word(self.ticket, NO_ORDER) {
            match word & 3 {
                EVICTED => return true,
                TELL => {
                    if self.published != self.position {
                        self.publish();
                    }
                    // Not marked as heeded: the order applies to the next frame too.
                    return false;
                }
                _ => {}
            }
        }
        // An order to an earlier holder of the slot, or a withdrawn one.
        self.heeded = word;
        false
    }

    /// Releases all frames read so far at once. Only for a subscriber that pauses without having seen [`Poll::Empty`]:
    /// the frame lent last is released too.
    pub fn release(&mut self) {
        self.publish();
    }

    #[cold]
    pub(crate) fn publish(&mut self) {
        // Release pairs with the acquire load of the publisher's scan: all reads of the released frames are over.
        self.slot().progress.position.store(self.position, Ordering::Release);
        self.published = self.position;
        self.publish_at = self.position + self.part;
    }

    fn slot(&self) -> &Slot {
        &self.memory.subscribers().slots[self.slot]
    }

    /// Locks the ring's memory so that it is never paged out (mlock).
    ///
    /// # Errors
    /// The system's, usually because of the limit on locked memory (`ulimit -l`).
    pub fn lock_memory(&self) -> Result<(), Error> {
        self.memory.lock(&self.segment)
    }

    /// Returns the position of the next frame.
    #[must_use]
    pub fn position(&self) -> Position {
        Position(self.position)
    }

    /// Returns the bytes between this subscriber and the publisher's cursor, which lags by up to an eighth of the ring.
    #[must_use]
    pub fn lag_bytes(&self) -> u64 {
        self.memory.publisher().cursor.position.load(Ordering::Acquire).saturating_sub(self.position)
    }

    /// Returns the current publisher's epoch: 1 for the first, one more for each that continued the ring (modulo 2²⁴).
    /// Each frame carries its publisher's epoch, so the change is visible at its place in the stream.
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.memory.publisher().status.epoch.load(Ordering::Relaxed)
    }

    /// Returns the publisher's note; all zero before the first. `None` while notes are written faster than they can be
    /// read.
    #[must_use]
    pub fn note(&self) -> Option<[u64; 8]> {
        self.memory.publisher().note.read()
    }

    /// Returns `true` if a publisher holds the lock that dies with its process. Makes a system call.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn publisher_alive(&self) -> Result<bool, Error> {
        self.segment.publisher_is_alive()
    }

    /// Returns `true` if the ring still has its name. If not, no publisher can continue it. Makes a system call.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn is_named(&self) -> Result<bool, Error> {
        self.segment.is_named()
    }

    /// Returns the size of the ring's data area in bytes.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.segment.shape.capacity
    }

    /// Returns how long this subscriber may block the full ring before it is evicted; zero means no limit.
    #[must_use]
    pub fn stall_limit(&self) -> Duration {
        Duration::from_nanos(self.segment.shape.stall_limit_ns)
    }

    /// Returns the length of the longest possible frame in bytes.
    #[must_use]
    pub fn max_frame(&self) -> usize {
        self.max_frame
    }
}

impl<D: Discipline> Drop for SubscriberOf<D> {
    fn drop(&mut self) {
        let table = self.memory.subscribers();
        table.waiters.parked.fetch_and(!(1 << self.slot), Ordering::Relaxed);
        // Release pairs with the acquire load of the publisher's scan: all reads are over.
        table.members.slots.fetch_and(!(1 << self.slot), Ordering::Release);
        // Only then may another subscriber have the slot. If this fails, closing the file releases the lock.
        let _ = self.segment.unlock_slot(self.slot);
    }
}

#[cfg(test)]
#[cfg(not(loom))]
pub(crate) mod tests;
