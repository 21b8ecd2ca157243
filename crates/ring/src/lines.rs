//! The control lines of a segment: every word that one side writes and another reads, and nothing else.
//!
//! Each line is 128 bytes, because processors fetch lines of 64 bytes in pairs. Only `Members` and `Waiters` are
//! written by two sides; they change only when a subscriber joins, leaves, parks, is woken or is reclaimed.
//!
//! All words are plain atomics without invariants: reading any bytes is harmless, and each value is checked where
//! it is used.

use crate::atomics::{AtomicU32, AtomicU64, Ordering, fence};

/// Subscribers per ring: one bit each in a word.
pub(crate) const SLOTS: usize = if cfg!(loom) { 2 } else { 64 };
/// Words of a subscriber's label.
const LABEL_WORDS: usize = 6;
/// Bytes of a subscriber's label.
pub(crate) const LABEL_BYTES: usize = LABEL_WORDS * 8;

/// Status of a ring whose publisher is running, or died without ending the ring.
pub(crate) const LIVE: u32 = 1;
/// Status of a ring that its publisher has ended.
pub(crate) const ENDED: u32 = 2;

/// Flag: the publisher's process takes part in the machine-wide barrier, so a subscriber may park without a limit.
pub(crate) const HAS_BARRIER: u32 = 1;

/// A frame boundary and the number of frames before it.
///
/// The cursor is one: the publisher's position, stored now and then, at or before the true end, for joiners, for a
/// successor, for observers. Subscribers that read do not use it: they see each frame's own header. The gate is the
/// other: the oldest position that is guaranteed to be intact (its frames are counted in broadcast rings only).
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Debug, Default))]
pub(crate) struct Milestone {
    pub(crate) position: AtomicU64,
    /// One of the two counts belongs to the position. The other is written before the position moves, so that
    /// position and count agree whenever the publisher dies.
    counts: [Count; 2],
}

#[repr(C)]
#[cfg_attr(loom, derive(Debug, Default))]
struct Count {
    position: AtomicU64,
    frames: AtomicU64,
}

impl Milestone {
    /// Moves the milestone. Only the publisher may call this.
    pub(crate) fn store(&self, position: u64, frames: u64) {
        let now = self.position.load(Ordering::Relaxed);
        let [first, second] = &self.counts;
        let count = if first.position.load(Ordering::Relaxed) == now { second } else { first };
        count.position.store(position, Ordering::Relaxed);
        // Pairs with the acquire fence in `frames_at`: a reader that sees the count also sees that it is another
        // position's.
        fence(Ordering::Release);
        count.frames.store(frames, Ordering::Relaxed);
        // Release: a reader that starts from this position sees the frames before it, and their count.
        self.position.store(position, Ordering::Release);
    }

    /// The number of frames before `position`; `None` if neither count belongs to it.
    pub(crate) fn frames_at(&self, position: u64) -> Option<u64> {
        self.counts.iter().find_map(|count| {
            let is_its = |ordering| count.position.load(ordering) == position;
            let frames = is_its(Ordering::Acquire).then(|| count.frames.load(Ordering::Relaxed))?;
            fence(Ordering::Acquire);
            is_its(Ordering::Relaxed).then_some(frames)
        })
    }
}

/// The current publisher, and whether more frames may come.
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Debug, Default))]
pub(crate) struct Status {
    /// [`LIVE`] or [`ENDED`].
    pub(crate) state: AtomicU32,
    /// Counts publishers, from 1; 24 bits.
    pub(crate) epoch: AtomicU32,
    pub(crate) pid: AtomicU32,
    /// [`HAS_BARRIER`].
    pub(crate) flags: AtomicU32,
    /// The process's start in clock ticks since boot; with the pid it identifies the process uniquely.
    pub(crate) start_ticks: AtomicU64,
}

