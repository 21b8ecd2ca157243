//! The control lines of a segment: every word that one side writes and another reads, and nothing else.
//!
//! Each line is 128 bytes, because processors fetch lines of 64 bytes in pairs. No line is written by two sides but
//! `Members` and `Waiters`, which change only when a subscriber joins, leaves or parks.
//!
//! All words are plain atomics without invariants: whatever bytes stand there, reading them is harmless, and what is
//! read is checked where it is used.

use crate::atomics::{AtomicU32, AtomicU64, Ordering, fence};

/// Subscribers that a ring takes: one bit each in a word.
pub(crate) const SLOTS: usize = if cfg!(loom) { 2 } else { 64 };
/// Words of a subscriber's label.
const LABEL_WORDS: usize = 6;
/// Bytes of a subscriber's label.
pub(crate) const LABEL_BYTES: usize = LABEL_WORDS * 8;

/// Status of a ring whose publisher is at work, or died without a word.
pub(crate) const LIVE: u32 = 1;
/// Status of a ring whose publisher has said that nothing more comes.
pub(crate) const ENDED: u32 = 2;

/// Flag: the publisher's process takes part in the machine-wide barrier, so a subscriber may park without a limit.
pub(crate) const HAS_BARRIER: u32 = 1;

/// A frame boundary and the number of frames before it.
///
/// The cursor is one: how far the publisher is, published now and then, at or before the true end, for joiners, for a
/// successor, for people. Readers on the way do not look there, they see each frame's own header. The gate is the other:
/// the oldest position that is guaranteed to be intact (its frames are counted in broadcast rings only).
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Default))]
#[derive(Debug)]
pub(crate) struct Milestone {
    pub(crate) position: AtomicU64,
    /// One of the two counts is the position's. The other is written before the position moves on, so that a publisher
    /// that dies at any moment leaves the two in agreement.
    counts: [Count; 2],
}

#[repr(C)]
#[cfg_attr(loom, derive(Default))]
#[derive(Debug)]
struct Count {
    position: AtomicU64,
    frames: AtomicU64,
}

impl Milestone {
    /// Moves it. Only the publisher may.
    pub(crate) fn store(&self, position: u64, frames: u64) {
        let now = self.position.load(Ordering::Relaxed);
        let [first, second] = &self.counts;
        let count = if first.position.load(Ordering::Relaxed) == now { second } else { first };
        count.position.store(position, Ordering::Relaxed);
        // Pairs with the acquire fence in `frames_at`: who sees the count sees that it is another position's.
        fence(Ordering::Release);
        count.frames.store(frames, Ordering::Relaxed);
        // Release: who starts from this position sees the frames before it, and their count.
        self.position.store(position, Ordering::Release);
    }

    /// The number of frames before `position`, if that is where it stands.
    pub(crate) fn frames_at(&self, position: u64) -> Option<u64> {
        self.counts.iter().find_map(|count| {
            let is_its = |ordering| count.position.load(ordering) == position;
            let frames = is_its(Ordering::Acquire).then(|| count.frames.load(Ordering::Relaxed))?;
            fence(Ordering::Acquire);
            is_its(Ordering::Relaxed).then_some(frames)
        })
    }
}

/// Who publishes, and whether more may come.
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Default))]
#[derive(Debug)]
pub(crate) struct Status {
    /// [`LIVE`] or [`ENDED`].
    pub(crate) state: AtomicU32,
    /// Counts publishers, from 1; 24 bits.
    pub(crate) epoch: AtomicU32,
    pub(crate) pid: AtomicU32,
    /// [`HAS_BARRIER`].
    pub(crate) flags: AtomicU32,
    /// The process's start in clock ticks since boot: with the pid, a process for ever.
    pub(crate) start_ticks: AtomicU64,
}

/// Counters for people, written when something rare happens.
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Default))]
#[derive(Debug)]
pub(crate) struct Tally {
    /// Dead subscribers that no longer gate.
    pub(crate) reclaimed: AtomicU64,
    /// Claims refused because the ring was full.
    pub(crate) full: AtomicU64,
    /// Live subscribers that stalled for too long and no longer gate.
    pub(crate) evicted: AtomicU64,
}

