//! Beginning anew behind a gap: a hub that has missed ticks, and gets the images of all items from who keeps them.
//!
//! What its clients have is suspect from the gap on. Each of them is given the new image of each item that it has open, when there
//! is room, as after updates for which there was none; and when all images have come, and the ticks behind them, the feeds' items
//! are as good as their feeds say. An item of which no image has come is over: who has it open asks again, and is answered as anybody
//! who comes now.

use std::collections::BTreeSet;

use tapeline_nanos::Nanos;
use tapeline_omm::State;
use tapeline_omm::domain::ServicePart;
use tapeline_omm::rwf::{DataState, Domain, StateCode, StatusHeader, StreamState};
use tapeline_plant::Seq;

use crate::connections::Connections;
use crate::hub::Hub;
use crate::interest::ItemSlot;

/// What is awaited behind a gap.
#[derive(Debug, Default)]
pub(crate) struct Resync {
    is_going_on: bool,
    /// What is taken is an image of before, no tick.
    pub(crate) is_image: bool,
    /// Items whose images are of before.
    old: BTreeSet<ItemSlot>,
}

impl Resync {
    /// Whether images are awaited.
    pub(crate) const fn is_going_on(&self) -> bool {
        self.is_going_on
    }

    /// Whether what is taken says how something was behind a gap: that a session has begun is then no news.
    pub(crate) const fn takes_image(&self) -> bool {
        self.is_going_on && self.is_image
    }

    /// An image has come: whether it takes the place of one of before.
    pub(crate) fn has_come(&mut self, place: ItemSlot) -> bool {
        !self.old.is_empty() && self.old.remove(&place)
    }
}

impl Hub {
    /// Returns `true` during a resync: after [`Self::begin_anew`], before [`Self::end_anew`].
    #[must_use]
    pub const fn awaits_images(&self) -> bool {
        self.resync.is_going_on()
    }

    /// Begins a resync: the ticks before `seq` are lost, and their contents come as [images](Self::image). Then come this tick and the later
    /// ones, and [the end](Self::end_anew).
    pub fn begin_anew(&mut self, now: Nanos, seq: Seq, connections: &mut impl Connections) {
        let missing = seq.0.saturating_sub(self.next_seq);
        self.next_seq = seq.0;
        self.missed(now, missing, connections);
        let items = self.shared.interest.iter().filter(|(_, item)| item.has_image);
        self.resync =
            Resync { is_going_on: true, is_image: false, old: items.map(|(place, _)| place).collect() };
    }

    /// Ends a resync. If `have_all_come`, all images and the ticks on the ring meanwhile have arrived. Otherwise no more images come, and the
    /// clients' data stays suspect until the feeds' next sessions.
    pub fn end_anew(&mut self, now: Nanos, have_all_come: bool, connections: &mut impl Connections) {
        let Resync { old, .. } = std::mem::take(&mut self.resync);
        if !have_all_come {
            return;
        }
        self.fold_all(now, connections);
        let state = State {
            stream: StreamState::CLOSED_RECOVER,
            data: DataState::SUSPECT,
            code: StateCode::GAP_DETECTED,
            text: b"The hub has missed messages of this item, and the plant has no image of it",
        };
        let header = StatusHeader { state: Some(state), ..StatusHeader::new(Domain::MARKET_PRICE, 0) };
        for place in old {
            if !self.shared.interest.get(place).is_some_and(|item| item.has_image) {
                // It is over meanwhile, and another item may have its place.
                continue;
            }
            self.last_word(now, place, &header, connections);
        }
        let groups = self.shared.feeds.make_whole();
        self.tell(now, groups.into_iter().map(ServicePart::Group), connections);
    }
}
