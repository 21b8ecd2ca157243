//! A channel's price levels as ticks of the domain market by price.

use tapeline_feed::normalise::Applied;

use super::stage::{ROOM, Stage, join};
use crate::ItemId;
use crate::body::levels as body;
use crate::publish::{Publish, Refused};
use crate::sequencer::{Sequencer, Stamps, Time};
use crate::tick::Kind;

impl Stage {
    /// Publishes the changes of price levels by the last applied message: an image first for each instrument, also after its number was reassigned,
    /// then changes.
    pub(super) fn levels<P: Publish>(
        &mut self,
        applied: &Applied,
        sequence: u64,
        stamps: Stamps,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        let Some(levels) = self.normaliser.levels() else { return Ok(()) };
        let instrument = applied.instrument;
        if applied.image {
            self.images.set_published(instrument, false);
        }
        let has_changed = levels.instrument() == Some(instrument) && !levels.changes().is_empty();
        let is_image = !self.images.is_published(instrument);
        if levels.of(instrument).is_none() || !is_image && !has_changed {
            return Ok(());
        }
        let item = self.item(instrument, to);
        let named = self.normaliser.levels().zip(self.normaliser.name(instrument));
        let Some((levels, symbol)) = named.filter(|_| item != ItemId(0)) else { return Ok(()) };
        let mut room = [0; ROOM];
        let origin = self.origin((item, join(&mut room, symbol, &self.suffix)), sequence, applied.letter);
        let (kind, suspect) = (if is_image { Kind::Refresh } else { Kind::Update }, self.is_suspect());
        let mut cut = false;
        to.tick_up_to(body::MAX_BYTES, (kind, self.doubt(None)), &origin, stamps, time, |out| {
            let written = match levels.of(instrument).filter(|_| is_image) {
                Some(levels) => body::refresh(out, suspect, levels),
                None => body::update(out, levels.changes()),
            };
            written.unwrap_or_else(|| {
                cut = true;
                0
            })
        })?;
        self.images.set_published(instrument, true);
        self.counters.drafts_cut += u64::from(cut);
        self.counters.ticks += 1;
        Ok(())
    }
}