/// Counters for observers, written when something rare happens.
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Debug, Default))]
pub(crate) struct Tally {
    /// Dead subscribers that no longer gate the publisher.
    pub(crate) reclaimed: AtomicU64,
    /// Claims refused because the ring was full.
    pub(crate) full: AtomicU64,
    /// Live subscribers that stalled for longer than the limit and no longer gate the publisher.
    pub(crate) evicted: AtomicU64,
}

/// 64 bytes from the publisher to any reader. Two copies, so that a reader never waits for a writer, and a writer
/// that dies half-way leaves the previous copy whole.
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Debug, Default))]
pub(crate) struct Note {
    version: AtomicU64,
    copies: [NoteCopy; 2],
}

#[repr(C, align(64))]
#[cfg_attr(loom, derive(Debug, Default))]
struct NoteCopy([AtomicU64; 8]);

impl Note {
    /// Writes the next version. Only the publisher may.
    pub(crate) fn write(&self, words: [u64; 8]) {
        let next = self.version.load(Ordering::Relaxed).wrapping_add(1);
        // Pairs with the acquire fence in `read`: a reader that sees a word of this copy then sees the version
        // before it, which already differs from the version that the reader started from.
        fence(Ordering::Release);
        for (place, word) in self.copies[(next & 1) as usize].0.iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
        // Pairs with the acquire load in `read`: the words are visible before the version that selects them.
        self.version.store(next, Ordering::Release);
    }

    /// The newest note, whole; all zero before the first. Retries while notes are written faster than they can be
    /// read; `None` after the last try.
    pub(crate) fn read(&self) -> Option<[u64; 8]> {
        const TRIES: usize = 1000;
        for _ in 0..TRIES {
            let version = self.version.load(Ordering::Acquire);
            let copy = &self.copies[(version & 1) as usize].0;
            let words = std::array::from_fn(|word| copy[word].load(Ordering::Relaxed));
            fence(Ordering::Acquire);
            if self.version.load(Ordering::Relaxed) == version {
                return Some(words);
            }
        }
        None
    }
}

/// The publisher's order to the subscriber in a slot, which reads it with every frame: a ticket and, in the two
/// lowest bits, one of the orders below. The ticket distinguishes it from an order to an earlier holder of the
/// slot.
#[repr(C)]
#[cfg_attr(loom, derive(Debug, Default))]
pub(crate) struct Order {
    pub(crate) word: AtomicU64,
    /// For an eviction: the position up to which the subscriber had released frames.
    pub(crate) position: AtomicU64,
}

/// No order, or a withdrawn one.
pub(crate) const NO_ORDER: u64 = 0;
/// The full ring waits for this subscriber: store the position with every frame.
pub(crate) const TELL: u64 = 1;
/// The subscriber no longer gates the publisher, which may overwrite the frames that it reads.
pub(crate) const EVICTED: u64 = 2;

/// The word that gives `order` to the subscriber with `ticket`.
pub(crate) fn order_word(ticket: u64, order: u64) -> u64 {
    ticket << 2 | order
}

/// The lines that only the publisher writes.
#[repr(C, align(4096))]
#[cfg_attr(loom, derive(Debug, Default))]
pub(crate) struct PublisherLines {
    pub(crate) cursor: Milestone,
    pub(crate) gate: Milestone,
    pub(crate) status: Status,
    pub(crate) tally: Tally,
    pub(crate) note: Note,
    pub(crate) orders: [Order; SLOTS],
}

/// Which slots gate the publisher: bit `n` for slot `n`.
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Debug, Default))]
pub(crate) struct Members {
    pub(crate) slots: AtomicU64,
    /// Counts joins: the next subscriber's ticket.
    pub(crate) tickets: AtomicU64,
}

/// The sleeping subscribers, and the word on which they sleep.
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Debug, Default))]
pub(crate) struct Waiters {
    /// Bit `n` while the subscriber in slot `n` is parked or about to be.
    pub(crate) parked: AtomicU64,
    /// Counts wake-ups; the futex.
    pub(crate) wakes: AtomicU32,
}