/// 64 bytes from the publisher to whoever reads. Two copies, so that a reader never waits for a writer, and a writer
/// that dies half-way leaves the previous copy whole.
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Default))]
#[derive(Debug)]
pub(crate) struct Note {
    version: AtomicU64,
    copies: [NoteCopy; 2],
}

#[repr(C, align(64))]
#[cfg_attr(loom, derive(Default))]
#[derive(Debug)]
struct NoteCopy([AtomicU64; 8]);

impl Note {
    /// Writes the next version. Only the publisher may.
    pub(crate) fn write(&self, words: [u64; 8]) {
        let next = self.version.load(Ordering::Relaxed).wrapping_add(1);
        // Pairs with the acquire fence in `read`: whoever sees a word of this copy then sees the version before it,
        // which is already another than the one it started from.
        fence(Ordering::Release);
        for (place, word) in self.copies[(next & 1) as usize].0.iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
        // Pairs with the acquire load in `read`: the words are there before the version that names them.
        self.version.store(next, Ordering::Release);
    }

    /// The newest whole note; all zero before the first. Tries again while notes are written faster than it reads,
    /// but not for ever: `None` then.
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

/// What the publisher has to say to the subscriber in a slot, which reads it with every frame: a ticket and, in the two
/// lowest bits, one of the orders below. The ticket tells it from what was said to an earlier holder of the slot.
#[repr(C)]
#[cfg_attr(loom, derive(Default))]
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) word: AtomicU64,
    /// Of an eviction: up to where the subscriber had released.
    pub(crate) position: AtomicU64,
}

/// Nothing (any more).
pub(crate) const NO_ORDER: u64 = 0;
/// The ring is full and waits for you: tell your position with every frame.
pub(crate) const TELL: u64 = 1;
/// You no longer gate; what you read may be written over.
pub(crate) const EVICTED: u64 = 2;

/// The word that gives `order` to the subscriber with `ticket`.
pub(crate) fn order_word(ticket: u64, order: u64) -> u64 {
    ticket << 2 | order
}

/// What only the publisher writes.
#[repr(C, align(4096))]
#[cfg_attr(loom, derive(Default))]
#[derive(Debug)]
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
#[cfg_attr(loom, derive(Default))]
#[derive(Debug)]
pub(crate) struct Members {
    pub(crate) slots: AtomicU64,
    /// Counts joins: the next subscriber's ticket.
    pub(crate) tickets: AtomicU64,
}

/// Who sleeps, and the word it sleeps on.
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Default))]
#[derive(Debug)]
pub(crate) struct Waiters {
    /// Bit `n` while the subscriber in slot `n` is parked or about to be.
    pub(crate) parked: AtomicU64,
    /// Counts wake-ups; the futex.
    pub(crate) wakes: AtomicU32,
}

/// One subscriber's lines.
#[repr(C, align(256))]
#[cfg_attr(loom, derive(Default))]
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) progress: Progress,
    pub(crate) identity: Identity,
}

/// How far a subscriber has released frames. Only that subscriber writes it.
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Default))]
#[derive(Debug)]
pub(crate) struct Progress {
    pub(crate) position: AtomicU64,
}

/// Who a subscriber is, for people.
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Default))]
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) pid: AtomicU32,
    reserved: AtomicU32,
    /// As in [`Status::start_ticks`].
    pub(crate) start_ticks: AtomicU64,
    pub(crate) ticket: AtomicU64,
    label: [AtomicU64; LABEL_WORDS],
}

impl Identity {
    /// Keeps as much of `label` as there is room for, cut at a character.
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

    /// The label, whatever stands there: bytes that are no text are replaced.
    pub(crate) fn label(&self) -> String {
        let mut bytes = [0; LABEL_BYTES];
        for (word, chunk) in self.label.iter().zip(bytes.as_chunks_mut::<8>().0) {
            *chunk = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(LABEL_BYTES);
        String::from_utf8_lossy(&bytes[..end]).chars().filter(|c| !c.is_control()).collect()
    }
}

/// What subscribers write (and the publisher, when it reclaims a slot or wakes).
#[repr(C, align(4096))]
#[cfg_attr(loom, derive(Default))]
#[derive(Debug)]
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
