//! A channel's orders as ticks of the domain market by order.

use tapeline_feed::normalise::{Applied, Instrument};

use super::stage::{ROOM, Stage, join};
use crate::ItemId;
use crate::body::orders as body;
use crate::publish::{Publish, Refused};
use crate::sequencer::{Sequencer, Stamps, Time};
use crate::tick::Kind;

#[derive(Debug, Default)]
pub(super) struct Images {
    /// By instrument, `true` if its image was published.
    published: Vec<bool>,
}

impl Images {
    pub(super) fn is_published(&self, instrument: Instrument) -> bool {
        self.published.get(instrument.0 as usize).is_some_and(|published| *published)
    }

    pub(super) fn set_published(&mut self, instrument: Instrument, published: bool) {
        let at = instrument.0 as usize;
        if self.published.len() <= at {
            // As large as the list of items, which is bounded by the normaliser's numbers.
            self.published.resize(at + 1, false);
        }
        self.published[at] = published;
    }

    pub(super) fn clear(&mut self) {
        self.published.clear();
    }
}

impl Stage {
    /// Publishes the changes of orders by the last applied message: an image first for each instrument, also after its number was reassigned, then
    /// changes.
    pub(super) fn orders<P: Publish>(
        &mut self,
        applied: &Applied,
        sequence: u64,
        stamps: Stamps,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        let Some(depth) = self.normaliser.depth() else { return Ok(()) };
        let instrument = depth.instrument().unwrap_or(applied.instrument);
        let is_status = applied.change.is_some_and(|draft| draft.changed.status);
        if depth.changes().is_empty() && !is_status && !applied.image {
            return Ok(());
        }
        let item = self.item(instrument, to);
        if item == ItemId(0) {
            // Nobody can have requested an item without a name.
            return Ok(());
        }
        if applied.image || !self.images.is_published(instrument) {
            self.images.set_published(instrument, true);
            return self.orders_image(instrument, item, (sequence, applied.letter), stamps, time, to);
        }
        let (Some(depth), Some(symbol)) = (self.normaliser.depth(), self.normaliser.name(instrument)) else {
            return Ok(());
        };
        let mut room = [0; ROOM];
        let origin = self.origin((item, join(&mut room, symbol, &self.suffix)), sequence, applied.letter);
        let mut cut = false;
        let summary = if is_status { self.normaliser.order_summary(instrument) } else { None };
        to.tick(Kind::Update, self.doubt(None), &origin, stamps, time, |out| {
            body::update(out, depth.changes(), summary.as_ref()).unwrap_or_else(|| {
                cut = true;
                0
            })
        })?;
        self.counters.drafts_cut += u64::from(cut);
        self.counters.ticks += 1;
        Ok(())
    }

    /// Publishes all orders of an instrument, in as many ticks as necessary.
    fn orders_image<P: Publish>(
        &mut self,
        instrument: Instrument,
        item: ItemId,
        (sequence, letter): (u64, u8),
        stamps: Stamps,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        let (Some(depth), Some(symbol)) = (self.normaliser.depth(), self.normaliser.name(instrument)) else {
            return Ok(());
        };
        let Some(summary) = self.normaliser.order_summary(instrument) else { return Ok(()) };
        let mut room = [0; ROOM];
        let origin = self.origin((item, join(&mut room, symbol, &self.suffix)), sequence, letter);
        let (flags, suspect) = (self.doubt(None), self.is_suspect());
        let mut orders = depth.orders(instrument);
        let mut next = orders.next();
        let (mut ticks, mut cut, mut is_last) = (0_u64, false, false);
        while !is_last {
            let number = u16::try_from(ticks).unwrap_or(u16::MAX);
            to.tick(Kind::Refresh, flags, &origin, stamps, time, |out| {
                match body::refresh(out, number, suspect, &summary, &mut next, &mut orders) {
                    Some(part) => {
                        is_last = part.is_last;
                        part.len
                    }
                    None => {
                        (cut, is_last) = (true, true);
                        0
                    }
                }
            })?;
            ticks += 1;
        }
        self.counters.drafts_cut += u64::from(cut);
        self.counters.ticks += ticks;
        Ok(())
    }
}