/// One subscriber's lines.
#[repr(C, align(256))]
#[cfg_attr(loom, derive(Debug, Default))]
pub(crate) struct Slot {
    pub(crate) progress: Progress,
    pub(crate) identity: Identity,
}

/// How far a subscriber has released frames. Only that subscriber writes it.
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Debug, Default))]
pub(crate) struct Progress {
    pub(crate) position: AtomicU64,
}

/// A subscriber's identity, for observers.
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Debug, Default))]
pub(crate) struct Identity {
    pub(crate) pid: AtomicU32,
    reserved: AtomicU32,
    /// As in [`Status::start_ticks`].
    pub(crate) start_ticks: AtomicU64,
    pub(crate) ticket: AtomicU64,
    label: [AtomicU64; LABEL_WORDS],
}

impl Identity {
    /// Stores as much of `label` as fits, cut at a character boundary.
    pub(crate) fn set_label(&self, label: &str) {
        let mut end = label.len().min(LABEL_BYTES);
        while !label.is_char_boundary(end) {
            end -= 1;
        }
        let mut bytes = [0; LABEL_BYTES];
        bytes[..end].copy_from_slice(&label.as_bytes()[..end]);
        for (word, chunk) in self.label.iter().zip(bytes.as_chunks::<8>().0) {
            word.store(u64::from_ne_bytes(*chunk), Ordering::Relaxed);
        }
    }

    /// The label: bytes that are not UTF-8 are replaced, control characters are dropped.
    pub(crate) fn label(&self) -> String {
        let mut bytes = [0; LABEL_BYTES];
        for (word, chunk) in self.label.iter().zip(bytes.as_chunks_mut::<8>().0) {
            *chunk = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(LABEL_BYTES);
        String::from_utf8_lossy(&bytes[..end]).chars().filter(|c| !c.is_control()).collect()
    }
}

/// The lines that subscribers write (and the publisher, when it reclaims a slot or wakes subscribers).
#[repr(C, align(4096))]
#[cfg_attr(loom, derive(Debug, Default))]
pub(crate) struct SubscriberLines {
    pub(crate) members: Members,
    pub(crate) waiters: Waiters,
    pub(crate) slots: [Slot; SLOTS],
}

// The layout is shared with other processes, and one day with other languages.
#[cfg(not(loom))]
const _: () = {
    assert!(std::mem::offset_of!(PublisherLines, gate) == 128);
    assert!(std::mem::offset_of!(PublisherLines, status) == 256);
    assert!(std::mem::offset_of!(PublisherLines, tally) == 384);
    assert!(std::mem::offset_of!(PublisherLines, note) == 512);
    assert!(std::mem::offset_of!(PublisherLines, orders) == 768);
    assert!(size_of::<PublisherLines>() == 4096);
    assert!(std::mem::offset_of!(SubscriberLines, waiters) == 128);
    assert!(std::mem::offset_of!(SubscriberLines, slots) == 256);
    assert!(size_of::<Slot>() == 256);
    assert!(size_of::<SubscriberLines>() == 20480);
};

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn a_publisher_that_dies_while_it_moves_its_cursor_leaves_the_old_one_whole() {
        let count = || Count { position: AtomicU64::new(0), frames: AtomicU64::new(0) };
        let cursor = Milestone { position: AtomicU64::new(0), counts: [count(), count()] };
        assert_eq!(cursor.frames_at(0), Some(0));
        for step in 1..5 {
            cursor.store(step * 64, step);
            assert_eq!(cursor.frames_at(step * 64), Some(step));
            assert_eq!(cursor.frames_at(step * 64 + 8), None);
        }
        // The next move, up to its last store but one.
        let other = cursor.counts.iter().find(|count| count.position.load(Ordering::Relaxed) != 256).unwrap();
        other.position.store(320, Ordering::Relaxed);
        other.frames.store(5, Ordering::Relaxed);
        assert_eq!(cursor.frames_at(cursor.position.load(Ordering::Relaxed)), Some(4));
        cursor.store(384, 6);
        assert_eq!(cursor.frames_at(384), Some(6));
    }
}
