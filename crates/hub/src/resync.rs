//! Resync after a gap: a hub that has missed ticks gets the images of all items from a process that has them.
//!
//! The data of its clients is suspect from the gap on. Each client gets the new image of each item that it has open, when it has capacity, as after
//! dropped updates. When all images and the ticks after them have come, the feeds' items have the state of their feeds again. An item without an
//! image is closed: its clients request it again, and are answered like new clients.

use std::collections::BTreeSet;

use tapeline_nanos::Nanos;
use tapeline_omm::domain::ServicePart;
use tapeline_omm::rwf::{StateCode, StreamState};
use tapeline_plant::Seq;

use crate::connections::Connections;
use crate::hub::Hub;
use crate::interest::ItemSlot;
use crate::status_texts::MISSED_ITEM;
use crate::statuses::{status, suspect};

#[derive(Debug, Default)]
pub(crate) struct Resync {
    pub(crate) is_going_on: bool,
    /// `true` while an image is handled instead of a tick.
    pub(crate) is_image: bool,
    /// Items whose images are from before the gap.
    old: BTreeSet<ItemSlot>,
}

impl Resync {
    /// Returns `true` while an image of the resync is handled: the start of a session in it is not a new event.
    pub(crate) const fn takes_image(&self) -> bool {
        self.is_going_on && self.is_image
    }

    /// Records that an image has come. Returns `true` if it replaces one from before the gap.
    pub(crate) fn has_come(&mut self, place: ItemSlot) -> bool {
        !self.old.is_empty() && self.old.remove(&place)
    }
}

impl Hub {
    /// Returns `true` during a resync: after [`Self::begin_anew`], before [`Self::end_anew`].
    #[must_use]
    pub const fn awaits_images(&self) -> bool {
        self.resync.is_going_on
    }

    /// Begins a resync: the ticks before `seq` are lost, and their contents come as [images](Self::image). Then come this tick and the later
    /// ones, and [the end](Self::end_anew).
    pub fn begin_anew(&mut self, now: Nanos, seq: Seq, connections: &mut impl Connections) {
        self.now = now;
        // Before the first tick the plant's first one was the next.
        let missing = seq.0.saturating_sub(self.next_seq.max(1));
        self.next_seq = seq.0;
        self.missed(missing, connections);
        let items = self.shared.interest.iter().filter(|(_, item)| item.has_image);
        self.resync =
            Resync { is_going_on: true, is_image: false, old: items.map(|(place, _)| place).collect() };
    }

    /// Ends a resync. If `have_all_come`, all images and the ticks on the ring meanwhile have arrived. Otherwise no more images come, and the
    /// clients' data stays suspect until the feeds' next sessions.
    pub fn end_anew(&mut self, now: Nanos, have_all_come: bool, connections: &mut impl Connections) {
        self.now = now;
        let Resync { old, .. } = std::mem::take(&mut self.resync);
        if !have_all_come {
            return;
        }
        self.fold_all(connections);
        let header = status(suspect(StreamState::CLOSED_RECOVER, StateCode::GAP_DETECTED, MISSED_ITEM));
        for place in old {
            // Otherwise the stream is closed meanwhile, and another item may have its slot.
            if self.shared.interest.get(place).is_some_and(|item| item.has_image) {
                self.last_word(place, &header, connections);
            }
        }
        let groups = self.shared.feeds.make_whole();
        self.tell(groups.into_iter().map(ServicePart::Group), connections);
    }
}
