//! Updates that were sent to clients, but are in no image yet.
//!
//! Clients wait for an update, but not for its image until one of them requests it. So the hub sends the updates of the feeds first, and folds them
//! into the images afterwards, or before any image is read: no client ever sees an image without the updates sent before it. Updates of other
//! sources are folded first, because only the fold shows that they are readable, and clients must not get unreadable ones. The plant encodes the
//! updates of its feeds itself, and checks a post to one of their items before it is on the ring (`plant::sources::posts`).

use tapeline_nanos::Nanos;
use tapeline_plant::{ItemId, Seq};

use crate::connections::Connections;
use crate::hub::Hub;
use crate::images::Images;
use crate::interest::{Interest, ItemSlot};
use crate::shared_state::SharedState;

/// Maximum number of updates: their data is still in the processor's second-level cache at the fold.
const MOST: usize = 512;
/// Maximum bytes of the updates, except for a single longer one.
const MOST_BYTES: usize = 128 << 10;
/// Number of updates that are folded together. Meanwhile the images of as many after them are prefetched, and the items of the next ones.
const TOGETHER: usize = 8;
/// Number of updates whose images are prefetched: those that are folded now, and as many after them.
const IMAGES_AHEAD: usize = 2 * TOGETHER;
/// Number of updates whose items are prefetched.
const ITEMS_AHEAD: usize = 3 * TOGETHER;

/// The updates, in the order of their arrival.
#[derive(Debug)]
pub(crate) struct Unfolded {
    updates: Vec<Update>,
    bytes: Vec<u8>,
    /// Number of updates at the front that are folded.
    folded: usize,
    /// Number of updates at the front whose items are prefetched.
    expected_items: usize,
    /// Number of updates at the front whose images are prefetched.
    expected_images: usize,
    /// Items with unreadable updates, with their numbers at that time.
    unreadable: Vec<(ItemSlot, ItemId)>,
}

#[derive(Debug, Clone, Copy)]
struct Update {
    place: ItemSlot,
    seq: Seq,
    /// End of its message; it begins at the end of the previous one.
    end: usize,
}

impl Unfolded {
    /// Creates an empty list with all its memory, except for a single longer update.
    pub(crate) fn new() -> Self {
        let (updates, bytes) = (Vec::with_capacity(MOST), Vec::with_capacity(MOST_BYTES));
        Self { updates, bytes, folded: 0, expected_items: 0, expected_images: 0, unreadable: Vec::new() }
    }

    /// Returns the number of updates not folded.
    #[inline]
    const fn len(&self) -> usize {
        self.updates.len() - self.folded
    }

    /// Returns `true` if there is capacity for one more update of `len` bytes.
    #[inline]
    pub(crate) fn has_room(&mut self, len: usize) -> bool {
        let has_room = |this: &Self| {
            this.updates.len() < MOST && (this.updates.is_empty() || this.bytes.len() + len <= MOST_BYTES)
        };
        has_room(self)
            || self.folded > 0 && {
                self.move_up();
                has_room(self)
            }
    }

    /// Removes the folded updates.
    #[cold]
    fn move_up(&mut self) {
        let end = self.updates.drain(..self.folded).next_back().map_or(0, |update| update.end);
        self.updates.iter_mut().for_each(|update| update.end -= end);
        self.bytes.drain(..end);
        self.expected_items -= self.folded;
        self.expected_images -= self.folded;
        self.folded = 0;
    }

    /// Adds an update, for which there [is capacity](Self::has_room).
    #[inline]
    pub(crate) fn push(&mut self, place: ItemSlot, seq: Seq, message: &[u8]) {
        self.bytes.extend_from_slice(message);
        self.updates.push(Update { place, seq, end: self.bytes.len() });
    }

    /// Prefetches the items of updates that are folded later, and the images of those before them.
    #[inline]
    fn expect(&mut self, interest: &Interest, images: &Images) {
        let slots = |expected: &mut usize, ahead: usize| {
            let end = self.updates.len().min(self.folded + ahead);
            let updates = self.updates.get(*expected..end).unwrap_or_default();
            *expected = end;
            updates.iter().filter_map(|update| Some(interest.get(update.place)?.slot))
        };
        slots(&mut self.expected_items, ITEMS_AHEAD).for_each(|slot| images.cache.expect(slot));
        slots(&mut self.expected_images, IMAGES_AHEAD).for_each(|slot| images.cache.expect_image(slot));
    }

    /// Folds the next few updates into the images of their items.
    fn fold(&mut self, interest: &mut Interest, images: &mut Images) {
        self.expect(interest, images);
        let (folded, rest) = self.updates.split_at(self.folded);
        let mut begin = folded.last().map_or(0, |update| update.end);
        let together = rest.get(..TOGETHER).unwrap_or(rest);
        for Update { place, seq, end } in together {
            let message = self.bytes.get(begin..*end).unwrap_or_default();
            begin = *end;
            let Some(item) = interest.get_mut(*place) else { continue };
            if images.apply(item, *seq, message).is_malformed {
                self.unreadable.push((*place, item.number));
            }
        }
        self.folded += together.len();
        if self.len() == 0 {
            (self.folded, self.expected_items, self.expected_images) = (0, 0, 0);
            self.updates.clear();
            self.bytes.clear();
            // Frees the memory of a single long message.
            self.bytes.shrink_to(MOST_BYTES);
        }
    }
}

impl SharedState {
    #[inline]
    pub(crate) fn fold(&mut self) {
        while self.unfolded.len() > 0 {
            self.unfolded.fold(&mut self.interest, &mut self.images);
        }
    }
}

impl Hub {
    /// Returns the number of updates that were sent to clients, but are not in an image yet.
    #[must_use]
    pub const fn unfolded(&self) -> usize {
        self.shared.unfolded.len()
    }

    /// Folds a few of those updates into the images. Call it after they have been sent, when nothing more urgent is due. Their number is bounded,
    /// and they are folded in any case before an image is read.
    pub fn fold(&mut self, now: Nanos, connections: &mut impl Connections) {
        self.now = now;
        if self.shared.unfolded.len() > 0 {
            self.shared.unfolded.fold(&mut self.shared.interest, &mut self.shared.images);
        }
        self.say_unreadable(connections);
    }

    /// Folds all updates.
    #[inline]
    pub(crate) fn fold_all(&mut self, connections: &mut impl Connections) {
        if self.shared.unfolded.len() > 0 {
            self.shared.fold();
        }
        self.say_unreadable(connections);
    }

    #[inline]
    fn say_unreadable(&mut self, connections: &mut impl Connections) {
        while let Some((place, number)) = self.shared.unfolded.unreadable.pop() {
            // Another item may have the slot.
            if self.shared.interest.get(place).is_some_and(|item| item.number == number) {
                self.unreadable(place, connections);
            }
        }
    }
}
