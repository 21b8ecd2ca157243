//! Updates that clients have been sent, and that are in no image yet.
//!
//! Clients wait for an update; nobody waits for the image that it changes until somebody asks for one. So the hub sends what the
//! feeds publish first, and folds it into the images when that is on its way, or before anything else looks at them: nobody ever sees
//! an image without the updates that went out before it. Of other sources an update is folded first, as only that tells whether it can
//! be read, and clients are to be spared what cannot; what the plant makes of its feeds it has encoded itself, and a post to one of
//! their items has been looked through by the plant before it is on the ring (`plant::sources::posts`).

use tapeline_nanos::Nanos;
use tapeline_plant::{ItemId, Seq};

use crate::connections::Connections;
use crate::hub::Hub;
use crate::images::Images;
use crate::interest::{Interest, ItemSlot};
use crate::shared_state::SharedState;

/// Updates that wait at most: what they need is still in the processor's second cache when their turn comes.
const MOST: usize = 512;
/// Bytes of them, but for one that is longer by itself.
const MOST_BYTES: usize = 128 << 10;
/// Updates that are folded at once, and whose items and images are fetched together, as in [`crate::ahead`].
const TOGETHER: usize = 16;

/// In the order in which they came.
#[derive(Debug)]
pub(crate) struct Unfolded {
    updates: Vec<Update>,
    bytes: Vec<u8>,
    /// The first so many of them are folded.
    folded: usize,
    /// Items of which an update could not be read, with the numbers that they had then.
    unreadable: Vec<(ItemSlot, ItemId)>,
}

#[derive(Debug, Clone, Copy)]
struct Update {
    place: ItemSlot,
    seq: Seq,
    /// Where its message ends; it begins where the one before ends.
    end: usize,
}

impl Unfolded {
    /// None; with all the memory that they need, but for one that is longer by itself.
    pub(crate) fn new() -> Self {
        let (updates, bytes) = (Vec::with_capacity(MOST), Vec::with_capacity(MOST_BYTES));
        Self { updates, bytes, folded: 0, unreadable: Vec::new() }
    }

    /// How many wait.
    #[inline]
    const fn len(&self) -> usize {
        self.updates.len() - self.folded
    }

    /// Whether there is room for one more of so many bytes.
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

    /// What is folded makes room.
    #[cold]
    fn move_up(&mut self) {
        let end = self.updates.drain(..self.folded).next_back().map_or(0, |update| update.end);
        self.updates.iter_mut().for_each(|update| update.end -= end);
        self.bytes.drain(..end);
        self.folded = 0;
    }

    /// Takes one, for which there [is room](Self::has_room).
    #[inline]
    pub(crate) fn push(&mut self, place: ItemSlot, seq: Seq, message: &[u8]) {
        self.bytes.extend_from_slice(message);
        self.updates.push(Update { place, seq, end: self.bytes.len() });
    }

    /// Folds the next few into the images of their items.
    fn fold(&mut self, interest: &mut Interest, images: &mut Images) {
        let (folded, rest) = self.updates.split_at(self.folded);
        let mut begin = folded.last().map_or(0, |update| update.end);
        let together = rest.get(..TOGETHER).unwrap_or(rest);
        let items = || together.iter().filter_map(|update| interest.get(update.place));
        items().for_each(|item| images.cache().expect(item.slot));
        items().for_each(|item| images.cache().expect_image(item.slot));
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
            self.folded = 0;
            self.updates.clear();
            self.bytes.clear();
            // What one long message took is given back.
            self.bytes.shrink_to(MOST_BYTES);
        }
    }
}

impl SharedState {
    /// Brings all images up to what clients have been sent. Costs a look where they are.
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
        if self.shared.unfolded.len() > 0 {
            self.shared.unfolded.fold(&mut self.shared.interest, &mut self.shared.images);
        }
        self.say_unreadable(now, connections);
    }

    /// Folds all of them.
    #[inline]
    pub(crate) fn fold_all(&mut self, now: Nanos, connections: &mut impl Connections) {
        if self.shared.unfolded.len() > 0 {
            self.shared.fold();
        }
        self.say_unreadable(now, connections);
    }

    #[inline]
    fn say_unreadable(&mut self, now: Nanos, connections: &mut impl Connections) {
        while let Some((place, number)) = self.shared.unfolded.unreadable.pop() {
            // Another item may have its place.
            if self.shared.interest.get(place).is_some_and(|item| item.number == number) {
                self.unreadable(now, place, connections);
            }
        }
    }
}
